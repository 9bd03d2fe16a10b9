"""The proof that no whole number leaves its type: what it finds, what it refuses, and that it is never wrong."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pykernel.dialect import FLOAT32, INDEX_MAX, INT16, Kernel, Memory, interpreter, intrinsics
from pykernel.engine import jitted
from pykernel.gen import compilers
from pykernel.language import ranges
from pykernel.language.functions import checked_functions
from pykernel.language.ir import DialectError, For, walk
from pykernel.language.ranges import most_turns, prove
from pykernel.language.specialise import specialise
from tests.support.dialect_cases import CAPACITIES, Compiled, Given, Whole, executors, load

PRELUDE = '''"""Made up."""

from pykernel.dialect import Constant, Index, Int, Int16, Uint16, Word, as_signed, exact_square, floor_shift, index
from pykernel.dialect import kernel, multiply_high, quotient, word, DIM
from pykernel.algorithms.int16.arithmetic import places
from tests.support.dialect_cases import Given, Whole

TABLE = Constant(tuple(round(65535 * 2 ** (-i / 64)) for i in range(64)), scalar=Uint16)


@kernel
def distance(s: Whole, i: Index, x: Int16[...], count: Index) -> Word:
    d = word(0)
    for j in range(count):
        d += exact_square(x[j] - s.v[i, j])
    return d


@kernel
def clip(a: Index, low: Index, high: Index) -> Index:
    return low if a < low else (high if a > high else a)


@kernel
def mark(s: Whole, i: Index) -> None:
    s.closest[i] = 3


@kernel
def power(d: Word) -> Index:
    k = TABLE[index((d >> 10) & 63)]
    return k - floor_shift(floor_shift(k * index(d & 1023), 10) * 706, 16)

'''
SIGNATURE = """
@kernel
def run(s: Whole, c: Given, x: Int16[DIM], y: Int) -> Index:
"""
WEIGHTS, FACTORS = np.array([30000, -30000, 200, 1], np.int16), np.array([100, -200, 300], np.int16)


class Case:
    """A kernel ``run`` with this body, and what can be proved of it."""

    def __init__(self, folder: Path, body: str) -> None:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        self.text = PRELUDE + SIGNATURE + lines + "\n"
        self.kernel: Kernel = load(folder, self.text).run
        self.config = Given.of(INT16, {"weights": WEIGHTS, "factors": FACTORS, "q": 7}, CAPACITIES)

    def prove(self) -> tuple[int, int]:
        # nothing is left out, for the interpreter leaves nothing out
        code = specialise(checked_functions((self.kernel,)), ["run"], {}, INT16, ())
        return prove(code.functions, ["run"], [Whole], self.config, CAPACITIES, INT16)["run"]

    def random_memory(self, rng: np.random.Generator, drop: tuple[str, ...] = ()) -> Memory:
        """Any numbers of the declared ranges, the ends of them often."""
        memory = Memory([Whole], INT16, CAPACITIES, drop)
        for name in Whole.fields:
            values = memory.field(name)
            limits = np.iinfo(values.dtype)
            low, high = limits.min, limits.max
            if name in Whole.ranges:
                given = Whole.ranges[name]
                low, high = (e.value(CAPACITIES) if hasattr(e, "value") else e for e in (given.least, given.most))
            values[...] = ends_often(rng, low, high, values.shape)
        return memory


def ends_often(rng: np.random.Generator, low: int, high: int, shape: Any) -> np.ndarray:
    found = rng.integers(low, high, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.5, rng.choice([low, high], shape), found)


PROVED = {
    "a table's rows, each by itself": (
        "total = 0\nfor i in range(len(s.v)):\n    total += c.weights[i] * 40000\nreturn total",
        (8040000, 8040000),
    ),
    "a refusal": (
        "for j in range(len(x)):\n    if x[j] < -8000 or x[j] > 8000:\n        return -1\n    s.v[0, j] = x[j]\n"
        "return index(distance(s, 1, s.v[0], len(x)))",
        (-1, 3 * 16000**2),
    ),
    "the nearest": (
        "best = word(2147483647)\nat = 0\nfor i in range(s.n[0]):\n    d = distance(s, i, x, len(x))\n    if d < best:\n"
        "        best = d\n        at = i\ns.closest[at] = at\nreturn s.closest[at]",
        (0, 3),
    ),
    "a count": (
        "if s.n[0] < len(s.a):\n    s.a[s.n[0]] = 1\n    s.n[0] += 1\nreturn s.n[0]",
        (1, 4),
    ),
    "pairs": (
        "p = 0\nfor a in range(len(s.v)):\n    for b in range(a + 1, len(s.v)):\n        p = p + 1\nreturn p",
        (6, 6),
    ),
    "a position that counts along": (
        "p = -1\ntotal = 0\nfor i in range(len(s.a)):\n    p += 1\n    total += c.weights[p]\nreturn total",
        (201, 201),
    ),
    "a kernel value": ("return power(s.w[0])", (32419, 65535)),
    "clipped": ("s.a[0] = clip(s.a[0] + y, -5, 5) if y >= 0 and y < 9 else 0\nreturn s.a[0]", (-5, 5)),
    "rounded down": ("return floor_shift(s.small[0], 3)", (-16, 15)),
    "a product in halves": ("return multiply_high(y, 65535)", (-(2**31) + 32768, 2**31 - 32769)),
    "lower bits": ("return index(s.w[0] >> 28) + index(s.w[1] & 7)", (0, 22)),
    "what one way leaves": (
        "k = 1\nif y > 5:\n    k = 2\nelif y < -5:\n    return 9\nelse:\n    k = 3\nreturn k",
        (2, 9),
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_what_is_proved(name: str, tmp_path: Path) -> None:
    body, expected = PROVED[name]
    assert Case(tmp_path, body).prove() == expected


REFUSED = {
    "total = 0\nfor i in range(len(s.v)):\n    total += c.weights[i] * 72000\nreturn total": "this product is from -2160000000 to 2160000000",
    "return y + 1": "this sum is from -2147483647 to 2147483648",
    "return -y": "the negative is from -2147483647 to 2147483648",
    "return x[0] * 70000": "this product is from -2293760000 to 2293690000",
    "s.n[0] += 1\nreturn s.n[0]": "an element of n is from 1 to 5",
    "s.closest[s.n[0]] = 1\nreturn s.closest[0]": "this position is from 0 to 4 here; the last one is 3",
    "s.v[0, 0] = x[0]\nreturn s.v[0, 0]": "its declared range is -8000 to 8000: clip it, or refuse the sample",
    "s.small[0] = s.n[0] * 100\nreturn s.small[0]": "an element of small is from 0 to 400",
    "return index(s.w[0])": "this Word is from 0 to 4294967295",
    "return index(s.w[0] >> s.n[0])": "this Word is from 0 to 4294967295",
    "return floor_shift(y, s.small[0])": "this shift is from -128 to 127 here; a shift must be from 0 to 31",
    "return multiply_high(y, y)": "the factor is from -2147483648 to 2147483647",
    "p = 1\nfor i in range(40):\n    p = p * 2\n    if y > 5:\n        break\nreturn p": "this product",
    "p = y\nfor i in range(s.n[0]):\n    p += 1\nreturn p": "this sum is from -2147483647 to 2147483648",
    "p = 1\nfor i in range(y):\n    p += 1\nreturn p": "this sum is from -2147483647 to 2147483648",
    "s.w[0] = exact_square(x[0]) * 3\nreturn index(s.w[0])": "this Word is from 0 to",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_refused(body: str, tmp_path: Path) -> None:
    with pytest.raises(DialectError, match=REFUSED[body]) as caught:
        Case(tmp_path, body).prove()
    assert ".py:" in str(caught.value) and ", in: " in str(caught.value)


# --------------------------------------------------------------------------------------------------- random programs


RANGES = (("s.n[0]", 0, 4), ("count", 0, 4), ("s.closest[2]", 0, 3), ("s.small[0]", -128, 127), ("x[1]", -32768, 32767))
"""What a comparison at the edge is about."""


class Maker:
    """Random bodies of whole numbers, about half of which can be proved."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.fresh = 0
        self.names: dict[str, str] = {}
        self.running: list[str] = []

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def position(self, size: int) -> str:
        options = [str(i) for i in range(size)]
        options += [name for name, last in self.loops if last < size]
        return self.pick(*options, *(["s.closest[1]", "index(s.w[0] & 3)"] if size == 4 else []))

    def whole(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.2):
            known = [name for name, kind in self.names.items() if kind == "Index"]
            leaves = [str(self.pick(0, 1, -1, 2, 3, 7, 100, -1000, 40000)), "c.q", "s.n[0]", "s.small[0]"]
            leaves += [f"x[{self.position(3)}]", f"c.weights[{self.position(4)}]", f"c.factors[{self.position(3)}]"]
            leaves += [f"s.v[{self.position(4)}, {self.position(3)}]", f"s.closest[{self.position(4)}]"]
            leaves += [f"s.a[{self.position(4)}]", "floor_shift(y, 8)", f"TABLE[{self.position(4)}]"]
            return self.pick(*leaves, *known, *known, *(name for name, _ in self.loops))
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} - {b})",
            f"floor_shift({a}, {self.pick(1, 4, 9, 'index(s.w[1] & 15)')})",
            f"floor_shift({a} * {b}, 6)",
            f"(-{a})",
            f"({a} if {self.condition(depth - 1)} else {b})",
            f"clip({a}, -{self.pick(100, 8000)}, {self.pick(50, 8000)})",
            f"multiply_high({a}, {self.pick(65535, 30000, f'TABLE[{self.position(4)}]')})",
            f"power({self.word(depth - 1)})",
            f"index({self.word(depth - 1)} & {self.pick(255, 1023)})",
            f"index({self.word(depth - 1)} >> {self.pick(1, 12, 31)})",
        )

    def word(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.3):
            known = [name for name, kind in self.names.items() if kind == "Word"]
            return self.pick(f"s.w[{self.position(4)}]", f"word({self.whole(0)})", *known)
        a, b = self.word(depth - 1), self.word(depth - 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} & {b})",
            f"({a} >> {self.pick(0, 3, 17)})",
            f"({a} << {self.pick(0, 5, 31)})",
            f"({a} << (31 - places({b})))",
            f"exact_square({self.whole(depth - 1)})",
            f"distance(s, {self.position(4)}, {self.pick('x', 's.v[2]')}, {self.pick(3, 2)})",
        )

    def edge(self) -> tuple[str, str]:
        """What has a known range, and a comparison of it with a number at an end of this range."""
        name, least, most = self.pick(*RANGES, *((loop, 0, last) for loop, last in self.loops))
        number = self.pick(least, most) + self.pick(-1, 0, 1)
        op = self.pick("<", "<=", ">", ">=", "==", "!=")
        text = self.pick(f"{name} {op} {number}", f"{number} {op} {name}")
        return name, self.pick(text, f"not ({text})")

    def condition(self, depth: int) -> str:
        if self.chance(0.25):
            return self.edge()[1]
        if self.chance(0.3) and depth > 0:
            return f"({self.condition(depth - 1)} {self.pick('and', 'or')} {self.condition(depth - 1)})"
        if self.chance(0.3):
            return f"{self.word(depth)} {self.pick('<', '>=', '==', '!=')} {self.word(depth)}"
        text = f"{self.whole(depth)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.whole(depth)}"
        return self.pick(text, f"not ({text})")

    def block(self, depth: int, indent: int) -> list[str]:
        before, lines = dict(self.names), []
        for _ in range(self.random.randint(1, 4)):
            lines += self.statement(depth, indent)
        if self.loops and self.chance(0.15):
            lines.append("    " * indent + self.pick("break", "continue"))
        elif self.chance(0.05):
            lines.append("    " * indent + f"return {self.whole(1)}")
        self.names = before
        return lines

    def statement(self, depth: int, indent: int) -> list[str]:
        space = "    " * indent
        kinds = ["local", "local", "element", "element", "sum", "sum", "guarded", "guarded"]
        kinds += ["if", "for", "for"] if depth > 0 else []
        kind = self.pick(*kinds)
        if kind == "local":
            of = self.pick("Index", "Index", "Word")
            known = [name for name, kind_ in self.names.items() if kind_ == of]
            value = self.whole(2) if of == "Index" else self.word(2)
            if known and self.chance(0.5):
                name = self.pick(*known)
                return [f"{space}{name} = {value}", self.use(name, space)]
            self.fresh += 1
            name = f"k{self.fresh}"
            self.names[name] = of
            return [f"{space}{name} = {value}", self.use(name, space)]
        if kind == "sum":
            known = [*self.names.items()]
            if not known:
                return []
            name, of = self.pick(*known)
            term = self.whole(1) if of == "Index" else self.word(1)
            if self.chance(0.3):
                return [f"{space}{name} = {name} {self.pick('+', '-')} {term}", self.use(name, space)]
            return [f"{space}{name} {self.pick('+=', '-=')} {term}", self.use(name, space)]
        if kind == "guarded":  # right only if what the conditions leave is right, to the last number
            (name, first), more = self.edge(), [self.edge()[1] for _ in range(2) if self.chance(0.3)]
            lines = [f"{space}if {self.pick(' and ', ' or ').join([first, *more])}:"]
            step = self.pick("1", "-1", "2")
            if name.startswith("s.") and self.chance(0.6):
                return [*lines, f"{space}    {name} += {step}"]
            if name == "x[1]":
                return [*lines, f"{space}    s.w[0] = exact_square({name} + {step}) * 4"]
            return [*lines, f"{space}    s.a[{name} + {step}] = 1"]
        if kind == "element":
            value = self.whole(2)
            return [
                space
                + self.pick(
                    f"s.a[{self.position(4)}] = clip({value}, -134217728, 134217727)",
                    f"s.a[{self.position(4)}] = {value}",
                    f"s.w[{self.position(4)}] {self.pick('=', '+=', '-=')} {self.word(2)}",
                    f"s.v[{self.position(4)}, {self.position(3)}] = clip({value}, -8000, 8000)",
                    f"s.closest[{self.position(4)}] = clip({value}, 0, 3)",
                    f"s.small[0] = clip({value}, -128, 127)",
                    f"s.n[0] = clip({value}, 0, 4)",
                )
            ]
        if kind == "if":
            lines = [f"{space}if {self.condition(1)}:", *self.block(depth - 1, indent + 1)]
            return [*lines, f"{space}else:", *self.block(depth - 1, indent + 1)] if self.chance(0.5) else lines
        self.fresh += 1
        name = f"i{self.fresh}"
        around = [loop for loop, last in self.loops if last < 4]
        bounds = self.pick(
            "range(3)",
            "range(4)",
            "range(s.n[0])",
            "range(3, -1, -1)",
            f"range({self.pick('1', *around)}, 4)",
            "range(0, 4, 2)",
            "range(count - 1, -1, -1)",
            "range(count, 4)",
            "range(1, count)",
        )
        if "s.n" in bounds:  # the bound must not change
            bounds = "range(count)" if self.chance(0.5) else "range(4)"
        self.loops.append((name, 2 if bounds == "range(3)" else 3))
        lines = [f"{space}for {name} in {bounds}:", *self.block(depth - 1, indent + 1)]
        self.loops.pop()
        return lines

    def use(self, name: str, space: str) -> str:
        """What nobody reads would be left out."""
        if self.names[name] == "Word":
            return f"{space}s.w[3] += {name}"
        return f"{space}s.a[3] = clip({name}, -100000000, 100000000)"

    def body(self) -> str:
        self.loops: list[tuple[str, int]] = []
        lines = ["count = s.n[0]", "s.a[0] = count", "total = 0"]
        self.names = {"total": "Index"}
        for _ in range(self.random.randint(2, 5)):
            lines += self.statement(2, 0)
        return "\n".join([*lines, f"return {self.whole(2)}"])


class Watched(int):
    """An integer whose sums, differences and products must fit in int32."""

    def _of(self, value: Any) -> Any:
        if not -INDEX_MAX - 1 <= value <= INDEX_MAX:
            raise OverflowError(f"{value} does not fit in int32")
        return Watched(value)

    def __add__(self, other: Any) -> Any:
        return self._of(int(self) + int(other))

    def __sub__(self, other: Any) -> Any:
        return self._of(int(self) - int(other))

    def __rsub__(self, other: Any) -> Any:
        return self._of(int(other) - int(self))

    def __mul__(self, other: Any) -> Any:
        return self._of(int(self) * int(other))

    def __neg__(self) -> Any:
        return self._of(-int(self))

    def __rshift__(self, other: Any) -> Any:
        return Watched(int(self) >> int(other))

    __radd__, __rmul__ = __add__, __mul__


class WatchedArray(interpreter.Checked):
    """An array of such integers."""

    __slots__ = ()

    def _position(self, key: Any) -> tuple[int, ...]:
        return super()._position(tuple(int(k) for k in (key if isinstance(key, tuple) else (key,))))

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        if isinstance(value, interpreter.Checked):
            return WatchedArray(value.array)
        return Watched(value) if type(value) is int else value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, int(value) if isinstance(value, Watched) else value)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = intrinsics._whole
    monkeypatch.setattr(interpreter, "Checked", WatchedArray)
    monkeypatch.setattr(intrinsics, "_whole", lambda value: Watched(whole(int(value))))
    interpreter._bound.cache_clear()
    interpreter.bind.cache_clear()


def run(case: Case, memory: Memory, x: np.ndarray, y: int) -> int:
    return int(interpreter.bind(case.kernel, INT16)(memory.view(Whole), case.config, x, Watched(y)))


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("lanes", [ranges.LANES, 3], ids=["side by side", "by the number of turns"])
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 60))])
def test_what_is_proved_is_true(
    part: int, lanes: int, tmp_path: Path, watched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random programs: no number leaves its type, no result what was found, no field what it declares."""
    monkeypatch.setattr(ranges, "LANES", lanes)
    proved = 0
    for seed in range(part * 60, part * 60 + 60):
        case = Case(tmp_path, Maker(seed).body())
        try:
            least, most = case.prove()
        except DialectError as error:
            assert " here; " in str(error), f"{error}\n{case.text}"
            continue
        proved += 1
        rng = np.random.default_rng(seed)
        for _ in range(12):
            memory = case.random_memory(rng)
            try:
                for _ in range(3):
                    x, y = (
                        ends_often(rng, -32768, 32767, 3).astype(np.int16),
                        int(ends_often(rng, -(2**31), INDEX_MAX, ())),
                    )
                    assert least <= run(case, memory, x, y) <= most
            except (OverflowError, IndexError, AssertionError) as error:
                raise AssertionError(f"seed {seed}: {error}\n{case.text[case.text.index('def run') :]}") from None
            for name, given in Whole.ranges.items():
                low, high = (e.value(CAPACITIES) if hasattr(e, "value") else e for e in (given.least, given.most))
                assert (memory.field(name) >= low).all() and (memory.field(name) <= high).all()
    assert proved >= 10


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    "seed", [153, 322, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1000, 1100))]
)
def test_integers_mean_the_same_everywhere(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each engine and in C: the whole memory and the results, of a random program that was proved."""
    monkeypatch.setattr(jitted, "cache_folder", lambda kind, digest: None)
    case = Case(tmp_path, Maker(seed).body())
    try:
        case.prove()
    except DialectError:
        if seed < 1000:
            raise
        return
    # a made-up program may compare what the compiler knows already
    monkeypatch.setattr(compilers, "STRICT", (*compilers.STRICT, "-Wno-type-limits"))
    engines = executors([case.kernel], INT16, case.config)
    compiled = [Compiled(tmp_path, [case.kernel], INT16, case.config, level) for level in ("-O0", "-O3")]
    rng = np.random.default_rng(seed)
    for _ in range(20):
        first = case.random_memory(rng, compiled[0].drop)
        x, y = ends_often(rng, -32768, 32767, 3).astype(np.int16), int(ends_often(rng, -(2**31), INDEX_MAX, ()))
        found = []
        for run_in in [*engines.values(), *compiled]:
            memory = Memory([Whole], INT16, CAPACITIES, compiled[0].drop)
            memory.copy_from(first)
            if isinstance(run_in, Compiled):
                result = run_in.call("run", memory, x, y)
            else:
                result = run_in(memory).call(case.kernel, x, y)
            found.append((result, bytes(memory.bytes)))
        assert len(set(found)) == 1, case.text


# ------------------------------------------------------------------------------------------------ turns of loops


def turns_of(tmp_path: Path, body: str) -> tuple[int, dict[int, int]]:
    """What a body returns in plain Python, and the most turns of its loops: line within the body -> turns in one call."""
    case = Case(tmp_path, body)
    functions = specialise(checked_functions((case.kernel,)), ["run"], {}, INT16, ()).functions
    turns = most_turns(functions, ["run"], case.config, CAPACITIES, INT16)
    loops = [n for n in walk(functions["run"].body) if isinstance(n, For)]
    assert all(id(n) in turns.within[id(n)] for n in loops), "of each loop somebody knows, if only that it never turns"
    first = case.text[: case.text.index("def run")].count("\n") + 1
    namespace: dict[str, Any] = {}
    exec("def run():\n" + "".join(f"    {line}\n" for line in body.splitlines()), namespace)
    return namespace["run"](), {n.line - first: turns.in_all["run"].get(id(n), 0) for n in loops}


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(8, 200))])
def test_loops_turn_at_most_as_often_as_the_intervals_say(seed: int, tmp_path: Path) -> None:
    """Loops in loops, with ends and steps of all kinds: counted by Python, and never above the proof."""
    rng = np.random.default_rng(seed)

    def end(outer: list[str]) -> str:
        name = str(rng.choice(outer)) if outer and rng.random() < 0.6 else ""
        number = int(rng.integers(-3, 8))
        return f"{name} + {number}" if name else str(number)

    lines, outer = ["t = 0"], list[str]()
    for depth in range(int(rng.integers(1, 4))):
        step = int(rng.choice([1, 1, 2, 3, -1, -2, -3]))
        ends = end(outer), end(outer)
        lines.append("    " * depth + f"for v{depth} in range({ends[0]}, {ends[1]}, {step}):")
        outer.append(f"v{depth}")
    lines += ["    " * len(outer) + "t += 1", "return t"]
    body = "\n".join(lines)
    counted, turns = turns_of(tmp_path, body)
    innermost = turns[max(turns)] if turns else 0
    assert counted <= innermost, f"{body}\n{turns}"
    low, high = Case(tmp_path, body).prove()
    assert low <= counted <= high, body


def test_loops_that_never_turn_are_known(tmp_path: Path) -> None:
    """Their machine code may be there: a bound of it needs the limit, which is 0."""
    body = "t = 0\nfor i in range(1):\n    for j in range(i):\n        for k in range(3):\n            t += 1\n"
    case = Case(tmp_path, body + "if s.n[0] > 4:\n    for m in range(9):\n        t += 1\nreturn t")
    functions = specialise(checked_functions((case.kernel,)), ["run"], {}, INT16, ()).functions
    turns = most_turns(functions, ["run"], case.config, CAPACITIES, INT16)
    loops = {n.variable: id(n) for n in walk(functions["run"].body) if isinstance(n, For)}
    assert {name: turns.within[loop][loop] for name, loop in loops.items()} == {
        "i": (1,),
        "j": (0,),
        "k": (0,),
        "m": (0,),
    }


def test_from_an_unknown_start_a_step_leaves_values_out(tmp_path: Path) -> None:
    """From 0, 1, 2 or 3 on, every second one: 0 + 2 + 4 + 6 and 1 + 3 + 5 + 7 are the most; so are five turns down to -1."""
    body = "r = s.closest[0]\nt = 0\nfor i in range(r, 8, 2):\n    for j in range(i):\n        t += 1\n"
    case = Case(tmp_path, body + "for k in range(r + 5, -1, -2):\n    t += 1\nreturn t")
    functions = specialise(checked_functions((case.kernel,)), ["run"], {}, INT16, ()).functions
    turns = most_turns(functions, ["run"], case.config, CAPACITIES, INT16).in_all["run"]
    found = {n.variable: turns[id(n)] for n in walk(functions["run"].body) if isinstance(n, For)}
    assert found == {"i": 4, "j": 16, "k": 5}
    low, high = case.prove()
    assert low <= 15 and high >= 20


def test_what_follows_an_early_return_is_its_other_way(tmp_path: Path) -> None:
    """A callee's loop turns on one way or on the other: 4 times before a return, 4 + 4 times where there is none."""
    text = '''"""Made up."""

from pykernel.dialect import kernel
from tests.support.dialect_cases import Whole


@kernel
def work(s: Whole) -> None:
    for i in range(4):
        s.small[0] = 0


@kernel
def run(s: Whole) -> None:
    if s.n[0] > 4:
        work(s)
        return
    work(s)
    work(s)
'''
    functions = specialise(checked_functions((load(tmp_path, text).run,)), ["run"], {}, INT16, ()).functions
    (loop,) = (n for n in walk(functions["work"].body) if isinstance(n, For))
    assert most_turns(functions, ["run"], None, CAPACITIES, INT16).in_all["run"] == {id(loop): 8}


class Nests:
    """Random loops in a loop, with ends that depend on two arguments of the kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def ends(self, names: list[str]) -> str:
        down = self.random.random() < 0.2
        step = self.random.choice([1, 1, 2, 3]) * (-1 if down else 1)
        low = self.random.choice(["0", "0", "r", "r + 1", *names])
        high = self.random.choice(["r", "n", "n", "3", *(f"{name} - 1" for name in names), *names])
        return f"range({high}, {low}, {step})" if down else f"range({low}, {high}, {step})"

    def loop(self, names: list[str], indent: int) -> list[str]:
        space, name = "    " * indent, f"i{self.loops}"
        self.loops += 1
        lines = [f"{space}for {name} in {self.ends(names)}:"]
        if indent == 3 or (indent == 2 and self.random.random() < 0.7):
            return [*lines, f"{space}    s.small[0] = 1"]
        names = [*names, name]
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.4:
                other = self.random.choice(["n", "r", "n - r"])
                lines += [
                    f"{space}    if {name} + 1 < {other}:",
                    *("    " + line for line in self.loop(names, indent + 1)),
                ]
                lines += [f"{space}    else:", *("    " + line for line in self.loop(names, indent + 1))]
            else:
                lines += self.loop(names, indent + 1)
        return lines


@pytest.mark.parametrize(
    ("pieces", "cases"),
    [(2**11, 2**7), (9, 2**7), (1, 2**7), (2**11, 2)],
    ids=["all", "ranges", "one range", "few cases"],
)
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 20))])
def test_loops_inside_turn_together_as_said(
    part: int, pieces: int, cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted for all values of the arguments: never above all cases, and equal to them where nothing is left out."""
    monkeypatch.setattr(ranges, "PIECES", pieces)
    monkeypatch.setattr(ranges, "CASES", cases)
    capacities = {"N_MAX": 8, "DIM": 3}
    exact = 0
    for seed in range(part * 12, part * 12 + 12):
        body = "\n".join(Nests(seed).loop([], 1))
        text = f'''"""Made up."""

from pykernel.dialect import Index, kernel
from tests.support.dialect_cases import Whole


@kernel
def work(s: Whole, r: Index, n: Index) -> None:
{body}


@kernel
def run(s: Whole) -> None:
    work(s, s.closest[0], s.n[0])
'''
        functions = specialise(checked_functions((load(tmp_path, text).run,)), ["run"], {}, INT16, ()).functions
        turns = most_turns(functions, ["run"], None, capacities, INT16)
        loops = {n.variable: id(n) for n in walk(functions["work"].body) if isinstance(n, For)}
        said = set(zip(*(turns.within[loops["i0"]][loop] for loop in loops.values()), strict=True))

        counted = dict.fromkeys(loops, 0)

        def counting(name: str, values: range, counted: dict[str, int] = counted) -> range:
            counted[name] += len(values)
            return values

        names: dict[str, Any] = {"turning": counting, "s": SimpleNamespace(small=[0])}
        watched = re.sub("for (.*) in (.*):", r"for \1 in turning('\1', \2):", body)
        exec(f"def work(r, n):\n{watched}\n", names)
        found = set()
        for r, n in itertools.product(range(8), range(9)):
            counted.update(dict.fromkeys(loops, 0))
            names["work"](r, n)
            found.add(tuple(counted.values()))
        for run_ in found:
            assert any(all(a <= b for a, b in zip(run_, case, strict=True)) for case in said), f"{run_} {said}\n{body}"
        most = tuple(map(max, zip(*found, strict=True)))
        in_all = tuple(turns.in_all["run"].get(loop, 0) for loop in loops.values())
        assert all(a <= b for a, b in zip(most, in_all, strict=True)), body
        if pieces == 2**11 and cases == 2**7 and all(re.search(rf"in range.*\b{name}\b", body) for name in "rn"):
            exact += 1
            assert said <= found and in_all == most, f"{said - found}\n{body}"
    assert exact >= 4 or (pieces, cases) != (2**11, 2**7)


def test_calls_in_positions_of_real_elements_are_counted(tmp_path: Path) -> None:
    text = '''"""Made up."""
from pykernel.dialect import DIM, Index, Real, Struct, kernel, real


class Numbers(Struct):
    """Numbers."""

    a: Real[DIM]  # a


@kernel
def spin(k: Index) -> Index:
    t = 0
    for j in range(5):
        t += k
    return 0 if t > 9 else 1


@kernel
def run(s: Numbers, x: Real[DIM]) -> Index:
    s.a[spin(0)] = real(1)
    s.a[spin(1)] = x[spin(2)]
    s.a[spin(3)] += x[0]
    return spin(4)
'''
    functions = specialise(checked_functions((load(tmp_path, text).run,)), ["run"], {}, FLOAT32, ()).functions
    assert list(most_turns(functions, ["run"], None, CAPACITIES, FLOAT32).in_all["run"].values()) == [25]
