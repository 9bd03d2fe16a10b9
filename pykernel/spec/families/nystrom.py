"""Models on a basis of feature vectors, in a spec: which keys fit together, and the parameters of ``nystrom`` and
``nystrom_rls``.
"""

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
from pykernel.dialect import FLOAT64, Kernel, Memory, substitute
from pykernel.dialect.program import LabelKind, Program, Settings
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError
from pykernel.spec import kernel_settings, stages
from pykernel.spec.base import Spec
from pykernel.spec.family import Family, Refuse, affordable
from pykernel.spec.sections import (
    TRIED_FORGETTING,
    TRIED_RIDGE,
    AnyInput,
    KernelSection,
    Learning,
    Numbers,
    Rows,
    ScaledInput,
    Section,
    VectorsSection,
)

BASIS_LIMIT = 1024
METHODS = {"given": Method.GIVEN, "stream": Method.STREAM, "efvs": Method.EFVS, "sgma": Method.SGMA}
LEAST_ALD_THRESHOLD = {"float32": 1e-3, "float64": 1e-9}
"""Smallest residual of a basis vector against the vectors before it, as a fraction of k(x, x).  A smaller residual
would be lost in the rounding errors of L (docs/bases-on-device.md)."""
LEAST_RIDGE = {"float32": 1e-6, "float64": 1e-14}
"""Smallest ridge, as a fraction of the largest k(x, x)."""
LEAST_FACTOR = {"float32": 1e-6, "float64": 1e-14}
"""For a given factor: the smallest fraction of a row's sum of squares that the row's last number must have.  Variances
then keep about four digits."""
FACTOR_LIMIT = 1e9
"""Largest number on the diagonal of a given factor, and largest reciprocal of such a number: float32 holds them."""
BASIS_KEYS = {
    "candidates": ("efvs", "sgma"),
    "points": ("efvs",),
    "tau": ("efvs", "sgma"),
    "horizon": ("stream", "efvs", "sgma"),
    "cache": ("stream",),
}
"""Key of [basis] -> the methods for which it has an effect."""


class NystromLearning(Learning):
    """How a sample changes the model."""

    ridge: Annotated[float, TRIED_RIDGE] = Field(
        0.1,
        gt=0,
        description="weight of the squared coefficients; from 1e-6 (float64: 1e-14) of the largest k(x, x)",
    )
    forgetting: Annotated[float, TRIED_FORGETTING] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="each later sample multiplies a sample's weight by this: about the last 1 / (1 - forgetting) samples count, with 0.99 the last 100; in float32 1 or at most 0.99999",
    )
    samples: int | None = Field(
        None,
        ge=2,
        le=4096,
        description="rows of the reservoir: at least `n_max`; with `stream` at least 2 `n_max`, better 3 `n_max`; if not given, 64, and 3 `n_max` where `n_max` is above 32",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="the random numbers' seed")


class NystromReduction(Section):
    """How large the basis may be."""

    n_max: int = Field(32, ge=1, le=4096, description="the budget: largest number of basis vectors, at most 1024")
    ald_threshold: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="a sample does not become a basis vector if at most this part of it is new; at least 1e-3 (float64: 1e-9), which is the default",
    )


class BasisSection(Section):
    """Where the feature vectors come from whose span a model works in: nystrom-rls."""

    method: Literal["given", "stream", "efvs", "sgma"] = Field(
        "stream",
        description='where the basis vectors come from. `"given"`: `[expansion] vectors`. `"stream"`: a sample becomes a basis vector with a probability equal to the part of it that the basis does not express; in a full basis it replaces the vector whose loss harms a reservoir of the stream least. `"efvs"`, `"sgma"`: `NAME_select()` chooses them from the reservoir, by the largest gain in relative residual (`efvs`) or in the trace of the residual (`sgma`)',
    )
    candidates: int = Field(59, ge=1, le=4096, description="`efvs`, `sgma`: rows that are compared in each step")
    points: int = Field(59, ge=1, le=4096, description="`efvs`: rows at which the candidates are compared")
    tau: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="`efvs`, `sgma`: choosing ends when the basis leaves this part of the reservoir unexpressed, on average",
    )
    horizon: int = Field(
        0,
        ge=0,
        le=2**22,
        description="how many samples the reservoir reaches back, `samples` or more; 0: it holds each of the last 4,194,304 samples with the same probability",
    )
    cache: bool = Field(
        True,
        description="`stream`: whether the reservoir keeps its rows' coordinates, `samples` · `n_max` numbers; without them replacing a vector takes more time",
    )


class Tables(VectorsSection):
    """A basis, and functions on its coordinates, in flash."""

    weights: Rows | None = Field(
        None,
        strict=False,
        description="a row for each coordinate, with a number for each function; if not given, `NAME_predict` writes the coordinates",
    )
    bias: Numbers | None = Field(None, strict=False, description="the constant that is added to each function")
    noise: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="added to the diagonal of the vectors' kernel matrix; of a Gaussian process: the noise's variance over the function's",
    )
    factor: Rows | None = Field(
        None,
        strict=False,
        description="L, a row for each vector that ends at the diagonal: coordinates are L⁻¹ k(x). If not given, L L' is the vectors' kernel matrix plus `noise` on its diagonal; of a sparse Gaussian process it is another matrix",
    )
    prior_variance: float | None = Field(
        None,
        gt=0,
        description="variance of the function's value where k(x, x) = 1, before anything is known: of a Gaussian process. If given, `NAME_variance` writes the variance of a label",
    )
    label_variance: float = Field(
        0.0, ge=0, description="what `NAME_variance` adds: the variance of labels around the function"
    )


class NystromSpec(Spec):
    input: ScaledInput
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    expansion: Tables | None = None

    @property
    def family(self) -> Family:
        return NYSTROM_MODELS


class NystromRlsSpec(Spec):
    input: AnyInput
    label: stages.StagedLabel = stages.StagedLabel()
    kernel: KernelSection | None = None
    linear: stages.LinearPart | None = None
    learning: NystromLearning = NystromLearning()
    reduction: NystromReduction = NystromReduction()
    basis: BasisSection = BasisSection()
    expansion: VectorsSection | None = None

    @property
    def family(self) -> Family:
        return NYSTROM_LEARNERS

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        return super().derived | {"reduction": {"ald_threshold": ald_threshold_of(self)}}


class _NystromModels:
    """What both families share."""

    def _complain_of_kernel(self, spec: Spec, refuse: Refuse) -> float:
        """The largest k(x, x)."""
        kernel_settings.validate(spec, refuse)
        if spec.kernel is not None and spec.kernel.function == "sigmoid":
            refuse(
                "[kernel] function",
                f'is "sigmoid", which is not positive definite; {spec.learning.rule} must have a kernel that is',
            )
        return kernel_settings.bound(spec, refuse, kernel_settings.reach(spec))

    def _complain_of_vectors(self, spec: Spec, refuse: Refuse) -> None:
        assert spec.expansion is not None
        vectors, reach = spec.expansion.vectors, kernel_settings.reach(spec)
        if len(vectors) > BASIS_LIMIT:
            refuse("[expansion] vectors", f"has {len(vectors)} rows; it must have at most {BASIS_LIMIT}")
        for i, vector in enumerate(vectors):
            if len(vector) != spec.dim:
                refuse(
                    "[expansion] vectors", f"has {len(vector)} numbers in row {i}; it must be {spec.dim}, the inputs"
                )
            if np.any(np.abs(vector) > reach):
                refuse(
                    "[expansion] vectors",
                    f"has an input beyond the limit in row {i}; vectors must be what samples can be, scaled as they are",
                )
        if isinstance(spec.expansion, Tables) and spec.expansion.factor is not None:
            self._complain_of_factor(spec, spec.expansion, spec.expansion.factor, refuse)
            return
        _, dependent = factor_of(spec)
        if dependent >= 0:
            refuse("[expansion] vectors", _dependence(spec, dependent))

    def _complain_of_factor(
        self, spec: Spec, tables: Tables, factor: tuple[tuple[float, ...], ...], refuse: Refuse
    ) -> None:
        size, least = len(tables.vectors), LEAST_FACTOR[spec.precision]
        if tables.noise:
            refuse("[expansion] noise", "is given with factor, which holds it: leave noise out")
        if len(factor) != size:
            refuse("[expansion] factor", f"has {len(factor)} rows; it must have {size}, one for each vector")
        for i, row in enumerate(factor):
            if len(row) != i + 1:
                refuse(
                    "[expansion] factor", f"has {len(row)} numbers in row {i}; it must have {i + 1}, to the diagonal"
                )
            largest = max(map(abs, row))
            if not (largest <= FACTOR_LIMIT and row[i] >= 1 / FACTOR_LIMIT):
                refuse(
                    "[expansion] factor",
                    f"has numbers in row {i} that are too large, or a last one that is not above 0; they must be from "
                    f"{-FACTOR_LIMIT:g} to {FACTOR_LIMIT:g}, and the last from {1 / FACTOR_LIMIT:g}",
                )
            if not row[i] ** 2 > least * math.fsum(value * value for value in row):
                refuse(
                    "[expansion] factor",
                    f"has in row {i} a last number whose square is at most {least:g} of the row's, too little for "
                    f"{spec.precision}: leave that vector out, or take float64",
                )

    def _parameters(self, spec: Spec) -> dict[str, Any]:
        capacities, narrow = spec.capacities, spec.precision == "float32"
        learning, basis = NystromLearning(), BasisSection()
        if learns := isinstance(spec, NystromRlsSpec):
            learning, basis = spec.learning, spec.basis
        tables = spec.expansion if isinstance(spec, NystromSpec) else None

        def never(where: str, message: str) -> Any:
            raise AssertionError(f"{where} {message}")

        method = METHODS[basis.method] if learns else Method.GIVEN
        size, samples, outputs = capacities["N_MAX"], capacities["M_MAX"], capacities["OUTPUTS"]
        value = math.sqrt(kernel_settings.bound(spec, never, kernel_settings.reach(spec)))
        given = method is Method.GIVEN
        factor_rows, dependent = factor_of(spec) if given else (np.zeros(size * (size + 1) // 2), -1)
        if dependent >= 0:  # possible with a custom kernel: it was not known when the tables were checked
            raise UserError(f"[expansion] vectors {_dependence(spec, dependent)}")
        weights = tables.weights if tables is not None else None
        bias = tables.bias if tables is not None else None
        most = 1e37 if narrow else 1e305
        faded = learning.forgetting**size
        root_ridge = math.sqrt(learning.ridge)
        first = learning.seed
        horizon = basis.horizon or 2**22
        return kernel_settings.parameters(spec) | {
            "method": method,
            "single": spec.outputs == 1,
            "separates": False,  # functions learn 1 and -1
            "scales": True,  # it works on a copy of the input
            "bounded": spec.label.low is not None or spec.label.high is not None,
            "varies": tables is not None and tables.prior_variance is not None,
            "weighs": weights is not None,
            "forgets": learning.forgetting < 1,
            "caches": method in (Method.EFVS, Method.SGMA) or (method is Method.STREAM and basis.cache),
            "vectors": np.array(spec.expansion.vectors, float) if spec.expansion else np.zeros((size, spec.dim)),
            "factor_rows": factor_rows,
            "weights": np.zeros((size, outputs)) if weights is None else np.array(weights, float),
            "bias": np.zeros(outputs) if bias is None else np.array(bias, float),
            "prior_variance": (tables.prior_variance or 0.0) if tables is not None else 0.0,
            "label_variance": tables.label_variance if tables is not None else 0.0,
            "ald_threshold": ald_threshold_of(spec),
            "tau": basis.tau,
            "candidates": basis.candidates,
            "sampled": basis.points,
            "horizon": horizon,
            "seed_1": 1 + first % 30268,
            "seed_2": 1 + (first // 30268 + 12345) % 30306,
            "seed_3": 1 + (first * 7 + 6789) % 30322,
            "root_ridge": root_ridge,
            "least": 0.25 * root_ridge * math.sqrt(faded),
            "root_forgetting": math.sqrt(learning.forgetting),
            "refill": root_ridge * math.sqrt(1 - faded),
            "coefficient_limit": self._coefficient_limit(spec, learning.ridge, value),
            "sum_limit": (2.0**14 if narrow else 2.0**28) * (value * math.sqrt(size) + root_ridge),
            "scaled_limit": 1.01 * float(kernel_settings.reach(spec).max()),
            "coordinate_limit": 1.01 * value,
            "turned_limit": 2.02 * value * math.sqrt(size),
            "reciprocal_limit": 1.01 * 2.0 ** (45 if narrow else 450),
            "solved_limit": 1e18 if narrow else 1e150,
            "label_max_abs": stages.label_unit(spec),
            "least_value": spec.label.low if spec.label.low is not None else -most,
            "largest_value": spec.label.high if spec.label.high is not None else most,
            "classes": len(spec.label.classes or ()),
            "rehearsed": self._rehearsed(spec, method, samples),
        }

    def _rehearsed(self, spec: Spec, method: Method, samples: int) -> int:
        """Number of the self-test's samples: enough to fill the reservoir, from which the basis is chosen."""
        if method is Method.GIVEN:
            return 16
        if method is Method.STREAM:
            return affordable(samples + 4, lambda m: m * spec.family.size_bound(spec))
        size, basis = spec.capacities["N_MAX"], spec.basis

        def touched(m: int) -> float:
            """Numbers touched by the choice of the basis, and by learning the rows before and after it."""
            vectors, compared = min(size, m), min(basis.candidates, m)
            points = m if method is Method.SGMA else min(basis.points, m)
            return vectors * compared * points * (vectors / 2 + spec.dim) + 2 * m * vectors**2

        return affordable(samples, touched)

    def _coefficient_limit(self, spec: Spec, ridge: float, value: float) -> float:
        """A bound of the coefficients: |c| <= |y| |z| / ridge for a least-squares solution, and a margin for the
        reservoir.
        """
        return 2.0**10 * stages.label_unit(spec) * max(1.0, value / ridge, 1 / math.sqrt(ridge))


def _dependence(spec: Spec, row: int) -> str:
    return (
        f"has row {row}, of which those before it leave over less than {LEAST_ALD_THRESHOLD[spec.precision]:g} of its squared length "
        f"in feature space, too little for {spec.precision}: leave it out"
    )


def samples_of(spec: Any) -> int:
    """Rows of the reservoir."""
    n_max = spec.reduction.n_max
    return int(spec.learning.samples or (64 if n_max <= 32 else min(4096, 3 * n_max)))


def ald_threshold_of(spec: Spec) -> float:
    """A sample is a candidate for the basis only if its residual, as a fraction of k(x, x), is above this threshold."""
    given = spec.reduction.ald_threshold if isinstance(spec, NystromRlsSpec) else None
    return given if given is not None else LEAST_ALD_THRESHOLD[spec.precision]


def factor_of(spec: Spec) -> tuple[np.ndarray, int]:
    """(L, dependent): the Cholesky factor L of the expansion vectors, as the device has them, in float64.

    L is packed by rows; the reciprocals of its diagonal take the diagonal's places.  dependent: the first vector that
    depends linearly on the vectors before it; -1 if there is none.
    """
    assert spec.expansion is not None and spec.kernel is not None
    if isinstance(spec.expansion, Tables) and spec.expansion.factor is not None:
        # rows end with the diagonal's reciprocal
        return np.array([v for row in spec.expansion.factor for v in (*row[:-1], 1 / row[-1])]), -1
    vectors = np.array(spec.expansion.vectors, float).astype(spec.real.dtype).astype(float)
    size = len(vectors)
    noise = spec.expansion.noise if isinstance(spec.expansion, Tables) else 0.0
    if spec.kernel.function == "custom" and spec.custom is None:
        # the kernel is checked only after all values of the spec are valid
        return np.zeros(size * (size + 1) // 2), -1
    return _factor(
        vectors.tobytes(), vectors.shape, spec.kernel.model_dump_json(), spec.precision, spec.custom, noise, _View(spec)
    )


class _View:
    """A kernel's parameters in float64, wrapped so that a cache does not compare them."""

    def __init__(self, spec: Spec) -> None:
        self.q = KernelConfig.of(FLOAT64, kernel_settings.parameters(spec), {"DIM": spec.dim})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _View)

    def __hash__(self) -> int:
        return 0


@functools.lru_cache(64)
def _factor(
    vectors: bytes,
    shape: tuple[int, int],
    kernel: str,
    precision: str,
    custom: Kernel | None,
    noise: float,
    view: _View,
) -> tuple[np.ndarray, int]:
    # the other arguments determine the content of the view, so the cache need not compare it
    compute = factorise_vectors if custom is None else substitute(factorise_vectors, {custom_kernel: custom})
    sizes = {"N_MAX": shape[0], "DIM": shape[1], "PACKED": shape[0] * (shape[0] + 1) // 2}
    memory = Memory((Vectors, Factor), FLOAT64, sizes)
    memory.field("vectors")[...] = np.frombuffer(vectors).reshape(shape)
    dependent = make_executor([compute], memory, Settings({KernelConfig: view.q})).call(
        compute, LEAST_ALD_THRESHOLD[precision], noise
    )
    packed = memory.field("packed").copy()
    packed.flags.writeable = False
    return packed, int(dependent)


class NystromModels(_NystromModels):
    """A basis, and functions on its coordinates, that were made elsewhere."""

    rules: tuple[str, ...] = ("nystrom",)
    programs: Mapping[LabelKind, Program] = NYSTROM
    online = False
    spec = NystromSpec

    def why_ignored(self, spec: NystromSpec, section: str, key: str) -> str | None:
        return kernel_settings.why_ignored(spec, key) if section == "kernel" else None

    def validate(self, spec: NystromSpec, refuse: Refuse) -> None:
        if spec.expansion is None:
            refuse("[expansion] vectors", "is missing; a frozen basis must have it")
        value = math.sqrt(self._complain_of_kernel(spec, refuse))
        self._complain_of_vectors(spec, refuse)
        expansion, size = spec.expansion, len(spec.expansion.vectors)
        self._complain_of_variance(spec, value * value, refuse)
        if expansion.weights is None:
            if expansion.bias is not None:
                refuse("[expansion] bias", "is given without weights, which it must go with: leave it out")
            if spec.label.classes is not None or spec.outputs != size:
                refuse(
                    "[expansion] weights",
                    f"is missing; without weights coordinates are predicted, and [label] outputs must be {size}",
                )
            return
        if len(expansion.weights) != size:
            refuse(
                "[expansion] weights", f"has {len(expansion.weights)} rows; it must have {size}, one for each vector"
            )
        for i, row in enumerate(expansion.weights):
            if len(row) != spec.outputs:
                refuse("[expansion] weights", f"has {len(row)} numbers in row {i}; it must be {spec.outputs}")
        bias = expansion.bias or (0.0,) * spec.outputs
        if len(bias) != spec.outputs:
            refuse("[expansion] bias", f"holds {len(bias)} numbers; it must hold {spec.outputs}")
        most = kernel_settings.largest(spec.precision)
        with np.errstate(over="ignore"):
            sums = np.abs(np.array(expansion.weights, float)).sum(0).max() * value + np.abs(bias).max()
        if not sums <= most:
            refuse(
                "[expansion] weights", f"add up to {sums:g}; predictions must stay below {most:g} in {spec.precision}"
            )

    def _complain_of_variance(self, spec: NystromSpec, value: float, refuse: Refuse) -> None:
        """value: the largest k(x, x)."""
        assert spec.expansion is not None
        prior, label = spec.expansion.prior_variance, spec.expansion.label_variance
        if prior is None:
            if label:
                refuse("[expansion] label_variance", "is given without prior_variance, which it must go with")
            return
        if spec.expansion.weights is None or spec.label.classes is not None or spec.outputs != 1:
            refuse("[expansion] prior_variance", "is for a model of one number, with weights; leave it out")
        most = kernel_settings.largest(spec.precision)
        if not prior * value + label <= most:
            refuse(
                "[expansion] prior_variance",
                f"is {prior:g}, with which variances reach {prior * value + label:g}; they must stay below {most:g} in "
                f"{spec.precision}",
            )

    def capacities(self, spec: NystromSpec) -> dict[str, int]:
        assert spec.expansion is not None
        size = len(spec.expansion.vectors)
        return {"DIM": spec.dim, "N_MAX": size, "PACKED": size * (size + 1) // 2, "OUTPUTS": spec.outputs, "M_MAX": 1}

    def size_bound(self, spec: NystromSpec) -> int:
        size = len(spec.expansion.vectors) if spec.expansion is not None else 1
        return size * (size + 1) // 2 + size * (spec.dim + spec.outputs + 8) + 2 * spec.dim + 64

    def parameters(self, spec: NystromSpec) -> dict[str, Any]:
        return self._parameters(spec)


class NystromLearners(_NystromModels):
    """Recursive least squares on the coordinates of a basis that is given, or chosen where it is used."""

    rules: tuple[str, ...] = ("nystrom-rls",)
    programs: Mapping[LabelKind, Program] = NYSTROM_RLS
    online = False
    spec = NystromRlsSpec

    def why_ignored(self, spec: NystromRlsSpec, section: str, key: str) -> str | None:
        method = spec.basis.method
        if section == "learning" and key in ("samples", "seed") and method == "given":
            return f'does not go with [basis] method = "given", which has no reservoir: leave {key} out'
        if section == "reduction" and method == "given":
            return 'does not go with [basis] method = "given", whose vectors are the budget: leave it out'
        if section == "basis" and method not in BASIS_KEYS.get(key, (method,)):
            return f"is of {' and '.join(BASIS_KEYS[key])}; {method} does not have it: leave it out"
        if section == "expansion" and method != "given":
            return 'is of [basis] method = "given"; leave it out'
        return kernel_settings.why_ignored(spec, key) if section == "kernel" else None

    def validate(self, spec: NystromRlsSpec, refuse: Refuse) -> None:
        method, learning, n_max = spec.basis.method, spec.learning, spec.reduction.n_max
        stages.validate(spec, refuse)
        if method in ("efvs", "sgma"):
            stages.refuse_moving(spec, refuse, f'[basis] method = "{method}"')
        value = self._complain_of_kernel(spec, refuse)
        if method == "given":
            if spec.expansion is None:
                refuse("[expansion] vectors", 'is missing; [basis] method = "given" must have it')
            self._complain_of_vectors(spec, refuse)
        else:
            if spec.expansion is not None:
                refuse("[expansion]", 'is of [basis] method = "given"; leave it out')
            if n_max > BASIS_LIMIT:
                refuse("[reduction] n_max", f"is {n_max}; it must be at most {BASIS_LIMIT}")
            least = n_max if method != "stream" else 2 * n_max
            if samples_of(spec) < least:
                refuse(
                    "[learning] samples",
                    f"is {samples_of(spec)}; the reservoir must hold {least} rows or more for {n_max} basis vectors, better "
                    f"{3 * n_max}, or it is the basis that fits the reservoir",
                )
            if 0 < spec.basis.horizon < samples_of(spec):
                refuse(
                    "[basis] horizon",
                    f"is {spec.basis.horizon}; it must be 0, or {samples_of(spec)} or more, the rows of the reservoir",
                )
        if ald_threshold_of(spec) < LEAST_ALD_THRESHOLD[spec.precision]:
            refuse(
                "[reduction] ald_threshold",
                f"is {ald_threshold_of(spec):g}; it must be {LEAST_ALD_THRESHOLD[spec.precision]:g} or more for {spec.precision}",
            )
        narrow = spec.precision == "float32"
        near = 0.99999 if narrow else 1 - 1e-12
        if near < learning.forgetting < 1:
            refuse(
                "[learning] forgetting",
                f"is {learning.forgetting}; it must be 1 or at most {near} for {spec.precision}",
            )
        least_ridge = LEAST_RIDGE[spec.precision] * value
        if not least_ridge <= learning.ridge <= 1e12:
            refuse(
                "[learning] ridge",
                f"is {learning.ridge:g}; it must be from {least_ridge:.3g}, {LEAST_RIDGE[spec.precision]:g} of the largest "
                f"k(x, x), to 1e12 for {spec.precision}",
            )
        size = self._size(spec)
        most = kernel_settings.largest(spec.precision)
        sums = (2.0**14 if narrow else 2.0**28) * (math.sqrt(value * size) + math.sqrt(learning.ridge))
        if not (sums**2 <= most and value * size * sums <= most):
            refuse(
                "[input] max_abs",
                f"is {spec.input.max_abs:g}, with which k(x, x) can reach {value:.3g} and sums over samples overflow; it must "
                "be lower",
            )
        limit = self._coefficient_limit(spec, learning.ridge, math.sqrt(value))
        if not limit * max(1.0, sums) * size <= most:
            refuse(
                "[label] max_abs",
                f"is {spec.label_max_abs:g}, for which coefficients can reach {limit:.3g} with ridge {learning.ridge:g}, and "
                "overflow; it must be lower",
            )

    def _size(self, spec: NystromRlsSpec) -> int:
        if spec.basis.method == "given" and spec.expansion is not None:
            return len(spec.expansion.vectors)
        return spec.reduction.n_max

    def capacities(self, spec: NystromRlsSpec) -> dict[str, int]:
        size = self._size(spec)
        return {
            "DIM": spec.dim,
            "N_MAX": size,
            "PACKED": size * (size + 1) // 2,
            "OUTPUTS": spec.outputs,
            "M_MAX": 1 if spec.basis.method == "given" else samples_of(spec),
        }

    def size_bound(self, spec: NystromRlsSpec) -> int:
        capacities = self.capacities(spec)
        size, samples, outputs = capacities["N_MAX"], capacities["M_MAX"], spec.outputs
        return (
            size * (size + 1)
            + size * (spec.dim + outputs + 9)
            + samples * (spec.dim + outputs + size + 5)
            + 64
            + spec.dim
        )

    def parameters(self, spec: NystromRlsSpec) -> dict[str, Any]:
        made = self._parameters(spec)
        if spec.input.standardise:
            made["rehearsed"] += spec.input.warmup  # during the warmup, the basis does not learn
        return stages.parameters(spec, made["largest_value"]) | made


NYSTROM_MODELS: Family = NystromModels()
NYSTROM_LEARNERS: Family = NystromLearners()
