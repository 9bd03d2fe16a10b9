"""The spectrum of a window: bands, and measures of the whole spectrum.

The samples minus their mean are multiplied by a Hann window.  The Fourier transform, whose length is a power of two, treats the
real samples as half as many complex samples (W. H. Press et al., Numerical Recipes, section 12.3).  Powers are
one-sided, and scaled so that their sum, apart from the window's leakage, is the variance of the samples.
"""

from pykernel.algorithms.elementary import exp2_negative, log2_one_plus
from pykernel.algorithms.signal.state import CHANNELS, SignalModel
from pykernel.dialect import Constant, Index, Real, kernel, real, sqrt

MANY_TIMES = Constant(2.0**20)
"""Powers below (mean power) / MANY_TIMES are raised to this limit, which is far above the rounding error of a power that should be
zero.  Without the limit, the large relative error of such a power would spoil the geometric mean."""
SILENCE = Constant(2.0**-120)
"""A mean power of at most this is treated as silence."""


@kernel
def keep_raw(m: SignalModel, sample: Real[CHANNELS]) -> None:
    """Keep the raw sample for the spectrum.  O(channels)."""
    for j in range(len(sample)):
        m.raw_kept[m.raw_at[0], j] = sample[j]
    m.raw_at[0] = m.raw_at[0] + 1 if m.raw_at[0] < len(m.raw_kept) - 1 else 0


@kernel
def cosine_at(m: SignalModel, c: Index) -> Real:
    """cos(2 pi c / window), for -window / 2 < c < window."""
    at = -c if c < 0 else c
    return m.cosines[at] if at < len(m.cosines) else -m.cosines[at - len(m.cosines)]


@kernel
def raw_after(m: SignalModel, at: Index) -> Index:
    """The position of the raw sample that follows the one at position ``at``."""
    return 0 if at + 1 == len(m.raw_kept) else at + 1


@kernel
def prepare(m: SignalModel, j: Index) -> None:
    """Subtract the mean of channel j from its samples, multiply them by the window's weights times 1/2, and compute the
    transform's first level.

    O(W).  The result is written to re and im, in bit-reversed order.  The first level combines two samples that are half a window
    apart, so one cosine gives the weights of both samples.
    """
    mean = m.whole_mean[j]
    at = m.raw_at[0]
    other = at + len(m.im)
    if other >= len(m.raw_kept):
        other -= len(m.raw_kept)
    for i in range(len(m.reversed)):
        c = real(0.25) * m.cosines[2 * i]
        re = (m.raw_kept[at, j] - mean) * (real(0.25) - c)
        re_other = (m.raw_kept[other, j] - mean) * (real(0.25) + c)
        at = raw_after(m, at)
        other = raw_after(m, other)
        c = real(0.25) * m.cosines[2 * i + 1]
        im = (m.raw_kept[at, j] - mean) * (real(0.25) - c)
        im_other = (m.raw_kept[other, j] - mean) * (real(0.25) + c)
        at = raw_after(m, at)
        other = raw_after(m, other)
        to = m.reversed[i]
        m.re[to] = re + re_other
        m.im[to] = im + im_other
        m.re[to + 1] = re - re_other
        m.im[to + 1] = im - im_other


@kernel
def transform(m: SignalModel) -> None:
    """Compute the remaining levels of the Fourier transform of the complex numbers in re and im, two levels at a time.
    O(W log W)."""
    if m.has_single_level:
        for i in range(0, len(m.im), 4):
            re = m.re[i + 2]
            im = m.im[i + 2]
            m.re[i + 2] = m.re[i] - re
            m.im[i + 2] = m.im[i] - im
            m.re[i] = m.re[i] + re
            m.im[i] = m.im[i] + im
            # times -i
            re = m.im[i + 3]
            im = -m.re[i + 3]
            m.re[i + 3] = m.re[i + 1] - re
            m.im[i + 3] = m.im[i + 1] - im
            m.re[i + 1] = m.re[i + 1] + re
            m.im[i + 1] = m.im[i + 1] + im
    for level in range(len(m.spans)):
        span = m.spans[level]
        for b in range(m.spans[level]):
            turn = 2 * b * m.groups[level]
            c1 = m.cosines[turn]
            s1 = cosine_at(m, turn - len(m.reversed))
            c2 = m.cosines[2 * turn]
            s2 = cosine_at(m, 2 * turn - len(m.reversed))
            c3 = cosine_at(m, 3 * turn)
            s3 = cosine_at(m, 3 * turn - len(m.reversed))
            first = b
            for group in range(m.groups[level]):
                second = first + span
                third = second + span
                fourth = third + span
                re2 = m.re[second] * c2 + m.im[second] * s2
                im2 = m.im[second] * c2 - m.re[second] * s2
                re1 = m.re[third] * c1 + m.im[third] * s1
                im1 = m.im[third] * c1 - m.re[third] * s1
                re3 = m.re[fourth] * c3 + m.im[fourth] * s3
                im3 = m.im[fourth] * c3 - m.re[fourth] * s3
                re = m.re[first] - re2
                im = m.im[first] - im2
                re2 = m.re[first] + re2
                im2 = m.im[first] + im2
                m.re[second] = re + (im1 - im3)
                m.im[second] = im - (re1 - re3)
                m.re[fourth] = re - (im1 - im3)
                m.im[fourth] = im + (re1 - re3)
                m.re[first] = re2 + (re1 + re3)
                m.im[first] = im2 + (im1 + im3)
                m.re[third] = re2 - (re1 + re3)
                m.im[third] = im2 - (im1 + im3)
                first += 4 * span


@kernel
def spectrum_of(m: SignalModel, j: Index) -> None:
    """Compute the power of each frequency in channel j's window, and write the powers to m.re[1] to m.re[W / 2].  O(W log W)."""
    prepare(m, j)
    transform(m)
    half = len(m.im)
    last = m.re[0] - m.im[0]
    m.re[half] = real(2) * m.power_scale * (last * last)
    # the powers of frequencies i and W / 2 - i are computed together, from the same two numbers
    for i in range(1, len(m.reversed) + 1):
        mirror = half - i
        even_re = m.re[i] + m.re[mirror]
        even_im = m.im[i] - m.im[mirror]
        odd_re = m.im[i] + m.im[mirror]
        odd_im = m.re[mirror] - m.re[i]
        c = m.cosines[i]
        s = m.cosines[len(m.reversed) - i]
        turned_re = odd_re * c + odd_im * s
        turned_im = odd_im * c - odd_re * s
        re = even_re + turned_re
        im = even_im + turned_im
        re_mirror = even_re - turned_re
        im_mirror = even_im - turned_im
        m.re[i] = m.power_scale * (re * re + im * im)
        m.re[mirror] = m.power_scale * (re_mirror * re_mirror + im_mirror * im_mirror)


@kernel
def band_of(m: SignalModel, i: Index) -> Real:
    """Root mean square in a band or, with takes_log, log2(1 + log_scale times the band's power).  O(W)."""
    total = real(0)
    for f in range(m.band_first_bin[i], m.band_after_bin[i]):
        total += m.re[f]
    if m.takes_log:
        return log2_one_plus(total * m.log_scale)
    return sqrt(total)


@kernel
def centroid_of(m: SignalModel) -> Real:
    """The mean frequency, weighted by power; 0 in silence.  O(W)."""
    total = real(0)
    # powers are added from the highest frequency down: the power of frequency f is in f partial sums, so it has weight f
    weighted = real(0)
    for i in range(len(m.im)):
        total += m.re[len(m.im) - i]
        weighted += total
    return weighted / total * m.bin_width if total > real(0) else real(0)


@kernel
def dominant_of(m: SignalModel) -> Real:
    """The frequency with the largest power; 0 in silence.  O(W)."""
    found = 0
    most = real(0)
    for f in range(1, len(m.re)):
        if m.re[f] > most:
            most = m.re[f]
            found = f
    return real(found) * m.bin_width


@kernel
def flatness_of(m: SignalModel) -> Real:
    """The geometric mean of the powers, divided by their mean: about 0.56 for white noise, near 0 for a
    tone, 0 in silence.  Powers below 2^-20 times the mean are raised to this limit.  O(W)."""
    mean = real(0)
    for f in range(1, len(m.re)):
        mean += m.re[f]
    mean = mean * m.power_share
    if not (mean > SILENCE):
        return real(0)
    share = real(1) / mean
    total = real(0)
    for f in range(1, len(m.re), 2):
        # one logarithm serves two powers: that of their product, which is below 2^71
        one = m.re[f] * share * MANY_TIMES
        other = m.re[f + 1] * share * MANY_TIMES
        times = (one if one > real(1) else real(1)) * (other if other > real(1) else real(1))
        total += log2_one_plus(times - real(1))
    # log2 of (geometric mean / mean), which is at most 0 apart from rounding
    level = total * m.power_share - real(20)  # log2 of MANY_TIMES
    return exp2_negative(level) if level < real(0) else real(1)
