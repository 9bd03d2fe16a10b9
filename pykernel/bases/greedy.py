"""Greedy selection of a basis by the mean reconstruction error: FVS and EFVS (paper 000).

delta_i(S) = R_ii / k_ii is the relative squared error of projecting phi(x_i) onto the span of the basis; the fitness is
J(S) = 1 - mean_i delta_i (eq. 1).  Adding row r raises J by mean_i(R_ir^2 / k_ii) / R_rr.  If k(x, x) is 1, this
criterion is rule 4.2 of paper 002; otherwise it is rule 4.2 for the kernel k(a, b) / sqrt(k(a, a) k(b, b)).

``Sgma`` and ``Exhaustive`` are in ``pykernel.bases.sgma``.  The papers are named in docs/paper-000.md and
docs/paper-002.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.bases.arguments import need_choice, need_memory
from pykernel.bases.basis import share
from pykernel.bases.candidates import (
    BLOCK,
    MEMORY,
    Drawn,
    Live,
    Residual,
    Selector,
    drawn,
    first_of_largest,
)
from pykernel.bases.gram import MercerKernel
from pykernel.rows import as_rows

_MOST = 8192  # maximum number of rows that are drawn at once if most rows are spanned


# ----------------------------------------------------------------------------------------------------------- EFVS


class Efvs(Selector):
    """Efficient feature vector selection: paper 000, Algorithm 1.

    For each vector, ``candidates`` rows (rho) and ``points`` rows (v) are drawn from the live rows, and the candidate with the
    largest J, measured on the points, is chosen.  Chosen rows and rows with delta < epsilon are no longer live.

    lazy: whether only kernel values of drawn rows are computed.  If true, a vector takes n (rho + v) + rho v kernel values and
    O(n^2 (rho + v) + n rho v) time, and memory does not grow with l.  If false, C and delta of all rows are kept in 8 l n bytes,
    a vector takes l + rho v kernel values and O(n (l + rho v)) time, and the error is exact.  If None, the lazy form is
    used if it needs fewer kernel values, or if the arrays of the other form do not fit into ``memory``.
    disjoint: whether the points are drawn first and no point becomes a candidate (unless too few rows are live).  If
    true, a candidate's own error is added once to the estimate for all other rows.  If the candidate were also a point,
    its error would be counted too often.

    In the lazy form, the error 1 - J is estimated as (live rows / l) times the mean delta of new points, which are
    drawn between the choice of one vector and the next.  The estimate is unbiased, except for the errors of dead rows,
    which are below epsilon.  In this form, ``Basis.trace`` is an estimate, too.  The selection stops at the first
    estimate that is at most tau.  A small sample of points may contain no badly represented row, so for a small tau use
    more points, or ``select_basis(..., confidence=)``.  The paper's estimate (the
    best candidate's score, averaged over the points) has two errors: it is too low because the candidate was chosen on
    the same points, and too high because it leaves out the dead rows.

    Raises UserError if ``lazy`` is False and C of all rows takes more than ``memory`` bytes.
    """

    method = "efvs"
    live: Live

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        candidates: int | None = 59,
        points: int | None = 59,
        lazy: bool | None = None,
        disjoint: bool = True,
        memory: int = MEMORY,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        need_choice(lazy, "lazy", (True, False, None))
        self.candidates, self.points, self.disjoint = candidates, points, disjoint
        l, n = len(self.rows), self.capacity
        rho, v = min(l, candidates or l), min(l, points or l)
        size = 8 * l * (n + 4)
        if lazy is None:
            lazy = size > memory or 2 * l > (rho + v) * n
        elif not lazy:
            need_memory(size, memory, f"C of {l:,} rows", "leave lazy=False out")
        self.exact = not lazy
        self.errors = [1.0]
        """1 - J after 0, 1, ..., n vectors, exact or estimated."""
        self.seen = np.zeros(3)  # sum of k(x, x) over all points, number of points, sum of k(x, x) over dead rows
        self.drawn: Drawn | None = None
        if lazy:
            self.live = Live(l)
        else:
            self.parts.whole = 8 * l * l + size <= memory and l * l <= n * (l + rho * v)
            self.residual = self._residual()

    @property
    def error(self) -> float:
        return self.errors[-1]

    def _add(self) -> bool:
        return self._add_lazily() if self.residual is None else self._add_of_all(self.residual)

    # ----------------------------------------------------------------------------- the form that keeps all rows

    def _add_of_all(self, residual: Residual) -> bool:
        alive = residual.candidates()
        if not len(alive):
            return False
        count, points = len(alive), drawn(self.generator, self._judges(alive), self.points)
        apart = self.disjoint and count - len(points) >= (self.candidates or count)
        if apart:
            alive = residual.candidates(points)
        tried = drawn(self.generator, alive, self.candidates)
        r = tried[self._choose(self._known(residual, tried), self._known(residual, points), count if apart else None)]
        column = residual.column(self.parts.columns(np.array([r]))[0], r)
        column[r] = residual.left[r]
        residual.take_in(r, column)
        self.errors.append(residual.mean)
        self.grown.trace[self.n] = residual.trace
        return True

    def _judges(self, alive: np.ndarray) -> np.ndarray:
        """Return the rows from which points are drawn: the rows that are not spanned.  Paper 000, section 1.3."""
        return alive

    def _known(self, residual: Residual, rows: np.ndarray) -> Drawn:
        return Drawn(rows, self.rows.take(rows), residual.projected[: self.n, rows].T, residual.diagonal[rows])

    # ------------------------------------------------------------------ the lazy form, which reads only drawn rows

    def _add_lazily(self) -> bool:
        if self.drawn is None:
            self._estimate()
        times = 1
        while len(self.live):
            assert self.drawn is not None
            if not len(self.drawn):
                self.drawn = self._look(self.live.draw(self.generator, _grown(self.points, times))).first(self.points)
            count = len(self.live)
            apart = self.disjoint and count - len(self.drawn) >= (self.candidates or self.live.count)
            without = self.drawn.rows if apart else ()
            tried = self._look(self.live.draw(self.generator, _grown(self.candidates, times), without))
            if len(self.drawn) and len(tried):
                tried = tried.first(self.candidates)
                j = self._choose(tried, self.drawn, count if apart else None)
                self.live.kill(tried.rows[j : j + 1])
                self.seen[2] += tried.diagonal[j]
                self._estimate()
                return True
            times *= 2  # nearly all drawn rows are spanned, so draw more rows at once
        return False

    def _look(self, rows: np.ndarray) -> Drawn:
        """Return these rows without the spanned rows, which are marked as dead."""
        return self._without_spanned(self._drawn(rows))

    def _without_spanned(self, batch: Drawn) -> Drawn:
        spanned = (batch.delta < self.epsilon) | (batch.diagonal <= 0)
        if spanned.any():
            self.live.kill(batch.rows[spanned])
            self.seen[2] += batch.diagonal[spanned].sum()
            return batch.of(~spanned)
        return batch

    def _estimate(self) -> None:
        """Draw the next vector's points, and estimate the error on them."""
        alive, l = len(self.live), self.live.count
        found = self._drawn(self.live.draw(self.generator, self.points))
        error = trace = 0.0
        if alive:
            self.seen[:2] += found.diagonal.sum(), len(found)
            error = alive / l * float(found.delta.mean())
            # the part of tr K from dead rows is exact; the part from live rows is estimated by the mean over all points so far
            mean = found.diagonal.mean() if len(found) == alive else self.seen[0] / self.seen[1]
            total = float(self.seen[2] + alive * mean)
            trace = alive * float(found.left.mean()) / total if total else 0.0
        self.drawn = self._without_spanned(found)
        if self.n:
            self.errors.append(error)
            self.grown.trace[self.n] = trace

    # -------------------------------------------------------------------------------------------- both forms

    def _gains(self, tried: Drawn, points: Drawn) -> np.ndarray:
        """Return, for each candidate, the amount by which it raises J on the points, times the number of points."""
        gains, weights = np.empty(len(tried)), share(np.ones(len(points)), points.diagonal)
        size = max(1, BLOCK // len(points))
        for some in (slice(start, start + size) for start in range(0, len(tried), size)):
            between = self._between(points, tried, some) - points.z @ tried.z[some].T
            gains[some] = weights @ np.square(between) / tried.left[some]
        return gains

    def _choose(self, tried: Drawn, points: Drawn, apart: int | None) -> int:
        """Append the best candidate, and return its position.

        apart: the number of live rows if no candidate is a point, else None.
        """
        gains = self._gains(tried, points)
        if apart is not None:
            gains = with_own(gains, apart, len(points), tried.delta)
        j = first_of_largest(gains)
        self.grown.append(tried.x[j], int(tried.rows[j]), tried.z[j], float(tried.left[j]))
        return j

    def _between(self, points: Drawn, tried: Drawn, some: slice) -> np.ndarray:
        """Return the kernel values between the points and some candidates."""
        if self.parts.whole:
            return self.parts.gram[np.ix_(points.rows, tried.rows[some])]
        return self.grown.values(points.x, tried.x[some])


class Fvs(Efvs):
    """Feature vector selection by its definition: each vector is the best of all rows, judged on all rows.

    The increases in J for all rows take O(l^2 n) time per vector.  The l^2 values of K are computed once,
    and K and C are kept.  If k(x, x) is 1 for every row, ``Exhaustive`` chooses the same rows in O(l^2 + l n) time per
    vector.  This class exists for comparison.

    A row is skipped if its delta < epsilon, because K_SS with this row would not be invertible.
    tau is compared with 1 - J.  Paper 000, eq. 1.
    Raises UserError if K and C take more than ``memory`` bytes.
    """

    method = "fvs"

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        memory: int = MEMORY,
        **common: Any,
    ) -> None:
        rows = as_rows(rows)
        size = 8 * len(rows) * (len(rows) + min(n_max, len(rows)) + 4)
        need_memory(size, memory, "keeping K and C of all rows, as fvs does,", "use the method efvs")
        common |= {"candidates": None, "points": None, "lazy": False, "memory": memory}
        super().__init__(rows, kernel, n_max, **common)

    def _judges(self, alive: np.ndarray) -> np.ndarray:
        return np.arange(len(self.rows))


def with_own(gains: np.ndarray, alive: int, points: int, own: np.ndarray) -> np.ndarray:
    """Estimate the candidates' gains over all live rows from sums over points, none of which is a candidate.

    own: each candidate's gain on its own row, which is added to the estimate.  If R is nearly diagonal, this gain is the
    largest part of the sum.
    """
    return gains * ((alive - 1) / points) + own


def _grown(size: int | None, times: int) -> int | None:
    """Return the number of rows to draw: ``size`` multiplied by ``times``, up to a limit."""
    return None if size is None else max(size, min(size * times, _MOST))
