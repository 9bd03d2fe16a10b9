"""Replay the logs of devices, and compare the results with what the devices logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykernel.errors import CheckFailed, UserError, shown_option
from pykernel.files import bytes_of
from pykernel.host.replay import ANSWERS, differing_fields, read_log
from pykernel.host.replay import Replay as Repeated
from pykernel.host.snapshot import device_memory
from pykernel.report.document import Found, Part, Sentence, Table, document_of_parts
from pykernel.rows.recordings import need_none, recordings_of
from pykernel.spec.family import STATE_LIMIT
from pykernel.spec.model import Spec
from pykernel.telling import SILENT, Watch, devices_shown
from pykernel.workflows.arguments import opened
from pykernel.workflows.devices import each_device, need_one, unread_error
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.state_requests import Replay

MOST = 2 * STATE_LIMIT
"""Largest number of bytes that are read from a state file."""


@dataclass(frozen=True)
class _OnDevice:
    """The replay of one device's log.

    start: the device's state before the log, as (bytes, name of the file).  state: the same for the state at the end of the log.
    """

    spec: Spec
    start: tuple[bytes, str] | None = None
    state: tuple[bytes, str] | None = None

    def of(self, path: str, name: str, watch: Watch = SILENT) -> dict[str, Any]:
        spec = self.spec
        at_end = None if self.state is None else device_memory(spec, *self.state)
        run = Repeated(spec, *self.start) if self.start else Repeated(spec)
        with opened(path, watch) as (_, file, show):
            for rows in read_log(file, name, spec):
                if run.run(rows) and at_end is None:  # the state at the end can be compared only after all rows
                    break
                show(rows.position, f"replaying {spec.name}")
        if at_end is None and not any(run.compared.values()):
            asks = spec.inner.program.asks
            answer = ANSWERS.get(asks, asks)
            what = (
                f"state_hash, status or {answer}, or give {shown_option('end')}"
                if spec.program.learns
                else f"status or {answer}"
            )
            raise UserError(f"{name}: holds no results to compare; record {what}")
        fields = differing_fields(spec, at_end, run.model.memory) if at_end is not None else []
        report = {"ok": run.difference is None and not fields} | run.report() | {"fields": fields, "wrong": None}
        if not report["ok"]:
            what = f"{name}, {run.difference}" if run.difference else f"{self.state[1]}: {fields[0]['field']} differs"  # type: ignore[index]
            advice = run.advice()
            report["wrong"] = f"{what}; {advice}" if advice else what
        return report


def run(request: Replay) -> Found:
    """Replay a log, or the logs of many devices separately.  For many devices, the report's ``devices`` has a report for each device."""
    spec, start, state, watch = spec_and_memory(request.model)[0], request.start, request.end, request.watch
    begins = (bytes_of(Path(start), MOST), str(start)) if start else None
    if (many := recordings_of(request.data)) is None:
        need_one(jobs=request.jobs)
        path = str(request.data)
        ends = (bytes_of(Path(state), MOST), str(state)) if state else None
        return _one(_OnDevice(spec, begins, ends).of(path, "standard input" if path == "-" else path, watch))
    need_none(end=state)
    if begins:
        Repeated(spec, *begins)  # raises UserError for an invalid state, before any log is read
    results, unread = each_device(_OnDevice(spec, begins), many, request.jobs, watch, f"replaying {spec.name}")
    devices: list[Mapping[str, Any]] = [
        {"device": device.name, "path": device.path} | result for device, result in results
    ]
    differ = [each for each in devices if not each["ok"]]
    report = {
        "ok": not differ and not unread,
        "name": spec.name,
        "recordings": many.source,
        "devices": devices,
        "rows": sum(each["rows"] for each in devices),
        "differ": len(differ),
        "unread": unread,
    }
    rows, words = devices_shown(devices, lambda each: not each["ok"])
    cells = [
        [each["device"], f"{each['rows']:,}", "yes" if each["ok"] else "NO", (each["difference"] or {}).get("text", "")]
        for each in rows
    ]
    columns, title = (
        ("device", "rows", "equal", "the first difference"),
        f"{spec.name}: {words}, {report['rows']:,} rows replayed",
    )
    equal = f"{len(devices) - len(differ):,} of {len(devices):,} devices computed the expected values"
    parts: list[Part] = [Table(columns, cells, (0, 2, 3), title=title), Sentence(equal)]
    error: Exception | None = unread_error(report)
    if differ:
        parts, error = [*parts, Sentence(str(error or ""))], CheckFailed(differ[0]["wrong"])
    return Found(report, document_of_parts(*parts), error)


def _one(report: dict[str, Any]) -> Found:
    """Show the replay of one device's log."""
    wrong, updates, end = report.pop("wrong"), report["updates"], report["state_hash"]
    done = f", {updates:,} updates replayed; the state's hash is {end}" if end else " replayed"
    compared = [(kind, f"{count:,}") for kind, count in report["compared"].items()]
    fields = [(row["field"], f"{row['values']:,}", row["device"], row["host"]) for row in report["fields"]]
    columns = ("field", "values that differ", "first on the device", "on the host")
    title = f"{report['name']}: {report['rows']:,} rows{done}"
    page = document_of_parts(
        Table(("compared", "rows"), compared, title=title), Table(columns, fields, title="the state at the end")
    )
    return Found(report, page, None if wrong is None else CheckFailed(wrong))
