"""Putting generated files in place: all of them or none, and never outside of the folder."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pykernel.errors import UserError


def write_files(folder: Path, files: Mapping[str, str], force: bool = False) -> list[Path]:
    """Write texts to paths below the folder.  Raises UserError before the first write if any of them must not be.

    A file that is there already is replaced if an earlier manifest.json vouches for it, or with ``force``.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; give a folder to write the project to")
    known = _vouched_for(folder)
    for path, text in files.items():
        _refuse_unsafe(folder, path, text, known, force)
    staged: list[tuple[str, Path]] = []
    try:
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".pykernel-")
            staged.append((name, target))
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(name, 0o644)
        for name, target in staged:
            os.replace(name, target)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error}") from None
    finally:
        for name, _ in staged:
            Path(name).unlink(missing_ok=True)
    return [target for _, target in staged]


def _vouched_for(folder: Path) -> dict[str, str]:
    try:
        content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        return dict(content["sha256"]) if str(content["generator"]).startswith("pykernel ") else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _refuse_unsafe(folder: Path, path: str, text: str, known: Mapping[str, str], force: bool) -> None:
    target = folder / path
    for part in [target, *target.parents][: len(Path(path).parts)]:
        if part.is_symlink():
            raise UserError(f"{part}: is a link; remove it, files are only written inside of {folder}")
        if part is not target and part.exists() and not part.is_dir():
            raise UserError(f"{part}: is a file where a folder is needed; move it away")
    if target.is_dir():
        raise UserError(f"{target}: is a folder where a file is needed; move it away")
    if target.exists() and not force:
        found = target.read_bytes()
        ours = (path == "manifest.json" and known) or known.get(path) == hashlib.sha256(found).hexdigest()
        if not ours and found != text.encode():
            raise UserError(
                f"{target}: was changed by hand or is not pykernel's; move it away, or use --force to replace it"
            )
