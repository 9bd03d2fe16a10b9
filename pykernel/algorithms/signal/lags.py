"""Features of steps: measures some steps ago, differences, means, phases of periods."""

from __future__ import annotations

from pykernel.algorithms.elementary import clipped, cosine
from pykernel.algorithms.signal.state import Signal, SignalConfig, SignalWork
from pykernel.dialect import DIM, Bool, Index, Real, kernel, quotient, real


@kernel
def on_time(g: Signal, k: SignalConfig) -> Bool:
    """Whether every clock is within its period.  O(periods)."""
    if k.has_periods:
        for p in range(len(g.clock)):
            if g.clock[p] < 0 or g.clock[p] >= k.period[p]:
                return False
    return True


@kernel
def intact_signal(g: Signal, k: SignalConfig) -> Bool:
    """Whether every count is within its range, so that no call goes beyond its arrays.  O(periods)."""
    if g.latest[0] < 0 or g.latest[0] >= len(g.kept) or g.steps[0] < 0 or g.steps[0] > len(g.kept):
        return False
    if k.windows:
        if g.block[0] < 0 or g.block[0] >= len(g.crossed) or g.blocks[0] < 0 or g.blocks[0] > len(g.crossed):
            return False
        if g.gathered[0] < 0 or g.gathered[0] > k.hop_last:
            return False
        if k.has_spectrum:
            if g.raw_at[0] < 0 or g.raw_at[0] >= len(g.raw_kept):
                return False
    return on_time(g, k)


@kernel
def row_before(g: Signal, ago: Index) -> Index:
    """Where the measures of some steps ago are kept."""
    row = g.latest[0] - ago
    return row + len(g.kept) if row < 0 else row


@kernel
def keep(g: Signal, w: SignalWork) -> None:
    """A step has ended: keep its measures.  O(measures)."""
    g.latest[0] = g.latest[0] + 1 if g.latest[0] < len(g.kept) - 1 else 0
    for i in range(len(w.measured)):
        g.kept[g.latest[0], i] = w.measured[i]
    if g.steps[0] < len(g.kept):
        g.steps[0] += 1


@kernel
def tick(g: Signal, k: SignalConfig) -> None:
    """A raw sample's time passes.  O(periods)."""
    if not k.has_periods:
        return
    for p in range(len(g.clock)):
        g.clock[p] = g.clock[p] + 1 if g.clock[p] < k.period[p] - 1 else 0


@kernel
def skip(g: Signal, k: SignalConfig, missing: Index) -> None:
    """The time of some raw samples passes.  O(periods)."""
    if not k.has_periods:
        return
    for p in range(len(g.clock)):
        # each below its period, and a sum below twice: no sum overflows
        rest = missing - k.period[p] * quotient(missing, k.period[p])
        if rest > 0 and rest < k.period[p]:
            moved = g.clock[p] + rest
            g.clock[p] = moved - k.period[p] if moved >= k.period[p] else moved


@kernel
def phase(g: Signal, k: SignalConfig, p: Index, back: Index) -> Real:
    """The part of a period that has passed; back 1: when features were made whose truth comes now."""
    now = g.clock[p]
    if back == 1:
        now -= k.period_back[p]
        if now < 0:
            now += k.period[p]
    return real(now) * k.period_share[p]


@kernel
def put_feature(k: SignalConfig, out: Real[DIM], f: Index, value: Real) -> None:
    """A feature, within its limit."""
    out[f] = clipped(value, -k.made_limit[f], k.made_limit[f])


@kernel
def make_features_of(g: Signal, k: SignalConfig, ago: Index, back: Index, out: Real[DIM]) -> None:
    """The features of some steps ago.  O(DIM), and more for means."""
    for f in range(k.difference_first):
        put_feature(k, out, f, g.kept[row_before(g, ago + k.made_steps[f]), k.made_of[f]])
    if k.has_differences:
        for f in range(k.difference_first, k.average_first):
            then = g.kept[row_before(g, ago + k.made_steps[f]), k.made_of[f]]
            put_feature(k, out, f, g.kept[row_before(g, ago), k.made_of[f]] - then)
    if k.has_averages:
        for f in range(k.average_first, k.phase_first):
            total = real(0)
            for s in range(k.made_steps[f]):
                total += g.kept[row_before(g, ago + s), k.made_of[f]]
            put_feature(k, out, f, total * k.made_share[f])
    if k.has_periods:
        for p in range(len(g.clock)):
            turns = phase(g, k, p, back)
            at = k.phase_first + 2 * p
            put_feature(k, out, at, cosine(turns))
            put_feature(k, out, at + 1, cosine(turns - real(0.25)))
