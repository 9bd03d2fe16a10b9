"""Gram matrices on the host, in float64: the kernels of ``pykernel.kernel_choice``."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from pykernel.errors import MissingExtra, UserError

try:
    from scipy.spatial.distance import cdist  # type: ignore[import-untyped]
except ImportError as error:  # scikit-learn brings it
    raise MissingExtra("training on the host, and import,", "sklearn") from error

KernelName = Literal["gaussian", "laplacian", "polynomial", "linear", "sigmoid"]
KERNELS: tuple[str, ...] = get_args(KernelName)
DEGREES = range(1, 10)


def gram_matrix(
    function: str, a: Any, b: Any, *, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1
) -> np.ndarray:
    """K with K_ij = k(a_i, b_j), (len(a), len(b)), in O(len(a) len(b) D); a: (rows, D), b: (rows, D).

    "gaussian" exp(-gamma |a - b|^2), "laplacian" exp(-gamma |a - b|_1), "polynomial" (gamma a'b + coef0)^degree,
    "linear" a'b, "sigmoid" tanh(gamma a'b + coef0); what a kernel does not have is not looked at.  Distances are sums
    over differences, not differences of products: K_ij is 1 for equal rows, and no digit of near ones is lost.

    Raises UserError: a kernel that there is not, other shapes, gamma that is not positive, a degree not from 1 to 9,
    numbers that are not finite, or so large that a value overflows.
    """
    if function not in KERNELS:
        raise UserError(f"there is no kernel {function!r}; it must be one of {', '.join(KERNELS)}")
    a, b = _rows(a, "a"), _rows(b, "b")
    if a.shape[1] != b.shape[1]:
        raise UserError(f"rows of a have {a.shape[1]} numbers and those of b {b.shape[1]}; they must have as many")
    if function != "linear" and not (np.isfinite(gamma) and gamma > 0):
        raise UserError(f"gamma is {gamma}; it must be a number above zero")
    if function in ("polynomial", "sigmoid") and not np.isfinite(coef0):
        raise UserError(f"coef0 is {coef0}; it must be a number")
    if function == "polynomial" and (degree not in DEGREES or isinstance(degree, bool)):
        raise UserError(f"degree is {degree}; it must be a whole number from {DEGREES[0]} to {DEGREES[-1]}")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if function == "gaussian":
            # a distance that overflows is a value of zero
            return np.exp(-gamma * cdist(a, b, "sqeuclidean"))
        if function == "laplacian":
            return np.exp(-gamma * cdist(a, b, "cityblock"))
        values = a @ b.T
        # before tanh hides it; whether inf - inf is NaN or infinite depends on the library's order and FMA
        finite = np.isfinite(values).all()
        if function == "polynomial":
            values = (gamma * values + coef0) ** int(degree)
        elif function == "sigmoid":
            values = np.tanh(gamma * values + coef0)
    if not finite or not np.isfinite(values).all():
        raise UserError(f"values of the {function} kernel overflow; inputs must be smaller: scale them")
    return values


def _rows(rows: Any, name: str) -> np.ndarray:
    values = np.asarray(rows, np.float64)
    if values.ndim != 2:
        raise UserError(f"{name} has the shape {values.shape}; it must be (rows, inputs)")
    if not np.isfinite(values).all():
        raise UserError(f"{name} holds numbers that are not finite; leave those rows out")
    return values
