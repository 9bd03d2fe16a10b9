"""The documents about a basis: one for a notebook, and one for ``fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pykernel.errors import shown_option
from pykernel.report import figures
from pykernel.report.common import Asked, inside, what_was_asked
from pykernel.report.document import Document, Facts, Section, Sentence, Table
from pykernel.telling import assumption_lines, formatted_number, path_word, percent, simple_errors


def basis_chosen(method: str, reason: str, left: np.ndarray, exact: bool, evaluations: int) -> Document:
    """Return the document that a notebook shows for a ``Basis``.  left: element n is the part of tr K that the first n
    vectors leave out.
    """
    about = "" if exact else "about "
    facts = [("method", method), ("why", reason), ("kernel values", f"{evaluations:,}")]
    sections = [Section("How it was chosen", [Facts(facts)]), _left_out(left, None, exact)]
    count = len(left) - 1
    return Document(
        f"basis of {count:,} vectors", f"the vectors leave out {about}{100 * left[-1]:.3g} % of tr K", sections
    )


def _left_out(left: np.ndarray, limit: Sequence[float] | None, exact: bool) -> Section:
    """Draw the part of tr K that the first n vectors leave out (``left``), and a lower bound on this part for any n
    vectors (``limit``), over n.
    """
    count = np.arange(1.0, len(left))
    lines = [figures.Line("left out" + ("" if exact else " (estimated)"), count, left[1:], "model")]
    if limit:
        lines.append(figures.Line("at best", count, np.array(limit)[1 : len(left)], "truth"))
    log = all(bool((line.y > 0).all()) for line in lines) and len(left) > 2
    plot = figures.Plot(
        "The part of tr K that the vectors leave out", "vectors", "tr R / tr K", lines, log=log, zero=not log
    )
    return Section("What is left out", [plot])


def based(report: Mapping[str, Any], asked: Asked, model: Mapping[str, Any]) -> Document:
    """Return the document about a basis that ``fit`` has chosen.  Element n of the report's lists ``left_out`` and
    ``limit`` is for n vectors.
    """
    n, limit, left, errors = report["vectors"], report["limit"], report["left_out"], report["errors"]
    said, good, error = f"{n:,} vectors leave out {_part(left[n])} of tr K ({report['rows']:,} rows)", True, ""
    if errors:
        shown, ours = percent if report["measure"] == "error_rate" else formatted_number, errors["cross_validated"]
        ((name, least),) = simple_errors(report).items()
        error = f"{shown(ours)} by leave-one-out with ridge {report['chosen']['ridge']:g} ({name}: {shown(least)})"
        said, good = f"{said}; leave-one-out error {shown(ours)}, {name} {shown(least)}", ours < least
    counts = sorted({max(1, n // 8), max(1, n // 4), max(1, n // 2), n})
    rows = [[f"{count:,}", _part(left[count]), *([_part(limit[count])] if limit else [])] for count in counts]
    width = "".join(f", {key} {value:g}" for key, value in report["chosen"].items() if key != "ridge")
    title = f"{report['rows']:,} rows of {len(report['inputs'])} inputs, {report['kernel']['function']} kernel{width}"
    heads = ("vectors", "left out" + ", estimated" * (not report["exact"]), *(["at best"] if limit else []))
    features, rounding, rule = report["features"], report.get("rounding"), report.get("rule")
    facts = [
        *_choice(report),
        ("error", error),
        ("features", f"{features['count']:,}; {_part(features['left_out'])} of tr K is left out" if features else ""),
        ("flash", f"{report['flash_bytes']:,} bytes, rule {rule}" if rule else ""),
        (
            "rounding",
            "differs from float64 by at most {difference:.2g} on {rows:,} rows".format_map(rounding)
            if rounding
            else "",
        ),
        ("spec", report["spec"]),
        ("basis", None if report["spec"] else report["output"]),
        ("report", report["report"]),
    ]
    drawn = _left_out(np.array(left), limit, report["exact"])
    sections = [
        what_was_asked(asked),
        Section("Assumed", [Sentence(line) for line in assumption_lines(report["assumed"])], "both"),
        Section(drawn.title, [*drawn.parts, Table(heads, rows, strong=(len(rows) - 1,), title=title)], "both"),
        Section("How it was chosen", [Facts(facts)], "both"),
        Section("Warnings", [Sentence(text) for text in report["warnings"]]),
        *inside(model),
    ]
    then = [f"pykernel generate {path_word(report['spec'])} -o out/"] if report["spec"] else []
    return Document(f"basis of {n:,} vectors", said, sections, good, then)


def _choice(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say how the vectors were chosen, and what the choice cost."""
    n, bound = report["vectors"], report["bound"]
    left = (
        f"every other row has a residual below the minimum for the chosen {shown_option('precision')}"
        if report["spec"]
        else "every row is spanned"
    )
    ends = {"tau": f"the limit {shown_option('tau')} is met", "spanned": left, "exhausted": "there are no more rows"}
    end = ends.get(report["stopped"])
    sure = "computed from all rows" if report["exact"] else f"with {100 * (report['confidence'] or 0):g} % confidence"
    return [
        ("method", report["method"] + (f" ({report['reason']})" if report["reason"] else "")),
        ("stopped", f"at {n:,} vectors: {end}" if end else ""),
        ("bound", "" if bound is None else f"at most {_part(bound)} is left out, {sure}"),
        ("cost", f"{report['kernel_values']:,} kernel values, {report['seconds']:.1f} s"),
    ]


def _part(value: float) -> str:
    return f"{100 * value:.3g} %"
