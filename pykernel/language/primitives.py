"""Read the files of runtime_c, which are handwritten C, and replace the prefix pk in them with a model's prefix."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping

from pykernel.dialect import Precision

C_TYPES = {"i2": "int16_t", "i4": "int32_t", "f4": "float", "f8": "double"}
"""A type's code in NumPy (kind and size) -> the same type in C."""
LEARNED_LOOPS = 12_000
"""The number in the marks of the first loop that copies the model's initial state."""


def written_loops(dim: int, hashed_bytes: int, ram_bytes: int, precision: Precision) -> dict[int, int]:
    """Return, for the loops in the files of runtime_c: number in the loop's marks -> largest number of iterations."""
    bits = precision.bits  # bits of the fraction
    return {
        9001: hashed_bytes,
        9002: 8,
        9003: bits,
        9004: bits + 2,
        9005: 8,
        9006: dim // 2,
        9007: ram_bytes,
        9008: dim // 2,
    }


def runtime_text(name: str) -> str:
    """Return the unchanged text of a file of runtime_c."""
    return importlib.resources.files("pykernel.data.runtime_c").joinpath(name).read_text(encoding="utf-8")


def primitive(name: str, prefix: str, values: Mapping[str, str] | None = None, annotated: bool = False) -> str:
    """Return the text of a file of runtime_c, with the model's prefix in its names.

    values: text to be replaced as well -> its replacement.  annotated: whether to keep the lines that only proofs need.
    """
    text = runtime_text(name)
    if not annotated:
        text = re.sub(r"^ */\*@.*\*/\n", "", text, flags=re.MULTILINE)
    for key, value in (values or {}).items():
        text = text.replace(key, value)
    return text.replace("pk_", f"{prefix}_").replace("PK_", f"{prefix.upper()}_").rstrip()


def unmarked(text: str) -> str:
    """Return C text without the marks of its loops."""
    return re.sub(r"^ *\w+_(LOOP|TURN)\(\d+\)\n", "", text, flags=re.MULTILINE)


def primitive_file(name: str, precision: Precision) -> str:
    """Return the name of the file that contains an intrinsic in C.  An intrinsic for integers has one file for all
    precisions.
    """
    whole = importlib.resources.files("pykernel.data.runtime_c").joinpath(f"{name}.h").is_file()
    return f"{name}.h" if whole else f"{name}_{precision}.h"
