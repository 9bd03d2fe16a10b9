"""The frame around rules, in integers: ``pykernel.algorithms.frame`` with different types, and with the kernels of this module.

Checking an input also converts it, so the rule always sees a converted copy.  No statistics of inputs are kept.
"""

from types import MappingProxyType
from typing import Any

from pykernel.algorithms import doubt, elementary, expert, frame, inputs, interval, pending, stages
from pykernel.algorithms.doubt import LOOKED, Doubts
from pykernel.algorithms.frame import answer, begin_waiting, predict
from pykernel.algorithms.hooks import FrameConfig
from pykernel.algorithms.int16.arithmetic import clip
from pykernel.algorithms.int16.inputs import Int16InputConfig, converted
from pykernel.algorithms.int16.stages import (
    Int16Pending,
    Int16StageConfig,
    Int16Staged,
    Int16Stages,
    conclude,
    finished,
    lead,
    remain,
)
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Real,
    Struct,
    Uint8,
    Uint16,
    as_signed,
    between,
    floor_shift,
    kernel,
    word,
)


class NoExpert(Struct):
    """Empty, because there is no linear expert."""


class NoExpertWork(Struct):
    """Empty, because there is no linear expert."""


class NoExpertConfig(Config):
    """Empty, because there is no linear expert."""


class NoInterval(Struct):
    """Empty, because there are no intervals."""


class NoIntervalWork(Struct):
    """Empty, because there are no intervals."""


class NoIntervalConfig(Config):
    """Empty, because there are no intervals."""


VALUE_MOST = 1073741824
"""Largest |f(x)|."""
ERROR_MOST = 1610612736
"""Largest |y - f(x)|."""
SIZE_MOST = 1073741823
"""Largest size of an error or of a label in running means, so that no difference of two sizes overflows."""


class Int16Doubt(Struct):
    """How useful the model has been; see ``pykernel.algorithms.doubt``."""

    label_mean: between(Int[OUTPUTS], -SIZE_MOST, SIZE_MOST)
    error_size: between(Int, -SIZE_MOST, SIZE_MOST)
    label_size: between(Int, -SIZE_MOST, SIZE_MOST)
    usual_size: between(Int, -SIZE_MOST, SIZE_MOST)
    lived: between(Uint16, 0, doubt.LIVED_MOST)
    needed: between(Uint16, 0, doubt.LIVED_MOST)
    useless_run: between(Uint16, 0, doubt.RUN)
    searching: between(Uint8, 0, 1)

    soon = MappingProxyType(doubt.Doubt.soon | {"label_size": 2**28, "error_size": 2**29})


class Int16DoubtWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    # the complete prediction before the sample was learned
    answered: between(Int[OUTPUTS], -SIZE_MOST, SIZE_MOST)


class Int16Sample(Struct):
    """The sample that is being learned.  Every call overwrites it, so it may be zero at first."""

    y: between(Int[OUTPUTS], "-label_room", "label_room")  # what f(x) should be
    label: between(Int[OUTPUTS], "-label_room", "label_room")  # the label before the stages subtract their parts
    value: between(Int[OUTPUTS], -VALUE_MOST, VALUE_MOST)  # f(x) before the sample was learned
    error: between(Int[OUTPUTS], -ERROR_MOST, ERROR_MOST)  # f(x); after hear(), y - f(x)
    x: between(Int16[DIM], "-reach", "reach")  # the converted input


MARK_FACTOR = 31


class Int16Framed(Int16Staged):
    """A model in the frame: the base class of the models of all integer rules."""

    parts = Int16Sample, Int16Doubt, Int16DoubtWork, FrameConfig, doubt.DoubtConfig, Int16InputConfig


@kernel
def acceptable(m: Int16Framed, x: Int16[DIM]) -> Bool:
    """Whether every input is within its limit.  If so, m.x holds the converted inputs."""
    return converted(m, x, m.x)


@kernel
def ignore(m: Int16Framed) -> None:
    """Nothing to do: there is neither a linear expert nor an interval."""


@kernel
def ignore_input(m: Int16Framed, x: Int16[DIM]) -> None:
    """Nothing to do: there are no statistics of inputs, no expert and no interval."""


@kernel
def always(m: Int16Framed) -> Bool:
    """Always true.  There is no warm-up, so the rule has always begun to learn; and there is neither an expert nor an
    interval that could be invalid."""
    return True


@kernel
def respond(m: Int16Framed, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x), after applying the stages to the rule's answer.  The input is in m.x."""
    answer(m, m.x, m.error)
    for o in range(len(y)):
        y[o] = finished(m, m.x, clip(m.error[o], -VALUE_MOST, VALUE_MOST), o)


@kernel
def most_likely(m: Int16Framed, x: Int16[DIM]) -> Index:
    """The most likely class of x, or a negative status if the input was refused."""
    refused = predict(m, x, m.error)
    if refused < 0:
        return refused
    return winner(m.error)


@kernel
def winner(y: Int[OUTPUTS]) -> Index:
    """The class with the largest function value.  Two classes share one function: a positive value means the second class."""
    best = 0
    if len(y) == 1:
        if y[0] > 0:
            best = 1
    else:
        for o in range(1, len(y)):
            if y[o] > y[best]:
                best = o
    return best


@kernel
def apart(m: Int16Framed, a: Int[OUTPUTS], b: Int[OUTPUTS]) -> Int:
    """[doubts DISTANCES] The largest difference between the elements of a and b.  [doubts CLASSES] The target value of a class's
    function if a and b name different classes, otherwise 0."""
    if m.doubts == Doubts.CLASSES:
        return m.one if winner(a) != winner(b) else 0
    most = 0
    for o in range(len(a)):
        size = clip(a[o], -SIZE_MOST, SIZE_MOST) - clip(b[o], -SIZE_MOST, SIZE_MOST)
        size = size if size >= 0 else -size
        if size > most:
            most = size
    return most


@kernel
def varied(m: Int16Framed) -> Bool:
    """For classes: whether at least a quarter of the labels differ from the most frequent class."""
    return m.doubts == Doubts.DISTANCES or m.label_size[0] >= floor_shift(m.one, 2)


@kernel
def recall(m: Int16Framed, x: Int16[DIM], k: Int[OUTPUTS]) -> None:
    """Compute the complete prediction from the rule's own prediction k, and write it to m.answered."""
    for o in range(len(k)):
        m.answered[o] = clip(finished(m, x, k[o], o), -SIZE_MOST, SIZE_MOST)


@kernel
def eighths(value: Int, number: Index) -> Int:
    """The value, times number / 8."""
    return floor_shift(clip(value, -SIZE_MOST, SIZE_MOST), 3) * number


@kernel
def longest_step(m: Int16Framed) -> Int:
    """The largest change of a running mean by one label, so that a single outlying label changes none of them much."""
    if m.lived[0] <= LOOKED:
        return SIZE_MOST
    return eighths(m.label_size[0], 1) + 1


@kernel
def toward(m: Int16Framed, mean: Int, value: Int, slow: Bool) -> Int:
    """The running mean of the latest 64, or 1024, values after another value."""
    kept = clip(mean, -SIZE_MOST, SIZE_MOST)
    step = floor_shift(clip(value, -SIZE_MOST, SIZE_MOST) - kept, 10 if slow else 6)
    most = longest_step(m)
    return clip(kept + clip(step, -most, most), -SIZE_MOST, SIZE_MOST)


@kernel
def hear(m: Int16Framed) -> None:
    """Replace f(x) in m.error by y - f(x)."""
    for o in range(len(m.y)):
        value = clip(m.error[o], -VALUE_MOST, VALUE_MOST)
        rest = clip(m.y[o], -m.rest_most, m.rest_most) if m.finer else m.y[o]
        error = rest - value
        # if labels are classes, the error is 0 once f(x) has reached or passed its target
        if m.separates and ((rest > 0 and value >= rest) or (rest < 0 and value <= rest)):
            error = 0
        m.value[o] = value
        m.error[o] = error


@kernel
def acceptable_label(m: Int16Framed, y: Int) -> Bool:
    """Whether a label is within its limit."""
    return y >= -m.label_most and y <= m.label_most


@kernel
def taught(m: Int16Framed, own: Bool) -> Int:
    """The target value of a class's function.  own: whether the input belongs to this class."""
    return m.one if own else -m.one


@kernel
def warm_up(m: Int16Framed, x: Int16[DIM], y: Int[OUTPUTS]) -> Bool:
    """Always false: there are no statistics of inputs to wait for."""
    return False


@kernel
def valid_stages(m: Int16Framed, blank: Bool) -> Bool:
    """Always true: learning can lead to any values within the declared ranges of the stages."""
    return True


@kernel
def try_otherwise(m: Int16Framed, x: Int16[DIM]) -> Int:
    """Always 0: an outlying input is never replaced by a held value."""
    return 0


@kernel
def gather_evidence(m: Int16Framed, x: Int16[DIM], gain: Int) -> None:
    """Nothing to do: an outlying input is never replaced by a held value."""


@kernel
def consult(m: Int16Framed, x: Int16[DIM], asked: Bool) -> None:
    """Nothing to do: there is no linear expert."""


@kernel
def marked(m: Int16Framed, x: Int16[DIM]) -> Int:
    """A hash of the inputs, by which a sample is recognised.  O(D)."""
    total = word(0)
    for j in range(len(x)):
        total = total * word(MARK_FACTOR) + word(x[j])
    return as_signed(total)


@kernel
def keep_answer(m: Int16Framed, x: Int16[DIM]) -> None:
    """Keep the rule's answer until the label of x arrives.  O(answer)."""
    begin_waiting(m, x)
    answer(m, m.x, m.given_value)
    for o in range(len(m.y)):
        m.given_value[o] = clip(m.given_value[o], -VALUE_MOST, VALUE_MOST)
        m.given_lead[o] = clip(lead(m, m.x, o), -m.rest_most, m.rest_most)


@kernel
def instruct(m: Int16Framed, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """Nothing to do: there is no linear expert."""


@kernel
def find_asked(m: Int16Framed, mark: Int) -> None:
    """Nothing to do: there are no intervals."""


INT16: dict[Any, Any] = {
    Int16Framed: frame.Framed,
    Real[DIM]: Int16[DIM],
    Real[OUTPUTS]: Int[OUTPUTS],
    Real: Int,
    stages.Stages: Int16Stages,
    stages.StageConfig: Int16StageConfig,
    inputs.InputConfig: Int16InputConfig,
    stages.Sample: Int16Sample,
    inputs.acceptable: acceptable,
    stages.see: ignore_input,
    frame.try_otherwise: try_otherwise,
    stages.gather_evidence: gather_evidence,
    expert.Expert: NoExpert,
    expert.ExpertWork: NoExpertWork,
    expert.ExpertConfig: NoExpertConfig,
    expert.consult: consult,
    frame.judge_parts: ignore_input,
    frame.begun: always,
    frame.keep_answer: keep_answer,
    stages.marked: marked,
    pending.Pending: Int16Pending,
    pending.Awaiting: frame.Framed,
    expert.instruct: instruct,
    expert.valid_expert: always,
    interval.Interval: NoInterval,
    interval.IntervalWork: NoIntervalWork,
    interval.IntervalConfig: NoIntervalConfig,
    doubt.Doubt: Int16Doubt,
    doubt.DoubtWork: Int16DoubtWork,
    doubt.Doubting: frame.Framed,
    doubt.eighths: eighths,
    doubt.toward: toward,
    doubt.varied: varied,
    doubt.apart: apart,
    interval.recall: recall,
    frame.answer_before: ignore_input,
    frame.keep_whole: ignore_input,
    frame.settle_asked: ignore,
    interval.find_asked: find_asked,
    interval.valid_interval: always,
    frame.respond: respond,
    frame.most_likely: most_likely,
    "write f(x) to y.": "write f(x) to y, in units of 1 / LABEL_SCALE.",
    elementary.winner: winner,
    frame.hear: hear,
    frame.acceptable_label: acceptable_label,
    frame.taught: taught,
    stages.warm_up: warm_up,
    stages.settle_inputs: ignore_input,
    stages.remain: remain,
    stages.conclude: conclude,
    stages.valid_stages: valid_stages,
}
"""Replacements for parts of the floating-point frame."""
