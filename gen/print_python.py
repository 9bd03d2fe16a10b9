"""Functions with folded choices to Python that Numba compiles: the reference with which the generated C is compared.

One text serves every number, and every size that is the shape of an array in memory.  Other sizes are printed as
literals.  Each function takes the structs and configurations that it needs, and then its numbers and arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Array, Bool, Config, Extent, Kernel, Precision, Real, Struct, Word
from pykernel.gen.effects import effects
from pykernel.gen.ir import (
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
"""A Word is an int64 in this code, because Numba converts a sum of uint64 and int64 to a float.  A product that
overflows int64 still has the correct lower 32 bits."""

Part = type[Struct] | type[Config]
"""A struct or configuration: a function takes these before its numbers and arrays."""


@dataclass(frozen=True)
class Source:
    """Python functions, callees first.

    texts: the text of each function.  needs: the structs and configurations that it takes first.  constants,
    intrinsics: the globals that the functions use.
    """

    texts: Mapping[str, str]
    needs: Mapping[str, tuple[Part, ...]]
    kinds: Mapping[str, tuple[Any, ...]]  # kind of the result, then kinds of the numbers and arrays
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
    """The functions' source; ``python_name`` says what each is called."""
    printer = _Printer(functions, structs, configs, precision, capacities)
    texts = {name: printer.function(f) for name, f in functions.items()}
    kinds = {name: (f.returns, *(kind for _, kind in f.params)) for name, f in functions.items()}
    written = {name: effect.params for name, effect in effects(functions).items()}
    writes = {name: tuple(param in written[name] for param, _ in f.params) for name, f in functions.items()}
    return Source(texts, printer.needs, kinds, writes, printer.constants, printer.intrinsics)


def python_name(kernel: str) -> str:
    """The Python function's name for a kernel.

    It has a prefix, because a local variable may have the kernel's name.
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
        self.functions, self.precision, self.capacities = functions, precision, capacities
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
        self.named: dict[str, Any] = {}
        self.intrinsics: dict[str, Kernel] = {}
        self.needs: dict[str, tuple[Part, ...]] = {}
        for name, f in functions.items():  # callees first
            self.needs[name] = tuple(dict.fromkeys(part for node in walk(f.body) for part in self.needed(node)))

    def needed(self, node: Any) -> tuple[Part, ...]:
        if isinstance(node, Field):
            return (node.struct,)
        if isinstance(node, Parameter):
            return (self.owners[node.name],)
        if isinstance(node, Length) and node.extent in self.sizes:
            return (self.sizes[node.extent][0],)
        if isinstance(node, Call) and node.callee.intrinsic is None:
            return self.needs[node.callee.name]
        return ()

    def function(self, f: Function) -> str:
        given = [*map(argument, self.needs[f.name]), *(name for name, _ in f.params)]
        return "\n".join([f"def {python_name(f.name)}({', '.join(given)}):", *self.block(f.body)])

    # ---- statements

    def block(self, body: tuple[Statement, ...]) -> list[str]:
        lines = [line for node in body for line in getattr(self, f"do_{type(node).__name__}")(node)] or ["pass"]
        return [f"    {line}" for line in lines]

    def do_Assign(self, node: Assign) -> list[str]:
        if node.op and node.target.kind is Word:
            return [f"{self.place(node.target)} = ({self.of(node.target)} {node.op} {self.of(node.value)}) & {MASK}"]
        return [f"{self.place(node.target)} {node.op}= {self.of(node.value)}"]

    def do_Do(self, node: Do) -> list[str]:
        return [self.of(node.call)]

    def do_Return(self, node: Return) -> list[str]:
        return ["return" if node.value is None else f"return {self.of(node.value)}"]

    def do_Leave(self, node: Leave) -> list[str]:
        return [node.word]

    def do_If(self, node: If) -> list[str]:
        lines = [f"if {self.of(node.condition)}:", *self.block(node.body)]
        return [*lines, "else:", *self.block(node.orelse)] if node.orelse else lines

    def do_For(self, node: For) -> list[str]:
        bounds = f"{self.of(node.start)}, {self.of(node.stop)}, {node.step}"
        return [f"for {node.variable} in range({bounds}):", *self.block(node.body)]

    # ---- expressions

    def of(self, node: Expr) -> str:
        return getattr(self, f"of_{type(node).__name__}")(node)

    def of_Literal(self, node: Literal) -> str:
        if node.kind is Bool:
            return str(bool(node.value))
        return f"Real({float(node.value)!r})" if node.kind is Real else f"{int(node.value)}"

    def of_Member(self, node: Member) -> str:
        return str(int(node.value))

    def of_Local(self, node: Local) -> str:
        return node.name

    def of_Parameter(self, node: Parameter) -> str:
        return f"{argument(self.owners[node.name])}.{node.name}"

    def of_Named(self, node: Named) -> str:
        # by ``id``: two files may use one name for different constants
        name = next((n for n, c in self.named.items() if c is node.constant), "")
        if not name:
            name = f"c_{node.name}_{len(self.named)}"
            self.named[name] = node.constant
            self.constants[name] = node.constant.value(self.precision)
        return name

    def of_Field(self, node: Field) -> str:
        return f"{argument(node.struct)}.{node.name}"

    def place(self, node: Local | Element) -> str:
        """The target of an assignment."""
        if isinstance(node, Local):
            return node.name
        return f"{self.of(node.array)}[{', '.join(map(self.of, node.indices))}]"

    def of_Element(self, node: Element) -> str:
        # Numba converts some mixes of integer types to floats
        wide = node.array.kind.scalar.stored in ("", "<i4")
        return self.place(node) if wide else f"int64({self.place(node)})"

    def of_Row(self, node: Row) -> str:
        return f"{self.of(node.array)}[{self.of(node.index)}]"

    def of_Length(self, node: Length) -> str:
        if node.table is not None:
            return str(len(node.table.constant.value(self.precision)))
        if node.extent in self.sizes:
            part, name, axis = self.sizes[node.extent]
            return f"{argument(part)}.{name}.shape[{axis}]"
        return str(node.extent.value(self.capacities) if isinstance(node.extent, Extent) else int(node.extent))

    def of_Unary(self, node: Unary) -> str:
        return f"({'not ' if node.op == 'not' else '-'}{self.of(node.operand)})"

    def of_Binary(self, node: Binary) -> str:
        if node.kind is Word and node.op in ("+", "-", "*", "<<"):
            return f"(({self.of(node.left)} {node.op} {self.of(node.right)}) & {MASK})"
        return f"({self.of(node.left)} {node.op} {self.of(node.right)})"

    def of_Choice(self, node: Choice) -> str:
        return f"({self.of(node.yes)} if {self.of(node.condition)} else {self.of(node.no)})"

    def of_ToReal(self, node: ToReal) -> str:
        return f"Real({self.of(node.operand)})"

    def of_Call(self, node: Call) -> str:
        given = [self.of(a) for a in node.args]
        if node.callee.intrinsic is not None:
            self.intrinsics[node.callee.name] = node.callee
            return f"i_{node.callee.name}({', '.join(given)})"
        parts = map(argument, self.needs[node.callee.name])
        return f"{python_name(node.callee.name)}({', '.join([*parts, *given])})"
