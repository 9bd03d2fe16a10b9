"""Batch kernel feature extraction (BKFE), from a Gram matrix or within the span of a basis, in float64.

    found = bkfe(kernel.gram(x, x), rank=10, shrinkage=0.1)
    found.a, found.q, found.eigenvalues

F. Sheikholeslami, D. Berberidis, G. B. Giannakis, Large-scale kernel-based feature extraction via budgeted nonlinear
subspace tracking, 2016 ("paper 001").  The columns of Phi are the images phi(x_n) of the N samples, and
K = Phi'Phi is their Gram matrix.  The columns of L = Phi A are the r directions; each direction is a linear combination
of the images.  Column q_n of Q, (r, N), contains the coordinates of sample n.  lambda is the shrinkage.  The objective,
equation 3, is

    1/2 sum_n |phi(x_n) - L q_n|^2 + lambda / 2 (|L|^2 + sum_n |q_n|^2)

docs/subspaces.md derives the formulas.  ``pykernel.training.subspace`` makes a subspace from the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import eigh  # type: ignore[import-untyped]
from scipy.sparse.linalg import ArpackError, eigsh  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count, checked_gram, checked_positive, need_choice
from pykernel.bases.basis import Basis
from pykernel.errors import UserError
from pykernel.rows import Rows, as_rows
from pykernel.training.closed_form import ASYMMETRY
from pykernel.training.reduced import FeatureRows, merged

Method = Literal["closed", "alternating"]

DENSE = 1024
"""If N is at most this number, a dense solver computes the eigenvalues.

For larger N, the Lanczos method computes the r largest eigenvalues if r <= N / 10.
"""
EPS = float(np.finfo(np.float64).eps)


# ----------------------------------------------------------------------------------------------------- the batch solver


@dataclass(frozen=True, eq=False)
class Factors:
    """The result of ``bkfe``.

    Attributes
    ----------
    a : (N, r) float64
        The coefficients of L = Phi A.  With method "closed", the columns of directions that vanish are zero.
    q : (r, N) float64
        The samples' coordinates, which minimise the objective for this A.
    objective : (iterations,) float64
        The objective after each iteration.  With method "closed", a single value: the minimum over all (A, Q) of this
        rank.
    eigenvalues : (r,) float64
        Eigenvalues of G = A'KA, descending.  At the optimum they are (sigma_i - lambda)_+, where sigma_i are the square
        roots of K's eigenvalues.
    converged : bool
        True if the last iteration lowered the objective by at most ``tolerance`` times the objective; always True with
        method "closed".
    """

    a: np.ndarray
    q: np.ndarray
    objective: np.ndarray
    eigenvalues: np.ndarray
    converged: bool

    @property
    def kept(self) -> int:
        """Number of directions that do not vanish.

        At the optimum, this is the number of K's eigenvalues above lambda^2, but at most r.
        """
        return int(above_rounding(self.eigenvalues).sum())


def bkfe(
    gram: Any,
    rank: int,
    shrinkage: float,
    *,
    method: Method = "closed",
    iterations: int = 200,
    tolerance: float = 1e-10,
    seed: int = 0,
) -> Factors:
    """Compute BKFE from a Gram matrix, in closed form or by the iteration of paper 001 (Algorithm 1).

    Parameters
    ----------
    gram : (N, N) array, symmetric and positive semidefinite
    rank : int
        r, the number of directions.  If K has fewer eigenvalues above lambda^2, the remaining directions vanish.
    shrinkage : float
        lambda > 0, in the same unit as the square root of a kernel value.
    method : {"closed", "alternating"}
        "closed": LQ is Phi with each of the r largest singular values sigma replaced by max(sigma - lambda, 0), and all
        other singular values replaced by 0.  This is the limit of the iteration.  The cost is O(N^3) if N <= 1,024 or
        r > N / 10; otherwise the Lanczos method needs about 10 r products with K, O(N^2) each.
        "alternating": from a random start, Q = (G + lambda I)^-1 A'K and A = Q'(QQ' + lambda I)^-1 are computed in
        turn.  Each of the two steps minimises the objective over one matrix, with the other matrix fixed.  The cost is
        O(N^2 r) per iteration.
        Near the optimum, each iteration multiplies the error of the objective by a constant factor.  The factor is
        almost 1, so convergence is slow, if the eigenvalues r and r + 1 are close together, or if lambda is small.
    iterations, tolerance
        Only for "alternating".  The computation stops after ``iterations`` iterations, or after an iteration that
        lowers the objective by at most ``tolerance`` times the objective.
    seed : int
        Seed for the random start of "alternating", and for the random start vector of the Lanczos method.

    Raises
    ------
    UserError
        If an argument is invalid.  The message is one sentence.
    """
    rank, seed = checked_count(rank, "rank", 1), checked_count(seed, "seed", 0)
    shrinkage = checked_positive(shrinkage, "shrinkage")
    need_choice(method, "method", get_args(Method))
    gram = checked_gram(gram)
    if gram.diagonal().min() < -ASYMMETRY * float(np.abs(gram).max()):
        raise UserError("the diagonal of the Gram matrix has negative values; use a positive semidefinite kernel")
    total = float(np.trace(gram))
    if method == "closed":
        return _closed(gram, rank, shrinkage, total, seed)
    iterations = checked_count(iterations, "iterations", 1)
    if not 0 <= tolerance < 1:
        raise UserError(f"tolerance is {tolerance:g}; it must be at least 0 and less than 1")
    n = gram.shape[0]
    a = np.random.default_rng(seed).standard_normal((n, rank)) / math.sqrt(n)
    return _alternating(gram, a, shrinkage, total, iterations, tolerance)


def _closed(gram: np.ndarray, rank: int, shrinkage: float, total: float, seed: int) -> Factors:
    n = gram.shape[0]
    if not total:  # a Gram matrix of zeros
        return Factors(np.zeros((n, rank)), np.zeros((rank, n)), np.zeros(1), np.zeros(rank), True)
    values, vectors = _leading(gram, min(rank, n), seed)
    sigma = np.sqrt(values)
    root = np.sqrt(np.maximum(sigma - shrinkage, 0.0))
    a, q = np.zeros((n, rank)), np.zeros((rank, n))
    a[:, : len(sigma)] = vectors * np.divide(root, sigma, out=np.zeros_like(root), where=root > 0)
    q[: len(sigma)] = (vectors * root).T
    weights = np.zeros(rank)
    weights[: len(sigma)] = root**2
    return Factors(a, q, np.array([0.5 * max(0.0, total - float(np.sum(root**4)))]), weights, True)


def _leading(gram: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` largest eigenvalues in descending order, and an array (N, count) whose columns are their
    eigenvectors.

    Eigenvalues below the rounding error become 0.
    """
    n = gram.shape[0]
    found = None if n <= DENSE or 10 * count > n else lanczos(gram, count, seed)
    if found is None:
        found = eigh(gram, subset_by_index=[n - count, n - 1])
    order = np.argsort(found[0])[::-1]
    values, vectors = found[0][order], found[1][:, order]
    values[values <= n * EPS * max(values[0], 0.0)] = 0.0
    # the sign of an eigenvector is arbitrary, so the element of largest magnitude is made positive
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
    return np.maximum(values, 0.0), vectors * np.where(signs == 0, 1.0, signs)


def lanczos(gram: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the ``count`` largest eigenvalues of a symmetric matrix and their eigenvectors, or None if the Lanczos
    method fails or ``count`` is the size of the matrix.
    """
    n = gram.shape[0]
    if count >= n:
        return None
    start = np.random.default_rng(seed).standard_normal(n)
    room = min(n, max(2 * count + 1, count + 20))
    try:
        values, vectors = eigsh(gram, count, which="LA", v0=start, ncv=room)
    except ArpackError:
        return None
    return values, vectors


def _alternating(
    gram: np.ndarray, a: np.ndarray, shrinkage: float, total: float, iterations: int, tolerance: float
) -> Factors:
    ka = gram @ a
    g = symmetric(a.T @ ka)
    q = _ridge_solve(g, shrinkage, ka.T)
    history: list[float] = []
    converged = False
    for _ in range(iterations):
        before = a, q, g
        a = _ridge_solve(symmetric(q @ q.T), shrinkage, q).T
        ka = gram @ a
        g = symmetric(a.T @ ka)
        q = _ridge_solve(g, shrinkage, ka.T)
        # for this q, |phi(x) - L q|^2 + lambda |q|^2 = k(x, x) - v'q, where v = L'phi(x); a row of ka is v'
        now = float(0.5 * max(0.0, total - np.sum(ka * q.T)) + 0.5 * shrinkage * np.trace(g))
        converged = bool(history) and history[-1] - now <= tolerance * now
        if history and now > history[-1]:  # rounding errors can raise the objective if lambda is small
            a, q, g = before
            break
        history.append(now)
        if converged:
            break
    values = np.linalg.eigvalsh(g)[::-1]
    if values[-1] < -ASYMMETRY * max(values[0], 0.0):
        raise UserError("the Gram matrix has negative eigenvalues; use a positive semidefinite kernel")
    return Factors(a, q, np.array(history), np.maximum(values, 0.0), converged)


def _ridge_solve(g: np.ndarray, shrinkage: float, right: np.ndarray) -> np.ndarray:
    """Return (G + lambda I)^-1 ``right``, (r, columns).  Eigenvectors of G + lambda I whose eigenvalues are only
    rounding errors are ignored.

    O(r^3 + r^2 columns).
    """
    values, vectors = np.linalg.eigh(g)
    return np.asarray((vectors * inverse_of(values, shrinkage)) @ (vectors.T @ right))


def inverse_of(values: np.ndarray, shrinkage: float) -> np.ndarray:
    """Return 1 / (g + lambda) for each eigenvalue g of G, or 0 if g + lambda is only a rounding error."""
    values = np.maximum(values, 0.0)
    real = values + shrinkage > len(values) * EPS * values.max(initial=0.0)
    return np.divide(1.0, values + shrinkage, out=np.zeros_like(values), where=real)


def above_rounding(values: np.ndarray) -> np.ndarray:
    """Return a Boolean array that is True for the eigenvalues of G that are more than rounding errors."""
    return np.asarray(values > len(values) * EPS * values.max(initial=0.0))


def symmetric(a: np.ndarray) -> np.ndarray:
    return np.asarray((a + a.T) / 2)


def bkfe_on_basis(basis: Basis, x: Any, rank: int, shrinkage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return BKFE's optimum within the span of a basis, as weights for the basis's projection features z(x).

    basis: n vectors.  x: N rows, in any form that ``as_rows`` accepts.  rank: r, the maximum number of features.
    shrinkage: lambda.

    Returns two arrays: W, (n, k), and sigma, (k,), in descending order.  The new features are W'z(x), one for each of
    the k <= r directions whose singular value sigma is above lambda.  Column i of W is (sigma_i - lambda) / sigma_i v_i,
    where sigma_i and v_i are a singular value and the right singular vector of the matrix whose rows are z(x)'.  The
    squares of the i-th feature, summed over all rows, give (sigma_i - lambda)^2.
    ``HostSubspace.fit(..., basis=basis)`` gives the same features, except for order and signs.
    The computation takes one pass, O(N n (D + n)).  Raises UserError if an argument is invalid or no direction remains.
    """
    rank, shrinkage = checked_count(rank, "rank", 1), checked_positive(shrinkage, "shrinkage")
    sigma, turned = directions(basis, as_rows(x), rank)
    kept = sigma > shrinkage
    if not kept.any():
        raise UserError(
            f"shrinkage is {shrinkage:g}, and the largest singular value of the rows is {sigma[0]:.3g}; "
            "take a shrinkage below this value"
        )
    sigma, turned = sigma[kept], turned[kept]
    signs = np.sign(turned[np.arange(len(turned)), np.abs(turned).argmax(axis=1)])
    return (turned * signs[:, None]).T * ((sigma - shrinkage) / sigma), sigma


def directions(basis: Basis, rows: Rows, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``rank`` largest singular values of the matrix of projection features, or all n if n < ``rank``, and an
    array whose rows are the right singular vectors.
    """
    triangle = np.zeros((len(basis), len(basis)))
    for _, z in FeatureRows(basis, rows, keep=0):
        triangle = merged(triangle, z)
    _, sigma, turned = np.linalg.svd(triangle)
    count = min(rank, len(sigma))
    return sigma[:count], turned[:count]
