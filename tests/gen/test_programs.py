"""Programs that only predict, and programs with actions, visits and readings: generated, compiled, run and compared."""

import io
import json
import os
import re
import shutil
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest

from pykernel.cli.app import main
from pykernel.dialect import DIM, OUTPUTS, Index, Real, kernel
from pykernel.dialect.program import Entry, Program
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference, mixed_stream
from pykernel.gen.compilers import compiler, find_compilers
from pykernel.gen.ir import DialectError
from pykernel.gen.project import build, state_hash
from pykernel.host.model import HostModel
from pykernel.host.replay import Replay, callable_entries, read_log
from pykernel.host.samples import Batch
from pykernel.host.simulate import Simulation
from pykernel.host.snapshot import device_memory, load, save, snapshot_bytes
from pykernel.spec.model import load_spec, make_spec
from tests.support.compilers import in_one_build
from tests.support.program_toys import (
    LABELS,
    MadeStatus,
    Oven,
    OvenConfig,
    OvenWork,
    glass_spec,
    oven_drift,
    oven_predict,
    oven_spec,
    oven_train,
    oven_update,
    oven_valid,
)

PRECISIONS = ("float32", "float64")
WRITTEN = re.compile(r"reset|snapshot|SNAPSHOT|STORAGE|wipe|restore|learned")


def assert_equal(report):
    assert report.ok, [(row["compiler"], row["flags"], row["first_difference"]) for row in report.rows]


# ---------------------------------------------------------------------------------------------- what a program is


def test_a_program_says_what_its_entries_are():
    program = oven_spec("two classes").program
    assert program.learns and program.actions == ("train", "refresh", "restart") and program.visits == ("assess",)
    assert list(program.readings) == ["leave_one_out", "drift"] and list(program.questions) == ["predict", "classify"]
    assert program.visits == ("assess",)
    program = glass_spec("class").program
    assert not (program.learns or program.actions or program.visits or program.readings)
    assert list(program.questions) == ["predict", "classify", "probability"]
    assert [glass_spec(kind).program.label_kind for kind in LABELS] == ["real", "reals", "class", "class"]
    assert glass_spec("reals").program.label_array({"OUTPUTS": 3}).shape == (3,)


TWO = (Entry("predict", oven_predict, "question"), Entry("update", oven_update, "update"))


def a_program(**changed):
    whole = {
        "name": "oven", "structs": (Oven, OvenWork), "persistent": (Oven,), "configs": (OvenConfig,),
        "statuses": (MadeStatus,), "entries": TWO,
        "valid": oven_valid,
    }  # fmt: skip
    return Program(**(whole | changed))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"labels": "real"}, "without update, and only then, labels does"),
        ({"entries": (Entry("predict", oven_predict, "question"),)}, "without update, and only then, labels does"),
        ({"entries": (Entry("update", oven_update, "update"),)}, "oven has no predict"),
        ({"statuses": (MadeStatus, IntEnum("More", {"DONE": 1}))}, "DONE is 0 and 1; give it one value"),
        ({"valid": None}, "valid is for what is persistent; give both, or neither"),
        ({"persistent": ()}, "valid is for what is persistent; give both, or neither"),
        ({"persistent": (OvenWork,)}, "what is persistent comes first among its structs"),
        ({"between": ("refresh",)}, "refresh is to be called between samples, but is none of its actions"),
        ({"entries": (*TWO, Entry("drift", oven_drift, "action"))}, "drift is no action: it takes structs and config"),
        ({"entries": (*TWO, Entry("train", oven_train, "reading"))}, r"train is no reading: it takes \(…, an array\)"),
        ({"entries": (*TWO, Entry("train", oven_train, "switch"))}, r"train is no switch: it takes \(…, an Index\)"),
        ({"entries": (*TWO, Entry("drift", oven_drift, "question"))}, "drift is no question: it takes"),
        ({"entries": (*TWO, Entry("train", oven_train, "visit"))}, "train is no visit: it takes what update takes"),
        ({"entries": (*TWO, Entry("learn", oven_update, "update"))}, "learn is no update: the entry that learns"),
        ({"entries": (TWO[0], Entry("update", oven_update, "visit"))}, "update is no visit"),
    ],
)
def test_programs_that_say_two_things_are_refused(changed, says):
    a_program()
    with pytest.raises(TypeError, match=says):
        a_program(**changed)


@kernel
def blind_predict(w: OvenWork, c: OvenConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write an input to y."""
    y[0] = x[0] * c.ridge
    return MadeStatus.DONE


def test_memory_with_nothing_to_compare_is_refused():
    """C has no empty struct, and a self-test of nothing would pass everywhere."""
    kinds = {"structs": (OvenWork,), "persistent": (), "valid": None, "labels": "real"}
    blind = a_program(entries=(Entry("predict", blind_predict, "question"),), **kinds)

    class Blind(type(oven_spec())):
        @property
        def program(self):
            return blind

    with pytest.raises(DialectError, match="keeps nothing in the memory, and C has no empty struct"):
        build(Blind.model_validate(oven_spec().model_dump(exclude_unset=True)))


@kernel
def mute_assess(s: Oven, c: OvenConfig, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Take several labels, and write none."""
    s.wrong[0] += y[0] * c.ridge
    return MadeStatus.DONE


def test_a_question_that_answers_nothing_is_refused():
    entries = (*oven_spec().program.entries, Entry("judge", mute_assess, "question"))
    mute = a_program(entries=entries)

    class Mute(type(oven_spec())):
        @property
        def program(self):
            return mute

    with pytest.raises(DialectError, match="mute_assess is a question, but never writes its answer, y"):
        build(Mute.model_validate(oven_spec().model_dump(exclude_unset=True)))


# ------------------------------------------------------------------------------------------------- the same bytes


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", LABELS)
def test_what_only_predicts_is_equal(kind, precision):
    """Every prediction, answer and status on 20,000 rows, and the memory that they leave."""
    spec = glass_spec(kind, precision)
    report = in_one_build(spec, samples=20_000)
    assert_equal(report)
    assert set(report.statuses) == {"done", "refused_input"} and sum(report.statuses.values()) == 20_000
    reference = Reference(build(spec), None, *mixed_stream(spec, 400))
    asked = ["classify", "probability"] if spec.label.classes else []
    assert reference.questions == asked
    for name in asked:  # on every row
        assert sum(len(each.values) for each in reference.results[0] if each.name == name) == 400
    assert report.figures["state_bytes"] == 0 and report.figures["work_bytes"] == report.figures["ram_bytes"] > 0


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("kind", "samples"), [("real", 12), ("two classes", 40), ("real", 3), ("two classes", 1)])
def test_what_is_trained_is_equal(kind, samples, precision):
    """Samples gathered and replaced, trained between the parts and after a restart, visited and read."""
    spec = oven_spec(kind, precision, samples=samples)
    report = in_one_build(spec, samples=20_000)
    assert_equal(report)
    assert {"done", "replaced", "refused_input", "refused_label"} <= set(report.statuses)
    trained = {"done": 4, "too_few": 1} if samples > 1 else {"too_few": 5}
    assert report.calls["train"] == trained and report.calls["restart"] == {"done": 1}
    assert report.calls["refresh"] == {"done": 5} and sum(report.calls["drift"].values()) == 4
    assert sum(report.calls["assess"].values()) == 4 * 64 and "refused_input" in report.calls["assess"]
    assert ("not_trained" if samples == 1 else "done") in report.calls["assess"]


def test_a_trained_model_starts_from_what_it_learned():
    spec = oven_spec()
    model = HostModel(spec)
    x, y = mixed_stream(spec, 600, seed=1)
    model.update(x[:300], y[:300])
    assert model.train() == MadeStatus.DONE
    report = in_one_build(spec, model.memory, stream=(x[300:], y[300:]))
    assert_equal(report)
    assert report.figures["learned"]
    # nothing is learned by the other kind, so that there is nothing to start from
    spec = glass_spec()
    assert not build(spec, HostModel(spec).memory).figures["learned"]
    assert "src/glass_model.c" not in build(spec, HostModel(spec).memory).files


def test_the_host_has_every_call():
    model, spec = HostModel(oven_spec("two classes")), oven_spec("two classes")
    x, y = np.eye(3), np.array([0, 1, 1])
    assert model.read("leave_one_out")[1] == MadeStatus.TOO_FEW and np.isnan(model.read("leave_one_out")[0]).all()
    assert model.train() == MadeStatus.TOO_FEW and not model.predict(x).any()
    assert list(model.visit("assess", x, y)) == [MadeStatus.NOT_TRAINED] * 3
    assert list(model.update(x, y)) == [MadeStatus.DONE] * 3 and model.train() == MadeStatus.DONE
    assert list(model.visit("assess", x, np.array([0, 5, 1]))) == [0, MadeStatus.REFUSED_LABEL, 0]
    values, status = model.read("leave_one_out")
    expected = np.mean((model.predict(x)[[0, 2]] - [-1, 1]) ** 2)
    assert status == 0 and values[0] == pytest.approx(expected, rel=1e-5)
    glass = HostModel(glass_spec("class"))
    p = glass.probability(x)
    assert p.shape == (3, 3) and p.sum(1) == pytest.approx(1) and (p.argmax(1) == glass.classify(x)).all()
    predictions, statuses = glass.prequential(
        np.array([[0, 0, 0], [np.nan, 0, 0]]), np.zeros(2, int), question="classify"
    )
    assert list(statuses) == [0, MadeStatus.REFUSED_INPUT] and predictions[1] == -1
    for call, says in (
        (lambda: glass.update(x, y), "glass does not learn: its weights are fixed"),
        (glass.train, "glass is not trained"),
        (lambda: glass.visit("assess", x, y), "glass has no assess"),
        (lambda: glass.read("leave_one_out"), "glass has no leave_one_out"),
        (lambda: HostModel(glass_spec()).probability(x), "glass gives no probabilities"),
    ):
        with pytest.raises(UserError, match=says):
            call()
    assert spec.program.state_bytes(model.memory.layout) == spec.program.hashed_bytes(model.memory.layout)
    layout = glass.memory.layout
    assert glass.spec.program.state_bytes(layout) == 0 and glass.spec.program.hashed_bytes(layout) == layout.nbytes


# -------------------------------------------------------------------------------------------- the generated project


def test_a_model_that_learns_nothing_speaks_of_no_state(tmp_path):
    """Neither functions nor files nor words of it; the self-test's answer is the CRC of all memory."""
    spec = glass_spec("class")
    files = build(spec).files
    for path in ("src/glass.h", "src/glass.c", "VALIDITY.md", "CMakeLists.txt", "zephyr/Kconfig", "library.json"):
        found = set(WRITTEN.findall(files[path]))
        assert found <= {"learned"}, (path, found)  # "that was learned elsewhere"
    header = files["src/glass.h"]
    assert "#define GLASS_STATE_BYTES 0u /* nothing is learned on the device */" in header
    assert "a linear classifier of 3 classes that was learned elsewhere" in header and "update" not in header
    assert "The test predicts 80 made-up samples" in header and "GLASS_SNAPSHOT" not in header
    assert not [path for path in files if "snapshot" in path or "_model" in path]
    assert "learns" not in files["VALIDITY.md"] and "what the self-test must find" in files["VALIDITY.md"]
    device = CModel(build(spec), find_compilers()[0])
    model = HostModel(spec, build(spec).drop)
    x, _ = mixed_stream(spec, 50)
    for question in ("predict", "probability"):
        device.ask(question, x), model.ask(question, x)
        assert int(device.call("hash")) == state_hash(spec, model.memory)
    assert device.call("selftest") == 0 and not any(device.memory.bytes)
    header = build(oven_spec()).files["src/oven.h"]
    assert "a linear regression that is trained on the device (nlms)" in header and "oven_store(" in header


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_every_prediction_of_the_self_test_counts():
    """A wrong weight, center or constant: whatever a prediction reads shows in the self-test."""
    spec = glass_spec("reals")
    project = build(spec)
    code = project.files["src/glass.c"]
    tables = re.findall(r"glass_(?:weight|center)\[[^=]*= \{\n(.*?)\n\};", code, re.DOTALL)
    numbers = sorted({n for table in tables for n in re.findall(r"-?[\d.]+(?:e-?\d+)?f", table)} - {"0.0f"})
    assert len(numbers) >= 10
    for number in [*numbers, "1.0f + glass_absolute(d)"]:
        changed = number.replace("f", "001f", 1) if number in numbers else "1.01f + glass_absolute(d)"
        if "e" in number:
            continue
        device = CModel(project, compiler("gcc"), ("-O0",), patch=lambda t, a=number, b=changed: t.replace(a, b))
        assert device.call("selftest") == (-100), number


def test_gcc_is_not_misled_by_few_places(tmp_path):
    """The warnings are switched off where an array has at most 4 places, and only there."""
    pragma = "In arrays this short, GCC warns that a loop could run beyond"
    for samples, few in ((1, True), (4, True), (5, False)):
        code = build(oven_spec(samples=samples)).files["src/oven.c"]
        assert (pragma in code) == few and (f"{pragma} OVEN_L_MAX." in code) == few
    assert pragma not in build(glass_spec()).files["src/glass.c"]


# ------------------------------------------------------------------------------------------------- the checks bite


def first_difference(spec, old, new, stream, passes=True):
    reference = Reference(build(spec), None, *stream)
    assert old in "".join(reference.project.files[f"src/{spec.name}{part}"] for part in (".c",))
    row = reference.compare(find_compilers()[0], "-O1", patch=lambda text: text.replace(old, new))
    assert not row["equal"] and (row["selftest"] == "passed") == passes
    return row["first_difference"]


def test_a_changed_answer_and_a_changed_refusal_are_caught():
    """What no prediction shows: a probability, a class among equals, a status, memory that a refusal leaves."""
    spec = glass_spec("class")
    x, y = mixed_stream(spec, 200)
    x[-1] = np.nan
    said = first_difference(spec, "GLASS_SHARPNESS 3.0f", "GLASS_SHARPNESS 3.00001f", (x, y), passes=False)
    assert re.fullmatch(r"probability of row \d+: \[.*\] on the host, \[.*\] in C", said)
    same = np.repeat(np.array([[0, 0.125, 0.25]], np.float32), 200, 0)  # the center: all functions are zero
    said = first_difference(spec, "> s->value[best]", ">= s->value[best]", (same, y))
    assert said == "classify of row 0: [0] on the host, [2] in C"
    code = build(spec).files["src/glass.c"]
    predict = re.search(r"int32_t glass_predict\(.*?\n\}\n", code, re.DOTALL)[0]
    other = predict.replace("return GLASS_REFUSED_INPUT", "return GLASS_REFUSED_LABEL")
    said = first_difference(spec, predict, other, (x, y), passes=False)
    assert re.fullmatch(r"prediction \d+: status -1 on the host, -2 in C", said)
    writes = predict.replace(
        "        return GLASS_REFUSED_INPUT", "        s->value[0] = 0.5f;\n        return GLASS_REFUSED_INPUT"
    )
    said = first_difference(spec, predict, writes, (x, y), passes=False)
    assert re.fullmatch(r"prediction \d+: value\[0\] is .* on the host, .*0\.5.* in C", said)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        # a training that fails and does not leave the model as it was
        ("        return OVEN_TOO_FEW;\n    }\n    OVEN_LOOP(", "        s->slope[0] = 1.0f;\n        return OVEN_TOO_FEW;\n    }\n    OVEN_LOOP(",
         r"train after refresh after restart after update 99: slope\[0\] is"),
        ("s->count < 2", "s->count < 0", r"train after refresh after restart after update 99: status"),
        ("float square = OVEN_RIDGE", "float square = 2.0f * OVEN_RIDGE", r"train after update 49: slope\[0\] is"),
        ("s->wrong += error * error", "s->wrong += error", r"assess of row \d+ after update 49: wrong is"),
        ("if (s->fresh == 0)", "if (s->fresh == 1)", r"assess of row \d+ after update 49: status"),
        ("s->wrong / (float)s->assessed", "s->wrong / (float)(s->assessed + 1)", r"leave_one_out after update 49: \["),
        ("    s->next = 0;\n", "    s->next = s->next;\n", r"restart after update 99: next is"),
    ],
)  # fmt: skip
def test_a_changed_action_visit_or_reading_is_caught(old, new, says):
    """Whatever is not an update: each by what it does wrong, at the first time that it shows."""
    spec = oven_spec()
    x, y = mixed_stream(spec, 200)
    reference = Reference(build(spec), None, x, y)
    code = reference.project.files["src/oven.c"]
    assert old in code, code
    row = reference.compare(find_compilers()[0], "-O1", patch=lambda text: text.replace(old, new, 1))
    assert not row["equal"] and re.match(says, row["first_difference"]), row["first_difference"]


# --------------------------------------------------------------------------------------------- emulated targets


@pytest.mark.in_turn
@pytest.mark.parametrize("emulator", ["unicorn", "qemu"])
def test_a_change_is_caught_on_a_target_too(emulator):
    pytest.importorskip("unicorn")
    from pykernel.targets.build import model_image
    from pykernel.targets.check import choose
    from pykernel.targets.process_runner import ProcessModel
    from pykernel.targets.unicorn_runner import UnicornModel

    try:
        ((target, chain, _),) = choose(["cortex-m4f"], None, emulator)
    except UserError as missing:
        pytest.skip(str(missing))
    for spec, old, new, says in (
        (glass_spec("class"), "GLASS_SHARPNESS 3.0f", "GLASS_SHARPNESS 3.01f", "probability of row 0"),
        (oven_spec(), "s->wrong += error * error", "s->wrong += error", "assess of row"),
        (oven_spec(), "*out = s->power - total", "*out = total + 1.0f", "drift after update"),
    ):
        reference = Reference(build(spec), None, *mixed_stream(spec, 40))
        how = {"patch": lambda text, old=old, new=new: text.replace(old, new)}
        if emulator == "unicorn":
            model = UnicornModel(reference.project, model_image(reference.project, target, chain, **how))
        else:
            model = ProcessModel(reference.project, target, chain, **how)
        row = reference.verdict(model)
        assert not row["equal"] and row["first_difference"].startswith(says), row["first_difference"]


# ------------------------------------------------------------------------------- simulation, replay, snapshots


def test_a_simulation_of_what_only_predicts_scores():
    spec = glass_spec("class")
    x, y = mixed_stream(spec, 500)
    run = Simulation(spec)
    steps = list(run.run(x, y))
    model = HostModel(spec)
    labels, statuses = model.prequential(x, y, question="classify")
    valid = (y >= 0) & (y < 3)
    valid[: np.argmax(valid) + 1] = False  # where no label is known, nothing is scored
    valid &= labels >= 0
    report = run.report()
    assert report["all"]["scored"] == valid.sum()
    assert report["all"]["error_rate"]["model"] == pytest.approx(np.mean(labels[valid] != y[valid]))
    assert report["statuses"] == {"done": (statuses == 0).sum(), "refused_input": (statuses < 0).sum()}
    assert report["warnings"] == [] and report["waiting"] == 0 and "trainings" not in report
    assert steps[0].learnt.all() and (steps[0].statuses == statuses).all()
    run.finish()
    for how, says in (
        ({"delay": 3}, "rule nlms takes no labels, so delay means nothing; leave delay out"),
        ({"train_every": 3}, "rule nlms has no train on the device"),
        ({"refresh_every": 3}, "has nothing to refresh"),
    ):
        with pytest.raises(UserError, match=says):
            Simulation(spec, **how)


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("batch", [13, 1000])
def test_a_simulation_trains_after_every_so_many_labels(delay, batch):
    """However the rows come in batches: after the 40th, 80th, ... label that was learned, and after the last."""
    spec = oven_spec()
    x, y = mixed_stream(spec, 300, seed=2)
    y = y.astype(np.float64)
    y[::11] = np.nan  # no label yet
    run = Simulation(spec, delay, train_every=40)
    batches = [Batch(x[i : i + batch], y[i : i + batch], 0) for i in range(0, len(x), batch)]
    predictions = [steps.predictions for b in batches for steps in run.run(b.x, b.y)]
    run.finish(batches)
    model, expected, labels = HostModel(spec), [], 0
    trained = []
    for t in range(len(x)):
        expected.append(model.predict(x[t : t + 1]))
        i = t - delay
        if i >= 0 and not np.isnan(y[i]):
            model.update(x[i : i + 1], y[i : i + 1])
            labels += 1
            if labels % 40 == 0:
                trained.append(model.train())
    trained.append(model.train())
    assert np.concatenate(predictions).tobytes() == np.concatenate(expected).tobytes()
    known = ~np.isnan(y[: len(x) - delay])
    visited = model.visit("assess", x[: len(x) - delay][known], y[: len(x) - delay][known])
    assert bytes(run.model.memory.bytes) == bytes(model.memory.bytes)
    report, (values, _) = run.report(), model.read("leave_one_out")
    assert report["trainings"] == {"done": len(trained)} and len(trained) == labels // 40 + 1
    assert report["leave_one_out"] == {"status": "done", "mse": float(values[0]), "samples": int((visited >= 0).sum())}
    assert report["warnings"] == []


def test_a_model_that_is_never_trained_is_told():
    spec = oven_spec("two classes")
    x, y = mixed_stream(spec, 100)
    run = Simulation(spec)
    list(run.run(x, y))
    run.finish()
    assert "nothing trained the model" in run.warning and "oven_train()" in run.warning
    assert "leave_one_out" not in run.report() and not run.model.predict(x[:5]).any()
    run = Simulation(oven_spec("two classes", samples=1), train_every=10)
    list(run.run(x, y))
    run.finish()
    assert run.warning.startswith("no training was done (too few)")
    with pytest.raises(UserError, match="train-every is -1"):
        Simulation(spec, train_every=-1)


def replayed(spec, lines, name="log"):
    run = Replay(spec)
    for rows in read_log(io.BytesIO("\n".join(lines).encode()), name, spec):
        run.run(rows)
    return run


def test_a_log_of_a_trained_model_replays():
    """Trainings, visits and restarts are calls; a status in their rows is what they returned."""
    spec = oven_spec("two classes")
    assert callable_entries(spec) == {"reset": 0, "train": 0, "assess": 0, "refresh": 0, "restart": 0}
    device = CModel(build(spec), find_compilers()[0])
    x, y = mixed_stream(spec, 60)
    lines = ["x0,x1,x2,label,prediction,status,state_hash,call"]

    def row(sample, label, prediction, status, call=""):
        cells = [*(f"{v:.9g}" for v in sample), label, prediction, status, f"{int(device.call('hash')):08x}", call]
        lines.append(",".join(map(str, cells)))

    def call(name):
        status = device.call(name)
        lines.append(f",,,,,{status},{int(device.call('hash')):08x},{name}")

    call("train")
    for t in range(40):
        p, s = device.prequential(x[t : t + 1], y[t : t + 1])
        row(x[t], y[t], f"{p[0]:.9g}", s[0])
    call("train")
    for t in range(40, 60):
        row(x[t], y[t], "", device.visit("assess", x[t : t + 1], y[t : t + 1])[0], "assess")
    call("restart")
    call("train")
    run = replayed(spec, lines)
    assert run.difference is None, run.difference
    assert run.compared["status"] == 64 and run.compared["prediction"] == 40 and run.updates == 40
    assert bytes(run.model.memory.bytes) == bytes(device.memory.bytes)
    for old, new, says in (
        (
            lines[1],
            lines[1].replace("-3", "0"),
            r"row 0 \(line 2\): status is 0 \(done\) on the device, -3 \(too_few\)",
        ),
        (lines[50], lines[50].replace("assess", ""), r"row 49 .*: status is"),
    ):
        assert old != new
        run = replayed(spec, [new if line == old else line for line in lines])
        assert run.difference and re.match(says, str(run.difference)), str(run.difference)
    for bad, says in (
        (",,,,,,,assess", "has a call that takes a sample; give the inputs and the label"),
        (",,,,,0,,reset", "has a status but no label"),
        (",,,,,,,predict", "column 'call' is 'predict'; it must be reset, train, assess, refresh, restart, or empty"),
    ):
        with pytest.raises(UserError, match=f"log, line 2: {re.escape(says)}"):
            replayed(spec, [lines[0], bad])


def test_a_log_of_predictions_replays():
    spec = glass_spec("class", input={"columns": ["a", "b", "c"], "max_abs": 100.0})
    device = CModel(build(spec), find_compilers()[0])
    x, _ = mixed_stream(spec, 50)
    values, statuses = device.ask("predict", x)
    labels, _ = device.ask("classify", x)
    p, _ = device.ask("probability", x)
    lines = ["a,b,c,predicted_class,prediction1,probability2,status"]
    for t in range(50):
        lines.append(",".join(f"{v:.9g}" for v in [*x[t], labels[t, 0], values[t, 1], p[t, 2], statuses[t]]))
    run = replayed(spec, lines)
    assert run.difference is None and run.compared["predicted_class"] == run.compared["status"] == 50
    assert run.report()["updates"] == 0 and run.report()["state_hash"] is None
    lines[7] = re.sub(r"^([^,]*),", r"0.75,", lines[7])
    assert str(replayed(spec, lines).difference).startswith("row 6 (line 8): prediction1 is")
    with pytest.raises(UserError, match="has the column state_hash, but glass learns nothing"):
        replayed(spec, ["a,b,c,state_hash", "1,2,3,00000000"])
    with pytest.raises(UserError, match="glass learns nothing on the device, so that there is no state to compare"):
        device_memory(spec, b"1234", "end.bin")


def test_there_are_no_snapshots_of_nothing():
    model = HostModel(glass_spec())
    for call in (lambda: save(model), lambda: load(model, b"PKSN"), lambda: snapshot_bytes(model.spec)):
        with pytest.raises(UserError, match="glass learns nothing on the device, so that there are no snapshots of it"):
            call()


# --------------------------------------------------------------------------------------------------- the command

DATA = {"input": {"columns": ["a", "b"], "max_abs": 100.0}, "kernel": {"sigma": 1.0}}
CLASSES = {"column": "c", "classes": ["low", "high"]}
VECTORS = [[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [0.5, -1.0]]
MODELS = {
    "krr": {"label": {"column": "y", "max_abs": 10.0}, "learning": {"rule": "krr", "samples": 24}},
    "ls-svm": {"label": CLASSES, "learning": {"rule": "ls-svm", "samples": 24}},
    "kfd": {"label": CLASSES, "learning": {"rule": "kfd"}, "expansion": {"vectors": VECTORS}},
    "frozen": {
        "label": CLASSES,
        "learning": {"rule": "frozen"},
        "expansion": {"vectors": VECTORS, "weights": [[0.3], [1.0], [0.5], [-0.7]], "bias": [-0.2]},
    },
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A spec of each rule, data, and a log of it: 120 rows."""
    monkeypatch.chdir(tmp_path)
    for rule, content in MODELS.items():
        spec = make_spec({"name": rule.replace("-", "")} | DATA | content)
        Path(f"{rule}.toml").write_text(spec.to_toml())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    y = np.sin(x.sum(1))
    rows = [f"{a:.9g},{b:.9g},{v:.9g},{'high' if v > 0 else 'low'}" for (a, b), v in zip(x, y, strict=True)]
    Path("data.csv").write_text("\n".join(["a,b,y,c", *rows]) + "\n")
    return x, y


def command(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    done = capsys.readouterr()
    return stopped.value.code, done.out, done.err


def test_simulate_trains_or_only_scores(files, capsys):
    x, y = files
    code, out, err = command(capsys, "simulate", "krr.toml", "data.csv", "--train-every", "24", "--json")
    report = json.loads(out)
    model = HostModel(load_spec("krr.toml"))
    model.update(x, y)
    assert code == 0 and model.train() == 0 and report["trainings"] == {"done": 5}
    assert report["leave_one_out"]["mse"] == model.read("leave_one_out")[0][0]
    assert report["second_half"]["mae"]["model"] < 0.5 * report["second_half"]["mae"]["running mean"]
    code, out, err = command(capsys, "simulate", "krr.toml", "data.csv")
    assert code == 0 and err.startswith("warning: nothing trained the model") and "leave-one-out" not in out
    # the discriminant's own estimate takes the data once more: of a file, not of standard input
    code, out, _ = command(capsys, "simulate", "kfd.toml", "data.csv", "--train-every", "50", "--delay", "10", "--json")
    report = json.loads(out)
    model = HostModel(load_spec("kfd.toml"))
    model.update(x[:110], (y > 0).astype(int)[:110])
    assert model.train() == 0 and (model.visit("assess", x[:110], (y > 0).astype(int)[:110]) == 0).all()
    values, _ = model.read("leave_one_out")
    told = {"status": "done", "mse": float(values[0]), "error_rate": float(values[1]), "samples": 110}
    assert code == 0 and report["leave_one_out"] == told and report["trainings"] == {"done": 3}
    code, out, err = command(capsys, "simulate", "kfd.toml", "data.csv", "--train-every", "50")
    assert code == 0 and "trainings       done 3" in out and not err
    assert re.search(r"leave-one-out   RMSE [\d.]+, [\d.]+ % of the samples with a wrong class", out)
    if Path("/dev/fd").exists():  # as a shell's <(...): it is read once
        reads, writes = os.pipe()
        os.write(writes, Path("data.csv").read_bytes())
        os.close(writes)
        code, out, err = command(capsys, "simulate", "kfd.toml", f"/dev/fd/{reads}", "--train-every", "50")
        os.close(reads)
        assert code == 0 and "trainings       done 3" in out and not err
        assert "the samples must be read again after the last training; give the data as a file" in out
    code, out, err = command(capsys, "simulate", "frozen.toml", "data.csv", "-o", "out.csv")
    assert code == 0 and not err and "trainings" not in out
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "row,prediction,label,status" and len(lines) == 121
    assert all(line.endswith(",done") for line in lines[1:])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("simulate", "frozen.toml", "data.csv", "--delay", "1"),
            "rule frozen takes no labels, so delay means",
        ),
        (
            ("simulate", "frozen.toml", "data.csv", "--train-every", "9"),
            "rule frozen has no train on the device",
        ),
        (("simulate", "krr.toml", "data.csv", "--refresh-every", "9"), "rule krr has nothing to refresh"),
        (
            ("state", "show", "frozen.toml", "data.csv"),
            "frozen learns nothing on the device, so that there are no snap",
        ),
        (
            ("state", "replay", "frozen.toml", "data.csv"),
            "data.csv: holds nothing to compare with; record status or prediction\n",
        ),
        (
            ("state", "replay", "frozen.toml", "data.csv", "--end", "data.csv"),
            "frozen learns nothing on the device, so that",
        ),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(words, sentence, files, capsys):
    code, out, err = command(capsys, *words)
    assert code == 2 and not out and err.startswith(f"error: {sentence}") and err.count("\n") == 1


@pytest.mark.in_turn(4)
@pytest.mark.usefixtures("one_build")
@pytest.mark.parametrize("rule", MODELS)
def test_generate_and_check(rule, files, capsys):
    name = rule.replace("-", "")
    code, out, _ = command(capsys, "generate", f"{rule}.toml", "-o", "out", "--json")
    made = json.loads(out)
    assert code == 0 and (f"out/src/{name}_snapshot.c" in made["files"]) == (rule != "frozen")
    code, out, _ = command(capsys, "check", f"{rule}.toml", "--samples", "1500", "--record", "out", "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"] and report["sizes"]["config_hash"] == made["sizes"]["config_hash"]
    text = Path("out/VALIDITY.md").read_text()
    assert (
        text.count("| 1,500 | yes (llvm) |") == len(report["check"]) == 1
        and f"`{report['sizes']['state_hash']}`" in text
    )
    pytest.importorskip("unicorn")
    code, out, _ = command(capsys, "check", f"{rule}.toml", "--samples", "60", "--target", "cortex-m4f")
    calls = re.findall(r"cortex-m4f +(\w+) +\d", out)
    trained = ["train"] + ["assess"] * (rule == "kfd") + ["restart"]
    assert code == 0 and set(calls) >= {"predict", *(["update", *trained] if rule != "frozen" else [])}
