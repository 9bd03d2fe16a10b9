"""The command ``pykernel generate``: a model as C."""

from __future__ import annotations

from pykernel.cli import output
from pykernel.workflows.requests import Generate


def generate(given: Generate, as_json: bool) -> None:
    from pykernel.workflows.generate import run

    made = run(given)
    files = [str(file) for file in made.files]
    read = given.watch.read if isinstance(given.watch, output.Printing) else None
    started = {"data": read} if given.start is not None else {}
    report = {"output": str(made.folder), "files": files, "sizes": made.figures, "default": made.default} | started
    output.print_report(report, as_json, lambda _: output.show_document(made.page, verdict=False))
