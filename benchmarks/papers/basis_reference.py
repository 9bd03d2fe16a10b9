"""What the results about kernel bases are measured with; nothing in it chooses a basis, or comes from pykernel.bases.basis.

K: Gram matrix (l, l) of the Gaussian kernel exp(-|a - b|^2 / (2 sigma^2)); width: 2 sigma^2 / D; S: chosen rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.spatial.distance import cdist

from benchmarks import basis_data

UNCHANGED = ("digits", "bikeshare")
"""Sets that are scaled as they should be."""


@lru_cache(maxsize=4)
def data(name: str, rows: int = 0) -> np.ndarray:
    """Inputs (l, D), zero mean and unit variance but for the sets above; rows: so many, drawn, 0: all."""
    found = basis_data.load(name)
    x = found.x if name in UNCHANGED else found.standardised().x
    return x if not rows else x[np.sort(np.random.default_rng([len(x), rows]).permutation(len(x))[:rows])]


def gamma(x: np.ndarray, width: float) -> float:
    """Of exp(-gamma |a - b|^2), with 2 sigma^2 = width D."""
    return 1 / (width * x.shape[1])


def gaussian(gamma: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(-gamma * cdist(a, b, "sqeuclidean"))


@lru_cache(maxsize=2)
def gram(name: str, width: float, rows: int = 0) -> np.ndarray:
    x = data(name, rows)
    return gaussian(gamma(x, width), x, x)


@lru_cache(maxsize=2)
def spectrum(name: str, width: float, rows: int = 0) -> np.ndarray:
    """Eigenvalues (l,), the largest first.  O(l^3)."""
    return np.maximum(eigh(gram(name, width, rows), eigvals_only=True)[::-1], 0)


def limit(eigenvalues: np.ndarray, n: Sequence[int]) -> list[float]:
    """The least tr(K - K~) / tr K that any K~ of rank n with K - K~ >= 0 can have: the eigenvalues that stay."""
    return [float(eigenvalues[k:].sum() / eigenvalues.sum()) for k in n]


def coordinates(k_ss: np.ndarray, k_sx: np.ndarray) -> np.ndarray:
    """z (n, rows) = L^-1 k_S: coordinates in the basis, nested."""
    return solve_triangular(cholesky(k_ss, lower=True), k_sx, lower=True)


def vector_curve(x: np.ndarray, gamma: float, vectors: np.ndarray, n: Sequence[int]) -> list[float]:
    """Mean relative residual of all rows with the first n vectors, which may be no rows.  O(l n^2)."""
    z = coordinates(gaussian(gamma, vectors, vectors), gaussian(gamma, vectors, x))
    explained = np.append(0.0, np.cumsum((z * z).mean(axis=1)))
    return [float(max(1 - explained[min(k, len(vectors))], 0.0)) for k in n]


def deltas(k: np.ndarray, chosen: Sequence[int], n: Sequence[int]) -> np.ndarray:
    """Relative residuals (len(n), l) of all rows with the first n chosen.  O(l n^2)."""
    chosen = np.asarray(chosen, int)
    z = coordinates(k[np.ix_(chosen, chosen)], k[chosen])
    explained = np.vstack([np.zeros(len(k)), np.cumsum(z * z, axis=0)]) / np.diag(k)
    return np.clip(1 - explained[np.minimum(n, len(chosen))], 0, 1)


def residual_curve(k: np.ndarray, chosen: Sequence[int], n: Sequence[int]) -> list[float]:
    """Mean relative residual (= tr R / tr K for a unit diagonal) with the first n chosen."""
    return [float(v) for v in deltas(k, chosen, n).mean(axis=1)]


def residual(k: np.ndarray, chosen: Sequence[int]) -> np.ndarray:
    """R = K - K_:S K_SS^-1 K_S:, (l, l)."""
    chosen = np.asarray(chosen, int)
    if not len(chosen):
        return k.copy()
    return k - k[:, chosen] @ np.linalg.solve(k[np.ix_(chosen, chosen)], k[chosen])


def column_residual(k: np.ndarray, chosen: Sequence[int]) -> np.ndarray:
    """K - K~ with every column fitted by the chosen ones, least squares: section 3.1 of paper 002."""
    chosen = np.asarray(chosen, int)
    return k - k[:, chosen] @ np.linalg.lstsq(k[:, chosen], k, rcond=None)[0] if len(chosen) else k.copy()


def ridge(z: np.ndarray, y: np.ndarray, weight: float) -> np.ndarray:
    """w (n,) that minimises |y - z w|^2 + weight |w|^2; z (rows, n)."""
    stacked = np.vstack([z, np.sqrt(weight) * np.eye(z.shape[1])])
    found: Any = np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(z.shape[1])]), rcond=None)
    return found[0]
