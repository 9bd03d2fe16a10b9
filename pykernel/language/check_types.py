"""Translate a syntax tree to the typed representation.  Code that could mean different things in Numba and in C is
refused.

Each error message says what was found and what to write instead.  The checks that depend on what callees write are in
``effects``.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import replace
from typing import Any

from pykernel.dialect import (
    INDEX_MAX,
    Array,
    Bool,
    Index,
    Kernel,
    Real,
    Struct,
    Word,
    parts_of,
    unroll,
)
from pykernel.language.expressions import ARITHMETIC, Expressions, in_expressions
from pykernel.language.instead import INSTEAD
from pykernel.language.ir import (
    Assign,
    Binary,
    Call,
    Do,
    Element,
    Expr,
    For,
    Function,
    If,
    Leave,
    Literal,
    Local,
    Member,
    Named,
    Parameter,
    Return,
    Statement,
)

ONLY_RANGE = "all loops must be of the form `for i in range(…)`"


def check_types(kernel: Kernel) -> Function:
    """Return the kernel's typed representation.  Raises DialectError with file, line and advice."""
    return _Typer(kernel).function()


class _Typer(Expressions):
    def function(self) -> Function:
        node, kernel = self.node, self.kernel
        self.spelling(node, kernel.name)
        arguments = node.args
        others = (
            arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or arguments.posonlyargs
        )
        self.refuse_if(others, node, "parameters are positional and have no defaults")
        params = [(argument.arg, self.parameter(argument)) for argument in arguments.args]
        structs = (name for name, kind in params if any(issubclass(part, Struct) for part in parts_of(kind)))
        pointer = next(structs, "")
        self.refuse_if(
            "return" not in kernel.function.__annotations__,
            node,
            "the result has no type; annotate it: -> Real, -> Index, -> Bool or -> None",
        )
        self.returns = in_expressions(kernel.returns)
        self.refuse_if(
            self.returns not in (Real, Index, Word, Bool, None),
            node,
            f"the result is {kernel.returns}; a kernel returns Real, Index, Int, Word, Bool or None",
        )
        body = node.body[1:] if ast.get_docstring(node) else node.body
        statements = self.alternatives() if kernel.choice else self.block(body)
        lost = kernel.returns is not None and not self.ends(statements)
        self.refuse_if(lost, node.body[-1], "not every path returns a value; end with a return")
        self.comments.refuse_lost()
        passed = tuple((name, kind) for name, kind in params if not parts_of(kind))
        return Function(kernel, kernel.doc, passed, pointer, self.returns, statements)

    def parameter(self, argument: ast.arg) -> Any:
        """Return the kind of a parameter, or the struct, configuration or model for which the parameter stands."""
        name, known = argument.arg, self.kernel.params
        self.refuse_if(name not in known, argument, f"parameter {name} has no type; annotate it, e.g. {name}: Real")
        kind = known[name]
        if parts := parts_of(kind):
            seen = [part for other in self.scopes[0].values() for part in parts_of(other)]
            for part in parts:
                self.refuse_if(
                    part in seen,
                    argument,
                    f"a second {part.__name__}: in C there is only one of each struct and config; remove this "
                    "parameter",
                )
        else:
            kind = in_expressions(kind)
            array = isinstance(kind, Array)
            self.refuse_if(
                kind not in (Real, Index, Word, Bool) and not (array and kind.scalar is not Bool),
                argument,
                f"parameter {name} is {kind}; the types are Real, Index, Int, Word, Bool, arrays of numbers, structs and "
                "configs",
            )
            self.refuse_if(
                array and len(kind.extents) > 1,
                argument,
                f"parameter {name} has two dimensions, which C99 cannot pass as const; pass the struct that holds the array",
            )
        self.name_allowed(argument, name)
        self.scopes[0][name] = kind
        return kind

    def alternatives(self) -> tuple[Statement, ...]:
        """Return the body of a kernel that only selects which other kernel is called: branches of an if, each with one
        call.
        """
        line, kernel = self.node.lineno, self.kernel
        body, kinds = self.node.body, kernel.params.values()
        message = "only selects which kernel is called; its body must be a docstring and nothing else"
        self.refuse_if(len(body) > 1 or not ast.get_docstring(self.node), self.node, f"{kernel.name} {message}")
        known = kernel.choice in {name for kind in kinds for part in parts_of(kind) for name in part.fields}
        message = (
            f"{kernel.name} selects a kernel by the field {kernel.choice}, but no parameter has this field; add a parameter whose "
            "type is the model that has the field"
        )
        self.refuse_if(not known, self.node, message)
        args = tuple(
            Local(line, in_expressions(kind), name) for name, kind in kernel.params.items() if not parts_of(kind)
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

    def block(self, body: list[ast.stmt]) -> tuple[Statement, ...]:
        self.scopes.append({})
        result: list[Statement] = []
        for node in body:
            above = self.comments.above(node)
            method = self.method(f"do_{type(node).__name__}", node)
            left = result and isinstance(result[-1], (Return, Leave))
            self.refuse_if(left, node, "this is never reached; remove it")
            statement: Statement = method(node)
            beside = self.comments.beside(node.lineno if hasattr(node, "body") else node.end_lineno or node.lineno)
            result.append(replace(statement, above=above, beside=beside))
        self.scopes.pop()
        return tuple(result)

    def name_allowed(self, node: ast.AST, name: str) -> None:
        """Refuse a name that the function introduces if it could clash in C, or hides a global or built-in name."""
        self.spelling(node, name)
        hides = name in self.space or name in self.builtins
        self.refuse_if(
            hides, node, f"{name} shadows a global of this file or a built-in name of Python; choose another name"
        )

    def do_Assign(self, node: ast.Assign) -> Statement:
        self.refuse_if(len(node.targets) != 1, node, "assign to one name at a time")
        target, value = node.targets[0], self.value(node.value)
        if not isinstance(target, ast.Name):
            return Assign(node.lineno, self.place(target, value.kind), value)
        name, kind = target.id, value.kind
        self.refuse_if(
            isinstance(kind, Array),
            node,
            "a view cannot be named (in C, the name would be a pointer); write the view where its elements are used",
        )
        if kind is None:
            self.refuse(node, f"{ast.unparse(node.value)} has no value")
        known = self.find(name)
        self.refuse_if(name in self.running, node, f"{name} is the variable of a running loop; use another name")
        if known is None:
            self.name_allowed(target, name)
            counts = name in self.counters
            self.refuse_if(counts, node, f"{name} is a loop's variable elsewhere in this function; use two names")
            seen = self.kinds_seen.setdefault(name, kind)
            self.refuse_if(
                seen != kind, node, f"{name} is {seen} elsewhere in this function and {kind} here; use two names"
            )
            self.scopes[-1][name] = kind
        self.refuse_if(
            known not in (None, kind),
            node,
            f"{name} is {known}, but the value is {kind}; convert it, or use another name",
        )
        return Assign(node.lineno, Local(node.lineno, kind, name), value, "", known is None)

    def do_AugAssign(self, node: ast.AugAssign) -> Statement:
        op = ARITHMETIC.get(type(node.op))
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            name = node.target.id
            target: Any = self.value(node.target)
            fixed = not isinstance(target, Local) or name in self.running
            self.refuse_if(fixed, node, f"{name} cannot be changed here")
            self.refuse_if(
                target.kind != value.kind,
                node,
                f"{name} is {target.kind}, but the value is {value.kind}; convert it with real()",
            )
        else:
            target = self.place(node.target, value.kind)
        if op is None or op in ("/", "//", "%"):
            self.refuse(node, INSTEAD.get(type(node.op), f"{op}= is not in the dialect; write the assignment out"))
        self.refuse_if(value.kind is Bool, node, "arithmetic on truth values differs in C; use if")
        return Assign(node.lineno, target, value, op)

    def place(self, node: ast.expr, kind: Any) -> Element:
        self.refuse_if(
            not isinstance(node, ast.Subscript),
            node,
            "assign to a name or to an element, as in s.alpha[i] = …; a struct's scalar is written s.n[0]",
        )
        target = self.value(node)
        if not isinstance(target, Element) or isinstance(target.array, (Named, Parameter)):
            self.refuse(node, "only elements of fields and array parameters can be assigned to; rows and tables cannot")
        self.refuse_if(
            target.kind != kind,
            node,
            f"the element is {target.kind}, but the value is {kind}; convert it with real() or truncate()",
        )
        return target

    def do_Expr(self, node: ast.Expr) -> Statement:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        self.refuse_if(text, node, "text in a body would be lost; write a comment")
        idle = "this does nothing; remove it"
        self.refuse_if(not isinstance(node.value, ast.Call), node, INSTEAD.get(type(node.value), idle))
        call = self.want(Call, self.value(node.value), node, idle)
        self.refuse_if(call.kind is not None, node, f"the result of {call.callee.name} is lost; assign it")
        return Do(node.lineno, call)

    def do_For(self, node: ast.For) -> Statement:
        self.refuse_if(node.orelse, node, "for … else does not exist in C; use a flag")
        call = self.want(ast.Call, node.iter, node, ONLY_RANGE)
        called = self.want(ast.Name, call.func, node, ONLY_RANGE).id
        unrolls = self.space.get(called) is unroll
        self.refuse_if(call.keywords or (called != "range" and not unrolls), node, ONLY_RANGE)
        self.refuse_if(not 1 <= len(call.args) <= 3, node, "range takes one to three numbers")
        name = self.want(ast.Name, node.target, node, "a loop has one variable").id
        self.refuse_if(
            self.find(name) is not None,
            node,
            f"{name} already exists, and its value after the loop would differ between Python and C; use another name",
        )
        self.name_allowed(node.target, name)
        self.refuse_if(
            name in self.kinds_seen and name not in self.counters,
            node,
            f"{name} is assigned elsewhere in this function; use another name for the loop's variable",
        )
        start, stop, step = self.bounds(call)
        self.refuse_if(
            isinstance(stop, Literal) and abs(stop.value + step) > INDEX_MAX,
            node,
            f"{name} would count beyond int32 before the loop ends; choose a bound nearer to 0",
        )
        self.kinds_seen[name] = Index
        self.counters.add(name)
        # in a loop that counts down, every value of the variable is above stop
        known_sign = self.is_nonnegative(start) if step > 0 else isinstance(stop, Literal) and stop.value >= -1
        self.scopes.append({name: Index})
        self.running[name] = known_sign
        body = self.block(node.body)
        del self.running[name]
        self.scopes.pop()
        return For(node.lineno, name, start, stop, step, body, unrolls)

    def bounds(self, call: ast.Call) -> tuple[Expr, Expr, int]:
        """Return start, stop and step of a range."""
        numbers = [self.value(argument) for argument in call.args]
        for argument, number in zip(call.args, numbers, strict=True):
            self.refuse_if(number.kind is not Index, argument, f"range takes Index, but this is {number.kind}")
        if len(numbers) == 1:
            return Literal(call.lineno, Index, 0), numbers[0], 1
        step = self.integer(call.args[2]) if len(numbers) == 3 else 1
        self.refuse_if(step == 0, call.args[-1], "the step must be a literal number that is not zero")
        return numbers[0], numbers[1], step

    def integer(self, node: ast.expr) -> int:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.integer(node.operand)
        return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0

    def do_If(self, node: ast.If) -> Statement:
        return If(node.lineno, self.condition(node.test), self.block(node.body), self.block(node.orelse))

    def do_Break(self, node: ast.Break | ast.Continue) -> Statement:
        return Leave(node.lineno, type(node).__name__.lower())

    do_Continue = do_Break

    def do_Return(self, node: ast.Return) -> Statement:
        value = None if node.value is None else self.value(node.value)
        kind = value.kind if value else None
        if value and kind is None:
            self.refuse(node, f"{ast.unparse(node.value)} has no value; call it in a statement of its own")  # type: ignore[arg-type]
        self.refuse_if(
            kind != self.returns,
            node,
            f"the result is {kind}, but {self.kernel.returns} is declared; convert it, or change the annotation",
        )
        return Return(node.lineno, value)
