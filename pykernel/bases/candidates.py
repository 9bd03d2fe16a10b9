"""Parts that all greedy selectors share: rows that may still be chosen, parts of the Gram matrix, ties, stopping.

Symbols as in ``pykernel.bases.basis``: l rows, S the n chosen ones, R the residual, C with C_i = z_i' (l, n), so that
R = K - C C'.  Adding row r: c = R_:r / sqrt(R_rr), R <- R - c c', d_i = R_ii <- d_i - c_i^2.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from pykernel.bases.basis import Basis, Growing, Stop, pack_generator, unpack_generator
from pykernel.errors import UserError
from pykernel.rows import Rows, as_rows

TIE = 1e-9
"""Scores that differ from the largest score by less than this fraction are ties; the first row of them is chosen.  So
equal rows are ties in spite of rounding, and two formulas for the same score choose the same rows."""
MEMORY = 2**30
"""Bytes that a selector's largest arrays may take together, unless told otherwise."""
BLOCK = 2**20
"""Kernel values computed at once where there are many: 8 MB."""


def first_of_largest(scores: np.ndarray) -> int:
    """Position of the first score that is the largest, or a tie with it; scores >= 0, -inf where there is none."""
    best = scores.max()
    return int(np.argmax(scores >= best - TIE * abs(best)))


def drawn(generator: np.random.Generator, rows: np.ndarray, size: int | None) -> np.ndarray:
    """``size`` different ones of these rows in random order; all, as they are, if there are no more or size is None."""
    return rows if size is None or size >= len(rows) else generator.choice(rows, size, replace=False)


class Live:
    """The rows that may still be chosen (live rows).

    The other rows are dead.  Memory: O(dead rows), at most l bytes.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.deaths = 0
        self._few: set[int] = set()  # the dead, while they are few
        self._mask: np.ndarray | None = None  # True: dead

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
        """The live ones, ascending.  O(l)."""
        if self._mask is not None:
            return np.flatnonzero(~self._mask)
        return np.delete(np.arange(self.count), np.fromiter(self._few, np.int64, self.deaths))

    def dead(self) -> np.ndarray:
        """Ascending."""
        return np.array(sorted(self._few), np.int64) if self._mask is None else np.flatnonzero(self._mask)

    def draw(
        self, generator: np.random.Generator, size: int | None, without: Collection[int] | np.ndarray = ()
    ) -> np.ndarray:
        """Different live rows in random order, ``size`` of them; all, ascending, where there are no more or size is None.

        without: live rows that must not be drawn.  O(size) time and memory, but O(l) where most rows are dead or wanted.
        """
        excluded = set(without.tolist()) if isinstance(without, np.ndarray) else set(without)
        left = len(self) - len(excluded)
        if size is None or size >= left:
            rows = self.all()
            return rows[~np.isin(rows, list(excluded))] if excluded else rows
        if 4 * (self.count - left + size) > 3 * self.count:
            rows = self.all()
            if excluded:
                rows = rows[~np.isin(rows, list(excluded))]
            return generator.choice(rows, size, replace=False)
        # at least a quarter of all tries hit: four for each at most, on average
        found: dict[int, None] = {}
        mask, few = self._mask, self._few
        while len(found) < size:
            tries = generator.integers(self.count, size=size - len(found)).tolist()
            for row in tries:
                if (row in few if mask is None else mask[row]) or row in excluded:
                    continue
                found[row] = None
        return np.fromiter(found, np.int64, size)


class Parts:
    """Parts of K.  A part is computed when it is needed, or read from the whole K, which is computed once.

    The kernel values are counted in ``grown.evaluations``.
    """

    def __init__(self, rows: Rows, grown: Growing, whole: bool = False) -> None:
        self.rows, self.grown, self.whole = rows, grown, whole
        self.counted = False  # the whole K is counted once, even if a restored selector computes it again
        self._gram: np.ndarray | None = None

    @property
    def gram(self) -> np.ndarray:
        """All of K, (l, l)."""
        if self._gram is None:
            x = self.rows.take(np.arange(len(self.rows)))
            self._gram = np.empty((len(x), len(x)))
            for start, block in self.rows.blocks(max(1, BLOCK // len(x))):
                self._gram[start : start + len(block)] = self.grown.kernel.gram(block, x)
            self.grown.evaluations += 0 if self.counted else len(x) ** 2
            self.counted = True
        return self._gram

    def diagonal(self) -> np.ndarray:
        """(l,)."""
        size = max(1, BLOCK // self.rows.dim)
        return np.concatenate([self.grown.diagonal(block) for _, block in self.rows.blocks(size)])

    def part(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """K_ab, (len(a), len(b)); not to be written to."""
        if self.whole:
            return self.gram[np.ix_(a, b)]
        return self.grown.values(self.rows.take(a), self.rows.take(b))

    def columns(self, a: np.ndarray) -> np.ndarray:
        """K_:a by rows, (len(a), l), in blocks; a copy."""
        if self.whole:
            return self.gram[a]
        x, out = self.rows.take(a), np.empty((len(a), len(self.rows)))
        for start, block in self.rows.blocks(max(1, BLOCK // len(a))):
            out[:, start : start + len(block)] = self.grown.values(x, block)
        return out

    def times(self, v: np.ndarray) -> np.ndarray:
        """K v, v (l,) or (l, k): O(l^2 k), and l^2 kernel values where K is not kept, 8 MB of them at once."""
        if self.whole:
            return self.gram @ v
        out = np.zeros(v.shape)
        side = math.isqrt(BLOCK)
        for start, left in self.rows.blocks(side):
            for other, right in self.rows.blocks(side):
                out[start : start + len(left)] += self.grown.values(left, right) @ v[other : other + len(right)]
        return out


class Greedy:
    """Base class of greedy selectors (``pykernel.bases.basis.Selector``).  Subclasses implement ``_add``, which chooses
    and appends one vector.

    error: the value that is compared with tau.
    """

    method = ""
    exact = True

    def __init__(
        self, rows: Any, kernel: Any, n_max: int, *, seed: int = 0, tau: float = 0.0, epsilon: float = 1e-10
    ) -> None:
        self.rows, self.kernel, self.n_max = as_rows(rows), kernel, n_max
        self.tau, self.epsilon = tau, epsilon
        self.grown = Growing(kernel, self.rows.dim, min(n_max, len(self.rows)))
        self.generator = np.random.default_rng(seed)
        self.stopped: Stop | None = None
        self.parts = Parts(self.rows, self.grown)

    @property
    def error(self) -> float:
        return float(self.grown.trace[self.grown.n])

    @property
    def evaluations(self) -> int:
        return self.grown.evaluations

    def step(self) -> bool:
        """Add a vector; False: none was added, and ``stopped`` says why."""
        n = self.grown.n
        if self.stopped is None:
            if n >= self.n_max:
                self.stopped = "n_max"
            elif n and self.tau > 0 and self.error <= self.tau:
                self.stopped = "tau"
            elif n == len(self.rows):
                self.stopped = "exhausted"
            elif not self._add():
                self.stopped = "spanned"
        return self.stopped is None

    def state(self) -> dict[str, np.ndarray]:
        """All that step changes, as arrays."""
        kept = {**self.grown.state(), "generator": pack_generator(self.generator)}
        kept |= {"stopped": np.array(self.stopped or ""), "counted": np.array(self.parts.counted)}
        return kept | self._state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from what ``state`` returned, of a selector that was made with the same arguments."""
        self.parts.counted = bool(state["counted"])
        self._restore(state)
        self.grown.restore(state)
        unpack_generator(self.generator, state["generator"])
        self.stopped = str(state["stopped"]) or None  # type: ignore[assignment]

    def basis(self) -> Basis:
        """The basis of the vectors so far."""
        return self.grown.basis(self.method, self.stopped, self.exact)

    def _add(self) -> bool:
        """Choose and append a vector.  False: every row that is left is spanned."""
        raise NotImplementedError

    def _state(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        raise NotImplementedError


class Residual:
    """C and d of all rows: ``projected`` is C' (capacity, l), ``left`` d.  O(l n) a vector; 8 l (capacity + 4) bytes."""

    def __init__(self, diagonal: np.ndarray, capacity: int, epsilon: float) -> None:
        self.diagonal, self.epsilon = diagonal, epsilon
        self.total = float(diagonal.sum())
        self.weights = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
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
        """Rows that are neither chosen nor spanned, ascending; but for these."""
        if without is None:
            return np.flatnonzero(self.live)
        live = self.live.copy()
        live[without] = False
        return np.flatnonzero(live)

    def part(self, values: np.ndarray, a: np.ndarray, b: np.ndarray | slice) -> np.ndarray:
        """R_ab of K_ab."""
        c = self.projected[: self.n]
        product = c[:, a].T @ c[:, b]
        return np.subtract(values, product, out=product)

    def column(self, values: np.ndarray, r: int) -> np.ndarray:
        """R_:r of K_:r, (l,)."""
        c = self.projected[: self.n]
        return values - c[:, r] @ c

    def take_in(self, r: int, column: np.ndarray) -> tuple[np.ndarray, float]:
        """Row r is chosen; column: R_:r.  Returns its z (n,) and R_rr, for ``Growing.append``."""
        z, square = self.projected[: self.n, r].copy(), float(column[r])
        c = column / math.sqrt(square)
        self.projected[self.n] = c
        self.n += 1
        self.left = np.clip(self.left - c * c, 0.0, None)
        self.left[r] = 0.0
        self.live &= self.left >= self.epsilon * self.diagonal
        self.live[r] = False  # not by delta < epsilon: rounding may leave more than epsilon
        return z, square

    def state(self) -> dict[str, np.ndarray]:
        return {"projected": self.projected[: self.n].copy(), "left": self.left.copy(), "live": self.live.copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.n = len(state["projected"])
        self.projected[: self.n] = state["projected"]
        self.left[:], self.live[:] = state["left"], state["live"]


def need_memory(size: int, memory: int, what: str, instead: str) -> None:
    """Raises UserError if ``what`` takes more bytes than it may."""
    if size > memory:
        raise UserError(f"{what} takes {size / 2**20:,.0f} MB, and memory is {memory / 2**20:,.0f} MB; {instead}")


def need_choice(value: Any, name: str, choices: Collection[Any]) -> None:
    if value not in choices:
        told = ", ".join(str(choice) for choice in choices)
        raise UserError(f"{name} is {value!r}; it must be one of {told}")
