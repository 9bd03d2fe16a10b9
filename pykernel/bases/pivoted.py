"""Select a basis by pivoted Cholesky: each pivot is the row with the largest R_rr, or a row drawn at random.

Randomly pivoted Cholesky was published by Chen, Epperly, Tropp and Webber (2025), and its block form by Epperly, Tropp and
Webber (2024).  There are l rows, D inputs and n vectors; the other symbols are as in ``pykernel.bases.basis``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pykernel.bases.arguments import checked_count
from pykernel.bases.basis import Basis, block_rows, project
from pykernel.bases.candidates import MEMORY, Selector
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.rows import Rows

MOST_PROPOSED = 2**16  # maximum number of rows proposed at once; more rows would take time and hardly ever be accepted


class _Sweep(Selector):
    """Base of the selectors that choose pivots in rounds.  After each round, a pass over all rows updates the diagonal of R.

    The Nystroem matrix is C C' with C (l, n).  If C takes at most ``memory`` bytes, it is kept, and each vector takes
    O(l (D + n)) time and l kernel values.  Otherwise each pass computes C again in blocks, and each round takes
    O(l n (D + n)) time and l n kernel values; memory is then O(l), plus a few blocks of 32 MB.
    """

    def __init__(self, rows: Rows, kernel: MercerKernel, n_max: int, *, memory: int = MEMORY, **common: Any) -> None:
        super().__init__(rows, kernel, n_max, **common)
        kept = 8 * len(rows) * self.capacity <= checked_count(memory, "memory, in bytes,", 0)
        self.columns = np.zeros((len(rows), self.capacity)) if kept else None
        self.shown = 0  # number of vectors that ``step`` has added; the last round may have chosen more vectors
        self.left = self.parts.diagonal()  # R_ii
        self.least = np.broadcast_to(self.epsilon, len(rows)) if kernel.unit else self.epsilon * self.left
        self.total = sum_of(self.left)

    @property
    def n(self) -> int:
        return self.shown

    def _add(self) -> bool:
        if self.shown == self.grown.n and not self._round():
            return False
        self.shown += 1
        return True

    def _round(self) -> bool:
        """Append at least one vector, unless all rows are spanned."""
        before = self.grown.n
        while self.grown.n == before:
            weights = np.where(self.left > self.least, self.left, 0.0)  # R_ii, or 0 for rows that are spanned
            if not weights.any():
                return False
            self._accept(*self._propose(weights))
        self._sweep(before)
        return True

    def _propose(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows, and a random number for each row.

        A row is accepted if its number is below (current R_ii) / (R_ii before the round).
        """
        raise NotImplementedError

    def _accept(self, drawn: np.ndarray, chance: np.ndarray) -> None:
        """Append the proposed rows that are accepted, in their order."""
        chosen, before = self.grown, self.grown.n
        x = self.rows.take(drawn)
        z = chosen.features(x) if self.columns is None else self.columns[drawn, :before]
        own = chosen.values(x, x) if len(x) > 1 else chosen.diagonal(x)[:, None]
        residual = own - z @ z.T
        fresh = np.zeros((len(drawn), len(drawn)))  # the drawn rows' coordinates for vectors accepted in this round
        for j, row in enumerate(drawn.tolist()):
            square, added = float(residual[j, j]), chosen.n - before
            if square <= self.least[row]:
                if not added:  # vectors of earlier rounds span the row, but rounding errors had hidden this
                    self.left[row] = 0.0
            elif chance[j] * self.left[row] < square:
                column = residual[:, j] / np.sqrt(square)
                chosen.append(x[j], row, np.concatenate([z[j], fresh[j, :added]]), square)
                fresh[:, added] = column
                residual -= np.outer(column, column)
                if chosen.n == self.capacity:
                    return

    def _sweep(self, before: int) -> None:
        """Update R's diagonal for all vectors after the first ``before``, and append the trace after each vector."""
        chosen, n = self.grown, self.grown.n
        traces = np.zeros(n - before)
        for start, fresh in self._fresh_columns(before, n):
            end = start + len(fresh)
            falling = self.left[start:end, None] - np.cumsum(fresh * fresh, axis=1)
            np.maximum(falling, 0.0, out=falling)
            traces += falling.sum(axis=0)
            self.left[start:end] = falling[:, -1]
        self.left[chosen.indices[before:n]] = 0.0
        chosen.trace[before + 1 : n + 1] = traces / self.total

    def _fresh_columns(self, before: int, n: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the columns of C from ``before`` to n, in blocks of rows, and write them to C if C is kept."""
        chosen = self.grown
        factor, vectors = chosen.factor[:n, :n], chosen.vectors[:n]
        for start, block in self.rows.blocks(block_rows(n, self.rows.dim)):
            if self.columns is None:
                yield start, project(factor, chosen.values(block, vectors))[:, before:]
                continue
            kept = self.columns[start : start + len(block)]
            values = chosen.values(block, vectors[before:])
            values -= kept[:, :before] @ factor[before:, :before].T
            kept[:, before:n] = project(factor[before:, before:], values)
            yield start, kept[:, before:n]

    def basis(self) -> Basis:
        whole = super().basis()
        if self.shown in (0, len(whole)):
            return whole
        return replace(whole.head(self.shown), stopped=whole.stopped)


class RandomlyPivotedCholesky(_Sweep):
    """Draw each pivot r with probability R_rr / tr R.

    If C is kept, the selection takes O(l n (D + n)) time and about l n kernel values.  The trace is exact.

    block : int
        Number of rows that are proposed at once.  Their probabilities are computed from R at the beginning of the round.  A row
        is accepted with probability (current R_rr) / (R_rr at the beginning), which gives the same distribution as
        single draws.  One pass over the rows is then enough for all accepted rows (Epperly, Tropp, Webber 2024,
        accelerated RPCholesky).  If ``block`` is 1, each vector takes one pass.  The maximum is 65,536.
    memory : int
        Maximum size of C in bytes.  If C is larger, it is computed again in each pass.
    """

    method = "rpcholesky"

    def __init__(
        self,
        rows: Rows,
        kernel: MercerKernel,
        n_max: int,
        *,
        block: int = 64,
        memory: int = MEMORY,
        **common: Any,
    ) -> None:
        self.block = checked_count(block, "block", 1, MOST_PROPOSED)
        super().__init__(rows, kernel, n_max, memory=memory, **common)

    def _propose(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        summed = np.cumsum(weights)
        position, chance = self.generator.random((2, self.block))
        drawn = np.searchsorted(summed, position * summed[-1], side="right")
        # the random number times the sum may round up to the whole sum; take the last row with a weight above 0 then
        return np.minimum(drawn, np.searchsorted(summed, summed[-1], side="left")), chance


class PivotedCholesky(_Sweep):
    """Choose the first row with the largest R_rr as the next pivot.

    If C is kept, the selection takes O(l n (D + n)) time and l n kernel values.  The trace is exact.  R_rr is a lower
    bound on the amount by which row r lowers tr R.  The method chooses outliers first.

    memory : int
        Maximum size of C in bytes.  If C is larger, it is computed again in each pass.
    """

    method = "pivoted-cholesky"

    def _propose(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([weights.argmax()]), np.zeros(1)


def sum_of(diagonal: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        total = float(diagonal.sum())
    if not math.isfinite(total):
        raise UserError("the sum of k(x, x) over the rows overflows; scale the inputs to smaller values")
    return total
