"""The rules that learn within a budget, and the keys of their models.

The equations in the descriptions are those of Mitchinson et al. 2003 (``pykernel.algorithms.online.techniques``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pykernel.algorithms.online.ald_krls import ALD_KRLS
from pykernel.algorithms.online.fb_krls import FB_KRLS
from pykernel.algorithms.online.klms import KLMS, QKLMS
from pykernel.algorithms.online.knlms import KNLMS
from pykernel.algorithms.online.krls_t import KRLS_T
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.state import Tie
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec.sections import (
    TRIED_ETA,
    TRIED_FORGETTING,
    Counts,
    Learning,
    Of,
    Rate,
    Section,
    Tried,
)


@dataclass(frozen=True)
class OnlineRule:
    """A rule that learns under a budget, and what follows for its users.

    programs: kind of label -> program, as ``budgeted()`` returns them.
    keys: the keys of [learning] that only some rules have, and this rule reads.
    gradient: the rule takes gradient steps: the multiplier of a sample depends only on the sample's own error.  Users
    get ``rho``, ``step_limit``, ``truncate_below``, ``truncate_age`` and ``when``.  The kernel for ``propose`` must apply
    ``kept()`` to the stored multipliers, and ``limited()`` or ``limited_by_norm()`` to the sample's.
    recursive: the rule's kernels read the factor T of the inverse Gram matrix (inverse_gram.py), which the model then
    stores.  Users get ``ridge``.
    slides: the model stores every sample, and a full model removes the oldest vector.  Users have no ``ald_threshold``.
    least_ridge: for a rule whose multipliers interpolate the labels of the stored samples, the smallest ridge in float32.
    A label's rounding error leads to an error in the multipliers that is 1 / ridge times as large.  The default ridge is
    0.1 instead of 1e-3, and stages that would move stored labels are refused.
    """

    programs: Mapping[LabelKind, Program]
    _: KW_ONLY
    keys: tuple[str, ...] = ()
    gradient: bool = False
    recursive: bool = False
    slides: bool = False
    least_ridge: float = 0.0

    @property
    def grows(self) -> bool:
        """Whether no vector is ever removed (the rule replaces the hook ``fills``)."""
        return all(program.budget is None or program.budget.remove is None for program in self.programs.values())

    @property
    def selects(self) -> bool:
        """Whether a technique chooses the vector to remove from a full model.  Users then get all keys of [reduction]
        about this choice: ``technique``, ``projection``, ``candidates``, ``fading``, ``lambda_max``, ``tie``, ….
        """
        return not self.grows and not self.slides


RULES: dict[str, OnlineRule] = {
    "klms": OnlineRule(KLMS, keys=("eta",), gradient=True),
    "qklms": OnlineRule(QKLMS, keys=("eta", "quantisation"), gradient=True),
    "krls-t": OnlineRule(KRLS_T, keys=("forgetting", "noise"), recursive=True),
    # the errors of fb-krls accumulate for as long as a vector is stored
    "fb-krls": OnlineRule(FB_KRLS, keys=("eta", "relabel"), recursive=True, least_ridge=1e-2),
    # least squares on a sliding window: a variant of fb-krls that stores every sample and removes the oldest one
    "sw-krls": OnlineRule(FB_KRLS, recursive=True, slides=True, least_ridge=1e-3),
    "ald-krls": OnlineRule(ALD_KRLS, recursive=True),
    "knlms": OnlineRule(KNLMS, keys=("eta", "coherence", "epsilon")),
}


def having(holds: Callable[[OnlineRule], bool]) -> tuple[str, ...]:
    """Return the names of the rules for which a condition holds."""
    return tuple(name for name, rule in RULES.items() if holds(rule))


def reading(key: str) -> Of:
    """Mark a key of [learning] that the rules with this key in ``OnlineRule.keys`` have."""
    return Of(*having(lambda rule: key in rule.keys))


GRADIENT = having(lambda rule: rule.gradient)
SELECTING = having(lambda rule: rule.selects)

PENALISED = tuple(
    name for name, each in (TECHNIQUES | PROJECTIONS).items() if not {"squared", "complex"}.isdisjoint(each.keeps)
)
"""Techniques and projections that penalise the multipliers of the remaining vectors."""

TIES = {"smaller": Tie.SMALLER, "newest": Tie.NEWEST, "oldest": Tie.OLDEST}

N_MAX_LIMIT = 4096

Noise = Annotated[float, Field(gt=0, le=1e6)]
if TYPE_CHECKING:
    TechniqueName = str
    ProjectionName = str
    TieName = str
else:
    TechniqueName = Literal[tuple(TECHNIQUES)]
    ProjectionName = Literal[tuple(PROJECTIONS)]
    TieName = Literal[tuple(TIES)]


class KernelLearning(Learning):
    """How a sample changes the model."""

    eta: Annotated[float, reading("eta"), Rate(but=("fb-krls",)), TRIED_ETA] = Field(
        0.5,
        gt=0,
        lt=2,
        description="learning rate: the part of an error that one sample corrects; `fb-krls` without `relabel` uses it only for samples that are absorbed instead of stored. At most 1 in int16, and with `relabel`",
    )
    rho: Annotated[float, Of(*GRADIENT)] = Field(
        0.0, ge=0, description="decay: each sample multiplies every multiplier by 1 - eta rho"
    )
    step_limit: Annotated[float | None, Of(*GRADIENT)] = Field(
        None,
        gt=0,
        description="largest change of f(x) when the sample x is learned; it limits the effect of outliers and of poisoning",
    )
    quantisation: Annotated[float, reading("quantisation"), Tried(3, 0.01, 2.0)] = Field(
        0.3,
        gt=0,
        le=2,
        description="a sample within this distance of an expansion vector is not stored, but changes this vector's multiplier. The distance is in units of `sigma` with `gaussian`, and in units of 1 / `gamma` with `laplacian` and Matérn kernels; with all other kernels, it is the sine of the angle between the sample and the vector in feature space",
    )
    coherence: Annotated[float, reading("coherence"), Tried(2, 0.01, 0.99)] = Field(
        0.5,
        gt=0,
        lt=1,
        description="μ₀: a sample x is stored only if |k(v, x)| / √(k(v, v) k(x, x)) is at most μ₀ for every vector v",
    )
    epsilon: Annotated[float, reading("epsilon")] = Field(
        0.03,
        ge=1e-4,
        le=1,
        description="number added to the squared norm of the kernel values; each step is divided by this sum",
    )
    relabel: Annotated[bool, reading("relabel")] = Field(
        False,
        description="whether every sample changes the labels of the vectors near it, so that the model follows a changing process; if not, only samples that are absorbed instead of stored change labels. Needs a ridge of at least 1e-3 (float32: 1e-2, as without `relabel`)",
    )
    forgetting: Annotated[float, reading("forgetting"), TRIED_FORGETTING] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="forgetting factor: about the last 1 / (1 - forgetting) samples count (with 0.99, the last 100); in float32, it must be 1 or at most 0.9999",
    )
    noise: Annotated[Noise | Literal["auto"], reading("noise"), Tried(30, 1e-5, 100)] = Field(
        0.01,
        description="variance of the labels' noise, relative to the function's prior variance at a point with k(x, x) = 1; at least 1e-4 (float64: 1e-10). `\"auto\"`: estimated from the latest residuals",
    )


class Reduction(Section):
    """How the number of expansion vectors is kept within the budget."""

    technique: Annotated[TechniqueName, Of(*SELECTING)] = Field(
        "mklms",
        description="which vector is removed. "
        + "; ".join(f"{name}: {technique.says}" for name, technique in TECHNIQUES.items()),
    )
    projection: Annotated[ProjectionName | None, Of(*SELECTING)] = Field(
        None,
        description="how the multipliers of the other vectors compensate for the removed one. "
        + "; ".join(f"{name}: {projection.says}" for name, projection in PROJECTIONS.items()),
    )
    n_max: int = Field(32, ge=1, le=N_MAX_LIMIT, description="the budget: largest number of expansion vectors")
    ridge: Annotated[float | None, Of(*having(lambda rule: rule.selects or rule.recursive)), Tried(10, 1e-4, 0.3)] = (
        Field(
            None,
            ge=0,
            le=1,
            description="for techniques and rules with a Gram matrix: this fraction of the matrix's diagonal is added to the diagonal. At most 1; in float32, at least 1e-4 (`sw-krls`: 1e-3, `fb-krls`: 1e-2)",
        )
    )
    ald_threshold: Annotated[
        float | None, Of(*having(lambda rule: rule.selects or (rule.recursive and not rule.slides)))
    ] = Field(
        None,
        ge=0,
        lt=1,
        description="a sample is absorbed instead of stored if at most this fraction of its squared norm is outside the span of the vectors; if not given, the threshold is twice the `ridge`",
    )
    penalty: Annotated[
        float,
        Of(*SELECTING),
        Counts(
            f"belongs to {' and '.join(PENALISED)}; {{}} does not have it: leave it out",
            ("reduction.technique", "reduction.projection"),
            PENALISED,
        ),
    ] = Field(
        1e-4,
        gt=0,
        le=1,
        description=f"{' and '.join(PENALISED)}: weight C of the squared multipliers (eq. 20)",
    )
    when: Annotated[Literal["after", "before"], Of(*GRADIENT)] = Field(
        "after",
        description='`"after"`: a full model first learns the sample, then removes a vector, which may be the sample itself. `"before"`: a full model first removes a vector, then predicts and learns the sample; not with `lambda_max` or truncation',
    )
    candidates: Annotated[Literal["all", "newest"], Of(*SELECTING)] = Field(
        "all", description='which vectors may be removed: `"all"`, or only the `"newest"`, which is the sample itself'
    )
    fading: Annotated[float, Of(*SELECTING)] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="factor by which each sample multiplies a vector's score; a sample near the vector restores the score. If the distribution of the inputs drifts, use 0.999",
    )
    lambda_max: Annotated[float | None, Of(*SELECTING)] = Field(
        None,
        ge=1e-30,
        le=1e30,
        description="a vector is removed as soon as its score is at most this number, even if the budget is not full. If the budget is full, the vector with the lowest score is removed, even if its score is above `lambda_max`",
    )
    removals: Annotated[
        int,
        Of(*SELECTING),
        Counts(
            "has an effect only with lambda_max, truncate_below or truncate_age; give one of these keys, or leave removals out",
            ("reduction.lambda_max", "reduction.truncate_below", "reduction.truncate_age"),
        ),
    ] = Field(
        1,
        ge=1,
        le=16,
        description="with `lambda_max` or truncation: one update removes at most this many vectors, in addition to the one that the sample replaces. This bounds the time of an update",
    )
    truncate_below: Annotated[float | None, Of(*GRADIENT)] = Field(
        None,
        ge=1e-30,
        le=1e30,
        description="expansion vectors with |α| below this number are dropped, before the budget is applied",
    )
    truncate_age: Annotated[int | None, Of(*GRADIENT)] = Field(
        None,
        ge=1,
        le=10**9,
        description="an expansion vector is dropped when it is this many samples old; a sample near the vector resets the vector's age to 0",
    )
    tie: Annotated[TieName, Of(*SELECTING)] = Field(
        "smaller",
        description='which of several vectors with equal scores is removed: the one with the `"smaller"` multiplier, the `"newest"` or the `"oldest"`',
    )
    force: Annotated[bool, Of(*SELECTING)] = Field(
        False,
        description="allow a combination of technique, projection and tie that is known to fail, and, in float64, an ald_threshold below 1e-7",
    )
