"""The command ``pykernel fit``: a kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pykernel.cli.output import interrupted, print_next, print_report, show_facts, show_table, styled, warn
from pykernel.telling import how_tested, number, rate, root, simple_errors, unit_of
from pykernel.workflows.requests import Fit


def fit(given: Fit, as_json: bool) -> None:
    from pykernel.workflows.fit import run

    found = run(given)
    print_report(found.report, as_json, print_fit)
    warn(*found.warnings)
    if found.report.get("interrupted"):
        raise interrupted(f"; {given.output} is the best so far")


def print_fit(report: Mapping[str, Any]) -> None:
    if report["table"]:
        print_grid(report)
    if report.get("candidates"):
        print_candidates(report)
    print_estimates(report)
    how = f", chosen by {report['basis']['method']}" if report["basis"] else ""
    moved = "moves predictions by {difference:.2g} at most on {rows:,} rows, by {allowed:.2g} at most for any input"
    compared = report.get("instead") and (report["basis"] or report["model"] == "trained")
    show_facts(
        ("vectors", f"{report['vectors']:,}{how}, in {report['flash_bytes']:,} bytes of flash with their weights"),
        ("instead", instead_of(report) if compared else ""),
        ("int16", moved.format_map(report["rounding"]) if report["precision"] == "int16" else ""),
        ("reached", report.get("reached")),
        ("spec", report["spec"]),
        ("plot", report["plot"]),
    )
    print_next(report["spec"])


def instead_of(report: Mapping[str, Any]) -> str:
    """The alternative: trained vectors if the model's vectors were chosen, chosen vectors if they were trained."""
    other, shown = report["instead"], rate if report["classes"] else number
    kind = "chosen" if report["model"] == "trained" else "trained"
    return (
        f"{other['vectors']:,} {kind} vectors, {shown(other['error'])} in {other['flash_bytes']:,} bytes (--model "
        f"{other['model']}): {abs(other['better']):.1f} standard errors {'better' if other['better'] > 0 else 'worse'} on the same rows"
    )


def trained_on(report: Mapping[str, Any]) -> str:
    rows = f"{report['rows']:,} {unit_of(report)}s, {len(report['inputs'])} inputs"
    return f"{report['model']}, {report['kernel']['function']} kernel, {rows}"


def print_grid(report: Mapping[str, Any]) -> None:
    """The best ridge of each width, and the cell that is taken."""
    classes, taken = report["classes"], report["taken"]
    width = next((key for key in taken if key != "ridge"), None)
    rows = []
    for cell in report["widths"]:
        figures = [rate(cell["error"]), number(cell["press"])] if classes else [number(root(cell["press"]))]
        cells = [*([f"{cell['width']:g}"] if width else []), f"{cell['ridge']:g}", *figures]
        ours = cell["ridge"] == taken["ridge"] and (width is None or cell["width"] == taken[width])
        rows.append(styled("bold", cells) if ours else cells)
    columns = [*([width] if width else []), "ridge", *(["errors", "PRESS"] if classes else ["RMSE"])]
    show_table(f"{trained_on(report)}: {len(report['table']):,} cells by {how_tested(report)}", columns, rows)


def print_candidates(report: Mapping[str, Any]) -> None:
    """Widths and ridges that were compared, the best first."""
    best, *others = [
        (cell["inputs"], cell["widths"], f"{cell['ridge']:g}", f"{cell['steps']:,}", number(cell["risk"]))
        for cell in report["candidates"]
    ]
    title = f"{trained_on(report)}: {1 + len(others)} candidates by {how_tested(report)}"
    show_table(title, ("inputs", "widths", "ridge", "steps", "loss"), [styled("bold", best), *others])


def print_estimates(report: Mapping[str, Any]) -> None:
    """What to expect of the model."""
    classes, how, errors = report["classes"], how_tested(report), report["errors"]
    shown = rate if classes else number

    def shown_if_known(error: float | None, about: str = "") -> str:
        return "" if error is None else shown(error) + about

    best, taken = (
        ", ".join(f"{key} {value if isinstance(value, str) else f'{value:g}'}" for key, value in report[cell].items())
        for cell in ("best", "taken")
    )
    first = report["table"][0] if best != taken else None
    other = None if first is None else first["error"] if classes else math.sqrt(first["press"])
    deviation = errors.get("held_out_deviation")
    about = f" ± {shown(deviation)}" if deviation is not None else ""
    estimates = {
        f"{how}, best: {best}": shown_if_known(other),
        f"{how}, taken: {taken}": shown(errors["cross_validated"]),
        "the same, corrected for having been chosen": shown_if_known(errors.get("corrected")),
        **{name: shown(error) for name, error in simple_errors(report).items()},
        f"{report['held_out_rows']:,} {unit_of(report)}s held out": shown_if_known(errors.get("held_out"), about),
    }
    known = [(text, error) for text, error in estimates.items() if error]
    rows = [styled("bold", row) if row[0] == f"{how}, taken: {taken}" else row for row in known]
    found = report["table"] or report.get("candidates")
    title = "what to expect" if found else trained_on(report)
    show_table(title, ("estimate", "errors" if classes else "RMSE"), rows)
    show_facts(("taken", report["reason"]))
