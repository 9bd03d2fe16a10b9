"""What may surround a rule that learns sample by sample, so that raw inputs and raw labels do.

From the outside in: inputs are standardised; the label's running mean m is taken off; a linear part l(x) is taken off; the
rule learns what remains; and a gain g says how far the rule has been right.  The answer is f(x) = m + l(x) + g k(x), where
k is the rule's own answer.  The linear part is learned by normalised least mean squares (J. Nagumo, A. Noda 1967).  A label
far from the answer may be a fault: it counts at most a number of usual errors, as does an outlying input.

Running means weigh sample k of the first n by k, then by powers of 1 - 2 / (horizon + 1): a start unlike the rest is forgotten
with 1 / n^2.

A stage sees of the rule its status and k(x), and changes only after the rule has taken the sample.  A rule that knows the
noise of its labels may have it estimated by what it left of them.  A stage that is switched off leaves no memory and no
code.  Zeros mean that nothing was learned yet.  Squares are taken in units of the label's limit, so that none overflows.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelConfig, rescale
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
    kernel,
    real,
    sqrt,
)

LOUD = Constant(2.0**20)
"""Answers and remainders count at most this many times the label's limit, so that no square overflows."""
LARGEST_POWER = Constant(2.0**41)
"""Twice the largest square: room for rounding."""


class Stages(Struct):
    """What surrounds the rule."""

    mean: Real[DIM]  # running mean of each input
    variance: Real[DIM]  # running variance of each input
    scale: Real[DIM]  # 1 / standard deviation of each input
    # 0, or 1, 3, 7 ... after outlying samples in a row: so much further an input may be to count in full
    shock: between(Real, 0, LOUD)
    observed: between(Index, 0, "input_horizon")  # number of samples behind these statistics, at most the horizon
    center: Real[OUTPUTS]  # running mean of the labels
    averaged: between(Index, 0, "center_horizon")  # number of labels behind that mean, at most its horizon
    # weights of the linear part; the last one belongs to the constant 1
    slopes: between(Real[OUTPUTS, DIM + 1], "-linear_limit", "linear_limit")
    # running mean of r k: what the rule should have answered times what it answered
    agreement: between(Real[OUTPUTS], -LARGEST_POWER, LARGEST_POWER)
    strength: between(Real[OUTPUTS], 0, LARGEST_POWER)  # running mean of k k
    left_power: between(Real[OUTPUTS], 0, LARGEST_POWER)  # running mean of (r - k)^2
    label_power: Real  # running mean of |y - m|^2
    label_shock: between(Real, 0, LOUD)  # as shock, of labels
    judged: between(Index, 0, "gain_horizon")  # number of samples behind these means, at most their horizon


class StageConfig(Config):
    """Parameters of the stages, derived from a spec by ``pykernel.spec.stages``."""

    standardises: bool  # whether inputs are standardised while the model learns
    centers: bool  # whether the label's running mean is taken off
    leads: bool  # whether a linear part is taken off
    gains: bool  # whether the rule's answer is multiplied by a gain
    estimates_noise: bool  # whether the noise of the labels is estimated
    limits: bool  # whether a label counts at most so far from the answer
    judges: bool  # whether any of the last three is so: answers are compared with labels
    follows: bool  # whether any of these five is so: labels pass stages
    clamps: bool  # whether predictions are kept between low and high
    clip: Real  # largest standardised input, in standard deviations
    input_warmup: Index  # number of samples for the standardiser before the model learns
    input_horizon: Index  # number of latest samples that the inputs' mean and variance describe
    center_horizon: Index  # number of latest labels that their mean describes
    gain_horizon: Index  # number of latest samples that the gain and the noise describe
    linear_eta: Real  # learning rate of the linear part
    linear_limit: Real  # largest weight of the linear part
    remainder_limit: Real  # largest |r| that the rule has to learn
    label_limit: Real  # largest |y| that is accepted
    label_unit: Real  # 1 / that limit
    label_clip: Real  # usual errors that a label may be away from the answer
    noise_first: Real  # the noise before it is estimated
    noise_known: Real  # least part of the labels' variance that counts as known
    noise_low: Real  # smallest noise
    noise_high: Real  # largest noise
    low: Real  # smallest prediction
    high: Real  # largest prediction


VARIANCE_FLOOR = Constant(2.0**-80)
"""Added to each variance: a constant input has none, and stays zero."""
OUTLYING = Constant(5.0)
"""An input counts at most this many standard deviations when mean and variance learn it: an outlier moves them little."""
EXPLAINED = Constant(4.0)
"""Where an input is at its limit, the label may be so many times further away: an outlying input has unusual labels."""
TRUSTED = 20
"""The rule's answer counts in full, and its noise is the first guess, for so many samples: fewer would be chance."""


@kernel
def shaken(shock: Real, outlying: Bool) -> Real:
    """0, 1, 3, 7 ... after so many outlying samples in a row."""
    if not outlying:
        return real(0)
    return clipped(real(2) * shock + real(1), real(0), LOUD)


# ------------------------------------------------------------------------------------------------------- inputs


@kernel
def standardise(a: Stages, f: StageConfig, x: Real[DIM], standardised: Real[DIM]) -> None:
    """The sample in standard deviations from the mean, kept within +- clip.  O(D)."""
    for j in range(len(x)):
        standardised[j] = clipped((x[j] - a.mean[j]) * a.scale[j], -f.clip, f.clip)


@kernel
def scaled(a: Stages, f: StageConfig, q: KernelConfig, x: Real[DIM], out: Real[DIM]) -> None:
    """Write the scaled input to out, by running statistics or by given numbers.  O(D)."""
    if f.standardises:
        standardise(a, f, x, out)
    elif q.rescales:
        rescale(q, x, out)
    else:
        for j in range(len(x)):
            out[j] = x[j]


@kernel
def observe(a: Stages, f: StageConfig, x: Real[DIM]) -> None:
    """Add the sample to the statistics of the inputs.  O(D).

    Up to the horizon, mean and variance are the weighted ones (D. H. D. West, Comm. ACM 22, 1979), but for what lies further
    than five standard deviations away after the warm-up: it counts as five.  Outlying samples in a row are no faults but
    another scale: the limit doubles with each.
    """
    if a.observed[0] < f.input_horizon:
        a.observed[0] += 1
    rate = real(2) / (real(a.observed[0]) + real(1))
    rest = real(1) - rate
    allowed = OUTLYING * (real(1) + a.shock[0])
    outlying = False
    for j in range(len(x)):
        difference = x[j] - a.mean[j]
        # an input that was constant may begin to move
        if a.observed[0] > f.input_warmup and a.variance[j] > real(0):
            most = allowed / a.scale[j]
            outlying = outlying or absolute(difference) > most
            difference = clipped(difference, -most, most)
        a.mean[j] += rate * difference
        # a product of numbers that are not negative: rounding cannot make the variance negative
        a.variance[j] = rest * (a.variance[j] + rate * (difference * difference))
        a.scale[j] = real(1) / sqrt(a.variance[j] + VARIANCE_FLOOR)
    a.shock[0] = shaken(a.shock[0], outlying)


# ------------------------------------------------------------------------------------------------------- labels


@kernel
def average(a: Stages, f: StageConfig, y: Real[OUTPUTS]) -> None:
    """Add the label to its running mean."""
    if a.averaged[0] < f.center_horizon:
        a.averaged[0] += 1
    rate = real(2) / (real(a.averaged[0]) + real(1))
    for o in range(len(y)):
        a.center[o] += rate * (y[o] - a.center[o])


@kernel
def observe_both(a: Stages, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Before the rule begins, the statistics of inputs and labels do."""
    observe(a, f, x)
    if f.centers:
        average(a, f, y)


@kernel
def lead(a: Stages, f: StageConfig, x: Real[DIM], o: Index) -> Real:
    """m + l(x) of output o, for the input as the rule sees it.  O(D)."""
    total = real(0)
    if f.centers:
        total = a.center[o]
    if f.leads:
        total += a.slopes[o, len(x)]
        for j in range(len(x)):
            total += a.slopes[o, j] * x[j]
    return total


@kernel
def trust(a: Stages, f: StageConfig, o: Index) -> Real:
    """How far the rule has been right: 1 in full, 0 not at all."""
    if a.judged[0] < TRUSTED or not (a.strength[o] > real(0)):
        return real(1)
    return clipped(a.agreement[o] / a.strength[o], real(0), real(1))


@kernel
def noise(a: Stages, f: StageConfig) -> Real:
    """The labels' noise in parts of the variance of what can be learned: u / (1 - u), u = E |r - k|^2 / E |y - m|^2."""
    if a.judged[0] < TRUSTED or not (a.label_power[0] > real(0)):
        return f.noise_first
    left = real(0)
    for o in range(len(a.left_power)):
        left += a.left_power[o]
    u = clipped(left / a.label_power[0], real(0), real(1))
    known = real(1) - u
    if known < f.noise_known:
        known = f.noise_known
    return clipped(u / known, f.noise_low, f.noise_high)


@kernel
def combine(a: Stages, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = m + l(x) + g y, then kept between low and high.  O(D) for each output."""
    for o in range(len(y)):
        if f.gains:
            y[o] = trust(a, f, o) * y[o]
        if f.centers or f.leads:
            y[o] = lead(a, f, x, o) + y[o]
        if f.clamps:
            y[o] = clipped(y[o], f.low, f.high)


@kernel
def remain(a: Stages, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS]) -> None:
    """r = y - m - l(x), within its limit: what the rule has to learn.  O(D) for each output.

    The first label is its own mean: nothing remains.
    """
    for o in range(len(y)):
        r[o] = clipped(y[o] - lead(a, f, x, o), -f.remainder_limit, f.remainder_limit)
        if f.centers:
            if a.averaged[0] == 0:
                r[o] = real(0)


@kernel
def farthest(a: Stages, f: StageConfig, x: Real[DIM], most: Real[OUTPUTS]) -> None:
    """How far from the rule's answer a remainder counts in full, for the input as the rule sees it.  O(D)."""
    allowed = f.label_clip * (real(1) + a.label_shock[0])
    if f.standardises:
        explained = False
        for j in range(len(x)):
            explained = explained or absolute(x[j]) >= f.clip
        if explained:
            allowed = EXPLAINED * allowed
    for o in range(len(most)):
        most[o] = LOUD * f.remainder_limit
        if a.judged[0] >= TRUSTED and a.left_power[o] > real(0):
            most[o] = allowed * (f.label_limit * sqrt(a.left_power[o]))


@kernel
def judge(a: Stages, f: StageConfig, y: Real[OUTPUTS], r: Real[OUTPUTS], k: Real[OUTPUTS], rate: Real) -> None:
    """Compare what the rule answered with what it had to learn."""
    if f.gains:
        for o in range(len(y)):
            answered = clipped(k[o] * f.label_unit, -LOUD, LOUD)
            a.agreement[o] += rate * (r[o] * f.label_unit * answered - a.agreement[o])
            a.strength[o] += rate * (answered * answered - a.strength[o])
    if f.limits or f.estimates_noise:
        for o in range(len(y)):
            left = clipped((r[o] - k[o]) * f.label_unit, -LOUD, LOUD)
            a.left_power[o] += rate * (left * left - a.left_power[o])
    if f.estimates_noise:
        spread = real(0)
        for o in range(len(y)):
            away = y[o]
            if f.centers:
                away = y[o] - a.center[o]
            away = away * f.label_unit
            spread += away * away
        a.label_power[0] += rate * (spread - a.label_power[0])


@kernel
def conclude(
    a: Stages,
    f: StageConfig,
    x: Real[DIM],
    y: Real[OUTPUTS],
    r: Real[OUTPUTS],
    k: Real[OUTPUTS],
    most: Real[OUTPUTS],
) -> None:
    """The rule has learned r, within most of what it had answered, k: the stages learn, too.  O(D) for each output.

    A label that was too far away is replaced in y by the one that was learned.
    """
    if f.limits:
        outlying = False
        for o in range(len(y)):
            if r[o] >= k[o] + most[o] or r[o] <= k[o] - most[o]:
                outlying = True
                # the answer may be beyond what a label can be
                y[o] = clipped(lead(a, f, x, o) + r[o], -f.label_limit, f.label_limit)
        a.label_shock[0] = shaken(a.label_shock[0], outlying)
    if f.judges:
        if a.judged[0] < f.gain_horizon:
            a.judged[0] += 1
        judge(a, f, y, r, k, real(2) / (real(a.judged[0]) + real(1)))
    if f.leads:
        power = real(1)
        for j in range(len(x)):
            power += x[j] * x[j]
        share = f.linear_eta / power
        for o in range(len(y)):
            step = share * r[o]
            for j in range(len(x)):
                a.slopes[o, j] = clipped(a.slopes[o, j] + step * x[j], -f.linear_limit, f.linear_limit)
            a.slopes[o, len(x)] = clipped(a.slopes[o, len(x)] + step, -f.linear_limit, f.linear_limit)
    if f.centers:
        average(a, f, y)


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def valid_inputs(a: Stages, f: StageConfig, limit: Real) -> Bool:
    """Whether inputs within their limit can have these means and variances, and the scales fit.  O(D)."""
    for j in range(len(a.mean)):
        # twice the limit, and eight times its square: both with room for rounding
        if not (absolute(a.mean[j]) * real(0.5) <= limit):
            return False
        if not (a.variance[j] >= real(0) and a.variance[j] * real(0.125) <= limit * limit):
            return False
        if a.observed[0] == 0:
            if a.mean[j] != real(0) or a.variance[j] != real(0) or a.scale[j] != real(0):
                return False
        elif a.scale[j] != real(1) / sqrt(a.variance[j] + VARIANCE_FLOOR):
            return False
    return True


@kernel
def valid_labels(a: Stages, f: StageConfig) -> Bool:
    """Whether labels within their limit can have led to this mean, linear part and gain.  O(D) for each output."""
    if f.estimates_noise:
        if not (a.label_power[0] >= real(0) and a.label_power[0] <= LARGEST_POWER * real(len(a.center))):
            return False
        if a.judged[0] == 0 and a.label_power[0] != real(0):
            return False
    for o in range(len(a.center)):
        if f.centers:
            # twice the limit: room for rounding
            if not (absolute(a.center[o]) * f.label_unit <= real(2)):
                return False
            if a.averaged[0] == 0 and a.center[o] != real(0):
                return False
        if f.limits or f.estimates_noise:
            if a.judged[0] == 0 and a.left_power[o] != real(0):
                return False
        if f.gains:
            if a.judged[0] == 0 and (a.agreement[o] != real(0) or a.strength[o] != real(0)):
                return False
    return True


@kernel
def valid_stages(a: Stages, f: StageConfig, limit: Real) -> Bool:
    """Whether inputs up to the limit, and labels up to theirs, can have led to these stages.  O(D) for each output."""
    if f.standardises:
        if not valid_inputs(a, f, limit):
            return False
    if f.follows:
        if not valid_labels(a, f):
            return False
    return True


@kernel
def forget(a: Stages, f: StageConfig) -> None:
    """Nothing was learned yet.  O(D) for each output."""
    if f.standardises:
        for j in range(len(a.mean)):
            a.mean[j] = real(0)
            a.variance[j] = real(0)
            a.scale[j] = real(0)
        a.shock[0] = real(0)
        a.observed[0] = 0
    for o in range(len(a.center)):
        if f.centers:
            a.center[o] = real(0)
        if f.leads:
            for j in range(len(a.slopes[0])):
                a.slopes[o, j] = real(0)
        if f.gains:
            a.agreement[o] = real(0)
            a.strength[o] = real(0)
        if f.limits or f.estimates_noise:
            a.left_power[o] = real(0)
    if f.centers:
        a.averaged[0] = 0
    if f.estimates_noise:
        a.label_power[0] = real(0)
    if f.limits:
        a.label_shock[0] = real(0)
    if f.judges:
        a.judged[0] = 0
