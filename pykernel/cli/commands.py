"""Run each command: import and run its workflow, and show the result."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pykernel.cli.output import interrupted, present, print_report
from pykernel.workflows.fit_request import Fit
from pykernel.workflows.requests import Check, Generate, Info, Plan

RUNS = {
    "demo": "demo.run",
    "simulate": "simulate.run",
    "prove": "prove.run",
    "page": "page.run",
    "import": "imported.run",
    "state show": "states.show",
    "state migrate": "states.migrate",
    "state merge": "states.run_merge",
    "state replay": "replay.run",
    "table": "table.run",
}
"""Command -> its workflow, for commands that only show the result."""


def show(called: str, given: Any, as_json: bool) -> None:
    """Run a command's request, and show the result."""
    if called in OWN:
        OWN[called](given, as_json)
        return
    module, _, name = RUNS[called].partition(".")
    present(getattr(import_module(f"pykernel.workflows.{module}"), name)(given), given, as_json)


def check(given: Check, as_json: bool) -> None:
    from pykernel.workflows.check import run

    read: dict[str, Any] = {} if given.watch.read is None else {"data": given.watch.read}
    present(run(given), given, as_json, **read)


def fit(given: Fit, as_json: bool) -> None:
    from pykernel.workflows.fit import run

    found = run(given)
    present(found, given, as_json)
    if found.report.get("interrupted"):
        raise interrupted(f"; {given.output} holds the best model so far")


def generate(given: Generate, as_json: bool) -> None:
    from pykernel.report.document import Found
    from pykernel.workflows.generate import run

    made = run(given)
    report = {
        "output": str(made.folder),
        "files": [str(file) for file in made.files],
        "sizes": made.figures,
        "default": made.default,
    }
    read = {} if given.start is None else {"data": given.watch.read}
    present(Found(report, made.page), given, as_json, verdict=False, **read)


def info(given: Info, as_json: bool) -> None:
    from pykernel.workflows.info import run

    present(run(given), given, as_json or given.about != "targets")


def plan(given: Plan, as_json: bool) -> None:
    from pykernel.tuning.plan import NothingFits
    from pykernel.workflows.plan import run

    try:
        found = run(given)
    except NothingFits as error:
        if as_json and error.report is not None:
            print_report(error.report, given.watch)
        raise
    present(found, given, as_json, verdict=False)


OWN: dict[str, Callable[[Any, bool], None]] = {
    "check": check,
    "fit": fit,
    "generate": generate,
    "info": info,
    "plan": plan,
}
"""Command -> its function, for commands that do more than show the result."""
