"""The signal stage in whole numbers: raw samples in counts of 16 bits, features in counts.

Sums over blocks are exact, so windows are sums of blocks, and nothing is lost before a measure is rounded, once.  The Fourier
transform, as ``pykernel.algorithms.signal.spectrum`` does it, has 32 bits and halves at each level.

What does not compute (what is kept, lags, phases, calls) is the stage of reals, with other types.
"""

from __future__ import annotations

import math
from typing import Any

from pykernel.algorithms.fixed.values import clip, size
from pykernel.algorithms.fixed.wide import long_root, product_high
from pykernel.algorithms.signal import calls, lags
from pykernel.algorithms.signal.calls import REHEARSED
from pykernel.algorithms.signal.state import CHANNELS
from pykernel.algorithms.signal.whole_state import (
    FULL,
    SUM_MOST,
    WAVE_MOST,
    WholeSignal,
    WholeSignalConfig,
    WholeSignalWork,
)
from pykernel.dialect import (
    DIM,
    Bool,
    Constant,
    Index,
    Int,
    Int16,
    as_signed,
    floor_shift,
    index,
    kernel,
    multiply_high,
    quotient,
    surround,
    word,
)

SEGMENTS = 128
QUARTER = Constant(
    tuple(round(16384 * math.cos(math.pi / 2 * i / SEGMENTS)) for i in range(SEGMENTS + 2)),
    scalar=Int16,
)
"""The cosine of a quarter of a turn, in units of 2^-14."""

# ------------------------------------------------------------------------------------------------------ windows


@kernel
def acceptable_sample(k: WholeSignalConfig, sample: Int16[CHANNELS]) -> Bool:
    """Whether every channel is within its limit."""
    for j in range(len(sample)):
        if sample[j] < -k.sample_most[j] or sample[j] > k.sample_most[j]:
            return False
    return True


@kernel
def crosses(one: Int, other: Int) -> Index:
    """1 if exactly one of two numbers is below zero."""
    if one < 0:
        return 0 if other < 0 else 1
    return 1 if other < 0 else 0


@kernel
def begin_block(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig) -> None:
    """Before the first sample of a block.  O(channels)."""
    b = g.block[0]
    for j in range(len(w.lifted)):
        g.total[b, j] = 0
        if k.has_squares:
            g.square_high[b, j] = word(0)
            g.square_low[b, j] = word(0)
        if k.has_extremes:
            g.low[b, j] = w.lifted[j]
            g.high[b, j] = w.lifted[j]
        if k.has_change:
            g.changes[b, j] = word(0)
            g.border[b, j] = size(w.lifted[j] - g.last[j])
        if k.has_crossings:
            g.crossed[b, j] = 0
            g.crossed_border[b, j] = crosses(g.last[j], w.lifted[j])


@kernel
def add_sample(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig) -> None:
    """A sample of a block.  O(channels)."""
    b = g.block[0]
    for j in range(len(w.lifted)):
        # modulo 2^32: memory may have been overwritten
        total = as_signed(word(g.total[b, j]) + word(w.lifted[j]))
        g.total[b, j] = clip(total, -k.block_most, k.block_most)
        if k.has_squares:
            square = word(w.lifted[j] * w.lifted[j])
            g.square_high[b, j] += square >> 16
            g.square_low[b, j] += square & 65535
        if k.has_extremes:
            if w.lifted[j] < g.low[b, j]:
                g.low[b, j] = w.lifted[j]
            if w.lifted[j] > g.high[b, j]:
                g.high[b, j] = w.lifted[j]
        if g.gathered[0] > 0:
            if k.has_change:
                g.changes[b, j] += word(size(w.lifted[j] - g.last[j]))
            if k.has_crossings:
                crossed = as_signed(word(g.crossed[b, j]) + word(crosses(g.last[j], w.lifted[j])))
                g.crossed[b, j] = clip(crossed, 0, k.hop_last)


@kernel
def rounded(a: Int, n: Int) -> Int:
    """a / n, to the nearest whole number, and away from zero where there are two; n above 0."""
    half = floor_shift(n, 1)
    return quotient(a + half, n) if a >= 0 else -quotient(half - a, n)


@kernel
def total_of(g: WholeSignal, j: Index) -> Int:
    """The sum of the window's samples.  O(blocks)."""
    total = word(0)
    for b in range(len(g.total)):
        total += word(g.total[b, j])
    return clip(as_signed(total), -SUM_MOST, SUM_MOST)


@kernel
def mean_of(g: WholeSignal, k: WholeSignalConfig, j: Index) -> Int:
    """The mean of the window.  O(blocks)."""
    return clip(rounded(total_of(g, j), k.window), -FULL, FULL)


@kernel
def deviation_of(g: WholeSignal, k: WholeSignalConfig, j: Index, about_mean: Index) -> Int:
    """Root of the mean square of the window, or, about_mean 1, of what is away from its mean.  O(blocks).

    Of n samples: sqrt(n sum x^2 - (sum x)^2) / n, exact up to the root.
    """
    upper = word(0)
    lower = word(0)
    for b in range(len(g.total)):
        upper += g.square_high[b, j]
        # each below 2^16 times the hop: no sum over the window overflows
        lower += g.square_low[b, j]
    # sum x^2 = high 2^32 + low
    low = (upper << 16) + lower
    high = (upper >> 16) + word(1 if low < lower else 0)
    n = word(k.window)
    square_low = low * n
    square_high = high * n + product_high(low, n)
    if about_mean == 1:
        total = word(size(total_of(g, j)))
        taken = total * total
        square_high = square_high - product_high(total, total) - word(1 if square_low < taken else 0)
        square_low = square_low - taken
    root = long_root(square_high, square_low)
    most = word(SUM_MOST)
    return clip(rounded(index(root) if root < most else SUM_MOST, k.window), 0, FULL)


@kernel
def extreme_of(g: WholeSignal, j: Index, highest: Index) -> Int:
    """The largest or the smallest sample of the window.  O(blocks)."""
    found = g.high[0, j] if highest == 1 else g.low[0, j]
    for b in range(1, len(g.total)):
        if highest == 1:
            if g.high[b, j] > found:
                found = g.high[b, j]
        elif g.low[b, j] < found:
            found = g.low[b, j]
    return found


@kernel
def block_after(g: WholeSignal, b: Index) -> Index:
    """The position of the next newer block."""
    return b + 1 if b < len(g.total) - 1 else 0


@kernel
def change_of(g: WholeSignal, k: WholeSignalConfig, j: Index) -> Int:
    """Half the mean of |differences| of neighbours in the window.  O(blocks)."""
    total = word(0)
    oldest = block_after(g, g.block[0])
    for b in range(len(g.total)):
        total += g.changes[b, j]
        if b != oldest:
            total += word(g.border[b, j])
    return clip(rounded(clip(index(total >> 1), 0, SUM_MOST), k.window - 1), 0, FULL)


@kernel
def crossings_of(g: WholeSignal, k: WholeSignalConfig, j: Index) -> Int:
    """How often neighbours in the window have different signs, in parts of all, in units of 2^-15.  O(blocks)."""
    total = word(0)
    oldest = block_after(g, g.block[0])
    for b in range(len(g.total)):
        total += word(g.crossed[b, j])
        if b != oldest:
            total += word(g.crossed_border[b, j])
    return clip(rounded(clip(as_signed(total), 0, k.window - 1) * 32768, k.window - 1), 0, FULL)


# -------------------------------------------------------------------------------------------------------- bands


@kernel
def keep_raw(g: WholeSignal, w: WholeSignalWork) -> None:
    """Keep the raw sample for the bands.  O(channels)."""
    for j in range(len(w.lifted)):
        g.raw_kept[g.raw_at[0], j] = w.lifted[j]
    g.raw_at[0] = g.raw_at[0] + 1 if g.raw_at[0] < len(g.raw_kept) - 1 else 0


@kernel
def cosine_of(k: WholeSignalConfig, c: Index) -> Index:
    """cos(2 pi c / window) in units of 2^-15, for c from 0 to half of the window."""
    return k.cosines[c] if c < len(k.cosines) else -k.cosines[2 * len(k.cosines) - 2 - c]


@kernel
def halved(a: Int, c: Index) -> Int:
    """a c / 2, for c in units of 2^-15."""
    return multiply_high(a, c) if c >= 0 else -multiply_high(a, -c)


@kernel
def weighed(g: WholeSignal, k: WholeSignalConfig, j: Index, t: Index, mean: Int) -> Int:
    """The sample of channel j that is t after the oldest, without the mean, times a Hann window; in units of 2^-13 counts."""
    at = g.raw_at[0] + t
    if at >= len(g.raw_kept):
        at -= len(g.raw_kept)
    turn = t if t < len(g.raw_kept) - t else len(g.raw_kept) - t
    weight = floor_shift(32768 - cosine_of(k, turn), 1)
    return multiply_high((g.raw_kept[at, j] - mean) * 16384, weight)


@kernel
def prepare(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig, j: Index) -> None:
    """The window of channel j as complex numbers of two samples each, in bit-reversed order.  O(W)."""
    mean = mean_of(g, k, j)
    for i in range(len(w.im)):
        # the order of i + W / 4 is that of i, and one
        half = i if i < len(k.reversed) else i - len(k.reversed)
        to = k.reversed[half] + (0 if i < len(k.reversed) else 1)
        w.re[to] = weighed(g, k, j, 2 * i, mean)
        w.im[to] = weighed(g, k, j, 2 * i + 1, mean)


@kernel
def transform(w: WholeSignalWork, k: WholeSignalConfig) -> None:
    """The Fourier transform of the complex numbers in re and im, divided by how many there are.  O(W log W).

    Each level halves, so that no number grows: a sum stays within the larger one of the two magnitudes.
    """
    last = word(len(w.im) - 1)
    for level in range(k.fourier_levels):
        for i in range(len(k.reversed)):
            u = word(i)
            place = u & ((word(1) << level) - 1)
            one = index((((u >> level) << (level + 1)) + place) & last)
            other = index((word(one) + (word(1) << level)) & last)
            turn = index((place << (k.fourier_levels - level)) & last)
            c = cosine_of(k, turn)
            s = k.cosines[size(turn - len(k.reversed))]
            re = halved(w.re[other], c) + multiply_high(w.im[other], s)
            im = halved(w.im[other], c) - multiply_high(w.re[other], s)
            half_re = floor_shift(w.re[one], 1)
            half_im = floor_shift(w.im[one], 1)
            w.re[other] = clip(half_re - re, -WAVE_MOST, WAVE_MOST)
            w.im[other] = clip(half_im - im, -WAVE_MOST, WAVE_MOST)
            w.re[one] = clip(half_re + re, -WAVE_MOST, WAVE_MOST)
            w.im[one] = clip(half_im + im, -WAVE_MOST, WAVE_MOST)


@kernel
def spectrum_of(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig, j: Index) -> None:
    """The complex amplitudes of channel j's window, re[f] + i im[f] for f from 1 to W / 2.  O(W log W)."""
    prepare(g, w, k, j)
    transform(w, k)
    half = len(w.im)
    # of the highest frequency, the power has no other side: by the root of a half
    w.re[half] = multiply_high(w.re[0] - w.im[0], 23170)
    # a frequency and its mirror image are made of the same two numbers
    for i in range(1, len(k.reversed) + 1):
        mirror = half - i
        even_re = floor_shift(w.re[i] + w.re[mirror], 2)
        even_im = floor_shift(w.im[i] - w.im[mirror], 2)
        odd_re = floor_shift(w.im[i] + w.im[mirror], 1)
        odd_im = floor_shift(w.re[mirror] - w.re[i], 1)
        c = k.cosines[i]
        s = k.cosines[len(k.reversed) - i]
        turned_re = multiply_high(odd_re, c) + multiply_high(odd_im, s)
        turned_im = multiply_high(odd_im, c) - multiply_high(odd_re, s)
        w.re[i] = clip(even_re + turned_re, -WAVE_MOST, WAVE_MOST)
        w.im[i] = clip(even_im + turned_im, -WAVE_MOST, WAVE_MOST)
        w.re[mirror] = clip(even_re - turned_re, -WAVE_MOST, WAVE_MOST)
        w.im[mirror] = clip(turned_im - even_im, -WAVE_MOST, WAVE_MOST)


@kernel
def band_of(w: WholeSignalWork, k: WholeSignalConfig, i: Index) -> Int:
    """Root mean square between two frequencies.  O(frequencies)."""
    high = word(0)
    low = word(0)
    for f in range(k.band_first_bin[i], k.band_after_bin[i]):
        part = word(size(w.re[f]))
        added = part * part
        low += added
        high += product_high(part, part) + word(1 if low < added else 0)
        if f < len(w.im):
            part = word(size(w.im[f]))
            added = part * part
            low += added
            high += product_high(part, part) + word(1 if low < added else 0)
    twice = product_high(long_root(high, low), word(k.band_factor))
    value = index((twice + 1) >> 1)
    return value if value < FULL else FULL


# ----------------------------------------------------------------------------------------------------- measures


@kernel
def measure_window(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig) -> None:
    """All measures of the window.  O(measures blocks), and for bands O(W log W)."""
    if k.has_mean:
        for i in range(k.mean_first, k.mean_after):
            w.measured[i] = mean_of(g, k, k.measure_of[i])
    if k.has_rms:
        for i in range(k.rms_first, k.rms_after):
            w.measured[i] = deviation_of(g, k, k.measure_of[i], 0)
    if k.has_std:
        for i in range(k.std_first, k.std_after):
            w.measured[i] = deviation_of(g, k, k.measure_of[i], 1)
    if k.has_min:
        for i in range(k.min_first, k.min_after):
            w.measured[i] = extreme_of(g, k.measure_of[i], 0)
    if k.has_max:
        for i in range(k.max_first, k.max_after):
            w.measured[i] = extreme_of(g, k.measure_of[i], 1)
    if k.has_range:
        for i in range(k.range_first, k.range_after):
            found = extreme_of(g, k.measure_of[i], 1) - extreme_of(g, k.measure_of[i], 0)
            w.measured[i] = clip(floor_shift(found + 1, 1), -FULL, FULL)
    if k.has_crossings:
        for i in range(k.crossings_first, k.crossings_after):
            w.measured[i] = crossings_of(g, k, k.measure_of[i])
    if k.has_change:
        for i in range(k.change_first, k.change_after):
            w.measured[i] = change_of(g, k, k.measure_of[i])
    if k.has_band:
        for j in range(len(w.lifted)):
            spectrum_of(g, w, k, j)
            for i in range(k.band_first, k.band_after):
                if k.measure_of[i] == j:
                    w.measured[i] = band_of(w, k, i)


@kernel
def take_raw(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig, sample: Int16[CHANNELS]) -> Index:
    """Take a raw sample; 1 if a step ends with it: there is a new row of measures, in w.measured.  O(channels), and at the
    end of a step O(measures blocks) more, and for bands O(W log W)."""
    for j in range(len(sample)):
        w.lifted[j] = clip(sample[j] * k.fill[j], -FULL, FULL)
    if not k.windows:
        for i in range(len(w.measured)):
            w.measured[i] = w.lifted[k.measure_of[i]]
        return 1
    if g.begun[0] == 0:
        # there is no sample before: the first one stands for it
        for j in range(len(sample)):
            g.last[j] = w.lifted[j]
        g.begun[0] = 1
    if g.gathered[0] == 0:
        begin_block(g, w, k)
    add_sample(g, w, k)
    for j in range(len(sample)):
        g.last[j] = w.lifted[j]
    if k.has_spectrum:
        keep_raw(g, w)
    if g.gathered[0] < k.hop_last:
        g.gathered[0] += 1
        return 0
    g.gathered[0] = 0
    if g.blocks[0] < len(g.total):
        g.blocks[0] += 1
    whole = 0
    if g.blocks[0] == len(g.total):
        measure_window(g, w, k)
        whole = 1
    g.block[0] = block_after(g, g.block[0])
    return whole


# ----------------------------------------------------------------------------------------------------- features

TYPES: dict[str, Any] = {
    "Real": Int16,
    "Signal": WholeSignal,
    "SignalWork": WholeSignalWork,
    "SignalConfig": WholeSignalConfig,
}
"""What the types of the stage of reals are here."""
row_before = surround(lags.row_before, (), TYPES)
on_time = surround(lags.on_time, (), TYPES)
intact_signal = surround(lags.intact_signal, (), TYPES | {"on_time": on_time})


@kernel
def cosine(turns: Index) -> Int:
    """The cosine of so many turns, in units of 2^-16, modulo one; in units of 2^-14."""
    quarter = index((word(turns) >> 14) & 3)
    rest = index(word(turns) & 16383)
    if quarter == 1 or quarter == 3:
        rest = 16384 - rest
    i = floor_shift(rest, 7)
    part = index(word(rest) & 127)
    first = QUARTER[i]
    value = first + floor_shift((QUARTER[i + 1] - first) * part + 64, 7)
    return -value if quarter == 1 or quarter == 2 else value


@kernel
def phase(g: WholeSignal, k: WholeSignalConfig, p: Index, back: Index) -> Index:
    """The part of a period that has passed, in units of 2^-16; back 1: when features were made whose truth comes now."""
    now = g.clock[p]
    if back == 1:
        now -= k.period_back[p]
        if now < 0:
            now += k.period[p]
    return index((word(now) * word(k.period_share[p])) >> 15)


@kernel
def make_features_of(g: WholeSignal, k: WholeSignalConfig, ago: Index, back: Index, out: Int16[DIM]) -> None:
    """The features of some steps ago.  O(DIM), and more for means."""
    for f in range(k.difference_first):
        out[f] = g.kept[row_before(g, ago + k.made_steps[f]), k.made_of[f]]
    if k.has_differences:
        for f in range(k.difference_first, k.average_first):
            then = g.kept[row_before(g, ago + k.made_steps[f]), k.made_of[f]]
            out[f] = clip(floor_shift(g.kept[row_before(g, ago), k.made_of[f]] - then + 1, 1), -FULL, FULL)
    if k.has_averages:
        for f in range(k.average_first, k.phase_first):
            total = 0
            for s in range(k.made_steps[f]):
                total += g.kept[row_before(g, ago + s), k.made_of[f]]
            out[f] = clip(rounded(clip(total, -SUM_MOST, SUM_MOST), k.made_steps[f]), -FULL, FULL)
    if k.has_periods:
        for p in range(len(g.clock)):
            turns = phase(g, k, p, back)
            at = k.phase_first + 2 * p
            out[at] = cosine(turns)
            out[at + 1] = cosine(turns + 49152)
    if k.has_coarse:
        for f in range(len(out)):
            shift = k.made_shift[f]
            out[f] = floor_shift(out[f] + floor_shift(index(word(1) << shift), 1), shift)
    if k.has_narrow:
        for f in range(len(out)):
            out[f] = clip(out[f], k.made_low[f], k.made_high[f])


@kernel
def come_true(g: WholeSignal, k: WholeSignalConfig) -> Int:
    """What should have been forecast for the newest step, in the unit of labels."""
    return floor_shift(g.kept[g.latest[0], k.label_measure] * k.label_factor, k.label_places)


@kernel
def valid_signal(g: WholeSignal, k: WholeSignalConfig) -> Bool:
    """Whether raw samples within their limit can have led here, beyond the declared ranges.  O(periods)."""
    if not on_time(g, k):
        return False
    if g.ready[0] == 1 and g.steps[0] <= k.oldest:
        return False
    if k.awaits:
        if g.waiting[0] == 1 and g.ready[0] == 0:
            return False
    return True


step = surround(
    calls.step,
    (),
    TYPES
    | {
        "take_raw": take_raw,
        "tick": surround(lags.tick, (), TYPES),
        "keep": surround(lags.keep, (), TYPES),
        "make_features_of": make_features_of,
    },
)


@kernel
def rehearse_signal(g: WholeSignal, w: WholeSignalWork, k: WholeSignalConfig) -> None:
    """Take made-up raw samples."""
    seed = 1
    for t in range(REHEARSED):
        for j in range(len(w.raw)):
            seed = (seed * 75 + 74) % 65537
            w.raw[j] = clip(floor_shift((seed - 32768) * k.sample_most[j], 15), -k.sample_most[j], k.sample_most[j])
        fresh = step(g, w, k, w.raw)
        if fresh:
            w.raw[0] = g.features[0]
