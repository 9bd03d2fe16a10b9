"""The scikit-learn face: what the online estimators derive, learn, tell and refuse."""

import copy
import dataclasses
import inspect
import itertools
import pickle
import re
import runpy
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import pykernel
from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor, HostModel
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.gen.compilers import find_compilers
from pykernel.spec.families.linear import LinearLearning
from pykernel.spec.families.online_keys import KernelLearning, Reduction
from pykernel.spec.model import declared, make_spec
from pykernel.workflows.models import spec_and_memory
from tests.support import ROOT, custom_kernels
from tests.support.following import persistent

EXAMPLES = ROOT / "examples"
BOTH = (BudgetedKernelRegressor, BudgetedKernelClassifier)


def labels(case, y):
    """The stream's labels as a model of this name learns them."""
    if "two outputs" in case:
        return np.column_stack([y, np.roll(y, 1)])
    if "two classes" in case:
        return np.where(y > 0, "wet", "dry")
    if "three classes" in case:
        return np.digitize(y, [-0.5, 0.5])
    return y


@pytest.fixture
def stream():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3))
    return x, np.sin(x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=300)


def state(model):
    return persistent(model.model_)


def test_intervals_come_with_predictions():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    y = x @ [[1.0, 2.0], [0.0, -1.0]] + rng.normal(size=(900, 2)) * [0.1, 1.0]
    model = BudgetedKernelRegressor(rule="rls", interval_level=0.8).fit(x[:600], y[:600])
    found, lower, upper = model.predict(x[600:], return_interval=True)
    assert found.shape == lower.shape == upper.shape == (300, 2) and np.array_equal(found, model.predict(x[600:]))
    # the right width for an output's normal errors is 2 * 1.28 deviations
    np.testing.assert_allclose((upper - lower).mean(axis=0), [0.256, 2.56], rtol=0.3)
    assert (abs(((lower <= y[600:]) & (y[600:] <= upper)).mean(axis=0) - 0.8) < 0.1).all()
    with pytest.raises(UserError, match="give interval_level"):
        BudgetedKernelRegressor(rule="rls").fit(x, y).predict(x, return_interval=True)


def test_weights_of_classes_are_those_of_a_spec():
    """And River has them, too, beside the same probabilities; a regressor has none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    y = np.where(x[:, 0] + 0.6 * rng.normal(size=900) > 1.5, "fault", "ok")
    plain, model = BudgetedKernelClassifier().fit(x, y), BudgetedKernelClassifier(class_weight=[5.0, 1.0]).fit(x, y)
    assert model.spec_.label.weights == (5.0, 1.0)
    assert np.array_equal(model.predict_proba(x), plain.predict_proba(x))
    wanted = model.classes_[(plain.predict_proba(x) * [5.0, 1.0]).argmax(axis=1)]
    assert (model.predict(x) == wanted).all() and (plain.predict(x) != wanted).any()
    by_name = BudgetedKernelClassifier(class_weight={"fault": 5.0}).fit(x, y)
    assert by_name.spec_.label.weights == (5.0, 1.0) and (by_name.predict(x) == wanted).all()
    with pytest.raises(UserError, match=r"class_weight has an entry for 'fualt', which is not one of the classes"):
        BudgetedKernelClassifier(class_weight={"fualt": 5.0}).fit(x, y)
    for bad in ("often", [1.0], [1.0, 0.0]):
        with pytest.raises(UserError, match=r"\[label\] weights"):
            BudgetedKernelClassifier(class_weight=bad).fit(x, y)
    with pytest.raises(UserError, match="add \\[mixture\\]"):
        BudgetedKernelClassifier(rule="klms", class_weight="balanced").fit(x, y)
    with pytest.raises(UserError, match="class_weight"):
        BudgetedKernelRegressor(class_weight="balanced")


def test_every_key_of_learning_and_reduction_is_a_parameter_that_defaults_to_the_specs_default():
    keys = LinearLearning.model_fields | KernelLearning.model_fields | Reduction.model_fields
    for kind in BOTH:
        parameters = inspect.signature(kind).parameters
        for key, field in keys.items():
            assert parameters[key].default in (None, field.default), key
            (default,) = re.findall(rf"^{key} : .*?,\s*default=(.*)$", inspect.getdoc(kind), re.MULTILINE)
            shown = f'"{field.default}"' if isinstance(field.default, str) else str(field.default)
            shown = "None" if key == "rule" else shown
            if default == "None" and field.default is not None and key != "rule":  # other rules have another one
                told = re.search(rf"^{key} : .*\n((?:    .*\n)*)", inspect.getdoc(kind), re.MULTILINE)[1]
                assert f"{shown} if not given" in " ".join(told.split()).replace('"', ""), key
                continue
            assert (float(default) == field.default) if type(field.default) is float else default == shown, key


def test_fit_forgets_and_partial_fit_does_not(stream):
    x, y = stream
    model = BudgetedKernelRegressor(rule="klms").fit(x, y)
    once = state(model)
    assert state(model.fit(x, y)) == once
    assert state(model.partial_fit(x, -y)) != once
    assert model.status_counts_["ADDED"] == 32 and sum(model.status_counts_.values()) == 6 * 300
    model.set_params(rule="krls-t").fit(x, y)  # least squares: what is repeated would count as evidence
    assert sum(model.status_counts_.values()) == 300


def test_parameters_count_from_the_next_fit(stream):
    x, y = stream
    model = BudgetedKernelRegressor(n_max=4, rule="klms").fit(x, y).set_params(n_max=6)
    assert model.partial_fit(x, y).spec_.reduction.n_max == 4
    assert model.fit(x, y).status_counts_["ADDED"] == 6


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("factor", [2.0**-20, 8.0, 2.0**30])
def test_scale_follows_the_unit_of_the_inputs(stream, factor, precision):
    x, y = stream
    model = BudgetedKernelRegressor(precision=precision, rule="klms", input_max_abs=1e12).fit(x, y)
    scaled = clone(model).fit(factor * x, y)
    assert scaled.spec_.kernel.sigma == factor * model.spec_.kernel.sigma
    assert scaled.predict(factor * x).tobytes() == model.predict(x).tobytes()


def test_scale_is_that_of_svr(stream):
    x, y = stream
    x -= x.mean(axis=0)
    sigma = BudgetedKernelRegressor(sigma="scale", rule="klms").fit(x, y).spec_.kernel.sigma
    assert 1 / (2 * sigma**2) == pytest.approx(1 / (x.shape[1] * x.var()))
    assert BudgetedKernelRegressor(rule="klms").fit(x, y).spec_.kernel.sigma == sigma


@pytest.mark.parametrize("x", [np.ones((1, 2)), np.ones((50, 2))])
def test_scale_needs_samples_that_differ(x):
    with pytest.raises(
        ValueError,
        match=r"X has only (1 sample|50 equal samples); start with more samples, or give sigma",
    ):
        BudgetedKernelRegressor(rule="klms").partial_fit(x, np.ones(len(x)))
    BudgetedKernelRegressor(sigma=1.0, rule="klms").partial_fit(x, np.ones(len(x)))
    BudgetedKernelRegressor(rule="rls").partial_fit(x, np.ones(len(x)))


@pytest.mark.parametrize(
    "data",
    [make_friedman1(800, noise=1.0, random_state=0), load_diabetes(return_X_y=True)],
    ids=["friedman", "diabetes"],
)
def test_defaults_learn(data):
    x, y = data
    model, ours, means = BudgetedKernelRegressor(rule="klms").partial_fit(x[:30], y[:30]), [], []
    for t in range(30, len(x)):
        ours.append(float(model.predict(x[t : t + 1])[0]))
        means.append(y[:t].mean())
        model.partial_fit(x[t : t + 1], y[t : t + 1])
    online = np.mean((ours - y[30:]) ** 2) / np.mean((means - y[30:]) ** 2)
    assert online < 0.9
    assert cross_val_score(BudgetedKernelRegressor(), x, y).mean() > 0.25


def test_passes_without_a_rule_are_those_of_the_rule_that_is_taken(stream):
    """Waves of classes learn by steps, five times; waves of numbers by least squares, once."""
    x, y = stream
    for model, labels, passes in ((BudgetedKernelClassifier, y > 0, 5), (BudgetedKernelRegressor, y, 1)):
        learned = model().fit(x, labels)
        assert sum(learned.status_counts_.values()) == passes * len(x)
        assert state(learned) == state(model(n_epochs=passes).fit(x, labels)) != state(model(n_epochs=2).fit(x, labels))


def test_what_a_rule_does_not_know_or_learn_is_refused(stream):
    x, y = stream
    linear, kernels = (BudgetedKernelRegressor(rule=rule).fit(x, y) for rule in ("rls", "klms"))
    with pytest.raises(
        UserError, match=r"^BudgetedKernelRegressor: rule 'rls' stores no vectors, so it measures no novelty"
    ):
        linear.novelty(x)
    with pytest.raises(UserError, match=r"rule 'klms' estimates no standard deviation; return_std needs rule='krls-t'"):
        kernels.predict(x, return_std=True)
    with pytest.raises(ValueError, match="y has 2 outputs, but the BudgetedKernelRegressor learns 1"):
        kernels.partial_fit(x, np.column_stack([y, y]))


def test_classes_that_cannot_be(stream):
    x, y = stream
    y = labels("three classes", y)
    with pytest.raises(UserError, match=r"^BudgetedKernelClassifier: y holds one class, 7; a classifier needs"):
        BudgetedKernelClassifier(rule="klms").fit(x, np.full(300, 7))
    with pytest.raises(UserError, match=r"^BudgetedKernelClassifier: \[label\] classes holds 100 names; .* 2 to 64"):
        BudgetedKernelClassifier(rule="klms").fit(x, np.arange(300) % 100)
    with pytest.raises(ValueError, match="the first call of partial_fit needs the argument classes"):
        BudgetedKernelClassifier(rule="klms").partial_fit(x, y)
    model = BudgetedKernelClassifier(rule="klms").partial_fit(x[:100], y[:100], classes=[2, 1, 0])
    before = state(model)
    with pytest.raises(ValueError, match=r"classes are \[0 1\], but the first call of partial_fit had \[0 1 2\]"):
        model.partial_fit(x, y, classes=[0, 1])
    for strange in (np.where(y == 2, 3, y), np.where(y == 2, 0.5, y), y.astype(str)):
        with pytest.raises(ValueError, match=r"y holds .*, which is not one of the classes, \[0, 1, 2\]|continuous"):
            model.partial_fit(x, strange)
    assert state(model) == before
    assert state(model.partial_fit(x[100:], y[100:])) == state(
        BudgetedKernelClassifier(rule="klms")
        .partial_fit(x[:100], y[:100], [0, 1, 2])
        .partial_fit(x[100:], y[100:], [0, 1, 2])
    )


def test_a_class_that_never_comes_is_never_predicted(stream):
    x, y = stream
    y = labels("three classes", y)
    model = BudgetedKernelClassifier(rule="klms").partial_fit(x, y, classes=[0, 1, 2, 3])
    assert model.decision_function(x).shape == (300, 4) and set(model.predict(x)) == {0, 1, 2}


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("rule", [None, "spectrum-softmax"])
@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_are_those_of_the_device(count, rule):
    """Classes that overlap: frequencies on new data, and a loss near that of the true probabilities."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 2))
    scores = np.stack([2 * x[:, 0] * (k - 1) + x[:, 1] * (k == 1) for k in range(count)], axis=1)
    truth = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = np.array(["dry", "damp", "wet"])[(truth.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)]
    model = BudgetedKernelClassifier(rule=rule, n_epochs=1).fit(x[:2000], y[:2000])
    p, order = model.predict_proba(x[2000:]), list(model.classes_)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=4e-7)
    rates = np.array([np.mean(y[:2000] == name) for name in order])
    best = truth[2000:][:, [["dry", "damp", "wet"].index(name) for name in order]]
    achieved, possible, ignorant = (log_loss(y[2000:], q, labels=order) for q in (p, best, np.tile(rates, (2000, 1))))
    assert possible < achieved < possible + (0.5 if rule else 0.25) * (ignorant - possible)
    for k, name in enumerate(order):
        assert abs(p[:, k].mean() - np.mean(y[2000:] == name)) < (0.12 if rule else 0.06)
    assert (p == HostModel.probability(model.model_, x[2000:])).all()
    assert not hasattr(BudgetedKernelClassifier(rule="klms").fit(x[:9], y[:9]), "predict_proba")


@pytest.mark.parametrize("count", [2, 5])
def test_where_the_device_has_probabilities_they_are_told(stream, count):
    """Labels by chance and inputs of every size: numbers, whose sum is 1, and no class is more likely than the predicted one."""
    x, y = stream
    y = np.random.default_rng(0).integers(0, count, len(y))
    model = BudgetedKernelClassifier(rule="spectrum-softmax", sigma=1.0, input_max_abs=1e6).fit(x, y)
    corners = np.array([*itertools.product([-1e6, -1e-30, 0.0, 5e-324, 1e6], repeat=3)])
    for _ in range(3):
        for asked in (x, 1e5 * x, corners):
            p = model.predict_proba(asked)
            assert (p >= 0).all() and np.abs(p.sum(axis=1) - 1).max() < 4e-7
            assert (p[np.arange(len(p)), model.predict(asked)] == p.max(axis=1)).all()
        model.partial_fit(np.vstack([corners, 1e5 * x]), np.concatenate([np.arange(len(corners)) % count, y]))
    with pytest.warns(UserWarning, match="1 of 2 samples have an input beyond the limit"):
        p = model.predict_proba([[0.0, 0.0, 0.0], [0.0, 0.0, 1.1e6]])
    assert np.isfinite(p[0]).all() and np.isnan(p[1]).all()


def test_what_is_beyond_the_limit_has_no_class(stream):
    x, y = stream
    model = BudgetedKernelClassifier(input_max_abs=10.0, rule="klms").fit(x, y > 0)
    bad = np.vstack([x[:2], [[11.0, 0, 0]]])
    with pytest.raises(UserError, match="1 of 3 samples have an input beyond the limit of 10 and cannot be classified"):
        model.predict(bad)
    with pytest.warns(UserWarning, match="1 of 3 samples have an input beyond the limit of 10; their results are NaN"):
        assert np.isnan(model.decision_function(bad)).tolist() == [False, False, True]
    with pytest.warns(UserWarning, match="their results are NaN"):
        assert np.isnan(model.novelty(bad)).tolist() == [False, False, True]
    before = state(model)
    with pytest.warns(UserWarning, match="^1 of 1,501 updates were refused: raise input_max_abs from 10;"):
        model.partial_fit(bad[2:], [True])
    assert state(model) == before and model.status_counts_["REFUSED_INPUT"] == 1


@pytest.mark.parametrize("kernel", ["polynomial", "linear"])
def test_only_limits_of_dot_products_are_below_the_specs(stream, kernel):
    """And as far as nothing overflows, which the spec judges."""
    x, y = stream
    rules = {rule for family in BudgetedKernelRegressor._families() for rule in family.rules}
    for rule in {"klms"} | rules - set(declared("kernel")):
        spec = BudgetedKernelRegressor(rule=rule).fit(x, y).spec_
        assert (spec.input.max_abs, spec.label.max_abs) == (1e6, 1e6)
    for precision, degree in (("float32", 1), ("float32", 7), ("float64", 3)):
        given = {"degree": degree} if kernel == "polynomial" else {}
        model = BudgetedKernelRegressor(rule="klms", kernel=kernel, precision=precision, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of degree 7 it diverges
            assert 1 < model.fit(x, y).spec_.input.max_abs <= 1e6


def test_what_is_out_of_range_is_refused_counted_and_named(stream):
    x, y = stream
    model = BudgetedKernelRegressor(input_max_abs=10.0, label_max_abs=20.0, rule="klms").fit(x, y)
    before = state(model)
    bad = np.full((4, 3), 10.5)
    bad[2:] = 1e300  # infinite in float32
    with pytest.warns(UserWarning, match="^4 of 1,504 updates were refused: raise input_max_abs from 10;"):
        model.partial_fit(bad, np.zeros(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(x[:3], [21.0, -1e300, 1e39])
    with pytest.warns(UserWarning, match="^8 of 1,508 updates were refused: raise label_max_abs from 20;"):
        model.partial_fit(x[:1], [21.0])
    assert state(model) == before
    assert model.status_counts_["REFUSED_INPUT"] == model.status_counts_["REFUSED_LABEL"] == 4
    with pytest.warns(UserWarning, match="4 of 5 samples have an input beyond the limit of 10"):
        predictions = model.predict(np.vstack([bad, x[:1]]))
    assert np.isnan(predictions).tolist() == [True] * 4 + [False]
    with pytest.raises(ValueError, match="NaN"), pytest.warns(UserWarning):
        model.score(bad, np.zeros(4))


def test_a_model_that_keeps_refusing_says_so_ever_more_seldom(stream):
    x, y = stream
    model = BudgetedKernelRegressor(input_max_abs=10.0, rule="klms").partial_fit(x, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(100):
            model.partial_fit(11 + x[:1], y[:1]).partial_fit(x[:1], y[:1])
    told = [str(each.message) for each in caught]
    assert [each.split(" ")[:3] for each in told] == [
        [str(n), "of", f"{299 + 2 * n}"] for n in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert all("updates were refused: raise input_max_abs from 10; to start afresh, call fit" in each for each in told)
    for parameters in ({"sigma": 1.0}, {"rule": "rls"}):
        with pytest.warns(UserWarning, match="updates were refused: raise label_max_abs from 0.001;"):
            BudgetedKernelRegressor(label_max_abs=1e-3, **{"rule": "klms", **parameters}).fit(x[:2], [1.0, 2.0])


def test_a_model_that_diverges_says_so_and_can_be_reset():
    x = np.random.default_rng(0).normal(size=(2000, 2))
    y = np.ones(len(x))
    # far from orthogonal
    model = BudgetedKernelRegressor("fklms", sigma=3.0, projection="fklms", force=True, rule="klms")
    with pytest.warns(
        UserWarning,
        match=r"^\d+ of 2,000 updates were refused or restarted the model: learning diverged, or labels had nothing to do with their inputs: lower sigma or eta; to start afresh, call fit",
    ):
        model.partial_fit(x, y)
    assert model.status_counts_["RESTARTED"] > 0
    assert np.isfinite(model.predict(x)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(technique="mklms", projection=None).fit(x, y)
    assert model.status_counts_["RESTARTED"] == 0
    assert np.abs(model.predict(x) - 1).max() < 0.1
    with pytest.warns(
        UserWarning,
        match=" of 2,000 updates were refused: learning diverged: lower prior_variance, or scale the inputs to magnitudes near 1",
    ):
        model = BudgetedKernelRegressor(rule="rls", prior_variance=1e18, label_max_abs=10.0).fit(1e-9 * x, x[:, 0])
    assert model.status_counts_["REFUSED_WEIGHT"] > 0


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"technique": "lms"}, "[reduction] technique is 'lms'; "),
        ({"rule": "lms"}, "[learning] rule is 'lms'; "),
        ({"projection": "mklms"}, "[reduction] projection is 'mklms'; "),
        ({"n_max": 0}, "[reduction] n_max is 0; "),
        ({"n_max": 2.5}, "[reduction] n_max is 2.5; "),
        ({"sigma": 0.0}, 'sigma is 0.0; it must be a number above 0 or "scale"'),
        (
            {"sigma": "auto"},
            "sigma is 'auto'; it must be a number above 0 or \"scale\"",
        ),
        ({"sigma": float("nan")}, "sigma is nan; "),
        ({"eta": 2.0}, "[learning] eta is 2.0; "),
        ({"rho": -1.0}, "[learning] rho is -1.0; "),
        ({"ald_threshold": 1e-4}, "[reduction] ald_threshold is 0.0001; "),
        ({"force": "yes"}, "[reduction] force is 'yes'; "),
        ({"precision": "float16"}, "precision is 'float16'; "),
        ({"n_epochs": 0}, "n_epochs is 0; it must be a whole number of 1 or more"),
        ({"input_max_abs": 0}, "[input] max_abs is 0; "),
        ({"label_max_abs": float("inf")}, "[label] max_abs is inf; "),
        # what means nothing here
        ({"noise": 0.1}, "[learning] noise "),
        ({"quantisation": 0.1}, "[learning] quantisation "),
        ({"penalty": 0.1}, "[reduction] penalty "),
        ({"rule": "krls-t", "eta": 0.1}, "[learning] eta "),
        ({"rule": "krls-t", "technique": "nt"}, "[reduction] "),
        ({"rule": "rls", "n_max": 8}, "[reduction] n_max "),
        ({"rule": "rls", "technique": "nt"}, "[reduction] technique "),
        ({"rule": "rls", "sigma": 1.0}, "[kernel] "),
        ({"rule": "nlms", "prior_variance": 1.0}, "[learning] prior_variance "),
        ({"rule": "rls", "seed": 1}, "[learning] seed "),
    ],
)
def test_parameters_that_cannot_be(stream, parameters, sentence):
    with pytest.raises(UserError) as caught:
        BudgetedKernelRegressor(**{"rule": "klms", **parameters}).fit(*stream)
    assert str(caught.value).startswith("BudgetedKernelRegressor: " + sentence)
    assert "\n" not in str(caught.value)


CUSTOM = MercerKernel("custom", gamma=0.3, custom=custom_kernels.rational_quadratic, max_value=1.0)


def test_a_mercer_kernel_is_taken_as_it_is(stream):
    """What its parameters by name make, to the byte; a custom kernel is the spec's."""
    x, y = stream
    for kernel, parameters in {
        "gaussian": {"gamma": 0.4},
        "matern32": {"gamma": 0.4},
        "matern12": {"gamma": 0.4},
        "linear": {"normalise": True},
        "polynomial": {"gamma": 0.3, "coef0": 0.5, "degree": 2, "normalise": True},
    }.items():
        named = BudgetedKernelRegressor(kernel=kernel, n_max=8, **{"rule": "klms", **parameters}).fit(x, y)
        model = BudgetedKernelRegressor(kernel=MercerKernel(kernel, **parameters), n_max=8, rule="klms").fit(x, y)
        assert state(model) == state(named) and model.spec_ == named.spec_
    rff = {"rule": "rff-rls", "features": 8}
    named = BudgetedKernelRegressor(kernel="laplacian", gamma=0.4, **rff).fit(x, y)
    assert state(BudgetedKernelRegressor(kernel=MercerKernel("laplacian", gamma=0.4), **rff).fit(x, y)) == state(named)

    power = MercerKernel("rational-quadratic", gamma=0.4, alpha=0.3)
    model = BudgetedKernelRegressor(kernel=power, n_max=8, rule="klms").fit(x, y)
    assert MercerKernel.of(model.spec_) == dataclasses.replace(power, degree=3)
    for rule in ("klms", "krls-t", "rff-rls"):
        with pytest.raises(
            UserError,
            match=r"fourier, (which only models with trained vectors can have|for which [a-z-]+ has no random Fourier features)",
        ):
            BudgetedKernelRegressor(kernel=MercerKernel("fourier"), rule=rule).fit(x, y)
    model = BudgetedKernelRegressor(kernel=CUSTOM, n_max=8, input_max_abs=10.0, n_epochs=1, rule="klms").fit(x, y)
    spec = make_spec(model.spec_.model_dump(exclude_unset=True), custom=CUSTOM.custom)
    assert spec.kernel.model_dump(exclude_unset=True) == CUSTOM.section()
    host = HostModel(spec)
    host.update(x, y)
    assert persistent(host) == state(model) and model.score(x, y) > 0.5
    assert model.to_spec("other").custom is CUSTOM.custom and model.to_spec("other").name == "other"
    for other in (clone(model).fit(x, y), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert state(other) == state(model)
        assert state(other.partial_fit(x, y)) != state(model)
    classes = BudgetedKernelClassifier(kernel=CUSTOM, n_max=8, input_max_abs=10.0, rule="klms").fit(x, y > 0)
    assert classes.spec_.custom is CUSTOM.custom and classes.score(x, y > 0) > 0.8


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"sigma": 1.0}, "sigma is 1.0, but kernel is a MercerKernel with parameters of its own; leave sigma out"),
        (
            {"gamma": "scale"},
            "gamma is 'scale', but kernel is a MercerKernel with parameters of its own; leave gamma out",
        ),
        ({"degree": 2}, "degree is 2, but kernel is a MercerKernel with parameters of its own; leave degree out"),
        (
            {"normalise": True},
            "normalise is True, but kernel is a MercerKernel with parameters of its own; leave normalise out",
        ),
        (
            {},
            "input_max_abs must be given with a custom kernel, because the kernel's max_value holds only for inputs within this limit",
        ),
        ({"input_max_abs": 10.0, "rule": "rff-rls"}, "[kernel] function is custom"),
        ({"input_max_abs": 10.0, "rule": "rls"}, "[kernel]"),
        ({"kernel": MercerKernel("sigmoid")}, "[kernel] function is sigmoid, which is not positive definite"),
    ],
)
def test_a_mercer_kernel_says_all_itself(stream, parameters, sentence):
    with pytest.raises(UserError) as caught:
        BudgetedKernelRegressor(**{"rule": "klms", "kernel": CUSTOM, **parameters}).fit(*stream)
    assert str(caught.value).startswith(f"BudgetedKernelRegressor: {sentence}") and "\n" not in str(caught.value)


def run_example(name, capsys, *arguments):
    """What an example prints."""
    sys.argv = [name, *arguments]
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.exhaustive
def test_the_example_of_classification(tmp_path, monkeypatch, capsys, one_build):
    monkeypatch.setattr(sys, "argv", [])
    printed = run_example("classification.py", capsys, str(tmp_path))
    assert int(re.search(r"learned: (\d+)%", printed)[1]) >= 95
    known, strange = map(float, re.search(r"known conditions (\S+), of a loose bearing (\S+)", printed).groups())
    assert known < 0.1 and strange > 0.5
    assert (tmp_path / "condition" / "src" / "condition.h").is_file()


@pytest.mark.exhaustive
def test_the_example_of_several_outputs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [])
    rows = re.findall(r"rms error (\S+) +([\d,]+) B", run_example("several_outputs.py", capsys))
    (shared, size), (alone, three), (smaller, less), (still, _) = [(float(e), int(b.replace(",", ""))) for e, b in rows]
    assert shared < 1.2 * alone < still / 20 and size < three / 2.5
    assert shared < 0.6 * smaller and less < size < 1.5 * less


# -------------------------------------------------------------------------------------------------------- pipelines


SCALERS = {
    "standard": lambda: StandardScaler(),
    "some columns": lambda: make_pipeline(VarianceThreshold(0.5), MinMaxScaler((-1, 1))),
}
LEARNING = {
    "klms": lambda: BudgetedKernelRegressor(rule="klms", n_max=16),
    "krls-t": lambda: BudgetedKernelRegressor(rule="krls-t", kernel="matern32", n_max=16),
    "raw": lambda: BudgetedKernelRegressor(n_max=16),
}


def raw_samples(n=300):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(n, 3)) * [1, 100, 0.1] + [5, 1000, -2]).astype(np.float32).astype(np.float64)
    return pd.DataFrame(x, columns=["a", "b", "c"]), np.sin(x[:, 0]) + x[:, 1] / 300


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("rule", LEARNING)
def test_a_pipeline_goes_on_learning_from_raw_inputs(rule, scaler):
    """The exported model, with its state, predicts and learns from raw inputs what the pipeline's does from scaled ones."""
    frame, y = raw_samples()
    pipeline = make_pipeline(SCALERS[scaler](), LEARNING[rule]()).fit(frame[:200], y[:200])
    spec, memory = spec_and_memory(pipeline, "flow")
    assert spec.name == "flow" and spec.standardises == (rule == "raw") == (spec.scaling == (None, None))
    assert spec.input.columns == (("a", "b") if scaler == "some columns" else ("a", "b", "c"))
    device, own = HostModel(spec), copy.deepcopy(pipeline[-1].model_)
    device.memory.copy_from(memory)
    x, z = frame[list(spec.input.columns)].to_numpy(), pipeline[:-1].transform(frame)
    assert np.abs(device.predict(x) - own.predict(z)).max() < 2e-5
    assert np.array_equal(device.update(x[200:], y[200:]), own.update(z[200:], y[200:]))
    assert np.abs(device.predict(x) - own.predict(z)).max() < 5e-5
    # whole and untouched: the device may restore it
    assert own.predict(z).std() > 0.1 and pipeline[-1].model_.predict(z[:3]).tolist() != own.predict(z[:3]).tolist()


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("rule", ["krls-t", "raw"])
def test_a_pipelines_c_continues_with_the_same_bytes(rule):
    frame, y = raw_samples(100)
    pipeline = make_pipeline(StandardScaler(), LEARNING[rule]()).fit(frame, y)
    report = pykernel.check(pipeline, samples=1000, levels=("-O2",), compilers=[find_compilers()[0].name])
    assert report.ok, report.rows


def test_a_pipeline_that_has_no_c_is_refused():
    frame, y = raw_samples(100)
    for steps, sentence in (
        ((PCA(2), BudgetedKernelRegressor(rule="klms")), "step 'pca': mixes inputs, but the model can only"),
        ((StandardScaler(), BudgetedKernelRegressor(rule="rls")), "rule rls cannot center and scale its inputs"),
        (
            (StandardScaler(), BudgetedKernelRegressor(rule="klms", input_max_abs=1e-3)),
            "the scaler maps an input of 0 to a value of this magnitude or more",
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = make_pipeline(*steps).fit(frame, y)
        with pytest.raises(UserError, match=sentence):
            pykernel.check(pipeline)
    with pytest.raises(UserError, match="has learned nothing yet"):
        pykernel.check(make_pipeline(StandardScaler(), BudgetedKernelRegressor()))


def test_columns_of_data_frames_are_known_by_their_names():
    """What learned labels in one order refuses another; what a spec names is taken by its name, whatever the order."""
    x, y = np.random.default_rng(0).normal(size=(2, 200, 2))
    frame, labels = pd.DataFrame(x, columns=["a", "b"]), pd.DataFrame(y, columns=["u", "v"])
    model = BudgetedKernelRegressor().fit(frame, labels)
    before = bytes(model.model_.memory.bytes)
    with pytest.raises(UserError, match="its labels are u, v, but y has v, u;"):
        model.partial_fit(frame, labels[["v", "u"]])
    assert bytes(model.model_.memory.bytes) == before
    model.partial_fit(frame, labels)
    spec = make_spec({"name": "m", "input": {"columns": ["a", "b"]}, "label": {"columns": ["u", "v"]}})
    told = {
        str(pykernel.simulate(spec, each).report["all"])
        for each in ((x, y), (frame, labels), (frame[["b", "a"]], labels[["v", "u"]]), (frame[["b", "a"]], y))
    }
    assert len(told) == 1
