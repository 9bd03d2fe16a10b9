"""A release as its users get it: wheel and sdist, built of what git lists, looked into, installed outside of the tree, tried there.

    python -m tests.release_check [--build | --try] [--python python3.12 ...] [--constraints .ci/oldest.txt] [--dist dist]
    python -m tests.release_check --pin

For each Python the wheel runs the demo in a fresh environment without extras, then a part of the suite. What pip builds of the
sdist must be the wheel's files, byte for byte, and run the demo, too.  Needs a C compiler and the package index.

What builds both is in .ci/build.txt, with versions and digests; --pin writes the newest ones there.  This script needs
nothing but Python: so nothing else runs where the files of a release are built (--build) before others try them (--try).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
LICENCES = PROJECT["project"]["license-files"]
LARGEST = 5 * 2**20
"""Most bytes of a wheel or an sdist: more means that something got in."""
TOOLS = ROOT / ".ci" / "build.txt"
PINNED = "# What builds a release: python -m tests.release_check --pin"
SUITE = (
    "test_public_api.py",
    "dialect/test_semantics.py",
    "engine/test_jitted.py",
    "estimators/test_estimators.py",
    "gen/test_golden.py",
    "host/test_snapshot.py",
    "spec/test_spec.py",
)
"""Every engine, the generator's bytes, compilers, scikit-learn: in about a minute."""


FOLDERS = {"pykernel": "pykernel"} | {
    package.replace(".", "/"): folder for package, folder in PROJECT["tool"]["setuptools"]["package-dir"].items()
}
"""Where a folder of the project is installed -> the folder."""


def files_of(folder: str) -> set[str]:
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(ROOT / folder).as_posix() for path in files}


def as_installed(place: Path) -> Path:
    """A copy of the package, with all folders where pip puts them."""
    for inside, folder in FOLDERS.items():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, place / inside, ignore=ignored, dirs_exist_ok=True)
    return place / "pykernel"


def faults_of_wheel(wheel: Path) -> list[str]:
    """What a wheel lacks of the packages' files and the licences, and what it has beside them."""
    names = set(zipfile.ZipFile(wheel).namelist())
    about = f"pykernel_mcu-{VERSION}.dist-info"
    wanted = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt")}
    wanted |= {f"{about}/licenses/{name}" for name in LICENCES} | {f"{about}/sboms/pykernel-mcu.cdx.json"}
    package = {f"{inside}/{file}" for inside, folder in FOLDERS.items() for file in files_of(folder)}
    return differences(wheel, names, wanted | package)


def faults_of_sdist(sdist: Path) -> list[str]:
    """As of a wheel: an sdist has what the wheel is built of, and no tests, pages or results."""
    with tarfile.open(sdist) as archive:
        files = {PurePosixPath(member.name) for member in archive if member.isfile()}
    names = {path.relative_to(sdist.name.removesuffix(".tar.gz")) for path in files}
    made = {path for path in names if "pykernel_mcu.egg-info" in path.parts}
    wanted = {"pyproject.toml", "setup.py", "README.md", "MANIFEST.in", "PKG-INFO", "setup.cfg", *LICENCES}
    package = {f"{folder}/{file}" for folder in FOLDERS.values() for file in files_of(folder)}
    return differences(sdist, {str(path) for path in names - made}, wanted | package)


def differences(file: Path, names: Collection[str], wanted: Collection[str]) -> list[str]:
    found = [f"{file.name} lacks {name}" for name in sorted(set(wanted) - set(names))]
    found += [f"{file.name} has {name}, too" for name in sorted(set(names) - set(wanted))]
    if file.stat().st_size > LARGEST:
        found.append(f"{file.name} has {file.stat().st_size:,} bytes")
    return found


def call(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command without this environment's variables.  Ends the program with its output if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PIP_"))}
    done = subprocess.run(
        command, cwd=cwd, env=kept | variables, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


def build(place: Path, dist: Path) -> tuple[Path, Path]:
    """Wheel and sdist of a copy of the files that git lists: what an earlier build left in the tree stays out."""
    source, tools = place / "source", place / "tools"
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    python = environment(tools, sys.executable)
    call(python, "-m", "pip", "install", "-q", "--require-hashes", "--only-binary", ":all:", "-r", TOOLS, cwd=place)
    # without isolation: with it, pip would fetch whatever is newest
    call(python, "-m", "build", "--no-isolation", "-o", place / "dist", source, cwd=place)
    (wheel,), (sdist,) = (place / "dist").glob("*.whl"), (place / "dist").glob("*.tar.gz")
    dist.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(wheel, dist)), Path(shutil.copy(sdist, dist))


def built(dist: Path) -> tuple[Path, Path]:
    """Wheel and sdist that were built before.  Ends the program if the folder holds other files, or more."""
    wheels, sdists, files = list(dist.glob("*.whl")), list(dist.glob("*.tar.gz")), list(dist.glob("*"))
    if (len(wheels), len(sdists), len(files)) != (1, 1, 2):
        sys.exit(f"{dist} has to hold one wheel, one sdist and nothing else, but holds {sorted(p.name for p in files)}")
    return wheels[0], sdists[0]


def pin() -> str:
    """What builds a release, as pip would take it now, with versions and digests: the lines of .ci/build.txt."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
    report = call(*command, "-qq", "--report", "-", "build", *PROJECT["build-system"]["requires"], cwd=ROOT)
    found = {}
    for each in json.loads(report[report.index("{") :])["install"]:
        name, version = each["metadata"]["name"], each["metadata"]["version"]
        found[name] = f"{name}=={version} --hash=sha256:{each['download_info']['archive_info']['hashes']['sha256']}"
    return "\n".join([PINNED, *(found[name] for name in sorted(found)), ""])


def environment(place: Path, python: str) -> Path:
    """The Python of a fresh environment."""
    call(python, "-m", "venv", place, cwd=place.parent)
    return place / ("Scripts" if os.name == "nt" else "bin") / "python"


def installed(python: Path) -> dict[str, bytes]:
    """The files of the package, as they were installed."""
    where = Path(call(python, "-c", "import pykernel; print(pykernel.__path__[0])", cwd=python.parent).strip())
    assert where.is_relative_to(python.parent.parent), where
    files = (path for path in where.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(where).as_posix(): path.read_bytes() for path in files}


def demo(python: Path, place: Path) -> None:
    cache = place / "cache"
    assert f"pykernel {VERSION}" in call(python.with_name("pykernel"), "--version", cwd=place)
    told = call(python.with_name("pykernel"), "demo", cwd=place, XDG_CACHE_HOME=str(cache))
    assert "equal" in told and (place / "pykernel-demo" / "bikeshare" / "src" / "bikeshare.c").is_file(), told


def suite(python: Path, place: Path) -> str:
    """The last line of the part of the suite, run beside copies of the tests and the pages, and nothing else."""
    copied = place / "suite"
    shutil.copytree(ROOT / "tests", copied / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", copied / "docs", ignore=shutil.ignore_patterns("data"))  # whose examples tests run
    shutil.copy(ROOT / "pyproject.toml", copied)  # pytest's settings
    files = [f"tests/{name}" for name in SUITE]
    told = call(python, "-m", "pytest", "-n", "2", *files, cwd=copied, XDG_CACHE_HOME=str(place / "cache"))
    return told.strip().splitlines()[-1]


def tried(wheel: Path, sdist: Path, interpreter: str, constraints: Sequence[str], place: Path) -> None:
    """Install both files, and try them.  Ends the program if something fails."""
    shown = call(interpreter, "--version", cwd=place).strip()
    files = []
    for file in (wheel, sdist):
        begin = time.monotonic()
        folder = place / file.suffix[1:]
        folder.mkdir()
        python = environment(folder / "venv", interpreter)
        call(python, "-m", "pip", "install", "-q", *constraints, file, cwd=folder)
        files.append(installed(python))
        demo(python, folder)
        print(f"{shown}, {file.name}: installed, the demo ran, {time.monotonic() - begin:.0f} s", flush=True)
        if file is wheel:
            begin = time.monotonic()
            tools = [
                need
                for need in PROJECT["project"]["optional-dependencies"]["test"]
                if need.startswith(("pytest", "hypothesis", "pandas"))
            ]
            call(python, "-m", "pip", "install", "-q", *constraints, f"{file}[sklearn]", *tools, cwd=folder)
            print(f"{shown}, {file.name}: {suite(python, folder)}, {time.monotonic() - begin:.0f} s", flush=True)
    assert files[0] == files[1], "the sdist installs other files than the wheel"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters [this one]")
    parser.add_argument("--constraints", type=Path, help="pip's constraints for what is installed beside")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder for the two files [dist]")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--build", action="store_true", help="build both files and look into them, and nothing else")
    only.add_argument("--try", action="store_true", dest="built", help="build nothing: try the two files in the folder")
    only.add_argument("--pin", action="store_true", help="write .ci/build.txt anew, and nothing else")
    given = parser.parse_args()
    if given.pin:
        TOOLS.write_text(pin(), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel, sdist = built(given.dist) if given.built else build(place, given.dist)
        if faults := faults_of_wheel(wheel) + faults_of_sdist(sdist):
            sys.exit("\n".join(faults))
        print(*(f"{file.name}: {file.stat().st_size:,} bytes" for file in (wheel, sdist)), sep="\n", flush=True)
        constraints = ["-c", str(given.constraints.resolve())] if given.constraints else []
        for number, interpreter in enumerate([] if given.build else given.python):
            (place / str(number)).mkdir()
            tried(wheel.resolve(), sdist.resolve(), interpreter, constraints, place / str(number))


if __name__ == "__main__":
    main()
