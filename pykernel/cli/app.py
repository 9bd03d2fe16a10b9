"""The command ``pykernel``.  Whatever takes long to import is imported by the command that needs it."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from pykernel.cli.commands import basis as cli_basis
from pykernel.cli.commands import choose as cli_choose
from pykernel.cli.commands import fit as cli_fit
from pykernel.cli.commands import import_ as cli_import
from pykernel.errors import CheckFailed, UserError
from pykernel.files import all_or_none, open_plain, whole_file

if TYPE_CHECKING:
    from rich.table import Table

    from pykernel.host.simulate import Monitoring, Simulation
    from pykernel.host.snapshot import Snapshot
    from pykernel.spec.model import Spec

OK, FAILED, BAD_INPUT, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141  # the last two as shells have them
UsageError = typer.BadParameter.__base__  # click's, or typer's copy of it

app = typer.Typer(
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines, and nothing else.")]
SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The model, a TOML file.", show_default=False)]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Execute the Python file that the spec's [kernel] source names.")
]


@app.callback(invoke_without_command=True)
def pykernel(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Kernel models that keep learning on a microcontroller, in fixed memory.

    A model is written down in a spec, a small TOML file. Try it on recorded data, generate its C, and check that the C
    computes what was simulated, to the byte:

        pykernel demo                             see the whole way, on real data
        pykernel simulate spec.toml data.csv      how well would this model learn?
        pykernel generate spec.toml -o out/       the model as C, for a firmware
        pykernel check spec.toml                  does the C do the same?
        pykernel check spec.toml --target all     ... and on emulated microcontrollers?
        pykernel replay spec.toml log.csv         and what the device logged?
        pykernel plan --ram 4k data.csv           which model is best, and fits?
        pykernel fit data.csv -o spec.toml        trained here, predicts there
        pykernel import svc.skops -o spec.toml    trained by scikit-learn
        pykernel basis rows.npy -o spec.toml      few vectors for millions of rows

    **Exit codes**: 0 done, 1 the check failed, 2 bad input (one sentence on standard error says what).
    """
    if version:
        from importlib.metadata import version as installed

        print(f"pykernel {installed('pykernel-mcu')}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


# ------------------------------------------------------------------------------------------------------------ demo


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the project and the plot go.")
    ] = Path("pykernel-demo"),
    n_max: Annotated[int, typer.Option("--n-max", metavar="N", help="The budget: most expansion vectors.")] = 32,
    as_json: Json = False,
) -> None:
    """See the whole way, on a year of bike rentals.

    Each hour's rentals are predicted, then learned, in a few kilobytes, beside what is trivial (the last hour, the same
    hour yesterday) and beside linear models. Then the model's C is generated, compiled, fed the same year and compared
    byte for byte, and on an emulated Cortex-M4F, where the extra `emulate` is installed. Less than a minute.

        pykernel demo -o my-demo --n-max 16

    **Columns**: *error* is the mean absolute error over the second half of the year, in rentals per hour; *state* is
    the memory that the predictor needs on the device.

    **Exit codes**: 0 done, 1 the C computes something else, 2 bad input.
    """
    from pykernel.cli.work.demo import run_demo

    with _progress(as_json) as show:
        result = run_demo(out, n_max, show)
    if as_json:
        _print_json(result)
    else:
        _print_demo(result)
    if not result["ok"]:
        raise CheckFailed(_first_difference(result["check"] + result["targets"]))


def _print_demo(result: Mapping[str, Any]) -> None:
    table = _table("predictor", "error", "state")
    for row in result["accuracy"]:
        style = "bold" if row is result["accuracy"][0] else ""
        table.add_row(row["predictor"], f"{row['mae']:.1f}", _bytes(row["state_bytes"]), style=style)
    _print(f"{result['rows']:,} hours of bike rentals, predicted and then learned", table)
    _print_check(result["check"])
    if result["targets"]:
        _print_targets(result["targets"])
    else:
        print(f"{result['target_note']}\n")
    _print_sizes(result["sizes"])
    print(f"plot      {result['plot'] or result['plot_note']}")
    print(f"project   {result['project']}   (copy it into your firmware)")
    print("\nnext:")
    print(f"  pykernel simulate {_quoted(result['spec'])} {_quoted(result['data'])} --delay 24")
    print(f"  pykernel generate {_quoted(result['spec'])} -o out/")


# -------------------------------------------------------------------------------------------------------- simulate


@app.command()
def simulate(
    spec_file: SpecFile,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A CSV file; - reads standard input.", show_default=False)
    ],
    delay: Annotated[int, typer.Option("--delay", metavar="K", help="Labels arrive K rows late.")] = 0,
    refresh_every: Annotated[
        int,
        typer.Option("--refresh-every", metavar="N", help="Call the model's refresh after each N rows; 0 is never."),
    ] = 0,
    train_every: Annotated[
        int,
        typer.Option("--train-every", metavar="N", help="Call the model's train after every N labels; 0 is never."),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="CSV", help="Write each row's answer.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="PNG", help="Draw the errors (or answers) over time.", show_default=False),
    ] = None,
    trust: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Try a model on recorded data, as the device would learn from it.

    Row t is predicted, then row t - K is learned: a forecast never sees the future. The data is comma-separated text,
    of any length, whose first line names the columns; the spec says which are meant:

        [input]
        columns = ["temperature", "humidity"]

        [label]
        column = "rentals"

    or, for several labels that one model learns, columns = ["rentals", "returns"]; or, for a classifier, column and
    classes = ["low", "high"], as they are called in the data's cells. An empty label cell means that there is no label
    yet: the row is predicted, not learned. A model that learns without labels (okfeb, without the section) is asked how
    new each row is, then learns it.

        pykernel simulate spec.toml data.csv --delay 24
        pykernel simulate spec.toml data.csv -o predictions.csv --plot errors.png
        pykernel simulate krr.toml data.csv --train-every 50
        pykernel simulate monitor.toml data.csv --plot novelty.png
        zcat year.csv.gz | pykernel simulate spec.toml - --json

    **Columns**: *MAE* is the mean absolute error, *RMSE* the root mean square error, in the label's unit, over the
    whole stream and over its second half; of several labels each has its own, and *all* are the means over rows that
    have all. *last label* predicts the last label known, *running mean* the mean of all known, under the same delay.
    For classes, *errors* is the part of rows that were taken for another class, and *majority class* the most frequent
    one known; then a table of which class was taken for which. In the CSV written: row (from 0), prediction, label, and
    the status of what was learned after that prediction (row - K). A model that learns nothing on the device is only
    scored, and the status is the prediction's. One that is trained at once (krr, ls-svm, kfd) is trained after every N
    labels and after the last; then its own leave-one-out error is told, for which kfd takes the data once more. Without
    labels: *mean* and *largest* of what was answered, and *in alarm* the part of the rows at which there was an alarm
    ([novelty]). An alarm lasts over rows in a row; *level* is its highest. The CSV then has the answer under its question's
    name; where there are alarms, it has the level and the threshold after each row.

    **Exit codes**: 0 done, 2 bad input.
    """
    from pykernel.host.simulate import (
        Monitoring,
        Simulation,
        prediction_header,
        prediction_lines,
        require_columns,
        samples_of,
    )

    spec = _spec(spec_file, trust)
    require_columns(spec, str(spec_file))
    for path in (output, plot):
        if path and data != "-" and path.exists() and Path(data).exists() and path.samefile(data):
            raise UserError(f"{path}: is the data itself; write to another file")
    if plot:
        _need_matplotlib()
    simulation: Simulation | Monitoring
    with all_or_none(), contextlib.ExitStack() as stack:
        name, file, size = _open(data, stack)
        written = stack.enter_context(whole_file(output)) if output else None
        if spec.program.label_kind == "none":
            for option, given in (("delay", delay), ("train-every", train_every)):
                if given:
                    raise UserError(
                        f"{spec.name} learns without labels, so that --{option} means nothing; leave it out"
                    )
            simulation = Monitoring(spec, refresh_every)
        else:
            simulation = Simulation(spec, delay, refresh_every, train_every)
        show = stack.enter_context(_progress(as_json, size))
        if written:
            written.write(prediction_header(spec).encode())
        for batch in samples_of(spec, file, name):
            for steps in simulation.run(batch.x, batch.y):
                if written:
                    written.write(prediction_lines(spec, steps).encode())
            show(batch.position, f"running {spec.name}")
        if simulation.sweeps and train_every and data != "-" and file.seekable():
            _, again, _ = _open(data, stack)
            simulation.finish(samples_of(spec, again, name))
        else:
            simulation.finish()
        if plot and isinstance(simulation, Monitoring):
            _plot_monitoring(plot, simulation)
        elif plot and isinstance(simulation, Simulation):
            _plot_simulation(plot, simulation)
    report = simulation.report() | {"output": str(output) if output else None, "plot": str(plot) if plot else None}
    if as_json:
        _print_json(report)
    elif isinstance(simulation, Monitoring):
        _print_monitoring(report)
    else:
        _print_simulation(report)


def _open(data: str, stack: contextlib.ExitStack) -> tuple[str, BinaryIO, int | None]:
    """Name, file and size (if it is known) of the data."""
    if data == "-":
        return "standard input", sys.stdin.buffer, None
    try:
        file = stack.enter_context(open_plain(data, inherited=True))
    except FileNotFoundError:
        raise UserError(f"{data}: there is no such file; give a CSV file, or - for standard input") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{data}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return data, file, os.fstat(file.fileno()).st_size or None


def _need_matplotlib() -> None:
    """Say so before the work, not after it."""
    import importlib.util

    from pykernel.errors import MissingExtra

    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("--plot", "plot")


def _plot_simulation(path: Path, simulation: Simulation) -> None:
    from pykernel.plots import error_figure

    rows, errors = simulation.errors.curve()
    curves = dict(zip(simulation.errors.names, errors.T, strict=True))
    ylabel = f"mean absolute error ({', '.join(simulation.labels)})"
    if simulation.classes:
        ylabel = "part of rows taken for another class"
    error_figure(path, f"{simulation.spec.name}: error over time", rows, curves, ylabel[:80], "row")


def _plot_monitoring(path: Path, simulation: Monitoring) -> None:
    from pykernel.plots import course_figure

    name, asked = simulation.spec.name, simulation.spec.program.asks
    course_figure(path, f"{name}: {asked} over time", simulation.course.curves(), simulation.course.names, asked, "row")


def _print_confusion(classes: Sequence[str], counts: Sequence[Sequence[int]], most: int = 8) -> None:
    """Which class was taken for which: as a matrix, or if there are many, the most frequent mistakes."""
    if len(classes) <= most:
        table = _table("label", *map(_cell, classes))
        for name, row in zip(classes, counts, strict=True):
            table.add_row(_cell(name), *(f"{count:,}" for count in row))
        _print("rows of each class, by the class that they were taken for", table)
        return
    size = range(len(classes))
    wrong = sorted((-counts[i][j], i, j) for i in size for j in size if i != j and counts[i][j])
    table = _table("label", "taken for", "rows")
    for count, i, j in wrong[:most]:
        table.add_row(_cell(classes[i]), _cell(classes[j]), f"{-count:,}")
    _print("the most frequent mistakes", table)


def _cell(name: str) -> str:
    """A name of the spec's in a table, where rich would take brackets for markup."""
    from rich.markup import escape

    return escape(_visible(name))


def _rate(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"


def _print_simulation(report: Mapping[str, Any]) -> None:
    classes = report.get("classes")
    kinds = {"error_rate": "errors"} if classes else {"mae": "MAE", "rmse": "RMSE"}
    labels = {"all": report} if "labels" not in report else report["labels"] | {"all": report}
    titles = ["predictor", *kinds.values(), *(f"{kind}, 2nd half" for kind in kinds.values())]
    table = _table(*(["label"] if len(labels) > 1 else []), *titles)
    table.columns[len(labels) > 1].justify = "left"
    for label, found in labels.items():
        parts = [found["all"], found["second_half"]]
        for name in next(iter(parts[0][kind] for kind in kinds)):
            figures = [part[kind][name] for part in parts for kind in kinds]
            shown = [_rate(figure) for figure in figures] if classes else [_number(figure) for figure in figures]
            first = [_cell(label) if name == "model" else ""] if len(labels) > 1 else []
            table.add_row(*first, name, *shown, style="bold" if name == "model" else "")
    late = f", labels {report['delay']:,} rows late" if report["delay"] else ""
    _print(f"{report['name']}: {report['rows']:,} rows{late}", table)
    if classes:
        _print_confusion(classes, report["confusion"])
    what = _table("status", "samples")
    for status, count in report["statuses"].items():
        what.add_row(status.replace("_", " "), f"{count:,}")
    for key, text in (
        ("unlabelled", "no label yet"),
        ("waiting", "label came too late to be learned"),
        ("inputs_refused", "not predicted (input refused)"),
    ):
        if report[key]:
            what.add_row(text, f"{report[key]:,}")
    _print("what became of the samples", what)
    _print_alarms(report)
    if report.get("trainings"):
        done = ", ".join(f"{text.replace('_', ' ')} {count:,}" for text, count in report["trainings"].items())
        print(f"trainings       {done}")
    if found := report.get("leave_one_out"):
        rate = f", {_rate(found['error_rate'])} of the samples taken for another class" if classes else ""
        told = f"mean squared error {_number(found['mse'])}{rate}" if found["mse"] is not None else "nothing to tell"
        why = found["status"].replace("_", " ")
        if found.get("samples") == 0:
            why = "each sample is needed once more after the last training; give the data as a file"
        print(f"leave-one-out   {told} ({why})\n")
    if report["warning"]:
        _warn(report["warning"])
    for key in ("output", "plot"):
        if report[key]:
            print(f"{key}   {report[key]}")


def _print_monitoring(report: Mapping[str, Any]) -> None:
    watched = ["in alarm"] if "alarms" in report else []
    table = _table("answer", "rows", "mean", "largest", *watched)
    for text, part in (("all", report["all"]), ("2nd half", report["second_half"])):
        for i, name in enumerate(part["mean"]):
            figures = [_number(part["mean"][name]), _number(part["largest"][name])]
            figures += [_rate(part["in_alarm"]) if i == 0 else ""] if watched else []
            table.add_row(name, text, *figures)
    _print(f"{report['name']}: {report['rows']:,} rows, without labels", table)
    what = _table("status", "samples")
    for status, count in report["statuses"].items():
        what.add_row(status.replace("_", " "), f"{count:,}")
    _print("what became of the samples", what)
    _print_alarms(report)
    if report["warning"]:
        _warn(report["warning"])
    for key in ("output", "plot"):
        if report[key]:
            print(f"{key}   {report[key]}")


def _print_alarms(report: Mapping[str, Any], most: int = 12) -> None:
    """The first alarms, and how many there were."""
    found = report.get("alarms")
    if found is None:
        return
    if found["count"]:
        table = _table("from row", "to row", "level")
        for alarm in found["listed"][:most]:
            table.add_row(f"{alarm['first_row']:,}", f"{alarm['last_row']:,}", _number(alarm["level"]))
        if found["count"] > most:
            table.add_row("...", "", "")
        count = (
            f"1 alarm, {found['samples']:,} rows"
            if found["count"] == 1
            else (f"{found['count']:,} alarms, {found['samples']:,} rows")
        )
        _print(count, table)
    said = "" if found["count"] else "no alarm; "
    print(f"{said}at the end the level is {_number(found['level'])}, the threshold {_number(found['threshold'])}\n")


# ---------------------------------------------------------------------------------------------------------- choose

app.command()(cli_choose.sweep)
app.command()(cli_choose.plan)
app.command()(cli_fit.fit)
app.command()(cli_basis.basis)
app.command()(cli_basis.convert)
app.command("import")(cli_import.import_model)

# ---------------------------------------------------------------------------------------------------------- replay


@app.command()
def replay(
    spec_file: SpecFile,
    log: Annotated[str, typer.Argument(metavar="LOG", help="A CSV file; - reads standard input.", show_default=False)],
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="The device's state at the end of the log.", show_default=False),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--start", metavar="FILE", help="The device's state before the log.", show_default=False),
    ] = None,
    trust: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Do again what a device has logged, and name the first update that differs.

    The log is comma-separated text whose first line names the columns, in any order:

        x0,x1,label,state_hash

    that is, the inputs (or their names in the spec), the label, and at least one of *state_hash* (NAME_hash after this
    row, in hexadecimal), *status* (what NAME_update returned) and *prediction*. Empty cells were not recorded; a row
    without a label was predicted, not learned. Of a model that learns without labels there is *novelty* (the name of its
    main question) in place of the prediction, and *learned* in place of the label: 0 in rows that it was only asked about,
    1 or no such column otherwise. A column *call* names other functions that were called, such as refresh,
    in rows of their own. Numbers are in decimal with 9 digits (17 for float64) or hexadecimal, as C's %a prints them.

        pykernel replay spec.toml log.csv
        pykernel replay spec.toml log.csv --state end.bin

    A *FILE* is a snapshot, as NAME_save writes it, or the first NAME_STATE_BYTES of the model; with one from the end of
    the log, the fields that differ are named too.

    **Exit codes**: 0 equal, 1 not equal, 2 bad input.
    """
    from pykernel.host.replay import ANSWERS, Replay, device_memory, differing_fields, read_log
    from pykernel.spec.model import STATE_LIMIT

    spec = _spec(spec_file, trust)
    most = 2 * STATE_LIMIT
    at_end = device_memory(spec, _bytes_of(state, most), str(state)) if state else None
    run = Replay(spec, _bytes_of(start, most), str(start)) if start else Replay(spec)
    with contextlib.ExitStack() as stack:
        name, file, size = _open(log, stack)
        show = stack.enter_context(_progress(as_json, size))
        for rows in read_log(file, name, spec):
            if run.run(rows) and at_end is None:
                break
            show(rows.position, f"replaying {spec.name}")
    if at_end is None and not any(run.compared.values()):
        answer = ANSWERS.get(spec.program.asks, spec.program.asks)
        what = f"state_hash, status or {answer}, or give --state" if spec.program.learns else f"status or {answer}"
        raise UserError(f"{name}: holds nothing to compare with; record {what}")
    fields = differing_fields(spec, at_end, run.model.memory) if at_end is not None else []
    ok = run.difference is None and not fields
    if as_json:
        _print_json({"ok": ok} | run.report() | {"fields": fields})
    else:
        _print_replay(run.report(), fields)
    if not ok:
        what = f"{name}, {run.difference}" if run.difference else f"{state}: {fields[0]['field']} differs"
        advice = run.advice()
        raise CheckFailed(f"{what}; {advice}" if advice else what)


def _bytes_of(path: Path, most: int) -> bytes:
    """The first bytes of what a device has saved."""
    try:
        with open_plain(path) as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _print_replay(report: Mapping[str, Any], fields: Sequence[Mapping[str, Any]]) -> None:
    table = _table("compared", "rows")
    for kind, count in report["compared"].items():
        table.add_row(kind, f"{count:,}")
    updates, end = report["updates"], report["state_hash"]
    done = f", {updates:,} updates replayed; the state's hash is {end}" if end else " replayed"
    _print(f"{report['name']}: {report['rows']:,} rows{done}", table)
    if fields:
        differing = _table("field", "values that differ", "first on the device", "on the host")
        for row in fields:
            differing.add_row(row["field"], f"{row['values']:,}", row["device"], row["host"])
        _print("the state at the end", differing)


# -------------------------------------------------------------------------------------------------------- snapshot

snapshot_app = typer.Typer(rich_markup_mode="markdown", context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(snapshot_app, name="snapshot")
SnapshotFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="What NAME_save or NAME_store wrote.", show_default=False)
]


@snapshot_app.callback()
def snapshot() -> None:
    """Look at a state that a device has saved.

    A snapshot is what NAME_save writes to a buffer and NAME_store to a slot, NAME_SNAPSHOT_BYTES of it. It is checked
    as the device checks it: format, configuration, length, CRC-32, then every count and number.

        pykernel snapshot show spec.toml state.bin
        pykernel snapshot diff spec.toml monday.bin friday.bin
        pykernel snapshot to-json spec.toml state.bin
    """


@snapshot_app.command("show")
def snapshot_show(spec_file: SpecFile, file: SnapshotFile, trust: TrustCode = False, as_json: Json = False) -> None:
    """Show what a saved state holds.

        pykernel snapshot show spec.toml state.bin

    **Columns**: *not zero* is how many values are not: slots that are not in use are zero. The state's hash is what
    NAME_hash returns.

    **Exit codes**: 0 done, 2 bad input, or a snapshot that the device would refuse.
    """
    spec, (found,) = _snapshots(spec_file, trust, file)
    rows = found.ranges()
    report = {
        "name": spec.name,
        "config_hash": f"{found.config_hash:08x}",
        "sequence": found.sequence,
        "state_hash": f"{found.state_hash:08x}",
        "fields": rows,
    }
    if as_json:
        _print_json(report)
        return
    table = _table("field", "shape", "not zero", "least", "largest")
    for row in rows:
        shape = " x ".join(map(str, row["shape"]))
        table.add_row(row["field"], shape, f"{row['nonzero']:,}", _value(row["least"]), _value(row["largest"]))
    title = f"{spec.name}, configuration {report['config_hash']}, save number {found.sequence}"
    _print(f"{title}; the state's hash is {report['state_hash']}", table)


@snapshot_app.command("diff")
def snapshot_diff(
    spec_file: SpecFile,
    first: Annotated[Path, typer.Argument(metavar="A", help="A snapshot.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    trust: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Compare two saved states, byte for byte.

        pykernel snapshot diff spec.toml monday.bin friday.bin

    **Columns**: how many of a field's values differ, the position of the first, and what it is in A and in B. How often
    each was saved (the sequence number) does not count.

    **Exit codes**: 0 equal, 1 not equal, 2 bad input.
    """
    from pykernel.host.snapshot import difference

    _, (a, b) = _snapshots(spec_file, trust, first, second)
    rows = difference(a, b)
    if as_json:
        _print_json({"equal": not rows, "fields": rows})
    elif rows:
        table = _table("field", "values that differ", "first at", "in A", "in B")
        for row in rows:
            at = ", ".join(map(str, row["first"]))
            table.add_row(row["field"], f"{row['values']:,}", at, _value(row["a"]), _value(row["b"]))
        _print(f"{first} (A) and {second} (B)", table)
    else:
        print("equal")
    if rows:
        raise CheckFailed(f"{first} and {second} differ, first in {rows[0]['field']}")


@snapshot_app.command("to-json")
def snapshot_to_json(spec_file: SpecFile, file: SnapshotFile, trust: TrustCode = False) -> None:
    """Print a saved state as one JSON object, every value of it.

        pykernel snapshot to-json spec.toml state.bin > state.json

    **Columns**: there are none; the keys of *state* are the fields of the C struct.

    **Exit codes**: 0 done, 2 bad input, or a snapshot that the device would refuse.
    """
    spec, (found,) = _snapshots(spec_file, trust, file)
    _print_json(
        {
            "name": spec.name,
            "config_hash": f"{found.config_hash:08x}",
            "sequence": found.sequence,
            "state_hash": f"{found.state_hash:08x}",
            "state": found.state(),
        }
    )


def _spec(spec_file: Path, trust: bool) -> Spec:
    """The spec; whose code, if it has any and is trusted, is executed, and that is said."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: print(f"executing {_visible(path)}", file=sys.stderr))


def _snapshots(spec_file: Path, trust: bool, *files: Path) -> tuple[Spec, list[Snapshot]]:
    from pykernel.host.snapshot import read, snapshot_bytes

    spec = _spec(spec_file, trust)
    most = snapshot_bytes(spec) + 1  # to see that there are too many
    return spec, [read(spec, _bytes_of(path, most), str(path)) for path in files]


def _value(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


# -------------------------------------------------------------------------------------------------------- generate


@app.command()
def generate(
    spec_file: SpecFile,
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the project goes.", show_default=False)
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that were changed by hand.")] = False,
    trust: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Print a model as C: plain C99, without allocation, in a project that builds.

        pykernel generate spec.toml -o out/

    A spec says what the model sees and how it learns; everything else has a default:

        name = "flow"

        [input]
        columns = ["temperature", "humidity"]

        [kernel]
        sigma = 1.5

        [reduction]
        n_max = 32

    **Columns**: *state* is what the model has learned, *work* what an update needs besides; both are in one struct that
    you own. *Constants* go to flash.

    **Exit codes**: 0 done, 2 bad input (nothing is written then).
    """
    from pykernel.gen import generate as generate_project

    made = generate_project(_spec(spec_file, trust), out, force=force)
    if as_json:
        _print_json({"project": str(made.folder), "files": [str(file) for file in made.files], "sizes": made.figures})
        return
    _print_sizes(made.figures)
    for file in made.files:
        print(file)


# ----------------------------------------------------------------------------------------------------------- check


@app.command()
def check(
    spec_file: SpecFile,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Run on this emulated CPU instead; may be repeated; all takes every one. See pykernel targets.",
            show_default=False,
        ),
    ] = None,
    toolchain: Annotated[
        str | None,
        typer.Option("--toolchain", metavar="zig|gcc", help="For the target; the first found.", show_default=False),
    ] = None,
    emulator: Annotated[
        str | None,
        typer.Option("--emulator", metavar="unicorn|qemu", help="Of the target; the first found.", show_default=False),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            help="How many random samples are learned.",
            show_default="100000; on targets 1000",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of the random samples.")] = 0,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FOLDER",
            help="Write the results to the VALIDITY.md of this generated project.",
            show_default=False,
        ),
    ] = None,
    trust: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Check that the C computes what the host computes, to the byte.

    The C is generated, compiled with each compiler found, without and with optimisation, and learns the same random
    samples as the simulation: at scales from 1e-20 to 1e20, with repeats, constants, infinities and NaN among them.
    Then the two models' whole memories are compared.

        pykernel check spec.toml
        pykernel check spec.toml --samples 1000000 --json
        pykernel check spec.toml --record out/
        pykernel check spec.toml --target cortex-m4f --target rv32imac
        pykernel check spec.toml --target all --toolchain gcc --emulator qemu

    **Columns**: *equal* says whether the bytes are; *code* and *constants* are what the compiled C takes of flash. On
    targets, built with -O2: *flash* is all that is linked, with the library for floating point; *RAM* is the model;
    *stack* is the most that was used, and *bound* the most that GCC's figures allow, where they tell. Then instructions
    of one call over the stream (of train, refresh and the like over the four times that they were called), and in the
    *worst* case that a search for expensive samples and states found; *ratio* is the largest of these to the median.

    **Exit codes**: 0 equal, 1 not equal, 2 bad input (or no compiler, or a model too large for a target's part).
    """
    from pykernel.gen import check as run_check
    from pykernel.gen.record import record as write_record
    from pykernel.gen.record import require_project

    spec = _spec(spec_file, trust)
    if samples is None:
        samples = 1000 if target else 100_000
    if samples < 1:
        raise UserError(f"samples is {samples}; it must be 1 or more")
    if seed < 0:
        raise UserError(f"seed is {seed}; it must be 0 or more")
    for option, value in (("--toolchain", toolchain), ("--emulator", emulator)):
        if value and not target:
            raise UserError(f"{option} {value} is for targets; add --target …, or --target all")
    if record:
        require_project(record, spec)
    with _progress(as_json) as show:
        if target:
            from pykernel.targets.check import check_targets

            report = check_targets(spec, target, None, samples, seed, toolchain, emulator, progress=show)
        else:
            report = run_check(spec, samples=samples, seed=seed, progress=show)
    if record:
        write_record(record, spec, report)
    if as_json:
        _print_json({"ok": report.ok, "check": report.rows, "sizes": report.figures})
    else:
        (_print_targets if target else _print_check)(report.rows)
        _print_sizes(report.figures)
    if not report.ok:
        raise CheckFailed(_first_difference(report.rows))


def _first_difference(rows: Sequence[Mapping[str, Any]]) -> str:
    wrong = next(row for row in rows if not row["equal"])
    return f"{wrong['compiler']} {wrong['flags']}: the C differs from the simulation: {wrong['first_difference']}"


# ---------------------------------------------------------------------------------------------------- what is shown


def _print_check(rows: Sequence[Mapping[str, Any]]) -> None:
    table = _table("compiler", "samples", "equal", "code -Os", "constants", "state's hash")
    for row in rows:
        equal = "[green]yes[/]" if row["equal"] else "[bold red]NO[/]"
        sizes = (_bytes(row.get("text_bytes")), _bytes(row.get("rodata_bytes")))
        hashed = str(row.get("state_hash", ""))
        table.add_row(f"{row['compiler']} {row['flags']}", f"{row['samples']:,}", equal, *sizes, hashed)
    _print("the C's memory, byte for byte that of the simulation?", table)


def _print_targets(rows: Sequence[Mapping[str, Any]]) -> None:
    table = _table("target", "built, run by", "equal", "flash", "RAM", "stack", "bound")
    calls = _table("target", "call", "min", "mean", "median", "max", "worst", "ratio")
    for row in rows:
        table.add_row(
            row["target"],
            f"{row['toolchain']}, {row['emulator']}",
            "[green]yes[/]" if row["equal"] else "[bold red]NO[/]",
            *(_bytes(row.get(f"{part}_bytes")) for part in ("flash", "ram", "stack", "stack_bound")),
        )
        for call in row.get("calls", ()):
            figures = [row[call][key] for key in ("min", "mean", "median", "max", "worst")]
            shown = ["-" if figure is None else f"{figure:,.0f}" for figure in figures]
            calls.add_row(row["target"], call, *shown, f"{row[call]['ratio']:.2f}")
    _print(f"{rows[0]['samples']:,} samples on emulated CPUs: the memory byte for byte that of the simulation?", table)
    if calls.row_count:
        _print("instructions of one call", calls)


# ---------------------------------------------------------------------------------------------------------- targets


@app.command()
def targets(as_json: Json = False) -> None:
    """List the CPUs that a model can be checked on, and what of this machine can build for and emulate them.

    **Columns**: *part* is the microcontroller whose RAM and flash a model must fit; *built by* and *run by* name
    toolchains and emulators, in brackets those that were not found on this machine. zig and unicorn are wheels:
    pip install 'pykernel-mcu[emulate]'; the others come with the system.

    **Exit codes**: 0 done.
    """
    from pykernel.targets.build import found_toolchains
    from pykernel.targets.check import found_emulators
    from pykernel.targets.target import all_targets

    rows: list[dict[str, Any]] = [
        {
            "target": target.name,
            "summary": target.summary,
            "part": target.part.name,
            "ram_bytes": target.part.ram.bytes,
            "flash_bytes": target.part.flash.bytes,
            "fpu": target.fpu,
            "toolchains": {name: name in found_toolchains(target) for name in target.toolchains},
            "emulators": {name: name in found_emulators(target) for name in target.emulators},
        }
        for target in all_targets().values()
    ]
    if as_json:
        _print_json({"targets": rows})
        return
    table = _table("target", "part", "RAM", "flash", "FPU", "built by", "run by")
    for row in rows:
        sizes = [f"{row[key] // 1024}K" for key in ("ram_bytes", "flash_bytes")]
        tools = [
            " ".join(name if there else f"({name})" for name, there in row[key].items())
            for key in ("toolchains", "emulators")
        ]
        fpu = {"none": "no", "single": "f32", "double": "f64"}[row["fpu"]]
        table.add_row(row["target"], row["part"], *sizes, fpu, *tools)
    _print("targets", table)


def _print_sizes(figures: Mapping[str, Any]) -> None:
    table = _table("part", "size")
    for key, text in (
        ("state_bytes", "state (RAM)"),
        ("work_bytes", "work (RAM)"),
        ("const_bytes", "tables and trained values (flash)"),
    ):
        table.add_row(text, _bytes(figures[key]))
    _print(f"{figures['name']} in memory", table)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    return table


def _print(title: str, table: Table) -> None:
    from rich.console import Console

    console = Console()
    # not as the table's own title, which would be broken to the table's width
    console.print(title, style="bold", highlight=False, markup=False)
    console.print(table)


def _bytes(size: int | None) -> str:
    return "" if size is None else f"{size:,} B"


def _number(value: float | None) -> str:
    return (
        "-" if value is None else f"{value:.4g}" if value < 1e4 else f"{value:,.0f}" if value < 1e9 else f"{value:.3e}"
    )


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _print_json(value: Any) -> None:
    print(json.dumps(_finite(value), default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    """NumPy's scalars and paths, for json."""
    return value.item() if hasattr(value, "item") else str(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def _progress(as_json: bool, total: float | None = 1) -> Iterator[Callable[[float, str], None]]:
    """A progress bar on standard error, if someone is watching: a function to tell how much is done, and what is next.

    total: 1, or a number of bytes, or None if it is not known.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
    if total != 1:
        columns.insert(3, DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=as_json or not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, what: progress.update(task, completed=done, description=what)


def _visible(text: str) -> str:
    """Text on one line, without the control characters that a hostile name could hold."""
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text)


def _say(kind: str, text: str) -> None:
    print(f"{kind}: {_visible(text)}", file=sys.stderr)


def _warn(text: str) -> None:
    _say("warning", text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exits with 0, 1 (check failed), 2 (bad input) or 130 (interrupted)."""
    sys.exit(
        _run(
            lambda: app(
                args=None if arguments is None else list(arguments), prog_name="pykernel", standalone_mode=False
            )
        )
    )


def _run(command: Callable[[], Any]) -> int:
    try:
        code = command() or OK
        sys.stdout.flush()
        return code
    except UserError as error:
        _say("error", str(error))
        return BAD_INPUT
    except CheckFailed as error:
        _say("error", str(error))
        return FAILED
    except UsageError as error:  # type: ignore[misc]
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "pykernel"
        _say("error", f"{error.format_message().rstrip('.')}; see {where} --help")
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__, EOFError):  # which typer takes for the end of what someone types
            _say("error", f"a file ends too early: {error.__cause__ or 'there is less in it than it says'}")
            return BAD_INPUT
        _say("error", "interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the reader of our output has gone; rich then exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except OSError as error:
        _say("error", f"{error.filename or 'the system'}: {error.strerror or error}")
        return BAD_INPUT
