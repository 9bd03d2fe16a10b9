"""Putting generated files in place: all of them or none, and never outside of the folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pykernel.errors import UserError
from pykernel.files import all_or_none, kind, open_plain, read_plain, whole_file

MANIFEST_LIMIT = 2**24
"""Most bytes of a manifest.json: tables are not in it."""


def write_files(folder: Path, files: Mapping[str, str], force: bool = False) -> list[Path]:
    """Write texts to paths below the folder.  Raises UserError before the first write if any of them must not be.

    A file that is there already is replaced if an earlier manifest.json vouches for it, or with ``force``.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; give a folder to write the project to")
    _refuse_collisions(folder, files)
    known = _vouched_for(folder)
    for path, text in files.items():
        _refuse_unsafe(folder, path, text, known, force)
    with all_or_none():
        for path, text in files.items():
            with whole_file(folder / path, parents=True) as file:
                file.write(text.encode())
    return [folder / path for path in files]


def read_manifest(folder: Path) -> Any:
    """What a project's manifest.json holds.  Raises OSError or ValueError if it cannot be read."""
    try:
        return json.loads(read_plain(folder / "manifest.json", MANIFEST_LIMIT))
    except RecursionError:
        raise ValueError("brackets without end") from None


def has_check(folder: Path) -> bool:
    """Whether the firmware of the check on a board was generated there."""
    return any(path.endswith("_check/check.c") for path in _vouched_for(folder))


def _vouched_for(folder: Path) -> dict[str, str]:
    try:
        content = read_manifest(folder)
        return dict(content["sha256"]) if str(content["generator"]).startswith("pykernel ") else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _refuse_collisions(folder: Path, paths: Iterable[str]) -> None:
    """No two paths may be one file, nor one a folder of the other, on any system: some ignore case, and dots at the end."""
    taken: dict[tuple[str, ...], str] = {}
    for path in paths:
        parts = tuple(part.rstrip(". ").casefold() for part in PurePosixPath(path).parts)
        if parts in taken:
            raise UserError(
                f"{folder}: {taken[parts]} and {path} need the same file name; rename the one that you chose"
            )
        taken[parts] = path
    for parts, path in taken.items():
        for end in range(1, len(parts)):
            if parts[:end] in taken:
                raise UserError(
                    f"{folder}: {path} needs a folder where the project has the file {taken[parts[:end]]}; give it another "
                    "folder"
                )


def _refuse_unsafe(folder: Path, path: str, text: str, known: Mapping[str, str], force: bool) -> None:
    target = folder / path
    for part in [target, *target.parents][: len(Path(path).parts)]:
        if part.is_symlink():
            raise UserError(f"{part}: is a link; remove it, because files are written only inside of {folder}")
        if part is not target and part.exists() and not part.is_dir():
            raise UserError(f"{part}: is {kind(part.stat().st_mode)} where a folder is needed; move it away")
    if not target.exists():
        return
    if not target.is_file():
        raise UserError(f"{target}: is {kind(target.stat().st_mode)} where a file is needed; move it away")
    if not force:
        with open_plain(target) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        ours = (path == "manifest.json" and known) or known.get(path) == found
        if not ours and found != hashlib.sha256(text.encode()).hexdigest():
            raise UserError(
                f"{target}: was changed by hand or is not pykernel's; move it away, or use --force to replace it"
            )
