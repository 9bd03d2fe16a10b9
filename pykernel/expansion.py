"""The kernel expansion under a budget: its memory, its parameters and its value (Mitchinson et al. 2003, section 1)."""

from enum import IntEnum

from pykernel.dialect import DIM, N_MAX, Bool, Config, Constant, Index, Real, Struct, absolute, kernel, real
from pykernel.kernels import gaussian, squared_distance


class Status(IntEnum):
    """What a call did: 0 done, above 0 noteworthy, below 0 refused and the model unchanged."""

    DONE = 0
    ADDED = 1  # the sample became an expansion vector; the budget was not full
    REPLACED = 2  # the sample took the place of the expansion vector that was cheapest to remove
    DISCARDED = 3  # the sample itself was the cheapest to remove; the multipliers took up what they could
    ABSORBED = 4  # the sample was too near to stored ones to be stored; the multipliers took it up
    MERGED = 5  # the sample repeats an expansion vector, whose multiplier took it up
    OBSERVED = 6  # the sample only went into the standardiser, which has seen too few to be of use
    FROZEN = 7  # learning is switched off
    REFRESH_DUE = 8  # the inverse Gram matrix has drifted; a refresh restores it
    REFUSED_INPUT = -1  # an input is not finite or beyond the declared limit
    REFUSED_LABEL = -2  # the label is not finite or beyond the declared limit
    REFUSED_MULTIPLIER = -3  # a multiplier would leave its range: learning diverges; reset, or lower the learning rate


class Metric(IntEnum):
    """What the removal of an expansion vector costs (Mitchinson et al. 2003, section 2)."""

    MAGNITUDE = 0  # |alpha_i|: number truncation, NT
    FKLMS = 1  # 1 - max_j k_ij, eq. 17
    MKLMS = 2  # alpha_i^2 kappa_i: the squared norm of what is lost, after eq. 13


class Projection(IntEnum):
    """How the multipliers that stay make up for the one that goes (Mitchinson et al. 2003, section 2)."""

    NONE = 0
    FKLMS = 1  # eq. 16
    KLMS = 2  # eq. 12


class Expansion(Struct):
    """The model: f(x) = sum_i alpha_i k(v_i, x)."""

    v: Real[N_MAX, DIM]  # expansion vectors
    alpha: Real[N_MAX]  # multipliers
    m: Real[N_MAX, N_MAX]  # a square root of the inverse Gram matrix: m' m = (K + ridge I)^-1
    drift: Real  # largest element of (K + ridge I) m' m - I met since the last refresh
    n: Index  # expansion vectors in use; everything beyond is zero
    probe: Index  # whose row of that matrix is looked at next
    frozen: Index  # 1: learning is switched off


class Work(Struct):
    """Intermediate results.  No update depends on what an earlier one left here; zeros are always valid."""

    x: Real[DIM]  # the sample, standardised
    distance: Real[N_MAX]  # squared distances from the sample to the expansion vectors
    k: Real[N_MAX]  # kernel values between the sample and the expansion vectors
    u: Real[N_MAX]  # (K + ridge I)^-1 k: the sample as a combination of expansion vectors
    p: Real[N_MAX]  # the diagonal, or one column, of (K + ridge I)^-1
    beta: Real[N_MAX]  # the multipliers after this update, until it is certain
    neighbour: Real[N_MAX]  # squared distance of each vector to its nearest one; if not positive, a bound: at least |.|
    nearest_distance: Real  # squared distance from the sample to the nearest expansion vector
    kappa: Real  # Schur complement: how much of the sample the expansion vectors leave over
    nearest: Index  # position of the nearest expansion vector


class OnlineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec``."""

    metric: Metric
    projection: Projection
    decays: bool  # whether rho > 0
    standardises: bool  # whether inputs are standardised on the way
    clamps: bool  # whether predictions are kept between low and high
    limits_step: bool  # whether one sample's multiplier is limited
    gamma: Real  # 1 / (2 sigma^2)
    eta: Real  # learning rate
    keep: Real  # 1 - eta rho: the part of a multiplier that each presentation leaves
    ridge_diagonal: Real  # 1 + ridge, the diagonal of the regularised Gram matrix
    kappa_least: Real  # no Schur complement is smaller, but for rounding
    gate: Real  # a sample is absorbed if no more than this of it (kappa) is new
    gate_distance: Real  # ... if its nearest expansion vector is within this squared distance
    input_limit: Real  # largest |x_j| that is taken
    label_limit: Real  # largest |y| that is taken
    alpha_limit: Real  # largest |alpha| that is stored
    step_limit: Real  # largest |alpha| that one sample may bring
    low: Real  # least prediction
    high: Real  # largest prediction
    clip: Real  # largest standardised input, in standard deviations
    warmup: Index  # samples that the standardiser sees before the model learns
    horizon: Index  # samples that the standardiser's mean and variance reach back
    drift_limit: Real  # a refresh is due above
    rehearsal_input: Real  # width of the self-test's inputs
    rehearsal_label: Real  # width of the self-test's labels


ALPHA_FLOOR = Constant(2.0**-100)
"""Smaller multipliers are stored as zero: a decaying one would end as a subnormal number."""
FAR = Constant(float32=1e38, float64=1e300)
"""Squared distance to a neighbour that does not exist; those within the input limit are smaller."""


@kernel
def within(c: OnlineConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within its limit."""
    for j in range(len(x)):
        # not "> limit": NaN must fail
        if not (absolute(x[j]) <= c.input_limit):
            return False
    return True


@kernel
def expand(s: Expansion, c: OnlineConfig, x: Real[DIM]) -> Real:
    """f(x) = sum_i alpha_i k(v_i, x).  O(N D).  Mitchinson et al. 2003, eq. 1."""
    y = real(0)
    for i in range(s.n[0]):
        y += s.alpha[i] * gaussian(c.gamma, squared_distance(s.v[i], x))
    return y


@kernel
def clipped(x: Real, low: Real, high: Real) -> Real:
    """x, kept between low and high."""
    if x < low:
        return low
    if x > high:
        return high
    return x


@kernel
def answer(c: OnlineConfig, y: Real) -> Real:
    """A prediction as it is given out."""
    if c.clamps:
        return clipped(y, c.low, c.high)
    return y


@kernel
def present(s: Expansion, w: Work, c: OnlineConfig, x: Real[DIM]) -> Real:
    """f(x) as in expand, keeping the distances and kernel values for the update that follows.  O(N D)."""
    y = real(0)
    nearest = 0
    nearest_distance = FAR
    for i in range(s.n[0]):
        distance = squared_distance(s.v[i], x)
        value = gaussian(c.gamma, distance)
        w.distance[i] = distance
        w.k[i] = value
        y += s.alpha[i] * value
        if distance < nearest_distance:
            nearest_distance = distance
            nearest = i
    w.nearest[0] = nearest
    w.nearest_distance[0] = nearest_distance
    return y


@kernel
def settle(a: Real) -> Real:
    """A multiplier as it is stored."""
    if absolute(a) < ALPHA_FLOOR:
        return real(0)
    return a


@kernel
def kept(c: OnlineConfig, a: Real) -> Real:
    """What a presentation leaves of a stored multiplier.  Mitchinson et al. 2003, eq. 5."""
    if c.decays:
        return settle(c.keep * a)
    return a


@kernel
def decay(s: Expansion, c: OnlineConfig) -> None:
    """Decay every multiplier.  Mitchinson et al. 2003, eq. 5."""
    for i in range(s.n[0]):
        s.alpha[i] = kept(c, s.alpha[i])


@kernel
def place(s: Expansion, x: Real[DIM], i: Index) -> None:
    """Make the sample expansion vector i.  Mitchinson et al. 2003, eq. 3."""
    for j in range(len(x)):
        s.v[i, j] = x[j]


@kernel
def acceptable(s: Expansion, w: Work, c: OnlineConfig) -> Bool:
    """Whether every multiplier in beta may be stored."""
    for i in range(s.n[0]):
        if not (absolute(w.beta[i]) <= c.alpha_limit):
            return False
    return True


@kernel
def commit(s: Expansion, w: Work) -> None:
    """Store the multipliers in beta."""
    for i in range(s.n[0]):
        s.alpha[i] = w.beta[i]
