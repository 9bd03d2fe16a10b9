"""Measures of a window, which are computed from sums over the window's blocks.  A block is as long as a step.

The sums of a block are over differences from the block's first sample, so that no large sum is subtracted from another.
No sum has more terms than a block has samples or a window has blocks.  Blocks are combined as in P. P. Pebay, Formulas
for robust, one-pass parallel computation of covariances and arbitrary-order statistical moments, Sandia report
2008-6212, 2008.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.signal.spectrum import (
    band_of,
    centroid_of,
    dominant_of,
    flatness_of,
    keep_raw,
    spectrum_of,
)
from pykernel.algorithms.signal.state import CHANNELS, SignalModel
from pykernel.dialect import Bool, Index, Real, absolute, kernel, real, sqrt


@kernel
def crosses(one: Real, other: Real) -> Index:
    """1 if exactly one of two numbers is below zero."""
    if one < real(0):
        return 0 if other < real(0) else 1
    return 1 if other < real(0) else 0


@kernel
def begin_block(m: SignalModel, sample: Real[CHANNELS]) -> None:
    """Start a block with its first sample.  O(channels)."""
    b = m.block[0]
    for j in range(len(sample)):
        m.first[j] = sample[j]
        m.sum1[j] = real(0)
        m.sum2[j] = real(0)
        m.sum3[j] = real(0)
        m.sum4[j] = real(0)
        m.tilt[b, j] = real(0)
        m.changes[b, j] = real(0)
        m.crossed[b, j] = 0
        if m.has_extremes:
            m.lowest[b, j] = sample[j]
            m.highest[b, j] = sample[j]
        if m.has_change:
            m.border[b, j] = absolute(sample[j] - m.last[j])
        if m.has_crossings:
            m.crossed_border[b, j] = crosses(m.last[j], sample[j])
    for i in range(len(m.sum12)):
        m.sum12[i] = real(0)


@kernel
def add_sample(m: SignalModel, sample: Real[CHANNELS]) -> None:
    """Add a sample to a block that begin_block() has started with its first sample.  O(channels + pairs)."""
    b = m.block[0]
    for j in range(len(sample)):
        away = sample[j] - m.first[j]
        m.sum1[j] += away
        if m.has_power2:
            square = away * away
            m.sum2[j] += square
            if m.has_power3:
                m.sum3[j] += square * away
            if m.has_power4:
                m.sum4[j] += square * square
        if m.has_extremes:
            if sample[j] < m.lowest[b, j]:
                m.lowest[b, j] = sample[j]
            if sample[j] > m.highest[b, j]:
                m.highest[b, j] = sample[j]
        if m.has_slope:
            m.tilt[b, j] += (real(m.gathered[0]) - real(0.5) * real(m.hop_last)) * away
        if m.has_change:
            m.changes[b, j] += absolute(sample[j] - m.last[j])
        # crossed < hop_last is always true; static analysis, which sees only one call, needs this test to bound the count
        if m.has_crossings and m.crossed[b, j] < m.hop_last:
            m.crossed[b, j] += crosses(m.last[j], sample[j])
    if m.has_correlation:
        for i in range(len(m.sum12)):
            one = sample[m.pair_first[i]] - m.first[m.pair_first[i]]
            other = sample[m.pair_second[i]] - m.first[m.pair_second[i]]
            m.sum12[i] += one * other


@kernel
def end_block(m: SignalModel) -> None:
    """Convert sums about the block's first sample to sums about its mean.  O(channels + pairs)."""
    b = m.block[0]
    n = real(m.hop)
    for j in range(len(m.first)):
        shift = m.sum1[j] * m.block_share
        m.block_mean[b, j] = m.first[j] + shift
        if m.has_power2:
            m.power2[b, j] = clipped(m.sum2[j] - shift * m.sum1[j], real(0), m.sum2[j])
        if m.has_power3:
            m.power3[b, j] = m.sum3[j] - shift * (real(3) * m.sum2[j] - real(2) * (shift * m.sum1[j]))
        if m.has_power4:
            inner = real(6) * m.sum2[j] - real(3) * (shift * m.sum1[j])
            m.power4[b, j] = clipped(
                m.sum4[j] - shift * (real(4) * m.sum3[j] - shift * inner), real(0), real(16) * n * m.sum4[j]
            )
    if m.has_correlation:
        for i in range(len(m.sum12)):
            m.together[b, i] = m.sum12[i] - m.sum1[m.pair_first[i]] * (m.sum1[m.pair_second[i]] * m.block_share)


@kernel
def block_after(m: SignalModel, b: Index) -> Index:
    """The position of the block that follows block b."""
    return b + 1 if b < len(m.lowest) - 1 else 0


@kernel
def combine_blocks(m: SignalModel) -> None:
    """Compute the mean of the window, and the sums of powers of the deviations from it.  O(channels blocks)."""
    n = real(m.hop)
    # the sum starts with the oldest block, so that the same samples give the same bits wherever their blocks are kept
    oldest = block_after(m, m.block[0])
    for j in range(len(m.whole_mean)):
        total = real(0)
        b = oldest
        for t in range(len(m.block_mean)):
            total += m.block_mean[b, j] - m.block_mean[oldest, j]
            b = block_after(m, b)
        m.whole_mean[j] = m.block_mean[oldest, j] + total * real(m.hop) * m.window_share
        m.whole2[j] = real(0)
        m.whole3[j] = real(0)
        m.whole4[j] = real(0)
        for t in range(len(m.block_mean)):
            if m.has_power2:
                away = m.block_mean[b, j] - m.whole_mean[j]
                square = away * away
                m.whole2[j] += m.power2[b, j] + n * square
                if m.has_power3:
                    m.whole3[j] += m.power3[b, j] + away * (real(3) * m.power2[b, j] + n * square)
                if m.has_power4:
                    inner = real(6) * m.power2[b, j] + n * square
                    m.whole4[j] += m.power4[b, j] + away * (real(4) * m.power3[b, j] + away * inner)
            b = block_after(m, b)


@kernel
def slope_of(m: SignalModel, j: Index) -> Real:
    """Slope of the least-squares line, per sample.  O(blocks)."""
    total = real(0)
    oldest = block_after(m, m.block[0])
    b = oldest
    place = -real(0.5) * m.block_step * real(len(m.block_mean) - 1)
    for t in range(len(m.block_mean)):
        total += m.tilt[b, j] + real(m.hop) * (place * (m.block_mean[b, j] - m.block_mean[oldest, j]))
        place += m.block_step
        b = block_after(m, b)
    return total * m.slope_share


@kernel
def change_of(m: SignalModel, j: Index) -> Real:
    """Mean absolute difference of neighbouring samples in the window.  O(blocks)."""
    total = real(0)
    oldest = block_after(m, m.block[0])
    b = oldest
    for t in range(len(m.block_mean)):
        total += m.changes[b, j]
        if b != oldest:
            total += m.border[b, j]
        b = block_after(m, b)
    return total * m.gap_share


@kernel
def crossings_of(m: SignalModel, j: Index) -> Real:
    """The fraction of the pairs of neighbouring samples in the window that have different signs.  O(blocks)."""
    total = 0
    oldest = block_after(m, m.block[0])
    for b in range(len(m.block_mean)):
        total += m.crossed[b, j]
        if b != oldest:
            total += m.crossed_border[b, j]
    return real(total) * m.gap_share


@kernel
def correlation_of(m: SignalModel, i: Index) -> Real:
    """Pearson correlation of a pair of channels; 0 if one of them is constant.  O(blocks)."""
    one = m.pair_first[i]
    other = m.pair_second[i]
    total = real(0)
    b = block_after(m, m.block[0])
    for t in range(len(m.block_mean)):
        total += m.together[b, i] + real(m.hop) * (
            (m.block_mean[b, one] - m.whole_mean[one]) * (m.block_mean[b, other] - m.whole_mean[other])
        )
        b = block_after(m, b)
    size = sqrt(m.whole2[one]) * sqrt(m.whole2[other])
    if not (size > real(0)):
        return real(0)
    return total / size


@kernel
def extreme_of(m: SignalModel, j: Index, highest: Index) -> Real:
    """The largest or, with highest = 0, the smallest sample of the window.  O(blocks)."""
    extreme = m.highest[0, j] if highest == 1 else m.lowest[0, j]
    for b in range(1, len(m.lowest)):
        if highest == 1:
            if m.highest[b, j] > extreme:
                extreme = m.highest[b, j]
        elif m.lowest[b, j] < extreme:
            extreme = m.lowest[b, j]
    return extreme


@kernel
def range_of(m: SignalModel, j: Index) -> Real:
    """The largest minus the smallest sample of the window.  O(blocks)."""
    return extreme_of(m, j, 1) - extreme_of(m, j, 0)


@kernel
def mean_of(m: SignalModel, j: Index) -> Real:
    """The mean of the window."""
    return m.whole_mean[j]


@kernel
def std_of(m: SignalModel, j: Index) -> Real:
    """Standard deviation."""
    return sqrt(m.whole2[j] * m.window_share)


@kernel
def rms_of(m: SignalModel, j: Index) -> Real:
    """Root mean square."""
    return sqrt(m.whole2[j] * m.window_share + m.whole_mean[j] * m.whole_mean[j])


@kernel
def crest_of(m: SignalModel, j: Index) -> Real:
    """The largest magnitude divided by the root mean square; 0 if the channel is zero.  O(blocks)."""
    size = rms_of(m, j)
    most = extreme_of(m, j, 1)
    least = -extreme_of(m, j, 0)
    if least > most:
        most = least
    return most / size if size > real(0) else real(0)


@kernel
def shape_of(m: SignalModel, j: Index, fourth: Index) -> Real:
    """Skewness or, with fourth = 1, excess kurtosis; 0 if the channel is constant."""
    variance = m.whole2[j] * m.window_share
    if not (variance > real(0)):
        return real(0)
    if m.has_power4 and fourth == 1:
        return m.whole4[j] * m.window_share / variance / variance - real(3)
    return m.whole3[j] * m.window_share / variance / sqrt(variance)


@kernel
def put_measure(m: SignalModel, i: Index, value: Real) -> None:
    """Store a measure, clipped to its limit."""
    m.measured[i] = clipped(value, -m.measure_limit[i], m.measure_limit[i])


@kernel
def measure_shapes(m: SignalModel) -> None:
    """Compute those measures of the window that the int16 stage lacks.  O(measures blocks)."""
    if m.has_crest:
        for i in range(m.crest_first, m.crest_after):
            put_measure(m, i, crest_of(m, m.measure_of[i]))
    if m.has_skewness:
        for i in range(m.skewness_first, m.skewness_after):
            put_measure(m, i, shape_of(m, m.measure_of[i], 0))
    if m.has_kurtosis:
        for i in range(m.kurtosis_first, m.kurtosis_after):
            put_measure(m, i, shape_of(m, m.measure_of[i], 1))
    if m.has_slope:
        for i in range(m.slope_first, m.slope_after):
            put_measure(m, i, slope_of(m, m.measure_of[i]))
    if m.has_correlation:
        for i in range(m.correlation_first, m.correlation_after):
            put_measure(m, i, correlation_of(m, m.measure_of[i]))


@kernel
def measure_window(m: SignalModel) -> None:
    """Compute all measures of the window, except those of its spectrum.  O(measures blocks).

    There is one loop for each kind, not one loop over all measures with a case for each kind: compilers would turn many cases into
    a jump table, about which static analysis can prove nothing.
    """
    combine_blocks(m)
    if m.has_mean:
        for i in range(m.mean_first, m.mean_after):
            put_measure(m, i, mean_of(m, m.measure_of[i]))
    if m.has_rms:
        for i in range(m.rms_first, m.rms_after):
            put_measure(m, i, rms_of(m, m.measure_of[i]))
    if m.has_std:
        for i in range(m.std_first, m.std_after):
            put_measure(m, i, std_of(m, m.measure_of[i]))
    if m.has_min:
        for i in range(m.min_first, m.min_after):
            put_measure(m, i, extreme_of(m, m.measure_of[i], 0))
    if m.has_max:
        for i in range(m.max_first, m.max_after):
            put_measure(m, i, extreme_of(m, m.measure_of[i], 1))
    if m.has_range:
        for i in range(m.range_first, m.range_after):
            put_measure(m, i, range_of(m, m.measure_of[i]))
    if m.has_crossings:
        for i in range(m.crossings_first, m.crossings_after):
            put_measure(m, i, crossings_of(m, m.measure_of[i]))
    if m.has_change:
        for i in range(m.change_first, m.change_after):
            put_measure(m, i, change_of(m, m.measure_of[i]))
    measure_shapes(m)


@kernel
def measure_tones(m: SignalModel, j: Index) -> None:
    """Compute those measures of channel j's spectrum that the int16 stage lacks.  O(measures W)."""
    if m.has_centroid:
        for i in range(m.centroid_first, m.centroid_after):
            if m.measure_of[i] == j:
                put_measure(m, i, centroid_of(m))
    if m.has_dominant:
        for i in range(m.dominant_first, m.dominant_after):
            if m.measure_of[i] == j:
                put_measure(m, i, dominant_of(m))
    if m.has_flatness:
        for i in range(m.flatness_first, m.flatness_after):
            if m.measure_of[i] == j:
                put_measure(m, i, flatness_of(m))


@kernel
def measure_spectra(m: SignalModel) -> None:
    """Compute all measures of the windows' spectra.  O(channels (W log W + measures W))."""
    for j in range(len(m.last)):
        spectrum_of(m, j)
        if m.has_band:
            for i in range(m.band_first, m.band_after):
                if m.measure_of[i] == j:
                    put_measure(m, i, band_of(m, i))
        measure_tones(m, j)


@kernel
def in_limits(a: Real, least: Real, most: Real) -> Bool:
    """Whether a is a number from least to most."""
    return a >= least and a <= most


@kernel
def valid_blocks(m: SignalModel) -> Bool:
    """Whether samples within their limit could have led to these sums.  O(blocks (channels + pairs)).

    The limits are at least twice the largest possible sums, to allow for rounding.  Sums within the limits stay within
    them when later samples arrive.
    """
    most = m.sample_max_abs
    gathered = m.gathered[0]  # the count is read only once, because the model's memory may change between two reads
    # twice the largest difference between two samples, and twice the square, the cube and the fourth power of this difference
    one = real(4) * most
    two = real(2) * most * one
    three = real(2) * most * two
    four = real(2) * most * three
    # whole: number of samples in a whole block.  now: number of samples in sum1 to sum4; between blocks, these keep the last block's sums
    whole = real(m.hop)
    now = real(gathered) if gathered > 0 else whole
    for j in range(len(m.last)):
        if (
            ((m.has_change or m.has_crossings) and not in_limits(m.last[j], -most, most))
            or (m.has_sums and not (in_limits(m.first[j], -most, most) and in_limits(m.sum1[j], -now * one, now * one)))
            or (m.has_power2 and not in_limits(m.sum2[j], real(0), now * two))
            or (m.has_power3 and not in_limits(m.sum3[j], -now * three, now * three))
            or (m.has_power4 and not in_limits(m.sum4[j], real(0), now * four))
        ):
            return False
        for b in range(len(m.block_mean)):
            n = whole
            crossed = m.hop_last
            if b == m.block[0] and gathered > 0:
                n = now
                crossed = gathered - 1
            if (
                (m.has_sums and not in_limits(m.block_mean[b, j], real(-2) * one, real(2) * one))
                or (m.has_power2 and not in_limits(m.power2[b, j], real(0), whole * two))
                or (m.has_power3 and not in_limits(m.power3[b, j], real(-16) * whole * three, real(16) * whole * three))
                or (m.has_power4 and not in_limits(m.power4[b, j], real(0), real(16) * whole * (whole * four)))
                or (m.has_extremes and not in_limits(m.lowest[b, j], -most, most))
                or (m.has_extremes and not in_limits(m.highest[b, j], m.lowest[b, j], most))
                or (m.has_slope and not in_limits(m.tilt[b, j], -whole * n * one, whole * n * one))
                or (m.has_change and not in_limits(m.changes[b, j], real(0), n * one))
                or (m.has_change and not in_limits(m.border[b, j], real(0), one))
                or (m.has_crossings and m.crossed[b, j] > crossed)
            ):
                return False
    if m.has_correlation:
        for i in range(len(m.sum12)):
            if not in_limits(m.sum12[i], -now * two, now * two):
                return False
            for b in range(len(m.block_mean)):
                if not in_limits(m.together[b, i], real(-4) * whole * two, real(4) * whole * two):
                    return False
    return True


@kernel
def take_sample(m: SignalModel, sample: Real[CHANNELS]) -> Index:
    """Take a sample.  Returns 1 if the sample ends a step and the window is full; m.measured then has the measures of
    the step.  O(channels); at the end of a step, also O(measures blocks), and O(channels W log W) for spectra."""
    if not m.windows:
        for i in range(len(m.measured)):
            m.measured[i] = sample[m.measure_of[i]]
        return 1
    if m.begun[0] == 0:
        # there is no previous sample, so the first sample is used instead
        for j in range(len(sample)):
            m.last[j] = sample[j]
        m.begun[0] = 1
    if m.gathered[0] == 0:
        begin_block(m, sample)
    else:
        add_sample(m, sample)
    for j in range(len(sample)):
        m.last[j] = sample[j]
    if m.has_spectrum:
        keep_raw(m, sample)
    if m.gathered[0] < m.hop_last:
        m.gathered[0] += 1
        return 0
    end_block(m)
    m.gathered[0] = 0
    if m.blocks[0] < len(m.lowest):
        m.blocks[0] += 1
    whole = 0
    if m.blocks[0] == len(m.lowest):
        measure_window(m)
        if m.has_spectrum:
            measure_spectra(m)
        whole = 1
    m.block[0] = block_after(m, m.block[0])
    return whole


@kernel
def take_raw(m: SignalModel, sample: Real[CHANNELS]) -> Index:
    """Take a raw sample, which needs no conversion."""
    return take_sample(m, sample)
