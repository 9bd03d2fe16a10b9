"""What bases are compared with, in the benchmarks: leverage scores, k-means, uniform draws."""

import numpy as np
from sklearn.cluster import KMeans as Lloyd
from threadpoolctl import threadpool_limits

from benchmarks.papers.compared import RidgeLeverage, select_basis
from pykernel.rows import as_rows
from tests.bases.test_pivoted import GAUSSIAN, POLYNOMIAL, residual, samples


def test_exact_scores_are_what_they_are_defined_to_be():
    x = samples(150)
    for kernel in (GAUSSIAN, POLYNOMIAL):
        gram = kernel.gram(x, x)
        given = RidgeLeverage(as_rows(x), kernel, 10, ridge=0.3).exact_leverage()
        np.testing.assert_allclose(given, np.diag(gram @ np.linalg.inv(gram + 0.3 * np.eye(150))), rtol=0, atol=1e-9)
        by_itself = RidgeLeverage(as_rows(x), kernel, 10)
        rank = by_itself.rank
        assert rank == 2  # 10 / (4 log 10)
        ridge = np.linalg.eigvalsh(gram)[:-rank].sum() / rank
        wanted = np.diag(gram @ np.linalg.inv(gram + ridge * np.eye(150)))
        np.testing.assert_allclose(by_itself.exact_leverage(), wanted, rtol=1e-8)
        assert wanted.sum() <= 2 * rank


def test_centres_are_those_of_scikit_learn_in_the_order_of_their_gain():
    x = samples(400)
    found = select_basis(x, GAUSSIAN, 12, "k-means", seed=4)
    with threadpool_limits(1):
        lloyd = Lloyd(12, n_init=1, random_state=4).fit(x)
    assert found.stopped == "n_max" and (found.indices == -1).all()
    assert sorted(map(tuple, found.vectors)) == sorted(map(tuple, lloyd.cluster_centers_))
    # the weighted greedy order, by its definition
    weights = np.bincount(lloyd.labels_)[[(lloyd.cluster_centers_ == v).all(1).argmax() for v in found.vectors]]
    gram = GAUSSIAN.gram(found.vectors, found.vectors)
    for n in range(12):
        left = residual(gram, range(n)) if n else gram
        gains = [(weights * left[r] ** 2).sum() / left[r, r] for r in range(n, 12)]
        assert np.argmax(gains) == 0


def test_the_largest_residual_takes_outliers_first():
    x = samples(600, dim=2)
    x[::20] *= 20
    pivoted, uniform = (select_basis(x, GAUSSIAN, 20, method).trace[-1] for method in ("pivoted-cholesky", "uniform"))
    assert pivoted > uniform
