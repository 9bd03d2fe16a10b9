"""Features of a subspace: their number from data, and what they cost a support vector machine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from benchmarks.papers.approximation import Approximation, excess
from benchmarks.papers.rank import JUDGES, WEIGHTS, choose_rank
from pykernel.bases.gram import MercerKernel
from pykernel.training.subspace import HostSubspace

KERNEL = MercerKernel("gaussian", gamma=0.3)


def wave(seed: int, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 3))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] + 0.2 * random.normal(size=count)


@pytest.mark.parametrize("basis", [None, 30])
@pytest.mark.parametrize("labels", ["none", "numbers", "classes"])
def test_the_choice_is_that_of_one_fit_for_each_rank(labels: str, basis: int | None) -> None:
    x, f = wave(len(labels))
    y = {"none": None, "numbers": np.c_[f, x[:, 2]], "classes": np.array(["a", "b", "c"])[np.digitize(f, [-0.7, 0.7])]}[
        labels
    ]
    found = choose_rank(x, KERNEL, y, classes=labels == "classes", most=24, basis=basis, seed=3)
    order = np.random.default_rng([3, JUDGES]).permutation(len(x))
    judges, learned = np.sort(order[:30]), np.sort(order[30:])
    assert set(found.ranks) >= {1, 2, 3, 4, 6, 8, 11, 16, 23, 24}
    left, errors = [], []
    for rank in found.ranks:
        one = HostSubspace.fit(x[learned], KERNEL, int(rank), 0.1, basis=basis, seed=3)
        left.append(one.score(x[judges]).mean())
        if y is None:
            continue
        columns = np.where(y[:, None] == np.unique(y), 1.0, -1.0) if labels == "classes" else y
        tried = []
        for weight in WEIGHTS:
            answers = Ridge(weight).fit(one.features(x[learned]), columns[learned]).predict(one.features(x[judges]))
            off = np.square(answers - columns[judges]).mean(0) / columns[judges].var(0)
            wrong = np.mean(np.unique(y)[answers.argmax(1)] != y[judges]) if labels == "classes" else off.mean()
            tried.append(wrong)
        errors.append(min(tried))
    assert np.allclose(found.left, left, rtol=1e-9)
    if y is None:
        assert found.errors is None
        falls = [a > 0.01 and b * 1.05 <= a for a, b in itertools.pairwise(left)] + [False]
        assert found.rank == found.ranks[falls.index(False)]
    else:
        assert found.errors is not None and np.allclose(found.errors, errors, rtol=1e-6)
        assert found.rank == found.ranks[int(np.argmin(np.round(errors, 12)))]


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
