"""The linear expert where the label is a class: what is averaged are probabilities.

Of both the model and the expert, functions f become probabilities by the softmax of s f.  The sharpness s is learned along the
gradient of -log p_y.  Both are judged by the running mean of Brier's score plus 1 for each wrong class: the Brier score alone
trusts a cautious expert too long, and wrong classes alone are too few to tell.

The answers of the whole are 2 p - 1, so that the largest belongs to the most likely class, and of two classes it is positive for
the second.
"""

from pykernel.algorithms.elementary import clipped, softmax, winner
from pykernel.algorithms.expert import EXPERT_KNOWN, SHARP_MOST, WRONG_MOST, Advised, advise, weighed
from pykernel.algorithms.stages import LOUD
from pykernel.algorithms.vectors import copy
from pykernel.dialect import DIM, OUTPUTS, Constant, Index, Real, kernel, real

SHARP_FIRST = Constant(3.0)
"""Functions learn to be 1 or -1: with this factor that is a chance of 1 in 400 to be wrong."""
SHARP_LEAST = Constant(0.1)
SHARP_RATE = Constant(0.02)
SHARP_STEP = Constant(0.2)
"""Largest part by which one label changes the sharpness."""


@kernel
def sharpness(value: Real) -> Real:
    """The factor of functions before they become probabilities; before the first label a guess."""
    return value if value > real(0) else SHARP_FIRST


@kernel
def sharpness_of_model(m: Advised) -> Real:
    """The sharpness of the model's functions."""
    if m.sharpens:
        return sharpness(m.model_sharpness[0])
    return real(1)


@kernel
def odds(f: Real, sharp: Real, outputs: Index) -> Real:
    """The logarithm of a class's odds, up to what all classes share.  Two classes have the functions f and -f."""
    size = sharp * clipped(f, -LOUD, LOUD)
    return size + size if outputs == 1 else size


@kernel
def soften(f: Real[OUTPUTS], sharp: Real) -> None:
    """Functions become probabilities; of two classes that of the second.  O(classes)."""
    for o in range(len(f)):
        f[o] = odds(f[o], sharp, len(f))
    softmax(f)


@kernel
def poll(m: Advised, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y: the model's functions become 2 p - 1, for m.polled = p of both.  O(D) for each class."""
    soften(y, sharpness_of_model(m))
    if m.compared[0] > EXPERT_KNOWN:
        for o in range(len(y)):
            m.polled[o] = advise(m, x, o)
        soften(m.polled, sharpness(m.expert_sharpness[0]))
        for o in range(len(y)):
            y[o] = weighed(y[o], m.polled[o], m.model_wrong[0], m.expert_wrong[0])
    for o in range(len(y)):
        m.polled[o] = y[o]
        y[o] = real(2) * y[o] - real(1)


@kernel
def mistake(f: Real[OUTPUTS], p: Real[OUTPUTS], y: Real[OUTPUTS]) -> Real:
    """Brier's score of the probabilities, and 1 more if the most likely class is wrong.  y: 1 for the class, -1 for others."""
    total = real(0)
    for o in range(len(y)):
        off = p[o] - (real(1) if y[o] > real(0) else real(0))
        total += off * off
    if len(y) == 1:
        total = total + total
    if winner(f) != winner(y):
        total = total + real(1)
    return total


@kernel
def sharper(sharp: Real, f: Real[OUTPUTS], p: Real[OUTPUTS], y: Real[OUTPUTS]) -> Real:
    """The sharpness after a label: a step down the gradient of -log p_y for its logarithm."""
    slope = real(0)
    for o in range(len(y)):
        off = p[o] - (real(1) if y[o] > real(0) else real(0))
        slope += off * odds(f[o], sharp, len(y))
    part = real(1) - clipped(SHARP_RATE * slope, -SHARP_STEP, SHARP_STEP)
    return clipped(sharp * part, SHARP_LEAST, SHARP_MOST)


@kernel
def judge_classes(m: Advised, y: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """Judge both by a class: the model, whose functions were k, and the expert.  O(classes)."""
    if m.compared[0] > 0:
        if m.compared[0] < m.compared_most:
            m.compared[0] += 1
        rate = real(2) / real(m.compared[0])
        copy(k, m.polled, len(y))
        own = sharpness_of_model(m)
        soften(m.polled, own)
        wrong = mistake(k, m.polled, y)
        m.model_wrong[0] = clipped(m.model_wrong[0] + rate * (wrong - m.model_wrong[0]), real(0), WRONG_MOST)
        if m.sharpens:
            m.model_sharpness[0] = sharper(own, k, m.polled, y)
        copy(m.expert_answer, m.polled, len(y))
        other = sharpness(m.expert_sharpness[0])
        soften(m.polled, other)
        wrong = mistake(m.expert_answer, m.polled, y)
        m.expert_wrong[0] = clipped(m.expert_wrong[0] + rate * (wrong - m.expert_wrong[0]), real(0), WRONG_MOST)
        m.expert_sharpness[0] = sharper(other, m.expert_answer, m.polled, y)
