"""Estimators of support vector machines: what they say of themselves, and the way to the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC, SVR

from pykernel import HostModel, SupportVectorClassifier, SupportVectorRegressor, check, select_basis
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.estimators import svm
from pykernel.importers.importing import compare
from pykernel.workflows import svm as fit_svm
from tests.support import ROOT
from tests.support.compilers import in_one_build

PAGE = ROOT / "docs" / "support-vectors.md"
KINDS = (SupportVectorRegressor, SupportVectorClassifier)


def samples(classes: int = 0, n: int = 150, seed: int = 0) -> tuple[np.ndarray, Any]:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    y = np.sin(2 * x[:, 0]) + x[:, 1] + 0.2 * np.random.default_rng(seed + 1).normal(size=n)
    if classes:
        return x, np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5]) if classes == 3 else (y > 0.3).astype(int)]
    return x, y


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", ["float32", "float64", "int16"])
@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_device_says_what_the_estimator_says(penalty: str, classes: int, precision: str, exhaustive: bool) -> None:
    """Its answers within the bound of rounding, its probabilities; and the C computes the host's bytes."""
    x, y = samples(classes)
    model = KINDS[classes > 0](sigma=1.0, cv=2, basis=20, penalty=penalty).fit(x, y)
    spec = model.to_spec("m", precision=precision)
    kept = np.count_nonzero(model.alpha_.any(axis=1))
    assert len(spec.expansion.vectors) == len(model.basis_) == kept <= 20  # type: ignore[attr-defined]
    assert compare(spec, model.__pykernel_machine__(), model, x)["ok"]
    if classes and precision != "int16":
        assert np.abs(np.asarray(HostModel(spec).probability(x)) - model.predict_proba(x)).max() < 1e-3
    assert (check if exhaustive else in_one_build)(spec, samples=300).ok


def test_on_a_basis_that_grows_it_is_scikit_learns() -> None:
    """With a small tolerance; C, epsilon and weights mean the same."""
    x, y = samples()
    weights = np.random.default_rng(3).integers(0, 3, len(x)).astype(float)
    grown: dict[str, Any] = {"sigma": 1.0, "tol": 1e-4, "cv": 2, "basis_params": {"epsilon": 1e-13}}
    ours = SupportVectorRegressor(C=3.0, epsilon=0.2, **grown).fit(x, y, weights)
    theirs = SVR(C=3.0, epsilon=0.2, gamma=0.5, tol=1e-6).fit(x[weights > 0], y[weights > 0], weights[weights > 0])
    assert ours.predict(x) == pytest.approx(theirs.predict(x), abs=2e-3)
    assert (
        set(ours.support_) == set(np.flatnonzero(weights)[theirs.support_]) and not ours.dual_coef_[weights == 0].any()
    )
    repeated = SupportVectorRegressor(C=3.0, epsilon=0.2, **grown).fit(
        *(np.repeat(a, weights.astype(int), axis=0) for a in (x, y))
    )
    assert repeated.predict(x) == pytest.approx(ours.predict(x), abs=1e-3)
    assert ours.rounds_[0]["vectors"] == 64 and ours.rounds_[-1]["residual"] <= 1e-4
    x, y = samples(2)
    ours_too = SupportVectorClassifier(C=3.0, **grown).fit(x, y)
    theirs_too = SVC(C=3.0, gamma=0.5, tol=1e-6).fit(x, y)
    assert ours_too.decision_function(x) == pytest.approx(theirs_too.decision_function(x), abs=2e-3)
    np.testing.assert_allclose(ours_too.dual_coef_[theirs_too.support_].T, theirs_too.dual_coef_, atol=1e-2)


def test_a_1_norm_leaves_the_vectors_with_a_weight() -> None:
    """Rows of the data, of which ``basis`` says the most; weights of samples, several functions, and what it has not."""
    x, y = samples(2, 300)
    free = SupportVectorClassifier(sigma=1.0, penalty="l1", tol=1e-3).fit(x, y)
    few = SupportVectorClassifier(sigma=1.0, penalty="l1", tol=1e-3, basis=9).fit(x, y)
    assert len(few.basis_) <= 9 < len(free.basis_) < 100 and {*map(tuple, free.basis_)} <= {*map(tuple, x)}
    assert free.rounds_[-1]["weighted"] == len(free.basis_) and free.rounds_[-1]["excess"] < 1e-3
    new, labels = samples(2, 2000, seed=5)
    error = float(np.mean(free.predict(new) != labels))
    assert abs(error - free.cv_error_) < 0.06 and np.mean(few.predict(new) != labels) < error + 0.04
    assert free.reduced_ is None
    chosen = SupportVectorClassifier(sigma=[0.05, 1.0, 50.0], C=[0.01, 1.0], penalty="l1", cv=3, basis=9).fit(x, y)
    assert (chosen.sigma_, chosen.C_) == (1.0, 1.0) and len(chosen.candidates_) == 6
    numbers = samples()
    both = SupportVectorRegressor(sigma=1.0, penalty="l1", basis=12).fit(
        numbers[0], np.column_stack([numbers[1], -2 * numbers[1]])
    )
    assert both.predict(x).shape == (300, 2) and both.to_spec("m").outputs == 2 and len(both.basis_) <= 12
    # the functions of other vectors only
    given = SupportVectorRegressor(sigma=1.0, penalty="l1", basis=x[:7]).fit(*numbers)
    assert {*map(tuple, given.basis_)} <= {*map(tuple, x[:7])} and "the basis was given" in given.reached_
    weights = np.random.default_rng(3).integers(0, 3, 150)
    exact: dict = {"sigma": 1.0, "penalty": "l1", "tol": 1e-6, "cv": 2}
    weighted = SupportVectorRegressor(**exact).fit(*numbers, weights)
    repeated = SupportVectorRegressor(**exact).fit(*(np.repeat(a, weights, axis=0) for a in numbers))
    assert repeated.rounds_[-1]["objective"] == pytest.approx(weighted.rounds_[-1]["objective"], rel=1e-5)
    assert not weighted.dual_coef_[weights == 0].any()


def test_widths_and_c_are_chosen_on_samples_left_out() -> None:
    x, y = samples(2, 300)
    model = SupportVectorClassifier(sigma=[0.05, 1.0, 50.0], C=[0.01, 10.0]).fit(x, y)
    assert len(model.candidates_) == 6 and (model.sigma_, model.C_) == (1.0, 10.0)
    errors = [cell["error"] for cell in model.candidates_]
    assert errors == sorted(errors) and errors[0] < 0.15 < errors[-1]
    new, labels = samples(2, 2000, seed=5)
    error = float(np.mean(model.predict(new) != labels))
    assert abs(error - model.cv_error_) < 0.06
    # probabilities are of samples left out: not surer than they are right
    sure = model.predict_proba(new).max(axis=1)
    assert abs(sure.mean() - (1 - error)) < 0.06


def test_a_basis_that_is_given_stays() -> None:
    x, y = samples()
    kernel = MercerKernel("laplacian", gamma=0.5)
    chosen = select_basis(x, kernel, 12)
    model = SupportVectorRegressor(basis=chosen).fit(x, y)
    assert model.reduced_.basis is chosen and model.reached_.endswith("the basis was given, so it does not grow")
    by_position = SupportVectorRegressor(kernel, basis=chosen.indices).fit(x, y)
    assert by_position.predict(x) == pytest.approx(model.predict(x), abs=1e-6)
    both = SupportVectorRegressor(kernel, basis=12).fit(x, np.column_stack([y, -2 * y]))
    assert both.predict(x).shape == (150, 2) and both.to_spec("m").outputs == 2


def test_too_few_vectors_are_told_and_bad_input_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = samples(2)
    monkeypatch.setattr(svm, "MOST", 16)
    with pytest.warns(
        UserWarning, match="SupportVectorClassifier: with 16 vectors the KKT residual on all 150 rows is"
    ):
        SupportVectorClassifier(sigma=0.3).fit(x, y)
    for parameters, sentence in (
        ({"C": 0.0}, "C is 0.0; it must be a number above 0, or a sequence"),
        ({"C": None}, "C is None; it must be"),
        ({"penalty": "l0"}, 'penalty is \'l0\'; it must be "l1" or "l2"'),
        ({"penalty": "l1", "kernel": "sigmoid"}, "the sigmoid kernel is not positive definite"),
        ({"tol": 0}, "tol is 0; it must be a number above 0"),
        ({"cv": 1}, "cv is 1; it must be a whole number of 2 or more"),
        ({"kernel": "sigmoid"}, "the sigmoid kernel is not positive definite"),
        ({"gamma": 1.0}, "gamma is 1.0, but the gaussian kernel has no gamma"),
        ({"basis": [3, 3]}, "basis contains a position twice"),
    ):
        with pytest.raises(UserError, match=f"^SupportVectorClassifier: {sentence}"):
            SupportVectorClassifier(**parameters).fit(x, y)
    with pytest.raises(UserError, match="y holds one class"):
        SupportVectorClassifier().fit(x, np.zeros(150))
    with pytest.raises(UserError, match="weights must be 0 or more"):
        SupportVectorClassifier().fit(x, y, -np.ones(150))
    with pytest.raises(UserError, match="epsilon is -1; it must be a number of 0 or more"):
        SupportVectorRegressor(epsilon=-1).fit(*samples())
    assert clone(SupportVectorClassifier(C=[1, 2])).get_params()["C"] == [1, 2]


def test_the_page_has_the_codes_numbers() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for number in (svm.COMPARED, svm.COMPARED_L1, svm.ROUGHLY, fit_svm.MOST):
        assert f"{number:,}" in text
    for ridges in (fit_svm.RIDGES, fit_svm.RIDGES_LP):
        assert " and ".join([", ".join(f"{r:g}" for r in ridges[:-1]), f"{ridges[-1]:g}"]) in text
