"""Which expansion vector to remove when the budget is full, how the others replace it, and the inverse Gram matrix.

Exact: vector i is removed from L = Phi A by an orthogonal projection: the other rows of A change by what they express
of vector i.  L then changes by |a_i|^2 / P_ii, where P = K^-1.

Drop: row i is left out.  L then changes by k_ii |a_i|^2, which is more, because 1 / P_ii <= k_ii.

The newest sample is a candidate for removal before it is stored, so neither way needs a row beyond the budget.
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.frame import Status
from pykernel.algorithms.kernel_choice import kernel_value, self_value
from pykernel.algorithms.packed import invert, row_of, symmetric_clear, symmetric_row, symmetric_times
from pykernel.algorithms.subspace.state import (
    SMALLEST_SQUARE,
    Budget,
    SubspaceModel,
    SubspaceStatus,
    Update,
    add_products,
    add_square,
    square,
)
from pykernel.algorithms.subspace.update import add_rows, row_times, shorten
from pykernel.algorithms.vectors import add_multiple, copy
from pykernel.dialect import Bool, Constant, Index, Real, absolute, kernel, real

HALF = Constant(0.5)
SLACK = Constant(0.25)
"""Largest computed part of a sample outside of its range; with more, the inverse Gram matrix is no good."""
FAINT = Constant(2.0**-60)
"""Claims fade down to this."""


@kernel
def keeps_gram(m: SubspaceModel) -> Bool:
    """Whether the update needs the Gram matrix."""
    return m.update == Update.NONPARAMETRIC or m.update == Update.HYBRID


@kernel
def gram_row(m: SubspaceModel, i: Index) -> None:
    """Write row i of the Gram matrix to m.column.  O(N) if the matrix is stored, otherwise O(N D)."""
    if keeps_gram(m):
        symmetric_row(m.gram, i, m.column, m.n[0])
    else:
        for l in range(m.n[0]):
            m.column[l] = kernel_value(m, m.v[l], m.v[i])


# ------------------------------------------------------------------------------------------- the inverse Gram matrix


@kernel
def border(m: SubspaceModel, n: Index, delta: Real) -> None:
    """Add the sample to P as row and column n, given m.b = P k and delta.  O(N^2 / 2)."""
    inverse = real(1) / delta
    row = 0
    for i in range(n):
        part = m.b[i] * inverse
        for j in range(i + 1):
            m.p[row + j] = bounded(m.p[row + j] + part * m.b[j], m.inverse_limit)
        row = row + i + 1
    for j in range(n):
        m.p[row + j] = bounded(-(m.b[j] * inverse), m.inverse_limit)
    m.p[row + n] = inverse


@kernel
def renew(m: SubspaceModel) -> None:
    """Compute G and P again, from A and the expansion vectors.  O(N^2 (D + r) + N^3 / 2)."""
    for i in range(len(m.g)):
        m.g[i] = real(0)
    for i in range(m.n[0]):
        gram_row(m, i)
        row_times(m)
        add_rows(m.g, m.a[i], m.u)
    shorten(m)
    if m.budget == Budget.EXACT:
        row = 0
        for i in range(m.n[0]):
            gram_row(m, i)
            for j in range(i + 1):
                m.p[row + j] = m.column[j]
            row = row + i + 1
        # the vectors were independent when they were stored; rounding must not change this
        invert(m.p, m.n[0], SLACK * m.ald_threshold, m.renewal_bound, m.coordinate_limit)
        for i in range(row):
            m.p[i] = bounded(m.p[i], m.inverse_limit)


@kernel
def compare(m: SubspaceModel) -> None:
    """Compute m.b = P k, and m.delta, the part of the sample that the vectors cannot express.  O(N^2)."""
    n = m.n[0]
    for attempt in range(2):
        symmetric_times(m.p, m.k, m.b, n)
        delta = m.own[0]
        for i in range(n):
            delta = delta - m.k[i] * m.b[i]
        m.delta[0] = clipped(delta, real(0), m.own[0])
        if attempt == 0:
            if absolute(delta - HALF * m.own[0]) <= (HALF + SLACK) * m.own[0]:
                break
            # if delta is not from 0 to k(x, x), P is no inverse any more
            renew(m)


@kernel
def correct(m: SubspaceModel) -> None:
    """Correct one column of P, so that P K e_i = e_i.  Each call takes the next column.  O(N D + N^2).

    The BFGS formula is P - (e_i h' + h e_i') / y_i + e_i e_i' (y'h / y_i^2 + 1 / y_i), where y = K e_i and h = P y.
    It keeps P positive definite, and over all i it converges to the inverse (R. M. Gower, P. Richtarik, Randomized
    quasi-Newton updates are linearly convergent matrix inversion algorithms, 2017).  If h is far from e_i, P is computed
    again.
    """
    n = m.n[0]
    i = m.probe[0]
    if i >= n:
        i = 0
    m.probe[0] = i + 1
    gram_row(m, i)
    symmetric_times(m.p, m.column, m.b, n)
    total = real(0)
    worst = real(0)
    for l in range(n):
        total += m.column[l] * m.b[l]
        off = m.b[l] - real(1) if l == i else m.b[l]
        if absolute(off) > worst:
            worst = absolute(off)
    # k(x, x) is above zero, except in a forged snapshot
    if not (worst <= HALF and m.column[i] > SMALLEST_SQUARE):
        renew(m)
    else:
        inverse = real(1) / m.column[i]
        at = row_of(i)
        for l in range(n):
            if l < i:
                m.p[at + l] = bounded(m.p[at + l] - m.b[l] * inverse, m.inverse_limit)
            elif l == i:
                at = at + i
                changed = m.p[at] + (real(1) + total * inverse - real(2) * m.b[i]) * inverse
                m.p[at] = bounded(changed, m.inverse_limit)
            else:
                at = at + l
                m.p[at] = bounded(m.p[at] - m.b[l] * inverse, m.inverse_limit)


# --------------------------------------------------------------------------------------------------- who goes


@kernel
def own_inverse(m: SubspaceModel, at: Index, i: Index) -> Real:
    """Diagonal element i of the inverse Gram matrix with the sample; without, it is at place ``at`` of P."""
    value = m.p[at] + m.b[i] * m.b[i] * (real(1) / m.delta[0])
    return value if value > m.inverse_least else m.inverse_least


@kernel
def least_missed(m: SubspaceModel) -> Index:
    """The vector whose removal changes the subspace least; n is the sample.  O(N r)."""
    best = 0
    least = real(0)
    at = 0
    for i in range(m.n[0]):
        cost = (m.claim[i] if m.fades else real(1)) * square(m.a[i])
        if m.budget == Budget.EXACT:
            cost = cost * (real(1) / own_inverse(m, at, i))
            at = at + i + 2
        else:
            cost = cost * self_value(m, m.v[i])
        if i == 0 or cost < least:
            best = i
            least = cost
    own = square(m.t) * (m.delta[0] if m.budget == Budget.EXACT else m.own[0])
    return m.n[0] if own < least else best


# ----------------------------------------------------------------------------------------------- what happens then


@kernel
def project(m: SubspaceModel) -> None:
    """Replace Phi A + phi t' by Phi (A + b t'): keep the part of the sample that the vectors express.  O(N r)."""
    for i in range(m.n[0]):
        for j in range(len(m.t)):
            m.a[i, j] = bounded(m.a[i, j] + m.b[i] * m.t[j], m.row_limit)
    add_square(m.g, -m.delta[0], m.t)


@kernel
def leave_out(m: SubspaceModel) -> None:
    """Replace Phi A + phi t' by Phi A: drop the sample.  O(N r)."""
    for j in range(len(m.h)):
        m.h[j] = m.own[0] * m.t[j]
    for i in range(m.n[0]):
        add_multiple(m.h, m.k[i], m.a[i], len(m.h))
    add_products(m.g, -real(1), m.t, m.h)
    add_square(m.g, m.own[0], m.t)


@kernel
def release_exactly(m: SubspaceModel, r: Index) -> None:
    """Replace vector r by the sample, in A and in P.  The others keep what they express of r.  O(N^2 + N r).

    P with the sample is P + b b' / delta, where the sample's row of P is 0 and its b is -1.  Let c be column r of this
    matrix.  Removing r subtracts c c' / c_r.
    """
    n = m.n[0]
    inverse = real(1) / m.delta[0]
    symmetric_row(m.p, r, m.column, n)
    own = own_inverse(m, row_of(r) + r, r)
    part = m.b[r] * inverse
    for i in range(n):
        m.column[i] += part * m.b[i]
    m.column[r] = -part
    release = real(1) / own
    for j in range(len(m.u)):
        m.u[j] = m.a[r, j]
    for i in range(n):
        share = m.column[i] * release
        if i == r:
            for j in range(len(m.t)):
                m.t[j] = bounded(m.t[j] - share * m.u[j], m.row_limit)
        else:
            for j in range(len(m.u)):
                m.a[i, j] = bounded(m.a[i, j] - share * m.u[j], m.row_limit)
    add_square(m.g, -release, m.u)
    m.b[r] = -real(1)
    symmetric_clear(m.p, r, n)
    row = 0
    for i in range(n):
        one = m.b[i] * inverse
        other = m.column[i] * release
        for j in range(i + 1):
            changed = m.p[row + j] + (one * m.b[j] - other * m.column[j])
            m.p[row + j] = bounded(changed, m.inverse_limit)
        row = row + i + 1


@kernel
def release_dropping(m: SubspaceModel, r: Index) -> None:
    """Drop vector r with its row a of A: G - a h' - h a' + k_rr a a', where h = A'k(X, x_r).  O(N D + N r)."""
    gram_row(m, r)
    row_times(m)
    add_multiple(m.u, m.k[r], m.t, len(m.u))
    copy(m.a[r], m.h, len(m.h))
    add_products(m.g, -real(1), m.h, m.u)
    add_square(m.g, m.column[r], m.h)


@kernel
def put(m: SubspaceModel, i: Index) -> None:
    """Store the sample, and its rows of A and K, at position i.  O(N + D + r)."""
    for j in range(len(m.x)):
        m.v[i, j] = m.x[j]
    for j in range(len(m.t)):
        m.a[i, j] = bounded(m.t[j], m.row_limit)
    if m.fades:
        m.claim[i] = real(1)
    if keeps_gram(m):
        at = row_of(i)
        for l in range(m.n[0]):
            if l < i:
                m.gram[at + l] = m.k[l]
            elif l == i:
                at = at + i
                m.gram[at] = m.own[0]
            else:
                at = at + l
                m.gram[at] = m.k[l]


@kernel
def settle(m: SubspaceModel) -> Index:
    """Store the sample, whose row of A is in m.t.  If the budget is full, replace a vector or drop the sample.

    O(N^2 + N (D + r)), with budget drop O(N (D + r)).
    """
    n = m.n[0]
    status = SubspaceStatus.ADDED
    if n < len(m.v):
        if m.budget == Budget.EXACT:
            border(m, n, m.delta[0])
        m.n[0] = n + 1
        put(m, n)
    else:
        r = least_missed(m)
        if r == n:
            if m.budget == Budget.EXACT:
                project(m)
            else:
                leave_out(m)
            return Status.DONE
        if m.budget == Budget.EXACT:
            release_exactly(m, r)
        else:
            release_dropping(m, r)
        put(m, r)
        status = SubspaceStatus.REPLACED
    if m.budget == Budget.EXACT:
        correct(m)
    return status
