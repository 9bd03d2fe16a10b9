"""Optional stages around a rule that learns sample by sample, so that the model accepts raw inputs and raw labels.

Inputs are standardised.  The label's running mean m and a linear part l(x) are subtracted from the label, and the rule learns the
residual.  A gain g measures how reliable the rule has been.  The prediction is f(x) = m + l(x) + g k(x), where k is the
rule's own prediction.  The linear part is learned by normalised least mean squares (J. Nagumo, A. Noda 1967).  A label
far from the prediction may be a fault: its distance from the prediction is clipped to a multiple of the usual error.
Outlying inputs are clipped, too.

In a running mean of the first n samples, sample k has weight k; beyond the horizon, each new sample multiplies
the weights of older samples by 1 - 2 / (horizon + 1).  So the weight of atypical first samples falls as 1 / n^2.

A stage uses only the rule's status and k(x).  After the warm-up of the inputs, a stage is updated only if the rule has
accepted the sample.  For a rule that takes the noise of its labels into account, this noise can be estimated from
residuals.  A stage that is switched off takes no memory and no code.  A state of all zeros means that nothing has been
learned yet.  Labels, predictions and residuals are squared in units of 2^-40 of the label's limit, so that no square
overflows.
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.inputs import InputConfig, rescale
from pykernel.algorithms.pending import GIVEN, Pending, PendingWork
from pykernel.algorithms.vectors import plus_product
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Constant,
    Index,
    Model,
    Real,
    Struct,
    absolute,
    between,
    kernel,
    real,
    sqrt,
)

LOUD = Constant(2.0**20)
"""Predictions and residuals are clipped to this many times the label's limit, so that no square overflows."""
PARTS = 2.0**40
"""Numbers are squared in units of the label's limit / PARTS, so that squares of labels far below the limit are not subnormal."""
PART_OF_LIMIT = Constant(1 / PARTS)
LOUD_PARTS = Constant(2.0**20 * PARTS)
"""LOUD, in units of the label's limit / PARTS."""
LARGEST_POWER = Constant(2.0**41 * PARTS**2)
"""Twice the largest square, to leave room for rounding."""
VARIANCE_LEAST = Constant(float32=2.0**-126, float64=2.0**-1022)
"""Smaller variances are replaced by this, the smallest normal number."""
SCALE_MOST = Constant(float32=2.0**64, float64=2.0**512)
"""Twice the scale of an input whose variance is VARIANCE_LEAST."""


class Stages(Struct):
    """The memory of the stages."""

    # running mean and variance of each input; their ranges leave room for rounding
    mean: between(Real[DIM], "-2 * input_max_abs", "2 * input_max_abs", after="observed")
    variance: between(Real[DIM], 0, "8 * input_max_abs * input_max_abs", after="observed")
    scale: between(Real[DIM], 0, SCALE_MOST, after="observed")  # 1 / standard deviation of each input
    # 2^n - 1 after n consecutive outlying samples; the limit of the inputs is multiplied by 1 + shock
    shock: between(Real, 0, LOUD)
    observed: between(Index, 0, "input_horizon")  # number of samples in these statistics, at most the horizon
    # for each input, the latest standardised value that was not outlying
    held_input: between(Real[DIM], "-clip", "clip", after="observed")
    # from -1 to 1: how much recent errors were reduced by replacing an outlying input by its held value instead of clipping it
    evidence: between(Real[DIM], -1, 1, after="observed")
    # number of values in the statistics of each input, at most the horizon; used if missing inputs are replaced
    values_seen: between(Index[DIM], 0, "input_horizon")
    # for each input, the latest unscaled value that was neither missing nor outlying
    latest_input: between(Real[DIM], "-input_max_abs", "input_max_abs")
    # running mean of the labels
    center: between(Real[OUTPUTS], "-2 * label_limit", "2 * label_limit", after="averaged")
    averaged: between(Index, 0, "center_horizon")  # number of labels in this mean, at most its horizon
    # weights of the linear part; the last one belongs to the constant 1
    slopes: between(Real[OUTPUTS, DIM + 1], "-linear_limit", "linear_limit")
    # running mean of r k, where r is the rule's target, and k is the rule's own prediction
    agreement: between(Real[OUTPUTS], -LARGEST_POWER, LARGEST_POWER, after="answers_judged")
    strength: between(Real[OUTPUTS], 0, LARGEST_POWER, after="answers_judged")  # running mean of k^2
    left_power: between(Real[OUTPUTS], 0, LARGEST_POWER, after="judged")  # running mean of (r - k)^2
    label_power: between(Real, 0, LARGEST_POWER, after="judged")  # running mean of |y - m|^2
    # 2^n - 1 after n consecutive outlying labels; the limit of the labels is multiplied by 1 + label_shock
    label_shock: between(Real, 0, LOUD)
    judged: between(Index, 0, "gain_horizon")  # number of labels in these means, at most their horizon
    # number of predictions that were compared with labels for the gain; smaller than the field ``judged`` if labels
    # come late
    answers_judged: between(Index, 0, "gain_horizon")
    frozen: between(Index, 0, 1)  # 1: learning is switched off

    units = tuple((name, "label_unit", 2) for name in ("agreement", "strength", "left_power", "label_power"))


class Sample(Struct):
    """The sample that is being learned.  Every call rewrites it, so zero is a valid initial value."""

    x: Real[DIM]  # the input that is passed to the rule
    # the rule's input with outlying values treated the other way: clipped instead of replaced, or the reverse
    other: Real[DIM]
    absent: Index[DIM]  # 1: the input was missing and has been replaced
    y: Real[OUTPUTS]  # the target of the rule's prediction
    label: Real[OUTPUTS]  # the label before the stages subtracted their parts
    value: Real[OUTPUTS]  # the rule's own prediction before the sample was learned
    most: Real[OUTPUTS]  # largest distance of y from the rule's own prediction; a y further away is clipped
    learned: Real[OUTPUTS]  # the label after clipping
    error: Real[OUTPUTS]  # the rule's own prediction k; after hear(), y - k


class StageConfig(Config):
    """Parameters of the stages, derived from a spec by ``pykernel.spec.stages``."""

    standardises: bool  # whether inputs are standardised while the model learns
    holds: bool  # whether an outlying input may be replaced by its held value
    completes: bool  # whether missing inputs are replaced
    keeps_latest: bool  # whether a missing input is replaced by its latest value
    centers: bool  # whether the label's running mean is subtracted
    leads: bool  # whether a linear part is subtracted
    gains: bool  # whether the rule's own prediction is multiplied by a gain
    estimates_noise: bool  # whether the noise of the labels is estimated
    limits: bool  # whether labels are clipped to a distance from the prediction
    judges: bool  # whether predictions are compared with labels: true if gains, limits, estimates_noise, covers or mixes is true
    # whether labels pass through stages: true if centers, leads, gains, limits, estimates_noise or covers is true, or mixes without votes
    follows: bool
    clamps: bool  # whether predictions are clipped to the range from low to high
    # whether predictions are stored for labels that come late, so that the two can be compared
    expects: bool
    mixes: bool  # whether the prediction is a weighted mean of the model's and a linear expert's predictions
    votes: bool  # for classes: whether the class probabilities of the model and of a linear expert are averaged
    scales: bool  # whether inputs are scaled before the rule gets them
    clip: Real  # inputs are clipped to this many standard deviations from their means
    input_warmup: Index  # number of samples that the standardiser sees before the model learns
    input_horizon: Index  # how many of the latest samples the inputs' mean and variance describe
    center_horizon: Index  # how many of the latest labels the labels' mean describes
    gain_horizon: Index  # how many of the latest samples the gain and the noise describe
    linear_eta: Real  # learning rate of the linear part
    linear_limit: Real  # largest weight of the linear part
    remainder_limit: Real  # largest |r| that the rule has to learn
    label_limit: Real  # largest |y| that is accepted
    label_unit: Real  # 2^40 / label_limit
    label_clip: Real  # a label's distance from the prediction is clipped to this many usual errors
    noise_first: Real  # the noise before it is estimated
    noise_known: Real  # the fraction of the labels' variance that the model explains is taken to be at least this
    noise_low: Real  # smallest noise
    noise_high: Real  # largest noise
    low: Real  # smallest prediction
    high: Real  # largest prediction

    tunable = frozenset(
        """clamps clip input_warmup input_horizon center_horizon gain_horizon linear_eta linear_limit
        remainder_limit label_limit label_clip noise_first noise_known noise_low noise_high low high""".split()
    )


class Staged(Model):
    """A model with stages around its rule."""

    parts = Stages, Sample, StageConfig, InputConfig, Pending, PendingWork


OUTLYING = Constant(5.0)
"""When inputs update their mean and variance, they are clipped to this many standard deviations from the mean, so
that an outlier has little effect."""
EVIDENCE_NEEDED = Constant(0.2)
"""If the evidence is above this, an outlying input is replaced by its held value.  The threshold is above zero,
because a replacement that began by chance could otherwise persist: while outlying values are replaced, the rule learns
nothing about them."""
MARKED_MOST = Constant(2.0**60)
"""Larger inputs are clipped to this when the mark of a sample is computed."""
GOLDEN = Constant(1.6180339887498948482)
EVIDENCE_RATE = Constant(0.1)
"""Weight of one outlying sample in the evidence, which decides between clipping an input and replacing it by its held value."""
EXPLAINED = Constant(4.0)
"""If an input is at its limit, the largest accepted distance between label and prediction is multiplied by this,
because samples with outlying inputs often have unusual labels."""
TRUSTED = 20
"""With fewer samples than this, the gain is 1 and the noise is noise_first: estimates from fewer samples
would be unreliable."""


@kernel
def shaken(shock: Real, outlying: Bool) -> Real:
    """2^n - 1 after n consecutive outlying samples."""
    if not outlying:
        return real(0)
    return clipped(real(2) * shock + real(1), real(0), LOUD)


# ------------------------------------------------------------------------------------------------------- inputs


@kernel
def outlies(m: Staged, x: Real[DIM], j: Index) -> Bool:
    """Whether an input is so far from its mean that it may be a fault.  With each consecutive outlying sample, the
    distance that counts as outlying doubles."""
    if m.completes:
        if m.absent[j] != 0 or m.values_seen[j] <= m.input_warmup:
            return False
    if m.observed[0] <= m.input_warmup or not (m.variance[j] > real(0)):
        return False
    return absolute((x[j] - m.mean[j]) * m.scale[j]) >= OUTLYING * (real(1) + m.shock[0])


@kernel
def held(m: Staged, j: Index) -> Real:
    """The latest value of input j that was not outlying, in standardised form."""
    if m.keeps_latest:
        return bounded((m.latest_input[j] - m.mean[j]) * m.scale[j], m.clip)
    return m.held_input[j]


@kernel
def see(m: Staged, x: Real[DIM]) -> None:
    """Write the rule's input to m.x: x, scaled by running statistics, by the numbers in the spec, or not at all.  O(D)."""
    if m.standardises:
        for j in range(len(x)):
            m.x[j] = bounded((x[j] - m.mean[j]) * m.scale[j], m.clip)
            if m.holds:
                if m.evidence[j] > EVIDENCE_NEEDED and outlies(m, x, j):
                    m.x[j] = held(m, j)
            if m.completes:
                # an input whose first values are missing has its own warm-up, during which the rule gets the mean of the input
                if m.values_seen[j] < m.input_warmup:
                    m.x[j] = real(0)
    elif m.rescales:
        rescale(m, x, m.x)
    else:
        for j in range(len(x)):
            m.x[j] = x[j]


@kernel
def marked(m: Staged, x: Real[DIM]) -> Real:
    """A number by which a sample is recognised: a weighted sum of its inputs.  O(D)."""
    total = real(0)
    factor = real(1)
    for j in range(len(x)):
        value = bounded(x[j], MARKED_MOST)
        if m.completes:
            # a missing input gets a fixed number: its replacement may change before the label comes
            if m.absent[j] != 0:
                value = MARKED_MOST
        total += factor * value
        factor = factor * GOLDEN
        if factor >= real(2):
            factor = factor * real(0.5)
    return total


@kernel
def scale_of(variance: Real) -> Real:
    """1 / standard deviation.  The result is finite even for a constant input."""
    return real(1) / sqrt(variance if variance > VARIANCE_LEAST else VARIANCE_LEAST)


@kernel
def observe(m: Staged, x: Real[DIM]) -> None:
    """Add the sample to the statistics of the inputs.  O(D).

    Up to the horizon, the statistics are the weighted mean and variance of D. H. D. West, Comm. ACM 22, 1979.  After
    the warm-up, inputs are clipped to five standard deviations from the mean.  Consecutive outlying samples are taken
    as a change of scale, not as faults: the limit doubles with each of them.
    """
    if m.observed[0] < m.input_horizon:
        m.observed[0] += 1
    rate = real(2) / (real(m.observed[0]) + real(1))
    rest = real(1) - rate
    allowed = OUTLYING * (real(1) + m.shock[0])
    outlying = False
    for j in range(len(x)):
        if m.completes:
            # missing inputs are skipped; the weight of a value depends only on the number of values of its input
            if m.absent[j] != 0:
                continue
            if m.values_seen[j] < m.input_horizon:
                m.values_seen[j] += 1
            rate = real(2) / (real(m.values_seen[j]) + real(1))
            rest = real(1) - rate
        difference = x[j] - m.mean[j]
        # an input that was constant so far is not clipped, because it may just have begun to move
        if (m.values_seen[j] if m.completes else m.observed[0]) > m.input_warmup and m.variance[j] > real(0):
            most = allowed / m.scale[j]
            outlying = outlying or absolute(difference) > most
            difference = bounded(difference, most)
        m.mean[j] += rate * difference
        # no term is negative, so rounding cannot make the variance negative
        m.variance[j] = rest * (m.variance[j] + rate * (difference * difference))
        m.scale[j] = scale_of(m.variance[j])
    m.shock[0] = shaken(m.shock[0], outlying)


@kernel
def choose_otherwise(m: Staged, x: Real[DIM]) -> Bool:
    """Write to m.other the rule's input with outlying values treated the other way: clipped instead of replaced by held
    values, or replaced instead of clipped.  Returns whether any input is outlying.  O(D)."""
    found = False
    for j in range(len(x)):
        m.other[j] = m.x[j]
        if outlies(m, x, j):
            found = True
            m.other[j] = held(m, j)
            if m.evidence[j] > EVIDENCE_NEEDED:
                m.other[j] = bounded((x[j] - m.mean[j]) * m.scale[j], m.clip)
    return found


@kernel
def gather_evidence(m: Staged, x: Real[DIM], gain: Real) -> None:
    """Update the evidence for each outlying input, and store the standardised values of the other inputs.  O(D).

    gain: the result of try_otherwise().
    """
    for j in range(len(x)):
        if outlies(m, x, j):
            better = -gain if m.evidence[j] > EVIDENCE_NEEDED else gain
            m.evidence[j] = bounded(m.evidence[j] + EVIDENCE_RATE * (better - m.evidence[j]), real(1))
        elif not m.keeps_latest:
            m.held_input[j] = m.x[j]


@kernel
def keep_latest(m: Staged, x: Real[DIM]) -> None:
    """Store the unscaled values of the inputs that are neither missing nor outlying.  O(D)."""
    for j in range(len(x)):
        if m.absent[j] == 0:
            usual = True
            if m.standardises:
                usual = not outlies(m, x, j)
            elif m.values_seen[j] < m.input_horizon:
                m.values_seen[j] += 1
            if usual:
                m.latest_input[j] = x[j]


# ------------------------------------------------------------------------------------------------------- labels


@kernel
def average(m: Staged, y: Real[OUTPUTS]) -> None:
    """Add the label to its running mean."""
    if m.averaged[0] < m.center_horizon:
        m.averaged[0] += 1
    rate = real(2) / (real(m.averaged[0]) + real(1))
    for o in range(len(y)):
        m.center[o] = bounded(m.center[o] + rate * (y[o] - m.center[o]), real(2) * m.label_limit)


@kernel
def warms_up(m: Staged) -> Bool:
    """Whether the rule must still wait for the statistics of the inputs."""
    return m.standardises and m.observed[0] < m.input_warmup


@kernel
def warm_up(m: Staged, x: Real[DIM], y: Real[OUTPUTS]) -> Bool:
    """If the rule must still wait, update the statistics of inputs and labels.  Returns whether the rule must wait."""
    waits = warms_up(m)
    if waits:
        if m.keeps_latest:
            keep_latest(m, x)
        observe(m, x)
        if m.centers:
            average(m, y)
    return waits


@kernel
def settle_inputs(m: Staged, x: Real[DIM]) -> None:
    """Update the statistics of the inputs after the rule has learned the sample."""
    if m.keeps_latest:
        keep_latest(m, x)
    if m.standardises:
        observe(m, x)


@kernel
def lead(m: Staged, x: Real[DIM], o: Index) -> Real:
    """m + l(x) of output o.  x: the input that is passed to the rule.  O(D)."""
    total = real(0)
    if m.centers:
        total = m.center[o]
    if m.leads:
        total = plus_product(total + m.slopes[o, len(x)], m.slopes[o], x, len(x))
    return total


@kernel
def trust(m: Staged, o: Index) -> Real:
    """The gain g, which measures how reliable the rule has been: from 0 (not at all) to 1 (fully)."""
    if m.answers_judged[0] < TRUSTED or not (m.strength[o] > real(0)):
        return real(1)
    return clipped(m.agreement[o] / m.strength[o], real(0), real(1))


@kernel
def noise(m: Staged) -> Real:
    """The ratio of the labels' noise to the variance that can be learned: u / (1 - u) with u = E |r - k|^2 / E |y - m|^2."""
    if m.judged[0] < TRUSTED or not (m.label_power[0] > real(0)):
        return m.noise_first
    left = real(0)
    for o in range(len(m.left_power)):
        left += m.left_power[o]
    u = clipped(left / m.label_power[0], real(0), real(1))
    known = real(1) - u
    if known < m.noise_known:
        known = m.noise_known
    return clipped(u / known, m.noise_low, m.noise_high)


@kernel
def combine(m: Staged, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = m + l(x) + g y.  O(D) for each output."""
    for o in range(len(y)):
        if m.gains:
            y[o] = trust(m, o) * y[o]
        if m.centers or m.leads:
            y[o] = lead(m, x, o) + y[o]


@kernel
def clamp(m: Staged, y: Real[OUTPUTS]) -> None:
    """Clip y to the range from low to high."""
    for o in range(len(y)):
        y[o] = clipped(y[o], m.low, m.high)


@kernel
def farthest(m: Staged, x: Real[DIM], most: Real[OUTPUTS]) -> None:
    """Compute the largest accepted distance between a residual and the rule's own prediction; a residual further away
    is clipped to this distance.  x: the input that is passed to the rule.  O(D)."""
    allowed = m.label_clip * (real(1) + m.label_shock[0])
    if m.standardises:
        explained = False
        for j in range(len(x)):
            explained = explained or absolute(x[j]) >= m.clip
        if explained:
            allowed = EXPLAINED * allowed
    for o in range(len(most)):
        most[o] = LOUD * m.remainder_limit
        if m.judged[0] >= TRUSTED and m.left_power[o] > real(0):
            most[o] = allowed * (m.label_limit * (PART_OF_LIMIT * sqrt(m.left_power[o])))


@kernel
def remain(m: Staged, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS]) -> None:
    """Compute the residual that the rule has to learn: r = y - m - l(x), clipped to its limit.  O(D) for each output.

    The first label is its own mean, so its residual is 0.
    """
    for o in range(len(y)):
        r[o] = bounded(y[o] - lead(m, x, o), m.remainder_limit)
        if m.centers and m.averaged[0] == 0:
            r[o] = real(0)
    if m.limits:
        farthest(m, x, m.most)


@kernel
def judge_rule(m: Staged, y: Real[OUTPUTS], r: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """Update the means from which the gain is computed."""
    if m.answers_judged[0] < m.gain_horizon:
        m.answers_judged[0] += 1
    rate = real(2) / (real(m.answers_judged[0]) + real(1))
    for o in range(len(y)):
        left = r[o]
        said = k[o]
        if m.verdict[0] == GIVEN:
            left = bounded(y[o] - m.given_lead[o], m.remainder_limit)
            said = m.given_value[o]
        answered = bounded(said * m.label_unit, LOUD_PARTS)
        agreement = m.agreement[o] + rate * (left * m.label_unit * answered - m.agreement[o])
        m.agreement[o] = bounded(agreement, LARGEST_POWER)
        strength = m.strength[o] + rate * (answered * answered - m.strength[o])
        m.strength[o] = clipped(strength, real(0), LARGEST_POWER)


@kernel
def judge(m: Staged, y: Real[OUTPUTS], r: Real[OUTPUTS], k: Real[OUTPUTS], rate: Real) -> None:
    """Update the means that compare the rule's own predictions k with the residuals r."""
    if m.gains and m.verdict[0] <= GIVEN:
        judge_rule(m, y, r, k)
    if m.limits or m.estimates_noise:
        for o in range(len(y)):
            left = bounded((r[o] - k[o]) * m.label_unit, LOUD_PARTS)
            m.left_power[o] = clipped(m.left_power[o] + rate * (left * left - m.left_power[o]), real(0), LARGEST_POWER)
    if m.estimates_noise:
        spread = real(0)
        for o in range(len(y)):
            away = y[o]
            if m.centers:
                away = y[o] - m.center[o]
            away = away * m.label_unit
            spread += away * away
        m.label_power[0] = clipped(m.label_power[0] + rate * (spread - m.label_power[0]), real(0), LARGEST_POWER)


@kernel
def conclude(m: Staged, x: Real[DIM], y: Real[OUTPUTS], r: Real[OUTPUTS], k: Real[OUTPUTS]) -> None:
    """Update the stages after the rule has learned r, whose distance from the rule's own prediction k was clipped to
    m.most.  O(D) for each output."""
    for o in range(len(y)):
        m.learned[o] = y[o]
    if m.limits:
        outlying = False
        for o in range(len(y)):
            if r[o] >= k[o] + m.most[o] or r[o] <= k[o] - m.most[o]:
                outlying = True
                # the clipped label is near the prediction, which may be outside the range of labels
                m.learned[o] = bounded(lead(m, x, o) + r[o], m.label_limit)
        m.label_shock[0] = shaken(m.label_shock[0], outlying)
    if m.judges:
        if m.judged[0] < m.gain_horizon:
            m.judged[0] += 1
        judge(m, m.learned, r, k, real(2) / (real(m.judged[0]) + real(1)))
    if m.leads:
        share = m.linear_eta / plus_product(real(1), x, x, len(x))
        for o in range(len(y)):
            step = share * r[o]
            for j in range(len(x)):
                m.slopes[o, j] = bounded(m.slopes[o, j] + step * x[j], m.linear_limit)
            m.slopes[o, len(x)] = bounded(m.slopes[o, len(x)] + step, m.linear_limit)
    if m.centers:
        average(m, m.learned)


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def valid_inputs(m: Staged) -> Bool:
    """Whether the scale of each input matches its variance, and whether the number of its values is possible.  O(D)."""
    if not m.completes and m.observed[0] == 0:
        return True
    for j in range(len(m.mean)):
        if m.completes:
            if m.values_seen[j] > m.observed[0]:
                return False
        if m.completes and m.values_seen[j] == 0:
            if m.mean[j] != real(0) or m.variance[j] != real(0) or m.scale[j] != real(0):
                return False
        elif m.scale[j] != scale_of(m.variance[j]):
            return False
    return True


@kernel
def valid_stages(m: Staged, blank: Bool) -> Bool:
    """Return whether samples within their limits can produce this state of the stages.  During the warm-up, this requires
    that the rule has learned nothing.

    blank: whether the rule has learned nothing yet.  O(D) for each output.
    """
    if m.standardises:
        if m.observed[0] < m.input_warmup and not blank:
            return False
        if not valid_inputs(m):
            return False
    if m.keeps_latest:
        for j in range(len(m.latest_input)):
            if m.values_seen[j] == 0 and m.latest_input[j] != real(0):
                return False
    return True
