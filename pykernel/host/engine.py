"""The engine of the host: kernels printed as LLVM IR and compiled by llvmlite, in a second for the first of its kind.

    bound = BoundCode(compiled(roots, choices, precision), memory, config)
    bound.rows(x, statuses, ask=predict, answers=answers, learn=update, y=y)
    status = bound.call(refresh)

Choices are folded before anything is compiled, so that nothing is compiled that a model does not use; sizes and numbers are
read at run time, so that one compilation serves all models of the same choices and precision.  Both the IR and the machine
code are kept on disk: the IR under a digest of all that it is made from, the machine code under one of the IR and of what
compiled it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import pykernel.gen.print_llvm as print_llvm
from pykernel.dialect import Array, Config, Extent, Kernel, Memory, Precision, Real, Struct, is_choice, sources_digest
from pykernel.gen.functions import checked_functions
from pykernel.gen.specialise import specialise
from pykernel.sealed import cache_folder, read_sealed, write_sealed

if TYPE_CHECKING:
    from pykernel.dialect.program import Program, Settings

Choices = tuple[tuple[str, int], ...]

OPTIMISE = 2
"""LLVM's level; at 3 it takes longer to compile, and the code is no faster."""
GEN = hashlib.sha256(
    b"\0".join(
        path.name.encode() + b"\0" + path.read_bytes() for path in sorted(Path(print_llvm.__file__).parent.glob("*.py"))
    )
).hexdigest()
"""Of what makes IR of kernels, as it was when this process began."""


# ----------------------------------------------------------------------------------------------------- compiling


class Code:
    """Machine code of some kernels: their addresses, and the words that it reads."""

    def __init__(self, module: print_llvm.Module, content: bytes, roots: Sequence[Kernel]) -> None:
        self.words = module.words
        self._jit = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())  # owns the code: keep it
        self._jit.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._jit.finalize_object()
        self.addresses = {k: self._jit.get_function_address(print_llvm.public_name(k)) for k in roots}
        self.rows = ctypes.CFUNCTYPE(None, *print_llvm.ROWS_TYPES)(self._jit.get_function_address(print_llvm.ROWS))


@functools.cache
def compiled(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> Code:
    """The kernels' machine code for some choices, compiled at most once by this user.  Raises DialectError."""
    folder = cache_folder("engine", hashlib.sha256((GEN + sources_digest(roots)).encode()).hexdigest()[:20])
    module = _module(folder, roots, choices, precision)
    return Code(module, _object(folder, module.text), roots)


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


def _object(folder: Path | None, text: str) -> bytes:
    processor = (*_processor(), llvmlite.__version__, llvm.llvm_version_info, OPTIMISE)
    digest = hashlib.sha256(f"{processor}\0{text}".encode()).hexdigest()
    path = folder / f"{digest[:20]}.o" if folder else None
    content = read_sealed(path) if path else None
    if content is None:
        content = _target().emit_object(optimised(text))
        if path:
            write_sealed(path, content)
    return content


def optimised(text: str) -> Any:
    """The module after LLVM's passes."""
    target = _target()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    module.verify()
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=OPTIMISE))
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


def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, name, features = _processor()
    made = llvm.Target.from_triple(triple)
    return made.create_target_machine(
        cpu=name, features=features, opt=OPTIMISE, reloc="pic", codemodel="jitdefault", jit=True
    )


# ------------------------------------------------------------------------------------------------------- running


def bound_code(program: Program, precision: Precision, memory: Memory, config: Settings) -> BoundCode:
    """A model's machine: its entries, what judges a restored state, and what the self-test runs."""
    entries = [entry.kernel for entry in program.entries_for(config)]
    roots = (*entries, *([program.valid] if program.valid else []), program.rehearse)
    choices = tuple((name, int(getattr(config, name))) for name, kind in program.parameters.items() if is_choice(kind))
    return BoundCode(compiled(roots, choices, precision), memory, config)


class BoundCode:
    """Machine code with a memory and a configuration to work on, both of which it keeps alive.

    Arguments are arrays as kernels take them, of the very type and shape: ValueError is raised for any other.
    """

    def __init__(self, code: Code, memory: Memory, config: Any) -> None:
        self.code, self.memory, self.config = code, memory, config
        self._words = np.array([self._word(*word) for word in code.words] or [0], np.uint64)
        self._table: int = self._words.ctypes.data
        self._functions: dict[Kernel, Any] = {}

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

    def call(self, kernel: Kernel, *args: Any) -> Any:
        """What the kernel returns; a number's place is taken by the number."""
        kinds = values_taken(kernel)
        if len(args) != len(kinds):
            raise TypeError(f"{kernel.name} takes {len(kinds)} arguments, not {len(args)}")
        given = [
            self._array(kernel.name, value, kind, ()) if isinstance(kind, Array) else self._number(value, kind)
            for value, kind in zip(args, kinds, strict=True)
        ]
        if kernel not in self._functions:
            pointers = [ctypes.c_void_p] * (1 + max(len(kinds), 2))
            real = ctypes.c_float if self.memory.precision.dtype.itemsize == 4 else ctypes.c_double
            result = real if kernel.returns is Real else ctypes.c_int32
            self._functions[kernel] = ctypes.CFUNCTYPE(result, *pointers)(self.code.addresses[kernel])
        padding = [None] * (2 - len(given))
        result = self._functions[kernel](self._table, *(array.ctypes.data for array in given), *padding)
        return self.memory.precision.real(result) if kernel.returns is Real else result

    def rows(
        self,
        x: np.ndarray,
        statuses: np.ndarray,
        *,
        ask: Kernel | None = None,
        answers: np.ndarray | None = None,
        learn: Kernel | None = None,
        y: np.ndarray | None = None,
        look: Kernel | None = None,
        states: np.ndarray | None = None,
        first: int = 0,
        delay: int = 0,
    ) -> None:
        """For each row from ``first`` on: ask for it, learn the one ``delay`` rows before, read a state.

        answers, states, statuses: for each row from ``first`` on.  A status is that of learning, 0 where there was none;
        where nothing is learned, that of the answer.
        """
        if not 0 <= first <= len(x) or delay < 0:
            raise ValueError(
                f"first {first}, delay {delay}; for {len(x)} rows first is from 0 to {len(x)}, delay 0 or more"
            )
        later = len(x) - first
        if self._array("statuses", statuses, None, (later,)).dtype != np.int32:
            raise ValueError("statuses are int32")
        sample, label, answer, state = [], [], [], []
        if ask is not None:
            kinds = values_taken(ask)
            sample.append(kinds[0])
            answer = [self._array("answers", answers, kinds[1], (later,))]
        if learn is not None:
            kinds = values_taken(learn)
            sample.append(kinds[0])
            label = [self._array("y", y, kind, (len(x),)) for kind in kinds[1:]]
        if look is not None:
            state = [self._array("states", states, values_taken(look)[0], (later,))]
        for kind in sample:
            self._array("x", x, kind, (len(x),))

        def place(found: Sequence[np.ndarray]) -> tuple[int | None, int]:
            return (found[0].ctypes.data, found[0].strides[0]) if found and len(found[0]) else (None, 0)

        self.code.rows(
            self._table,
            *(None if kernel is None else self.code.addresses[kernel] for kernel in (ask, learn, look)),
            first,
            len(x),
            delay,
            *place([x]),
            *place(label),
            *place(answer),
            *place(state),
            statuses.ctypes.data,
        )

    def _number(self, value: Any, kind: Any) -> np.ndarray:
        return np.array(value, self.memory.precision.dtype if kind is Real else np.int32)

    def _array(self, name: str, array: Any, kind: Any, rows: tuple[int, ...]) -> np.ndarray:
        """The array, if it has ``rows`` of the kind.  kind: None for numbers of any type."""
        scalar = kind.scalar if isinstance(kind, Array) else kind
        dtype = None if kind is None else self.memory.precision.dtype if scalar is Real else np.dtype(np.int32)
        own = kind.extents if isinstance(kind, Array) else ()
        fits = isinstance(array, np.ndarray) and array.flags.c_contiguous and dtype in (None, array.dtype)
        if fits and own == (...,):
            fits = array.ndim == len(rows) + 1 and array.shape[:-1] == rows
        elif fits:
            fits = array.shape == (*rows, *(kind.shape(self.memory.capacities) if own else ()))
        if not fits:
            found = f"{array.dtype}, shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(
                f"{name} must be an array of {kind or 'numbers'} for {rows} rows, in C's order, not {found}"
            )
        return array


def values_taken(kernel: Kernel) -> list[Any]:
    """The kinds of a kernel's parameters that carry values, behind the structs and configurations."""
    kinds = kernel.params.values()
    return [kind for kind in kinds if not (isinstance(kind, type) and issubclass(kind, (Struct, Config)))]
