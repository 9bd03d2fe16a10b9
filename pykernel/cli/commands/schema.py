"""The command ``pykernel schema``: the declarations of all keys, for editors."""

from __future__ import annotations

from pykernel.cli import output
from pykernel.workflows.requests import Schema


def schema(given: Schema, as_json: bool) -> None:
    output.print_json(given.run())
