"""How a sample moves the subspace: stochastic gradients in L or A, and recursive least squares.

Every update begins with the results of ``code``.  It writes the sample's row of A to w.t, even if the sample will not
be stored.  It updates G = L'L by products of low rank, with the identity L'(phi - L q) = lambda q.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.packed import (
    factorise,
    substitute_backward,
    substitute_forward,
    symmetric_row,
    symmetric_times,
)
from pykernel.algorithms.subspace.state import (
    RANK,
    SMALLEST_SQUARE,
    Subspace,
    SubspaceConfig,
    SubspaceWork,
    Update,
    add_products,
    add_square,
    product,
)
from pykernel.dialect import Bool, Constant, Index, Real, absolute, kernel, real

LONGEST = Constant(float32=2.0**80, float64=2.0**700)
"""Far from infinity, even after multiplication with any other number here."""


@kernel
def move_parametric(s: Subspace, w: SubspaceWork, c: SubspaceConfig, mu: Real, keep: Real) -> None:
    """L = keep L + mu (phi - L q) q'.  Algorithm 2.  O(N r)."""
    for i in range(s.n[0]):
        part = mu * product(s.a[i], w.q)
        for j in range(len(w.q)):
            s.a[i, j] = keep * s.a[i, j] - part * w.q[j]
    for j in range(len(w.q)):
        w.t[j] = mu * w.q[j]
    for i in range(len(s.g)):
        s.g[i] = keep * keep * s.g[i]
    add_square(s.g, mu * (real(2) * keep * c.shrinkage + mu * w.left[0]), w.q)


@kernel
def correlate(s: Subspace, w: SubspaceWork, c: SubspaceConfig, stored: Bool) -> Real:
    """Compute s = Phi'(phi - L q), and w.newest for a sample that will be stored.  O(N^2).

    Returns the largest row sum of |K|, which is at least |K|_2.
    """
    n = s.n[0]
    for i in range(n):
        w.ks[i] = product(s.a[i], w.q)
    symmetric_times(s.gram, w.ks, w.s, n)
    last = real(0)
    if stored:
        last = w.own[0]
        for i in range(n):
            last += absolute(w.k[i])
    largest = last
    for i in range(n):
        # |phi_i'(phi - L q)| is at most sqrt(k(x_i, x_i) k(x, x))
        w.s[i] = clipped(w.k[i] - w.s[i], -c.value_bound, c.value_bound)
        symmetric_row(s.gram, i, w.column, n)
        total = absolute(w.k[i]) if stored else real(0)
        for j in range(n):
            total += absolute(w.column[j])
        if total > largest:
            largest = total
    if not (largest > SMALLEST_SQUARE):
        # only in a forged snapshot
        largest = w.own[0]
    newest = w.own[0] - product(w.inner, w.q) if stored else real(0)
    w.newest[0] = clipped(newest, -c.value_bound, c.value_bound)
    return largest


@kernel
def move_hybrid(s: Subspace, w: SubspaceWork, c: SubspaceConfig, step: Real, keep: Real, stored: Bool) -> None:
    """A = keep A + mu s q', where mu = step / the largest row sum of |K|.  O(N^2 + N r).

    mu |A'K s| is at most step |L| |phi|.  mu^2 s'K s can be very large where q is small; G is limited later.
    """
    n = s.n[0]
    largest = correlate(s, w, c, stored)
    mu = step * (real(1) / largest)
    symmetric_times(s.gram, w.s, w.ks, n)
    for j in range(len(w.h)):
        w.h[j] = real(0)
    length = real(0)
    last = w.newest[0] * w.own[0]
    for i in range(n):
        if stored:
            w.ks[i] += w.k[i] * w.newest[0]
            last += w.k[i] * w.s[i]
        moved = mu * w.ks[i]
        length += w.s[i] * moved
        for j in range(len(w.h)):
            w.h[j] += s.a[i, j] * moved
    length = clipped(mu * (length + w.newest[0] * (mu * last)), real(0), LONGEST)
    most = real(2) * c.inner_limit * step
    for j in range(len(w.h)):
        w.h[j] = clipped(w.h[j], -most, most)
    for i in range(n):
        part = mu * w.s[i]
        for j in range(len(w.q)):
            s.a[i, j] = clipped(keep * s.a[i, j] + part * w.q[j], -c.row_limit, c.row_limit)
    for j in range(len(w.q)):
        w.t[j] = mu * w.newest[0] * w.q[j]
    for i in range(len(s.g)):
        s.g[i] = keep * keep * s.g[i]
    add_products(s.g, keep, w.h, w.q)
    add_square(s.g, length, w.q)


@kernel
def move_nonparametric(s: Subspace, w: SubspaceWork, c: SubspaceConfig, step: Real, loss: Real, stored: Bool) -> None:
    """A = A + (mu s q' - loss K A) / the largest row sum of |K|, where loss = mu rho.  Algorithm 3.  O(N^2 r)."""
    n = s.n[0]
    largest = correlate(s, w, c, stored)
    mu = step * (real(1) / largest)
    fade = loss * (real(1) / largest)
    for i in range(n):
        times_rows(s, w, i)
        for j in range(len(w.u)):
            w.ka[i, j] = w.u[j]
    for i in range(n):
        for j in range(len(w.q)):
            moved = s.a[i, j] + (mu * (w.s[i] * w.q[j]) - fade * w.ka[i, j])
            s.a[i, j] = clipped(moved, -c.row_limit, c.row_limit)
    for j in range(len(w.q)):
        w.t[j] = mu * (w.newest[0] * w.q[j]) - fade * w.inner[j] if stored else real(0)
    for i in range(len(s.g)):
        s.g[i] = real(0)
    for j in range(len(w.h)):
        w.h[j] = w.own[0] * w.t[j]
    for i in range(n):
        times_rows(s, w, i)
        if stored:
            for j in range(len(w.u)):
                w.u[j] += w.k[i] * w.t[j]
                w.h[j] += w.k[i] * s.a[i, j]
        add_rows(s.g, s.a[i], w.u)
    if stored:
        add_rows(s.g, w.t, w.h)


@kernel
def times_rows(s: Subspace, w: SubspaceWork, i: Index) -> None:
    """Write row i of K A to w.u.  O(N r)."""
    symmetric_row(s.gram, i, w.column, s.n[0])
    row_times(s, w)


@kernel
def row_times(s: Subspace, w: SubspaceWork) -> None:
    """Write A'w.column to w.u.  O(N r)."""
    for j in range(len(w.u)):
        w.u[j] = real(0)
    for i in range(s.n[0]):
        for j in range(len(w.u)):
            w.u[j] += w.column[i] * s.a[i, j]


@kernel
def add_rows(g: Real[...], a: Real[RANK], u: Real[RANK]) -> None:
    """Add the lower triangle of a u' to g.  The sum over all rows a is symmetric.  O(r^2 / 2)."""
    row = 0
    for i in range(len(a)):
        for j in range(i + 1):
            g[row + j] += a[i] * u[j]
        row = row + i + 1


@kernel
def move_rls(s: Subspace, w: SubspaceWork, c: SubspaceConfig) -> None:
    """L = L M + phi t', where t = T q, M = I - q t' - (1 - f) lambda T and T = (S + lambda I)^-1.  O(N r^2 + r^3).

    For f = 1 this is L = (lambda L_0 + sum phi q') (sum q q' + lambda I)^-1.
    """
    for i in range(len(s.moments)):
        s.moments[i] = c.memory * s.moments[i]
    add_square(s.moments, real(1), w.q)
    for i in range(len(s.moments)):
        s.moments[i] = clipped(s.moments[i], -c.moment_limit, c.moment_limit)
    factorise(s.moments, w.c, len(w.q), c.shrinkage, real(0), real(0.5) * c.shrinkage, c.root_bound, c.moment_root)
    for j in range(len(w.t)):
        w.t[j] = w.q[j]
    # q'T q is at most 1, and |T q| at most 1 / sqrt(lambda); the limits are twice that, because of rounding
    substitute_forward(w.c, w.t, len(w.t), real(2))
    substitute_backward(w.c, w.t, w.t, len(w.t), real(2) * c.root_bound)
    for j in range(len(w.q)):
        for i in range(len(w.q)):
            w.m[i, j] = -(w.q[i] * w.t[j])
        w.m[j, j] += real(1)
    if c.leaks:
        for j in range(len(w.q)):
            for i in range(len(w.u)):
                w.u[i] = real(0)
            w.u[j] = real(1)
            # T is at most 1 / lambda
            substitute_forward(w.c, w.u, len(w.u), real(2) * c.root_bound)
            substitute_backward(w.c, w.u, w.u, len(w.u), real(2) * c.root_bound * c.root_bound)
            for i in range(len(w.u)):
                w.m[i, j] = w.m[i, j] - (real(1) - c.memory) * c.shrinkage * w.u[i]
    for j in range(len(w.h)):
        total = real(0)
        for i in range(len(w.inner)):
            total += w.m[i, j] * w.inner[i]
        w.h[j] = total
    # M'G M goes to w.c first, because the old G is needed to the end
    row = 0
    for j in range(len(w.u)):
        for i in range(len(w.u)):
            w.u[i] = w.m[i, j]
        symmetric_times(s.g, w.u, w.row, len(w.u))
        for i in range(j + 1):
            total = real(0)
            for k in range(len(w.u)):
                total += w.m[k, i] * w.row[k]
            w.c[row + i] = total
        row = row + j + 1
    for i in range(len(s.g)):
        s.g[i] = w.c[i]
    add_products(s.g, real(1), w.h, w.t)
    add_square(s.g, w.own[0], w.t)
    for i in range(s.n[0]):
        for j in range(len(w.u)):
            total = real(0)
            for k in range(len(w.u)):
                total += s.a[i, k] * w.m[k, j]
            w.u[j] = clipped(total, -c.row_limit, c.row_limit)
        for j in range(len(w.u)):
            s.a[i, j] = w.u[j]


@kernel
def move(s: Subspace, w: SubspaceWork, c: SubspaceConfig, mu: Real, loss: Real, stored: Bool) -> None:
    """Move L towards the coded sample, and write the sample's row of A to w.t.  loss = mu rho is the ridge's part."""
    keep = real(1) - loss
    if keep < real(0):
        keep = real(0)
    if c.update == Update.PARAMETRIC:
        move_parametric(s, w, c, mu, keep)
    elif c.update == Update.NONPARAMETRIC:
        move_nonparametric(s, w, c, mu, loss, stored)
    elif c.update == Update.HYBRID:
        move_hybrid(s, w, c, mu, keep, stored)
    else:
        move_rls(s, w, c)


@kernel
def shorten(s: Subspace, c: SubspaceConfig) -> None:
    """Halve L if it has grown beyond its limit.  The fit does not depend on the length of L.  O(r^2 / 2), or O(N r).

    No element of G is above its trace, except in a forged snapshot.
    """
    for i in range(len(s.g)):
        s.g[i] = clipped(s.g[i], -c.element_limit, c.element_limit)
    trace = real(0)
    at = 0
    for j in range(len(s.a[0])):
        trace += s.g[at]
        at = at + j + 2
    if not (trace <= c.square_limit):
        for i in range(len(s.g)):
            s.g[i] = clipped(real(0.25) * s.g[i], -c.square_limit, c.square_limit)
        for i in range(s.n[0]):
            for j in range(len(s.a[0])):
                s.a[i, j] = real(0.5) * s.a[i, j]
