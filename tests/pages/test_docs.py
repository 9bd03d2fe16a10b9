"""What the documentation says is what happens: its commands run, its numbers are those that the code gives."""

import csv
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import pykernel
from pykernel.algorithms.linear import LinearStatus
from pykernel.algorithms.online.klms import KLMS
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.bases.select import METHODS
from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.gen.check import Reference
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.gen.project import build, state_hash
from pykernel.gen.streams import as_taken
from pykernel.host.bikeshare import bikeshare, default_spec
from pykernel.host.identity import specialised
from pykernel.host.model import HostModel
from pykernel.host.samples import read_rows
from pykernel.spec.families import nystrom, subspace
from pykernel.spec.families.linear import WINDUP
from pykernel.spec.families.online import FAILS, RULES
from pykernel.spec.kernel_settings import FUNCTIONS
from pykernel.spec.model import FAMILIES, Spec, make_spec, rules
from pykernel.spec.sections import fields_of
from pykernel.targets import board
from pykernel.tuning.tables import MODELS as FIT_MODELS
from pykernel.workflows.demo import write_inputs
from tests.gen.test_check import CHOICES, PRESETS
from tests.support import ROOT
from tests.support.machines import MACHINES
from tests.support.tools import need

Status = KLMS["real"].status

README = (ROOT / "README.md").read_text(encoding="utf-8")


DOCS_README = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
DEMO = (ROOT / "docs" / "data" / "demo.txt").read_text(encoding="utf-8")


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def tour(tmp_path, monkeypatch):
    """A folder with some recorded data."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    rows = ["temperature,pressure,valve,flow", *(f"{a:.4f},{b:.4f},{c:.4f},{np.sin(a) + b * c:.4f}" for a, b, c in x)]
    Path("recorded.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.usefixtures("one_build")
def test_the_tours_commands_run(tour, capsys):
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("pykernel ")]
    words = [command.split()[1] for command in commands]
    assert words == "demo plan check generate".split()
    for command in commands:
        words = command.split("#")[0].split()[1:]
        if words[0] == "demo":  # takes long: test_the_demos_output_is_the_demos
            continue
        if words[0] == "plan":
            words += ["--trials", "4", "--only", "rls,qklms", "--jobs", "1"]
        with pytest.raises(SystemExit) as stopped:
            main([*words, "--json", *(["--samples", "1000"] if words[0] == "check" else [])])
        report = json.loads(capsys.readouterr().out)
        assert stopped.value.code == 0, report
    # and the C around it compiles
    Path("firmware.c").write_text(blocks("c")[0])
    for c in find_compilers():
        compile_c(c, [Path("firmware.c")], Path("firmware.o"), ("-Iplanned/src",), ("-c",))


@pytest.mark.usefixtures("one_build")
def test_the_python_block_runs(tour):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    exec(compile(blocks("python", DOCS_README)[0], "README.md", "exec"), {"X": X, "y": np.sin(X[:, 0])})
    assert Path("flow/src/flow_model.c").is_file()


@pytest.mark.usefixtures("one_build")
def test_the_block_of_workflows_runs(tour, monkeypatch, capsys):
    monkeypatch.setattr(pykernel, "plan", functools.partial(pykernel.plan, trials=2, only="rls", jobs=1))
    monkeypatch.setattr(pykernel, "check", functools.partial(pykernel.check, samples=500))
    names: dict = {}
    exec(compile(blocks("python", DOCS_README)[1], "README.md", "exec"), names)
    assert repr(names["simulated"].error) in capsys.readouterr().out
    assert Path("planned/src/planned.c").is_file()


@pytest.mark.exhaustive
def test_the_demos_output_is_the_demos(tmp_path, monkeypatch, run):
    """Word by word, where the compilers are those of the page."""
    for gcc in ("gcc", "arm-none-eabi-gcc"):
        need(gcc)
        found = subprocess.run([gcc, "-dumpfullversion"], capture_output=True, text=True).stdout
        if not found.startswith("12.2"):
            pytest.skip(f"{gcc} is not 12.2")
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("demo")
    assert code == 0 and out.split() == DEMO.split()


def test_the_readme_is_short_and_shows_what_the_demo_prints():
    (said,) = blocks("text")
    assert DEMO.startswith(said.rstrip()) and "quadratic RLS" in said
    assert len(README.split()) <= 900


def test_one_model_has_one_hash(tmp_path):
    """That of the year of bike rentals: of the demo, the site, the simulation, ``check --data`` and the C."""
    spec, (x, y, names) = default_spec(), bikeshare()
    write_inputs(tmp_path, spec, x, y, names)
    project, stream = build(spec), as_taken(spec, *read_rows(spec, str(tmp_path / "features.csv")))
    host = HostModel(spec, project.drop, "llvm", raw=True)
    host.prequential(*stream)
    hashed = f"{state_hash(spec, host.memory):08x}"
    answers = json.loads((ROOT / "website" / "answers.json").read_text(encoding="utf-8"))
    shown = re.findall(r" ([0-9a-f]{8})$", DEMO, re.MULTILINE)
    row = Reference(project, None, *stream, engine="llvm").compare(find_compilers()[0], "-O2")
    assert row["equal"] and {*shown, *answers.values(), row["state_hash"]} == {hashed} and shown


def test_the_page_of_boards_has_the_checks_own_limits():
    page = " ".join((ROOT / "docs" / "guide/boards.md").read_text(encoding="utf-8").split())
    seconds = board.SILENCE + board.PER_SAMPLE * board.PIECE
    assert f"in parts of {board.PIECE}. It stops if a part takes longer than {seconds:.0f} s plus the time" in page
    assert f"{board.BAUD:,} baud" in page


PASTES = dict(re.findall(r"^<!-- paste: (\w+) -->\n\n```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE))


def test_ci_pastes_the_readmes_blocks():
    """``.ci/run`` sets up and tests by what it finds in the README: these blocks, as they stand there."""
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (function,) = re.findall(r"^paste\(\) \{.*?^\}$", text, re.DOTALL | re.MULTILINE)
    assert re.findall(r"^paste (\w+)$", text, re.MULTILINE) == list(PASTES) == ["first", "tests"]
    assert blocks("sh")[0] == PASTES["first"] and "pip install" not in text.replace(function, "")
    for name, block in PASTES.items():
        said = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"bash() {{ printf %s \"${{!#}}\"; }}\n{function}\npaste {name}"],
            *[], cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert said.stdout.strip() == block.strip()
    unknown = subprocess.run(["bash", "-euo", "pipefail", "-c", f"{function}\npaste nothing"], cwd=ROOT)
    assert unknown.returncode != 0


@pytest.mark.exhaustive("minutes")
def test_a_newcomer_pastes(tmp_path):
    """Both blocks, one after the other in one shell, beside a fresh clone in an empty home; of the tests one file runs."""
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, tmp_path / "pykernel"], check=True)
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    few = {"PYTEST_ADDOPTS": "tests/test_errors.py"}
    base = {"HOME": str(tmp_path), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
    script = "".join(f"{block}\necho 'pasted: {name}'\n" for name, block in PASTES.items())
    done = subprocess.run(
        ["bash", "-e"], input=script, cwd=tmp_path, env=base | kept | few, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    demo, tests = done.stdout.split("pasted: first\n")
    assert "hours of bike rentals" in demo and "project   pykernel-demo/bikeshare" in demo and " NO " not in demo
    assert "passed" in tests or "100%" in tests
    hashes = re.findall(r" ([0-9a-f]{8})\s*$", demo, re.MULTILINE)
    assert hashes and set(hashes) <= set(re.findall(r" ([0-9a-f]{8})$", DEMO, re.MULTILINE))


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "website/front.md")),
    *(path for folder in ("docs", "examples", "pykernel/data") for path in sorted((ROOT / folder).rglob("*.md"))),
    *sorted((ROOT / "pykernel" / "cli").rglob("*.py")),
]


def test_one_line_installs():
    """It stands in the README, on the site's first page, and at the head of each tutorial."""
    (line,) = [line for line in PASTES["first"].splitlines() if "pip install" in line]
    tutorials = ("install", "table-to-firmware", "spec-to-firmware", "monitor")
    for name in ("README.md", *(f"guide/{tutorial}.md" for tutorial in tutorials)):
        head = (ROOT / "docs" / name).read_text(encoding="utf-8").partition("\n## ")[0]
        assert line in head, name


def test_no_page_installs_from_an_index_that_has_no_pykernel():
    """Neither by the package's name, nor a copy of the tree over the editable one."""
    for page in PAGES:
        for command in re.findall(r"pip install [^`\n#]*", page.read_text(encoding="utf-8")):
            assert not re.search(r"(?<![\w/])pykernel(-mcu)?(?=[\['\"=]|\s*$)", command), (page, command)
            assert "'.[" not in command or "-e '.[" in command, (page, command)


# ------------------------------------------------------------------------------------------------ docs/reference/rules.md

ONLINE = (ROOT / "docs" / "reference/rules.md").read_text(encoding="utf-8")


def table(first: str) -> list[list[str]]:
    """The cells below the table's head that begins so, without code marks."""
    lines = ONLINE[ONLINE.index(f"\n| {first}") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip().replace("`", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def measured(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs" / "data" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_status_is_explained():
    assert {(name, int(value)) for name, value, _ in table("status |")} == {
        (member.name, int(member)) for kind in (Status, LinearStatus) for member in kind
    }


FEATURED = ("rff-rls", "spectrum-ekf", "spectrum-nlms", "spectrum-softmax")


def of(rule: str, technique: str, precision: str, budget: int, dim: int, outputs: int) -> Spec:
    content = {"name": "m", "precision": precision, "input": {"dim": dim}, "label": {"outputs": outputs}}
    content["learning"] = {"rule": rule}
    if rule == "spectrum-softmax":
        content["label"] = {"classes": [f"c{i}" for i in range(max(2, outputs))]}
    if rule in FEATURED:
        content["learning"]["features"] = budget + 1
    if rule in RULES:
        content["reduction"] = {"n_max": budget, **({"technique": technique, "force": True} if technique else {})}
    if rule in (*RULES, *FEATURED):
        content["kernel"] = {"sigma": 1.0}
    return make_spec(content)


MODELS = [
    (rule, technique, row[1:])
    for row in table("rule, technique |")
    for first, *others in [re.findall(r"[\w-]+", row[0])]
    for rule, technique in (
        [(first, technique) for technique in others] if first in RULES else [(each, "") for each in (first, *others)]
    )
    or [(first, "")]
]


def test_a_page_tells_how_long_its_tables_are():
    said = [
        (table, rows)
        for page in (ROOT / "docs").rglob("*.md")
        for rows, table in re.findall(r"\[The table: (\d+) rows\]\((tables/[^)]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert said
    for table, rows in said:
        text = (ROOT / "docs" / table).read_text(encoding="utf-8")
        assert len(re.findall(r"^\|", text, re.MULTILINE)) == int(rows) + 2, table


def test_the_table_of_memory_is_complete():
    labelled = [family for family in FAMILIES if set(family.programs) != {"none"}]
    online = {rule for family in labelled if family.online for rule in family.rules}
    assert online < set(rules())
    assert {rule for rule, _, _ in MODELS} | {"qklms"} == online
    assert {technique for rule, technique, _ in MODELS if rule == "klms"} == set(TECHNIQUES)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("rule", "technique", "formulas"), MODELS, ids=lambda value: str(value)[:12])
def test_memory_is_what_its_formula_says(rule, technique, formulas):
    def value(formula: str, **letters: int) -> int:
        product = re.sub(r"(?<=[\w²)]) (?=[\w(])", "*", formula.replace("²", " ** 2 ").strip().replace("  ", " "))
        product = re.sub(r"2 \*([A-Z(])", r"2 * \1", product)
        return eval(product, {"__builtins__": {}}, letters)

    outputs, precision = (1, "float32") if len(rule + technique) % 2 else (3, "float64")
    code = specialised(of(rule, technique, precision, 8, 3, outputs))
    size = 4 if precision == "float32" else 8
    for budget, dim in ((1, 1), (8, 3), (33, 7)):
        spec = of(rule, technique, precision, budget, dim, outputs)
        features, block = spec.capacities.get("FEATURES", 0), spec.capacities.get("GROUP_SIZE", 0)
        letters = {"N": budget, "D": dim, "Y": outputs, "F": features, "M": features, "B": block}
        reals, counters, work_reals, work_counters = (value(formula, **letters) for formula in formulas)
        layout = spec.memory(tuple(code.unread)).layout
        # each struct is rounded up, by a field of its own
        end, padding = (
            spec.program.state_bytes(layout),
            [slot for slot in layout.slots if slot.name.startswith("reserved")],
        )
        assert all(slot.nbytes < size for slot in padding)
        state = reals * size + counters * 4 + sum(slot.nbytes for slot in padding if slot.offset < end)
        work = work_reals * size + work_counters * 4 + sum(slot.nbytes for slot in padding if slot.offset >= end)
        assert (end, layout.nbytes) == (state, state + work)
    # and what the header says is what was laid out
    figures = build(spec).figures
    assert (figures["state_bytes"], figures["ram_bytes"]) == (state, state + work)
    if rule == "rff-rls":
        assert figures["const_bytes"] >= (letters["F"] - 1) * (dim + 1) * size


def test_pairs_are_as_measured():
    rows = measured("pairs.csv")
    failing = {(r["technique"], r["projection"]) for r in rows if r["fails"] == "True"}
    assert failing == set(FAILS)
    listed = {tuple(re.match(r"(\w+) with (\w+)", row[0]).groups()): row[1] for row in table("refused |")}
    assert set(listed) == failing
    for pair, error in listed.items():
        mine = [float(r["mse"]) for r in rows if (r["technique"], r["projection"]) == pair]
        assert float(error) == max(mine) == FAILS[pair]
    for technique, *errors in table("technique | 4 vectors"):
        own = TECHNIQUES[technique].projection
        key = {"technique": technique, "projection": own, "precision": "float32", "task": "sinc"}
        assert errors == [r["mse"] for r in rows if r.items() >= key.items()]


def test_limits_are_as_measured():
    rows = measured("limits.csv")
    kept = ["own column", "T", "P", "Q"]
    for name, row in zip(kept, table("kept | for | ridge"), strict=True):
        assert row[2:] == [r["error"] for r in rows if r["kept"] == name]
    ((_, _, *errors),) = table("kept | for | penalty")
    assert errors == [r["error"] for r in rows if r["kept"] == "Z"]
    text = " ".join(ONLINE.split())
    assert f"exceeds {WINDUP:g} times" in text


@pytest.mark.exhaustive
def test_what_is_kept_of_a_covariance_stays_below_the_prior():
    """Of KRLS-T, in float32, over samples that exchange vectors and samples that only sharpen what is known."""
    for forgetting, budget in ((1.0, 16), (0.99, 16), (0.99, 40)):
        spec = make_spec(
            {
                "name": "m",
                "input": {"dim": 1},
                "kernel": {"sigma": 0.5},
                "learning": {"rule": "krls-t", "forgetting": forgetting},
                "reduction": {"technique": "sup", "n_max": budget},
            }
        )
        model, rng = HostModel(spec), np.random.default_rng(0)
        assert (model.update(rng.uniform(-3, 3, (20_000, 1)), rng.normal(size=20_000)) > 0).all()
        kept = model.memory.field("covariance") if forgetting < 1 else model.memory.field("root") ** 2
        assert 0 < np.abs(kept).max() <= 1 + 1e-5


# ------------------------------------------------------------------------------------------------------------ all


def test_the_smallest_spec_is_whole_and_a_rule_needs_what_the_page_says():
    page = (ROOT / "docs" / "reference/spec.md").read_text(encoding="utf-8")
    content = tomllib.loads(re.search(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1])
    assert make_spec(content).learning.rule == "spectrum-ekf"
    assert "Only `name` and the inputs are required, so this is a complete spec" in page
    for rule in rules():
        named = content | {"learning": {"rule": rule}}
        if rule in ("nlms", "rls", "quadratic-rls", "gmm"):
            assert make_spec(named).learning.rule == rule
            continue
        # what is said to be missing is what the page names: the kernel, vectors, classes
        own = dict.fromkeys(("frozen", "nystrom", "expansion-nlms", "expansion-rls"), "vectors")
        own |= {"kfd": "classes", "spectrum-softmax": "classes", "expansion-softmax": "classes"}
        missing = own.get(rule, r"\[kernel\] is missing")
        with pytest.raises(UserError, match=missing):
            make_spec(named)
        if missing.endswith("missing"):
            assert make_spec(named | {"kernel": {"sigma": 1.0}, "label": {"column": "y"}}).learning.rule == rule


NUMBERED = (
    {"eq.": 1, "Fig.": 1, "algorithm": 1, "lemma": 2},
    {"eq.": 23, "algorithm": 4, "prop.": 3, "remark": 2},
    {"eq.": 33, "Fig.": 5, "algorithm": 2},
    {"eq.": 20, "Fig.": 8},
    {"eq.": 6, "Fig.": 2, "lemma": 1},
)
"""Of each paper how many equations, figures, … it has."""


def names_of_c():
    """What users write to get C: rules, techniques, projections, keys, values; and the functions of the C."""
    found = {*rules(), *TECHNIQUES, *PROJECTIONS}
    for rule, family in rules().items():
        found |= {entry.name for program in family.programs.values() for entry in program.entries}
        for _, key, field in fields_of(family.spec, rule):
            found |= {key, *re.findall(r"'([\w-]+)'", str(field.annotation))}
    return found


@pytest.mark.parametrize("paper", range(5))
def test_each_papers_page_begins_with_a_table_of_everything_in_it(paper):
    """Nothing has no row, and what a cell names is there.  (Of its links, see the tests below.)"""
    page = (ROOT / "docs" / f"paper-00{paper}.md").read_text(encoding="utf-8")
    lines = [line for line in page.partition("\n```")[0].splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert header[1:] == ["host", "C", "emulated", "where", "held"]
    assert all(len(row) == len(header) and row[-1] for row in rows)
    first = "\n".join(row[0] for row in rows)
    letters = re.findall(r"^\*\*(\w)\*\*", first, re.MULTILINE)
    assert sorted(letters) == [chr(ord("a") + i) for i in range(len(letters))]
    for word, count in NUMBERED[paper].items():
        numbers = [part for found in re.findall(rf"{re.escape(word)} ([\d, –]+)", first) for part in found.split(",")]
        ends = [[int(end) for end in part.split("–")] for part in numbers if part.strip()]
        assert {n for end in ends for n in range(end[0], end[-1] + 1)} == {*range(1, count + 1)}, word
    known, emulated = names_of_c(), {*PRESETS, *CHOICES} if paper == 3 else {*MACHINES}
    for what, host, c, machines, where, _ in rows:
        text = ""
        for name in re.findall(r"`([^`]+)`", host):
            if "." not in name:
                assert re.search(rf"\b{name}\b", text), (what, name)
                continue
            module, _, thing = name.rpartition(".")
            paths = [f"{room}/{n.replace('.', '/')}" for room in ("pykernel", "benchmarks") for n in (name, module)]
            home = next((path for path in paths if f"{path}.py" in SOURCES or (ROOT / path).is_dir()), "")
            text = SOURCES[f"{home}.py"]
            assert home.endswith(thing) or re.search(rf"^(?:def |class )?{thing}\b", text, re.MULTILINE), (what, name)
        assert {*re.findall(r"`([^`]+)`", c)} <= known, what
        assert {*re.findall(r"`([^`]+)`", machines)} <= emulated, what
        assert c != "no" or machines == "no", what
        assert where in ("", "no") or "](" in where or "`tests/" in where, what


def test_what_pages_say_is_not_here_is_not():
    assert "lp" in FIT_MODELS and {"skfa", "rpcholesky"} <= set(METHODS)
    page = (ROOT / "docs" / "reference/rules.md").read_text(encoding="utf-8")
    assert "the default technique of all rules is `mklms`" in " ".join(page.split())
    defaults = {"kernel": {"sigma": 1.0}, "name": "m", "input": {"dim": 1}}
    for rule in ("klms", "qklms", "krls-t", "fb-krls"):
        assert make_spec(defaults | {"learning": {"rule": rule}}).reduction.technique == "mklms"


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        for file in re.findall(r"`((?:tests|benchmarks|pykernel|gen|runtime_c|targets)/[\w./-]+)`", text):
            assert (ROOT / file).exists(), f"{page.name}: {file}"


def explained(page, head):
    """The names in the first cells of the table that begins so; each has a remark in its last cell."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"\n| {head} | ")[2].split("\n\n")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines()[2:]]
    assert all(row[-1].strip() for row in rows)
    return sorted(name for row in rows for name in re.findall(r"`([\w-]+)`", row[0]))


def test_every_name_of_a_spec_is_explained_once():
    assert explained("reference/rules.md", "rule | what it does") == sorted(rules())
    assert explained("reference/rules.md", "technique | removes") == sorted(TECHNIQUES)
    assert explained("reference/rules.md", "projection | β") == sorted(PROJECTIONS)
    assert explained("reference/kernels.md", "`function` | k(a, b)") == sorted(FUNCTIONS)
    spec, bases = ((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("reference/spec.md", "bases.md"))
    assert all(re.search(rf"(`|^#+ ){method}\b", bases, re.MULTILINE) for method in METHODS)
    keys = (*nystrom.METHODS, *subspace.UPDATES, *subspace.STEPS, *subspace.BUDGETS)
    assert all(f'`"{name}"`' in spec for name in keys)


def test_the_glossary_explains_each_word_in_a_sentence():
    page = (ROOT / "docs" / "reference/glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", page, re.MULTILINE)[1:]
    words = [word for word, _ in rows]
    assert 30 < len(words) <= 60 and words == sorted(words, key=str.lower)
    assert all(said[0].isupper() and said.endswith(".") and ". " not in said for _, said in rows)


def test_every_page_is_reached_from_the_first_one():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    found = [path for folder in ("", "guide", "reference") for path in (ROOT / "docs" / folder).glob("*.md")]
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in found} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([\w/-]+\.md)", index))
    (first,) = re.findall(r"^## Which command do I need\?\n(.*?)^## ", index, re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"^\| (?!situation \|)\w", first, re.MULTILINE)) == 5


def test_anchors_of_the_first_pages_exist():
    """docs/README.md, the glossary and what is reproduced are links, most of all."""
    for page in (
        ROOT / "docs" / "README.md",
        ROOT / "docs" / "reference/glossary.md",
        *(ROOT / "docs").glob("paper-*.md"),
    ):
        for target, anchor in re.findall(r"\]\(([\w-]*(?:\.md)?)#([\w-]+)\)", page.read_text(encoding="utf-8")):
            text = (page.parent / target if target else page).read_text(encoding="utf-8")
            headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings}, (
                target,
                anchor,
            )


# ----------------------------------------------------------------------------------------------- for contributors

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in ("pykernel", "tests", "benchmarks", "examples", "website")
    for path in (ROOT / folder).rglob("*.py")
}
# prints the files of the walk whose functions run, in the order of the first call; of kernels, in the update that calls most
# files: simple predictors are models, too, and learn after the user's
TRACE = """
import importlib, sys
root, files, of_kernels, command = sys.argv[1], sys.argv[2].split(), sys.argv[3] == "kernels", sys.argv[4:]
for file in files:
    if file.endswith(".py"):
        importlib.import_module(file[:-3].replace("/", "."))
from pykernel.cli.app import main
wanted, each = {f"{root}/{file}": file for file in files}, [{}]
def look(frame, event, arg):
    if frame.f_code.co_filename in wanted:
        if of_kernels and frame.f_code.co_name == "update":
            each.append({})
        each[-1][wanted[frame.f_code.co_filename]] = None
sys.settrace(look)
try:
    main(command)
except SystemExit as stopped:
    sys.settrace(None)
    assert stopped.code == 0
print("TRACE", *max(reversed(each), key=len))
"""


def walk(heading: str, number: int = 0) -> list[str]:
    """The files of a table of steps below the heading, in their order."""
    part = CONTRIBUTING.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    text = re.split(r"\n\n(?=\| step \|)", part)[1 + number].split("\n\n")[0]
    return re.findall(r"`((?:pykernel|gen)/[\w./]+)`", text)


def traced(files: list[str], folder: Path, command: str, what: str = "") -> list[str]:
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("PYKERNEL_ENGINE")
    made = subprocess.run(
        [sys.executable, "-c", TRACE, str(ROOT), " ".join(files), what, *command.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    return re.findall(r"^TRACE (.*)", made.stdout, re.MULTILINE)[0].split()


@pytest.mark.exhaustive
def test_the_walks_are_what_the_commands_do(tmp_path):
    spec = 'name = "flow"\n\n[input]\ncolumns = ["temperature", "pressure", "valve"]\n\n[label]\ncolumn = "flow"\n'
    (tmp_path / "flow.toml").write_text(spec, encoding="utf-8")
    small = f"{spec}\n[kernel]\nsigma = 1.5\n\n[reduction]\nn_max = 4\n"
    (tmp_path / "small.toml").write_text(small, encoding="utf-8")
    rows = ["temperature,pressure,valve,flow", *(f"{np.sin(t)},{np.cos(t * t)},{t % 3},{t % 5}" for t in range(20))]
    (tmp_path / "recorded.csv").write_text("\n".join(rows), encoding="utf-8")
    for command, what, files in (
        ("simulate flow.toml recorded.csv --delay 3", "", walk("A sample through `simulate`")),
        ("simulate small.toml recorded.csv --engine python", "kernels", walk("A sample through `simulate`", 1)),
        ("generate flow.toml -o flow", "", walk("A spec through `generate`")),
    ):
        assert len(files) > 5
        assert traced(files, tmp_path, command, what) == files, command


def test_the_drawing_of_the_rooms_is_the_contract():
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = [room.split(".")[1] for layer in contract["layers"] for room in layer.split(" : ")]
    drawn = re.findall(r"^ {5}[│▼ ] {7}(\w+) ", CONTRIBUTING, re.MULTILINE)
    assert drawn == [room for room, _ in itertools.groupby(rooms)]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/decisions.md", "docs/dialect.md", "docs/bit-exactness.md"])
def test_what_pages_for_contributors_name_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/]+\.py)`", text):
        assert any(f"/{file}".endswith(f"/{name}") for file in SOURCES), name
    code = "\n".join(SOURCES.values())
    for name in set(re.findall(r"`(\w+)\(\)`", text)):
        assert "NAME" in name or re.search(rf"\bdef {name}\(", code), name
    for name in set(re.findall(r"`([A-Z][A-Z_]+)`", text)):
        assert name.startswith(("NAME", "CONFIG")) or re.search(rf"\b{name}\b", code), name
