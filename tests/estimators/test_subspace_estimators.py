"""Kernel subspaces as scikit-learn estimators: definitions, and that the device computes the same."""

import copy

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from pykernel import (
    HostModel,
    KernelSubspace,
    OnlineKernelSubspace,
    OnlineSubspaceClassifier,
    OnlineSubspaceRegressor,
)
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.training.rounding import device_bound
from tests.support import custom_kernels

CUSTOM = MercerKernel("custom", gamma=0.3, custom=custom_kernels.rational_quadratic, max_value=1.0)
SMALL = {"n_components": 4, "n_max": 12}
MODELS = {
    "default": OnlineKernelSubspace(),
    "parametric": OnlineKernelSubspace(**SMALL, precision="float64"),
    "nonparametric": OnlineKernelSubspace(**SMALL, update="nonparametric", step="normalised"),
    "hybrid": OnlineKernelSubspace(**SMALL, update="hybrid", step="averaged", window=50),
    "rls": OnlineKernelSubspace(**SMALL, update="rls", forgetting=0.98, fading=0.95),
    "drop": OnlineKernelSubspace(**SMALL, budget="drop", step="decreasing", eta=4.0, window=0),
    "censoring": OnlineKernelSubspace(**SMALL, censoring=0.6, ald_threshold=0.05),
    "insensitivity": OnlineKernelSubspace(**SMALL, insensitivity=0.2, fading=0.99, shrinkage=0.05),
    "false_alarm_rate": OnlineKernelSubspace(**SMALL, false_alarm_rate=0.05, warmup=60, relearn_after=3, smoothing=0.5),
    "threshold": OnlineKernelSubspace(**SMALL, threshold=0.5, warmup=20),
    "matern32": OnlineKernelSubspace(**SMALL, kernel="matern32"),
    "polynomial": OnlineKernelSubspace(**SMALL, kernel="polynomial", degree=2, coef0=1.0),
    "regression": OnlineSubspaceRegressor(**SMALL),
    "regression, two outputs": OnlineSubspaceRegressor(
        **SMALL, precision="float64", head_forgetting=0.99, ridge=0.01, false_alarm_rate=0.02, warmup=50
    ),
    "two classes": OnlineSubspaceClassifier(**SMALL),
    "three classes": OnlineSubspaceClassifier(**SMALL, head_forgetting=0.995),
    "two classes, logistic": OnlineSubspaceClassifier(**SMALL, head="logistic"),
    "three classes, logistic": OnlineSubspaceClassifier(**SMALL, head="logistic", head_eta=0.8, precision="float64"),
}


@pytest.fixture
def stream():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3)) + 3 * (np.arange(300)[:, None] > 200)
    return x, np.sin(x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=300)


def labels(case, y):
    """What a model of this name learns beside inputs."""
    if "regression" in case:
        return np.column_stack([y, np.roll(y, 1)]) if "two" in case else y
    if "two classes" in case:
        return np.where(y > 0, "wet", "dry")
    return np.digitize(y, [-0.5, 0.5]) + 7 if "three classes" in case else None


def state(model):
    return bytes(model.model_.memory.bytes)


def fitted(case, x, y, **parameters):
    return clone(MODELS[case]).set_params(**parameters).fit(x, labels(case, y))


# ------------------------------------------------------------------------------------------------------------- batch

KERNELS = {
    "gaussian": ({"gamma": 0.2}, lambda a, b: np.exp(-0.2 * ((a[:, None] - b) ** 2).sum(2))),
    "gaussian, sigma": ({"sigma": 2.0}, lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(2) / 8)),
    "laplacian": ({"gamma": 0.3}, lambda a, b: np.exp(-0.3 * np.abs(a[:, None] - b).sum(2))),
    "polynomial": ({"gamma": 0.5, "coef0": 2.0, "degree": 2}, lambda a, b: (0.5 * a @ b.T + 2) ** 2),
    "linear": ({}, lambda a, b: a @ b.T),
}


@pytest.mark.parametrize("case", KERNELS)
def test_batch_features_are_the_shrunken_singular_vectors(stream, case):
    """Khat = V (S - lambda)_+^2 V', of which no other L of that rank has a lower objective."""
    x = stream[0][:80]
    parameters, gram = KERNELS[case]
    model = KernelSubspace(6, kernel=case.split(",")[0], shrinkage=0.5, **parameters).fit(x)
    k = gram(x, x)
    values, vectors = np.linalg.eigh(k)
    sigma, v = np.sqrt(np.maximum(values[::-1][:6], 0)), vectors[:, ::-1][:, :6]
    kept = sigma > 0.5
    sigma, v = sigma[kept], v[:, kept]
    z = model.transform(x)
    assert z.shape == (80, kept.sum()) and model.n_components_ == kept.sum() == (3 if case == "linear" else 6)
    assert np.abs(z @ z.T - (v * (sigma - 0.5) ** 2) @ v.T).max() < 1e-9 * np.abs(k).max()
    assert np.allclose(model.singular_values_, sigma)
    # features are nested, in the order of what they say
    few = KernelSubspace(2, kernel=case.split(",")[0], shrinkage=0.5, **parameters).fit(x)
    assert np.abs(few.transform(x) - z[:, :2]).max() < 1e-8 * np.abs(z).max()
    assert (np.diff(np.linalg.norm(z, axis=0)) < 0).all()
    # the objective, and what is left over, by the definition
    a, q = model.subspace_.a, model.subspace_.coordinates(x)
    fit = np.diag(k) - 2 * np.sum(q * (k @ a), axis=1) + np.sum(q * (q @ (a.T @ k @ a)), axis=1)
    value = 0.5 * fit.sum() + 0.25 * (np.trace(a.T @ k @ a) + np.sum(q**2))
    assert np.isclose(model.objective_[-1], value)
    assert np.allclose(model.score_samples(x), -fit / np.diag(k), atol=1e-10)
    report = model.approximation(x)
    assert np.isclose(report.frobenius, np.linalg.norm(k - z @ z.T) / 80)
    assert report.frobenius <= report.trace_bound * (1 + 1e-9) and report.frobenius <= report.residual_bound


# as the bound says of the polynomial kernel's least feature
@pytest.mark.in_turn(8)
@pytest.mark.filterwarnings("ignore:KernelSubspace. float32 may move its values:UserWarning")
@pytest.mark.parametrize("kernel", ["gaussian", "matern52", "polynomial", "custom"])
@pytest.mark.parametrize("kind", ["features", "numbers", "two numbers", "two classes", "three classes", "clusters"])
def test_a_frozen_map_and_linear_models_of_it_compute_the_same(stream, kind, kernel):
    x, y = 5 + 10 * stream[0], stream[1]
    y = {
        "two numbers": np.column_stack([y, -y]),
        "two classes": y > 0,
        "three classes": np.digitize(y, [-0.5, 0.5]),
    }.get(kind, y)
    learner = {
        "features": None,
        "clusters": KMeans(3, n_init=1, random_state=0),
        "numbers": Ridge(0.1),
        "two numbers": LinearRegression(),
    }.get(kind, LogisticRegression())
    given = CUSTOM if kernel == "custom" else kernel
    batch = KernelSubspace(5, kernel=given, n_max=20)
    online = OnlineKernelSubspace(5, kernel=given, n_max=20, precision="float64", input_max_abs=10.0)
    for transformer, scaler in ((batch, StandardScaler()), (online, MinMaxScaler((-1, 2)))):
        steps = [scaler, clone(transformer)] + [learner] * (learner is not None)
        pipeline = make_pipeline(*steps).fit(x, y)
        values = pipeline.transform(x) if learner is None else None
        if values is None and kind != "clusters":
            values = pipeline.decision_function(x) if "classes" in kind else pipeline.predict(x)
        export = pipeline[1].to_spec if transformer is batch else pipeline[1].frozen_spec
        for precision in ("float64", "float32"):
            options = {"precision": precision, "scaler": pipeline[0], "max_abs": 100.0}
            spec = export("m", learner, **options)
            device = HostModel(spec)
            assert spec.learning.rule == "frozen" and len(spec.expansion.vectors) <= 20
            if kind == "clusters":
                same = device.classify(x) == pipeline.predict(x)
                assert same.mean() >= (1 if precision == "float64" else 0.99)
                continue
            error = np.abs(device.predict(x).reshape(values.shape) - values)
            bound = device_bound(spec, x).reshape(values.shape)
            # in float64 what it is compared with is rounded, too
            bound *= 2 if precision == "float64" else 1
            assert (error <= bound).all() and error.max() < 1e-3 * np.abs(values).max()
            if "classes" in kind:
                sure = np.abs(values).reshape(len(x), -1).min(axis=1) > 1e-3
                assert (learner.classes_[device.classify(x)] == pipeline.predict(x))[sure].all() and sure.mean() > 0.5
            if kind == "two classes":
                assert np.abs(device.probability(x) - pipeline.predict_proba(x)).max() < 1e-4


def test_parameters_of_the_batch_that_cannot_be(stream):
    x, y = stream
    model = KernelSubspace(5).fit(x)
    cases = {
        "n_components is 0; it must be a whole number from 1": lambda: KernelSubspace(0).fit(x),
        "n_components is 2.5": lambda: KernelSubspace(2.5).fit(x),
        "n_max is 0": lambda: KernelSubspace(n_max=0).fit(x),
        "max_iter is -1": lambda: KernelSubspace(max_iter=-1).fit(x),
        "tol is nan": lambda: KernelSubspace(tol=float("nan")).fit(x),
        "shrinkage is 0; it must be a number above 0": lambda: KernelSubspace(shrinkage=0).fit(x),
        "shrinkage is 100, and no singular value of the 300": lambda: KernelSubspace(8, shrinkage=100).fit(x),
        'method is \'kpca\'; it must be "closed" or "alternating"': lambda: KernelSubspace(method="kpca").fit(x),
        "a subspace on a basis is found in closed form": lambda: KernelSubspace(method="alternating", n_max=9).fit(x),
        "there is no kernel 'rbf'": lambda: KernelSubspace(kernel="rbf").fit(x),
        "the sigmoid kernel is not positive definite": lambda: KernelSubspace(kernel=MercerKernel("sigmoid")).fit(x),
        "sigma is 0": lambda: KernelSubspace(sigma=0).fit(x),
        "gamma is -1.0; it must be a number above 0": lambda: KernelSubspace(gamma=-1.0).fit(x),
        "sigma is given; it is of the gaussian": lambda: KernelSubspace(kernel="laplacian", sigma=1.0).fit(x),
        "sigma is given; .* in place of gamma": lambda: KernelSubspace(sigma=1.0, gamma=1.0).fit(x),
        "degree is 3, and kernel, a MercerKernel, has": lambda: KernelSubspace(kernel=CUSTOM, degree=3).fit(x),
        "degree is of polynomial kernels": lambda: KernelSubspace(degree=3).fit(x),
        "coef0 is -1.0; it must be a number from 0": lambda: KernelSubspace(kernel="polynomial", coef0=-1.0).fit(x),
        "model: LogisticRegression does not take 5": lambda: model.to_spec("m", LogisticRegression().fit(x, y > 0)),
        "model: KernelSubspace has neither": lambda: model.to_spec("m", model),
        "name is 'int'": lambda: model.to_spec("int"),
        "scaler is a str; it must be a fitted StandardScaler, MinMaxScaler": lambda: model.to_spec(
            "m", scaler="standard"
        ),
        "scaler has 2 inputs, and the model has 3": lambda: model.to_spec("m", scaler=StandardScaler().fit(x[:, :2])),
        "precision is 'half'": lambda: model.to_spec("m", precision="half"),
    }
    for message, call in cases.items():
        with pytest.raises(UserError, match=message) as caught:
            call()
        assert str(caught.value).startswith("KernelSubspace: ") and "\n" not in str(caught.value), message
    with pytest.raises(NotFittedError):
        KernelSubspace().to_spec("m")


# ------------------------------------------------------------------------------------------------------------ online


@pytest.mark.parametrize("case", MODELS)
def test_features_approximate_the_kernel_within_the_reported_bounds(stream, case):
    x, y = stream
    model = fitted(case, x, y)
    narrow = model.precision == "float32"
    kernel = MercerKernel.of(model.spec_)
    k, z = kernel.gram(x, x), model.transform(x)
    report = model.approximation(x)
    error = np.linalg.norm(k - z @ z.T) / len(x)
    slack = (2e-3 if narrow else 1e-9) * k.max()
    assert error <= min(report.trace_bound, report.residual_bound) + slack
    assert abs(error - report.frobenius) <= slack and error < np.linalg.norm(k) / len(x)
    # Khat <= K
    assert np.linalg.eigvalsh(k - z @ z.T)[0] >= -len(x) * slack
    # what is left over, by the definition, from the state alone
    m = model.model_.memory
    v, a = m.field("v")[: m.field("n")[0]].astype(float), m.field("a")[: m.field("n")[0]].astype(float)
    g, shrinkage = a.T @ kernel.gram(v, v) @ a, model.spec_.subspace.shrinkage
    inner = kernel.gram(x, v) @ a
    q = np.linalg.solve(g + shrinkage * np.eye(len(g)), inner.T).T
    left = kernel.diagonal(x) - 2 * np.sum(q * inner, axis=1) + np.sum(q * (q @ g), axis=1)
    assert np.abs(model.novelty(x) - left / kernel.diagonal(x)).max() <= (2e-3 if narrow else 1e-9)
    assert np.abs(np.sum(z**2, axis=1) - np.sum(q * (q @ g), axis=1)).max() <= slack
    assert model.get_feature_names_out().tolist() == [f"{type(model).__name__.lower()}{i}" for i in range(z.shape[1])]


@pytest.mark.exhaustive
def test_one_pass_comes_near_to_the_batch():
    x, _ = load_digits(return_X_y=True)
    x = x[np.random.default_rng(0).permutation(len(x))] / 16
    batch = KernelSubspace(10, gamma=0.04).fit(x).approximation(x[::3]).residual
    online = OnlineKernelSubspace(10, n_max=50, gamma=0.04, precision="float64").fit(x).approximation(x[::3]).residual
    drawn = KernelSubspace(10, gamma=0.04).fit(x[:10]).approximation(x[::3]).residual
    assert batch < online < batch + 0.4 * (drawn - batch)


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_regressors_head_is_ridge_regression_of_features_as_they_were(stream, outputs):
    x, y = stream
    y = y if outputs == 1 else np.column_stack([y, 3 - y**2])
    model = OnlineSubspaceRegressor(**SMALL, ridge=0.3, precision="float64", sigma=1.5).fit(x, y)
    host = HostModel(model.spec_)
    z, _ = host.prequential(x, y, question="features")
    assert bytes(host.memory.bytes) == state(model)
    rows = np.column_stack([z, np.ones(len(z))])
    theta = np.linalg.solve(rows.T @ rows + 0.3 * np.eye(5), rows.T @ y)
    expected = np.column_stack([model.transform(x), np.ones(len(x))]) @ theta
    assert np.abs(model.predict(x) - expected).max() < 1e-9


# ---------------------------------------------------------------------------------------------- novelty and alarms


def test_outlier_detection_is_by_the_devices_threshold(stream):
    x, _ = stream
    model = OnlineKernelSubspace(**SMALL, false_alarm_rate=0.05, warmup=100, relearn_after=2).fit(x[:200])
    level, threshold, _ = model.model_.read("alarm")[0]
    assert model.offset_ == -threshold < 0 < level
    assert (model.decision_function(x) == model.score_samples(x) - model.offset_).all()
    assert (model.predict(x) == np.where(model.novelty(x) > threshold, -1, 1)).all()
    assert (model.predict(x[:200]) == 1).mean() > 0.85 and (model.predict([[30.0, 0, 0]]) == -1).all()
    assert (clone(model).fit_predict(x[:200]) == model.predict(x[:200])).all()
    # a sample for itself is what the device says of the next one
    before, told = model.predict(x[200:]), np.zeros(100, int)
    for t in range(100):
        probe = copy.deepcopy(model)
        told[t] = -1 if probe.monitor(x[200 + t : 201 + t])[1][0] else 1
    assert (before == told).all() and set(told) == {-1, 1}
    assert model.score_samples(x).shape == (300,) and model.predict(x).dtype.kind == "i"


def test_monitor_tells_before_it_learns(stream):
    x, y = stream
    for case in ("false_alarm_rate", "regression, two outputs"):
        model, twin = fitted(case, x[:100], y[:100]), fitted(case, x[:100], y[:100])
        rest = labels(case, y)[100:] if labels(case, y) is not None else None
        novelty, alarms = model.monitor(x[100:], rest) if rest is not None else model.monitor(x[100:])
        for t in range(100, 300):
            assert novelty[t - 100] == twin.novelty(x[t : t + 1])[0]
            before = dict(twin.status_counts_)
            twin.partial_fit(x[t : t + 1], None if rest is None else rest[t - 100 : t - 99])
            rang = [twin.status_counts_[name] - before[name] for name in ("NOVEL", "HELD")]
            assert alarms[t - 100] == any(rang)
        assert state(model) == state(twin) and model.status_counts_ == twin.status_counts_
        # the change is told at once
        assert alarms[101:111].mean() > 3 * alarms[:100].mean()


def test_there_is_no_alarm_while_it_warms_up_and_no_detector_without_a_threshold(stream):
    x, _ = stream
    model = OnlineKernelSubspace(**SMALL, false_alarm_rate=0.01).fit(x)
    assert model.offset_ == -1 and (model.predict([[1e3, 0, 0]]) == 1).all() and not model.monitor(x)[1][:200].any()
    assert -1 != model.offset_ == -float(model.model_.read("alarm")[0][1]) < 0  # 600 samples
    fixed = OnlineKernelSubspace(**SMALL, threshold=0.25, warmup=0 + 10).fit(x)
    assert fixed.offset_ == -0.25 and (fixed.predict(x) == np.where(fixed.novelty(x) > 0.25, -1, 1)).all()
    assert is_outlier_detector(model) and not is_outlier_detector(OnlineKernelSubspace())
    none = OnlineKernelSubspace(**SMALL).fit(x)
    for name in ("predict", "decision_function", "fit_predict", "offset_"):
        assert hasattr(model, name) and not hasattr(none, name)
    with pytest.raises(AttributeError) as caught:
        none.predict(x)
    assert (
        "if it is given false_alarm_rate or threshold; score_samples needs neither"
        in f"{caught.value} {caught.value.__cause__}"
    )
    assert none.score_samples(x).min() < 0 and not none.monitor(x)[1].any()


# ------------------------------------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"n_components": 0}, "[learning] features is 0"),
        ({"n_components": 20, "n_max": 10}, "[learning] features is 20"),
        ({"n_max": 2.5}, "[reduction] n_max is 2.5"),
        ({"update": "sgd"}, "[subspace] update is 'sgd'"),
        ({"shrinkage": 0.0}, "[subspace] shrinkage is 0"),
        ({"update": "rls", "step": "constant", "eta": 0.5}, "[subspace] "),
        ({"forgetting": 0.9}, "[subspace] forgetting "),
        ({"update": "rls", "budget": "drop"}, '[subspace] budget is "drop" with update = "rls", which hardly learns'),
        ({"budget": "drop", "ald_threshold": 0.1}, "[reduction] ald_threshold "),
        ({"insensitivity": 0.1, "censoring": 0.1}, "[subspace] "),
        ({"false_alarm_rate": 0.1, "threshold": 0.1}, "[novelty] "),
        ({"false_alarm_rate": 2.0}, "[novelty] false_alarm_rate is 2.0"),
        ({"kernel": "sigmoid", "gamma": 1.0}, "[kernel] function is"),
        ({"sigma": 0.0}, 'sigma is 0.0; it must be a number above 0 or "scale"'),
        ({"kernel": CUSTOM}, "input_max_abs must be given with a custom kernel"),
        ({"precision": "float16"}, "precision is 'float16'"),
        ({"n_epochs": 0}, "n_epochs is 0; it must be a whole number from 1"),
        ({"input_max_abs": -1.0}, "[input] max_abs is -1.0"),
    ],
)
def test_parameters_that_cannot_be(stream, parameters, sentence):
    with pytest.raises(UserError) as caught:
        OnlineKernelSubspace(**parameters).fit(stream[0])
    assert str(caught.value).startswith(f"OnlineKernelSubspace: {sentence}") and "\n" not in str(caught.value)


def test_heads_refuse_what_is_not_theirs(stream):
    x, y = stream
    for model, sentence in (
        (OnlineSubspaceClassifier(head="logistic", head_forgetting=0.9), "[learning] forgetting "),
        (OnlineSubspaceClassifier(head_eta=0.9), "[learning] eta "),
        (OnlineSubspaceClassifier(head="svm"), "[subspace] head is 'svm'"),
    ):
        with pytest.raises(UserError) as caught:
            model.fit(x, y > 0)
        assert str(caught.value).startswith(f"OnlineSubspaceClassifier: {sentence}")
    with pytest.raises(UserError, match=r"^OnlineSubspaceRegressor: \[label\] max_abs is -1"):
        OnlineSubspaceRegressor(label_max_abs=-1.0).fit(x, y)


def test_fewer_samples_than_features_and_a_stream_of_equals():
    x = np.random.default_rng(0).normal(size=(3, 2))
    model = OnlineKernelSubspace(8, n_max=8, sigma=1.0, precision="float64").partial_fit(x)
    z = model.transform(x)
    assert z.shape == (3, 8) and not z[:, 3:].any() and model.subspace_.a.shape == (3, 8)
    frozen = HostModel(model.frozen_spec("m"))
    assert np.abs(frozen.predict(x) - z).max() < 1e-12
    before = model.novelty(x[:1])[0]
    model.partial_fit(np.repeat(x[:1], 50, axis=0))
    # repeats of what there is are learned, not stored
    assert model.status_counts_["DONE"] == 50 and model.subspace_.a.shape == (3, 8)
    assert not model.transform(x)[:, 3:].any() and model.novelty(x[:1])[0] < 0.5 * before
