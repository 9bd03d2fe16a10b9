"""No model divides so that the quotient is subnormal, but by the one primitive: the libraries of CPUs without an FPU differ there."""

from __future__ import annotations

import ctypes
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pykernel.engine.engines as engines
from pykernel.dialect import FLOAT64, Kernel, Precision
from pykernel.engine.executor import Choices
from pykernel.engine.llvm import Code, print_module
from pykernel.host.model import HostModel
from pykernel.language.print_llvm import Module
from pykernel.spec.model import Spec, make_spec
from tests.support.every_model import LABELS, MODELS, content_of, with_every_section
from tests.support.random_calls import Call, random_calls, trace

JUDGE = """
@faint = global [{count} x i64] zeroinitializer
define {real} @judge({real} %a, {real} %b, i64 %i) nounwind {{
  %q = fdiv {real} %a, %b
  %size = call {real} @llvm.fabs.f{bits}({real} %q)
  %small = fcmp olt {real} %size, {least}
  %lost = fcmp une {real} %a, 0.0
  %bounded = fcmp one {real} %b, 0x7FF0000000000000
  %some = and i1 %small, %lost
  %bad = and i1 %some, %bounded
  %more = zext i1 %bad to i64
  %place = getelementptr i64, ptr @faint, i64 %i
  %old = load i64, ptr %place
  %new = add i64 %old, %more
  store i64 %new, ptr %place
  ret {real} %q
}}
"""
"""A division that counts the quotients which are subnormal, or no normal number away from that."""


def judged(made: list[tuple[Code, list[str]]]) -> Callable[..., Code]:
    """What compiles kernels so that the judge divides, but in the primitive.  It adds the code with its functions' names."""

    @functools.cache
    def compiled(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> Code:
        module = print_module(roots, choices, precision)
        # LLVM writes a real by the bits of a double; the least one here is twice the least normal number
        real, bits, least = (
            ("double", 64, f"0x{2 << 52:016X}") if precision is FLOAT64 else ("float", 32, f"0x{898 << 52:016X}")
        )
        texts = module.text.split("\ndefine ")
        names = [text.partition("(")[0] for text in texts]
        for i, text in enumerate(texts):
            if not names[i].endswith("@in.ratio"):
                texts[i] = re.sub(
                    r"= fdiv \w+ ([^,\n]+), (.+)", rf"= call {real} @judge({real} \1, {real} \2, i64 {i})", text
                )
        text = "\ndefine ".join(texts) + JUDGE.format(real=real, bits=bits, least=least, count=len(texts))
        made.append((Code(Module(text, module.words), None, roots), names))
        return made[-1][0]

    return compiled


def faded(values: np.ndarray | None, parts: np.ndarray) -> np.ndarray | None:
    """The values times powers of two.  parts: of the way to the least normal number, of each value."""
    if values is None or values.dtype.kind != "f":
        return values
    return (values * np.exp2(np.resize(parts, values.shape) * np.finfo(values.dtype).minexp)).astype(values.dtype)


def hostile(spec: Spec, rng: np.random.Generator) -> Iterator[list[Call]]:
    """Streams that go down to the least numbers: all of a row or some, from the first row on, by steps, and slowly."""
    level = np.linspace(0, 1, 250)
    for x, y in (
        (0 * level + 0.95, 0 * level),
        (0 * level, 0 * level + 0.95),
        (rng.random(250) ** 2, level),
        (level, level),
    ):
        calls = [call for call in random_calls(spec, rng, 250) if call.kind != "switch"]
        yield [
            replace(call, x=faded(call.x, down * rng.integers(0, 2, 8)), y=faded(call.y, also * rng.integers(0, 2, 8)))
            for call, down, also in zip(calls, x, y, strict=False)
        ]
        yield [replace(call, x=faded(call.x, np.array(part))) for call, part in zip(calls, x, strict=False)]


CASES = [case for case in MODELS if case[1] != "int16"]
DEFAULTS = {kind: {"name": "m", "input": {"dim": 3}, "label": label} for kind, label in LABELS.items()}


@pytest.mark.exhaustive
@pytest.mark.in_turn(180)
@pytest.mark.parametrize(
    "case", [*CASES, *DEFAULTS], ids=lambda case: case if isinstance(case, str) else "-".join(case)
)
def test_no_quotient_is_one_in_which_libraries_differ(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = DEFAULTS.get(case) or content_of(*case)
    if plain is None:
        return
    content = plain if case in DEFAULTS else with_every_section(plain, *case[:2])
    made: list[tuple[Code, list[str]]] = []
    monkeypatch.setattr(engines, "compiled", judged(made))
    spec = make_spec(content)
    for calls in hostile(spec, np.random.default_rng(11)):
        trace(HostModel(spec, engine="llvm"), calls)
    found: Counter[str] = Counter()
    for code, names in made:
        for engine in code._engines:  # the code is compiled anew while it runs
            address = engine.get_global_value_address("faint")
            found.update(dict(zip(names, (ctypes.c_int64 * len(names)).from_address(address), strict=True)))
    assert made
    assert not +found
