"""Many recordings, one device each: whatever reads them treats each as it treats one table alone."""

import inspect
import json
import shutil
from pathlib import Path
from statistics import median

import numpy as np
import pytest

import pykernel
from pykernel.errors import UserError
from pykernel.gen.check import Host, Reference
from pykernel.gen.project import build
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.host.samples import read_rows
from pykernel.rows.recordings import recordings_of
from pykernel.spec.model import load_spec, make_spec
from pykernel.training.coding import Targets
from pykernel.training.selection import GroupFolds, stratified_folds
from pykernel.tuning.data import Devices, Table, parts_of

CONTENT = {
    "name": "flow",
    "input": {"columns": ["a", "b"]},
    "label": {"column": "y"},
    "learning": {"rule": "klms"},
    "kernel": {"sigma": 1.0},
    "reduction": {"n_max": 8},
}
SPEC = make_spec(CONTENT)
NAMES = [f"n{i}" for i in range(6)]


def table(seed, rows=450):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    return np.column_stack([a, b, np.sin((1 + seed) * a) + b]).astype(np.float32)


def write(path, values):
    lines = [",".join(f"{value:.9g}" for value in row) for row in values.tolist()]
    path.write_text("\n".join(["a,b,y", *lines, ""]))


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """A folder with six devices, and files that are none."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "logs"
    (folder / ".old").mkdir(parents=True)
    for i, name in enumerate(NAMES):
        write(folder / f"{name}.csv", table(i))
    (folder / ".old" / "n9.csv").write_text("nothing")
    (folder / ".n7.csv.0123456789abcdef.part").write_text("half")
    (folder / "_n8.csv").write_text("nothing")
    (folder / "README.md").write_text("# Devices")
    (tmp_path / "spec.toml").write_text(SPEC.to_toml())
    return folder


def alone(path, **how):
    """What simulate says of one table, but for what is of one device only."""
    report = json.loads(json.dumps(pykernel.simulate(SPEC, path, **how).report))
    return {
        key: value for key, value in report.items() if key not in ("advice", "output", "report", "save", "state_hash")
    }


def of_device(row):
    dropped = ("advice", "state_hash")
    return {key: value for key, value in json.loads(json.dumps(row["simulation"])).items() if key not in dropped}


# --------------------------------------------------------------------------------------------------- which files


def test_what_is_a_device_and_what_is_none(logs):
    every = [(name, str(logs / f"{name}.csv")) for name in NAMES]
    found = recordings_of(logs)
    assert [(each.name, each.path) for each in found.devices] == every and found.columns == ("a", "b", "y")
    assert recordings_of("logs/*").devices == recordings_of("logs/n?.csv").devices
    assert [each.name for each in recordings_of("logs/n[13].csv").devices] == ["n1", "n3"]
    assert [each.name for each in recordings_of(["logs/n3.csv", "logs/n1.csv", "logs/n3.csv"]).devices] == ["n3", "n1"]
    assert [each.name for each in recordings_of(["logs/n3.csv"]).devices] == ["n3"]
    for one in ("logs/n3.csv", logs / "n3.csv", "-", "absent.csv", (np.zeros((3, 2)), np.zeros(3)), []):
        assert recordings_of(one) is None
    # folders of sites; the name says the ending where two devices differ in no other way
    for site in ("east", "west"):
        (logs / site).mkdir()
        shutil.copy(logs / "n1.csv", logs / site / "n1.csv")
    assert [each.name for each in recordings_of(logs).devices] == ["east/n1", *NAMES, "west/n1"]
    shutil.copy(logs / "n1.csv", logs / "n1.tsv")
    assert {"n1.csv", "n1.tsv", "east/n1.csv"} <= {each.name for each in recordings_of(logs).devices}
    # both together: a folder and a file
    assert len(recordings_of(["logs/east", "logs/n0.csv"])) == 2


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ("a,b,z", "it lacks 'y' and also has 'z'"),
        ("a,b,y,t", "it also has 't'"),
        ("a,b", "it lacks 'y'"),
        ("c,d,e,f,g,h", "it lacks 'a', 'b', 'y' and also has 'c', 'd', 'e', 'f' and 2 others"),
    ],
)
def test_a_file_with_other_columns_is_named_with_what_differs(logs, header, what):
    (logs / "n3.csv").write_text(f"{header}\n" + ",".join("1" * len(header.split(","))) + "\n")
    with pytest.raises(UserError) as told:
        recordings_of("logs")
    assert str(told.value).startswith(
        f"logs/n3.csv: its columns differ from those of logs/n0.csv: {what}; give all recordings"
    )


def test_what_cannot_be_many_devices_is_one_sentence(logs, run):
    (logs.parent / "empty").mkdir()
    (logs.parent / "empty" / ".hidden.csv").write_text("a,b,y\n1,2,3\n")
    for data, says in (
        ("empty", "empty: is a folder without recordings; give a folder with files that end with .csv, .tsv, .parquet"),
        ("logs/x*.csv", "logs/x*.csv: no file matches this pattern"),
        (["logs/n0.csv", "-"], "-: standard input cannot be one of several recordings"),
        (["logs/n0.csv", "logs/absent.csv"], "logs/absent.csv: there is no such file"),
    ):
        with pytest.raises(UserError) as told:
            recordings_of(data)
        assert str(told.value).startswith(says)
    for words, says in (
        ("plan logs/n0.csv logs/n0.csv --label y", "has 1 device; 2 or more are needed, so that models can be tested"),
        (
            "plan logs --label y --delay 226",
            "delay is 226; it must be from 0 to 225 rows, at most half of the shortest recording",
        ),
        ("simulate spec.toml logs -o out.csv", "--output is for one device, but the data come from several"),
        ("state replay spec.toml logs --end end.bin", "--end is for one device, but the data come from several"),
        ("state replay spec.toml logs/n0.csv --jobs 2", "--jobs is for many devices"),
        (
            "fit logs --label y --set training.cv=kept --output m.toml",
            "--set training.cv=kept is not possible with several devices, because whole devices are left out",
        ),
        (
            "fit logs --label y --set training.cv=7 --output m.toml",
            "--set training.cv is 7, but a fold leaves out at least one device, and there are only 6",
        ),
        ("fit logs --label y --hold-out 0.99 --output m.toml", "--hold-out 0.99 leaves no device to train on"),
    ):
        code, _out, err = run(*words.split())
        assert code == 2 and err.splitlines()[-1].startswith("error: ") and says in err, err
    assert sorted(path.name for path in logs.parent.iterdir()) == ["empty", "logs", "spec.toml"]


# ------------------------------------------------------------------------------------------------------ simulate


def test_each_device_is_simulated_as_it_is_alone_whatever_its_format(logs):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    before = [alone(f"logs/{name}.csv", delay=2) for name in NAMES]
    for i, kind in ((2, "parquet"), (4, "arrow")):
        values = np.genfromtxt(logs / f"{NAMES[i]}.csv", delimiter=",", skip_header=1)
        (logs / f"{NAMES[i]}.csv").unlink()
        rows = pyarrow.table(dict(zip("aby", values.T, strict=True)))
        if kind == "parquet":
            parquet.write_table(rows, logs / f"{NAMES[i]}.parquet", row_group_size=100)
        else:
            with pyarrow.ipc.new_file(logs / f"{NAMES[i]}.arrow", rows.schema) as file:
                file.write_table(rows, 64)
    found = pykernel.simulate(SPEC, "logs", delay=2)
    for row, single in zip(found.report["devices"], before, strict=True):
        told = of_device(row)
        assert told.pop("data")["file"] == row["path"] and single.pop("data")["file"].startswith(
            f"logs/{row['device']}"
        )
        assert told == single
        assert row["error"] == single["second_half"]["rmse"]["model"]
        assert row["ratio"] == row["error"] / min(
            error for name, error in single["second_half"]["rmse"].items() if name != "model"
        )
    # what all have in common
    report, errors = found.report, found.errors
    worst = max(errors, key=errors.get)
    assert report["error"] == {"median": median(errors.values()), "worst": errors[worst], "device": worst}
    assert found.error == report["error"]["median"] and report["rows"] == 450 * 6
    ratios = [row["ratio"] for row in report["devices"]]
    assert report["ratio"]["median"] == median(ratios) and report["ratio"]["worst"] == max(ratios)
    better = [single["verdict"]["winner"] == "model" for single in before]
    assert report["judged"] == 6 and report["beat_simple"] == sum(better) / 6 and 0 < sum(better) < 6
    assert worst in repr(found) and worst in found.page.html() and "All devices, the best first" in found.page.html()


@pytest.mark.exhaustive
def test_the_numbers_do_not_depend_on_jobs(logs, run):
    printed = [run("simulate", "spec.toml", "logs", "--json", "--jobs", jobs)[1] for jobs in ("1", "2")]
    assert printed[0] == printed[1] and len(json.loads(printed[0])["devices"]) == 6
    names = [str(path) for path in sorted(logs.glob("n*.csv"))]
    listed = json.loads(run("simulate", "spec.toml", *names, "--json")[1])
    assert [row["error"] for row in listed["devices"]] == [row["error"] for row in json.loads(printed[0])["devices"]]


def test_a_broken_file_among_good_ones_is_named_and_the_others_are_told(logs, run):
    before = pykernel.simulate(SPEC, "logs").errors
    with (logs / "n2.csv").open("a") as file:
        file.write("1,2\n")
    code, out, err = run("simulate", "spec.toml", "logs", "--json", "--jobs", "2")
    report = json.loads(out)
    assert code == 2 and err.splitlines()[-1] == (
        "error: logs/n2.csv, line 452: has 2 cells, but the header names 3 columns; give each row a cell for each column, and "
        "quote cells that hold a comma (the other 5 recordings were read)"
    )
    assert {row["device"]: row["error"] for row in report["devices"]} == {k: v for k, v in before.items() if k != "n2"}
    assert [each["device"] for each in report["unread"]] == ["n2"]
    for name in NAMES:
        (logs / f"{name}.csv").write_text("a,b,y\n")
    code, out, err = run("simulate", "spec.toml", "logs")
    assert (code, out) == (2, "") and "logs/n0.csv: holds a header but no rows" in err


def test_each_device_begins_from_the_start_and_its_state_is_saved(logs, run):
    assert run("simulate", "spec.toml", "logs/n5.csv", "--save", "start.bin")[0] == 0
    code, out, _ = run("simulate", "spec.toml", "logs", "--start", "start.bin", "--save", "states", "--json")
    report = json.loads(out)
    assert code == 0 and "state" not in report["devices"][0]["simulation"]
    for name, row in zip(NAMES, report["devices"], strict=True):
        code, out, _ = run(
            "simulate", "spec.toml", f"logs/{name}.csv", "--start", "start.bin", "--save", "one.bin", "--json"
        )
        assert Path("one.bin").read_bytes() == Path(f"states/{name}.bin").read_bytes()
        assert json.loads(out)["state_hash"] == row["simulation"]["state_hash"]


def test_for_people_and_of_many_the_worst(logs, run, monkeypatch):
    code, out, _err = run("simulate", "spec.toml", "logs", "--report", "r.html")
    assert (
        code == 0
        and "6 devices, 2,700 rows in all" in out
        and "of 6 devices, the model beats the best simple predictor" in out
    )
    assert all(name in out for name in NAMES) and "report" in out and "n5" in Path("r.html").read_text()
    for name in ("n1", "n4"):  # what was found in the cells is told of the first
        text = (logs / f"{name}.csv").read_text().splitlines()
        text[9] = "n/a," + text[9].partition(",")[2]
        (logs / f"{name}.csv").write_text("\n".join([*text, ""]))
    out = run("simulate", "spec.toml", "logs")[1]
    assert (
        "n1: 1 of 450 cells of a is not a number (first: 'n/a', line 10)" in out
        and "(2 devices have such notes; see the JSON report)" in out
    )
    monkeypatch.setattr("pykernel.telling.SHOWN_DEVICES", 2)
    out = run("simulate", "spec.toml", "logs")[1]
    ranked = sorted(pykernel.simulate(SPEC, "logs").report["devices"], key=lambda row: -row["ratio"])
    assert "the worst 2 of 6 devices" in out
    shown = [line.split()[0] for line in out.splitlines() if line.strip().startswith("n")]
    assert shown == [row["device"] for row in ranked[:2]]


def test_monitors_and_classes(logs, run):
    monitor = make_spec({"name": "watch", "input": {"columns": ["a", "b"]}, "novelty": {}})
    found = pykernel.simulate(monitor, "logs")
    assert found.measure == "in_alarm" and found.report["beat_simple"] is None
    for row in found.report["devices"]:
        single = pykernel.simulate(monitor, row["path"]).report
        assert (row["error"], row["alarms"]) == (single["alarms"]["in_alarm"], single["alarms"]["count"])
    Path("watch.toml").write_text(monitor.to_toml())
    assert "in alarm" in run("simulate", "watch.toml", "logs")[1] and "in alarm" in found.page.html()


# -------------------------------------------------------------------------------------------------------- replay


@pytest.fixture
def devices(tmp_path, monkeypatch):
    """Logs of five devices, of which n2 and n3 computed something else once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "spec.toml").write_text(SPEC.to_toml())
    for i in range(5):
        values = table(i, 120)
        model = HostModel(SPEC, identity(SPEC).drop)
        answers, statuses = model.prequential(values[:, :2], values[:, 2])
        lines = [
            ",".join([*(f"{value:.9g}" for value in row), f"{float(answer):.9g}", str(status)])
            for row, answer, status in zip(values.tolist(), np.ravel(answers), statuses, strict=True)
        ]
        for row in {2: (70, 90), 3: (5,)}.get(i, ()):
            lines[row] = ",".join([*lines[row].split(",")[:3], "77", "0"])
        (tmp_path / "logs" / f"n{i}.csv").write_text("\n".join(["a,b,y,prediction,status", *lines, ""]))
    return tmp_path


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_which_devices_computed_what_they_should(devices, run, jobs):
    code, out, err = run("state", "replay", "spec.toml", "logs", "--json", "--jobs", jobs)
    report = json.loads(out)
    assert code == 1 and report["ok"] is False and report["differ"] == 2
    assert [each["ok"] for each in report["devices"]] == [True, True, False, False, True]
    assert [each["difference"] and each["difference"]["row"] for each in report["devices"]] == [None, None, 70, 5, None]
    assert err.startswith("error: logs/n2.csv, row 70 (line 72): prediction is 77 on the device")
    for each in report["devices"]:
        code, out, _ = run("state", "replay", "spec.toml", each["path"], "--json")
        assert json.loads(out) == {key: value for key, value in each.items() if key not in ("device", "path", "wrong")}
    code, out, _ = run("state", "replay", "spec.toml", "logs")
    assert code == 1 and "3 of 5 devices computed the expected values" in out and "row 5 (line 7)" in out
    code, out, _ = run("state", "replay", "spec.toml", "logs/n0.csv", "logs/n1.csv", "logs/n4.csv")
    assert code == 0 and "3 of 3 devices computed the expected values" in out


def test_a_log_that_cannot_be_read_does_not_hide_the_others(devices, run):
    with Path("logs/n4.csv").open("a") as file:
        file.write("1,2,3,x,0\n")
    code, out, err = run("state", "replay", "spec.toml", "logs")
    assert code == 1 and "2 of 4 devices computed the expected values" in out
    assert "logs/n4.csv, line 122: column 'prediction' is 'x'" in out and "error: logs/n2.csv, row 70" in err
    code, out, err = run("state", "replay", "spec.toml", "logs/n0.csv", "logs/n4.csv")
    assert code == 2 and "1 of 1 devices" in out and "error: logs/n4.csv, line 122" in err


# --------------------------------------------------------------------------------------------------------- check


class Forgetful(Host):
    """Does not begin anew between devices."""

    def call(self, name, *args):
        between = name == "init" and inspect.stack()[1].function == "_call"
        return None if between else super().call(name, *args)


def test_a_check_begins_anew_with_each_device(logs, run, one_build):
    parts = [read_rows(SPEC, f"logs/{name}.csv") for name in NAMES[:3]]
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    project, rows = build(SPEC), [(name, len(part)) for name, (part, _) in zip(NAMES, parts, strict=False)]
    many = Reference(project, None, x, y, devices=rows)
    assert many.hash == Reference(project, None, *parts[-1]).hash != Reference(project, None, x, y).hash
    assert many._row(0) == "0 of n0" and many._row(449) == "449 of n0" and many._row(450) == "0 of n1"
    # a device that does not begin anew is found, in its first row that shows
    verdict = many.verdict(Forgetful(project, None, "llvm"))
    assert not verdict["equal"] and verdict["first_difference"].startswith("init for n1: ")
    code, out, err = run("check", "spec.toml", "--data", "logs", "--engine", "llvm")
    assert code == 0 and "2,700" in out and "devices  6, with 2,700 rows; the model starts anew on each device" in err


# ---------------------------------------------------------------------------------------------- fit, plan


@pytest.mark.parametrize("count", [2, 3, 7])
def test_folds_keep_groups_together(count):
    rng = np.random.default_rng(count)
    groups = rng.integers(0, 7, 90)
    folds = stratified_folds(Targets.of_values(rng.normal(size=90)), GroupFolds(count, groups), seed=3)
    assert sorted(set(folds.tolist())) == list(range(count))
    assert all(len(set(folds[groups == each])) == 1 for each in range(7))
    sizes = [len(set(groups[folds == each])) for each in range(count)]
    assert max(sizes) - min(sizes) <= 1
    some = GroupFolds(count, groups).among(np.flatnonzero(groups < 2))
    assert int(some) == min(count, 2) and len(some.groups) == (groups < 2).sum()
    with pytest.raises(UserError, match="from 2 to 7, the number of groups"):
        stratified_folds(Targets.of_values(np.zeros(90)), GroupFolds(8, groups))


def write_devices_apart(seed, devices, rows):
    """Recordings with a level of their own, and an input b that tells only which device it is; returns the lines of each."""
    Path("logs").mkdir()
    rng, found = np.random.default_rng(seed), []
    for i in range(devices):
        a = rng.normal(size=(rows, 2))
        a[:, 1] = i + 0.01 * a[:, 1]
        y = rng.normal() + 0.1 * a[:, 0] + 0.05 * rng.normal(size=rows)
        path = Path(f"logs/n{i}.csv")
        np.savetxt(path, np.column_stack([a, y]), "%.6g", ",", header="a,b,y", comments="")
        found.append(path.read_text().splitlines(keepends=True)[1:])
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("model", ["krr", "svm", "trained"])
def test_a_fit_is_judged_on_devices_that_it_has_not_seen(tmp_path, monkeypatch, model):
    """An input that only tells which device it is helps on rows that are left out, and not on devices."""
    monkeypatch.chdir(tmp_path)
    Path("all.csv").write_text("a,b,y\n" + "".join("".join(lines) for lines in write_devices_apart(1, 8, 30)))
    how = {"label": "y", "model": model, "n_max": 16 if model == "trained" else None}
    devices, row_by_row = pykernel.fit("logs", **how), pykernel.fit("all.csv", cv=8, hold_out="0,random", **how)
    assert devices.report["device_count"] == 8 and devices.report["cv"] == 8
    assert devices.error > 3 * row_by_row.error
    held = pykernel.fit("logs", hold_out=0.25, **how).report
    assert held["rows"] == 180 and held["held_out_rows"] == 60
    assert held["errors"]["held_out"] > 3 * row_by_row.error


def test_one_width_and_one_ridge_are_judged_on_devices_too(logs):
    for i, name in enumerate(NAMES):
        write(logs / f"{name}.csv", table(i, 30))
    found = pykernel.fit("logs", label="y", model="krr", sigma=1.0, ridge=0.1)
    assert found.report["cv"] == 6
    chosen = pykernel.fit("logs", label="y", model="krr", sigma=[1.0, 2.0], ridge=[0.1, 1.0])
    cell = next(each for each in chosen.report["table"] if (each["width"], each["ridge"]) == (1.0, 0.1))
    assert found.error == pytest.approx(cell["press"] ** 0.5, rel=1e-9)


def test_a_cell_of_a_device_is_named_with_its_file(logs):
    text = (logs / "n3.csv").read_text().splitlines()
    text[7] = "1,3.2 mm,5"
    (logs / "n3.csv").write_text("\n".join([*text, ""]))
    with pytest.raises(UserError, match=r"^logs/n3.csv, line 8: column 'b' is '3.2 mm', not a number"):
        pykernel.fit("logs", label="y", inputs=["a", "b"])


def test_times_that_begin_anew_are_no_input(logs):
    for name in NAMES:
        lines = (logs / f"{name}.csv").read_text().splitlines()
        rows = [f"{t},{line}" for t, line in enumerate(lines[1:])]
        (logs / f"{name}.csv").write_text("\n".join([f"t,{lines[0]}", *rows, ""]))
    assert pykernel.fit("logs", label="y", model="krr", n_max=8).report["inputs"] == ["a", "b"]


def planned(**how):
    return pykernel.plan("logs", **{"label": "y", "trials": 8, "jobs": 1, "output": "out"} | how)


@pytest.mark.in_turn
@pytest.mark.parametrize("delay", [0, 3])
def test_a_plan_is_judged_on_devices_that_taught_nothing(logs, delay):
    """Each device judges once: a frozen model that the others have taught, and one that begins anew."""
    found = planned(only=["knlms", "nlms"], delay=delay)
    report, order = found.report, np.random.default_rng(0).permutation(6).tolist()
    assert (report["device_count"], report["judges"], report["rows"]) == (6, 6, 450 * 6) and report[
        "judged_rows"
    ] == 225 * 6
    assert report["states"] == {} and not Path("out/planned.bin").exists()
    winner, spec, squares = report["winner"], found.specs["planned"], {"frozen": [], "learning": []}
    for judges in (order[:2], order[2:4], order[4:]):
        rows, frozen = np.concatenate([table(i).astype(float) for i in order if i not in judges]), HostModel(spec)
        frozen.update(rows[: len(rows) - delay, :2], rows[: len(rows) - delay, 2])
        for values in (table(i).astype(float) for i in judges):
            model, half = HostModel(spec), values[225:]
            model.update(values[: 225 - delay, :2], values[: 225 - delay, 2])
            answers, _ = model.prequential(
                values[225 - delay :, :2], values[225 - delay :, 2], first=delay, delay=delay
            )
            squares["learning"].append(np.square(np.ravel(answers) - half[:, 2]).mean())
            squares["frozen"].append(np.square(np.ravel(frozen.ask("predict", half[:, :2])[0]) - half[:, 2]).mean())
    for kind, told in squares.items():
        assert winner[kind]["error"] == pytest.approx(np.mean(told) ** 0.5, rel=1e-6)
        # a device is a block
        spread = np.std(told, ddof=1) / 6**0.5 / (2 * winner[kind]["error"])
        assert winner[kind]["deviation"] == pytest.approx(spread, rel=1e-6)
        assert winner[kind]["within"] == pytest.approx(2.571 * spread, rel=1e-6)
    assert (
        "2,700 rows of 6 devices" in repr(found)
        and "on each of 6 devices, by models trained on other devices" in found.page.html()
    )
    assert "each of 6 devices" in Path("out/planned.toml").read_text() and "each of 6 devices" in found.page.html()


@pytest.mark.parametrize(("devices", "folds"), [(2, 2), (3, 3), (7, 3), (19, 3)])
def test_each_device_judges_once(devices, folds):
    rng = np.random.default_rng(devices)
    rows = rng.integers(2, 9, devices).tolist()
    x = np.repeat(np.arange(devices), rows)[:, None] + rng.random((sum(rows), 1)) / 2
    judges = len(parts_of(devices, folds)[-1])
    whole = Table(x, x[:, 0], devices=Devices(tuple(rows[:-judges]), tuple(rows[-judges:])), device_folds=folds)
    judged = []
    for fold in whole.folds:
        assert fold.x.tobytes() == fold.labels.tobytes() and sorted(fold.x[:, 0]) == sorted(x[:, 0])
        for begins, first, end in fold.runs:
            own = np.floor(fold.x[begins:end, 0])
            assert (
                len(set(own)) == 1
                and own[0] not in np.floor(fold.x[: fold.split, 0])
                and end - first == (end - begins) // 2
            )
            judged.append(int(own[0]))
    assert sorted(judged) == list(range(devices)) and len(whole.folds) == folds
    # the first of them is the table itself, from which scales and limits are taken
    assert whole.folds[0].x.tobytes() == x.tobytes() and whole.folds[0].split == whole.split


@pytest.mark.exhaustive
def test_what_a_plan_promises_is_of_other_devices(tmp_path, monkeypatch):
    """An input that only tells which device it is helps frozen models on rows of these devices, and on no other."""
    monkeypatch.chdir(tmp_path)
    by_turns = zip(*write_devices_apart(3, 12, 60), strict=True)
    Path("all.csv").write_text("a,b,y\n" + "".join(row for rows in by_turns for row in rows))
    how = {"label": "y", "labels": "never", "trials": 6, "jobs": 1}
    devices = planned(**how).report["winner"]["promise"]["error"]
    assert devices > 3 * pykernel.plan("all.csv", output="one", **how).report["winner"]["promise"]["error"]


@pytest.mark.exhaustive
def test_a_plan_takes_many_devices_in_part_and_monitors_begin_anew(logs, run, monkeypatch):
    monkeypatch.setattr("pykernel.workflows.search.MOST_DEVICES", 3)
    monkeypatch.setattr("pykernel.workflows.search.MOST_ROWS", 900)
    code, out, err = run(*"plan logs --label y --only knlms --trials 2 --jobs 1 -o out".split())
    assert code == 0 and "3 of 6 devices are used, and at most the first 300 rows of each" in err
    assert "judged on each of 3 devices, by models trained on other devices" in " ".join(out.split())
    monkeypatch.setattr("pykernel.workflows.search.ENOUGH_DEVICES", 3)
    code, out, err = run(*"plan logs --label y --only knlms --trials 2 --jobs 1 -o o2".split())
    assert (
        code == 0
        and "judged on 1 of 3 devices, by models trained on other devices" in " ".join(out.split())
        and "devices  1 of 3 are used to test the models" in err
    )
    monkeypatch.undo()
    monkeypatch.chdir(logs.parent)
    with pytest.raises(UserError, match=r"warm-up of 500 rows, and the longest recording has 450: record"):
        planned(label=None, inputs=["a", "b"], only="gmm", trials=2, output="watch")
    for i, name in enumerate(NAMES):
        write(logs / f"{name}.csv", table(i, 900))
    report = planned(label=None, inputs=["a", "b"], only="gmm", trials=2, output="watch").report
    assert report["winner"]["learning"]["scored"] >= 256 and (report["device_count"], report["judges"]) == (6, 6)
    write(logs / "n4.csv", table(4, 12))
    code, _out, err = run(*"plan logs --label y -o o3".split())
    assert code == 2 and "logs/n4.csv: has 12 rows; a plan needs 20 or more from each device" in err
    signal = 'name = "s"\n[signal]\nchannels = ["a"]\nwindow = 8\nfeatures = ["mean"]\n[label]\ncolumn = "y"\n'
    Path("signal.toml").write_text(
        f'precision = "int16"\n{signal}'.replace("window", "max_abs = 8\nwindow") + "max_abs = 8\n"
    )
    code, _out, err = run(*"plan logs --spec signal.toml -o o3".split())
    assert code == 2 and "the scales of [signal] in int16 come from one recording; give one file" in err
    assert not Path("o3").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ['[label]\ncolumn = "y"\n', "[novelty]\nwarmup = 100\n"])
def test_several_machines_with_a_signal_are_planned_together(tmp_path, kind):
    """Each machine's steps are those of its own rows: no window spans two."""
    for i in range(3):
        write(tmp_path / f"m{i}.csv", table(i, 4010))
    spec = f'name = "s"\n[signal]\nchannels = ["a", "b"]\nwindow = 8\nfeatures = ["mean", "rms"]\n{kind}'
    (tmp_path / "signal.toml").write_text(spec)
    only = "knlms" if "label" in kind else "gmm"
    found = pykernel.plan(
        sorted(tmp_path.glob("*.csv")),
        spec=load_spec(tmp_path / "signal.toml"),
        only=only,
        trials=2,
        jobs=1,
        output=tmp_path / "out",
    )
    report = found.report
    assert (report["rows"], report["device_count"], report["raw_rows"]["rows"]) == (3 * 501, 3, 3 * 4010)
    assert found.spec.signal is not None and found.spec.dim == 4
    page = (tmp_path / "out" / "report.html").read_text()
    assert "mean a" in page and "rms b" in page and "input 0" not in page


def test_an_interval_over_devices_holds_for_other_devices():
    """Devices err differently, rows of a device alike: of 400 fleets 95 % of intervals hold; by blocks of rows far fewer would."""
    from scipy.stats import t

    from pykernel.tuning.promises import T_BOTH, T_ONE, Losses

    assert pytest.approx([t.ppf(0.975, i) for i in range(1, 20)], rel=5e-4) == T_BOTH
    assert pytest.approx([t.ppf(0.95, i) for i in range(1, 20)], rel=5e-4) == T_ONE
    rng, held = np.random.default_rng(0), {2: 0, 5: 0, 40: 0}
    by_rows = 0
    for _ in range(400):
        for count in held:
            level = np.repeat(rng.gamma(8, 1 / 8, count), 50)
            losses = level * rng.chisquare(1, len(level))
            found = Losses.of(losses, np.ones(len(losses), bool), False, lengths=[50] * count)
            held[count] += abs(found.error - 1) <= found.within
            assert found.growth is None and len(found.rows) == min(count, 20)
            if count == 5:
                flat = Losses.of(losses, np.ones(len(losses), bool), False)
                by_rows += abs(flat.error - 1) <= flat.within
    assert all(0.92 < each / 400 < 0.98 for each in held.values()), held
    assert by_rows / 400 < 0.85
