"""FVS and EFVS of paper 000 as printed: J is evaluated for each candidate, in place of its increase.  Both give the same scores."""

from __future__ import annotations

import contextlib

import numpy as np

from pykernel.bases.basis import left_out, project, share
from pykernel.bases.candidates import Drawn
from pykernel.bases.greedy import Efvs, Fvs


def unexplained(factor: np.ndarray, values: np.ndarray, diagonal: np.ndarray) -> float:
    """1 - J on some rows, from L (n, n), K_:S of these rows (rows, n) and their k_ii: eq. 1.  O(rows n^2)."""
    return float(share(left_out(diagonal, project(factor, values)), diagonal).mean())


class LiteralEfvs(Efvs):
    """EFVS that extends L for each candidate and evaluates all quadratic forms, O(v n^2)."""

    def _gains(self, tried: Drawn, points: Drawn) -> np.ndarray:
        """Each candidate's increase of J on the points, times the number of points: J with the candidate minus J
        without.
        """
        n = self.n
        values = self.grown.values(points.x, self.grown.vectors[:n])
        between = self._between(points, tried, slice(None))
        gains = np.full(len(tried), unexplained(self.grown.factor[:n, :n], values, points.diagonal))
        for j in range(len(tried)):
            gains[j] -= unexplained(self._factor_with(tried, j), np.c_[values, between[:, j]], points.diagonal)
        return gains * len(points)

    def _factor_with(self, tried: Drawn, j: int) -> np.ndarray:
        """L with a candidate, (n + 1, n + 1): section 1.1."""
        n = self.n
        return np.block([[self.grown.factor[:n, :n], np.zeros((n, 1))], [tried.z[j], np.sqrt(tried.left[j])]])


class LiteralFvs(LiteralEfvs, Fvs):
    """FVS by an L of its own for each row, O(l (n^3 + l n^2)) for a vector."""

    def _factor_with(self, tried: Drawn, j: int) -> np.ndarray:
        chosen = np.append(self.grown.indices[: self.n], tried.rows[j])
        with contextlib.suppress(np.linalg.LinAlgError):  # rounding decides with an epsilon of about 1e-14
            return np.linalg.cholesky(self.parts.gram[np.ix_(chosen, chosen)])
        return super()._factor_with(tried, j)
