"""Files: written whole or not at all, and read at once or refused.  Whatever keeps a result writes it here.

    with whole_file("table.csv") as file:
        file.write(b"...")

    with all_or_none():  # both, or neither
        write_spec(...)
        draw_figure(...)

A file is first written under another name in its folder, ``.NAME.NUMBER.part`` (the part).  When the part is complete
and on the disk, it is renamed to the file's name.  Until then the part is locked.  If the process dies, the system
frees the lock, and the next run removes the part.

If several files are written together, each file that is replaced is kept as ``.NAME.NUMBER.old`` until all new files
are in their places.  ``.pykernel.set`` lists the files.  If the process dies meanwhile, the next run that writes to
this folder first restores all old files.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, BinaryIO

from pykernel.errors import UserError, option

BINARY = getattr(os, "O_BINARY", 0)
NO_OTHER = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | BINARY
"""Flags for open(): do not follow a link, and do not wait for a pipe."""
INHERITED = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/(self|\d+)/fd/\d+")
"""Paths of files that a shell has opened already: standard input, <(...)."""
SET = ".pykernel.set"
SET_LIMIT = 2**24
"""Most bytes of a list of files."""
OPEN, DONE = b"-", b"+"
"""The first byte of a list.  OPEN: the files are being put in place.  DONE: all files are in their places."""

# --------------------------------------------------------------------------------------------------------- writing


@dataclass
class _Part:
    """A file that will be renamed to ``target``.

    number: makes its temporary name unique.  descriptor: the open file, which holds the lock.
    """

    target: Path
    number: str
    descriptor: int

    @property
    def path(self) -> Path:
        return _left(self.target, self.number, "part")

    def place(self, several: bool) -> None:
        if os.name == "nt":  # Windows cannot rename an open file, and has no such locks
            self.release()
        if several and not os.path.lexists(self.target):
            # both names stay: so this file can be distinguished from a file that another program writes to the target
            with contextlib.suppress(OSError, AttributeError):  # a file system without links
                os.link(self.path, self.target)
                return
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


class _Removal(_Part):
    """A file that is removed when the others are put in place.  There is no file at ``path``."""

    def place(self, several: bool) -> None:
        self.target.unlink()


@dataclass
class _Staging:
    """Files that are written but not yet put in place, and folders that were made for these files.

    given: folders; all files in and below such a folder are one set, with one list.  sets: folder -> descriptor of its
    locked list.  lasting: wait until the files are on the disk.
    """

    parts: list[_Part] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    given: list[Path] = field(default_factory=list)
    sets: dict[Path, int] = field(default_factory=dict)
    lasting: bool = True

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

    def hold(self, folder: Path) -> None:
        """Lock the folder's list: until it is released, no other run puts several files into the folder together.

        If an earlier run died meanwhile, its changes are undone first.
        """
        descriptor = None
        while folder not in self.sets and descriptor is None:
            self.make_folder(folder)
            with contextlib.suppress(FileNotFoundError):  # a run that had made the folder has removed it
                descriptor = _open_set(folder)
                if descriptor is None:  # no list is possible here: each file is put in place alone
                    return
                self.sets[folder] = descriptor
                _recover(folder, descriptor)

    def let_go(self) -> None:
        while self.sets:
            folder, descriptor = self.sets.popitem()
            if os.pread(descriptor, 1, 0) != OPEN:  # if OPEN, old files are still to be restored: keep the list
                _remove(folder / SET)
            os.close(descriptor)

    def set_of(self, target: Path) -> Path:
        """The folder whose list names the file."""
        inside = ".." not in target.parts
        return next((each for each in self.given if inside and target.is_relative_to(each)), target.parent)

    def finish(self) -> None:
        """Put all files in place.  If one of them fails, the files before it are undone."""
        several, done = len(self.parts) > 1, list[tuple[Path, Path | None]]()
        try:
            if several:  # one file alone needs no list: its rename is atomic
                self._list()
            for part in self.parts:
                done.append((part.target, _kept_aside(part) if several else None))
                part.place(several)
            for descriptor in self.sets.values():
                os.pwrite(descriptor, DONE, 0)
        except BaseException:
            if all([_put_back(*each) for each in reversed(done if several else [])]):  # else the next run tries again
                for descriptor in self.sets.values():
                    os.ftruncate(descriptor, 0)
            raise
        parts, folders = self.parts, self.folders
        self.parts, self.folders = [], []  # nothing is left to be undone
        for part in parts:
            part.remove()  # a part that was linked to its target still has its first name
        for _, aside in done:
            _remove(aside)
        if self.lasting:
            for folder in {each.parent for each in (*(part.target for part in parts), *folders)}:
                _sync_folder(folder)

    def _list(self) -> None:
        """Write the lists of the files that are about to be put in place; ``_recover`` reads them."""
        lists: dict[Path, list[_Part]] = {}
        for part in self.parts:
            lists.setdefault(self.set_of(part.target), []).append(part)
        for folder in sorted(lists, key=os.path.abspath):  # all runs lock in this order: no two wait for each other
            self.hold(folder)
        for folder, parts in lists.items():
            if folder in self.sets:
                rows = [(part.target.relative_to(folder).as_posix(), part.number, _seen(part.path)) for part in parts]
                _write(self.sets[folder], OPEN + json.dumps(rows).encode())

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
    """Files that the block writes with ``whole_file`` are put in place together when the block ends; none if it raises.

    If the process is killed meanwhile, every file is complete, either old or new.  The next run that writes there first
    restores the old files: all files in ``folder`` and below it, and elsewhere the files of each folder that it writes
    to.
    folder: is made if it is missing.  Until the block ends, another run with the same folder waits, and reports this.
    """
    outer = _staging.get()
    with contextlib.nullcontext(outer) if outer is not None else _staged() as staging:
        token = _staging.set(staging)  # the outermost block decides
        try:
            if folder is not None:
                try:
                    staging.hold(folder)
                except OSError as error:
                    raise _unwritten(folder, error) from None
                staging.given.append(folder)
            yield
        finally:
            _staging.reset(token)


def without_file(path: Path) -> None:
    """Within ``all_or_none``: remove this file when the others are put in place."""
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
    """A file to write to.  It is put in place at ``path`` only when the block ends without an error.

    parents: make missing folders.  apart: put the file in place independently of an ``all_or_none`` block around it.
    lasting: not lost if power fails afterwards; without it a file is written in a tenth of the time.
    Raises UserError if the file cannot be written, or if a link, a folder or a device is at ``path``.  After an error
    no new file and no new folder is left.
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
    """A new file beside the path, locked."""
    with contextlib.suppress(OSError):  # the folder may be unreadable and still be writable
        _clear(path.parent, re.escape(_begin(path)))
    while True:
        part = _Part(path, _number(), -1)
        # the permissions of an ordinary file: the umask decides
        part.descriptor = os.open(part.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
        with contextlib.ExitStack() as undo:
            undo.callback(part.remove)
            lock(part.descriptor, wait=True)
            if os.fstat(part.descriptor).st_nlink or os.name == "nt":
                undo.pop_all()
                return part
        # before it was locked, another run took it for the part of a dead run and removed it


def _number() -> str:
    return os.urandom(8).hex()


def _begin(path: Path) -> str:
    # file systems allow 255 bytes for a name; 200 leave room for the number and the ending
    return f".{path.name.encode(errors='ignore')[:200].decode(errors='ignore')}."


def _left(path: Path, number: str, kind: str) -> Path:
    """The temporary name for a path.  kind: "part" for the new file, "old" for the file that it replaces."""
    return path.with_name(f"{_begin(path)}{number}.{kind}")


def clear(path: Path) -> None:
    """Remove the temporary files that dead runs left for this path: nobody locks them.  An unfinished set is undone."""
    _clear(path.parent, re.escape(_begin(path)), os.path.lexists(path.parent / SET))


def clear_folder(folder: Path) -> None:
    """As ``clear``, for all files in a folder, but not in folders below it."""
    _clear(folder, r"\..+\.")


def _clear(place: Path, begin: str, listed: bool = False) -> None:
    ours = re.compile(begin + r"[0-9a-f]{16}\.(part|old)")

    def left() -> list[str]:
        with os.scandir(place) as entries:
            return [entry.path for entry in entries if ours.fullmatch(entry.name)]

    busy, staging = False, _staging.get()
    held = {folder.absolute() for folder in staging.sets} if staging is not None else set()  # locked by us, recovered
    if listed or left():
        for folder in (each for each in (place.absolute(), *place.absolute().parents) if each not in held):
            with contextlib.suppress(OSError), _opened(folder / SET, os.O_RDWR) as descriptor:
                found = os.fstat(descriptor)
                if not lock(descriptor):
                    busy = True
                elif found.st_nlink and found.st_uid == os.geteuid():
                    _recover(folder, descriptor)
                    os.unlink(folder / SET)
    for each in left():
        with contextlib.suppress(OSError), _opened(each, os.O_RDWR) as descriptor:
            if lock(descriptor) and not (busy and each.endswith(".old")):
                os.unlink(each)


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str], mode: int) -> Iterator[int]:
    descriptor = os.open(path, mode | NO_OTHER, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_set(folder: Path) -> int | None:
    """The descriptor of the folder's list, locked; waits if another run has locked it.  None if no list is possible."""
    if os.name == "nt":  # Windows has no such locks
        return None
    while True:
        try:
            descriptor = os.open(folder / SET, os.O_RDWR | os.O_CREAT | NO_OTHER, 0o666)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR):
                return None
            raise
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, descriptor)
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():  # its owner could let us wait forever
                return None
            free = lock(descriptor)
            if free is False:
                print(f"pykernel: waiting for another run, which writes to {folder}", file=sys.stderr, flush=True)
                free = lock(descriptor, wait=True)
            if free is None:
                _remove(folder / SET)
                return None
            if os.fstat(descriptor).st_nlink:
                undo.pop_all()
                return descriptor
        # the run that held the lock has removed the list: open a new one


def _recover(folder: Path, descriptor: int) -> None:
    """Restore the files that a dead run had replaced.  If the run had put all files in place, only remove its
    leftovers.

    The list is trusted only for files in its folder or below it, not behind links.  This function may be killed at any
    time and repeated.
    """
    text = os.pread(descriptor, SET_LIMIT, 0)
    for target, number, ours in _listed(folder, text[1:]):
        old, part = _left(target, number, "old"), _left(target, number, "part")
        if text[:1] == OPEN:
            now = _seen(target)
            is_ours = bool(now) and now == ours  # a file that somebody changed since then stays
            if os.path.lexists(old):
                if now is None or is_ours:
                    os.replace(old, target)
            elif is_ours:
                target.unlink()
        _remove(old)
        _remove(part)
    os.ftruncate(descriptor, 0)


def _listed(folder: Path, text: bytes) -> list[tuple[Path, str, Any]]:
    """(target, number, digest) of each file in a list.

    Empty if the list was not completely written: in this case no file had been put in place.
    """
    try:
        rows = [(Path(target), str(number), ours) for target, number, ours in json.loads(text)]
    except (ValueError, TypeError, RecursionError):
        return []
    found = []
    for target, number, ours in rows:
        parts = target.parts
        if not parts or target.anchor or ".." in parts or "\0" in str(target):
            continue
        between = [folder.joinpath(*parts[:end]) for end in range(1, len(parts))]
        if re.fullmatch("[0-9a-f]{16}", number) and not any(each.is_symlink() for each in between):
            found.append((folder / target, number, ours))
    return found


def _seen(path: Path) -> str | None:
    """Digest of a file's content; "" if it is not a regular file; None if there is no file."""
    if path.is_symlink():
        return ""
    try:
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""


def _write(descriptor: int, content: bytes) -> None:
    done = 0
    while done < len(content):
        done += os.pwrite(descriptor, content[done:], done)


def lock(descriptor: int, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed or this process ends.

    Returns True if the lock was free, False if another process holds it, None if the system or file system has no
    locks.
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
    """Give the file that will be replaced a second name (old) beside it, and return this name; None without such a
    file.

    The file also keeps its own name.
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
    return aside


def _put_back(target: Path, aside: Path | None) -> bool:
    try:
        os.replace(aside, target) if aside else target.unlink(missing_ok=True)
    except OSError:
        return False
    _remove(aside)
    return True


def _remove(path: Path | None) -> None:
    with contextlib.suppress(OSError):
        if path is not None:
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError), _opened(os.path.realpath(folder), os.O_RDONLY) as descriptor:
        os.fsync(descriptor)  # Windows opens no folders, and not every file system syncs them


def _unwritten(path: Path, error: OSError) -> UserError:
    full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))
    remedy = "make room, or give another path" if full else "give another path"
    return UserError(f"{path}: cannot be written: {error.strerror or error}; {remedy}")


# --------------------------------------------------------------------------------------------------------- folders


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make the folder and its parents if they are missing.

    If the block raises, new folders that are empty are removed.
    """
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
    """Make a folder that only this user can write to.  Returns whether the path is such a folder; a link is not."""
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
    """Words for an error message: what is at a path where a file was expected."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISREG, "a file"),
    )
    return next((text for test, text in kinds if test(mode)), "a device")


def open_plain(path: str | os.PathLike[str], inherited: bool = False) -> BufferedReader:
    """Open a file to read.  Raises OSError at once for a pipe, a socket or a device, which could block forever.

    inherited: a file that the shell has already opened (such as /dev/stdin) may be of any kind.
    """
    if inherited and INHERITED.fullmatch(str(path)):
        return open(path, "rb")
    _need_plain(os.stat(path).st_mode, path)
    # opened without blocking: since the check above, the path may have become a pipe
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


# ----------------------------------------------------------------------------- files that a workflow reads and writes


def open_data(data: str, stack: contextlib.ExitStack) -> tuple[str, BinaryIO, int | None]:
    """Name, file and size (if it is known) of the data."""
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
    """The first ``most`` bytes of a file that a device has saved."""
    try:
        with open_plain(path) as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def need_free(path: Path | None, data: str, force: bool) -> None:
    """Raises UserError if the output file exists (unless ``force``), has no folder, or is the data file."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {path.parent}; make it, or give another name")
    need_not_data(path, data)
    # a dead run may have put this file in place, but not the files that belong to it
    with contextlib.suppress(OSError):
        clear(path)
    if not os.access(folder, os.W_OK):
        raise UserError(f"{path}: cannot be written: the folder {path.parent} is not writable; give another name")
    _need_replaceable(path)
    if path.exists() and not force:
        raise UserError(f"{path}: is there already; give another name, or {option('force')} to overwrite it")


def need_not_data(path: Path | None, data: str) -> None:
    """Raises UserError if the output file is the data file."""
    if path and data != "-" and path.exists() and Path(data).exists() and path.samefile(data):
        raise UserError(f"{path}: is the data itself; write to another file")


def need_different(paths: Iterable[Path | None]) -> None:
    """Raises UserError if two outputs have the same path."""
    given = [path.absolute() for path in paths if path is not None]
    for path in given:
        if given.count(path) > 1:
            raise UserError(f"{path}: is named for two files; give two names")
