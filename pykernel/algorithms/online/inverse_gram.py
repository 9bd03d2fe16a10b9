"""The inverse Gram matrix and matrices derived from it: adding or removing a vector takes O(N^2).

The model keeps a square root of P = (K + ridge I)^-1: a lower triangle T with P = T'T.  Row i of T belongs to vector i, and vectors
are in order of arrival.  A new vector adds a row.  To remove a vector, Givens rotations concentrate the vector's column in one row,
which is then deleted.  Since P = T'T, P_ii is a sum of squares and cannot become negative, and rounding errors are proportional to
the elements of T.  These errors do not accumulate without limit: a row is rotated only when an earlier vector is
removed, so at most N - 1 times.

A T that was restored from a snapshot may not belong to any Gram matrix.  New rows are therefore clipped to limits that
hold for every valid T.  Rotations preserve lengths, so all elements stay bounded.

LS also keeps P itself, and LSREG keeps Q = P^2.  P and Q are updated with vectors computed from T, so that rounding errors of
P and Q are not fed back.

A sample that replaces a vector is first added as vector n; then the replaced vector is removed.
"""

from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.online.candidates import candidates
from pykernel.algorithms.online.state import (
    LARGEST_FACTOR,
    LOOSE,
    SMALLEST_DIAGONAL,
    OnlineModel,
    as_element,
    as_product,
)
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
from pykernel.dialect import Bool, Constant, Index, Real, kernel, real, sqrt

LEAST_LENGTH = Constant(2.0**-50)
"""Shorter lengths of columns of T are raised to this, because their squares could leave the range of float32.  Valid
columns are longer."""

# --------------------------------------------------------------------------------------------- the square root T


@kernel
def inverse_times(m: OnlineModel, b: Real[...], out: Real[...], n: Index) -> None:
    """out = P b, over the first n vectors.  ``b`` and ``out`` must be different arrays.  O(N^2)."""
    lower_times(m.t, b, out, n)
    lower_transposed_times(m.t, out, out, 0, n)


@kernel
def express(m: OnlineModel, n: Index) -> None:
    """Compute l = T k and kappa = 1 + ridge - k' P k over the first n vectors.  O(N^2)."""
    lower_times(m.t, m.k, m.l, n)
    kappa = m.ridge_diagonal
    for j in range(n):
        kappa -= m.l[j] * m.l[j]
    # "!(kappa > ..)" also replaces NaN
    if not (kappa > m.kappa_least):
        kappa = m.kappa_least
    m.kappa[0] = kappa


@kernel
def belongs(m: OnlineModel) -> Bool:
    """Whether T can belong to the vectors: k_i^2 / (1 + ridge) <= k'P k <= 1 for each vector i.  Needs express().  O(N)."""
    known = real(0)
    alone = real(0)
    for i in range(m.n[0]):
        known += m.l[i] * m.l[i]
        if m.k[i] * m.k[i] > alone:
            alone = m.k[i] * m.k[i]
    return known <= real(1) + LOOSE and m.ridge_diagonal * known >= alone - LOOSE


@kernel
def combination(m: OnlineModel, n: Index) -> None:
    """Compute u = P k = T'l.  Needs express().  O(N^2)."""
    lower_transposed_times(m.t, m.l, m.u, 0, n)
    limit_combination(m, n)


@kernel
def limit_combination(m: OnlineModel, n: Index) -> None:
    """Clip u to its limits.  Since u' (K + ridge I) u = k'P k <= 1, values beyond the limits can only come from a wrong T.  O(N)."""
    for j in range(n):
        m.u[j] = bounded(m.u[j], LARGEST_FACTOR)


@kernel
def newest_element(m: OnlineModel) -> Real:
    """The element T_nn that the newest sample has, or would have if it were stored: 1 / sqrt(kappa)."""
    return real(1) / sqrt(m.kappa[0])


@kernel
def border(m: OnlineModel, n: Index) -> None:
    """Add the sample to T as row n, given u from combination().  O(N)."""
    scale = newest_element(m)
    row = row_of(n)
    for j in range(n):
        m.t[row + j] = bounded(-(scale * m.u[j]), LARGEST_FACTOR)
    m.t[row + n] = scale


@kernel
def inverse_diagonal(m: OnlineModel) -> None:
    """score_i = P_ii, where P includes all candidates.  O(N^2)."""
    n = m.n[0]
    lower_column_norms(m.t, m.score, n)
    for j in range(n):
        m.score[j] += m.u[j] * m.u[j] * m.inverse_kappa[0]
    if candidates(m) > n:
        newest_diagonal(m)


@kernel
def newest_diagonal(m: OnlineModel) -> None:
    """score_n = P_nn of the newest sample, computed as a square like that of a stored vector, so that rounding does not decide ties."""
    element = newest_element(m)
    m.score[m.n[0]] = element * element


@kernel
def inverse_column(m: OnlineModel, r: Index) -> None:
    """p = P_:r, column r of P, with P_rr raised to at least SMALLEST_DIAGONAL.  O(N^2)."""
    lower_column(m.t, r, m.p, m.n[0])
    if not (m.p[r] > SMALLEST_DIAGONAL):
        m.p[r] = SMALLEST_DIAGONAL


@kernel
def include_newest(m: OnlineModel, r: Index) -> None:
    """Convert p = P_:r to column r of the matrix P that includes the newest sample as vector n.  O(N)."""
    n = m.n[0]
    share = m.u[r] * m.inverse_kappa[0]
    for j in range(n):
        m.p[j] += m.u[j] * share
    m.p[n] = -share


@kernel
def release(m: OnlineModel, r: Index, count: Index) -> None:
    """Remove vector r of ``count`` vectors from T.  Write the rotations to q, score and u, and P_:r to p.  O(N^2)."""
    release_vector(m.t, m.p, m.q, m.score, m.u, r, count, LEAST_LENGTH)


# ------------------------------------------------------------------------------------------------ P, for LS


@kernel
def inverse_norms(m: OnlineModel) -> None:
    """score_i = Q_ii = |P_:i|^2, where P includes all candidates.  O(N^2)."""
    n = m.n[0]
    newest_norm(m)
    row = 0
    for i in range(n):
        share = m.u[i] * m.inverse_kappa[0]
        norm = share * share
        for j in range(i):
            element = m.inverse[row + j] + m.u[j] * share
            norm += element * element
            m.score[j] += element * element
        element = m.inverse[row + i] + m.u[i] * share
        m.score[i] = norm + element * element
        row = row + i + 1


@kernel
def newest_norm(m: OnlineModel) -> None:
    """score_n = Q_nn of the newest sample.  O(N)."""
    n = m.n[0]
    total = real(1)
    for j in range(n):
        total += m.u[j] * m.u[j]
    m.score[n] = total * m.inverse_kappa[0] * m.inverse_kappa[0]


@kernel
def border_inverse(m: OnlineModel, n: Index) -> None:
    """Add the sample to P as vector n, given u = P k: P + u u' / kappa, with u_n = -1.  O(N^2)."""
    scale = real(1) / m.kappa[0]
    row = 0
    for i in range(n):
        share = m.u[i] * scale
        for j in range(i + 1):
            m.inverse[row + j] = as_element(m.inverse[row + j] + share * m.u[j])
        row = row + i + 1
    for j in range(n):
        m.inverse[row + j] = as_element(-(scale * m.u[j]))
    m.inverse[row + n] = as_element(scale)


@kernel
def release_inverse(m: OnlineModel, r: Index, n: Index) -> None:
    """Remove vector r of the n vectors from P, given p = P_:r.  O(N^2)."""
    scale = real(1) / m.p[r]
    row = 0
    for i in range(n):
        share = m.p[i] * scale
        for j in range(i + 1):
            m.inverse[row + j] = as_element(m.inverse[row + j] - share * m.p[j])
        row = row + i + 1
    symmetric_close(m.inverse, r, n)


# --------------------------------------------------------------------------------------------- Q, for LSREG


@kernel
def penalised_losses(m: OnlineModel) -> None:
    """score_i = sum_o (alpha_i^2 / (N Q_ii) + C / (N - 1) sum_j beta_j^2), where Q includes all N candidates.

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
        for j in range(n):
            m.p[j] = real(0)
        if i < n:
            symmetric_row(m.squared, i, m.p, n)
        m.p[n] = real(0)
        for j in range(count):
            m.p[j] += (m.q[j] * m.u[i] + m.u[j] * m.q[i]) * inverse + share * m.u[j] * m.u[i]
        scale = real(1) / m.p[i]
        loss = real(0)
        for o in range(len(m.alpha[0])):
            a = m.beta[i, o]
            part = a * scale
            left = real(0)
            for j in range(count):
                if j != i:
                    b = m.beta[j, o] - m.p[j] * part
                    left += b * b
            loss += a * part * many + left * others
        m.score[i] = loss


@kernel
def release_squared(m: OnlineModel, r: Index, n: Index) -> None:
    """Remove vector r of the n vectors from Q, given p = P_:r: Q - (q p' + p q') / p_r + (p'p) p p' / p_r^2, where q = P p.  O(N^2)."""
    inverse_times(m, m.p, m.q, n)
    scale = real(1) / m.p[r]
    total = real(0)
    for j in range(n):
        total += m.p[j] * m.p[j]
    # Q - (a p' + p a') with a = q / p_r - (p'p) p / (2 p_r^2)
    half = real(0.5) * total * scale
    for j in range(n):
        m.q[j] = as_product((m.q[j] - half * m.p[j]) * scale)
    row = 0
    for i in range(n):
        for j in range(i + 1):
            m.squared[row + j] = as_product(m.squared[row + j] - (m.q[i] * m.p[j] + m.p[i] * m.q[j]))
        row = row + i + 1
    symmetric_close(m.squared, r, n)


@kernel
def border_squared(m: OnlineModel, n: Index) -> None:
    """Add the sample to Q as vector n, given u = P k: Q + (t u' + u t') / kappa + (u'u) u u' / kappa^2, where t = P u.  O(N^2).

    u_n = -1 and t_n = 0.
    """
    inverse_times(m, m.u, m.q, n)
    scale = real(1) / m.kappa[0]
    total = real(1)
    for j in range(n):
        total += m.u[j] * m.u[j]
    half = real(0.5) * total * scale
    for j in range(n):
        m.q[j] = as_product((m.q[j] + half * m.u[j]) * scale)
    m.u[n] = -real(1)
    m.q[n] = as_product(-(half * scale))
    row = 0
    for i in range(n + 1):
        for j in range(i + 1):
            before = m.squared[row + j] if i < n else real(0)
            m.squared[row + j] = as_product(before + (m.q[i] * m.u[j] + m.u[i] * m.q[j]))
        row = row + i + 1
