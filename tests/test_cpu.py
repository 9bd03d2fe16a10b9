"""``pytest --cpu``: what tests take is said, room by room, with what their children took."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.support import ROOT
from tests.support.cpu import budgets, compared

TABLE = """
| room | CPU seconds |
|---|---|
| `gen` | 1,200 |
| host | 80 |

text
"""
BUSY = """
import subprocess, sys
def test_busy():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.7: pass"], check=True)
"""


def test_budgets_are_those_of_the_table():
    assert budgets(TABLE) == {"gen": 1200, "host": 80}
    assert budgets("text") == {}


def test_what_is_over_its_budget_is_said():
    lines = compared(Counter({"gen": 1200.5, "host": 79, "pages": 3}), budgets(TABLE))
    assert [line.split() for line in lines] == [
        ["gen", "1,200.5", "1,200", "over"],
        ["host", "79.0", "80"],
        ["pages", "3.0"],
        ["all", "1,282.5"],
    ]


@pytest.mark.in_turn
@pytest.mark.parametrize("jobs", [[], ["-n", "1"]])
@pytest.mark.exhaustive
def test_children_count_with_and_without_workers(tmp_path, jobs):
    """In a folder like tests/, with our conftest."""
    for name in ("room", "support"):
        (tmp_path / "tests" / name).mkdir(parents=True)
    tests = ROOT / "tests"
    # all of support: the conftest may import any of it
    for path in (tests / "conftest.py", tests / "__init__.py", *(tests / "support").glob("*.py")):
        (tmp_path / "tests" / path.relative_to(tests)).write_bytes(path.read_bytes())
    (tmp_path / "tests" / "room" / "__init__.py").touch()
    (tmp_path / "tests" / "room" / "test_busy.py").write_text(BUSY)
    (tmp_path / "CONTRIBUTING.md").write_text("| room | CPU seconds |\n|---|---|\n| room | 0 |\n")
    command = [sys.executable, "-m", "pytest", "--cpu", "--rootdir", str(tmp_path), *jobs, "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    (seconds,) = re.findall(r"^room +(\S+) +0  over$", done.stdout, re.MULTILINE)
    assert float(seconds) >= 0.7
