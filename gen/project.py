"""A spec to a folder of C: specialise, print, fill the templates."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from pykernel.dialect import (
    FLOAT32,
    OUTPUTS,
    Array,
    Bool,
    Extent,
    Index,
    Int,
    Kernel,
    Layout,
    Memory,
    Ranged,
    Real,
    Struct,
    end_of,
    extents,
)
from pykernel.dialect.program import Program
from pykernel.errors import UserError, told_late
from pykernel.gen import rehearsal
from pykernel.gen.firmware import check_files, check_program, page_program
from pykernel.gen.ir import (
    Binary,
    DialectError,
    Element,
    Expr,
    Field,
    For,
    Functions,
    If,
    Length,
    Literal,
    Local,
    Member,
    Parameter,
    Return,
    Row,
    Statement,
    Unary,
    walk,
)
from pykernel.gen.model import bare, constants, model_code, parameters, specialised_kernels, tables
from pykernel.gen.packages import bound_macros, package_files
from pykernel.gen.primitives import LEARNED_LOOPS, primitive, primitive_file, runtime_text, unmarked
from pykernel.gen.print_c import Printer, comment, comment_block, fold, number, rows_of
from pykernel.gen.print_stored import NARROW, StoredPrinter, reader
from pykernel.gen.read import member_comments
from pykernel.gen.widths import Widths
from pykernel.gen.write import has_check, project_folder, write_files
from pykernel.host.model import HostModel
from pykernel.host.snapshot import HEADER, MAGIC, TRAILER, VERSION
from pykernel.spec.families.fixed_scales import ROUNDED
from pykernel.spec.model import Spec
from pykernel.spec.signal_whole import channels_of
from pykernel.spec.summary import summary

BROKEN_BUILD = -100
STAMP = "0x________u"
"""Placeholder for the stamp: the stamp is computed from the texts when all of them are complete."""
FEW = 4
"""GCC unrolls loops over arrays of at most this length, and then warns of iterations beyond the end that never
happen.
"""
SNAPSHOT_STATUSES = {
    "SNAPSHOT_MISSING": (-101, "there is no snapshot"),
    "SNAPSHOT_FOREIGN": (-102, "the snapshot is of another model: its numbers lie or mean something else"),
    "SNAPSHOT_BROKEN": (-103, "the snapshot is damaged, or was not written completely"),
    "SNAPSHOT_INVALID": (-104, "a number in the model is one that learning cannot give"),
    "STORAGE_FAILED": (
        -105,
        "a callback failed, or other bytes were read than were written, or than before",
    ),
}


@dataclass(frozen=True)
class Project:
    """Generated text, not yet written."""

    spec: Spec
    files: dict[str, str]
    figures: dict[str, Any]
    drop: tuple[str, ...]  # fields that the C does not have
    declarations: tuple[str, ...]  # C declarations of the public functions
    replay: str = field(repr=False)  # C of the check's driver


@dataclass(frozen=True, repr=False)
class Generated:
    """What ``generate`` wrote.  figures: bytes of state, work and constants, and more."""

    folder: Path
    files: list[Path]
    figures: dict[str, Any]

    def __repr__(self) -> str:
        parts = {"state": "state_bytes", "work": "work_bytes", "constants": "const_bytes"}
        sizes = ", ".join(f"{self.figures[key]:,} bytes of {part}" for part, key in parts.items())
        return f"{self.figures['name']} in {self.folder}: {len(self.files)} files; {sizes}"


def generate(
    spec: Spec, out: str | Path, memory: Memory | None = None, force: bool = False, with_check: bool = False
) -> Generated:
    """Write the C project of a model.

    Nothing is written if there is any error.
    memory: the learned state from which the device starts; if not given, the device starts untrained.
    force: also overwrite files that were changed by hand; without it, such files are an error.
    with_check: also write the firmware for ``pykernel check --board``.  If the folder has it already, it is written
    again.
    """
    project, folder = build(spec, memory, with_check=with_check), Path(out)
    with project_folder(folder):
        if not with_check and has_check(folder):
            project = build(spec, memory, with_check=True)
        files = write_files(folder, project.files, force)
    return Generated(folder, files, project.figures)


def build(
    spec: Spec,
    memory: Memory | None = None,
    checks: Sequence[Mapping[str, str]] = (),
    with_check: bool = False,
) -> Project:
    """Everything that ``generate`` writes.  checks: results for VALIDITY.md and the manifest, see ``gen.record``."""
    try:
        return _build(spec, memory, checks, with_check)
    except DialectError as error:
        if spec.custom is None:
            raise
        # the custom kernel does not fit to this model: two things would have the same name
        place = (
            ""
            if error.file == spec.custom.file
            else f"{spec.custom.file}: {spec.custom.name} does not go with this model: "
        )
        raise UserError(f"{place}{error}") from None


def check_sources(project: Project, timed: bool = False) -> dict[str, str]:
    """The program that runs the host's jobs in an emulator: file name -> text.  timed: it also counts CPU cycles."""
    return check_program(project.spec, project.files[f"src/{project.spec.name}.h"], timed, _render)


def page_source(project: Project) -> str:
    """The C through which a page in a browser calls a model."""
    return page_program(project.spec, project.files[f"src/{project.spec.name}.h"], _render)


def _build(spec: Spec, memory: Memory | None, checks: Sequence[Mapping[str, str]], with_check: bool) -> Project:
    program, precision = spec.program, spec.real
    code = model_code(spec)
    drop, layout, printer = code.drop, code.layout, code.printer
    learned = _learned(memory, layout, program, printer) if memory is not None else []
    if not layout.slots:
        raise DialectError(
            program.entries[0].kernel.file,
            program.entries[0].kernel.function.__code__.co_firstlineno,
            f"{program.entries[0].kernel.name} keeps nothing in the memory, and C has no empty struct; keep what it "
            "computes in a field of a struct, and read that",
        )
    names = {entry.name for entry in code.entries}
    state_bytes = program.state_bytes(layout)
    context: dict[str, Any] = {
        "name": spec.name,
        "macro": printer.macro,
        "guard": f"{printer.macro}_H",
        "version": importlib.metadata.version("pykernel-mcu"),
        "summary": summary(spec),
        "about": [f" * {comment(line)}".rstrip() for line in _about(spec)],
        "about_in_markdown": _about_in_markdown(spec, printer.real),
        "real": printer.real,
        "real_bytes": precision.dtype.itemsize,
        "capacities": spec.capacities,
        "shown": spec.capacities,  # those that are read; below
        "capacity_docs": {name: known.doc for name, known in extents().items()},
        "classes": len(spec.label.classes or ()),
        "label_kind": program.label_kind,
        "label_type": _label_type(program, printer),
        "whole": _whole(spec) if program.whole else {},
        "learns": program.learns,
        "learner": program.learner,
        "reads": program.reads,
        "periods": sorted(set(spec.signal.periods)) if spec.signal is not None else [],
        "clamps": _clamps(spec) if spec.signal is not None and program.whole else [],
        "sample": program.sample_size,  # how many numbers it has
        "main": _question(program.asks, spec, printer),
        "training": next((name for name in program.trainings if name in names), ""),
        "persists": bool(program.persistent),
        "clear": "reset" if program.persistent else "init",
        "others": _others(spec, names),
        "few": [name for name in _filled(code.functions) if spec.capacities[name] <= FEW],
        "example": _example(spec, printer),
        "questions": [_question(q, spec, printer) for q in program.questions if q in names],
        "state_bytes": state_bytes,
        "ram_bytes": layout.nbytes,
        "const_bytes": sum(t["bytes"] for t in (*code.tables, *learned)),
        "bounds": [
            {"built": comment(row["built"]), "macros": found}
            for row in checks
            if (found := bound_macros(row, printer.macro))
        ],
        "marks": primitive("marks.h", spec.name),
        "config_hash": code.config_hash,
        "state_kind": code.state_kind,
        "stamp": STAMP,
        "status_doc": comment(program.status.__doc__ or "").strip(),
        "statuses": _statuses(program),
        "slots": code.slots,
        "learned": learned,
        "entries": [
            {
                "doc": "\n".join(comment_block(code.functions[e.kernel.name].doc)),
                "declaration": printer.signature(code.functions[e.kernel.name]),
            }
            for e in code.entries
        ],
        "rehearsal": rehearsal.sequence(spec).samples,
        "guard_code": _guard(printer),
        "parameters": code.parameters,
        "constants": code.constants,
        "tables": code.tables,
        "primitives": [primitive(f"{name}.h", spec.name) for name in _asked(printer)]
        + [primitive(primitive_file(name, precision), spec.name) for name in sorted(printer.primitives)]
        + [primitive("crc32.h", spec.name), *([] if program.whole else [_arithmetic(printer)])],
        "functions": ["\n".join(lines) for lines in code.printed.values()],
        "r": rehearsal.context(spec, printer, layout),
        "selftest_hash": selftest_hash(spec, drop),
        "broken_build": BROKEN_BUILD,
        "returned": _returned(program, code.functions),
        "twenty": number(20, precision),
        "half": "10" if program.whole else number(0.5, precision),
        "zero": number(0, precision),
        "input_scale": 1000 if program.whole else number(min(1.0, spec.input_max_abs), precision),
        "label_scale": number(1000 if program.whole else min(1.0, spec.label.max_abs), precision),
    }
    context["shown"] = _used_capacities(context)
    if program.valid is not None:
        context["snapshot_bytes"] = HEADER.size + state_bytes + TRAILER.size
        context["snapshot"] = _snapshot(spec, program.valid, layout, code.unread)
    files = {
        f"src/{spec.name}.h": _render("model.h", context),
        f"src/{spec.name}.c": _render("model.c", context),
        **({f"src/{spec.name}_counts.h": _render("counts.h", context)} if program.whole else {}),
        **({f"src/{spec.name}_snapshot.c": _render("snapshot.c", context)} if "snapshot" in context else {}),
        **({f"src/{spec.name}_model.c": _render("model_values.c", context)} if learned else {}),
        "LICENSE": runtime_text("LICENSE"),
        f"{spec.name}.toml": spec.to_toml(complete=True),
    }
    files["README.md"] = _render("README.md", context)
    if spec.custom is not None and spec.kernel is not None and spec.kernel.source is not None:
        files[spec.kernel.source] = spec.custom.source.decode()
    packaged = package_files(files, context, _render, checks)
    if with_check:
        packaged |= check_files(spec, files[f"src/{spec.name}.h"], _render)
    stamp = stamp_of(files)
    files = {path: text.replace(STAMP, stamp) for path, text in (files | packaged).items()}
    shown = ("name", "state_bytes", "ram_bytes", "const_bytes", "snapshot_bytes")
    figures = {key: context[key] for key in shown if key in context} | {
        "work_bytes": layout.nbytes - state_bytes,
        "config_hash": f"{context['config_hash']:08x}",
        "precision": str(precision),
        **{f"error_{key}": context["whole"][key] for key in ("bound", "measured") if key in context["whole"]},
        "learned": bool(learned),
        **{key.lower(): value for key, value in spec.capacities.items()},
        **({"classes": len(spec.label.classes)} if spec.label.classes else {}),
    }
    manifest = {
        "generator": f"pykernel {context['version']}",
        "spec": spec.model_dump(
            mode="json", exclude={"expansion", *([] if spec.signal else ["signal"])}
        ),  # tables are in the spec's own file
        "figures": figures,
        **({"checks": list(checks)} if checks else {}),
        "sha256": {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()},
    }
    files["manifest.json"] = json.dumps(manifest, indent=2, ensure_ascii=True) + "\n"
    declarations = tuple(entry["declaration"] for entry in context["entries"])
    return Project(spec, files, figures, drop, declarations, _render("replay.c", context))


def stamp_of(files: Mapping[str, str]) -> str:
    """NAME_STAMP as a C literal: 32 bits that change when the code of any file in src/ changes.

    Comments do not count, because ``gen.record`` adds comments to the header alone.
    """
    code = "".join(f"{path}\n{bare(text)}\n" for path, text in sorted(files.items()) if path.startswith("src/"))
    return f"0x{int.from_bytes(hashlib.sha256(code.encode()).digest()[:4], 'little'):08X}u"


def selftest_hash(spec: Spec, drop: tuple[str, ...]) -> int:
    """The known answer of NAME_selftest."""
    with told_late() as say:
        say(0.0, f"computing what {spec.name}_selftest must find: with a model of this size that takes long")
        return rehearsal.run(spec, drop)


def state_hash(spec: Spec, memory: Memory) -> int:
    """The value that NAME_hash returns.

    Where a state's hash is listed beside a number of samples, each of these samples was asked and then learned before.
    """
    return zlib.crc32(memory.bytes[: spec.program.hashed_bytes(memory.layout)])


def _filled(functions: Functions) -> list[str]:
    """Capacities of arrays that may be partly used: loops over such an array end at a count that is read from
    memory.
    """
    found: set[str] = set()
    for function in functions.values():
        counted = {
            node.variable
            for node in walk(function.body)
            if isinstance(node, For)
            and any(isinstance(n, (Local, Field)) for e in (node.start, node.stop) for n in walk(e))
        }
        for node in walk(function.body):
            indices = node.indices if isinstance(node, Element) else (node.index,) if isinstance(node, Row) else ()
            if indices and isinstance(node.array.kind, Array):
                for index, extent in zip(indices, node.array.kind.extents, strict=False):
                    if isinstance(extent, Extent) and any(
                        isinstance(n, Local) and n.name in counted for n in walk(index)
                    ):
                        found |= set(extent.symbols)
    return sorted(found)


def _used_capacities(context: Mapping[str, Any]) -> dict[str, int]:
    """The capacities that occur in code or memory, and the public ones, which every header defines."""
    texts = [*context["functions"], *(slot["declaration"] for slot in context["slots"])]
    texts += [table["declaration"] for table in context["tables"]]
    words = set(re.findall(r"\w+", " ".join(texts)))
    labelled = context["label_kind"] != "none"
    always = {name for name, known in extents().items() if known.public and (labelled or known is not OUTPUTS)}
    return {n: value for n, value in context["capacities"].items() if n in always or f"{context['macro']}_{n}" in words}


# ------------------------------------------------------------------------------------------ template contexts


def _names(spec: Spec) -> dict[str, list[str]]:
    """Lines that give, for each input, label and class, its name in C and then its name in the spec."""

    def listed(names: Sequence[str] | None, symbol: str) -> list[str]:
        return [f"{symbol.format(i)} {name}" for i, name in enumerate(names or ())]

    found = {
        "Channels": listed(spec.signal.channels if spec.signal else (), "x[{}]"),
        "Features" if spec.signal else "Inputs": listed(spec.input.columns, "{}" if spec.signal else "x[{}]"),
        "Labels": listed(spec.label.columns, "y[{}]"),
        "Label": [spec.label.column] if spec.label.column and not spec.label.columns else [],
        "Classes": listed(spec.label.classes, "{}"),
    }
    return {what: names for what, names in found.items() if names}


def _about(spec: Spec) -> list[str]:
    lines = [f"{what}: {', '.join(names)}" for what, names in _names(spec).items()]
    return ["", *lines] if lines else []


def _about_in_markdown(spec: Spec, real: str) -> list[str]:
    """The same lines in Markdown, with the numbers' types and limits.  No character of a name can end its quotes."""

    def quoted_name(name: str) -> str:
        return f"`{name.replace('`', chr(39))}`"

    quoted = {what: ", ".join(map(quoted_name, names)) for what, names in _names(spec).items()}
    unnamed = f"`x[0]` to `x[{spec.dim - 1}]`" if spec.dim > 1 else "`x[0]`"
    if spec.program.whole:
        what = f"Inputs: {quoted.pop('Inputs', unnamed)}"
        if spec.signal is not None:
            what = f"Raw samples: {quoted.pop('Channels')}"
            units = "; what a count of each is worth: " + ", ".join(f"{unit:.6g}" for unit in spec.feature_units[1])
            quoted["Features"] += units
        lines = [f"{what}; each an `int16_t`, in counts:"]
        for line in spec.counts_told():
            name, means, rest = line.rpartition(": 1 count is ")
            lines.append(f"  - {name if name == 'each input' else quoted_name(name)}{means}{rest}")
        return lines + [f"{what}: {names}." for what, names in quoted.items()]
    if spec.signal is not None:
        lines = [
            f"Raw samples: {quoted.pop('Channels')}; each a `{real}` from {-spec.signal.most:g} to {spec.signal.most:g}."
        ]
        return lines + [f"{what}: {names}." for what, names in quoted.items()]
    lines = [
        f"Inputs: {quoted.pop('Inputs', unnamed)}; each a `{real}` from {-spec.input_max_abs:g} to {spec.input_max_abs:g}."
    ]
    if spec.standardises:
        lines[0] += " The model standardises them."
    return lines + [f"{what}: {names}." for what, names in quoted.items()]


def _others(spec: Spec, names: set[str]) -> list[str]:
    """The public functions that the examples do not call."""
    program = spec.program
    called = {program.forecasts(spec.config), program.learner, *program.trainings[:1]}
    return [entry.name for entry in program.entries if entry.name in names - called]


def _example(spec: Spec, printer: Printer) -> dict[str, Any]:
    """How the examples call a model and print numbers: what depends on its main question and the kind of its labels."""
    name, macro, program = spec.name, printer.macro, spec.program
    kind, zero = program.label_kind, number(0, printer.precision)

    def shown(what: str, variable: str, whole: bool, several: bool) -> dict[str, str]:
        value = f"{variable}[0]" if several else variable
        if whole and program.whole and kind != "class":  # the cast: an int may have 16 bits
            form = {"printed": f"(long){value}", "format": "%ld", "wide": "%9ld", "digits": ""}
        elif whole:
            form = {"printed": f"(int){value}", "format": "%d", "wide": "%4d", "digits": ""}
        else:
            form = {"printed": f"(double){value}", "format": "%.4f", "wide": "%9.4f", "digits": ", 4"}
        return {"what": what, "value": value} | form

    # an answer that is not a forecast has the question's name
    question = program.forecasts(spec.config)
    answer = "forecast" if program.asks == "predict" or program.reads else program.asks
    kind_asked = program.written(question)
    asked, whole = _question(question, spec, printer), kind_asked.scalar is not Real
    several = kind_asked.shape(spec.capacities) != (1,)
    declared = f"{asked['type']} {answer} = {'0' if whole else zero};"
    if several:
        declared = f"{asked['type']} {answer}[{asked['count']}] = {{{'0' if whole else zero}}};"
    c_type = _label_type(program, printer)
    takes_label = program.learns and kind != "none"
    sample = ["sample(t, x);"]
    if takes_label:
        sample = [f"const {c_type} y = sample(t, x);"]
    if takes_label and kind == "reals":
        sample = [f"{c_type} y[{macro}_OUTPUTS];", "sample(t, x, y);"]
    lines = [shown(answer, answer, whole, several)]
    if takes_label:
        lines.append(shown("label", "y", kind == "class" or program.whole, kind == "reals"))
    if program.learns:
        lines.append(shown("status", "status", True, False) | {"wide": "%d"})
    read_label, label_argument = [f"const {c_type} y = read_label();"], f"{c_type} read_label(void)"
    if kind == "reals":
        read_label = [f"{c_type} y[{macro}_OUTPUTS];", "read_label(y);"]
        label_argument = f"void read_label({c_type} y[{macro}_OUTPUTS])"
    verb = "Predicts" if program.asks == "predict" else f"Asks for the {program.asks}"
    return {
        "answer": answer,
        "answer_type": asked["type"],
        "answer_count": asked["count"] if several else "",
        "takes_label": takes_label,
        "label_argument": label_argument,
        "read_label": read_label,
        "take": sample,
        "declare": declared,
        "ask": f"{name}_{question}(&model, {'' if program.reads else 'x, '}{'' if several else '&'}{answer})",
        "learn": f"{name}_{program.learner}(&model, x{', y' if takes_label else ''})",
        "shown": lines,
        "printed": ", ".join(line["printed"] for line in lines),
        "does": f"{verb}, then learns," if program.learns else verb,
        "alarm": " || ".join(f"status == {macro}_{s.name}" for s in program.alarms)
        if program.raises_alarms(spec.config)
        else "",
    }


def _whole(spec: Any) -> dict[str, Any]:
    """What users of a model of integers need to know: the scales, and the error bounds."""
    rates = [number(rate, FLOAT32) for rate in spec.counts_per_unit]
    shift = spec.label_shift
    made = {
        "per_unit": rates[:1] if len(set(rates)) == 1 else rates,
        "inputs": spec.counts_told(),
        "label_scale": str(2**shift) if 0 <= shift < 31 else f"{2.0**shift!r}",
        # scales of answers whose unit is not the labels' unit
        "scales": [
            (entry.name, round(1 / spec.answer_unit(entry.name)))
            for entry in spec.program.entries_for(spec.config)
            if entry.name in spec.program.answering
            and entry.name != spec.program.asks
            and spec.program.written(entry.name).scalar is not Index
        ],
    }
    if not spec.program.learns:
        model = HostModel(spec, engine="llvm")
        made["bound"] = float(spec.family.error_bound(spec).max())
        found = spec.family.measured_error(spec, lambda x: model.predict(x).reshape(len(x), -1))
        made["measured"] = float(found.max())
        if spec.signal is None:
            made["rounded_bound"] = float(spec.family.error_bound(spec, ROUNDED).max())
    return made


def _clamps(spec: Spec) -> list[str]:
    """C that raises raw samples to the lowest accepted value: one line for each channel, or a loop if all are equal."""
    assert spec.signal is not None
    lows = [-int(most) for most in channels_of(spec.signal).most]
    if len(lows) > 1 and len(set(lows)) == 1:
        each = f"if (x[i] < {lows[0]}) {{ x[i] = {lows[0]}; }}"
        return [f"for (int i = 0; i < {len(lows)}; ++i) {{ {each} }}"]
    return [f"if (x[{i}] < {low}) {{ x[{i}] = {low}; }}" for i, low in enumerate(lows)]


def _label_type(program: Program, printer: Printer) -> str:
    """The C type of a label, or of its elements if a label is an array."""
    label = program.label if program.label is not None else Int if program.whole else Real
    return printer.type(label.scalar if isinstance(label, Array) else label)


def _question(name: str, spec: Spec, printer: Printer) -> dict[str, Any]:
    """A question for the check's driver: its name, and the type and number of the values that it writes."""
    kind = spec.program.written(name)
    return {"name": name, "type": printer.type(kind.scalar), "count": printer.extent(kind.extents[0])}


def _statuses(program: Program) -> list[dict[str, Any]]:
    docs = {name: text for kind in program.statuses for name, text in member_comments(kind).items()}
    snapshots = SNAPSHOT_STATUSES if program.persistent else {}
    members = [{"name": m.name, "value": m.value, "doc": comment(docs.get(m.name, ""))} for m in program.status]
    return [
        *members,
        {
            "name": "BROKEN_BUILD",
            "value": BROKEN_BUILD,
            "doc": "the self-test computed other bits than the PC: check flags and byte order",
        },
        *({"name": name, "value": value, "doc": doc} for name, (value, doc) in snapshots.items()),
    ]


def _returned(program: Program, functions: Functions) -> set[str]:
    """Names of the statuses that one model's code returns.  The program's other models may return other statuses."""
    members = (node.value for f in functions.values() for node in walk(f.body) if isinstance(node, Member))
    return {member.name for member in members if type(member) in program.statuses}


def _snapshot(spec: Spec, root: Kernel, layout: Layout, unread: frozenset[str]) -> dict[str, Any]:
    """The template context of the C file that saves and restores a model.  root: the program's ``valid``."""
    program, config = spec.program, spec.config
    functions = specialised_kernels(spec, (root,)).functions
    if missing := sorted(unread & {n.name for f in functions.values() for n in walk(f.body) if isinstance(n, Field)}):
        raise DialectError(
            root.file,
            root.function.__code__.co_firstlineno,
            f"{root.name} reads {missing[0]}, which this model does without; read it only where the choice that needs it is made",
        )
    scalars = frozenset().union(*(struct.scalars for struct in program.structs))
    widths = Widths(spec.capacities, config)
    printer = StoredPrinter(spec.name, spec.real, scalars, {}, statuses=program.statuses, widths=widths)
    judge = functions[root.name]
    within = _within_ranges(spec, layout)
    functions = functions | {root.name: replace(judge, body=(*within, *judge.body))}
    printed = printer.all(functions)
    read = tables(printer, functions, program, config)
    # functions that are printed again here get other names, because both C files may be compiled as one
    copies = [printer.name(n) for n in functions] + [t["name"] for t in read]
    copies += [f"{spec.name}_{n}" for n in (*printer.primitives, "crc32")]
    pattern = re.compile(rf"\b{spec.name}_(?=(?:{'|'.join(n.removeprefix(f'{spec.name}_') for n in copies)})\b)")

    def renamed(text: str) -> str:
        return pattern.sub(f"{spec.name}_snapshot_", text)

    text = "\n".join(line for lines in printed.values() for line in lines)
    padding = [
        (slot.name, reader(slot.array.scalar), at)
        for slot in layout.slots
        if not slot.struct and slot.offset < program.state_bytes(layout)
        for at in range(slot.shape[0])
    ]
    return {
        "magic": int.from_bytes(MAGIC, "little"),
        "version": VERSION,
        "header": HEADER.size,
        "parameters": parameters(printer, functions, program, config),
        "constants": constants(printer, functions),
        "tables": [t | {"declaration": renamed(t["declaration"])} for t in read],
        "primitives": [primitive(f"{name}.h", spec.name) for name in _asked(printer)]
        + [
            renamed(unmarked(primitive(primitive_file(name, spec.real), spec.name)))
            for name in sorted(printer.primitives)
        ]
        + [renamed(unmarked(primitive("crc32.h", spec.name)))],
        "functions": [renamed("\n".join(lines)) for lines in printed.values()],
        "reads": [
            what
            for what in ("row", "real", "count", *NARROW.values())
            if f"_stored_{what}(" in text or what in {read for _, read, _ in padding}
        ],
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
    if isinstance(bound, str):
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
    array, counters = struct.fields[name], ("i", "j")[: len(struct.fields[name].extents)]
    scalar = name in struct.scalars
    at = tuple(Literal(0, Index, 0) if scalar else Local(0, Index, counter) for counter in counters)
    element = Element(0, array.scalar.value, Field(0, array, struct, name), at)
    no = (Return(0, Literal(0, Bool, False)),)
    # not "if (.. < low)": NaN must fail
    tests = (Binary(0, Bool, ">=", element, low), Binary(0, Bool, "<=", element, high))
    made: tuple[Statement, ...] = tuple(If(0, Unary(0, Bool, "not", test), no, ()) for test in tests)
    for counter, extent in reversed([] if scalar else list(zip(counters, array.extents, strict=True))):
        assert extent is not ...
        made = (For(0, counter, Literal(0, Index, 0), Length(0, Index, extent), 1, made),)
    return made


def _learned(memory: Memory, layout: Layout, program: Program, printer: Printer) -> list[dict[str, Any]]:
    persistent = {struct.__name__ for struct in program.persistent}
    tables: list[dict[str, Any]] = []
    for place, slot in enumerate(layout.slots):
        if slot.struct not in persistent:
            continue
        values = memory.field(slot.name).reshape(-1)
        is_real = slot.array.scalar is Real
        if not np.isfinite(values).all():
            raise ValueError(f"{slot.name} holds values that are not finite")
        tables.append(
            {
                "name": slot.name,
                "type": printer.type(slot.array.scalar),
                "values": values,
                "text": rows_of([number(v, printer.precision) if is_real else str(int(v)) for v in values]),
                "scalar": slot.scalar,
                "extents": [printer.extent(e) for e in slot.array.extents],
                "bytes": slot.nbytes,
                "loop": LEARNED_LOOPS + 2 * place,
            }
        )
    return tables


# --------------------------------------------------------------------------------------------------- templates


def _asked(printer: Printer) -> list[str]:
    """The files of runtime_c with macros by which the code asks the compiler for something, such as unrolling."""
    return ["dsp"] * printer.dsp + ["unroll"] * printer.unrolls + ["marks"] * printer.marks


def _arithmetic(printer: Printer) -> str:
    kind, precision = printer.real, printer.precision
    limits = "FLT" if kind == "float" else "DBL"
    values = {"PK_REAL": kind, "PK_MAX": f"{limits}_MAX", "PK_EPSILON": f"{limits}_EPSILON"}
    values |= {
        "PK_BITS": f"uint{8 * precision.dtype.itemsize}_t",
        "PK_SIGN_BIT": f"0x80{'00' * (precision.dtype.itemsize - 1)}u",
    }
    return primitive(
        "arithmetic.h", printer.prefix, values | {"PK_ZERO": number(0, precision), "PK_ONE": number(1, precision)}
    )


def _guard(printer: Printer) -> str:
    """C that stops the compilation for targets and flags that would give other bits."""
    order = primitive("byte_order.h", printer.prefix)
    if printer.precision.is_integer:
        return order
    narrow = printer.real == "float"
    # FLT_EVAL_METHOD 16: _Float16 is computed in its own precision, and so are the wider types
    exact = ("0", "16") if narrow else ("0", "1", "16")
    excess = " && ".join(f"(FLT_EVAL_METHOD != {method})" for method in exact)
    digits = {"PK_MANT_DIG": "FLT_MANT_DIG" if narrow else "DBL_MANT_DIG", "PK_DIGITS": str(printer.precision.bits + 1)}
    return f"{order}\n" + primitive("guard.h", printer.prefix, {"PK_EXCESS_PRECISION": excess, **digits})


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("pykernel.gen", "templates"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _render(template: str, context: Mapping[str, Any]) -> str:
    text = _environment().get_template(template).render(**context)
    return fold(text) if template.endswith((".c", ".h")) else text
