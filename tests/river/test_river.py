"""River's face: River's own conventions, the bits of the estimators, and C that goes on."""

import copy
import ctypes
import doctest
import gc
import inspect
import itertools
import math
import pickle
import pydoc
import random
import re
import warnings

import numpy as np
import pandas as pd
import pytest

river = pytest.importorskip("river")

from river import checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

import pykernel  # noqa: E402
from pykernel.errors import UserError  # noqa: E402
from pykernel.gen import compilers  # noqa: E402
from pykernel.gen.project import build  # noqa: E402
from pykernel.host.model import HostModel  # noqa: E402
from pykernel.river import AnomalyDetector, Classifier, Regressor, Transformer, models  # noqa: E402
from tests.support.signatures import shown  # noqa: E402

KINDS = (Regressor, Classifier, AnomalyDetector, Transformer)
NAMES = ("flow", "level", "temperature")


class Fraud:
    """In place of River's CreditCard, which is downloaded: its columns, with ten frauds that lie apart."""

    def take(self, count):
        draw = random.Random(0)
        for i in range(count):
            odd = i % 100 == 99
            x = {f"V{j}": draw.gauss(3.0 if odd else 0.0, 1.0) for j in range(1, 29)}
            yield x | {"Time": float(i), "Amount": draw.expovariate(0.01)}, int(odd)


def stream(count, seed=0):
    """(sample, number), with inputs of unlike size."""
    rng = np.random.default_rng(seed)
    for row in rng.normal(size=(count, 3)):
        flow, level, temperature = (row * (1.0, 100.0, 0.01)).tolist()
        x = {"temperature": temperature, "flow": flow, "level": level}
        yield x, math.sin(2 * row[0]) + row[1] * row[2]


def label_of(model, y):
    if isinstance(model, Classifier):
        return y > 0 if model.classes == (False, True) else "low" if y < -0.5 else "high" if y > 0.5 else "mid"
    return y


def learn(model, samples):
    """Teach it; what it says before each sample."""
    said = []
    for x, y in samples:
        if isinstance(model, AnomalyDetector):
            said.append(model.score_one(x))
            model.learn_one(x)
        elif isinstance(model, Transformer):
            said.append(model.transform_one(x))
            model.learn_one(x)
        else:
            said.append(model.predict_one(x))
            model.learn_one(x, label_of(model, y))
    return said


def state(model):
    """What is learned; what was last computed lies behind it."""
    model = getattr(model, "model_", model)
    fields = (name for struct in model.spec.program.persistent for name in struct.fields)
    return {name: model.memory.field(name).tobytes() for name in fields}


def rows(samples):
    """(n, 3) in the order of the inputs, and the labels."""
    return np.array([[x[name] for name in NAMES] for x, _ in samples]), np.array([y for _, y in samples])


CASES = {
    "regressor": Regressor(),
    "regressor, named": Regressor("nt", rule="klms", n_max=8, sigma=2.0, precision="float64"),
    "regressor, linear": Regressor(rule="rls", input_max_abs=1e4),
    "two classes": Classifier(n_max=8),
    "three classes": Classifier(classes=["high", "low", "mid"], n_max=8),
    "classes as they come": Classifier(classes=4),
    "three classes, softmax": Classifier(
        ["high", "low", "mid"], rule="spectrum-softmax", sigma=30.0, input_max_abs=1e6
    ),
    "monitor": AnomalyDetector(),
    "monitor, own": AnomalyDetector(
        components=2, warmup=50, false_alarm_rate=0.05, precision="float64", missing="hold"
    ),
    "monitor, subspace": AnomalyDetector(4, n_max=16, sigma=50.0, threshold=0.3, warmup=20),
    "features": Transformer(),
    "features, own": Transformer(3, n_max=8, update="rls", precision="float64"),
}


# ------------------------------------------------------------------------------------------------------- conventions


@pytest.mark.parametrize("kind", KINDS)
def test_rivers_own_checks(kind, monkeypatch):
    monkeypatch.setattr(datasets, "CreditCard", Fraud)
    gc.freeze()  # River collects garbage before it measures: not that of all modules
    for parameters in kind._unit_test_params():
        checks.check_estimator(kind(**parameters))


def test_the_docstrings_tell_the_truth():
    result = doctest.testmod(models)
    assert result.attempted >= 20 and not result.failed
    for kind in KINDS:
        named = set(re.findall(r"\w+", kind.__doc__.partition("Attributes\n")[0].partition("Parameters\n")[2]))
        assert set(inspect.signature(kind).parameters) <= named


def test_parameters_are_those_of_the_estimators():
    own = {name: set(inspect.signature(kind).parameters) for name, kind in zip("rcat", KINDS, strict=True)}
    for mine, theirs in (
        (own["r"], pykernel.BudgetedKernelRegressor),
        (own["c"] - {"classes"}, pykernel.BudgetedKernelClassifier),
        (own["a"], pykernel.OnlineKernelSubspace),
        (own["a"], pykernel.OnlineMonitor),
    ):
        assert set(inspect.signature(theirs).parameters) - mine <= {"n_epochs", "seed"} and mine
    alarms = {"false_alarm_rate", "threshold", "smoothing", "warmup", "relearn_after"}
    assert own["a"] - own["t"] == alarms | {"components"}
    with pytest.raises(TypeError, match=r"Regressor: 'sigm' is not a parameter; did you mean 'sigma'\?"):
        Regressor(sigm=1.0)


SIGNATURES = {
    "AnomalyDetector": """
        n_components=None, *, n_max=None, kernel=None, sigma=None, gamma=None, coef0=None, degree=None, normalise=False,
        update=None, shrinkage=None, step=None, eta=None, window=None, forgetting=None, budget=None, ald_threshold=None,
        fading=None, insensitivity=None, censoring=None, components=None, false_alarm_rate=None, threshold=None,
        smoothing=None, warmup=None, relearn_after=None, precision='float32', input_max_abs=None, missing=None
    """,
    "Classifier": """
        classes=(False, True), technique=None, *, rule=None, n_max=None, sigma=None, kernel=None, gamma=None,
        coef0=None, degree=None, normalise=False, eta=None, rho=None, step_limit=None, quantisation=None,
        coherence=None, epsilon=None, forgetting=None, noise=None, relabel=False, prior_variance=None, features=None,
        block=None, frequency_eta=None, ridge=None, ald_threshold=None, projection=None, penalty=None, when=None, candidates=None, lambda_max=None,
        removals=None, truncate_below=None, truncate_age=None, tie=None, fading=None, force=False, precision='float32',
        input_max_abs=None, missing=None
    """,
    "Regressor": """
        technique=None, *, rule=None, n_max=None, sigma=None, kernel=None, gamma=None, coef0=None, degree=None,
        normalise=False, eta=None, rho=None, step_limit=None, quantisation=None, coherence=None, epsilon=None,
        forgetting=None, noise=None, relabel=False, prior_variance=None, features=None, block=None, frequency_eta=None, ridge=None, ald_threshold=None,
        projection=None, penalty=None, when=None, candidates=None, lambda_max=None, removals=None, truncate_below=None,
        truncate_age=None, tie=None, fading=None, force=False, precision='float32', input_max_abs=None,
        label_max_abs=None, missing=None, interval_level=None
    """,
    "Transformer": """
        n_components=None, *, n_max=None, kernel=None, sigma=None, gamma=None, coef0=None, degree=None, normalise=False,
        update=None, shrinkage=None, step=None, eta=None, window=None, forgetting=None, budget=None, ald_threshold=None,
        fading=None, insensitivity=None, censoring=None, precision='float32', input_max_abs=None, missing=None
    """,
}
"""As they were before they followed from the spec's declarations."""


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_keep_their_parameters_order_and_defaults(kind):
    assert shown(kind) == " ".join(SIGNATURES[kind.__name__].split())
    told = pydoc.plain(pydoc.render_doc(kind))
    assert inspect.getdoc(kind).splitlines()[0] in told and "{others}" not in told


def test_without_parameters_it_is_a_spec_without_a_rule():
    columns = {"input": {"columns": list(NAMES)}}
    whole = {
        Regressor: columns,
        Classifier: columns | {"label": {"classes": ["False", "True"]}},
        AnomalyDetector: columns | {"novelty": {}},
    }
    for kind, content in whole.items():
        model = kind()
        learn(model, stream(1))
        expected = pykernel.spec.model.make_spec({"name": "model", **content})
        assert model.to_spec("model") == expected
        assert model.features_ == model.to_spec("a").input.columns == NAMES
    # the subspace that a spec without a rule gets, without its alarms; a detector with a parameter of it is the whole
    whole = pykernel.spec.model.make_spec({"name": "model", **columns, "novelty": {}, "subspace": {}})
    features, detector = Transformer(), AnomalyDetector(n_components=12)
    learn(features, stream(1))
    learn(detector, stream(1))
    assert whole.learning.rule == "okfeb" and whole.model_dump() | {"novelty": None} == features.spec_.model_dump()
    assert detector.spec_.model_dump() == whole.model_dump()


# -------------------------------------------------------------------------------------------------------------- bits


@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_the_host_model(case):
    """And of samples whose names come in another order, of frames, and of a pickle that goes on."""
    model, samples = CASES[case].clone(), list(stream(300))
    said = learn(model, samples)
    x, y = rows(samples)
    twin = HostModel(model.spec_)
    question = "classify" if isinstance(model, Classifier) else model._questions[0]
    kept = y if isinstance(model, Regressor) else None
    if isinstance(model, Classifier):
        kept = np.array([model.classes_.index(label_of(model, each)) for each in y.tolist()])
    answers, statuses = twin.prequential(x, kept, question=question)
    assert state(twin) == state(model)
    counts = {status.name: int((statuses == int(status)).sum()) for status in model.spec_.program.status}
    assert model.status_counts_ == counts
    if isinstance(model, Transformer):
        assert [list(z.values()) for z in said] == answers.tolist() and set(said[0]) == {
            f"z{i}" for i in range(len(answers[0]))
        }
    elif isinstance(model, Classifier):
        assert [model.classes_.index(each) for each in said if each is not None] == [
            position for position, each in zip(answers.tolist(), said, strict=True) if each is not None
        ]
        assert None not in said or model.classes == 4
    else:
        assert said == answers.tolist() and len(set(said)) > 50
    # others on the way there
    half, rest = samples[:150], samples[150:]
    other = CASES[case].clone()
    learn(other, ((dict(sorted(x.items(), reverse=True)), y) for x, y in half))
    other = pickle.loads(pickle.dumps(copy.deepcopy(other.clone(include_attributes=True))))
    if hasattr(other, "learn_many"):
        frame = pd.DataFrame([x for x, _ in rest], index=range(150, 300))
        labels = [] if isinstance(other, Transformer) else [pd.Series([label_of(other, y) for _, y in rest])]
        other.learn_many(frame, *labels)
        asked = other.transform_many(frame) if isinstance(other, Transformer) else other.predict_many(frame)
        assert list(asked.index) == list(range(150, 300))
        one = other.transform_one if isinstance(other, Transformer) else other.predict_one
        found = asked.to_dict("records") if isinstance(other, Transformer) else asked.tolist()
        assert found == [one(x) for x, _ in rest]
        if isinstance(other, Classifier):
            found = other.predict_proba_many(frame).to_dict("records")
            assert found == [other.predict_proba_one(x) for x, _ in rest]
    else:
        learn(other, rest)
    assert state(other) == state(model) and other.status_counts_ == model.status_counts_


def test_intervals_are_the_devices():
    model, rng = Regressor(rule="rls", interval_level=0.9), np.random.default_rng(0)
    within, widths = 0, []
    for _ in range(400):
        x = {"a": rng.normal(), "b": rng.normal()}
        y = x["a"] + 0.1 * rng.normal()
        found = model.predict_one(x, with_interval=True)
        within += y in found
        widths.append(found.width)
        assert found.lower <= model.predict_one(x) <= found.upper
        model.learn_one(x, y)
    assert abs(within / 400 - 0.9) < 0.04 and 0.2 < np.mean(widths[100:]) < 0.45
    lower, upper = model.model_.interval([[x["a"], x["b"]]])
    assert model.predict_one(x, with_interval=True).lower == lower[0] and upper[0] > lower[0]
    with pytest.raises(UserError, match="give interval_level"):
        Regressor(rule="rls").predict_one(x, with_interval=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("case", ["three classes", "three classes, softmax", "regressor", "monitor"])
def test_the_c_goes_on_from_the_models_state(case, tmp_path):
    model = CASES[case].clone()
    learn(model, stream(200))
    generated = pykernel.generate(model, tmp_path / "tank", name="tank")
    assert generated.figures["learned"]
    library = tmp_path / "tank.so"
    sources = sorted((generated.folder / "src").glob("*.c"))
    compilers.compile_c(compilers.find_compilers()[0], sources, library, ["-O2"])
    device, spec = ctypes.CDLL(str(library)), model.to_spec("tank")
    memory = spec.memory(build(spec).drop)
    label = {"real": [ctypes.c_float], "class": [ctypes.c_int32], "none": []}[spec.label_kind]
    device.tank_update.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *label]

    def pointer(array):
        return ctypes.c_void_p(array.ctypes.data)

    device.tank_init(pointer(memory.buffer))
    for x, y in stream(200, seed=1):
        row = np.array([x[name] for name in NAMES], np.float32)
        if "softmax" in case:
            p = np.zeros(3, np.float32)
            assert device.tank_probability(pointer(memory.buffer), pointer(row), pointer(p)) == 0
            shares = p.astype(float) / p.astype(float).sum()  # River asks for the sum 1
            assert model.predict_proba_one(x) == dict(zip(model.classes_, shares.tolist(), strict=True))
        if "three classes" in case:
            answer, given = np.zeros(1, np.int32), [model.classes_.index(label_of(model, y))]
            assert device.tank_classify(pointer(memory.buffer), pointer(row), pointer(answer)) == 0
            assert model.classes_[answer[0]] == model.predict_one(x)
            model.learn_one(x, label_of(model, y))
        else:
            answer, ask = np.zeros(1, np.float32), device.tank_novelty if case == "monitor" else device.tank_predict
            assert ask(pointer(memory.buffer), pointer(row), pointer(answer)) == 0
            said, given = (model.score_one(x), []) if case == "monitor" else (model.predict_one(x), [y])
            assert answer.tolist() == [said]
            model.learn_one(x, *given)
        status = device.tank_update(pointer(memory.buffer), pointer(row), *given)
        assert spec.program.status(status) in spec.program.status and status == model._status
        if case == "monitor":
            state, shares, times = (np.zeros(size, np.float32) for size in (3, 3, 4))
            assert device.tank_alarm(pointer(memory.buffer), pointer(state)) == 0
            assert state.tolist() == [model.level_, model.threshold_, model.since_]
            kind = device.tank_blame(pointer(memory.buffer), pointer(shares))
            assert model.blame_ == dict(zip(NAMES, shares.tolist(), strict=True))
            assert model.kind_ == (spec.program.status(kind).name.lower() if model.since_ else "")
            assert device.tank_regimes(pointer(memory.buffer), pointer(times)) == 0
            assert model.regimes_ == times.tolist()
    for struct in spec.program.persistent:
        for name in struct.fields:
            assert memory.field(name).tobytes() == model.model_.memory.field(name).tobytes(), name
    if case != "regressor":
        return
    quick = {"samples": 1000, "levels": ["-O1"], "compilers": [compilers.find_compilers()[0].name]}
    assert pykernel.check(model, **quick).ok


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", KINDS)
def test_samples_that_do_not_fit_are_refused_in_a_sentence(kind):
    model, (x, y) = kind(), next(stream(1))
    given = [] if kind in (AnomalyDetector, Transformer) else [label_of(model, y)]
    model.learn_one(x, *given)
    before = state(model), model.status_counts_
    fixed = "; the first sample fixed the features"
    for strange, sentence in (
        ({"flow": 1.0, "level": 1.0}, f"a sample has no feature 'temperature'{fixed}"),
        (x | {"speed": 1.0}, f"a sample has an unexpected feature 'speed'{fixed}"),
        ({"flow": 1.0, "level": 1.0, "Temperature": 1.0}, f"a sample has no feature 'temperature'{fixed}"),
        ({}, f"a sample has no feature 'flow'{fixed}"),
        (x | {"flow": "1.0"}, "feature 'flow' is '1.0'; it must be a number"),
        (x | {"flow": None}, "feature 'flow' is None; it must be a number"),
        (x | {"flow": math.nan}, "feature 'flow' is nan; it must be a finite number"),
        (x | {"flow": math.inf}, "feature 'flow' is inf; it must be a finite number"),
    ):
        ask = next(
            getattr(model, name) for name in ("score_one", "transform_one", "predict_one") if hasattr(model, name)
        )
        with pytest.raises(UserError, match=f"^{kind.__name__}: {re.escape(sentence)}"):
            model.learn_one(strange, *given)
        with pytest.raises(UserError, match=f"^{kind.__name__}: {re.escape(sentence)}"):
            ask(strange)
        if hasattr(model, "learn_many") and strange.get("flow") != "1.0":  # which NumPy reads
            with pytest.raises(UserError, match=kind.__name__):
                model.learn_many(pd.DataFrame([strange]), *([pd.Series(given)] if given else []))
    assert (state(model), model.status_counts_) == before
    fresh = kind()
    with pytest.raises(UserError, match="the first sample has no features"):
        fresh.learn_one({}, *given)
    with pytest.raises(UserError, match="feature 'b' is 'x'; it must be a number"):
        fresh.learn_one({"a": 1.0, "b": "x"}, *given)
    fresh.learn_one({7: 1.0, "a": 2, None: np.float32(3), (1, 2): True}, *given)
    assert len(fresh.features_) == 4 and fresh.spec_.input.columns is None


def test_counts_are_refused_in_a_sentence():
    counts = {"rule": "klms", "precision": "int16", "sigma": 1.0, "input_max_abs": 9.0, "label_max_abs": 9.0}
    for _ in range(2):
        with pytest.raises(UserError, match=r'^Regressor: precision is "int16", whose samples are counts; River gives'):
            (model := Regressor(**counts)).learn_one({"a": 1.0}, 1.0)
    assert not hasattr(model, "spec_")


def test_labels_that_do_not_fit_are_refused_in_a_sentence():
    x = {"a": 1.0}
    for label in ("1.0", None, math.nan, math.inf):
        model = Regressor()
        with pytest.raises(UserError, match=f"Regressor: the label is {label!r}; it must be a finite number"):
            model.learn_one(x, label)
        with pytest.raises(UserError, match="Regressor: "):
            model.learn_many(pd.DataFrame([x]), pd.Series(["a" if label == "1.0" else label]))
    with pytest.raises(UserError, match=r"the class 'wet' is none of classes, \[False, True\]"):
        Classifier().learn_one(x, "wet")
    model = Classifier(classes=3)
    for name in ("wet", "dry", np.str_("wet"), "frozen"):
        model.learn_one(x, name)
    assert model.classes_ == ["wet", "dry", "frozen"] and model.to_spec("a").label.classes == ("wet", "dry", "frozen")
    with pytest.raises(
        UserError, match=r"the class 'gas' is one more than classes=3, which are \['wet', 'dry', 'frozen'\]"
    ):
        model.learn_one(x, "gas")
    for strange in (1, 65, True, "ab", ["a"], ["a", "a"], None):
        with pytest.raises(UserError, match=r"classes is .*; it must be a list of 2 to 64 different ones"):
            Classifier(classes=strange).learn_one(x, "a")


def test_a_refused_class_gets_no_place():
    model, x = Classifier(classes=2), {"a": 1.0}
    model.learn_one(x, "wet")
    with pytest.raises(UserError, match="'gas' is one more than classes=2"):
        model.learn_many(pd.DataFrame([x, x]), pd.Series(["dry", "gas"]))
    with pytest.raises(UserError, match="must be a finite number"):
        model.learn_one({"a": math.nan}, "dry")
    assert model.classes_ == ["wet"]


def test_classes_as_they_come():
    model = Classifier(classes=3, rule="klms", sigma=1.0)
    assert model.predict_proba_one({"a": 0.0}) == {} and model.predict_one({"a": 0.0}) is None
    model.learn_one({"a": 0.0}, "wet")
    assert model.predict_proba_one({"a": 0.0}) == {"wet": 1.0} and model.predict_one({"a": 0.0}) == "wet"
    assert model.to_spec("a").label.classes == ("wet", "class 1", "class 2")
    model.learn_one({"a": 1.0}, "dry")
    assert sum(model.predict_proba_one({"a": 0.0}).values()) == pytest.approx(1.0)
    # the device knows all three; what it gives to the one without a name is shared out
    model = Classifier(classes=3, rule="spectrum-softmax", sigma=1.0)
    for _ in range(30):
        model.learn_one({"a": 0.0}, "wet")
        model.learn_one({"a": 1.0}, "dry")
    p = model.predict_proba_one({"a": 1.0})
    told = model.model_.probability([[1.0]])[0, :2].astype(float)
    assert [*p.values()] == (told / told.sum()).tolist() and 0.8 < told.sum() < 1
    found = model.predict_proba_many(pd.DataFrame({"a": [0.0, 1.0]}))
    assert list(found.columns) == ["wet", "dry"] and found.to_dict("records")[1] == p
    assert model.predict_one({"a": 1.0}) == max(p, key=p.get) == "dry"


def test_parameters_are_refused_at_the_first_sample():
    for parameters, sentence in (
        ({"technique": "mk"}, "Regressor: .*technique"),
        ({"rule": "rls", "n_max": 8}, "Regressor: .*n_max"),
        ({"rule": "klms"}, "start with more, or give sigma as a number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Regressor(**parameters).learn_one({"a": 1.0}, 1.0)
    frame = pd.DataFrame({"a": [0.0, 2.0], "b": [0.0, 0.0]})
    model = Regressor(rule="klms")
    model.learn_many(frame, pd.Series([1.0, 2.0]))
    assert model.spec_.kernel.sigma == math.sqrt(0.5)


def test_what_is_beyond_the_limits_is_counted_and_told():
    model = Regressor(rule="klms", sigma=1.0, input_max_abs=10.0, label_max_abs=10.0)
    model.learn_one({"a": 0.0}, 1.0)
    with pytest.warns(UserWarning, match="1 of 1 samples have an input beyond the limit of 10: they give NaN"):
        assert math.isnan(model.predict_one({"a": 11.0}))
    for refused in range(1, 34):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.learn_one({"a": 11.0 if refused % 2 else 1e300}, 1.0)
        told = f"{refused} of {refused + 1} updates were refused: raise input_max_abs from 10; to start afresh take a clone()"
        assert [str(each.message) for each in caught] == ([told] if refused in (1, 2, 4, 8, 16, 32) else [])
    model.learn_one({"a": 0.0}, 11.0)
    assert model.status_counts_["REFUSED_INPUT"] == 33 and model.status_counts_["REFUSED_LABEL"] == 1
    frame = pd.DataFrame({"a": np.full(30, 11.0)})
    with pytest.warns(UserWarning, match="^64 of 65 updates were refused: raise input_max_abs from 10;"):
        model.learn_many(frame, frame["a"])
    for rule in ("klms", "spectrum-softmax"):
        model = Classifier(rule=rule, sigma=1.0, input_max_abs=10.0)
        model.learn_one({"a": 0.0}, True)
        for ask in (model.predict_one, model.predict_proba_one):
            with pytest.raises(UserError, match="an input is beyond the limit of 10"):
                ask({"a": 11.0})
        with pytest.raises(UserError, match="an input is beyond the limit of 10"):
            model.predict_proba_many(pd.DataFrame({"a": [0.0, 11.0]}))


def broken(count, at, seed=0):
    """The stream, of which a sensor jumps at a row."""
    for i, (x, _) in enumerate(stream(count, seed)):
        yield x if i < at else x | {"level": x["level"] + 2000.0}


def test_alarms_are_the_devices():
    """And what they are about; an alarm that is acknowledged becomes a regime, one that is rejected stays an alarm."""
    for action in ("acknowledge", "reject"):
        model, alarms = AnomalyDetector(warmup=200, relearn_after=50), []
        for x in broken(520, 500):
            model.learn_one(x)
            alarms.append(model.alarm_)
        assert sum(alarms[:500]) < 30 and all(alarms[502:])
        assert model.level_ > model.threshold_ and model.since_ >= 18 and model.kind_ == "jump"
        assert max(model.blame_, key=model.blame_.get) == "level" and list(model.blame_) == list(NAMES)
        twin = HostModel(model.spec_)
        twin.update(np.array([[x[name] for name in NAMES] for x in broken(520, 500)]))
        before = np.count_nonzero(model.regimes_)
        assert getattr(model, action)() is True and twin.call(action) == 0 and state(twin) == state(model)
        assert getattr(model, action)() is False and state(twin) == state(model)
        assert np.count_nonzero(model.regimes_) == before + (action == "acknowledge")
        for x in itertools.islice(broken(100, 0, seed=1), 100):
            model.learn_one(x)
        assert model.alarm_ == (action == "reject")


def test_a_subspace_raises_alarms_but_does_not_blame():
    model = AnomalyDetector(n_components=12, warmup=100)
    assert not model.alarm_ and not hasattr(model, "level_")
    for x in broken(520, 500):
        model.learn_one(x)
    assert model.alarm_ and 1 >= model.level_ > model.threshold_ > 0 and model.since_ > 10
    for name in ("blame_", "kind_", "regimes_"):
        assert not hasattr(model, name)
    with pytest.raises(UserError, match="AnomalyDetector: rule okfeb has no acknowledge; the default rule, gmm, has"):
        model.acknowledge()


def test_a_value_may_be_missing_where_something_stands_in():
    for parameters in ({}, {"n_components": 4}):
        model, refuses = (AnomalyDetector(missing=how, **parameters) for how in ("hold", None))
        rng, samples = np.random.default_rng(0), [x for x, _ in stream(200)]
        gaps = [{k: math.nan if rng.random() < 0.1 else v for k, v in x.items()} for x in samples]
        for x in gaps:
            model.score_one(x)
            model.learn_one(x)
        twin = HostModel(model.spec_)
        twin.update(np.array([[x[name] for name in NAMES] for x in gaps]))
        assert state(twin) == state(model) and sum(model.status_counts_.values()) == 200
        with pytest.raises(UserError, match="feature 'flow' is inf; it must be a finite number"):
            model.learn_one({"flow": math.inf, "level": math.nan, "temperature": 0.0})
        with pytest.raises(UserError, match="feature 'level' is None; it must be a number"):
            model.learn_one({"flow": 0.0, "level": None, "temperature": 0.0})
        refuses.learn_one(samples[0])
        with pytest.raises(UserError, match="feature 'level' is nan; it must be a finite number"):
            refuses.learn_one({"flow": 0.0, "level": math.nan, "temperature": 0.0})


def test_what_generate_takes_of_river():
    for use in (lambda model: pykernel.generate(model, "never-written"), lambda model: pykernel.check(model)):
        with pytest.raises(UserError, match="the Regressor has learned nothing yet; call its learn_one first"):
            use(Regressor())
        pipeline = preprocessing.StandardScaler() | Regressor()
        learn(pipeline, itertools.islice(stream(20), 20))
        with pytest.raises(UserError, match="a Pipeline of River has steps that change as they learn"):
            use(pipeline)
    with pytest.raises(UserError, match="the Regressor has learned nothing yet"):
        Regressor().to_spec("a")


def test_in_rivers_pipelines_and_evaluation():
    union = compose.Select("gallup", "ipsos", "you_gov") | Regressor()
    metric = evaluate.progressive_val_score(datasets.TrumpApproval().take(300), union, metrics.MAE())
    assert metric.get() < 1.0
    behind = preprocessing.StandardScaler() | Transformer(4) | Regressor(rule="rls")
    metric = evaluate.progressive_val_score(datasets.TrumpApproval().take(300), behind, metrics.MAE())
    assert metric.get() < 5.0
    chances = evaluate.progressive_val_score(datasets.Phishing().take(300), Classifier(), metrics.ROCAUC())
    assert chances.get() > 0.85
