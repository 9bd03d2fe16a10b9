"""Alarms of a subspace: the level, the smoothed novelty, is above a threshold that keeps a rate in rows, or is fixed.

In an alarm the subspace does not learn, for at most ``relearn_after`` rows.  What lasts longer is the new normal: subspace and
threshold learn it.
"""

from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.novelty.threshold import (
    Threshold,
    ThresholdConfig,
    follow_episode,
    learn_level,
    raise_level,
    settles,
    teach,
    threshold_of,
    valid_episode,
    valid_threshold,
)
from pykernel.algorithms.subspace.state import SubspaceModel
from pykernel.dialect import Bool, Constant, Index, Real, Struct, between, kernel, real

LIMIT_MOST = Constant(2.0**14)


class Monitor(Struct):
    """What the present alarm began with."""

    began: between(Real, -LIMIT_MOST, LIMIT_MOST)  # the threshold then


class MonitorModel(SubspaceModel):
    parts = Monitor, Threshold, ThresholdConfig


@kernel
def limit_of(m: MonitorModel) -> Real:
    """The level above which there is an alarm.  No alarm ends because the threshold learns from it: levels end at 1."""
    if not m.adapts:
        return m.alarm_threshold
    limit = threshold_of(m)
    if m.episode[0] > 0 and m.episode[0] <= m.relearn_after and m.began[0] < limit:
        return m.began[0]
    return limit


@kernel
def watch(m: MonitorModel, score: Real, seen: Index) -> Index:
    """Take a score.  Returns 0: no alarm, 1: an alarm, 2: an alarm, and the sample must not be learned.  O(1)."""
    raise_level(m, score, seen == 0)
    warm = seen < m.warmup
    alarm = False
    limit = limit_of(m)
    if not warm:
        alarm = m.level[0] > limit
    if alarm and m.episode[0] == 0:
        m.began[0] = bounded(limit, LIMIT_MOST)
    follow_episode(m, alarm)
    lasting = m.episode[0] > m.relearn_after
    if m.adapts and m.frozen[0] == 0 and settles(seen, m.warmup):
        if lasting:
            learn_level(m, alarm, not warm, True)
        else:
            teach(m, alarm, not warm, False)
    if not alarm:
        return 0
    return 1 if lasting else 2


@kernel
def valid_monitor(m: MonitorModel) -> Bool:
    """Whether scores could have led to this state of the alarms."""
    if m.level[0] < real(0) or m.level[0] > real(1):
        return False
    return valid_threshold(m) if m.adapts else valid_episode(m)
