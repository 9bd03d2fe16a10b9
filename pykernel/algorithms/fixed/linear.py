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


@kernel
def evaluate(s: FixedLine, w: FixedLineWork, c: FixedLineConfig) -> None:
    """f(x), in w.f.  O(D)."""
    for o in range(len(w.f)):
        # limits, for memory may have been overwritten
        total = part_of(clip(s.constant[o], -c.slope_most, c.slope_most), c.unit)
        for j in range(len(w.x)):
            total += times(clip(s.slope[o, j], -c.slope_most, c.slope_most), w.x[j])
        w.f[o] = clip(total, -VALUE_MOST, VALUE_MOST)


@kernel
def learn(s: FixedLine, w: FixedLineWork, c: FixedLineConfig) -> Index:
    """w += eta e z / (|z|^2 + 1) for the converted sample with the labels w.y.  O(D)."""
    if s.frozen[0] != 0:
        return LinearStatus.FROZEN
    evaluate(s, w, c)
    # |z|^2 + 1 in the converted inputs' unit
    power = places(square_norm(w.x) + word(c.unit * c.unit)) - c.eta_shift
    for o in range(len(w.f)):
        error = w.y[o] - w.f[o]
        if c.separates:
            # no error where the class is clear enough
            if (w.y[o] > 0 and w.f[o] >= w.y[o]) or (w.y[o] < 0 and w.f[o] <= w.y[o]):
                error = 0
        step = floor_shift(part_of(error, c.eta), clip(power, 0, 31))
        step = clip(step, -c.slope_step, c.slope_step)
        for j in range(len(w.x)):
            moved = as_signed(word(s.slope[o, j]) + word(step * w.x[j]))
            s.slope[o, j] = clip(moved, -c.slope_most, c.slope_most)
        moved = as_signed(word(s.constant[o]) + word(step * c.unit))
        s.constant[o] = clip(moved, -c.slope_most, c.slope_most)
    return LinearStatus.DONE


@kernel
def update(s: FixedLine, w: FixedLineWork, c: FixedLineConfig, p: FixedInputConfig, x: Int16[DIM], y: Int) -> Index:
    """Learn one sample: for the input x, the prediction should be y, in units of 1 / LABEL_SCALE.  O(D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    accepted = converted(p, x, w.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    if y < -c.label_most or y > c.label_most:
        return LinearStatus.REFUSED_LABEL
    w.y[0] = y
    return learn(s, w, c)


@kernel
def update_many(
    s: FixedLine, w: FixedLineWork, c: FixedLineConfig, p: FixedInputConfig, x: Int16[DIM], y: Int[OUTPUTS]
) -> Index:
    """Learn one sample: for the input x, the prediction should be y, in units of 1 / LABEL_SCALE.  O(D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    accepted = converted(p, x, w.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    for o in range(len(y)):
        if y[o] < -c.label_most or y[o] > c.label_most:
            return LinearStatus.REFUSED_LABEL
        w.y[o] = y[o]
    return learn(s, w, c)


@kernel
def update_class(
    s: FixedLine, w: FixedLineWork, c: FixedLineConfig, p: FixedInputConfig, x: Int16[DIM], label: Index
) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.  O(D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    accepted = converted(p, x, w.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return LinearStatus.REFUSED_LABEL
    for o in range(len(w.y)):
        positive = 1 if c.single else o
        w.y[o] = c.one if label == positive else -c.one
    return learn(s, w, c)


@kernel
def predict(
    s: FixedLine, w: FixedLineWork, c: FixedLineConfig, p: FixedInputConfig, x: Int16[DIM], y: Int[OUTPUTS]
) -> Index:
    """Predict: write f(x) to y, in units of 1 / LABEL_SCALE.  O(D).

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    accepted = converted(p, x, w.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    evaluate(s, w, c)
    for o in range(len(y)):
        y[o] = clip(w.f[o], c.low, c.high) if c.clamps else w.f[o]
    return LinearStatus.DONE


@kernel
def classify(
    s: FixedLine, w: FixedLineWork, c: FixedLineConfig, p: FixedInputConfig, x: Int16[DIM], label: Index[1]
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(D).

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    accepted = converted(p, x, w.x)
    if not accepted:
        return LinearStatus.REFUSED_INPUT
    evaluate(s, w, c)
    best = 0
    if c.single:
        if w.f[0] > 0:
            best = 1
    else:
        for o in range(1, len(w.f)):
            if w.f[o] > w.f[best]:
                best = o
    label[0] = best
    return LinearStatus.DONE


@kernel
def freeze(s: FixedLine, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update only checks the sample."""
    s.frozen[0] = 0
    if frozen != 0:
        s.frozen[0] = 1
    return LinearStatus.DONE


@kernel
def rehearse(s: FixedLine, w: FixedLineWork, c: FixedLineConfig, p: FixedInputConfig, x: Int16[DIM]) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test."""
    seed = 1
    for t in range(REHEARSED):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = floor_shift((seed - 32768) * p.most[j if p.each else 0], 16) + p.center[j if p.each else 0]
        accepted = converted(p, x, w.x)
        for o in range(len(w.y)):
            seed = (seed * 75 + 74) % 65537
            w.y[o] = multiply_high(c.label_most, seed if seed < 65536 else 0) - floor_shift(c.label_most, 1)
        if accepted:
            status = learn(s, w, c)
            if status < 0:
                break


@kernel
def valid(s: FixedLine) -> Bool:
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
