"""C that was written by hand: runtime_c's files, under a model's prefix."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping

from pykernel.dialect import Precision

CLEARING_LOOPS, LEARNED_LOOPS = 10_000, 12_000
"""Numbers of the marks of the first loop that clears the model, and of the first that copies what it had learned."""


def written_loops(dim: int, hashed_bytes: int, precision: Precision) -> dict[int, int]:
    """How often the loops of runtime_c's files turn at most, by the numbers of their marks."""
    bits = precision.bits  # of the fraction
    return {9001: hashed_bytes, 9002: 8, 9003: bits, 9004: bits + 2, 9005: 8, 9006: dim // 2}


def runtime_text(name: str) -> str:
    """One of runtime_c's files as it is."""
    return importlib.resources.files("pykernel.runtime_c").joinpath(name).read_text(encoding="utf-8")


def primitive(name: str, prefix: str, values: Mapping[str, str] | None = None) -> str:
    """One of runtime_c's files for the model that is called prefix."""
    text = runtime_text(name)
    for key, value in (values or {}).items():
        text = text.replace(key, value)
    return text.replace("pk_", f"{prefix}_").replace("PK_", f"{prefix.upper()}_").rstrip()


def unmarked(text: str) -> str:
    """C without the marks of its loops."""
    return re.sub(r"^ *\w+_(LOOP|TURN)\(\d+\)\n", "", text, flags=re.MULTILINE)


def primitive_file(name: str, precision: Precision) -> str:
    """Where the C of an intrinsic is: those of whole numbers have one for all precisions."""
    whole = importlib.resources.files("pykernel.runtime_c").joinpath(f"{name}.h").is_file()
    return f"{name}.h" if whole else f"{name}_{precision}.h"
