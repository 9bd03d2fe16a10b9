"""Rows of sensors, and the faults in them: what every file of this folder speaks of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Fault(NamedTuple):
    """One fault: what happens to which sensors, in the rows first, .., last - 1."""

    kind: str  # the name that its author gave it
    first: int
    last: int
    channels: tuple[int, ...]  # the sensors that it changes
    says: str = ""  # what an operator should be told: jump, drift, stuck, noise, regime; "": nobody can say

    @property
    def lasts(self) -> int:
        return self.last - self.first


class Stream(NamedTuple):
    """Rows in time order, and their faults, which do not overlap."""

    name: str
    kind: str  # the kind of stream, such as "several regimes"
    rows: np.ndarray  # (T, D), float32
    faults: tuple[Fault, ...] = ()

    @property
    def faulty(self) -> np.ndarray:
        """Which rows are faulty, (T,)."""
        found = np.zeros(len(self.rows), bool)
        for fault in self.faults:
            found[fault.first : fault.last] = True
        return found
