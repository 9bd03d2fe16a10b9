"""The C file that saves and restores a model: what its template needs.

A snapshot must be checked before any part of it is copied into the model, and there is no RAM for a second model.  So
the program's kernel ``valid``, which only reads fields, is printed once more: as C99 that reads a model where it is
stored, element by element, through a callback.  Its arrays are byte positions in the snapshot.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pykernel.dialect import (
    Array,
    Bool,
    Extent,
    Index,
    Int8,
    Int16,
    Kernel,
    Layout,
    Ranged,
    Real,
    Scalar,
    Struct,
    Uint8,
    Uint16,
    Word,
    end_of,
)
from pykernel.engine.engines import choices_of
from pykernel.gen.calls import Argument
from pykernel.gen.functions import specialised_functions
from pykernel.gen.ir import (
    Binary,
    DialectError,
    Element,
    Expr,
    Field,
    For,
    Function,
    If,
    Kind,
    Length,
    Literal,
    Local,
    Parameter,
    Return,
    Row,
    Statement,
    Unary,
    walk,
)
from pykernel.gen.model import data_of, printer_of
from pykernel.gen.primitives import unmarked
from pykernel.gen.print_c import Printer
from pykernel.host.snapshot import HEADER, MAGIC, VERSION
from pykernel.spec.model import Spec

NARROW = {Int16: "int16", Uint16: "uint16", Int8: "int8", Uint8: "uint8"}


def reader(scalar: Scalar) -> str:
    """The end of the name of the template's function that reads an element of this type."""
    return "real" if scalar is Real else NARROW.get(scalar, "count")


class StoredPrinter(Printer):
    """As ``Printer``, but functions take a NAME_stored_t instead of the model, and byte positions instead of arrays."""

    def touches_struct(self, f: Function) -> bool:
        return any(isinstance(kind, Array) for _, kind in f.params) or super().touches_struct(f)

    def pointer_of(self, f: Function) -> str:
        return "stored"

    def pointer_parameter(self, f: Function) -> Argument:
        return Argument("stored", f"{self.prefix}_stored_t", "*", written=True)

    def parameter(self, f: Function, name: str, kind: Kind) -> Argument:
        return Argument(name, "uint32_t" if isinstance(kind, Array) else self.type(kind))

    def expression(self, node: Expr) -> str:
        match node:
            case Field(name=name):
                return f"{self.macro}_PLACE({name})"
            case Row(array=Field() as array, index=index):
                width = self.extent(node.kind.extents[0])
                return f"{self.prefix}_stored_row({self.expression(array)}, {self.expression(index)}, {width})"
            case Row():
                raise TypeError(
                    f"{self.current.name} passes a table on; a kernel that judges a state reads it in place"
                )
        return super().expression(node)

    def element(self, node: Element) -> str:
        array, kind = node.array, node.array.kind
        if not (isinstance(array, Field) or (isinstance(array, Local) and isinstance(kind, Array))):
            return super().element(node)
        position = node.indices[0]
        if len(node.indices) == 2:  # row by row
            begin = Binary(node.line, Index, "*", position, Length(node.line, Index, kind.extents[1]))
            position = Binary(node.line, Index, "+", begin, node.indices[1])
        given = ", ".join([self.pointer, self.expression(array), self.expression(position)])
        cast = "(uint32_t)" if kind.scalar is Word else ""
        return f"{cast}{self.prefix}_stored_{reader(kind.scalar)}({given})"


def snapshot_context(
    spec: Spec, root: Kernel, layout: Layout, unread: frozenset[str], annotated: bool = False
) -> dict[str, Any]:
    """The context of the template ``snapshot.c``.  root: the program's ``valid``.  unread: fields that the C lacks."""
    functions = specialised_functions((root,), choices_of(spec.config), spec.real).functions
    if missing := sorted(unread & {n.name for f in functions.values() for n in walk(f.body) if isinstance(n, Field)}):
        raise DialectError(
            root.file,
            root.function.__code__.co_firstlineno,
            f"{root.name} reads {missing[0]}, which this model does without; read it only where the choice that needs it is made",
        )
    printer, judge = printer_of(spec, StoredPrinter, {}, annotated=annotated), functions[root.name]
    functions = functions | {root.name: replace(judge, body=(*_within_ranges(spec, layout), *judge.body))}
    printed = ["\n".join(lines) for lines in printer.all(functions).values()]
    data = data_of(spec, printer, functions)
    # functions that are printed again here get other names, because both C files may be compiled as one
    copies = [printer.name(n).removeprefix(f"{spec.name}_") for n in (*functions, *printer.primitives, "crc32")]
    copies += [table["name"].removeprefix(f"{spec.name}_") for table in data["tables"]]
    pattern = re.compile(rf"\b{spec.name}_(?=(?:{'|'.join(copies)})\b)")

    def renamed(text: str) -> str:
        return pattern.sub(f"{spec.name}_snapshot_", text)

    padding = [
        (slot.name, reader(slot.array.scalar), at)
        for slot in layout.slots
        if not slot.struct and slot.offset < spec.program.state_bytes(layout)
        for at in range(slot.shape[0])
    ]
    read = {what for _, what, _ in padding} | set(re.findall(r"_stored_(\w+)\(", "\n".join(printed)))
    return {
        **data,
        "magic": int.from_bytes(MAGIC, "little"),
        "version": VERSION,
        "header": HEADER.size,
        "tables": [table | {"declaration": renamed(table["declaration"])} for table in data["tables"]],
        "primitives": [renamed(unmarked(text)) for text in printer.runtime()],
        "functions": list(map(renamed, printed)),
        "reads": [what for what in ("row", "real", "count", *NARROW.values()) if what in read],
        "narrow": [(what, printer.type(scalar), scalar.dtype(spec.real).itemsize) for scalar, what in NARROW.items()],
        "valid": renamed(printer.name(root.name)),
        "padding": padding,
    }


def _within_ranges(spec: Spec, layout: Layout) -> tuple[Statement, ...]:
    """Statements that refuse a state if a number is outside of the range that its field declares."""
    kept, found = {slot.name for slot in layout.slots}, list[Statement]()
    for struct in spec.program.persistent:
        for name, given in struct.ranges.items():
            if name in kept:
                found += _refusal(struct, name, *(_end(bound, given, spec) for bound in (given.least, given.most)))
    return tuple(found)


def _end(bound: Any, given: Ranged, spec: Spec) -> Expr:
    """One end of a range as an expression.  Parameters and capacities keep their names."""
    array = given.kind if isinstance(given.kind, Array) else given.kind[1]
    scalar = array.scalar.value
    if isinstance(bound, str) and "*" not in bound:
        parameter = Parameter(0, scalar, bound.removeprefix("-"))
        return Unary(0, scalar, "-", parameter) if bound.startswith("-") else parameter
    if isinstance(bound, Extent) and scalar is not Real:
        return Length(0, Index, bound)
    value = end_of(bound, spec.capacities, spec.config, spec.real)
    return Literal(0, scalar, float(value) if scalar is Real else int(value))


def _refusal(struct: type[Struct], name: str, low: Expr, high: Expr) -> tuple[Statement, ...]:
    """``for i in range(len(field)): if not field[i] >= low: return False``, and the same for the high end.

    An array of two dimensions has two nested loops.
    """
    array, scalar = struct.fields[name], name in struct.scalars
    loops = [] if scalar else list(zip("ij", array.extents, strict=False))
    at = tuple(Local(0, Index, counter) for counter, _ in loops) or (Literal(0, Index, 0),)
    element = Element(0, array.scalar.value, Field(0, array, struct, name), at)
    no = (Return(0, Literal(0, Bool, False)),)
    # not "if (.. < low)": NaN must fail
    tests = (Binary(0, Bool, ">=", element, low), Binary(0, Bool, "<=", element, high))
    made: tuple[Statement, ...] = tuple(If(0, Unary(0, Bool, "not", test), no, ()) for test in tests)
    for counter, extent in reversed(loops):
        assert extent is not ...
        made = (For(0, counter, Literal(0, Index, 0), Length(0, Index, extent), 1, made),)
    return made
