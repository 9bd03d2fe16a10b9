"""In how many bits C computes integer expressions, on targets where an ``int`` has only 16 bits.

A variable, an element and a function's result have types of 32 bits, so an expression with one of them has 32 bits.  An
expression of constants alone is computed in ``int``: literals, macros of parameters and capacities, enumeration
members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.dialect import Bool, Extent, Real, Word
from pykernel.gen.ir import Binary, Choice, Expr, Length, Literal, Member, Parameter, Unary

INT_MAX, UNSIGNED_MAX = 2**15 - 1, 2**16 - 1
COMPUTING = ("+", "-", "*", "//", "%", "<<", ">>", "&")


class Widths:
    """The widths of one model's expressions.

    A capacity or a parameter that is not given may have any ``int`` value.
    """

    def __init__(self, capacities: Mapping[str, int], config: Any) -> None:
        self.capacities, self.config = capacities, config

    def in_int(self, node: Expr) -> tuple[int, int] | None:
        """The range of an expression that C computes in ``int`` and that fits into 16 bits; None if it has 32 bits.

        An operator has 32 bits as well if the printer writes a cast for it; see ``needs_width``.
        """
        found = self._range(node)
        return found if found is not None and _fits(node, found) else None

    def needs_width(self, node: Binary) -> bool:
        """Whether an operator's left operand must be cast, because the result may not fit into an ``int`` of 16
        bits.
        """
        if node.op not in COMPUTING or node.kind in (Real, Bool):
            return False
        if node.op == "<<":  # C shifts in the type of what is shifted
            return self.in_int(node.left) is not None
        found = self._range(node)
        return found is not None and not _fits(node, found)

    def extent_needs_width(self, extent: Extent) -> bool:
        """Whether an array's size may not fit into the ``int`` in which C computes it."""
        known = all(symbol in self.capacities for symbol in extent.symbols)
        return len(extent.text) > len(extent.symbols[0]) and not (known and extent.value(self.capacities) <= INT_MAX)

    def _range(self, node: Expr) -> tuple[int, int] | None:
        """As ``in_int``, but the result may need more than 16 bits; None if an operand has 32 bits."""
        if node.kind in (Real, Bool):
            return None
        if isinstance(node, (Literal, Member)):
            return int(node.value), int(node.value)
        if isinstance(node, Parameter):
            value = getattr(self.config, node.name, None)
            return (-INT_MAX, INT_MAX) if value is None else (int(value), int(value))
        if isinstance(node, Length):
            if not isinstance(node.extent, Extent):
                return int(node.extent), int(node.extent)
            if any(symbol not in self.capacities for symbol in node.extent.symbols):
                return 0, INT_MAX
            size = node.extent.value(self.capacities)
            return size, size
        if isinstance(node, Unary):
            found = self.in_int(node.operand)
            return None if found is None else (-found[1], -found[0])
        if isinstance(node, Choice):
            yes, no = self.in_int(node.yes), self.in_int(node.no)
            return None if yes is None or no is None else (min(yes[0], no[0]), max(yes[1], no[1]))
        if isinstance(node, Binary) and node.op != "<<":  # a << is always cast
            left, right = self.in_int(node.left), self.in_int(node.right)
            return None if left is None or right is None else _result(node.op, left, right)
        return None


def _fits(node: Expr, found: tuple[int, int]) -> bool:
    """Whether a range fits into 16 bits.  C itself gives 32 bits to a literal that does not fit."""
    least, most = (0, UNSIGNED_MAX) if node.kind is Word else (-INT_MAX, INT_MAX)
    return least <= found[0] and found[1] <= most


def _result(op: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    if op == "+":
        return left[0] + right[0], left[1] + right[1]
    if op == "-":
        return left[0] - right[1], left[1] - right[0]
    if op == "*":
        ends = [a * b for a in left for b in right]
        return min(ends), max(ends)
    # the result of //, %, >> and & is not larger than the left operand
    return min(left[0], 0), max(left[1], 0)
