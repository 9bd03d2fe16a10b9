"""Compute the context of the template for the C file that saves and restores a model.

A snapshot must be checked before any part of it is copied into the model, and there is no RAM for a second model.  So
the program's kernel ``valid``, which only reads fields, is printed as C99 that reads the stored model element by
element, from memory or through a callback.  In this code, arrays are byte positions in the model.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

from pykernel.algorithms.vectors import all_zero
from pykernel.dialect import (
    INTEGERS,
    Array,
    Index,
    Int8,
    Int16,
    Kernel,
    Layout,
    Real,
    Scalar,
    Uint8,
    Uint16,
    Word,
    ends_of,
)
from pykernel.dialect.memory import Slot
from pykernel.engine.engines import choices_of
from pykernel.gen.model import data_of, printer_of
from pykernel.host.snapshot import HEADER, MAGIC, VERSION
from pykernel.language.acsl import INSIDE
from pykernel.language.calls import Argument
from pykernel.language.functions import specialised_functions
from pykernel.language.ir import (
    Binary,
    DialectError,
    Element,
    Expr,
    Field,
    Function,
    Kind,
    Length,
    Local,
    Row,
    Statement,
    walk,
)
from pykernel.language.primitives import unmarked
from pykernel.language.print_c import Printer
from pykernel.spec.model import Spec

NARROW = {Int16: "int16", Uint16: "uint16", Int8: "int8", Uint8: "uint8"}


def reader(scalar: Scalar) -> str:
    """Return the suffix of the template's function that reads an element of this type."""
    return "real" if scalar is Real else NARROW.get(scalar, "count")


class StoredPrinter(Printer):
    """Like ``Printer``, but functions take a NAME_stored_t instead of the model, and byte positions instead of arrays."""

    def touches_struct(self, f: Function) -> bool:
        return any(isinstance(kind, Array) for _, kind in f.params) or super().touches_struct(f)

    def pointer_of(self, f: Function) -> str:
        return "stored"

    def said_before(self, node: Statement) -> list[str]:
        """Leave out the assertions about indices, because a reader takes any position, and the stored tables have longer
        rows than a kernel's arrays.
        """
        return [text for text in super().said_before(node) if not text.startswith(f"assert {INSIDE}:")]

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
                    f"{self.current.name} passes a row of a table to another function, but the C code that checks snapshots "
                    f"cannot do this; read the row's elements in {self.current.name} itself"
                )
        return super().expression(node)

    def element(self, node: Element) -> str:
        array, kind = node.array, node.array.kind
        if not (isinstance(array, Field) or (isinstance(array, Local) and isinstance(kind, Array))):
            return super().element(node)
        row, position = node.indices[0], node.indices[-1]
        if len(node.indices) == 2 and getattr(row, "value", None) != 0:  # a matrix is stored row by row
            begin = Binary(node.line, Index, "*", row, Length(node.line, Index, kind.extents[1]))
            position = Binary(node.line, Index, "+", begin, position)
        given = ", ".join([self.pointer, self.expression(array), self.expression(position)])
        cast = "(uint32_t)" if kind.scalar is Word else ""
        return f"{cast}{self.prefix}_stored_{reader(kind.scalar)}({given})"


def snapshot_context(
    spec: Spec, root: Kernel, layout: Layout, unread: frozenset[str], annotated: bool = False
) -> dict[str, Any]:
    """Return the context of the template ``snapshot.c``.  root: the program's ``valid``.  unread: fields that the C
    code lacks.
    """
    blanks = _blanks(spec, layout)
    functions = specialised_functions(
        (root, *([all_zero] if blanks else [])), choices_of(spec.config), spec.real
    ).functions
    if missing := sorted(unread & {n.name for f in functions.values() for n in walk(f.body) if isinstance(n, Field)}):
        raise DialectError(
            root.file,
            root.function.__code__.co_firstlineno,
            f"{root.name} reads {missing[0]}, which this model does not have; read the field only inside an if that tests the "
            "same choice as the code that uses the field",
        )
    printer = printer_of(spec, StoredPrinter, {}, annotated=annotated)
    printed = ["\n".join(lines) for lines in printer.all(functions).values()]
    data = data_of(spec, printer, functions)
    # functions that are printed again here get other names, because both C files may be compiled as one
    copies = [printer.name(n).removeprefix(f"{spec.name}_") for n in (*functions, *printer.primitives)]
    pattern = re.compile(rf"\b{spec.name}_(?=(?:{'|'.join(copies)})\b)")

    def renamed(text: str) -> str:
        return pattern.sub(f"{spec.name}_snapshot_", text)

    ranges = _ranges(spec, layout, printer)
    read = {*(kind["reader"] for kind in ranges), *re.findall(r"_stored_(\w+)\(", "\n".join(printed))}
    if blanks:
        read.add("count")  # the check of ``blanks`` reads counts
    if read & {*NARROW.values()}:
        read.add("natural")
    return {
        **data,
        "magic": int.from_bytes(MAGIC, "little"),
        "version": VERSION,
        "header": HEADER.size,
        "primitives": [renamed(unmarked(text)) for text in printer.runtime()[:-1]],  # all but CRC-32, which NAME.c has
        "functions": list(map(renamed, printed)),
        "reads": [what for what in ("row", "real", "count", "natural", *NARROW.values()) if what in read],
        "narrow": [(what, printer.type(scalar), scalar.dtype(spec.real).itemsize) for scalar, what in NARROW.items()],
        "valid": renamed(printer.name(root.name)),
        # empty if ``valid`` reads no field, so that only ranges are checked
        "valid_takes": "stored" if printer.takes_struct(root.name) else "",
        "ranges": ranges,
        "blanks": blanks,
        "all_zero": renamed(printer.name(all_zero.name)),
    }


def _ranges(spec: Spec, layout: Layout, printer: Printer) -> list[dict[str, Any]]:
    """Return tables of the numbers in a model: their positions, how many there are, and the ends of their declared ranges.

    One table has the integers with ranges from 0, the widest type first.  Another table has the reals with ranges from
    0, followed by the reals with ranges that are symmetric about 0.  These two tables have no lower ends.
    """
    declared = {name: ranged for struct in spec.program.persistent for name, ranged in struct.ranges.items()}
    groups: dict[tuple[str, Scalar], list[dict[str, Any]]] = {}
    for slot in _kept(spec, layout):
        ranged, scalar = declared.get(slot.name), slot.array.scalar
        if ranged or not slot.struct:  # padding is zero
            low, high = ends_of(ranged, spec.capacities, spec.config, spec.real) if ranged else (0, 0)
            ends = {"low": printer.number(scalar, low), "high": printer.number(scalar, high)}
            if scalar is not Real and low == 0:
                group, ends = "natural", {"high": f"{int(high)}u"}
            elif scalar is Real and low in (0, -high):
                group, ends = "from_zero" if low == 0 else "around_zero", {"high": ends["high"]}
            else:
                group = str(scalar).lower()
            _add(groups.setdefault((group, scalar), []), slot, ends)
    naturals = {scalar: rows for scalar in INTEGERS if (rows := groups.pop(("natural", scalar), None))}
    positive, around = (groups.pop((group, Real), []) for group in ("from_zero", "around_zero"))
    tables: list[dict[str, Any]] = [
        {
            "what": group,
            "reader": reader(scalar),
            "type": "int32_t" if scalar in NARROW else printer.type(scalar),
            "cast": "(uint32_t)" if scalar is Word else "",
            "rows": rows,
            "low": "",
            "width": "",
        }
        for (group, scalar), rows in groups.items()
    ]
    if positive or around:
        zero, low = printer.number(Real, 0), "-high"
        if positive:
            low = f"(k < {len(positive)}u) ? {zero} : -high" if around else zero
        row = {"what": "size", "reader": "real", "type": printer.real, "cast": "", "rows": positive + around}
        tables.insert(0, row | {"low": low, "width": ""})
    if naturals:
        *sizes, last = (f"{scalar.dtype(spec.real).itemsize}u" for scalar in naturals)
        begins = itertools.accumulate(map(len, naturals.values()))
        width = "".join(f"(k < {begin}u) ? {size} : " for begin, size in zip(begins, sizes, strict=False)) + last
        rows = [row for rows in naturals.values() for row in rows]
        row = {"what": "natural", "reader": "natural", "type": "uint32_t", "cast": "", "low": ""}
        tables.append(row | {"rows": rows, "width": width})
    return tables


def _blanks(spec: Spec, layout: Layout) -> list[dict[str, Any]]:
    """Return the positions of reals that are zero while a count is zero."""
    after = spec.program.waiting({slot.name for slot in layout.slots})
    rows: list[dict[str, Any]] = []
    for slot in _kept(spec, layout):
        if slot.name in after:
            _add(rows, slot, {"after": after[slot.name]})
    return rows


def _kept(spec: Spec, layout: Layout) -> list[Slot]:
    return [slot for slot in layout.slots if slot.offset < spec.program.state_bytes(layout)]


def _add(rows: list[dict[str, Any]], slot: Slot, ends: dict[str, str]) -> None:
    """Add the field to the last row if it follows that row's fields and has the same ``ends``; otherwise add a row for it."""
    if rows and rows[-1]["end"] == slot.offset and rows[-1]["told"] == ends:
        rows[-1]["count"] += math.prod(slot.shape)
        rows[-1]["end"] += slot.nbytes
        rows[-1]["fields"].append(slot.name)
    else:
        rows.append(
            {"told": ends, "count": math.prod(slot.shape), "end": slot.offset + slot.nbytes, "fields": [slot.name]}
        )
