"""Whether a state is one that learning could have led to: what was saved is untrusted when it comes back."""

from pykernel.dialect import Bool, Constant, absolute, entry, kernel, real, sqrt
from pykernel.expansion import Expansion, OnlineConfig, Projection, settle
from pykernel.standardiser import VARIANCE_FLOOR, Standardiser

LARGEST_FACTOR = Constant(2.0**40)
"""Far above any element of a factor of (K + ridge I)^-1; sums of three times as many digits do not overflow."""
SMALLEST_DIAGONAL = Constant(2.0**-40)
"""Far below any P_ii, which is 1 / (1 + ridge) or more but for rounding."""
LARGEST_REAL = Constant(float32=3.4028234663852886e38, float64=1.7976931348623157e308)


@kernel
def valid_vectors(s: Expansion, c: OnlineConfig) -> Bool:
    """Inputs and multipliers are within their limits, none is NaN, no multiplier is below the floor.  O(N D)."""
    n = s.n[0]
    limit = c.input_limit
    if c.standardises:
        limit = c.clip
    for i in range(len(s.alpha)):
        for j in range(len(s.v[0])):
            if i >= n and s.v[i, j] != real(0):
                return False
            # not "> limit": NaN must fail
            if not (absolute(s.v[i, j]) <= limit):
                return False
        if i >= n and s.alpha[i] != real(0):
            return False
        if not (absolute(s.alpha[i]) <= c.alpha_limit) or settle(s.alpha[i]) != s.alpha[i]:
            return False
    return True


@kernel
def valid_factor(s: Expansion) -> Bool:
    """No element of m leads to an infinity or to a division by zero.  O(N^2).

    Whether m is the factor of these vectors would take O(N^3).  Predictions do not depend on it; a refresh makes it.
    """
    n = s.n[0]
    if s.probe[0] < 0 or s.probe[0] > n:
        return False
    if not (s.drift[0] >= real(0) and s.drift[0] <= LARGEST_REAL):
        return False
    for j in range(len(s.alpha)):
        p = real(0)
        for i in range(len(s.alpha)):
            if (i >= n or j >= n) and s.m[i, j] != real(0):
                return False
            if not (absolute(s.m[i, j]) <= LARGEST_FACTOR):
                return False
            p += s.m[i, j] * s.m[i, j]
        if j < n and p < SMALLEST_DIAGONAL:
            return False
    return True


@kernel
def valid_standardiser(z: Standardiser, c: OnlineConfig) -> Bool:
    """Means and variances are those of inputs within their limit, scales those of the variances.  O(D)."""
    if z.seen[0] < 0 or z.seen[0] > c.horizon:
        return False
    for j in range(len(z.mean)):
        # twice the limit, and eight times its square: both with room for rounding
        if not (absolute(z.mean[j]) * real(0.5) <= c.input_limit):
            return False
        if not (z.variance[j] >= real(0) and z.variance[j] * real(0.125) <= c.input_limit * c.input_limit):
            return False
        if z.seen[0] == 0:
            if z.mean[j] != real(0) or z.variance[j] != real(0) or z.scale[j] != real(0):
                return False
        elif z.scale[j] != real(1) / sqrt(z.variance[j] + VARIANCE_FLOOR):
            return False
    return True


@entry
def valid(s: Expansion, z: Standardiser, c: OnlineConfig) -> Bool:
    """Whether learning could have led to this state, as far as can be told in O(N D), with a factor O(N^2 + N D).

    Counts are within their capacity, numbers finite and within their limits, everything beyond n is zero.
    """
    if s.n[0] < 0 or s.n[0] > len(s.alpha):
        return False
    if s.frozen[0] != 0 and s.frozen[0] != 1:
        return False
    if not valid_vectors(s, c):
        return False
    if c.projection == Projection.KLMS:
        if not valid_factor(s):
            return False
    if c.standardises:
        if s.n[0] > 0 and z.seen[0] < c.warmup:
            return False
        if not valid_standardiser(z, c):
            return False
    return True
