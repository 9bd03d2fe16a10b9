"""Show, compare, convert or merge states that devices have saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.errors import CheckFailed, UserError
from pykernel.files import bytes_of, need_different, need_free, whole_file
from pykernel.host import merging
from pykernel.host import migrate as conversion
from pykernel.host.merging import Merged
from pykernel.host.snapshot import Snapshot, difference, most_bytes, read
from pykernel.report.document import Found, Sentence, Table, document_of_parts
from pykernel.request.option import function
from pykernel.spec.model import Spec
from pykernel.telling import formatted_number
from pykernel.workflows.state_requests import Merge, Migrate, Show


def _read(spec: Spec, path: Path) -> Snapshot:
    return read(spec, bytes_of(path, most_bytes(spec)), str(path))


def show(request: Show) -> Found:
    """Show each field's range and values; or, for two states, the fields that differ."""
    snapshots = [_read(request.model, Path(file)) for file in request.files]
    if len(snapshots) > 2:
        raise UserError(f"{len(snapshots)} states are given; give one, or two to compare")
    if len(snapshots) == 2:
        return _differences(difference(*snapshots), *request.files)
    (state,) = snapshots
    fields = state.ranges()
    report = {
        "name": request.model.name,
        "state_kind": f"{state.state_kind:08x}",
        "sequence": state.sequence,
        "state_hash": f"{state.state_hash:08x}",
        "fields": fields,
        "state": state.state(),
    }
    rows = [
        (
            row["field"],
            " x ".join(map(str, row["shape"])),
            f"{row['nonzero']:,}",
            shown(row["least"]),
            shown(row["largest"]),
        )
        for row in fields
    ]
    title = f"{report['name']}, kind of state {report['state_kind']}, sequence number {report['sequence']}"
    columns = ("field", "shape", "not zero", "least", "largest")
    return Found(
        report, document_of_parts(Table(columns, rows, title=f"{title}; the state's hash is {report['state_hash']}"))
    )


def _differences(fields: list[dict[str, Any]], a: object, b: object) -> Found:
    rows = [
        (row["field"], f"{row['values']:,}", ", ".join(map(str, row["first"])), shown(row["a"]), shown(row["b"]))
        for row in fields
    ]
    table = Table(("field", "values that differ", "first at", "in A", "in B"), rows, title=f"{a} (A) and {b} (B)")
    wrong = CheckFailed(f"{a} and {b} differ, first in {fields[0]['field']}") if fields else None
    return Found(
        {"ok": not fields, "fields": fields}, document_of_parts(table, Sentence("" if fields else "equal")), wrong
    )


def shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def migrate(request: Migrate) -> Found:
    """Convert a state for a changed spec, and write it."""
    out, state = Path(request.output or ""), Path(request.state)
    need_free(out, str(state), request.force)
    made = conversion.migrate(request.old, bytes_of(state, most_bytes(request.old)), request.new, str(state))
    with whole_file(out) as file:
        file.write(made.data)
    report = {"output": str(out), "changed": list(made.changed), "vectors": made.vectors, "removed": made.removed}
    changed = f"{out}: changed: {', '.join(made.changed) or 'nothing'}"
    removed = f", after {made.removed} were removed" if made.removed else ""
    vectors = "" if made.vectors is None else f"vectors: {made.vectors}{removed}"
    return Found(report, document_of_parts(Sentence(changed), Sentence(vectors)))


def merged(request: Merge) -> Merged:
    """Merge the states of several devices into one, and write it."""
    if request.output is not None and not isinstance(request.states[0], bytes):
        need_free(Path(request.output), str(request.states[0]), request.force)
    devices: list[Path | bytes] = []
    for each in request.states:
        path = each if isinstance(each, bytes) else Path(each)
        snapshots = sorted(path.glob("*.bin")) if isinstance(path, Path) and path.is_dir() else [path]
        if not snapshots:
            raise UserError(f"{each!s}: has no .bin file; give the snapshots of the devices")
        devices += snapshots
    names = [f"state {k + 1}" if isinstance(each, bytes) else str(each) for k, each in enumerate(devices)]
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise UserError(f"{twice[0]} is given twice; give one state from each device")
    if request.output is not None:
        need_different([Path(request.output), *(each for each in devices if isinstance(each, Path))])
    most = most_bytes(request.spec) if request.spec.program.persistent else 1
    read = [each if isinstance(each, bytes) else bytes_of(each, most) for each in devices]
    request.watch.tell(f"merging {len(read)} states of {request.spec.name}")
    made = merging.merge(request.spec, dict(zip(names, read, strict=True)), request.into, request.watch)
    if request.output is not None:
        with whole_file(Path(request.output)) as file:
            file.write(made.data)
    return made


WAYS = {
    "sums": "the devices' sums were added: the result equals the state of one model that has learned all samples",
    "mean": "the function is the mean of the devices' functions",
    "answers": "the result is an approximation: a new model was trained on each device's answers to inputs like those that the device has learned",
}
"""Way of merging -> a sentence about it."""


def run_merge(request: Merge) -> Found:
    """Run ``pykernel state merge``."""
    made = merged(request)
    report = {
        "output": str(request.output),
        "name": made.spec.name,
        "way": made.way,
        "devices": [{"device": name, "deviation": each} for name, each in made.deviations.items()],
        "left": made.left,
        "state_hash": f"{made.state_hash:08x}",
        "warnings": list(made.warnings),
    }
    rows = [(name, "-" if each is None else f"{each:.2g}") for name, each in made.deviations.items()]
    left = f"the merged model's answers differ from the devices' joint answers by {formatted_number(made.left)} standard deviations (root mean square)"
    page = document_of_parts(
        Table(("device", "deviation"), rows, title=f"{request.output}: {len(rows)} devices; {WAYS[made.way]}"),
        Sentence("" if made.left is None else left),
        Sentence(f"state's hash: {report['state_hash']}"),
    )
    return Found(report, page)


merge = function(Merge, merged)
