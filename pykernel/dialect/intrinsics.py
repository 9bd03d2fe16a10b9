"""Functions that each runtime brings itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pykernel.dialect.kernels import intrinsic
from pykernel.dialect.types import Index, Precision, Real


def _jit(function: Callable) -> Callable:
    import numba

    return numba.njit(forceinline=True, error_model="numpy")(function)


def _pow2(precision: Precision, jit: bool) -> Callable:
    integer, number, bias, bits = precision.integer, precision.real, precision.bias, precision.bits
    if jit:
        return _jit(lambda k: integer(integer(k + bias) << bits).view(number))

    def plain(k: int) -> np.floating:
        if not -bias < k <= bias:
            raise OverflowError(f"pow2({k}) is not a normal {precision} number")
        return np.ldexp(number(1), k)

    return plain


@intrinsic(lambda precision, jit: _jit(lambda x: np.sqrt(x)) if jit else np.sqrt)
def sqrt(x: Real) -> Real:  # type: ignore[valid-type]
    """The correctly rounded square root."""


@intrinsic(lambda precision, jit: _jit(lambda x: abs(x)) if jit else abs)
def absolute(x: Real) -> Real:  # type: ignore[valid-type]
    """The magnitude |x|."""


@intrinsic(lambda precision, jit: _jit(lambda x: np.int64(x)) if jit else int)
def truncate(x: Real) -> Index:  # type: ignore[valid-type]
    """The integer part, rounded toward zero; |x| < 2^31 (undefined otherwise: guard before)."""


@intrinsic(_pow2)
def pow2(k: Index) -> Real:  # type: ignore[valid-type]
    """Two to the power k, exactly; k within the exponents of normal numbers."""
