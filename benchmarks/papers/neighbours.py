"""Nearest neighbours, and bounds of distances, in a kernel's feature space, from the features of a basis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist  # type: ignore[import-untyped]
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count, checked_table
from pykernel.bases.basis import Basis, left_out
from pykernel.rows import as_rows, each_row
from pykernel.training.reduced import BLOCK

SLACK = 1e-6
"""Accuracy of bounds of distances in the feature space, relative to the largest norm: the root of the rounding
error.
"""


def distance_bounds(basis: Basis, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of |phi(a_i) - phi(b_j)|, (len(a), len(b)) each, from the basis alone.

    |phi(a) - phi(b)|^2 = |z(a) - z(b)|^2 + |r(a) - r(b)|^2, where the residuals r have the known norms
    sqrt(k(x, x) delta(x)): at least their difference and at most their sum apart.  Both are exact where one is 0.
    O((len(a) + len(b)) (n D + n^2) + len(a) len(b) n).
    """
    a, b = _extended(basis, checked_table(a, "a")), _extended(basis, checked_table(b, "b"))
    squares = cdist(a[:, :-1], b[:, :-1], "sqeuclidean")
    norms, others = a[:, -1:], b[:, -1]
    return np.sqrt(squares + (norms - others) ** 2), np.sqrt(squares + (norms + others) ** 2)


class KernelNeighbours:
    """Nearest neighbours in the feature space, where the distance is sqrt(k(a, a) + k(b, b) - 2 k(a, b)).

    basis, x: l rows, what ``as_rows`` takes; rows are read again when they are candidates.  algorithm, options: for
    scikit-learn's NearestNeighbors, which searches among the n + 1 numbers [z(x), |r(x)|].  The Euclidean distances of
    these numbers are lower bounds of the distances in the feature space.  For Gaussian, Laplacian and Matern kernels,
    the nearest neighbours are those in the input space.  So this class is for other kernels, or if there are more than
    n inputs.

    Memory O(l n).  Raises UserError.
    """

    def __init__(self, basis: Basis, x: Any, algorithm: str = "auto", **options: Any) -> None:
        self.basis, self.rows = basis, as_rows(x)
        size = max(1, BLOCK // (len(basis) + self.rows.dim))
        table = each_row(self.rows, size, lambda block: _extended(basis, block), len(basis) + 1)
        self.search = NearestNeighbors(algorithm=algorithm, **options).fit(table)
        self._norm = math.sqrt(float(np.einsum("ij,ij->i", table, table).max()))

    def kneighbors(self, queries: Any, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """(distances, indices) of the nearest rows, each (queries, count), ascending; exact.

        Candidates are fetched in the order of their lower bounds, twice as many each time, until the count-th of the
        kernel's own distances is no larger than the next lower bound.  The better the basis, the fewer are looked at.
        """
        queries, count = (
            checked_table(queries, "queries"),
            checked_count(count, "count of neighbours", 1, len(self.rows)),
        )
        distances, indices = np.empty((len(queries), count)), np.empty((len(queries), count), np.int64)
        extended, open_ = _extended(self.basis, queries), np.arange(len(queries))
        wanted = min(len(self.rows), 2 * count + 8)
        while len(open_):
            bounds, found = self.search.kneighbors(extended[open_], wanted)
            left = []
            for query, low, places in zip(open_, bounds, found, strict=True):
                exact = self._exact(queries[query : query + 1], places)
                order = np.lexsort([places, exact])[:count]
                distances[query], indices[query] = exact[order], places[order]
                if wanted < len(self.rows) and exact[order[-1]] > low[-1] - SLACK * self._norm:
                    left.append(query)
            open_, wanted = np.array(left, np.int64), min(len(self.rows), 2 * wanted)
        return distances, indices

    def bounded(self, queries: Any, count: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(lower, upper, indices) of the rows with the smallest lower bounds, each (queries, count).

        No kernel values between queries and rows are computed.
        """
        queries, count = (
            checked_table(queries, "queries"),
            checked_count(count, "count of neighbours", 1, len(self.rows)),
        )
        extended = _extended(self.basis, queries)
        low, indices = self.search.kneighbors(extended, count)
        # (|r| + |r'|)^2 = (|r| - |r'|)^2 + 4 |r| |r'|
        norms = self.search._fit_X[indices, -1]
        return low, np.sqrt(low**2 + 4 * extended[:, -1:] * norms), indices

    def _exact(self, query: np.ndarray, places: np.ndarray) -> np.ndarray:
        rows, kernel = self.rows.take(places), self.basis.kernel
        squares = kernel.diagonal(query)[0] + kernel.diagonal(rows) - 2 * kernel.gram(query, rows)[0]
        return np.sqrt(np.maximum(squares, 0.0))


def _extended(basis: Basis, x: np.ndarray) -> np.ndarray:
    """[z(x), |r(x)|], (rows, n + 1)."""
    z, diagonal = basis.features(x), basis.kernel.diagonal(x)
    return np.column_stack([z, np.sqrt(left_out(diagonal, z))])
