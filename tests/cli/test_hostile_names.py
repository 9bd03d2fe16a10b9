"""Names that try to be something else: markup of rich's, control characters, line ends, right-to-left overrides."""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec, make_spec
from pykernel.targets.board import Link
from tests.support import boards

HOSTILE = (
    "[/nope]",
    "[red]",
    "\x1b[2J\x1b]0;owned\x07",
    "a\nerror: b",
    "\r[bold]",
    "‮abc",
    "\x9b31m",
    "[link=file:///]x",
)

IN_SPECS = tuple(name for name in HOSTILE if name.isprintable())
"""Of a spec, names that are not visible are refused."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, a spec and snapshots, in a folder, with files and columns of hostile names."""
    here = tmp_path / "[red]\x1b[2J"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in ("[", "c[", "k[", "b["):  # a slash in a name makes a folder of what is before
        Path(name).mkdir()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, len(HOSTILE)))
    for name, labels in (
        ("[/nope]\x1b.csv", list(rng.normal(size=60))),
        ("c[/]\n.csv", [IN_SPECS[i % 3] for i in range(60)]),
    ):
        with open(name, "w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow([*HOSTILE, "[y]"])
            lines.writerows([*map(str, row), label] for row, label in zip(x.tolist(), labels, strict=True))
    for name, label in (
        ("[s].toml", {"column": "[y]"}),
        ("k[/].toml", {"column": "[y]", "classes": list(IN_SPECS)}),
    ):
        spec = make_spec(
            {
                "name": "m",
                "input": {"columns": list(IN_SPECS)},
                "label": label,
                "kernel": {"sigma": 1.0},
                "learning": {"rule": "klms"},
                "reduction": {"technique": "fklms", "n_max": 4},
            }
        )
        Path(name).write_text(spec.to_toml(), encoding="utf-8")
    model = HostModel(load_spec("[s].toml"))
    Path("[a]\x1b.bin").write_bytes(snapshot.save(model))
    model.update(x[:, : len(IN_SPECS)], rng.normal(size=60))
    Path("b[/].bin").write_bytes(snapshot.save(model))
    return here


DATA, CLASSES, SPEC, KINDS = "[/nope]\x1b.csv", "c[/]\n.csv", "[s].toml", "k[/].toml"
COMMANDS: dict[str, tuple[str, ...]] = {
    "simulate": ("simulate", SPEC, DATA),
    "simulate classes": ("simulate", KINDS, CLASSES),
    "simulate the wrong file": ("simulate", KINDS, DATA),
    "no such file": ("simulate", SPEC, "\x1b[/nope].csv"),
    "no such spec": ("check", "\x1b[/nope].toml"),
    "no such command": ("\x1b[/nope]",),
    "no such option": ("simulate", "--\x1b[/nope]"),
    "generate": ("generate", SPEC, "-o", "[/out]\x1b"),
    "generate into a file": ("generate", SPEC, "-o", DATA),
    "plan": ("plan", DATA, "--label", "[y]", "--trials", "1", "-o", "[/p]\x1b.toml"),
    "plan another label": ("plan", DATA, "--label", "\x1b[/nope]"),
    "fit": ("fit", DATA, "--label", "[y]", "--n-max", "4", "--set", "name=f", "-o", "[/f].toml"),
    "basis": ("fit", DATA, "--n-max", "4", "--set", "kernel.sigma=1", "--set", "name=b", "-o", "[/b]\x1b.npz"),
    "table": ("table", DATA, "-o", "[/c]\x1b.npy"),
    "import": ("import", DATA, "-o", "[/i].toml"),
    "page": ("page", SPEC, DATA, "-o", "[/g]\x1b.html"),
    "replay": ("state", "replay", SPEC, DATA),
    "snapshot show": ("state", "show", SPEC, "[a]\x1b.bin"),
    "snapshot diff": ("state", "show", SPEC, "[a]\x1b.bin", "b[/].bin"),
    "snapshot of no file": ("state", "show", SPEC, DATA),
    "migrate": ("state", "migrate", SPEC, "[a]\x1b.bin", SPEC, "-o", "[/m]\x1b.bin"),
    "targets": ("info",),
    "check on no target": ("check", SPEC, "--target", "\x1b[/nope]"),
    "check on no board": ("check", SPEC, "--board", "/dev/\x1b[/nope]"),
    "schema": ("info", "schema"),
}


def assert_plain(*texts: str) -> None:
    for text in texts:
        assert all(ch.isprintable() or ch == "\n" for ch in text), ascii(text)


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_control_character_or_falls_over_markup(command: str, folder: Path, run: Any) -> None:
    code, said, complaint = run(*COMMANDS[command])
    assert code in (0, 1, 2) and "Traceback" not in complaint
    assert_plain(said, complaint)
    assert code == 0 or complaint.startswith("error: ") or "\nerror: " in complaint, complaint
    if code == 2:
        assert complaint.count("error: ") - complaint.count("\\nerror: ") == 1, complaint


@pytest.mark.parametrize(("what", "monitor"), [("input", False), ("input", True), ("label", False), ("class", False)])
def test_a_plan_refuses_names_that_no_spec_can_have_before_it_writes_or_tries_anything(
    what: str, monitor: bool, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    label = "y\x1b" if what == "label" else "y"
    with open("data.csv", "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["a", "b\nc" if what == "input" else "b", label])
        kinds = ("u\x1b", "v") if what == "class" else (1.5, 2.5)
        lines.writerows([i % 7 / 7, i % 5 / 5, kinds[i % 2]] for i in range(60))
    given = () if monitor else ("--label", label)
    code, said, complaint = run("plan", "data.csv", *given, "--trials", "1", "--jobs", "1", "-o", "out")
    key = {"input": "[input] columns", "label": "[label] column", "class": "[label] classes"}[what]
    assert code == 2 and said == "" and complaint.startswith(f"error: data.csv: {key}"), complaint
    assert complaint.count("\n") == 1 and "visible characters" in complaint
    assert not Path("out").exists()


def test_hostile_names_are_printed_as_they_are(folder: Path, run: Any) -> None:
    code, said, complaint = run("simulate", KINDS, CLASSES)
    assert code == 0, complaint
    assert all(name in said for name in IN_SPECS), said


def test_a_boards_name_is_printed_as_it_is(folder: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board's own words, and the sentence on a board that hangs."""
    lines = [
        boards.FaultyBoard(boards.always(b"W", b"x"), 0),
        boards.FaultyBoard(boards.FaultyBoard.good, 0, bend=lambda frame: b"\x1b[2J [/nope] boot\r\n"),
    ]
    for line in lines:
        monkeypatch.setattr("pykernel.targets.check.open_port", lambda url, baud, line=line: line)
        monkeypatch.setattr("pykernel.targets.check.Link", functools.partial(Link, clock=line.clock))
        code, said, complaint = run("check", SPEC, "--board", "[/x]\x1b")
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        assert code == 2 and complaint.startswith("error: [/x]\\x1b: "), complaint
        assert_plain(said, complaint)
