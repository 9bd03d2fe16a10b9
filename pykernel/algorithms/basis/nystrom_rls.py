"""Least squares in the span of a few basis vectors.  Coefficients and basis vectors are learned from the stream, in
fixed memory.

A sample becomes a basis vector with a probability equal to its relative residual.  This is randomly pivoted Cholesky
factorisation (Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, Randomly pivoted Cholesky, 2023) on a stream.  When
the budget is full, the sample replaces the vector whose removal least increases the residuals of a reservoir of past
samples.  Alternatively, the basis is chosen from the reservoir on demand, or is constant.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.basis import nystrom
from pykernel.algorithms.basis.coordinates import (
    SMALLEST_RESIDUAL,
    DeviceBasis,
    Method,
    NystromConfig,
    NystromStatus,
    NystromWork,
    close_up,
    project,
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
from pykernel.algorithms.basis.nystrom import LocatedModel, features, residual
from pykernel.algorithms.basis.reservoir import (
    MOST_SEEN,
    Reservoir,
    ReservoirModel,
    choose_basis,
    enlarge,
    least_missed,
)
from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.frame import Framed, Status, hear, see
from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.packed import columns_within, row_of
from pykernel.algorithms.random_numbers import LARGEST_PERIOD, draw, position
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.vectors import all_zero, copy, plus_product
from pykernel.dialect import DIM, OUTPUTS, Bool, Index, Real, absolute, kernel, real, sqrt
from pykernel.dialect.program import Entry

# ---------------------------------------------------------------------------------------------------- questions


class NystromModel(Framed, RegressionModel, ReservoirModel):
    """A model with a basis, coefficients and a reservoir."""


@kernel
def size(m: NystromModel) -> Index:
    """Number of basis vectors in use."""
    if m.method == Method.GIVEN:
        return len(m.vectors)
    return m.n[0]


@kernel
def intact(m: NystromModel) -> Bool:
    """Whether all counts are within their ranges.  If they are, no loop runs past the end of an array, even if
    memory was overwritten."""
    if m.forgets and (m.turn[0] < 0 or m.turn[0] >= len(m.coefficients)):
        return False
    if m.method == Method.GIVEN:
        return True
    for i in range(len(m.seeds)):
        if m.seeds[i] < 0 or m.seeds[i] >= LARGEST_PERIOD:
            return False
    if m.n[0] < 0 or m.n[0] > len(m.v):
        return False
    return m.count[0] >= 0 and m.count[0] <= len(m.rows) and m.seen[0] >= m.count[0]


@kernel
def evaluate(m: NystromModel, n: Index, y: Real[OUTPUTS]) -> None:
    """Compute the functions' values at the coordinates m.z.  O(N) for each output."""
    for o in range(len(y)):
        total = real(0)
        for i in range(n):
            total += m.coefficients[i, o] * m.z[i]
        y[o] = total


@kernel
def give(m: NystromModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x) = coefficients' z(x).  If there is no basis, f(x) is 0.  O(N^2 / 2 + N D)."""
    project(m, x)
    evaluate(m, size(m), y)


@kernel
def locate(m: NystromModel, x: Real[DIM]) -> None:
    """Compute the coordinates and the residual of an unscaled input."""
    see(m, x)
    project(m, m.x)


# ------------------------------------------------------------------------------------------ the basis of a stream


@kernel
def start_draws(m: NystromModel) -> None:
    """Set the random number generator to its initial state, unless it already has a state."""
    if m.seeds[0] == 0:
        m.seeds[0] = m.seed_1
        m.seeds[1] = m.seed_2
        m.seeds[2] = m.seed_3


@kernel
def reduce(m: NystromModel, r: Index) -> None:
    """Remove basis vector r: rotate the coordinates until only the last one depends on r.  O(N^2 + N M).

    Givens rotations make L, now without row r, triangular again (G. H. Golub, C. F. Van Loan, Matrix Computations, 6.5).
    They also rotate all stored coordinates.  The residual of the sample grows by the square of the coordinate
    that the sample loses.
    """
    last = m.n[0] - 1
    row = row_of(r)
    for k in range(r, last):
        row = row + k + 1
        # row k + 1 stores its diagonal element as a reciprocal
        diagonal = real(1) / m.l[row + k + 1]
        length = sqrt(m.l[row + k] * m.l[row + k] + diagonal * diagonal)
        inverse = real(1) / length
        cosine = m.l[row + k] * inverse
        sine = diagonal * inverse
        # row k + 1 becomes row k; its diagonal element is clipped, because a loaded L need not be the factor of a Gram matrix
        m.l[row + k] = clipped(inverse, real(1) / m.coordinate_limit, m.reciprocal_limit)
        later = row
        for i in range(k + 2, last + 1):
            later = later + i
            old = m.l[later + k]
            other = m.l[later + k + 1]
            m.l[later + k] = bounded(cosine * old + sine * other, m.turned_limit)
            m.l[later + k + 1] = bounded(cosine * other - sine * old, m.turned_limit)
        rotate_pair(m.z, k, cosine, sine)
        if m.caches:
            for t in range(m.count[0]):
                rotate_pair(m.coordinates[t], k, cosine, sine)
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
    """Add the sample to the basis with a probability equal to its relative residual, if this residual is above
    ald_threshold.

    If the basis is full, the sample replaces the basis vector whose removal least increases the reservoir's residuals.
    A full basis does not change while the reservoir has unused rows, or if leaving out the sample increases the
    residuals less than removing any basis vector.
    """
    chance = draw(m.seeds)
    n = m.n[0]
    if not (m.kappa[0] > m.ald_threshold * m.own[0] and m.kappa[0] > SMALLEST_RESIDUAL):
        return Status.DONE
    if not (chance * m.own[0] < m.kappa[0]):
        return Status.DONE
    if n < len(m.v):
        widen(m)
        return NystromStatus.ADDED
    if m.count[0] < len(m.rows):
        return Status.DONE
    r = least_missed(m)
    if r == n:
        return Status.DONE
    reduce(m, r)
    widen(m)
    return NystromStatus.REPLACED


@kernel
def keep_row(m: NystromModel) -> None:
    """Add the sample to the reservoir.  If the reservoir is full, the sample replaces a random row or is skipped.  O(N + D)."""
    slot = m.count[0]
    if m.seen[0] < MOST_SEEN:
        m.seen[0] += 1
    if slot < len(m.rows):
        m.count[0] += 1
    else:
        slot = position(m.seeds, m.seen[0] if m.seen[0] < m.horizon else m.horizon)
    if slot < len(m.rows):
        copy(m.x, m.rows[slot], len(m.x))
        for o in range(len(m.y)):
            m.labels[slot, o] = m.y[o]
        if m.caches:
            for i in range(len(m.z)):
                m.coordinates[slot, i] = m.z[i] if i < m.n[0] else real(0)


@kernel
def learn(m: NystromModel, x: Real[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y."""
    project(m, x)
    evaluate(m, size(m), m.error)
    hear(m)
    status = 0
    if m.method != Method.GIVEN:
        start_draws(m)
    elif m.r[0] == real(0):
        # if the basis is constant, all coordinates are in use from the first sample on
        for i in range(len(m.coefficients)):
            begin_coordinate(m, i)
    if m.method == Method.STREAM:
        status = adapt(m)
    n = size(m)
    if m.forgets:
        fade(m, m.t, m.u, n, m.least)
    learn_coordinates(m, n)
    if m.method != Method.GIVEN:
        keep_row(m)
    return status


# --------------------------------------------------------------------------------------------- a basis on demand


@kernel
def select(m: NystromModel) -> Index:
    """Choose the basis from the reservoir, by EFVS or SGMA, and relearn the labels in the reservoir.

    O(N rho v (N + D) + M N^2): each step compares rho candidates over v rows; for SGMA, v is M.
    Returns DONE, or TOO_FEW with nothing changed if there is no sample.
    """
    if not intact(m):
        return Status.REFUSED_STATE
    if m.count[0] == 0:
        return NystromStatus.TOO_FEW
    start_draws(m)
    drop_basis(m)
    choose_basis(m)
    n = m.n[0]
    for i in range(n):
        begin_coordinate(m, i)
    for t in range(m.count[0]):
        copy(m.coordinates[t], m.z, n)
        copy(m.labels[t], m.y, len(m.y))
        # all rows have the same weight, because the reservoir does not keep them in order of arrival
        learn_coordinates(m, n)
    return Status.DONE


@kernel
def drop_basis(m: NystromModel) -> None:
    """Forget the basis, and all coordinates and coefficients."""
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


# -------------------------------------------------------------------------------------- self-test and snapshots


@kernel
def valid_basis(m: NystromModel) -> Bool:
    """Whether the elements of L are within their limits, unused places are zero, and the random number generator has a valid state."""
    n = m.n[0]
    row = 0
    for i in range(len(m.v)):
        if i >= n and not all_zero(m.v[i], len(m.v[0])):
            return False
        for j in range(i):
            if not (absolute(m.l[row + j]) <= m.turned_limit):
                return False
            if i >= n and m.l[row + j] != real(0):
                return False
        if i < n:
            # the diagonal is stored as the reciprocal square root of a residual
            if not (m.l[row + i] >= real(1) / m.coordinate_limit and m.l[row + i] <= m.reciprocal_limit):
                return False
        elif m.l[row + i] != real(0):
            return False
        row = row + i + 1
    for i in range(len(m.seeds)):
        # either all seeds are set, or none
        if (m.seeds[0] == 0 and m.seeds[i] != 0) or (m.seeds[0] != 0 and m.seeds[i] == 0):
            return False
    return m.seeds[0] < 30269 and m.seeds[1] < 30307


@kernel
def valid_rows(m: NystromModel) -> Bool:
    """Whether the reservoir's two counts agree, its coordinates are within their limits, and unused rows are zero."""
    count = m.count[0]
    if m.seen[0] < count:
        return False
    if count < len(m.rows) and m.seen[0] != count:
        return False
    for t in range(len(m.rows)):
        if t >= count and not all_zero(m.rows[t], len(m.rows[0])):
            return False
        if m.method != Method.STREAM and t >= count and not all_zero(m.labels[t], len(m.labels[0])):
            return False
        if m.caches:
            # rotations may move a row's whole length into one coordinate
            if not (
                plus_product(real(0), m.coordinates[t], m.coordinates[t], len(m.v))
                <= real(0.75) * m.turned_limit * m.turned_limit
            ):
                return False
            for i in range(len(m.v)):
                if (t >= count or i >= m.n[0]) and m.coordinates[t, i] != real(0):
                    return False
    return True


@kernel
def keeps(m: NystromModel) -> Bool:
    """Whether learning could have led to this state; the fields' ranges have been checked before.  O(N^2 + M (N + D))."""
    if m.method == Method.GIVEN:
        if m.r[0] == real(0):
            return valid_regression(m, 0)
        return valid_regression(m, len(m.coefficients))
    # R'R is a sum over the samples seen, so their number limits the lengths of R's columns
    known = m.coordinate_limit * m.coordinate_limit * real(m.seen[0]) + real(2) * m.root_ridge * m.root_ridge
    if m.seen[0] < MOST_SEEN and not columns_within(m.r, len(m.coefficients), known):
        return False
    return valid_basis(m) and valid_regression(m, m.n[0]) and valid_rows(m)


NYSTROM_RLS = programs(
    Rule(
        name="nystrom_rls",
        model=NystromModel,
        memory=(DeviceBasis, Regression, Reservoir),
        work=(NystromWork,),
        configs=(NystromConfig, KernelConfig),
        statuses=NystromStatus,
        hooks={
            frame.answer: give,
            frame.learn: learn,
            frame.intact: intact,
            frame.keeps: keeps,
            LocatedModel: NystromModel,
            nystrom.locate: locate,
            nystrom.size: size,
        },
        costs=("O(N^2 / 2 + N D)", "O(N^2 + N D); if the basis changes, O(N^3 / 6 + M N^2 + M N D)"),
        questions=(Entry("features", features, "question"), Entry("residual", residual, "question")),
        actions=(Entry("select", select, "action", lambda c: c.method in (Method.EFVS, Method.SGMA)),),
        restarts=True,
        between=("select",),
    )
)
