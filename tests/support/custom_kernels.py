"""Kernels of a user's own, for the tests."""

from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.kernels import inner_product, squared_distance
from pykernel.dialect import DIM, Constant, Real, kernel, real

HALF = Constant(0.5)


@kernel
def rational_quadratic(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """1 / (1 + gamma |a - b|^2): a mixture of Gaussian kernels of all widths."""
    return real(1) / (real(1) + q.gamma * squared_distance(a, b))


@kernel
def affinity(x: Real, y: Real) -> Real:
    """x y + 1/2."""
    return x * y + HALF


@kernel
def products(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """gamma a'b + coef0 + the product of (x_j y_j + 1/2): its diagonal is not 1."""
    value = real(1)
    for j in range(len(a)):
        value = value * affinity(a[j], b[j])
    return value + q.gamma * inner_product(a, b) + q.coef0
