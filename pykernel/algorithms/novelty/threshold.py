"""The alarm threshold for the level of novelty.  The threshold adapts to keep the fraction of rows in alarm at the wanted rate.

The threshold is q + e (c + s).  q is the level that a fraction p of the rows exceeds; it is estimated by stochastic approximation of the
quantile (H. Robbins, S. Monro, 1951).  e is the mean excess of these rows over q.  In a generalised Pareto distribution with this mean (J.
Pickands, 1975), the fraction ``alarm_rate`` of the rows exceeds q + c e.  s corrects this threshold: s is raised at each row in alarm, and
lowered at every other row (I. Gibbs, E. Candes, Adaptive conformal inference under distribution shift, 2021).  So ``alarm_rate`` is the
false-alarm rate: the fraction of the fault-free rows that are in alarm.

An *episode* is an alarm, including gaps of a few quiet rows.  The threshold learns only from the first rows of an
episode: a lasting fault must not become usual.  An episode is one event, so only its first row changes e at the usual
rate; the other rows change e at the low rate of a monitor that has run for ``threshold_horizon`` rows.  Otherwise a
fault could raise the threshold of a young monitor above the level of the fault itself.  When the state in a long alarm has become normal,
the monitor ends the episode.

If ``arms`` is set, the monitor is *armed* when its commissioning ends.  It then treats alarms beyond the wanted rate as
faults, so that repeated faults do not raise the threshold.  To this end, a budget of tokens limits the number of rows
in alarm from which the threshold learns.  Also, e follows the median of the excess instead of the mean, and the bounds
on e and s are tighter.

A surprise in the first rows would set q far too high, and q falls slowly.  So in the warm-up, when there are no alarms, the threshold
starts again if no level has been above q for a long time (``UNEXCEEDED``).
"""

from types import MappingProxyType

from pykernel.algorithms.elementary import LN_2, bounded, clipped
from pykernel.dialect import (
    Bool,
    Config,
    Constant,
    Index,
    Model,
    Real,
    Struct,
    Uint8,
    Uint16,
    between,
    floor_shift,
    kernel,
    real,
)

LEVEL_MOST = Constant(64.0)
"""Largest |level|."""
WHITE_MOST = Constant(2.0**20)
"""Largest magnitude of a whitened number, in standard deviations."""
SCORE_MOST = Constant(2.0**24)
"""Largest surprise."""
SHIFT_MOST = Constant(64.0)
EXCESS_MOST = Constant(128.0)
"""Bounds on s and e before the monitor is armed."""
UNEXCEEDED = 60
"""If the levels of this many consecutive rows in the warm-up are at most q, then q is too high, and the threshold
starts again.  If p is 0.1, the probability of so many such rows by chance is 0.9^60, two in a thousand."""
TAUGHT = 10
"""The threshold learns from this many rows at the beginning of an episode."""
TAUGHT_ARMED = 20
"""Once the monitor is armed, the threshold learns from this many rows at the beginning of an episode."""
GAP = 5
"""Longest gap in an episode, in rows."""
LONG = 16_777_216
"""Rows are counted up to this number, which a float32 holds exactly."""
STEP_FIRST = Constant(4.0)
STEP_LEAST = Constant(0.01)
"""The step of q, relative to e, is STEP_FIRST / (n + STEP_FIRST) after n learned rows, but at least STEP_LEAST."""


class Threshold(Struct):
    """The state of the alarms."""

    level: between(Real, -LEVEL_MOST, LEVEL_MOST)  # the smoothed novelty
    quantile: between(Real, -LEVEL_MOST, LEVEL_MOST)  # q: the level that a fraction ``upper`` of the usual rows exceeds
    excess: between(Real, 0, EXCESS_MOST)  # e: mean excess over q
    shift: between(Real, -SHIFT_MOST, SHIFT_MOST)  # s: the correction that keeps the wanted alarm rate
    taught: between(Uint16, 0, "threshold_horizon")  # number of rows that q and e have learned, at most the horizon
    below: between(Uint8, 0, UNEXCEEDED)  # number of rows learned since the level was last above q
    episode: between(Index, 0, LONG)  # length of the present episode so far, in rows; 0: there is none
    quiet: between(Uint8, 0, GAP)  # number of quiet rows since the episode's latest row in alarm
    # number of rows after the warm-up; counting stops when the monitor is armed
    age: between(Index, 0, "commissioning")
    tokens: between(Real, 0, "tokens_most")  # number of rows in alarm from which the threshold may still learn

    soon = MappingProxyType({"age": "commissioning"})


class ThresholdConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.novelty``."""

    alarm_rate: Real  # fraction of the fault-free rows that should be in alarm
    upper: Real  # p: fraction of the rows that exceed q; larger than alarm_rate
    tail: Real  # c: the fraction ``alarm_rate`` of the rows should exceed q + c e
    level_end: Real  # largest level
    inside: Real  # 1 - alarm_rate / p
    correction: Real  # a row in alarm raises the threshold by about this number times e
    smoothing: Real  # weight of a new score in the level; 1: the level is the score
    excess_first: Real  # initial value of e
    excess_least: Real  # smallest value of e: a smaller one is treated as rounding error
    excess_limit: Real  # largest value of e once armed
    shift_limit: Real  # largest value of s once armed
    arms: bool  # whether the monitor is armed after its commissioning
    fixed: bool  # whether the threshold stops learning once the monitor is armed
    commissioning: Index  # number of rows after the warm-up until the monitor is armed
    tokens_most: Real  # largest number of tokens; an armed monitor pays one token to learn a row in alarm
    token_rate: Real  # number of tokens that each row adds
    threshold_horizon: Index  # number of recent rows that q and e describe


class ThresholdModel(Model):
    parts = Threshold, ThresholdConfig


@kernel
def threshold_of(m: ThresholdModel) -> Real:
    """The level above which there is an alarm."""
    beyond = m.excess[0] * m.tail
    # no level is above ``level_end``: q + c e must not exceed the threshold for levels distributed uniformly from q to ``level_end``
    room = m.inside * (m.level_end - m.quantile[0])
    if beyond > room:
        beyond = room
    return m.quantile[0] + beyond + m.excess[0] * m.shift[0]


@kernel
def raise_level(m: ThresholdModel, score: Real, first: Bool) -> None:
    """Update the level with a score."""
    before = score if first else m.level[0]
    m.level[0] = bounded(before + m.smoothing * (score - before), LEVEL_MOST)


@kernel
def follow_episode(m: ThresholdModel, alarm: Bool) -> None:
    """Count the row as part of an episode, or end the episode."""
    if alarm or (m.episode[0] > 0 and m.quiet[0] < GAP):
        m.quiet[0] = 0 if alarm else m.quiet[0] + 1
        if m.episode[0] < LONG:
            m.episode[0] += 1
    else:
        m.quiet[0] = 0
        m.episode[0] = 0


@kernel
def settles(rows: Index, warmup: Index) -> Bool:
    """Whether the threshold learns after this many rows: the first quarter of the warm-up must be over."""
    return rows >= floor_shift(warmup + 3, 2)


@kernel
def is_armed(m: ThresholdModel) -> Bool:
    """Whether the monitor is armed: alarms beyond the wanted rate then mean faults, not a threshold that is too low."""
    return m.arms and m.age[0] >= m.commissioning


@kernel
def correct(m: ThresholdModel, alarm: Bool, armed: Bool) -> None:
    """Raise s for a row in alarm, and lower s for any other row."""
    change = m.correction * (real(1) - m.alarm_rate) if alarm else m.correction * (real(0) - m.alarm_rate)
    m.shift[0] = clipped(m.shift[0] + change, -(real(0.7) * m.tail), m.shift_limit if armed else SHIFT_MOST)


@kernel
def teach(m: ThresholdModel, alarm: Bool, corrects: Bool, fast: Bool) -> None:
    """Let the threshold learn the level.  In an episode, the threshold learns only from the first rows.  O(1).

    fast: whether all rows of an episode change e at the usual rate, not only the first row.
    """
    taught = TAUGHT
    armed = False
    if m.arms:
        if corrects and m.age[0] < m.commissioning:
            m.age[0] += 1
        armed = is_armed(m)
        if armed:
            taught = TAUGHT_ARMED
        more = m.tokens[0] + m.token_rate
        m.tokens[0] = more if armed and more < m.tokens_most else m.tokens_most
    if m.episode[0] > taught or (m.fixed and armed):
        return
    learns = True
    if armed and m.episode[0] > 0:
        learns = alarm
        if alarm:
            if m.tokens[0] < real(1):
                return
            m.tokens[0] = m.tokens[0] - real(1)
    if learns:
        learn_level(m, corrects, fast or m.episode[0] <= 1, armed)
    if corrects:
        correct(m, alarm, armed)


@kernel
def learn_level(m: ThresholdModel, corrects: Bool, fast: Bool, armed: Bool) -> None:
    """Let q and e learn the level.  corrects: whether the row could have been in alarm.  fast: whether e learns at the usual rate,
    instead of the low rate of a monitor that has run for its whole horizon.  O(1)."""
    if m.taught[0] == 0 or (m.below[0] == UNEXCEEDED and not corrects):
        m.quantile[0] = m.level[0]
        m.excess[0] = m.excess_first
        m.taught[0] = 0
        m.below[0] = 0
    if m.taught[0] < m.threshold_horizon:
        m.taught[0] += 1
    count = real(m.taught[0])
    part = STEP_FIRST / (count + STEP_FIRST)
    if part < STEP_LEAST:
        part = STEP_LEAST
    above = m.level[0] > m.quantile[0]
    if above:
        m.below[0] = 0
    elif m.below[0] < UNEXCEEDED:
        m.below[0] += 1
    step = part * m.excess[0]
    change = (real(1) - m.upper) * step if above else -(m.upper * step)
    m.quantile[0] = bounded(m.quantile[0] + change, LEVEL_MOST)
    if m.level[0] > m.quantile[0]:
        more = m.level[0] - m.quantile[0]
        if armed:
            # e follows the median, so a fault moves e no further than any other row does; half of all exponential excesses are above e ln 2
            more = real(2) * m.excess[0] if more > LN_2 * m.excess[0] else real(0)
        elif corrects:
            # clip the excess to (c + 1) e; c e is the intended distance of the threshold from q
            most = m.excess[0] * (m.tail + real(1))
            if more > most:
                more = most
        if not fast:
            count = real(m.threshold_horizon)
        rate = real(1) / (m.upper * count + real(1))
        m.excess[0] = clipped(
            m.excess[0] + rate * (more - m.excess[0]), m.excess_least, m.excess_limit if armed else EXCESS_MOST
        )


@kernel
def since_alarm(m: ThresholdModel) -> Real:
    """Length of the latest row's alarm so far, in rows; 0 if the latest row is not in alarm."""
    return real(m.episode[0]) if m.quiet[0] == 0 else real(0)


@kernel
def valid_threshold(m: ThresholdModel) -> Bool:
    """Whether some sequence of levels could have led to this state."""
    if m.quiet[0] > 0 and m.episode[0] <= m.quiet[0]:
        return False
    if m.taught[0] == 0:
        return m.quantile[0] == real(0) and m.excess[0] == real(0) and m.shift[0] == real(0) and m.below[0] == 0
    return True
