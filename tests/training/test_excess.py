"""What the features of a subspace cost a support vector machine that is trained on them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.papers.approximation import Approximation, excess
from pykernel.bases.gram import MercerKernel
from pykernel.training.subspace import HostSubspace

KERNEL = MercerKernel("gaussian", gamma=0.3)


def wave(seed: int, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 3))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] + 0.2 * random.normal(size=count)


def objective(square: float, margins: np.ndarray, c: float) -> float:
    return square / 2 + c * float(np.maximum(margins, 0).sum())


@pytest.mark.parametrize("c", [0.01, 1.0])
@pytest.mark.parametrize("rank", [4, 15])
@pytest.mark.parametrize("seed", [0, 1])
def test_what_features_cost_a_machine_is_within_its_bounds(seed: int, rank: int, c: float) -> None:
    x, f = wave(seed)
    y = np.where(f > 0, 1.0, -1.0)
    subspace = HostSubspace.fit(x, KERNEL, rank, 0.1)
    gram, z = KERNEL.gram(x, x), subspace.features(x)
    full = SVC(C=c, kernel="precomputed", tol=1e-8).fit(gram, y)
    low = SVC(C=c, kernel="linear", tol=1e-8).fit(z, y)

    def loss(machine: SVC, inner: np.ndarray) -> float:
        beta, s = machine.dual_coef_[0], machine.support_
        return objective(beta @ inner[np.ix_(s, s)] @ beta, 1 - y * (inner[:, s] @ beta + machine.intercept_), c)

    more = loss(low, z @ z.T) - loss(full, gram)
    at_most = excess(subspace, x[low.support_], low.dual_coef_)
    at_least = excess(subspace, x[full.support_], full.dual_coef_)
    slack = 1e-5 * loss(full, gram)
    assert at_least - slack <= more <= at_most + slack
    assert 0.02 * at_most < more and at_least > 0  # not of everything
    told = Approximation.of(subspace, x)
    assert more <= told.svm(c) <= c * len(x)
    assert told.svm(0.01) < 0.01 * len(x)  # small machines: better than the loss of f = 0
    asked = np.random.default_rng(9).normal(size=(500, 3))
    f_full = KERNEL.gram(asked, x[full.support_]) @ full.dual_coef_[0]
    f_low = subspace.features(asked) @ low.coef_[0]
    assert np.abs(f_full - f_low).max() <= np.sqrt(2 * at_most) + 1e-5
