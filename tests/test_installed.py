"""The wheel, installed where nothing of the project's tree is: what it holds, and that its commands work from there."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from pykernel.errors import EXTRAS
from tests.gen.test_sbom import misfit
from tests.release_check import FOLDERS, faults_of_wheel
from tests.support import ROOT
from tests.support.compilers import QUICK
from tests.support.interrupts import PATIENCE
from tests.test_release import requirements

SPEC = """
name = "thermo"

[input]
columns = ["a", "b"]

[label]
column = "y"

[learning]
rule = "nlms"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy: setuptools would leave its own there, and put what an older one left into the wheel."""
    source = tmp_path_factory.mktemp("source")
    for folder in FOLDERS.values():
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    # without isolation, which would download setuptools
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", source, source],
        check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    (found,) = source.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Run a command in a bare environment that has the wheel, and from this one its dependencies, but not its links to us."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place)
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel],
        check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    (site,) = (path for path in place.rglob("site-packages") if (path / "pykernel").is_dir())
    # .pth files are read of the environment's own folder alone: those of an editable install stay out
    borrowed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables["CC"] = " ".join(QUICK[0].command)

    def run(*words, code=None):
        command = [python, "-c", code] if code else [python.with_name("pykernel"), *words]
        done = subprocess.run(
            command, cwd=elsewhere, env=variables, check=False, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (elsewhere / "thermo.toml").write_text(SPEC)
    run.folder, run.site = elsewhere, site
    return run


def test_the_wheel_holds_every_file_of_every_room_and_nothing_else(wheel):
    assert not faults_of_wheel(wheel)


def test_the_wheel_says_what_it_holds_and_needs(wheel):
    """Its bill of materials is valid, and has each dependency once."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if "/sboms/" in name]
        text = archive.read(name).decode()
    assert misfit(text) is None
    parts = {each["bom-ref"]: each for each in json.loads(text)["components"]}
    assert len(parts) == len(json.loads(text)["components"])
    needed = {each["name"]: each["scope"] for each in parts.values() if each["type"] == "library"}
    for scope, listed in (("required", None), *(("optional", extra) for extra in EXTRAS)):
        assert {needed[need] for need in requirements(listed)} == {scope}, listed
    assert (ROOT / "pykernel" / "data" / "README.md").read_text(encoding="utf-8").count("licensed [CC BY 4.0]") == 1
    assert parts["pykernel/data/bikeshare.csv"]["licenses"] == [{"license": {"id": "CC-BY-4.0"}}]


RELATIVE = re.compile(r"\]\((?!https?:|#)")


def test_the_page_of_an_index_has_no_link_that_leads_nowhere(wheel):
    """An index shows the README without the project's other files."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        _, _, shown = archive.read(name).decode().partition("\n\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(RELATIVE.findall(readme)) > 20
    assert shown.startswith(readme.partition("\n")[0]) and not RELATIVE.search(shown)
    page = runpy.run_path(str(ROOT / "setup.py"))["page"]
    text = "[a\nb](docs/x.md#c) ![p](y.png) [z](https://w.example/q) [t](#t)"
    assert page(text, None) == "a\nb  [z](https://w.example/q) [t](#t)"
    found = page(text, "https://h.example/o/r/blob/main")
    assert (
        "[a\nb](https://h.example/o/r/blob/main/docs/x.md#c) ![p](https://h.example/o/r/blob/main/y.png) [z](" in found
    )
    assert not RELATIVE.search(page(readme, "https://h.example/o/r/blob/main"))


@pytest.mark.exhaustive
def test_commands_work_from_another_folder(installed):
    """Everything that they read is there: rooms, templates, C and targets."""
    code = "import pykernel, pykernel.gen.project, pykernel.targets.build as b; print(pykernel.__file__, b.__file__)"
    assert all(Path(path).is_relative_to(installed.site) for path in installed(code=code).split())
    installed("generate", "thermo.toml", "-o", "out")
    assert (installed.folder / "out" / "src" / "thermo.c").exists()
    assert "equal" in installed("check", "thermo.toml", "--samples", "200")
    assert "cortex-m4f" in installed("info")


@pytest.mark.exhaustive
def test_the_demo_works_from_another_folder(installed):
    assert "equal" in installed("demo")
