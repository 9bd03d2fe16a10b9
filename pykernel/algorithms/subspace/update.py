"""How a sample moves the subspace: stochastic gradients in L or A, and recursive least squares.

Every update starts from the results of ``code``, and writes the sample's row of A to ``t``, even if the sample will not
be stored.  It also updates G = L'L, where possible by low-rank terms, with the identity
L'(phi - L q) = lambda q.
"""

from pykernel.algorithms.elementary import bounded, clipped
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
    SubspaceModel,
    Update,
    add_products,
    add_square,
    product,
)
from pykernel.algorithms.vectors import add_multiple, copy, multiply, zero
from pykernel.dialect import Bool, Constant, Index, Real, absolute, kernel, real

LONGEST = Constant(float32=2.0**80, float64=2.0**700)
"""A limit whose product with any other number in this module is far from overflow."""


@kernel
def move_parametric(m: SubspaceModel, mu: Real, keep: Real) -> None:
    """L = keep L + mu (phi - L q) q'.  Algorithm 2.  O(N r)."""
    for i in range(m.n[0]):
        part = mu * product(m.a[i], m.q)
        for j in range(len(m.q)):
            m.a[i, j] = keep * m.a[i, j] - part * m.q[j]
    for j in range(len(m.q)):
        m.t[j] = mu * m.q[j]
    for i in range(len(m.g)):
        m.g[i] = keep * keep * m.g[i]
    add_square(m.g, mu * (real(2) * keep * m.shrinkage + mu * m.left[0]), m.q)


@kernel
def correlate(m: SubspaceModel, stored: Bool) -> Real:
    """Compute s = Phi'(phi - L q) and, if the sample will be stored, m.newest.  O(N^2).

    Returns the largest row sum of |K|, which is at least |K|_2.  If the sample will be stored, K includes the sample.
    """
    n = m.n[0]
    for i in range(n):
        m.ks[i] = product(m.a[i], m.q)
    symmetric_times(m.gram, m.ks, m.s, n)
    last = real(0)
    if stored:
        last = m.own[0]
        for i in range(n):
            last += absolute(m.k[i])
    largest = last
    for i in range(n):
        # |phi_i'(phi - L q)| is at most sqrt(k(x_i, x_i) k(x, x))
        m.s[i] = bounded(m.k[i] - m.s[i], m.value_bound)
        symmetric_row(m.gram, i, m.column, n)
        total = absolute(m.k[i]) if stored else real(0)
        for j in range(n):
            total += absolute(m.column[j])
        if total > largest:
            largest = total
    if not (largest > SMALLEST_SQUARE):
        # this happens only with a forged snapshot
        largest = m.own[0]
    newest = m.own[0] - product(m.inner, m.q) if stored else real(0)
    m.newest[0] = bounded(newest, m.value_bound)
    return largest


@kernel
def move_hybrid(m: SubspaceModel, step: Real, keep: Real, stored: Bool) -> None:
    """A = keep A + mu s q', where mu = step / the largest row sum of |K|.  O(N^2 + N r).

    mu |A'K s| is at most step |L| |phi|.  mu^2 s'K s can be very large where q is small, so G is limited later.
    """
    n = m.n[0]
    largest = correlate(m, stored)
    mu = step * (real(1) / largest)
    symmetric_times(m.gram, m.s, m.ks, n)
    zero(m.h, len(m.h))
    length = real(0)
    last = m.newest[0] * m.own[0]
    for i in range(n):
        if stored:
            m.ks[i] += m.k[i] * m.newest[0]
            last += m.k[i] * m.s[i]
        moved = mu * m.ks[i]
        length += m.s[i] * moved
        add_multiple(m.h, moved, m.a[i], len(m.h))
    length = clipped(mu * (length + m.newest[0] * (mu * last)), real(0), LONGEST)
    most = real(2) * m.inner_limit * step
    for j in range(len(m.h)):
        m.h[j] = bounded(m.h[j], most)
    for i in range(n):
        part = mu * m.s[i]
        for j in range(len(m.q)):
            m.a[i, j] = bounded(keep * m.a[i, j] + part * m.q[j], m.row_limit)
    for j in range(len(m.q)):
        m.t[j] = mu * m.newest[0] * m.q[j]
    multiply(m.g, keep * keep, len(m.g))
    add_products(m.g, keep, m.h, m.q)
    add_square(m.g, length, m.q)


@kernel
def move_nonparametric(m: SubspaceModel, step: Real, loss: Real, stored: Bool) -> None:
    """A = A + (step s q' - loss K A) / the largest row sum of |K|, where loss = step rho.  Algorithm 3.  O(N^2 r)."""
    n = m.n[0]
    largest = correlate(m, stored)
    mu = step * (real(1) / largest)
    fade = loss * (real(1) / largest)
    for i in range(n):
        times_rows(m, i)
        copy(m.u, m.ka[i], len(m.u))
    for i in range(n):
        for j in range(len(m.q)):
            moved = m.a[i, j] + (mu * (m.s[i] * m.q[j]) - fade * m.ka[i, j])
            m.a[i, j] = bounded(moved, m.row_limit)
    for j in range(len(m.q)):
        m.t[j] = mu * (m.newest[0] * m.q[j]) - fade * m.inner[j] if stored else real(0)
    zero(m.g, len(m.g))
    for j in range(len(m.h)):
        m.h[j] = m.own[0] * m.t[j]
    for i in range(n):
        times_rows(m, i)
        if stored:
            add_multiple(m.u, m.k[i], m.t, len(m.u))
            add_multiple(m.h, m.k[i], m.a[i], len(m.h))
        add_rows(m.g, m.a[i], m.u)
    if stored:
        add_rows(m.g, m.t, m.h)


@kernel
def times_rows(m: SubspaceModel, i: Index) -> None:
    """Write row i of K A to m.u.  O(N r)."""
    symmetric_row(m.gram, i, m.column, m.n[0])
    row_times(m)


@kernel
def row_times(m: SubspaceModel) -> None:
    """Write A'm.column to m.u.  O(N r)."""
    for j in range(len(m.u)):
        m.u[j] = real(0)
    for i in range(m.n[0]):
        for j in range(len(m.u)):
            m.u[j] += m.column[i] * m.a[i, j]


@kernel
def add_rows(g: Real[...], a: Real[RANK], u: Real[RANK]) -> None:
    """Add the lower triangle of a u' to g.  The sum over all rows a is symmetric.  O(r^2 / 2)."""
    row = 0
    for i in range(len(a)):
        for j in range(i + 1):
            g[row + j] += a[i] * u[j]
        row = row + i + 1


@kernel
def move_rls(m: SubspaceModel) -> None:
    """L = L M + phi t', where t = T q, M = I - q t' - (1 - f) lambda T and T = (S + lambda I)^-1.  O(N r^2 + r^3).

    Each update multiplies S by f and adds q q'.  For f = 1, L = (lambda L_0 + sum phi q') (sum q q' + lambda I)^-1,
    where L_0 is L before the first update.
    """
    multiply(m.moments, m.memory, len(m.moments))
    add_square(m.moments, real(1), m.q)
    for i in range(len(m.moments)):
        m.moments[i] = bounded(m.moments[i], m.moment_limit)
    factorise(m.moments, m.c, len(m.q), m.shrinkage, real(0), real(0.5) * m.shrinkage, m.root_bound, m.moment_root)
    copy(m.q, m.t, len(m.t))
    # q'T q is at most 1, and |T q| at most 1 / sqrt(lambda); the limits are twice that, to allow for rounding
    substitute_forward(m.c, m.t, len(m.t), real(2))
    substitute_backward(m.c, m.t, m.t, len(m.t), real(2) * m.root_bound)
    for j in range(len(m.q)):
        for i in range(len(m.q)):
            m.m[i, j] = -(m.q[i] * m.t[j])
        m.m[j, j] += real(1)
    if m.leaks:
        for j in range(len(m.q)):
            zero(m.u, len(m.u))
            m.u[j] = real(1)
            # no element of T is above 1 / lambda; the limit is twice that
            substitute_forward(m.c, m.u, len(m.u), real(2) * m.root_bound)
            substitute_backward(m.c, m.u, m.u, len(m.u), real(2) * m.root_bound * m.root_bound)
            for i in range(len(m.u)):
                m.m[i, j] = m.m[i, j] - (real(1) - m.memory) * m.shrinkage * m.u[i]
    for j in range(len(m.h)):
        total = real(0)
        for i in range(len(m.inner)):
            total += m.m[i, j] * m.inner[i]
        m.h[j] = total
    # M'G M is written to m.c first, because the old G is needed until the end
    row = 0
    for j in range(len(m.u)):
        for i in range(len(m.u)):
            m.u[i] = m.m[i, j]
        symmetric_times(m.g, m.u, m.row, len(m.u))
        for i in range(j + 1):
            total = real(0)
            for k in range(len(m.u)):
                total += m.m[k, i] * m.row[k]
            m.c[row + i] = total
        row = row + j + 1
    copy(m.c, m.g, len(m.g))
    add_products(m.g, real(1), m.h, m.t)
    add_square(m.g, m.own[0], m.t)
    for i in range(m.n[0]):
        for j in range(len(m.u)):
            total = real(0)
            for k in range(len(m.u)):
                total += m.a[i, k] * m.m[k, j]
            m.u[j] = bounded(total, m.row_limit)
        copy(m.u, m.a[i], len(m.u))


@kernel
def move(m: SubspaceModel, mu: Real, loss: Real, stored: Bool) -> None:
    """Move L towards the coded sample, and write the sample's row of A to m.t.  loss = mu rho is the part that the ridge removes."""
    keep = real(1) - loss
    if keep < real(0):
        keep = real(0)
    if m.update == Update.PARAMETRIC:
        move_parametric(m, mu, keep)
    elif m.update == Update.NONPARAMETRIC:
        move_nonparametric(m, mu, loss, stored)
    elif m.update == Update.HYBRID:
        move_hybrid(m, mu, keep, stored)
    else:
        move_rls(m)


@kernel
def shorten(m: SubspaceModel) -> None:
    """Halve L if it has grown beyond its limit.  The fit hardly depends on the length of such a long L.  O(r^2 / 2); if
    L is halved, O(r^2 + N r).

    No element of G is above the trace of G, except in a forged snapshot.
    """
    for i in range(len(m.g)):
        m.g[i] = bounded(m.g[i], m.element_limit)
    trace = real(0)
    at = 0
    for j in range(len(m.a[0])):
        trace += m.g[at]
        at = at + j + 2
    if not (trace <= m.square_limit):
        for i in range(len(m.g)):
            m.g[i] = bounded(real(0.25) * m.g[i], m.square_limit)
        for i in range(m.n[0]):
            for j in range(len(m.a[0])):
                m.a[i, j] = real(0.5) * m.a[i, j]
