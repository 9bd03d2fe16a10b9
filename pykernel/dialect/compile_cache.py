"""Machine code that Numba compiled, kept on disk for this user's other processes.

It is kept as pickles, which can execute anything when they are read, and as machine code, which can do anything when it is
called.  So a file is used only if it is this user's own and every byte of it is what was written; any other is removed, and
the code is compiled again.  Numba's own cache fails, or crashes, on a file that was cut or changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from pykernel.errors import UserError
from pykernel.files import open_plain, whole_file

_told = False


class CompileCache(NullCache):
    """What one function was compiled to, a file for each signature, in a folder that is of one state of the sources."""

    def __init__(self, function: FunctionType, folder: Path) -> None:
        code = function.__code__
        self.function, self.folder = function, folder
        self.identity = (function.__module__, function.__qualname__, code.co_firstlineno, code.co_code)

    @property
    def cache_path(self) -> str:
        return str(self.folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What is there for the signature and this processor, or None."""
        target.refresh()
        path = self._path(signature, target.codegen())
        content = _whole(path)
        return None if content is None else CompileResult._rebuild(target, *pickle.loads(content))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if compiled.library.has_dynamic_globals or any(not lifted.can_cache for lifted in compiled.lifted):
            return
        path, content = self._path(signature, compiled.codegen), dumps(compiled._reduce())
        with contextlib.suppress(UserError), whole_file(path, apart=True) as file:  # a full disk only costs time
            file.write(_seal(path, content) + content)

    def _path(self, signature: Any, generator: Any) -> Path:
        digest = hashlib.sha256(repr((self.identity, signature, generator.magic_tuple())).encode()).hexdigest()
        return self.folder / f"{self.function.__name__}-{digest[:20]}.code"


def _seal(path: Path, content: bytes) -> bytes:
    """Of the content, and of what it is there for: a file under another's name is not whole either."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}\0".encode() + content).digest()


def _whole(path: Path) -> bytes | None:
    """The content of a file as it was written; None, and the file is removed, if there is no such file."""
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
        pass  # cannot be read, or is no file at all
    _discard(path)
    return None


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
            f"warning: the compile cache in {path.parent.parent} was damaged; what is missing is compiled again, which can "
            "take half a minute",
            file=sys.stderr,
        )
