"""Replay: a log written by the documentation's C, done again on the host; then each kind of damage, and its row."""

import io
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.gen.project import build, generate
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.host.replay import Replay, _digits, _number, answer_columns, callable_entries, read_log
from pykernel.spec.model import load_spec, make_spec
from pykernel.spec.sections import Input
from pykernel.workflows.requests import TableOf
from pykernel.workflows.table import run as table
from tests.support import DOCS
from tests.support.specs import named
from tests.support.toys import toy_spec

ROWS = 600


def spec_of(technique="mklms", precision="float32", **sections):
    content = {
        "name": "flow",
        "precision": precision,
        "input": {"columns": ["a", "b"], "max_abs": 10.0},
        "label": {"column": "y", "max_abs": 10.0},
        "kernel": {"sigma": 1.0},
        "reduction": {"technique": technique, "n_max": 8},
    }
    return make_spec(named(content | sections))


def run(log, spec=None, batch=64, **how):
    spec = spec or spec_of()
    replay = Replay(spec, **how)
    for rows in read_log(io.BytesIO(log.encode()), "log.csv", spec, batch):
        replay.run(rows)
    return replay


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The log of a program around the documentation's snippet, on samples of all kinds; and the state at its end."""
    folder = tmp_path_factory.mktemp("device")
    spec = spec_of()
    generate(spec, folder / "flow", also=("recorder",))
    (folder / "flow.toml").write_text(spec.to_toml())
    snippet = re.search(r"^```c\n(.*?)^```", (DOCS / "guide/replay.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    x, y = mixed_stream(spec, ROWS, seed=3)
    np.column_stack([x, y]).astype("<f4").tofile(folder / "samples")
    # %-specifiers for 32 bits are the device's business; here they are right
    (folder / "firmware.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\nstatic void uart_write(const uint8_t *bytes, uint32_t count);\n"
        + snippet
        + """
        static void uart_write(const uint8_t *bytes, uint32_t count)
        {
            (void)fwrite(bytes, 1, count, stdout);
        }
        int main(void)
        {
            float row[FLOW_DIM + 1];
            begin();
            for (uint32_t t = 0; fread(row, sizeof row, 1, stdin) == 1; t++) {
                step(t, row, row[FLOW_DIM]);
            }
            FILE *end = fopen("end.bin", "wb");
            return end == NULL || fwrite(&model, FLOW_STATE_BYTES, 1, end) != 1 || fclose(end) != 0;
        }
        """.replace("int main", "int main(void);\nint main", 1)
    )
    sources = [folder / "firmware.c", *(folder / "flow" / "src" / f"flow{part}.c" for part in ("", "_log"))]
    strict = [f"-I{folder / 'flow' / 'src'}", "-Wno-missing-prototypes"]
    compile_c(find_compilers()[0], sources, folder / "run", strict, ())
    with (folder / "samples").open("rb") as samples:
        log = subprocess.run([folder / "run"], stdin=samples, stdout=subprocess.PIPE, check=True, cwd=folder).stdout
    (folder / "log.bin").write_bytes(log)
    table(TableOf(str(folder / "log.bin"), output=str(folder / "first.csv")))
    rows = [line.split(",") for line in (folder / "first.csv").read_text().splitlines()]
    kept = [rows[0].index(name) for name in ("a", "b", "y", "status", "state_hash")]
    (folder / "log.csv").write_text(text_of([[row[at] for at in kept] for row in rows]))
    return folder


@pytest.fixture
def log(recorded):
    return (recorded / "log.csv").read_text()


def lines_of(log):
    return [line.split(",") for line in log.splitlines()]


def text_of(lines):
    return "".join(",".join(line) + "\n" for line in lines)


def test_the_documented_c_writes_a_log_that_replays(recorded, log, capsys):
    replay = run(log)
    assert replay.difference is None and replay.rows == replay.updates == replay.compared["status"] == ROWS
    assert replay.compared["state_hash"] == ROWS // 100 and replay.exact
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "state",
                "replay",
                *(str(recorded / f) for f in ("flow.toml", "log.csv")),
                "--end",
                str(recorded / "end.bin"),
                "--json",
            ]
        )
    report = json.loads(capsys.readouterr().out)
    assert stopped.value.code == 0 and report["ok"] and report["fields"] == []
    # the stream has what the format must survive: NaN, infinities and subnormals, each refused or not
    assert {"nan", "-inf", "inf"} <= {cell for line in lines_of(log) for cell in line}
    assert len({line[3] for line in lines_of(log)[1:]}) >= 5


@pytest.mark.in_turn
@pytest.mark.parametrize("batch", [1, 7, 4096])
def test_any_split_into_batches_gives_the_same(log, batch):
    replay = run(log, batch=batch)
    assert replay.difference is None and replay.hash == run(log).hash


def learned_row(lines, start, status):
    """The first row from ``start`` on with that status."""
    return next(t for t in range(start, ROWS) if lines[t + 1][3] == str(int(status)))


def test_each_kind_of_damage_names_its_row(log):
    lines, status = lines_of(log), spec_of().program.status
    # a changed hash: that row, and the rows since the last equal one
    broken = [list(line) for line in lines]
    broken[300][4] = "0badc0de"
    found = run(text_of(broken)).difference
    assert (found.kind, found.row, found.line, found.after) == ("state_hash", 299, 301, 199)
    assert found.device == "0badc0de" and "the states may differ from row 200 on" in str(found)
    # a changed status
    broken = [list(line) for line in lines]
    at = learned_row(lines, 250, status.REPLACED)
    broken[at + 1][3] = str(int(status.ADDED))
    found = run(text_of(broken)).difference
    assert (found.kind, found.row, found.device, found.host) == (
        "status",
        at,
        f"{int(status.ADDED)} (added)",
        f"{int(status.REPLACED)} (replaced)",
    )
    # a label that is refused: its own row
    broken = [list(line) for line in lines]
    broken[at + 1][2] = "11"
    found = run(text_of(broken)).difference
    assert (found.kind, found.row) == ("status", at) and "refused_label" in found.host


@pytest.mark.parametrize(("column", "change"), [(0, 2.0**-23), (2, 0.01)], ids=["an input's last bit", "a label"])
def test_a_changed_input_or_label_is_found_between_two_hashes(log, column, change):
    lines = lines_of(log)
    replaced = str(int(spec_of().program.status.REPLACED))
    at = max(t for t in range(400) if lines[t + 1][3] == replaced)  # near a hash: what is forgotten leaves no trace
    value = np.float32(_number(lines[at + 1][column]))
    lines[at + 1][column] = float(value * np.float32(1 + change)).hex()
    found = run(text_of(lines)).difference
    # by the next hash, unless a status turned out differently before; and never before the damage
    assert found.after == 299 and at <= found.row <= 399


def dense(spec, x, y):
    """A log of a host model with everything in each row."""
    model, lines = HostModel(spec, build(spec).drop), ["a,b,y,prediction,status,state_hash"]
    replay = Replay(spec)
    replay.model = model
    for row, label in zip(x, y, strict=True):
        (p,), (s,) = model.prequential(row[None], label[None])
        lines.append(f"{row[0]:.17g},{row[1]:.17g},{label:.17g},{p:.17g},{s},{replay.hash:08x}")
    return "\n".join(lines) + "\n"


@pytest.mark.in_turn(36)
@pytest.mark.parametrize("technique", ["nt", "fklms", "mklms"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_dense_hashes_name_the_very_row(technique, precision):
    spec = spec_of(technique, precision)
    log = dense(spec, *mixed_stream(spec, 200))
    assert run(log, spec).difference is None
    lines = lines_of(log)
    for at in (0, 1, 77, 199):
        for column, kind in ((5, "state_hash"), (3, "prediction")):
            broken = [list(line) for line in lines]
            cell = broken[at + 1][column]
            broken[at + 1][column] = f"{int(cell, 16) ^ 1:08x}" if kind == "state_hash" else "0.125"
            found = run(text_of(broken), spec).difference
            assert (found.kind, found.row, found.line) == (kind, at, at + 2)
            if kind == "state_hash":
                assert found.after == at - 1 and "one of" not in str(found)


def labelled(kind, **sections):
    """A spec for several labels or for classes, with names."""
    label = {"columns": ["p", "q", "r"]} if kind == "reals" else {"column": "state", "classes": ["low", "mid", "high"]}
    return toy_spec(kind, input={"columns": ["a", "b"], "max_abs": 10.0}, label=label | {"max_abs": 10.0}, **sections)


def recorded_by_c(spec, x, y, questions=("predict",)):
    """A log of the generated C: inputs, labels, answers, status, hash; labels as the device has them."""
    device = CModel(build(spec), find_compilers()[0])
    columns = [c for c, (q, _) in answer_columns(spec).items() if q in questions]
    labels = list(spec.label.columns or ("state",))
    lines = [",".join([*spec.input.columns, *labels, *columns, "status", "state_hash"])]
    for t in range(len(x)):
        row = slice(t, t + 1)
        answers = {q: device.ask(q, x[row])[0][0] for q in questions}
        cells = [answers[q][i] for q, i in (answer_columns(spec)[c] for c in columns)]
        (status,) = device.prequential(x[row], y[row], predict=False)[1]
        numbers = [*x[t], *np.atleast_1d(y[t]), *cells]
        text = [str(int(v)) if v.dtype.kind == "i" else f"{v:.9g}" for v in numbers]
        lines.append(",".join([*text, str(status), f"{device.call('hash'):08x}"]))
    return "\n".join(lines) + "\n", device


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("kind", ["reals", "class"])
@pytest.mark.parametrize("every", [False, True])
def test_logs_of_several_labels_and_of_classes_replay(kind, every):
    """What the C recorded, with one question or with all of them; then each kind of damage in its own row."""
    spec = labelled(kind)
    classes = ["classify"] if kind == "class" else []
    questions = ["predict", *classes, "novelty"] if every else [*classes, "predict"][:1]
    log, device = recorded_by_c(spec, *mixed_stream(spec, 150, seed=2), questions)
    replay = run(log, spec)
    assert replay.difference is None and replay.hash == device.call("hash") and replay.exact
    answered = [c for c, (q, _) in answer_columns(spec).items() if q in questions]
    assert replay.compared == {c: 0 for c in replay.compared} | dict.fromkeys([*answered, "status", "state_hash"], 150)
    lines = lines_of(log)
    at = next(t for t in range(90, 150) if lines[t + 1][-2] == "1")
    for column in answered:
        broken = [list(line) for line in lines]
        i = lines[0].index(column)
        broken[at + 1][i] = "7" if column == "predicted_class" else "0.125"
        found = run(text_of(broken), spec).difference
        assert (found.kind, found.row, found.line) == (column, at, at + 2)
        assert column != "predicted_class" or (
            found.device == "7" and re.fullmatch(r"[012] \((low|mid|high)\)", found.host)
        )
    # a label that differs shows in the state
    broken = [list(line) for line in lines]
    i = lines[0].index("q" if kind == "reals" else "state")
    broken[at + 1][i] = str((int(lines[at + 1][i]) + 1) % 3) if kind == "class" else "9.5"
    found = run(text_of(broken), spec).difference
    assert (found.kind, found.row, found.after) == ("state_hash", at, at - 1)


def test_a_class_is_logged_by_its_position_or_by_name():
    spec = labelled("class")
    log, _ = recorded_by_c(spec, *mixed_stream(spec, 60), ["classify"])
    names = {"0": "low", "1": "mid", "2": "high"}
    lines = [[*line[:2], *(names.get(cell, cell) for cell in line[2:4]), *line[4:]] for line in lines_of(log)]
    assert run(text_of(lines), spec).difference is None and lines[1][2] in names.values()
    # where names are numbers, numbers are positions
    spec = labelled("class")
    spec = type(spec).model_validate(spec.model_dump(exclude_unset=True) | {"label": {"classes": ["2", "1", "0"]}})
    assert run(log.replace("state,", "label,", 1), spec).difference is None


@pytest.mark.parametrize(
    ("kind", "log", "says"),
    [
        ("reals", "a,b,p,q,r,status\n1,2,3,,5,1\n", "line 2: has some labels and not others; write nan"),
        ("reals", "a,b,p,r,status\n1,2,3,5,1\n", "names no column 'q'"),
        ("reals", "x0,x1,label0,label1,status\n1,2,3,5,1\n", "names no column 'label2'"),
        (
            "class",
            "a,b,state,status\n1,2,mod,1\n",
            "line 2: column 'state' is 'mod'; it must be a class, as an index",
        ),
        ("class", "a,b,state,status\n1,2,99999999999,1\n", "it must be a class"),
        ("class", "a,b,state,predicted_class\n1,2,1,1.5\n", "column 'predicted_class' is '1.5'; it must be a class"),
        ("class", "a,b,predicted_class,call\n,,1,reset\n", "line 2: has a label or a prediction but no inputs"),
    ],
)
def test_bad_logs_of_other_labels_are_one_sentence(kind, log, says):
    with pytest.raises(UserError, match=re.escape(says)) as error:
        run(log, labelled(kind))
    assert "\n" not in str(error.value)


def test_a_column_of_the_specs_own_is_not_an_answer():
    spec = toy_spec("real", input={"columns": ["a", "novelty"]}, label={"column": "y"})
    assert set(answer_columns(spec)) == {"prediction"}
    with pytest.raises(UserError, match="column prediction1 has a fixed meaning"):
        run("a\n", labelled("reals", name="m").model_copy(update={"input": Input(columns=("a", "prediction1"))}))


def test_a_lost_and_a_doubled_row_are_found(log):
    lines = lines_of(log)
    at = learned_row(lines, 420, spec_of().program.status.REPLACED)
    for changed in (lines[: at + 1] + lines[at + 2 :], [*lines[: at + 2], *lines[at + 1 :]]):
        found = run(text_of(changed)).difference
        assert 399 <= found.after < at <= found.row <= 500


def test_rows_without_labels_are_predicted_only_and_calls_are_made():
    spec = spec_of()
    x, y = mixed_stream(spec, 60, seed=5)
    model, lines = HostModel(spec, build(spec).drop), ["x0,x1,label,prediction,call,state_hash"]
    replay = Replay(spec)
    replay.model = model
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        labelled = t % 3 != 0
        (p,) = model.predict(row[None])
        if labelled:
            model.update(row[None], label[None])
        lines.append(f"{row[0]!s},{row[1]!s},{label if labelled else ''!s},{p!s},,")
        if t in (30, 45):
            model.refresh() if t == 30 else model.reset()
            lines.append(f",,,,{'refresh' if t == 30 else 'reset'},{replay.hash:08x}")
    log = "\n".join(lines) + "\n"
    found = run(log)
    assert found.difference is None and found.compared == {"state_hash": 2, "status": 0, "prediction": 60}
    assert found.updates == 40 and found.rows == 62
    # a call that was not made shows
    assert run(log.replace(",refresh,", ",freeze 0,")).difference.row == 31
    assert set(callable_entries(spec)) >= {"reset", "refresh", "freeze"}
    assert "refresh" not in callable_entries(spec_of("nt")) and "predict" not in callable_entries(spec)


def test_the_field_is_named_from_a_state_at_the_end(recorded, tmp_path, capsys, log):
    spec = load_spec(recorded / "flow.toml")
    memory = spec.memory(build(spec).drop)
    data = bytearray((recorded / "end.bin").read_bytes())
    offset = next(slot.offset for slot in memory.layout.slots if slot.name == "alpha")
    before = np.frombuffer(bytes(data[offset + 8 : offset + 12]), np.float32)[0]
    data[offset + 8 : offset + 12] = np.float32(0.25).tobytes()
    (tmp_path / "end.bin").write_bytes(data)
    paths = [str(recorded / "flow.toml"), str(recorded / "log.csv"), "--end", str(tmp_path / "end.bin")]
    with pytest.raises(SystemExit) as stopped:
        main(["state", "replay", *paths])
    out, err = capsys.readouterr()
    assert stopped.value.code == 1 and "alpha[2][0]" in out and "0.25" in out and "alpha[2][0] differs" in err
    assert f"{before:.9g}" in out
    # and together with a row, when the log differs too
    lines = lines_of(log)
    lines[300][4] = "0badc0de"
    (tmp_path / "log.csv").write_text(text_of(lines))
    with pytest.raises(SystemExit) as stopped:
        main(["state", "replay", paths[0], str(tmp_path / "log.csv"), *paths[2:], "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (
        stopped.value.code == 1 and report["difference"]["row"] == 299 and report["fields"][0]["field"] == "alpha[2][0]"
    )
    # a snapshot serves too, and refuses what is none
    from pykernel.host import snapshot

    model = run(log).model
    (tmp_path / "good.bin").write_bytes(snapshot.save(model))
    with pytest.raises(SystemExit) as stopped:
        main(["state", "replay", *paths[:3], str(tmp_path / "good.bin")])
    assert stopped.value.code == 0
    with pytest.raises(UserError, match=r"has 3 bytes; expected a snapshot"):
        run(log, start=b"abc")


def test_a_log_that_goes_on_from_a_state(log):
    """The second half of a log, from the state in its middle."""
    from pykernel.host import snapshot

    lines = lines_of(log)
    half = run(text_of(lines[:301]))
    rest = text_of([lines[0], *lines[301:]])
    assert run(rest).difference is not None
    assert run(rest, start=snapshot.save(half.model)).difference is None


def test_too_few_digits_are_suspected(log):
    lines = lines_of(log)
    short = [lines[0]] + [[*(f"{_number(c):.4g}" for c in line[:3]), *line[3:]] for line in lines[1:]]
    replay = run(text_of(short))
    assert replay.difference is not None and "%.9g or %a" in replay.advice()
    nine = [lines[0]] + [[*(f"{_number(c):.9g}" for c in line[:3]), *line[3:]] for line in lines[1:]]
    replay = run(text_of(nine))
    assert replay.difference is None and replay.advice() is None


@given(st.floats(width=32))
def test_nine_digits_and_hexadecimal_read_back_to_the_same_bits(value):
    value = np.float32(value)
    for text in (f"{value:.9g}", float(value).hex()):
        found = np.float32(_number(text))
        assert found.tobytes() == value.tobytes() or (np.isnan(value) and np.isnan(found))


def test_digits_count_what_was_written():
    assert [_digits(t) for t in ("0.001234", "-1.50e-07", "0x1.8p3", "12", "nan")] == [4, 3, 99, 2, 0]


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("", "is empty; its first line must name the columns, such as x0,x1,label,state_hash"),
        ("a,b\n", "holds a header but no rows"),
        ("a,c,state_hash\n1,2,00000000\n", "names no column 'b'"),
        (
            "a,b,y,state_hash\n1,2,3,xyz\n",
            "line 2: column 'state_hash' is 'xyz'; it must be a hash of 8 hexadecimal digits",
        ),
        ("a,b,y,state_hash\n1,2,3,1234567\n", "must be a hash of 8"),
        ("a,b,y,status\n1,,3,1\n", "line 2: has some inputs and not others"),
        ("a,b,y,status\n,,,\n", "line 2: has no inputs; give the inputs, or a call"),
        ("a,b,y,status\n1,2,,1\n", "line 2: has a status but no label"),
        ("a,b,y,call,status\n,,1,refresh,\n", "line 2: has a label or a prediction but no inputs"),
        ("a,b,y,status\n1,2,3,99999999999\n", "must be a status"),
        ("a,b,y,status\n1,2,3,addded\n", "must be a status"),
        ("a,b,y,status\n1,2,0x1p99999,1\n", "must be a number"),
        ("a,b,y,call\n,,,format disk\n", "column 'call' is 'format disk'; it must be reset,"),
        ("a,b,y,call\n,,,freeze\n", "column 'call' is 'freeze'; it must be"),
        ("a,b,y,call\n,,,predict\n", "column 'call' is 'predict'"),
    ],
)
def test_bad_logs_are_one_sentence(log, says):
    with pytest.raises(UserError, match=re.escape(says)) as error:
        run(log)
    assert "\n" not in str(error.value)


def test_bad_input_of_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(spec_of().to_toml())
    Path("log.csv").write_text("a,b,y\n1,2,3\n")
    Path("short.bin").write_bytes(b"123")
    for words, says in (
        (["log.csv"], "holds no results to compare"),
        (["none.csv"], "there is no such file"),
        (["log.csv", "--end", "short.bin"], "short.bin: has 3 bytes"),
        (["log.csv", "--end", "none.bin"], "none.bin: cannot be read"),
        (["log.csv", "--start", "short.bin"], "short.bin: has 3 bytes"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["state", "replay", "flow.toml", *words])
        out, err = capsys.readouterr()
        assert stopped.value.code == 2 and out == "" and err.count("\n") == 1 and says in err, err
    with pytest.raises(UserError, match="column status has a fixed meaning"):
        run("a\n", spec_of(input={"columns": ["a", "status"]}))
