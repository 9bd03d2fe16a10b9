"""The engine that runs models: kernels printed as LLVM IR and compiled by llvmlite, in a second for the first of its kind.

Choices are folded before anything is compiled, so that nothing is compiled that a model does not use; sizes and numbers are
read at run time, so that one compilation serves all models of the same choices and precision.  Both the IR and the machine
code are kept on disk: the IR under a digest of all that it is made from, the machine code under one of the IR and of what
compiled it.
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
from typing import TYPE_CHECKING, Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import pykernel.gen.print_llvm as print_llvm
from pykernel.dialect import Extent, Kernel, Memory, Precision, Real, sources_digest
from pykernel.engine.executor import Choices, Executor
from pykernel.engine.sources import MAKERS
from pykernel.gen.functions import checked_functions
from pykernel.gen.specialise import specialise
from pykernel.sealed import cache_folder, read_sealed, write_sealed

if TYPE_CHECKING:
    from pykernel.dialect.program import Settings

QUICK, OPTIMISED = 0, 2
"""LLVM's levels; at 3 it takes longer to compile, and the code is no faster."""
PATIENCE = 7e-6
"""Seconds that code at level QUICK may run for each character of its IR: what LLVM takes to optimise it.

Quick code is ten times slower.  So a short run never pays for optimising, and a long one pays little more than that."""
CHUNK = 256
"""Rows after which the time is looked at for the first time."""


# ----------------------------------------------------------------------------------------------------- compiling


class Code:
    """Machine code of some kernels: their addresses, and the words that it reads.

    At first it is not optimised, unless it is on the disk: that takes a tenth of a second.  It is optimised when it has run
    for as long as optimising takes.  Both compute the same bits.
    """

    def __init__(self, module: print_llvm.Module, folder: Path | None, roots: Sequence[Kernel]) -> None:
        self.words, self.text, self.folder, self.roots = module.words, module.text, folder, roots
        self.spent, self.patience = 0.0, PATIENCE * len(module.text)
        self._engines: list[Any] = []  # they own the code, which another thread may be in: all are kept
        content = _kept(folder, self.text, OPTIMISED)
        self._load(OPTIMISED if content else QUICK, content)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """To be held while the code runs."""
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
    """The kernels' machine code for some choices, compiled at most once by this user.  Raises DialectError."""
    folder = cache_folder(
        "engine", hashlib.sha256("".join([*MAKERS.values(), sources_digest(roots)]).encode()).hexdigest()[:20]
    )
    module = _module(folder, roots, choices, precision)
    return Code(module, folder, roots)


def _module(
    folder: Path | None, roots: tuple[Kernel, ...], choices: Choices, precision: Precision
) -> print_llvm.Module:
    digest = hashlib.sha256(f"{precision} {choices} {[root.name for root in roots]}".encode()).hexdigest()
    path = folder / f"{digest[:20]}.ll" if folder else None
    content = read_sealed(path) if path else None
    if content is None:
        module = print_module(roots, choices, precision)
        content = json.dumps(module.words).encode() + b"\n" + module.text.encode()
        if path:
            write_sealed(path, content)
    words, _, text = content.partition(b"\n")
    return print_llvm.Module(text.decode(), tuple((kind, name) for kind, name in json.loads(words)))


def print_module(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> print_llvm.Module:
    """The kernels' LLVM IR.  No field is dropped: the memory is all that other runtimes make of it."""
    code = specialise(checked_functions(roots), [root.name for root in roots], dict(choices), precision, ())
    return print_llvm.print_llvm(code.functions, roots, precision)


def _path(folder: Path | None, text: str, level: int) -> Path | None:
    processor = (*_processor(), llvmlite.__version__, llvm.llvm_version_info, level)
    digest = hashlib.sha256(f"{processor}\0{text}".encode()).hexdigest()
    return folder / f"{digest[:20]}.o" if folder else None


def _kept(folder: Path | None, text: str, level: int) -> bytes | None:
    path = _path(folder, text, level)
    return read_sealed(path) if path else None


def _object(folder: Path | None, text: str, level: int) -> bytes:
    content = _kept(folder, text, level)
    if content is None:
        content = _target(level).emit_object(optimised(text, level))
        if path := _path(folder, text, level):
            write_sealed(path, content)
    return content


def optimised(text: str, level: int) -> Any:
    """The module after LLVM's passes."""
    target = _target(level)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    module.verify()
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=level))
    passes.getModulePassManager().run(module, passes)
    return module


@functools.cache
def _processor() -> tuple[str, str, str]:
    """Triple, name and features of this processor."""
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # a processor that LLVM cannot ask
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
        final: Callable[[], Any] | None = None  # of optimised code, which stays as it is

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
        steps: tuple[Kernel | None, Kernel | None, Kernel | None],
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
    """Of one or two arrays, as an entry's functions take them."""
    return [*(array.ctypes.data for array in given), *[None] * (2 - len(given))]
