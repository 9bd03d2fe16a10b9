"""Imported models compute what the source does: decision values, classes, probabilities; everything else is refused."""

import io
import json
import pickle
import re
import runpy
import sys
import tomllib
import warnings
import zipfile
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from pykernel import KernelRidgeRegressor, import_sklearn, importing, machine
from pykernel.errors import MissingExtra, UserError
from pykernel.gen import check
from pykernel.gen.compilers import find_compilers
from pykernel.host import HostModel
from pykernel.importing import from_sklearn, load_model
from pykernel.spec import load_spec, make_spec

onnx = pytest.importorskip("onnx")
skops_io = pytest.importorskip("skops.io")

ROOT = Path(__file__).parents[1]
PRECISIONS = ("float32", "float64")
ERROR = {"float32": 8 * 2.0**-23, "float64": 1e-12}
"""What decision values may differ by, in sum |w| max |k| + |b|."""
# scikit-learn 1.9 gives up probability=True in 1.11
FADING = "ignore:.*(probability|prob[AB]_).*:FutureWarning"


# ------------------------------------------------------------------------------------------------- what is compared


def data(seed=0, n=120, dim=4, spread=(1.0, 10.0, 0.1, 3.0), middle=(0.0, 1000.0, 5.0, -2.0)):
    """Inputs that float32 holds, some of them held back, and targets: numbers, two classes and three."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2 * n, dim))
    x = (z * spread[:dim] + middle[:dim]).astype(np.float32).astype(np.float64)
    numbers = np.sin(z[:, 0]) + z[:, 1]
    classes = np.digitize(z[:, 0] + z[:, 1] * z[:, 2 % dim], [-0.5, 0.5])
    return x[:n], x[n:], {"numbers": numbers[:n], "two": (classes[:n] > 0).astype(int), "three": classes[:n]}


def parts(estimator):
    return (estimator[:-1], estimator[-1]) if isinstance(estimator, Pipeline) else (None, estimator)


def pair_values(estimator, x):
    """Decision values, of each pair of classes where there are more than two."""
    scaler, model = parts(estimator)
    z = x if scaler is None else scaler.transform(x)
    z = sp.csr_matrix(z) if getattr(model, "_sparse", False) else z
    if len(getattr(model, "classes_", ())) > 2:
        before = model.get_params()
        values = model.set_params(decision_function_shape="ovo", break_ties=False).decision_function(z)
        model.set_params(**before)
        return values
    values = model.decision_function(z) if hasattr(model, "decision_function") else model.predict(z)
    return values.reshape(len(x), -1)


def size_of(estimator, x):
    """sum |w| max |k| + |b| over rows of x, of what scikit-learn has; |k| of inner products without their signs."""
    scaler, model = parts(estimator)
    z = x if scaler is None else scaler.transform(x)
    vectors = next(v for a in ("support_vectors_", "X_fit_", "X_train_") if (v := getattr(model, a, None)) is not None)
    weights = np.abs(next(v for a in ("dual_coef_", "alpha_") if (v := getattr(model, a, None)) is not None))
    vectors, weights = (np.asarray(a.toarray() if sp.issparse(a) else a) for a in (vectors, weights))
    kernel, largest, bias = getattr(model, "kernel", None), 1.0, np.abs(getattr(model, "intercept_", 0.0)).max()
    if kernel in ("linear", "poly", "polynomial"):
        product = (np.abs(z) @ np.abs(vectors).T).max(initial=0.0)
        gamma = getattr(model, "_gamma", None) or model.gamma or 1 / z.shape[1]
        largest = product if kernel == "linear" else (gamma * product + abs(model.coef0)) ** model.degree
    if isinstance(model, GaussianProcessRegressor):
        largest = model.kernel_.diag(z[:1])[0] * model._y_train_std.max()
        bias = np.abs(model._y_train_mean).max()
    return float(weights.sum() * largest + bias)


def allowed_for(estimator, x, precision):
    """What rounding explains; scikit-learn adds up more terms where a linear kernel is one vector here."""
    size = size_of(estimator, x)
    scaler, model = parts(estimator)
    if precision == "float32" and getattr(model, "kernel", None) == "linear" and hasattr(model, "coef_"):
        z = x if scaler is None else scaler.transform(x)
        coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
        one_vector = (np.abs(z) @ np.abs(coef).T).max() + np.abs(model.intercept_).max()
        return ERROR["float32"] * one_vector + ERROR["float64"] * size
    return ERROR[precision] * size


def votes_of(values, classes):
    """sklearn.utils.multiclass._ovr_decision_function, class by class."""
    found = np.zeros((len(values), classes))
    for row, out in zip(values, found, strict=True):
        for c in range(classes):
            mine = [
                (f if i == c else -f)
                for (i, j), f in zip(combinations(range(classes), 2), row, strict=True)
                if c in (i, j)
            ]
            clear = sum(mine)
            out[c] = sum(f > 0 for f in mine) + clear / (3 * (abs(clear) + 1))
    return found


def assert_same(estimator, spec, x, allowed=None):
    """The host's values and classes are scikit-learn's; returns how many classes were compared."""
    _, model = parts(estimator)
    allowed = allowed_for(estimator, x, spec.precision) if allowed is None else allowed
    values, host = pair_values(estimator, x), HostModel(spec)
    predicted = host.predict(x).reshape(len(x), -1).astype(np.float64)
    if spec.label.classes is None:
        assert np.abs(predicted - values).max() <= allowed
        return 0
    z = x if parts(estimator)[0] is None else parts(estimator)[0].transform(x)
    z = sp.csr_matrix(z) if getattr(model, "_sparse", False) else z
    sure = np.abs(values).min(axis=1) > allowed
    if values.shape[1] == 1 or spec.expansion.decision == "pairs":
        assert np.abs(predicted - values).max() <= allowed
        # a class may only differ where the value does not tell
        sure = (np.abs(values) > np.abs(predicted - values)).all(axis=1)
    else:
        own = model.decision_function(z)
        assert np.allclose(votes_of(values, len(model.classes_))[sure], own[sure], rtol=0, atol=1e-12)
        assert np.abs(predicted - own)[sure].max(initial=0.0) <= allowed * len(model.classes_)
    classes = np.asarray(model.classes_ if hasattr(model, "classes_") else [-1, 1])
    assert np.array_equal(classes[host.classify(x)][sure], model.predict(z)[sure])
    return int(sure.sum())


def scaled(model, scaler=StandardScaler):
    return make_pipeline(scaler(), model)


SVMS = {
    **{f"SVC {k}": (scaled(SVC(kernel=k, coef0=0.5)), "two") for k in ("linear", "poly", "rbf", "sigmoid")},
    **{f"SVC {k}, 3": (scaled(SVC(kernel=k, C=10)), "three") for k in ("linear", "poly", "rbf", "sigmoid")},
    **{f"NuSVC {k}": (scaled(NuSVC(kernel=k, nu=0.3), MinMaxScaler), "three") for k in ("linear", "rbf")},
    "SVC pairs": (scaled(SVC(decision_function_shape="ovo", class_weight="balanced")), "three"),
    "SVC break_ties": (scaled(SVC(break_ties=True, degree=2, kernel="poly")), "three"),
    "SVC auto": (scaled(SVC(gamma="auto", degree=5, kernel="poly", coef0=1.0)), "two"),
    **{f"SVR {k}": (scaled(SVR(kernel=k), MaxAbsScaler), "numbers") for k in ("linear", "poly", "rbf", "sigmoid")},
    "NuSVR poly 1": (scaled(NuSVR(kernel="poly", degree=1, coef0=2.0), RobustScaler), "numbers"),
    **{f"OneClassSVM {k}": (scaled(OneClassSVM(kernel=k, nu=0.2)), "numbers") for k in ("rbf", "poly")},
}
OTHERS = {
    **{
        f"KernelRidge {k}": (scaled(KernelRidge(kernel=k, alpha=0.1, degree=2)), "numbers")
        for k in ("linear", "poly", "polynomial", "rbf", "laplacian")
    },
    "KernelRidge sigmoid": (scaled(KernelRidge(kernel="sigmoid", alpha=10.0, coef0=0.1)), "numbers"),
    "KernelRidge gamma": (scaled(KernelRidge(kernel="rbf", gamma=0.7, alpha=0.1)), "numbers"),
    "GPR": (scaled(GaussianProcessRegressor(alpha=0.01)), "numbers"),
    "GPR normalised": (
        scaled(
            GaussianProcessRegressor(
                ConstantKernel(2.0) * RBF(1.5) + WhiteKernel(0.1), normalize_y=True, optimizer=None
            )
        ),
        "numbers",
    ),
    "GPR anisotropic": (
        scaled(
            GaussianProcessRegressor(
                ConstantKernel(0.5) + RBF([1.0, 2.0, 3.0, 4.0]) * RBF(5.0) + WhiteKernel(0.1), optimizer=None
            )
        ),
        "numbers",
    ),
}
ALL = SVMS | OTHERS


def fitted(name):
    estimator, target = ALL[name]
    x, held, y = data()
    return estimator.fit(x, y[target]), held


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ALL)
def test_values_and_classes_are_scikit_learns(name, precision):
    estimator, held = fitted(name)
    spec = from_sklearn(estimator, "m", precision=precision)
    compared = assert_same(estimator, spec, held)
    assert (compared > 0.5 * len(held)) == (spec.label.classes is not None)
    # the command's own comparison agrees, and sees a number that is another
    source = import_sklearn.read_estimator(estimator)
    found = importing.compare(spec, source, estimator, held)
    assert found["ok"] and found["undecided"] < 0.5 * len(held) and found["refused"] == 0
    bias = [spec.expansion.bias[0] + 100 * found["allowed"] + 0.01, *spec.expansion.bias[1:]]
    other = spec.model_copy(update={"expansion": spec.expansion.model_copy(update={"bias": tuple(bias)})})
    assert not importing.compare(other, source, estimator, held)["ok"]
    # what was written reads back as the same model
    again = make_spec(tomllib.loads(spec.to_toml()))
    assert again == spec and HostModel(again).predict(held).tobytes() == HostModel(spec).predict(held).tobytes()


@st.composite
def problems(draw):
    """Few or many samples of few or many classes, far from zero or not, and any SVC or NuSVC."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    dim, count, n = draw(st.integers(1, 6)), draw(st.integers(2, 5)), draw(st.integers(12, 60))
    kernel = draw(st.sampled_from(["linear", "poly", "rbf", "sigmoid"]))
    # what rounding takes from a center has no place in kernels of x'v
    middle = draw(st.sampled_from([0.0] if kernel in ("poly", "sigmoid") else [0.0, 100.0]))
    spread = draw(st.sampled_from([0.01, 1.0, 50.0]))
    x = (rng.normal(size=(n + 40, dim)) * spread + middle).astype(np.float32).astype(np.float64)
    x[n : n + 5] = x[:5]
    y = np.r_[np.arange(count), rng.integers(0, count, n - count)]
    if draw(st.booleans()):
        y[count:] = np.minimum(y[count:], rng.integers(0, 2, n - count))  # few of the later classes
    names = np.array(list("cabed"))[:count]  # classes_ are sorted, and not as they come
    keys = {
        "kernel": kernel,
        "gamma": draw(st.sampled_from(["scale", "auto", 0.5])),
        "coef0": draw(st.sampled_from([0.0, 0.5, -1.0])),
        "degree": draw(st.integers(1, 4)),
        "decision_function_shape": draw(st.sampled_from(["ovr", "ovo"])),
        "class_weight": draw(st.sampled_from([None, "balanced"])),
        "max_iter": 5000,
    }
    keys["break_ties"] = keys["decision_function_shape"] == "ovr" and draw(st.booleans())
    model = SVC(C=draw(st.sampled_from([0.1, 10.0])), **keys)
    scaler = draw(st.sampled_from([None, StandardScaler, MinMaxScaler, RobustScaler]))
    sparse = scaler is None and draw(st.booleans())
    if scaler is None:
        x = (x - middle) / spread
        x = x.astype(np.float32).astype(np.float64)
    estimator = model if scaler is None else make_pipeline(scaler(), "passthrough", model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some do not converge, which is nothing to an import
        estimator.fit(sp.csr_matrix(x[:n]) if sparse else x[:n], names[y])
    return estimator, x[n:], draw(st.sampled_from(PRECISIONS)), draw(st.sampled_from(["auto", "differences"]))


@given(problems())
@settings(max_examples=80)
def test_any_classifier(problem):
    estimator, held, precision, distance = problem
    spec = from_sklearn(estimator, "m", precision=precision, distance=distance)
    assert spec.label.classes == tuple(parts(estimator)[1].classes_)
    assert_same(estimator, spec, held)


def test_classes_with_equal_votes():
    """Labels at random make circles, where each class wins against another; the first, or the clearest, is taken."""
    rng = np.random.default_rng(3)
    x, held, y = rng.normal(size=(60, 2)), rng.normal(size=(2000, 2)).astype(np.float32), rng.integers(0, 4, 60)
    found = {}
    for breaks in (False, True):
        model = SVC(C=5, gamma=2.0, break_ties=breaks).fit(x, y)
        counts = np.floor(model.decision_function(held) + 0.5)  # the votes without their clearness
        ties = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
        assert ties.sum() > 20
        spec = from_sklearn(model, "m", precision="float64")
        found[breaks] = HostModel(spec).classify(held)[ties]
        assert np.array_equal(found[breaks], model.predict(held)[ties])
    assert (found[False] != found[True]).any()


@pytest.mark.filterwarnings(FADING)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_probabilities_of_two_classes_are_platts(precision):
    """scikit-learn's own differ: it solves for two probabilities by iteration, and stops 0.0025 before the end."""
    x, held, y = data()
    estimator = scaled(SVC(probability=True, random_state=0)).fit(x, y["two"])
    spec = from_sklearn(estimator, "m", precision=precision)
    p, _ = HostModel(spec).ask("probability", held)
    f, model = estimator.decision_function(held), estimator[-1]
    exact = 1 / (1 + np.exp(model._probA[0] * f - model._probB[0]))
    assert np.abs(p[:, 1] - exact).max() <= (1e-5 if precision == "float32" else 1e-13)
    assert np.abs(p.sum(axis=1) - 1).max() <= 1e-6
    assert np.abs(p - estimator.predict_proba(held)).max() < 0.006


@pytest.mark.filterwarnings(FADING)
def test_probabilities_of_more_classes_are_left_out_by_name():
    model = fit(SVC(probability=True), "three")
    with pytest.warns(UserWarning, match="^SVC: probability=True is left out, for 3 classes"):
        spec = from_sklearn(model, "m")
    assert spec.expansion.calibration is None and not HostModel(spec).has("probability")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_several_targets_share_their_vectors(precision):
    x, held, y = data()
    targets = np.column_stack([y["numbers"], y["numbers"] ** 2, y["three"]])
    for model in (KernelRidge(kernel="rbf", alpha=0.1), GaussianProcessRegressor(alpha=0.1, normalize_y=True)):
        estimator = scaled(model).fit(x, targets)
        spec = from_sklearn(estimator, "m", precision=precision)
        assert spec.outputs == 3 and len(spec.expansion.vectors) == len(x)
        assert_same(estimator, spec, held)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_inputs_far_from_zero_lose_no_digits(kernel):
    """Mean 1e5 and deviation 1: the mean's own rounding, 0.004, would be an error of every distance."""
    rng = np.random.default_rng(0)
    x = rng.normal([1e5, -1e5, 77777.7], size=(300, 3)).astype(np.float32).astype(np.float64)
    y = np.sin(x - x.mean(axis=0)).sum(axis=1)
    estimator = scaled(KernelRidge(kernel=kernel, alpha=0.1)).fit(x[:200], y[:200])
    spec = from_sklearn(estimator, "m")
    values, found = estimator.predict(x[200:]), HostModel(spec).predict(x[200:])
    assert np.abs(values - found).max() <= ERROR["float32"] * size_of(estimator, x[200:])
    assert np.abs(values - found).max() < 1e-5 * np.ptp(values)


def test_what_is_stored_is_what_is_needed():
    x, _, y = data()
    z = (x - x.mean(axis=0)) / x.std(axis=0)

    def stored(estimator, **how):
        return from_sklearn(estimator, "m", **how).expansion

    # a vector for each function of a linear kernel, and for each pair of classes
    assert len(stored(SVC(kernel="linear").fit(z, y["three"])).vectors) == 3
    assert len(stored(SVR(kernel="poly", degree=1).fit(z, y["numbers"])).vectors) == 1
    # repeated samples are one vector, and no weight is zero
    twice = KernelRidge(kernel="rbf", alpha=0.1).fit(np.r_[z, z], np.r_[y["numbers"], y["numbers"]])
    assert len(stored(twice).vectors) == len(z)
    # a support vector of two classes stays one of each
    both = SVC(C=1.0).fit(np.r_[z, z[:5]], np.r_[y["three"], (y["three"][:5] + 1) % 3])
    assert len(stored(both).vectors) == len(both.support_vectors_)
    # nothing but a constant
    flat = SVR().fit(z, np.full(len(z), 2.5))
    assert len(flat.support_vectors_) == 0 and stored(flat).weights == ((0.0,),)
    assert HostModel(from_sklearn(flat, "m")).predict(z[:3]).tolist() == flat.predict(z[:3]).tolist() == [2.5] * 3
    # distances by products where they are exact enough; a center makes them so
    narrow = SVC(gamma=1.0).fit(z, y["two"])
    assert stored(SVC(gamma=0.05).fit(z, y["two"])).distance == "products"
    assert stored(narrow).distance == "differences" and stored(narrow, distance="products").distance == "products"
    shifted = from_sklearn(SVC(gamma=0.05).fit(z + 100.0, y["two"]), "m")
    assert shifted.expansion.distance == "products" and np.allclose(shifted.input.center, 100.0, atol=1.0)


def test_names_come_with_a_data_frame():
    x, _, y = data()
    frame = pd.DataFrame((x - x.mean(axis=0)) / x.std(axis=0), columns=["a b", "c", "ü", "d"])
    estimator = scaled(SVC()).fit(frame, np.array(["low", "high"])[y["two"]])
    spec = from_sklearn(estimator, "gate")
    assert spec.input.columns == ("a b", "c", "ü", "d") and spec.label.classes == ("high", "low")
    spec = from_sklearn(estimator, "gate", input_names=list("wxyz"), classes=["on", "off"], limit=50_000)
    assert spec.input.columns == tuple("wxyz") and spec.label.classes == ("on", "off") and spec.input.limit == 50_000
    # what a spec cannot write is no name
    frame.columns = ["a\n", "c", "d", "e"]
    assert from_sklearn(SVC().fit(frame, y["two"]), "gate").input.columns is None
    assert from_sklearn(fit(OneClassSVM()), "gate").label.classes == ("-1", "1")


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_nothing_overflows_within_the_limit(kernel, precision):
    x, _, y = data()
    z = 1000 * (x - x.mean(axis=0)) / x.std(axis=0)
    model = SVC(kernel=kernel, degree=4, coef0=1.0, max_iter=200)
    corners = np.array(list(product((-1, 1), repeat=4)))
    for estimator, rows in ((model.fit(z, y["three"]), z), (scaled(clone(model)).fit(x, y["three"]), x)):
        spec = from_sklearn(estimator, "m", precision=precision)
        assert spec.input.limit >= np.abs(rows).max()
        assert np.isfinite(HostModel(spec).predict(corners * spec.input.limit)).all()
        # a limit that cannot be is refused with one that can
        if precision == "float32":
            with pytest.raises(
                UserError, match=r"limit is 1e\+38, where float32 overflows; it must be at most"
            ) as error:
                from_sklearn(estimator, "m", limit=1e38)
            most = float(re.search(r"at most (\S+),", str(error.value))[1])
            assert most > 0.9 * spec.input.limit
            assert np.isfinite(HostModel(from_sklearn(estimator, "m", limit=most)).predict(corners * most)).all()
            with pytest.raises(UserError, match="it must be at most"):
                from_sklearn(estimator, "m", limit=1.2 * most)


def test_pykernels_own_machines_go_through_pipelines():
    machines = pytest.importorskip("pykernel.kernel_machines")
    x, held, y = data()
    for model, target in ((machines.KernelRidgeRegressor(sigma=1.0, ridge=0.1), "numbers"),
                          (machines.KernelFisherClassifier(sigma=1.0, ridge=0.1), "three")):  # fmt: skip
        estimator = scaled(model, MinMaxScaler).fit(x, y[target])
        spec = from_sklearn(estimator, "m", precision="float64")
        values = estimator.decision_function(held) if target == "three" else estimator.predict(held)
        assert np.allclose(HostModel(spec).predict(held), values, rtol=0, atol=1e-8 * np.abs(values).max())
        if target == "three":
            assert (model.classes_[HostModel(spec).classify(held)] == estimator.predict(held)).all()
        alone = from_sklearn(estimator[-1], "m", precision="float64")
        inside = estimator[:-1].transform(held)
        assert np.allclose(HostModel(alone).predict(inside), values, rtol=0, atol=1e-8 * np.abs(values).max())


@pytest.mark.parametrize("package", ["skops", "onnx"])
def test_without_an_extra_a_sentence_says_what_to_install(package, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package or name == f"pykernel.import_{package}"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / f"m.{package}").write_bytes(b"")
    with pytest.raises(MissingExtra, match=rf"reading .{package} files needs .* pip install 'pykernel-mcu\[import\]'"):
        load_model(tmp_path / f"m.{package}")


COMPILED = ["SVC rbf, 3", "SVC break_ties", "SVC pairs", "SVC linear, 3", "SVR sigmoid", "KernelRidge laplacian",
            "GPR anisotropic", "OneClassSVM poly"]  # fmt: skip


@pytest.mark.parametrize("name", COMPILED)
def test_the_c_computes_the_same_bytes(name):
    estimator, _ = fitted(name)
    spec = from_sklearn(estimator, "m", precision=PRECISIONS[COMPILED.index(name) % 2])
    report = check(spec, samples=2000, compilers=[find_compilers()[0].name])
    assert report.ok, report.rows


# --------------------------------------------------------------------------------------------------------- refusals


def fit(model, target="two", **how):
    x, _, y = data()
    return model.fit((x - x.mean(axis=0)) / x.std(axis=0), y[target], **how)


def overlap(a, b):
    return np.minimum(a[:, None], b[None]).sum(axis=2)


def gram():
    x, _, _ = data()
    return np.exp(-0.01 * ((x[:, None] - x[None]) ** 2).sum(axis=2))


def damaged(**attributes):
    model = fit(SVC(), "three")
    vars(model).update(attributes)
    return model


REFUSED = {
    "SVC: kernel is a function of your own, 'overlap'": lambda: fit(SVC(kernel=overlap)),
    "SVC: kernel 'precomputed' has no vectors": lambda: SVC(kernel="precomputed").fit(gram(), data()[2]["two"]),
    "KernelRidge: kernel 'chi2' has no C": lambda: damaged_ridge(kernel="chi2"),
    "KernelRidge: kernel 'cosine' has no C": lambda: fit(KernelRidge(kernel="cosine"), "numbers"),
    "KernelRidge: kernel 'additive_chi2' has no C": lambda: damaged_ridge(kernel="additive_chi2"),
    "KernelRidge: degree is 2.5; it must be a whole": lambda: damaged_ridge(kernel="poly", degree=2.5),
    "SVR: degree is 12; it must be a whole number": lambda: fit(SVR(kernel="poly", degree=12), "numbers"),
    "SVC: degree is 0; it must be a whole number": lambda: fit(SVC(kernel="poly", degree=0)),
    "SVC: gamma is 0, and the kernel knows nothing": lambda: fit(SVC(gamma=0.0)),
    "SVC: break_ties needs decision_function_shape='ovr'": lambda: fit(
        SVC(break_ties=True, decision_function_shape="ovo"), "three"
    ),
    "SVC is not fitted; call fit": lambda: SVC(),
    "GaussianProcessRegressor is not fitted": lambda: GaussianProcessRegressor(),
    "Pipeline: its StandardScaler is not fitted": lambda: Pipeline([("s", StandardScaler()), ("m", fit(SVC()))]),
    "Ridge is not a model that can be imported; SVC, NuSVC": lambda: fit(Ridge(), "numbers"),
    "RandomForestClassifier is not a model": lambda: fit(RandomForestClassifier(2)),
    "GridSearchCV is not a model that can be imported; give its best_estimator_": lambda: fit(
        GridSearchCV(SVC(), {"C": [1.0]}, cv=2)
    ),
    "str is not a model": lambda: "gate.toml",
    "Pipeline: its StandardScaler is not a model": lambda: make_pipeline(StandardScaler()).fit(data()[0]),
    "Pipeline, step 'pca': a PCA is not x -> ": lambda: make_pipeline(PCA(2), SVC()).fit(data()[0], data()[2]["two"]),
    "Pipeline, step 'minmaxscaler': clip=True bends": lambda: fit(make_pipeline(MinMaxScaler(clip=True), SVC())),
    "GaussianProcessRegressor: kernel_ holds a Matern": lambda: fit(GaussianProcessRegressor(Matern(nu=0.5)), "numbers"),
    "kernel_ holds a DotProduct": lambda: fit(
        GaussianProcessRegressor(RBF() + DotProduct(), alpha=0.1, optimizer=None), "numbers"
    ),
    "kernel_ is a sum of RBFs of different length scales": lambda: fit(
        GaussianProcessRegressor(RBF(1.0) + RBF(2.0), alpha=0.1, optimizer=None), "numbers"
    ),
    "kernel_ has no RBF": lambda: fit(GaussianProcessRegressor(ConstantKernel(), alpha=0.1, optimizer=None), "numbers"),
    "KernelRidge: has 65 targets; a model has from 1 to 64": lambda: KernelRidge().fit(
        data()[0], np.zeros((120, 65)) + data()[0][:, :1]
    ),
    "SVC: knows 65 classes; a model knows from 2 to 64": lambda: SVC().fit(np.arange(130.0)[:, None], np.arange(130) % 65),
    "SVR: takes 2,000 inputs; a model takes from 1 to 1,024": lambda: SVR().fit(sp.eye(30, 2000, format="csr"), range(30)),
    "SVC: dual_coef_ holds numbers that are not finite": lambda: damaged(dual_coef_=fit(SVC(), "three").dual_coef_ * np.nan),
    "SVC: intercept_ has shape .1,.; with its other parts it must have .3,.": lambda: damaged(intercept_=np.zeros(1)),
    "SVC: n_support_ does not add up": lambda: damaged(_n_support=np.array([1, 2, 3], np.int32)),
    "SVC: .* has no attribute '_gamma'; it is not as": lambda: without("_gamma"),
}  # fmt: skip


def damaged_ridge(**keys):
    """What its fit would not do on these data."""
    return fit(KernelRidge(), "numbers").set_params(**keys)


def without(attribute):
    model = fit(SVC())
    del vars(model)[attribute]
    return model


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_computed_is_refused_by_name(sentence):
    estimator = REFUSED[sentence]()
    with pytest.raises(UserError, match=sentence) as refused:
        from_sklearn(estimator, "m")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"name": "../x"}, r"name is '\.\./x'"),
        ({"precision": "float16"}, "precision is 'float16'; it must be one of float32, float64"),
        ({"limit": -1.0}, "limit is -1; it must be above 0"),
        ({"limit": float("nan")}, "limit is nan; it must be finite"),
        ({"input_names": ["a"]}, "takes 4 inputs, but 1 names are given"),
        ({"classes": ["a", "b", "c"]}, "knows 2 classes, but 3 names are given"),
        ({"distance": "near"}, "distance is 'near'; it must be auto, differences or products"),
    ],
)
def test_wrong_arguments_are_told_in_a_sentence(how, sentence):
    with pytest.raises(UserError, match=sentence):
        from_sklearn(fit(SVC()), how.pop("name", "m"), **how)


def test_what_is_for_other_models_is_refused():
    with pytest.raises(UserError, match="distance='products' is for Gaussian kernels; this one is linear"):
        from_sklearn(fit(SVC(kernel="linear")), "m", distance="products")
    with pytest.raises(UserError, match="predicts numbers; classes are for classifiers"):
        from_sklearn(fit(SVR(), "numbers"), "m", classes=["a", "b"])


# ------------------------------------------------------------------------------------------------------------ skops


@pytest.mark.parametrize("name", ["SVC rbf, 3", "SVC linear", "OneClassSVM rbf", "KernelRidge rbf", "GPR anisotropic"])
def test_a_skops_file_is_the_estimator(name, tmp_path):
    estimator, _ = fitted(name)
    path = tmp_path / "gate.skops"
    skops_io.dump(estimator, path)
    assert load_model(path) == from_sklearn(estimator, "gate")
    assert load_model(path, "x", precision="float64", limit=1e4) == from_sklearn(
        estimator, "x", precision="float64", limit=1e4
    )


def test_sparse_and_seeded_estimators_are_read_from_skops(tmp_path):
    x, _, y = data()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    for model in (
        SVC(class_weight={0: 1, 1: 2.5, 2: 1}).fit(sp.csr_matrix(x), y["three"]),
        SVC(random_state=np.random.RandomState(0)).fit(sp.csr_array(x), y["three"].astype(str).astype(object)),
        KernelRidge(kernel="rbf", alpha=np.array([1.0])).fit(sp.csr_matrix(x), y["numbers"]),
        KernelRidgeRegressor(sigma=2.0, ridge=0.1, basis=20).fit(x, y["numbers"]),
    ):
        skops_io.dump(model, tmp_path / "m.skops")
        assert load_model(tmp_path / "m.skops") == from_sklearn(model, "m")


class Bomb:
    """Would run code where it is loaded."""

    def __reduce__(self):
        return print, ("boom",)


def schema_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read("schema.json"))


def with_schema(data, change):
    """A .skops file with another schema."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                made = change(schema)
                content = json.dumps(schema if made is None else made).encode()
            archive.writestr(name, content)
    return out.getvalue()


def asks_for(module, kind, loader="ObjectNode"):
    def change(schema):
        schema["content"]["content"]["extra"] = {
            "__class__": kind, "__module__": module, "__loader__": loader, "__id__": 7, "content": None,
        }  # fmt: skip

    return change


def refused(path, *says):
    """One sentence that names the file, and nothing beside the file."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(UserError) as error:
        load_model(path)
    text = str(error.value)
    assert text.startswith(str(path)) and "\n" not in text and len(text) - len(str(path)) < 400, text
    for said in says:
        assert said in text, text
    assert sorted(path.parent.iterdir()) == before


def test_types_that_models_do_not_need_are_not_loaded(tmp_path, capsys):
    path, content = tmp_path / "m.skops", skops_io.dumps(fit(SVC()))
    for module, kind, loader in (
        ("os", "system", "FunctionNode"),
        ("builtins", "eval", "TypeNode"),
        ("subprocess", "Popen", "ObjectNode"),
        ("sklearn.svm._classes", "SVC", "MethodNode"),
        ("builtins", "dict", "ConstructorFromReduceNode"),
        ("sklearn.ensemble._forest", "RandomForestClassifier", "ObjectNode"),
    ):
        path.write_bytes(with_schema(content, asks_for(module, kind, loader)))
        refused(path, f"asks for '{module}.{kind}", "name it in trusted")
    path.write_bytes(skops_io.dumps(fit(RandomForestClassifier(2))))
    refused(path, "asks for", "none of the types of models")
    # what is trusted is loaded, and judged like any other
    with pytest.raises(UserError, match="Ridge is not a model"):
        skops_io.dump(fit(Ridge(), "numbers"), path)
        load_model(path, trusted=["sklearn.linear_model._ridge.Ridge"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("suffix", [".pkl", ".joblib", ".pickle", ".skops", ".onnx"])
def test_pickles_are_not_loaded(suffix, tmp_path, capsys):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(pickle.dumps(Bomb(), protocol=5))
    refused(path, "is a pickle", "runs whatever it contains", "from_sklearn")
    assert capsys.readouterr().out == ""


def test_damaged_skops_files_are_told_in_a_sentence(tmp_path):
    path, content = tmp_path / "m.skops", skops_io.dumps(fit(scaled(SVC()), "three"))
    for cut in (0, 1, 100, len(content) // 2, len(content) - 30, len(content) - 1):
        path.write_bytes(content[:cut])
        refused(path)
    rng = np.random.default_rng(0)
    for _ in range(25):
        broken = bytearray(content)
        for at in rng.integers(0, len(broken), 8):
            broken[at] = rng.integers(256)
        path.write_bytes(broken)
        try:
            load_model(path)
        except UserError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    for change in (
        lambda schema: [],
        lambda schema: {},
        lambda schema: schema | {"protocol": 10**9},
        lambda schema: schema | {"content": None},
        lambda schema: schema["content"]["content"]["steps"].update(content=[]),
        lambda schema: schema["content"]["content"]["steps"].update(content=[{"__class__": "dict"}]),
        lambda schema: schema["content"]["content"].pop("steps") and None,
    ):
        path.write_bytes(with_schema(content, change))
        refused(path)
    for attribute, value in (
        ("support_vectors_", {"a": 1}),
        ("dual_coef_", np.zeros((2, 102), complex)),
        ("support_vectors_", np.array([["x"]])),
        ("dual_coef_", np.zeros((10**4, 2))),
        ("_n_support", np.array([-5, 5, 0])),
        ("_n_support", "many"),
        ("classes_", np.array(3)),
        ("classes_", 3),
        ("_gamma", "wide"),
        ("_gamma", np.inf),
        ("kernel", ["rbf"]),
    ):
        path.write_bytes(skops_io.dumps(damaged(**{attribute: value})))
        refused(path)


def test_files_that_unpack_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pykernel.import_skops.FILE_LIMIT", 2**20)
    monkeypatch.setattr("pykernel.importing.FILE_LIMIT", 2**20)
    path = tmp_path / "m.skops"
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(2**21))
    for name, content in (("zeros.npy", bytes(2**21)), ("sparse.npz", inner.getvalue())):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
            archive.writestr("schema.json", "{}")
        assert path.stat().st_size < 2**16
        refused(path, "unpacks to more than 1,048,576 bytes")
    path.write_bytes(bytes(2**20 + 1))
    refused(path, "has more than 1,048,576 bytes")


# ------------------------------------------------------------------------------------------------------------- onnx


def to_onnx(estimator, dtype=np.float32, **options):
    skl2onnx = pytest.importorskip("skl2onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return skl2onnx.to_onnx(estimator, np.zeros((1, 4), dtype), **options)


def write(path, model):
    path.write_bytes(model.SerializeToString())
    return path


CONVERTED = [name for name in SVMS if "SVC auto" not in name]


@pytest.mark.filterwarnings(FADING)
@pytest.mark.parametrize("name", CONVERTED)
def test_what_skl2onnx_writes_is_the_estimator(name, tmp_path):
    """To the float32 in which it writes vectors, weights and gamma."""
    estimator, held = fitted(name)
    options = {"zipmap": False} if "SVC" in name and CONVERTED.index(name) % 2 and "One" not in name else {}
    dtype = np.float64 if CONVERTED.index(name) % 3 == 0 else np.float32
    path = write(tmp_path / "m.onnx", to_onnx(estimator, dtype, options=options or None))
    spec = load_model(path, precision="float64")
    source, model = importing.read_file(path)
    found = importing.compare(spec, source, model, held[:40])
    assert found["ok"] and found["undecided"] < 20
    known = from_sklearn(estimator, "m", precision="float64")
    assert (spec.label, spec.expansion.decision) == (known.label, known.expansion.decision)
    assert spec.kernel.function == known.kernel.function and spec.kernel.degree == known.kernel.degree
    # its numbers are rounded to float32, inputs scaled by rounded numbers too; break_ties it does not keep
    assert not spec.expansion.break_ties
    model = parts(estimator)[1]
    if hasattr(model, "break_ties"):
        model.break_ties = False
    assert_same(estimator, spec, held, allowed=40 * 2.0**-23 * size_of(estimator, held) * (model.degree + 1))


@pytest.mark.filterwarnings(FADING)
def test_probabilities_in_onnx(tmp_path):
    x, held, y = data()
    estimator = scaled(SVC(probability=True, random_state=0)).fit(x, y["two"])
    spec = load_model(write(tmp_path / "m.onnx", to_onnx(estimator)), precision="float64")
    p, _ = HostModel(spec).ask("probability", held)
    f, model = estimator.decision_function(held), estimator[-1]
    assert np.abs(p[:, 1] - 1 / (1 + np.exp(model._probA[0] * f - model._probB[0]))).max() < 1e-3
    three = scaled(SVC(probability=True, random_state=0)).fit(x, y["three"])
    with pytest.warns(UserWarning, match="prob_a and prob_b are left out"):
        spec = load_model(write(tmp_path / "m.onnx", to_onnx(three)))
    assert spec.expansion.decision == "pairs"


def test_raw_scores_have_scikit_learns_sign(tmp_path):
    x, held, y = data()
    estimator = scaled(SVC()).fit(x, y["two"])
    model = to_onnx(estimator, options={id(estimator[-1]): {"raw_scores": True}})
    assert "Mul" in {node.op_type for node in model.graph.node}
    spec = load_model(write(tmp_path / "m.onnx", model), precision="float64")
    assert_same(estimator, spec, held, allowed=1e-3)


VECTORS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def svm(kind="SVMClassifier", x="x", **attributes):
    """A node by hand: three classes of two vectors each, or six vectors."""
    own = {
        "coefficients": np.linspace(-1, 1, 12 if kind == "SVMClassifier" else 6).tolist(),
        "support_vectors": VECTORS.ravel().tolist(),
        "kernel_type": "RBF",
        "kernel_params": [0.5, 0.0, 3.0],
        "post_transform": "NONE",
        "rho": [0.3, -0.4, -0.1] if kind == "SVMClassifier" else [0.1],
    }
    if kind == "SVMClassifier":
        own |= {"vectors_per_class": [2, 2, 2], "classlabels_ints": [5, 6, 7]}
    else:
        own |= {"n_supports": 6}
    own = {key: value for key, value in (own | attributes).items() if value is not None}
    outputs = ["label", "scores"] if kind == "SVMClassifier" else ["y"]
    return onnx.helper.make_node(kind, [x], outputs, domain="ai.onnx.ml", **own)


def graph(*nodes, tables=None, inputs=("x",), outputs=None):
    value = onnx.helper.make_tensor_value_info
    tables = [
        onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (tables or {}).items()
    ]  # fmt: skip
    made = onnx.helper.make_graph(
        list(nodes),
        "g",
        [value(name, onnx.TensorProto.FLOAT, [None, 4]) for name in inputs],
        [value(name, onnx.TensorProto.FLOAT, None) for name in outputs or nodes[-1].output],
        tables,
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 1)]
    return onnx.helper.make_model(made, opset_imports=opsets)


def node(kind, inputs, output="z", **attributes):
    domain = "ai.onnx.ml" if kind in ("Scaler", "Normalizer", "ZipMap") else ""
    return onnx.helper.make_node(kind, inputs, [output], domain=domain, **attributes)


CENTER, SCALE = np.array([1.0, 2.0, 3.0, 4.0], np.float32), np.array([0.5, 2.0, 1.0, 0.25], np.float32)
BEFORE = {
    "Scaler": [node("Scaler", ["x"], offset=CENTER.tolist(), scale=SCALE.tolist())],
    "Sub, Div": [node("Sub", ["x", "c"], "a"), node("Div", ["a", "d"])],
    "Mul, Add": [node("Cast", ["x"], "a", to=1), node("Mul", ["a", "s"], "b"), node("Add", ["o", "b"])],
    "twice": [node("Sub", ["c", "x"], "a"), node("Identity", ["a"], "b"), node("Mul", ["n", "b"])],
    "one for all": [node("Scaler", ["x"], offset=[1.5], scale=[0.5])],
}
TABLES = {"c": CENTER, "d": 1 / SCALE, "s": SCALE[None], "o": -CENTER * SCALE, "n": -SCALE}


@pytest.mark.parametrize("kind", ["SVMClassifier", "SVMRegressor"])
@pytest.mark.parametrize("before", BEFORE)
def test_other_graphs_are_what_the_reference_computes(kind, before, tmp_path):
    """Against ONNX's own reference implementation; classes by votes, the first of equal ones."""
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(1).normal(size=(80, 4)).astype(np.float32) / SCALE + CENTER
    model = graph(*BEFORE[before], svm(kind, "z"), tables=TABLES)
    spec = load_model(write(tmp_path / "m.onnx", model), precision="float64")
    host, results = HostModel(spec), ReferenceEvaluator(model).run(None, {"x": x})
    assert np.abs(host.predict(x).reshape(results[-1].shape) - results[-1]).max() < 2e-5
    if kind == "SVMClassifier":
        assert spec.label.classes == ("5", "6", "7") and spec.expansion.decision == "pairs"
        assert np.array_equal(np.array([5, 6, 7])[host.classify(x)], results[0])
        assert len(set(results[0])) == 3


def test_one_class_and_labels_of_text(tmp_path):
    path = tmp_path / "m.onnx"
    spec = load_model(write(path, graph(svm("SVMRegressor", one_class=1))))
    assert spec.label.classes == ("-1", "1")
    names = ["a/../b", "\x00", "naïve"]
    spec = load_model(write(path, graph(svm(classlabels_ints=None, classlabels_strings=names))))
    assert spec.label.classes == ("a/../b", "class 1", "naïve")


SVM = svm()
REFUSED_GRAPHS = {
    "holds no support vector machines": graph(node("Identity", ["x"])),
    "holds 2 support vector machines": graph(svm(), onnx.helper.make_node(
        "SVMRegressor", ["x"], ["w"], domain="ai.onnx.ml", n_supports=1)),
    "gives its SVMClassifier a 'Normalizer'": graph(node("Normalizer", ["x"], norm="L2"), svm(x="z")),
    "gives its SVMClassifier a 'MatMul'": graph(node("MatMul", ["x", "w"]), svm(x="z"), tables={"w": np.eye(4)}),
    "gives its SVMClassifier nothing that is known": graph(svm(x="q")),
    "has 2 inputs; it must have one": graph(svm(), inputs=("x", "y")),
    "its Add does not scale the input by constants": graph(node("Add", ["x", "x"]), svm(x="z")),
    "divides by its input": graph(node("Div", ["c", "x"]), svm(x="z"), tables=TABLES),
    "casts its inputs to a type that is neither": graph(node("Cast", ["x"], to=7), svm(x="z")),
    "takes a table of shape (2, 4)": graph(node("Mul", ["x", "t"]), svm(x="z"), tables={"t": np.ones((2, 4))}),
    "scales 3 inputs, but its vectors have 4": graph(node("Scaler", ["x"], offset=[0.0] * 3, scale=[1.0] * 3), svm(x="z")),
    "takes 4 inputs, but its vectors have 2 numbers": graph(svm(support_vectors=[1.0] * 12)),
    "SVMClassifier: kernel_type is 'COSINE'": graph(svm(kernel_type="COSINE")),
    "SVMClassifier: post_transform is 'SOFTMAX'": graph(svm(post_transform="SOFTMAX")),
    "SVMClassifier: gamma is 0": graph(svm(kernel_params=[0.0, 0.0, 3.0])),
    "SVMClassifier: kernel_params has shape (1,)": graph(svm(kernel_params=[1.0])),
    "SVMClassifier: degree is 2.5": graph(svm(kernel_type="POLY", kernel_params=[1.0, 0.0, 2.5])),
    "SVMClassifier: has no support vectors": graph(svm(vectors_per_class=None)),
    "SVMRegressor: has no support vectors": graph(svm("SVMRegressor", n_supports=0)),
    "are not 1,000,000,000,000 support vectors": graph(svm("SVMRegressor", n_supports=10**12)),
    "vectors_per_class is [4000000000000000000,": graph(svm(vectors_per_class=[4 * 10**18, -4 * 10**18, 6])),
    "for 2 classes": graph(svm(classlabels_ints=[1, 2])),
    "SVMClassifier: rho has shape (1,)": graph(svm(rho=[0.0])),
    "SVMClassifier: coefficients has shape (11,)": graph(svm(coefficients=[0.0] * 11)),
    "SVMClassifier: support_vectors holds numbers that are not finite": graph(svm(support_vectors=[float("nan")] * 24)),
    "SVMClassifier: overflows": None,
    "SVMRegressor: n_targets is 2": graph(svm("SVMRegressor", n_targets=2)),
    "changes the decision values by a 'Softmax'": graph(svm(), node("Softmax", ["scores"])),
    "changes the class by a 'Neg'": graph(svm(), node("Neg", ["label"])),
    "neither these nor scikit-learn's votes": graph(svm(), node("Abs", ["scores"])),
    "neither these nor scikit-learn's votes;": graph(svm("SVMRegressor"), node("Mul", ["y", "c"]), tables={"c": 2.0}),
    "votes; save the model without": graph(svm("SVMRegressor"), node("Add", ["y", "c"]), tables={"c": np.zeros((9, 1))}),
}  # fmt: skip
del REFUSED_GRAPHS["SVMClassifier: overflows"]


@pytest.mark.parametrize("sentence", REFUSED_GRAPHS)
def test_other_graphs_are_refused_by_name(sentence, tmp_path):
    refused(write(tmp_path / "m.onnx", REFUSED_GRAPHS[sentence]), sentence)


def test_hostile_onnx_files_are_told_in_a_sentence(tmp_path):
    path, model = tmp_path / "m.onnx", graph(*BEFORE["Mul, Add"], svm(x="z"), tables=TABLES)
    content = model.SerializeToString()
    for cut in (0, 1, 7, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        refused(path)
    rng = np.random.default_rng(0)
    for _ in range(100):
        broken = bytearray(content)
        for at in rng.integers(0, len(broken), rng.integers(1, 6)):
            broken[at] = rng.integers(256)
        path.write_bytes(broken)
        try:
            load_model(path)
        except UserError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    # tables elsewhere, or larger than they are
    for change in (
        lambda tensor: tensor.external_data.add(key="location", value="../../etc/passwd"),
        lambda tensor: tensor.dims.__setitem__(0, 2**50),
    ):
        model = graph(*BEFORE["Mul, Add"], svm(x="z"), tables=TABLES)
        tensor = model.graph.initializer[2]
        change(tensor)
        if tensor.external_data:
            tensor.data_location = onnx.TensorProto.EXTERNAL
        refused(write(path, model))
    # a graph in a circle, and one that would fill the memory if it ran
    refused(write(path, graph(node("Identity", ["z"], "w"), node("Identity", ["w"], "z"), svm(x="z"))))
    doubling = [node("Concat", [last, last], name, axis=0) for last, name in
                zip(["scores", *(f"c{i}" for i in range(40))], (f"c{i}" for i in range(41)), strict=False)]  # fmt: skip
    refused(write(path, graph(svm(), *doubling)))


# ---------------------------------------------------------------------------------------------------------- command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, held, y = data()
    frame = pd.DataFrame(x, columns=list("abcd"))
    skops_io.dump(scaled(SVC()).fit(frame, np.array(["low", "mid", "high"])[y["three"]]), "gate.skops")
    pd.DataFrame(held, columns=list("abcd")).assign(other=1).to_csv("held.csv", index=False)
    write(tmp_path / "level.onnx", to_onnx(scaled(SVR()).fit(x, y["numbers"])))
    return tmp_path


def test_the_command_writes_a_spec_and_says_what_it_is(run, folder):
    code, out, err = run("import", "gate.skops", "-o", "gate.toml", "--check", "held.csv")
    assert (code, err) == (0, "")
    spec = load_spec("gate.toml")
    vectors = len(spec.expansion.vectors)
    for text in ("gate: Pipeline of SVC, float32", "gaussian, gamma 0.25", f"{vectors}", "high, low, mid", "votes",
                 " B ", "beside the model itself", "undecided"):  # fmt: skip
        assert text in out
    assert spec.label.classes == ("high", "low", "mid") and spec.input.columns == tuple("abcd")
    words = ["import", "level.onnx", "--out", "level.toml", "--inputs", "a,b,c,d", "--check", "held.csv"]
    code, out, err = run(*words, "--precision", "float64", "--limit", "1e5", "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"] and report["check"]["rows"] == 120 and report["classes"] is None
    assert 0 < report["check"]["difference"] <= report["check"]["allowed"] < 1e-3
    assert (report["limit"], load_spec("level.toml").precision) == (1e5, "float64")


def test_the_command_does_not_overwrite_and_writes_nothing_that_is_wrong(run, folder, monkeypatch):
    (folder / "spec.toml").write_text("mine")
    code, out, err = run("import", "gate.skops", "-o", "spec.toml", "--name", "gate")
    assert code == 2 and out == "" and "is there already" in err and (folder / "spec.toml").read_text() == "mine"
    before = sorted(folder.iterdir())
    for words, says in (
        (["nothing.skops"], "there is no such file"),
        (["gate.skops", "--name", "a/b"], "gate.skops: "),
        (["held.csv"], "give one that ends in .skops or .onnx"),
        (["level.onnx", "--check", "held.csv"], "add --inputs"),
        (["gate.skops", "--check", "nothing.csv"], "there is no such file"),
        (["gate.skops", "--inputs", "a,b"], "takes 4 inputs, but 2 names"),
        (["gate.skops", "--precision", "float8"], "precision is 'float8'"),
    ):
        code, out, err = run("import", *words, "-o", "other.toml")
        assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and says in err, err
    # a spec that is not the model
    honest = HostModel.predict
    monkeypatch.setattr(HostModel, "predict", lambda self, x: honest(self, x) + 1e-3)
    code, out, err = run("import", "gate.skops", "-o", "other.toml", "--check", "held.csv")
    assert code == 1 and "the spec is not the model" in err
    assert sorted(folder.iterdir()) == before
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run("import", "gate.skops", "-o", "spec.toml", "--force")[0] == 0 and load_spec("spec.toml").name == "spec"


def test_help_shows_an_example_the_columns_and_the_exit_codes(run):
    code, out, err = run("import", "--help")
    assert code == 0 and err == ""
    for text in ("pykernel import ", "Columns:", "Exit codes: 0 "):
        assert text in out


# ------------------------------------------------------------------------------------------------- page and example


def test_the_page_is_true(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    (code,), (said,) = (
        re.findall(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE) for kind in ("python", "text")
    )
    exec(compile(code, "importing.md", "exec"), {})
    assert capsys.readouterr().out == said
    assert f"γ \\|v\\|² ≤ {machine.PRODUCTS:g} for all vectors\n(less above {machine.PRODUCTS_DIM} inputs)" in page
    assert f"{machine.ERROR:g} · 2⁻²³" in page and f"more than {100 * importing.COARSE:g} %" in page
    assert f"{machine.FILE_LIMIT // 2**20} MiB" in page and machine.REACH == 1e6
    for estimator in import_sklearn._readers():
        assert f"`{estimator.__name__}`" in page
    for kernel in import_sklearn.KERNELS:
        assert f'`"{kernel}"`' in page


def test_the_example(tmp_path, monkeypatch, capsys, one_compiler):
    monkeypatch.setattr(sys, "argv", ["from_scikit_learn.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "import" / "from_scikit_learn.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert float(re.search(r"differ by at most (\S+)", printed)[1]) < 1e-5
    assert len(set(re.findall(r"(\d+)%", printed))) == 1
    assert (tmp_path / "gate" / "src" / "gate.h").is_file() and load_spec(tmp_path / "gate.toml").name == "gate"


@pytest.mark.parametrize("dim", [8, 64])
def test_products_differ_by_no_more_than_their_bound(dim):
    """Two opposite vectors as far out as "auto" takes products for, and inputs around one of them: more than ERROR."""
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(30):
        v = rng.normal(size=(1, dim))
        v = (v / np.linalg.norm(v)).astype(np.float32).astype(np.float64)
        estimator = KernelRidge(kernel="rbf", gamma=3.9, alpha=1e-3).fit(np.vstack([v, -v]), [1.0, 0.0])
        spec = from_sklearn(estimator, "m")
        assert spec.expansion.distance == "products"
        steps = np.vstack([rng.normal(size=(200, dim)), np.repeat(v, 100, axis=0)])
        steps *= rng.uniform(0, 1.2, (300, 1)) / np.linalg.norm(steps, axis=1, keepdims=True)
        x = (v + steps).astype(np.float32)
        apart = np.abs(HostModel(spec).predict(x) - estimator.predict(x.astype(np.float64))).max()
        worst = max(worst, apart / (2.0**-23 * np.abs(estimator.dual_coef_).sum()))
    assert machine.ERROR < worst <= importing.rounding(spec)
