"""What one does with a state that a device has saved: look at it, compare two, make it one of a changed spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.errors import UserError
from pykernel.files import bytes_of, need_different, need_free, whole_file
from pykernel.host import merging
from pykernel.host import migrate as conversion
from pykernel.host.merging import Merged
from pykernel.host.snapshot import Snapshot, difference, most_bytes, read
from pykernel.request.option import function
from pykernel.spec.model import Spec
from pykernel.workflows.state_requests import Merge, Migrate, Show


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
    devices: list[Path | bytes] = []
    for each in given.states:
        path = each if isinstance(each, bytes) else Path(each)
        found = sorted(path.glob("*.bin")) if isinstance(path, Path) and path.is_dir() else [path]
        if not found:
            raise UserError(f"{each!s}: has no file that ends with .bin; give the snapshots of the devices")
        devices += found
    names = [f"state {k + 1}" if isinstance(each, bytes) else str(each) for k, each in enumerate(devices)]
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise UserError(f"{twice[0]} is given twice; a device must not count as two")
    if given.output is not None:
        need_different([Path(given.output), *(each for each in devices if isinstance(each, Path))])
    most = most_bytes(given.spec) if given.spec.program.persistent else 1
    read = [each if isinstance(each, bytes) else bytes_of(each, most) for each in devices]
    given.watch.tell(f"merging {len(read)} states of {given.spec.name}")
    made = merging.merge(given.spec, dict(zip(names, read, strict=True)), given.into, given.watch)
    if given.output is not None:
        with whole_file(Path(given.output)) as file:
            file.write(made.data)
    return made


def report_of(made: Merged) -> dict[str, object]:
    """As ``pykernel state merge --json`` prints it."""
    return {
        "name": made.spec.name,
        "way": made.way,
        "devices": [{"device": name, "foretold": each} for name, each in made.foretold.items()],
        "left": made.left,
        "state_hash": f"{made.state_hash:08x}",
        "warnings": list(made.warnings),
    }


merge = function(Merge, merged)
