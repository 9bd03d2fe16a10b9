"""Choose the engine that runs models: the one that the caller names, else the one that the environment variable names, else LLVM."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Literal

from pykernel.errors import UserError, did_you_mean

Engine = Literal["llvm", "numba", "python"]
ENGINES: tuple[Engine, ...] = ("llvm", "numba", "python")
VARIABLE = "PYKERNEL_ENGINE"
"""Environment variable with the name of the engine that runs models, in this process and in processes started from it."""


def chosen_engine(default: Engine = "llvm") -> Engine:
    """Return the engine that the environment variable names, or ``default``.  Raises UserError if no engine has this name."""
    name = os.environ.get(VARIABLE) or default
    if name not in ENGINES:
        remedy = did_you_mean(name, ENGINES, f"the engines are {', '.join(ENGINES)}")
        raise UserError(f"{VARIABLE}: there is no engine {name!r}; {remedy}")
    return name  # type: ignore[return-value]


def engines_of_a_check() -> tuple[Engine, ...]:
    """Return the engines whose results a check compares, byte by byte.

    If the environment variable names an engine, only this engine is used.  Otherwise the engines are LLVM, which
    is the default, and Numba, which is the reference.
    """
    return (chosen_engine(),) if os.environ.get(VARIABLE) else ("llvm", "numba")


@contextlib.contextmanager
def engine_used(name: str | None) -> Iterator[None]:
    """Within the block, run models with this engine, also in processes that the block starts.  If ``name`` is None, the
    engine does not change.

    Raises UserError if no engine has this name.
    """
    kept = os.environ.get(VARIABLE)
    if name is not None:
        os.environ[VARIABLE] = name
    try:
        chosen_engine()
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if kept is not None:
            os.environ[VARIABLE] = kept
