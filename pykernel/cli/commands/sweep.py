"""The command ``pykernel sweep``: what predicts recorded data best, and what does so in the least memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pykernel.cli import inputs, output
from pykernel.cli.options import given_of, takes
from pykernel.cli.options.search import SweepOptions
from pykernel.cli.output import MEASURES
from pykernel.errors import UserError

if TYPE_CHECKING:
    from pykernel.tuning.sweep import Sweep

PICKS = {"best": "best", "cheapest": "cheapest within 5 %", "fastest": "fastest within 5 %"}


@takes(SweepOptions)
def sweep(options: SweepOptions) -> None:
    """Find the models that predict recorded data best, for each size of memory.

    Every rule is tried with every technique and budget, and their parameters are searched from coarse to fine. Each try
    runs over all rows, as pykernel simulate does. The error is that of the second half. Vectors of frozen and kfd are
    chosen from the first half. Ctrl-C keeps finished runs, and the same command continues later.

        pykernel sweep spec.toml data.csv --delay 24

    Columns: MAE, RMSE or error rate. RAM is the model and its working memory. Update is the mean number of instructions
    of one update. The first table lists only models that no other model beats in both error and RAM (or instructions).

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """
    from pykernel.workflows.sweep import sweep as run

    spec = inputs.plain_spec(options.spec_file)
    found = run(spec, watch=output.Printing(options.as_json), **given_of(options, "spec_file"))
    if options.as_json:
        output.print_json(found.report)
    else:
        print_sweep(found.report, found.found, found.trivial)


def print_sweep(report: Mapping[str, Any], found: Sweep, beaten: Mapping[str, Mapping[str, float | None]]) -> None:
    from pykernel.workflows.sweep import picks_of

    rows, picks = found.rows, picks_of(found)
    if rows:
        print_best(report, found, beaten, picks)
    if found.refused:
        print_refused(found)
    output.show(found.note)
    for name, path in report["specs"].items():
        row = rows[picks[name]]
        output.show(
            "",
            f"{PICKS[name]}: {output.model_name(row)}, {MEASURES[found.by]} {output.number(row[found.by])}, {output.byte_count(row['ram_bytes'])}",
        )
        train = f"; simulate it with --train-every {row['train_every']}" if "train_every" in row else ""
        output.show(f"  {output.key_values(row['values'])}{train}", f"  {path}")
    output.show("", f"table     {report['csv']}")
    output.show(f"plot      {report['plot'] or report['plot_note']}")
    if not rows:
        raise UserError("nothing that was tried worked; the table says why")


def print_best(
    report: Mapping[str, Any],
    found: Sweep,
    beaten: Mapping[str, Mapping[str, float | None]],
    picks: Mapping[str, int],
) -> None:
    """Print the models of the Pareto front, and the best model of each rule and technique."""
    rows, by = found.rows, found.by
    late = f", labels {report['delay']:,} {output.unit_of(report)}s late" if report["delay"] else ""
    simple = ", ".join(f"{name} {output.number(errors[by])}" for name, errors in beaten.items())
    shown = [i for i, row in enumerate(rows) if row["front"] or row["instruction_front"] or i in picks.values()]
    title = f"{report['name']}: {output.counted(report)}{late}; error over the second half (for comparison: {simple})"
    output.show_table(title, table_of(found, shown, picks))
    best_of = {(row["rule"], row["technique"]): i for i, row in reversed(list(enumerate(rows)))}
    others = sorted(best_of.values())
    output.show_table("the best model of each rule and technique", table_of(found, others, {}))
    outside = rows[picks["best"]]["inputs_refused"] + rows[picks["best"]]["labels_refused"]
    if outside:
        rows_are, were = ("row is", "was") if outside == 1 else ("rows are", "were")
        output.warn(
            f"{outside:,} {rows_are} beyond [input] max_abs or [label] max_abs, and {were} refused; raise these, or scale the columns"
        )


def print_refused(found: Sweep) -> None:
    lines = grouped(found.refused)
    heads = ("rule", "techniques", "sizes", "why not (the first)")
    used = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    table = output.new_table(*(heads[i] for i in used), words=range(len(used)))
    for line in lines:
        table.add_row(*(line[i] for i in used))
    output.show_table("combinations that cannot be used", table)


def table_of(found: Sweep, positions: Sequence[int], picks: Mapping[str, int]) -> Any:
    from pykernel.tuning.sweep import instructions

    measures = [key for key in MEASURES if any(key in row for row in found.rows)]
    head = ["rule", "technique", "size", *(MEASURES[key] for key in measures), "RAM", "update"]
    table = output.new_table(*head, *(["chosen"] if picks else []), words=(0, 1, len(head)))
    for i in positions:
        row = found.rows[i]
        count = instructions(row)
        cells = [row["rule"], row["technique"] or "", str(row["size"] or "")]
        cells += [output.number(row[key]) for key in measures]
        cells += [output.byte_count(row["ram_bytes"]), "" if count is None else f"{count:,.0f}"]
        chosen = [name for name, at in picks.items() if at == i]
        table.add_row(*cells, *([", ".join(chosen)] if picks else []), style="bold" if chosen else "")
    return table


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
