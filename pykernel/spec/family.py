"""The interface between specs and families of models: a family's rules, its checks and the parameters of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from pykernel.dialect.program import LabelKind, Program

STATE_LIMIT = 64 * 2**20
"""Maximum size of a model in bytes.  Microcontrollers have less memory; the limit keeps a typo from filling a PC's memory."""

REHEARSAL_LIMIT = 2**27
"""Approximate limit on the count of numbers that a self-test touches.  A self-test at this limit takes seconds on a PC,
and less than a minute on a board at 100 MHz."""

Refuse = Callable[[str, str], NoReturn]
"""A function of (where, sentence): ``where`` is a place in the spec, such as "[learning] eta"; ``sentence`` says what is wrong
there, and what would be right.
"""


class Family(Protocol):
    """Models that share a program for each kind of label."""

    rules: Mapping[str, str]  # rule -> the form of its models in one word, such as "linear"
    programs: Mapping[LabelKind, Program]
    spec: type[Any]  # a subclass of pykernel.spec.base.Spec, whose sections declare the keys
    # whether the models learn sample by sample, without a basis or a subspace; plots of a search show them separately
    online: bool

    def validate(self, spec: Any, refuse: Refuse) -> None:
        """Refuse a spec from which no model can be computed."""

    def capacities(self, spec: Any) -> dict[str, int]:
        """Values of the extents."""

    def parameters(self, spec: Any) -> dict[str, Any]:
        """Values of the config's fields, in float64."""


class Models:
    """Base class of families that have their own subclass of ``Spec``.  The subclass refers to its family as ``models``."""

    spec: type[Any]
    online = False

    def __init__(self) -> None:
        self.spec.models = self


def affordable(most: int, touched: Callable[[int], float]) -> int:
    """Return the number of samples in the self-test: ``most``, or fewer if that many would touch too many numbers.

    touched: a function that returns, for m samples, the approximate count of numbers that they touch.  The count must
    increase with m.
    """
    if touched(most) <= REHEARSAL_LIMIT:
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if touched(middle) <= REHEARSAL_LIMIT else (low, middle)
    return low


def filling(m: int, budget: int) -> float:
    """Return the amount of memory that m samples touch in total, as a multiple of the size of the whole memory.

    The first ``budget`` samples fill the memory step by step; each later sample touches all of it.
    """
    return m * m / (2 * budget) if m <= budget else m - budget / 2
