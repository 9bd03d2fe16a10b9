"""Randomly pivoted and pivoted Cholesky, and "auto"."""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf
from scipy.stats import chisquare

from pykernel import MercerKernel, select_basis
from pykernel.bases.pivoted import RandomlyPivotedCholesky
from pykernel.bases.select import choose_method
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


@pytest.mark.in_turn(27)
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


@pytest.mark.parametrize("method", ["rpcholesky", "pivoted-cholesky"])
def test_values_near_the_end_of_the_range(method):
    """Features and the trace scale with the kernel; where even its sum overflows, a sentence says so."""
    x, linear = samples(30, dim=2), MercerKernel("linear")
    found, large = (select_basis(scale * x, linear, 5, method, seed=1) for scale in (1.0, 2.0**500))
    assert len(found) == len(large) == 2 and large.stopped == "spanned"
    np.testing.assert_allclose(large.trace, found.trace, rtol=0, atol=1e-12)
    np.testing.assert_allclose(large.features(2.0**500 * x) / 2.0**500, found.features(x), rtol=0, atol=1e-12)
    with pytest.raises(UserError, match=r"overflow[^\n]*; scale the inputs to smaller values"):
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
        ((590, 1, None), {}, "exhaustive", "every row is a candidate"),
        # K and C fit: 8 l (l + n)
        ((1000, 100), {"memory": 8 * 1000 * 1100}, "exhaustive", "fits into 8.392 MB"),
        ((1000, 100), {"memory": 8 * 1000 * 1100 - 1}, "sgma", "the Gram matrix does not fit"),
        # the columns fit: 8 l (n + 2 x 59)
        ((100_000, 100), {"memory": 8 * 100_000 * 218}, "sgma", "100 + 2 x 59 columns of 100,000 rows fit"),
        ((100_000, 100), {"memory": 8 * 100_000 * 218 - 1}, "efvs", "100 + 2 x 59 columns of 100,000 rows do not fit"),
        ((10_000_000, 100), {}, "efvs", "columns of 10,000,000 rows do not fit into 1,024 MB"),
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
        (3, {}, "sgma"), (4, {}, "exhaustive"), (4, {"memory": 8 * 200}, "efvs"),
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
