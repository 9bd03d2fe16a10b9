"""The commands ``pykernel state show`` and ``migrate``: a state that a device has saved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.state_requests import Migrate, Show


def show(given: Show, as_json: bool) -> None:
    from pykernel.workflows import states

    report = states.show(given)
    differ = report["fields"] if len(given.files) > 1 else []
    output.print_report(report, as_json, print_state if len(given.files) == 1 else partial(print_difference, given))
    if differ:
        raise CheckFailed(f"{given.files[0]} and {given.files[1]} differ, first in {differ[0]['field']}")


def print_state(report: Mapping[str, Any]) -> None:
    cells = [
        (
            row["field"],
            " x ".join(map(str, row["shape"])),
            f"{row['nonzero']:,}",
            shown(row["least"]),
            shown(row["largest"]),
        )
        for row in report["fields"]
    ]
    title = f"{report['name']}, kind of state {report['state_kind']}, save number {report['sequence']}"
    columns = ("field", "shape", "not zero", "least", "largest")
    output.show_table(f"{title}; the state's hash is {report['state_hash']}", columns, cells)


def print_difference(given: Show, report: Mapping[str, Any]) -> None:
    cells = [
        (row["field"], f"{row['values']:,}", ", ".join(map(str, row["first"])), shown(row["a"]), shown(row["b"]))
        for row in report["fields"]
    ]
    columns = ("field", "values that differ", "first at", "in A", "in B")
    if cells:
        output.show_table(f"{given.files[0]} (A) and {given.files[1]} (B)", columns, cells)
    else:
        output.show("equal")


def shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def migrate(given: Migrate, as_json: bool) -> None:
    from pykernel.workflows import states

    output.print_report(states.migrate(given), as_json, print_migrated)


def print_migrated(report: Mapping[str, Any]) -> None:
    output.show(f"{report['output']}: changed: {', '.join(report['changed']) or 'nothing'}")
    if report["vectors"] is not None:
        removed = report["removed"]
        output.show(f"vectors: {report['vectors']}" + (f", after {removed} were removed" if removed else ""))
