"""An additional linear expert: the joint prediction is never much worse than that of recursive least squares.

The expert uses inputs in fixed units, because least squares needs constant units, but the standardiser's scale changes
over time.  If inputs are scaled by constants, the expert uses the same constants.  The latest known label may be an
additional input.  This input is clipped, and its unit is the standard deviation of the first labels.  If labels come
late, this input is the latest label that was known when the model predicted.  The covariance P = U D U' is stored as
its factors (G. J. Bierman, Factorization Methods for Discrete Sequential Estimation, 1977, V.3), so that P is always
positive semidefinite: U is a unit upper triangular matrix, and D is diagonal, without negative elements.  If there
are many inputs, only diagonal blocks of P are stored: each block is updated as if the uncertainty of all other blocks
were noise.  The time for an update then grows linearly with the number of inputs.

The joint prediction is the weighted mean of the model's prediction, with weight a^-8, and the expert's prediction,
with weight b^-8, where a and b are the recent mean squared errors of model and expert.  If the model's errors are
twice as large as the expert's errors, the model's weight is 1/65,536 of the expert's weight; if model and expert are
equally accurate, their predictions have equal weights.

If the label is a class, the expert has a function for each class, which should be at least 1 for inputs of this class and at
most -1 for other inputs.  The probabilities of model and expert are averaged (``pykernel.algorithms.poll``).
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.extents import EXPERT, LAST
from pykernel.algorithms.pending import GIVEN, late
from pykernel.algorithms.stages import (
    LARGEST_POWER,
    LOUD,
    LOUD_PARTS,
    PART_OF_LIMIT,
    SCALE_MOST,
    Staged,
    lead,
    shaken,
    trust,
)
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Constant,
    Index,
    Real,
    Struct,
    absolute,
    between,
    floor_shift,
    kernel,
    real,
    sqrt,
)

FIXED_AT = 20
"""The units are fixed after this many samples: means and standard deviations are then known well enough."""
EXPERT_KNOWN = 20
"""The expert is used after this many labels."""
NUMBERS_HEARD = 1
CLASSES_HEARD = 10
"""If labels come late and are classes, the expert is used after this many labels, because only a few labels are
compared with a prediction.  If labels are numbers, NUMBERS_HEARD labels are enough, because the size of an error says more about
accuracy than a right or wrong class does."""
EXPERT_SETTLED = 40
"""After this many labels, errors are clipped to a multiple of the usual error."""
EXPERT_FAR = Constant(1000.0)
"""Largest |input| in the expert's units."""
EXPERT_VARIANCE = Constant(1000.0)
"""Initial value and upper limit of D's elements.  Without the limit, forgetting would enlarge the element of a constant
input until its rounding errors moved the weights of other inputs.
"""
LAST_PART = Constant(0.01)
"""Factor by which the latest label is multiplied when it is used as an input.  The factor is small so that the expert
learns little from this input: labels may stay nearly constant for a long time."""
PIVOT_LEAST = Constant(1e-12)
FACTOR_MOST = Constant(1e4)
"""Largest |U_ij|."""
EXPERT_BLOCK = 8
"""Number of inputs in a block, where the constant 1 counts as an input."""
BLOCK_PAIRS = EXPERT_BLOCK * (EXPERT_BLOCK - 1) // 2
EXPERT_LIMIT = Constant(1024.0)
"""Largest weight of the expert, in units of the label's limit."""
SHARP_LEAST = Constant(0.1)
SHARP_MOST = Constant(30.0)
"""Smallest and largest sharpness.  Functions are multiplied by the sharpness before the softmax turns them into probabilities."""
RANDOM_LEAST = Constant(1e-4)
RANDOM_MOST = Constant(0.9)
"""Smallest and largest fraction of labels that is treated as random.  With a larger fraction, the returned probabilities
would hardly change when the model improves."""
WRONG_MOST = Constant(4.0)
"""Upper limit of a class error, which is the Brier score (at most 2), plus 1 for a wrong class.  The rest of the limit
is room for rounding."""


class Expert(Struct):
    """The state of the linear expert, and the error statistics of expert and model."""

    expert_offset: between(Real[DIM], None, None, after="compared")  # number that is subtracted from each input
    # factor by which each input is multiplied after the offset is subtracted
    expert_scale: between(Real[DIM], None, None, after="compared")
    # number that is subtracted from the labels
    expert_center: between(Real[OUTPUTS], "-2 * label_limit", "2 * label_limit", after="compared")
    # weights of the inputs, of the constant 1, and of the latest known labels
    expert_weights: between(Real[OUTPUTS, EXPERT], "-expert_limit", "expert_limit", after="compared")
    pivots: between(Real[EXPERT], 0, EXPERT_VARIANCE, after="compared")  # D
    # U above its diagonal, column by column
    factor: between(Real[EXPERT * (EXPERT - 1) // 2], -FACTOR_MOST, FACTOR_MOST, after="compared")
    # U within blocks of inputs, block by block
    block_factor: between(Real[EXPERT * 4 + 24], -FACTOR_MOST, FACTOR_MOST, after="compared")
    # running mean of the model's squared errors
    model_power: between(Real[OUTPUTS], 0, LARGEST_POWER, after="compared")
    # running mean of the expert's squared errors
    expert_power: between(Real[OUTPUTS], 0, LARGEST_POWER, after="compared")
    # 2^n - 1 after n consecutive labels far from the expert's prediction
    expert_shock: between(Real, 0, LOUD, after="compared")
    # 0 if the units are not fixed yet; otherwise 1 + the number of labels in the running means (at most the horizon of
    # these means)
    compared: between(Index, 0, "compared_most")
    # the latest labels, after clipping, oldest first
    last_labels: between(Real[LAST, OUTPUTS], "-label_limit", "label_limit", after="compared")
    first_power: between(Real[OUTPUTS], 0, LARGEST_POWER, after="compared")  # variance of the first labels
    # for classes: the sharpness of the model's and of the expert's functions; 0: SHARP_FIRST is used
    model_sharpness: between(Real, 0, SHARP_MOST, after="compared")
    expert_sharpness: between(Real, 0, SHARP_MOST, after="compared")
    model_wrong: between(Real, 0, WRONG_MOST, after="compared")  # running mean of the model's class errors
    expert_wrong: between(Real, 0, WRONG_MOST, after="compared")  # running mean of the expert's class errors
    # fraction of the labels that belong to each class (for two classes, only to the second); 0: not known yet
    class_share: between(Real[OUTPUTS], 0, 1, after="compared")
    # for classes: s and e, which calibrate the joint probabilities (see ``poll``); 0: the initial value is used
    told_sharpness: between(Real, 0, SHARP_MOST)
    random_part: between(Real, 0, RANDOM_MOST)

    units = tuple((name, "label_unit", 2) for name in ("model_power", "expert_power", "first_power"))


class ExpertWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    expert_answer: Real[OUTPUTS]  # the expert's predictions before it learned the sample
    polled: Real[OUTPUTS]  # probabilities of classes
    whole: Real[OUTPUTS]  # joint probabilities of model and expert
    # in the expert's units: the latest label, or the label that was known at the time of the prediction
    recalled: Real[OUTPUTS]
    gained: Real[EXPERT]  # P phi, where phi contains the inputs in the expert's units, the constant 1, and m.recalled


class ExpertConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.stages``."""

    expert_forgetting: Real  # lambda: each label multiplies the weight of every earlier label by this factor
    expert_growth: Real  # 1 / lambda
    recalls: bool  # whether the latest known label is an input
    weights_classes: bool  # whether the class with the largest product of probability and class weight is predicted
    balances: bool  # whether class weights are computed from the frequencies of the classes
    # the spec's class weights; for two classes, the weight of the second class relative to that of the first class
    class_weights: Real[OUTPUTS]
    in_blocks: bool  # whether only covariances within blocks of inputs are kept
    expert_limit: Real  # largest weight
    compared_most: Index  # the horizon of the mean squared errors, plus 1
    # for classes: whether the sharpness of the model's functions is learned; if not, the functions are log odds already
    sharpens: bool

    tunable = frozenset("expert_forgetting expert_growth expert_limit compared_most".split())


class Advised(Staged):
    """A model with stages and a linear expert."""

    parts = Expert, ExpertWork, ExpertConfig


@kernel
def in_units(m: Advised, x: Real[DIM], j: Index) -> Real:
    """Input j in the expert's units; after the last input come the constant 1 and the latest known labels."""
    if j == len(x):
        return real(1)
    if m.recalls:
        if j > len(x):
            return m.recalled[j - len(x) - 1]
    return bounded((x[j] - m.expert_offset[j]) * m.expert_scale[j], EXPERT_FAR)


@kernel
def advise(m: Advised, x: Real[DIM], o: Index) -> Real:
    """The expert's prediction for an unscaled input.  O(D)."""
    total = m.expert_weights[o, len(x)]
    if not m.votes:
        total = m.expert_center[o] + total
    for j in range(len(x)):
        total += m.expert_weights[o, j] * in_units(m, x, j)
    if m.recalls:
        for i in range(len(m.recalled)):
            total += m.expert_weights[o, len(x) + 1 + i] * m.recalled[i]
    return total


@kernel
def look_back(m: Advised, asked: Bool) -> None:
    """Write to m.recalled the label that the expert uses as an input.  While the labels' standard deviation is unknown,
    write 0.

    asked: whether the expert predicts now, from the latest label; otherwise it learns, from the label that was the latest
    when the sample was predicted.
    """
    place = len(m.last_labels) - 1 if asked else 0
    for o in range(len(m.recalled)):
        m.recalled[o] = real(0)
        if m.compared[0] > FIXED_AT and m.first_power[o] > real(0):
            # a precomputed factor would be infinite if the first labels hardly varied
            away = (m.last_labels[place, o] - m.expert_center[o]) * m.label_unit
            m.recalled[o] = bounded(LAST_PART * (away / sqrt(m.first_power[o])), EXPERT_FAR)


@kernel
def keep_label(m: Advised, y: Real[OUTPUTS]) -> None:
    """Keep a label that was learned; the first labels also update the labels' standard deviation.  O(LAST)."""
    rate = real(2) / (real(m.compared[0]) + real(1))
    for o in range(len(y)):
        for i in range(len(m.last_labels) - 1):
            m.last_labels[i, o] = m.last_labels[i + 1, o]
        m.last_labels[len(m.last_labels) - 1, o] = y[o]
        size = bounded((y[o] - m.expert_center[o]) * m.label_unit, LOUD_PARTS)
        if m.compared[0] <= FIXED_AT or m.first_power[o] == real(0):
            power = m.first_power[o] + rate * (size * size - m.first_power[o])
            m.first_power[o] = clipped(power, real(0), LARGEST_POWER)


@kernel
def weighed(model: Real, expert: Real, model_error: Real, expert_error: Real) -> Real:
    """The mean of the model's and the expert's predictions, each weighted by the -8th power of its error measure."""
    better = model_error <= expert_error
    least = model_error if better else expert_error
    most = expert_error if better else model_error
    if not (most > real(0)):
        return model
    part = least / most
    part = part * part
    part = part * part
    part = part * part
    first = model if better else expert
    second = expert if better else model
    return (first + part * second) / (real(1) + part)


@kernel
def heard(m: Advised) -> Bool:
    """Whether the expert is used."""
    if late(m):
        return m.compared[0] > (CLASSES_HEARD if m.votes else NUMBERS_HEARD)
    return m.compared[0] > EXPERT_KNOWN


@kernel
def blended(m: Advised, o: Index, model: Real, expert: Real) -> Real:
    """The mean of the model's and the expert's predictions, each weighted by the -8th power of its recent mean squared
    error."""
    if not heard(m):
        return model
    return weighed(model, expert, m.model_power[o], m.expert_power[o])


@kernel
def mix(m: Advised, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Replace the model's predictions y by weighted means of the model's and the expert's predictions.  O(D) for each
    output."""
    if m.recalls:
        look_back(m, True)
    for o in range(len(y)):
        y[o] = blended(m, o, y[o], advise(m, x, o))


@kernel
def consult(m: Advised, x: Real[DIM], asked: Bool) -> None:
    """Write the expert's predictions for x to m.expert_answer, either for a call that predicts or for the sample that
    is learned next.  O(D) for each output."""
    if m.recalls:
        look_back(m, asked)
    for o in range(len(m.expert_answer)):
        m.expert_answer[o] = advise(m, x, o)


@kernel
def usual(m: Advised, error: Real, power: Real, shock: Real) -> Real:
    """The square of an error in units of 2^-40 of the label's limit.  For outlying labels, the square is clipped."""
    size = bounded(error * m.label_unit, LOUD_PARTS)
    square = size * size
    if m.limits and m.compared[0] > EXPERT_SETTLED and power > real(0):
        most = m.label_clip * (real(1) + shock)
        if square > (most * most) * power:
            square = (most * most) * power
    return square


@kernel
def judge_both(m: Advised, x: Real[DIM], y: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """Update the mean squared errors of model and expert with a label.  A late label is compared with the predictions that
    were stored for it.  O(D) for each output.

    x: the input that is passed to the rule.  k: the predictions of the model's rule.
    """
    if m.compared[0] > 0:
        if m.compared[0] < m.compared_most:
            m.compared[0] += 1
        rate = real(2) / real(m.compared[0])
        for o in range(len(y)):
            said = k[o]
            added = m.given_lead[o]
            expert = m.expert_answer[o]
            if m.verdict[0] == GIVEN:
                said = m.given_value[o]
                expert = m.given_expert[o]
            else:
                added = lead(m, x, o)
            own = added + (trust(m, o) * said if m.gains else said)
            models = usual(m, y[o] - own, m.model_power[o], m.label_shock[0])
            experts = usual(m, y[o] - expert, m.expert_power[o], m.expert_shock[0])
            m.model_power[o] = clipped(m.model_power[o] + rate * (models - m.model_power[o]), real(0), LARGEST_POWER)
            m.expert_power[o] = clipped(
                m.expert_power[o] + rate * (experts - m.expert_power[o]), real(0), LARGEST_POWER
            )


@kernel
def fix_units(m: Advised) -> None:
    """Fix the expert's units: copy the current statistics of the standardiser, or the constants that scale the inputs.  O(D)."""
    for j in range(len(m.mean)):
        if m.standardises:
            m.expert_offset[j] = m.mean[j]
            m.expert_scale[j] = real(1)
            if m.variance[j] > real(0):
                m.expert_scale[j] = m.scale[j]
        else:
            m.expert_offset[j] = m.input_center[j]
            m.expert_scale[j] = m.input_scale[j]
    if not m.votes:
        for o in range(len(m.expert_center)):
            m.expert_center[o] = m.center[o]
    for j in range(len(m.pivots)):
        m.pivots[j] = EXPERT_VARIANCE
    m.compared[0] = 1


@kernel
def sharpen(m: Advised, x: Real[DIM], upper: Real[...]) -> Real:
    """Update the factors of each block of P by Bierman's method.  Write P phi, with P from before the update, to
    m.gained.  Returns lambda + phi'P phi.

    Each block treats the uncertainty of all other blocks as noise.  O(D^2), or O(D) in blocks.
    """
    for j in range(len(m.gained)):
        m.gained[j] = in_units(m, x, j)
    # f = U' phi replaces phi, from the last element down
    begin = EXPERT_BLOCK * floor_shift(len(m.gained) - 1, 3) if m.in_blocks else 0
    place = len(m.gained) - begin
    column = BLOCK_PAIRS * floor_shift(begin, 3) + floor_shift(place * (place - 1), 1)
    whole = m.expert_forgetting
    for t in range(len(m.gained)):
        last = len(m.gained) - 1 - t
        if last < begin:
            begin = begin - EXPERT_BLOCK
        column = column - (last - begin)
        total = m.gained[last]
        for i in range(last - begin):
            total += upper[column + i] * m.gained[begin + i]
        m.gained[last] = total
        whole += m.pivots[last] * total * total
    known = m.expert_forgetting
    for j in range(len(m.gained)):
        if m.in_blocks and j == begin + EXPERT_BLOCK:
            begin = j
        if m.in_blocks and j == begin:
            known = whole
            for i in range(EXPERT_BLOCK):
                if j + i < len(m.gained):
                    known = known - m.pivots[j + i] * m.gained[j + i] * m.gained[j + i]
            # without rounding errors, known would be at least lambda
            if known < m.expert_forgetting:
                known = m.expert_forgetting
        # element j changes from f_j to D_j f_j, and its part of P phi is added to the elements before it
        f = m.gained[j]
        v = m.pivots[j] * f
        before = known
        known = known + v * f
        m.pivots[j] = clipped((m.pivots[j] * (before / known)) * m.expert_growth, PIVOT_LEAST, EXPERT_VARIANCE)
        part = f / before
        m.gained[j] = v
        for i in range(j - begin):
            u = upper[column + i]
            upper[column + i] = bounded(u - m.gained[begin + i] * part, FACTOR_MOST)
            m.gained[begin + i] += u * v
        column += j - begin
    return whole if m.in_blocks else known


@kernel
def to_learn(m: Advised, y: Real, answer: Real) -> Real:
    """The part of the error that the expert should learn.  [votes] For a class, the error is 0 if y f(x) >= 1."""
    if m.votes:
        if y * answer >= real(1):
            return real(0)
    return bounded(y - answer, m.expert_limit)


@kernel
def farthest_error(m: Advised, o: Index) -> Real:
    """The largest accepted distance between a label and the expert's prediction; a label further away is clipped to
    this distance."""
    if m.limits and m.compared[0] > EXPERT_SETTLED and m.expert_power[o] > real(0):
        allowed = m.label_clip * (real(1) + m.expert_shock[0])
        return allowed * (m.label_limit * (PART_OF_LIMIT * sqrt(m.expert_power[o])))
    return m.expert_limit


@kernel
def unclear(m: Advised, y: Real[OUTPUTS]) -> Bool:
    """Whether the expert has something to learn: whether y f(x) is below 1 for any class.

    If there is nothing to learn, P must not shrink: otherwise later errors would move the weights too little.
    """
    for o in range(len(y)):
        if y[o] * m.expert_answer[o] < real(1):
            return True
    return False


@kernel
def instruct(m: Advised, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Let the expert learn a sample: clip the labels around the expert's predictions, and replace each output's weights
    w by w + P phi e / (lambda + phi'P phi) for the error e.  Before that, fix the expert's units if they are not fixed
    yet and enough samples have been observed.  O(D^2), or O(D) in blocks."""
    if m.compared[0] == 0:
        if not m.standardises or m.observed[0] >= FIXED_AT or m.observed[0] == m.input_horizon:
            fix_units(m)
            consult(m, x, False)
    learns = m.compared[0] > 0
    if m.votes:
        learns = learns and unclear(m, y)
    if learns:
        whole = real(0)
        if m.in_blocks:
            whole = sharpen(m, x, m.block_factor)
        else:
            whole = sharpen(m, x, m.factor)
        inverse = real(1) / whole
        outlying = False
        for o in range(len(y)):
            error = to_learn(m, y[o], m.expert_answer[o])
            if m.limits:
                most = farthest_error(m, o)
                outlying = outlying or absolute(error) >= most
                error = bounded(error, most)
            step = error * inverse
            for j in range(len(m.gained)):
                m.expert_weights[o, j] = bounded(m.expert_weights[o, j] + step * m.gained[j], m.expert_limit)
        if m.limits:
            m.expert_shock[0] = shaken(m.expert_shock[0], outlying)
        if m.recalls:
            keep_label(m, m.learned)


@kernel
def calibrated(m: Advised) -> Bool:
    """Whether learning could have led to the calibration s and e."""
    if m.told_sharpness[0] == real(0):
        return m.random_part[0] == real(0)
    return m.told_sharpness[0] >= SHARP_LEAST and m.random_part[0] >= RANDOM_LEAST


@kernel
def valid_expert(m: Advised) -> Bool:
    """Whether learning could have led to this expert: the standardiser must be able to produce the expert's units.
    O(D)."""
    if not m.votes:
        for o in range(len(m.center)):
            # labels that are not centered have a center of 0, which fix_units() copies to expert_center
            if not m.centers and m.center[o] != real(0):
                return False
    elif not calibrated(m):
        return False
    if m.compared[0] == 0:
        return True
    for j in range(len(m.pivots)):
        if not (m.pivots[j] >= PIVOT_LEAST):
            return False
    for j in range(len(m.mean)):
        if not m.standardises:
            if m.expert_offset[j] != m.input_center[j] or m.expert_scale[j] != m.input_scale[j]:
                return False
            continue
        # the limits are doubled as room for rounding, as in the stages
        if not (absolute(m.expert_offset[j]) * real(0.5) <= m.input_max_abs):
            return False
        scale = m.expert_scale[j]
        if not (scale > real(0) and scale <= SCALE_MOST):
            return False
    return True
