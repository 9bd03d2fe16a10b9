"""What a release says of itself: one version, dependencies and licences as they are, workflows whose commands exist."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pykernel.errors import EXTRAS
from tests import release_check
from tests.release_check import PINNED, PROJECT, TOOLS, VERSION
from tests.support import DOCS, ROOT
from tests.support.tools import needs

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SOURCES = [*(ROOT / "pykernel").rglob("*.*")]


def test_the_version_stands_in_one_place():
    """Others quote it: a citation, the changelog, and what was generated."""
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == VERSION
    assert f"/pykernel_mcu-{VERSION}-py3-none-any.whl[" in (ROOT / "docs" / "guide" / "install.md").read_text(
        encoding="utf-8"
    )
    newest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert newest in (VERSION, "Unreleased")
    for path in SOURCES:
        if path.suffix in (".py", ".toml", ".h", ".c", ".md"):
            assert not re.search(rf"\b{re.escape(VERSION)}\b", path.read_text(encoding="utf-8")), path


def requirements(extra=None):
    project = PROJECT["project"]
    listed = project["optional-dependencies"][extra] if extra else project["dependencies"]
    found = {canonicalize_name(need.name): need for need in map(Requirement, listed)}
    return {name: need for name, need in found.items() if name != "pykernel-mcu"}


PINS = dict(
    line.split("==")
    for line in (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").split()
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
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False  # what runs later needs no password
            for target in re.findall(r"make ([a-z-]+)", step.get("run", "")):
                assert target in made, target
            for file in re.findall(r"^\.\S+", step.get("run", "")):
                assert (ROOT / file).is_file() and os.access(ROOT / file, os.X_OK), file


def jobs_of(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]


def commands(job):
    return [step.get("run", "") for step in job["steps"]]


def test_proofs_on_targets_are_not_skipped_where_it_counts():
    """Every job that runs the suite has the toolchains, from one list; nobody else lists any."""
    suites = {".ci/run", "make test", "make nightly THIRD=all"}
    runs = [commands(job) for path in WORKFLOWS for job in jobs_of(path.stem).values() if "steps" in job]
    running = [(each, suite) for each in runs for suite in suites & set(each)]
    assert {suite for _, suite in running} == suites and len(running) == 3
    assert all(each.index(".ci/toolchains") < each.index(suite) for each, suite in running)
    assert not [path for path in WORKFLOWS if "apt-get" in path.read_text(encoding="utf-8")]
    listed = (ROOT / ".ci" / "toolchains").read_text(encoding="utf-8")
    assert {"gcc-arm-none-eabi", "gcc-riscv64-unknown-elf", "gcc-avr", "simavr", "qemu-system-arm"} <= set(
        listed.split()
    )


def test_a_release_needs_the_tests_and_a_night_of_the_same_tree():
    jobs = jobs_of("release")
    assert set(jobs["publish"]["needs"]) == {"tests", "nightly", "build", "try"} == set(jobs) - {"publish"}
    (asked,) = commands(jobs["nightly"])
    # --status success of the very commit, and a failure where there is none
    assert '--workflow nightly.yml --commit "$GITHUB_SHA" --status success' in asked
    assert not any("continue-on-error" in job or "if" in job for job in jobs.values())


@needs("bash")
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


def step_named(job, name):
    (found,) = [step for step in job["steps"] if step.get("name") == name]
    return found


def run_step(step, **variables):
    """As GitHub runs a step on Linux."""
    where = variables.pop("cwd")
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=where, env=os.environ | variables, capture_output=True, text=True
    )


def test_what_builds_a_release_is_pinned_by_digest():
    lines = TOOLS.read_text(encoding="utf-8").splitlines()
    assert lines[0] == PINNED
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+) --hash=sha256:[0-9a-f]{64}", line) for line in lines[1:]]
    assert all(found)
    versions = {canonicalize_name(match[1]): match[2] for match in found}
    assert "build" in versions
    for need in map(Requirement, PROJECT["build-system"]["requires"]):
        assert need.specifier.contains(versions[canonicalize_name(need.name)])


def test_where_a_release_is_built_nothing_else_runs(monkeypatch, tmp_path):
    """Python, and what is pinned by digest: no test, no dependency, nothing that pip takes from the index as it is today."""
    build = jobs_of("release")["build"]
    assert [step["uses"].split("@")[0] for step in build["steps"] if "uses" in step] == [
        "actions/checkout",
        "actions/setup-python",
        "actions/upload-artifact",
    ]
    script = "python3 -m tests.release_check --build"
    assert [run for run in commands(build) if run and not run.startswith(("grep ", "digests="))] == [script]
    # -S: without the packages that are installed here
    without = [sys.executable, "-S", "-m", "tests.release_check", "--help"]
    subprocess.run(without, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    called = []

    def call(*command, cwd, **variables):
        called.append([str(each) for each in command])
        if "build" in called[-1]:
            (tmp_path / "dist").mkdir()
            for name in ("a.whl", "a.tar.gz"):
                (tmp_path / "dist" / name).touch()
        return ""

    monkeypatch.setattr(release_check, "call", call)
    release_check.build(tmp_path, tmp_path / "kept")
    (venv, pip, builds) = [command[1:] for command in called]
    assert venv[:2] == ["-m", "venv"]
    assert pip[:3] == ["-m", "pip", "install"] and {"--require-hashes", "--only-binary"} < set(pip)
    assert pip[-2:] == ["-r", str(TOOLS)]
    assert builds[:3] == ["-m", "build", "--no-isolation"]


def test_only_a_wheel_and_an_sdist_are_tried(tmp_path):
    for name in ("a.whl", "a.tar.gz"):
        with pytest.raises(SystemExit, match="has to hold one wheel, one sdist and nothing else"):
            release_check.built(tmp_path)
        (tmp_path / name).touch()
    assert release_check.built(tmp_path) == (tmp_path / "a.whl", tmp_path / "a.tar.gz")
    (tmp_path / "b.txt").touch()
    with pytest.raises(SystemExit, match=re.escape("holds ['a.tar.gz', 'a.whl', 'b.txt']")):
        release_check.built(tmp_path)


def spoil(dist, how):
    if how == "changed":
        (dist / "a.whl").write_bytes(b"wheel!")
    elif how == "added":
        (dist / "b.whl").write_bytes(b"wheel")
    elif how == "lost":
        (dist / "a.tar.gz").unlink()
    elif how == "renamed":
        (dist / "a.whl").rename(dist / "b.whl")


@needs("bash", "sha256sum")
@pytest.mark.parametrize("job", ["try", "publish"])
def test_what_is_tried_and_published_are_the_files_that_were_built(job, tmp_path):
    """The workflow's own scripts: digests pass from job to job beside the files, and are compared before anything is done."""
    jobs = jobs_of("release")
    dist, output = tmp_path / "dist", tmp_path / "output"
    dist.mkdir()
    (dist / "a.whl").write_bytes(b"wheel")
    (dist / "a.tar.gz").write_bytes(b"sdist")
    done = run_step(step_named(jobs["build"], "Digests"), cwd=dist, GITHUB_OUTPUT=str(output))
    assert done.returncode == 0, done
    name, _, rest = output.read_text().partition("<<END\n")
    digests, _, nothing = rest.partition("\nEND\n")
    assert not nothing and len(digests.splitlines()) == 2
    assert jobs["build"]["outputs"] == {name: "${{ steps.digests.outputs.digests }}"}

    steps = jobs[job]["steps"]
    compare = step_named(jobs[job], "The files that were built")
    assert compare["env"] == {"DIGESTS": "${{ needs.build.outputs.digests }}"} and "build" in jobs[job]["needs"]
    (download,) = [step for step in steps if step.get("uses", "").startswith("actions/download-artifact@")]
    (upload,) = [step for step in jobs["build"]["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
    assert {key: upload["with"][key] for key in ("name", "path")} == download["with"]
    assert compare["working-directory"] == download["with"]["path"] == "dist"
    # nothing comes between: right after the comparison the files are used
    assert steps.index(download) + 1 == steps.index(compare) == len(steps) - 2
    for how, equal in {"as built": True, "changed": False, "added": False, "lost": False, "renamed": False}.items():
        copied = tmp_path / how
        shutil.copytree(dist, copied)
        spoil(copied, how)
        assert (run_step(compare, cwd=copied, DIGESTS=digests).returncode == 0) == equal, how
    (tmp_path / "empty").mkdir()
    assert run_step(compare, cwd=tmp_path / "empty", DIGESTS="").returncode != 0
