"""Recordings of many devices, given as a folder, several files or a glob.  Each file is the recording of one device.

This module guarantees for all commands that the devices' files have the same columns.  The devices of a folder or a
glob are ordered by path, and those of a list are in the order of the list.  Commands call ``recordings_of`` to find out
whether data come from many devices, and then treat each file like a single table.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from pykernel.errors import UserError, shown_option
from pykernel.files import open_data
from pykernel.rows import TABLES, TEXTS
from pykernel.rows.arrays import Part
from pykernel.rows.text import Choose, column_names, read_parts, shown_cell

ENDINGS = (*TEXTS, *TABLES)
"""File name endings of recordings; other files in a folder are ignored."""
HIDDEN = (".", "_")
"""Files and folders whose names begin with these characters are ignored, because they may be incomplete or belong to
other programs."""
MOST_NAMED = 4
"""Maximum number of columns that are named in a message."""


@dataclass(frozen=True)
class Device:
    """One device: its name, and the file of its recording."""

    name: str
    path: str


@dataclass(frozen=True)
class Recordings:
    """Many devices.  source: the folder, files or glob from which the devices were read, for messages.  columns: the
    columns of all files, in the order of the first file.
    """

    source: str
    devices: tuple[Device, ...]
    columns: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.devices)

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(os.path.getsize(device.path) for device in self.devices)


def recordings_of(data: Any) -> Recordings | None:
    """Return the devices if the data are many files (a folder, a glob, or a list of paths), or None for one table.

    A folder's recordings are the files in it and below it that end with one of ``ENDINGS``.  A glob's recordings are its matches with
    these endings, or all matches if none has such an ending.  Raises UserError if there are no files, if a file cannot be opened, or
    if columns differ; the message names the file and the difference.
    """
    found = _files(data)
    if found is None:
        return None
    source, root, paths = found
    columns = _columns(paths)
    return Recordings(source, tuple(map(Device, _names(root, paths), paths)), columns)


def each_part(many: Recordings, choose: Choose) -> Iterator[tuple[str, Part]]:
    """Yield (path of the file, part) for each part that ``read_parts`` reads from the devices' files.  A part's position
    counts the bytes read from all files so far.
    """
    done = 0
    for device in many.devices:
        with contextlib.ExitStack() as stack:
            name, file, _ = open_data(device.path, stack)
            for part in read_parts(file, name, choose, ""):
                yield device.path, replace(part, position=done + part.position)
        done += os.path.getsize(device.path)


def _files(data: Any) -> tuple[str, Path | None, list[str]] | None:
    """Return (source, folder, paths) for many recordings, or None for one table.

    source: what messages call the recordings.  folder: the folder to which the devices' names are relative; None for the
    folder that all paths share.
    """
    if isinstance(data, (list, tuple)):
        if not data or not all(isinstance(each, (str, os.PathLike)) for each in data):
            return None
        every = dict.fromkeys(path for each in data for path in (_files(each) or ("", None, [str(each)]))[2])
        if "-" in every:
            raise UserError("-: standard input cannot be one of several recordings; give files, or a folder")
        return _told(data), None, list(every)
    if not isinstance(data, (str, os.PathLike)):
        return None
    path = Path(data)
    if path.is_dir():
        paths = [each for each in path.rglob("*") if _is_recording(each.relative_to(path)) and each.is_file()]
        if not paths:
            raise UserError(
                f"{path}: is a folder without recordings; give a folder with files that end with {', '.join(ENDINGS)}"
            )
        return str(path), path, sorted(map(str, paths))
    text = str(data)
    if path.exists() or not re.search(r"[*?]|\[.+\]", text):
        return None
    matched = [each for each in sorted(glob.glob(text, recursive=True)) if Path(each).is_file()]
    if not matched:
        raise UserError(f"{text}: no file matches this pattern; give a folder, or a pattern that some files match")
    return text, None, [each for each in matched if _is_recording(PurePath(PurePath(each).name))] or matched


def _is_recording(path: PurePath) -> bool:
    return path.suffix.lower() in ENDINGS and not any(part.startswith(HIDDEN) for part in path.parts)


def _told(data: Any) -> str:
    if not isinstance(data, (list, tuple)):
        return str(data)
    return f"{data[0]} and {len(data) - 1:,} more" if len(data) > 1 else str(data[0])


def _names(root: Path | None, paths: Sequence[str]) -> list[str]:
    """Return the devices' names: their paths below the common folder, without endings if these are not needed to distinguish the
    devices.
    """
    root = root or Path(os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths]))
    long = [Path(os.path.relpath(path, root)).as_posix() for path in paths]
    short = [str(PurePath(name).with_suffix("")) for name in long]
    return short if len(set(short)) == len(short) else long


def _columns(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the first file.  Raises UserError if another file has other columns.  The order of the
    columns may differ.
    """
    first: list[str] = []
    for path in paths:
        with contextlib.ExitStack() as stack:
            name, file, _ = open_data(path, stack)
            there = column_names(file, name)
        first = first or there
        if set(first) != set(there):
            lacks, has = (
                [each for each in one if each not in other] for one, other in ((first, there), (there, first))
            )
            what = [f"lacks {_some(lacks)}"] * bool(lacks) + [f"also has {_some(has)}"] * bool(has)
            raise UserError(
                f"{path}: its columns differ from those of {paths[0]}: it {' and '.join(what)}; give all recordings the same columns"
            )
    return tuple(first)


def _some(columns: Sequence[str]) -> str:
    more = len(columns) - MOST_NAMED
    return ", ".join(map(shown_cell, columns[:MOST_NAMED])) + (f" and {more} others" if more > 0 else "")


def need_none(**arguments: object) -> None:
    """Raise UserError if one of these arguments, which have no meaning for many devices, was given."""
    for name, value in arguments.items():
        if value:
            raise UserError(
                f"{shown_option(name)} is for one device, but the data come from several; leave it out, or give one file"
            )
