"""Learned states of several devices as one: what the merged state answers, that it is a state like others, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pykernel
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.training.merging import merge, moved_features, orthogonal_least_squares

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
BUDGETED = {
    "krls-t": spec_of("krls-t"),
    "krls-t, forgetting": spec_of("krls-t", learning={"rule": "krls-t", "forgetting": 0.999}),
    "krls-t, float64": spec_of("krls-t", precision="float64"),
    "krls-t, standardised": spec_of("krls-t", input=STANDARDISED, kernel={"sigma": 1.5}),
    "klms": spec_of("klms"),
    "klms, mklms": spec_of("klms", reduction={"n_max": ROOM, "technique": "mklms"}),
    "klms, fklms": spec_of("klms", reduction={"n_max": ROOM, "technique": "fklms"}),
    "klms, matern": spec_of("klms", kernel={"function": "matern32", "gamma": 2.0}),
    "qklms": spec_of("qklms"),
    "ald-krls": spec_of("ald-krls"),
    "fb-krls": spec_of("fb-krls"),
    "sw-krls": spec_of("sw-krls"),
    "no rule": spec_of(None),
    "two labels": spec_of("krls-t", label=LABEL | {"outputs": 2}),
    "classes": spec_of("krls-t", label={"classes": ["low", "middle", "high"]}),
}
LINEAR: dict[str, Spec] = {
    rule: spec_of(rule, precision="float64", reduction=None, kernel={"sigma": 0.5} if rule == "rff-rls" else None)
    for rule in ("rls", "quadratic-rls", "rff-rls", "nlms")
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


@pytest.mark.parametrize("name", BUDGETED)
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_the_merged_model_is_better_than_its_devices(name: str, apart: bool) -> None:
    """It is about as good as devices in the same surroundings, which have nothing to tell each other; and far better where each knows a part only."""
    spec = BUDGETED[name]
    devices = taught(spec, apart)
    merged = merge(spec, states_of(devices))
    alone = [wrong(spec, model) for model in devices.values()]
    together = wrong(spec, loaded(spec, merged.data))
    assert together < (0.7 * min(alone) if apart else 1.15 * np.mean(alone))
    assert merged.way == "vectors" and 0 < (merged.vectors or 0) <= ROOM
    assert sum(share.vectors or 0 for share in merged.devices) >= (merged.vectors or 0)
    assert sum(share.weight or 0 for share in merged.devices) == pytest.approx(1)


@pytest.mark.parametrize("name", ["krls-t", "klms, mklms", "no rule", "classes"])
def test_a_device_goes_on_from_the_merged_state_bit_by_bit(name: str) -> None:
    spec = BUDGETED[name]
    host = loaded(spec, merge(spec, states_of(taught(spec, apart=True))).data)
    device = CModel(build(spec, host.memory), find_compilers()[0])
    end = spec.program.state_bytes(device.memory.layout)
    x, y = samples(spec, 500, 50)
    taken, there = host.prequential(x, y), device.prequential(x, y)
    assert [part.tobytes() for part in taken] == [part.tobytes() for part in there]
    shadow = spec.memory(build(spec).drop)
    shadow.copy_from(host.memory)
    assert bytes(device.memory.bytes[:end]) == bytes(shadow.bytes[:end])
    assert (taken[1] >= 0).all()


@pytest.mark.parametrize("rule", ["rls", "quadratic-rls", "rff-rls"])
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_sums_are_those_of_one_model_that_learned_all(rule: str, apart: bool) -> None:
    spec = LINEAR[rule]
    devices = taught(spec, apart)
    one, x = HostModel(spec), samples(spec, 300, 98)[0]
    for k in range(DEVICES):
        one.update(*samples(spec, ROWS, k, (k / DEVICES, (k + 1) / DEVICES) if apart else (0.0, 1.0)))
    merged = merge(spec, states_of(devices))
    host = loaded(spec, merged.data)
    assert merged.way == "sums"
    # the prior pulls to zero from the first sample of each device, which is another one
    assert np.abs(host.predict(x) - one.predict(x)).max() < 1e-5 * np.abs(one.predict(x)).max()
    more = samples(spec, 50, 97)
    host.update(*more), one.update(*more)
    assert np.abs(host.predict(x) - one.predict(x)).max() < 1e-5 * np.abs(one.predict(x)).max()


def test_features_move_with_their_origin() -> None:
    spec = LINEAR["quadratic-rls"]
    rng = np.random.default_rng(4)
    a, b, x = rng.normal(size=(3, 3))

    def phi(d: np.ndarray) -> np.ndarray:
        return np.array([*d, *(d[i] * d[j] for i in range(3) for j in range(i, 3)), 1.0])

    assert phi(x - a) == pytest.approx(moved_features(spec.config.feature_kind, b - a, 10) @ phi(x - b))


def test_an_expansion_that_learns_is_merged_by_its_sums() -> None:
    spec = spec_of("expansion-rls", precision="float64", reduction=None, expansion=EXPANDED)
    devices = taught(spec, apart=True)
    host = loaded(spec, merge(spec, states_of(devices)).data)
    assert wrong(spec, host) < 0.7 * min(wrong(spec, model) for model in devices.values())


@pytest.mark.parametrize("rule", ["expansion-rls", "expansion-nlms", "krls-t"])
def test_inputs_that_are_always_zero_change_no_merged_weight(rule: str) -> None:
    """Fewer inputs than vectors, as many as features, and more."""
    found = []
    for width in (2, 4, 5, 9):
        zeros = [0.0] * (width - 2)
        expansion = {"vectors": [[*each, *zeros] for each in EXPANDED["vectors"][:4]]} if rule != "krls-t" else None
        spec = spec_of(
            rule,
            input=INPUT | {"dim": width},
            reduction={"n_max": 4} if expansion is None else None,
            expansion=expansion,
        )
        states = {}
        for k in range(2):
            x, y = samples(spec, 50, k)
            model = HostModel(spec)
            model.update(np.pad(x, ((0, 0), (0, width - 2))), y)
            states[f"device {k}"] = snapshot.save(model)
        memory = loaded(spec, merge(spec, states).data).memory
        found.append(memory.field("alpha" if rule == "krls-t" else "weights").tobytes())
    assert len(set(found)) == 1


REHEARSED = {
    "the default": spec_of(None, reduction=None, input={"dim": 2}, label={}),
    "the default, classes": spec_of(
        None, reduction=None, input={"dim": 2}, label={"classes": ["low", "middle", "high"]}
    ),
    "rls in stages": spec_of("rls", reduction=None, kernel=None, input=STANDARDISED),
}


@pytest.mark.parametrize("name", REHEARSED)
def test_models_without_vectors_rehearse_what_devices_answer(name: str) -> None:
    spec = REHEARSED[name]
    devices = taught(spec, apart=True)
    broken = HostModel(spec)
    x, y = samples(spec, ROWS, 20)
    broken.update(x, 2 - y if spec.program.label_kind == "class" else 8 - y)
    merged = merge(spec, states_of(devices))
    model = loaded(spec, merged.data)
    assert merged.way == "samples" and merged.left is not None and merged.left < 1
    assert wrong(spec, model) < 0.75 * np.median([wrong(spec, device) for device in devices.values()])
    assert (model.update(*samples(spec, 100, 60)) >= 0).all()
    alike = {**taught(spec), "broken": broken}
    assert [each.name for each in merge(spec, states_of(alike)).devices if each.disagrees] == ["broken"]


def test_the_mean_of_linear_functions() -> None:
    spec = LINEAR["nlms"]
    devices = taught(spec)
    host, x = loaded(spec, merge(spec, states_of(devices)).data), samples(spec, 50, 9)[0]
    assert host.predict(x) == pytest.approx(np.mean([model.predict(x) for model in devices.values()], axis=0))


def test_the_same_states_give_the_same_bytes_and_two_devices_suffice() -> None:
    spec = BUDGETED["krls-t"]
    states = dict(list(states_of(taught(spec, apart=True)).items())[:2])
    first, second = merge(spec, states), merge(spec, states)
    assert first.data == second.data and not any(share.disagrees for share in first.devices)
    one = snapshot.read(spec, states["device 0"]).memory
    dump = bytes(spec.memory(build(spec).drop).bytes)  # the bytes of a state without header and CRC are as good
    end = spec.program.state_bytes(one.layout)
    assert len(dump) >= end
    assert merge(spec, {**states, "device 0": bytes(one.bytes[:end])}).data == first.data


@pytest.mark.parametrize("room", [8, 40])
def test_the_merged_state_may_have_another_budget(room: int) -> None:
    spec = BUDGETED["krls-t"]
    into = make_spec({**spec.model_dump(exclude_unset=True), "reduction": {"n_max": room}})
    states = states_of(taught(spec, apart=True))
    merged = merge(spec, states, into)
    assert loaded(into, merged.data).memory.field("n")[0] == merged.vectors
    assert merged.vectors == 8 if room < ROOM else ROOM < merged.vectors <= room
    if room > ROOM:
        assert wrong(into, loaded(into, merged.data)) < wrong(spec, loaded(spec, merge(spec, states).data))


def test_a_device_that_answers_otherwise_is_named() -> None:
    spec = BUDGETED["krls-t"]
    devices = taught(spec)
    broken = HostModel(spec)
    x, y = samples(spec, ROWS, 20)
    broken.update(x, 8 - y)
    merged = merge(spec, states_of({**devices, "broken": broken}))
    assert [share.name for share in merged.devices if share.disagrees] == ["broken"]
    assert len(merged.warnings) == 1 and merged.warnings[0].startswith("broken answers otherwise")
    assert not merge(spec, states_of(devices)).warnings


def test_a_recording_judges_with_rows_that_chose_nothing() -> None:
    spec = BUDGETED["klms"]
    devices = taught(spec, apart=True)
    x, y = samples(spec, 1000, 30)
    merged = merge(spec, states_of(devices), rows=(x, y))
    linear = LINEAR["rls"]
    errors = merge(linear, states_of(taught(linear)), rows=(x, y)).errors
    assert errors is not None and errors["merged"] <= 1.02 * errors["mean of devices"]
    model, judged = loaded(spec, merged.data), np.arange(1000) // 100 % 2 == 1
    assert merged.errors is not None
    assert merged.errors["merged"] == pytest.approx(np.sqrt(np.square(model.predict(x) - y)[judged].mean()))
    alone = [np.sqrt(np.square(device.predict(x) - y)[judged].mean()) for device in devices.values()]
    assert [share.error for share in merged.devices] == pytest.approx(alone)
    assert merged.errors["merged"] < min(alone)


def test_orthogonal_least_squares_takes_what_leaves_least() -> None:
    """Against the definition: each step fits all columns taken so far and one more."""
    rng = np.random.default_rng(2)
    columns, target = rng.normal(size=(30, 12)), rng.normal(size=(30, 2))
    columns[:, 5] = columns[:, 3]
    taken: list[int] = []
    for found in orthogonal_least_squares(columns, target, 11):
        left = [
            np.inf
            if np.linalg.matrix_rank(columns[:, [*taken, j]]) <= len(taken)
            else np.linalg.norm(
                target - columns[:, [*taken, j]] @ np.linalg.lstsq(columns[:, [*taken, j]], target, rcond=None)[0]
            )
            for j in range(12)
        ]
        assert left[found] == pytest.approx(min(left))
        taken.append(found)
    assert len(taken) == 11 == len(orthogonal_least_squares(columns, target, 12))


REFUSED = {
    "waves": (spec_of("spectrum-nlms", reduction=None), "neither samples nor statistics"),
    "a subspace": (
        make_spec({"name": "f", "input": {"dim": 2}, "novelty": {}, "reduction": {}}),
        "is a subspace",
    ),
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
    spec = LINEAR["rls"] if rule == "rls" else spec_of(rule, reduction=None, expansion=EXPANDED)
    devices = taught(spec)
    forged = devices["device 3"].memory.field("root" if rule == "rls" else "settled")
    forged[...] = 0 if rule == "rls" else spec.config.prior_variance
    with pytest.raises(UserError, match=r"^device 3: what was learned is no sum of samples"):
        merge(spec, states_of(devices))


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("name", ["krls-t, standardised", "no rule"])
def test_devices_that_have_no_vector_yet_are_one_sentence(name: str, rows: int) -> None:
    """With standardised inputs the first samples are for the statistics alone."""
    spec = BUDGETED[name]
    device = HostModel(spec)
    device.update(*(part[:rows] for part in samples(spec, 5, 1)))
    assert device.memory.field("n")[0] == 0
    with pytest.raises(UserError, match=r"^a: has learned nothing yet"):
        merge(spec, {"a": snapshot.save(device), "b": snapshot.save(device)})


def test_hostile_states_are_one_sentence_and_write_nothing(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = make_spec(
        {
            **BUDGETED["krls-t"].model_dump(exclude_unset=True),
            "input": INPUT | {"columns": ["a", "b"]},
            "label": LABEL | {"column": "y"},
        }
    )
    Path("fleet.toml").write_text(spec.to_toml())
    for name, state in states_of(taught(spec)).items():
        Path(f"{name[-1]}.bin").write_bytes(state)
    good = Path("0.bin").read_bytes()
    Path("empty.bin").write_bytes(snapshot.save(HostModel(spec)))
    Path("other.bin").write_bytes(snapshot.save(HostModel(BUDGETED["klms"])))
    Path("cut.bin").write_bytes(good[:-7])
    Path("flipped.bin").write_bytes(good[:90] + bytes([good[90] ^ 4]) + good[91:])
    (tmp_path / "folder").mkdir()
    cases = {
        ("0.bin",): "give two or more",
        ("0.bin", "0.bin"): "is given twice",
        ("0.bin", "empty.bin"): "has learned nothing yet",
        ("0.bin", "other.bin"): "is a state of the kind",
        ("0.bin", "cut.bin"): "bytes",
        ("0.bin", "flipped.bin"): "CRC",
        ("0.bin", "nowhere.bin"): "nowhere.bin",
        ("0.bin", "folder"): "folder: has no file that ends with .bin",
        ("0.bin", "1.bin", "--data", "fleet.toml"): "fleet.toml",
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
