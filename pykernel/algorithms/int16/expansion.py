"""Trained expansions that continue to learn, in integers: f(x) = f_0(x) + sum_i w_i k(v_i, x) + w_N.

The model and the rules are those of ``pykernel.algorithms.expansion``.  The trained function f_0 has the same bits as
in ``pykernel.algorithms.int16.frozen``.  Labels and predictions are in the unit of f_0.  The learned part, the stages
and the labels inside the stages are in a unit that is 2^coarser times the unit of f_0.  Weights are in a finer unit, so
that small steps are not lost; sums of weighted features still fit in 32 bits.  Features have 15 bits.

Weights are learned as in ``pykernel.algorithms.int16.weights``.
"""

from dataclasses import replace

from pykernel.algorithms import frame, frozen, stages
from pykernel.algorithms.extents import FUNCTIONS
from pykernel.algorithms.frame import Status
from pykernel.algorithms.int16.arithmetic import clip, nearest_shift, part_of, times
from pykernel.algorithms.int16.covariance import MANTISSA, Int16Covariance, Int16CovarianceConfig, Int16CovarianceWork
from pykernel.algorithms.int16.frame import INT16, VALUE_MOST, hear, winner
from pykernel.algorithms.int16.frozen import (
    CERTAIN,
    Int16FrozenModel,
    Int16TableConfig,
    add_part,
    calibrate,
    logistic,
    sum_all,
)
from pykernel.algorithms.int16.kernels import STEEP, Int16KernelConfig, power
from pykernel.algorithms.int16.stages import staged
from pykernel.algorithms.int16.weights import (
    Int16Learned,
    Int16WeightsConfig,
    Int16WeightsModel,
    keeps,
    learn_weights,
)
from pykernel.algorithms.linear import LinearStatus
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import (
    CLASSES,
    DIM,
    INDEX_MAX,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Real,
    Struct,
    Word,
    as_signed,
    between,
    floor_shift,
    index,
    kernel,
    quotient,
    word,
)

FAR = 536870912
"""The values of class functions are clipped to this magnitude."""
HALF_MOST = 1073741822
"""Largest magnitude of half a prediction."""


class Int16ExpansionWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    f: Word[FUNCTIONS]  # f_0(x), modulo 2^32, because intermediate sums may exceed int32
    p: between(Int[FUNCTIONS], 0, CERTAIN)  # probabilities, before they are divided by their sum


class Int16ExpansionConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.expansion``."""

    products: bool  # whether distances are computed from inner products
    calibrated: bool  # whether a calibration converts the functions to probabilities
    unit_lift: Index  # features of hidden units are multiplied by 2 to this power
    feature_unit: Index  # a feature of 1 is stored as 2 to this power
    constant: Index  # value of the constant feature
    sum_places: Index  # a weighted feature is divided by 2^15, then by 2 to this power
    sure: Index  # softmax: log odds are clipped to this number, which stands for log odds of 32
    octave_lift: Index  # softmax: left shift that brings base-2 log odds to units of 2^-16
    octave_drop: Index  # softmax: right shift, after octave_lift, that brings base-2 log odds to units of 2^-16
    error_lift: Index  # softmax: left shift that turns a probability p into 4 p in the unit of the learned part
    error_drop: Index  # softmax: right shift, after error_lift, that turns p into 4 p in the unit of the learned part
    coarser: Index  # the unit of the learned part is 2 to this power times the unit of f_0


class Int16ExpansionModel(Int16WeightsModel):
    parts = Int16ExpansionWork, Int16ExpansionConfig, Int16TableConfig, Int16KernelConfig


# ------------------------------------------------------------------------------------------------------- answers


@kernel
def keep_value(m: Int16ExpansionModel, i: Index, k: Int, n: Index) -> None:
    """Add vector i's contribution to f_0, and keep its kernel value, k / 2^(n - weight_shift), as a feature of at most 15 bits."""
    for o in range(len(m.f)):
        add_part(m, o, i, o, k, n)
    m.wide[0, i] = floor_shift(floor_shift(k, clip(n - m.weight_shift - m.unit_lift, 0, 31)), 1)


@kernel
def answer(m: Int16ExpansionModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """Write the learned part at the converted inputs m.x to y, the features to m.wide, and the trained functions to
    m.f.  O(N D), and O(N) for each output."""
    if m.hidden:
        # the features start as zeros, because sum_all() skips a hidden unit whose value is zero
        for i in range(len(m.vectors)):
            m.wide[0, i] = 0
    sum_all(m)
    m.wide[0, len(m.vectors)] = m.constant
    for o in range(len(y)):
        # the sum is computed modulo 2^32, so it is well defined even if memory was overwritten
        total = word(0)
        for i in range(len(m.prior)):
            w = clip(m.learned[o, i], -m.weight_most, m.weight_most)
            total += word(nearest_shift(times(w, 2 * clip(m.wide[0, i], -MANTISSA, MANTISSA)), m.sum_places))
        y[o] = clip(as_signed(total), -VALUE_MOST, VALUE_MOST)


@kernel
def respond(m: Int16ExpansionModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x), including f_0, after applying the stages to the rule's answer.  The input is in m.x."""
    answer(m, m.x, m.error)
    for o in range(len(y)):
        rest = staged(m, m.x, clip(m.error[o], -VALUE_MOST, VALUE_MOST), o)
        rest = clip(rest, -floor_shift(INDEX_MAX, m.coarser), floor_shift(INDEX_MAX, m.coarser))
        # f_0 and the learned part are halved before they are added, because their sum may exceed 32 bits
        half = floor_shift(as_signed(m.f[o]), 1) + floor_shift(as_signed(word(rest) << m.coarser), 1)
        value = 2 * clip(half, -HALF_MOST, HALF_MOST) + index(m.f[o] & 1)
        y[o] = clip(value, m.low, m.high) if m.clamps else value


@kernel
def chances(m: Int16ExpansionModel, x: Int16[DIM], p: Int[CLASSES]) -> None:
    """Write the probability of each class at x to p.  With more than two classes, the probabilities are normalised.
    J. Platt, Probabilities for SV Machines, 1999."""
    respond(m, x, m.y)
    for o in range(len(m.f)):
        m.f[o] = word(m.y[o])
    calibrate(m, p)


# ------------------------------------------------------------------------------------------------------ learning


@kernel
def acceptable_label(m: Int16ExpansionModel, y: Int) -> Bool:
    """Whether a label, which is in the unit of f_0, is within its limit."""
    return y >= -m.label_room and y <= m.label_room


@kernel
def take_off(m: Int16ExpansionModel, x: Int16[DIM], y: Int[OUTPUTS]) -> Bool:
    """Called in place of a warm-up.  Call answer(); if the labels are numbers, also convert them to the unit of the learned part and
    subtract f_0.  Always false."""
    answer(m, m.x, m.error)
    if not m.separates:
        for o in range(len(m.y)):
            f = nearest_shift(as_signed(m.f[o]), m.coarser)
            m.y[o] = clip(nearest_shift(m.y[o], m.coarser) - f, -m.label_most, m.label_most)
    return False


@kernel
def learn(m: Int16ExpansionModel, x: Int16[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  take_off() has already written the features to m.wide and the learned part to
    m.error.  Returns DONE."""
    if m.separates:
        for o in range(len(m.y)):
            m.error[o] = clip(m.error[o], -VALUE_MOST, VALUE_MOST) + nearest_shift(as_signed(m.f[o]), m.coarser)
    hear(m)
    learn_weights(m, m.feature_unit)
    return Status.DONE


# -------------------------------------------------------------------------------------------------- softmax of classes


@kernel
def octaves_of(m: Int16ExpansionModel, f: Int) -> Index:
    """log2(e^f) in units of 2^-16, where f is in the unit of the learned part and is clipped to m.sure."""
    part = part_of(clip(f, -m.sure, m.sure), STEEP)
    return floor_shift(as_signed(word(part) << m.octave_lift), m.octave_drop)


@kernel
def soften(m: Int16ExpansionModel, y: Int[OUTPUTS]) -> None:
    """Write the softmax of the classes' functions to m.p, in units of 1 / CERTAIN; for two classes, write only the
    probability of the second class."""
    if m.single:
        m.p[0] = logistic(octaves_of(m, y[0]))
    else:
        total = 0
        best = winner(y)
        for o in range(len(y)):
            less = clip(y[best], -FAR, FAR) - clip(y[o], -FAR, FAR)
            u = word(octaves_of(m, less))
            n = index(u >> 16)
            m.p[o] = floor_shift(power(u), n + 1) if n < 16 else 0
            total += m.p[o]
        for o in range(len(y)):
            share_of = quotient(clip(m.p[o], 0, CERTAIN) * CERTAIN, total if total > 0 else 1)
            m.p[o] = clip(share_of, 0, CERTAIN)


@kernel
def learn_classes(m: Int16ExpansionModel, x: Int16[DIM]) -> Index:
    """Learn that x belongs to the class whose m.y is positive.  A function's error is 4 (t - p), where t is 1 for the class of x
    and 0 for the other classes.  Returns DONE."""
    for o in range(len(m.y)):
        m.error[o] = clip(m.error[o], -VALUE_MOST, VALUE_MOST) + nearest_shift(as_signed(m.f[o]), m.coarser)
    soften(m, m.error)
    for o in range(len(m.y)):
        off = (CERTAIN if m.y[o] > 0 else 0) - clip(m.p[o], 0, CERTAIN)
        step = floor_shift(as_signed(word(off) << m.error_lift), m.error_drop)
        m.error[o] = clip(step, -VALUE_MOST, VALUE_MOST)
    learn_weights(m, m.feature_unit)
    return Status.DONE


@kernel
def chances_of_classes(m: Int16ExpansionModel, x: Int16[DIM], p: Int[CLASSES]) -> None:
    """Write to p the softmax of the classes' functions at x."""
    respond(m, x, m.y)
    for o in range(len(m.y)):
        m.error[o] = clip(nearest_shift(m.y[o], m.coarser), -VALUE_MOST, VALUE_MOST)
    soften(m, m.error)
    if m.single:
        p[1] = m.p[0]
        p[0] = CERTAIN - m.p[0]
    else:
        for o in range(len(p)):
            p[o] = m.p[o]


RULE = Rule(
    name="expansion",
    model=Int16ExpansionModel,
    memory=(Int16Learned, Int16Covariance),
    work=(Int16CovarianceWork, Int16ExpansionWork),
    configs=(Int16WeightsConfig, Int16ExpansionConfig, Int16CovarianceConfig, Int16TableConfig, Int16KernelConfig),
    statuses=LinearStatus,
    hooks={
        frame.answer: answer,
        frame.learn: learn,
        frame.keeps: keeps,
        frame.respond: respond,
        frame.acceptable_label: acceptable_label,
        frame.whole_chances: chances,
        stages.warm_up: take_off,
        frozen.share: keep_value,
        Int16FrozenModel: Int16ExpansionModel,
        Real[CLASSES]: Int[CLASSES],
    },
    costs=(
        "O(N D) for N vectors",
        "[not filters] O(N D) for N vectors.  [filters] O(N^2 + N D) for N vectors",
    ),
    calibrated=lambda config: bool(config.calibrated),
    # frame.most_likely stays: it writes f(x) to m.y; its int16 version would write f(x) to m.error, whose range is too small
    stand_ins={key: value for key, value in INT16.items() if key is not frame.most_likely},
)
INT16_EXPANSION = programs(RULE)
INT16_EXPANSION_SOFTMAX = programs(
    replace(
        RULE,
        name="expansion-softmax",
        hooks={**RULE.hooks, frame.learn: learn_classes, frame.whole_chances: chances_of_classes},
        calibrated=lambda config: True,
        labels=("class",),
    )
)
