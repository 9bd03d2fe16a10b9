"""SGMA for data whose kernel matrix and columns do not fit into memory: one pass over the rows for each vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pykernel.bases.basis import block_rows, project
from pykernel.bases.candidates import MEMORY, Greedy, Live, first_of_largest
from pykernel.errors import UserError
from pykernel.rows import Rows

COLUMNS = 4096
"""Columns of a block of rows, at most."""
BLOCK = 2**20
"""Kernel values of a block of rows: 8 MB."""


class SgmaInPasses(Greedy):
    """SGMA, rule 4.2, with one pass over the rows for each vector.  Its memory does not depend on the number of rows.

    For each block of rows, the residual columns of all kappa candidates are computed, R_bc = K_bc - z_b z_c', and their
    squares are summed: l (n + kappa) kernel values and O(l (n^2 + n kappa)) for each vector.  The trace falls by the
    score of the chosen candidate; so it is exact without another pass.  Spanned candidates are replaced by other rows.
    ``Sgma`` keeps C and all columns; it is faster if they fit.

    Raises UserError if all rows are to be candidates and there are more than COLUMNS rows.
    """

    method = "sgma"

    def __init__(
        self,
        rows: Any,
        kernel: Any,
        n_max: int,
        *,
        seed: int = 0,
        candidates: int | None = 59,
        points: int | None = None,
        tau: float = 0.0,
        epsilon: float = 1e-10,
        memory: int | None = None,
    ) -> None:
        super().__init__(rows, kernel, n_max, seed=seed, tau=tau, epsilon=epsilon)
        self.candidates = min(candidates or len(self.rows), len(self.rows))
        if self.candidates > COLUMNS:
            raise UserError(
                f"candidates is {self.candidates:,}; their columns do not fit in memory: at most {COLUMNS:,} do"
            )
        self.live = Live(len(self.rows))
        self.total = -1.0

    def _add(self) -> bool:
        if self.total < 0:
            self.total = 0.0
            for _, block in self.rows.blocks(block_rows(0, self.rows.dim)):
                self.total += float(self.grown.diagonal(block).sum())
        rows, x, z, left = self._fresh()
        if not len(rows):
            return False
        n, scores = self.grown.n, np.zeros(len(rows))
        wanted = np.concatenate([self.grown.vectors[:n], x])
        for _, block in self.rows.blocks(max(1, BLOCK // (n + len(rows) + self.rows.dim))):
            values = self.grown.values(block, wanted)
            columns = values[:, n:]
            if n:
                columns = columns - project(self.grown.factor[:n, :n], values[:, :n]) @ z.T
            scores += np.einsum("ij,ij->j", columns, columns)
        scores /= left
        j = first_of_largest(scores)
        trace = float(self.grown.trace[n]) - float(scores[j]) / self.total
        self.grown.append(x[j], int(rows[j]), z[j], float(left[j]), max(trace, 0.0))
        self.live.kill(rows[j : j + 1])
        return True

    def _fresh(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """New candidates that are not spanned: their rows, x, z and R_rr.

        Fewer than wanted if there are no more rows.
        """
        parts: list[tuple[np.ndarray, ...]] = []
        found: set[int] = set()
        while len(found) < self.candidates:
            drawn = self.live.draw(self.generator, self.candidates - len(found), found)
            if not len(drawn):
                break
            x = self.rows.take(drawn)
            z, diagonal = self.grown.features(x), self.grown.diagonal(x)
            left = diagonal - np.einsum("ij,ij->i", z, z)
            new = (left >= self.epsilon * diagonal) & (diagonal > 0)
            self.live.kill(drawn[~new])
            found.update(drawn[new].tolist())
            parts.append((drawn[new], x[new], z[new], left[new]))
        if not parts:
            empty = np.zeros(0, np.int64), self.rows.take([]), np.zeros((0, self.grown.n)), np.zeros(0)
            return empty
        rows, x, z, left = (np.concatenate(each) for each in zip(*parts, strict=True))
        return rows, x, z, left

    def _state(self) -> dict[str, np.ndarray]:
        return {"dead": self.live.dead(), "total": np.array(self.total)}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        self.live = Live(len(self.rows))
        self.live.kill(state["dead"])
        self.total = float(state["total"])


def beyond_memory(rows: Rows, n_max: int, arguments: Mapping[str, Any]) -> bool:
    """Whether ``Sgma`` needs more memory than allowed, and ``SgmaInPasses`` supports the arguments."""
    l, memory = len(rows), arguments.get("memory", 4 * MEMORY)
    kappa = min(l, arguments.get("candidates") or l)
    other = {"view", "rule", "pool", "form"} & set(arguments)
    return not other and kappa <= COLUMNS and 8 * l * (min(n_max, l) + 2 * kappa) > memory
