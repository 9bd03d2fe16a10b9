"""Files: written whole or not at all, and read at once or refused.  Whatever keeps a result writes it here.

    with whole_file("table.csv") as file:
        file.write(b"...")

    with all_or_none():  # both, or neither
        write_spec(...)
        draw_figure(...)

A file is written under another name in its folder and takes its place when it is whole and on the disk.  Until then that
name is locked, and the system frees the lock of a process that died: the next run removes what such a run left behind.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO

from pykernel.errors import UserError

BINARY = getattr(os, "O_BINARY", 0)
INHERITED = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/(self|\d+)/fd/\d+")
"""What a shell has opened before: standard input, <(...)."""

# --------------------------------------------------------------------------------------------------------- writing


@dataclass
class _Part:
    """A file on its way to ``target``.  descriptor: holds the lock while it is open."""

    target: Path
    path: Path
    descriptor: int

    def place(self) -> None:
        if os.name == "nt":  # which renames no open file, and has no such locks
            self.release()
        os.replace(self.path, self.target)

    def release(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def remove(self) -> None:
        if os.name == "nt":
            self.release()
        _remove(self.path)
        self.release()


@dataclass
class _Staging:
    """Files that are written and not yet in their places, and folders that were made for them."""

    parts: list[_Part] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    def make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            try:
                each.mkdir()
            except FileExistsError:  # another process was faster
                continue
            self.folders.append(each)

    def finish(self) -> None:
        """Put all in place; if one cannot be, those before it are taken back."""
        done: list[tuple[Path, Path | None]] = []
        try:
            for part in self.parts:
                # of one file alone nothing has to be taken back
                done.append((part.target, _kept_aside(part.target) if len(self.parts) > 1 else None))
                part.place()
        except BaseException:
            if len(self.parts) > 1:
                for target, aside in reversed(done):
                    with contextlib.suppress(OSError):
                        os.replace(aside, target) if aside else target.unlink(missing_ok=True)
                        _remove(aside)
            raise
        parts, folders = self.parts, self.folders
        self.parts, self.folders = [], []  # nothing is left to be taken back
        for part in parts:
            part.release()
        for _, aside in done:
            _remove(aside)
        for folder in {each.parent for each in (*(part.target for part in parts), *folders)}:
            _sync_folder(folder)

    def discard(self) -> None:
        for part in self.parts:
            part.remove()
        for folder in reversed(self.folders):
            with contextlib.suppress(OSError):  # something else is in it by now
                folder.rmdir()


_staging: contextvars.ContextVar[_Staging | None] = contextvars.ContextVar("staging", default=None)


@contextlib.contextmanager
def all_or_none() -> Iterator[None]:
    """All files that the block writes by ``whole_file`` take their places when it ends well; if it raises, none does.

    If the process is killed while they do, some are new and some old, each of them whole.
    """
    if _staging.get() is not None:  # the outermost block decides
        yield
        return
    with _staged() as staging:
        token = _staging.set(staging)
        try:
            yield
        finally:
            _staging.reset(token)


@contextlib.contextmanager
def _staged() -> Iterator[_Staging]:
    staging = _Staging()
    try:
        yield staging
        try:
            staging.finish()
        except OSError as error:
            raise _unwritten(staging.parts[0].target, error) from None
    except BaseException:
        staging.discard()
        raise


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], parents: bool = False, apart: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` only when the block ends well.

    parents: folders that are missing are made.  apart: whatever becomes of an ``all_or_none`` around it.
    Raises UserError if it cannot be written, or if a link, a folder or a device is at ``path``; nothing is left then, nor
    are folders that were made.
    """
    path, outer = Path(path), None if apart else _staging.get()
    if outer is None:
        with _staged() as staging, _part_of(staging, path, parents) as file:
            yield file
    else:
        with _part_of(outer, path, parents) as file:
            yield file


@contextlib.contextmanager
def _part_of(staging: _Staging, path: Path, parents: bool) -> Iterator[IO[bytes]]:
    part = None
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            what = "a link" if path.is_symlink() else kind(path.stat().st_mode)
            raise UserError(f"{path}: is {what}; give the path of a file to write")
        if parents:
            staging.make_folder(path.parent)
        part = _new_part(path)
        with open(os.dup(part.descriptor), "wb") as file:
            yield file
        os.fsync(part.descriptor)
        staging.parts.append(part)
    except BaseException as error:
        if part is not None:
            part.remove()
        if isinstance(error, OSError):
            raise _unwritten(path, error) from None
        raise


def _new_part(path: Path) -> _Part:
    """A new file beside the path, locked."""
    with contextlib.suppress(OSError):  # whether the folder can be read is not the question
        _clear(path)
    while True:
        part = _beside(path)
        # as an ordinary file: the umask decides
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
        try:
            lock(descriptor, wait=True)
            if os.fstat(descriptor).st_nlink or os.name == "nt":
                return _Part(path, part, descriptor)
        except BaseException:
            _Part(path, part, descriptor).remove()
            raise
        os.close(descriptor)  # another run took it for a dead one's, before it was locked


def _begin(path: Path) -> str:
    # a name may have 255 bytes
    return f".{path.name.encode(errors='ignore')[:200].decode(errors='ignore')}."


def _beside(path: Path) -> Path:
    """A new name beside the path."""
    return path.with_name(f"{_begin(path)}{os.urandom(8).hex()}.part")


def _clear(path: Path) -> None:
    """Remove what runs that died left of a file: nobody holds their lock."""
    ours = re.compile(re.escape(_begin(path)) + r"[0-9a-f]{16}\.part")
    with os.scandir(path.parent) as entries:
        left = [entry.path for entry in entries if ours.fullmatch(entry.name)]
    for each in left:
        with contextlib.suppress(OSError):
            descriptor = os.open(each, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if lock(descriptor):
                    os.unlink(each)
            finally:
                os.close(descriptor)


def lock(descriptor: int, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed or this process ends: whether that was free; None where there are no locks."""
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


def _kept_aside(target: Path) -> Path | None:
    """The file under another name beside it, where it stays; None if there is none."""
    if not target.exists():
        return None
    aside = _beside(target)
    try:
        os.link(target, aside)
    except (OSError, AttributeError):  # a file system without links
        try:
            shutil.copy2(target, aside)
        except BaseException:
            _remove(aside)
            raise
    return aside


def _remove(path: Path | None) -> None:
    with contextlib.suppress(OSError):
        if path is not None:
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # Windows opens no folders, and not every file system syncs them
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unwritten(path: Path, error: OSError) -> UserError:
    full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))
    remedy = "make room, or give another path" if full else "give another path"
    return UserError(f"{path}: cannot be written: {error.strerror or error}; {remedy}")


# --------------------------------------------------------------------------------------------------------- folders


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """The folder, made with its parents if it is missing; if the block raises and it is empty, it is removed again."""
    staging = _Staging()
    try:
        try:
            staging.make_folder(path)
            if not path.is_dir():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        except OSError as error:
            raise UserError(f"{path}: cannot be made a folder: {error.strerror}; choose another with -o") from None
        yield
    except BaseException:
        staging.discard()
        raise


def private_folder(path: Path) -> bool:
    """Make a folder that only this user can write to: whether it is one.  A link is none."""
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
    """What stands where a file was wanted."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISREG, "a file"),
    )
    return next((text for test, text in kinds if test(mode)), "a device")


def open_plain(path: str | os.PathLike[str], inherited: bool = False) -> BufferedReader:
    """A file to read.  Raises OSError, at once, for a pipe, a socket or a device, which could keep us waiting for ever.

    inherited: what a shell has opened before may be anything.
    """
    if inherited and INHERITED.fullmatch(str(path)):
        return open(path, "rb")
    _need_plain(os.stat(path).st_mode, path)
    # it may have become a pipe since
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
    """A file's bytes.  Raises OSError as ``open_plain`` does, and for more than ``most`` bytes."""
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
    return content
