"""The command ``pykernel state merge``: what several devices have learned, in one state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.telling import number
from pykernel.workflows.requests import Merge


def merge(given: Merge, as_json: bool) -> None:
    from pykernel.workflows.merge import report_of
    from pykernel.workflows.states import merged

    found = merged(given)
    output.print_report({"output": str(given.output)} | report_of(found), as_json, print_merged)
    if not as_json:
        output.warn(*found.warnings)


def print_merged(report: Mapping[str, Any]) -> None:
    ways = {
        "vectors": f"{report['vectors']} of all vectors were taken, and learned anew",
        "sums": "what the devices have summed up was added: the state is that of one model that learned all samples",
        "samples": "a new model learned their answers to inputs like those that each has seen",
        "mean": "the function is the mean of the devices' functions",
        "regimes": f"{report['regime_count']} regimes are known, of all together",
    }
    monitors = report["way"] == "regimes"
    columns = [("regime_count", 4), ("weight", 2), ("foretold", 2), ("error", 4)]
    heads = {"regime_count": "regimes", "error": "in alarm" if monitors else "error"}
    shown = [(name, digits) for name, digits in columns if any(each[name] is not None for each in report["devices"])]
    counted = report["vectors"] is not None
    titles = ("device", *(["vectors"] if counted else []), *(heads.get(name, name) for name, _ in shown))
    rows = [
        (
            each["device"],
            *([str(each["vectors"])] if counted else []),
            *("-" if each[name] is None else format(each[name], f".{digits}g") for name, digits in shown),
        )
        for each in report["devices"]
    ]
    output.show_table(f"{report['output']}: {len(rows)} devices; {ways[report['way']]}", titles, rows)
    if report["left"] is not None and not monitors:
        output.show(f"not kept of what the devices know together: {number(report['left'])} of the answers' deviation")
    if report["errors"]:
        told = ", ".join(f"{name} {number(error)}" for name, error in report["errors"].items())
        output.show(f"{'rows in alarm' if monitors else 'error on rows that chose nothing'}: {told}")
    output.show(f"state's hash: {report['state_hash']}")
