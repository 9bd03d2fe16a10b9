"""What a missing tool costs is told, once for each test."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support.tools import Missing, lacking, need, reason, told


def test_a_run_ends_with_a_line_for_each_missing_tool(tmp_path, capsys):
    reasons = {
        "a": reason(["cmake", "gcc"], "that it builds"),
        "b": "could not import 'unicorn': No module named 'unicorn'",
        "c": "cortex-m4f: qemu-system-arm was not found; install it (Debian: qemu-system-arm)",
        "d": "needs avr-gcc and gcc",
        "e": "the rule has no such stage",
    }
    skipped = [SimpleNamespace(nodeid=name, longrepr=("file", 1, f"Skipped: {why}")) for name, why in reasons.items()]
    lines = []
    terminal = SimpleNamespace(stats={"skipped": [*skipped, skipped[0]]}, write_line=lines.append)
    for night in ("1", "2"):
        Missing(str(tmp_path / f"{night}.missing")).pytest_terminal_summary(terminal)
    once = ["without gcc: 2 tests skipped", *(f"without {tool}: 1 test skipped" for tool in ("avr-gcc", "cmake", "qemu-system-arm", "unicorn"))]  # fmt: skip
    assert lines == 2 * once
    assert told(json.loads((tmp_path / "1.missing").read_text())) == once
    command = [sys.executable, "-m", "tests.support.tools", tmp_path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines() == once


def test_what_is_there_is_not_missing():
    assert lacking(sys.executable, "no-such-tool") == ["no-such-tool"]
    need(sys.executable)
    with pytest.raises(pytest.skip.Exception, match=r"needs no-such-tool; would show it"):
        need("no-such-tool", would="it")
