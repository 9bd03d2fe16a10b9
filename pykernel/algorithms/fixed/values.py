"""Kernel values in whole numbers.

Inputs are scaled so that the squared distance of two of them is a base-2 logarithm already:
exp(-gamma |a - b|^2) = 2^-(d / 2^(16 + FINE)) for the whole number d.
"""

from __future__ import annotations

from pykernel.dialect import (
    DIM,
    Config,
    Constant,
    Index,
    Int,
    Int16,
    Uint16,
    Word,
    exact_square,
    floor_shift,
    index,
    kernel,
    multiply_high,
    unroll,
    with_dsp,
    word,
)

STEPS = 64
ONE = 65535
"""A kernel value of 1."""
# the line between two numbers lies above the function, by 4e-6 in the mean, and what is taken off is rounded down
POWERS = Constant(
    tuple(round(ONE * (2 ** (-i / STEPS) - (i > 0) * 4e-6) - (i > 0) * 0.5) for i in range(STEPS)), scalar=Uint16
)
"""2^(-i / 64), in units of 1 / ONE."""
FALL = 706
"""1 - 2^(-1 / 64), in units of 2^-16."""


class FixedKernelConfig(Config):
    """How inputs are compared, derived from a spec by ``pykernel.spec.families.fixed``."""

    fine: Index  # a squared distance of 2^(16 + fine) halves the kernel value
    stretch: Index  # Laplacian: distances are multiplied by this first


@with_dsp("dsp_dot.h")
def dot(a: Int16[DIM], b: Int16[DIM]) -> Index:
    """a'b.  O(D)."""
    total = 0
    for j in unroll(len(a)):
        total += a[j] * b[j]
    return total


@kernel
def square_norm(a: Int16[DIM]) -> Word:
    """a'a, modulo 2^32.  O(D)."""
    total = word(0)
    for j in unroll(len(a)):
        total += exact_square(a[j])
    return total


@kernel
def squared_distance(a: Int16[DIM], b: Int16[DIM]) -> Word:
    """|a - b|^2, modulo 2^32.  O(D)."""
    total = word(0)
    for j in unroll(len(a)):
        total += exact_square(a[j] - b[j])
    return total


@kernel
def absolute_distance(a: Int16[DIM], b: Int16[DIM]) -> Word:
    """|a - b|_1.  O(D)."""
    total = word(0)
    for j in unroll(len(a)):
        total += word(size(a[j] - b[j]))
    return total


@kernel
def power(u: Word) -> Index:
    """2^-(the part of u / 2^16 behind the point), in units of 1 / ONE: from 1/2 to 1.  Error: 4e-5.

    Between two numbers of the table, the function is taken to be a line.
    """
    first = POWERS[index((u >> 10) & 63)]
    part = floor_shift(first * index(u & 1023), 10)
    return first - floor_shift(part * FALL, 16)


@kernel
def gaussian(q: FixedKernelConfig, d: Word) -> Index:
    """The kernel value of a squared distance, in units of 1 / ONE, rounded down."""
    u = d >> q.fine
    n = index(u >> 16)
    return floor_shift(power(u), n) if n < 16 else 0


@kernel
def clip(a: Int, low: Int, high: Int) -> Int:
    """The number, kept within limits."""
    return low if a < low else (high if a > high else a)


@kernel
def part_of(a: Int, k: Int) -> Int:
    """a k / 2^16, rounded towards zero; k from 0 to 65535."""
    return -multiply_high(-a, k) if a < 0 else multiply_high(a, k)


@kernel
def times(a: Int, x: Int) -> Int:
    """a x / 2^16, rounded towards zero; |x| up to 65535."""
    return part_of(a, x) if x > 0 else -part_of(a, -x)


@kernel
def size(a: Int) -> Int:
    """|a|."""
    return -a if a < 0 else a
