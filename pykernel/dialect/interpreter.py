"""Execute kernels as plain Python on NumPy's scalars, with checks."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.dialect.division import ratio
from pykernel.dialect.kernels import Kernel, reachable, real
from pykernel.dialect.memory import parts_of
from pykernel.dialect.types import Constant, Precision

RATIO = "/"
"""The name of ``ratio`` in a kernel's globals.  The name cannot clash, because it is not an identifier."""


class Checked:
    """An array that raises an error for operations that would be undefined in C."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def _position(self, key: Any) -> tuple[int, ...]:
        position = key if isinstance(key, tuple) else (key,)
        for axis, i in enumerate(position):
            if type(i) is not int or not 0 <= i < self.array.shape[axis]:
                raise IndexError(f"position {key!r} is not valid in an array of shape {self.array.shape}")
        return position

    def __getitem__(self, key: Any) -> Any:
        value = self.array[self._position(key)]
        if isinstance(value, np.ndarray):
            return Checked(value)
        return int(value) if _is_index(self.array.dtype) else value

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        value = int(value) if isinstance(value, IntEnum) else value
        wanted = int if _is_index(self.array.dtype) else self.array.dtype.type
        if type(value) is not wanted or len(position) != self.array.ndim:
            raise TypeError(f"a {type(value).__name__} cannot be stored in an array of {self.array.dtype}")
        if wanted is int and not (limits := np.iinfo(self.array.dtype)).min <= value <= limits.max:
            raise OverflowError(f"{value} does not fit in {self.array.dtype}")
        self.array[position] = value


def _is_index(dtype: np.dtype) -> bool:
    """Whether a number of this type becomes an Index when it is read: true for every integer type except Word."""
    return dtype.kind in "iu" and dtype != np.uint32


@functools.cache
def bind(k: Kernel, precision: Precision) -> Callable:
    """Return the kernel as a function of its structs, configurations and values.

    The function runs as plain Python.  Its arrays raise an error where the behaviour of C would be undefined: for a
    position outside the array, and for an integer that does not fit into the array's type.
    """
    reachable([k])  # raises TypeError if a kernel calls itself
    return _checked(_bound(k, precision))


@functools.cache
def _bound(k: Kernel, precision: Precision) -> Callable:
    if k.intrinsic is not None:
        return k.intrinsic(precision, False)
    if k.choice:
        return _alternatives(k, precision)
    function = k.function
    space: dict[str, Any] = {"__builtins__": function.__globals__["__builtins__"], "__name__": function.__module__}
    for name, value in k.globals_used().items():
        if isinstance(value, Kernel):
            value = _bound(value, precision)
        elif isinstance(value, Constant):
            value = Checked(value.value(precision)) if value.is_table else value.value(precision)
        elif value is real:
            value = precision.real
        space[name] = value
    code = function.__code__
    if k is not ratio:
        code = _divided(k.source, str(k.file)).get((code.co_name, code.co_firstlineno), code)
        if RATIO in code.co_names:
            space[RATIO] = _bound(ratio, precision)
    bound = types.FunctionType(code, space, function.__name__)
    bound.__qualname__ = f"{function.__qualname__}__{precision}"
    bound.__module__, bound.__doc__ = function.__module__, function.__doc__
    return bound


class _Divisions(ast.NodeTransformer):
    """Replaces every ``/`` with a call of ``ratio``, as the other engines do."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        call = ast.Call(ast.Name(RATIO, ast.Load()), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


@functools.cache
def _divided(source: bytes, file: str) -> dict[tuple[str, int], types.CodeType]:
    """Return a dict that maps (name, first line) to the code of each function in a file, with its divisions replaced."""
    found = [compile(_Divisions().visit(ast.parse(source)), file, "exec", dont_inherit=True)]
    for code in found:
        found += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    return {(code.co_name, code.co_firstlineno): code for code in found}


def _alternatives(k: Kernel, precision: Precision) -> Callable:
    """Return the function of a kernel that only chooses which other kernel to call."""
    table = {
        member: _bound(called, precision)
        for called, members in zip(k.callees(), k.members, strict=True)
        for member in members
    }
    (place,) = (i for i, kind in enumerate(k.params.values()) for part in parts_of(kind) if k.choice in part.fields)
    return lambda *values: table[getattr(values[place], k.choice)](*values)


def _checked(function: Callable) -> Callable:
    def wrap(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return Checked(value)
        if isinstance(value, types.SimpleNamespace):
            return types.SimpleNamespace(**{name: wrap(field) for name, field in vars(value).items()})
        if isinstance(value, tuple):
            return type(value)(*map(wrap, value)) if hasattr(value, "_fields") else tuple(map(wrap, value))
        return value

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(wrap, args))

    return run
