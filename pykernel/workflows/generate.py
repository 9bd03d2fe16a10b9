"""A model as C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pykernel.workflows.models import Fitted, spec_and_memory

if TYPE_CHECKING:
    from pykernel.dialect import Memory
    from pykernel.gen.project import Generated
    from pykernel.spec.model import Spec


def generate(
    model: Spec | Fitted,
    output: str | Path,
    *,
    name: str | None = None,
    memory: Memory | None = None,
    force: bool = False,
    with_check: bool = False,
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
    force : bool
        Whether to replace files in ``output`` that were changed by hand or are not of pykernel.
    with_check : bool
        Whether to write the firmware with which ``check(board=...)`` tests a board, too.

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

    spec, learned = spec_and_memory(model, name)
    return generate(spec, output, memory=learned if memory is None else memory, force=force, with_check=with_check)
