"""Read and validate targets, which are described by one TOML file each."""

from __future__ import annotations

import functools
import tomllib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pykernel.errors import UserError, did_you_mean
from pykernel.spec.sections import target_files

Toolchain = Literal["zig", "gcc"]
Emulator = Literal["unicorn", "qemu", "simavr", "wasmtime"]
Word = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Region(Section):
    """A memory region: its first address and its size in bytes."""

    start: int = Field(ge=0, lt=2**32)
    bytes: int = Field(gt=0, le=2**28)


class Part(Section):
    """A specific microcontroller, with its largest contiguous regions of RAM and flash."""

    name: Word
    flash: Region
    ram: Region


class Zig(Section):
    """Flags for the compiler of the ziglang wheel."""

    flags: tuple[Word, ...]


class Program(Section):
    """A program: its command, and the package that provides it."""

    command: Word
    package: Word


class Gcc(Program):
    """A cross compiler and its flags."""

    flags: tuple[Word, ...]


class Unicorn(Section):
    """Settings for Unicorn: the architecture, and the CPU model's name without UC_CPU_ARM_ or UC_CPU_RISCV32_."""

    arch: Literal["arm", "riscv"]
    cpu: Word


class Qemu(Program):
    """A QEMU machine that executes the target's instructions.  The addresses and sizes of the machine's memory may
    differ from those of the part's memory.
    """

    machine: Word
    flash: Region
    ram: Region


class Simavr(Program):
    mcu: Word


class Wasmtime(Section):
    """A WebAssembly runtime, and the wheel that provides it."""

    package: Word


class Target(Section):
    """A CPU, a part that has it, and the ways to compile for it and to emulate it."""

    name: Word
    summary: Word
    fpu: Literal["none", "single", "double"]
    precisions: tuple[Literal["float32", "float64", "int16"], ...] = ("float32", "float64", "int16")
    part: Part
    zig: Zig | None = None
    gcc: Gcc | None = None
    unicorn: Unicorn | None = None
    qemu: Qemu | None = None
    simavr: Simavr | None = None
    wasmtime: Wasmtime | None = None

    @property
    def arch(self) -> Literal["arm", "riscv", "avr", "wasm"]:
        """The family of the CPU's instruction set."""
        return self.unicorn.arch if self.unicorn else "avr" if self.simavr else "wasm"

    @property
    def toolchains(self) -> tuple[Toolchain, ...]:
        known: tuple[Toolchain, ...] = ("gcc", "zig")  # GCC first, because bounds can be proved for its code
        return tuple(name for name in known if getattr(self, name) is not None)

    @property
    def emulators(self) -> tuple[Emulator, ...]:
        known: tuple[Emulator, ...] = ("unicorn", "qemu", "simavr", "wasmtime")
        return tuple(name for name in known if getattr(self, name) is not None)

    @property
    def counting(self) -> Emulator | None:
        """The emulator that counts instructions or, for an AVR, cycles."""
        return "unicorn" if self.unicorn else "simavr" if self.simavr else None


def make_target(name: str, content: dict[str, Any]) -> Target:
    """Make a target from a file's content.  Raises pydantic's ValueError if a key is missing or unknown."""
    return Target.model_validate({"name": name} | content)


@functools.cache
def all_targets() -> dict[str, Target]:
    """Return a dictionary that maps the name of each target to the target."""
    read = [make_target(name, tomllib.loads(f.read_text(encoding="utf-8"))) for name, f in target_files().items()]
    # the targets that Unicorn emulates come first
    return {target.name: target for target in sorted(read, key=lambda t: (t.unicorn is None, t.name))}


def find_target(name: str) -> Target:
    """Return the target with this name.  If the name is not known, raises UserError with a list of all targets."""
    targets = all_targets()
    if name not in targets:
        remedy = did_you_mean(name, targets, f"there are: {', '.join(targets)}")
        raise UserError(f"target {name!r} is not known; {remedy}")
    return targets[name]
