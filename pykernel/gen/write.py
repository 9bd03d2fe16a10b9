"""Write generated files: all of them or none, and never outside the folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pykernel.errors import UserError
from pykernel.files import all_or_none, clear_folder, kind, open_plain, read_plain, whole_file, without_file

MANIFEST_FORMAT = 1
"""The version of manifest.json, under the key "format"."""
MANIFEST_LIMIT = 2**24
"""Largest size of a manifest.json, in bytes.  A manifest has no tables, so it is small."""


def raw(content: str | bytes) -> bytes:
    """Return a file's bytes."""
    return content.encode() if isinstance(content, str) else content


def write_files(folder: Path, files: Mapping[str, str | bytes], force: bool = False) -> list[Path]:
    """Write texts and bytes to paths below the folder.  Raises UserError before the first write if a file must not be written.

    An existing file other than manifest.json is replaced only if the folder's manifest.json lists it with its present
    content, or if ``force`` is true.  Files of the same model that are not in the new manifest.json are removed, unless
    they were changed by hand.  A folder with another model is refused unless ``force`` is true.  With ``force``, files
    of the other model stay if no new file has their name.
    """
    _refuse_collisions(folder, files)
    with project_folder(folder):
        name, known = _told_by(lambda: read_manifest(folder))
        own, vouched = _told_by(lambda: json.loads(files["manifest.json"]))
        if (
            known and own and name != own and not force
        ):  # both models would write build files, examples and manifest.json
            raise UserError(
                f"{folder}: has the model {name}; give {own} another folder, or use --force to write {own} to this folder"
            )
        for path, text in files.items():
            _refuse_unsafe(folder, path, text, known, force)
        _clear_project(folder, (*known, *files))
        gone = known.keys() - vouched.keys() if own and name == own else set()
        # the manifest is written last: until then, the old manifest lists the files that are still to be written or removed
        for path in [*sorted(gone), *sorted(files, key="manifest.json".__eq__)]:
            outdated = folder / path
            if path in files:
                with whole_file(outdated, parents=True) as file:
                    file.write(raw(files[path]))
            elif _inside(folder, path) and outdated.is_file() and _digest(outdated) == known[path]:
                without_file(outdated)
    return [folder / path for path in files]


@contextlib.contextmanager
def project_folder(folder: Path) -> Iterator[None]:
    """Keep other runs from changing the project during the ``with`` block.  At the end of the block, write all files or none."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; give a folder to write the project to")
    with all_or_none(folder):
        yield


def read_manifest(folder: Path) -> Any:
    """Return the content of a project's manifest.json.  Raises OSError or ValueError if it cannot be read."""
    try:
        return json.loads(read_plain(folder / "manifest.json", MANIFEST_LIMIT))
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None


EXTRAS = {"check": r".*_check/check\.c", "micropython": r"micropython\.mk", "recorder": r"src/\w+_log\.c"}
"""An extra that a folder may hold in addition to a model -> a pattern for one of the extra's files."""


def extras(folder: Path) -> set[str]:
    """Return the ``EXTRAS`` that the folder holds."""
    paths = _told_by(lambda: read_manifest(folder))[1]
    return {what for what, pattern in EXTRAS.items() if any(re.fullmatch(pattern, path) for path in paths)}


def _told_by(read: Callable[[], Any]) -> tuple[str, dict[str, str]]:
    """Return the model's name, and the digests of the listed files, from the content of a manifest.json.

    read: a function that returns the content.  There are no digests if ``read`` fails, or if pykernel did not write the content.
    """
    try:
        content = read()
        vouched = {str(path): digest for path, digest in dict(content["sha256"]).items()}
        return str(content["figures"]["name"]), vouched if str(content["generator"]).startswith("pykernel ") else {}
    except (OSError, ValueError, KeyError, TypeError):
        return "", {}


def starts_learned(folder: Path, name: str) -> bool:
    """Return whether the folder is a project of this model whose device starts from a learned state."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = read_manifest(folder)
        return content["figures"]["name"] == name and content["figures"]["learned"] is True
    return False


def _clear_project(folder: Path, paths: Iterable[str]) -> None:
    """Remove temporary files that killed runs have left in the folder and in all of the project's subfolders."""
    clear_folder(folder)
    for top in {PurePosixPath(path).parts[0] for path in paths if _inside(folder, path)}:
        if (folder / top).is_dir():
            for place, _, _ in os.walk(folder / top):  # os.walk does not follow links
                clear_folder(Path(place))


def _inside(folder: Path, path: str) -> bool:
    """Return whether a path in a manifest.json stays within the folder, and does not lead through a link."""
    parts = PurePosixPath(path).parts
    steps = [folder.joinpath(*parts[:end]) for end in range(1, len(parts) + 1)]
    return bool(parts) and ".." not in parts and not Path(path).anchor and not any(each.is_symlink() for each in steps)


def _digest(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_collisions(folder: Path, paths: Iterable[str]) -> None:
    """Raise UserError if two paths could be the same file on some system, or if one path could be a folder of the
    other.

    Some systems ignore case, and dots and spaces at the end of a name.
    """
    taken: dict[tuple[str, ...], str] = {}
    for path in paths:
        parts = tuple(part.rstrip(". ").casefold() for part in PurePosixPath(path).parts)
        if parts in taken:
            raise UserError(
                f"{folder}: {taken[parts]} and {path} would be the same file on some systems; rename the file in "
                "[kernel] source"
            )
        taken[parts] = path
    for parts, path in taken.items():
        for end in range(1, len(parts)):
            if parts[:end] in taken:
                raise UserError(
                    f"{folder}: {path} cannot be written, because {taken[parts[:end]]} is a file of the project, not a "
                    "folder; rename or move the file in [kernel] source"
                )


def _refuse_unsafe(folder: Path, path: str, text: str | bytes, known: Mapping[str, str], force: bool) -> None:
    target = folder / path
    for part in [target, *target.parents][: len(Path(path).parts)]:
        if part.is_symlink():
            raise UserError(f"{part}: is a link; remove it, because files are written only inside {folder}")
        if part is not target and part.exists() and not part.is_dir():
            raise UserError(f"{part}: is {kind(part.stat().st_mode)} where a folder is needed; move it away")
    if not target.exists():
        return
    if not target.is_file():
        raise UserError(f"{target}: is {kind(target.stat().st_mode)} where a file is needed; move it away")
    if not force:
        found = _digest(target)
        ours = (path == "manifest.json" and known) or known.get(path) == found
        if not ours and found != hashlib.sha256(raw(text)).hexdigest():
            raise UserError(
                f"{target}: was changed by hand or is not pykernel's; move it away, or use --force to replace it"
            )
