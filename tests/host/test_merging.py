"""Learned states of several devices as one: what the merged state answers, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pykernel
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.merging import merge
from pykernel.host.model import HostModel
from pykernel.spec.families.online import RULES
from pykernel.spec.model import Spec, make_spec, rules
from tests.support.every_model import STAGES, content_of

DEVICES, ROWS, ROOM = 6, 200, 16
INPUT: dict[str, Any] = {"dim": 2, "max_abs": 10.0}
LABEL: dict[str, Any] = {"max_abs": 100.0}


def spec_of(rule: str | None, **sections: Any) -> Spec:
    content: dict[str, Any] = {"name": "fleet", "input": INPUT, "label": LABEL, "reduction": {"n_max": ROOM}}
    if rule is not None:
        content |= {"learning": {"rule": rule}, "kernel": {"sigma": 0.5}}
    return make_spec({key: value for key, value in (content | sections).items() if value is not None})


STANDARDISED = INPUT | {"standardise": True}
EXPANDED = {"vectors": [[0.2 * i, 0.3 * j] for i in range(5) for j in range(3)], "weights": [[0.5]] * 15, "bias": [1.0]}
CLASSES = {"classes": ["low", "middle", "high"]}
DEFAULT: dict[str, Any] = {"reduction": None, "input": {"dim": 2}}
APART = {
    **{rule: spec_of(rule) for rule in RULES},
    "standardised": spec_of("krls-t", input=STANDARDISED, kernel={"sigma": 1.5}),
    "vectors, no rule": spec_of(None),
    "classes": spec_of("krls-t", label=CLASSES),
    "two labels": spec_of("krls-t", label=LABEL | {"outputs": 2}),
    "the default": spec_of(None, label={}, **DEFAULT),
    "the default, classes": spec_of(None, label=CLASSES, **DEFAULT),
    "expansion-rls": spec_of("expansion-rls", precision="float64", reduction=None, expansion=EXPANDED),
}
SUMS: dict[str, Spec] = {
    rule: spec_of(rule, precision="float64", reduction=None, kernel={"sigma": 0.5} if rule == "rff-rls" else None)
    for rule in ("rls", "quadratic-rls", "rff-rls")
}


def samples(spec: Spec, rows: int, seed: int, part: tuple[float, float] = (0.0, 1.0)) -> tuple[np.ndarray, np.ndarray]:
    """part: where the first input lies."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 2))
    x[:, 0] = part[0] + (part[1] - part[0]) * x[:, 0]
    y = truth(spec, x)
    return x, y if y.dtype.kind == "i" else y + rng.normal(size=y.shape) * 0.1


def truth(spec: Spec, x: np.ndarray) -> np.ndarray:
    y = 3 * np.sin(4 * x[:, 0]) + 2 * x[:, 1] ** 2
    if spec.program.label_kind == "class":
        return np.digitize(y, [1.0, 2.5]).astype(np.int32)
    return np.column_stack([y, y[::-1] * 0 + x[:, 0]]) if spec.outputs == 2 else y


def taught(spec: Spec, apart: bool = False) -> dict[str, HostModel]:
    """Devices that have learned from the same surroundings, or each from a part of the first input's range."""
    made = {}
    for k in range(DEVICES):
        model = HostModel(spec)
        part = (k / DEVICES, (k + 1) / DEVICES) if apart else (0.0, 1.0)
        assert (model.update(*samples(spec, ROWS, k, part)) >= 0).all()
        made[f"device {k}"] = model
    return made


def states_of(devices: dict[str, HostModel]) -> dict[str, bytes]:
    return {name: snapshot.save(model) for name, model in devices.items()}


def loaded(spec: Spec, data: bytes) -> HostModel:
    model = HostModel(spec)
    snapshot.load(model, data)
    return model


def wrong(spec: Spec, model: HostModel) -> float:
    """Root mean square error, or the part of wrong classes, on inputs of all devices."""
    x, _ = samples(spec, 1000, 99)
    if spec.program.label_kind == "class":
        return float(np.mean(model.classify(x) != truth(spec, x)))
    return float(np.sqrt(np.square(model.predict(x) - truth(spec, x)).mean()))


def changed(spec: Spec, **sections: Any) -> Spec:
    return make_spec({**spec.model_dump(exclude_unset=True), **sections})


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", APART)
def test_devices_that_know_a_part_each_know_all_together(name: str) -> None:
    """More than the best of them.  The merged state goes on learning, and the same states give the same bytes in any order."""
    spec = APART[name]
    devices = taught(spec, apart=True)
    merged = merge(spec, states_of(devices))
    model = loaded(spec, merged.data)
    assert wrong(spec, model) < 0.85 * min(wrong(spec, device) for device in devices.values())
    assert (model.update(*samples(spec, 100, 60)) >= 0).all()
    backwards = merge(spec, dict(reversed(states_of(devices).items())))
    assert backwards.data == merged.data and backwards.deviations == merged.deviations


def test_units_change_no_merge() -> None:
    """Inputs and labels in units that are powers of two: the default knows none, and who is near where is judged alike."""
    spec, found = APART["the default"], []
    for fx, fy in ((1.0, 1.0), (2.0**-50, 2.0**-40)):
        devices = {}
        for k in range(DEVICES):
            x, y = samples(spec, ROWS, k, (k / DEVICES, (k + 1) / DEVICES))
            devices[f"device {k}"] = model = HostModel(spec)
            assert (model.update(x * fx, y * fy) >= 0).all()
        merged = merge(spec, states_of(devices))
        found.append(
            (loaded(spec, merged.data).predict(samples(spec, 300, 99)[0] * fx) / fy, [*merged.deviations.values()])
        )
    (one, deviations), (other, also) = found
    assert np.abs(one - other).max() < 1e-3 * np.abs(one).max() and also == pytest.approx(deviations, rel=1e-4)


@pytest.mark.parametrize("prior", [None, 0.5])
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize("rule", SUMS)
def test_sums_are_those_of_one_model_that_learned_all(rule: str, apart: bool, prior: float | None) -> None:
    """And goes on as it does; also where the merged model begins with another variance than the devices."""
    spec = SUMS[rule]
    into = spec if prior is None else changed(spec, learning={"rule": rule, "prior_variance": prior})
    one, x, devices = HostModel(into), samples(spec, 300, 98)[0], taught(spec, apart)
    # centred rules begin at their first sample: that of the device that comes first in whatever order states are given
    for k in sorted(range(DEVICES), key=lambda k: bytes(devices[f"device {k}"].memory.bytes)):
        one.update(*samples(spec, ROWS, k, (k / DEVICES, (k + 1) / DEVICES) if apart else (0.0, 1.0)))
    host = loaded(into, merge(spec, states_of(devices), into).data)
    # the prior pulls to zero from the first sample of each device, which is another one
    for _ in range(2):
        assert np.abs(host.predict(x) - one.predict(x)).max() < 1e-5 * np.abs(one.predict(x)).max()
        host.update(*samples(spec, 50, 97)), one.update(*samples(spec, 50, 97))


def test_the_mean_of_linear_functions() -> None:
    spec = spec_of("nlms", precision="float64", reduction=None, kernel=None)
    devices = taught(spec)
    host, x = loaded(spec, merge(spec, states_of(devices)).data), samples(spec, 50, 9)[0]
    assert host.predict(x) == pytest.approx(np.mean([model.predict(x) for model in devices.values()], axis=0))


def test_inputs_that_are_always_zero_change_no_merged_weight() -> None:
    """Fewer inputs than vectors, as many as features, and more."""
    found = []
    for width in (2, 4, 5, 9):
        expansion = {"vectors": [[*each, *[0.0] * (width - 2)] for each in EXPANDED["vectors"][:4]]}
        spec = spec_of("expansion-rls", input=INPUT | {"dim": width}, reduction=None, expansion=expansion)
        states = {}
        for k in range(2):
            x, y = samples(spec, 50, k)
            model = HostModel(spec)
            model.update(np.pad(x, ((0, 0), (0, width - 2))), y)
            states[f"device {k}"] = snapshot.save(model)
        found.append(loaded(spec, merge(spec, states).data).memory.field("weights").tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("room", [8, 40])
def test_the_merged_state_may_have_another_budget(room: int) -> None:
    spec = APART["krls-t"]
    into = changed(spec, reduction={"n_max": room})
    states = states_of(taught(spec, apart=True))
    wide, same = (loaded(each, merge(spec, states, each).data) for each in (into, spec))
    vectors = wide.memory.field("n")[0]
    assert vectors == 8 if room < ROOM else ROOM < vectors <= room and wrong(into, wide) < wrong(spec, same)


@pytest.mark.parametrize("name", ["krls-t", "vectors, no rule", "the default", "the default, classes"])
def test_a_device_that_answers_otherwise_is_named(name: str) -> None:
    spec = APART[name]
    devices = taught(spec)
    broken = HostModel(spec)
    x, y = samples(spec, ROWS, 20)
    broken.update(x, 2 - y if spec.program.label_kind == "class" else 8 - y)
    (told,) = merge(spec, states_of({**devices, "broken": broken})).warnings
    assert told.startswith("broken answers differently")
    assert not merge(spec, states_of(devices)).warnings


@pytest.mark.in_turn
@pytest.mark.parametrize("stage", [name for name, each in STAGES.items() if "window" not in each.get("signal", {})])
@pytest.mark.parametrize("rule", rules())
def test_states_of_every_model_are_merged_or_refused_in_one_sentence(rule: str, stage: str) -> None:
    """What is merged goes on learning; nothing is an accident."""
    content = content_of(rule, "float32", stage)
    if content is None:
        pytest.skip("the rule has no such stage")
    spec, rng = make_spec(content), np.random.default_rng(0)
    inner, kind = spec.inner, spec.inner.program.label_kind
    rows, states = rng.normal(size=(2, 40, inner.width)), {}
    y = rng.integers(3, size=40) if kind == "class" else rng.normal(size=(40, inner.outputs)).squeeze()
    given = () if kind == "none" else (y,)
    for k, x in enumerate(rows if inner.program.learns else ()):
        model = HostModel(inner)
        model.update(x, *given)
        device = HostModel(spec)
        for name in (name for struct in inner.program.persistent for name in struct.fields):
            device.memory.field(name)[...] = model.memory.field(name)
        states[f"device {k}"] = snapshot.save(device)
    try:
        merged = merge(spec, states)
    except UserError as refused:
        assert "\n" not in str(refused) and str(refused).startswith(f"{spec.name}: ")
        assert not inner.program.learns or inner.program.budget is None
    else:
        model = HostModel(inner)
        model.memory.copy_from(snapshot.read(spec, merged.data).memory)
        assert (model.update(rows[0], *given) >= 0).all()


REFUSED = {
    "waves": (spec_of("spectrum-nlms", reduction=None), "does not show which inputs its device has learned from"),
    "a monitor": (make_spec({"name": "f", "input": {"dim": 2}, "novelty": {}}), "learns without labels"),
    "integers": (spec_of("klms", precision="int16", input={"dim": 2, "max_abs": 4.0}, label={"max_abs": 4.0}), "int16"),
    "forgetting": (
        spec_of("rls", reduction=None, kernel=None, learning={"rule": "rls", "forgetting": 0.99}),
        "forgetting",
    ),
    "a frozen model": (
        spec_of("frozen", reduction=None, expansion=EXPANDED),
        "learns nothing on the device",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_merged_is_one_sentence(name: str) -> None:
    spec, why = REFUSED[name]
    state = snapshot.save(HostModel(spec)) if spec.program.persistent else b""
    with pytest.raises(UserError, match=why) as refused:
        merge(spec, {"a": state, "b": state})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("rule", ["rls", "expansion-rls"])
def test_a_forged_covariance_is_one_sentence(rule: str) -> None:
    """The device takes it, for it costs O(F^3) to see that no samples lead there."""
    spec = SUMS["rls"] if rule == "rls" else spec_of(rule, reduction=None, expansion=EXPANDED)
    devices = taught(spec)
    forged = devices["device 3"].memory.field("root" if rule == "rls" else "settled")
    forged[...] = 0 if rule == "rls" else spec.config.prior_variance
    with pytest.raises(UserError, match=r"^device 3: the covariance matrix is not positive definite"):
        merge(spec, states_of(devices))


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("name", ["standardised", "vectors, no rule", "the default"])
def test_devices_that_have_learned_nothing_yet_are_one_sentence(name: str, rows: int) -> None:
    """With standardised inputs the first samples are for the statistics alone."""
    spec = APART[name]
    device = HostModel(spec)
    device.update(*(part[:rows] for part in samples(spec, 5, 1)))
    with pytest.raises(UserError, match=r"^a: has learned nothing yet"):
        merge(spec, {"a": snapshot.save(device), "b": snapshot.save(device)})


def test_hostile_states_are_one_sentence_and_write_nothing(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = make_spec(
        {
            **APART["krls-t"].model_dump(exclude_unset=True),
            "input": INPUT | {"columns": ["a", "b"]},
            "label": LABEL | {"column": "y"},
        }
    )
    Path("fleet.toml").write_text(spec.to_toml())
    for name, state in states_of(taught(spec)).items():
        Path(f"{name[-1]}.bin").write_bytes(state)
    good = Path("0.bin").read_bytes()
    Path("empty.bin").write_bytes(snapshot.save(HostModel(spec)))
    Path("other.bin").write_bytes(snapshot.save(HostModel(APART["klms"])))
    Path("cut.bin").write_bytes(good[:-7])
    Path("flipped.bin").write_bytes(good[:90] + bytes([good[90] ^ 4]) + good[91:])
    (tmp_path / "folder").mkdir()
    cases = {
        ("0.bin",): "give two or more",
        ("0.bin", "0.bin"): "is given twice",
        ("0.bin", "empty.bin"): "has learned nothing yet",
        ("0.bin", "other.bin"): "is a state of kind",
        ("0.bin", "cut.bin"): "bytes",
        ("0.bin", "flipped.bin"): "CRC",
        ("0.bin", "nowhere.bin"): "nowhere.bin",
        ("0.bin", "folder"): "folder: has no .bin file",
        ("0.bin", "1.bin", "--data", "fleet.toml"): "pykernel simulate",
    }
    for words, why in cases.items():
        code, out, err = run("state", "merge", "fleet.toml", *words, "-o", "merged.bin")
        assert (code, out) == (2, "") and why in err and err.count("error: ") == 1, (words, err)
        assert not Path("merged.bin").exists()
    code, _, err = run("state", "merge", "fleet.toml", "0.bin", "1.bin", "-o", "0.bin")
    assert code == 2 and Path("0.bin").read_bytes() == good

    code, out, err = run("state", "merge", "fleet.toml", *(f"{k}.bin" for k in range(DEVICES)), "-o", "merged.bin")
    assert code == 0, err
    found = snapshot.read(spec, Path("merged.bin").read_bytes())
    assert f"{found.state_hash:08x}" in out and out.count(".bin") >= DEVICES + 1
    Path("states").mkdir()
    for k in range(DEVICES):
        Path(f"states/{k}.bin").write_bytes(Path(f"{k}.bin").read_bytes())
    assert run("state", "merge", "fleet.toml", "states", "-o", "same.bin")[0] == 0
    assert Path("same.bin").read_bytes() == Path("merged.bin").read_bytes()
    again = pykernel.merge(spec, [f"{k}.bin" for k in range(DEVICES)])
    assert again.data == Path("merged.bin").read_bytes()
