"""Functions and commands are two faces of one workflow: the same result, and sentences with the names that were given."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import pykernel
from pykernel.cli import output
from pykernel.errors import UserError

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


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, one_compiler):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(120, 2))
    rows = [f"{a:.4f},{b:.4f},{a - b * b:.4f}" for a, b in x]
    Path("data.csv").write_text("\n".join(["a,b,y", *rows, ""]))
    Path("spec.toml").write_text(SPEC)
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
    "check": (
        "spec.toml --samples 300 --seed 3",
        lambda out: pykernel.check(spec(), samples=300, seed=3).report,
    ),
}


def generated(made):
    return {"project": str(made.folder), "files": [str(each) for each in made.files], "sizes": made.figures}


def same(found, other):
    """Without what a clock tells, and with one name for both places where files go."""
    text = json.dumps(output.finite(found), default=output.plain, sort_keys=True)
    return re.sub(r'"seconds": [\d.e+-]+', "", text).replace(f'"{other}', '"out')


@pytest.mark.parametrize("command", SAME)
def test_a_function_and_its_command_are_one(command, run):
    words, call = SAME[command]
    code, printed, _ = run(command, *words.format("one").split(), "--json")
    assert code == 0
    found = call("two")
    assert same(json.loads(printed), "one") == same(found, "two")
    ours, theirs = (
        {p.name: p.read_bytes() for p in Path().glob(f"{name}*/**/*") if p.is_file()} for name in ("one", "two")
    )
    kept = {name: text for name, text in ours.items() if not name.endswith((".png", ".npz", ".json", ".jsonl"))}
    assert kept == {name: theirs[name] for name in kept} and ours.keys() == theirs.keys()


# of each command words that it refuses, and the same asked of Python
REFUSED = {
    "simulate": ("spec.toml data.csv --delay -1", lambda: pykernel.simulate(spec(), "data.csv", delay=-1)),
    "generate": ("spec.toml -o spec.toml", lambda: pykernel.generate(spec(), "spec.toml")),
    "check": ("spec.toml --rate 10", lambda: pykernel.check(spec(), rate=10)),
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_sentence_names_what_was_given(command, run):
    words, call = REFUSED[command]
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    code, printed, told = run(command, *words.split())
    assert (code, printed) == (2, "") and told.startswith("error: ") and told.count("\n") == 1
    with pytest.raises(UserError) as refused:
        call()
    sentence = str(refused.value)
    assert "--" not in sentence
    named = re.sub(r"--([a-z-]+)", lambda found: found[1].replace("-", "_"), told.removeprefix("error: ").strip())
    assert sentence == named
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before


def test_results_read_well():
    simulated = pykernel.simulate(spec(), "data.csv")
    assert repr(simulated).splitlines()[0] == "simulation of thermo: 120 rows, rmse over the second half"
    assert f"{simulated.error:.4g}" in repr(simulated) and simulated.simple["running mean"] > 0
    assert all(sentence in repr(simulated) for sentence in simulated.advice)
    made = pykernel.generate(spec(), "out")
    assert repr(made).startswith("thermo in out: ") and str(len(made.files)) in repr(made)
    checked = pykernel.check(spec(), samples=200, levels=["-O1"])
    assert checked.ok and repr(checked).startswith("check of thermo: the same bytes\n")


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
    assert same(of_file.report, "") == same(of_arrays.report, "") and repr(of_file) == repr(of_arrays)
    for wrong, says in (((x[:, :1], y), "x has the shape"), ((x, None if y is not None else x[:, 0]), "label")):
        with pytest.raises(UserError, match=says):
            pykernel.simulate(spec(), wrong)
