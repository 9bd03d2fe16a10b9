"""A sparse spectrum with learned frequencies, in integers: f(x) = sum_i a_i cos(w_i'x / sigma) + b_i sin(w_i'x / sigma).

The model and the normalised gradient are those of ``spectrum-nlms`` in ``pykernel.algorithms.spectrum``.  An angle is a Word in
units of 2^-32 turns: whole turns wrap around.  A table contains the sines of angles up to a quarter turn.  Frequencies
have 16 bits, and weights have 32 bits.

The unit u of an output is a power of two near the mean of |y|.  Steps for frequencies are in units of u.  Weights are in the
label's unit, so that they do not change when u changes.  Each sample needs one division for each output.
"""

import math

from pykernel.algorithms import frame
from pykernel.algorithms.extents import FEATURES
from pykernel.algorithms.frame import Status
from pykernel.algorithms.int16.arithmetic import clip, nearest_shift, part_of, places, size, times
from pykernel.algorithms.int16.frame import INT16, VALUE_MOST, Int16Framed, hear
from pykernel.algorithms.int16.kernels import square_norm
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.spectrum import SpectrumStatus
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Constant,
    Index,
    Int,
    Int16,
    Struct,
    Uint16,
    Word,
    as_signed,
    between,
    exact_square,
    floor_shift,
    index,
    kernel,
    multiply_high,
    quotient,
    word,
)

ONE = 32767
"""A cosine of 1."""
# linear interpolation lies below the sine, by up to 7.5e-5 of its value, so the table's values are raised by 2.5e-5
SINES = Constant(
    tuple(min(65535, round(65535 * math.sin(math.pi * i / 128) * (1 + 2.5e-5))) for i in range(65)), scalar=Uint16
)
"""sin(2 pi i / 256), in units of 1 / 65535."""
FREQUENCY_MOST = 32767
PACE = 11
"""The running mean of |y| has a horizon of 2^PACE labels."""
COUNTED = 2048
BEND = 12
"""Slopes are in units of 2^-BEND u."""
BEND_MOST = 32767
STEP = 16
"""Steps for frequencies are in units of 2^-STEP u."""
STEP_MOST = 65535
FINE = 11
"""A product of a step and a slope is divided by 2^FINE."""


class Int16Waves(Struct):
    """The model is f(x) = sum_i a_i cos(w_i'x / sigma) + b_i sin(w_i'x / sigma)."""

    a: between(Int[OUTPUTS, FEATURES], "-weight_most", "weight_most")
    b: between(Int[OUTPUTS, FEATURES], "-weight_most", "weight_most")
    level: between(Int[OUTPUTS], 0, "level_most")  # running mean of |y|, times level_factor
    counted: between(Index, 0, COUNTED)  # number of labels in this mean, at most its horizon
    # w: change of the angle for a converted input of 1, in units of 2^(turn_places - 32) turns
    frequencies: between(Int16[FEATURES, DIM], -FREQUENCY_MOST, FREQUENCY_MOST)


class Int16WavesWork(Struct):
    """Intermediate results, which every call recomputes; they may be zero at first."""

    c: between(Int16[FEATURES], -ONE, ONE)  # cosine of each angle
    s: between(Int16[FEATURES], -ONE, ONE)  # sine of each angle


class Int16WavesConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16_spectrum``."""

    weight_most: Index  # largest |a| and |b|
    level_most: Index
    level_factor: Index
    level_shift: Index  # level_factor is 2 to this power
    unit_least: Index  # log2 of the smallest unit

    tunable = frozenset({"unit_least"})


class Int16WavesModel(Int16Framed):
    parts = Int16Waves, Int16WavesWork, Int16WavesConfig


class Int16GradientConfig(Config):
    """Parameters of the gradient, derived from a spec by ``pykernel.spec.families.int16_spectrum``."""

    start: Int16[FEATURES, DIM]  # frequencies before the first sample
    turn_places: Index
    size: Index  # number of waves, in units of 2^-8
    square_shift: Index  # |z|^2 / 2^square_shift is |x / sigma|^2 in units of 2^-8, for converted inputs z
    frequency_share: Index  # learning rate of the frequencies, divided by that of the weights
    bend_most: Index  # upper limit of |x / sigma|^2 times the sum of squared slopes, in units of 2^-8
    eta: Index  # learning rate, in units of 2^-(24 + eta_shift)
    eta_shift: Index  # steps for weights are in units of 2^-eta_shift
    turn_factor: (
        Index  # factor from a step times a slope to the change of a frequency, stored times 2^16 and a power of two
    )
    turn_shift: Index  # exponent of the power of two in turn_factor

    tunable = frozenset("eta eta_shift".split())


class Int16GradientModel(Int16WavesModel):
    parts = (Int16GradientConfig,)


# ------------------------------------------------------------------------------------------------------- answers


@kernel
def sine(angle: Word) -> Int:
    """The sine, in units of 1 / ONE, of an angle in units of 2^-32 turns.  Error: 7e-5."""
    rest = angle & 1073741823
    if (angle >> 30) & 1 == 1:
        rest = word(1073741823) - rest
    i = index(rest >> 24)
    first = SINES[i]
    value = first + multiply_high(SINES[i + 1] - first, index((rest >> 8) & 65535))
    value = clip(floor_shift(value + 1, 1), 0, ONE)
    return value if angle >> 31 == 0 else -value


@kernel
def turn(m: Int16GradientModel, x: Int16[DIM]) -> None:
    """Write the cosine and the sine of each wave's angle at x to m.c and m.s.  O(N D)."""
    for i in range(len(m.frequencies)):
        angle = word(0)
        for j in range(len(x)):
            angle += word(m.frequencies[i, j] * x[j])
        angle = angle << m.turn_places
        m.s[i] = sine(angle)
        m.c[i] = sine(angle + 1073741824)


@kernel
def sound(m: Int16WavesModel, a: Int) -> Int:
    """A weight, clipped to its limit, because memory may have been overwritten."""
    return clip(a, -m.weight_most, m.weight_most)


@kernel
def sum_of(m: Int16WavesModel, o: Index) -> Int:
    """The sum of the waves, whose sines and cosines turn() has already computed.  O(N)."""
    # modulo 2^32: the sum is defined even if memory was overwritten
    total = word(0)
    for i in range(len(m.c)):
        total += word(times(sound(m, m.a[o, i]), 2 * m.c[i])) + word(times(sound(m, m.b[o, i]), 2 * m.s[i]))
    return clip(as_signed(total), -VALUE_MOST, VALUE_MOST)


@kernel
def answer(m: Int16GradientModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x).  O(N D), and O(N) for each output."""
    turn(m, x)
    for o in range(len(y)):
        y[o] = sum_of(m, o)


# ------------------------------------------------------------------------------------------------------ learning


@kernel
def begin(m: Int16GradientModel) -> None:
    """Set the frequencies to their initial values, before the first sample.  O(N D)."""
    for i in range(len(m.frequencies)):
        for j in range(len(m.frequencies[0])):
            m.frequencies[i, j] = m.start[i, j]


@kernel
def unit_of(m: Int16WavesModel, o: Index) -> Index:
    """Update the running mean of |y| with an output's label.  Returns log2 of the output's unit."""
    level = clip(m.level[o], 0, m.level_most)
    missing = size(m.y[o]) * m.level_factor - level
    moved = level + floor_shift(missing, clip(places(word(m.counted[0])), 0, PACE))
    m.level[o] = clip(moved, 0, m.level_most)
    return clip(places(word(floor_shift(m.level[o], m.level_shift))) + 1, m.unit_least, 30)


@kernel
def slope(m: Int16WavesModel, o: Index, i: Index, unit: Index) -> Int:
    """The derivative of f / u with respect to the angle of wave i, in units of 2^-BEND."""
    bend = times(sound(m, m.b[o, i]), 2 * m.c[i]) - times(sound(m, m.a[o, i]), 2 * m.s[i])
    return clip(nearest_shift(bend, unit - BEND), -BEND_MOST, BEND_MOST)


@kernel
def rate_of(m: Int16GradientModel, o: Index, unit: Index, x: Int16[DIM]) -> Index:
    """eta divided by the squared length of the gradient, in units of 2^-(16 + eta_shift).  O(N + D)."""
    bends = word(0)
    for i in range(len(m.frequencies)):
        bends += exact_square(nearest_shift(slope(m, o, i, unit), 4))
    square = index(square_norm(x) >> m.square_shift)
    bend = multiply_high(index(bends), square if square < 65535 else 65535)
    rate = quotient(m.eta, m.size + m.frequency_share * (bend if bend < m.bend_most else m.bend_most))
    return rate if rate < 65535 else 65535


@kernel
def descend(m: Int16GradientModel, o: Index, x: Int16[DIM]) -> None:
    """Learn from an output's error, by a normalised step along the gradient.  O(N D)."""
    unit = unit_of(m, o)
    step = part_of(m.error[o], rate_of(m, o, unit, x))
    part = clip(nearest_shift(step, clip(unit + m.eta_shift - STEP, 0, 31)), -STEP_MOST, STEP_MOST)
    part = part_of(part, m.turn_factor)
    for i in range(len(m.frequencies)):
        along = clip(nearest_shift(part * slope(m, o, i, unit), FINE), -STEP_MOST, STEP_MOST)
        a = sound(m, m.a[o, i]) + nearest_shift(times(step, 2 * m.c[i]), m.eta_shift)
        b = sound(m, m.b[o, i]) + nearest_shift(times(step, 2 * m.s[i]), m.eta_shift)
        m.a[o, i] = clip(a, -m.weight_most, m.weight_most)
        m.b[o, i] = clip(b, -m.weight_most, m.weight_most)
        for j in range(len(x)):
            w = m.frequencies[i, j] + nearest_shift(along * x[j], m.turn_shift)
            m.frequencies[i, j] = clip(w, -FREQUENCY_MOST, FREQUENCY_MOST)


@kernel
def learn(m: Int16GradientModel, x: Int16[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  Returns DONE."""
    if m.counted[0] == 0:
        begin(m)
    answer(m, x, m.error)
    hear(m)
    if m.counted[0] < COUNTED:
        m.counted[0] += 1
    for o in range(len(m.y)):
        descend(m, o, x)
    return Status.DONE


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def keeps(m: Int16WavesModel) -> Bool:
    """Whether learning could have led to this state.  Before the first sample, all values must be zero.  O(N D)."""
    if m.counted[0] == 0:
        for i in range(len(m.frequencies)):
            for j in range(len(m.frequencies[0])):
                if m.frequencies[i, j] != 0:
                    return False
            for o in range(len(m.level)):
                if m.a[o, i] != 0 or m.b[o, i] != 0 or m.level[o] != 0:
                    return False
    return True


INT16_SPECTRUM = programs(
    Rule(
        name="spectrum",
        model=Int16GradientModel,
        memory=(Int16Waves,),
        work=(Int16WavesWork,),
        configs=(Int16WavesConfig, Int16GradientConfig),
        statuses=SpectrumStatus,
        hooks={frame.answer: answer, frame.learn: learn, frame.keeps: keeps},
        costs=("O(N D) for N frequencies", "O(N D)"),
        stand_ins=INT16,
    )
)
