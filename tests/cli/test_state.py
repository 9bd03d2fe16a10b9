"""What a model learned goes from simulate to the device, in a file."""

from __future__ import annotations

import json
import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from pykernel.cli.app import app
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build, state_hash
from pykernel.gen.streams import mixed_stream
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, load_spec

NUMBERS = '[label]\ncolumn = "y"\n'
SPECS = {
    "number": f'[input]\ncolumns = ["a", "b"]\n{NUMBERS}[reduction]\nn_max = 12\n',
    "float64": f'precision = "float64"\n[input]\ncolumns = ["a", "b"]\n{NUMBERS}[learning]\nrule = "krls-t"\n[kernel]\nsigma = 1\n',
    "monitor": '[input]\ncolumns = ["a", "b"]\n[novelty]\n',
    "labelled signal": f'[signal]\nchannels = ["a"]\nwindow = 8\nhop = 4\nmax_abs = 9\nfeatures = {{ a = ["mean", "std"] }}\n{NUMBERS}',
    "forecast": '[signal]\nchannels = ["a", "b"]\nwindow = 8\nhop = 4\nahead = 3\nmax_abs = 9\nfeatures = { a = ["mean"], b = ["rms"] }\n'
    '[label]\ncolumn = "a"\n',
}
HALF = 300


def rows_of(spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels that text keeps to the last bit."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2 * HALF, 2)).astype(np.float32)
    y = (np.sin(2 * x[:, 0]) + 0.3 * x[:, 1] * (np.arange(2 * HALF) // 40 % 3)).astype(np.float32)
    return x[:, : spec.width], y if spec.program.label_kind != "none" and not spec.forecasts else y[:, None][:, :0]


def write_table(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    names = ["a", "b"][: x.shape[1]] + ["y"] * (y.ndim == 1)
    lines = [",".join(repr(float(value)) for value in row) for row in np.column_stack([x, y])]
    path.write_text("\n".join([",".join(names), *lines, ""]))


@pytest.mark.in_turn(13)
@pytest.mark.parametrize("kind", SPECS)
def test_the_device_goes_on_from_the_state_that_simulate_saved(
    kind: str, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C from the state, over the second half: every byte of the state is that of the host over all rows in one go."""
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(f'name = "flow"\n{SPECS[kind]}')
    spec = load_spec("flow.toml")
    x, y = rows_of(spec)
    write_table(Path("first.csv"), x[:HALF], y[:HALF])
    code, out, err = run("simulate", "flow.toml", "first.csv", "--save", "learned.bin")
    assert code == 0, err
    code, _, err = run("generate", "flow.toml", "--start", "learned.bin", "-o", "out")
    assert code == 0, err
    found = snapshot.read(spec, Path("learned.bin").read_bytes())
    assert f"{found.state_hash:08x}" in out and f"{found.state_hash:08x}" in err

    project = build(spec, found.memory)
    for name, text in project.sources.items():
        assert Path("out/src", name).read_text() == text
    host, device = HostModel(spec, project.drop), CModel(project, find_compilers()[0])
    end = spec.program.state_bytes(host.memory.layout)
    host.prequential(x[:HALF], y[:HALF])
    assert bytes(device.memory.bytes[:end]) == bytes(host.memory.bytes[:end])
    taken, there = host.prequential(x[HALF:], y[HALF:]), device.prequential(x[HALF:], y[HALF:])
    assert [part.tobytes() for part in taken] == [part.tobytes() for part in there]
    assert (there[1] >= 0).sum() > 50
    assert bytes(device.memory.bytes[:end]) == bytes(host.memory.bytes[:end])


def test_a_learned_start_is_not_lost_by_generating_again(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(f'name = "flow"\n{SPECS["number"]}')
    write_table(Path("first.csv"), *(part[:HALF] for part in rows_of(load_spec("flow.toml"))))
    assert run("generate", "flow.toml", "--start", "first.csv", "-o", "out")[0] == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    code, _, err = run("generate", "flow.toml", "-o", "out")
    assert code == 2 and "give --start with this state again" in err and err.count("\n") == 1
    assert before == {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert run("generate", "flow.toml", "--start", "first.csv", "-o", "out")[0] == 0
    assert run("generate", "flow.toml", "--force", "-o", "out")[0] == 0
    assert not Path("out/src/flow_model.c").exists()
    assert run("generate", "flow.toml", "-o", "out")[0] == 0


@pytest.mark.exhaustive
@pytest.mark.usefixtures("one_build")
def test_a_learned_project_is_checked_and_replayed_from_its_own_start(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has the state; what is recorded is of a model that starts there, and a log without it is told so."""
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(f'name = "flow"\n{SPECS["number"]}')
    spec = load_spec("flow.toml")
    x, y = rows_of(spec)
    write_table(Path("first.csv"), x[:HALF], y[:HALF])
    assert run("generate", "flow.toml", "--start", "first.csv", "-o", "out")[0] == 0
    start = snapshot.read(spec, Path("out/flow.bin").read_bytes()).memory
    assert "log.csv --start flow.bin" in Path("out/README.md").read_text()
    quick = ["--samples", "40", "--json"]
    code, out, err = run("check", "flow.toml", "--record", "out", *quick)
    assert code == 0, err
    learned, new = json.loads(out), json.loads(run("check", "flow.toml", *quick)[1])
    model, (stream, labels) = HostModel(spec), mixed_stream(spec, 40)
    model.memory = start
    model.prequential(stream, labels)
    told = {row["state_hash"] for row in learned["check"]}
    assert told == {f"{state_hash(spec, model.memory):08x}"} != {row["state_hash"] for row in new["check"]}
    assert next(iter(told)) in Path("out/VALIDITY.md").read_text()

    device = HostModel(spec)
    device.memory = snapshot.read(spec, Path("out/flow.bin").read_bytes()).memory
    lines = ["a,b,y,forecast,state_hash"]
    for row, label in zip(x[HALF : HALF + 20], y[HALF : HALF + 20], strict=True):
        answer = device.prequential(row[None], label[None])[0].ravel()[0]
        lines.append(f"{row[0]:.9g},{row[1]:.9g},{label:.9g},{answer:.9g},{state_hash(spec, device.memory):08x}")
    Path("log.csv").write_text("\n".join(lines) + "\n")
    assert run("state", "replay", "flow.toml", "log.csv", "--start", "out/flow.bin")[0] == 0
    code, out, err = run("state", "replay", "flow.toml", "log.csv")
    assert code == 1 and "if the device began with a learned state, give this state with --start" in out + err

    Path("out/flow.bin").write_bytes(b"broken")
    for words in (["check", "flow.toml", "--record", "out", *quick], ["generate", "flow.toml", "-o", "out"]):
        code, _, err = run(*words)
        assert code == 2 and err.count("\n") == 1


@pytest.mark.parametrize("kind", SPECS)
def test_simulate_goes_on_from_a_state_or_a_table(
    kind: str, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two parts, the second from the first one's state: the same state as in one go."""
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(f'name = "flow"\n{SPECS[kind]}')
    x, y = rows_of(load_spec("flow.toml"))
    for name, part in (("first", slice(HALF)), ("later", slice(HALF, None)), ("all", slice(None))):
        write_table(Path(f"{name}.csv"), x[part], y[part])
    steps = [["all.csv", "--save", "all.bin"], ["first.csv", "--save", "first.bin"]]
    steps += [["later.csv", "--start", f"first.{end}", "--save", f"{end}.bin"] for end in ("bin", "csv")]
    for words in steps:
        code, out, err = run("simulate", "flow.toml", *words)
        assert code == 0 and ("--start" not in words or "advice" not in out), err
    whole = Path("all.bin").read_bytes()
    assert Path("first.bin").read_bytes() != whole
    assert Path("bin.bin").read_bytes() == Path("csv.bin").read_bytes() == whole


def test_a_state_that_cannot_be_taken_is_one_sentence_and_writes_nothing(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(f'name = "flow"\n{SPECS["number"]}')
    Path("other.toml").write_text(f'name = "flow"\n{SPECS["float64"]}')
    Path("fixed.toml").write_text(
        'name = "flow"\n[input]\ncolumns = ["a", "b"]\n[kernel]\nsigma = 1\n[learning]\nrule = "frozen"\n'
        '[expansion]\nvectors = [[0, 0]]\nweights = [[1]]\nbias = [0]\n[label]\ncolumn = "y"\n'
    )
    write_table(Path("first.csv"), *(part[:HALF] for part in rows_of(load_spec("flow.toml"))))
    assert run("simulate", "flow.toml", "first.csv", "--save", "learned.bin")[0] == 0
    state = Path("learned.bin").read_bytes()
    forged = state[:-200] + b"\xff" * 196  # NaN, with the right sum
    states = {
        "cut": (state[:-1], f"has {len(state) - 1} bytes"),
        "long": (state + b"\0", "is longer"),
        "head": (state[:9], "ends after 9 bytes"),
        "flipped": (state[:100] + bytes([state[100] ^ 1]) + state[101:], "CRC-32 is wrong"),
        "forged": (forged + struct.pack("<I", zlib.crc32(forged)), "a number that learning cannot produce"),
        "text": (b"PKSX" + state[4:], "text.bin"),  # no state: read as a recording
    }
    for name, (content, told) in states.items():
        Path(f"{name}.bin").write_bytes(content)
        code, _, err = run("generate", "flow.toml", "--start", f"{name}.bin", "-o", "out")
        assert code == 2 and f"{name}.bin" in err and told in err and err.count("\n") == 1, err
    code, _, err = run("generate", "other.toml", "--start", "learned.bin", "-o", "out")
    assert code == 2 and "is a state of kind" in err and "pykernel state migrate" in err
    for words in (["generate", "fixed.toml", "--start", "learned.bin", "-o", "out"],
                  ["simulate", "fixed.toml", "first.csv", "--save", "none.bin"]):  # fmt: skip
        code, _, err = run(*words)
        assert code == 2 and "learns nothing on the device" in err
    code, _, err = run("simulate", "flow.toml", "first.csv", "--save", "first.csv")
    assert code == 2 and Path("first.csv").read_text().startswith("a,b,y")
    assert not Path("out").exists() and not Path("none.bin").exists()


TAKEN = {
    ("simulate", "start"): "simulate {spec} rows.csv --start state.bin --save out.bin",
    ("generate", "start"): "generate {spec} --start state.bin -o out",
    ("state", "replay", "start"): "state replay {spec} log.csv --start state.bin",
    ("state", "replay", "end"): "state replay {spec} log.csv --end state.bin",
    ("state", "migrate", "old"): "state migrate right.toml state.bin {spec} -o out.bin",
    ("state", "migrate", "state"): "state migrate {spec} state.bin {spec} -o out.bin",
    ("state", "merge", "states"): "state merge {spec} state.bin other.bin -o out.bin",
    ("state", "merge", "into"): "state merge right.toml state.bin other.bin --into {spec} -o out.bin",
    ("import", "start"): "import {spec} --start state.bin --vectors 2 -o out.toml",
    ("state", "show", "files"): "state show {spec} state.bin",
}
NOT_TAKEN = {
    ("simulate", "save"),
    ("check", "log"),
    ("state", "migrate", "output"),
    ("state", "merge", "output"),
    ("prove", "from_"),
}
"""Parameters that speak of states, and take none."""
KERNEL = '[kernel]\nsigma = 1\n[learning]\nrule = "klms"\n[reduction]\nn_max = 6\n'
ORDERS = {
    "inputs": ('[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "u"\n' + KERNEL, '["a", "b"]', '["b", "a"]'),
    "labels": ('[input]\ncolumns = ["a", "b"]\n[label]\ncolumns = ["u", "v"]\n' + KERNEL, '["u", "v"]', '["v", "u"]'),
    "one label": ('[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "u"\n' + KERNEL, '"b"]\n[label]\ncolumn = "u"',
                  '"u"]\n[label]\ncolumn = "b"'),
    "classes": ('[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "c"\nclasses = ["ok", "fault"]\n' + KERNEL,
                '["ok", "fault"]', '["fault", "ok"]'),
    "channels": ('[signal]\nchannels = ["a", "b"]\nlags = [0, 1]\n[label]\ncolumn = "u"\n' + KERNEL,
                 '["a", "b"]', '["b", "a"]'),
    "monitor": ('[input]\ncolumns = ["a", "b"]\n[novelty]\n', '["a", "b"]', '["b", "a"]'),
}  # fmt: skip
"""Kind of name -> a spec, and what in it is written in another order."""


def speaking_of_states(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The parameters of all commands whose declaration names a state or a snapshot."""
    for name, command in getattr(group, "commands", {}).items():
        yield from speaking_of_states(command, (*path, name))
    for parameter in [] if hasattr(group, "commands") else group.params:
        said = f"{parameter.name} {parameter.metavar} {getattr(parameter, 'help', '')}"
        if re.search(r"(?i)\b(state|snapshot)s?\b", said):
            yield (*path, parameter.name)


def test_every_parameter_that_takes_a_state_is_tried() -> None:
    assert set(speaking_of_states(typer.main.get_command(app))) == set(TAKEN) | NOT_TAKEN


@pytest.mark.parametrize("kind", ORDERS)
def test_names_in_another_order_are_refused_wherever_a_state_is_taken(
    kind: str, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, and no file.  A rename in place, and so another order, is told to migrate by its old and its new spec."""
    monkeypatch.chdir(tmp_path)
    text, right, wrong = ORDERS[kind]
    Path("right.toml").write_text(f'name = "flow"\n{text}')
    Path("wrong.toml").write_text(f'name = "flow"\n{text.replace(right, wrong)}')
    spec = load_spec("right.toml")
    rng = np.random.default_rng(2)
    lines = [f"{a},{b},{a - b},{a + b},{('ok', 'fault')[int(a > b)]},0" for a, b in rng.normal(size=(60, 2)).round(3)]
    for name, part in (("rows.csv", lines[:40]), ("more.csv", lines[20:]), ("log.csv", lines[:9])):
        Path(name).write_text("\n".join(["a,b,u,v,c,status", *part, ""]))
    for rows, state in (("rows.csv", "state.bin"), ("more.csv", "other.bin")):
        assert run("simulate", "right.toml", rows, "--save", state)[0] == 0
    before = sorted(Path().iterdir())
    for way, words in TAKEN.items():
        code, _, err = run(*words.format(spec="wrong.toml").split())
        assert code == 2 and err.count("error: ") == 1 and sorted(Path().iterdir()) == before, (way, err)
        assert "another order" in err or "keep the original order" in err, (way, err)
    for way, words in TAKEN.items() if kind == "inputs" else ():
        code, _, err = run(*words.format(spec="right.toml").split())
        assert code in (0, 1), (way, err)
        for path in (*Path().glob("out.bin"), *Path().glob("out/*.bin")):
            snapshot.read(spec, path.read_bytes())
        for path in Path().glob("out*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
