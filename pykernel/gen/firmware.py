"""Generate a check's program for a board or an emulated CPU.  The program executes the jobs that the host sends.

This module makes the program's C code, and numbers the functions that a job can call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pykernel.dialect import Array, Index, Int16, Real, Scalar
from pykernel.errors import UserError
from pykernel.language.primitives import C_TYPES
from pykernel.spec.model import Spec

RUN = 255
"""Number of the job that predicts and learns samples.  Every other job has the number of the function that it calls."""
CHUNK = 48
"""Largest number of data bytes in a frame.

A frame has 8 further bytes, so its total length is at most 56 bytes.  Every buffered UART holds at least 62 bytes.
"""

FOLDER = "examples/{name}_check"
PROGRAM = {f"{FOLDER}/{file}": file for file in ("check.h", "check.c", "check_link.c", "check_time.c")}
"""Path -> template of the files that all boards use.  The files are in the Arduino sketch's folder, because Arduino compiles
all files in this folder."""
BOARDS = {
    f"{FOLDER}/{{name}}_check.ino": "check_sketch.ino",
    "examples/bare-metal-check/main.c": "check_main.c",
    "examples/zephyr-check/CMakeLists.txt": "zephyr_app_CMakeLists.txt",
    "examples/zephyr-check/prj.conf": "zephyr_check_prj.conf",
    "examples/zephyr-check/src/main.c": "check_zephyr_main.c",
    "examples/esp-idf-check/CMakeLists.txt": "idf_app_CMakeLists.txt",
    "examples/esp-idf-check/main/CMakeLists.txt": "idf_app_main_CMakeLists.txt",
    "examples/esp-idf-check/main/main.c": "check_idf_main.c",
}

Render = Callable[[str, Mapping[str, Any]], str]


@dataclass(frozen=True)
class Orders:
    """The functions that the host can order the program to call, numbered by ``of_name``, and the sizes of the program's arrays.

    functions: public functions whose only parameter is the model -> the type of their result.
    values: length of the longest output of numbers.  positions: length of the longest output of indices.
    """

    functions: dict[str, str]
    questions: list[str]
    readings: list[str]
    visits: list[str]
    values: int
    positions: int

    @property
    def of_name(self) -> dict[str, int]:
        return {n: i for i, n in enumerate((*self.functions, *self.questions, *self.readings, *self.visits))}

    @property
    def first_visit(self) -> int:
        return len(self.of_name) - len(self.visits)


def orders_of(spec: Spec, header: str) -> Orders:
    """Return the orders for a model.  header: the text of NAME.h."""
    program, sizes, name = spec.program, {Real: [1], Index: [1]}, spec.name
    alone = rf"^(void|u?int32_t) {name}_(\w+)\((?:const )?{name}_t \*\w+\);"
    functions = {match[2]: match[1] for match in re.finditer(alone, header, re.MULTILINE)}
    names = [entry.name for entry in program.entries_for(spec.config)]
    questions, readings, visits = (
        [n for n in names if n in some] for some in (program.questions, program.readings, program.visits)
    )
    for each in (*questions, *readings):
        kind = program.written(each)
        sizes[_buffer(kind)].append(math.prod(kind.shape(spec.capacities)))
    return Orders(functions, questions, readings, visits, max(sizes[Real]), max(sizes[Index]))


def _buffer(kind: Array) -> Scalar:
    """Return the type of the program's buffer for outputs of this kind: Real (the type of inputs), or Index."""
    return Real if kind.scalar in (Real, Int16) else Index


def check_program(spec: Spec, header: str, timed: bool, render: Render) -> dict[str, str]:
    """Return the program's C files: file name -> text.

    The serial link to the host is left out, because an emulator connects in another way.
    """
    context = _context(spec, header)
    return {file: render(file, context) for file in ("check.h", "check.c", *(["check_time.c"] if timed else []))}


def page_program(spec: Spec, header: str, render: Render) -> str:
    """Return the C code that a web page calls."""
    return render("page.c", _context(spec, header))


def check_files(spec: Spec, header: str, render: Render) -> dict[str, str]:
    """Return the program for an Arduino, for a board without an operating system, for Zephyr and for ESP-IDF: path -> text."""
    beside = [file for file in PROGRAM.values() if file.endswith(".c")]
    context = {**_context(spec, header), "app": "check", "beside": beside}
    return {path.format(name=spec.name): render(template, context) for path, template in (PROGRAM | BOARDS).items()}


def _context(spec: Spec, header: str) -> dict[str, Any]:
    name, program, orders = spec.name, spec.program, orders_of(spec, header)
    if name in ("check", "page"):
        raise UserError(
            f"the C code around the model already uses names that begin with {name}_; give the model another name"
        )
    real = C_TYPES[spec.real.dtype.str[1:]]
    labels = program.label_array(spec.capacities)
    labelled = program.label_kind != "none"
    label = ", label" if labels.shape else ", label[0]"

    def room(kind: Array) -> str:
        return "values" if _buffer(kind) is Real else "position"

    which, forecast = orders.of_name, program.forecasts(spec.config)
    named = {entry.kind: entry.name for entry in program.entries}
    late = labelled and "gather" in named  # a step's label comes after its raw rows and its forecast
    calls = {
        which[f]: [f"{name}_{f}(&model);", "return 0u;"]
        if result == "void"
        else [f"return (uint32_t){name}_{f}(&model);"]
        for f, result in orders.functions.items()
    }
    calls |= {which[r]: [f"return (uint32_t){name}_{r}(&model, {room(program.readings[r])});"] for r in orders.readings}
    takes = {which[s]: f"{name}_{s}(&model, x{'' if s in program.promises else label})" for s in orders.visits}
    if program.learns:
        takes[RUN] = f"{name}_{program.learner}(&model, x{label if labelled else ''})"
    push = f"{name}_{named['gather']}(&model, x)" if late else None
    if program.reads and not spec.inner.program.learns:
        # this only gathers the row, and comes before the question, because the answer is about this row
        push = takes[RUN]
    visits = f"order[0] >= {orders.first_visit}u"
    kind = "int32_t" if labels.is_class or program.is_int16 else real
    return {
        "name": name,
        "macro": name.upper(),
        "stamp": re.search(r"_STAMP (\S+)", header)[1],  # type: ignore[index]
        "real": real,
        "chunk": CHUNK,
        "calls": list(calls.items()),
        "asks": [(which[q], f"{name}_{q}(&model, x, {room(program.questions[q])})") for q in orders.questions],
        "takes": list(takes.items()),
        "main": f"{name}_{program.asks}(&model, {'' if program.reads else 'x, '}{room(program.answer)})",
        "forecast": f"{name}_{forecast}(&model, {'' if program.reads else 'x, '}{room(program.written(forecast))})",
        "push": push,
        "alarm": f"{name}_alarm(&model, values)" if program.alarms else None,
        "reads": program.reads,
        "sample": program.sample_size,
        "run": RUN,
        "learn": f"{name}_{named['label']}(&model{label})" if late else "0" if push else takes.get(RUN, "0"),
        "first_visit": orders.first_visit,
        "takes_when": visits if program.learns else f"({visits}) && (order[0] != {RUN}u)",
        "values": orders.values,
        "positions": orders.positions,
        "label": {"type": kind, "count": math.prod(labels.shape)} if labelled else None,
    }
