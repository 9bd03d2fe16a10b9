"""The command ``pykernel state replay``: what a device has logged, done again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.errors import CheckFailed, UserError
from pykernel.telling import devices_shown, unread_told
from pykernel.workflows.state_requests import Replay


def replay(given: Replay, as_json: bool) -> None:
    from pykernel.workflows.replay import run

    report = run(given)
    wrong, shown = report.pop("wrong"), print_devices if "devices" in report else print_replay
    output.print_report(report, as_json, shown)
    unread = report.get("unread")
    sentence = unread and unread_told(unread, len(report["devices"]) + len(unread))
    if wrong is not None:
        output.warn(*[sentence] if sentence else [])
        raise CheckFailed(wrong)
    if sentence:
        raise UserError(sentence)


def print_devices(report: Mapping[str, Any]) -> None:
    """Print which devices computed what they should, and the first difference of each other one."""
    devices, differ = report["devices"], report["differ"]
    rows, words = devices_shown(devices, lambda each: not each["ok"])
    told = [
        [each["device"], f"{each['rows']:,}", "yes" if each["ok"] else "NO", (each["difference"] or {}).get("text", "")]
        for each in rows
    ]
    columns = ("device", "rows", "equal", "the first difference")
    output.show_table(f"{report['name']}: {words}, {report['rows']:,} rows replayed", columns, told, words=(0, 2, 3))
    output.show(f"{len(devices) - differ:,} of {len(devices):,} devices computed what they should")


def print_replay(report: Mapping[str, Any]) -> None:
    updates, end = report["updates"], report["state_hash"]
    done = f", {updates:,} updates replayed; the state's hash is {end}" if end else " replayed"
    compared = [(kind, f"{count:,}") for kind, count in report["compared"].items()]
    output.show_table(f"{report['name']}: {report['rows']:,} rows{done}", ("compared", "rows"), compared)
    if report["fields"]:
        columns = ("field", "values that differ", "first on the device", "on the host")
        rows = [(row["field"], f"{row['values']:,}", row["device"], row["host"]) for row in report["fields"]]
        output.show_table("the state at the end", columns, rows)
