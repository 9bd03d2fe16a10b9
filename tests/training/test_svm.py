"""Support vector machines by interior points on a greedy basis: against LIBSVM, the KKT conditions, and hostile input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR

from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.training import svm
from pykernel.training.svm import Dual, train

KERNEL = MercerKernel("gaussian", gamma=0.5)
RANK: dict[str, Any] = {"method": "pivoted-cholesky", "epsilon": 1e-13, "tolerance": 1e-3}


def samples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3))
    x[-4:] = x[:4]
    return x, np.sin(2 * x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=count)


def whole(x: np.ndarray, dual: Dual) -> svm.Trained:
    """On a basis of all rows that are not spanned."""
    return train(x, KERNEL, [dual], n_max=len(x), first=len(x), **RANK)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    c=st.sampled_from([0.05, 1.0, 20.0]),
    weighted=st.booleans(),
    numbers=st.booleans(),
)
def test_on_a_whole_basis_it_is_libsvm(seed: int, c: float, weighted: bool, numbers: bool) -> None:
    """Objective, functions and support vectors, within what LIBSVM's tolerance of 1e-7 allows."""
    x, y = samples(120, seed)
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, len(x)) if weighted else np.ones(len(x))
    new, _ = samples(50, seed + 1)
    if numbers:
        dual = Dual.of_values(y, 0.1, c * weights)
        theirs = SVR(C=c, gamma=0.5, epsilon=0.1, tol=1e-7).fit(x, y, sample_weight=weights)
        asked = theirs.predict
    else:
        kinds = (y > 0.2).astype(int)
        dual = Dual.of_classes(kinds, 2, c * weights)[0]
        theirs = SVC(C=c, gamma=0.5, tol=1e-7).fit(x, kinds, sample_weight=weights)
        asked = theirs.decision_function
    ours = whole(x, dual)
    assert ours.good and ours.rounds[-1].excess < 1e-6
    # two functions whose objectives differ by e are within sqrt(2 e) of each other in the kernel's space
    near = 3 * np.sqrt(2 * 1e-9 * ours.rounds[-1].objective) + 1e-5
    free = bool(np.any(np.abs(theirs.dual_coef_) < 0.999 * c * weights[theirs.support_]))
    gaps = ours.model.predict(new)[:, 0] - asked(new)
    assert np.ptp(gaps) < 2 * near  # without a free vector any b of an interval is as good
    if free:
        assert np.abs(gaps).max() < 2 * near
    square = float(theirs.dual_coef_[0] @ (asked(x[theirs.support_]) - theirs.intercept_[0]))
    # LIBSVM keeps kernel values in float32
    lost = dual.primal(square, asked(x)) / ours.rounds[-1].objective - 1
    assert -1e-8 < lost < 2e-5
    coefficients = np.zeros(len(x))
    coefficients[theirs.support_] = theirs.dual_coef_[0]
    same = np.arange(4, len(x) - 4)  # equal rows may share their weight in any way; small changes are nearly as good
    assert np.abs(ours.beta[same, 0] - coefficients[same]).max() < 2e-2 * c * weights.max()
    far = same[(np.abs(coefficients[same]) > 1e-2 * c) | (coefficients[same] == 0)]
    wrong = np.count_nonzero((ours.beta[far, 0] != 0) != (coefficients[far] != 0))
    assert wrong <= 2  # those on the margin with almost no weight


def test_three_classes_are_each_against_the_others() -> None:
    x, y = samples(150, 5)
    kinds = np.digitize(y, [-0.7, 0.7])
    ours = train(x, KERNEL, Dual.of_classes(kinds, 3, 2.0), n_max=150, first=150, **RANK)
    for k in range(3):
        theirs = SVC(C=2.0, gamma=0.5, tol=1e-7).fit(x, kinds == k)
        assert ours.model.predict(x)[:, k] == pytest.approx(theirs.decision_function(x), abs=2e-3)


@pytest.mark.parametrize("numbers", [False, True])
def test_the_excess_bounds_what_a_coarse_basis_costs(numbers: bool) -> None:
    """The machine's optimum is known from a whole basis; the bound holds for each basis, and the residual is LIBSVM's."""
    x, y = samples(300, 8)
    dual = Dual.of_values(y, 0.1, 2.0) if numbers else Dual.of_classes((y > 0).astype(int), 2, 2.0)[0]
    least = whole(x, dual).rounds[-1].objective
    found = train(x, KERNEL, [dual], n_max=256, first=8, tolerance=1e-2, method="sgma", epsilon=1e-12)
    assert [each.vectors for each in found.rounds] == [8, 16, 32, 64, 128, 256][: len(found.rounds)] and len(
        found.rounds
    ) > 3
    for each in found.rounds:
        lost = (each.objective - least) / each.objective
        assert -1e-8 <= lost <= each.excess + 1e-9 and each.gap <= svm.GAP
    assert (
        found.rounds[0].excess > 10 * found.rounds[-1].excess and found.rounds[-1].residual < found.rounds[0].residual
    )
    # the residual, written out: m - M of LIBSVM
    beta, last = found.beta[:, 0], found.rounds[-1]
    f = KERNEL.gram(x, x) @ beta
    u = found.solutions[0].settled(dual)
    border = -dual.sign * dual.cost - f[dual.rows]
    up = np.where(dual.sign > 0, u < dual.most, u > 0)
    down = np.where(dual.sign > 0, u > 0, u < dual.most)
    assert last.residual == pytest.approx(max(0.0, border[up].max() - border[down].min()) / dual.unit, abs=1e-9)
    assert last.residual <= 1e-2 and found.good and "KKT residual on all 300 rows" in found.reached


def test_a_start_from_the_last_solution_saves_steps() -> None:
    x, y = samples(600, 2)
    dual = Dual.of_classes((y > 0).astype(int), 2, 1.0)[0]
    before = svm.solve(dual, svm.FeatureRows(select_basis(x, KERNEL, 128), x))
    features = svm.FeatureRows(select_basis(x, KERNEL, 256), x)
    cold, warm = svm.solve(dual, features), svm.solve(dual, features, before)
    assert warm.steps < cold.steps and warm.gap <= svm.GAP
    assert dual.beta(warm.u) == pytest.approx(dual.beta(cold.u), abs=1e-2)


def test_on_drawn_rows_the_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = samples(400, 3)
    dual = Dual.of_classes((y > 0).astype(int), 2, 1.0)[0]
    on_all = train(x, KERNEL, [dual], n_max=32, tolerance=1e-4)
    monkeypatch.setattr(svm, "JUDGES", 0)
    monkeypatch.setattr(svm, "DRAWN", 200)
    found = train(x, KERNEL, [dual], n_max=32, tolerance=1e-4)
    assert "on 200 of 400 rows, drawn at random" in found.reached and "at most 32 vectors were allowed" in found.reached
    assert found.rounds[-1].residual <= on_all.rounds[-1].residual
    assert found.rounds[-1].excess == pytest.approx(on_all.rounds[-1].excess, rel=0.5)


def test_degenerate_rows() -> None:
    x, _ = samples(60, 4)
    # constant labels: the function is that number, within the tube, and no row is a support vector
    flat = train(x, KERNEL, [Dual.of_values(np.full(60, 3.0), 0.1, 5.0)])
    assert flat.good and np.abs(flat.model.predict(x) - 3.0).max() <= 0.1 + 1e-6 and not flat.beta.any()
    almost = train(x, KERNEL, [Dual.of_values(3.0 + 1e-15 * np.arange(60), 0.1, 5.0)])
    assert almost.good and np.abs(almost.model.predict(x) - 3.0).max() <= 0.1 + 1e-6
    # equal rows: one vector; a median of the labels is the best constant
    same = train(np.zeros((61, 2)), KERNEL, [Dual.of_values(samples(61, 4)[1], 0.0, 5.0)])
    assert len(same.model.basis) == 1 and same.good
    assert same.model.predict(np.zeros((1, 2)))[0, 0] == pytest.approx(np.median(samples(61, 4)[1]), abs=1e-3)
    # the same row in both classes, most often in class 1
    mixed = train(np.zeros((30, 2)), KERNEL, Dual.of_classes(np.arange(30) % 3 > 0, 2, 1.0))
    assert mixed.good and mixed.model.predict(np.zeros((1, 2)))[0, 0] == pytest.approx(1.0, abs=1e-6)
    # two rows, and fewer rows than vectors
    two = train(np.array([[0.0], [9.0]]), KERNEL, Dual.of_classes(np.array([0, 1]), 2, 1e3), n_max=500)
    assert (
        two.model.predict(np.array([[0.0], [9.0]]))[:, 0] == pytest.approx([-1, 1], abs=1e-4)
        and len(two.model.basis) == 2
    )


def test_a_fold_without_a_class_is_decided_by_the_other() -> None:
    x, _ = samples(20, 1)
    dual = Dual.of_classes((np.arange(20) == 7).astype(int), 2, 1.0)[0]
    folds = np.arange(20) // 4
    left = svm.left_out([dual], select_basis(x, KERNEL, 10), x, folds)
    assert (left[4:8] == -1).all() and not (left[:4] == -1).any()


def test_ctrl_c_gives_the_last_whole_basis() -> None:
    x, y = samples(300, 6)
    dual = Dual.of_classes((y > 0).astype(int), 2, 1.0)[0]

    def stop(part: float, words: str) -> None:
        if words == "training with 16 vectors" and part > 0.3:
            raise KeyboardInterrupt

    found = train(x, KERNEL, [dual], first=8, tolerance=1e-6, tell=stop)
    assert found.interrupted and len(found.model.basis) == 8 and found.reached.endswith("it was interrupted")
    with pytest.raises(KeyboardInterrupt):
        train(x, KERNEL, [dual], first=16, tolerance=1e-6, tell=stop)


def test_bad_input_gets_a_sentence() -> None:
    x, y = samples(20, 1)
    dual = Dual.of_values(y, 0.1, 1.0)
    for sentence, call in {
        "targets have the shape": lambda: Dual.of_values(y[:, None], 0.1, 1.0),
        "C times a weight is 1e.12; it must be from 1e-50 to 1e.09": lambda: Dual.of_classes(
            np.arange(20) % 2, 2, 1e12
        ),
        "C times a weight is 1e-60; it must be from": lambda: Dual.of_classes(np.arange(20) % 2, 2, 1e-60),
        "epsilon is 1e.300; it must be a number from 0 to": lambda: Dual.of_values(y, 1e300, 1.0),
        "epsilon is -1; it must be a number from 0": lambda: Dual.of_values(y, -1.0, 1.0),
        "C times a weight is 0; it must be above 0": lambda: Dual.of_values(y, 0.1, 0.0),
        "must be finite numbers": lambda: Dual.of_values(np.where(y > 0, y, np.nan), 0.1, 1.0),
        "class 1 has none of the rows": lambda: Dual.of_classes(np.zeros(20, int), 2, 1.0),
        "there are 19 rows, but a dual has 20": lambda: train(x[:19], KERNEL, [dual]),
        "there is no dual": lambda: train(x, KERNEL, []),
        "n_max is 0": lambda: train(x, KERNEL, [dual], n_max=0),
        "tolerance is 0": lambda: train(x, KERNEL, [dual], tolerance=0),
    }.items():
        with pytest.raises(UserError, match=sentence):
            call()


def test_hostile_scales_end_in_time() -> None:
    """A tiny or huge C, or labels of any size: an end with finite numbers, and a sentence if rounding decided."""
    x, y = samples(80, 9)
    for dual in (
        Dual.of_classes((y > 0).astype(int), 2, 1e-50)[0],
        Dual.of_classes((x[:, 0] > 0).astype(int), 2, 1e9)[0],
        Dual.of_values(1e9 * y, 0.1, 1.0),
        Dual.of_values(1e-9 * y, 0.0, 1.0),
        Dual.of_values(y, 1e8, 1.0),
    ):
        found = train(x, KERNEL, [dual], n_max=40)
        assert np.isfinite(found.model.alpha).all() and np.isfinite(found.model.bias).all()
        assert found.rounds[-1].gap <= svm.ENOUGH or "the interior-point method stopped" in found.reached
