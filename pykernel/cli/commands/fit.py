"""The command ``pykernel fit``: a kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

from pykernel.cli.output import interrupted, print_report, show_document, warn
from pykernel.workflows.fit_request import Fit


def fit(given: Fit, as_json: bool) -> None:
    from pykernel.workflows.fit import run

    found = run(given)
    print_report(found.report, as_json, lambda _: show_document(found.page))
    warn(*found.warnings)
    if found.report.get("interrupted"):
        raise interrupted(f"; {given.output} is the best so far")
