"""A linear model that learns in whole numbers: normalised LMS, whose normaliser is rounded down to a power of two.

J. Nagumo, A. Noda, A learning method for system identification, 1967.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.frame import Status
from pykernel.algorithms.int16.arithmetic import clip, part_of, places
from pykernel.algorithms.int16.frame import INT16, Int16Framed, hear
from pykernel.algorithms.int16.kernels import square_norm
from pykernel.algorithms.int16.stages import move_weights, weighted_sum
from pykernel.algorithms.linear import LinearStatus
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Config,
    Index,
    Int,
    Int16,
    Struct,
    as_signed,
    between,
    floor_shift,
    kernel,
    word,
)

LINE_MOST = 536870912
"""Largest |f(x)|."""


class Int16Line(Struct):
    """The model is f(x) = line'z + line_constant, of the converted inputs z."""

    line: between(Int[OUTPUTS, DIM], "-line_most", "line_most")  # in units of 2^-16
    line_constant: between(
        Int[OUTPUTS], "-line_most", "line_most"
    )  # the factor of 1, which is unit in the converted inputs


class Int16LineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16_linear``."""

    unit: Index  # what 1 is in the converted inputs
    line_most: Index  # largest factor
    line_step: Index  # largest change of a slope for an input of one unit
    eta: Index  # learning rate, times 2^16 and a power of two
    eta_shift: Index  # ... which, and what factors are measured in, takes this many places

    tunable = frozenset("eta line_step".split())


class Int16LinearModel(Int16Framed):
    parts = Int16Line, Int16LineConfig


@kernel
def answer(m: Int16LinearModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x).  O(D)."""
    for o in range(len(y)):
        # limits, for memory may have been overwritten
        constant = part_of(clip(m.line_constant[o], -m.line_most, m.line_most), m.unit)
        y[o] = clip(constant + weighted_sum(m.line[o], x, m.line_most), -LINE_MOST, LINE_MOST)


@kernel
def learn(m: Int16LinearModel, x: Int16[DIM]) -> Index:
    """w += eta e z / (|z|^2 + 1) for the converted sample z.  O(D)."""
    answer(m, x, m.error)
    hear(m)
    # |z|^2 + 1 in the converted inputs' unit
    power = places(square_norm(x) + word(m.unit * m.unit)) - m.eta_shift
    for o in range(len(m.y)):
        step = floor_shift(part_of(m.error[o], m.eta), clip(power, 0, 31))
        step = clip(step, -m.line_step, m.line_step)
        move_weights(m.line[o], x, step, m.line_most)
        moved = as_signed(word(m.line_constant[o]) + word(step * m.unit))
        m.line_constant[o] = clip(moved, -m.line_most, m.line_most)
    return Status.DONE


INT16_LINEAR = programs(
    Rule(
        name="linear",
        model=Int16LinearModel,
        memory=(Int16Line,),
        work=(),
        configs=(Int16LineConfig,),
        statuses=LinearStatus,
        hooks={frame.answer: answer, frame.learn: learn},
        costs=("O(D)", "O(D)"),
        stand_ins=INT16,
    )
)
