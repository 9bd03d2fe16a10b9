"""Kernels, in the dialect."""

from pykernel.dialect import DIM, Constant, Real, kernel, real, unroll
from pykernel.numerics import EXP_POLYNOMIAL, exp_negative


@kernel
def squared_distance(a: Real[DIM], b: Real[DIM]) -> Real:
    """|a - b|^2.  O(D)."""
    total = real(0)
    for j in unroll(len(a)):
        difference = a[j] - b[j]
        total += difference * difference
    return total


@kernel
def gaussian(gamma: Real, distance: Real) -> Real:
    """k = exp(-gamma distance), distance = |a - b|^2, gamma = 1 / (2 sigma^2).  Mitchinson et al. 2003, eq. 15."""
    return exp_negative(-(gamma * distance))


HALF_LN2 = Constant(0.34657359027997265)


@kernel
def one_minus_exp(x: Real) -> Real:
    """1 - e^-x for x >= 0, with small relative error where x is small, too."""
    if x > HALF_LN2:
        return real(1) - exp_negative(-x)
    q = EXP_POLYNOMIAL[0]
    for i in range(1, len(EXP_POLYNOMIAL)):
        q = EXP_POLYNOMIAL[i] - q * x
    return x - x * x * q
