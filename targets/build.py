"""A generated project as an ELF file for a target."""

from __future__ import annotations

import functools
import importlib.resources
import importlib.util
import shutil
import string
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from pykernel.errors import MissingExtra, UserError
from pykernel.gen.compilers import Compiler, compile_c, probe
from pykernel.gen.project import Project
from pykernel.targets.target import Region, Target, Toolchain

STACK_ALLOWANCE = 1024
"""Bytes of RAM kept for the stack when a model is fitted to a part."""

COMMON = ("-ffp-contract=off", "-ffreestanding", "-fno-builtin", "-ffunction-sections", "-fdata-sections")
ZIG = ("-fno-unwind-tables", "-fno-asynchronous-unwind-tables")
GCC = ("-fno-tree-loop-distribute-patterns",)


def toolchain(target: Target, name: Toolchain) -> Compiler:
    """The target's compiler.  Raises UserError, with the way to install it, if it is not there."""
    if name == "zig":
        if target.zig is None:
            raise UserError(f"zig has no {target.name}; use --toolchain gcc")
        if not has_module("ziglang"):
            raise MissingExtra("--toolchain zig", "emulate")
        command: tuple[str, ...] = (sys.executable, "-m", "ziglang", "cc")
        missing = "the ziglang wheel does not run; install it again: pip install --force-reinstall ziglang"
    else:
        if target.gcc is None:
            raise UserError(f"{target.name} has no GCC in pykernel; use --toolchain zig")
        command = (target.gcc.command,)
        other = ", or use --toolchain zig" if target.zig else ""
        missing = (
            f"{target.name}: {target.gcc.command} was not found; install it (Debian: {target.gcc.package}){other}"
        )
    found = _probe("zig" if name == "zig" else command[0], command)
    if found is None:
        raise UserError(missing)
    return found


_probe = functools.cache(probe)


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def found_toolchains(target: Target) -> list[Toolchain]:
    """Those of the target's that are on this machine; without starting them."""
    there = {
        "zig": target.zig is not None and has_module("ziglang"),
        "gcc": target.gcc is not None and shutil.which(target.gcc.command) is not None,
    }
    return [name for name in target.toolchains if there[name]]


@dataclass(frozen=True)
class Function:
    """Where a function lies."""

    start: int
    size: int


class Image:
    """A model compiled and linked for a target.

    flags: what was given to the compiler besides the target's own.
    sizes: bytes of .text, .rodata, .data and .bss of the model's objects.
    flash_bytes: all that is linked, the float library included.
    ``extra`` holds further C files (name -> text), ``patch`` changes the model's C (for negative controls).
    """

    def __init__(
        self,
        project: Project,
        target: Target,
        chain: Toolchain,
        level: str = "-O2",
        extra: Mapping[str, str] | None = None,
        flash: Region | None = None,
        ram: Region | None = None,
        flags: Sequence[str] = (),
        patch: Callable[[str], str] = lambda text: text,
        fit: bool = True,
    ) -> None:
        self.project, self.target, self.chain = project, target, chain
        self.flash, self.ram = flash or target.part.flash, ram or target.part.ram
        if fit:
            refuse_large_ram(project, target)
        self.compiler = toolchain(target, chain)
        self.folder = Path(tempfile.mkdtemp(prefix="pykernel-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.flags = (level, *flags)
        for path, text in project.files.items():
            if path.startswith("src/"):
                (self.folder / Path(path).name).write_text(patch(text), encoding="utf-8")
        sources = sorted(self.folder.glob("*.c"))
        self.objects = [self._compile(source) for source in sources]
        self.sizes = object_bytes(self.objects)
        self.public = sorted(name for file in self.objects for name in public_functions(file))
        others = []
        for name, text in (extra or {}).items():
            (self.folder / name).write_text(text, encoding="utf-8")
            others.append(self._compile(self.folder / name))
        self.elf = self.folder / "model.elf"
        self._link(others)
        with self.elf.open("rb") as file:
            elf = ELFFile(file)
            # p_filesz: .data lies in flash as well
            self.segments = [
                (s["p_vaddr"], s["p_paddr"], s.data()) for s in elf.iter_segments("PT_LOAD") if s["p_filesz"]
            ]
            self.hard_float = _hard_float(elf)
            symbols = [s for s in elf.get_section_by_name(".symtab").iter_symbols()]
            self.functions = {
                s.name: Function(s["st_value"] & ~1, s["st_size"])
                for s in symbols
                if s["st_info"]["type"] == "STT_FUNC"
            }
            self.data_bytes = sum(
                s["sh_size"] for s in elf.iter_sections() if s["sh_flags"] & SH_FLAGS.SHF_WRITE and s["sh_size"]
            )
        self.flash_bytes = sum(len(data) for _, _, data in self.segments)
        if fit:
            refuse_large_flash(self)

    def _words(self) -> tuple[str, ...]:
        section = self.target.zig if self.chain == "zig" else self.target.gcc
        assert section is not None  # toolchain() has refused otherwise
        return (*section.flags, *COMMON, *(ZIG if self.chain == "zig" else GCC), *self.flags)

    def _compile(self, source: Path) -> Path:
        output = source.with_suffix(".o")
        graph = ("-fcallgraph-info=su",) if self.chain == "gcc" and self.target.simavr is None else ()
        compile_c(self.compiler, [source], output, (*self._words(), *graph), ("-c",))
        return output

    def _link(self, others: Sequence[Path]) -> None:
        mode = ["-Wl,--gc-sections"]
        if self.target.simavr is None:
            script = self.folder / "link.ld"
            text = importlib.resources.files("pykernel.targets").joinpath("link.ld").read_text(encoding="utf-8")
            values = {
                "flash": hex(self.flash.start),
                "ram": hex(self.ram.start),
                "stack": hex(self.ram.start + self.ram.bytes),
                "public": " ".join(self.public),
            }
            script.write_text(string.Template(text).substitute(values), encoding="utf-8")
            entry = "_start" if others else self.public[0]
            mode += [f"-Wl,-T,{script}", f"-Wl,--entry={entry}", "-static"]
            mode += ["-nostdlib", "-nostartfiles"] if self.chain == "gcc" else ["-nostdlib"]
        libraries = [Path("-lgcc" if self.chain == "gcc" else "-lcompiler_rt")] if self.target.simavr is None else []
        compile_c(self.compiler, [*self.objects, *others, *libraries], self.elf, self._words(), mode)


def refuse_large_ram(project: Project, target: Target) -> None:
    """Raises UserError if the model and a little stack do not fit the part's RAM."""
    part, model = target.part, project.figures["ram_bytes"]
    if model + STACK_ALLOWANCE > part.ram.bytes:
        raise UserError(
            f"{target.name}: {project.spec.name} takes {model:,} bytes of RAM and about {STACK_ALLOWANCE:,} of stack, "
            f"{part.name} has {part.ram.bytes:,}; lower n_max, or take a technique without a matrix"
        )


def refuse_large_flash(image: Image) -> None:
    """Raises UserError if what was linked does not fit the part's flash."""
    part = image.target.part
    if image.flash_bytes > part.flash.bytes:
        raise UserError(
            f"{image.target.name}: {image.project.spec.name} takes {image.flash_bytes:,} bytes of flash, "
            f"{part.name} has {part.flash.bytes:,}; lower n_max, or take a larger part"
        )


def object_bytes(objects: Sequence[Path]) -> dict[str, int]:
    """Bytes of code, constants, initialised and zeroed data in object files."""
    sizes = {"text_bytes": 0, "rodata_bytes": 0, "data_bytes": 0, "bss_bytes": 0}
    for path in objects:
        with path.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                flags = section["sh_flags"]
                if not flags & SH_FLAGS.SHF_ALLOC or section.name.startswith(".ARM."):
                    continue
                if flags & SH_FLAGS.SHF_EXECINSTR:
                    key = "text_bytes"
                elif not flags & SH_FLAGS.SHF_WRITE:
                    key = "rodata_bytes"
                else:
                    key = "bss_bytes" if section["sh_type"] == "SHT_NOBITS" else "data_bytes"
                sizes[key] += section["sh_size"]
    return sizes


def public_functions(path: Path) -> list[str]:
    """Functions that an object file offers to others."""
    with path.open("rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".symtab").iter_symbols())
    return [
        s.name
        for s in symbols
        if s["st_info"]["bind"] == "STB_GLOBAL"
        and s["st_info"]["type"] == "STT_FUNC"
        and s["st_shndx"] != "SHN_UNDEF"
    ]


def _hard_float(elf: ELFFile) -> bool:
    """Whether numbers are passed in the FPU's registers: from the file, for compilers do not always do as told."""
    flags = elf["e_flags"]
    return bool(flags & 0x400) if elf["e_machine"] == "EM_ARM" else flags & 6 != 0
