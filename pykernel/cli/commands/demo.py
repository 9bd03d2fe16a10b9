"""The command ``pykernel demo``: the whole way, on a year of bike rentals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import ENGINE, JSON, command, option
from pykernel.errors import CheckFailed
from pykernel.telling import byte_count


@command(
    out=option(
        "--output",
        "-o",
        value="FOLDER",
        text="Folder for the project and the report.",
        kind=Path,
        default=Path("pykernel-demo"),
    ),
    n_max=option("--n-max", "-n", value="N", text="Budget: largest number of stored samples.", kind=int, default=32),
    engine=ENGINE,
    as_json=JSON,
)
def demo(out: Path, n_max: int, as_json: bool) -> None:
    """Show every step, on a year of bike rentals.

    A model of a few kilobytes predicts the rentals of each hour, then learns them. The table compares it with simple
    forecasts and linear models. Then pykernel generates the model's C, compiles it and runs it on the same year. The
    memory must be equal, byte for byte. If the extra emulate is installed, an emulated Cortex-M4F runs the C too. This
    takes less than a minute.

        pykernel demo -o my-demo --n-max 16

    Columns: error is the mean absolute error over the second half of the year, in rentals per hour. State is the memory
    that the predictor needs on the device.

    Exit codes: 0 done, 1 the C computes other bytes, 2 bad input.
    """
    from pykernel.cli.work.demo import run_demo

    with output.Printing(as_json).progress() as show:
        result = run_demo(out, n_max, show)
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
        ("report", result["plot"]),
        ("project", f"{result['project']}   (copy it into your firmware)"),
    )
    spec = quote(result["spec"])
    output.print_next(result["spec"], f"pykernel simulate {spec} {quote(result['csv'])} --delay 24")
