"""The covariance matrix P of a Kalman filter, in integers: P <- lambda (P - t g') + (1 - lambda) P0,
where g = P h, s = R + h'g and t = g / s.  Here h contains the derivatives of f, and R is the noise.

P lies between (1 - lambda) P0 and P0, so it fits in 32 bits.  Every product multiplies two 16-bit numbers: h, P and g
are each scaled by a power of two that makes their elements as large as 16 bits allow.  lambda is 1 - 2^-k.  Each sample
needs one division.  In costs, N is the number of parameters, and B is the number of parameters in a block.

No sum wraps around.  The sum of |h_i| is below 2^16.  Scaling keeps the diagonal of P, and so every |P_ij|, below 2^14.
Hence |g_i| is below 2^30.  Then g is shortened to 15 bits, so |h'g| is below 2^16 2^15.  Unless lambda is
nearly 1, rounding changes P with each sample by less than the (1 - lambda) P0 that the update adds.  If lambda is
nearly 1, rounding changes P by less than what remains of P after the update.  This result was measured, see
``pykernel.spec.families.int16_linear``.  If the memory is damaged, sums wrap around modulo 2^32, and P is reset to P0
as soon as a diagonal element is outside its bounds.
"""

from pykernel.algorithms.extents import GROUP_SIZE, GROUPS, PACKED
from pykernel.algorithms.int16.arithmetic import clip, nearest_shift, places, size
from pykernel.algorithms.int16.frame import VALUE_MOST
from pykernel.dialect import (
    INDEX_MAX,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Model,
    Struct,
    Word,
    as_signed,
    between,
    floor_shift,
    index,
    kernel,
    quotient,
    word,
)

KNOWN = 27
"""P is in units of 2^-KNOWN: a prior of 1 is 2^KNOWN.  A right shift always suffices to convert t g to this unit."""
MANTISSA = 32767
"""Largest magnitude of a 16-bit factor."""
WIDE_MOST = 524288
"""Largest magnitude of an element of h before h is scaled to 16 bits."""
NOISE = 20
"""R is in units of 2^-NOISE."""


class Int16Covariance(Struct):
    """The covariance of the learned parameters."""

    # the lower triangle of P for each block, row by row
    covariance: Int[GROUPS, PACKED]


class Int16CovarianceWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    wide: Int[GROUPS, GROUP_SIZE]  # first h, later g, in 32 bits
    h: between(Int16[GROUPS, GROUP_SIZE], -MANTISSA, MANTISSA)  # first the derivatives of f, later t = g / s
    g: between(Int16[GROUPS, GROUP_SIZE], -MANTISSA, MANTISSA)  # P h


class Int16CovarianceConfig(Config):
    """Parameters, derived from a spec by its family."""

    prior: Int[GROUP_SIZE]  # diagonal of P0
    refines: bool  # whether more than the upper 16 bits of P are used: with a long memory, P's elements differ greatly in size
    forgets: Index  # lambda of one update is 1 - 2^-forgets

    tunable = frozenset({"forgets"})


class Int16CovarianceModel(Model):
    parts = Int16Covariance, Int16CovarianceWork, Int16CovarianceConfig


@kernel
def renew(m: Int16CovarianceModel) -> None:
    """Reset P to the prior.  O(N B)."""
    for block in range(len(m.covariance)):
        for p in range(len(m.covariance[0])):
            m.covariance[block, p] = 0
        at = 0
        for i in range(len(m.prior)):
            m.covariance[block, at] = m.prior[i]
            at += i + 2


@kernel
def condense(m: Int16CovarianceModel) -> Index:
    """Write m.wide / 2^k to m.h, with a k that keeps the sum of |h_i| below 2^16.  Returns k.  O(N)."""
    total = 0
    most = 0
    for block in range(len(m.h)):
        for i in range(len(m.prior)):
            large = size(clip(m.wide[block, i], -WIDE_MOST, WIDE_MOST))
            total += large
            most = large if large > most else most
    # rounding adds less than 1/32 of the sum
    total += floor_shift(total, 5)
    # the largest element should have 15 bits
    reach = total if total > 2 * most else 2 * most
    coarse = clip(places(word(reach)) - 15, 0, 15)
    for block in range(len(m.h)):
        for i in range(len(m.prior)):
            h = clip(m.wide[block, i], -WIDE_MOST, WIDE_MOST)
            m.h[block, i] = clip(nearest_shift(h, coarse), -MANTISSA, MANTISSA)
    return coarse


@kernel
def product_of(m: Int16CovarianceModel, p: Int, h: Int) -> Word:
    """p h / 2^16.  Only the upper 16 bits of p are used, unless m.refines is set."""
    product = word(floor_shift(p, 16) * h)
    return product + word(floor_shift(index((word(p) & 65535) >> 1) * h, 15)) if m.refines else product


@kernel
def spread(m: Int16CovarianceModel) -> Index:
    """Write P h to m.wide; the unit of P h is 2^-(11 + k) times the unit of h.  Returns k, chosen so that
    the largest diagonal element of P times 2^(k - 16) has 14 bits.  O(N B)."""
    most = 1
    for block in range(len(m.covariance)):
        at = 0
        for i in range(len(m.prior)):
            most = m.covariance[block, at] if m.covariance[block, at] > most else most
            at += i + 2
    lift = clip(29 - places(word(most)), 0, 16)
    for block in range(len(m.covariance)):
        # using only P's upper bits rounds P down, by 1/2 on average: half the sum of h makes up for it
        rounded = 0
        for i in range(len(m.prior)):
            rounded += m.h[block, i]
        rounded = 0 if m.refines else floor_shift(rounded, 1)
        at = 0
        for i in range(len(m.prior)):
            own = m.h[block, i]
            total = word(rounded)
            for j in range(i):
                p = as_signed(word(m.covariance[block, at + j]) << lift)
                total += product_of(m, p, m.h[block, j])
                m.wide[block, j] = as_signed(word(m.wide[block, j]) + product_of(m, p, own))
            p = as_signed(word(m.covariance[block, at + i]) << lift)
            m.wide[block, i] = as_signed(total + product_of(m, p, own))
            at += i + 1
    return lift


@kernel
def shorten(m: Int16CovarianceModel) -> Index:
    """Write m.wide / 2^k to m.g, with a k for which the largest element has 15 bits.  Returns k.  O(N)."""
    most = 0
    for block in range(len(m.g)):
        for i in range(len(m.prior)):
            g = clip(m.wide[block, i], -VALUE_MOST, VALUE_MOST)
            m.wide[block, i] = g
            most = size(g) if size(g) > most else most
    coarse = clip(places(word(most)) - 14, 0, 31)
    for block in range(len(m.g)):
        for i in range(len(m.prior)):
            g = clip(m.wide[block, i], -VALUE_MOST, VALUE_MOST)
            m.g[block, i] = clip(nearest_shift(g, coarse), -MANTISSA, MANTISSA)
    return coarse


@kernel
def make_gain(m: Int16CovarianceModel, known: Index, fine: Index, noise: Index) -> Index:
    """Write t = g / (R + h'g) to m.h, for g in units of 2^-known, and h in units of 2^-fine.  Returns k: t is in units of 2^-k.  O(N)."""
    total = word(0)
    for block in range(len(m.h)):
        for i in range(len(m.prior)):
            total += word(m.h[block, i] * m.g[block, i])
    more = clip(as_signed(total), 0, INDEX_MAX)
    # R is converted to the unit of h'g, or both R and h'g to a coarser unit, so that their sum fits in 32 bits
    finer = known + fine - NOISE
    lift = clip(finer, 0, clip(29 - places(word(noise)), 0, 31))
    whole = word(floor_shift(more, clip(finer - lift, 0, 31))) + ((word(noise) << lift) >> clip(-finer, 0, 31))
    unit_places = NOISE + lift if finer >= 0 else NOISE + finer
    # 1 / s
    digits = places(whole) - 14
    leading = index((whole << (31 - places(whole))) >> 17)
    inverse = quotient(536870912, clip(leading, 16384, 32767))
    for block in range(len(m.h)):
        for i in range(len(m.prior)):
            m.h[block, i] = clip(nearest_shift(m.g[block, i] * inverse, 15), -MANTISSA, MANTISSA)
    return 14 + digits + known - unit_places


@kernel
def downdate(m: Int16CovarianceModel, shift: Index) -> None:
    """Update P to lambda (P - t g' / 2^shift) + (1 - lambda) P0.  O(N B / 2).

    P is reset to P0 if a diagonal element is out of bounds: below half of the (1 - lambda) P0 that each sample adds to
    this element, or above 1.5 times the same element of P0.
    """
    half = index((word(1) << shift) >> 1)
    rest = index((word(1) << m.forgets) >> 1)
    whole = True
    for block in range(len(m.covariance)):
        at = 0
        for i in range(len(m.prior)):
            t = m.h[block, i]
            for j in range(i + 1):
                less = floor_shift(t * m.g[block, j] + half, shift)
                p = word(m.covariance[block, at + j]) - word(less)
                m.covariance[block, at + j] = as_signed(p - word(floor_shift(as_signed(p + word(rest)), m.forgets)))
            given = nearest_shift(m.prior[i], m.forgets)
            known = as_signed(word(m.covariance[block, at + i]) + word(given))
            m.covariance[block, at + i] = known
            whole = whole and known >= floor_shift(given, 1) and known <= m.prior[i] + floor_shift(m.prior[i], 1)
            at += i + 1
    if not whole:
        renew(m)


@kernel
def keeps_covariance(m: Int16CovarianceModel, begun: Bool) -> Bool:
    """Whether learning could have led to P.  All elements must be within their bounds.  O(N B).

    begun: whether P has been set to the prior; if not, diagonal elements are not checked.
    """
    for block in range(len(m.covariance)):
        row = 0
        for k in range(len(m.prior)):
            known = m.covariance[block, row + k]
            if begun and (known < floor_shift(m.prior[k], m.forgets + 2) or known > 2 * m.prior[k]):
                return False
            for j in range(k):
                if size(clip(m.covariance[block, row + j], -INDEX_MAX, INDEX_MAX)) > 2 * m.prior[0]:
                    return False
            row += k + 1
    return True
