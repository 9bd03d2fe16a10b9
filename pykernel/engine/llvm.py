"""The engine that runs models: kernels are printed as LLVM IR, and llvmlite compiles the IR.

Compiling the first model with a new set of choices takes about half a second.  Choices are folded before the
compilation, so code that the model does not use is not compiled.  Sizes and numbers are read at run time, so one
compilation serves all models with the same choices and precision.  Both the IR and the machine code are kept on disk.
The IR file is named after a digest of everything that the IR is made from.  The machine code file is named after a
digest of the IR, the processor, the versions of llvmlite and LLVM, and the level of compilation.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import pykernel.language.print_llvm as print_llvm
from pykernel.dialect import Extent, Kernel, Memory, Precision, Real, sources_digest
from pykernel.dialect.program import Settings
from pykernel.engine.executor import Choices, Executor, Steps
from pykernel.engine.sources import MAKERS
from pykernel.language.functions import specialised_functions
from pykernel.sealed import cache_folder, kept_sealed, read_sealed


class Level(NamedTuple):
    """A level of compilation.  Higher levels take more time to compile, and their code is faster."""

    passes: tuple[str, ...]  # LLVM's passes; if there are none, those of LLVM's level -O1 are used
    generator: int  # optimisation level of LLVM's code generator
    patience: float  # after this many seconds of run time per character of IR, the code is compiled one level higher


LEVELS = (
    Level(("sroa", "simplify_cfg"), 0, 2e-6),
    Level(("sroa", "instruction_combine", "simplify_cfg", "dead_code_elimination"), 1, 3e-5),
    Level((), 1, math.inf),
)
"""Compiling at these levels takes about 0.1 s, 0.4 s and 1.7 s.  Code from the first level takes about 4 times as long
to run as code from the third level, and code from the second level 1.3 times as long (measured for specs with krls-t,
klms and gmm, and for a spec without a rule).  At -O2, compiling takes a quarter longer than at -O1, and the code is not
faster.

QUICK code is replaced when it has run for about as long as the next compilation takes.  Code from the second level is
replaced when OPTIMISED code would have saved as much time as compiling it takes.  So no run spends much more time on
compiling than the faster code would have saved from the start.
"""
QUICK, OPTIMISED = 0, len(LEVELS) - 1
INLINED = 50
"""LLVM's threshold for inlining, which is 225 by default.  With this lower threshold, and without unrolled loops,
optimising takes 40 % less time, and the code is not slower."""
CHUNK = 256
"""Number of rows in the first chunk.  After each chunk, the run time is compared with the level's patience.  Each
chunk is twice as long as the previous one.
"""


# ----------------------------------------------------------------------------------------------------- compiling


class Code:
    """Machine code of some kernels: the kernels' addresses, and the layout of the table that the code reads.

    The code of the highest level on disk is used.  If no code is on disk, QUICK code is compiled first, in a tenth of a
    second.  After the code has run for as long as its level's patience, it is compiled again, one
    level higher.  All levels compute the same bits.
    """

    def __init__(self, module: print_llvm.Module, folder: Path | None, roots: Sequence[Kernel]) -> None:
        self.words, self.text, self.folder, self.roots = module.words, module.text, folder, roots
        # an LLVM engine owns its code; all engines are kept, because another thread may still be running the old code
        self._engines: list[Any] = []
        for level in range(OPTIMISED, QUICK, -1):
            path = _path(folder, self.text, level)
            content = read_sealed(path) if path else None
            if content:
                self._load(level, content)
                return
        self._load(QUICK, None)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Context manager for running the code.  It measures the run time, and compiles the code at the next level
        when the current level's patience is over.
        """
        level = self.level  # a thread that runs another model may raise the level meanwhile
        if level == OPTIMISED:
            yield
            return
        if self.spent > self.patience:
            self._load(level + 1, None)
        start = time.perf_counter()
        yield
        self.spent += time.perf_counter() - start

    def _load(self, level: int, content: bytes | None) -> None:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target(level))
        engine.add_object_file(llvm.ObjectFileRef.from_data(content or _object(self.folder, self.text, level)))
        engine.finalize_object()
        self._engines.append(engine)
        self.addresses = {k: engine.get_function_address(print_llvm.public_name(k)) for k in self.roots}
        self.rows = ctypes.CFUNCTYPE(None, *print_llvm.ROWS_TYPES)(engine.get_function_address(print_llvm.ROWS))
        self.level, self.spent, self.patience = level, 0.0, LEVELS[level].patience * len(self.text)


@functools.cache
def compiled(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> Code:
    """Return the kernels' machine code for these choices, compiled once and kept for this user.  Raises DialectError
    for a kernel that the dialect does not allow."""
    folder = cache_folder(
        "engine", hashlib.sha256("".join([*MAKERS.values(), sources_digest(roots)]).encode()).hexdigest()[:20]
    )
    return Code(_module(folder, roots, choices, precision), folder, roots)


def _module(
    folder: Path | None, roots: tuple[Kernel, ...], choices: Choices, precision: Precision
) -> print_llvm.Module:
    digest = hashlib.sha256(f"{precision} {choices} {[root.name for root in roots]}".encode()).hexdigest()

    def printed() -> bytes:
        module = print_module(roots, choices, precision)
        return json.dumps(module.words).encode() + b"\n" + module.text.encode()

    words, _, text = kept_sealed(folder / f"{digest[:20]}.ll" if folder else None, printed).partition(b"\n")
    return print_llvm.Module(text.decode(), tuple((kind, name) for kind, name in json.loads(words)))


def print_module(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> print_llvm.Module:
    """Return the kernels' LLVM IR.  Unused fields are not dropped, because the memory has all fields, as in the other engines."""
    return print_llvm.print_llvm(specialised_functions(roots, choices, precision).functions, roots, precision)


def _path(folder: Path | None, text: str, level: int) -> Path | None:
    processor = (*_processor(), llvmlite.__version__, llvm.llvm_version_info, LEVELS[level])
    digest = hashlib.sha256(f"{processor}\0{text}".encode()).hexdigest()
    return folder / f"{digest[:20]}.o" if folder else None


def _object(folder: Path | None, text: str, level: int) -> bytes:
    return kept_sealed(_path(folder, text, level), lambda: _target(level).emit_object(optimised(text, level)))


def optimised(text: str, level: int) -> Any:
    """Return the module with this IR after the level's passes."""
    target = _target(level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    tuning.loop_unrolling, tuning.inlining_threshold = False, INLINED
    builder = llvm.create_pass_builder(target, tuning)
    passes = llvm.create_new_module_pass_manager() if LEVELS[level].passes else builder.getModulePassManager()
    for name in LEVELS[level].passes:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)
    return module


@functools.cache
def _processor() -> tuple[str, str, str]:
    """Return the target triple, the name and the features of this processor."""
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot read this processor's features
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _target(level: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, name, features = _processor()
    made = llvm.Target.from_triple(triple)
    return made.create_target_machine(
        cpu=name, features=features, opt=LEVELS[level].generator, reloc="pic", codemodel="jitdefault", jit=True
    )


# ------------------------------------------------------------------------------------------------------- running


class Compiled(Executor):
    """Runs machine code that LLVM compiled."""

    def __init__(self, code: Code, memory: Memory, config: Settings) -> None:
        super().__init__(memory, config)
        self.code = code
        self._words = np.array([self._word(*word) for word in self.code.words] or [0], np.uint64)
        self._table: int = self._words.ctypes.data
        self._functions: dict[tuple[Kernel, int], Any] = {}

    def _word(self, kind: str, name: str) -> int:
        if kind == "extent":
            return Extent(name).value(self.memory.capacities)
        value = self.memory.field(name) if kind == "field" else getattr(self.config, name)
        if isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise ValueError(f"the elements of {name} must be contiguous in memory")
            return value.ctypes.data
        if isinstance(value, np.floating):
            return int.from_bytes(value.tobytes().ljust(8, b"\0"), "little")
        return int(value) % 2**64

    def _call(self, kernel: Kernel, arrays: list[np.ndarray]) -> Any:
        with self.code.running():
            key = kernel, self.code.level
            if key not in self._functions:
                self._functions[key] = self._function(kernel, arrays, ctypes.CFUNCTYPE)
            return self._functions[key](self._table, *_addresses(arrays))

    def _final(self, kernel: Kernel, arrays: list[np.ndarray]) -> Callable[[], Any] | None:
        # QUICK code may still be replaced; above QUICK, the call itself takes as long as the code, so still faster code would gain little
        if self.code.level == QUICK:
            return None
        # PYFUNCTYPE, which keeps the GIL, because releasing the GIL would take as long as processing a sample
        return functools.partial(self._function(kernel, arrays, ctypes.PYFUNCTYPE), self._table, *_addresses(arrays))

    def _function(self, kernel: Kernel, arrays: list[np.ndarray], made: Callable[..., Any]) -> Any:
        pointers = [ctypes.c_void_p] * (1 + max(len(arrays), 2))
        real = ctypes.c_float if self.precision.dtype.itemsize == 4 else ctypes.c_double
        return made(real if kernel.returns is Real else ctypes.c_int32, *pointers)(self.code.addresses[kernel])

    def _rows(
        self,
        steps: Steps,
        x: np.ndarray,
        y: np.ndarray,
        first: int,
        delay: int,
        answers: np.ndarray,
        states: np.ndarray,
        statuses: np.ndarray,
    ) -> None:
        def place(array: np.ndarray, row: int) -> tuple[int | None, int]:
            return (array.ctypes.data + row * array.strides[0], array.strides[0]) if len(array) else (None, 0)

        start, size = first, CHUNK
        while start < len(x):
            end = len(x) if self.code.level == OPTIMISED else min(start + size, len(x))
            with self.code.running():
                addresses = (None if kernel is None else self.code.addresses[kernel] for kernel in steps)
                done = start - first
                arrays = (place(x, 0), place(y, 0), place(answers, done), place(states, done))
                parts = (part for array in arrays for part in array)
                told = place(statuses, done)[0]
                self.code.rows(self._table, *addresses, start, end, delay, *parts, told)
            start, size = end, 2 * size


def _addresses(arrays: Sequence[np.ndarray]) -> list[int | None]:
    """Return the addresses of the arrays, padded with None to two addresses, because the machine code of an entry takes at least two."""
    return [*(array.ctypes.data for array in arrays), *[None] * (2 - len(arrays))]
