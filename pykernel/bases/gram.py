"""Gram matrices on the host, in float64: the kernels of ``pykernel.algorithms.kernel_choice``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from pykernel.algorithms.kernel_choice import KERNEL_RULES, KernelConfig, KernelFunction
from pykernel.dialect import FLOAT64, Kernel
from pykernel.errors import MissingExtra, UserError
from pykernel.spec.custom_kernel import custom_gram
from pykernel.spec.kernel_settings import FUNCTIONS, MATERN, UNIT

try:
    from scipy.spatial.distance import cdist  # type: ignore[import-untyped]
except ImportError as error:  # scikit-learn brings it
    raise MissingExtra("training, choosing a basis or importing on the host", "sklearn") from error

if TYPE_CHECKING:
    from pykernel.spec.model import Spec

KernelName = Literal["gaussian", "laplacian", "polynomial", "linear", "sigmoid", "matern12", "matern32", "matern52"]
KERNELS: tuple[str, ...] = get_args(KernelName)
"""Kernels that are completely given by their name, gamma, coef0 and degree."""
COMPUTED = (*KERNELS, "rational-quadratic", "fourier")
DEGREES = range(1, 10)
NORM_LEAST = 2.0**-500
"""A k(a, a) that is not larger than this counts as a norm of zero, as on the device in float64."""


def gram_matrix(
    function: str, a: Any, b: Any, *, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1, alpha: float = 1.0
) -> np.ndarray:
    """K with K_ij = k(a_i, b_j), (len(a), len(b)), in O(len(a) len(b) D); a: (rows, D), b: (rows, D).

    "gaussian" exp(-gamma |a - b|^2), "laplacian" exp(-gamma |a - b|_1), "polynomial" (gamma a'b + coef0)^degree,
    "linear" a'b, "sigmoid" tanh(gamma a'b + coef0), "matern12" e^-r, "matern32" (1 + r) e^-r and "matern52"
    (1 + r + r^2 / 3) e^-r with r = gamma |a - b|, "rational-quadratic" (1 + gamma |a - b|^2)^-alpha, "fourier"
    cos(2 pi a'b).  Parameters that the kernel does not have are ignored.  Distances are computed as sums over
    differences, not as differences of products: so K_ij is exactly 1 for equal rows, and rows that are close lose no
    digits.

    Raises UserError for an unknown kernel, wrong shapes, gamma that is not positive, a degree not from 1 to 9, numbers
    that are not finite, or values that overflow.
    """
    _check(function, gamma, coef0, degree, alpha)
    a, b = _rows(a, "a"), _rows(b, "b")
    if a.shape[1] != b.shape[1]:
        raise UserError(f"rows of a have {a.shape[1]} numbers and those of b {b.shape[1]}; they must have as many")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if function == "gaussian":
            # a distance that overflows is a value of zero
            return np.exp(-gamma * cdist(a, b, "sqeuclidean"))
        if function == "laplacian":
            return np.exp(-gamma * cdist(a, b, "cityblock"))
        if function == "rational-quadratic":
            return np.exp(-alpha * np.log1p(gamma * cdist(a, b, "sqeuclidean")))
        if function in MATERN:
            r = gamma * cdist(a, b, "euclidean")
            decay = np.exp(-r)
            if function == "matern12":
                return np.asarray(decay)
            r[decay == 0] = 0  # infinity times zero
            return np.asarray(decay * (1 + r if function == "matern32" else 1 + r * (1 + r / 3)))
        return _of_products(function, a @ b.T, gamma, coef0, degree)


def diagonal(
    function: str, a: Any, *, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1, alpha: float = 1.0
) -> np.ndarray:
    """k(a_i, a_i), (len(a),), in O(len(a) D); arguments and errors as of ``gram_matrix``."""
    _check(function, gamma, coef0, degree, alpha)
    a = _rows(a, "a")
    if function in UNIT:
        return np.ones(len(a))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return _of_products(function, np.einsum("ij,ij->i", a, a), gamma, coef0, degree)


def _of_products(function: str, values: np.ndarray, gamma: float, coef0: float, degree: int) -> np.ndarray:
    """Kernel values of inner products."""
    # check for overflow before tanh hides it: whether inf - inf is NaN or infinite depends on the order of operations
    finite = np.isfinite(values).all()
    if function == "polynomial":
        values = (gamma * values + coef0) ** int(degree)
    elif function == "sigmoid":
        values = np.tanh(gamma * values + coef0)
    elif function == "fourier":
        values = np.cos(2 * np.pi * values)
    if not finite or not np.isfinite(values).all():
        raise UserError(f"values of the {function} kernel overflow; inputs must be smaller: scale them")
    return values


def _check(function: str, gamma: float, coef0: float, degree: int, alpha: float = 1.0) -> None:
    if function not in COMPUTED:
        raise UserError(f"there is no kernel {function!r}; it must be one of {', '.join(COMPUTED)}")
    if function == "rational-quadratic" and not (np.isfinite(alpha) and alpha > 0):
        raise UserError(f"alpha is {alpha}; it must be a number above zero")
    if function not in ("linear", "fourier") and not (np.isfinite(gamma) and gamma > 0):
        raise UserError(f"gamma is {gamma}; it must be a number above zero")
    if function in ("polynomial", "sigmoid") and not np.isfinite(coef0):
        raise UserError(f"coef0 is {coef0}; it must be a number")
    if function == "polynomial" and (degree not in DEGREES or isinstance(degree, bool)):
        raise UserError(f"degree is {degree}; it must be a whole number from {DEGREES[0]} to {DEGREES[-1]}")


def _rows(rows: Any, name: str) -> np.ndarray:
    values = np.asarray(rows, np.float64)
    if values.ndim != 2:
        raise UserError(f"{name} has the shape {values.shape}; it must be (rows, inputs)")
    if not np.isfinite(values).all():
        raise UserError(f"{name} holds numbers that are not finite; leave those rows out")
    return values


# ------------------------------------------------------------------------------------------ a kernel as one object


@dataclass(frozen=True)
class MercerKernel:
    """A kernel on the host, in float64. It corresponds to ``[kernel]`` of a spec.

    function: a name of ``gram_matrix``, or "custom". custom: a dialect kernel with the parameters (q: KernelConfig,
    a: Real[DIM], b: Real[DIM]); it may use q.gamma, q.coef0 and q.degree. normalise: whether to use k(a, b) /
    sqrt(k(a, a) k(b, b)), or zero if k(a, a) or k(b, b) is zero; for polynomial, linear and custom. max_value: a
    bound of k(x, x), for custom; a larger value is an error here, and the device limits it. alpha: the exponent, for
    rational-quadratic.

    Raises UserError if these parameters do not fit together.
    """

    function: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1
    normalise: bool = False
    custom: Kernel | None = None
    max_value: float | None = None
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise UserError(f"there is no kernel {self.function!r}; it must be one of {', '.join(FUNCTIONS)}")
        if self.normalise and "normalise" not in KERNEL_RULES[self.function].keys:
            raise UserError(f"normalise does not go with a {self.function} kernel; leave it out")
        if (self.function == "custom") != (self.custom is not None):
            raise UserError(
                'custom, a dialect kernel, must go with function "custom", and function "custom" with custom'
            )
        if self.function == "custom":
            if self.max_value is None or not 0 < self.max_value < np.inf:
                raise UserError(f"max_value is {self.max_value}; it must be a bound of k(x, x) for a custom kernel")
            _check("polynomial", self.gamma, self.coef0, self.degree)
        else:
            _check(self.function, self.gamma, self.coef0, self.degree, self.alpha)

    @property
    def unit(self) -> bool:
        """Whether k(x, x) is 1 for every x."""
        return self.normalise or self.function in UNIT

    def gram(self, a: Any, b: Any) -> np.ndarray:
        """K with K_ij = k(a_i, b_j), (len(a), len(b)); arguments and errors as of ``gram_matrix``."""
        values = self._plain(a, b)
        if not self.normalise:
            return values
        first, second = self._plain_diagonal(a), self._plain_diagonal(b)
        # a norm of zero: divided by infinity
        roots = [np.where(d > NORM_LEAST, np.sqrt(np.maximum(d, 0)), np.inf) for d in (first, second)]
        return np.clip(values / roots[0][:, None] / roots[1], -1, 1)

    def diagonal(self, a: Any) -> np.ndarray:
        """k(a_i, a_i), (len(a),).  A normalised kernel gives 1, also for rows with a norm of zero."""
        return np.ones(len(_rows(a, "a"))) if self.normalise else self._plain_diagonal(a)

    @property
    def _numbers(self) -> dict[str, Any]:
        return {"gamma": self.gamma, "coef0": self.coef0, "degree": self.degree, "alpha": self.alpha}

    def _plain(self, a: Any, b: Any) -> np.ndarray:
        if self.custom is None:
            return gram_matrix(self.function, a, b, **self._numbers)
        a, b = np.ascontiguousarray(_rows(a, "a")), np.ascontiguousarray(_rows(b, "b"))
        if a.shape[1] != b.shape[1]:
            raise UserError(f"rows of a have {a.shape[1]} numbers and those of b {b.shape[1]}; they must have as many")
        return self._checked(custom_gram(self.custom, self._config(a.shape[1]), FLOAT64, a, b)[0])

    def _plain_diagonal(self, a: Any) -> np.ndarray:
        if self.custom is None:
            return diagonal(self.function, a, **self._numbers)
        a = np.ascontiguousarray(_rows(a, "a"))
        return self._checked(custom_gram(self.custom, self._config(a.shape[1]), FLOAT64, a, a[:0])[1][:, 0])

    def _checked(self, values: np.ndarray) -> np.ndarray:
        assert self.custom is not None and self.max_value is not None
        if np.isnan(values).any():
            raise UserError(
                f"the kernel {self.custom.name} is not a number for some of these inputs; it must be one for all"
            )
        largest = float(np.max(np.abs(values), initial=0.0))
        if largest > self.max_value * (1 + 1e-6):
            raise UserError(
                f"the kernel {self.custom.name} reaches {largest:g}, and max_value is {self.max_value:g}; max_value must be a bound of k(x, x)"
            )
        return values

    def _config(self, dim: int) -> Any:
        """What a dialect kernel of the user's takes as q."""
        none = dict.fromkeys(("normalises", "unit", "rescales", "rate", "exponent"), 0)
        values = none | {"function": KernelFunction.CUSTOM, "input_center": np.zeros(dim), "input_scale": np.ones(dim)}
        custom = {
            "gamma": self.gamma,
            "coef0": self.coef0,
            "degree": self.degree,
            "max_value": self.max_value,
            "input_max_abs": 1e300,
        }
        return KernelConfig.of(FLOAT64, values | custom)

    def section(self) -> dict[str, Any]:
        """``[kernel]`` of a spec; a custom kernel is named by its file, which must then lie beside the spec."""
        found: dict[str, Any] = {"function": self.function}
        for key in ("gamma", "alpha", "coef0", "degree"):
            if key in KERNEL_RULES[self.function].keys:
                found[key] = getattr(self, key)
        if self.normalise:
            found["normalise"] = True
        if self.custom is not None:
            found |= {"source": self.custom.file.name, "kernel": self.custom.name, "max_value": self.max_value}
        return found

    @classmethod
    def of(cls, spec: Spec) -> MercerKernel:
        """The kernel of a spec."""
        kernel = spec.kernel
        if kernel is None:
            raise UserError(f"{spec.name} has no [kernel]; {spec.learning.rule} is linear")
        gamma = 0.5 / kernel.sigma / kernel.sigma if kernel.sigma is not None else kernel.gamma
        kept: Mapping[str, Any] = {
            "gamma": 1.0 if gamma is None else gamma,
            "coef0": kernel.coef0,
            "degree": kernel.degree,
            "normalise": kernel.normalise,
            "max_value": kernel.max_value,
            "custom": getattr(spec, "custom", None),
            "alpha": kernel.alpha,
        }
        return cls(kernel.function, **kept)


SKEW = 1e-9
"""Largest difference between a Gram matrix and its transpose, as a fraction of its largest value.

Rounding causes less.
"""


@dataclass(frozen=True)
class PrecomputedKernel(MercerKernel):
    """A kernel that is known only for l samples, by their Gram matrix.  An input (1,) is the position of a sample.

    matrix: (l, l), K_ij = k(x_i, x_j), l at least 2.  ``positions`` has all samples.  In ``gram(a, b)``, b has
    positions (rows, 1).  a has positions as well; or, for samples that are not in the matrix, their kernel values with
    all l samples, (rows, l).  digest: the matrix's digest; it is computed.

    Raises UserError if the matrix is not square, symmetric and finite.
    """

    function: str = "precomputed"
    matrix: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), compare=False, repr=False)
    digest: str = ""

    def __post_init__(self) -> None:
        if self.digest:  # this is a copy: a digest exists only after the matrix was checked
            return
        matrix = _rows(self.matrix, "the Gram matrix")
        if matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
            raise UserError(
                f"the Gram matrix has the shape {matrix.shape}; it must be (samples, samples), of two samples or more"
            )
        skew = float(np.abs(matrix - matrix.T).max())
        if skew > SKEW * float(np.abs(matrix).max()):
            raise UserError(
                f"the Gram matrix is not symmetric: values differ by {skew:.3g} from those across the diagonal"
            )
        found = hashlib.blake2b(np.ascontiguousarray(matrix).tobytes(), digest_size=16).hexdigest()
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "digest", found)

    @property
    def positions(self) -> np.ndarray:
        """All samples, (l, 1)."""
        return np.arange(len(self.matrix), dtype=np.float64)[:, None]

    def section(self) -> dict[str, Any]:
        raise UserError(
            "the kernel is precomputed, and a device would have to compute its values: take a kernel that has a name, such "
            'as "gaussian"'
        )

    def _plain(self, a: Any, b: Any) -> np.ndarray:
        a, b = _rows(a, "a"), self._places(b)
        if a.shape[1] == len(self.matrix):
            return a[:, b]
        return self.matrix[np.ix_(self._places(a), b)]

    def _plain_diagonal(self, a: Any) -> np.ndarray:
        places = self._places(a)
        return self.matrix[places, places]

    def _places(self, rows: Any) -> np.ndarray:
        rows = _rows(rows, "rows")
        if rows.shape[1] == len(self.matrix):
            raise UserError("k(x, x) of samples that are not in the Gram matrix is not known")
        places = rows[:, 0].astype(np.int64) if rows.shape[1] == 1 else np.full(len(rows), -1)
        if rows.shape[1] != 1 or (places != rows[:, 0]).any() or ((places < 0) | (places >= len(self.matrix))).any():
            raise UserError(
                f"inputs of a precomputed kernel must be positions from 0 to {len(self.matrix) - 1:,}, (rows, 1), or kernel "
                f"values with all {len(self.matrix):,} samples, (rows, {len(self.matrix)})"
            )
        return places
