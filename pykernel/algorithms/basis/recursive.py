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
    RegressionModel,
    begin_coordinate,
    drop_coordinate,
    fade,
    learn_coordinates,
    turn_coordinates,
    valid_regression,
)
from pykernel.algorithms.basis.reservoir import (
    MOST_SEEN,
    Reservoir,
    ReservoirModel,
    choose_basis,
    enlarge,
    least_missed,
)
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.kernel_choice import KernelConfig, acceptable, winner
from pykernel.algorithms.packed import row_of
from pykernel.algorithms.random_numbers import LARGEST_PERIOD, draw, position
from pykernel.algorithms.selftest import strained
from pykernel.algorithms.stages import (
    Scaled,
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


class NystromModel(RegressionModel, ReservoirModel, Scaled):
    pass


@kernel
def size(m: NystromModel) -> Index:
    """Basis vectors in use."""
    if m.method == Method.GIVEN:
        return len(m.vectors)
    return m.n[0]


@kernel
def intact(m: NystromModel) -> Bool:
    """Whether no loop over basis vectors leaves the memory, whatever lies in it."""
    if m.method == Method.GIVEN:
        return True
    return m.n[0] >= 0 and m.n[0] <= len(m.v)


@kernel
def countable(m: NystromModel) -> Bool:
    """The same of the reservoir's rows, of random numbers, and of whose turn it is."""
    if m.forgets:
        if m.turn[0] < 0 or m.turn[0] >= len(m.coefficients):
            return False
    if m.method == Method.GIVEN:
        return True
    for i in range(len(m.seeds)):
        if m.seeds[i] < 0 or m.seeds[i] >= LARGEST_PERIOD:
            return False
    return intact(m) and m.count[0] >= 0 and m.count[0] <= len(m.rows) and m.seen[0] >= m.count[0]


@kernel
def evaluate(m: NystromModel, n: Index, y: Real[OUTPUTS]) -> None:
    """The functions' values at the coordinates m.z.  O(N) for each output."""
    for o in range(len(y)):
        total = real(0)
        for i in range(n):
            total += m.coefficients[i, o] * m.z[i]
        y[o] = total


@kernel
def predict(
    m: NystromModel,
    x: Real[DIM],
    y: Real[OUTPUTS],
) -> Index:
    """Predict: write f(x) = weights' z(x) to y.  Without a basis f(x) is 0.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not intact(m):
        return NystromStatus.REFUSED_STATE
    if not acceptable(m, x):
        return NystromStatus.REFUSED_INPUT
    scaled(m, x, m.x)
    project(m, m.x)
    evaluate(m, size(m), y)
    combine(m, m.x, y)
    return NystromStatus.DONE


@kernel
def classify(
    m: NystromModel,
    x: Real[DIM],
    label: Index[1],
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    status = predict(m, x, m.y)
    if status == NystromStatus.DONE:
        label[0] = winner(m.y)
    return status


@kernel
def features(
    m: NystromModel,
    x: Real[DIM],
    z: Real[N_MAX],
) -> Index:
    """Write the coordinates z(x) = L^-1 k_S(x) to z; unused places are zero.  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with z unchanged.
    """
    if not intact(m):
        return NystromStatus.REFUSED_STATE
    if not acceptable(m, x):
        return NystromStatus.REFUSED_INPUT
    scaled(m, x, m.x)
    project(m, m.x)
    n = size(m)
    for i in range(len(z)):
        z[i] = m.z[i] if i < n else real(0)
    return NystromStatus.DONE


@kernel
def residual(
    m: NystromModel,
    x: Real[DIM],
    part: Real[1],
) -> Index:
    """Write to part how much of x the basis cannot express, from 0 to 1: 1 - |z|^2 / k(x, x).  O(N^2 / 2 + N D).

    Returns DONE, or REFUSED_INPUT with part unchanged.
    """
    if not intact(m):
        return NystromStatus.REFUSED_STATE
    if not acceptable(m, x):
        return NystromStatus.REFUSED_INPUT
    scaled(m, x, m.x)
    project(m, m.x)
    part[0] = relative(m)
    return NystromStatus.DONE


# ------------------------------------------------------------------------------------------ the basis of a stream


@kernel
def start_draws(m: NystromModel) -> None:
    """The first state of the random numbers, if there is none yet."""
    if m.seeds[0] == 0:
        m.seeds[0] = m.seed_1
        m.seeds[1] = m.seed_2
        m.seeds[2] = m.seed_3


@kernel
def turn_rows(m: NystromModel, k: Index, cosine: Real, sine: Real) -> None:
    """The rows' coordinates k and k + 1 after the plane they span was turned.  O(M)."""
    if m.caches:
        for t in range(m.count[0]):
            rotate_pair(m.coordinates[t], k, cosine, sine)


@kernel
def reduce(m: NystromModel, r: Index) -> None:
    """Remove basis vector r: rotate the coordinates until only the last one needs r.  O(N^2 + N M).

    L without row r is made triangular again by Givens rotations (G. H. Golub, C. F. Van Loan, Matrix Computations, 6.5),
    which turn the coordinates of everything that is known in them.  Of the sample, more is left over.
    """
    last = m.n[0] - 1
    row = row_of(r)
    for k in range(r, last):
        row = row + k + 1
        # row k + 1, of which the diagonal is a reciprocal
        diagonal = real(1) / m.l[row + k + 1]
        length = sqrt(m.l[row + k] * m.l[row + k] + diagonal * diagonal)
        inverse = real(1) / length
        cosine = m.l[row + k] * inverse
        sine = diagonal * inverse
        # the row is to be row k, and this its diagonal; limits, for a restored L may be one of no matrix at all
        m.l[row + k] = clipped(inverse, real(1) / m.coordinate_limit, m.reciprocal_limit)
        later = row
        for i in range(k + 2, last + 1):
            later = later + i
            old = m.l[later + k]
            other = m.l[later + k + 1]
            m.l[later + k] = clipped(cosine * old + sine * other, -m.turned_limit, m.turned_limit)
            m.l[later + k + 1] = clipped(cosine * other - sine * old, -m.turned_limit, m.turned_limit)
        rotate_pair(m.z, k, cosine, sine)
        turn_rows(m, k, cosine, sine)
        turn_coordinates(m, k, cosine, sine)
    close_up(m, r)
    m.kappa[0] += m.z[last] * m.z[last]
    drop_coordinate(m, last)
    if m.caches:
        for t in range(m.count[0]):
            m.coordinates[t, last] = real(0)


@kernel
def widen(m: NystromModel) -> None:
    """Make the sample a basis vector."""
    begin_coordinate(m, m.n[0])
    enlarge(m, m.x)


@kernel
def adapt(m: NystromModel) -> Index:
    """Add the sample to the basis, or not.  The choice depends on its rest and on what the reservoir would miss."""
    chance = draw(m.seeds)
    n = m.n[0]
    if not (m.kappa[0] > m.ald_threshold * m.own[0] and m.kappa[0] > SMALLEST_RESIDUAL):
        return NystromStatus.DONE
    if not (chance * m.own[0] < m.kappa[0]):
        return NystromStatus.DONE
    if n < len(m.v):
        widen(m)
        return NystromStatus.ADDED
    if m.count[0] < len(m.rows):
        return NystromStatus.DONE
    r = least_missed(m)
    if r == n:
        return NystromStatus.DONE
    reduce(m, r)
    widen(m)
    return NystromStatus.REPLACED


@kernel
def keep_row(m: NystromModel) -> None:
    """Perhaps add the sample to the reservoir.  O(N + D)."""
    slot = m.count[0]
    if m.seen[0] < MOST_SEEN:
        m.seen[0] += 1
    if slot < len(m.rows):
        m.count[0] += 1
    else:
        slot = position(m.seeds, m.seen[0] if m.seen[0] < m.horizon else m.horizon)
    if slot < len(m.rows):
        for j in range(len(m.x)):
            m.rows[slot, j] = m.x[j]
        for o in range(len(m.target)):
            m.labels[slot, o] = m.target[o]
        if m.caches:
            for i in range(len(m.z)):
                m.coordinates[slot, i] = m.z[i] if i < m.n[0] else real(0)


@kernel
def learn(m: NystromModel) -> Index:
    """Learn the sample m.x with labels m.target."""
    project(m, m.x)
    if m.judges:
        evaluate(m, size(m), m.value)
    if m.limits:
        for o in range(len(m.target)):
            m.target[o] = clipped(m.target[o], m.value[o] - m.most[o], m.value[o] + m.most[o])
    status = 0
    if m.method != Method.GIVEN:
        start_draws(m)
    if m.method == Method.STREAM:
        status = adapt(m)
    n = size(m)
    if m.method == Method.GIVEN:
        start_given(m)
    if m.forgets:
        fade(m, n)
    learn_coordinates(m, n)
    if m.method != Method.GIVEN:
        keep_row(m)
    return status


@kernel
def take(
    m: NystromModel,
    x: Real[DIM],
) -> Index:
    """Learn the sample x with labels m.target between the stages; both were checked."""
    if m.standardises:
        if m.observed[0] < m.input_warmup:
            observe_both(m, x, m.target)
            return NystromStatus.OBSERVED
    scaled(m, x, m.x)
    if m.follows:
        for o in range(len(m.target)):
            m.label[o] = m.target[o]
        remain(m, m.x, m.label, m.target)
        if m.limits:
            farthest(m, m.x, m.most)
    status = learn(m)
    if m.follows:
        conclude(m, m.x, m.label, m.target, m.value, m.most)
    if m.standardises:
        observe(m, x)
    return status


@kernel
def start_given(m: NystromModel) -> None:
    """Coordinates of a constant basis begin with the first sample."""
    if m.r[0] == real(0):
        for i in range(len(m.coefficients)):
            begin_coordinate(m, i)


@kernel
def update(
    m: NystromModel,
    x: Real[DIM],
    y: Real,
) -> Index:
    """Learn one sample: the input x, and its label y.  O(N^2 + N D), if the basis changes O(N^3 / 6 + M N^2 + M N D).

    Returns DONE, ADDED or REPLACED; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(m):
        return NystromStatus.REFUSED_STATE
    if not acceptable(m, x):
        return NystromStatus.REFUSED_INPUT
    if not (absolute(y) <= m.label_limit):
        return NystromStatus.REFUSED_LABEL
    m.target[0] = y
    return take(m, x)


@kernel
def update_many(
    m: NystromModel,
    x: Real[DIM],
    y: Real[OUTPUTS],
) -> Index:
    """Learn one sample: the input x, and its label y.  O(N^2 + N D), if the basis changes O(N^3 / 6 + M N^2 + M N D).

    Returns DONE, ADDED or REPLACED; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(m):
        return NystromStatus.REFUSED_STATE
    if not acceptable(m, x):
        return NystromStatus.REFUSED_INPUT
    for o in range(len(y)):
        if not (absolute(y[o]) <= m.label_limit):
            return NystromStatus.REFUSED_LABEL
    for o in range(len(y)):
        m.target[o] = y[o]
    return take(m, x)


@kernel
def update_class(
    m: NystromModel,
    x: Real[DIM],
    label: Index,
) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.

    The function of this class should be 1, the others -1.  Two classes share the function of the second class.
    O(N^2 + N D), if the basis changes O(N^3 / 6 + M N^2 + M N D).
    Returns DONE, ADDED or REPLACED; or REFUSED_INPUT or REFUSED_LABEL with nothing changed.
    """
    if not countable(m):
        return NystromStatus.REFUSED_STATE
    if not acceptable(m, x):
        return NystromStatus.REFUSED_INPUT
    if label < 0 or label >= m.classes:
        return NystromStatus.REFUSED_LABEL
    positive = 1
    for o in range(len(m.target)):
        if not m.single:
            positive = o
        m.target[o] = real(1) if label == positive else real(-1)
    return take(m, x)


# --------------------------------------------------------------------------------------------- a basis on demand


@kernel
def select(m: NystromModel) -> Index:
    """Choose the basis from the reservoir, by EFVS or SGMA, and learn the reservoir's labels again.

    O(N rho v (N + D) + M N^2).
    Returns DONE; or TOO_FEW with nothing changed, if there is no sample.
    """
    if not countable(m):
        return NystromStatus.REFUSED_STATE
    if m.count[0] == 0:
        return NystromStatus.TOO_FEW
    start_draws(m)
    drop_basis(m)
    choose_basis(m)
    n = m.n[0]
    for i in range(n):
        begin_coordinate(m, i)
    for t in range(m.count[0]):
        for i in range(n):
            m.z[i] = m.coordinates[t, i]
        for o in range(len(m.target)):
            m.target[o] = m.labels[t, o]
        # all weigh alike: slots are in no order of time
        learn_coordinates(m, n)
    return NystromStatus.DONE


@kernel
def drop_basis(m: NystromModel) -> None:
    """Forget the basis and all coordinates."""
    for i in range(len(m.l)):
        m.l[i] = real(0)
        m.r[i] = real(0)
    for i in range(len(m.v)):
        for j in range(len(m.v[0])):
            m.v[i, j] = real(0)
        for o in range(len(m.coefficients[0])):
            m.coefficients[i, o] = real(0)
        for t in range(len(m.rows)):
            m.coordinates[t, i] = real(0)
    m.turn[0] = 0
    m.n[0] = 0


@kernel
def restart(m: NystromModel) -> Index:
    """Forget everything, except the state of the random numbers.  O(N^2 + M (N + D))."""
    forget(m)
    drop_basis(m)
    for t in range(len(m.rows)):
        for j in range(len(m.rows[0])):
            m.rows[t, j] = real(0)
        for o in range(len(m.labels[0])):
            m.labels[t, o] = real(0)
    m.count[0] = 0
    m.seen[0] = 0
    return NystromStatus.DONE


# -------------------------------------------------------------------------------------- self-test and snapshots


@kernel
def rehearse(
    m: NystromModel,
    x: Real[DIM],
) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test.  They fill the basis and the reservoir."""
    seed = 1
    for t in range(m.rehearsed):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = m.rehearsal_input * strained(real(seed) / real(65536) - real(0.5))
            if m.rescales:
                x[j] = x[j] / m.input_scale[j] + m.input_center[j]
        for o in range(len(m.target)):
            seed = (seed * 75 + 74) % 65537
            m.target[o] = m.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = take(m, x)
        if status < 0:
            break
    if m.method == Method.EFVS or m.method == Method.SGMA:
        chosen = select(m)
        if chosen < 0:
            # only so that the known answer shows it
            m.seeds[0] = 1


@kernel
def valid_basis(m: NystromModel) -> Bool:
    """Whether L is within its limits, and all is zero beyond the vectors in use."""
    n = m.n[0]
    row = 0
    for i in range(len(m.v)):
        for j in range(len(m.v[0])):
            if i >= n and m.v[i, j] != real(0):
                return False
        for j in range(i):
            if not (absolute(m.l[row + j]) <= m.turned_limit):
                return False
            if i >= n and m.l[row + j] != real(0):
                return False
        if i < n:
            # a reciprocal: of a root above that of the smallest residual
            if not (m.l[row + i] >= real(1) / m.coordinate_limit and m.l[row + i] <= m.reciprocal_limit):
                return False
        elif m.l[row + i] != real(0):
            return False
        row = row + i + 1
    for i in range(len(m.seeds)):
        # all begin together
        if m.seeds[0] == 0 and m.seeds[i] != 0:
            return False
        if m.seeds[0] != 0 and m.seeds[i] == 0:
            return False
    return m.seeds[0] < 30269 and m.seeds[1] < 30307


@kernel
def valid_rows(m: NystromModel) -> Bool:
    """Whether the reservoir's rows are zero beyond those in use."""
    count = m.count[0]
    if m.seen[0] < count:
        return False
    if count < len(m.rows) and m.seen[0] != count:
        return False
    for t in range(len(m.rows)):
        for j in range(len(m.rows[0])):
            if t >= count and m.rows[t, j] != real(0):
                return False
        if m.method != Method.STREAM:
            for o in range(len(m.labels[0])):
                if t >= count and m.labels[t, o] != real(0):
                    return False
        if m.caches:
            for i in range(len(m.v)):
                if (t >= count or i >= m.n[0]) and m.coordinates[t, i] != real(0):
                    return False
    return True


@kernel
def valid(m: NystromModel) -> Bool:
    """Whether learning could have led to this state, beyond what the fields' ranges say.  O(N^2 + M (N + D))."""
    if not valid_stages(m, m.input_max_abs):
        return False
    if m.method == Method.GIVEN:
        if m.r[0] == real(0):
            return valid_regression(m, 0)
        return valid_regression(m, len(m.coefficients))
    if not valid_basis(m) or not valid_regression(m, m.n[0]):
        return False
    return valid_rows(m)


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
