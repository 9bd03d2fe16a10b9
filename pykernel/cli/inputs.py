"""The specs that commands are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pykernel.cli import output
from pykernel.errors import UntrustedCode, UserError

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


def read_spec(spec_file: Path, trust: bool) -> Spec:
    """Read a spec.  If it names a file with code and ``trust`` is true, the file is executed, and a message says so."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: output.tell(f"executing {path}"))


def plain_spec(spec_file: Path) -> Spec:
    """Read a spec without code: searches execute no code."""
    from pykernel.spec.model import load_spec

    try:
        return load_spec(spec_file)
    except UntrustedCode:
        raise UserError(
            f"{spec_file}: [kernel] names code, which sweep and plan do not execute; give a spec with one of the project's kernels"
        ) from None


def need_no_signal(spec: Spec, command: str) -> None:
    """Raises UserError for a spec with a [signal], if a command cannot take raw samples."""
    if spec.signal is not None:
        raise UserError(f"{spec.name} has a [signal], which {command} does not take yet; pykernel simulate does")
