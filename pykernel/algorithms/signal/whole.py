"""The signal stage in whole numbers: raw samples in counts of 16 bits, features in counts.

Sums over blocks are exact, so windows are sums of blocks, and nothing is lost before a measure is rounded, once.  The Fourier
transform, as ``pykernel.algorithms.signal.spectrum`` does it, has 32 bits and halves at each level.

What does not compute (what is kept, lags, phases, calls) is the stage of reals, with other types.
"""

from __future__ import annotations

import math

from pykernel.algorithms.fixed.values import clip, size
from pykernel.algorithms.fixed.wide import long_root, product_high
from pykernel.algorithms.signal.lags import on_time, row_before
from pykernel.algorithms.signal.state import CHANNELS
from pykernel.algorithms.signal.whole_state import (
    FULL,
    SUM_MOST,
    WAVE_MOST,
    WholeSignalModel,
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
def acceptable_sample(m: WholeSignalModel, sample: Int16[CHANNELS]) -> Bool:
    """Whether every channel is within its limit."""
    for j in range(len(sample)):
        if sample[j] < -m.sample_most[j] or sample[j] > m.sample_most[j]:
            return False
    return True


@kernel
def crosses(one: Int, other: Int) -> Index:
    """1 if exactly one of two numbers is below zero."""
    if one < 0:
        return 0 if other < 0 else 1
    return 1 if other < 0 else 0


@kernel
def begin_block(m: WholeSignalModel) -> None:
    """Before the first sample of a block.  O(channels)."""
    b = m.block[0]
    for j in range(len(m.lifted)):
        m.total[b, j] = 0
        if m.has_squares:
            m.square_high[b, j] = word(0)
            m.square_low[b, j] = word(0)
        if m.has_extremes:
            m.lowest[b, j] = m.lifted[j]
            m.highest[b, j] = m.lifted[j]
        if m.has_change:
            m.changes[b, j] = word(0)
            m.border[b, j] = size(m.lifted[j] - m.last[j])
        if m.has_crossings:
            m.crossed[b, j] = 0
            m.crossed_border[b, j] = crosses(m.last[j], m.lifted[j])


@kernel
def add_sample(m: WholeSignalModel) -> None:
    """A sample of a block.  O(channels)."""
    b = m.block[0]
    for j in range(len(m.lifted)):
        # modulo 2^32: memory may have been overwritten
        total = as_signed(word(m.total[b, j]) + word(m.lifted[j]))
        m.total[b, j] = clip(total, -m.block_most, m.block_most)
        if m.has_squares:
            square = word(m.lifted[j] * m.lifted[j])
            m.square_high[b, j] += square >> 16
            m.square_low[b, j] += square & 65535
        if m.has_extremes:
            if m.lifted[j] < m.lowest[b, j]:
                m.lowest[b, j] = m.lifted[j]
            if m.lifted[j] > m.highest[b, j]:
                m.highest[b, j] = m.lifted[j]
        if m.gathered[0] > 0:
            if m.has_change:
                m.changes[b, j] += word(size(m.lifted[j] - m.last[j]))
            if m.has_crossings:
                crossed = as_signed(word(m.crossed[b, j]) + word(crosses(m.last[j], m.lifted[j])))
                m.crossed[b, j] = clip(crossed, 0, m.hop_last)


@kernel
def rounded(a: Int, n: Int) -> Int:
    """a / n, to the nearest whole number, and away from zero where there are two; n above 0."""
    half = floor_shift(n, 1)
    return quotient(a + half, n) if a >= 0 else -quotient(half - a, n)


@kernel
def total_of(m: WholeSignalModel, j: Index) -> Int:
    """The sum of the window's samples.  O(blocks)."""
    total = word(0)
    for b in range(len(m.total)):
        total += word(m.total[b, j])
    return clip(as_signed(total), -SUM_MOST, SUM_MOST)


@kernel
def mean_of(m: WholeSignalModel, j: Index) -> Int:
    """The mean of the window.  O(blocks)."""
    return clip(rounded(total_of(m, j), m.window), -FULL, FULL)


@kernel
def deviation_of(m: WholeSignalModel, j: Index, about_mean: Index) -> Int:
    """Root of the mean square of the window, or, about_mean 1, of what is away from its mean.  O(blocks).

    Of n samples: sqrt(n sum x^2 - (sum x)^2) / n, exact up to the root.
    """
    upper = word(0)
    lower = word(0)
    for b in range(len(m.total)):
        upper += m.square_high[b, j]
        # each below 2^16 times the hop: no sum over the window overflows
        lower += m.square_low[b, j]
    # sum x^2 = high 2^32 + low
    low = (upper << 16) + lower
    high = (upper >> 16) + word(1 if low < lower else 0)
    n = word(m.window)
    square_low = low * n
    square_high = high * n + product_high(low, n)
    if about_mean == 1:
        total = word(size(total_of(m, j)))
        taken = total * total
        square_high = square_high - product_high(total, total) - word(1 if square_low < taken else 0)
        square_low = square_low - taken
    root = long_root(square_high, square_low)
    most = word(SUM_MOST)
    return clip(rounded(index(root) if root < most else SUM_MOST, m.window), 0, FULL)


@kernel
def extreme_of(m: WholeSignalModel, j: Index, highest: Index) -> Int:
    """The largest or the smallest sample of the window.  O(blocks)."""
    found = m.highest[0, j] if highest == 1 else m.lowest[0, j]
    for b in range(1, len(m.total)):
        if highest == 1:
            if m.highest[b, j] > found:
                found = m.highest[b, j]
        elif m.lowest[b, j] < found:
            found = m.lowest[b, j]
    return found


@kernel
def block_after(m: WholeSignalModel, b: Index) -> Index:
    """The position of the next newer block."""
    return b + 1 if b < len(m.total) - 1 else 0


@kernel
def change_of(m: WholeSignalModel, j: Index) -> Int:
    """Half the mean of |differences| of neighbours in the window.  O(blocks)."""
    total = word(0)
    oldest = block_after(m, m.block[0])
    for b in range(len(m.total)):
        total += m.changes[b, j]
        if b != oldest:
            total += word(m.border[b, j])
    return clip(rounded(clip(index(total >> 1), 0, SUM_MOST), m.window - 1), 0, FULL)


@kernel
def crossings_of(m: WholeSignalModel, j: Index) -> Int:
    """How often neighbours in the window have different signs, in parts of all, in units of 2^-15.  O(blocks)."""
    total = word(0)
    oldest = block_after(m, m.block[0])
    for b in range(len(m.total)):
        total += word(m.crossed[b, j])
        if b != oldest:
            total += word(m.crossed_border[b, j])
    return clip(rounded(clip(as_signed(total), 0, m.window - 1) * 32768, m.window - 1), 0, FULL)


# -------------------------------------------------------------------------------------------------------- bands


@kernel
def keep_raw(m: WholeSignalModel) -> None:
    """Keep the raw sample for the bands.  O(channels)."""
    for j in range(len(m.lifted)):
        m.raw_kept[m.raw_at[0], j] = m.lifted[j]
    m.raw_at[0] = m.raw_at[0] + 1 if m.raw_at[0] < len(m.raw_kept) - 1 else 0


@kernel
def cosine_of(m: WholeSignalModel, c: Index) -> Index:
    """cos(2 pi c / window) in units of 2^-15, for c from 0 to half of the window."""
    return m.cosines[c] if c < len(m.cosines) else -m.cosines[2 * len(m.cosines) - 2 - c]


@kernel
def halved(a: Int, c: Index) -> Int:
    """a c / 2, for c in units of 2^-15."""
    return multiply_high(a, c) if c >= 0 else -multiply_high(a, -c)


@kernel
def weighed(m: WholeSignalModel, j: Index, t: Index, mean: Int) -> Int:
    """The sample of channel j that is t after the oldest, without the mean, times a Hann window; in units of 2^-13 counts."""
    at = m.raw_at[0] + t
    if at >= len(m.raw_kept):
        at -= len(m.raw_kept)
    turn = t if t < len(m.raw_kept) - t else len(m.raw_kept) - t
    weight = floor_shift(32768 - cosine_of(m, turn), 1)
    return multiply_high((m.raw_kept[at, j] - mean) * 16384, weight)


@kernel
def prepare(m: WholeSignalModel, j: Index) -> None:
    """The window of channel j as complex numbers of two samples each, in bit-reversed order.  O(W)."""
    mean = mean_of(m, j)
    for i in range(len(m.im)):
        # the order of i + W / 4 is that of i, and one
        half = i if i < len(m.reversed) else i - len(m.reversed)
        to = m.reversed[half] + (0 if i < len(m.reversed) else 1)
        m.re[to] = weighed(m, j, 2 * i, mean)
        m.im[to] = weighed(m, j, 2 * i + 1, mean)


@kernel
def transform(m: WholeSignalModel) -> None:
    """The Fourier transform of the complex numbers in re and im, divided by how many there are.  O(W log W).

    Each level halves, so that no number grows: a sum stays within the larger one of the two magnitudes.
    """
    last = word(len(m.im) - 1)
    for level in range(m.fourier_levels):
        for i in range(len(m.reversed)):
            u = word(i)
            place = u & ((word(1) << level) - 1)
            one = index((((u >> level) << (level + 1)) + place) & last)
            other = index((word(one) + (word(1) << level)) & last)
            turn = index((place << (m.fourier_levels - level)) & last)
            c = cosine_of(m, turn)
            s = m.cosines[size(turn - len(m.reversed))]
            re = halved(m.re[other], c) + multiply_high(m.im[other], s)
            im = halved(m.im[other], c) - multiply_high(m.re[other], s)
            half_re = floor_shift(m.re[one], 1)
            half_im = floor_shift(m.im[one], 1)
            m.re[other] = clip(half_re - re, -WAVE_MOST, WAVE_MOST)
            m.im[other] = clip(half_im - im, -WAVE_MOST, WAVE_MOST)
            m.re[one] = clip(half_re + re, -WAVE_MOST, WAVE_MOST)
            m.im[one] = clip(half_im + im, -WAVE_MOST, WAVE_MOST)


@kernel
def spectrum_of(m: WholeSignalModel, j: Index) -> None:
    """The complex amplitudes of channel j's window, re[f] + i im[f] for f from 1 to W / 2.  O(W log W)."""
    prepare(m, j)
    transform(m)
    half = len(m.im)
    # of the highest frequency, the power has no other side: by the root of a half
    m.re[half] = multiply_high(m.re[0] - m.im[0], 23170)
    # a frequency and its mirror image are made of the same two numbers
    for i in range(1, len(m.reversed) + 1):
        mirror = half - i
        even_re = floor_shift(m.re[i] + m.re[mirror], 2)
        even_im = floor_shift(m.im[i] - m.im[mirror], 2)
        odd_re = floor_shift(m.im[i] + m.im[mirror], 1)
        odd_im = floor_shift(m.re[mirror] - m.re[i], 1)
        c = m.cosines[i]
        s = m.cosines[len(m.reversed) - i]
        turned_re = multiply_high(odd_re, c) + multiply_high(odd_im, s)
        turned_im = multiply_high(odd_im, c) - multiply_high(odd_re, s)
        m.re[i] = clip(even_re + turned_re, -WAVE_MOST, WAVE_MOST)
        m.im[i] = clip(even_im + turned_im, -WAVE_MOST, WAVE_MOST)
        m.re[mirror] = clip(even_re - turned_re, -WAVE_MOST, WAVE_MOST)
        m.im[mirror] = clip(turned_im - even_im, -WAVE_MOST, WAVE_MOST)


@kernel
def band_of(m: WholeSignalModel, i: Index) -> Int:
    """Root mean square between two frequencies.  O(frequencies)."""
    high = word(0)
    low = word(0)
    for f in range(m.band_first_bin[i], m.band_after_bin[i]):
        part = word(size(m.re[f]))
        added = part * part
        low += added
        high += product_high(part, part) + word(1 if low < added else 0)
        if f < len(m.im):
            part = word(size(m.im[f]))
            added = part * part
            low += added
            high += product_high(part, part) + word(1 if low < added else 0)
    twice = product_high(long_root(high, low), word(m.band_factor))
    value = index((twice + 1) >> 1)
    return value if value < FULL else FULL


# ----------------------------------------------------------------------------------------------------- measures


@kernel
def measure_window(m: WholeSignalModel) -> None:
    """All measures of the window.  O(measures blocks), and for bands O(W log W)."""
    if m.has_mean:
        for i in range(m.mean_first, m.mean_after):
            m.measured[i] = mean_of(m, m.measure_of[i])
    if m.has_rms:
        for i in range(m.rms_first, m.rms_after):
            m.measured[i] = deviation_of(m, m.measure_of[i], 0)
    if m.has_std:
        for i in range(m.std_first, m.std_after):
            m.measured[i] = deviation_of(m, m.measure_of[i], 1)
    if m.has_min:
        for i in range(m.min_first, m.min_after):
            m.measured[i] = extreme_of(m, m.measure_of[i], 0)
    if m.has_max:
        for i in range(m.max_first, m.max_after):
            m.measured[i] = extreme_of(m, m.measure_of[i], 1)
    if m.has_range:
        for i in range(m.range_first, m.range_after):
            found = extreme_of(m, m.measure_of[i], 1) - extreme_of(m, m.measure_of[i], 0)
            m.measured[i] = clip(floor_shift(found + 1, 1), -FULL, FULL)
    if m.has_crossings:
        for i in range(m.crossings_first, m.crossings_after):
            m.measured[i] = crossings_of(m, m.measure_of[i])
    if m.has_change:
        for i in range(m.change_first, m.change_after):
            m.measured[i] = change_of(m, m.measure_of[i])
    if m.has_band:
        for j in range(len(m.lifted)):
            spectrum_of(m, j)
            for i in range(m.band_first, m.band_after):
                if m.measure_of[i] == j:
                    m.measured[i] = band_of(m, i)


@kernel
def take_raw(m: WholeSignalModel, sample: Int16[CHANNELS]) -> Index:
    """Take a raw sample; 1 if a step ends with it: there is a new row of measures, in m.measured.  O(channels), and at the
    end of a step O(measures blocks) more, and for bands O(W log W)."""
    for j in range(len(sample)):
        m.lifted[j] = clip(sample[j] * m.fill[j], -FULL, FULL)
    if not m.windows:
        for i in range(len(m.measured)):
            m.measured[i] = m.lifted[m.measure_of[i]]
        return 1
    if m.begun[0] == 0:
        # there is no sample before: the first one stands for it
        for j in range(len(sample)):
            m.last[j] = m.lifted[j]
        m.begun[0] = 1
    if m.gathered[0] == 0:
        begin_block(m)
    add_sample(m)
    for j in range(len(sample)):
        m.last[j] = m.lifted[j]
    if m.has_spectrum:
        keep_raw(m)
    if m.gathered[0] < m.hop_last:
        m.gathered[0] += 1
        return 0
    m.gathered[0] = 0
    if m.blocks[0] < len(m.total):
        m.blocks[0] += 1
    whole = 0
    if m.blocks[0] == len(m.total):
        measure_window(m)
        whole = 1
    m.block[0] = block_after(m, m.block[0])
    return whole


# ----------------------------------------------------------------------------------------------------- features


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
def phase(m: WholeSignalModel, p: Index, back: Index) -> Index:
    """The part of a period that has passed, in units of 2^-16; back 1: when features were made whose truth comes now."""
    now = m.clock[p]
    if back == 1:
        now -= m.period_back[p]
        if now < 0:
            now += m.period[p]
    return index((word(now) * word(m.period_share[p])) >> 15)


@kernel
def make_features_of(m: WholeSignalModel, ago: Index, back: Index, out: Int16[DIM]) -> None:
    """The features of some steps ago.  O(DIM), and more for means."""
    for f in range(m.difference_first):
        out[f] = m.kept[row_before(m, ago + m.made_steps[f]), m.made_of[f]]
    if m.has_differences:
        for f in range(m.difference_first, m.average_first):
            then = m.kept[row_before(m, ago + m.made_steps[f]), m.made_of[f]]
            out[f] = clip(floor_shift(m.kept[row_before(m, ago), m.made_of[f]] - then + 1, 1), -FULL, FULL)
    if m.has_averages:
        for f in range(m.average_first, m.phase_first):
            total = 0
            for s in range(m.made_steps[f]):
                total += m.kept[row_before(m, ago + s), m.made_of[f]]
            out[f] = clip(rounded(clip(total, -SUM_MOST, SUM_MOST), m.made_steps[f]), -FULL, FULL)
    if m.has_periods:
        for p in range(len(m.clock)):
            turns = phase(m, p, back)
            at = m.phase_first + 2 * p
            out[at] = cosine(turns)
            out[at + 1] = cosine(turns + 49152)
    if m.has_coarse:
        for f in range(len(out)):
            shift = m.made_shift[f]
            out[f] = floor_shift(out[f] + floor_shift(index(word(1) << shift), 1), shift)
    if m.has_narrow:
        for f in range(len(out)):
            out[f] = clip(out[f], m.made_low[f], m.made_high[f])


@kernel
def come_true(m: WholeSignalModel) -> Int:
    """What should have been forecast for the newest step, in the unit of labels."""
    return floor_shift(m.kept[m.latest[0], m.label_measure] * m.label_factor, m.label_places)


@kernel
def valid_signal(m: WholeSignalModel) -> Bool:
    """Whether raw samples within their limit can have led here, beyond the declared ranges.  O(periods)."""
    if not on_time(m):
        return False
    if m.ready[0] == 1 and m.steps[0] <= m.oldest:
        return False
    if m.awaits:
        if m.waiting[0] == 1 and m.ready[0] == 0:
            return False
    return True
