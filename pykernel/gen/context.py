"""Compute the context of the templates: the values that they insert for a model."""

import importlib.metadata
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pykernel.dialect import FLOAT32, OUTPUTS, Array, Extent, Index, Int, Memory, Precision, Real, extents
from pykernel.dialect.program import Program
from pykernel.gen import rehearsal
from pykernel.gen.model import ModelCode
from pykernel.host.model import HostModel
from pykernel.host.snapshot import HEADER, TRAILER
from pykernel.language.c_text import comment, comment_block, number, rows_of
from pykernel.language.calls import in_cpp, shared_calls
from pykernel.language.ir import Element, Field, For, Functions, Local, Member, Row, walk
from pykernel.language.primitives import primitive, runtime_text
from pykernel.language.print_c import Printer
from pykernel.language.read import member_comments
from pykernel.progress import told_late
from pykernel.spec.families.int16_scales import ROUNDED
from pykernel.spec.model import Spec
from pykernel.spec.signal import SignalSection, raw_samples_needed
from pykernel.spec.signal_int16 import channels_of
from pykernel.spec.summary import summary

BROKEN_BUILD = -100
STAMP = "0x________u"
"""Placeholder for the stamp, which is computed from the texts when all of them are complete."""
FEW = 4
"""GCC unrolls loops over arrays of at most this length, and then warns about iterations beyond the array's end, which never happen."""
FORMS = {
    "long": {"format": "%ld", "wide": "%9ld", "digits": ""},
    "int": {"format": "%d", "wide": "%4d", "digits": ""},
    "double": {"format": "%.4f", "wide": "%9.4f", "digits": ", 4"},
}
"""C type to which the examples cast a number -> the formats with which they print the number."""
SNAPSHOT_STATUSES = {
    "SNAPSHOT_MISSING": (-101, "there is no snapshot"),
    "SNAPSHOT_FOREIGN": (-102, "the snapshot is from another model: its layout or the meaning of its numbers differs"),
    "SNAPSHOT_BROKEN": (-103, "the snapshot is damaged, or was not written completely"),
    "SNAPSHOT_INVALID": (-104, "the model or the snapshot has a number that learning cannot produce"),
    "STORAGE_FAILED": (
        -105,
        "a callback failed, a slot did not keep what was written, or two readings of it differed",
    ),
    "SNAPSHOT_FORMAT": (-106, "the snapshot has the format of another version of pykernel"),
}


def of_spec(spec: Spec, printer: Printer) -> dict[str, Any]:
    """Return the context about a model: its names, its questions, and the parts of the examples."""
    program, precision = spec.program, spec.real
    names = {entry.name for entry in program.entries_for(spec.config)}
    called = {program.forecasts(spec.config), program.learner, *program.trainings[:1]}
    return {
        "name": spec.name,
        "macro": printer.macro,
        "guard": f"{printer.macro}_H",
        "version": importlib.metadata.version("pykernel-mcu"),
        "summary": summary(spec),
        "about": _about(spec),
        "about_in_markdown": _about_in_markdown(spec, printer.real),
        "real": printer.real,
        "real_bytes": precision.dtype.itemsize,
        "classes": len(spec.label.classes or ()),
        "label_kind": program.label_kind,
        "label_type": _label_type(program, printer),
        "int16": _int16(spec) if program.is_int16 else {},
        "learns": program.learns,
        "learner": program.learner,
        "reads": program.reads,
        "gap": spec.signal is not None,
        "periods": sorted(set(spec.signal.periods)) if spec.signal is not None else [],
        "clamps": _clamps(spec.signal) if spec.signal is not None and program.is_int16 else [],
        "sample": program.sample_size,  # how many numbers a sample has
        "main": _question(program.asks, spec, printer),
        "training": next((name for name in program.trainings if name in names), ""),
        "others": [entry.name for entry in program.entries if entry.name in names - called],  # not in the examples
        "example": _example(spec, printer),
        "questions": [_question(q, spec, printer) for q in program.questions if q in names],
        "status_doc": comment(program.status.__doc__ or "").strip(),
        "twenty": number(20, precision),
        "half": "10" if program.is_int16 else number(0.5, precision),
        "input_scale": 1000 if program.is_int16 else number(min(1.0, spec.input_max_abs), precision),
        "example_rows": 200
        if spec.signal is None
        else -(-max(200, raw_samples_needed(spec.signal) + 20 * spec.stride) // 10) * 10,
        "input_ranges": _ranges(spec, precision),
        "label_scale": number(1000 if program.is_int16 else min(1.0, spec.label.max_abs), precision),
    }


def of_code(spec: Spec, code: ModelCode) -> dict[str, Any]:
    """Return the context about a model's functions and their data."""
    printer, functions = code.printer, code.functions
    returned = _returned(spec.program, functions)
    calls = shared_calls(spec.name, bool(spec.program.persistent))
    calls |= {e.name: printer.signature(functions[e.kernel.name]) for e in code.entries}
    return {
        "calls": calls,
        "in_cpp": in_cpp,
        "config_hash": code.whose.config_hash,
        "state_kind": code.whose.state_kind,
        "stamp": STAMP,
        "annotated": printer.annotated,
        "marks": primitive("marks.h", spec.name),
        "guard_code": _guard(printer),
        "float_code": [part.splitlines() for part in runtime_text("float_arm.S").split("\n\n")],
        "few": [name for name in _filled(functions) if spec.capacities[name] <= FEW],
        "capacity_docs": {name: known.doc for name, known in extents().items()},
        "shown": _used_capacities(spec, code),
        "entries": [
            {
                "doc": "\n".join(comment_block(printer.doc(functions[e.kernel.name]))),
                "declaration": calls[e.name],
            }
            for e in code.entries
        ],
        "parameters": code.parameters,
        "constants": code.constants,
        "tables": code.tables,
        "primitives": [*printer.runtime(), *([] if spec.program.is_int16 else [_arithmetic(printer)])],
        "functions": ["\n".join(lines) for lines in code.printed.values()],
        "returned": returned,
        "statuses": [*returned, *_shared_statuses(spec.program)],
        "rehearsal": rehearsal.sequence(spec).samples,
        "r": rehearsal.context(spec, printer, code.layout),
        "selftest_hash": selftest_hash(spec, code.whose.drop),
    }


def of_memory(spec: Spec, code: ModelCode, memory: Memory | None) -> dict[str, Any]:
    """Return the context about a model's memory and its learned state."""
    program, state_bytes = spec.program, spec.program.state_bytes(code.layout)
    learned = [] if memory is None else _learned(memory, code, program)
    saved = {} if program.valid is None else {"snapshot_bytes": HEADER.size + state_bytes + TRAILER.size}
    return {
        "persists": bool(program.persistent),
        "clear": "reset" if program.persistent else "init",
        "slots": code.slots,
        # some CPUs align 8-byte members of a struct to 4 bytes
        "widest": f"int{8 * min(4, max(slot.array.scalar.dtype(spec.real).itemsize for slot in code.layout.slots))}_t",
        "state_bytes": state_bytes,
        "ram_bytes": code.layout.nbytes,
        "const_bytes": sum(table["bytes"] for table in (*code.tables, *learned)),
        "learned": learned,
        **saved,
    }


def selftest_hash(spec: Spec, drop: tuple[str, ...]) -> int:
    """Return the number that NAME_selftest must compute."""
    with told_late() as say:
        say(
            0.0,
            f"computing the expected result of {spec.name}_selftest, which takes a long time for a model of this size",
        )
        return rehearsal.run(spec, drop)


def _filled(functions: Functions) -> list[str]:
    """Return the capacities of arrays that may be partly used.  Loops over these arrays begin or end at a variable or a
    field.
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
            if isinstance(node, (Element, Row)) and isinstance(node.array.kind, Array):
                indices = node.indices if isinstance(node, Element) else (node.index,)
                for index, extent in zip(indices, node.array.kind.extents, strict=False):
                    names = {n.name for n in walk(index) if isinstance(n, Local)}
                    if isinstance(extent, Extent) and names & counted:
                        found |= set(extent.symbols)
    return sorted(found)


def _ranged(spec: Spec) -> bool:
    """Return whether the inputs are reals, each with a separate range."""
    return isinstance(spec.input.max_abs, tuple) and not spec.program.is_int16 and spec.signal is None


def _ranges(spec: Spec, precision: Precision) -> dict[str, str]:
    """Return the inputs' ranges in C: their middles and half their widths; {} unless ``_ranged``."""
    if not _ranged(spec):
        return {}
    low, high = spec.input_ranges
    found = {"middle": (low + high) / 2, "width": (high - low) / 2}
    return {
        name: ", ".join(number(float(f"{each:.6g}"), precision) for each in values) for name, values in found.items()
    }


def _used_capacities(spec: Spec, code: ModelCode) -> dict[str, int]:
    """Return the capacities that occur in code or memory, and the public capacities, which every header defines.
    Without labels, OUTPUTS does not count as public.
    """
    texts = [line for lines in code.printed.values() for line in lines]
    texts += [each["declaration"] for each in (*code.slots, *code.tables)]
    words, macro = set(re.findall(r"\w+", " ".join(texts))), code.printer.macro
    labelled = spec.program.label_kind != "none"
    always = {name for name, known in extents().items() if known.public and (labelled or known is not OUTPUTS)}
    return {n: value for n, value in spec.capacities.items() if n in always or f"{macro}_{n}" in words}


def _names(spec: Spec) -> dict[str, list[str]]:
    """Return, by heading, a line for each input, label and class: its name or index in C, then its name in the spec."""

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
    """Return the names from ``_names``, and the formulas of the inputs, as the lines of a comment."""
    told = []
    for what, names in _names(spec).items():
        told.append(f"{what}: {', '.join(names)}")
        if what in ("Inputs", "Channels"):
            told += [f"x[{j}] = {how}" for j, how in spec.formulas.items()]
    return [" *", *(f" * {comment(line)}".rstrip() for line in told)] if told else []


def _about_in_markdown(spec: Spec, real: str) -> list[str]:
    """Return the names from ``_names`` in Markdown, with the numbers' types and limits.  Characters that would end a
    name's quotes are replaced.
    """

    def quoted_name(name: str) -> str:
        return f"`{name.replace('`', chr(39))}`"

    quoted = {what: ", ".join(map(quoted_name, names)) for what, names in _names(spec).items()}
    unnamed = f"`x[0]` to `x[{spec.dim - 1}]`" if spec.dim > 1 else "`x[0]`"
    signal, most = spec.signal, spec.input_max_abs
    what = f"Inputs: {quoted.pop('Inputs', unnamed)}"
    if signal is not None:
        what, most = f"Raw samples: {quoted.pop('Channels')}", signal.most
    lines = [f"{what}; each a `{real}` from {-most:g} to {most:g}."]
    if spec.program.is_int16:
        lines = [f"{what}; each an `int16_t`, in counts:"]
        for line in spec.counts_told():
            name, means, rest = line.rpartition(": 1 count is ")
            lines.append(f"  - {name if name == 'each input' else quoted_name(name)}{means}{rest}")
        if signal is not None:
            units = ", ".join(f"{unit:.6g}" for unit in spec.feature_units[1])
            quoted["Features"] += f"; the size of one count, feature by feature: {units}"
    elif _ranged(spec):
        lines[0] = f"{what}; each a `{real}`, in the ranges below."
        names = spec.input.columns or [f"x[{j}]" for j in range(spec.dim)]
        lines += [
            f"  - {quoted_name(name)}: from {low:.6g} to {high:.6g}"
            for name, low, high in zip(names, *spec.input_ranges, strict=True)
        ]
    if signal is None and not spec.program.is_int16 and spec.standardises:
        lines[0] += " The model standardises them."
    if spec.completes:
        lines[0] += " NaN is a missing input, which the model fills in."
    lines += [f"  - {quoted_name(f'x[{j}] = {how}')}" for j, how in spec.formulas.items()]
    return lines + [f"{what}: {names}." for what, names in quoted.items()]


def _example(spec: Spec, printer: Printer) -> dict[str, Any]:
    """Return the parts of the examples that depend on the model's main question and on the kind of its labels."""
    name, macro, program = spec.name, printer.macro, spec.program
    kind = program.label_kind if program.learns else "none"  # a model takes labels only if it learns

    def shown(what: str, variable: str, whole: bool, several: bool) -> dict[str, str]:
        value = f"{variable}[0]" if several else variable
        # the type of the cast: long for int32, because an int may have only 16 bits
        form = "double" if not whole else "long" if program.is_int16 and program.label_kind != "class" else "int"
        return {"what": what, "value": value, "printed": f"({form}){value}"} | FORMS[form]

    # in the example, the variable is named after the question, or "forecast" if the question is "predict"
    question = program.forecasts(spec.config)
    main = program.answering.get(program.asks, program.asks)
    answer = "forecast" if main == "predict" else main
    written = program.written(question)
    asked, whole = _question(question, spec, printer), written.scalar is not Real
    several = written.shape(spec.capacities) != (1,)
    zero = "0" if whole else number(0, printer.precision)
    c_type = _label_type(program, printer)
    take, read_label = [f"const {c_type} y = sample(t, x);"], [f"const {c_type} y = read_label();"]
    label_argument = f"{c_type} read_label(void)"
    if kind == "none":
        take = ["sample(t, x);"]
    elif kind == "reals":
        labels = f"{c_type} y[{macro}_OUTPUTS]"
        take, read_label = [f"{labels};", "sample(t, x, y);"], [f"{labels};", "read_label(y);"]
        label_argument = f"void read_label({labels})"
    lines = [shown(answer, answer, whole, several)]
    if kind != "none":
        lines.append(shown("label", "y", kind == "class" or program.is_int16, kind == "reals"))
    if program.learns:
        lines.append(shown("status", "status", True, False) | {"wide": "%d"})
    verb = "Predicts" if main == "predict" else f"Asks for the {main}"
    return {
        "answer": answer,
        "answer_type": asked["type"],
        "answer_count": asked["count"] if several else "",
        "takes_label": kind != "none",
        "label_argument": label_argument,
        "read_label": read_label,
        "take": take,
        "declare": f"{asked['type']} {answer}" + (f"[{asked['count']}] = {{{zero}}};" if several else f" = {zero};"),
        "ask": f"{name}_{question}(&model, {'' if program.reads else 'x, '}{'' if several else '&'}{answer})",
        "none": "it is too early" if program.reads else "an input is out of range",
        "learn": f"{name}_{program.learner}(&model, x{', y' if kind != 'none' else ''})",
        "shown": lines,
        "printed": ", ".join(line["printed"] for line in lines),
        "does": f"{verb}, then learns," if program.learns else verb,
        "alarm": " || ".join(f"status == {macro}_{status.name}" for status in program.alarms),
    }


def _int16(spec: Any) -> dict[str, Any]:
    """Return the scales and the error bounds of an int16 model."""
    shift = spec.label_shift
    made = {
        "per_unit": _alike(spec.counts_per_unit),
        "offset": _alike(spec.offsets) if spec.offsets.any() else [],
        "inputs": spec.counts_told(),
        "label_offset": repr(spec.label_offset) if spec.label_offset else "",
        "label_scale": str(2**shift) if 0 <= shift < 31 else f"{2.0**shift!r}",
        # scales of outputs whose unit is not the labels' unit
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
        measured = spec.family.measured_error(spec, lambda x: model.predict(x).reshape(len(x), -1))
        made["measured"] = float(measured.max())
        if spec.signal is None:
            made["rounded_bound"] = float(spec.family.error_bound(spec, ROUNDED).max())
    return made


def _alike(values: np.ndarray) -> list[str]:
    """Return float32 numbers as C literals; a single literal if all numbers are equal."""
    return [number(value, FLOAT32) for value in (values[:1] if (values == values[0]).all() else values)]


def _clamps(signal: SignalSection) -> list[str]:
    """Return C code that raises raw samples to the lowest accepted value: a line for each channel, or a loop if all limits are equal."""
    lows = [-int(most) for most in channels_of(signal).most]
    lines = [f"if (x[{i}] < {low}) {{ x[{i}] = {low}; }}" for i, low in enumerate(lows)]
    if len(lows) > 1 and len(set(lows)) == 1:
        return [f"for (int i = 0; i < {len(lows)}; ++i) {{ {lines[0].replace('[0]', '[i]')} }}"]
    return lines


def _label_type(program: Program, printer: Printer) -> str:
    """Return the C type of a label, or of its elements if a label is an array."""
    label = program.label if program.label is not None else Int if program.is_int16 else Real
    return printer.type(label.scalar if isinstance(label, Array) else label)


def _question(name: str, spec: Spec, printer: Printer) -> dict[str, Any]:
    """Return a question for the templates: its name, and the type and number of the values that it writes."""
    kind = spec.program.written(name)
    return {"name": name, "type": printer.type(kind.scalar), "count": printer.extent(kind.extents[0])}


def _returned(program: Program, functions: Functions) -> list[dict[str, Any]]:
    """Return the status 0, and all other statuses of the program that this model's functions can return."""
    docs = {name: text for kind in program.statuses for name, text in member_comments(kind).items()}
    members = (node.value for f in functions.values() for node in walk(f.body) if isinstance(node, Member))
    found = {member.name for member in members if type(member) in program.statuses}
    return [
        {"name": member.name, "value": member.value, "doc": comment(docs.get(member.name, ""))}
        for member in program.status
        if member.name in found or member.value == 0
    ]


def _shared_statuses(program: Program) -> list[dict[str, Any]]:
    every = {
        "BROKEN_BUILD": (
            BROKEN_BUILD,
            "the self-test's result differs from the PC's: check compiler flags and byte order",
        )
    }
    every |= SNAPSHOT_STATUSES if program.persistent else {}
    return [{"name": name, "value": value, "doc": doc} for name, (value, doc) in every.items()]


def _learned(memory: Memory, code: ModelCode, program: Program) -> list[dict[str, Any]]:
    """Return the slots of the model's persistent memory, with the numbers from which the device starts."""
    persistent = {struct.__name__ for struct in program.persistent}
    tables: list[dict[str, Any]] = []
    for slot, told in zip(code.layout.slots, code.slots, strict=True):
        if slot.struct in persistent:
            values = memory.field(slot.name).reshape(-1)
            if not np.isfinite(values).all():
                raise ValueError(f"{slot.name} holds values that are not finite")
            real, precision = slot.array.scalar is Real, code.printer.precision
            text = rows_of([number(value, precision) if real else str(int(value)) for value in values])
            tables.append(told | {"text": text, "bytes": slot.nbytes})
    return tables


# --------------------------------------------------------------------------------------------------- templates


def _arithmetic(printer: Printer) -> str:
    kind, precision = printer.real, printer.precision
    limits = "FLT" if kind == "float" else "DBL"
    values = {
        "PK_REAL": kind,
        "PK_MAX": f"{limits}_MAX",
        "PK_EPSILON": f"{limits}_EPSILON",
        "PK_ZERO": number(0, precision),
        "PK_ONE": number(1, precision),
    }
    return primitive("arithmetic.h", printer.prefix, values)


def _guard(printer: Printer) -> str:
    """Return C code that stops the compilation for targets and compiler flags that would change the bits of results."""
    order = primitive("byte_order.h", printer.prefix)
    if printer.precision.is_int16:
        return order
    narrow = printer.real == "float"
    # FLT_EVAL_METHOD 16: _Float16 is computed in its own precision, and so are the wider types
    exact = ("0", "16") if narrow else ("0", "1", "16")
    excess = " && ".join(f"(FLT_EVAL_METHOD != {method})" for method in exact)
    digits = {"PK_MANT_DIG": "FLT_MANT_DIG" if narrow else "DBL_MANT_DIG", "PK_DIGITS": str(printer.precision.bits + 1)}
    return f"{order}\n" + primitive("guard.h", printer.prefix, {"PK_EXCESS_PRECISION": excess, **digits})
