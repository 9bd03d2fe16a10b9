"""The rooms: what is installed is what is on disk, and a module imports from its own room and from lower ones only."""

import ast
import graphlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

from tests.support.interrupts import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
(CONTRACT,) = SETTINGS["importlinter"]["contracts"]
LAYERS = [[room.strip() for room in layer.split(":")] for layer in CONTRACT["layers"]]
LINT = "import sys; from importlinter.cli import lint_imports_command as main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def graph():
    """Who imports whom, in functions as well."""
    return grimp.build_graph("pykernel", cache_dir=None)


def in_room(module, room):
    return module == room or module.startswith(f"{room}.")


def test_every_module_has_one_room(graph):
    # the package itself gives names to all rooms; the others hold no code
    outside = {"pykernel", "pykernel.__main__", "pykernel.data", "pykernel.spec"}
    rooms = [room for layer in LAYERS for room in layer]
    for module in graph.modules - outside:
        assert sum(in_room(module, room) for room in rooms) == 1, module
    for room in rooms:
        assert room in graph.modules, room
    for module in outside - {"pykernel", "pykernel.__main__"}:
        assert not graph.find_modules_directly_imported_by(module), module


def test_no_imports_in_a_circle(graph):
    assert "ignore_imports" not in CONTRACT
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert sum(map(len, imports.values())) > 700
    graphlib.TopologicalSorter(imports).prepare()  # CycleError names the circle


def lint(tree):
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=tree, env=os.environ | {"PYTHONPATH": ""}, check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


def test_imports_lead_down(tmp_path):
    done = lint(ROOT)
    assert done.returncode == 0 and "1 kept, 0 broken" in done.stdout, done.stdout
    # one that leads up, however late it is, is found
    shutil.copytree(ROOT / "pykernel", tmp_path / "pykernel", ignore=shutil.ignore_patterns("__pycache__"))
    errors = tmp_path / "pykernel" / "errors.py"
    errors.write_text(
        errors.read_text(encoding="utf-8")
        + "\n\ndef late():\n    from pykernel.targets import build\n\n    return build\n"
    )
    done = lint(tmp_path)
    assert done.returncode == 1 and "pykernel.errors -> pykernel.targets.build" in done.stdout, done.stdout


def test_every_folder_with_code_is_a_package():
    """setuptools finds them; tests/test_installed.py compares the wheel with the folders, file by file."""
    for file in (ROOT / "pykernel").rglob("*.py"):
        assert (file.parent / "__init__.py").exists(), file


def test_the_protocol_is_the_frames():
    """A rule brings what is its own: what every model promises stands in the frame, once."""
    names = {"predict", "classify", "probability", "take", "follow", "rehearse", "restart", "freeze", "refusal"}
    names |= {f"update{kind}" for kind in ("", "_many", "_class", "_alone")}
    found = [
        f"{path.name}: {node.name}"
        for path in (ROOT / "pykernel" / "algorithms").rglob("*.py")
        if path.parts[-2:] != ("algorithms", "frame.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    assert not found
