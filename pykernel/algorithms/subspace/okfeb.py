"""Online kernel feature extraction on a budget (OKFEB), with a linear model on the features.

F. Sheikholeslami, D. Berberidis, G. B. Giannakis, Large-scale kernel-based feature extraction via budgeted nonlinear
subspace tracking, 2016, algorithms 2 to 5.  The subspace splits each sample into features and a residual.  Unless the
residual is below the censoring threshold, the subspace moves towards the sample.  Then, if the budget is full, the
least important vector is removed.  This vector may be the sample itself.
"""

from dataclasses import replace

from pykernel.algorithms import frame
from pykernel.algorithms.basis.least_squares import RegressionModel
from pykernel.algorithms.elementary import clipped, each_class, softmax
from pykernel.algorithms.frame import Status, hear, refusal, respond, see
from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.subspace.budget import CLAIM_LEAST, border, compare, keeps_gram, project, put, renew, settle
from pykernel.algorithms.subspace.head import (
    Head,
    HeadModel,
    evaluate,
    forget_labels,
    learn_logistic,
    learn_ridge,
    valid_head,
)
from pykernel.algorithms.subspace.state import (
    LOOKS,
    MOST_ODDS,
    MOST_SEEN,
    NEW_REGIME,
    RANK,
    SMALLEST_SQUARE,
    Budget,
    Step,
    Subspace,
    SubspaceConfig,
    SubspaceModel,
    SubspaceStatus,
    SubspaceWork,
    code,
    dead_column,
    intact,
    make_features,
    redundancy,
    restart_column,
    square,
    start_column,
    weakest_column,
)
from pykernel.algorithms.subspace.update import move, shorten
from pykernel.algorithms.subspace.validity import valid_subspace
from pykernel.algorithms.vectors import zero
from pykernel.dialect import CLASSES, DIM, OUTPUTS, Bool, Constant, Index, Real, absolute, kernel, real, sqrt
from pykernel.dialect.program import Entry

STEP_MOST = Constant(1.99)
"""Limit of mu (|q|^2 + rho), where mu is the step length, and rho is the weight of the ridge in the step.  A step
multiplies L's part along q by about 1 - mu (|q|^2 + rho), so a product above 2 would lengthen this part."""

STRANGE = Constant(0.95)
"""A sample can be strange only if its relative residual is above this."""
KNOWN = Constant(0.2)
"""A sample can be strange only if the subspace expresses more than this part of an average sample."""
IDLE = Constant(0.25)
"""A column is idle if, over LOOKS samples, the parts that only this column expresses add up to at most this."""
LEFT = Constant(2.0**-6)
"""An idle column starts again with a sample whose relative residual is above this."""
LOST = Constant(2.0**-10)
"""G is invalid if a diagonal element is below -LOST times the sum of the diagonal's magnitudes."""
MOST_FORGOTTEN = Constant(0.5)
"""The ridge removes at most this part of L in a step."""
LEAST_ODDS = Constant(2.0**-20)

# ---------------------------------------------------------------------------------------------------- questions


@kernel
def novelty(
    m: SubspaceModel,
    x: Real[DIM],
    score: Real[1],
) -> Index:
    """Write the novelty of x to score: the fraction of x that the subspace does not express, from 0 to 1.

    score = |phi(x) - L q|^2 / k(x, x), where phi(x) is the image of x in the kernel's feature space, and L q is the
    approximation of phi(x) in the subspace.  Before the first sample, score is 1.  O(N (D + r) + r^3 / 6).
    Returns DONE, or REFUSED_INPUT with score unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    see(m, x)
    code(m)
    score[0] = m.score[0]
    return Status.DONE


@kernel
def features(
    m: SubspaceModel,
    x: Real[DIM],
    z: Real[RANK],
) -> Index:
    """Write the features of x to z.  The product z(a)'z(b) approximates the kernel k(a, b).  Unused features are zero.

    O(N (D + r) + r^3 / 3).
    Returns DONE, or REFUSED_INPUT with z unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    see(m, x)
    code(m)
    make_features(m)
    for j in range(len(z)):
        z[j] = m.z[j]
    return Status.DONE


@kernel
def answer(m: HeadModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x) = coefficients' (z(x), 1).  Before the first sample, f(x) is 0.  O(N (D + r) + r^3 / 3)."""
    code(m)
    make_features(m)
    evaluate(m, y)


@kernel
def chances(m: HeadModel, x: Real[DIM], p: Real[CLASSES]) -> None:
    """Write the probability of each class to p, by logistic regression."""
    respond(m, x, m.answers)
    softmax(m.answers)
    each_class(m.answers, p)


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def countable(m: SubspaceModel) -> Bool:
    """Whether intact() holds, m.examined is the index of a column, and m.seen is not negative."""
    if m.examined[0] < 0 or m.examined[0] >= len(m.a[0]):
        return False
    return intact(m) and m.seen[0] >= 0


@kernel
def share_of_ridge(m: SubspaceModel) -> Real:
    """One sample's share of the ridge: 1 / min(samples seen, window)."""
    count = m.seen[0]
    if count > m.window:
        count = m.window
    return real(1) / real(count)


@kernel
def step_length(m: SubspaceModel, rho: Real) -> Real:
    """The step length mu.  rho is the weight of the ridge in the step: lambda / min(samples seen, window)."""
    reach = square(m.q) + rho
    most = STEP_MOST * (real(1) / reach)
    mu = m.eta
    if m.step == Step.CONSTANT:
        mu = m.eta * (real(1) / m.own[0])
    if m.step == Step.NORMALISED:
        mu = m.eta * (real(1) / reach)
    if m.step == Step.DECREASING:
        m.total[0] = clipped(m.total[0] + reach, real(0), m.moment_limit)
        mu = m.eta * (real(1) / m.total[0])
    if m.step == Step.AVERAGED:
        m.total[0] = clipped(m.averaging * m.total[0] + reach, real(0), m.moment_limit)
        mu = m.eta * (real(1) / m.total[0])
    return mu if mu < most else most


@kernel
def forgotten(m: SubspaceModel, mu: Real, share: Real) -> Real:
    """mu rho, the part of L that the ridge removes in a step.

    If mu depends on the sample, the part is at most 1 / min(samples seen, window).  Without this limit, a sample far from L
    could erase L.
    """
    part = mu * m.shrinkage * share
    if not (m.unit and m.step == Step.CONSTANT) and part > share:
        part = share
    return part if part < MOST_FORGOTTEN else MOST_FORGOTTEN


@kernel
def odds_of(part: Real) -> Real:
    """part / (1 - part), clipped to the range of a threshold."""
    rest = real(1) - part
    if rest < LEAST_ODDS:
        rest = LEAST_ODDS
    return clipped(part * (real(1) / rest), LEAST_ODDS, MOST_ODDS)


@kernel
def censored(m: SubspaceModel) -> Bool:
    """Whether the subspace expresses the sample so well that learning the sample is unnecessary.  Algorithm 4.

    [censors] Once the budget is full, the threshold adapts to the desired censoring rate.
    """
    if m.tolerates and m.score[0] < m.insensitivity:
        return True
    if m.censors:
        if m.n[0] == len(m.v):
            if m.censor[0] == real(0):
                m.censor[0] = odds_of(m.score[0])
                return False
            enough = not (m.score[0] > m.censor[0] * (real(1) - m.score[0]))
            factor = m.less_censoring if enough else m.more_censoring
            m.censor[0] = clipped(m.censor[0] * factor, LEAST_ODDS, MOST_ODDS)
            return enough
    return False


@kernel
def wonder(m: SubspaceModel) -> None:
    """Count consecutive strange samples.

    A sample is strange if the subspace hardly expresses it, but expresses more of an average sample.
    If a sample is strange, its q, its gradients and its row of A are near zero, so the sample would be removed first.
    Without this count, a regime that has nothing in common with earlier regimes would never be learned.
    """
    if not (m.score[0] > STRANGE and m.known[0] > KNOWN):
        m.strange[0] = 0
    elif m.strange[0] < NEW_REGIME:
        m.strange[0] += 1
    m.known[0] += share_of_ridge(m) * ((real(1) - m.score[0]) - m.known[0])


@kernel
def examine_next(m: SubspaceModel) -> None:
    """Begin to measure the use of the next column of L."""
    m.examined[0] = m.examined[0] + 1 if m.examined[0] + 1 < len(m.a[0]) else 0
    m.looks[0] = 0
    m.use[0] = real(0)


@kernel
def examine(m: SubspaceModel) -> Bool:
    """Whether the examined column of L is idle: without it, the subspace would express LOOKS samples almost as well.  O(r^2 / 2).

    Without column j, the minimum of |phi - L q|^2 + lambda |q|^2 over q would be larger by
    q_j^2 / ((G + lambda I)^-1)_jj.  A column becomes idle when a regime ends, or when it has become a multiple of
    another column.  No gradient step makes an idle column useful again.
    """
    if not (m.own[0] > SMALLEST_SQUARE):
        return False
    j = m.examined[0]
    inverse = redundancy(m, j)
    part = m.q[j] * m.q[j] * (real(1) / inverse)
    m.use[0] += clipped(part * (real(1) / m.own[0]), real(0), real(1))
    if m.looks[0] < LOOKS:
        m.looks[0] += 1
    elif m.use[0] > IDLE:
        examine_next(m)
    return m.looks[0] == LOOKS and not (m.use[0] > IDLE)


@kernel
def compare_first(m: SubspaceModel) -> None:
    """Compute m.b = P k and m.delta, where P is the inverse Gram matrix of the vectors.  O(N r).

    This is valid only while every vector has started a column and L has not changed otherwise.  Then P = A A', so
    P k = A v.
    """
    known = real(0)
    for j in range(m.rank[0]):
        known += m.inner[j] * m.inner[j]
    for i in range(m.n[0]):
        total = real(0)
        for j in range(m.rank[0]):
            total += m.a[i, j] * m.inner[j]
        m.b[i] = total
    m.delta[0] = clipped(m.own[0] - known, real(0), m.own[0])


@kernel
def is_new(m: SubspaceModel) -> Bool:
    """Whether the sample is new enough to be stored.  If it is not, storing it could make the inverse Gram matrix too large."""
    return m.delta[0] > m.ald_threshold * m.own[0] and sqrt(m.delta[0]) * m.inverse_root_limit > real(1)


@kernel
def start(m: SubspaceModel) -> Bool:
    """Start a column of L with the sample, unless the vectors express the sample.  Returns whether a column was started.  O(N^2).

    Gram-Schmidt in feature space: until L changes otherwise, A = chol(K)^-T.
    """
    if m.budget == Budget.DROP:
        compare_first(m)
    else:
        compare(m)
    if not is_new(m):
        return False
    n = m.n[0]
    start_column(m, m.delta[0])
    at = 0
    for j in range(n):
        at = at + j + 1
    for j in range(n):
        m.g[at + j] = real(0)
    m.g[at + n] = real(1)
    if m.budget == Budget.EXACT:
        border(m, n, m.delta[0])
    for j in range(len(m.t)):
        m.t[j] = m.a[n, j]
    m.n[0] = n + 1
    put(m, n)
    return True


@kernel
def learn_sample(m: SubspaceModel, stored: Bool) -> Index:
    """Move L towards the sample.  If ``stored`` is true, store the sample, unless the budget is full and the sample is
    the least important vector.  If ``stored`` is false, keep only the part that the vectors express.

    [not budget DROP] O(N^2 + N (D + r) + r^3).  [budget DROP] O(N (D + r) + r^3).  [update HYBRID] Plus O(N^2).
    [update NONPARAMETRIC] Plus O(N^2 r).  [update RLS] Plus O(N r^2).
    """
    share = share_of_ridge(m)
    mu = step_length(m, m.shrinkage * share)
    move(m, mu, forgotten(m, mu, share), stored)
    learned = Status.DONE
    if stored:
        learned = settle(m)
    elif not keeps_gram(m):
        project(m)
    return learned


@kernel
def adjust(m: SubspaceModel) -> Index:
    """Let the subspace learn the coded sample.

    [not budget DROP] O(N^2 + N (D + r) + r^3).  [budget DROP] O(N (D + r) + r^3).  [update HYBRID] Plus O(N^2).
    [update NONPARAMETRIC] Plus O(N^2 r).  [update RLS] Plus O(N r^2).
    """
    if m.rank[0] < len(m.a[0]):
        started = start(m)
        if started:
            return SubspaceStatus.ADDED
        status = Status.DONE
        # not with budget drop, which would have to store the sample, although nothing in it is new
        if m.budget == Budget.EXACT and m.rank[0] > 0 and m.own[0] > SMALLEST_SQUARE:
            status = learn_sample(m, False)
        return status
    wonder(m)
    idle = examine(m)
    enough = censored(m)
    if enough:
        return SubspaceStatus.CENSORED
    if not (m.own[0] > SMALLEST_SQUARE):
        return Status.DONE
    stored = True
    if m.budget == Budget.EXACT:
        compare(m)
        stored = is_new(m)
    left = m.left[0] if stored else m.left[0] - m.delta[0]
    if left > m.ald_threshold * m.own[0]:
        column = dead_column(m)
        if m.strange[0] >= NEW_REGIME:
            column = weakest_column(m)
        elif column < 0 and idle and m.score[0] > LEFT:
            column = m.examined[0]
        if column >= 0:
            m.strange[0] = 0
            if column == m.examined[0]:
                examine_next(m)
            restart_column(m, column)
            status = Status.DONE
            if stored:
                status = settle(m)
            else:
                project(m)
            return status
    return learn_sample(m, stored)


@kernel
def track(m: SubspaceModel, x: Real[DIM]) -> Index:
    """Learn the input m.x, which is scaled for the kernel.  [learns_labels] First write its features to m.z."""
    code(m)
    if m.learns_labels:
        make_features(m)
    if m.seen[0] < MOST_SEEN:
        m.seen[0] += 1
    if m.fades:
        for i in range(m.n[0]):
            m.claim[i] = clipped(m.fading * m.claim[i], CLAIM_LEAST, real(1))
    status = adjust(m)
    shorten(m)
    if m.budget == Budget.DROP:
        lost = indefinite(m)
        if lost:
            forget_subspace(m)
    return status


@kernel
def indefinite(m: SubspaceModel) -> Bool:
    """Whether rounding errors have made G = A'KA invalid: a diagonal element is clearly below zero.  O(r).

    L can grow when a vector is dropped.  [fades] If the vectors are nearly dependent, L grows without limit, even in
    exact arithmetic.  When rounding errors are as large as the smallest eigenvalue of G, the subspace must start again.
    """
    trace = real(0)
    least = real(0)
    at = 0
    for j in range(m.rank[0]):
        trace += absolute(m.g[at])
        if m.g[at] < least:
            least = m.g[at]
        at = at + j + 2
    return least < -(LOST * trace)


@kernel
def learn_both(m: HeadModel, x: Real[DIM]) -> Index:
    """Let the subspace learn the input, then let the head learn that f(x) should be m.y."""
    rank = m.rank[0]
    status = track(m, x)
    if m.budget == Budget.DROP:
        if m.rank[0] < rank:
            forget_labels(m)
    evaluate(m, m.error)
    hear(m)
    if m.logistic:
        learn_logistic(m, m.head_ridge * share_of_ridge(m))
    else:
        learn_ridge(m)
    return status


# ------------------------------------------------------------------------------------------------------- actions


@kernel
def refresh(m: SubspaceModel) -> Index:
    """Recompute the stored matrices from the expansion vectors.  This removes rounding errors.

    [not budget EXACT] O(N^2 (D + r)).  [budget EXACT] O(N^2 (D + r) + N^3 / 3).
    Returns DONE, or REFUSED_STATE.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    renew(m)
    return Status.DONE


@kernel
def forget_subspace(m: SubspaceModel) -> None:
    """Forget the vectors, L, and all statistics about them."""
    for i in range(len(m.v)):
        zero(m.v[i], len(m.v[0]))
        zero(m.a[i], len(m.a[0]))
        m.claim[i] = real(0)
    for i in range(len(m.g)):
        m.g[i] = real(0)
        m.moments[i] = real(0)
    for i in range(len(m.gram)):
        m.gram[i] = real(0)
    for i in range(len(m.root)):
        m.root[i] = real(0)
    m.total[0] = real(0)
    m.n[0] = 0
    m.rank[0] = 0
    m.known[0] = real(0)
    m.strange[0] = 0
    m.use[0] = real(0)
    m.examined[0] = 0
    m.looks[0] = 0


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def keeps_labels(m: HeadModel) -> Bool:
    """Whether learning could have led to this state of the subspace and the head."""
    return valid_subspace(m) and valid_head(m)


@kernel
def countable_labels(m: HeadModel) -> Bool:
    """Whether countable() holds and m.turn, if it is used, is the index of a coefficient."""
    return countable(m) and (not m.forgets or (m.turn[0] >= 0 and m.turn[0] < len(m.coefficients)))


_ALONE = Rule(
    name="okfeb",
    model=SubspaceModel,
    memory=(Subspace,),
    work=(SubspaceWork,),
    configs=(SubspaceConfig, KernelConfig),
    statuses=SubspaceStatus,
    hooks={
        frame.learn: track,
        frame.intact: countable,
        frame.keeps: valid_subspace,
    },
    costs=(
        "O(N (D + r) + r^3 / 3)",
        "[not budget DROP] O(N^2 + N (D + r) + r^3).  [budget DROP] O(N (D + r) + r^3).  [update HYBRID] Plus O(N^2).  "
        "[update NONPARAMETRIC] Plus O(N^2 r).  [update RLS] Plus O(N r^2)",
    ),
    questions=(Entry("novelty", novelty, "question"), Entry("features", features, "question")),
    actions=(Entry("refresh", refresh, "action"),),
    labels=("none",),
    restarts=True,
    between=("refresh",),
)
_LABELLED = replace(
    _ALONE,
    model=HeadModel,
    memory=(Subspace, Head),
    hooks=_ALONE.hooks
    | {
        SubspaceModel: HeadModel,
        RegressionModel: HeadModel,
        frame.answer: answer,
        frame.chances: chances,
        frame.learn: learn_both,
        frame.intact: countable_labels,
        frame.keeps: keeps_labels,
    },
    calibrated=lambda c: bool(c.logistic),
    labels=("real", "reals", "class"),
)
OKFEB = programs(_ALONE) | programs(_LABELLED)
