"""The command ``pykernel page``: a model that learns in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.workflows.requests import Page


def page(given: Page, as_json: bool) -> None:
    from pykernel.workflows.page import run

    output.print_report(run(given), as_json, print_page)


def print_page(report: Mapping[str, Any]) -> None:
    output.show(f"{report['output']}: {report['rows']:,} rows, {report['bytes']:,} bytes; open it in a browser")
