"""A sparse spectrum whose frequencies are learned by an extended Kalman filter, in integers.

The model and the filter are those of ``spectrum-ekf`` in ``pykernel.algorithms.spectrum``.  Angles, weights and the unit u are
those of ``pykernel.algorithms.int16.spectrum``.  With the derivatives h of f / u, g = P h, s = R + h'g and t = g / s,

    (a / u, b / u, w) <- (mu a / u, mu b / u, w) + t e / u,    P <- lambda (P - t g') + (1 - lambda) P0.

Here e is the error, R the noise, and mu the factor by which each sample multiplies the weights.  P is the covariance of
``pykernel.algorithms.int16.covariance``.  Each sample needs one division for each output.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.extents import FEATURES
from pykernel.algorithms.frame import Status
from pykernel.algorithms.int16.arithmetic import clip, nearest_shift, part_of, places, size
from pykernel.algorithms.int16.covariance import (
    KNOWN,
    MANTISSA,
    Int16Covariance,
    Int16CovarianceConfig,
    Int16CovarianceModel,
    Int16CovarianceWork,
    condense,
    downdate,
    keeps_covariance,
    make_gain,
    renew,
    shorten,
    spread,
)
from pykernel.algorithms.int16.frame import INT16, hear
from pykernel.algorithms.int16.spectrum import (
    COUNTED,
    PACE,
    Int16Waves,
    Int16WavesConfig,
    Int16WavesModel,
    Int16WavesWork,
    sine,
    slope,
    sound,
    sum_of,
    unit_of,
)
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.spectrum import SpectrumStatus
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Struct,
    between,
    floor_shift,
    index,
    kernel,
    quotient,
    word,
)

TRUSTED = 20
"""Number of labels before the noise is estimated: an estimate from fewer labels would be unreliable."""


class Int16Filter(Struct):
    """The frequencies, which have 32 bits here, and the mean magnitude of the errors.

    A block of P belongs to several waves.  For each wave, the block has a row for a, a row for b, and a row for each input.
    """

    tuned: between(Int[FEATURES, DIM], "-tuned_most", "tuned_most")  # w, in units of 2^-(32 + fine) turns
    left: between(Int[OUTPUTS], 0, "level_most")  # running mean of |y - f(x)|, times level_factor


class Int16FilterConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16_spectrum``."""

    first: Int[FEATURES, DIM]  # frequencies before the first sample
    fine: Index  # frequencies are in units of 2^-(32 + fine) turns for a converted input of 1
    tuned_most: Index  # largest frequency
    octave: Index  # sigma, in the unit of converted inputs, is 2 to this power
    group: Index  # number of waves in a block
    shrinks: Index  # each sample multiplies the weights by 1 - 2^-shrinks
    estimates: bool  # whether the noise is estimated
    noise: Index  # R, until it is estimated
    noise_least: Index
    noise_most: Index
    share: Index  # 1 / number of outputs, times 2^16
    turned: Index  # 1 / sigma in the unit of the frequencies, divided by the number of outputs and by a power of two
    turned_places: Index  # exponent of the power of two in the field ``turned``, plus 16

    tunable = frozenset("noise noise_least noise_most shrinks".split())


class Int16FilterModel(Int16WavesModel, Int16CovarianceModel):
    parts = Int16Filter, Int16FilterConfig


# ------------------------------------------------------------------------------------------------------- answers


@kernel
def turn(m: Int16FilterModel, x: Int16[DIM]) -> None:
    """Write the cosine and the sine of each wave's angle at x to m.c and m.s.  O(N D)."""
    for i in range(len(m.tuned)):
        angle = word(0)
        for j in range(len(x)):
            angle += word(floor_shift(m.tuned[i, j], m.fine)) * word(x[j])
        m.s[i] = sine(angle)
        m.c[i] = sine(angle + 1073741824)


@kernel
def answer(m: Int16FilterModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x).  O(N D), and O(N) for each output."""
    turn(m, x)
    for o in range(len(y)):
        y[o] = sum_of(m, o)


# ------------------------------------------------------------------------------------------------------ learning


@kernel
def begin(m: Int16FilterModel) -> None:
    """Set the frequencies to their initial values, and P to the prior, before the first sample.  O(N B D)."""
    for i in range(len(m.tuned)):
        for j in range(len(m.tuned[0])):
            m.tuned[i, j] = m.first[i, j]
    renew(m)


@kernel
def noise_of(m: Int16FilterModel, o: Index) -> Index:
    """R, the variance of the labels' noise divided by the variance that can be learned: v / (1 - v), where v is estimated as
    (E|y - f(x)| / E|y|)^2."""
    if not m.estimates or m.counted[0] < TRUSTED:
        return m.noise
    # divide both means by the same power of two, so that their squares have 30 bits
    level = clip(m.level[o], 0, m.level_most)
    shift = clip(places(word(level)) - 14, 0, 31)
    whole = clip(floor_shift(level, shift), 0, MANTISSA) + 1
    left = clip(floor_shift(m.left[o], shift), 0, whole)
    known = whole * whole - left * left
    known = known if known > floor_shift(whole * whole, 4) else floor_shift(whole * whole, 4)
    # in units of 2^-15
    part = quotient(left * left, floor_shift(known, 15) + 1)
    return clip(clip(part, 0, 1048576) * 32, m.noise_least, m.noise_most)


@kernel
def derive(m: Int16FilterModel, o: Index, unit: Index, x: Int16[DIM]) -> Index:
    """Write the derivatives of f / u to m.h, in units of 2^-(12 - k), with a k that keeps the sum of |h_i| below
    2^16.  Returns k.  O(N D)."""
    for block in range(len(m.h)):
        at = 0
        for k in range(m.group):
            wave = block * m.group + k
            bend = slope(m, o, wave, unit)
            m.wide[block, at] = nearest_shift(m.c[wave], 3)
            m.wide[block, at + 1] = nearest_shift(m.s[wave], 3)
            for j in range(len(x)):
                m.wide[block, at + 2 + j] = nearest_shift(bend * x[j], m.octave)
            at += len(x) + 2
    return condense(m)


@kernel
def move(m: Int16FilterModel, a: Int, t: Int, step: Int, shift: Index) -> Int:
    """A weight after one sample: the weight is first shrunk, and then moved by a step."""
    before = sound(m, a)
    return clip(
        before - nearest_shift(before, m.shrinks) + nearest_shift(t * step, shift), -m.weight_most, m.weight_most
    )


@kernel
def advance(m: Int16FilterModel, o: Index, unit: Index, scale: Index) -> None:
    """Move weights and frequencies by t e, for t in units of 2^-scale.  O(N D)."""
    # errors are clipped to 4 u
    most = index(word(4) << clip(unit, 0, 28))
    error = clip(m.error[o], -most, most)
    coarse = clip(places(word(size(error))) - 14, 0, 31)
    step = clip(nearest_shift(error, coarse), -MANTISSA, MANTISSA)
    shift = clip(scale - coarse, 0, 31)
    turned = part_of(step, m.turned)
    turned_shift = clip(scale - coarse + unit - m.turned_places, 0, 31)
    for block in range(len(m.h)):
        at = 0
        for k in range(m.group):
            i = block * m.group + k
            m.a[o, i] = move(m, m.a[o, i], m.h[block, at], step, shift)
            m.b[o, i] = move(m, m.b[o, i], m.h[block, at + 1], step, shift)
            for j in range(len(m.tuned[0])):
                before = clip(m.tuned[i, j], -m.tuned_most, m.tuned_most)
                w = before + nearest_shift(m.h[block, at + 2 + j] * turned, turned_shift)
                m.tuned[i, j] = clip(w, -m.tuned_most, m.tuned_most)
            at += len(m.tuned[0]) + 2


@kernel
def filter_output(m: Int16FilterModel, o: Index, unit: Index, x: Int16[DIM]) -> None:
    """Learn from an output's error, by the extended Kalman filter.  O(N B D), with B = G (D + 2) for blocks of G
    waves."""
    coarse = derive(m, o, unit, x)
    fine = 12 - coarse
    lifted = spread(m)
    shortened = shorten(m)
    known = 11 + fine + lifted - shortened
    scale = make_gain(m, known, fine, noise_of(m, o))
    advance(m, o, unit, scale)
    if not m.single:
        for block in range(len(m.h)):
            for i in range(len(m.prior)):
                m.h[block, i] = part_of(m.h[block, i], m.share)
    downdate(m, clip(scale + known - KNOWN, 0, 31))


@kernel
def follow_error(m: Int16FilterModel, o: Index) -> None:
    """Update the running mean of |y - f(x)| with an output's error."""
    left = clip(m.left[o], 0, m.level_most)
    error = clip(size(m.error[o]), 0, m.rest_most)
    moved = left + floor_shift(error * m.level_factor - left, clip(places(word(m.counted[0])), 0, PACE))
    m.left[o] = clip(moved, 0, m.level_most)


@kernel
def learn(m: Int16FilterModel, x: Int16[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  Returns DONE."""
    # the first label becomes the mean that the stages subtract, so the size of the residuals is not known yet
    waits = m.centers and m.count[0] == 0
    if m.counted[0] == 0 and not waits:
        begin(m)
    answer(m, x, m.error)
    hear(m)
    if waits:
        return Status.DONE
    if m.counted[0] < COUNTED:
        m.counted[0] += 1
    for o in range(len(m.y)):
        unit = unit_of(m, o)
        if m.estimates:
            follow_error(m, o)
        if m.level[o] > 0 and not (m.separates and m.error[o] == 0):
            filter_output(m, o, unit, x)
    return Status.DONE


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def keeps(m: Int16FilterModel) -> Bool:
    """Whether learning could have led to this state.  Before the first sample, weights and levels must be zero.
    O(N B D)."""
    for o in range(len(m.level)):
        for i in range(len(m.c)):
            if m.counted[0] == 0 and (m.level[o] != 0 or m.a[o, i] != 0 or m.b[o, i] != 0):
                return False
    return keeps_covariance(m, m.counted[0] > 0)


INT16_SPECTRUM_EKF = programs(
    Rule(
        name="spectrum",
        model=Int16FilterModel,
        memory=(Int16Waves, Int16Covariance, Int16Filter),
        work=(Int16WavesWork, Int16CovarianceWork),
        configs=(Int16WavesConfig, Int16CovarianceConfig, Int16FilterConfig),
        statuses=SpectrumStatus,
        hooks={frame.answer: answer, frame.learn: learn, frame.keeps: keeps},
        costs=("O(N D) for N frequencies", "O(N G D^2) for blocks of G frequencies"),
        stand_ins=INT16,
    )
)
