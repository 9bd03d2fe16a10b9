"""The kernel expansion under a budget: its memory, its parameters and its value (Mitchinson et al. 2003, section 1)."""

from enum import IntEnum

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.kernel_choice import KernelConfig, KernelFunction, kernel_value, plain_value
from pykernel.algorithms.kernels import NORM_LEAST, cosine_similarity, gaussian, squared_distance
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
    entry,
    kernel,
    real,
    sqrt,
)


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
    REFUSED_STATE = -9  # a count in the memory is beyond its capacity: it was never initialised, or was overwritten


class Rule(IntEnum):
    """How a sample changes the multipliers."""

    KLMS = 0  # stochastic gradient (Mitchinson et al. 2003, eq. 2-6)
    QKLMS = 1  # the same, but near samples go to the nearest vector (Chen et al. 2012)
    KRLS_T = 2  # recursive least squares that forgets (Van Vaerenbergh et al. 2012)
    FB_KRLS = 3  # least squares on the stored samples (Van Vaerenbergh et al. 2010)
    ALD_KRLS = 4  # recursive least squares on a dictionary that only grows (Engel et al. 2004)


class Metric(IntEnum):
    """What the removal of an expansion vector costs (Mitchinson et al. 2003, section 2)."""

    MAGNITUDE = 0  # |alpha_i|: number truncation, NT
    AGE = 1  # the oldest goes: age truncation, AT
    KLMS = 2  # kappa_i = 1 / P_ii: how much of the vector the others leave over, eq. 13
    MKLMS = 3  # alpha_i^2 kappa_i: the squared norm of what is lost, after eq. 13
    SUP = 4  # |alpha_i| kappa_i: what is lost at the vector's place
    LS = 5  # alpha_i^2 / Q_ii, Q = P^2: the squared loss at the expansion vectors, after eq. 14
    LSREG = 6  # the same with a penalty on the multipliers that are left, eq. 20
    LSRIDGE = 7  # ... which the projection then minimises, too
    FKLMS = 8  # 1 - max_j k_ij, eq. 17
    FMKLMS = 9  # alpha_i^2 (1 - max_j k_ij), eq. 18
    AFKLMS = 10  # 1 - sum_j k_ij^2, section 5
    AFMKLMS = 11  # alpha_i^2 (1 - sum_j k_ij^2), section 5


class Projection(IntEnum):
    """How the multipliers that stay make up for the one that goes (Mitchinson et al. 2003, section 2)."""

    NONE = 0
    KLMS = 1  # eq. 12
    FKLMS = 2  # eq. 16
    LS = 3  # eq. 14
    LSRIDGE = 4  # eq. 14 for eq. 20
    BOUNDED = 5  # eq. 16, where vectors crowd divided by the sum of the parts


class Tie(IntEnum):
    """Which of equally cheap vectors goes."""

    SMALLER = 0  # the one of the smaller |alpha|; of equals, a stored one before the newest
    NEWEST = 1
    OLDEST = 2


class Expansion(Struct):
    """The model: f(x) = sum_i alpha_i k(v_i, x)."""

    v: Real[N_MAX, DIM]  # expansion vectors
    diagonal: Real[N_MAX]  # k(v, v), before it is normalised
    alpha: Real[N_MAX, OUTPUTS]  # multipliers
    m: Real[N_MAX, N_MAX]  # a square root of the inverse Gram matrix: m' m = P = (K + ridge I)^-1
    inverse: Real[N_MAX, N_MAX]  # P, for LS
    squared: Real[N_MAX, N_MAX]  # Q = P^2, for LSREG
    z_re: Real[N_MAX, N_MAX]  # real part of Z = (K + ridge I + i sqrt(mu) I)^-1
    z_im: Real[N_MAX, N_MAX]  # its imaginary part
    deficit: Real[N_MAX, N_MAX]  # what was learned of the function's covariance at the vectors: prior - posterior
    covariance: Real[N_MAX, N_MAX]  # of the multipliers, for ALD-KRLS
    overlap: Real[N_MAX]  # sum_j k_ij^2, j other than i
    claim: Real[N_MAX]  # what each vector's claim to stay has faded to since a sample came near
    neighbour: Real[N_MAX]  # distance of each vector to its nearest one; if not positive, a bound: at least |.|
    power: Real  # variance of the function, in squares of the label limit: what the labels' errors suggest
    weight: Real  # number of samples behind it
    drift: Real  # largest element of (K + ridge I) m' m - I met since the last refresh
    age: Index[N_MAX]  # samples learned since the vector was stored or repeated
    n: Index  # expansion vectors in use; everything beyond is zero
    probe: Index  # whose cached numbers are looked at next
    frozen: Index  # 1: learning is switched off


class Work(Struct):
    """Intermediate results.  No update depends on what an earlier one left here; zeros are always valid.

    Where the newest sample competes with the n stored vectors, it is number n.
    """

    x: Real[DIM]  # the sample, standardised
    own: Real  # k(x, x) of the sample, before it is normalised
    norm: Real  # its square root
    y: Real[OUTPUTS]  # what the function should be there
    error: Real[OUTPUTS]  # y - f(x)
    distance: Real[N_MAX]  # squared distances from the sample to the expansion vectors
    k: Real[N_MAX]  # kernel values between the sample and the expansion vectors
    u: Real[N_MAX + 1]  # P k, the sample as a combination of expansion vectors, and -1
    p: Real[N_MAX + 1]  # one column of P
    q: Real[N_MAX + 1]  # one column of Q
    score: Real[N_MAX + 1]  # what the candidates' scores are made of
    t_re: Real[N_MAX + 1]  # Z k and -1
    t_im: Real[N_MAX + 1]
    h: Real[N_MAX]  # deficit u, or covariance u
    ph: Real[N_MAX]  # P h
    row: Real[N_MAX]  # squared distances from one vector to the others
    step: Real[OUTPUTS]  # the sample's multipliers, where there is no beta
    beta: Real[N_MAX + 1, OUTPUTS]  # the multipliers after this update, until it is certain
    shrunk: Real[N_MAX + 1, OUTPUTS]  # beta - mu W beta, of LSRIDGE
    nearest_distance: Real  # squared distance from the sample to the nearest expansion vector
    kappa: Real  # Schur complement: how much of the sample the expansion vectors leave over
    inverse_kappa: Real  # 1 / kappa; 0 where the newest sample does not compete
    s_re: Real  # 1 / the Schur complement of Z
    s_im: Real
    spread: Real  # posterior variance of the function at the sample, in parts of its prior variance; ALD-KRLS: 1 + u'h
    nearest: Index  # position of the nearest expansion vector
    newest: Index  # whether the newest sample competes


class OnlineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.online``."""

    rule: Rule
    metric: Metric
    projection: Projection
    tie: Tie
    single: bool  # whether there is one output
    separates: bool  # whether the label is a class: no error where it is clear enough
    decays: bool  # whether rho > 0
    forgets: bool  # whether forgetting < 1
    relabels: bool  # whether every sample moves the labels of the vectors near it
    standardises: bool  # whether inputs are standardised on the way
    clamps: bool  # whether predictions are kept between low and high
    limits_step: bool  # whether one sample's multiplier is limited
    stages: bool  # whether multipliers after the presentation are kept in beta
    rounds: bool  # whether vectors are also removed without the newest sample among the candidates
    before: bool  # whether room is made before a presentation
    newest_only: bool  # whether only the newest sample may go
    thresholds: bool  # whether vectors go as soon as their score is at most lambda_max
    truncates_small: bool  # whether small multipliers are dropped
    truncates_old: bool  # whether old vectors are dropped
    keeps_factor: bool  # whether m is kept
    keeps_inverse: bool  # whether P is kept
    keeps_squared: bool  # whether Q is kept
    keeps_complex: bool  # whether Z is kept
    keeps_neighbours: bool  # whether nearest neighbours are known
    keeps_overlap: bool  # whether sums of squared kernel values are kept
    keeps_ages: bool  # whether ages are kept
    fades: bool  # whether claims to stay fade
    keeps_diagonal: bool  # whether k(v, v) is kept: the kernel is normalised by it
    radial: bool  # whether k(a, b) depends on a - b only, and is never below 0
    eta: Real  # learning rate
    keep: Real  # 1 - eta rho: the part of a multiplier that each presentation leaves
    forgetting: Real  # the part of what was learned that each presentation leaves
    root_forgetting: Real  # its square root
    noise: Real  # variance of a label's noise, in parts of the function's variance
    noise_least: Real  # the least of it, in parts of the function's variance at a sample
    label_scale: Real  # 1 / label_max_abs
    power_limit: Real  # far above the function's variance, in squares of the label limit
    ridge_diagonal: Real  # 1 + ridge, the diagonal of the regularised Gram matrix
    kappa_least: Real  # no Schur complement is smaller, but for rounding
    ald_threshold: Real  # a sample is absorbed if no more than this of it (kappa) is new
    ald_distance: Real  # ... if its nearest expansion vector is within this squared distance
    penalty: Real  # weight C of the squared multipliers, eq. 20
    root_mu: Real  # the square root of mu, its weight beside the sum of squares
    fading: Real  # what a sample leaves of the claims of vectors that it is not near to
    lambda_max: Real  # scores up to this go
    truncate_below: Real  # multipliers smaller than this are dropped
    truncate_age: Index  # vectors this old are dropped
    removals: Index  # most vectors that an update removes, beyond the one whose place the sample takes
    label_max_abs: Real  # largest |y| that is taken
    alpha_limit: Real  # largest |alpha| that is stored
    step_limit: Real  # largest |alpha| that one sample may bring
    low: Real  # least prediction
    high: Real  # largest prediction
    clip: Real  # largest standardised input, in standard deviations
    warmup: Index  # samples that the standardiser sees before the model learns
    horizon: Index  # samples that the standardiser's mean and variance reach back
    drift_limit: Real  # a refresh is due above
    classes: Index  # how many classes there are
    rehearsal_input: Real  # width of the self-test's inputs
    rehearsal_label: Real  # width of the self-test's labels


FRESH = Constant(4.0)
"""A vector's claim to stay when it is stored, or when a sample repeats it.  It begins to count when it is below 1."""
FAINT = Constant(2.0**-60)
"""Claims fade down to this."""
ALPHA_FLOOR = Constant(2.0**-100)
"""Smaller multipliers are stored as zero: a decaying one would end as a subnormal number."""
LARGEST_FACTOR = Constant(float32=2.0**12, float64=2.0**32)
"""Far above any element of a factor of (K + ridge I)^-1, and of P k: both are 1 / sqrt(ridge) at most."""
LARGEST_ELEMENT = Constant(float32=2.0**20, float64=2.0**60)
"""Far above any element of P and Z, which are 1 / ridge and 1 / sqrt(mu) at most; its square, of Q."""
SMALLEST_DIAGONAL = Constant(2.0**-40)
"""Far below any P_ii, which is 1 / (1 + ridge) or more."""
FAR = Constant(float32=1e38, float64=1e300)
"""Squared distance to a neighbour that does not exist; those within the input limit are smaller."""


@kernel
def as_element(value: Real) -> Real:
    """An element of P as it is stored: learning comes nowhere near the limits, a forged state may."""
    return clipped(value, -LARGEST_ELEMENT, LARGEST_ELEMENT)


@kernel
def as_product(value: Real) -> Real:
    """The same, of Q = P P and of Z."""
    return clipped(value, -(LARGEST_ELEMENT * LARGEST_ELEMENT), LARGEST_ELEMENT * LARGEST_ELEMENT)


@kernel
def intact(s: Expansion) -> Bool:
    """Whether no loop over expansion vectors leaves the memory, whatever lies in it."""
    return s.n[0] >= 0 and s.n[0] <= len(s.v)


@kernel
def within(q: KernelConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within its limit."""
    for j in range(len(x)):
        # not "> limit": NaN must fail
        if not (absolute(x[j]) <= q.input_max_abs):
            return False
    return True


@entry
def alike(s: Expansion, c: OnlineConfig, q: KernelConfig, i: Index, x: Real[DIM], own: Real) -> Real:
    """How alike expansion vector i and an input are: k(v_i, x) / sqrt(k(v_i, v_i) k(x, x)), given own = k(x, x).  O(D).

    k(v_i, x) itself where k(x, x) is 1 for every x.
    """
    if c.keeps_diagonal:
        return cosine_similarity(plain_value(q, s.v[i], x), s.diagonal[i], own)
    return kernel_value(q, s.v[i], x)


@kernel
def measure(w: Work, q: KernelConfig, x: Real[DIM]) -> None:
    """Compute k(x, x) and its root, which is 0 if the sample is nothing to the kernel, as in cosine_similarity().  O(D)."""
    own = plain_value(q, x, x)
    w.own[0] = own
    w.norm[0] = real(0)
    if own > NORM_LEAST:
        w.norm[0] = sqrt(own)


@kernel
def answer(c: OnlineConfig, y: Real) -> Real:
    """A prediction as it is given out."""
    if c.clamps:
        return clipped(y, c.low, c.high)
    return y


@kernel
def expand(s: Expansion, c: OnlineConfig, q: KernelConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x) = sum_i alpha_i k(v_i, x).  O(N D).  Mitchinson et al. 2003, eq. 1."""
    if q.function == KernelFunction.GAUSSIAN:
        if c.single:
            total = real(0)
            for i in range(s.n[0]):
                total += s.alpha[i, 0] * gaussian(q.gamma, squared_distance(s.v[i], x))
            y[0] = answer(c, total)
        else:
            for o in range(len(y)):
                y[o] = real(0)
            for i in range(s.n[0]):
                value = gaussian(q.gamma, squared_distance(s.v[i], x))
                for o in range(len(y)):
                    y[o] += s.alpha[i, o] * value
            for o in range(len(y)):
                y[o] = answer(c, y[o])
    else:
        expand_alike(s, c, q, x, y)


@kernel
def expand_alike(s: Expansion, c: OnlineConfig, q: KernelConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x) for any kernel: sum_i alpha_i k(v_i, x), multiplied by sqrt(k(x, x)) where k is normalised by it.  O(N D)."""
    own = real(1)
    if c.keeps_diagonal:
        own = plain_value(q, x, x)
    for o in range(len(y)):
        y[o] = real(0)
    for i in range(s.n[0]):
        value = alike(s, c, q, i, x, own)
        for o in range(len(y)):
            y[o] += s.alpha[i, o] * value
    for o in range(len(y)):
        if not q.unit:
            # of NORM_LEAST and less, every value above is zero
            if own > NORM_LEAST:
                y[o] = sqrt(own) * y[o]
        y[o] = answer(c, y[o])


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
def place(s: Expansion, x: Real[DIM], i: Index) -> None:
    """Make the sample expansion vector i.  Mitchinson et al. 2003, eq. 3."""
    for j in range(len(x)):
        s.v[i, j] = x[j]


@kernel
def present(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, x: Real[DIM]) -> None:
    """f(x), negated in w.error, with the distances and kernel values for the update that follows.  O(N D)."""
    if q.function == KernelFunction.GAUSSIAN:
        nearest = 0
        nearest_distance = FAR
        total = real(0)
        if not c.single:
            for o in range(len(w.error)):
                w.error[o] = real(0)
        for i in range(s.n[0]):
            distance = squared_distance(s.v[i], x)
            value = gaussian(q.gamma, distance)
            w.distance[i] = distance
            w.k[i] = value
            if c.single:
                total += s.alpha[i, 0] * value
            else:
                for o in range(len(w.error)):
                    w.error[o] -= s.alpha[i, o] * value
            if distance < nearest_distance:
                nearest_distance = distance
                nearest = i
        if c.single:
            w.error[0] = -total
        w.nearest[0] = nearest
        w.nearest_distance[0] = nearest_distance
    else:
        present_alike(s, w, c, q, x)


@kernel
def present_alike(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, x: Real[DIM]) -> None:
    """The same for any kernel, after measure(): kernel values k are normalised, and distances are 1 - |k|.  O(N D)."""
    nearest = 0
    nearest_distance = real(1)
    for o in range(len(w.error)):
        w.error[o] = real(0)
    for i in range(s.n[0]):
        value = alike(s, c, q, i, x, w.own[0])
        distance = real(1) - absolute(value)
        w.distance[i] = distance
        w.k[i] = value
        for o in range(len(w.error)):
            w.error[o] -= s.alpha[i, o] * value
        if distance < nearest_distance:
            nearest_distance = distance
            nearest = i
    if not q.unit:
        for o in range(len(w.error)):
            w.error[o] = w.norm[0] * w.error[o]
    w.nearest[0] = nearest
    w.nearest_distance[0] = nearest_distance


@kernel
def miss(c: OnlineConfig, y: Real, value: Real) -> Real:
    """The error of a value: y - f(x); for a class, none beyond the margin, y f(x) >= 1."""
    if c.separates:
        if y * value >= real(1):
            return real(0)
    return y - value
