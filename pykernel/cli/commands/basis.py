"""The command ``pykernel basis``: a basis chosen from many rows, as a spec for the device."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import given_of, takes
from pykernel.cli.options.basis import BasisOptions
from pykernel.errors import UserError


@takes(BasisOptions)
def basis(options: BasisOptions) -> None:
    """Choose a basis from up to millions of rows, and write it as a spec.

    A basis is rows whose span in feature space is close to all rows. With --label the spec predicts the label, else
    coordinates.

        pykernel basis flow.csv --label flow --n-max 40 --output flow.toml

    Columns: left out is the part of tr K that the basis misses. At best is the part that the best possible one misses.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    from pykernel.workflows.basis import basis as run

    if options.output is None and options.save is None:
        raise UserError("nothing is to be written; give --output SPEC, --save NPZ, or both")
    with stopped_by_sigterm():
        report = run(**given_of(options), watch=output.Printing(options.as_json)).report
    if options.as_json:
        output.print_json(report)
    else:
        print_basis(report)
    for warning in report["warnings"]:
        output.warn(warning)


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
        output.show(f"assumed: {'; '.join(report['assumed'])}", "")
    n, limit = report["vectors"], report["limit"]
    how = "left out" if report["exact"] else "left out, estimated"
    table = output.new_table("vectors", how, *(["at best"] if limit else []))
    for count in sorted({max(1, n // 8), max(1, n // 4), max(1, n // 2), n}):
        cells = [f"{count:,}", part(report["left_out"][count])]
        table.add_row(*cells, *([part(limit[count])] if limit else []), style="bold" if count == n else "")
    width = ", ".join(f"{key} {value:g}" for key, value in report["taken"].items() if key != "ridge")
    kernel = f"{report['kernel']['function']} kernel" + (f", {width}" if width else "")
    output.show_table(f"{report['rows']:,} rows of {report['columns']} inputs, {kernel}", table)
    print_choice(report)
    if report["errors"]:
        print_error(report)
    if report.get("features"):
        output.show(
            f"features  {report['features']['count']:,}; {part(report['features']['left_out'])} of tr K is left out"
        )
    if report.get("rule"):
        output.show(f"flash     {report['flash_bytes']:,} bytes, rule {report['rule']}")
    if report.get("rounding"):
        output.show(
            f"rounding  {report['rounding']['difference']:.2g} at most on {report['rounding']['rows']:,} rows, from float64"
        )
    for key in ("spec", "basis", "plot"):
        if report[key]:
            output.show(f"{key:<9} {report[key]}")
    if report["spec"]:
        output.print_next(report["spec"])


def print_choice(report: Mapping[str, Any]) -> None:
    """How the vectors were chosen, and what that cost."""
    n = report["vectors"]
    why = f" ({report['reason']})" if report["reason"] else ""
    output.show(f"method    {report['method']}{why}")
    ends = {
        "tau": "no more than --tau is left out",
        "spanned": "of every other row less than --precision resolves is left over"
        if report["spec"]
        else "every row is spanned",
        "exhausted": "there are no more rows",
    }
    if report["stopped"] in ends:
        output.show(f"stopped   at {n:,} vectors: {ends[report['stopped']]}")
    if report["bound"] is not None:
        sure = "of all rows" if report["exact"] else f"with {100 * report['confidence']:g} % confidence"
        output.show(f"bound     at most {part(report['bound'])} is left out, {sure}")
    output.show(f"cost      {report['kernel_values']:,} kernel values, {report['seconds']:.1f} s")
    if report["shards"]:
        taken = ", ".join(f"{shard['taken']} of {shard['proposed']}" for shard in report["shards"][:8])
        more = ", …" if len(report["shards"]) > 8 else ""
        output.show(f"shards    {len(report['shards'])}; vectors taken from each: {taken}{more}")
        if not report["exact"]:
            output.show(f"estimate  on {report['measured_rows']:,} random rows")


def print_error(report: Mapping[str, Any]) -> None:
    errors = report["errors"]
    shown = output.rate if errors["measure"] == "error_rate" else output.number
    other = "always the most frequent class" if report["classes"] else "always the mean"
    output.show(
        f"error     {shown(errors['leave_one_out'])} by leave-one-out with ridge {report['taken']['ridge']:g} "
        f"({other}: {shown(errors['trivial'])})"
    )


def part(value: float) -> str:
    return f"{100 * value:.3g} %"
