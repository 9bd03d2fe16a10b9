"""``pytest --cpu``: CPU seconds of rooms, beside the budgets of CONTRIBUTING.md, and of the dearest tests."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tests.support import ROOT

DEAREST = 40
"""So many tests are listed, each with all its parameters."""
START = "start"
"""What no test took: imports, collection."""


def room_of(nodeid: str) -> str:
    """tests/gen/test_check.py::... -> gen; what lies in tests/ itself: (tests)."""
    if nodeid == START:
        return START
    parts = nodeid.split("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "(tests)"


def budgets(text: str) -> dict[str, float]:
    """The table that begins with "| room |": CPU seconds that a room may take; empty if there is none."""
    table = re.search(r"^\| room \|.*\n\|[-|: ]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in (table[1] if table else "").splitlines()
    ]
    return {row[0]: float(row[1].replace(",", "")) for row in rows}


def compared(spent: Counter[str], allowed: dict[str, float]) -> list[str]:
    """A line for each room, the dearest first."""
    lines = []
    for room, seconds in spent.most_common():
        budget = f"{allowed[room]:9,.0f}{'  over' if seconds > allowed[room] else ''}" if room in allowed else ""
        lines.append(f"{room:12} {seconds:9,.1f} {budget}".rstrip())
    return [*lines, f"{'all':12} {sum(spent.values()):9,.1f}"]


def by_room(spent: Counter[str]) -> Counter[str]:
    rooms: Counter[str] = Counter()
    for test, seconds in spent.items():
        rooms[room_of(test)] += seconds  # type: ignore[assignment]  # a Counter of float
    return rooms


class CPU:
    """In each process it sums up what tests took; workers of xdist hand theirs to the process that reports."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()

    @staticmethod
    def now() -> float:
        """Of this process, and of children that have ended."""
        return sum(os.times()[:4])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        before = self.now()
        result = yield
        self.spent[item.nodeid.partition("[")[0]] += self.now() - before
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        alone = not session.config.getoption("numprocesses", None)
        if alone:  # else this process has run nothing, and its children report themselves
            self.spent[START] = self.now() - sum(self.spent.values())
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cpu"] = dict(self.spent)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.spent.update(getattr(node, "workeroutput", {}).get("cpu", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("CPU seconds")
        for line in compared(by_room(self.spent), budgets((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))):
            terminalreporter.write_line(line)
        for test, seconds in self.spent.most_common(DEAREST):
            terminalreporter.write_line(f"{seconds:9,.1f} {test}")
