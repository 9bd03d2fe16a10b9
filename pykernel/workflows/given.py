"""What workflows are given: lists, numbers and words, as Python objects, or as text with commas from a shell; and files."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pykernel.errors import UserError, did_you_mean, option
from pykernel.files import open_data, whole_file
from pykernel.progress import Show
from pykernel.telling import Watch, refuse

Numbers = str | float | Sequence[float] | None
"""One number, several numbers, or text with commas."""


def need_known(word: str, known: Sequence[str], name: str, where: str = "") -> None:
    """Raises UserError for a word that an argument cannot be.  name: the argument's; where: in which command."""
    if word not in known:
        from pykernel.spec.model import meant

        remedy = meant(word, known, f"there are: {', '.join(known)}")
        raise UserError(f"{option(name)} {word} is not known{where}; {remedy}")


def words(given: str | Sequence[str] | None) -> list[str]:
    """Names without repetitions: the parts of a text between commas, or the items of a sequence."""
    parts = given.split(",") if isinstance(given, str) else list(given or ())
    return list(dict.fromkeys(word.strip() for word in parts if word.strip()))


def _parts(given: str | float | Sequence[float], name: str) -> list[str]:
    """The text of each number."""
    numbers = given if isinstance(given, Sequence) else [given]
    parts = words(given) if isinstance(given, str) else [repr(each) for each in numbers]
    if not parts:
        raise UserError(f"{option(name)} is {given!r}; give at least one number")
    return parts


def positive_numbers(given: str | float | Sequence[float], name: str) -> list[float]:
    """Numbers above zero; name: the argument's."""
    numbers = []
    for word in _parts(given, name):
        try:
            numbers.append(float(word))
        except ValueError:
            raise UserError(
                f"{option(name)} is {given!r}; it must be numbers with commas between, such as 0.5,1,2"
            ) from None
        refuse(
            (not 0 < numbers[-1] < math.inf, f"{option(name)} holds {word}; each must be above zero"),
            (
                name == "sigma" and not 1e-150 < numbers[-1] < 1e150,
                f"{option(name)} holds {word}; its square must not overflow: scale the data",
            ),
        )
    return numbers


def whole_numbers(given: str | int | Sequence[int], name: str) -> list[int]:
    """Whole numbers from zero on; name: the argument's."""
    found = _parts(given, name)
    if not all(word.isascii() and word.isdigit() for word in found):
        raise UserError(f"{option(name)} is {given!r}; it must be whole numbers with commas between, such as 8,16,32")
    return [int(word) for word in found]


def method_options(given: str | Mapping[str, Any] | None, method: str) -> dict[str, Any]:
    """Options of a method of pykernel.bases ("auto": options of any method), and epsilon and swaps.

    given: text KEY=VALUE with commas, or a dict.
    """
    from pykernel.bases.select import SELECTORS, keywords

    own = {"n_max", "seed", "candidates", "points", "tau"}  # arguments of the workflows
    kinds = [SELECTORS[method]] if method in SELECTORS else list(SELECTORS.values())
    known: dict[str, str] = {}
    for kind in kinds:
        for name, annotation in keywords(kind).items():
            if name not in own:
                known.setdefault(name, annotation)
    known["swaps"] = "int"
    text = (
        words(given)
        if not isinstance(given, Mapping)
        else [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in given.items()]
    )
    found: dict[str, Any] = {}
    for word in text:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            keys = f"it must be KEY=VALUE, of {method} with a key of {', '.join(known)}"
            remedy = did_you_mean(name, known, keys) if equals else keys
            raise UserError(f"{option('with')} holds {word!r}; {remedy}")
        found[name] = _value_as(known[name], value, f"{option('with')} {word}")
    return found


def _value_as(annotation: str, value: str, where: str) -> Any:
    """A word converted to the type of an annotated parameter."""
    if "Literal" in annotation:
        choices = re.findall(r"[\"']([^\"']+)[\"']", annotation)
        if value not in choices:
            remedy = did_you_mean(value, choices, f"it must be one of {', '.join(choices)}")
            raise UserError(f"{where}: {value!r} is not known; {remedy}")
        return value
    if "bool" in annotation and value in ("true", "false"):
        return value == "true"
    for kind, convert, what in (("int", int, "a whole number"), ("float", float, "a number")):
        if kind in annotation:
            try:
                return convert(value)
            except ValueError:
                raise UserError(f"{where}: {value!r} must be {what}") from None
    raise UserError(f"{where}: {value!r} must be true or false")


@contextlib.contextmanager
def opened(data: str, watch: Watch) -> Iterator[tuple[str, BinaryIO, Show]]:
    """The name and the file of the data, and a function that shows how many of its bytes are read."""
    with contextlib.ExitStack() as stack:
        name, file, size = open_data(data, stack)
        yield name, file, stack.enter_context(watch.progress(size))


def need_report(path: Path | None) -> None:
    """Raises UserError unless the file's name is that of a report."""
    if path is not None and path.suffix.lower() != ".html":
        raise UserError(
            f"{option('plot')} {path}: a report, with its figures, is an HTML file; give {path.with_suffix('.html')}"
        )


PLAIN = (str, int, float, Path)


def stated(given: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """For a report: the arguments that were given, without those that have their defaults.  Models have their names."""
    known = inspect.signature(function).parameters
    found: dict[str, Any] = {}
    for name, parameter in known.items():
        value = given.get(name)
        if (
            name in ("watch", "plot")
            or value is None
            or value is parameter.default
            or parameter.kind is parameter.VAR_KEYWORD
        ):
            continue
        if isinstance(value, (*PLAIN, list, tuple)):
            if isinstance(value, (list, tuple)) and not all(isinstance(each, PLAIN) for each in value):
                value = "arrays"
            if value != parameter.default:
                found[name] = value
        elif isinstance(value, Mapping):
            found[name] = ", ".join(f"{key}={each}" for key, each in value.items())
        else:
            found[name] = getattr(value, "name", None) or type(value).__name__
    return found


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file, or nothing."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
