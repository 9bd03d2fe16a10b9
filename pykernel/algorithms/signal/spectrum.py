"""The spectrum of a window: bands, and what sums up a spectrum.

The samples without their mean, times a Hann window, through a Fourier transform of a power of two: the real samples as
half as many complex ones (W. H. Press et al., Numerical Recipes, section 12.3).  Powers are those of one side, scaled so that
their sum is the mean square of the samples without their mean, but for the window's leakage.
"""

from __future__ import annotations

from pykernel.algorithms.elementary import exp2_negative, log2_one_plus
from pykernel.algorithms.signal.state import CHANNELS, Signal, SignalConfig, SignalWork
from pykernel.dialect import Constant, Index, Real, kernel, real, sqrt

MANY_TIMES = Constant(2.0**40)
"""A power this many times below the mean counts as so small: of a line in silence, flatness is a number, too."""


@kernel
def keep_raw(g: Signal, sample: Real[CHANNELS]) -> None:
    """Keep the raw sample for the spectrum.  O(channels)."""
    for j in range(len(sample)):
        g.raw_kept[g.raw_at[0], j] = sample[j]
    g.raw_at[0] = 0 if g.raw_at[0] + 1 == len(g.raw_kept) else g.raw_at[0] + 1


@kernel
def cosine_at(k: SignalConfig, c: Index) -> Real:
    """cos(2 pi c / window), for c below the window."""
    return k.cosines[c] if c < len(k.cosines) else -k.cosines[c - len(k.cosines)]


@kernel
def prepared(g: Signal, w: SignalWork, k: SignalConfig, j: Index, t: Index) -> Real:
    """The sample of channel j that is t after the oldest, without the mean, times the window's weight."""
    at = g.raw_at[0] + t
    if at >= len(g.raw_kept):
        at -= len(g.raw_kept)
    return (g.raw_kept[at, j] - w.whole_mean[j]) * (real(0.5) - real(0.5) * cosine_at(k, t))


@kernel
def transform(w: SignalWork, k: SignalConfig) -> None:
    """The Fourier transform of the complex numbers in re and im, which are in bit-reversed order.  O(W log W)."""
    for level in range(len(k.spans)):
        span = k.spans[level]
        step = 2 * k.groups[level]
        for group in range(k.groups[level]):
            for b in range(k.spans[level]):
                one = 2 * group * span + b
                other = one + span
                turn = b * step
                quarter = turn - k.quarter
                c = k.cosines[turn]
                s = k.cosines[quarter if quarter > 0 else -quarter]
                re = w.re[other] * c + w.im[other] * s
                im = w.im[other] * c - w.re[other] * s
                w.re[other] = w.re[one] - re
                w.im[other] = w.im[one] - im
                w.re[one] = w.re[one] + re
                w.im[one] = w.im[one] + im


@kernel
def spectrum_of(g: Signal, w: SignalWork, k: SignalConfig, j: Index) -> None:
    """The powers of channel j's window, w.lines[0] to w.lines[W / 2].  O(W log W)."""
    half = len(w.re)
    for i in range(len(w.re)):
        w.re[k.reversed[i]] = prepared(g, w, k, j, 2 * i)
        w.im[k.reversed[i]] = prepared(g, w, k, j, 2 * i + 1)
    transform(w, k)
    first = w.re[0] + w.im[0]
    last = w.re[0] - w.im[0]
    w.lines[0] = real(0.5) * k.power_scale * (first * first)
    w.lines[half] = real(0.5) * k.power_scale * (last * last)
    for i in range(1, len(w.re)):
        mirror = half - i
        even_re = real(0.5) * (w.re[i] + w.re[mirror])
        even_im = real(0.5) * (w.im[i] - w.im[mirror])
        odd_re = real(0.5) * (w.im[i] + w.im[mirror])
        odd_im = real(0.5) * (w.re[mirror] - w.re[i])
        quarter = i - k.quarter
        c = k.cosines[i]
        s = k.cosines[quarter if quarter > 0 else -quarter]
        re = even_re + (odd_re * c + odd_im * s)
        im = even_im + (odd_im * c - odd_re * s)
        w.lines[i] = k.power_scale * (re * re + im * im)


@kernel
def band_of(w: SignalWork, k: SignalConfig, i: Index) -> Real:
    """Root mean square in a band, or its logarithm.  O(W)."""
    total = real(0)
    for f in range(k.band_first_bin[i], k.band_after_bin[i]):
        total += w.lines[f]
    if k.takes_log:
        return log2_one_plus(total * k.log_scale)
    return sqrt(total)


@kernel
def all_power(w: SignalWork) -> Real:
    """Of all frequencies but zero.  O(W)."""
    total = real(0)
    for f in range(1, len(w.lines)):
        total += w.lines[f]
    return total


@kernel
def centroid_of(w: SignalWork, k: SignalConfig) -> Real:
    """The mean frequency, weighted by power; 0 in silence.  O(W)."""
    total = all_power(w)
    if not (total > real(0)):
        return real(0)
    weighted = real(0)
    for f in range(1, len(w.lines)):
        weighted += real(f) * (w.lines[f] / total)
    return weighted * k.bin_width


@kernel
def dominant_of(w: SignalWork, k: SignalConfig) -> Real:
    """The frequency of the largest power; 0 in silence.  O(W)."""
    found = 0
    most = real(0)
    for f in range(1, len(w.lines)):
        if w.lines[f] > most:
            most = w.lines[f]
            found = f
    return real(found) * k.bin_width


@kernel
def flatness_of(w: SignalWork, k: SignalConfig) -> Real:
    """The geometric mean of the powers in parts of their mean: 1 for noise, 0 for a tone, and 0 in silence.  O(W)."""
    mean = all_power(w) * k.power_share
    if not (mean > real(0)):
        return real(0)
    total = real(0)
    for f in range(1, len(w.lines)):
        times = w.lines[f] / mean * MANY_TIMES
        if times > real(1):
            total += log2_one_plus(times - real(1))
    # log2 of the geometric mean, which is at most 0 but for rounding
    level = total * k.power_share - real(40)
    return exp2_negative(level) if level < real(0) else real(1)
