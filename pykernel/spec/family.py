"""What a family of models brings to a spec: its rules, its checks and the parameters of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from pykernel.dialect.program import LabelKind, Program

STATE_LIMIT = 64 * 2**20
"""Most bytes of one model; no microcontroller has more, and a typing error should not fill a PC's memory."""

REHEARSAL_LIMIT = 2**27
"""About how many numbers a self-test may touch: seconds on a PC, and less than a minute on a board of 100 MHz."""

Refuse = Callable[[str, str], NoReturn]
"""Called with where, such as "[learning] eta", and what is wrong there and would be right."""


class Family(Protocol):
    """Models that share a program."""

    rules: tuple[str, ...]
    programs: Mapping[LabelKind, Program]
    spec: type[Any]  # a class below pykernel.spec.base.Spec, whose sections say which keys there are
    online: bool  # whether choose and plan compare them: models that learn sample by sample, from raw inputs

    def why_ignored(self, spec: Any, section: str, key: str) -> str | None:
        """Why a key that the family has means nothing beside the others; None if it does mean something."""

    def validate(self, spec: Any, refuse: Refuse) -> None:
        """Refuse what cannot be computed."""

    def capacities(self, spec: Any) -> dict[str, int]:
        """Values of the extents."""

    def size_bound(self, spec: Any) -> int:
        """About how many numbers the memory holds, from above."""

    def parameters(self, spec: Any) -> dict[str, Any]:
        """Values of the config's fields, in float64."""


def affordable(most: int, touched: Callable[[int], float]) -> int:
    """Of so many made-up samples, how many the self-test takes: all, unless they touch too many numbers.

    touched: about how many numbers m samples touch; it rises with m.
    """
    if touched(most) <= REHEARSAL_LIMIT:
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if touched(middle) <= REHEARSAL_LIMIT else (low, middle)
    return low


def filling(m: int, budget: int) -> float:
    """What m samples touch, in parts of the memory, of a model that each sample fills a little more."""
    return m * m / (2 * budget) if m <= budget else m - budget / 2
