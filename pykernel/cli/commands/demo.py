"""The command ``pykernel demo``: the whole way, on a year of bike rentals."""

from __future__ import annotations

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.requests import Demo


def demo(given: Demo, as_json: bool) -> None:
    from pykernel.workflows.demo import run

    result, told = run(given)
    output.print_report(result, as_json, lambda _: output.show_document(told))
    if not result["ok"]:
        raise CheckFailed(output.first_difference(result["check"]))
