"""Whatever passes the checker means the same in each engine and in C."""

from __future__ import annotations

import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.dialect import FLOAT32, FLOAT64, Array, Bool, Index, Kernel, Memory, Precision, Real
from pykernel.engine import jitted
from pykernel.gen.binding import CModel
from pykernel.gen.check import check
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.language.c_text import comment, comment_block
from pykernel.language.print_c import Printer
from pykernel.language.read import member_comments
from pykernel.spec.model import make_spec
from tests.support.compilers import in_one_build
from tests.support.dialect_cases import CAPACITIES, Box, Compiled, Settings, c_source, executors, load, plain_bytes
from tests.support.specs import named
from tests.support.table_toy import frozen_spec

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are made up leave nothing in the user's cache."""
    monkeypatch.setattr(jitted, "cache_folder", lambda kind, digest: None)


def special_values(precision: Precision, rng: np.random.Generator, count: int, share: float) -> np.ndarray:
    """Random reals, a share of them of the kinds that go wrong."""
    info = np.finfo(precision.dtype)
    kinds = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, info.max, info.tiny, info.smallest_subnormal, -info.tiny]
    values = rng.normal(size=count) * 10.0 ** rng.integers(-3, 4, count)
    odd = rng.random(count) < share
    values[odd] = rng.choice(kinds, odd.sum())
    return values.astype(precision.dtype)


# ------------------------------------------------------------------------------------------- random programs

PRELUDE = '''"""Made up."""

from pykernel.algorithms.extents import N_MAX
from pykernel.dialect import Bool, Constant, Index, Real, absolute, floor_log2, kernel, pow2, real, sqrt, truncate
from pykernel.algorithms.elementary import exp_negative
from tests.support.dialect_cases import Box, Kind, Settings

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
            leaves += [f"c.basis[{self.position()}, {self.position(3)}]", f"c.shifts[{self.position()}]"]
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
            return self.pick(f"pow2({self.index(0, 60)[0]})", f"real(floor_log2({self.real(depth - 1)}))")
        return self.call("Real", depth) or self.real(depth - 1)

    def index(self, depth: int, limit: int = 2**31 - 1) -> tuple[str, int]:
        """Text and a bound of the magnitude."""
        if depth <= 0 or self.chance(0.2):
            names = [(n, 4) for n in self.loops] + [(n, 10**6) for n, kind in self.names.items() if kind == "Index"]
            leaves = [(str(v), abs(v)) for v in (0, 1, 2, 7, -3, 40000)] + [("FEW", 3), ("len(s.a)", 4), ("len(x)", 4)]
            leaves += [("s.n[0]", 4), ("s.m[0]", 10**6), ("c.q", 50), ("Kind.LOW", 2), ("c.kind", 2), ("k", 1000)]
            leaves += [(f"c.order[{self.position()}]", 3), ("len(c.basis)", 4)]
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
            options += [*self.loops, "(len(s.a) - 1)", f"c.order[{self.random.randrange(4)}]"]
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
        array = self.pick("x", "s.a", "s.b", *([] if writing else ["c.shifts"]))
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
                return [f"{indent}{self.pick(*reals)} {self.pick('+', '-', '*')}= {self.real(2)}"]
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
        head = "\n\n@kernel\ndef run(s: Box, c: Settings, x: Real[N_MAX], y: Real, out: Real[...]) -> None:\n"
        return source + head + "\n".join(calls) + "\n"


def compare(folder: Path, seed: int, precision: Precision, kernels: int = 8, rounds: int = 12) -> None:
    module = load(folder, Maker(seed).module(kernels))
    rng = np.random.default_rng(seed)
    values = {"kind": int(rng.choice([0, 1, -2])), "flag": bool(rng.integers(2)), "p": -0.75, "q": -50}
    config = Settings.of(precision, values)
    unoptimised = Compiled(folder, [module.run], precision, config, "-O0")
    optimised = Compiled(folder, [module.run], precision, config, "-O3")
    drop = optimised.drop
    kept = [name for name in Box.fields if name not in drop]
    engines = executors([module.run], precision, config)
    for turn in range(rounds):
        share = 0.4 * (turn % 2)  # NaN spreads, and then hides differences
        start = Memory([Box], precision, CAPACITIES)
        for name in ("a", "b", "grid", "total"):
            field = start.field(name)
            field[...] = special_values(precision, rng, field.size, share).reshape(field.shape)
        start.field("counts")[...] = rng.integers(-9, 9, 4)
        start.field("n")[...] = rng.integers(0, 5)
        x, y = special_values(precision, rng, 4, share), special_values(precision, rng, 1, share)[0]
        found: dict[str, dict[str, bytes]] = {}
        for how in (*engines, "-O0", "-O3"):
            memory, given, out = Memory([Box], precision, CAPACITIES, drop), x.copy(), np.zeros(kernels, x.dtype)
            if how in engines:
                memory = Memory([Box], precision, CAPACITIES)
            for name in kept:
                memory.field(name)[...] = start.field(name)
            if how in engines:
                engines[how](memory).call(module.run, given, y, out)
            else:
                (unoptimised if how == "-O0" else optimised).call("run", memory, given, y, out)
            found[how] = {name: plain_bytes(memory.field(name)) for name in kept}
            found[how] |= {f"out[{i}]": plain_bytes(v) for i, v in enumerate(out)}
            found[how]["x"] = plain_bytes(given)
        for how in found:
            differing = [name for name in found[how] if found[how][name] != found["python"][name]]
            assert not differing, f"{how} differs from plain execution in {differing}: {module.__file__}, seed {seed}"


@pytest.mark.usefixtures("no_cache")
@BOTH
@pytest.mark.parametrize("seed", range(1))
@pytest.mark.in_turn
def test_random_programs(seed: int, precision: Precision, tmp_path: Path) -> None:
    compare(tmp_path, seed, precision, kernels=2)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_cache")
@BOTH
@pytest.mark.parametrize("seed", range(1, 60))
def test_more_random_programs(seed: int, precision: Precision, tmp_path: Path) -> None:
    compare(tmp_path, seed, precision)


# ------------------------------------------------------------------------------------- one construct at a time

DIRECTED = '''"""One construct each."""

from enum import IntEnum

from pykernel.algorithms.extents import N_MAX
from pykernel.dialect import Bool, Constant, Index, Real, absolute, chosen, kernel, real, sqrt, truncate
from tests.support.dialect_cases import Box, Kind, Settings

ZEROS = Constant((0.0, -0.0))
STEPS = Constant((1.0, 2.0, 3.0, 4.0))


class Answer(IntEnum):
    ONE = 7
    LOW = -9


@kernel
def count_up(s: Box, start: Index, stop: Index) -> Index:
    turns = 0
    for i in range(start, stop):
        turns = turns * 10 + i
    return turns


@kernel
def count_in_steps(s: Box, start: Index, stop: Index) -> Index:
    turns = 0
    for i in range(start, stop, 3):
        turns = turns * 10 + i
    for j in range(start, stop, -2):
        turns = turns * 10 + j
    return turns


@kernel
def bound_is_taken_once(s: Box, k: Index) -> Index:
    stop = k
    turns = 0
    for i in range(stop):
        k = 0
        turns += 1
    return turns + k


@kernel
def leave_loops(s: Box, k: Index) -> Index:
    total = 0
    for i in range(5):
        if i == k:
            continue
        for j in range(5):
            if j == i:
                break
            total += 1
        if i > 3:
            break
        total += 10
    return total


@kernel
def divide(s: Box, k: Index) -> Index:
    total = 0
    for i in range(9, -1, -1):
        part = (i * 7 + len(s.a)) % 5
        total = total + (total if total > 0 else 2) % 7
        total = total * 3 + part // 2 + i % len(s.a)
    return total


@kernel
def remainder_of_parameter(s: Box, k: Index) -> Index:
    part = 4
    for i in range(3):
        part = (part + i) % 5
        k = part
    return k - 10


@kernel
def compare(s: Box, a: Real, b: Real) -> Index:
    code = 0
    if a < b:
        code += 1
    if not (a < b):
        code += 2
    if a <= b or a > b:
        code += 4
    if not (a >= b and a == a):
        code += 8
    if a != a:
        code += 16
    if a == b:
        code += 32
    return code


@kernel
def only_else_remains(s: Box, a: Real, b: Real) -> None:
    if a < b:
        s.grid[0, 0] = a
    else:
        s.total[0] = real(1)


@kernel
def precedence(s: Box, a: Real, b: Real) -> Real:
    c = not a < b or a == b and not (b < a)
    d = (a if a < b else b if c else -a) - (-b) - -a
    e = a - (b - d) / (a / (b * d)) * -(-(a + b))
    return e if (d if c else e) < a else -(e - (d if c else a))


@kernel
def decided_when_printed(c: Settings, s: Box, k: Index) -> Index:
    found = 1 if c.kind < 0 else 0
    found += 2 if c.kind < 1 else 0
    found += 4 if c.kind <= 0 else 0
    found += 8 if c.kind <= 1 else 0
    found += 16 if c.kind > 0 else 0
    found += 32 if c.kind > 1 else 0
    found += 64 if c.kind >= 0 else 0
    found += 128 if c.kind >= 1 else 0
    found += 256 if c.kind == 0 else 0
    found += 512 if c.kind != 0 else 0
    found += 1024 if k <= k else 0
    found += 2048 if k < k or k > k or k != k else 0
    found += 4096 if k >= k and k == k else 0
    return found


@kernel
def mixed_conditions(s: Box, k: Index) -> Bool:
    low = k < 3
    high = k > 5 if low else k > -5 and not low
    return (low or high) and not (low and high) or k == 7


@kernel
def zero(negative: Real) -> Real:
    return real(1) / negative


@kernel
def signed_zeros(s: Box, k: Index) -> Real:
    plus = zero(real(0)) + zero(real(-0))
    minus = zero(-real(0.0)) + zero(real(-0.0))
    return minus if k > 0 else plus


@kernel
def always(negative: Real) -> Real:
    return real(1) / negative


@kernel
def one_signed_zero(s: Box, k: Index) -> Real:
    return always(ZEROS[1]) + always(real(-0.0))


@kernel
def negate(y: Real) -> Real:
    return -y


@kernel
def minus_constant(s: Box, k: Index) -> Real:
    return negate(real(-0.0)) - negate(real(-2.5)) + real(k)


@kernel
def write_first(x: Real[...], y: Real[...]) -> Real:
    x[0] = real(5)
    y[0] += real(1)
    return x[0] + y[1]


@kernel
def same_array_twice(s: Box, k: Index) -> Real:
    got = write_first(s.a, s.a)
    return got + s.a[0]


@kernel
def grow_row(s: Box, row: Real[...]) -> Real:
    row[1] += s.grid[1, 1]
    s.grid[1, 1] *= real(2)
    return row[1]


@kernel
def row_with_its_struct(s: Box, k: Index) -> Real:
    s.grid[1, 1] = real(3)
    got = grow_row(s, s.grid[1])
    return got


@kernel
def increase(k: Index[1], y: Real[1]) -> None:
    k[0] += 1
    k[0] -= 3
    y[0] -= real(1) / y[0]


@kernel
def change_through_pointers(s: Box, k: Index) -> Index:
    s.n[0] = k
    s.total[0] = real(4)
    increase(s.n, s.total)
    return s.n[0] * 100 + truncate(s.total[0] * real(4))


@kernel
def halve(y: Real, n: Index) -> Real:
    for i in range(n):
        y = y / real(2)
    y += real(n)
    n = 3
    return y * real(n)


@kernel
def changed_parameters(s: Box, k: Index) -> Real:
    return halve(real(8), 2) + halve(real(8), 2)


@kernel
def tick(s: Box) -> Real:
    s.total[0] += real(1)
    return s.total[0]


@kernel
def effects_in_order(s: Box, k: Index) -> Real:
    s.total[0] = real(0)
    first = tick(s)
    ignored = tick(s)
    later = first * real(10) + s.total[0]
    first = tick(s)
    return later + first * real(100)


@kernel
def chosen_blocks(s: Box, c: Settings, k: Index) -> Index:
    total = 0
    if c.kind == Kind.ONE:
        part = k + 1
        total += part
    if c.flag:
        part = k + 2
        total += part * 10
    for i in range(2):
        part = i + 3
        total += part * 100
    if not c.flag:
        return total
    part = 5
    total += part * 1000
    return total


@kernel
def zero_by_negative(s: Box, k: Index) -> Real:
    """The sign of a zero."""
    return real(1) / (real(k - k) / real(-1 - k * k)) + real(1) / (real(0) / real(-1 - k * k))


@kernel
def add_to_total(s: Box, c: Settings, k: Index) -> Index:
    s.total[0] += real(k)
    return k + 1


@kernel
def double_total(s: Box, c: Settings, k: Index) -> Index:
    s.total[0] += s.total[0]
    return k - 1


@kernel
def clear_total(s: Box, c: Settings) -> None:
    s.total[0] = c.p


@kernel
def keep_total(s: Box, c: Settings) -> None:
    """Nothing."""


@chosen("kind", {Kind.ONE: double_total}, add_to_total)
def by_kind(s: Box, c: Settings, k: Index) -> Index:
    """One of two."""


@chosen("kind", {Kind.ONE: clear_total}, keep_total)
def at_first(s: Box, c: Settings) -> None:
    """One of two, without a result."""


@kernel
def called_by_choice(s: Box, c: Settings, k: Index) -> Real:
    at_first(s, c)
    first = by_kind(s, c, k)
    last = by_kind(s, c, first)
    return s.total[0] + real(last)


@kernel
def tables(s: Box, k: Index) -> Real:
    total = real(0)
    for i in range(len(STEPS)):
        if i > 0:
            total += STEPS[i] * STEPS[i - 1]
    for i in range(len(STEPS)):
        if STEPS[i] > real(k):
            break
        total += STEPS[i]
    for i in range(len(STEPS)):
        part = STEPS[i] + real(i)
        total = total * part
    for i in range(len(STEPS)):
        for j in range(i):
            total -= STEPS[j]
    return total


@kernel
def weighed(weights: Real[...], y: Real[...], n: Index) -> Real:
    total = real(0)
    for j in range(n):
        total += weights[j] * y[j]
    return total


@kernel
def fixed_tables(s: Box, c: Settings, k: Index) -> Real:
    total = c.shifts[1] + c.basis[2, 0]
    for i in range(len(c.basis)):
        j = c.order[i]
        total += weighed(c.basis[j], s.grid[i], len(c.basis[0])) + weighed(c.basis[i], c.basis[j], 2)
        total += weighed(c.shifts, s.a, len(c.shifts)) * real(c.order[0])
    return total


@kernel
def members(s: Box, c: Settings, k: Index) -> Index:
    if c.kind == Kind.ONE and k == Kind.LOW:
        return Answer.ONE
    if k - Answer.LOW > -Kind.LOW:
        return Answer.LOW
    return Kind.LOW


@kernel
def long_expression(s: Box, y: Real) -> Real:
    return LONG


@kernel
def deep_expression(s: Box, y: Real) -> Real:
    return DEEP
'''
LONG = " + ".join(f"y * real({i}) - real({i}) / (y + s.a[{i % 4}])" for i in range(60))
DEEP = "y"
for _i in range(40):
    DEEP = f"({DEEP} - absolute(y)) * real({_i}) if y < real({_i}) else -({'y' if _i % 20 else DEEP})"
INDICES = [-7, -2, 0, 1, 3, 7, 11]
REALS_ = [0.0, -0.0, 1.5, -2.0, 1e-40, -3e38, np.inf, -np.inf, np.nan]
CASES: dict[str, list[tuple]] = {
    "count_up": [(a, b) for a in (-3, 0, 2) for b in (-4, 0, 3)],
    "count_in_steps": [(a, b) for a in (-3, 0, 2) for b in (-4, 0, 7)],
    "compare": [(a, b) for a in REALS_ for b in REALS_],
    "only_else_remains": [(a, b) for a in REALS_ for b in (0.0, np.nan)],
    "precedence": [(a, b) for a in REALS_ for b in REALS_],
    "long_expression": [(a,) for a in REALS_],
    "deep_expression": [(a,) for a in (*REALS_, 5.0, 17.5)],
}
KNOWN: dict[str, Any] = {
    "count_up": [0, -321, -320988, 0, 0, 12, 0, 0, 2],
    "bound_is_taken_once": [-7, -2, 0, 1, 3, 7, 11],
    "signed_zeros": [np.inf, np.inf, np.inf, -np.inf, -np.inf, -np.inf, -np.inf],
    "one_signed_zero": [-np.inf] * 7,
    "same_array_twice": [10.0] * 7,
    "row_with_its_struct": [12.0] * 7,
    "changed_parameters": [24.0] * 7,
    "effects_in_order": [312.0] * 7,
}


@pytest.mark.exhaustive
@pytest.mark.in_turn(9)
@pytest.mark.usefixtures("no_cache")
@BOTH
def test_each_construct(precision: Precision, tmp_path: Path, exhaustive: bool) -> None:
    """Each engine, and C with and without optimisation, on values that tell variants apart."""
    module = load(tmp_path, DIRECTED.replace("LONG", LONG).replace("DEEP", DEEP))
    kernels = [k for k in vars(module).values() if isinstance(k, Kernel) and k.file == Path(str(module.__file__))]
    kernels = [
        k for k in kernels if Box in k.params.values() and not any(isinstance(p, Array) for p in k.params.values())
    ]
    both = ((0, False), (1, True))
    for kind, flag in both if exhaustive else [both[precision is FLOAT32]]:
        config = Settings.of(precision, {"kind": kind, "flag": flag, "p": 0.5, "q": 3})
        libraries = {level: Compiled(tmp_path, kernels, precision, config, level) for level in ("-O0", "-O3")}
        drop = libraries["-O0"].drop
        kept = [name for name in Box.fields if name not in drop]
        engines = executors(kernels, precision, config)
        for k in kernels:
            takes = [p for p in k.params.values() if p in (Real, Index)]
            for number, values in enumerate(CASES.get(k.name, [(i,) * len(takes) for i in INDICES])):
                given = [precision.real(v) if p is Real else int(v) for v, p in zip(values, takes, strict=True)]
                found = {}
                for how in (*engines, "-O0", "-O3"):
                    memory = Memory([Box], precision, CAPACITIES, drop if how in libraries else ())
                    memory.field("a")[...] = [1, -2, 0.1, np.inf]
                    if how in libraries:
                        result = libraries[how].call(k.name, memory, *given)
                    else:
                        result = engines[how](memory).call(k, *given)
                    kinds = {Real: precision.dtype, Index: np.int32, Bool: np.bool_}
                    result = None if k.returns is None else np.array(result, kinds[k.returns])
                    found[how] = (plain_bytes(result), [plain_bytes(memory.field(name)) for name in kept])
                    if KNOWN.get(k.name) and result is not None:
                        assert result == KNOWN[k.name][number], (k.name, values, how)
                assert all(each == found["python"] for each in found.values()), (k.name, values, kind, flag)


# ----------------------------------------------------------------------------------------------- printed text


@BOTH
def test_numbers_read_back(precision: Precision, tmp_path: Path) -> None:
    """Tables of any bit patterns, as a compiler reads them."""
    rng = np.random.default_rng(0)
    info = np.finfo(precision.dtype)
    values = np.frombuffer(rng.bytes(1500 * precision.dtype.itemsize), precision.dtype)
    edges = np.array([0, -0.0, info.max, -info.max, info.tiny, info.smallest_subnormal, 16777217, 1e16, 0.1, 1 / 3])
    values = np.append(values[np.isfinite(values)], edges.astype(precision.dtype))
    source = "from pykernel.dialect import Constant, Real, kernel\nfrom tests.support.dialect_cases import Box\n"
    source += f"TABLE = Constant({precision}={values.tolist()}, {FLOAT64 if precision is FLOAT32 else FLOAT32}=({'0.0, ' * len(values)}))\n"
    source += (
        "@kernel\ndef copy(s: Box, y: Real[...]) -> None:\n    for i in range(len(TABLE)):\n        y[i] = TABLE[i]\n"
    )
    module = load(tmp_path, source)
    result = np.empty_like(values)
    Compiled(tmp_path, [module.copy], precision).call("copy", Memory([Box], precision, CAPACITIES), result)
    assert result.tobytes() == values.tobytes()


@given(st.text(st.one_of(st.sampled_from("*/?\\\n \t#\u202e\u2028\u200b\x00\x0b\r<"), st.characters()), max_size=40))
def test_comments_cannot_be_left(text: str) -> None:
    for indent in ("", "    "):
        lines = "\n".join(comment_block(text, indent)).split("\n")
        block = "\n".join(lines)
        if not comment(text).strip():
            assert lines == [""]
            continue
        assert block.lstrip().startswith("/* ") and block.endswith(" */")
        inside = block.strip()[2:-2]
        assert "*/" not in inside and "/*" not in inside and "??" not in inside
        assert not any(line.endswith("\\") for line in lines)
        assert not any(unicodedata.category(ch).startswith("C") for ch in block if ch != "\n")
        # what can be seen is still there
        visible = [ch for ch in text if not unicodedata.category(ch).startswith(("C", "Z")) and ch != "\\"]
        assert [ch for ch in inside if ch in visible and ch not in "*/"] == [ch for ch in visible if ch not in "*/"]


def test_comments_of_fields_survive_a_formatter(tmp_path: Path) -> None:
    """A long line becomes several, with the comment inside brackets."""
    source = "class Wrapped:\n    # above\n    a: int\n    b: int  # beside\n    c: (\n        int  # inside\n    )\n    d: int\n"
    assert member_comments(load(tmp_path, source).Wrapped) == {"a": "above", "b": "beside", "c": "inside"}


def test_comments_and_docstrings_survive(tmp_path: Path) -> None:
    source = r'''
from pykernel.dialect import Real, kernel, real
from tests.support.dialect_cases import Box


@kernel
def inner(y: Real) -> Real:
    r"""Ends */ here ???/
    trailing \
    /* nested ‮ bidi
    """
    # before the first statement \
    z = y * y  # beside ??/
    #
    # at last */ int x;
    return z


@kernel
def f(s: Box, y: Real) -> Real:
    # 1
    a = inner(y)  # 2
    a = (  # fmt: skip
        a  # noqa: E741
    )
    # 3
    # 4
    if a > y:  # 5
        # 6
        a = inner(a)  # 7
    elif a < y:
        # 8
        a = -a
    else:
        # 9
        a += y
    for i in range(3):  # 10
        a *= y  # 11
    return a  # 12
'''
    code = Compiled(tmp_path, [load(tmp_path, source).f], FLOAT32).text
    body = code[code.index("float m_f(const m_t *s, float y)\n") :]
    assert re.findall(r"(?<=[ *] )\d+(?= \*/|\n)", body) == [str(i) for i in range(1, 13)]
    assert "noqa" not in code
    assert "Ends * / here ? ? ?/" in code and "/ * nested   bidi" in code
    assert "before the first statement" in code and "at last * / int x;" in code


def _composed(e: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(e, min_size=2, max_size=9).map(" + ".join) | e.map("({0} ? {0} : !{0}) && c[i - {0}]".format)


EXPRESSIONS = st.recursive(st.sampled_from(["a", "-b", "f(x, y)", "*p", "(int32_t)z"]), _composed)


@given(EXPRESSIONS)
def test_wrapping_changes_no_token(expression: str) -> None:
    line = f"        const float name = {expression};"
    lines = Printer("m", FLOAT32, frozenset(), {}).wrap(line)
    assert " ".join(" ".join(lines).split()) == " ".join(line.split())


def test_members_of_other_enumerations_are_numbers(tmp_path: Path) -> None:
    """Only the status has macros: another enumeration may use the same names for other values."""
    module = load(tmp_path, DIRECTED.replace("LONG", "y").replace("DEEP", "y"))
    config = Settings.of(FLOAT32, {"kind": 1, "flag": False, "p": 0.5, "q": 3})
    assert re.findall(r"return (.*);", c_source([module.members], FLOAT32, config)[0]) == ["7", "-9", "-2"]
    with_status = c_source([module.members], FLOAT32, config, status=module.Answer)[0]
    assert re.findall(r"return (.*);", with_status) == ["M_ONE", "M_LOW", "-2"]


def test_two_kernels_of_one_name(tmp_path: Path) -> None:
    source = "from pykernel.dialect import Real, kernel\n{}\n@kernel\ndef {}(y: Real) -> Real:\n    return y + {}\n"
    first = load(tmp_path, source.format("", "helper", "y"))
    second = load(tmp_path, source.format(f"from {first.__name__} import helper as other", "helper", "other(y)"))
    with pytest.raises(TypeError, match="two kernels have the name helper"):
        c_source([second.helper], FLOAT32)


# --------------------------------------------------------------------------------------------- specialisation


def test_what_a_model_does_not_use_is_gone() -> None:
    def code(technique: str) -> tuple[str, str]:
        content = {"name": "flow", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "reduction": {"technique": technique}}
        files = build(make_spec(named(content))).files
        return files["src/flow.h"], files["src/flow.c"]

    for technique, fields in (("nt", "m beta p u k neighbour"), ("fklms", "m p u kappa"), ("mklms", "neighbour")):
        header, source = code(technique)
        for name in fields.split():
            assert not re.search(rf"\b(float|int32_t) {name}\b[^;]*;", header), (technique, name)
            assert not re.search(rf"->{name}\b", source), (technique, name)
        # every function is called, every macro used
        for name in re.findall(r"^(?:static )?\w+ (flow_\w+)\(", source, re.MULTILINE):
            assert len(re.findall(rf"\b{name}\b", source)) > 1 or name in header, (technique, name)
        for name in re.findall(r"^#define (FLOW_\w+)", source, re.MULTILINE):
            assert len(re.findall(rf"\b{name}\b", source)) > 1, (technique, name)
    assert "FLOW_KEEP" not in code("nt")[1]


def test_folding_leaves_nothing_behind(tmp_path: Path) -> None:
    source = """
from pykernel.dialect import Constant, Index, Real, kernel, real
from tests.support.dialect_cases import Box, Kind, Settings

POWERS = Constant((1.0, 0.5, 0.25))

@kernel
def scale(c: Settings, y: Real, way: Index, unused: Real) -> Real:
    if way == Kind.ONE:
        return y
    if c.flag and c.kind == Kind.LOW:
        return real(2) * y
    return unused

@kernel
def nothing(s: Box, c: Settings) -> None:
    if c.flag:
        s.total[0] = real(1)

@kernel
def f(s: Box, c: Settings, y: Real) -> Real:
    nothing(s, c)
    waste = y * y
    waste = waste + y
    y = real(0) if c.flag else y
    if len(s.a) > len(s.a):
        y = y + y
    s.b[0] = y
    for i in range(len(POWERS)):
        y += POWERS[i] * y
    return scale(c, y, Kind.ONE, s.a[0])
"""
    config = Settings.of(FLOAT32, {"kind": 0, "flag": False, "p": 0.5, "q": 3})
    text, _, drop = c_source([load(tmp_path, source).f], FLOAT32, config)
    function = text[text.index("float m_f(const m_t *s, float y)\n") :]
    assert function.split() == (
        "float m_f(const m_t *s, float y) { (void)s; y += 1.0f * y; y += 0.5f * y; y += 0.25f * y; return y; }".split()
    )
    assert "m_scale" not in text and "m_nothing" not in text and drop == tuple(sorted(Box.fields))


# ------------------------------------------------------------------------------------------ a model with tables


@BOTH
@pytest.mark.in_turn
def test_tables_of_a_configuration_reach_the_device(precision: Precision, exhaustive: bool) -> None:
    """The same bytes; in flash, once in each file that reads them; part of the hash; and none where no code does."""
    size = precision.dtype.itemsize
    project = build(frozen_spec(precision.name))
    code, saving = project.files["src/ice.c"], project.files["src/ice_snapshot.c"]
    assert "/* the vectors */\nstatic const " in code
    assert re.search(
        r"static const ICE_FLASH \w+ ice_basis\[ICE_N_MAX\]\[ICE_DIM\] ICE_CONST = \{\n    \{0\.1f?, -2\.0f?\},\n", code
    )
    assert re.search(r"static const ICE_FLASH int32_t ice_order\[ICE_N_MAX\] ICE_CONST = \{\n    2, 0, 1\n\};", code)
    assert "ice_bounds" not in code and "ice_spare" not in code
    assert re.search(
        r"static const ICE_FLASH \w+ ice_bounds\[ICE_N_MAX\] ICE_CONST = \{\n    1\.0f?, 1\.0f?, 1\.5f?\n\};", saving
    )
    assert "basis" not in saving and "\n\n\n" not in code + saving
    assert project.figures["const_bytes"] == 6 * size + 3 * 4
    assert project.figures["state_bytes"] == 3 * size + (4 if size == 4 else 8)
    other = build(frozen_spec(precision.name, spare=True))
    assert "ice_spare[ICE_DIM]" in other.files["src/ice.c"]
    assert other.figures["const_bytes"] == 8 * size + 3 * 4
    one_number = build(frozen_spec(precision.name, rho=0.1000001))
    assert len({p.figures["config_hash"] for p in (project, other, one_number)}) == 3
    report = (check if exhaustive else in_one_build)(frozen_spec(precision.name, spare=True), samples=3000)
    assert report.ok, report.rows


def test_a_table_that_only_valid_reads_is_read() -> None:
    spec = frozen_spec()
    device = CModel(build(spec), find_compilers()[0])
    taken = np.zeros(device.memory.layout.nbytes + 64, np.uint8)
    buffer = device.pointer(taken, "uint8_t *")
    for value, status in ((1.0, 0), (1.5, 0), (1.5000001, -104)):
        device.memory.field("alpha")[2] = value
        assert device.call("save", buffer) == status
    device.memory.field("alpha")[:] = [0, 1.25, 0]
    assert device.call("save", buffer) == -104
