"""Linear systems with a matrix of low rank plus a diagonal.

There are l rows and n basis vectors.  Rows are processed in blocks.  docs/reduced.md derives the formulas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_numbers, checked_table
from pykernel.errors import UserError
from pykernel.training.reduced import BLOCK, FeatureRows, merged


class LowRankSystem:
    """A = C C' + Sigma with C (l, n) and a positive diagonal Sigma, solved by Woodbury's identity.

        A^-1 b = Sigma^-1 b - Sigma^-1 C (I + C' Sigma^-1 C)^-1 C' Sigma^-1 b

    c: an array (l, n), for example ``basis.features(x)``; or FeatureRows, which are read in blocks.
    sigma: a number; or an array (l,) with a number for each row.

    The set-up takes O(l n^2).  The factor R with R'R = I + C' Sigma^-1 C is computed by QR of [Sigma^-1/2 C; I]; the
    product C' Sigma^-1 C is never formed.  Each call of solve() takes O(l n) for each column of b.  (Paper 002, section
    6.1, states O(l n^2) for each column.)  Raises UserError.
    """

    def __init__(self, c: Any, sigma: Any) -> None:
        self.c = c if isinstance(c, FeatureRows) else _HeldRows(checked_table(c, "c", "(rows, columns)"))
        sigma = checked_numbers(sigma, "sigma")
        if sigma.shape not in ((), (len(self.c),)):
            raise UserError(f"sigma must be one number, or a number for each of the {len(self.c):,} rows")
        if not (sigma > 0).all():
            raise UserError(f"sigma holds {sigma.min():g}; every number in sigma must be above 0")
        self.sigma = np.broadcast_to(sigma, (len(self.c),))
        self.root = np.eye(self.c.width)
        for start, rows in self.c:
            self.root = merged(self.root, rows / np.sqrt(self.sigma[start : start + len(rows), None]))

    def __len__(self) -> int:
        return len(self.c)

    def product(self, b: Any) -> np.ndarray:
        """Return A b, with the shape of b: (l,) or (l, k).  O(l n k)."""
        b = self._right(b)
        return self._expanded(self._projected(b)) + (b.T * self.sigma).T

    def solve(self, b: Any, refinements: int = 1) -> np.ndarray:
        """Return A^-1 b, with the shape of b: (l,) or (l, k).  O(l n k).  Each refinement solves one more system and
        multiplies by A once.

        With one refinement, the backward error is as small as that of Gaussian elimination with A, even if Sigma is small
        compared with C C'.
        """
        b = self._right(b)
        x = self._once(b)
        for _ in range(refinements):
            x = x + self._once(b - self.product(x))
        return x

    def _once(self, b: np.ndarray) -> np.ndarray:
        scaled = (b.T / self.sigma).T
        inner = solve_triangular(self.root, self._projected(scaled), trans=1, check_finite=False)
        inner = solve_triangular(self.root, inner, check_finite=False)
        return scaled - (self._expanded(inner).T / self.sigma).T

    def _projected(self, b: np.ndarray) -> np.ndarray:
        """Return C'b."""
        found = np.zeros((self.c.width, *b.shape[1:]))
        for start, rows in self.c:
            found += rows.T @ b[start : start + len(rows)]
        return found

    def _expanded(self, a: np.ndarray) -> np.ndarray:
        """Return C a."""
        found = np.empty((len(self), *a.shape[1:]))
        for start, rows in self.c:
            found[start : start + len(rows)] = rows @ a
        return found

    def _right(self, b: Any) -> np.ndarray:
        values = checked_numbers(b, "the right-hand side")
        if values.ndim not in (1, 2) or len(values) != len(self):
            raise UserError(
                f"the right-hand side has the shape {values.shape}; it must be ({len(self)},) or ({len(self)}, columns)"
            )
        return values


class _HeldRows:
    """An array (l, n) that is read in blocks, with the interface of FeatureRows."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.width = values, values.shape[1]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        size = max(self.width + 1, BLOCK // self.width)
        for start in range(0, len(self.values), size):
            yield start, self.values[start : start + size]
