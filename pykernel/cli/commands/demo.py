"""The command ``pykernel demo``: the whole way, on a year of bike rentals."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.telling import byte_count
from pykernel.workflows.requests import Demo


def demo(given: Demo, as_json: bool) -> None:
    from pykernel.workflows.demo import run

    result = run(given)
    output.print_report(result, as_json, print_demo)
    if not result["ok"]:
        raise CheckFailed(output.first_difference(result["check"]))


def print_demo(result: Mapping[str, Any]) -> None:
    model, *others = [
        (row["predictor"], f"{row['mae']:.1f}", byte_count(row["state_bytes"])) for row in result["accuracy"]
    ]
    title = f"{result['rows']:,} hours of bike rentals, predicted and then learned"
    output.show_table(title, ("predictor", "error", "state"), [output.styled("bold", model), *others])
    emulated = [row for row in result["check"] if "target" in row]
    output.print_check([row for row in result["check"] if "target" not in row])
    if emulated:
        output.print_targets(emulated)
    else:
        output.show(f"{result['target_note']}", "")
    output.print_sizes(result["sizes"])
    output.show_facts(
        ("plot", result["plot"] or result["plot_note"]),
        ("project", f"{result['project']}   (copy it into your firmware)"),
    )
    spec = quote(result["spec"])
    output.print_next(result["spec"], f"pykernel simulate {spec} {quote(result['csv'])} --delay 24")
