"""A low-rank subspace of feature space, L = Phi A.  It splits a sample into features and a residual.

F. Sheikholeslami, D. Berberidis, G. B. Giannakis, Large-scale kernel-based feature extraction via budgeted nonlinear
subspace tracking, 2016.  The columns of Phi are the images of N expansion vectors in feature space, and A is N x r.
G = L'L is stored, so that coding a sample needs neither the Gram matrix nor its product with A: v = A'k(x),
q = (G + lambda I)^-1 v.  The residual of the sample is |phi(x) - L q|^2 = k(x, x) - v'q - lambda |q|^2.
"""

from enum import IntEnum

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.hooks import Framed
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value, self_value
from pykernel.algorithms.packed import (
    factorise,
    row_of,
    substitute_backward,
    substitute_forward,
    symmetric_clear,
    symmetric_row,
)
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Constant,
    Index,
    Real,
    Struct,
    between,
    extent,
    kernel,
    real,
    sqrt,
)

RANK = extent("RANK", "number of features, which is the rank r of the subspace")
TRIANGLE = extent("TRIANGLE", "r (r + 1) / 2: size of a packed symmetric r x r matrix")

SMALLEST_SQUARE = Constant(float32=2.0**-90, float64=2.0**-900)
"""Squared lengths up to this are treated as zero.  The reciprocal square root of any larger one is far from overflow."""
OWN_PART_LEAST = Constant(float32=2.0**-16, float64=2.0**-40)
"""The feature of a column of L is zero if at most this fraction of the column's squared length is outside the span of
the earlier columns."""


class Update(IntEnum):
    """How a sample moves the subspace."""

    PARAMETRIC = 0  # stochastic gradient in L: algorithm 2
    NONPARAMETRIC = 1  # stochastic gradient in A: algorithm 3
    HYBRID = 2  # stochastic gradient of the fit in A, and of the ridge in L
    RLS = 3  # recursive least squares in L; the initial L has the weight lambda


class Step(IntEnum):
    """The step length mu."""

    CONSTANT = 0  # 4 eta lambda / k(x, x)
    NORMALISED = 1  # eta / (|q|^2 + rho)
    DECREASING = 2  # eta / sum (|q|^2 + rho)
    AVERAGED = 3  # eta / a fading sum of (|q|^2 + rho)


class Budget(IntEnum):
    """What happens to a vector that is removed."""

    EXACT = 0  # the other vectors replace it as well as they can
    DROP = 1  # it is dropped: algorithm 5


class SubspaceStatus(IntEnum):
    """Status codes that are specific to models that track a subspace.  DONE: the sample was not stored."""

    ADDED = 1  # the sample was stored as an expansion vector; the budget was not full
    REPLACED = 2  # the budget was full: the sample replaced the least important expansion vector
    CENSORED = 3  # the subspace already expresses the sample well, so the sample was not learned


MOST_SEEN = 4_194_304
"""Samples are counted up to this number, which a float32 holds exactly."""
NEW_REGIME = 8
"""This many consecutive strange samples indicate a new regime."""
LOOKS = 256
"""The use of a column of L is measured on this many samples."""
MOST_ODDS = Constant(2.0**20)
"""Largest odds of the censoring threshold, which stays between 1e-6 and 1 - 1e-6."""


class Subspace(Struct):
    """The model is the subspace spanned by L = Phi A.  Phi's columns are the expansion vectors in feature space."""

    v: between(Real[N_MAX, DIM], "-scaled_limit", "scaled_limit")  # expansion vectors: stored samples, scaled
    # A: a[i][j] is the weight of expansion vector i in column j of L
    a: between(Real[N_MAX, RANK], "-2 * row_limit", "2 * row_limit")
    # G = L'L = A'K A, packed; K is the Gram matrix of the expansion vectors
    g: between(Real[TRIANGLE], "-element_limit", "element_limit")
    # T, a square root of the inverse Gram matrix: T'T = P = K^-1.  A packed lower triangle, with room for all vectors and the sample
    root: between(Real[(N_MAX + 1) * (N_MAX + 2) // 2], "-inverse_root_limit", "inverse_root_limit")
    gram: between(Real[PACKED], "-value_bound", "value_bound")  # K, packed
    moments: between(Real[TRIANGLE], "-moment_limit", "moment_limit")  # S = fading sum of q q', packed
    claim: between(Real[N_MAX], 0, 1)  # each vector's claim to stay, which fades with time
    total: between(Real, 0, "moment_limit")  # sum of |q|^2 + rho; steps are divided by it
    # odds t / (1 - t) of the threshold t; samples whose relative residual is at most t are censored
    censor: between(Real, 0, MOST_ODDS)
    known: between(Real, 0, 1)  # mean part of a sample that the subspace expresses
    use: between(Real, 0, LOOKS)  # sum, over samples, of the part that only the examined column expresses
    n: between(Index, 0, N_MAX)  # number of expansion vectors in use; all later places are zero
    rank: between(Index, 0, RANK)  # number of columns of L in use
    seen: between(Index, 0, MOST_SEEN)  # number of samples seen; counting stops at a limit
    strange: between(Index, 0, NEW_REGIME)  # length of the current run of samples that the subspace hardly expresses
    examined: between(Index, 0, RANK - 1)  # the column of L whose use is measured
    looks: between(Index, 0, LOOKS)  # number of samples on which this column has been measured


class SubspaceWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    k: Real[N_MAX]  # kernel values between the expansion vectors and the sample
    l: Real[N_MAX + 1]  # T k; then cosines
    b: Real[N_MAX + 1]  # P k; then sines
    column: Real[N_MAX + 1]  # first a column of P or K, or the diagonal of P; later the values that rotations gather
    s: Real[N_MAX]  # Phi'(phi - L q)
    ks: Real[N_MAX]  # K s
    ka: Real[N_MAX, RANK]  # K A
    c: Real[TRIANGLE]  # factor of G + lambda I or S + lambda I, with the reciprocals of its diagonal
    f: Real[TRIANGLE]  # factor of G, with the reciprocals of its diagonal
    m: Real[RANK, RANK]  # M; an update multiplies A by this matrix
    inner: Real[RANK]  # v = A'k
    q: Real[RANK]  # (G + lambda I)^-1 v
    t: Real[RANK]  # the sample's row of A
    h: Real[RANK]  # products with A or M, or a row of A or G
    u: Real[RANK]  # a row of K A or A, or a column of M
    z: Real[RANK + 1]  # features; then 1
    row: Real[RANK + 1]  # the row that is added to the head's factor
    gain: Real[RANK + 1]  # change in the head's coefficients for an error of 1
    answers: Real[OUTPUTS]  # function values
    own: Real  # k(x, x)
    left: Real  # residual |phi - L q|^2: the part of the sample that the subspace does not express
    score: Real  # novelty: left / k(x, x)
    delta: Real  # the part of the sample that the expansion vectors cannot express
    newest: Real  # the sample's own element of s


class SubspaceConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.subspace``."""

    update: Update
    step: Step
    budget: Budget
    fades: bool  # whether claims fade
    leaks: bool  # whether moments fade
    tolerates: bool  # whether samples with a relative residual below a fixed threshold are censored
    censors: bool  # whether the censoring threshold adapts
    learns_labels: bool  # whether there is a head
    logistic: bool  # whether the head is a logistic regression
    forgets: bool  # whether the head's forgetting factor is below 1
    shrinkage: Real  # lambda, the weight of |q|^2
    root_bound: Real  # 1 / sqrt(lambda); no pivot in the factor of G + lambda I has a larger reciprocal
    eta: Real  # factor of the step length: the spec's eta, multiplied by 4 lambda if the step is constant
    window: Index  # number of latest samples that averages cover; an update applies 1 / window of the ridge
    averaging: Real  # each sample multiplies the sum in the step length by this factor
    memory: Real  # each sample multiplies the moments by this factor
    fading: Real  # beta: each sample multiplies the vectors' claims by this factor
    ald_threshold: Real  # nu: a sample is not stored if at most this part of it is new
    insensitivity: Real  # epsilon: a sample is censored if its relative residual is below this
    more_censoring: (
        Real  # each sample that is not censored multiplies the odds of the censoring threshold by this factor
    )
    less_censoring: Real  # each censored sample multiplies the odds of the censoring threshold by this factor
    dead: Real  # a column of L is treated as empty if its squared length is at most this
    square_limit: Real  # upper limit of the trace of G
    element_limit: Real  # upper limit of the elements of G
    factor_limit: Real  # upper limit of the elements of the factors of G and G + lambda I
    inner_limit: Real  # upper limit of the elements of L'phi
    code_limit: Real  # upper limit of the elements of q
    moment_root: Real  # upper limit of the elements of the moments' factor
    row_limit: Real  # largest element of A
    delta_least: Real  # smallest part of a vector that earlier vectors cannot express; only rounding makes it smaller
    inverse_root_limit: Real  # upper limit of the elements of T and of P k
    length_least: Real  # shorter columns of T are treated as zero; columns of a valid T are far longer
    inverse_limit: Real  # upper limit of the diagonal elements of P, which are sums of squares of elements of T
    inverse_least: Real  # lower limit of the diagonal elements of P
    coordinate_limit: Real  # upper limit of the square root of k(x, x), and so of the elements of C^-1 v
    value_bound: Real  # upper limit of k(x, x)
    scaled_limit: Real  # upper limit of scaled inputs
    moment_limit: Real  # upper limit of the elements of the moments, and of the sum in the step length
    root_ridge: Real  # head: square root of the ridge
    head_ridge: Real  # head: ridge, the weight of |coefficients|^2
    head_eta: Real  # logistic head: 4 eta for two classes, 2 eta for more
    head_least: Real  # head: smallest diagonal element of its factor
    root_forgetting: Real  # head: square root of the forgetting factor
    # head: a row with this element is added to R, so that the ridge stays constant while earlier samples fade
    refill: Real
    coefficient_limit: Real  # head: largest coefficient
    sum_limit: Real  # head: upper limit of the elements of its factor

    tunable = frozenset(
        """tolerates eta ald_threshold insensitivity more_censoring less_censoring fading root_forgetting
        refill coefficient_limit""".split()
    )


class SubspaceModel(Framed):
    parts = Subspace, SubspaceWork, SubspaceConfig, KernelConfig


@kernel
def intact(m: SubspaceModel) -> Bool:
    """Whether n and rank are within their ranges.  If they are, no loop runs past the end of an array, even if memory
    was overwritten."""
    n = m.n[0]
    rank = m.rank[0]
    if n < 0 or n > len(m.v) or rank < 0 or rank > n or rank > len(m.a[0]):
        return False
    # until all columns are in use, each vector starts a column
    return rank == len(m.a[0]) or rank == n


@kernel
def code(m: SubspaceModel) -> None:
    """Compute k, v, q and the residual of the scaled input m.x.  O(N (D + r) + r^3 / 6)."""
    rank = m.rank[0]
    own = self_value(m, m.x)
    for j in range(len(m.q)):
        m.inner[j] = real(0)
        m.q[j] = real(0)
    for i in range(m.n[0]):
        value = kernel_value(m, m.v[i], m.x)
        m.k[i] = value
        for j in range(rank):
            m.inner[j] += value * m.a[i, j]
    factorise(m.g, m.c, rank, m.shrinkage, real(0), real(0.5) * m.shrinkage, m.root_bound, m.factor_limit)
    for j in range(rank):
        # |L'phi|^2 is at most tr(G) k(x, x)
        m.inner[j] = bounded(m.inner[j], m.inner_limit)
        m.q[j] = m.inner[j]
    # |C^-1 v|^2 = v'(G + lambda I)^-1 v is at most k(x, x)
    substitute_forward(m.c, m.q, rank, m.coordinate_limit)
    # |q|^2 is at most k(x, x) / (4 lambda)
    substitute_backward(m.c, m.q, m.q, rank, m.code_limit)
    left = own
    for j in range(rank):
        left = left - (m.inner[j] + m.shrinkage * m.q[j]) * m.q[j]
    # rounding may make the residual negative
    left = clipped(left, real(0), own)
    m.own[0] = own
    m.left[0] = left
    m.score[0] = real(0)
    if own > SMALLEST_SQUARE:
        m.score[0] = clipped(left * (real(1) / own), real(0), real(1))


@kernel
def make_features(m: SubspaceModel) -> None:
    """Compute the features z = R q of the coded sample, where R'R = G.  O(r^3 / 6).

    z'z approximates the kernel.  Unused features are zero.  The features are followed by a constant 1.
    """
    rank = m.rank[0]
    factorise(m.g, m.f, rank, real(0), OWN_PART_LEAST, SMALLEST_SQUARE, real(0), m.factor_limit)
    for j in range(len(m.q)):
        m.z[j] = real(0)
    m.z[len(m.q)] = real(1)
    row = 0
    for i in range(rank):
        # row i of the lower factor R'
        for j in range(i):
            m.z[j] += m.f[row + j] * m.q[i]
        if m.f[row + i] > real(0):
            m.z[i] += m.q[i] * (real(1) / m.f[row + i])
        row = row + i + 1
    for j in range(rank):
        m.z[j] = bounded(m.z[j], m.coordinate_limit)


@kernel
def square(a: Real[RANK]) -> Real:
    """|a|^2."""
    total = real(0)
    for j in range(len(a)):
        total += a[j] * a[j]
    return total


@kernel
def product(a: Real[RANK], b: Real[RANK]) -> Real:
    """a'b."""
    total = real(0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@kernel
def add_square(g: Real[...], scale: Real, a: Real[RANK]) -> None:
    """Add scale times a a' to g, which is packed.  O(r^2 / 2)."""
    row = 0
    for i in range(len(a)):
        weight = scale * a[i]
        for j in range(i + 1):
            g[row + j] += weight * a[j]
        row = row + i + 1


@kernel
def add_products(g: Real[...], scale: Real, a: Real[RANK], b: Real[RANK]) -> None:
    """Add scale times (a b' + b a') to g, which is packed.  O(r^2)."""
    row = 0
    for i in range(len(a)):
        one = scale * a[i]
        other = scale * b[i]
        for j in range(i + 1):
            g[row + j] += one * b[j] + other * a[j]
        row = row + i + 1


@kernel
def start_column(m: SubspaceModel, delta: Real) -> None:
    """Start a new column of L: the part of the sample that the vectors cannot express, scaled to length 1.  O(N)."""
    n = m.n[0]
    inverse = real(1) / sqrt(delta)
    for i in range(n):
        m.a[i, n] = bounded(-(m.b[i] * inverse), m.row_limit)
    m.a[n, n] = clipped(inverse, real(0), m.row_limit)
    m.rank[0] = n + 1


@kernel
def dead_column(m: SubspaceModel) -> Index:
    """The first empty column of L; -1 if there is none.  O(r).

    A column becomes empty when all vectors that have a weight in this column have been removed.  No gradient moves a
    column of zeros.
    """
    at = 0
    for j in range(m.rank[0]):
        if not (m.g[at] > m.dead):
            return j
        at = at + j + 2
    return -1


@kernel
def redundancy(m: SubspaceModel, j: Index) -> Real:
    """Element (j, j) of (G + lambda I)^-1; large if the other columns almost express column j.  O(r^2 / 2)."""
    for i in range(len(m.u)):
        m.u[i] = real(1) if i == j else real(0)
    # column j of C^-1; no element is above 1 / sqrt(lambda)
    substitute_forward(m.c, m.u, len(m.u), m.root_bound)
    return square(m.u)


@kernel
def weakest_column(m: SubspaceModel) -> Index:
    """The column of L that the other columns express best.  O(r^3 / 2)."""
    best = 0
    largest = real(0)
    for j in range(len(m.u)):
        total = redundancy(m, j)
        if total > largest:
            best = j
            largest = total
    return best


@kernel
def restart_column(m: SubspaceModel, r: Index) -> None:
    """Replace column r of L by the part of the sample that the other columns do not express, scaled to the usual length.

    O(N r + r^2).
    """
    # the usual squared length is the mean of G's diagonal, or lambda if lambda is larger
    length = real(0)
    at = 0
    for j in range(len(m.q)):
        length += m.g[at]
        at = at + j + 2
    length = length * (real(1) / real(len(m.q)))
    if not (length > m.shrinkage):
        length = m.shrinkage
    lost = m.q[r]
    m.q[r] = real(0)
    at = row_of(r)
    # L'(phi - L q) is lambda q; if q_r is left out, g_r q_r is added
    symmetric_row(m.g, r, m.h, len(m.h))
    left = m.left[0] + (real(2) * m.shrinkage + m.h[r]) * lost * lost
    scale = sqrt(length) * (real(1) / sqrt(left))
    for i in range(m.n[0]):
        m.a[i, r] = bounded(-(product(m.a[i], m.q) * scale), m.row_limit)
    for i in range(len(m.q)):
        m.t[i] = real(0)
        value = (m.shrinkage * m.q[i] + m.h[i] * lost) * scale
        if i < r:
            m.g[at + i] = value
        elif i == r:
            at = at + r
            m.g[at] = length
        else:
            at = at + i
            m.g[at] = value
    m.t[r] = scale
    if m.update == Update.RLS:
        symmetric_clear(m.moments, r, len(m.q))
