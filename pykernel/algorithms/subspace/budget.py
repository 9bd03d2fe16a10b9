"""Which expansion vector goes when the budget is full, what the others take over of it, and the inverse Gram matrix.

Exact: of L = Phi A, row i is removed so that L changes least, by |a_i|^2 / P_ii with P = K^-1: the others' rows change by
what they express of vector i, the orthogonal projection.  Drop: row i is left out, which changes L by k_ii |a_i|^2, 1 /
P_ii <= k_ii.  The newest sample competes before it is stored, so neither needs a row more than the budget.
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
from pykernel.dialect import Bool, Constant, Index, Real, absolute, entry, kernel, real

HALF = Constant(0.5)
SLACK = Constant(0.25)
"""How far beyond its range a part of a sample may be computed, of an inverse Gram matrix that is still good."""
FAINT = Constant(2.0**-60)
"""Claims fade down to this."""


@kernel
def keeps_gram(c: SubspaceConfig) -> Bool:
    """Whether the update works on the Gram matrix."""
    return c.update == Update.NONPARAMETRIC or c.update == Update.HYBRID


@entry
def gram_row(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig, i: Index) -> None:
    """k(X, x_i) to w.column: kept, or O(N D)."""
    if keeps_gram(c):
        symmetric_row(s.gram, i, w.column, s.n[0])
    else:
        for l in range(s.n[0]):
            w.column[l] = kernel_value(q, s.v[l], s.v[i])


# ------------------------------------------------------------------------------------------- the inverse Gram matrix


@entry
def border(s: Subspace, w: SubspaceWork, c: SubspaceConfig, n: Index, delta: Real) -> None:
    """P, n x n, bordered by a vector of which w.b = P k and delta is left over.  O(N^2 / 2)."""
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


@entry
def renew(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """G and P from A and the expansion vectors.  O(N^2 (D + r) + N^3 / 2)."""
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
        # rounding must not make a vector depend on the others that did not when it was stored
        invert(s.p, s.n[0], SLACK * c.ald_threshold, c.renewal_bound, c.coordinate_limit)
        for i in range(row):
            s.p[i] = clipped(s.p[i], -c.inverse_limit, c.inverse_limit)


@entry
def compare(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """w.b = P k and w.delta, what the expansion vectors leave over of the sample.  O(N^2)."""
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
            # from 0 to k(x, x), or P is no inverse any more
            renew(s, w, c, q)


@entry
def correct(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> None:
    """Make one column of P true, each in its turn: P K e_i = e_i.  O(N D + N^2).

    P - (e_i h' + h e_i') / y_i + e_i e_i' (y'h / y_i^2 + 1 / y_i), y = K e_i, h = P y: the BFGS formula, which keeps P
    positive definite and, over all i, leads to the inverse (R. M. Gower, P. Richtarik, Randomized quasi-Newton updates
    are linearly convergent matrix inversion algorithms, 2017).  Where h is far from e_i, all is made anew.
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
    # k(x, x) is above zero, but for a forged state
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
    """What vector i's claim to stay has faded to."""
    return s.claim[i] if c.fades else real(1)


@kernel
def own_inverse(s: Subspace, w: SubspaceWork, c: SubspaceConfig, at: Index, i: Index) -> Real:
    """Diagonal element i of P bordered by the sample; P's own is at ``at``."""
    value = s.p[at] + w.b[i] * w.b[i] * (real(1) / w.delta[0])
    return value if value > c.inverse_least else c.inverse_least


@entry
def least_missed(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """The expansion vector, or n, the sample, without which the subspace changes least; of equals the first.  O(N r)."""
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
    """Phi A + phi t' becomes Phi (A + b t'): what the vectors express of the sample.  O(N r)."""
    for i in range(s.n[0]):
        for j in range(len(w.t)):
            s.a[i, j] = clipped(s.a[i, j] + w.b[i] * w.t[j], -c.row_limit, c.row_limit)
    add_square(s.g, -w.delta[0], w.t)


@kernel
def leave_out(s: Subspace, w: SubspaceWork) -> None:
    """Phi A + phi t' becomes Phi A.  O(N r)."""
    for j in range(len(w.h)):
        w.h[j] = w.own[0] * w.t[j]
    for i in range(s.n[0]):
        for j in range(len(w.h)):
            w.h[j] += w.k[i] * s.a[i, j]
    add_products(s.g, -real(1), w.t, w.h)
    add_square(s.g, w.own[0], w.t)


@entry
def release_exactly(s: Subspace, w: SubspaceWork, c: SubspaceConfig, r: Index) -> None:
    """Vector r goes, the sample takes its place, in P too; the others take over what they express of r.  O(N^2 + N r).

    P bordered is P + b b' / delta, where the sample's own row of P is 0 and its b is -1; without r it is that less
    c c' / c_r, c its column r.
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


@entry
def release_dropping(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig, r: Index) -> None:
    """Vector r goes with what it has in L: G - a h' - h a' + k_rr a a', h = A'k(X, x_r).  O(N D + N r)."""
    gram_row(s, w, c, q, r)
    row_times(s, w)
    for j in range(len(w.u)):
        w.u[j] += w.k[r] * w.t[j]
        w.h[j] = s.a[r, j]
    add_products(s.g, -real(1), w.h, w.u)
    add_square(s.g, w.column[r], w.h)


@kernel
def put(s: Subspace, w: SubspaceWork, c: SubspaceConfig, i: Index) -> None:
    """The sample, its row of A and of K at position i.  O(N + D + r)."""
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


@entry
def settle(s: Subspace, w: SubspaceWork, c: SubspaceConfig, q: KernelConfig) -> Index:
    """Store the sample, whose row of A is in w.t, or what the budget leaves of it.  O(N^2 + N (D + r)), drop O(N (D + r))."""
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
