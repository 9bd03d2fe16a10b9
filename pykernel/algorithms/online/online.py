"""Online kernel models (Mitchinson et al. 2003): what can be asked of a model."""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelConfig, KernelFunction, rescale
from pykernel.algorithms.kernels import gaussian, squared_distance
from pykernel.algorithms.online.complex_inverse import border_complex, express_complex
from pykernel.algorithms.online.inverse_gram import border, border_inverse, border_squared, express
from pykernel.algorithms.online.neighbours import renew_overlap
from pykernel.algorithms.online.reduction import (
    acceptable,
    choose,
    close_gap,
    commit,
    grow_older,
    locate,
    magnitude,
    negligible,
    project,
    project_klms,
    put_in,
    take_out,
    unsearch,
)
from pykernel.algorithms.online.rules import (
    absorb_as_label,
    absorb_by_dictionary,
    border_deficit,
    foresee,
    largest_step,
    learn_dictionary,
    learn_posterior,
    limited,
    limited_by_norm,
    move_labels,
    noise_at,
    propose,
    propose_normalised,
)
from pykernel.algorithms.online.state import (
    Expansion,
    OnlineConfig,
    Rule,
    Status,
    Work,
    alike,
    expand,
    intact,
    kept,
    measure,
    miss,
    present,
    settle,
    within,
)
from pykernel.algorithms.online.validity import valid
from pykernel.algorithms.selftest import strained
from pykernel.algorithms.stages import (
    StageConfig,
    Stages,
    combine,
    conclude,
    farthest,
    noise,
    observe,
    observe_both,
    remain,
    standardise,
    trust,
)
from pykernel.dialect import DIM, OUTPUTS, Bool, Index, Real, absolute, kernel, real
from pykernel.dialect.program import Entry, LabelKind, Program

# ---------------------------------------------------------------------------------------------------- questions


@kernel
def predict(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], y: Real[OUTPUTS]
) -> Index:
    """Predict: write f(x) to y.  O(N D).

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    if not within(q, x):
        return Status.REFUSED_INPUT
    if f.standardises or q.rescales:
        if f.standardises:
            standardise(a, f, x, w.x)
        else:
            rescale(q, x, w.x)
        expand(s, c, q, w.x, y)
        combine(a, f, w.x, y)
    else:
        expand(s, c, q, x, y)
        combine(a, f, x, y)
    return Status.DONE


@kernel
def classify(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], label: Index[1]
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(N D).

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    status = predict(s, a, w, c, f, q, x, w.error)
    if status == Status.DONE:
        best = 0
        if c.single:
            if w.error[0] > real(0):
                best = 1
        else:
            for o in range(1, len(w.error)):
                if w.error[o] > w.error[best]:
                    best = o
        label[0] = best
    return status


@kernel
def compare(s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM]) -> None:
    """Compute distances and kernel values to the expansion vectors, and the part that they cannot express."""
    if f.standardises or q.rescales:
        if f.standardises:
            standardise(a, f, x, w.x)
        else:
            rescale(q, x, w.x)
        if c.keeps_diagonal:
            measure(w, q, w.x)
        present(s, w, c, q, w.x)
    else:
        if c.keeps_diagonal:
            measure(w, q, x)
        present(s, w, c, q, x)
    if c.keeps_factor:
        express(s, w, c, s.n[0], s.n[0])


@kernel
def novelty(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], y: Real[1]
) -> Index:
    """Write to y how new x is: the part of its squared norm that the expansion vectors cannot express.

    Models with a Gram matrix write kappa = 1 + ridge - k' P k, in O(N^2 + N D).  Models without write 1 - k^2 for the
    nearest vector, in O(N D).
    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    if not within(q, x):
        return Status.REFUSED_INPUT
    compare(s, a, w, c, f, q, x)
    if c.keeps_factor:
        y[0] = w.kappa[0]
    elif q.function != KernelFunction.GAUSSIAN:
        # 1 - k^2, from the distance 1 - |k|
        y[0] = w.nearest_distance[0] * (real(2) - w.nearest_distance[0])
    else:
        nearest = real(0)
        if s.n[0] > 0:
            nearest = gaussian(q.gamma, w.nearest_distance[0])
        y[0] = real(1) - nearest * nearest
    if c.keeps_diagonal:
        if w.norm[0] == real(0):
            y[0] = real(0)
    return Status.DONE


@kernel
def variance(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], y: Real[1]
) -> Index:
    """Write to y the expected variance of the label around f(x).  Its unit is the square of the label's unit.

    O(N^2 + N D).  Van Vaerenbergh et al. 2012.
    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    if not within(q, x):
        return Status.REFUSED_INPUT
    compare(s, a, w, c, f, q, x)
    if c.unsure:
        w.noise[0] = noise(a, f)
    foresee(s, w, c)
    power = s.power[0]
    # before the first sample, assume the largest possible variance
    if s.weight[0] == real(0):
        power = real(1)
    if not q.unit:
        if w.norm[0] == real(0):
            y[0] = c.noise * power * c.label_max_abs * c.label_max_abs
            if c.unsure:
                y[0] = w.noise[0] * power * c.label_max_abs * c.label_max_abs
            return Status.DONE
        power = w.own[0] * power
    y[0] = (noise_at(w, c, q) + w.spread[0]) * power * c.label_max_abs * c.label_max_abs
    if f.gains:
        # the part of the rule's answer that the gain leaves out, of the output where it is largest
        most = real(0)
        for o in range(len(w.error)):
            left = (real(1) - trust(a, f, o)) * w.error[o]
            if left * left > most:
                most = left * left
        y[0] += most
    return Status.DONE


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def give_to_nearest(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> Bool:
    """Add the sample's multiplier, or a share of it, to that of the nearest vector.  False: out of range.  O(1)."""
    i = w.nearest[0]
    share = real(1)
    if q.function != KernelFunction.GAUSSIAN:
        if not c.radial:
            share = w.k[i]
        elif c.rule != Rule.QKLMS:
            share = real(1) - w.nearest_distance[0]
    elif c.rule != Rule.QKLMS:
        share = gaussian(q.gamma, w.nearest_distance[0])
    if c.drafts:
        for o in range(len(w.error)):
            w.beta[i, o] += share * w.beta[s.n[0], o]
    else:
        for o in range(len(w.error)):
            w.step[o] = settle(kept(c, s.alpha[i, o]) + share * w.step[o])
            if not (absolute(w.step[o]) <= c.alpha_limit):
                return False
    return True


@kernel
def absorb(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, close: Bool) -> Index:
    """Learn a sample without storing it, by changing multipliers.  O(N), with matrices O(N^2)."""
    fits = True
    if c.rule == Rule.ALD_KRLS:
        absorb_by_dictionary(s, w, q)
    elif c.rule == Rule.FB_KRLS:
        if c.relabels:
            move_labels(s, w, c)
        else:
            absorb_as_label(s, w, c)
    elif c.rule == Rule.KNLMS:
        propose_normalised(s, w, c, real(0))
    else:
        propose(s, w, c, q)
        fits = largest_step(s, w, c) <= c.alpha_limit
        if close and c.rule != Rule.KRLS_T:
            shared = give_to_nearest(s, w, c, q)
            fits = fits and shared
        elif c.keeps_factor:
            project_klms(s, w, c, s.n[0])
    if not fits or not acceptable(s, w, c, s.n[0]):
        return Status.REFUSED_MULTIPLIER
    commit(s, w, c)
    if not c.drafts:
        for o in range(len(w.error)):
            s.alpha[w.nearest[0], o] = w.step[o]
    if c.rule == Rule.KRLS_T:
        learn_posterior(s, w, c, q)
    if c.rule == Rule.ALD_KRLS:
        learn_dictionary(s, w)
    grow_older(s, w, c, q)
    if c.keeps_ages and close:
        s.age[w.nearest[0]] = 0
    if c.rule == Rule.ALD_KRLS:
        # the sample is new, but the dictionary is full
        if w.kappa[0] > c.ald_threshold and not close:
            return Status.DISCARDED
    if c.rule == Rule.KNLMS:
        if not close:
            return Status.DISCARDED
    if w.nearest_distance[0] > real(0):
        return Status.ABSORBED
    return Status.MERGED


@kernel
def stale(s: Expansion, w: Work, c: OnlineConfig, older: Index) -> Index:
    """Position of the first vector that is too old or too small, when all ages grow by ``older``; n for none.  O(N)."""
    n = s.n[0]
    for i in range(n):
        if c.truncates_old:
            if s.age[i] >= c.truncate_age - older:
                return i
        if c.truncates_small:
            if older > 0:
                if magnitude(s, w, c, i) < c.truncate_below:
                    return i
            elif smallness(s, i) < c.truncate_below:
                return i
    return n


@kernel
def smallness(s: Expansion, i: Index) -> Real:
    """The largest of a vector's stored multipliers."""
    largest = real(0)
    for o in range(len(s.alpha[0])):
        if absolute(s.alpha[i, o]) > largest:
            largest = absolute(s.alpha[i, o])
    return largest


@kernel
def trim(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Remove stale vectors, then vectors whose score is at most lambda_max; at most ``removals`` in all."""
    for turn in range(c.removals):
        if s.n[0] == 0:
            break
        r = s.n[0]
        if c.truncates_old or c.truncates_small:
            r = stale(s, w, c, 0)
            if r < s.n[0]:
                locate(s, w, c, q, r)
        if c.thresholds and not c.newest_only:
            if r == s.n[0]:
                w.newest[0] = 0
                w.inverse_kappa[0] = real(0)
                for i in range(s.n[0]):
                    for o in range(len(w.error)):
                        w.beta[i, o] = s.alpha[i, o]
                r = choose(s, w, c, q)
                if not negligible(s, w, c, q, r):
                    break
                fits = project(s, w, c, q, r)
                if not fits:
                    break
                commit(s, w, c)
        if r == s.n[0]:
            break
        take_out(s, w, c, q, r)
        close_gap(s, c, w, r)


@kernel
def insert(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, x: Real[DIM]) -> Index:
    """Learn a sample as a new vector; if the budget is full, remove one.  O(N D), with matrices O(N^2 + N D)."""
    n = s.n[0]
    if c.keeps_neighbours:
        w.searches[0] = 0
    full = n == len(s.v)
    propose(s, w, c, q)
    if not (largest_step(s, w, c) <= c.alpha_limit):
        return Status.REFUSED_MULTIPLIER
    # the vector to remove; n: the sample itself; n + 1: none
    r = n + 1
    dropped = False
    if c.truncates_small:
        if largest_step(s, w, c) < c.truncate_below:
            r = n
            dropped = True
    if c.truncates_old or c.truncates_small:
        if full and not dropped:
            r = stale(s, w, c, 1)
            if r < n:
                locate(s, w, c, q, r)
                dropped = True
    if not dropped and (full or c.thresholds):
        r = choose(s, w, c, q)
        if c.thresholds:
            if not full and not negligible(s, w, c, q, r):
                r = n + 1
        if r <= n:
            fits = project(s, w, c, q, r)
            if not fits:
                unsearch(s, w, c)
                return Status.REFUSED_MULTIPLIER
    if c.rule == Rule.FB_KRLS or c.rule == Rule.ALD_KRLS or c.rule == Rule.KRLS_T or c.rule == Rule.KNLMS:
        if not acceptable(s, w, c, r):
            unsearch(s, w, c)
            return Status.REFUSED_MULTIPLIER
    commit(s, w, c)
    if c.rule == Rule.KRLS_T:
        learn_posterior(s, w, c, q)
    grow_older(s, w, c, q)
    if r == n:
        return Status.DISCARDED
    place_at = n
    status = Status.ADDED
    if r < n:
        place_at = r
        status = Status.REPLACED
        take_out(s, w, c, q, r)
    put_in(s, w, c, q, x, place_at)
    if c.rule == Rule.KRLS_T:
        border_deficit(s, w, c, q, place_at, s.n[0])
    if c.rule == Rule.ALD_KRLS:
        s.covariance[place_at, place_at] = real(1)
    return status


@kernel
def renew(s: Expansion, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM]) -> Index:
    """Learn a sample after a full model has removed a vector: f(x) is that of the reduced model.  O(N^2 + N D).

    Mitchinson et al. 2003, section 3.
    """
    n = s.n[0]
    if c.keeps_neighbours:
        w.searches[0] = 0
    w.newest[0] = 0
    w.inverse_kappa[0] = real(0)
    for i in range(n):
        for o in range(len(w.error)):
            w.beta[i, o] = s.alpha[i, o]
    r = choose(s, w, c, q)
    fits = project(s, w, c, q, r)
    if not fits:
        unsearch(s, w, c)
        return Status.REFUSED_MULTIPLIER
    present(s, w, c, q, x)
    w.nearest_distance[0] = w.distance[r]
    w.nearest[0] = r
    for i in range(n):
        if i != r and (w.nearest[0] == r or w.distance[i] < w.nearest_distance[0]):
            w.nearest_distance[0] = w.distance[i]
            w.nearest[0] = i
    for o in range(len(w.error)):
        value = real(0)
        for i in range(n):
            if i != r:
                value += w.beta[i, o] * w.k[i]
                w.beta[i, o] = kept(c, w.beta[i, o])
        if not q.unit:
            value = w.norm[0] * value
        if f.follows:
            w.value[o] = value
        if f.limits:
            w.y[o] = clipped(w.y[o], value - w.most[o], value + w.most[o])
        w.error[o] = miss(c, w.y[o], value)
        if not q.unit:
            w.error[o] = w.error[o] / w.norm[0]
        w.step[o] = settle(limited(c, c.eta * w.error[o]) if q.unit else limited_by_norm(w, c, c.eta * w.error[o]))
        if not (absolute(w.step[o]) <= c.alpha_limit):
            unsearch(s, w, c)
            return Status.REFUSED_MULTIPLIER
    close = n > 1 and w.nearest_distance[0] <= c.ald_distance
    spanned = False
    if c.keeps_factor:
        # express the sample by the vectors that stay
        express(s, w, c, n, n)
        share = w.u[r] * (real(1) / w.p[r])
        spanned = w.kappa[0] + w.u[r] * share <= c.ald_threshold
        if spanned and not close:
            for i in range(n):
                if i != r:
                    for o in range(len(w.error)):
                        w.beta[i, o] += (w.u[i] - w.p[i] * share) * w.step[o]
    for o in range(len(w.error)):
        w.beta[n, o] = w.step[o]
    if close:
        shared = give_to_nearest(s, w, c, q)
        fits = shared
    if not fits or not acceptable(s, w, c, r):
        unsearch(s, w, c)
        return Status.REFUSED_MULTIPLIER
    commit(s, w, c)
    grow_older(s, w, c, q)
    if c.keeps_ages and close:
        s.age[w.nearest[0]] = 0
    take_out(s, w, c, q, r)
    if close or spanned:
        close_gap(s, c, w, r)
        if w.nearest_distance[0] > real(0):
            return Status.ABSORBED
        return Status.MERGED
    put_in(s, w, c, q, x, r)
    return Status.REPLACED


@kernel
def learn(s: Expansion, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM]) -> Index:
    """Learn the sample x with label w.y, then reduce.  Mitchinson et al. 2003, eq. 2-6, or another rule."""
    if c.keeps_diagonal:
        measure(w, q, x)
        # f(x) is always zero for such an x
        if w.norm[0] == real(0):
            return Status.DISCARDED
    if c.before:
        if s.n[0] == len(s.v):
            return renew(s, w, c, f, q, x)
    present(s, w, c, q, x)
    sure = True
    for o in range(len(w.error)):
        value = -w.error[o]
        if f.follows:
            w.value[o] = value
        if f.limits:
            w.y[o] = clipped(w.y[o], value - w.most[o], value + w.most[o])
        if c.rule == Rule.KRLS_T and c.forgets:
            value = c.root_forgetting * value
        w.error[o] = miss(c, w.y[o], value)
        sure = sure and w.error[o] == real(0)
    # skip samples of a clear class: otherwise least squares would learn less and less from the unclear ones
    if c.separates and sure:
        if c.rule == Rule.KRLS_T or c.rule == Rule.FB_KRLS or c.rule == Rule.ALD_KRLS:
            return Status.DISCARDED
    if not q.unit:
        # from here on, learn f(x) / sqrt(k(x, x)) with the normalised kernel
        for o in range(len(w.error)):
            w.error[o] = w.error[o] / w.norm[0]
    close = s.n[0] > 0 and w.nearest_distance[0] <= c.ald_distance
    spanned = False
    if c.keeps_factor:
        express(s, w, c, s.n[0], s.n[0])
        w.inverse_kappa[0] = real(1) / w.kappa[0]
        spanned = w.kappa[0] <= c.ald_threshold
    if c.rule == Rule.ALD_KRLS or c.rule == Rule.KNLMS:
        if s.n[0] == len(s.v):
            spanned = True
    if c.keeps_complex:
        express_complex(s, w, c, s.n[0])
    if c.rounds:
        w.newest[0] = 1
    status = 0
    if not c.stores_all and (close or spanned):
        status = absorb(s, w, c, q, close)
    else:
        status = insert(s, w, c, q, x)
    if c.truncates_old or c.truncates_small or (c.thresholds and not c.newest_only):
        if status > 0:
            trim(s, w, c, q)
    return status


@kernel
def follow(s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM]) -> Index:
    """Learn the sample, as the rule sees its input, between the stages of its label."""
    for o in range(len(w.y)):
        w.label[o] = w.y[o]
        w.value[o] = real(0)
    remain(a, f, x, w.label, w.y)
    if f.limits:
        farthest(a, f, x, w.most)
    if c.unsure:
        w.noise[0] = noise(a, f)
    status = learn(s, w, c, f, q, x)
    if status > 0:
        conclude(a, f, x, w.label, w.y, w.value, w.most)
    return status


@kernel
def take(s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM]) -> Index:
    """Learn the sample x with label w.y; both were checked."""
    if s.frozen[0] != 0:
        return Status.FROZEN
    if f.standardises:
        if a.observed[0] < f.input_warmup:
            observe_both(a, f, x, w.y)
            return Status.OBSERVED
        standardise(a, f, x, w.x)
        if f.follows:
            taken = follow(s, a, w, c, f, q, w.x)
            if taken > 0:
                observe(a, f, x)
            return taken
        status = learn(s, w, c, f, q, w.x)
        if status > 0:
            observe(a, f, x)
        return status
    if q.rescales:
        rescale(q, x, w.x)
        if f.follows:
            return follow(s, a, w, c, f, q, w.x)
        return learn(s, w, c, f, q, w.x)
    if f.follows:
        return follow(s, a, w, c, f, q, x)
    return learn(s, w, c, f, q, x)


@kernel
def update(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], y: Real
) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(N D) without a Gram matrix, O(N^2 + N D) with one.
    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    if not within(q, x):
        return Status.REFUSED_INPUT
    if f.follows:
        if not (absolute(y) <= f.label_limit):
            return Status.REFUSED_LABEL
    elif not (absolute(y) <= c.label_max_abs):
        return Status.REFUSED_LABEL
    w.y[0] = y
    return take(s, a, w, c, f, q, x)


@kernel
def update_many(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], y: Real[OUTPUTS]
) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(N D) without a Gram matrix, O(N^2 + N D) with one.
    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    if not within(q, x):
        return Status.REFUSED_INPUT
    for o in range(len(y)):
        if f.follows:
            if not (absolute(y[o]) <= f.label_limit):
                return Status.REFUSED_LABEL
        elif not (absolute(y[o]) <= c.label_max_abs):
            return Status.REFUSED_LABEL
    for o in range(len(y)):
        w.y[o] = y[o]
    return take(s, a, w, c, f, q, x)


@kernel
def update_class(
    s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM], label: Index
) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.

    Each class has a function.  The function should be at least 1 for inputs of its class, and at most -1 for others.
    Two classes share one function, which should be at least 1 for the second class.
    O(N D) without a Gram matrix, O(N^2 + N D) with one.
    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    if not within(q, x):
        return Status.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return Status.REFUSED_LABEL
    positive = 1
    for o in range(len(w.y)):
        if not c.single:
            positive = o
        w.y[o] = real(-1)
        if label == positive:
            w.y[o] = real(1)
    return take(s, a, w, c, f, q, x)


@kernel
def freeze(s: Expansion, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update only checks the sample."""
    s.frozen[0] = 0
    if frozen != 0:
        s.frozen[0] = 1
    return Status.DONE


@kernel
def drift(s: Expansion, c: OnlineConfig, y: Real[1]) -> Index:
    """Write to y how large the rounding errors of the inverse Gram matrix P are.  O(1).

    Each replacement measures one element of (K + ridge I) P - I.  y is the largest one since the last refresh.
    Returns REFRESH_DUE if y is above the limit, otherwise DONE.
    """
    y[0] = s.drift[0]
    if s.drift[0] > c.drift_limit:
        return Status.REFRESH_DUE
    return Status.DONE


@kernel
def refresh(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> Index:
    """Compute the stored matrices again from the expansion vectors.  This removes rounding errors.

    O(N^3 + N^2 D).  Call this function when there is time; in models with drift(), when it returns REFRESH_DUE.
    The predictions do not change.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    for t in range(len(s.v)):
        if t == s.n[0]:
            break
        for i in range(t):
            if q.function == KernelFunction.GAUSSIAN:
                w.k[i] = gaussian(q.gamma, squared_distance(s.v[i], s.v[t]))
            else:
                w.k[i] = alike(s, c, q, i, s.v[t], s.diagonal[t])
        for j in range(s.n[0]):
            if c.keeps_factor:
                s.m[t, j] = real(0)
            if c.keeps_inverse:
                s.inverse[t, j] = real(0)
                s.inverse[j, t] = real(0)
            if c.keeps_squared:
                s.squared[t, j] = real(0)
                s.squared[j, t] = real(0)
            if c.keeps_complex:
                s.z_re[t, j] = real(0)
                s.z_re[j, t] = real(0)
                s.z_im[t, j] = real(0)
                s.z_im[j, t] = real(0)
        if c.keeps_factor:
            express(s, w, c, t, t)
            if c.keeps_squared:
                border_squared(s, w, t, t + 1)
            if c.keeps_inverse:
                border_inverse(s, w, t, t + 1)
            border(s, w, t, t, t + 1)
        if c.keeps_complex:
            express_complex(s, w, c, t)
            border_complex(s, w, t, t + 1)
        if c.keeps_overlap:
            renew_overlap(s, c, q, t)
    if c.keeps_factor:
        s.drift[0] = real(0)
    return Status.DONE


@kernel
def rehearse(s: Expansion, a: Stages, w: Work, c: OnlineConfig, f: StageConfig, q: KernelConfig, x: Real[DIM]) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test.  They fill the budget and replace vectors."""
    seed = 1
    for t in range(2 * len(s.v) + 32):
        if c.shortens:
            if t >= c.rehearsed:
                break
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = c.rehearsal_input * (real(seed) / real(65536) - real(0.5))
            if q.rescales:
                x[j] = x[j] / q.scale[j] + q.center[j]
        for o in range(len(w.y)):
            seed = (seed * 75 + 74) % 65537
            w.y[o] = c.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = take(s, a, w, c, f, q, x)
        if status < 0:
            break


def _keeps_matrix(c: OnlineConfig) -> bool:
    return bool(c.keeps_factor or c.keeps_complex or c.keeps_overlap)


def _program(*learning: Entry) -> Program:
    return Program(
        name="online",
        structs=(Expansion, Stages, Work),
        persistent=(Expansion, Stages),
        configs=(OnlineConfig, StageConfig, KernelConfig),
        status=Status,
        entries=(
            Entry("predict", predict, "question"),
            *learning,
            Entry("novelty", novelty, "question"),
            Entry("variance", variance, "question", lambda c: c.rule == Rule.KRLS_T),
            Entry("freeze", freeze, "switch"),
            Entry("drift", drift, "reading", lambda c: c.keeps_factor),
            Entry("refresh", refresh, "action", _keeps_matrix),
        ),
        rehearse=rehearse,
        valid=valid,
        between=("refresh",),
    )


ONLINE: dict[LabelKind, Program] = {
    "real": _program(Entry("update", update, "update")),
    "reals": _program(Entry("update", update_many, "update")),
    "class": _program(Entry("update", update_class, "update"), Entry("classify", classify, "question")),
}
