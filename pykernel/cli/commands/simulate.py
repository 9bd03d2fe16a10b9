"""The command ``pykernel simulate``: a model on recorded data, as the device would learn from it."""

from __future__ import annotations

from pykernel.cli.output import print_report, show_document, warn
from pykernel.errors import UserError
from pykernel.telling import unread_told
from pykernel.workflows.requests import Simulate


def simulate(given: Simulate, as_json: bool) -> None:
    from pykernel.workflows.simulate import run

    found = run(given)
    print_report(found.report, as_json, lambda _: show_document(found.page))
    warn(*[] if as_json else found.warnings)
    if unread := found.report.get("unread"):
        raise UserError(unread_told(unread, len(found.report["devices"]) + len(unread)))
