"""A random sample of the stream, in fixed memory, and what it says of a basis: what it loses, what would be gained.

Rows come and go so that each sample of the past, or of the last ``horizon``, is there with the same probability
(J. S. Vitter, Random sampling with a reservoir, 1985).
"""

from pykernel.algorithms.basis.coordinates import (
    SMALLEST_RESIDUAL,
    DeviceBasis,
    Method,
    NystromConfig,
    NystromWork,
    append,
    invert_diagonal,
)
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import M_MAX, N_MAX
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value, self_value
from pykernel.algorithms.packed import substitute_backward, substitute_forward
from pykernel.algorithms.random_numbers import position
from pykernel.dialect import DIM, OUTPUTS, Bool, Index, Real, Struct, between, kernel, real, sqrt

MOST_SEEN = 4_194_304
"""Samples that are counted: positions are drawn with 23 bits."""


class Reservoir(Struct):
    """The reservoir: some rows of the stream of samples."""

    rows: between(Real[M_MAX, DIM], "-scaled_limit", "scaled_limit")  # scaled inputs
    labels: between(Real[M_MAX, OUTPUTS], "-label_max_abs", "label_max_abs")  # labels of the rows
    coordinates: between(Real[M_MAX, N_MAX], "-turned_limit", "turned_limit")  # z of each row
    count: between(Index, 0, M_MAX)  # number of rows in use; all later places are zero
    seen: between(Index, 0, MOST_SEEN)  # number of samples seen; counting stops at a limit


@kernel
def row_coordinates(b: DeviceBasis, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig, t: Index) -> None:
    """Write the coordinates of row t to w.t.  O(N) if they are cached, otherwise O(N^2 / 2 + N D)."""
    if c.caches:
        for i in range(b.n[0]):
            w.t[i] = e.coordinates[t, i]
    else:
        for i in range(b.n[0]):
            w.t[i] = kernel_value(q, b.v[i], e.rows[t])
        substitute_forward(b.l, w.t, b.n[0], c.coordinate_limit)


# ----------------------------------------------------------------------------------------- what would be lost


@kernel
def least_missed(b: DeviceBasis, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig) -> Index:
    """The basis vector whose removal the reservoir would miss least; n is the sample.  O(N^3 / 6 + M (N^2 + N D)).

    Without vector j of n + 1, the rows lose sum_t (P_j. k_t)^2 / P_jj, where P inverts the Gram matrix of all.
    """
    n = b.n[0]
    inverse = real(1) / w.kappa[0]
    invert_diagonal(b, w)
    substitute_backward(b.l, w.z, w.a, n, c.solved_limit)
    newest = real(0)
    for j in range(n):
        w.loss[j] = real(0)
    for t in range(e.count[0]):
        row_coordinates(b, e, w, c, q, t)
        # what the basis leaves over of the row, in the direction of the sample
        over = kernel_value(q, w.x, e.rows[t])
        for k in range(n):
            over = over - w.t[k] * w.z[k]
        newest += over * over
        over = over * inverse
        substitute_backward(b.l, w.t, w.u, n, c.solved_limit)
        for j in range(n):
            part = w.u[j] - w.a[j] * over
            w.loss[j] += part * part
    best = n
    least = newest * inverse
    for s in range(n):
        i = n - 1 - s
        loss = w.loss[i] * (real(1) / (w.spread[i] + w.a[i] * w.a[i] * inverse))
        # of equals the first
        if loss <= least:
            least = loss
            best = i
    return best


# ---------------------------------------------------------------------------------------- what would be gained


@kernel
def survivors(w: NystromWork, c: NystromConfig, e: Reservoir, q: KernelConfig, alive: Index) -> Index:
    """Keep in w.order the rows whose rest is above ald_threshold, and return their number.  O(M)."""
    kept = 0
    for s in range(alive):
        t = w.order[s]
        if w.rest[t] > c.ald_threshold * self_value(q, e.rows[t]) and w.rest[t] > SMALLEST_RESIDUAL:
            w.order[kept] = t
            kept = kept + 1
    return kept


@kernel
def mean_left_over(e: Reservoir, w: NystromWork) -> Real:
    """Mean of delta over the reservoir: 1 - J of Cawley and Talbot.  O(M)."""
    total = real(0)
    for t in range(e.count[0]):
        total += w.rest[t] * w.share[t]
    return total * (real(1) / real(e.count[0]))


@kernel
def shuffle(seeds: Index[3], order: Index[...], count: Index, drawn: Index) -> None:
    """Draw so many of the first count entries to the front, without replacement (R. A. Fisher, F. Yates).  O(drawn)."""
    for i in range(drawn):
        further = position(seeds, count - i)
        other = order[i + further]
        order[i + further] = order[i]
        order[i] = other


@kernel
def gain(e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig, r: Index, points: Index, n: Index) -> Real:
    """What row r as a basis vector takes off the residuals of so many points.  O(points (N + D)).

    EFVS: sum_t R_tr^2 / (k_tt R_rr), the gain in relative residual; SGMA: sum_t R_tr^2 / R_rr, that in its trace.
    """
    total = real(0)
    for s in range(points):
        t = w.points[s]
        over = kernel_value(q, e.rows[t], e.rows[r])
        for i in range(n):
            over = over - e.coordinates[t, i] * e.coordinates[r, i]
        if c.method == Method.EFVS:
            total += over * over * w.share[t]
        else:
            total += over * over
    return total * (real(1) / w.rest[r])


@kernel
def best_candidate(
    b: DeviceBasis, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig, alive: Index
) -> Index:
    """The row with the largest gain, among rho random rows.  O(rho v (N + D)).

    G. C. Cawley, N. L. C. Talbot 2002, sections 1.3 and 1.4; A. J. Smola, B. Schoelkopf 2000, section 4.
    """
    compared = alive
    if c.candidates < alive:
        compared = c.candidates
        shuffle(b.seeds, w.order, alive, compared)
    points = e.count[0]
    if c.method == Method.EFVS:
        points = alive
        for s in range(alive):
            w.points[s] = w.order[s]
        if c.sampled < alive:
            points = c.sampled
            shuffle(b.seeds, w.points, alive, points)
    else:
        for t in range(points):
            w.points[t] = t
    best = w.order[0]
    most = -real(1)
    for s in range(compared):
        value = gain(e, w, c, q, w.order[s], points, b.n[0])
        if value > most:
            most = value
            best = w.order[s]
    return best


@kernel
def enlarge(b: DeviceBasis, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig, x: Real[DIM]) -> None:
    """Append a basis vector whose coordinates and rest are in w.  Each row gets a new coordinate.  O(M (N + D)).

    No other coordinate changes.
    """
    n = b.n[0]
    if c.caches:
        inverse = real(1) / sqrt(w.kappa[0])
        for t in range(e.count[0]):
            over = kernel_value(q, x, e.rows[t])
            for i in range(n):
                over = over - e.coordinates[t, i] * w.z[i]
            over = clipped(over * inverse, -c.coordinate_limit, c.coordinate_limit)
            e.coordinates[t, n] = over
            if c.method != Method.STREAM:
                rest = w.rest[t] - over * over
                w.rest[t] = rest if rest > real(0) else real(0)
    append(b, w, x)


@kernel
def satisfied(e: Reservoir, w: NystromWork, c: NystromConfig) -> Bool:
    """Whether what is left over of the reservoir is no more than wanted."""
    return mean_left_over(e, w) <= c.tau


@kernel
def choose_basis(b: DeviceBasis, e: Reservoir, w: NystromWork, c: NystromConfig, q: KernelConfig) -> None:
    """Choose a basis for the rows, by EFVS or SGMA.  O(N rho v (N + D))."""
    b.n[0] = 0
    alive = e.count[0]
    for t in range(alive):
        own = self_value(q, e.rows[t])
        w.order[t] = t
        w.rest[t] = own
        w.share[t] = real(1) / own if own > SMALLEST_RESIDUAL else real(0)
    for step in range(len(b.v)):
        alive = survivors(w, c, e, q, alive)
        if alive == 0 or satisfied(e, w, c):
            break
        r = best_candidate(b, e, w, c, q, alive)
        for i in range(b.n[0]):
            w.z[i] = e.coordinates[r, i]
        w.kappa[0] = w.rest[r]
        enlarge(b, e, w, c, q, e.rows[r])
        # rounding may have left something of it
        w.rest[r] = real(0)
