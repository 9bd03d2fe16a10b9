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


def show(called: str, request: Any, as_json: bool) -> None:
    """Run a command's request, and show the result."""
    if called in OWN:
        OWN[called](request, as_json)
        return
    module, _, name = RUNS[called].partition(".")
    present(getattr(import_module(f"pykernel.workflows.{module}"), name)(request), request, as_json)


def check(request: Check, as_json: bool) -> None:
    from pykernel.workflows.check import run

    read: dict[str, Any] = {} if request.watch.read is None else {"data": request.watch.read}
    present(run(request), request, as_json, **read)


def fit(request: Fit, as_json: bool) -> None:
    from pykernel.workflows.fit import run

    result = run(request)
    present(result, request, as_json)
    if result.report.get("interrupted"):
        raise interrupted(f"; {request.output} holds the best model so far")


def generate(request: Generate, as_json: bool) -> None:
    from pykernel.report.document import Found
    from pykernel.workflows.generate import run

    made = run(request)
    report = {
        "output": str(made.folder),
        "files": [str(file) for file in made.files],
        "sizes": made.figures,
        "default": made.default,
    }
    read = {} if request.start is None else {"data": request.watch.read}
    present(Found(report, made.page), request, as_json, verdict=False, **read)


def info(request: Info, as_json: bool) -> None:
    from pykernel.workflows.info import run

    present(run(request), request, as_json or request.about != "targets")


def plan(request: Plan, as_json: bool) -> None:
    from pykernel.tuning.plan import NothingFits
    from pykernel.workflows.plan import run

    try:
        result = run(request)
    except NothingFits as error:
        if as_json and error.report is not None:
            print_report(error.report, request.watch)
        raise
    present(result, request, as_json, verdict=False)


OWN: dict[str, Callable[[Any, bool], None]] = {
    "check": check,
    "fit": fit,
    "generate": generate,
    "info": info,
    "plan": plan,
}
"""Command -> its function, for commands that do more than show the result."""
