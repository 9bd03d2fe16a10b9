"""Kernels, in the dialect."""

from pykernel.dialect import DIM, Real, kernel, real, unroll
from pykernel.numerics import exp_negative


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
