"""Limits of a device, and whether a model that was measured keeps them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pykernel.errors import UserError, option

HEADROOM = 0.96
"""Fraction of the limit of instructions that a model without a proved bound may use, because the longer search for the
worst case at the end finds slightly more instructions."""
ASKED = ("predict", "classify", "novelty")
CALLS = ("update", "push", "push_labelled", *ASKED, "forecast", *(f"forecast_{question}" for question in ASKED))
"""The functions for which the limit of instructions holds."""


@dataclass(frozen=True)
class Limits:
    """Limits for a model on a target: bytes of RAM (struct and stack) and of flash (everything that is linked), and
    instructions and cycles of a single call (the proved bound, else the worst case that was found).  Without a target,
    only the bytes of the struct are limited.
    """

    target: str | None = None
    ram: int | None = None
    flash: int | None = None
    instructions: int | None = None
    cycles: int | None = None

    def uses(self, **taken: int | None) -> dict[str, float]:
        """For each limit: the fraction that is used."""
        return {
            name: used / limit
            for name, used in taken.items()
            if used is not None and (limit := getattr(self, name)) is not None
        }


def parse_amount(given: str | int, name: str, thousand: int = 1024) -> int:
    """A number from text such as 4k, 4kB, 4KiB, 0.5M or 4096.  name: the argument's name; thousand: the value of k."""
    text = str(given)
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKmM]?)(?:i?[bB])?\s*", text, re.ASCII)
    if found is None or len(text) > 30:
        raise UserError(f"{option(name)} is {text[:40]!r}; it must be a number such as 4k, 4kB or 4096")
    amount = float(found[1]) * thousand ** {"": 0, "k": 1, "m": 2}[found[2].lower()]
    if amount < 1:
        raise UserError(f"{option(name)} is {text!r}; it must be at least 1")
    if amount >= 2**40:
        raise UserError(f"{option(name)} is {text!r}, which no microcontroller has; is the unit right?")
    return int(amount)


def make_limits(
    target: str | None, ram: int | None, flash: int | None, instructions: int | None, cycles: int | None = None
) -> Limits:
    """The limits; a limit that is not given is that of the target's part.

    Raises UserError if the part has less than a given limit, or if the target's cycles are not known.
    """
    from pykernel.targets import build, decode
    from pykernel.targets.target import find_target

    if target is None:
        return Limits(None, ram)
    part = find_target(target).part
    for name, given, there in (("ram", ram, part.ram.bytes), ("flash", flash, part.flash.bytes)):
        if given is not None and given > there:
            raise UserError(
                f"{option(name)} is {given:,} bytes, but {part.name}, which stands for {target}, has {there:,}"
            )
    exact = [name for name in decode.EXACT if find_target(name).unicorn]
    if cycles is not None and target not in exact:
        raise UserError(
            f"{option('cycles')}: those of {target} do not follow from its instructions; give {option('instructions')}, or {option('target')} {' or '.join(exact)}"
        )
    if cycles is not None:
        build.toolchain(find_target(target), "gcc")  # raises if gcc is missing: there are bounds only for its code
    return Limits(target, ram or part.ram.bytes, flash or part.flash.bytes, instructions, cycles)


def taken(costs: Mapping[str, Any], limits: Limits, headroom: float = 1.0) -> tuple[dict[str, int], dict[str, float]]:
    """The costs of a measured model, and the used fraction of each limit; empty if it was not measured.

    headroom: fraction of the limit of instructions that a model without a proved bound may use.
    """
    names = [name for name in CALLS if costs.get(name)]
    if costs.get("refused") or not names:
        return {}, {}
    calls, bounds = [costs[name] for name in names], [costs.get("bounds", {}).get(name, {}) for name in names]
    amounts = {
        "ram": int(costs["ram_bytes"] + costs["stack_bytes"]),
        "flash": int(costs["flash_bytes"]),
        "instructions": int(max(call["bound"] or call["worst"] or call["max"] for call in calls)),
    }
    if all(bound.get("cycles") and not bound["estimated"] for bound in bounds):
        amounts["cycles"] = max(bound["cycles"] for bound in bounds)
    uses = limits.uses(**amounts)
    if "instructions" in uses and not all(call["bound"] for call in calls):
        uses["instructions"] /= headroom
    return amounts, uses


def fits(uses: Mapping[str, float]) -> bool:
    """Whether no limit is exceeded; not for a model that could not be measured."""
    return max(uses.values(), default=math.inf) <= 1
