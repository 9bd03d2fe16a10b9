"""Specs of models on a basis of feature vectors: checks of the keys, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from pykernel.algorithms.basis.coordinates import Method
from pykernel.algorithms.basis.nystrom import NYSTROM
from pykernel.algorithms.basis.nystrom_rls import NYSTROM_RLS
from pykernel.algorithms.kernel_choice import KernelConfig, custom_kernel
from pykernel.algorithms.tables import Factor, Vectors, factorise_vectors
from pykernel.dialect import FLOAT64, Memory, substitute
from pykernel.dialect.program import LabelKind, Program, Settings
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError
from pykernel.spec import kernel_settings, stages
from pykernel.spec.base import Spec
from pykernel.spec.families.features import (
    coefficient_limit,
    largest_value,
    need_coefficients,
    need_definite,
    need_ridge,
    need_sums,
    need_threshold,
    need_vectors,
    need_weights,
    sum_limit,
)
from pykernel.spec.family import Family, Models, Refuse, affordable
from pykernel.spec.sections import (
    TRIED_FORGETTING,
    TRIED_RIDGE,
    AnyInput,
    Counts,
    Fading,
    FrozenInput,
    KernelSection,
    Learning,
    Numbers,
    Rows,
    Section,
    VectorsSection,
)

BASIS_LIMIT = 1024
METHODS = {"given": Method.GIVEN, "stream": Method.STREAM, "efvs": Method.EFVS, "sgma": Method.SGMA}
LEAST_ALD_THRESHOLD = {"float32": 1e-3, "float64": 1e-9}
"""Smallest residual of a basis vector after projection onto the vectors before it, as a fraction of k(x, x).  A smaller residual
would be lost in the rounding errors of the Cholesky factor L (docs/bases-on-device.md)."""
DEFAULT_ALD_THRESHOLD = 1e-3
"""Default of ald_threshold, the same in both precisions, so that a float64 model behaves like the float32 model."""
WITHOUT_RESERVOIR = 'does not go with [basis] method = "given", which has no reservoir'
WITHOUT_BUDGET = 'does not go with [basis] method = "given", which uses all [expansion] vectors: leave it out'
OF_GIVEN = 'belongs to [basis] method = "given"; leave it out'
CHOSEN = ("basis.method",), ("stream", "efvs", "sgma")
EFVS = Counts('belongs to method "efvs"; "{}" does not have it: leave it out', ("basis.method",), ("efvs",))
STREAM = Counts('belongs to method "stream"; "{}" does not have it: leave it out', ("basis.method",), ("stream",))
SELECTED = Counts(
    'belongs to methods "efvs" and "sgma"; "{}" does not have it: leave it out', ("basis.method",), ("efvs", "sgma")
)
RESERVOIR = Counts('belongs to methods "stream", "efvs" and "sgma"; "{}" does not have it: leave it out', *CHOSEN)


class NystromLearning(Learning):
    """How a sample changes the model."""

    ridge: Annotated[float, TRIED_RIDGE] = Field(
        0.1,
        gt=0,
        description="weight of the penalty on squared coefficients; at least 1e-6 (float64: 1e-14) of the largest k(x, x)",
    )
    forgetting: Annotated[float, Fading(), TRIED_FORGETTING] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="forgetting factor: about the last 1 / (1 - forgetting) samples count (with 0.99, the last 100); in float32, it must be 1 or at most 0.99999",
    )
    samples: Annotated[int | None, Counts(f"{WITHOUT_RESERVOIR}: leave samples out", *CHOSEN)] = Field(
        None,
        ge=2,
        le=4096,
        description="number of rows in the reservoir: at least `n_max`; with `stream`, at least 2 `n_max`, preferably 3 `n_max`. If not given: 64 for an `n_max` of up to 32, otherwise 3 `n_max`",
    )
    seed: Annotated[int, Counts(f"{WITHOUT_RESERVOIR}: leave seed out", *CHOSEN)] = Field(
        0, ge=0, le=2**31 - 1, description="seed of the random numbers"
    )


class NystromReduction(Section):
    """How large the basis may be."""

    n_max: int = Field(32, ge=1, le=4096, description="the budget: largest number of basis vectors, at most 1024")
    ald_threshold: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="a sample becomes a basis vector only if more than this fraction of its squared norm is outside the span of the basis; 1e-3 if not given, at least 1e-3 (float64: 1e-9)",
    )


class BasisSection(Section):
    """Where nystrom-rls gets the basis vectors, which span the model's feature space."""

    method: Literal["given", "stream", "efvs", "sgma"] = Field(
        "stream",
        description='where the basis vectors come from. `"given"`: `[expansion] vectors`. `"stream"`: a sample becomes a basis vector with a probability equal to its relative residual, the fraction of its squared norm in feature space that is outside the span of the basis. If the basis is full, the sample replaces the vector whose removal increases the residuals of the rows in the reservoir least. The reservoir is a random selection of earlier samples. `"efvs"`, `"sgma"`: `NAME_select()` chooses the basis vectors one by one from the reservoir; each step chooses the row that most reduces the relative residual (`efvs`) or the trace of the residual (`sgma`)',
    )
    candidates: Annotated[int, SELECTED] = Field(
        59, ge=1, le=4096, description="`efvs`, `sgma`: number of candidate rows in each step, drawn at random"
    )
    points: Annotated[int, EFVS] = Field(
        59,
        ge=1,
        le=4096,
        description="`efvs`: the candidates are compared by how much they reduce the relative residuals of this many rows, drawn at random",
    )
    tau: Annotated[float, SELECTED] = Field(
        0.0,
        ge=0,
        lt=1,
        description="`efvs`, `sgma`: the selection stops when the mean relative residual of the reservoir's rows is at most this number",
    )
    horizon: Annotated[int, RESERVOIR] = Field(
        0,
        ge=0,
        le=2**22,
        description="the reservoir represents about this many of the latest samples: at least `samples`, or 0 for 4,194,304. Until that many samples have been seen, each of them is in the reservoir with the same probability",
    )
    cache: Annotated[bool, STREAM] = Field(
        True,
        description="`stream`: whether the reservoir keeps its rows' coordinates, `samples` · `n_max` numbers; without them, replacing a vector takes more time",
    )


class Tables(VectorsSection):
    """The tables of a basis, which are stored in flash: its vectors, and the weights of functions on the basis."""

    weights: Rows | None = Field(
        None,
        strict=False,
        description="a row for each coordinate, with a number for each function; if not given, `NAME_predict` writes the coordinates",
    )
    bias: Numbers | None = Field(None, strict=False, description="the constant added to each function")
    noise: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="number added to the diagonal of the vectors' kernel matrix; in a Gaussian process, the variance of the noise divided by `prior_variance`",
    )
    prior_variance: float | None = Field(
        None,
        gt=0,
        description="Gaussian process: the prior variance of f(x), divided by k(x, x). If given, `NAME_variance` writes the variance of a label",
    )
    label_variance: float = Field(
        0.0,
        ge=0,
        description="variance of the labels around the function; `NAME_variance` adds it to the function's variance",
    )


class NystromSpec(Spec):
    input: FrozenInput
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    expansion: Tables | None = None


class NystromRlsSpec(stages.StagedSpec):
    input: AnyInput
    learning: NystromLearning = NystromLearning()
    reduction: Annotated[NystromReduction, Counts(WITHOUT_BUDGET, *CHOSEN)] = NystromReduction()
    basis: BasisSection = BasisSection()
    expansion: Annotated[VectorsSection | None, Counts(OF_GIVEN, ("basis.method",), ("given",))] = None

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        reservoir = {"samples": samples_of(self)}
        return super().derived | {"reduction": {"ald_threshold": ald_threshold_of(self)}, "learning": reservoir}


class _NystromModels(Models):
    """Base class of the two families of Nystrom models: trained models, and models that learn."""

    def _complain_of_vectors(self, spec: Spec, refuse: Refuse) -> None:
        need_vectors(spec, refuse, BASIS_LIMIT)
        reach = kernel_settings.reach(spec)
        for i, vector in enumerate(tables_of(spec).vectors):
            if np.any(np.abs(vector) > reach):
                refuse(
                    "[expansion] vectors",
                    f"holds a number beyond the limits of the inputs in row {i}; vectors must be scaled like samples, and lie within the same limits",
                )
        _, dependent = factor_of(spec)
        if dependent >= 0:
            refuse("[expansion] vectors", _dependence(spec, dependent))

    def _parameters(self, spec: Spec, learning: NystromLearning, basis: BasisSection) -> dict[str, Any]:
        capacities, narrow, method = spec.capacities, spec.precision == "float32", METHODS[basis.method]
        size, samples, outputs = capacities["N_MAX"], capacities["M_MAX"], capacities["OUTPUTS"]
        value, tables, label = math.sqrt(largest_value(spec)), tables_of(spec), spec.label
        factor_rows, dependent = np.zeros(size * (size + 1) // 2), -1
        if method is Method.GIVEN:
            factor_rows, dependent = factor_of(spec)
        if dependent >= 0:  # this can happen with a custom kernel, which was not known when the tables were checked
            raise UserError(f"[expansion] vectors {_dependence(spec, dependent)}")
        most, faded = 1e37 if narrow else 1e305, learning.forgetting**size
        root_ridge, first = math.sqrt(learning.ridge), learning.seed
        return kernel_settings.parameters(spec) | {
            "method": method,
            "single": spec.outputs == 1,
            "separates": False,  # the functions learn labels of 1 and -1
            "scales": True,  # the rule scales its copy of the input
            "bounded": label.low is not None or label.high is not None,
            "varies": tables.prior_variance is not None,
            "weighs": tables.weights is not None,
            "forgets": learning.forgetting < 1,
            "caches": method in (Method.EFVS, Method.SGMA) or (method is Method.STREAM and basis.cache),
            "vectors": np.array(tables.vectors, float) if tables.vectors else np.zeros((size, spec.dim)),
            "factor_rows": factor_rows,
            "weights": np.zeros((size, outputs)) if tables.weights is None else np.array(tables.weights, float),
            "bias": np.zeros(outputs) if tables.bias is None else np.array(tables.bias, float),
            "prior_variance": tables.prior_variance or 0.0,
            "label_variance": tables.label_variance,
            "ald_threshold": ald_threshold_of(spec),
            "tau": basis.tau,
            "candidates": basis.candidates,
            "sampled": basis.points,
            "horizon": basis.horizon or 2**22,
            "seed_1": 1 + first % 30268,
            "seed_2": 1 + (first // 30268 + 12345) % 30306,
            "seed_3": 1 + (first * 7 + 6789) % 30322,
            "root_ridge": root_ridge,
            "least": 0.25 * root_ridge * math.sqrt(faded),
            "root_forgetting": math.sqrt(learning.forgetting),
            "refill": root_ridge * math.sqrt(1 - faded),
            "coefficient_limit": coefficient_limit(spec, learning.ridge, value),
            "sum_limit": sum_limit(spec, learning.ridge, value * math.sqrt(size)),
            "scaled_limit": 1.01 * float(kernel_settings.reach(spec).max()),
            "coordinate_limit": 1.01 * value,
            "turned_limit": 2.02 * value * math.sqrt(size),
            "reciprocal_limit": 1.01 * 2.0 ** (45 if narrow else 450),
            "solved_limit": 1e18 if narrow else 1e150,
            "label_max_abs": stages.label_unit(spec),
            "least_value": label.low if label.low is not None else -most,
            "largest_value": label.high if label.high is not None else most,
            "classes": len(label.classes or ()),
            "rehearsed": self._rehearsed(spec, method, basis, samples),
        }

    def _rehearsed(self, spec: Spec, method: Method, basis: BasisSection, samples: int) -> int:
        """Number of samples in the self-test: 16 if the basis is given.  Otherwise, the samples fill the reservoir from
        which the basis is chosen, unless that many samples would take too long.
        """
        if method is Method.GIVEN:
            return 16
        if method is Method.STREAM:
            return spec.rehearsed(samples + 4)
        size = spec.capacities["N_MAX"]

        def touched(m: int) -> float:
            """Number of reads and writes while the basis is chosen, and while rows are learned before and after the choice."""
            vectors, compared = min(size, m), min(basis.candidates, m)
            points = m if method is Method.SGMA else min(basis.points, m)
            return vectors * compared * points * (vectors / 2 + spec.dim) + 2 * m * vectors**2

        return affordable(samples, touched)


def _dependence(spec: Spec, row: int) -> str:
    return (
        f"cannot be used, because row {row} is nearly a linear combination of the rows before it: the fraction of its squared length "
        f"in feature space that is outside their span is below {LEAST_ALD_THRESHOLD[spec.precision]:g}, the limit for {spec.precision}; "
        "leave this row out"
    )


def samples_of(spec: Any) -> int:
    """Number of rows in the reservoir."""
    n_max = spec.reduction.n_max
    return int(spec.learning.samples or (64 if n_max <= 32 else min(4096, 3 * n_max)))


def ald_threshold_of(spec: Spec) -> float:
    """Return the smallest residual, as a fraction of k(x, x), with which a sample can become a basis vector."""
    given = spec.reduction.ald_threshold if isinstance(spec, NystromRlsSpec) else None
    return given if given is not None else DEFAULT_ALD_THRESHOLD


def tables_of(spec: Spec) -> Tables:
    """Return all tables that the model may have in flash, with defaults for the tables that the spec lacks."""
    given = spec.expansion
    vectors = given.vectors if given is not None else ()
    return given if isinstance(given, Tables) else Tables.model_construct(vectors=vectors)


def factor_of(spec: Spec) -> tuple[np.ndarray, int]:
    """Return (L, dependent).

    L: the Cholesky factor of the vectors' kernel matrix, in float64, computed from the vectors as the device stores them.  It is
    packed by rows; the diagonal elements are replaced by their reciprocals.  dependent: the index of the first vector that depends
    linearly on the vectors before it; -1 if no vector does.
    """
    if spec.kernel.function == "custom" and spec.custom is None:
        # ``spec.custom`` is set only after the spec has been validated; ``_parameters`` checks the vectors then
        size = len(spec.expansion.vectors)
        return np.zeros(size * (size + 1) // 2), -1
    return _factor(spec)


@functools.lru_cache(64)
def _factor(spec: Spec) -> tuple[np.ndarray, int]:
    vectors = np.array(spec.expansion.vectors, float)
    compute = factorise_vectors if spec.custom is None else substitute(factorise_vectors, {custom_kernel: spec.custom})
    sizes = {"N_MAX": len(vectors), "DIM": spec.dim, "PACKED": len(vectors) * (len(vectors) + 1) // 2}
    memory = Memory((Vectors, Factor), FLOAT64, sizes)
    memory.field("vectors")[...] = vectors.astype(spec.real.dtype)
    settings = Settings({KernelConfig: KernelConfig.of(FLOAT64, kernel_settings.parameters(spec), {"DIM": spec.dim})})
    least = LEAST_ALD_THRESHOLD[spec.precision]
    dependent = make_executor([compute], memory, settings).call(compute, least, tables_of(spec).noise)
    packed = memory.field("packed").copy()
    packed.flags.writeable = False
    return packed, int(dependent)


class NystromModels(_NystromModels):
    """Models whose basis, and functions on the basis, were computed elsewhere."""

    rules: Mapping[str, str] = {"nystrom": "kernel"}
    programs: Mapping[LabelKind, Program] = NYSTROM
    spec = NystromSpec

    def validate(self, spec: NystromSpec, refuse: Refuse) -> None:
        if spec.expansion is None:
            refuse("[expansion] vectors", "is missing; a frozen basis must have vectors")
        value = need_definite(spec, refuse)
        self._complain_of_vectors(spec, refuse)
        tables, size = spec.expansion, len(spec.expansion.vectors)
        self._complain_of_variance(spec, tables, value, refuse)
        if tables.weights is not None:
            need_weights(spec, refuse, spec.outputs, spec.outputs)
            need_sums(spec, refuse, math.sqrt(value))
            return
        if tables.bias is not None:
            refuse("[expansion] bias", "is given without weights; give weights too, or leave bias out")
        if spec.label.classes is not None or spec.outputs != size:
            refuse(
                "[expansion] weights",
                f"is missing; without weights the model predicts coordinates, so [label] outputs must be {size}",
            )

    def _complain_of_variance(self, spec: NystromSpec, tables: Tables, value: float, refuse: Refuse) -> None:
        """Refuse variances that the model cannot use, or that would overflow.  value: the largest k(x, x)."""
        prior, label = tables.prior_variance, tables.label_variance
        if prior is None:
            if label:
                refuse(
                    "[expansion] label_variance",
                    "is given without prior_variance; give prior_variance too, or leave label_variance out",
                )
            return
        if tables.weights is None or spec.label.classes is not None or spec.outputs != 1:
            refuse(
                "[expansion] prior_variance",
                "is only for a model that has weights and predicts one number; leave it out",
            )
        most = kernel_settings.largest(spec.precision)
        if not prior * value + label <= most:
            refuse(
                "[expansion] prior_variance",
                f"is {prior:g}, so large that variances reach {prior * value + label:g}; they must stay below {most:g} in "
                f"{spec.precision}",
            )

    def capacities(self, spec: NystromSpec) -> dict[str, int]:
        size = len(tables_of(spec).vectors)
        return {"DIM": spec.dim, "N_MAX": size, "PACKED": size * (size + 1) // 2, "OUTPUTS": spec.outputs, "M_MAX": 1}

    def parameters(self, spec: NystromSpec) -> dict[str, Any]:
        return self._parameters(spec, NystromLearning(), BasisSection(method="given"))


class NystromLearners(_NystromModels):
    """Recursive least squares on a basis that is given or chosen on the device."""

    rules: Mapping[str, str] = {"nystrom-rls": "kernel"}
    programs: Mapping[LabelKind, Program] = NYSTROM_RLS
    spec = NystromRlsSpec

    def validate(self, spec: NystromRlsSpec, refuse: Refuse) -> None:
        method = spec.basis.method
        stages.validate(spec, refuse)
        if method in ("efvs", "sgma"):
            stages.refuse_moving(spec, refuse, f'[basis] method = "{method}"')
        value = need_definite(spec, refuse)
        if method == "given":
            if spec.expansion is None:
                refuse("[expansion] vectors", 'is missing; [basis] method = "given" needs vectors')
            self._complain_of_vectors(spec, refuse)
        else:
            self._complain_of_reservoir(spec, refuse)
        need_threshold(spec, refuse, ald_threshold_of(spec), LEAST_ALD_THRESHOLD)
        need_ridge(spec, refuse, value)
        size, most = self._size(spec), kernel_settings.largest(spec.precision)
        sums = sum_limit(spec, spec.learning.ridge, math.sqrt(value * size))
        if not (sums**2 <= most and value * size * sums <= most):
            refuse(
                "[input] max_abs",
                f"is {spec.input_max_abs:g}, so large that k(x, x) can reach {value:.3g} and sums over samples overflow; lower "
                "max_abs",
            )
        need_coefficients(spec, refuse, math.sqrt(value), sums, size)

    def _complain_of_reservoir(self, spec: NystromRlsSpec, refuse: Refuse) -> None:
        """Refuse a budget that is above the limit, or too large for the reservoir from which the basis is chosen.  Also
        refuse a horizon that is shorter than the reservoir.
        """
        n_max, samples = spec.reduction.n_max, samples_of(spec)
        if n_max > BASIS_LIMIT:
            refuse("[reduction] n_max", f"is {n_max}; it must be at most {BASIS_LIMIT}")
        least = 2 * n_max if spec.basis.method == "stream" else n_max
        if samples < least:
            refuse(
                "[learning] samples",
                f"is {samples}; the reservoir must hold {least} rows or more for {n_max} basis vectors, preferably {3 * n_max}; "
                "with fewer rows, the basis fits the rows of the reservoir but not new rows",
            )
        if 0 < spec.basis.horizon < samples:
            refuse(
                "[basis] horizon",
                f"is {spec.basis.horizon}; it must be 0, or at least {samples}, the number of rows in the reservoir",
            )

    def _size(self, spec: NystromRlsSpec) -> int:
        return len(tables_of(spec).vectors) or spec.reduction.n_max

    def capacities(self, spec: NystromRlsSpec) -> dict[str, int]:
        size = self._size(spec)
        sizes = {
            "DIM": spec.dim,
            "N_MAX": size,
            "PACKED": size * (size + 1) // 2,
            "OUTPUTS": spec.outputs,
            "M_MAX": 1 if spec.basis.method == "given" else samples_of(spec),
        }
        return sizes | stages.probabilities(spec)

    def parameters(self, spec: NystromRlsSpec) -> dict[str, Any]:
        made = self._parameters(spec, spec.learning, spec.basis)
        if spec.input.standardise:
            made["rehearsed"] += spec.input.warmup  # the rule learns no sample of the warmup
        return stages.parameters(spec, made["largest_value"]) | made


NYSTROM_MODELS: Family = NystromModels()
NYSTROM_LEARNERS: Family = NystromLearners()
