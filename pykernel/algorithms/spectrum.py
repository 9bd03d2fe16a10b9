"""A sparse spectrum with learned frequencies: f(x) = u sum_i a_i cos(w_i'x / sigma) + b_i sin(w_i'x / sigma).

Random Fourier features (A. Rahimi, B. Recht, Random Features for Large-Scale Kernel Machines, 2007) need hundreds of
frequencies, which are drawn at random and stay fixed.  If frequencies are adapted to the data (M. Lazaro-Gredilla et al., Sparse
Spectrum Gaussian Process Regression, JMLR 11, 2010), 4 to 16 are enough.  The initial values of the frequencies are
either drawn from the spectrum of a Gaussian kernel, with the seed in the spec, or fixed.  Frequencies are learned
together with the weights a and b, by one of two updates.

EKF: a decoupled extended Kalman filter (S. Singhal, L. Wu 1989; G. V. Puskorius, L. A. Feldkamp, Decoupled Extended Kalman
Filter Training of Feedforward Layered Networks, 1991).  The weights and frequencies of a block of sinusoids have a covariance P;
with h = df / d(a, b, w), g = P h, and s = R + sum over blocks of h'g,

    (a, b, w) <- (mu a, mu b, w) + g e / s,    P <- lambda (P - g g' / s) + (1 - lambda) P0.

Here f and the error e are in units of u, R is the noise, P0 is the prior of P, and mu is the factor ``shrink``, which
is slightly below 1.  P - g g' / s is between 0 and P, so P stays between (1 - lambda) P0 and P0.  Rounding cannot take
P out of this range, but damaged memory can; a block whose P is outside is reset.  In directions that inputs do not
excite, P returns to its prior, so it neither grows nor vanishes.

NLMS: steps along the gradient, normalised by its squared length, without any matrix.

Several outputs share the frequencies.  Each output has its own weights and its own unit u.  This unit is the square
root of the running mean of the output's squared labels, but it is updated only when this root differs from the unit by
more than a factor of two.  When frequencies are updated, each output's error has weight 1 / outputs.
"""

from enum import IntEnum

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import bounded, clipped, cosine, sine
from pykernel.algorithms.extents import FEATURES, GROUP_SIZE, GROUPS, PACKED
from pykernel.algorithms.frame import Framed, Status, hear
from pykernel.algorithms.packed import symmetric_downdate, symmetric_times
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.stages import PART_OF_LIMIT, PARTS, noise
from pykernel.algorithms.vectors import all_zero, plus_product, zero
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

WEIGHT_MOST = Constant(1024.0)
"""Largest |a| and |b|, in units of u; their prior standard deviation is 1."""
ERROR_MOST = Constant(1024.0)
"""Errors are clipped to this many times u."""
POWER_MOST = Constant(5.0 * PARTS**2)
"""Upper limit of the mean square of labels.  A label minus its mean is at most twice the label's limit, so its square is
at most 4 PARTS^2; the rest is room for rounding."""
POWER_LEAST = Constant(2.0**-120)
"""A mean square of at most this is treated as zero: there is nothing to learn."""
UNIT_MOST = Constant(4.0 * PARTS)
FREQUENCY_MOST = Constant(32.0)
"""Largest |w_ij|; in the spectrum of a Gaussian kernel, almost no frequency is above 5."""
SETTLED = 40
"""If the stages do not clip labels, the square of a label is clipped to USUAL times the mean square after this many
labels, so that no single outlier changes the unit."""
USUAL = Constant(25.0)
SUITED = Constant(4.0)
"""If the stages do not clip labels: largest |a| and |b| after a change to a smaller unit."""
UNCERTAIN = Constant(0.3)
"""Gradient steps are divided by 1 + min(UNCERTAIN * noise, SLOWEST)."""
SLOWEST = Constant(30.0)


class SpectrumStatus(IntEnum):
    """Spectra have no statuses of their own."""


class Update(IntEnum):
    """How weights and frequencies are updated."""

    EKF = 0  # decoupled extended Kalman filter
    NLMS = 1  # normalised gradient


FIRST = "counted started"
"""Each rule has one of these fields, which is above 0 once a label has been learned."""


class Waves(Struct):
    """The model is f(x) = u sum_i a_i cos(w_i'x / sigma) + b_i sin(w_i'x / sigma)."""

    frequencies: between(Real[FEATURES, DIM], -FREQUENCY_MOST, FREQUENCY_MOST, after=FIRST)  # w
    a: between(Real[OUTPUTS, FEATURES], -WEIGHT_MOST, WEIGHT_MOST, after=FIRST)  # a, in units of u
    b: between(Real[OUTPUTS, FEATURES], -WEIGHT_MOST, WEIGHT_MOST, after=FIRST)  # b


class Spectrum(Struct):
    """The covariance of the waves' parameters, and the unit of each output."""

    # P of each block of sinusoids, row by row up to the diagonal; a sinusoid has a row for a, one for b, and one for each input
    covariance: between(Real[GROUPS, PACKED], "-covariance_limit", "covariance_limit", after="counted")
    unit: between(Real[OUTPUTS], 0, UNIT_MOST, after="counted")  # u, in units of 2^-40 of the label's limit
    # running mean of the squared labels; labels are in units of 2^-40 of their limit
    power: between(Real[OUTPUTS], 0, POWER_MOST, after="counted")
    counted: between(Index, 0, "power_horizon")  # number of labels in the running mean, at most its horizon

    units = (("unit", "label_unit", 1), ("power", "label_unit", 2))


class SpectrumWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    # derivatives of f / u for each block: for each sinusoid the cosine, the sine and, for a Kalman filter, slope x / sigma
    h: Real[GROUPS, GROUP_SIZE]
    g: Real[GROUPS, GROUP_SIZE]  # P h of each block


class SpectrumConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.spectrum``."""

    update: Update
    start: Real[FEATURES, DIM]  # frequencies before the first sample
    group: Index  # number of sinusoids in a block
    prior: Real[GROUP_SIZE]  # diagonal of P0
    forgetting: Real  # lambda for each update; a sample has one update for each output
    renewal: Real  # 1 - lambda
    # factor by which each sample multiplies the weights, so that the weights return to their prior, as P does
    shrink: Real
    noise: Real  # R, if the noise is not estimated
    covariance_limit: Real  # largest |P_ij|
    eta: Real  # gradient: learning rate of the weights
    frequency_share: Real  # gradient: learning rate of the frequencies, divided by that of the weights
    turns: Real  # 1 / (2 pi sigma)
    inverse_width: Real  # 1 / sigma
    share: Real  # 1 / outputs
    power_horizon: Index  # horizon of the labels' mean square, in labels

    tunable = frozenset("noise forgetting renewal shrink eta frequency_share power_horizon".split())


class WavesModel(Framed):
    parts = Waves, SpectrumWork, SpectrumConfig


class SpectrumModel(WavesModel):
    parts = (Spectrum,)


# ------------------------------------------------------------------------------------------------------- answers


@kernel
def phase(m: WavesModel, i: Index, x: Real[DIM]) -> Real:
    """w_i'x / sigma, in turns.  O(D)."""
    return m.turns * plus_product(real(0), m.frequencies[i], x, len(x))


@kernel
def add_waves(m: WavesModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Add the sinusoids to y, without storing them.  O(N D), and O(N) for each output."""
    for i in range(len(m.frequencies)):
        turns = phase(m, i, x)
        c = cosine(turns)
        s = sine(turns)
        for o in range(len(y)):
            y[o] += m.a[o, i] * c + m.b[o, i] * s


@kernel
def keep_waves(m: WavesModel, x: Real[DIM]) -> None:
    """Add the sinusoids to m.error, and keep them in m.h.  The sums have the same bits as in ``add_waves``.  O(N D),
    and O(N) for each output."""
    for block in range(len(m.h)):
        at = 0
        for k in range(m.group):
            i = block * m.group + k
            turns = phase(m, i, x)
            m.h[block, at] = cosine(turns)
            m.h[block, at + 1] = sine(turns)
            for o in range(len(m.y)):
                m.error[o] += m.a[o, i] * m.h[block, at] + m.b[o, i] * m.h[block, at + 1]
            at += len(x) + 2


@kernel
def weigh(m: SpectrumModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x).  O(N D), and O(N) for each output."""
    zero(y, len(y))
    add_waves(m, x, y)
    for o in range(len(y)):
        y[o] = m.label_limit * (PART_OF_LIMIT * m.unit[o] * y[o])


# ------------------------------------------------------------------------------------------------------ learning


@kernel
def renew(m: SpectrumModel, block: Index) -> None:
    """Reset P of a block to the prior.  O(B^2)."""
    zero(m.covariance[block], len(m.covariance[0]))
    at = 0
    for i in range(len(m.prior)):
        m.covariance[block, at + i] = m.prior[i]
        at += i + 1


@kernel
def tune(m: WavesModel) -> None:
    """Set the frequencies to their initial values.  O(N D)."""
    for i in range(len(m.frequencies)):
        for j in range(len(m.start[0])):  # with ``copy``, the table would have to lie in RAM
            m.frequencies[i, j] = m.start[i, j]


@kernel
def begin(m: SpectrumModel) -> None:
    """Prepare for the first sample: set the frequencies to their initial values, and P to the prior.  O(N D)."""
    tune(m)
    if m.update == Update.EKF:
        for block in range(len(m.covariance)):
            renew(m, block)


@kernel
def suits(m: SpectrumModel, o: Index, part: Real) -> Bool:
    """Whether an output's weights may be multiplied by a factor: weights that grow must not exceed SUITED.  O(N)."""
    if part > real(1):
        for i in range(len(m.frequencies)):
            if absolute(part * m.a[o, i]) > SUITED or absolute(part * m.b[o, i]) > SUITED:
                return False
    return True


@kernel
def measure(m: SpectrumModel, o: Index, rate: Real) -> None:
    """Update the mean square of an output's labels with the new label.  If the root of the mean square differs from the unit
    by more than a factor of two, the root becomes the new unit.  O(N).

    If the stages do not clip labels, and the weights would be large in the new unit, the old unit is kept until the
    model has learned small labels.

    The weights are relative to the unit and change with it, so f stays the same.
    """
    size = m.y[o] * m.label_unit
    square = size * size
    # labels that the stages have clipped are not clipped again here: the limit of the stages doubles with each
    # consecutive outlier, so that the mean square can soon follow labels that stay large
    if not m.limits and m.counted[0] > SETTLED and m.power[o] > POWER_LEAST and square > USUAL * m.power[o]:
        square = USUAL * m.power[o]
    m.power[o] = clipped(m.power[o] + rate * (square - m.power[o]), real(0), POWER_MOST)
    if m.power[o] > POWER_LEAST:
        wanted = sqrt(m.power[o])
        if wanted > real(2) * m.unit[o] or real(2) * wanted < m.unit[o]:
            part = m.unit[o] / wanted
            # rare large labels hardly change the mean square, but need weights that are in range only with the large
            # unit; so the large unit is kept
            if m.limits or suits(m, o, part):
                for i in range(len(m.frequencies)):
                    m.a[o, i] = bounded(part * m.a[o, i], WEIGHT_MOST)
                    m.b[o, i] = bounded(part * m.b[o, i], WEIGHT_MOST)
                m.unit[o] = wanted


@kernel
def slope(m: WavesModel, o: Index, i: Index, block: Index, at: Index) -> Real:
    """The derivative of f / u with respect to the angle of sinusoid i.  Its cosine and sine are in the block's row of
    m.h, beginning at place ``at``."""
    return m.b[o, i] * m.h[block, at] - m.a[o, i] * m.h[block, at + 1]


@kernel
def move(m: WavesModel, o: Index, i: Index, a: Real, b: Real) -> None:
    """Change the weights of sinusoid i."""
    m.a[o, i] = bounded(m.shrink * m.a[o, i] + a, WEIGHT_MOST)
    m.b[o, i] = bounded(m.shrink * m.b[o, i] + b, WEIGHT_MOST)


@kernel
def retune(m: WavesModel, i: Index, j: Index, change: Real) -> None:
    """Change a frequency of sinusoid i."""
    m.frequencies[i, j] = bounded(m.frequencies[i, j] + change, FREQUENCY_MOST)


@kernel
def spread(m: SpectrumModel, o: Index, block: Index, x: Real[DIM]) -> Real:
    """Compute g = P h for a block, and return h'g.  O(B^2)."""
    at = 0
    for k in range(m.group):
        bend = slope(m, o, block * m.group + k, block, at)
        for j in range(len(x)):
            m.h[block, at + 2 + j] = bend * (m.inverse_width * x[j])
        at += len(x) + 2
    symmetric_times(m.covariance[block], m.h[block], m.g[block], len(m.prior))
    return plus_product(real(0), m.h[block], m.g[block], len(m.prior))


@kernel
def downdate(m: SpectrumModel, block: Index, inverse: Real) -> None:
    """Update P to lambda (P - inverse g g') + (1 - lambda) P0.  O(B^2 / 2).

    If a diagonal element is below half of the (1 - lambda) P0 that each label adds, or above 1.5 times the corresponding
    element of P0, the block is reset.  It is enough to test the diagonal: if no diagonal element of P - inverse g g' is
    negative, no other element has changed by more than the largest diagonal element of P.
    """
    symmetric_downdate(m.covariance[block], m.g[block], m.forgetting, m.forgetting * inverse, real(0), len(m.prior))
    sound = True
    at = 0
    for i in range(len(m.prior)):
        given = m.renewal * m.prior[i]
        p = m.covariance[block, at + i] + given
        m.covariance[block, at + i] = p
        sound = sound and p >= real(0.5) * given and p <= real(1.5) * m.prior[i]
        at += i + 1
    if not sound:
        renew(m, block)


@kernel
def filter_output(m: SpectrumModel, o: Index, e: Real, x: Real[DIM]) -> None:
    """Learn an error, in units of u, by the extended Kalman filter.  O(N B D), with B = G (D + 2) for blocks of G
    sinusoids."""
    s = m.noise
    if m.estimates_noise:
        s = noise(m)
    for block in range(len(m.covariance)):
        more = spread(m, o, block, x)
        # h'P h can be negative only if memory was overwritten; a negative diagonal element then makes downdate() reset
        # the block
        if not (more >= real(0)):
            m.covariance[block, 0] = -m.prior[0]
            zero(m.g[block], len(m.prior))
            more = real(0)
        s += more
    inverse = real(1) / s
    for block in range(len(m.covariance)):
        at = 0
        for k in range(m.group):
            i = block * m.group + k
            step = e * inverse
            move(m, o, i, step * m.g[block, at], step * m.g[block, at + 1])
            for j in range(len(x)):
                retune(m, i, j, m.share * (step * m.g[block, at + 2 + j]))
            at += len(x) + 2
        downdate(m, block, m.share * inverse)


@kernel
def descend(m: SpectrumModel, o: Index, e: Real, x: Real[DIM]) -> None:
    """Learn an error, in units of u, by a normalised step along the gradient.  O(N D)."""
    bends = real(0)
    for i in range(len(m.frequencies)):
        bend = slope(m, o, i, i, 0)
        bends += bend * bend
    loud = m.noise
    if m.estimates_noise:
        loud = noise(m)
    slower = real(1) + clipped(UNCERTAIN * loud, real(0), SLOWEST)
    square = real(0)
    for j in range(len(x)):
        part = m.inverse_width * x[j]
        square += part * part
    size = real(len(m.frequencies)) + m.frequency_share * (square * bends)
    step = m.eta * e / (size * slower)
    for i in range(len(m.frequencies)):
        along = m.share * (m.frequency_share * (step * slope(m, o, i, i, 0)))
        move(m, o, i, step * m.h[i, 0], step * m.h[i, 1])
        for j in range(len(x)):
            retune(m, i, j, along * (m.inverse_width * x[j]))


@kernel
def learn(m: SpectrumModel, x: Real[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  Returns DONE."""
    if m.counted[0] == 0:
        begin(m)
    zero(m.error, len(m.y))
    keep_waves(m, x)
    for o in range(len(m.y)):
        # this product has the same bits as in weigh()
        m.error[o] = m.label_limit * (PART_OF_LIMIT * m.unit[o] * m.error[o])
    hear(m)
    if m.counted[0] < m.power_horizon:
        m.counted[0] += 1
    rate = real(2) / (real(m.counted[0]) + real(1))
    for o in range(len(m.y)):
        measure(m, o, rate)
        if m.unit[o] > real(0) and not (m.separates and m.error[o] == real(0)):
            e = bounded(m.error[o] * m.label_unit / m.unit[o], ERROR_MOST)
            if m.update == Update.EKF:
                filter_output(m, o, e, x)
            else:
                descend(m, o, e, x)
    return Status.DONE


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def blank(m: SpectrumModel) -> Bool:
    """Whether nothing has been learned yet."""
    return m.counted[0] == 0


@kernel
def keeps(m: SpectrumModel) -> Bool:
    """Whether learning could have led to this state.  [update EKF] O(N D).  [not update EKF] O(N)."""
    for o in range(len(m.unit)):
        # a unit is the square root of a mean square above POWER_LEAST; or it is zero, and so are its weights
        unit = m.unit[o]
        if unit != real(0):
            if not (unit * unit > real(0.5) * POWER_LEAST):
                return False
        elif not all_zero(m.a[o], len(m.frequencies)) or not all_zero(m.b[o], len(m.frequencies)):
            return False
    if m.update == Update.EKF and m.counted[0] > 0:
        for block in range(len(m.covariance)):
            at = 0
            for i in range(len(m.prior)):
                p = m.covariance[block, at]
                if not (p >= real(0.25) * (m.renewal * m.prior[i]) and p <= real(2) * m.prior[i]):
                    return False
                at += i + 2
    return True


SPECTRUM = programs(
    Rule(
        name="spectrum",
        model=SpectrumModel,
        memory=(Waves, Spectrum),
        work=(SpectrumWork,),
        configs=(SpectrumConfig,),
        statuses=SpectrumStatus,
        hooks={frame.answer: weigh, frame.learn: learn, frame.blank: blank, frame.keeps: keeps},
        costs=(
            "O(N D) for N frequencies",
            "[update EKF] O(N G D^2) for blocks of G frequencies.  [not update EKF] O(N D)",
        ),
    )
)
