"""The command ``pykernel prove``: no call of the C leaves an array, overflows, or takes a number out of its range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.requests import Prove

if TYPE_CHECKING:
    from pykernel.workflows.prove import Proved


def prove(given: Prove, as_json: bool) -> None:
    from pykernel.workflows.prove import run

    found = run(given)
    if as_json:
        output.print_json(found.report)
    else:
        print_proof(found)
    if not found.ok:
        raise CheckFailed(found.verdict)


def print_proof(found: Proved) -> None:
    columns = ("call", "from", "proved", "alarms", "ranges", "reached", "seconds")
    rows = [
        [
            row["call"],
            row["level"],
            output.Styled("yes", "green") if row["proved"] else output.Styled("NO", "bold red"),
            str(row["alarms"]),
            f"{row['proved_ranges']} of {row['ranges']}" if row["ranges"] else "-",
            f"{row['reached']} of {row['statements']}" if row["statements"] else "-",
            f"{row['seconds']:.1f}",
        ]
        for row in found.rows
    ]
    output.show_table(f"what no call of {found.name} does, by {found.tools}", columns, rows, words=(0, 1))
    for alarm in found.alarms:
        output.show(*alarm_told(alarm), "")
    for row in found.rows:
        if not row["proved"] and not row["alarms"]:
            output.show(f"{row['call']} ({row['level']}): {row['why']}", "")
    left = dict.fromkeys(name for row in found.rows for name in row["unreached"])
    if left:
        output.show(f"statements that no such call reaches: {', '.join(left)}", "")
    steps = f"{found.proved_nan_steps} of {found.nan_steps} steps about NaN proved by WP and Z3"
    output.show(steps, f"configuration {found.config_hash}; {found.seconds:g} s in all")
    if found.ok:
        output.show("", found.verdict)


def alarm_told(alarm: Mapping[str, Any]) -> list[str]:
    """Lines about an alarm: what it may mean, the line of C, how the call got there."""
    lines = [f"{alarm['file']}:{alarm['line']}: {alarm['meaning']}, in {alarm['call']} ({alarm['level']})"]
    lines += [f"    {alarm['code']}"] if alarm["code"] else []
    lines += [f"    not proved: {alarm['condition']}"] if alarm["condition"] else []
    return [*lines, *([f"    called by: {' < '.join(alarm['stack'])}"] if alarm["stack"] else [])]
