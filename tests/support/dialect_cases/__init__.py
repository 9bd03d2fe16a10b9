"""Kernels written, printed, compiled and run: in each engine, and in C."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import cffi
import numpy as np

from pykernel.algorithms.extents import N_MAX
from pykernel.dialect import (
    DIM,
    Config,
    Index,
    Int,
    Int8,
    Int16,
    Kernel,
    Memory,
    Precision,
    Real,
    Struct,
    Uint8,
    Word,
    between,
    is_choice,
    program,
)
from pykernel.engine import jitted, llvm
from pykernel.engine.engines import choices_of
from pykernel.engine.executor import Executor
from pykernel.engine.plain import Plain
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.language.functions import checked_functions
from pykernel.language.primitives import primitive, primitive_file
from pykernel.language.print_c import Printer
from pykernel.language.specialise import Specialised, specialise
from pykernel.language.widths import Widths

CAPACITIES = {"N_MAX": 4, "DIM": 3}
_modules = itertools.count()


class Box(Struct):
    """State for tests."""

    a: Real[N_MAX]
    b: Real[N_MAX]
    grid: Real[N_MAX, DIM]
    total: Real
    counts: Index[N_MAX]
    n: Index
    m: Index


class Whole(Struct):
    """State of whole numbers, for tests."""

    a: between(Int[N_MAX], -134217728, 134217727)
    w: Word[N_MAX]
    v: between(Int16[N_MAX, DIM], -8000, 8000)
    closest: between(Uint8[N_MAX], 0, N_MAX - 1)
    small: Int8
    n: between(Index, 0, N_MAX)


class Given(Config):
    """Parameters that are whole numbers, for tests."""

    weights: Int16[N_MAX]
    factors: Int16[DIM]
    q: Index


class Kind(IntEnum):
    """A choice for tests."""

    ZERO = 0
    ONE = 1
    LOW = -2


class Settings(Config):
    """Parameters for tests."""

    kind: Kind
    flag: bool
    p: Real
    q: Index
    basis: Real[N_MAX, DIM]
    shifts: Real[N_MAX]
    order: Index[N_MAX]

    @classmethod
    def of(cls, precision: Precision, values: Mapping[str, Any], capacities: Mapping[str, int] | None = None) -> Any:
        return super().of(precision, TABLES | dict(values), capacities or CAPACITIES)


TABLES = {
    "basis": [[0.1, -0.0, 1e-40], [-7.25, 16777217.0, 3.0], [1 / 3, -1e30, 0.5], [2.0, -2.0, 1e-45]],
    "shifts": [-1.5, 0.0, 2 / 3, 1e38],
    "order": [2, 0, 3, 1],
}


def load(folder: Path, source: str) -> ModuleType:
    """Import source text as a module of its own, from a file."""
    name = f"dialect_case_{next(_modules)}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def structs_of(kernels: Sequence[Kernel]) -> list[type[Struct]]:
    kinds = [kind for k in kernels for kind in k.params.values() if isinstance(kind, type)]
    return list(dict.fromkeys(kind for kind in kinds if issubclass(kind, Struct)))


def specialised(kernels: Sequence[Kernel], precision: Precision, config: Any = None) -> Specialised:
    kinds = [kind for k in kernels for kind in k.params.values() if isinstance(kind, type) and issubclass(kind, Config)]
    choices = {n: getattr(config, n) for kind in kinds for n, f in kind.fields.items() if is_choice(f)}
    fields = [name for struct in structs_of(kernels) for name in struct.fields]
    return specialise(checked_functions(tuple(kernels)), [k.name for k in kernels], choices, precision, fields)


def c_source(
    kernels: Sequence[Kernel], precision: Precision, config: Any = None, status: Any = None
) -> tuple[str, list[str], tuple[str, ...]]:
    """The C of some kernels, their declarations, and the fields that it does without."""
    code = specialised(kernels, precision, config)
    structs = structs_of(kernels)
    scalars = frozenset().union(*(struct.scalars for struct in structs))
    public, statuses = {k.name: k.name for k in kernels}, (status,) if status else ()
    printer = Printer("m", precision, scalars, public, statuses=statuses, widths=Widths(CAPACITIES, config))
    printed = printer.all(code.functions)
    members = []
    drop = tuple(sorted(code.unread))
    for slot in Memory(structs, precision, CAPACITIES, drop).layout.slots:
        extents = "" if slot.scalar else "".join(f"[{size}]" for size in slot.shape)
        members.append(f"    {printer.type(slot.array.scalar)} {slot.name}{extents};")
    lines = ["#include <float.h>", "#include <stdbool.h>", "#include <stdint.h>"]
    lines.append(
        primitive(
            "guard.h",
            "m",
            {
                "PK_REAL_BYTES": str(precision.dtype.itemsize),
                "PK_REAL_MANT_DIG": "FLT_MANT_DIG" if precision.bits == 23 else "DBL_MANT_DIG",
                "PK_REAL_DIGITS": str(precision.bits + 1),
            },
        )
    )
    lines += [
        "#define M_FLASH",
        "#define M_INLINE inline",
        "#define M_APART",
        *(f"#define M_{name} {size}" for name, size in CAPACITIES.items()),
    ]
    lines += ["typedef struct m_s {", *(members or ["    char unused;"]), "} m_t;"]
    data = printer.data(code.functions, config, {})
    lines += [f"#define M_{each['name']} {each['value']}" for each in (*data["constants"], *data["parameters"])]
    lines += [f"{table['declaration']} = {{{table['text']}}};" for table in data["tables"]]
    lines += [primitive(primitive_file(name, precision), "m") for name in sorted(printer.primitives)]
    declarations = [f"{printer.signature(code.functions[k.name])};" for k in kernels]
    lines += declarations
    lines += ["\n".join(body) for body in printed.values()]
    return "\n".join(lines) + "\n", declarations, drop


class Compiled:
    """The C of some kernels as a library: call them by name."""

    def __init__(
        self,
        folder: Path,
        kernels: Sequence[Kernel],
        precision: Precision,
        config: Any = None,
        level: str = "-O3",
        status: Any = None,
    ) -> None:
        self.text, declarations, self.drop = c_source(kernels, precision, config, status)
        stem = folder / f"code_{next(_modules)}"
        source, library = stem.with_suffix(".c"), stem.with_suffix(".so")
        source.write_text(self.text, encoding="utf-8")
        compilers = find_compilers()
        # conditions of random programs are sometimes always true
        flags = [level, "-Wno-tautological-compare"]
        compile_c(compilers[min(level == "-O3", len(compilers) - 1)], [source], library, flags)
        self.ffi = cffi.FFI()
        for symbol, size in CAPACITIES.items():
            declarations = [d.replace(f"M_{symbol}", str(size)) for d in declarations]
        self.ffi.cdef("typedef struct m_s m_t;\n" + "\n".join(declarations))
        self.library: Any = self.ffi.dlopen(str(library))
        self.real = "float *" if precision.bits == 23 else "double *"

    def call(self, name: str, memory: Memory, *args: Any) -> Any:
        pointer = self.ffi.cast("m_t *", memory.buffer.ctypes.data)
        return getattr(self.library, f"m_{name}")(pointer, *(self._argument(a) for a in args))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            kind = {"i2": "int16_t *", "i4": "int32_t *"}.get(value.dtype.str[1:], self.real)
            return self.ffi.cast(kind, value.ctypes.data)
        return value.item() if isinstance(value, np.generic) else value


def plain_bytes(values: Any) -> bytes:
    """Bytes, with one NaN for all: which one an operation returns is left open by IEEE-754."""
    values = np.array(values)
    if values.dtype.names:
        return b"".join(plain_bytes(values[name]) for name in values.dtype.names)
    if values.dtype.kind == "f":
        values[np.isnan(values)] = np.nan
    return values.tobytes()


Made = Callable[[Memory], Executor]
"""An executor for a memory."""


def executors(kernels: Sequence[Kernel], precision: Precision, config: Any = None) -> dict[str, Made]:
    """The kernels in each engine, compiled anew and kept nowhere; config: the values of the one configuration they take."""
    kinds = {kind for k in kernels for kind in k.params.values() if isinstance(kind, type) and issubclass(kind, Config)}
    settings, roots = program.Settings(dict.fromkeys(kinds, config)), tuple(kernels)
    choices = choices_of(settings)
    module = llvm.print_module(roots, choices, precision)
    quick, optimised = llvm.Code(module, None, roots), llvm.Code(module, None, roots)
    optimised._load(llvm.OPTIMISED, None)
    return {
        "python": lambda memory: Plain(memory, settings),
        "numba": lambda memory: jitted.Jitted(roots, choices, memory, settings),
        "llvm": lambda memory: llvm.Compiled(quick, memory, settings),
        "llvm, optimised": lambda memory: llvm.Compiled(optimised, memory, settings),
    }


def numba_function(kernel: Kernel, precision: Precision) -> Any:
    """A kernel without choices as Numba compiles it: a function of its structs, configurations and values.

    Loops over many numbers, in Numba, can call it.
    """
    if kernel.intrinsic is not None:
        return kernel.intrinsic(precision, True)
    parts = [kind for kind in kernel.params.values() if isinstance(kind, type)]
    configs = tuple(kind for kind in parts if issubclass(kind, Config))
    return jitted._code((kernel,), (), precision, tuple(structs_of([kernel])), configs, ()).entry(kernel)[0]
