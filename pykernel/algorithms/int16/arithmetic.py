"""Integer arithmetic: clipping, multiplication by fractions, rounding, base-2 logarithms, square roots, and 64-bit numbers as two words.

Sums of squares need 64 bits.  They are kept in two words, because 64-bit types are slow on small processors.
"""

from pykernel.dialect import Index, Int, Word, floor_shift, index, kernel, multiply_high, word


@kernel
def clip(a: Int, low: Int, high: Int) -> Int:
    """a, clipped to the range from low to high."""
    return low if a < low else (high if a > high else a)


@kernel
def part_of(a: Int, k: Int) -> Int:
    """a k / 2^16, rounded towards zero, for k from 0 to 65535."""
    return -multiply_high(-a, k) if a < 0 else multiply_high(a, k)


@kernel
def times(a: Int, x: Int) -> Int:
    """a x / 2^16, rounded towards zero, for |x| up to 65535."""
    return part_of(a, x) if x > 0 else -part_of(a, -x)


@kernel
def size(a: Int) -> Int:
    """|a|."""
    return -a if a < 0 else a


@kernel
def nearest_shift(a: Int, k: Index) -> Int:
    """a / 2^k, rounded to the nearest integer, for k from 0 to 31.  Rounding down instead would let errors accumulate over many samples."""
    return floor_shift(floor_shift(a, k - 1) + 1, 1) if k > 0 else a


@kernel
def places(t: Word) -> Index:
    """The largest p for which 2^p is at most t; 0 if t is 0.  O(1)."""
    place = 0
    rest = t
    if rest >= 65536:
        place += 16
        rest = rest >> 16
    if rest >= 256:
        place += 8
        rest = rest >> 8
    if rest >= 16:
        place += 4
        rest = rest >> 4
    if rest >= 4:
        place += 2
        rest = rest >> 2
    if rest >= 2:
        place += 1
    return place


@kernel
def product_high(a: Word, b: Word) -> Word:
    """The upper 32 bits of the 64-bit product of a and b; the lower 32 bits are a * b, which wraps around."""
    low = (a & 65535) * (b & 65535)
    middle = (a >> 16) * (b & 65535) + (low >> 16)
    other = (a & 65535) * (b >> 16) + (middle & 65535)
    return (a >> 16) * (b >> 16) + (middle >> 16) + (other >> 16)


@kernel
def whole_root(t: Word) -> Index:
    """sqrt(t), rounded to the nearest integer, at most 65535.  There are 16 iterations, one for each bit."""
    rest = t
    root = word(0)
    bit = word(1073741824)
    for turn in range(16):
        tried = root + bit
        root = root >> 1
        if rest >= tried:
            rest = rest - tried
            root = root + bit
        bit = bit >> 2
    # the remainder says whether to round up
    if rest > root:
        root = root + 1
    return index(root) if root < 65536 else 65535


@kernel
def long_root(high: Word, low: Word) -> Word:
    """sqrt(high 2^32 + low), as an integer.  The relative error is 2^-16; if ``high`` is 0, rounding to an integer adds
    an error below 1."""
    top = high if high > 0 else low
    half = floor_shift(31 - places(top), 1)
    filled = top << (2 * half)
    if high > 0 and half > 0:
        filled = filled + (low >> (32 - 2 * half))
    root = word(whole_root(filled))
    return (root << 16) >> half if high > 0 else root >> half
