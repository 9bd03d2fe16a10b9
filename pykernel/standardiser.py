"""Inputs as they come: running mean and variance, so that one sigma fits sensors of different ranges."""

from pykernel.dialect import DIM, Constant, Index, Real, Struct, kernel, real, sqrt
from pykernel.expansion import OnlineConfig, Work, clipped


class Standardiser(Struct):
    """Running statistics of the inputs."""

    mean: Real[DIM]
    variance: Real[DIM]
    scale: Real[DIM]  # 1 / standard deviation
    seen: Index  # samples in the statistics, up to the horizon


VARIANCE_FLOOR = Constant(2.0**-80)
"""Added to each variance: a constant input has none, and stays zero."""


@kernel
def standardise(z: Standardiser, w: Work, c: OnlineConfig, x: Real[DIM]) -> None:
    """The sample in standard deviations from the mean, clipped.  O(D)."""
    for j in range(len(x)):
        w.x[j] = clipped((x[j] - z.mean[j]) * z.scale[j], -c.clip, c.clip)


@kernel
def observe(z: Standardiser, c: OnlineConfig, x: Real[DIM]) -> None:
    """Let the statistics know the sample.  O(D).

    Exact mean and variance up to the horizon (D. H. D. West, Comm. ACM 22, 1979), exponentially weighted from there,
    so that they follow slow changes.
    """
    if z.seen[0] < c.horizon:
        z.seen[0] += 1
    rate = real(1) / real(z.seen[0])
    rest = real(1) - rate
    for j in range(len(x)):
        difference = x[j] - z.mean[j]
        z.mean[j] += rate * difference
        # a product of numbers that are not negative: neither is the variance, whatever is rounded
        z.variance[j] = rest * (z.variance[j] + rate * (difference * difference))
        z.scale[j] = real(1) / sqrt(z.variance[j] + VARIANCE_FLOOR)
