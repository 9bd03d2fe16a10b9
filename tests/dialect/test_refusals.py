"""Each refusal of the dialect's checker: where it points, and what it says to write instead."""

from __future__ import annotations

import ast
import functools
import re
import tempfile
import textwrap
import traceback
from pathlib import Path
from types import ModuleType

import pytest

from pykernel.dialect import FLOAT32
from pykernel.language import check_types, effects, expressions, print_c, read
from pykernel.language.instead import INSTEAD
from pykernel.language.ir import DialectError
from tests.support import ROOT
from tests.support.dialect_cases import Settings, c_source, load

HEAD = '''"""Made up."""

import math
from enum import IntEnum

from pykernel.dialect import *
from pykernel.algorithms.extents import N_MAX
from pykernel.dialect import DIM, Bool, Config, Constant, Index, Real, Struct, absolute, kernel, word
from pykernel.dialect import kernel, real, sqrt, truncate
from tests.support.dialect_cases import Box, Kind, Settings

TABLE = Constant((1.0, 2.0, 3.0))
UNEQUAL = Constant(float32=(1.0, 2.0), float64=(1.0, 2.0, 3.0))
WIDE = Constant(1e300)
WHOLE = Constant(3, scalar=Index)
SQUARE = Constant(((1.0, 2.0), (3.0, 4.0)))
lower = Constant(1.0)
HALF = 0.5
HUGE = 2**31
NOTES = "text"


class Both(Model):
    parts = Box, Settings


class Alone(Model):
    parts = (Box,)


@kernel
def both(m: Both) -> Real:
    return m.total[0]


@kernel
def bump(s: Box) -> Real:
    s.total[0] += real(1)
    return s.total[0]


@kernel
def grow(s: Box) -> None:
    s.n[0] = s.n[0] + 1


@kernel
def shift(counts: Index[...]) -> None:
    counts[0] = 1


@kernel
def twice(y: Real) -> Real:
    return y + y


@kernel
def first(x: Real[DIM]) -> Real:
    return x[0]


def helper(y):
    return y

'''
SIGNATURE = "def f(s: Box, c: Settings, x: Real[N_MAX], k: Index, y: Real) -> Real:"


FOLDER = tempfile.TemporaryDirectory(prefix="pykernel-refusals-")


def module_of(snippet: str) -> tuple[str, int]:
    """A module around a snippet, and the line that holds a mark `!!` (or the snippet's first line)."""
    snippet = textwrap.dedent(snippet).strip("\n")
    if not re.search(r"^( *def f\(|f = )", snippet, re.MULTILINE):
        snippet = f"@kernel\n{SIGNATURE}\n" + textwrap.indent(snippet, "    ") + "\n    return y"
    source = HEAD + "\n" + snippet + "\n"
    lines = source.splitlines()
    marked = [i for i, line in enumerate(lines, 1) if line.endswith("!!")]
    line = marked[0] if marked else HEAD.count("\n") + 4
    return source.replace("  !!", ""), line


@functools.cache
def loaded(source: str) -> ModuleType:
    return load(Path(tempfile.mkdtemp(dir=FOLDER.name)), source)


def refusal(snippet: str) -> tuple[DialectError, int]:
    source, line = module_of(snippet)
    module = loaded(source)
    config = Settings.of(FLOAT32, {"kind": 0, "flag": False, "p": 0.5, "q": 3})
    with pytest.raises(DialectError) as caught:
        c_source([module.f], FLOAT32, config)
    assert str(caught.value).startswith(f"{module.__file__}:{caught.value.line}: ")
    return caught.value, line


# ------------------------------------------------------------------------ constructs that have no place at all

CONSTRUCTS = {
    ast.Pow: "y = y ** y",
    ast.LShift: "k = k << 1",
    ast.RShift: "k = k >> 1",
    ast.BitAnd: "k = k & 1",
    ast.BitOr: "k = k | 1",
    ast.BitXor: "k = k ^ 1",
    ast.MatMult: "y = x @ x",
    ast.While: "while k > 0:\n    k -= 1",
    ast.With: "with s:\n    k -= 1",
    ast.Try: "try:\n    k -= 1\nfinally:\n    k = 0",
    ast.Raise: "raise ValueError",
    ast.Assert: "assert k > 0",
    ast.Delete: "del k",
    ast.FunctionDef: "def inner():\n    k = 0",
    ast.AsyncFunctionDef: "async def inner():\n    k = 0",
    ast.ClassDef: "class Inner:\n    k = 0",
    ast.Lambda: "y = (lambda: y)()\nz = lambda: y",
    ast.ListComp: "y = [v for v in x]",
    ast.SetComp: "y = {v for v in x}",
    ast.DictComp: "y = {v: v for v in x}",
    ast.GeneratorExp: "y = (v for v in x)",
    ast.List: "y = [y]",
    ast.Tuple: "z, t = y, y",
    ast.Dict: "y = {}",
    ast.Set: "y = {y}",
    ast.JoinedStr: 'y = f"{y}"',
    ast.Import: "import os",
    ast.ImportFrom: "from os import path",
    ast.Global: "global k1",
    ast.Nonlocal: "@kernel\ndef outer() -> Real:\n    k = 0",
    ast.AnnAssign: "z: float = y",
    ast.NamedExpr: "y = (z := y)",
    ast.Slice: "y = x[0:2]",
    ast.Starred: "y = twice(*x)",
    ast.Pass: "pass",
    ast.Match: "match k:\n    case 0:\n        y = y",
    ast.Yield: "yield y",
    ast.YieldFrom: "z = yield from x",
}
# these cannot stand where the others do
CONSTRUCTS[ast.Lambda] = "z = lambda: y"
CONSTRUCTS[ast.Nonlocal] = """
def outer():
    k = 0

    @kernel
    def f(y: Real) -> Real:
        nonlocal k  !!
        return y

    return f


f = outer()
"""


@pytest.mark.parametrize("construct", INSTEAD, ids=lambda construct: construct.__name__)
def test_constructs_outside_the_dialect(construct: type[ast.AST]) -> None:
    error, line = refusal(CONSTRUCTS[construct])
    assert INSTEAD[construct] in str(error)
    assert error.line == line


# ------------------------------------------------------------------------------------------ everything else

REFUSALS = [
    # the function
    ("@kernel\ndef f(y: Real = 1) -> Real:  !!\n    return y", "positional and have no defaults"),
    ("@kernel\ndef f(*y: Real) -> Real:  !!\n    return y", "positional and have no defaults"),
    ("@kernel\ndef f(y) -> Real:  !!\n    return y", "parameter y has no type; annotate it, e.g. y: Real"),
    ("@kernel\ndef f(y: float) -> Real:  !!\n    return y", "the types are Real, Index, Int, Word, Bool, arrays"),
    ("@kernel\ndef f(y: Bool[2]) -> Real:  !!\n    return real(0)", "arrays of numbers"),
    ("@kernel\ndef f(y: Real[N_MAX, DIM]) -> Real:  !!\n    return real(0)", "pass the struct that holds the array"),
    ("@kernel\ndef f(s: Box, w: Box) -> Real:  !!\n    return real(0)", "a second Box"),
    ("@kernel\ndef f(y: Real):  !!\n    return y", "the result has no type; annotate it"),
    ("@kernel\ndef f(y: Real) -> Real[2]:  !!\n    return y", "returns Real, Index, Int, Word, Bool or None"),
    ("@kernel\ndef f(y: Real) -> Real:\n    if y > y:  !!\n        return y", "end with a return"),
    ("f = kernel(lambda y: y)  !!", "define the kernel with def, in a file"),
    # names
    ("@kernel\ndef f(double: Real) -> Real:  !!\n    return double", "double has a meaning in C or C++"),
    ("Z = y", "Z could clash in C; names are lower case"),
    ("int32_t = y", "do not end in _t"),
    ("größe = y", "could clash in C"),
    ("unix = y", "unix has a meaning in C or C++; choose another name"),
    ("signed = y", "choose another name"),
    ("xor = y", "choose another name"),
    ("bump = y", "bump shadows a global"),
    ("len = y", "len shadows a global of this file or a built-in name of Python"),
    ("for bump in range(3):\n    y += y", "bump shadows"),
    (
        """
        class Bad(Struct):
            int: Real
        @kernel
        def f(s: Bad) -> Real:
            return s.int[0]  !!
        """,
        "int has a meaning in C",
    ),
    (
        """
        class Worse(Config):
            Gate: Real
        @kernel
        def f(c: Worse) -> Real:
            return c.Gate  !!
        """,
        "Gate could clash in C",
    ),
    # statements
    ("return y\ny = y  !!", "never reached"),
    ("for i in range(3):\n    break\n    y = y  !!", "never reached"),
    ("z = t = y", "assign to one name at a time"),
    ("z = x", "a view cannot be named"),
    ("z = s.grid[0]", "a view cannot be named"),
    ("z = grow(s)", "grow(s) has no value"),
    ("for i in range(3):\n    i = 0  !!", "i is the variable of a running loop"),
    ("for i in range(3):\n    i += 1  !!", "i cannot be changed here"),
    ("if k > 0:\n    z = k\nif k > 1:\n    z = y  !!", "z is Index elsewhere in this function and Real here"),
    ("y = k", "y is Real, but the value is Index; convert it"),
    ("y += k", "y is Real, but the value is Index; convert it with real()"),
    ("k //= 2", "//= is not in the dialect; write the assignment out"),
    ("k /= 2", "/= is not in the dialect; write the assignment out"),
    ("z = k > 0\nz += k > 1  !!", "arithmetic on truth values differs in C; use if"),
    ("y **= y", "** differs between libraries; multiply"),
    ("s.total = y", "a struct's scalar is written s.n[0]"),
    ("s.grid[0] = y", "only elements of fields and array parameters can be assigned to"),
    ("TABLE[0] = y", "only elements of fields and array parameters can be assigned to"),
    ("c.shifts[0] = y", "only elements of fields and array parameters can be assigned to; rows and tables cannot"),
    ("c.basis[0, k] += y", "only elements of fields and array parameters can be assigned to; rows and tables cannot"),
    ("c.shifts = y", "assign to a name or to an element"),
    ("z = c.shifts", "a view cannot be named"),
    ("z = c.basis[0]", "a view cannot be named"),
    ("s.total[0] = k", "the element is Real, but the value is Index"),
    ('y = y\n"text"  !!', "text in a body would be lost; write a comment"),
    ("y", "this does nothing; remove it"),
    ("real(3)", "this does nothing; remove it"),
    ("twice(y)", "the result of twice is lost; assign it"),
    # loops
    ("for i in range(3):\n    y = y\nelse:\n    y = y", "use a flag"),
    ("for i in x:\n    y = y", "all loops must be of the form `for i in range(…)`"),
    ("for i in range(1, 2, 3, 4):\n    y = y", "range takes one to three numbers"),
    ("for i, j in range(3):\n    y = y", "a loop has one variable"),
    ("for k in range(3):\n    y = y", "k already exists"),
    ("z = y\nfor z in range(3):  !!\n    y = y", "z already exists"),
    ("if k > 0:\n    z = k\nfor z in range(3):  !!\n    y = y", "use another name for the loop's variable"),
    ("for z in range(3):\n    y = y\nz = 3  !!", "z is a loop's variable elsewhere"),
    ("for i in range(y):\n    y = y", "range takes Index, but this is Real"),
    ("for i in range(0, 9, k):\n    y = y", "the step must be a literal number"),
    ("for i in range(0, 9, 0):\n    y = y", "not zero"),
    ("for i in range(0, 9, 3000000000):\n    y = y", "does not fit in int32"),
    ("for i in range(0, 2147483647, 2):\n    y = y", "beyond int32 before the loop ends"),
    ("for i in range(0, -2147483647, -2):\n    y = y", "beyond int32 before the loop ends"),
    ("for i in range(3):\n    y = y\nk = i  !!", "i does not have a value on every path to here"),
    ("return k", "the result is Index, but Real is declared"),
    ("return", "the result is None, but Real is declared"),
    ("@kernel\ndef f(s: Box) -> None:\n    return grow(s)  !!", "call it in a statement of its own"),
    # expressions
    ("if k:\n    y = y", "compare it, e.g. with != 0"),
    ("z = k and k > 0", "a condition is a truth value"),
    ("z = not k", "a condition is a truth value"),
    ("k = 2147483648", "2147483648 does not fit in int32"),
    ("y = y + 0.5", "0.5 has no precision (Numba would compute in float64); write real(0.5)"),
    ("k = None", "None is not in the dialect"),
    ("y = s", "s is a struct; use its fields"),
    ("if k > 0:\n    z = y\ny = z  !!", "z does not have a value on every path to here; assign it before the block"),
    ("for i in range(3):\n    if i > 0:\n        y += z  !!\n    z = y", "z is not defined"),
    ("k = HUGE", "HUGE = 2147483648 does not fit in int32"),
    ("y = HALF", "HALF has no precision; define it as Constant(0.5)"),
    ("y = unknown", "unknown is not defined"),
    ("y = NOTES", "NOTES is a str, which has no meaning in C"),
    ("y = lower", "constants are upper case"),
    ("y = WIDE", "WIDE is not a finite number or a table of finite numbers in float32"),
    ("y = SQUARE[0]", "SQUARE is not a finite number or a table"),
    ("y = c.r", "Settings has no field r"),
    ("y = s.r[0]", "Box has no field r"),
    ("@kernel\ndef f(m: Both) -> Real:\n    return m.r[0]  !!", "Both has no field r"),
    ("@kernel\ndef f(m: Both, s: Box) -> Real:  !!\n    return real(0)", "a second Box"),
    (
        "@kernel\ndef f(m: Alone) -> Real:\n    return both(m)  !!",
        "for the parameter m of both, pass this function's own Settings",
    ),
    ("k = Kind.TWO", "Kind has no member TWO"),
    ("y = math.pi", "math.pi is not in the dialect"),
    ("y = y.real", "attributes are fields of structs"),
    ("y = y[0]", "y is not an array"),
    ("y = x[y]", "a position is Index, but this is Real"),
    ("y = x[-1]", "negative positions count from the end in Python"),
    ("y = x[-k]", "use len(…) - 1"),
    ("y = s.grid[0][1]", "write both positions in one pair of brackets"),
    ("y = c.basis[0][1]", "write both positions in one pair of brackets"),
    ("k = len(c.basis[k])", "all rows have the same length, and len() is a constant in C; write [0] for the row"),
    ("y = c.shifts[0, 0]", "c.shifts has 1 dimension(s)"),
    ("y = s.total[k]", "this array has one element"),
    ("y = s.total[1]", "there is no position 1 in an array of length 1"),
    ("y = TABLE[3]", "there is no position 3 in an array of length 3; the last one is 2"),
    ("y = UNEQUAL[2]", "there is no position 2 in an array of length 2; the last one is 1"),
    ("y = x[0, 0]", "x has 1 dimension(s)"),
    ("y = ~y", "the only unary operators are `-` and `not`"),
    ("z = -(k > 0)", "unary - takes Real or Index, but this is Bool"),
    ("y = y + (k > 0)", "arithmetic and ordering need numbers, but this is Bool"),
    ("z = (k > 0) == (k > 1)", "arithmetic and ordering need numbers, but this is Bool"),
    ("y = y + k", "Real with Index: Numba and C promote them differently; convert one side with real() or truncate()"),
    ("z = y < k", "Real with Index"),
    (
        "z = word(k) < k",
        "Word with Index: Numba and C promote them differently; convert one side with word() or index()",
    ),
    ("z = word(k) >> 32", "a Word is shifted by an Index from 0 to 31, but this is 32"),
    ("z = word(k) << -1", "a Word is shifted by an Index from 0 to 31, but this is -1"),
    ("z = word(k) >> word(k)", "a Word is shifted by an Index from 0 to 31"),
    ("z = word(k) & k", "Word with Index"),
    ("z = word(k) // word(2)", "// needs Index, but this is Word"),
    ("z = -word(k)", "unary - takes Real or Index, but this is Word"),
    ("k = WHOLE", "WHOLE is a whole number; write WHOLE = 3"),
    ("k = k / 2", "use // for positions, real() for numbers"),
    ("y = y // y", "// needs Index, but this is Real; use truncate()"),
    ("k = k % 2", "the left side must be provably not negative"),
    ("z = k % 2\nk = 0", "the left side must be provably not negative"),  # k is a literal only later
    ("for i in range(-3, 3):\n    k = i % 3  !!", "rounds differently for negative numbers"),
    ("for i in range(k, 3):\n    k = i % 3  !!", "rounds differently for negative numbers"),
    ("for i in range(3, k, -1):\n    k = i // 3  !!", "rounds differently for negative numbers"),
    ("for i in range(3):\n    z = i\nfor i in range(-3, 0):\n    k = i % 3  !!", "rounds differently"),
    ("for i in range(3):\n    z = i - 1\n    k = (i - 1) % 3  !!", "rounds differently"),
    ("for i in range(3):\n    z = i % 2\n    z -= 1\n    k = z % 2  !!", "rounds differently"),
    ("k = (k if k > -1 else 0) % 3", "rounds differently"),
    ("k = (k if k >= 0 else -1) % 3", "rounds differently"),
    ("z = k\nk = (z if k >= 0 else 0) % 3  !!", "rounds differently"),
    ("for i in range(3):\n    k = i % k  !!", "the right side a positive literal or len(…)"),
    ("for i in range(3):\n    k = i % 0  !!", "the right side a positive literal or len(…)"),
    ("z = 0 < k < 3", "write a < b and b < c"),
    ("z = k is k", "`is` and `in` do not exist in C; compare with =="),
    ("y = y if k > 0 else k", "both need the same scalar type"),
    ("y = x if k > 0 else x", "both need the same scalar type"),
    ("z = grow(s) if k > 0 else grow(s)", "both need the same scalar type"),
    # calls
    ("y = math.exp(y)", "math.exp is not a kernel; call @kernel functions by name"),
    ("y = twice(y=y)", "C has no keyword arguments; pass them in order"),
    ("y = k(y)", "k is a variable, not a kernel"),
    ("y = abs(y)", "abs is not a kernel; use absolute()"),
    ("k = int(y)", "use truncate()"),
    ("print(y)", "print is not a kernel; use a status"),
    ("y = helper(y)", "helper is not a kernel; mark it @kernel"),
    ("y = twice(y, y)", "twice takes 1 arguments, not 2"),
    ("y = bump(c)", "for the parameter s of bump, pass this function's own Box"),
    ("y = twice(k)", "parameter y of twice is Real, but the argument is Index"),
    ("y = first(x)", "parameter x of first is Real[DIM], but the argument is Real[N_MAX]"),
    ("y = first(TABLE)", "x of first is Real[DIM]"),
    ("y = real(y, y)", "real() takes one number"),
    ("y = real(y)", "real() takes a literal or an Index, but this is Real"),
    ("y = real(1e39)", "1e+39 is infinite in float32"),
    ("y = real(4294967297)", "write it as real(4294967297.0)"),
    ("y = real(Kind.ONE)", "write its number"),
    ("k = len(x, x)", "len() takes one array"),
    ("k = len(y)", "len() takes an array"),
    ("k = len(s.grid[k])", "all rows have the same length"),
    ("@kernel\ndef f(x: Real[...]) -> Index:\n    return len(x)  !!", "pass the length as an argument"),
    # comments
    ("@kernel\ndef f(y: Real) -> Real:\n    # above\n    return y\n    # below  !!", "this comment would be lost in C"),
    ("y = (y  # inside  !!\n    + y)", "this comment would be lost in C"),
    ("if k > 0:\n    y = y\nelse:  # why  !!\n    k = 0", "put it on the line above a statement"),
    # effects
    (
        "y = y + bump(s)",
        "bump writes to memory, and C may evaluate the rest of the expression before or after the call",
    ),
    ("y += bump(s)", "assign the result of bump in a separate statement"),
    ("s.total[0] = bump(s)", "bump writes"),
    ("s.total[0] += bump(s)", "bump writes"),
    ("y = twice(bump(s))", "bump writes"),
    ("y = x[truncate(bump(s))]", "bump writes"),
    ("x[truncate(bump(s))] = y", "bump writes"),
    ("if bump(s) > y:\n    y = y", "bump writes"),
    ("if k > 0:\n    y = y\nelif bump(s) > y:  !!\n    y = y", "bump writes"),
    ("z = k > 0 and bump(s) > y", "bump writes"),
    ("y = bump(s) if k > 0 else y", "bump writes"),
    ("@kernel\ndef f(s: Box) -> Real:\n    return -bump(s)  !!", "bump writes"),
    (
        "shift(c.order)",
        "shift writes to its parameter counts, but order is a table of the configuration, which is constant",
    ),
    (
        "@kernel\ndef fill(row: Real[...]) -> None:\n    row[0] = real(1)\n"
        "@kernel\ndef over(row: Real[...]) -> None:\n    fill(row)\n"
        "@kernel\ndef f(c: Settings) -> None:\n    over(c.basis[1])  !!",
        "over writes to its parameter row, but basis is a table of the configuration",
    ),
    ("for i in range(truncate(y)):\n    y = y", "assign the bound to a name before the loop"),
    ("for i in range(k):\n    k = 3  !!", "the bound of the loop in line"),
    ("for i in range(k):\n    k -= 1  !!", "(k): range() is evaluated once in Python"),
    ("for i in range(s.n[0]):\n    s.n[0] = 3  !!", "assign the bound to a name before the loop"),
    ("for i in range(s.n[0]):\n    grow(s)  !!", "the bound of the loop"),
    ("for i in range(s.n[0]):\n    shift(s.n)  !!", "the bound of the loop"),
    ("for i in range(4 if s.a[0] > y else 3):\n    for j in range(2):\n        x[0] = y  !!", "the bound of the loop"),
    (
        "@kernel\ndef f(s: Box, t: Index[...]) -> None:\n    for i in range(s.n[0]):\n        shift(t)  !!",
        "the bound of the loop",
    ),
    (
        "@kernel\ndef f(s: Box, t: Index[...]) -> None:\n    for i in range(t[0]):\n        s.n[0] = 1  !!",
        "the bound of the loop",
    ),
    (
        "@kernel\ndef f(s: Box, t: Index[...]) -> None:\n    for i in range(t[0]):\n        grow(s)  !!",
        "the bound of the loop",
    ),
    (
        "@kernel\ndef f(s: Index[...], t: Index[...]) -> None:\n    for i in range(t[0]):\n        s[0] = 1  !!",
        "the bound of the loop",
    ),
    # names in C
    (
        "@kernel  !!\ndef reset() -> Real:\n    return sqrt(real(2))\nf = reset",
        "the kernel reset would be a second m_reset",
    ),
    (
        "@kernel  !!\ndef learned_alpha() -> Real:\n    return sqrt(real(2))\nf = learned_alpha",
        "second m_learned",
    ),
    ("@kernel  !!\ndef sqrt() -> Real:\n    return real(2)\nf = sqrt", "the kernel sqrt would be a second m_sqrt in C"),
    ("DIM = Constant(1)\n@kernel\ndef f(s: Box) -> Real:\n    return s.a[0] + DIM  !!", "DIM would be a second M_DIM"),
    ("P = Constant(1)\n@kernel\ndef f(c: Settings) -> Real:\n    return c.p + P  !!\n", "P would be a second M_P in C"),
    (
        "SHIFTS = Constant((1, 2))\n@kernel\ndef f(s: Box, c: Settings) -> Real:\n"
        "    return c.shifts[0] + SHIFTS[s.n[0]]  !!\n",
        "constant SHIFTS would be a second m_shifts",
    ),
    (
        "N_MAX = Constant(1)\n@kernel\ndef f(c: Settings) -> Real:\n    return c.p + N_MAX  !!",
        "N_MAX would be a second M_N_MAX",
    ),
    (
        "F = Constant((1, 2))\n@kernel\ndef f(s: Box) -> Real:\n    return F[s.n[0]]  !!\n",
        "constant F would be a second m_f",
    ),
    ("CONST = Constant(1)\n@kernel\ndef f() -> Real:\n    return CONST  !!\n", "would be a second M_CONST in C"),
    (
        '@chosen(\'kind\', {Kind.ONE: twice}, twice)\ndef f(y: Real) -> Real:  !!\n    """One."""\n',
        "f selects a kernel by the field kind, but no parameter has this field; add a parameter whose type is the model that has the field",
    ),
    (
        "@chosen('kind', {Kind.ONE: twice}, twice)\ndef f(y: Real) -> Real:  !!\n    return y\n",
        "f only selects which kernel is called; its body must be a docstring and nothing else",
    ),
]


@pytest.mark.parametrize(("snippet", "message"), REFUSALS, ids=[" ".join(s.split())[:50] for s, _ in REFUSALS])
def test_refusal(snippet: str, message: str) -> None:
    error, line = refusal(snippet)
    assert message in str(error)
    assert error.line == line


def sites() -> set[tuple[str, int]]:
    """File and line of everything that refuses."""
    found = set()
    for module in (check_types, expressions, effects, print_c, read):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            refuses = isinstance(node, ast.Call) and ast.unparse(node.func) == "self.refuse"
            raises = isinstance(node, ast.Raise) and "DialectError(self.kernel.file" not in ast.unparse(node)
            if refuses or (raises and "DialectError" in ast.unparse(node)):
                found.add((str(module.__file__), node.lineno))
    return found


def test_every_refusal_is_tested() -> None:
    met = set()
    for snippet in [*CONSTRUCTS.values(), *(snippet for snippet, _ in REFUSALS)]:
        error, _ = refusal(snippet)
        met |= {(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)}
    assert sites() <= met, sorted(sites() - met)


def test_example_in_the_reference_is_accepted() -> None:
    text = (ROOT / "docs" / "dialect.md").read_text(encoding="utf-8")
    module = loaded(text.split("```python\n")[1].split("```")[0])
    code, _, _ = c_source([module.learn], FLOAT32, module.LineConfig.of(FLOAT32, {"eta": 0.5}))
    assert "int32_t m_learn(m_t *s, const float x[M_DIM], float error)" in code
