"""Programs that only predict, that are trained at once, and that learn without labels: what they say, and what is told of them."""

import io
import json
import os
import re
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest

from pykernel.dialect import DIM, OUTPUTS, Index, Real, kernel
from pykernel.dialect.program import Entry, Program
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build, state_hash
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.host.monitoring import Monitoring
from pykernel.host.replay import Replay, read_log
from pykernel.host.samples import Batch, read_samples
from pykernel.host.scores import Course
from pykernel.host.simulation import Simulation
from pykernel.host.snapshot import device_memory, load, save, snapshot_bytes
from pykernel.language.ir import DialectError
from pykernel.spec.model import load_spec, make_spec
from tests.support.following import persistent
from tests.support.toys import (
    Toy,
    ToyConfig,
    ToyStatus,
    ToyWork,
    toy_predict,
    toy_spec,
    toy_update,
    toy_valid,
)

# ---------------------------------------------------------------------------------------------- what a program is

TWO = (Entry("predict", toy_predict, "question"), Entry("update", toy_update, "update"))


def a_program(**changed):
    whole = {
        "name": "toy", "structs": (Toy, ToyWork), "persistent": (Toy,), "configs": (ToyConfig,),
        "statuses": (ToyStatus,), "entries": TWO, "valid": toy_valid,
    }  # fmt: skip
    return Program(**(whole | changed))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"labels": "real"}, "the argument 'labels' is needed without an update"),
        ({"entries": TWO[:1]}, "the argument 'labels' is needed without an update"),
        ({"entries": TWO[1:]}, "toy has no predict"),
        ({"statuses": (ToyStatus, IntEnum("More", {"DONE": 1}))}, "DONE is 0 and 1; give DONE one value"),
        ({"valid": None}, "give 'valid' and 'persistent' together, or neither of them"),
        ({"persistent": ()}, "give 'valid' and 'persistent' together, or neither of them"),
        ({"persistent": (ToyWork,)}, "the persistent structs must be the first structs"),
        ({"between": ("refresh",)}, "refresh is listed in 'between', but is not an action"),
        ({"alarms": (ToyStatus.LEARNED,)}, "a program with alarms must have an update and the reading alarm"),
        (
            {"entries": (*TWO, Entry("drift", toy_predict, "action"))},
            "drift is not a valid action: it must take structs",
        ),
        (
            {"entries": (*TWO, Entry("train", toy_update, "reading"))},
            r"train is not a valid reading: it must take \(…, an arr",
        ),
        (
            {"entries": (*TWO, Entry("train", toy_update, "switch"))},
            r"train is not a valid switch: it must take \(…, an Index",
        ),
        ({"entries": (*TWO, Entry("drift", toy_valid, "question"))}, "drift is not a valid question: it must take"),
        (
            {"entries": (*TWO, Entry("train", toy_predict, "visit"))},
            "train is not a valid visit: it must take the same parameters as the update",
        ),
        (
            {"entries": (*TWO, Entry("learn", toy_update, "update"))},
            "learn is not a valid update: the entry that learns",
        ),
        ({"entries": (TWO[0], Entry("update", toy_update, "visit"))}, "update is not a valid visit"),
    ],
)
def test_programs_that_say_two_things_are_refused(changed, says):
    a_program()
    with pytest.raises(TypeError, match=says):
        a_program(**changed)


@kernel
def blind_predict(w: ToyWork, c: ToyConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write an input to y."""
    y[0] = x[0] * c.eta
    return ToyStatus.DONE


@kernel
def mute_assess(s: Toy, c: ToyConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Take several labels, and write none."""
    s.power[0] += y[0] * c.eta
    return ToyStatus.DONE


BLIND = {"entries": (Entry("predict", blind_predict, "question"),), "structs": (ToyWork,), "persistent": (),
    "valid": None, "labels": "real"}  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (BLIND, "the model's C struct would be empty, which C does not allow"),
        ({"entries": (*TWO, Entry("judge", mute_assess, "question"))}, "never writes to y, the array for its answer"),
    ],
)
def test_what_a_self_test_could_not_fail_is_refused(keys, says):
    made = a_program(**keys)

    class Changed(type(toy_spec("real"))):
        @property
        def program(self):
            return made

    with pytest.raises(DialectError, match=says):
        build(Changed.model_validate(toy_spec("real").model_dump(exclude_unset=True)))


# ---------------------------------------------------------------------------------------------------- the models

DATA = {"input": {"columns": ["a", "b"], "max_abs": 100.0}, "kernel": {"sigma": 1.0}}
CLASSES = {"column": "c", "classes": ["low", "high"]}
VECTORS = [[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [0.5, -1.0]]
MODELS = {
    "krr": {"label": {"column": "y", "max_abs": 10.0}, "learning": {"rule": "krr", "samples": 24}},
    "kfd": {"label": CLASSES, "learning": {"rule": "kfd"}, "expansion": {"vectors": VECTORS}},
    "frozen": {
        "label": CLASSES,
        "learning": {"rule": "frozen"},
        "expansion": {"vectors": VECTORS, "weights": [[0.3], [1.0], [0.5], [-0.7]], "bias": [-0.2]},
    },
    "plain": {"learning": {"rule": "okfeb", "features": 3}, "reduction": {"n_max": 8}},
    "monitor": {"kernel": None, "novelty": {"warmup": 100}},
}
WRITTEN = re.compile(r"_reset|snapshot|SNAPSHOT|STORAGE|wipe|restore|learned")


def spec_of(name):
    return make_spec({"name": name} | DATA | MODELS[name])


def two_regimes(rows, seed=0):
    x = 0.5 * np.random.default_rng(seed).normal(size=(rows, 2))
    x[rows * 3 // 4 :] += 4
    return x.astype(np.float32)


def test_a_model_that_learns_nothing_speaks_of_no_state():
    """Neither functions nor files nor words of it; the self-test's answer is the CRC of all memory."""
    spec = spec_of("frozen")
    project = build(spec)
    files = project.files
    for path in ("src/frozen.h", "src/frozen.c", "VALIDITY.md", "CMakeLists.txt", "zephyr/Kconfig", "library.json"):
        assert set(WRITTEN.findall(files[path])) <= {"learned"}, path  # "that was learned elsewhere"
    header = files["src/frozen.h"]
    assert "#define FROZEN_STATE_BYTES 0u /* nothing is learned on the device */" in header
    assert "update" not in header and "FROZEN_SNAPSHOT" not in header
    assert not [path for path in files if "snapshot" in path or "_model" in path]
    device, model = CModel(project, find_compilers()[0]), HostModel(spec, project.drop)
    device.ask("predict", x := mixed_stream(spec, 50)[0]), model.ask("predict", x)
    assert int(device.call("hash")) == state_hash(spec, model.memory) and device.call("selftest") == 0
    for call in (lambda: save(model), lambda: load(model, b"PKSN"), lambda: snapshot_bytes(spec)):
        with pytest.raises(UserError, match="learns nothing on the device, so it has no snapshots"):
            call()
    with pytest.raises(UserError, match="learns nothing on the device, so there is no state to compare"):
        device_memory(spec, b"1234", "end.bin")


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("monitor", "state[0] = s->level", "state[0] = s->quantile", r"alarm after update 99: \["),
        ("monitor", "return (held && !lasting) ? MONITOR_HELD", "return (!held && !lasting) ? MONITOR_HELD", r"update \d+: status"),
        ("kfd", "s->press += squares", "s->press += 2.0f * squares", r"assess of row \d+ after update 49: press is"),
        ("kfd", "if (n <= KFD_MOST) {", "if (n < 0) {", r"train after update 49: trained is"),
        ("kfd", "_ratio((float)s->mistakes, (float)s->assessed)", "_ratio((float)s->mistakes, 1.0f)", r"leave_one_out after update 49: \["),
        ("kfd", "    s->trained = 0;\n    return KFD_DONE;", "    return KFD_DONE;", "restart after update 99: trained"),
    ],
)  # fmt: skip
def test_a_changed_action_visit_reading_or_alarm_is_caught_where_it_first_differs(name, old, new, says):
    spec = spec_of(name)
    x, y = (two_regimes(400), np.zeros((400, 0), np.float32)) if name == "monitor" else mixed_stream(spec, 200)
    reference = Reference(build(spec), None, x, y)
    assert old in reference.project.files[f"src/{name}.c"]
    row = reference.compare(find_compilers()[0], "-O1", patch=lambda text: new.join(text.rsplit(old, 1)))
    assert not row["equal"] and re.match(says, row["first_difference"]), row["first_difference"]


def test_labels_are_refused_where_there_are_none_and_missed_where_there_are():
    model, labelled, x = HostModel(spec_of("monitor")), HostModel(spec_of("krr")), np.zeros((2, 2))
    for call in (model.update, model.prequential, model.prequential_alarms):
        with pytest.raises(UserError, match=r"^monitor learns without labels; give only the inputs$"):
            call(x, np.zeros(2))
        assert len(call(x, np.zeros((2, 0)))) > 0  # what mixed_stream has
    for call in (labelled.update, labelled.prequential):
        with pytest.raises(UserError, match=r"^krr learns from labels; give a label for each sample$"):
            call(x)
    with pytest.raises(UserError, match=r"^plain raises no alarms$"):
        HostModel(spec_of("plain")).prequential_alarms(x)
    with pytest.raises(UserError, match=r"^monitor predicts nothing, because it learns without labels$"):
        model.predict(x)
    with pytest.raises(UserError, match=r"^frozen does not learn: its weights are fixed$"):
        HostModel(spec_of("frozen")).update(x)
    with pytest.raises(UserError, match=r"^monitor learns without labels, so it has no errors to compare$"):
        Simulation(spec_of("monitor"))
    with pytest.raises(UserError, match=r"^krr learns from labels; simulate it with labels$"):
        Monitoring(spec_of("krr"))


# ------------------------------------------------------------------------------------------- simulation and replay


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("batch", [13, 1000])
def test_a_simulation_trains_after_every_so_many_labels(delay, batch):
    """However the rows come in batches: after the 40th, 80th, ... label that was learned, and after the last."""
    spec, x = spec_of("kfd"), np.random.default_rng(2).normal(size=(300, 2))
    y = (np.sin(x.sum(1)) > 0).astype(np.int32)
    y[::11] = -1  # no label yet
    run = Simulation(spec, delay, train_every=40)
    batches = [Batch(x[i : i + batch], y[i : i + batch], 0) for i in range(0, len(x), batch)]
    predictions = [steps.predictions for b in batches for steps in run.run(b.x, b.y)]
    run.finish(batches)
    model, expected, labels, trained = HostModel(spec), [], 0, []
    for t in range(len(x)):
        expected.append(model.classify(x[t : t + 1]))
        i = t - delay
        if i >= 0 and y[i] >= 0:
            model.update(x[i : i + 1], y[i : i + 1])
            labels += 1
            if labels % 40 == 0:
                trained.append(model.train())
    trained.append(model.train())
    assert np.concatenate(predictions).ravel().tolist() == np.concatenate(expected).tolist()
    known = y[: len(x) - delay] >= 0
    visited = model.visit("assess", x[: len(x) - delay][known], y[: len(x) - delay][known])
    assert persistent(run.model) == persistent(model)
    report, (values, _) = run.report(), model.read("leave_one_out")
    assert report["trainings"] == {"done": len(trained)} and len(trained) == labels // 40 + 1
    told = {"status": "done", "mse": float(values[0]), "error_rate": float(values[1])}
    assert report["leave_one_out"] == told | {"samples": int((visited >= 0).sum())} and report["warnings"] == []


def test_a_model_that_is_never_trained_is_told():
    spec = spec_of("kfd")
    x, y = mixed_stream(spec, 100)
    run = Simulation(spec)
    list(run.run(x, y))
    run.finish()
    assert "the model was never trained" in run.warning and "kfd_train()" in run.warning
    assert "leave_one_out" not in run.report() and not run.model.predict(x[:5]).any()
    with pytest.raises(UserError, match="train-every is -1"):
        Simulation(spec, train_every=-1)


def replayed(spec, lines):
    run = Replay(spec)
    for rows in read_log(io.BytesIO("\n".join(lines).encode()), "log", spec, 17):
        run.run(rows)
    return run


def test_a_log_of_rows_that_were_learned_or_only_asked_about_replays_and_the_first_difference_is_named():
    """Half-way the device restarts."""
    spec, x = spec_of("monitor"), two_regimes(120)
    learned = np.random.default_rng(3).random(120) < 0.8
    device, lines = CModel(build(spec), find_compilers()[0]), ["a,b,novelty,learned,status,state_hash,call"]
    for t, row in enumerate(x):
        asked = device.ask("novelty", row[None])[0][0, 0]
        status = device.prequential(row[None], np.zeros((1, 0), np.float32), predict=False)[1][0] if learned[t] else ""
        told = (f"{asked:.9g}", int(learned[t]), status, f"{int(device.call('hash')):08x}", "")
        lines.append(",".join(map(str, (*(f"{v:.9g}" for v in row), *told))))
        if t == 60:
            lines.append(f",,,,{device.call('restart')},{int(device.call('hash')):08x},restart")
    run = replayed(spec, lines)
    assert run.difference is None and run.updates == learned.sum() and run.compared["state_hash"] == 121
    assert bytes(run.model.memory.bytes) == bytes(device.memory.bytes)
    # a sample that is not the one that was learned; a row that the log says was learned, and was not
    for at, cell, value, what in (
        (int(np.flatnonzero(learned)[20]), 0, "1.25", "novelty"),
        (int(np.flatnonzero(~learned)[0]), 3, "1", "state_hash"),
    ):
        cells = lines[1 + at].split(",")
        wrong = [*lines[: 1 + at], ",".join([*cells[:cell], value, *cells[cell + 1 :]]), *lines[2 + at :]]
        assert str(replayed(spec, wrong).difference).startswith(f"row {at} (line {at + 2}): {what} is")
    for bad, says in (
        (",1,,,0,,", "has some inputs and not others"),
        ("1,2,,0,0,,", "has a status but was not learned; a status is the return value of update"),
        ("1,2,,2,,,", "column 'learned' is '2'; it must be 1 if the row was learned, 0 if the model was only asked"),
        (",,0.5,,,,restart", "has a label or a prediction but no inputs"),
    ):
        with pytest.raises(UserError, match=f"log, line 2: {re.escape(says)}"):
            replayed(spec, [lines[0], bad])


def test_a_course_is_kept_in_constant_memory():
    """Of 5,000 rows in at most 64 windows: sums, largest and last values of any grouping are those of the rows."""
    rng = np.random.default_rng(0)
    values, alarmed, states = rng.random((5000, 2)), rng.random(5000) < 0.01, rng.random((5000, 2))
    values[rng.random(5000) < 0.1] = np.nan
    values[1000:1200] = np.nan
    course, start = Course(("a", "b"), most=64), 0
    while start < 5000:
        part = slice(start, start + int(rng.integers(1, 300)))
        course.add(values[part], alarmed[part], states[part])
        start = part.stop
    kept = course.kept
    assert len(kept.table) <= 64 and kept.spacing == 128 and kept.rows == 5000
    for first in (0, 2500, 4999):
        found = course.summary(first)
        begin = first // 128 * 128
        known = values[begin:][~np.isnan(values[begin:, 0])]
        assert found["first_row"] == begin and found["answered"] == len(known)
        assert list(found["mean"].values()) == pytest.approx(known.mean(0))
        assert list(found["largest"].values()) == list(known.max(0))
        assert found["in_alarm"] == pytest.approx(alarmed[begin:].mean())
    curves = course.curves(20)
    assert len(curves["row"]) == 20
    for i in range(20):
        part = slice(256 * i, min(256 * (i + 1), 5000))
        known = values[part][~np.isnan(values[part, 0])]
        assert curves["mean"][i] == pytest.approx(known.mean(0)) and (curves["largest"][i] == known.max(0)).all()
        assert curves["alarm"][i] == alarmed[part].any() and curves["level"][i] == states[part, 0].max()
        assert curves["threshold"][i] == states[part, 1][-1] and curves["row"][i] == (part.start + part.stop - 1) / 2
    silent = Course(("a",))
    silent.add(np.full((3, 1), np.nan), np.zeros(3, bool), np.full((3, 2), np.nan))
    assert silent.summary()["mean"] == {"a": None} == silent.summary()["largest"]
    assert np.isnan(silent.curves()["mean"]).all() and Course(("a",)).summary()["in_alarm"] is None


def test_samples_without_labels_are_read():
    """One column, and the last of several; a label's column is just another column."""
    text = b"t,a,label\n0,1.5,high\n\n1,nan,low\n"
    (batch,) = read_samples(io.BytesIO(text), "data", ["a"], [])
    assert batch.x.tolist()[0] == [1.5] and np.isnan(batch.x[1, 0]) and batch.y.shape == (2, 0)
    (batch,) = read_samples(io.BytesIO(text), "data", ["a", "t"], ())
    assert batch.x[0].tolist() == [1.5, 0] and batch.y.shape == (2, 0)
    with pytest.raises(UserError, match=r"data, line 2: column 'label' is 'high', not a number"):
        list(read_samples(io.BytesIO(text), "data", ["label"], ()))


# --------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A spec of each model, data with labels, and 400 rows whose last quarter is elsewhere."""
    monkeypatch.chdir(tmp_path)
    for name in MODELS:
        Path(f"{name}.toml").write_text(spec_of(name).to_toml())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    y = np.sin(x.sum(1))
    rows = [f"{a:.9g},{b:.9g},{v:.9g},{'high' if v > 0 else 'low'}" for (a, b), v in zip(x, y, strict=True)]
    Path("data.csv").write_text("\n".join(["a,b,y,c", *rows]) + "\n")
    rows = (f"{t},{a:.9g},{b:.9g}\n" for t, (a, b) in enumerate(two_regimes(400)))
    Path("course.csv").write_text("t,a,b\n" + "".join(rows))
    return x, y


def test_simulate_trains_or_only_scores(files, run):
    x, y = files
    code, out, err = run("simulate", "krr.toml", "data.csv", "--train-every", "24", "--json")
    report = json.loads(out)
    model = HostModel(load_spec("krr.toml"))
    model.update(x, y)
    assert code == 0 and model.train() == 0 and report["trainings"] == {"done": 5}
    assert report["leave_one_out"]["mse"] == model.read("leave_one_out")[0][0]
    assert report["second_half"]["mae"]["model"] < 0.5 * report["second_half"]["mae"]["running mean"]
    code, out, err = run("simulate", "krr.toml", "data.csv")
    assert code == 0 and err.startswith("warning: the model was never trained") and "leave-one-out" not in out
    # the discriminant's own estimate takes the data once more: of a file, not of standard input
    code, out, _ = run("simulate", "kfd.toml", "data.csv", "--train-every", "50", "--delay", "10", "--json")
    report = json.loads(out)
    model = HostModel(load_spec("kfd.toml"))
    model.update(x[:110], (y > 0).astype(int)[:110])
    assert model.train() == 0 and (model.visit("assess", x[:110], (y > 0).astype(int)[:110]) == 0).all()
    values, _ = model.read("leave_one_out")
    told = {"status": "done", "mse": float(values[0]), "error_rate": float(values[1]), "samples": 110}
    assert code == 0 and report["leave_one_out"] == told and report["trainings"] == {"done": 3}
    code, out, err = run("simulate", "kfd.toml", "data.csv", "--train-every", "50")
    assert code == 0 and "trainings done 3" in out and not err
    assert re.search(r"leave-one-out RMSE [\d.]+, [\d.]+ % of the samples with a wrong class", out)
    if Path("/dev/fd").exists():  # as a shell's <(...): it is read once
        reads, writes = os.pipe()
        os.write(writes, Path("data.csv").read_bytes())
        os.close(writes)
        code, out, err = run("simulate", "kfd.toml", f"/dev/fd/{reads}", "--train-every", "50")
        os.close(reads)
        assert code == 0 and "trainings done 3" in out and not err
        assert "the samples must be read again after the training; give the data as a file" in out
    code, out, err = run("simulate", "frozen.toml", "data.csv", "-o", "out.csv")
    assert code == 0 and not err and "trainings" not in out
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "row,prediction,label,status" and len(lines) == 121
    assert all(line.endswith(",done") for line in lines[1:])


@pytest.mark.usefixtures("files")
def test_simulate_tells_of_answers_and_alarms(run):
    code, out, err = run("simulate", "monitor.toml", "course.csv", "-o", "out.csv", "--json")
    report, model = json.loads(out), HostModel(load_spec("monitor.toml"))
    answers, states, statuses = model.prequential_alarms(two_regimes(400))
    assert code == 0 and not err and report["question"] == "novelty" and report["rows"] == 400
    assert report["all"]["mean"]["novelty"] == pytest.approx(float(answers.astype(float).mean()))
    assert sum(report["statuses"].values()) == 400 and report["statuses"]["held"] == (statuses == 5).sum()
    assert any(alarm["first_row"] <= 300 <= alarm["last_row"] for alarm in report["alarms"]["listed"])
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "row,novelty,level,threshold,since,blamed,kind,status" and len(lines) == 401
    row, novelty, level, threshold, since, *_, status = lines[301].split(",")
    assert (row, status) == ("300", "held") and np.float32(novelty) == answers[300]
    assert [np.float32(level), np.float32(threshold), np.float32(since)] == list(states[300])
    code, out, err = run("simulate", "monitor.toml", "course.csv")
    assert code == 0 and not err and re.search(r"held +\d", out) and "in alarm" in out
    assert re.search(r"^ *\d+ +3\d\d +\d+ +[\d.]+ +[\d.]+ ", out, re.MULTILINE) and "at the end the level is" in out
    code, out, err = run("simulate", "plain.toml", "course.csv")
    assert code == 0 and not err and "alarm" not in out and re.search(r"novelty +all +[\d.]+ +[\d.]+", out)


@pytest.mark.usefixtures("files")
def test_simulate_draws(run):
    for spec in ("monitor", "plain"):
        code, _, err = run("simulate", f"{spec}.toml", "course.csv", "--report", "course.html")
        assert code == 0 and "<svg" in Path("course.html").read_text(), err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("simulate", "frozen.toml", "data.csv", "--delay", "1"),
            "rule frozen takes no labels, so delay has",
        ),
        (
            ("simulate", "frozen.toml", "data.csv", "--train-every", "9"),
            "rule frozen has no train function on the device",
        ),
        (("simulate", "krr.toml", "data.csv", "--refresh-every", "9"), "rule krr has nothing to refresh"),
        (
            ("state", "show", "frozen.toml", "data.csv"),
            "frozen learns nothing on the device, so it has no snap",
        ),
        (
            ("state", "replay", "frozen.toml", "data.csv"),
            "data.csv: holds no results to compare; record status or prediction\n",
        ),
        (("state", "replay", "frozen.toml", "data.csv", "--end", "data.csv"), "frozen learns nothing on the device, so there"),
        (("simulate", "monitor.toml", "data.csv", "--delay", "2"), "monitor learns without labels, so --delay has"),
        (("simulate", "monitor.toml", "data.csv", "--train-every", "2"), "monitor learns without labels, so --train-e"),
        (("simulate", "monitor.toml", "data.csv", "--refresh-every", "-1"), "refresh-every is -1; it must be a number of"),
        (("state", "replay", "monitor.toml", "data.csv"), "data.csv: holds no results to compare; record state_hash, status or no"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_gets_one_sentence(words, sentence, run):
    code, out, err = run(*words)
    assert code == 2 and not out and err.startswith(f"error: {sentence}") and err.count("\n") == 1
