"""The monitor as an estimator: scikit-learn's conventions, the host model's bits, and what the C tells, row by row."""

import copy
import ctypes
import doctest

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import pykernel
from pykernel import HostModel, OnlineMonitor, load_spec
from pykernel.errors import UserError
from pykernel.estimators import monitor
from pykernel.gen import compilers
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.spec.model import make_spec

MODELS = {
    "float32": OnlineMonitor(warmup=100),
    "own": OnlineMonitor(2, false_alarm_rate=0.05, smoothing=0.5, warmup=100, relearn_after=40, precision="float64"),
    "missing": OnlineMonitor(3, warmup=100, missing="hold", input_max_abs=1e4),
}


def recording(rows=400, fault=380, seed=0):
    """Three sensors of unlike size, two regimes, and from a row on a sensor that jumped."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3)) * [1.0, 20.0, 0.01] + [0.0, 300.0, 1.0]
    x[:, 0] += 8.0 * (np.arange(rows) // 40 % 2)
    x[fault:, 1] += 500.0
    return x


def given(case, x):
    """The recording as a model of this name takes it."""
    if MODELS[case].missing is None:
        return x
    missing = np.random.default_rng(1).random(x.shape) < 0.1
    return np.where(missing & ~missing.all(axis=1, keepdims=True), np.nan, x)


def fitted(case, x):
    return clone(MODELS[case]).fit(given(case, x))


def state(model):
    return bytes(getattr(model, "model_", model).memory.bytes)


def learned(model):
    """What is kept, without what every call computes anew."""
    fields = (name for struct in model.spec.program.persistent for name in struct.fields)
    return {name: model.memory.field(name).tobytes() for name in fields}


# ------------------------------------------------------------------------------------------------------- conventions


@pytest.mark.in_turn(4)
@parametrize_with_checks([OnlineMonitor(), OnlineMonitor(precision="float64", missing="hold", warmup=50)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_docstrings_tell_the_truth():
    result = doctest.testmod(monitor)
    assert result.attempted >= 8 and not result.failed
    assert is_outlier_detector(OnlineMonitor())


def test_without_parameters_it_is_a_spec_without_a_rule():
    model = OnlineMonitor().fit(recording())
    assert model.spec_ == make_spec({"name": "model", "input": {"dim": 3}, "novelty": {}})
    assert model.spec_.learning.rule == "gmm"


# -------------------------------------------------------------------------------------------------------------- bits


@pytest.mark.parametrize("case", MODELS)
def test_it_is_the_host_model_of_its_spec_from_a_file(case, tmp_path):
    x = given(case, recording())
    model = fitted(case, recording())
    (tmp_path / "spec.toml").write_text(model.to_spec("pump").to_toml())
    host = HostModel(load_spec(tmp_path / "spec.toml"))
    statuses = host.update(x)
    assert state(model) == bytes(host.memory.bytes)
    counts = {each.name: int((statuses == int(each)).sum()) for each in model.spec_.program.status}
    assert model.status_counts_ == counts and counts["HELD"] > 0
    assert (model.score_samples(x) == -host.novelty(x).astype(float)).all()
    level, threshold, since = host.read("alarm")[0].tolist()
    assert (model.level_, model.threshold_, model.since_) == (level, threshold, since)
    shares, kind = host.read("blame")
    assert (model.blame_ == shares).all() and model.kind_ == host.spec.program.status(kind).name.lower()
    assert (model.regimes_ == host.read("regimes")[0]).all() and len(model.regimes_) == model.spec_.learning.components


@pytest.mark.in_turn
@pytest.mark.parametrize("case", MODELS)
def test_the_device_tells_what_monitor_says(case, tmp_path):
    """From C's tables: level, threshold, alarm, blame and kind of each row, and what is answered to the alarm."""
    x, later = given(case, recording()), given(case, recording(seed=3)[320:])
    model = clone(MODELS[case]).fit(x[:340])
    generated = pykernel.generate(model, tmp_path / "pump", name="pump")
    library, spec = tmp_path / "pump.so", model.to_spec("pump")
    compilers.compile_c(compilers.find_compilers()[0], sorted((generated.folder / "src").glob("*.c")), library, ["-O2"])
    device, kind = ctypes.CDLL(str(library)), spec.real.dtype
    drop = build(spec).drop
    memory = spec.memory(drop)
    at = ctypes.c_void_p(memory.buffer.ctypes.data)

    def pointer(array):
        return ctypes.c_void_p(array.ctypes.data)

    device.pump_init(at)
    host = HostModel(spec)
    host.memory.copy_from(model.model_.memory)
    restored = HostModel(spec)
    snapshot.load(restored, snapshot.save(host, sequence=1))
    told = model.monitor(later)
    assert told.alarm[62:].any() and not told.alarm.all()
    _, states, statuses = host.prequential_alarms(later)
    assert (restored.update(later) == statuses).all()
    for t, row in enumerate(later.astype(kind)):
        status, state_, shares = device.pump_update(at, pointer(row)), np.zeros(3, kind), np.zeros(3, kind)
        assert status == statuses[t] and told.alarm[t] == (spec.program.status(status).name in ("NOVEL", "HELD"))
        assert device.pump_alarm(at, pointer(state_)) == 0
        assert state_.tolist() == states[t].tolist() == [told.level[t], told.threshold[t], told.since[t]]
        word = device.pump_blame(at, pointer(shares))
        assert told.blame[t].tolist() == shares.tolist()
        assert told.kind[t] == (spec.program.status(word).name.lower() if told.since[t] else "")
    assert model.since_ > 0 and model.blame_.argmax() == 1  # the last row is in the alarm
    for action, changed in (("reject", True), ("reject", False), ("acknowledge", False)):
        assert getattr(model, action)() is changed
        assert (getattr(device, f"pump_{action}")(at) >= 0) is changed
    for struct in spec.program.persistent:
        for name in struct.fields:
            values = model.model_.memory.field(name).tobytes()
            assert name in drop or memory.field(name).tobytes() == values, name


# ---------------------------------------------------------------------------------------------- outliers and alarms


def test_outlier_detection_is_by_the_devices_threshold():
    x = recording()
    model = OnlineMonitor(warmup=100, smoothing=1.0).fit(x[:340])
    assert model.offset_ == -model.threshold_ < 0
    assert (model.decision_function(x) == model.score_samples(x) - model.offset_).all()
    assert (model.predict(x) == np.where(-model.score_samples(x) > model.threshold_, -1, 1)).all()
    assert (model.predict(x[:340]) == 1).mean() > 0.9 and (model.predict(x[380:]) == -1).all()
    assert (clone(model).fit_predict(x[:340]) == model.predict(x[:340])).all()
    # a row for itself is what the device says of the next one, where levels are not smoothed
    for row in x[320:]:
        probe = copy.deepcopy(model)
        assert probe.monitor([row]).alarm[0] == (model.predict([row])[0] == -1)


def test_there_is_no_alarm_in_the_warm_up():
    x = recording(620, 600)
    model = OnlineMonitor().fit(x[:120])
    assert model.offset_ == -64 and (model.predict([[1e9, 0.0, 0.0]]) == 1).all()
    told = model.monitor(x[120:400])
    # samples are told apart by what is known of the threshold, but there is no alarm yet
    assert not told.alarm.any() and set(told.kind) == {""}
    assert model.offset_ == -model.threshold_ > -64 and model.predict([[1e9, 0.0, 0.0]]) == -1
    assert model.monitor(x[400:]).alarm[205:].all()


def test_an_alarm_that_is_acknowledged_becomes_a_regime():
    x = recording(500, 460)
    answers = {}
    for action in (None, "acknowledge", "reject"):
        model = OnlineMonitor(warmup=200, relearn_after=100).fit(x[:480])
        twin = HostModel(model.spec_)
        twin.update(x[:480])
        assert model.since_ > 15 and model.blame_.argmax() == 1
        if action is not None:
            assert getattr(model, action)() and twin.call(action) == 0 and not getattr(model, action)()
        assert learned(model.model_) == learned(twin)
        model.monitor(x[480:])
        answers[action] = model.monitor(recording(60, 0, seed=2)).alarm, np.count_nonzero(model.regimes_)
    normal, known = answers["acknowledge"]
    # rows from 40 on are of the regime in which the jump was acknowledged; in the other one it was never seen
    assert known == answers["reject"][1] + 1 and not normal[42:].any()
    assert answers["reject"][0].all()


# --------------------------------------------------------------------------------------------------------- refusals


def test_what_cannot_be_is_refused_in_a_sentence():
    x = recording()
    for parameters, sentence in (
        ({"components": 1}, r"^OnlineMonitor: \[learning\] components is 1"),
        ({"false_alarm_rate": 0.9}, r"^OnlineMonitor: \[novelty\] false_alarm_rate is 0.9"),
        ({"missing": "mean"}, r"^OnlineMonitor: \[input\] missing is"),
    ):
        with pytest.raises(UserError, match=sentence):
            OnlineMonitor(**parameters).fit(x)
    for name in ("level_", "blame_", "regimes_", "offset_"):
        assert not hasattr(OnlineMonitor(), name)
    for call in (OnlineMonitor().acknowledge, lambda: OnlineMonitor().monitor(x)):
        with pytest.raises(NotFittedError):
            call()
    gap = np.where(np.arange(1200).reshape(400, 3) == 7, np.nan, x)
    with pytest.raises(ValueError, match="NaN"):
        OnlineMonitor().fit(gap)
    with pytest.raises(ValueError, match="infinity"):
        OnlineMonitor(missing="hold").fit(np.where(np.isnan(gap), np.inf, x))
    scaler = StandardScaler().fit(x)
    with pytest.raises(
        UserError, match=r"rule gmm has no center .*; leave the scaler out: each regime has a scale of its"
    ):
        OnlineMonitor().fit(x).to_spec("pump", scaler)


def test_what_is_out_of_range_is_refused_counted_and_told():
    x = recording()
    model = OnlineMonitor(warmup=100, input_max_abs=1000.0).fit(x[:340])
    before = learned(model.model_)
    with pytest.warns(UserWarning, match="2 of 3 samples have an input beyond the limit of 1000: they give NaN"):
        assert np.isnan(model.score_samples([[0.0, 300.0, 1.0], [0, 2e3, 1], [1e300, 300, 1]])).tolist() == [0, 1, 1]
    assert model.predict([[0.0, 2e3, 1.0]]) == -1
    with pytest.warns(UserWarning, match="32 of 372 updates were refused: raise input_max_abs from 1000;"):
        told = model.monitor(np.full((32, 3), 2e3))
    assert learned(model.model_) == before and model.status_counts_["REFUSED_INPUT"] == 32
    assert (told.level == model.level_).all() and not told.alarm.any() and set(told.kind) == {""}
