"""No model divides so that the quotient is subnormal, but by the one primitive: the libraries of CPUs without an FPU differ there."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pykernel.engine.engines as engines
from pykernel.dialect import FLOAT64, Kernel, Precision
from pykernel.engine.executor import Choices
from pykernel.engine.llvm import Code, print_module
from pykernel.gen.print_llvm import Module
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from pykernel.spec.sections import fields_of
from tests.support.every_model import LABELS, MODELS, accepted, content_of, family_of
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


def judged(code: list[Code], names: list[str]) -> Callable[..., Code]:
    """What compiles kernels so that the judge divides, but in the primitive.  It adds the code, and the functions' names."""

    def compiled(roots: tuple[Kernel, ...], choices: Choices, precision: Precision) -> Code:
        module = print_module(roots, choices, precision)
        # LLVM writes a real by the bits of a double; the least one here is twice the least normal number
        real, bits, least = (
            ("double", 64, f"0x{2 << 52:016X}") if precision is FLOAT64 else ("float", 32, f"0x{898 << 52:016X}")
        )
        texts = module.text.split("\ndefine ")
        for i, text in enumerate(texts):
            names.append(text.partition("(")[0])
            if not names[-1].endswith("@in.ratio"):
                texts[i] = re.sub(
                    r"= fdiv \w+ ([^,\n]+), (.+)", rf"= call {real} @judge({real} \1, {real} \2, i64 {i})", text
                )
        text = "\ndefine ".join(texts) + JUDGE.format(real=real, bits=bits, least=least, count=len(texts))
        code.append(Code(Module(text, module.words), None, roots))
        return code[-1]

    return compiled


def with_every_section(rule: str, precision: str, stage: str) -> dict[str, Any] | None:
    """A model with all stages that go together with it and need no key."""
    content = content_of(rule, precision, stage)
    if content is not None:
        for section in dict.fromkeys(section for section, _, _ in fields_of(family_of(rule, precision).spec, rule)):
            more = {section: {}} | content
            content = more if accepted(more) is not None else content
    return content


def faded(call: Call, part: float, rng: np.random.Generator) -> Call:
    """The same call with some numbers down to the least ones."""

    def less(values: np.ndarray | None) -> np.ndarray | None:
        if values is None or values.dtype.kind != "f":
            return values
        parts = part * rng.integers(0, 2, values.shape)
        return (values * np.exp2(parts * np.finfo(values.dtype).minexp)).astype(values.dtype)

    return replace(call, x=less(call.x), y=less(call.y))


CASES = [case for case in MODELS if case[1] != "int16"]
DEFAULTS = {kind: {"name": "m", "input": {"dim": 3}, "label": label} for kind, label in LABELS.items()}


@pytest.mark.in_turn(24)
@pytest.mark.parametrize(
    "case", [*CASES, *DEFAULTS], ids=lambda case: case if isinstance(case, str) else "-".join(case)
)
def test_no_quotient_is_one_in_which_libraries_differ(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    content = DEFAULTS.get(case) or with_every_section(*case)
    if content is None:
        return
    code: list[Code] = []
    names: list[str] = []
    monkeypatch.setattr(engines, "compiled", judged(code, names))
    spec = make_spec(content)
    rng = np.random.default_rng(11)
    calls = [call for call in random_calls(spec, rng, 800) if call.kind != "switch"]
    # all numbers as they are, then some a random part of the way to the least ones, then ever smaller ones
    parts = np.concatenate([np.zeros(100), rng.random(300) ** 2, np.linspace(0, 1, 400)])
    trace(HostModel(spec, engine="llvm"), [faded(call, part, rng) for call, part in zip(calls, parts, strict=False)])
    found: Counter[str] = Counter()
    for engine in code[0]._engines:  # the code is compiled anew while it runs
        address = engine.get_global_value_address("faint")
        found.update(dict(zip(names, (ctypes.c_int64 * len(names)).from_address(address), strict=True)))
    assert not +found
