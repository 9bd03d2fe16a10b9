"""Randomly pivoted and pivoted Cholesky, leverage scores, k-means, uniform draws, and "auto"."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf
from scipy.stats import chisquare
from sklearn.cluster import KMeans as Lloyd
from threadpoolctl import threadpool_limits

from pykernel import MercerKernel, select_basis
from pykernel.bases import baselines
from pykernel.bases.baselines import RandomlyPivotedCholesky, RidgeLeverage, Uniform, choose_method
from pykernel.errors import UserError
from pykernel.rows import as_rows

GAUSSIAN = MercerKernel("gaussian", gamma=0.5)
POLYNOMIAL = MercerKernel("polynomial", gamma=0.5, coef0=1.0, degree=3)  # in three inputs: of rank 20


def samples(count=60, dim=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dim))


def residual(gram, chosen):
    """K - K_:S K_SS^-1 K_S:"""
    chosen = list(chosen)
    return gram - gram[:, chosen] @ np.linalg.solve(gram[np.ix_(chosen, chosen)], gram[chosen])


def agrees(found, probabilities):
    """Whether outcomes are as frequent as they should be: chi square."""
    names, total = list(probabilities), sum(found.values())
    assert set(found) <= set(names)
    wanted = np.array([probabilities[name] for name in names]) * total
    return chisquare([found[name] for name in names], wanted * total / wanted.sum()).pvalue > 1e-3


# -------------------------------------------------------------------------------------------------- pivoted Cholesky


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("kernel", [GAUSSIAN, POLYNOMIAL])
@pytest.mark.parametrize("block, memory", [(1, 2**30), (4, 2**30), (4, 0)])
def test_pivots_are_drawn_in_proportion_to_the_residual(kernel, block, memory, exhaustive):
    """Ordered triples of five rows, two of them nearly the same, so that a stale residual would be far off."""
    x = np.array([[0.0], [0.02], [1.0], [-1.5], [1.4]])
    gram = kernel.gram(x, x)
    probabilities = {}
    for i, j, k in itertools.permutations(range(5), 3):
        first, second = gram.diagonal(), residual(gram, [i]).diagonal()
        third = residual(gram, [i, j]).diagonal()
        probabilities[i, j, k] = first[i] / first.sum() * second[j] / second.sum() * third[k] / third.sum()
    rows, found = as_rows(x), Counter()
    for seed in range(1000 if exhaustive else 600):
        selector = RandomlyPivotedCholesky(rows, kernel, 3, seed=seed, block=block, memory=memory)
        while selector.step():
            pass
        found[tuple(selector.basis().indices.tolist())] += 1
    # what is nearly impossible is left to one class
    rare = {name for name, p in probabilities.items() if p < 1e-3}
    merged = Counter({"rare": sum(found[name] for name in rare)})
    merged.update({name: n for name, n in found.items() if name not in rare})
    sums = {name: p for name, p in probabilities.items() if name not in rare}
    assert agrees(merged, sums | {"rare": sum(probabilities[name] for name in rare)})
    # and the test sees a residual that is one pivot old
    p = gram.diagonal() / gram.trace()
    stale = {(i, j): p[i] * p[j] / (1 - p[i]) for i, j in itertools.permutations(range(5), 2)}
    assert not agrees(Counter(triple[:2] for triple in found.elements()), stale)


@pytest.mark.parametrize("kernel", [GAUSSIAN, POLYNOMIAL])
def test_the_largest_residual_is_the_pivot_as_in_lapack(kernel):
    x, n = samples(120), 18
    found = select_basis(x, kernel, n, "pivoted-cholesky")
    gram = kernel.gram(x, x)
    first = 1 if kernel.unit else 0  # a unit diagonal is one tie, and LAPACK's choice another
    if first:
        assert found.indices[0] == 0
        gram = residual(gram, [0])[1:, 1:]
    factor, pivots, _, _ = dpstrf(gram, lower=True)
    assert (found.indices[first:] == pivots[: n - first] - 1 + first).all()
    lower = np.tril(factor)[: n - first, : n - first]
    np.testing.assert_allclose(found.factor[first:, first:], lower, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", ["rpcholesky", "pivoted-cholesky"])
@pytest.mark.parametrize("kernel", [GAUSSIAN, POLYNOMIAL])
def test_columns_that_do_not_fit_are_computed_anew(method, kernel, tmp_path):
    np.save(tmp_path / "x.npy", samples(3000))
    options = {"block": 5} if method == "rpcholesky" else {}
    kept, anew = (
        select_basis(tmp_path / "x.npy", kernel, 18, method, memory=memory, **options) for memory in (2**30, 0)
    )
    assert (kept.indices == anew.indices).all() and anew.evaluations > kept.evaluations
    np.testing.assert_allclose(kept.trace, anew.trace, rtol=1e-9)
    np.testing.assert_allclose(kept.factor, anew.factor, rtol=0, atol=1e-10 * np.abs(kept.factor).max())


def test_a_vector_takes_a_column_of_kernel_values():
    x = samples(4000)
    found = select_basis(x, GAUSSIAN, 50, "pivoted-cholesky")
    assert found.evaluations == 4000 * 50
    # proposals of a round know each other: 64 x 64 values
    found = select_basis(x, GAUSSIAN, 50, "rpcholesky")
    assert 4000 * 50 < found.evaluations <= 4000 * 50 + 50 * 64 * 64


def test_repeats_that_are_proposed_together_are_taken_once():
    x = np.repeat(samples(4), 25, axis=0)
    for seed in range(20):
        found = select_basis(x, GAUSSIAN, 9, "rpcholesky", seed=seed)
        assert found.stopped == "spanned" and len(found) == 4 and found.trace[-1] < 1e-12
        assert len(set((found.indices // 25).tolist())) == 4


# -------------------------------------------------------------------------------------------------- leverage scores


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


def test_exact_scores_of_too_many_rows_are_refused():
    x = np.zeros((10_001, 1))
    sentence = (
        "exact leverage scores of 10,001 rows would need 0.8 GB twice; they are for up to 10,000 rows: take exact=False, "
        "the recursion, or the method rpcholesky"
    )
    with pytest.raises(UserError, match=re.escape(sentence)):
        select_basis(x, GAUSSIAN, 3, "leverage", exact=True)
    assert len(select_basis(x, GAUSSIAN, 3, "leverage")) == 1  # all are the same row


def test_a_ridge_that_wants_too_large_a_sample_is_refused(monkeypatch):
    monkeypatch.setattr(baselines, "EXACT_LEVERAGE", 300)
    sentence = r"scores for a ridge of 1e-09 need a sample of \d+ rows, and 300 are the most: take a larger ridge"
    with pytest.raises(UserError, match=sentence):
        select_basis(samples(2000), GAUSSIAN, 10, "leverage", exact=False, ridge=1e-9)


# ---------------------------------------------------------------------------------------------------------- k-means


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


def test_centres_that_others_span_are_left_out():
    x = np.repeat(samples(5), 30, axis=0)
    found = select_basis(x, GAUSSIAN, 20, "k-means")
    assert len(found) == 5 and found.stopped == "spanned" and found.trace[-1] < 1e-9
    found = select_basis(samples(100), MercerKernel("linear"), 20, "k-means")
    assert len(found) == 3 and found.stopped == "spanned"


def test_mini_batches_are_nearly_as_good(monkeypatch, tmp_path):
    np.save(tmp_path / "x.npy", samples(3000))
    lloyd = select_basis(tmp_path / "x.npy", GAUSSIAN, 20, "k-means")
    monkeypatch.setattr(baselines, "LLOYD_NUMBERS", 0)
    monkeypatch.setattr(baselines, "BATCH_ROWS", 512)
    batches = select_basis(tmp_path / "x.npy", GAUSSIAN, 20, "k-means")
    uniform = select_basis(tmp_path / "x.npy", GAUSSIAN, 20, "uniform")
    assert lloyd.trace[-1] < 0.9 * uniform.trace[-1]
    assert batches.trace[-1] < 1.1 * lloyd.trace[-1] and batches.vectors.tobytes() != lloyd.vectors.tobytes()


# ------------------------------------------------------------------------------------------------ traces, estimated


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


def test_many_rows_are_traced_by_some(monkeypatch):
    monkeypatch.setattr(baselines, "TRACED_NUMBERS", 3000 * (3 + 5))
    assert select_basis(samples(3000), GAUSSIAN, 5, "uniform").exact
    found = select_basis(samples(3001), GAUSSIAN, 5, "uniform")
    assert found.exact  # 4,096 rows would be more than there are
    monkeypatch.setattr(baselines, "TRACED_ROWS", 100)
    assert not select_basis(samples(3001), GAUSSIAN, 5, "uniform").exact


def test_rows_that_are_spanned_are_passed_over():
    """99 of 100 are nothing new: candidates are looked at in growing batches until one is."""
    x = np.zeros((5000, 2))
    x[:50] = samples(50, dim=2)
    for method in ("uniform", "leverage"):
        found = select_basis(x, MercerKernel("linear"), 4, method)
        assert found.stopped == "spanned" and len(found) == 2 and (found.indices < 50).all()


@pytest.mark.parametrize("method", ["rpcholesky", "pivoted-cholesky", "uniform", "leverage", "k-means"])
def test_values_near_the_end_of_the_range(method):
    """Features and the trace scale with the kernel; where even its sum overflows, a sentence says so."""
    x, linear = samples(30, dim=2), MercerKernel("linear")
    found, large = (select_basis(scale * x, linear, 5, method, seed=1) for scale in (1.0, 2.0**500))
    assert len(found) == len(large) == 2 and large.stopped == "spanned"
    np.testing.assert_allclose(large.trace, found.trace, rtol=0, atol=1e-12)
    np.testing.assert_allclose(large.features(2.0**500 * x) / 2.0**500, found.features(x), rtol=0, atol=1e-12)
    with pytest.raises(UserError, match=r"overflow[^\n]*; inputs must be smaller: scale them"):
        select_basis(np.full((30, 1), 1.2e154), linear, 5, method)


# ------------------------------------------------------------------------------------------------------------- auto


@pytest.mark.parametrize(
    "arguments, options, method, why",
    [
        # the note's crossover: 506 rows, n > 8.6; 3,000 rows, n > 50.8
        ((506, 8), {}, "sgma", "8 vectors <= 506 rows / 59"),
        ((506, 9), {}, "exhaustive", "9 vectors > 506 rows / 59"),
        ((3000, 50), {}, "sgma", "50 vectors <= 3,000 rows / 59"),
        ((3000, 51), {}, "exhaustive", "51 vectors > 3,000 rows / 59"),
        ((590, 10), {}, "sgma", "10 vectors <= 590 rows / 59"),
        ((590, 11), {}, "exhaustive", "11 vectors > 590 rows / 59"),
        ((590, 10, 60), {}, "exhaustive", "10 vectors > 590 rows / 60"),
        ((590, 1, None), {}, "exhaustive", "all candidates are wanted"),
        # K and C fit: 8 l (l + n)
        ((1000, 100), {"memory": 8 * 1000 * 1100}, "exhaustive", "fits into 8.392 MB"),
        ((1000, 100), {"memory": 8 * 1000 * 1100 - 1}, "sgma", "the Gram matrix does not fit"),
        # the columns fit: 8 l (n + 2 x 59)
        ((100_000, 100), {"memory": 8 * 100_000 * 218}, "sgma", "100 + 2 x 59 columns of 100,000 rows fit"),
        ((100_000, 100), {"memory": 8 * 100_000 * 218 - 1}, "efvs", "100 + 2 x 59 columns of 100,000 rows do not fit"),
        ((10_000_000, 100), {}, "efvs", "columns of 10,000,000 rows do not fit into 1,024 MB"),
        # time
        ((506, 100), {"prefer": "time"}, "rpcholesky", "time matters"),
        ((1000, 100), {"prefer": "time", "memory": 800_000}, "rpcholesky", "100 columns of 1,000 rows fit"),
        ((1000, 100), {"prefer": "time", "memory": 799_999}, "efvs", "100 columns of 1,000 rows do not fit"),
        # no more vectors than rows
        ((50, 10**9), {}, "exhaustive", "50 vectors > 50 rows / 59"),
    ],
)
def test_auto_follows_its_rule_to_the_last_row(arguments, options, method, why):
    found, reason = choose_method(*arguments, **options)
    assert found == method and why in reason and "\n" not in reason


def test_auto_takes_what_it_says_and_is_the_same_basis():
    x = samples(200)
    for n, options, method in (
        (3, {}, "sgma"), (4, {}, "exhaustive"), (4, {"prefer": "time"}, "rpcholesky"), (4, {"memory": 8 * 200}, "efvs"),
    ):  # fmt: skip
        found = select_basis(x, GAUSSIAN, n, seed=2, **options)
        asked = select_basis(
            x, GAUSSIAN, n, method, seed=2, **({"memory": options["memory"]} if "memory" in options else {})
        )
        assert found.method == method == asked.method and asked.reason == ""
        assert found.reason == choose_method(200, n, **options)[1]
        assert found.indices.tobytes() == asked.indices.tobytes() and found.head(2).reason == found.reason


def test_fewer_kernel_values_beyond_the_crossover():
    """What the rule rests on: at n > l / 59 the recursion needs fewer kernel values than 59 columns for each vector."""
    x = samples(590)
    for n, better in ((9, "sgma"), (11, "exhaustive")):
        costs = {m: select_basis(x, GAUSSIAN, n, m, **({"memory": 8 * 590 * (n + 118)} if m == "sgma" else {})).evaluations
                 for m in ("sgma", "exhaustive")}  # fmt: skip
        assert min(costs, key=costs.get) == better


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
