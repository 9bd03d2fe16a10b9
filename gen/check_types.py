"""From a syntax tree to the typed representation.  Code that could mean different things in Numba and in C is refused.

Each refusal says what was found and how to write it instead.  Refusals that depend on what callees write are in
``effects``.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import replace
from enum import IntEnum
from typing import Any, NoReturn

import numpy as np

from pykernel.dialect import (
    FLOAT32,
    INDEX_MAX,
    Array,
    Bool,
    Config,
    Constant,
    Extent,
    Index,
    Kernel,
    Model,
    Real,
    Scalar,
    Struct,
    Word,
    is_choice,
    parts_of,
    real,
    unroll,
)
from pykernel.dialect.reserved import C_KEYWORDS
from pykernel.dialect.types import REALS
from pykernel.gen.ir import (
    Assign,
    Binary,
    Call,
    Choice,
    DialectError,
    Do,
    Element,
    Expr,
    Field,
    For,
    Function,
    If,
    Kind,
    Leave,
    Length,
    Literal,
    Local,
    Member,
    Named,
    Parameter,
    Return,
    Row,
    Statement,
    ToReal,
    Unary,
)
from pykernel.gen.read import read

ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
OF_WORDS = {ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&"}
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
INSTEAD = {
    ast.Pow: "** differs between libraries; multiply",
    ast.LShift: "<< is for a Word by an Index; of an Index it differs for negative numbers and wide results: multiply, or use pow2()",
    ast.RShift: ">> is for a Word by an Index; for an Index use floor_shift()",
    ast.BitAnd: "& is for two Words; use `and` for conditions, % for powers of two",
    ast.BitOr: "bit operations are not in the dialect; use `or` for conditions",
    ast.BitXor: "bit operations are not in the dialect; use `and`, `or` and `not` for conditions",
    ast.MatMult: "@ allocates; write the loops",
    ast.While: "while has no bound that C could state; use for … in range(…) with break",
    ast.With: "with has no meaning in C; leave it out",
    ast.Try: "exceptions do not exist on the device; return a status",
    ast.Raise: "exceptions do not exist on the device; return a status",
    ast.Assert: "assertions do not exist on the device; return a status",
    ast.Delete: "nothing is deleted in C; leave it out",
    ast.FunctionDef: "functions are not nested; move it out and mark it @kernel",
    ast.AsyncFunctionDef: "functions are not nested; move it out and mark it @kernel",
    ast.ClassDef: "classes belong to the top of the file",
    ast.Lambda: "functions are not nested; write a @kernel",
    ast.ListComp: "comprehensions allocate; write the loop",
    ast.SetComp: "comprehensions allocate; write the loop",
    ast.DictComp: "comprehensions allocate; write the loop",
    ast.GeneratorExp: "generators allocate; write the loop",
    ast.List: "lists allocate; use a field of a struct or a Constant table",
    ast.Tuple: "tuples have no C type; use separate names",
    ast.Dict: "dictionaries allocate; use fields of a struct",
    ast.Set: "sets allocate; use fields of a struct",
    ast.JoinedStr: "strings do not exist on the device; leave it out",
    ast.Import: "imports belong to the top of the file",
    ast.ImportFrom: "imports belong to the top of the file",
    ast.Global: "the device has no globals; use a field of a struct",
    ast.Nonlocal: "the device has no globals; use a field of a struct",
    ast.AnnAssign: "local types follow from values; write name = value",
    ast.NamedExpr: "the order of side effects differs in C; assign in a statement of its own",
    ast.Slice: "slices are not in the dialect; pass a row as s.v[i], or loop",
    ast.Starred: "each argument is written out in C",
    ast.Pass: "an empty block has no meaning; leave it out",
    ast.Match: "match is not in the dialect; use if / elif",
    ast.Yield: "generators do not exist on the device; write a loop",
    ast.YieldFrom: "generators do not exist on the device; write a loop",
}
# macros and functions that a user's headers may define, and names that compilers predefine in their GNU dialects
RESERVED = C_KEYWORDS | set(
    """offsetof typeof fabs fabsf exp memset memcpy stdin stdout stderr linux unix i386 mips sparc sun""".split()
)
LARGEST = float(np.finfo(np.float32).max)


def check_types(kernel: Kernel) -> Function:
    """The kernel's typed representation.  Raises DialectError with file, line and advice."""
    return _Typer(kernel).function()


def _in_expressions(kind: Any) -> Any:
    """The type that a parameter or a result has in the function.

    Int becomes Index.  A narrow type such as Int8 exists in memory only; it stays as it is, and the caller refuses it.
    """
    narrow = isinstance(kind, Scalar) and kind.stored not in ("", "<i4", "<u4")
    return kind.value if isinstance(kind, Scalar) and not narrow else kind


def _as_word(side: Expr, other: Expr) -> Expr:
    plain = isinstance(side, Literal) and side.kind is Index and side.value >= 0
    return replace(side, kind=Word) if plain and other.kind is Word else side


class _Typer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.node, self.comments = read(kernel)
        self.space = {**kernel.function.__globals__, **kernel.names}
        python = self.space["__builtins__"]  # a module in scripts, its dictionary elsewhere
        self.builtins = python if isinstance(python, dict) else vars(python)
        self.scopes: list[dict[str, Any]] = [{}]  # name -> its kind, or the struct or configuration that it stands for
        self.running: list[str] = []  # variables of the enclosing loops
        self.nonnegative: set[str] = set()  # variables of enclosing loops that are never negative
        self.counters: set[str] = set()  # variables of all loops
        self.kinds_seen: dict[str, Kind] = {}

    def refuse(self, at: ast.AST | int, message: str) -> NoReturn:
        line = at if isinstance(at, int) else getattr(at, "lineno", self.node.lineno)
        raise DialectError(self.kernel.file, line, message)

    # ------------------------------------------------------------------------------------------- the function

    def function(self) -> Function:
        node, kernel = self.node, self.kernel
        self.spelling(node, kernel.name)
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or arguments.posonlyargs:
            self.refuse(node, "parameters are positional and have no defaults")
        pointer = ""
        params = []
        for argument in arguments.args:
            if argument.arg not in kernel.params:
                self.refuse(argument, f"parameter {argument.arg} has no type; annotate it, e.g. {argument.arg}: Real")
            kind = kernel.params[argument.arg]
            if parts := parts_of(kind):
                seen = [part for other in self.scopes[0].values() for part in parts_of(other)]
                for part in parts:
                    if part in seen:
                        self.refuse(argument, f"a second {part.__name__}: in C there is one of each; leave it out")
                if any(issubclass(part, Struct) for part in parts):
                    pointer = pointer or argument.arg
            else:
                kind = _in_expressions(kind)
                if kind not in (Real, Index, Word, Bool) and not (isinstance(kind, Array) and kind.scalar is not Bool):
                    self.refuse(
                        argument,
                        f"parameter {argument.arg} is {kind}; the types are Real, Index, Int, Word, Bool, arrays of numbers, "
                        "structs and configs",
                    )
                if isinstance(kind, Array) and len(kind.extents) > 1:
                    self.refuse(
                        argument,
                        f"parameter {argument.arg} has two dimensions, which C99 cannot pass as const; pass the struct that holds it",
                    )
                params.append((argument.arg, kind))
            self.name_allowed(argument, argument.arg)
            self.scopes[0][argument.arg] = kind
        if "return" not in kernel.function.__annotations__:
            self.refuse(node, "the result has no type; annotate it: -> Real, -> Index, -> Bool or -> None")
        self.returns = _in_expressions(kernel.returns)
        if self.returns not in (Real, Index, Word, Bool, None):
            self.refuse(node, f"the result is {kernel.returns}; a kernel returns Real, Index, Int, Word, Bool or None")
        body = list(node.body)
        if ast.get_docstring(node):
            body = body[1:]
        statements = self.alternatives() if kernel.choice else self.block(body)
        if kernel.returns is not None and not self.ends(statements):
            self.refuse(node.body[-1], "not every path returns a value; end with a return")
        self.comments.refuse_lost()
        return Function(kernel, kernel.doc, tuple(params), pointer, self.returns, statements)

    def alternatives(self) -> tuple[Statement, ...]:
        """The body of a kernel that only chooses which of others is called: one call under each condition."""
        line, kernel = self.node.lineno, self.kernel
        if len(self.node.body) > 1 or not ast.get_docstring(self.node):
            self.refuse(
                self.node, f"{kernel.name} only chooses which kernel is called; leave its docstring alone there"
            )
        if kernel.choice not in {
            name for kind in kernel.params.values() for part in parts_of(kind) for name in part.fields
        }:
            self.refuse(
                self.node, f"{kernel.name} has no {kernel.choice}, by which it chooses; take the model that has it"
            )
        args = tuple(
            Local(line, _in_expressions(kind), name) for name, kind in kernel.params.items() if not parts_of(kind)
        )
        statements: tuple[Statement, ...] = ()
        for called, members in reversed([*zip(kernel.callees(), kernel.members, strict=True)]):
            call = Call(line, self.returns, called, args)
            taken: Statement = Do(line, call) if self.returns is None else Return(line, call)
            if not statements:
                statements = (taken,)
                continue
            tests = [
                Binary(line, Bool, "==", Parameter(line, Index, kernel.choice), Member(line, Index, member))
                for member in members
            ]
            condition: Expr = functools.reduce(lambda left, right: Binary(line, Bool, "or", left, right), tests)
            statements = (If(line, condition, (taken,), statements),)
        return statements

    def ends(self, body: tuple[Statement, ...]) -> bool:
        last = body[-1] if body else None
        if isinstance(last, If):
            return bool(last.orelse) and self.ends(last.body) and self.ends(last.orelse)
        return isinstance(last, Return)

    # --------------------------------------------------------------------------------------------- statements

    def block(self, body: list[ast.stmt]) -> tuple[Statement, ...]:
        self.scopes.append({})
        result: list[Statement] = []
        for node in body:
            above = self.comments.above(node)
            method = getattr(self, f"do_{type(node).__name__}", None)
            if method is None:
                self.refuse(node, INSTEAD.get(type(node), f"{type(node).__name__} is not in the dialect"))
            if result and isinstance(result[-1], (Return, Leave)):
                self.refuse(node, "this is never reached; remove it")
            statement: Statement = method(node)
            beside = self.comments.beside(node.lineno if hasattr(node, "body") else node.end_lineno or node.lineno)
            object.__setattr__(statement, "above", above)
            object.__setattr__(statement, "beside", beside)
            result.append(statement)
        self.scopes.pop()
        return tuple(result)

    def spelling(self, node: ast.AST, name: str) -> None:
        """Refuse a name of a kernel, local, field or parameter that could clash in C."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.endswith("_t"):
            self.refuse(
                node, f"{name} could clash in C; names are lower case, start with a letter and do not end in _t"
            )
        if name in RESERVED:
            self.refuse(node, f"{name} has a meaning in C or C++; choose another name")

    def name_allowed(self, node: ast.AST, name: str) -> None:
        """Refuse a name that the function introduces if it could clash in C, or hides a global or built-in name."""
        self.spelling(node, name)
        if name in self.space or name in self.builtins:
            self.refuse(node, f"{name} shadows a global of this file or of Python; choose another name")

    def find(self, name: str) -> Any:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def do_Assign(self, node: ast.Assign) -> Statement:
        if len(node.targets) != 1:
            self.refuse(node, "one name for each assignment")
        target, value = node.targets[0], self.value(node.value)
        if isinstance(target, ast.Name):
            if isinstance(value.kind, Array):
                self.refuse(node, "a view cannot be named (in C it would be a pointer); use it where it is needed")
            if value.kind is None:
                self.refuse(node, f"{ast.unparse(node.value)} has no value")
            known = self.find(target.id)
            if target.id in self.running:
                self.refuse(node, f"{target.id} is the variable of a running loop; use another name")
            if known is None:
                self.name_allowed(target, target.id)
                if target.id in self.counters:
                    self.refuse(node, f"{target.id} is a loop's variable elsewhere in this function; use two names")
                if self.kinds_seen.setdefault(target.id, value.kind) != value.kind:
                    self.refuse(
                        node,
                        f"{target.id} is {self.kinds_seen[target.id]} elsewhere in this function and {value.kind} here; use two names",
                    )
                self.scopes[-1][target.id] = value.kind
            elif known != value.kind:
                self.refuse(node, f"{target.id} is {known}, the value is {value.kind}; convert it, or use another name")
            return Assign(node.lineno, Local(node.lineno, value.kind, target.id), value, "", known is None)
        return Assign(node.lineno, self.place(target, value.kind), value)

    def do_AugAssign(self, node: ast.AugAssign) -> Statement:
        op = ARITHMETIC.get(type(node.op))
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            target: Any = self.value(node.target)
            if not isinstance(target, Local) or node.target.id in self.running:
                self.refuse(node, f"{node.target.id} cannot be changed here")
            if target.kind != value.kind:
                self.refuse(
                    node, f"{node.target.id} is {target.kind}, the value is {value.kind}; convert it with real()"
                )
        else:
            target = self.place(node.target, value.kind)
        if op is None or op in ("//", "%") or (op == "/" and value.kind is not Real):
            self.refuse(node, INSTEAD.get(type(node.op), f"{op}= is not in the dialect; write the assignment out"))
        if value.kind is Bool:
            self.refuse(node, "arithmetic on truth values differs; use if")
        return Assign(node.lineno, target, value, op)

    def place(self, node: ast.expr, kind: Any) -> Element:
        if not isinstance(node, ast.Subscript):
            self.refuse(node, "assign to a name or to an element, as in s.alpha[i] = …; scalars of a struct are s.n[0]")
        target = self.value(node)
        if not isinstance(target, Element) or isinstance(target.array, (Named, Parameter)):
            self.refuse(node, "only an element can be assigned; rows and tables cannot")
        if target.kind != kind:
            self.refuse(
                node, f"the element is {target.kind}, the value is {kind}; convert it with real() or truncate()"
            )
        return target

    def do_Expr(self, node: ast.Expr) -> Statement:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            self.refuse(node, "text in a body would be lost; write a comment")
        if not isinstance(node.value, ast.Call):
            self.refuse(node, INSTEAD.get(type(node.value), "this does nothing; remove it"))
        call = self.value(node.value)
        if not isinstance(call, Call):
            self.refuse(node, "this does nothing; remove it")
        if call.kind is not None:
            self.refuse(node, f"the result of {call.callee.name} is lost; assign it")
        return Do(node.lineno, call)

    def is_range(self, name: str) -> bool:
        return name == "range" or self.space.get(name) is unroll

    def do_For(self, node: ast.For) -> Statement:
        if node.orelse:
            self.refuse(node, "for … else does not exist in C; use a flag")
        call = node.iter
        if (
            not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and self.is_range(call.func.id))
            or call.keywords
        ):
            self.refuse(node, "only `for i in range(…)` exists in C")
        if not 1 <= len(call.args) <= 3:
            self.refuse(node, "range takes one to three numbers")
        if not isinstance(node.target, ast.Name):
            self.refuse(node, "a loop has one variable")
        name = node.target.id
        if self.find(name) is not None:
            self.refuse(
                node, f"{name} exists already, and would have another value after the loop in C; use another name"
            )
        self.name_allowed(node.target, name)
        if name in self.kinds_seen and name not in self.counters:
            self.refuse(
                node, f"{name} is assigned elsewhere in this function; use another name for the loop's variable"
            )
        numbers = [self.value(argument) for argument in call.args]
        for argument, number in zip(call.args, numbers, strict=True):
            if number.kind is not Index:
                self.refuse(argument, f"range takes Index, this is {number.kind}")
        step = 1
        if len(numbers) == 3:
            step = self.integer(call.args[2])
            if step == 0:
                self.refuse(call.args[2], "the step must be a number that is written out and not zero")
        start = numbers[0] if len(numbers) > 1 else Literal(node.lineno, Index, 0)
        stop = numbers[1] if len(numbers) > 1 else numbers[0]
        if isinstance(stop, Literal) and abs(stop.value + step) > INDEX_MAX:
            self.refuse(node, f"{name} would count beyond int32 before the loop ends; choose a nearer bound")
        self.kinds_seen[name] = Index
        self.counters.add(name)
        # counting down, every value is above stop
        known_sign = self.is_nonnegative(start) if step > 0 else isinstance(stop, Literal) and stop.value >= -1
        self.scopes.append({name: Index})
        self.running.append(name)
        if known_sign:
            self.nonnegative.add(name)
        body = self.block(node.body)
        self.nonnegative.discard(name)
        self.running.pop()
        self.scopes.pop()
        return For(node.lineno, name, start, stop, step, body, call.func.id != "range")

    def integer(self, node: ast.expr) -> int:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.integer(node.operand)
        return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0

    def do_If(self, node: ast.If) -> Statement:
        condition = self.condition(node.test)
        return If(node.lineno, condition, self.block(node.body), self.block(node.orelse))

    def do_Break(self, node: ast.Break) -> Statement:
        return Leave(node.lineno, "break")

    def do_Continue(self, node: ast.Continue) -> Statement:
        return Leave(node.lineno, "continue")

    def do_Return(self, node: ast.Return) -> Statement:
        value = None if node.value is None else self.value(node.value)
        if value and value.kind is None:
            self.refuse(node, f"{ast.unparse(node.value)} has no value; call it in a statement of its own")  # type: ignore[arg-type]
        kind = value.kind if value else None
        if kind != self.returns:
            self.refuse(
                node, f"the result is {kind}, declared is {self.kernel.returns}; convert it, or mend the annotation"
            )
        return Return(node.lineno, value)

    # -------------------------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr) -> Expr:
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            self.refuse(node, INSTEAD.get(type(node), f"{type(node).__name__} is not in the dialect"))
        return method(node)

    def condition(self, node: ast.expr) -> Expr:
        value = self.value(node)
        if value.kind is not Bool:
            self.refuse(node, f"a condition is a truth value, this is {value.kind}; compare it, e.g. with != 0")
        return value

    def of_Constant(self, node: ast.Constant) -> Expr:
        if type(node.value) is bool:
            return Literal(node.lineno, Bool, node.value)
        if type(node.value) is int:
            if abs(node.value) > INDEX_MAX:
                self.refuse(node, f"{node.value} does not fit in int32")
            return Literal(node.lineno, Index, node.value)
        if type(node.value) is float:
            self.refuse(
                node, f"{node.value} has no precision (Numba would compute in float64); write real({node.value})"
            )
        self.refuse(node, f"{node.value!r} is not in the dialect")

    def of_Name(self, node: ast.Name) -> Expr:
        kind = self.find(node.id)
        if kind is not None:
            if isinstance(kind, type):
                self.refuse(node, f"{node.id} is a struct; use its fields, or pass it on as an argument")
            return Local(node.lineno, kind, node.id)
        if node.id in self.kinds_seen:
            self.refuse(node, f"{node.id} has no value on every path to here; assign it before the block")
        value = self.space.get(node.id)
        if isinstance(value, Constant):
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", node.id):
                self.refuse(node, f"{node.id} becomes a macro in C; constants are upper case")
            for precision in REALS.values():
                with np.errstate(over="ignore"):
                    rounded = np.asarray(value.value(precision))
                if rounded.ndim > 1 or not rounded.size or not np.isfinite(rounded).all():
                    self.refuse(
                        node, f"{node.id} is not a finite number or a table of them in {precision}; give such values"
                    )
            if not value.is_table:
                if value.scalar is not Real:
                    self.refuse(node, f"{node.id} is a whole number; write {node.id} = {value.value(FLOAT32)}")
                return Named(node.lineno, Real, node.id, value)
            lengths = {len(values) for values in value.by_precision.values()}
            extent = lengths.pop() if len(lengths) == 1 else ...
            return Named(node.lineno, Array(value.scalar, (extent,)), node.id, value)
        if type(value) is int:
            if abs(value) > INDEX_MAX:
                self.refuse(node, f"{node.id} = {value} does not fit in int32")
            return Literal(node.lineno, Index, value)
        if isinstance(value, float):
            self.refuse(node, f"{node.id} has no precision; define it as Constant({value})")
        if value is None and node.id not in self.space:
            self.refuse(node, f"{node.id} is not defined")
        self.refuse(
            node,
            f"{node.id} is a {type(value).__name__}, which has no meaning in C; make it a field, a parameter or a Constant",
        )

    def of_Attribute(self, node: ast.Attribute) -> Expr:
        if isinstance(node.value, ast.Name):
            owner = self.find(node.value.id)
            if isinstance(owner, type) and issubclass(owner, Model):
                if node.attr not in owner.owners:
                    self.refuse(node, f"{owner.__name__} has no field {node.attr}")
                owner = owner.owners[node.attr]
            if isinstance(owner, type) and issubclass(owner, Config):
                if node.attr not in owner.fields:
                    self.refuse(node, f"{owner.__name__} has no field {node.attr}")
                self.spelling(node, node.attr)
                kind = owner.fields[node.attr]
                return Parameter(node.lineno, (Bool if kind is bool else Index) if is_choice(kind) else kind, node.attr)
            if isinstance(owner, type) and issubclass(owner, Struct):
                if node.attr not in owner.fields:
                    self.refuse(node, f"{owner.__name__} has no field {node.attr}")
                self.spelling(node, node.attr)
                return Field(node.lineno, owner.fields[node.attr], owner, node.attr)
            enum = self.space.get(node.value.id) if owner is None else None
            if isinstance(enum, type) and issubclass(enum, IntEnum):
                if node.attr not in enum.__members__:
                    self.refuse(node, f"{enum.__name__} has no member {node.attr}")
                return Member(node.lineno, Index, enum[node.attr])
        self.refuse(
            node,
            f"{ast.unparse(node)} is not in the dialect; attributes are fields of structs, configs and enumerations",
        )

    def of_Subscript(self, node: ast.Subscript) -> Expr:
        array = self.value(node.value)
        if not isinstance(array.kind, Array):
            self.refuse(node, f"{ast.unparse(node.value)} is not an array")
        positions = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = tuple(self.value(position) for position in positions)
        for position, index in zip(positions, indices, strict=True):
            if index.kind is not Index:
                self.refuse(position, f"a position is Index, this is {index.kind}")
            if (isinstance(index, Unary) and index.op == "-") or (isinstance(index, Literal) and index.value < 0):
                self.refuse(
                    position, "negative positions count from the end in Python and are undefined in C; use len(…) - 1"
                )
        if isinstance(array, (Row, Element)):
            self.refuse(node, "write both positions in one pair of brackets, as in s.m[i, j]")
        for position, index, extent in zip(positions, indices, array.kind.extents, strict=False):
            if extent == 1 and not isinstance(index, Literal):
                self.refuse(position, "there is one element, and C does not look at its position; write [0]")
            shortest = self.shortest(array) if isinstance(array, Named) else extent
            if isinstance(index, Literal) and isinstance(shortest, int) and index.value >= shortest:
                self.refuse(position, f"position {index.value} of {shortest}; the last one is {shortest - 1}")
        if len(indices) == len(array.kind.extents):
            return Element(node.lineno, array.kind.scalar.value, array, indices)
        if len(indices) < len(array.kind.extents) and isinstance(array, (Field, Parameter)):
            return Row(node.lineno, Array(array.kind.scalar, array.kind.extents[1:]), array, indices[0])
        self.refuse(node, f"{ast.unparse(node.value)} has {len(array.kind.extents)} dimension(s)")

    def shortest(self, table: Named) -> int:
        return min(len(values) for values in table.constant.by_precision.values())

    def of_UnaryOp(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            return Unary(node.lineno, Bool, "not", self.condition(node.operand))
        if not isinstance(node.op, ast.USub):
            self.refuse(node, "only - and not exist as unary operators")
        operand = self.value(node.operand)
        if operand.kind not in (Real, Index):
            self.refuse(node, f"- of {operand.kind}")
        if isinstance(operand, Literal) and (operand.kind is Index or operand.value != 0):
            return Literal(node.lineno, operand.kind, -operand.value)
        # -0.0 stays an operation: as a literal it would be equal to 0.0
        return Unary(node.lineno, operand.kind, "-", operand)

    def of_BinOp(self, node: ast.BinOp) -> Expr:
        left, right = self.value(node.left), self.value(node.right)
        if type(node.op) in OF_WORDS and left.kind is Word:
            return self.of_words(node, OF_WORDS[type(node.op)], left, right)
        op = ARITHMETIC.get(type(node.op))
        if op is None:
            self.refuse(node, INSTEAD.get(type(node.op), f"{type(node.op).__name__} is not in the dialect"))
        left, right = self.same_numbers(node, left, right)
        if op == "/" and left.kind is not Real:
            self.refuse(
                node, "/ of integers is real in Python and truncated in C; use // for positions, real() for numbers"
            )
        if op in ("//", "%"):
            if left.kind is not Index:
                self.refuse(node, f"{op} is of Index, this is {left.kind}; use truncate() or index()")
            if not self.is_nonnegative(left) or not (
                isinstance(right, Length) or (isinstance(right, Literal) and right.value > 0)
            ):
                self.refuse(
                    node,
                    f"{op} rounds differently for negative numbers; the left side must be sure not to be negative "
                    "(loop variables, lengths, literals, sums and products of them, remainders), the right a positive literal or len(…)",
                )
        return Binary(node.lineno, left.kind, op, left, right)

    def of_words(self, node: ast.BinOp, op: str, left: Expr, right: Expr) -> Expr:
        """A shift of a Word by an Index, or the bitwise and of two Words."""
        if op in ("<<", ">>") and (
            right.kind is not Index or (isinstance(right, Literal) and not 0 <= right.value <= 31)
        ):
            self.refuse(node, f"a Word is shifted by an Index from 0 to 31, this is {ast.unparse(node.right)}")
        if op == "&":
            left, right = self.same_numbers(node, left, right)
        return Binary(node.lineno, Word, op, left, right)

    def same_numbers(self, node: ast.AST, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Both sides with one common type; other types are refused.  A literal beside a Word becomes a Word."""
        for side in (left, right):
            if side.kind not in (Real, Index, Word):
                self.refuse(node, f"arithmetic and order need numbers, this is {side.kind}")
        left, right = _as_word(left, right), _as_word(right, left)
        if left.kind is not right.kind:
            self.refuse(
                node,
                f"{left.kind} with {right.kind}: Numba and C promote differently; convert with "
                + ("word() or index()" if Word in (left.kind, right.kind) else "real() or truncate()"),
            )
        return left, right

    def is_nonnegative(self, value: Expr) -> bool:
        if isinstance(value, Literal):
            return bool(value.value >= 0)
        if isinstance(value, Local):
            return value.name in self.nonnegative or value.name in self.remainders
        if isinstance(value, Binary) and value.op in ("+", "*", "//", "%"):
            return self.is_nonnegative(value.left) and self.is_nonnegative(value.right)
        if isinstance(value, Choice):
            # such as: a if a > 0 else 1
            test, positive = value.condition, self.is_nonnegative(value.yes)
            if isinstance(test, Binary) and test.op in (">", ">=") and test.left == value.yes:
                positive = positive or self.is_nonnegative(test.right)
            return positive and self.is_nonnegative(value.no)
        return isinstance(value, Length)

    @property
    def remainders(self) -> set[str]:
        """Locals that are never negative: every assignment is a remainder or a literal that is not negative."""
        if not hasattr(self, "_remainders"):
            self._remainders: set[str] = set()
            names = {n.id for n in ast.walk(self.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            self._remainders = {name for name in names - set(self.kernel.params) if self.only_remainders(name)}
        return self._remainders

    def only_remainders(self, name: str) -> bool:
        for node in ast.walk(self.node):
            if (
                isinstance(node, (ast.For, ast.AugAssign))
                and isinstance(node.target, ast.Name)
                and node.target.id == name
            ):
                return False
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
                value = node.value
                literal = isinstance(value, ast.Constant) and type(value.value) is int and value.value >= 0
                if not literal and not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod)):
                    return False
        return True

    def of_Compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) != 1:
            self.refuse(node, "a < b < c means something else in C; write a < b and b < c")
        op = COMPARISONS.get(type(node.ops[0]))
        if op is None:
            self.refuse(node, "`is` and `in` do not exist in C; compare with ==")
        left, right = self.value(node.left), self.value(node.comparators[0])
        left, right = self.same_numbers(node, left, right)
        return Binary(node.lineno, Bool, op, left, right)

    def of_BoolOp(self, node: ast.BoolOp) -> Expr:
        op = "and" if isinstance(node.op, ast.And) else "or"
        result = self.condition(node.values[0])
        for value in node.values[1:]:
            result = Binary(node.lineno, Bool, op, result, self.condition(value))
        return result

    def of_IfExp(self, node: ast.IfExp) -> Expr:
        condition, yes, no = self.condition(node.test), self.value(node.body), self.value(node.orelse)
        if yes.kind != no.kind or yes.kind not in (Real, Index, Word, Bool):
            self.refuse(node, f"one side is {yes.kind}, the other {no.kind}; both need the same scalar type")
        return Choice(node.lineno, yes.kind, condition, yes, no)

    def of_Call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name):
            self.refuse(node, f"{ast.unparse(node.func)} is not a kernel; call @kernel functions by name")
        if node.keywords:
            self.refuse(node, "C has no keyword arguments; pass them in order")
        name = node.func.id
        if self.find(name) is not None:
            self.refuse(node, f"{name} is a variable, not a kernel")
        callee = self.space.get(name)
        if callee is real:
            return self.to_real(node)
        if name == "len":
            return self.length(node)
        if not isinstance(callee, Kernel):
            instead = {
                "abs": "absolute()",
                "int": "truncate()",
                "float": "real()",
                "min": "if",
                "max": "if",
                "print": "a status",
                "pow": "*",
            }
            self.refuse(
                node, f"{name} is not a kernel" + (f"; use {instead[name]}" if name in instead else "; mark it @kernel")
            )
        if len(node.args) != len(callee.params):
            self.refuse(node, f"{name} takes {len(callee.params)} arguments, not {len(node.args)}")
        args = []
        for argument, (param, kind) in zip(node.args, callee.params.items(), strict=True):
            if wanted := parts_of(kind):
                own = parts_of(self.find(argument.id)) if isinstance(argument, ast.Name) else ()
                if missing := [part.__name__ for part in wanted if part not in own]:
                    self.refuse(argument, f"{param} of {name} takes this function's own {' and '.join(missing)}")
                continue
            value, kind = self.value(argument), _in_expressions(kind)
            if not self.fits(value, kind):
                self.refuse(
                    argument,
                    f"{param} of {name} is {kind}, this is {value.kind}; convert it with real(), truncate(), word() or index()",
                )
            args.append(value)
        return Call(node.lineno, _in_expressions(callee.returns), callee, tuple(args))

    def fits(self, value: Expr, kind: Kind) -> bool:
        if isinstance(kind, Array) and isinstance(value.kind, Array):
            if isinstance(value, Named):
                return False
            same = kind.extents == value.kind.extents or (kind.extents == (...,) and len(value.kind.extents) == 1)
            return kind.scalar is value.kind.scalar and same
        return value.kind == kind

    def to_real(self, node: ast.Call) -> Expr:
        if len(node.args) != 1:
            self.refuse(node, "real() takes one number")
        argument = node.args[0]
        negative = isinstance(argument, ast.UnaryOp) and isinstance(argument.op, ast.USub)
        bare = argument.operand if isinstance(argument, ast.UnaryOp) and negative else argument
        if isinstance(bare, ast.Constant) and type(bare.value) is float:
            if bare.value > LARGEST:
                self.refuse(
                    node, f"{bare.value} is infinite in float32; use a Constant with a value for each precision"
                )
            literal = Literal(node.lineno, Real, bare.value)
            if negative:
                return (
                    Unary(node.lineno, Real, "-", literal) if bare.value == 0 else replace(literal, value=-bare.value)
                )
            return literal
        if isinstance(bare, ast.Constant) and type(bare.value) is int:
            if bare.value > INDEX_MAX:
                self.refuse(node, f"{bare.value} does not fit in int32; write it as real({bare.value}.0)")
            return Literal(node.lineno, Real, float(-bare.value if negative else bare.value))
        value = self.value(argument)
        if isinstance(value, Member):
            self.refuse(node, "Numba makes no real of an enumeration's member; write its number")
        if value.kind is not Index:
            self.refuse(node, f"real() takes a literal or an Index, this is {value.kind} already")
        return ToReal(node.lineno, Real, value)

    def length(self, node: ast.Call) -> Expr:
        if len(node.args) != 1:
            self.refuse(node, "len() takes one array")
        array = self.value(node.args[0])
        if not isinstance(array.kind, Array):
            self.refuse(node, "len() takes an array")
        if isinstance(array, Row) and not isinstance(array.index, Literal):
            self.refuse(node, "in C, len() does not look at the position; write [0]")
        extent = array.kind.extents[0]
        if isinstance(array, Named):
            return Length(node.lineno, Index, 0, array)
        if not isinstance(extent, (Extent, int)):
            self.refuse(node, "the length of a vector of any length is not known; pass it as an argument")
        return Length(node.lineno, Index, extent)
