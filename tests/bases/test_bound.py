"""Stopping by a bound: what it promises is kept, where the estimate's word is not, and it is no looser than it must be."""

import math

import numpy as np
import pytest

from pykernel import MercerKernel, select_basis
from pykernel.bases import bound as bounding
from pykernel.bases.bound import SLACK, Watch, part_bound, relative_entropy, rows_needed
from pykernel.errors import UserError
from pykernel.rows import as_rows

KERNELS = {
    "gaussian": MercerKernel("gaussian", gamma=0.5),
    "polynomial": MercerKernel("polynomial", gamma=0.1, coef0=1.0, degree=4),
}


def samples(count=4500, seed=0):
    """Some clusters and rows far from them, which are what a few points do not see."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(8, 3))[rng.integers(8, size=count)] + 0.3 * rng.normal(size=(count, 3))
    x[::20] *= 3
    return x


X = samples()


def left_out(basis, x):
    """tr R / tr K over all rows, from the definition."""
    diagonal = basis.kernel.diagonal(x)
    return float(diagonal @ basis.residual(x) / diagonal.sum())


# ----------------------------------------------------------------------------------------------------------- the bound


@pytest.mark.parametrize("m", [1, 59, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_bound_is_where_the_relative_entropy_reaches_its_limit(m, confidence):
    for mean in (0.0, 0.003, 0.2, 0.9):
        bound = part_bound(mean, m, confidence)
        assert mean < bound <= 1
        limit = -math.log1p(-confidence) / m
        # near 1 neighbouring numbers are far from each other in entropy
        assert relative_entropy(mean, np.nextafter(bound, 0)) * (1 - 1e-9) <= limit
        assert limit <= relative_entropy(mean, np.nextafter(bound, 1)) * (1 + 1e-9)
    assert part_bound(0.0, m, confidence) == pytest.approx(1 - (1 - confidence) ** (1 / m))
    assert part_bound(1.0, m, confidence) == 1


@pytest.mark.parametrize("tau", [0.5, 0.1, 0.01])
def test_so_many_rows_are_needed_that_a_mean_a_little_below_tau_proves_it(tau):
    m = rows_needed(tau, 0.95)
    assert part_bound(SLACK * tau, m, 0.95) <= tau
    assert part_bound(SLACK * tau, m - 1, 0.95) > tau


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_looking_after_each_vector_costs_no_confidence(confidence):
    """The theorem by itself, 20,000 times: residuals that fall are seen on drawn rows, and the first bound below tau stops.

    The naive rule, the first mean below tau, breaks the promise in about half of all cases.
    """
    rng = np.random.default_rng(1)
    # rows x vectors: each row falls from 1, some of them late
    falls = np.exp(-np.cumsum(rng.exponential(0.25, (500, 40)) * (rng.random((500, 1)) < 0.8) + 0.02, axis=1))
    truth = falls.mean(axis=0)
    assert (np.diff(truth) < 0).all()
    tau, m = float(truth[20]) * (1 - 1e-9), 80  # the hardest: true from the vector after on
    wrong, naive, runs = 0, 0, 20_000
    limit = np.array([part_bound(s, m, confidence) for s in np.linspace(0, 1, 2001)])
    proof = float(np.linspace(0, 1, 2001)[limit <= tau].max())  # a mean at most this proves tau
    for some in np.array_split(rng.integers(len(falls), size=(runs, m)), 200):
        means = falls[some].mean(axis=1)
        for low, kind in ((means <= proof, "bound"), (means <= tau, "naive")):
            stops = np.where(low.any(axis=1), low.argmax(axis=1), len(truth) - 1)
            late = int((truth[stops] > tau).sum())
            wrong, naive = (wrong + late, naive) if kind == "bound" else (wrong, naive + late)
    assert wrong / runs <= 1 - confidence
    assert wrong > 0  # the bound is not so far off that nothing is tested
    assert naive / runs > 0.3


# --------------------------------------------------------------------------------------------------------- the product


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_proven_is_true_and_what_is_estimated_is_not(kernel):
    """Of both kernels, by the method that sees the fewest rows: tr R / tr K where the choice stopped."""
    k, tau, wrong, naive, runs = KERNELS[kernel], 0.25 if kernel == "gaussian" else 0.1, 0, 0, 15
    for seed in range(runs):
        options = {"method": "efvs", "seed": seed, "points": 20, "candidates": 20, "lazy": True, "tau": tau}
        proven = select_basis(X, k, 100, confidence=0.9, **options)
        assert proven.stopped == "tau" and not proven.exact and proven.bound == tau
        wrong += left_out(proven, X) > tau
        assert left_out(proven, X) > tau / 4  # it does stop
        naive += left_out(select_basis(X, k, 100, **options), X) > tau
    assert wrong / runs <= 0.1
    # the other kernel's vectors are worth so much each that tau is passed far
    assert naive / runs > 0.3 or kernel == "polynomial"


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("points", [59, 20])
def test_the_trace_is_that_of_rows_drawn_by_their_kernel_value(kernel, points):
    k = KERNELS[kernel]
    basis = select_basis(X, k, 9, "efvs", tau=0.1, confidence=0.9, lazy=True, points=points)
    assert basis.stopped == "n_max" and basis.bound > 0.1
    watch = Watch(as_rows(X), k, 9, 0.1, 0.9, 0)
    watch.follow(basis)
    assert len(watch.x) == rows_needed(0.1, 0.9)
    for n in (1, 5, 9):
        assert basis.trace[n] == pytest.approx(basis.head(n).residual(watch.x).mean(), abs=1e-9)
        assert abs(basis.trace[n] - left_out(basis.head(n), X)) < 0.05
    assert basis.bound == part_bound(basis.trace[-1], len(watch.x), 0.9)
    # rows are drawn as often as k(x, x) says
    drawn = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in watch.x])
    weights = k.diagonal(X) / k.diagonal(X).sum()
    heavy = weights > np.median(weights) if kernel == "polynomial" else np.arange(len(X)) < len(X) // 2
    expected = weights[heavy].sum()
    assert abs(heavy[drawn].mean() - expected) < 4 * math.sqrt(expected * (1 - expected) / len(drawn)) + 1e-9


def test_where_the_trace_is_known_it_is_compared():
    for method, x in (("exhaustive", X[:300]), ("efvs", X[:300]), ("rpcholesky", X)):
        known = select_basis(x, KERNELS["gaussian"], 200, method, tau=0.2, confidence=0.95)
        plain = select_basis(x, KERNELS["gaussian"], 200, method, tau=0.2)
        assert known.exact and known.stopped == "tau" and known.trace[-1] <= 0.2 < known.trace[-2]
        assert known.bound == known.trace[-1] and known.indices.tolist() == plain.indices.tolist()
    few = select_basis(X[:300], KERNELS["gaussian"], 200, "efvs", tau=0.2, confidence=0.95, lazy=True)
    # 2,335 rows are needed, and all are 300
    assert few.exact and few.trace[-1] == pytest.approx(left_out(few, X[:300]))


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"confidence": 0.9}, "confidence has no effect while tau is 0"),
        ({"confidence": 1, "tau": 0.1}, "confidence is 1; it must be a number above 0"),
        ({"confidence": "high", "tau": 0.1}, "confidence is 'high'"),
        ({"confidence": 0.9, "tau": 0.1, "swaps": 1}, "swaps does not go with confidence"),
        # all rows are needed: nothing to refuse
        (
            {"confidence": 0.95, "tau": 1e-6, "method": "efvs", "lazy": True},
            None,
        ),
    ],
)
def test_bad_input_gets_a_sentence(options, sentence):
    if sentence is None:
        assert select_basis(X, KERNELS["gaussian"], 5, **options).exact
        return
    with pytest.raises(UserError, match=sentence):
        select_basis(X, KERNELS["gaussian"], 5, **options)


def test_memory_is_kept_to(monkeypatch):
    """Fewer rows prove less, and later; too few prove nothing, and are refused."""
    rows, kernel = as_rows(X), KERNELS["gaussian"]
    assert len(Watch(rows, kernel, 100, 0.25, 0.95, 0)._draw()) == rows_needed(0.25, 0.95)
    least = rows_needed(0.25, 0.95, 0.5)
    monkeypatch.setattr(bounding, "MEMORY", 8 * 103 * 2 * least)
    assert len(Watch(rows, kernel, 100, 0.25, 0.95, 0)._draw()) == 2 * least
    monkeypatch.setattr(bounding, "MEMORY", 8 * 103 * least - 1)
    with pytest.raises(
        UserError,
        match=r"rows that are needed to prove that the part left out is at most tau = 0.25 takes 0 MB, .*take a larger tau, or fewer vectors",
    ):
        select_basis(X, kernel, 100, "efvs", tau=0.25, confidence=0.95, lazy=True)
