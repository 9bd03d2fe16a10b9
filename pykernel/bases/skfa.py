"""Sparse kernel feature analysis (SKFA) finds directions in feature space, each a combination of few samples.

A. J. Smola, O. L. Mangasarian, B. Schölkopf, Sparse kernel feature analysis, 1999; paper 002, section 7.1.

In kernel PCA, each direction has a fixed length and is a combination of all samples.  SKFA fixes the l1 norm of the
coefficients instead, and each of its candidates comes from a single sample.  Below, phi_r is sample r in feature space,
S is the set of the chosen samples, K is the Gram matrix of all samples, and R is the residual of K.  Before direction
number n + 1 is chosen, each candidate r is projected:

    v_r = (phi_r - sum_s T_sr phi_s) / (1 + sum_s |T_sr|),   T_:r = K_SS^-1 K_Sr

v_r is orthogonal to all chosen directions, and the l1 norm of its coefficients is 1.  A criterion judges the values of v_r on
the samples, <v_r, phi_i> = R_ir / (1 + |T_:r|_1).  The chosen samples form a basis, and ``Basis.directions`` returns the
coefficients.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import need_choice
from pykernel.bases.candidates import MEMORY
from pykernel.bases.gram import MercerKernel
from pykernel.bases.sgma import Sgma

CONSTANT = 1e-10
"""If the standard deviation of values is below this fraction of their largest magnitude, their kurtosis is not
computed, because it would consist only of rounding errors."""


class Skfa(Sgma):
    """Sparse kernel feature analysis: choose the best of ``candidates`` rows for each direction, judged on all rows.

    criterion: with "columns", the direction whose values have the largest sum of squares is chosen (rule 4.3 of
    ``Sgma``, after the l1 normalisation).  With "kurtosis" (projection pursuit), the direction whose values have the
    smallest kurtosis is chosen.  The kurtosis is low for two clusters, 3 for a normal distribution, and high with
    outliers.  The kurtosis does not depend on the scale, so the l1 normalisation does not change the choice.

    For costs, memory and ``tau``, see ``Sgma``; in addition, each direction takes O(kappa n^2) time.
    """

    method = "skfa"

    def __init__(
        self,
        rows: Any,
        kernel: MercerKernel,
        n_max: int,
        *,
        candidates: int | None = 59,
        criterion: Literal["columns", "kurtosis"] = "columns",
        memory: int = 4 * MEMORY,
        **common: Any,
    ) -> None:
        super().__init__(rows, kernel, n_max, candidates=candidates, rule="4.3", memory=memory, **common)
        need_choice(criterion, "criterion", ("columns", "kurtosis"))
        self.criterion = criterion

    def _scores(self, columns: np.ndarray, tried: np.ndarray) -> np.ndarray:
        if self.criterion == "kurtosis":
            return _evenness(columns)
        n = self.n
        others = solve_triangular(
            self.grown.factor[:n, :n], self.residual.projected[:n, tried], lower=True, trans=1, check_finite=False
        )
        return super()._scores(columns, tried) / (1 + np.abs(others).sum(axis=0)) ** 2


def _evenness(values: np.ndarray) -> np.ndarray:
    """Return the reciprocal of each row's kurtosis, from 0 to 1, or 0 for a constant row."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    scaled = np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)
    squares = np.square(scaled - scaled.mean(axis=1, keepdims=True))
    second, fourth = squares.mean(axis=1), np.square(squares).mean(axis=1)
    return np.divide(second**2, fourth, out=np.zeros_like(second), where=second > CONSTANT**2)
