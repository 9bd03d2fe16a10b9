"""Linear models that learn in integers: f(x) = w'z, where z contains the converted inputs and a converted constant 1.

nlms: normalised LMS, whose normaliser is rounded down to a power of two (J. Nagumo, A. Noda, A learning method for system
identification, 1967).  rls: recursive least squares, as in ``pykernel.algorithms.int16.weights``.  Unlike in floating point,
there is no exponential forgetting: each sample adds q to the variance of each weight, where sqrt(q / R) = 1 - ``forgetting``
and R = 1 / ``prior_variance``.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.frame import Status
from pykernel.algorithms.int16.arithmetic import clip, part_of, places
from pykernel.algorithms.int16.covariance import Int16Covariance, Int16CovarianceConfig, Int16CovarianceWork
from pykernel.algorithms.int16.frame import INT16, hear
from pykernel.algorithms.int16.kernels import square_norm
from pykernel.algorithms.int16.stages import move_weights, weighted_sum
from pykernel.algorithms.int16.weights import (
    Int16Learned,
    Int16WeightsConfig,
    Int16WeightsModel,
    keeps,
    learn_weights,
)
from pykernel.algorithms.linear import LinearStatus
from pykernel.algorithms.rule import Rule, programs
from pykernel.dialect import DIM, OUTPUTS, Config, Index, Int, Int16, as_signed, floor_shift, kernel, word

LINE_MOST = 536870912
"""Largest |f(x)|."""


class Int16LineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16_linear``."""

    octave: Index  # an input of 1 is 2 to this power after its conversion
    unit: Index  # an input of 1 after its conversion: 2^octave
    line_step: Index  # largest change of a weight by one sample, for a converted input of 1
    eta: Index  # learning rate, times 2^16 and a power of two
    eta_shift: Index  # 16 minus the exponent of the power of two in eta

    tunable = frozenset("eta line_step".split())


class Int16LinearModel(Int16WeightsModel):
    parts = (Int16LineConfig,)


@kernel
def answer(m: Int16LinearModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x).  O(D)."""
    for o in range(len(y)):
        # clipped, because memory may have been overwritten
        constant = part_of(clip(m.learned[o, len(x)], -m.weight_most, m.weight_most), m.unit)
        y[o] = clip(constant + weighted_sum(m.learned[o], x, m.weight_most), -LINE_MOST, LINE_MOST)


@kernel
def learn_by_gradient(m: Int16LinearModel, x: Int16[DIM]) -> None:
    """w += eta e z / |z|^2, with |z|^2 rounded down to a power of two.  O(D)."""
    # z contains x and the constant m.unit
    power = places(square_norm(x) + word(m.unit * m.unit)) - m.eta_shift
    for o in range(len(m.y)):
        step = floor_shift(part_of(m.error[o], m.eta), clip(power, 0, 31))
        step = clip(step, -m.line_step, m.line_step)
        move_weights(m.learned[o], x, step, m.weight_most)
        moved = as_signed(word(m.learned[o, len(x)]) + word(step * m.unit))
        m.learned[o, len(x)] = clip(moved, -m.weight_most, m.weight_most)


@kernel
def learn(m: Int16LinearModel, x: Int16[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  Returns DONE."""
    answer(m, x, m.error)
    hear(m)
    if m.filters:
        for j in range(len(x)):
            m.wide[0, j] = x[j]
        m.wide[0, len(x)] = m.unit
        learn_weights(m, m.octave)
    else:
        learn_by_gradient(m, x)
    return Status.DONE


INT16_LINEAR = programs(
    Rule(
        name="linear",
        model=Int16LinearModel,
        memory=(Int16Learned, Int16Covariance),
        work=(Int16CovarianceWork,),
        configs=(Int16LineConfig, Int16WeightsConfig, Int16CovarianceConfig),
        statuses=LinearStatus,
        hooks={frame.answer: answer, frame.learn: learn, frame.keeps: keeps},
        costs=("O(D)", "[not filters] O(D).  [filters] O(D^2)"),
        stand_ins=INT16,
    )
)
