"""What drawn rows say of all: lemma 2 and corollary 3 of paper 002."""

from __future__ import annotations

import math
from typing import Literal


def subset_size(confidence: float = 0.95, quantile: float = 0.05) -> int:
    """How many draws contain, with this confidence, one of the best ``quantile`` of all rows: ceil(log(1 - c) / log(1 - q)).

    59 for 0.95 and 0.05.  The result depends only on ranks, not on the distribution of scores.  Drawing without
    replacement is even better.  The statement is about the rank, not the score, of one vector: over n vectors, about
    (1 - c) n draws miss.
    """
    # (1 - q)^draws <= 1 - c; a quotient that is whole may be rounded up
    return math.ceil(math.log1p(-confidence) / math.log1p(-quantile) - 1e-12)


def radius(drawn: int, rows: int, width: float, confidence: float, form: Literal["serfling", "hoeffding"]) -> float:
    """How far the mean of all ``rows`` is above that of the ``drawn`` ones at most, with this confidence.

    width: of the interval that contains all residuals.  radius = width sqrt(f log(1 / (1 - confidence)) / (2 drawn)).  "serfling": f = 1 -
    (drawn - 1) / rows, for any fixed numbers.  "hoeffding": f = 1 - drawn / rows, for independent numbers (the paper's inequality is printed in
    the wrong direction).
    """
    left = 1 - (drawn - 1) / rows if form == "serfling" else 1 - drawn / rows
    return width * math.sqrt(left * math.log(1 / (1 - confidence)) / (2 * drawn))
