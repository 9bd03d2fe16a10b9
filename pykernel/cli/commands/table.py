"""The command ``pykernel table``: a table as an array on disk, from which any row can be read at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.workflows.requests import TableOf


def table(given: TableOf, as_json: bool) -> None:
    from pykernel.workflows.table import run

    output.print_report(run(given), as_json, print_converted)


def print_converted(report: Mapping[str, Any]) -> None:
    out, rows = report["output"], report["rows"]
    if "made" in report:
        output.show_facts(
            *(("made", f"{each} = {how}") for each, how in report["made"].items()),
            ("file", f"{out}, {rows:,} rows; the device must compute the same inputs"),
            ("notes", f"{report['notes']}, for plan and fit: specs and headers then tell how inputs are made"),
        )
        return
    names, precision = report["columns"], report["precision"]
    size = rows * len(names) * (8 if precision == "float64" else 4) + 128
    output.show_facts(
        ("columns", ", ".join(f"{j}: {each}" for j, each in enumerate(names))),
        ("file", f"{out}, {rows:,} rows of {precision}, {size:,} bytes"),
    )
