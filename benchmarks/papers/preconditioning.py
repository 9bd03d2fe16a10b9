"""A basis as a preconditioner: cg(gram_operator(kernel, x, ridge), y, M=preconditioner(basis, x, ridge)).  Paper 002, section 6.4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.rows import as_rows
from pykernel.training.low_rank import LowRankSystem
from pykernel.training.reduced import BLOCK, KEPT, FeatureRows


def preconditioner(basis: Basis, x: Any, ridge: float, *, keep: int = KEPT) -> LinearOperator:
    """(Z Z' + ridge I)^-1 as a SciPy LinearOperator (l, l): what conjugate gradients on K + ridge I take as M.

    x: the l rows, what ``as_rows`` takes.  O(l n^2) here, O(l n) each time it is applied, symmetric and positive definite.
    """
    system = LowRankSystem(FeatureRows(basis, x, keep=keep), ridge)
    solve = lambda b: system.solve(b, refinements=0)  # noqa: E731
    return LinearOperator(
        (len(system), len(system)), matvec=solve, rmatvec=solve, matmat=solve, rmatmat=solve, dtype=float
    )


def gram_operator(kernel: MercerKernel, x: Any, ridge: float = 0.0, *, keep: int = KEPT) -> LinearOperator:
    """K + ridge I as a SciPy LinearOperator (l, l), K_ij = k(x_i, x_j), that is never held whole.

    x: the l rows, what ``as_rows`` takes.  A product with k vectors is O(l^2 (D/2 + k)): each kernel value is computed once
    for both halves.  Memory is O(l k + a block).  K is kept if it is at most ``keep`` numbers.  Raises UserError.
    """
    rows = as_rows(x)
    if not np.isfinite(ridge) or ridge < 0:
        raise UserError(f"ridge is {ridge:g}; it must be 0 or a number above")
    size = max(1, math.isqrt(BLOCK))
    kept: list[np.ndarray] = []

    def product(b: np.ndarray) -> np.ndarray:
        if len(rows) ** 2 <= keep:
            if not kept:
                every = rows.take(np.arange(len(rows)))
                kept.append(kernel.gram(every, every))
            return kept[0] @ b + ridge * b
        found = ridge * b
        for i, a in rows.blocks(size):
            here = slice(i, i + len(a))
            found[here] += kernel.gram(a, a) @ b[here]
            for j in range(i + len(a), len(rows), size):
                there = slice(j, min(j + size, len(rows)))
                values = kernel.gram(a, rows.take(np.arange(there.start, there.stop)))
                found[here] += values @ b[there]
                found[there] += values.T @ b[here]
        return found

    return LinearOperator(
        (len(rows), len(rows)), matvec=product, rmatvec=product, matmat=product, rmatmat=product, dtype=np.float64
    )
