"""The kernels that a model can use, with their formulas, parameters and bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from pykernel.algorithms.elementary import exp2_negative, hyperbolic_tangent, logistic
from pykernel.algorithms.kernels import (
    absolute_distance,
    cosine_similarity,
    fourier,
    identity,
    inner_product,
    inverse_power,
    matern32,
    matern52,
    polynomial,
    relu,
    sigmoid,
    squared_distance,
)
from pykernel.dialect import DIM, Config, Index, Kernel, Real, chosen, kernel, placeholder, real, sqrt


class KernelFunction(IntEnum):
    """k(a, b)."""

    GAUSSIAN = 0  # exp(-gamma |a - b|^2)
    LAPLACIAN = 1  # exp(-gamma |a - b|_1)
    POLYNOMIAL = 2  # (gamma a'b + coef0)^degree
    LINEAR = 3  # a'b
    SIGMOID = 4  # tanh(gamma a'b + coef0)
    MATERN32 = 5  # (1 + r) e^-r, r = gamma |a - b|
    MATERN52 = 6  # (1 + r + r^2 / 3) e^-r, r = gamma |a - b|
    CUSTOM = 7  # the user's function
    MATERN12 = 8  # e^-r, r = gamma |a - b|
    RATIONAL_QUADRATIC = 9  # (1 + gamma |a - b|^2)^-alpha
    FOURIER = 10  # cos(2 pi (a'b + offset))
    RELU = 11  # max(0, a'b + offset)
    TANH = 12  # tanh(a'b + offset)
    LOGISTIC = 13  # 1 / (1 + exp(-(a'b + offset)))
    IDENTITY = 14  # a'b + offset


class KernelConfig(Config):
    """Parameters of the kernel, derived from a spec by ``pykernel.spec.kernel_settings``."""

    function: KernelFunction
    normalises: bool  # whether k(a, b) is divided by sqrt(k(a, a) k(b, b))
    unit: bool  # whether k is normalised, or k(x, x) = 1 for every x
    gamma: Real  # the gamma of the formulas above: the factor of |a - b|^2, |a - b|_1, |a - b| or a'b
    # for Gaussian, Laplacian and Matern 1/2 kernels: gamma / ln 2, because 2^t is cheaper to compute than e^t
    rate: Real
    exponent: Real  # alpha of the rational quadratic kernel
    coef0: Real  # for polynomial and sigmoid kernels: the constant in gamma a'b + coef0
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
def gaussian_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """exp(-gamma |a - b|^2).  O(D)."""
    return exp2_negative(-(q.rate * squared_distance(a, b)))


@kernel
def laplacian_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """exp(-gamma |a - b|_1).  O(D)."""
    return exp2_negative(-(q.rate * absolute_distance(a, b)))


@kernel
def polynomial_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """(gamma a'b + coef0)^degree.  O(D)."""
    return polynomial(q.gamma, q.coef0, q.degree, inner_product(a, b))


@kernel
def linear_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """a'b.  O(D)."""
    return inner_product(a, b)


@kernel
def sigmoid_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """tanh(gamma a'b + coef0).  O(D)."""
    return sigmoid(q.gamma, q.coef0, inner_product(a, b))


@kernel
def matern12_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """e^-r with r = gamma |a - b|.  O(D)."""
    return exp2_negative(-(q.rate * sqrt(squared_distance(a, b))))


@kernel
def matern32_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """(1 + r) e^-r with r = gamma |a - b|.  O(D)."""
    return matern32(q.gamma, squared_distance(a, b))


@kernel
def matern52_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """(1 + r + r^2 / 3) e^-r with r = gamma |a - b|.  O(D)."""
    return matern52(q.gamma, squared_distance(a, b))


@kernel
def rational_quadratic_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """(1 + gamma |a - b|^2)^-alpha.  O(D)."""
    return inverse_power(q.gamma, q.exponent, squared_distance(a, b))


@kernel
def fourier_unit(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """cos(2 pi (a'b + offset)).  O(D)."""
    return fourier(offset, a, b)


@kernel
def relu_unit(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """max(0, a'b + offset).  O(D)."""
    return relu(offset, a, b)


@kernel
def tanh_unit(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """tanh(a'b + offset).  O(D)."""
    return hyperbolic_tangent(identity(offset, a, b))


@kernel
def logistic_unit(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """1 / (1 + exp(-(a'b + offset))).  O(D)."""
    return logistic(identity(offset, a, b))


@kernel
def identity_unit(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """a'b + offset.  O(D)."""
    return identity(offset, a, b)


@dataclass(frozen=True)
class Reach:
    """The largest distances and products of two inputs, and the kernel's parameters."""

    square: float  # |a - b|^2
    total: float  # |a - b|_1
    product: float  # a'b
    gamma: float
    coef0: float
    degree: int
    max_value: float

    @property
    def argument(self) -> float:
        """The largest |gamma a'b + coef0|; for hidden units, the largest |a'b + offset|."""
        return self.gamma * self.product + abs(self.coef0)


def _largest_power(reach: Reach) -> float:
    try:
        return max(1.0, reach.argument) ** reach.degree
    except OverflowError:
        return math.inf


def _largest_matern(reach: Reach) -> float:
    return max(reach.square, reach.gamma * math.sqrt(reach.square))


def _one(reach: Reach) -> float:
    return 1.0


@dataclass(frozen=True)
class KernelRule:
    """A kernel function and its properties.

    says: the formula of k(a, b).  value: the dialect kernel that computes k(a, b).  hidden: whether the function is a
    hidden unit of a network or a random feature; the value of such a function also depends on an offset that belongs to
    the vector a.  keys: the keys of [kernel] that the function uses; "normalise" means that its values can be divided
    by sqrt(k(a, a) k(b, b)).  step: a function that returns the largest intermediate result for a Reach.  most: a function that
    returns the largest |k(a, b)| for a Reach.  unit: whether k(x, x) is 1 for every x.
    definite: whether the function is positive definite.
    fades: whether the function uses the parameter ``rate`` instead of ``gamma``.  length: for a function of gamma
    |a - b|, the gamma for which the length scale is 1.
    """

    name: str
    says: str
    number: KernelFunction
    value: Kernel
    keys: tuple[str, ...]
    step: Callable[[Reach], float]
    most: Callable[[Reach], float] = _one
    unit: bool = False
    definite: bool = True
    fades: bool = False
    hidden: bool = False
    length: float | None = None


KERNEL_RULES = {
    rule.name: rule
    for rule in (
        KernelRule(
            "gaussian", "exp(-gamma |a - b|^2)", KernelFunction.GAUSSIAN, gaussian_value, ("sigma", "gamma"),
            lambda reach: reach.square, unit=True, fades=True,
        ),
        KernelRule(
            "laplacian", "exp(-gamma |a - b|_1)", KernelFunction.LAPLACIAN, laplacian_value, ("gamma",),
            lambda reach: reach.total, unit=True, fades=True,
        ),
        KernelRule(
            "polynomial", "(gamma a'b + coef0)^degree", KernelFunction.POLYNOMIAL, polynomial_value,
            ("gamma", "coef0", "degree", "normalise"), lambda reach: reach.argument, _largest_power,
        ),
        KernelRule(
            "linear", "a'b", KernelFunction.LINEAR, linear_value, ("normalise",),
            lambda reach: reach.product, lambda reach: reach.product,
        ),
        KernelRule(
            "sigmoid", "tanh(gamma a'b + coef0)", KernelFunction.SIGMOID, sigmoid_value, ("gamma", "coef0"),
            lambda reach: reach.argument, definite=False,
        ),
        KernelRule(
            "matern12", "exp(-r), r = gamma |a - b|", KernelFunction.MATERN12, matern12_value, ("gamma",),
            _largest_matern, unit=True, fades=True, length=1.0,
        ),
        KernelRule(
            "matern32", "(1 + r) exp(-r), r = gamma |a - b|", KernelFunction.MATERN32, matern32_value, ("gamma",),
            _largest_matern, unit=True, length=math.sqrt(3),
        ),
        KernelRule(
            "matern52", "(1 + r + r^2 / 3) exp(-r), r = gamma |a - b|", KernelFunction.MATERN52, matern52_value, ("gamma",),
            _largest_matern, unit=True, length=math.sqrt(5),
        ),
        KernelRule(
            "rational-quadratic", "(1 + gamma |a - b|^2)^-alpha", KernelFunction.RATIONAL_QUADRATIC,
            rational_quadratic_value, ("gamma", "alpha"), lambda reach: max(1.0, reach.gamma) * reach.square, unit=True,
        ),
        KernelRule(
            "fourier", "cos(2 pi (a'b + offset)), see offsets (`frozen`)", KernelFunction.FOURIER, fourier_unit, (),
            lambda reach: reach.argument, definite=False, hidden=True,
        ),
        KernelRule(
            "relu", "max(0, a'b + offset)", KernelFunction.RELU, relu_unit, (),
            lambda reach: reach.argument, lambda reach: reach.argument, definite=False, hidden=True,
        ),
        KernelRule(
            "tanh", "tanh(a'b + offset)", KernelFunction.TANH, tanh_unit, (),
            lambda reach: reach.argument, definite=False, hidden=True,
        ),
        KernelRule(
            "logistic", "1 / (1 + exp(-(a'b + offset)))", KernelFunction.LOGISTIC, logistic_unit, (),
            lambda reach: reach.argument, definite=False, hidden=True,
        ),
        KernelRule(
            "identity", "a'b + offset", KernelFunction.IDENTITY, identity_unit, (),
            lambda reach: reach.argument, lambda reach: reach.argument, definite=False, hidden=True,
        ),
        KernelRule(
            "custom", "your own function, see source", KernelFunction.CUSTOM, custom_value,
            ("gamma", "coef0", "degree", "normalise", "source", "kernel", "max_value"),
            lambda reach: reach.argument, lambda reach: reach.max_value,
        ),
    )
}  # fmt: skip


def _by_function(kernels: Mapping[str, KernelRule], otherwise: Kernel | None = None) -> Callable[[Callable], Kernel]:
    return chosen("function", {rule.number: rule.value for rule in kernels.values()}, otherwise)


@_by_function({name: rule for name, rule in KERNEL_RULES.items() if "normalise" in rule.keys}, linear_value)
def plain_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) before normalisation, for the kernels that can be normalised.  O(D)."""


@_by_function({name: rule for name, rule in KERNEL_RULES.items() if not rule.hidden}, linear_value)
def own_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) before normalisation, for every kernel that is not a hidden unit.  O(D)."""


@kernel
def kernel_value(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) for scaled inputs.  O(D)."""
    if q.normalises:
        return cosine_similarity(plain_value(q, a, b), plain_value(q, a, a), plain_value(q, b, b))
    return own_value(q, a, b)


@kernel
def compared(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """k(a, b) for a kernel without an offset; the argument ``offset`` is ignored.  O(D)."""
    return kernel_value(q, a, b)


@_by_function({name: rule for name, rule in KERNEL_RULES.items() if rule.hidden}, compared)
def feature_value(q: KernelConfig, offset: Real, a: Real[DIM], b: Real[DIM]) -> Real:
    """The feature of a vector a with its offset, evaluated at b, for scaled inputs.  O(D)."""


@kernel
def self_value(q: KernelConfig, a: Real[DIM]) -> Real:
    """k(a, a) for scaled inputs.  O(D), or O(1) where k(a, a) is always 1."""
    if q.unit and not q.normalises:
        return real(1)
    return kernel_value(q, a, a)
