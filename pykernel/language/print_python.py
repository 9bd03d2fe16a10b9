"""Print functions with folded choices as Python for Numba, which is the reference engine for checks.

The text does not depend on the values of numbers, or on sizes that can be read from the shape of an array in memory.
Other sizes are printed as literals.  Each function first takes the structs and configurations that it needs, and then
its numbers and arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Array, Bool, Config, Extent, Kernel, Precision, Real, Struct, Word
from pykernel.language.effects import effects
from pykernel.language.ir import (
    Assign,
    Binary,
    Call,
    Choice,
    Do,
    Element,
    Expr,
    Field,
    For,
    Function,
    Functions,
    If,
    Leave,
    Length,
    Literal,
    Local,
    Member,
    Named,
    Parameter,
    Return,
    Row,
    Statement,
    ToReal,
    Unary,
    walk,
)

MASK = 2**32 - 1
"""Mask for the 32 bits of a Word.  A Word is an int64 in this code, because Numba converts a sum of uint64 and int64 to
a float.  A product that overflows int64 still has the correct lower 32 bits."""

NEGATED = {"not": "not ", "-": "-"}

Part = type[Struct] | type[Config]
"""A struct or configuration.  A function takes its structs and configurations before its numbers and arrays."""


@dataclass(frozen=True)
class Source:
    """Python functions, callees first.

    texts: the text of each function.  needs: the structs and configurations that each function takes first.  constants,
    intrinsics: the globals that the functions use.
    """

    texts: Mapping[str, str]
    needs: Mapping[str, tuple[Part, ...]]
    kinds: Mapping[str, tuple[Any, ...]]  # the kind of the result, then the kinds of the numbers and arrays
    writes: Mapping[str, tuple[bool, ...]]  # for each number and array: whether the function writes to it
    constants: Mapping[str, Any]
    intrinsics: Mapping[str, Kernel]


def print_python(
    functions: Functions,
    structs: Sequence[type[Struct]],
    configs: Sequence[type[Config]],
    precision: Precision,
    capacities: Mapping[str, int],
) -> Source:
    """Return the functions' source.  ``python_name`` gives their names."""
    printer = _Printer(functions, structs, configs, precision, capacities)
    known = effects(functions)
    texts = {name: printer.function(f) for name, f in functions.items()}
    kinds = {name: (f.returns, *(kind for _, kind in f.params)) for name, f in functions.items()}
    writes = {name: tuple(param in known[name].params for param, _ in f.params) for name, f in functions.items()}
    return Source(texts, printer.needs, kinds, writes, printer.constants, printer.intrinsics)


def python_name(kernel: str) -> str:
    """Return the Python function's name for a kernel.  The name has a prefix, because a local variable may have the
    kernel's name.
    """
    return f"f_{kernel}"


def argument(part: Part) -> str:
    return f"s_{part.__name__}"


class _Printer:
    def __init__(
        self,
        functions: Functions,
        structs: Sequence[type[Struct]],
        configs: Sequence[type[Config]],
        precision: Precision,
        capacities: Mapping[str, int],
    ) -> None:
        self.precision, self.capacities = precision, capacities
        self.owners: dict[str, Part] = {name: config for config in configs for name in config.fields}
        self.sizes: dict[Extent, tuple[Part, str, int]] = {}  # extent -> (part, array, axis) that has this size
        parts: list[Part] = [*structs, *configs]
        for part in parts:
            for name, kind in part.fields.items():
                if isinstance(kind, Array) and name not in getattr(part, "scalars", ()):
                    for axis, extent in enumerate(kind.extents):
                        if isinstance(extent, Extent):
                            self.sizes.setdefault(extent, (part, name, axis))
        self.constants: dict[str, Any] = {"Real": precision.real, "int64": np.int64}
        self.names: dict[int, str] = {}  # by ``id``, because two constants may have the same name
        self.intrinsics: dict[str, Kernel] = {}
        self.needs: dict[str, tuple[Part, ...]] = {}
        for name, f in functions.items():  # callees first
            self.needs[name] = tuple(dict.fromkeys(part for node in walk(f.body) for part in self.needed(node)))

    def needed(self, node: Any) -> tuple[Part, ...]:
        match node:
            case Field(struct=struct):
                return (struct,)
            case Parameter(name=name):
                return (self.owners[name],)
            case Length(extent=extent) if extent in self.sizes:
                return (self.sizes[extent][0],)
            case Call(callee=callee) if callee.intrinsic is None:
                return self.needs[callee.name]
        return ()

    def function(self, f: Function) -> str:
        given = [*map(argument, self.needs[f.name]), *(name for name, _ in f.params)]
        return "\n".join([f"def {python_name(f.name)}({', '.join(given)}):", *self.block(f.body)])

    # ---- statements

    def block(self, body: tuple[Statement, ...]) -> list[str]:
        lines = [line for node in body for line in self.statement(node)] or ["pass"]
        return [f"    {line}" for line in lines]

    def statement(self, node: Statement) -> list[str]:
        match node:
            case Assign(target=target, value=value, op=op) if op and target.kind is Word:
                return [f"{self.place(target)} = ({self.of(target)} {op} {self.of(value)}) & {MASK}"]
            case Assign(target=target, value=value, op=op):
                return [f"{self.place(target)} {op}= {self.of(value)}"]
            case Do(call=call):
                return [self.of(call)]
            case Return(value=None):
                return ["return"]
            case Return(value=Expr() as value):
                return [f"return {self.of(value)}"]
            case Leave(word=word):
                return [word]
            case If(condition=condition, body=body, orelse=orelse):
                otherwise = ["else:", *self.block(orelse)] if orelse else []
                return [f"if {self.of(condition)}:", *self.block(body), *otherwise]
            case For(variable=variable, body=body):
                bounds = f"{self.of(node.start)}, {self.of(node.stop)}, {node.step}"
                return [f"for {variable} in range({bounds}):", *self.block(body)]
        raise TypeError(type(node).__name__)

    # ---- expressions

    def of(self, node: Expr) -> str:
        match node:
            case Literal(kind=kind, value=value):
                return f"Real({float(value)!r})" if kind is Real else str(bool(value) if kind is Bool else int(value))
            case Member(value=value):
                return str(int(value))
            case Local(name=name):
                return name
            case Parameter(name=name):
                return f"{argument(self.owners[name])}.{name}"
            case Named():
                return self.named(node)
            case Field(struct=struct, name=name):
                return f"{argument(struct)}.{name}"
            case Element(array=array):
                # narrow and unsigned integers become int64, because Numba converts some mixes of integer types to floats
                wide = array.kind.scalar.stored in ("", "<i4")
                return self.place(node) if wide else f"int64({self.place(node)})"
            case Row(array=array, index=index):
                return f"{self.of(array)}[{self.of(index)}]"
            case Length():
                return self.length(node)
            case Unary(op=op, operand=operand):
                return f"({NEGATED[op]}{self.of(operand)})"
            case Binary(kind=kind, op=op, left=left, right=right):
                text = f"({self.of(left)} {op} {self.of(right)})"
                return f"({text} & {MASK})" if kind is Word and op in ("+", "-", "*", "<<") else text
            case Choice(condition=condition, yes=yes, no=no):
                return f"({self.of(yes)} if {self.of(condition)} else {self.of(no)})"
            case ToReal(operand=operand):
                return f"Real({self.of(operand)})"
            case Call():
                return self.call(node)
        raise TypeError(type(node).__name__)

    def named(self, node: Named) -> str:
        name = self.names.setdefault(id(node.constant), f"c_{node.name}_{len(self.names)}")
        self.constants[name] = node.constant.value(self.precision)
        return name

    def place(self, node: Local | Element) -> str:
        """Return the text of a local or an element, which may be the target of an assignment."""
        if isinstance(node, Local):
            return node.name
        return f"{self.of(node.array)}[{', '.join(map(self.of, node.indices))}]"

    def length(self, node: Length) -> str:
        if node.table is not None:
            return str(len(node.table.constant.value(self.precision)))
        if node.extent in self.sizes:
            part, name, axis = self.sizes[node.extent]
            return f"{argument(part)}.{name}.shape[{axis}]"
        return str(node.extent.value(self.capacities) if isinstance(node.extent, Extent) else int(node.extent))

    def call(self, node: Call) -> str:
        given = [self.of(a) for a in node.args]
        if node.callee.intrinsic is not None:
            self.intrinsics[node.callee.name] = node.callee
            return f"i_{node.callee.name}({', '.join(given)})"
        parts = map(argument, self.needs[node.callee.name])
        return f"{python_name(node.callee.name)}({', '.join([*parts, *given])})"
