"""LSRIDGE computes W = (K^2 + mu I)^-1 = -Im Z / sqrt(mu) from the complex symmetric matrix Z = (K + i sqrt(mu) I)^-1.

When vectors are added or removed, Z is updated in the same way as P in inverse_gram.py.  Updating Z is far better conditioned
than updating W: no pivot is below sqrt(mu).  The diagonal of K includes the ridge.  Without correction, rounding errors would
accumulate, sometimes until the model is reset.  Therefore, whenever a sample is stored, the next two columns of Z are corrected.
"""

from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.online.candidates import candidates
from pykernel.algorithms.online.state import LARGEST_ELEMENT, OnlineModel, alike_stored, as_product
from pykernel.algorithms.packed import row_of, symmetric_close, symmetric_row, symmetric_times
from pykernel.dialect import Constant, Index, Real, absolute, kernel, real

MOST_WRONG = Constant(0.25)
"""If a column's error is larger than this, Z cannot be the inverse, and the model is reset."""
ASTRAY = -1
"""Value of ``probe`` if Z does not match the vectors.  Otherwise ``probe`` is the index of the next column to correct."""

LEAST_WRONG = Constant(float32=2.0**-20, float64=2.0**-49)
"""A column with a smaller error is not corrected, so that a stored vector and the newest sample have exactly the same cost if both
are far from all other vectors."""

DIAGONAL_SQUARE_LEAST = Constant(float32=2.0**-50, float64=2.0**-120)
"""A limit far below |Z_ii|^2, which is at least 1 / (1 + ridge + sqrt(mu) + N / sqrt(mu))^2."""


@kernel
def express_complex(m: OnlineModel, n: Index) -> None:
    """Compute t = Z k and 1 / s, where s = 1 + ridge + i sqrt(mu) - k' Z k.  O(N^2)."""
    symmetric_times(m.z_re, m.k, m.t_re, n)
    symmetric_times(m.z_im, m.k, m.t_im, n)
    re = m.ridge_diagonal
    im = m.root_mu
    for i in range(n):
        re -= m.t_re[i] * m.k[i]
        im -= m.t_im[i] * m.k[i]
        m.t_re[i] = bounded(m.t_re[i], LARGEST_ELEMENT)
        m.t_im[i] = bounded(m.t_im[i], LARGEST_ELEMENT)
    # the imaginary part of a Schur complement is at least sqrt(mu); "!(im > ..)" also replaces NaN
    if not (im > m.root_mu):
        im = m.root_mu
    re = bounded(re, LARGEST_ELEMENT)
    im = clipped(im, m.root_mu, LARGEST_ELEMENT)
    scale = real(1) / (re * re + im * im)
    m.s_re[0] = re * scale
    m.s_im[0] = -(im * scale)


@kernel
def border_complex(m: OnlineModel, n: Index) -> None:
    """Add the sample to Z as vector n, given t = Z k: Z + t t' / s, with t_n = -1.  O(N^2)."""
    m.t_re[n] = -real(1)
    m.t_im[n] = real(0)
    row = 0
    for i in range(n + 1):
        share_re = m.t_re[i] * m.s_re[0] - m.t_im[i] * m.s_im[0]
        share_im = m.t_re[i] * m.s_im[0] + m.t_im[i] * m.s_re[0]
        for j in range(i + 1):
            before_re = m.z_re[row + j] if i < n else real(0)
            before_im = m.z_im[row + j] if i < n else real(0)
            m.z_re[row + j] = as_product(before_re + (share_re * m.t_re[j] - share_im * m.t_im[j]))
            m.z_im[row + j] = as_product(before_im + (share_re * m.t_im[j] + share_im * m.t_re[j]))
        row = row + i + 1


@kernel
def release_complex(m: OnlineModel, r: Index, n: Index) -> None:
    """Remove vector r of the n vectors from Z: Z - z z' / z_r, where z = Z_:r.  O(N^2)."""
    symmetric_row(m.z_re, r, m.t_re, n)
    symmetric_row(m.z_im, r, m.t_im, n)
    for j in range(n):
        m.t_re[j] = bounded(m.t_re[j], LARGEST_ELEMENT)
        m.t_im[j] = bounded(m.t_im[j], LARGEST_ELEMENT)
    square = m.t_re[r] * m.t_re[r] + m.t_im[r] * m.t_im[r]
    # Z_rr is the reciprocal of a Schur complement, so |Z_rr|^2 is above this limit unless Z is wrong
    scale = real(1) / (square if square > DIAGONAL_SQUARE_LEAST else DIAGONAL_SQUARE_LEAST)
    re = m.t_re[r] * scale
    im = -(m.t_im[r] * scale)
    row = 0
    for i in range(n):
        share_re = m.t_re[i] * re - m.t_im[i] * im
        share_im = m.t_re[i] * im + m.t_im[i] * re
        for j in range(i + 1):
            m.z_re[row + j] = as_product(m.z_re[row + j] - (share_re * m.t_re[j] - share_im * m.t_im[j]))
            m.z_im[row + j] = as_product(m.z_im[row + j] - (share_re * m.t_im[j] + share_im * m.t_re[j]))
        row = row + i + 1
    symmetric_close(m.z_re, r, n)
    symmetric_close(m.z_im, r, n)


@kernel
def shrink(m: OnlineModel) -> None:
    """shrunk = alpha - mu W alpha over the candidates.  O(N^2).

    shrunk minimises the sum of the squared changes of f at the vectors, plus mu |shrunk|^2.  Removing vector i
    increases this sum by shrunk_i^2 / W_ii.
    """
    n = m.n[0]
    count = candidates(m)
    for o in range(len(m.alpha[0])):
        total_re = real(0)
        total_im = real(0)
        if count > n:
            for j in range(n):
                total_re += m.t_re[j] * m.beta[j, o]
                total_im += m.t_im[j] * m.beta[j, o]
            total_re -= m.beta[n, o]
        # (t' alpha) / s
        share_re = total_re * m.s_re[0] - total_im * m.s_im[0]
        share_im = total_re * m.s_im[0] + total_im * m.s_re[0]
        for i in range(n):
            m.q[i] = m.beta[i, o]
        symmetric_times(m.z_im, m.q, m.p, n)
        for i in range(n):
            im = m.p[i]
            if count > n:
                im += m.t_re[i] * share_im + m.t_im[i] * share_re
            # - mu W alpha = sqrt(mu) Im (Z alpha)
            m.shrunk[i, o] = m.beta[i, o] + m.root_mu * im
        if count > n:
            m.shrunk[n, o] = m.beta[n, o] - m.root_mu * share_im


@kernel
def ridge_diagonal(m: OnlineModel) -> None:
    """score_i = W_ii over the candidates.  O(N)."""
    n = m.n[0]
    count = candidates(m)
    inverse = real(1) / m.root_mu
    row = 0
    for i in range(n):
        im = m.z_im[row + i]
        row = row + i + 1
        if count > n:
            # t_i^2 / s
            re2 = m.t_re[i] * m.t_re[i] - m.t_im[i] * m.t_im[i]
            im2 = real(2) * m.t_re[i] * m.t_im[i]
            im += re2 * m.s_im[0] + im2 * m.s_re[0]
        m.score[i] = -(im * inverse)
    m.score[n] = -(m.s_im[0] * inverse)


@kernel
def project_lsridge(m: OnlineModel, r: Index) -> None:
    """beta = shrunk - W_:r shrunk_r / W_rr, after shrink().  These multipliers minimise the sum in eq. 20 of Mitchinson et al.
    2003.  O(N^2)."""
    n = m.n[0]
    count = candidates(m)
    inverse = real(1) / m.root_mu
    share_re = real(0)
    share_im = real(0)
    if count > n:
        # t_r / s, where t_n = -1
        if r == n:
            share_re = -m.s_re[0]
            share_im = -m.s_im[0]
        else:
            share_re = m.t_re[r] * m.s_re[0] - m.t_im[r] * m.s_im[0]
            share_im = m.t_re[r] * m.s_im[0] + m.t_im[r] * m.s_re[0]
    for i in range(n):
        m.p[i] = real(0)
    if r < n:
        symmetric_row(m.z_im, r, m.p, n)
    for i in range(n):
        im = m.p[i]
        if count > n:
            im += m.t_re[i] * share_im + m.t_im[i] * share_re
        m.q[i] = -(im * inverse)
    m.q[n] = share_im * inverse
    scale = real(1) / m.q[r]
    for o in range(len(m.alpha[0])):
        g = m.shrunk[r, o] * scale
        for i in range(count):
            m.beta[i, o] = m.shrunk[i, o] - m.q[i] * g


@kernel
def column_error(m: OnlineModel, i: Index) -> Real:
    """Write t = Z y - e_i for y = (K + i sqrt(mu) I) e_i, and write the real part of y to ``row``.  Returns the largest magnitude of
    a real or an imaginary part of t.  O(N^2 + N D)."""
    n = m.n[0]
    for j in range(n):
        m.row[j] = alike_stored(m, i, j)
    m.row[i] = m.ridge_diagonal
    symmetric_times(m.z_re, m.row, m.t_re, n)
    symmetric_times(m.z_im, m.row, m.t_im, n)
    symmetric_row(m.z_re, i, m.q, n)
    symmetric_row(m.z_im, i, m.p, n)
    worst = real(0)
    for j in range(n):
        m.t_re[j] -= m.root_mu * m.p[j]
        m.t_im[j] += m.root_mu * m.q[j]
        if j == i:
            m.t_re[j] -= real(1)
        if not (absolute(m.t_re[j]) <= worst):
            worst = absolute(m.t_re[j])
        if not (absolute(m.t_im[j]) <= worst):
            worst = absolute(m.t_im[j])
    return worst


@kernel
def correct_complex(m: OnlineModel) -> None:
    """Correct the next column of Z, so that Z y = e_i for y = (K + i sqrt(mu) I) e_i.  O(N^2 + N D).

    Z - (d e_i' + e_i d') / y_i + e_i e_i' y'd / y_i^2, where d = Z y - e_i: the BFGS formula for a complex symmetric matrix.
    """
    n = m.n[0]
    i = m.probe[0]
    if i < 0 or i >= n:
        i = 0
    m.probe[0] = i + 1
    worst = column_error(m, i)
    if not (worst <= MOST_WRONG):
        m.probe[0] = ASTRAY
    elif worst > LEAST_WRONG:
        # 1 / y_i, and y'd
        scale = real(1) / (m.ridge_diagonal * m.ridge_diagonal + m.root_mu * m.root_mu)
        re = m.ridge_diagonal * scale
        im = -(m.root_mu * scale)
        total_re = -(m.root_mu * m.t_im[i])
        total_im = m.root_mu * m.t_re[i]
        for j in range(n):
            total_re += m.row[j] * m.t_re[j]
            total_im += m.row[j] * m.t_im[j]
        at = row_of(i)
        for j in range(n):
            if j > i:
                at = at + j
            to = at if j > i else at + j
            part_re = m.t_re[j] * re - m.t_im[j] * im
            part_im = m.t_re[j] * im + m.t_im[j] * re
            if j == i:
                # element (i, i): 2 d_i - y'd / y_i, before the division by y_i
                twice_re = real(2) * m.t_re[i] - (total_re * re - total_im * im)
                twice_im = real(2) * m.t_im[i] - (total_re * im + total_im * re)
                part_re = twice_re * re - twice_im * im
                part_im = twice_re * im + twice_im * re
                at = at + i
            m.z_re[to] = as_product(m.z_re[to] - part_re)
            m.z_im[to] = as_product(m.z_im[to] - part_im)
