"""Hypothesis draws the same few examples by default, and fresh ones with --exhaustive, where it keeps what it finds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

DRAWS = """
from hypothesis import given, strategies as st

@given(st.integers(0, 2**40))
def test_numbers(number):
    with open("drawn.txt", "a") as file:
        print(number, file=file)
    assert number < 1000
"""


@pytest.fixture
def drawn(tmp_path: Path):
    """Run a test that fails, in a tree with this suite's conftest: the numbers that were tried, and what was printed."""
    (tmp_path / "tests" / "support").mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "support/__init__.py", "support/tools.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    (tmp_path / "tests" / "test_numbers.py").write_text(DRAWS)

    def run(*options: str) -> tuple[list[int], str]:
        (tmp_path / "drawn.txt").unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "tests/test_numbers.py"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 1, done.stdout + done.stderr
        return [int(line) for line in (tmp_path / "drawn.txt").read_text().split()], done.stdout

    return run


@pytest.mark.exhaustive
def test_a_night_keeps_what_it_finds_and_tries_it_first(drawn, tmp_path):
    first, told = drawn("--exhaustive")
    assert "@reproduce_failure(" in told and "number=1000" in told
    assert any((tmp_path / "build" / "found").rglob("*"))
    again, _ = drawn("--exhaustive")
    assert again[0] == 1000 != first[0]
    shutil.rmtree(tmp_path / "build")
    fresh, _ = drawn("--exhaustive")
    assert fresh[:20] != first[:20]


@pytest.mark.exhaustive
def test_by_default_the_examples_are_the_same(drawn, tmp_path):
    first, _ = drawn()
    again, _ = drawn()
    assert first == again
    assert not (tmp_path / "build").exists() and not (tmp_path / ".hypothesis" / "examples").exists()
