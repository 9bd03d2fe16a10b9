"""The techniques: which candidate is removed (Mitchinson et al. 2003, sections 2 and 5).

A technique defines the cost of removing a candidate; the candidate with the smallest cost is removed.  Each technique is an
entry of ``TECHNIQUES``, and its kernels are defined above it.  Computing the costs of all candidates takes O(N^2) with matrices,
and O(N D) without matrices.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.algorithms.kernels import one_minus_exp
from pykernel.algorithms.online.candidates import age_of, candidates, energy, magnitude
from pykernel.algorithms.online.complex_inverse import ridge_diagonal
from pykernel.algorithms.online.hooks import always, never
from pykernel.algorithms.online.inverse_gram import (
    inverse_diagonal,
    inverse_norms,
    newest_diagonal,
    newest_norm,
    penalised_losses,
)
from pykernel.algorithms.online.neighbours import isolation, overlap_of
from pykernel.algorithms.online.state import Metric, OnlineModel
from pykernel.dialect import Bool, Index, Kernel, Real, chosen, kernel, real


@kernel
def nothing(m: OnlineModel) -> None:
    """Do nothing: the costs need no intermediate results."""


@kernel
def nothing_of(m: OnlineModel, i: Index) -> None:
    """Do nothing: the cost needs no intermediate results."""


@kernel
def undecided(m: OnlineModel, i: Index, r: Index) -> Index:
    """Return 0: the technique does not break ties."""
    return 0


@kernel
def unchanged(m: OnlineModel, value: Real) -> Real:
    """Return the cost unchanged."""
    return value


@dataclass(frozen=True)
class Technique:
    """A technique and its parts.

    says: a description of the vector that is removed.  metric: the value in ``Metric``.  projection: the default projection.
    cost: computes the cost of removing a candidate, once ``survey`` has run, in O(1) for each output.
    survey: computes the intermediate results for the costs of all candidates, in O(N^2) or less.
    survey_newest: computes the intermediate results for the newest sample only.
    survey_one: computes the intermediate results for one candidate, after a search for its neighbour.
    before: breaks a tie: if the result is above 0, i is removed; if it is below 0, r is removed.
    comparable: converts a cost to the unit of lambda_max.
    keeps: the data that are stored in addition to the vectors; see the fields ``keeps_...`` of ``OnlineConfig``.
    fades: whether the cost may be multiplied by a vector's claim to stay; such a cost must not be negative.
    """

    name: str
    says: str
    metric: Metric
    projection: str
    cost: Kernel
    survey: Kernel = nothing
    survey_newest: Kernel = nothing
    survey_one: Kernel = nothing_of
    before: Kernel = undecided
    comparable: Kernel = unchanged
    keeps: tuple[str, ...] = ()
    fades: bool = True


# ---------------------------------------------------------------------------------------------------------- truncation

NT = Technique("nt", "the vector with the smallest multiplier", Metric.MAGNITUDE, "none", magnitude)


@kernel
def no_cost(m: OnlineModel, i: Index) -> Real:
    """Return 0: all candidates have the same cost, and their ages decide."""
    return real(0)


@kernel
def older_by(m: OnlineModel, i: Index, r: Index) -> Index:
    """Above 0 if candidate i is older than r, below 0 if i is younger, 0 if the ages are equal."""
    own = age_of(m, i)
    other = age_of(m, r)
    if own == other:
        return 0
    return 1 if own > other else -1


AT = Technique("at", "the oldest vector", Metric.AGE, "none", no_cost, before=older_by, keeps=("ages",), fades=False)

# ------------------------------------------------------------------------------------- what other vectors cannot express


@kernel
def rest(m: OnlineModel, i: Index) -> Real:
    """kappa_i = 1 / P_ii: the part of the vector outside the span of the other vectors.  Mitchinson et al. 2003, eq. 13."""
    return real(1) / m.score[i]


@kernel
def weighted_rest(m: OnlineModel, i: Index) -> Real:
    """alpha_i^2 / score_i.

    If score_i = P_ii, the cost is the squared norm of the change of f.  If score_i = Q_ii, the cost is the sum of the squared changes
    of f at the vectors.
    """
    return energy(m, i, real(1) / m.score[i])


@kernel
def loss_at_its_place(m: OnlineModel, i: Index) -> Real:
    """|alpha_i| kappa_i: the change of f at the vector itself."""
    return magnitude(m, i) * (real(1) / m.score[i])


@kernel
def for_each_candidate(m: OnlineModel, value: Real) -> Real:
    """Convert a sum over the candidates to a mean."""
    return value * (real(1) / real(candidates(m)))


KLMS = Technique(
    "klms", "the vector nearest to the span of the others", Metric.KLMS, "klms",
    rest, inverse_diagonal, newest_diagonal, keeps=("factor",),
)  # fmt: skip
MKLMS = Technique(
    "mklms", "the vector whose removal changes the function least, in the kernel's norm", Metric.MKLMS, "klms",
    weighted_rest, inverse_diagonal, newest_diagonal, keeps=("factor",),
)  # fmt: skip
SUP = Technique(
    "sup", "the vector whose removal changes the function least at that vector", Metric.SUP, "klms",
    loss_at_its_place, inverse_diagonal, newest_diagonal, keeps=("factor",),
)  # fmt: skip
LS = Technique(
    "ls", "the vector whose removal changes the function least at all vectors", Metric.LS, "ls",
    weighted_rest, inverse_norms, newest_norm, comparable=for_each_candidate, keeps=("factor", "inverse"),
)  # fmt: skip


@kernel
def surveyed(m: OnlineModel, i: Index) -> Real:
    """The cost that survey() has computed."""
    return m.score[i]


LSREG = Technique(
    "lsreg", "as ls, with a penalty on the multipliers of the other vectors", Metric.LSREG, "ls",
    surveyed, penalised_losses, penalised_losses, keeps=("factor", "squared"),
)  # fmt: skip


@kernel
def ridge_loss(m: OnlineModel, i: Index) -> Real:
    """sum_o shrunk_i^2 / W_ii, where score_i = W_ii.  The projection minimises the sum in eq. 20 of Mitchinson et al.
    2003, and this cost is the part of the minimum that depends on i."""
    part = real(1) / m.score[i]
    total = real(0)
    for o in range(len(m.alpha[0])):
        total += m.shrunk[i, o] * (m.shrunk[i, o] * part)
    return total


LSRIDGE = Technique(
    "lsridge", "as lsreg, with the penalty also in the projection", Metric.LSRIDGE, "lsridge",
    ridge_loss, ridge_diagonal, ridge_diagonal, comparable=for_each_candidate, keeps=("complex",),
)  # fmt: skip

# -------------------------------------------------------------------------------------------- fast, without a matrix


@kernel
def from_distance(m: OnlineModel, value: Real) -> Real:
    """Convert the squared distance of a Gaussian kernel to 1 - k.  For other kernels, the distance is 1 - |k| already."""
    if m.function == KernelFunction.GAUSSIAN:
        return one_minus_exp(m.gamma * value)
    return value


@kernel
def weigh_isolation(m: OnlineModel, i: Index) -> None:
    """score_i = alpha_i^2 (1 - max_j k_ij), or a lower bound on this score.  Mitchinson et al. 2003, eq. 18."""
    m.score[i] = energy(m, i, from_distance(m, isolation(m, i)))


@kernel
def weigh_all(m: OnlineModel) -> None:
    """Compute score_i for every candidate i."""
    count = candidates(m)
    for i in range(count):
        weigh_isolation(m, i)


@kernel
def weigh_newest(m: OnlineModel) -> None:
    """Compute score_n of the newest sample."""
    weigh_isolation(m, m.n[0])


@kernel
def distinctness(m: OnlineModel, i: Index) -> Real:
    """1 - sum_j k_ij^2.  Mitchinson et al. 2003, section 5."""
    return real(1) - overlap_of(m, i)


@kernel
def weighted_distinctness(m: OnlineModel, i: Index) -> Real:
    """alpha_i^2 (1 - sum_j k_ij^2).  Mitchinson et al. 2003, section 5."""
    return energy(m, i, distinctness(m, i))


FKLMS = Technique(
    "fklms", "one vector of the closest pair", Metric.FKLMS, "bounded",
    isolation, comparable=from_distance, keeps=("neighbours",),
)  # fmt: skip
FMKLMS = Technique(
    "fmklms", "as fklms, weighted by multipliers", Metric.FMKLMS, "bounded",
    surveyed, weigh_all, weigh_newest, weigh_isolation, keeps=("neighbours",),
)  # fmt: skip
AFKLMS = Technique(
    "afklms", "as fklms, but the distances to all vectors count, not only the shortest", Metric.AFKLMS, "bounded",
    distinctness, keeps=("overlap",), fades=False,
)  # fmt: skip
AFMKLMS = Technique(
    "afmklms", "as fmklms, but the distances to all vectors count, not only the shortest", Metric.AFMKLMS, "bounded",
    weighted_distinctness, keeps=("overlap",), fades=False,
)  # fmt: skip

# ------------------------------------------------------------------------------------------------------- all of them

TECHNIQUES = {
    technique.name: technique
    for technique in (NT, AT, KLMS, MKLMS, SUP, LS, LSREG, LSRIDGE, FKLMS, FMKLMS, AFKLMS, AFMKLMS)
}


def _by_technique(of: Callable[[Technique], Kernel]) -> Callable[[Callable], Kernel]:
    return chosen("metric", {technique.metric: of(technique) for technique in TECHNIQUES.values()})


@_by_technique(lambda technique: technique.cost)
def cost(m: OnlineModel, i: Index) -> Real:
    """The cost of removing a candidate."""


@_by_technique(lambda technique: technique.survey)
def survey(m: OnlineModel) -> None:
    """Compute the intermediate results for the costs of all candidates."""


@_by_technique(lambda technique: technique.survey_newest)
def survey_newest(m: OnlineModel) -> None:
    """Compute the intermediate results for the cost of the newest sample."""


@_by_technique(lambda technique: technique.survey_one)
def survey_one(m: OnlineModel, i: Index) -> None:
    """Compute the intermediate results for the cost of one candidate."""


@_by_technique(lambda technique: always if technique.survey is inverse_diagonal else never)
def knows_diagonal(m: OnlineModel) -> Bool:
    """Whether score_i is P_ii after survey()."""


@_by_technique(lambda technique: technique.before)
def goes_first(m: OnlineModel, i: Index, r: Index) -> Index:
    """Break a tie between two candidates: above 0 if i is removed, below 0 if r is removed, 0 if the technique does not decide."""


@_by_technique(lambda technique: technique.comparable)
def comparable(m: OnlineModel, value: Real) -> Real:
    """Convert a cost to the unit of lambda_max."""
