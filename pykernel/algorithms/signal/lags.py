"""The features of a step: measures of this or an earlier step, differences and means of measures, and phases of periods."""

from pykernel.algorithms.elementary import clipped, cosine
from pykernel.algorithms.signal.state import SignalModel
from pykernel.dialect import DIM, Bool, Index, Real, kernel, quotient, real


@kernel
def on_time(m: SignalModel) -> Bool:
    """Whether every clock is within its period.  O(periods)."""
    if m.has_periods:
        for p in range(len(m.clock)):
            if m.clock[p] < 0 or m.clock[p] >= m.period[p]:
                return False
    return True


@kernel
def intact_signal(m: SignalModel) -> Bool:
    """Whether every count is within its range.  With valid counts, no call reads or writes outside an array.  O(periods)."""
    if m.latest[0] < 0 or m.latest[0] >= len(m.kept) or m.steps[0] < 0 or m.steps[0] > len(m.kept):
        return False
    if m.windows:
        if m.block[0] < 0 or m.block[0] >= len(m.crossed) or m.blocks[0] < 0 or m.blocks[0] > len(m.crossed):
            return False
        if m.gathered[0] < 0 or m.gathered[0] > m.hop_last:
            return False
        if m.has_spectrum and (m.raw_at[0] < 0 or m.raw_at[0] >= len(m.raw_kept)):
            return False
    return on_time(m)


@kernel
def row_before(m: SignalModel, ago: Index) -> Index:
    """The row with the measures of the step that is ``ago`` steps before the newest."""
    row = m.latest[0] - ago
    return row + len(m.kept) if row < 0 else row


@kernel
def keep(m: SignalModel) -> None:
    """Keep the measures of a step that has ended.  O(measures)."""
    m.latest[0] = m.latest[0] + 1 if m.latest[0] < len(m.kept) - 1 else 0
    for i in range(len(m.measured)):
        m.kept[m.latest[0], i] = m.measured[i]
    if m.steps[0] < len(m.kept):
        m.steps[0] += 1


@kernel
def tick(m: SignalModel) -> None:
    """Advance the clocks by one raw sample.  O(periods)."""
    if not m.has_periods:
        return
    for p in range(len(m.clock)):
        m.clock[p] = m.clock[p] + 1 if m.clock[p] < m.period[p] - 1 else 0


@kernel
def skip(m: SignalModel, missing: Index) -> None:
    """Advance the clocks by the number of missing raw samples.  O(periods)."""
    if not m.has_periods:
        return
    for p in range(len(m.clock)):
        # the clock and the rest are below the period, so their sum does not overflow
        rest = missing - m.period[p] * quotient(missing, m.period[p])
        if rest > 0 and rest < m.period[p]:
            moved = m.clock[p] + rest
            m.clock[p] = moved - m.period[p] if moved >= m.period[p] else moved


@kernel
def clock_of(m: SignalModel, p: Index, back: Index) -> Index:
    """Number of raw samples since a period began: now or, with back = 1, at the step of the features whose label arrives
    now."""
    now = m.clock[p]
    if back == 1:
        now -= m.period_back[p]
        if now < 0:
            now += m.period[p]
    return now


@kernel
def put_feature(m: SignalModel, out: Real[DIM], f: Index, value: Real) -> None:
    """Write a feature, clipped to its limit."""
    out[f] = clipped(value, -m.made_limit[f], m.made_limit[f])


@kernel
def change_since(now: Real, then: Real) -> Real:
    """The difference now - then."""
    return now - then


@kernel
def mean_of_steps(m: SignalModel, f: Index, ago: Index) -> Real:
    """The mean of a measure over several steps.  The last of these steps is ``ago`` steps before the newest step.  O(steps)."""
    total = real(0)
    for s in range(m.made_steps[f]):
        total += m.kept[row_before(m, ago + s), m.made_of[f]]
    return total * m.made_share[f]


@kernel
def put_phase(m: SignalModel, p: Index, back: Index, out: Real[DIM], f: Index) -> None:
    """Write two features: the cosine and the sine of the phase within a period."""
    turns = real(clock_of(m, p, back)) * m.period_share[p]
    put_feature(m, out, f, cosine(turns))
    put_feature(m, out, f + 1, cosine(turns - real(0.25)))


@kernel
def fit_features(m: SignalModel, out: Real[DIM]) -> None:
    """Nothing to do: floating-point features need no conversion."""


@kernel
def make_features_of(m: SignalModel, ago: Index, back: Index, out: Real[DIM]) -> None:
    """Write to out the features of the step that is ``ago`` steps before the newest.  O(DIM), and O(steps) for each mean."""
    for f in range(m.difference_first):
        put_feature(m, out, f, m.kept[row_before(m, ago + m.made_steps[f]), m.made_of[f]])
    if m.has_differences:
        for f in range(m.difference_first, m.average_first):
            then = m.kept[row_before(m, ago + m.made_steps[f]), m.made_of[f]]
            put_feature(m, out, f, change_since(m.kept[row_before(m, ago), m.made_of[f]], then))
    if m.has_averages:
        for f in range(m.average_first, m.phase_first):
            put_feature(m, out, f, mean_of_steps(m, f, ago))
    if m.has_periods:
        for p in range(len(m.clock)):
            put_phase(m, p, back, out, m.phase_first + 2 * p)
    fit_features(m, out)
