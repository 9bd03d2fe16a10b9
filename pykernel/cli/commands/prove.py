"""The command ``pykernel prove``: no call of the C leaves an array, overflows, or takes a number out of its range."""

from __future__ import annotations

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.requests import Prove


def prove(given: Prove, as_json: bool) -> None:
    from pykernel.workflows.prove import run

    found = run(given)
    output.print_report(found.report, as_json, lambda _: output.show_document(found.page, verdict=found.ok))
    if not found.ok:
        raise CheckFailed(found.verdict)
