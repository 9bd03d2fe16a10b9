"""Options of commands: declarations, options that several commands share, and the conversion to one object for a
command.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from pykernel.cli import output
from pykernel.cli.help import RARE
from pykernel.engine.choice import engine_used
from pykernel.errors import Interrupted, UserError, on_command_line

Options = TypeVar("Options")


def argument(value: str, text: str) -> Any:
    """A positional argument of the command line."""
    return typer.Argument(metavar=value, help=text, show_default=False)


def option(
    *names: str, value: str | None = None, text: str, without: str | None = None, shown: bool = True, rare: bool = False
) -> Any:
    """An option: its names, the name of its value, and its meaning.

    without: words for the behaviour without the option, if the default does not show it.  shown: whether help shows the
    default.  rare: ``--help`` only names the option; the page of commands describes it.
    """
    told: str | bool = shown if without is None else without
    return typer.Option(*names, metavar=value, help=text, show_default=told, rich_help_panel=RARE if rare else None)


def takes(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Decorator: convert a function of one options object into the function that typer needs, with one parameter for
    each field.
    """

    def typed(command: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            with engine_used(given.get("engine")), on_command_line():
                try:
                    command(kind(**given))
                except Interrupted as error:
                    raise output.interrupted(str(error)) from None

        hints = get_type_hints(kind, include_extras=True)
        parameters = [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if each.default is MISSING else each.default,
                annotation=hints[each.name],
            )
            for each in fields(kind)  # type: ignore[arg-type]
        ]
        del called.__wrapped__  # type: ignore[attr-defined]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {name: hints[name] for name in (each.name for each in parameters)}
        return called

    return typed


def given_of(options: Any, *own: str) -> dict[str, Any]:
    """The arguments of a workflow from a command's options.  own: fields that belong to the command itself."""
    return {
        each.name: getattr(options, each.name)
        for each in fields(options)
        if each.name not in (*own, "engine", "as_json")
    }


Json = Annotated[bool, option("--json", text="Print only one JSON object.")]
SpecFile = Annotated[Path, argument("SPEC", "The model, a TOML file.")]
CsvData = Annotated[str, argument("DATA", "A CSV file; - reads standard input.")]
TrustCode = Annotated[bool, option("--trust-code", text="Execute the Python file in the spec's [kernel] source.")]
SpecOut = Annotated[Path, option("--output", "-o", value="SPEC", text="The spec to write.")]
Inputs = Annotated[
    str | None, option("--inputs", value="A,B", text="The inputs' columns.", without="all others with numbers")
]
Precision = Annotated[str, option("--precision", value="TYPE", text="float32, float64 or int16.")]
Name = Annotated[
    str | None, option("--name", value="NAME", text="Prefix of all names in C.", without="the spec's file", rare=True)
]
Standardise = Annotated[
    bool | None,
    option(
        "--standardise/--no-standardise",
        text="Scale each input to mean 0 and deviation 1, on the device too.",
        without="if their scales differ",
        rare=True,
    ),
]
Engine = Annotated[
    str | None,
    option(
        "--engine",
        value="ENGINE",
        text="Engine for the model on this PC: llvm, numba or python.",
        without="llvm; in check numba",
        rare=True,
    ),
]
With = Annotated[
    str | None,
    option(
        "--with",
        value="KEY=V,KEY=V",
        text="Options of the method, epsilon, swaps (docs/bases.md).",
        without="none",
        rare=True,
    ),
]
Jobs = Annotated[
    str | None,
    option("--jobs", value="N|ADDRESS", text="Processes, or a Dask scheduler.", without="as many as cores"),
]
Delay = Annotated[int, option("--delay", value="K", text="Labels arrive K rows (with [signal], K steps) late.")]


def prefix(out: Path, name: str | None) -> str:
    """The prefix of the names in C: the given name, or the name of the spec's file."""
    from pykernel.spec.base import is_prefix

    if name is None and not is_prefix(out.stem):
        raise UserError(
            f"{out}: names in C would begin with {out.stem!r}, which they cannot; give --name, or call the file by 1 to 31 of "
            "a-z, 0-9 and single '_', a letter first"
        )
    return out.stem if name is None else name
