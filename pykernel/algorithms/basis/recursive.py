"""Least squares in the span of a few feature vectors, both learned from the stream in fixed memory.

A sample becomes a basis vector with the probability of what the basis leaves over of it: randomly pivoted Cholesky
(Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, Randomly pivoted Cholesky, 2023) of a stream.  Beyond the budget it
displaces the vector that a reservoir of the stream misses least.  Or the basis is chosen from the reservoir on demand.
"""

from __future__ import annotations

from pykernel.algorithms.basis.coordinates import (
    SMALLEST_RESIDUAL,
    DeviceBasis,
    Method,
    NystromConfig,
    NystromStatus,
    NystromWork,
    close_up,
    project,
    relative,
    rotate_pair,
)
from pykernel.algorithms.basis.least_squares import (
    Regression,
    begin_coordinate,
    drop_coordinate,
    fade,
    learn_coordinates,
    turn_coordinates,
    valid_regression,
)
from pykernel.algorithms.basis.reservoir import MOST_SEEN, Reservoir, choose_basis, enlarge, least_missed
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.kernel_choice import KernelConfig, acceptable, winner
from pykernel.algorithms.packed import row_of
from pykernel.algorithms.random_numbers import LARGEST_PERIOD, draw, position
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
    valid_stages,
)
from pykernel.dialect import DIM, OUTPUTS, Bool, Index, Real, absolute, kernel, real, sqrt
from pykernel.dialect.program import Entry, LabelKind, Program

# ---------------------------------------------------------------------------------------------------- questions


@kernel
def size(b: DeviceBasis, c: NystromConfig) -> Index:
    """Basis vectors in use."""
    if c.method == Method.GIVEN:
        return len(c.vectors)
    return b.n[0]


@kernel
def intact(b: DeviceBasis, c: NystromConfig) -> Bool:
    """Whether no loop over basis vectors leaves the memory, whatever lies in it."""
    if c.method == Method.GIVEN:
        return True
    return b.n[0] >= 0 and b.n[0] <= len(b.v)


@kernel
def countable(b: DeviceBasis, g: Regression, e: Reservoir, c: NystromConfig) -> Bool:
    """The same of the reservoir's rows, of random numbers, and of whose turn it is."""
    if c.forgets:
        if g.turn[0] < 0 or g.turn[0] >= len(g.coefficients):
            return False
    if c.method == Method.GIVEN:
        return True
    for i in range(len(b.seeds)):
        if b.seeds[i] < 0 or b.seeds[i] >= LARGEST_PERIOD:
            return False
    return intact(b, c) and e.count[0] >= 0 and e.count[0] <= len(e.rows) and e.seen[0] >= e.count[0]


@kernel
def evaluate(g: Regression, w: NystromWork, n: Index, y: Real[OUTPUTS]) -> None:
    """The functions' values at the coordinates w.z.  O(N) for each output."""
    for o in range(len(y)):
        total = real(0)
        for i in range(n):
            total += g.coefficients[i, o] * w.z[i]
        y[o] = total


@kernel
def predict(
    b: DeviceBasis,
    g: Regression,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    y: Real[OUTPUTS],
) -> Index:
    """Predict: write f(x) = weights' z(x) to y.  Without a basis f(x) is 0.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not intact(b, c):
        return NystromStatus.REFUSED_STATE
    if not acceptable(q, x):
        return NystromStatus.REFUSED_INPUT
    scaled(a, f, q, x, w.x)
    project(b, w, c, q, w.x)
    evaluate(g, w, size(b, c), y)
    combine(a, f, w.x, y)
    return NystromStatus.DONE


@kernel
def classify(
    b: DeviceBasis,
    g: Regression,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    label: Index[1],
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    status = predict(b, g, a, w, c, f, q, x, w.y)
    if status == NystromStatus.DONE:
        label[0] = winner(w.y)
    return status


@kernel
def features(
    b: DeviceBasis,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    z: Real[N_MAX],
) -> Index:
    """Write the coordinates z(x) = L^-1 k_S(x) to z; unused places are zero.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with z unchanged.
    """
    if not intact(b, c):
        return NystromStatus.REFUSED_STATE
    if not acceptable(q, x):
        return NystromStatus.REFUSED_INPUT
    scaled(a, f, q, x, w.x)
    project(b, w, c, q, w.x)
    n = size(b, c)
    for i in range(len(z)):
        z[i] = w.z[i] if i < n else real(0)
    return NystromStatus.DONE


@kernel
def residual(
    b: DeviceBasis,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    part: Real[1],
) -> Index:
    """Write to part how much of x the basis cannot express, from 0 to 1: 1 - |z|^2 / k(x, x).  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with part unchanged.
    """
    if not intact(b, c):
        return NystromStatus.REFUSED_STATE
    if not acceptable(q, x):
        return NystromStatus.REFUSED_INPUT
    scaled(a, f, q, x, w.x)
    project(b, w, c, q, w.x)
    part[0] = relative(w)
    return NystromStatus.DONE


# ------------------------------------------------------------------------------------------ the basis of a stream


@kernel
def start_draws(b: DeviceBasis, c: NystromConfig) -> None:
    """The first state of the random numbers, if there is none yet."""
    if b.seeds[0] == 0:
        b.seeds[0] = c.seed_1
        b.seeds[1] = c.seed_2
        b.seeds[2] = c.seed_3


@kernel
def turn_rows(e: Reservoir, c: NystromConfig, k: Index, cosine: Real, sine: Real) -> None:
    """The rows' coordinates k and k + 1 after the plane they span was turned.  O(M)."""
    if c.caches:
        for t in range(e.count[0]):
            rotate_pair(e.coordinates[t], k, cosine, sine)


@kernel
def reduce(b: DeviceBasis, g: Regression, e: Reservoir, w: NystromWork, c: NystromConfig, r: Index) -> None:
    """Remove basis vector r: rotate the coordinates until only the last one needs r.  O(N^2 + N M).

    L without row r is made triangular again by Givens rotations (G. H. Golub, C. F. Van Loan, Matrix Computations, 6.5),
    which turn the coordinates of everything that is known in them.  Of the sample, more is left over.
    """
    last = b.n[0] - 1
    row = row_of(r)
    for k in range(r, last):
        row = row + k + 1
        # row k + 1, of which the diagonal is a reciprocal
        diagonal = real(1) / b.l[row + k + 1]
        length = sqrt(b.l[row + k] * b.l[row + k] + diagonal * diagonal)
        inverse = real(1) / length
        cosine = b.l[row + k] * inverse
        sine = diagonal * inverse
        # the row is to be row k, and this its diagonal; limits, for a restored L may be one of no matrix at all
        b.l[row + k] = clipped(inverse, real(1) / c.coordinate_limit, c.reciprocal_limit)
        later = row
        for i in range(k + 2, last + 1):
            later = later + i
            old = b.l[later + k]
            other = b.l[later + k + 1]
            b.l[later + k] = clipped(cosine * old + sine * other, -c.turned_limit, c.turned_limit)
            b.l[later + k + 1] = clipped(cosine * other - sine * old, -c.turned_limit, c.turned_limit)
        rotate_pair(w.z, k, cosine, sine)
        turn_rows(e, c, k, cosine, sine)
        turn_coordinates(g, c, k, cosine, sine)
    close_up(b, r)
    w.kappa[0] += w.z[last] * w.z[last]
    drop_coordinate(g, w, c, last)
    if c.caches:
        for t in range(e.count[0]):
            e.coordinates[t, last] = real(0)


@kernel
def widen(b: DeviceBasis, g: Regression, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig) -> None:
    """Make the sample a basis vector."""
    begin_coordinate(g, c, b.n[0])
    enlarge(b, e, w, c, q, w.x)


@kernel
def adapt(b: DeviceBasis, g: Regression, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig) -> Index:
    """Add the sample to the basis, or not.  The choice depends on its rest and on what the reservoir would miss."""
    chance = draw(b.seeds)
    n = b.n[0]
    if not (w.kappa[0] > c.ald_threshold * w.own[0] and w.kappa[0] > SMALLEST_RESIDUAL):
        return NystromStatus.DONE
    if not (chance * w.own[0] < w.kappa[0]):
        return NystromStatus.DONE
    if n < len(b.v):
        widen(b, g, e, w, c, q)
        return NystromStatus.ADDED
    if e.count[0] < len(e.rows):
        return NystromStatus.DONE
    r = least_missed(b, e, w, c, q)
    if r == n:
        return NystromStatus.DONE
    reduce(b, g, e, w, c, r)
    widen(b, g, e, w, c, q)
    return NystromStatus.REPLACED


@kernel
def keep_row(b: DeviceBasis, e: Reservoir, w: NystromWork, c: NystromConfig) -> None:
    """Perhaps add the sample to the reservoir.  O(N + D)."""
    slot = e.count[0]
    if e.seen[0] < MOST_SEEN:
        e.seen[0] += 1
    if slot < len(e.rows):
        e.count[0] += 1
    else:
        slot = position(b.seeds, e.seen[0] if e.seen[0] < c.horizon else c.horizon)
    if slot < len(e.rows):
        for j in range(len(w.x)):
            e.rows[slot, j] = w.x[j]
        for o in range(len(w.target)):
            e.labels[slot, o] = w.target[o]
        if c.caches:
            for i in range(len(w.z)):
                e.coordinates[slot, i] = w.z[i] if i < b.n[0] else real(0)


@kernel
def learn(
    b: DeviceBasis, g: Regression, e: Reservoir, w: NystromWork, c: NystromConfig, f: StageConfig, q: KernelConfig
) -> Index:
    """Learn the sample w.x with labels w.target."""
    project(b, w, c, q, w.x)
    if f.judges:
        evaluate(g, w, size(b, c), w.value)
    if f.limits:
        for o in range(len(w.target)):
            w.target[o] = clipped(w.target[o], w.value[o] - w.most[o], w.value[o] + w.most[o])
    status = 0
    if c.method != Method.GIVEN:
        start_draws(b, c)
    if c.method == Method.STREAM:
        status = adapt(b, g, e, w, c, q)
    n = size(b, c)
    if c.method == Method.GIVEN:
        start_given(g, c)
    if c.forgets:
        fade(g, w, c, n)
    learn_coordinates(g, w, c, n)
    if c.method != Method.GIVEN:
        keep_row(b, e, w, c)
    return status


@kernel
def take(
    b: DeviceBasis,
    g: Regression,
    e: Reservoir,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> Index:
    """Learn the sample x with labels w.target between the stages; both were checked."""
    if f.standardises:
        if a.observed[0] < f.input_warmup:
            observe_both(a, f, x, w.target)
            return NystromStatus.OBSERVED
    scaled(a, f, q, x, w.x)
    if f.follows:
        for o in range(len(w.target)):
            w.label[o] = w.target[o]
        remain(a, f, w.x, w.label, w.target)
        if f.limits:
            farthest(a, f, w.x, w.most)
    status = learn(b, g, e, w, c, f, q)
    if f.follows:
        conclude(a, f, w.x, w.label, w.target, w.value, w.most)
    if f.standardises:
        observe(a, f, x)
    return status


@kernel
def start_given(g: Regression, c: NystromConfig) -> None:
    """Coordinates of a constant basis begin with the first sample."""
    if g.r[0] == real(0):
        for i in range(len(g.coefficients)):
            begin_coordinate(g, c, i)


@kernel
def update(
    b: DeviceBasis,
    g: Regression,
    e: Reservoir,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    y: Real,
) -> Index:
    """Learn one sample: the input x, and its label y.  O(N^2 + N D), if the basis changes O(N^3 / 6 + M N^2 + M N D).

    Returns DONE, ADDED or REPLACED; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(b, g, e, c):
        return NystromStatus.REFUSED_STATE
    if not acceptable(q, x):
        return NystromStatus.REFUSED_INPUT
    if not (absolute(y) <= f.label_limit):
        return NystromStatus.REFUSED_LABEL
    w.target[0] = y
    return take(b, g, e, a, w, c, f, q, x)


@kernel
def update_many(
    b: DeviceBasis,
    g: Regression,
    e: Reservoir,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    y: Real[OUTPUTS],
) -> Index:
    """Learn one sample: the input x, and its label y.  O(N^2 + N D), if the basis changes O(N^3 / 6 + M N^2 + M N D).

    Returns DONE, ADDED or REPLACED; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(b, g, e, c):
        return NystromStatus.REFUSED_STATE
    if not acceptable(q, x):
        return NystromStatus.REFUSED_INPUT
    for o in range(len(y)):
        if not (absolute(y[o]) <= f.label_limit):
            return NystromStatus.REFUSED_LABEL
    for o in range(len(y)):
        w.target[o] = y[o]
    return take(b, g, e, a, w, c, f, q, x)


@kernel
def update_class(
    b: DeviceBasis,
    g: Regression,
    e: Reservoir,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
    label: Index,
) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.

    The function of this class should be 1, the others -1.  Two classes share the function of the second class.
    O(N^2 + N D), if the basis changes O(N^3 / 6 + M N^2 + M N D).
    Returns DONE, ADDED or REPLACED; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(b, g, e, c):
        return NystromStatus.REFUSED_STATE
    if not acceptable(q, x):
        return NystromStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return NystromStatus.REFUSED_LABEL
    positive = 1
    for o in range(len(w.target)):
        if not c.single:
            positive = o
        w.target[o] = real(1) if label == positive else real(-1)
    return take(b, g, e, a, w, c, f, q, x)


# --------------------------------------------------------------------------------------------- a basis on demand


@kernel
def select(b: DeviceBasis, g: Regression, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig) -> Index:
    """Choose the basis from the reservoir, by EFVS or SGMA, and learn the reservoir's labels again.

    O(N rho v (N + D) + M N^2).
    Returns DONE; or TOO_FEW with nothing changed, if there is no sample.
    """
    if not countable(b, g, e, c):
        return NystromStatus.REFUSED_STATE
    if e.count[0] == 0:
        return NystromStatus.TOO_FEW
    start_draws(b, c)
    drop_basis(b, g, e)
    choose_basis(b, e, w, c, q)
    n = b.n[0]
    for i in range(n):
        begin_coordinate(g, c, i)
    for t in range(e.count[0]):
        for i in range(n):
            w.z[i] = e.coordinates[t, i]
        for o in range(len(w.target)):
            w.target[o] = e.labels[t, o]
        # all weigh alike: slots are in no order of time
        learn_coordinates(g, w, c, n)
    return NystromStatus.DONE


@kernel
def drop_basis(b: DeviceBasis, g: Regression, e: Reservoir) -> None:
    """Forget the basis and all coordinates."""
    for i in range(len(b.l)):
        b.l[i] = real(0)
        g.r[i] = real(0)
    for i in range(len(b.v)):
        for j in range(len(b.v[0])):
            b.v[i, j] = real(0)
        for o in range(len(g.coefficients[0])):
            g.coefficients[i, o] = real(0)
        for t in range(len(e.rows)):
            e.coordinates[t, i] = real(0)
    g.turn[0] = 0
    b.n[0] = 0


@kernel
def restart(b: DeviceBasis, g: Regression, e: Reservoir, a: Stages, f: StageConfig) -> Index:
    """Forget everything, except the state of the random numbers.  O(N^2 + M (N + D))."""
    forget(a, f)
    drop_basis(b, g, e)
    for t in range(len(e.rows)):
        for j in range(len(e.rows[0])):
            e.rows[t, j] = real(0)
        for o in range(len(e.labels[0])):
            e.labels[t, o] = real(0)
    e.count[0] = 0
    e.seen[0] = 0
    return NystromStatus.DONE


# -------------------------------------------------------------------------------------- self-test and snapshots


@kernel
def rehearse(
    b: DeviceBasis,
    g: Regression,
    e: Reservoir,
    a: Stages,
    w: NystromWork,
    c: NystromConfig,
    f: StageConfig,
    q: KernelConfig,
    x: Real[DIM],
) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test.  They fill the basis and the reservoir."""
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
        status = take(b, g, e, a, w, c, f, q, x)
        if status < 0:
            break
    if c.method == Method.EFVS or c.method == Method.SGMA:
        chosen = select(b, g, e, w, c, q)
        if chosen < 0:
            # only so that the known answer shows it
            b.seeds[0] = 1


@kernel
def valid_basis(b: DeviceBasis, c: NystromConfig) -> Bool:
    """Whether L is within its limits, and all is zero beyond the vectors in use."""
    n = b.n[0]
    row = 0
    for i in range(len(b.v)):
        for j in range(len(b.v[0])):
            if i >= n and b.v[i, j] != real(0):
                return False
        for j in range(i):
            if not (absolute(b.l[row + j]) <= c.turned_limit):
                return False
            if i >= n and b.l[row + j] != real(0):
                return False
        if i < n:
            # a reciprocal: of a root above that of the smallest residual
            if not (b.l[row + i] >= real(1) / c.coordinate_limit and b.l[row + i] <= c.reciprocal_limit):
                return False
        elif b.l[row + i] != real(0):
            return False
        row = row + i + 1
    for i in range(len(b.seeds)):
        # all begin together
        if b.seeds[0] == 0 and b.seeds[i] != 0:
            return False
        if b.seeds[0] != 0 and b.seeds[i] == 0:
            return False
    return b.seeds[0] < 30269 and b.seeds[1] < 30307


@kernel
def valid_rows(b: DeviceBasis, e: Reservoir, c: NystromConfig) -> Bool:
    """Whether the reservoir's rows are zero beyond those in use."""
    count = e.count[0]
    if e.seen[0] < count:
        return False
    if count < len(e.rows) and e.seen[0] != count:
        return False
    for t in range(len(e.rows)):
        for j in range(len(e.rows[0])):
            if t >= count and e.rows[t, j] != real(0):
                return False
        if c.method != Method.STREAM:
            for o in range(len(e.labels[0])):
                if t >= count and e.labels[t, o] != real(0):
                    return False
        if c.caches:
            for i in range(len(b.v)):
                if (t >= count or i >= b.n[0]) and e.coordinates[t, i] != real(0):
                    return False
    return True


@kernel
def valid(
    b: DeviceBasis, g: Regression, e: Reservoir, a: Stages, c: NystromConfig, f: StageConfig, q: KernelConfig
) -> Bool:
    """Whether learning could have led to this state, beyond what the fields' ranges say.  O(N^2 + M (N + D))."""
    if not valid_stages(a, f, q.input_max_abs):
        return False
    if c.method == Method.GIVEN:
        if g.r[0] == real(0):
            return valid_regression(g, c, 0)
        return valid_regression(g, c, len(g.coefficients))
    if not valid_basis(b, c) or not valid_regression(g, c, b.n[0]):
        return False
    return valid_rows(b, e, c)


def _chooses(c: NystromConfig) -> bool:
    return c.method in (Method.EFVS, Method.SGMA)


def _program(*learning: Entry) -> Program:
    return Program(
        name="nystrom_rls",
        structs=(DeviceBasis, Regression, Reservoir, Stages, NystromWork),
        persistent=(DeviceBasis, Regression, Reservoir, Stages),
        configs=(NystromConfig, StageConfig, KernelConfig),
        status=NystromStatus,
        entries=(
            Entry("predict", predict, "question"),
            *learning,
            Entry("select", select, "action", _chooses),
            Entry("features", features, "question"),
            Entry("residual", residual, "question"),
            Entry("restart", restart, "action"),
        ),
        rehearse=rehearse,
        valid=valid,
        between=("select",),
    )


NYSTROM_RLS: dict[LabelKind, Program] = {
    "real": _program(Entry("update", update, "update")),
    "reals": _program(Entry("update", update_many, "update")),
    "class": _program(Entry("update", update_class, "update"), Entry("classify", classify, "question")),
}
