"""Kernel models that learn in whole numbers, under a budget and without a matrix: KLMS and QKLMS.

The same rules, removals and orders as in ``pykernel.algorithms.online`` for the techniques nt, at, fklms and fmklms.  No
call divides, but one division when a vector is replaced and its part is shared out.  Multipliers saturate: their range
is so much larger than that of the labels that only a diverging model comes near its ends.
"""

from __future__ import annotations

from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.fixed.inputs import FixedInputConfig, converted
from pykernel.algorithms.fixed.stages import (
    FixedStageConfig,
    FixedStages,
    conclude,
    finished,
    remainder,
)
from pykernel.algorithms.fixed.values import (
    ONE,
    FixedKernelConfig,
    clip,
    distance,
    kernel_value,
    part_of,
    size,
)
from pykernel.algorithms.online.state import AGE_MOST, SEARCHES, Metric, Projection, Rule, Status, Tie
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Struct,
    Uint8,
    Uint16,
    Word,
    as_signed,
    between,
    floor_shift,
    index,
    kernel,
    multiply_high,
    quotient,
    word,
)
from pykernel.dialect.program import Entry, LabelKind, Program

FAR = 2147483647
"""Squared distance to a neighbour that does not exist; all others are smaller."""
VALUE_MOST = 1073741824
"""Largest |f(x)|: no sum of multipliers is beyond."""
ERROR_MOST = 1610612736
"""Largest |y - f(x)|."""


class FixedExpansion(Struct):
    """The model is f(x) = sum_i alpha_i k(v_i, x).  The expansion vectors v_i are samples that the model stores."""

    alpha: between(Int[N_MAX, OUTPUTS], "-alpha_most", "alpha_most")  # multipliers of the expansion vectors
    # each vector's squared distance to its nearest vector; a number d <= 0 means: at least |d|
    neighbour: between(Int[N_MAX], -FAR, FAR)
    age: between(Index[N_MAX], 0, AGE_MOST)  # number of samples learned since the vector was stored or repeated
    n: between(Int16, 0, N_MAX)  # number of expansion vectors in use; all later places are zero
    frozen: between(Uint8, 0, 1)  # 1: learning is switched off
    v: between(Int16[N_MAX, DIM], "-reach", "reach")  # expansion vectors


class FixedLearning(Struct):
    """Intermediate results.  Every call computes them anew; zeros are always valid."""

    y: between(Int[OUTPUTS], "-label_most", "label_most")  # the sample's label
    f: Word[OUTPUTS]  # f(x), modulo 2^32: a sum may leave int32 on its way
    error: between(Int[OUTPUTS], -ERROR_MOST, ERROR_MOST)  # what the label and f(x) differ by
    step: between(Int[OUTPUTS], "-alpha_most", "alpha_most")  # the sample's multipliers
    score: Int[N_MAX + 1]  # costs of the candidates for removal
    distance: between(Int[N_MAX], 0, FAR)  # squared distances from the sample to the expansion vectors
    nearest_distance: between(Int, 0, FAR)
    nearest: between(Int16, 0, N_MAX - 1)  # position of the nearest expansion vector
    k: Uint16[N_MAX]  # kernel values between the sample and the expansion vectors
    row: Uint16[N_MAX]  # kernel values between a removed vector and the others
    x: between(Int16[DIM], "-reach", "reach")  # the converted sample


class FixedOnlineConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.fixed_online``."""

    rule: Rule
    metric: Metric
    projection: Projection
    tie: Tie
    single: bool  # whether there is one output
    separates: bool  # whether the label is a class: then there is no error where the class is clear enough
    decays: bool  # whether multipliers decay
    limits_step: bool  # whether one sample's multiplier is limited
    truncates_small: bool  # whether small multipliers are dropped
    truncates_old: bool  # whether old vectors are dropped
    keeps_neighbours: bool  # whether nearest neighbours are known
    keeps_ages: bool  # whether ages are kept
    eta: Index  # learning rate, in units of 2^-16
    keep: Index  # each update multiplies the multipliers by this, in units of 2^-16
    alpha_most: Index  # largest |alpha|
    step_limit: Index  # largest |alpha| of a new sample
    ald_distance: Index  # a sample is not stored if its squared distance to an expansion vector is at most this
    truncate_below: Index  # vectors whose multipliers are smaller than this are removed
    truncate_age: Index  # vectors of this age are removed
    removals: Index  # largest number of vectors that one update removes, beside the one that the sample replaces
    label_most: Index  # largest |y| that is accepted
    one: Index  # what a function is taught for its class
    classes: Index  # number of classes
    shortens: (
        bool  # whether the self-test takes fewer samples than fill and change the budget: that would take too long
    )
    rehearsed: Index  # number of samples in that self-test
    rehearsal_label: Index  # the self-test's labels are within +- half of this


# ------------------------------------------------------------------------------------------------- candidates


@kernel
def magnitude(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, i: Index) -> Int:
    """|alpha_i|: the largest of a candidate's multipliers; the sample is candidate n."""
    largest = size(s.alpha[i, 0]) if i < s.n[0] else size(w.step[0])
    if not c.single:
        for o in range(1, len(w.step)):
            a = size(s.alpha[i, o]) if i < s.n[0] else size(w.step[o])
            if a > largest:
                largest = a
    return largest


@kernel
def age_of(s: FixedExpansion, i: Index) -> Index:
    """Number of samples learned since a candidate was stored or repeated; -1 for the newest sample."""
    return s.age[i] if i < s.n[0] else -1


@kernel
def isolation(s: FixedExpansion, w: FixedLearning, i: Index) -> Int:
    """Squared distance from a candidate to its nearest neighbour, or a lower bound."""
    if i >= s.n[0]:
        return w.nearest_distance[0]
    bound = size(s.neighbour[i])
    return bound if bound < w.distance[i] else w.distance[i]


@kernel
def unsure(s: FixedExpansion, w: FixedLearning, i: Index) -> Bool:
    """Whether isolation() is only a lower bound."""
    if i >= s.n[0]:
        return False
    if s.neighbour[i] > 0:
        return False
    return w.distance[i] > -s.neighbour[i]


@kernel
def weighted_isolation(
    s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig, i: Index, coarse: Index
) -> Int:
    """(alpha_i / 2^coarse)^2 (1 - max_j k_ij), or a lower bound.  Mitchinson et al. 2003, eq. 18."""
    a = floor_shift(magnitude(s, w, c, i), coarse)
    a = a if a < 32767 else 32767
    return multiply_high(a * a, ONE - kernel_value(q, word(isolation(s, w, i))))


@kernel
def coarseness(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig) -> Index:
    """By which power of two multipliers are divided, so that their squares fit."""
    largest = 0
    count = s.n[0] + 1
    for i in range(count):
        a = magnitude(s, w, c, i)
        if a > largest:
            largest = a
    coarse = 0
    for turn in range(16):
        if floor_shift(largest, turn) > 32767:
            coarse = turn + 1
    return coarse


@kernel
def survey(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Index:
    """Compute the candidates' costs, where they need numbers; what multipliers were divided by.  O(N)."""
    if c.metric != Metric.FMKLMS:
        return 0
    coarse = coarseness(s, w, c)
    count = s.n[0] + 1
    for i in range(count):
        w.score[i] = weighted_isolation(s, w, c, q, i, coarse)
    return coarse


@kernel
def cost(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, i: Index) -> Int:
    """The cost of removing a candidate, after survey().  Mitchinson et al. 2003, section 2."""
    if c.metric == Metric.MAGNITUDE:
        return magnitude(s, w, c, i)
    if c.metric == Metric.FMKLMS:
        return w.score[i]
    if c.metric == Metric.FKLMS:
        return isolation(s, w, i)
    return 0  # ages are compared as they are


@kernel
def precedes(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, i: Index, r: Index) -> Bool:
    """Whether to remove candidate i rather than r, if both cost the same."""
    if c.metric == Metric.AGE:
        if age_of(s, i) != age_of(s, r):
            return age_of(s, i) > age_of(s, r)
    if c.tie == Tie.NEWEST:
        return age_of(s, i) < age_of(s, r)
    if c.tie == Tie.OLDEST:
        return age_of(s, i) > age_of(s, r)
    return magnitude(s, w, c, i) < magnitude(s, w, c, r)


@kernel
def find_neighbour(s: FixedExpansion, q: FixedKernelConfig, i: Index) -> None:
    """Compute the distance from expansion vector i to its nearest neighbour.  O(N D)."""
    nearest = FAR
    for j in range(s.n[0]):
        if j != i:
            d = index(distance(q, s.v[i], s.v[j]))
            if d < nearest:
                nearest = d
    s.neighbour[i] = nearest


@kernel
def choose(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Index:
    """The candidate that costs least: a stored vector, or n for the sample.  precedes() and then the position decide ties.

    A cost that is computed from a lower bound is a lower bound.  Where the choice depends on one, the lost neighbour is
    searched for, at most SEARCHES times; after that, the choice is among the exact costs.  O(N), and O(N D) for each search.
    """
    coarse = survey(s, w, c, q)
    n = s.n[0]
    r = n
    for turn in range(SEARCHES + 1 if c.keeps_neighbours else 1):
        r = n
        least = cost(s, w, c, n)
        lost = n
        bound = least
        for i in range(n):
            value = cost(s, w, c, i)
            if value <= least:
                guess = c.keeps_neighbours and unsure(s, w, i)
                if guess:
                    if value <= bound:
                        bound = value
                        lost = i
                elif value < least or precedes(s, w, c, i, r) or (r == n and not precedes(s, w, c, r, i)):
                    least = value
                    r = i
        if lost >= n or bound > least or turn == SEARCHES:
            break
        find_neighbour(s, q, lost)
        if c.metric == Metric.FMKLMS:
            w.score[lost] = weighted_isolation(s, w, c, q, lost, coarse)
    return r


# ------------------------------------------------------------------------------------------- storing, removing


@kernel
def measure_row(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig, r: Index) -> None:
    """Kernel values between stored vector r and the others; those whose nearest it was lose it.  O(N D)."""
    for i in range(s.n[0]):
        d = distance(q, s.v[i], s.v[r])
        if c.projection != Projection.NONE:
            w.row[i] = kernel_value(q, d)
        if c.keeps_neighbours:
            if i != r and s.neighbour[i] == index(d):
                s.neighbour[i] = -index(d)


@kernel
def project(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, r: Index) -> None:
    """Share candidate r's multiplier out: alpha_i + k_ir alpha_r, as if the other vectors were orthogonal.  O(N).

    Mitchinson et al. 2003, eq. 16.  "bounded": k_ir is divided by their sum if that is above 1.
    """
    n = s.n[0]
    part = ONE
    if c.projection == Projection.BOUNDED:
        total = 0
        for i in range(n):
            if i != r:
                total += w.row[i] if r < n else w.k[i]
        if r < n:
            total += w.k[r]
        # 2^32 / total
        if total > ONE:
            part = quotient(1073741824, floor_shift(total, 2))
            part = part if part < ONE else ONE
    for o in range(len(w.step)):
        a = part_of(s.alpha[r, o] if r < n else w.step[o], part)
        for i in range(n):
            if i != r:
                moved = s.alpha[i, o] + part_of(a, w.row[i] if r < n else w.k[i])
                s.alpha[i, o] = clip(moved, -c.alpha_most, c.alpha_most)
        if r < n:
            w.step[o] = clip(w.step[o] + part_of(a, w.k[r]), -c.alpha_most, c.alpha_most)


@kernel
def put_in(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, r: Index) -> None:
    """Store the sample as vector r, which is counted already.  O(N + D)."""
    for j in range(len(w.x)):
        s.v[r, j] = w.x[j]
    for o in range(len(w.step)):
        s.alpha[r, o] = w.step[o]
    if c.keeps_ages:
        s.age[r] = 0
    if c.keeps_neighbours:
        nearest = FAR
        for j in range(s.n[0]):
            if j != r:
                d = w.distance[j]
                nearest = d if d < nearest else nearest
                if d <= size(s.neighbour[j]):
                    s.neighbour[j] = d
        s.neighbour[r] = nearest


@kernel
def close_gap(s: FixedExpansion, c: FixedOnlineConfig, r: Index) -> None:
    """Move the last vector to place r, whose vector was removed.  O(D)."""
    n = s.n[0]
    if n > 0:
        last = n - 1
        for j in range(len(s.v[0])):
            s.v[r, j] = s.v[last, j]
            s.v[last, j] = 0
        for o in range(len(s.alpha[0])):
            s.alpha[r, o] = s.alpha[last, o]
            s.alpha[last, o] = 0
        if c.keeps_ages:
            s.age[r] = s.age[last]
            s.age[last] = 0
        if c.keeps_neighbours:
            s.neighbour[r] = s.neighbour[last]
            s.neighbour[last] = 0
        s.n[0] = last


@kernel
def grow_older(s: FixedExpansion, c: FixedOnlineConfig) -> None:
    """Update ages after one more sample was learned."""
    if c.keeps_ages:
        for i in range(s.n[0]):
            if s.age[i] < AGE_MOST:
                s.age[i] += 1


@kernel
def smallness(s: FixedExpansion, i: Index) -> Int:
    """The largest of a vector's stored multipliers."""
    largest = 0
    for o in range(len(s.alpha[0])):
        a = size(s.alpha[i, o])
        if a > largest:
            largest = a
    return largest


@kernel
def stale(s: FixedExpansion, c: FixedOnlineConfig, older: Index) -> Index:
    """Position of the first vector that is too old or too small, when all ages grow by ``older``; n for none.  O(N)."""
    for i in range(s.n[0]):
        if c.truncates_old:
            if s.age[i] >= c.truncate_age - older:
                return i
        if c.truncates_small:
            if smallness(s, i) < c.truncate_below:
                return i
    return s.n[0]


@kernel
def trim(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> None:
    """Remove stale vectors, at most ``removals``."""
    for turn in range(c.removals):
        r = stale(s, c, 0)
        if r >= s.n[0]:
            break
        if c.keeps_neighbours:
            measure_row(s, w, c, q, r)
        close_gap(s, c, r)


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def present(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Int:
    """f(x) where there is one output; distances and kernel values for the update that follows.  O(N D)."""
    nearest = 0
    nearest_distance = FAR
    total = 0
    if not c.single:
        for o in range(len(w.f)):
            w.f[o] = word(0)
    for i in range(s.n[0]):
        d = distance(q, s.v[i], w.x)
        apart = index(d)
        value = kernel_value(q, d)
        w.distance[i] = apart
        w.k[i] = value
        if c.single:
            total += multiply_high(s.alpha[i, 0], value)
        else:
            for o in range(len(w.f)):
                w.f[o] += word(multiply_high(s.alpha[i, o], value))
        if apart < nearest_distance:
            nearest_distance = apart
            nearest = i
    w.nearest[0] = nearest
    w.nearest_distance[0] = nearest_distance
    return total


@kernel
def value_of(w: FixedLearning, total: Int, c: FixedOnlineConfig, o: Index) -> Int:
    """f(x), within the limit that it has: multipliers cannot add up to more."""
    if c.single:
        return total
    return clip(as_signed(w.f[o]), -VALUE_MOST, VALUE_MOST)


@kernel
def absorb(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Index:
    """Learn a sample without storing it: the nearest vector's multiplier changes.  O(N)."""
    i = w.nearest[0]
    share_of = ONE
    if c.rule != Rule.QKLMS:
        share_of = kernel_value(q, word(w.nearest_distance[0]))
    for o in range(len(w.step)):
        s.alpha[i, o] = clip(s.alpha[i, o] + part_of(w.step[o], share_of), -c.alpha_most, c.alpha_most)
    grow_older(s, c)
    if c.keeps_ages:
        s.age[i] = 0
    return Status.ABSORBED if w.nearest_distance[0] > 0 else Status.MERGED


@kernel
def insert(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Index:
    """Learn a sample as a new vector; if the budget is full, remove one.  O(N D)."""
    n = s.n[0]
    full = n == len(s.v)
    # the vector to remove; n: the sample itself; n + 1: none
    r = n + 1
    dropped = False
    if c.truncates_small:
        if magnitude(s, w, c, n) < c.truncate_below:
            r = n
            dropped = True
    if c.truncates_old or c.truncates_small:
        if full and not dropped:
            r = stale(s, c, 1)
            if r < n:
                dropped = True
                measure_row(s, w, c, q, r)
    if full and not dropped:
        r = choose(s, w, c, q)
        if r < n:
            measure_row(s, w, c, q, r)
        if c.projection != Projection.NONE:
            project(s, w, c, r)
    grow_older(s, c)
    if r == n:
        return Status.DISCARDED
    if r < n:
        put_in(s, w, c, r)
        return Status.REPLACED
    if n < len(s.v):
        s.n[0] = n + 1
        put_in(s, w, c, n)
    return Status.ADDED


@kernel
def learn(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Index:
    """Learn the sample, of which error is known, then reduce.  Mitchinson et al. 2003, eq. 2-6."""
    for o in range(len(w.step)):
        # eq. 2
        step = clip(part_of(w.error[o], c.eta), -c.alpha_most, c.alpha_most)
        w.step[o] = clip(step, -c.step_limit, c.step_limit) if c.limits_step else step
    if c.decays:
        # eq. 5
        for i in range(s.n[0]):
            for o in range(len(w.step)):
                s.alpha[i, o] = part_of(s.alpha[i, o], c.keep)
    status = 0
    if s.n[0] > 0 and w.nearest_distance[0] <= c.ald_distance:
        status = absorb(s, w, c, q)
    else:
        status = insert(s, w, c, q)
    if c.truncates_old or c.truncates_small:
        trim(s, w, c, q)
    return status


@kernel
def take(
    s: FixedExpansion, a: FixedStages, w: FixedLearning, c: FixedOnlineConfig, f: FixedStageConfig, q: FixedKernelConfig
) -> Index:
    """Learn the converted sample with the labels w.y, which were checked."""
    if s.frozen[0] != 0:
        return Status.FROZEN
    total = present(s, w, c, q)
    for o in range(len(w.y)):
        value = value_of(w, total, c, o)
        rest = remainder(a, f, w.x, w.y[o], o)
        error = rest - value
        if c.separates:
            # no error where the class is clear enough
            if (rest > 0 and value >= rest) or (rest < 0 and value <= rest):
                error = 0
        w.error[o] = error
        conclude(a, f, w.x, w.y[o], rest, value, o)
    return learn(s, w, c, q)


@kernel
def intact(s: FixedExpansion) -> Bool:
    """Whether the count n is within its range.  Then no loop leaves the arrays, even if the memory was overwritten."""
    return s.n[0] >= 0 and s.n[0] <= len(s.v)


@kernel
def update(
    s: FixedExpansion,
    a: FixedStages,
    w: FixedLearning,
    c: FixedOnlineConfig,
    f: FixedStageConfig,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
    y: Int,
) -> Index:
    """Learn one sample: for the input x, the prediction should be y, in units of 1 / LABEL_SCALE.  O(N D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    accepted = converted(p, x, w.x)
    if not accepted:
        return Status.REFUSED_INPUT
    if y < -c.label_most or y > c.label_most:
        return Status.REFUSED_LABEL
    w.y[0] = y
    return take(s, a, w, c, f, q)


@kernel
def update_many(
    s: FixedExpansion,
    a: FixedStages,
    w: FixedLearning,
    c: FixedOnlineConfig,
    f: FixedStageConfig,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
    y: Int[OUTPUTS],
) -> Index:
    """Learn one sample: for the input x, the prediction should be y, in units of 1 / LABEL_SCALE.  O(N D).

    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    accepted = converted(p, x, w.x)
    if not accepted:
        return Status.REFUSED_INPUT
    for o in range(len(y)):
        if y[o] < -c.label_most or y[o] > c.label_most:
            return Status.REFUSED_LABEL
        w.y[o] = y[o]
    return take(s, a, w, c, f, q)


@kernel
def update_class(
    s: FixedExpansion,
    a: FixedStages,
    w: FixedLearning,
    c: FixedOnlineConfig,
    f: FixedStageConfig,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
    label: Index,
) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.  O(N D).

    Each class has a function.  The function should be at least 1 for inputs of its class, and at most -1 for others.
    Two classes share one function, which should be at least 1 for the second class.
    Returns 0 or more: what happened to the sample.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    accepted = converted(p, x, w.x)
    if not accepted:
        return Status.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return Status.REFUSED_LABEL
    for o in range(len(w.y)):
        positive = 1 if c.single else o
        w.y[o] = c.one if label == positive else -c.one
    return take(s, a, w, c, f, q)


# ------------------------------------------------------------------------------------------------------- asking


@kernel
def evaluate(s: FixedExpansion, w: FixedLearning, c: FixedOnlineConfig, q: FixedKernelConfig) -> Int:
    """The kernel part of f(x); where there are several outputs, in w.f.  O(N D)."""
    total = 0
    if not c.single:
        for o in range(len(w.f)):
            w.f[o] = word(0)
    for i in range(s.n[0]):
        value = kernel_value(q, distance(q, s.v[i], w.x))
        if c.single:
            total += multiply_high(s.alpha[i, 0], value)
        else:
            for o in range(len(w.f)):
                w.f[o] += word(multiply_high(s.alpha[i, o], value))
    return total


@kernel
def predict(
    s: FixedExpansion,
    a: FixedStages,
    w: FixedLearning,
    c: FixedOnlineConfig,
    f: FixedStageConfig,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
    y: Int[OUTPUTS],
) -> Index:
    """Predict: write f(x) to y, in units of 1 / LABEL_SCALE.  O(N D).

    Returns DONE, REFUSED_INPUT or REFUSED_STATE; if it refuses, y is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    accepted = converted(p, x, w.x)
    if not accepted:
        return Status.REFUSED_INPUT
    total = evaluate(s, w, c, q)
    for o in range(len(y)):
        y[o] = finished(a, f, w.x, value_of(w, total, c, o), o)
    return Status.DONE


@kernel
def classify(
    s: FixedExpansion,
    w: FixedLearning,
    c: FixedOnlineConfig,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
    label: Index[1],
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(N D).

    Returns DONE, REFUSED_INPUT or REFUSED_STATE; if it refuses, label is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    accepted = converted(p, x, w.x)
    if not accepted:
        return Status.REFUSED_INPUT
    total = evaluate(s, w, c, q)
    best = 0
    if c.single:
        if total > 0:
            best = 1
    else:
        for o in range(1, len(w.f)):
            if as_signed(w.f[o]) > as_signed(w.f[best]):
                best = o
    label[0] = best
    return Status.DONE


@kernel
def novelty(
    s: FixedExpansion,
    w: FixedLearning,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
    y: Int[1],
) -> Index:
    """Write to y how new x is to the model: 1 - k(v, x)^2 of the nearest vector v, in units of 1 / 65535.  O(N D).

    Returns DONE, REFUSED_INPUT or REFUSED_STATE; if it refuses, y is unchanged.
    """
    if not intact(s):
        return Status.REFUSED_STATE
    accepted = converted(p, x, w.x)
    if not accepted:
        return Status.REFUSED_INPUT
    nearest = FAR
    for i in range(s.n[0]):
        d = index(distance(q, s.v[i], w.x))
        nearest = d if d < nearest else nearest
    k = kernel_value(q, word(nearest)) if s.n[0] > 0 else 0
    y[0] = ONE - multiply_high(k + floor_shift(k, 15), k)
    return Status.DONE


@kernel
def freeze(s: FixedExpansion, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update only checks the sample."""
    s.frozen[0] = 0
    if frozen != 0:
        s.frozen[0] = 1
    return Status.DONE


@kernel
def rehearse(
    s: FixedExpansion,
    a: FixedStages,
    w: FixedLearning,
    c: FixedOnlineConfig,
    f: FixedStageConfig,
    p: FixedInputConfig,
    q: FixedKernelConfig,
    x: Int16[DIM],
) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test.  They fill the budget and replace vectors."""
    seed = 1
    for t in range(2 * len(s.v) + 32):
        if c.shortens:
            if t >= c.rehearsed:
                break
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = floor_shift((seed - 32768) * p.most[j if p.each else 0], 16) + p.center[j if p.each else 0]
        accepted = converted(p, x, w.x)
        for o in range(len(w.y)):
            seed = (seed * 75 + 74) % 65537
            w.y[o] = multiply_high(c.rehearsal_label, seed if seed < 65536 else 0) - floor_shift(c.rehearsal_label, 1)
        if accepted:
            status = take(s, a, w, c, f, q)
            if status < 0:
                break


@kernel
def valid(s: FixedExpansion, a: FixedStages, c: FixedOnlineConfig) -> Bool:
    """Whether learning could have led to this state, beyond the declared ranges: what is not in use is zero."""
    n = s.n[0]
    for i in range(len(s.v)):
        for j in range(len(s.v[0])):
            if i >= n and s.v[i, j] != 0:
                return False
        for o in range(len(s.alpha[0])):
            if i >= n and s.alpha[i, o] != 0:
                return False
        if c.keeps_ages:
            if i >= n and s.age[i] != 0:
                return False
        if c.keeps_neighbours:
            if i >= n and s.neighbour[i] != 0:
                return False
    return True


def _program(*learning: Entry) -> Program:
    return Program(
        name="online",
        structs=(FixedExpansion, FixedStages, FixedLearning),
        persistent=(FixedExpansion, FixedStages),
        configs=(FixedOnlineConfig, FixedStageConfig, FixedInputConfig, FixedKernelConfig),
        status=Status,
        entries=(
            Entry("predict", predict, "question"),
            *learning,
            Entry("novelty", novelty, "question"),
            Entry("freeze", freeze, "switch"),
        ),
        rehearse=rehearse,
        valid=valid,
    )


FIXED_ONLINE: dict[LabelKind, Program] = {
    "real": _program(Entry("update", update, "update")),
    "reals": _program(Entry("update", update_many, "update")),
    "class": _program(Entry("update", update_class, "update"), Entry("classify", classify, "question")),
}
