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
    slopes: Real[OUTPUTS, DIM + 1]  # weights of the linear part; the last one belongs to the constant 1
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
    label_limit: Real  # largest |y| that is accepted
    label_unit: Real  # 1 / that limit
    low: Real  # smallest prediction
    high: Real  # largest prediction


VARIANCE_FLOOR = Constant(2.0**-80)
"""Added to each variance: a constant input has none, and stays zero."""
WIDE = Constant(float32=1e30, float64=1e200)
"""Far above any mean of squares in units of the label's limit."""
TRUSTED = 20
"""The rule's answer counts in full for so many samples: a gain of fewer would be chance."""


# ------------------------------------------------------------------------------------------------------- inputs


@kernel
def standardise(z: Stages, f: StageConfig, x: Real[DIM], standardised: Real[DIM]) -> None:
    """The sample in standard deviations from the mean, kept within +- clip.  O(D)."""
    for j in range(len(x)):
        standardised[j] = clipped((x[j] - z.mean[j]) * z.scale[j], -f.clip, f.clip)


@kernel
def observe(z: Stages, f: StageConfig, x: Real[DIM]) -> None:
    """Add the sample to the statistics of the inputs.  O(D).

    Up to the horizon, mean and variance are exact (D. H. D. West, Comm. ACM 22, 1979).  Later samples are weighted
    exponentially, so that mean and variance follow slow changes.
    """
    if z.seen[0] < f.horizon:
        z.seen[0] += 1
    rate = real(1) / real(z.seen[0])
    rest = real(1) - rate
    for j in range(len(x)):
        difference = x[j] - z.mean[j]
        z.mean[j] += rate * difference
        # a product of numbers that are not negative: rounding cannot make the variance negative
        z.variance[j] = rest * (z.variance[j] + rate * (difference * difference))
        z.scale[j] = real(1) / sqrt(z.variance[j] + VARIANCE_FLOOR)


# ------------------------------------------------------------------------------------------------------- labels


@kernel
def lead(z: Stages, f: StageConfig, x: Real[DIM], o: Index) -> Real:
    """m + l(x) of output o, for the input as the rule sees it.  O(D)."""
    total = real(0)
    if f.centers:
        total = z.center[o]
    if f.leads:
        total += z.slopes[o, len(x)]
        for j in range(len(x)):
            total += z.slopes[o, j] * x[j]
    return total


@kernel
def gain(z: Stages, f: StageConfig, o: Index) -> Real:
    """How far the rule has been right: 1 in full, 0 not at all."""
    if z.judged[0] < TRUSTED or not (z.strength[o] > real(0)):
        return real(1)
    return clipped(z.agreement[o] / z.strength[o], real(0), real(1))


@kernel
def combine(z: Stages, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = m + l(x) + g y, then kept between low and high.  O(D) for each output."""
    for o in range(len(y)):
        if f.weighs:
            y[o] = gain(z, f, o) * y[o]
        if f.centers or f.leads:
            y[o] = lead(z, f, x, o) + y[o]
        if f.clamps:
            y[o] = clipped(y[o], f.low, f.high)


@kernel
def remain(z: Stages, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS]) -> None:
    """r = y - m - l(x), within its limit: what the rule has to learn.  O(D) for each output."""
    for o in range(len(y)):
        r[o] = clipped(y[o] - lead(z, f, x, o), -f.remainder_limit, f.remainder_limit)


@kernel
def conclude(z: Stages, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """The rule has learned r where it had answered k: the stages learn, too.  O(D) for each output."""
    if f.weighs:
        if z.judged[0] < f.gain_horizon:
            z.judged[0] += 1
        rate = real(1) / real(z.judged[0])
        for o in range(len(y)):
            answered = k[o] * f.label_unit
            z.agreement[o] += rate * (r[o] * f.label_unit * answered - z.agreement[o])
            z.strength[o] += rate * (answered * answered - z.strength[o])
    if f.leads:
        power = real(1)
        for j in range(len(x)):
            power += x[j] * x[j]
        share = f.linear_eta / power
        for o in range(len(y)):
            step = share * r[o]
            for j in range(len(x)):
                z.slopes[o, j] = clipped(z.slopes[o, j] + step * x[j], -f.linear_limit, f.linear_limit)
            z.slopes[o, len(x)] = clipped(z.slopes[o, len(x)] + step, -f.linear_limit, f.linear_limit)
    if f.centers:
        if z.labels[0] < f.center_horizon:
            z.labels[0] += 1
        rate = real(1) / real(z.labels[0])
        for o in range(len(y)):
            z.center[o] += rate * (y[o] - z.center[o])


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def valid_inputs(z: Stages, f: StageConfig, limit: Real) -> Bool:
    """Whether inputs within their limit can have these means and variances, and the scales fit.  O(D)."""
    if z.seen[0] < 0 or z.seen[0] > f.horizon:
        return False
    for j in range(len(z.mean)):
        # twice the limit, and eight times its square: both with room for rounding
        if not (absolute(z.mean[j]) * real(0.5) <= limit):
            return False
        if not (z.variance[j] >= real(0) and z.variance[j] * real(0.125) <= limit * limit):
            return False
        if z.seen[0] == 0:
            if z.mean[j] != real(0) or z.variance[j] != real(0) or z.scale[j] != real(0):
                return False
        elif z.scale[j] != real(1) / sqrt(z.variance[j] + VARIANCE_FLOOR):
            return False
    return True


@kernel
def valid_labels(z: Stages, f: StageConfig) -> Bool:
    """Whether labels within their limit can have led to this mean, linear part and gain.  O(D) for each output."""
    if f.centers:
        if z.labels[0] < 0 or z.labels[0] > f.center_horizon:
            return False
    if f.weighs:
        if z.judged[0] < 0 or z.judged[0] > f.gain_horizon:
            return False
    for o in range(len(z.center)):
        if f.centers:
            # twice the limit: room for rounding
            if not (absolute(z.center[o]) * f.label_unit <= real(2)):
                return False
            if z.labels[0] == 0 and z.center[o] != real(0):
                return False
        if f.leads:
            for j in range(len(z.slopes[0])):
                if not (absolute(z.slopes[o, j]) <= f.linear_limit):
                    return False
        if f.weighs:
            # answers have no limit but that of their numbers: a forged gain is clipped, and must be a number
            if not (z.strength[o] >= real(0) and absolute(z.agreement[o]) <= WIDE and z.strength[o] <= WIDE):
                return False
            if z.judged[0] == 0 and (z.agreement[o] != real(0) or z.strength[o] != real(0)):
                return False
    return True
