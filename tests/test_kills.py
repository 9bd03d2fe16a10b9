"""Runs that are killed before any change of the file system: what is there builds as the old model, as the new, or not at all.

Each file is whole, the old one or the new; the same command, run again, succeeds, and leaves nothing else behind.
"""

import errno
import functools
import os
import re
import shutil
from unittest.mock import ANY

import numpy as np
import pytest

from pykernel.errors import CheckFailed, UserError
from pykernel.files import all_or_none, clear, whole_file
from pykernel.gen import check
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.gen.project import build, generate
from pykernel.gen.write import write_files
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec, make_spec
from pykernel.workflows import demo
from tests.support import interrupts
from tests.support.kills import killed_before
from tests.support.toys import toy_spec
from tests.test_files import SPEC, tree

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills children that it forks")


def before_each_change(act, begin, folder, times=1, step=1):
    """For each change that act() makes: its number, and the folder as a process leaves it that was killed before."""
    for at in range(1, 2000, step):
        for _ in range(times):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(begin, folder)
            came = killed_before(at, act, folder)
            yield at
        if not came:
            return
    raise AssertionError("no end")


def plain(folder):
    """The files of a folder, without those that are on their way."""
    return {path: text for path, text in tree(folder).items() if not re.search(r"/?\.[^/]+\.(part|old)$", path)}


# --------------------------------------------------------------------------------------------------------- files


def put(path, text, **options):
    with whole_file(path, **options) as file:
        file.write(text.encode())


def one(folder):
    put(folder / "old.csv", "new\n")


def two_beside_others(folder):
    with all_or_none():
        put(folder / "old.csv", "new\n")
        put(folder / "new.csv", "new\n")


def a_folder(folder):
    with all_or_none(folder):
        put(folder / "old.csv", "new\n")
        put(folder / "a" / "b.csv", "new\n", parents=True)
        put(folder / "kept" / "older.csv", "newer\n")


def a_new_folder(folder):
    with all_or_none(folder / "new" / "one"):
        put(folder / "new" / "one" / "a.csv", "new\n")
        put(folder / "new" / "one" / "b.csv", "new\n")


WRITES = (one, two_beside_others, a_folder, a_new_folder)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("write", WRITES)
def test_each_file_is_the_old_one_or_the_new_and_the_next_run_writes_all(write, tmp_path, exhaustive):
    begin, folder, whole = tmp_path / "begin", tmp_path / "folder", tmp_path / "whole"
    (begin / "kept").mkdir(parents=True)
    (begin / "old.csv").write_text("old\n")
    (begin / "kept" / "older.csv").write_text("older\n")
    shutil.copytree(begin, whole)
    write(whole)
    old, new, found = tree(begin), tree(whole), []
    for i, _ in enumerate(before_each_change(lambda: write(folder), begin, folder, 1, 1 if exhaustive else 3)):
        if i % 2:  # somebody copied what was left, without the files' times
            shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
            shutil.rmtree(folder)
            (tmp_path / "copy").rename(folder)
        state = plain(folder)
        assert all(text in (old.get(path), new.get(path)) for path, text in state.items())
        assert {path for path in old if path in new} <= set(state)
        found.append(state == new)
        write(folder)
        assert tree(folder) == new
    assert {False, True} == set(found)


def test_what_could_not_be_put_back_is_still_there(tmp_path, monkeypatch):
    """The disk fails while files take their places, and while they are taken back."""
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text("old\n")
    calls, replace = [], os.replace

    def failing(*paths):
        calls.append(paths)
        if len(calls) > 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(UserError, match="Input/output error"), all_or_none():
            for name in ("a.csv", "b.csv", "c.csv"):
                put(tmp_path / name, "new\n")
    left = {path: text for path, text in tree(tmp_path).items() if path.startswith(".a.csv.")}
    assert tree(tmp_path)["a.csv"] == b"new\n" and list(left.values()) == [b"old\n"]


# ------------------------------------------------------------------------------------------------------ two runs

WRITER = """
import os, sys
from pathlib import Path
from pykernel.files import all_or_none, whole_file
from tests.support.interrupts import pause

folder, text, when = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
replace = os.replace

def paused(*arguments):  # in the middle: the first file is in its place
    replace(*arguments)
    os.replace = replace
    pause(sys.argv[4])

with all_or_none(folder):
    for name in ("a.csv", "b.csv"):
        with whole_file(folder / name) as file:
            file.write(text.encode())
    if when == "writing":
        pause(sys.argv[4])
    elif when == "placing":
        os.replace = paused
"""


@pytest.mark.parametrize("when", ["writing", "placing"])
def test_of_two_runs_into_one_folder_one_waits(when, tmp_path):
    """And a run of one of the files takes nothing back of one that lives."""
    folder, told = tmp_path / "folder", tmp_path / "told"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("old")
    (tmp_path / "told").touch()
    first = interrupts.start("-c", WRITER, folder, "first", when, tmp_path)
    interrupts.wait_until((tmp_path / "there").exists, first)
    with told.open("w") as file:
        second = interrupts.start("-c", WRITER, folder, "second", "", tmp_path, stderr=file)
    interrupts.wait_until(lambda: "waiting for another run that is writing to" in told.read_text(), second)
    before = tree(folder)
    clear(folder / "a.csv")
    clear(folder / "b.csv")
    assert tree(folder) == before
    (tmp_path / "go").touch()
    assert first.wait(interrupts.PATIENCE) == 0 and second.wait(interrupts.PATIENCE) == 0
    assert tree(folder) == {"a.csv": b"second", "b.csv": b"second"}


# ------------------------------------------------------------------------------------------------------ projects


def stamps(folder):
    """Of each C file that a model's code is in: the stamp that it has or demands."""
    found = {}
    for path in folder.rglob("*.[ch]"):
        text = path.read_text()
        for match in re.finditer(r"_STAMP (?:!= )?(0x[0-9A-F]{8}u)", text):
            found[str(path.relative_to(folder))] = match[1]
    return found


@functools.cache
def models():
    """Three models of one name: one with learned values, one in int16, and one with a check's firmware."""
    learned = toy_spec("real")
    model = HostModel(learned)
    model.prequential([[0.1, 0.2]] * 5 if learned.dim == 2 else [[0.1] * learned.dim] * 5, [0.5] * 5)
    whole = {"name": "toy", "precision": "int16", "input": {"dim": 2, "max_abs": 1.0}, "kernel": {"sigma": 1.0}}
    whole |= {"learning": {"rule": "klms"}, "reduction": {"n_max": 4}, "label": {"max_abs": 1.0}}
    return (
        build(learned, model.memory).files,
        build(make_spec(whole)).files,
        build(toy_spec("class"), also=("check",)).files,
    )


def reduced(files, exhaustive):
    """What the compiler sees, and what vouches for it; or all."""
    return {p: t for p, t in files.items() if exhaustive or p.startswith("src/") or p in ("manifest.json", "README.md")}


@pytest.mark.exhaustive
def test_a_project_is_the_old_one_the_new_one_or_does_not_build(tmp_path, exhaustive):
    old, new, _ = (reduced(files, exhaustive) for files in models())
    begin, folder = tmp_path / "begin", tmp_path / "folder"
    write_files(begin, old)
    (begin / "notes.txt").write_text("mine")
    shutil.copytree(begin, tmp_path / "whole")
    write_files(tmp_path / "whole", new)
    mixed = 0
    for _ in before_each_change(lambda: write_files(folder, new), begin, folder, step=1 if exhaustive else 3):
        if len(set(stamps(folder).values())) == 1:
            code = {path: text for path, text in plain(folder).items() if re.fullmatch(r"src/.*\.[ch]", path)}
            # some of its files may be missing, which the linker says
            assert any(code.items() <= {p: t.encode() for p, t in files.items()}.items() for files in (old, new))
        else:
            mixed += 1
        write_files(folder, new)
        assert tree(folder) == tree(tmp_path / "whole")
    assert mixed


def test_after_a_kill_what_was_changed_by_hand_is_refused_still(tmp_path):
    old, new, _ = (reduced(files, False) for files in models())
    begin, folder = tmp_path / "begin", tmp_path / "folder"
    write_files(begin, old)
    for _ in before_each_change(lambda: write_files(folder, new), begin, folder, step=5):
        with (folder / "src" / "toy.c").open("a") as file:
            file.write("/* mine */\n")
        with pytest.raises(UserError, match=r"toy\.c: was changed by hand"):
            write_files(folder, new)
        assert "/* mine */" in (folder / "src" / "toy.c").read_text()


def test_a_folder_of_another_model_is_refused_or_taken_over(tmp_path):
    """In both orders, whether the first model's spec has changed since, and by all that writes a project."""
    old, new, _ = models()
    other = build(toy_spec("real", name="other")).files
    for one, two, names in ((old, other, ("toy", "other")), (other, old, ("other", "toy"))):
        folder = tmp_path / names[0]
        write_files(folder, one)
        before = tree(folder)
        for _ in range(2):
            with pytest.raises(
                UserError, match=rf"has the model {names[0]}; give {names[1]} another folder, or use --fo"
            ):
                write_files(folder, two)
            assert tree(folder) == before
        write_files(folder, new if names[0] == "toy" else one)  # its own model goes on
        write_files(folder, one)
        # taken over: nothing of the first is lost but what has the same name, and it is refused in turn
        write_files(folder, two, force=True)
        now = tree(folder)
        assert {path: text.encode() for path, text in two.items()}.items() <= now.items()
        assert {path for path in before if path not in two} <= set(now)
        with pytest.raises(UserError, match=f"has the model {names[1]}; give {names[0]} another folder"):
            write_files(folder, one)
        write_files(folder, one, force=True)
        assert {path: text for path, text in tree(folder).items() if path in before} == before


def test_files_that_a_model_no_longer_has_go_unless_they_were_changed(tmp_path):
    old, new, _ = models()
    write_files(tmp_path, old)
    (tmp_path / "src" / "toy_snapshot.c").write_text("mine")
    (tmp_path / "src" / "mine.c").write_text("mine")
    without = {p: t for p, t in new.items() if p != "src/toy_snapshot.c"}
    without["manifest.json"] = re.sub(r'\s*"src/toy_snapshot.c": "\w+",', "", without["manifest.json"])
    write_files(tmp_path, without)
    found = set(tree(tmp_path))
    assert "src/toy_model.c" in old and "src/toy_model.c" not in found
    assert {"src/toy_snapshot.c", "src/mine.c", "src/toy_counts.h"} <= found
    # of another model beside it nothing goes
    generate(toy_spec("real", name="other"), tmp_path, force=True)
    assert "src/toy_counts.h" in tree(tmp_path)


def test_every_file_with_a_models_code_refuses_another_header(tmp_path):
    """Whatever names the model's struct or sizes, but for examples, which users change."""
    c = find_compilers()[0]
    other = build(toy_spec("two classes")).files["src/toy.h"]
    refused = set()
    for files in models():
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        for header, builds in ((files["src/toy.h"], True), (other, False)):
            (tmp_path / "src" / "toy.h").write_text(header)
            for path in files:
                text = files[path]
                code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
                if not re.search(r'#include ["<]toy\.h[">]', code) or re.match(r"examples/(?!toy_check/)", path):
                    continue
                if path.endswith("_counts.h"):
                    path = "unit.c"
                    (tmp_path / path).write_text('#include "src/toy_counts.h"\n')
                elif path.endswith((".ino", ".hpp")):
                    continue  # a sketch's firmware is check.c; C++ has a test of its own
                try:
                    compile_c(c, [tmp_path / path], tmp_path / "x.o", (f"-I{tmp_path / 'src'}",), ("-c",))
                except CheckFailed as error:
                    assert not builds and "toy.h and this file do not belong together" in str(error)
                    refused.add(path)
                else:
                    assert builds, path
    assert refused == {"src/toy.c", "src/toy_snapshot.c", "src/toy_model.c", "unit.c", "examples/toy_check/check.c"}


def test_a_stamp_is_of_the_code_alone():
    """The same spec has the same; a comment, as the bounds that a check writes into the header, changes none."""
    spec = toy_spec("real")
    row = {"built": "gcc", "target": "cortex-m4f", "samples": "1", "stream": "", "equal": "yes", "state": ""}
    row |= dict.fromkeys(("coverage", "faults", "sizes", "command"), "")
    files = build(spec).files
    proved = build(spec, checks=[row | {"bounds": "predict 100"}], also=("check",)).files
    assert files == build(spec).files and proved["src/toy.h"] != files["src/toy.h"]

    def stamp(found):
        (one,) = {match[1] for match in re.finditer(r"_STAMP (?:!= )?(0x\w+u)", "".join(found.values()))}
        return one

    assert stamp(files) == stamp(proved) != stamp(build(toy_spec("real", precision="float64")).files)
    assert len({stamp(each) for each in models()}) == 3


# ------------------------------------------------------------------------------------------------------ commands

ROWS = "\n".join(["a,b,y", *(f"{i % 7 / 7},{i % 5 / 5},{(i % 7 + i % 5) / 7}" for i in range(60)), ""])
COMMANDS = {
    "generate": "generate spec.toml -o out/m --for check",
    "simulate": "simulate spec.toml data.csv -o out/answers.csv --report out/plot.html",
    "fit": "fit data.csv --label y -o out/fit.toml --report out/plot.html",
    "basis": "fit data.csv --inputs a,b --set kernel.sigma=1 -n 2 -o out/spec.toml --report out/report.html",
    "convert": "table data.csv -o out/data.npy",
    "import": "import model.onnx -o out/spec.toml --inputs a,b",
    "page": "page spec.toml data.csv -o out/page.html",
    "plan": "plan data.csv --label y --inputs a,b --only rls --trials 2 --jobs 1 -o out",
    "check": "check spec.toml --samples 50 --record m",
    "demo": "demo -o out",
}
BASELINES = ("last hour", "same hour yesterday", "linear RLS", "quadratic RLS")
ALIKE = re.compile(rb'"seconds": [^,}]+|generated="[^"]*"')
"""What differs between two runs."""


def same(found):
    """Of files with a date in them only the size: archives, pictures."""
    return {
        path: None if text is None else len(text) if text[:2] in (b"PK", b"\x89P") else ALIKE.sub(b"", text)
        for path, text in found.items()
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_was_killed_does_the_same_when_it_is_given_again(name, tmp_path, monkeypatch, capsys):
    """Before each change; or it refuses, where it has come to its end, to overwrite what it wrote."""
    from pykernel.cli.app import main

    begin, folder, whole = tmp_path / "begin", tmp_path / "folder", tmp_path / "whole"
    (begin / "out").mkdir(parents=True)
    (begin / "spec.toml").write_text(SPEC)
    (begin / "data.csv").write_text(ROWS)
    if name == "import":
        skl2onnx, svm = pytest.importorskip("skl2onnx"), pytest.importorskip("sklearn.svm")
        model = skl2onnx.to_onnx(svm.SVR().fit([[0, 0], [1, 0], [0, 1]], [0, 1, 2]), np.zeros((1, 2), np.float32))
        (begin / "model.onnx").write_bytes(model.SerializeToString())
    if name == "check":
        spec = load_spec(begin / "spec.toml")
        generate(spec, begin / "m")
        report = check.check(spec, samples=50, levels=("-O0",), compilers=[find_compilers()[0].name])
        monkeypatch.setattr(check, "check", lambda *_, **__: report)
    if name == "demo":
        x, y, names = demo.bikeshare()
        report = type("Report", (), {"ok": True, "rows": []})
        monkeypatch.setattr(demo, "bikeshare", lambda: (x[:2000], y[:2000], names))
        monkeypatch.setattr(demo, "baselines", lambda x, y: dict.fromkeys(BASELINES, (y, 0)))
        monkeypatch.setattr(demo, "check", lambda *_, **__: report)
        monkeypatch.setattr(demo, "check_targets", lambda *_, **__: report)

    def command(place):
        monkeypatch.chdir(place)
        with pytest.raises(SystemExit) as stopped:
            main(COMMANDS[name].split())
        return stopped.value.code, capsys.readouterr().err

    shutil.copytree(begin, whole)
    assert command(whole) == (0, ANY)
    wanted, refused = same(tree(whole)), 0

    def act():
        assert command(folder)[0] == 0

    # a demo computes for seconds before it writes what generate writes
    for _ in before_each_change(act, begin, folder, step=11 if name == "demo" else 1):
        ended = same(plain(folder)) == wanted
        code, err = command(folder)
        if code:
            assert ended and "already exists" in err
            refused += 1
        assert same(tree(folder)) == wanted
        monkeypatch.chdir(tmp_path)
    assert refused < 12
