"""Inputs and labels for the self-tests of models.  The numbers are chosen to reveal arithmetic that does not follow
IEEE 754."""

from pykernel.dialect import Constant, Index, Real, absolute, floor_shift, kernel, multiply_high, real

SMALLEST = Constant(float32=2.0**-126, float64=2.0**-1022)
MAGNIFIED = Constant(float32=2.0**124, float64=2.0**1020)
# for Thumb-2 without a double FPU, GCC 12's double addition gets the last bit of -2 + CANCELLING wrong
CANCELLING = Constant(float32=float.fromhex("0x1.410adep-9"), float64=float.fromhex("0x1.410ade018a5a9p-32"))
CANCELLED = Constant(float32=2.0**5, float64=2.0**28)


@kernel
def strained(part: Real) -> Real:
    """A number from -0.38 to 0.54, computed from ``part``, where |part| <= 1/2, in such a way that broken arithmetic
    gives another number.

    One product and one quotient are subnormal: an FPU that flushes subnormal numbers to zero gets zero instead.  One
    sum cancels a leading bit: at least one floating-point library rounds such sums wrongly.
    """
    subnormal = part * SMALLEST
    size = absolute(part) + real(1)
    nothing = subnormal / size
    # unit is exactly 1, because part has few bits, but the compiler cannot know this
    unit = size - absolute(part)
    rest = (unit * CANCELLING - unit * real(2)) + real(2)
    return real(0.5) * part + ((subnormal + nothing) * MAGNIFIED + rest * CANCELLED)


@kernel
def made_up(center: Real, size: Real, halvings: Index, seed: Index) -> Real:
    """A number for the self-test, at most 0.54 size / 2^halvings away from the center.  More than 16 halvings count as
    16.  seed: from 0 to 65536."""
    shrunk = size
    for i in range(16):
        if i < halvings:
            shrunk = shrunk * real(0.5)
    return center + shrunk * strained(real(seed) / real(65536) - real(0.5))


@kernel
def made_up_count(center: Index, size: Index, halvings: Index, seed: Index) -> Index:
    """An integer for the self-test, at most size / 2^(halvings + 1) away from the center.  More than 16 halvings count
    as 16.  center: less than 2^29 in magnitude; size: from 0 to 2^30; seed: from 0 to 65536; 65536 counts as 0."""
    middle = center if center > -536870912 and center < 536870912 else 0
    shrunk = size if size >= 0 and size <= 1073741824 else 0
    for i in range(16):
        if i < halvings:
            shrunk = floor_shift(shrunk, 1)
    return middle + multiply_high(shrunk, seed if seed >= 0 and seed < 65536 else 0) - floor_shift(shrunk, 1)
