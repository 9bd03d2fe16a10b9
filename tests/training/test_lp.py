"""Linear programming machines: against the whole linear program, the KKT conditions, the bound, and hostile input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csc_array

from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.rows import as_rows
from pykernel.training import lp
from pykernel.training.lp import train
from pykernel.training.svm import ENOUGH, Dual
from tests.training.test_svm import KERNEL, samples

KERNELS = {
    "gaussian": KERNEL,
    "laplacian": MercerKernel("laplacian", gamma=0.5),
    "polynomial": MercerKernel("polynomial", gamma=0.5, coef0=1.0, degree=3),
}


def least(kernel: MercerKernel, x: np.ndarray, y: np.ndarray, h: np.ndarray, epsilon: float | None) -> float:
    """The optimum with the functions of all rows, by the primal: a+, a-, b, and a loss for each row.  Classes: epsilon is None."""
    k, l = kernel.gram(x, x), len(x)
    one, eye, zero = np.ones((l, 1)), np.eye(l), np.zeros((l, l))
    if epsilon is None:
        s = np.where(y > 0, 1.0, -1.0)[:, None]
        left, right, losses = np.hstack([-s * k, s * k, -s, -eye]), -np.ones(l), h
    else:
        above, below = np.hstack([-k, k, -one, -eye, zero]), np.hstack([k, -k, one, zero, -eye])
        left, right, losses = np.vstack([above, below]), np.concatenate([epsilon - y, epsilon + y]), np.tile(h, 2)
    cost = np.concatenate([np.ones(2 * l), [0.0], losses])
    bounds = [(0, None)] * (2 * l) + [(None, None)] + [(0, None)] * len(losses)
    found = linprog(cost, A_ub=csc_array(left), b_ub=right, bounds=bounds, method="highs-ipm")
    assert found.status == 0
    return float(found.fun)


def task(seed: int, c: float, weighted: bool, numbers: bool, count: int = 60) -> tuple[Any, ...]:
    """x, the targets, h, epsilon, and the dual."""
    x, y = samples(count, seed)
    h = c * (np.random.default_rng(seed).uniform(0.2, 3.0, count) if weighted else np.ones(count))
    if numbers:
        return x, y, h, 0.1, Dual.of_values(y, 0.1, h)
    kinds = (y > 0.2).astype(int)
    return x, kinds, h, None, Dual.of_classes(kinds, 2, h)[0]


def objective(dual: Dual, model: lp.SparseModel, x: np.ndarray) -> float:
    return float(np.abs(model.alpha).sum()) + dual.primal(0.0, model.predict(x)[:, 0])


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    c=st.sampled_from([0.05, 1.0, 20.0]),
    weighted=st.booleans(),
    numbers=st.booleans(),
    function=st.sampled_from(sorted(KERNELS)),
)
def test_what_enters_by_prices_is_the_whole_linear_program(
    seed: int, c: float, weighted: bool, numbers: bool, function: str
) -> None:
    kernel = KERNELS[function]
    x, y, h, epsilon, dual = task(seed, c, weighted, numbers)
    ours = train(x, kernel, [dual], first=8, tolerance=1e-5)
    theirs = least(kernel, x, y, h, epsilon)
    assert not ours.stopped and max(ours.rounds[-1].gap, ours.rounds[-1].excess) < 1e-5
    assert -1e-6 < (ours.rounds[-1].objective - theirs) / (theirs + dual.least) < 2e-5
    assert objective(dual, ours.model, x) == pytest.approx(ours.rounds[-1].objective, rel=1e-9)
    # the conditions of Karush, Kuhn and Tucker, written out
    beta, alpha, f = ours.beta[:, 0], ours.model.alpha[:, 0], ours.model.predict(x)[:, 0]
    assert abs(beta.sum()) < 1e-7 * h.sum() and np.abs(kernel.gram(x, x) @ beta).max() < 1 + 2e-5
    weighted_ones = alpha != 0
    price = kernel.gram(ours.model.vectors, x) @ beta
    np.testing.assert_allclose(price[weighted_ones], np.sign(alpha[weighted_ones]), atol=1e-5)
    # a row that costs has its whole weight in the dual, and one far from its margin none
    margin = y - f if numbers else np.where(y > 0, 1.0, -1.0)
    distance = np.abs(margin) - epsilon if numbers else 1 - margin * f
    near = 1e-5 * max(1.0, np.abs(f).max())
    assert np.abs(beta[distance > near]) == pytest.approx(h[distance > near], rel=1e-6)
    assert np.abs(beta[distance < -near]).max(initial=0.0) < 1e-6 * h.max()
    assert (np.sign(beta[distance > near]) == np.sign(margin[distance > near])).all()


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("function", ["gaussian", "polynomial"])
def test_the_excess_bounds_what_is_missing_to_the_whole_program(numbers: bool, function: str) -> None:
    """In each round, with a basis that was given, and with too few vectors; and no u gives a bound above the optimum."""
    kernel = KERNELS[function]
    x, y, h, epsilon, dual = task(3, 3.0, True, numbers, 150)
    theirs = least(kernel, x, y, h, epsilon)
    found = train(x, kernel, [dual], first=4, tolerance=1e-4, method="sgma")
    few = train(x, kernel, [dual], first=4, n_max=5, tolerance=1e-4)
    fixed = train(x, kernel, [dual], basis=select_basis(x, kernel, 6))
    assert len(found.rounds) > 3 and len(fixed.rounds) == 1
    for each in (*found.rounds, *few.rounds, *fixed.rounds):
        lost = (each.objective - theirs) / each.objective
        assert -1e-6 <= lost <= each.excess + 1e-6 and each.gap < ENOUGH
    assert found.rounds[0].excess > 100 * found.rounds[-1].excess
    assert few.rounds[-1].weighted <= 5 and few.reached.endswith("at most 5 vectors were allowed")
    assert few.rounds[-1].excess < 1.0 and fixed.reached.endswith("the basis was given, so it does not grow")
    # where the objective is a small part of that of f = 0
    *_, large = task(3, 1e4, True, numbers, 150)
    fixed = train(x, kernel, [large], basis=select_basis(x, kernel, 40))
    beta, value = fixed.beta[:, 0], fixed.rounds[-1].objective
    price = np.abs(kernel.gram(x, x) @ beta).max()
    u = np.maximum(large.sign * beta[large.rows], 0.0)
    assert fixed.rounds[-1].excess == pytest.approx(1 - large.dual(0.0, u) / max(1.0, price) / value, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(50):
        u = lp.feasible(dual, rng.uniform(-0.5, 1.5, len(dual.sign)) * dual.most * (rng.random(len(dual.sign)) < 0.5))
        beta = dual.beta(u)
        assert abs(beta.sum()) < 1e-9 * h.sum() and (u >= 0).all() and (u <= dual.most).all()
        price = np.abs(kernel.gram(x, x) @ beta)
        np.testing.assert_allclose(lp.prices(kernel, as_rows(x), beta), price, rtol=1e-9, atol=1e-9)
        assert dual.dual(0.0, u) / max(1.0, price.max()) <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_weight_is_as_so_many_rows(numbers: bool) -> None:
    x, y = samples(70, 12)
    times = np.random.default_rng(1).integers(1, 4, 70)
    again, labels = np.repeat(x, times, axis=0), np.repeat(y, times)
    if numbers:
        duals = [Dual.of_values(y, 0.1, 2.0 * times), Dual.of_values(labels, 0.1, 2.0)]
    else:
        duals = [
            Dual.of_classes((y > 0).astype(int), 2, 2.0 * times)[0],
            Dual.of_classes((labels > 0).astype(int), 2, 2.0)[0],
        ]
    once = train(x, KERNEL, [duals[0]], tolerance=1e-6)
    repeated = train(again, KERNEL, [duals[1]], tolerance=1e-6)
    # optima need not be unique: each is as good in the other's problem
    value = once.rounds[-1].objective
    assert repeated.rounds[-1].objective == pytest.approx(value, rel=1e-5)
    assert objective(duals[1], once.model, again) == pytest.approx(value, rel=1e-5)
    assert objective(duals[0], repeated.model, x) == pytest.approx(value, rel=1e-5)
    assert len(np.unique(repeated.model.vectors, axis=0)) == len(repeated.model.vectors)  # no row enters twice


def test_vectors_halve_until_they_are_few_enough() -> None:
    x, y = samples(200, 7)
    kinds = np.digitize(y, [-0.7, 0.7])
    duals = Dual.of_classes(kinds, 3, 1.0)
    whole, few = train(x, KERNEL, duals), train(x, KERNEL, duals, n_max=10)
    grown = list(whole.rounds)
    assert few.rounds[: len(grown)] == grown and len(whole.model.vectors) == 39
    vectors = whole.model.vectors
    for n in (19, 10):
        alone = [lp.solve(dual, KERNEL.gram(x, vectors)) for dual in duals]
        size = np.abs(np.column_stack([each.alpha for each in alone])).sum(axis=1)
        vectors = vectors[np.argsort(-size)[:n]]
    assert {*map(tuple, few.model.vectors)} <= {*map(tuple, vectors)}
    for o, dual in enumerate(duals):  # each function is the best on them
        best = lp.solve(dual, KERNEL.gram(x, vectors))
        ours = np.abs(few.model.alpha[:, o]).sum() + dual.primal(0.0, few.model.predict(x)[:, o])
        assert ours == pytest.approx(
            np.abs(best.alpha).sum() + dual.primal(0.0, KERNEL.gram(x, vectors) @ best.alpha + best.bias)
        )
    assert not few.good and whole.good


def test_nothing_enters_while_far_more_vectors_have_a_weight_than_are_allowed() -> None:
    x, y = samples(400, 3)
    dual = Dual.of_values(y, 0.01, 10.0)
    whole, few = train(x, KERNEL, [dual], first=8), train(x, KERNEL, [dual], first=8, n_max=6)
    weighted = [each.weighted for each in whole.rounds]
    end = next(k for k, n in enumerate(weighted) if n > lp.WIDER * 6) + 1
    assert few.rounds[:end] == whole.rounds[:end] and end < len(whole.rounds)
    after = [each.vectors for each in few.rounds[end:]]
    assert after == sorted(after, reverse=True) and after[-1] == 6
    assert few.stopped == "at most 6 vectors were allowed"


def test_left_out_rows_are_those_of_a_machine_without_them() -> None:
    x, y = samples(90, 4)
    dual, folds = Dual.of_values(y, 0.1, 1.0), np.arange(90) % 3
    whole = train(x, KERNEL, [dual], tolerance=1e-6)
    left = lp.left_out([dual], KERNEL, x, folds, start=whole.start, tolerance=1e-6)
    for fold in range(3):
        others = folds != fold
        mine = train(x[others], KERNEL, [dual.part(np.flatnonzero(others))], tolerance=1e-6)
        # the functions of rows that are left out may have a weight, too: as with other bases, these vectors stay
        assert np.abs(mine.model.predict(x[~others])[:, 0] - left[~others, 0]).mean() < 0.1 * y.std()
    kinds = (np.arange(90) == 7).astype(int)
    alone = lp.left_out(Dual.of_classes(kinds, 2, 1.0), KERNEL, x, np.arange(90) // 15)
    assert (alone[:15] == -1).all() and not (alone[15:] == -1).all()


def test_degenerate_rows() -> None:
    x, y = samples(60, 4)
    flat = train(x, KERNEL, [Dual.of_values(np.full(60, 3.0), 0.1, 5.0)])
    assert flat.good and len(flat.model.vectors) == 1 and np.abs(flat.model.predict(x) - 3.0).max() <= 0.1 + 1e-6
    same = train(np.zeros((61, 2)), KERNEL, [Dual.of_values(samples(61, 4)[1], 0.0, 5.0)])
    assert same.good and same.model.predict(np.zeros((1, 2)))[0, 0] == pytest.approx(np.median(samples(61, 4)[1]))
    two = train(np.array([[0.0], [9.0]]), KERNEL, Dual.of_classes(np.array([0, 1]), 2, 1e3), n_max=500)
    assert (two.model.predict(np.array([[0.0], [9.0]]))[:, 0] * [-1, 1] > 1 - 1e-6).all()
    # one vector has the sum of two equal ones' weights, and costs no more
    one = train(np.repeat(x, 2, axis=0), KERNEL, [Dual.of_values(np.repeat(y, 2), 0.1, 0.5)])
    assert len(np.unique(one.model.vectors, axis=0)) == len(one.model.vectors)


def test_ctrl_c_gives_the_last_whole_set() -> None:
    x, y = samples(300, 6)
    dual = Dual.of_classes((y > 0).astype(int), 2, 1.0)[0]
    told: list[str] = []

    def stop(part: float, words: str) -> None:
        told.append(words)
        if len(told) == 4:
            raise KeyboardInterrupt

    found = train(x, KERNEL, [dual], first=8, tolerance=1e-6, tell=stop)
    assert found.interrupted and len(found.rounds) == 2 and found.reached.endswith("it was interrupted")
    assert objective(dual, found.model, x) == pytest.approx(found.rounds[-1].objective)
    told = [""] * 2
    with pytest.raises(KeyboardInterrupt):
        train(x, KERNEL, [dual], first=8, tell=stop)


def test_bad_input_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = samples(20, 1)
    dual = Dual.of_values(y, 0.1, 1.0)
    for sentence, call in {
        "there are 19 rows, but a dual has 20": lambda: train(x[:19], KERNEL, [dual]),
        "there is no dual": lambda: train(x, KERNEL, []),
        "n_max is 0": lambda: train(x, KERNEL, [dual], n_max=0),
        "tolerance is 0": lambda: train(x, KERNEL, [dual], tolerance=0),
    }.items():
        with pytest.raises(UserError, match=sentence):
            call()
    monkeypatch.setattr(lp, "MOST", 100)
    assert train(x, KERNEL, [Dual.of_values(y, 0.0, 1e3)], first=4).reached.endswith("would take too much memory")


def test_hostile_scales_end_in_time() -> None:
    """A tiny or huge C, or labels of any size: an end with finite numbers, or a sentence."""
    x, y = samples(80, 9)
    for dual in (
        Dual.of_classes((y > 0).astype(int), 2, 1e-50)[0],
        Dual.of_classes((x[:, 0] > 0).astype(int), 2, 1e9)[0],
        Dual.of_values(1e9 * y, 0.1, 1.0),
        Dual.of_values(1e-9 * y, 0.0, 1.0),
        Dual.of_values(y, 1e8, 1.0),
        Dual.of_values(y, 0.0, 1e8),
    ):
        try:
            found = train(x, KERNEL, [dual], n_max=40)
        except UserError as error:
            assert "HiGHS cannot solve" in str(error)
            continue
        assert np.isfinite(found.model.alpha).all() and np.isfinite(found.model.bias).all()
        assert found.rounds[-1].gap <= ENOUGH or "rounding errors leave a relative duality gap" in found.reached
