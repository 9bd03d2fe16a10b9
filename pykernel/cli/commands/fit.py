"""The command ``pykernel fit``: a kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import given_of, takes
from pykernel.cli.options.fit import FitOptions


@takes(FitOptions)
def fit(options: FitOptions) -> None:
    """Train a kernel machine on a table, and write it as a spec for the device.

    Leave-one-out chooses width and ridge: of all cells within 1 % of the best, the largest ridge. Few vectors (--n-max, --flash)
    are trained, too, and taken if better. The model will be in flash. A label of words is a class.

        pykernel fit flowers.csv --label kind --output iris.toml --plot surface.png

    Columns: errors is the part of rows that got a wrong class. PRESS is the mean squared difference to the targets. RMSE
    is the square root of PRESS.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    from pykernel.workflows.fit import fit as run

    found = run(**given_of(options), watch=output.Printing(options.as_json))
    if options.as_json:
        output.print_json(found.report)
    else:
        print_fit(found.report)
    for warning in found.warnings:
        output.warn(warning)
    if found.report.get("interrupted"):
        raise output.interrupted(f"; {options.output} is the best so far")


def print_fit(report: Mapping[str, Any]) -> None:
    if report["table"]:
        print_grid(report)
    if report.get("candidates"):
        print_candidates(report)
    print_estimates(report)
    how = f", chosen by {report['basis']['method']}" if report["basis"] else ""
    output.show(f"vectors   {report['vectors']:,}{how}, in {report['flash_bytes']:,} bytes of flash with their weights")
    if report.get("instead") and (report["basis"] or report["model"] == "trained"):
        print_instead(report)
    if report["precision"] == "int16":
        found = report["rounding"]
        output.show(
            f"int16     moves predictions by {found['difference']:.2g} at most on {found['rows']:,} rows, by {found['allowed']:.2g} at "
            "most for any input"
        )
    output.show(f"spec      {report['spec']}")
    if report["plot"]:
        output.show(f"plot      {report['plot']}")
    output.print_next(report["spec"])


def print_instead(report: Mapping[str, Any]) -> None:
    """Print the alternative: trained vectors if the model's vectors were chosen, chosen vectors if they were
    trained.
    """
    other, shown = report["instead"], output.rate if report["classes"] else output.number
    kind = "chosen" if report["model"] == "trained" else "trained"
    output.show(
        f"instead   {other['vectors']:,} {kind} vectors, {shown(other['error'])} in {other['flash_bytes']:,} bytes (--model "
        f"{other['model']}): {abs(other['better']):.1f} standard errors {'better' if other['better'] > 0 else 'worse'} on the same rows"
    )


def how_tested(report: Mapping[str, Any]) -> str:
    return "leave-one-out" if isinstance(report["cv"], str) else f"{report['cv']} folds"


def trained_on(report: Mapping[str, Any]) -> str:
    rows = f"{report['rows']:,} {output.unit_of(report)}s, {len(report['inputs'])} inputs"
    return f"{report['model']}, {report['kernel']['function']} kernel, {rows}"


def print_grid(report: Mapping[str, Any]) -> None:
    """The best ridge of each width, and the cell that is taken."""
    classes, taken = report["classes"], report["taken"]
    width = next((key for key in taken if key != "ridge"), None)
    table = output.new_table(*([width] if width else []), "ridge", *(["errors", "PRESS"] if classes else ["RMSE"]))
    for cell in report["widths"]:
        press = cell["press"]
        figures = (
            [output.rate(cell["error"]), output.number(press)]
            if classes
            else [output.number(math.sqrt(press) if press >= 0 else math.nan)]
        )
        cells = [*([f"{cell['width']:g}"] if width else []), f"{cell['ridge']:g}"]
        ours = cell["ridge"] == taken["ridge"] and (width is None or cell["width"] == taken[width])
        table.add_row(*cells, *figures, style="bold" if ours else "")
    output.show_table(f"{trained_on(report)}: {len(report['table']):,} cells by {how_tested(report)}", table)


def print_candidates(report: Mapping[str, Any]) -> None:
    """Widths and ridges that were compared, the best first."""
    table = output.new_table("inputs", "widths", "ridge", "steps", "loss")
    for at, cell in enumerate(report["candidates"]):
        cells = (
            cell["inputs"],
            cell["widths"],
            f"{cell['ridge']:g}",
            f"{cell['steps']:,}",
            output.number(cell["risk"]),
        )
        table.add_row(*cells, style="bold" if at == 0 else "")
    output.show_table(f"{trained_on(report)}: {len(report['candidates'])} candidates by {how_tested(report)}", table)


def print_estimates(report: Mapping[str, Any]) -> None:
    """What to expect of the model."""
    classes, how = report["classes"], how_tested(report)
    shown = output.rate if classes else output.number
    table = output.new_table("estimate", "errors" if classes else "RMSE")
    errors = report["errors"]
    best, taken = (
        ", ".join(f"{key} {value if isinstance(value, str) else f'{value:g}'}" for key, value in report[cell].items())
        for cell in ("best", "taken")
    )
    if best != taken:
        cell = report["table"][0]
        table.add_row(f"{how}, best: {best}", shown(cell["error"] if classes else math.sqrt(cell["press"])))
    table.add_row(f"{how}, taken: {taken}", shown(errors["cross_validated"]), style="bold")
    if errors.get("corrected") is not None:
        table.add_row("the same, corrected for having been chosen", shown(errors["corrected"]))
    if "linear" in errors:
        table.add_row("a linear model", shown(errors["linear"]))
    table.add_row("always the most frequent class" if classes else "always the mean", shown(errors["trivial"]))
    if "held_out" in errors:
        deviation = errors["held_out_deviation"]
        about = f" ± {shown(deviation)}" if deviation is not None else ""
        table.add_row(
            f"{report['held_out_rows']:,} {output.unit_of(report)}s held out", f"{shown(errors['held_out'])}{about}"
        )
    found = report["table"] or report.get("candidates")
    output.show_table("what to expect" if found else trained_on(report), table)
    if report["reason"]:
        output.show(f"taken     {report['reason']}")
