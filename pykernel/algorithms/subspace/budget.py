"""The budget of expansion vectors: the choice of the vector to remove, its removal, and the inverse Gram matrix P = T'T.

With the exact budget, vector i is removed from L = Phi A by an orthogonal projection: the other vectors take over the
part of vector i that they express.  The squared change of L is then |a_i|^2 / P_ii, where a_i is row i of A, and
P = K^-1.  P is stored as a triangular factor T, with vectors in their order of arrival, as in inverse_gram.py.  A new
vector adds a row to T.  To remove a vector, rotations gather the vector's column of T in one coordinate.  Because T
is stored instead of P, P_ii is a sum of squares, and rounding errors do not accumulate.

With the drop budget, row i of A is removed.  The squared change of L is then k_ii |a_i|^2, which is larger, because
1 / P_ii <= k_ii.

The newest sample is a candidate for removal before it is stored.  If the sample replaces a vector, the sample is first
appended to T.
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.hooks import Status
from pykernel.algorithms.kernel_choice import kernel_value, self_value
from pykernel.algorithms.packed import (
    lower_column,
    lower_column_norms,
    lower_times,
    lower_transposed_times,
    row_of,
    symmetric_close,
    symmetric_row,
)
from pykernel.algorithms.release import release_vector
from pykernel.algorithms.subspace.state import (
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
from pykernel.dialect import Bool, Constant, Index, Real, kernel, real, sqrt

CLAIM_LEAST = Constant(2.0**-60)
"""Claims do not fade below this value."""


@kernel
def keeps_gram(m: SubspaceModel) -> Bool:
    """Whether the update needs the Gram matrix."""
    return m.update == Update.NONPARAMETRIC or m.update == Update.HYBRID


@kernel
def gram_row(m: SubspaceModel, i: Index) -> None:
    """Write row i of the Gram matrix to m.column.  At most O(N D)."""
    if keeps_gram(m):
        symmetric_row(m.gram, i, m.column, m.n[0])
    else:
        for l in range(m.n[0]):
            m.column[l] = kernel_value(m, m.v[l], m.v[i])


# ------------------------------------------------------------------------------------------- the inverse Gram matrix


@kernel
def express(m: SubspaceModel, own: Real, n: Index) -> None:
    """Compute m.l = T k for the first n vectors, where k is in m.column, and m.delta, the part of own = k(x, x) that these
    vectors do not express.  O(N^2 / 2)."""
    lower_times(m.root, m.column, m.l, n)
    delta = own
    for j in range(n):
        delta = delta - m.l[j] * m.l[j]
    m.delta[0] = clipped(delta, real(0), own)


@kernel
def combination(m: SubspaceModel, n: Index) -> None:
    """Compute m.b = P k = T'l after express().  O(N^2 / 2)."""
    lower_transposed_times(m.root, m.l, m.b, 0, n)
    for j in range(n):
        m.b[j] = bounded(m.b[j], m.inverse_root_limit)


@kernel
def border(m: SubspaceModel, n: Index, delta: Real) -> None:
    """Append a vector to T as row n.  combination() must have been called for this vector.  O(N).

    delta: the part of the vector that the earlier vectors do not express.
    """
    scale = real(1) / sqrt(delta)
    row = row_of(n)
    for j in range(n):
        m.root[row + j] = bounded(-(m.b[j] * scale), m.inverse_root_limit)
    m.root[row + n] = bounded(scale, m.inverse_root_limit)


@kernel
def compare(m: SubspaceModel) -> None:
    """Compute m.b = P k, and m.delta, the part of the sample that the vectors cannot express.  O(N^2)."""
    copy(m.k, m.column, m.n[0])
    express(m, m.own[0], m.n[0])
    combination(m, m.n[0])


@kernel
def renew(m: SubspaceModel) -> None:
    """Recompute G and T from A and the expansion vectors.  O(N^2 (D + r) + N^3 / 3)."""
    for i in range(len(m.g)):
        m.g[i] = real(0)
    for i in range(m.n[0]):
        gram_row(m, i)
        row_times(m)
        add_rows(m.g, m.a[i], m.u)
    shorten(m)
    if m.budget == Budget.EXACT:
        for i in range(m.n[0]):
            gram_row(m, i)
            own = m.column[i]
            express(m, own, i)
            combination(m, i)
            # the vectors were independent when they were stored; rounding must not change this
            border(m, i, m.delta[0] if m.delta[0] > m.delta_least * own else m.delta_least * own)


# ------------------------------------------------------------------------------------------------ the vector to remove


@kernel
def own_inverse(m: SubspaceModel, i: Index) -> Real:
    """Diagonal element i of P, where P includes the sample; m.column contains the diagonal of P without the sample."""
    value = m.column[i] + m.b[i] * m.b[i] * (real(1) / m.delta[0])
    return clipped(value, m.inverse_least, m.inverse_limit)


@kernel
def least_missed(m: SubspaceModel) -> Index:
    """The index of the vector whose removal changes the subspace least; index n means the sample.  [fades] The
    change is multiplied by the vector's claim.

    [not budget DROP] O(N^2 / 2 + N r).  [budget DROP] O(N r).
    """
    best = 0
    least = real(0)
    if m.budget == Budget.EXACT:
        lower_column_norms(m.root, m.column, m.n[0])
    for i in range(m.n[0]):
        cost = (m.claim[i] if m.fades else real(1)) * square(m.a[i])
        if m.budget == Budget.EXACT:
            cost = cost * (real(1) / own_inverse(m, i))
        else:
            cost = cost * self_value(m, m.v[i])
        if i == 0 or cost < least:
            best = i
            least = cost
    own = square(m.t) * (m.delta[0] if m.budget == Budget.EXACT else m.own[0])
    return m.n[0] if own < least else best


# ----------------------------------------------------------------------------------------------- removing a vector


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
    """Add the sample to T, then remove vector r from A and T.  The other vectors take over the part of r that they express.  O(N^2 + N r).

    Let c be column r of P, where P includes the sample.  Removing r subtracts c c' / c_r from P.
    """
    n = m.n[0]
    border(m, n, m.delta[0])
    lower_column(m.root, r, m.column, n + 1)
    release = real(1) / clipped(m.column[r], m.inverse_least, m.inverse_limit)
    for j in range(len(m.u)):
        m.u[j] = m.a[r, j]
    for i in range(n):
        if i != r:
            share = m.column[i] * release
            for j in range(len(m.u)):
                m.a[i, j] = bounded(m.a[i, j] - share * m.u[j], m.row_limit)
    share = m.column[n] * release
    for j in range(len(m.t)):
        m.t[j] = bounded(m.t[j] - share * m.u[j], m.row_limit)
    add_square(m.g, -release, m.u)
    release_vector(m.root, m.column, m.l, m.b, m.column, r, n + 1, m.length_least)


@kernel
def close_gap(m: SubspaceModel, r: Index) -> None:
    """Move each vector after r one place forward, so that the vectors stay in order of arrival.  At most O(N (D + r) + N^2 / 2)."""
    n = m.n[0]
    if keeps_gram(m):
        symmetric_close(m.gram, r, n)
    for i in range(r, n - 1):
        copy(m.v[i + 1], m.v[i], len(m.x))
        copy(m.a[i + 1], m.a[i], len(m.t))
        m.k[i] = m.k[i + 1]
        if m.fades:
            m.claim[i] = m.claim[i + 1]


@kernel
def release_dropping(m: SubspaceModel, r: Index) -> None:
    """Drop vector r and its row a of A: G becomes G - a u' - u a' + k_rr a a', where u = A'k(X, x_r).  X contains
    the vectors and the sample.  O(N D + N r)."""
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

    [not budget DROP] O(N^2 + N (D + r)).  [budget DROP] O(N (D + r)).
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
            close_gap(m, r)
            r = n - 1
        else:
            release_dropping(m, r)
        put(m, r)
        status = SubspaceStatus.REPLACED
    return status
