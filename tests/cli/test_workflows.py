"""Functions and commands are two faces of one workflow: the same result, and sentences with the names that were given."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pykernel
from pykernel.cli.face import options_of
from pykernel.errors import UserError
from pykernel.request.option import Py, declared
from pykernel.request.options import Shell
from pykernel.telling import finite_or_none, json_value
from pykernel.workflows.requests import COMMANDS
from tests.support.compilers import QUICK

SPEC = """
name = "thermo"
[input]
columns = ["a", "b"]
[label]
column = "y"
[learning]
rule = "klms"
[kernel]
sigma = 1.0
[reduction]
n_max = 4
"""

SMALL = 'name = "small"\n[input]\ndim = 2\n[learning]\nrule = "nlms"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, one_build):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(120, 2))
    rows = [f"{a:.4f},{b:.4f},{a - b * b:.4f}" for a, b in x]
    Path("data.csv").write_text("\n".join(["a,b,y", *rows, ""]))
    Path("spec.toml").write_text(SPEC)
    Path("small.toml").write_text(SMALL)
    return tmp_path


def spec():
    return pykernel.load_spec("spec.toml")


# of each command its words, and the same asked of Python: what --json prints
SAME = {
    "simulate": (
        "spec.toml data.csv --delay 2 --refresh-every 50 -o {}.csv",
        lambda out: pykernel.simulate(spec(), "data.csv", delay=2, refresh_every=50, output=f"{out}.csv").report,
    ),
    "generate": (
        "spec.toml -o {}",
        lambda out: generated(pykernel.generate(spec(), out)),
    ),
    "plan": (
        "data.csv --label y --only klms,nlms --trials 4 --jobs 1 --ram 8k -o {}",
        lambda out: (
            pykernel.plan("data.csv", label="y", only=["klms", "nlms"], trials=4, jobs=1, ram=8192, output=out).report
        ),
    ),
    "fit": (
        "data.csv --label y --set training.model=krr -n 8 --set kernel.sigma=0.5,1 --set training.ridge=0.01,0.1 --hold-out 0.2 --jobs 1 "
        "--output {}.toml --set name=m",
        lambda out: (
            pykernel.fit(
                *("data.csv",),
                label="y",
                model="krr",
                n_max=8,
                sigma=[0.5, 1],
                ridge=[0.01, 0.1],
                hold_out=0.2,
                jobs=1,
                output=f"{out}.toml",
                name="m",
            ).report
        ),
    ),
    "fit ": (
        "data.csv --label y -n 6 --set kernel.sigma=1 --set training.with=swaps=2 --set learning.rule=nystrom-rls --output {}.toml --set name=m",
        lambda out: (
            pykernel.fit(
                *("data.csv",),
                label="y",
                n_max=6,
                sigma=1,
                with_={"swaps": 2},
                rule="nystrom-rls",
                output=f"{out}.toml",
                name="m",
            ).report
        ),
    ),
    "check": (
        "small.toml --samples 300 --seed 3",
        lambda out: pykernel.check(pykernel.load_spec("small.toml"), samples=300, seed=3).report,
    ),
}


def generated(made):
    return {
        "output": str(made.folder),
        "files": [str(each) for each in made.files],
        "sizes": made.figures,
        "default": made.default,
    }


def same(found, other):
    """Without what a clock tells, and with one name for both places where files go."""
    text = json.dumps(finite_or_none(found), default=json_value, sort_keys=True)
    return re.sub(r'"seconds": [\d.e+-]+', "", text).replace(f'"{other}', '"out')


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("command", SAME)
def test_a_function_and_its_command_are_one(command, run):
    words, call = SAME[command]
    code, printed, _ = run(*f"{command} {words}".replace("{}", "one").split(), "--json")
    assert code == 0
    found = call("two")
    assert same(json.loads(printed), "one") == same(found, "two")
    ours, theirs = (
        {p.name: p.read_bytes() for p in Path().glob(f"{name}*/**/*") if p.is_file()} for name in ("one", "two")
    )
    kept = {name: text for name, text in ours.items() if not name.endswith((".npz", ".json", ".jsonl"))}
    # what names the folder, and options, which are arguments in Python
    asked = re.compile(rb"<h2>What was asked</h2>.*?</section>|(?<=>)(?:one|two)\b[^<]*|--(?=[a-z])", re.DOTALL)
    assert {name: asked.sub(b"", text) for name, text in kept.items()} == {
        name: asked.sub(b"", theirs[name]) for name in kept
    }
    assert ours.keys() == theirs.keys()


# of each command words that it refuses, and the same asked of Python
REFUSED = {
    "simulate": ("spec.toml data.csv --delay -1", lambda: pykernel.simulate(spec(), "data.csv", delay=-1)),
    "generate": ("spec.toml -o spec.toml", lambda: pykernel.generate(spec(), "spec.toml")),
    "plan": ("data.csv --spec spec.toml --inputs a", lambda: pykernel.plan("data.csv", spec=spec(), inputs=["a"])),
    "fit": (
        "data.csv --label y --set training.model=krr --hold-out 2 --output m.toml",
        lambda: pykernel.fit("data.csv", label="y", model="krr", hold_out=2, output="m.toml"),
    ),
    "fit ": (
        "data.csv --set training.confidence=0.9 --output m.toml",
        lambda: pykernel.fit("data.csv", confidence=0.9, output="m.toml"),
    ),
    "check": ("spec.toml --rate 10", lambda: pykernel.check(spec(), rate=10)),
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_sentence_names_what_was_given(command, run):
    words, call = REFUSED[command]
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    code, printed, told = run(*f"{command} {words}".split())
    # what takes more than two seconds, as on a busy machine, says so
    told = "".join(line for line in told.splitlines(True) if not line.startswith("pykernel: "))
    assert (code, printed) == (2, "") and told.startswith("error: ") and told.count("\n") == 1
    with pytest.raises(UserError) as refused:
        call()
    sentence = str(refused.value)
    assert "--" not in sentence
    told = re.sub(r"--set \w+\.(\w+)=", r"--\1 ", told)
    told = re.sub(r"--set \w+\.", "--", told)
    named = re.sub(r"--([a-z-]+)", lambda found: found[1].replace("-", "_"), told.removeprefix("error: ").strip())
    assert sentence == named
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before


def test_results_read_well():
    simulated = pykernel.simulate(spec(), "data.csv")
    assert repr(simulated).startswith(f"thermo (klms): 120 rows\n  {simulated.page.verdict}")
    assert simulated.error > 0 and simulated.simple["running mean"] > 0
    assert all(sentence in repr(simulated) for sentence in simulated.advice)
    made = pykernel.generate(spec(), "out")
    assert repr(made).startswith("thermo in out: ") and str(len(made.files)) in repr(made)
    planned = pykernel.plan("data.csv", label="y", only="nlms", trials=2, jobs=1)
    assert repr(planned).startswith(f"plan: 120 rows\n  {planned.page.verdict}")
    assert planned.spec.learning.rule == "nlms" and planned.table[0]["model"] in repr(planned)
    fitted = pykernel.fit("data.csv", label="y", model="krr", n_max=8, sigma=1, ridge=0.1)
    assert repr(fitted).startswith("fit of model: 120 rows\n") and fitted.spec.learning.rule == "frozen"
    found = pykernel.fit("data.csv", n_max=5, sigma=1)
    assert repr(found).startswith("basis of 5 vectors\n") and len(found.basis) == 5 and found.spec is not None
    assert not list(Path().glob("*.npz")) and len(list(Path().glob("*.toml"))) == 2
    checked = pykernel.check(spec(), samples=200, levels=["-O1"], compilers=[QUICK[0].name])
    assert checked.ok and repr(checked) == "check of thermo\n  1 build computes the same bytes as the PC"


CLASSES = SPEC.replace('column = "y"', 'column = "kind"\nclasses = ["dry", "wet"]')
MONITOR = 'name = "watch"\n[input]\ncolumns = ["a", "b"]\n[novelty]\n'


@pytest.mark.parametrize("text", [SPEC, CLASSES, MONITOR], ids=["a number", "classes", "no label"])
def test_arrays_are_as_good_as_a_file(text):
    Path("spec.toml").write_text(text)
    table = np.genfromtxt("data.csv", delimiter=",", skip_header=1)
    x, y = table[:, :2], table[:, 2]
    if text is CLASSES:
        y = np.where(y > 0, "wet", "dry")
        lines = [f"{a:.4f},{b:.4f},{kind}" for (a, b), kind in zip(x, y, strict=True)]
        Path("data.csv").write_text("\n".join(["a,b,kind", *lines, ""]))
    if text is MONITOR:
        y = None
    of_file, of_arrays = pykernel.simulate(spec(), "data.csv"), pykernel.simulate(spec(), (x, y))
    assert repr(of_file) == repr(of_arrays) and of_file.report.pop("data")["rows"] == of_file.report["rows"]
    assert of_arrays.report.pop("data") is None and same(of_file.report, "") == same(of_arrays.report, "")
    if text is MONITOR:  # inputs alone are all that it takes
        how = {"levels": ["-O1"], "compilers": [QUICK[0].name]}
        of_inputs = [pykernel.check(spec(), stream=stream, **how) for stream in (x, (x, None))]
        assert repr(pykernel.simulate(spec(), x)) == repr(pykernel.simulate(spec(), x.tolist())) == repr(of_arrays)
        assert repr(of_inputs[0]) == repr(of_inputs[1])
    no_tables = [(x, y, y), [["a", "b"]], [[1.0, 2.0], [3.0]]]
    shapes = [(x,), 5.0, *([] if y is None else [x])]
    labels = (x, None if y is not None else x[:, 0])
    for wrong, says in [
        ((x[:, :1], y), "x has the shape"),
        (labels, "label"),
        *((each, "is not a table of numbers") for each in no_tables),
        *((each, " takes |labels") for each in shapes),
    ]:
        with pytest.raises(UserError, match=says):
            pykernel.simulate(spec(), wrong)


PUBLIC = {name: kind for name, kind in COMMANDS.items() if name in pykernel.__all__}


@pytest.mark.parametrize("command", PUBLIC)
def test_every_option_is_an_argument_that_the_docstring_describes(command):
    """And a function has no other one; only what the shell alone has is no argument."""
    function, kind = getattr(pykernel, command), PUBLIC[command]
    taken = inspect.signature(function).parameters
    assert [*taken] == [each.name for each in declared(kind)] and function.__name__ == command
    told = re.findall(r"^(\w+) : ", function.__doc__.partition("Parameters\n")[2], re.MULTILINE)
    assert told == [*taken] and function.__doc__.startswith(kind.__doc__.split("\n\n")[0])
    shell = {each.name for each in options_of(kind)} - {each.name for each in declared(Shell)}
    assert shell <= taken.keys() and "watch" not in shell


@pytest.mark.parametrize("command", COMMANDS)
def test_a_value_of_another_type_or_beyond_the_limits_is_refused(command):
    """By one sentence with the argument's name, before anything runs."""
    for each in declared(COMMANDS[command]):
        beyond = [limit - 1 for limit in (each.opt.least, each.opt.above) if limit is not None]
        wrong = beyond + [object()] * (set(each.kinds) <= {int, float, bool, str})
        for value in wrong if not isinstance(each.opt, Py) else ():
            with pytest.raises(UserError, match=rf"^{each.name.strip('_')} is .*; it must be (?!$)"):
                each.checked(value)


@pytest.mark.exhaustive
def test_type_checkers_know_the_arguments(tmp_path):
    """As they stand in the request: names, types and the result."""
    (tmp_path / "use.py").write_text(
        """from dataclasses import dataclass
from typing import Annotated
from pykernel.request.option import Opt, function

@dataclass(frozen=True)
class Ask:
    data: Annotated[str, Opt("A table.")]
    delay: Annotated[int, Opt("Rows.")] = 0

def run(given: Ask) -> list[int]:
    return [given.delay]

ask = function(Ask, run)
reveal_type(ask("t.csv", delay=2))
ask("t.csv", dealy=2)
ask("t.csv", delay="2")
"""
    )
    words = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "use.py")]
    root = str(Path(pykernel.__file__).parent.parent)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *words], capture_output=True, text=True, env={**os.environ, "MYPYPATH": root}
    )
    found = {int(line): text for line, text in re.findall(r"use.py:(\d+): \w+: (.*)$", run.stdout, re.MULTILINE)}
    assert "list[int]" in found[14] and '"dealy"' in found[15] and 'Argument "delay"' in found[16], run.stdout


def named_as_options(tree):
    """Texts of a module with a name such as --hold-out, but for docstrings and whole commands."""
    for command in [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]:
        if str(getattr(command.values[0], "value", "")).startswith("pykernel "):
            command.values = []
    for node in ast.walk(tree):
        for each in getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else ():
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                each.value.value = ""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    named = [text for text in texts if re.search(r"(?<![\w-])--[a-z]", text) and "pykernel " not in text]
    return [text for text in named if not re.fullmatch(r"--[a-z-]+", text)]  # a declared name


def test_only_the_command_line_names_options():
    """Everyone else writes option("hold_out"), which is what whoever reads the sentence has given."""
    (found,) = named_as_options(ast.parse('f"{x} --output" + "pykernel fit --output"'))
    assert found == " --output"
    rooms = ("bases", "estimators", "host", "importers", "training", "tuning", "workflows")
    same_for_both = {"To repeat this plan: --trials ", " --seed "}  # a comment in a file
    # requests declare them
    files = [
        path
        for room in rooms
        for path in (Path(pykernel.__file__).parent / room).glob("*.py")
        if "request" not in path.name
    ]
    assert len(files) > 50
    for path in files:
        assert not set(named_as_options(ast.parse(path.read_text(encoding="utf-8")))) - same_for_both, path
