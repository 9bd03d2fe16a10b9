"""Sketches compiled with Debian's arduino-core-avr, and an AVR of libsimavr's whose UART is a pseudo terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from pykernel.gen.project import Project
from tests.support.boards import written
from tests.support.tools import FILES

CORE = Path(FILES["arduino-core-avr"])
TOOLS = ("avr-g++", "arduino-core-avr", "libsimavr-dev")
BOARDS = {"uno": ("atmega328p", "AVR_UNO", "standard"), "mega": ("atmega2560", "AVR_MEGA2560", "mega")}


def call(*words: Any) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def sketch(project: Project, folder: Path, board: str) -> Path:
    """The sketch of the check with its library and the core, as the Arduino builder compiles them: an ELF file."""
    mcu, macro, variant = BOARDS[board]
    name = project.spec.name
    written(project, folder / "library")
    beside = folder / f"library/examples/{name}_check"
    flags = ["-c", "-Os", "-w", "-ffunction-sections", "-fdata-sections", "-flto", f"-mmcu={mcu}", "-DF_CPU=16000000L"]
    flags += ["-DARDUINO=10819", f"-DARDUINO_{macro}", "-DARDUINO_ARCH_AVR", f"-I{CORE}/cores/arduino"]
    # the core is for a newer avr-libc
    flags += [f"-I{CORE}/variants/{variant}", "-DDECIMAL_DIG=9", f"-I{folder / 'library/src'}", f"-I{beside}"]
    compilers = {
        ".c": ["avr-gcc", "-std=gnu11", "-fno-fat-lto-objects"],
        ".cpp": ["avr-g++", "-std=gnu++11", "-fpermissive", "-fno-exceptions", "-fno-threadsafe-statics"],
        ".S": ["avr-gcc", "-x", "assembler-with-cpp"],
    }
    (folder / "sketch.cpp").write_text("#include <Arduino.h>\n" + (beside / f"{name}_check.ino").read_text())
    own = [folder / "sketch.cpp", *beside.glob("*.c"), *(folder / "library/src").glob("*.c")]
    core = [file for file in sorted((CORE / "cores/arduino").iterdir()) if file.suffix in compilers]
    for source in (*own, *core):
        call(*compilers[source.suffix], *flags, source, "-o", folder / f"{source.name}.o")
    call("avr-gcc-ar", "rcs", folder / "core.a", *(folder / f"{source.name}.o" for source in core))
    objects = [folder / f"{source.name}.o" for source in own]
    link = ["avr-gcc", "-w", "-Os", "-flto", "-fuse-linker-plugin", "-Wl,--gc-sections", f"-mmcu={mcu}"]
    call(*link, "-o", folder / "sketch.elf", *objects, folder / "core.a", "-lm")
    call("avr-objcopy", "-O", "ihex", "-R", ".eeprom", folder / "sketch.elf", folder / "sketch.hex")
    return folder / "sketch.elf"


def simulator(folder: Path) -> Path:
    """The program that runs an ELF file, and says its pseudo terminal."""
    libraries = ["-lsimavrparts", "-lsimavr", "-lelf", "-lpthread", "-lutil"]
    source = Path(__file__).parent / "simavr_board.c"
    call("gcc", "-O2", "-I/usr/include/simavr", source, "-o", folder / "board", *libraries)
    return folder / "board"
