"""Which kernel a model compares inputs with, and how inputs are scaled before."""

from __future__ import annotations

from enum import IntEnum

from pykernel.dialect import DIM, OUTPUTS, Bool, Config, Index, Real, absolute, kernel, real, unroll
from pykernel.kernels import absolute_distance, inner_product, polynomial, sigmoid, squared_distance
from pykernel.numerics import exp2_negative


class KernelFunction(IntEnum):
    """k(a, b)."""

    GAUSSIAN = 0  # exp(-gamma |a - b|^2)
    LAPLACIAN = 1  # exp(-gamma |a - b|_1)
    POLYNOMIAL = 2  # (gamma a'b + coef0)^degree
    LINEAR = 3  # a'b
    SIGMOID = 4  # tanh(gamma a'b + coef0)


class KernelConfig(Config):
    """How inputs are scaled and compared, derived from a spec by ``pykernel.kernel_settings``."""

    function: KernelFunction
    rescales: bool  # whether inputs are scaled before they are compared
    gamma: Real  # polynomial and sigmoid kernels: the factor of a'b
    rate: Real  # Gaussian and Laplacian kernels: gamma / ln 2, since powers of two are cheaper than powers of e
    coef0: Real  # polynomial and sigmoid kernels: what is added to gamma a'b
    degree: Index  # of the polynomial kernel
    center: Real[DIM]  # subtracted from the inputs
    factor: Real[DIM]  # what they are multiplied by after that
    input_limit: Real  # largest |x_j| that is taken


@kernel
def acceptable(q: KernelConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within the limit."""
    for j in unroll(len(x)):
        # not "> limit": NaN must fail
        if not (absolute(x[j]) <= q.input_limit):
            return False
    return True


@kernel
def rescale(q: KernelConfig, x: Real[DIM], out: Real[DIM]) -> None:
    """(x - center) factor.  O(D)."""
    for j in range(len(x)):
        out[j] = (x[j] - q.center[j]) * q.factor[j]


@kernel
def kernel_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) of scaled inputs.  O(D)."""
    if q.function == KernelFunction.GAUSSIAN:
        return exp2_negative(-(q.rate * squared_distance(a, b)))
    if q.function == KernelFunction.LAPLACIAN:
        return exp2_negative(-(q.rate * absolute_distance(a, b)))
    if q.function == KernelFunction.POLYNOMIAL:
        return polynomial(q.gamma, q.coef0, q.degree, inner_product(a, b))
    if q.function == KernelFunction.SIGMOID:
        return sigmoid(q.gamma, q.coef0, inner_product(a, b))
    return inner_product(a, b)


@kernel
def winner(y: Real[OUTPUTS]) -> Index:
    """The class that functions speak for: of two, the second where the one function is positive; else the first largest."""
    best = 0
    if len(y) == 1:
        if y[0] > real(0):
            best = 1
    else:
        for o in range(1, len(y)):
            if y[o] > y[best]:
                best = o
    return best
