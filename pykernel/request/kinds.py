"""Kinds of values: numbers, words and amounts, given as Python objects or as text from a shell."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from pykernel.errors import UserError, shown_option

File = str | Path
Files = str | Path | Sequence[str | Path]
"""A table of one device, or the tables of many devices: a folder, a glob or several files."""
Jobs = int | str | None
"""A number of processes."""
Numbers = str | float | Sequence[float] | None
"""One number, several numbers, or text with comma-separated numbers."""
Words = str | Sequence[str] | None
"""A sequence of names, or text with comma-separated names."""


def path_of(file: File | None) -> Path | None:
    return None if file is None else Path(file)


def words(value: str | Sequence[str] | None) -> list[str]:
    """Return names without repetitions.  value: a sequence of names, or text with comma-separated names."""
    parts = value.split(",") if isinstance(value, str) else list(value or ())
    return list(dict.fromkeys(word.strip() for word in parts if word.strip()))


def _parts(value: str | float | Sequence[float], name: str) -> list[str]:
    """Return the text of each number."""
    numbers = value if isinstance(value, Sequence) else [value]
    parts = words(value) if isinstance(value, str) else [repr(each) for each in numbers]
    if not parts:
        raise UserError(f"{shown_option(name)} is {value!r}; give at least one number")
    return parts


def positive_numbers(value: str | float | Sequence[float], name: str) -> list[float]:
    """Return the given numbers as a list, like ``numbers``.  name: the argument's name.

    Raises UserError unless all numbers are above zero and finite.  The square of a sigma must neither overflow nor
    become 0.
    """
    values = numbers(value, name)
    for word, number in zip(_parts(value, name), values, strict=True):
        if not 0 < number < math.inf:
            raise UserError(f"{shown_option(name)} holds {word}; all numbers must be above zero and finite")
        if name == "sigma" and not 1e-150 < number < 1e150:
            raise UserError(
                f"{shown_option(name)} holds {word}; its square must neither overflow nor become 0: scale the data"
            )
    return values


def numbers(value: str | float | Sequence[float], name: str) -> list[float]:
    """Return a list of numbers.  value: one or more numbers, or text with comma-separated numbers.  name: the argument's name."""
    words = list(_parts(value, name))
    try:
        return [float(word) for word in words]
    except ValueError:
        raise UserError(
            f"{shown_option(name)} is {value!r}; it must be numbers separated by commas, such as 0.5,1,2"
        ) from None


def parse_amount(value: str | int, name: str, thousand: int = 1024) -> int:
    """Read an amount such as 4k, 4kB, 4KiB, 0.5M or 4096.  name: the argument's name.  thousand: the value of k; M is
    the square of this value.
    """
    text = str(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKmM]?)(?:i?[bB])?\s*", text, re.ASCII)
    if match is None or len(text) > 30:
        raise UserError(f"{shown_option(name)} is {text[:40]!r}; it must be a number such as 4k, 4kB or 4096")
    amount = float(match[1]) * thousand ** {"": 0, "k": 1, "m": 2}[match[2].lower()]
    if amount < 1:
        raise UserError(f"{shown_option(name)} is {text!r}; it must be at least 1")
    if amount >= 2**40:
        raise UserError(
            f"{shown_option(name)} is {text!r}, which is too large for a microcontroller; is the unit right?"
        )
    return int(amount)


def measured(amount: float | str, name: str) -> float:
    """Return a number above 0.  amount: a number, or text such as 48M, 32.768k or 0.1.  name: the argument's name."""
    text = amount if isinstance(amount, str) else f"{amount:f}"
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([kKM]?)", text, re.ASCII)
    value = (
        float(match[1]) * {"": 1, "k": 1e3, "M": 1e6}[match[2].replace("K", "k")] if match and len(text) < 30 else 0.0
    )
    if value <= 0:
        example = {"clock": "48M", "rate": "10", "current": "120"}[name]
        raise UserError(f"{shown_option(name)} is {text[:40]!r}; it must be a number above 0, such as {example}")
    if name == "clock" and value < 1000:
        raise UserError(f"{shown_option(name)} is {text}, which is {value:g} Hz; for megahertz write {text}M")
    return value
