"""Collect the errors of predictors, and a model's answers and alarms, over a stream of any length, in constant memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOMENTS = 2**14
"""Maximum number of windows into which a stream is divided.  The values of each window are summed separately."""
ALIKE = 1.02
"""Two errors are considered equal if the larger one is at most ALIKE times the smaller one."""


def verdict(model: float | None, simple: Mapping[str, float | None]) -> dict[str, Any] | None:
    """Compare the model with the best simple predictor. Returns a dict, or None if the model or every simple predictor has
    no finite error.

    winner: whichever has the smaller error, "model" or the predictor's name; None if the errors are considered equal.
    simple, error: the best simple predictor and its error.  model: the model's error.
    ratio: the larger error divided by the smaller error, or None if the smaller error is 0.
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


class Windows:
    """The values of a stream's rows, combined into up to ``most`` windows of equal length.

    At first a window is one row; the length is doubled whenever there are too many windows.  In each window, the first
    ``summed`` columns are summed over the rows, the next ``largest`` columns keep their largest value, and all other
    columns keep their last value.  Each window is summed separately, because differences of running totals would lose
    all digits after one huge row.
    """

    def __init__(self, summed: int, largest: int = 0, others: int = 0, most: int = MOMENTS) -> None:
        self.most, self.spacing, self.rows = most, 1, 0
        self.ends = summed, summed + largest
        self.table = np.zeros((0, summed + largest + others))  # the last window may not be full yet

    def add(self, steps: np.ndarray) -> None:
        """Add the next rows, (rows, columns)."""
        which = (self.rows + np.arange(len(steps))) // self.spacing
        self.rows += len(steps)
        full, latest = np.split(self.table, [max(len(self.table) - 1, 0)])
        starts = np.flatnonzero(np.diff(np.concatenate([len(full) + np.arange(len(latest)), which]), prepend=-1))
        self.table = np.concatenate([full, self._reduced(np.concatenate([latest, steps]), starts)])
        while len(self.table) > self.most:
            self.spacing *= 2
            self.table = self._reduced(self.table, np.arange(0, len(self.table), 2))

    def _reduced(self, table: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Combine the rows from each start up to the next start into one row."""
        if not len(starts):
            return table[:0]
        summed, largest, last = np.split(table, self.ends, axis=1)
        parts = [np.add.reduceat(summed, starts, axis=0), np.fmax.reduceat(largest, starts, axis=0)]
        return np.concatenate([*parts, last[np.append(starts[1:], len(table)) - 1]], axis=1)

    def since(self, first: int) -> tuple[int, np.ndarray]:
        """Combine the window that contains row ``first`` and all later windows.

        Returns (row, values): the first row of these windows, and their combined values, (columns,), which are zeros if
        there are no rows.
        """
        start = min(first // self.spacing, len(self.table))
        found = self._reduced(self.table[start:], np.arange(min(1, len(self.table) - start)))
        return start * self.spacing, found[0] if len(found) else np.zeros(self.table.shape[1])

    def windows(self, most: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Combine the full windows from row ``first`` on into up to ``most`` windows of about equal length.

        Returns two arrays: one of shape (windows, 2) with each new window's first row and length, and one of shape
        (windows, columns) with the windows' values.
        """
        full = self.rows // self.spacing
        marks = np.unique(np.linspace(min(-(-first // self.spacing), full), full, most + 1).astype(int))
        where = np.column_stack([marks[:-1], np.diff(marks)]) * self.spacing
        return where, self._reduced(self.table[:full], marks[:-1])

    def longer(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Combine all windows into up to ``most`` windows. The result has the form of ``windows``.

        Each new window combines the same number of old windows, a power of two; the last new window may be shorter.
        """
        together = 1
        while len(self.table) > together * most:
            together *= 2
        starts = np.arange(0, len(self.table), together)
        lengths = np.diff(np.append(starts * self.spacing, self.rows))
        return np.column_stack([starts * self.spacing, lengths]), self._reduced(self.table, starts)


class Errors:
    """Absolute and squared errors of several predictors.  A row is counted only if every predictor has an error for it."""

    def __init__(self, names: Sequence[str], moments: int = MOMENTS) -> None:
        self.names = tuple(names)
        # number of counted rows, sums of |e|, sums of e^2
        self.kept = Windows(1 + 2 * len(self.names), most=moments)

    def add(self, errors: np.ndarray) -> None:
        """Add the errors of the next rows, (rows, predictors), with NaN where an error is not known.

        With several labels, the shape is (rows, predictors, labels), and the mean over the labels is taken.
        """
        errors = errors.reshape(len(errors), len(self.names), -1)
        counts = np.isfinite(errors).all(axis=(1, 2))
        e = np.where(counts[:, None, None], errors, 0.0)
        self.kept.add(np.column_stack([counts, np.abs(e).mean(axis=2), (e * e).mean(axis=2)]))

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Return the mean absolute error (mae) and root mean square error (rmse) of each predictor from row ``first`` on.

        Rows are counted from ``first_row`` on, which is the first row of the window that contains ``first``.  An error
        is None if no row was counted.
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
        """Return two arrays for up to ``windows`` equal windows: one of shape (windows,) with the row in the middle of
        each window, and one of shape (windows, predictors) with the mean absolute errors in the window.
        """
        where, parts = self.kept.windows(windows)
        with np.errstate(invalid="ignore"):
            return where[:, 0] + where[:, 1] / 2, parts[:, 1 : 1 + len(self.names)] / parts[:, :1]

    def squares(self, windows: int, first: int) -> np.ndarray:
        """Return mean squared errors in up to ``windows`` equal windows from row ``first`` on, (windows, predictors)."""
        _, parts = self.kept.windows(windows, first)
        parts = parts[parts[:, 0] > 0]
        return np.asarray(parts[:, 1 + len(self.names) :] / parts[:, :1])


class Coverage:
    """Counts the labels within the model's intervals, and sums the intervals' widths.

    An untrained model's interval covers all possible labels, so counting begins with the first row that has a different
    interval.
    """

    SHOWN = 200  # number of latest rows that are kept for a figure

    def __init__(self, labels: int, start: np.ndarray, moments: int = MOMENTS) -> None:
        self.labels, self._start, self._known = labels, start, False
        # for each label: number of counted rows, number of labels within the interval, sum of the intervals' widths
        self.kept = Windows(3 * labels, most=moments)
        self.latest = np.zeros((0, 4))

    def add(self, answers: np.ndarray, truth: np.ndarray, ends: np.ndarray) -> None:
        """Add the next rows.

        answers, truth: (rows, labels), with NaN where a value is not known. ends: all lower ends, then all upper ends,
        (rows, 2 labels).
        """
        lower, upper = np.split(ends, 2, axis=1)
        known = np.logical_or.accumulate(
            np.append(self._known, (np.isfinite(ends) & (ends != self._start)).any(axis=1))
        )
        self._known = bool(known[-1])
        counts = known[1:, None] & np.isfinite(truth) & np.isfinite(lower)
        within, width = counts & (truth >= lower) & (truth <= upper), np.where(counts, upper - lower, 0.0)
        self.kept.add(np.column_stack([counts, within, width]))
        rows = np.column_stack([answers[:, 0], truth[:, 0], lower[:, 0], upper[:, 0]])
        rows[~known[1:]] = np.nan
        self.latest = np.concatenate([self.latest, rows])[-self.SHOWN :]

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Return the coverage from row ``first`` on.

        scored: the number of counted labels. inside: the fraction of these labels within the intervals.  width: the
        intervals' mean width; with several labels, one mean per label.
        """
        _, part = self.kept.since(first)
        counts, within, width = part.reshape(3, self.labels)
        means = [float(w / n) if n else None for w, n in zip(width, counts, strict=True)]
        scored = int(counts.sum())
        inside = float(within.sum() / scored) if scored else None
        return {"scored": scored, "inside": inside, "width": means if self.labels > 1 else means[0]}


class Course:
    """A model's answers and alarms over a stream of any length."""

    def __init__(self, names: Sequence[str], most: int = MOMENTS) -> None:
        self.names = tuple(names)
        # number of answered rows, number of rows in alarm, sums of the values; largest values, highest level; last threshold
        self.kept = Windows(2 + len(self.names), len(self.names) + 1, 1, most)

    def add(self, values: np.ndarray, alarmed: np.ndarray, states: np.ndarray) -> None:
        """Add the next rows.

        values: the answers, (rows, values), with NaN for refused rows. alarmed: whether each row is in alarm, (rows,).
        states: level and threshold after each row, (rows, 2 or more), or NaN if the model has no level; further columns
        are ignored.
        """
        answered = np.isfinite(values).all(axis=1)
        sums, largest = (np.where(answered[:, None], values, other) for other in (0.0, -np.inf))
        self.kept.add(np.column_stack([answered, alarmed, sums, largest, states[:, :2]]))

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Return the mean and the maximum of each value from row ``first`` on, and the fraction of the rows in alarm.

        ``first_row`` is the first row of the window that contains ``first``.  A mean or maximum is None if no row was
        answered.
        """
        start, part = self.kept.since(first)
        (answered, alarmed), rows, k = part[:2], self.kept.rows - start, len(self.names)

        def each(values: np.ndarray) -> dict[str, float | None]:
            return {name: float(value) if answered else None for name, value in zip(self.names, values, strict=True)}

        return {
            "first_row": start,
            "answered": int(answered),
            "mean": each(part[2 : 2 + k] / max(answered, 1)),
            "largest": each(part[2 + k : 2 + 2 * k]),
            "in_alarm": float(alarmed / rows) if rows else None,
        }

    def curves(self, windows: int = 400, first: int = 0) -> dict[str, np.ndarray]:
        """Return curves over up to ``windows`` windows.

        Windows that begin before row ``first`` are left out, unless all windows begin before this row.

        The curves are ``row`` (the windows' middles), ``level`` (the highest level in each window), ``threshold`` (the
        last threshold in each window), and ``alarm`` (whether a window has an alarm).  ``mean`` and ``largest`` are the
        mean and the maximum of each value, (windows, values), with NaN for windows without an answer.
        """
        where, table = self.kept.longer(windows)
        late = where[:, 0] >= first
        if late.any():
            where, table = where[late], table[late]
        k, answered = len(self.names), table[:, :1]
        return {
            "row": where[:, 0] + (where[:, 1] - 1) / 2,
            "alarm": table[:, 1] > 0,
            "level": table[:, -2],
            "threshold": table[:, -1],
            "mean": np.where(answered > 0, table[:, 2 : 2 + k] / np.maximum(answered, 1), np.nan),
            "largest": np.where(answered > 0, table[:, 2 + k : 2 + 2 * k], np.nan),
        }


class Envelope:
    """Minimum and maximum of some values over a stream of any length, for each row or for windows of rows."""

    def __init__(self, names: Sequence[str], most: int = 10_000) -> None:
        self.names = tuple(names)
        self.kept = Windows(0, 2 * len(self.names), 0, most)

    def add(self, values: np.ndarray) -> None:
        """Add the next rows, (rows, values), with NaN where a value is missing."""
        there = np.where(np.isfinite(values), values, np.nan)
        self.kept.add(np.column_stack([there, -there]))

    def lines(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return (rows, largest, smallest): the first row of each window, (windows,), and the largest and the smallest
        values in each window, (windows, values).  If each window is one row, ``smallest`` is None.
        """
        k, spacing = len(self.names), self.kept.spacing
        high, low = self.kept.table[:, :k], -self.kept.table[:, k:]
        return np.arange(len(high)) * float(spacing), high, None if spacing == 1 else low


class Ranges:
    """Statistics of a table's columns over a stream of any length."""

    def __init__(self, names: Sequence[str], most: int = 120) -> None:
        self.names, self.rows = tuple(names), 0
        k = len(self.names)
        # counts and sums of the numbers; their maxima, and the maxima of the negated numbers
        self.kept = Windows(2 * k, 2 * k, 0, most)
        self._mean, self._squares, self._count = np.zeros(k), np.zeros(k), np.zeros(k)

    def add(self, values: np.ndarray) -> None:
        """Add the next rows, (rows, columns), with NaN where a cell is empty."""
        there = np.isfinite(values)
        some, held = np.where(there, values, np.nan), np.where(there, values, 0.0)
        self.rows += len(values)
        count = there.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge numbers overflow; they are reported as None
            self.kept.add(np.column_stack([there, held, some, -some]))
            mean = held.sum(axis=0) / np.maximum(count, 1)
            squares = (np.where(there, values - mean, 0.0) ** 2).sum(axis=0)
            total = self._count + count
            part = count / np.maximum(total, 1)
            self._squares += squares + (mean - self._mean) ** 2 * self._count * part
            self._mean += (mean - self._mean) * part
        self._count = total

    def report(self) -> list[dict[str, Any]]:
        """Return a dict for each column: its name, number of gaps, smallest and largest number, mean, standard deviation
        and drift.

        The drift is the mean of the last third of the rows minus the mean of the first third, in standard deviations.  A value is None
        if it cannot be computed.
        """
        k, table = len(self.names), self.kept.table
        third = len(table) // 3
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            deviation = np.sqrt(self._squares / self._count)
            early, late = (part[:, : 2 * k].sum(axis=0) for part in (table[:third], table[len(table) - third :]))
            drift = (late[k:] / late[:k] - early[k:] / early[:k]) / deviation
        told = {
            "least": [-np.nanmax(each) if np.isfinite(each).any() else np.nan for each in table[:, 3 * k :].T],
            "largest": [np.nanmax(each) if np.isfinite(each).any() else np.nan for each in table[:, 2 * k : 3 * k].T],
            "mean": np.where(self._count > 0, self._mean, np.nan),
            "deviation": deviation,
            "drift": drift,
        }
        return [
            {"name": name, "gaps": self.rows - int(self._count[i])}
            | {key: float(values[i]) if np.isfinite(values[i]) else None for key, values in told.items()}
            for i, name in enumerate(self.names)
        ]

    def courses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (smallest, largest) for each column: arrays with the smallest and the largest number in each window of rows."""
        k, table = len(self.names), self.kept.table
        return [(-table[:, 3 * k + i], table[:, 2 * k + i]) for i in range(k)]
