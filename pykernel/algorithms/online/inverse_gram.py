"""The inverse Gram matrix and what else is kept of it: bordered by each new vector, reduced by each that goes, O(N^2).

A restored factor may be one of no matrix at all.  What is bordered with is therefore kept within its limits, which are
true of every factor, and a reflection leaves lengths as they are: so no element grows beyond what sums of those give.

P = (K + ridge I)^-1 is kept as a square root, P = m' m: inserting borders it, removing is one Householder reflection,
and P_ii = |m_:i|^2 cannot turn negative.  m has no particular shape.  LS also keeps P itself and LSREG Q = P^2; both
are updated with vectors computed from m, so that their rounding errors are not fed back.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.algorithms.kernels import gaussian, squared_distance
from pykernel.algorithms.online.state import (
    LARGEST_FACTOR,
    SMALLEST_DIAGONAL,
    OnlineModel,
    alike,
    as_element,
    as_product,
)
from pykernel.dialect import Constant, Index, Real, absolute, kernel, real, sqrt

LOST = Constant(float32=2.0**-19, float64=2.0**-48)
"""Largest error of (K + ridge I) P that has been seen, in parts of P_rr of what is taken out: 16 roundings."""

# ------------------------------------------------------------------------------------------------- the factor m


@kernel
def inverse_times(m: OnlineModel, b: Real[...], out: Real[...], n: Index) -> None:
    """out = P b, over n vectors.  O(N^2)."""
    for j in range(n):
        out[j] = real(0)
    for i in range(n):
        l = real(0)
        for j in range(n):
            l += m.m[i, j] * b[j]
        for j in range(n):
            out[j] += l * m.m[i, j]


@kernel
def express(m: OnlineModel, rows: Index, columns: Index) -> None:
    """Compute u = P k and kappa = 1 + ridge - k' P k from the first rows and columns of m.  O(N^2)."""
    for j in range(columns):
        m.u[j] = real(0)
    kappa = m.ridge_diagonal
    for i in range(rows):
        l = real(0)
        for j in range(columns):
            l += m.m[i, j] * m.k[j]
        kappa -= l * l
        for j in range(columns):
            m.u[j] += l * m.m[i, j]
    # u' (K + ridge I) u = k'P k, which is at most 1: the limit is never reached without an error
    for j in range(columns):
        m.u[j] = clipped(m.u[j], -LARGEST_FACTOR, LARGEST_FACTOR)
    # not "if (kappa < least)": NaN must give the least
    if not (kappa > m.kappa_least):
        kappa = m.kappa_least
    m.kappa[0] = kappa


@kernel
def border(m: OnlineModel, row: Index, column: Index, columns: Index) -> None:
    """Add the vector of the last express() to m, as a new row and column.  O(N)."""
    scale = real(1) / sqrt(m.kappa[0])
    for j in range(columns):
        m.m[row, j] = clipped(-(scale * m.u[j]), -LARGEST_FACTOR, LARGEST_FACTOR)
    m.m[row, column] = scale


@kernel
def inverse_diagonal(m: OnlineModel) -> None:
    """score_i = P_ii, where P includes the newest sample.  O(N^2)."""
    n = m.n[0]
    for j in range(n):
        m.score[j] = real(0)
    for i in range(n):
        for j in range(n):
            m.score[j] += m.m[i, j] * m.m[i, j]
    for j in range(n):
        m.score[j] += m.u[j] * m.u[j] * m.inverse_kappa[0]
    m.score[n] = m.inverse_kappa[0]


@kernel
def inverse_column(m: OnlineModel, r: Index) -> None:
    """p = P_:r, the column r of P.  P_rr is kept above a smallest number.  O(N^2)."""
    n = m.n[0]
    for j in range(n):
        m.p[j] = real(0)
    for i in range(n):
        g = m.m[i, r]
        for j in range(n):
            m.p[j] += g * m.m[i, j]
    if not (m.p[r] > SMALLEST_DIAGONAL):
        m.p[r] = SMALLEST_DIAGONAL


@kernel
def release(m: OnlineModel, r: Index) -> None:
    """Remove vector r from m, given p = P_:r.  Column r becomes zero, and the last row becomes free.  O(N^2).

    The Householder reflection I - 2 h h' / h'h with h = m_:r + sign |m_:r| e_last moves column r to the last row.
    The product h' m = P_r: + sign |m_:r| m_last: is known already.  A column of zeros needs no reflection.
    """
    n = m.n[0]
    last = n - 1
    norm = sqrt(m.p[r])
    pivot = m.m[last, r]
    scale = real(1) / (m.p[r] + absolute(pivot) * norm)
    if pivot < real(0):
        norm = -norm
    if m.p[r] == SMALLEST_DIAGONAL:
        scale = real(0)
    # an inverse with such a large element has lost digits, even if watch() did not measure them
    if LOST * m.p[r] > m.drift[0]:
        m.drift[0] = LOST * m.p[r]
    for j in range(n):
        m.p[j] = (m.p[j] + norm * m.m[last, j]) * scale
    for i in range(last):
        h = m.m[i, r]
        for j in range(n):
            m.m[i, j] -= h * m.p[j]
        m.m[i, r] = real(0)
    for j in range(n):
        m.m[last, j] = real(0)


@kernel
def watch(m: OnlineModel, r: Index) -> None:
    """Measure the rounding error of P = m' m: one element of (K + ridge I) P - I, in column r.  O(N D).

    Vector r was just stored, so m_:r has one element and P_:r is known.  Each call takes the row of the next vector.
    """
    n = m.n[0]
    i = m.probe[0]
    if i == r:
        i += 1
    if i < 0 or i >= n:
        i = 0
    m.probe[0] = i + 1
    if i != r:
        total = real(0)
        for j in range(n):
            value = m.ridge_diagonal
            if j != i:
                if m.function == KernelFunction.GAUSSIAN:
                    value = gaussian(m.gamma, squared_distance(m.v[i], m.v[j]))
                else:
                    value = alike(m, i, m.v[j], m.diagonal[j])
            total += value * m.m[n - 1, j]
        residual = absolute(total * m.m[n - 1, r])
        if residual > m.drift[0]:
            m.drift[0] = residual


# ------------------------------------------------------------------------------------------------ P, of LS


@kernel
def inverse_norms(m: OnlineModel) -> None:
    """score_i = Q_ii = |P_:i|^2, where P includes the newest sample.  O(N^2)."""
    n = m.n[0]
    total = real(1)
    for i in range(n):
        share = m.u[i] * m.inverse_kappa[0]
        norm = share * share
        for j in range(n):
            element = m.inverse[i, j] + m.u[j] * share
            norm += element * element
        m.score[i] = norm
        total += m.u[i] * m.u[i]
    m.score[n] = total * m.inverse_kappa[0] * m.inverse_kappa[0]


@kernel
def newest_norm(m: OnlineModel) -> None:
    """score_n = Q_nn of the newest sample.  O(N)."""
    n = m.n[0]
    total = real(1)
    for j in range(n):
        total += m.u[j] * m.u[j]
    m.score[n] = total * m.inverse_kappa[0] * m.inverse_kappa[0]


@kernel
def release_inverse(m: OnlineModel, r: Index) -> None:
    """Remove vector r from P, given p = P_:r.  O(N^2)."""
    n = m.n[0]
    scale = real(1) / m.p[r]
    for i in range(n):
        share = m.p[i] * scale
        for j in range(n):
            m.inverse[i, j] = as_element(m.inverse[i, j] - share * m.p[j])
    for j in range(n):
        m.inverse[r, j] = real(0)
        m.inverse[j, r] = real(0)


@kernel
def border_inverse(m: OnlineModel, r: Index, n: Index) -> None:
    """Add vector r to P, given u = P k: P + u u' / kappa, with u_r = -1.  O(N^2)."""
    scale = real(1) / m.kappa[0]
    m.u[r] = -real(1)
    for i in range(n):
        share = m.u[i] * scale
        for j in range(n):
            m.inverse[i, j] = as_element(m.inverse[i, j] + share * m.u[j])


# --------------------------------------------------------------------------------------------- Q, of LSREG


@kernel
def penalised_losses(m: OnlineModel) -> None:
    """score_i = sum_o alpha_i^2 / (N Q_ii) + C / (N - 1) sum_j beta_j^2, where Q includes the newest sample.

    beta_j = alpha_j - Q_ji alpha_i / Q_ii are the multipliers after an LS projection.  O(N^2) for all candidates.
    Mitchinson et al. 2003, eq. 20.
    """
    n = m.n[0]
    count = n
    total = real(1)
    inverse = m.inverse_kappa[0]
    if inverse > real(0):
        count = n + 1
    inverse_times(m, m.u, m.q, n)
    for j in range(n):
        total += m.u[j] * m.u[j]
    m.q[n] = real(0)
    m.u[n] = -real(1)
    share = total * inverse * inverse
    many = real(1) / real(count)
    others = m.penalty
    if count > 1:
        others = m.penalty / real(count - 1)
    for i in range(count):
        diagonal = (m.q[i] * m.u[i] + m.u[i] * m.q[i]) * inverse + share * m.u[i] * m.u[i]
        if i < n:
            diagonal += m.squared[i, i]
        scale = real(1) / diagonal
        loss = real(0)
        for o in range(len(m.alpha[0])):
            a = m.beta[i, o]
            part = a * scale
            left = real(0)
            for j in range(count):
                if j != i:
                    element = (m.q[j] * m.u[i] + m.u[j] * m.q[i]) * inverse + share * m.u[j] * m.u[i]
                    if i < n and j < n:
                        element += m.squared[i, j]
                    b = m.beta[j, o] - element * part
                    left += b * b
            loss += a * part * many + left * others
        m.score[i] = loss


@kernel
def release_squared(m: OnlineModel, r: Index) -> None:
    """Remove vector r from Q, given p = P_:r: Q - (q p' + p q') / p_r + (p'p) p p' / p_r^2, where q = P p.  O(N^2)."""
    n = m.n[0]
    inverse_times(m, m.p, m.q, n)
    scale = real(1) / m.p[r]
    total = real(0)
    for j in range(n):
        total += m.p[j] * m.p[j]
    # Q - (a p' + p a') with a = q / p_r - (p'p) p / (2 p_r^2)
    half = real(0.5) * total * scale
    for j in range(n):
        m.q[j] = as_product((m.q[j] - half * m.p[j]) * scale)
    for i in range(n):
        for j in range(n):
            m.squared[i, j] = as_product(m.squared[i, j] - (m.q[i] * m.p[j] + m.p[i] * m.q[j]))
    for j in range(n):
        m.squared[r, j] = real(0)
        m.squared[j, r] = real(0)


@kernel
def border_squared(m: OnlineModel, r: Index, n: Index) -> None:
    """Add vector r to Q, given u = P k: Q + (t u' + u t') / kappa + (u'u) u u' / kappa^2, where t = P u.  O(N^2).

    u_r = -1 and t_r = 0.  Call this function before the vector is added to m.
    """
    m.u[r] = real(0)
    inverse_times(m, m.u, m.q, n)
    m.u[r] = -real(1)
    m.q[r] = real(0)
    scale = real(1) / m.kappa[0]
    total = real(0)
    for j in range(n):
        total += m.u[j] * m.u[j]
    half = real(0.5) * total * scale
    for j in range(n):
        m.q[j] = as_product((m.q[j] + half * m.u[j]) * scale)
    for i in range(n):
        for j in range(n):
            m.squared[i, j] = as_product(m.squared[i, j] + (m.q[i] * m.u[j] + m.u[i] * m.q[j]))
