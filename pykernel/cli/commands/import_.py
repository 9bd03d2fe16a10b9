"""The command ``pykernel import``: a model that was trained elsewhere, as a frozen spec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.telling import byte_count
from pykernel.workflows.requests import Import

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


def import_model(given: Import, as_json: bool) -> None:
    from pykernel.workflows.imported import run_import

    spec, report = run_import(given)
    output.print_report(report, as_json, partial(print_import, spec=spec))
    if not report["ok"]:
        found = report["rounding"]
        raise CheckFailed(
            f"{given.data}: the spec is not the model: decision values differ by {found['difference']:.3g}, "
            f"{found['classes_differ']:,} classes differ; nothing was written"
        )


def print_import(report: Mapping[str, Any], spec: Spec) -> None:
    kernel = dict(report["kernel"])
    function = kernel.pop("function")
    shown = ", ".join([function, *(f"{key} {value:.6g}" for key, value in kernel.items())])
    kinds = {"ovo": "one for each pair of classes", "ovo_vote": "one for each pair of classes; votes are predicted"}
    decided = [f"{report['functions']:,}", *([kinds[k]] if (k := report["decision"]) in kinds else [])]
    rounded = "at most {error_bound:.2g}; {error_measured:.2g} at 2,000 made-up inputs"
    parts = {
        "kernel": shown,
        "inputs": f"{len(report['inputs']):,}, within {spec.input_max_abs:g}{' of the center' * spec.real.is_int16}",
        "vectors": f"{report['vectors']:,}",
        "functions": ", ".join(decided),
        "weights": f"{report['weights']:,}",
        "classes": ", ".join(report["classes"] or ()),
        "probabilities": "yes" if report["probabilities"] else "",
        "distances": report["distance"] if function == "gaussian" else "",
        "flash": byte_count(report["flash_bytes"]),
        "rounding": rounded.format_map(report) if "error_bound" in report else "",
    }
    rows = [(part, what) for part, what in parts.items() if what]
    output.show_table(f"{report['name']}: {report['source']}, {spec.precision}", ("part", "what"), rows, words=(0, 1))
    if "lost" in report:
        print_lost(report)
    if "rounding" in report:
        print_comparison(report)
    output.warn(*report["warnings"])
    output.show(f"spec   {report['spec']}")
    output.print_next(report["spec"])


def print_lost(report: Mapping[str, Any]) -> None:
    found = report["lost"]
    rows = []
    for key, what, size, unit in (
        ("error", "of the function", 1.0, ""),
        ("classes_differ", "of the classes", 100.0, " %"),
    ):
        if (value := found[key]) is None:
            continue
        own = key == "error" or found["error"] is None
        steps = [found["steps"][step] if own else None for step in ("projected", "weighed", "moved")]
        shown = ["-" if each is None else f"{size * each:.3g}{unit}" for each in (*value.values(), *steps)]
        rows.append((what, *shown))
    which = "made-up rows" if found["made_up"] else "rows left out"
    title = f"what {found['vectors_before']} vectors answer otherwise, on {found['rows']:,} {which}"
    output.show_table(title, ("", "error", "low", "high", "projected", "weighed", "moved"), rows)
    if found["flash_bytes_before"] is not None:
        before, after = (byte_count(n) for n in (found["flash_bytes_before"], report["flash_bytes"]))
        output.show(f"flash  {before} before, {after} now")


def print_comparison(report: Mapping[str, Any]) -> None:
    found = report["rounding"]
    counts = [f"{found[key]:,}" for key in ("rows", "refused", "undecided")]
    errors = [f"{found[key]:.3g}" for key in ("difference", "allowed")]
    differ = f"{found['classes_differ']:,}" if report["classes"] else "-"
    which = "smaller" if "lost" in report else "original"
    columns = ("rows", "refused", "undecided", "difference", "allowed", "classes differ")
    output.show_table(f"comparison with the {which} model", columns, [[*counts, *errors, differ]])
