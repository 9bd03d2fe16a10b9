"""Learned states of several devices as one: files in, a file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pykernel.errors import UserError
from pykernel.files import bytes_of, need_different, whole_file
from pykernel.host import merging
from pykernel.host.snapshot import most_bytes
from pykernel.telling import QUIET, Watch

if TYPE_CHECKING:
    from pykernel.host.merging import Merged
    from pykernel.spec.model import Spec


def merge(
    spec: Spec,
    states: Sequence[str | Path | bytes],
    *,
    into: Spec | None = None,
    output: str | Path | None = None,
    watch: Watch = QUIET,
) -> Merged:
    """One learned state from those of several devices: what ``pykernel merge`` does.

    Cost: of sums the inverse of a matrix for each device; else 20 updates and an answer for each of some hundred questions to each device.

    Parameters
    ----------
    spec : Spec
        What all devices run.
    states : sequence of paths, or of bytes
        Of each device a snapshot, from NAME_save or NAME_store, or the NAME_STATE_BYTES bytes of the state.  A folder: all of its
        .bin files.
    into : Spec, optional
        The spec of the merged state: with another budget, or other numbers that say how learning goes on.
    output : path, optional
        The snapshot to write.
    watch : Watch, optional
        Receives messages.

    Returns
    -------
    Merged
        ``data``, the snapshot; ``foretold``, how far the others are from each device; ``warnings``, which devices disagree.

    Raises
    ------
    UserError
        Fewer than two states, a state of another spec, or a model that cannot be merged: one sentence.
    """
    given: list[Path | bytes] = []
    for each in states:
        path = each if isinstance(each, bytes) else Path(each)
        found = sorted(path.glob("*.bin")) if isinstance(path, Path) and path.is_dir() else [path]
        if not found:
            raise UserError(f"{each!s}: has no file that ends with .bin; give the snapshots of the devices")
        given += found
    names = [f"state {k + 1}" if isinstance(each, bytes) else str(each) for k, each in enumerate(given)]
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise UserError(f"{twice[0]} is given twice; a device must not count as two")
    if output is not None:
        need_different([Path(output), *(each for each in given if isinstance(each, Path))])
    most = most_bytes(spec) if spec.program.persistent else 1
    read = [each if isinstance(each, bytes) else bytes_of(each, most) for each in given]
    watch.tell(f"merging {len(read)} states of {spec.name}")
    merged = merging.merge(spec, dict(zip(names, read, strict=True)), into, watch)
    if output is not None:
        with whole_file(Path(output)) as file:
            file.write(merged.data)
    return merged


def report_of(merged: Merged) -> dict[str, object]:
    """As ``pykernel merge --json`` prints it."""
    return {
        "name": merged.spec.name,
        "way": merged.way,
        "devices": [{"device": name, "foretold": each} for name, each in merged.foretold.items()],
        "left": merged.left,
        "state_hash": f"{merged.state_hash:08x}",
        "warnings": list(merged.warnings),
    }
