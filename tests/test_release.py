"""What a release says of itself: one version, dependencies and licences as they are, workflows whose commands exist."""

import re

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pykernel.errors import EXTRAS
from pykernel.spec.renamed import RENAMED
from tests.release_check import PROJECT, VERSION
from tests.support import DOCS, ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SOURCES = [path for folder in ("pykernel", "gen", "targets", "runtime_c") for path in (ROOT / folder).rglob("*.*")]


def test_the_version_stands_in_one_place():
    """Others quote it: a citation, the changelog, and what was generated."""
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == VERSION
    assert f"/pykernel_mcu-{VERSION}-py3-none-any.whl[" in (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert newest in (VERSION, "Unreleased")
    for path in SOURCES:
        if path.suffix in (".py", ".toml", ".h", ".c", ".md") and "golden" not in path.parts:
            assert not re.search(rf"\b{re.escape(VERSION)}\b", path.read_text(encoding="utf-8")), path


def test_whatever_was_renamed_is_in_the_page_of_migration():
    page = (DOCS / "migration.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `[")]
    for (section, key, *value), new in RENAMED.items():
        before = f'`{key} = "{value[0]}"' if value and value[0] != "votes" else '"votes"' if value else f"`{key}`"
        (now,) = [row[2] for row in rows if f"[{section}]" in row[0] and before in row[1]]
        assert new in now, (section, key)


def requirements(extra=None):
    project = PROJECT["project"]
    listed = project["optional-dependencies"][extra] if extra else project["dependencies"]
    found = {canonicalize_name(need.name): need for need in map(Requirement, listed)}
    return {name: need for name, need in found.items() if name != "pykernel-mcu"}


PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints" / "oldest.txt").read_text(encoding="utf-8").split()
    if re.match(r"[a-z0-9-]+==", line)
)


@pytest.mark.parametrize("extra", [None, *PROJECT["project"]["optional-dependencies"]])
def test_the_oldest_versions_are_those_that_are_tested(extra):
    for name, need in requirements(extra).items():
        (least,) = [bound.version for bound in need.specifier if bound.operator == ">="]
        assert PINS[name] == least or PINS[name].startswith(f"{least}."), f"{need}, but {name}=={PINS[name]} is tested"
        assert need.specifier.contains(PINS[name])


def test_every_dependency_has_its_licence():
    rows = re.findall(
        r"^\| (\S+) \| (.+) \| (.+) \|$", (DOCS / "licences.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    where = {name: comes.replace("`", "").split(", ") for name, _, comes in rows}
    for extra in (None, *EXTRAS):
        for name in requirements(extra):
            assert {extra or "always", "always"} & set(where.get(name, ())), f"{name}: run make licences"
    assert {name for name, licence, _ in rows if "GPL" in licence} == {"unicorn"}
    assert not [name for name, licence, _ in rows if licence == "not said"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_exists(path):
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(content) == {"name", True, "permissions", "jobs"}  # `on` is true in YAML 1.1
    for job in content["jobs"].values():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
        for step in job.get("steps", ()):
            if "uses" in step:
                assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
            for target in re.findall(r"make ([a-z-]+)", step.get("run", "")):
                if target == "site" and not (ROOT / "mkdocs.yml").exists():
                    pytest.skip("the site comes with mkdocs.yml")
                assert target in made, target
            for file in re.findall(r"^\.\S+", step.get("run", "")):
                assert (ROOT / file).is_file(), file
