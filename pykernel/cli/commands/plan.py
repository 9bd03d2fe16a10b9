"""The command ``pykernel plan``: from a table to the model of smallest error that keeps a device's limits."""

from __future__ import annotations

from pykernel.cli.output import print_json, print_report, show_document
from pykernel.workflows.requests import Plan


def plan(given: Plan, as_json: bool) -> None:
    from pykernel.tuning.plan import NothingFits
    from pykernel.workflows.plan import run

    try:
        found = run(given)
    except NothingFits as error:
        if as_json and error.report is not None:
            print_json(error.report)
        raise
    print_report(found.report, as_json, lambda _: show_document(found.page, verdict=False))
