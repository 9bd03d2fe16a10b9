"""Estimators with trained vectors: what they say of themselves, and the way to the device."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from pykernel import (
    HostModel,
    KernelRidgeClassifier,
    TrainedKernelClassifier,
    TrainedKernelRegressor,
    check,
)
from pykernel.errors import UserError
from pykernel.importers.importing import compare
from pykernel.training.trained import to_spec
from tests.support.compilers import in_one_build

KINDS = (TrainedKernelRegressor, TrainedKernelClassifier)
QUICK: dict[str, Any] = {"ridge": 1e-4, "widths": "inputs", "standardise": True, "max_iter": 60, "n_init": 1}


def samples(classes: int = 0, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(n, 3)) * (1.0, 5.0, 0.2) + (0.0, 100.0, 3.0)
    y = np.sin(x[:, 0]) + np.cos(x[:, 1] / 5)
    if classes:
        y = np.array(["a", "b", "c"])[
            np.digitize(y, [-0.3, 0.3]) if classes == 3 else (np.abs(x[:, 0]) > 0.7).astype(int)
        ]
    return x, y


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", ["float32", "float64", "int16"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_the_device_says_what_the_estimator_says(classes: int, precision: str, exhaustive: bool) -> None:
    """Its answers within the bound of rounding, its classes and probabilities; and the C computes the host's bytes."""
    x, y = samples(classes)
    model = KINDS[classes > 0](6, **QUICK).fit(x, y)
    spec = model.to_spec("m", precision=precision)
    assert compare(spec, model.__pykernel_machine__(), model, x)["ok"]
    if classes and precision != "int16":
        assert np.abs(np.asarray(HostModel(spec).probability(x)) - model.predict_proba(x)).max() < 1e-4
    assert (check if exhaustive else in_one_build)(spec, samples=300).ok


@pytest.mark.exhaustive
@pytest.mark.in_turn
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_int16_is_judged_by_the_devices_bits(classes: int) -> None:
    """Errors on samples left out are of the device's functions: each is one of its units, and so are those of all samples."""
    x, y = samples(classes)
    model = KINDS[classes > 0](6, precision="int16", **QUICK).fit(x, y)
    # the same functions as numbers, which the device says
    numbers = replace(model._machine(), label=None, classes=None, calibration=None)
    spec: Any = to_spec(numbers, "m", "int16")
    wild = np.vstack([x, x + 3 * np.random.default_rng(1).normal(size=x.shape) * x.std(axis=0), 1e6 * x])
    said = np.asarray(HostModel(spec).ask("predict", wild)[0]).reshape(len(wild), -1)
    found = spec.family.int16_functions(spec, wild)
    accepted = spec.accepts(wild)
    assert accepted.sum() >= len(x) and not accepted.all() and np.isnan(found[~accepted]).all()
    assert np.array_equal(found[accepted], said[accepted])
    exact = model.decision_function(x) if classes else model.predict(x)
    assert np.abs(found[: len(x)] - exact.reshape(len(x), -1)).max() <= spec.family.error_bound(spec).max()
    rough = KINDS[classes > 0](6, **QUICK).fit(x, y).cv_predictions_
    assert 0 < np.abs(model.cv_predictions_ - rough).max() < 0.1 * np.ptp(rough)


def test_halves_between_whole_ends_are_counted() -> None:
    """Inputs of 0, 1/2 and 1: whole at both ends of their range, but one count is not 1."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (150, 3)) / 2
    y = np.where(x[:, 0] == 0.5, 1.0, -1.0) + x[:, 1]
    model = TrainedKernelRegressor(6, precision="int16", **QUICK).fit(x, y)
    assert np.abs(np.asarray(HostModel(model.to_spec("m")).predict(x)).ravel() - model.predict(x)).max() < 0.05


@pytest.mark.exhaustive
def test_trained_vectors_beat_chosen_ones() -> None:
    """Digits: eight trained vectors err less than 32 that are chosen; breast cancer: as little as the best of chosen ones."""
    x, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(x))
    train, test = rows[:800], rows[800:]
    few = TrainedKernelClassifier(8, ridge=1e-5, widths="inputs", standardise=False, n_init=1).fit(x[train], y[train])
    many = KernelRidgeClassifier(basis=32, sigma=[20.0, 30.0, 40.0]).fit(x[train], y[train])
    errors = [float((each.predict(x[test]) != y[test]).mean()) for each in (few, many)]
    assert errors[0] < 0.07 and errors[0] < errors[1]
    assert abs(few.cv_error_ - errors[0]) < 0.03  # which was not seen


def test_weights_of_zero_leave_samples_out_and_wrong_ones_are_refused() -> None:
    x, y = samples()
    spoiled, weights = y.copy(), np.ones(len(y))
    spoiled[::4], weights[::4] = 100.0, 0.0
    model = TrainedKernelRegressor(6, **QUICK).fit(x, spoiled, weights)
    left = np.flatnonzero(weights)
    assert set(model.cv_indices_) <= set(left.tolist())
    assert np.square(model.predict(x[left]) - y[left]).mean() < 0.1 * y.var()
    for bad, sentence in (
        (-weights - 1, "weights must be 0 or more"),
        (1.0 * (np.arange(120) == 5), "above 0 for only 1 of 120 samples"),
    ):
        with pytest.raises(UserError, match=sentence):
            TrainedKernelRegressor(6, **QUICK).fit(x, y, bad)


def test_labels_far_from_the_others_move_the_absolute_loss_less() -> None:
    x, y = samples()
    spoiled = y.copy()
    spoiled[::10] += 30.0
    rest = np.arange(len(y)) % 10 > 0
    robust = TrainedKernelRegressor(6, loss="absolute", **QUICK).fit(x, spoiled)  # which no linear model is as good as
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = TrainedKernelRegressor(6, loss="squared", **QUICK).fit(x, spoiled)
    errors = [np.abs(each.predict(x) - y)[rest].mean() for each in (robust, plain)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize(
    ("parameters", "x", "y", "sentence"),
    [
        ({"n_vectors": 200}, None, None, "n_vectors is 200; it must be at most 120, the number of samples"),
        ({"n_vectors": 0}, None, None, "n_vectors is 0; it must be a whole number of 1 or more"),
        ({"ridge": -1.0}, None, None, "ridge is -1.0; it must be a number of 0 or more"),
        ({"widths": "each"}, None, None, 'widths is .each.; it must be "one" or "inputs"'),
        ({"init": np.zeros((2, 2))}, None, None, "init must be"),
        ({"loss": "hinge"}, None, None, "loss is 'hinge'; it must be"),
        ({"cv": 1}, None, None, "cv is 1; it must be a whole number of 2 or more"),
        ({}, np.ones((120, 3)), None, "every input is constant"),
        ({}, 1e80 * samples()[0], None, "scale them to magnitudes nearer to 1"),
        ({}, None, np.where(np.arange(120) == 3, np.nan, 1.0), "NaN"),
    ],
)
def test_refusals(parameters: dict[str, Any], x: Any, y: Any, sentence: str) -> None:
    given, labels = samples()
    with pytest.raises(ValueError, match=sentence):
        TrainedKernelRegressor(**parameters).fit(given if x is None else x, labels if y is None else y)


def test_a_linear_model_that_is_as_good_is_told() -> None:
    x, _ = samples()
    with pytest.warns(UserWarning, match="a linear model's .*; take the linear model"):
        TrainedKernelRegressor(4, **QUICK).fit(x, x @ [1.0, 0.2, 5.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TrainedKernelRegressor(6, **QUICK).fit(*samples())


@pytest.mark.exhaustive
def test_the_defaults_on_cancer() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    found = []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(len(x))
        model = TrainedKernelClassifier(8, random_state=seed).fit(x[rows[:398]], y[rows[:398]])
        found.append(float((model.predict(x[rows[398:]]) != y[rows[398:]]).mean()))
    assert np.median(found) <= 6 / 171
