"""Alarms: there is an alarm while the level of novelty is above a threshold.  The threshold adapts to a wanted rate.

The odds t / (1 - t) of the threshold t are multiplied by ``more`` at each alarm, and by ``less`` at each other sample.
They settle where rate log more + (1 - rate) log less = 0.  This is a stochastic approximation of the level's quantile
(H. Robbins, S. Monro, 1951).  It needs no scale, and t stays between 0 and 1.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.subspace.state import MOST_ODDS, SubspaceModel
from pykernel.dialect import Bool, Constant, Index, Real, Struct, between, kernel, real

LEAST_ODDS = Constant(2.0**-20)
LEAST_ALARM = Constant(2.0**-12)
"""Thresholds of alarms stay above 2.4e-4: a smaller part that is new is rounding, or nothing."""
NEAR = Constant(1.015625)
"""A level lowers the threshold only if the threshold is at least so many times as high."""


@kernel
def above(part: Real, odds: Real) -> Bool:
    """Whether a part, from 0 to 1, is above the threshold with these odds."""
    return part > odds * (real(1) - part)


@kernel
def odds_of(part: Real) -> Real:
    """part / (1 - part), within the limits of a threshold."""
    rest = real(1) - part
    if rest < LEAST_ODDS:
        rest = LEAST_ODDS
    return clipped(part * (real(1) / rest), LEAST_ODDS, MOST_ODDS)


@kernel
def moved(odds: Real, factor: Real) -> Real:
    """The odds of a threshold times a factor, within their limits."""
    return clipped(odds * factor, LEAST_ODDS, MOST_ODDS)


class Monitor(Struct):
    """The state of the alarms."""

    level: between(Real, 0, 1)  # alarm level: the smoothed novelty score
    odds: between(Real, 0, MOST_ODDS)  # odds t / (1 - t) of the alarm threshold t
    held: Index  # number of latest samples in a row above the threshold; at most relearn_after + 1


class MonitorModel(SubspaceModel):
    parts = (Monitor,)


@kernel
def threshold_of(m: MonitorModel) -> Real:
    """The level above which there is an alarm."""
    return m.odds[0] * (real(1) / (real(1) + m.odds[0])) if m.adapts else m.alarm_threshold


@kernel
def adapt(m: MonitorModel, factor: Real) -> None:
    """Move the threshold."""
    if m.adapts:
        m.odds[0] = clipped(m.odds[0] * factor, LEAST_ALARM, MOST_ODDS)


@kernel
def alarming(m: MonitorModel) -> Bool:
    """Whether the level is above the threshold."""
    return above(m.level[0], m.odds[0]) if m.adapts else m.level[0] > m.alarm_threshold


@kernel
def watch(m: MonitorModel, score: Real, seen: Index) -> Index:
    """Take a score.  Returns 0: no alarm, 1: an alarm, 2: an alarm, and the sample must not be learned.  O(1)."""
    if seen == 0:
        m.level[0] = score
    else:
        m.level[0] += m.smoothing * (score - m.level[0])
    if seen < m.warmup:
        # in the second half of the warm-up, when learning has settled
        if m.adapts and seen >= m.warmup - seen:
            odds = clipped(odds_of(m.level[0]), LEAST_ALARM, MOST_ODDS)
            if odds > m.odds[0]:
                m.odds[0] = odds
        return 0
    if alarming(m):
        if m.held[0] <= m.relearn_after:
            m.held[0] += 1
        if m.held[0] <= m.relearn_after:
            return 2
        # such a long alarm is the new normal
        adapt(m, m.more_alarm)
        return 1
    # an alarm raises the threshold once, after its end; raising it earlier would end the alarm
    if m.held[0] > 0 and m.held[0] <= m.relearn_after:
        adapt(m, m.more_alarm)
    m.held[0] = 0
    # the threshold of a level that stays comes to rest above it, and not on it
    if not above(m.level[0] * NEAR, m.odds[0]):
        adapt(m, m.less_alarm)
    return 0


@kernel
def valid_monitor(m: MonitorModel) -> Bool:
    """Whether scores could have led to this state of the alarms."""
    return m.held[0] >= 0 and m.held[0] <= m.relearn_after + 1
