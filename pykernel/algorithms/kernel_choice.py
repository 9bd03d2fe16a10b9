"""The kernel of a model, and the scaling of its inputs."""

from __future__ import annotations

from enum import IntEnum

from pykernel.algorithms.elementary import exp2_negative
from pykernel.algorithms.kernels import (
    absolute_distance,
    cosine_similarity,
    fourier,
    inner_product,
    inverse_power,
    matern32,
    matern52,
    polynomial,
    sigmoid,
    squared_distance,
)
from pykernel.dialect import DIM, Config, Index, Real, kernel, placeholder, real, sqrt


class KernelFunction(IntEnum):
    """k(a, b)."""

    GAUSSIAN = 0  # exp(-gamma |a - b|^2)
    LAPLACIAN = 1  # exp(-gamma |a - b|_1)
    POLYNOMIAL = 2  # (gamma a'b + coef0)^degree
    LINEAR = 3  # a'b
    SIGMOID = 4  # tanh(gamma a'b + coef0)
    MATERN32 = 5  # (1 + r) e^-r, r = gamma |a - b|
    MATERN52 = 6  # (1 + r + r^2 / 3) e^-r, r = gamma |a - b|
    CUSTOM = 7  # the user's
    MATERN12 = 8  # e^-r, r = gamma |a - b|
    RATIONAL_QUADRATIC = 9  # (1 + gamma |a - b|^2)^-alpha
    FOURIER = 10  # cos(2 pi a'b)


class KernelConfig(Config):
    """How inputs are compared, derived from a spec by ``pykernel.spec.kernel_settings``."""

    function: KernelFunction
    normalises: bool  # whether values are divided by sqrt(k(a, a) k(b, b))
    unit: bool  # whether k(x, x) is 1 for every x
    gamma: Real  # factor in the kernel, before |a - b|^2 (Gaussian), |a - b| (Matern) or a'b (polynomial, sigmoid)
    rate: Real  # Gaussian, Laplacian, Matern 1/2 kernels: gamma / ln 2, because 2^t is cheaper to compute than e^t
    exponent: Real  # alpha of the rational quadratic kernel
    coef0: Real  # polynomial and sigmoid kernels: the constant in gamma a'b + coef0
    degree: Index  # degree of the polynomial kernel
    max_value: Real  # largest |k(a, b)| of a user's kernel


@placeholder
def custom_kernel(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """A user's kernel."""
    return real(0)


@kernel
def custom_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """A user's kernel, limited to +- max_value.  NaN gives zero."""
    value = custom_kernel(q, a, b)
    if value > q.max_value:
        return q.max_value
    if value >= -q.max_value:
        return value
    if value < real(0):
        return -q.max_value
    # NaN
    return real(0)


@kernel
def plain_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) before normalisation, for the kernels that can be normalised.  O(D)."""
    if q.function == KernelFunction.POLYNOMIAL:
        return polynomial(q.gamma, q.coef0, q.degree, inner_product(a, b))
    if q.function == KernelFunction.CUSTOM:
        return custom_value(q, a, b)
    return inner_product(a, b)


@kernel
def kernel_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) of scaled inputs.  O(D)."""
    if q.normalises:
        return cosine_similarity(plain_value(q, a, b), plain_value(q, a, a), plain_value(q, b, b))
    if q.function == KernelFunction.GAUSSIAN:
        return exp2_negative(-(q.rate * squared_distance(a, b)))
    if q.function == KernelFunction.LAPLACIAN:
        return exp2_negative(-(q.rate * absolute_distance(a, b)))
    if q.function == KernelFunction.POLYNOMIAL:
        return polynomial(q.gamma, q.coef0, q.degree, inner_product(a, b))
    if q.function == KernelFunction.SIGMOID:
        return sigmoid(q.gamma, q.coef0, inner_product(a, b))
    if q.function == KernelFunction.MATERN32:
        return matern32(q.gamma, squared_distance(a, b))
    if q.function == KernelFunction.MATERN52:
        return matern52(q.gamma, squared_distance(a, b))
    if q.function == KernelFunction.MATERN12:
        return exp2_negative(-(q.rate * sqrt(squared_distance(a, b))))
    if q.function == KernelFunction.RATIONAL_QUADRATIC:
        return inverse_power(q.gamma, q.exponent, squared_distance(a, b))
    if q.function == KernelFunction.FOURIER:
        return fourier(real(0), a, b)
    if q.function == KernelFunction.CUSTOM:
        return custom_value(q, a, b)
    return inner_product(a, b)


@kernel
def self_value(q: KernelConfig, a: Real[DIM]) -> Real:
    """k(a, a) of scaled inputs.  O(D), or O(1) where k(a, a) is always 1."""
    if q.unit and not q.normalises:
        return real(1)
    return kernel_value(q, a, a)
