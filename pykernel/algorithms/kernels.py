"""Kernel functions, written in the dialect."""

from pykernel.algorithms.elementary import (
    EXP_POLYNOMIAL,
    exp2_negative,
    exp_negative,
    hyperbolic_tangent,
    log2_one_plus,
)
from pykernel.algorithms.elementary import cosine as cosine_of_turns
from pykernel.dialect import DIM, Constant, Index, Real, absolute, kernel, real, sqrt, unroll


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
    """k = exp(-gamma distance), where distance = |a - b|^2 and gamma = 1 / (2 sigma^2).  Mitchinson et al. 2003, eq. 15."""
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
def squared_norm(a: Real[DIM]) -> Real:
    """|a|^2.  O(D).  The result has the same bits as inner_product(a, a), but this form lets static analysis prove that
    no sum is negative."""
    total = real(0)
    for j in unroll(len(a)):
        element = a[j]
        total += element * element
    return total


@kernel
def polynomial(gamma: Real, coef0: Real, degree: Index, product: Real) -> Real:
    """k = (gamma a'b + coef0)^degree, where product = a'b and degree >= 1.  O(degree)."""
    base = gamma * product + coef0
    value = base
    for i in range(1, degree):
        value = value * base
    return value


@kernel
def sigmoid(gamma: Real, coef0: Real, product: Real) -> Real:
    """k = tanh(gamma a'b + coef0), where product = a'b.  This kernel is not positive definite for all parameters."""
    return hyperbolic_tangent(gamma * product + coef0)


THIRD = Constant(1 / 3)


@kernel
def matern32(gamma: Real, square: Real) -> Real:
    """k = (1 + r) e^-r with r = gamma |a - b|, where square = |a - b|^2 and gamma = sqrt(3) / length.

    The result is at most 1, and within 3 ulp of the exact value for the computed r.  If e^-r is below 2^-60, the result
    is zero.  Rasmussen and Williams 2006, eq. 4.17.
    """
    r = gamma * sqrt(square)
    e = exp_negative(-r)
    return e + r * e


@kernel
def matern52(gamma: Real, square: Real) -> Real:
    """k = (1 + r + r^2 / 3) e^-r with r = gamma |a - b|, where square = |a - b|^2 and gamma = sqrt(5) / length.

    The result is at most 1, and within 4 ulp of the exact value for the computed r.  If e^-r is below 2^-60, the result
    is zero.  Rasmussen and Williams 2006, eq. 4.17.
    """
    r = gamma * sqrt(square)
    e = exp_negative(-r)
    # r^2 is not computed, because it could overflow where e^-r is zero
    rest = r * e
    return e + (rest + rest * (r * THIRD))


@kernel
def inverse_power(gamma: Real, alpha: Real, square: Real) -> Real:
    """k = (1 + gamma |a - b|^2)^-alpha, where square = |a - b|^2 and gamma = 1 / (2 alpha length^2).

    The result is at most 1.  If it would be below 2^-60, it is zero.  Rasmussen and Williams 2006, eq. 4.19.
    """
    return exp2_negative(-(alpha * log2_one_plus(gamma * square)))


@kernel
def identity(offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """a'b + offset: a network unit without an activation function.  O(D)."""
    total = offset
    for j in unroll(len(a)):
        total += a[j] * b[j]
    return total


@kernel
def relu(offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """max(0, a'b + offset): a rectified linear unit.  O(D).  NaN gives zero."""
    value = identity(offset, a, b)
    return value if value > real(0) else real(0)


@kernel
def fourier(phase: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """cos(2 pi (a'b + phase)): a random Fourier feature of b.  O(D).  Rahimi and Recht 2007, algorithm 1."""
    return cosine_of_turns(identity(phase, a, b))


NORM_LEAST = Constant(float32=2.0**-60, float64=2.0**-500)
"""k(a, a) is treated as zero up to this value.  The product of two larger values is a normal number, not a subnormal one."""
COSINE_LEAST = Constant(2.0**-60)


@kernel
def cosine_similarity(value: Real, own: Real, other: Real) -> Real:
    """k(a, b) / sqrt(k(a, a) k(b, b)), clipped to the range from -1 to 1, where value = k(a, b), own = k(a, a), other = k(b, b).

    The result is zero if k(a, a) or k(b, b) is at most NORM_LEAST, if its magnitude would be at most 2^-60, and for
    NaN.  Otherwise, the result is 1 for a = b.
    """
    if not (own > NORM_LEAST and other > NORM_LEAST):
        return real(0)
    # if own = other, the root is exactly own
    scale = sqrt(own * other)
    # the condition is also true for NaN
    if not (absolute(value) > scale * COSINE_LEAST):
        return real(0)
    cosine = value / scale
    if cosine > real(1):
        return real(1)
    if cosine < -real(1):
        return -real(1)
    return cosine


HALF_LN2 = Constant(0.34657359027997265)


@kernel
def one_minus_exp(x: Real) -> Real:
    """1 - e^-x for x >= 0.  The relative error is small, even near x = 0."""
    if x > HALF_LN2:
        return real(1) - exp_negative(-x)
    q = EXP_POLYNOMIAL[0]
    for i in range(1, len(EXP_POLYNOMIAL)):
        q = EXP_POLYNOMIAL[i] - q * x
    return x - x * x * q
