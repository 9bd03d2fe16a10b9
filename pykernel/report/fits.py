"""The document about a kernel machine that was trained on a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.errors import shown_option
from pykernel.report import figures
from pykernel.report.common import Asked, inside, what_was_asked
from pykernel.report.document import Document, Facts, Part, Section, Sentence, Table, table_of
from pykernel.telling import (
    cross_validation_phrase,
    data_sentences,
    formatted_number,
    path_word,
    percent,
    root_of_mean_square,
    rows_with_unit,
    simple_errors,
    unit_of,
)


def fitted(
    report: Mapping[str, Any], asked: Asked, read: Section, grid: tuple[Any, ...] | None, model: Mapping[str, Any]
) -> Document:
    """Return the document about a trained machine. grid: the arguments of ``figures.heat``, or None without a grid of widths
    and ridges.
    """
    classes, errors, how = report["classes"], report["errors"], cross_validation_phrase(report)
    shown, measure = (percent, "errors") if classes else (formatted_number, "RMSE")
    rows = f"{report['rows']:,} {unit_of(report)}s, {len(report['inputs'])} inputs"
    trained = f"{report['model']}, {report['kernel']['function']} kernel, {rows}"
    simple = simple_errors(report)
    name, ours = min(simple, key=lambda each: simple[each]), errors["cross_validated"]
    error = f"{shown(ours)} by {how}" if ours is not None else f"unknown, because {how} were interrupted"
    flash = f"in {report['flash_bytes']:,} bytes of flash"
    said = f"{report['model']}, {vectors_phrase(report)} {flash}: {measure} {error}; {name}: {shown(simple[name])}"
    by = f", chosen by {report['basis']['method']}" if report["basis"] else ""
    moved = (
        "changes predictions by at most {difference:.2g} on {rows:,} rows, and by at most {allowed:.2g} for any input"
    )
    tried = [] if grid is None else [figures.heat(*grid)]
    sections = [
        what_was_asked(
            asked,
            ("data", "; ".join(data_sentences(report.get("data")))),
            ("assumed", "; ".join(report.get("assumed", ()))),
        ),
        read,
        Section("Errors of widths and ridges", [*tried, *_tried(report, trained)], "both"),
        Section("What to expect", [_expected(report, measure)], "both"),
        Section(
            "The model",
            [
                Facts(
                    [
                        ("chosen", report["reason"]),
                        ("vectors", f"{vectors_phrase(report)}{by}, {flash} with their weights"),
                        ("instead", _instead(report) if report.get("instead") else ""),
                        ("int16", moved.format_map(report["rounding"]) if report["precision"] == "int16" else ""),
                        ("reached", report.get("reached")),
                        ("spec", report["spec"]),
                        ("report", report["report"]),
                    ]
                )
            ],
            "both",
        ),
        Section("Warnings", [Sentence(text) for text in report["warnings"]]),
        *inside(model),
    ]
    good = ours is not None and ours < simple[name]
    then = [f"pykernel generate {path_word(report['spec'])} -o out/"] if report["spec"] else []
    return Document(f"fit of {report['name']}: {rows_with_unit(report)}", said, sections, good, then)


def _expected(report: Mapping[str, Any], measure: str) -> Table:
    """List estimates of the error on new rows, and the errors of simple models."""
    classes, errors, how = report["classes"], report["errors"], cross_validation_phrase(report)
    shown = percent if classes else formatted_number
    best, taken = (_values(report[cell]) for cell in ("best", "chosen"))
    estimates = {
        f"{how}, best: {best}": _error(report["table"][0], classes) if report["table"] and best != taken else None,
        f"{how}, chosen: {taken}": errors["cross_validated"],
        "the same, corrected for the choice": errors.get("corrected"),
        **simple_errors(report),
        f"{report['held_out_rows']:,} {unit_of(report)}s held out": errors.get("held_out"),
    }
    about = errors.get("held_out_deviation")
    known = [[text, shown(error)] for text, error in estimates.items() if error is not None]
    if about is not None:
        known[-1][1] += f" ± {shown(about)}"
    strong = [i for i, row in enumerate(known) if row[0] == f"{how}, chosen: {taken}"]
    return Table(("estimate", measure), known, strong=strong)


def _values(cell: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value if isinstance(value, str) else f'{value:g}'}" for key, value in cell.items())


def _error(cell: Mapping[str, Any], classes: Any) -> float:
    return cell["error"] if classes else root_of_mean_square(cell["press"])


def _tried(report: Mapping[str, Any], trained: str) -> list[Part]:
    """Return a table of the candidates, with the best first, and a table of the best ridge for each width.  The chosen
    candidate and the chosen width are in bold.
    """
    classes, taken, how, cells = (
        report["classes"],
        report["chosen"],
        cross_validation_phrase(report),
        report.get("candidates") or (),
    )
    compared = [
        [cell["inputs"], cell["widths"], f"{cell['ridge']:g}", f"{cell['steps']:,}", formatted_number(cell["risk"])]
        for cell in cells
    ]
    heads, title = ("inputs", "widths", "ridge", "steps", "loss"), f"{trained}: {len(cells)} candidates by {how}"
    tables: list[Part] = [Table(heads, compared, strong=(0,), title=title)]
    if report["table"]:
        width = next((key for key in taken if key != "ridge"), "")
        rows = [
            {
                width: f"{cell['width']:g}" if width else "",
                "ridge": f"{cell['ridge']:g}",
                "errors" if classes else "RMSE": (percent if classes else formatted_number)(_error(cell, classes)),
                "PRESS": formatted_number(cell["press"]) if classes else "",
            }
            for cell in report["widths"]
        ]
        ours = {f"{key}": f"{value:g}" for key, value in taken.items()}
        strong = [i for i, row in enumerate(rows) if ours.items() <= row.items()]
        tables.append(table_of(rows, (width,), strong, f"{trained}: {len(report['table']):,} cells by {how}"))
    return tables


def _instead(report: Mapping[str, Any]) -> str:
    """Describe the machines that were compared with the chosen machine."""
    shown = percent if report["classes"] else formatted_number
    return "; ".join(
        f"{vectors_phrase(other)} with {shown_option('model', other['model'])}: {shown(other['error'])} in {other['flash_bytes']:,} bytes, "
        f"{'better' if other['better'] > 0 else 'worse'} than the chosen model by {abs(other['better']):.1f} standard errors of the difference"
        for other in report["instead"]
    )


def vectors_phrase(model: Mapping[str, Any]) -> str:
    """Say how many vectors a model has, or how many hidden units a network has."""
    return f"{model['vectors']:,} {'hidden units' if model['model'] == 'network' else 'vectors'}"
