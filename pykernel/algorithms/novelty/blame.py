"""Find the sensor that explains an alarm, and the kind of fault.

A row's squared distance is z'z, where z is the row's whitened deviation.  A sensor's part of the squared distance is
the amount by which the squared distance would decrease if the sensor had the value that the other sensors predict.  For
sensor j, this amount is (P d)_j^2 / P_jj, where d is the row's deviation and P the inverse covariance (C. F. Alcala,
S. J. Qin, Reconstruction-based contribution, 2009).

A sensor's share in the row is the corresponding decrease of the row's surprise, divided by the sum of these decreases
over all sensors.  The decrease is computed for the course and for the bank, and the larger one is used.  A sensor's
share in the alarm is a mean of its shares in the alarm's rows.  A row that a sensor explains only in part adds little
to the sensor's share.

The kind of fault follows from the sensor's steps and the alarm's first row.

In this file, each input counts as a sensor; only alone() adds up the shares of a sensor's inputs.
"""

from pykernel.algorithms.elementary import bounded, clipped, log2_one_plus
from pykernel.algorithms.novelty.bank import DEVIATION_LEAST
from pykernel.algorithms.novelty.state import WHITE_MOST, GmmModel, GmmStatus
from pykernel.algorithms.novelty.threshold import threshold_of
from pykernel.algorithms.packed import whiten
from pykernel.algorithms.vectors import zero
from pykernel.dialect import DIM, Bool, Constant, Index, Real, absolute, kernel, real, sqrt

WHITE_FACTOR_MOST = Constant(2.0**60)
SOME = Constant(2.0**-40)
LATEST = Constant(0.05)
"""Shares are means over about the latest 20 rows of the alarm."""
REPEATED = Constant(0.25)
"""This fraction of the surprise of repeats is attributed to the sensor that repeats its value."""
ROUGH = Constant(25.0)
"""Noise: the mean square of the sensor's steps is above 25 times the usual mean square."""
LEAP = Constant(6.0)
"""Jump: in the alarm's first row, the sensor differs by more than this many standard deviations from the value that the
previous row and the other sensors predict."""
HALF = Constant(0.5)
"""Jump: in the alarm's first row the sensor's value also changes, and the sensor alone explains more than this fraction
of the innovation.  In a new regime, the values of other sensors change, too."""
MOVED = Constant(0.1)
"""Stuck: more than half of the sensor's steps are below this fraction of its usual step."""
SHARED = Constant(1.6)
"""More than one sensor: without the culprit's part, the squared distance is still above this number times the number of
inputs."""
MOSTLY = Constant(0.7)
"""One sensor with several inputs: the shares of these inputs in the alarm add up to more than this value."""
FAR_OFF = Constant(16.0)
"""If the squared distance without the culprit's part is above this number times the number of inputs, other sensors
jumped, too: the fault is not a jump."""


@kernel
def explain(m: GmmModel, r: Real[...], z: Real[...], parts: Real[DIM], first: Index, n: Index) -> None:
    """Write each sensor's part of z'z to parts.  z: deviations that were whitened with the root r, which has n rows.
    first: the index of the row of r that belongs to the first sensor.  O(D^3 / 6)."""
    for j in range(first, n):
        zero(m.partner, n)
        m.partner[j] = real(1)
        whiten(r, m.partner, j, n, WHITE_FACTOR_MOST)
        own = real(0)
        along = real(0)
        for i in range(j, n):
            own += m.partner[i] * m.partner[i]
            along += m.partner[i] * z[i]
        part = bounded(along / sqrt(own), WHITE_MOST)
        parts[j - first] = part * part


@kernel
def left_of(square: Real, part: Real) -> Real:
    """A squared distance without a sensor's part."""
    return clipped(square - part, real(0), WHITE_MOST * WHITE_MOST)


@kernel
def begin_story(m: GmmModel) -> None:
    """Reset the statistics of the culprit."""
    m.reported[0] = 0
    m.calm[0] = real(0)
    m.rough[0] = real(0)
    m.others[0] = real(0)


@kernel
def usual_step(m: GmmModel, j: Index) -> Real:
    """The variance of a sensor's step from row to row.  O(D)."""
    n = len(m.own)
    total = DEVIATION_LEAST * DEVIATION_LEAST
    row = 0
    for i in range(n + j + 1):
        difference = m.joint[row + n + j - i]
        if i <= j:
            difference = difference - m.joint[row + j - i]
        total += difference * difference
        row = row + len(m.pair) - i
    return total


@kernel
def tell_on(m: GmmModel, x: Real[DIM], j: Index) -> None:
    """Update the means over the culprit's steps, and the mean squared distance without the culprit's part.  O(D)."""
    step = bounded((x[j] - m.before[j]) / sqrt(usual_step(m, j)), WHITE_MOST)
    if m.reported[0] > 0:
        m.rough[0] = m.rough[0] + (step * step - m.rough[0]) / real(m.reported[0])
    if m.reported[0] < m.horizon:
        m.reported[0] += 1
    rate = real(1) / real(m.reported[0])
    still = real(1) if absolute(step) < MOVED else real(0)
    m.calm[0] = m.calm[0] + rate * (still - m.calm[0])
    m.others[0] = m.others[0] + rate * (left_of(m.distance[0], m.parts[j]) - m.others[0])


@kernel
def accuse(m: GmmModel, x: Real[DIM]) -> None:
    """Update each sensor's share in the alarm, and find the culprit, which is the sensor with the largest share.  O(D^3 / 3)."""
    n = len(m.own)
    explain(m, m.joint, m.pair, m.turned, n, len(m.pair))
    explain(m, m.roots[m.nearest[0]], m.own, m.parts, 0, n)
    begins = m.episode[0] == 1
    if begins:
        m.abrupt[0] = 1 if m.loud[0] > threshold_of(m) else 0
    total = SOME
    for j in range(n):
        if begins:
            m.shares[j] = real(0)
            leap = m.turned[j] > HALF * m.innovation[0] and x[j] != m.before[j]
            m.leaps[j] = bounded(m.turned[j], WHITE_MOST) if leap else real(0)
        by_course = m.turned[j] / (m.tail_of_rows + left_of(m.innovation[0], m.turned[j]))
        by_bank = m.parts[j] / (m.tail_of_rows + left_of(m.distance[0], m.parts[j]))
        # just after a regime has become normal, the bank has already learned it but the course has not, so only the bank is used
        if m.settling[0] > 0 or by_course < by_bank:
            by_course = by_bank
        part = log2_one_plus(by_course)
        if j == m.repeater[0]:
            part = part + REPEATED * m.loud[2]
        m.turned[j] = part
        total += part
    rate = real(1) / real(m.episode[0])
    if rate < LATEST:
        rate = LATEST
    best = 0
    for j in range(n):
        m.shares[j] = m.shares[j] + rate * (m.turned[j] / total - m.shares[j])
        if m.shares[j] > m.shares[best]:
            best = j
    if begins or best != m.culprit[0]:
        m.culprit[0] = best
        begin_story(m)
    tell_on(m, x, best)


@kernel
def alone(m: GmmModel) -> Bool:
    """Whether the inputs of the culprit's sensor have most of the shares in the alarm.  O(D)."""
    own = real(0)
    for j in range(len(m.shares)):
        if m.sensors[j] == m.sensors[m.culprit[0]]:
            own += m.shares[j]
    return own > MOSTLY


@kernel
def shared(m: GmmModel) -> Bool:
    """Whether more than one sensor is needed to explain the alarm."""
    if m.grouped:
        single = alone(m)
        if single:
            return False
    return m.others[0] > SHARED * real(len(m.shares))


@kernel
def kind_of(m: GmmModel) -> Index:
    """The kind of fault, as far as the alarm's rows show: DRIFT if one sensor changes slowly, REGIME if several change at once."""
    if m.reported[0] < 2:
        return GmmStatus.UNKNOWN
    if m.rough[0] > ROUGH:
        return GmmStatus.NOISE
    if m.leaps[m.culprit[0]] > LEAP * LEAP:
        if m.grouped:
            single = alone(m)
            if single:
                return GmmStatus.JUMP
        return GmmStatus.REGIME if m.others[0] > FAR_OFF * real(len(m.shares)) else GmmStatus.JUMP
    if m.calm[0] > HALF:
        return GmmStatus.STUCK
    if shared(m):
        return GmmStatus.REGIME if m.abrupt[0] != 0 else GmmStatus.UNKNOWN
    return GmmStatus.UNKNOWN if m.abrupt[0] != 0 else GmmStatus.DRIFT
