"""Alarms of a subspace: the level, the smoothed novelty, is above a threshold that keeps a rate in rows, or is fixed.

In an alarm the subspace does not learn, for at most ``relearn_after`` rows.  What lasts longer is the new normal: subspace and
threshold learn it.
"""

from pykernel.algorithms.novelty.threshold import (
    Threshold,
    ThresholdConfig,
    follow_episode,
    learn_level,
    raise_level,
    settles,
    teach,
    threshold_of,
    valid_threshold,
)
from pykernel.algorithms.subspace.state import SubspaceModel
from pykernel.dialect import Bool, Index, Real, kernel, real


class MonitorModel(SubspaceModel):
    parts = Threshold, ThresholdConfig


@kernel
def limit_of(m: MonitorModel) -> Real:
    """The level above which there is an alarm."""
    return threshold_of(m) if m.adapts else m.alarm_threshold


@kernel
def watch(m: MonitorModel, score: Real, seen: Index) -> Index:
    """Take a score.  Returns 0: no alarm, 1: an alarm, 2: an alarm, and the sample must not be learned.  O(1)."""
    raise_level(m, score, seen == 0)
    warm = seen < m.warmup
    alarm = False
    if not warm:
        alarm = m.level[0] > limit_of(m)
    follow_episode(m, alarm)
    lasting = m.episode[0] > m.relearn_after
    if m.adapts and settles(seen, m.warmup):
        if lasting:
            learn_level(m, alarm, not warm)
        else:
            teach(m, alarm, not warm)
    if not alarm:
        return 0
    return 1 if lasting else 2


@kernel
def valid_monitor(m: MonitorModel) -> Bool:
    """Whether scores could have led to this state of the alarms."""
    return valid_threshold(m) and m.level[0] >= real(0) and m.level[0] <= real(1)
