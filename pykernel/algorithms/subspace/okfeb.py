"""Online kernel feature extraction on a budget: OKFEB, with a linear model on the features and alarms.

F. Sheikholeslami, D. Berberidis, G. B. Giannakis, Large-scale kernel-based feature extraction via budgeted nonlinear
subspace tracking, 2016, algorithms 2 to 5.  The subspace codes a sample.  If it does not express the sample well
enough, it moves towards the sample.  If the budget is full, the least important vector is then removed; it may be the sample.
"""

from __future__ import annotations

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelConfig, acceptable, winner
from pykernel.algorithms.selftest import strained
from pykernel.algorithms.stages import (
    StageConfig,
    Stages,
    combine,
    conclude,
    farthest,
    forget,
    observe,
    observe_both,
    remain,
    scaled,
    valid_inputs,
    valid_stages,
)
from pykernel.algorithms.subspace.alarms import (
    Monitor,
    above,
    moved,
    odds_of,
    threshold_of,
    valid_monitor,
    watch,
)
from pykernel.algorithms.subspace.budget import FAINT, border, compare, keeps_gram, project, put, renew, settle
from pykernel.algorithms.subspace.head import (
    Head,
    evaluate,
    forget_labels,
    in_turn,
    learn,
    probabilities,
    valid_head,
)
from pykernel.algorithms.subspace.state import (
    LOOKS,
    MOST_SEEN,
    NEW_REGIME,
    RANK,
    SMALLEST_SQUARE,
    Budget,
    Step,
    Subspace,
    SubspaceConfig,
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
from pykernel.dialect import CLASSES, DIM, OUTPUTS, Bool, Constant, Index, Real, absolute, kernel, real
from pykernel.dialect.program import Entry, LabelKind, Program

REACH = Constant(1.99)
"""Largest step length times (|q|^2 + rho).  With 2, a step would change the sign of the part of L for the sample."""

STRANGE = Constant(0.95)
"""A sample is strange if its rest is more than this part of it,"""
KNOWN = Constant(0.2)
"""and if the subspace expresses more than this part of an average sample."""
IDLE = Constant(0.25)
"""The column is idle if the parts that only it expresses sum up to at most this."""
LEFT = Constant(2.0**-6)
"""An idle column starts again with a sample whose rest is more than this part of it."""
MOST_FORGOTTEN = Constant(0.5)
"""The ridge takes at most this part of L in a step."""

# ---------------------------------------------------------------------------------------------------- questions


@kernel
def novelty(
    s: Subspace,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    score: Real[1],
) -> Index:
    """Write to score how new x is: the part of x that the subspace does not express, from 0 to 1.

    score = |phi(x) - L q|^2 / k(x, x).  Before the first sample score is 1.  O(N (D + r) + r^3 / 6).
    Returns DONE, or REFUSED_INPUT with score unchanged.
    """
    if not intact(s):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    scaled(a, f, q, x, w.x)
    code(s, w, c, q)
    score[0] = w.score[0]
    return SubspaceStatus.DONE


@kernel
def features(
    s: Subspace,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    z: Real[RANK],
) -> Index:
    """Write the features of x to z.  The product z(a)'z(b) approximates the kernel k(a, b).  Unused features are zero.

    z = R q, where R is upper triangular and R'R = L'L.  O(N (D + r) + r^3 / 3).
    Returns DONE, or REFUSED_INPUT with z unchanged.
    """
    if not intact(s):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    scaled(a, f, q, x, w.x)
    code(s, w, c, q)
    make_features(s, w, c)
    for j in range(len(z)):
        z[j] = w.z[j]
    return SubspaceStatus.DONE


@kernel
def predict(
    s: Subspace,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    y: Real[OUTPUTS],
) -> Index:
    """Predict: write f(x) = coefficients' (z(x), 1) to y.  O(N (D + r) + r^3 / 3).

    Before the first sample f(x) is 0.
    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not intact(s):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    scaled(a, f, q, x, w.x)
    code(s, w, c, q)
    make_features(s, w, c)
    evaluate(h, w, y)
    combine(a, f, w.x, y)
    return SubspaceStatus.DONE


@kernel
def classify(
    s: Subspace,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    label: Index[1],
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(N (D + r) + r^3 / 3).

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    status = predict(s, h, a, w, c, f, q, x, w.y)
    if status == SubspaceStatus.DONE:
        label[0] = winner(w.y)
    return status


@kernel
def probability(
    s: Subspace,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    p: Real[CLASSES],
) -> Index:
    """Write the probability of each class at x to p.  O(N (D + r) + r^3 / 3).

    Returns DONE, or REFUSED_INPUT with p unchanged.
    """
    status = predict(s, h, a, w, c, f, q, x, w.y)
    if status == SubspaceStatus.DONE:
        probabilities(c, w.y)
        if c.single:
            p[0] = real(1) - w.y[0]
            p[1] = w.y[0]
        else:
            for o in range(len(w.y)):
                p[o] = w.y[o]
    return status


@kernel
def alarm(m: Monitor, c: SubspaceConfig, state: Real[2]) -> Index:
    """Write the alarm level to state[0] and its threshold to state[1].  Returns DONE."""
    state[0] = m.level[0]
    state[1] = threshold_of(m, c)
    return SubspaceStatus.DONE


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def countable(s: Subspace, c: SubspaceConfig) -> Bool:
    """Whether all counts are within their ranges, as intact(), and also the counters of update."""
    if c.budget == Budget.EXACT:
        if s.probe[0] < 0 or s.probe[0] > s.n[0]:
            return False
    if s.examined[0] < 0 or s.examined[0] >= len(s.a[0]):
        return False
    return intact(s) and s.seen[0] >= 0


@kernel
def share_of_ridge(s: Subspace, c: SubspaceConfig) -> Real:
    """One sample's share of the ridge: 1 / min(samples seen, window)."""
    count = s.seen[0]
    if count > c.window:
        count = c.window
    return real(1) / real(count)


@kernel
def step_length(s: Subspace, w: SubspaceWork, c: SubspaceConfig, rho: Real) -> Real:
    """The step length mu."""
    reach = square(w.q) + rho
    most = REACH * (real(1) / reach)
    mu = c.eta
    if c.step == Step.CONSTANT:
        mu = c.eta * (real(1) / w.own[0])
    if c.step == Step.NORMALISED:
        mu = c.eta * (real(1) / reach)
    if c.step == Step.DECREASING:
        s.total[0] = clipped(s.total[0] + reach, real(0), c.moment_limit)
        mu = c.eta * (real(1) / s.total[0])
    if c.step == Step.AVERAGED:
        s.total[0] = clipped(c.averaging * s.total[0] + reach, real(0), c.moment_limit)
        mu = c.eta * (real(1) / s.total[0])
    return mu if mu < most else most


@kernel
def forgotten(c: SubspaceConfig, q: KernelConfig, mu: Real, share: Real) -> Real:
    """mu rho, the part of L that the ridge takes in a step.

    If mu depends on the sample, the part is at most 1 / min(samples seen, window).  Otherwise a sample far from L could
    erase L.
    """
    part = mu * c.shrinkage * share
    if not (q.unit and c.step == Step.CONSTANT):
        if part > share:
            part = share
    return part if part < MOST_FORGOTTEN else MOST_FORGOTTEN


@kernel
def censored(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> Bool:
    """Whether the subspace expresses the sample well enough.  The threshold adapts to the wanted rate.  Algorithm 4."""
    if c.tolerates:
        if w.score[0] < c.insensitivity:
            return True
    if c.censors:
        if s.n[0] == len(s.v):
            if s.censor[0] == real(0):
                s.censor[0] = odds_of(w.score[0])
                return False
            enough = not above(w.score[0], s.censor[0])
            s.censor[0] = moved(s.censor[0], c.less_censoring if enough else c.more_censoring)
            return enough
    return False


@kernel
def wonder(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> None:
    """Count strange samples in a row.  The subspace hardly expresses a strange sample, but expresses most others.

    For such a sample q, every gradient and the sample's row of A are near zero.  So the sample would be removed first.
    Without this count, a regime that has nothing in common with earlier ones would never be learned.
    """
    strange = w.score[0] > STRANGE and s.known[0] > KNOWN
    if not strange:
        s.strange[0] = 0
    elif s.strange[0] < NEW_REGIME:
        s.strange[0] += 1
    s.known[0] += share_of_ridge(s, c) * ((real(1) - w.score[0]) - s.known[0])


@kernel
def examine_next(s: Subspace) -> None:
    """Begin to measure the use of the next column of L."""
    s.examined[0] = s.examined[0] + 1 if s.examined[0] + 1 < len(s.a[0]) else 0
    s.looks[0] = 0
    s.use[0] = real(0)


@kernel
def examine(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> Bool:
    """Whether the examined column of L is idle: the other columns express LOOKS samples almost as well.  O(r^2 / 2).

    Without column j, a sample's rest would be larger by q_j^2 / ((G + lambda I)^-1)_jj.  A column becomes idle when a
    regime ends, or when it has become a multiple of another column.  No gradient changes this.
    """
    if not (w.own[0] > SMALLEST_SQUARE):
        return False
    j = s.examined[0]
    inverse = redundancy(w, c, j)
    part = w.q[j] * w.q[j] * (real(1) / inverse)
    s.use[0] += clipped(part * (real(1) / w.own[0]), real(0), real(1))
    if s.looks[0] < LOOKS:
        s.looks[0] += 1
    elif s.use[0] > IDLE:
        examine_next(s)
    return s.looks[0] == LOOKS and not (s.use[0] > IDLE)


@kernel
def untouched(s: Subspace) -> Bool:
    """Whether L'L = I.  This is so until the first update that moves L.  O(r^2 / 2)."""
    at = 0
    for i in range(s.rank[0]):
        for j in range(i):
            if s.g[at + j] != real(0):
                return False
        if s.g[at + i] != real(1):
            return False
        at = at + i + 1
    return True


@kernel
def compare_first(s: Subspace, w: SubspaceWork) -> None:
    """Compute w.b = P k and w.delta while every vector started a column: then A A' = P and A'k = v.  O(N r)."""
    known = real(0)
    for j in range(s.rank[0]):
        known += w.inner[j] * w.inner[j]
    for i in range(s.n[0]):
        total = real(0)
        for j in range(s.rank[0]):
            total += s.a[i, j] * w.inner[j]
        w.b[i] = total
    w.delta[0] = clipped(w.own[0] - known, real(0), w.own[0])


@kernel
def is_new(w: SubspaceWork, c: SubspaceConfig) -> Bool:
    """Whether the sample is new enough to be stored: otherwise the inverse Gram matrix would get too large."""
    return w.delta[0] > c.ald_threshold * w.own[0] and w.delta[0] * c.inverse_limit > real(1)


@kernel
def start(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Bool:
    """Start a column of L with the sample, if the vectors do not express it.  False: they do.  O(N^2).

    Gram-Schmidt in feature space: A = chol(K)^-T.
    """
    if c.budget == Budget.DROP or untouched(s):
        compare_first(s, w)
    else:
        compare(s, w, c, q)
    fresh = is_new(w, c)
    if not fresh:
        return False
    n = s.n[0]
    start_column(s, w, c, w.delta[0])
    at = 0
    for j in range(n):
        at = at + j + 1
    for j in range(n):
        s.g[at + j] = real(0)
    s.g[at + n] = real(1)
    if c.budget == Budget.EXACT:
        border(s, w, c, n, w.delta[0])
    for j in range(len(w.t)):
        w.t[j] = s.a[n, j]
    s.n[0] = n + 1
    put(s, w, c, n)
    return True


@kernel
def learn_sample(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig, stored: Bool) -> Index:
    """Move L towards the sample.  Store the sample, or the part that the vectors express.  O(N^2 + N (D + r) + r^3)."""
    share = share_of_ridge(s, c)
    mu = step_length(s, w, c, c.shrinkage * share)
    move(s, w, c, mu, forgotten(c, q, mu, share), stored)
    learned = SubspaceStatus.DONE
    if stored:
        learned = settle(s, w, c, q)
    elif not keeps_gram(c):
        project(s, w, c)
    return learned


@kernel
def adjust(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """Let the subspace learn the sample that was coded.  O(N^2 + N (D + r) + r^3), drop without N^2."""
    if s.rank[0] < len(s.a[0]):
        started = start(s, w, c, q)
        if started:
            return SubspaceStatus.ADDED
        status = SubspaceStatus.DONE
        # with budget drop it would be stored, but nothing in it is new
        if c.budget == Budget.EXACT and s.rank[0] > 0 and w.own[0] > SMALLEST_SQUARE:
            status = learn_sample(s, w, c, q, False)
        return status
    wonder(s, w, c)
    idle = examine(s, w, c)
    enough = censored(s, w, c)
    if enough:
        return SubspaceStatus.CENSORED
    if not (w.own[0] > SMALLEST_SQUARE):
        return SubspaceStatus.DONE
    stored = True
    if c.budget == Budget.EXACT:
        compare(s, w, c, q)
        stored = is_new(w, c)
    left = w.left[0] if stored else w.left[0] - w.delta[0]
    if left > c.ald_threshold * w.own[0]:
        column = dead_column(s, c)
        if s.strange[0] >= NEW_REGIME:
            column = weakest_column(s, w, c)
        elif column < 0 and idle and w.score[0] > LEFT:
            column = s.examined[0]
        if column >= 0:
            s.strange[0] = 0
            if column == s.examined[0]:
                examine_next(s)
            restart_column(s, w, c, column)
            status = SubspaceStatus.DONE
            if stored:
                status = settle(s, w, c, q)
            else:
                project(s, w, c)
            return status
    learned = learn_sample(s, w, c, q, stored)
    return learned


@kernel
def track(s: Subspace, m: Monitor, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """Learn the input w.x, as the kernel sees it.  In models with labels, also write its features to w.z."""
    code(s, w, c, q)
    if c.learns_labels:
        make_features(s, w, c)
    alarmed = 0
    if c.watches:
        alarmed = watch(m, c, w.score[0], s.seen[0])
    if s.seen[0] < MOST_SEEN:
        s.seen[0] += 1
    if c.fades:
        for i in range(s.n[0]):
            s.claim[i] = clipped(c.fading * s.claim[i], FAINT, real(1))
    if alarmed == 2:
        return SubspaceStatus.HELD
    status = adjust(s, w, c, q)
    shorten(s, c)
    return SubspaceStatus.NOVEL if alarmed == 1 else status


@kernel
def take(
    s: Subspace,
    m: Monitor,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> Index:
    """Learn the sample x with labels w.target between the stages; both were checked."""
    if f.standardises:
        if a.observed[0] < f.input_warmup:
            observe_both(a, f, x, w.target)
            return SubspaceStatus.OBSERVED
    scaled(a, f, q, x, w.x)
    if f.follows:
        for o in range(len(w.target)):
            w.label[o] = w.target[o]
        remain(a, f, w.x, w.label, w.target)
    status = track(s, m, w, c, q)
    if f.judges:
        evaluate(h, w, w.value)
    if f.limits:
        farthest(a, f, w.x, w.most)
        for o in range(len(w.target)):
            w.target[o] = clipped(w.target[o], w.value[o] - w.most[o], w.value[o] + w.most[o])
    learn(h, w, c, c.head_ridge * share_of_ridge(s, c))
    if f.follows:
        conclude(a, f, w.x, w.label, w.target, w.value, w.most)
    if f.standardises:
        # what is held back is not learned by the scale, either: a lasting fault would become normal
        if status != SubspaceStatus.HELD:
            observe(a, f, x)
    return status


@kernel
def take_input(
    s: Subspace,
    m: Monitor,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> Index:
    """Learn the input x, which was checked."""
    if f.standardises:
        if a.observed[0] < f.input_warmup:
            observe(a, f, x)
            return SubspaceStatus.OBSERVED
    scaled(a, f, q, x, w.x)
    status = track(s, m, w, c, q)
    if f.standardises:
        # what is held back is not learned by the scale, either: a lasting fault would become normal
        if status != SubspaceStatus.HELD:
            observe(a, f, x)
    return status


@kernel
def update(
    s: Subspace,
    m: Monitor,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> Index:
    """Learn one sample x.  O(N^2 + N (D + r) + r^3), with budget drop O(N (D + r) + r^3).

    Returns DONE, ADDED, REPLACED, CENSORED, NOVEL or HELD; or REFUSED_INPUT with nothing changed.
    """
    if not countable(s, c):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    return take_input(s, m, a, w, c, f, q, x)


@kernel
def update_real(
    s: Subspace,
    m: Monitor,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    y: Real,
) -> Index:
    """Learn one sample: the input x, and its label y.  O(N^2 + N (D + r) + r^3), with budget drop O(N (D + r) + r^3).

    Returns DONE, ADDED, REPLACED, CENSORED, NOVEL or HELD; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(s, c) or not in_turn(h, c):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    if not (absolute(y) <= f.label_limit):
        return SubspaceStatus.REFUSED_LABEL
    w.target[0] = y
    return take(s, m, h, a, w, c, f, q, x)


@kernel
def update_reals(
    s: Subspace,
    m: Monitor,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    y: Real[OUTPUTS],
) -> Index:
    """Learn one sample: the input x, and its label y.  O(N^2 + N (D + r) + r^3), with budget drop O(N (D + r) + r^3).

    Returns DONE, ADDED, REPLACED, CENSORED, NOVEL or HELD; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(s, c) or not in_turn(h, c):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    for o in range(len(y)):
        if not (absolute(y[o]) <= f.label_limit):
            return SubspaceStatus.REFUSED_LABEL
    for o in range(len(y)):
        w.target[o] = y[o]
    return take(s, m, h, a, w, c, f, q, x)


@kernel
def update_class(
    s: Subspace,
    m: Monitor,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    label: Index,
) -> Index:
    """Learn one sample: the input x, and its class number label, counted from 0.

    Each class has a function; two classes share the function of the second class.
    O(N^2 + N (D + r) + r^3), with budget drop O(N (D + r) + r^3).
    Returns DONE, ADDED, REPLACED, CENSORED, NOVEL or HELD; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(s, c) or not in_turn(h, c):
        return SubspaceStatus.REFUSED_STATE
    if not acceptable(q, x):
        return SubspaceStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return SubspaceStatus.REFUSED_LABEL
    positive = 1
    for o in range(len(w.target)):
        if not c.single:
            positive = o
        w.target[o] = real(1) if label == positive else real(-1)
    return take(s, m, h, a, w, c, f, q, x)


# ------------------------------------------------------------------------------------------------------- actions


@kernel
def refresh(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """Compute the stored matrices again from the expansion vectors.  This removes rounding errors.

    O(N^2 (D + r)), with budget exact O(N^2 (D + r) + N^3 / 2).
    Returns DONE, or REFUSED_STATE.
    """
    if not intact(s):
        return SubspaceStatus.REFUSED_STATE
    renew(s, w, c, q)
    return SubspaceStatus.DONE


@kernel
def forget_samples(s: Subspace, m: Monitor) -> None:
    """Forget the subspace and the alarm level."""
    for i in range(len(s.v)):
        for j in range(len(s.v[0])):
            s.v[i, j] = real(0)
        for j in range(len(s.a[0])):
            s.a[i, j] = real(0)
        s.claim[i] = real(0)
    for i in range(len(s.g)):
        s.g[i] = real(0)
        s.moments[i] = real(0)
    for i in range(len(s.p)):
        s.p[i] = real(0)
        s.gram[i] = real(0)
    s.total[0] = real(0)
    s.censor[0] = real(0)
    s.n[0] = 0
    s.rank[0] = 0
    s.seen[0] = 0
    s.probe[0] = 0
    s.known[0] = real(0)
    s.strange[0] = 0
    s.use[0] = real(0)
    s.examined[0] = 0
    s.looks[0] = 0
    m.level[0] = real(0)
    m.odds[0] = real(0)
    m.held[0] = 0


@kernel
def restart(s: Subspace, m: Monitor, a: Stages, f: StageConfig) -> Index:
    """Forget everything that the model learned.  O(N^2 + N (D + r)).  Returns DONE."""
    forget_samples(s, m)
    forget(a, f)
    return SubspaceStatus.DONE


@kernel
def restart_all(s: Subspace, m: Monitor, h: Head, a: Stages, f: StageConfig) -> Index:
    """Forget everything that the model learned.  O(N^2 + N (D + r)).  Returns DONE."""
    forget_samples(s, m)
    forget_labels(h)
    forget(a, f)
    return SubspaceStatus.DONE


# -------------------------------------------------------------------------------------- self-test and snapshots


@kernel
def rehearse(
    s: Subspace,
    m: Monitor,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test.  They fill the budget and replace vectors."""
    seed = 1
    for t in range(c.rehearsed):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = c.rehearsal_input * strained(real(seed) / real(65536) - real(0.5))
            if q.rescales:
                x[j] = x[j] / q.scale[j] + q.center[j]
        status = take_input(s, m, a, w, c, f, q, x)
        if status < 0:
            break


@kernel
def rehearse_labels(
    s: Subspace,
    m: Monitor,
    h: Head,
    a: Stages,
    w: SubspaceWork,
    c: SubspaceConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> None:
    """Learn a fixed sequence of made-up samples and labels, for the self-test.  They fill the budget."""
    seed = 1
    for t in range(c.rehearsed):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = c.rehearsal_input * strained(real(seed) / real(65536) - real(0.5))
            if q.rescales:
                x[j] = x[j] / q.scale[j] + q.center[j]
        for o in range(len(w.target)):
            seed = (seed * 75 + 74) % 65537
            w.target[o] = c.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = take(s, m, h, a, w, c, f, q, x)
        if status < 0:
            break


@kernel
def within(a: Real[...], n: Index, limit: Real) -> Bool:
    """Whether every element is a number within the limit."""
    for i in range(n):
        # not "if (.. > limit)": NaN must fail
        if not (absolute(a[i]) <= limit):
            return False
    return True


@kernel
def empty_from(a: Real[...], first: Index, n: Index) -> Bool:
    """Whether all elements from number ``first`` on are zero."""
    for i in range(first, n):
        if a[i] != real(0):
            return False
    return True


@kernel
def valid_subspace(s: Subspace, c: SubspaceConfig) -> Bool:
    """Whether the numbers of the subspace are within their limits, and zero in unused places."""
    n = s.n[0]
    rank = s.rank[0]
    # rank itself, too: a storage may give another number at the next reading
    if not intact(s) or s.seen[0] < n or rank > len(s.a[0]):
        return False
    pairs = 0
    for i in range(len(s.v)):
        if i < n:
            pairs = pairs + i + 1
        rows = within(s.a[i], len(s.a[0]), real(2) * c.row_limit)
        if not rows:
            return False
        if i >= n:
            if not empty_from(s.v[i], 0, len(s.v[0])):
                return False
        if not empty_from(s.a[i], rank if i < n else 0, len(s.a[0])):
            return False
        if c.fades:
            if i < n and s.claim[i] < FAINT:
                return False
            if i >= n and s.claim[i] != real(0):
                return False
    columns = 0
    for j in range(rank):
        columns = columns + j + 1
    if not empty_from(s.g, columns, len(s.g)):
        return False
    if c.budget == Budget.EXACT:
        if not empty_from(s.p, pairs, len(s.p)):
            return False
        if s.probe[0] > n:
            return False
    if keeps_gram(c):
        if not empty_from(s.gram, pairs, len(s.gram)):
            return False
    return True


@kernel
def valid_rest(s: Subspace, m: Monitor, c: SubspaceConfig) -> Bool:
    """Whether learning could have led to these sums, thresholds and levels."""
    if s.use[0] > real(s.looks[0]):
        return False
    if c.watches:
        return valid_monitor(m, c)
    return True


@kernel
def valid(s: Subspace, m: Monitor, a: Stages, c: SubspaceConfig, f: StageConfig, q: KernelConfig) -> Bool:
    """Whether learning could have led to this state: all numbers must be within limits.  O(N^2 + N (D + r))."""
    if not (valid_subspace(s, c) and valid_rest(s, m, c)):
        return False
    if f.standardises:
        return valid_inputs(a, f, q.input_max_abs)
    return True


@kernel
def valid_all(s: Subspace, m: Monitor, h: Head, a: Stages, c: SubspaceConfig, f: StageConfig, q: KernelConfig) -> Bool:
    """Whether learning could have led to this state: all numbers must be within limits.  O(N^2 + N (D + r))."""
    if not (valid_subspace(s, c) and valid_rest(s, m, c) and valid_head(h, c)):
        return False
    return valid_stages(a, f, q.input_max_abs)


ALARMS = (SubspaceStatus.NOVEL, SubspaceStatus.HELD)


def _watches(c: SubspaceConfig) -> bool:
    return bool(c.watches)


def _logistic(c: SubspaceConfig) -> bool:
    return bool(c.logistic)


def _labelled(*learning: Entry) -> Program:
    return Program(
        name="okfeb",
        structs=(Subspace, Monitor, Head, Stages, SubspaceWork),
        persistent=(Subspace, Monitor, Head, Stages),
        configs=(SubspaceConfig, StageConfig, KernelConfig),
        status=SubspaceStatus,
        entries=(
            Entry("predict", predict, "question"),
            *learning,
            Entry("features", features, "question"),
            Entry("novelty", novelty, "question"),
            Entry("alarm", alarm, "reading", _watches),
            Entry("refresh", refresh, "action"),
            Entry("restart", restart_all, "action"),
        ),
        rehearse=rehearse_labels,
        valid=valid_all,
        alarms=ALARMS,
        between=("refresh",),
    )


OKFEB: dict[LabelKind, Program] = {
    "none": Program(
        name="okfeb",
        structs=(Subspace, Monitor, Stages, SubspaceWork),
        persistent=(Subspace, Monitor, Stages),
        configs=(SubspaceConfig, StageConfig, KernelConfig),
        status=SubspaceStatus,
        entries=(
            Entry("novelty", novelty, "question"),
            Entry("update", update, "update"),
            Entry("features", features, "question"),
            Entry("alarm", alarm, "reading", _watches),
            Entry("refresh", refresh, "action"),
            Entry("restart", restart, "action"),
        ),
        rehearse=rehearse,
        valid=valid,
        alarms=ALARMS,
        between=("refresh",),
    ),
    "real": _labelled(Entry("update", update_real, "update")),
    "reals": _labelled(Entry("update", update_reals, "update")),
    "class": _labelled(
        Entry("update", update_class, "update"),
        Entry("classify", classify, "question"),
        Entry("probability", probability, "question", _logistic),
    ),
}
