"""What one does with a state that a device has saved: look at it, compare two, make it one of a changed spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.errors import UserError
from pykernel.files import bytes_of, need_free, whole_file
from pykernel.host import migrate as conversion
from pykernel.host.merging import Merged
from pykernel.host.snapshot import Snapshot, difference, most_bytes, read
from pykernel.request.option import function
from pykernel.spec.model import Spec
from pykernel.workflows.merge import merge as work
from pykernel.workflows.requests import Merge, Migrate, Show


def _read(spec: Spec, path: Path) -> Snapshot:
    return read(spec, bytes_of(path, most_bytes(spec)), str(path))


def _identity(spec: Spec, found: Snapshot) -> dict[str, Any]:
    """What a snapshot is of."""
    hashes = {name: f"{getattr(found, name):08x}" for name in ("state_kind", "state_hash")}
    return {"name": spec.name, "state_kind": hashes["state_kind"], "sequence": found.sequence} | hashes


def show(given: Show) -> dict[str, Any]:
    """Each field's range and values; or, of two states, the fields that differ."""
    found = [_read(given.model, Path(file)) for file in given.files]
    if len(found) > 2:
        raise UserError(f"{len(found)} states are given; give one, or two to compare")
    if len(found) == 2:
        rows = difference(*found)
        return {"ok": not rows, "fields": rows}
    return _identity(given.model, found[0]) | {"fields": found[0].ranges(), "state": found[0].state()}


def migrate(given: Migrate) -> dict[str, Any]:
    """Make a state one of a changed spec, and write it."""
    out, state = Path(given.output or ""), Path(given.state)
    need_free(out, str(state), given.force)
    made = conversion.migrate(given.old, bytes_of(state, most_bytes(given.old)), given.new, str(state))
    with whole_file(out) as file:
        file.write(made.data)
    return {"output": str(out), "changed": list(made.changed), "vectors": made.vectors, "removed": made.removed}


def merged(given: Merge) -> Merged:
    """Make one state of several devices', and write it."""
    if given.output is not None and not isinstance(given.states[0], bytes):
        need_free(Path(given.output), str(given.states[0]), given.force)
    return work(given.spec, given.states, into=given.into, output=given.output, watch=given.watch)


merge = function(Merge, merged)
