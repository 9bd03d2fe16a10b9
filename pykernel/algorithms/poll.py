"""The linear expert where the label is a class: what is averaged are probabilities.

Of both the model and the expert, functions f become probabilities by the softmax of s f.  The sharpness s is learned along the
gradient of -log p_y.  Both are judged by the running mean of Brier's score plus 1 for each wrong class: the Brier score alone
trusts a cautious expert too long, and wrong classes alone are too few to tell.

What is told is calibrated by the labels that came.  Of k classes each has the probability

    q = (1 - e) p^s / sum p^s + e / k,

as if the part e of the labels were drawn at random.  The label of class y was one of these with the probability r = (e / k) / q_y:
e follows r, and s the gradient of -log p_y with the weight 1 - r (expectation-maximisation, one sample at a time; A. P. Dempster,
N. M. Laird, D. B. Rubin 1977).  Neither changes which class is the most likely one.

The answers of the whole are 2 q - 1, so that the largest belongs to the most likely class, and of two classes it is positive for
the second.  With weights w of the classes they are 2 w q / sum w q - 1: what is named then is the class of the largest w q, and
probabilities stay what they are.  Balanced weights are 1 / sqrt(s) of a class that is the part s of the labels.
"""

from pykernel.algorithms.elementary import LN_2, bounded, clipped, log2_one_plus, softmax, winner
from pykernel.algorithms.expert import (
    RANDOM_LEAST,
    RANDOM_MOST,
    SHARP_LEAST,
    SHARP_MOST,
    WRONG_MOST,
    Advised,
    advise,
    heard,
    weighed,
)
from pykernel.algorithms.stages import LOUD
from pykernel.algorithms.vectors import copy
from pykernel.dialect import DIM, OUTPUTS, Constant, Index, Real, kernel, real, sqrt

SHARP_FIRST = Constant(3.0)
"""Functions learn to be 1 or -1: with this factor that is a chance of 1 in 400 to be wrong."""
SHARP_RATE = Constant(0.02)
SHARP_STEP = Constant(0.2)
"""Largest part by which one label changes the sharpness."""
TOLD_RATE = Constant(0.01)
"""The same rate for s of the whole."""
RANDOM_FIRST = Constant(0.01)
RANDOM_RATE = Constant(0.02)
PROBABILITY_LEAST = Constant(2.0**-24)
"""Probabilities below are taken for this: their logarithms stay small, and far less is ever told."""
SHARE_RATE = Constant(2.0**-11)
"""Rate of the classes' shares once so many labels as for the errors are known."""
SHARE_LEAST = Constant(2.0**-12)


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
    size = sharp * bounded(f, LOUD)
    return size + size if outputs == 1 else size


@kernel
def soften(f: Real[OUTPUTS], sharp: Real) -> None:
    """Functions become probabilities; of two classes that of the second.  O(classes)."""
    for o in range(len(f)):
        f[o] = odds(f[o], sharp, len(f))
    softmax(f)


@kernel
def harden(p: Real[OUTPUTS]) -> None:
    """Probabilities become functions of which they are the softmax.  O(classes)."""
    for o in range(len(p)):
        own = clipped(p[o], PROBABILITY_LEAST, real(1))
        if len(p) == 1:
            # of the two, the more likely one stands above
            other = clipped(real(1) - p[o], PROBABILITY_LEAST, real(1))
            if own > other:
                p[o] = real(0.5) * LN_2 * log2_one_plus((own - other) / other)
            else:
                p[o] = -(real(0.5) * LN_2 * log2_one_plus((other - own) / own))
        else:
            p[o] = -(LN_2 * log2_one_plus((real(1) - own) / own))


@kernel
def sharpness_told(m: Advised) -> Real:
    """s; before the first label 1."""
    return m.told_sharpness[0] if m.told_sharpness[0] > real(0) else real(1)


@kernel
def random_labels(m: Advised) -> Real:
    """e; before the first label a guess."""
    return m.random_part[0] if m.random_part[0] > real(0) else RANDOM_FIRST


@kernel
def by_chance(outputs: Index) -> Real:
    """1 / k: the probability of a class among random labels."""
    return real(1) / real(2 if outputs == 1 else outputs)


@kernel
def tell(m: Advised, f: Real[OUTPUTS]) -> None:
    """The whole's functions become q, the probabilities that are told.  O(classes)."""
    soften(f, sharpness_told(m))
    random = random_labels(m)
    for o in range(len(f)):
        f[o] = (real(1) - random) * f[o] + random * by_chance(len(f))


@kernel
def share_of(m: Advised, o: Index) -> Real:
    """A class's part of the labels; at first all have the same."""
    return m.class_share[o] if m.class_share[o] > real(0) else by_chance(len(m.class_share))


@kernel
def count_class(m: Advised, y: Real[OUTPUTS]) -> None:
    """Learn the classes' parts of the labels.  O(classes)."""
    rate = SHARE_RATE
    if m.compared[0] < m.compared_most:
        rate = real(1) / (real(m.compared[0]) + real(1) / by_chance(len(y)))
    for o in range(len(y)):
        share = share_of(m, o)
        came = real(1) if y[o] > real(0) else real(0)
        m.class_share[o] = clipped(share + rate * (came - share), SHARE_LEAST, real(1) - SHARE_LEAST)


@kernel
def weight_of(m: Advised, o: Index) -> Real:
    """A class's weight; of two classes the second's, in parts of the first's."""
    if m.balances:
        share = share_of(m, o)
        if len(m.class_share) == 1:
            return sqrt((real(1) - share) / share)
        return real(1) / sqrt(share)
    return m.class_weights[o]


@kernel
def favour(m: Advised, y: Real[OUTPUTS]) -> None:
    """y: of m.polled = q, 2 w q / sum w q - 1.  O(classes)."""
    total = real(0)
    if len(y) == 1:
        total = real(1) - m.polled[0]
    for o in range(len(y)):
        y[o] = weight_of(m, o) * m.polled[o]
        total += y[o]
    for o in range(len(y)):
        y[o] = real(2) * (y[o] / total) - real(1)


@kernel
def poll(m: Advised, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y: the model's functions become 2 q - 1, for m.polled = q of both.  O(D) for each class."""
    soften(y, sharpness_of_model(m))
    if heard(m):
        for o in range(len(y)):
            m.polled[o] = advise(m, x, o)
        soften(m.polled, sharpness(m.expert_sharpness[0]))
        for o in range(len(y)):
            y[o] = weighed(y[o], m.polled[o], m.model_wrong[0], m.expert_wrong[0])
    harden(y)
    tell(m, y)
    for o in range(len(y)):
        y[o] = real(2) * y[o] - real(1)
        # also where 2 q - 1 rounds two probabilities to one number, the class of the first such answer has the largest of them
        m.polled[o] = real(0.5) * (y[o] + real(1))
    if m.weights_classes:
        favour(m, y)


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
def sharper(sharp: Real, f: Real[OUTPUTS], p: Real[OUTPUTS], y: Real[OUTPUTS], rate: Real) -> Real:
    """The sharpness after a label: a step down the gradient of -log p_y for its logarithm."""
    slope = real(0)
    for o in range(len(y)):
        off = p[o] - (real(1) if y[o] > real(0) else real(0))
        slope += off * odds(f[o], sharp, len(y))
    part = real(1) - bounded(rate * slope, SHARP_STEP)
    return clipped(sharp * part, SHARP_LEAST, SHARP_MOST)


@kernel
def calibrate(m: Advised, f: Real[OUTPUTS], p: Real[OUTPUTS], y: Real[OUTPUTS]) -> None:
    """A label is known: s and e learn.  f: the whole's functions before; p: space.  O(classes)."""
    sharp = sharpness_told(m)
    random = random_labels(m)
    copy(f, p, len(y))
    soften(p, sharp)
    # the class's own probability, which among two may be that of the first
    own = p[0]
    if len(y) == 1:
        own = p[0] if y[0] > real(0) else real(1) - p[0]
    else:
        own = p[winner(y)]
    guessed = random * by_chance(len(y))
    guess = guessed / ((real(1) - random) * own + guessed)
    m.told_sharpness[0] = sharper(sharp, f, p, y, TOLD_RATE * (real(1) - guess))
    m.random_part[0] = clipped(random + RANDOM_RATE * (guess - random), RANDOM_LEAST, RANDOM_MOST)


@kernel
def judge_classes(m: Advised, y: Real[OUTPUTS], k: Real[OUTPUTS], expert: Real[OUTPUTS]) -> None:
    """Judge by a class the model, whose functions were k, the expert, and what they said together.  O(classes)."""
    own = sharpness_of_model(m)
    copy(k, m.whole, len(y))
    soften(m.whole, own)
    if m.compared[0] > 0:
        both = heard(m)
        if m.compared[0] < m.compared_most:
            m.compared[0] += 1
        if m.balances:
            count_class(m, y)
        rate = real(2) / real(m.compared[0])
        other = sharpness(m.expert_sharpness[0])
        copy(expert, m.polled, len(y))
        soften(m.polled, other)
        wrong = mistake(k, m.whole, y)
        others_wrong = mistake(expert, m.polled, y)
        if m.sharpens:
            m.model_sharpness[0] = sharper(own, k, m.whole, y, SHARP_RATE)
        m.expert_sharpness[0] = sharper(other, expert, m.polled, y, SHARP_RATE)
        if both:
            for o in range(len(y)):
                m.whole[o] = weighed(m.whole[o], m.polled[o], m.model_wrong[0], m.expert_wrong[0])
        m.model_wrong[0] = clipped(m.model_wrong[0] + rate * (wrong - m.model_wrong[0]), real(0), WRONG_MOST)
        m.expert_wrong[0] = clipped(m.expert_wrong[0] + rate * (others_wrong - m.expert_wrong[0]), real(0), WRONG_MOST)
    harden(m.whole)
    calibrate(m, m.whole, m.polled, y)
