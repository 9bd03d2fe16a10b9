"""Write files completely or not at all, and open only files that cannot block.  All results are written by this module.

    with whole_file("table.csv") as file:
        file.write(b"...")

    with all_or_none():  # writes both files, or neither
        write_spec(...)
        draw_figure(...)

A file is first written under another name in its folder, ``.NAME.NUMBER.part`` (the part).  When the part is complete
and on the disk, it is renamed to the file's name.  Until then the part is locked.  If the process dies, the system
frees the lock, and the next run that writes this file removes the part.

If several files are written together, each file that is replaced is kept as ``.NAME.NUMBER.old`` until all new files are in
place.  After an error, the old files are put back.  If the process dies while files are put in place, some files are old and
some are new, but each is complete.  Run the same command again to write all of them.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, BinaryIO

from pykernel.errors import UserError, shown_option

BINARY = getattr(os, "O_BINARY", 0)
NO_OTHER = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | BINARY
"""Flags for open(): do not follow a link, and do not wait for a pipe."""
INHERITED = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/(self|\d+)/fd/\d+")
"""Paths of files that the shell has already opened: standard input, and process substitutions such as <(...)."""
# --------------------------------------------------------------------------------------------------------- writing


@dataclass
class _Part:
    """A file that will be renamed to ``target``.

    number: makes the temporary name unique.  descriptor: the open file, which holds the lock.  kept: the locked
    descriptor of the old file, which is kept as ``.old``.
    """

    target: Path
    number: str
    descriptor: int
    kept: int = -1

    @property
    def path(self) -> Path:
        return _left(self.target, self.number, "part")

    def place(self) -> None:
        if os.name == "nt":  # Windows cannot rename an open file, and does not have these locks
            self.release()
        os.replace(self.path, self.target)

    def release(self) -> None:
        for descriptor in (self.descriptor, self.kept):
            if descriptor >= 0:
                os.close(descriptor)
        self.descriptor = self.kept = -1

    def remove(self) -> None:
        if os.name == "nt":
            self.release()
        _remove(self.path)
        self.release()


class _Removal(_Part):
    """A file that is removed when the other files are put in place.  No part is written at ``path``."""

    def place(self) -> None:
        self.target.unlink()


@dataclass
class _Staging:
    """Files that are written but not yet put in place, and the folders that were made for these files.

    held: folder that no other run may change until the files are in place -> its locked descriptor.  lasting: whether to wait until
    the files are on the disk.
    """

    parts: list[_Part] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    held: dict[Path, int] = field(default_factory=dict)
    lasting: bool = True

    def make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            try:
                each.mkdir()
            except FileExistsError:  # another process has made the folder
                continue
            self.folders.append(each)

    def hold(self, folder: Path) -> None:
        """Lock the folder.  Other runs wait until the lock is released."""
        self.make_folder(folder)
        folder = folder.absolute()
        if os.name == "nt" or folder in self.held:  # Windows does not have these locks
            return
        self.held[folder] = os.open(folder, os.O_RDONLY)
        if lock(self.held[folder]) is False:
            print(f"pykernel: waiting for another run that is writing to {folder}", file=sys.stderr, flush=True)
            lock(self.held[folder], wait=True)

    def let_go(self) -> None:
        while self.held:
            os.close(self.held.popitem()[1])

    def finish(self) -> None:
        """Put all files in place.  If this fails for any file, put the old files back."""
        several, done = len(self.parts) > 1, list[tuple[Path, Path | None]]()
        try:
            for part in self.parts:
                done.append((part.target, _kept_aside(part) if several else None))
                part.place()
        except BaseException:
            for each in reversed(done if several else []):
                _put_back(*each)
            raise
        parts, folders = self.parts, self.folders
        self.parts, self.folders = [], []  # an error after this line does not undo anything
        for part in parts:
            part.release()
        for _, aside in done:
            _remove(aside)
        if self.lasting:
            for folder in {each.parent for each in (*(part.target for part in parts), *folders)}:
                _sync_folder(folder)

    def discard(self) -> None:
        for part in self.parts:
            part.remove()
        self.let_go()
        for folder in reversed(self.folders):
            with contextlib.suppress(OSError):  # the folder holds other files by now
                folder.rmdir()


_staging: contextvars.ContextVar[_Staging | None] = contextvars.ContextVar("staging", default=None)


@contextlib.contextmanager
def all_or_none(folder: Path | None = None) -> Iterator[None]:
    """When the block ends, put in place all files that it wrote with ``whole_file``.  If the block raises, put none in place.

    If the process is killed, every file is complete, either old or new.
    folder: created if it is missing.  Until the block ends, another run that uses this folder waits, and says so.
    """
    outer = _staging.get()
    with contextlib.nullcontext(outer) if outer is not None else _staged() as staging:
        token = _staging.set(staging)  # only the outermost block puts files in place
        try:
            if folder is not None:
                try:
                    staging.hold(folder)
                except OSError as error:
                    raise _unwritten(folder, error) from None
            yield
        finally:
            _staging.reset(token)


def without_file(path: Path) -> None:
    """Within ``all_or_none``, remove this file when the other files are put in place."""
    staging = _staging.get()
    assert staging is not None
    staging.parts.append(_Removal(path, _number(), -1))


@contextlib.contextmanager
def _staged(lasting: bool = True) -> Iterator[_Staging]:
    staging = _Staging(lasting=lasting)
    try:
        yield staging
        try:
            staging.finish()
        except OSError as error:
            raise _unwritten(staging.parts[0].target, error) from None
    except BaseException:
        staging.discard()
        raise
    staging.let_go()


@contextlib.contextmanager
def whole_file(
    path: str | os.PathLike[str], parents: bool = False, apart: bool = False, lasting: bool = True
) -> Iterator[IO[bytes]]:
    """Yield a file to write to.  The file is put in place at ``path`` when the block ends without an error or, within
    an ``all_or_none`` block, when that block ends without an error.

    parents: make missing folders.  apart: put the file in place independently of an ``all_or_none`` block around it.
    lasting: sync the file, so that a power failure does not lose it.  Without the sync, writing takes a tenth of the time.
    Raises UserError if the file cannot be written, or if a link, a folder or a device is at ``path``.  After an error
    no new file or folder remains.
    """
    outer = None if apart else _staging.get()
    own = contextlib.nullcontext(outer) if outer is not None else _staged(lasting)
    with own as staging, _part_of(staging, Path(path), parents) as file:
        yield file


@contextlib.contextmanager
def _part_of(staging: _Staging, path: Path, parents: bool) -> Iterator[IO[bytes]]:
    try:
        _need_replaceable(path)
        if parents:
            staging.make_folder(path.parent)
        part = _new_part(path)
        with contextlib.ExitStack() as undo:
            undo.callback(part.remove)
            with open(os.dup(part.descriptor), "wb") as file:
                yield file
            if staging.lasting:
                os.fsync(part.descriptor)
            undo.pop_all()
        staging.parts.append(part)
    except OSError as error:
        raise _unwritten(path, error) from None


def _need_replaceable(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        what = "a link" if path.is_symlink() else kind(path.stat().st_mode)
        raise UserError(f"{path}: is {what}; give the path of a file to write")


def _new_part(path: Path) -> _Part:
    """Make a new, locked file in the folder of the path."""
    with contextlib.suppress(OSError):  # a folder that cannot be read may still be writable
        _clear(path.parent, re.escape(_begin(path)))
    while True:
        part = _Part(path, _number(), -1)
        # the umask decides the permissions, as for an ordinary file
        part.descriptor = os.open(part.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
        with contextlib.ExitStack() as undo:
            undo.callback(part.remove)
            lock(part.descriptor, wait=True)
            if os.fstat(part.descriptor).st_nlink or os.name == "nt":
                undo.pop_all()
                return part
        # before the part was locked, another run took it for the part of a dead run and removed it


def _number() -> str:
    return os.urandom(8).hex()


def _begin(path: Path) -> str:
    # file systems allow 255 bytes for a name; 200 leave room for the number and the ending
    return f".{path.name.encode(errors='ignore')[:200].decode(errors='ignore')}."


def _left(path: Path, number: str, kind: str) -> Path:
    """Return the temporary name for a path.  kind: "part" for the new file, "old" for the file that is replaced."""
    return path.with_name(f"{_begin(path)}{number}.{kind}")


def clear(path: Path) -> None:
    """Remove this path's unlocked temporary files, which were left by runs that died."""
    _clear(path.parent, re.escape(_begin(path)))


def clear_folder(folder: Path) -> None:
    """Remove the unlocked temporary files that are directly in a folder.  They were left by runs that died."""
    _clear(folder, r"\..+\.")


def _clear(place: Path, begin: str) -> None:
    ours = re.compile(begin + r"[0-9a-f]{16}\.(part|old)")
    with os.scandir(place) as entries:
        left = [entry.path for entry in entries if ours.fullmatch(entry.name)]
    for each in left:
        with contextlib.suppress(OSError), _opened(each, os.O_RDWR) as descriptor:
            if lock(descriptor):
                os.unlink(each)


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str], mode: int) -> Iterator[int]:
    descriptor = os.open(path, mode | NO_OTHER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def lock(descriptor: int, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed or this process ends.

    wait: wait until the lock is free.  Returns True if the file is locked now, False if another process holds the lock,
    None if the system or file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _kept_aside(part: _Part) -> Path | None:
    """Give the file that will be replaced a second name (``.old``) in the same folder; it keeps its first name, too.

    If the file system has no links, the second name belongs to a copy.
    Returns the second name; None if there is no file to replace.
    """
    if not part.target.exists():
        return None
    aside = _left(part.target, part.number, "old")
    try:
        os.link(part.target, aside)
    except (OSError, AttributeError):  # a file system without links
        whole = _left(part.target, _number(), "part")
        try:
            shutil.copy2(part.target, whole)
            os.replace(whole, aside)
        except BaseException:
            _remove(whole)
            raise
    with contextlib.suppress(OSError):  # the lock keeps other runs from removing this file as if a dead run had left it
        part.kept = os.open(aside, os.O_RDONLY | NO_OTHER)
        lock(part.kept)
    return aside


def _put_back(target: Path, aside: Path | None) -> None:
    with contextlib.suppress(OSError):
        os.replace(aside, target) if aside else target.unlink(missing_ok=True)
        _remove(aside)  # if both names are links to the same file, os.replace leaves both


def _remove(path: Path | None) -> None:
    with contextlib.suppress(OSError):
        if path is not None:
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError), _opened(os.path.realpath(folder), os.O_RDONLY) as descriptor:
        os.fsync(descriptor)  # Windows cannot open folders, and some file systems cannot sync them


def _unwritten(path: Path, error: OSError) -> UserError:
    full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))
    remedy = "free some space, or give another path" if full else "give another path"
    return UserError(f"{path}: cannot be written: {error.strerror or error}; {remedy}")


# --------------------------------------------------------------------------------------------------------- folders


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make the folder and its parents if they are missing.

    If the block raises, remove the new folders that are empty.
    """
    staging = _Staging()
    try:
        try:
            staging.make_folder(path)
            if not path.is_dir():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        except OSError as error:
            raise UserError(
                f"{path}: this folder cannot be created: {error.strerror}; choose another with -o"
            ) from None
        yield
    except BaseException:
        staging.discard()
        raise


def private_folder(path: Path) -> bool:
    """Make a folder that only this user can write to.

    Returns True if the folder exists, this user owns it and can write to it, and no other user can write to it.  On
    Windows, returns True if the folder exists.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    return os.name == "nt" or (found.st_uid == os.getuid() and not found.st_mode & 0o022 and os.access(path, os.W_OK))


# --------------------------------------------------------------------------------------------------------- reading


def kind(mode: int) -> str:
    """Describe, for an error message, what is at a path where a file was expected."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISREG, "a file"),
    )
    return next((text for test, text in kinds if test(mode)), "a device")


def open_plain(path: str | os.PathLike[str], inherited: bool = False) -> BufferedReader:
    """Open a file for reading.  Raises OSError at once for a pipe, a socket or a device, which could block forever.

    inherited: a file that the shell has already opened (such as /dev/stdin) may be of any kind.
    """
    if inherited and INHERITED.fullmatch(str(path)):
        return open(path, "rb")
    _need_plain(os.stat(path).st_mode, path)
    # O_NONBLOCK: after the check above, another process may have replaced the file with a pipe
    descriptor = os.open(path, os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    try:
        _need_plain(os.fstat(descriptor).st_mode, path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _need_plain(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"is {kind(mode)}, not a file", str(path))


def read_plain(path: str | os.PathLike[str], most: int) -> bytes:
    """Return a file's bytes.  Raises OSError if ``open_plain`` does, or if the file has more than ``most`` bytes."""
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
    return content


# ----------------------------------------------------------------------------- files that a workflow reads and writes


def open_data(data: str, stack: contextlib.ExitStack) -> tuple[str, BinaryIO, int | None]:
    """Open the data.  Returns the data's name, the open file, and the file's size (None if it is not known)."""
    if data == "-":
        return "standard input", sys.stdin.buffer, None
    try:
        file = stack.enter_context(open_plain(data, inherited=True))
    except FileNotFoundError:
        raise UserError(f"{data}: there is no such file; give a CSV file, or - for standard input") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{data}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return data, file, os.fstat(file.fileno()).st_size or None


def bytes_of(path: Path, most: int) -> bytes:
    """Return at most the first ``most`` bytes of a file that a device has saved."""
    try:
        with open_plain(path) as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def growing_file(path: Path, force: bool) -> FileIO:
    """Open an unbuffered file to write to.  If the process is killed, the file keeps all bytes written so far.  Raises UserError."""
    try:
        return FileIO(path, "w" if force else "x")
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {error.strerror}; give another name, or {shown_option('force')} to overwrite an existing file"
        ) from None


def need_free(path: Path | None, data: str, force: bool) -> None:
    """Raise UserError if the output file exists (unless ``force``) or is the data file, or if no file can be written there."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {path.parent}; make it, or give another name")
    need_not_data(path, data)
    with contextlib.suppress(OSError):
        clear(path)
    if not os.access(folder, os.W_OK):
        raise UserError(f"{path}: cannot be written: the folder {path.parent} is not writable; give another name")
    _need_replaceable(path)
    if path.exists() and not force:
        raise UserError(f"{path}: already exists; give another name, or {shown_option('force')} to overwrite it")


def need_not_data(path: Path | None, data: str) -> None:
    """Raise UserError if the output file is the data file."""
    if path and data != "-" and path.exists() and Path(data).exists() and path.samefile(data):
        raise UserError(f"{path}: is the data itself; write to another file")


def need_different(paths: Iterable[Path | None]) -> None:
    """Raise UserError if two outputs have the same path."""
    given = [path.absolute() for path in paths if path is not None]
    for path in given:
        if given.count(path) > 1:
            raise UserError(f"{path}: is given for two outputs; give two different names")
