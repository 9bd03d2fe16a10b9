"""The inverse Gram matrix and what else is kept of it: bordered by each new vector, reduced by each that goes, O(N^2).

A restored factor may be one of no matrix at all.  What is bordered with is therefore kept within its limits, which are
true of every factor, and a reflection leaves lengths as they are: so no element grows beyond what sums of those give.

P = (K + ridge I)^-1 is kept as a square root, P = m' m: inserting borders it, removing is one Householder reflection,
and P_ii = |m_:i|^2 cannot turn negative.  m has no particular shape.  LS also keeps P itself and LSREG Q = P^2; both
are updated with vectors computed from m, so that their rounding errors are not fed back.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelConfig, KernelFunction
from pykernel.algorithms.kernels import gaussian, squared_distance
from pykernel.algorithms.online.state import (
    LARGEST_FACTOR,
    SMALLEST_DIAGONAL,
    Expansion,
    OnlineConfig,
    Work,
    alike,
    as_element,
    as_product,
)
from pykernel.dialect import Constant, Index, Real, absolute, kernel, real, sqrt

LOST = Constant(float32=2.0**-19, float64=2.0**-48)
"""Largest error of (K + ridge I) P that has been seen, in parts of P_rr of what is taken out: 16 roundings."""

# ------------------------------------------------------------------------------------------------- the factor m


@kernel
def inverse_times(s: Expansion, b: Real[...], out: Real[...], n: Index) -> None:
    """out = P b, over n vectors.  O(N^2)."""
    for j in range(n):
        out[j] = real(0)
    for i in range(n):
        l = real(0)
        for j in range(n):
            l += s.m[i, j] * b[j]
        for j in range(n):
            out[j] += l * s.m[i, j]


@kernel
def express(s: Expansion, w: Work, c: OnlineConfig, rows: Index, columns: Index) -> None:
    """Compute u = P k and kappa = 1 + ridge - k' P k from the first rows and columns of m.  O(N^2)."""
    for j in range(columns):
        w.u[j] = real(0)
    kappa = c.ridge_diagonal
    for i in range(rows):
        l = real(0)
        for j in range(columns):
            l += s.m[i, j] * w.k[j]
        kappa -= l * l
        for j in range(columns):
            w.u[j] += l * s.m[i, j]
    # u' (K + ridge I) u = k'P k, which is at most 1: the limit is never reached without an error
    for j in range(columns):
        w.u[j] = clipped(w.u[j], -LARGEST_FACTOR, LARGEST_FACTOR)
    # not "if (kappa < least)": NaN must give the least
    if not (kappa > c.kappa_least):
        kappa = c.kappa_least
    w.kappa[0] = kappa


@kernel
def border(s: Expansion, w: Work, row: Index, column: Index, columns: Index) -> None:
    """Add the vector of the last express() to m, as a new row and column.  O(N)."""
    scale = real(1) / sqrt(w.kappa[0])
    for j in range(columns):
        s.m[row, j] = clipped(-(scale * w.u[j]), -LARGEST_FACTOR, LARGEST_FACTOR)
    s.m[row, column] = scale


@kernel
def inverse_diagonal(s: Expansion, w: Work) -> None:
    """score_i = P_ii, where P includes the newest sample.  O(N^2)."""
    n = s.n[0]
    for j in range(n):
        w.score[j] = real(0)
    for i in range(n):
        for j in range(n):
            w.score[j] += s.m[i, j] * s.m[i, j]
    for j in range(n):
        w.score[j] += w.u[j] * w.u[j] * w.inverse_kappa[0]
    w.score[n] = w.inverse_kappa[0]


@kernel
def inverse_column(s: Expansion, w: Work, r: Index) -> None:
    """p = P_:r, the column r of P.  P_rr is kept above a smallest number.  O(N^2)."""
    n = s.n[0]
    for j in range(n):
        w.p[j] = real(0)
    for i in range(n):
        g = s.m[i, r]
        for j in range(n):
            w.p[j] += g * s.m[i, j]
    if not (w.p[r] > SMALLEST_DIAGONAL):
        w.p[r] = SMALLEST_DIAGONAL


@kernel
def release(s: Expansion, w: Work, r: Index) -> None:
    """Remove vector r from m, given p = P_:r.  Column r becomes zero, and the last row becomes free.  O(N^2).

    The Householder reflection I - 2 h h' / h'h with h = m_:r + sign |m_:r| e_last moves column r to the last row.
    The product h' m = P_r: + sign |m_:r| m_last: is known already.  A column of zeros needs no reflection.
    """
    n = s.n[0]
    last = n - 1
    norm = sqrt(w.p[r])
    pivot = s.m[last, r]
    scale = real(1) / (w.p[r] + absolute(pivot) * norm)
    if pivot < real(0):
        norm = -norm
    if w.p[r] == SMALLEST_DIAGONAL:
        scale = real(0)
    # an inverse with such a large element has lost digits, even if watch() did not measure them
    if LOST * w.p[r] > s.drift[0]:
        s.drift[0] = LOST * w.p[r]
    for j in range(n):
        w.p[j] = (w.p[j] + norm * s.m[last, j]) * scale
    for i in range(last):
        h = s.m[i, r]
        for j in range(n):
            s.m[i, j] -= h * w.p[j]
        s.m[i, r] = real(0)
    for j in range(n):
        s.m[last, j] = real(0)


@kernel
def watch(s: Expansion, c: OnlineConfig, q: KernelConfig, r: Index) -> None:
    """Measure the rounding error of P = m' m: one element of (K + ridge I) P - I, in column r.  O(N D).

    Vector r was just stored, so m_:r has one element and P_:r is known.  Each call takes the row of the next vector.
    """
    n = s.n[0]
    i = s.probe[0]
    if i == r:
        i += 1
    if i < 0 or i >= n:
        i = 0
    s.probe[0] = i + 1
    if i != r:
        total = real(0)
        for j in range(n):
            value = c.ridge_diagonal
            if j != i:
                if q.function == KernelFunction.GAUSSIAN:
                    value = gaussian(q.gamma, squared_distance(s.v[i], s.v[j]))
                else:
                    value = alike(s, c, q, i, s.v[j], s.diagonal[j])
            total += value * s.m[n - 1, j]
        residual = absolute(total * s.m[n - 1, r])
        if residual > s.drift[0]:
            s.drift[0] = residual


# ------------------------------------------------------------------------------------------------ P, of LS


@kernel
def inverse_norms(s: Expansion, w: Work) -> None:
    """score_i = Q_ii = |P_:i|^2, where P includes the newest sample.  O(N^2)."""
    n = s.n[0]
    total = real(1)
    for i in range(n):
        share = w.u[i] * w.inverse_kappa[0]
        norm = share * share
        for j in range(n):
            element = s.inverse[i, j] + w.u[j] * share
            norm += element * element
        w.score[i] = norm
        total += w.u[i] * w.u[i]
    w.score[n] = total * w.inverse_kappa[0] * w.inverse_kappa[0]


@kernel
def release_inverse(s: Expansion, w: Work, r: Index) -> None:
    """Remove vector r from P, given p = P_:r.  O(N^2)."""
    n = s.n[0]
    scale = real(1) / w.p[r]
    for i in range(n):
        share = w.p[i] * scale
        for j in range(n):
            s.inverse[i, j] = as_element(s.inverse[i, j] - share * w.p[j])
    for j in range(n):
        s.inverse[r, j] = real(0)
        s.inverse[j, r] = real(0)


@kernel
def border_inverse(s: Expansion, w: Work, r: Index, n: Index) -> None:
    """Add vector r to P, given u = P k: P + u u' / kappa, with u_r = -1.  O(N^2)."""
    scale = real(1) / w.kappa[0]
    w.u[r] = -real(1)
    for i in range(n):
        share = w.u[i] * scale
        for j in range(n):
            s.inverse[i, j] = as_element(s.inverse[i, j] + share * w.u[j])


# --------------------------------------------------------------------------------------------- Q, of LSREG


@kernel
def penalised_losses(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """score_i = sum_o alpha_i^2 / (N Q_ii) + C / (N - 1) sum_j beta_j^2, where Q includes the newest sample.

    beta_j = alpha_j - Q_ji alpha_i / Q_ii are the multipliers after an LS projection.  O(N^2) for all candidates.
    Mitchinson et al. 2003, eq. 20.
    """
    n = s.n[0]
    count = n
    total = real(1)
    inverse = w.inverse_kappa[0]
    if inverse > real(0):
        count = n + 1
    inverse_times(s, w.u, w.q, n)
    for j in range(n):
        total += w.u[j] * w.u[j]
    w.q[n] = real(0)
    w.u[n] = -real(1)
    share = total * inverse * inverse
    many = real(1) / real(count)
    others = c.penalty
    if count > 1:
        others = c.penalty / real(count - 1)
    for i in range(count):
        diagonal = (w.q[i] * w.u[i] + w.u[i] * w.q[i]) * inverse + share * w.u[i] * w.u[i]
        if i < n:
            diagonal += s.squared[i, i]
        scale = real(1) / diagonal
        loss = real(0)
        for o in range(len(s.alpha[0])):
            a = w.beta[i, o]
            part = a * scale
            left = real(0)
            for j in range(count):
                if j != i:
                    element = (w.q[j] * w.u[i] + w.u[j] * w.q[i]) * inverse + share * w.u[j] * w.u[i]
                    if i < n and j < n:
                        element += s.squared[i, j]
                    b = w.beta[j, o] - element * part
                    left += b * b
            loss += a * part * many + left * others
        w.score[i] = loss


@kernel
def release_squared(s: Expansion, w: Work, r: Index) -> None:
    """Remove vector r from Q, given p = P_:r: Q - (q p' + p q') / p_r + (p'p) p p' / p_r^2, where q = P p.  O(N^2)."""
    n = s.n[0]
    inverse_times(s, w.p, w.q, n)
    scale = real(1) / w.p[r]
    total = real(0)
    for j in range(n):
        total += w.p[j] * w.p[j]
    # Q - (a p' + p a') with a = q / p_r - (p'p) p / (2 p_r^2)
    half = real(0.5) * total * scale
    for j in range(n):
        w.q[j] = as_product((w.q[j] - half * w.p[j]) * scale)
    for i in range(n):
        for j in range(n):
            s.squared[i, j] = as_product(s.squared[i, j] - (w.q[i] * w.p[j] + w.p[i] * w.q[j]))
    for j in range(n):
        s.squared[r, j] = real(0)
        s.squared[j, r] = real(0)


@kernel
def border_squared(s: Expansion, w: Work, r: Index, n: Index) -> None:
    """Add vector r to Q, given u = P k: Q + (t u' + u t') / kappa + (u'u) u u' / kappa^2, where t = P u.  O(N^2).

    u_r = -1 and t_r = 0.  Call this function before the vector is added to m.
    """
    w.u[r] = real(0)
    inverse_times(s, w.u, w.q, n)
    w.u[r] = -real(1)
    w.q[r] = real(0)
    scale = real(1) / w.kappa[0]
    total = real(0)
    for j in range(n):
        total += w.u[j] * w.u[j]
    half = real(0.5) * total * scale
    for j in range(n):
        w.q[j] = as_product((w.q[j] + half * w.u[j]) * scale)
    for i in range(n):
        for j in range(n):
            s.squared[i, j] = as_product(s.squared[i, j] + (w.q[i] * w.u[j] + w.u[i] * w.q[j]))
