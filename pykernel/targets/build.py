"""Build a generated project as an ELF file for a target."""

from __future__ import annotations

import functools
import importlib.resources
import importlib.util
import itertools
import math
import re
import shutil
import string
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from pykernel.errors import MissingExtra, UserError, shown_option
from pykernel.gen.compilers import Compiler, compile_c, probe, write_sources, zig_command
from pykernel.gen.project import Project
from pykernel.spec.summary import less_memory
from pykernel.targets.target import Program, Region, Target, Toolchain

STACK_ALLOWANCE = 1024
"""Number of bytes of RAM that are reserved for the stack if the stack's size is not measured."""

COMMON = ("-ffp-contract=off", "-ffreestanding", "-fno-builtin", "-ffunction-sections", "-fdata-sections")
# zig keeps no symbols at -Os without -g
ZIG = ("-g", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables")
GCC = ("-fno-tree-loop-distribute-patterns",)


def toolchain(target: Target, name: Toolchain) -> Compiler:
    """Return the target's compiler.  If it is missing, raises a UserError that says how to install it."""
    if name == "zig":
        if target.zig is None:
            raise UserError(f"zig does not support {target.name}; use {shown_option('toolchain')} gcc")
        if not has_module("ziglang"):
            raise MissingExtra(f"building for {target.name} with zig", "zig")
        command = tuple(zig_command())
        missing = "the ziglang wheel does not run; install it again: pip install --force-reinstall ziglang"
    else:
        if target.gcc is None:
            raise UserError(f"pykernel supports no GCC for {target.name}; use {shown_option('toolchain')} zig")
        command = (target.gcc.command,)
        other = f", or use {shown_option('toolchain')} zig" if target.zig else ""
        missing = f"{target.name}: {target.gcc.command} was not found; install it (Debian: {target.gcc.package}){other}"
    found = _probe("zig" if name == "zig" else command[0], command) if shutil.which(command[0]) else None
    if found is None:
        raise UserError(missing)
    return found


_probe = functools.cache(probe)


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def found_toolchains(target: Target) -> list[Toolchain]:
    """Return the target's toolchains that are installed on this machine.  They are not started."""
    there = {
        "zig": target.zig is not None and has_module("ziglang"),
        "gcc": target.gcc is not None and shutil.which(target.gcc.command) is not None,
    }
    return [name for name in target.toolchains if there[name]]


def emulator_command(target: Target, emulator: Program) -> str:
    """Return the path of an emulator's program.  If it is missing, raises a UserError that says how to install it."""
    command = shutil.which(emulator.command)
    if command is None:
        other = f", or use {shown_option('emulator')} unicorn" if target.unicorn else ""
        raise UserError(
            f"{target.name}: {emulator.command} was not found; install it (Debian: {emulator.package}){other}"
        )
    return command


def data_file(name: str) -> str:
    """Return the text of a file in the folder ``targets``."""
    return importlib.resources.files("pykernel.data.targets").joinpath(name).read_text(encoding="utf-8")


class TooLarge(UserError):
    """A model that does not fit a part's RAM or flash."""


@dataclass(frozen=True)
class Function:
    """The address range of a function."""

    start: int
    size: int


class Image:
    """C code that is compiled and linked for a target.

    sources: dict that maps file names to texts.  The linker keeps all public functions of these files.
    extra: further files, such as start-up code; ``sizes`` does not count them.  The image's entry point is ``_start``
    or ``main`` in ``extra`` or, without either of them, the first public function in ``sources``.
    level, flags: compiler options in addition to the target's options.  libraries: linker options.
    flash, ram: memory regions, if they differ from the part's regions.
    annotate: a function that changes the compiler's assembly code before the assembler reads it.

    sizes: bytes of .text, .rodata, .data and .bss in the sources' object files.
    flash_bytes: bytes of everything that is linked, including the float library.
    """

    def __init__(
        self,
        target: Target,
        chain: Toolchain,
        sources: Mapping[str, str],
        level: str = "-O2",
        flags: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
        libraries: Sequence[str] = (),
        flash: Region | None = None,
        ram: Region | None = None,
        annotate: Callable[[str], str] | None = None,
    ) -> None:
        self.annotate = annotate
        self.target, self.chain, self.flags = target, chain, (level, *flags)
        self.flash, self.ram = flash or target.part.flash, ram or target.part.ram
        self.compiler = toolchain(target, chain)
        self.folder = Path(tempfile.mkdtemp(prefix="pykernel-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        extra = dict(extra or {})
        if chain == "gcc" and target.simavr is None:
            extra["memory.c"] = data_file("memory.c")
        write_sources(self.folder, {**sources, **extra})
        self.objects = [self._compile(name) for name in sorted(sources) if name.endswith(".c")]
        self.others = [self._compile(name) for name in extra if name.endswith(".c")]
        self.sizes = object_bytes(self.objects)
        self.public = sorted(name for file in self.objects for name in public_functions(file))
        self.elf = self.folder / "model.elf"
        self._link(libraries)
        self.functions = functions_of(self)
        with self.elf.open("rb") as file:
            elf = ELFFile(file)
            loaded = [s for s in elf.iter_segments("PT_LOAD") if s["p_filesz"]]
            self.segments = [(s["p_vaddr"], s["p_paddr"], s.data()) for s in loaded]
            self.hard_float = _hard_float(elf)
            writable = [s for s in elf.iter_sections() if s["sh_flags"] & SH_FLAGS.SHF_WRITE]
            self.data_bytes = sum(s["sh_size"] for s in writable)
        self.flash_bytes = sum(len(data) for _, _, data in self.segments)

    def _words(self) -> tuple[str, ...]:
        section = self.target.zig if self.chain == "zig" else self.target.gcc
        assert section is not None  # toolchain() raises if the section is missing
        return (*section.flags, *COMMON, *(ZIG if self.chain == "zig" else GCC), *self.flags)

    def _compile(self, name: str) -> Path:
        source = self.folder / name
        output = source.with_suffix(".o")
        # AVR's GCC 5 does not support -fcallgraph-info; its assembler needs the folder with the binary files that a source includes
        special = ("-fcallgraph-info=su",) if self.target.simavr is None else (f"-Wa,-I,{self.folder}",)
        words = (*self._words(), *(special if self.chain == "gcc" else ()))
        if self.annotate is not None:
            plain = source.with_suffix(".plain.s")
            compile_c(self.compiler, [source], plain, words, ("-S",))
            source = source.with_suffix(".s")
            (self.folder / source.name).write_text(self.annotate(plain.read_text(encoding="utf-8")), encoding="utf-8")
            words = self._words()
        compile_c(self.compiler, [source], output, words, ("-c",))
        return output

    def rebuild(self, name: str) -> None:
        """Compile one file again, after a change in a file that it includes, and link."""
        self._compile(name)
        self._link(())

    def _link(self, libraries: Sequence[str]) -> None:
        mode = ["-Wl,--gc-sections"]
        entries = {name for file in self.others for name in public_functions(file)} & {"_start", "main"}
        entry = min(entries, default=self.public[0])
        if self.target.simavr is None:
            script = self.folder / "link.ld"
            values = {
                "flash": hex(self.flash.start),
                "ram": hex(self.ram.start),
                "stack": hex(self.ram.start + self.ram.bytes),
                "public": " ".join(self.public),
                "entry": entry,
            }
            script.write_text(string.Template(data_file("link.ld")).substitute(values), encoding="utf-8")
            mode += [f"-Wl,-T,{script}", "-static", "-nostdlib"]
            libraries = [*libraries, "-lgcc" if self.chain == "gcc" else "-lcompiler_rt"]
        else:
            mode += [f"-Wl,--undefined={name}" for name in self.public]
            if entry != "main":
                mode += ["-nostartfiles"]
        compile_c(self.compiler, [*self.objects, *self.others, *map(Path, libraries)], self.elf, self._words(), mode)


def model_image(
    project: Project,
    target: Target,
    chain: Toolchain,
    patch: Callable[[str], str] = lambda text: text,
    extra: Mapping[str, str] | None = None,
    **how: Any,
) -> Image:
    """Build a model's image.

    patch: a function that changes the C code (for negative controls).  how: further arguments of ``Image``.

    Raises UserError if the target does not support the model's precision, or if the model does not fit the target's
    part.
    """
    if project.figures["precision"] not in target.precisions:
        raise UserError(
            f"{target.name} does not support {project.figures['precision']}; use {' or '.join(target.precisions)}"
        )
    refuse_large_ram(project, target)
    files, others = model_files(project, patch)
    image = Image(target, chain, files, extra=others | dict(extra or {}), **how)
    if not extra:  # with ``extra``, such as a test's driver, the image is larger than the model
        refuse_large_ram(project, target, image.data_bytes)
        refuse_large_flash(project, image)
    return image


def model_files(
    project: Project, patch: Callable[[str], str] = lambda text: text
) -> tuple[dict[str, str], dict[str, str]]:
    """Return two dictionaries that map file names to texts: the model's C code, and the files that a firmware needs
    only if it saves the model.
    """
    files = {name: patch(text) for name, text in project.sources.items()}
    snapshot = f"{project.spec.name}_snapshot.c"
    return files, {snapshot: files.pop(snapshot)} if snapshot in files else {}


def refuse_large_ram(project: Project, target: Target, linked: int = 0, stack: int = 0) -> None:
    """Raise TooLarge if the model and its stack do not fit the part's RAM.

    linked: bytes of RAM that the linked program takes in addition to the model.  stack: measured bytes of stack; if it
    is 0, STACK_ALLOWANCE is assumed, or a quarter of the RAM if that is less.
    """
    part, model, told = target.part, project.figures["ram_bytes"] + linked, "" if stack else "about "
    stack = stack or min(STACK_ALLOWANCE, part.ram.bytes // 4)
    if model + stack > part.ram.bytes:
        raise TooLarge(
            f"{target.name}: {project.spec.name} needs {model:,} bytes of RAM plus {told}{stack:,} bytes of stack, "
            f"but {part.name} has only {part.ram.bytes:,} bytes of RAM; {less_memory(project.spec)}"
        )


def refuse_large_flash(project: Project, image: Image) -> None:
    """Raise TooLarge if the linked program does not fit the part's flash."""
    part = image.target.part
    simpler = "a simpler rule or technique" if project.figures["state_bytes"] else "fewer expansion vectors"
    if image.flash_bytes > part.flash.bytes:
        raise TooLarge(
            f"{image.target.name}: {project.spec.name} takes {image.flash_bytes:,} bytes of flash, "
            f"but {part.name} has {part.flash.bytes:,}; take {simpler}, or a larger part"
        )


def stack_bound(image: Image) -> int | None:
    """Compute, from GCC's stack figures and call graph, the largest stack in bytes that a public function can need.

    The result is None if a figure is unknown: if another compiler was used, or if the code calls the float library.
    """
    frames: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    for file in image.folder.glob("*.ci"):
        text = file.read_text(encoding="utf-8")
        for title, size in re.findall(
            r'^node: { title: "([^"]+)" label: "[^"]*?(\d+) bytes \(static\)" }', text, re.MULTILINE
        ):
            frames[title] = int(size)
        for caller, callee in re.findall(r'^edge: { sourcename: "([^"]+)" targetname: "([^"]+)"', text, re.MULTILINE):
            calls.setdefault(caller, set()).add(callee)
    defined = {name for file in (*image.objects, *image.others) for name in public_functions(file)}
    if not frames or any(undefined_symbols(file) - defined for file in image.objects):
        return None

    @functools.cache
    def deepest(name: str) -> float:
        below = [deepest(callee) for callee in calls.get(name, ())]
        return frames.get(name, math.inf) + max(below, default=0)  # infinite if the function's own stack is not known

    bound = max(deepest(name) for name in image.public)
    return None if math.isinf(bound) else int(bound)


def object_bytes(objects: Sequence[Path]) -> dict[str, int]:
    """Return the sizes, in bytes, of code, constants, initialised data and zeroed data in object files."""
    sizes = {"text_bytes": 0, "rodata_bytes": 0, "data_bytes": 0, "bss_bytes": 0}
    for path in objects:
        with path.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                flags = section["sh_flags"]
                kinds = {
                    "text_bytes": flags & SH_FLAGS.SHF_EXECINSTR,
                    "rodata_bytes": not flags & SH_FLAGS.SHF_WRITE,
                    "bss_bytes": section["sh_type"] == "SHT_NOBITS",
                    "data_bytes": True,
                }
                if flags & SH_FLAGS.SHF_ALLOC and not section.name.startswith(".ARM."):
                    sizes[next(kind for kind, holds in kinds.items() if holds)] += section["sh_size"]
    return sizes


def _symbols(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return list(ELFFile(file).get_section_by_name(".symtab").iter_symbols())


def public_functions(path: Path) -> list[str]:
    """Return the functions that an object file exports."""
    return [
        s.name
        for s in _symbols(path)
        if s["st_info"]["bind"] == "STB_GLOBAL" and s["st_info"]["type"] == "STT_FUNC" and s["st_shndx"] != "SHN_UNDEF"
    ]


def undefined_symbols(path: Path) -> set[str]:
    """Return the symbols that an object file needs from other object files."""
    return {s.name for s in _symbols(path) if s["st_shndx"] == "SHN_UNDEF" and s.name}


def functions_of(image: Image) -> dict[str, Function]:
    """Return the functions of an image as it was last linked.

    Some functions in AVR's library have no type and no size.  Each of them is assumed to end where the next begins.
    """
    with image.elf.open("rb") as file:
        elf, untyped = ELFFile(file), image.target.arch == "avr"
        code, found = elf.get_section_index(".text"), dict[str, tuple[int, int]]()
        for s in elf.get_section_by_name(".symtab").iter_symbols():
            named = untyped and s["st_shndx"] == code and s["st_info"]["bind"] != "STB_LOCAL"
            if s["st_info"]["type"] == "STT_FUNC" or (named and s["st_info"]["type"] == "STT_NOTYPE"):
                found[s.name] = s["st_value"] & ~1, s["st_size"]
    starts = sorted({start for start, _ in found.values()})
    after = dict(itertools.pairwise(starts))
    return {
        name: Function(start, size or (after.get(start, start) - start if untyped else 0))
        for name, (start, size) in found.items()
    }


def _hard_float(elf: ELFFile) -> bool:
    """Return whether floats are passed in the FPU's registers.

    This is read from the ELF file, because a compiler may ignore its flags.
    """
    flags = elf["e_flags"]
    return bool(flags & 0x400) if elf["e_machine"] == "EM_ARM" else flags & 6 != 0
