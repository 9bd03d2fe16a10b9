"""Files that hold machine code, kept for this user's other processes.

Machine code can do anything when it is called.  So a file is used only if it belongs to this user and none of its bytes
has changed.  Otherwise the file is removed, and its content is compiled again.  The first removal in a process prints a
one-line warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pykernel.errors import UserError, visible
from pykernel.files import open_plain, whole_file

_told = False


def write_sealed(path: Path, content: bytes) -> None:
    # a full disk, or a file lost in a power failure, only costs time
    with contextlib.suppress(UserError), whole_file(path, apart=True, lasting=False) as file:
        file.write(_seal(path, content) + content)


def read_sealed(path: Path) -> bytes | None:
    """Return the content of a file, exactly as it was written; None if there is no such file.

    If the file cannot be read, has changed, or belongs to another user, it is removed, and the result is None.
    """
    try:
        with open_plain(path) as file:
            own = os.name == "nt" or os.fstat(file.fileno()).st_uid == os.getuid()
            found = file.read() if own else b""
        if found[:32] == _seal(path, found[32:]):
            return found[32:]
    except FileNotFoundError:
        if not path.is_symlink():
            return None
    except OSError:
        pass  # the file cannot be read, or the path is not a file
    _discard(path)
    return None


def kept_sealed(path: Path | None, make: Callable[[], bytes]) -> bytes:
    """Return the content of a file.  If there is no valid file, call ``make``, and write its result to the file.

    path: None if files cannot be kept.
    """
    content = read_sealed(path) if path else None
    if content is None:
        content = make()
        if path:
            write_sealed(path, content)
    return content


def _seal(path: Path, content: bytes) -> bytes:
    """Return a digest of the content and of the names of the file and its folder.

    Because of the names, a file that was renamed, or moved to another folder, is refused, too.
    """
    return hashlib.sha256(f"{path.parent.name}/{path.name}\0".encode() + content).digest()


def _discard(path: Path) -> None:
    global _told
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
    if not _told:
        _told = True
        print(
            f"warning: the compile cache in {visible(path.parent.parent)} was damaged; the missing code is compiled again",
            file=sys.stderr,
        )


def cache_folder(kind: str, digest: str) -> Path | None:
    """Return this user's cache folder for a kind of content and a digest; None if the folder cannot be made.

    Whenever a new folder is made, folders that have not been used for a month are removed.
    """
    import platformdirs

    root = platformdirs.user_cache_path("pykernel") / kind
    folder = root / digest
    try:
        fresh = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / ".used").touch()
        if fresh:
            _forget_old(root)
    except OSError:  # the home folder is read-only: each process compiles again
        return None
    return folder


def _forget_old(root: Path, days: float = 30) -> None:
    for old in root.iterdir():
        with contextlib.suppress(OSError):  # the folder belongs to somebody else, or another process has removed it
            if (old / ".used").stat().st_mtime < time.time() - days * 86400:
                shutil.rmtree(old, ignore_errors=True)
