"""``--json``: a key that several commands have means the same and has one type, as the glossary of docs/reference/commands.md says."""

import contextlib
import functools
import inspect
import io
import itertools
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pykernel.cli import commands
from pykernel.cli.app import assembled, main
from pykernel.cli.face import options_of
from pykernel.gen import check
from pykernel.report.document import Facts, Table
from pykernel.telling import MEASURES
from pykernel.workflows import demo
from pykernel.workflows.prove import Proved
from pykernel.workflows.requests import COMMANDS as REQUESTS
from tests.cli.test_workflows import MONITOR, SPEC
from tests.support import ROOT

pytestmark = pytest.mark.exhaustive("minutes")
"""About 35 commands run for these tests."""

SIGNAL = 'name = "s"\n[signal]\nchannels = ["a", "b"]\nwindow = 8\nhop = 4\nfeatures = ["mean", "rms"]\n[label]\ncolumn = "y"\n'
BOTH = 'name = "both"\n[input]\ncolumns = ["a"]\n[label]\ncolumns = ["b", "y"]\n[learning]\nrule = "nlms"\n'
# commands in their order: later ones take what earlier ones have written
EXAMPLES = """
demo -o demo
simulate spec.toml data.csv --delay 2 --output out.csv --report out.html --save state.bin
simulate classes.toml classes.csv
simulate both.toml data.csv
simulate monitor.toml data.csv
simulate signal.toml data.csv
simulate spec.toml many --save states
generate spec.toml --start data.csv -o out
check spec.toml --data data.csv
check spec.toml --samples 100 --target cortex-m4f --rate 10 --clock 48M
page spec.toml data.csv -o page.html
state replay spec.toml log.csv
state replay spec.toml logs
state migrate spec.toml state.bin spec.toml -o migrated.bin
state merge spec.toml states/0.bin states/1.bin -o merged.bin
plan data.csv --label y --only nlms --trials 2 --ram any --jobs 1 -o plan
plan classes.csv --label kind --only spectrum-softmax --trials 2 --ram any --jobs 1 -o plan-classes
plan many --label y --only nlms --trials 2 --ram any --jobs 1 -o plan-many
plan monitored.csv --only gmm --trials 1 --jobs 1 -o plan-monitor
plan data.csv --label y --only nlms --trials 2 --ram 1 --jobs 1 -o plan-none
fit data.csv --label y --set training.model=krr --n-max 8 --set kernel.sigma=1 --set training.ridge=0.1 --hold-out 0.2 --output fit.toml
fit data.csv --label y --set training.model=trained --n-max 2 --output trained.toml
fit data.csv --label y --set training.model=svm --n-max 4 --set kernel.sigma=1 --set precision=int16 --output svm.toml
fit classes.csv --label kind --set training.model=kfd --n-max 4 --set kernel.sigma=1 --output kinds.toml
fit data.csv --spec signal.toml --set training.model=krr --n-max 4 --set kernel.sigma=1 --set training.ridge=0.1 --output steps.toml
fit many --label y --set training.model=krr --n-max 4 --set kernel.sigma=1 --set training.ridge=0.1 --output many.toml
fit data.csv --label y --n-max 4 --set kernel.sigma=1 --set learning.rule=nystrom-rls --output basis.toml
fit data.csv --n-max 4 --set kernel.sigma=1 --set training.features=2 --output few.toml
table data.csv -o data.npy
table data.csv --label y -o ready.csv
fit data.npy --n-max 4 --set kernel.sigma=1 --output array.npz
import spec.toml --start state.bin --vectors 2 --data data.csv -o imported.toml
info
state show spec.toml state.bin
state show spec.toml state.bin merged.bin
"""
PROVED = {
    "call": "m_update",
    "level": "state",
    "proved": True,
    "why": "",
    "unreached": {},
    **dict.fromkeys(("alarms", "ranges", "proved_ranges", "statements", "reached"), 1),
    "seconds": 1.0,
}
FREE = {"values"}
"""Objects whose keys are of a spec."""


def kind(value):
    if value is None:
        return None
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}
    return names[type(value)]


def paths(value, path=""):
    """The path of each value that is not null, without positions in lists; and its type."""
    if path and kind(value):
        yield path, kind(value)
    if isinstance(value, dict) and path.rpartition(".")[2] not in FREE:
        for key, each in value.items():
            yield from paths(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from paths(each, f"{path}[]")


def write_inputs():
    rng = np.random.default_rng(0)
    for name, seed in (("data", 0), *((f"many/{k}", k + 1) for k in range(4))):
        x = np.random.default_rng(seed).normal(size=(200, 2))
        lines = [f"{a:.4f},{b:.4f},{a - b * b + 0.1 * rng.normal():.4f}" for a, b in x]
        Path(f"{name}.csv").parent.mkdir(exist_ok=True)
        Path(f"{name}.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    rows = [line.split(",") for line in Path("data.csv").read_text().split()[1:]]
    words = [f"{a},{b},{'wet' if float(a) > float(b) else 'dry'}" for a, b, _ in rows]
    Path("classes.csv").write_text("\n".join(["a,b,kind", *words, ""]))
    Path("classes.toml").write_text(SPEC.replace('column = "y"', 'column = "kind"\nclasses = ["dry", "wet"]'))
    parts = np.random.default_rng(9).normal(size=(700, 2))
    sensors = [f"{a:.4f},{a + 0.1 * b:.4f},{2 * a + b:.4f}" for a, b in parts]
    Path("monitored.csv").write_text("\n".join(["a,b,c", *sensors, ""]))
    for name, text in (("spec", SPEC), ("monitor", MONITOR), ("signal", SIGNAL), ("both", BOTH)):
        Path(f"{name}.toml").write_text(text)
    Path("logs").mkdir()
    for log in ("log.csv", "logs/0.csv", "logs/1.csv"):
        Path(log).write_text("a,b,y,prediction\n1,2,3,0\n1,2,,0\n")  # not what the model computes


def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code in (0, 1), words
    report = json.loads(out.getvalue())
    assert report.get("ok", True) == (stopped.value.code == 0), words
    return report


@pytest.fixture(scope="module")
def pages():
    """Command -> the names that its tables and facts showed in the examples: columns, and the first cell of each row."""
    return defaultdict(set)


def names_shown(page):
    for section in page.sections:
        for part in section.parts if section.shown == "both" else ():
            if isinstance(part, Table) and part.rows:
                yield from (*part.columns, *(str(row[0]) for row in part.rows))
            elif isinstance(part, Facts):
                yield from (name for name, text in part.pairs if text)


@pytest.fixture(scope="module")
def reports(tmp_path_factory, pages):
    """What each example prints: [(its words, the object)]."""
    words, present = [], commands.present

    def watched(found, *args, **more):
        pages[called(words)].update(names_shown(found.page))
        present(found, *args, **more)

    year = demo.bikeshare()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("keys"))
        write_inputs()
        first = check.find_compilers()[:1]
        patch.setattr(check, "check", functools.partial(check.check, levels=("-O2",), compilers=[first[0].name]))
        patch.setattr(demo, "check", check.check)
        patch.setattr(demo, "find_compilers", lambda: first)
        patch.setattr(demo, "bikeshare", lambda: (year[0][:2500], year[1][:2500], year[2]))
        patch.setattr(commands, "present", watched)
        found = []
        for line in EXAMPLES.strip().splitlines():
            words[:] = line.split()
            found.append(([*words], printed(*words, "--json")))
    prove = Proved("m", "00000000", "Frama-C", [], [], 0, 0, 1.0)
    pages["prove"].update(names_shown(replace(prove, calls=[PROVED]).page))
    found.append((["prove"], prove.report))
    return found


def called(words):
    return " ".join(words[: 2 if words[0] == "state" else 1])


def names_of(command):
    return [name for parameter in command.params for name in parameter.opts]


def glossary():
    """Name -> types of the page's table."""
    text = (
        (ROOT / "docs" / "reference/commands.md")
        .read_text(encoding="utf-8")
        .split("## Keys of --json")[1]
        .split("\n## ")[0]
    )
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == text.count("\n| `") > 30 and [name for name, *_ in rows] == sorted(name for name, *_ in rows)
    return {name: set(types.split(" or ")) for name, types, _ in rows}


def test_every_command_with_json_has_an_example(reports):
    def all_commands(command, name=""):
        for each, inner in getattr(command, "commands", {}).items():
            yield from all_commands(inner, f"{name} {each}".strip())
        if "--json" in names_of(command):
            yield name

    assert {*all_commands(assembled())} == {called(words) for words, _ in reports}


def test_a_key_has_one_type_at_its_place_in_all_commands(reports):
    types = defaultdict(lambda: defaultdict(set))
    for words, report in reports:
        for path, each in paths(report):
            types[path][called(words)].add(each)
    shared = {path: found for path, found in types.items() if len(found) > 1}
    assert len(shared) > 100
    assert not {path: dict(found) for path, found in shared.items() if len(set().union(*found.values())) > 1}


def test_the_glossary_has_the_keys_of_several_commands_and_their_types(reports):
    commands, known = defaultdict(set), glossary()
    for words, report in reports:
        for key, value in report.items():
            commands[key].add(called(words))
            if key in known:
                assert kind(value) in known[key] | {None}, (key, words)
    assert known.keys() == {key for key, found in commands.items() if len(found) > 1}


def test_keys_are_what_the_glossary_says(reports):
    """What the types do not tell."""
    written = 0
    for words, report in reports:
        if "--ram 1" in " ".join(words):  # nothing fits, and nothing is written
            assert not report["ok"] and "no model fits" in report["reason"]
            continue
        options = [option for each in options_of(REQUESTS[called(words)]) for option in each.options]
        assert ("--output" in options) == ("output" in report), words
        given = dict(itertools.pairwise(words))
        if asked := given.get("-o", given.get("--output")):
            assert report["output"] == asked
            written += 1
        for key in ("save", "report"):
            if key in report and words[0] not in ("demo", "plan"):  # which have names of their own
                assert report[key] == given.get(f"--{key}")
        for key in ("spec", "csv"):
            assert report.get(key) is None or Path(report["output"]) in (Path(report[key]), *Path(report[key]).parents)
        assert report.get("measure") in (None, *MEASURES)
        assert all(isinstance(each, str) for key in ("warnings", "assumed") for each in report.get(key, ()))
        for figures in report.get("simple", {}).values():
            assert "error" in figures or report.get("measure") in (None, *figures)
    assert written > 20


def test_columns_that_help_explains_are_printed(reports, pages):
    explained = [
        (command, name)
        for command, request in REQUESTS.items()
        for block in (inspect.getdoc(request) or "").split("\n\n")
        if block.startswith("Columns:")
        for name in re.findall(r'"([^"]+)"', block)
    ]
    assert len(explained) > 30
    assert not [(command, name) for command, name in explained if name not in pages[command]]
