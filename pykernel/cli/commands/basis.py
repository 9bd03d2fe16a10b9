"""The command ``pykernel basis``: a basis chosen from many rows, as a spec for the device."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from pykernel.cli.output import print_next, print_report, show, show_facts, show_table, styled, warn
from pykernel.errors import UserError
from pykernel.telling import assumed_told, number, rate, simple_errors
from pykernel.workflows.requests import Basis


def basis(given: Basis, as_json: bool) -> None:
    from pykernel.workflows.basis import run

    if given.output is None and given.save is None:
        raise UserError("nothing is to be written; give --output SPEC, --save NPZ, or both")
    with stopped_by_sigterm():
        report = run(given).report
    print_report(report, as_json, print_basis)
    warn(*report["warnings"])


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Within the block, SIGTERM has the effect of Ctrl-C: the current vector is finished, and the progress is kept."""
    before = signal.getsignal(signal.SIGTERM)
    if before != signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    # also if interrupts are ignored, as in a background job
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# -------------------------------------------------------------------------------------------------------------- report


def print_basis(report: Mapping[str, Any]) -> None:
    if report["assumed"]:
        show(*assumed_told(report["assumed"]), "")
    n, limit = report["vectors"], report["limit"]
    how = "left out" if report["exact"] else "left out, estimated"
    rows = []
    for count in sorted({max(1, n // 8), max(1, n // 4), max(1, n // 2), n}):
        cells = [f"{count:,}", part(report["left_out"][count]), *([part(limit[count])] if limit else [])]
        rows.append(styled("bold", cells) if count == n else cells)
    width = ", ".join(f"{key} {value:g}" for key, value in report["taken"].items() if key != "ridge")
    kernel = f"{report['kernel']['function']} kernel" + (f", {width}" if width else "")
    title = f"{report['rows']:,} rows of {len(report['inputs'])} inputs, {kernel}"
    show_table(title, ("vectors", how, *(["at best"] if limit else [])), rows)
    features, rounding = report["features"], report.get("rounding")
    show_facts(
        *choice_of(report),
        ("error", error_of(report) if report["errors"] else ""),
        ("features", f"{features['count']:,}; {part(features['left_out'])} of tr K is left out" if features else ""),
        ("flash", f"{report['flash_bytes']:,} bytes, rule {report['rule']}" if report.get("rule") else ""),
        (
            "rounding",
            f"{rounding['difference']:.2g} at most on {rounding['rows']:,} rows, from float64" if rounding else "",
        ),
        ("spec", report["spec"]),
        ("basis", report["save"]),
        ("plot", report["plot"]),
    )
    if report["spec"]:
        print_next(report["spec"])


def choice_of(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How the vectors were chosen, and what that cost."""
    n, shards = report["vectors"], report["shards"]
    ends = {
        "tau": "no more than --tau is left out",
        "spanned": "of every other row less than --precision resolves is left over"
        if report["spec"]
        else "every row is spanned",
        "exhausted": "there are no more rows",
    }
    end, bound = ends.get(report["stopped"]), report["bound"]
    sure = "of all rows" if report["exact"] else f"with {100 * (report['confidence'] or 0):g} % confidence"
    taken = ", ".join(f"{shard['taken']} of {shard['proposed']}" for shard in (shards or ())[:8])
    more = ", …" if len(shards or ()) > 8 else ""
    estimated = shards and not report["exact"]
    return [
        ("method", report["method"] + (f" ({report['reason']})" if report["reason"] else "")),
        ("stopped", f"at {n:,} vectors: {end}" if end else ""),
        ("bound", "" if bound is None else f"at most {part(bound)} is left out, {sure}"),
        ("cost", f"{report['kernel_values']:,} kernel values, {report['seconds']:.1f} s"),
        ("shards", f"{len(shards)}; vectors taken from each: {taken}{more}" if shards else ""),
        ("estimate", f"on {report['measured_rows']:,} random rows" if estimated else ""),
    ]


def error_of(report: Mapping[str, Any]) -> str:
    errors = report["errors"]
    shown = rate if report["measure"] == "error_rate" else number
    ((other, least),) = simple_errors(report).items()
    return (
        f"{shown(errors['leave_one_out'])} by leave-one-out with ridge {report['taken']['ridge']:g} "
        f"({other}: {shown(least)})"
    )


def part(value: float) -> str:
    return f"{100 * value:.3g} %"
