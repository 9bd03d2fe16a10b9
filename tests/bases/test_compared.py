"""What bases are compared with, in the benchmarks: leverage scores, k-means, uniform draws."""

import itertools
from collections import Counter

import numpy as np
import pytest
from sklearn.cluster import KMeans as Lloyd
from threadpoolctl import threadpool_limits

from benchmarks.papers import compared
from benchmarks.papers.compared import RidgeLeverage, Uniform, select_basis
from pykernel import MercerKernel
from pykernel.rows import as_rows
from tests.bases.test_pivoted import GAUSSIAN, POLYNOMIAL, agrees, residual, samples


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


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", [GAUSSIAN, POLYNOMIAL])
def test_scores_by_recursion_are_near_the_exact_ones(kernel):
    x = samples(1000)
    x[:30] *= 2  # some matter more
    gram = kernel.gram(x, x)
    n = 40 if kernel.unit else 10
    ridge = np.linalg.eigvalsh(gram)[:-n].sum() / n
    exact = RidgeLeverage(as_rows(x), kernel, n, exact=True, ridge=ridge).exact_leverage()
    for seed in range(3):
        selector = RidgeLeverage(as_rows(x), kernel, n, exact=False, ridge=ridge)
        found = selector.recursive_leverage(np.random.default_rng(seed))
        assert found.shape == (1000,) and (found > 0).all() and (found <= 1).all()
        ratio = found / exact
        # not much below, which is what the sample's guarantee rests on, and not many times too large
        assert ratio.min() > 0.5 and np.median(ratio) < 3 and np.corrcoef(found, exact)[0, 1] > 0.8
        assert selector.evaluations < 1000 * 1000


@pytest.mark.parametrize("kernel, weights", [(GAUSSIAN, "scores"), (GAUSSIAN, "equal")])
def test_draws_without_replacement_follow_their_probabilities(kernel, weights):
    x = np.array([[0.0], [0.02], [1.0], [5.0]])
    rows, found = as_rows(x), Counter()
    for seed in range(1000):
        if weights == "scores":
            order = RidgeLeverage(rows, kernel, 2, seed=seed, ridge=0.2).order[0]
        else:
            order = Uniform(rows, kernel, 2, seed=seed).order[0]
        found[tuple(order[:2].tolist())] += 1
    p = np.ones(4)
    if weights == "scores":
        gram = kernel.gram(x, x)
        p = np.diag(gram @ np.linalg.inv(gram + 0.2 * np.eye(4)))
    p = p / p.sum()
    assert agrees(found, {(i, j): p[i] * p[j] / (1 - p[i]) for i, j in itertools.permutations(range(4), 2)})


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


def test_mini_batches_are_nearly_as_good(monkeypatch, tmp_path):
    np.save(tmp_path / "x.npy", samples(3000))
    lloyd = select_basis(tmp_path / "x.npy", GAUSSIAN, 20, "k-means")
    monkeypatch.setattr(compared, "LLOYD_NUMBERS", 0)
    monkeypatch.setattr(compared, "BATCH_ROWS", 512)
    batches = select_basis(tmp_path / "x.npy", GAUSSIAN, 20, "k-means")
    uniform = select_basis(tmp_path / "x.npy", GAUSSIAN, 20, "uniform")
    assert lloyd.trace[-1] < 0.9 * uniform.trace[-1]
    assert batches.trace[-1] < 1.1 * lloyd.trace[-1] and batches.vectors.tobytes() != lloyd.vectors.tobytes()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("method", ["uniform", "leverage", "k-means"])
@pytest.mark.parametrize("kernel", [GAUSSIAN, POLYNOMIAL])
def test_an_estimated_trace_says_so_and_is_near(method, kernel):
    x = samples(3000)
    exact = (
        select_basis(x, kernel, 15, method, exact=False)
        if method == "leverage"
        else select_basis(x, kernel, 15, method)
    )
    options = {"exact": False} if method == "leverage" else {}
    some = select_basis(x, kernel, 15, method, traced=400, **options)
    assert exact.exact and not some.exact and some.evaluations < exact.evaluations
    if method != "k-means":  # the order of centres goes by the rows that are traced
        assert (some.indices == exact.indices).all()
        assert 0 < np.abs(some.trace - exact.trace)[1:].max() < 0.1
    else:
        assert abs(some.trace[-1] - exact.trace[-1]) < 0.1
    # tau goes by the estimate
    early = select_basis(x, kernel, 15, method, traced=400, tau=some.trace[5] * (1 + 1e-9), **options)
    if method == "uniform":
        assert early.stopped == "tau" and len(early) == 5 and not early.exact


def test_on_real_data_each_is_where_docs_have_it():
    """Digits, 2 sigma^2 = 0.5 d: no basis is below the limit; one of the data's rows is at best the exhaustive one."""
    from sklearn.datasets import load_digits

    x = load_digits().data[:600]
    kernel = MercerKernel("gaussian", gamma=1 / (0.5 * 64 * x.var()))
    gram = kernel.gram(x, x)
    limit = np.linalg.eigvalsh(gram)[:-50].sum() / gram.trace()
    methods = ("k-means", "exhaustive", "sgma", "efvs", "rpcholesky", "uniform")
    mean = [np.mean([select_basis(x, kernel, 50, m, seed=seed).trace[-1] for seed in range(4)]) for m in methods]
    assert limit < mean[0] and mean == sorted(mean)


def test_the_largest_residual_takes_outliers_first():
    x = samples(600, dim=2)
    x[::20] *= 20
    pivoted, uniform = (select_basis(x, GAUSSIAN, 20, method).trace[-1] for method in ("pivoted-cholesky", "uniform"))
    assert pivoted > uniform
