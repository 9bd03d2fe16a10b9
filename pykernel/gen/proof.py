"""Write the sources of a proof about a model's C code: the annotated code, and a driver that makes each call from any
state.

The driver sets the memory to any bytes, puts each number with a declared range (``between``) into that range, and calls
one public function once, with any inputs.  Then the driver asserts that the ranges still hold.  If the analyser proves
this for each call, the ranges always hold, because they hold after NAME_init and no call takes a number out of its
range.  Floating-point numbers may have any bits, including those of NaN; at the level "finite" they are finite and
within their ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Array, Extent, Real, Word, ends_of
from pykernel.dialect.memory import Slot
from pykernel.errors import UserError
from pykernel.gen.model import ModelCode, model_code
from pykernel.gen.project import build, render
from pykernel.gen.snapshot import snapshot_context
from pykernel.language.c_text import number
from pykernel.language.ir import Function, Member, Return, walk
from pykernel.language.specialise import reached_from
from pykernel.spec.model import Spec

STATE, SNAPSHOT, WILD, FINITE = "state", "snapshot", "wild", "finite"
LEVELS = {
    STATE: "from every state that load accepts, with every input",
    SNAPSHOT: "with any bytes in the model, the buffer and the storage",
    WILD: "with any bytes in the model, as after a RAM fault",
    FINITE: 'as at the level "state", but with all reals within their limits; also proves that they stay there and outputs are finite',
}
STATES, BYTES = 5, 3
"""Eva's precision: STATES for calls that low precision does not prove, BYTES for the snapshot functions."""
CHUNK = 64
"""NAME_SNAPSHOT_CHUNK in the template ``snapshot.c``."""
FLOATS = "prove_floats.h"
"""A header that the analysis includes first."""


@dataclass(frozen=True)
class Call:
    """One call of the driver: the level, the function that is called, and the driver's function (``main``).

    files: C files that are analysed.  reached: C functions that the call reaches; if empty, the analysis finds these
    functions.  checks: number of assertions about the call.  precision: Eva's precision.
    split: C functions; after a call of one of them, Eva analyses each possible result separately.
    """

    level: str
    name: str
    main: str
    files: tuple[str, ...]
    reached: frozenset[str]
    checks: int
    precision: int = STATES
    split: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """The sources of a proof.  files: the model's annotated C code and the drivers, as file name -> text.  calls: the
    calls in the order of their analysis.
    """

    spec: Spec
    files: dict[str, str]
    calls: tuple[Call, ...]


def proof_of(spec: Spec, levels: tuple[str, ...]) -> Proof:
    """Write the sources of a proof.  Raises UserError for a range that contains no number."""
    return _Writer(spec).proof(levels)


FEW = 4
"""Largest number of elements in a field that is analysed case by case.  Each element at least doubles the number of
cases."""


@dataclass(frozen=True)
class _Range:
    """A slot of the memory whose numbers have a declared range.  low, high: integers, or reals as C text.  real: the C type of reals."""

    slot: Slot
    low: int | str
    high: int | str
    real: str = ""

    def place(self, names: list[str]) -> str:
        return f"model.{self.slot.name}" + ("" if self.slot.scalar else "".join(f"[{n}]" for n in names))

    def assumed(self) -> list[str]:
        """Return C code that sets the slot to arbitrary numbers in the range."""
        kind = {Word: "unsigned_int_interval", Real: f"{self.real}_interval"}.get(self.slot.array.scalar, "interval")
        lines, names = list[str](), list[str]()
        for i, extent in enumerate(() if self.slot.scalar else self.slot.shape):
            names.append(f"i{i}")
            lines += [f"/*@ loop unroll {extent}; */", f"for (int i{i} = 0; i{i} < {extent}; i{i}++)"]
        return [*lines, f"{self.place(names)} = Frama_C_{kind}({self.low}, {self.high});"]

    def split(self, level: str, counts: bool) -> list[str]:
        """Return annotations, to be placed before a call, that make Eva analyse cases separately.

        If the field is a single count (``counts``), each value in the range is a case.  If the memory may have any
        bytes, values below and above the range are cases, too.
        """
        names = [] if self.slot.scalar else [[str(i)] for i in range(self.slot.shape[0])]
        places = [self.place(each) for each in names or [[]]]
        beyond = [f"/*@ split {p} {end}; */" for p in places for end in (f"< {self.low}", f"> {self.high}")]
        if not counts or not self.slot.scalar:
            return beyond if level == WILD else []
        (place,) = places
        if level != WILD:
            return [f"/*@ split {place}; */"]
        inside = f"if (({self.low} <= {place}) && ({place} <= {self.high})) {{"
        return [*beyond, inside, f"    /*@ split {place}; */", "    ;", "}"]

    def stated(self) -> str:
        """Return the annotation that asserts that each number is in the range."""
        shape = () if self.slot.scalar else self.slot.shape
        names = [f"i{i}" for i in range(len(shape))]
        bounds = " && ".join(f"0 <= {n} < {extent}" for n, extent in zip(names, shape, strict=True))
        every = f"\\forall integer {', '.join(names)}; {bounds} ==> " if names else ""
        return f"/*@ check {self.slot.name}: {every}{self.low} <= {self.place(names)} <= {self.high}; */"


class _Writer:
    def __init__(self, spec: Spec) -> None:
        self.spec, self.name = spec, spec.name
        self.code: ModelCode = model_code(spec, annotated=True)
        self.program, self.layout, self.printer = spec.program, self.code.layout, self.code.printer
        found = list(self._ranges())
        self.ranges = [r for r in found if r.slot.array.scalar is not Real]
        self.limits = [r for r in found if r.slot.array.scalar is Real]
        self.project = build(spec, annotated=True)

    def _ranges(self) -> Iterator[_Range]:
        spec, declared = self.spec, {name: r for struct in self.program.structs for name, r in struct.ranges.items()}
        persistent = self.program.state_bytes(self.layout)
        for slot in self.layout.slots:
            real, given = slot.array.scalar is Real, declared.get(slot.name)
            if not slot.struct or (given is None and not (real and slot.offset < persistent)):
                continue
            dtype = slot.array.scalar.dtype(spec.real)
            limits: Any = np.finfo(dtype) if real else np.iinfo(dtype)
            low, high = ends_of(given, spec.capacities, spec.config, spec.real) if given else (limits.min, limits.max)
            low, high = max(dtype.type(low) if real else int(low), limits.min), min(high, limits.max)
            if low > high:
                raise UserError(f"the declared range of {slot.name} is empty: from {low} to {high}")
            if real:
                yield _Range(slot, number(low, spec.real), number(high, spec.real), self.printer.real)
            else:
                yield _Range(slot, int(low), int(high))

    def counted(self, r: _Range) -> bool:
        """Return whether a field counts the used elements of an array, so that its range ends at the array's size."""
        declared = {name: given.most for struct in self.program.structs for name, given in struct.ranges.items()}
        most = declared[r.slot.name]
        return isinstance(most, Extent) and most.text in most.symbols

    def splits(self, level: str, reads: frozenset[str]) -> list[str]:
        """Return annotations about the persistent counts that this call reads: fields of few elements whose ranges begin at 0."""
        kept = self.program.state_bytes(self.layout)
        of_call = [r for r in self.ranges if r.slot.offset < kept and r.slot.name in reads]
        counts = [r for r in of_call if r.low == 0 and len(r.slot.shape) <= 1 and math.prod(r.slot.shape) <= FEW]
        return [line for r in counts for line in r.split(level, self.counted(r))]

    # ------------------------------------------------------------------------------------------------ files

    def proof(self, levels: tuple[str, ...]) -> Proof:
        files, calls = {**self.project.sources, FLOATS: self.floats()}, list[Call]()
        for level in [level for level in LEVELS if level in levels]:
            if level != SNAPSHOT:
                files[f"prove_{level}.c"], found = self.driver(level)
                calls += found
            elif self.program.persistent:
                files["prove_snapshot.c"], found = self.snapshots()
                calls += found
                if self.ranges:
                    files["prove_valid.c"], call = self.judged()
                    calls.append(call)
        return Proof(self.spec, files, tuple(calls))

    def driver(self, level: str) -> tuple[str, list[Call]]:
        """Return a driver in C, and its calls.  The driver calls the model's functions, NAME_init, NAME_reset and NAME_hash."""
        bodies, calls = [], []
        checks = {STATE: self.ranges, FINITE: [*self.ranges, *self.limits]}.get(level, [])
        for name, body, stated, reached, reads in self.bodies(level):
            main, before = f"prove_{level}_{name}", ["any_bytes();"]
            if name not in ("init", "reset"):
                before += ["any_in_ranges();"] if checks else []
                before += self.splits(level, reads)
            stated = [*(r.stated() for r in checks), *stated]
            bodies.append(_function(f"void {main}(void)", [*before, *body, *stated]))
            files = (f"{self.name}.c", f"prove_{level}.c")
            split = self.split(reached) if level == FINITE else ()
            calls.append(Call(level, name, main, files, frozenset(reached), len(stated), split=split))
        head = [
            f'#include "{self.name}.h"',
            '#include "__fc_builtin.h"',
            "",
            f"static {self.name}_t model;",
            "",
            *_function("static void any_bytes(void)", ["Frama_C_make_unknown((char *)&model, sizeof(model));"]),
        ]
        if checks:
            head += [
                "",
                *_function("static void any_in_ranges(void)", [line for r in checks for line in r.assumed()]),
            ]
        return "\n".join([*head, *(line for body in bodies for line in ("", *body))]) + "\n", calls

    def floats(self) -> str:
        """Return a header for Eva.  It defines |x| in C, and replaces the FPU's square root, which Eva does not know, with
        the C library's.
        """
        end, zero = ("f", "0.0f") if self.printer.real == "float" else ("", "0.0")
        macro = self.name.upper()
        return (
            "/* Definitions for the analysis, included before the model's C code. */\n"
            f"#define __builtin_fabs{end}(x) (((x) > {zero}) ? (x) : ((x) < {zero}) ? -(x) : ((x) == {zero}) ? {zero} : (x))\n"
            f"#ifndef {macro}_NO_FPU\n"
            "#include <math.h>\n"
            "#define __SSE2__ 1\n"
            f"#define __asm__(instruction) root = sqrt{end}(x)\n"
            "#endif\n"
        )

    def split(self, reached: Iterable[str]) -> tuple[str, ...]:
        """Return the C functions that return one of several statuses.  Eva analyses the memory after each status separately."""
        results = {
            self.printer.name(name): [node.value for node in walk(f.body) if isinstance(node, Return)]
            for name, f in self.code.functions.items()
        }
        return tuple(
            name
            for name, values in results.items()
            if name in reached and len(values) > 1 and all(isinstance(value, Member) for value in values)
        )

    def bodies(self, level: str) -> Iterator[tuple[str, list[str], list[str], set[str], frozenset[str]]]:
        """Yield (name, code, stated, reached, reads) for each public function.

        code: C code that calls the function.  stated: assertions about its outputs.  reached: the C functions that
        the call reaches.  reads: the fields that the call reads.
        """
        name, prefix = self.name, self.printer.prefix
        for clear in ("init", "reset") if self.program.persistent else ("init",):
            yield clear, [f"{name}_{clear}(&model);"], [], {f"{name}_{clear}"}, frozenset()
        for entry in self.code.entries:
            f = self.code.functions[entry.kernel.name]
            reached = reached_from(self.code.functions, [f.name])
            yield (
                entry.name,
                *self.call(f, level),
                {self.printer.name(each) for each in reached},
                self.printer.known[f.name].reads,
            )
        yield "hash", [f"(void){name}_hash(&model);"], [], {f"{name}_hash", f"{prefix}_crc32"}, frozenset()

    def call(self, f: Function, level: str) -> tuple[list[str], list[str]]:
        """Return C code that calls an entry with arbitrary bits as arguments, and assertions about its outputs."""
        lines, stated, arguments = [], [], ["&model"] if self.printer.takes_struct(f.name) else []
        # these copies turn bits into reals, because Eva can split the values of a real, but not of bits that are read as a real
        read: list[str] = []
        for name, kind in f.params:
            if isinstance(kind, Array):
                extent = self.printer.extent(kind.extents[0])
                lines.append(f"{self.printer.type(kind.scalar)} {name}[{extent}];")
                if name not in self.printer.known[f.name].params:  # an array that is only written stays unset
                    lines.append(f"Frama_C_make_unknown((char *){name}, sizeof({name}));")
                    if level == FINITE and kind.scalar is Real:
                        read += [
                            f"/*@ loop unroll {extent}; */",
                            f"for (int i = 0; i < {extent}; i++)",
                            f"{name}[i] = {name}[i];",
                        ]
                elif level == FINITE and kind.scalar is Real:
                    lines[-1] = f"{lines[-1][:-1]} = {{0}};"
                    every = f"\\forall integer i; 0 <= i < {extent} ==> \\is_finite({name}[i])"
                    stated.append(f"/*@ check answer_{name}: {every}; */")
            else:
                lines += [
                    f"{self.printer.type(kind)} {name};",
                    f"Frama_C_make_unknown((char *)&{name}, sizeof({name}));",
                ]
                if level == FINITE and kind is Real:
                    read.append(f"{name} = {name};")
            arguments.append(name)
        return [*lines, *read, f"(void){self.printer.name(f.name)}({', '.join(arguments)});"], stated

    def snapshots(self) -> tuple[str, list[Call]]:
        name, size = self.name, f"{self.name.upper()}_SNAPSHOT_BYTES"
        chunk = f"/*@ check chunk: 1 <= count <= {CHUNK} && offset + count <= {size} && 0 <= slot <= 1; */"
        head = f"""#include "{name}.h"
#include "__fc_builtin.h"

static {name}_t model;
static uint8_t buffer[{size}];
static int context;

static int32_t any_status(void)
{{
    int32_t status;
    Frama_C_make_unknown((char *)&status, sizeof(status));
    return status;
}}

/* Storage callbacks.  They may return any status, and the bytes that are read may differ at each call. */
static int32_t reads(void *given, int32_t slot, uint32_t offset, uint8_t *bytes, uint32_t count)
{{
    (void)given;
    {chunk}
    Frama_C_make_unknown((char *)bytes, count);
    return any_status();
}}

static int32_t writes(void *given, int32_t slot, uint32_t offset, const uint8_t *bytes, uint32_t count)
{{
    (void)given;
    {chunk}
    /*@ check written: \\initialized(bytes + (0 .. count - 1)); */
    return any_status();
}}

static void any_bytes(void)
{{
    Frama_C_make_unknown((char *)&model, sizeof(model));
    Frama_C_make_unknown((char *)buffer, sizeof(buffer));
}}
"""
        arguments_of = {
            "save": "buffer",
            "load": "buffer",
            "store": "writes, reads, &context",
            "restore": "reads, &context",
            "wipe": "",
        }
        files, calls = (f"{name}.c", f"{name}_snapshot.c", "prove_snapshot.c"), []
        for called, arguments in arguments_of.items():
            main = f"prove_snapshot_{called}"
            call = f"(void){name}_{called}(&model{', ' if arguments else ''}{arguments});"
            head += "\n" + "\n".join(_function(f"void {main}(void)", ["any_bytes();", call])) + "\n"
            calls.append(Call(SNAPSHOT, called, main, files, frozenset(), 0, BYTES))
        return head, calls

    def judged(self) -> tuple[str, Call]:
        """Return a driver that asserts that the numbers of every accepted snapshot are in their ranges.  The driver
        reads memory instead of storage.
        """
        persistent = self.program.state_bytes(self.layout)
        checks = [r for r in self.ranges if r.slot.offset < persistent]
        valid = self.program.valid
        assert valid is not None
        snapshot = snapshot_context(self.spec, valid, self.layout, frozenset(self.code.whose.drop), annotated=True)
        argument = snapshot["valid_takes"]
        lines = [
            "Frama_C_make_unknown((char *)&model, sizeof(model));",
            f"if ({self.name}_stored_within(&stored) && {snapshot['valid']}({argument and '&' + argument})) {{",
        ]
        lines += [*("    " + r.stated() for r in checks), "}"]
        context = {
            "name": self.name,
            "macro": self.name.upper(),
            "snapshot": snapshot,
            "annotated": True,
            "state_bytes": persistent,
        }
        within = render("ranges.c", context)
        text = [
            *self.readers(snapshot),
            *snapshot["functions"],
            within,
            *_function("void prove_snapshot_valid(void)", lines),
        ]
        call = Call(
            *(SNAPSHOT, "valid", "prove_snapshot_valid", ("prove_valid.c",)),
            reached=frozenset({snapshot["valid"], f"{self.name}_stored_within"}),
            checks=len(checks),
        )
        return "\n".join(text) + "\n", call

    def readers(self, snapshot: Mapping[str, Any]) -> list[str]:
        """Return the definitions that the snapshot's functions need, with readers that take each number from the model in memory."""
        name, macro, size = self.name, self.name.upper(), self.spec.real.dtype.itemsize
        types = {"real": (self.printer.real, size), "count": ("int32_t", 4)}
        types |= {what: (kind, width) for what, kind, width in snapshot["narrow"]}
        lines = [f'#include "{name}.h"', '#include "__fc_builtin.h"']
        lines += [f"#include <{header}.h>" for header in ("float", "stdbool", "stddef")]
        for each in (*snapshot["parameters"], *snapshot["constants"]):
            lines += [f"#undef {macro}_{each['name']}", f"#define {macro}_{each['name']} {each['value']}"]
        lines += [f"{table['declaration']} = {{\n    {table['text']}\n}};" for table in snapshot["tables"]]
        lines += [f"static {name}_t model;", f"typedef struct {{ int none; }} {name}_stored_t;"]
        lines += [
            f"static {name}_stored_t stored;",
            f"#define {macro}_PLACE(field) ((uint32_t)offsetof({name}_t, field))",
        ]
        for what, (kind, width) in types.items():
            cast = "(int32_t)" if width < 4 else ""
            place = f"(char *)&model + (place) + ((uint32_t)(i) * {width}u)"
            lines.append(f"#define {name}_stored_{what}(stored, place, i) ({cast}*({kind} *)({place}))")
        natural = " : ".join(f"(width) == {n}u ? *(uint{8 * n}_t *)((char *)&model + (place))" for n in (1, 2))
        natural += " : *(uint32_t *)((char *)&model + (place))"
        lines.append(f"#define {name}_stored_natural(stored, place, width) ({natural})")
        row = f"((place) + ((uint32_t)(i) * (uint32_t)(width) * {size}u))"
        return [*lines, f"#define {name}_stored_row(place, i, width) {row}", *snapshot["primitives"]]


def _function(head: str, lines: list[str]) -> list[str]:
    return [head, "{", *("    " + line for line in lines), "}"]
