"""Names as an order: in which a model takes its inputs and labels, and numbers its classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykernel.errors import UserError
from pykernel.spec.base import Spec

Names = Mapping[str, Sequence[str | None]]
"""What is named -> the names in their order; None for one that has no name."""
SHOWN = 8


def names_of(spec: Spec) -> dict[str, list[str | None]]:
    """A sample's numbers, then its labels; and the classes."""
    inputs = spec.sample_columns or (None,) * spec.width
    return {"columns": [*inputs, *spec.label_columns], "classes": [*(spec.label.classes or ())]}


def require_order(known: Names, given: Names, where: str, whose: str) -> None:
    """Refuse names of which one stands at another's place; new names are allowed, because columns may be renamed.

    where: what has the known names; whose: what has the given ones.  Raises UserError with both orders.
    """
    for what, names in known.items():
        others = given.get(what, ())
        for at, (name, other) in enumerate(zip(names, others, strict=False)):
            if name != other and None not in (name, other) and (name in others or other in names):
                raise UserError(
                    f"{where}: its {what} are {_shown(names, at)}, but {whose} has {_shown(others, at)}; keep the first order: what "
                    "was learned belongs to places, not to names"
                )


def _shown(names: Sequence[str | None], at: int) -> str:
    """The names, of many those from a position on."""
    first = at if len(names) > SHOWN else 0
    shown = ", ".join(map(str, names[first : first + SHOWN]))
    return f"{'…, ' * bool(first)}{shown}{', …' * (len(names) > first + SHOWN)}"
