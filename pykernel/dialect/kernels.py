"""Functions of the dialect, and the calls between them."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from opcode import opmap
from pathlib import Path
from typing import Any

from pykernel.dialect.types import Array, Precision

LOAD_GLOBAL, EXTENDED_ARG = opmap["LOAD_GLOBAL"], opmap["EXTENDED_ARG"]


@dataclass(eq=False)
class Kernel:
    """A function of the dialect."""

    function: types.FunctionType
    placeholder: bool = False
    dsp: str = ""  # a file in runtime_c that has the same function, written with Arm's DSP instructions
    intrinsic: Callable[[Precision, bool], Callable] | None = None
    names: Mapping[str, Kernel] = field(default_factory=dict)  # name of a global in the file -> kernel that replaces it
    alias: str = ""  # the kernel's name, if it differs from the function's name
    words: Mapping[str, str] = field(default_factory=dict)  # word of the docstring -> word that replaces it
    choice: str = ""  # the parameter that decides which of the kernels in ``names`` is called; see ``chosen``
    members: tuple[tuple[IntEnum, ...], ...] = ()  # for each of ``names``, the values of ``choice`` that select it
    params: dict[str, Any] = field(init=False)
    returns: Any = field(init=False)
    source: bytes = field(init=False, repr=False)
    # for a kernel that cannot be imported: the function that makes the kernel when it is unpickled, and the arguments
    # of this function
    rebuild: tuple[Any, ...] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        # the file is read now, because it may be edited later, while this process keeps the functions that it has
        # imported
        self.source = self.file.read_bytes().replace(b"\r\n", b"\n") if self.file.exists() else b""
        annotations = inspect.get_annotations(self.function, eval_str=True)
        self.returns = annotations.pop("return", None)
        self.params = annotations
        functools.update_wrapper(self, self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.names and not (self.choice and _imported(self.function.__module__, self.name) is self):
            raise TypeError(
                f"a copy of {self.name} that calls other kernels cannot be pickled; pickle the kernels from which it is made"
            )
        return self.rebuild or (_imported, (self.function.__module__, self.function.__qualname__))

    def twin(self, **changed: Any) -> Kernel:
        """Return a copy of the kernel in which the given fields have other values."""
        twin = object.__new__(Kernel)
        # __init__ is not called, because it would read the file, which may have changed
        twin.__dict__.update({**self.__dict__, **changed})
        return twin

    @property
    def doc(self) -> str:
        text = inspect.getdoc(self.function) or ""
        for word, meaning in self.words.items():
            text = text.replace(word, meaning)
        return text

    @property
    def name(self) -> str:
        return self.alias or self.function.__name__

    @property
    def file(self) -> Path:
        return Path(self.function.__code__.co_filename)

    def globals_used(self) -> dict[str, Any]:
        own, space = self.names, self.function.__globals__
        return {
            name: own[name] if name in own else space[name]
            for name in self._global_names
            if name in own or name in space
        }

    @functools.cached_property
    def _global_names(self) -> dict[str, None]:
        # co_names is not enough: it also has the names of fields, and a field may have the name of a kernel.
        # dis.get_instructions is too slow: it would take a third of the time that importing all kernels takes.
        found: dict[str, None] = {}
        if self.choice:
            return dict.fromkeys(self.names)
        code, high = self.function.__code__, 0
        for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
            argument = high | low
            high = argument << 8 if operation == EXTENDED_ARG else 0
            if operation == LOAD_GLOBAL:
                found[code.co_names[argument >> 1]] = None  # the lowest bit of the argument says whether a call follows
        return found

    def callees(self) -> list[Kernel]:
        return [value for value in self.globals_used().values() if isinstance(value, Kernel)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.name} cannot be called directly; call bind({self.name}, FLOAT32), and then the function that "
            "bind returns"
        )


def kernel(function: Callable) -> Kernel:
    """Mark a function of the dialect.  Every parameter and the result need annotations."""
    return Kernel(function)  # type: ignore[arg-type]


def with_dsp(file: str) -> Callable[[Callable], Kernel]:
    """Mark a function of the dialect that has a second implementation in C, for CPUs with Arm's DSP instructions.

    file: a file in runtime_c.  It has a C function with the same name and parameters, which must compute the same bits.
    """
    return lambda function: Kernel(function, dsp=file)  # type: ignore[arg-type]


def placeholder(function: Callable) -> Kernel:
    """Mark a placeholder for another kernel: a rule's own kernel (see ``substitute``), or a user's kernel (see
    ``Program.with_kernel``)."""
    return Kernel(function, placeholder=True)  # type: ignore[arg-type]


def chosen(choice: str, table: Mapping[Any, Kernel], otherwise: Kernel | None = None) -> Callable[[Callable], Kernel]:
    """Mark a function without a body, which calls one of several kernels.  A choice in the model's configuration decides
    which kernel is called.

    choice: the choice's name, such as "metric".  table: member of the choice's enumeration -> kernel.  otherwise: the kernel
    for members that are not in the table.  All of these kernels take and return the same types.  When the C code is
    generated, the choice is known, and only one of the calls remains.
    """
    kinds = {type(member) for member in table}
    if len(kinds) != 1:
        raise TypeError(f"a table for {choice} must have the members of one enumeration, not of {len(kinds)}")
    (kind,) = kinds
    called: dict[Kernel, list[IntEnum]] = {}
    for member in kind:
        callee = table.get(member, otherwise)
        if callee is None:
            raise TypeError(
                f"{choice} can be {member.name}, for which the table has no kernel; add a kernel, or pass the argument 'otherwise'"
            )
        called.setdefault(callee, []).append(member)
    if otherwise in called:
        # the last kernel is called without a condition, so ``otherwise`` comes last
        called[otherwise] = called.pop(otherwise)

    def mark(function: Callable) -> Kernel:
        made = Kernel(
            function,  # type: ignore[arg-type]
            names={callee.name: callee for callee in called},
            choice=choice,
            members=tuple(map(tuple, called.values())),
        )
        for callee in called:
            if [*callee.params.values()] != [*made.params.values()] or callee.returns != made.returns:
                raise TypeError(f"{callee.name} and {made.name}, which calls it, must have the same types")
        return made

    return mark


def intrinsic(implement: Callable[[Precision, bool], Callable]) -> Callable[[Callable], Kernel]:
    """Mark a function that each engine and the C code implement in their own way.  ``implement(precision, jit)``
    returns the Python function.  The C function is in ``runtime_c``, in NAME.h or NAME_PRECISION.h, unless C
    needs only a cast.
    """
    return lambda function: Kernel(function, intrinsic=implement)  # type: ignore[arg-type]


def real(value: float) -> float:
    """Convert a literal or an Index to a Real.  This function is replaced when a kernel is bound."""
    raise TypeError("real() is only for use inside kernels")


def _imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def substitute(k: Kernel, stand_ins: Mapping[Any, Any], alias: str = "") -> Kernel:
    """Return a copy of the kernel in which stand-ins replace some of the objects that it uses, directly or through the
    kernels that it calls.

    If the kernel uses none of the replaced objects, the result is the kernel itself.
    stand_ins: replaced object -> replacement.  Three things can be replaced: a kernel, such as a placeholder; a type of
    parameters (a ``Model``, a ``Variable``, or the scalar type of arrays); and a word in docstrings.
    alias: another name for the copy, for a program that contains the kernel twice.
    The same kernel with the same stand-ins gives the same object, so that the copy is compiled and checked only once.
    """
    found = _substituted(k, tuple(stand_ins.items()))
    return _named(found, alias) if alias else found


@functools.cache
def _substituted(k: Kernel, stand_ins: tuple[tuple[Any, Any], ...]) -> Kernel:
    others = dict(stand_ins)
    if k in others:
        return _substituted(others[k], stand_ins)
    called = {name: value for name, value in k.globals_used().items() if isinstance(value, Kernel)}
    names = {name: new for name, old in called.items() if (new := _substituted(old, stand_ins)) is not old}
    kinds = {name: _kind(kind, others) for name, kind in k.params.items()}
    returns = _kind(k.returns, others)
    words = {
        word: meaning for word, meaning in stand_ins if isinstance(word, str) and word in (k.function.__doc__ or "")
    }
    same = returns is k.returns and all(kinds[name] is kind for name, kind in k.params.items())
    if same and not names and not words:
        return k
    return k.twin(names={**k.names, **names}, params=kinds, returns=returns, words={**k.words, **words})


def _kind(kind: Any, others: Mapping[Any, Any]) -> Any:
    if isinstance(kind, Array) and kind not in others and kind.scalar in others:
        return Array(others[kind.scalar], kind.extents)
    return others.get(kind, kind)


@functools.cache
def _named(k: Kernel, alias: str) -> Kernel:
    return k.twin(alias=alias)


unroll = range
"""The same as ``range``, for a short loop that runs very often.  The generated C asks the compiler to unroll the loop."""


def reachable(roots: Iterable[Kernel]) -> list[Kernel]:
    """Return the roots and every kernel that they call, callees first."""
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
