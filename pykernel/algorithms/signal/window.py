"""Measures of a window: from sums over its blocks, which are as long as the hop.

Each block's sums are of what is away from the block's first sample, so that no large number is subtracted from another,
and no sum runs longer than a block.  Blocks are combined as P. P. Pebay, Formulas for robust, one-pass parallel computation
of covariances and arbitrary-order statistical moments, Sandia report 2008-6212, 2008.
"""

from __future__ import annotations

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.signal.spectrum import (
    band_of,
    centroid_of,
    dominant_of,
    flatness_of,
    keep_raw,
    spectrum_of,
)
from pykernel.algorithms.signal.state import CHANNELS, Signal, SignalConfig, SignalWork
from pykernel.dialect import Bool, Index, Real, absolute, kernel, real, sqrt


@kernel
def crosses(one: Real, other: Real) -> Index:
    """1 if exactly one of two numbers is below zero."""
    if one < real(0):
        return 0 if other < real(0) else 1
    return 1 if other < real(0) else 0


@kernel
def begin_block(g: Signal, k: SignalConfig, sample: Real[CHANNELS]) -> None:
    """The first sample of a block.  O(channels)."""
    b = g.block[0]
    for j in range(len(sample)):
        g.first[j] = sample[j]
        g.sum1[j] = real(0)
        if k.has_power2:
            g.sum2[j] = real(0)
        if k.has_power3:
            g.sum3[j] = real(0)
        if k.has_power4:
            g.sum4[j] = real(0)
        if k.has_extremes:
            g.low[b, j] = sample[j]
            g.high[b, j] = sample[j]
        if k.has_slope:
            g.tilt[b, j] = real(0)
        if k.has_change:
            g.changes[b, j] = real(0)
            g.border[b, j] = absolute(sample[j] - g.last[j])
        if k.has_crossings:
            g.crossed[b, j] = 0
            g.crossed_border[b, j] = crosses(g.last[j], sample[j])
    if k.has_correlation:
        for i in range(len(g.sum12)):
            g.sum12[i] = real(0)


@kernel
def add_sample(g: Signal, k: SignalConfig, sample: Real[CHANNELS]) -> None:
    """A later sample of a block.  O(channels + pairs)."""
    b = g.block[0]
    for j in range(len(sample)):
        away = sample[j] - g.first[j]
        g.sum1[j] += away
        if k.has_power2:
            square = away * away
            g.sum2[j] += square
            if k.has_power3:
                g.sum3[j] += square * away
            if k.has_power4:
                g.sum4[j] += square * square
        if k.has_extremes:
            if sample[j] < g.low[b, j]:
                g.low[b, j] = sample[j]
            if sample[j] > g.high[b, j]:
                g.high[b, j] = sample[j]
        if k.has_slope:
            g.tilt[b, j] += (real(g.gathered[0]) - real(0.5) * real(k.hop_last)) * away
        if k.has_change:
            g.changes[b, j] += absolute(sample[j] - g.last[j])
        if k.has_crossings:
            g.crossed[b, j] += crosses(g.last[j], sample[j])
    if k.has_correlation:
        for i in range(len(g.sum12)):
            one = sample[k.pair_first[i]] - g.first[k.pair_first[i]]
            other = sample[k.pair_second[i]] - g.first[k.pair_second[i]]
            g.sum12[i] += one * other


@kernel
def end_block(g: Signal, k: SignalConfig) -> None:
    """Sums about the block's first sample become sums about its mean.  O(channels + pairs)."""
    b = g.block[0]
    n = real(k.hop)
    for j in range(len(g.first)):
        shift = g.sum1[j] * k.block_share
        g.block_mean[b, j] = g.first[j] + shift
        if k.has_power2:
            g.power2[b, j] = clipped(g.sum2[j] - shift * g.sum1[j], real(0), g.sum2[j])
        if k.has_power3:
            g.power3[b, j] = g.sum3[j] - shift * (real(3) * g.sum2[j] - real(2) * (shift * g.sum1[j]))
        if k.has_power4:
            inner = real(6) * g.sum2[j] - real(3) * (shift * g.sum1[j])
            g.power4[b, j] = clipped(
                g.sum4[j] - shift * (real(4) * g.sum3[j] - shift * inner), real(0), real(16) * n * g.sum4[j]
            )
    if k.has_correlation:
        for i in range(len(g.sum12)):
            g.together[b, i] = g.sum12[i] - g.sum1[k.pair_first[i]] * (g.sum1[k.pair_second[i]] * k.block_share)


@kernel
def block_after(g: Signal, b: Index) -> Index:
    """The position of the next newer block."""
    return 0 if b + 1 == len(g.block_mean) else b + 1


@kernel
def combine_blocks(g: Signal, w: SignalWork, k: SignalConfig) -> None:
    """Mean and central sums of the window.  O(channels blocks)."""
    n = real(k.hop)
    # from the oldest block on: the same samples give the same bits, wherever their blocks are kept
    oldest = block_after(g, g.block[0])
    for j in range(len(w.whole_mean)):
        total = real(0)
        b = oldest
        for t in range(len(g.block_mean)):
            total += g.block_mean[b, j] - g.block_mean[oldest, j]
            b = block_after(g, b)
        w.whole_mean[j] = g.block_mean[oldest, j] + total * real(k.hop) * k.window_share
        if k.has_power2:
            w.whole2[j] = real(0)
        if k.has_power3:
            w.whole3[j] = real(0)
        if k.has_power4:
            w.whole4[j] = real(0)
        for t in range(len(g.block_mean)):
            if k.has_power2:
                away = g.block_mean[b, j] - w.whole_mean[j]
                square = away * away
                w.whole2[j] += g.power2[b, j] + n * square
                if k.has_power3:
                    w.whole3[j] += g.power3[b, j] + away * (real(3) * g.power2[b, j] + n * square)
                if k.has_power4:
                    inner = real(6) * g.power2[b, j] + n * square
                    w.whole4[j] += g.power4[b, j] + away * (real(4) * g.power3[b, j] + away * inner)
            b = block_after(g, b)


@kernel
def slope_of(g: Signal, k: SignalConfig, j: Index) -> Real:
    """Of the straight line of least squares, for each sample.  O(blocks)."""
    total = real(0)
    oldest = block_after(g, g.block[0])
    b = oldest
    place = -real(0.5) * k.block_step * real(len(g.block_mean) - 1)
    for t in range(len(g.block_mean)):
        total += g.tilt[b, j] + real(k.hop) * (place * (g.block_mean[b, j] - g.block_mean[oldest, j]))
        place += k.block_step
        b = block_after(g, b)
    return total * k.slope_share


@kernel
def change_of(g: Signal, k: SignalConfig, j: Index) -> Real:
    """Mean of |differences| of neighbours in the window.  O(blocks)."""
    total = real(0)
    oldest = block_after(g, g.block[0])
    b = oldest
    for t in range(len(g.block_mean)):
        total += g.changes[b, j]
        if b != oldest:
            total += g.border[b, j]
        b = block_after(g, b)
    return total * k.gap_share


@kernel
def crossings_of(g: Signal, k: SignalConfig, j: Index) -> Real:
    """How often neighbours in the window have different signs, in parts of all.  O(blocks)."""
    total = 0
    oldest = block_after(g, g.block[0])
    for b in range(len(g.block_mean)):
        total += g.crossed[b, j]
        if b != oldest:
            total += g.crossed_border[b, j]
    return real(total) * k.gap_share


@kernel
def correlation_of(g: Signal, w: SignalWork, k: SignalConfig, i: Index) -> Real:
    """Pearson's, of a pair of channels; 0 where one of them is constant.  O(blocks)."""
    one = k.pair_first[i]
    other = k.pair_second[i]
    total = real(0)
    b = block_after(g, g.block[0])
    for t in range(len(g.block_mean)):
        total += g.together[b, i] + real(k.hop) * (
            (g.block_mean[b, one] - w.whole_mean[one]) * (g.block_mean[b, other] - w.whole_mean[other])
        )
        b = block_after(g, b)
    size = sqrt(w.whole2[one]) * sqrt(w.whole2[other])
    if not (size > real(0)):
        return real(0)
    return total / size


@kernel
def extreme_of(g: Signal, j: Index, highest: Index) -> Real:
    """The largest or the smallest sample of the window.  O(blocks)."""
    found = g.high[0, j] if highest == 1 else g.low[0, j]
    for b in range(1, len(g.block_mean)):
        if highest == 1:
            if g.high[b, j] > found:
                found = g.high[b, j]
        elif g.low[b, j] < found:
            found = g.low[b, j]
    return found


@kernel
def rms_of(w: SignalWork, k: SignalConfig, j: Index) -> Real:
    """Root of the mean square."""
    return sqrt(w.whole2[j] * k.window_share + w.whole_mean[j] * w.whole_mean[j])


@kernel
def crest_of(g: Signal, w: SignalWork, k: SignalConfig, j: Index) -> Real:
    """The largest magnitude, in root mean squares; 0 where the channel is zero.  O(blocks)."""
    size = rms_of(w, k, j)
    most = extreme_of(g, j, 1)
    least = -extreme_of(g, j, 0)
    if least > most:
        most = least
    return most / size if size > real(0) else real(0)


@kernel
def shape_of(w: SignalWork, k: SignalConfig, j: Index, fourth: Index) -> Real:
    """Skewness or, fourth 1, excess kurtosis; 0 where the channel is constant."""
    variance = w.whole2[j] * k.window_share
    if not (variance > real(0)):
        return real(0)
    if k.has_power4:
        if fourth == 1:
            return w.whole4[j] * k.window_share / variance / variance - real(3)
    return w.whole3[j] * k.window_share / variance / sqrt(variance)


@kernel
def put_measure(w: SignalWork, k: SignalConfig, i: Index, value: Real) -> None:
    """A measure, within its limit."""
    w.measured[i] = clipped(value, -k.measure_limit[i], k.measure_limit[i])


@kernel
def measure_window(g: Signal, w: SignalWork, k: SignalConfig) -> None:
    """All measures of the window.  O(measures blocks).

    One loop for each kind, not one over all measures: compilers make a jump through a table of many cases, and of such a
    jump nothing can be proved.
    """
    combine_blocks(g, w, k)
    if k.has_mean:
        for i in range(k.mean_first, k.mean_after):
            put_measure(w, k, i, w.whole_mean[k.measure_of[i]])
    if k.has_rms:
        for i in range(k.rms_first, k.rms_after):
            put_measure(w, k, i, rms_of(w, k, k.measure_of[i]))
    if k.has_std:
        for i in range(k.std_first, k.std_after):
            put_measure(w, k, i, sqrt(w.whole2[k.measure_of[i]] * k.window_share))
    if k.has_min:
        for i in range(k.min_first, k.min_after):
            put_measure(w, k, i, extreme_of(g, k.measure_of[i], 0))
    if k.has_max:
        for i in range(k.max_first, k.max_after):
            put_measure(w, k, i, extreme_of(g, k.measure_of[i], 1))
    if k.has_range:
        for i in range(k.range_first, k.range_after):
            put_measure(w, k, i, extreme_of(g, k.measure_of[i], 1) - extreme_of(g, k.measure_of[i], 0))
    if k.has_crest:
        for i in range(k.crest_first, k.crest_after):
            put_measure(w, k, i, crest_of(g, w, k, k.measure_of[i]))
    if k.has_skewness:
        for i in range(k.skewness_first, k.skewness_after):
            put_measure(w, k, i, shape_of(w, k, k.measure_of[i], 0))
    if k.has_kurtosis:
        for i in range(k.kurtosis_first, k.kurtosis_after):
            put_measure(w, k, i, shape_of(w, k, k.measure_of[i], 1))
    if k.has_crossings:
        for i in range(k.crossings_first, k.crossings_after):
            put_measure(w, k, i, crossings_of(g, k, k.measure_of[i]))
    if k.has_change:
        for i in range(k.change_first, k.change_after):
            put_measure(w, k, i, change_of(g, k, k.measure_of[i]))
    if k.has_slope:
        for i in range(k.slope_first, k.slope_after):
            put_measure(w, k, i, slope_of(g, k, k.measure_of[i]))
    if k.has_correlation:
        for i in range(k.correlation_first, k.correlation_after):
            put_measure(w, k, i, correlation_of(g, w, k, k.measure_of[i]))


@kernel
def measure_spectra(g: Signal, w: SignalWork, k: SignalConfig) -> None:
    """All measures of the windows' spectra.  O(channels (W log W + measures W))."""
    for j in range(len(g.first)):
        spectrum_of(g, w, k, j)
        if k.has_band:
            for i in range(k.band_first, k.band_after):
                if k.measure_of[i] == j:
                    put_measure(w, k, i, band_of(w, k, i))
        if k.has_centroid:
            for i in range(k.centroid_first, k.centroid_after):
                if k.measure_of[i] == j:
                    put_measure(w, k, i, centroid_of(w, k))
        if k.has_dominant:
            for i in range(k.dominant_first, k.dominant_after):
                if k.measure_of[i] == j:
                    put_measure(w, k, i, dominant_of(w, k))
        if k.has_flatness:
            for i in range(k.flatness_first, k.flatness_after):
                if k.measure_of[i] == j:
                    put_measure(w, k, i, flatness_of(w, k))


@kernel
def in_limits(a: Real, least: Real, most: Real) -> Bool:
    """Whether a is a number from least to most."""
    return a >= least and a <= most


@kernel
def valid_blocks(g: Signal, k: SignalConfig) -> Bool:
    """Whether samples within their limit can have led to these sums.  O(blocks (channels + pairs)).

    Limits are twice what sums of so many samples can be, for rounding: samples that follow keep sums within the limits.
    """
    most = k.sample_max_abs
    gathered = g.gathered[0]  # read once: a storage may give another number later
    # of a sample, away from another one
    one = real(4) * most
    two = real(2) * most * one
    three = real(2) * most * two
    four = real(2) * most * three
    # samples in the sums of a whole block, and in those of the block that is gathered; at its end they are those of a whole one
    whole = real(k.hop)
    now = real(gathered) if gathered > 0 else whole
    for j in range(len(g.last)):
        if k.has_change or k.has_crossings:
            if not in_limits(g.last[j], -most, most):
                return False
        if k.has_sums:
            if not in_limits(g.first[j], -most, most) or not in_limits(g.sum1[j], -now * one, now * one):
                return False
        if k.has_power2:
            if not in_limits(g.sum2[j], real(0), now * two):
                return False
        if k.has_power3:
            if not in_limits(g.sum3[j], -now * three, now * three):
                return False
        if k.has_power4:
            if not in_limits(g.sum4[j], real(0), now * four):
                return False
        for b in range(len(g.block_mean)):
            n = whole
            crossed = k.hop_last
            if b == g.block[0] and gathered > 0:
                n = now
                crossed = gathered - 1
            if k.has_sums:
                if not in_limits(g.block_mean[b, j], real(-2) * one, real(2) * one):
                    return False
            if k.has_power2:
                if not in_limits(g.power2[b, j], real(0), whole * two):
                    return False
            if k.has_power3:
                if not in_limits(g.power3[b, j], real(-16) * whole * three, real(16) * whole * three):
                    return False
            if k.has_power4:
                if not in_limits(g.power4[b, j], real(0), real(16) * whole * (whole * four)):
                    return False
            if k.has_extremes:
                if not in_limits(g.low[b, j], -most, most) or not in_limits(g.high[b, j], g.low[b, j], most):
                    return False
            if k.has_slope:
                if not in_limits(g.tilt[b, j], -whole * n * one, whole * n * one):
                    return False
            if k.has_change:
                if not in_limits(g.changes[b, j], real(0), n * one) or not in_limits(g.border[b, j], real(0), one):
                    return False
            if k.has_crossings:
                if g.crossed[b, j] < 0 or g.crossed[b, j] > crossed:
                    return False
                if g.crossed_border[b, j] < 0 or g.crossed_border[b, j] > 1:
                    return False
    if k.has_correlation:
        for i in range(len(g.sum12)):
            if not in_limits(g.sum12[i], -now * two, now * two):
                return False
            for b in range(len(g.block_mean)):
                if not in_limits(g.together[b, i], real(-4) * whole * two, real(4) * whole * two):
                    return False
    return True


@kernel
def take_raw(g: Signal, w: SignalWork, k: SignalConfig, sample: Real[CHANNELS]) -> Index:
    """Take a raw sample; 1 if a step ends with it: there is a new row of measures, in w.measured.  O(channels), and at the
    end of a step O(measures blocks) more."""
    if not k.windows:
        for i in range(len(w.measured)):
            w.measured[i] = sample[k.measure_of[i]]
        return 1
    if g.begun[0] == 0:
        # there is no sample before: the first one stands for it
        for j in range(len(sample)):
            g.last[j] = sample[j]
        g.begun[0] = 1
    if g.gathered[0] == 0:
        begin_block(g, k, sample)
    else:
        add_sample(g, k, sample)
    for j in range(len(sample)):
        g.last[j] = sample[j]
    if k.has_spectrum:
        keep_raw(g, sample)
    if g.gathered[0] < k.hop_last:
        g.gathered[0] += 1
        return 0
    end_block(g, k)
    g.gathered[0] = 0
    if g.blocks[0] < len(g.block_mean):
        g.blocks[0] += 1
    whole = 0
    if g.blocks[0] == len(g.block_mean):
        measure_window(g, w, k)
        if k.has_spectrum:
            measure_spectra(g, w, k)
        whole = 1
    g.block[0] = block_after(g, g.block[0])
    return whole
