"""Mean and covariance of the function's values at the vectors, which recursive least squares keeps in addition to the multipliers.

The coordinates are z = T f, where f are the function's values at the vectors, and T'T = (K + ridge I)^-1 (inverse_gram.py).
S is the covariance of z.  The model keeps a triangle L with S = L L'.  Whatever the bits of L, S is a covariance matrix, and
every variance is a sum of squares.  Rounding errors are proportional to the elements of L.

With l = T k, the function at a sample is l'z + sqrt(kappa) z_n, where z_n is a new coordinate.

The mean is kept in these coordinates, too: alpha = T' expected, and f(x) = expected'l.  If vectors are similar, multipliers are
large and cancel each other, while the mean of z is only as large as the function.  Therefore samples update the mean of z, and
multipliers are computed from this mean: rounding errors of multipliers do not accumulate.
"""

from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.online.state import ALPHA_FLOOR, LARGEST_FACTOR, LOOSE, OnlineModel, settle
from pykernel.algorithms.online.validity import keeps
from pykernel.algorithms.packed import lower_times, lower_transposed_times, narrow_factor, row_of, rows_within
from pykernel.dialect import OUTPUTS, Bool, Constant, Index, Real, Struct, absolute, between, kernel, placeholder, real

ROUNDED = Constant(float32=2.0**-36, float64=2.0**-94)
"""The variance that rounding of the mean adds at each sample, relative to the prior variance: 4,096 times the square of a rounding error.

If this variance is q and the variance of the noise is r, the variance of f converges to sqrt(q r).  If the variance of f is below
sqrt(q r), a sample updates only the mean, not S: otherwise S would become too small, and the errors would accumulate.
"""


class CovarianceFactor(Struct):
    """The covariance of the function."""

    # L, packed, where S = L L'
    root: between(Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_FACTOR, LARGEST_FACTOR)


class Expectation(Struct):
    """The mean of the function, in the coordinates z."""

    # multipliers are alpha = T' expected; there is room for all vectors and one more sample
    expected: between(Real[N_MAX + 1, OUTPUTS], "-alpha_limit", "alpha_limit")


class FactorModel(OnlineModel):
    parts = CovarianceFactor, Expectation


@placeholder
def largest_variance(m: FactorModel) -> Real:
    """An upper bound on every variance in S."""
    return real(0.75) * LARGEST_FACTOR * LARGEST_FACTOR


@kernel
def foresee_by_factor(m: FactorModel) -> Real:
    """Compute loading = L'l and h = L loading.  h is the covariance of z with l'z.  Returns the variance of l'z, which is l'h.  O(N^2)."""
    n = m.n[0]
    lower_transposed_times(m.root, m.l, m.loading, 0, n)
    lower_times(m.root, m.loading, m.h, n)
    known = real(0)
    for j in range(n):
        known += m.loading[j] * m.loading[j]
    return known


@kernel
def learn_factor(m: FactorModel, noise: Real, own: Real) -> None:
    """Update L for a sample with a noisy label, given loading.  own: the variance of the sample's component along z_n.  O(N^2).

    If the sample is stored, the new row of L is -share sqrt(own), with sqrt(noise / (noise + own)) on the diagonal.
    """
    n = m.n[0]
    known = real(0)
    for j in range(n):
        known += m.loading[j] * m.loading[j]
        m.share[j] = real(0)
    if known * known >= ROUNDED * noise:
        narrow_factor(m.root, m.loading, m.narrowing, m.share, noise, own, real(1), n)


# ------------------------------------------------------------------------------------------------------- the mean


@kernel
def draft_mean(m: FactorModel, o: Index, keep: Real, step: Real) -> None:
    """Set m.ph to keep * mean + step * h.  O(N)."""
    for j in range(m.n[0]):
        m.ph[j] = keep * m.expected[j, o] + step * m.h[j]


@kernel
def learn_mean(m: FactorModel, keep: Real, inverse: Real) -> None:
    """Set the mean to keep * mean + inverse * e * h, where e is the error, and inverse is 1 / the variance of e.
    O(N) for each output."""
    for o in range(len(m.error)):
        draft_mean(m, o, keep, m.error[o] * inverse)
        for j in range(m.n[0]):
            m.expected[j, o] = bounded(m.ph[j], m.alpha_limit)


@kernel
def enter_mean(m: FactorModel, n: Index, step: Real) -> None:
    """Set the mean of the sample's own coordinate to the error times ``step``.  O(1) for each output."""
    for o in range(len(m.error)):
        m.expected[n, o] = bounded(m.error[o] * step, m.alpha_limit)


@kernel
def leave_mean(m: FactorModel, r: Index, count: Index) -> None:
    """Remove the coordinate of vector r from the mean, given the rotations of release().  O(N) for each output."""
    for o in range(len(m.expected[0])):
        gathered = m.u[r] * m.expected[r, o]
        for i in range(r + 1, count):
            own = m.expected[i, o]
            turned = m.q[i] * own - m.score[i] * gathered
            gathered += m.u[i] * own
            m.expected[i - 1, o] = bounded(turned, m.alpha_limit)
        m.expected[count - 1, o] = real(0)


@kernel
def renew_multipliers(m: FactorModel) -> Bool:
    """Recompute alpha = T' expected for a new T.  Returns False if a multiplier is out of range.  O(N^2)."""
    n = m.n[0]
    for o in range(len(m.expected[0])):
        for j in range(n):
            m.ph[j] = m.expected[j, o]
        lower_transposed_times(m.t, m.ph, m.ph, 0, n)
        for i in range(n):
            if not (absolute(m.ph[i]) <= m.alpha_limit):
                return False
            m.alpha[i, o] = settle(m.ph[i])
    return True


@kernel
def keeps_mean(m: FactorModel) -> Bool:
    """Whether learning could have led to this state.  O(N^2 + N D).

    keeps() must return True, alpha must equal T' expected except for rounding errors, and unused rows of ``expected``
    must be zero.  [not forgets] No variance in S may exceed largest_variance().
    """
    if not keeps(m):
        return False
    if not m.forgets:
        if not rows_within(m.root, len(m.alpha), largest_variance(m)):
            return False
    for o in range(len(m.expected[0])):
        for i in range(len(m.expected)):
            if i >= m.n[0]:
                if m.expected[i, o] != real(0):
                    return False
            else:
                at = row_of(i)
                total = m.alpha[i, o]
                size = ALPHA_FLOOR
                for j in range(i, len(m.alpha)):
                    at = at + j
                    part = m.t[at - j + i] * m.expected[j, o]
                    at = at + 1
                    total = total - part
                    size += LOOSE * absolute(part)
                if not (absolute(total) <= size):
                    return False
    return True
