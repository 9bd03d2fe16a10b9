"""Bases that others are compared with: uniform draws, ridge leverage scores, centres of k-means.

Uniform draws (Williams, Seeger 2001), ridge leverage scores (Alaoui, Mahoney 2015; recursive: Musco, Musco 2017), k-means centres
(Zhang, Tsang, Kwok 2008).  l rows, D inputs, n vectors; letters as in ``pykernel.bases.basis``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigh, eigvalsh, solve_triangular
from sklearn.cluster import KMeans as Lloyd
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.papers.literal import LiteralEfvs, LiteralFvs
from pykernel.bases import select
from pykernel.bases.arguments import checked_count, checked_positive
from pykernel.bases.basis import Basis, block_rows, project
from pykernel.bases.candidates import Selector, best_columns
from pykernel.bases.gram import MercerKernel
from pykernel.bases.pivoted import sum_of
from pykernel.errors import UserError
from pykernel.rows import Rows, SomeRows, each_row

TRACED_NUMBERS = 2**22  # up to this many numbers (32 MB) the trace of a listed basis is exact
TRACED_ROWS = 4096  # beyond TRACED_NUMBERS, the trace is estimated on this many rows
TRACED_AT_ONCE = 32  # vectors
EXACT_LEVERAGE = 10_000  # rows: K and its eigenvectors are 0.8 GB each
EXACT_LEVERAGE_BY_ITSELF = 2048
LLOYD_NUMBERS = 2**23  # up to this many numbers, k-means is Lloyd's algorithm on all rows
BATCH_ROWS, BATCHES = 16_384, 128  # beyond, k-means uses mini-batches


class _Listed(Selector):
    """Selectors with a fixed list of candidates.  Candidates with delta >= epsilon are taken, in the order of the list.

    O(n D + n^2) for each candidate.  The trace is over all rows if the rows and C take at most 32 MB.  Otherwise it is
    an estimate over 4,096 drawn rows, or over ``traced`` rows if given.  O(traced (D + n)) for each vector.  It is
    computed for 32 vectors at once, unless tau needs it after each vector.
    """

    def __init__(
        self, rows: Rows, kernel: MercerKernel, n_max: int, *, traced: int | None = None, **common: Any
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        count = len(rows)
        if traced is None:
            traced = count if count * (rows.dim + self.capacity) <= TRACED_NUMBERS else TRACED_ROWS
        traced = checked_count(traced, "traced", 1)
        self.exact = traced >= count
        at = np.arange(count) if self.exact else draw_without(np.random.default_rng([self.seed, 1]), count, traced)
        self.traced = rows.take(np.sort(at))
        self.left = self.grown.diagonal(self.traced)  # R_ii for the first ``followed`` vectors
        self.total = sum_of(self.left)
        self.columns = np.zeros((len(self.traced), self.capacity))
        self.position, self.followed, self.batch = 0, 0, 1 if self.tau > 0 else TRACED_AT_ONCE

    def _list(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The candidates in their order: indices of rows; or -1 for each, and the vectors."""
        raise NotImplementedError

    @cached_property
    def order(self) -> tuple[np.ndarray, np.ndarray | None]:
        return self._list()

    def _add(self) -> bool:
        chosen = self.grown
        (indices, vectors), look = self.order, 1
        while self.position < len(indices):
            some = indices[self.position : self.position + look]
            x = self.rows.take(some) if vectors is None else vectors[self.position : self.position + look]
            z, diagonal = chosen.features(x), chosen.diagonal(x)
            square = diagonal - np.einsum("ij,ij->i", z, z)
            new = np.flatnonzero(square > self.epsilon * diagonal)
            if len(new):
                j = int(new[0])
                self.position += j + 1
                chosen.append(x[j], int(some[j]), z[j], float(square[j]))
                if chosen.n - self.followed == self.batch:
                    self._follow()
                return True
            self.position += len(some)
            look = min(2 * look, block_rows(chosen.n, self.rows.dim), 65_536)
        return False

    def _follow(self) -> None:
        """Update C and R's diagonal on the traced rows by the next complete batch of vectors."""
        first, n = self.followed, self.followed + self.batch
        self.grown.evaluations += len(self.traced) * self.batch
        self.grown.trace[first + 1 : n + 1] = self._traces(n, keep=True)
        self.followed = n

    def _traces(self, n: int, keep: bool) -> np.ndarray:
        """tr R / tr K after each of the vectors from number ``followed`` to n."""
        chosen, first, traces = self.grown, self.followed, np.zeros(n - self.followed)
        size = block_rows(n, self.rows.dim)
        for start in range(0, len(self.traced), size):
            some = slice(start, start + size)
            values = self.kernel.gram(self.traced[some], chosen.vectors[first:n])
            values -= self.columns[some, :first] @ chosen.factor[first:n, :first].T
            fresh = project(chosen.factor[first:n, first:n], values)
            falling = np.maximum(self.left[some, None] - np.cumsum(fresh * fresh, axis=1), 0.0)
            traces += falling.sum(axis=0)
            if keep:
                self.columns[some, first:n], self.left[some] = fresh, falling[:, -1]
        return traces / self.total if self.total > 0 else traces

    def basis(self) -> Basis:
        chosen, first = self.grown, self.followed
        if first < chosen.n:  # vectors of an incomplete batch; the batch is followed when it is complete
            chosen.trace[first + 1 : chosen.n + 1] = self._traces(chosen.n, keep=False)
        basis = super().basis()
        return replace(basis, evaluations=basis.evaluations + len(self.traced) * (chosen.n - first))


class Uniform(_Listed):
    """Rows drawn without replacement, each as likely as any other (Williams, Seeger 2001).

    traced : int, optional
        Rows on which the trace is measured.
    """

    method = "uniform"

    def _list(self) -> tuple[np.ndarray, None]:
        return np.random.default_rng(self.seed).permutation(len(self.rows)), None


class RidgeLeverage(_Listed):
    """Rows drawn without replacement with probabilities that follow (K (K + ridge I)^-1)_ii (Alaoui, Mahoney 2015).

    exact : bool, optional
        True: scores from K's eigenvalues, O(l^3), up to 10,000 rows.  False: approximate scores by recursion (Musco,
        Musco 2017), about 2 l n_max kernel values and O(l n_max^2).  Not given: exact up to 2,048 rows.
    ridge : float, optional
        If not given, (tr K - the sum of the k largest eigenvalues) / k with k = n_max / (4 log n_max), as in the
        recursion's paper: the sum of the scores is then at most 2 k.  This ridge depends on n_max, and so do the first
        vectors.
    traced : int, optional
        Rows on which the trace is measured.
    """

    method = "leverage"

    def __init__(
        self,
        rows: Rows,
        kernel: MercerKernel,
        n_max: int,
        *,
        exact: bool | None = None,
        ridge: float | None = None,
        traced: int | None = None,
        **common: Any,
    ) -> None:
        self.exact_scores = len(rows) <= EXACT_LEVERAGE_BY_ITSELF if exact is None else bool(exact)
        if self.exact_scores and len(rows) > EXACT_LEVERAGE:
            raise UserError(
                f"exact leverage scores of {len(rows):,} rows would need {8 * len(rows) ** 2 / 1e9:,.1f} GB twice; they are "
                f"for up to {EXACT_LEVERAGE:,} rows: take exact=False, the recursion, or the method rpcholesky"
            )
        self.ridge = None if ridge is None else checked_positive(ridge, "ridge")
        self.oversampling = max(1.0, math.log(n_max))
        self.rank = math.ceil(n_max / (4 * self.oversampling))
        super().__init__(rows, kernel, n_max, traced=traced, **common)

    def _list(self) -> tuple[np.ndarray, None]:
        generator = np.random.default_rng(self.seed)
        scores = self.exact_leverage() if self.exact_scores else self.recursive_leverage(generator)
        # draws without replacement, in proportion to the scores: sort exponential variables with these rates
        some = np.flatnonzero(scores > 0)
        return some[np.argsort(generator.exponential(size=len(scores))[some] / scores[some], kind="stable")], None

    def exact_leverage(self) -> np.ndarray:
        """(K (K + ridge I)^-1)_ii, (l,), in O(l^3)."""
        x = self.rows.take(np.arange(len(self.rows)))
        values, vectors = eigh(self.grown.values(x, x), overwrite_a=True, check_finite=False)
        values = values.clip(0.0)
        ridge = self.ridge or tail_ridge(values, self.rank)
        return (vectors * vectors) @ np.divide(values, values + ridge, out=np.zeros_like(values), where=values > 0)

    def recursive_leverage(self, generator: np.random.Generator) -> np.ndarray:
        """Scores that are not much below the exact ones, (l,).

        They are computed from a weighted sample of half of the rows, whose scores are computed recursively in the same
        way.
        """
        rows, count, size = self.rows, len(self.rows), max(self.n_max, 2)
        permuted = generator.permutation(count)
        lengths = [count]
        while lengths[-1] > size:
            lengths.append((lengths[-1] + 1) // 2)
        sample, weights = permuted[: lengths[-1]], np.ones(lengths[-1])
        for length in reversed(lengths[:-1]):
            solve = self._weighted(sample, weights)
            size_of_block = block_rows(len(sample), rows.dim)
            if length == count:
                return np.minimum(1.0, each_row(rows, size_of_block, solve))
            level = np.sort(permuted[:length])
            scores = each_row(SomeRows(rows, level), size_of_block, solve)
            chances = np.minimum(1.0, self.oversampling * scores)
            kept = np.flatnonzero(generator.random(length) < chances)
            if not len(kept):  # all rows are spanned, or nearly spanned
                kept = np.sort(draw_without(generator, length, min(size, length)))
                chances[:] = len(kept) / length
            if len(kept) > EXACT_LEVERAGE:
                told = f"n_max {self.n_max:,}" if self.ridge is None else f"a ridge of {self.ridge:g}"
                raise UserError(
                    f"leverage scores for {told} need a sample of {len(kept):,} rows, and {EXACT_LEVERAGE:,} are the most: "
                    "take a larger ridge, fewer vectors, or the method rpcholesky"
                )
            sample, weights = level[kept], 1.0 / np.sqrt(chances[kept])
        return np.ones(count)

    def _weighted(self, sample: np.ndarray, weights: np.ndarray) -> Any:
        """A function x -> (k(x, x) - k_S(x)' (K_SS + ridge W^-2)^-1 k_S(x)) / ridge: scores from a weighted sample."""
        chosen, x = self.grown, self.rows.take(sample)
        gram = weights[:, None] * chosen.values(x, x) * weights
        ridge = self.ridge or tail_ridge(eigvalsh(gram, check_finite=False).clip(0.0), self.rank)
        gram[np.diag_indices(len(gram))] += ridge
        factor = cholesky(gram, lower=True, check_finite=False)

        def scores(block: np.ndarray) -> np.ndarray:
            half = solve_triangular(factor, (chosen.values(block, x) * weights).T, lower=True, check_finite=False)
            return (chosen.diagonal(block) - np.einsum("ij,ij->j", half, half)).clip(0.0) / ridge

        return scores


def tail_ridge(values: np.ndarray, rank: int) -> float:
    """The sum of all but the ``rank`` largest eigenvalues, divided by ``rank``; at least so large that K + ridge I is
    regular.
    """
    tail = np.sort(values)[: max(0, len(values) - rank)].sum() / rank
    return float(max(tail, 1e-12 * values.sum(), np.finfo(float).tiny))


class KMeans(_Listed):
    """The centres of scikit-learn's k-means with n_max clusters (Zhang, Tsang, Kwok 2008): no rows of the data.

    Up to 64 MB of rows, Lloyd's algorithm is used on all rows; beyond, 128 mini-batches of 16,384 rows.  The centres
    are ordered: each next centre lowers the trace of the centres' residual most, weighted by the sizes of the clusters.
    Centres that are spanned by others are left out.  ``head(k)`` is a useful basis, but not the result for k clusters.
    k-means runs in one thread, so that the order of sums, and therefore the bits, are always the same.

    traced : int, optional
        Rows on which the trace is measured, and clusters are weighted.
    """

    method = "k-means"

    def _list(self) -> tuple[np.ndarray, np.ndarray]:
        rows, clusters, state = self.rows, min(self.n_max, len(self.rows)), self.seed % 2**32
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            if len(rows) * rows.dim <= LLOYD_NUMBERS:
                found = Lloyd(clusters, n_init=1, random_state=state).fit(rows.take(np.arange(len(rows))))
            else:
                generator = np.random.default_rng(self.seed)
                size = min(len(rows), max(BATCH_ROWS, 4 * clusters))
                found = MiniBatchKMeans(clusters, n_init=1, random_state=state, init_size=size, batch_size=size)
                for _ in range(BATCHES):
                    found.partial_fit(rows.take(np.sort(draw_without(generator, len(rows), size))))
            centres = np.asarray(found.cluster_centers_, np.float64)
            weights = np.bincount(found.predict(self.traced), minlength=clusters)
        order = self._arrange(centres, weights.astype(np.float64))
        return np.full(len(order), -1, np.int64), centres[order]

    def _arrange(self, centres: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Centres by weighted trace gain sum_j w_j R_rj^2 / R_rr, of the residual R of their Gram matrix.  O(n^3)."""
        residual = self.grown.values(centres, centres)
        residual /= residual.diagonal().max() or 1.0  # scaled, so that squares do not overflow
        chosen = best_columns(residual.copy(), residual, weights, self.epsilon)
        return np.array([r for r, *_ in chosen], np.int64)


def draw_without(generator: np.random.Generator, count: int, size: int) -> np.ndarray:
    """``size`` different numbers of range(count), drawn at random; O(size) if they are few."""
    return generator.choice(count, min(size, count), replace=False, shuffle=False)


COMPARED: dict[str, type[Selector]] = {"leverage": RidgeLeverage, "k-means": KMeans, "uniform": Uniform}
METHODS = (*select.METHODS, *COMPARED)


LITERAL: dict[str, type[Selector]] = {"efvs": LiteralEfvs, "fvs": LiteralFvs}


def _named(method: str, form: str) -> str | type[Selector]:
    return LITERAL[method] if form == "literal" else COMPARED.get(method, method)


def select_basis(x: Any, kernel: Any, n_max: int, method: str = "auto", form: str = "gain", **options: Any) -> Basis:
    """As the product's, with the methods of this file.  form: "literal", of efvs and fvs as printed."""
    return select.select_basis(x, kernel, n_max, _named(method, form), **options)


def make_selector(method: str, rows: Rows, kernel: Any, n_max: int, form: str = "gain", **options: Any) -> Selector:
    """As the product's, with the methods of this file."""
    return select.make_selector(_named(method, form), rows, kernel, n_max, **options)
