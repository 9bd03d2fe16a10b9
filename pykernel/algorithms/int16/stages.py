"""Stages around a model that learns in integers: the label's mean, a linear part, and a gain by which the model's
answer is multiplied.

These stages are like those of ``pykernel.algorithms.stages``, but their horizons and normalisers are powers of two.
"""

from pykernel.algorithms.int16.arithmetic import clip, part_of, places, times
from pykernel.algorithms.int16.kernels import ONE, square_norm
from pykernel.algorithms.pending import GIVEN, LONGEST, PendingWork
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Config,
    Index,
    Int,
    Int16,
    Model,
    Struct,
    Uint8,
    as_signed,
    between,
    floor_shift,
    kernel,
    quotient,
    word,
)

COUNTED = 65536
"""Samples are counted up to this number."""
GAIN_FIRST = 20
"""The gain is 1 until this many samples have been learned."""
GAIN_PACE = 8
"""The gain's running means have a horizon of 2^8 samples."""
GAIN_SIZE = 16383
"""For the gain's means, residuals and the model's answers are divided by 2^gain_shift, then clipped to this."""
GAIN_MOST = GAIN_SIZE * GAIN_SIZE


class Int16Stages(Struct):
    """The learned state of the stages.  Values are also clipped when they are read, because memory may have been overwritten."""

    mean: between(Int[OUTPUTS], "-mean_most", "mean_most")  # running mean of the label, times mean_factor
    slope: between(Int[OUTPUTS, DIM], "-slope_most", "slope_most")  # weights of the linear part, in units of 2^-16
    # running mean of the product of the residual and the model's answer
    agreement: between(Int[OUTPUTS], -GAIN_MOST, GAIN_MOST)
    square: between(Int[OUTPUTS], 0, GAIN_MOST)  # running mean of the square of the model's answer
    gain: between(Int[OUTPUTS], 0, ONE)  # factor of the model's answer, in units of 1 / ONE
    count: between(Index, 0, COUNTED)  # number of samples learned
    pace: between(Index, 0, 16)  # each label moves the mean by 2^-pace of its distance from the mean
    frozen: between(Uint8, 0, 1)  # 1: learning is switched off


class Int16Pending(Struct):
    """An answer whose label has not arrived; see ``pykernel.algorithms.pending``."""

    longest_wait: between(Index, 0, LONGEST)
    waited: between(Index, 0, LONGEST)
    last_wait: between(Index, 0, LONGEST)
    mark: Int
    given_value: Int[OUTPUTS]
    given_lead: between(Int[OUTPUTS], "-rest_most", "rest_most")


class Int16StageConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16_online``."""

    centers: bool  # whether the label's mean is subtracted
    leads: bool  # whether there is a linear part
    gains: bool  # whether there is a gain
    expects: bool  # whether answers are compared with labels: the same as ``gains``
    clamps: bool  # whether predictions are clipped to the range from ``low`` to ``high``
    follows: bool  # whether labels pass through stages: ``centers`` or ``leads`` or ``gains``
    holds: bool  # always false: an outlying input is never replaced by a held value
    mixes: bool  # always false: there is no linear expert
    covers: bool  # always false: there are no intervals
    votes: bool  # always false: there is no expert for classes
    scales: bool  # always true: inputs are converted
    mean_factor: Index  # the mean is kept in units of 1 / mean_factor
    mean_shift: Index  # mean_factor is 2 to this power
    mean_most: Index
    mean_pace: Index  # the running mean has a horizon of 2^mean_pace samples
    slope_most: Index
    slope_eta: Index  # learning rate of the linear part, times 2^16 and a power of two
    slope_shift: Index  # 16 minus the exponent of the power of two in slope_eta
    slope_unit: Index  # the square of an input of 1; it is added to |x|^2 in the normaliser
    slope_step: Index  # largest change of a slope by one sample, for a converted input of 1
    gain_shift: Index  # residuals and answers are divided by 2 to this power before they enter the gain's means
    label_most: Index  # largest |y| that is accepted
    rest_most: Index  # largest |residual| that the model has to learn
    label_room: Index  # largest magnitude of a label or a residual in working memory
    finer: bool  # whether labels are in a finer unit than their residuals
    one: Index  # target value of a class's function for inputs of this class
    low: Index  # smallest prediction
    high: Index  # largest prediction

    tunable = frozenset("clamps low high mean_pace slope_eta slope_step".split())


class Int16Staged(Model):
    """An integer model with stages around its rule."""

    parts = Int16Stages, Int16StageConfig, Int16Pending, PendingWork


@kernel
def weighted_sum(w: Int[...], x: Int16[DIM], most: Index) -> Int:
    """w'x / 2^16, with weights clipped to a limit, because memory may have been overwritten.  O(D)."""
    total = 0
    for j in range(len(x)):
        total += times(clip(w[j], -most, most), x[j])
    return total


@kernel
def move_weights(w: Int[...], x: Int16[DIM], step: Int, most: Index) -> None:
    """Add step * x to the weights w, and clip them to a limit.  O(D)."""
    for j in range(len(x)):
        moved = as_signed(word(w[j]) + word(step * x[j]))
        w[j] = clip(moved, -most, most)


@kernel
def line(m: Int16Staged, x: Int16[DIM], o: Index) -> Int:
    """The linear part at x.  O(D)."""
    return weighted_sum(m.slope[o], x, m.slope_most)


@kernel
def label_mean(m: Int16Staged, o: Index) -> Int:
    """The label's running mean, times mean_factor."""
    return clip(m.mean[o], -m.mean_most, m.mean_most)


@kernel
def lead(m: Int16Staged, x: Int16[DIM], o: Index) -> Int:
    """The part of the prediction that the stages add: the label's mean and the linear part.  O(D)."""
    total = 0
    if m.centers:
        total = total + floor_shift(label_mean(m, o), m.mean_shift)
    if m.leads:
        total = total + line(m, x, o)
    return total


@kernel
def staged(m: Int16Staged, x: Int16[DIM], value: Int, o: Index) -> Int:
    """The prediction, before it is clipped, given the model's answer."""
    y = value
    # while no answer has been compared with its label, as with late labels, the gain is not known
    if m.gains and m.count[0] >= GAIN_FIRST and m.square[o] > 0:
        y = part_of(value, clip(m.gain[o], 0, ONE))
    return y + lead(m, x, o)


@kernel
def finished(m: Int16Staged, x: Int16[DIM], value: Int, o: Index) -> Int:
    """The prediction, given the model's answer."""
    y = staged(m, x, value, o)
    if m.clamps:
        y = clip(y, m.low, m.high)
    return y


@kernel
def follow_mean(m: Int16Staged, y: Int, o: Index) -> None:
    """Move the running mean towards the label: by 1, 1/2, 1/2, 1/4 ... of their distance, and finally by 2^-mean_pace of
    the distance."""
    mean = label_mean(m, o)
    moved = mean + floor_shift(y * m.mean_factor - mean, clip(m.pace[0], 0, 16))
    m.mean[o] = clip(moved, -m.mean_most, m.mean_most)


@kernel
def follow_line(m: Int16Staged, x: Int16[DIM], rest: Int, o: Index) -> None:
    """Update the linear part by normalised LMS; the normaliser |x|^2 + 1 is rounded down to a power of two.  O(D)."""
    power = places(square_norm(x) + word(m.slope_unit)) - m.slope_shift
    step = floor_shift(part_of(rest, m.slope_eta), clip(power, 0, 31))
    move_weights(m.slope[o], x, clip(step, -m.slope_step, m.slope_step), m.slope_most)


@kernel
def follow_gain(m: Int16Staged, rest: Int, value: Int, o: Index) -> None:
    """Update the means from which the gain is computed, and compute the gain."""
    left = clip(floor_shift(rest, m.gain_shift), -GAIN_SIZE, GAIN_SIZE)
    said = clip(floor_shift(value, m.gain_shift), -GAIN_SIZE, GAIN_SIZE)
    agreement = clip(m.agreement[o], -GAIN_MOST, GAIN_MOST)
    agreement += floor_shift(left * said - agreement, GAIN_PACE)
    square = clip(m.square[o], 0, GAIN_MOST)
    square += floor_shift(said * said - square, GAIN_PACE)
    m.agreement[o] = clip(agreement, -GAIN_MOST, GAIN_MOST)
    m.square[o] = clip(square, 0, GAIN_MOST)
    # divide both means by the same power of two, so that the dividend below fits in 32 bits
    bits = places(word(m.square[o]))
    shift = bits - 14 if bits > 14 else 0
    over = floor_shift(m.agreement[o] if m.agreement[o] > 0 else 0, shift)
    under = floor_shift(m.square[o], shift)
    gain = ONE
    if under > 0 and over < under:
        gain = quotient((over if over < 32767 else 32767) * ONE, under)
    m.gain[o] = gain if gain < ONE else ONE


@kernel
def remain(m: Int16Staged, x: Int16[DIM], y: Int[OUTPUTS], r: Int[OUTPUTS]) -> None:
    """Write the residuals of the labels y to r.  The rule learns these residuals."""
    for o in range(len(y)):
        rest = clip(y[o], -m.label_most, m.label_most)
        rest = rest - lead(m, x, o)
        if m.centers or m.leads:
            rest = clip(rest, -m.rest_most, m.rest_most)
        # the first label becomes the mean, so its residual is 0
        if m.centers and m.count[0] == 0:
            rest = 0
        r[o] = rest


@kernel
def conclude(m: Int16Staged, x: Int16[DIM], y: Int[OUTPUTS], r: Int[OUTPUTS], k: Int[OUTPUTS]) -> None:
    """Update the stages after a sample with the labels y, the residuals r and the rule's answers k."""
    if m.count[0] < COUNTED:
        m.count[0] += 1
    if m.centers:
        pace = clip(m.pace[0], 0, 16)
        if pace < m.mean_pace and floor_shift(m.count[0], pace + 1) > 0:
            m.pace[0] = pace + 1
    for o in range(len(y)):
        if m.gains and m.verdict[0] <= GIVEN:
            if m.verdict[0] == GIVEN:
                rest = clip(y[o], -m.label_most, m.label_most) - clip(m.given_lead[o], -m.rest_most, m.rest_most)
                follow_gain(m, clip(rest, -m.rest_most, m.rest_most), m.given_value[o], o)
            else:
                follow_gain(m, r[o], k[o], o)
        if m.leads:
            follow_line(m, x, r[o], o)
        if m.centers:
            follow_mean(m, clip(y[o], -m.label_most, m.label_most), o)
