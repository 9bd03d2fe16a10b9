"""Intervals around predictions: adaptive conformal inference (I. Gibbs, E. Candes, Adaptive Conformal Inference Under
Distribution Shift, 2021), for any rule.

The half width is z rms(e) exp(s).  The error e is the label minus the prediction that the model made before it learned
the label.  This is the complete prediction, which includes all stages and the linear expert.  z is the quantile of the
normal distribution with which, for s = 0 and normally distributed errors, the interval contains the wanted fraction of
the labels, the coverage.

After a label outside the interval, s grows by pace times the coverage; after a label inside the interval, s shrinks by
pace times (1 - coverage).  So s stays constant on average only if the fraction of labels inside the interval equals the
coverage.  The method assumes nothing about the distribution of errors.  For each output, it stores two numbers, and
the predictions that wait for late labels.

The sum of all steps is the change of s.  So if the pace is constant and s is not clipped, the fraction of labels inside
the interval differs from the coverage by this change divided by the product of pace and the number of labels.
Since |s| is bounded, a larger pace brings this fraction closer to the coverage.  Therefore, the pace is larger at
first.
"""

from pykernel.algorithms.doubt import DoubtWork
from pykernel.algorithms.elementary import bounded, clipped, exp_negative
from pykernel.algorithms.expert import Advised, blended
from pykernel.algorithms.pending import ANSWER_MOST, LONGEST, late
from pykernel.algorithms.poll import join
from pykernel.algorithms.stages import LARGEST_POWER, LOUD_PARTS, PART_OF_LIMIT, clamp, combine
from pykernel.algorithms.vectors import copy
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

INTERVAL_KNOWN = 20
"""The error statistics are used after this many labels.  Until then, the interval covers every accepted label,
except labels outside the range to which predictions are clipped."""
ASKED = 16
"""Number of complete predictions that can wait for their labels.  If only one prediction could wait at a time, late
labels would give the interval too few errors."""
STRETCH_MOST = 4
"""Largest |s|."""
E_TO_STRETCH_MOST = Constant(54.598150033144239078)
"""e^4."""


class Interval(Struct):
    """Statistics of the errors of complete predictions."""

    error_power: between(Real[OUTPUTS], 0, LARGEST_POWER)  # running mean of the squared errors
    # s: the half width is e^s times the half width for normally distributed errors
    stretch: between(Real[OUTPUTS], -STRETCH_MOST, STRETCH_MOST)
    errors_known: between(Index, 0, "gain_horizon")  # number of errors in these statistics, at most their horizon
    # for late labels: the complete predictions that wait for their labels
    asked: between(Real[ASKED, OUTPUTS], -ANSWER_MOST, ANSWER_MOST)
    # marks of the samples for which these predictions were made
    asked_mark: between(Real[ASKED], -ANSWER_MOST, ANSWER_MOST)
    asked_wait: between(Index[ASKED], 0, LONGEST)  # calls since each of these predictions; 0: the place is free
    unasked: between(Index, 0, LONGEST)  # calls since the latest of these predictions

    units = (("error_power", "label_unit", 2),)


class IntervalWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    asked_slot: between(Index, -1, ASKED - 1)  # place of the stored prediction for the label; -1: none


class IntervalConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.stages``."""

    covers: bool  # whether there is an interval around each prediction
    # whether the rule learns from a prediction other than the returned one; if so, both predictions are computed
    hears_other: bool
    coverage: Real  # fraction of the labels that the interval should cover
    normal_width: Real  # half width of the interval for normally distributed errors of variance 1
    pace: Real  # step size for s, once the mean of the squared errors has reached its horizon

    tunable = frozenset("coverage normal_width pace".split())


class Covered(Advised):
    """A model with stages, a linear expert, and intervals."""

    parts = Interval, IntervalWork, IntervalConfig, DoubtWork


@kernel
def half_width(m: Covered, o: Index) -> Real:
    """Half the width of the interval of output o, in units of 2^-40 of the label's limit."""
    s = bounded(m.stretch[o], real(STRETCH_MOST))
    rms = sqrt(clipped(m.error_power[o], real(0), LARGEST_POWER))
    return (m.normal_width * rms) * (E_TO_STRETCH_MOST * exp_negative(s - real(STRETCH_MOST)))


@kernel
def enclose(m: Covered, y: Real[OUTPUTS], bounds: Real[OUTPUTS * 2]) -> None:
    """Write the ends of the intervals around the predictions y to bounds: first all lower ends, then all upper ends."""
    for o in range(len(y)):
        half = m.label_limit * (PART_OF_LIMIT * half_width(m, o))
        low = y[o] - half
        high = y[o] + half
        if m.errors_known[0] < INTERVAL_KNOWN:
            # the interval contains the prediction, even if the prediction is outside the range of labels
            low = -m.label_limit if y[o] > -m.label_limit else y[o]
            high = m.label_limit if y[o] < m.label_limit else y[o]
        if m.clamps:
            low = clipped(low, m.low, m.high)
            high = clipped(high, m.low, m.high)
        bounds[o] = low
        bounds[len(y) + o] = high


@kernel
def wait_asked(m: Covered) -> None:
    """Count one more call for each waiting prediction, and drop predictions that have waited too long."""
    if m.unasked[0] < LONGEST:
        m.unasked[0] += 1
    for i in range(len(m.asked_wait)):
        if m.asked_wait[i] > 0:
            if m.asked_wait[i] < m.longest_wait[0]:
                m.asked_wait[i] += 1
            else:
                m.asked_wait[i] = 0


@kernel
def free_slot(m: Covered) -> Index:
    """The place for one more prediction, or -1 if no place is free or if it is too early for another prediction.  Two
    stored predictions are at least 1/16 of the last delay apart."""
    if m.unasked[0] < floor_shift(m.last_wait[0], 4):
        return -1
    for i in range(len(m.asked_wait)):
        if m.asked_wait[i] == 0:
            return i
    return -1


@kernel
def find_asked(m: Covered, mark: Real) -> None:
    """Write to m.asked_slot the place of the stored prediction for the sample with this mark, or -1 if there is
    none."""
    m.asked_slot[0] = -1
    for i in range(len(m.asked_wait)):
        waited = m.asked_wait[i]
        if waited > 0 and waited >= floor_shift(m.last_wait[0], 1) and mark == m.asked_mark[i]:
            m.asked_slot[0] = i


@kernel
def recall(m: Covered, x: Real[DIM], k: Real[OUTPUTS]) -> None:
    """Compute the complete prediction from the rule's own prediction k, and write it to m.answered.  x: the input that
    is passed to the rule.

    The stages and the expert have not learned the sample yet.  O(D) for each output.
    """
    if m.covers and m.hears_other:
        return
    copy(k, m.answered, len(k))
    combine(m, x, m.answered)
    if m.votes:
        join(m, m.answered, m.expert_answer)
    elif m.mixes:
        for o in range(len(k)):
            m.answered[o] = blended(m, o, m.answered[o], m.expert_answer[o])
    if m.clamps:
        clamp(m, m.answered)


@kernel
def judge_interval(m: Covered, x: Real[DIM], y: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """Update the interval with the distances between the labels y and the complete prediction.

    x: the input that is passed to the rule.  k: the rule's own predictions.  O(D) for each output.
    """
    if late(m):
        slot = m.asked_slot[0]
        if slot < 0:
            return
        copy(m.asked[slot], m.answered, len(y))
    known = m.errors_known[0]
    if known < m.gain_horizon:
        m.errors_known[0] += 1
    rate = real(2) / (real(m.errors_known[0]) + real(1))
    pace = m.pace * sqrt(real(m.gain_horizon) / real(m.errors_known[0]))
    for o in range(len(y)):
        error = bounded((y[o] - m.answered[o]) * m.label_unit, LOUD_PARTS)
        if known >= INTERVAL_KNOWN:
            missed = real(1) if absolute(error) > half_width(m, o) else real(0)
            step = pace * (missed - (real(1) - m.coverage))
            m.stretch[o] = bounded(m.stretch[o] + step, real(STRETCH_MOST))
        power = m.error_power[o] + rate * (error * error - m.error_power[o])
        m.error_power[o] = clipped(power, real(0), LARGEST_POWER)


@kernel
def valid_interval(m: Covered) -> Bool:
    """Whether a sequence of labels could have led to these intervals."""
    for o in range(len(m.stretch)):
        if m.errors_known[0] == 0 and m.error_power[o] != real(0):
            return False
        if m.errors_known[0] <= INTERVAL_KNOWN and m.stretch[o] != real(0):
            return False
    return True
