"""Sparse greedy approximation of a Gram matrix (SGMA, paper 002), and greedy selection that tries all rows.

There are three views of the problem, each with a different Gram matrix G.  In each view, the residual is the part of
the items that is left after a projection onto the chosen items.  Numbers such as 3.2 and 4.1 are sections of the paper;
the rules are named after sections.  Other symbols are as in ``pykernel.bases.candidates``.

| view | items | G | the decreasing quantity |
|---|---|---|---|
| function (3.2) | functions k(x_i, .) | K | tr(K - K~), K~ = K_:S K_SS^-1 K_S: |
| column (3.1) | columns of K | K^2 | the squared Frobenius norm of K - K~, K~ = Q Q'K, Q an orthonormal basis of K_:S |
| Kronecker (3.3) | unit vectors | I | the number of rows that are not chosen, so all candidates are tied |

``SgmaInPasses`` is for the case that C and the columns of all candidates do not fit into memory.  This method makes one
pass over the rows for each vector.  In every view, ``Basis.trace`` is the exact tr R / tr K of the function view, and
rows that the basis spans are not candidates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from pykernel.bases.arguments import need_choice, need_memory
from pykernel.bases.basis import block_rows, project
from pykernel.bases.candidates import (
    BLOCK,
    MEMORY,
    Drawn,
    Live,
    Parts,
    Residual,
    Selector,
    drawn,
    first_of_largest,
)
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.rows import Rows

COLUMNS = 4096
"""Maximum number of candidates of ``SgmaInPasses``."""
RULES = {"function": ("4.2", "4.3"), "column": ("4.1", "4.3"), "kronecker": ("4.2", "4.3")}
"""The selection rules of each view, the default first."""
DROP = 1e-8
"""When a row's f_i (see ``Exhaustive``) has fallen below this fraction of its last exact value, f_i has lost 8 digits,
and is computed again from the row's column.
"""
INFLATED = 1e-6
"""A row's score is rejected as a rounding error if it exceeds the score computed from the row's column by more than
this fraction.
"""


class Sgma(Selector):
    """Sparse greedy matrix approximation: each vector is the best of ``candidates`` rows (kappa), judged on all rows.

    rule 4.1: the largest decrease in the squared Frobenius norm, |K e_r|^2 / |e_r|^2 (eq. 27).  e_r is the residual of
    the column K_:r.
    rule 4.2: the largest decrease in the trace, |R_:r|^2 / R_rr (eq. 31).
    rule 4.3: the largest residual column, |R_:r|^2 in the function view, |e_r|^2 in the column view (eq. 32).
    In the Kronecker view, rule 4.2 chooses the first drawn row, because all gains are 1, and rule 4.3 chooses the row with the
    largest column of K.

    Choosing a vector takes kappa l kernel values and O(kappa l n) time.  The whole K is kept if this takes fewer
    kernel values and K fits into ``memory``.  Rule 4.1 needs all of K for each vector, O(kappa l^2).  The arrays other
    than K take 8 l (n + 2 kappa) bytes, or twice as many in the column view.

    pool: how many candidates, the best of those that were not chosen, remain candidates for the next vector.  Their
    columns are kept, so that only kappa - pool columns are computed for the next vector.
    tau: compared with tr R / tr K, which is exact.  With rule 4.1, ``frobenius`` is |K - K~|^2 / |K|^2 after 0, 1, ..., n vectors.

    Raises UserError for a rule that the view does not have, for a pool that is out of range or above 0 in another view
    than "function", or if the arrays other than K would take more than ``memory`` bytes.
    """

    method = "sgma"
    residual: Residual

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        candidates: int | None = 59,
        view: Literal["function", "column", "kronecker"] = "function",
        rule: Literal["4.1", "4.2", "4.3"] | None = None,
        pool: int = 0,
        memory: int = 4 * MEMORY,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        need_choice(view, "view", RULES)
        rule = rule or RULES[view][0]  # type: ignore[assignment]
        if rule not in RULES[view]:
            raise UserError(f"rule is {rule!r}; in the {view} view it must be one of {', '.join(RULES[view])}")
        l, n = len(self.rows), self.capacity
        kappa = min(l, candidates or l)
        if not 0 <= pool < kappa or (pool and view != "function"):
            raise UserError(
                f"pool is {pool}; it must be from 0 to {kappa - 1} (fewer than the candidates), and 0 if view is not function"
            )
        self.view, self.rule, self.candidates, self.pool = view, rule, candidates, pool
        size = 8 * l * (2 if view == "column" else 1) * (n + 2 * kappa)
        need_memory(
            size, memory, f"C of {l:,} rows and {kappa} candidates", "use the method efvs, which does not store C"
        )
        fewer = l * l <= n * (l if view == "kronecker" else (kappa - pool) * l) or rule == "4.1"
        self.parts.whole = fewer and 8 * l * l + size <= memory
        self.residual = self._residual()
        self.frobenius: list[float] = []
        self.energy = 0.0  # |K|^2
        self.orthonormal = np.zeros((n if view == "column" else 0, l))  # Q'
        self.kept = np.zeros(0, np.int64)
        self.kept_columns = np.zeros((0, l))

    def _add(self) -> bool:
        residual = self.residual
        alive = residual.candidates()
        if not len(alive):
            return False
        if self.view == "function":
            r, column = self._in_function_space(residual, alive)
        else:
            tried = drawn(self.generator, alive, self.candidates)
            if (self.view, self.rule) == ("kronecker", "4.2"):  # all gains are 1
                tried = tried[:1]
            j, column = self._among(residual, tried, self.parts.columns(tried))
            r = int(tried[j])
        column[r] = residual.left[r]
        n = residual.n
        z, square = residual.take_in(r, column)
        if self.kept.size:
            self.kept_columns -= np.outer(residual.projected[n, self.kept], residual.projected[n])
        self.grown.append(self.rows.take([r])[0], r, z, square, residual.trace)
        return True

    def _in_function_space(self, residual: Residual, alive: np.ndarray) -> tuple[int, np.ndarray]:
        old = residual.live[self.kept]
        columns, kept = self.kept_columns[old], self.kept[old]
        if kept.size:
            alive = residual.candidates(kept)
        fresh = drawn(self.generator, alive, None if self.candidates is None else self.candidates - len(kept))
        tried = np.concatenate([kept, fresh])
        if len(fresh):
            new = residual.part(self.parts.columns(fresh), fresh, slice(None))
            columns = np.concatenate([columns, new]) if kept.size else new
        scores = self._scores(columns, tried)
        j = first_of_largest(scores)
        if self.pool:
            others = np.argsort(-scores, kind="stable")
            others = others[others != j][: self.pool]
            self.kept, self.kept_columns = tried[others], columns[others]
        return int(tried[j]), columns[j].copy()

    def _scores(self, columns: np.ndarray, tried: np.ndarray) -> np.ndarray:
        """Return the score of each candidate, from its residual column."""
        scores = np.einsum("ij,ij->i", columns, columns)
        return scores / self.residual.left[tried] if self.rule == "4.2" else scores

    def _among(self, residual: Residual, tried: np.ndarray, values: np.ndarray) -> tuple[int, np.ndarray]:
        """Judge the tried rows from ``values``, their columns of K.  Return the position of the best row r, and R_:r."""
        columns = _orthogonal(values, self.orthonormal[: residual.n]) if self.view == "column" else values
        scores = squares = np.einsum("ij,ij->i", columns, columns)
        if self.rule == "4.1":
            if not residual.n:
                self.energy = float(_row_squares(self.parts).sum())
                self.frobenius = [1.0]
            shadows = self.parts.times(columns.T)
            scores = np.einsum("ji,ji->i", shadows, shadows) / squares
        j = first_of_largest(scores)
        if self.rule == "4.1":
            self.frobenius.append(max(0.0, self.frobenius[-1] - float(scores[j]) / self.energy))
        if self.view == "column":
            self.orthonormal[residual.n] = _normalised(columns[j], self.orthonormal[: residual.n])
        return j, residual.column(values[j], int(tried[j]))


class SgmaInPasses(Selector):
    """SGMA, rule 4.2, with one pass over the rows for each vector.  No float64 array grows with the number of rows.

    For each block of rows, the residual columns of all kappa candidates are computed, R_bc = K_bc - z_b z_c', and their
    squares are summed.  Each vector takes l (n + kappa) kernel values and O(l (n^2 + n kappa)) time.  Each vector
    lowers the trace by its score, so the trace is exact without another pass.  Spanned candidates are replaced by other
    rows.  ``Sgma`` keeps C and the columns of all candidates, and is faster if these fit into memory.

    Raises UserError if there are more than COLUMNS candidates.
    """

    method = "sgma"
    live: Live

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        candidates: int | None = 59,
        memory: int | None = None,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        self.candidates = min(candidates or len(self.rows), len(self.rows))
        if self.candidates > COLUMNS:
            raise UserError(
                f"candidates is {self.candidates:,}; it must be at most {COLUMNS:,}, because the columns of all candidates "
                "must fit in memory"
            )
        self.live = Live(len(self.rows))
        self.total = -1.0

    def _add(self) -> bool:
        if self.total < 0:
            blocks = self.rows.blocks(block_rows(0, self.rows.dim))
            self.total = sum(float(self.grown.diagonal(block).sum()) for _, block in blocks)
        tried = self._fresh()
        if not len(tried):
            return False
        n, scores = self.n, np.zeros(len(tried))
        wanted = np.concatenate([self.grown.vectors[:n], tried.x])
        for _, block in self.rows.blocks(max(1, BLOCK // (n + len(tried) + self.rows.dim))):
            values = self.grown.values(block, wanted)
            columns = values[:, n:] - project(self.grown.factor[:n, :n], values[:, :n]) @ tried.z.T
            scores += np.einsum("ij,ij->j", columns, columns)
        scores /= tried.left
        j = first_of_largest(scores)
        trace = float(self.grown.trace[n]) - float(scores[j]) / self.total
        self.grown.append(tried.x[j], int(tried.rows[j]), tried.z[j], float(tried.left[j]), max(trace, 0.0))
        self.live.kill(tried.rows[j : j + 1])
        return True

    def _fresh(self) -> Drawn:
        """Return ``self.candidates`` new candidates that are not spanned, or fewer if there are no more rows."""
        found = self._drawn(np.zeros(0, np.int64))
        while missing := self.candidates - len(found):
            rows = self.live.draw(self.generator, missing, found.rows)
            if not len(rows):
                break
            some = self._drawn(rows)
            new = (some.delta >= self.epsilon) & (some.diagonal > 0)
            self.live.kill(rows[~new])
            found = found.joined(some.of(new))
        return found


def beyond_memory(rows: Rows, n_max: int, arguments: Mapping[str, Any]) -> bool:
    """Return True if ``Sgma`` needs more memory than allowed, and ``SgmaInPasses`` supports the arguments."""
    l, memory = len(rows), arguments.get("memory", 4 * MEMORY)
    kappa = min(l, arguments.get("candidates") or l)
    other = {"view", "rule", "pool"} & set(arguments)
    return not other and kappa <= COLUMNS and 8 * l * (min(n_max, l) + 2 * kappa) > memory


MOST_ROWS = 100_000
"""Maximum number of rows.  More rows would take over 1e10 kernel values for each vector, which is probably a mistake."""


class Exhaustive(Selector):
    """Choose the best of all rows for each vector.  The scores of all rows together take O(l^2 + l n) per vector.

    The score of row i is f_i / g_i, with f_i = |(R_G)_:i|^2 and g_i = (R_G)_ii, where R_G is the residual of G.  Each
    vector changes R_G to R_G - c c' with a new column c.  Then f and g are updated for all rows: from the old R_G,
    f <- f - 2 c o (R_G c) + |c|^2 c o c and g <- g - c o c, where o is the elementwise product.

    view: "function" is rule 4.2 of paper 002, with G = K, and chooses the same rows as FVS if the diagonal is 1.
    "column" is rule 4.1, with G = K^2.

    If C and the l^2 values of K (8 l^2 bytes) fit into ``memory``, K is kept.  Otherwise l^2 kernel values
    are computed for each vector (3 l^2 in the column view), 8 MB at a time.  The column view needs O(l^3) once.

    As f falls, its rounding errors become relatively larger.  If f_i has dropped by a factor of 1e8, f_i is computed
    again from the column of row i, O(l n) (column view: O(l^2)).  The score of the best row is computed again from the
    row's column.  If the first score was too large, it is corrected, and the best row is determined again.  tau is
    compared with tr R / tr K, which is exact.  In the column view, ``frobenius`` is |K - K~|^2 / |K|^2 after
    0, 1, ..., n vectors.

    Raises UserError for other views, more than 100,000 rows, or if the arrays other than K take more than ``memory``
    bytes.
    """

    method = "exhaustive"
    residual: Residual

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        view: Literal["function", "column"] = "function",
        memory: int = 4 * MEMORY,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        need_choice(view, "view", ("function", "column"))
        l, n = len(self.rows), self.capacity
        if l > MOST_ROWS:
            raise UserError(
                f"exhaustive compares all {l:,} rows with each other for each vector; the maximum is {MOST_ROWS:,} rows: "
                "use the method efvs, whose cost does not grow with the number of rows"
            )
        self.view = view
        size = 8 * l * n * (2 if view == "column" else 1)
        need_memory(size, memory, f"C of {l:,} rows", "use the method efvs, which does not store C")
        self.parts.whole = 8 * l * l + size <= memory
        self.residual = self._residual()
        self.orthonormal = np.zeros((n if view == "column" else 0, l))  # Q'
        self.f = self.g = self.reference = self.energies = np.zeros(0)
        self.frobenius: list[float] = []
        self.refreshed = 0
        """Number of f_i that were computed again from their columns."""

    def _begin(self) -> None:
        self.energies = _row_squares(self.parts)
        self.f, self.g = self.energies.copy(), self.residual.left
        if self.view == "column":
            self.g = self.energies.copy()
            self.f = self._exact(np.arange(len(self.rows)))
            self.frobenius = [1.0]
        self.reference = self.f.copy()

    def _exact(self, rows: np.ndarray) -> np.ndarray:
        """Return f for these rows, computed from their columns in blocks."""
        n, found = self.residual.n, np.empty(len(rows))
        size = max(1, 2**22 // len(self.rows))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            values = self.parts.columns(some)
            if self.view == "function":
                columns = self.residual.part(values, some, slice(None))
            else:
                columns = self.parts.times(_orthogonal(values, self.orthonormal[:n]).T).T
            found[start : start + size] = np.einsum("ij,ij->i", columns, columns)
        return found

    def _add(self) -> bool:
        residual = self.residual
        if not len(self.energies):
            self._begin()
        alive = residual.live & (self.g > 0)
        if not alive.any():
            return False
        low = np.flatnonzero(alive & (self.f < DROP * self.reference))
        if low.size:
            self.f[low] = self._exact(low)
            self.reference[low] = self.f[low]
            self.refreshed += low.size
        r, values, shadow = self._winner(residual, alive)
        column = residual.column(values, r)
        column[r] = residual.left[r]
        if self.view == "function":
            c, n = column / math.sqrt(column[r]), residual.n
            basis = residual.projected[:n]
            image = self.parts.times(c) - (basis @ c) @ basis
        else:
            q = _normalised(
                _orthogonal(values[None], self.orthonormal[: residual.n])[0], self.orthonormal[: residual.n]
            )
            c = shadow if shadow is not None else self.parts.times(q)
            # R_G = K (I - QQ') K
            inside = self.parts.times(c)
            image = self.parts.times(_orthogonal(inside[None], self.orthonormal[: residual.n])[0])
            self.orthonormal[residual.n] = q
        self.f = np.maximum(self.f - 2 * c * image + (c @ c) * c * c, 0)
        z, square = residual.take_in(r, column)
        self.grown.append(self.rows.take([r])[0], r, z, square, residual.trace)
        if self.view == "function":
            self.g = residual.left
        else:
            # with K^2, rounding errors cost twice as many digits as with K: without the next lines, a row whose column
            # the basis spans might become a candidate
            squares = self.g - c * c
            self.g = np.where(squares > 1e-14 * self.energies, squares, 0.0)
            self.frobenius.append(float(squares.clip(0).sum() / self.energies.sum()))
        return True

    def _winner(self, residual: Residual, alive: np.ndarray) -> tuple[int, np.ndarray, np.ndarray | None]:
        """Return the best row, its column of K, and K q with the row's unit residual column q (None in the function view)."""
        scores = np.divide(self.f, self.g, out=np.full(len(self.f), -np.inf), where=alive)
        while True:
            r = first_of_largest(scores)
            values = self.parts.columns(np.array([r]))[0]
            if self.view == "function":
                column, shadow = residual.column(values, r), None
                f, g = float(column @ column), float(residual.left[r])
            else:
                left = _orthogonal(values[None], self.orthonormal[: residual.n])[0]
                g = float(left @ left)
                image = self.parts.times(left)
                f, shadow = float(image @ image), image / math.sqrt(g)
            if scores[r] <= f / g * (1 + INFLATED):
                return r, values, shadow
            self.f[r], self.g[r], scores[r] = f, g, f / g


def _orthogonal(columns: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the rows of ``columns`` (k, l), orthogonalised against the orthonormal rows of ``basis`` (n, l).

    The projections are subtracted in two passes, because one pass leaves rounding errors.  O(k l n).
    """
    for _ in range(2 if len(basis) else 0):
        columns = columns - (columns @ basis.T) @ basis
    return columns


def _normalised(column: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the column's residual against the basis, scaled to a unit vector."""
    column = _orthogonal((column / np.linalg.norm(column))[None], basis)[0]
    return column / np.linalg.norm(column)


def _row_squares(parts: Parts) -> np.ndarray:
    """Return |K_i|^2 for all rows.  O(l^2)."""
    l = len(parts.rows)
    size = max(1, 2**22 // l)
    blocks = (parts.columns(np.arange(start, min(l, start + size))) for start in range(0, l, size))
    return np.concatenate([np.einsum("ij,ij->i", block, block) for block in blocks])
