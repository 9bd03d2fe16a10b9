"""Find the memory that a function writes, directly or through its callees, and refuse code in which the order of writes
matters.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pykernel.dialect import Array, Struct, parts_of
from pykernel.language.ir import (
    Assign,
    Call,
    DialectError,
    Do,
    Element,
    Expr,
    Field,
    For,
    Function,
    Functions,
    Local,
    Parameter,
    Return,
    Row,
    Statement,
    walk,
)


@dataclass(frozen=True)
class Effects:
    """Names of the struct fields and array parameters that a function writes, and of the fields that it reads."""

    fields: frozenset[str]
    params: frozenset[str]
    reads: frozenset[str]

    @property
    def writes(self) -> bool:
        return bool(self.fields or self.params)


def root(array: Expr) -> Field | Local | Parameter | None:
    """Return the whole array to which an array expression belongs: a field, a parameter of the function, or a table of
    the configuration.
    """
    while isinstance(array, (Row, Element)):
        array = array.array
    return array if isinstance(array, (Field, Local, Parameter)) else None


def effects(functions: Functions) -> dict[str, Effects]:
    """Return the effects of every function.  ``functions`` lists callees first."""
    found: dict[str, Effects] = {}
    for name, function in functions.items():
        called = frozenset(
            (each, below, tuple(param in below.params for param, _ in functions[each].params) if below.params else ())
            for each in function.called
            if (below := found.get(each)) is not None
        )
        found[name] = function.made(("effects", called), functools.partial(_effects, function, called))
    return found


def _effects(function: Function, called: Iterable[tuple[str, Effects, tuple[bool, ...]]]) -> Effects:
    """Return the effects of a function.

    called: a tuple (name, effects, writes) for each callee.  ``writes`` says for each parameter whether the callee writes
    to it, and is empty if the callee writes to none.
    """
    own = function.made("own effects", functools.partial(_own, function))
    fields, reads, targets = set(own.fields), set(own.reads), []
    written = {name: writes for name, _, writes in called}
    for _, below, _ in called:
        fields |= below.fields
        reads |= below.reads
    for call in function.calls:
        if writes := written.get(call.callee.name):
            targets += [root(array) for array, yes in zip(call.args, writes, strict=True) if yes]
    fields |= {target.name for target in targets if isinstance(target, Field)}
    passed = own.params | {target.name for target in targets if isinstance(target, Local)}
    return Effects(frozenset(fields), passed, frozenset(reads))


def _own(function: Function) -> Effects:
    """Return the effects of a function's own statements, without those of its callees.

    A field counts as read wherever it occurs, except as the target of an assignment.  An augmented assignment does not count
    as a read, because it reads the element only to write a new value to it.
    """
    occurs: Counter[str] = Counter()
    assigned: Counter[str] = Counter()
    targets = []
    for node in walk(function.body):
        if isinstance(node, Field):
            occurs[node.name] += 1
        elif isinstance(node, Assign) and isinstance(node.target, Element):
            targets.append(root(node.target.array))
            if isinstance(node.target.array, Field):
                assigned[node.target.array.name] += 1
    return Effects(
        frozenset(target.name for target in targets if isinstance(target, Field)),
        frozenset(target.name for target in targets if isinstance(target, Local)),
        frozenset(occurs - assigned),
    )


def check_effects(functions: Functions) -> None:
    """Refuse code that depends on the order of side effects, which C does not define.

    Also refuse loops that change their own bounds, calls in the bounds of a loop, and writes to constant tables.
    """
    known = effects(functions)
    for function in functions.values():
        # a kernel determines its callees, so a function that passes this check in one program passes the check in all
        function.made("checked effects", functools.partial(_check, function, functions, known))


def _check(function: Function, functions: Functions, known: dict[str, Effects]) -> None:
    for node in walk(function.body):
        if isinstance(node, Statement):
            _check_order(function, node, known)
        if isinstance(node, For):
            _check_bound(function, node, functions, known)
        if isinstance(node, Call) and node.callee.name in known:
            _check_tables(function, node, functions, known)


def _check_order(function: Function, node: Statement, known: dict[str, Effects]) -> None:
    alone: Expr | None = None  # a call that is the whole value of the statement; only such a call may write
    if isinstance(node, Do):
        alone = node.call
    elif isinstance(node, Return) or (isinstance(node, Assign) and isinstance(node.target, Local) and not node.op):
        alone = node.value
    for f in vars(node).values():
        if isinstance(f, Expr):
            for call in walk(f):
                if (
                    isinstance(call, Call)
                    and call is not alone
                    and call.callee.name in known
                    and known[call.callee.name].writes
                ):
                    raise DialectError(
                        function.file,
                        call.line,
                        f"{call.callee.name} writes to memory, and C may evaluate the rest of the expression before or after the call; "
                        f"assign the result of {call.callee.name} in a separate statement",
                    )


def _check_tables(function: Function, call: Call, functions: Functions, known: dict[str, Effects]) -> None:
    for argument, (param, _) in zip(call.args, functions[call.callee.name].params, strict=True):
        table = root(argument)
        if param in known[call.callee.name].params and isinstance(table, Parameter):
            raise DialectError(
                function.file,
                call.line,
                f"{call.callee.name} writes to its parameter {param}, but {table.name} is a table of the configuration, which is constant; "
                "pass a field of a struct",
            )


def _check_bound(function: Function, loop: For, functions: Functions, known: dict[str, Effects]) -> None:
    parts = [n for e in (loop.start, loop.stop) for n in walk(e)]
    if any(isinstance(n, Call) for n in parts):
        raise DialectError(
            function.file,
            loop.line,
            "range() is evaluated once in Python and at each iteration in C; assign the bound to a name before the loop",
        )
    read = [n for n in parts if isinstance(n, (Local, Field))]
    for node in walk(loop.body):
        written: list[Local | Field | Parameter | None] = []
        if isinstance(node, Assign):
            written = [node.target if isinstance(node.target, Local) else root(node.target.array)]
        elif isinstance(node, Call) and node.callee.name in known:
            below = known[node.callee.name]
            written = [*_fields_named(below.fields, node)]
            for argument, (param, _) in zip(node.args, functions[node.callee.name].params, strict=True):
                if param in below.params:
                    written.append(root(argument))
        changed = {r.name for r in read for w in written if w is not None and _same_memory(r, w)}
        if changed:
            raise DialectError(
                function.file,
                node.line,
                f"the bound of the loop in line {loop.line} changes here ({', '.join(sorted(changed))}): range() is evaluated once in "
                "Python and at each iteration in C; assign the bound to a name before the loop",
            )


def _fields_named(names: Iterable[str], call: Call) -> Iterable[Field]:
    """Yield those fields of the callee's structs whose names are in ``names``."""
    for struct in itertools.chain.from_iterable(map(parts_of, call.callee.params.values())):
        if issubclass(struct, Struct):
            yield from (Field(call.line, struct.fields[n], struct, n) for n in names if n in struct.fields)


def _same_memory(a: Local | Field, b: Local | Field | Parameter) -> bool:
    """Return whether a and b may be in the same memory.  An array parameter may share memory with a field or with another
    array parameter, because a caller may pass the field, or pass one array twice.
    """
    if type(a) is type(b) and a.name == b.name:
        return True
    arrays = isinstance(a.kind, Array) and isinstance(b.kind, Array) and a.kind.scalar is b.kind.scalar
    return arrays and (isinstance(a, Local) or isinstance(b, Local))
