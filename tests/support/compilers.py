"""Which compilers of the host the tests take.

zig is clang, and compiles its libraries before anything else, for tens of seconds: where there is another one, it runs
with --exhaustive.
"""

from __future__ import annotations

from typing import Any

import pytest

from pykernel.dialect import Memory
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference, Report, stream_of
from pykernel.gen.compilers import Compiler, find_compilers
from pykernel.gen.project import build
from pykernel.spec.model import Spec

QUICK: tuple[Compiler, ...] = tuple(c for c in find_compilers() if c.name != "zig") or find_compilers()
EACH: list[Any] = [c if c in QUICK else pytest.param(c, marks=pytest.mark.exhaustive) for c in find_compilers()]
"""Values of a parameter."""


def compilers(exhaustive: bool) -> tuple[Compiler, ...]:
    return find_compilers() if exhaustive else QUICK


def in_one_build(
    spec: Spec,
    memory: Memory | None = None,
    samples: int = 1000,
    *,
    seed: int = 0,
    stream: Any = None,
    level: str = "-O2",
    c: Compiler = QUICK[0],
) -> Report:
    """What ``pykernel check`` finds in one build.

    The check itself compiles the C twice more, for its sizes and for the lines that the self-test runs; both are tested
    where the check is.
    """
    reference = Reference(build(spec, memory), memory, *stream_of(spec, samples, seed, stream))
    return reference.report([reference.verdict(CModel(reference.project, c, (level,)))])
