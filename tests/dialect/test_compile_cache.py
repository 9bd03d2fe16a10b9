"""The cache of compiled kernels: damaged in whatever way, it is discarded with one line and compiled again."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from pykernel.dialect import reachable
from pykernel.spec.model import FAMILIES
from tests.support.interrupts import PATIENCE, ROOT

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the cache's place is set by XDG_CACHE_HOME, and processes are forked"
)

TOY = """
from pykernel.dialect import DIM, Real, driver, entry, kernel, real

@kernel
def doubled(x: Real) -> Real:
    return x * real(2)

@entry
def shifted(x: Real) -> Real:
    return doubled(x) + real(100)

@entry
def compute(x: Real) -> Real:
    return shifted(x) + real(1)

@driver
def total(x):
    y = real(0)
    for i in range(len(x)):
        y += compute(x[i])
    return y
"""
"""Two that are compiled on their own, one of which is called by address, and a loop that has several signatures."""

FUZZ = """
import json, os, sys, traceback
from pathlib import Path
import numba, numpy as np
import pykernel.dialect.compile_cache, pykernel.dialect.numba_structs  # once, and not in each process
import toy
from pykernel.dialect import FLOAT32, bind

def computed():
    # what a new process finds: its result, hits and misses, and what it says; or how it died
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writes, 2)
        code = 1
        try:
            total = bind(toy.total, FLOAT32)
            results = [float(total(np.ones(3, kind))) for kind in (np.float32, np.float64)]
            stats = [bind(f, FLOAT32).stats for f in (toy.shifted, toy.compute, toy.total)]
            told = [sum(sum(getattr(each, name).values()) for each in stats) for name in ("cache_hits", "cache_misses")]
            os.write(2, b"\\n" + json.dumps([results, *told]).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    os.close(writes)
    with open(reads, "rb") as file:
        said = file.read().decode()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"status {status}: {said}"
    said, _, found = said.rpartition("\\n")
    return json.loads(found), [line for line in said.split("\\n") if line]

def files():
    return sorted(path for path in Path(sys.argv[1]).rglob("*") if path.is_file() and path.name != ".used")

warm = [[309.0, 309.0], 4, 0]
assert computed() == ([[309.0, 309.0], 0, 4], [])
assert computed() == (warm, [])
assert len(files()) == 4, files()

rng, cases = np.random.default_rng(0), 0
def damages(path):
    whole = path.read_bytes()
    for size in (0, 1, 31, 32, 33, len(whole) // 2, len(whole) - 1):
        yield f"cut after {size}", lambda size=size: path.write_bytes(whole[:size])
    for at in [0, 31, 32, 33, len(whole) - 1, *rng.integers(len(whole), size=FLIPS).tolist()]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        yield f"changed at {at}", lambda changed=changed: path.write_bytes(changed)
    yield "longer", lambda: path.write_bytes(whole + b"more")
    yield "garbage", lambda: path.write_bytes(rng.bytes(3000))
    yield "zeros", lambda: path.write_bytes(bytes(len(whole)))
    yield "a pickle", lambda: path.write_bytes(b"cos\\nabort\\n(tR.")
    other = next(each for each in files() if each != path)
    yield "another's", lambda: path.write_bytes(other.read_bytes())
    yield "a folder", lambda: (path.unlink(), path.mkdir(), (path / "file").touch())
    yield "a pipe", lambda: (path.unlink(), os.mkfifo(path))
    yield "a link to nowhere", lambda: (path.unlink(), path.symlink_to(path.with_name("nowhere")))
    yield "a link to itself", lambda: (path.unlink(), path.symlink_to(path))
    yield "a device", lambda: (path.unlink(), path.symlink_to("/dev/zero"))
    if os.getuid() == 0:
        yield "another user's", lambda: os.chown(path, 12345, 12345)
    else:
        yield "not to be read", lambda: path.chmod(0)

for turn, path in enumerate(files()):
    for number, (name, damage) in enumerate(damages(path)):
        if not (EXHAUSTIVE or number % 4 == turn):
            continue
        damage()
        found, said = computed()
        # a library that calls by address is there all the same
        assert found == [[309.0, 309.0], 3, 1], (path.name, name, found)
        assert len(said) == 1 and said[0].startswith("warning: the compile cache in "), (path.name, name, said)
        assert computed() == (warm, []), (path.name, name)
        cases += 1

# all of them: one line
for path in files():
    path.write_bytes(b"")
found, said = computed()
assert found == [[309.0, 309.0], 0, 4] and len(said) == 1, (found, said)
assert computed() == (warm, [])
# a file that nobody asks for is nobody's business
(files()[0].parent / "old.nbi").write_bytes(b"")
assert computed() == (warm, [])
print(cases)
"""


@pytest.fixture
def toy(tmp_path):
    """Runs a script beside the toy, with a cache of its own: its standard output."""
    (tmp_path / "toy.py").write_text(TOY)

    def run(script, *arguments, **variables):
        environment = (
            os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"} | variables
        )
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_file_that_was_damaged_in_whatever_way_is_compiled_again(toy, tmp_path, exhaustive):
    """In processes of their own: none dies, each says one line, the next is served.

    Each kind of damage is done to one of the four files, in turn; with --exhaustive to each, and more of them.
    """
    flips = 200 if exhaustive else 8
    done = toy(FUZZ.replace("FLIPS", str(flips)).replace("EXHAUSTIVE", str(exhaustive)), tmp_path / "cache")
    kinds = 7 + 5 + flips + 11
    assert int(done) == (4 * kinds if exhaustive else kinds)


def test_nobody_else_can_look_into_the_cache_or_write_to_it(toy, tmp_path):
    toy("import toy; from pykernel.dialect import FLOAT32, bind; bind(toy.compute, FLOAT32)")
    folders = [path for path in (tmp_path / "cache" / "pykernel" / "numba").iterdir()]
    assert len(folders) == 2 and all(path.stat().st_mode & 0o777 == 0o700 for path in folders)


def test_a_full_disk_only_costs_time(toy, tmp_path):
    script = """
        import resource, signal, toy
        from pykernel.dialect import FLOAT32, bind
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        print(bind(toy.compute, FLOAT32)(1.0))
    """
    assert toy(script) == toy(script) == "103.0\n"
    assert {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {".used"}


def test_the_command_says_one_line_and_goes_on(tmp_path):
    """Numba's own cache stopped it: "interrupted" for an empty file, a traceback for one that was cut."""
    (tmp_path / "spec.toml").write_text(
        'name = "m"\n[input]\ncolumns = ["a"]\n[label]\ncolumn = "y"\n[learning]\nrule = "nlms"\n'
    )
    (tmp_path / "data.csv").write_text("a,y\n" + "1,2\n2,4\n" * 20)

    def simulated():
        return subprocess.run(
            [sys.executable, "-m", "pykernel", "simulate", "spec.toml", "data.csv"],
            cwd=tmp_path, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}, capture_output=True, text=True,
        )  # fmt: skip

    first = simulated()
    assert first.returncode == 0 and first.stderr == ""
    files = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != ".used")
    assert len(files) >= 2
    for size in (0, 100):
        for path in files:
            path.write_bytes(path.read_bytes()[:size])
        again = simulated()
        assert again.returncode == 0 and again.stdout == first.stdout, again.stderr
        assert again.stderr.count("\n") == 1 and again.stderr.startswith("warning: the compile cache in "), again.stderr
        again = simulated()
        assert again.stderr == "" and again.stdout == first.stdout


def test_the_digest_covers_whatever_makes_machine_code(tmp_path):
    """Of a copy of the package in which one file is edited; of those that a kernel needs to be compiled, only some count."""
    shutil.copytree(ROOT / "pykernel", tmp_path / "pykernel", ignore=shutil.ignore_patterns("__pycache__", "data"))
    script = """
        import json, sys
        import pykernel.dialect
        from pykernel.dialect import FLOAT32, bind, sources_digest
        assert pykernel.dialect.__file__.startswith(sys.argv[1]), pykernel.dialect.__file__
        import toy
        bind(toy.total, FLOAT32)
        print(json.dumps([sources_digest([toy.compute]), sorted(name for name in sys.modules if name.startswith("pykernel"))]))
    """
    (tmp_path / "toy.py").write_text(TOY)

    def digest():
        variables = {
            "PYTHONPATH": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
            cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    before, needed = digest()
    keeps = {"pykernel", "pykernel.errors", "pykernel.files", "pykernel.sealed"}
    makes = set(needed) - keeps
    assert all(name.startswith("pykernel.dialect") for name in makes), "does the new one make machine code?"
    for name in sorted(makes | keeps):
        path = tmp_path.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = file.read_text()
        file.write_text(text + "\n# edited\n")
        assert (digest()[0] != before) == (name in makes), name
        file.write_text(text)
    assert digest()[0] == before


def test_digests_cover_every_file_of_the_algorithms():
    """A file of which no model's kernel is has none: what it holds reaches machine code through what kernels name."""
    programs = [program for family in FAMILIES for program in family.programs.values()]
    roots = [entry.kernel for program in programs for entry in program.entries]
    roots += [root for program in programs for root in (program.rehearse, program.valid) if root is not None]
    folder = ROOT / "pykernel" / "algorithms"
    covered = {kernel.file for kernel in reachable(roots) if kernel.file.is_relative_to(folder)}
    others = set(folder.rglob("*.py")) - covered
    assert folder / "extents.py" in others and len(covered) > 20
    for path in others:
        assert not re.search(r"^@|Constant\(", path.read_text(encoding="utf-8"), re.MULTILINE), path
    # and the digest has every byte of them
    for kernel in reachable(roots):
        assert kernel.source == kernel.file.read_bytes().replace(b"\r\n", b"\n"), kernel.file
