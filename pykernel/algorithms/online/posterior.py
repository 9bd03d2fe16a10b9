"""A covariance of the function at the vectors, as a factor: what rules of recursive least squares keep beside their mean.

In coordinates z = T f, where f are the function's values at the vectors and T'T = (K + ridge I)^-1 (inverse_gram.py), the
model keeps a triangle L of S = L L', the covariance of z.  The invariant: S is a covariance whatever the bits of L are, and
every variance is a sum of squares.  Rounding changes L by parts of itself.

With l = T k, a sample is l'z + sqrt(kappa) z_n, where z_n is a coordinate of its own.
"""

from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.online.state import LARGEST_FACTOR, OnlineModel
from pykernel.algorithms.packed import lower_times, lower_transposed_times, narrow_factor
from pykernel.dialect import Constant, Real, Struct, between, kernel, real

ROUNDED = Constant(float32=2.0**-36, float64=2.0**-94)
"""What each sample's roundings of multipliers add to a variance, times the ridge, in parts of the prior: 4,096 times the
square of a rounding.  Multipliers are 1 / sqrt(ridge) at most.

With such an error at each sample, and noise r, what can be known comes to rest at a variance of sqrt(ROUNDED r / ridge).  Below,
S stays as it is, and the mean learns on: else S would fall to what is not true, and the errors would add up.
"""


class CovarianceFactor(Struct):
    """What is known of the function beside its mean."""

    # L of S = L L', packed
    root: between(Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_FACTOR, LARGEST_FACTOR)


class FactorModel(OnlineModel):
    parts = (CovarianceFactor,)


@kernel
def foresee_by_factor(m: FactorModel) -> Real:
    """Compute loading = L'l and h = L loading, the covariances of l'z with z; return its variance l'h.  O(N^2)."""
    n = m.n[0]
    lower_transposed_times(m.root, m.l, m.loading, n)
    lower_times(m.root, m.loading, m.h, n)
    known = real(0)
    for j in range(n):
        known += m.loading[j] * m.loading[j]
    return known


@kernel
def learn_factor(m: FactorModel, noise: Real, own: Real) -> None:
    """Update L, given loading: a sample with noise, and with a part of variance ``own`` in z_n, was seen.  O(N^2).

    The row of z_n is then -share sqrt(own), and on the diagonal sqrt(noise / (noise + own)).
    """
    n = m.n[0]
    known = real(0)
    for j in range(n):
        known += m.loading[j] * m.loading[j]
        m.share[j] = real(0)
    if known * known * m.kappa_least >= ROUNDED * noise:
        narrow_factor(m.root, m.loading, m.narrowing, m.share, noise, own, real(1), n)
