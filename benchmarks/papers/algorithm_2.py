"""Algorithm 2 of paper 002, corrected: the same rows as ``sgma``, slower and with more rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.bases.candidates import drawn, first_of_largest
from pykernel.bases.gram import MercerKernel
from pykernel.bases.sgma import Sgma


class AlgorithmTwo(Sgma):
    """SGMA that keeps the coefficients T (n, l) in place of C.  rule: 4.2 or 4.3."""

    def __init__(self, rows: Any, kernel: MercerKernel, n_max: int, **options: Any) -> None:
        super().__init__(rows, kernel, n_max, **options)
        self.coefficients = np.zeros((self.capacity, len(self.rows)))  # T; C is K_:S

    def _add(self) -> bool:
        residual = self.residual
        alive = residual.candidates()
        if not len(alive):
            return False
        tried, n = drawn(self.generator, alive, self.candidates), residual.n
        values = self.parts.columns(tried)
        columns = values - self.coefficients[:n, tried].T @ residual.projected[:n]
        scores = np.einsum("ij,ij->i", columns, columns)
        if self.rule == "4.2":
            scores = scores / columns[np.arange(len(tried)), tried]
        j = first_of_largest(scores)
        r, dot = int(tried[j]), columns[j].copy()
        # T grows by a row of zeros, and then by t dot', (n + 1, l)
        self.coefficients[: n + 1] += np.outer(np.append(-self.coefficients[:n, r], 1.0) / dot[r], dot)
        _, square = residual.take_in(r, dot)
        # C is what the paper calls K^c, and L is found from it
        residual.projected[n] = values[j]
        parts = np.einsum("ji,ji->i", residual.projected[: n + 1], self.coefficients[: n + 1])
        residual.left = np.clip(residual.diagonal - parts, 0, None)
        vector = self.rows.take([r])
        self.grown.append(vector[0], r, self.grown.features(vector)[0], square, residual.trace)
        return True
