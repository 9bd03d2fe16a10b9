"""The C of one model before it is put into files: functions, memory, parameters, and the hash of the configuration."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.algorithms.revisions import revision_of
from pykernel.algorithms.selftest import made_up, made_up_count
from pykernel.dialect import Kernel, Layout, Precision, Real, ends_of, is_choice
from pykernel.dialect.program import Entry, Program
from pykernel.gen.functions import checked_functions
from pykernel.gen.ir import DialectError, Functions, Parameter, walk
from pykernel.gen.primitives import CLEARING_LOOPS
from pykernel.gen.print_c import Printer, comment, number
from pykernel.gen.ranges import prove
from pykernel.gen.read import member_comments
from pykernel.gen.specialise import Specialised, reached_from, specialise
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
    return made_up_count if spec.program.whole else made_up


def specialised(spec: Spec) -> Specialised:
    """The functions that one model needs."""
    program, config = spec.program, spec.config
    roots = (*(entry.kernel for entry in program.entries_for(config)), made_up_number(spec))
    fields = tuple(name for struct in program.structs for name in struct.fields)
    return specialised_kernels(spec, roots, fields)


def specialised_kernels(spec: Spec, roots: tuple[Kernel, ...], fields: tuple[str, ...] = ()) -> Specialised:
    """Some kernels of a model's program and their callees, specialised; ``fields``: fields that may be dropped."""
    kinds, config = spec.program.parameters, spec.config
    choices = tuple((name, getattr(config, name)) for name, kind in kinds.items() if is_choice(kind))
    return _specialised(roots, choices, spec.real, fields)


@functools.lru_cache(maxsize=64)
def _specialised(
    roots: tuple[Kernel, ...], choices: tuple[tuple[str, int], ...], precision: Precision, fields: tuple[str, ...]
) -> Specialised:
    """As ``specialised_kernels``, cached: models with the same choices share their functions; sizes and numbers may
    differ.
    """
    return specialise(checked_functions(roots), [k.name for k in roots], dict(choices), precision, fields)


def model_code(spec: Spec) -> ModelCode:
    """Print a model's functions and the data that they need.  Raises DialectError."""
    program, config, precision = spec.program, spec.config, spec.real
    code, entries = specialised(spec), program.entries_for(config)
    if precision.is_integer:
        roots = [*(entry.kernel.name for entry in entries), made_up_number(spec).name]
        prove(code.functions, roots, program.structs, config, spec.capacities, precision)
    layout = spec.memory(tuple(sorted(code.unread))).layout
    scalars = frozenset().union(*(struct.scalars for struct in program.structs))
    public = {entry.kernel.name: entry.name for entry in entries}
    widths = Widths(spec.capacities, config)
    printer = Printer(spec.name, precision, scalars, public, statuses=program.statuses, marks=True, widths=widths)
    printed = printer.all(code.functions)
    for entry in entries:
        last = [*entry.kernel.params][-1]
        if entry.name in program.questions and last not in printer.known[entry.kernel.name].params:
            raise DialectError(
                entry.kernel.file,
                entry.kernel.function.__code__.co_firstlineno,
                f"{entry.kernel.name} is a question, but never writes its answer, {last}",
            )
    parts: dict[str, Any] = {
        "parameters": parameters(printer, code.functions, program, config),
        "constants": constants(printer, code.functions),
        "tables": tables(printer, code.functions, program, config),
        "slots": _slots(layout, program, printer),
    }
    whose = identity(spec)
    return ModelCode(
        entries,
        code.functions,
        frozenset(code.unread),
        layout,
        printer,
        printed,
        **parts,
        config_hash=whose.config_hash,
        state_kind=whose.state_kind,
    )


def _slots(layout: Layout, program: Program, printer: Printer) -> list[dict[str, Any]]:
    docs = {name: text for struct in program.structs for name, text in member_comments(struct).items()}
    headings = {struct.__name__: comment((struct.__doc__ or "").strip().splitlines()[0]) for struct in program.structs}
    slots: list[dict[str, Any]] = []
    owner = None
    for slot in layout.slots:
        c_type = printer.type(slot.array.scalar)
        extents = [printer.extent(e) for e in slot.array.extents]
        shape = "" if slot.scalar else "".join(f"[{e}]" for e in extents)
        slots.append(
            {
                "name": slot.name,
                "declaration": f"{c_type} {slot.name}{shape}",
                "doc": comment(docs.get(slot.name, ""))
                if slot.struct
                else "always zero: keeps the size a multiple of the largest member",
                "heading": headings.get(slot.struct, "") if slot.struct and slot.struct != owner else "",
                "offset": slot.offset,
                "scalar": slot.scalar,
                "shape": slot.shape,
                "extents": extents,
                "loop": CLEARING_LOOPS + 2 * len(slots),
                "zero": number(0, printer.precision) if slot.array.scalar is Real else "0",
            }
        )
        owner = slot.struct or owner
    return slots


def parameters(printer: Printer, functions: Functions, program: Program, config: Any) -> list[dict[str, str]]:
    docs = {name: text for config in program.configs for name, text in member_comments(config).items()}
    result = []
    for name in printer.parameters(functions):
        value = getattr(config, name)
        text = number(value, printer.precision) if program.parameters[name] is Real else str(int(value))
        result.append({"name": name.upper(), "value": _bracketed(text), "doc": comment(docs.get(name, ""))})
    return result


def tables(printer: Printer, functions: Functions, program: Program, config: Any) -> list[dict[str, Any]]:
    docs = {name: text for config in program.configs for name, text in member_comments(config).items()}
    return [
        {
            "name": table.name,
            "declaration": table.declaration,
            "values": table.values,
            "text": table.text,
            "bytes": table.nbytes,
            "doc": comment(docs.get(table.node.name, "")) if isinstance(table.node, Parameter) else "",
        }
        for table in printer.tables(functions, config)
    ]


def constants(printer: Printer, functions: Functions) -> list[dict[str, str]]:
    return [
        {"name": name, "value": _bracketed(number(node.constant.value(printer.precision), printer.precision))}
        for name, node in printer.constants(functions).items()
        if node.kind is Real
    ]


def _bracketed(literal: str) -> str:
    return f"({literal})" if literal.startswith("-") else literal


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
    layout, kinds = spec.memory(drop).layout, program.parameters
    reached = reached_from(code.functions, [entry.kernel.name for entry in program.entries_for(config)])
    read = {n.name for f in reached.values() for n in walk(f.body) if isinstance(n, Parameter)}
    tunable = frozenset().union(*(each.tunable for each in program.configs))
    revisions = {name: revision_of(name) for name in spec.algorithms}

    meaning: dict[str, str] = {"precision": spec.precision, "label": spec.label_kind}
    meaning |= {f"capacity {name}": str(size) for name, size in spec.capacities.items()}
    meaning |= {f"meaning of {name}": str(revision.meaning) for name, revision in revisions.items()}
    for slot in layout.slots:
        if slot.struct and slot.offset < program.hashed_bytes(layout):
            meaning[f"field {slot.name}"] = f"{slot.array.scalar} {slot.shape} at {slot.offset}"
    if spec.custom is not None:
        meaning["custom kernel"] = hashlib.sha256(spec.custom.source).hexdigest()

    rest = {f"revision of {name}": str(revision.bits) for name, revision in revisions.items()}
    for owner in program.persistent:
        for name in set(owner.ranges) - set(drop):
            low, high = ends_of(owner.ranges[name], spec.capacities, config, precision)
            rest[f"range of {name}"] = f"{_exact(low)} to {_exact(high)}"
    for name, kind in kinds.items():
        value = getattr(config, name)
        if is_choice(kind):
            if not value:
                continue  # so a new choice that is off does not make older states invalid
            told = kind(value).name if issubclass(kind, IntEnum) else "true"
        elif name in read:
            told = _exact(value)
        else:
            continue
        (rest if name in tunable else meaning)[name] = told
    return Identity(drop, meaning, rest)


def _exact(value: Any) -> str:
    """Text for a number, or a digest of a table.  It is exact to the last bit and the same on every platform."""
    if isinstance(value, np.ndarray):
        table = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        return f"{table.shape} {hashlib.sha256(table.tobytes()).hexdigest()}"
    return str(int(value)) if isinstance(value, (int, np.integer)) else float(value).hex()
