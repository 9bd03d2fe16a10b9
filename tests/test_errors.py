"""What errors propose: a word that was probably meant, and a command that installs what is missing."""

import importlib.metadata
import json
import shutil
import sys

import pytest

from pykernel.__main__ import main
from pykernel.errors import install_hint, nearest
from pykernel.telling import path_word


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("medv", ["CRIM", "MEDV"], "MEDV"),
        ("cortex-m4", ["cortex-m3", "cortex-m4f"], "cortex-m4f"),
        ("T", ["t", "T"], "T"),
        ("MKMLS", ["klms", "mklms"], "mklms"),
        ("pressure", ["CRIM", "MEDV"], None),
        ("", [], None),
    ],
)
def test_the_word_that_was_meant_is_found(word, known, meant):
    assert nearest(word, known) == meant


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ({"url": "file:///src/py%20kernel", "dir_info": {"editable": True}}, "-e '/src/py kernel[emulate]'"),
        ({"url": "file:///src/pykernel_mcu-1.whl", "archive_info": {}}, "'/src/pykernel_mcu-1.whl[emulate]'"),
        (
            {"url": "https://host/pykernel", "vcs_info": {"vcs": "git"}},
            "'pykernel-mcu[emulate] @ git+https://host/pykernel'",
        ),
        (None, "'pykernel-mcu[emulate]'"),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came_from(origin, wanted, monkeypatch):
    class Installed:
        def read_text(self, name):
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed())
    for pip, command in ((None, f"{sys.executable} -m pip"), (sys.executable, "pip")):
        monkeypatch.setattr(shutil, "which", lambda name, pip=pip: pip)
        assert install_hint("emulate") == f"{command} install {wanted} (about 230 MB)"


def test_from_its_own_folder_the_path_is_a_point(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    origin = {"url": tmp_path.as_uri(), "dir_info": {}}
    installed = type("Installed", (), {"read_text": lambda self, name: json.dumps(origin)})
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: installed())
    assert "install '.[zig]' (" in install_hint("zig")


def test_a_path_that_begins_with_a_dash_is_no_option():
    assert [path_word(each) for each in ("-a b.csv", "c.csv")] == ["'./-a b.csv'", "c.csv"]


def test_an_interrupt_while_the_program_is_loaded_is_one_sentence(monkeypatch, capsys):
    class Finder:
        def find_spec(self, name, *_):
            if name == "pykernel.cli.app":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "pykernel.cli.app", raising=False)
    monkeypatch.delattr("pykernel.cli.app", raising=False)
    with pytest.raises(SystemExit, match="130"):
        main()
    assert capsys.readouterr().err == "error: interrupted; no file was written\n"
