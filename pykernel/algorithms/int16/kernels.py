"""Kernel values in integers.

Inputs are scaled so that a shift converts d, the squared distance of two scaled inputs, to the exponent of a power of two:
exp(-gamma |a - b|^2) = 2^-(d / 2^(16 + ``fine``)).
"""

import math
from enum import IntEnum

from pykernel.algorithms.int16.arithmetic import places, size
from pykernel.dialect import (
    DIM,
    Config,
    Constant,
    Index,
    Int,
    Int8,
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
# the table's values are lowered for two reasons: interpolated values lie above the function, by 7e-6 on average, and the
# number that is subtracted to interpolate is rounded down
POWERS = Constant(
    tuple(round(ONE * (2 ** (-i / STEPS) - (i > 0) * 4e-6) - (i > 0) * 0.5) for i in range(STEPS)), scalar=Uint16
)
"""2^(-i / 64), in units of 1 / ONE."""
FALL = 706
"""1 - 2^(-1 / 64), in units of 2^-16."""
# the table's values are raised for two reasons: interpolation lies below the function, by up to 3e-5, and its result is rounded down
ROOTS = Constant(
    tuple(min(65535, round(32768 * math.sqrt(1 + i / 32) + 0.5 + 0.5 / (1 + i / 32) ** 1.5)) for i in range(97)),
    scalar=Uint16,
)
"""sqrt(1 + i / 32), in units of 2^-15."""
STEEP = 47274
"""2 / ln 2, in units of 2^-14: e^-2t is 2^-n for n = 2 t / ln 2."""
NATURAL = 45426
"""ln 2, in units of 2^-16."""
THIRD = 21845
"""1 / 3, in units of 2^-16."""


class Int16Function(IntEnum):
    """k(a, b)."""

    GAUSSIAN = 0  # exp(-gamma |a - b|^2)
    LINEAR = 1  # a'b: the sum over the vectors is computed when the model is generated
    LAPLACIAN = 2  # exp(-gamma |a - b|_1)
    MATERN12 = 3  # e^-r, r = gamma |a - b|
    MATERN32 = 4  # (1 + r) e^-r
    MATERN52 = 5  # (1 + r + r^2 / 3) e^-r
    POLYNOMIAL = 6  # (gamma a'b + coef0)^degree
    RELU = 7  # max(0, a'b + offset)
    TANH = 8  # tanh(a'b + offset)
    LOGISTIC = 9  # 1 / (1 + exp(-(a'b + offset)))
    IDENTITY = 10  # a'b + offset


class Int16KernelConfig(Config):
    """Parameters of the kernel, derived from a spec by ``pykernel.spec.families.int16``."""

    function: Int16Function
    narrow: bool  # whether every difference of two inputs, or of an input and a vector, fits in 16 bits
    rooted: bool  # whether the kernel depends on |a - b|, not on its square: Matern
    rises: bool  # whether e^-r is multiplied by a polynomial in r: Matern 3/2 and Matern 5/2
    fine: Index  # a squared distance of 2^(16 + fine) halves the kernel value
    stretch: Index  # Laplacian: |a - b|_1 is multiplied by this before it is divided by 2^fine
    lift: Index  # Matern: a distance of 2^(16 - lift) halves e^-r
    multiplies: bool  # whether the kernel depends on a'b
    hidden: bool  # whether the kernel depends on a'b and on an offset of each vector
    coef0: Index  # polynomial: the constant, in the unit of a'b
    degree: Index  # polynomial: the exponent
    odd: bool  # polynomial: whether the degree is odd
    octave_shift: Index  # tanh, logistic: a'b + offset is multiplied by STEEP / 2^16, then divided by 2 to this power

    unseen = frozenset({"narrow"})


@with_dsp("dsp_dot.h")
def dot(a: Int16[DIM], b: Int16[DIM]) -> Index:
    """a'b.  O(D)."""
    total = 0
    for j in unroll(len(a)):
        total += a[j] * b[j]
    return total


@kernel
def dot_eight(a: Int16[DIM], b: Int8[DIM]) -> Index:
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


@with_dsp("dsp_distance.h")
def narrow_distance(a: Int16[DIM], b: Int16[DIM]) -> Word:
    """|a - b|^2, modulo 2^32, for inputs whose differences fit in 16 bits.  O(D)."""
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
    """2^-(fractional part of u / 2^16), in units of 1 / ONE: from 1/2 to 1.  Error: 4e-5.

    The function interpolates linearly between the values of a table.
    """
    first = POWERS[index((u >> 10) & 63)]
    part = floor_shift(first * index(u & 1023), 10)
    return first - floor_shift(part * FALL, 16)


@kernel
def root(d: Word, lift: Index) -> Word:
    """sqrt(d) 2^lift.  Relative error: 5e-5.

    d is multiplied by 4 until it fills the word.  A table, interpolated linearly, gives the root of the upper bits of d.
    """
    half = floor_shift(31 - places(d), 1)
    u = d << (half * 2)
    i = index(u >> 25)
    i = i - 32 if i >= 32 else 0
    first = ROOTS[i]
    found = first + floor_shift((ROOTS[i + 1] - first) * index((u >> 10) & 32767), 15)
    return (word(found) << lift) >> half if d > 0 else word(0)


@kernel
def distance(q: Int16KernelConfig, a: Int16[DIM], b: Int16[DIM]) -> Word:
    """The distance that the kernel depends on: |a - b|^2 or, for a Laplacian kernel, |a - b|_1 times ``stretch``.
    O(D)."""
    if q.function == Int16Function.LAPLACIAN:
        return absolute_distance(a, b) * word(q.stretch)
    if q.narrow:
        return narrow_distance(a, b)
    return squared_distance(a, b)


@kernel
def octaves(q: Int16KernelConfig, d: Word) -> Word:
    """The n, in units of 2^-16, for which the exponential in the kernel's formula is 2^-n.  d: the result of
    distance()."""
    return root(d, q.lift) if q.rooted else d >> q.fine


@kernel
def rise(q: Int16KernelConfig, u: Word, first: Int) -> Int:
    """``first`` (1 + r) for Matern 3/2, or ``first`` (1 + r + r^2 / 3) for Matern 5/2, where r = ln 2 u / 2^16 and
    u is below 2^21."""
    r = multiply_high(index(u & 2097151), NATURAL)
    total = first + multiply_high(r, first)
    if q.function == Int16Function.MATERN52:
        third = floor_shift(multiply_high(r, THIRD) + 4, 3)
        total += multiply_high(multiply_high(r, first) * 8, third)
    return total


@kernel
def value_at(q: Int16KernelConfig, u: Word) -> Index:
    """The kernel value if the exponential in its formula is 2^-(u / 2^16).  The result is in units of 1 / ONE, rounded
    down."""
    n = index(u >> 16)
    if n >= (24 if q.rises else 16):
        return 0
    if q.rises:
        value = floor_shift(rise(q, u, power(u)), n)
        return value if value < ONE else ONE
    return floor_shift(power(u), n)


@kernel
def kernel_value(q: Int16KernelConfig, d: Word) -> Index:
    """The kernel value, in units of 1 / ONE, rounded down.  d: the result of distance()."""
    return value_at(q, octaves(q, d))
