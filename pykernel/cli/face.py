"""Turn requests into commands: a request's fields become arguments and options, and spec files are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.cli import output
from pykernel.cli.help import PAGE, RARE
from pykernel.engine.choice import engine_used
from pykernel.errors import Interrupted, UntrustedCode, UserError, did_you_mean, on_command_line
from pykernel.request.option import Arg, Declared, Py, checked, declared
from pykernel.request.options import Shell

if TYPE_CHECKING:
    from pykernel.spec.model import Spec

Shown = Callable[[Any, bool], None]
"""A function that runs a request and prints its result.  The second argument says whether to print JSON."""


def read_spec(spec_file: Path, trust: bool) -> Spec:
    """Read a spec.  If the spec names a file with code and ``trust`` is true, the file is executed, and a message says
    so."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: output.tell(f"executing {path}"))


def _plain_spec(spec_file: Path, trust: bool) -> Spec:
    """Read a spec that names no code, because searches do not execute code."""
    try:
        return read_spec(spec_file, False)
    except UntrustedCode:
        raise UserError(
            f"{spec_file}: [kernel] source names a file with Python code, which plan never executes; give a spec with a built-in kernel"
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
    """Return the arguments and options of a request in the shell."""
    own = [each for each in declared(kind) if not isinstance(each.opt, Py) and each.opt.key is None]
    return own + [each for each in declared(Shell) if each.name in kind.shell or (each.name == "set" and keys_of(kind))]


def keys_of(kind: Any) -> dict[str, Declared]:
    """Return the fields of a request that --set sets: key -> field."""
    return {each.opt.key: each for each in declared(kind) if each.opt.key is not None}


def _sections(keys: Mapping[str, str]) -> str:
    """List the keys of --set for the help.  If a section has many keys, only its name is listed."""
    sections = [key.partition(".")[0] for key in keys.values()]
    shown = (
        f"{name}.…" if sections.count(name) > 3 else key for name, key in zip(sections, keys.values(), strict=True)
    )
    return ", ".join(sorted(set(shown)))


def _set(kind: Any, pairs: Sequence[str]) -> dict[str, str]:
    """Return the values that --set gives: field -> value."""
    known, values = keys_of(kind), dict[str, str]()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if key not in known or not equals:
            within = [each for each in known if each.startswith(f"{key}.")]
            remedy = f"it must be KEY=VALUE with one of the keys {', '.join(within or known)}"
            raise UserError(
                f"--set is {pair!r}; {did_you_mean(key, known, remedy) if equals and not within else remedy}"
            )
        values[known[key].name] = value
    return values


def command(kind: Any, show: Shown) -> Callable[..., None]:
    """Return a function for typer that makes a request from the command's options, runs it, and shows the result.

    The request runs with the engine that --engine names, and messages name options as the shell does.  If the work is
    interrupted, the exit code and the message say so.
    """
    options = options_of(kind)
    keys = {each.name: key for key, each in keys_of(kind).items()}

    def called(**words: Any) -> None:
        shell = {each.name: words.pop(each.name, each.default) for each in declared(Shell)}
        with engine_used(shell["engine"]), on_command_line(keys):
            arguments: dict[str, Any] = {
                each.name: _taken(each, words[each.name], shell["trust_code"]) for each in options if each.name in words
            }
            arguments |= _set(kind, shell["set"] or ())
            if any(field.name == "watch" for field in fields(kind)):
                arguments["watch"] = output.Printing(shell["json"])
            try:
                show(
                    checked(kind(**{name: value for name, value in arguments.items() if value is not None})),
                    shell["json"],
                )
            except Interrupted as error:
                raise output.interrupted(str(error)) from None

    keys_help = f"\n\nKeys of --set: {_sections(keys)} ({PAGE})." if keys else ""
    called.__doc__ = inspect.cleandoc(kind.__doc__) + keys_help
    called.__signature__ = inspect.Signature([_parameter(each) for each in options])  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: parameter.annotation for each in options if (parameter := _parameter(each))}
    return called


def _taken(each: Declared, value: Any, trust: bool) -> Any:
    """Return the value of a field, or None if no value was given."""
    if value is not None and each.opt.reads:
        return READERS[each.opt.reads](value, trust)
    if each.kind == list[str] and not value:
        return None
    # a request takes a single table as text, not as a list
    return value[0] if each.kind == list[str] and isinstance(each.opt, Arg) and len(value) == 1 else value


def _parameter(each: Declared) -> inspect.Parameter:
    """Return a field as a parameter for typer."""
    opt, kind = each.opt, each.kind
    default = inspect.Parameter.empty if opt.needed or each.default is MISSING else each.default
    if isinstance(opt, Arg):
        typer_info: Any = typer.Argument(metavar=opt.value, help=opt.text, show_default=False)
    else:
        shown: str | bool = True if opt.without is None else opt.without
        panel = RARE if opt.rare else None
        typer_info = typer.Option(
            *each.names, metavar=opt.value, help=opt.text, show_default=shown, rich_help_panel=panel
        )
    if kind == list[str] and default is not inspect.Parameter.empty:
        default = None
    annotation: Any = Annotated[kind | None if default is None else kind, typer_info]  # type: ignore[valid-type]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
