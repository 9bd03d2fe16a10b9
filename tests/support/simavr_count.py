"""What an AVR executes, counted exactly with libsimavr."""

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

TOOLS = ("avr-gcc", "simavr", "libsimavr-dev")


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
