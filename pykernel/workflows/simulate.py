"""Simulate how a device would predict and learn recorded data."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykernel.errors import UNWRITTEN, Interrupted
from pykernel.files import all_or_none, need_different, need_not_data, whole_file
from pykernel.host import snapshot
from pykernel.host.advice import FEW, Trial
from pykernel.host.monitoring import Monitoring
from pykernel.host.pipeline import Pipeline
from pykernel.host.recording import Recorded
from pykernel.host.samples import require_columns, training_of
from pykernel.host.seen import Seen
from pykernel.host.signal import steps_of
from pykernel.host.simulation import Simulation
from pykernel.host.start import started
from pykernel.progress import Show
from pykernel.request.option import function, stated
from pykernel.rows.recordings import Recordings, need_none, recordings_of
from pykernel.spec.model import Spec
from pykernel.telling import SILENT, Watch, data_sentences
from pykernel.workflows import devices
from pykernel.workflows.arguments import need_report
from pykernel.workflows.devices import SimulatedDevices, each_device, need_one
from pykernel.workflows.models import need_ram, spec_and_memory
from pykernel.workflows.requests import Simulate
from pykernel.workflows.simulated import Simulated

Often = tuple[int, int, int]
"""The arguments delay, refresh_every and train_every."""


def run(request: Simulate) -> Simulated | SimulatedDevices:
    """Run ``pykernel simulate``.

    Cost: a prediction and an update for each row, in constant memory.  Each change that the advice tries costs as much
    again.
    """
    spec, _ = spec_and_memory(request.model)
    need_ram(spec)
    often: Often = (request.delay, request.refresh_every, request.train_every)
    files = {name: Path(path) if (path := getattr(request, name)) else None for name in ("output", "report", "save")}
    data = request.data
    for path in files.values():
        if path is not None and isinstance(data, str | Path):
            need_not_data(path, str(data))
    need_report(files["report"])
    if files["save"] is not None:
        snapshot.snapshot_bytes(spec)  # raises UserError for a model that learns nothing
    if (many := recordings_of(data)) is not None:
        return _each(spec, often, many, files, request)
    need_one(jobs=request.jobs)
    recording = Recorded(spec, data)  # type: ignore[arg-type]
    need_different(list(files.values()))
    return _one(spec, often, recording, files, request)


def _one(
    spec: Spec, often: Often, recording: Recorded, files: Mapping[str, Path | None], request: Simulate
) -> Simulated:
    """Simulate one device."""
    watch, page = request.watch, files["report"]
    pipeline = _pipeline(spec, often, recording, watch)
    if request.start is not None:
        pipeline.go_on(started(spec, request.start, watch))
    simulation, seen = pipeline.simulation, Seen(spec, pipeline.simulation, recording.path)
    with all_or_none():
        state = pipeline.run(recording, watch, files["output"], files["save"], seen)
        try:
            with watch.progress(None) as show:
                report = _report(
                    recording, simulation, _trial(recording, request.refresh_every, simulation.delay, show)
                )
        except KeyboardInterrupt:  # only the report is missing: the files that were written so far are kept
            report = {}
        if report:
            report |= {key: str(path) if path else None for key, path in files.items()}
            report["state_hash"] = f"{snapshot.read(spec, state).state_hash:08x}" if state else None
        result = Simulated(report, simulation, seen, stated(request))
        if report and page is not None:
            result.page.write(page)
    if not report:
        kept = " and ".join(str(path) for path in files.values() if path and path != page)
        raise Interrupted(
            f"; all rows were simulated, and only the report is missing: see {kept}" if kept else UNWRITTEN
        )
    return result


def _pipeline(spec: Spec, often: Often, recording: Recorded, watch: Watch) -> Pipeline:
    """Return a pipeline of the model and the simple predictors with which it is compared.

    If the model would get no labels on the device, and the rows can be counted in advance, the simple predictors stop
    learning after half of the rows.
    """
    program = spec.inner.program
    gets_none = program.label_kind != "none" and not (program.learns or spec.forecasts)
    return Pipeline(spec, *often, recording.steps(watch) // 2 if gets_none and recording.again else None)


def _report(recording: Recorded, simulation: Simulation | Monitoring, trial: Trial | None = None) -> dict[str, Any]:
    """Return the report of a run."""
    report, raw, trained = simulation.report(trial), recording.raw, recording.trained
    report |= {
        "default": recording.spec.default,
        "empty_inputs": recording.gaps,
        "data": recording.read,
        "trained_rows": trained,
    }
    report |= {"promise": None if trained is not None else _promise(recording.spec, report)}
    warnings = [] if raw is None else raw.warnings(report["rows"], simulation.delay)
    report |= {"knows_second_half": False}
    if trained is not None:
        rows = report["rows"] if raw is None else raw.rows
        if trained > rows // 2:  # the model, but not the simple predictors, was trained on rows of the second half
            report |= {"verdict": None, "knows_second_half": True}
        some = "these rows" if trained == rows else f"the first {trained:,} of these rows"
        warnings.append(
            f"the model was trained on {some}: expect larger errors on other rows; pykernel plan estimates such errors"
        )
    if raw is not None:
        report |= {"raw_rows": raw.report()}
        for alarm in report.get("alarms", {}).get("listed", ()):
            alarm |= raw.times(alarm)
    return report | {"warnings": [*warnings, *report["warnings"]]}


def _promise(spec: Spec, report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the error that a plan promised for a frozen model, and the model's error over all rows of the recording."""
    trained = training_of(spec)
    if trained is None or trained.promise is None or report["all"].get("scored", 0) < FEW:
        return None
    error, within = trained.promise
    here = report["all"].get("error_rate", report["all"].get("rmse"))["model"]
    return {"error": error, "within": within, "here": here, "kept": here <= error + within}


def _trial(recording: Recorded, refresh_every: int, delay: int, show: Show) -> Trial | None:
    """Return a function that returns another model's error over the second half of the same rows.

    Returns None if the rows cannot be read again.
    """
    if not recording.again:
        return None
    spec = recording.spec

    def error(changed: Spec) -> float | None:
        show(0, "trying changes that may help")
        with contextlib.ExitStack() as stack:
            batches = steps_of(spec, recording.batches(stack)[0])
            refreshed = refresh_every if changed.learning.rule == spec.learning.rule else 0
            run = Simulation(changed, delay, refreshed, forecasts=spec.forecasts)
            for batch in batches:
                for _ in run.run(batch.x, batch.y):
                    pass
        return run.summary(run.errors, run.rows // 2)["error_rate" if run.classes else "rmse"]["model"]

    return error


# --------------------------------------------------------------------------------------------------------- many devices


@dataclass(frozen=True)
class _OnDevice:
    """The simulation of one of many devices.  start: the snapshot from which the model starts.  saves: whether the model's state is kept."""

    spec: Spec
    often: Often
    start: bytes | None
    saves: bool

    def of(self, path: str, name: str) -> dict[str, Any]:
        recording = Recorded(self.spec, path, name)
        pipeline = _pipeline(self.spec, self.often, recording, SILENT)
        if self.start is not None:
            pipeline.go_on(snapshot.read(self.spec, self.start).memory)
        pipeline.run(recording, SILENT)
        pipeline.simulation.goes_on = True  # omit advice, which would try other models for each device
        report = _report(recording, pipeline.simulation)
        if not self.saves:
            return report
        state = snapshot.saved(self.spec, pipeline.memory())
        return report | {"state_hash": f"{snapshot.read(self.spec, state).state_hash:08x}", "state": state.hex()}


def _each(
    spec: Spec, often: Often, many: Recordings, files: Mapping[str, Path | None], request: Simulate
) -> SimulatedDevices:
    """Simulate many devices separately, and report on all of them together."""
    need_none(output=files["output"])
    page, save, watch = files["report"], files["save"], request.watch
    require_columns(spec)
    Pipeline(spec, *often)  # raises UserError for invalid arguments, before any recording is read
    begins = None if request.start is None else snapshot.saved(spec, started(spec, request.start, watch))
    work = _OnDevice(spec, often, begins, save is not None)
    results, unread = each_device(work, many, request.jobs, watch, f"running {spec.name}")
    states = {device.name: bytes.fromhex(result.pop("state")) for device, result in results if "state" in result}
    report = devices.simulated(results, unread, many, spec) | {"delay": request.delay}
    report |= {"output": None, "report": str(page) if page else None, "save": str(save) if save else None}
    noticed = [f"{device.name}: {line}" for device, result in results for line in data_sentences(result["data"])[:1]]
    if noticed:
        more = f" ({len(noticed):,} devices have such notes; see the JSON report)" if len(noticed) > 1 else ""
        watch.note(f"data     {noticed[0]}{more}")
    warned = [f"{device.name}: {result['warnings'][0]}" for device, result in results if result["warnings"]]
    more = f"; {len(warned):,} devices have warnings" if len(warned) > 1 else ""
    report["warnings"] = [first + more for first in warned[:1]]
    simulated = SimulatedDevices(report, stated(request) | {"data": many.source})
    with all_or_none(save):
        for name, state in states.items():
            with whole_file(Path(save or ".") / f"{name}.bin", parents=True) as file:
                file.write(state)
        if page is not None:
            simulated.page.write(page)
    return simulated


simulate = function(Simulate, run)
