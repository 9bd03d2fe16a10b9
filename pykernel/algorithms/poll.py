"""The linear expert for classes: the probabilities from the model and from the expert are averaged.

The functions of the model and of the expert are each multiplied by a sharpness, and then converted to probabilities by
the softmax.  Each sharpness is learned by gradient descent on -log p_y, where p_y is the probability of the label's
class y.  The error of the model or of the expert is the running mean of its Brier score, plus 1 for each wrong class.
The Brier score alone would favour a cautious expert for too long, and wrong classes alone are too rare for a
comparison.

The returned probabilities are calibrated with the labels seen so far.  Each of k classes has the probability

    q = (1 - e) p^s / sum p^s + e / k,

where p is the averaged probability of the class, as if a fraction e of the labels were drawn at random.  A label of
class y is one of these random labels with probability r = (e / k) / q_y.  So e is moved towards r, and s is moved down
the gradient of -log (p_y^s / sum p^s) with weight 1 - r (expectation-maximisation, one sample at a time; A. P.
Dempster, N. M. Laird, D. B. Rubin 1977).  Neither s nor e changes which class is the most likely.

The joint predictions are 2 q - 1, so that the largest prediction belongs to the most likely class.  Two classes have a
single joint prediction, which is positive if the second class is more likely.  With class weights w, the joint
predictions are 2 w q / sum w q - 1, so that the class with the largest w q is predicted; the returned probabilities are
still q.  The balanced weight of a class is 1 / sqrt(c), where c is the fraction of labels in this class.
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
"""The sharpness before the first label.  Functions are trained towards 1 or -1; with this sharpness, these values
correspond to an error probability of 1 in 400."""
SHARP_RATE = Constant(0.02)
SHARP_STEP = Constant(0.2)
"""Largest relative change of the sharpness by one label."""
TOLD_RATE = Constant(0.01)
"""Learning rate of s, the sharpness of the joint functions."""
RANDOM_FIRST = Constant(0.01)
RANDOM_RATE = Constant(0.02)
PROBABILITY_LEAST = Constant(2.0**-24)
"""Smaller probabilities are replaced by this, which limits their logarithms.  Returned probabilities are never that small."""
SHARE_RATE = Constant(2.0**-11)
"""Learning rate of the fraction of labels in each class, once the number of labels has reached the horizon of the mean
errors."""
SHARE_LEAST = Constant(2.0**-12)


@kernel
def sharpness(value: Real) -> Real:
    """The sharpness, by which functions are multiplied before the softmax; before the first label, it is
    SHARP_FIRST."""
    return value if value > real(0) else SHARP_FIRST


@kernel
def sharpness_of_model(m: Advised) -> Real:
    """The sharpness of the model's functions."""
    if m.sharpens:
        return sharpness(m.model_sharpness[0])
    return real(1)


@kernel
def odds(f: Real, sharp: Real, outputs: Index) -> Real:
    """The log odds of a class, up to a constant that all classes share.  Two classes have the functions -f and f."""
    size = sharp * bounded(f, LOUD)
    return size + size if outputs == 1 else size


@kernel
def soften(f: Real[OUTPUTS], sharp: Real) -> None:
    """Convert functions to probabilities.  For two classes, the result is the probability of the second class.
    O(classes)."""
    for o in range(len(f)):
        f[o] = odds(f[o], sharp, len(f))
    softmax(f)


@kernel
def harden(p: Real[OUTPUTS]) -> None:
    """Convert probabilities to functions whose softmax gives these probabilities.  O(classes)."""
    for o in range(len(p)):
        own = clipped(p[o], PROBABILITY_LEAST, real(1))
        if len(p) == 1:
            # the larger probability is the numerator, because log2_one_plus() needs an argument of at least 0
            other = clipped(real(1) - p[o], PROBABILITY_LEAST, real(1))
            if own > other:
                p[o] = real(0.5) * LN_2 * log2_one_plus((own - other) / other)
            else:
                p[o] = -(real(0.5) * LN_2 * log2_one_plus((other - own) / own))
        else:
            p[o] = -(LN_2 * log2_one_plus((real(1) - own) / own))


@kernel
def sharpness_told(m: Advised) -> Real:
    """s, or 1 before the first label."""
    return m.told_sharpness[0] if m.told_sharpness[0] > real(0) else real(1)


@kernel
def random_labels(m: Advised) -> Real:
    """e, or RANDOM_FIRST before the first label."""
    return m.random_part[0] if m.random_part[0] > real(0) else RANDOM_FIRST


@kernel
def by_chance(outputs: Index) -> Real:
    """1 / k: the probability of a class among random labels."""
    return real(1) / real(2 if outputs == 1 else outputs)


@kernel
def tell(m: Advised, f: Real[OUTPUTS]) -> None:
    """Convert the joint functions to q, the returned probabilities.  O(classes)."""
    soften(f, sharpness_told(m))
    random = random_labels(m)
    for o in range(len(f)):
        f[o] = (real(1) - random) * f[o] + random * by_chance(len(f))


@kernel
def share_of(m: Advised, o: Index) -> Real:
    """The fraction of labels in a class.  Before the first label, all classes have the same fraction."""
    return m.class_share[o] if m.class_share[o] > real(0) else by_chance(len(m.class_share))


@kernel
def count_class(m: Advised, y: Real[OUTPUTS]) -> None:
    """Update the fraction of labels in each class.  O(classes)."""
    rate = SHARE_RATE
    if m.compared[0] < m.compared_most:
        rate = real(1) / (real(m.compared[0]) + real(1) / by_chance(len(y)))
    for o in range(len(y)):
        share = share_of(m, o)
        came = real(1) if y[o] > real(0) else real(0)
        m.class_share[o] = clipped(share + rate * (came - share), SHARE_LEAST, real(1) - SHARE_LEAST)


@kernel
def weight_of(m: Advised, o: Index) -> Real:
    """A class's weight; for two classes, the weight of the second relative to that of the first."""
    if m.balances:
        share = share_of(m, o)
        if len(m.class_share) == 1:
            return sqrt((real(1) - share) / share)
        return real(1) / sqrt(share)
    return m.class_weights[o]


@kernel
def favour(m: Advised, y: Real[OUTPUTS]) -> None:
    """y = 2 w q / sum w q - 1, where q is in m.polled.  O(classes)."""
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
    """Replace the model's functions y by the joint predictions 2 q - 1, and write q to m.polled.  O(D) for each
    class."""
    for o in range(len(y)):
        m.expert_answer[o] = advise(m, x, o)
    join(m, y, m.expert_answer)


@kernel
def join(m: Advised, y: Real[OUTPUTS], expert: Real[OUTPUTS]) -> None:
    """Replace the model's functions y by the joint predictions 2 q - 1, and write q to m.polled.  expert: the expert's functions.
    O(classes)."""
    soften(y, sharpness_of_model(m))
    if heard(m):
        copy(expert, m.polled, len(y))
        soften(m.polled, sharpness(m.expert_sharpness[0]))
        for o in range(len(y)):
            y[o] = weighed(y[o], m.polled[o], m.model_wrong[0], m.expert_wrong[0])
    harden(y)
    tell(m, y)
    for o in range(len(y)):
        y[o] = real(2) * y[o] - real(1)
        # q is computed from y, so that the predicted class has the largest q even if two values of 2 q - 1 are equal after rounding
        m.polled[o] = real(0.5) * (y[o] + real(1))
    if m.weights_classes:
        favour(m, y)


@kernel
def mistake(f: Real[OUTPUTS], p: Real[OUTPUTS], y: Real[OUTPUTS]) -> Real:
    """The Brier score of the probabilities, plus 1 if the most likely class is wrong.  y: 1 for the label's class, -1 for other classes."""
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
    """The sharpness after a label.  The logarithm of the sharpness takes a step down the gradient of -log p_y."""
    slope = real(0)
    for o in range(len(y)):
        off = p[o] - (real(1) if y[o] > real(0) else real(0))
        slope += off * odds(f[o], sharp, len(y))
    part = real(1) - bounded(rate * slope, SHARP_STEP)
    return clipped(sharp * part, SHARP_LEAST, SHARP_MOST)


@kernel
def calibrate(m: Advised, f: Real[OUTPUTS], p: Real[OUTPUTS], y: Real[OUTPUTS]) -> None:
    """Update s and e with a label.  f: the joint functions before calibration; p: working memory.  O(classes)."""
    sharp = sharpness_told(m)
    random = random_labels(m)
    copy(f, p, len(y))
    soften(p, sharp)
    # the probability of the label's class; for two classes, p has only the probability of the second
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
    """With a label, update the errors and the sharpness of model and expert, and the calibration of the joint
    probabilities.  k, expert: the functions of model and expert.  O(classes)."""
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
