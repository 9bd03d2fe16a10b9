"""The spectrum of a window, computed in integers, for the measures of frequency bands.

As in ``pykernel.algorithms.signal.spectrum``, the real samples are transformed as half as many complex samples.  The transform uses
32-bit integers, which are halved at each level.
"""

from pykernel.algorithms.int16.arithmetic import clip, long_root, product_high, size
from pykernel.algorithms.signal.int16_state import FULL, WAVE_MOST, Int16SignalModel
from pykernel.algorithms.signal.int16_window import mean_of
from pykernel.dialect import Index, Int, floor_shift, index, kernel, multiply_high, word


@kernel
def cosine_of(m: Int16SignalModel, c: Index) -> Index:
    """cos(2 pi c / window) in units of 2^-15, for c from 0 to window / 2."""
    return m.cosines[c] if c < len(m.cosines) else -m.cosines[2 * len(m.cosines) - 2 - c]


@kernel
def halved(a: Int, c: Index) -> Int:
    """a c / 2, for c in units of 2^-15."""
    return multiply_high(a, c) if c >= 0 else -multiply_high(a, -c)


@kernel
def weighed(m: Int16SignalModel, j: Index, t: Index, mean: Int) -> Int:
    """(Sample t of channel j - mean) times the weight of a Hann window, in units of 2^-13 counts; t = 0 is the oldest sample."""
    at = m.raw_at[0] + t
    if at >= len(m.raw_kept):
        at -= len(m.raw_kept)
    turn = t if t < len(m.raw_kept) - t else len(m.raw_kept) - t
    weight = floor_shift(32768 - cosine_of(m, turn), 1)
    return multiply_high((m.raw_kept[at, j] - mean) * 16384, weight)


@kernel
def prepare(m: Int16SignalModel, j: Index) -> None:
    """Write the weighted window of channel j to re and im, in bit-reversed order; two neighbouring samples form a complex number.  O(W)."""
    mean = mean_of(m, j)
    for i in range(len(m.im)):
        # element i + W / 4 is stored directly after element i
        half = i if i < len(m.reversed) else i - len(m.reversed)
        to = m.reversed[half] + (0 if i < len(m.reversed) else 1)
        m.re[to] = weighed(m, j, 2 * i, mean)
        m.im[to] = weighed(m, j, 2 * i + 1, mean)


@kernel
def transform(m: Int16SignalModel) -> None:
    """Compute the Fourier transform of the W / 2 complex numbers in re and im, divided by W / 2.  O(W log W).

    Each level halves the sums of two numbers, so that no sum is larger in magnitude than the larger of its two numbers.
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
def spectrum_of(m: Int16SignalModel, j: Index) -> None:
    """Compute the complex amplitude re[f] + i im[f] of each frequency f from 1 to W / 2 in channel j's window.  O(W log W)."""
    prepare(m, j)
    transform(m)
    half = len(m.im)
    # the highest frequency has no mirror image, so its amplitude is multiplied by sqrt(1 / 2)
    m.re[half] = multiply_high(m.re[0] - m.im[0], 23170)
    # the amplitudes of frequencies i and W / 2 - i are computed together, from the same two numbers
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
def band_of(m: Int16SignalModel, i: Index) -> Int:
    """Root mean square of the signal in a frequency band.  O(frequencies)."""
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
