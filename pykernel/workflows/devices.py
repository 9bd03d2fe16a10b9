"""Run the same task for each of many devices, one after the other or in parallel, and compute statistics over all devices."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from pykernel.errors import UNWRITTEN, Interrupted, UserError, shown_option
from pykernel.parallel import Workers
from pykernel.report.document import Document, Result
from pykernel.report.simulated import simulated_devices
from pykernel.rows.recordings import Device, Recordings
from pykernel.spec.model import Spec
from pykernel.telling import Watch, devices_sentences

LITTLE = 2**22
"""If all files together have at most this many bytes, starting other processes takes more time than it saves."""


class OnDevice(Protocol):
    """The task for one device.  A worker process receives it, and reads the recording in batches of rows."""

    @property
    def spec(self) -> Spec: ...

    def of(self, path: str, name: str) -> dict[str, Any]:
        """Return the result as plain values.  name: the file's name in messages.  Raises UserError if the recording cannot be read."""


def each_device(
    work: OnDevice,
    many: Recordings,
    jobs: int | str | None,
    watch: Watch,
    title: str,
) -> tuple[list[tuple[Device, dict[str, Any]]], list[dict[str, Any]]]:
    """Return two lists.  The first has the device and its result for each recording that was read.  The second has the
    device, the path and the reason for each recording that cannot be read.

    The results do not depend on ``jobs`` (see ``pykernel.parallel``).  Raises UserError if no recording can be read.
    """
    tasks = [{"path": os.path.abspath(device.path), "name": device.path} for device in many.devices]
    if jobs is None and many.size <= LITTLE:
        jobs = 1
    try:
        with Workers(_one, work, jobs=jobs, title=title if watch.bars else None) as workers:
            results = workers.run(tasks)
    except KeyboardInterrupt:
        raise Interrupted(UNWRITTEN) from None
    both = list(zip(many.devices, results, strict=True))
    unread = [
        {"device": device.name, "path": device.path, "reason": result["reason"]}
        for device, result in both
        if "reason" in result
    ]
    if len(unread) == len(both):
        raise UserError(unread[0]["reason"])
    return [(device, result) for device, result in both if "reason" not in result], unread


def _one(task: Mapping[str, Any], work: OnDevice) -> dict[str, Any]:
    """Return the result of the task for one device, or the reason why its recording cannot be read."""
    try:
        return work.of(task["path"], task["name"])
    except UserError as error:
        return {"reason": str(error)}


def unread_error(report: Mapping[str, Any]) -> UserError | None:
    """Return an error about the first recording that cannot be read; None if all recordings can be read."""
    if not (unread := report["unread"]):
        return None
    of = len(report["devices"]) + len(unread)
    if len(unread) == 1:
        return UserError(f"{unread[0]['reason']} (the other {of - 1:,} recordings were read)")
    return UserError(
        f"{unread[0]['reason']} ({len(unread):,} of {of:,} recordings cannot be read; the JSON report names all of them)"
    )


def spread(values: Iterable[tuple[str, float | None]]) -> dict[str, Any] | None:
    """For a number that should be small, return its median over the devices, its largest value, and the device with this value."""
    known = [(name, value) for name, value in values if value is not None]
    if not known:
        return None
    name, worst = max(known, key=lambda each: each[1])
    return {"median": median(value for _, value in known), "worst": worst, "device": name}


@dataclass(frozen=True, repr=False)
class SimulatedDevices(Result):
    """The result of a simulation of many devices, each with a new model.

    report: all results, as ``pykernel simulate --json`` prints them; ``devices`` has each device's simulation.
    """

    report: dict[str, Any]
    asked: dict[str, Any]

    @functools.cached_property
    def page(self) -> Document:
        return simulated_devices(self.report, self.asked)

    @property
    def failure(self) -> Exception | None:
        return unread_error(self.report)

    @property
    def measure(self) -> str:
        """The name of the measure in ``error``: rmse or error_rate; for a model without labels, in_alarm."""
        return self.report["measure"]

    @property
    def error(self) -> float | None:
        """The median of the devices' errors over the second half of their rows; for a model without labels, the median
        of the fractions of rows in alarm after the warm-up.
        """
        return (self.report["error"] or {}).get("median")

    @property
    def errors(self) -> dict[str, float | None]:
        """The error of each device."""
        return {each["device"]: each["error"] for each in self.report["devices"]}

    def __repr__(self) -> str:
        first = f"simulation of {self.report['name']}: {len(self.report['devices']):,} devices, {self.measure} over the second half"
        return "\n".join([first, *(f"  {line}" for line in (*devices_sentences(self.report), *self.warnings))])


def simulated(
    results: Sequence[tuple[Device, dict[str, Any]]], unread: Sequence[dict[str, Any]], many: Recordings, spec: Spec
) -> dict[str, Any]:
    """Return the report on a simulation of many devices: a row for each device, the median and worst error, and the
    fraction of devices whose model beats the simple predictors, among the devices with enough scored rows.
    """
    devices = [
        {"device": device.name, "path": device.path, **_row(result), "simulation": result} for device, result in results
    ]
    judged = [row for row in devices if row["winner"] is not None]
    measure = "in_alarm" if spec.label_kind == "none" else "error_rate" if spec.label.classes else "rmse"
    return {
        "name": spec.name,
        "rule": spec.learning.rule,
        "default": spec.default,
        "recordings": many.source,
        "measure": measure,
        "devices": devices,
        "rows": sum(row["rows"] for row in devices),
        "refused": sum(row["refused"] for row in devices),
        "error": spread((row["device"], row["error"]) for row in devices),
        "ratio": spread((row["device"], row["ratio"]) for row in devices),
        "judged": len(judged),
        "beat_simple": sum(row["winner"] == "model" for row in judged) / len(judged) if judged else None,
        "unread": list(unread),
    }


def _row(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return one device's row: the error over the second half, and the comparison with the best simple predictor's error.

    error: for a model without labels, the fraction of rows in alarm after the warm-up.
    ratio: the model's error divided by the predictor's.  winner: "model", "simple" or "neither"; None if too few rows are scored.
    """
    watches, alarms, beside = "question" in report, report.get("alarms"), report.get("verdict") or {}
    half = report["second_half"].get("error_rate" if report.get("classes") else "rmse", {})
    row = {
        "rows": report["rows"],
        "refused": report["refused"],
        "error": (alarms or {}).get("in_alarm") if watches else half["model"],
        "simple": beside.get("simple"),
        "simple_error": beside.get("error"),
        "ratio": beside["model"] / beside["error"] if beside.get("error") else None,
        "winner": {"model": "model", None: "neither"}.get(beside["winner"], "simple") if beside else None,
    }
    return row | ({"alarms": alarms and alarms["count"]} if watches else {})


def need_one(**arguments: object) -> None:
    """Raise UserError if one of these arguments, which apply only to many devices, was given.  The caller has a single
    table.
    """
    for name, value in arguments.items():
        if value is not None:
            raise UserError(
                f"{shown_option(name)} is for many devices; give a folder or several files, or leave {shown_option(name)} out"
            )
