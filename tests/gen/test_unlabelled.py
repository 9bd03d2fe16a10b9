"""Programs that learn without labels, through the whole tool chain: the same bytes, alarms, replay, projects, the command."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from pykernel.dialect import DIM, Index, Real, kernel
from pykernel.dialect.program import Entry, Program
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.host.replay import Replay, read_log
from pykernel.host.samples import read_samples
from pykernel.host.scores import Course
from pykernel.host.simulate import Monitoring, Simulation, prediction_header, prediction_lines
from pykernel.spec.model import load_spec
from tests.support.compilers import in_one_build
from tests.support.program_toys import (
    Gauge,
    GaugeConfig,
    GaugeStatus,
    GaugeWork,
    clear_spec,
    gauge_alarm,
    gauge_novelty,
    gauge_spec,
    gauge_update,
    gauge_valid,
    oven_spec,
)

PRECISIONS = ("float32", "float64")


def all_specs(precision="float32"):
    return [gauge_spec(precision), gauge_spec(precision, threshold=1.0), clear_spec(precision)]


def assert_equal(report):
    assert report.ok, [(row["compiler"], row["flags"], row["first_difference"]) for row in report.rows]


def two_regimes(rows, seed=0):
    """Samples near one place, then near another; now and then some far away, in a row, and some that are refused."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    x[rows // 2 :] += 6
    for start in range(30, rows, 60):
        x[start : start + 8] = 80
    x[rows // 3 :: 41, 1] = np.nan
    return x.astype(np.float32)


# ---------------------------------------------------------------------------------------------- what a program is


def test_a_program_says_what_its_entries_are():
    program = gauge_spec().program
    assert program.label_kind == "none" and program.label is None and program.learns and program.asks == "novelty"
    assert list(program.questions) == ["novelty", "side"] and list(program.readings) == ["alarm"]
    assert not program.visits and program.actions == ("restart",)
    assert program.label_array({}).shape == (0,)
    program = clear_spec().program
    assert program.label_kind == "none" and not program.learns and program.asks == "novelty"
    assert oven_spec().program.asks == "predict"


@kernel
def gauge_assess(s: Gauge, x: Real[DIM], y: Real) -> Index:
    """Take a label."""
    s.level[0] = y
    return GaugeStatus.DONE


@kernel
def gauge_vectors(s: Gauge, x: Real[DIM], y: Real[3]) -> Index:
    """Take a label of an extent that no label has."""
    s.level[0] = y[0] + x[0]
    return GaugeStatus.DONE


def a_program(*entries, **changed):
    whole = {
        "name": "gauge", "structs": (Gauge, GaugeWork), "persistent": (Gauge,), "configs": (GaugeConfig,),
        "statuses": (GaugeStatus,), "valid": gauge_valid,
    }  # fmt: skip
    return Program(entries=tuple(Entry(*one) for one in entries), **(whole | changed))


NOVELTY, UPDATE = ("novelty", gauge_novelty, "question"), ("update", gauge_update, "update")
ALARM = ("alarm", gauge_alarm, "reading")


@pytest.mark.parametrize(
    ("entries", "changed", "says"),
    [
        ([UPDATE], {}, r"gauge has no question"),
        ([NOVELTY, UPDATE], {"labels": "none"}, "update tells the kind of its labels"),
        ([NOVELTY], {}, r"gauge has no predict"),
        ([NOVELTY, UPDATE, ("assess", gauge_assess, "visit")], {}, "assess is no visit: it takes what update takes"),
        ([NOVELTY, ("update", gauge_vectors, "update")], {}, r"gauge has no predict"),
        (
            [("predict", gauge_novelty, "question"), ("update", gauge_vectors, "update")],
            {},
            r"update takes \(…, x: Real\[DIM\]\), then a Real",
        ),
        ([NOVELTY, UPDATE], {"alarms": (GaugeStatus.NOVEL,)}, "alarms are of update, and need the reading alarm"),
        ([NOVELTY, ALARM], {"alarms": (GaugeStatus.NOVEL,), "labels": "none"}, "alarms are of update, and need the"),
    ],
)
def test_programs_that_say_two_things_are_refused(entries, changed, says):
    assert a_program(NOVELTY, UPDATE, ALARM, alarms=(GaugeStatus.NOVEL,)).asks == "novelty"
    with pytest.raises(TypeError, match=says):
        a_program(*entries, **changed)


# ------------------------------------------------------------------------------------------------- the same bytes


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", PRECISIONS)
def test_host_and_c_are_equal(precision):
    """Every answer and status on 20,000 rows, the questions beside, the alarm's state, and all memory."""
    for spec in all_specs(precision):
        report = in_one_build(spec, samples=20_000)
        assert_equal(report)
        alarms = {"novel", "held"} if "alarm" in report.calls else set()
        assert set(report.statuses) == {"done", "refused_input"} | alarms
        assert sum(report.statuses.values()) == 20_000


def test_a_long_stream_of_ones_own():
    """100,000 rows, without labels given as None, from what was learned before."""
    spec, x = gauge_spec(), two_regimes(100_100)
    model = HostModel(spec)
    model.update(x[:100])
    report = in_one_build(spec, model.memory, stream=(x[100:], None))
    assert_equal(report)
    assert report.figures["learned"] and min(report.statuses.values()) > 50


def test_loops_are_the_calls_one_by_one():
    """run and watch, of every question and delay, in each engine: the memory's bytes, and what was written."""
    spec, x = gauge_spec(), two_regimes(200)
    for question in ("novelty", "side"):
        for delay in (0, 3):
            models = [HostModel(spec, engine=engine) for engine in ("llvm", "llvm", "numba", "python")]
            answers, states, statuses = models[0].prequential_alarms(x, first=5, delay=delay, question=question)
            for model in (models[1], models[3]):
                again = model.prequential(x, first=5, delay=delay, question=question)
                assert answers.tobytes() == again[0].tobytes() and (statuses == again[1]).all()
            for t in range(5, 200):
                a, _ = models[2].ask(question, x[t])
                assert np.array_equal(a[0], np.atleast_1d(answers[t - 5]), equal_nan=question == "novelty")
                if t >= delay:
                    assert models[2].update(x[t - delay])[0] == statuses[t - 5]
                assert models[2].read("alarm")[0].tobytes() == states[t - 5].tobytes()
            assert len({bytes(model.memory.bytes) for model in models}) == 1


def test_labels_are_refused_where_there_are_none_and_missed_where_there_are():
    model, labelled, x = HostModel(gauge_spec()), HostModel(oven_spec()), np.zeros((2, 3))
    for call in (model.update, model.prequential, model.prequential_alarms):
        with pytest.raises(UserError, match=r"^gauge learns without labels; give it the inputs alone$"):
            call(x, np.zeros(2))
        assert len(call(x, np.zeros((2, 0)))) > 0  # what mixed_stream has
    for call in (labelled.update, labelled.prequential):
        with pytest.raises(UserError, match=r"^oven learns from labels; give one for each sample$"):
            call(x)
    for quiet in (HostModel(gauge_spec(threshold=1.0)), HostModel(clear_spec())):
        with pytest.raises(UserError, match=f"^{quiet.spec.name} raises no alarms$"):
            quiet.prequential_alarms(x)
    with pytest.raises(UserError, match=r"^gauge predicts nothing, for it learns without labels$"):
        model.predict(x)
    with pytest.raises(UserError, match=r"^clear does not learn: its weights are fixed$"):
        HostModel(clear_spec()).update(x)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("s->level += 0.25f", "s->level += 0.250001f", r"update 0: level is .* on the host, .* in C"),
        ("square + s->spread + 1.0f", "square + s->spread + 1.00001f", r"novelty \d+: |update \d+: "),
        ("side[1]++;", "side[1] += 2;", r"side of row \d+ after update 49: \[.*\] on the host, \[.*\] in C"),
        ("state[0] = s->level", "state[0] = s->spread", r"alarm after update 49: \["),
        ("return GAUGE_HELD;", "return GAUGE_NOVEL;", r"update \d+: status 2 on the host, 1 in C"),
        ("    s->seen = 0;\n    s->spread", "    s->spread", r"restart after update 99: seen is"),
    ],
)  # fmt: skip
def test_a_changed_c_is_caught_where_it_first_differs(old, new, says):
    spec = gauge_spec()
    reference = Reference(build(spec), None, two_regimes(200), np.zeros((200, 0), np.float32))
    assert old in reference.project.files["src/gauge.c"]
    row = reference.compare(find_compilers()[0], "-O1", patch=lambda text: text.replace(old, new))
    assert not row["equal"] and re.match(says, row["first_difference"]), row["first_difference"]


def test_costs_on_a_target_are_of_the_main_question():
    pytest.importorskip("unicorn")
    pytest.importorskip("ziglang")
    from pykernel.tuning.costs import memory_bytes, target_costs

    costs = target_costs(gauge_spec(), two_regimes(60), None, "cortex-m4f", samples=20, tries=10)
    assert (
        costs["equal"]
        and (costs["update"]["bound"] or costs["update"]["worst"])
        >= costs["update"]["max"]
        > costs["novelty"]["mean"]
        > 0
    )
    assert memory_bytes(gauge_spec())["ram_bytes"] == costs["ram_bytes"]


# -------------------------------------------------------------------------------------------- the generated project


# ---------------------------------------------------------------------------------------------------- a simulation


def alarms_of(statuses):
    """First and last row of each alarm, by reading."""
    found, last = [], None
    for t, status in enumerate(statuses):
        if status in (GaugeStatus.NOVEL, GaugeStatus.HELD):
            if last is None:
                found.append([t, t])
            found[-1][1] = last = t
        elif status >= 0:
            last = None
    return found


@pytest.mark.parametrize("batch", [7, 4096])
def test_a_simulation_asks_learns_and_tells_of_alarms(batch):
    """However the rows come in batches: answers, statuses, alarms, level and threshold are those of single calls."""
    spec, x = gauge_spec(), two_regimes(1500)
    run, model = Monitoring(spec), HostModel(spec)
    lines = prediction_header(spec)
    for i in range(0, len(x), batch):
        for steps in run.run(x[i : i + batch], np.zeros((len(x[i : i + batch]), 0))):
            lines += prediction_lines(spec, steps)
    answers, states, statuses = model.prequential_alarms(x)
    assert bytes(run.model.memory.bytes) == bytes(model.memory.bytes)
    report, expected = run.report(), alarms_of(statuses)
    assert len(expected) > 5 and any(a < b for a, b in expected) and report["alarms"]["count"] == len(expected)
    for alarm, (first, last) in zip(report["alarms"]["listed"], expected, strict=True):
        within = np.isin(statuses[first : last + 1], [1, 2])
        level, threshold, _ = max(states[first : last + 1][within].tolist(), key=lambda state: state[0])
        assert alarm == {
            **{"first_row": first, "last_row": last, "rows": int(within.sum())},
            **{"level": level, "threshold": threshold},
        }
    counts = {s.name.lower(): int((statuses == s).sum()) for s in GaugeStatus}
    assert report["statuses"] == counts and report["alarms"]["samples"] == counts["novel"] + counts["held"]
    known = answers[~np.isnan(answers)].astype(float)
    assert report["question"] == "novelty" and report["all"]["answered"] == len(known)
    assert report["all"]["mean"]["novelty"] == pytest.approx(known.mean())
    assert report["all"]["largest"]["novelty"] == known.max()
    assert report["all"]["in_alarm"] == pytest.approx(report["alarms"]["samples"] / 1500)
    assert [report["alarms"][key] for key in ("level", "threshold", "since")] == list(map(float, states[-1]))
    rows = [line.split(",") for line in lines.splitlines()]
    assert rows[0] == ["row", "novelty", "level", "threshold", "since", "status"] and len(rows) == 1501
    for t in (0, 500, 800, 1499):
        written = [np.float32(cell or "nan") for cell in rows[t + 1][1:5]]
        assert np.array_equal(written, [answers[t], *states[t]], equal_nan=True)
        assert rows[t + 1][5] == GaugeStatus(statuses[t]).name.lower()


def test_a_simulation_without_alarms_or_learning():
    for spec in (gauge_spec(threshold=1.0), clear_spec()):
        run, x = Monitoring(spec), two_regimes(300)
        list(run.run(x, np.zeros((300, 0))))
        report = run.report()
        assert "alarms" not in report and "in_alarm" not in report["all"] and sum(report["statuses"].values()) == 300
        assert prediction_header(spec) == "row,novelty,status\n"
    with pytest.raises(UserError, match=r"^gauge learns without labels, so that it has no errors to compare it by$"):
        Simulation(gauge_spec())
    with pytest.raises(UserError, match=r"^oven learns from labels; simulate it with them$"):
        Monitoring(oven_spec())


def test_a_model_that_keeps_refusing_is_told_of():
    run = Monitoring(gauge_spec())
    list(run.run(np.full((150, 3), 1e3), np.zeros((150, 0))))
    assert run.warning == (
        "the model refused the last 150 samples: input 0 is 1000 and [input] max_abs is 100; raise that limit or scale the "
        "column; on the device, gauge_reset() starts afresh"
    )


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


# ---------------------------------------------------------------------------------------------------------- replay


def logged(spec, x, learned, header="x0,x1,x2,novelty,side0,learned,status,state_hash,call"):
    """What a device writes down that was asked about each row and learned some; half-way it restarts."""
    device, lines = CModel(build(spec), find_compilers()[0]), [header]
    for t, row in enumerate(x):
        cells = [f"{v:.9g}" for v in row]
        cells += [f"{device.ask(q, row[None])[0][0, 0]:.9g}" for q in ("novelty", "side")]
        status = device.prequential(row[None], np.zeros((1, 0), np.float32), predict=False)[1][0] if learned[t] else ""
        lines.append(",".join([*cells, str(int(learned[t])), str(status), f"{int(device.call('hash')):08x}", ""]))
        if t == len(x) // 2:
            lines.append(f",,,,,,{device.call('restart')},{int(device.call('hash')):08x},restart")
    return device, lines


def replayed(spec, lines):
    run = Replay(spec)
    for rows in read_log(io.BytesIO("\n".join(lines).encode()), "log", spec, 17):
        run.run(rows)
    return run


def test_a_log_replays_and_the_first_difference_is_named():
    spec, x = gauge_spec(), two_regimes(120)
    learned = np.random.default_rng(3).random(120) < 0.8
    device, lines = logged(spec, x, learned)
    run = replayed(spec, lines)
    assert run.difference is None, str(run.difference)
    assert run.updates == learned.sum() and run.compared["state_hash"] == 121 and run.compared["novelty"] == 120
    assert run.compared["status"] == learned.sum() + 1 and bytes(run.model.memory.bytes) == bytes(device.memory.bytes)
    # a sample that is not the one that was learned: named by its row, by the answer and by the hash
    at = int(np.flatnonzero(learned)[20])
    cells = lines[1 + at].split(",")
    wrong = [*lines[: 1 + at], ",".join(["1.25", *cells[1:]]), *lines[2 + at :]]
    assert str(replayed(spec, wrong).difference).startswith(f"row {at} (line {at + 2}): novelty is")
    only = [",".join([*line.split(",")[:3], *line.split(",")[5:6], *line.split(",")[7:]]) for line in wrong]
    assert str(replayed(spec, only).difference).startswith(f"row {at} (line {at + 2}): state_hash is")
    # a row that the log says was learned, and was not
    at = int(np.flatnonzero(~learned)[0])
    cells = lines[1 + at].split(",")
    wrong = [*lines[: 1 + at], ",".join([*cells[:5], "1", *cells[6:]]), *lines[2 + at :]]
    assert str(replayed(spec, wrong).difference).startswith(f"row {at} (line {at + 2}): state_hash is")


def test_without_the_column_every_row_was_learned():
    spec, x = gauge_spec(), two_regimes(80)
    device, lines = logged(spec, x, np.ones(80, bool))
    plain = [",".join(c for i, c in enumerate(line.split(",")) if i != 5) for line in lines]
    run = replayed(spec, plain)
    assert run.difference is None and run.updates == 80 and bytes(run.model.memory.bytes) == bytes(device.memory.bytes)
    for bad, says in (
        (",1,2,,,,0,,", "has some inputs and not others"),
        ("1,2,3,,,0,0,,", "has a status, but was not learned; the status is what update returned"),
        ("1,2,3,,,2,,,", "column 'learned' is '2'; it must be 1 if the row was learned, 0 if the model was only asked"),
        (",,,0.5,,,,,restart", "has no inputs, but a label or a prediction"),
        (",,,,,,,,update", "column 'call' is 'update'; it must be reset, restart, or empty"),
    ):
        with pytest.raises(UserError, match=f"log, line 2: {re.escape(says)}"):
            replayed(spec, [lines[0], bad])
    named = gauge_spec(input={"columns": ["a", "learned", "c"], "max_abs": 100.0})
    with pytest.raises(UserError, match="a log's column learned has a fixed meaning"):
        replayed(named, ["a,learned,c", "1,2,3"])
    # of a model that does not learn, the status is the answer's
    spec = clear_spec()
    answers, statuses = CModel(build(spec), find_compilers()[0]).ask("novelty", x)
    lines = ["x0,x1,x2,novelty,status"]
    lines += [",".join(f"{v:.9g}" for v in (*x[t], answers[t, 0], statuses[t])) for t in range(80)]
    run = replayed(spec, lines)
    assert run.difference is None and run.compared == {"status": 80, "novelty": 80}


# ----------------------------------------------------------------------------------------------------- the command

MONITOR = """
name = "monitor"

[input]
columns = ["a", "b"]
max_abs = 20.0

[kernel]
sigma = 1.5

[learning]
rule = "okfeb"
features = 3

[reduction]
n_max = 8
"""
ALARMS = "\n[novelty]\nwarmup = 100\nfalse_alarm_rate = 0.01\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A spec of a monitor, with and without alarms, and 400 rows whose last quarter is elsewhere."""
    monkeypatch.chdir(tmp_path)
    Path("monitor.toml").write_text(MONITOR + ALARMS)
    Path("plain.toml").write_text(MONITOR)
    x = 0.5 * np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    x[300:] += 4
    Path("data.csv").write_text("t,a,b\n" + "".join(f"{t},{a:.9g},{b:.9g}\n" for t, (a, b) in enumerate(x)))
    return x


def test_simulate_tells_of_answers_and_alarms(files, run):
    code, out, err = run("simulate", "monitor.toml", "data.csv", "-o", "out.csv", "--json")
    report, model = json.loads(out), HostModel(load_spec("monitor.toml"))
    answers, states, statuses = model.prequential_alarms(files)
    assert code == 0 and not err and report["question"] == "novelty" and report["rows"] == 400
    assert report["all"]["mean"]["novelty"] == pytest.approx(float(answers.astype(float).mean()))
    assert sum(report["statuses"].values()) == 400 and report["statuses"]["novel"] == (statuses == 4).sum()
    assert any(alarm["first_row"] <= 300 <= alarm["last_row"] for alarm in report["alarms"]["listed"])
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "row,novelty,level,threshold,since,status" and len(lines) == 401
    row, novelty, level, threshold, since, status = lines[301].split(",")
    assert (row, status) == ("300", "novel") and np.float32(novelty) == answers[300]
    assert [np.float32(level), np.float32(threshold), np.float32(since)] == list(states[300])
    code, out, err = run("simulate", "monitor.toml", "data.csv")
    assert code == 0 and not err and re.search(r"novel +\d", out) and "in alarm" in out
    assert re.search(r"^ *\d+ +3\d\d +\d+ +[\d.]+ +[\d.]+ *$", out, re.MULTILINE) and "at the end the level is" in out
    code, out, err = run("simulate", "plain.toml", "data.csv")
    assert code == 0 and not err and "alarm" not in out and re.search(r"novelty +all +[\d.]+ +[\d.]+", out)


@pytest.mark.usefixtures("files")
def test_simulate_draws(run):
    for spec in ("monitor", "plain"):
        code, out, err = run("simulate", f"{spec}.toml", "data.csv", "--plot", "course.html")
        assert code == 0 and not err and out.rstrip().endswith("plot   course.html")
        assert "<svg" in Path("course.html").read_text()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("simulate", "monitor.toml", "data.csv", "--delay", "2"), "monitor learns without labels, so that --delay means"),
        (("simulate", "monitor.toml", "data.csv", "--train-every", "2"), "monitor learns without labels, so that --train-e"),
        (("simulate", "monitor.toml", "data.csv", "--refresh-every", "-1"), "refresh-every is -1; it must be a number of"),
        (("state", "replay", "monitor.toml", "data.csv"), "data.csv: holds nothing to compare with; record state_hash, status or no"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_gets_one_sentence(words, sentence, run):
    code, out, err = run(*words)
    assert code == 2 and not out and err.startswith(f"error: {sentence}") and err.count("\n") == 1
