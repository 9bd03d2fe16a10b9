"""The proof's rules at their edges: what each condition, loop and operator leaves, against all numbers one by one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykernel.dialect import INDEX_MAX
from pykernel.language import ranges
from pykernel.language.ir import DialectError
from tests.gen.test_ranges import Case

NAMES = {"k": "s.n[0]", "m": "s.closest[1]"}
"""Two locals, from 0 to 4 and from 0 to 3."""
BEGIN = "k = s.n[0]\nm = s.closest[1]\nu = s.w[0] & 7\n"
OPS = ("<", "<=", ">", ">=", "==", "!=")


def all_numbers(text: str) -> Iterator[dict[str, Any]]:
    """Every choice of the numbers that a text names."""
    for k, m, u in itertools.product(range(5), range(4), range(8) if "u" in text else (0,)):
        yield {"k": k, "m": m, "u": u, "s": SimpleNamespace(n=[k], closest=[0, m]), "word": int}


def condition_holds(condition: str, shown: str, truth: bool) -> set[int]:
    """What an expression is where a condition holds, or does not."""
    holds, value = (compile(text, "<case>", "eval") for text in (condition, shown))
    return {eval(value, names) for names in all_numbers(condition) if bool(eval(holds, names)) is truth}


def check_condition(folder: Path, condition: str, name: str) -> None:
    """On both ways of an ``if``, and in a choice: the expression's least and largest number, or that nobody gets there."""
    shown = "index(u)" if name == "u" else name
    for truth in (True, False):
        found = condition_holds(condition, name, truth) or {0}
        reached = bool(condition_holds(condition, name, truth))
        # the other way returns an end of what is right: the other end shows
        for end, form in zip((min(found), max(found)), FORMS[:: 1 if truth else -1], strict=True):
            here = shown if reached else "-9"
            body = form.format(condition, *((here, end) if truth else (end, here)))
            assert Case(folder, BEGIN + body).prove() == (min(found), max(found)), body


FORMS = ("if not ({0}):\n    return {2}\nreturn {1}", "return {1} if {0} else {2}")


@pytest.mark.in_turn
@pytest.mark.parametrize("op", OPS)
def test_a_comparison_with_a_number(op: str, tmp_path: Path) -> None:
    """On either side of it; of a local, and of an element."""
    for number in (-1, 0, 1, 3, 4, 5):
        check_condition(tmp_path, f"k {op} {number}", "k")
        check_condition(tmp_path, f"{number} {op} s.n[0]", "s.n[0]")


@pytest.mark.in_turn
@pytest.mark.parametrize("op", OPS)
def test_a_comparison_of_two(op: str, tmp_path: Path) -> None:
    for left, right in (("k", "m"), ("m", "k"), ("s.n[0]", "m"), ("m", "s.n[0]"), ("k", "m + 4"), ("m - 4", "k")):
        for shown in {left, right} & {*NAMES, *NAMES.values()}:
            check_condition(tmp_path, f"{left} {op} {right}", shown)


@pytest.mark.in_turn
@pytest.mark.parametrize("op", OPS)
def test_a_comparison_of_words(op: str, tmp_path: Path) -> None:
    for number in (0, 1, 7, 8):
        check_condition(tmp_path, f"u {op} {number}", "u")
        check_condition(tmp_path, f"word({number}) {op} u", "u")


SIMPLE = [f"{name} {op} {number}" for name in NAMES for op in OPS[:4] for number in range(-1, 6)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 30))])
def test_and_or_not(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    for _ in range(15):
        a, b = chosen.sample(SIMPLE, 2)
        a, b = (f"not ({c})" if chosen.random() < 0.2 else c for c in (a, b))
        condition = f"{a} {chosen.choice(['and', 'or'])} {b}"
        check_condition(tmp_path, condition, chosen.choice([*NAMES]))


@pytest.mark.in_turn
@pytest.mark.parametrize("op", OPS)
def test_a_comparison_as_a_value(op: str, tmp_path: Path) -> None:
    """1 only where the comparison can hold, 0 only where it can fail."""
    for number in (-1, 0, 1, 3, 4, 5):
        truths = {int(eval(f"k {op} {number}", {}, {"k": k})) for k in range(5)}
        for line in (
            f"flag = k {op} {number}",
            f"flag = k {op} {number} or k {op} {number}",
            f"flag = m < 9 and k {op} {number}",
        ):
            body = f"{BEGIN}{line}\nif flag:\n    return 1\nreturn 0"
            assert Case(tmp_path, body).prove() == (min(truths), max(truths)), body


@pytest.mark.parametrize("op", OPS)
def test_comparisons_at_the_ends_of_int32(op: str, tmp_path: Path) -> None:
    least, ends = -INDEX_MAX - 1, (-INDEX_MAX, INDEX_MAX - 1, INDEX_MAX)
    values = [y for y in {least, *(end + more for end in ends for more in (-1, 0, 1))} if least <= y <= INDEX_MAX]
    for number in ends:
        for truth in (True, False):
            found = [y for y in values if bool(eval(f"y {op} {number}", {}, {"y": y})) is truth]
            text = f"y {op} {number}" if truth else f"not (y {op} {number})"
            for end in (min(found, default=0), max(found, default=0)):
                other = f"-{INDEX_MAX} - 1" if end == least else str(end)  # no literal is below
                expected = (min(found), max(found)) if found else (0, 0)
                assert Case(tmp_path, f"if {text}:\n    return y\nreturn {other}").prove() == expected, text


# ------------------------------------------------------------------------------------------------------------ loops


ENDS = [
    ("0", "k"),
    ("m", "4"),
    ("m", "k"),
    ("m", "k + 1"),
    ("k", "m"),
    ("1", "3"),
    ("3", "3"),
    ("k - 1", "k"),
    ("4", "1"),
]


@pytest.mark.in_turn
@pytest.mark.parametrize("step", [1, -1, 2, -2, 3])
def test_loops(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between which numbers the variable is, how many turns there are; with a break, too; bounded by their number, too."""
    for start, stop in ENDS:
        if step < 0:
            start, stop = stop, start
        text = f"range({start}, {stop}, {step})" if step != 1 else f"range({start}, {stop})"
        every = [list(eval(text, {}, names)) for names in all_numbers("")]
        turned = [i for turns in every for i in turns]
        for end in (min(turned, default=0), max(turned, default=0)):
            body = f"{BEGIN}last = {end}\nfor i in {text}:\n    last = i\nreturn last"
            assert Case(tmp_path, body).prove() == (min(turned, default=0), max(turned, default=0)), body
        body = f"{BEGIN}turns = 0\nfor i in {text}:\n    turns += 1\nreturn turns"
        found = Case(tmp_path, body).prove()
        counts = {len(turns) for turns in every}
        begins = {eval(start, {}, names) for names in all_numbers("")}
        if (abs(step) == 1 or len(begins) == 1) and not ("k" in start and "k" in stop):
            assert found == (min(counts), max(counts)), body
        else:  # from which number it steps is not known, nor that both ends move together
            assert found[0] <= min(counts) and found[1] >= max(counts), body
        with monkeypatch.context() as few:
            few.setattr(ranges, "LANES", 3)
            found = Case(tmp_path, body).prove()
            assert found[0] <= min(counts) and found[1] >= max(counts), body
        body = f"{BEGIN}turns = 0\nfor i in {text}:\n    if i == 2:\n        break\n    turns += 1\nreturn turns"
        counts = {turns.index(2) if 2 in turns else len(turns) for turns in every}
        found = Case(tmp_path, body).prove()
        assert found[0] <= min(counts) and found[1] >= max(counts), body


# -------------------------------------------------------------------------------------------------------- operators


LAST = str(INDEX_MAX)
PROVED = {
    f"if y < {LAST}:\n    return y + 1\nreturn 0": (-INDEX_MAX, INDEX_MAX),
    f"if y > -{LAST}:\n    return y - 2\nreturn 0": (-INDEX_MAX - 1, INDEX_MAX - 2),
    f"if y >= -{LAST}:\n    return -y\nreturn 0": (-INDEX_MAX, INDEX_MAX),
    "return m * 715827882": (0, 2147483646),
    "return (m - 3) * 715827882": (-2147483646, 0),
    "return (k - 2) * (m - 1)": (-4, 4),
    "return k * (m - 3)": (-12, 0),
    "return (m - 3) * k": (-12, 0),
    "return (k - 4) * (m - 3)": (0, 12),
    "return floor_shift(k + 8, m)": (1, 12),
    "return index((word(k) + 60) >> m)": (7, 64),
    "flag = not k > 4\nreturn 1 if flag else 0": (1, 1),
    "flag = not k >= 0\nreturn 1 if flag else 0": (0, 0),
    "return k - m": (-3, 4),
    "return k + m": (0, 7),
    "return index((word(k) + 3) & 8)": (0, 7),
    "return index((word(k) + 4) & 8)": (0, 8),
    "return index((word(k) + 3) & 7)": (3, 7),
    "return index((word(k) + 3) & 3)": (0, 3),
    "return (k if k > 0 else 1) // 2": (0, 2),
    "return (k if k > 0 else 1) % 5": (1, 4),
    "return (k if k > 0 else 1) % 4": (0, 3),
    "return (k if k > 0 else 1) % 9": (1, 4),
    "return quotient(k + 7, m + 1)": (1, 11),
    "return floor_shift(y, m * 10 + 1)": (-(2**30), 2**30 - 1),
    "return floor_shift(-8, k - 1) if k > 0 else -8": (-8, -1),
    "return multiply_high(k - 2, 65535)": (-2, 1),
    "return index(exact_square(m - 1))": (0, 4),
    "return index(exact_square(65532 + m) >> 16)": (65528, 65534),
    "return index(exact_square(65533 + m) >> 16)": (0, 65535),
    "return index(exact_square(-65535 - k) >> 16)": (0, 65535),
    "return index(word(k) & 7)": (0, 4),
    "return index(word(k) & 3)": (0, 3),
    "return index(word(k) & 6)": (0, 4),
    "return index(word(k - 1) >> 31)": (0, 1),
    "return index(word(k) >> 31)": (0, 0),
    "return index((u + 2147483647 + 2147483641) >> 3)": (536870911, 536870911),
    "return index((u + 2147483647 + 2147483642) >> 31)": (0, 1),
    "return index((u - 1) >> 31)": (0, 1),
    "return index(((u + 1) - 1) >> 31)": (0, 0),
    "return index((u * 613566756) >> 2)": (0, 1073741823),
    "return index((u * 613566757) >> 31)": (0, 1),
    "return index((u << 29) >> 29)": (0, 7),
    "return index((u << 30) >> 30)": (0, 3),
    "return as_signed(u + 2147483640)": (2147483640, 2147483647),
    "return as_signed(u + 2147483641)": (-(2**31), INDEX_MAX),
    "return as_signed(u + 1 + 2147483647)": (-(2**31), -(2**31) + 7),
    "return index(u + 2147483640)": (2147483640, 2147483647),
    "return s.a[k - 1] if k >= 1 else 0": (-134217728, 134217727),
    "return c.weights[k] if k < 4 else 0": (-30000, 30000),
    "return c.weights[m] if m > 1 else 5": (1, 200),
    "if k < 4:\n    s.n[0] = k + 1\nreturn s.n[0]": (0, 4),
    "if m > 0:\n    s.closest[1] = m - 1\nreturn s.closest[1]": (0, 3),
    "s.small[0] = 124 + m\nreturn s.small[0]": (124, 127),
    "s.small[0] = m - 128\nreturn s.small[0]": (-128, -125),
}
REFUSED = {
    f"if y <= {LAST}:\n    return y + 1\nreturn 0": "this sum is from -2147483647 to 2147483648",
    f"if y >= -{LAST}:\n    return y - 2\nreturn 0": "this difference is from -2147483649 to",
    "return m * 715827883": "this product is from 0 to 2147483649",
    "return (m - 3) * 715827883": "this product is from -2147483649 to 0",
    "return quotient(k, m)": "the divisor is from 0 to 3",
    "return quotient(k - 1, 2)": "the dividend is from -1 to 3",
    "return floor_shift(y, m * 10 + 2)": "this shift is from 2 to 32",
    "return floor_shift(y, m - 1)": "this shift is from -1 to 2",
    "return multiply_high(k, 65533 + m)": "the factor is from 65533 to 65536",
    "return multiply_high(k, m - 1)": "the factor is from -1 to 2",
    "return index(u + 2147483641)": "this Word is from 2147483641 to 2147483648",
    "return index(u >> (29 + m))": "this shift is from 29 to 32",
    "return s.a[k - 1] if k >= 0 else 0": "this position is from -1 to 3",
    "return c.weights[k] if k <= 4 else 0": "this position is from 0 to 4",
    "if k <= 4:\n    s.n[0] = k + 1\nreturn s.n[0]": "an element of n is from 1 to 5",
    "if m >= 0:\n    s.closest[1] = m - 1\nreturn s.closest[1]": "an element of closest is from -1 to 2",
    "s.small[0] = 125 + m\nreturn s.small[0]": "an element of small is from 125 to 128",
    "s.small[0] = m - 129\nreturn s.small[0]": "an element of small is from -129 to -126",
}


FORGOTTEN = (
    "p = m\nif s.closest[p] < 1:\n    p = 0\n    return s.closest[p]\nreturn 0",
    "s.closest[0] = 0\ns.closest[m] = 3\nreturn s.closest[0]",
    "s.closest[0] = 0\nmark(s, m)\nreturn s.closest[0]",
    "t = 0\ns.closest[0] = 0\nfor i in range(2):\n    t = s.closest[0]\n    s.closest[0] = 3\nreturn t",
    "t = 0\ns.closest[0] = 0\nfor i in range(2):\n    t = s.closest[0]\n    mark(s, 0)\nreturn t",
    "s.closest[0] = 0\nfor i in range(k):\n    s.closest[0] = 3\nreturn s.closest[0]",
    "t = 0\np = 0\ns.closest[p] = 0\nfor i in range(k):\n    t = s.closest[p]\n    p = m\nreturn t",
)


@pytest.mark.parametrize("body", FORGOTTEN)
def test_what_was_known_of_an_element_is_forgotten(body: str, tmp_path: Path) -> None:
    """When it, or one that may be the same, is written, or what its position says is another number."""
    assert Case(tmp_path, BEGIN + body).prove() == (0, 3)


@pytest.mark.parametrize("body", PROVED)
def test_what_is_proved_at_an_edge(body: str, tmp_path: Path) -> None:
    assert Case(tmp_path, BEGIN + body).prove() == PROVED[body]


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_refused_beyond_the_edge(body: str, tmp_path: Path) -> None:
    with pytest.raises(DialectError, match=REFUSED[body]):
        Case(tmp_path, BEGIN + body).prove()
