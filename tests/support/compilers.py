"""Which compilers of the host the tests take.

zig is clang, and compiles its libraries before anything else, for tens of seconds: where there is another one, it runs
with --exhaustive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pykernel.dialect import Memory
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference, Report
from pykernel.gen.compilers import Compiler, find_compilers
from pykernel.gen.project import build
from pykernel.gen.streams import stream_of
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from tests.support.random_calls import broken_promise, first_difference, random_calls, trace

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


def parting(spec: Spec, count: int = 400, seed: int = 0) -> str | None:
    """Where the host, plain Python and one build of the C part over random calls, or what the host breaks; None if nothing.

    Plain Python raises for positions outside of an array; it is slow, so that it does the first calls alone.
    """
    project, raw = build(spec), spec.program.is_int16
    calls = random_calls(spec, np.random.default_rng(seed), count)
    host = trace(HostModel(spec, project.drop, raw=raw), calls)
    plain = trace(HostModel(spec, project.drop, "python", raw=raw), calls[:200])
    device = trace(CModel(project, QUICK[0], ("-O1",)), calls)
    differences = (first_difference(calls[: len(other)], host[: len(other)], other) for other in (plain, device))
    return broken_promise(spec, calls, host) or next(filter(None, differences), None)
