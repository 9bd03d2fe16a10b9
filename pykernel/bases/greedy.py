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

from pykernel.bases.basis import relative
from pykernel.bases.candidates import (
    BLOCK,
    MEMORY,
    Greedy,
    Live,
    Residual,
    drawn,
    first_of_largest,
    need_choice,
    need_memory,
)
from pykernel.bases.sgma import Exhaustive, Sgma, residual_bound, subset_size

__all__ = ["Efvs", "Exhaustive", "Fvs", "Sgma", "residual_bound", "subset_size"]

_MOST = 8192  # rows that are looked at once when most of what is drawn is spanned


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


class Fvs(Greedy):
    """Feature vector selection as in its definition: each vector is the best of all rows, judged on all rows.

    form: "literal" computes the inverse of K_SS for each candidate, O(l (n^3 + l n^2)) for a vector; "bordered"
    (compiled) extends the previous inverse, O(l^2 n^2).  Both compute the l^2 values of K once and keep them.
    ``Exhaustive`` chooses the same rows in O(l^2 + l n); this class exists for comparison.

    A row is skipped if K_SS with this row would not be invertible: delta < epsilon.  tau is compared with 1 - J.  Paper
    000, eq. 1.
    Raises UserError if K takes more than ``memory`` bytes.
    """

    method = "fvs"

    def __init__(
        self,
        rows: Any,
        kernel: Any,
        n_max: int,
        *,
        seed: int = 0,
        candidates: int | None = None,
        points: int | None = None,
        tau: float = 0.0,
        epsilon: float = 1e-10,
        form: Literal["bordered", "literal"] = "bordered",
        memory: int = MEMORY,
    ) -> None:
        super().__init__(rows, kernel, n_max, seed=seed, tau=tau, epsilon=epsilon)
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
        gram, diagonal = self.parts.gram, np.ascontiguousarray(self.parts.gram.diagonal())
        chosen = self.grown.indices[: self.grown.n]
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
        gram, chosen = self.parts.gram, self.grown.indices[: self.grown.n]
        self.inverse, schur = bordered_inverse(self.inverse, gram[chosen, r], gram[r, r])
        self.fitness = float(scores[r])
        x = self.rows.take([r])
        z = self.grown.features(x)[0] if len(chosen) else np.zeros(0)
        chosen = np.append(chosen, r)
        left = gram.diagonal() - np.einsum("ij,ij->j", gram[chosen], self.inverse @ gram[chosen])
        self.grown.append(x[0], r, z, schur, float(left.clip(0).sum() / gram.trace()))
        return True

    def _state(self) -> dict[str, np.ndarray]:
        return {"inverse": self.inverse, "fitness": np.array(self.fitness)}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        self.inverse, self.fitness = state["inverse"], float(state["fitness"])


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


class Efvs(Greedy):
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

    def __init__(
        self,
        rows: Any,
        kernel: Any,
        n_max: int,
        *,
        seed: int = 0,
        candidates: int | None = 59,
        points: int | None = 59,
        tau: float = 0.0,
        epsilon: float = 1e-10,
        lazy: bool | None = None,
        form: Literal["gain", "literal"] = "gain",
        disjoint: bool = True,
        memory: int = MEMORY,
    ) -> None:
        super().__init__(rows, kernel, n_max, seed=seed, tau=tau, epsilon=epsilon)
        need_choice(form, "form", ("gain", "literal"))
        need_choice(lazy, "lazy", (True, False, None))
        self.candidates, self.points, self.form, self.disjoint = candidates, points, form, disjoint
        l, n = len(self.rows), min(n_max, len(self.rows))
        rho, v = min(l, candidates or l), min(l, points or l)
        size = 8 * l * (n + 4)
        if lazy is None:
            lazy = size > memory or 2 * l > (rho + v) * n
        elif not lazy:
            need_memory(size, memory, f"C of {l:,} rows", "leave lazy=False out")
        self.lazy = lazy
        self.exact = not lazy
        self.errors = [1.0]
        """1 - J after 0, 1, ..., n vectors: exact, or estimated."""
        self.inverse = np.zeros((0, 0))
        if lazy:
            self.live = Live(l)
            self.drawn: _Drawn | None = None
            self.seen = np.zeros(3)  # sum of k(x, x) over all points, number of points, sum of k(x, x) over dead rows
        else:
            self.parts.whole = 8 * l * l + size <= memory and l * l <= n * (l + rho * v)
            self.residual: Residual | None = None

    @property
    def error(self) -> float:
        return self.errors[-1]

    def _add(self) -> bool:
        return self._add_lazily() if self.lazy else self._add_of_all()

    # ------------------------------------------------------------------------------------- all rows are kept

    def _of_all(self) -> Residual:
        if self.residual is None:
            self.residual = Residual(self.parts.diagonal(), self.grown.vectors.shape[0], self.epsilon)
        return self.residual

    def _add_of_all(self) -> bool:
        residual = self._of_all()
        alive = residual.candidates()
        if not len(alive):
            return False
        count, points = len(alive), drawn(self.generator, alive, self.points)
        apart = self.disjoint and bool(self.candidates) and count - len(points) >= (self.candidates or 0)
        if apart:
            alive = residual.candidates(points)
        tried = drawn(self.generator, alive, self.candidates)
        weights = residual.weights[points]
        gains = np.empty(len(tried))
        if self.form == "literal":
            gains[:] = self._literal_gains(
                self.rows.take(tried), residual.diagonal[tried], self.rows.take(points), residual.diagonal[points]
            )
        else:
            size = max(1, BLOCK // len(points))
            for start in range(0, len(tried), size):
                some = tried[start : start + size]
                between = residual.part(self.parts.part(points, some), points, some)
                gains[start : start + size] = weights @ np.square(between) / residual.left[some]
        if apart:
            gains = with_own(gains, count, len(points), residual.left[tried] * residual.weights[tried])
        r = int(tried[first_of_largest(gains)])
        column = residual.column(self.parts.columns(np.array([r]))[0], r)
        column[r] = residual.left[r]
        z, square = residual.take_in(r, column)
        self._append(self.rows.take([r])[0], r, z, square)
        self.errors.append(residual.mean)
        self.grown.trace[self.grown.n] = residual.trace
        return True

    # ---------------------------------------------------------------------------- only what is drawn is seen

    def _add_lazily(self) -> bool:
        if self.drawn is None:
            self._estimate()
        times = 1
        while len(self.live):
            assert self.drawn is not None
            if not len(self.drawn):
                self.drawn = self._look(self.live.draw(self.generator, _grown(self.points, times))).first(self.points)
            enough = self.disjoint and len(self.live) - len(self.drawn) >= (self.candidates or self.live.count)
            without = self.drawn.rows if enough else ()
            count = len(self.live)
            tried = self._look(self.live.draw(self.generator, _grown(self.candidates, times), without))
            if len(self.drawn) and len(tried):
                self._choose(tried.first(self.candidates), self.drawn, count if enough else None)
                self._estimate()
                return True
            times *= 2  # nearly all drawn rows are spanned: draw more rows at once
        return False

    def _choose(self, tried: _Drawn, points: _Drawn, apart: int | None) -> None:
        """apart: how many rows are alive, if no candidate is a point."""
        if self.form == "literal":
            gains = self._literal_gains(tried.x, tried.diagonal, points.x, points.diagonal)
        else:
            between = self.grown.values(points.x, tried.x) - points.z @ tried.z.T
            gains = (1 / points.diagonal) @ np.square(between) / tried.left
        if apart is not None:
            gains = with_own(gains, apart, len(points), tried.delta)
        j = first_of_largest(gains)
        r = tried.rows[j : j + 1]
        self._append(tried.x[j], int(r[0]), tried.z[j], float(tried.left[j]))
        self.live.kill(r)
        self.seen[2] += tried.diagonal[j]

    def _look(self, rows: np.ndarray) -> _Drawn:
        """z and delta of these rows; those that are spanned die, and are left out."""
        x = self.rows.take(rows)
        z = self.grown.features(x) if self.grown.n else np.zeros((len(x), 0))
        found = _Drawn(rows, x, z, self.grown.diagonal(x))
        return self._without_spanned(found)

    def _without_spanned(self, found: _Drawn) -> _Drawn:
        spanned = (found.delta < self.epsilon) | (found.diagonal <= 0)
        if spanned.any():
            self.live.kill(found.rows[spanned])
            self.seen[2] += found.diagonal[spanned].sum()
            return found.of(~spanned)
        return found

    def _estimate(self) -> None:
        """Draw the next vector's points, and estimate the error on them."""
        alive, l = len(self.live), self.live.count
        if not alive:
            self.drawn = _Drawn(np.zeros(0, np.int64), self.rows.take([]), np.zeros((0, self.grown.n)), np.zeros(0))
            error = trace = 0.0
        else:
            rows = self.live.draw(self.generator, self.points)
            x = self.rows.take(rows)
            z = self.grown.features(x) if self.grown.n else np.zeros((len(x), 0))
            found = _Drawn(rows, x, z, self.grown.diagonal(x))
            self.seen[:2] += found.diagonal.sum(), len(rows)
            error = alive / l * float(found.delta.mean())
            # tr K: exact for the dead rows; for the others, estimated by the mean over all points so far
            mean = found.diagonal.mean() if len(rows) == alive else self.seen[0] / self.seen[1]
            total = float(self.seen[2] + alive * mean)
            trace = alive * float(found.left.mean()) / total if total else 0.0
            self.drawn = self._without_spanned(found)
        if self.grown.n:
            self.errors.append(error)
            self.grown.trace[self.grown.n] = trace

    # ------------------------------------------------------------------------------------------------- both

    def _literal_gains(
        self, x: np.ndarray, diagonal: np.ndarray, at: np.ndarray, at_diagonal: np.ndarray
    ) -> np.ndarray:
        """Each candidate's increase of J on the points, times the number of points: J with the candidate minus J
        without.
        """
        n = self.grown.n
        basis = self.grown.vectors[:n]
        with_candidates = self.grown.values(basis, x) if n else np.zeros((0, len(x)))
        with_points = self.grown.values(basis, at) if n else np.zeros((0, len(at)))
        between = self.grown.values(x, at)
        before = fitness(self.inverse, with_points, at_diagonal)
        gains = np.empty(len(x))
        for j in range(len(x)):
            inverse, _ = bordered_inverse(self.inverse, with_candidates[:, j], diagonal[j])
            gains[j] = fitness(inverse, np.vstack([with_points, between[j]]), at_diagonal) - before
        return gains * len(at)

    def _append(self, vector: np.ndarray, index: int, z: np.ndarray, square: float) -> None:
        if self.form == "literal":
            n = self.grown.n
            b = self.grown.values(self.grown.vectors[:n], vector[None])[:, 0] if n else np.zeros(0)
            self.inverse = bordered_inverse(self.inverse, b, float(z @ z) + square)[0]
        self.grown.append(vector, index, z, square)

    def _state(self) -> dict[str, np.ndarray]:
        kept = {"errors": np.array(self.errors), "inverse": self.inverse}
        if not self.lazy:
            return kept | (self.residual.state() if self.residual is not None else {})
        kept |= {"dead": self.live.dead(), "seen": self.seen.copy()}
        if self.drawn is not None:
            kept |= {"points": self.drawn.rows, "points_z": self.drawn.z}
        return kept

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        self.errors, self.inverse = state["errors"].tolist(), state["inverse"]
        if not self.lazy:
            if "projected" in state:
                self._of_all().restore(state)
            return
        self.live = Live(len(self.rows))
        self.live.kill(state["dead"])
        self.seen = state["seen"].copy()
        self.drawn = None
        if "points" in state:
            x = self.rows.take(state["points"])
            self.drawn = _Drawn(state["points"], x, state["points_z"], self.grown.diagonal(x))


def with_own(gains: np.ndarray, alive: int, points: int, own: np.ndarray) -> np.ndarray:
    """Estimates of the candidates' gains over all alive rows, from sums over points that contain no candidate.

    own: each candidate's gain on itself, which is added.  When R is nearly diagonal, this is most of the gain.
    """
    return gains * ((alive - 1) / points) + own


class _Drawn:
    """Rows that were drawn: positions, x (k, D), z (k, n), k_ii, and their residuals R_ii and delta."""

    def __init__(self, rows: np.ndarray, x: np.ndarray, z: np.ndarray, diagonal: np.ndarray) -> None:
        # one layout, since the order of a sum depends on it
        self.rows, self.x, self.z, self.diagonal = rows, x, np.ascontiguousarray(z), diagonal
        self.delta = relative(diagonal, z)
        self.left = self.delta * diagonal

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, which: Any) -> _Drawn:
        return _Drawn(self.rows[which], self.x[which], self.z[which], self.diagonal[which])

    def first(self, size: int | None) -> _Drawn:
        return self if size is None or size >= len(self) else self.of(slice(size))


def _grown(size: int | None, times: int) -> int | None:
    """The number of rows to draw: ``times`` as many if most drawn rows are spanned, up to a limit."""
    return None if size is None else max(size, min(size * times, _MOST))
