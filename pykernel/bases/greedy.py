"""Greedy selection of a basis by the mean reconstruction error: FVS and EFVS (paper 000).

delta_i(S) = R_ii / k_ii is the part of phi(x_i) that the basis leaves out, squared and relative; the fitness is
J(S) = 1 - mean_i delta_i (eq. 1).  Adding row r raises it by mean_i(R_ir^2 / k_ii) / R_rr.  With unit diagonal this is
rule 4.2 of paper 002; with another, it is rule 4.2 for the kernel k(a, b) / sqrt(k(a, a) k(b, b)).

``Sgma`` and ``Exhaustive`` are in ``pykernel.bases.sgma``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from pykernel.bases.arguments import need_choice, need_memory
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

_MOST = 8192  # rows that are looked at once when most of what is drawn is spanned
POINTS = ("points", "points_x", "points_z", "points_diagonal")
"""Names of the drawn points in the state of an EFVS."""


def bordered_inverse(inverse: np.ndarray, b: np.ndarray, c: float) -> tuple[np.ndarray, float]:
    """The inverse of [[A, b], [b', c]] from the inverse of A (n, n), and the Schur complement c - b'A^-1 b.  O(n^2).

    Paper 000, Lemma 1.
    """
    n = len(b)
    a = inverse @ b
    schur = c - b @ a
    bordered = np.empty((n + 1, n + 1))
    bordered[:n, :n] = inverse + np.outer(a, a) / schur
    bordered[:n, n] = bordered[n, :n] = -a / schur
    bordered[n, n] = 1 / schur
    return bordered, float(schur)


def fitness(inverse: np.ndarray, values: np.ndarray, diagonal: np.ndarray) -> float:
    """J on some rows, from K_SS^-1 (n, n), K_S: of these rows (n, rows) and their k_ii: eq. 1.  O(rows n^2)."""
    projections = np.einsum("ij,ij->j", values, inverse @ values)
    return float(np.divide(projections, diagonal, out=np.ones_like(diagonal), where=diagonal > 0).mean())


# ------------------------------------------------------------------------------------------------------------ FVS


class Fvs(Selector):
    """Feature vector selection as in its definition: each vector is the best of all rows, judged on all rows.

    form: "literal" computes the inverse of K_SS for each candidate, O(l (n^3 + l n^2)) for a vector; "bordered"
    (compiled) extends the previous inverse, O(l^2 n^2).  Both compute the l^2 values of K once and keep them.
    ``Exhaustive`` chooses the same rows in O(l^2 + l n); this class exists for comparison.

    A row is skipped if K_SS with this row would not be invertible: delta < epsilon.  tau is compared with 1 - J.  Paper
    000, eq. 1.
    Raises UserError if K takes more than ``memory`` bytes.
    """

    method = "fvs"
    changing = ("inverse", "fitness")

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        form: Literal["bordered", "literal"] = "bordered",
        memory: int = MEMORY,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        need_choice(form, "form", ("bordered", "literal"))
        need_memory(8 * len(self.rows) ** 2, memory, "K of all rows, which fvs keeps,", "take efvs")
        self.form = form
        self.parts.whole = True
        self.inverse = np.zeros((0, 0))
        self.fitness = 0.0

    @property
    def error(self) -> float:
        return 1 - self.fitness

    def scores(self) -> np.ndarray:
        """J(S + r) for each row r, (l,); -inf where K_SS would not be invertible, or r is chosen."""
        gram, diagonal = self.parts.gram, self.parts.gram.diagonal().copy()
        chosen = self.grown.indices[: self.n]
        if self.form == "bordered":
            return _bordered_scores()(gram, diagonal, chosen, self.inverse, self.epsilon)
        scores = np.full(len(gram), -np.inf)
        for r in np.setdiff1d(np.arange(len(gram)), chosen):
            with_it = np.append(chosen, r)
            try:
                inverse = np.linalg.inv(gram[np.ix_(with_it, with_it)])
            except np.linalg.LinAlgError:
                continue
            # the last element is 1 / R_rr
            if inverse[-1, -1] > 0 and 1 / inverse[-1, -1] >= self.epsilon * diagonal[r]:
                scores[r] = fitness(inverse, gram[with_it], diagonal)
        return scores

    def _add(self) -> bool:
        scores = self.scores()
        if not np.isfinite(scores).any():
            return False
        # ties are those of what a row adds
        r = first_of_largest(scores - self.fitness)
        gram, chosen = self.parts.gram, self.grown.indices[: self.n]
        self.inverse, schur = bordered_inverse(self.inverse, gram[chosen, r], gram[r, r])
        self.fitness = float(scores[r])
        x = self.rows.take([r])
        z = self.grown.features(x)[0]
        chosen = np.append(chosen, r)
        left = gram.diagonal() - np.einsum("ij,ij->j", gram[chosen], self.inverse @ gram[chosen])
        self.grown.append(x[0], r, z, schur, float(left.clip(0).sum() / gram.trace()))
        return True


@functools.cache
def _bordered_scores() -> Callable[..., np.ndarray]:
    """Compiled when first needed."""
    import numba

    return numba.njit(cache=True)(_bordered)


def _bordered(gram, diagonal, chosen, inverse, epsilon):  # type: ignore[no-untyped-def]
    """J(S + r) for each row r: Lemma 1, O(n^2), then l quadratic forms by one matrix product, O(l n^2)."""
    l, n = len(gram), len(chosen)
    scores = np.full(l, -np.inf)
    bordered = np.empty((n + 1, n + 1))
    values = np.empty((n + 1, l))
    products = np.empty((n + 1, l))
    a = np.empty(n)
    for i in range(n):
        values[i] = gram[chosen[i]]
    for r in range(l):
        schur = diagonal[r]
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += inverse[i, j] * values[j, r]
            a[i] = total
            schur -= total * values[i, r]
        new = schur > 0 and schur >= epsilon * diagonal[r]
        for i in range(n):
            new = new and chosen[i] != r
        if not new:
            continue
        for i in range(n):
            for j in range(n):
                bordered[i, j] = inverse[i, j] + a[i] * a[j] / schur
            bordered[i, n] = -a[i] / schur
            bordered[n, i] = -a[i] / schur
        bordered[n, n] = 1 / schur
        values[n] = gram[r]
        np.dot(bordered, values, products)
        for i in range(n + 1):
            for t in range(l):
                products[i, t] *= values[i, t]
        for i in range(1, n + 1):
            for t in range(l):
                products[0, t] += products[i, t]
        total = 0.0
        for t in range(l):
            total += products[0, t] / diagonal[t] if diagonal[t] > 0 else 1.0
        scores[r] = total / l
    return scores


# ----------------------------------------------------------------------------------------------------------- EFVS


class Efvs(Selector):
    """Efficient feature vector selection: paper 000, Algorithm 1.

    For each vector ``candidates`` rows (rho) and ``points`` rows (v) are drawn from those that are alive; the candidate
    with the largest J, measured on the points, is chosen.  Rows with delta < epsilon die, and so does what was chosen.

    lazy: only rows that are drawn are computed.  A vector takes n (rho + v) + rho v kernel values and O(n^2 (rho + v) +
    n rho v) time; memory does not grow with l.  If false, C and delta of all rows are kept: a vector takes l + rho v
    kernel values and O(n (l + rho v)) time; 8 l n bytes; the error is exact.  Not given: the form that needs fewer
    kernel values and fits into ``memory``.
    form: "gain" computes a candidate's increase of J, O(v n); "literal" extends the inverse for each candidate and
    evaluates all quadratic forms, O(v n^2).  Both give the same scores; "literal" is for comparison.
    disjoint: points are drawn first, and no point becomes a candidate (if enough rows are alive).  Then a candidate's
    own error counts once, beside the estimate for all other rows.  A candidate that is also a point would count too
    often.

    In the lazy form, the error 1 - J is estimated on points that are drawn after the basis was chosen and before the
    next vector is chosen: (alive / l) mean delta.  The estimate is unbiased, except for the errors of dead rows, which
    are below epsilon.  ``Basis.trace`` is then an estimate.  The selection stops at the first estimate that is at most
    tau. Few points contain few badly represented rows: for a small tau take more points, or ``select_basis(...,
    confidence=)``.  The paper's estimate (mean over the points of the best candidate's score) has two errors: the
    points also made the choice, which makes it too low; and it leaves out the dead rows, which makes it too high.

    Raises UserError for an unknown form, or if lazy=False and C of all rows takes more than ``memory`` bytes.
    """

    method = "efvs"
    changing = ("errors", "inverse", "seen")
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
        form: Literal["gain", "literal"] = "gain",
        disjoint: bool = True,
        memory: int = MEMORY,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, **common)
        need_choice(form, "form", ("gain", "literal"))
        need_choice(lazy, "lazy", (True, False, None))
        self.candidates, self.points, self.form, self.disjoint = candidates, points, form, disjoint
        l, n = len(self.rows), self.capacity
        rho, v = min(l, candidates or l), min(l, points or l)
        size = 8 * l * (n + 4)
        if lazy is None:
            lazy = size > memory or 2 * l > (rho + v) * n
        elif not lazy:
            need_memory(size, memory, f"C of {l:,} rows", "leave lazy=False out")
        self.exact = not lazy
        self.errors = [1.0]
        """1 - J after 0, 1, ..., n vectors: exact, or estimated."""
        self.inverse = np.zeros((0, 0))
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

    # ------------------------------------------------------------------------------------- all rows are kept

    def _add_of_all(self, residual: Residual) -> bool:
        alive = residual.candidates()
        if not len(alive):
            return False
        count, points = len(alive), drawn(self.generator, alive, self.points)
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

    def _known(self, residual: Residual, rows: np.ndarray) -> Drawn:
        return Drawn(rows, self.rows.take(rows), residual.projected[: self.n, rows].T, residual.diagonal[rows])

    # ---------------------------------------------------------------------------- only what is drawn is seen

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
            times *= 2  # nearly all drawn rows are spanned: draw more rows at once
        return False

    def _look(self, rows: np.ndarray) -> Drawn:
        """These rows, but for those that are spanned: they die."""
        return self._without_spanned(self._drawn(rows))

    def _without_spanned(self, found: Drawn) -> Drawn:
        spanned = (found.delta < self.epsilon) | (found.diagonal <= 0)
        if spanned.any():
            self.live.kill(found.rows[spanned])
            self.seen[2] += found.diagonal[spanned].sum()
            return found.of(~spanned)
        return found

    def _estimate(self) -> None:
        """Draw the next vector's points, and estimate the error on them."""
        alive, l = len(self.live), self.live.count
        found = self._drawn(self.live.draw(self.generator, self.points))
        error = trace = 0.0
        if alive:
            self.seen[:2] += found.diagonal.sum(), len(found)
            error = alive / l * float(found.delta.mean())
            # tr K: exact for the dead rows; for the others, estimated by the mean over all points so far
            mean = found.diagonal.mean() if len(found) == alive else self.seen[0] / self.seen[1]
            total = float(self.seen[2] + alive * mean)
            trace = alive * float(found.left.mean()) / total if total else 0.0
        self.drawn = self._without_spanned(found)
        if self.n:
            self.errors.append(error)
            self.grown.trace[self.n] = trace

    # ------------------------------------------------------------------------------------------------- both

    def _literal_gains(
        self, x: np.ndarray, diagonal: np.ndarray, at: np.ndarray, at_diagonal: np.ndarray
    ) -> np.ndarray:
        """Each candidate's increase of J on the points, times the number of points: J with the candidate minus J
        without.
        """
        basis = self.grown.vectors[: self.n]
        with_candidates, with_points = self.grown.values(basis, x), self.grown.values(basis, at)
        between = self.grown.values(x, at)
        before = fitness(self.inverse, with_points, at_diagonal)
        gains = np.empty(len(x))
        for j in range(len(x)):
            inverse, _ = bordered_inverse(self.inverse, with_candidates[:, j], diagonal[j])
            gains[j] = fitness(inverse, np.vstack([with_points, between[j]]), at_diagonal) - before
        return gains * len(at)

    def _choose(self, tried: Drawn, points: Drawn, apart: int | None) -> int:
        """Append the best candidate; its number.  apart: how many rows are alive, if no candidate is a point."""
        if self.form == "literal":
            gains = self._literal_gains(tried.x, tried.diagonal, points.x, points.diagonal)
        else:
            gains = np.empty(len(tried))
            size = max(1, BLOCK // len(points))
            for some in (slice(start, start + size) for start in range(0, len(tried), size)):
                between = self._between(points, tried, some) - points.z @ tried.z[some].T
                gains[some] = (1 / points.diagonal) @ np.square(between) / tried.left[some]
        if apart is not None:
            gains = with_own(gains, apart, len(points), tried.delta)
        j = first_of_largest(gains)
        if self.form == "literal":
            b = self.grown.values(self.grown.vectors[: self.n], tried.x[j : j + 1])[:, 0]
            self.inverse = bordered_inverse(self.inverse, b, tried.diagonal[j])[0]
        self.grown.append(tried.x[j], int(tried.rows[j]), tried.z[j], float(tried.left[j]))
        return j

    def _between(self, points: Drawn, tried: Drawn, some: slice) -> np.ndarray:
        """Kernel values of the points and some candidates."""
        if self.parts.whole:
            return self.parts.gram[np.ix_(points.rows, tried.rows[some])]
        return self.grown.values(points.x, tried.x[some])

    def state(self) -> dict[str, np.ndarray]:
        return super().state() | ({} if self.drawn is None else dict(zip(POINTS, self.drawn.parts, strict=True)))

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        if POINTS[0] in state:
            self.drawn = Drawn(*(state[name] for name in POINTS))


def with_own(gains: np.ndarray, alive: int, points: int, own: np.ndarray) -> np.ndarray:
    """Estimates of the candidates' gains over all alive rows, from sums over points that contain no candidate.

    own: each candidate's gain on itself, which is added.  When R is nearly diagonal, this is most of the gain.
    """
    return gains * ((alive - 1) / points) + own


def _grown(size: int | None, times: int) -> int | None:
    """The number of rows to draw: ``times`` as many if most drawn rows are spanned, up to a limit."""
    return None if size is None else max(size, min(size * times, _MOST))
