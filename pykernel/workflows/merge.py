"""Learned states of several devices as one: files in, a file out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pykernel.errors import UserError, option
from pykernel.files import bytes_of, need_different, whole_file
from pykernel.host.samples import by_name, read_rows
from pykernel.host.snapshot import most_bytes
from pykernel.telling import QUIET, Watch
from pykernel.training import merging

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pykernel.spec.model import Spec
    from pykernel.training.merging import Merged, Share


def merge(
    spec: Spec,
    states: Sequence[str | Path | bytes],
    *,
    into: Spec | None = None,
    data: str | Path | tuple[ArrayLike, ArrayLike] | None = None,
    output: str | Path | None = None,
    watch: Watch = QUIET,
) -> Merged:
    """One learned state from those of several devices: what ``pykernel merge`` does.

    Cost: a prediction of each device at each stored vector of all, and some hundred rounds of N updates.

    Parameters
    ----------
    spec : Spec
        What all devices run.
    states : sequence of paths, or of bytes
        Of each device a snapshot, from NAME_save or NAME_store, or the NAME_STATE_BYTES bytes of the state.  A folder: all of its
        .bin files.
    into : Spec, optional
        The spec of the merged state: with another budget, or other numbers that say how learning goes on.
    data : path, or (x, y), optional
        A recording with labels that no device has learned.  Half of the rows choose how devices are weighed, half judge.  For monitors
        y is None, and all rows judge.
    output : path, optional
        The snapshot to write.
    watch : Watch, optional
        Receives messages.

    Returns
    -------
    Merged
        ``data``, the snapshot; ``devices``, what each gave; ``errors``, on the recording.

    Raises
    ------
    UserError
        Fewer than two states, a state of another spec, or a model that cannot be merged: one sentence.
    """
    folders = [each for each in states if not isinstance(each, bytes) and Path(each).is_dir()]
    if folders:
        found = {each: sorted(Path(each).glob("*.bin")) for each in folders}
        if empty := [each for each in folders if not found[each]]:
            raise UserError(f"{empty[0]}: has no file that ends with .bin; give the snapshots of the devices")
        states = [path for each in states for path in (found[each] if each in folders else [each])]
    names = [f"state {k + 1}" if isinstance(each, bytes) else str(each) for k, each in enumerate(states)]
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise UserError(f"{twice[0]} is given twice; a device must not count as two")
    if output is not None:
        need_different([Path(output), *(Path(each) for each in states if not isinstance(each, bytes))])
    most = most_bytes(spec) if spec.program.persistent else 1
    read = [each if isinstance(each, bytes) else bytes_of(Path(each), most) for each in states]
    rows = None
    if data is not None:
        if spec.signal is not None:
            raise UserError(
                f"{option('data')}: the vectors of {spec.name} are features of raw signals; leave the recording out"
            )
        x, y = (
            read_rows(spec, str(data))
            if isinstance(data, str | Path)
            else (
                np.asarray(by_name(data[0], spec.sample_columns), float),
                np.asarray(by_name(data[1], spec.label_columns)),
            )
        )
        if spec.program.label_kind == "none":
            y = np.zeros((len(x), 0))
        known = ~np.isnan(np.asarray(y, float).reshape(len(y), -1)).any(axis=1) & ~np.isnan(x).any(axis=1)
        known &= np.asarray(y).reshape(len(y), -1)[:, 0] >= 0 if spec.program.label_kind == "class" else True
        with_label = "" if spec.program.label_kind == "none" else " with a label"
        if known.sum() < 2 * merging.BLOCK:
            raise UserError(
                f"{option('data')}: has {known.sum()} complete rows{with_label}; give {2 * merging.BLOCK} or more"
            )
        rows = x[known], np.asarray(y)[known]
    watch.tell(f"merging {len(read)} states of {spec.name}")
    merged = merging.merge(spec, dict(zip(names, read, strict=True)), into, rows, watch)
    if output is not None:
        with whole_file(Path(output)) as file:
            file.write(merged.data)
    return merged


def report_of(merged: Merged) -> dict[str, object]:
    """As ``pykernel merge --json`` prints it."""
    return {
        "name": merged.spec.name,
        "way": merged.way,
        "devices": [_told(device) for device in merged.devices],
        "vectors": merged.vectors,
        "regime_count": merged.regimes,
        "power": merged.power,
        "left": merged.left,
        "errors": merged.errors,
        "state_hash": f"{merged.state_hash:08x}",
        "warnings": list(merged.warnings),
    }


def _told(device: Share) -> dict[str, object]:
    told = asdict(device)
    return {"device": told.pop("name"), "regime_count": told.pop("regimes"), **told}
