"""Kernel machines with a closed form: what they compute, against definitions; and the way to the device."""

import dataclasses
import inspect
import math
import re
import runpy
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_blobs
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

import pykernel
from pykernel import (
    BudgetedKernelRegressor,
    HostModel,
    KernelFisherClassifier,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    LSSVMClassifier,
    LSSVMRegressor,
    SupportVectorClassifier,
    SupportVectorRegressor,
    TrainedKernelClassifier,
    TrainedKernelRegressor,
    check,
    load_spec,
)
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.estimators import kernel_machine
from pykernel.spec.model import make_spec
from pykernel.training.calibration import fit_calibration, fit_sigmoid, probabilities
from pykernel.training.coding import Targets
from pykernel.training.selection import select
from tests.support import ROOT, custom_kernels
from tests.support.compilers import QUICK
from tests.support.retraining import Task, left_out, trained

ALL = (KernelFisherClassifier, LSSVMClassifier, KernelRidgeClassifier, LSSVMRegressor, KernelRidgeRegressor)
CLASSIFIERS, REGRESSORS, WEIGHTED = ALL[:3], ALL[3:], ALL[1:]
MODEL = dict(zip(ALL, ("kfd", "ls-svm", "krr", "ls-svm", "krr"), strict=True))
KERNELS = {
    "gaussian": {"sigma": 1.5},
    "laplacian": {"gamma": 0.3},
    "polynomial": {"gamma": 0.2, "coef0": 0.7, "degree": 2},
    "linear": {},
}
DOCS = ROOT / "docs" / "kernel-machines.md"


def kernel_value(kernel, a, b, sigma=None, gamma=None, coef0=None, degree=None):
    """The Gram matrix, written out."""
    difference, product = a[:, None] - b, a @ b.T
    return {
        "gaussian": lambda: np.exp(-(difference**2).sum(axis=2) / (2 * sigma**2)),
        "laplacian": lambda: np.exp(-gamma * np.abs(difference).sum(axis=2)),
        "polynomial": lambda: (gamma * product + coef0) ** degree,
        "linear": lambda: product,
        "sigmoid": lambda: np.tanh(gamma * product + coef0),
    }[kernel]()


def samples(labels="two classes", count=60, seed=3):
    """Inputs, three of them repeated, and labels that the inputs half explain."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3))
    x[-3:] = x[:3]
    y = np.sin(x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=count)
    if labels == "two classes":
        return x, np.where(y > 0.4, "wet", "dry")
    if labels == "three classes":
        return x, np.digitize(y, [-0.8, 0.8]) + 5
    return x, y if labels == "number" else np.column_stack([y, 3 - x[:, 2] ** 2])


def labels_of(kind):
    return ("two classes", "three classes") if kind in CLASSIFIERS else ("number", "two numbers")


EACH = [(kind, labels) for kind in ALL for labels in labels_of(kind)]


def single(kind, kernel="gaussian", ridge=0.3, **more):
    """No choice is left."""
    return kind(kernel, **KERNELS[kernel], ridge=ridge, **more)


def values(model, x):
    """Of the functions, (n, o)."""
    f = model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)
    return f.reshape(len(x), -1)


# ---------------------------------------------------------------------------------------------------------- weights


def weighted(labels, count=40):
    """Weights from 0 to 3, and the rows as often as they say."""
    x, y = samples(labels, count)
    weights = np.random.default_rng(1).integers(0, 4, count)
    return x, y, weights, np.repeat(x, weights, axis=0), np.repeat(y, weights, axis=0)


@pytest.mark.parametrize("kind, labels", [each for each in EACH if each[0] in WEIGHTED])
@pytest.mark.parametrize("on_basis", [False, True])
@pytest.mark.in_turn
def test_a_weight_is_a_number_of_rows(kind, labels, on_basis):
    """And each sample is left out with all of its weight, as by training again without."""
    x, y, weights, repeated_x, repeated_y = weighted(labels)
    options = {"coding": "counts"} if kind in CLASSIFIERS else {}
    positions, vectors = ({"basis": range(0, 40, 4)}, {"basis": x[::4]}) if on_basis else ({}, {})
    model = single(kind, **options, **positions).fit(x, y, weights)
    repeated = single(kind, **options, **vectors).fit(repeated_x, repeated_y)
    new = samples(labels, 70)[0][40:]
    assert values(model, new) == pytest.approx(values(repeated, new), abs=1e-11)
    left_out = model.loo_predictions_.reshape(len(x), -1)
    for i in range(0, 40, 3):
        without = single(kind, **options, **vectors).fit(x, y, np.where(np.arange(40) == i, 0.0, weights))
        assert left_out[i] == pytest.approx(values(without, x[i : i + 1])[0], abs=1e-9)
    if kind in CLASSIFIERS:
        owners = np.unique(y).tolist()
        chosen = (left_out[:, 0] > 0).astype(int) if left_out.shape[1] == 1 else left_out.argmax(axis=1)
        assert model.loo_error_ == pytest.approx(np.average(np.array(owners)[chosen] != y, weights=weights))
    else:
        squares = ((y.reshape(len(x), -1) - left_out) ** 2).mean(axis=1)
        assert model.loo_error_ == pytest.approx(np.average(squares, weights=weights))


def test_ridge_regression_with_weights_is_that_of_scikit_learn():
    x, y = samples("two numbers")
    weights = np.random.default_rng(2).exponential(size=len(x))
    ours = single(KernelRidgeRegressor).fit(x, y, sample_weight=weights)
    theirs = KernelRidge(alpha=0.3, kernel="rbf", gamma=1 / 4.5).fit(x, y, sample_weight=weights)
    assert ours.predict(x) == pytest.approx(theirs.predict(x), abs=1e-10)


@pytest.mark.parametrize("kind", WEIGHTED)
def test_weights_choose_and_calibrate(kind):
    """Chosen by folds or one by one: what has no weight does not count, and equal weights of 1 are none."""
    x, y = samples(labels_of(kind)[0])
    noise = np.random.default_rng(4).permutation(y)
    both, twice = np.concatenate([x, x]), np.concatenate([y, noise])
    for cv in ("deleted", 5):
        options = {"sigma": [0.5, 2.0, 8.0], "ridge": [1e-3, 0.1, 10.0], "cv": cv, "basis": None}
        plain = kind(**options).fit(x, y)
        ones = kind(**options).fit(x, y, np.ones(len(x)))
        some = kind(**options).fit(both, twice, np.repeat([1.0, 0.0], len(x)))
        for other in (ones, some):
            assert (other.sigma_, other.ridge_) == (plain.sigma_, plain.ridge_)
            assert values(other, x) == pytest.approx(values(plain, x), abs=1e-8)
            assert other.loo_error_ == pytest.approx(plain.loo_error_)
            assert other.optimism_ == pytest.approx(plain.optimism_)
            if kind in CLASSIFIERS:
                assert other.calibration_ == pytest.approx(plain.calibration_, rel=1e-5)
    assert len(some.basis_) == len(x) and len(some.loo_predictions_) == 2 * len(x)
    # noise that counts is seen
    assert kind(**options).fit(both, twice, np.repeat([1.0, 5.0], len(x))).loo_error_ > 1.5 * plain.loo_error_


def test_who_takes_weights():
    """The Fisher discriminant does not, and a pipeline cannot give them silently."""
    public = [getattr(pykernel, name) for name in pykernel.__all__]
    every = [kind for kind in public if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
    takes = {kind for kind in every if has_fit_parameter(kind(), "sample_weight")}
    svms = {SupportVectorClassifier, SupportVectorRegressor}
    assert takes == {*WEIGHTED, *svms, TrainedKernelClassifier, TrainedKernelRegressor} and {
        BudgetedKernelRegressor,
        KernelFisherClassifier,
    } <= set(every)
    x, y = samples()
    with pytest.raises(TypeError, match="sample_weight"):
        KernelFisherClassifier().fit(x, y, sample_weight=np.ones(len(x)))
    for weights, sentence in (
        (np.where(np.arange(60) == 5, -1.0, 1.0), "sample_weight holds -1; weights must be 0 or more"),
        (np.where(np.arange(60) == 5, 1e308, 1.0), "sample_weight holds 1e.308; weights must be at most 1e.300"),
        (np.arange(60) == 5, "sample_weight is above 0 for only 1 of 60 samples"),
        (np.where(y == "wet", 0.0, 1.0), "y holds one class"),
    ):
        with pytest.raises(UserError, match=sentence):
            LSSVMClassifier().fit(x, y, weights)


# ------------------------------------------------------------------------------------------------------ conventions


@pytest.mark.parametrize("kind, labels", EACH)
def test_the_order_of_samples_does_not_matter(kind, labels):
    x, y = samples(labels)
    order = np.random.default_rng(0).permutation(len(x))
    more = {"basis": np.arange(0, 60, 3)} if kind is KernelFisherClassifier else {}
    moved = {"basis": np.argsort(order)[more["basis"]]} if more else {}
    model = kind(ridge=[0.1, 1.0, 10.0], sigma=[1.0, 2.0], **more).fit(x, y)
    other = kind(ridge=[0.1, 1.0, 10.0], sigma=[1.0, 2.0], **moved).fit(x[order], y[order])
    assert other.selection_.best == model.selection_.best
    np.testing.assert_allclose(values(other, x), values(model, x), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.loo_predictions_, model.loo_predictions_[order], rtol=1e-8, atol=1e-8)


# ----------------------------------------------------------------------------------------------- what they compute


def twin(model, x, y):
    """The training problem, to be solved and cross-validated by definition."""
    kernel, basis = model.kernel, getattr(model, "basis", None)
    columns = (
        np.arange(len(x)) if basis is None else np.asarray(basis) if np.ndim(basis) == 1 else np.full(len(basis), -1)
    )
    vectors = x if basis is None else x[columns] if np.ndim(basis) == 1 else np.asarray(basis)
    gram = kernel_value(kernel, x, vectors, **{key: getattr(model, key) for key in KERNELS[kernel]})
    if isinstance(model, REGRESSORS):
        labels = {"values": y.reshape(len(y), -1)}
    else:
        classes, positions = np.unique(y, return_inverse=True)
        labels = {"positions": positions, "count": len(classes), "coding": model.coding}
    return Task(MODEL[type(model)], gram, columns, model.ridge, **labels), vectors


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind, labels", EACH)
def test_they_are_what_they_say(kind, labels, kernel):
    """Training and leaving out, against systems written out and trained anew."""
    x, y = samples(labels)
    models = [single(kind, kernel)]
    if kind in CLASSIFIERS:
        models.append(single(kind, kernel, coding="signs" if kind is KernelFisherClassifier else "counts"))
    if kind is KernelFisherClassifier:
        models.append(single(kind, kernel, basis=range(1, 60, 4)))
        models.append(single(kind, kernel, basis=np.random.default_rng(0).normal(size=(7, 3))))
    new = np.random.default_rng(1).normal(size=(9, 3))
    for model in models:
        model.fit(x, y)
        task, vectors = twin(model, x, y)
        alpha, bias = trained(task.model, task.gram, task.targets, task.ridge)
        assert model.basis_.tobytes() == np.ascontiguousarray(vectors).tobytes() and model.selection_ is None
        keys = {key: getattr(model, key) for key in KERNELS[kernel]}
        expected = kernel_value(kernel, new, vectors, **keys) @ alpha + bias
        np.testing.assert_allclose(values(model, new), expected, rtol=1e-7, atol=1e-7)
        left = left_out(task, np.arange(60))
        np.testing.assert_allclose(model.loo_predictions_.reshape(60, -1), left, rtol=1e-6, atol=1e-6)
        if kind in REGRESSORS:
            assert model.loo_error_ == pytest.approx(np.mean((left - task.targets) ** 2))
            assert model.loo_predictions_.shape == y.shape == model.predict(x).shape
        else:
            right = (left[:, 0] > 0) if left.shape[1] == 1 else left.argmax(axis=1)
            assert model.loo_error_ == np.mean(right != task.positions)
            assert model.loo_press_ == pytest.approx(np.mean((left - task.targets) ** 2))


@pytest.mark.parametrize("kind", CLASSIFIERS[:2])
def test_codings_differ_by_scale_and_threshold(kind):
    """And counts find more of the small class."""
    x, y = samples("number", 200)
    y = (y > 1.2).astype(int)
    n, small = len(y), y.sum()
    counts, signs = single(kind, coding="counts").fit(x, y), single(kind, coding="signs").fit(x, y)
    f = signs.decision_function(x)
    moved = n**2 / (2 * small * (n - small)) * (f - f.mean())
    np.testing.assert_allclose(counts.decision_function(x), moved, atol=1e-9)
    assert small < 60 and (counts.predict(x) == 1).sum() > (signs.predict(x) == 1).sum()


def test_the_sigmoid_kernel_asks_for_a_ridge():
    x, y = samples()
    model = KernelFisherClassifier("sigmoid", gamma=0.1, coef0=-0.5, ridge=1.0).fit(x, y)
    gram = kernel_value("sigmoid", x, x, gamma=0.1, coef0=-0.5)
    task = Task("kfd", gram, np.arange(60), 1.0, positions=(y == "wet").astype(int), count=2)
    alpha, bias = trained("kfd", gram, task.targets, 1.0)
    np.testing.assert_allclose(values(model, x), gram @ alpha + bias, rtol=1e-7, atol=1e-7)
    derived = LSSVMClassifier("sigmoid").fit(x, y)  # from those that are large enough
    assert np.isinf(derived.selection_.press).any() and np.isfinite(derived.loo_press_)
    with pytest.raises(
        UserError, match=r"^KernelRidgeClassifier: ridge is 1e-09; this Gram matrix needs a ridge above"
    ):
        KernelRidgeClassifier("sigmoid", gamma=0.1, coef0=-0.5, ridge=1e-9).fit(x, y)
    assert KernelRidgeClassifier("sigmoid", gamma=0.1, coef0=-0.5, ridge=30.0).fit(x, y).ridge_ == 30


@pytest.mark.in_turn
@pytest.mark.parametrize("kind, labels", EACH)
@pytest.mark.parametrize("how", [{"cv": "kept"}, {"cv": 4, "random_state": 7}, {}])
def test_the_choice_is_that_of_select(kind, labels, how):
    x, y = samples(labels)
    grid = {"sigma": (0.5, 1.0, 3.0), "ridge": np.array([10.0, 0.01, 0.1])}
    model = kind(**grid, **how, **({"by": "press"} if kind is LSSVMClassifier else {})).fit(x, y)
    found = model.selection_
    assert found.widths.tolist() == [0.5, 1.0, 3.0] and found.ridges.tolist() == [0.01, 0.1, 10.0]
    assert found.cv == how.get("cv", "deleted")
    assert found.by == ("press" if kind is LSSVMClassifier or kind in REGRESSORS else "error")
    assert (model.sigma_, model.ridge_, model.optimism_) == (found.width, found.ridge, found.optimism)
    # then trained as if there had been no choice
    again = clone(model).set_params(sigma=found.width, ridge=found.ridge).fit(x, y)
    assert again.selection_ is None and again.optimism_ == 0
    assert values(again, x).tobytes() == values(model, x).tobytes()
    assert again.loo_predictions_.tobytes() == model.loo_predictions_.tobytes()
    if not how:  # what was chosen for is what is reported
        reported = model.loo_error_ if found.by == "error" or kind in REGRESSORS else model.loo_press_
        assert reported == pytest.approx(found.value)
    if "random_state" in how:
        assert clone(model).fit(x, y).selection_.press.tobytes() == found.press.tobytes()
        other = clone(model).set_params(random_state=8).fit(x, y).selection_
        assert other.press.tobytes() != found.press.tobytes()


def test_what_is_left_open_is_derived():
    x, y = samples()
    model = KernelFisherClassifier(basis=range(20)).fit(x, y)
    found = model.selection_
    assert len(found.widths) == 13 and len(found.ridges) == 25
    assert KernelFisherClassifier(basis=range(20), sigma=1.0).fit(x, y).selection_.press.shape == (1, 25)
    one = LSSVMClassifier("linear").fit(x, y).selection_
    assert one.press.shape == (1, 17)
    polynomial = LSSVMClassifier("polynomial", coef0=0.5, degree=2, ridge=1.0).fit(x, y)
    assert len(polynomial.selection_.widths) == 9 and polynomial.kernel_["gamma"] == polynomial.gamma_
    assert polynomial.kernel_ == {
        "function": "polynomial",
        "gamma": polynomial.selection_.width,
        "coef0": 0.5,
        "degree": 2,
    }
    with pytest.raises(AttributeError, match="the polynomial kernel has no sigma"):
        polynomial.sigma_  # noqa: B018


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    "kind, data, worst",
    [
        *((kind, load_iris, 0.94) for kind in CLASSIFIERS),
        (KernelFisherClassifier, load_breast_cancer, 0.95),
        (LSSVMClassifier, load_breast_cancer, 0.95),
        (LSSVMRegressor, load_diabetes, 0.42),
    ],
)
def test_defaults_learn(kind, data, worst):
    """And what leaving one out promises is met, within what was chosen for being low and what few test samples tell."""
    x, y = data(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x, y, train_size=200 if len(x) > 200 else 100, random_state=0)
    scaler = StandardScaler().fit(x)
    model = kind().fit(scaler.transform(x), y)
    assert model.score(scaler.transform(x_test), y_test) > worst
    if kind in CLASSIFIERS:
        rate, n = 1 - model.score(scaler.transform(x_test), y_test), len(x_test)
        assert abs(rate - model.loo_error_ - model.optimism_) < 3 * math.sqrt(0.05 * 0.95 / n) + 0.02


def test_many_samples_are_predicted_in_blocks(monkeypatch):
    x, y = samples("three classes")
    model = single(KernelFisherClassifier).fit(x, y)
    whole = values(model, x)
    monkeypatch.setattr(kernel_machine, "BLOCK", 7 * 60)
    np.testing.assert_allclose(values(model, x), whole, rtol=1e-12, atol=1e-12)


# -------------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("labels", ["two classes", "three classes"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_probabilities_come_from_what_was_left_out(kind, labels):
    x, y = samples(labels, 120)
    model = single(kind).fit(x, y)
    f = model.loo_predictions_.reshape(120, -1)
    positions, count = np.searchsorted(model.classes_, y), len(model.classes_)
    assert model.calibration_.tobytes() == fit_calibration(f, positions, count).tobytes()
    p = model.predict_proba(x)
    assert p.tobytes() == probabilities(values(model, x), model.calibration_).tobytes() and p.shape == (120, count)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    new, truth = samples(labels, 400, seed=11)
    rates = np.bincount(positions) / len(positions)
    assert log_loss(truth, model.predict_proba(new)) < 0.8 * log_loss(truth, np.tile(rates, (400, 1)))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_training_values_would_be_trusted_too_much(kind):
    """Classes that overlap, a kernel so narrow that training values separate them: these know nothing of the overlap."""
    x, y = make_blobs(400, centers=[[0, 0], [3, 0]], random_state=0)
    new, truth = x[120:], y[120:]
    x, y = x[:120], y[:120]
    model = kind(sigma=0.5, ridge=1e-8 if kind is KernelFisherClassifier else 1e-3).fit(x, y)
    assert model.score(x, y) == 1 and 0.1 < model.loo_error_ < 0.3
    fooled = probabilities(values(model, new), [fit_sigmoid(model.decision_function(x), y == 1)])
    honest = log_loss(truth, model.predict_proba(new))
    assert honest < 0.7 and log_loss(truth, fooled) > 1.2 * honest


def test_a_class_of_one_sample():
    """Left out, it is a class that nobody was taught: values say nothing of it, nor does its probability."""
    x, y = samples("three classes")
    y = np.where(np.arange(60) == 5, 9, y)
    for kind in CLASSIFIERS:
        model = single(kind).fit(x, y)
        if kind is not KernelRidgeClassifier:  # which has no bias that would be -1
            assert model.loo_predictions_[5, 3] == pytest.approx(-1)
        p = model.predict_proba(x)
        assert np.isfinite(p).all() and model.calibration_[3, 0] == 0 and 0 < p[:, 3].max() < 0.2


def test_samples_that_know_nothing_of_each_other():
    """Left out, each is told the others' mean, which leans to the other class; that must not be taken for knowledge."""
    x, y = 1e3 * np.arange(40.0)[:, None], np.arange(40) % 2
    for kind in CLASSIFIERS:
        model = kind(sigma=1.0, ridge=1.0).fit(x, y)
        f = model.loo_predictions_
        if kind is LSSVMClassifier:
            np.testing.assert_allclose(f, np.where(y, -1, 1) / 39)
            assert model.loo_error_ == 1
        else:
            np.testing.assert_allclose(f, 0, atol=1e-12)
        assert model.calibration_[0, 0] == 0
        np.testing.assert_allclose(model.predict_proba(x), 0.5)


# ------------------------------------------------------------------------------------------------ kernels as they are

GIVEN = {
    "cosine": MercerKernel("linear", normalise=True),
    "polynomial cosine": MercerKernel("polynomial", gamma=0.5, coef0=0.7, degree=2, normalise=True),
    "custom": MercerKernel("custom", gamma=0.5, custom=custom_kernels.rational_quadratic, max_value=1.0),
    "custom cosine": MercerKernel(
        "custom", gamma=0.2, coef0=0.3, custom=custom_kernels.products, max_value=1e12, normalise=True
    ),
}


def given_value(kernel, a, b):
    """The Gram matrix of one of them, written out."""

    def plain(a, b):
        product = a @ b.T
        return {
            "cosine": lambda: product,
            "polynomial cosine": lambda: (0.5 * product + 0.7) ** 2,
            "custom": lambda: 1 / (1 + 0.5 * ((a[:, None] - b) ** 2).sum(axis=2)),
            "custom cosine": lambda: (a[:, None] * b + 0.5).prod(axis=2) + 0.2 * product + 0.3,
        }[kernel]()

    norms = [np.sqrt(plain(v, v).diagonal()) for v in (a, b)]
    return plain(a, b) / (1 if kernel == "custom" else np.outer(*norms))


@pytest.mark.parametrize("kernel", ["cosine", "polynomial cosine", "custom"])
def test_a_mercer_kernel_with_a_basis(kernel):
    """Chosen vectors, positions, and a Basis of the same kernel, against the normal equations of the kernel written out."""
    x, y = samples("number")
    mercer, limit = GIVEN[kernel], {"max_abs": 8.0} if kernel == "custom" else {}
    basis = select_basis(x, mercer, 3 if kernel == "cosine" else 8, "rpcholesky", epsilon=2e-3)
    model = KernelRidgeRegressor(basis=basis, ridge=0.1).fit(x, y)
    columns, small = given_value(kernel, x, basis.vectors), given_value(kernel, basis.vectors, basis.vectors)
    expected = columns @ np.linalg.solve(columns.T @ columns + 0.1 * small, columns.T @ y)
    for other in (
        model,
        KernelRidgeRegressor(mercer, basis=basis, ridge=0.1).fit(x, y),
        KernelRidgeRegressor(mercer, basis=basis.indices, ridge=0.1).fit(x, y),
    ):
        np.testing.assert_allclose(other.predict(x), expected, rtol=1e-7, atol=1e-7)
        spec = other.to_spec("m", precision="float64", **limit)
        np.testing.assert_allclose(HostModel(spec).predict(x), expected, rtol=1e-7, atol=1e-7)
    chosen = KernelRidgeRegressor(mercer, basis=3, basis_params={"epsilon": 2e-3}, ridge=[0.1, 1.0]).fit(x, y)
    assert chosen.selection_.widths.tolist() == [pytest.approx(mercer.gamma)] and chosen.reduced_.basis.kernel == mercer


def test_a_kernel_of_ones_own_is_checked_byte_for_byte(one_compiler):
    x, y = samples("number")
    model = KernelRidgeRegressor(GIVEN["custom cosine"], ridge=0.3).fit(x, y)
    spec = model.to_spec("m", max_abs=8.0)
    assert check(spec, samples=500, levels=["-O1"], compilers=[QUICK[0].name]).ok
    allowed = 64 * np.finfo(np.float32).eps * np.abs(model.alpha_).sum()
    assert np.abs(HostModel(spec).predict(x) - model.predict(x)).max() <= allowed < 1e-3


@pytest.mark.parametrize("kind", ALL)
def test_a_name_and_its_mercer_kernel_are_the_same_model(kind):
    x, y = samples(labels_of(kind)[1])
    for kernel, parameters in KERNELS.items():
        shape = {"gamma": 0.5 / 1.5 / 1.5} if kernel == "gaussian" else parameters
        named, model = single(kind, kernel).fit(x, y), kind(MercerKernel(kernel, **shape), ridge=0.3).fit(x, y)
        assert values(model, x).tobytes() == values(named, x).tobytes() and model.gamma_ == named.gamma_
        assert model.loo_predictions_.tobytes() == named.loo_predictions_.tobytes()
        assert model.to_spec("m") == named.to_spec("m")
        if kernel == "gaussian":
            assert model.kernel_ == {"function": "gaussian", **shape} and model.sigma_ == pytest.approx(1.5, rel=1e-15)
        else:
            assert model.kernel_ == named.kernel_


def test_selection_puts_widths_in_the_place_of_a_mercer_kernels_own():
    x, y = samples("number")
    for kernel in ("polynomial cosine", "custom cosine"):
        found = select("krr", x, Targets.of_values(y), GIVEN[kernel], [0.2, 0.5], [0.1, 0.3])
        for i, gamma in enumerate((0.2, 0.5)):
            model = KernelRidgeRegressor(dataclasses.replace(GIVEN[kernel], gamma=gamma), ridge=0.3).fit(x, y)
            assert found.press[i, 1] == pytest.approx(model.loo_error_, rel=1e-12)
    assert select("krr", x, Targets.of_values(y), GIVEN["custom"]).widths.tolist() == [0.5]
    assert len(select("krr", x, Targets.of_values(y), GIVEN["polynomial cosine"]).widths) == 9


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"sigma": 1.0}, "sigma is 1.0, but kernel is a MercerKernel with parameters of its own; leave sigma out"),
        ({"gamma": [0.1, 1.0]}, "gamma is [0.1, 1.0], but kernel is a MercerKernel with parameters of its own; leave gamma out"),
        ({"coef0": 0.7}, "coef0 is 0.7, but kernel is a MercerKernel with parameters of its own; leave coef0 out"),
        ({"degree": 2}, "degree is 2, but kernel is a MercerKernel with parameters of its own; leave degree out"),
        ({"kernel": MercerKernel}, "kernel is <class 'pykernel.bases.gram.MercerKernel'>; it must be one of gaussian, laplacian"),
        ({"kernel": MercerKernel("sigmoid"), "basis": 4}, "the sigmoid kernel is not positive definite; a basis needs"),
        ({"kernel": MercerKernel("custom", custom=custom_kernels.products, max_value=1.0)}, "the kernel products reaches "),
        ({"cv": 1}, "cv is 1; it must be"),
    ],
)  # fmt: skip
def test_a_mercer_kernel_says_all_itself(parameters, sentence):
    x, y = samples()
    for kind in CLASSIFIERS:
        with pytest.raises(UserError) as caught:
            kind(**{"kernel": GIVEN["polynomial cosine"], "ridge": 1.0, **parameters}).fit(x, y)
        assert str(caught.value).startswith(f"{kind.__name__}: {sentence}") and "\n" not in str(caught.value)


def test_a_mercer_kernel_beside_a_basis_and_a_limit():
    x, y = samples("number")
    basis = select_basis(x, GIVEN["polynomial cosine"], 4, "rpcholesky")
    with pytest.raises(
        UserError,
        match=r"^LSSVMRegressor: the parameter kernel differs from the kernel with which basis was chosen; le",
    ):
        LSSVMRegressor(GIVEN["custom"], basis=basis).fit(x, y)
    model = KernelRidgeRegressor(GIVEN["custom"], ridge=1.0).fit(x, y)
    with pytest.raises(
        UserError, match=r"^KernelRidgeRegressor: max_abs must be given with a custom kernel: max_value bounds"
    ):
        model.to_spec("m")
    with pytest.raises(UserError, match=r"^KernelRidgeRegressor: max_abs is -1; it must be above 0"):
        model.to_spec("m", max_abs=-1)


# ---------------------------------------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"kernel": "rbf"}, "kernel is 'rbf'; it must be one of gaussian, laplacian, matern12, matern32, matern52, polynomial, linear, sigmoid"),
        ({"kernel": None}, "kernel is None; it must be one of"),
        ({"sigma": 0.0}, "sigma is 0.0; it must be a number above 0, a sequence of such numbers, or None"),
        ({"sigma": [1.0, -1.0]}, "sigma is [1.0, -1.0]; it must be"),
        ({"sigma": [1.0, [2.0]]}, "sigma is [1.0, [2.0]]; it must be"),
        ({"sigma": "scale"}, "sigma is 'scale'; it must be"),
        ({"sigma": []}, "sigma is []; it must be"),
        ({"sigma": True}, "sigma is True; it must be"),
        ({"sigma": 1e-200}, "sigma is 1e-200; its square must not overflow or underflow: scale the data"),
        ({"ridge": math.nan}, "ridge is nan; it must be"),
        ({"ridge": [[1.0, 2.0]]}, "ridge is [[1.0, 2.0]]; it must be"),
        ({"gamma": 1.0}, "gamma is 1.0, but the gaussian kernel has no gamma; the kernel has sigma"),
        ({"gamma": np.ones(3)}, "gamma is array([1., 1., 1.]), but the gaussian kernel has no gamma; the kernel has sigma"),
        ({"coef0": 0.5}, "coef0 is 0.5, but the gaussian kernel has no coef0; the kernel has sigma"),
        ({"kernel": "linear", "sigma": 1.0}, "sigma is 1.0, but the linear kernel has no sigma; the kernel has no parameters"),
        (
            {"kernel": "polynomial", "sigma": 1.0},
            "sigma is 1.0, but the polynomial kernel has no sigma; the kernel has gamma, coef0, degree",
        ),
        ({"kernel": "polynomial", "degree": 2.5}, "degree is 2.5; it must be a whole number from 1 to 9"),
        ({"kernel": "polynomial", "degree": 10}, "degree is 10; it must be a whole number from 1 to 9"),
        ({"kernel": "polynomial", "coef0": "1"}, "coef0 is '1'; it must be a finite number"),
        ({"cv": "loo"}, "cv is 'loo'; it must be \"deleted\", \"kept\", a number of folds, at least 2, a splitter or a list of pairs (train, test)"),
        ({"cv": 1}, "cv is 1; it must be"),
        ({"cv": 61}, "cv is 61; the number of folds must be from 2 to 60"),
        ({"jobs": 0}, "jobs is 0; it must be a number of processes, at least 1"),
        ({"precision": "float16"}, "precision is 'float16'; it must be \"float32\" or \"float64\""),
    ],
)  # fmt: skip
def test_parameters_that_cannot_be(parameters, sentence):
    for kind in ALL:
        with pytest.raises(UserError) as caught:
            kind(**parameters).fit(*samples(labels_of(kind)[0]))
        assert str(caught.value).startswith(f"{kind.__name__}: {sentence}") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"coding": "sign"}, "coding is 'sign'; it must be one of counts, signs"),
        ({"by": "auc"}, 'by is \'auc\'; it must be "error" or "press"'),
        ({"basis": [0, 60]}, "basis holds 60; positions of the 60 samples are 0 to 59"),
        ({"basis": [-1, 2]}, "basis holds -1; positions of the 60 samples are 0 to 59"),
        ({"basis": [1, 1]}, "basis contains a position twice"),
        ({"basis": np.ones((4, 2))}, "basis holds vectors of 2 inputs; the samples have 3"),
        ({"basis": []}, "basis is []; it must be positions of training samples, finite vectors of 3 inputs, a Basis"),
        ({"basis": [0.5, 1.0]}, "basis is [0.5, 1.0]; it must be positions"),
        ({"basis": [[1.0, 2.0, math.inf]]}, "basis is [[1.0, 2.0, inf]]; it must be positions"),
        ({"basis": [[1.0], [2.0, 3.0]]}, "basis is [[1.0], [2.0, 3.0]]; it must be positions"),
        ({"basis": "random"}, "basis is 'random'; it must be positions"),
    ],
)
def test_parameters_of_the_discriminant_that_cannot_be(parameters, sentence):
    with pytest.raises(UserError) as caught:
        KernelFisherClassifier(**parameters).fit(*samples())
    assert str(caught.value).startswith(f"KernelFisherClassifier: {sentence}")


def test_data_that_cannot_be():
    x, _ = samples()
    with pytest.raises(UserError, match=r"^LSSVMClassifier: y holds one class, 'a'; a classifier needs samples of two"):
        LSSVMClassifier().fit(x, ["a"] * 60)
    for kind in ALL:
        with pytest.raises(ValueError, match="1 sample"):
            kind(sigma=1.0, ridge=1.0).fit(x[:1], [1.0])
        for unit in (1e160, 1e-160):
            with pytest.raises(
                UserError, match=rf"^{kind.__name__}: the largest of the inputs is \S+e.1\d\d; scale them"
            ):
                kind().fit(unit * x, np.arange(60) % 2)
    with pytest.raises(UserError, match=r"^LSSVMRegressor: the largest of the labels is 5.9e\+101; scale them"):
        LSSVMRegressor().fit(x, 1e100 * np.arange(60))
    model = single(LSSVMRegressor, "polynomial").fit(*samples("number"))
    with pytest.raises(
        UserError, match=r"^LSSVMRegressor: values of the polynomial kernel overflow; scale the inputs to sm"
    ):
        model.predict([[1e200, 0.0, 0.0]])


# ---------------------------------------------------------------------------------------------------- on the device


def rounding(model, x, precision):
    """How far rounding may take the functions: unit roundoffs of what the terms' magnitudes add up to."""
    spec = model.to_spec("m", precision="float64", distance="auto" if model.kernel == "linear" else "differences")
    vectors, weights = np.array(spec.expansion.vectors), np.array(spec.expansion.weights)
    keys = {key: getattr(model, f"{key}_", getattr(model, key)) for key in KERNELS[model.kernel]}
    sizes = (
        kernel_value(model.kernel, np.abs(x), np.abs(vectors), **keys)
        if model.kernel in ("linear", "polynomial")
        else 1
    )
    total = (sizes * np.ones((len(x), len(vectors)))) @ np.abs(weights) + np.abs(model.bias_)
    return 16 * np.finfo(precision).eps * total.max()


@pytest.mark.in_turn(36)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind, labels", EACH)
def test_the_frozen_model_computes_the_same(kind, labels, kernel, precision, tmp_path):
    x, y = samples(labels)
    model = single(kind, kernel, precision=precision).fit(x, y)
    path = tmp_path / "flow.toml"
    path.write_text(model.to_spec("flow").to_toml())
    spec = load_spec(path)
    assert spec == model.to_spec("flow") and spec.precision == precision and spec.learning.rule == "frozen"
    new = np.random.default_rng(2).normal(size=(500, 3)).astype(np.float32)
    host, f, allowed = HostModel(spec), values(model, new), rounding(model, new, precision)
    found = host.predict(new).reshape(500, -1)
    assert np.abs(found - f).max() <= allowed < 1e-3 * f.std()
    if kernel == "linear":
        assert np.array(spec.expansion.vectors).shape == (f.shape[1], 3)
    elif labels != "three classes":  # repeated samples are one vector
        assert len(spec.expansion.vectors) == 57
    if kind in CLASSIFIERS:
        ordered = np.sort(f, axis=1)
        clear = np.abs(f[:, 0]) > allowed if f.shape[1] == 1 else ordered[:, -1] - ordered[:, -2] > 2 * allowed
        told = model.classes_[host.classify(new)]
        assert (told == model.predict(new))[clear].all() and clear.mean() > 0.98 and len(set(told)) > 1
        slope = np.abs(model.calibration_[:, 0]).max()
        np.testing.assert_allclose(host.probability(new), model.predict_proba(new), atol=allowed * slope + 1e-6, rtol=0)


def test_weights_that_float32_cannot_resolve_are_told():
    x = np.linspace(-3, 3, 80)[:, None]
    y = np.sin(x[:, 0])
    model = KernelRidgeRegressor(sigma=3.0, ridge=1e-12).fit(x, y)
    with pytest.warns(UserWarning, match=r"^KernelRidgeRegressor: weights nearly cancel, so that rounding errors in f"):
        spec = model.to_spec("wave")
    error = np.abs(HostModel(spec).predict(x) - model.predict(x)).max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = HostModel(model.to_spec("wave", precision="float64")).predict(x)
        fine = model.set_params(ridge=1e-3).fit(x, y).to_spec("wave")
    assert error > 100 * np.abs(HostModel(fine).predict(x) - model.predict(x)).max()
    np.testing.assert_allclose(exact, y, atol=1e-4)


def test_limits_and_names_of_a_spec():
    x, y = samples()
    model = single(LSSVMClassifier).fit(x, y)
    assert model.to_spec("m").input.max_abs >= 1e3 * np.abs(x).max()
    assert model.to_spec("m", max_abs=np.float64(12.5)).input.max_abs == 12.5
    assert model.spec_ == model.to_spec("model")
    with pytest.raises(UserError, match=r"^LSSVMClassifier: name is 'int'"):
        model.to_spec("int")
    with pytest.raises(UserError, match=r"^LSSVMClassifier: precision is 'float16'"):
        model.to_spec("m", precision="float16")


@pytest.mark.parametrize("kind, labels", EACH)
def test_the_device_trains_to_the_same_model(kind, labels):
    x, y = samples(labels)
    # vectors, not positions: the device's basis stays when a sample is left out
    more = {"basis": x[::6]} if kind is KernelFisherClassifier else {}
    model = single(kind, **more).fit(x, y)
    learning = {"rule": MODEL[kind], "ridge": model.ridge_} | ({} if more else {"samples": len(x)})
    content = {"name": "m", "precision": "float64", "input": {"dim": 3}, "kernel": model.kernel_, "learning": learning}
    if kind in CLASSIFIERS:
        content["label"] = {"classes": [str(each) for each in model.classes_]}
    else:
        content["label"] = {"outputs": y.reshape(len(x), -1).shape[1], "max_abs": 1e3 * float(np.abs(y).max())}
    device = HostModel(make_spec(content | ({"expansion": {"vectors": more["basis"].tolist()}} if more else {})))
    taken = np.searchsorted(model.classes_, y) if kind in CLASSIFIERS else y
    device.update(x, taken)
    assert device.train() == 0
    np.testing.assert_allclose(device.predict(x).reshape(60, -1), values(model, x), rtol=1e-8, atol=1e-8)
    if more:
        device.visit("assess", x, taken)
    figures, _ = device.read("leave_one_out")
    press, rate = (model.loo_press_, model.loo_error_) if kind in CLASSIFIERS else (model.loo_error_, 0)
    np.testing.assert_allclose(figures, [press, rate], rtol=1e-8, atol=1e-9)


# ------------------------------------------------------------------------------------------------ page and example


def test_the_page_knows_every_parameter_and_attribute():
    page = DOCS.read_text(encoding="utf-8")
    for kind in ALL:
        for name, parameter in inspect.signature(kind).parameters.items():
            row = re.search(rf"^\| (?:`\w+`, )*`{name}`(?:, `\w+`)* \| ([^|]*) \|", page, re.MULTILINE)
            assert row, name
            names = re.findall(r"`(\w+)`", row[0].split("|")[1])
            default = re.findall(r"`([^`]*)`", row[1])
            if name != "coding":
                shown = f'"{parameter.default}"' if isinstance(parameter.default, str) else str(parameter.default)
                assert default[names.index(name)] == shown, name
    attributes = set(re.findall(r"`(\w+_)`", page))
    assert attributes >= set(kernel_machine.ATTRIBUTES) - {"n_features_in_", "feature_names_in_"}


@pytest.mark.exhaustive
def test_the_example(tmp_path, monkeypatch, capsys, one_build):
    monkeypatch.setattr(sys, "argv", ["digits.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "kernel_machines" / "digits.py"), run_name="__main__")
    printed = capsys.readouterr().out
    left, more = map(float, re.search(r"leaving one out +(\S+)%, for having been chosen (\S+)% more", printed).groups())
    test = float(re.search(r"test samples +(\S+)%", printed)[1])
    assert left < 3.5 and test < 4.5 and abs(left + more - test) < 1.5
    sure, right = map(float, re.search(r"90%: (\S+)% of them, and (\S+)% of these right", printed).groups())
    assert sure > 70 and right > 97
    assert float(re.search(r"same digit of (\S+)%", printed)[1]) > 99.7
    assert (tmp_path / "digits" / "src" / "digits.h").is_file()
