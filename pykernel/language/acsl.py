"""ACSL annotations that the proof of a function needs.  Annotations are comments, so they do not change results.

The annotations are derived from the form of the code alone:

- After a true comparison of x or |x|, an ``assert`` states that x is not NaN and, if |x| is below a limit, that x is
within ± the limit, because Eva cannot conclude this itself (WP proves the assertion).
- If a call takes and returns only integers, and its result is assigned to a variable that occurs in an index, the call
is analysed separately for each value of its arguments.  An example is the position of a row in a triangle.
- If a variable starts with the value of a field that is a position or a count, and a loop changes the variable, each
starting value is analysed separately.
- A square is analysed separately for both signs of the squared number, because Eva does not know that squares are not
negative.
- If |x| is compared with a limit, four cases are analysed separately, because Eva draws no conclusion about x from |x|:
x above the limit, x within ± the limit, x below minus the limit, and NaN.
- An ``assert`` states that an index into an array argument is within the array, because Eva treats all fields of the
model as one piece of memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pykernel.dialect import Array, Extent, Index, Real, absolute
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
    Literal,
    Local,
    Return,
    Row,
    Statement,
    Unary,
    children,
    walk,
)

PASSED = "passed"
"""Name of the assertions after comparisons."""
CALL = re.compile(r"(?<![\\\w])[a-z_]\w*\(")
"""Matches a call of a C function.  Names that begin with a backslash (logic functions of ACSL) or with a capital letter
(macros) do not match.
"""
INSIDE = "inside"
"""Name of the assertions about indices."""
Printed = Callable[[Expr], str]


def lengths(functions: Functions, roots: frozenset[str], extent: Callable[[object], int]) -> dict[str, dict[str, int]]:
    """Return for each function a dict: array parameter -> length of the longest array that is passed for it.

    extent: a function that returns the value of a size.  roots: names of the functions that are called from outside,
    with arrays of the declared sizes.
    """
    found: dict[str, dict[str, int]] = {name: {} for name in functions}
    for name in roots & functions.keys():
        for param, kind in functions[name].params:
            if isinstance(kind, Array) and ... not in kind.extents:
                found[name][param] = extent(kind.extents[0])
    changed = True
    while changed:  # an array may be passed on through several functions
        changed = False
        for name, f in functions.items():
            for call in f.calls:
                for (param, kind), argument in zip(_params(functions, call), call.args, strict=True):
                    length = _length(argument, found[name], extent) if isinstance(kind, Array) else None
                    known = found[call.callee.name].get(param) if isinstance(kind, Array) else None
                    if length is not None and (known is None or length > known):
                        found[call.callee.name][param] = length
                        changed = True
    return found


def _params(functions: Functions, call: Call) -> tuple:
    f = functions.get(call.callee.name)
    return f.params if f is not None else tuple((f"_{i}", None) for i in range(len(call.args)))


def _length(argument: Expr, known: Mapping[str, int], extent: Callable[[object], int]) -> int | None:
    if isinstance(argument, Row):
        return extent(argument.kind.extents[0])
    if isinstance(argument, Local):
        return known.get(argument.name)
    kind = argument.kind
    return extent(kind.extents[0]) if isinstance(kind, Array) and ... not in kind.extents else None


def before(node: Statement, f: Function, printed: Printed, known: Mapping[str, int]) -> list[str]:
    """Return the annotations before a statement.  known: array parameter of the function -> length."""
    values, annotations = _evaluated(node), list[str]()
    if not _becomes_several(node):
        if isinstance(node, Assign) and isinstance(node.target, Local) and node.target.name in _indices(f):
            annotations = [f"split {printed(index)};" for index in _places(node.value)]
        if isinstance(node, Assign) and _counted(node, f):
            annotations.append(f"split {printed(node.value)};")
        annotations += [f"split {text};" for text in (*_signs(node, printed), *_sides(node, printed))]
    annotations += [f"assert {INSIDE}: {text};" for value in values for text in _inside(value, printed, known)]
    return _without_calls(annotations)


def after(node: Statement, following: Statement | None, printed: Printed, real: str) -> list[str]:
    """Return the annotations between a statement and the next one, such as the assertion that x is not NaN after
    ``if (!(x >= limit)) { return }``.  real: the C type of a Real.
    """
    merged = list[str]()
    if not (_becomes_several(node) or _becomes_several(following)):
        merged = [f"merge {text};" for text in (*_signs(node, printed), *_sides(node, printed))]
    if isinstance(node, If) and not node.orelse and node.body and isinstance(node.body[-1], (Return, Leave)):
        match node.condition:
            case Unary(op="not", operand=passed):
                merged = [*_passed(passed, printed, real), *merged]
            case Binary(op="or") as either:
                negated = [n.operand for n in _parts(either, "or") if isinstance(n, Unary) and n.op == "not"]
                merged = [*(text for passed in negated for text in _passed(passed, printed, real)), *merged]
    return _without_calls(merged)


def _without_calls(annotations: list[str]) -> list[str]:
    """Return the annotations that do not call a C function.

    In snapshot readers, some annotations would contain calls, because a snapshot reader calls a function to read each
    number.
    """
    return [text for text in annotations if not CALL.search(text)]


def _becomes_several(node: Statement | None) -> bool:
    """Return whether a statement is a declaration that Frama-C turns into several statements.  Frama-C accepts no
    ``split`` annotation before such a declaration."""
    if not (isinstance(node, Assign) and node.declares):
        return False
    value = node.value
    return isinstance(value, Choice) or any(
        isinstance(each, Choice | Call) for each in walk(value) if each is not value
    )


def within(node: If, printed: Printed, real: str) -> list[str]:
    """Return the annotations at the start of the block in ``if (x <= limit) { … }``."""
    return _passed(node.condition, printed, real)


def _parts(node: Expr, op: str) -> list[Expr]:
    if isinstance(node, Binary) and node.op == op:
        return [*_parts(node.left, op), *_parts(node.right, op)]
    return [node]


def _passed(condition: Expr, printed: Printed, real: str) -> list[str]:
    """Return the assertions that follow from a true comparison of x: x is not NaN and, if |x| is below a limit, x lies
    between minus the limit and the limit.
    """
    numbers, limits = list[str](), list[str]()
    for part in _parts(condition, "and"):
        if isinstance(part, Binary) and part.op in ("<", "<=", ">", ">="):
            less, more = (part.left, part.right) if part.op[0] == "<" else (part.right, part.left)
            numbers += [printed(side) for side in map(_of_size, (less, more)) if side is not None]
            x = _of_size(less) if isinstance(less, Call) else None
            if x is not None and not children(more):
                below = f"\\{'le' if '=' in part.op else 'lt'}_{real}"
                low, high = f"\\neg_{real}({printed(more)})", printed(more)
                limits.append(f"{below}({low}, {printed(x)}) && {below}({printed(x)}, {high})")
    said = [*(f"!\\is_NaN({name})" for name in dict.fromkeys(numbers)), *limits]
    return [f"assert {PASSED}: {text};" for text in said]


def _of_size(side: Expr) -> Expr | None:
    """Return x if a side of a comparison is x or |x|, else None."""
    if isinstance(side, Call) and side.callee is absolute:
        (side,) = side.args
        return side if isinstance(side, (Local, Element)) and _calls_nothing(side) else None
    return side if isinstance(side, Local) and side.kind is Real else None


def _evaluated(node: Statement) -> tuple[Expr, ...]:
    """Return the expressions that a statement evaluates once, before its inner statements."""
    match node:
        case Assign(target=target, value=value):
            return (value, target)
        case Do(call=call):
            return (call,)
        case If(condition=condition):
            return (condition,)
        case For(start=start):
            return (start,)
        case Return(value=Expr() as value):
            return (value,)
    return ()


def _indices(f: Function) -> frozenset[str]:
    """Return the names of the locals that occur in indices of elements and rows."""
    return f.made(
        "locals in indices",
        lambda: frozenset(
            n.name
            for node in walk(f.body)
            if isinstance(node, (Element, Row))
            for n in walk(node.indices if isinstance(node, Element) else node.index)
            if isinstance(n, Local)
        ),
    )


def _signs(node: Statement, printed: Printed) -> list[str]:
    """Return the condition ``x >= 0`` for each number x that a statement squares."""
    if not isinstance(node, (Assign, Return)) or node.value is None:
        return []
    squares = [n for n in walk(node.value) if isinstance(n, Binary) and n.op == "*" and n.kind is Real]
    numbers = [n.left for n in squares if n.left == n.right and isinstance(n.left, (Local, Element))]
    return [f"{text} >= 0" for text in dict.fromkeys(map(printed, numbers))]


def _sides(node: Statement, printed: Printed) -> list[str]:
    """Return three conditions for each |x| that a statement compares with a limit: x is NaN, x is above the limit, and x
    is below minus the limit.
    """
    found = list[str]()
    for part in walk(node.condition) if isinstance(node, If) else ():
        if isinstance(part, Binary) and part.op in ("<", "<=", ">", ">="):
            for size, limit in ((part.left, part.right), (part.right, part.left)):
                x = _of_size(size) if isinstance(size, Call) else None
                if x is not None and _calls_nothing(limit):
                    x_text, most = printed(x), printed(limit)
                    found += [f"\\is_NaN({x_text})", f"{x_text} > {most}", f"{x_text} < -({most})"]
    return list(dict.fromkeys(found))


def _places(value: Expr) -> list[Expr]:
    """Return the non-literal arguments of calls to functions that take only integers and return an integer."""
    return [
        argument
        for call in walk(value)
        if isinstance(call, Call) and call.callee.intrinsic is None and call.kind is Index
        if call.args and all(argument.kind is Index for argument in call.args)
        for argument in call.args
        if not isinstance(argument, Literal) and _calls_nothing(argument)
    ]


def _counted(node: Assign, f: Function) -> bool:
    """Return whether an assignment gives a local its first value from a field that is a position or a count, and some
    loop of the function changes the local.
    """
    target, value = node.target, node.value
    if not (node.declares and isinstance(value, Element) and isinstance(value.array, Field)):
        return False
    given = value.array.struct.ranges.get(value.array.name)
    if given is None or not isinstance(given.most, Extent) or value.array.name not in value.array.struct.scalars:
        return False
    loops = (n for n in walk(f.body) if isinstance(n, For))
    return any(isinstance(n, Assign) and n.target == target for loop in loops for n in walk(loop.body))


def _calls_nothing(value: Expr) -> bool:
    """Return whether an expression contains no call, so that it may be part of an annotation."""
    return not any(isinstance(node, Call) for node in walk(value))


def _inside(value: Expr, printed: Printed, known: Mapping[str, int]) -> list[str]:
    """Return the condition 0 <= index < length for each element of an array argument."""
    found = []
    for node in _certain(value):
        if isinstance(node, Element) and isinstance(node.array, Local) and node.array.name in known:
            (index,) = node.indices
            if not isinstance(index, Literal) and _calls_nothing(index):
                text = f"({printed(index)})" if isinstance(index, Choice) else printed(index)
                found.append(f"0 <= {text} < {known[node.array.name]}")
    return list(dict.fromkeys(found))


def _certain(value: Expr) -> list[Expr]:
    """Return the parts of an expression that are always evaluated."""
    if isinstance(value, Binary) and value.op in ("and", "or"):
        return _certain(value.left)
    if isinstance(value, Choice):
        return _certain(value.condition)
    return [value, *(part for child in children(value) for part in _certain(child))]
