"""Functions that each engine and the generated C implement in their own way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pykernel.dialect.kernels import intrinsic
from pykernel.dialect.types import INDEX_MAX, Index, Precision, Real, Word

MASK, SIGN = 2**32 - 1, 2**31


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


def _pow2_rounded(precision: Precision, jit: bool) -> Callable:
    integer, number, bias, bits = precision.integer, precision.real, precision.bias, precision.bits
    if jit:
        start = int(number(2.0**bits).view(integer))

        def taken(x: float) -> np.floating:
            d = np.int64(number(x).view(integer)) - start
            return integer(d << bits if 0 < d <= 2 * bias else 0).view(number)

        return _jit(taken)

    def plain(x: np.floating) -> np.floating:
        d = float(x) - 2.0**bits
        if not d <= 2 * bias:
            raise OverflowError(f"pow2_rounded({x}) is not a normal {precision} number")
        return np.ldexp(number(1), int(d) - bias) if d >= 1 else number(0)

    return plain


def _floor_log2(precision: Precision, jit: bool) -> Callable:
    integer, number, bias, bits = precision.integer, precision.real, precision.bias, precision.bits
    exponents = 2 * bias + 1
    if jit:
        return _jit(lambda x: np.int64((number(x).view(integer) >> bits) & exponents) - bias)
    return lambda x: int(number(x).view(integer) >> bits & exponents) - bias


@intrinsic(lambda precision, jit: _jit(lambda x: np.sqrt(x)) if jit else np.sqrt)
def sqrt(x: Real) -> Real:  # type: ignore[valid-type]
    """The correctly rounded square root."""


@intrinsic(lambda precision, jit: _jit(lambda x: abs(x)) if jit else abs)
def absolute(x: Real) -> Real:  # type: ignore[valid-type]
    """The magnitude |x|."""


@intrinsic(lambda precision, jit: _jit(lambda x: np.int64(x)) if jit else int)
def truncate(x: Real) -> Index:  # type: ignore[valid-type]
    """x rounded toward zero, for |x| < 2^31.  For other x, the result is undefined, so check x before the call."""


@intrinsic(_pow2)
def pow2(k: Index) -> Real:  # type: ignore[valid-type]
    """Two to the power k, exactly, for k in the exponent range of normal numbers."""


@intrinsic(_pow2_rounded)
def pow2_rounded(x: Real) -> Real:  # type: ignore[valid-type]
    """Two to the power d - bias, exactly, for x = 2^fraction + d; zero if d < 1.  The result is undefined if d > 2 bias
    or if x is NaN.

    (fraction, bias) is (23, 127) for float32 and (52, 1023) for float64.  The function turns a sum that was rounded to
    an integer into a power of two, without a branch.
    """


@intrinsic(_floor_log2)
def floor_log2(x: Real) -> Index:  # type: ignore[valid-type]
    """The largest k with 2^k <= |x|, for a normal x.  For zero and subnormal numbers, the result is one less than the
    smallest exponent of a normal number; for infinity and NaN, the result is one more than the largest exponent.
    """


def _whole(value: int) -> int:
    if not -INDEX_MAX - 1 <= value <= INDEX_MAX:
        raise OverflowError(f"{value} does not fit in int32")
    return value


def _plain_quotient(a: int, b: int) -> int:
    if a < 0 or b <= 0:
        raise OverflowError(f"{a} / {b} rounds differently in C")
    return int(a) // int(b)


def _plain_shift(a: int, k: int) -> int:
    if not 0 <= k <= 31:
        raise OverflowError(f"the shift is {k}; it must be from 0 to 31")
    return a >> k


def _plain_multiply(a: int, k: int) -> int:
    if not 0 <= k <= 65535:
        raise OverflowError(f"the factor is {k}; it must be from 0 to 65535")
    return _whole(int(a) * int(k) >> 16)


@intrinsic(lambda precision, jit: _jit(lambda a: a & MASK) if jit else lambda a: np.uint32(_whole(a) & MASK))
def word(a: Index) -> Word:  # type: ignore[valid-type]
    """Convert to a Word: the number modulo 2^32."""


@intrinsic(lambda precision, jit: _jit(lambda w: w) if jit else lambda w: _whole(int(w)))
def index(w: Word) -> Index:  # type: ignore[valid-type]
    """Convert a Word to an Index.  The Word must be below 2^31 (proved for each model)."""


@intrinsic(
    lambda precision, jit: _jit(lambda e: (e * e) & MASK) if jit else lambda e: np.uint32((_whole(e) ** 2) & MASK)
)
def exact_square(e: Index) -> Word:  # type: ignore[valid-type]
    """e^2 modulo 2^32, which is e^2 itself for |e| < 2^16."""


@intrinsic(lambda precision, jit: _jit(lambda a, k: a >> k) if jit else _plain_shift)
def floor_shift(a: Index, k: Index) -> Index:  # type: ignore[valid-type]
    """a / 2^k, rounded down, also for negative a; k is from 0 to 31 (proved for each model)."""


@intrinsic(lambda precision, jit: _jit(lambda a, k: (a * k) >> 16) if jit else _plain_multiply)
def multiply_high(a: Index, k: Index) -> Index:  # type: ignore[valid-type]
    """a k / 2^16, rounded down from the exact product; k is from 0 to 65535 (proved for each model)."""


@intrinsic(
    lambda precision, jit: _jit(lambda w: (w ^ SIGN) - SIGN) if jit else lambda w: _whole((int(w) ^ SIGN) - SIGN)
)
def as_signed(w: Word) -> Index:  # type: ignore[valid-type]
    """The number from -2^31 to 2^31 - 1 that is equal to w modulo 2^32.  If w is a sum of Words, the result is exact if
    the whole sum is in this range, even if partial sums are not.
    """


@intrinsic(lambda precision, jit: _jit(lambda a, b: a // b) if jit else _plain_quotient)
def quotient(a: Index, b: Index) -> Index:  # type: ignore[valid-type]
    """a / b, rounded down, for a >= 0 and b > 0 (proved for each model)."""
