"""Kernel features and models on a basis, as scikit-learn estimators: definitions, and the way to the device."""

import functools

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pykernel import (
    HostModel,
    KernelFisherClassifier,
    KernelRidgeRegressor,
    LSSVMClassifier,
    LSSVMRegressor,
    check,
)
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.estimators.basis import KernelBasis
from pykernel.importers.importing import from_sklearn
from pykernel.training.reduced import ReducedProblem
from pykernel.training.rounding import device_bound
from tests.estimators.test_kernel_machines import ALL, EACH, labels_of, values
from tests.estimators.test_kernel_machines import samples as machine_samples
from tests.support.compilers import QUICK

samples = functools.partial(machine_samples, count=90)


# ----------------------------------------------------------------------------------------------------- the features


@pytest.mark.parametrize(
    "kernel, parameters, gram",
    [
        ("gaussian", {"gamma": 0.2}, lambda a, b: np.exp(-0.2 * ((a[:, None] - b) ** 2).sum(2))),
        ("gaussian", {"sigma": 2.0}, lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(2) / 8)),
        ("laplacian", {"gamma": 0.3}, lambda a, b: np.exp(-0.3 * np.abs(a[:, None] - b).sum(2))),
        ("polynomial", {"gamma": 0.5, "coef0": 2.0, "degree": 2}, lambda a, b: (0.5 * a @ b.T + 2) ** 2),
        ("linear", {}, lambda a, b: a @ b.T),
        (
            "linear",
            {"normalise": True},
            lambda a, b: a @ b.T / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1),
        ),
    ],
)
def test_inner_products_of_features_are_the_nystroem_kernel(kernel, parameters, gram):
    x, _ = samples()
    transformer = KernelBasis(kernel, n_components=12, method="rpcholesky", epsilon=1e-6, **parameters).fit(x)
    s = transformer.components_
    assert (s == x[transformer.component_indices_]).all() and len(s) == {"linear": 3, "polynomial": 10}.get(kernel, 12)
    expected = gram(x, s) @ np.linalg.solve(gram(s, s), gram(s, x))
    z = transformer.transform(x)
    assert np.abs(z @ z.T - expected).max() < 1e-9 * np.abs(expected).max()
    delta = 1 - (z**2).sum(1) / np.diag(gram(x, x))
    assert np.abs(transformer.residual(x) - delta).max() < 1e-9
    assert transformer.get_feature_names_out().tolist() == [f"kernelbasis{i}" for i in range(z.shape[1])]
    few = KernelBasis(kernel, n_components=2, method="rpcholesky", epsilon=1e-6, **parameters).fit(x)
    assert np.abs(few.transform(x) - z[:, :2]).max() < 1e-12 * np.abs(z).max()  # nested


def test_scale_of_the_data_does_not_matter_where_gamma_is_derived():
    x, _ = samples()
    for kernel in ("gaussian", "laplacian", "matern32", "matern52"):
        here, there = KernelBasis(kernel, n_components=9).fit(x), KernelBasis(kernel, n_components=9).fit(1024 * x)
        assert np.allclose(here.transform(x), there.transform(1024 * x), rtol=0, atol=1e-9)


def test_linear_models_behind_it_are_kernel_models():
    """Ridge on features of all samples is kernel ridge regression; a StandardScaler before is one of it."""
    x, y = samples("number")
    x = x[:-3]
    y = y[:-3]
    pipeline = make_pipeline(
        StandardScaler(), KernelBasis(gamma=0.5, n_components=200, epsilon=1e-13), Ridge(alpha=0.3, fit_intercept=False)
    )
    pipeline.fit(x, y)
    scaled = pipeline[0].transform(x)
    assert len(pipeline[1].components_) == len(x)
    expected = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5).fit(scaled, y).predict(scaled)
    assert np.abs(pipeline.predict(x) - expected).max() < 1e-9


@pytest.mark.parametrize("labels", ["number", "two numbers", "two classes", "three classes"])
def test_a_linear_model_of_features_goes_to_the_device_with_the_scaler(labels):
    x, y = samples(labels)
    x = 5 + 10 * x
    linear = LinearRegression() if "number" in labels else LogisticRegression()
    pipeline = make_pipeline(StandardScaler(), KernelBasis(n_components=12, epsilon=2e-3), linear).fit(x, y)
    for precision, error in (("float32", 2e-3), ("float64", 1e-10)):
        spec = pipeline[1].to_spec("m", linear, precision=precision, scaler=pipeline[0])
        device = HostModel(spec)
        assert spec.learning.rule == "nystrom"
        got = device.predict(x).reshape(len(x), -1)
        assert np.abs(got - values(pipeline, x)).max() < error * np.abs(values(pipeline, x)).max()
        if "classes" in labels:
            classes = linear.classes_[device.classify(x)]
            assert (classes == pipeline.predict(x)).mean() > (0.97 if precision == "float32" else 0.999)
            assert spec.label.classes == tuple(map(str, linear.classes_))
    features = HostModel(pipeline[1].to_spec("m", precision="float64", scaler=pipeline[0]))
    assert np.abs(features.predict(x) - pipeline[:2].transform(x)).max() < 1e-10


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("criterion", ["columns", "kurtosis"])
def test_sparse_directions_go_to_the_device_as_a_frozen_expansion(criterion, one_compiler):
    """Coefficients of kernel values, whose magnitudes add up to 1: so float32 loses nothing beyond its own roundings."""
    x, y = samples("three classes")
    x = 5 + 10 * x
    scaler = StandardScaler().fit(x)
    options = {"method": "skfa", "method_params": {"criterion": criterion}, "random_state": 3}
    model = KernelBasis(n_components=12, **options).fit(scaler.transform(x))
    basis, f = model.basis_, model.transform(scaler.transform(x))
    a = basis.directions()
    assert np.abs(f - basis.kernel.gram(scaler.transform(x), basis.vectors) @ a.T).max() < 1e-14
    few = KernelBasis(n_components=4, gamma=basis.kernel.gamma, **options).fit(scaler.transform(x))
    assert np.abs(few.transform(scaler.transform(x)) - f[:, :4]).max() < 1e-14  # nested
    spec = model.to_spec("m", scaler=scaler)
    assert spec.learning.rule == "frozen"
    assert check(spec, samples=500, levels=["-O1"], compilers=[QUICK[0].name]).ok
    off = np.abs(HostModel(spec).predict(x) - f)
    assert off.max() < 1e-6 and (off <= device_bound(spec, x)).all()
    assert np.abs(HostModel(model.to_spec("m", scaler=scaler, precision="float64")).predict(x) - f).max() < 1e-14
    linear = LogisticRegression(C=100, max_iter=1000).fit(f, y)
    device = HostModel(model.to_spec("m", linear, scaler=scaler))
    assert (linear.classes_[device.classify(x)] == linear.predict(f)).mean() > 0.98
    cases = {
        "criterion is 'trace'; it must be one of columns, kurtosis": lambda: KernelBasis(
            method="skfa", method_params={"criterion": "trace"}
        ).fit(x),
        "sgma has no option 'criterion'": lambda: KernelBasis(
            method="sgma", method_params={"criterion": "columns"}
        ).fit(x),
        "model: .*3": lambda: model.to_spec("m", LogisticRegression().fit(x, y)),
        "model: KernelRidge is no affine function": lambda: model.to_spec("m", KernelRidge(kernel="rbf").fit(f, y)),
        "precision is 'half'": lambda: model.to_spec("m", precision="half"),
    }
    for message, call in cases.items():
        with pytest.raises(UserError, match=f"^KernelBasis: .*{message}"):
            call()


def test_refusals_say_what_is_wrong():
    x, y = samples("number")
    fitted = KernelBasis(n_components=5).fit(x)
    own = MercerKernel("gaussian", gamma=2.0)
    cases = {
        "kernel is 'rbf'; it must be one of gaussian": lambda: KernelBasis("rbf").fit(x),
        "gamma is -1": lambda: KernelBasis(gamma=-1).fit(x),
        "sigma is given; it is of the gaussian": lambda: KernelBasis("laplacian", sigma=1.0).fit(x),
        "sigma is 0": lambda: KernelBasis(sigma=0).fit(x),
        "gamma is given, which the linear": lambda: KernelBasis("linear", gamma=1.0).fit(x),
        "gamma is 1.0, and kernel, a MercerKernel, has its own; leave gamma out": lambda: KernelBasis(
            own, gamma=1.0
        ).fit(x),
        "degree is 10": lambda: KernelBasis("polynomial", degree=10).fit(x),
        "normalise does not go with a gaussian": lambda: KernelBasis(normalise=True).fit(x),
        "n_max is 0": lambda: KernelBasis(n_components=0).fit(x),
        "there is no method 'best'": lambda: KernelBasis(method="best").fit(x),
        "has no option 'speed'": lambda: KernelBasis(method="rpcholesky", method_params={"speed": 1}).fit(x),
        "method_params is 3": lambda: KernelBasis(method_params=3).fit(x),
        "model is a KernelRidge": lambda: fitted.to_spec("m", KernelRidge().fit(x, y)),
        "weights of 3 features, and there are 5": lambda: fitted.to_spec("m", Ridge().fit(x, y)),
        "scaler is a Ridge": lambda: fitted.to_spec("m", scaler=Ridge()),
        "scaler has 2 inputs": lambda: fitted.to_spec("m", scaler=StandardScaler().fit(x[:, :2])),
        "precision is 'half'": lambda: fitted.to_spec("m", precision="half"),
        "float32 needs more than 0.001": lambda: (
            KernelBasis("polynomial", gamma=1e-3, n_components=10, method="rpcholesky").fit(x).to_spec("m")
        ),
    }
    for message, call in cases.items():
        with pytest.raises(UserError, match=message) as caught:
            call()
        assert str(caught.value).startswith("KernelBasis: ")


# ------------------------------------------------------------------------------------------------- kernel machines


@pytest.mark.parametrize("kind, labels", EACH)
def test_machines_on_a_basis_are_reduced_problems(kind, labels):
    """Chosen anew for each width; the whole grid, the choice, and what is left out."""
    x, y = samples(labels)
    grid = {"sigma": [0.7, 2.0], "ridge": [0.03, 1.0]}
    model = kind(**grid, basis=11, basis_params={"method": "sgma", "candidates": 20}, random_state=4).fit(x, y)
    seed = int(np.random.RandomState(4).randint(2**31))
    kernel = MercerKernel("gaussian").with_width(model.sigma_)
    basis = select_basis(x, kernel, 11, "sgma", candidates=20, seed=seed)
    assert (model.basis_ == basis.vectors).all() and (model.reduced_.basis.indices == basis.indices).all()
    assert model.selection_.press.shape == (2, 2)
    targets = targets_of(model, y)
    machine = ReducedProblem(model._model, basis, x, targets)
    left_out = machine.leave_one_out(model.ridge_)
    assert np.abs(model.loo_predictions_.reshape(left_out.shape) - left_out).max() < 1e-10
    new = np.random.default_rng(0).normal(size=(30, 3))
    expected = machine.solve(model.ridge_).predict(new)
    assert np.abs(values(model, new) - expected).max() < 1e-9 * np.abs(expected).max()
    assert np.abs(kernel.gram(new, model.basis_) @ model.alpha_ + model.bias_ - values(model, new)).max() < 1e-12
    again = kind(**grid, basis=basis, random_state=4).set_params(sigma=None, ridge=model.ridge_).fit(x, y)
    assert values(again, new).tobytes() == values(model, new).tobytes() and again.selection_ is None


def targets_of(model, y):
    from pykernel.training.closed_form import Targets

    if not hasattr(model, "classes_"):
        return Targets.of_values(y)
    return Targets.of_classes(np.searchsorted(model.classes_, y), len(model.classes_), model.coding)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not KernelFisherClassifier])
def test_a_basis_of_all_samples_is_the_model_of_all_samples(kind):
    x, y = samples(labels_of(kind)[0])
    full = kind(sigma=1.5, ridge=0.3).fit(x, y)
    for basis in (np.arange(len(x)), x):
        model = kind(sigma=1.5, ridge=0.3, basis=basis).fit(x, y)
        assert len(model.basis_) == len(x) - 3  # without the repeats
        assert np.abs(values(model, x) - values(full, x)).max() < 1e-7
        assert np.abs(model.loo_predictions_ - full.loo_predictions_).max() < 1e-7
        assert np.isclose(model.loo_error_, full.loo_error_)
    assert (model.reduced_.basis.indices == -1).all()


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("kind, labels", EACH)
@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "polynomial", "linear"])
def test_frozen_and_learning_devices_compute_the_same(kind, labels, kernel):
    x, y = samples(labels)
    scale = {
        "gaussian": {"sigma": 1.5},
        "matern32": {"gamma": 0.5},
        "polynomial": {"gamma": 0.3, "degree": 2},
        "linear": {},
    }[kernel]
    model = kind(kernel, **scale, ridge=0.1, basis=10, basis_params={"epsilon": 2e-3}).fit(x, y)
    expected = values(model, x)
    size = np.abs(expected).max()
    for rule in ("frozen", "nystrom"):
        for precision, error in (("float32", 5e-4), ("float64", 1e-11)):
            spec = model.to_spec("m", precision=precision, rule=rule)
            assert spec.learning.rule == rule
            assert np.abs(HostModel(spec).predict(x).reshape(len(x), -1) - expected).max() < error * size
    if kind in (LSSVMClassifier, LSSVMRegressor):
        with pytest.raises(UserError, match="has no bias"):
            model.device_spec("m")
        return
    spec = model.device_spec("m", precision="float64")
    assert spec.learning.rule == ("kfd" if kind is KernelFisherClassifier else "nystrom-rls")
    device = HostModel(spec)
    device.update(x, y if labels_of(kind)[0] == "number" else np.searchsorted(model.classes_, y))
    if kind is KernelFisherClassifier:
        device.train()
    assert np.abs(device.predict(x).reshape(len(x), -1) - expected).max() < 1e-8 * size


def test_a_basis_brings_any_kernel_and_other_parameters_must_agree():
    x, y = samples("number")
    kernel = MercerKernel("polynomial", gamma=0.5, coef0=2.0, degree=2, normalise=True)
    basis = select_basis(x, kernel, 8, "rpcholesky", epsilon=2e-3)
    model = KernelRidgeRegressor(basis=basis, ridge=0.1).fit(x, y)
    z = basis.features(x)
    expected = z @ np.linalg.solve(z.T @ z + 0.1 * np.eye(z.shape[1]), z.T @ y)
    assert np.abs(model.predict(x) - expected).max() < 1e-10
    device = HostModel(model.to_spec("m", rule="nystrom"))
    assert np.abs(device.predict(x) - expected).max() < 1e-3
    assert model.gamma_ == 0.5 and model.kernel_["normalise"] is True
    for spec in (model.to_spec("m"), from_sklearn(model, "m")):
        assert spec.kernel.normalise and np.abs(HostModel(spec).predict(x) - expected).max() < 1e-3
    wider = KernelRidgeRegressor(basis=basis, gamma=[0.1, 0.5], ridge=0.1).fit(x, y)
    assert wider.selection_.press[1] == pytest.approx([model.loo_error_])
    cases = {
        "kernel is 'laplacian', but basis was chosen with 'polynomial'": {"kernel": "laplacian"},
        "coef0 is 3": {"coef0": 3},
        "sigma is given, which the polynomial": {"sigma": 1.0},
        "basis_params is": {"basis_params": {"tau": 0.1}},
    }
    for message, parameters in cases.items():
        with pytest.raises(UserError, match=f"KernelRidgeRegressor: {message}"):
            KernelRidgeRegressor(basis=basis, **parameters).fit(x, y)
    with pytest.raises(UserError, match="basis holds vectors of 3 inputs; the samples have 2"):
        KernelRidgeRegressor(basis=basis).fit(x[:, :2], y)


def test_parameters_of_machines_on_a_basis_that_cannot_be():
    x, y = samples("number")
    cases = {
        "basis is 0; it must be positions": {"basis": 0},
        "basis is True": {"basis": True},
        "the sigmoid kernel is not positive definite": {"basis": 4, "kernel": "sigmoid"},
        "(no cell .*: )?there is no method 'all'": {"basis": 4, "basis_params": {"method": "all"}},
        "basis_params holds seed": {"basis": 4, "basis_params": {"seed": 1}},
        "basis_params is 3": {"basis": 4, "basis_params": 3},
        "basis_params is {'tau': 0.1}; it must be a dict, beside": {"basis_params": {"tau": 0.1}},
    }
    for kind in (KernelRidgeRegressor, LSSVMRegressor):
        for message, parameters in cases.items():
            with pytest.raises(UserError, match=f"{kind.__name__}: {message}"):
                kind(**parameters).fit(x, y)
    model = KernelRidgeRegressor(basis=4, ridge=0.1, sigma=1.0).fit(x, y)
    for message, call in {
        "rule is 'full'": lambda: model.to_spec("m", rule="full"),
        "distance is 'products'": lambda: model.to_spec("m", rule="nystrom", distance="products"),
        "samples is given": lambda: model.device_spec("m", samples=50),
        'rule is "nystrom", which': lambda: (
            KernelRidgeRegressor(sigma=1.0, ridge=1.0).fit(x, y).to_spec("m", rule="nystrom")
        ),
    }.items():
        with pytest.raises(UserError, match=message):
            call()


def test_a_frozen_basis_tells_features_and_what_it_leaves_over():
    x, y = samples("number")
    model = KernelRidgeRegressor(sigma=1.5, ridge=0.1, basis=10, basis_params={"epsilon": 2e-3}).fit(x, y)
    device = HostModel(model.to_spec("m", rule="nystrom", precision="float64"))
    basis = model.reduced_.basis
    z, statuses = device.ask("features", x)
    assert not statuses.any() and np.abs(z - basis.features(x)).max() < 1e-11
    delta, _ = device.ask("residual", x)
    assert np.abs(delta[:, 0] - basis.residual(x)).max() < 1e-11


def test_ridge_classifier_is_the_same_machine():
    """LS-SVM with signs is scikit-learn's RidgeClassifier on the features."""
    x, y = samples("three classes")
    model = LSSVMClassifier(sigma=1.0, ridge=0.5, basis=15).fit(x, y)
    z = model.reduced_.basis.features(x)
    theirs = RidgeClassifier(alpha=0.5).fit(z, y)
    assert np.abs(theirs.decision_function(z) - model.decision_function(x)).max() < 1e-9
