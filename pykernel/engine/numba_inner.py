"""Functions that Numba inlines and nobody calls from Python: typed and lowered once, and never made into machine code.

Numba makes machine code of each function, with all that it calls, before it compiles one that calls it.  Of what is only
inlined nobody runs that code, and it takes most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock


class Inner(JITCodeLibrary):
    """LLVM IR of one function, without what it calls: whoever compiles a caller links that, too."""

    def add_linking_library(self, library: Any) -> None:
        self._linking_libraries.append(library)

    def finalize(self) -> None:
        self._finalized = True

    def needed(self) -> list[Any]:
        """This one, and whatever it calls, each once."""
        found: dict[Any, None] = {self: None}
        for library in self._linking_libraries:
            found |= dict.fromkeys(library.needed() if isinstance(library, Inner) else [library])
        return list(found)


def inner_function(function: FunctionType, result: Any, arguments: Sequence[Any], **options: Any) -> Any:
    """The function as other functions that Numba compiles can call it; result, arguments: Numba's types."""
    made = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
    target, flags = made.targetctx, Flags()
    made.targetdescr.options.parse_as_flags(flags, made.targetoptions)
    flags.no_compile = True
    with global_compiler_lock:
        library = Inner(target.codegen(), function.__qualname__)
        compiled = compile_extra(made.typingctx, target, function, tuple(arguments), result, flags, {}, library)
        # the entry point is what callers look for; this one is never called itself
        target.insert_user_function(function, compiled.fndesc, library.needed())
        made.overloads[tuple(arguments)] = compiled._replace(entry_point=function)
    made.disable_compile()  # for a number written in the source, or another width: what is given is converted
    return made
