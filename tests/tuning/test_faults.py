"""Monitors in a plan: the faults by which they are judged, their thresholds, and what is chosen and promised."""

import csv
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.monitoring import Monitoring
from pykernel.host.simple import Rivals
from pykernel.spec.model import load_spec, make_spec
from pykernel.telling import against_monitors_sentence, missed_kinds_sentence
from pykernel.tuning import faults as planted
from pykernel.tuning.arms import Trial, arms
from pykernel.tuning.data import Table
from pykernel.tuning.faults import KINDS, MANNERS, Fault, Sensors, runs_of, with_faults
from pykernel.tuning.plan import Search
from pykernel.tuning.promises import Losses
from pykernel.tuning.trials import GUARD, Watched, watch, watched_rows
from pykernel.workflows.planned import against_simple

MACHINE = {"leak", "wear", "unrest", "sticking valve", "unseen regime"}
"""Kinds that move several sensors."""


def machine(rows=6000, seed=0):
    """Four sensors: two that tell nearly the same in tenths, one of its own, a contact."""
    rng = np.random.default_rng(seed)
    load = np.convolve(rng.normal(size=rows + 50), np.ones(50) / 7, "valid")[:rows]
    pressure = np.round(20 + 3 * load + rng.normal(0, 0.3, rows), 1)
    flow = np.round(5 - 2 * load + rng.normal(0, 0.3, rows), 1)
    valve = (np.convolve(rng.normal(size=rows + 200), np.ones(200), "valid")[:rows] > 0).astype(float)
    return np.column_stack([pressure, flow, rng.normal(100, 7, rows), valve])


def test_a_sensors_own_part_is_what_least_squares_on_the_others_leaves():
    x = machine()
    found = Sensors.of(x)
    for j in range(3):
        others = np.column_stack([np.delete(x, j, axis=1), np.ones(len(x))])
        left = x[:, j] - others @ np.linalg.lstsq(others, x[:, j], rcond=None)[0]
        assert found.own[j] == pytest.approx(left.std(), rel=0.1)
    assert found.own[0] < 0.4 * x[:, 0].std() and found.own[2] > 0.9 * x[:, 2].std()
    np.testing.assert_allclose(found.step, [0.1, 0.1, 0, 1], rtol=1e-3)


def test_faults_come_as_machines_fail_and_show():
    x = machine()
    x[:, :2] += 30 * (np.arange(len(x)) // 700 % 2)[:, None]  # runs
    sensors, every, moved = Sensors.of(x), [], {False: [], True: []}
    runs = runs_of(x[:, :3])  # the contact has its own
    assert [*runs] == pytest.approx([*range(700, 6000, 700)], abs=2)
    for rows, faults in with_faults(x, sensors, 3, 300):
        tiled = np.concatenate([x, x])[: len(rows)]
        left = tiled.copy()
        for fault in faults:
            at = slice(fault.first, fault.last)
            change = (rows[at] - tiled[at]) / sensors.own
            assert np.sqrt((change**2).sum(axis=1).mean()) >= planted.SHOWS
            moved[fault.kind in MACHINE].append(int(change.any(axis=0).sum()))
            left[at] = rows[at]
            assert fault.place == fault.first % 6000 / 6000
        np.testing.assert_array_equal(rows, left)  # no other row
        # sensors say what they can say
        np.testing.assert_allclose(rows[:, :2], np.round(rows[:, :2], 1), atol=1e-6)
        assert set(np.unique(rows[:, 3])) <= {0.0, 1.0}
        every.append((rows - tiled, faults))
    assert set(moved[False]) == {1} and np.mean(np.array(moved[True]) > 1) > 0.8
    found = [fault for _, faults in every for fault in faults]
    counts = [[fault.manner for fault in found].count(manner) for manner in MANNERS]
    assert len(found) >= 300 and min(counts) >= 50 and max(counts) <= 70
    kinds = [fault.kind for fault in found]
    assert min(kinds.count(kind) for kind in KINDS) >= 5
    for change, faults in every:
        for before, fault in itertools.pairwise(faults):
            gap, same = fault.first - before.last, fault.manner == before.manner
            assert gap >= planted.APART or (same and gap >= 5)
            if same and fault.manner == "repeated" and gap <= 200:
                assert fault.kind == before.kind and fault.last - fault.first == before.last - before.first <= 60
                hit = [change[f.first : f.last].any(axis=0).nonzero()[0] for f in (before, fault)]
                assert set(hit[0]) & set(hit[1])  # the same sensors, but for digits that hide a change
            if fault.manner == "with a run":
                assert (
                    0
                    <= (fault.first % 6000 - runs_of(x)).clip(0, 1e6)[runs_of(x) <= fault.first % 6000].min()
                    <= planted.NEAR_RUN
                )
    again, other = ([faults for _, faults in with_faults(x, sensors, seed)] for seed in (3, 4))
    assert again == [faults for _, faults in with_faults(x, sensors, 3)] != other


def test_short_recordings_and_dead_sensors():
    x = machine(400)
    x[:, 1], x[::9, 0], x[50, 2] = 7.5, np.nan, np.inf  # constant, with gaps, and once infinite
    x = np.column_stack([x, np.full(400, np.nan)])
    sensors = Sensors.of(x)
    assert (sensors.own > 0).tolist() == [True, False, True, True, False]
    for changed, faults in with_faults(x, sensors, 0):
        assert len(faults) and (changed[:, 1] == 7.5).all() and faults[-1].last <= len(changed)
        np.testing.assert_array_equal(np.isfinite(changed), np.isfinite(np.concatenate([x] * 17)))
    # where nothing but noise moves no regime shows and no run begins: the other kinds and manners come in turn all the same
    quiet = np.random.default_rng(0).normal(size=(3000, 1))
    found = [fault for _, faults in with_faults(quiet, Sensors.of(quiet), 0) for fault in faults]
    assert len(found) >= planted.COUNT and {fault.manner for fault in found} == {*MANNERS} - {"with a run"}
    assert len({fault.kind for fault in found} - {"unseen regime"}) == len(KINDS) - 1
    dead = np.full((400, 2), 3.0)
    assert not list(with_faults(dead, Sensors.of(dead), 0))
    with pytest.raises(UserError, match="no fault can be put into these rows"):
        watch(make_spec({"name": "m", "input": {"dim": 2}, "novelty": {"warmup": 100}}), Table(dead, None))


def test_an_unseen_regime_lies_on_the_way_between_seen_ones():
    """Two places of three sensors: all that moves, moves along the line through both."""
    rng, way = np.random.default_rng(2), np.array([4.0, -2.0, 1.0])
    x = np.outer(np.arange(4000) // 500 % 2, way) + rng.normal(0, 0.01, (4000, 3))
    for seed in range(20):
        case = planted.Case(np.random.default_rng(seed), x, 1400, 1600, 0, 1.0, np.ones(3), np.zeros(3))
        moved = (planted.regime(case) - case.block)[-1]
        part = moved @ way / (way @ way)
        assert np.abs(moved - part * way).max() < 0.02 and abs(part) < 2.02
    x[1300:1400, 1] = np.nan
    moved = planted.regime(case) - case.block
    assert np.isnan(moved[:, 1]).all() and np.isfinite(moved[:, [0, 2]]).all()


def test_a_fault_is_seen_by_an_alarm_in_its_rows():
    now = np.zeros(400, bool)
    places = (("bias", "rare", 50), ("gain", "repeated", 150), ("gain", "repeated", 250))
    faults = [Fault(kind, manner, first, first + 50, first / 400) for kind, manner, first in places]
    now[[60, 61, 140, 310, 390]] = True  # two come when a sensor came back, or later
    found = Watched(0.01)
    found.take(now, faults)
    report = found.report()
    told = report["learning"]
    assert told["error"] == pytest.approx(2 / 3) and told["scored"] == 3
    assert np.flatnonzero(told["rows"]).tolist() == [2, 7, 12] and np.flatnonzero(told["sums"]).tolist() == [7, 12]
    assert report["missed"] == {"bias": (0, 1), "gain": (2, 2)}
    assert report["manners"] == {"rare": (0, 1), "repeated": (2, 2)}
    said = missed_kinds_sentence(report["missed"] | {"drift": (3, 4), "another time": (5, 16)})
    assert said == "gain: 2 of 2 faults; drift: 3 of 4 faults; values from another time: 5 of 16 faults"
    quiet = 400 - 3 * (50 + GUARD)
    assert told["other_rows"] == 2 / quiet and told["keeps_rate"]
    found.take(np.ones(400, bool), [])
    assert not found.report()["learning"]["keeps_rate"]


def test_rows_that_choose_a_monitor_are_none_of_those_of_its_promise():
    table, spec = Table(np.arange(2000.0)[:, None], None), make_spec({"name": "m", "input": {"dim": 1}, "novelty": {}})
    (before, rows), (taught, told) = (watched_rows(spec, table, promise)[0] for promise in (False, True))
    assert (len(before), rows[0, 0], rows[-1, 0], len(taught), told[0, 0]) == (700, 700, 1399, 1400, 1400)
    short = replace(table, x=table.x[:1000])  # the warm-up leaves too few
    assert [rows[0, 0] for _, rows in (*watched_rows(spec, short, False), *watched_rows(spec, short))] == [700, 700]


def test_rivals_have_as_many_false_rows_and_see_what_they_are_for():
    """An EWMA chart small lasting shifts, a VAR(1) what breaks the course of slow sensors, Mahalanobis what breaks a relation."""
    rng, x = np.random.default_rng(0), np.zeros((12_000, 2))
    for i, new in enumerate(rng.normal(size=(12_000, 2)) @ [[1, 0.9], [0, 0.3]]):
        x[i] = 0.98 * x[i - 1] + 0.2 * new
    kinds = {
        "course": (x, lambda rows: rows + rng.normal(0, 0.8, rows.shape), "VAR(1)"),
        "shift": (rng.normal(size=(12_000, 2)), lambda rows: rows + np.array([0, 1.5]), "EWMA"),
        "relation": (
            rng.normal(size=(12_000, 2)) @ [[1, 0.99], [0, 0.1]],
            lambda rows: rows * [1, -1],
            "Mahalanobis distance",
        ),
    }
    for rows, broken, best in kinds.values():
        hit = np.zeros(12_000, bool)
        hit[3000:3040], hit[7000:7040], hit[9000:9040] = True, True, True
        rows = rows.copy()
        rows[hit] = broken(rows[hit])
        whole, model = Rivals(2).step(rows), Rivals(2)
        np.testing.assert_allclose(np.concatenate([model.step(rows[:1010]), model.step(rows[1010:])]), whole, rtol=1e-9)
        above = np.quantile(whole[~hit][1000:], 0.99, axis=0)
        seen = dict(zip(Rivals.numbers(2), (whole[hit] > above).mean(axis=0), strict=True))
        assert seen[best] > 0.25 and seen[best] >= 0.99 * max(seen.values()), (best, seen)
    rows[505, 0] = np.nan
    gap = Rivals(2).step(rows)
    assert np.isnan(gap[505]).all() and np.isnan(gap[506, 3]) and np.isfinite(np.delete(gap, [505, 506], axis=0)).all()


@pytest.mark.parametrize(
    ("missed", "winner", "shown"), [(0.5, "b", "b"), (0.1, "model", "b"), (0.29, None, "b"), (0.42, "b", "b")]
)
def test_the_verdict_names_the_rival_that_misses_fewer_of_the_same_faults(missed, winner, shown):
    rng = np.random.default_rng(0)

    def told(part):
        sums = 20 * part + rng.normal(0, 1, 20)
        found = Losses(sums, np.full(20, 20.0), True, np.zeros(20)).report()
        return found | {"other_rows": 0.01, "bytes": 40, "above": 3.0}

    others = {"a": told(0.6), "b": told(0.3)}
    trial = Trial(None, None, {}, {"promised": {"learning": told(missed)}})  # type: ignore[arg-type]
    found = against_simple(trial, others)
    assert (found["winner"], found["simple"]) == (winner, shown)
    said = against_monitors_sentence(found)
    assert ("take b, 40 B, and raise an alarm above 3" in said) == (winner == "b") and "b" in said.split()[0]


def test_what_keeps_its_rate_comes_first_and_of_equals_the_smallest():
    table = Table(machine(1000), None)
    every = arms({"name": "m", "input": {"dim": 4}, "novelty": {}}, table, None, None)
    names = [f"gmm {k} components" for k in (2, 3, 4, 8)]
    assert [arm.name for arm in every] == names
    content = {"name": "m", "input": {"dim": 4}, "novelty": {}}
    assert [arm.name for arm in arms(content, table, ["gmm"], None)] == names
    # what a spec names, its monitors have
    assert [arm.name for arm in arms(content | {"learning": {"components": 5}}, table, None, None)] == [
        "gmm 5 components"
    ]
    with pytest.raises(UserError, match=r"\[kernel\] .* \[novelty\] selects gmm"):
        arms(content | {"kernel": {"sigma": 3.0}}, table, None, None)
    search = Search(every, table, None, None)  # type: ignore[arg-type]

    def tried(arm, missed, other, size):
        told = {"error": missed, "deviation": 0.03, "other_rows": other, "keeps_rate": other <= 0.02}
        trial = Trial(every[arm], None, {"novelty.smoothing": size / 1e4}, {"learning": told, "ram_bytes": size})
        search.trials.append(trial)
        return trial

    loud = tried(3, 0.0, 0.3, 100)
    assert search.winner() is loud
    best = tried(3, 0.10, 0.01, 2000)
    assert search.winner() is best
    tried(1, 0.13, 0.01, 900)  # more than a standard deviation
    assert search.winner() is best
    near = tried(2, 0.127, 0.02, 1500)
    assert search.winner() is near
    tried(0, 0.0, 0.0, 3000)
    tried(0, 0.021, 0.0, 2500)  # of few misses, up to 2 %
    assert search.winner() is search.trials[-2]
    assert search.winner() is not tried(0, 0.019, 0.0, 3500)
    assert search.winner() is not near and tried(0, 0.0199, 0.0, 50) is search.winner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, x):
    np.savetxt(name, x, delimiter=",", header=",".join("pfnvxyz"[: x.shape[1]]), comments="", fmt="%.6g")


@pytest.mark.exhaustive
def test_a_planned_monitor_sees_what_it_promised_in_rows_that_the_plan_had_not(folder, run):
    write("ok.csv", machine(6000)[:, :3])
    code, out, err = run("plan", "ok.csv", "--only", "gmm", "--trials", "4", "--jobs", "1", "--json")
    assert code == 0, err
    report = json.loads(out)
    winner, spec = report["winner"], load_spec("pykernel-plan/planned.toml")
    told = winner["learning"]
    assert set(winner["missed"]) == set(KINDS) and told["scored"] >= planted.COUNT
    least = min(row["learning"]["error"] for row in report["table"])
    mine = next(row for row in report["table"] if row["model"] == winner["model"])
    assert mine["learning"]["error"] <= least + max(0.02, told["deviation"]) + 0.02
    assert {*Rivals.numbers(3)} == {*report["simple"]}
    # other rows of the same machine, other faults
    x = machine(9000, seed=5)[:, :3]
    found, model = Watched(0.01), HostModel(spec)
    model.update(x[:4000])
    alarms = [int(status) for status in spec.program.alarms]
    for rows, faults in with_faults(x[4000:], Sensors.of(x[:4000]), 9):
        found.take(np.isin(model.update(rows), alarms), faults)
    truth = found.report()["learning"]
    assert sum(missed for missed, _ in winner["missed"].values()) == round(told["error"] * told["scored"])
    assert abs(truth["error"] - told["error"]) < 0.1 and truth["other_rows"] < 0.03
    # the report says so, too
    code, out, err = run("plan", "ok.csv", "--only", "gmm", "--trials", "4", "--jobs", "1")
    assert code == 0 and f"misses {100 * told['error']:.1f} %" in out and "of the other rows in alarm" in out, out


def test_a_recording_within_the_warm_up_is_refused_before_the_work(folder, run):
    write("short.csv", machine(510))
    code, _, err = run("plan", "short.csv", "--trials", "1", "--jobs", "1", "-o", "out")
    assert code == 2 and "raises no alarm in its warm-up of 500 rows, and the table has 510" in err, err
    assert not Path("out").exists()


# ------------------------------------------------------------------------------------------------------- simulate


def faulty():
    x = machine(4000)[:, :3]
    x[2000:2060, 2] += 60
    x[2500:2560, 0] = x[2500, 0]
    x[3000:3040, 1] -= 3
    return x


def test_the_report_of_alarms_adds_up_and_blames_as_the_device_would(folder, run):
    """A model that learns row by row, and is read after each, is the twin."""
    x = faulty()
    x[2010, 0] = np.nan
    write("rows.csv", x)
    Path("spec.toml").write_text('name = "m"\n[input]\ncolumns = ["p", "f", "n"]\n[novelty]\n')
    code, out, err = run("simulate", "spec.toml", "rows.csv", "--json", "-o", "each.csv")
    assert code == 0, err
    report = json.loads(out)
    found, spec = report["alarms"], load_spec("spec.toml")
    with open("each.csv", newline="") as file:
        each = list(csv.DictReader(file))
    model, names = HostModel(spec), {int(s): s.name.lower() for s in spec.program.status}
    alarms, told, last = {int(s) for s in spec.program.alarms}, [], "done"
    rows = np.genfromtxt("rows.csv", delimiter=",", skip_header=1)
    for row, line in zip(rows, each, strict=True):
        status = int(model.update(row[None])[0])
        assert names[status] == line["status"]
        if status in alarms:
            shares, kind = model.read("blame")
            last = names[kind] if names[kind] != "done" else last
            told.append((int(line["row"]), "pfn"[int(shares.argmax())], last))
    assert told == [(int(line["row"]), line["blamed"], line["kind"]) for line in each if line["blamed"]]
    statuses = report["statuses"]
    assert len(told) == found["samples"] == statuses.get("held", 0) + statuses.get("novel", 0)
    assert found["samples"] == sum(alarm["rows"] for alarm in found["listed"]) and found["count"] == len(
        found["listed"]
    )
    # the rows of the warm-up are those that were not refused
    assert found["judged"] == len(x) - 1 - 500 and found["in_alarm"] * found["judged"] == pytest.approx(
        found["samples"]
    )
    assert report["regimes"] == sorted(report["regimes"], reverse=True) and sum(report["regimes"]) == pytest.approx(1)
    at = {start: [a for a in found["listed"] if start <= a["first_row"] < start + 60] for start in (2000, 2500, 3000)}
    assert [(of[0]["input"], len(of) > 0) for of in at.values()] == [("n", True), ("p", True), ("f", True)]
    assert "stuck" in {alarm["kind"] for alarm in at[2500]} and all(a["level"] > 0 for a in found["listed"])
    # in pieces of any length
    for size in (7, 1000):
        run_in_parts = Monitoring(spec)
        for start in range(0, len(rows), size):
            list(run_in_parts.run(rows[start : start + size], np.zeros((len(rows[start : start + size]), 0))))
        assert run_in_parts.report()["alarms"] == found
    code, out, _ = run("simulate", "spec.toml", "rows.csv", "--report", "page.html")
    assert code == 0 and "% of the 3,499 rows after the warm-up are in alarm; false_alarm_rate is 1 %" in out
    assert (
        "normal states are known at the end, with" in out
        and "Level, threshold and alarms" in Path("page.html").read_text()
    )


@pytest.mark.exhaustive
def test_hostile_tables_have_reports(folder, run, exhaustive):
    """A constant column, one that is never there, one with a huge value, and infinities: refused or told, never a crash."""
    x = np.column_stack([faulty()[:1500, :2], np.full(1500, 4.0), np.full(1500, np.nan)])
    x[700, 0], x[900:905, 1] = np.inf, 1e11
    write("rows.csv", x)
    for columns in ('["p", "f", "n"]', '["p", "v"]', *(['["n"]'] if exhaustive else [])):
        Path("spec.toml").write_text(f'name = "m"\n[input]\ncolumns = {columns}\n[novelty]\n')
        code, out, err = run("simulate", "spec.toml", "rows.csv", "--json", "-o", "each.csv", "--report", "p.html")
        assert code == 0, err
        report = json.loads(out)
        found = report["alarms"]
        assert found["samples"] == sum(alarm["rows"] for alarm in found["listed"])
        assert (report["refused"] == 1500) == ('"v"' in columns) == (not report["regimes"])
        assert run("simulate", "spec.toml", "rows.csv")[0] == 0
    code, out, err = run("plan", "rows.csv", "--inputs", "p,f,n", "--only", "gmm", "--trials", "1", "--jobs", "1")
    assert code == 0, err
