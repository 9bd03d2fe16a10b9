"""C where an ``int`` has 16 bits, without a compiler for such a machine: every type and range in some C text.

C computes in ``int`` what no operand gives a width: constants, macros, and what is narrower than an ``int``.  The text is
read with the types of an AVR or an MSP430.  Whatever would be computed there in fewer than 32 bits, and could give another
number than with an ``int`` of 32 bits, is found.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pycparser import c_ast, c_parser

HEADERS = {
    "stdint.h": """typedef signed char int8_t; typedef unsigned char uint8_t; typedef int int16_t; typedef unsigned int uint16_t;
typedef long int32_t; typedef unsigned long uint32_t; typedef long long int64_t; typedef unsigned long long uint64_t;
#define INT32_C(number) number ## L
#define UINT32_C(number) number ## UL
""",
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
    "stddef.h": "typedef unsigned int size_t;\n#define NULL ((void *)0)\n#define offsetof(kind, field) sizeof(int)\n",
    "float.h": """#define FLT_EVAL_METHOD 0
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define FLT_MAX 3e38f
#define DBL_MAX 1e308
#define FLT_EPSILON 1e-7f
#define DBL_EPSILON 1e-16
""",
    "stdio.h": "int printf(const char *form, ...); int puts(const char *text);\n",
}


@dataclass(frozen=True)
class Number:
    """A type of whole numbers."""

    bits: int
    signed: bool
    rank: int

    @property
    def range(self) -> tuple[int, int]:
        return (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)


INT, UNSIGNED = Number(16, True, 2), Number(16, False, 2)
NAMES = {
    "_Bool": Number(1, False, 0),
    "char": Number(8, True, 1),
    "signed char": Number(8, True, 1),
    "unsigned char": Number(8, False, 1),
    "short": Number(16, True, 2),
    "int": INT,
    "unsigned int": UNSIGNED,
    "long": Number(32, True, 3),
    "unsigned long": Number(32, False, 3),
    "long long": Number(64, True, 4),
    "unsigned long long": Number(64, False, 4),
}


@dataclass(frozen=True)
class Value:
    """Of an expression: its type, and between which numbers it is; ``kind`` None: no whole number."""

    kind: Number | None
    low: int = 0
    high: int = 0
    of: Any = None  # the declared type of what is no number: an array, a pointer, a struct, a function


def faults(files: Mapping[str, str], folder: Path) -> list[str]:
    """What some C files would compute otherwise where an int has 16 bits: "file:line: text" for each."""
    for name, text in {**HEADERS, **files}.items():
        (folder / name).write_text(text, encoding="utf-8")
    found: list[str] = []
    for name in files:
        if name.endswith(".c"):
            command = ["gcc", "-E", "-undef", "-nostdinc", "-std=c99", "-I.", name]
            text = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
            text = re.sub(r"^#pragma.*$", "", text, flags=re.MULTILINE)
            found += _Reader().read(c_parser.CParser().parse(text, name))
    return list(dict.fromkeys(found))


class _Reader:
    def __init__(self) -> None:
        self.typedefs: dict[str, Any] = {}
        self.structs: dict[str, Any] = {}
        self.names: list[dict[str, Value]] = [{}]
        self.found: list[str] = []

    def read(self, tree: Any) -> list[str]:
        for item in tree.ext:
            if isinstance(item, c_ast.Typedef):
                self.typedefs[item.name] = item.type
            elif isinstance(item, c_ast.FuncDef):
                self.declare(item.decl)
                self.names.append({})
                for param in getattr(item.decl.type.args, "params", []):
                    if param.name:
                        self.declare(param)
                self.statement(item.body)
                self.names.pop()
            else:
                self.declare(item)
        return self.found

    # ------------------------------------------------------------------------------------------------ types

    def kind(self, node: Any) -> tuple[Number | None, Any]:
        """The type of numbers that a declared type is, else the type itself."""
        if isinstance(node, c_ast.Typename):
            return self.kind(node.type)
        if isinstance(node, c_ast.TypeDecl):
            inner = node.type
            if isinstance(inner, c_ast.IdentifierType):
                name = " ".join(inner.names)
                if name in self.typedefs:
                    return self.kind(self.typedefs[name])
                if name in NAMES:
                    return NAMES[name], None
                assert name in ("float", "double", "void"), name
                return None, name
            if isinstance(inner, (c_ast.Struct, c_ast.Union)):
                if inner.decls and inner.name:
                    self.structs[inner.name] = inner
                return None, self.structs.get(inner.name, inner)
            if isinstance(inner, c_ast.Enum):
                self.enum(inner)
                return INT, None
        return None, node

    def lvalue(self, node: Any) -> Value:
        number, of = self.kind(node)
        return Value(number, *number.range) if number is not None else Value(None, of=of)

    def enum(self, node: Any) -> None:
        following = 0
        for member in node.values.enumerators if node.values else []:
            if member.value is not None:
                following = self.value(member.value).low
            self.names[0][member.name] = _constant(following)
            following += 1

    def declare(self, node: Any) -> None:
        if not isinstance(node, c_ast.Decl):
            return
        if node.name is None:
            self.kind(c_ast.TypeDecl(None, [], None, node.type))
            return
        if isinstance(node.type, c_ast.ArrayDecl) and node.type.dim is not None:
            self.value(node.type.dim)
        self.names[-1][node.name] = self.lvalue(node.type)
        if node.init is not None and not isinstance(node.init, c_ast.InitList):
            self.value(node.init)

    # ------------------------------------------------------------------------------------------- statements

    def statement(self, node: Any) -> None:
        if isinstance(node, c_ast.Decl):
            self.declare(node)
        elif isinstance(node, (c_ast.Compound, c_ast.For, c_ast.DeclList)):
            self.names.append({}) if not isinstance(node, c_ast.DeclList) else None
            for _, child in node.children():
                self.statement(child)
            self.names.pop() if not isinstance(node, c_ast.DeclList) else None
        elif isinstance(
            node,
            (c_ast.If, c_ast.While, c_ast.DoWhile, c_ast.Switch, c_ast.Case, c_ast.Default, c_ast.Return, c_ast.Label),
        ):
            for _, child in node.children():
                self.statement(child)
        elif not isinstance(node, (c_ast.Break, c_ast.Continue, c_ast.EmptyStatement)):
            self.value(node)

    # ------------------------------------------------------------------------------------------ expressions

    def fault(self, node: Any, message: str) -> None:
        self.found.append(f"{node.coord.file}:{node.coord.line}: {message}")

    def value(self, node: Any) -> Value:
        return getattr(self, f"of_{type(node).__name__}")(node)  # type: ignore[no-any-return]

    def of_Constant(self, node: Any) -> Value:
        if node.type in ("float", "double", "string", "char") or "." in node.value:
            return Value(None, of="double")
        digits = node.value.rstrip("uUlL")
        number, suffix = int(digits, 0 if digits[:2].lower() == "0x" else 10), node.value[len(digits) :].lower()
        return _constant(number, "u" in suffix, suffix.count("l"), digits[:2].lower() == "0x")

    def of_ID(self, node: Any) -> Value:
        for names in reversed(self.names):
            if node.name in names:
                return names[node.name]
        raise KeyError(f"{node.coord}: {node.name}")

    def of_ArrayRef(self, node: Any) -> Value:
        self.value(node.subscript)
        of = self.value(node.name).of
        return self.lvalue(of.type)

    def of_StructRef(self, node: Any) -> Value:
        of = self.value(node.name).of
        if isinstance(of, c_ast.PtrDecl):
            of = self.kind(of.type)[1]
        field = next(d for d in of.decls if d.name == node.field.name)
        return self.lvalue(field.type)

    def of_FuncCall(self, node: Any) -> Value:
        for argument in node.args.exprs if node.args else []:
            self.value(argument)
        of = self.value(node.name).of
        while isinstance(of, (c_ast.PtrDecl, c_ast.TypeDecl)):  # a pointer to a function
            of = self.kind(of)[1] if isinstance(of, c_ast.TypeDecl) else of.type
        return self.lvalue(of.type)

    def of_Cast(self, node: Any) -> Value:
        given, (number, of) = self.value(node.expr), self.kind(node.to_type)
        return _converted(given, number) if number is not None else Value(None, of=of)

    def of_TernaryOp(self, node: Any) -> Value:
        self.value(node.cond)
        yes, no = self.value(node.iftrue), self.value(node.iffalse)
        if yes.kind is None or no.kind is None:
            return yes if yes.kind is None else no
        number = self.usual(node, yes, no)
        yes, no = _converted(yes, number), _converted(no, number)
        return Value(number, min(yes.low, no.low), max(yes.high, no.high))

    def of_UnaryOp(self, node: Any) -> Value:
        if node.op == "sizeof":
            return Value(UNSIGNED, *UNSIGNED.range)
        given = self.value(node.expr)
        if node.op == "!":
            return Value(INT, 0, 1)
        if node.op == "&":
            return Value(None, of=c_ast.PtrDecl([], _declared(node.expr, given)))
        if node.op == "*":
            return self.lvalue(given.of.type)
        if given.kind is None:
            return given
        if node.op in ("++", "--", "p++", "p--"):
            if given.kind.bits < 32:
                self.fault(node, "a narrow variable counts")
            return given
        number = _promoted(given.kind)
        given = _converted(given, number)
        ends = {"-": (-given.high, -given.low), "~": (~given.high, ~given.low), "+": (given.low, given.high)}[node.op]
        return self.computed(node, number, *ends)

    def of_Assignment(self, node: Any) -> Value:
        target = self.value(node.lvalue)
        if node.op == "=":
            self.value(node.rvalue)
        else:
            self.value(c_ast.BinaryOp(node.op[:-1], node.lvalue, node.rvalue, node.coord))
        return target

    def of_ExprList(self, node: Any) -> Value:
        return [self.value(each) for each in node.exprs][-1]

    def of_BinaryOp(self, node: Any) -> Value:
        left, right, op = self.value(node.left), self.value(node.right), node.op
        if op in ("&&", "||"):
            return Value(INT, 0, 1)
        if left.kind is None or right.kind is None:
            return (
                Value(INT, 0, 1) if op in ("==", "!=", "<", "<=", ">", ">=") else left if left.kind is None else right
            )
        if op in ("<<", ">>"):
            number = _promoted(left.kind)
            left = _converted(left, number)
            if not 0 <= right.low <= right.high < number.bits and number.bits < 32:
                self.fault(node, f"a number of {number.bits} bits is shifted by up to {right.high}")
            ends = [_shifted(op, a, max(0, min(b, 63))) for a in (left.low, left.high) for b in (right.low, right.high)]
            return self.computed(node, number, min(ends), max(ends))
        number = self.usual(node, left, right)
        left, right = _converted(left, number), _converted(right, number)
        if op in ("==", "!=", "<", "<=", ">", ">="):
            return Value(INT, 0, 1)
        return self.computed(node, number, *_ends(op, left, right))

    def usual(self, node: Any, left: Value, right: Value) -> Number:
        """The type in which C computes with two numbers."""
        assert left.kind is not None and right.kind is not None
        a, b = _promoted(left.kind), _promoted(right.kind)
        if a.signed == b.signed:
            number = max(a, b, key=lambda n: n.rank)
        else:
            unsigned, signed = (b, a) if a.signed else (a, b)
            if unsigned.rank >= signed.rank:
                number = unsigned
                value = right if b.signed else left
                if value.low < 0 and number.bits < 32:
                    self.fault(node, f"a number from {value.low} becomes one without a sign, of 16 bits")
            else:
                number = signed
        return number

    def computed(self, node: Any, number: Number, low: int, high: int) -> Value:
        least, most = number.range
        if low < least or high > most:
            if number.bits < 32:
                self.fault(node, f"{node.op} is computed in {number.bits} bits, and may be from {low} to {high}")
            return Value(number, least, most)
        return Value(number, low, high)


def _declared(node: Any, given: Value) -> Any:
    """A type for a pointer to an expression."""
    if given.of is not None and not isinstance(given.of, str):
        return given.of
    names = {value: key for key, value in NAMES.items()}
    inner = [names[given.kind]] if given.kind is not None else [given.of or "void"]
    return c_ast.TypeDecl(None, [], None, c_ast.IdentifierType(inner))


def _constant(number: int, unsigned: bool = False, longs: int = 0, based: bool = False) -> Value:
    """A literal: of the first type that holds it."""
    if number < 0:
        negative = _constant(-number)
        return Value(negative.kind, number, number)
    for kind in NAMES.values():
        fits = kind.rank >= 2 + longs and number <= kind.range[1]
        if fits and (not kind.signed if unsigned else kind.signed or based):
            return Value(kind, number, number)
    raise ValueError(number)


def _promoted(number: Number) -> Number:
    """What C makes of a number before it computes: nothing narrower than an int."""
    return INT if number.rank < INT.rank else number


def _converted(value: Value, number: Number) -> Value:
    low, high = number.range
    if value.kind is None or value.low < low or value.high > high:
        return Value(number, low, high)
    return Value(number, value.low, value.high)


def _shifted(op: str, a: int, b: int) -> int:
    return a << b if op == "<<" else a >> b


def _ends(op: str, a: Value, b: Value) -> tuple[int, int]:
    corners: Iterator[tuple[int, int]] = ((x, y) for x in (a.low, a.high) for y in (b.low, b.high))
    if op == "+":
        return a.low + b.low, a.high + b.high
    if op == "-":
        return a.low - b.high, a.high - b.low
    if op == "*":
        found = [x * y for x, y in corners]
        return min(found), max(found)
    if op == "&" and a.low >= 0 and b.low >= 0:
        return 0, min(a.high, b.high)
    if op in ("|", "^") and a.low >= 0 and b.low >= 0:
        return 0, 2 ** max(a.high, b.high).bit_length() - 1
    # of a quotient and a rest: not larger than the dividend
    if b.low > 0 and op == "/":
        ends = [abs(x) // y * (1 if x >= 0 else -1) for x, y in corners]
        return min(*ends, 0), max(*ends, 0)
    if b.low > 0 and op == "%":
        return max(min(a.low, 0), 1 - b.high), min(max(a.high, 0), b.high - 1)
    most = max(abs(a.low), abs(a.high))
    return -most, most
