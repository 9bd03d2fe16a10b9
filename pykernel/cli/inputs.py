"""What commands are given: specs, and lists of words and numbers."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


# ---------------------------------------------------------------------------------------------------------------- specs


def read_spec(spec_file: Path, trust: bool) -> Spec:
    """The spec; whose code, if it has any and is trusted, is executed, and that is said."""
    from pykernel.spec.model import load_spec

    return load_spec(spec_file, trust, lambda path: output.tell(f"executing {path}"))


def need_no_signal(spec: Spec, command: str) -> None:
    """Refuses a spec whose raw samples a command does not take."""
    if spec.signal is not None:
        raise UserError(f"{spec.name} has a [signal], which {command} does not take yet; pykernel simulate does")


# ---------------------------------------------------------------------------------------------------- words and numbers


def words(given: str | None) -> list[str]:
    """Parts between commas, each once."""
    return list(dict.fromkeys(word.strip() for word in (given or "").split(",") if word.strip()))


def positive_numbers(text: str, option: str) -> list[float]:
    """Numbers above zero, with commas between."""
    numbers = []
    for word in words(text):
        try:
            numbers.append(float(word))
        except ValueError:
            raise UserError(f"{option} is {text!r}; it must be numbers with commas between, such as 0.5,1,2") from None
        if not 0 < numbers[-1] < math.inf:
            raise UserError(f"{option} holds {word}; each must be above zero")
        if option == "--sigma" and not 1e-150 < numbers[-1] < 1e150:
            raise UserError(f"{option} holds {word}; its square must not overflow: scale the data")
    if not numbers:
        raise UserError(f"{option} is {text!r}; give at least one number")
    return numbers


def whole_numbers(text: str, option: str) -> list[int]:
    """Whole numbers, with commas between."""
    numbers = []
    for word in words(text):
        if not word.isascii() or not word.isdigit():
            raise UserError(f"{option} is {text!r}; it must be whole numbers with commas between, such as 8,16,32")
        numbers.append(int(word))
    if not numbers:
        raise UserError(f"{option} is {text!r}; give at least one number")
    return numbers


def workers(text: str | None, default: int) -> int | str:
    """A number of processes, or the address of a Dask scheduler."""
    from pykernel.parallel import MOST_PROCESSES

    if text is None:
        return default
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PROCESSES:
        return int(text)
    if "://" in text:
        return text
    raise UserError(
        f"--workers is {text!r}; it must be a number of processes from 1 to {MOST_PROCESSES:,}, or a Dask scheduler's address"
    )


def method_options(text: str | None, method: str) -> dict[str, Any]:
    """KEY=VALUE with commas between: options of a method of pykernel.bases (of auto those of any), epsilon and swaps."""
    from pykernel.bases.select import SELECTORS

    own = {"n_max", "seed", "candidates", "points", "tau"}  # options of the commands
    kinds = [SELECTORS[method]] if method in SELECTORS else list(SELECTORS.values())
    known: dict[str, str] = {}
    for kind in kinds:
        for name, parameter in list(inspect.signature(kind).parameters.items())[2:]:
            if name not in own:
                known.setdefault(name, str(parameter.annotation))
    known["swaps"] = "int"
    found: dict[str, Any] = {}
    for word in words(text):
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            keys = f"it must be KEY=VALUE, of {method} with a key of {', '.join(known)}"
            remedy = did_you_mean(name, known, keys) if equals else keys
            raise UserError(f"--with holds {word!r}; {remedy}")
        found[name] = _value_as(known[name], value, f"--with {word}")
    return found


def _value_as(annotation: str, value: str, where: str) -> Any:
    """A word as an annotated parameter takes it."""
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
