"""A low-rank subspace of feature space, L = Phi A, and what it makes of a sample: features, and what is left over.

F. Sheikholeslami, D. Berberidis, G. B. Giannakis, Large-scale kernel-based feature extraction via budgeted nonlinear
subspace tracking, 2016: columns of Phi are the feature vectors of N expansion vectors, A is N x r.  G = L'L is kept, so
that coding a sample takes neither the Gram matrix nor its product with A: v = A'k(x), q = (G + lambda I)^-1 v, of the
sample |phi(x) - L q|^2 = k(x, x) - v'q - lambda |q|^2 is left over.
"""

from __future__ import annotations

from enum import IntEnum

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value, rescale, self_value
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
    entry,
    extent,
    kernel,
    real,
    sqrt,
)

RANK = extent("RANK", "features, the rank of the subspace")
TRIANGLE = extent("TRIANGLE", "numbers of a packed symmetric matrix of as many rows as there are features")

SMALLEST_SQUARE = Constant(float32=2.0**-90, float64=2.0**-900)
"""Squared lengths up to this are none: the reciprocal of their root is far from overflow."""
FLAT = Constant(float32=2.0**-16, float64=2.0**-40)
"""A coordinate of G of which those before it leave over less than this part has no feature of its own."""


class Update(IntEnum):
    """How a sample moves the subspace."""

    PARAMETRIC = 0  # stochastic gradient in L: algorithm 2
    NONPARAMETRIC = 1  # stochastic gradient in A: algorithm 3
    HYBRID = 2  # the fit's gradient in A, the ridge's in L
    RLS = 3  # L = sum phi q' (sum q q' + lambda I)^-1, sample by sample


class Step(IntEnum):
    """How far: mu."""

    CONSTANT = 0  # 4 eta lambda / k(x, x)
    NORMALISED = 1  # eta / (|q|^2 + rho)
    DECREASING = 2  # eta / sum (|q|^2 + rho)
    AVERAGED = 3  # the same, of a sum that fades


class Budget(IntEnum):
    """What becomes of a vector that the budget has no place for."""

    EXACT = 0  # the others take over what they can express of it
    DROP = 1  # it is dropped: algorithm 5


class SubspaceStatus(IntEnum):
    """What a call did: 0 done, above 0 noteworthy, below 0 refused and the model unchanged."""

    DONE = 0  # no vector was added: the sample's part in the span was learned
    ADDED = 1  # the sample became an expansion vector; the budget was not full
    REPLACED = 2  # the sample took the place of the expansion vector that the subspace misses least
    CENSORED = 3  # the subspace expresses the sample well enough to learn nothing of it
    NOVEL = 4  # the alarm level is above its threshold
    HELD = 5  # the same, and the subspace did not learn the sample
    REFUSED_INPUT = -1  # an input is not finite or beyond the declared limit
    REFUSED_LABEL = -2  # the label is not finite or beyond the declared limit, or no class
    REFUSED_STATE = -9  # a count in the memory is beyond its capacity: it was never initialised, or was overwritten


class Subspace(Struct):
    """L = Phi A."""

    v: Real[N_MAX, DIM]  # expansion vectors, scaled
    a: Real[N_MAX, RANK]  # A: what each has in each column of L
    g: Real[TRIANGLE]  # G = L'L = A'KA, packed
    p: Real[PACKED]  # P = K^-1, packed
    gram: Real[PACKED]  # K, packed
    moments: Real[TRIANGLE]  # S = sum q q', faded, packed
    claim: Real[N_MAX]  # what each vector's claim to stay has faded to
    total: Real  # sum of |q|^2 + rho, which steps are divided by
    censor: Real  # odds t / (1 - t) of the part that must be left over of a sample, or it is censored
    known: Real  # mean part that is expressed of the window's samples
    use: Real  # sum of what only the examined column expresses of samples, in parts of them
    n: Index  # expansion vectors in use; everything beyond is zero
    rank: Index  # columns of L in use
    seen: Index  # samples that came by, as far as they are counted
    strange: Index  # samples in a row that the subspace hardly expresses
    examined: Index  # the column of L whose use is measured
    looks: Index  # samples that it was measured with
    probe: Index  # the vector whose column of P is corrected next


class SubspaceWork(Struct):
    """Intermediate results.  No call depends on what an earlier one left here; zeros are always valid."""

    x: Real[DIM]  # an input, scaled
    k: Real[N_MAX]  # k(X, x)
    b: Real[N_MAX]  # P k
    column: Real[N_MAX]  # of P or K
    s: Real[N_MAX]  # Phi'(phi - L q)
    ks: Real[N_MAX]  # K s
    ka: Real[N_MAX, RANK]  # K A
    c: Real[TRIANGLE]  # factor of G + lambda I, reciprocals on its diagonal
    f: Real[TRIANGLE]  # factor of G, reciprocals on its diagonal
    m: Real[RANK, RANK]  # what A is multiplied by
    inner: Real[RANK]  # v = A'k
    q: Real[RANK]  # (G + lambda I)^-1 v
    t: Real[RANK]  # the sample's own row of A
    h: Real[RANK]  # products with A, K and P
    u: Real[RANK]  # a row of K A, of A, or a column of M
    z: Real[RANK + 1]  # features, and 1
    row: Real[RANK + 1]  # what is rotated into the head's factor
    gain: Real[RANK + 1]  # how the head's coefficients follow an error
    y: Real[OUTPUTS]  # function values
    target: Real[OUTPUTS]  # what they should be
    error: Real[OUTPUTS]  # what the functions miss it by
    own: Real  # k(x, x)
    left: Real  # |phi - L q|^2
    score: Real  # the same, in parts of k(x, x)
    delta: Real  # what the expansion vectors leave over of the sample
    newest: Real  # the sample's own element of s, of a column of P


class SubspaceConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.subspace``."""

    update: Update
    step: Step
    budget: Budget
    fades: bool  # whether claims fade
    leaks: bool  # whether moments fade
    tolerates: bool  # whether samples are censored below a fixed threshold
    censors: bool  # whether the threshold below which samples are censored adapts
    watches: bool  # whether there are alarms
    adapts: bool  # whether their threshold adapts
    learns_labels: bool  # whether there is a head
    logistic: bool  # whether it is learned by logistic regression
    single: bool  # whether there is one function
    clamps: bool  # whether predictions are kept between low and high
    forgets: bool  # whether the head's forgetting < 1
    shrinkage: Real  # lambda
    root_bound: Real  # 1 / sqrt(lambda), above the reciprocal of any pivot of G + lambda I's factor
    eta: Real  # of the step; constant: 4 eta lambda
    window: Index  # samples that the ridge's share and averages reach back
    averaging: Real  # what a sample leaves of the sum that steps are divided by
    memory: Real  # what a sample leaves of the moments
    fading: Real  # beta: what a sample leaves of each vector's claim
    ald_threshold: Real  # nu: samples are not stored if at most this part of them is new
    insensitivity: Real  # epsilon: samples are censored if less than this part of them is left over
    more_censoring: Real  # what the threshold's odds are multiplied by where a sample is not censored
    less_censoring: Real  # what they are multiplied by where one is censored
    dead: Real  # a column of L has nothing left if its squared length is at most this
    square_limit: Real  # tr G is kept below
    element_limit: Real  # above any element of G
    factor_limit: Real  # above any element of G's factor, and of that of G + lambda I
    inner_limit: Real  # above any element of L'phi
    code_limit: Real  # above any element of q
    moment_root: Real  # above any element of the moments' factor
    row_limit: Real  # largest element of A
    renewal_bound: Real  # above the reciprocal of any pivot of K's factor
    inverse_limit: Real  # above any element of P
    inverse_least: Real  # below any diagonal element of P
    coordinate_limit: Real  # above any element of a factor's solution: the root of any k(x, x)
    value_bound: Real  # above any k(x, x)
    scaled_limit: Real  # above any scaled input
    moment_limit: Real  # above any element of the moments, and any sum that steps are divided by
    root_ridge: Real  # head: square root of |coefficients|^2's weight
    head_ridge: Real  # head: that weight
    head_eta: Real  # logistic head: 4 eta, or with more classes than two 2 eta
    head_least: Real  # head: least diagonal element of its factor
    root_forgetting: Real  # head: square root of what a sample leaves of the earlier ones' weight
    refill: Real  # head: what keeps the ridge as it is when earlier samples fade
    coefficient_limit: Real  # head: largest coefficient
    sum_limit: Real  # head: above any element of its factor
    label_max_abs: Real  # largest |y| that is taken
    low: Real  # least prediction
    high: Real  # largest prediction
    classes: Index  # how many classes there are
    smoothing: Real  # what a score has in the alarm level
    alarm_threshold: Real  # the level above which there is an alarm, where it is fixed
    more_alarm: Real  # what the threshold's odds are multiplied by at an alarm
    less_alarm: Real  # what they are multiplied by where there is no alarm
    warmup: Index  # samples before there are alarms
    relearn_after: Index  # most samples in a row that are not learned
    rehearsed: Index  # samples of the self-test
    rehearsal_input: Real  # width of the self-test's inputs
    rehearsal_label: Real  # width of the self-test's labels


@kernel
def intact(s: Subspace) -> Bool:
    """Whether no loop over expansion vectors or features leaves the memory, whatever lies in it."""
    n = s.n[0]
    rank = s.rank[0]
    if n < 0 or n > len(s.v) or rank < 0 or rank > n or rank > len(s.a[0]):
        return False
    # the first vectors are a column each
    return rank == len(s.a[0]) or rank == n


@kernel
def scaled(w: SubspaceWork, q: KernelConfig, x: Real[DIM]) -> None:
    """The input as the kernel sees it, to w.x.  O(D)."""
    if q.rescales:
        rescale(q, x, w.x)
    else:
        for j in range(len(x)):
            w.x[j] = x[j]


@entry
def code(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """k, v, q of the scaled input w.x, and what L leaves over of it.  O(N (D + r) + r^3 / 6)."""
    rank = s.rank[0]
    own = self_value(q, w.x)
    for j in range(len(w.q)):
        w.inner[j] = real(0)
        w.q[j] = real(0)
    for i in range(s.n[0]):
        value = kernel_value(q, s.v[i], w.x)
        w.k[i] = value
        for j in range(rank):
            w.inner[j] += value * s.a[i, j]
    factorise(s.g, w.c, rank, c.shrinkage, real(0), real(0.5) * c.shrinkage, c.root_bound, c.factor_limit)
    for j in range(rank):
        # |L'phi|^2 is not above tr G k(x, x)
        w.inner[j] = clipped(w.inner[j], -c.inner_limit, c.inner_limit)
        w.q[j] = w.inner[j]
    # |C^-1 v|^2 = v'(G + lambda I)^-1 v is not above k(x, x)
    substitute_forward(w.c, w.q, rank, c.coordinate_limit)
    # and |q|^2 not above k(x, x) / (4 lambda)
    substitute_backward(w.c, w.q, w.q, rank, c.code_limit)
    left = own
    for j in range(rank):
        left = left - (w.inner[j] + c.shrinkage * w.q[j]) * w.q[j]
    # rounding may leave less than nothing
    left = clipped(left, real(0), own)
    w.own[0] = own
    w.left[0] = left
    w.score[0] = real(0)
    if own > SMALLEST_SQUARE:
        w.score[0] = clipped(left * (real(1) / own), real(0), real(1))


@entry
def make_features(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> None:
    """Features z = R q of the sample that was coded, R'R = G; zero beyond those in use; then 1.  O(r^3 / 6).

    z'z approximates the kernel.
    """
    rank = s.rank[0]
    factorise(s.g, w.f, rank, real(0), FLAT, SMALLEST_SQUARE, real(0), c.factor_limit)
    for j in range(len(w.q)):
        w.z[j] = real(0)
    w.z[len(w.q)] = real(1)
    row = 0
    for i in range(rank):
        # row i of the lower factor R'
        for j in range(i):
            w.z[j] += w.f[row + j] * w.q[i]
        if w.f[row + i] > real(0):
            w.z[i] += w.q[i] * (real(1) / w.f[row + i])
        row = row + i + 1
    for j in range(rank):
        w.z[j] = clipped(w.z[j], -c.coordinate_limit, c.coordinate_limit)


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
    """g + scale a a', packed.  O(r^2 / 2)."""
    row = 0
    for i in range(len(a)):
        weight = scale * a[i]
        for j in range(i + 1):
            g[row + j] += weight * a[j]
        row = row + i + 1


@kernel
def add_products(g: Real[...], scale: Real, a: Real[RANK], b: Real[RANK]) -> None:
    """g + scale (a b' + b a'), packed.  O(r^2)."""
    row = 0
    for i in range(len(a)):
        one = scale * a[i]
        other = scale * b[i]
        for j in range(i + 1):
            g[row + j] += one * b[j] + other * a[j]
        row = row + i + 1


@kernel
def start_column(s: Subspace, w: SubspaceWork, c: SubspaceConfig, delta: Real) -> None:
    """A new column of L: what the vectors leave over of the sample, phi - Phi w.b, of length 1.  O(N)."""
    n = s.n[0]
    inverse = real(1) / sqrt(delta)
    for i in range(n):
        s.a[i, n] = clipped(-(w.b[i] * inverse), -c.row_limit, c.row_limit)
    s.a[n, n] = clipped(inverse, real(0), c.row_limit)
    s.rank[0] = n + 1


@kernel
def dead_column(s: Subspace, c: SubspaceConfig) -> Index:
    """The first column of L that has nothing left; -1 if there is none.  O(r).

    No gradient moves a column of zeros; it comes about where all the vectors that it was made of are gone.
    """
    at = 0
    for j in range(s.rank[0]):
        if not (s.g[at] > c.dead):
            return j
        at = at + j + 2
    return -1


@kernel
def redundancy(w: SubspaceWork, c: SubspaceConfig, j: Index) -> Real:
    """Element (j, j) of (G + lambda I)^-1: the reciprocal of what the others leave over of column j.  O(r^2 / 2)."""
    for i in range(len(w.u)):
        w.u[i] = real(1) if i == j else real(0)
    # column j of C^-1, of which no element is above 1 / sqrt(lambda)
    substitute_forward(w.c, w.u, len(w.u), c.root_bound)
    return square(w.u)


@entry
def weakest_column(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> Index:
    """The column of L of which the others leave over least: the largest element of (G + lambda I)^-1's diagonal.  O(r^3 / 2)."""
    best = 0
    largest = real(0)
    for j in range(len(w.u)):
        total = redundancy(w, c, j)
        if total > largest:
            best = j
            largest = total
    return best


@entry
def restart_column(s: Subspace, w: SubspaceWork, c: SubspaceConfig, r: Index) -> None:
    """Column r of L becomes what the others leave over of the sample, phi - L q without q_r, as long as columns are.

    O(N r + r^2).
    """
    # the mean of G's diagonal, or of a subspace that is nothing lambda
    length = real(0)
    at = 0
    for j in range(len(w.q)):
        length += s.g[at]
        at = at + j + 2
    length = length * (real(1) / real(len(w.q)))
    if not (length > c.shrinkage):
        length = c.shrinkage
    lost = w.q[r]
    w.q[r] = real(0)
    at = row_of(r)
    # L'(phi - L q) = lambda q; without q_r it is g_r q_r more
    symmetric_row(s.g, r, w.h, len(w.h))
    left = w.left[0] + (real(2) * c.shrinkage + w.h[r]) * lost * lost
    scale = sqrt(length) * (real(1) / sqrt(left))
    for i in range(s.n[0]):
        s.a[i, r] = clipped(-(product(s.a[i], w.q) * scale), -c.row_limit, c.row_limit)
    for i in range(len(w.q)):
        w.t[i] = real(0)
        value = (c.shrinkage * w.q[i] + w.h[i] * lost) * scale
        if i < r:
            s.g[at + i] = value
        elif i == r:
            at = at + r
            s.g[at] = length
        else:
            at = at + i
            s.g[at] = value
    w.t[r] = scale
    if c.update == Update.RLS:
        symmetric_clear(s.moments, r, len(w.q))
