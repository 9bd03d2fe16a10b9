"""The command ``pykernel simulate``: a model on recorded data, as the device would learn from it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pykernel.cli import inputs, output
from pykernel.cli.options import CsvData, Delay, Engine, Json, SpecFile, TrustCode, option, takes
from pykernel.errors import UserError

if TYPE_CHECKING:
    from pykernel.host.advice import Trial
    from pykernel.host.signal import RawRows
    from pykernel.host.simulate import Monitoring, Simulation
    from pykernel.spec.model import Spec


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    spec_file: SpecFile
    data: CsvData
    delay: Delay = 0
    refresh_every: Annotated[
        int, option("--refresh-every", value="N", text="Call the model's refresh after each N rows.", without="never")
    ] = 0
    train_every: Annotated[
        int, option("--train-every", value="N", text="Call the model's train after every N labels.", without="never")
    ] = 0
    answers: Annotated[Path | None, option("--output", "-o", value="CSV", text="Write each row's answer.")] = None
    plot: Annotated[Path | None, option("--plot", value="PNG", text="Draw the errors (or answers) over time.")] = None
    trust: TrustCode = False
    engine: Engine = None
    as_json: Json = False


@takes(SimulateOptions)
def simulate(options: SimulateOptions) -> None:
    """Try a model on recorded data, as the device would learn from it.

    Row t is predicted, then row t - K is learned: a forecast never sees the future. The data is a table of text, with
    commas, semicolons or tabs. Its first line names the columns, and the spec says which columns the model uses ([input] columns,
    [label] column). A row with an empty label is predicted, not learned.

        pykernel simulate spec.toml data.csv --delay 24 --plot errors.png

    Columns: MAE is the mean absolute error and RMSE the root mean square error, in the label's unit, over all rows and
    over their second half. The table compares the model with simple forecasts: the last label, the running mean and two
    linear models. Lines of advice say why a model is bad, and what change helps on these rows.
    For classes, errors is the part of rows that got a wrong class. For a model without labels, the table shows the mean
    and the largest answer, and the alarms.

    Exit codes: 0 done, 2 bad input.
    """
    from pykernel.host.simulate import Monitoring, require_columns

    spec = inputs.read_spec(options.spec_file, options.trust)
    require_columns(spec, str(options.spec_file))
    for path in (options.answers, options.plot):
        inputs.need_not_data(path, options.data)
    if options.plot:
        inputs.need_matplotlib()
    simulation, gaps, raw = run(spec, options)
    files = {"output": options.answers, "plot": options.plot}
    try:
        with output.progress(options.as_json, None) as show:
            if isinstance(simulation, Monitoring):
                report = simulation.report()
            else:
                report = simulation.report(trial(spec, options, simulation.delay, show))
    except KeyboardInterrupt:
        kept = " and ".join(str(path) for path in files.values() if path)
        raise output.interrupted(f"; all rows are in {kept}" if kept else output.UNWRITTEN) from None
    report |= {"empty_inputs": gaps} | {key: str(path) if path else None for key, path in files.items()}
    warnings = [] if raw is None else raw.warnings(report["rows"])
    report |= {} if raw is None else {"raw_rows": raw.report()}
    if options.as_json:
        report["warning"] = "\n".join(filter(None, [*warnings, report["warning"]])) or None
        output.print_json(report)
        return
    for warning in warnings:
        output.warn(warning)
    if isinstance(simulation, Monitoring):
        print_monitoring(report)
    else:
        print_simulation(report)


def begin(spec: Spec, options: SimulateOptions) -> Simulation | Monitoring:
    from pykernel.host.signal import delay_of
    from pykernel.host.simulate import Monitoring, Simulation

    inner = spec.inner
    if inner.program.label_kind != "none":
        delay = delay_of(spec, options.delay)
        return Simulation(inner, delay, options.refresh_every, options.train_every, spec.forecasts)
    for name, given in (("delay", options.delay), ("train-every", options.train_every)):
        if given:
            raise UserError(f"{spec.name} learns without labels, so that --{name} means nothing; leave it out")
    return Monitoring(inner, options.refresh_every)


def run(spec: Spec, options: SimulateOptions) -> tuple[Simulation | Monitoring, int, RawRows | None]:
    """All rows, of which so many have an empty input, and what became of raw ones; and the files, all of them or none."""
    from pykernel.files import all_or_none, whole_file
    from pykernel.host.signal import RawRows, steps_of
    from pykernel.host.simulate import prediction_header, prediction_lines, samples_of

    with all_or_none(), contextlib.ExitStack() as stack:
        name, file, size = inputs.open_data(options.data, stack)
        written = stack.enter_context(whole_file(options.answers)) if options.answers else None
        simulation = begin(spec, options)
        show = stack.enter_context(output.progress(options.as_json, size))
        if written:
            written.write(prediction_header(spec.inner).encode())
        gaps, raw, rows = 0, None if spec.signal is None else RawRows(spec), samples_of(spec, file, name)
        for batch in steps_of(spec, rows if raw is None else raw.counted(rows)):
            gaps += batch.gaps
            for steps in simulation.run(batch.x, batch.y):
                if written:
                    written.write(prediction_lines(spec.inner, steps).encode())
            show(batch.position, f"running {spec.name}")
        if simulation.visits and options.train_every and options.data != "-" and file.seekable():
            _, again, _ = inputs.open_data(options.data, stack)
            simulation.finish(steps_of(spec, samples_of(spec, again, name)))
        else:
            simulation.finish()
        if options.plot:
            draw(options.plot, simulation, "row" if raw is None else "step")
    return simulation, gaps, raw


def trial(spec: Spec, options: SimulateOptions, delay: int, show: Callable[[float, str], None]) -> Trial | None:
    """Runs another model over the same rows; None if they cannot be read again."""
    from pykernel.host.signal import steps_of
    from pykernel.host.simulate import Simulation, samples_of, with_last_label

    if not Path(options.data).is_file():
        return None

    def error(changed: Spec, lagged: bool) -> float | None:
        show(0, "trying what may help")
        with contextlib.ExitStack() as stack:
            name, file, _ = inputs.open_data(options.data, stack)
            batches = steps_of(spec, samples_of(spec, file, name))
            refreshed = options.refresh_every if changed.learning.rule == spec.learning.rule else 0
            run = Simulation(changed, delay, refreshed, forecasts=spec.forecasts)
            for batch in with_last_label(batches, delay) if lagged else batches:
                for _ in run.run(batch.x, batch.y):
                    pass
        found = run.summary(run.errors, run.rows // 2)
        return found["error_rate" if run.classes else "rmse"]["model"]

    return error


def draw(path: Path, simulation: Simulation | Monitoring, unit: str) -> None:
    from pykernel.host.simulate import Monitoring
    from pykernel.plots import course_figure, error_figure

    name = simulation.spec.name
    if isinstance(simulation, Monitoring):
        asked = simulation.spec.program.asks
        course = simulation.course
        course_figure(path, f"{name}: {asked} over time", course.curves(), course.names, asked, unit)
        return
    rows, errors = simulation.errors.curve()
    curves = dict(zip(simulation.errors.names, errors.T, strict=True))
    ylabel = f"mean absolute error ({', '.join(simulation.labels)})"
    if simulation.classes:
        ylabel = f"part of {unit}s with a wrong class"
    error_figure(path, f"{name}: error over time", rows, curves, ylabel[:80], unit)


# -------------------------------------------------------------------------------------------------------------- report


def print_simulation(report: Mapping[str, Any]) -> None:
    print_errors(report)
    print_statuses(report)
    print_alarms(report)
    print_training(report)
    print_end(report)


def print_errors(report: Mapping[str, Any]) -> None:
    from pykernel.host.simple import LINEAR_MOST

    classes = report.get("classes")
    kinds = {"error_rate": "errors"} if classes else {"mae": "MAE", "rmse": "RMSE"}
    labels = {"all": report} if "labels" not in report else report["labels"] | {"all": report}
    titles = ["predictor", *kinds.values(), *(f"{kind}, 2nd half" for kind in kinds.values())]
    table = output.new_table(*(["label"] if len(labels) > 1 else []), *titles, words=(0, len(labels) > 1))
    for label, found in labels.items():
        parts = [found["all"], found["second_half"]]
        for name in next(iter(parts[0][kind] for kind in kinds)):
            figures = [part[kind][name] for part in parts for kind in kinds]
            shown = (
                [output.rate(figure) for figure in figures]
                if classes
                else [output.number(figure) for figure in figures]
            )
            first = [label if name == "model" else ""] if len(labels) > 1 else []
            table.add_row(*first, name, *shown, style="bold" if name == "model" else "")
    late = f", labels {report['delay']:,} {output.unit_of(report)}s late" if report["delay"] else ""
    output.show_table(f"{report['name']} ({report['rule']}): {output.counted(report)}{late}", table)
    if not any("linear" in name for name in report["simple"]):
        output.show(f"more than {LINEAR_MOST} inputs: the linear models are left out", "")
    if classes:
        print_confusion(classes, report["confusion"], output.unit_of(report))


def print_statuses(report: Mapping[str, Any]) -> None:
    what = output.new_table("status", "samples")
    for status, count in report["statuses"].items():
        what.add_row(status.replace("_", " "), f"{count:,}")
    if "unlabelled" in report:  # a model without labels refuses inputs by its status
        told = report["statuses"].get("refused_input", 0)
        for text, count in (
            ("no label yet", report["unlabelled"]),
            ("label came too late: not learned", report["waiting"]),
            ("no label, and not predicted (input refused)", report["inputs_refused"] - told),
        ):
            if count > 0:
                what.add_row(text, f"{count:,}")
    output.show_table("what happened to the samples", what)
    if "raw_rows" in report:
        if told := output.gaps(report["raw_rows"], report["rows"]):
            output.show(f"gaps     {told}", "")
    elif report["empty_inputs"]:
        output.show(f"skipped  {output.skipped(report['empty_inputs'])}", "")


def print_training(report: Mapping[str, Any]) -> None:
    if report.get("trainings"):
        done = ", ".join(f"{text.replace('_', ' ')} {count:,}" for text, count in report["trainings"].items())
        output.show(f"trainings       {done}")
    if found := report.get("leave_one_out"):
        rate = (
            f", {output.rate(found['error_rate'])} of the samples with a wrong class" if report.get("classes") else ""
        )
        told = f"RMSE {output.number(math.sqrt(found['mse']))}{rate}" if found["mse"] is not None else "none"
        why = found["status"].replace("_", " ")
        if found.get("samples") == 0:
            why = "the samples must be read again after the last training; give the data as a file"
        output.show(f"leave-one-out   {told} ({why})", "")


def print_end(report: Mapping[str, Any]) -> None:
    from pykernel.host.advice import FEW

    for each in report.get("advice", ()):
        output.show(f"advice   {each['test']}: {each['why']}", f"         {each['change']}")
    if report.get("advice"):
        output.show(
            f"         (errors over the second half, {f'parts of the {output.unit_of(report)}s' if report.get('classes') else 'root mean squares'})"
        )
    if (found := report.get("verdict")) is not None:
        shown = output.rate if report.get("classes") else output.number
        output.show(f"verdict  {output.verdict(found, shown)}, over the second half")
    if "scored" in report["second_half"] and report["second_half"]["scored"] < FEW:
        scored = f"{report['second_half']['scored']:,} {output.unit_of(report)}s"
        output.show(f"verdict  {scored} of the second half were scored: too few to judge")
    if report["warning"]:
        output.warn(report["warning"])
    for key in ("output", "plot"):
        if report[key]:
            output.show(f"{key}   {report[key]}")


def print_monitoring(report: Mapping[str, Any]) -> None:
    watched = ["in alarm"] if "alarms" in report else []
    table = output.new_table("answer", f"{output.unit_of(report)}s", "mean", "largest", *watched)
    for text, part in (("all", report["all"]), ("2nd half", report["second_half"])):
        for i, name in enumerate(part["mean"]):
            figures = [output.number(part["mean"][name]), output.number(part["largest"][name])]
            figures += [output.rate(part["in_alarm"]) if i == 0 else ""] if watched else []
            table.add_row(name, text, *figures)
    output.show_table(f"{report['name']}: {output.counted(report)}, without labels", table)
    print_statuses(report)
    print_alarms(report)
    print_end(report)


def print_alarms(report: Mapping[str, Any], most: int = 12) -> None:
    """The first alarms, and how many there were."""
    found = report.get("alarms")
    if found is None:
        return
    unit = output.unit_of(report)
    if found["count"]:
        table = output.new_table(f"from {unit}", f"to {unit}", "level")
        for alarm in found["listed"][:most]:
            table.add_row(f"{alarm['first_row']:,}", f"{alarm['last_row']:,}", output.number(alarm["level"]))
        if found["count"] > most:
            table.add_row("...", "", "")
        count = (
            f"1 alarm, {found['samples']:,} {unit}s"
            if found["count"] == 1
            else (f"{found['count']:,} alarms, {found['samples']:,} {unit}s")
        )
        output.show_table(count, table)
        if found.get("judged"):
            often = output.rate(found["count"] / found["judged"])
            rate = found["false_alarm_rate"]
            wanted = f"; false_alarm_rate is {output.rate(rate)}" if rate is not None else ""
            output.show(f"an alarm begins at {often} of the {found['judged']:,} samples after the warm-up{wanted}")
        for name, simple in found.get("simple", {}).items():
            output.show(
                f"{name} ({simple['bytes']:,} bytes), with as many {unit}s in alarm, sees {output.rate(simple['seen'])} of these alarms"
            )
        if found.get("simple"):
            output.show(f"as many {unit}s drawn at random see {output.rate(found['seen_by_chance'])} of them", "")
    said = "" if found["count"] else "no alarm; "
    if "judged" in found and not found["judged"]:
        said = "no alarm can come before the warm-up is over; "
    output.show(
        f"{said}at the end the level is {output.number(found['level'])}, the threshold {output.number(found['threshold'])}",
        "",
    )


def print_confusion(classes: Sequence[str], counts: Sequence[Sequence[int]], unit: str, most: int = 8) -> None:
    """Which class was taken for which: as a matrix, or if there are many, the most frequent mistakes."""
    if len(classes) <= most:
        table = output.new_table("label", *classes)
        for name, row in zip(classes, counts, strict=True):
            table.add_row(name, *(f"{count:,}" for count in row))
        output.show_table(f"{unit}s of each class, by the predicted class", table)
        return
    size = range(len(classes))
    wrong = sorted((-counts[i][j], i, j) for i in size for j in size if i != j and counts[i][j])
    table = output.new_table("label", "taken for", f"{unit}s")
    for count, i, j in wrong[:most]:
        table.add_row(classes[i], classes[j], f"{-count:,}")
    output.show_table("the most frequent mistakes", table)
