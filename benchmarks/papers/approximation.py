"""How near a subspace's kernel comes to the kernel, with the bounds of paper 001, section VI.

0 <= Khat <= K in the order of positive semidefinite matrices, so that

    spectral <= frobenius <= trace = residual + 2 lambda coordinates     (trace_bound)
    frobenius <= sqrt(residual) (sqrt(residual) + 2 sqrt(diagonal))      (residual_bound)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.training.subspace import HostSubspace


@dataclass(frozen=True)
class Approximation:
    """Norms of K - Khat over N rows, all divided by N, and their bounds; Khat = ZZ'.

    rows: N.  shrinkage: lambda.  residual, coordinates, diagonal: means of e2(x), |q(x)|^2 and k(x, x).  trace: tr(K - Khat) / N.
    frobenius, spectral: |K - Khat|_F / N and |K - Khat|_2 / N.
    """

    rows: int
    shrinkage: float
    residual: float
    coordinates: float
    diagonal: float
    trace: float
    frobenius: float
    spectral: float

    @classmethod
    def of(cls, subspace: HostSubspace, x: np.ndarray) -> Approximation:
        """O(N^3)."""
        gram, z = subspace.kernel.gram(x, x), subspace.features(x)
        off = gram - z @ z.T
        return cls(
            len(x),
            subspace.shrinkage,
            residual=float(subspace.residual(x).mean()),
            coordinates=float(np.square(subspace.coordinates(x)).sum(1).mean()),
            diagonal=float(np.diag(gram).mean()),
            trace=float(np.trace(off)) / len(x),
            frobenius=float(np.linalg.norm(off)) / len(x),
            spectral=max(0.0, float(np.linalg.eigvalsh(off)[-1])) / len(x),
        )

    @property
    def trace_bound(self) -> float:
        """Of ``frobenius``: the mean of e2 + 2 lambda |q|^2, which is ``trace``.  Needs O(N) and no element of K."""
        return self.residual + 2 * self.shrinkage * self.coordinates

    @property
    def residual_bound(self) -> float:
        """Of ``frobenius``: the triangle inequality's, as published for k(x, x) <= 1."""
        root = math.sqrt(self.residual)
        return root * (root + 2 * math.sqrt(self.diagonal))

    def krr(self, ridge: float, y: np.ndarray) -> float:
        """A bound of |f - fhat| over the rows: kernel ridge regression on K and Khat, (K + ridge I) alpha = y, (N,).

        The bound is s |y| / (s + ridge) with s = |K - Khat|_2.  Because of 0 <= Khat <= K, it is tighter than the usual
        s |y| / ridge, and never above |y|.
        """
        most = self.rows * self.spectral
        return most / (most + ridge) * float(np.linalg.norm(y))

    def svm(self, C: float) -> float:
        """A bound before a support vector machine is trained, of what it loses: min(N C^2 s / 2, N C), s as of ``krr``.

        The least of |f|^2 / 2 + C sum max(0, 1 - y f) on Khat is above that on K by at most this, whatever the labels.
        Only small C gain by it; ``excess`` is the bound of a machine that is there.
        """
        each = self.rows * C
        return min(each * C * self.rows * self.spectral / 2, each)


def excess(subspace: HostSubspace, x: np.ndarray, beta: Any) -> float:
    """A bound for a support vector machine that was trained on the features: beta' (K - Khat) beta / 2.

    With all kernel values in place of the features, the least of |f|^2 / 2 + C sum max(0, 1 - y f) is lower by at most
    this; and its f differs from the machine's by at most sqrt(2 excess k(x, x)) at any x, intercepts apart.  With the
    weights of the full machine in place of the machine's, it is lower by at least this.

    x: the support vectors, (s, D), as they were before ``features``.  beta: their weights y_i a_i, (s,) or (1, s): ``dual_coef_``
    of scikit-learn's linear SVC or SVR.
    """
    weights = np.ravel(beta)
    full = float(weights @ subspace.kernel.gram(x, x) @ weights)
    return max(0.0, full - float(np.square(weights @ subspace.features(x)).sum())) / 2
