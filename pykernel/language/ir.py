"""The typed representation between Python source and C: classes of nodes, and functions that walk and rewrite trees of
nodes.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

from pykernel.dialect import Array, Constant, Extent, Kernel, Scalar, Struct

Kind = Scalar | Array | None
T = TypeVar("T")


class DialectError(Exception):
    """Raised for source that could mean different things in Numba and in C.

    The message says where the code is and what to write instead.
    """

    def __init__(self, file: Path, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file, self.line = file, line


# ------------------------------------------------------------------------------------------------- expressions


class Node:
    """An expression or a statement."""


@dataclass(frozen=True)
class Expr(Node):
    line: int = field(compare=False)  # nodes are compared without their lines
    kind: Any


@dataclass(frozen=True)
class Literal(Expr):
    value: Any


@dataclass(frozen=True)
class Member(Expr):
    """A member of an enumeration."""

    value: IntEnum


@dataclass(frozen=True)
class Local(Expr):
    """A local variable or a parameter of the function, scalar or array."""

    name: str


@dataclass(frozen=True)
class Parameter(Expr):
    """A field of the configuration: a number, a choice or a table."""

    name: str


@dataclass(frozen=True)
class Named(Expr):
    """A Constant that is defined at module level: a number or a table."""

    name: str
    constant: Constant


@dataclass(frozen=True)
class Field(Expr):
    """A whole field of a struct."""

    struct: type[Struct]
    name: str


@dataclass(frozen=True)
class Element(Expr):
    array: Expr
    indices: tuple[Expr, ...]


@dataclass(frozen=True)
class Row(Expr):
    """A row of a two-dimensional field or table, as the argument of a call."""

    array: Field | Parameter
    index: Expr


@dataclass(frozen=True)
class Length(Expr):
    extent: Extent | int
    table: Named | None = None  # a Constant table, whose length may depend on the precision; ``extent`` is then 0


@dataclass(frozen=True)
class Unary(Expr):
    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary(Expr):
    """Arithmetic, comparison or logic."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Choice(Expr):
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class ToReal(Expr):
    operand: Expr


@dataclass(frozen=True)
class Call(Expr):
    """A call.  ``args`` contains only the arguments that are numbers or arrays.

    Structs and configurations are left out, because their types identify them.
    """

    callee: Kernel
    args: tuple[Expr, ...]


# -------------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True)
class Statement(Node):
    line: int
    above: tuple[str, ...] = field(default=(), kw_only=True)  # comments on lines of their own
    beside: str = field(default="", kw_only=True)  # comment at the end of the line


@dataclass(frozen=True)
class Assign(Statement):
    target: Local | Element
    value: Expr
    op: str = ""  # "+", "-" or "*" for an augmented assignment
    declares: bool = False


@dataclass(frozen=True)
class Do(Statement):
    """A call whose result is not used."""

    call: Call


@dataclass(frozen=True)
class For(Statement):
    variable: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Statement, ...]
    unroll: bool = False


@dataclass(frozen=True)
class If(Statement):
    condition: Expr
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True)
class Leave(Statement):
    """break or continue"""

    word: str


@dataclass(frozen=True)
class Return(Statement):
    value: Expr | None


@dataclass(frozen=True)
class Function:
    """A function, which never changes.  ``made`` keeps the results of passes over the function.

    This saves time, because passes visit the same function many times, and models share functions.
    """

    kernel: Kernel
    doc: str
    params: tuple[tuple[str, Kind], ...]  # parameters that are numbers or arrays
    pointer: str  # name that the function's first struct parameter has in the source
    returns: Kind
    body: tuple[Statement, ...]

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def file(self) -> Path:
        return self.kernel.file

    @functools.cached_property
    def calls(self) -> tuple[Call, ...]:
        return tuple(node for node in walk(self.body) if isinstance(node, Call))

    @functools.cached_property
    def called(self) -> frozenset[str]:
        """Names of the functions that this function calls."""
        return frozenset(call.callee.name for call in self.calls)

    @functools.cached_property
    def names(self) -> dict[type, frozenset[str]]:
        """Local, Parameter and Field -> names of the nodes of this class in the function's body."""
        found: dict[type, set[str]] = {Local: set(), Parameter: set(), Field: set()}
        for node in walk(self.body):
            if isinstance(node, (Local, Parameter, Field)):
                found[type(node)].add(node.name)
        return {kind: frozenset(names) for kind, names in found.items()}

    @functools.cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def made(self, key: Any, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which is called only the first time for each key.

        key: the name of the result, and everything on which the result depends apart from the function.
        """
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[no-any-return]


Functions = dict[str, Function]

# ----------------------------------------------------------------------------------------------------- walking


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of those fields of a dataclass that hold nodes, according to their annotations.  Only these fields
    are walked, because walking all fields would be slow.
    """
    nodes = {name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Node)}
    return tuple(f.name for f in fields(kind) if nodes & set(re.findall(r"\w+", str(f.type))))


def walk(node: Any) -> Iterator[Any]:
    """Yield the node and all nodes below it.  A tuple of nodes is walked in order."""
    return itertools.chain.from_iterable(map(_all, node)) if isinstance(node, tuple) else iter(_all(node))


def _all(node: Any) -> tuple[Any, ...]:
    """Return the node and all nodes below it.  The result is kept in the node, because many passes walk through unchanged
    nodes.
    """
    inside = node.__dict__
    kept = inside.get("_all")
    if kept is None:
        nodes = [node]
        for name in _names(type(node)):  # type: ignore[arg-type]
            value = inside[name]
            if isinstance(value, Node):
                nodes += _all(value)
            elif value:
                for item in value:
                    nodes += _all(item)
        kept = inside["_all"] = tuple(nodes)
    return kept  # type: ignore[no-any-return]


def children(node: Node) -> list[Any]:
    """Return the nodes just below a node."""
    below: list[Any] = []
    for name in _names(type(node)):  # type: ignore[arg-type]
        value = node.__dict__[name]
        below += [value] if isinstance(value, Node) else value or ()
    return below


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuild a tree from the leaves up.

    change: maps a node to its replacement; a statement may be replaced by a tuple of statements.
    A subtree in which nothing changes stays the same object.
    """
    if isinstance(node, tuple):
        result: list[Any] = []
        same = True
        for item in node:
            new = rewrite(item, change)
            same = same and new is item
            if isinstance(new, tuple):
                result += new
            else:
                result.append(new)
        return node if same else tuple(result)
    updates = {}
    inside = node.__dict__
    for name in _names(type(node)):  # type: ignore[arg-type]
        value = inside[name]
        if value:  # a field that is empty contains no nodes
            new = rewrite(value, change)
            if new is not value:
                updates[name] = new
    return change(replace(node, **updates) if updates else node)
