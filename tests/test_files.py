"""Files: whole or not at all whichever call fails, after runs that were killed, and beside whatever is not a file."""

import contextlib
import errno
import io
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pykernel import files
from pykernel.bases.basis import read_npz, write_npz
from pykernel.errors import UserError
from pykernel.files import all_or_none, open_plain, private_folder, read_plain, whole_file
from pykernel.gen import compilers
from pykernel.gen.project import generate
from pykernel.gen.record import record
from pykernel.gen.write import write_files
from pykernel.rows import as_rows, save_rows
from pykernel.spec.model import make_spec
from pykernel.workflows.simulate import simulate
from tests.support import interrupts
from tests.support.toys import toy_spec

ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="pipes, owners and signals")


def tree(folder):
    """All that is in a folder: what files hold, where links lead."""
    found = {}
    for path in sorted(folder.rglob("*")):
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = what
    return found


# ------------------------------------------------------------------------------------------------ whichever call fails


class Failing:
    """Counts the calls that change a file system, and lets them fail from one on: that one alone, or all of them."""

    def __init__(self, monkeypatch, at, lasting, code=errno.ENOSPC):
        self.calls, self.at, self.lasting, self.code = [], at, lasting, code
        for name in ("open", "mkdir", "fsync", "replace", "link"):
            monkeypatch.setattr(os, name, self.counted(name, getattr(os, name)))
        outer = self

        class Raw(io.FileIO):
            def write(self, data):
                outer.call("write")
                return super().write(data)

        def opened(path, mode="r", *arguments, **options):
            if "b" in mode and set(mode) & set("wxa"):
                raw = Raw(path, mode.replace("b", ""))
                return raw if options.get("buffering") == 0 else io.BufferedWriter(raw)
            return open(path, mode, *arguments, **options)

        monkeypatch.setattr(files, "open", opened, raising=False)
        monkeypatch.setattr(Path, "open", lambda path, mode="r", **options: opened(path, mode, **options))

    def counted(self, name, function):
        def call(*arguments, **options):
            reads = name == "open" and not arguments[1] & (os.O_WRONLY | os.O_RDWR)
            if not reads and not (name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)):
                self.call(name)
            return function(*arguments, **options)

        return call

    def call(self, name):
        self.calls.append(name)
        # renaming takes no room, so that what was renamed can be renamed back
        if len(self.calls) == self.at or (self.lasting and len(self.calls) > self.at and name != "replace"):
            raise OSError(self.code, os.strerror(self.code))


def one_file(folder):
    with whole_file(folder / "old.csv") as file:
        file.write(b"new\n" * 5000)


def one_file_in_new_folders(folder):
    with whole_file(folder / "a" / "b" / "new.csv", parents=True) as file:
        file.write(b"new\n")


def several_files(folder):
    with all_or_none():
        one_file(folder)
        one_file_in_new_folders(folder)
        with whole_file(folder / "a" / "other.csv", parents=True) as file:
            file.write(b"other\n")
        with whole_file(folder / "older.csv") as file:
            file.write(b"newer\n")


def a_project(folder):
    texts = {"src/m.c": "int x;\n", "LICENSE": "free\n", "m.toml": "a = 1\n", "examples/app/src/main.c": "int main;\n"}
    write_files(folder / "out" / "m", texts)


def a_project_again(folder):
    write_files(folder, {"old.csv": "new\n", "older.csv": "newer\n", "src/m.c": "int y;\n"}, force=True)


def arrays(folder):
    write_npz(folder / "old.csv", {"format": "x"}, {"a": np.arange(3000.0), "b": np.zeros(3)})


def rows(folder):
    save_rows(as_rows(np.arange(40_000.0).reshape(-1, 4)), folder / "rows.npy", block=1000)


def a_simulation(folder):
    x = np.random.default_rng(0).normal(size=(60, 2))
    spec = make_spec({"name": "m", "input": {"dim": 2}, "label": {"column": "y"}, "learning": {"rule": "nlms"}})
    with contextlib.chdir(folder):  # the report tells of its paths
        simulate(spec, (x, x[:, 0]), output="old.csv", save="m.bin", report="report.html")


WRITES = (
    one_file, one_file_in_new_folders, several_files, a_project, a_project_again, arrays, rows, a_simulation,
)  # fmt: skip


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("write", WRITES)
def test_whichever_call_fails_the_folder_is_as_before(write, lasting, tmp_path, monkeypatch):
    """Until there is no call that could fail: then everything is there."""
    begin = tmp_path / "begin"
    begin.mkdir()
    (begin / "old.csv").write_text("old\n")
    (begin / "older.csv").write_text("older\n")
    whole, failed = tmp_path / "whole", []
    shutil.copytree(begin, whole)
    write(whole)
    assert tree(whole) != tree(begin)
    for at in range(1, 500):
        folder = tmp_path / "folder"
        shutil.copytree(begin, folder)
        with monkeypatch.context() as patch:
            failing = Failing(patch, at, lasting)
            try:
                write(folder)
            except UserError as error:
                assert "No space left on device" in str(error) and "Traceback" not in str(error)
                failed.append(failing.calls[at - 1])
            else:
                if len(failing.calls) < at:
                    # all is on the disk before the first takes its place
                    placed = [i for i, call in enumerate(failing.calls) if call in ("link", "replace")]
                    assert not placed or "fsync" not in failing.calls[placed[0] :]
                    assert as_written(folder) == as_written(whole)
                    break
                assert failing.calls[at - 1] == "link"  # then there is a copy in place of the link
                assert as_written(folder) == as_written(whole)
        if failed and failing.calls[at - 1] != "link":
            assert tree(folder) == tree(begin), (at, failing.calls)
        shutil.rmtree(folder)
    assert {"write", "open", "fsync", "replace"} <= set(failed)


def as_written(folder):
    """An archive holds the time at which it was written."""
    found = tree(folder)
    return found | ({"old.csv": len(found["old.csv"])} if found["old.csv"].startswith(b"PK") else {})


@ON_POSIX
def test_a_new_file_has_an_ordinary_files_rights(tmp_path):
    before = os.umask(0o027)
    try:
        generate(toy_spec("real"), tmp_path / "toy")
        (tmp_path / "plain").touch()
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "toy").rglob("*") if path.is_file()}
    assert modes == {stat.S_IMODE((tmp_path / "plain").stat().st_mode)}


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(RuntimeError), whole_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "before"
    with whole_file(path) as file:
        file.write(b"after")
    assert path.read_text() == "after"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_several_files_appear_together(tmp_path):
    def write(name, error=None):
        with whole_file(tmp_path / name) as file:
            file.write(name.encode())
            if error:
                raise error

    with all_or_none():
        write("a")
        with all_or_none():  # is part of the outer one
            write("b")
        with contextlib.suppress(ZeroDivisionError):
            write("c", ZeroDivisionError())  # left out
        with whole_file(tmp_path / "apart", apart=True) as file:
            file.write(b"apart")
        assert {name for name, what in tree(tmp_path).items() if not name.endswith(".part")} == {"apart"}
    assert tree(tmp_path) == {"a": b"a", "b": b"b", "apart": b"apart"}
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), all_or_none():
            write("a2")
            raise error
    assert tree(tmp_path) == {"a": b"a", "b": b"b", "apart": b"apart"}


@ON_POSIX
def test_links_folders_and_devices_are_not_replaced(tmp_path):
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "fifo")
    for path, kind in (
        (tmp_path / "link", "link"),
        (tmp_path / "nowhere", "link"),
        (tmp_path, "folder"),
        ("/dev/null", "device"),
        (tmp_path / "fifo", "pipe"),
    ):
        with pytest.raises(UserError, match=f"is a {kind}; give the path of a file"), whole_file(path):
            pass
    with pytest.raises(UserError, match="No such file"), whole_file(tmp_path / "absent" / "out.csv"):
        pass
    with pytest.raises(UserError, match="File name too long"), whole_file(tmp_path / ("x" * 300)):
        pass
    assert target.read_text() == "kept" and (tmp_path / "link").is_symlink()


def test_a_name_of_255_bytes_is_one(tmp_path):
    for name in ("x" * 255, "ü" * 127):
        with whole_file(tmp_path / name) as file:
            file.write(b"whole")
        assert (tmp_path / name).read_bytes() == b"whole"


# --------------------------------------------------------------------------------------------------- runs that were killed

WRITER = """
import sys
from pykernel.files import whole_file
from tests.support.interrupts import pause

with whole_file(sys.argv[1] + "/out.csv") as file:
    file.write(sys.argv[2].encode() * 10_000)
    file.flush()
    pause(sys.argv[1])
"""


@ON_POSIX
def test_what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    def parts():
        return sorted(tmp_path.glob(".out.csv.*.part"))

    dead = interrupts.start("-c", WRITER, tmp_path, "dead")
    interrupts.wait_until((tmp_path / "there").exists, dead)
    dead.kill()
    dead.wait()
    (left,) = parts()
    assert left.read_bytes() == b"dead" * 10_000
    (tmp_path / "there").unlink()
    # the next run takes its place ...
    living = interrupts.start("-c", WRITER, tmp_path, "living")
    interrupts.wait_until((tmp_path / "there").exists, living)
    assert not left.exists() and len(parts()) == 1
    # ... a third leaves it alone, and the one that ends last is the one that stays
    with whole_file(tmp_path / "out.csv") as file:
        file.write(b"third")
        assert len(parts()) == 2
    assert (tmp_path / "out.csv").read_bytes() == b"third" and len(parts()) == 1
    (tmp_path / "go").touch()
    assert living.wait(interrupts.PATIENCE) == 0
    assert (tmp_path / "out.csv").read_bytes() == b"living" * 10_000 and not parts()


def test_what_another_run_of_the_same_number_left_is_not_in_the_way(tmp_path):
    """In a container every run has process number 1."""
    (tmp_path / f".out.csv.{os.getpid()}.part").write_text("left by a run that was killed")
    with whole_file(tmp_path / "out.csv") as file:
        file.write(b"whole")
    assert (tmp_path / "out.csv").read_bytes() == b"whole"


def test_only_what_was_left_of_this_file_is_removed(tmp_path):
    others = [
        ".out.csv.part",
        ".out.csv.0123.part",
        ".other.csv.0123456789abcdef.part",
        ".out.csv.notes.part",
        "out.csv.part",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".out.csv.0123456789abcdef.part").write_text("left")
    with whole_file(tmp_path / "out.csv"):
        pass
    assert sorted(tree(tmp_path)) == sorted([*others, "out.csv"])


# ------------------------------------------------------------------------------------------------------------ no files


@pytest.fixture
def at_once():
    """What waits for ever fails."""
    if not hasattr(signal, "SIGALRM"):  # Windows
        yield
        return

    def late(*_):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(interrupts.PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def no_files(folder):
    """What is there, and is no file that can be read."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.getcwd()
        os.chdir(folder)  # a socket's path is short
        bound.bind("socket")
        os.chdir(before)
    (folder / "to a pipe").symlink_to(folder / "pipe")
    return {"pipe": "is a pipe", "socket": "is a socket", "to a pipe": "is a pipe", "/dev/zero": "is a device"}


@ON_POSIX
def test_what_is_no_file_is_not_opened(tmp_path, at_once):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_plain(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="has more than 4 bytes"):
        read_plain(tmp_path / "file", 4)
    with pytest.raises(IsADirectoryError):
        open_plain(tmp_path)
    for name, what in no_files(tmp_path).items():
        with pytest.raises(OSError, match=what):
            open_plain(tmp_path / name)


SPEC = """
name = "flow"
[input]
columns = ["a", "b"]
[label]
column = "y"
[kernel]
sigma = 1.0
[reduction]
n_max = 4
"""
COMMANDS = (
    "simulate {} data.csv", "generate {} -o out", "check {}", "simulate spec.toml {}", "state replay spec.toml {}",
    "state replay spec.toml log.csv --end {}", "state replay spec.toml log.csv --start {}", "state show spec.toml {}",
    "state show spec.toml {} {}", "plan {}",
    "fit {} -o x.toml", "import {} -o x.toml", "import model.onnx -o x.toml --inputs a,b --data {}", "table {} -o x.npy",
    "fit {} -n 2 -o x.npz",
)  # fmt: skip
WRITING = (
    "simulate spec.toml data.csv -o {}", "simulate spec.toml data.csv --report {}", "generate spec.toml -o {}",
    "fit data.csv --label y --force -o {}", "table data.csv --force -o {}", "fit rows.npy -n 2 --set kernel.sigma=1 --force -o {}",
    "plan data.csv --label y -o {}", "demo -o {}",
)  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "spec.toml").write_text(SPEC)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 3))
    lines = [",".join(map(str, row)) for row in table]
    (folder / "data.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    (folder / "log.csv").write_text("\n".join(["a,b,y,status", *(f"{line},1" for line in lines), ""]))
    np.save(folder / "rows.npy", table)
    import skl2onnx
    from sklearn.svm import SVR

    model = skl2onnx.to_onnx(SVR().fit(table[:, :2], table[:, 2]), np.zeros((1, 2), np.float32))
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.in_turn
@ON_POSIX
@pytest.mark.parametrize("command", [*COMMANDS, *WRITING])
def test_a_command_refuses_a_pipe_a_device_or_a_socket_at_once(command, folder, run, at_once):
    kinds = no_files(folder)
    if "--report" in command:  # else its name alone is refused
        os.mkfifo(folder / "pipe.html")
        kinds = {"pipe.html": "is a pipe"}
    if command.startswith(("plan {}", "fit {}", "table {}")):
        for suffix in (".npy", ".csv", ".parquet", ".arrow"):
            os.mkfifo(folder / f"pipe{suffix}")
        kinds |= {f"pipe{suffix}": "is a pipe" for suffix in (".npy", ".csv", ".parquet", ".arrow")}
    before = sorted(os.listdir())
    for name, what in kinds.items():
        words = [word.format(name) for word in command.split()]
        code, out, err = run(*words)
        assert code == 2 and (out == "" or out.startswith("data ")) and err.splitlines()[-1].startswith("error: "), (
            name,
            err,
        )
        if not (command in WRITING and name == "to a pipe"):  # it is a link, too
            assert (
                what in err
                or "this folder cannot be created" in err
                or "cannot be read in parts" in err
                or "is a file" in err
                # any device may be a port
                or (name == "/dev/zero" and command.startswith("table") and "a recording is written as text" in err)
            ), err
        assert sorted(os.listdir()) == before, name


@pytest.mark.exhaustive
@ON_POSIX
def test_standard_input_and_process_substitution_are_read(folder, exhaustive):
    """A shell has opened them before."""
    found, more = [], ["/dev/stdin < data.csv", "/dev/fd/3 3< <(cat data.csv)"]
    for data in ("data.csv", "- < data.csv", "<(cat data.csv)", *(more if exhaustive else [])):
        command = f"{sys.executable} -m pykernel simulate spec.toml --json {data}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=interrupts.PATIENCE)
        assert done.returncode == 0, (data, done.stderr)
        found.append(json.loads(done.stdout))
        found[-1]["data"].pop("file")
    assert all(each == found[0] for each in found) and found[0]["rows"] == 40


# ----------------------------------------------------------------------------------------------------------- projects


@pytest.mark.parametrize(
    "source",
    [
        "LICENSE/k.py",
        "license/k.py",
        "manifest.json/k.py",
        "flow.toml/k.py",
        "src/flow.c/k.py",
        "LICENSE./k.py",
        "examples/main.C/a/k.py",
    ],
)
@pytest.mark.in_turn
def test_a_source_in_a_folder_that_is_a_file_of_the_project_is_refused_before_anything_is_written(
    source, tmp_path, run
):
    from tests.support import custom_kernels

    path = tmp_path / "spec" / source
    path.parent.mkdir(parents=True)
    path.write_text(Path(custom_kernels.__file__).read_text())
    text = SPEC.replace(
        "sigma = 1.0",
        f'function = "custom"\nsource = "{source}"\nkernel = "rational_quadratic"\nmax_value = 1.0\ngamma = 0.5',
    )
    (tmp_path / "spec" / "flow.toml.spec").write_text(text)
    code, _, err = run(
        "generate", str(tmp_path / "spec" / "flow.toml.spec"), "-o", str(tmp_path / "out"), "--trust-code"
    )
    file = source.partition(".C" if ".C" in source else "/k.py")[0]
    assert code == 2 and f"{source} cannot be written, because" in err, (err, file)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "paths, what",
    [
        (["a", "a/b"], "a/b cannot be written, because a is a file of the project"),
        (["a/b/c", "A"], "a/b/c cannot be written, because A is a file of the project"),
        (["a/B", "A/b"], "a/B and A/b would be the same file"),
        (["a. /b", "a"], "a. /b cannot be written, because a is a file of the project"),
    ],
)
def test_paths_that_do_not_go_together_are_refused_before_anything_is_written(paths, what, tmp_path):
    with pytest.raises(UserError, match=what):
        write_files(tmp_path / "out", dict.fromkeys(paths, "text"))
    assert tree(tmp_path) == {}


MANIFESTS = {
    "brackets without end": "[" * 100_000,
    "objects without end": '{"sha256": ' * 100_000,
    "of many bytes": " " * (2**24 + 1),
    "no object": "[1, 2]",
    "a number of many digits": "9" * 10_000,
    "no text": "\udcff",
}


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS)
def test_a_hostile_manifest_vouches_for_nothing(text, tmp_path):
    spec, path = toy_spec("real"), tmp_path / "toy" / "manifest.json"
    generate(spec, tmp_path / "toy")
    path.write_bytes(text.encode(errors="surrogateescape"))
    before = tree(tmp_path)
    # what is as it would be written needs nobody to vouch for it
    with pytest.raises(UserError, match=r"manifest.json: was changed by hand or is not pykernel's"):
        generate(spec, tmp_path / "toy")
    with pytest.raises(UserError, match=r"manifest.json: cannot be read; generate the project again"):
        record(tmp_path / "toy", spec, type("Report", (), {"rows": [], "figures": {"stream_hash": ""}}))
    assert tree(tmp_path) == before
    generate(spec, tmp_path / "toy", force=True)
    assert json.loads(path.read_text())["generator"].startswith("pykernel ")


@pytest.mark.exhaustive
@pytest.mark.in_turn(9)
@ON_POSIX
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("where", ["manifest.json", "LICENSE", "src/toy.c", "src", "examples"])
def test_what_is_no_file_in_the_folder_of_a_project_is_refused_at_once(where, force, tmp_path, at_once):
    spec = toy_spec("real")
    generate(spec, tmp_path / "toy")
    path = tmp_path / "toy" / where
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match=r"is a pipe where a (file|folder) is needed; move it away"):
        generate(spec, tmp_path / "toy", force=force)
    with contextlib.suppress(UserError):  # of what it neither reads nor writes it does not care
        record(tmp_path / "toy", spec, type("Report", (), {"rows": [], "figures": {"stream_hash": ""}}))
    assert stat.S_ISFIFO(path.stat().st_mode)


# -------------------------------------------------------------------------------------------------------- damaged arrays


def npy(shape, descr="'<f4'", fortran=False, data=b"\0" * 48, version=b"\1\0", header=None, length=None):
    """An .npy file with any header."""
    text = header or f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = (len(text) if length is None else length).to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + size + text + data


HOSTILE = {
    "negative rows": npy("(-3, 4)"),
    "negative columns": npy("(3, -4)"),
    "both negative": npy("(-3, -4)"),
    "negative, column-major": npy("(-3, 4)", fortran=True),
    "more than there is": npy("(3, 5)"),
    "more than there is, column-major": npy("(3, 5)", fortran=True),
    "beyond all": npy(f"({2**70}, 4)"),
    "beyond all, column-major": npy(f"({2**70}, 4)", fortran=True),
    "a product that overflows": npy(f"({2**32}, {2**32})"),
    "a row beyond all": npy(f"(0, {2**62})"),
    "a row beyond all, column-major": npy(f"(0, {2**62})", fortran=True),
    "objects": npy("(3, 4)", "'|O'"),
    "objects, as a pickle": npy("(3, 4)", "'|O'", data=b"cos\nsystem\n(S'false'\ntR."),
    "structures": npy("(3, 4)", "[('a', '<f4')]"),
    "arrays in arrays": npy("(3, 4)", "('<f4', (2,))"),
    "text": npy("(3, 4)", "'<U1'"),
    "complex": npy("(3, 2)", "'<c8'"),
    "moments": npy("(3, 2)", "'<M8[s]'"),
    "no kind": npy("(3, 4)", "'spam'"),
    "a shape of floats": npy("(3.0, 4)"),
    "no shape": npy("None"),
    "one dimension": npy("(12,)"),
    "no dimension": npy("()"),
    "dimensions without end": npy("(" + "1," * 3000 + ")"),
    "brackets without end": npy("(" * 4000),
    "minus without end": npy("(" + "-" * 9000 + "3, 4)"),
    "a header of 64 kB": npy("(3, 4)", length=65535),
    "a header of 4 GB": npy("(3, 4)", version=b"\2\0", length=2**32 - 1),
    "a header of nothing": npy("(3, 4)", length=0),
    "a header of code": npy("", header=b"__import__('os').abort()\n"),
    "a header that is no text": npy("", header=b"\xff\xfe\0\0\n", version=b"\3\0"),
    "another version": npy("(3, 4)", version=b"\x09\0"),
    "nothing": b"",
    "half of the magic": b"\x93NUM",
    "no length": b"\x93NUMPY\1\0",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_npy_is_refused_in_a_sentence(content, tmp_path, run, at_once):
    path = tmp_path / "rows.npy"
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        rows = as_rows(path)
        assert len(rows) >= 2, "an empty table"
    assert str(refused.value).startswith(f"{path}: ") and "\n" not in str(refused.value)
    code, _, err = run("fit", str(path), "-n", "2", "-o", str(tmp_path / "b.npz"), "--set", "kernel.sigma=1")
    assert code == 2 and err.startswith("error: ") and err.count("\n") == 1
    code, _, err = run("table", str(path), "-o", str(tmp_path / "b.npy"))
    assert code == 2 and err.startswith("error: ") and err.count("\n") == 1
    assert sorted(tree(tmp_path)) == ["rows.npy"]


def test_an_npy_cut_at_any_byte_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "rows.npy"
    for order in "CF":
        np.save(path, np.asarray(np.arange(12.0).reshape(3, 4), order=order))
        whole = path.read_bytes()
        for size in range(len(whole)):
            path.write_bytes(whole[:size])
            with pytest.raises(UserError, match=r"is not an .npy file|ends after"):
                as_rows(path)
        path.write_bytes(whole)
        np.testing.assert_array_equal(as_rows(path).take([0, 1, 2]), np.arange(12.0).reshape(3, 4))
    np.save(path, np.zeros((0, 4), order="F"))
    assert len(as_rows(path)) == 0


def test_arrays_that_were_cut_or_changed_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "a.npz"
    write_npz(path, {"format": "kind"}, {"a": np.arange(30.0)})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError, match="is damaged or was not written by the test"):
            read_npz(path, "kind", "the test")
    for at in rng.integers(len(whole), size=300):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        with contextlib.suppress(UserError):  # dates, and numbers that a checksum does not see
            read_npz(path, "kind", "the test")


# ------------------------------------------------------------------------------------------------------------- folders


def test_results_are_written_in_one_place():
    """Elsewhere there are folders of this process's own."""
    writes = re.compile(
        r"os\.(replace|rename|link)\b|mkstemp|NamedTemporaryFile|write_(text|bytes)|open\([^)]*\"[wax]b?\+?b?\""
    )
    own = r"(folder / .*|script)\.write_"
    allowed = {
        "pykernel/files.py": None,
        "pykernel/gen/compilers.py": r"\(folder / name\)\.write_",
        "pykernel/gen/record.py": own,
        "pykernel/targets/build.py": own,
    }
    allowed |= {"pykernel/targets/process_runner.py": own, "pykernel/targets/wasm_runner.py": own}
    for path in (interrupts.ROOT / "pykernel").rglob("*.py"):
        name = path.relative_to(interrupts.ROOT).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if writes.search(line) and name in allowed and re.search(allowed[name] or "", line):
                continue
            assert not writes.search(line), f"{path}:{number}: {line}"


@ON_POSIX
def test_a_private_folder_is_ours_alone(tmp_path):
    assert private_folder(tmp_path / "new" / "one") and stat.S_IMODE((tmp_path / "new" / "one").stat().st_mode) == 0o700
    assert private_folder(tmp_path / "new" / "one")
    (tmp_path / "link").symlink_to(tmp_path / "new" / "one")
    assert not private_folder(tmp_path / "link")
    (tmp_path / "file").touch()
    assert not private_folder(tmp_path / "file") and not private_folder(tmp_path / "file" / "below")
    (tmp_path / "new" / "one").chmod(0o770)
    assert not private_folder(tmp_path / "new" / "one")


@ON_POSIX
def test_the_compilers_cache_is_never_in_a_folder_of_another_user(tmp_path, monkeypatch):
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    def found():
        compilers._zig_cache.cache_clear()
        return compilers._zig_cache()

    try:
        assert found().is_relative_to(home) or sys.platform == "darwin"
        shutil.rmtree(home)
        home.write_text("a file where the folder would be")
        fallback = found()
        assert fallback.parent == temporary and stat.S_IMODE(fallback.stat().st_mode) == 0o700 and found() == fallback
        # somebody else was faster
        fallback.rmdir()
        mine = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: mine + 1)
        (temporary / f"pykernel-zig-{mine + 1}").mkdir(0o777)
        fresh = found()
        assert fresh != temporary / f"pykernel-zig-{mine + 1}" and fresh.parent == temporary
        assert stat.S_IMODE(fresh.stat().st_mode) == 0o700
        monkeypatch.setattr(os, "getuid", lambda: mine)
        fallback.symlink_to(temporary)
        assert found() not in (fallback, temporary)
    finally:
        compilers._zig_cache.cache_clear()
