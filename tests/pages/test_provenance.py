"""Results know where they come from: what changed since they were measured is found, and what only moved is not."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys

import pytest

from benchmarks import provenance
from benchmarks.provenance import Result, Tree, bits_digest, c_digest
from benchmarks.results import MODELS, TREE
from pykernel.algorithms.revisions import RAISED, Revision
from pykernel.errors import UserError
from pykernel.spec.model import load_spec
from tests.release_check import as_installed
from tests.support import ROOT

SCRIPT = """
'''Writes one, two.'''
from pathlib import Path
from benchmarks.sums import total
Path("docs/data/numbers.csv").write_text(f"{total(1, 2)}\\n")
"""


@pytest.fixture
def tree(tmp_path):
    """A script that imports another, and measures a module and a golden model; recorded."""
    for folder in ("benchmarks", "pykernel/bases", "docs/data"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "benchmarks" / "numbers.py").write_text(SCRIPT)
    (tmp_path / "benchmarks" / "sums.py").write_text("def total(a, b):\n    return a + b\n")
    (tmp_path / "benchmarks" / "tables.py").write_text("")
    (tmp_path / "pykernel" / "bases" / "gram.py").write_text("def gram(a):\n    '''G.'''\n    return a * a\n")
    (tmp_path / "docs" / "data" / "numbers.csv").write_text("3\n")
    (tmp_path / "docs" / "records.md").write_text("")
    shutil.copy(ROOT / "tests" / "golden" / "pressure.toml", tmp_path / "level.toml")
    result = Result("-m benchmarks.numbers", ("*.csv",), ("level",), ("pykernel.bases",))

    def level():
        return [load_spec(tmp_path / "level.toml")]

    made = Tree(tmp_path, {"numbers": result}, {"level": level})
    made.record("numbers")
    assert made.stale("numbers") == []
    c_digest.cache_clear()
    bits_digest.cache_clear()
    return made


def change(tree, name, old, new):
    path = tree.root / name
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    c_digest.cache_clear()
    bits_digest.cache_clear()


@pytest.mark.parametrize(
    ("name", "old", "new", "found"),
    [
        ("benchmarks/numbers.py", "total(1, 2)", "total(1, 3)", "the script"),
        ("benchmarks/sums.py", "a + b", "a - b", "the script"),
        ("pykernel/bases/gram.py", "a * a", "a + a", "pykernel.bases"),
        ("level.toml", "dim = ", "dim = 1", "the bits of level"),
        ("docs/data/numbers.csv", "3", "4", "numbers.csv (by hand)"),
    ],
)
def test_a_change_is_found(tree, name, old, new, found):
    change(tree, name, old, new)
    assert tree.stale("numbers") == [f"changed: {found}"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("benchmarks/numbers.py", "Writes one, two.", "Writes three."),
        ("benchmarks/numbers.py", "\nPath", "\n\n# where it lies\nPath"),
        ("pykernel/bases/gram.py", "'''G.'''", "'''The Gram matrix.'''"),
        ("level.toml", "dim", "# of the tank\ndim"),
    ],
)
def test_words_are_no_change(tree, name, old, new):
    change(tree, name, old, new)
    assert tree.stale("numbers") == []


def test_c_that_computes_the_same_counts_where_cost_is_measured(tree, monkeypatch):
    costs = Tree(tree.root, {"numbers": dataclasses.replace(tree.results["numbers"], cost=True)}, tree.models)
    original, before = provenance.c_of, tree.records.read_bytes()
    costs.record("numbers")
    monkeypatch.setattr(provenance, "c_of", lambda spec: original(spec) + " in other words")
    c_digest.cache_clear()
    assert costs.stale("numbers") == ["changed: the C of level"]
    tree.records.write_bytes(before)
    assert tree.stale("numbers") == []
    # an algorithm's revision speaks for longer streams than this one
    monkeypatch.setitem(RAISED, "klms", Revision(bits=9))
    bits_digest.cache_clear()
    monkeypatch.setattr(provenance, "c_of", original)
    c_digest.cache_clear()
    assert tree.stale("numbers") == ["changed: the bits of level"]


def test_what_is_missing_is_said(tree):
    (tree.data / "numbers.csv").unlink()
    assert "docs/data has no *.csv" in tree.stale("numbers")[0]
    shutil.rmtree(tree.root / "pykernel" / "bases")
    tree.data.joinpath("numbers.csv").write_text("3\n")
    assert "there is no module pykernel.bases" in tree.stale("numbers")[0]
    tree.records.unlink()
    assert tree.stale("numbers") == ["it was never recorded"]


def test_measuring_again_records(tree):
    change(tree, "benchmarks/sums.py", "a + b", "a * b")
    tree.remeasure("numbers")
    assert (tree.data / "numbers.csv").read_text() == "2\n"
    assert tree.stale("numbers") == []


def test_a_script_that_fails_or_writes_elsewhere_records_nothing(tree):
    before = tree.records.read_bytes()
    change(tree, "benchmarks/numbers.py", "docs/data/numbers.csv", "docs/numbers.csv")
    with pytest.raises(UserError, match=r"did not write docs/data/numbers\.csv"):
        tree.remeasure("numbers")
    change(tree, "benchmarks/sums.py", "return a + b", "raise SystemExit(3)")
    with pytest.raises(UserError, match="failed; its record stays as it was"):
        tree.remeasure("numbers")
    assert tree.records.read_bytes() == before
    (tree.data / "stray.png").write_bytes(b"")
    assert tree.unclaimed() == ["stray.png"]


# ------------------------------------------------------------------------------------------------ the real ones


def test_every_file_in_docs_data_has_a_record():
    assert TREE.unclaimed() == []
    records = TREE.recorded()
    assert set(records) == set(TREE.results)
    for name, result in TREE.results.items():
        assert records[name]["command"] == result.command, name
        assert TREE.contents(result.outputs) == records[name].get("outputs", {}), f"{name}: edited by hand"
        assert set(records[name].get("code", ())) == set(result.code), name


def test_records_are_what_their_commit_has():
    """The script that measured a record, and the very files: nobody edits them afterwards."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True)

    if git("rev-parse", "--is-shallow-repository").stdout.strip() != b"false":
        pytest.skip("needs the repository with its history")
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [\w-]+: `(\S+).*?` \| .*? \| [\d-]+ \| `(\w+)` \| (.*?) \|$", page, re.MULTILINE)
    assert len(rows) == len(TREE.measured_once()) == page.count("\n| ") - 1 > 30
    for script, commit, files in rows:
        path = f"benchmarks/{script.replace('.', '/')}.py"
        assert git("cat-file", "-e", f"{commit}:{path}").returncode == 0, (path, commit)
        for path in TREE.files(re.findall("`(.+?)`", files)):
            name = path.relative_to(ROOT).as_posix()
            assert git("show", f"{commit}:{name}").stdout == path.read_bytes(), (name, commit)


def test_every_script_that_writes_results_is_listed():
    """Scripts of benchmarks/ that name docs/data are those of the results; the rest only prints or helps."""
    commands = " ".join(result.command for result in TREE.results.values())
    listed = {word for word in commands.split() if word.startswith("benchmarks.")}
    for path in sorted((ROOT / "benchmarks").glob("*/*.py")):
        text, name = path.read_text(encoding="utf-8"), ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if "import DATA" in text and "__main__" in text:
            assert name in listed, name


DIGEST = "import sys; from benchmarks.results import MODELS; from benchmarks.provenance import c_digest, digest\n"
DIGEST += "import pykernel; print(pykernel.__file__, c_digest(MODELS['kernels']))"


@pytest.mark.exhaustive
def test_moving_a_module_changes_no_digest_of_c_and_a_changed_formula_does(tmp_path):
    """A copy of everything that generates code, in which the module of elementary functions moves."""
    as_installed(tmp_path)
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))

    def found():
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        place, value = done.stdout.split()
        assert place.startswith(str(tmp_path))
        return value

    before = c_digest(MODELS["kernels"])
    old, new = (tmp_path / "pykernel" / "algorithms" / part / "elementary.py" for part in ("", "online"))
    old.rename(new)
    for path in tmp_path.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        moved = text.replace("pykernel.algorithms.elementary", "pykernel.algorithms.online.elementary")
        moved = re.sub(
            "from pykernel.algorithms import elementary(, )?(?(1)(.*))",
            lambda found: (
                "from pykernel.algorithms.online import elementary"
                + (f"\nfrom pykernel.algorithms import {found[2]}" if found[1] else "")
            ),
            moved,
        )
        if moved != text:
            path.write_text(moved, encoding="utf-8")
    assert found() == before
    text = new.read_text(encoding="utf-8")
    assert text.count("high = x - real(k) * LN2_HIGH") == 1
    new.write_text(text.replace("high = x - real(k)", "high = x + real(k)"), encoding="utf-8")
    assert found() != before


def test_doit_knows_all_results_and_all_tests():
    """What `make remeasure` and `make nightly` go through."""
    done = subprocess.run(
        [sys.executable, "-m", "doit", "list", "--all", "--quiet"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    listed = set(done.stdout.split())
    files = (path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    wanted = {f"nightly:{name}" for name in files} | {f"remeasure:{name}" for name in TREE.results}
    assert listed == wanted | {"nightly", "remeasure"}
