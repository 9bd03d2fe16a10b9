"""The engine that runs models: kernels are printed as LLVM IR, and llvmlite compiles the IR.

The first model with a new set of choices takes about a second.  Choices are folded before the compilation, so code that
the model does not use is not compiled.  Sizes and numbers are read at run time, so one compilation serves all models
with the same choices and precision.  Both the IR and the machine code are kept on disk.  The IR's file is named by a
digest of everything that the IR is made from; the machine code's file is named by a digest of the IR and of the
compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import pykernel.gen.print_llvm as print_llvm
from pykernel.dialect import Extent, Kernel, Memory, Precision, Real, sources_digest
from pykernel.dialect.program import Settings
from pykernel.engine.executor import Choices, Executor, Steps
from pykernel.engine.sources import MAKERS
from pykernel.gen.functions import specialised_functions
from pykernel.sealed import cache_folder, kept_sealed, read_sealed

QUICK, OPTIMISED = 0, 1
"""LLVM's optimisation levels.  Level 2 takes a quarter longer to compile, and its code is not faster."""
INLINED = 50
"""LLVM's threshold for inlining, which is 225 by default.  With it, and without unrolled loops, code is optimised in six
tenths of the time, and is not slower."""
PATIENCE = 3.5e-6
"""Seconds for each character of IR that code of level QUICK may run before it is optimised.  LLVM needs about this time
to optimise the IR.

QUICK code is ten times slower than OPTIMISED code.  With this rule a short run never pays for the optimisation, and a
long run loses little more time than the optimisation takes."""
CHUNK = 256
"""Rows of the first chunk.

After each chunk the run time is compared with the patience; each chunk is twice as long.
"""


# ----------------------------------------------------------------------------------------------------- compiling


class Code:
    """Machine code of some kernels: the kernels' addresses, and the layout of the table that the code reads.

    If optimised code is on disk, it is used.  If not, QUICK code is compiled first, in a tenth of a second.  The code
    is optimised once it has run for as long as the optimisation takes.  Both versions compute the same bits.
    """

    def __init__(self, module: print_llvm.Module, folder: Path | None, roots: Sequence[Kernel]) -> None:
        self.words, self.text, self.folder, self.roots = module.words, module.text, folder, roots
        self.spent, self.patience = 0.0, PATIENCE * len(module.text)
        # an engine owns its code; all are kept, because another thread may run the old code
        self._engines: list[Any] = []
        path = _path(folder, self.text, OPTIMISED)
        content = read_sealed(path) if path else None
        self._load(OPTIMISED if content else QUICK, content)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The code runs within this block: the block measures the time, and optimises the code when it is due."""
        if self.level == OPTIMISED:
            yield
            return
        if self.spent > self.patience:
            self._load(OPTIMISED, None)
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
        self.level = level


@functools.cache
def compiled(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> Code:
    """The kernels' machine code for these choices; it is compiled once and kept for this user.  Raises DialectError."""
    folder = cache_folder(
        "engine", hashlib.sha256("".join([*MAKERS.values(), sources_digest(roots)]).encode()).hexdigest()[:20]
    )
    module = _module(folder, roots, choices, precision)
    return Code(module, folder, roots)


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
    """The kernels' LLVM IR.  No field is dropped: the memory has all fields, as in the other engines."""
    return print_llvm.print_llvm(specialised_functions(roots, choices, precision).functions, roots, precision)


def _path(folder: Path | None, text: str, level: int) -> Path | None:
    processor = (*_processor(), llvmlite.__version__, llvm.llvm_version_info, level)
    digest = hashlib.sha256(f"{processor}\0{text}".encode()).hexdigest()
    return folder / f"{digest[:20]}.o" if folder else None


def _object(folder: Path | None, text: str, level: int) -> bytes:
    return kept_sealed(_path(folder, text, level), lambda: _target(level).emit_object(optimised(text, level)))


def optimised(text: str, level: int) -> Any:
    """The module after LLVM's passes."""
    target = _target(level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling, tuning.inlining_threshold = False, INLINED
    passes = llvm.create_pass_builder(target, tuning)
    passes.getModulePassManager().run(module, passes)
    return module


@functools.cache
def _processor() -> tuple[str, str, str]:
    """Triple, name and features of this processor."""
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
        cpu=name, features=features, opt=level, reloc="pic", codemodel="jitdefault", jit=True
    )


# ------------------------------------------------------------------------------------------------------- running


class Compiled(Executor):
    """Machine code by LLVM."""

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
                raise ValueError(f"{name}: its elements do not follow each other in memory")
            return value.ctypes.data
        if isinstance(value, np.floating):
            return int.from_bytes(value.tobytes().ljust(8, b"\0"), "little")
        return int(value) % 2**64

    def _call(self, kernel: Kernel, given: list[np.ndarray]) -> Any:
        with self.code.running():
            key = kernel, self.code.level
            if key not in self._functions:
                pointers = [ctypes.c_void_p] * (1 + max(len(given), 2))
                real = ctypes.c_float if self.precision.dtype.itemsize == 4 else ctypes.c_double
                result = real if kernel.returns is Real else ctypes.c_int32
                self._functions[key] = ctypes.CFUNCTYPE(result, *pointers)(self.code.addresses[kernel])
            return self._functions[key](self._table, *_addresses(given))

    def _bound(self, kernel: Kernel, given: list[np.ndarray]) -> Callable[[], Any]:
        final: Callable[[], Any] | None = None  # the call of optimised code; optimised code is not replaced any more

        def call() -> Any:
            nonlocal final
            if final is not None:
                return final()
            result = self._call(kernel, given)
            if self.code.level == OPTIMISED and (kernel, OPTIMISED) in self._functions:
                final = functools.partial(self._functions[kernel, OPTIMISED], self._table, *_addresses(given))
            return result

        return call

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


def _addresses(given: Sequence[np.ndarray]) -> list[int | None]:
    """The addresses of up to two arrays, filled up with None: the machine code of an entry takes two addresses."""
    return [*(array.ctypes.data for array in given), *[None] * (2 - len(given))]
