"""What an AVR executes, counted exactly with libsimavr."""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

MISSING = "needs avr-gcc, simavr and libsimavr-dev; would show that no call on an AVR takes more than its bound"
IS_HERE = bool(shutil.which("avr-gcc") and shutil.which("simavr") and Path("/usr/include/simavr/sim_avr.h").exists())


@functools.cache
def counter() -> Path:
    """The program that counts."""
    program = Path(tempfile.mkdtemp(prefix="pykernel-")) / "count"
    source = Path(__file__).with_suffix(".c")
    words = ["gcc", "-O2", "-I/usr/include/simavr", source, "-o", program, "-lsimavr", "-lelf"]
    subprocess.run(words, check=True, capture_output=True)
    return program


def counted(elf: Path, functions: list[int], places: Sequence[int] = ()) -> list[list[int]]:
    """Each call of one of the functions, until the program ends: the function, instructions, cycles, and how often each
    place was executed."""
    addresses = [f"{address:x}" for address in functions] + ["--"] + [f"{address:x}" for address in places]
    words = [str(counter()), str(elf), "atmega1284p", *addresses]
    said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=600).stdout
    lines = [line.split()[1:] for line in said.splitlines() if line.startswith("call ")]
    return [[int(function, 16), *map(int, numbers)] for function, *numbers in lines]
