"""A bank of Gaussians, one for each regime of a machine.  The Gaussians are created and merged as rows arrive.

Each Gaussian has a mean and a covariance R'R, stored as the upper triangular root R.  The roots are updated by
rotations, so every covariance stays positive definite.  Each row is learned by the Gaussian that explains it best.
Rows that no Gaussian explains are learned by a candidate Gaussian, which becomes a regime when it has learned enough
rows (P. M. Engel, M. R. Heinen, Incremental learning of multivariate Gaussian mixture models, 2010).  If the bank is
full, the two regimes whose merger reduces the likelihood least are merged to make room (A. R. Runnalls,
Kullback-Leibler approach to Gaussian mixture reduction, 2007).
"""

from pykernel.algorithms.elementary import clipped, log2_of, log2_one_plus
from pykernel.algorithms.novelty.state import SCORE_MOST, WEIGHT_MOST, WHITE_MOST, GmmModel
from pykernel.algorithms.packed import blend, take_up, upper_row_of, whiten
from pykernel.algorithms.vectors import copy, plus_product, zero
from pykernel.dialect import (
    DIM,
    Bool,
    Constant,
    Index,
    Real,
    absolute,
    floor_log2,
    floor_shift,
    kernel,
    pow2,
    real,
    sqrt,
)

LEAST_OWN = Constant(0.03)
"""Smallest residual standard deviation of a sensor, given the earlier sensors, relative to the sensor's standard deviation."""
GRAIN = Constant(2.0**-20)
"""Smallest standard deviation of a sensor, relative to its mean: a smaller value is treated as rounding error."""
DEVIATION_LEAST = Constant(2.0**-62)
STEP = Constant(0.28867513459481288)
"""Smallest standard deviation of a sensor, relative to its smallest step: 1 / sqrt(12), as for a uniform rounding error."""
FIRST = Constant(2.0**-10)
"""Standard deviation of a sensor after the first row, relative to its value."""
CANDIDATE = Constant(0.3)
"""Standard deviations of a candidate after its first row, relative to those of the nearest regime."""
BARRED_REACH = Constant(4.0)
"""A rejected regime explains rows whose squared distance is at most this multiple of ``outlying``.  The multiple is
large because the shape of a rejected regime stays inaccurate: the regime learns nothing more."""
FAR = 40
"""If a product is above 2^FAR or below 2^-FAR, its exponent is moved to a counter, so that the product stays within the range of a real."""
GIVEN_UP = 3
"""A candidate is dropped when the known regimes have learned more than this many rows for each row of the candidate."""
KEPT = Constant(1 - 1 / 5000)
"""The weights are multiplied by this factor at each row."""
WEIGHT_LEAST = Constant(2.0**-10)
"""A weight decays only while it is above this value."""


@kernel
def log_volume(r: Real[...], first: Index, n: Index) -> Real:
    """log2 of the product of a triangular matrix's diagonal elements.  first: the row of the first factor.  O(n)."""
    whole = 0
    product = real(1)
    row = upper_row_of(first, n)
    for i in range(first, n):
        product = product * r[row]
        exponent = floor_log2(product)
        if exponent > FAR or exponent < -FAR:
            whole = whole + exponent
            product = product * pow2(-exponent)
        row = row + n - i
    return real(whole) + log2_of(product)


@kernel
def deviations(m: GmmModel, k: Index, x: Real[DIM], z: Real[...]) -> None:
    """Write to z the whitened deviation of x from the mean of Gaussian k.  O(D^2 / 2)."""
    for j in range(len(x)):
        z[j] = x[j] - m.means[k, j]
    whiten(m.roots[k], z, 0, len(x), WHITE_MOST)


@kernel
def lengthened(m: GmmModel, square: Real) -> Real:
    """(nu + D) log2(1 + square / nu): the part of twice the surprise, in bits, that depends on ``square``.  The
    surprise is measured under a t-distribution."""
    return (m.tail_of_rows + real(len(m.own))) * log2_one_plus(square * (real(1) / m.tail_of_rows))


@kernel
def is_strange(m: GmmModel) -> Bool:
    """Whether the row is too far from the nearest Gaussian.  False if this Gaussian has too few rows to judge the row."""
    return m.distance[0] > m.outlying and m.counts[m.nearest[0]] > m.fresh


@kernel
def look_around(m: GmmModel, x: Real[DIM]) -> None:
    """Find the normal regime that explains a row best, and the row's surprise.  Determine whether a rejected regime
    explains the row.  O(K D^2 / 2)."""
    total = real(0)
    for k in range(m.known[0]):
        total += m.weights[k]
    m.nearest[0] = 0
    m.forbidden[0] = 0
    m.barring[0] = 0
    least = SCORE_MOST
    barred = SCORE_MOST
    for k in range(m.known[0]):
        deviations(m, k, x, m.turned)
        square = plus_product(real(0), m.turned, m.turned, len(x))
        score = lengthened(m, square) + real(2) * (volume(m, k) - log2_of(m.weights[k] / total))
        if m.rejected[k] != 0:
            if square <= BARRED_REACH * m.outlying and score < barred:
                barred = score
                m.barring[0] = k
        elif score < least:
            least = score
            m.nearest[0] = k
            m.distance[0] = square
            copy(m.turned, m.own, len(x))
    m.surprise[1] = least
    strange = is_strange(m)
    if barred < least or (strange and barred < SCORE_MOST):
        m.forbidden[0] = 1


@kernel
def keep_wide(m: GmmModel, r: Real[...], middle: Real[DIM], n: Index) -> None:
    """Raise each diagonal element of a root to at least the standard deviation of the sensor's rounding errors, and to at least
    that of its quantisation.  O(n)."""
    row = 0
    for i in range(n):
        j = i if i < len(middle) else i - len(middle)
        least = GRAIN * absolute(middle[j]) + DEVIATION_LEAST
        if STEP * m.least_step[j] > least:
            least = STEP * m.least_step[j]
        if r[row] < least:
            r[row] = least
        row = row + n - i


@kernel
def begin_root(m: GmmModel, r: Real[...], x: Real[DIM], n: Index) -> None:
    """Replace a root of zeros by a diagonal root: after one row, the sensors are treated as uncorrelated.  O(n)."""
    row = 0
    for i in range(n):
        r[row] = FIRST * absolute(x[i if i < len(x) else i - len(x)])
        row = row + n - i
    keep_wide(m, r, x, n)


@kernel
def learn_root(m: GmmModel, r: Real[...], z: Real[...], middle: Real[DIM], rate: Real, n: Index) -> None:
    """Update a root with the deviations z.  Overwrites z.  O(n^2)."""
    blend(r, z, m.norms, sqrt(real(1) - rate), LEAST_OWN, n)
    keep_wide(m, r, middle, n)


@kernel
def volume(m: GmmModel, k: Index) -> Real:
    """log2 of the determinant of a Gaussian's root.  O(D)."""
    return log_volume(m.roots[k], 0, len(m.own))


@kernel
def absorb(m: GmmModel, k: Index, x: Real[DIM]) -> None:
    """Let a Gaussian learn a row, with weight 1 / count in the mean and the covariance.  O(D^2)."""
    if m.counts[k] < m.horizon:
        m.counts[k] += 1
    rate = real(1) / real(m.counts[k])
    share = sqrt(rate * (real(1) - rate))
    for j in range(len(x)):
        difference = x[j] - m.means[k, j]
        m.turned[j] = share * difference
        m.means[k, j] = m.means[k, j] + rate * difference
    learn_root(m, m.roots[k], m.turned, m.means[k], rate, len(x))


@kernel
def vacate(m: GmmModel, k: Index) -> None:
    """Forget a Gaussian.  O(D^2)."""
    zero(m.means[k], len(m.means[0]))
    zero(m.roots[k], len(m.roots[0]))
    m.counts[k] = 0


@kernel
def copy_to(m: GmmModel, k: Index, to: Index) -> None:
    """Copy a Gaussian to another place.  O(D^2)."""
    copy(m.means[k], m.means[to], len(m.means[0]))
    copy(m.roots[k], m.roots[to], len(m.roots[0]))
    m.counts[to] = m.counts[k]


@kernel
def start_at(m: GmmModel, k: Index, x: Real[DIM]) -> None:
    """Start a Gaussian around its first row.  O(D^2)."""
    copy(x, m.means[k], len(x))
    begin_root(m, m.roots[k], x, len(x))
    m.counts[k] = 1


# ------------------------------------------------------------------------------------------------------- merging


@kernel
def begin_search(m: GmmModel) -> None:
    """Restart the search for a pair to merge."""
    m.sought[0] = 0
    m.merge_first[0] = 0
    m.merge_second[0] = 0
    m.merge_loss[0] = real(0)


@kernel
def heavy(m: GmmModel, k: Index) -> Real:
    """A regime's weight, but at least the weight of one row."""
    return m.weights[k] if m.weights[k] > real(1) else real(1)


@kernel
def part_of_both(m: GmmModel, i: Index, j: Index) -> Real:
    """Regime i's share of the total weight of regimes i and j."""
    return heavy(m, i) / (heavy(m, i) + heavy(m, j))


@kernel
def merge_roots(m: GmmModel, i: Index, j: Index) -> None:
    """Write to m.merged the root of the covariance of the mixture of Gaussians i and j.  O(D^3 / 3)."""
    part = part_of_both(m, i, j)
    rest = real(1) - part
    here = sqrt(part)
    there = sqrt(rest)
    n = len(m.own)
    for c in range(len(m.merged)):
        m.merged[c] = here * m.roots[i, c]
    row = 0
    for c in range(n):
        for a in range(c, n):
            m.turned[a] = there * m.roots[j, row + a - c]
        take_up(m.merged, m.turned, DEVIATION_LEAST, c, n, n)
        row = row + n - c
    between = sqrt(part * rest)
    for a in range(n):
        m.turned[a] = between * (m.means[j, a] - m.means[i, a])
    take_up(m.merged, m.turned, DEVIATION_LEAST, 0, n, n)


@kernel
def loss_of_merging(m: GmmModel, i: Index, j: Index) -> Real:
    """Loss of log-likelihood over all rows if two Gaussians are merged.  O(D^3 / 3)."""
    merge_roots(m, i, j)
    both = log_volume(m.merged, 0, len(m.own))
    return heavy(m, i) * (both - volume(m, i)) + heavy(m, j) * (both - volume(m, j))


@kernel
def compare_next(m: GmmModel) -> None:
    """If not all pairs of regimes have been compared, compute the loss of merging the next pair, and keep the best pair.  O(D^3 / 3)."""
    i = 1
    j = m.sought[0]
    for c in range(len(m.weights)):
        if j >= i:
            j = j - i
            i = i + 1
    if i < m.known[0] and j < i:
        m.sought[0] += 1
        if m.rejected[i] == 0 and m.rejected[j] == 0:
            loss = loss_of_merging(m, i, j)
            if m.merge_first[0] == m.merge_second[0] or loss < m.merge_loss[0]:
                m.merge_loss[0] = loss
                m.merge_first[0] = j
                m.merge_second[0] = i


@kernel
def compare_all(m: GmmModel) -> None:
    """Compare all remaining pairs of regimes, if the bank is full.  O(K^2 D^3 / 6)."""
    if m.known[0] == len(m.weights):
        for i in range(len(m.weights)):
            for j in range(i):
                compare_next(m)


@kernel
def merge_nearest(m: GmmModel) -> Index:
    """Merge the two regimes that the search has found.  Returns the place that becomes free.  O(D^3 / 3)."""
    first = m.merge_first[0]
    second = m.merge_second[0]
    merge_roots(m, first, second)
    part = real(1) - part_of_both(m, first, second)
    copy(m.merged, m.roots[first], len(m.merged))
    for a in range(len(m.own)):
        m.means[first, a] = m.means[first, a] + part * (m.means[second, a] - m.means[first, a])
    keep_wide(m, m.roots[first], m.means[first], len(m.own))
    # acknowledged regimes have at least the mean weight, so that the sum of all weights may grow
    m.weights[first] = clipped(m.weights[first] + m.weights[second], real(0), real(2 * WEIGHT_MOST))
    together = m.counts[first] + m.counts[second]
    m.counts[first] = together if together < m.horizon else m.horizon
    return second


# ------------------------------------------------------------------------------------------------- birth and fading


@kernel
def gather(m: GmmModel, x: Real[DIM]) -> None:
    """Let the candidate learn a row.  O(D^2)."""
    k = len(m.weights)
    if m.counts[k] == 0:
        copy(x, m.means[k], len(x))
        for i in range(len(m.roots[0])):
            m.roots[k, i] = CANDIDATE * m.roots[m.nearest[0], i]
        keep_wide(m, m.roots[k], m.means[k], len(m.own))
        m.counts[k] = 1
    else:
        absorb(m, k, x)


@kernel
def compare_some(m: GmmModel) -> None:
    """If the bank is full and the candidate has more than one row, compare the next pairs of regimes."""
    if m.known[0] == len(m.weights) and m.counts[len(m.weights)] > 1:
        for pair in range(m.pairs_a_row):
            compare_next(m)


@kernel
def compares_early(m: GmmModel) -> Bool:
    """Whether all pairs are compared before the row that makes the candidate a regime.  If so, this row compares no
    pairs, so that it costs less."""
    rows = m.patience if m.patience < m.relearn_soon else m.relearn_soon
    return m.pairs_a_row * (rows - 2) >= floor_shift(len(m.weights) * (len(m.weights) - 1), 1)


@kernel
def drop_candidate(m: GmmModel) -> None:
    """Forget the candidate.  O(D^2)."""
    vacate(m, len(m.weights))
    m.unmet[0] = 0
    begin_search(m)


@kernel
def renew(m: GmmModel, x: Real[DIM]) -> None:
    """Let the nearest Gaussian learn a row.  Drop the candidate if it has learned too few of the rows since it began.  O(D^2)."""
    k = m.nearest[0]
    m.weights[k] += real(1)
    absorb(m, k, x)
    if m.counts[len(m.weights)] > 0:
        if m.unmet[0] < m.unmet_most:
            m.unmet[0] += 1
        if m.unmet[0] > GIVEN_UP * m.counts[len(m.weights)]:
            drop_candidate(m)


@kernel
def fade(m: GmmModel) -> None:
    """Let the weights decay, except those of rejected regimes."""
    for k in range(m.known[0]):
        if m.rejected[k] == 0 and m.weights[k] > WEIGHT_LEAST:
            m.weights[k] = KEPT * m.weights[k]


@kernel
def normal_regimes(m: GmmModel) -> Index:
    """Number of regimes that are not rejected."""
    normal = 0
    for k in range(m.known[0]):
        if m.rejected[k] == 0:
            normal = normal + 1
    return normal


@kernel
def has_room(m: GmmModel) -> Bool:
    """Whether a further regime can be admitted: the bank has a free place, or two regimes that can be merged."""
    return m.known[0] < len(m.weights) or normal_regimes(m) > 1


@kernel
def lend_shape(m: GmmModel) -> None:
    """If the candidate has few rows, give it the covariance of the regime that explains its mean best.  O(K D^2 / 2)."""
    last = len(m.weights)
    if m.counts[last] <= m.fresh:
        look_around(m, m.means[last])
        copy(m.roots[m.nearest[0]], m.roots[last], len(m.roots[0]))


@kernel
def mean_weight(m: GmmModel) -> Real:
    """Mean weight of the regimes."""
    total = real(0)
    for k in range(m.known[0]):
        total += m.weights[k]
    return total / real(m.known[0])


@kernel
def admit(m: GmmModel, rejected: Index, least: Real) -> None:
    """Make the candidate a regime with a weight of at least ``least``.  O(D^3 / 3) if the bank is full."""
    k = m.known[0]
    if k < len(m.weights):
        m.known[0] = k + 1
    else:
        k = merge_nearest(m)
    copy_to(m, len(m.weights), k)
    m.weights[k] = real(m.counts[k])
    if m.weights[k] < least:
        m.weights[k] = least
    m.rejected[k] = rejected
    m.newest[0] = k + 1
    drop_candidate(m)


@kernel
def drop_newest(m: GmmModel) -> None:
    """Remove the newest regime, and move the last regime of the bank to its place.  O(D^2)."""
    k = m.newest[0] - 1
    m.known[0] = m.known[0] - 1
    last = m.known[0]
    copy_to(m, last, k)
    m.weights[k] = m.weights[last]
    m.rejected[k] = m.rejected[last]
    vacate(m, last)
    m.weights[last] = real(0)
    m.rejected[last] = 0
    m.newest[0] = 0
    begin_search(m)
