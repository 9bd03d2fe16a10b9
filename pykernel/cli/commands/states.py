"""The commands about a state that a device has saved: ``pykernel snapshot show``, ``diff`` and ``to-json``, ``pykernel migrate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.requests import Migrate, SnapshotDiff, SnapshotShow, SnapshotToJson


def snapshot_show(given: SnapshotShow, as_json: bool) -> None:
    output.print_report(given.run(), as_json, print_state)


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


def snapshot_diff(given: SnapshotDiff, as_json: bool) -> None:
    report, first, second = given.run(), given.first, given.second
    rows = report["fields"]
    if as_json:
        output.print_json(report)
    elif rows:
        cells = [
            (row["field"], f"{row['values']:,}", ", ".join(map(str, row["first"])), shown(row["a"]), shown(row["b"]))
            for row in rows
        ]
        columns = ("field", "values that differ", "first at", "in A", "in B")
        output.show_table(f"{first} (A) and {second} (B)", columns, cells)
    else:
        output.show("equal")
    if rows:
        raise CheckFailed(f"{first} and {second} differ, first in {rows[0]['field']}")


def snapshot_to_json(given: SnapshotToJson, as_json: bool) -> None:
    output.print_json(given.run())


def shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def migrate(given: Migrate, as_json: bool) -> None:
    output.print_report(given.run(), as_json, print_migrated)


def print_migrated(report: Mapping[str, Any]) -> None:
    output.show(f"{report['output']}: changed: {', '.join(report['changed']) or 'nothing'}")
    if report["vectors"] is not None:
        removed = report["removed"]
        output.show(f"vectors: {report['vectors']}" + (f", after {removed} were removed" if removed else ""))
