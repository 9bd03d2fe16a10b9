"""The division of reals: in a kernel, ``/`` means a call of ``ratio``."""

from pykernel.dialect.intrinsics import absolute
from pykernel.dialect.kernels import kernel, real
from pykernel.dialect.types import Constant, Real

LEAST_QUOTIENT = Constant(float32=2.0**-125, float64=2.0**-1021)
"""Twice the smallest normal number.  Every C library rounds quotients above this limit correctly."""


@kernel
def ratio(dividend: Real, divisor: Real) -> Real:
    """The quotient; 0 if the quotient is subnormal or nearly so, because division routines for CPUs without an FPU
    disagree on such quotients.
    """
    value = dividend / divisor
    if absolute(value) < LEAST_QUOTIENT:
        return real(0)
    return value
