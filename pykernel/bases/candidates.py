"""Code that all selectors share: rows that may still be chosen, parts of the Gram matrix, ties, and stopping.

Symbols are as in ``pykernel.bases.basis``: l rows, the set S of the n chosen rows, the residual R, and the matrix C
(l, n) with the rows C_i = z_i', so that R = K - C C'.  To add row r, compute c = R_:r / sqrt(R_rr); then update
R <- R - c c' and its diagonal d, d_i <- d_i - c_i^2.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from pykernel.bases.basis import Basis, Growing, Stop, left_out, share
from pykernel.bases.gram import MercerKernel
from pykernel.rows import Rows, as_rows, each_row

TIE = 1e-9
"""Scores that differ from the largest score by less than this fraction are ties, and the first of the tied rows is
chosen.  Equal rows are therefore tied in spite of rounding errors, and two formulas for the same score choose the same
rows."""
MEMORY = 2**30
"""Default limit, in bytes, of the total size of a selector's largest arrays.  For "sgma", "skfa" and "exhaustive", the
default is four times as high."""
BLOCK = 2**20
"""Maximum number of kernel values that are computed at once; they take 8 MB."""


def first_of_largest(scores: np.ndarray) -> int:
    """Return the position of the first score that is the largest or tied with the largest.

    Scores are >= 0, or -inf for rows that are not candidates.
    """
    best = scores.max()
    return int(np.argmax(scores >= best - TIE * abs(best)))


def drawn(generator: np.random.Generator, rows: np.ndarray, size: int | None) -> np.ndarray:
    """Return ``size`` different rows in random order.  If ``size`` is None, or at least the number of rows, return all rows
    in the given order.
    """
    return rows if size is None or size >= len(rows) else generator.choice(rows, size, replace=False)


class Live:
    """The rows that may still be chosen (live rows).

    The other rows are dead.  Memory: O(dead rows) while few rows are dead, then l bytes.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.deaths = 0
        self._few: set[int] = set()  # dead rows, as long as there are few of them
        self._mask: np.ndarray | None = None  # True for dead rows

    def __len__(self) -> int:
        return self.count - self.deaths

    def kill(self, rows: np.ndarray) -> None:
        """Mark these rows as dead; some of them may be dead already."""
        if self._mask is None:
            self._few.update(rows.tolist())
            self.deaths = len(self._few)
            if self.deaths > 1024 + self.count // 64:
                self._mask = np.zeros(self.count, np.bool_)
                self._mask[np.fromiter(self._few, np.int64, self.deaths)] = True
                self._few = set()
        else:
            self.deaths += int(np.count_nonzero(~self._mask[np.unique(rows)]))
            self._mask[rows] = True

    def all(self) -> np.ndarray:
        """Return the live rows in ascending order.  O(l)."""
        if self._mask is not None:
            return np.flatnonzero(~self._mask)
        return np.delete(np.arange(self.count), np.fromiter(self._few, np.int64, self.deaths))

    def draw(
        self, generator: np.random.Generator, size: int | None, without: Collection[int] | np.ndarray = ()
    ) -> np.ndarray:
        """Return ``size`` different live rows in random order.  If ``size`` is None, or at least the number of live rows,
        return all live rows in ascending order.

        without: live rows that must not be returned.  O(size) time and memory, but O(l) if most rows are dead or requested.
        """
        excluded = set(without.tolist()) if isinstance(without, np.ndarray) else set(without)
        left = len(self) - len(excluded)
        if size is None or size >= left or 4 * (self.count - left + size) > 3 * self.count:
            rows = self.all()
            return drawn(generator, rows[~np.isin(rows, list(excluded))] if excluded else rows, size)
        # at least a quarter of all tries succeed, so a row takes at most four tries on average
        found: dict[int, None] = {}
        mask, few = self._mask, self._few
        while len(found) < size:
            for row in generator.integers(self.count, size=size - len(found)).tolist():
                if not ((row in few if mask is None else mask[row]) or row in excluded):
                    found[row] = None
        return np.fromiter(found, np.int64, size)


class Drawn:
    """Drawn rows: their positions, x (k, D), z (k, n), k_ii, R_ii and delta."""

    def __init__(self, rows: np.ndarray, x: np.ndarray, z: np.ndarray, diagonal: np.ndarray) -> None:
        # always use the same memory layout for z, because the layout decides the order in which numbers are summed
        self.rows, self.x, self.z, self.diagonal = rows, x, np.ascontiguousarray(z), diagonal
        self.left = left_out(diagonal, z)
        self.delta = share(self.left, diagonal)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.rows, self.x, self.z, self.diagonal

    def of(self, which: Any) -> Drawn:
        return Drawn(*(part[which] for part in self.parts))

    def first(self, size: int | None) -> Drawn:
        return self if size is None or size >= len(self) else self.of(slice(size))

    def joined(self, others: Drawn) -> Drawn:
        return Drawn(*(np.concatenate(both) for both in zip(self.parts, others.parts, strict=True)))


class Parts:
    """Parts of K.  Each part is computed when it is needed, or, if ``whole`` is true, read from K, which is computed once.

    The kernel values are counted in ``grown.evaluations``.
    """

    def __init__(self, rows: Rows, grown: Growing, whole: bool = False) -> None:
        self.rows, self.grown, self.whole = rows, grown, whole
        self._gram: np.ndarray | None = None

    @property
    def gram(self) -> np.ndarray:
        """The whole K, (l, l)."""
        if self._gram is None:
            x = self.rows.take(np.arange(len(self.rows)))
            size = max(1, BLOCK // len(x))
            self._gram = each_row(self.rows, size, lambda block: self.grown.kernel.gram(block, x), len(x))
            self.grown.evaluations += len(x) ** 2
        return self._gram

    def diagonal(self) -> np.ndarray:
        """Return K's diagonal, (l,).  Rows are not read if k(x, x) is 1 for every x."""
        if self.grown.kernel.unit:
            return np.ones(len(self.rows))
        return each_row(self.rows, max(1, BLOCK // self.rows.dim), self.grown.diagonal)

    def columns(self, a: np.ndarray) -> np.ndarray:
        """Return a copy of the columns K_:a as rows, (len(a), l), computed in blocks."""
        if self.whole:
            return self.gram[a]
        x, out = self.rows.take(a), np.empty((len(a), len(self.rows)))
        for start, block in self.rows.blocks(max(1, BLOCK // len(a))):
            out[:, start : start + len(block)] = self.grown.values(x, block)
        return out

    def times(self, v: np.ndarray) -> np.ndarray:
        """Return K v for v (l,) or (l, k).  O(l^2 k).

        If K is not kept, its l^2 kernel values are computed again, 8 MB at a time.
        """
        if self.whole:
            return self.gram @ v
        out = np.zeros(v.shape)
        side = math.isqrt(BLOCK)
        for start, left in self.rows.blocks(side):
            for other, right in self.rows.blocks(side):
                out[start : start + len(left)] += self.grown.values(left, right) @ v[other : other + len(right)]
        return out


class Selector:
    """A running selection, created by ``Method(rows, kernel, n_max, seed=, tau=, epsilon=, **options)``.

    The keyword parameters that a subclass adds are the method's options.  The same arguments and the same number of
    BLAS threads give the same basis, bit for bit.  Subclasses implement ``_add``, which chooses and appends one vector.

    error: the value that is compared with tau.
    """

    method = ""
    exact = True
    live: Live | None = None
    residual: Residual | None = None

    def __init__(
        self, rows: Any, kernel: MercerKernel, n_max: int, *, seed: int = 0, tau: float = 0.0, epsilon: float = 1e-10
    ) -> None:
        self.rows, self.kernel, self.n_max = as_rows(rows), kernel, n_max
        self.seed, self.tau, self.epsilon = seed, tau, epsilon
        self.capacity = min(n_max, len(self.rows))
        self.grown = Growing(kernel, self.rows.dim, self.capacity)
        self.generator = np.random.default_rng(seed)
        self.stopped: Stop | None = None
        self.parts = Parts(self.rows, self.grown)

    @property
    def n(self) -> int:
        """The number of vectors added so far."""
        return self.grown.n

    @property
    def error(self) -> float:
        return float(self.grown.trace[self.n])

    @property
    def evaluations(self) -> int:
        return self.grown.evaluations

    def step(self) -> bool:
        """Add a vector.  Returns False if no vector was added; ``stopped`` then gives the reason."""
        if self.stopped is None:
            if self.tau > 0 and self.error <= self.tau:
                self.stopped = "tau"
            elif self.n >= self.n_max:
                self.stopped = "n_max"
            elif self.n == len(self.rows):
                self.stopped = "exhausted"
            elif not self._add():
                self.stopped = "spanned"
        return self.stopped is None

    def basis(self) -> Basis:
        """Return the basis of the vectors added so far."""
        return self.grown.basis(self.method, self.stopped, self.exact)

    def _add(self) -> bool:
        """Choose and append a vector.  Returns False if all remaining rows are spanned."""
        raise NotImplementedError

    def _residual(self) -> Residual:
        return Residual(self.parts.diagonal(), self.capacity, self.epsilon)

    def _drawn(self, rows: np.ndarray) -> Drawn:
        """Return these rows with their features and residuals."""
        x = self.rows.take(rows)
        return Drawn(rows, x, self.grown.features(x), self.grown.diagonal(x))


class Residual:
    """C and d for all rows.  ``projected`` is C' (capacity, l), and ``left`` is d.

    Adding a vector takes O(l n) time.  Memory: 8 l (capacity + 4) bytes.
    """

    def __init__(self, diagonal: np.ndarray, capacity: int, epsilon: float) -> None:
        self.diagonal, self.epsilon = diagonal, epsilon
        self.total = float(diagonal.sum())
        self.weights = share(np.ones_like(diagonal), diagonal)
        self.left = diagonal.copy()
        self.projected = np.zeros((capacity, len(diagonal)))
        self.n = 0
        self.live = diagonal > 0

    @property
    def trace(self) -> float:
        """tr R / tr K."""
        return float(self.left.sum() / self.total) if self.total else 0.0

    @property
    def mean(self) -> float:
        """Mean of delta_i = R_ii / k_ii over all rows."""
        return float(self.left @ self.weights) / len(self.left)

    def candidates(self, without: np.ndarray | None = None) -> np.ndarray:
        """Return the rows that are neither chosen nor spanned nor in ``without``, in ascending order."""
        if without is None:
            return np.flatnonzero(self.live)
        live = self.live.copy()
        live[without] = False
        return np.flatnonzero(live)

    def part(self, values: np.ndarray, a: np.ndarray, b: np.ndarray | slice) -> np.ndarray:
        """Return R_ab, computed from values = K_ab."""
        c = self.projected[: self.n]
        product = c[:, a].T @ c[:, b]
        return np.subtract(values, product, out=product)

    def column(self, values: np.ndarray, r: int) -> np.ndarray:
        """Return R_:r, (l,), computed from values = K_:r."""
        c = self.projected[: self.n]
        return values - c[:, r] @ c

    def take_in(self, r: int, column: np.ndarray) -> tuple[np.ndarray, float]:
        """Add the chosen row r.  column: R_:r.  Returns the row's z (n,) and R_rr, for ``Growing.append``."""
        z, square = self.projected[: self.n, r].copy(), float(column[r])
        c = column / math.sqrt(square)
        self.projected[self.n] = c
        self.n += 1
        self.left = np.clip(self.left - c * c, 0.0, None)
        self.left[r] = 0.0  # set explicitly, because rounding may leave a remainder
        self.live &= self.left >= self.epsilon * self.diagonal
        self.live[r] = False  # even if epsilon is 0
        return z, square


def best_columns(
    between: np.ndarray, inner: np.ndarray, weights: np.ndarray, epsilon: float
) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
    """Yield the candidates U in greedy order: the next candidate is the one that most lowers the weighted trace of R on
    the points T.

    between: K_TU, (t, u).  inner: K_UU, (u, u).  weights: weights of the points, (t,).  Yields, for each candidate, its
    position r, R_rr, and the new columns of C for U and for T.  Ends when all candidates are spanned.  ``between`` and ``inner`` are
    overwritten with R_TU and R_UU.  O(u (t + u)) per candidate.
    """
    own = inner.diagonal().copy()
    alive = own > 0
    while True:
        squares = inner.diagonal().copy()
        alive &= squares >= epsilon * own
        if not alive.any():
            return
        gains = weights @ np.square(between)
        r = first_of_largest(np.divide(gains, squares, out=np.full(len(gains), -np.inf), where=alive))
        root = math.sqrt(squares[r])
        c_u, c_t = inner[:, r] / root, between[:, r] / root
        inner -= np.outer(c_u, c_u)
        between -= np.outer(c_t, c_u)
        alive[r] = False
        yield r, float(squares[r]), c_u, c_t
