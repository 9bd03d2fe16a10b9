"""The number of bits in which C computes integer expressions, on targets where an ``int`` has only 16 bits.

Variables, elements and results of functions have types of 32 bits, so an expression with one of them has 32 bits.  An
expression that consists only of constants (literals, macros of parameters and capacities, and enumeration members) is
computed in ``int``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.dialect import Bool, Extent, Real, Word
from pykernel.language.ir import Binary, Choice, Expr, Length, Literal, Member, Parameter, Unary

INT_MAX, UNSIGNED_MAX = 2**15 - 1, 2**16 - 1
COMPUTING = ("+", "-", "*", "//", "%", "<<", ">>", "&")


class Widths:
    """The widths of one model's expressions.

    A capacity or a parameter without a given value may have any ``int`` value.
    """

    def __init__(self, capacities: Mapping[str, int], config: Any) -> None:
        self.capacities, self.config = capacities, config

    def in_int(self, node: Expr) -> tuple[int, int] | None:
        """Return the range of an expression that C computes in an ``int`` of 16 bits, or None for other expressions.

        If the printer writes a cast for an operator (see ``needs_width``), C computes the operator in 32 bits.
        """
        found = self._range(node)
        return found if found is not None and _fits(node, found) else None

    def needs_width(self, node: Binary) -> bool:
        """Return whether an operator's left operand must be cast because the result may not fit into a 16-bit ``int``."""
        if node.op not in COMPUTING or node.kind in (Real, Bool):
            return False
        if node.op == "<<":  # C shifts in the type of the left operand
            return self.in_int(node.left) is not None
        found = self._range(node)
        return found is not None and not _fits(node, found)

    def extent_needs_width(self, extent: Extent) -> bool:
        """Return whether an array's size may not fit into the ``int`` in which C computes it."""
        known = all(symbol in self.capacities for symbol in extent.symbols)
        return len(extent.text) > len(extent.symbols[0]) and not (known and extent.value(self.capacities) <= INT_MAX)

    def _range(self, node: Expr) -> tuple[int, int] | None:
        """Return the range of an expression that C computes in ``int``, even if the range needs more than 16 bits, or
        None if an operand has 32 bits.
        """
        if node.kind in (Real, Bool):
            return None
        match node:
            case Literal(value=value) | Member(value=value):
                return int(value), int(value)
            case Parameter(name=name):
                value = getattr(self.config, name, None)
                return (-INT_MAX, INT_MAX) if value is None else (int(value), int(value))
            case Length(extent=Extent(symbols=symbols)) if not self.capacities.keys() >= set(symbols):
                return 0, INT_MAX
            case Length(extent=extent):
                size = extent.value(self.capacities) if isinstance(extent, Extent) else int(extent)
                return size, size
            case Unary(operand=operand):
                found = self.in_int(operand)
                return None if found is None else (-found[1], -found[0])
            case Choice(yes=one, no=other) | Binary(left=one, right=other):
                left, right = self.in_int(one), self.in_int(other)
                return None if left is None or right is None else _result(node, left, right)
        return None


def _fits(node: Expr, ends: tuple[int, int]) -> bool:
    """Return whether a range fits into 16 bits.  C itself gives 32 bits to a literal that does not fit."""
    least, most = (0, UNSIGNED_MAX) if node.kind is Word else (-INT_MAX, INT_MAX)
    return least <= ends[0] and ends[1] <= most


def _result(node: Choice | Binary, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    """Return the range of an operation on two ranges, or of a choice between them.  Returns None for <<, whose operand
    is always cast.
    """
    match node:
        case Choice():
            return min(left[0], right[0]), max(left[1], right[1])
        case Binary(op="<<"):
            return None
        case Binary(op="+"):
            return left[0] + right[0], left[1] + right[1]
        case Binary(op="-"):
            return left[0] - right[1], left[1] - right[0]
        case Binary(op="*"):
            ends = [a * b for a in left for b in right]
            return min(ends), max(ends)
    # for //, %, >> and &, the result is not larger than the left operand
    return min(left[0], 0), max(left[1], 0)
