"""Translate expressions to the typed representation.  The docstring of ``check_types`` describes which code is refused."""

import ast
import functools
import re
from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

import numpy as np

from pykernel.dialect import (
    FLOAT32,
    INDEX_MAX,
    Array,
    Bool,
    Constant,
    Extent,
    Index,
    Kernel,
    Real,
    Scalar,
    Struct,
    Word,
    is_choice,
    parts_of,
    ratio,
    real,
    sqrt,
)
from pykernel.dialect.types import REALS
from pykernel.language.instead import IN_PLACE, INSTEAD, RESERVED
from pykernel.language.ir import (
    Binary,
    Call,
    Choice,
    DialectError,
    Element,
    Expr,
    Field,
    Kind,
    Length,
    Literal,
    Local,
    Member,
    Named,
    Parameter,
    Row,
    ToReal,
    Unary,
)
from pykernel.language.read import read

ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
OF_WORDS = {ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&"}
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
LARGEST = float(np.finfo(np.float32).max)

T = TypeVar("T")


def in_expressions(kind: Any) -> Any:
    """Return the type that a parameter or a result has inside the function.

    Int becomes Index.  A narrow type such as Int8, which exists only in memory, is returned unchanged, and the caller
    refuses it.
    """
    narrow = isinstance(kind, Scalar) and kind.stored not in ("", "<i4", "<u4")
    return kind.value if isinstance(kind, Scalar) and not narrow else kind


def _as_word(side: Expr, other: Expr) -> Expr:
    plain = isinstance(side, Literal) and side.kind is Index and side.value >= 0
    return replace(side, kind=Word) if plain and other.kind is Word else side


class Expressions:
    """Translates the expressions of one kernel and finds their types."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.node, self.comments = read(kernel)
        self.space = {**kernel.function.__globals__, **kernel.names}
        python = self.space["__builtins__"]  # __builtins__ is a module in a script, and a dictionary elsewhere
        self.builtins = python if isinstance(python, dict) else vars(python)
        # name -> its kind, or the struct or configuration that the name represents
        self.scopes: list[dict[str, Any]] = [{}]
        self.running: dict[str, bool] = {}  # variable of an enclosing loop -> True if it is known never to be negative
        self.counters: set[str] = set()  # variables of all loops
        self.kinds_seen: dict[str, Kind] = {}

    def refuse(self, at: ast.AST, message: str) -> NoReturn:
        raise DialectError(self.kernel.file, getattr(at, "lineno", self.node.lineno), message)

    def want(self, kind: type[T], value: object, at: ast.AST, message: str) -> T:
        """Return the value if it is of this kind, else refuse the code."""
        if not isinstance(value, kind):
            self.refuse(at, message)
        return value

    def refuse_if(self, wrong: object, at: ast.AST, message: str) -> None:
        if wrong:
            self.refuse(at, message)

    def method(self, name: str, node: ast.stmt | ast.expr) -> Callable[[Any], Any]:
        """Return the method that translates this kind of node, or refuse code that is not in the dialect."""
        kind = type(node)
        self.refuse_if(not hasattr(self, name), node, INSTEAD.get(kind, f"{kind.__name__} is not in the dialect"))
        return getattr(self, name)

    def spelling(self, node: ast.AST, name: str) -> None:
        """Refuse the name of a kernel, local, field or parameter if the name could clash in C."""
        self.refuse_if(
            not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.endswith("_t"),
            node,
            f"{name} could clash in C; names are lower case, start with a letter and do not end in _t",
        )
        self.refuse_if(name in RESERVED, node, f"{name} has a meaning in C or C++; choose another name")

    def find(self, name: str) -> Any:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def value(self, node: ast.expr) -> Expr:
        return self.method(f"of_{type(node).__name__}", node)(node)

    def condition(self, node: ast.expr) -> Expr:
        value = self.value(node)
        self.refuse_if(
            value.kind is not Bool,
            node,
            f"a condition is a truth value, but this is {value.kind}; compare it, e.g. with != 0",
        )
        return value

    def of_Constant(self, node: ast.Constant) -> Expr:
        value: Any = node.value
        if type(value) is bool:
            return Literal(node.lineno, Bool, value)
        if type(value) is int:
            self.refuse_if(abs(value) > INDEX_MAX, node, f"{value} does not fit in int32")
            return Literal(node.lineno, Index, value)
        self.refuse_if(
            type(value) is float,
            node,
            f"{value} has no precision (Numba would compute in float64); write real({value})",
        )
        self.refuse(node, f"{value!r} is not in the dialect")

    def of_Name(self, node: ast.Name) -> Expr:
        name, kind = node.id, self.find(node.id)
        if kind is not None:
            self.refuse_if(
                isinstance(kind, type), node, f"{name} is a struct; use its fields, or pass it on as an argument"
            )
            return Local(node.lineno, kind, name)
        seen = name in self.kinds_seen
        self.refuse_if(seen, node, f"{name} does not have a value on every path to here; assign it before the block")
        self.refuse_if(name not in self.space, node, f"{name} is not defined")
        value = self.space[name]
        if isinstance(value, Constant):
            return self.named(node, value)
        if type(value) is int:
            self.refuse_if(abs(value) > INDEX_MAX, node, f"{name} = {value} does not fit in int32")
            return Literal(node.lineno, Index, value)
        self.refuse_if(isinstance(value, float), node, f"{name} has no precision; define it as Constant({value})")
        self.refuse(
            node,
            f"{name} is a {type(value).__name__}, which has no meaning in C; make it a field, a parameter or a Constant",
        )

    def named(self, node: ast.Name, value: Constant) -> Expr:
        """Translate the name of a Constant that is defined at module level; the Constant is a number or a table."""
        name = node.id
        upper = re.fullmatch(r"[A-Z][A-Z0-9_]*", name)
        self.refuse_if(not upper, node, f"{name} is the name of a Constant; constants are upper case")
        for precision in REALS.values():
            with np.errstate(over="ignore"):
                rounded = np.asarray(value.value(precision))
            self.refuse_if(
                rounded.ndim > 1 or not rounded.size or not np.isfinite(rounded).all(),
                node,
                f"{name} is not a finite number or a table of finite numbers in {precision}; use finite values",
            )
        if not value.is_table:
            self.refuse_if(
                value.scalar is not Real, node, f"{name} is a whole number; write {name} = {value.value(FLOAT32)}"
            )
            return Named(node.lineno, Real, name, value)
        lengths = {len(values) for values in value.by_precision.values()}
        extent = lengths.pop() if len(lengths) == 1 else ...
        return Named(node.lineno, Array(value.scalar, (extent,)), name, value)

    def of_Attribute(self, node: ast.Attribute) -> Expr:
        if isinstance(node.value, ast.Name):
            owner, name = self.find(node.value.id), node.attr
            if parts := parts_of(owner):
                part = next((part for part in parts if name in part.fields), None)
                if part is None:
                    self.refuse(node, f"{owner.__name__} has no field {name}")
                self.spelling(node, name)
                kind = part.fields[name]
                if issubclass(part, Struct):
                    return Field(node.lineno, kind, part, name)
                return Parameter(node.lineno, (Bool if kind is bool else Index) if is_choice(kind) else kind, name)
            enum = self.space.get(node.value.id) if owner is None else None
            if isinstance(enum, type) and issubclass(enum, IntEnum):
                self.refuse_if(name not in enum.__members__, node, f"{enum.__name__} has no member {name}")
                return Member(node.lineno, Index, enum[name])
        self.refuse(
            node,
            f"{ast.unparse(node)} is not in the dialect; attributes are fields of structs and configs, or members of enumerations",
        )

    def of_Subscript(self, node: ast.Subscript) -> Expr:
        array = self.value(node.value)
        if not isinstance(array.kind, Array):
            self.refuse(node, f"{ast.unparse(node.value)} is not an array")
        extents = array.kind.extents
        positions = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = tuple(map(self.position, positions))
        self.refuse_if(
            isinstance(array, (Row, Element)), node, "write both positions in one pair of brackets, as in s.m[i, j]"
        )
        for position, index, extent in zip(positions, indices, extents, strict=False):
            written = index.value if isinstance(index, Literal) else None
            self.refuse_if(
                extent == 1 and written is None,
                position,
                "this array has one element, and C ignores the position; write [0]",
            )
            shortest = min(map(len, array.constant.by_precision.values())) if isinstance(array, Named) else extent
            if written is not None and isinstance(shortest, int) and written >= shortest:
                self.refuse(
                    position,
                    f"there is no position {written} in an array of length {shortest}; the last one is {shortest - 1}",
                )
        if len(indices) == len(extents):
            return Element(node.lineno, array.kind.scalar.value, array, indices)
        if len(indices) < len(extents) and isinstance(array, (Field, Parameter)):
            return Row(node.lineno, Array(array.kind.scalar, extents[1:]), array, indices[0])
        self.refuse(node, f"{ast.unparse(node.value)} has {len(extents)} dimension(s)")

    def position(self, node: ast.expr) -> Expr:
        index = self.value(node)
        self.refuse_if(index.kind is not Index, node, f"a position is Index, but this is {index.kind}")
        self.refuse_if(
            (isinstance(index, Unary) and index.op == "-") or (isinstance(index, Literal) and index.value < 0),
            node,
            "negative positions count from the end in Python and are undefined in C; use len(…) - 1",
        )
        return index

    def of_UnaryOp(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            return Unary(node.lineno, Bool, "not", self.condition(node.operand))
        self.refuse_if(not isinstance(node.op, ast.USub), node, "the only unary operators are `-` and `not`")
        operand = self.value(node.operand)
        self.refuse_if(
            operand.kind not in (Real, Index), node, f"unary - takes Real or Index, but this is {operand.kind}"
        )
        if isinstance(operand, Literal) and (operand.kind is Index or operand.value != 0):
            return Literal(node.lineno, operand.kind, -operand.value)
        # -0.0 remains an operation, because a literal -0.0 would be equal to the literal 0.0
        return Unary(node.lineno, operand.kind, "-", operand)

    def of_BinOp(self, node: ast.BinOp) -> Expr:
        left, right = self.value(node.left), self.value(node.right)
        if type(node.op) in OF_WORDS and left.kind is Word:
            return self.of_words(node, OF_WORDS[type(node.op)], left, right)
        unknown = INSTEAD.get(type(node.op), f"{type(node.op).__name__} is not in the dialect")
        op = self.want(str, ARITHMETIC.get(type(node.op)), node, unknown)
        left, right = self.same_numbers(node, left, right)
        self.refuse_if(
            op == "/" and left.kind is not Real,
            node,
            "/ of integers gives a fraction in Python, but truncates in C; use // for positions, real() for numbers",
        )
        if op in ("//", "%"):
            self.refuse_if(
                left.kind is not Index, node, f"{op} needs Index, but this is {left.kind}; use truncate() or index()"
            )
            positive = isinstance(right, Length) or (isinstance(right, Literal) and right.value > 0)
            self.refuse_if(
                not positive or not self.is_nonnegative(left),
                node,
                f"{op} rounds differently for negative numbers; the left side must be provably not negative "
                "(loop variables, lengths, literals, sums and products of them, remainders), and the right side a positive literal or len(…)",
            )
        if op == "/" and self.kernel is not ratio and not _is_normal(left, right):
            return Call(node.lineno, Real, ratio, (left, right))
        return Binary(node.lineno, left.kind, op, left, right)

    def of_words(self, node: ast.BinOp, op: str, left: Expr, right: Expr) -> Expr:
        """Return a shift of a Word by an Index, or the bitwise AND of two Words."""
        if op == "&":
            left, right = self.same_numbers(node, left, right)
        elif right.kind is not Index or (isinstance(right, Literal) and not 0 <= right.value <= 31):
            self.refuse(node, f"a Word is shifted by an Index from 0 to 31, but this is {ast.unparse(node.right)}")
        return Binary(node.lineno, Word, op, left, right)

    def same_numbers(self, node: ast.AST, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Return both sides with a common type, or refuse the code if there is no such type.

        An integer literal next to a Word becomes a Word if the literal is not negative.
        """
        for side in (left, right):
            strange = side.kind not in (Real, Index, Word)
            self.refuse_if(strange, node, f"arithmetic and ordering need numbers, but this is {side.kind}")
        left, right = _as_word(left, right), _as_word(right, left)
        self.refuse_if(
            left.kind is not right.kind,
            node,
            f"{left.kind} with {right.kind}: Numba and C promote them differently; convert one side with "
            + ("word() or index()" if Word in (left.kind, right.kind) else "real() or truncate()"),
        )
        return left, right

    def is_nonnegative(self, value: Expr) -> bool:
        match value:
            case Literal(value=number):
                return bool(number >= 0)
            case Local(name=name):
                return self.running.get(name, False) or name in self.remainders
            case Binary(op="+" | "*" | "//" | "%", left=left, right=right):
                return self.is_nonnegative(left) and self.is_nonnegative(right)
            case Choice(condition=Binary(op=">" | ">=", left=left, right=right), yes=yes, no=no) if left == yes:
                # for example: a if a > 0 else 1
                return (self.is_nonnegative(yes) or self.is_nonnegative(right)) and self.is_nonnegative(no)
            case Choice(yes=yes, no=no):
                return self.is_nonnegative(yes) and self.is_nonnegative(no)
        return isinstance(value, Length)

    @functools.cached_property
    def remainders(self) -> set[str]:
        """Locals that are never negative, because only remainders, and literals that are not negative, are assigned to
        them.
        """
        assigned: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self.node):
            if isinstance(node, (ast.For, ast.AugAssign)) and isinstance(node.target, ast.Name):
                assigned.setdefault(node.target.id, []).append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                assigned.setdefault(node.targets[0].id, []).append(node.value)
        names = assigned.keys() - self.kernel.params.keys()
        return {name for name in names if all(map(_is_remainder, assigned[name]))}

    def of_Compare(self, node: ast.Compare) -> Expr:
        self.refuse_if(len(node.ops) != 1, node, "a < b < c means something else in C; write a < b and b < c")
        op = self.want(
            str, COMPARISONS.get(type(node.ops[0])), node, "`is` and `in` do not exist in C; compare with =="
        )
        left, right = self.same_numbers(node, self.value(node.left), self.value(node.comparators[0]))
        return Binary(node.lineno, Bool, op, left, right)

    def of_BoolOp(self, node: ast.BoolOp) -> Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        result = self.condition(node.values[0])
        for value in node.values[1:]:
            result = Binary(node.lineno, Bool, op, result, self.condition(value))
        return result

    def of_IfExp(self, node: ast.IfExp) -> Expr:
        condition, yes, no = self.condition(node.test), self.value(node.body), self.value(node.orelse)
        self.refuse_if(
            yes.kind != no.kind or yes.kind not in (Real, Index, Word, Bool),
            node,
            f"one side is {yes.kind} and the other is {no.kind}; both need the same scalar type",
        )
        return Choice(node.lineno, yes.kind, condition, yes, no)

    def of_Call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name):
            self.refuse(node, f"{ast.unparse(node.func)} is not a kernel; call @kernel functions by name")
        self.refuse_if(node.keywords, node, "C has no keyword arguments; pass them in order")
        name = node.func.id
        self.refuse_if(self.find(name) is not None, node, f"{name} is a variable, not a kernel")
        callee = self.space.get(name)
        if callee is real:
            return self.to_real(node)
        if name == "len":
            return self.length(node)
        if not isinstance(callee, Kernel):
            advice = f"use {IN_PLACE[name]}" if name in IN_PLACE else "mark it @kernel"
            self.refuse(node, f"{name} is not a kernel; {advice}")
        count = len(callee.params)
        self.refuse_if(len(node.args) != count, node, f"{name} takes {count} arguments, not {len(node.args)}")
        args = []
        for argument, (param, kind) in zip(node.args, callee.params.items(), strict=True):
            if wanted := parts_of(kind):
                own = parts_of(self.find(argument.id)) if isinstance(argument, ast.Name) else ()
                missing = " and ".join(part.__name__ for part in wanted if part not in own)
                self.refuse_if(
                    missing, argument, f"for the parameter {param} of {name}, pass this function's own {missing}"
                )
                continue
            value, kind = self.value(argument), in_expressions(kind)
            self.refuse_if(
                not self.fits(value, kind),
                argument,
                f"parameter {param} of {name} is {kind}, but the argument is {value.kind}; convert the argument with real(), "
                "truncate(), word() or index()",
            )
            args.append(value)
        return Call(node.lineno, in_expressions(callee.returns), callee, tuple(args))

    def fits(self, value: Expr, kind: Kind) -> bool:
        if isinstance(kind, Array) and isinstance(value.kind, Array):
            same = kind.extents == value.kind.extents or (kind.extents == (...,) and len(value.kind.extents) == 1)
            return same and kind.scalar is value.kind.scalar and not isinstance(value, Named)
        return value.kind == kind

    def to_real(self, node: ast.Call) -> Expr:
        self.refuse_if(len(node.args) != 1, node, "real() takes one number")
        argument = node.args[0]
        negative = isinstance(argument, ast.UnaryOp) and isinstance(argument.op, ast.USub)
        bare = argument.operand if isinstance(argument, ast.UnaryOp) and negative else argument
        number = bare.value if isinstance(bare, ast.Constant) else None
        if isinstance(number, (int, float)) and type(number) is not bool:
            whole = type(number) is int
            self.refuse_if(
                not whole and number > LARGEST,
                node,
                f"{number} is infinite in float32; use a Constant with a value for each precision",
            )
            self.refuse_if(
                whole and number > INDEX_MAX, node, f"{number} does not fit in int32; write it as real({number}.0)"
            )
            if negative and not whole and number == 0:  # -0.0 remains an operation, as in ``of_UnaryOp``
                return Unary(node.lineno, Real, "-", Literal(node.lineno, Real, number))
            return Literal(node.lineno, Real, float(-number if negative else number))
        value = self.value(argument)
        self.refuse_if(
            isinstance(value, Member), node, "Numba cannot convert an enumeration's member to real; write its number"
        )
        self.refuse_if(value.kind is not Index, node, f"real() takes a literal or an Index, but this is {value.kind}")
        return ToReal(node.lineno, Real, value)

    def length(self, node: ast.Call) -> Expr:
        self.refuse_if(len(node.args) != 1, node, "len() takes one array")
        array = self.value(node.args[0])
        extent = self.want(Array, array.kind, node, "len() takes an array").extents[0]
        moves = isinstance(array, Row) and not isinstance(array.index, Literal)
        self.refuse_if(
            moves, node, "all rows have the same length, and len() is a constant in C; write [0] for the row"
        )
        if isinstance(array, Named):
            return Length(node.lineno, Index, 0, array)
        if not isinstance(extent, (Extent, int)):
            self.refuse(node, "the length of a vector of any length is not known; pass the length as an argument")
        return Length(node.lineno, Index, extent)


def _is_normal(dividend: Expr, divisor: Expr) -> bool:
    """Return whether a quotient is certainly neither subnormal nor -0.

    This is certain if the dividend is not small and the divisor is not large.  If the dividend may be zero, the divisor
    must also not be negative.
    """
    if isinstance(dividend, Literal) and abs(dividend.value) >= 1:
        return _is_moderate(divisor)
    may_be_zero = isinstance(dividend, ToReal) or (isinstance(dividend, Literal) and dividend.value == 0)
    return may_be_zero and _is_moderate(divisor) and not _may_be_negative(divisor)


def _is_moderate(value: Expr) -> bool:
    """Return whether a number is certainly far below the largest real, because it is an index, a literal within int32,
    a square root, or a sum of such numbers.
    """
    match value:
        case Literal(value=number):
            return bool(abs(number) <= INDEX_MAX)
        case Binary(op="+", left=left, right=right):
            return _is_moderate(left) and _is_moderate(right)
        case Call(callee=callee):
            return callee is sqrt
    return isinstance(value, ToReal)


def _may_be_negative(value: Expr) -> bool:
    match value:
        case Literal(value=number):
            return bool(number < 0)
        case Binary(left=left, right=right):
            return _may_be_negative(left) or _may_be_negative(right)
        case Call():
            return False
    return True


def _is_remainder(value: ast.AST) -> bool:
    """Return whether a value is written as a remainder, or as a literal that is not negative."""
    if isinstance(value, ast.Constant):
        return type(value.value) is int and value.value >= 0
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod)
