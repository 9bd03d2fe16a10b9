"""What a release says of itself: one version, dependencies and licences as they are, workflows whose commands exist."""

import os
import re
import shutil
import subprocess

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pykernel.errors import EXTRAS
from pykernel.spec.renamed import RENAMED
from tests.release_check import PINNED, PROJECT, TOOLS, VERSION
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
                assert (ROOT / file).is_file() and os.access(ROOT / file, os.X_OK), file


def jobs_of(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]


def commands(job):
    return [step.get("run", "") for step in job["steps"]]


def test_proofs_on_targets_are_not_skipped_where_it_counts():
    """Pull requests and nights have the toolchains, from one list; nobody else lists any."""
    for job, suite in ((jobs_of("tests")["newest"], ".ci/run"), (jobs_of("nightly")["exhaustive"], "make nightly")):
        assert commands(job).index(".ci/toolchains") < commands(job).index(suite)
    assert not [path for path in WORKFLOWS if "apt-get" in path.read_text(encoding="utf-8")]
    listed = (ROOT / ".ci" / "toolchains").read_text(encoding="utf-8")
    assert {"gcc-arm-none-eabi", "gcc-riscv64-unknown-elf", "gcc-avr", "simavr", "qemu-system-arm"} <= set(
        listed.split()
    )


def test_a_release_needs_the_tests_and_a_night_of_the_same_tree():
    jobs = jobs_of("release")
    assert set(jobs["publish"]["needs"]) == {"tests", "nightly", "build"} == set(jobs) - {"publish"}
    (asked,) = commands(jobs["nightly"])
    # --status success of the very commit, and a failure where there is none
    assert '--workflow nightly.yml --commit "$GITHUB_SHA" --status success' in asked
    assert not any("continue-on-error" in job or "if" in job for job in jobs.values())


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize(("runs", "code"), [("0", 1), ("1", 0), ("", 2)])
def test_without_a_green_night_there_is_no_release(runs, code, tmp_path):
    """The job's own script, with a gh that says how many runs there are; nothing, if GitHub does not answer."""
    (asked,) = commands(jobs_of("release")["nightly"])
    gh = tmp_path / "gh"
    gh.write_text(f"#!/bin/sh\nprintf '%s' '{runs}'\n", encoding="utf-8")
    gh.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_SHA": "0" * 40}
    done = subprocess.run(["bash", "-e", "-c", asked], env=environment, capture_output=True)
    assert done.returncode == code, done


def test_what_builds_a_release_is_pinned_by_digest():
    lines = TOOLS.read_text(encoding="utf-8").splitlines()
    assert lines[0] == PINNED
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+) --hash=sha256:[0-9a-f]{64}", line) for line in lines[1:]]
    assert all(found)
    versions = {canonicalize_name(match[1]): match[2] for match in found}
    assert "build" in versions
    for need in map(Requirement, PROJECT["build-system"]["requires"]):
        assert need.specifier.contains(versions[canonicalize_name(need.name)])
