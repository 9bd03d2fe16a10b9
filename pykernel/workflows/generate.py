"""A model as C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pykernel.errors import UserError, option
from pykernel.telling import QUIET, Watch
from pykernel.workflows.models import Fitted, need_ram, spec_and_memory

if TYPE_CHECKING:
    from pykernel.dialect import Memory
    from pykernel.gen.project import Generated
    from pykernel.spec.model import Spec
    from pykernel.workflows.simulate import Recording


def generate(
    model: Spec | Fitted,
    output: str | Path,
    *,
    name: str | None = None,
    memory: Memory | None = None,
    start: Recording | None = None,
    force: bool = False,
    with_check: bool = False,
    micropython: bool = False,
    watch: Watch = QUIET,
) -> Generated:
    """Write a model as a C project.

    Parameters
    ----------
    model : Spec or fitted estimator
        With an estimator, or a model of ``pykernel.river``, the device starts from what it has learned.
    output : path
        The project's folder.
    name : str, optional
        Prefix of every symbol and file, for example "flow". By default, the name in the spec.
    memory : Memory, optional
        A learned state to start from. By default, that of the estimator.
    start : path, or (x, y), optional
        A recording, as for ``simulate``: the device starts from what a new model learns of its rows, in order. Or a saved
        state of this spec's kind, for example of ``simulate(..., save=...)``: the device starts from that.
    force : bool
        Whether to replace files in ``output`` that were changed by hand or are not of pykernel.
    with_check : bool
        Whether to write the firmware with which ``check(board=...)`` tests a board, too.
    micropython : bool
        Whether to write a user C module for MicroPython, too.
    watch : Watch
        Who is told how far the learning is.

    Returns
    -------
    Generated
        ``folder``, ``files``, and ``figures``: bytes of state, work and constants, and more.

    Raises
    ------
    UserError
        One sentence says what was wrong. Nothing is written then.
    """
    from pykernel.gen.project import generate
    from pykernel.gen.write import starts_learned

    spec, own = spec_and_memory(model, name)
    need_ram(spec)
    if start is not None:
        if memory is not None or own is not None:
            raise UserError("start is for a model that has learned nothing yet, and this one has; leave start out")
        from pykernel.workflows.simulate import started  # slow to load

        memory = started(spec, start, watch)
    memory = own if memory is None else memory
    if memory is None and not force and starts_learned(Path(output), spec.name):
        raise UserError(
            f"{output}: its device starts from what was learned, which would be lost; give {option('start')} with that state again, or "
            f"{option('force')} for a device that knows nothing"
        )
    return generate(spec, output, memory=memory, force=force, with_check=with_check, micropython=micropython)
