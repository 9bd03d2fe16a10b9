"""Declare each argument of a command once.

The declaration contains the shell's option, Python's argument and its documentation, the check of the value, and the
option's names in other commands.
A *request* is a frozen dataclass whose fields are the arguments of a command.  Each field is annotated with an ``Opt``.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pykernel.errors import UserError, shown_option

P = ParamSpec("P")
R = TypeVar("R")
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Opt:
    """The declaration of a field.

    text: the field's meaning, in a sentence.  value: what ``--help`` calls the field's value, such as "FILE".  key: the
    spec's section and key, if the shell takes the field as --set KEY=VALUE.  short: another name in the shell, such as
    "-o".  without: what happens if the option is not given, or None if the default value shows this.  rare: ``--help``
    lists only the option's name.  needed: the shell requires the option.  elsewhere: the option's names in other
    commands.  more: a sentence about values that only Python accepts.  hint: what the user may have meant
    by an invalid value.  least, most, above: limits of a number.  reads: for a spec, the key of the function that reads
    the file, in ``READERS`` of pykernel/cli/face.py.  kind: the value's type in the shell, if this type does not follow
    from the field's type.
    """

    text: str
    value: str | None = None
    _: KW_ONLY
    key: str | None = None
    short: str | None = None
    without: str | None = None
    rare: bool = False
    needed: bool = False
    elsewhere: tuple[str, ...] = ()
    more: str = ""
    hint: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    reads: Literal["spec", "columns", "plain"] | None = None
    kind: Any = None


class Arg(Opt):
    """A positional argument of the shell."""


class Py(Opt):
    """An argument that only Python has."""


@dataclass(frozen=True)
class Declared:
    """A field of a request."""

    name: str
    hint: Any
    opt: Opt
    default: Any

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types of a value, without None."""
        parts = (self.hint,) if get_origin(self.hint) is Literal else get_args(self.hint) or (self.hint,)
        return tuple(kind for kind in parts if kind is not NoneType)

    @property
    def kind(self) -> Any:
        """The value's type in the shell."""
        if self.opt.kind is not None:
            return self.opt.kind
        if set(self.kinds) == {str, Path}:
            return Path
        return self.kinds[0] if self.kinds in ((bool,), (int,), (float,), (Path,)) else str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of an option in the shell."""
        if isinstance(self.opt, Arg):
            return ()
        if self.opt.key is not None:
            return (f"--set {self.opt.key}",)
        name = "--" + self.name.strip("_").replace("_", "-")
        if self.kinds == (bool,) and self.default is None:
            name += f"/--no-{name[2:]}"
        return (name, *filter(None, [self.opt.short]))

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(name for each in self.names for name in each.split("/"))

    def checked(self, value: Any, shown_name: str | None = None) -> Any:
        """Return the value, converted to the field's type.  Raises UserError if the value is invalid.  Arguments that
        only Python has are not checked.  shown_name: the argument's name in the message.
        """
        if set(self.kinds) == {str, Path} and self.kind is Path and value is not None:
            return Path(value)
        if value is self.default or value is None or self.hint is Any or isinstance(self.opt, Py):
            return value
        from pydantic import TypeAdapter, ValidationError

        opt = self.opt
        try:
            converted = TypeAdapter(self.hint).validate_python(value)
        except ValidationError:
            kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
            words = [str(word) for kind in self.kinds if get_origin(kind) is Literal for word in get_args(kind)]
            words += [kinds[kind] for kind in self.kinds if kind in kinds]
            several = [get_origin(kind) for kind in self.kinds if get_origin(kind) not in (None, Literal)]
            words += ["a dict" if origin is dict else "a sequence" for origin in several]
            wanted = " or ".join(dict.fromkeys(words))
        else:
            if (
                (opt.least is None or converted >= opt.least)
                and (opt.above is None or converted > opt.above)
                and (opt.most is None or converted <= opt.most)
            ):
                return converted
            above = f"above {opt.above}" if opt.least is None else f"{opt.least:,} or more"
            wanted = above if opt.most is None else f"from {opt.least:,} to {opt.most:,}"
        name = self.name.strip("_")
        shown_name = shown_name or (name if isinstance(opt, Arg) else shown_option(name))
        raise UserError(f"{shown_name} is {value!r}; it must be {wanted}{f'; {opt.hint}' if opt.hint else ''}")


@functools.cache
def declared(kind: Any) -> tuple[Declared, ...]:
    """Return the fields of a request that have an ``Opt``."""
    hints, declarations = get_type_hints(kind, include_extras=True), []
    for each in sorted(fields(kind), key=lambda field: bool(field.kw_only)):  # positional arguments first
        plain, *said = get_args(hints[each.name]) if get_origin(hints[each.name]) is Annotated else (hints[each.name],)
        opt = next((what for what in said if isinstance(what, Opt)), None)
        if opt is not None:
            declarations.append(Declared(each.name, plain, opt, each.default))
    return tuple(declarations)


def checked(request: Kind) -> Kind:
    """Return the request with its values checked and converted.  Raises UserError if a value is invalid."""
    kind: Any = type(request)
    return replace(request, **{each.name: each.checked(getattr(request, each.name)) for each in declared(kind)})  # type: ignore[type-var]


def function(kind: Callable[P, Kind], run: Callable[[Kind], R]) -> Callable[P, R]:
    """Return a Python function that makes a request and runs it.  Type checkers and editors see the function's arguments and result."""

    def call(*args: P.args, **values: P.kwargs) -> R:
        return run(checked(kind(*args, **values)))

    call.__name__ = call.__qualname__ = kind.__name__.lower()
    call.__module__, call.__doc__ = run.__module__, documented(kind)
    call.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return call


def documented(kind: Any) -> str:
    """Return the docstring of a request's Python function.  It describes the arguments, and omits what concerns only the shell."""
    paragraphs = []
    for block in inspect.cleandoc(kind.__doc__).split("\n\n"):
        if block.startswith(("    ", "Columns:", "Exit codes:")):
            break
        paragraphs.append(block)
    rows = []
    for each in declared(kind):
        types = " or ".join(dict.fromkeys(named(kind) for kind in each.kinds))
        optional = "" if each.default is MISSING else ", optional"
        without = f"  By default: {each.opt.without}." if each.opt.without else ""
        sentence = f"{each.opt.text}{without}{f'  {each.opt.more}' if each.opt.more else ''}"
        rows += [f"{each.name} : {types}{optional}", textwrap.indent(textwrap.fill(sentence, 120), "    ")]
    parameters = "\n".join(["Parameters\n----------", *rows])
    raises = "Raises\n------\nUserError\n    An argument or the data are invalid.  The message is one sentence, and no file has been written."
    return "\n\n".join([*paragraphs, parameters, raises])


def named(kind: Any) -> str:
    """Return the name of a type for a message or the documentation."""
    if get_origin(kind) is Literal:
        return ", ".join(map(repr, get_args(kind)))
    return (
        "list"
        if get_origin(kind) is not None
        else {Any: "object", Path: "path"}.get(kind, getattr(kind, "__name__", str(kind)))
    )


def stated(request: Any) -> dict[str, Any]:
    """Return, for a report, the arguments that differ from their defaults, without ``watch`` and ``report``.  A model
    is given by its name.
    """
    kind: Any = type(request)
    plain, values = (str, int, float, Path), dict[str, Any]()
    for each in declared(kind):
        value = getattr(request, each.name)
        if each.name in ("watch", "report") or value is None or value is each.default:
            continue
        if isinstance(value, (*plain, list, tuple)):
            if isinstance(value, (list, tuple)) and not all(isinstance(one, plain) for one in value):
                value = "arrays"
            if value != each.default:
                values[each.name] = value
        elif isinstance(value, dict):
            values[each.name] = ", ".join(f"{key}={one}" for key, one in value.items())
        else:
            values[each.name] = getattr(value, "name", None) or type(value).__name__
    return values


def schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a request, as far as JSON can express its values."""
    from pydantic import TypeAdapter

    shown = {
        each.name: (TypeAdapter(each.hint).json_schema() if each.hint is not Any else {})
        | {"description": each.opt.text}
        for each in declared(kind)
        if not isinstance(each.opt, Py)
    }
    return {
        "type": "object",
        "properties": shown,
        "required": [each.name for each in declared(kind) if each.default is MISSING],
    }


def hint_for(kind: Any, word: str) -> str | None:
    """Return a hint for an option that a command does not have, or None if there is no hint.  The hint names this command's
    option for the same thing, or the spec's key, or says why the command has neither.

    word: the option, which another command may have.
    """
    if said := getattr(kind, "instead", {}).get(word):
        return said
    named = ((each, word == f"--{each.name.strip('_').replace('_', '-')}") for each in declared(kind))
    field = next((each for each, same in named if word in each.opt.elsewhere or (same and each.opt.key)), None)
    return None if field is None else f"here it is {field.options[0]}{f'={field.opt.value}' if field.opt.key else ''}"
