"""The cache of compiled kernels: damaged in whatever way, it is discarded with one line and compiled again."""

import os
import re
import shutil
import stat
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pykernel import sealed
from pykernel.algorithms import selftest, tables
from pykernel.algorithms.elementary import exp_negative
from pykernel.algorithms.missing import with_stand_ins
from pykernel.algorithms.signal.program import with_signal
from pykernel.dialect import FLOAT32, Kernel, reachable
from pykernel.engine import jitted, llvm
from pykernel.engine.engines import choices_of
from pykernel.engine.sources import MAKERS, files_digest
from pykernel.spec.model import FAMILIES, make_spec
from tests.support.interrupts import PATIENCE, ROOT

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the cache's place is set by XDG_CACHE_HOME, and processes are forked"
)

TOY = """
from pykernel.dialect import Real, kernel, real

@kernel
def doubled(x: Real) -> Real:
    return x * real(2)

@kernel
def compute(x: Real) -> Real:
    return doubled(x) + real(101)
"""
RUN = """
import sys
import numpy as np
from pykernel.dialect import FLOAT32, Memory
from pykernel.dialect.program import Settings
from pykernel.engine.engines import make_executor

def run(kernel, engine):
    return float(make_executor([kernel], Memory((), FLOAT32, {}), Settings({}), engine).call(kernel, 1.0))
"""

FUZZ = (
    RUN
    + """
import json, os, traceback
from pathlib import Path
import numba, pykernel.engine.compile_cache, pykernel.engine.numba_structs  # once, and not in each process
import toy

def computed():
    # what a new process finds, the files that it wrote, and what it says; or how it died
    before = states()
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writes, 2)
        code = 1
        try:
            results = [run(toy.compute, engine) for engine in ("llvm", "numba")]
            os.write(2, b"\\n" + json.dumps(results).encode())
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
    assert json.loads(found) == [103, 103], found
    after = states()
    return [path for path in after if after[path] != before.get(path)], [line for line in said.split("\\n") if line]

def states():
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files() if path.exists()}

def files():
    return sorted(path for path in Path(sys.argv[1]).rglob("*") if path.is_file() and path.name != ".used")

made, said = computed()
assert made == files() and said == [], said
assert computed() == ([], [])
assert [path.suffix for path in files() if "engine" in str(path)] in ([".ll", ".o"], [".o", ".ll"])
assert [path.suffix for path in files() if "numba" in str(path)] == [".code"], files()

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

for path in files():
    for name, damage in damages(path):
        damage()
        made, said = computed()
        assert made == [path], (path.name, name, made)
        assert len(said) == 1 and said[0].startswith("warning: the compile cache in "), (path.name, name, said)
        assert computed() == ([], []), (path.name, name)
        cases += 1

# all of them: one line
for path in files():
    path.write_bytes(b"")
made, said = computed()
assert made == files() and len(said) == 1, said
assert computed() == ([], [])
# a file that nobody asks for is nobody's business
(files()[0].parent / "old.nbi").write_bytes(b"")
assert computed() == ([], [])
print(cases)
"""
)


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


@pytest.mark.exhaustive
def test_a_file_that_was_damaged_in_whatever_way_is_compiled_again(toy, tmp_path, exhaustive):
    """In processes of their own: none dies, each says one line, the next is served."""
    flips = 40 if exhaustive else 1
    done = toy(FUZZ.replace("FLIPS", str(flips)), tmp_path / "cache")
    assert int(done) == 3 * (7 + 5 + flips + 11)


def test_nobody_else_can_look_into_the_cache_or_write_to_it(toy, tmp_path):
    toy(RUN + "import toy; run(toy.compute, 'llvm'), run(toy.compute, 'numba')")
    folders = [folder for kind in ("engine", "numba") for folder in (tmp_path / "cache" / "pykernel" / kind).iterdir()]
    assert len(folders) == 2 and all(path.stat().st_mode & 0o777 == 0o700 for path in folders)


@pytest.fixture
def sealed_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sealed, "_told", False)
    path = tmp_path / "kind" / "digest" / "one.code"
    path.parent.mkdir(parents=True)
    sealed.write_sealed(path, b"machine code")
    return path


def test_what_was_written_is_read_and_stays(sealed_file, capsys):
    assert sealed.read_sealed(sealed_file) == b"machine code" and sealed_file.exists()
    assert sealed.read_sealed(sealed_file.with_name("none.code")) is None and capsys.readouterr().err == ""


def test_code_of_another_user_is_not_loaded(sealed_file, monkeypatch, capsys):
    """With every byte as this program writes it: whoever can place a file there can seal it."""
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert sealed.read_sealed(sealed_file) is None
    assert not sealed_file.exists() and capsys.readouterr().err.count("warning: ") == 1


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: content + b"\0",
        lambda content: content[:-1],
        lambda content: content[32:],
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: b"",
    ],
    ids=["longer", "shorter", "no seal", "a bit", "empty"],
)
def test_what_is_not_as_it_was_written_is_removed(harm, sealed_file, capsys):
    sealed_file.write_bytes(harm(sealed_file.read_bytes()))
    assert sealed.read_sealed(sealed_file) is None and not sealed_file.exists()
    assert capsys.readouterr().err.count("warning: ") == 1


def test_code_of_another_function_or_of_other_sources_is_not_loaded(sealed_file):
    """Each byte is as it was written, in another place."""
    for place in (sealed_file.with_name("two.code"), sealed_file.parents[1] / "other" / sealed_file.name):
        place.parent.mkdir(exist_ok=True)
        shutil.copy(sealed_file, place)
        assert sealed.read_sealed(place) is None and not place.exists()
    folder = sealed_file.with_name("folder.code")
    folder.mkdir()
    assert sealed.read_sealed(folder) is None and not folder.exists()


def test_folders_that_nobody_used_for_a_month_go_when_a_new_one_comes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    old, young = sealed.cache_folder("kind", "old"), sealed.cache_folder("kind", "young")
    for folder, days in ((old, 31), (young, 29)):
        then = time.time() - days * 86400
        os.utime(folder / ".used", (then, then))
    assert sealed.cache_folder("kind", "new").is_dir() and young.exists() and not old.exists()
    assert sealed.cache_folder("kind", "young") == young  # which marks it as used
    assert (young / ".used").stat().st_mtime > time.time() - 86400
    assert stat.S_IMODE(young.stat().st_mode) == 0o700


def test_code_is_of_one_set_of_choices(tmp_path):
    """Two techniques have the same kernels; what is kept of one is not taken for the other."""
    texts = []
    for technique in ("nt", "at"):
        reduction = {"technique": technique, "n_max": 4}
        spec = make_spec(
            {
                "name": "m",
                "input": {"dim": 2},
                "learning": {"rule": "klms"},
                "kernel": {"sigma": 1.0},
                "reduction": reduction,
            }
        )
        roots = tuple(entry.kernel for entry in spec.program.entries_for(spec.config))
        for _ in range(2):
            module = llvm._module(tmp_path, roots, choices_of(spec.config), spec.real)
            texts.append(module.text)
            assert module.text == llvm.print_module(roots, choices_of(spec.config), spec.real).text
    assert texts[0] == texts[1] != texts[2] == texts[3]
    codes = [llvm._object(tmp_path, text, llvm.QUICK) for text in texts]
    assert codes[0] == codes[1] != codes[2] == codes[3]


def test_numbas_code_is_of_one_source(tmp_path, monkeypatch):
    """Another text or another constant has another folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    whole, folders = jitted.print_python, []
    for change in (
        lambda source: source,
        lambda source: replace(source, constants={**source.constants, "c_OFFSET_0": 100.0}),
        lambda source: replace(source, constants={**source.constants, "c_OFFSET_0": 200.0}),
        lambda source: replace(source, texts={**source.texts, "more": "def f_more(): pass"}),
    ):
        monkeypatch.setattr(jitted, "print_python", lambda *given, change=change: change(whole(*given)))
        jitted._code.cache_clear()
        for _ in range(2):
            folders.append(jitted._code((exp_negative,), (), FLOAT32, (), (), ()).folder)
    jitted._code.cache_clear()
    assert len(set(folders)) == 4


@pytest.mark.exhaustive
def test_a_full_disk_or_no_cache_at_all_only_costs_time(toy, tmp_path):
    script = "import resource, signal, toy\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    script += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    script += RUN + "print(run(toy.compute, 'llvm'), run(toy.compute, 'numba'))"
    assert toy(script) == toy(script) == "103.0 103.0\n"
    assert {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {".used"}
    (tmp_path / "file").write_text("a file where the folder would be")
    assert toy(script, XDG_CACHE_HOME=str(tmp_path / "file")) == "103.0 103.0\n"


@pytest.mark.exhaustive
def test_the_command_says_one_line_and_goes_on(tmp_path, exhaustive):
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
    for size in (0, 100) if exhaustive else (100,):
        for path in files:
            path.write_bytes(path.read_bytes()[:size])
        again = simulated()
        assert again.returncode == 0 and again.stdout == first.stdout, again.stderr
        assert again.stderr.count("\n") == 1 and again.stderr.startswith("warning: the compile cache in "), again.stderr
        again = simulated()
        assert again.stderr == "" and again.stdout == first.stdout


PACKAGE = {
    "constants.py": """
        from pykernel.dialect import Constant
        OFFSET = Constant(100.0)
    """,
    "choices.py": """
        from enum import IntEnum
        class Sign(IntEnum):
            PLUS = 1
    """,
    "callee.py": """
        from choices import Sign
        from constants import OFFSET
        from pykernel.dialect import Real, kernel, real
        @kernel
        def shifted(x: Real) -> Real:
            if Sign.PLUS == 1:
                return x * real(2) + OFFSET
            return x * real(2) - OFFSET
    """,
    "caller.py": """
        from callee import shifted
        from pykernel.dialect import Real, kernel, real
        @kernel
        def compute(x: Real) -> Real:
            return shifted(x) + real(1)
    """,
}
EDIT = """
import callee
from pathlib import Path
file = Path(callee.__file__)
file.write_text(file.read_text().replace("real(2)", "real(5)"))
"""


@pytest.mark.parametrize("engine", ["llvm", pytest.param("numba", marks=pytest.mark.exhaustive)])
def test_the_cache_serves_other_processes_and_is_never_stale(engine, toy, tmp_path):
    for name, text in PACKAGE.items():
        (tmp_path / name).write_text(textwrap.dedent(text))

    def run(before=""):
        files = set((tmp_path / "cache").rglob("*"))
        said = float(toy(f"{RUN}\nimport caller\n{before}\nprint(run(caller.compute, {engine!r}))"))
        return said, set((tmp_path / "cache").rglob("*")) != files

    def edit(name, old, new):
        text = (tmp_path / name).read_text()
        assert old in text
        (tmp_path / name).write_text(text.replace(old, new))

    assert run() == (103, True)
    assert run() == (103, False)
    edit("callee.py", "real(2)", "real(4)")
    assert run() == (105, True)
    edit("constants.py", "100.0", "200.0")
    assert run() == (205, True)
    edit("choices.py", "PLUS = 1", "PLUS = 3")
    assert run() == (-195, True)
    assert run() == (-195, False)
    edit("caller.py", "real(1)", "real(7)")
    assert run() == (-189, True)
    # edited while a process has it already imported: that runs what it read, and the next what is in the file
    edit("callee.py", "real(4)", "real(2)")
    assert run(EDIT) == (-191, True)
    assert run() == (-188, True)


def test_the_digest_covers_whatever_makes_machine_code(tmp_path):
    """What is imported when a model's code is compiled lies in folders of which every file is part of the digest."""
    script = RUN + "import toy; run(toy.compute, 'llvm'), run(toy.compute, 'numba')\n"
    script += "print(*(name for name in sys.modules if name.startswith('pykernel')))"
    (tmp_path / "toy.py").write_text(TOY)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rooms = {".".join(name.split(".")[:2]) for name in done.stdout.split()}
    assert rooms >= {"pykernel.dialect", "pykernel.engine", "pykernel.language"}
    # these keep the code and make none of it
    makes = rooms - {"pykernel", "pykernel.errors", "pykernel.files", "pykernel.sealed"}
    assert {f"pykernel.{name}" for name in MAKERS} == makes, "does the new one make machine code?"
    digest = files_digest(tmp_path)
    (tmp_path / "toy.py").write_text(TOY + "# edited")
    assert files_digest(tmp_path) != digest


def test_digests_cover_every_file_of_the_algorithms():
    """A file of which no model's kernel is has none: what it holds reaches machine code through what kernels name."""
    programs = [program for family in FAMILIES for program in family.programs.values()]
    around = [with_signal(program, False) for program in programs]
    programs += around
    completed = [
        family for family in FAMILIES if "missing" in family.spec.model_fields["input"].annotation.model_fields
    ]
    programs += [with_stand_ins(program, "its mean") for family in completed for program in family.programs.values()]
    roots = [entry.kernel for program in programs for entry in program.entries]
    roots += [root for program in programs for root in (program.valid,) if root is not None]
    roots += [made for each in (tables, selftest) for made in vars(each).values() if isinstance(made, Kernel)]
    folder = ROOT / "pykernel" / "algorithms"
    covered = {kernel.file for kernel in reachable(roots) if kernel.file.is_relative_to(folder)}
    others = set(folder.rglob("*.py")) - covered
    assert folder / "extents.py" in others and len(covered) > 20
    for path in others:
        assert not re.search(
            r"^@(kernel|placeholder|intrinsic|with_dsp)|Constant\(", path.read_text(encoding="utf-8"), re.MULTILINE
        ), path
    # and the digest has every byte of them
    for kernel in reachable(roots):
        if kernel.name == "clear":
            continue  # its source is no file's
        text = kernel.file.read_bytes().replace(b"\r\n", b"\n")
        assert kernel.source == text, kernel.file


APART = (
    RUN
    + """
import os
import numba, pykernel.engine.compile_cache, pykernel.engine.numba_structs
import first, second

for toy in (first, second):
    if not (child := os.fork()):
        run(toy.compute, "numba")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
from numba.core.registry import cpu_target

names = cpu_target.target_context.codegen()._engine._defined_symbols
for toy in (first, second):
    print(run(toy.compute, "numba"), sum("doubled" in name or "compute" in name for name in names))
"""
)


@pytest.mark.exhaustive
def test_code_that_two_processes_compiled_stays_apart_in_a_third(tmp_path: Path) -> None:
    """Numba numbers functions in the order in which a process meets them, so both processes give the same numbers, and what
    is not inlined into its caller would be taken from whichever code was there before."""
    for name, number in (("first", "101"), ("second", "202")):
        (tmp_path / f"{name}.py").write_text(TOY.replace("101", number))
    (tmp_path / "apart.py").write_text(APART)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "apart.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    (one, count), (other, both) = (line.split() for line in ran.stdout.splitlines())
    assert (one, other) == ("103.0", "204.0") and int(both) == 2 * int(count) > 0
