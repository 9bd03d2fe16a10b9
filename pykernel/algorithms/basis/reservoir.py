"""A random selection of past samples in fixed memory, used to estimate how changes of the basis affect residuals.

During the first ``horizon`` samples, each past sample is in the reservoir with the same probability (J. S. Vitter, Random
sampling with a reservoir, 1985).  After that, a row stays in the reservoir for ``horizon`` samples on average.
"""

from pykernel.algorithms.basis.coordinates import (
    SMALLEST_RESIDUAL,
    BasisModel,
    Method,
    append,
    invert_diagonal,
)
from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.extents import M_MAX, N_MAX
from pykernel.algorithms.kernel_choice import kernel_value, self_value
from pykernel.algorithms.packed import substitute_backward, substitute_forward
from pykernel.algorithms.random_numbers import position
from pykernel.algorithms.vectors import copy, minus_product, plus_product, zero
from pykernel.dialect import DIM, OUTPUTS, Index, Real, Struct, between, kernel, real, sqrt

MOST_SEEN = 4_194_304
"""Samples are counted up to this number, 2^22, because ``position`` draws from at most 2^23 positions."""


class Reservoir(Struct):
    """The reservoir: a random selection of past samples, one in each row."""

    rows: between(Real[M_MAX, DIM], "-scaled_limit", "scaled_limit")  # scaled inputs
    labels: between(Real[M_MAX, OUTPUTS], "-label_max_abs", "label_max_abs")  # labels of the rows
    coordinates: between(Real[M_MAX, N_MAX], "-turned_limit", "turned_limit")  # z of each row
    count: between(Index, 0, M_MAX)  # number of rows in use; unused rows are zero
    seen: between(Index, 0, MOST_SEEN)  # number of samples seen; counting stops at a limit


class ReservoirModel(BasisModel):
    parts = (Reservoir,)


@kernel
def row_coordinates(m: ReservoirModel, t: Index) -> None:
    """Write the coordinates of row t to m.t.  [caches] O(N).  [not caches] O(N^2 / 2 + N D)."""
    if m.caches:
        copy(m.coordinates[t], m.t, m.n[0])
    else:
        for i in range(m.n[0]):
            m.t[i] = kernel_value(m, m.v[i], m.rows[t])
        substitute_forward(m.l, m.t, m.n[0], m.coordinate_limit)


# ------------------------------------------------------------------------------------- removing a basis vector


@kernel
def least_missed(m: ReservoirModel) -> Index:
    """The index of the basis vector whose removal least increases the rows' residuals; n if leaving out the sample
    increases them least.  O(N^3 / 6 + M (N^2 + N D)).

    Without vector j, the residuals grow by sum_t (P_j. k_t)^2 / P_jj, where P is the inverse Gram matrix of the
    n + 1 vectors (the basis and the sample), P_j. is row j of P, and k_t contains row t's kernel values with these vectors.
    """
    n = m.n[0]
    inverse = real(1) / m.kappa[0]
    invert_diagonal(m)
    substitute_backward(m.l, m.z, m.a, n, m.solved_limit)
    newest = real(0)
    zero(m.loss, n)
    for t in range(m.count[0]):
        row_coordinates(m, t)
        # inner product of the parts of the row and of the sample that the basis cannot express
        over = minus_product(kernel_value(m, m.x, m.rows[t]), m.t, m.z, n)
        newest += over * over
        over = over * inverse
        substitute_backward(m.l, m.t, m.u, n, m.solved_limit)
        for j in range(n):
            part = m.u[j] - m.a[j] * over
            m.loss[j] += part * part
    best = n
    least = newest * inverse
    for s in range(n):
        i = n - 1 - s
        loss = m.loss[i] * (real(1) / (m.spread[i] + m.a[i] * m.a[i] * inverse))
        # if several losses are equal, the first vector is chosen
        if loss <= least:
            least = loss
            best = i
    return best


# -------------------------------------------------------------------------------------------- choosing a basis


@kernel
def survivors(m: ReservoirModel, alive: Index) -> Index:
    """Remove from m.order the rows whose relative residual is at most ald_threshold; return the number of rows left.  O(M)."""
    kept = 0
    for s in range(alive):
        t = m.order[s]
        if m.rest[t] > m.ald_threshold * self_value(m, m.rows[t]) and m.rest[t] > SMALLEST_RESIDUAL:
            m.order[kept] = t
            kept = kept + 1
    return kept


@kernel
def mean_left_over(m: ReservoirModel) -> Real:
    """Mean relative residual over the reservoir: 1 - J in the notation of Cawley and Talbot 2002.  O(M)."""
    return plus_product(real(0), m.rest, m.share, m.count[0]) * (real(1) / real(m.count[0]))


@kernel
def shuffle(seeds: Index[3], order: Index[...], count: Index, drawn: Index) -> None:
    """Move ``drawn`` entries, chosen at random among the first ``count``, to the front (R. A. Fisher, F. Yates).  O(drawn)."""
    for i in range(drawn):
        further = position(seeds, count - i)
        other = order[i + further]
        order[i + further] = order[i]
        order[i] = other


@kernel
def gain(m: ReservoirModel, r: Index, points: Index, n: Index) -> Real:
    """By how much the residuals of the rows in m.points would decrease if row r became a basis vector.  O(points (N + D)).

    Let R be the residual matrix: the part of the rows' Gram matrix that the basis cannot express.  For EFVS, which
    reduces relative residuals, the gain is sum_t R_tr^2 / (k_tt R_rr).  For SGMA, the gain is sum_t R_tr^2 / R_rr, the
    decrease in R's trace.
    """
    total = real(0)
    for s in range(points):
        t = m.points[s]
        over = minus_product(kernel_value(m, m.rows[t], m.rows[r]), m.coordinates[t], m.coordinates[r], n)
        if m.method == Method.EFVS:
            total += over * over * m.share[t]
        else:
            total += over * over
    return total * (real(1) / m.rest[r])


@kernel
def best_candidate(m: ReservoirModel, alive: Index) -> Index:
    """The row with the largest gain, among rho random rows.  O(rho v (N + D)).

    v is the number of rows over which each gain is summed; for SGMA, these are all M rows.
    G. C. Cawley, N. L. C. Talbot 2002, sections 1.3 and 1.4; A. J. Smola, B. Schoelkopf 2000, section 4.
    """
    compared = alive
    if m.candidates < alive:
        compared = m.candidates
        shuffle(m.seeds, m.order, alive, compared)
    points = m.count[0]
    if m.method == Method.EFVS:
        points = alive
        for s in range(alive):
            m.points[s] = m.order[s]
        if m.sampled < alive:
            points = m.sampled
            shuffle(m.seeds, m.points, alive, points)
    else:
        for t in range(points):
            m.points[t] = t
    best = m.order[0]
    most = -real(1)
    for s in range(compared):
        value = gain(m, m.order[s], points, m.n[0])
        if value > most:
            most = value
            best = m.order[s]
    return best


@kernel
def enlarge(m: ReservoirModel, x: Real[DIM]) -> None:
    """Append the scaled input x to the basis, and compute the new coordinate of each row.  O(M (N + D)).

    The coordinates of x are in m.z, and its residual is in m.kappa.  The other coordinates of the rows do not change.
    """
    n = m.n[0]
    if m.caches:
        inverse = real(1) / sqrt(m.kappa[0])
        for t in range(m.count[0]):
            over = minus_product(kernel_value(m, x, m.rows[t]), m.coordinates[t], m.z, n)
            over = bounded(over * inverse, m.coordinate_limit)
            m.coordinates[t, n] = over
            if m.method != Method.STREAM:
                rest = m.rest[t] - over * over
                m.rest[t] = rest if rest > real(0) else real(0)
    append(m, x)


@kernel
def choose_basis(m: ReservoirModel) -> None:
    """Choose a basis for the rows, by EFVS or SGMA.  O(N rho v (N + D)), with rho and v as in ``best_candidate``."""
    m.n[0] = 0
    alive = m.count[0]
    for t in range(alive):
        own = self_value(m, m.rows[t])
        m.order[t] = t
        m.rest[t] = own
        m.share[t] = real(1) / own if own > SMALLEST_RESIDUAL else real(0)
    for step in range(len(m.v)):
        alive = survivors(m, alive)
        if alive == 0 or mean_left_over(m) <= m.tau:
            break
        r = best_candidate(m, alive)
        copy(m.coordinates[r], m.z, m.n[0])
        m.kappa[0] = m.rest[r]
        enlarge(m, m.rows[r])
        # rounding may have left a small residual
        m.rest[r] = real(0)
