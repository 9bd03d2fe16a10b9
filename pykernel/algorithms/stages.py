"""What may surround a rule that learns sample by sample, so that raw inputs and raw labels do.

From the outside in: inputs are standardised; the label's running mean m is taken off; a linear part l(x) is taken off; the
rule learns what remains; and a gain g says how far the rule has been right.  The answer is f(x) = m + l(x) + g k(x), where
k is the rule's own answer.  The linear part is learned by normalised least mean squares (J. Nagumo, A. Noda 1967).

A stage sees of the rule its status and k(x), and changes only after the rule has taken the sample.  A stage that is
switched off leaves no memory and no code.  Zeros mean that nothing was learned yet.  Squares are taken in units of the
label's limit, so that none overflows.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.dialect import DIM, OUTPUTS, Bool, Config, Constant, Index, Real, Struct, absolute, kernel, real, sqrt


class Stages(Struct):
    """What surrounds the rule."""

    mean: Real[DIM]  # running mean of each input
    variance: Real[DIM]  # running variance of each input
    scale: Real[DIM]  # 1 / standard deviation of each input
    seen: Index  # number of samples behind these statistics, at most the horizon
    center: Real[OUTPUTS]  # running mean of the labels
    labels: Index  # number of labels behind that mean, at most its horizon
    weights: Real[OUTPUTS, DIM + 1]  # weights of the linear part; the last one belongs to the constant 1
    agreement: Real[OUTPUTS]  # running mean of r k: what the rule should have answered times what it answered
    strength: Real[OUTPUTS]  # running mean of k k
    judged: Index  # number of samples behind these means, at most their horizon


class StageConfig(Config):
    """Parameters of the stages, derived from a spec by ``pykernel.spec.stages``."""

    standardises: bool  # whether inputs are standardised while the model learns
    centers: bool  # whether the label's running mean is taken off
    leads: bool  # whether a linear part is taken off
    weighs: bool  # whether the rule's answer is multiplied by a gain
    clamps: bool  # whether predictions are kept between low and high
    clip: Real  # largest standardised input, in standard deviations
    warmup: Index  # number of samples for the standardiser before the model learns
    horizon: Index  # number of latest samples that the inputs' mean and variance describe
    center_horizon: Index  # number of latest labels that their mean describes
    gain_horizon: Index  # number of latest samples that the gain describes
    linear_eta: Real  # learning rate of the linear part
    linear_limit: Real  # largest weight of the linear part
    remainder_limit: Real  # largest |r| that the rule has to learn
    label_unit: Real  # 1 / the label's limit
    low: Real  # smallest prediction
    high: Real  # largest prediction


VARIANCE_FLOOR = Constant(2.0**-80)
"""Added to each variance: a constant input has none, and stays zero."""
FAR_OFF = Constant(5.0)
"""A sample moves mean and variance by as many standard deviations at most: one glitch must not hide the input."""
TRUSTED = 20
"""The rule's answer counts in full for so many samples: a gain of fewer would be chance."""


# ------------------------------------------------------------------------------------------------------- inputs


@kernel
def standardise(t: Stages, g: StageConfig, x: Real[DIM], standardised: Real[DIM]) -> None:
    """The sample in standard deviations from the mean, kept within +- clip.  O(D)."""
    for j in range(len(x)):
        standardised[j] = clipped((x[j] - t.mean[j]) * t.scale[j], -g.clip, g.clip)


@kernel
def observe(t: Stages, g: StageConfig, x: Real[DIM]) -> None:
    """Add the sample to the statistics of the inputs.  O(D).

    Up to the horizon, mean and variance are exact (D. H. D. West, Comm. ACM 22, 1979).  Later samples are weighted
    exponentially, so that mean and variance follow slow changes.
    """
    if t.seen[0] < g.horizon:
        t.seen[0] += 1
    rate = real(1) / real(t.seen[0])
    rest = real(1) - rate
    for j in range(len(x)):
        difference = x[j] - t.mean[j]
        t.mean[j] += rate * difference
        # a product of numbers that are not negative: rounding cannot make the variance negative
        t.variance[j] = rest * (t.variance[j] + rate * (difference * difference))
        t.scale[j] = real(1) / sqrt(t.variance[j] + VARIANCE_FLOOR)


# ------------------------------------------------------------------------------------------------------- labels


@kernel
def lead(t: Stages, g: StageConfig, x: Real[DIM], o: Index) -> Real:
    """m + l(x) of output o, for the input as the rule sees it.  O(D)."""
    total = real(0)
    if g.centers:
        total = t.center[o]
    if g.leads:
        total += t.weights[o, len(x)]
        for j in range(len(x)):
            total += t.weights[o, j] * x[j]
    return total


@kernel
def gain(t: Stages, g: StageConfig, o: Index) -> Real:
    """How far the rule has been right: 1 in full, 0 not at all."""
    if t.judged[0] < TRUSTED or not (t.strength[o] > real(0)):
        return real(1)
    return clipped(t.agreement[o] / t.strength[o], real(0), real(1))


@kernel
def combine(t: Stages, g: StageConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = m + l(x) + g y, then kept between low and high.  O(D) for each output."""
    for o in range(len(y)):
        if g.weighs:
            y[o] = gain(t, g, o) * y[o]
        if g.centers or g.leads:
            y[o] = lead(t, g, x, o) + y[o]
        if g.clamps:
            y[o] = clipped(y[o], g.low, g.high)


@kernel
def remain(t: Stages, g: StageConfig, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS]) -> None:
    """r = y - m - l(x), within its limit: what the rule has to learn.  O(D) for each output."""
    for o in range(len(y)):
        r[o] = clipped(y[o] - lead(t, g, x, o), -g.remainder_limit, g.remainder_limit)


@kernel
def conclude(t: Stages, g: StageConfig, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """The rule has learned r where it had answered k: the stages learn, too.  O(D) for each output."""
    if g.weighs:
        if t.judged[0] < g.gain_horizon:
            t.judged[0] += 1
        rate = real(1) / real(t.judged[0])
        for o in range(len(y)):
            answered = k[o] * g.label_unit
            t.agreement[o] += rate * (r[o] * g.label_unit * answered - t.agreement[o])
            t.strength[o] += rate * (answered * answered - t.strength[o])
    if g.leads:
        power = real(1)
        for j in range(len(x)):
            power += x[j] * x[j]
        share = g.linear_eta / power
        for o in range(len(y)):
            step = share * r[o]
            for j in range(len(x)):
                t.weights[o, j] = clipped(t.weights[o, j] + step * x[j], -g.linear_limit, g.linear_limit)
            t.weights[o, len(x)] = clipped(t.weights[o, len(x)] + step, -g.linear_limit, g.linear_limit)
    if g.centers:
        if t.labels[0] < g.center_horizon:
            t.labels[0] += 1
        rate = real(1) / real(t.labels[0])
        for o in range(len(y)):
            t.center[o] += rate * (y[o] - t.center[o])


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def valid_inputs(t: Stages, g: StageConfig, limit: Real) -> Bool:
    """Whether inputs within their limit can have these means and variances, and the scales fit.  O(D)."""
    if t.seen[0] < 0 or t.seen[0] > g.horizon:
        return False
    for j in range(len(t.mean)):
        # twice the limit, and eight times its square: both with room for rounding
        if not (absolute(t.mean[j]) * real(0.5) <= limit):
            return False
        if not (t.variance[j] >= real(0) and t.variance[j] * real(0.125) <= limit * limit):
            return False
        if t.seen[0] == 0:
            if t.mean[j] != real(0) or t.variance[j] != real(0) or t.scale[j] != real(0):
                return False
        elif t.scale[j] != real(1) / sqrt(t.variance[j] + VARIANCE_FLOOR):
            return False
    return True


@kernel
def valid_labels(t: Stages, g: StageConfig) -> Bool:
    """Whether labels within their limit can have led to this mean, linear part and gain.  O(D) for each output."""
    if g.centers:
        if t.labels[0] < 0 or t.labels[0] > g.center_horizon:
            return False
    if g.weighs:
        if t.judged[0] < 0 or t.judged[0] > g.gain_horizon:
            return False
    for o in range(len(t.center)):
        if g.centers:
            # twice the limit: room for rounding
            if not (absolute(t.center[o]) * g.label_unit <= real(2)):
                return False
            if t.labels[0] == 0 and t.center[o] != real(0):
                return False
        if g.leads:
            for j in range(len(t.weights[0])):
                if not (absolute(t.weights[o, j]) <= g.linear_limit):
                    return False
        if g.weighs:
            # answers have no limit but that of their numbers: a forged gain is clipped, and must be a number
            if not (t.strength[o] >= real(0) and absolute(t.agreement[o]) <= WIDE and t.strength[o] <= WIDE):
                return False
            if t.judged[0] == 0 and (t.agreement[o] != real(0) or t.strength[o] != real(0)):
                return False
    return True


WIDE = Constant(float32=1e30, float64=1e200)
"""Far above any mean of squares in units of the label's limit."""
