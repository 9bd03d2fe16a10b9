"""Gram matrices on the host, in float64, for the kernels of ``pykernel.algorithms.kernel_choice``."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.spatial.distance import cdist  # type: ignore[import-untyped]

from pykernel.algorithms.kernel_choice import KERNEL_RULES, KernelConfig, KernelFunction
from pykernel.bases.arguments import checked_positive, checked_table
from pykernel.dialect import FLOAT64, Kernel
from pykernel.errors import UserError
from pykernel.spec.custom_kernel import custom_gram
from pykernel.spec.kernel_settings import ACTIVATIONS, FUNCTIONS, MATERN, UNIT

if TYPE_CHECKING:
    from pykernel.spec.model import Spec

KERNELS = ("gaussian", "laplacian", "polynomial", "linear", "sigmoid", *MATERN)
"""Kernels that are determined by their name, gamma, coef0 and degree."""
METRICS = dict.fromkeys(MATERN, "euclidean") | {
    "gaussian": "sqeuclidean",
    "rational-quadratic": "sqeuclidean",
    "laplacian": "cityblock",
}
"""Kernel that is a function of a distance -> SciPy's name for this distance."""
DEGREES = range(1, 10)
NORM_LEAST = 2.0**-500
"""If k(a, a) is at most this number, the norm of a is treated as zero, as on the device in float64."""


@dataclass(frozen=True)
class MercerKernel:
    """A kernel on the host, in float64, with the parameters of ``[kernel]`` in a spec.

    function: "gaussian" exp(-gamma |a - b|^2), "laplacian" exp(-gamma |a - b|_1), "polynomial" (gamma a'b +
    coef0)^degree, "linear" a'b, "sigmoid" tanh(gamma a'b + coef0), "matern12" e^-r, "matern32" (1 + r) e^-r and
    "matern52" (1 + r + r^2 / 3) e^-r with r = gamma |a - b|, "rational-quadratic" (1 + gamma |a - b|^2)^-alpha,
    "fourier" cos(2 pi a'b), an activation of a'b ("relu", "tanh", "logistic", "identity"), or "custom".  Parameters
    that the kernel does not have are ignored.  Distances are computed as sums over differences, not as differences of
    products, so that K_ij is exactly 1 for equal rows, and no digits are lost for close rows.

    custom: a dialect kernel with the parameters (q: KernelConfig, a: Real[DIM], b: Real[DIM]), which may use q.gamma,
    q.coef0 and q.degree.
    normalise: whether k(a, b) is divided by sqrt(k(a, a) k(b, b)); the result is zero if k(a, a) or k(b, b) is zero.
    Only for polynomial, linear and custom kernels.
    max_value: an upper bound on k(x, x) for a custom kernel.  Larger values raise UserError on the host, and are
    clipped on the device.

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
        function = self.function
        if function not in FUNCTIONS:
            raise UserError(f"there is no kernel {function!r}; it must be one of {', '.join(FUNCTIONS)}")
        keys = KERNEL_RULES[function].keys
        if self.normalise and "normalise" not in keys:
            raise UserError(f"normalise does not go with a {function} kernel; leave normalise out")
        if (function == "custom") != (self.custom is not None):
            raise UserError('custom must be a dialect kernel if function is "custom", and None for any other function')
        if function == "custom" and (self.max_value is None or not 0 < self.max_value < np.inf):
            raise UserError(f"max_value is {self.max_value}; it must be a bound of k(x, x) for a custom kernel")
        for name in ("gamma", "alpha"):
            if name in keys:
                checked_positive(getattr(self, name), name)
        if "coef0" in keys and not np.isfinite(self.coef0):
            raise UserError(f"coef0 is {self.coef0}; it must be a number")
        if "degree" in keys and (self.degree not in DEGREES or isinstance(self.degree, bool)):
            raise UserError(f"degree is {self.degree}; it must be a whole number from {DEGREES[0]} to {DEGREES[-1]}")

    @property
    def unit(self) -> bool:
        """Whether k(x, x) is 1 for every x, including rows of zeros."""
        return self.function in UNIT

    @property
    def width(self) -> float:
        """The kernel's sigma (gaussian) or gamma (other kernels)."""
        return math.sqrt(0.5 / self.gamma) if self.function == "gaussian" else self.gamma

    def with_width(self, width: float) -> Self:
        """Return the kernel with this sigma (gaussian) or gamma (other kernels)."""
        if width == self.width:  # the conversion to sigma and back would round
            return self
        return replace(self, gamma=0.5 / width / width if self.function == "gaussian" else width)

    def gram(self, a: Any, b: Any) -> np.ndarray:
        """Return K with K_ij = k(a_i, b_j), (len(a), len(b)), in O(len(a) len(b) D).  a: (rows, D), b: (rows, D).

        Raises UserError for wrong shapes, numbers that are not finite, or values that overflow.
        """
        values = self._plain(a, b)
        if not self.normalise:
            return values
        first, second = self._plain_diagonal(a), self._plain_diagonal(b)
        # where a norm is zero, divide by infinity, so that the result is zero
        roots = [np.where(d > NORM_LEAST, np.sqrt(np.maximum(d, 0)), np.inf) for d in (first, second)]
        return np.clip(values / roots[0][:, None] / roots[1], -1, 1)

    def diagonal(self, a: Any) -> np.ndarray:
        """Return k(a_i, a_i), (len(a),).  A normalised kernel gives 1, even for rows with a norm of zero."""
        return np.ones(len(checked_table(a, "a"))) if self.normalise else self._plain_diagonal(a)

    def self_values(self, a: Any) -> np.ndarray:
        """Return the diagonal of ``gram(a, a)``, (len(a),).  For rows with a norm of zero, a normalised kernel gives 0,
        not 1.
        """
        values = self._plain_diagonal(a)
        return (values > NORM_LEAST).astype(np.float64) if self.normalise else values

    def _plain(self, a: Any, b: Any) -> np.ndarray:
        a, b = checked_table(a, "a"), checked_table(b, "b")
        if a.shape[1] != b.shape[1]:
            raise UserError(
                f"rows of a have {a.shape[1]} numbers, and rows of b have {b.shape[1]}; the two numbers must be equal"
            )
        if self.custom is not None:
            return self._bounded(self._of_custom(a, b)[0])
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if self.function not in METRICS:
                return self._of_products(a @ b.T)
            # if a distance overflows, the kernel value is zero
            far = self.gamma * cdist(a, b, METRICS[self.function])
            if self.function == "rational-quadratic":
                return np.exp(-self.alpha * np.log1p(far))
            decay = np.exp(-far)
            if self.function in ("matern32", "matern52"):
                far[decay == 0] = 0  # avoid infinity times zero
                decay *= 1 + far if self.function == "matern32" else 1 + far * (1 + far / 3)
            return np.asarray(decay)

    def _plain_diagonal(self, a: Any) -> np.ndarray:
        a = checked_table(a, "a")
        if self.function in UNIT:
            return np.ones(len(a))
        if self.custom is not None:
            return self._bounded(self._of_custom(a, a[:0])[1][:, 0])
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self._of_products(np.einsum("ij,ij->i", a, a))

    def _of_products(self, values: np.ndarray) -> np.ndarray:
        """Return the kernel values for these inner products."""
        # check for overflow before tanh hides it; whether an overflowing sum is NaN or infinite depends on the order of
        # its terms
        finite = np.isfinite(values).all()
        if self.function == "polynomial":
            values = (self.gamma * values + self.coef0) ** int(self.degree)
        elif self.function == "sigmoid":
            values = np.tanh(self.gamma * values + self.coef0)
        elif self.function in ACTIVATIONS:
            values = ACTIVATIONS[self.function](values)
        else:
            assert self.function == "linear", f"{self.function} has no formula here"
        if not finite or not np.isfinite(values).all():
            raise UserError(f"values of the {self.function} kernel overflow; scale the inputs to smaller values")
        return values

    def _of_custom(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a custom kernel's k(a_i, b_j), (len(a), len(b)), and k(a_i, a_i), (len(a), 1)."""
        assert self.custom is not None
        config = self._config(a.shape[1])
        return custom_gram(self.custom, config, FLOAT64, np.ascontiguousarray(a), np.ascontiguousarray(b))

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        assert self.custom is not None and self.max_value is not None
        if np.isnan(values).any():
            raise UserError(
                f"the kernel {self.custom.name} is NaN for some of these inputs; a custom kernel must give a number for every input"
            )
        largest = float(np.max(np.abs(values), initial=0.0))
        if largest > self.max_value * (1 + 1e-6):
            raise UserError(
                f"the kernel {self.custom.name} reaches {largest:g}, and max_value is {self.max_value:g}; max_value must be a bound of k(x, x)"
            )
        return values

    def _config(self, dim: int) -> Any:
        """Return the argument q of a custom dialect kernel."""
        none = dict.fromkeys(("normalises", "unit", "rescales", "rate", "exponent"), 0)
        own = {name: getattr(self, name) for name in ("gamma", "coef0", "degree", "max_value")}
        inputs = {"input_center": np.zeros(dim), "input_scale": np.ones(dim), "input_max_abs": 1e300}
        return KernelConfig.of(FLOAT64, none | {"function": KernelFunction.CUSTOM} | own | inputs)

    def section(self) -> dict[str, Any]:
        """Return the section ``[kernel]`` of a spec.

        For a custom kernel, the section names the kernel's file, which must be in the spec's folder.
        """
        found: dict[str, Any] = {"function": self.function}
        for key in ("gamma", "alpha", "coef0", "degree"):
            if key in KERNEL_RULES[self.function].keys:
                found[key] = getattr(self, key)
        if self.normalise:
            found["normalise"] = True
        if self.custom is not None:
            found |= {"source": self.custom.file.name, "kernel": self.custom.name, "max_value": self.max_value}
        return found

    def described(self) -> dict[str, Any]:
        """Return a description that can be written as JSON.  For a custom kernel, the description contains the kernel's
        name and the hash of its file.
        """
        names = ["function", "gamma", "coef0", "degree", "normalise", "max_value"]
        if self.function == "rational-quadratic":
            names.append("alpha")
        told = {name: getattr(self, name) for name in names}
        told = {name: value.item() if isinstance(value, np.generic) else value for name, value in told.items()}
        if self.custom is not None:
            digest = hashlib.blake2b(self.custom.source, digest_size=16)
            told["custom"] = {"name": self.custom.name, "file": digest.hexdigest()}
        return told

    @classmethod
    def of(cls, spec: Spec) -> MercerKernel:
        """Return the kernel of a spec."""
        kernel = spec.kernel
        if kernel is None:
            raise UserError(f"{spec.name} has no [kernel], because the rule {spec.learning.rule} is linear")
        gamma = 0.5 / kernel.sigma / kernel.sigma if kernel.sigma is not None else kernel.gamma
        return cls(
            kernel.function,
            1.0 if gamma is None else gamma,
            kernel.coef0,
            kernel.degree,
            kernel.normalise,
            getattr(spec, "custom", None),
            kernel.max_value,
            kernel.alpha,
        )
