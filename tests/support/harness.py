"""tests/support/fuzz/fuzz.c around a generated model: what it needs to know of it, and its compilation."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pykernel.algorithms.extents import L_MAX, N_MAX
from pykernel.dialect import Array, Index, Int16, Real
from pykernel.dialect.program import taken_by
from pykernel.gen.context import SNAPSHOT_STATUSES
from pykernel.gen.project import Project
from pykernel.spec.model import Spec

FUZZ = Path(__file__).parent / "fuzz" / "fuzz.c"
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
"""What stops a program at undefined behaviour."""
DIVISIONS = "-fsanitize=float-divide-by-zero"
"""What stops it at a division by zero, too: IEEE-754 says what that gives, and forged states lead there."""
PER_VECTOR = (N_MAX, L_MAX)


def write_sources(project: Project, folder: Path) -> list[Path]:
    for path, text in project.files.items():
        if path.startswith("src/"):
            (folder / Path(path).name).write_text(text, encoding="utf-8")
    return sorted(folder.glob("*.c"))


def build_fuzzer(
    project: Project, folder: Path, compiler: str, flags: Sequence[str] = ()
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The program, and what its compiler said.  The model's name is m."""
    sources = write_sources(project, folder)
    real = "double" if project.spec.precision == "float64" else "float"
    (folder / "model_real.h").write_text(f"#define REAL {real}\n", encoding="utf-8")
    (folder / "model_calls.h").write_text(model_calls(project), encoding="utf-8")
    program = folder / "fuzz"
    words = [compiler, "-std=c99", *flags, f"-I{folder}", *map(str, sources), str(FUZZ), "-o", str(program)]
    return program, subprocess.run(words, capture_output=True, text=True)


def model_calls(project: Project) -> str:
    """model_calls.h: the numbers of a spec, the fields of its state, and a function that calls each of its functions."""
    spec = project.spec
    layout = spec.memory(project.drop).layout
    persistent = {struct.__name__ for struct in spec.program.persistent}
    fields, vectors = [], 0
    for slot in layout.slots:
        if slot.struct in persistent:
            per_vector = not slot.scalar and slot.array.extents[0] in PER_VECTOR and slot.name in ("v", "alpha", "a")
            count = int(np.prod(slot.shape))
            row = count // slot.shape[0] if per_vector else 0
            vectors = slot.shape[0] if per_vector else vectors
            real = "true" if slot.array.scalar is Real else "false"
            width = slot.array.scalar.dtype(spec.real).itemsize
            fields.append(f'{{"{slot.name}", {slot.offset}u, {count}u, {row}u, {width}u, {real}}}')
    statuses = [*map(int, spec.program.status), *(value for value, _ in SNAPSHOT_STATUSES.values())]
    counted = vectors and any(slot.name == "n" and slot.struct in persistent for slot in layout.slots)
    calls = _calls(spec)
    cases = "\n".join(f"    case {i}: {{\n{body}\n    }}" for i, (_, _, body) in enumerate(calls))
    return f"""
#define FIELDS {", ".join(fields)}
#define STATUSES {", ".join(map(str, statuses))}
#define VECTORS {vectors}
#define VECTORS_IN_USE {"s->n" if counted else "VECTORS"}
#define CALLS {len(calls)}u
static const char *const call_names[] = {{{", ".join(f'"{name}"' for name, _, _ in calls)}}};
static const bool call_changes[] = {{{", ".join("true" if changes else "false" for _, changes, _ in calls)}}};

static int32_t carry_out(m_t *s, uint32_t which, input_t *in)
{{
    switch (which) {{
{cases}
    default:
        return 0;
    }}
}}
"""


def _calls(spec: Spec) -> list[tuple[str, bool, str]]:
    """Name, whether it may change the model, and the C that calls it; what learns first."""
    program = spec.program
    made = []
    for entry in program.entries_for(spec.config):
        kinds = taken_by(entry.kernel)
        lines = []
        if program.is_int16 and kinds and kinds[0] == program.sample:
            center, most = _counts(spec)
            size = f"M_{program.sample_size}"
            lines += [f"int16_t x[{size}];", f"fill_counts(in, x, {size}, {center}, {most});"]
        elif kinds and kinds[0] == program.sample:
            limit = float(np.min(spec.input.max_abs if spec.signal is None else spec.signal.most))
            scale = min(spec.length_scale if spec.signal is None else limit, limit / 3)
            size = f"M_{program.sample_size}"
            lines += [f"REAL x[{size}];", f"fill(in, x, {size}, {_number(scale)}, {_number(limit)});"]
        if entry.name in program.questions or entry.name in program.readings:
            array = kinds[-1]
            count = int(np.prod(array.shape(spec.capacities)))
            if array.scalar is Index:
                lines += ["int32_t answer[1] = {7};"]
                check = f"check_position(status, answer[0], {len(spec.label.classes or ())});"
            elif program.is_int16:
                kind, width = ("int16_t", 2) if array.scalar is Int16 else ("int32_t", 4)
                lines += [f"{kind} answer[{count}];", "memset(answer, 7, sizeof answer);"]
                check = f"check_whole(status, answer, {count}u, {width}u);"
            else:
                lines += [f"REAL answer[{count}];", f"for (int i = 0; i < {count}; i++) {{ answer[i] = (REAL)7; }}"]
                check = f"check_answer(status, answer, {count}u);"
            given = "x, answer" if entry.name in program.questions else "answer"
            lines += [f"const int32_t status = m_{entry.name}(s, {given});", check, "return status;"]
            made.append((entry.name, False, lines))
            continue
        arguments = ["s", *(["x"] if lines else [])]
        if kinds[1:] or (kinds and "x" not in arguments):
            kind, limit = kinds[-1], _number(spec.label_max_abs)
            most = spec.config.label_most if program.is_int16 and kinds[-1] is not Index else 0
            scale = _number(min(1.0, spec.label_max_abs / 4))
            if kind is Index and "x" in arguments:
                classes = len(spec.label.classes or ())
                lines += [
                    f"const int32_t y = (byte(in) < 245) ? (int32_t)below(in, {classes}u) : (int32_t)any_number(in);"
                ]
            elif kind is Index:
                lines += ["const int32_t y = (byte(in) < 230) ? 0 : (int32_t)any_number(in);"]
            elif program.is_int16 and isinstance(kind, Array):
                lines += ["int32_t y[M_OUTPUTS];", f"fill_labels(in, y, M_OUTPUTS, {most});"]
            elif program.is_int16:
                lines += [f"const int32_t y = hostile_count(in, {most});"]
            elif kind is Real:
                lines += [f"const REAL y = hostile(in, {scale}, {limit});"]
            else:
                lines += ["REAL y[M_OUTPUTS];", f"fill(in, y, M_OUTPUTS, {scale}, {limit});"]
            arguments.append("y")
        lines += [f"return m_{entry.name}({', '.join(arguments)});"]
        made.append((entry.name, True, lines))
    made.sort(key=lambda each: each[0] != program.learner)
    return [(name, changes, "\n".join(f"        {line}" for line in lines)) for name, changes, lines in made]


def _counts(spec: Spec) -> tuple[int, int]:
    """About where a sample's counts are, and how far from there they may be."""
    if spec.signal is not None:
        return 0, int(spec.config.sample_most.max())
    made = spec.conversion
    return int(made.center[0]), int(made.most.max())


def _number(value: float) -> str:
    return f"(REAL){value!r}"
