"""Predict each row from the previous row, and find sensors that repeat their values.

The *course* is a vector autoregression of order 1, which predicts a row from the previous row.  It is stored as the
root of the joint covariance of two consecutive rows.  The prediction error is the *innovation*.  The surprise under the
course is never larger than the surprise under the bank, so a change between known regimes is not surprising.
"""

from pykernel.algorithms.elementary import log2_of
from pykernel.algorithms.novelty.bank import begin_root, learn_root, lengthened, log_volume
from pykernel.algorithms.novelty.state import LONGEST, WHITE_MOST, GmmModel
from pykernel.algorithms.packed import whiten
from pykernel.algorithms.vectors import copy
from pykernel.dialect import DIM, Constant, Real, absolute, kernel, real, sqrt

RARE = Constant(0.1)
"""Repeats can be surprising only if the sensor usually repeats its value in less than this fraction of the rows."""
TOO_FAR = Constant(9.0)
"""An innovation whose square is more than this many times the usual square is learned with less weight."""
NATURAL = Constant(0.69314718055994530942)
"""ln 2"""
HALF_ROW = Constant(0.5)


@kernel
def innovate(m: GmmModel, x: Real[DIM]) -> None:
    """Whiten the previous row and this row together, write both to m.pair, and write the squared innovation to m.innovation.  O(2 D^2)."""
    n = len(x)
    for j in range(n):
        m.pair[j] = m.before[j] - m.middle[j]
        m.pair[n + j] = x[j] - m.middle[j]
    whiten(m.joint, m.pair, 0, len(m.pair), WHITE_MOST)
    square = real(0)
    for i in range(n, len(m.pair)):
        square += m.pair[i] * m.pair[i]
    m.innovation[0] = square


@kernel
def surprise_by_course(m: GmmModel) -> None:
    """Write the surprise under the course to m.surprise[0]: the surprise of the innovation, but at most the surprise under the bank."""
    own = lengthened(m, m.innovation[0]) + real(2) * log_volume(m.joint, len(m.own), len(m.pair))
    m.surprise[0] = own if own < m.surprise[1] else m.surprise[1]


@kernel
def learn_course(m: GmmModel, x: Real[DIM]) -> None:
    """Let the course learn a row.  O(4 D^2)."""
    n = len(x)
    if m.followed[0] < m.horizon:
        m.followed[0] += 1
    rate = real(1) / real(m.followed[0])
    share = rate
    usual = TOO_FAR * real(n)
    if m.innovation[0] > usual and m.followed[0] > 6 * n:
        share = rate * (usual / m.innovation[0])
    part = sqrt(share * (real(1) - rate))
    for j in range(n):
        difference = x[j] - m.middle[j]
        m.partner[j] = part * (m.before[j] - m.middle[j])
        m.partner[n + j] = part * difference
        m.middle[j] = m.middle[j] + share * difference
    learn_root(m, m.joint, m.partner, m.middle, rate, len(m.pair))


@kernel
def start_course(m: GmmModel, x: Real[DIM]) -> None:
    """Start the course at the first row.  O(D^2)."""
    copy(x, m.middle, len(x))
    copy(x, m.before, len(x))
    begin_root(m, m.joint, x, len(m.pair))
    m.followed[0] = 1


# ------------------------------------------------------------------------------------------------------- repeats


@kernel
def surprise_of_repeats(m: GmmModel, x: Real[DIM]) -> Real:
    """Surprise, in nats, of the most surprising run of equal values.  Sets m.repeater to the sensor with this run.  O(D)."""
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
def pass_on(m: GmmModel, x: Real[DIM], rate: Real) -> None:
    """Store the row as the previous row, and count for how many rows each sensor has kept its value.  If ``rate`` is
    above 0, also update the fraction of the rows in which each sensor repeats its value, and the sensor's smallest step.  O(D)."""
    for j in range(len(x)):
        step = absolute(x[j] - m.before[j])
        same = real(0)
        if step == real(0):
            same = real(1)
            if m.run[j] < LONGEST:
                m.run[j] += 1
        else:
            m.run[j] = 0
            if rate > real(0) and (m.least_step[j] == real(0) or step < m.least_step[j]):
                m.least_step[j] = step
        m.repeats[j] = m.repeats[j] + rate * (same - m.repeats[j])
        m.before[j] = x[j]
