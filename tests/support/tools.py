"""Programs and libraries that tests need and a machine may lack, and what their absence costs.

python -m tests.support.tools FOLDER    # the same, over the files of many runs that --missing wrote
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

FILES = {
    "libsimavr-dev": "/usr/include/simavr/sim_avr.h",
    "arduino-core-avr": "/usr/share/arduino/hardware/arduino/avr",
    "/proc": "/proc/self",
}
"""What is no program -> a file or a folder that is there with it."""
REASONS = (r"needs ([^;]+)", r"could not import '(\w+)", r"(?:^|: )(\S+) was not found")
"""How a reason for skipping a test names what was missing: several names stand between commas."""


def lacking(*tools: str) -> list[str]:
    return [tool for tool in tools if not (Path(FILES[tool]).exists() if tool in FILES else shutil.which(tool))]


def reason(tools: Iterable[str], would: str) -> str:
    return f"needs {', '.join(tools)}{would and f'; would show {would}'}"


def needs(*tools: str, would: str = "") -> Any:
    """The mark of tests that need all of these tools.  would: what the tests show."""
    return pytest.mark.skipif(bool(lacking(*tools)), reason=reason(lacking(*tools), would))


def need(*tools: str, would: str = "") -> None:
    """Skip the running test if one of the tools is missing."""
    if found := lacking(*tools):
        pytest.skip(reason(found, would))


def told(missing: Mapping[str, Iterable[str]]) -> list[str]:
    """A line for each tool; those that cost most come first."""
    counts = {tool: len(set(tests)) for tool, tests in missing.items()}
    return [
        f"without {tool}: {count} test{'s' * (count > 1)} skipped"
        for tool, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


class Missing:
    """A plugin of pytest: a run ends with a line for each tool that was missing, and the number of tests that it cost."""

    def __init__(self, file: str | None) -> None:
        self.file = file

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        missing: dict[str, set[str]] = defaultdict(set)
        for report in terminalreporter.stats.get("skipped", ()):
            why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
            names = next((found[1] for form in REASONS if (found := re.search(form, why))), "")
            for tool in filter(None, re.split(", | and ", names)):
                missing[tool].add(report.nodeid)
        for line in told(missing):
            terminalreporter.write_line(line)
        if self.file:
            Path(self.file).parent.mkdir(parents=True, exist_ok=True)
            Path(self.file).write_text(json.dumps({tool: sorted(tests) for tool, tests in missing.items()}))


def main(folder: str) -> None:
    missing: dict[str, set[str]] = defaultdict(set)
    for path in Path(folder).rglob("*.missing"):
        for tool, tests in json.loads(path.read_text()).items():
            missing[tool] |= set(tests)
    print(*(told(missing) or ["no tool was missing"]), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
