"""The kernel expansion under a budget: memory, parameters and evaluation (Mitchinson et al. 2003, section 1)."""

from enum import IntEnum

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.hooks import Framed
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
    between,
    kernel,
    real,
    sqrt,
)


class OnlineStatus(IntEnum):
    """Statuses that only models with stored vectors return."""

    ADDED = 1  # the sample was stored as an expansion vector; the budget was not full
    REPLACED = 2  # the sample replaced an expansion vector, usually because the budget was full
    DISCARDED = 3  # the sample was not stored, usually because the budget was full; multipliers may have changed
    ABSORBED = 4  # the sample is similar to the expansion vectors: it was not stored; multipliers changed
    MERGED = 5  # the sample repeats an expansion vector: it was not stored; multipliers changed
    REFUSED_MULTIPLIER = -3  # k(x, x) is so small that the sample could need a multiplier that is too large


class Metric(IntEnum):
    """How the cost of removing an expansion vector is measured (Mitchinson et al. 2003, section 2)."""

    MAGNITUDE = 0  # |alpha_i|: number truncation, NT
    AGE = 1  # the oldest vector is removed: age truncation, AT
    KLMS = 2  # kappa_i = 1 / P_ii: the part of the vector outside the span of the others, eq. 13
    MKLMS = 3  # alpha_i^2 kappa_i: the squared norm of the change of f, from eq. 13
    SUP = 4  # |alpha_i| kappa_i: the change of f at the vector itself
    LS = 5  # alpha_i^2 / Q_ii, where Q = P^2: the sum of the squared changes of f at the vectors, from eq. 14
    LSREG = 6  # LS plus a penalty on the multipliers that stay, eq. 20
    LSRIDGE = 7  # as LSREG, with a projection that minimises LSREG's sum
    FKLMS = 8  # 1 - max_j k_ij, eq. 17
    FMKLMS = 9  # alpha_i^2 (1 - max_j k_ij), eq. 18
    AFKLMS = 10  # 1 - sum_j k_ij^2, section 5
    AFMKLMS = 11  # alpha_i^2 (1 - sum_j k_ij^2), section 5


class Projection(IntEnum):
    """How the other multipliers change to compensate for a removed vector (Mitchinson et al. 2003, section 2)."""

    NONE = 0
    KLMS = 1  # eq. 12
    FKLMS = 2  # eq. 16
    LS = 3  # eq. 14
    LSRIDGE = 4  # as LS, but minimises the penalised sum of eq. 20
    BOUNDED = 5  # eq. 16, where kernel values are divided by the sum of their magnitudes if this sum is above 1


class Tie(IntEnum):
    """Which vector is removed if several have the same smallest cost."""

    SMALLER = 0  # the vector with the smaller |alpha|; if both have the same, a stored vector, not the newest sample
    NEWEST = 1
    OLDEST = 2


FRESH = Constant(4.0)
"""A vector's claim to stay when the vector is stored, or when a sample repeats it.  A claim has an effect only if it is below 1."""
FAINT = Constant(2.0**-60)
"""Claims do not fade below this value."""
ALPHA_FLOOR = Constant(2.0**-100)
"""Smaller multipliers are stored as zero: otherwise a decaying multiplier would become a subnormal number."""
LARGEST_FACTOR = Constant(float32=2.0**12, float64=2.0**32)
"""A limit far above any element of a factor of (K + ridge I)^-1, or of P k.  These elements are at most 1 / sqrt(ridge)."""
LARGEST_ELEMENT = Constant(float32=2.0**20, float64=2.0**60)
"""A limit far above any element of P, which is at most 1 / ridge, and of Z, which is at most 1 / sqrt(mu).  The square of this
limit is far above any element of Q."""
SMALLEST_DIAGONAL = Constant(2.0**-40)
"""A limit far below any P_ii, which is at least 1 / (1 + ridge)."""
LOOSE = Constant(2.0**-6)
"""Tolerance for the inequalities that must hold between a sample and the stored matrices.  Even with the smallest ridge, rounding
errors are below 2^-18 in float32."""
FAR = Constant(float32=1e38, float64=1e300)
"""Stands for the squared distance to the nearest neighbour if there is none.  Distances between inputs within their limit are smaller."""
AGE_MOST = 1_000_000_000
"""Ages stop growing at this number, which fits in int32."""


class Expansion(Struct):
    """The model is f(x) = sum_i alpha_i k(v_i, x).  The expansion vectors v_i are samples that the model stores."""

    v: between(Real[N_MAX, DIM], "-scaled_limit", "scaled_limit")  # expansion vectors
    diagonal: Real[N_MAX]  # k(v, v) before normalisation
    alpha: between(Real[N_MAX, OUTPUTS], "-alpha_limit", "alpha_limit")  # multipliers of the expansion vectors
    # triangles and symmetric matrices are packed, with room for all vectors and one more sample
    # T, a square root of the inverse Gram matrix: T' T = P = (K + ridge I)^-1
    t: between(Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_FACTOR, LARGEST_FACTOR)
    inverse: between(Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_ELEMENT, LARGEST_ELEMENT)  # P, for LS
    # Q = P^2, for LSREG
    squared: between(
        Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_ELEMENT * LARGEST_ELEMENT, LARGEST_ELEMENT * LARGEST_ELEMENT
    )
    # real part of Z = (K + ridge I + i sqrt(mu) I)^-1
    z_re: between(
        Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_ELEMENT * LARGEST_ELEMENT, LARGEST_ELEMENT * LARGEST_ELEMENT
    )
    # imaginary part of Z
    z_im: between(
        Real[(N_MAX + 1) * (N_MAX + 2) // 2], -LARGEST_ELEMENT * LARGEST_ELEMENT, LARGEST_ELEMENT * LARGEST_ELEMENT
    )
    overlap: between(Real[N_MAX], 0, N_MAX * 2)  # sum of k_ij^2 over all j other than i
    # each vector's claim to stay; the claim fades until a sample comes near the vector
    claim: between(Real[N_MAX], 0, FRESH)
    # each vector's distance d to its nearest neighbour; d <= 0 means that the distance is at least |d|
    neighbour: between(Real[N_MAX], -FAR, FAR)
    # number of samples learned since the vector was stored or last repeated by a sample
    age: between(Index[N_MAX], 0, AGE_MOST)
    n: between(Index, 0, N_MAX)  # number of expansion vectors in use; all later elements are zero
    probe: between(Index, 0, N_MAX)  # the next vector whose overlap is recomputed, or whose column of Z is corrected


SEARCHES = 2
"""Largest number of searches for new nearest neighbours in one choice.  Few choices need more searches (docs/records.md, searches)."""


class Work(Struct):
    """Intermediate results.  Every call recomputes them, so they can start at zero.

    If the newest sample competes with the n stored vectors, it is candidate n.
    """

    own: Real  # k(x, x) of the sample before normalisation
    norm: Real  # square root of own
    distance: Real[N_MAX]  # distances from the sample to the expansion vectors: squared (Gaussian kernel) or 1 - |k|
    k: Real[N_MAX]  # kernel values between the sample and the expansion vectors
    l: Real[N_MAX]  # T k: the sample in coordinates in which the Gram matrix is I
    u: Real[N_MAX + 1]  # P k: the sample as a combination of expansion vectors, followed by -1
    p: Real[N_MAX + 1]  # one column of P; then intermediate results of rotations
    q: Real[N_MAX + 1]  # one column of Q, or kernel values; then cosines
    score: Real[N_MAX + 1]  # intermediate results for the candidates' scores; then sines
    t_re: Real[N_MAX + 1]  # real part of Z k, followed by -1
    t_im: Real[N_MAX + 1]  # imaginary part of Z k, followed by 0
    h: Real[N_MAX + 1]  # covariances of f(x) with the coordinates z; then sines
    ph: Real[N_MAX]  # the new mean; then the new multipliers
    loading: Real[N_MAX + 1]  # the sample in coordinates of the covariance's factor; then cosines
    narrowing: Real[N_MAX]  # for each column of the covariance's factor: the number that multiplies the column
    share: Real[N_MAX]  # for each column of the factor: the multiple of the later columns' part of h that is subtracted
    row: Real[N_MAX]  # squared distances (Gaussian kernel) or kernel values from one vector to the others
    step: Real[OUTPUTS]  # new multipliers of the sample
    beta: Real[N_MAX + 1, OUTPUTS]  # new multipliers; copied to alpha when the update is certain
    shrunk: Real[N_MAX + 1, OUTPUTS]  # beta - mu (K^2 + mu I)^-1 beta, for LSRIDGE
    nearest_distance: Real  # distance from the sample to the nearest expansion vector, as in ``distance``
    kappa: Real  # Schur complement: the part of the sample outside the span of the expansion vectors
    inverse_kappa: Real  # 1 / kappa; 0 if the newest sample is not a candidate for removal
    s_re: Real  # real part of the reciprocal of Z's Schur complement
    s_im: Real  # imaginary part of the reciprocal of Z's Schur complement
    label_noise: Real  # variance of a label's noise / variance of the function, where this ratio is estimated
    spread: Real  # posterior variance of the function at the sample / prior variance; ALD-KRLS: noise + l'h
    nearest: between(Index, 0, N_MAX)  # position of the nearest expansion vector
    newest: between(Index, 0, 1)  # 1: the newest sample is a candidate for removal


class OnlineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.online``."""

    metric: Metric
    projection: Projection
    tie: Tie
    decays: bool  # whether rho > 0
    forgets: bool  # whether forgetting < 1
    relabels: bool  # FB-KRLS: whether every sample changes the labels of nearby vectors
    limits_step: bool  # whether the multiplier of a new sample is limited
    drafts: bool  # whether new multipliers are first kept in beta
    rounds: bool  # whether removals also happen when the newest sample is not a candidate
    before: bool  # whether a vector is removed before the sample is learned
    newest_only: bool  # whether only the newest sample may be removed
    thresholds: bool  # whether vectors are removed as soon as their score is at most lambda_max
    truncates_small: bool  # whether vectors with small multipliers are removed
    truncates_old: bool  # whether old vectors are removed
    stores_all: bool  # whether every sample is stored, even one that repeats a vector
    keeps_factor: bool  # whether T is kept
    keeps_inverse: bool  # whether P is kept
    keeps_squared: bool  # whether Q is kept
    keeps_complex: bool  # whether Z is kept
    keeps_neighbours: bool  # whether distances to nearest neighbours are kept
    keeps_overlap: bool  # whether sums of squared kernel values are kept
    keeps_ages: bool  # whether ages are kept
    fades: bool  # whether each vector's claim to stay fades with time
    keeps_diagonal: bool  # whether k(v, v) is kept, because the kernel is normalised
    radial: bool  # whether k(a, b) depends on a - b only, and is never below 0
    eta: Real  # learning rate
    epsilon: Real  # KNLMS: number that is added to k'k
    keep: Real  # 1 - eta rho: each update multiplies the multipliers by this factor
    forgetting: Real  # forgetting factor, by which each update multiplies the covariance
    root_forgetting: Real  # square root of the forgetting factor
    forgotten: Real  # 1 - forgetting: each update adds this multiple of the prior covariance
    unsure: bool  # whether the estimate ``label_noise`` replaces ``noise``
    noise: Real  # variance of a label's noise / variance of the function
    noise_least: Real  # lower bound on the ratio of a label's noise variance to the function's variance at the sample
    label_scale: Real  # 1 / label_max_abs
    power_limit: Real  # limit far above the function's variance, in units of label_max_abs^2
    ridge_diagonal: Real  # 1 + ridge, the diagonal of the regularised Gram matrix
    kappa_least: Real  # smallest Schur complement; only rounding errors could lead to a smaller value
    ald_threshold: Real  # a sample is not stored if kappa is at most this
    ald_distance: Real  # a sample is not stored if its ``distance`` to an expansion vector is at most this
    penalty: Real  # weight C of the squared multipliers, eq. 20
    root_mu: Real  # square root of mu, the weight of the squared multipliers relative to the squared change of f
    fading: Real  # factor by which a sample multiplies the claims of vectors far from the sample
    lambda_max: Real  # vectors whose score is at most this are removed
    truncate_below: Real  # vectors with multipliers below this are removed
    truncate_age: Index  # vectors of this age are removed
    removals: Index  # largest number of vectors that one update removes, not counting the one that the sample replaces
    label_max_abs: Real  # largest magnitude of the values that the rule has to learn
    alpha_limit: Real  # largest |alpha| that is stored
    scaled_limit: Real  # largest magnitude of a scaled input
    step_limit: Real  # largest change of f(x) by a new sample's multiplier

    tunable = frozenset(
        """tie decays forgets limits_step eta epsilon keep forgetting root_forgetting forgotten noise noise_least
        power_limit ald_threshold ald_distance fading lambda_max truncate_below truncate_age removals
        label_max_abs alpha_limit scaled_limit step_limit""".split()
    )


class OnlineModel(Framed):
    parts = Expansion, Work, OnlineConfig, KernelConfig


@kernel
def as_element(value: Real) -> Real:
    """Clip an element of P to its limits.  Learning never exceeds these limits, but a forged snapshot may."""
    return bounded(value, LARGEST_ELEMENT)


@kernel
def as_product(value: Real) -> Real:
    """Clip an element of Q = P P or of Z to its limits."""
    return clipped(value, -(LARGEST_ELEMENT * LARGEST_ELEMENT), LARGEST_ELEMENT * LARGEST_ELEMENT)


@kernel
def intact(m: OnlineModel) -> Bool:
    """Whether the count n is within its range.  If it is, no loop runs past the end of an array, even if other memory was overwritten."""
    return m.n[0] >= 0 and m.n[0] <= len(m.v)


@kernel
def alike(m: OnlineModel, i: Index, x: Real[DIM], own: Real) -> Real:
    """Similarity of expansion vector i and an input: k(v_i, x) / sqrt(k(v_i, v_i) k(x, x)), where own = k(x, x).  O(D).

    Where k(x, x) is 1 for every x, the similarity is k(v_i, x).
    """
    if m.keeps_diagonal:
        return cosine_similarity(plain_value(m, m.v[i], x), m.diagonal[i], own)
    return kernel_value(m, m.v[i], x)


@kernel
def alike_stored(m: OnlineModel, i: Index, j: Index) -> Real:
    """Similarity of expansion vectors i and j, bit for bit equal to the similarity that was computed when j was a sample.  O(D)."""
    if m.function == KernelFunction.GAUSSIAN:
        return gaussian(m.gamma, squared_distance(m.v[i], m.v[j]))
    return alike(m, i, m.v[j], m.diagonal[j])


@kernel
def measure(m: OnlineModel, x: Real[DIM]) -> None:
    """Compute k(x, x) and its square root.  If k(x, x) is very small, the root is set to 0, as in cosine_similarity().  O(D)."""
    own = plain_value(m, x, x)
    m.own[0] = own
    m.norm[0] = real(0)
    if own > NORM_LEAST:
        m.norm[0] = sqrt(own)


@kernel
def expand(m: OnlineModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x) = sum_i alpha_i k(v_i, x).  O(N D).  Mitchinson et al. 2003, eq. 1."""
    if m.function == KernelFunction.GAUSSIAN:
        if m.single:
            total = real(0)
            for i in range(m.n[0]):
                total += m.alpha[i, 0] * gaussian(m.gamma, squared_distance(m.v[i], x))
            y[0] = total
        else:
            for o in range(len(y)):
                y[o] = real(0)
            for i in range(m.n[0]):
                value = gaussian(m.gamma, squared_distance(m.v[i], x))
                for o in range(len(y)):
                    y[o] += m.alpha[i, o] * value
    else:
        expand_alike(m, x, y)


@kernel
def expand_alike(m: OnlineModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x) for any kernel: sum_i alpha_i k(v_i, x), times sqrt(k(x, x)) where k is normalised.  O(N D)."""
    own = real(1)
    if m.keeps_diagonal:
        own = plain_value(m, x, x)
    for o in range(len(y)):
        y[o] = real(0)
    for i in range(m.n[0]):
        value = alike(m, i, x, own)
        for o in range(len(y)):
            y[o] += m.alpha[i, o] * value
    for o in range(len(y)):
        if not m.unit:
            # if own is at most NORM_LEAST, every y[o] is zero already
            if own > NORM_LEAST:
                y[o] = sqrt(own) * y[o]


@kernel
def settle(a: Real) -> Real:
    """A multiplier as it is stored.  Very small multipliers are stored as zero."""
    if absolute(a) < ALPHA_FLOOR:
        return real(0)
    return a


@kernel
def kept(m: OnlineModel, a: Real) -> Real:
    """A stored multiplier after one update's decay.  Mitchinson et al. 2003, eq. 5."""
    if m.decays:
        return settle(m.keep * a)
    return a


@kernel
def place(m: OnlineModel, x: Real[DIM], i: Index) -> None:
    """Store the sample as expansion vector i.  Mitchinson et al. 2003, eq. 3."""
    for j in range(len(x)):
        m.v[i, j] = x[j]


@kernel
def present(m: OnlineModel, x: Real[DIM]) -> None:
    """Write f(x) to m.error, and compute the distances and kernel values that the next update needs.  O(N D)."""
    if m.function == KernelFunction.GAUSSIAN:
        nearest = 0
        nearest_distance = FAR
        total = real(0)
        if not m.single:
            for o in range(len(m.error)):
                m.error[o] = real(0)
        for i in range(m.n[0]):
            distance = squared_distance(m.v[i], x)
            value = gaussian(m.gamma, distance)
            m.distance[i] = distance
            m.k[i] = value
            if m.single:
                total += m.alpha[i, 0] * value
            else:
                for o in range(len(m.error)):
                    m.error[o] += m.alpha[i, o] * value
            if distance < nearest_distance:
                nearest_distance = distance
                nearest = i
        if m.single:
            m.error[0] = total
        m.nearest[0] = nearest
        m.nearest_distance[0] = nearest_distance
    else:
        present_alike(m, x)


@kernel
def present_alike(m: OnlineModel, x: Real[DIM]) -> None:
    """present() for any kernel.  Needs measure().  Kernel values k are normalised, and distances are 1 - |k|.  O(N D)."""
    nearest = 0
    nearest_distance = real(1)
    for o in range(len(m.error)):
        m.error[o] = real(0)
    for i in range(m.n[0]):
        value = alike(m, i, x, m.own[0])
        distance = real(1) - absolute(value)
        m.distance[i] = distance
        m.k[i] = value
        for o in range(len(m.error)):
            m.error[o] += m.alpha[i, o] * value
        if distance < nearest_distance:
            nearest_distance = distance
            nearest = i
    if not m.unit:
        for o in range(len(m.error)):
            m.error[o] = m.norm[0] * m.error[o]
    m.nearest[0] = nearest
    m.nearest_distance[0] = nearest_distance
