"""Make the state that a device starts from: a saved state, or a state learned from a recording."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from pykernel.errors import UserError, shown_option
from pykernel.files import bytes_of
from pykernel.host import snapshot
from pykernel.host.pipeline import Pipeline
from pykernel.host.recording import Recorded
from pykernel.spec.model import Spec
from pykernel.telling import QUIET, Watch

if TYPE_CHECKING:
    from pykernel.dialect import Memory
    from pykernel.host.recording import Recording


def learned(spec: Spec, data: Recording, watch: Watch = QUIET) -> Memory:
    """Return the state that a model reaches if ``simulate`` runs it over a recording without delay.

    A model that is trained from stored samples is trained once, after the last row.  Raises UserError if the model does
    not learn, if the recording cannot be read, if no row was learned, or if the training fails.
    """
    if not spec.program.learns:
        raise UserError(
            f"{spec.name} does not learn, so it cannot start from a recording; leave {shown_option('start')} out"
        )
    pipeline = Pipeline(spec)
    pipeline.run(Recorded(spec, data), watch)
    simulation = pipeline.simulation
    taken = sum(count for status, count in simulation.statuses.items() if status >= 0)
    if not taken:
        raise UserError(
            f"{spec.name} learned none of the recording's {simulation.rows:,} rows: all were refused, or have no label; "
            "pykernel simulate reports why"
        )
    watch.tell(f"start    {taken:,} of {simulation.rows:,} rows of the recording were learned")
    if simulation.trains:
        status = simulation.train()
        if status < 0:
            raise UserError(f"{spec.name} cannot be trained on the recording: train returned {status.name}")
    elif simulation.warning:
        watch.warn(simulation.warning)
    return pipeline.memory()


def started(spec: Spec, start: Recording, watch: Watch) -> Memory:
    """Return the memory with which a device starts. start: a saved state or a recording.

    Raises UserError if the state does not fit the spec, or if no row of the recording was learned.
    """
    path = Path(start) if isinstance(start, str | Path) else None
    # a pipe is always read as a recording, because a test for a saved state would consume its first bytes
    if path is None or not path.is_file() or bytes_of(path, len(snapshot.MAGIC)) != snapshot.MAGIC:
        return learned(spec, start, watch)
    found = snapshot.read(spec, bytes_of(path, snapshot.most_bytes(spec)), str(path))
    watch.tell(f"start    the state {found.state_hash:08x} of {path}")
    return found.memory


def taught(spec: Spec, data: str) -> bytes | None:
    """Return the snapshot of a model that has learned a recording.

    The result is None if the model does not learn or refuses all rows, if the rows cannot be read again, or if the user
    presses Ctrl-C.
    """
    if not spec.program.learns or not Path(data).is_file():
        return None
    with contextlib.suppress(UserError, KeyboardInterrupt):
        return snapshot.saved(spec, learned(spec, data))
    return None
