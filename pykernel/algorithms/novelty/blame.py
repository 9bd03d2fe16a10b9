"""Which sensor an alarm is about, and what is wrong with it.

A sensor's share is by how much the squared distance would shrink if the sensor said what the others let expect, z'z - min over
x_j = (P d)_j^2 / P_jj with P the inverse covariance (C. F. Alcala, S. J. Qin, Reconstruction-based contribution, 2009): where one
sensor is wrong, this is largest for that one.
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.novelty.state import WHITE_MOST, GmmModel, GmmStatus
from pykernel.algorithms.packed import solve_upper, whiten
from pykernel.algorithms.vectors import copy, plus_product, zero
from pykernel.dialect import Constant, Index, Real, absolute, kernel, real, sqrt

BEYOND = Constant(2.0**60)
SOME = Constant(2.0**-40)
LATELY = Constant(0.1)
"""Weight of a deviation among the latest."""
LATEST = Constant(0.05)
"""Shares are means of the alarm's rows, of about the latest 20."""
EARLY = 10
"""Rows of an alarm that are its beginning."""
FEW = 3
"""An alarm of so many rows tells nothing."""
MOSTLY = Constant(0.5)
SHARED = Constant(0.4)
"""A regime: no sensor has more than this share, nor more than two equal parts."""
SCATTERED = Constant(0.4)
"""Noise: the square of the mean deviation is less than this part of the mean square."""
GROWN = Constant(1.6)
"""A drift: the deviation has grown by so much."""


@kernel
def blame_bank(m: GmmModel) -> None:
    """m.parts: each sensor's deviation from what its regime and the other sensors let expect.  O(D^3 / 6)."""
    n = len(m.own)
    k = m.nearest[0]
    copy(m.own, m.change, n)
    solve_upper(m.roots[k], m.change, n, n)
    for j in range(n):
        zero(m.turned, n)
        m.turned[j] = real(1)
        whiten(m.roots[k], m.turned, j, n, n, BEYOND)
        own = plus_product(real(0), m.turned, m.turned, n)
        m.parts[j] = bounded(m.change[j] / sqrt(own), WHITE_MOST)


@kernel
def blame_course(m: GmmModel) -> None:
    """m.parts: the same, from what the row before and the other sensors let expect.  O(D^3 / 6)."""
    n = len(m.own)
    copy(m.pair, m.partner, len(m.pair))
    solve_upper(m.joint, m.partner, len(m.pair), len(m.pair))
    for j in range(n):
        m.change[j] = m.partner[n + j]
    for j in range(n):
        zero(m.partner, len(m.partner))
        m.partner[n + j] = real(1)
        whiten(m.joint, m.partner, n + j, len(m.partner), len(m.partner), BEYOND)
        own = plus_product(real(0), m.partner, m.partner, len(m.partner))
        m.parts[j] = bounded(m.change[j] / sqrt(own), WHITE_MOST)


@kernel
def begin_story(m: GmmModel) -> None:
    """Nothing is known of the culprit's deviations yet."""
    m.seen_rows[0] = 0
    m.early[0] = real(0)
    m.late[0] = real(0)
    m.power[0] = real(0)


@kernel
def tell_on(m: GmmModel, deviation: Real) -> None:
    """Take the culprit's next deviation."""
    if m.seen_rows[0] < m.horizon:
        m.seen_rows[0] += 1
    count = real(m.seen_rows[0])
    rate = real(1) / count
    m.power[0] = m.power[0] + rate * (deviation * deviation - m.power[0])
    if m.seen_rows[0] <= EARLY:
        m.early[0] = bounded(m.early[0] + rate * (deviation - m.early[0]), WHITE_MOST)
        m.late[0] = m.early[0]
    else:
        m.late[0] = bounded(m.late[0] + LATELY * (deviation - m.late[0]), WHITE_MOST)


@kernel
def accuse(m: GmmModel) -> None:
    """A row is in alarm: find the sensors that it is about.  O(D^3 / 2)."""
    n = len(m.own)
    begins = m.episode[0] == 1
    if begins:
        zero(m.shares, n)
        m.still[0] = real(0)
        m.culprit[0] = 0
        begin_story(m)
    rate = real(1) / real(m.episode[0])
    if rate < LATEST:
        rate = LATEST
    repeats = m.loud[2] > m.loud[0] and m.loud[2] > m.loud[1]
    m.still[0] = clipped(m.still[0] + rate * ((real(1) if repeats else real(0)) - m.still[0]), real(0), real(1))
    if repeats:
        zero(m.parts, n)
        m.parts[m.repeater[0]] = real(1)
    elif m.loud[0] > m.loud[1]:
        blame_course(m)
    else:
        blame_bank(m)
    total = plus_product(SOME, m.parts, m.parts, n)
    best = 0
    for j in range(n):
        share = m.parts[j] * m.parts[j] / total
        m.shares[j] = clipped(m.shares[j] + rate * (share - m.shares[j]), real(0), real(1))
        if m.shares[j] > m.shares[best]:
            best = j
    if best != m.culprit[0]:
        m.culprit[0] = best
        begin_story(m)
    blame_bank(m)
    tell_on(m, m.parts[best])


@kernel
def kind_of(m: GmmModel) -> Index:
    """What is wrong, as far as the alarm's rows tell."""
    if m.seen_rows[0] <= FEW:
        return GmmStatus.UNKNOWN
    if m.still[0] > MOSTLY:
        return GmmStatus.STUCK
    if m.shares[m.culprit[0]] < SHARED:
        return GmmStatus.REGIME
    if m.early[0] * m.early[0] < SCATTERED * m.power[0] and m.late[0] * m.late[0] < SCATTERED * m.power[0]:
        return GmmStatus.NOISE
    if m.seen_rows[0] > EARLY and absolute(m.late[0]) > GROWN * absolute(m.early[0]):
        return GmmStatus.DRIFT
    return GmmStatus.JUMP


@kernel
def forget_blame(m: GmmModel) -> None:
    """Forget what the latest alarm was about."""
    zero(m.shares, len(m.shares))
    m.culprit[0] = 0
    m.still[0] = real(0)
    begin_story(m)
