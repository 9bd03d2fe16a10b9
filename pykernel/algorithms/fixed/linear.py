"""A linear model that learns in whole numbers: normalised LMS, whose normaliser is rounded down to a power of two.

J. Nagumo, A. Noda, A learning method for system identification, 1967.
"""

from __future__ import annotations

from pykernel.algorithms.fixed.inputs import FixedInputConfig, converted
from pykernel.algorithms.fixed.values import clip, part_of, places, square_norm, times
from pykernel.algorithms.linear import LinearStatus
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Model,
    Struct,
    as_signed,
    between,
    floor_shift,
    kernel,
    multiply_high,
    word,
)
from pykernel.dialect.program import Entry, LabelKind, Program

REHEARSED = 64
"""Samples of the self-test."""
VALUE_MOST = 536870912
"""Largest |f(x)|."""


class FixedLine(Struct):
    """The model is f(x) = slope'z + constant, of the converted inputs z."""

    slope: between(Int[OUTPUTS, DIM], "-slope_most", "slope_most")  # in units of 2^-16
    constant: between(
        Int[OUTPUTS], "-slope_most", "slope_most"
    )  # the factor of 1, which is unit in the converted inputs
    frozen: between(Index, 0, 1)  # 1: learning is switched off


class FixedLineWork(Struct):
    """Intermediate results.  Every call computes them anew; zeros are always valid."""

    y: between(Int[OUTPUTS], "-label_most", "label_most")  # the sample's label
    f: between(Int[OUTPUTS], -VALUE_MOST, VALUE_MOST)  # f(x)
    x: between(Int16[DIM], "-reach", "reach")  # the converted inputs


class FixedLineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.fixed_linear``."""

    separates: bool  # whether the label is a class: then there is no error where the class is clear enough
    single: bool  # whether there is one output
    clamps: bool  # whether predictions are kept between low and high
    unit: Index  # what 1 is in the converted inputs
    slope_most: Index
    slope_step: Index  # largest change of a slope for an input of one unit
    eta: Index  # learning rate, times 2^16 and a power of two
    eta_shift: Index  # ... which, and what slopes are measured in, takes this many places
    label_most: Index  # largest |y| that is accepted
    one: Index  # what a function is taught for its class
    classes: Index  # number of classes
    low: Index  # smallest prediction
    high: Index  # largest prediction


class FixedLinearModel(Model):
    parts = FixedLine, FixedLineWork, FixedLineConfig, FixedInputConfig


@kernel
def evaluate(m: FixedLinearModel) -> None:
    """f(x), in m.f.  O(D)."""
    for o in range(len(m.f)):
        # limits, for memory may have been overwritten
        total = part_of(clip(m.constant[o], -m.slope_most, m.slope_most), m.unit)
        for j in range(len(m.x)):
            total += times(clip(m.slope[o, j], -m.slope_most, m.slope_most), m.x[j])
        m.f[o] = clip(total, -VALUE_MOST, VALUE_MOST)


@kernel
def learn(m: FixedLinearModel) -> Index:
    """w += eta e z / (|z|^2 + 1) for the converted sample with the labels m.y.  O(D)."""
    if m.frozen[0] != 0:
        return LinearStatus.FROZEN
    evaluate(m)
    # |z|^2 + 1 in the converted inputs' unit
    power = places(square_norm(m.x) + word(m.unit * m.unit)) - m.eta_shift
    for o in range(len(m.f)):
        error = m.y[o] - m.f[o]
        if m.separates:
            # no error where the class is clear enough
            if (m.y[o] > 0 and m.f[o] >= m.y[o]) or (m.y[o] < 0 and m.f[o] <= m.y[o]):
                error = 0
        step = floor_shift(part_of(error, m.eta), clip(power, 0, 31))
        step = clip(step, -m.slope_step, m.slope_step)
        for j in range(len(m.x)):
            moved = as_signed(word(m.slope[o, j]) + word(step * m.x[j]))
            m.slope[o, j] = clip(moved, -m.slope_most, m.slope_most)
        moved = as_signed(word(m.constant[o]) + word(step * m.unit))
        m.constant[o] = clip(moved, -m.slope_most, m.slope_most)
    return LinearStatus.DONE


@kernel
def update(m: FixedLinearModel, x: Int16[DIM], y: Int) -> Index:
    """Learn one sample: for the input x, the prediction should be y, in units of 1 / LABEL_SCALE.  O(D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    accepted = converted(m, x, m.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    if y < -m.label_most or y > m.label_most:
        return LinearStatus.REFUSED_LABEL
    m.y[0] = y
    return learn(m)


@kernel
def update_many(m: FixedLinearModel, x: Int16[DIM], y: Int[OUTPUTS]) -> Index:
    """Learn one sample: for the input x, the prediction should be y, in units of 1 / LABEL_SCALE.  O(D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    accepted = converted(m, x, m.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    for o in range(len(y)):
        if y[o] < -m.label_most or y[o] > m.label_most:
            return LinearStatus.REFUSED_LABEL
        m.y[o] = y[o]
    return learn(m)


@kernel
def update_class(m: FixedLinearModel, x: Int16[DIM], label: Index) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.  O(D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    accepted = converted(m, x, m.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    if label < 0 or label >= m.classes:
        return LinearStatus.REFUSED_LABEL
    for o in range(len(m.y)):
        positive = 1 if m.single else o
        m.y[o] = m.one if label == positive else -m.one
    return learn(m)


@kernel
def predict(m: FixedLinearModel, x: Int16[DIM], y: Int[OUTPUTS]) -> Index:
    """Predict: write f(x) to y, in units of 1 / LABEL_SCALE.  O(D).

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    accepted = converted(m, x, m.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    evaluate(m)
    for o in range(len(y)):
        y[o] = clip(m.f[o], m.low, m.high) if m.clamps else m.f[o]
    return LinearStatus.DONE


@kernel
def classify(m: FixedLinearModel, x: Int16[DIM], label: Index[1]) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(D).

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    accepted = converted(m, x, m.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    evaluate(m)
    best = 0
    if m.single:
        if m.f[0] > 0:
            best = 1
    else:
        for o in range(1, len(m.f)):
            if m.f[o] > m.f[best]:
                best = o
    label[0] = best
    return LinearStatus.DONE


@kernel
def freeze(m: FixedLinearModel, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update only checks the sample."""
    m.frozen[0] = 0
    if frozen != 0:
        m.frozen[0] = 1
    return LinearStatus.DONE


@kernel
def rehearse(m: FixedLinearModel, x: Int16[DIM]) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test."""
    seed = 1
    for t in range(REHEARSED):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = floor_shift((seed - 32768) * m.most[j if m.each else 0], 16) + m.center[j if m.each else 0]
        accepted = converted(m, x, m.x)
        for o in range(len(m.y)):
            seed = (seed * 75 + 74) % 65537
            m.y[o] = multiply_high(m.label_most, seed if seed < 65536 else 0) - floor_shift(m.label_most, 1)
        if accepted:
            status = learn(m)
            if status < 0:
                break


@kernel
def valid(m: FixedLinearModel) -> Bool:
    """Every number within its declared range is one that learning can give."""
    return True


def _program(*learning: Entry) -> Program:
    return Program(
        name="linear",
        structs=(FixedLine, FixedLineWork),
        persistent=(FixedLine,),
        configs=(FixedLineConfig, FixedInputConfig),
        status=LinearStatus,
        entries=(Entry("predict", predict, "question"), *learning, Entry("freeze", freeze, "switch")),
        rehearse=rehearse,
        valid=valid,
    )


FIXED_LINEAR: dict[LabelKind, Program] = {
    "real": _program(Entry("update", update, "update")),
    "reals": _program(Entry("update", update_many, "update")),
    "class": _program(Entry("update", update_class, "update"), Entry("classify", classify, "question")),
}
