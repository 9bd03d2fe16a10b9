"""Labels that come late: what judges, judges the answer that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pykernel.algorithms.pending import FIRST_WAIT
from pykernel.host.identity import specialised
from pykernel.host.model import HostModel
from pykernel.host.samples import Batch
from pykernel.host.signal import steps_of
from pykernel.language.effects import effects
from pykernel.spec.model import Spec, make_spec
from tests.support.every_model import MODELS, content_of

KINDS: dict[str, dict[str, Any]] = {
    "number": {"label": {"column": "y"}},
    "several": {"label": {"columns": ["y", "z"]}},
    "classes": {"label": {"column": "y", "classes": ["a", "b", "c"]}},
    "gain": {"label": {"column": "y", "gain": True, "max_abs": 10.0}, "learning": {"rule": "nlms"}},
    "interval": {"label": {"column": "y"}, "interval": {}},
}
INT16: dict[str, Any] = {
    "name": "m", "precision": "int16", "input": {"dim": 3, "max_abs": 10.0}, "label": {"column": "y", "max_abs": 10.0},
}  # fmt: skip


def model(kind: str) -> HostModel:
    content = INT16 if kind == "int16" else {"name": "m", "input": {"dim": 3}} | KINDS[kind]
    return HostModel(make_spec(content))


def stream(spec: Spec, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, 3))
    y = np.sin(2 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=rows)
    if spec.label.classes:
        return x, np.digitize(y, [-0.7, 0.7])
    return x, np.column_stack([y, -y]) if spec.outputs == 2 else y


def judged(model: HostModel) -> dict[str, list[float]]:
    """What only labels that judge change."""
    names = """model_power expert_power model_wrong expert_wrong told_sharpness agreement strength error_power stretch square gain
        answers_judged compared""".split()
    there = model.memory.layout.slots
    return {slot.name: model.memory.field(slot.name).tolist() for slot in there if slot.name in names}


@pytest.mark.parametrize("kind", [*KINDS, "int16"])
def test_only_the_label_of_the_answer_that_waits_judges(kind: str) -> None:
    late, (x, y) = model(kind), stream(model(kind).spec)
    late.prequential(x[:300], y[:300], delay=5)
    late.update(x[295:300], y[295:300])
    begun = judged(late)
    assert late.expect(x[300:301]) == 0
    late.update(x[301:306], y[301:306])
    assert judged(late) == begun
    late.update(x[300:301], y[300:301])
    after = judged(late)
    assert after != begun
    # by the answer that was given, not by that of now: another model, which learned nothing between, judges alike
    same = model(kind)
    same.prequential(x[:300], y[:300], delay=5)
    same.update(x[295:300], y[295:300])
    same.expect(x[300:301])
    for _ in range(5):
        same.expect(x[301:302])
    same.update(x[300:301], y[300:301])
    assert judged(same) == after


def test_a_label_that_does_not_come_is_given_up() -> None:
    late, (x, y) = model("number"), stream(model("number").spec)
    late.prequential(x[:101], y[:101], delay=1)
    late.update(x[100:101], y[100:101])
    wait = int(late.memory.field("longest_wait")[0])
    late.expect(x[101:102])
    for t in range(102, 102 + wait):
        assert late.memory.field("waited")[0] > 0
        late.update(x[t : t + 1], y[t : t + 1])
    assert late.memory.field("waited")[0] == 0
    # a firmware that expects labels no longer is judged at once again
    late.update(np.tile(x, (2, 1)), np.tile(y, 2))
    assert late.memory.field("longest_wait")[0] == 0 < FIRST_WAIT
    begun = judged(late)
    late.update(x[:1], y[:1])
    assert judged(late) != begun


def test_a_first_label_that_is_lost_is_not_waited_for_for_long() -> None:
    late, (x, y) = model("number"), stream(model("number").spec)
    late.expect(x[:1])
    for t in range(1, 301):
        late.expect(x[t : t + 1])
        if t > 9:
            late.update(x[t - 4 : t - 3], y[t - 4 : t - 3])
    assert late.memory.field("last_wait")[0] == 2 * 4 + 1 and late.memory.field("answers_judged")[0] > 15


def test_an_input_that_comes_back_is_not_taken_for_the_one_that_waits() -> None:
    """Hours of a day, and labels that come a day late."""
    late, t = model("number"), np.arange(24 * 40)
    x = np.column_stack([np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), t % 24 == 0])
    late.prequential(x, x[:, 0], delay=24)
    assert late.memory.field("last_wait")[0] == 2 * 24 + 1


def test_a_forecast_is_judged_when_its_truth_comes() -> None:
    """The device, which takes raw rows, and the host, which takes features and labels with a delay, hold the same bytes."""
    content = {"name": "m", "signal": {"channels": ["p"], "lags": [0, 1, 3], "ahead": 6, "max_abs": 100.0}}
    spec = make_spec(content | {"label": {"column": "p"}})
    rng = np.random.default_rng(2)
    raw = np.cumsum(rng.normal(size=(600, 1)), axis=0) * 0.5
    device, host = HostModel(spec), HostModel(spec.inner)
    device.update(raw)
    steps = list(steps_of(spec, [Batch(raw, None, 0)]))
    x, y = (np.concatenate(parts) for parts in ([each.x for each in steps], [each.y for each in steps]))
    # the device has learned the truth of the newest step, and expects that of its forecast
    host.prequential(x[:-1], np.nan_to_num(y[:-1]), delay=5)
    host.expect(x[-1:])
    for struct in spec.inner.program.persistent:
        for name in struct.fields:
            np.testing.assert_array_equal(device.memory.field(name), host.memory.field(name), err_msg=name)
    assert device.memory.field("last_wait")[0] == 2 * 6 - 1 and device.memory.field("answers_judged")[0] > 20


# ----------------------------------------------------------------------------------------- the order of the stages

STAGES_WRITE: dict[str, set[str]] = {
    "warm_up": set(),
    "consult": {"expert_answer"},
    "see": {"x"},
    "remain": {"y", "most"},
    "hear": {"y", "error", "value", "most"},
    "judge_parts": {"answered", "polled", "whole"},
    "conclude": {"learned"},
    "settle_pending": set(),
    "instruct": {"expert_answer", "gained"},
    "settle_inputs": set(),
}
"""What is done with a sample, in this order -> which numbers of the sample it may write.  Those that others read are the sample's
alone: ``conclude`` once wrote the label that it had limited for the model, and the expert learned that."""
SAMPLES = {
    "x",
    "other",
    "y",
    "label",
    "value",
    "most",
    "learned",
    "error",
    "expert_answer",
    "answered",
    "polled",
    "whole",
    "gained",
}


@pytest.mark.in_turn(108)
@pytest.mark.parametrize("model", MODELS, ids="-".join)
def test_no_stage_writes_what_another_reads(model: tuple[str, str, str]) -> None:
    content = content_of(*model)
    if content is None:
        pytest.skip("the rule has no such stage")
    found = effects(specialised(make_spec(content)).functions)
    for name, allowed in STAGES_WRITE.items():
        if name in found:
            assert found[name].fields & SAMPLES <= allowed, name


# ---------------------------------------------------------------------------------------- what it is good for


def errors(spec, x, y, first, delay=0):
    """Absolute errors of the answers from a row on."""
    return np.abs(HostModel(spec).prequential(x, y, delay=delay)[0] - y)[first:]


def default(dim):
    return make_spec({"name": "m", "input": {"dim": dim}, "label": {"column": "y"}})


def rls(dim):
    content = {"learning": {"rule": "rls", "forgetting": 0.999}, "input": {"dim": dim, "max_abs": 1e6}}
    return make_spec({"name": "m", "precision": "float64", "label": {"column": "y", "max_abs": 1e6}} | content)


def test_a_clipped_label_is_not_the_linear_experts():
    """Inputs of a linear truth that move from 0 to 50."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 3)) + np.where(np.arange(2000) < 1000, 0, 50)[:, None]
    y = x @ [1.0, -2.0, 0.5] + 0.01 * rng.normal(size=2000)
    assert errors(default(3), x, y, 1050).mean() <= 5 * errors(rls(3), x, y, 1050).mean()


def test_labels_that_come_late_are_judged_as_they_were_answered():
    """A wave, and what nobody can foretell a day ahead."""
    rng, t = np.random.default_rng(1), np.arange(6000)
    slow = np.zeros((2, 6000))
    for i, pushed in enumerate(rng.normal(size=(5999, 2)) * (1.0, 0.2), 1):
        slow[:, i] = (0.8, 0.98) * slow[:, i - 1] + pushed
    x = np.column_stack([np.sin(2 * np.pi * t / 200), np.cos(2 * np.pi * t / 200), slow[1]])
    y = 2 * x.sum(1) + slow[0]
    assert errors(default(3), x, y, 500, 24).mean() <= 1.2 * errors(rls(3), x, y, 500, 24).mean()
