"""Standardises inputs by their running mean and variance, so that one sigma fits sensors of different ranges."""

from pykernel.algorithms.elementary import clipped
from pykernel.dialect import DIM, Bool, Constant, Index, Real, Struct, absolute, kernel, real, sqrt


class Standardiser(Struct):
    """Running statistics of the inputs."""

    mean: Real[DIM]
    variance: Real[DIM]
    scale: Real[DIM]  # 1 / standard deviation
    seen: Index  # number of samples in the statistics, at most the horizon


VARIANCE_FLOOR = Constant(2.0**-80)
"""Added to each variance: a constant input has none, and stays zero."""


@kernel
def standardise(z: Standardiser, clip: Real, x: Real[DIM], standardised: Real[DIM]) -> None:
    """The sample in standard deviations from the mean, kept within +- clip.  O(D)."""
    for j in range(len(x)):
        standardised[j] = clipped((x[j] - z.mean[j]) * z.scale[j], -clip, clip)


@kernel
def observe(z: Standardiser, horizon: Index, x: Real[DIM]) -> None:
    """Add the sample to the statistics.  O(D).

    Up to the horizon, mean and variance are exact (D. H. D. West, Comm. ACM 22, 1979).  Later samples are weighted
    exponentially, so that mean and variance follow slow changes.
    """
    if z.seen[0] < horizon:
        z.seen[0] += 1
    rate = real(1) / real(z.seen[0])
    rest = real(1) - rate
    for j in range(len(x)):
        difference = x[j] - z.mean[j]
        z.mean[j] += rate * difference
        # a product of numbers that are not negative: rounding cannot make the variance negative
        z.variance[j] = rest * (z.variance[j] + rate * (difference * difference))
        z.scale[j] = real(1) / sqrt(z.variance[j] + VARIANCE_FLOOR)


@kernel
def valid_standardiser(z: Standardiser, limit: Real, horizon: Index) -> Bool:
    """Whether inputs within their limit can have these means and variances, and the scales fit.  O(D)."""
    if z.seen[0] < 0 or z.seen[0] > horizon:
        return False
    for j in range(len(z.mean)):
        # twice the limit, and eight times its square: both with room for rounding
        if not (absolute(z.mean[j]) * real(0.5) <= limit):
            return False
        if not (z.variance[j] >= real(0) and z.variance[j] * real(0.125) <= limit * limit):
            return False
        if z.seen[0] == 0:
            if z.mean[j] != real(0) or z.variance[j] != real(0) or z.scale[j] != real(0):
                return False
        elif z.scale[j] != real(1) / sqrt(z.variance[j] + VARIANCE_FLOOR):
            return False
    return True
