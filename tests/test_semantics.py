"""Whatever passes the checker means the same in plain Python, in Numba and in C."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pykernel.dialect
from pykernel.dialect import FLOAT32, FLOAT64, Memory, Precision
from tests.dialect_cases import CAPACITIES, Box, Compiled, Settings, load, plain_bytes, run_host

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are made up leave nothing in the user's cache."""
    monkeypatch.setattr(pykernel.dialect, "_cache_folder", lambda kernel: None)


def special_values(precision: Precision, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random reals, many of them of the kinds that go wrong."""
    info = np.finfo(precision.dtype)
    kinds = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, info.max, info.tiny, info.smallest_subnormal, -info.tiny]
    values = rng.normal(size=count) * 10.0 ** rng.integers(-3, 4, count)
    odd = rng.random(count) < 0.4
    values[odd] = rng.choice(kinds, odd.sum())
    return values.astype(precision.dtype)


# ------------------------------------------------------------------------------------------- random programs

PRELUDE = '''"""Made up."""

from pykernel.dialect import (
    N_MAX, Bool, Constant, Index, Real, absolute, entry, kernel, pow2, real, sqrt, truncate,
)
from pykernel.numerics import exp_negative
from tests.dialect_cases import Box, Kind, Settings

TABLE = Constant((0.1, -0.0, 3e-39, -7.25, 16777217.0))
UNEQUAL = Constant(float32=(0.5, -1.5), float64=(0.25, 3.0, -9.0))
THIRD = Constant(1 / 3)
TINY = Constant(float32=-1e-45, float64=-5e-324)
FEW = 3
'''

REALS = "0 1 2.5 -0.0 0.0 -3 0.1 1e-45 1e38 -1e-40 3.4028234663852886e38 16777217.0 16777217 -0 1e-7".split()


class Maker:
    """Random well-typed kernels as source text.  Index values are bounded, so that nothing leaves int32."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pure: list[tuple[str, str]] = []  # names and results of kernels that write nothing
        self.writing: list[tuple[str, str]] = []
        self.fresh = 0

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- expressions

    def real(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.15):
            names = [n for n, kind in self.names.items() if kind == "Real"]
            leaves = [f"real({self.pick(*REALS)})", "THIRD", "TINY", "c.p", "y", f"x[{self.position()}]", "s.total[0]"]
            leaves += [f"s.a[{self.position()}]", f"s.b[{self.position()}]"]
            leaves += [f"s.grid[{self.position()}, {self.position(3)}]", f"TABLE[{self.position(5)}]"]
            leaves += [f"UNEQUAL[{self.position(2)}]", *names * 3]
            return self.pick(*leaves)
        kind = self.random.randrange(12)
        if kind < 6:
            return f"({self.real(depth - 1)} {self.pick('+', '-', '*', '/')} {self.real(depth - 1)})"
        if kind == 6:
            return f"-{self.real(depth - 1)}"
        if kind == 7:
            return f"({self.real(depth - 1)} if {self.bool(depth - 1)} else {self.real(depth - 1)})"
        if kind == 8:
            return f"real({self.index(depth - 1, 2**30)[0]} + 1)"
        if kind == 9:
            inner = self.real(depth - 1)
            return self.pick(f"absolute({inner})", f"sqrt(absolute({inner}))", f"exp_negative(-absolute({inner}))")
        if kind == 10:
            return f"pow2({self.index(0, 60)[0]})"
        return self.call("Real", depth) or self.real(depth - 1)

    def index(self, depth: int, limit: int = 2**31 - 1) -> tuple[str, int]:
        """Text and a bound of the magnitude."""
        if depth <= 0 or self.chance(0.2):
            names = [(n, 4) for n in self.loops] + [(n, 10**6) for n, kind in self.names.items() if kind == "Index"]
            leaves = [(str(v), abs(v)) for v in (0, 1, 2, 7, -3, 40000)] + [("FEW", 3), ("len(s.a)", 4), ("len(x)", 4)]
            leaves += [("s.n[0]", 4), ("s.m[0]", 10**6), ("c.q", 50), ("Kind.LOW", 2), ("c.kind", 2), ("k", 1000)]
            leaves += [(f"s.counts[{self.position()}]", 10**6), ("len(UNEQUAL)", 3), *names * 3]
            return self.pick(*[leaf for leaf in leaves if leaf[1] <= limit])
        kind = self.random.randrange(8)
        if kind < 4:
            op = self.pick("+", "-", "*")
            (a, bound_a), (b, bound_b) = self.index(depth - 1, limit), self.index(depth - 1, limit)
            bound = bound_a * bound_b if op == "*" else bound_a + bound_b
            return (f"({a} {op} {b})", bound) if bound <= limit else (a, bound_a)
        if kind == 4:
            a, bound = self.index(depth - 1, limit)
            return f"-{a}", bound
        if kind == 5:
            (a, bound_a), (b, bound_b) = self.index(depth - 1, limit), self.index(depth - 1, limit)
            return f"({a} + 0 if {self.bool(depth - 1)} else {b} + 0)", max(bound_a, bound_b)
        if kind == 6:
            inner = self.real(depth - 1)
            if limit >= 1000:
                return f"(truncate({inner}) if absolute({inner}) < real(1000) else 7)", 1000
        if kind == 7 and self.loops:
            divisor = self.pick("3", "len(s.a)", "FEW")
            return f"(({self.pick(*self.loops)} * 5 + {self.pick('2', 'len(x)')}) {self.pick('%', '//')} {divisor})", 40
        return self.index(depth - 1, limit)

    def position(self, size: int = 4) -> str:
        """A position that is valid for sure in an array of this size."""
        options = [str(self.random.randrange(size))]
        if size >= 4:
            options += [*self.loops, "(len(s.a) - 1)"]
        if self.loops:
            options += [f"(({self.pick(*self.loops)} * 3 + 2) % {self.random.randrange(1, min(size, 3) + 1)})"]
        return self.pick(*options)

    def bool(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.15):
            names = [n for n, kind in self.names.items() if kind == "Bool"]
            return self.pick("c.flag", "c.kind == Kind.ONE", f"{self.real(0)} < {self.real(0)}", "k > 3", *names * 3)
        kind = self.random.randrange(6)
        if kind < 2:
            op = self.pick("==", "!=", "<", "<=", ">", ">=")
            if self.chance(0.5):
                return f"({self.real(depth - 1)} {op} {self.real(depth - 1)})"
            return f"({self.index(depth - 1)[0]} {op} {self.index(depth - 1)[0]})"
        if kind < 4:
            return f"({self.bool(depth - 1)} {self.pick('and', 'or')} {self.bool(depth - 1)})"
        if kind == 4:
            return f"not ({self.bool(depth - 1)})"
        return self.call("Bool", depth) or f"({self.bool(depth - 1)} and {self.bool(depth - 1)})"

    def call(self, result: str, depth: int, writing: bool = False) -> str:
        options = [name for name, kind in (self.writing if writing else self.pure) if kind == result]
        if not options:
            return ""
        array = self.pick("x", "s.a", "s.b")
        number = self.real(depth - 2) if self.chance(0.6) else f"real({self.pick('0', '-0.0', '2.5')})"
        count = self.pick("0", "5", self.index(depth - 2, 1000)[0])
        return f"{self.pick(*options)}(s, c, {array}, {number}, {count})"

    # ---- statements

    def block(self, depth: int, indent: str) -> list[str]:
        before = dict(self.names)
        lines: list[str] = []
        for _ in range(self.random.randrange(1, 5)):
            lines += self.statement(depth, indent)
        self.names = before
        return lines

    def statement(self, depth: int, indent: str) -> list[str]:
        kind = self.random.randrange(14)
        if kind < 4:
            sort = self.pick("Real", "Real", "Index", "Bool")
            # one name may be used again in another block, and is then declared twice
            known = [n for n in self.sorts if self.sorts[n] == sort and n not in self.loops]
            if known and self.chance(0.7):
                name = self.pick(*known)
            else:
                self.fresh += 1
                name = f"{sort[0].lower()}{self.fresh}"
            value = self.value(sort)
            self.names[name] = self.sorts[name] = sort
            return [f"{indent}{name} = {value}"]
        if kind == 4:
            reals = [n for n, sort in self.names.items() if sort == "Real"]
            if reals:
                return [f"{indent}{self.pick(*reals)} {self.pick('+', '-', '*', '/')}= {self.real(2)}"]
            return [f"{indent}y {self.pick('+', '-')}= {self.real(2)}"]
        if kind == 5:
            counts = [n for n, sort in self.names.items() if sort == "Index"]
            if counts:
                return [f"{indent}{self.pick(*counts)} {self.pick('+', '-')}= {self.pick('1', '5', 'len(x)')}"]
        if self.may_write and kind in (6, 7):
            i, j = self.position(), self.position(3)
            place = self.pick(f"s.a[{i}]", f"s.grid[{i}, {j}]", "s.total[0]", f"x[{i}]")
            return [f"{indent}{place} {self.pick('', '', '+', '-', '*')}= {self.real(3)}"]
        if self.may_write and kind == 8:
            value = self.pick("1", self.index(2, 1000)[0])
            return [f"{indent}s.counts[{self.position()}] {self.pick('', '+', '-')}= {value}"]
        if self.may_write and kind == 9:
            sort = self.pick("Real", "Bool")
            call = self.call(sort, 2, writing=True)
            if call:
                self.fresh += 1
                name = f"{sort[0].lower()}{self.fresh}"
                self.names[name] = self.sorts[name] = sort
                return [f"{indent}{name} = {call}"]
        if kind in (10, 11) and depth:
            lines = [f"{indent}if {self.bool(2)}:", *self.block(depth - 1, indent + "    ")]
            if self.chance(0.3):
                lines += [f"{indent}elif {self.bool(2)}:", *self.block(depth - 1, indent + "    ")]
            if self.chance(0.5):
                lines += [f"{indent}else:", *self.block(depth - 1, indent + "    ")]
            return lines
        if kind in (12, 13) and depth:
            name = next(n for n in ("i", "j", "l") if n not in self.loops)
            bound = self.pick("4", "s.n[0]", "len(s.a)", "1, 4", "0, len(x), 2", "3, -1, -1", "2, 0, -2")
            table = self.chance(0.2)
            lines = [f"{indent}for {name} in range({'len(UNEQUAL)' if table else bound}):"]
            self.loops.append(name)
            inner = self.block(depth - 1, indent + "    ")
            if table:
                inner.insert(0, f"{indent}    y += UNEQUAL[{name}]")
            if self.chance(0.3):
                inner += [f"{indent}    if {self.bool(2)}:", f"{indent}        {self.pick('break', 'continue')}"]
                inner.append(f"{indent}    y -= {self.real(1)}")
            self.loops.pop()
            return lines + inner
        if kind == 0 or self.chance(0.2):
            return [f"{indent}if {self.bool(2)}:", f"{indent}    return {self.value(self.result)}"]
        return [f"{indent}y = {self.real(3)}"]

    def value(self, sort: str) -> str:
        if sort == "Index":
            return self.index(3, 1000)[0]
        return self.real(3) if sort == "Real" else self.bool(3)

    def kernel(self, name: str) -> str:
        self.names: dict[str, str] = {}  # locals in scope
        self.sorts: dict[str, str] = {}  # ... anywhere in the function
        self.loops: list[str] = []
        self.may_write = self.chance(0.6)
        self.result = self.pick("Real", "Real", "Bool")
        lines = ["@kernel", f"def {name}(s: Box, c: Settings, x: Real[N_MAX], y: Real, k: Index) -> {self.result}:"]
        for _ in range(self.random.randrange(2, 7)):
            lines += self.statement(2, "    ")
        lines.append(f"    return {self.value(self.result)}")
        (self.writing if self.may_write else self.pure).append((name, self.result))
        return "\n".join(lines)

    def module(self, kernels: int) -> str:
        source = PRELUDE
        calls = []
        for i in range(kernels):
            source += f"\n\n{self.kernel(f'f{i}')}\n"
            calls.append(f"    v{i} = f{i}(s, c, x, y, {i})")
            calls.append(f"    out[{i}] = " + (f"v{i}" if self.result == "Real" else f"real(1) if v{i} else real(0)"))
        head = "\n\n@entry\ndef run(s: Box, c: Settings, x: Real[N_MAX], y: Real, out: Real[...]) -> None:\n"
        return source + head + "\n".join(calls) + "\n"


def compare(folder: Path, seed: int, precision: Precision, kernels: int = 8, rounds: int = 12) -> None:
    module = load(folder, Maker(seed).module(kernels))
    rng = np.random.default_rng(seed)
    values = {"kind": int(rng.choice([0, 1, -2])), "flag": bool(rng.integers(2)), "p": -0.75, "q": -50}
    config = Settings.of(precision, values)
    unoptimised = Compiled(folder, [module.run], precision, config, "-O0")
    optimised = Compiled(folder, [module.run], precision, config, "-O3")
    drop = optimised.drop
    for _ in range(rounds):
        start = Memory([Box], precision, CAPACITIES, drop)
        for name in ("a", "b", "grid", "total"):
            field = start.field(name)
            field[...] = special_values(precision, rng, field.size).reshape(field.shape)
        start.field("counts")[...] = rng.integers(-9, 9, 4)
        start.field("n")[...] = rng.integers(0, 5)
        x, y = special_values(precision, rng, 4), special_values(precision, rng, 1)[0]
        found: dict[str, dict[str, bytes]] = {}
        for how in ("plain", "numba", "-O0", "-O3"):
            memory, given, out = Memory([Box], precision, CAPACITIES, drop), x.copy(), np.zeros(kernels, x.dtype)
            memory.copy_from(start)
            if how in ("plain", "numba"):
                run_host(module.run, precision, how == "numba", memory, config, given, y, out)
            else:
                (unoptimised if how == "-O0" else optimised).call("run", memory, given, y, out)
            found[how] = {name: plain_bytes(memory.field(name)) for name in Box.fields if name not in drop}
            found[how] |= {f"out[{i}]": plain_bytes(v) for i, v in enumerate(out)}
            found[how]["x"] = plain_bytes(given)
        for how in found:
            differing = [name for name in found[how] if found[how][name] != found["plain"][name]]
            assert not differing, f"{how} differs from plain execution in {differing}: {module.__file__}, seed {seed}"


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int, precision: Precision, tmp_path: Path) -> None:
    compare(tmp_path, seed, precision)


@pytest.mark.exhaustive
@BOTH
@pytest.mark.parametrize("seed", range(3, 60))
def test_more_random_programs(seed: int, precision: Precision, tmp_path: Path) -> None:
    compare(tmp_path, seed, precision)
