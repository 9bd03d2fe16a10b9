"""Kernels around a model: written once, for every program that they can surround.

    @around
    def push(g: Signal, k: SignalConfig, model: Model, x: Real[CHANNELS]) -> Index:
        ...
        status = learn(model, g.features)

``model: Model`` stands for all structs and configurations of the program inside; a call that passes it passes those that
the callee takes.  ``learn`` is a placeholder, in whose place the program's own kernel comes.  What comes out is a kernel
like any other: nothing else knows of templates.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from pykernel.dialect.kernels import Kernel
from pykernel.dialect.memory import Config, Struct


class Model:
    """In a template: all structs and configurations of the model inside."""


def around(function: Callable) -> Kernel:
    """Mark a template; ``surround`` makes kernels of it."""
    return Kernel(function, template=True)  # type: ignore[arg-type]


def surround(
    template: Kernel,
    inside: tuple[type[Struct] | type[Config], ...],
    stand_ins: Mapping[str, Any],
    name: str = "",
) -> Kernel:
    """The template as a kernel around a program.  A plain kernel is a template, too: of numbers and structs of other kinds.

    inside: what ``Model`` stands for.  stand_ins: what names of the template's file mean: kernels for placeholders, types
    for the kinds of parameters.  name: of the kernel, if not the template's.
    """
    return _Made(inside, stand_ins).kernel(template, name)


class _Made:
    def __init__(self, inside: tuple[type[Struct] | type[Config], ...], stand_ins: Mapping[str, Any]) -> None:
        self.inside = {f"m{i}": kind for i, kind in enumerate(inside)}
        self.stand_ins = stand_ins

    def kernel(self, template: Kernel, new_name: str = "") -> Kernel:
        new_name = new_name or template.name
        lines = template.source.decode().split("\n")
        first = template.function.__code__.co_firstlineno
        tree = next(
            node
            for node in ast.walk(ast.parse(template.source))
            if isinstance(node, ast.FunctionDef)
            and first in (node.lineno, *(decorator.lineno for decorator in node.decorator_list))
        )
        names: dict[str, Kernel] = {}
        edits: list[tuple[ast.expr | ast.arg, str]] = []
        models = [a for a in tree.args.args if isinstance(a.annotation, ast.Name) and a.annotation.id == "Model"]
        inside = ", ".join(f"{name}: {kind.__name__}" for name, kind in self.inside.items())
        edits += [(model, inside) for model in models]
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            name = call.func.id
            callee = self.stand_ins.get(name, template.function.__globals__.get(name))
            if not isinstance(callee, Kernel):
                continue
            if callee.template:
                callee = self.kernel(callee)
            if callee is not template.function.__globals__.get(name):
                names[name] = callee
            for argument in call.args:
                if isinstance(argument, ast.Name) and argument.id in [model.arg for model in models]:
                    passed = [m for m, kind in self.inside.items() if kind in callee.params.values()]
                    order = [kind for kind in callee.params.values() if kind in self.inside.values()]
                    passed.sort(key=lambda m: order.index(self.inside[m]))
                    edits.append((argument, ", ".join(passed)))
        line, at = lines[tree.lineno - 1], len("def ")
        assert line.startswith(f"def {tree.name}(")
        lines[tree.lineno - 1] = f"def {new_name}{line[at + len(tree.name) :]}"
        moved = len(new_name) - len(tree.name)
        for place, text in sorted(edits, key=lambda edit: (edit[0].lineno, edit[0].col_offset), reverse=True):
            assert place.lineno == place.end_lineno
            whole = lines[place.lineno - 1].encode()  # columns are counted in bytes
            start, end = place.col_offset, place.end_col_offset
            assert end is not None
            if place.lineno == tree.lineno:
                start, end = start + moved, end + moved
            lines[place.lineno - 1] = (whole[:start] + text.encode() + whole[end:]).decode()
        return self._compiled(template, "\n".join(lines).encode(), names, tree.lineno)

    def _compiled(self, template: Kernel, source: bytes, names: Mapping[str, Kernel], line: int) -> Kernel:
        body = ast.parse(source).body
        own = next(n for n in body if isinstance(n, ast.FunctionDef) and n.lineno == line)
        own.decorator_list = []
        module = ast.Module([ast.ImportFrom("__future__", [ast.alias("annotations")], 0), own], [])
        space = {
            **template.function.__globals__,
            **{kind.__name__: kind for kind in self.inside.values()},
            **{name: value for name, value in self.stand_ins.items() if not isinstance(value, Kernel)},
        }
        exec(compile(ast.fix_missing_locations(module), str(template.file), "exec"), space)
        function = space[own.name]
        assert isinstance(function, types.FunctionType)
        made = Kernel(function, names=names)
        made.source = source
        return made
