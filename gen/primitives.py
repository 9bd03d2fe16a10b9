"""C that was written by hand: runtime_c's files, under a model's prefix."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping

from pykernel.dialect import Precision


def runtime_text(name: str) -> str:
    """One of runtime_c's files as it is."""
    return importlib.resources.files("pykernel.runtime_c").joinpath(name).read_text(encoding="utf-8")


def primitive(name: str, prefix: str, values: Mapping[str, str] | None = None) -> str:
    """One of runtime_c's files for the model that is called prefix."""
    text = runtime_text(name)
    for key, value in (values or {}).items():
        text = text.replace(key, value)
    return text.replace("pk_", f"{prefix}_").replace("PK_", f"{prefix.upper()}_").rstrip()


def primitive_file(name: str, precision: Precision) -> str:
    """Where the C of an intrinsic is: those of whole numbers have one for all precisions."""
    whole = importlib.resources.files("pykernel.runtime_c").joinpath(f"{name}.h").is_file()
    return f"{name}.h" if whole else f"{name}_{precision}.h"
