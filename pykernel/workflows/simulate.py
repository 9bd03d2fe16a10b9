"""A model on recorded data, as the device would learn from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import UNWRITTEN, Interrupted, UserError, need_matplotlib, option
from pykernel.files import all_or_none, need_not_data, open_data, whole_file
from pykernel.host import simulate as host
from pykernel.host.advice import Trial
from pykernel.host.samples import Batch, missing_rows, require_columns, samples_of, with_last_label
from pykernel.host.signal import RawRows, delay_of, steps_of
from pykernel.host.simulate import Monitoring, Simulation
from pykernel.rows.columns import Columns
from pykernel.rows.text import BATCH
from pykernel.spec.model import Spec
from pykernel.telling import QUIET, Show, Watch
from pykernel.workflows.models import Fitted, spec_and_memory

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pykernel.dialect import Memory

    Recording = str | Path | tuple[ArrayLike, ArrayLike]


@dataclass(frozen=True, repr=False)
class Simulated:
    """The result of a simulation: how a model would have performed on a recording.

    report: all that was found, as ``pykernel simulate --json`` prints it.  simulation: the model after the last row (``simulation.model``),
    and the course of its errors (``simulation.errors.curve()``), or of its answers.
    """

    report: dict[str, Any]
    simulation: Simulation | Monitoring
    warnings: list[str]

    @property
    def measure(self) -> str:
        """What ``error`` is: rmse, or error_rate."""
        return "error_rate" if self.report.get("classes") else "rmse"

    @property
    def error(self) -> float | None:
        """The model's error over the second half; None of a model without labels, or if no row has one."""
        return None if isinstance(self.simulation, Monitoring) else self.report["second_half"][self.measure]["model"]

    @property
    def simple(self) -> dict[str, float | None]:
        """The errors of simple predictors over the second half."""
        if isinstance(self.simulation, Monitoring):
            return {}
        return {name: error for name, error in self.report["second_half"][self.measure].items() if name != "model"}

    @property
    def advice(self) -> list[str]:
        """Why the model is bad, and what to change, a sentence each."""
        return [f"{each['test']}: {each['why']}; {each['change']}" for each in self.report.get("advice", ())]

    def __repr__(self) -> str:
        unit = "step" if "raw_rows" in self.report else "row"
        lines = [f"simulation of {self.report['name']}: {self.report['rows']:,} {unit}s"]
        if isinstance(self.simulation, Monitoring):
            if "alarms" in self.report:
                found = self.report["alarms"]
                lines.append(f"  alarms: {found['count']:,}, {found['samples']:,} {unit}s in alarm")
        else:
            lines[0] += f", {self.measure} over the second half"
            shown = {"model": self.error, **self.simple}
            lines += [f"  {name:22} {'-' if error is None else format(error, '.4g')}" for name, error in shown.items()]
        return "\n".join(
            [*lines, *(f"  advice: {line}" for line in self.advice), *(f"  {line}" for line in self.warnings)]
        )


def simulate(
    model: Spec | Fitted,
    data: Recording,
    *,
    delay: int = 0,
    refresh_every: int = 0,
    train_every: int = 0,
    output: str | Path | None = None,
    plot: str | Path | None = None,
    watch: Watch = QUIET,
) -> Simulated:
    """Run a model over recorded rows, as the device would learn from them: what ``pykernel simulate`` does.

    Row t is predicted, then row t - delay is learned.  Cost: a prediction and an update for each row, in constant memory.

    Parameters
    ----------
    model : Spec or fitted estimator
        Learning starts anew.
    data : path, or (x, y)
        A CSV file with the columns that the spec names, or arrays: x (rows, D), and y (rows,) or (rows, labels), NaN where there is no
        label; of classes their positions, or their names in the spec; None for a model without labels.
    delay : int
        Labels arrive so many rows late (with [signal], steps).
    refresh_every, train_every : int
        After so many rows the model is refreshed, after so many labels it is trained; 0 for never.
    output, plot : path, optional
        A CSV file of each row's answer, and a picture of the errors over time.
    watch : Watch
        Who is told how far the work is.

    Raises
    ------
    UserError
        One sentence says what is wrong with the data, with its line, or with an argument.  No file is written then.
    """
    spec, _ = spec_and_memory(model)
    recording = Recorded(spec, data)
    answers, picture = (None if path is None else Path(path) for path in (output, plot))
    for path in (answers, picture):
        if recording.path is not None:
            need_not_data(path, recording.path)
    if picture is not None:
        need_matplotlib()
    simulation = _begin(spec, delay, refresh_every, train_every)
    gaps, raw = _run(spec, recording, simulation, answers, picture, watch)
    files = {"output": answers, "plot": picture}
    try:
        with watch.progress(None) as show:
            if isinstance(simulation, Monitoring):
                report = simulation.report()
            else:
                report = simulation.report(_trial(spec, recording, refresh_every, simulation.delay, show))
    except KeyboardInterrupt:
        kept = " and ".join(str(path) for path in files.values() if path)
        raise Interrupted(f"; all rows are in {kept}" if kept else UNWRITTEN) from None
    report |= {"empty_inputs": gaps, "data": recording.read} | {
        key: str(path) if path else None for key, path in files.items()
    }
    warnings = [] if raw is None else raw.warnings(report["rows"])
    report |= {} if raw is None else {"raw_rows": raw.report()}
    return Simulated(report, simulation, [*warnings, *([report["warning"]] if report["warning"] else [])])


def learned(spec: Spec, data: Recording, watch: Watch = QUIET) -> Memory:
    """The state of a model that has learned a recording, as ``simulate`` does without delay.

    Raises UserError, also if no row was learned.
    """
    if not spec.program.learns:
        raise UserError(f"{spec.name} does not learn, so that it cannot start from a recording; leave start out")
    simulation = _begin(spec, 0, 0, 0)
    _run(spec, Recorded(spec, data), simulation, None, None, watch)
    taken = sum(count for status, count in simulation.statuses.items() if status >= 0)
    if not taken:
        raise UserError(
            f"{spec.name} learned none of the recording's {simulation.rows:,} rows: all were refused, or have no label; "
            "simulate says why"
        )
    watch.tell(f"start    {taken:,} of {simulation.rows:,} rows of the recording were learned")
    if simulation.model.exists("train"):
        status = spec.program.status(simulation.model.train())
        if status < 0:
            raise UserError(f"{spec.name} cannot be trained on the recording: train returned {status.name}")
    elif simulation.warning:
        watch.warn(simulation.warning)
    return simulation.model.memory


class Recorded:
    """Rows in a file, or in arrays, read as often as they are needed."""

    def __init__(self, spec: Spec, data: Recording) -> None:
        self.path = str(data) if isinstance(data, str | Path) else None
        self.arrays = None if isinstance(data, str | Path) else _arrays(spec, *data)
        self.read: dict[str, Any] | None = None
        """What was read from the file, as plain values."""
        if self.path is not None:
            require_columns(spec)

    @property
    def again(self) -> bool:
        """Whether the rows can be read once more."""
        return self.path is None or Path(self.path).is_file()

    def batches(
        self, spec: Spec, stack: contextlib.ExitStack, seen: Columns | None = None
    ) -> tuple[Iterable[Batch], float | None]:
        """Batches of rows, and the total of ``Batch.position`` (bytes or rows), if it is known.

        seen: what was found in the file's cells is counted there.
        """
        if self.arrays is not None:
            return self._pieces(*self.arrays), len(self.arrays[0])
        assert self.path is not None
        name, file, size = open_data(self.path, stack)
        return samples_of(spec, file, name, seen=seen), size

    def _pieces(self, x: np.ndarray, y: np.ndarray) -> Iterator[Batch]:
        for start in range(0, len(x), BATCH):
            end = min(start + BATCH, len(x))
            yield Batch(x[start:end], y[start:end], end)


def _arrays(spec: Spec, x: ArrayLike, y: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of inputs and labels, in the form of a Batch.  Raises UserError."""
    inputs = np.ascontiguousarray(np.asarray(x, np.float64))
    width = spec.dim if spec.signal is None else len(spec.signal.channels)
    if inputs.ndim != 2 or inputs.shape[1] != width or not len(inputs):
        raise UserError(f"x has the shape {inputs.shape}; {spec.name} takes rows of {width} numbers")
    kind = spec.inner.program.label_kind
    if kind == "none" or spec.forecasts:
        if y is not None and np.size(y):
            raise UserError(f"{spec.name} takes no labels; give None in the place of y")
        return inputs, np.zeros((len(inputs), 0))
    if y is None:
        raise UserError(f"{spec.name} learns labels; give (x, y)")
    labels = np.asarray(y)
    if kind == "class":
        labels = _positions(spec, labels)
    labels = np.ascontiguousarray(labels, np.int32 if kind == "class" else np.float64)
    shape = (len(inputs), spec.outputs) if kind == "reals" else (len(inputs),)
    if labels.shape != shape:
        raise UserError(f"y has the shape {labels.shape}; for these rows it must be {shape}")
    return inputs, labels


def _positions(spec: Spec, labels: np.ndarray) -> np.ndarray:
    """Class indices, from indices or from names."""
    if labels.dtype.kind in "iu":
        return labels
    known = {name: at for at, name in enumerate(spec.label.classes or ())}
    unknown = [each for each in dict.fromkeys(labels.ravel().tolist()) if each not in known]
    if unknown:
        there = f"names of {', '.join(known)}, or " if known else ""
        raise UserError(
            f"y holds {unknown[0]!r}, which is no class; give {there}positions of classes from 0 on, as integers"
        )
    return np.array([known[each] for each in labels.ravel().tolist()]).reshape(labels.shape)


def _begin(spec: Spec, delay: int, refresh_every: int, train_every: int) -> Simulation | Monitoring:
    inner = spec.inner
    if inner.program.label_kind != "none":
        return Simulation(inner, delay_of(spec, delay), refresh_every, train_every, spec.forecasts)
    for name, given in (("delay", delay), ("train_every", train_every)):
        if given:
            raise UserError(f"{spec.name} learns without labels, so that {option(name)} means nothing; leave it out")
    return Monitoring(inner, refresh_every)


def _run(
    spec: Spec,
    recording: Recorded,
    simulation: Simulation | Monitoring,
    answers: Path | None,
    picture: Path | None,
    watch: Watch,
) -> tuple[int, RawRows | None]:
    """Run all rows, write the files, all of them or none, and tell what was read.

    Returns the number of rows with a missing input, and, for raw rows, their counts.
    """
    seen, gaps, raw = Columns(), 0, None if spec.signal is None else RawRows(spec)
    with all_or_none(), contextlib.ExitStack() as stack:
        rows, size = recording.batches(spec, stack, seen)
        written = stack.enter_context(whole_file(answers)) if answers else None
        show = stack.enter_context(watch.progress(size))
        if written:
            written.write(host.prediction_header(spec.inner).encode())
        for batch in steps_of(spec, rows if raw is None else raw.counted(rows)):
            gaps += int(np.isnan(batch.x).any(axis=1).sum())
            for steps in simulation.run(batch.x, batch.y):
                if written:
                    written.write(host.prediction_lines(spec.inner, steps).encode())
            show(batch.position, f"running {spec.name}")
        if simulation.visits and simulation.train_every and recording.again:
            simulation.finish(steps_of(spec, recording.batches(spec, stack)[0]))
        else:
            simulation.finish()
        if picture:
            _draw(picture, simulation, "row" if raw is None else "step")
    if recording.path is not None:
        recording.read = seen.report(missing=missing_rows(spec, gaps))
        watch.data(recording.read)
    return gaps, raw


def _trial(spec: Spec, recording: Recorded, refresh_every: int, delay: int, show: Show) -> Trial | None:
    """A function that runs another model over the same rows; None if the rows cannot be read again."""
    if not recording.again:
        return None

    def error(changed: Spec, lagged: bool) -> float | None:
        show(0, "trying what may help")
        with contextlib.ExitStack() as stack:
            batches = steps_of(spec, recording.batches(spec, stack)[0])
            refreshed = refresh_every if changed.learning.rule == spec.learning.rule else 0
            run = Simulation(changed, delay, refreshed, forecasts=spec.forecasts)
            for batch in with_last_label(batches, delay) if lagged else batches:
                for _ in run.run(batch.x, batch.y):
                    pass
        return run.summary(run.errors, run.rows // 2)["error_rate" if run.classes else "rmse"]["model"]

    return error


def _draw(path: Path, simulation: Simulation | Monitoring, unit: str) -> None:
    from pykernel.plots import Band, course_figure, error_figure

    name = simulation.spec.name
    if isinstance(simulation, Monitoring):
        asked = simulation.spec.program.asks
        course = simulation.course
        listed = simulation.alarms.listed if simulation.alarms is not None else ()
        blamed = [
            (alarm["input"], (alarm["first_row"] + alarm["last_row"]) / 2) for alarm in listed if "input" in alarm
        ]
        course_figure(path, f"{name}: {asked} over time", course.curves(), course.names, asked, unit, blamed)
        return
    rows, errors = simulation.errors.curve()
    curves = dict(zip(simulation.errors.names, errors.T, strict=True))
    ylabel = f"mean absolute error ({', '.join(simulation.labels)})"
    if simulation.classes:
        ylabel = f"part of {unit}s with a wrong class"
    band = None
    if simulation.coverage is not None and len(latest := simulation.coverage.latest):
        answers, truth, lower, upper = latest.T
        places = np.arange(simulation.rows - len(latest), simulation.rows)
        told = f"label - prediction ({simulation.labels[0]})"[:80]
        band = Band(places, truth - answers, lower - answers, upper - answers, told)
    error_figure(path, f"{name}: error over time", rows, curves, ylabel[:80], unit, band=band)
