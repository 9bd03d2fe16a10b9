"""River's face: River's own conventions, the bits of the host model, and sentences for what does not fit."""

import copy
import doctest
import gc
import inspect
import math
import pickle
import random
import re
import warnings

import numpy as np
import pandas as pd
import pytest

river = pytest.importorskip("river")

from river import anomaly, checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

import pykernel  # noqa: E402
from pykernel.errors import UserError  # noqa: E402
from pykernel.gen import compilers  # noqa: E402
from pykernel.host import snapshot  # noqa: E402
from pykernel.host.model import HostModel  # noqa: E402
from pykernel.river import AnomalyDetector, Classifier, Regressor, models  # noqa: E402

ESTIMATORS = {
    Regressor: pykernel.BudgetedKernelRegressor,
    Classifier: pykernel.BudgetedKernelClassifier,
    AnomalyDetector: pykernel.OnlineMonitor,
}
NAMES = ("flow", "level", "temperature")


class Fraud:
    """In place of River's CreditCard, which is downloaded: its columns, with ten frauds that lie apart."""

    def take(self, count):
        draw = random.Random(0)
        for i in range(count):
            odd = i % 100 == 99
            x = {f"V{j}": draw.gauss(3.0 if odd else 0.0, 1.0) for j in range(1, 29)}
            yield x | {"Time": float(i), "Amount": draw.expovariate(0.01)}, int(odd)


def stream(count):
    """(sample, number), with inputs of unlike size, in another order than that of their names."""
    for row in np.random.default_rng(0).normal(size=(count, 3)):
        flow, level, temperature = (row * (1.0, 100.0, 0.01)).tolist()
        yield {"temperature": temperature, "flow": flow, "level": level}, math.sin(2 * row[0]) + row[1] * row[2]


def given(model, y):
    """The label, as far as the model takes one."""
    if isinstance(model, Classifier):
        return [model.classes[(0 if y < -0.5 else len(model.classes) - 1 if y > 0.5 else 1)]]
    return [y] if isinstance(model, Regressor) else []


def learn(model, samples):
    """Teach it; what it says before each sample."""
    ask, said = model.score_one if isinstance(model, AnomalyDetector) else model.predict_one, []
    for x, y in samples:
        said.append(ask(x))
        model.learn_one(x, *given(model, y))
    return said


def rows(samples):
    return np.array([[x[name] for name in NAMES] for x, _ in samples])


def state(model):
    return snapshot.save(model.model_), model.status_counts_


# ------------------------------------------------------------------------------------------------------- conventions


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_rivers_own_checks(kind, monkeypatch):
    monkeypatch.setattr(datasets, "CreditCard", Fraud)
    gc.freeze()  # River collects garbage before it measures: not that of all modules
    for parameters in kind._unit_test_params():
        checks.check_estimator(kind(**parameters))


def test_the_docstrings_tell_the_truth():
    result = doctest.testmod(models)
    assert result.attempted >= 15 and not result.failed


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_are_those_of_the_estimator(kind):
    mine, theirs = inspect.signature(kind).parameters, inspect.signature(ESTIMATORS[kind]).parameters
    own = {"classes"} if kind is Classifier else set()
    assert [name for name in mine if name not in own] == [name for name in theirs if name != "seed"]
    assert all(mine[name].default == theirs[name].default for name in {*mine} - own) and own <= {*mine}


def test_in_rivers_pipelines_and_evaluation():
    pipeline = compose.Select("gallup", "ipsos", "you_gov") | preprocessing.StandardScaler() | Regressor()
    metric = evaluate.progressive_val_score(datasets.TrumpApproval().take(300), pipeline, metrics.MAE())
    assert metric.get() < 1.0
    chances = evaluate.progressive_val_score(datasets.Phishing().take(300), Classifier(), metrics.ROCAUC())
    assert chances.get() > 0.85
    with pytest.raises(UserError, match="a River Pipeline has steps that learn"):
        pykernel.generate(pipeline, "never-written")
    for use in (lambda model: pykernel.generate(model, "never-written"), pykernel.check):
        with pytest.raises(UserError, match="the Regressor has learned nothing yet; call its learn_one"):
            use(Regressor())


# -------------------------------------------------------------------------------------------------------------- bits

THREE = ("mid", "low", "high")
CASES = {
    "a number": Regressor(),
    "a number, named": Regressor("mklms", rule="krls-t", n_max=8, sigma=50.0, precision="float64"),
    "two classes": Classifier(n_max=8),
    "three classes": Classifier(THREE),
    "a monitor": AnomalyDetector(components=2, warmup=50, precision="float64", missing="hold"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_the_host_model(case):
    """Also of frames, after copies, and where scikit-learn's methods teach a part."""
    model, samples = CASES[case].clone(), list(stream(300))
    said, x = learn(model, samples), rows(samples)
    labels = [label for _, y in samples for label in given(model, y)]
    twin, kept = HostModel(model.spec_), np.array(labels) if isinstance(model, Regressor) else None
    if isinstance(model, Classifier):
        kept = np.array([model.classes.index(label) for label in labels])
    question = "classify" if isinstance(model, Classifier) else "novelty" if kept is None else "predict"
    answers, statuses = twin.prequential(x, kept, question=question)
    if question == "novelty":  # before it has learned, no row is told to be above usual
        answers[:50] = np.minimum(answers[:50], 0.0)
    assert (model.classes_[answers].tolist() if question == "classify" else answers.tolist()) == said
    assert snapshot.save(twin) == state(model)[0] and len(set(said)) > 1 and model.features_ == NAMES
    assert model.status_counts_ == {each.name: int((statuses == each).sum()) for each in model.spec_.program.status}

    other, frame = CASES[case].clone(), pd.DataFrame(x, columns=NAMES, index=range(1000, 1300))
    other.partial_fit(frame[:100], *([labels[:100]] if labels else []))
    learn(other, samples[100:200])
    other = pickle.loads(pickle.dumps(copy.deepcopy(other.clone(include_attributes=True))))
    other.partial_fit(frame[200:], *([labels[200:]] if labels else []))
    if labels:
        assert other.predict(frame).tolist() == [other.predict_one(x) for x, _ in samples]
    assert state(other) == state(model)
    for each in (model, other):  # another memory, such as a device's: calls follow it
        each.model_.memory = snapshot.read(each.spec_, snapshot.save(twin)).memory
        learn(each, samples[:10])
    assert state(other) == state(model) and state(model)[0] != snapshot.save(twin)


def test_probabilities_are_the_devices():
    model = Classifier(THREE)
    learn(model, stream(100))
    samples = [x for x, _ in stream(5)]
    told = model.model_.probability(rows(stream(5))).astype(float)
    expected = [dict(zip(THREE, (p / p.sum()).tolist(), strict=True)) for p in told]
    assert [model.predict_proba_one(x) for x in samples] == expected
    kernels = Classifier(n_max=8)
    learn(kernels, stream(10))
    with pytest.raises(NotImplementedError, match=r"^Classifier: model gives no prob.* rule spectrum-softmax"):
        kernels.predict_proba_one(samples[0])


def test_intervals_are_the_devices():
    model = Regressor(rule="rls", interval_level=0.9)
    learn(model, stream(100))
    for x, _ in stream(5):
        found = model.predict_one(x, with_interval=True)
        assert [[found.lower], [found.upper]] == [*map(list, model.model_.interval([[x[name] for name in NAMES]]))]
        assert found.lower < model.predict_one(x) < found.upper
    with pytest.raises(UserError, match=r"^Regressor: model gives no intervals"):
        Regressor(rule="rls").predict_one(x, with_interval=True)


def test_alarms_are_those_of_the_estimator():
    """And a value may be missing where something stands in."""
    samples = [x if i < 500 else x | {"level": x["level"] + 2000.0} for i, (x, _) in enumerate(stream(520))]
    samples[7]["flow"] = math.nan
    parameters = {"warmup": 200, "relearn_after": 50, "missing": "hold"}
    model, told = AnomalyDetector(**parameters), pykernel.OnlineMonitor(**parameters)
    frame = pd.DataFrame(samples)[list(NAMES)]
    told.partial_fit(frame[:1])
    expected, alarms = told.monitor(frame[1:]), []
    whole = AnomalyDetector(**parameters)
    assert whole.alarm_ is False and whole.partial_fit(frame).alarm_ is True
    for x in samples:
        model.learn_one(x)
        alarms.append(model.alarm_)
    assert alarms[1:] == expected.alarm.tolist() and all(alarms[502:])
    assert model.blame_ == dict(zip(NAMES, expected.blame[-1].tolist(), strict=True))
    assert max(model.blame_, key=model.blame_.get) == "level" and model.kind_ == expected.kind[-1] == "jump"
    assert model.acknowledge() is told.acknowledge() is True and state(model) == state(told)


def test_a_quantile_filter_alarms():
    """Its quantile is of all scores: one that is never reached again, among the first, would end all alarms."""
    rng = np.random.default_rng(0)
    model = anomaly.QuantileFilter(AnomalyDetector(warmup=100), q=0.99)
    for i in range(1500):
        sample = dict(zip("abc", rng.normal(size=3) + 9 * (i >= 1490), strict=True))
        score = model.score_one(sample)
        model.learn_one(sample)
    assert model.classify(score)


def test_the_c_goes_on_from_the_models_state(tmp_path):
    model = Regressor()
    learn(model, stream(200))
    assert pykernel.generate(model, tmp_path / "tank", name="tank").figures["learned"]
    quick = {"samples": 1000, "levels": ["-O1"], "compilers": [compilers.find_compilers()[0].name]}
    assert pykernel.check(model, **quick).ok


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_samples_that_do_not_fit_are_refused_in_a_sentence(kind):
    model, (x, y) = kind(), next(stream(1))
    label, ask = given(model, y), model.score_one if kind is AnomalyDetector else model.predict_one
    model.learn_one(x, *label)
    before, fixed = state(model), "; the first sample fixed the features"
    for strange, sentence in (
        ({"flow": 1.0, "level": 1.0}, f"a sample has no feature 'temperature'{fixed}"),
        (x | {"speed": 1.0}, f"a sample has an unexpected feature 'speed'{fixed}"),
        ({"flow": 1.0, "level": 1.0, "Temperature": 1.0}, f"a sample has no feature 'temperature'{fixed}"),
        ({}, f"a sample has no feature 'flow'{fixed}"),
        (x | {"flow": "wet"}, "feature 'flow' is 'wet'; it must be a number"),
        (x | {"flow": None}, "feature 'flow' is None; it must be a number"),
        (x | {"flow": math.nan}, "feature 'flow' is nan; it must be a finite number"),
        (x | {"flow": math.inf}, "feature 'flow' is inf; it must be a finite number"),
    ):
        for use, more in ((model.learn_one, label), (ask, [])):
            with pytest.raises(UserError, match=f"^{kind.__name__}: {re.escape(sentence)}"):
                use(strange, *more)
    assert state(model) == before
    fresh = kind()
    with pytest.raises(UserError, match="the first sample has no features"):
        fresh.learn_one({}, *label)
    with pytest.raises(UserError, match="feature 'b' is 'x'; it must be a number"):
        fresh.learn_one({"a": 1.0, "b": "x"}, *label)
    fresh.learn_one({7: 1.0, "a": 2, None: np.float32(3), (1, 2): True}, *label)
    assert len(fresh.features_) == 4 and fresh.spec_.input.columns is None


def test_labels_and_parameters_that_do_not_fit_are_refused_in_a_sentence():
    x, wet = {"a": 1.0}, r"the class 'wet' is not in classes, \[False, True\]"
    numbers = [(Regressor(), each, f"the label is {each!r}; it must be a finite n") for each in ("1", None, math.nan)]
    for model, label, sentence in [*numbers, (Classifier(), "wet", wet)]:
        model.learn_one(x, True)
        before, refused = state(model), f"^{type(model).__name__}: {sentence}"
        with pytest.raises(UserError, match=refused):
            model.learn_one(x, label)
        assert state(model) == before
    counts = {"rule": "klms", "precision": "int16", "sigma": 1.0, "input_max_abs": 9.0, "label_max_abs": 9.0}
    for model, sentence in (
        *(
            (Classifier(each), "classes is .*; it must be a list of 2 to 64 different")
            for each in (7, "ab", ["a", "a"])
        ),
        (Regressor(technique="mk"), "Regressor: .*technique"),
        (Regressor(rule="klms"), "start with more samples, or give sigma as a number"),
        (Regressor(**counts), r'^Regressor: precision is "int16", whose samples are counts, but River gives'),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match=sentence):
                model.learn_one(x, "a" if isinstance(model, Classifier) else 1.0)
        assert not hasattr(model, "spec_")
    with pytest.raises(UserError, match=r"^Regressor: y has 2 columns; River gives one label for each sample"):
        Regressor().fit(np.ones((3, 1)), np.ones((3, 2)))


def test_what_is_beyond_the_limits_is_counted_and_told():
    model = Regressor(rule="klms", sigma=1.0, input_max_abs=10.0, label_max_abs=10.0)
    model.learn_one({"a": 0.0}, 1.0)
    with pytest.warns(UserWarning, match="1 of 1 samples have an input beyond the limit of 10; their results are NaN"):
        assert math.isnan(model.predict_one({"a": 11.0}))
    for refused in range(1, 34):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.learn_one({"a": 11.0 if refused % 2 else 1e300}, 1.0)
        told = f"{refused} of {refused + 1} updates were refused: raise input_max_abs from 10; to start afresh, take a clone()"
        assert [str(each.message) for each in caught] == ([told] if refused in (1, 2, 4, 8, 16, 32) else [])
    model.learn_one({"a": 0.0}, 11.0)
    assert model.status_counts_["REFUSED_INPUT"] == 33 and model.status_counts_["REFUSED_LABEL"] == 1
    classifier = Classifier(input_max_abs=10.0)
    classifier.learn_one({"a": 0.0}, True)
    for ask in (classifier.predict_one, classifier.predict_proba_one):
        with pytest.raises(UserError, match="an input is beyond the limit of 10"):
            ask({"a": 11.0})
