"""Pipelines that begin with raw samples: the device takes these, and answers as the pipeline does at each step."""

import tomllib

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

import pykernel
from pykernel import BudgetedKernelRegressor, SignalFeatures, from_sklearn
from pykernel.algorithms.signal.state import SignalStatus
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers.importing import compare, source_functions
from pykernel.importers.sklearn import read_estimator
from pykernel.spec.model import make_spec
from pykernel.training.rounding import device_bound, source_bound
from tests.support.compilers import in_one_build

WINDOWS = {"window": 32, "hop": 16, "features": {"ax": ["mean", "rms"], "ay": ["std", "change"]}, "lags": [0, 1]}
LAGS = {"lags": [0, 1, 4], "averages": [5], "periods": [24], "precision": "float64"}

NAMELESS = "ignore:.*valid feature names:UserWarning"  # a comparison is of arrays


def recording(rows=3000):
    rng, t = np.random.default_rng(4), np.arange(rows)
    state = t // 150 % 3
    x = rng.normal(size=(rows, 2)) * (0.5 + state)[:, None] + np.sin(t[:, None] / [3.0, 7.0]) + 5.0
    return pd.DataFrame(x, columns=["ax", "ay"]), state


def trained(how, *steps, numbers=False):
    """A pipeline, trained on the steps of a recording."""
    x, state = recording()
    stage = SignalFeatures(**how).fit(x)
    z, y = stage.steps(x, x["ax"].to_numpy() * state if numbers else np.array(["idle", "slow", "fast"])[state])
    every = max(1, len(z) // 180)
    return make_pipeline(stage, make_pipeline(*steps).fit(z[::every], y[::every]))


def compared(pipeline, x, **how):
    spec = from_sklearn(pipeline, "gate", precision=pipeline[0].precision, **how)
    return spec, compare(spec, read_estimator(pipeline), pipeline, x)


@pytest.mark.exhaustive
@pytest.mark.skipif(not find_compilers(), reason="needs a C compiler")
@pytest.mark.parametrize(("model", "how"), [(SVC(), WINDOWS), (SVR(C=10), LAGS)], ids=["classes", "numbers"])
def test_the_c_takes_raw_samples_and_answers_as_the_pipeline(model, how):
    numbers = isinstance(model, SVR)
    pipeline, (x, _) = trained(how, StandardScaler(), model, numbers=numbers), recording()
    spec = from_sklearn(pipeline, "gate", precision=pipeline[0].precision)
    assert spec.signal.channels == ("ax", "ay") and spec.input.columns == tuple(pipeline[0].get_feature_names_out())
    project, raw = build(spec), x.to_numpy().astype(spec.real.dtype)
    device, host = CModel(project, find_compilers()[0], ("-O1",)), HostModel(spec, project.drop)
    none = np.zeros((len(raw), 0))
    (answers, statuses), (told, said) = device.prequential(raw, none), host.prequential(raw)
    assert answers.tobytes() == told.tobytes() and statuses.tobytes() == said.tobytes()
    assert device.memory.bytes == host.memory.bytes
    # push, and ask where a step has ended
    device.call("reset")
    steps, features, classes = [], [], []
    for i in range(len(raw)):
        if device.visit("push", raw[i : i + 1], none[:1])[0] == SignalStatus.READY:
            steps.append(i)
            features.append(device.read("signal")[0])
            classes += [] if numbers else [device.read("classify_newest")[0][0]]
    made = pipeline[0].transform(x)[steps]
    assert np.array(features).tobytes() == made.astype(spec.real.dtype).tobytes()
    values, source = source_functions(pipeline, x)[steps], read_estimator(pipeline)
    allowed = device_bound(spec, made) + source_bound(source, made)
    found = answers[steps].reshape(len(steps), -1)
    if numbers:
        assert len(steps) == len(x) - 4 and (np.abs(found[:, 0] - pipeline.predict(x)[steps]) <= allowed[:, 0]).all()
        return
    sure = (np.abs(values) > allowed).all(axis=1)
    named = np.array(spec.label.classes)[classes]
    assert sure.mean() > 0.9 and (named[sure] == pipeline.predict(x)[steps][sure]).all() and len(set(named)) == 3


@pytest.mark.filterwarnings(NAMELESS)
def test_comparisons_take_raw_samples_and_see_what_is_wrong():
    """Refused raw samples divide them, as a gap does, but that phases begin anew."""
    pipeline, (x, _) = trained(WINDOWS | {"periods": [50]}, StandardScaler(), SVC()), recording()
    raw = x.to_numpy(copy=True)
    raw[100], raw[1000, 1], raw[1010, 0] = np.nan, 1e7, np.inf
    spec, found = compared(pipeline, raw)
    pieces = [(end - start) // 16 - 2 for start, end in ((0, 100), (101, 1000), (1011, 3000))]
    assert found["ok"] and found["refused"] == 3 and found["rows"] == sum(pieces) and found["undecided"] < 5
    bias = [spec.expansion.bias[0] + 0.01, *spec.expansion.bias[1:]]
    wrong = spec.model_copy(update={"expansion": spec.expansion.model_copy(update={"bias": tuple(bias)})})
    assert not compare(wrong, read_estimator(pipeline), pipeline, x)["ok"]
    with pytest.raises(UserError, match="gate: needs 48 consecutive raw samples for its first features"):
        compared(pipeline, x[:47])
    with pytest.raises(UserError, match="takes raw samples of 2 channels, but each row holds 3 numbers"):
        compared(pipeline, np.zeros((50, 3)))


@pytest.mark.filterwarnings(NAMELESS)
@pytest.mark.parametrize(
    ("numbers", "steps"),
    [
        (False, [OneVsRestClassifier(SVC())]),
        (False, [SelectKBest(k=3), StandardScaler(), LogisticRegression()]),
        # the device computes features in one order
        (False, [ColumnTransformer([("a", MinMaxScaler(), [5, 1, 0]), ("b", StandardScaler(), [2, 3, 4, 7, 6])]), SVC()]),
        (False, [ColumnTransformer([("a", StandardScaler(), [6, 1, 0])]), SVC(kernel="poly", degree=2)]),
        (True, [Nystroem(n_components=12, random_state=0), Ridge()]),
        (True, [StandardScaler(), GaussianProcessRegressor(alpha=0.1, normalize_y=True)]),
        (True, [TransformedTargetRegressor(SVR(), transformer=StandardScaler())]),
    ],
)  # fmt: skip
def test_steps_behind_it_are_folded_as_ever(numbers, steps):
    x, _ = recording()
    spec, found = compared(trained(WINDOWS, *steps, numbers=numbers), x)
    assert found["ok"] and found["rows"] == len(x) // 16 - 2 and found["undecided"] < 10
    assert make_spec(tomllib.loads(spec.to_toml())) == spec


@pytest.mark.filterwarnings(NAMELESS)
@pytest.mark.parametrize("steps", [[StandardScaler(), SVC()], [SVC()], [SelectKBest(k=3), LogisticRegression()]])
def test_int16_takes_raw_samples(steps):
    """What the pipeline was trained on is what the device counts."""
    whole = {"window": 32, "hop": 16, "features": ["mean", "rms"], "lags": [0, 1], "max_abs": [20.0, 30.0]}
    pipeline, (x, _) = trained(whole | {"precision": "int16"}, *steps), recording()
    spec, found = compared(pipeline, x)
    assert found["ok"] and found["rows"] == len(x) // 16 - 2 and found["undecided"] < 0.1 * found["rows"]
    assert make_spec(tomllib.loads(spec.to_toml())).to_toml() == spec.to_toml()
    if isinstance(steps[0], StandardScaler):
        assert in_one_build(spec, samples=1000, level="-O1").ok


def test_the_signal_may_lie_within_the_model():
    x, state = recording(600)
    within = TransformedTargetRegressor(
        make_pipeline(SignalFeatures(lags=np.array([0, 2])), SVR()), transformer=StandardScaler()
    )
    spec = from_sklearn(within.fit(x.to_numpy(), state), "gate", inputs=["left", "right"])
    assert spec.signal.channels == ("left", "right") and spec.input.columns[2:] == ("left lag 2", "right lag 2")
    assert compare(spec, read_estimator(within), within, x)["ok"]


def test_what_has_no_c_is_refused_in_a_sentence(tmp_path):
    x, state = recording(200)
    stage, windows = SignalFeatures(), SignalFeatures(16, features=["rms"])
    nested = TransformedTargetRegressor(make_pipeline(stage, SVR()), transformer=StandardScaler())
    first = "'signalfeatures': a SignalFeatures must be the first step of a pipeline"
    for pipeline, says in (
        (make_pipeline(StandardScaler(), stage, SVR()), first),
        (make_pipeline(stage, windows, SVR()), "'signalfeatures-2': a SignalFeatures must be the first step"),
        (make_pipeline(StandardScaler(), nested), "takes raw samples, so it must be the first step"),
        (make_pipeline(stage, nested), "takes raw samples, so it must be the first step"),
        (make_pipeline(stage, SelectKBest(k=1), SVR()), "uses 1 of 2 features, and a gaussian kernel cannot ignore"),
        (make_pipeline(stage), "its SignalFeatures is not a model that can be imported"),
    ):
        with pytest.raises(UserError, match=says) as refused:
            from_sklearn(pipeline.fit(x, state), "m")
        assert "\n" not in str(refused.value) and len(str(refused.value)) < 300
    with pytest.raises(UserError, match=f"{first}.* that learns on the device, write .signal. into its spec"):
        pykernel.generate(make_pipeline(stage, BudgetedKernelRegressor()).fit(x, state), tmp_path)
    model = make_pipeline(stage, SVR()).fit(x, state)
    for precision in ("int16", "float64"):
        with pytest.raises(UserError, match=f"precision is {precision}, but its features are computed in float32"):
            from_sklearn(model, "m", precision=precision)
    with pytest.raises(UserError, match="takes raw samples, which are limited by max_abs of SignalFeatures"):
        from_sklearn(model, "m", max_abs=3.0)
    with pytest.raises(UserError, match="takes 2 inputs, but 3 names are given"):
        from_sklearn(model, "m", inputs=list("abc"))
    model[0].max_abs = 1e12
    with pytest.raises(UserError, match=r"max_abs is 1e\+12, but float32 can overflow .*; choose max_abs of at most"):
        from_sklearn(model.set_params(svr=KernelRidge(kernel="poly", degree=4)).fit(x, state), "m")


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_int16_takes_its_ranges_from_the_features_of_raw_samples():
    """The rows of data were taken for features."""
    x, state = recording(1500)
    x = (100 * x).round()
    stage = SignalFeatures(32, 8, features=["mean", "rms"], max_abs=2000.0, resolution=1.0, precision="int16").fit(x)
    z, y = stage.steps(x, state)
    pipeline = make_pipeline(stage, make_pipeline(StandardScaler(), SVC()).fit(z, y))
    for more in ({}, {"vectors": 6}):
        specs = (from_sklearn(pipeline, "m", precision="int16", data=rows, **more) for rows in (x.to_numpy(), None))
        ranges, whole = (np.array(each.input.max_abs) for each in specs)
        assert (ranges < whole).sum() >= 3 and (ranges <= whole).all()
