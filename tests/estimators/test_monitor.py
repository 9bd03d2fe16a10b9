"""The monitor as an estimator: the host model's bits, alarms and what is told of them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from pykernel import HostModel, OnlineMonitor, load_spec
from pykernel.errors import UserError

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
    told, (_, states, _) = model.monitor(later := given(case, recording(seed=3)[320:])), host.prequential_alarms(later)
    assert (np.column_stack([told.level, told.threshold, told.since]) == states).all() and set(told.alarm) == {
        True,
        False,
    }
    assert (model.regimes_ == host.read("regimes")[0]).all() and len(model.regimes_) == model.spec_.learning.components


# ---------------------------------------------------------------------------------------------- outliers and alarms


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
        answers[action] = model.monitor(recording(60, 0, seed=2)).alarm, np.count_nonzero(model.regimes_ > 0)
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
        UserError, match=r"rule gmm cannot center .*; leave the scaler out, because each regime has its own scale"
    ):
        OnlineMonitor().fit(x).to_spec("pump", scaler)
