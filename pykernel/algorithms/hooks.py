"""The hooks through which the frame calls a rule: ``answer`` computes f(x), ``learn`` learns one sample that has
passed the checks and the stages, and ``keeps`` tells whether learning could have led to a state.  The other hooks are optional.  The bodies
below are the defaults."""

from enum import IntEnum

from pykernel.algorithms.doubt import Doubt, DoubtConfig, DoubtWork
from pykernel.algorithms.interval import Covered
from pykernel.dialect import CLASSES, DIM, OUTPUTS, Bool, Config, Index, Real, placeholder


class Status(IntEnum):
    """The status of a call.  0: done.  Above 0: done, with a remark.  Below 0: refused; model and output are unchanged."""

    DONE = 0
    REFUSED_INPUT = -1  # an input is not finite, or is beyond its limit
    REFUSED_LABEL = -2  # the label is not finite, is beyond its limit, or is not a class
    REFUSED_STATE = -9  # a count in the memory is beyond its range: the memory was overwritten.  Call reset


class TakenStatus(IntEnum):
    """Statuses of samples that do not reach the rule."""

    OBSERVED = 6  # the standardiser still needs more samples: the sample updated the standardiser, but not the model
    FROZEN = 7  # learning is switched off: the sample was checked, but not learned


class FrameConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.stages``."""

    separates: bool  # for classes: whether the error is 0 if y f(x) >= 1
    single: bool  # whether there is one output
    classes: Index  # number of classes
    rehearsed: Index  # number of samples in the self-test


class Framed(Covered):
    """A model in the frame: the base class of every rule's model."""

    parts = Doubt, DoubtWork, DoubtConfig, FrameConfig


@placeholder
def answer(m: Framed, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Write f(x), the rule's own prediction, to y.  x: the input that is passed to the rule."""


@placeholder
def learn(m: Framed, x: Real[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  The rule calls hear() as soon as f(x) is computed.  A result below 0 means
    that nothing was changed."""


@placeholder
def stand_by(m: Framed, x: Real[DIM]) -> Index:
    """Handle a sample while learning is switched off."""
    return TakenStatus.FROZEN


@placeholder
def miss_row(m: Framed, refused: Index) -> Index:
    """The status of a refused sample, for models without labels.  By default, the model does not change."""
    return refused


@placeholder
def keeps(m: Framed) -> Bool:
    """Whether learning could have led to the rule's state; the declared ranges are checked elsewhere."""
    return True


@placeholder
def intact(m: Framed) -> Bool:
    """Whether counts are within their ranges, so that no loop leaves the arrays even if the memory was overwritten."""
    return True


@placeholder
def blank(m: Framed) -> Bool:
    """Whether the rule has learned nothing yet."""
    return True


@placeholder
def remembered(m: Framed, value: Real) -> Real:
    """f(x) after the rule has reduced the weight of past samples, which happens just before it learns a sample.
    value: f(x) before this reduction."""
    return value


@placeholder
def clear(m: Framed) -> None:
    """Set the model's memory to zero, as it is before the first sample."""


@placeholder
def chances(m: Framed, x: Real[DIM], p: Real[CLASSES]) -> None:
    """Write the probability of each class at x to p."""
