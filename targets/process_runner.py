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
from typing import Any

import numpy as np

from pykernel.dialect import Memory, Real
from pykernel.errors import CheckFailed, UserError
from pykernel.gen.project import Project
from pykernel.targets.build import Image, data_file, model_image
from pykernel.targets.target import Target, Toolchain

TIMEOUT = 600  # seconds; a job takes below one in QEMU, a few in simavr
NOTHING = 255  # no function to call: predict and learn the samples
JOB_BYTES = 32_768  # of samples in one job, where they take flash


class ProcessModel:
    """The same calls as CModel's; ``how`` goes to the image."""

    def __init__(self, project: Project, target: Target, chain: Toolchain, **how: Any) -> None:
        self.spec, self.target = project.spec, target
        self.memory: Memory = self.spec.memory(project.drop)
        self.functions = _functions_of_model_alone(project)
        program = self.spec.program
        self.questions = [e.name for e in program.entries_for(self.spec.config) if e.name in program.questions]
        self.label_dtype = program.label_dtype(self.spec.real)
        values = (self.spec.real.dtype, (self.spec.outputs,))
        self.result = np.dtype([("values", *values), ("position", "<i4", (1,)), ("status", "<i4"), ("learned", "<i4")])
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
        extra = {"job.c": _job(project, self.functions, self.questions), "device.h": data_file("device.h")}
        if target.qemu:
            extra["semihosting.c"] = data_file("semihosting.c")
            how |= {"flash": target.qemu.flash, "ram": target.qemu.ram}
        else:
            extra |= {"avr.c": data_file("avr.c"), "in.bin": ""}
        self.image: Image = model_image(project, target, chain, extra=extra, **how)
        self.call("init")

    def call(self, name: str) -> int:
        """Call NAME_<name>(s) on the model."""
        _, result = self._job(self.functions.index(name), b"", 0)
        return result if name == "hash" else result - (result >> 31 << 32)

    def run(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it: (predictions, statuses)."""
        x, y = np.ascontiguousarray(x, self.spec.real.dtype), np.ascontiguousarray(y, self.label_dtype)
        results = self._samples(NOTHING, [x, y.reshape(len(y), -1)])
        predictions = self._answers("predict", results)
        learned = results["learned"].astype(np.int32)
        return predictions[:, 0] if predictions.shape[1] == 1 else predictions, learned

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What NAME_<question> writes for each row, (samples, values), and the statuses, as HostModel.ask."""
        which = len(self.functions) + self.questions.index(question)
        results = self._samples(which, [np.ascontiguousarray(x, self.spec.real.dtype)])
        return self._answers(question, results), results["status"].astype(np.int32)

    def _answers(self, question: str, results: np.ndarray) -> np.ndarray:
        answers = self.spec.program.answers(question, len(results), self.memory)
        taken = results["status"] >= 0
        kind = "values" if answers.dtype.kind == "f" else "position"
        answers[taken] = results[kind][taken][:, : answers.shape[1]]
        return answers

    def _samples(self, which: int, columns: list[np.ndarray]) -> np.ndarray:
        """Each row through a question, and through update where the columns have labels."""
        rows = np.column_stack([np.ascontiguousarray(c).view(np.uint8).reshape(len(c), -1) for c in columns])
        # simavr's jobs lie in flash
        block = max(1, JOB_BYTES // rows.shape[1]) if self.target.simavr else max(1, len(rows))
        parts = [rows[start : start + block] for start in range(0, len(rows), block)]
        output = b"".join(self._job(which, part.tobytes(), len(part))[0] for part in parts)
        return np.frombuffer(output, self.result)

    def _job(self, which: int, rows: bytes, count: int) -> tuple[bytes, int]:
        """What the samples gave, and what the function returned; ``memory`` holds the model afterwards."""
        folder = self.image.folder
        order = np.array([which, count], "<u4").tobytes()
        (folder / "in.bin").write_bytes(bytes(self.memory.bytes) + order + rows)
        (folder / "out.bin").unlink(missing_ok=True)
        output = self._qemu() if self.target.qemu else self._simavr()
        size = self.memory.layout.nbytes
        expected = count * self.result.itemsize + 4 + size
        if len(output) != expected:
            raise CheckFailed(f"{self.target.name}: the emulated device wrote {len(output)} bytes of {expected}")
        self.memory.bytes[:] = output[-size:]
        return output[: -size - 4], int.from_bytes(output[-size - 4 : -size], "little")

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
    return rf"^(void|u?int32_t) {name}_(\w+)\((?:const )?{name}_t \*s\);"


def _job(project: Project, functions: list[str], questions: list[str]) -> str:
    name, program = project.spec.name, project.spec.program
    header = project.files[f"src/{name}.h"]
    returns = {match[2]: match[1] for match in re.finditer(_alone(name), header, re.MULTILINE)}
    cases = []
    for i, function in enumerate(functions):
        call = f"{name}_{function}(&model)"
        body = f"{call};\n        return 0u;" if returns[function] == "void" else f"return (uint32_t){call};"
        cases.append(f"    case {i}u:\n        {body}")
    real = "float" if project.spec.real.dtype.itemsize == 4 else "double"
    asked = []
    for i, question in enumerate(questions, len(functions)):
        room = "values" if program.questions[question].scalar is Real else "position"
        asked.append(f"    case {i}u:\n        return {name}_{question}(&model, x, {room});")
    labels = program.label_array(project.spec.capacities)
    values = {
        "name": name,
        "macro": name.upper(),
        "real": real,
        "cases": "\n".join(cases),
        "questions": "\n".join(asked),
        "nothing": str(NOTHING),
        "label_type": "int32_t" if labels.is_class else real,
        "labels": str(math.prod(labels.shape)),
        "label": "label" if labels.shape else "label[0]",
    }
    return string.Template(data_file("job.c")).substitute(values)
