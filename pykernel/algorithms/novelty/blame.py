"""Which sensor an alarm is about, and what is wrong with it.

A sensor's share is by how much the squared distance would shrink if the sensor said what the others let expect, z'z - min over
x_j = (P d)_j^2 / P_jj with P the inverse covariance (C. F. Alcala, S. J. Qin, Reconstruction-based contribution, 2009): where one
sensor is wrong, this is largest for that one.
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.novelty.state import WHITE_MOST, GmmModel, GmmStatus
from pykernel.algorithms.novelty.threshold import LEVEL_MOST, threshold_of
from pykernel.algorithms.packed import solve_upper, whiten
from pykernel.algorithms.vectors import copy, plus_product, zero
from pykernel.dialect import DIM, Bool, Constant, Index, Real, absolute, kernel, real, sqrt

BEYOND = Constant(2.0**60)
SOME = Constant(2.0**-40)
LATEST = Constant(0.05)
"""Shares are means of the alarm's rows, of about the latest 20."""
BEGINNING = 2
"""Rows of an alarm in which it matters what follows from the row before; later the row before is faulty, too."""
FEW = 2
"""An alarm of so many rows tells nothing."""
MOSTLY = Constant(0.5)
ROUGH = Constant(28.0)
"""Noise: the mean square of the sensor's steps is more than so many times the usual one."""
MOVED = Constant(0.11)
"""Stuck: the sensor's step is below this part of its usual one."""
ALONE = Constant(2.75)
SHARED = Constant(1.6)
"""A regime: without the sensor, the squared distance would be above so much for each sensor."""
SMOOTH = Constant(0.6)
LIVELY = Constant(1.1)
STEEP = Constant(2.2)
"""A jump: the first row was so many times above the threshold,"""
FAR_STEP = Constant(4.0)
"""and the sensor's step so many usual ones."""


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
    """Nothing is known of the culprit yet."""
    m.told[0] = 0
    m.sudden[0] = real(0)
    m.rough[0] = real(0)
    m.others[0] = real(0)


@kernel
def usual_step(m: GmmModel, j: Index) -> Real:
    """The variance of a sensor's step from row to row.  O(D)."""
    n = len(m.own)
    total = SOME * SOME
    row = 0
    for i in range(n + j + 1):
        then = m.joint[row + j - i] if i <= j else real(0)
        difference = m.joint[row + n + j - i] - then
        total += difference * difference
        row = row + len(m.pair) - i
    return total


@kernel
def tell_on(m: GmmModel, x: Real[DIM], j: Index) -> None:
    """Take the culprit's next step, and what the others would have left.  O(D)."""
    step = bounded((x[j] - m.before[j]) / sqrt(usual_step(m, j)), WHITE_MOST)
    rest = clipped(m.distance[0] - m.parts[j] * m.parts[j], real(0), WHITE_MOST * WHITE_MOST)
    if m.told[0] == 0:
        m.sudden[0] = absolute(step)
    else:
        m.rough[0] = m.rough[0] + (step * step - m.rough[0]) / real(m.told[0])
    if m.told[0] < m.horizon:
        m.told[0] += 1
    m.others[0] = m.others[0] + (rest - m.others[0]) / real(m.told[0])


@kernel
def accuse(m: GmmModel, x: Real[DIM]) -> None:
    """A row is in alarm: find the sensors that it is about.  O(D^3 / 3)."""
    n = len(m.own)
    if m.episode[0] == 1:
        zero(m.shares, n)
        m.still[0] = real(0)
        m.culprit[0] = 0
        m.onset[0] = bounded(m.loud[0] / threshold_of(m), LEVEL_MOST)
        begin_story(m)
    rate = real(1) / real(m.episode[0])
    if rate < LATEST:
        rate = LATEST
    repeats = m.loud[2] > m.loud[0] and m.loud[2] > m.loud[1]
    m.still[0] = clipped(m.still[0] + rate * ((real(1) if repeats else real(0)) - m.still[0]), real(0), real(1))
    if repeats:
        zero(m.parts, n)
        m.parts[m.repeater[0]] = real(1)
    elif m.loud[0] > m.loud[1] and m.episode[0] <= BEGINNING:
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
    tell_on(m, x, best)


@kernel
def shared(m: GmmModel) -> Bool:
    """Whether the alarm is about more than one sensor."""
    return m.others[0] > SHARED * real(len(m.shares))


@kernel
def kind_of(m: GmmModel) -> Index:
    """What is wrong, as far as the alarm's rows tell."""
    spread = m.others[0] / real(len(m.shares))
    if m.told[0] <= FEW:
        return GmmStatus.UNKNOWN
    if m.rough[0] > ROUGH:
        return GmmStatus.NOISE
    if m.still[0] > MOSTLY or (m.sudden[0] < MOVED and spread < ALONE):
        return GmmStatus.STUCK
    if m.onset[0] > STEEP and m.sudden[0] > FAR_STEP:
        return GmmStatus.JUMP
    if m.rough[0] > LIVELY or (m.rough[0] > SMOOTH and spread > SHARED):
        return GmmStatus.REGIME
    if m.onset[0] <= STEEP and spread <= SHARED:
        return GmmStatus.DRIFT
    return GmmStatus.UNKNOWN


@kernel
def forget_blame(m: GmmModel) -> None:
    """Forget what the latest alarm was about."""
    zero(m.shares, len(m.shares))
    m.culprit[0] = 0
    m.still[0] = real(0)
    m.onset[0] = real(0)
    begin_story(m)
