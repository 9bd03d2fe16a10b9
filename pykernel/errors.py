"""What a user can do something about, and what may help: the word that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Bad input: one sentence that says what was wrong, where, and what would be right.  The command exits with 2."""


class UntrustedCode(UserError):
    """A spec names code that would be executed, and nobody has said that it may be."""


class MissingExtra(UserError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package; install it with: pip install 'pykernel-mcu[{extra}]'")


class CheckFailed(Exception):
    """The device's code does not compute what the host computes.  The command exits with 1."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant: spelled alike, in whatever case; None if there is none."""
    there = list(known)
    if word in there:
        return word
    cases: dict[str, str] = {}
    for each in there:
        cases.setdefault(each.casefold(), each)
    found = difflib.get_close_matches(word.casefold(), cases, 1)
    return cases[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """The end of a sentence about an unknown word: the word that was probably meant, else ``otherwise``."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near!r}?"
