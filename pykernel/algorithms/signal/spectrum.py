"""The spectrum of a window: bands, and what sums up a spectrum.

The samples without their mean, times a Hann window, through a Fourier transform of a power of two: the real samples as
half as many complex ones (W. H. Press et al., Numerical Recipes, section 12.3).  Powers are those of one side, scaled so that
their sum is the mean square of the samples without their mean, but for the window's leakage.
"""

from __future__ import annotations

from pykernel.algorithms.elementary import exp2_negative, log2_one_plus
from pykernel.algorithms.signal.state import CHANNELS, Signal, SignalConfig, SignalWork
from pykernel.dialect import Constant, Index, Real, kernel, real, sqrt

MANY_TIMES = Constant(2.0**20)
"""A power this many times below the mean counts as so small.  What counts must be far above the rounding error of a power of
nothing: the geometric mean takes each power's relative error."""
SILENCE = Constant(2.0**-120)
"""A mean power that counts as none."""


@kernel
def keep_raw(g: Signal, sample: Real[CHANNELS]) -> None:
    """Keep the raw sample for the spectrum.  O(channels)."""
    for j in range(len(sample)):
        g.raw_kept[g.raw_at[0], j] = sample[j]
    g.raw_at[0] = 0 if g.raw_at[0] + 1 == len(g.raw_kept) else g.raw_at[0] + 1


@kernel
def cosine_at(k: SignalConfig, c: Index) -> Real:
    """cos(2 pi c / window), for c from -window / 2 to below the window, both excluded."""
    at = -c if c < 0 else c
    return k.cosines[at] if at < len(k.cosines) else -k.cosines[at - len(k.cosines)]


@kernel
def raw_after(g: Signal, at: Index) -> Index:
    """Where the next newer raw sample is kept."""
    return 0 if at + 1 == len(g.raw_kept) else at + 1


@kernel
def prepare(g: Signal, w: SignalWork, k: SignalConfig, j: Index) -> None:
    """Channel j without its mean, times half the window's weights, in bit-reversed order; the transform's first level.  O(W).

    A pair of that level are two samples whose distance is half of the window: their weights are those of one cosine.
    """
    mean = w.whole_mean[j]
    at = g.raw_at[0]
    other = at + len(w.im)
    if other >= len(g.raw_kept):
        other -= len(g.raw_kept)
    for i in range(len(k.reversed)):
        c = real(0.25) * k.cosines[2 * i]
        re = (g.raw_kept[at, j] - mean) * (real(0.25) - c)
        re_other = (g.raw_kept[other, j] - mean) * (real(0.25) + c)
        at = raw_after(g, at)
        other = raw_after(g, other)
        c = real(0.25) * k.cosines[2 * i + 1]
        im = (g.raw_kept[at, j] - mean) * (real(0.25) - c)
        im_other = (g.raw_kept[other, j] - mean) * (real(0.25) + c)
        at = raw_after(g, at)
        other = raw_after(g, other)
        to = k.reversed[i]
        w.re[to] = re + re_other
        w.im[to] = im + im_other
        w.re[to + 1] = re - re_other
        w.im[to + 1] = im - im_other


@kernel
def transform(w: SignalWork, k: SignalConfig) -> None:
    """The other levels of the Fourier transform of the complex numbers in re and im, two at a time.  O(W log W)."""
    if k.has_single_level:
        for i in range(0, len(w.im), 4):
            re = w.re[i + 2]
            im = w.im[i + 2]
            w.re[i + 2] = w.re[i] - re
            w.im[i + 2] = w.im[i] - im
            w.re[i] = w.re[i] + re
            w.im[i] = w.im[i] + im
            # times -i
            re = w.im[i + 3]
            im = -w.re[i + 3]
            w.re[i + 3] = w.re[i + 1] - re
            w.im[i + 3] = w.im[i + 1] - im
            w.re[i + 1] = w.re[i + 1] + re
            w.im[i + 1] = w.im[i + 1] + im
    for level in range(len(k.spans)):
        span = k.spans[level]
        for b in range(k.spans[level]):
            turn = 2 * b * k.groups[level]
            c1 = k.cosines[turn]
            s1 = cosine_at(k, turn - len(k.reversed))
            c2 = k.cosines[2 * turn]
            s2 = cosine_at(k, 2 * turn - len(k.reversed))
            c3 = cosine_at(k, 3 * turn)
            s3 = cosine_at(k, 3 * turn - len(k.reversed))
            first = b
            for group in range(k.groups[level]):
                second = first + span
                third = second + span
                fourth = third + span
                re2 = w.re[second] * c2 + w.im[second] * s2
                im2 = w.im[second] * c2 - w.re[second] * s2
                re1 = w.re[third] * c1 + w.im[third] * s1
                im1 = w.im[third] * c1 - w.re[third] * s1
                re3 = w.re[fourth] * c3 + w.im[fourth] * s3
                im3 = w.im[fourth] * c3 - w.re[fourth] * s3
                re = w.re[first] - re2
                im = w.im[first] - im2
                re2 = w.re[first] + re2
                im2 = w.im[first] + im2
                w.re[second] = re + (im1 - im3)
                w.im[second] = im - (re1 - re3)
                w.re[fourth] = re - (im1 - im3)
                w.im[fourth] = im + (re1 - re3)
                w.re[first] = re2 + (re1 + re3)
                w.im[first] = im2 + (im1 + im3)
                w.re[third] = re2 - (re1 + re3)
                w.im[third] = im2 - (im1 + im3)
                first += 4 * span


@kernel
def spectrum_of(g: Signal, w: SignalWork, k: SignalConfig, j: Index) -> None:
    """The powers of channel j's window, w.re[1] to w.re[W / 2].  O(W log W)."""
    prepare(g, w, k, j)
    transform(w, k)
    half = len(w.im)
    last = w.re[0] - w.im[0]
    w.re[half] = real(2) * k.power_scale * (last * last)
    # a frequency and its mirror image are made of the same two numbers
    for i in range(1, len(k.reversed) + 1):
        mirror = half - i
        even_re = w.re[i] + w.re[mirror]
        even_im = w.im[i] - w.im[mirror]
        odd_re = w.im[i] + w.im[mirror]
        odd_im = w.re[mirror] - w.re[i]
        c = k.cosines[i]
        s = k.cosines[len(k.reversed) - i]
        turned_re = odd_re * c + odd_im * s
        turned_im = odd_im * c - odd_re * s
        re = even_re + turned_re
        im = even_im + turned_im
        re_mirror = even_re - turned_re
        im_mirror = even_im - turned_im
        w.re[i] = k.power_scale * (re * re + im * im)
        w.re[mirror] = k.power_scale * (re_mirror * re_mirror + im_mirror * im_mirror)


@kernel
def band_of(w: SignalWork, k: SignalConfig, i: Index) -> Real:
    """Root mean square in a band, or its logarithm.  O(W)."""
    total = real(0)
    for f in range(k.band_first_bin[i], k.band_after_bin[i]):
        total += w.re[f]
    if k.takes_log:
        return log2_one_plus(total * k.log_scale)
    return sqrt(total)


@kernel
def centroid_of(w: SignalWork, k: SignalConfig) -> Real:
    """The mean frequency, weighted by power; 0 in silence.  O(W)."""
    total = real(0)
    # each frequency's power is in as many of the sums as the frequency's number
    weighted = real(0)
    for i in range(len(w.im)):
        total += w.re[len(w.im) - i]
        weighted += total
    return weighted / total * k.bin_width if total > real(0) else real(0)


@kernel
def dominant_of(w: SignalWork, k: SignalConfig) -> Real:
    """The frequency of the largest power; 0 in silence.  O(W)."""
    found = 0
    most = real(0)
    for f in range(1, len(w.re)):
        if w.re[f] > most:
            most = w.re[f]
            found = f
    return real(found) * k.bin_width


@kernel
def flatness_of(w: SignalWork, k: SignalConfig) -> Real:
    """The geometric mean of the powers in parts of their mean, each at least 2^-20: near 1 for noise, near 0 for a tone, 0 in
    silence.  O(W)."""
    mean = real(0)
    for f in range(1, len(w.re)):
        mean += w.re[f]
    mean = mean * k.power_share
    if not (mean > SILENCE):
        return real(0)
    share = real(1) / mean
    total = real(0)
    for f in range(1, len(w.re), 2):
        # two at a time: below 2^71
        one = w.re[f] * share * MANY_TIMES
        other = w.re[f + 1] * share * MANY_TIMES
        times = (one if one > real(1) else real(1)) * (other if other > real(1) else real(1))
        total += log2_one_plus(times - real(1))
    # log2 of the geometric mean, which is at most 0 but for rounding
    level = total * k.power_share - real(20)  # log2 of MANY_TIMES
    return exp2_negative(level) if level < real(0) else real(1)
