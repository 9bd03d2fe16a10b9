"""Print the C code of one model: functions, memory and parameters.  ``pykernel.gen.project`` puts the code into files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pykernel.dialect import Layout, is_choice
from pykernel.dialect.program import Entry, Program
from pykernel.host.identity import Identity, identity, made_up_number, specialised
from pykernel.language.c_text import comment
from pykernel.language.ir import DialectError, Functions
from pykernel.language.primitives import LEARNED_LOOPS
from pykernel.language.print_c import Printer
from pykernel.language.ranges import prove
from pykernel.language.read import member_comments
from pykernel.language.widths import Widths
from pykernel.spec.model import Spec


@dataclass(frozen=True)
class ModelCode:
    """The C code of one model's functions and of their data, not yet in files."""

    entries: list[Entry]
    functions: Functions
    layout: Layout
    printer: Printer
    printed: dict[str, list[str]]
    parameters: list[dict[str, str]]
    constants: list[dict[str, str]]
    tables: list[dict[str, Any]]
    slots: list[dict[str, Any]]
    whose: Identity


def printer_of(
    spec: Spec, kind: type[Printer], public: dict[str, str], marks: bool = False, annotated: bool = False
) -> Printer:
    """Return a printer for a model's functions.  annotated: whether the printer writes annotations for a proof, as comments."""
    program = spec.program
    return kind(
        spec.name,
        spec.real,
        frozenset().union(*(struct.scalars for struct in program.structs)),
        public,
        choices={n: kind(getattr(spec.config, n)) for n, kind in program.parameters.items() if is_choice(kind)},
        statuses=program.statuses,
        marks=marks,
        widths=Widths(spec.capacities, spec.config),
        annotated=annotated,
    )


def data_of(spec: Spec, printer: Printer, functions: Functions) -> dict[str, list[dict[str, Any]]]:
    """Return the parameters, constants and tables that these functions use, in the form that the templates take."""
    docs = {name: text for config in spec.program.configs for name, text in member_comments(config).items()}
    return printer.data(functions, spec.config, docs)


def model_code(spec: Spec, annotated: bool = False) -> ModelCode:
    """Print a model's functions and the data that they need.  Raises DialectError."""
    program, config = spec.program, spec.config
    code, entries = specialised(spec), program.entries_for(config)
    public = {entry.kernel.name: entry.name for entry in entries}
    if spec.real.is_int16:
        prove(code.functions, [*public, made_up_number(spec).name], program.structs, config, spec.capacities, spec.real)
    whose = identity(spec)
    layout = spec.memory(whose.drop).layout
    printer = printer_of(spec, Printer, public, marks=True, annotated=annotated)
    printed = printer.all(code.functions)
    for entry in entries:
        last = [*entry.kernel.params][-1]
        if entry.name in program.questions and last not in printer.known[entry.kernel.name].params:
            raise DialectError(
                entry.kernel.file,
                entry.kernel.function.__code__.co_firstlineno,
                f"{entry.kernel.name} is a question, but never writes to {last}, the array for its answer",
            )
    return ModelCode(
        entries,
        code.functions,
        layout,
        printer,
        printed,
        **data_of(spec, printer, code.functions),
        slots=_slots(layout, program, printer),
        whose=whose,
    )


def _slots(layout: Layout, program: Program, printer: Printer) -> list[dict[str, Any]]:
    docs = {name: text for struct in program.structs for name, text in member_comments(struct).items()}
    headings = {struct.__name__: comment((struct.__doc__ or "").strip().splitlines()[0]) for struct in program.structs}
    docs[""] = "always zero: keeps the size a multiple of the largest member"
    first = {slot.struct: slot for slot in reversed(layout.slots)}
    slots: list[dict[str, Any]] = []
    for slot in layout.slots:
        scalar = slot.array.scalar
        # no cast, because C++ compilers warn about C-style casts
        extents = [printer.extent(e, "(1L * %s)") for e in slot.array.extents]
        shape = "" if slot.scalar else "".join(f"[{e}]" for e in extents)
        slots.append(
            {
                "name": slot.name,
                "type": printer.type(scalar),
                "declaration": f"{printer.type(scalar)} {slot.name}{shape}",
                "doc": comment(docs.get(slot.name if slot.struct else "", "")),
                "heading": headings.get(slot.struct, "") if slot is first[slot.struct] else "",
                "offset": slot.offset,
                "scalar": slot.scalar,
                "shape": slot.shape,
                "extents": extents,
                "loop": LEARNED_LOOPS + 2 * len(slots),
            }
        )
    return slots


def bare(code: str) -> str:
    """Replace each run of comments and white space in C code with one space."""
    return re.sub(r"(/\*.*?\*/|\s)+", " ", code, flags=re.DOTALL)
