"""The command as people and machines meet it: what it prints where, its exit codes, what bad input leaves behind."""

import ast
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click
import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

import pykernel.cli.app
from pykernel.cli.face import keys_of
from pykernel.cli.help import RARE, names_of, sentence_of
from pykernel.cli.output import show_table
from pykernel.spec.model import load_spec
from pykernel.workflows.requests import COMMANDS as REQUESTS
from tests.release_check import VERSION
from tests.support import ROOT

SPEC = """
name = "flow"
[input]
columns = ["a", "b"]
[label]
column = "y"
[kernel]
sigma = 1.0
[reduction]
n_max = 8
"""
PAGE = (ROOT / "docs" / "reference/commands.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def commands(group, path=""):
    """By name: every command, those of a group by both words."""
    found = {}
    for name, command in group.commands.items():
        deeper = commands(command, f"{path}{name} ") if hasattr(command, "commands") else {}
        found |= deeper or {path + name: command}
    return found


COMMANDS = commands(typer.main.get_command(pykernel.cli.app.app))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    rows = "".join(f"{p},{q},{np.sin(p) + q}\n" for p, q in zip(a, b, strict=True))
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "data.csv").write_text("a,b,y\n" + rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(result, *says):
    """Exit code 2, one sentence on standard error, nothing on standard output."""
    code, out, err = result
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    for text in says:
        assert text in err
    return True


# ------------------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("command", ["demo", "simulate", "generate", "check"])
def test_help_shows_an_example_the_columns_and_the_exit_codes(run, command):
    code, out, err = run(command, "--help")
    assert code == 0 and err == ""
    for text in (f"pykernel {command} ", "Columns:", "Exit codes: 0 "):
        assert text in out


def test_without_a_command_the_help_is_shown(run):
    code, out, _ = run()
    assert code == 0 and all(command in out for command in ("demo", "simulate", "generate", "check"))


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], *([*name.split(), "--help"] for name in COMMANDS)])
def test_help_and_version_load_nothing_heavy(arguments):
    heavy = ["numpy", "numba", "matplotlib", "sklearn", "pykernel.language", "pykernel.gen", "pykernel.spec.model"]
    heavy += ["pydantic"] if arguments == ["--help"] else []  # typer parses by it, from the first option on
    code = f"""
import sys, pykernel.cli.app
try:
    pykernel.cli.app.main({arguments!r})
finally:
    print(set({heavy!r}) & set(sys.modules))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_help_fits_a_screen(run, monkeypatch, name):
    for columns in (80, 200):  # lines of a wide terminal are no longer, so that they can be read
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, err = run(*name.split(), "--help")
        assert (code, err) == (0, "")
        assert len(out.splitlines()) <= 40 and max(map(len, out.splitlines())) <= 80, out


def with_rare_options(page):
    """The page with tables of the options that ``--help`` only names, and of the keys of --set: in the head those of several commands, in
    its section each other one.
    """
    commands_of = {}
    for name, command in COMMANDS.items():
        rare = [each for each in command.params if getattr(each, "rich_help_panel", None) == RARE]
        rows = [(", ".join(f"`{part}`" for part in names_of(each).split(", ")), sentence_of(each)) for each in rare]
        for key, each in keys_of(REQUESTS[name]).items():
            default = (
                "" if each.opt.without is None and each.default is None else f" [{each.opt.without or each.default}]"
            )
            rows.append((f"`--set {key}={each.opt.value}`", each.opt.text + default))
        for row in rows:
            told = " | ".join(cell.replace("|", "\\|") for cell in row)
            commands_of.setdefault(f"| {told} |", []).append(name)

    def table(found):
        name = found[2].strip()
        rows = [row for row, names in commands_of.items() if (names == [name] if name else len(names) > 1)]
        assert rows, name
        return "\n".join(
            [
                found[1],
                "",
                f"| rarer option{'' if name else ' of several commands'} | |",
                "|---|---|",
                *rows,
                "",
                "<!-- end -->",
            ]
        )

    return re.sub(r"(<!-- options(.*?) -->)\n.*?<!-- end -->", table, page, flags=re.DOTALL), commands_of


def test_every_option_can_be_found(run, pytestconfig):
    """In --help with a sentence; if it is only named there, the page has a row, in the command's section or for all."""
    page, rare = with_rare_options(PAGE)
    if pytestconfig.getoption("--update-golden"):
        (ROOT / "docs" / "reference/commands.md").write_text(page, encoding="utf-8")
    assert page == (ROOT / "docs" / "reference/commands.md").read_text(encoding="utf-8"), (
        "pytest tests/cli/test_cli.py --update-golden"
    )
    assert len(rare) > 20 and all(page.count(row) == 1 for row in rare)
    for name, command in COMMANDS.items():
        shown = run(*name.split(), "--help")[1]
        listed, _, named = shown.partition("\nMore options, described in docs/reference/commands.md:")
        assert f"\n## {name}\n" in page, f"docs/reference/commands.md has no section {name}"
        for each in command.params:
            row = re.search(rf"^  {re.escape(names_of(each))}(?: {{2,}}|\n)\S*", listed, re.MULTILINE)
            assert row or {*each.opts, *each.secondary_opts} <= set(re.findall(r"--[\w-]+", named)), (
                f"{name} {each.opts}"
            )


# ------------------------------------------------------------------------------------------------------------- pages

SHOWN = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *(ROOT / "examples").rglob("*.md"),
]


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.name)
def test_commands_that_a_page_shows_are_there(page):
    """Each with its options and as many arguments as it takes; scripts and make's targets exist."""
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    for line in re.findall(r"^(?:\.venv/bin/)?pykernel (.*)$", blocks, re.MULTILINE):
        words = list(itertools.takewhile(lambda word: word not in (">", "|", "&&", "||"), shlex.split(line, True)))
        names = [name for name in COMMANDS if words[: len(name.split())] == name.split()]
        if words[0].startswith("-"):
            continue
        assert names, f"pykernel {line}"
        (name,), command = names, COMMANDS[names[0]]
        parser = command.make_parser(click.Context(command))
        _, left, _ = parser.parse_args(words[len(name.split()) :])  # raises for an option that there is not
        assert not left, f"pykernel {line}"
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for words in re.findall(r"`pykernel ([a-z][^`]*)`", prose):
        name = next((name for name in COMMANDS if f"{words} ".startswith(f"{name} ")), None)
        assert name is not None or any(other.startswith(f"{words} ") for other in COMMANDS), f"pykernel {words}"
        has = {opt for p in COMMANDS[name].params for opt in (*p.opts, *p.secondary_opts)} if name else set()
        assert set(re.findall(r"--[\w-]+", words)) <= {*has, "--help"}, f"pykernel {words}"
    for module in re.findall(r"python3? -m ((?:benchmarks|tests|examples)[\w.]*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module
    for target in re.findall(r"`make ([a-z][\w-]*)", text) + re.findall(r"^make ([a-z][\w-]*)", blocks, re.MULTILINE):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), f"make {target}"


# ----------------------------------------------------------------------------------------------------------- modules

CLI = Path(pykernel.cli.app.__file__).parent


def imports(file):
    """(module, name) of what a module of pykernel imports, in functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""


@pytest.mark.parametrize("file", sorted(CLI.rglob("*.py")), ids=lambda file: str(file.relative_to(CLI)))
def test_the_command_line_imports_nothing_private(file):
    for module, name in imports(file):
        assert not name.startswith("_") and "._" not in module, f"{module}.{name} is private"


def test_every_function_of_the_command_line_is_read_without_scrolling():
    for file in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{file.name}: {node.name}"


def test_the_package_runs_as_a_module():
    ran = subprocess.run([sys.executable, "-m", "pykernel", "--version"], capture_output=True, text=True)
    assert ran.stdout == f"pykernel {VERSION}\n"


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["fly"], "No such command 'fly'"),
        (["simulate"], "Missing argument 'SPEC'"),
        (["simulate", "s", "d", "--fast"], "No such option: --fast"),
        (["simulate", "s", "d", "--delay", "two"], "'--delay'"),
        (["generate", "s"], "Missing option"),
    ],
)
def test_a_wrong_command_line_is_told_in_a_sentence(run, arguments, says):
    assert fails(run(*arguments), says, "--help")


# -------------------------------------------------------------------------------------------------------- simulate


def test_simulate_for_machines_from_a_file_and_from_a_pipe(run, folder, monkeypatch):
    code, out, err = run("simulate", "spec.toml", "data.csv", "--delay", "3", "--json", "-o", "p.csv")
    report = json.loads(out)
    assert (code, err) == (0, "") and report["rows"] == 300 and report["waiting"] == 3
    lines = (folder / "p.csv").read_text().splitlines()
    assert lines[0] == "row,prediction,label,status" and lines[1].endswith(",") and len(lines) == 301
    errors = [abs(float(p) - float(y)) for _, p, y, _ in (line.split(",") for line in lines[1:])]
    # the first label is known after row 3
    assert report["all"]["mae"]["model"] == pytest.approx(np.mean(errors[4:]), rel=1e-6)
    assert report["second_half"]["mae"]["model"] == pytest.approx(np.mean(errors[150:]), rel=1e-6)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "data.csv").read_bytes())))
    code, out, _ = run("simulate", "spec.toml", "-", "--delay", "3", "--json")
    assert code == 0 and json.loads(out) == report | {
        "output": None,
        "data": report["data"] | {"file": "standard input"},
    }


def test_numbers_that_do_not_exist_are_null(run, folder):
    (folder / "none.csv").write_text("a,b,y\n1,2,\n")
    code, out, _ = run("simulate", "spec.toml", "none.csv", "--json")
    assert code == 0 and json.loads(out)["all"]["mae"]["model"] is None
    assert run("simulate", "spec.toml", "none.csv")[0] == 0


def test_a_model_that_keeps_refusing_is_a_warning(run, folder):
    (folder / "far.csv").write_text("a,b,y\n" + "1e9,2,3\n" * 150)
    code, out, err = run("simulate", "spec.toml", "far.csv")
    assert code == 0 and "refused input" in out and err.startswith("warning: the model refused the last 150 labelled")
    assert "a is 1e+09 and [input] max_abs is 1e+06" in err


def test_every_report_tells_how_many_rows_were_refused_for_whatever_reason(run, folder):
    """Also behind a verdict: the model is never better by silence."""
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},1,{a:.3f}" for a in rng.normal(size=900)]
    for i in range(0, 90, 3):
        # an input to be learned, one to be answered alone, a label
        lines[i : i + 3] = "1e9,1,0", "1e9,1,", "0,1,1e30"
    text = "a,b,y\n" + "\n".join(lines) + "\n"
    (folder / "far.csv").write_text(text)
    (folder / "many").mkdir()
    for name in ("one.csv", "two.csv"):
        (folder / "many" / name).write_text(text)
    for data, told in (("far.csv", "90 of 900 rows were refused"), ("many", "180 of 1,800 rows were refused")):
        code, out, _ = run("simulate", "spec.toml", data, "--report", "page.html")
        assert code == 0 and told in out and told in (folder / "page.html").read_text()
        assert told in repr(pykernel.simulate(pykernel.load_spec("spec.toml"), data))
        assert json.loads(run("simulate", "spec.toml", data, "--delay", "5", "--json")[1])["refused"] == int(
            told.split(" ")[0]
        )
    assert "refused" not in run("simulate", "spec.toml", "data.csv")[1]


RAW = """
name = "raw"
[signal]
channels = ["a", "b"]
max_abs = 1.5
window = 8
hop = 4
features = ["mean", "std"]
lags = [0, 1]
[label]
column = "y"
classes = ["n", "p"]
[learning]
rule = "nlms"
"""


def test_raw_rows_that_are_gaps_are_told_with_cause_and_steps(run, folder):
    cells = np.random.default_rng(0).uniform(-1, 1, (240, 2)).astype("U24")
    (folder / "clean.csv").write_text("a,b,y\n" + "".join(f"{a},{b},n\n" for a, b in cells))
    cells[[10, 30, 50], 1] = "", "nan", "inf"
    cells[120::7, 0] = "2"
    cells[121, 1] = "1e300"  # more than float32 holds
    names = np.where(np.arange(240) < 120, "n", "p")
    (folder / "raw.csv").write_text(
        "a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in zip(cells, names, strict=True))
    )
    (folder / "raw.toml").write_text(RAW)
    gaps = [-1, 10, 30, 50, 120, *range(121, 128, 6), *range(134, 240, 7), 240]
    left = sum(max(0, (after - gap - 1 - 12) // 4 + 1) for gap, after in itertools.pairwise(gaps))
    code, out, err = run("simulate", "raw.toml", "raw.csv", "--json")
    told = json.loads(out)
    counts = {"rows": 240, "missing": 2, "infinite": 1, "beyond_max_abs": 19, "steps_without_gaps": 58}
    assert (code, err) == (0, "") and told["rows"] == left and told["raw_rows"] == counts
    cause = (
        f"{left} of 58 steps are left: the device refuses 19 of 240 raw rows, because a is 2 and [signal] max_abs is 1.5 "
        "(the largest is 1e+300, in b); raise that limit or scale the column"
    )
    assert "\n".join(told["warnings"]).startswith(
        f"{cause}\nthe device misses 2 of 240 raw rows, because a cell is missing; a step needs 12 rows without a gap\n"
        "the device refuses 1 of 240 raw rows, because b is infinite; correct"
    )
    code, out, err = run("simulate", "raw.toml", "raw.csv")
    assert code == 0 and err.startswith(f"warning: {cause}\n") and f"raw (nlms): {left} steps of 240 raw rows" in out
    assert (
        f"2 with a missing cell, 1 with an infinite one, 19 beyond max_abs, of 240 raw rows: {left} of 58 steps" in out
    )
    assert fails(run("fit", "raw.csv", "--spec", "raw.toml", "--output", "f.toml"), f"has the label 'p'; {cause}")

    (folder / "tight.toml").write_text(RAW.replace("1.5", "1e-9"))
    none = "raw.csv: no step of [signal] is complete: the device refuses 237 of 240 raw rows, because"
    for words in (
        ["plan", "raw.csv", "--spec", "tight.toml"],
        ["fit", "raw.csv", "--spec", "tight.toml", "--output", "f.toml"],
    ):
        assert fails(run(*words), none, "[signal] max_abs is 1e-09", "raise that limit")

    told = json.loads(run("simulate", "raw.toml", "clean.csv", "--json")[1])
    assert told["rows"] == 58 and told["warnings"] == []


@pytest.mark.parametrize(
    "data, says",
    [
        ("a,b,y\n1,2,x\n", ["bad.csv, line 2", "'y'", "'x'"]),
        ("a,b\n1,2\n", ["bad.csv, line 1", "no column 'y'"]),
        ("", ["bad.csv", "is empty"]),
        ("a,b,y\n1,2,3,4\n", ["bad.csv, line 2", "4 cells"]),
    ],
)
def test_bad_data_leaves_nothing_behind(run, folder, data, says):
    (folder / "bad.csv").write_text(data)
    before = sorted(path.name for path in folder.iterdir())
    assert fails(run("simulate", "spec.toml", "bad.csv", "-o", "p.csv", "--report", "e.html"), *says)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["absent.toml", "data.csv"], ["absent.toml: there is no such file"]),
        (["spec.toml", "absent.csv"], ["absent.csv: there is no such file", "standard input"]),
        (
            ["spec.toml", "empty"],
            ["empty: is a folder without recordings; give a folder with files that end with .csv"],
        ),
        (["spec.toml", "no*.csv"], ["no*.csv: no file matches this pattern"]),
        (["spec.toml", "data.csv", "--jobs", "2"], ["--jobs is for many devices; give a folder"]),
        (["spec.toml", ".", "-o", "p.csv"], ["--output is for one device"]),
        (
            ["spec.toml", ".", "--report", "e.png"],
            ["--report e.png: a report has figures", "an HTML file; give e.html"],
        ),
        (["spec.toml", "data.csv", "-"], ["-: standard input cannot be one of several recordings"]),
        (["spec.toml", "data.csv", "--delay", "-1"], ["delay is -1"]),
        (["spec.toml", "data.csv", "-o", "data.csv"], ["data.csv: is the data itself"]),
        (["spec.toml", "data.csv", "--report", "./data.csv"], ["data.csv: is the data itself"]),
        (["spec.toml", "data.csv", "-o", "absent/p.csv"], ["absent/p.csv: cannot be written"]),
        (["spec.toml", "data.csv", "-o", "link.csv"], ["link.csv: is a link"]),
        (["dim.toml", "data.csv"], ["dim.toml: [input] names no columns; add columns ="]),
        (["unlabelled.toml", "data.csv"], ["unlabelled.toml: [label] names no column; add column ="]),
        (["bad.toml", "data.csv"], ["bad.toml", "is not a key"]),
        (["spec.toml", "a\x1b[31m\nb.csv"], [r"a\x1b[31m\nb.csv: there is no such file"]),
        (["spec.toml", "a\0b"], [r"a\x00b: cannot be read"]),
    ],
)
def test_bad_arguments_are_one_sentence(run, folder, arguments, says):
    (folder / "dim.toml").write_text(SPEC.replace('columns = ["a", "b"]', "dim = 2"))
    (folder / "unlabelled.toml").write_text(SPEC.replace('column = "y"', ""))
    (folder / "bad.toml").write_text(SPEC + "speed = 3\n")
    (folder / "link.csv").symlink_to("elsewhere.csv")
    (folder / "empty").mkdir()
    data = (folder / "data.csv").read_bytes()
    assert fails(run("simulate", *arguments), *says)
    assert (folder / "data.csv").read_bytes() == data and not (folder / "elsewhere.csv").exists()


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("pipeline.prediction_lines", "no file was written"),
        ("simulation.Simulation.report", "all rows were simulated, and only the report is missing: see p.csv"),
    ],
)
def test_an_interrupt_says_what_was_kept(where, kept, run, folder, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    before = {path.name for path in folder.iterdir()}
    monkeypatch.setattr(f"pykernel.host.{where}", interrupted)
    code, out, err = run("simulate", "spec.toml", "data.csv", "-o", "p.csv")
    assert (code, out, err) == (130, "", f"error: interrupted; {kept}\n")
    assert {path.name for path in folder.iterdir()} == before | ({"p.csv"} if "p.csv" in kept else set())


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.text("abc-7, ", max_size=30), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(20, 120),
)
def test_no_table_breaks_a_word(rows, width):
    with redirect_stdout(io.StringIO()) as printed, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        show_table("tables", ("target", "built, run by", "most", "spare"), rows, spare=["spare"])
    text = printed.getvalue()
    left_out = "columns left out because the window is too narrow: spare" in text
    words = {word for row in rows for cell in (row[:3] if left_out else row) for word in cell.split()}
    assert words <= set(text.split())


def test_a_reader_that_goes_away_sees_no_traceback(folder):
    command = f"{sys.executable} -m pykernel simulate spec.toml data.csv | true"
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (141, "")  # as if ended by SIGPIPE: neither success nor a failed check


@pytest.mark.parametrize("command", ["generate {} -o out", "simulate {} data.csv", "simulate {} data.csv more.csv"])
def test_what_a_spec_without_a_rule_gets_is_told(run, folder, command):
    """In one line and in the JSON, with what chose it; of a rule that is named, nothing."""
    (folder / "more.csv").write_text((folder / "data.csv").read_text())
    (folder / "named.toml").write_text(load_spec("spec.toml").to_toml())
    (folder / "default.toml").write_text(SPEC.partition("[reduction]")[0])
    for spec, because in (
        ("spec", "because of [reduction]; otherwise it would get spectrum-ekf"),
        ("default", ""),
        ("named", None),
    ):
        words = command.format(f"{spec}.toml").split()
        (_, out, _), (_, found, _) = run(*words), run(*words, "--json")
        default, lines = json.loads(found)["default"], [line for line in out.splitlines() if line[:9] == "default  "]
        assert default == load_spec(f"{spec}.toml").default
        assert [line.split(maxsplit=1)[1] for line in lines] == ([] if because is None else [default["sentence"]])
        assert because is None or (
            because in default["sentence"] and bool(because) == ("because" in default["sentence"])
        )


# -------------------------------------------------------------------------------------------- generate and check


def test_generate_writes_a_project_and_says_where(run, folder):
    code, out, err = run("generate", "spec.toml", "-o", "out")
    assert (code, err) == (0, "") and "state (RAM)" in out and "out/src/flow.c" in out
    code, out, _ = run("generate", "spec.toml", "-o", "out", "--json")
    made = json.loads(out)
    assert code == 0 and made["output"] == "out" and all(Path(file).is_file() for file in made["files"])
    assert made["sizes"]["state_bytes"] >= 8 * 3 * 4
    (folder / "out" / "src" / "flow.c").write_text("mine")
    assert fails(run("generate", "spec.toml", "-o", "out"), "flow.c", "--force")
    assert (folder / "out" / "src" / "flow.c").read_text() == "mine"
    assert run("generate", "spec.toml", "-o", "out", "--force")[0] == 0
    empty = (folder / "out" / "src" / "flow.c").read_bytes()
    code, _, err = run("generate", "spec.toml", "--start", "data.csv", "-o", "out")
    assert code == 0 and re.fullmatch(r"start    [\d,]+ of [\d,]+ rows of the recording were learned\n", err), err
    assert (folder / "out" / "src" / "flow.c").read_bytes() != empty
    assert fails(run("generate", "spec.toml", "--start", "none.csv", "-o", "new"), "none.csv")
    assert not (folder / "new").exists()


def test_a_bad_spec_generates_nothing(run, folder):
    (folder / "bad.toml").write_text(SPEC.replace('"flow"', '"../flow"'))
    assert fails(run("generate", "bad.toml", "-o", "out"), "bad.toml", "name")
    assert not (folder / "out").exists()


def test_check_passes(run, folder, one_build):
    code, out, err = run("check", "spec.toml", "--samples", "2000")
    assert code == 0 and "yes" in out and "NO" not in out and "simulated by llvm\n" in out
    assert re.search(r"^\S+ -O2, 2,000 samples: the same bytes as llvm$", err, re.MULTILINE)  # said when it was known
    code, out, err = run("check", "spec.toml", "--samples", "2000", "--json", "--seed", "1")
    report = json.loads(out)
    assert code == 0 and "bytes" not in err and report["ok"] and (report["engine"], report["witnesses"]) == ("llvm", [])
    assert all(row["equal"] and row["samples"] == 2000 for row in report["check"])


def test_check_fails_where_the_code_differs(run, folder, monkeypatch):
    import pykernel.gen.check
    from pykernel.gen.check import Report

    row = {"compiler": "cc", "flags": "-O3", "samples": 5, "equal": False, "first_difference": "update 3: alpha[2]"}
    figures = {"name": "flow", "state_bytes": 1, "work_bytes": 2, "const_bytes": 0, "config_hash": "0"}
    monkeypatch.setattr(pykernel.gen.check, "check", lambda spec, **how: Report(False, [row], figures, engine="llvm"))
    code, out, err = run("check", "spec.toml")
    assert code == 1 and "NO" in out and err.startswith("error: cc -O3") and "update 3: alpha[2]" in err
    code, out, err = run("check", "spec.toml", "--json")
    assert code == 1 and json.loads(out)["ok"] is False and err.count("\n") == 1


def test_without_a_compiler_check_says_how_to_get_one(run, folder, monkeypatch):
    from pykernel.gen.compilers import find_compilers

    find_compilers.cache_clear()
    monkeypatch.setenv("CC", "/absent/cc")
    try:
        assert fails(run("check", "spec.toml"), "/absent/cc")
    finally:
        find_compilers.cache_clear()


@pytest.mark.parametrize("arguments", [["--samples", "0"], ["--seed", "-1"]])
def test_impossible_numbers_for_check(run, folder, arguments):
    assert fails(run("check", "spec.toml", *arguments), arguments[0][2:], arguments[1])


def test_no_stray_text_in_json_even_on_a_terminal(folder):
    """With standard error a terminal, a progress bar would be drawn there; --json keeps it off."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pykernel", "simulate", "spec.toml", "data.csv", "--json"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        drawn = os.read(ours, 1000)
    except OSError:
        drawn = b""
    os.close(ours)
    assert json.loads(ran.stdout)["rows"] == 300 and drawn == b""


def test_a_file_that_ends_too_early_is_no_interrupt(run, monkeypatch):
    """Which typer makes of it."""

    def read(*_):
        raise error

    monkeypatch.setitem(pykernel.cli.face.READERS, "spec", read)
    error = EOFError("Ran out of input")
    code, out, err = run("generate", "spec.toml", "-o", "out")
    assert code == 2 and out == "" and err.strip() == "error: a file ends too early: Ran out of input"
    error = KeyboardInterrupt()
    assert run("generate", "spec.toml", "-o", "out")[0] == 130
