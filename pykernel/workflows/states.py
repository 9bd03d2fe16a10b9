"""What one does with a state that a device has saved: look at it, compare two, make it one of a changed spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.files import bytes_of, need_free, whole_file
from pykernel.host import migrate as migrated
from pykernel.host.snapshot import Snapshot, difference, most_bytes, read
from pykernel.spec.model import Spec
from pykernel.workflows.requests import Migrate


def _read(spec: Spec, path: Path) -> Snapshot:
    return read(spec, bytes_of(path, most_bytes(spec)), str(path))


def _identity(spec: Spec, found: Snapshot) -> dict[str, Any]:
    """What a snapshot is of."""
    hashes = {name: f"{getattr(found, name):08x}" for name in ("state_kind", "state_hash")}
    return {"name": spec.name, "state_kind": hashes["state_kind"], "sequence": found.sequence} | hashes


def shown(spec: Spec, path: Path) -> dict[str, Any]:
    """Each field's shape and range."""
    found = _read(spec, path)
    return _identity(spec, found) | {"fields": found.ranges()}


def whole(spec: Spec, path: Path) -> dict[str, Any]:
    """All values."""
    found = _read(spec, path)
    return _identity(spec, found) | {"state": found.state()}


def compared(spec: Spec, first: Path, second: Path) -> dict[str, Any]:
    """The fields that differ."""
    rows = difference(_read(spec, first), _read(spec, second))
    return {"ok": not rows, "fields": rows}


def migrate(given: Migrate) -> dict[str, Any]:
    """Make a state one of a changed spec, and write it."""
    out, state = Path(given.output), Path(given.state)
    need_free(out, str(state), given.force)
    made = migrated.migrate(given.old, bytes_of(state, most_bytes(given.old)), given.new, str(state))
    with whole_file(out) as file:
        file.write(made.data)
    return {"output": str(out), "changed": list(made.changed), "vectors": made.vectors, "removed": made.removed}
