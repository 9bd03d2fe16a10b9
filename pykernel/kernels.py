"""Kernels, in the dialect."""

from pykernel.dialect import DIM, Constant, Index, Real, absolute, kernel, real, unroll
from pykernel.numerics import EXP_POLYNOMIAL, exp_negative, hyperbolic_tangent


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


@kernel
def absolute_distance(a: Real[DIM], b: Real[DIM]) -> Real:
    """|a - b|_1, the sum of absolute differences.  O(D)."""
    total = real(0)
    for j in unroll(len(a)):
        total += absolute(a[j] - b[j])
    return total


@kernel
def inner_product(a: Real[DIM], b: Real[DIM]) -> Real:
    """a'b.  O(D)."""
    total = real(0)
    for j in unroll(len(a)):
        total += a[j] * b[j]
    return total


@kernel
def polynomial(gamma: Real, coef0: Real, degree: Index, product: Real) -> Real:
    """k = (gamma a'b + coef0)^degree, product = a'b, for degrees from 1 up.  O(degree)."""
    base = gamma * product + coef0
    value = base
    for i in range(1, degree):
        value = value * base
    return value


@kernel
def sigmoid(gamma: Real, coef0: Real, product: Real) -> Real:
    """k = tanh(gamma a'b + coef0), product = a'b.  Not positive definite for all parameters."""
    return hyperbolic_tangent(gamma * product + coef0)


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
