"""Which compilers of the host the tests take.

zig is clang, and compiles its libraries before anything else, for tens of seconds: where there is another one, it runs
with --exhaustive.
"""

from __future__ import annotations

from typing import Any

import pytest

from pykernel.gen.compilers import Compiler, find_compilers

QUICK: tuple[Compiler, ...] = tuple(c for c in find_compilers() if c.name != "zig") or find_compilers()
EACH: list[Any] = [c if c in QUICK else pytest.param(c, marks=pytest.mark.exhaustive) for c in find_compilers()]
"""Values of a parameter."""


def compilers(exhaustive: bool) -> tuple[Compiler, ...]:
    return find_compilers() if exhaustive else QUICK
