"""Specialised functions to C99 text that reads a model where it is stored: element by element, through a callback.

A snapshot must be checked before any part of it is copied into the model, and there is no RAM for a second model.  The
kernel that checks it is the program's ``valid``.  This kernel only reads fields.  In the C that is printed here, its
arrays are byte positions in the snapshot.
"""

from __future__ import annotations

from typing import Any

from pykernel.dialect import Array, Index, Int8, Int16, Real, Scalar, Uint8, Uint16, Word
from pykernel.gen.ir import Binary, Call, Element, Expr, Field, Function, Length, Local, Row, walk
from pykernel.gen.print_c import Printer

NARROW = {Int16: "int16", Uint16: "uint16", Int8: "int8", Uint8: "uint8"}


def reader(scalar: Scalar) -> str:
    """The end of the name of the template's function that reads an element of this type."""
    return "real" if scalar is Real else NARROW.get(scalar, "count")


class StoredPrinter(Printer):
    """As ``Printer``, but functions take a NAME_stored_t instead of the model, and byte positions instead of arrays."""

    def touches_struct(self, f: Function) -> bool:
        return any(isinstance(kind, Array) for _, kind in f.params) or any(
            isinstance(n, Field)
            or (isinstance(n, Call) and n.callee.name in self.functions and self.takes_struct(n.callee.name))
            for n in walk(f.body)
        )

    def pointer_of(self, f: Function) -> str:
        return "stored"

    def signature(self, f: Function) -> str:
        params = [f"{self.prefix}_stored_t *{self.pointer_of(f)}"] if self.takes_struct(f.name) else []
        for name, kind in f.params:
            params.append(f"{'uint32_t' if isinstance(kind, Array) else self.type(kind)} {name}")
        return f"{self.type(f.returns)} {self.name(f.name)}({', '.join(params) or 'void'})"

    def expression(self, node: Expr) -> str:
        if isinstance(node, Field):
            return f"{self.macro}_PLACE({node.name})"
        if isinstance(node, Row):
            if not isinstance(node.array, Field):
                raise TypeError(
                    f"{self.current.name} passes a table on; a kernel that judges a state reads it in place"
                )
            width = self.extent(node.kind.extents[0])
            return f"{self.prefix}_stored_row({self.expression(node.array)}, {self.expression(node.index)}, {width})"
        return super().expression(node)

    def element(self, node: Element) -> str:
        array = node.array
        if not (isinstance(array, Field) or (isinstance(array, Local) and isinstance(array.kind, Array))):
            return super().element(node)
        kind: Any = array.kind
        call = f"{self.prefix}_stored_{reader(kind.scalar)}({self.pointer}, {self.expression(array)}, {self._position(node)})"
        return f"(uint32_t){call}" if kind.scalar is Word else call

    def _position(self, node: Element) -> str:
        """The position of an element in its array, counted row by row."""
        kind: Any = node.array.kind
        if len(node.indices) == 1:
            return self.expression(node.indices[0])
        row, column = node.indices
        begin = Binary(node.line, Index, "*", row, Length(node.line, Index, kind.extents[1]))
        return self.expression(Binary(node.line, Index, "+", begin, column))
