"""How a row follows from the row before, and which sensors repeat their values.

Deviations of a row from its regime, whitened, follow from those of the row before by a linear model (a vector autoregression of
order 1, whose root is that of their joint covariance); what does not follow is the *innovation*.  A change of regime is no
surprise by itself: then the row before counts in its own regime, or in the new one, whichever explains more.
"""

from pykernel.algorithms.elementary import log2_of
from pykernel.algorithms.novelty.bank import deviations, lengthened, log_volume
from pykernel.algorithms.novelty.state import LONGEST, WHITE_MOST, GmmModel
from pykernel.algorithms.packed import blend, upper_row_of, whiten
from pykernel.algorithms.vectors import copy, zero
from pykernel.dialect import DIM, Constant, Index, Real, kernel, real, sqrt

LEAST_NEW = Constant(0.03)
RARE = Constant(0.1)
"""Repeats count only of sensors that repeat themselves in a smaller part of the rows."""
TOO_FAR = Constant(9.0)
"""An innovation of more than so many times its usual square counts as that."""
NATURAL = Constant(0.69314718055994530942)
"""ln 2"""
HALF_ROW = Constant(0.5)


@kernel
def innovation(m: GmmModel, pair: Real[DIM * 2]) -> Real:
    """Whiten a pair by what follows from what; returns the square of the innovation, its later half.  O(2 D^2)."""
    whiten(m.joint, pair, 0, len(pair), len(pair), WHITE_MOST)
    square = real(0)
    for i in range(len(m.own), len(pair)):
        square += pair[i] * pair[i]
    return square


@kernel
def innovate(m: GmmModel) -> None:
    """m.pair: the row's innovation, whitened, and m.step its square; what it was made of stays in m.former and m.own.  O(3 D^2)."""
    n = len(m.own)
    deviations(m, m.nearest[0], m.before, m.former)
    copy(m.former, m.pair, n)
    for j in range(n):
        m.pair[n + j] = m.own[j]
    square = innovation(m, m.pair)
    m.step[0] = square
    if m.nearest[0] != m.place[0]:
        deviations(m, m.place[0], m.before, m.change)
        copy(m.change, m.partner, n)
        for j in range(n):
            m.partner[n + j] = m.own[j]
        otherwise = innovation(m, m.partner)
        if otherwise < m.step[0]:
            m.step[0] = otherwise
            copy(m.partner, m.pair, len(m.pair))
            copy(m.change, m.former, n)


@kernel
def surprise_by_course(m: GmmModel) -> None:
    """m.surprise of the course: the innovation's, or if the bank explains the row better, the bank's."""
    own = lengthened(m, m.step[0]) + real(2) * (m.joint_volume[0] + m.volumes[m.nearest[0]])
    m.surprise[0] = own if own < m.surprise[1] else m.surprise[1]


@kernel
def learn_course(m: GmmModel) -> None:
    """Learn how the row followed from the row before, which m.former and m.own hold.  O(4 D^2)."""
    n = len(m.own)
    if m.followed[0] < m.horizon:
        m.followed[0] += 1
    rate = real(1) / real(m.followed[0])
    share = rate
    usual = TOO_FAR * real(n)
    if m.step[0] > usual and m.followed[0] > 6 * n:
        share = rate * (usual / m.step[0])
    part = sqrt(share)
    for j in range(n):
        m.partner[j] = part * m.former[j]
        m.partner[n + j] = part * m.own[j]
    blend(m.joint, m.partner, m.norms, sqrt(real(1) - rate), LEAST_NEW, len(m.partner))
    m.joint_volume[0] = log_volume(m.joint, n, len(m.partner), len(m.partner))


@kernel
def start_course(m: GmmModel, x: Real[DIM]) -> None:
    """Nothing is known of what follows from what.  O(D^2)."""
    zero(m.joint, len(m.joint))
    for i in range(len(m.pair)):
        m.joint[upper_row_of(i, len(m.pair))] = real(1)
    m.followed[0] = 1
    copy(x, m.before, len(x))


# ------------------------------------------------------------------------------------------------------- repeats


@kernel
def surprise_of_repeats(m: GmmModel, x: Real[DIM]) -> Real:
    """How surprising the longest run of one value is, in nats; m.repeater is its sensor.  O(D)."""
    most = real(0)
    m.repeater[0] = 0
    count = real(m.followed[0])
    for j in range(len(x)):
        if x[j] == m.before[j]:
            part = (m.repeats[j] * count + HALF_ROW) / (count + real(1))
            if part < RARE:
                run = real(m.run[j]) + real(1)
                surprise = -(run * (NATURAL * log2_of(part)))
                if surprise > most:
                    most = surprise
                    m.repeater[0] = j
    return most


@kernel
def count_repeats(m: GmmModel, x: Real[DIM]) -> None:
    """Count how long each sensor has had its value.  O(D)."""
    for j in range(len(x)):
        if x[j] == m.before[j]:
            if m.run[j] < LONGEST:
                m.run[j] += 1
        else:
            m.run[j] = 0


@kernel
def learn_repeats(m: GmmModel, x: Real[DIM]) -> None:
    """Learn how often each sensor repeats itself.  O(D)."""
    rate = real(1) / real(m.followed[0])
    for j in range(len(x)):
        same = real(1) if x[j] == m.before[j] else real(0)
        m.repeats[j] = m.repeats[j] + rate * (same - m.repeats[j])
