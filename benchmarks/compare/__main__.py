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
from benchmarks.compare.options import CompareOptions
from benchmarks.compare.results import arena_of, report_of, workers, write
from pykernel.cli import output
from pykernel.cli.app import run
from pykernel.cli.options import ENGINE, JOBS, JSON, command, option
from pykernel.files import all_or_none, new_folder
from pykernel.telling import byte_count


@command(
    task=option(
        "--task",
        value="TASK",
        text="channel, lorenz, mackey-glass, recursion, sinc, switching; or several: a,b.",
        kind=list[str],
        without="all of them",
    ),
    data=option("--data", value="CSV", text="Your own stream instead; needs --spec."),
    spec_file=option(
        "--spec", value="SPEC", text="Spec with the columns, the label and the kernel of --data.", kind=Path
    ),
    rule=option("--rule", value="RULE", text="Compare this, or these: a,b.", kind=list[str], without="all"),
    technique=option(
        "--technique",
        value="TECHNIQUE",
        text="With this, or each of these.",
        kind=list[str],
        without="each rule's default",
    ),
    n_max=option("--n-max", "-n", value="N", text="Budget: vectors, or random features.", kind=int, default=32),
    seeds=option("--seeds", value="S", text="Number of streams of each task.", kind=int, default=10),
    rows=option("--rows", value="N", text="Length of a stream.", kind=int, without="the task's"),
    set_=option(
        "--set",
        value="[RULE.]KEY=V",
        text="A key of all rules that have it, or of one.",
        kind=list[str],
        without="the task's",
    ),
    precision=option("--precision", value="TYPE", text="float32 or float64.", default="float32"),
    jobs=JOBS,
    out=option("--output", "-o", value="FOLDER", text="Folder for the results.", kind=Path, default=Path("compared")),
    engine=ENGINE,
    as_json=JSON,
)
def compare(**given: Any) -> None:
    """Compare rules on the field's tasks: curves, a table, BibTeX.

    Each rule predicts each sample, then learns it. Errors are squared, in dB: the mean over the seeds, and its
    standard error. All rules get the same streams, the same budget and the task's kernel. The table says which
    parameters are the task's, which are defaults, and which were given. The same command writes the same CSV.

        python -m benchmarks.compare --task lorenz --rule klms,krls-t --technique nt,mklms

    Columns: MSE of the last quarter, NMSE in parts of the label's variance, stored vectors, RAM of the model.

    Exit codes: 0 done, 2 bad input, 130 interrupted.
    """
    options = CompareOptions(**given)
    arena = arena_of(options)
    output.tell(
        f"{len(arena.found)} {'contender' if len(arena.found) == 1 else 'contenders'}, "
        f"{arena.seeds} {'stream' if arena.seeds == 1 else 'streams'} each: {arena.runs:,} runs"
    )
    with new_folder(options.out):
        with workers(arena, options) as at_work:
            tasks = [task_of(each, seed, arena.rows_of(each)) for each in arena.found for seed in range(arena.seeds)]
            runs = at_work.run(tasks)
        results = [outcome(each, runs[i * arena.seeds :][: arena.seeds]) for i, each in enumerate(arena.found)]
        with all_or_none(options.out):
            written = write(options.out, arena, results)
    report = report_of(arena, results) | written
    output.print_report(report, options.as_json, print_compared)


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
app.command()(compare)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exits with 0, 2 (bad input) or 130 (interrupted)."""
    given = None if arguments is None else list(arguments)
    sys.exit(run(lambda: app(args=given, prog_name="python -m benchmarks.compare", standalone_mode=False)))


if __name__ == "__main__":
    main()
