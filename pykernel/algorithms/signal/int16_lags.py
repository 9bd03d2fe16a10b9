"""The features of a step, in integer counts: replacements for kernels in ``pykernel.algorithms.signal.lags``."""

import math

from pykernel.algorithms.int16.arithmetic import clip
from pykernel.algorithms.signal.int16_state import FULL, SUM_MOST, Int16SignalModel
from pykernel.algorithms.signal.int16_window import rounded
from pykernel.algorithms.signal.lags import clock_of, row_before
from pykernel.dialect import DIM, Constant, Index, Int, Int16, floor_shift, index, kernel, word

SEGMENTS = 128
QUARTER = Constant(
    tuple(round(16384 * math.cos(math.pi / 2 * i / SEGMENTS)) for i in range(SEGMENTS + 2)),
    scalar=Int16,
)
"""Cosines, in units of 2^-14, of the angles from 0 to a quarter of a turn."""


@kernel
def cosine(turns: Index) -> Int:
    """The cosine of an angle.  The angle is in units of 2^-16 turns, modulo one turn; the cosine is in units of 2^-14."""
    quarter = index((word(turns) >> 14) & 3)
    rest = index(word(turns) & 16383)
    if quarter == 1 or quarter == 3:
        rest = 16384 - rest
    i = floor_shift(rest, 7)
    part = index(word(rest) & 127)
    first = QUARTER[i]
    value = first + floor_shift((QUARTER[i + 1] - first) * part + 64, 7)
    return -value if quarter == 1 or quarter == 2 else value


@kernel
def put_feature(m: Int16SignalModel, out: Int16[DIM], f: Index, value: Int) -> None:
    """Write a feature.  It needs no clipping, because every measure is within its limit."""
    out[f] = value


@kernel
def change_since(now: Int, then: Int) -> Int:
    """Half the difference now - then."""
    return clip(floor_shift(now - then + 1, 1), -FULL, FULL)


@kernel
def mean_of_steps(m: Int16SignalModel, f: Index, ago: Index) -> Int:
    """The mean of a measure over several steps.  The last of these steps is ``ago`` steps before the newest step.  O(steps)."""
    total = 0
    for s in range(m.made_steps[f]):
        total += m.kept[row_before(m, ago + s), m.made_of[f]]
    return clip(rounded(clip(total, -SUM_MOST, SUM_MOST), m.made_steps[f]), -FULL, FULL)


@kernel
def put_phase(m: Int16SignalModel, p: Index, back: Index, out: Int16[DIM], f: Index) -> None:
    """Write two features: the cosine and the sine of the phase within a period."""
    turns = index((word(clock_of(m, p, back)) * word(m.period_share[p])) >> 15)
    out[f] = cosine(turns)
    out[f + 1] = cosine(turns + 49152)


@kernel
def fit_features(m: Int16SignalModel, out: Int16[DIM]) -> None:
    """Convert features to the model's units, and clip them to its limits."""
    if m.has_coarse:
        for f in range(len(out)):
            shift = m.made_shift[f]
            out[f] = floor_shift(out[f] + floor_shift(index(word(1) << shift), 1), shift)
    if m.has_narrow:
        for f in range(len(out)):
            out[f] = clip(out[f], m.made_low[f], m.made_high[f])


@kernel
def come_true(m: Int16SignalModel) -> Int:
    """The newest step's value of the measure that is forecast, in the label's unit."""
    return floor_shift(m.kept[m.latest[0], m.label_measure] * m.label_factor, m.label_places)
