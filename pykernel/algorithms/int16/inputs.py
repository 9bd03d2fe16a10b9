"""Integer inputs: conversion from the sensor's counts to the kernel's unit."""

from pykernel.algorithms.extents import SCALES
from pykernel.dialect import DIM, Bool, Config, Index, Int, Int16, Uint8, floor_shift, kernel


class Int16InputConfig(Config):
    """Parameters of the conversion of inputs, derived from a spec by ``pykernel.spec.families.int16``."""

    each: bool  # whether each input has its own conversion
    center: Int16[SCALES]  # counts that are subtracted from the inputs
    most: Int16[SCALES]  # largest |x - center| that is accepted, in counts
    factor: Int16[SCALES]  # the size of one count in the kernel's unit, times 2^shift
    rounding: Int[SCALES]  # 2^shift / 2, plus a correction for the rounding of ``center``
    shift: Uint8[SCALES]
    reach: Index  # largest magnitude of a converted input


@kernel
def converted(q: Int16InputConfig, x: Int16[DIM], z: Int16[DIM]) -> Bool:
    """z = (x - center) factor / 2^shift, rounded.  O(D).

    Returns whether every input is within its limit.  If an input is beyond its limit, z must not be used.
    """
    for j in range(len(x)):
        e = x[j] - q.center[j if q.each else 0]
        if e < -q.most[j if q.each else 0] or e > q.most[j if q.each else 0]:
            return False
        z[j] = floor_shift(
            e * q.factor[j if q.each else 0] + q.rounding[j if q.each else 0], q.shift[j if q.each else 0]
        )
    return True
