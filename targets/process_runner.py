"""A model on a CPU that another program emulates: QEMU, or simavr for AVR.

Each call is a job: the emulator starts, the device reads the model's bytes and what to do with them, and writes what
came of it.
"""

from __future__ import annotations

import math
import re
import shutil
import string
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Array, Index, Memory, Real
from pykernel.errors import CheckFailed, UserError
from pykernel.gen.project import Project
from pykernel.targets.build import Image, data_file, model_image
from pykernel.targets.target import Target, Toolchain

TIMEOUT = 600  # seconds; a job takes below one in QEMU, a few in simavr
RUN = 255  # no function to call: ask and learn the samples
JOB_BYTES = 32_768  # of samples in one job, where they take flash


class ProcessModel:
    """The same calls as CModel's; ``how`` goes to the image."""

    def __init__(self, project: Project, target: Target, chain: Toolchain, **how: Any) -> None:
        self.spec, self.target = project.spec, target
        self.memory: Memory = self.spec.memory(project.drop)
        self.functions = _functions_of_model_alone(project)
        program = self.spec.program
        self.orders = _Orders.of(project, self.functions)
        self.label_dtype = program.label_dtype(self.spec.real)
        self.written = np.dtype(
            [
                ("values", self.spec.real.dtype, (self.orders.values,)),
                ("position", "<i4", (self.orders.positions,)),
            ]
        )
        self.result = np.dtype([*self.written.descr, ("status", "<i4"), ("learned", "<i4")])
        emulator = target.qemu or target.simavr
        if emulator is None:
            raise ValueError(f"no other program emulates {target.name}")
        command = shutil.which(emulator.command)
        if command is None:
            other = ", or use --emulator unicorn" if target.unicorn else ""
            raise UserError(
                f"{target.name}: {emulator.command} was not found; install it (Debian: {emulator.package}){other}"
            )
        self.command = command
        extra = {"job.c": _job(project, self.orders), "device.h": data_file("device.h")}
        if target.qemu:
            extra["semihosting.c"] = data_file("semihosting.c")
            how |= {"flash": target.qemu.flash, "ram": target.qemu.ram}
        else:
            extra |= {"avr.c": data_file("avr.c"), "in.bin": ""}
        self.image: Image = model_image(project, target, chain, extra=extra, **how)
        self.call("init")

    def call(self, name: str) -> int:
        """Call NAME_<name>(s) on the model."""
        result = self._job(self.orders.of_name[name], b"", 0)[1]
        return result if name == "hash" else result - (result >> 31 << 32)

    def prequential(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ask each row, then learn it: (answers, statuses); statuses of the answers if nothing is learned."""
        x, y = np.ascontiguousarray(x, self.spec.real.dtype), np.ascontiguousarray(y, self.label_dtype)
        learns = self.spec.program.learns
        results = self._samples(RUN, [x, y.reshape(len(y), -1)] if learns else [x])
        answers = self._answers(self.spec.program.asks, results)
        statuses = results["learned" if learns else "status"].astype(np.int32)
        return answers[:, 0] if answers.shape[1] == 1 else answers, statuses

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What NAME_<question> writes for each row, (samples, values), and the statuses, as HostModel.ask."""
        results = self._samples(self.orders.of_name[question], [np.ascontiguousarray(x, self.spec.real.dtype)])
        return self._answers(question, results), results["status"].astype(np.int32)

    def visit(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Call NAME_<name> with each row and its label; the statuses, as HostModel.visit."""
        x, y = np.ascontiguousarray(x, self.spec.real.dtype), np.ascontiguousarray(y, self.label_dtype)
        results = self._samples(self.orders.of_name[name], [x, y.reshape(len(y), -1)])
        return results["learned"].astype(np.int32)

    def read(self, name: str) -> tuple[np.ndarray, int]:
        """What NAME_<name> writes, (values,), and its status, as HostModel.read."""
        room = self.spec.program.reading(name, self.memory)
        output, result = self._job(self.orders.of_name[name], b"", 0)
        status = result - (result >> 31 << 32)
        if status >= 0:
            room[:] = np.frombuffer(output, self.written)[0][_kind(room)][: len(room)]
        return room, status

    def _answers(self, question: str, results: np.ndarray) -> np.ndarray:
        answers = self.spec.program.answers(question, len(results), self.memory)
        taken = results["status"] >= 0
        answers[taken] = results[_kind(answers)][taken][:, : answers.shape[1]]
        return answers

    def _samples(self, which: int, columns: list[np.ndarray]) -> np.ndarray:
        """Each row through a question, a visit, or the main question and update, by what the columns hold."""
        rows = np.column_stack([np.ascontiguousarray(c).view(np.uint8).reshape(len(c), -1) for c in columns])
        # simavr's jobs lie in flash
        block = max(1, JOB_BYTES // rows.shape[1]) if self.target.simavr else max(1, len(rows))
        parts = [rows[start : start + block] for start in range(0, len(rows), block)]
        outputs = [self._job(which, part.tobytes(), len(part))[0] for part in parts]
        return np.frombuffer(b"".join(o[: -self.written.itemsize] for o in outputs), self.result)

    def _job(self, which: int, rows: bytes, count: int) -> tuple[bytes, int]:
        """What was written, for each sample and at the end, and what the function returned that takes no sample;
        ``memory`` holds the model afterwards."""
        folder = self.image.folder
        order = np.array([which, count], "<u4").tobytes()
        (folder / "in.bin").write_bytes(bytes(self.memory.bytes) + order + rows)
        (folder / "out.bin").unlink(missing_ok=True)
        output = self._qemu() if self.target.qemu else self._simavr()
        size, last = self.memory.layout.nbytes, self.written.itemsize
        expected = count * self.result.itemsize + 4 + last + size
        if len(output) != expected:
            raise CheckFailed(f"{self.target.name}: the emulated device wrote {len(output)} bytes of {expected}")
        self.memory.bytes[:] = output[-size:]
        samples, result = output[: -size - last - 4], output[-size - last - 4 : -size - last]
        return samples + output[-size - last : -size], int.from_bytes(result, "little")

    def _qemu(self) -> bytes:
        assert self.target.qemu is not None
        words = [self.command, "-M", self.target.qemu.machine, "-display", "none", "-serial", "none"]
        words += ["-monitor", "none", "-semihosting-config", "enable=on,target=native", "-kernel", str(self.image.elf)]
        if "riscv" in self.target.qemu.command:
            words += ["-bios", "none"]
        self._start(words)
        path = self.image.folder / "out.bin"
        return path.read_bytes() if path.exists() else b""

    def _simavr(self) -> bytes:
        assert self.target.simavr is not None
        self.image.rebuild("avr.c")  # the job is part of the program
        words = [self.command, "-m", self.target.simavr.mcu, "-f", "16000000", str(self.image.elf)]
        said = re.sub(r"\x1b\[\d*m", "", self._start(words))  # it colours what the device sends
        return bytes.fromhex("".join(re.findall(r"^([0-9a-f]+)\.?$", said, re.MULTILINE)))

    def _start(self, words: list[str]) -> str:
        try:
            run = subprocess.run(words, cwd=self.image.folder, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{self.target.name}: the emulated device did not end within {TIMEOUT} s") from None
        return run.stdout + run.stderr


def _functions_of_model_alone(project: Project) -> list[str]:
    """The public functions that take the model and nothing else."""
    name = project.spec.name
    header = project.files[f"src/{name}.h"]
    return [match[2] for match in re.finditer(_alone(name), header, re.MULTILINE)]


def _alone(name: str) -> str:
    return rf"^(void|u?int32_t) {name}_(\w+)\((?:const )?{name}_t \*\w+\);"


def _kind(room: np.ndarray) -> str:
    """Which of the device's two arrays values of this kind are written to."""
    return "values" if room.dtype.kind == "f" else "position"


@dataclass(frozen=True)
class _Orders:
    """What the device can be told to do: a number for each function; and how large its arrays must be."""

    functions: list[str]
    questions: list[str]
    readings: list[str]
    visits: list[str]
    values: int
    positions: int

    @classmethod
    def of(cls, project: Project, functions: list[str]) -> _Orders:
        program, sizes = project.spec.program, {Real: [1], Index: [1]}
        names = [entry.name for entry in program.entries_for(project.spec.config)]
        for kind in (*program.questions.values(), *program.readings.values()):
            sizes[kind.scalar.value].append(math.prod(kind.shape(project.spec.capacities)))
        questions, readings, visits = (
            [n for n in names if n in some] for some in (program.questions, program.readings, program.visits)
        )
        return cls(functions, questions, readings, visits, max(sizes[Real]), max(sizes[Index]))

    @property
    def of_name(self) -> dict[str, int]:
        names = [*self.functions, *self.questions, *self.readings, *self.visits]
        return {name: i for i, name in enumerate(names)}

    @property
    def first_visit(self) -> int:
        return len(self.of_name) - len(self.visits)


def _job(project: Project, orders: _Orders) -> str:
    name, program = project.spec.name, project.spec.program
    header = project.files[f"src/{name}.h"]
    returns = {match[2]: match[1] for match in re.finditer(_alone(name), header, re.MULTILINE)}
    real = {"i2": "int16_t", "f4": "float", "f8": "double"}[project.spec.real.dtype.str[1:]]
    labels = program.label_array(project.spec.capacities)
    labelled = program.label_kind != "none"
    label = ", label" if labels.shape else ", label[0]"

    def room(kind: Array) -> str:
        return "values" if kind.scalar is Real else "position"

    def cases(calls: Mapping[int, str]) -> str:
        return "\n".join(f"    case {i}u:\n        {call}" for i, call in calls.items())

    which = orders.of_name
    calls = {
        which[f]: f"{name}_{f}(&model);\n        return 0u;"
        if returns[f] == "void"
        else f"return (uint32_t){name}_{f}(&model);"
        for f in orders.functions
    }
    calls |= {which[r]: f"return (uint32_t){name}_{r}(&model, {room(program.readings[r])});" for r in orders.readings}
    asked = {which[q]: f"return {name}_{q}(&model, x, {room(program.questions[q])});" for q in orders.questions}
    takes = {which[s]: f"return {name}_{s}(&model, x{label});" for s in orders.visits}
    visits = f"order[0] >= {orders.first_visit}u"
    if program.learns:
        takes[RUN] = f"return {name}_update(&model, x{label if labelled else ''});"
    values = {
        "name": name,
        "macro": name.upper(),
        "real": real,
        "cases": cases(calls),
        "questions": cases(asked),
        "takes": cases(takes),
        "main": f"{name}_{program.asks}(&model, x, {room(program.questions[program.asks])})",
        "run": str(RUN),
        "visits": str(orders.first_visit),
        "labelled": visits if program.learns else f"({visits}) && (order[0] != {RUN}u)",
        "values": str(orders.values),
        "positions": str(orders.positions),
        "label": f"static {'int32_t' if labels.is_class or program.whole else real} label[{math.prod(labels.shape)}];"
        if labelled
        else "",
        "read_label": "device_read(label, (uint32_t)sizeof label);" if labelled else "/* there are no labels */",
    }
    return string.Template(data_file("job.c")).substitute(values)
