"""Errors of several predictors over a stream of any length, in constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MOMENTS = 2**14
"""Most moments of a stream at which sums are kept."""


class Sums:
    """Running sums of a stream's rows, kept at up to ``moments`` moments, evenly spaced.

    The sums over a later part of the stream, or over a window, are the difference of two moments.
    """

    def __init__(self, columns: int, moments: int = MOMENTS) -> None:
        self.moments, self.spacing = moments, 1
        # the first column counts the rows
        self.sums = np.zeros((1, 1 + columns))
        self.total = self.sums[0]

    @property
    def rows(self) -> int:
        return int(self.total[0])

    def add(self, steps: np.ndarray) -> None:
        """Take what the next rows add, (rows, columns)."""
        if not len(steps):
            return
        sums = self.total + np.cumsum(np.column_stack([np.ones(len(steps)), steps]), axis=0)
        self.total = sums[-1]
        self.sums = np.concatenate([self.sums, sums[sums[:, 0] % self.spacing == 0]])
        while len(self.sums) > self.moments:
            self.spacing *= 2
            self.sums = self.sums[self.sums[:, 0] % self.spacing == 0]

    def since(self, first: int) -> tuple[int, np.ndarray]:
        """The nearest moment kept, at or before row ``first``, and the sums from there on, (columns,)."""
        start = self.sums[np.searchsorted(self.sums[:, 0], first, side="right") - 1]
        return int(start[0]), (self.total - start)[1:]

    def windows(self, most: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Up to ``most`` windows of equal length from row ``first`` on: first rows and lengths (windows, 2), and their
        sums (windows, columns)."""
        begin = int(np.searchsorted(self.sums[:, 0], first))
        marks = np.unique(np.linspace(min(begin, len(self.sums) - 1), len(self.sums) - 1, most + 1).astype(int))
        parts = np.diff(self.sums[marks], axis=0)
        return np.column_stack([self.sums[marks[:-1], 0], parts[:, 0]]), parts[:, 1:]


class Errors:
    """Absolute and squared errors of several predictors.  A row counts only if every predictor has an error there."""

    def __init__(self, names: Sequence[str], moments: int = MOMENTS) -> None:
        self.names = tuple(names)
        # rows that count, sums of |e|, sums of e^2
        self.kept = Sums(1 + 2 * len(self.names), moments)

    @property
    def rows(self) -> int:
        return self.kept.rows

    def add(self, errors: np.ndarray) -> None:
        """Take the errors of the next rows, (rows, predictors), NaN where there is none; or (rows, predictors, labels),
        over which means are taken."""
        errors = errors.reshape(len(errors), len(self.names), -1)
        counts = np.isfinite(errors).all(axis=(1, 2))
        e = np.where(counts[:, None, None], errors, 0.0)
        self.kept.add(np.column_stack([counts, np.abs(e).mean(axis=2), (e * e).mean(axis=2)]))

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Mean absolute error (mae) and root mean square error (rmse) of each predictor from row ``first`` on.

        The nearest moment kept, at or before ``first``, is told as ``first_row``.  None if no row counts.
        """
        start, part = self.kept.since(first)
        k, n = len(self.names), part[0]

        def each(sums: np.ndarray) -> dict[str, float | None]:
            return {name: float(s) if n else None for name, s in zip(self.names, sums, strict=True)}

        n_or_1 = max(n, 1)
        return {
            "first_row": start,
            "scored": int(n),
            "mae": each(part[1 : 1 + k] / n_or_1),
            "rmse": each(np.sqrt(part[1 + k :] / n_or_1)),
        }

    def curve(self, windows: int = 60) -> tuple[np.ndarray, np.ndarray]:
        """Mean absolute errors in up to ``windows`` equal windows: middles (rows), errors (windows, predictors)."""
        where, parts = self.kept.windows(windows)
        with np.errstate(invalid="ignore"):
            return where[:, 0] + where[:, 1] / 2, parts[:, 1 : 1 + len(self.names)] / parts[:, :1]

    def squares(self, windows: int, first: int) -> np.ndarray:
        """Mean squared errors in up to ``windows`` equal windows from row ``first`` on, (windows, predictors)."""
        _, parts = self.kept.windows(windows, first)
        parts = parts[parts[:, 0] > 0]
        return np.asarray(parts[:, 1 + len(self.names) :] / parts[:, :1])
