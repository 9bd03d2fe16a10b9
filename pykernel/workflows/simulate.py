"""A model on recorded data, as the device would learn from it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import UNWRITTEN, Interrupted, UserError, option, visible
from pykernel.files import all_or_none, bytes_of, need_different, need_not_data, open_data, whole_file
from pykernel.gen.project import inside
from pykernel.host import simulate as host
from pykernel.host import snapshot
from pykernel.host.advice import FEW, Trial
from pykernel.host.samples import (
    Batch,
    as_table,
    by_name,
    missing_rows,
    require_columns,
    samples_of,
    times_of,
    with_last_label,
)
from pykernel.host.scores import Envelope, Ranges
from pykernel.host.signal import RawRows, SignalStage, delay_of, steps_of
from pykernel.host.simulate import Monitoring, Simulation, Steps
from pykernel.progress import Show
from pykernel.request.option import function, stated
from pykernel.rows.columns import Columns
from pykernel.rows.recordings import Recordings, need_none, recordings_of
from pykernel.rows.text import BATCH
from pykernel.spec.families.frozen import Expansion, scaling_digest
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.sections import FORMULA_LIMIT
from pykernel.telling import QUIET, SILENT, Watch, data_sentences, refused_told
from pykernel.workflows import devices
from pykernel.workflows.devices import SimulatedDevices, each_device, need_one
from pykernel.workflows.given import need_report, write_file
from pykernel.workflows.models import Recording, need_ram, spec_and_memory
from pykernel.workflows.requests import Simulate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pykernel.dialect import Memory
    from pykernel.report.document import Document


@dataclass(frozen=True, repr=False)
class Simulated:
    """The result of a simulation: how a model would have performed on a recording.

    report: all that was found, as ``pykernel simulate --json`` prints it.  simulation: the model after the last row (``simulation.model``),
    and the course of its errors (``simulation.errors.curve()``), or of its answers.
    """

    report: dict[str, Any]
    simulation: Simulation | Monitoring
    seen: Seen

    @property
    def warnings(self) -> list[str]:
        """What is probably not as it was meant, a sentence each."""
        return self.report["warnings"]

    @property
    def page(self) -> Document:
        """The result as a report for people: ``page.write("report.html")``; a notebook shows it."""
        return _page(self.report, self.simulation, self.seen)

    def _repr_html_(self) -> str:
        return self.page._repr_html_()

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
            [
                *lines,
                *(f"  {line}" for line in refused_told(self.report)),
                *(f"  advice: {line}" for line in self.advice),
                *(f"  {line}" for line in self.warnings),
            ]
        )


def run(given: Simulate) -> Simulated | SimulatedDevices:
    """What ``pykernel simulate`` does.  Cost: a prediction and an update for each row, in constant memory."""
    spec, _ = spec_and_memory(given.model)
    need_ram(spec)
    often, arguments = (given.delay, given.refresh_every, given.train_every), stated(given)
    files = {name: Path(path) if (path := getattr(given, name)) else None for name in ("output", "plot", "save")}
    data, watch = given.data, given.watch
    for path in files.values():
        if path is not None and isinstance(data, str | Path):
            need_not_data(path, str(data))
    need_report(files["plot"])
    if files["save"] is not None:
        snapshot.snapshot_bytes(spec)  # raises UserError for a model that learns nothing
    if (many := recordings_of(data)) is not None:
        arguments["data"] = many.source
        return _each(spec, many, files, given, arguments)
    need_one(jobs=given.jobs, results=given.results)
    recording = Recorded(spec, data)  # type: ignore[arg-type]
    need_different(list(files.values()))
    simulation, stage = _begin(spec, *often, _rivals_learn(spec, recording, watch)), None
    if given.start is not None:
        stage = _go_on(spec, simulation, started(spec, given.start, watch))
    seen = Seen(spec, simulation, arguments, recording.path)
    page = files["plot"]
    with all_or_none():
        gaps, raw, state = _run(spec, recording, simulation, files, watch, stage, seen)
        try:
            with watch.progress(None) as show:
                trial = _trial(spec, recording, given.refresh_every, simulation.delay, show)
                report = _told(spec, recording, simulation, gaps, raw, trial)
        except KeyboardInterrupt:  # what was computed is kept
            report = {}
        if report:
            report |= {key: str(path) if path else None for key, path in files.items()}
            report["state_hash"] = f"{snapshot.read(spec, state).state_hash:08x}" if state else None
            if page is not None:
                _page(report, simulation, seen).write(page)
    if not report:
        kept = " and ".join(str(path) for path in files.values() if path and path != page)
        raise Interrupted(f"; all rows are in {kept}" if kept else UNWRITTEN)
    return Simulated(report, simulation, seen)


def _told(
    spec: Spec,
    recording: Recorded,
    simulation: Simulation | Monitoring,
    gaps: int,
    raw: RawRows | None,
    trial: Trial | None = None,
) -> dict[str, Any]:
    """The report of a run.  The other arguments as from ``_run``."""
    report = simulation.report() if isinstance(simulation, Monitoring) else simulation.report(trial)
    report |= {
        "default": spec.default,
        "empty_inputs": gaps,
        "data": recording.read,
        "trained_rows": recording.trained,
    }
    report |= {"promise": None if recording.trained is not None else _promise(spec, report)}
    warnings = [] if raw is None else raw.warnings(report["rows"])
    report |= {"knows_second_half": False}
    if recording.trained is not None:
        rows = report["rows"] if raw is None else raw.rows
        every = recording.trained == rows
        if recording.trained > rows // 2:  # the simple predictors know less of the second half than the model does
            report |= {"verdict": None, "knows_second_half": True}
        some = "these rows" if every else f"the first {recording.trained:,} of these rows"
        warnings.append(f"the model was trained on {some}: expect larger errors on others, such as a plan promises")
    if raw is not None:
        report |= {"raw_rows": raw.report()}
        for alarm in report.get("alarms", {}).get("listed", ()):
            alarm |= raw.times(alarm)
    return report | {"warnings": [*warnings, *report["warnings"]]}


Often = tuple[int, int, int]
"""delay, refresh_every and train_every."""


def _promise(spec: Spec, report: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the plan promised of a frozen model, and its error over all of these rows."""
    trained = getattr(getattr(spec, "expansion", None), "trained", None)
    if trained is None or trained.promise is None or report["all"].get("scored", 0) < FEW:
        return None
    error, within = trained.promise
    here = report["all"].get("error_rate", report["all"].get("rmse"))["model"]
    return {"error": error, "within": within, "here": here, "kept": here <= error + within}


@dataclass(frozen=True)
class _OnDevice:
    """The simulation of one of many devices.  start: the snapshot that it begins from; saves: whether its state is kept."""

    spec: Spec
    often: Often
    start: bytes | None
    saves: bool

    def of(self, path: str, name: str) -> dict[str, Any]:
        spec = self.spec
        recording = Recorded(spec, path, name)
        simulation = _begin(spec, *self.often, _rivals_learn(spec, recording, SILENT))
        stage = None if spec.signal is None else SignalStage(spec)
        if self.start is not None:
            stage = _go_on(spec, simulation, snapshot.read(spec, self.start).memory)
        gaps, raw, _ = _run(spec, recording, simulation, {}, SILENT, stage)
        simulation.goes_on = True  # advice tries other models: that is for one device
        report = _told(spec, recording, simulation, gaps, raw)
        state = snapshot.saved(spec, _whole(spec, simulation, stage)) if self.saves else b""
        found = {"state_hash": f"{snapshot.read(spec, state).state_hash:08x}", "state": state.hex()} if state else {}
        return report | found


def _each(
    spec: Spec,
    many: Recordings,
    files: Mapping[str, Path | None],
    given: Simulate,
    asked: dict[str, Any],
) -> SimulatedDevices:
    """Each of many devices on its own, and what they have in common."""
    need_none(output=files["output"])
    plot, save, watch = files["plot"], files["save"], given.watch
    often = (given.delay, given.refresh_every, given.train_every)
    require_columns(spec)
    _begin(spec, *often)  # raises UserError before the work
    begins = None if given.start is None else snapshot.saved(spec, started(spec, given.start, watch))
    work = _OnDevice(spec, often, begins, save is not None)
    found, unread = each_device(work, many, given.jobs, given.results, watch, f"running {spec.name}")
    states = {device.name: bytes.fromhex(told.pop("state")) for device, told in found if "state" in told}
    report = devices.simulated(found, unread, many, spec) | {"delay": often[0]}
    report |= {"output": None, "plot": str(plot) if plot else None, "save": str(save) if save else None}
    noticed = [f"{device.name}: {line}" for device, told in found for line in data_sentences(told["data"])[:1]]
    if noticed:
        more = f" (and something of {len(noticed) - 1:,} more devices, see the JSON)" if len(noticed) > 1 else ""
        watch.note(f"data     {noticed[0]}{more}")
    warned = [f"{device.name}: {told['warnings'][0]}" for device, told in found if told["warnings"]]
    more = f"; {len(warned):,} devices have such warnings" if len(warned) > 1 else ""
    report["warnings"] = [first + more for first in warned[:1]]
    simulated = SimulatedDevices(report, asked)
    with all_or_none(save):
        for name, state in states.items():
            with whole_file(Path(save or ".") / f"{name}.bin", parents=True) as file:
                file.write(state)
        if plot is not None:
            simulated.page.write(plot)
    return simulated


def learned(spec: Spec, data: Recording, watch: Watch = QUIET) -> Memory:
    """The state of a model that has learned a recording, as ``simulate`` does without delay.

    Raises UserError, also if no row was learned.
    """
    if not spec.program.learns:
        raise UserError(f"{spec.name} does not learn, so that it cannot start from a recording; leave start out")
    simulation, stage = _begin(spec, 0, 0, 0), None if spec.signal is None else SignalStage(spec)
    _run(spec, Recorded(spec, data), simulation, {}, watch, stage)
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
    return _whole(spec, simulation, stage)


def started(spec: Spec, start: Recording, watch: Watch) -> Memory:
    """The memory from a saved state, or from a recording, whichever it is.  Raises UserError."""
    path = Path(start) if isinstance(start, str | Path) else None
    # a pipe is a recording: what was read of it could not be read again
    if path is None or not path.is_file() or bytes_of(path, len(snapshot.MAGIC)) != snapshot.MAGIC:
        return learned(spec, start, watch)
    found = snapshot.read(spec, bytes_of(path, snapshot.most_bytes(spec)), str(path))
    unnamed = "" if found.names else ", which does not say in which order its columns and classes are"
    watch.tell(f"start    the state {found.state_hash:08x} of {path}{unnamed}")
    return found.memory


class Rows:
    """A digest of rows as a spec reads them, batch by batch, of the first ``most`` ones."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.rows, self._parts = most, 0, (hashlib.sha256(), hashlib.sha256())

    def reading(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            more = len(batch.x) if self.most is None else min(len(batch.x), self.most - self.rows)
            for part, values in zip(self._parts, (batch.x, batch.y), strict=True):
                part.update(np.ascontiguousarray(values[:more]).tobytes())
            self.rows += more
            yield batch

    @property
    def digest(self) -> str:
        return hashlib.sha256(b"".join(part.digest() for part in self._parts)).hexdigest()[:16]


def with_origin(
    spec: Spec,
    data: str | Path,
    read: Mapping[str, Any],
    x: np.ndarray | None,
    promise: Mapping[str, float] | None = None,
) -> Spec:
    """A spec made from a recording, which tells how its inputs are computed and on which rows its vectors were trained.

    read: what was read from the recording.  x: the inputs, (rows, DIM), if they are known.  promise: the error of rows to come, and half of its interval.
    """
    content = spec.model_dump(exclude_unset=True)
    if lines := [f"{name} = {visible(how)}"[:FORMULA_LIMIT].strip() for name, how in read.get("made", {}).items()]:
        content["input"] |= {"formulas": lines}
    if isinstance(spec.expansion, Expansion):
        told: dict[str, Any] = {"scaling": scaling_digest(spec)}
        if x is not None:
            known = np.where(np.isfinite(x), x, np.nan)
            for key, ends in (("low", np.nanmin(known, axis=0)), ("high", np.nanmax(known, axis=0))):
                told[key] = [float(f"{value:.6g}") for value in ends]
        if promise is not None:
            told["promise"] = [float(f"{promise[key]:.4g}") for key in ("error", "within")]
        if Path(data).is_file():
            rows = Rows()
            with contextlib.suppress(UserError), contextlib.ExitStack() as stack:
                for _ in rows.reading(Recorded(spec, data).batches(spec, stack)[0]):
                    pass
                told |= {"rows": rows.rows, "data": rows.digest}
        content["expansion"] = {"trained": told} | content["expansion"]
    return make_spec(content, custom=spec.custom)


def _go_on(spec: Spec, simulation: Simulation | Monitoring, memory: Memory) -> SignalStage | None:
    """Let the model go on from a device's memory; returns the signal stage around it, which does, too."""
    simulation.goes_on, stage = True, None if spec.signal is None else SignalStage(spec)
    for part in (simulation.model.memory, *([] if stage is None else [stage.memory])):
        for slot in part.layout.slots:
            part.field(slot.name)[...] = memory.field(slot.name)
    if isinstance(simulation, Monitoring):
        simulation.went_on()
    return stage


def _whole(spec: Spec, simulation: Simulation | Monitoring, stage: SignalStage | None) -> Memory:
    """The device's memory after these rows: the model's, and that of the signal stage around it."""
    memory = spec.memory()
    for part in (simulation.model.memory, *([] if stage is None else [stage.memory])):
        for slot in part.layout.slots:
            memory.field(slot.name)[...] = part.field(slot.name)
    return memory


def taught(spec: Spec, data: str) -> bytes | None:
    """The snapshot of a model that has learned a recording.

    None if it does not learn or refuses all, if the rows cannot be read again, or after Ctrl-C.
    """
    if not spec.program.learns or not Path(data).is_file():
        return None
    with contextlib.suppress(UserError, KeyboardInterrupt):
        return snapshot.saved(spec, learned(spec, data))
    return None


class Recorded:
    """Rows in a file, or in arrays, read as often as they are needed.  name: the file's in sentences, if not its path."""

    def __init__(self, spec: Spec, data: Recording, name: str | None = None) -> None:
        self.path, self.name = str(data) if isinstance(data, str | Path) else None, name
        pair = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
        self.arrays = None if self.path is not None else _arrays(spec, *pair)
        self.read: dict[str, Any] | None = None
        """What was read from the file, as plain values."""
        self.trained: int | None = None
        """How many of the first rows are those that the model was trained on."""
        if self.path is not None:
            require_columns(spec)

    @property
    def again(self) -> bool:
        """Whether the rows can be read once more."""
        return self.path is None or Path(self.path).is_file()

    def steps(self, spec: Spec, watch: Watch) -> int:
        """How many samples the model will see."""
        with contextlib.ExitStack() as stack:
            rows, size = self.batches(spec, stack)
            show, count = stack.enter_context(watch.progress(size)), 0
            for batch in steps_of(spec, rows):
                count += len(batch.x)
                show(batch.position, "counting rows")
        return count

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
        return samples_of(spec, file, self.name or name, seen=seen), size

    def _pieces(self, x: np.ndarray, y: np.ndarray) -> Iterator[Batch]:
        for start in range(0, len(x), BATCH):
            end = min(start + BATCH, len(x))
            yield Batch(x[start:end], y[start:end], end)


def _arrays(spec: Spec, x: ArrayLike, y: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of inputs and labels, in the form of a Batch; columns of data frames by their names.  Raises UserError."""
    try:
        inputs = np.ascontiguousarray(np.asarray(by_name(x, spec.sample_columns), np.float64))
    except (TypeError, ValueError):
        raise UserError(f"x is not a table of numbers; {spec.name} takes a path, x or (x, y)") from None
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
    labels = np.asarray(by_name(y, spec.label_columns))
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


DRAWN = 20_000
"""About how many numbers the figure of forecasts has, together."""
LATEST = 200
"""How many windows the second figure of forecasts has."""
LABELS = 6
"""Most labels whose forecasts are drawn."""


class Seen:
    """What a report shows of a recording's rows: the table as it was read, forecasts and truth.

    asked: the arguments that were given.
    """

    def __init__(
        self, spec: Spec, simulation: Simulation | Monitoring, asked: dict[str, Any], path: str | None
    ) -> None:
        self.spec, self.asked, self.path = spec, asked, path
        numbers = isinstance(simulation, Simulation) and not simulation.classes
        labels = list(simulation.labels) if numbers and not spec.forecasts else []  # type: ignore[union-attr]
        columns = spec.sample_columns or [f"input {j}" for j in range(spec.dim)]
        self.table, self._labelled = Ranges([*columns, *labels]), bool(labels)
        self.shown = list(simulation.labels)[:LABELS] if numbers else []  # type: ignore[union-attr]
        names = [f"{what} {label}" for label in self.shown for what in ("truth", "forecast")]
        self.forecasts = Envelope(names, DRAWN // max(1, len(names)))

    @functools.cached_property
    def times(self) -> np.ndarray | None:
        """The time of each row, if the recording is a file with a column of dates."""
        if self.path is None or self.spec.signal is not None or not Path(self.path).is_file():
            return None
        return times_of(self.path, self.table.rows)

    def reading(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches, of which the columns are noted."""
        for batch in batches:
            self.table.add(np.column_stack([batch.x, *([batch.y] if self._labelled else [])]).astype(np.float64))
            yield batch

    def answer(self, steps: list[Steps]) -> None:
        """Note answers and labels of the next rows."""
        if not self.shown or not steps:
            return
        truth, said = (
            np.concatenate([as_table(part)[:, : len(self.shown)] for part in parts])
            for parts in ([step.labels for step in steps], [step.predictions for step in steps])
        )
        self.forecasts.add(np.stack([truth, said], axis=2).reshape(len(truth), -1).astype(np.float64))


def _page(report: dict[str, Any], simulation: Simulation | Monitoring, seen: Seen) -> Document:
    """The report for people."""
    from pykernel.report import sections
    from pykernel.report.common import table_read
    from pykernel.report.figures import Lane, Line, Plot, Span

    spec, unit = seen.spec, "row" if seen.spec.signal is None else "step"
    drawn: dict[str, Any] = {"rule": spec.learning.rule, "times": seen.times, "warning": simulation.warning}
    if isinstance(simulation, Monitoring):
        warm = simulation.warm
        there = simulation.course.curves(first=warm)
        alarms, blamed = _alarms(simulation)
        at, names = there["row"], simulation.course.names
        lines = [
            Line(f"{name}, mean", at, there["mean"][:, i], "c6" if blamed else f"c{i % 9}")
            for i, name in enumerate(names)
        ]
        if np.isfinite(there["threshold"]).any():
            lines += [
                Line("threshold", at, there["threshold"], "c1"),
                Line("level, highest", at, there["level"], "model"),
            ]
        else:
            lines += [
                Line(f"{name}, largest", at, there["largest"][:, i], f"c{(i + len(names)) % 9}")
                for i, name in enumerate(names)
            ]
        lanes = [Lane(name, rows) for name, rows in blamed.items()]
        note = f"after the warm-up of {warm:,} {unit}s" if warm else ""
        drawn["course"] = [
            Plot(
                "Level, threshold and alarms" if alarms else "Answers",
                unit,
                spec.program.asks,
                lines,
                lanes=lanes,
                zero=True,
                note=note,
                times=seen.times,
            )
        ]
    else:
        at, errors = simulation.errors.curve(_windows(simulation))
        drawn["errors"] = at, dict(zip(simulation.errors.names, errors.T, strict=True))
        rows, high, low = seen.forecasts.lines()
        drawn["forecasts"] = []
        for i, label in enumerate(seen.shown):
            lines = [
                Line(name, rows, high[:, 2 * i + k], kind, None if low is None else low[:, 2 * i + k])
                for k, (name, kind) in enumerate((("truth", "truth"), ("forecast", "model thin")))
            ]
            drawn["forecasts"].append(Plot(f"{label}: all {unit}s", unit, label, lines, times=seen.times))
            if len(rows) > 2 * LATEST:
                latest = [each.latest(LATEST) for each in lines]
                drawn["forecasts"].append(Plot(f"{label}: the end", unit, label, latest, times=seen.times))
        if simulation.coverage is not None and len(ends := simulation.coverage.latest):
            answers, truth, lower, upper = ends.T
            places = np.arange(simulation.rows - len(ends), simulation.rows, dtype=float)
            error, within = truth - answers, (truth >= lower) & (truth <= upper)
            dots = [
                Line("label, inside", places[within], error[within], "truth dot"),
                Line(
                    "label, outside",
                    places[~within & np.isfinite(error)],
                    error[~within & np.isfinite(error)],
                    "c1 dot",
                ),
            ]
            told = f"label - forecast ({simulation.labels[0]})"
            drawn["band"] = Plot(
                f"The latest {len(ends)} {unit}s",
                unit,
                told,
                spans=[Span("interval", places, lower - answers, upper - answers)],
                dots=[each for each in dots if len(each.x)],
                times=seen.times,
            )
    read = table_read(seen.table.report(), seen.table.courses(), seen.table.rows)
    told = f"after these {simulation.rows:,} rows; NAME_hash returns it, and pykernel check --data compares it with the C's"
    same = spec.signal is None and not report.get("delay")
    model = inside(spec, simulation.model.memory if same else None, told)
    return sections.simulated(report, seen.asked, read, drawn, model)


def _windows(simulation: Simulation) -> int:
    """How many windows the errors over time have: of few rows fewer, so that each is a mean of some."""
    return max(4, min(60, simulation.rows // 20))


def _alarms(simulation: Monitoring) -> tuple[bool, dict[str, np.ndarray]]:
    """Whether the model raises alarms, and their rows; of all, and of each of the most blamed inputs."""
    if simulation.alarms is None:
        return False, {}
    listed = simulation.alarms.listed
    rows = np.array([(alarm["first_row"] + alarm["last_row"]) / 2 for alarm in listed])
    lanes = {"alarms": rows}
    inputs = [alarm.get("input") for alarm in listed]
    for name, _ in Counter(name for name in inputs if name is not None).most_common(LABELS):
        lanes[name] = np.array([row for row, each in zip(rows, inputs, strict=True) if each == name])
    return True, lanes


def _gets_no_labels(spec: Spec) -> bool:
    """Whether the recording's labels are for the comparison alone: the device gets none."""
    program = spec.inner.program
    return program.label_kind != "none" and not (program.learns or spec.forecasts)


def _rivals_learn(spec: Spec, recording: Recorded, watch: Watch) -> int | None:
    """After how many rows simple predictors stand still, beside a model that gets no labels; None: they learn all."""
    return recording.steps(spec, watch) // 2 if _gets_no_labels(spec) and recording.again else None


def _begin(
    spec: Spec, delay: int, refresh_every: int, train_every: int, until: int | None = None
) -> Simulation | Monitoring:
    inner = spec.inner
    if inner.program.label_kind != "none":
        return Simulation(inner, delay_of(spec, delay), refresh_every, train_every, spec.forecasts, until)
    for name, given in (("delay", delay), ("train_every", train_every)):
        if given:
            raise UserError(f"{spec.name} learns without labels, so that {option(name)} means nothing; leave it out")
    return Monitoring(inner, refresh_every)


def _run(
    spec: Spec,
    recording: Recorded,
    simulation: Simulation | Monitoring,
    files: Mapping[str, Path | None],
    watch: Watch,
    stage: SignalStage | None = None,
    seen: Seen | None = None,
) -> tuple[int, RawRows | None, bytes]:
    """Run all rows, write the files (answers, state), all of them or none, and tell what was read.

    Returns the number of rows with a missing input; for raw rows their counts; and the snapshot, if it is written.
    """
    answers, save = (files.get(name) for name in ("output", "save"))
    if save and spec.signal is not None and stage is None:
        stage = SignalStage(spec)
    columns, gaps, raw = Columns(), 0, None if spec.signal is None else RawRows(spec)
    placed = raw is not None and not spec.forecasts  # forecasts wait for their truth, and are told later
    with all_or_none(), contextlib.ExitStack() as stack:
        rows, size = recording.batches(spec, stack, columns)
        written = stack.enter_context(whole_file(answers)) if answers else None
        show = stack.enter_context(watch.progress(size))
        if written:
            written.write(host.prediction_header(spec.inner, placed).encode())
        rows = rows if seen is None else seen.reading(rows)
        trained: Any = getattr(spec.expansion, "trained", None)
        known = None if trained is None or trained.data is None else Rows(trained.rows)
        rows = rows if known is None else known.reading(rows)
        for batch in steps_of(spec, rows if raw is None else raw.counted(rows), stage):
            gaps += int(np.isnan(batch.x).any(axis=1).sum())
            if raw is not None:
                raw.place(batch.raw)
            answered = []
            for steps in simulation.run(batch.x, batch.y):
                if written:
                    told = range(steps.first_row, steps.first_row + len(steps.statuses))
                    places = [raw.raw_row(step) for step in told] if raw is not None and placed else None
                    written.write(host.prediction_lines(spec.inner, steps, places).encode())
                answered.append(steps)
            if seen is not None:
                seen.answer(answered)
            show(batch.position, f"running {spec.name}")
        if simulation.visits and simulation.train_every and recording.again:
            simulation.finish(steps_of(spec, recording.batches(spec, stack)[0]))
        else:
            simulation.finish()
        state = b""
        if save:
            write_file(save, state := snapshot.saved(spec, _whole(spec, simulation, stage)))
    if known is not None and known.digest == trained.data:
        recording.trained = trained.rows
    if recording.path is not None:
        recording.read = columns.report(missing=missing_rows(spec, gaps))
        watch.data(recording.read)
    return gaps, raw, state


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


simulate = function(Simulate, run)
