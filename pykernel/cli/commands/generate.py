"""The command ``pykernel generate``: a model as C."""

from __future__ import annotations

from pykernel.cli import output
from pykernel.workflows.requests import Generate


def generate(given: Generate, as_json: bool) -> None:
    from pykernel.workflows.generate import run

    made = run(given)
    if as_json:
        read = given.watch.read if isinstance(given.watch, output.Printing) else None
        files = [str(file) for file in made.files]
        started = {"data": read} if given.start is not None else {}
        output.print_json({"output": str(made.folder), "files": files, "sizes": made.figures} | started)
        return
    output.print_sizes(made.figures)
    for file in made.files:
        output.show(file)
