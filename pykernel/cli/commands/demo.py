"""The command ``pykernel demo``: the whole way, on a year of bike rentals."""

from __future__ import annotations

from pathlib import Path

from pykernel.cli import output
from pykernel.cli.options import ENGINE, JSON, command, option
from pykernel.errors import CheckFailed


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
        result, told = run_demo(out, n_max, show)
    output.print_report(result, as_json, lambda _: output.show_document(told))
    if not result["ok"]:
        raise CheckFailed(output.first_difference(result["check"]))
