"""Fold one model's choices into the code: decide branches, unroll loops over short tables, and remove the code that is
then unused.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pykernel.dialect import INDEX_MAX, Array, Bool, Index, Precision, Real
from pykernel.language.effects import effects
from pykernel.language.ir import (
    Assign,
    Binary,
    Call,
    Choice,
    Do,
    Element,
    Expr,
    Field,
    For,
    Function,
    Functions,
    If,
    Leave,
    Length,
    Literal,
    Local,
    Member,
    Named,
    Parameter,
    Return,
    Statement,
    Unary,
    rewrite,
    walk,
)

Body = tuple[Statement, ...]
UNROLLED = 16
"""A loop over a constant table is unrolled if it has at most this many iterations."""


@dataclass(frozen=True)
class Specialised:
    """The remaining functions, callees first, and the fields that no remaining function reads."""

    functions: Functions
    unread: frozenset[str]


def specialise(
    functions: Functions, roots: Iterable[str], choices: dict[str, Any], precision: Precision, fields: Iterable[str]
) -> Specialised:
    """Return the functions that the roots need, for one model's choices.

    choices: the configuration's choices, name -> value.  fields: all fields of the model's structs.
    """
    roots = list(roots)
    passes: list[Callable[[Functions], Functions]] = [
        lambda fs: reached_from(fs, roots, lambda f: _folded(f, choices, precision)),
        lambda fs: _inline_trivial(fs, roots),
        lambda fs: {name: f.made("without copies", functools.partial(_without_copies, f)) for name, f in fs.items()},
        lambda fs: _bind_constant_arguments(fs, roots),
        _drop_idle_calls,
        lambda fs: _drop_unread_fields(fs, fields),
        _drop_unused_locals,
        lambda fs: _drop_unused_parameters(fs, roots),
        lambda fs: reached_from(fs, roots),
    ]
    while True:
        before = functions
        for step in passes:
            functions = step(functions)
        if functions == before:
            return Specialised(functions, frozenset(fields).difference(*(f.names[Field] for f in functions.values())))


# ----------------------------------------------------------------------------------------------------- folding

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


IDLE = {"+": 0, "-": 0, "*": 1, "//": 1}
"""Operation on integers -> the right operand with which the operation changes nothing."""
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _folded(function: Function, choices: dict[str, Any], precision: Precision) -> Function:
    """Return the function with its choices folded.  Models share the result if they have the same values of the choices
    that the function reads.
    """
    own = {name: choices[name] for name in function.names[Parameter] if name in choices}
    return function.made(("folded", precision, frozenset(own.items())), lambda: _fold(function, own, precision))


def _fold(function: Function, choices: dict[str, Any], precision: Precision) -> Function:
    def change(node: Any) -> Any:
        match node:
            case Parameter(kind=kind, name=name) if name in choices:
                return Literal(node.line, kind, bool(choices[name]) if kind is Bool else int(choices[name]))
            case Length(table=Named(constant=constant)):
                return Literal(node.line, Index, len(constant.value(precision)))
            case Element(array=Named() as table, indices=(Literal(value=position), *_)):
                return _table_element(node, table, position, precision)
            case Binary():
                return _fold_binary(node)
            case Unary(op="not", operand=Literal(value=value)):
                return Literal(node.line, Bool, not value)
            case Choice(condition=Literal(value=value)):
                return node.yes if value else node.no
            case Assign(target=target, value=value, op="") if value == target:
                return ()
            case If(condition=Literal(value=value)):
                taken = node.body if value else node.orelse
                if taken and node.above:  # the comment moves to the statements that remain
                    return (replace(taken[0], above=node.above + taken[0].above), *taken[1:])
                return taken
            case If(body=(), orelse=()) | For(body=()):
                return ()
            case If(body=()):
                return replace(node, condition=negated(node.condition), body=node.orelse, orelse=())
            case For():
                return _unroll(node)
        return node

    return _with_body(function, _declare_once(_cut(rewrite(function.body, change))))


def _with_body(function: Function, body: Body) -> Function:
    """Return the function with this body.

    If the body is unchanged, the result is the same object, so that passes see that nothing changed.
    """
    return function if body is function.body else replace(function, body=body)


def _table_element(node: Element, table: Named, position: int, precision: Precision) -> Expr:
    values = table.constant.value(precision)
    if not 0 <= position < len(values):
        return node  # an index outside the table can only be in a branch that is never taken
    if table.constant.scalar is not Real:
        return Literal(node.line, node.kind, int(values[position]))
    value = float(values[position])
    if value == 0 and math.copysign(1, value) < 0:
        return Unary(node.line, Real, "-", Literal(node.line, Real, 0.0))
    return Literal(node.line, Real, value)


def negated(condition: Expr) -> Expr:
    if isinstance(condition, Unary) and condition.op == "not":
        return condition.operand
    return Unary(condition.line, Bool, "not", condition)


def _fold_binary(node: Binary) -> Expr:
    left, right = node.left, node.right
    values = [side.value if isinstance(side, (Literal, Member)) else None for side in (left, right)]
    if node.op in COMPARE and None not in values and left.kind is Index:
        return Literal(node.line, Bool, COMPARE[node.op](*map(int, values)))  # type: ignore[arg-type]
    if node.op in COMPARE and left.kind is Index and left == right:  # not for reals, because NaN is not equal to itself
        return Literal(node.line, Bool, COMPARE[node.op](0, 0))
    if node.op in ARITHMETIC and isinstance(left, Literal) and isinstance(right, Literal) and left.kind is Index:
        result = ARITHMETIC[node.op](left.value, right.value)
        return Literal(node.line, Index, result) if abs(result) <= INDEX_MAX else node
    if node.kind is not Real and node.op in IDLE:
        if isinstance(right, Literal) and right.value == IDLE[node.op]:
            return left
        if isinstance(left, Literal) and left.value == IDLE[node.op] and node.op in ("+", "*"):
            return right
    if node.op in ("and", "or"):
        stop = node.op == "or"
        if isinstance(left, Literal):
            return left if left.value is stop else right
        if isinstance(right, Literal) and right.value is not stop:
            return left
    return node


def _unroll(loop: For) -> Any:
    """Unroll a loop over a short constant table, if the loop's bounds are literals after folding."""
    indexed = {
        n.indices[0].name
        for n in walk(loop.body)
        if isinstance(n, Element) and isinstance(n.array, Named) and isinstance(n.indices[0], Local)
    }
    if loop.variable not in indexed or not isinstance(loop.start, Literal) or not isinstance(loop.stop, Literal):
        return loop
    turns = range(loop.start.value, loop.stop.value, loop.step)
    if len(turns) > UNROLLED or any(
        isinstance(n, Leave) or (isinstance(n, Assign) and n.declares) for n in walk(loop.body)
    ):
        return loop
    written: list[Statement] = []
    for turn in turns:
        body = _substitute(loop.body, loop.variable, Literal(loop.line, Index, turn))
        if turn != turns[0]:
            body = tuple(replace(statement, above=(), beside="") for statement in body)
        written.extend(body)
    return tuple(written)


def _substitute(body: Body, name: str, value: Expr) -> Body:
    return rewrite(body, lambda n: value if isinstance(n, Local) and n.name == name else n)  # type: ignore[no-any-return]


def _cut(body: Body) -> Body:
    """Drop the statements after a return, break or continue."""
    kept: list[Statement] = []
    for statement in body:
        kept.append(_inside(statement, _cut))
        if _leaves(kept[-1]):
            break
    return _one_of(body, kept)


def _inside(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """Return the statement with ``change`` applied to its blocks, or the same object if nothing changed."""
    blocks = {name: block for name in ("body", "orelse") if (block := getattr(statement, name, None)) is not None}
    changed: dict[str, Any] = {name: new for name, block in blocks.items() if (new := change(block)) is not block}
    return replace(statement, **changed) if changed else statement


def _one_of(body: Body, kept: list[Statement]) -> Body:
    """Return the kept statements as a body, or ``body`` itself if these are all of its statements."""
    same = len(kept) == len(body) and all(a is b for a, b in zip(kept, body, strict=True))
    return body if same else tuple(kept)


def _declare_once(body: Body, names: frozenset[str] = frozenset()) -> Body:
    """Let only the first assignment to a name declare it, because folding may have merged blocks that declare the same
    name.
    """
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Assign) and statement.declares and isinstance(statement.target, Local):
            name = statement.target.name
            if name in names:
                statement = replace(statement, declares=False)
            names |= {name}
        else:
            statement = _inside(statement, functools.partial(_declare_once, names=names))
        result.append(statement)
    return _one_of(body, result)


def _leaves(statement: Statement) -> bool:
    if isinstance(statement, If):
        return (
            bool(statement.body and statement.orelse) and _leaves(statement.body[-1]) and _leaves(statement.orelse[-1])
        )
    return isinstance(statement, (Return, Leave))


# ------------------------------------------------------------------------------------------- between functions


def _changed(f: Function, concerned: Callable[[Any], bool], change: Callable[[Any], Any]) -> Function:
    """Return the function with ``change`` applied to the nodes for which ``concerned`` is true."""
    return _with_body(f, rewrite(f.body, lambda node: change(node) if concerned(node) else node))


def _inline_trivial(functions: Functions, roots: list[str]) -> Functions:
    """Inline the functions whose body is only a simple return or call (see ``_only_value``)."""
    calls = Counter(call.callee.name for f in functions.values() for call in f.calls)
    trivial = {}
    for name, f in functions.items():
        value = _only_value(f, calls[name] == 1)
        if name not in roots and value is not None and not f.kernel.dsp:
            trivial[name] = (f.params, value)

    def change(node: Any) -> Any:
        params, value = trivial[node.callee.name]
        given = {param: argument for (param, _), argument in zip(params, node.args, strict=True)}
        return rewrite(value, lambda n: given.get(n.name, n) if isinstance(n, Local) else n)

    def concerned(node: Any) -> bool:
        if not isinstance(node, Call) or node.callee.name not in trivial:
            return False
        simple = isinstance(trivial[node.callee.name][1], (Call, Local, Literal, Parameter, Member))
        return simple or all(isinstance(a, (Local, Literal, Parameter, Member, Element)) for a in node.args)

    return {
        name: _changed(f, concerned, change) if any(map(concerned, f.calls)) else f for name, f in functions.items()
    }


def _only_value(f: Function, once: bool) -> Expr | None:
    """Return the expression of a function whose body is only one return or one call, or None for other functions.

    The expression is a parameter, a constant, or a call whose arguments are parameters, constants or fields.  If the
    function is called once, the expression may also be a condition.
    """
    match f.body:
        case (Return(value=Local() | Literal() | Parameter() | Member() as value),):
            return value
        case (Return(value=Binary() | Unary() as value),) if once and f.returns is Bool:
            return value
        case (Return(value=Call() as call),) | (Do(call=call),):
            simple = all(isinstance(a, (Local, Literal, Parameter, Member, Field)) for a in call.args)
            # each parameter may occur only once, because otherwise its argument, an expression, would be evaluated
            # twice
            passed = [a.name for a in call.args if isinstance(a, Local)]
            return call if simple and len(set(passed)) == len(passed) else None
    return None


def _without_copies(function: Function) -> Function:
    """Return the function without the locals that only hold a constant, or that only pass a value to the next
    statement.
    """
    assigned: dict[str, list[Assign]] = {}
    reads: dict[str, int] = {}
    for node in walk(function.body):
        if isinstance(node, Assign) and isinstance(node.target, Local):
            assigned.setdefault(node.target.name, []).append(node)
            # the target of an assignment does not count as a read
            reads[node.target.name] = reads.get(node.target.name, 0) - 1
        elif isinstance(node, Local):
            reads[node.name] = reads.get(node.name, 0) + 1
    parameters = {name for name, _ in function.params}
    once = {
        name: assignments[0]
        for name, assignments in assigned.items()
        if len(assignments) == 1 and name not in parameters
    }
    constants = {
        name: only.value for name, only in once.items() if isinstance(only.value, (Literal, Member)) and not only.op
    }

    def change(node: Any) -> Any:
        if isinstance(node, Local):
            return constants.get(node.name, node)
        # drop the assignment whose target has just been replaced by its constant
        return () if isinstance(node, Assign) and isinstance(node.target, (Literal, Member)) else node

    body = rewrite(function.body, change) if constants else function.body
    carried = frozenset(name for name, only in once.items() if reads[name] == 1 and not only.op)
    return _with_body(function, _carry(body, carried))


def _carry(body: Body, carried: frozenset[str]) -> Body:
    kept: list[Statement] = []
    for following in body:
        statement = _inside(following, functools.partial(_carry, carried=carried))
        before = kept[-1] if kept else None
        if isinstance(before, Assign) and isinstance(before.target, Local) and not before.op and not before.beside:
            joined = _joined(before, before.target.name, statement, carried)
            if joined is not None:
                kept[-1] = replace(joined, above=before.above + joined.above)
                continue
        kept.append(statement)
    return _one_of(body, kept)


def _joined(before: Assign, name: str, statement: Statement, carried: frozenset[str]) -> Statement | None:
    """Return both statements joined into one if the first only computes a value for the second, or only assigns a
    constant that the second overwrites; else None.
    """
    match statement:
        case Return(value=Local(name=found)) if found == name:
            return replace(statement, value=before.value) if before.declares else None
        case If(condition=Local(name=found)) if found == name and name in carried:
            return replace(statement, condition=before.value)
        case If(condition=Unary(op="not", operand=operand)) if operand == before.target and name in carried:
            return replace(statement, condition=negated(before.value))
        case Assign(target=target, value=value, op="") if target == before.target:
            idle = isinstance(before.value, (Literal, Member))
            if idle and not any(isinstance(n, Local) and n.name == name for n in walk(value)):
                return replace(statement, declares=before.declares)
    return None


def _bind_constant_arguments(functions: Functions, roots: list[str]) -> Functions:
    """Replace each parameter that always receives the same constant with this constant."""
    received: dict[tuple[str, int], set[Expr | None]] = {}
    for f in functions.values():
        for place, constants in f.made("passed constants", functools.partial(_passed_constants, f)).items():
            received.setdefault(place, set()).update(constants)
    changed = dict(functions)
    for (name, i), values in received.items():
        value = values.pop() if len(values) == 1 else None
        if name in functions and name not in roots and value is not None:
            param, kind = functions[name].params[i]
            targets = (n.target for n in walk(functions[name].body) if isinstance(n, Assign))
            changes = any(isinstance(target, Local) and target.name == param for target in targets)
            if not changes and not isinstance(kind, Array):
                changed[name] = replace(changed[name], body=_substitute(changed[name].body, param, value))
    return changed


def _passed_constants(f: Function) -> dict[tuple[str, int], set[Expr | None]]:
    """Return the constants that a function passes to its callees: (callee's name, position) -> arguments, where None
    stands for an argument that is not constant.
    """
    passed: dict[tuple[str, int], set[Expr | None]] = {}
    for call in f.calls:
        for i, argument in enumerate(call.args):
            constant = argument if isinstance(argument, (Literal, Member, Parameter, Named)) else None
            passed.setdefault((call.callee.name, i), set()).add(constant)
    return passed


def _writing(functions: Functions) -> frozenset[str]:
    return frozenset(name for name, e in effects(functions).items() if e.writes)


def _drop_idle_calls(functions: Functions) -> Functions:
    """Remove calls that write nothing and whose result is not used."""
    writing = _writing(functions)

    def idle(node: Any) -> bool:
        return isinstance(node, Do) and node.call.callee.name not in writing

    return {
        name: f.made(("without idle calls", f.called & writing), functools.partial(_changed, f, idle, lambda n: ()))
        for name, f in functions.items()
    }


def _drop_unread_fields(functions: Functions, fields: Iterable[str]) -> Functions:
    """Remove writes to fields that no function reads."""
    known = effects(functions)
    unread = frozenset(fields).difference(*(e.reads for e in known.values()))

    def writes_unread(node: Any) -> bool:
        array = node.target.array if isinstance(node, Assign) and isinstance(node.target, Element) else None
        return isinstance(array, Field) and array.name in unread

    return {
        name: f if known[name].fields.isdisjoint(unread) else _changed(f, writes_unread, lambda n: ())
        for name, f in functions.items()
    }


def _drop_unused_locals(functions: Functions) -> Functions:
    """Remove assignments to locals that nothing reads.  If the value is a call that writes to memory, the call stays."""
    writing = _writing(functions)
    return {
        name: f.made(
            ("without unused locals", f.called & writing), functools.partial(_without_unused_locals, f, writing)
        )
        for name, f in functions.items()
    }


def _without_unused_locals(function: Function, writing: frozenset[str]) -> Function:
    """Return the function without the assignments to locals that nothing reads.  writing: names of the functions that
    write to memory.
    """

    def writes(value: Expr) -> bool:
        return isinstance(value, Call) and value.callee.name in writing

    def reads(body: Body) -> set[str]:
        """Return the names of the locals that these statements read."""
        read: set[str] = set()
        for node in walk(body):
            if isinstance(node, Statement):
                values = [value for name, value in vars(node).items() if isinstance(value, Expr) and name != "target"]
                found = {n.name for value in values for n in walk(value) if isinstance(n, Local)}
                if isinstance(node, Assign):
                    if isinstance(node.target, Element):
                        found |= {n.name for n in walk(node.target) if isinstance(n, Local)}
                    elif not writes(node.value):
                        found.discard(node.target.name)  # in `n = n + 1`, the read of n does not count
                read |= found
        return read

    def drop(body: Body, unread: frozenset[str]) -> Body:
        # for each statement, from the last to the first: the names that are read after it
        later: list[set[str]] = [set()]
        for statement in body[:0:-1]:
            later.append(later[-1] | reads((statement,)))
        kept: list[Statement] = []
        for statement in body:
            behind = later.pop()
            if isinstance(statement, Assign) and isinstance(statement.target, Local):
                name = statement.target.name
                if statement.declares:  # another block may have a local of the same name
                    unread = unread - {name} if name in behind else unread | {name}
                if name in unread:
                    if writes(statement.value):
                        call: Any = statement.value
                        kept.append(Do(statement.line, call, above=statement.above, beside=statement.beside))
                    continue
            kept.append(_inside(statement, functools.partial(drop, unread=unread)))
        return _one_of(body, kept)

    unread = frozenset(name for name, _ in function.params) - reads(function.body)
    return _with_body(function, drop(function.body, unread))


def _drop_unused_parameters(functions: Functions, roots: list[str]) -> Functions:
    unused: dict[str, list[int]] = {}
    for name, f in functions.items():
        used = f.names[Local]
        unused[name] = [i for i, (param, _) in enumerate(f.params) if param not in used and name not in roots]

    def change(node: Any) -> Any:
        return replace(node, args=tuple(a for i, a in enumerate(node.args) if i not in unused[node.callee.name]))

    def concerned(node: Any) -> bool:
        return isinstance(node, Call) and bool(unused.get(node.callee.name))

    changed = {
        name: _changed(f, concerned, change) if any(map(concerned, f.calls)) else f for name, f in functions.items()
    }
    return {
        name: replace(f, params=tuple(p for i, p in enumerate(f.params) if i not in unused[name]))
        if unused[name]
        else f
        for name, f in changed.items()
    }


def reached_from(
    functions: Functions, roots: list[str], change: Callable[[Function], Function] = lambda f: f
) -> Functions:
    """Apply ``change`` to the roots, and to all functions that the changed functions call.  Return only the changed
    functions.
    """
    changed, todo = {}, list(roots)
    while todo:
        name = todo.pop()
        if name not in changed and name in functions:
            changed[name] = change(functions[name])
            todo += changed[name].called
    return {name: changed[name] for name in functions if name in changed}
