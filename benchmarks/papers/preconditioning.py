"""A basis as a preconditioner: cg(gram_operator(kernel, x, ridge), y, M=preconditioner(basis, x, ridge)).  Paper 002, section 6.4."""

from __future__ import annotations

from typing import Any

from scipy.sparse.linalg import LinearOperator

from pykernel.bases.basis import Basis
from pykernel.training.low_rank import LowRankSystem
from pykernel.training.reduced import KEPT, FeatureRows


def preconditioner(basis: Basis, x: Any, ridge: float, *, keep: int = KEPT) -> LinearOperator:
    """(Z Z' + ridge I)^-1 as a SciPy LinearOperator (l, l): what conjugate gradients on K + ridge I take as M.

    x: the l rows, what ``as_rows`` takes.  O(l n^2) here, O(l n) each time it is applied, symmetric and positive definite.
    """
    system = LowRankSystem(FeatureRows(basis, x, keep=keep), ridge)
    solve = lambda b: system.solve(b, refinements=0)  # noqa: E731
    return LinearOperator(
        (len(system), len(system)), matvec=solve, rmatvec=solve, matmat=solve, rmatmat=solve, dtype=float
    )
