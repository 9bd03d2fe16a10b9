"""Functions that Numba inlines and Python never calls.  They are typed and lowered once, but not compiled to machine
code.

By default, Numba generates machine code for each callee, together with everything that the callee calls, before Numba
compiles the caller.  If a function is only inlined, this machine code never runs, yet generating it takes most of the
time.
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
    """LLVM IR of one function without its callees.  When a caller is compiled, the IR of its callees is linked."""

    def add_linking_library(self, library: Any) -> None:
        self._linking_libraries.append(library)

    def finalize(self) -> None:
        self._finalized = True

    def needed(self) -> list[Any]:
        """Return this library and the libraries of all functions that it calls, each once."""
        found: dict[Any, None] = {self: None}
        for library in self._linking_libraries:
            found |= dict.fromkeys(library.needed() if isinstance(library, Inner) else [library])
        return list(found)


def inner_function(function: FunctionType, result: Any, arguments: Sequence[Any], **options: Any) -> Any:
    """Return the function in a form that other Numba functions can call.  result, arguments: Numba's types."""
    made = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
    target, flags = made.targetctx, Flags()
    made.targetdescr.options.parse_as_flags(flags, made.targetoptions)
    flags.no_compile = True
    # Numba's rewrites apply only to constants and whole arrays, and the printed text contains neither
    flags.no_rewrites = True
    with global_compiler_lock:
        library = Inner(target.codegen(), function.__qualname__)
        compiled = compile_extra(made.typingctx, target, function, tuple(arguments), result, flags, {}, library)
        # callers look up the entry point, which is never called itself
        target.insert_user_function(function, compiled.fndesc, library.needed())
        made.overloads[tuple(arguments)] = compiled._replace(entry_point=function)
    made.disable_compile()  # allow no other signature, so that an argument of another width, such as a literal, is converted
    return made
