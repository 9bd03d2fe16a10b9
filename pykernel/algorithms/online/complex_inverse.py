"""LSRIDGE: W = (K^2 + mu I)^-1 through the complex symmetric Z = (K + i sqrt(mu) I)^-1, W = -Im Z / sqrt(mu).

Z is bordered and reduced as P is, and far better conditioned than W's own update: no pivot is below sqrt(mu).
K has the ridge on its diagonal.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.online.state import LARGEST_ELEMENT, Expansion, OnlineConfig, Work, as_product
from pykernel.dialect import Constant, Index, kernel, real

SMALLEST_SQUARE = Constant(float32=2.0**-50, float64=2.0**-120)
"""Far below |Z_ii|^2, which is 1 / (1 + ridge + sqrt(mu) + N / sqrt(mu))^2 or more."""


@kernel
def express_complex(s: Expansion, w: Work, c: OnlineConfig, n: Index) -> None:
    """Compute t = Z k and 1 / s, where s = 1 + ridge + i sqrt(mu) - k' Z k.  O(N^2)."""
    re = c.ridge_diagonal
    im = c.root_mu
    for i in range(n):
        t_re = real(0)
        t_im = real(0)
        for j in range(n):
            t_re += s.z_re[i, j] * w.k[j]
            t_im += s.z_im[i, j] * w.k[j]
        w.t_re[i] = clipped(t_re, -LARGEST_ELEMENT, LARGEST_ELEMENT)
        w.t_im[i] = clipped(t_im, -LARGEST_ELEMENT, LARGEST_ELEMENT)
        re -= t_re * w.k[i]
        im -= t_im * w.k[i]
    # the imaginary part of a Schur complement is at least sqrt(mu); "!(im > ..)" also replaces NaN
    if not (im > c.root_mu):
        im = c.root_mu
    re = clipped(re, -LARGEST_ELEMENT, LARGEST_ELEMENT)
    im = clipped(im, c.root_mu, LARGEST_ELEMENT)
    scale = real(1) / (re * re + im * im)
    w.s_re[0] = re * scale
    w.s_im[0] = -(im * scale)


@kernel
def border_complex(s: Expansion, w: Work, r: Index, n: Index) -> None:
    """Add vector r to Z, given t = Z k: Z + t t' / s, with t_r = -1.  O(N^2)."""
    w.t_re[r] = -real(1)
    w.t_im[r] = real(0)
    for i in range(n):
        share_re = w.t_re[i] * w.s_re[0] - w.t_im[i] * w.s_im[0]
        share_im = w.t_re[i] * w.s_im[0] + w.t_im[i] * w.s_re[0]
        for j in range(n):
            s.z_re[i, j] = as_product(s.z_re[i, j] + (share_re * w.t_re[j] - share_im * w.t_im[j]))
            s.z_im[i, j] = as_product(s.z_im[i, j] + (share_re * w.t_im[j] + share_im * w.t_re[j]))


@kernel
def release_complex(s: Expansion, w: Work, r: Index) -> None:
    """Remove vector r from Z: Z - z z' / z_r, where z = Z_:r.  O(N^2)."""
    n = s.n[0]
    for j in range(n):
        w.t_re[j] = clipped(s.z_re[r, j], -LARGEST_ELEMENT, LARGEST_ELEMENT)
        w.t_im[j] = clipped(s.z_im[r, j], -LARGEST_ELEMENT, LARGEST_ELEMENT)
    square = w.t_re[r] * w.t_re[r] + w.t_im[r] * w.t_im[r]
    # Z_rr is the reciprocal of a Schur complement
    scale = real(1) / (square if square > SMALLEST_SQUARE else SMALLEST_SQUARE)
    re = w.t_re[r] * scale
    im = -(w.t_im[r] * scale)
    for i in range(n):
        share_re = w.t_re[i] * re - w.t_im[i] * im
        share_im = w.t_re[i] * im + w.t_im[i] * re
        for j in range(n):
            s.z_re[i, j] = as_product(s.z_re[i, j] - (share_re * w.t_re[j] - share_im * w.t_im[j]))
            s.z_im[i, j] = as_product(s.z_im[i, j] - (share_re * w.t_im[j] + share_im * w.t_re[j]))
    for j in range(n):
        s.z_re[r, j] = real(0)
        s.z_re[j, r] = real(0)
        s.z_im[r, j] = real(0)
        s.z_im[j, r] = real(0)


@kernel
def shrink(s: Expansion, w: Work, c: OnlineConfig, count: Index) -> None:
    """shrunk = alpha - mu W alpha over the candidates.  O(N^2).

    shrunk minimises the squared change at the vectors plus mu |shrunk|^2.  Removing i adds shrunk_i^2 / W_ii.
    """
    n = s.n[0]
    for o in range(len(s.alpha[0])):
        total_re = real(0)
        total_im = real(0)
        if count > n:
            for j in range(n):
                total_re += w.t_re[j] * w.beta[j, o]
                total_im += w.t_im[j] * w.beta[j, o]
            total_re -= w.beta[n, o]
        # (t' alpha) / s
        share_re = total_re * w.s_re[0] - total_im * w.s_im[0]
        share_im = total_re * w.s_im[0] + total_im * w.s_re[0]
        for i in range(n):
            im = real(0)
            for j in range(n):
                im += s.z_im[i, j] * w.beta[j, o]
            if count > n:
                im += w.t_re[i] * share_im + w.t_im[i] * share_re
            # - mu W alpha = sqrt(mu) Im (Z alpha)
            w.shrunk[i, o] = w.beta[i, o] + c.root_mu * im
        if count > n:
            w.shrunk[n, o] = w.beta[n, o] - c.root_mu * share_im


@kernel
def ridge_diagonal(s: Expansion, w: Work, c: OnlineConfig, count: Index) -> None:
    """score_i = W_ii over the candidates.  O(N)."""
    n = s.n[0]
    inverse = real(1) / c.root_mu
    for i in range(n):
        im = s.z_im[i, i]
        if count > n:
            # t_i^2 / s
            re2 = w.t_re[i] * w.t_re[i] - w.t_im[i] * w.t_im[i]
            im2 = real(2) * w.t_re[i] * w.t_im[i]
            im += re2 * w.s_im[0] + im2 * w.s_re[0]
        w.score[i] = -(im * inverse)
    w.score[n] = -(w.s_im[0] * inverse)


@kernel
def project_lsridge(s: Expansion, w: Work, c: OnlineConfig, r: Index, count: Index) -> None:
    """beta = shrunk - W_:r shrunk_r / W_rr, after shrink().  O(N^2).  For eq. 20 of Mitchinson et al. 2003."""
    n = s.n[0]
    inverse = real(1) / c.root_mu
    share_re = real(0)
    share_im = real(0)
    if count > n:
        # t_r / s, t_n = -1
        if r == n:
            share_re = -w.s_re[0]
            share_im = -w.s_im[0]
        else:
            share_re = w.t_re[r] * w.s_re[0] - w.t_im[r] * w.s_im[0]
            share_im = w.t_re[r] * w.s_im[0] + w.t_im[r] * w.s_re[0]
    for i in range(n):
        im = real(0)
        if r < n:
            im = s.z_im[i, r]
        if count > n:
            im += w.t_re[i] * share_im + w.t_im[i] * share_re
        w.q[i] = -(im * inverse)
    w.q[n] = share_im * inverse
    scale = real(1) / w.q[r]
    for o in range(len(s.alpha[0])):
        g = w.shrunk[r, o] * scale
        for i in range(count):
            w.beta[i, o] = w.shrunk[i, o] - w.q[i] * g
