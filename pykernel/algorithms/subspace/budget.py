"""Which expansion vector to remove when the budget is full, how the others replace it, and the inverse Gram matrix.

Exact: vector i is removed from L = Phi A by an orthogonal projection: the other rows of A change by what they express
of vector i.  L then changes by |a_i|^2 / P_ii, where P = K^-1.

Drop: row i is left out.  L then changes by k_ii |a_i|^2, which is more, because 1 / P_ii <= k_ii.

The newest sample is a candidate for removal before it is stored, so neither way needs a row beyond the budget.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value, self_value
from pykernel.algorithms.packed import invert, row_of, symmetric_clear, symmetric_row, symmetric_times
from pykernel.algorithms.subspace.state import (
    SMALLEST_SQUARE,
    Budget,
    Subspace,
    SubspaceConfig,
    SubspaceStatus,
    SubspaceWork,
    Update,
    add_products,
    add_square,
    square,
)
from pykernel.algorithms.subspace.update import add_rows, row_times, shorten
from pykernel.dialect import Bool, Constant, Index, Real, absolute, kernel, real

HALF = Constant(0.5)
SLACK = Constant(0.25)
"""Largest computed part of a sample outside of its range; with more, the inverse Gram matrix is no good."""
FAINT = Constant(2.0**-60)
"""Claims fade down to this."""


@kernel
def keeps_gram(c: SubspaceConfig) -> Bool:
    """Whether the update needs the Gram matrix."""
    return c.update == Update.NONPARAMETRIC or c.update == Update.HYBRID


@kernel
def gram_row(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig, i: Index) -> None:
    """Write row i of the Gram matrix to w.column.  O(N) if the matrix is stored, otherwise O(N D)."""
    if keeps_gram(c):
        symmetric_row(s.gram, i, w.column, s.n[0])
    else:
        for l in range(s.n[0]):
            w.column[l] = kernel_value(q, s.v[l], s.v[i])


# ------------------------------------------------------------------------------------------- the inverse Gram matrix


@kernel
def border(s: Subspace, w: SubspaceWork, c: SubspaceConfig, n: Index, delta: Real) -> None:
    """Add the sample to P as row and column n, given w.b = P k and delta.  O(N^2 / 2)."""
    inverse = real(1) / delta
    row = 0
    for i in range(n):
        part = w.b[i] * inverse
        for j in range(i + 1):
            s.p[row + j] = clipped(s.p[row + j] + part * w.b[j], -c.inverse_limit, c.inverse_limit)
        row = row + i + 1
    for j in range(n):
        s.p[row + j] = clipped(-(w.b[j] * inverse), -c.inverse_limit, c.inverse_limit)
    s.p[row + n] = inverse


@kernel
def renew(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """Compute G and P again, from A and the expansion vectors.  O(N^2 (D + r) + N^3 / 2)."""
    for i in range(len(s.g)):
        s.g[i] = real(0)
    for i in range(s.n[0]):
        gram_row(s, w, c, q, i)
        row_times(s, w)
        add_rows(s.g, s.a[i], w.u)
    shorten(s, c)
    if c.budget == Budget.EXACT:
        row = 0
        for i in range(s.n[0]):
            gram_row(s, w, c, q, i)
            for j in range(i + 1):
                s.p[row + j] = w.column[j]
            row = row + i + 1
        # the vectors were independent when they were stored; rounding must not change this
        invert(s.p, s.n[0], SLACK * c.ald_threshold, c.renewal_bound, c.coordinate_limit)
        for i in range(row):
            s.p[i] = clipped(s.p[i], -c.inverse_limit, c.inverse_limit)


@kernel
def compare(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """Compute w.b = P k, and w.delta, the part of the sample that the vectors cannot express.  O(N^2)."""
    n = s.n[0]
    for attempt in range(2):
        symmetric_times(s.p, w.k, w.b, n)
        delta = w.own[0]
        for i in range(n):
            delta = delta - w.k[i] * w.b[i]
        w.delta[0] = clipped(delta, real(0), w.own[0])
        if attempt == 0:
            if absolute(delta - HALF * w.own[0]) <= (HALF + SLACK) * w.own[0]:
                break
            # if delta is not from 0 to k(x, x), P is no inverse any more
            renew(s, w, c, q)


@kernel
def correct(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """Correct one column of P, so that P K e_i = e_i.  Each call takes the next column.  O(N D + N^2).

    The BFGS formula is P - (e_i h' + h e_i') / y_i + e_i e_i' (y'h / y_i^2 + 1 / y_i), where y = K e_i and h = P y.
    It keeps P positive definite, and over all i it converges to the inverse (R. M. Gower, P. Richtarik, Randomized
    quasi-Newton updates are linearly convergent matrix inversion algorithms, 2017).  If h is far from e_i, P is computed
    again.
    """
    n = s.n[0]
    i = s.probe[0]
    if i >= n:
        i = 0
    s.probe[0] = i + 1
    gram_row(s, w, c, q, i)
    symmetric_times(s.p, w.column, w.b, n)
    total = real(0)
    worst = real(0)
    for l in range(n):
        total += w.column[l] * w.b[l]
        off = w.b[l] - real(1) if l == i else w.b[l]
        if absolute(off) > worst:
            worst = absolute(off)
    # k(x, x) is above zero, except in a forged snapshot
    if not (worst <= HALF and w.column[i] > SMALLEST_SQUARE):
        renew(s, w, c, q)
    else:
        inverse = real(1) / w.column[i]
        at = row_of(i)
        for l in range(n):
            if l < i:
                s.p[at + l] = clipped(s.p[at + l] - w.b[l] * inverse, -c.inverse_limit, c.inverse_limit)
            elif l == i:
                at = at + i
                changed = s.p[at] + (real(1) + total * inverse - real(2) * w.b[i]) * inverse
                s.p[at] = clipped(changed, -c.inverse_limit, c.inverse_limit)
            else:
                at = at + l
                s.p[at] = clipped(s.p[at] - w.b[l] * inverse, -c.inverse_limit, c.inverse_limit)


# --------------------------------------------------------------------------------------------------- who goes


@kernel
def claim_of(s: Subspace, c: SubspaceConfig, i: Index) -> Real:
    """Vector i's claim to stay."""
    return s.claim[i] if c.fades else real(1)


@kernel
def own_inverse(s: Subspace, w: SubspaceWork, c: SubspaceConfig, at: Index, i: Index) -> Real:
    """Diagonal element i of the inverse Gram matrix with the sample; without, it is at place ``at`` of P."""
    value = s.p[at] + w.b[i] * w.b[i] * (real(1) / w.delta[0])
    return value if value > c.inverse_least else c.inverse_least


@kernel
def least_missed(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """The vector whose removal changes the subspace least; n is the sample.  O(N r)."""
    best = 0
    least = real(0)
    at = 0
    for i in range(s.n[0]):
        cost = claim_of(s, c, i) * square(s.a[i])
        if c.budget == Budget.EXACT:
            cost = cost * (real(1) / own_inverse(s, w, c, at, i))
            at = at + i + 2
        else:
            cost = cost * self_value(q, s.v[i])
        if i == 0 or cost < least:
            best = i
            least = cost
    own = square(w.t) * (w.delta[0] if c.budget == Budget.EXACT else w.own[0])
    return s.n[0] if own < least else best


# ----------------------------------------------------------------------------------------------- what happens then


@kernel
def project(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> None:
    """Replace Phi A + phi t' by Phi (A + b t'): keep the part of the sample that the vectors express.  O(N r)."""
    for i in range(s.n[0]):
        for j in range(len(w.t)):
            s.a[i, j] = clipped(s.a[i, j] + w.b[i] * w.t[j], -c.row_limit, c.row_limit)
    add_square(s.g, -w.delta[0], w.t)


@kernel
def leave_out(s: Subspace, w: SubspaceWork) -> None:
    """Replace Phi A + phi t' by Phi A: drop the sample.  O(N r)."""
    for j in range(len(w.h)):
        w.h[j] = w.own[0] * w.t[j]
    for i in range(s.n[0]):
        for j in range(len(w.h)):
            w.h[j] += w.k[i] * s.a[i, j]
    add_products(s.g, -real(1), w.t, w.h)
    add_square(s.g, w.own[0], w.t)


@kernel
def release_exactly(s: Subspace, w: SubspaceWork, c: SubspaceConfig, r: Index) -> None:
    """Replace vector r by the sample, in A and in P.  The others keep what they express of r.  O(N^2 + N r).

    P with the sample is P + b b' / delta, where the sample's row of P is 0 and its b is -1.  Let c be column r of this
    matrix.  Removing r subtracts c c' / c_r.
    """
    n = s.n[0]
    inverse = real(1) / w.delta[0]
    symmetric_row(s.p, r, w.column, n)
    own = own_inverse(s, w, c, row_of(r) + r, r)
    part = w.b[r] * inverse
    for i in range(n):
        w.column[i] += part * w.b[i]
    w.column[r] = -part
    release = real(1) / own
    for j in range(len(w.u)):
        w.u[j] = s.a[r, j]
    for i in range(n):
        share = w.column[i] * release
        if i == r:
            for j in range(len(w.t)):
                w.t[j] = clipped(w.t[j] - share * w.u[j], -c.row_limit, c.row_limit)
        else:
            for j in range(len(w.u)):
                s.a[i, j] = clipped(s.a[i, j] - share * w.u[j], -c.row_limit, c.row_limit)
    add_square(s.g, -release, w.u)
    w.b[r] = -real(1)
    symmetric_clear(s.p, r, n)
    row = 0
    for i in range(n):
        one = w.b[i] * inverse
        other = w.column[i] * release
        for j in range(i + 1):
            changed = s.p[row + j] + (one * w.b[j] - other * w.column[j])
            s.p[row + j] = clipped(changed, -c.inverse_limit, c.inverse_limit)
        row = row + i + 1


@kernel
def release_dropping(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig, r: Index) -> None:
    """Drop vector r with its row a of A: G - a h' - h a' + k_rr a a', where h = A'k(X, x_r).  O(N D + N r)."""
    gram_row(s, w, c, q, r)
    row_times(s, w)
    for j in range(len(w.u)):
        w.u[j] += w.k[r] * w.t[j]
        w.h[j] = s.a[r, j]
    add_products(s.g, -real(1), w.h, w.u)
    add_square(s.g, w.column[r], w.h)


@kernel
def put(s: Subspace, w: SubspaceWork, c: SubspaceConfig, i: Index) -> None:
    """Store the sample, and its rows of A and K, at position i.  O(N + D + r)."""
    for j in range(len(w.x)):
        s.v[i, j] = w.x[j]
    for j in range(len(w.t)):
        s.a[i, j] = clipped(w.t[j], -c.row_limit, c.row_limit)
    if c.fades:
        s.claim[i] = real(1)
    if keeps_gram(c):
        at = row_of(i)
        for l in range(s.n[0]):
            if l < i:
                s.gram[at + l] = w.k[l]
            elif l == i:
                at = at + i
                s.gram[at] = w.own[0]
            else:
                at = at + l
                s.gram[at] = w.k[l]


@kernel
def settle(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """Store the sample, whose row of A is in w.t.  If the budget is full, replace a vector or drop the sample.

    O(N^2 + N (D + r)), with budget drop O(N (D + r)).
    """
    n = s.n[0]
    status = SubspaceStatus.ADDED
    if n < len(s.v):
        if c.budget == Budget.EXACT:
            border(s, w, c, n, w.delta[0])
        s.n[0] = n + 1
        put(s, w, c, n)
    else:
        r = least_missed(s, w, c, q)
        if r == n:
            if c.budget == Budget.EXACT:
                project(s, w, c)
            else:
                leave_out(s, w)
            return SubspaceStatus.DONE
        if c.budget == Budget.EXACT:
            release_exactly(s, w, c, r)
        else:
            release_dropping(s, w, c, q, r)
        put(s, w, c, r)
        status = SubspaceStatus.REPLACED
    if c.budget == Budget.EXACT:
        correct(s, w, c, q)
    return status
