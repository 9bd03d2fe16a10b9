"""Specs of models on the features of a subspace that follows the stream: checks of the keys, and the parameters of the
`@kernel` functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from pykernel.algorithms.subspace.okfeb import OKFEB
from pykernel.algorithms.subspace.state import MOST_SEEN, Budget, Step, Update
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings, stages
from pykernel.spec.families.features import (
    coefficient_limit,
    largest_value,
    need_coefficients,
    need_definite,
    need_ridge,
    need_threshold,
    sum_limit,
)
from pykernel.spec.family import Family, Models, Refuse
from pykernel.spec.sections import (
    TRIED_ETA,
    TRIED_FEATURES,
    TRIED_FORGETTING,
    TRIED_RIDGE,
    AnyInput,
    Counts,
    Fading,
    Learning,
    Section,
    Within,
)

BUDGET_LIMIT = 1024
RANK_LIMIT = 128
DEFAULT_RANK = 8
UPDATES = {
    "parametric": Update.PARAMETRIC,
    "nonparametric": Update.NONPARAMETRIC,
    "hybrid": Update.HYBRID,
    "rls": Update.RLS,
}
STEPS = {
    "constant": Step.CONSTANT,
    "normalised": Step.NORMALISED,
    "decreasing": Step.DECREASING,
    "averaged": Step.AVERAGED,
}
BUDGETS = {"exact": Budget.EXACT, "drop": Budget.DROP}
DEFAULT_STEP = {"parametric": "constant", "nonparametric": "normalised", "hybrid": "normalised", "rls": "constant"}
DEFAULT_ETA = {"constant": 1.0, "normalised": 0.5, "decreasing": 8.0, "averaged": 8.0}
DEFAULT_ALD_THRESHOLD = 1e-2
"""Default of ald_threshold, the same in both precisions, so that a float64 model behaves like the float32 model."""
LEAST_ALD_THRESHOLD = {"float32": 1e-2, "float64": 1e-9}
"""Precision -> smallest allowed ald_threshold.  The threshold is the smallest residual of a stored vector after projection onto the
other vectors; smaller residuals would be lost in the rounding errors of T, a square root of the inverse Gram matrix
(docs/subspaces-on-device.md)."""
DEAD = 2.0**-20
"""The columns of L span the subspace.  A column is treated as zero if its squared length is at most this number times
lambda."""
GROWTH = {"float32": 2.0**18, "float64": 2.0**44}
"""The trace of G = L'L is kept below this number times lambda, so that G + lambda I has a Cholesky factor in spite of
rounding errors."""
CENSOR_STEP = 0.05
"""Largest change in the log odds of the censoring threshold after one sample."""

LABELLED = ("label_kind",), ("real", "reals", "class")
OF_HEAD = Counts(
    "belongs to the linear model on the features, which needs a label: name one in [label], or leave this key out",
    *LABELLED,
)
LOGISTIC = Counts('belongs to [subspace] head = "logistic"; leave it out', ("subspace.head",), ("logistic",))
RIDGE = Counts('belongs to [subspace] head = "ridge"; leave it out', ("subspace.head",), ("ridge",))
EXACT = Counts('belongs to [subspace] budget = "exact"; leave it out', ("subspace.budget",), ("exact",))
GRADIENT = ("parametric", "nonparametric", "hybrid")
STEP = Counts('does not go with update = "rls", which has no step: leave it out', ("subspace.update",), GRADIENT)
RLS = Counts(
    'belongs to update = "rls"; the other updates have step and eta instead: leave it out',
    ("subspace.update",),
    ("rls",),
)
WINDOW = Counts(
    'does not go with update = "rls", which has forgetting instead: leave it out',
    ("subspace.update", "subspace.head"),
    (*GRADIENT, "logistic"),
)


class SubspaceLearning(Learning):
    """How many features there are, and how the linear model on them learns."""

    features: Annotated[int | None, TRIED_FEATURES] = Field(
        None,
        ge=1,
        le=4096,
        description="number of features, which is the rank of the subspace; at most 128 and at most `n_max`. If not given, the smaller of 8 and `n_max`",
    )
    ridge: Annotated[float, OF_HEAD, TRIED_RIDGE] = Field(
        0.1,
        gt=0,
        description="with a label: weight of the penalty on squared coefficients; at least 1e-6 (float64: 1e-14) of the largest k(x, x)",
    )
    forgetting: Annotated[float, OF_HEAD, RIDGE, Fading(), TRIED_FORGETTING] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="forgetting factor of the ridge head: about the last 1 / (1 - forgetting) samples count (with 0.99, the last 100); in float32, it must be 1 or at most 0.99999",
    )
    eta: Annotated[float, OF_HEAD, LOGISTIC, TRIED_ETA] = Field(
        0.5, gt=0, lt=2, description="the logistic head's step is `eta` / (largest possible curvature of its loss)"
    )


class SubspaceReduction(Section):
    """How many vectors span the subspace."""

    n_max: int = Field(32, ge=1, le=4096, description="the budget: largest number of expansion vectors, at most 1024")
    ald_threshold: Annotated[float | None, EXACT] = Field(
        None,
        ge=0,
        lt=1,
        description="budget `exact`: a sample is learned without being stored if at most this fraction of its squared norm is outside the span of the vectors; 1e-2 if not given, at least 1e-2 (float64: 1e-9)",
    )
    force: bool = Field(False, description='allow `update = "rls"` with `budget = "drop"`')


class SubspaceSection(Section):
    """How okfeb adapts a subspace of feature space to the stream.

    L = Phi A spans the subspace.  The columns of Phi are the stored vectors in feature space.  q holds the coordinates
    of a sample in the subspace.  The algorithm numbers are those of Sheikholeslami et al. 2016
    (``pykernel.algorithms.subspace.okfeb``).
    """

    update: Literal["parametric", "nonparametric", "hybrid", "rls"] = Field(
        "parametric",
        description='how L = Φ A is learned. `"parametric"`: stochastic gradient with respect to L (Algorithm 2). `"nonparametric"`: stochastic gradient with respect to A (Algorithm 3). `"hybrid"`: the gradient of the fit with respect to A, and the gradient of the penalty |L|² with respect to L. `"rls"`: recursive least squares',
    )
    shrinkage: Annotated[float, Within(float32=(1e-6, 1e6), float64=(1e-12, 1e12))] = Field(
        0.1,
        gt=0,
        description="λ, the weight of the penalties |L|² and |q|². They lower the singular values of the samples in feature space by λ, and remove those below λ. From 1e-6 to 1e6 (float64: 1e-12 to 1e12)",
    )
    step: Annotated[Literal["constant", "normalised", "decreasing", "averaged"] | None, STEP] = Field(
        None,
        description='the rule for the length μ of a gradient step. After n samples, ρ = λ / min(n, `window`). `"constant"` (default of `parametric`): 4 η λ / k(x, x). `"normalised"` (default of `nonparametric` and `hybrid`): η / (|q|² + ρ). `"decreasing"`: η / Σ (|q|² + ρ). `"averaged"`: as `"decreasing"`, with a sum that fades over the `window`. μ is at most 1.99 / (|q|² + ρ); with `nonparametric` and `hybrid`, μ is divided by the largest row sum of |K|',
    )
    eta: Annotated[float | None, STEP] = Field(
        None,
        gt=0,
        le=100,
        description="η in `step`. If not given: 1 for `constant`, 0.5 for `normalised`, 8 for `decreasing` and `averaged`. For `constant` and `normalised`, η must be below 2",
    )
    window: Annotated[int, WINDOW] = Field(
        1000,
        ge=0,
        le=2**22,
        description="penalties are spread over at most this many samples: step n applies 1 / min(n, `window`) of λ (ρ in `step`), and of the logistic head's `ridge`. The sum of `averaged` fades over the same number of samples. 0: all samples",
    )
    forgetting: Annotated[float, RLS, Fading()] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="`rls`: forgetting factor; 1, or at most 0.99999",
    )
    budget: Literal["exact", "drop"] = Field(
        "exact",
        description='which vector is removed when the budget is full; it may be the new sample. `"exact"`: the vector whose removal changes L least if the other vectors take over the part of it that they can express. `"drop"`: the vector with the smallest k(x, x) |a|², whose part of L is lost (Algorithm 5). `"drop"` takes less memory, because it needs no inverse of the Gram matrix',
    )
    fading: Annotated[float, Fading()] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="β: factor by which each later sample multiplies a vector's claim to stay, at first 1; 1, or at most 0.99999. With values below 1, the subspace follows changes sooner",
    )
    insensitivity: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="ε: a sample is not learned if less than this fraction of its squared norm is outside the subspace (Algorithm 4)",
    )
    censoring: float = Field(
        0.0,
        ge=0,
        le=0.99,
        description="instead of `insensitivity`: the fraction of the samples that are not learned once the budget is full; the threshold adapts so that this fraction is reached",
    )
    head: Annotated[
        Literal["ridge", "logistic"], Counts("needs a label: name one in [label], or leave head out", *LABELLED)
    ] = Field(
        "ridge",
        description='with a label: the linear model on the features. `"ridge"`: recursive least squares. `"logistic"`: logistic regression by gradients, for classes only, with `NAME_probability`',
    )


class OkfebSpec(stages.StagedSpec):
    input: AnyInput
    learning: SubspaceLearning = SubspaceLearning()
    reduction: SubspaceReduction = SubspaceReduction()
    subspace: SubspaceSection = SubspaceSection()

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        return super().derived | {
            "learning": {"features": rank_of(self)},
            "subspace": {"step": step_of(self), "eta": eta_of(self)},
            "reduction": {"ald_threshold": ald_threshold_of(self)},
        }


def rank_of(spec: Any) -> int:
    """Return the number of features of an ``OkfebSpec``."""
    return spec.learning.features or min(DEFAULT_RANK, spec.reduction.n_max)


def ald_threshold_of(spec: OkfebSpec) -> float:
    """Return the smallest residual, as a fraction of k(x, x), with which a sample is stored."""
    return DEFAULT_ALD_THRESHOLD if spec.reduction.ald_threshold is None else spec.reduction.ald_threshold


def step_of(spec: OkfebSpec) -> str:
    """Return the name of the step-size rule."""
    return spec.subspace.step or DEFAULT_STEP[spec.subspace.update]


def eta_of(spec: OkfebSpec) -> float:
    """Return the factor of the step size."""
    return spec.subspace.eta if spec.subspace.eta is not None else DEFAULT_ETA[step_of(spec)]


def growth(logarithm: float) -> float:
    """Return e^logarithm, with the same bits on every machine."""
    return float(Decimal(logarithm).exp())


class SubspaceModels(Models):
    """OKFEB, with a linear model on its features if there is a label."""

    rules: Mapping[str, str] = {"okfeb": "kernel"}
    programs: Mapping[LabelKind, Program] = OKFEB
    spec = OkfebSpec

    def validate(self, spec: OkfebSpec, refuse: Refuse) -> None:
        stages.validate(spec, refuse)
        value = need_definite(spec, refuse)
        self._complain_of_size(spec, refuse)
        self._complain_of_update(spec, refuse, value)
        if spec.label_kind != "none":
            self._complain_of_head(spec, refuse, value)
            return
        for key in ("low", "high", "max_abs"):
            if getattr(spec.label, key) != type(spec.label).model_fields[key].default:
                refuse(
                    f"[label] {key}",
                    "belongs to models with a label; name one in [label] column, or leave this key out",
                )

    def _complain_of_size(self, spec: OkfebSpec, refuse: Refuse) -> None:
        n_max, rank, subspace = spec.reduction.n_max, rank_of(spec), spec.subspace
        if n_max > BUDGET_LIMIT:
            refuse("[reduction] n_max", f"is {n_max}; it must be at most {BUDGET_LIMIT}")
        if rank > min(n_max, RANK_LIMIT):
            refuse(
                "[learning] features",
                f"is {rank}; it must be at most {RANK_LIMIT}, and at most [reduction] n_max ({n_max}): a subspace cannot "
                "have more dimensions than vectors",
            )
        if subspace.update == "rls" and subspace.budget == "drop" and not spec.reduction.force:
            refuse(
                "[subspace] budget",
                'is "drop": with update = "rls", the model then hardly learns, because dropping a vector removes its part from all columns of L; '
                'choose "exact", or another update (in a spec, [reduction] force = true allows the pair)',
            )
        need_threshold(spec, refuse, ald_threshold_of(spec), LEAST_ALD_THRESHOLD)

    def _complain_of_update(self, spec: OkfebSpec, refuse: Refuse, value: float) -> None:
        """Refuse settings with which the update overflows or diverges, and settings that do not go together.

        value: the largest k(x, x).
        """
        subspace, step = spec.subspace, step_of(spec)
        if not self._moment_limit(spec, value) * max(1.0, value) <= kernel_settings.largest(spec.precision):
            refuse(
                "[subspace] shrinkage",
                f"is {subspace.shrinkage:g}, which is too small: numbers up to k(x, x) / (4 shrinkage) are summed, and the sum overflows if k(x, x) "
                f"reaches {value:.3g}; raise shrinkage, or lower [input] max_abs",
            )
        least = rank_of(spec) / GROWTH[spec.precision]
        if subspace.budget == "drop" and subspace.shrinkage < least:
            refuse(
                "[subspace] shrinkage",
                f'is {subspace.shrinkage:g}; with budget = "drop", {rank_of(spec)} features and {spec.precision}, it must be at least {least:.3g}',
            )
        if step in ("constant", "normalised") and eta_of(spec) >= 2:
            refuse(
                "[subspace] eta",
                f'is {eta_of(spec):g}; with step = "{step}" it must be below 2, so that each step brings L nearer to the sample',
            )
        if subspace.insensitivity > 0 and subspace.censoring > 0:
            refuse(
                "[subspace]",
                "has both insensitivity and censoring, which adapts the insensitivity; leave one of them out",
            )
        if subspace.head == "logistic" and spec.label_kind != "class":
            refuse(
                "[subspace] head",
                'is "logistic", which separates classes; choose "ridge", or give [label] classes',
            )

    def _complain_of_head(self, spec: OkfebSpec, refuse: Refuse, value: float) -> None:
        need_ridge(spec, refuse, value)
        sums, most = self._sum_limit(spec, value), kernel_settings.largest(spec.precision)
        # if the squares of the sums overflow, no limit for the coefficients is small enough
        need_coefficients(spec, refuse, math.sqrt(value), sums if sums * sums <= most else math.inf, rank_of(spec) + 1)

    def _moment_limit(self, spec: OkfebSpec, value: float) -> float:
        """A limit for the sums of q q' and of |q|^2 + rho.

        Once a sum reaches this limit, any further term is lost in rounding.
        """
        return (2.0**26 if spec.precision == "float32" else 2.0**60) * (
            value / (4 * spec.subspace.shrinkage) + spec.subspace.shrinkage
        )

    def _sum_limit(self, spec: OkfebSpec, value: float) -> float:
        return sum_limit(spec, spec.learning.ridge, math.sqrt(max(1.0, value) * (rank_of(spec) + 1)))

    def capacities(self, spec: OkfebSpec) -> dict[str, int]:
        n_max, rank = spec.reduction.n_max, rank_of(spec)
        return {
            "DIM": spec.dim,
            "N_MAX": n_max,
            "RANK": rank,
            "PACKED": n_max * (n_max + 1) // 2,
            "TRIANGLE": rank * (rank + 1) // 2,
            "HEAD": (rank + 1) * (rank + 2) // 2,
            "OUTPUTS": spec.outputs,
            "CLASSES": max(2, len(spec.label.classes or ())),
        }

    def parameters(self, spec: OkfebSpec) -> dict[str, Any]:
        subspace, learning = spec.subspace, spec.learning
        reach, value = kernel_settings.reach(spec), largest_value(spec)
        narrow, n_max, rank = spec.precision == "float32", spec.reduction.n_max, rank_of(spec)
        shrinkage, window = subspace.shrinkage, subspace.window or MOST_SEEN
        eta = eta_of(spec)
        root_ridge = math.sqrt(learning.ridge)
        faded = learning.forgetting ** (rank + 1)
        square_limit = GROWTH[spec.precision] * shrinkage
        return (
            kernel_settings.parameters(spec)
            | stages.parameters(spec, 1e37 if narrow else 1e305)
            | self._branches(spec)
            | {
                "shrinkage": shrinkage,
                "root_bound": 1 / math.sqrt(shrinkage),
                "eta": 4 * shrinkage * eta if step_of(spec) == "constant" else eta,
                "window": window,
                "averaging": 1 - 1 / window,
                "memory": subspace.forgetting,
                "fading": subspace.fading,
                "ald_threshold": ald_threshold_of(spec),
                "dead": DEAD * shrinkage,
                "delta_least": 0.25 * ald_threshold_of(spec),
                "insensitivity": subspace.insensitivity,
                "more_censoring": growth(CENSOR_STEP * subspace.censoring),
                "less_censoring": growth(-CENSOR_STEP * (1 - subspace.censoring)),
                "square_limit": square_limit,
                # the factor 16 allows for the term that one sample adds to the trace of G, and for the largest G = A'KA
                # after many samples
                "element_limit": 16 * square_limit,
                "factor_limit": 4.04 * math.sqrt(square_limit + shrinkage),
                "inner_limit": 4.04 * math.sqrt(square_limit * value),
                "code_limit": math.sqrt(value / shrinkage),
                "moment_root": 1.01 * math.sqrt(self._moment_limit(spec, value) + shrinkage),
                "row_limit": math.sqrt((1e30 if narrow else 1e250) / max(1.0, value)) / n_max,
                "inverse_root_limit": (1e6 if narrow else 1e30) / math.sqrt(min(1.0, value)),
                "length_least": 2.0**-50 / math.sqrt(max(1.0, value)),
                "inverse_limit": (1e12 if narrow else 1e60) * (n_max + 1) / min(1.0, value),
                "inverse_least": 0.5 / value,
                "coordinate_limit": 1.01 * math.sqrt(value),
                "value_bound": 1.01 * value,
                "scaled_limit": 1.01 * float(reach.max()),
                "moment_limit": self._moment_limit(spec, value),
                "root_ridge": root_ridge,
                "head_ridge": learning.ridge,
                "head_eta": (4 if spec.outputs == 1 else 2) * learning.eta,
                "head_least": 0.25 * root_ridge * math.sqrt(faded),
                "root_forgetting": math.sqrt(learning.forgetting),
                "refill": root_ridge * math.sqrt(1 - faded),
                "coefficient_limit": coefficient_limit(spec, learning.ridge, math.sqrt(value)),
                "sum_limit": self._sum_limit(spec, value),
                "rehearsed": n_max + 12 + (spec.input.warmup if spec.input.standardise else 0),
            }
        )

    def _branches(self, spec: OkfebSpec) -> dict[str, Any]:
        """Return the parameters that decide which branches of the `@kernel` functions remain."""
        subspace = spec.subspace
        return {
            "separates": False,  # the linear model learns labels of 1 and -1
            "scales": True,  # the rule scales its copy of the input
            "hears_other": spec.interval is not None,  # the subspace learns a sample before the label arrives
            "update": UPDATES[subspace.update],
            "step": Step.CONSTANT if subspace.update == "rls" else STEPS[step_of(spec)],
            "budget": BUDGETS[subspace.budget],
            "fades": subspace.fading < 1,
            "leaks": subspace.forgetting < 1,
            "tolerates": subspace.insensitivity > 0,
            "censors": subspace.censoring > 0,
            "learns_labels": spec.label_kind != "none",
            "logistic": subspace.head == "logistic",
            "forgets": spec.learning.forgetting < 1,
        }


SUBSPACE_MODELS: Family = SubspaceModels()
