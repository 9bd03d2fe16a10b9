"""The command ``pykernel sweep``: what predicts recorded data best, and what does so in the least memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pykernel.cli.output import print_report, show, show_facts, show_table, styled, warn
from pykernel.errors import UserError
from pykernel.telling import MEASURES, byte_count, counted, key_values, model_name, number, unit_of
from pykernel.workflows.requests import Sweep

PICKS = {"best": "best", "cheapest": "cheapest within 5 %", "fastest": "fastest within 5 %"}


def sweep(given: Sweep, as_json: bool) -> None:
    print_report(given.run().report, as_json, print_sweep)


def print_sweep(report: Mapping[str, Any]) -> None:
    rows, by, picks = report["table"], report["measure"], report["picks"]
    if rows:
        print_best(report, picks)
    if report["unusable"]:
        print_unusable(report["unusable"])
    show(report["note"])
    for name, path in report["specs"].items():
        row = rows[picks[name]]
        costs = f"{MEASURES[by]} {number(row[by])}, {byte_count(row['ram_bytes'])}"
        train = f"; simulate it with --train-every {row['train_every']}" if "train_every" in row else ""
        show("", f"{PICKS[name]}: {model_name(row)}, {costs}", f"  {key_values(row['values'])}{train}", f"  {path}")
    show("", f"table     {report['csv']}")
    show_facts(("report", report["plot"]))
    if not rows:
        raise UserError("nothing that was tried worked; the table says why")


def print_best(report: Mapping[str, Any], picks: Mapping[str, int]) -> None:
    """Print the models of the Pareto front, and the best model of each rule and technique."""
    rows, by = report["table"], report["measure"]
    late = f", labels {report['delay']:,} {unit_of(report)}s late" if report["delay"] else ""
    simple = ", ".join(f"{name} {number(errors[by])}" for name, errors in report["simple"].items())
    shown = [i for i, row in enumerate(rows) if row["front"] or row["instruction_front"] or i in picks.values()]
    title = f"{report['name']}: {counted(report)}{late}; error over the second half (for comparison: {simple})"
    if devices := report.get("device_split"):
        others = ", ".join(f"{name} {number(errors[by])}" for name, errors in report["simple_left_out"].items())
        title += f" of {devices['choose']:,} devices that choose; left out: {devices['judge']:,} that do not (there: {others})"
    show_rows(title, rows, shown, picks)
    best_of = {(row["rule"], row["technique"]): i for i, row in reversed(list(enumerate(rows)))}
    show_rows("the best model of each rule and technique", rows, sorted(best_of.values()), {})
    outside = rows[picks["best"]]["inputs_refused"] + rows[picks["best"]]["labels_refused"]
    if outside:
        rows_are, were = ("row is", "was") if outside == 1 else ("rows are", "were")
        warn(
            f"{outside:,} {rows_are} beyond [input] max_abs or [label] max_abs, and {were} refused; raise these, or scale the columns"
        )


def print_unusable(unusable: Sequence[Mapping[str, Any]]) -> None:
    lines = grouped(unusable)
    heads = ("rule", "techniques", "sizes", "why not (the first)")
    used = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    cells = [[line[i] for i in used] for line in lines]
    show_table("combinations that cannot be used", [heads[i] for i in used], cells, words=range(len(used)))


def show_rows(
    title: str, rows: Sequence[Mapping[str, Any]], positions: Sequence[int], picks: Mapping[str, int]
) -> None:
    """Print some of the tried models.  picks: names and positions of those that are chosen."""
    from pykernel.tuning.sweep import instructions

    measures = [key for key in MEASURES if any(key in row for row in rows)]
    left_out = measures if any("left_out" in row for row in rows) else []
    heads = [*(MEASURES[key] for key in measures), *(f"{MEASURES[key]}, left out" for key in left_out)]
    head = ["rule", "technique", "size", *heads, "RAM", "update"]
    lines = []
    for i in positions:
        row = rows[i]
        count = instructions(row)
        cells = [row["rule"], row["technique"] or "", str(row["size"] or ""), *(number(row[key]) for key in measures)]
        cells += [number(row["left_out"][key]) for key in left_out]
        cells += [byte_count(row["ram_bytes"]), "" if count is None else f"{count:,.0f}"]
        chosen = [name for name, at in picks.items() if at == i]
        cells += [", ".join(chosen)] if picks else []
        lines.append(styled("bold", cells) if chosen else cells)
    show_table(title, [*head, *(["chosen"] if picks else [])], lines, words=(0, 1, len(head)))


def grouped(refused: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Groups of refused combinations with the same reason: rule, techniques, sizes, and the first one's reason.

    Two reasons are the same if they differ only in names and numbers.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in refused:
        kind = re.sub(r"[\d,]+|\"[^\"]*\"", "", row["reason"])
        if row["technique"]:
            kind = re.sub(rf"\b{re.escape(row['technique'])}\b", "", kind, count=1)
        groups.setdefault((row["rule"], kind), []).append(row)
    found = []
    for (rule, _), rows in groups.items():
        parts = [dict.fromkeys(str(row[key]) for row in rows if row[key] is not None) for key in ("technique", "size")]
        found.append((rule, ", ".join(parts[0]), ", ".join(parts[1]), rows[0]["reason"]))
    return found
