"""Read source text: a kernel's syntax tree and the comments around its statements."""

from __future__ import annotations

import ast
import functools
import io
import linecache
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pykernel.dialect import Kernel
from pykernel.language.ir import DialectError

FOR_TOOLS = re.compile(r"#\s*(noqa|type: ignore|fmt: |pragma: |ruff: |pylint: )")


@dataclass(frozen=True)
class Comment:
    line: int
    column: int
    text: str
    alone: bool  # whether the comment has its own line


@dataclass(frozen=True)
class _Module:
    functions: dict[tuple[str, int], ast.FunctionDef]  # (name, line of def or of a decorator) -> function
    classes: dict[str, ast.ClassDef]
    comments: dict[int, Comment]


@functools.cache
def _module(source: bytes) -> _Module:
    comments = {}
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT and not FOR_TOOLS.match(token.string):
            alone = not token.line[: token.start[1]].strip()
            comments[token.start[0]] = Comment(*token.start, token.string.lstrip("#:").strip(), alone)
    found = _Module({}, {}, comments)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for line in (node.lineno, *(d.lineno for d in node.decorator_list)):
                found.functions.setdefault((node.name, line), node)
        elif isinstance(node, ast.ClassDef):
            found.classes.setdefault(node.name, node)
    return found


def read(kernel: Kernel) -> tuple[ast.FunctionDef, Comments]:
    """Return the function's syntax tree, whose line numbers are those of the file, and the function's comments."""
    module = _module(kernel.source)  # this is the text that Python imported; the file may have changed since then
    first = kernel.function.__code__.co_firstlineno
    node = module.functions.get((kernel.function.__name__, first))
    if node is None:
        raise DialectError(
            kernel.file, first, f"the source of {kernel.name} was not found; define the kernel with def, in a file"
        )
    return node, Comments(kernel.file, node, module.comments)


def member_comments(cls: type) -> dict[str, str]:
    """Return member -> comment, for a class that is an enumeration, a struct or a configuration.

    If there is no comment beside or inside the member, the comment on the lines above it is taken.
    """
    import inspect

    module = _module("".join(linecache.getlines(inspect.getfile(cls))).encode())
    node, comments, found = module.classes.get(cls.__name__), module.comments, {}
    for item in node.body if node else ():
        target = item.targets[0] if isinstance(item, ast.Assign) else getattr(item, "target", None)
        above = [comments[line].text for line in _lines_above(comments, item.lineno)]
        beside = [comments[line].text for line in range(item.lineno, (item.end_lineno or 0) + 1) if line in comments]
        if isinstance(target, ast.Name) and (beside or above):
            found[target.id] = " ".join(beside or above)
    return found


def _lines_above(comments: Mapping[int, Comment], line: int) -> range:
    """Return the numbers of the comment lines directly above a line."""
    first = line
    while first - 1 in comments and comments[first - 1].alone:
        first -= 1
    return range(first, line)


class Comments:
    """Assigns each comment to its statement.  A comment that belongs to no statement is refused."""

    def __init__(self, file: Path, node: ast.FunctionDef, comments: dict[int, Comment]) -> None:
        self.file = file
        signature = [a.end_lineno or 0 for a in (*node.args.args, node.returns) if a]
        first = max([node.lineno, *signature]) + 1
        end = node.end_lineno or first
        while end + 1 in comments and comments[end + 1].column > node.col_offset:
            end += 1
        self.left = {n: c for n, c in comments.items() if first <= n <= end}

    def above(self, statement: ast.stmt) -> tuple[str, ...]:
        """Return the comments on the lines just before a statement."""
        return tuple(self.left.pop(line).text for line in _lines_above(self.left, statement.lineno))

    def beside(self, line: int) -> str:
        """Return the comment at the end of a line of code."""
        return self.left.pop(line).text if line in self.left and not self.left[line].alone else ""

    def refuse_lost(self) -> None:
        for line in sorted(self.left):
            raise DialectError(
                self.file,
                line,
                "this comment would be lost in C; put it on the line above a statement, or at the end of a one-line statement",
            )
