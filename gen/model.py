"""The C of one model before it is put into files: functions, memory, parameters, and the hash of the configuration."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.algorithms.revisions import revision_of
from pykernel.algorithms.selftest import made_up, made_up_count
from pykernel.dialect import Kernel, Layout, ends_of, is_choice
from pykernel.dialect.program import Entry, Program
from pykernel.engine.engines import choices_of
from pykernel.gen.functions import specialised_functions
from pykernel.gen.ir import DialectError, Functions, Parameter, walk
from pykernel.gen.primitives import LEARNED_LOOPS
from pykernel.gen.print_c import Printer, comment
from pykernel.gen.ranges import prove
from pykernel.gen.read import member_comments
from pykernel.gen.specialise import Specialised, reached_from
from pykernel.gen.widths import Widths
from pykernel.spec.model import Spec


@dataclass(frozen=True)
class ModelCode:
    """The C of one model's functions, and of the data that they need; not yet in files."""

    entries: list[Entry]
    functions: Functions
    unread: frozenset[str]  # fields that no function reads; the C does not have them
    layout: Layout
    printer: Printer
    printed: dict[str, list[str]]
    parameters: list[dict[str, str]]
    constants: list[dict[str, str]]
    tables: list[dict[str, Any]]
    slots: list[dict[str, Any]]
    config_hash: int  # 32 bits: NAME_CONFIG_HASH
    state_kind: int  # 32 bits: NAME_STATE_KIND

    @property
    def drop(self) -> tuple[str, ...]:
        return tuple(sorted(self.unread))


def made_up_number(spec: Spec) -> Kernel:
    """The kernel that generates the self-test's pseudo-random numbers."""
    return made_up_count if spec.program.is_int16 else made_up


def specialised(spec: Spec) -> Specialised:
    """The functions that one model needs."""
    program = spec.program
    roots = (*(entry.kernel for entry in program.entries_for(spec.config)), made_up_number(spec))
    fields = tuple(name for struct in program.structs for name in struct.fields)
    return specialised_functions(roots, choices_of(spec.config), spec.real, fields)


def printer_of(
    spec: Spec, kind: type[Printer], public: dict[str, str], marks: bool = False, annotated: bool = False
) -> Printer:
    """A printer for a model's functions.  annotated: it prints what a proof needs to know, as comments."""
    program, widths = spec.program, Widths(spec.capacities, spec.config)
    scalars = frozenset().union(*(struct.scalars for struct in program.structs))
    return kind(
        spec.name,
        spec.real,
        scalars,
        public,
        choices={n: kind(getattr(spec.config, n)) for n, kind in program.parameters.items() if is_choice(kind)},
        statuses=program.statuses,
        marks=marks,
        widths=widths,
        annotated=annotated,
    )


def data_of(spec: Spec, printer: Printer, functions: Functions) -> dict[str, list[dict[str, Any]]]:
    """The parameters, constants and tables that some functions of a model use, as the templates take them."""
    docs = {name: text for config in spec.program.configs for name, text in member_comments(config).items()}
    return printer.data(functions, spec.config, docs)


def model_code(spec: Spec, annotated: bool = False) -> ModelCode:
    """Print a model's functions and the data that they need.  Raises DialectError."""
    program, config = spec.program, spec.config
    code, entries = specialised(spec), program.entries_for(config)
    public = {entry.kernel.name: entry.name for entry in entries}
    if spec.real.is_int16:
        prove(code.functions, [*public, made_up_number(spec).name], program.structs, config, spec.capacities, spec.real)
    layout = spec.memory(tuple(sorted(code.unread))).layout
    printer = printer_of(spec, Printer, public, marks=True, annotated=annotated)
    printed = printer.all(code.functions)
    for entry in entries:
        last = [*entry.kernel.params][-1]
        if entry.name in program.questions and last not in printer.known[entry.kernel.name].params:
            raise DialectError(
                entry.kernel.file,
                entry.kernel.function.__code__.co_firstlineno,
                f"{entry.kernel.name} is a question, but never writes its answer, {last}",
            )
    whose = identity(spec)
    return ModelCode(
        entries,
        code.functions,
        code.unread,
        layout,
        printer,
        printed,
        **data_of(spec, printer, code.functions),
        slots=_slots(layout, program, printer),
        config_hash=whose.config_hash,
        state_kind=whose.state_kind,
    )


def _slots(layout: Layout, program: Program, printer: Printer) -> list[dict[str, Any]]:
    docs = {name: text for struct in program.structs for name, text in member_comments(struct).items()}
    headings = {struct.__name__: comment((struct.__doc__ or "").strip().splitlines()[0]) for struct in program.structs}
    docs[""] = "always zero: keeps the size a multiple of the largest member"
    first = {slot.struct: slot for slot in reversed(layout.slots)}
    slots: list[dict[str, Any]] = []
    for slot in layout.slots:
        scalar = slot.array.scalar
        extents = [printer.extent(e, "(1L * %s)") for e in slot.array.extents]  # C++ warns of casts in a header
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
    """C without comments, on one line."""
    return re.sub(r"(/\*.*?\*/|\s)+", " ", code, flags=re.DOTALL)


# ------------------------------------------------------------------------------- which models a state is valid for


@dataclass(frozen=True)
class Identity:
    """Facts about a model, by name, that decide which states it may take, and which bits it computes.

    meaning: facts about the layout and the meaning of the numbers in memory.  rest: all other facts that decide the
    bits.
    """

    drop: tuple[str, ...]  # fields that the C does not have
    meaning: Mapping[str, str]
    rest: Mapping[str, str]

    @property
    def state_kind(self) -> int:
        """NAME_STATE_KIND.

        Two models with the same value accept each other's states, if the states' numbers are valid.
        """
        return _hash_of(self.meaning)

    @property
    def config_hash(self) -> int:
        """NAME_CONFIG_HASH.  Two models with the same value compute the same bits."""
        return _hash_of({**self.meaning, **self.rest})


def _hash_of(facts: Mapping[str, str]) -> int:
    text = "\n".join(f"{name} = {facts[name]}" for name in sorted(facts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def identity(spec: Spec) -> Identity:
    """The facts that identify the states of this model.

    These do not count: the text of the algorithms' source, the model's name, parameters that only the self-test reads,
    and options for the compiler.  Instead of the text, each algorithm has a revision number, which is raised whenever
    its bits change.  For a custom kernel every byte of its file counts, because the kernel has no revision number.
    """
    program, config, precision = spec.program, spec.config, spec.real
    code = specialised(spec)
    drop = tuple(sorted(code.unread))
    layout = spec.memory(drop).layout
    reached = reached_from(code.functions, [entry.kernel.name for entry in program.entries_for(config)])
    read = {n.name for f in reached.values() for n in walk(f.body) if isinstance(n, Parameter)}
    tunable = frozenset().union(*(each.tunable for each in program.configs))
    unseen = frozenset().union(*(each.unseen for each in program.configs))
    revisions = {name: revision_of(name) for name in spec.algorithms}

    meaning: dict[str, str] = {"precision": spec.precision, "label": spec.label_kind}
    meaning |= {f"capacity {name}": str(size) for name, size in spec.capacities.items()}
    meaning |= {f"meaning of {name}": str(revision.meaning) for name, revision in revisions.items()}
    meaning |= {
        f"field {slot.name}": f"{slot.array.scalar} {slot.shape} at {slot.offset}"
        for slot in layout.slots
        if slot.struct and slot.offset < program.hashed_bytes(layout)
    }
    if spec.custom is not None:
        meaning["custom kernel"] = hashlib.sha256(spec.custom.source).hexdigest()

    rest = {f"revision of {name}": str(revision.bits) for name, revision in revisions.items()}
    for owner in program.persistent:
        for name in set(owner.ranges) - set(drop):
            low, high = ends_of(owner.ranges[name], spec.capacities, config, precision)
            rest[f"range of {name}"] = f"{_exact(low)} to {_exact(high)}"
    parameters = {k: told for k, told in _parameters(program, config, read).items() if k not in unseen}
    meaning |= {name: told for name, told in parameters.items() if name not in tunable}
    rest |= {name: told for name, told in parameters.items() if name in tunable}
    return Identity(drop, meaning, rest)


def _parameters(program: Program, config: Any, read: set[str]) -> dict[str, str]:
    """The choices that are made, and the numbers that the code reads."""
    found = {}
    for name, kind in program.parameters.items():
        value = getattr(config, name)
        if is_choice(kind) and value:  # so a new choice that is off does not make older states invalid
            found[name] = kind(value).name if issubclass(kind, IntEnum) else "true"
        elif not is_choice(kind) and name in read:
            found[name] = _exact(value)
    return found


def _exact(value: Any) -> str:
    """Text for a number, or a digest of a table.  It is exact to the last bit and the same on every platform."""
    if isinstance(value, np.ndarray):
        table = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        return f"{table.shape} {hashlib.sha256(table.tobytes()).hexdigest()}"
    return str(int(value)) if isinstance(value, (int, np.integer)) else float(value).hex()
