"""Alarms: a level of novelty above a threshold that adapts to a wanted rate of alarms.

A threshold that is multiplied by ``more`` at each alarm and by ``less`` at each sample without one stays where rate log
more + (1 - rate) log less = 0: a stochastic approximation of the level's quantile (H. Robbins, S. Monro, 1951) in
proportions, so that it needs no scale and stays positive.
"""

from pykernel.dialect import Bool, Constant, Index, Real, Struct, kernel, real
from pykernel.numerics import clipped
from pykernel.subspace import SubspaceConfig

LOWEST = Constant(2.0**-20)
"""Thresholds do not fall below: scores are from 0 to 1."""


class Monitor(Struct):
    """What alarms depend on, beside the model."""

    level: Real  # scores, smoothed
    threshold: Real  # the level above which there is an alarm
    held: Index  # samples in a row above it, up to one more than are held


@kernel
def threshold_of(m: Monitor, c: SubspaceConfig) -> Real:
    """The level above which there is an alarm."""
    return m.threshold[0] if c.adapts else c.alarm_threshold


@kernel
def adapt(m: Monitor, c: SubspaceConfig, factor: Real) -> None:
    """Move the threshold."""
    if c.adapts:
        m.threshold[0] = clipped(m.threshold[0] * factor, LOWEST, real(1))


@kernel
def watch(m: Monitor, c: SubspaceConfig, score: Real, seen: Index) -> Index:
    """Take a score; 0, 1: an alarm, 2: an alarm and the sample must not be learned.  O(1)."""
    if seen == 0:
        m.level[0] = score
    else:
        m.level[0] += c.smoothing * (score - m.level[0])
    if seen < c.warmup:
        if c.adapts:
            # where learning has settled: in the second half
            if seen >= c.warmup - seen:
                m.threshold[0] = clipped(m.level[0], m.threshold[0], real(1))
        return 0
    if m.level[0] > threshold_of(m, c):
        if m.held[0] == 0:
            m.held[0] = 1
            adapt(m, c, c.more_alarm)
        elif m.held[0] < c.hold:
            m.held[0] += 1
        else:
            # longer than that it is the new normal
            if m.held[0] == c.hold:
                m.held[0] += 1
            adapt(m, c, c.more_alarm)
        return 2 if m.held[0] <= c.hold else 1
    m.held[0] = 0
    adapt(m, c, c.less_alarm)
    return 0


@kernel
def valid_monitor(m: Monitor, c: SubspaceConfig) -> Bool:
    """Whether scores could have led to it."""
    if not (m.level[0] >= real(0) and m.level[0] <= real(1)):
        return False
    if c.adapts:
        if not (m.threshold[0] >= real(0) and m.threshold[0] <= real(1)):
            return False
    return m.held[0] >= 0 and m.held[0] <= c.hold + 1
