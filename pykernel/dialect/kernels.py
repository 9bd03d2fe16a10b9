"""Functions of the dialect, and which of them call which."""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pykernel.dialect.types import Precision


@dataclass(eq=False)
class Kernel:
    """A function of the dialect."""

    function: types.FunctionType
    placeholder: bool = False
    template: bool = False  # of kernels around a model, see ``around``
    dsp: str = ""  # the file of runtime_c that computes the same where the CPU has instructions for it
    intrinsic: Callable[[Precision, bool], Callable] | None = None
    names: Mapping[str, Kernel] = field(default_factory=dict)  # what globals stand for, in place of the file's own
    params: dict[str, Any] = field(init=False)
    returns: Any = field(init=False)
    source: bytes = field(init=False, repr=False)
    # of a kernel that cannot be imported: what an unpickling process calls, and with what
    rebuild: tuple[Any, ...] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        # now: the file may be edited while the process goes on with what it has read
        self.source = self.file.read_bytes().replace(b"\r\n", b"\n") if self.file.exists() else b""
        annotations = inspect.get_annotations(self.function, eval_str=True)
        self.returns = annotations.pop("return", None)
        self.params = annotations
        functools.update_wrapper(self, self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.names:
            raise TypeError(f"{self.name} with other names cannot be pickled; pickle what it is made of")
        return self.rebuild or (_imported, (self.function.__module__, self.function.__qualname__))

    def renamed(self, names: Mapping[str, Kernel]) -> Kernel:
        """The same function, for which these globals stand for other kernels."""
        twin = object.__new__(Kernel)
        # not made anew, which would read a file that may have changed since
        twin.__dict__.update({**self.__dict__, "names": {**self.names, **names}})
        return twin

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def file(self) -> Path:
        return Path(self.function.__code__.co_filename)

    def globals_used(self) -> dict[str, Any]:
        space = {**self.function.__globals__, **self.names}
        return {name: space[name] for name in self._global_names if name in space}

    @functools.cached_property
    def _global_names(self) -> dict[str, None]:
        # not co_names: a field may have the name of a kernel
        code = dis.get_instructions(self.function.__code__)
        return dict.fromkeys(step.argval for step in code if step.opname == "LOAD_GLOBAL")

    def callees(self) -> list[Kernel]:
        return [value for value in self.globals_used().values() if isinstance(value, Kernel)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.name} is source, for Python and C; call bind({self.name}, FLOAT32) and use what it returns"
        )


def kernel(function: Callable) -> Kernel:
    """Mark a function of the dialect; every parameter and result needs an annotation."""
    return Kernel(function)  # type: ignore[arg-type]


def with_dsp(file: str) -> Callable[[Callable], Kernel]:
    """Mark a function of the dialect for which C has a second text, for CPUs with Arm's DSP instructions.

    file: of runtime_c, with a function of the same name and parameters, which must compute the same bits.
    """
    return lambda function: Kernel(function, dsp=file)  # type: ignore[arg-type]


def placeholder(function: Callable) -> Kernel:
    """Mark a kernel that stands for a user's; ``Program.with_kernel`` puts that in its place."""
    return Kernel(function, placeholder=True)  # type: ignore[arg-type]


def intrinsic(implement: Callable[[Precision, bool], Callable]) -> Callable[[Callable], Kernel]:
    """Mark a function that each runtime brings itself: ``implement(precision, jit)`` here, ``runtime_c/NAME.h`` in C."""
    return lambda function: Kernel(function, intrinsic=implement)  # type: ignore[arg-type]


def real(value: float) -> float:
    """The number (a literal, or an Index) as a Real; replaced when a kernel is bound."""
    raise TypeError("real() is only for use inside kernels")


def _imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def substitute(k: Kernel, stand_ins: Mapping[Kernel, Kernel]) -> Kernel:
    """The kernel with each placeholder, wherever it is called on the way down, replaced; itself if none is.

    One kernel and one replacement give one result, so that it is compiled and checked once.
    """
    return _substituted(k, tuple(stand_ins.items()))


@functools.cache
def _substituted(k: Kernel, stand_ins: tuple[tuple[Kernel, Kernel], ...]) -> Kernel:
    for placeholder, own in stand_ins:
        if k is placeholder:
            return own
    called = {name: value for name, value in k.globals_used().items() if isinstance(value, Kernel)}
    names = {name: new for name, old in called.items() if (new := _substituted(old, stand_ins)) is not old}
    return k.renamed(names) if names else k


unroll = range
"""range, for a loop so short and so often run that C compilers are asked to write it out."""


def reachable(roots: Iterable[Kernel]) -> list[Kernel]:
    """Every kernel that the roots call, callees first."""
    order: list[Kernel] = []
    done: set[Kernel] = set()

    def visit(k: Kernel, path: tuple[Kernel, ...]) -> None:
        if k in path:
            raise TypeError(f"{k.name} calls itself; the dialect has no recursion")
        if k not in done:
            for callee in k.callees():
                visit(callee, (*path, k))
            done.add(k)
            order.append(k)

    for root in roots:
        visit(root, ())
    return order
