"""Use generated C code from Python.  The code is compiled to a shared library, which is loaded with cffi."""

from __future__ import annotations

import functools
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from pykernel.dialect import Memory, Real
from pykernel.gen.compilers import Compiler, compile_c, write_sources
from pykernel.gen.project import Project
from pykernel.language.primitives import C_TYPES

SNAPSHOT_CALLS = ("save", "load", "store", "restore", "wipe")
"""The functions that NAME_snapshot.c defines."""
COUNTED = "void counted(int32_t rows, const float *values, int16_t *x)"


class CModel:
    """A model in generated C code, compiled for the host.  It has its own memory, and methods like those of HostModel.

    patch: a function that is applied to the text of each C file before it is compiled (for negative controls).
    whole: whether to compile the snapshot functions immediately.  By default, they are compiled when one of them is
    first called, because they take nearly half of the compilation time and most comparisons do not need them.
    """

    def __init__(
        self,
        project: Project,
        compiler: Compiler,
        flags: Sequence[str] = ("-O2",),
        patch: Callable[[str], str] = lambda text: text,
        whole: bool = False,
    ) -> None:
        self.spec, self.compiler, self.flags = project.spec, compiler, tuple(flags)
        self.memory: Memory = self.spec.memory(project.drop)
        folder = Path(tempfile.mkdtemp(prefix="pykernel-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.sources = write_sources(folder, {name: patch(text) for name, text in project.sources.items()})
        self._driver = write_sources(folder, {"replay.c": project.replay})
        self._ffi = cffi.FFI()
        self._ffi.cdef(_declarations(project))
        core = [source for source in self.sources if source.name != f"{project.spec.name}_snapshot.c"]
        self.library = folder / "model.so"
        self._lib: Any = self._compiled(self.library, self.sources if whole else core)
        if whole:
            self._whole = self._lib
        self.call("init")

    def _compiled(self, library: Path, sources: Sequence[Path]) -> Any:
        compile_c(self.compiler, [*sources, *self._driver], library, self.flags)
        return self._ffi.dlopen(str(library))

    @functools.cached_property
    def _whole(self) -> Any:
        """The library with the snapshot functions.  Like the library without them, it works on this object's memory."""
        return self._compiled(self.library.with_name("whole.so"), self.sources)

    def function(self, name: str) -> Any:
        library = self._whole if name in SNAPSHOT_CALLS else self._lib
        return getattr(library, f"{self.spec.name}_{name}")

    def pointer(self, array: np.ndarray, kind: str = "void *") -> Any:
        return self._ffi.cast(kind, array.ctypes.data)

    def call(self, name: str, *args: Any) -> Any:
        """Call NAME_<name> on this model's memory."""
        return self.function(name)(self.pointer(self.memory.buffer, f"{self.spec.name}_t *"), *args)

    def callback(self, name: str, function: Callable[..., int]) -> Any:
        """Wrap a Python function as a C callback of the function type NAME_<name>.

        Keep a reference to the callback for as long as the C code may call it.
        """
        return self._ffi.callback(f"{self.spec.name}_{name}", function)

    def _numbers(self, array: np.ndarray) -> Any:
        return self.pointer(array, f"{C_TYPES[array.dtype.str[1:]]} *")

    def prequential(
        self, x: np.ndarray, y: np.ndarray, learn: bool = True, predict: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it.  Returns (answers, statuses), like HostModel.prequential.

        If the main question is a reading, it is called after the row is learned.
        y: the labels; if there are none, an array of shape (rows, 0).
        predict: whether to predict.  If the model does not learn, it always predicts, and the statuses are those of the
        predictions.
        """
        program, real = self.spec.program, self.spec.real
        x, y = np.ascontiguousarray(x, real.dtype), np.ascontiguousarray(y, program.label_dtype(real))
        answers = program.answers(program.asks, len(x), self.memory)
        statuses = np.zeros(len(x), np.int32)
        learn, predict = learn or not program.learns, predict or not program.learns
        out = self._numbers(answers) if predict else self._ffi.NULL
        states = self._numbers(statuses) if learn else self._ffi.NULL
        self.call("replay", len(x), self._numbers(x), self._numbers(y), out, states)
        return answers[:, 0] if answers.shape[1] == 1 else answers, statuses

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Call NAME_<question> for each row.  Returns two arrays, like HostModel.ask: the answers, of shape (samples, values),
        and the statuses.
        """
        x = np.ascontiguousarray(x, self.spec.real.dtype)
        answers = self.spec.program.answers(question, len(x), self.memory)
        statuses = np.zeros(len(x), np.int32)
        self.call(f"replay_{question}", len(x), self._numbers(x), self._numbers(answers), self._numbers(statuses))
        return answers, statuses

    def visit(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Call NAME_<name> with each row, and with the row's label if the function takes labels.  Returns the statuses,
        like HostModel.visit.
        """
        program, real = self.spec.program, self.spec.real
        x, y = np.ascontiguousarray(x, real.dtype), np.ascontiguousarray(y, program.label_dtype(real))
        statuses = np.zeros(len(x), np.int32)
        for t, (row, label) in enumerate(zip(x, y, strict=True)):
            alone = program.label is None or name in program.promises
            told = () if alone else (self._numbers(label) if y.ndim > 1 else label.item(),)
            statuses[t] = self.call(name, self._numbers(row), *told)
        return statuses

    def counts(self, values: np.ndarray) -> np.ndarray:
        """Convert floats to counts with NAME_counts, compiled so that it may use fused multiply-add instructions.

        values: an array of shape (rows, numbers of a sample).
        """
        name, (rows, width), made = self.spec.name, values.shape, np.zeros(values.shape, np.int16)
        each = f"for (int32_t i = 0; i < rows; i++) {{ {name}_counts(values + (i * {width}), x + (i * {width})); }}"
        text = f'#include "{name}_counts.h"\n{COUNTED};\n{COUNTED}\n{{\n{each}\n}}\n'
        source, library = self.library.with_name("counts.c"), self.library.with_name("counts.so")
        compile_c(
            self.compiler,
            write_sources(source.parent, {source.name: text}),
            library,
            (*self.flags, "-ffp-contract=fast"),
        )
        self._ffi.dlopen(str(library)).counted(rows, self._numbers(values), self._numbers(made))
        return made

    def read(self, name: str) -> tuple[np.ndarray, int]:
        """Call NAME_<name>.  Returns the array of values that it writes, and its status, like HostModel.read."""
        values = self.spec.program.reading(name, self.memory)
        return values, int(self.call(name, self._numbers(values)))


def _declarations(project: Project) -> str:
    name, program = project.spec.name, project.spec.program
    real = C_TYPES[project.spec.real.dtype.str[1:]]
    label = "int32_t" if program.is_int16 or program.label_kind == "class" else real
    main = real if program.answer.scalar is Real else "int32_t"
    asked = {q: real if kind.scalar is Real else "int32_t" for q, kind in program.questions.items()}
    lines = [
        f"{COUNTED};",
        f"typedef struct {name}_s {name}_t;",
        f"typedef int32_t (*{name}_write_fn)(void *, int32_t, uint32_t, const uint8_t *, uint32_t);",
        f"typedef int32_t (*{name}_read_fn)(void *, int32_t, uint32_t, uint8_t *, uint32_t);",
        f"void {name}_replay({name}_t *s, int64_t count, const {real} *x, const {label} *y, {main} *answers, int32_t *statuses);",
    ]
    lines += [
        f"void {name}_replay_{question}({name}_t *s, int64_t count, const {real} *x, {answer} *answers, int32_t *statuses);"
        for question, answer in asked.items()
    ]
    lines += [re.sub(r"\[[^]]*\]", "[]", str(call)) + ";" for call in project.calls.values()]
    return "\n".join(lines)
