"""Options of commands: how they are declared, what runs a command with them, those that several commands share, and the
specs that they name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.cli import output
from pykernel.cli.help import RARE
from pykernel.engine.choice import engine_used
from pykernel.errors import Interrupted, UntrustedCode, UserError, on_command_line

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


Declared = tuple[Any, Any]
"""A parameter of a command: its annotation for typer, and its default."""


def argument(value: str, text: str, kind: type = str) -> Declared:
    """A positional argument of the command line."""
    return Annotated[kind, typer.Argument(metavar=value, help=text, show_default=False)], inspect.Parameter.empty


def option(
    *names: str,
    value: str | None = None,
    text: str,
    kind: Any = str,
    default: Any = None,
    without: str | None = None,
    rare: bool = False,
) -> Declared:
    """An option: its names, the name of its value, its meaning, its type, and its default.

    default: ``...`` for an option that must be given.  without: words for the behaviour without the option, if the
    default does not show it.  rare: ``--help`` only names the option; the page of commands describes it.
    """
    shown: str | bool = True if without is None else without
    told = typer.Option(*names, metavar=value, help=text, show_default=shown, rich_help_panel=RARE if rare else None)
    if default is ...:
        return Annotated[kind, told], inspect.Parameter.empty
    return Annotated[kind if default is not None else kind | None, told], default


def command(**options: Declared) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: a function becomes what typer takes for a command with these options.

    It runs with the engine that --engine names, and sentences name its options.  If the work is interrupted, the exit
    code and the message say so.
    """
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]

    def typed(run: Callable[..., None]) -> Callable[..., None]:
        def called(*, engine: str | None = None, **given: Any) -> None:
            # one table is what it always was
            given |= {name: each[0] for name, each in given.items() if options[name] in (MANY, LOGS) and len(each) == 1}
            with engine_used(engine), on_command_line():
                try:
                    run(**given)
                except Interrupted as error:
                    raise output.interrupted(str(error)) from None

        called.__doc__ = run.__doc__
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {name: annotation for name, (annotation, _) in options.items()}
        return called

    return typed


def read_spec(spec_file: Path, trust: bool) -> Spec:
    """Read a spec.  If it names a file with code and ``trust`` is true, the file is executed, and a message says so."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: output.tell(f"executing {path}"))


def plain_spec(spec_file: Path) -> Spec:
    """Read a spec without code: searches execute no code."""
    from pykernel.spec.model import load_spec

    try:
        return load_spec(spec_file)
    except UntrustedCode:
        raise UserError(
            f"{spec_file}: [kernel] names code, which sweep and plan do not execute; give a spec with one of the project's kernels"
        ) from None


JSON = option("--json", text="Print only one JSON object.", kind=bool, default=False)
PLOT = option("--plot", value="FILE", text="A report, FILE.html.", kind=Path)
FOLDER_PLOT = option(
    "--plot",
    value="FILE",
    text="A report, FILE.html.",
    kind=Path,
    without="FOLDER/report.html",
    rare=True,
)
SPEC = argument("SPEC", "The model, a TOML file.", Path)
CSV = argument("DATA", "A CSV file; - reads standard input.")
MANY = argument("DATA…", "A table, or -; a folder or several: one device each.", list[str])
LOGS = argument("LOG…", "A table, or -; a folder or several: one device each.", list[str])
TRUST_CODE = option(
    "--trust-code", text="Execute the Python file in the spec's [kernel] source.", kind=bool, default=False
)
SPEC_OUT = option("--output", "-o", value="SPEC", text="The spec to write.", kind=Path, default=...)
INPUTS = option("--inputs", value="A,B", text="The inputs' columns.", without="all others with numbers")
PRECISION = option("--precision", value="TYPE", text="float32, float64 or int16.", default="float32")
NAME = option("--name", value="NAME", text="Prefix of all names in C.", without="the spec's file", rare=True)
STANDARDISE = option(
    "--standardise/--no-standardise",
    text="Scale each input to mean 0 and deviation 1, on the device too.",
    kind=bool,
    without="if their scales differ",
    rare=True,
)
ENGINE = option(
    "--engine",
    value="ENGINE",
    text="Engine for the model on this PC: llvm, numba or python.",
    without="llvm; in check numba, too",
    rare=True,
)
WITH = option(
    "--with",
    value="KEY=V,KEY=V",
    text="Options of the method, epsilon, swaps (docs/bases.md).",
    without="none",
    rare=True,
)
JOBS = option("--jobs", value="N|ADDRESS", text="Processes, or a Dask scheduler.", without="as many as cores")
DELAY = option("--delay", value="K", text="Labels arrive K rows (with [signal], K steps) late.", kind=int, default=0)
RULES = option("--rule", value="RULE", text="Try only this, or these: a,b.", kind=list[str])
TECHNIQUES = option("--technique", value="TECHNIQUE", text="Try only this, or these: a,b.", kind=list[str])
DEVICES_RESULTS = option(
    "--results",
    value="FILE",
    text="Many devices: where finished ones are kept.",
    kind=Path,
    without="nowhere",
    rare=True,
)
DEVICES_JOBS = option(
    "--jobs", value="N|ADDRESS", text="Many devices: processes, or a Dask scheduler.", without="cores"
)
RESULTS = option(
    "--results",
    value="FILE",
    text="Where finished runs are kept.",
    kind=Path,
    without="FOLDER/results.jsonl",
    rare=True,
)
