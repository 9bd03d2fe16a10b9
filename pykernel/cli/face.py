"""The shell's face of a request: its fields as arguments and options, and the specs that they name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.cli import output
from pykernel.cli.help import RARE
from pykernel.engine.choice import engine_used
from pykernel.errors import Interrupted, UntrustedCode, UserError, on_command_line
from pykernel.request.option import Arg, Declared, Py, checked, declared
from pykernel.request.options import Shell

if TYPE_CHECKING:
    from pykernel.spec.model import Spec

Shown = Callable[[Any, bool], None]
"""Runs a request and prints its result; the second argument: whether as JSON."""


def read_spec(spec_file: Path, trust: bool) -> Spec:
    """Read a spec.  If it names a file with code and ``trust`` is true, the file is executed, and a message says so."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: output.tell(f"executing {path}"))


def _plain_spec(spec_file: Path, trust: bool) -> Spec:
    """Read a spec without code: searches execute no code."""
    try:
        return read_spec(spec_file, False)
    except UntrustedCode:
        raise UserError(
            f"{spec_file}: [kernel] names code, which plan does not execute; give a spec with one of the project's kernels"
        ) from None


def _spec_of_columns(spec_file: Path, trust: bool) -> Spec:
    """Read a spec that names the columns of a table."""
    from pykernel.host.samples import require_columns

    spec = read_spec(spec_file, trust)
    require_columns(spec, str(spec_file))
    return spec


READERS: dict[str | None, Callable[[Path, bool], Spec]] = {
    "spec": read_spec,
    "columns": _spec_of_columns,
    "plain": _plain_spec,
}


def options_of(kind: Any) -> list[Declared]:
    """What a request has in the shell."""
    own = [each for each in declared(kind) if not isinstance(each.opt, Py)]
    return own + [each for each in declared(Shell) if each.name in kind.shell]


def command(kind: Any, show: Shown) -> Callable[..., None]:
    """What typer takes for a command that asks for a request, and shows its result.

    It runs with the engine that --engine names, and sentences name its options.  If the work is interrupted, the exit
    code and the message say so.
    """
    options = options_of(kind)

    def called(**words: Any) -> None:
        shell = {each.name: words.pop(each.name, each.default) for each in declared(Shell)}
        with engine_used(shell["engine"]), on_command_line():
            given = {
                each.name: _taken(each, words[each.name], shell["trust_code"]) for each in options if each.name in words
            }
            if any(field.name == "watch" for field in fields(kind)):
                given["watch"] = output.Printing(shell["json"])
            try:
                show(
                    checked(kind(**{name: value for name, value in given.items() if value is not None})), shell["json"]
                )
            except Interrupted as error:
                raise output.interrupted(str(error)) from None

    called.__doc__ = kind.__doc__
    called.__signature__ = inspect.Signature([_parameter(each) for each in options])  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: parameter.annotation for each in options if (parameter := _parameter(each))}
    return called


def _taken(each: Declared, value: Any, trust: bool) -> Any:
    """The value of a field; None for what was not given."""
    if value is not None and each.opt.reads:
        return READERS[each.opt.reads](value, trust)
    if each.kind == list[str] and not value:
        return None
    # one table is what it always was
    return value[0] if each.kind == list[str] and isinstance(each.opt, Arg) and len(value) == 1 else value


def _parameter(each: Declared) -> inspect.Parameter:
    """A field as a parameter for typer."""
    opt, kind = each.opt, each.kind
    default = inspect.Parameter.empty if opt.needed or each.default is MISSING else each.default
    if isinstance(opt, Arg):
        told: Any = typer.Argument(metavar=opt.value, help=opt.text, show_default=False)
    else:
        shown: str | bool = True if opt.without is None else opt.without
        panel = RARE if opt.rare else None
        told = typer.Option(*each.names, metavar=opt.value, help=opt.text, show_default=shown, rich_help_panel=panel)
    if kind == list[str] and default is not inspect.Parameter.empty:
        default = None
    annotation: Any = Annotated[kind | None if default is None else kind, told]  # type: ignore[valid-type]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
