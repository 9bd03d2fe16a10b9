"""Errors of several predictors over a stream of any length, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOMENTS = 2**14
"""Most windows of a stream for which sums are kept."""
ALIKE = 1.02
"""Two errors count as equal if they differ by at most this factor."""


def verdict(model: float | None, simple: Mapping[str, float | None]) -> dict[str, Any] | None:
    """Comparison of the model with the best simple predictor, as plain values; None without a predictor or an error.

    winner: "model", the predictor's name, or None if the errors count as equal.  simple, error: the predictor and its
    error.
    ratio: the larger error divided by the smaller error; None if the smaller error is 0.
    """
    known = {name: error for name, error in simple.items() if error is not None and math.isfinite(error)}
    if model is None or not math.isfinite(model) or not known:
        return None
    best = min(known, key=lambda name: known[name])
    less, more = sorted((model, known[best]))
    alike = more <= ALIKE * less
    return {
        "winner": None if alike else "model" if model == less else best,
        "simple": best,
        "error": known[best],
        "model": model,
        "ratio": more / less if less > 0 else None,
    }


class Sums:
    """Sums over the rows of a stream, in up to ``moments`` windows of equal length.

    At first a window is one row; the length is doubled whenever there are too many windows.  A window's sum is not the
    difference of two running totals: after one huge row, later windows would lose all digits.
    """

    def __init__(self, columns: int, moments: int = MOMENTS) -> None:
        self.moments, self.spacing, self.rows = moments, 1, 0
        # sums of each window, and of the one that is not full yet
        self.parts, self.last = np.zeros((0, columns)), np.zeros(columns)

    def add(self, steps: np.ndarray) -> None:
        """Add the terms of the next rows, (rows, columns)."""
        if not len(steps):
            return
        which = (self.rows + np.arange(len(steps))) // self.spacing - len(self.parts)
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        sums = np.zeros((which[-1] + 1, len(self.last)))
        sums[which[starts]] = np.add.reduceat(np.asarray(steps, np.float64), starts, axis=0)
        sums[0] += self.last
        self.rows += len(steps)
        self._keep(np.concatenate([self.parts, sums]))
        while len(self.parts) > self.moments:
            self.spacing *= 2
            every = np.concatenate([self.parts, self.last[None]])
            self._keep(np.add.reduceat(every, np.arange(0, len(every), 2), axis=0))

    def _keep(self, every: np.ndarray) -> None:
        """Replace the sums of all windows; the last window may be incomplete."""
        full = self.rows // self.spacing
        self.parts = every[:full]
        self.last = every[full] if full < len(every) else np.zeros(every.shape[1])

    def since(self, first: int) -> tuple[int, np.ndarray]:
        """The start of the window that contains row ``first``, and the sums from there on, (columns,)."""
        start = min(first // self.spacing, len(self.parts))
        return start * self.spacing, self.parts[start:].sum(axis=0) + self.last

    def windows(self, most: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Up to ``most`` windows of about equal length from row ``first`` on.

        Returns first rows and lengths, (windows, 2), and sums, (windows, columns).
        """
        begin = min(-(-first // self.spacing), len(self.parts))
        marks = np.unique(np.linspace(begin, len(self.parts), most + 1).astype(int))
        where = np.column_stack([marks[:-1], np.diff(marks)]) * self.spacing
        if not len(where):
            return where, np.zeros((0, len(self.last)))
        return where, np.add.reduceat(self.parts, marks[:-1], axis=0)


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
        """Add the errors of the next rows, (rows, predictors), NaN where there is none.

        With several labels, (rows, predictors, labels): the mean over the labels counts.
        """
        errors = errors.reshape(len(errors), len(self.names), -1)
        counts = np.isfinite(errors).all(axis=(1, 2))
        e = np.where(counts[:, None, None], errors, 0.0)
        self.kept.add(np.column_stack([counts, np.abs(e).mean(axis=2), (e * e).mean(axis=2)]))

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Mean absolute error (mae) and root mean square error (rmse) of each predictor from row ``first`` on.

        The rows are counted from the start of the window that contains ``first``; this start is given as ``first_row``.
        An error is None if no row counts.
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
