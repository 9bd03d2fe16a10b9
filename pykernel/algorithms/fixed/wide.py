"""Whole numbers of 64 bits, as two words: what sums of squares need, without a type that small processors are slow at."""

from __future__ import annotations

from pykernel.algorithms.fixed.values import places
from pykernel.dialect import Index, Word, floor_shift, index, kernel, word


@kernel
def product_high(a: Word, b: Word) -> Word:
    """The upper 32 bits of a b; the lower ones are a * b."""
    low = (a & 65535) * (b & 65535)
    middle = (a >> 16) * (b & 65535) + (low >> 16)
    other = (a & 65535) * (b >> 16) + (middle & 65535)
    return (a >> 16) * (b >> 16) + (middle >> 16) + (other >> 16)


@kernel
def whole_root(t: Word) -> Index:
    """sqrt(t), to the nearest whole number, but at most 65535.  16 turns, one for each bit."""
    rest = t
    found = word(0)
    bit = word(1073741824)
    for turn in range(16):
        tried = found + bit
        found = found >> 1
        if rest >= tried:
            rest = rest - tried
            found = found + bit
        bit = bit >> 2
    # what is left says on which side of the middle t is
    if rest > found:
        found = found + 1
    return index(found) if found < 65536 else 65535


@kernel
def long_root(high: Word, low: Word) -> Word:
    """sqrt(high 2^32 + low), rounded down.  Relative error: 2^-16."""
    top = high if high > 0 else low
    half = floor_shift(31 - places(top), 1)
    filled = top << (2 * half)
    if high > 0 and half > 0:
        filled = filled + (low >> (32 - 2 * half))
    root = word(whole_root(filled))
    return (root << 16) >> half if high > 0 else root >> half
