"""Store Numba's machine code on disk, in sealed files, for this user's other processes.

The code is stored as pickles.  Reading a pickle can execute arbitrary code, so ``pykernel.sealed`` returns only bytes
that this user has written.  Numba's own cache raises an error or crashes if a file has been truncated or changed.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from pykernel.sealed import read_sealed, write_sealed


class CompileCache(NullCache):
    """Numba's cache for one function.  Each signature has a file, in a folder for this version of the sources."""

    def __init__(self, function: FunctionType, folder: Path, missing: Callable[[], None] = lambda: None) -> None:
        """Open the cache of a function.  missing: called if the cache does not have the code, before the function is compiled."""
        code = function.__code__
        self.function, self.folder, self.missing = function, folder, missing
        self.identity = (function.__module__, function.__qualname__, code.co_firstlineno, code.co_code)

    @property
    def cache_path(self) -> str:
        return str(self.folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the cached code for the signature and this processor, or None."""
        target.refresh()
        content = read_sealed(self._path(signature, target.codegen()))
        if content is None:
            self.missing()
            return None
        return CompileResult._rebuild(target, *pickle.loads(content))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if compiled.library.has_dynamic_globals or any(not lifted.can_cache for lifted in compiled.lifted):
            return
        write_sealed(self._path(signature, compiled.codegen), dumps(compiled._reduce()))

    def _path(self, signature: Any, generator: Any) -> Path:
        digest = hashlib.sha256(repr((self.identity, signature, generator.magic_tuple())).encode()).hexdigest()
        return self.folder / f"{self.function.__name__}-{digest[:20]}.code"
