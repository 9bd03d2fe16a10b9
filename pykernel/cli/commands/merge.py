"""The command ``pykernel state merge``: what several devices have learned, in one state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.telling import number
from pykernel.workflows.state_requests import Merge


def merge(given: Merge, as_json: bool) -> None:
    from pykernel.workflows.states import merged, report_of

    found = merged(given)
    output.print_report({"output": str(given.output)} | report_of(found), as_json, print_merged)
    if not as_json:
        output.warn(*found.warnings)


def print_merged(report: Mapping[str, Any]) -> None:
    ways = {
        "sums": "what the devices have summed up was added: the state is that of one model that learned all samples",
        "mean": "the function is the mean of the devices' functions",
        "answers": "a new model learned their answers where each has learned",
    }
    rows = [
        (each["device"], "-" if each["foretold"] is None else f"{each['foretold']:.2g}") for each in report["devices"]
    ]
    output.show_table(f"{report['output']}: {len(rows)} devices; {ways[report['way']]}", ("device", "foretold"), rows)
    if report["left"] is not None:
        output.show(f"not kept of what the devices answer: {number(report['left'])} of the answers' deviation")
    output.show(f"state's hash: {report['state_hash']}")
