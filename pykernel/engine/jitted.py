"""The reference engine for checks: kernels are printed as Python, and Numba compiles them.

This engine does not use pykernel's code that prints C or LLVM IR.  Up to the printing, the code is the same: the module
``pykernel.language.functions`` reads, types, checks and specialises the kernels.
"""

from __future__ import annotations

import functools
import hashlib
import linecache
import platform
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from pykernel.dialect import Kernel, Memory, Precision
from pykernel.dialect.program import Settings, taken_by
from pykernel.engine.executor import Choices, Executor, Part, Steps
from pykernel.engine.sources import MAKERS
from pykernel.language.functions import specialised_functions
from pykernel.language.print_python import Source, argument, print_python, python_name
from pykernel.sealed import cache_folder

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


class Jitted(Executor):
    """Runs code that Numba compiled."""

    def __init__(self, roots: tuple[Kernel, ...], choices: Choices, memory: Memory, config: Settings) -> None:
        super().__init__(memory, config)
        capacities = tuple(sorted(memory.capacities.items()))
        self.code = _code(roots, choices, memory.precision, memory.structs, tuple(config.views), capacities)

    def _call(self, kernel: Kernel, arrays: list[np.ndarray]) -> Any:
        function, parts = self.code.entry(kernel)
        return function(*map(self._view, parts), *self._values(kernel, arrays))

    def _rows(self, steps: Steps, *arguments: Any) -> None:
        function, parts = self.code.loop(*steps)
        function(*map(self._view, parts), *arguments)


class _Code:
    """The functions of some kernels.  Each function is compiled when it is first called."""

    def __init__(self, source: Source, precision: Precision, digest: str) -> None:
        self.source, self.digest, self.precision = source, digest, precision
        self.folder = cache_folder("numba", digest)
        self.space: dict[str, Any] = {"__name__": __name__, **source.constants}
        for name, kernel in source.intrinsics.items():
            self.space[f"i_{name}"] = _intrinsic(kernel, precision)
        self.functions: dict[Any, tuple[Any, tuple[Part, ...]]] = {}

    def inner(self, kernels: Sequence[Kernel]) -> None:
        """Compile the kernels and their callees as functions that Numba inlines into their callers."""
        from pykernel.engine.numba_inner import inner_function
        from pykernel.engine.numba_structs import numba_type

        names = list(self.source.texts)
        for each in names[: 1 + max(names.index(kernel.name) for kernel in kernels)]:  # callees come first
            called = python_name(each)
            if called not in self.space:
                function = self._python(called, self.source.texts[each])
                result, *kinds = self.source.kinds[each]
                # an array that a kernel only reads may be a table of a configuration, which is read-only
                values = [
                    numba_type(kind, self.precision, readonly=not written)
                    for kind, written in zip(kinds, self.source.writes[each], strict=True)
                ]
                parts = [numba_type(part, self.precision) for part in self.source.needs[each]]
                returned = numba_type(result, self.precision)
                self.space[called] = inner_function(function, returned, [*parts, *values], **OPTIONS)

    def entry(self, kernel: Kernel) -> tuple[Any, tuple[Part, ...]]:
        """Return (function, parts).  The function calls one kernel.  Its first arguments are the structs and
        configurations in ``parts``; then come numbers and arrays.
        """
        if kernel not in self.functions:
            values = [f"a{i}" for i in range(len(taken_by(kernel)))]
            self.functions[kernel] = self._outer("call", [kernel], values, [f"return {self._call(kernel, *values)}"])
        return self.functions[kernel]

    def loop(self, *each: Kernel | None) -> tuple[Any, tuple[Part, ...]]:
        """Return (function, parts).  The function contains the loop over rows.  Its first arguments are the structs and
        configurations in ``parts``; then come the rows.
        """
        (ask, expect, learn, look), steps = each, tuple(k for k in each if k is not None)
        if steps not in self.functions:
            lines = ["i, status = t - first, 0"]
            if ask is not None:
                lines.append(f"status = {self._call(ask, 'x[t]', 'answers[i]')}")
            if expect is not None:
                lines.append(self._call(expect, "x[t]"))
            if learn is not None:
                label = ["y[t - delay]"] if len(taken_by(learn)) == 2 else []
                lines += ["status = 0", "if t >= delay:", f"    status = {self._call(learn, 'x[t - delay]', *label)}"]
            lines.append("statuses[i] = status")
            if look is not None:
                lines.append(self._call(look, "states[i]"))
            values = ["x", "y", "first", "delay", "answers", "states", "statuses"]
            body = ["for t in range(first, len(x)):", *(f"    {line}" for line in lines)]
            self.functions[steps] = self._outer("rows", steps, values, body)
        return self.functions[steps]

    def _call(self, kernel: Kernel, *values: str) -> str:
        given = [*map(argument, self.source.needs[kernel.name]), *values]
        return f"{python_name(kernel.name)}({', '.join(given)})"

    def _outer(
        self, what: str, kernels: Sequence[Kernel], values: Sequence[str], body: Sequence[str]
    ) -> tuple[Any, tuple[Part, ...]]:
        """Return (function, parts).  The function can be called from Python.  Its first arguments are the structs and
        configurations in ``parts``.  Its callees are compiled only if the function is not in the cache.
        """
        import numba

        import pykernel.engine.numba_structs  # noqa: F401 - registers the type of views with Numba
        from pykernel.engine.compile_cache import CompileCache

        parts = tuple(dict.fromkeys(part for kernel in kernels for part in self.source.needs[kernel.name]))
        name = "_".join([what, *(kernel.name for kernel in kernels)])
        head = f"def {name}({', '.join([*map(argument, parts), *values])}):"
        function = self._python(name, "\n    ".join([head, *body]))
        dispatcher = numba.njit(**OPTIONS)(function)
        if self.folder:
            dispatcher._cache = CompileCache(function, self.folder, lambda: self.inner(kernels))
        else:
            self.inner(kernels)
        return dispatcher, parts

    def _python(self, name: str, text: str) -> types.FunctionType:
        """Make a function from its text.

        The text is registered in ``linecache``, because Numba asks for the function's source lines.
        """
        file = f"<pykernel {name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), self.space)
        # If two symbols have the same name, Numba uses the first one.  Numba makes names unique with a counter, which
        # starts again in each process that fills the cache.  The digest keeps the names unique.
        self.space[name].__qualname__ = f"{name}_{self.digest}"
        return self.space[name]


@functools.cache
def _intrinsic(kernel: Kernel, precision: Precision) -> Any:
    """Return the intrinsic's implementation for Numba, compiled once for all models."""
    assert kernel.intrinsic is not None
    return kernel.intrinsic(precision, True)


@functools.lru_cache(maxsize=64)
def _code(
    roots: tuple[Kernel, ...],
    choices: Choices,
    precision: Precision,
    structs: tuple[Any, ...],
    configs: tuple[Any, ...],
    capacities: tuple[tuple[str, int], ...],
) -> _Code:
    import numba

    functions = specialised_functions(roots, choices, precision).functions
    source = print_python(functions, structs, configs, precision, dict(capacities))
    versions = f"{sys.version} {numba.__version__} {np.__version__} {platform.machine()} {precision}"
    constants = {
        name: np.asarray(value, float).tolist()
        for name, value in source.constants.items()
        if name not in ("Real", "int64")
    }
    text = "\n".join([versions, MAKERS["dialect"], MAKERS["engine"], *source.texts.values(), repr(constants)])
    return _Code(source, precision, hashlib.sha256(text.encode()).hexdigest()[:20])
