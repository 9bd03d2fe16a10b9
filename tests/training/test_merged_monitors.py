"""Monitors of several devices as one: what the merged one knows, that it is a state like others, and what is told or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.training import merged_monitors
from pykernel.training.merged_monitors import beyond, exceeded, unpacked
from pykernel.training.merging import merge
from tests.support.compilers import QUICK

DIM, ROWS, FAULT = 3, 3000, 6.0


def spec_of(components: int = 4, precision: str = "float32", **sections: Any) -> Spec:
    learning = {"rule": "gmm", "components": components}
    content = {"name": "fleet", "precision": precision, "input": {"dim": DIM}, "novelty": {}, "learning": learning}
    return make_spec(content | sections)


def rows_of(places: Sequence[float], rows: int, seed: int) -> np.ndarray:
    """A machine that stays a while at each place; its sensors follow each other, and their own last rows."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, DIM))
    noise[:, 1] += 0.8 * noise[:, 0]
    for t in range(1, rows):
        noise[t] += 0.5 * noise[t - 1]
    where = np.repeat(rng.permuted(np.resize(places, -(-rows // 100))), 100)[:rows]
    return 50 + where[:, None] * np.array([1.0, 2.0, -1.0]) + noise


def watched(spec: Spec, places: Sequence[float], seed: int, rows: int = ROWS) -> HostModel:
    model = HostModel(spec)
    model.update(rows_of(places, rows, seed))
    return model


def merged_of(spec: Spec, *models: HostModel, into: Spec | None = None, **more: Any) -> tuple[HostModel, Any]:
    found = merge(spec, {chr(97 + k): snapshot.save(model) for k, model in enumerate(models)}, into, **more)
    model = HostModel(into or spec)
    snapshot.load(model, found.data)
    return model, found


def alarms_of(model: HostModel, x: np.ndarray) -> np.ndarray:
    """Of a copy that learns on."""
    copy = HostModel(model.spec)
    copy.memory.copy_from(model.memory)
    return np.isin(copy.prequential_alarms(x)[2], model.spec.program.alarms)


def faulty_rows(places: Sequence[float], seed: int, rows: int = 5000) -> tuple[np.ndarray, list[slice]]:
    x = rows_of(places, rows, seed)
    faults = [slice(first, first + 40) for first in range(500, rows, 500)]
    for fault in faults:
        x[fault, 0] += FAULT
    return x, faults


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_merged_monitor_knows_the_regimes_of_all_and_finds_faults_in_each(precision: str) -> None:
    spec = spec_of(precision=precision)
    devices = [watched(spec, places, k) for k, places in enumerate([(0, 10), (20, 30)])]
    merged, found = merged_of(spec, *devices)
    assert (found.way, found.regimes, [each.regimes for each in found.devices]) == ("regimes", 4, [2, 2])
    assert not found.warnings and sum(each.weight for each in found.devices) == pytest.approx(1)
    for places in [(0, 10), (20, 30), (0, 10, 20, 30)]:
        assert alarms_of(merged, rows_of(places, 6000, 7)).mean() < 0.02
    x, faults = faulty_rows((0, 10, 20, 30), 8)
    alarms = alarms_of(merged, x)
    assert all(alarms[fault].sum() > 30 for fault in faults)
    new = [rows_of(places, 100, 9) for places in ((20,), (0,))]
    for device, x in zip(devices, new, strict=True):
        assert alarms_of(device, x).mean() > 0.1 and alarms_of(merged, x).mean() < 0.05


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_state_merged_with_itself_judges_as_before(precision: str) -> None:
    spec = spec_of(precision=precision)
    model = watched(spec, (0, 10, 20), 1)
    merged, found = merged_of(spec, model, model)
    close = {"rtol": 2e-5, "atol": 2e-5} if precision == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    assert found.regimes == model.memory.field("known")[0] == 3
    order = np.argsort(-model.memory.field("weights")[:3], kind="stable")
    for name in ("means", "roots"):
        np.testing.assert_allclose(merged.memory.field(name)[:3], model.memory.field(name)[order], **close)
    for name in ("middle", "joint", "usual", "spread", "repeats", "least_step", "quantile", "excess", "shift"):
        np.testing.assert_allclose(merged.memory.field(name), model.memory.field(name), err_msg=name, **close)
    np.testing.assert_allclose(merged.read("regimes")[0][:3], model.read("regimes")[0][order], **close)
    assert merged.read("alarm")[0][1] == pytest.approx(model.read("alarm")[0][1], rel=1e-4)
    rows = np.concatenate([rows_of((0, 10, 20), 200, 5), rows_of((40,), 20, 6)])
    np.testing.assert_allclose(merged.novelty(rows), model.novelty(rows), rtol=1e-3, atol=2e-3)


def test_sums_are_those_of_one_monitor_that_learned_all_rows() -> None:
    """Below the horizon, of one regime on each device, where no row goes to another place."""
    spec = spec_of(precision="float64")
    parts = [rows_of((place,), 800, place) for place in (0, 6)]
    parts[1][:, 2] = np.round(parts[1][:, 2])
    devices = []
    for part in parts:
        devices.append(HostModel(spec))
        devices[-1].update(part)
        assert devices[-1].memory.field("known")[0] == 1
    merged = merged_of(spec, *devices)[0].memory.field
    together = np.concatenate(parts)
    pairs = np.concatenate([np.column_stack([part[:-1], part[1:]]) for part in parts])
    joint = unpacked(merged("joint"), 2 * DIM)
    np.testing.assert_allclose(merged("middle"), together.mean(axis=0), rtol=1e-3)
    np.testing.assert_allclose(joint.T @ joint, np.cov(pairs.T), rtol=0.02, atol=0.1)
    own = merged("weights")[: int(merged("known")[0])] / merged("weights").sum()
    np.testing.assert_allclose(own @ merged("means")[: len(own)], together.mean(axis=0), rtol=1e-3)
    repeats = np.mean([(np.diff(part, axis=0) == 0).mean(axis=0) for part in parts], axis=0)
    assert repeats[2] > 0.1
    np.testing.assert_allclose(merged("repeats"), repeats, atol=0.01)
    assert (merged("least_step") == np.min([d.memory.field("least_step") for d in devices], axis=0)).all()


def test_usual_surprises_are_those_of_all_rows() -> None:
    """Against rows that the merged monitor really sees: devices know other regimes, one with three times as wide noise."""
    spec = spec_of(precision="float64")

    def rows(wide: bool, count: int, seed: int) -> np.ndarray:
        x = rows_of((40,) if wide else (0,), count, seed)
        return 50 + 3 * (x - 50) if wide else x

    devices = []
    for wide in (False, True):
        devices.append(HostModel(spec))
        devices[-1].update(rows(wide, ROWS, 1 + wide))
    merged, _ = merged_of(spec, *devices)
    seen = merged_monitors.Seen(spec, merged.memory)
    found = np.concatenate([seen.by_bank(rows(wide, 3000, 5 + wide)) for wide in (False, True)])
    above = 2 * np.square(np.maximum(found - found.mean(), 0)).mean()
    # each of two devices of one regime tells its share, one bit, twice
    assert merged.memory.field("usual")[1] == pytest.approx(found.mean(), abs=0.7)
    assert merged.memory.field("spread")[1] == pytest.approx(above, rel=0.35)
    for wide in (False, True):
        # the threshold is right from the first rows on, also for the louder device
        assert np.mean([alarms_of(merged, rows(wide, 100, seed)).mean() for seed in range(30, 60)]) < 0.015


def greedy(
    union: list[tuple[float, np.ndarray, np.ndarray]], places: int
) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """The definition: of all pairs that one is merged whose covariances lose least, until all fit, and none is told twice."""

    def volume(covariance: np.ndarray) -> float:
        return 0.5 * float(np.linalg.slogdet(covariance)[1]) / np.log(2)

    def both(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[float, np.ndarray, np.ndarray]:
        p = a[0] / (a[0] + b[0])
        d = a[1] - b[1]
        return a[0] + b[0], p * a[1] + (1 - p) * b[1], p * a[2] + (1 - p) * b[2] + p * (1 - p) * np.outer(d, d)

    while len(union) > 1:
        found = []
        for i in range(len(union)):
            for j in range(i):
                one = both(union[i], union[j])
                loss = one[0] * volume(one[2]) - sum(union[k][0] * volume(union[k][2]) for k in (i, j))
                found.append((loss - DIM * (DIM + 3) / 4 * np.log2(one[0]), loss, i, j, one))
        more, _, i, j, one = min(found, key=lambda each: each[1])
        if more > 0 and len(union) <= places:
            break
        union = [one, *(each for k, each in enumerate(union) if k not in (i, j))]
    return sorted(union, key=lambda each: -each[0])


@pytest.mark.parametrize(("own", "into"), [(4, 4), (4, 2), (4, 8)])
def test_regimes_that_are_more_than_places_are_merged_where_least_is_lost(own: int, into: int) -> None:
    spec, wider = spec_of(own, "float64"), spec_of(into, "float64")
    places = [(0, 11, 24), (0.5, 40), (41, 60, 75, 100)]
    devices = [watched(spec, each, k) for k, each in enumerate(places)]
    union = []
    for device in devices:
        of = device.memory.field
        for k in range(int(of("known")[0])):
            root = unpacked(of("roots")[k], DIM)
            union.append((float(of("weights")[k]), np.array(of("means")[k]), root.T @ root))
    merged, found = merged_of(spec, *devices, into=wider)
    wanted, of = greedy(union, into), merged.memory.field
    assert found.regimes == len(wanted) == of("known")[0] <= into
    share = min(1.0, 5000 / sum(each[0] for each in union))
    for k, (weight, mean, covariance) in enumerate(wanted):
        root = unpacked(of("roots")[k], DIM)
        assert of("weights")[k] == pytest.approx(share * weight)
        np.testing.assert_allclose(of("means")[k], mean, rtol=1e-9)
        np.testing.assert_allclose(root.T @ root, covariance, rtol=1e-6, atol=1e-6)
    assert any("places are too few" in each for each in found.warnings) == (into < 8) == (found.left > 1)


def test_a_pool_that_is_full_merges_before_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(4, "float64")
    devices = [watched(spec, (k * 40, k * 40 + 15), k) for k in range(6)]
    monkeypatch.setattr(merged_monitors, "POOL", 5)
    merged, found = merged_of(spec, *devices)
    assert found.regimes == 4 and merged.memory.field("weights").sum() == pytest.approx(5000)


@pytest.mark.parametrize("case", ["float32", "float64", "16 places", "held"])
def test_a_device_goes_on_from_the_merged_state_bit_by_bit(case: str) -> None:
    sections: dict[str, Any] = {"input": {"dim": DIM, "missing": "hold"}} if case == "held" else {}
    spec = spec_of(precision=case if case.startswith("float") else "float32", **sections)
    into = spec_of(16) if case == "16 places" else spec
    devices = [watched(spec, places, k) for k, places in enumerate([(0, 10), (10, 20), (30, 40)])]
    host, _ = merged_of(spec, *devices, into=into)
    device = CModel(build(into, host.memory), QUICK[0])
    end = into.program.state_bytes(device.memory.layout)
    x = np.concatenate([faulty_rows((0, 10, 20, 30, 40), 50, 2000)[0], rows_of((70,), 300, 51)])
    nothing = np.zeros((len(x), 0), into.real.dtype)
    taken, there = host.prequential(x, nothing), device.prequential(x, nothing)
    assert [part.tobytes() for part in taken] == [part.tobytes() for part in there]
    shadow = into.memory(build(into).drop)
    shadow.copy_from(host.memory)
    assert bytes(device.memory.bytes[:end]) == bytes(shadow.bytes[:end])
    assert (taken[1] >= 0).all() and np.isin(taken[1], into.program.alarms).any()


def rejecting(spec: Spec, place: float, seed: int) -> HostModel:
    """A device that knows the places 0 and 10, and on which rows of another place were rejected."""
    model = watched(spec, (0, 10), seed)
    model.update(rows_of((place,), 8, seed + 100))
    assert model.call("reject") == 0
    model.update(rows_of((0, 10), 200, seed + 200))
    return model


@pytest.mark.parametrize("learned", [False, True], ids=["unknown to others", "learned by another"])
def test_rejected_regimes_stay_rejected(learned: bool) -> None:
    spec = spec_of(precision="float64")
    other = watched(spec, (0, 40) if learned else (0, 20), 2)
    assert alarms_of(other, rows_of((40,), 100, 3)).mean() < 0.1 or not learned
    merged, found = merged_of(spec, rejecting(spec, 40, 1), other)
    assert merged.memory.field("rejected").sum() == 1
    assert alarms_of(merged, rows_of((40,), 100, 4)).all()
    assert alarms_of(merged, rows_of((0,), 1000, 5)).mean() < 0.03
    assert any(each.startswith("a regime that b has learned") for each in found.warnings) == learned


def test_a_regime_within_the_reach_of_a_rejected_one_is_normal_if_another_device_knows_it() -> None:
    spec = spec_of(precision="float64")
    device, other = rejecting(spec, 40, 1), watched(spec, (0, 44), 2)
    rows = rows_of((44,), 200, 3)
    assert alarms_of(device, rows[:5]).all() and device.memory.field("forbidden")[0] == 0
    merged, found = merged_of(spec, device, other)
    assert alarms_of(merged, rows).mean() < 0.05 and not found.warnings
    assert alarms_of(merged, rows_of((40,), 100, 4)).mean() > 0.9


def test_too_many_rejected_regimes_are_one_sentence_and_fit_into_more_places() -> None:
    spec, wider = spec_of(4, "float64"), spec_of(8, "float64")
    devices = [rejecting(spec, place, k) for k, place in enumerate((40, 80, -60, -120))]
    with pytest.raises(UserError, match=r"have rejected 4 regimes.* room for 3; let into name a spec") as refused:
        merged_of(spec, *devices)
    assert "\n" not in str(refused.value)
    merged, _ = merged_of(spec, *devices, into=wider)
    assert merged.memory.field("rejected").sum() == 4
    assert all(alarms_of(merged, rows_of((place,), 100, 9)).all() for place in (40, 80, -60, -120))
    # the same rows, rejected on two devices, are one regime
    again, _ = merged_of(spec, rejecting(spec, 40, 1), rejecting(spec, 40, 1))
    assert again.memory.field("rejected").sum() == 1


def test_alarms_are_told_and_left_out() -> None:
    spec = spec_of()
    calm, loud = watched(spec, (0, 10), 1), watched(spec, (0, 10), 2)
    loud.update(rows_of((40,), 8, 3))
    assert loud.read("alarm")[0][2] > 0 and loud.memory.field("counts")[-1] > 0
    merged, found = merged_of(spec, calm, loud)
    assert [each.split()[0] for each in found.warnings] == ["b"] and "is in alarm" in found.warnings[0]
    of = merged.memory.field
    assert (of("before") == calm.memory.field("before")).all()
    for name in ("level", "episode", "quiet", "settling", "run", "shares", "leaps", "told", "unmet"):
        assert not of(name).any(), name
    assert not of("counts")[-1] and merged.read("blame")[1] == 0


def test_course_and_threshold_learn_as_fast_as_after_a_new_regime() -> None:
    """And a device that was frozen teaches, but does not freeze."""
    spec = spec_of()
    devices = [watched(spec, (0, 10), k) for k in range(2)]
    for device in devices:
        device.freeze()
    merged, _ = merged_of(spec, *devices)
    assert [int(merged.memory.field(name)[0]) for name in ("followed", "surprised", "taught")] == [100, 100, 300]
    before = merged.memory.field("middle").copy()
    assert (merged.update(rows_of((0,), 5, 9)) == 0).all() and (merged.memory.field("middle") != before).any()


def test_a_sensor_that_moves_on_one_device_only_has_the_steps_of_that_one() -> None:
    spec = spec_of()
    devices = []
    for k in range(2):
        x = rows_of((0,), ROWS, k)
        x[:, 0] = 7.0 if k == 0 else np.round(x[:, 0])
        devices.append(HostModel(spec))
        devices[-1].update(x)
    assert devices[0].memory.field("least_step")[0] == 0
    merged, _ = merged_of(spec, *devices)
    assert merged.memory.field("least_step")[0] == 1


def test_a_device_in_its_warm_up_is_one_sentence() -> None:
    spec = spec_of()
    young = watched(spec, (0,), 1, 300)
    with pytest.raises(UserError, match=r"^b: is still in its warm-up, after 300 rows; leave this device out$"):
        merged_of(spec, watched(spec, (0,), 2), young)
    with pytest.raises(UserError, match=r"^a: is still in its warm-up, after 0 rows"):
        merged_of(spec, HostModel(spec), young)


def test_a_device_that_knows_what_no_other_knows_is_named() -> None:
    spec = spec_of()
    alike = [watched(spec, (0, 10), k) for k in range(3)]
    _, found = merged_of(spec, *alike, watched(spec, (50, 60), 4))
    assert [each.name for each in found.devices if each.disagrees] == ["d"] and found.devices[3].foretold > 3
    assert [each.startswith("d knows regimes that none of the others knows") for each in found.warnings] == [True]
    assert not merged_of(spec, *alike)[1].warnings
    # apart, all know what none of the others knows
    assert not merged_of(spec, *(watched(spec, (40 * k,), k) for k in range(3)))[1].warnings


def test_the_same_states_give_the_same_bytes() -> None:
    spec = spec_of()
    states = {str(k): snapshot.save(watched(spec, (10 * k, 10), k)) for k in range(3)}
    assert merge(spec, states).data == merge(spec, states).data


@pytest.mark.parametrize("other", [{"precision": "float64"}, {"novelty": {"false_alarm_rate": 0.001}}])
def test_a_merged_spec_may_have_other_places_only(other: dict[str, Any]) -> None:
    spec = spec_of()
    devices = [watched(spec, (0,), k) for k in range(2)]
    with pytest.raises(UserError, match=r"precision is|false_alarm_rate is"):
        merged_of(spec, *devices, into=spec_of(**other))


def test_features_of_signals_are_merged() -> None:
    signal = {"channels": ["a", "b"], "window": 16, "features": ["mean", "std"]}
    spec = make_spec({"name": "fleet", "signal": signal, "novelty": {"warmup": 100}})
    rng = np.random.default_rng(3)
    devices = []
    for _ in range(2):
        devices.append(HostModel(spec))
        devices[-1].update(rng.normal(size=(16 * 600, 2)))
    merged, found = merged_of(spec, *devices)
    assert found.way == "regimes"
    assert merged.update(rng.normal(size=(16 * 20, 2))).min() >= 0


def test_a_recording_tells_the_rows_in_alarm(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = spec_of(input={"columns": ["a", "b", "c"]})
    Path("fleet.toml").write_text(spec.to_toml())
    devices = [watched(spec, places, k) for k, places in enumerate([(0, 10), (20, 30)])]
    for k, device in enumerate(devices):
        Path(f"{k}.bin").write_bytes(snapshot.save(device))
    x = np.float32(rows_of((0, 30), 1000, 7))
    np.savetxt("rows.csv", x, fmt="%.9g", delimiter=",", header="a,b,c", comments="")
    merged, found = merged_of(spec, *devices, rows=(x, None))
    assert found.errors == {"merged": alarms_of(merged, x).mean()}
    assert [each.error for each in found.devices] == [alarms_of(device, x).mean() for device in devices]
    assert found.errors["merged"] < min(each.error for each in found.devices)
    code, out, err = run("state", "merge", "fleet.toml", "0.bin", "1.bin", "-o", "merged.bin", "--data", "rows.csv")
    assert code == 0, err
    assert Path("merged.bin").read_bytes() == found.data
    assert "4 regimes are known, of all together" in out and "in alarm" in out and "rows in alarm: merged 0." in out
    Path("short.csv").write_text("a,b,c\n1,2,3\n")
    code, _, err = run("state", "merge", "fleet.toml", "0.bin", "1.bin", "-o", "m.bin", "--data", "short.csv")
    assert code == 2 and "has 1 complete rows; give 200" in err


def test_the_common_level_is_that_which_the_wanted_part_of_all_rows_exceeds() -> None:
    """Against rows that are drawn so."""
    parts, levels, excess, rate = np.array([0.5, 0.3, 0.2]), np.array([1.0, 1.4, 3.0]), np.array([0.5, 1.0, 0.3]), 0.1
    rng = np.random.default_rng(0)
    whose = rng.choice(3, size=400_000, p=parts)
    # exponential above the level that the rate exceeds, and below
    drawn = levels[whose] + excess[whose] * (np.log(rate) + rng.exponential(size=len(whose)))
    level = exceeded(parts, levels, excess, rate)
    assert np.mean(drawn > level) == pytest.approx(rate, rel=0.02) and levels.min() < level < levels.max()
    assert beyond(parts, levels, excess, rate, level) == pytest.approx((drawn - level)[drawn > level].mean(), rel=0.02)
    same = np.full(3, 2.0)
    assert exceeded(parts, same, excess, rate) == 2.0
    assert beyond(parts, same, np.full(3, 0.5), rate, 2.0) == pytest.approx(0.5)
