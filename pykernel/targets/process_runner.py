"""A model on a CPU that another program emulates: QEMU, or simavr for AVR.

The emulator is started for each job.
"""

from __future__ import annotations

import re
import subprocess
from typing import Any

from pykernel.errors import CheckFailed
from pykernel.gen.project import Project, check_sources
from pykernel.targets.build import Image, data_file, emulator_command, model_image
from pykernel.targets.jobs import JobModel
from pykernel.targets.target import Target, Toolchain

TIMEOUT = 600  # seconds; a job takes less than one second in QEMU, and a few seconds in simavr
JOB_BYTES = 32_768  # largest number of bytes of samples in one job, if they are stored in flash


class ProcessModel(JobModel):
    """A model in an emulator that is a separate program.  how: further arguments of ``Image``."""

    at_once = 20

    def __init__(self, project: Project, target: Target, chain: Toolchain, **how: Any) -> None:
        super().__init__(project)
        self.target = target
        emulator = target.qemu or target.simavr
        if emulator is None:
            raise ValueError(f"neither QEMU nor simavr emulates {target.name}")
        self.command = emulator_command(target, emulator)
        extra = check_sources(project, timed=target.qemu is None)
        if target.qemu:
            extra |= {name: data_file(name) for name in ("emulated.c", "semihosting.c")}
            how |= {"flash": target.qemu.flash, "ram": target.qemu.ram}
        else:
            extra |= {"avr.c": data_file("avr.c"), "in.bin": ""}
            self.block = JOB_BYTES
        self.image: Image = model_image(project, target, chain, extra=extra, **how)
        self.call("init")

    @property
    def costs(self) -> dict[str, list[int]]:
        """The ticks of each call of the main question, and of each update."""
        program = self.spec.program
        return {name: self.ticks.get(name, []) for name in (program.asks, program.learner) if name}

    @property
    def spent(self) -> int:
        return sum(map(sum, self.ticks.values()))

    def exchange(self, job: bytes, expected: int, samples: int) -> bytes:
        folder = self.image.folder
        (folder / "in.bin").write_bytes(job)
        (folder / "out.bin").unlink(missing_ok=True)
        output = self._qemu() if self.target.qemu else self._simavr()
        if len(output) != expected:
            raise CheckFailed(f"{self.target.name}: the emulated device wrote {len(output)} of {expected} bytes")
        return output

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
        self.image.rebuild("avr.c")  # the job is a part of the program
        words = [self.command, "-m", self.target.simavr.mcu, "-f", "16000000", str(self.image.elf)]
        said = re.sub(r"\x1b\[\d*m", "", self._start(words))  # the emulator colours the device's output
        return bytes.fromhex("".join(re.findall(r"^([0-9a-f]+)\.?$", said, re.MULTILINE)))

    def _start(self, words: list[str]) -> str:
        try:
            run = subprocess.run(words, cwd=self.image.folder, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{self.target.name}: the emulated device did not finish within {TIMEOUT} s") from None
        return run.stdout + run.stderr
