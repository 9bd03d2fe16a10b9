"""Digests of the sources and globals that kernels are made from."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.dialect.kernels import Kernel, reachable
from pykernel.dialect.memory import Part, fields_of, parts_of
from pykernel.dialect.types import Constant


def sources_digest(roots: Iterable[Kernel]) -> str:
    """Return a digest of every file from which the kernels and their callees were read, and of the globals that they use."""
    kernels = reachable(roots)
    parts = {(k.file.name, k.source) for k in kernels}.union(*map(_used, kernels))
    digest = hashlib.sha256()
    for name, content in sorted(parts):
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


@functools.cache
def _used(k: Kernel) -> frozenset[tuple[str, bytes]]:
    """Return the globals and types that a kernel uses.

    The digests of the kernels' files do not cover all of these globals: constants, choices and structs may come from
    files without kernels.
    """
    values = {**k.globals_used(), **k.params}
    return frozenset((k.name, f"{name} = {_meaning(value)}".encode()) for name, value in values.items())


@functools.cache
def _fields(part: Part) -> str:
    return repr(fields_of(part))


def _meaning(value: Any) -> str:
    """Return, as text, the part of a global that affects compiled code: a kernel's name, a constant's numbers, or a
    struct's fields.
    """
    if isinstance(value, Kernel):
        return f"{value.function.__module__}.{value.function.__qualname__}"
    if isinstance(value, Constant):
        return repr([np.asarray(number, float).tolist() for number in value.by_precision.values()])
    if isinstance(value, type) and issubclass(value, IntEnum):
        return repr([(member.name, int(member)) for member in value])
    if parts := parts_of(value):
        return f"[{', '.join(_fields(part) for part in parts)}]"  # type: ignore[arg-type]
    return repr(value) if isinstance(value, (bool, int, float)) else ""
