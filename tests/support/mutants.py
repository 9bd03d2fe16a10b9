"""Small changes of a model's C: what a compiler, a flag or a broken memory might make of it."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator

from pykernel.errors import CheckFailed
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.compilers import compiler
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream

CHANGES = (
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "),
    (r" >= ", " > "), (r" == ", " != "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+= ", " -= "), (r" -= ", " += "),
    (r"\b0\.5f\b", "0.25f"), (r"\b1\.0f\b", "1.0001f"), (r"!\(", "("), (r"\+ 1\b", "+ 2"), (r" = 0;", " = 1;"),
)  # fmt: skip
OTHER = ("crc32", "volatile", "sums[", "_LOOP", "for (")
"""In lines that are not changed: written by hand, or with loops that might never end."""
SELFTEST = """
import ctypes, sys
library, name, size = ctypes.CDLL(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.exit(0 if getattr(library, name + "_selftest")((ctypes.c_char * size)()) == 0 else 3)
"""


def mutants(text: str, name: str, count: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """So many changed texts of NAME.c, and what was changed in each: of the functions of the model."""
    first, last = text.index("/* Constants of the algorithms"), text.index(f"uint32_t {name}_hash(")
    places = []
    for old, new in CHANGES:
        for match in re.finditer(old, text[first:last]):
            start, end = first + match.start(), first + match.end()
            line = text[text.rfind("\n", 0, start) + 1 : text.find("\n", start)].strip()
            if not line.startswith(("/*", "*", "#")) and not any(word in line for word in OTHER):
                places.append((start, end, new, f"{line}: {new.strip()}"))
    random.Random(seed).shuffle(places)
    for start, end, new, what in places[:count]:
        yield text[:start] + new + text[end:], what


def effective_and_missed(spec, count: int) -> tuple[int, list[str]]:
    """Of so many mutants: how many the self-test or the check tells, and those that the check alone tells."""
    project = build(spec)
    reference = Reference(project, None, *mixed_stream(spec, 400))
    text, told, missed = project.files[f"src/{spec.name}.c"], 0, []
    for changed, what in mutants(text, spec.name, count):
        try:
            device = CModel(project, compiler("gcc"), ("-O1",), patch=lambda t, c=changed: c if t == text else t)
            size = str(device.memory.buffer.nbytes)
            # a process of its own: what was changed may leave its memory, or never end
            words = [sys.executable, "-c", SELFTEST, str(device.library), spec.name, size]
            passed = subprocess.run(words, timeout=60).returncode == 0
        except CheckFailed:
            continue  # a compiler tells
        except subprocess.TimeoutExpired:
            passed = False
        if not passed:
            told += 1
        elif not reference.verdict(device)["equal"]:
            missed.append(what)
    return told + len(missed), missed
