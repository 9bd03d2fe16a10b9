"""Count the rows that lie outside the range of a frozen model's training rows."""

from __future__ import annotations

import numpy as np

from pykernel.host.samples import input_names, training_of
from pykernel.rows.columns import SENTINELS
from pykernel.spec.model import Spec

NEAR, SELDOM = 0.05, 0.002
"""A row is outside the training range if one of its inputs lies outside this input's range in the training rows, by
more than NEAR times the width of that range. The report mentions these rows if they make up more than the fraction SELDOM
of all rows.
"""


class Outside:
    """Counts the rows outside the range of a frozen model's training rows.  Codes for missing values are ignored."""

    def __init__(self, spec: Spec) -> None:
        trained = training_of(spec)
        ends = (None, None) if trained is None else (trained.low, trained.high)
        self.spec, self.known = spec, None not in ends
        low, high = (np.array(end or (), float) for end in ends)
        self.low, self.high, self.near = low, high, NEAR * (high - low)
        self.rows = self.outside = self.refused = 0
        self.columns = np.zeros(len(low), np.int64)  # for each input: number of rows in which it is out of range
        self.farthest = (low + high) / 2  # for each input: the value that lies farthest outside its range

    def add(self, x: np.ndarray) -> None:
        """Count the next rows."""
        if not self.known:
            return
        values = np.where(np.isfinite(x) & ~np.isin(x, list(SENTINELS)), x.astype(float), np.nan)
        with np.errstate(invalid="ignore"):
            outside = (values < self.low - self.near) | (values > self.high + self.near)
        rows = outside.any(axis=1)
        self.rows += len(x)
        self.outside += int(rows.sum())
        self.refused += int((rows & ~self.spec.accepts(x)).sum())
        self.columns += outside.sum(axis=0)
        middle = (self.low + self.high) / 2
        for j in np.flatnonzero(outside.any(axis=0)):
            found = np.append(values[outside[:, j], j], self.farthest[j])
            self.farthest[j] = found[np.abs(found - middle[j]).argmax()]

    def describe(self) -> str | None:
        """Return a sentence about the rows outside the range, or None if only a few rows are outside."""
        if self.outside <= SELDOM * self.rows:
            return None
        j = int((self.columns * (self.farthest != (self.low + self.high) / 2)).argmax())
        name = input_names(self.spec)[j]
        answers = {0: "are answered nevertheless", self.outside: "get no answer"}
        then = answers.get(self.refused, f"{self.refused:,} of them get no answer")
        return (
            f"{self.outside:,} of {self.rows:,} rows lie outside the range of the training data, and {then}: {name} reaches "
            f"{self.farthest[j]:.6g} here, but lay between {self.low[j]:g} and {self.high[j]:g} in training; train the model with rows like these"
        )
