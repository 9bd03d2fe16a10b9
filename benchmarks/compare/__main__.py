"""Learning curves of rules on the field's tasks, or on a stream of one's own.

python -m benchmarks.compare --help
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from benchmarks.compare.contenders import outcome, task_of
from benchmarks.compare.options import Compare
from benchmarks.compare.results import arena_of, report_of, workers, write
from pykernel.cli import output
from pykernel.cli.app import run
from pykernel.cli.face import command
from pykernel.files import all_or_none, new_folder
from pykernel.telling import byte_count


def compare(options: Compare, as_json: bool) -> None:
    arena = arena_of(options)
    output.tell(
        f"{len(arena.found)} {'contender' if len(arena.found) == 1 else 'contenders'}, "
        f"{arena.seeds} {'stream' if arena.seeds == 1 else 'streams'} each: {arena.runs:,} runs"
    )
    folder = Path(options.output)
    with new_folder(folder):
        with workers(arena, options, as_json) as at_work:
            tasks = [task_of(each, seed, arena.rows_of(each)) for each in arena.found for seed in range(arena.seeds)]
            runs = at_work.run(tasks)
        results = [outcome(each, runs[i * arena.seeds :][: arena.seeds]) for i, each in enumerate(arena.found)]
        with all_or_none(folder):
            written = write(folder, arena, results)
    report = report_of(arena, results) | written
    (output.print_json if as_json else print_compared)(report)


def print_compared(report: Mapping[str, Any]) -> None:
    for task in dict.fromkeys(row["task"] for row in report["table"]):
        columns, cells = ("rule", "MSE, dB", "±", "NMSE, dB", "vectors", "RAM", "refused"), []
        rows = [row for row in report["table"] if row["task"] == task]
        for row in sorted(rows, key=lambda row: row["mse_db"]):
            vectors = "" if row["vectors"] is None else f"{row['vectors']:.1f}"
            spread = "" if row["seeds"] == 1 else f"{row['se_db']:.2f}"
            name = " ".join(filter(None, (row["rule"], row["technique"])))
            figures = [f"{row['mse_db']:.2f}", spread, f"{row['nmse_db']:.2f}", vectors]
            cells.append([name, *figures, byte_count(row["ram_bytes"]), f"{row['refused']:,}"])
        output.show_table(f"{task}: {rows[0]['rows']:,} samples, seeds: {rows[0]['seeds']}", columns, cells)
    for left in report["refused"]:
        output.show(f"left out  {left['task']}, {left['name']}: {left['reason']}")
    for name in ("curves", "table_csv", "tex", "bib", "plot"):
        output.show(f"{name.partition('_')[0]:<9} {report[name]}")


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(command(Compare, compare))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exits with 0, 2 (bad input) or 130 (interrupted)."""
    given = None if arguments is None else list(arguments)
    sys.exit(run(lambda: app(args=given, prog_name="python -m benchmarks.compare", standalone_mode=False)))


if __name__ == "__main__":
    main()
