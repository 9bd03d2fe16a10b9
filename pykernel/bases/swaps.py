"""Improve a chosen basis by exchanges: a vector is replaced by another row if this lowers tr R.

A greedy selection never removes a vector.  An exchange removes a vector, and adds the row that lowers tr R most.  If
this row is the removed vector, the basis does not change.

Let K_SS = G G', C = K_:S G'^-1 (so that R = K - C C'), and y = G^-1 e_s, where e_s is unit vector s.  Without vector s,
C C' loses u u' with u = C y / |y|, and the residual becomes R + u u'.  One reflection of C's columns makes u the last
column, which is then dropped.  The best row i has the largest score f_i / g_i, as in ``pykernel.bases.sgma``: f_i is
the squared norm of the residual's column i, and g_i is the residual's diagonal element i.  The scores of the residual
R + u u' follow from those of R: f <- f + 2 u o (R u) + |u|^2 u o u and g <- g + u o u, where o is the elementwise
product.

At the end, the vectors are sorted so that the vector that lowers tr R most comes first.  Paper 002, section 2.3, mentions
that chosen vectors can be rearranged.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pykernel.bases.basis import Basis, left_out, measured, project
from pykernel.bases.candidates import MEMORY, best_columns, first_of_largest
from pykernel.rows import Rows, SomeRows

GAIN = 1e-9
"""An exchange must lower tr R by more than this fraction of the removed vector's own contribution."""
JUDGES = 4096
"""If the matrices of all rows do not fit into ``memory``, the exchanges are judged on this many drawn rows, which are
also the candidates.  As many other rows are drawn to measure the basis.
"""


def refine(
    basis: Basis, rows: Rows, rounds: int, *, seed: int = 0, epsilon: float = 1e-10, memory: int = MEMORY
) -> Basis:
    """Return the basis after at most ``rounds`` rounds of exchanges.  Each round tries to exchange every vector; a
    round without an exchange is the last.

    If K of the l rows and C fit into ``memory`` (8 l (l + n) bytes), the result is exact, and tr R never rises.
    A round takes O(n l (l + n) + n^4) time and l n kernel values; computing K takes l^2 more kernel values once.  If K
    and C do not fit, the exchanges use 4,096 drawn rows instead of all rows.  Then the basis is measured before and
    after the exchanges on 4,096 other rows, and the better basis is returned, with its trace estimated on these other
    rows.
    """
    l, n = len(rows), len(basis)
    if 8 * l * (l + n) <= memory:
        found = measured(_refined(basis, rows, np.arange(l), rounds, epsilon), rows, exact=True)
        # keep an exact basis unless the new trace is smaller: both traces contain rounding errors
        better = basis if basis.exact and not found.trace[-1] < basis.trace[-1] else found
        return replace(better, evaluations=found.evaluations + l * n)
    drawn = np.random.default_rng([seed, 4]).choice(l, min(l, 2 * JUDGES), replace=False)
    judges, others = (SomeRows(rows, np.sort(part)) for part in np.array_split(drawn, 2))
    before = measured(basis, others, exact=False)
    after = measured(_refined(basis, judges, judges.indices, rounds, epsilon), others, exact=False)
    better = after if after.trace[-1] < before.trace[-1] else before
    return replace(better, evaluations=after.evaluations + 2 * len(others) * n)


def _refined(basis: Basis, rows: Rows, indices: np.ndarray, rounds: int, epsilon: float) -> Basis:
    """Return the improved basis, judged on these rows.  indices: positions of these rows in the data."""
    try:
        work = _Swaps(basis, rows.take(np.arange(len(rows))), indices, epsilon)
        for _ in range(rounds):
            if not work.round():
                break
        found = work.arranged() if work.swapped else basis
    except np.linalg.LinAlgError:  # the vectors are so similar that K_SS has no Cholesky factor: keep the basis
        return basis
    return replace(found, evaluations=basis.evaluations + work.values)


class _Swaps:
    """A basis during the exchanges: its vectors, none of which is in the span of earlier vectors, and the matrices G and C."""

    def __init__(self, basis: Basis, x: np.ndarray, origin: np.ndarray, epsilon: float) -> None:
        self.basis, self.kernel, self.x, self.origin, self.epsilon = basis, basis.kernel, x, origin, epsilon
        self.gram = self.kernel.gram(x, x)
        self.diagonal = self.kernel.self_values(x)
        self.vectors, self.indices = basis.vectors.copy(), basis.indices.copy()
        self.swapped = 0
        self.values = len(x) ** 2

    def round(self) -> int:
        """Try to exchange each vector once, and return the number of exchanges."""
        self._begin()
        before = self.swapped
        # current positions of the vectors that the basis had at the start of the round
        places = list(range(len(self.vectors)))
        for place in range(len(places)):
            s = places[place]
            if self._try(s):
                places = [p - 1 if p > s else p for p in places]
        return self.swapped - before

    def _begin(self) -> None:
        """Compute G, C and the squared norms of R's columns anew, so that rounding errors do not add up over the
        rounds.
        """
        swapped = self.swapped > 0
        self.g = np.linalg.cholesky(self.kernel.gram(self.vectors, self.vectors)) if swapped else self.basis.factor
        self.values += len(self.x) * len(self.vectors)
        self.c = project(self.g, self.kernel.gram(self.x, self.vectors))
        self.left = left_out(self.diagonal, self.c)
        self.squares = np.empty(len(self.x))
        size = max(1, 2**22 // len(self.x))
        for start in range(0, len(self.x), size):
            some = slice(start, start + size)
            residual = self.gram[some] - self.c[some] @ self.c.T
            self.squares[some] = np.einsum("ij,ij->i", residual, residual)

    def _try(self, s: int) -> bool:
        """Replace vector s with the best row if this lowers tr R.

        The new vector is placed last.  O(l (l + n) + n^3).
        """
        y = np.linalg.solve(self.g, np.eye(len(self.g))[s])
        y /= np.linalg.norm(y)
        reflect = _reflection(y)
        c, g = reflect(self.c), reflect(self.g)
        u = c[:, -1].copy()
        c = c[:, :-1]
        lost = float(u @ u)
        ru = self._residual_times(self.c, u)
        squares = np.clip(self.squares + 2 * u * ru + lost * u * u, 0.0, None)
        left = np.clip(self.left + u * u, 0.0, None)
        new = left >= self.epsilon * self.diagonal
        new[np.isin(self.origin, np.delete(self.indices, s))] = False
        scores = np.divide(squares, left, out=np.full(len(left), -np.inf), where=new & (left > 0))
        if not new.any():
            return False
        r = first_of_largest(scores)
        column = self.gram[r] - c @ c[r]
        if not column[r] > 0 or not float(column @ column) / column[r] > lost * (1 + GAIN):
            return False
        column = column / math.sqrt(column[r])
        # R without vector s, times the new column
        image = self._residual_times(c, column)
        self.squares = np.clip(squares - 2 * column * image + float(column @ column) * column * column, 0.0, None)
        self.left = np.clip(left - column * column, 0.0, None)
        self.c = np.column_stack([c, column])
        g[s:-1] = g[s + 1 :]
        g[:-1, -1] = 0.0
        g[-1] = self.c[r]
        self.g = g
        self.vectors[s:-1], self.indices[s:-1] = self.vectors[s + 1 :], self.indices[s + 1 :]
        self.vectors[-1], self.indices[-1] = self.x[r], self.origin[r]
        self.swapped += 1
        return True

    def _residual_times(self, c: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.gram @ u - c @ (u @ c))

    def arranged(self) -> Basis:
        """Return the basis in greedy order, or in its current order if a vector's residual would consist only of
        rounding errors.  O(l n^2).
        """
        inner, values = self.kernel.gram(self.vectors, self.vectors), self.kernel.gram(self.x, self.vectors)
        order = [r for r, *_ in best_columns(values, inner, np.ones(len(self.x)), self.epsilon)]
        if len(order) < len(self.vectors):
            order = list(range(len(self.vectors)))
        vectors = self.vectors[order]
        factor = np.linalg.cholesky(self.kernel.gram(vectors, vectors))
        return replace(self.basis, vectors=vectors, indices=self.indices[order], factor=factor)


def _reflection(y: np.ndarray) -> Any:
    """Return a function that reflects rows (k, n).  The reflection preserves lengths and inner products, and turns a
    row's last element into the row's component along the unit vector y.
    """
    v = y.copy()
    sign = -1.0 if y[-1] > 0 else 1.0
    v[-1] -= sign
    v *= math.sqrt(2) / np.linalg.norm(v)

    def reflect(a: np.ndarray) -> np.ndarray:
        turned = a - np.outer(a @ v, v)
        turned[:, -1] *= sign
        return np.asarray(turned)

    return reflect
