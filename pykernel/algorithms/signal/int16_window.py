"""Measures of a window, computed in integers: raw samples and measures are 16-bit counts.

Sums over blocks are exact, and so are sums over a window, which are sums over its blocks.  Only the computation of a
measure from these sums rounds.  The code that decides which sums and measures are computed, and when a step ends, is in
``pykernel.algorithms.signal.window``.
"""

from pykernel.algorithms.int16.arithmetic import clip, long_root, product_high, size
from pykernel.algorithms.signal.int16_state import FULL, SUM_MOST, Int16SignalModel
from pykernel.algorithms.signal.state import CHANNELS
from pykernel.algorithms.signal.window import block_after, extreme_of, take_sample
from pykernel.dialect import Bool, Index, Int, Int16, as_signed, floor_shift, index, kernel, quotient, word


@kernel
def acceptable_sample(m: Int16SignalModel, sample: Int16[CHANNELS]) -> Bool:
    """Whether the value of every channel is within the limit of the channel."""
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
def add_sample(m: Int16SignalModel, sample: Int16[CHANNELS]) -> None:
    """Add a sample to a block.  O(channels)."""
    b = m.block[0]
    for j in range(len(sample)):
        # added modulo 2^32, because the sum could overflow if memory was overwritten
        total = as_signed(word(m.total[b, j]) + word(sample[j]))
        m.total[b, j] = clip(total, -m.block_most, m.block_most)
        if m.has_squares:
            square = word(sample[j] * sample[j])
            m.square_high[b, j] += square >> 16
            m.square_low[b, j] += square & 65535
        if m.has_extremes:
            if sample[j] < m.lowest[b, j]:
                m.lowest[b, j] = sample[j]
            if sample[j] > m.highest[b, j]:
                m.highest[b, j] = sample[j]
        if m.gathered[0] > 0:
            if m.has_change:
                m.changes[b, j] += word(size(sample[j] - m.last[j]))
            if m.has_crossings:
                crossed = as_signed(word(m.crossed[b, j]) + word(crosses(m.last[j], sample[j])))
                m.crossed[b, j] = clip(crossed, 0, m.hop_last)


@kernel
def begin_block(m: Int16SignalModel, sample: Int16[CHANNELS]) -> None:
    """Start a block with its first sample.  O(channels)."""
    b = m.block[0]
    for j in range(len(sample)):
        m.total[b, j] = 0
        m.square_high[b, j] = word(0)
        m.square_low[b, j] = word(0)
        m.changes[b, j] = word(0)
        m.crossed[b, j] = 0
        if m.has_extremes:
            m.lowest[b, j] = sample[j]
            m.highest[b, j] = sample[j]
        if m.has_change:
            m.border[b, j] = size(sample[j] - m.last[j])
        if m.has_crossings:
            m.crossed_border[b, j] = crosses(m.last[j], sample[j])
    add_sample(m, sample)


@kernel
def rounded(a: Int, n: Int) -> Int:
    """a / n for n > 0, rounded to the nearest integer; halves are rounded away from zero."""
    half = floor_shift(n, 1)
    return quotient(a + half, n) if a >= 0 else -quotient(half - a, n)


@kernel
def total_of(m: Int16SignalModel, j: Index) -> Int:
    """The sum of the window's samples.  O(blocks)."""
    total = word(0)
    for b in range(len(m.total)):
        total += word(m.total[b, j])
    return clip(as_signed(total), -SUM_MOST, SUM_MOST)


@kernel
def mean_of(m: Int16SignalModel, j: Index) -> Int:
    """The mean of the window.  O(blocks)."""
    return clip(rounded(total_of(m, j), m.window), -FULL, FULL)


@kernel
def deviation_of(m: Int16SignalModel, j: Index, about_mean: Index) -> Int:
    """Root mean square of the window or, with about_mean = 1, its standard deviation.  O(blocks).

    For n samples, these are sqrt(n sum x^2) / n and sqrt(n sum x^2 - (sum x)^2) / n; the number under the root is exact.
    """
    upper = word(0)
    lower = word(0)
    for b in range(len(m.total)):
        upper += m.square_high[b, j]
        # this does not overflow: a window has at most 2^16 samples, and the lower bits of each square are below 2^16
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
def change_of(m: Int16SignalModel, j: Index) -> Int:
    """Half the mean absolute difference of neighbouring samples in the window.  O(blocks)."""
    total = word(0)
    oldest = block_after(m, m.block[0])
    for b in range(len(m.total)):
        total += m.changes[b, j]
        if b != oldest:
            total += word(m.border[b, j])
    return clip(rounded(clip(index(total >> 1), 0, SUM_MOST), m.window - 1), 0, FULL)


@kernel
def crossings_of(m: Int16SignalModel, j: Index) -> Int:
    """The fraction of the pairs of neighbouring samples in the window that have different signs, in units of 2^-15.  O(blocks)."""
    total = word(0)
    oldest = block_after(m, m.block[0])
    for b in range(len(m.total)):
        total += word(m.crossed[b, j])
        if b != oldest:
            total += word(m.crossed_border[b, j])
    return clip(rounded(clip(as_signed(total), 0, m.window - 1) * 32768, m.window - 1), 0, FULL)


@kernel
def rms_of(m: Int16SignalModel, j: Index) -> Int:
    """Root mean square.  O(blocks)."""
    return deviation_of(m, j, 0)


@kernel
def std_of(m: Int16SignalModel, j: Index) -> Int:
    """Standard deviation.  O(blocks)."""
    return deviation_of(m, j, 1)


@kernel
def range_of(m: Int16SignalModel, j: Index) -> Int:
    """Half the difference between the largest and the smallest sample of the window.  O(blocks)."""
    return clip(floor_shift(extreme_of(m, j, 1) - extreme_of(m, j, 0) + 1, 1), -FULL, FULL)


@kernel
def put_measure(m: Int16SignalModel, i: Index, value: Int) -> None:
    """Store a measure."""
    m.measured[i] = value


@kernel
def nothing(m: Int16SignalModel) -> None:
    """Nothing to do: sums of the samples themselves need no conversion, and the int16 stage lacks the measures that
    would be computed here."""


@kernel
def no_tones(m: Int16SignalModel, j: Index) -> None:
    """Nothing to do: the int16 stage lacks the measures that would be computed here."""


@kernel
def take_raw(m: Int16SignalModel, sample: Int16[CHANNELS]) -> Index:
    """Convert a raw sample to the counts from which measures are computed, and take the converted sample."""
    for j in range(len(sample)):
        m.lifted[j] = clip(sample[j] * m.fill[j], -FULL, FULL)
    return take_sample(m, m.lifted)
