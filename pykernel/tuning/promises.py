"""Compare models by their errors on the same rows, and estimate the chosen model's error on future rows.

The judged rows are divided, in their order, into BLOCKS blocks.  With many devices, a block has the rows of one or several devices.  For
each model and block, the number of scored rows and the sum of their losses are kept.  A loss is a squared error or, for classes, 1 if the
class is wrong and 0 if it is right.  The losses of rows that are neighbours in time, or from the same device, are
correlated; the losses of different blocks hardly are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.telling import root_of_mean_square

BLOCKS = 20
"""Number of blocks of rows; the spread over blocks gives the uncertainty of an error."""
T_BOTH = [
    float(t)
    for t in "12.71 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093".split()
]
T_ONE = [
    float(t)
    for t in "6.314 2.920 2.353 2.132 2.015 1.943 1.895 1.860 1.833 1.812 1.796 1.782 1.771 1.761 1.753 1.746 1.740 1.734 1.729".split()
]
"""Student's t with 1, 2, .., BLOCKS - 1 degrees of freedom at 95 %: two-sided, and one-sided."""
T_TREND, GROWS = 2.878, 1.05
"""A trend over the blocks is significant if its slope differs from 0 by more than T_TREND standard deviations (by
chance, 1 % of slopes do), and if the last block's error is more than GROWS times the error over all rows."""
PER_BLOCK = ("sums", "rows", "offsets")
"""The values that are kept for each block."""
NEW = 1.25
"""Factor by which the interval of a promise is wider than the interval of the mean over the judged rows.  A promise is
about new rows, but the search has already used the judged rows."""
FOLDS = 4
"""Number of folds of the judged rows.  Each fold in turn is left out when a model is chosen.

If every block were a fold, each choice would be made on nearly the same rows, and would usually pick the same model.  With 100 equal
models, a 95 % interval would then contain the true error in 70 % of cases.  With four folds, the interval contains the true error in 90 %
of cases.
"""
NEAR = 1.01
"""Models whose error is at most this many times the smallest error are considered equally good."""
FAR, FAR_ROWS = 1.1, 0.01
"""A model whose error is more than FAR times the smallest error is never considered equally good, not even if a test
finds no difference, because a test may miss a difference if the rows are few or drift.  For classes, this rule applies only
if the error rate is also larger by more than FAR_ROWS."""


@dataclass(frozen=True)
class Losses:
    """A model's losses by block.

    sums, rows: each block's sum of losses and number of scored rows, (blocks,).  of_classes: whether the labels are classes.
    offsets: sums of signed errors, (blocks,), or zeros if no errors are given.  in_time: whether blocks are in time order.
    """

    sums: np.ndarray
    rows: np.ndarray
    of_classes: bool
    offsets: np.ndarray
    in_time: bool = True

    @classmethod
    def of(
        cls,
        losses: np.ndarray,
        counts: np.ndarray,
        of_classes: bool,
        errors: np.ndarray | None = None,
        lengths: Sequence[int] = (),
    ) -> Losses:
        """Sum losses over blocks.

        losses, errors: one for each judged row, (rows,).  counts: True for the rows that are scored, (rows,).  lengths:
        number of judged rows of each device, if the rows of several devices follow one another.
        """
        in_time, number = len(lengths) < 2, BLOCKS
        block = np.arange(len(losses)) * BLOCKS // max(1, len(losses))
        if not in_time:
            number = min(BLOCKS, len(lengths))
            block = np.repeat(np.arange(len(lengths)) * number // len(lengths), lengths)

        def summed(values: np.ndarray) -> np.ndarray:
            return np.bincount(block[counts], values[counts], number)

        offsets = np.zeros(len(losses)) if errors is None else errors
        return cls(summed(losses), summed(np.ones(len(losses))), of_classes, summed(offsets), in_time)

    @classmethod
    def from_report(cls, report: Mapping[str, Any], of_classes: bool) -> Losses:
        sums, rows, offsets = (np.array(report[name], float) for name in PER_BLOCK)
        return cls(sums, rows, of_classes, offsets, report.get("in_time", True))

    def of_blocks(self, kept: np.ndarray) -> Losses:
        return replace(self, sums=self.sums * kept, rows=self.rows * kept, offsets=self.offsets * kept)

    @property
    def t_both(self) -> float:
        """Student's t, two-sided, at 95 %."""
        return T_BOTH[len(self.rows) - 2]

    @property
    def mean(self) -> float:
        return float(self.sums.sum() / self.rows.sum()) if self.rows.any() else math.nan

    @property
    def error(self) -> float:
        """The root mean square error or, for classes, the error rate."""
        return self.mean if self.of_classes else root_of_mean_square(self.mean)

    def influence(self) -> np.ndarray:
        """Return the influence of each block on the mean, (blocks,).  The influences sum to 0."""
        return np.asarray((self.sums - self.mean * self.rows) / self.rows.sum())

    @property
    def deviation(self) -> float:
        """Standard deviation of the error."""
        spread = _root_sum(self.influence())
        if self.of_classes:  # if all blocks are without errors, their spread is 0
            return max(spread, deviation_of(self.mean, int(self.rows.sum())))
        return spread / (2 * self.error) if self.error > 0 else 0.0

    @property
    def within(self) -> float:
        """Half the width of the error's 95 % interval."""
        return self.t_both * self.deviation

    @property
    def growth(self) -> tuple[float, float] | None:
        """The fitted errors of the first and the last block if the errors grow along the blocks, else None.

        Errors grow if the blocks' mean losses grow, or if the blocks' mean errors drift from zero.  A growing offset is visible in the mean
        errors long before a change is visible in the squared losses.
        """
        here = np.flatnonzero(self.rows)
        if not self.in_time or len(here) < BLOCKS // 2:
            return None
        weights = self.rows[here] / self.rows.sum()
        losses = _line(self.sums[here] / self.rows[here], here, weights)
        ends = [] if losses is None else [(max(losses[0], 0.0), losses[-1])]
        offset = _line(self.offsets[here] / self.rows[here], here, weights)
        if offset is not None:
            rest = max(0.0, self.mean - float(weights @ np.square(offset)))
            ends.append((rest + offset[0] ** 2, rest + offset[-1] ** 2))
        first, last = max(ends, key=lambda each: each[1], default=(self.mean, self.mean))
        if not self.of_classes:
            first, last = root_of_mean_square(first), root_of_mean_square(last)
        return (float(first), float(last)) if last > GROWS * self.error else None

    def report(self) -> dict[str, Any]:
        told = {"error": self.error, "deviation": self.deviation, "within": self.within}
        blocks = {name: getattr(self, name).tolist() for name in PER_BLOCK}
        return told | {"scored": int(self.rows.sum()), "in_time": self.in_time} | blocks


def follows(errors: np.ndarray, there: np.ndarray) -> float:
    """Return the correlation between a row's error and the previous row's error."""
    pairs = there[1:] & there[:-1]
    now, before = errors[1:][pairs], errors[:-1][pairs]
    if not len(now):
        return 0.0
    now, before = now - now.mean(axis=0), before - before.mean(axis=0)
    spread = float(np.linalg.norm(now) * np.linalg.norm(before))
    return float((now * before).sum()) / spread if spread > 0 else 0.0


def deviation_of(part: float, count: int) -> float:
    """Return the standard deviation of a fraction ``part`` that was observed in ``count`` trials.

    One success and one failure are added, so that the result is not 0 for a fraction of 0 or 1.
    """
    part = (part * count + 1) / (count + 2)
    return math.sqrt(part * (1 - part) / (count + 2))


def _line(values: np.ndarray, at: np.ndarray, weights: np.ndarray) -> np.ndarray | None:
    """Return a fitted line's values at the blocks, (blocks,), or None if the line's slope may be due to chance.

    values, at, weights: each block's value, position and weight, (blocks,).  The weights sum to 1.
    Correlated neighbours give less information, so the slope's variance
    is multiplied by (1 + r) / (1 - r), where r is the correlation between a block's residual and the next block's, or
    0 if this correlation is negative.
    """
    t = at - weights @ at
    spread = weights @ np.square(t)
    slope = weights @ (t * values) / spread
    line = weights @ values + slope * t
    left = np.sqrt(weights) * (values - line)
    square = float(left @ left)
    alike = max(0.0, float(left[1:] @ left[:-1]) / square) if square > 0 else 0.0
    deviation = math.sqrt(square / spread / (len(at) - 2) * (1 + alike) / (1 - alike))
    return line if abs(slope) > T_TREND * deviation else None


def _root_sum(influence: np.ndarray) -> float:
    blocks = len(influence)
    return math.sqrt(float(np.square(influence).sum()) * blocks / (blocks - 1))


def as_good(one: Losses, best: Losses) -> bool:
    """Return whether a model is as good as the best.

    A model is as good if its error is at most NEAR times the best error.  A larger error must neither exceed what FAR
    and FAR_ROWS allow, nor be significantly larger than the best error in a paired test at 5 %.
    """
    if one.error <= NEAR * best.error:
        return True
    if one.error > max(FAR * best.error, best.error + FAR_ROWS if one.of_classes else 0.0):
        return False
    return not more_by(one, best, T_ONE)


def more_by(one: Losses, other: Losses, t: Sequence[float] = T_BOTH) -> bool:
    """Return whether the mean loss of ``one`` is significantly larger than the mean loss of ``other``, in a test of paired blocks."""
    return one.mean - other.mean > t[len(other.rows) - 2] * _root_sum(one.influence() - other.influence())


def chosen(losses: Sequence[Losses], sizes: Sequence[float]) -> int:
    """Return the position of the smallest model among those that are as good as the best."""
    errors = [each.mean for each in losses]
    best = min(range(len(losses)), key=lambda i: (errors[i], sizes[i]))
    # there is always a result, because the best model is in the list
    order = sorted((i for i in range(len(losses)) if sizes[i] <= sizes[best]), key=lambda i: (sizes[i], errors[i]))
    return next(i for i in order if i == best or as_good(losses[i], losses[best]))


def nested(losses: Sequence[Losses], sizes: Sequence[float]) -> Losses:
    """Return the losses of chosen models on rows that were not used to choose them.

    A fold consists of every FOLDS-th block.  For each fold, a model is chosen on the blocks outside this fold, and the
    losses of this model on the fold are returned.
    """
    first = losses[0]
    folds = min(FOLDS, len(first.rows))
    judged = np.arange(len(first.rows)) % folds
    sums, rows, offsets = np.zeros((3, len(judged)))
    for fold in range(folds):
        here = judged == fold
        taken = losses[chosen([each.of_blocks(~here) for each in losses], sizes)]
        sums[here], rows[here], offsets[here] = taken.sums[here], taken.rows[here], taken.offsets[here]
    return replace(first, sums=sums, rows=rows, offsets=offsets)


def promise(losses: Losses) -> dict[str, float]:
    """Return a dict: "error" is the error to expect on future rows, and "within" is half the width of its 95 % interval.

    For classes, two right and two wrong rows are added (Agresti and Coull), because a few rows without an error prove little.
    If errors grow, the dict also has "first" and "last" (see ``Losses.growth``), and "within" is larger by the
    difference between the last block's error and the error over all rows.
    """
    told = {"error": losses.error, "within": NEW * losses.within}
    if losses.of_classes:
        count = losses.rows.sum() + 4
        part = float((losses.sums.sum() + 2) / count)
        chance = max(_root_sum(losses.influence()), math.sqrt(part * (1 - part) / count))
        told = {"error": part, "within": NEW * losses.t_both * chance}
    if (growth := losses.growth) is None:
        return told
    first, last = growth
    return told | {"within": told["within"] + last - losses.error, "first": first, "last": last}


def ratio(model: Losses, simple: Losses) -> dict[str, float] | None:
    """Return a dict: "ratio" is the model's error divided by a simple predictor's error on the same rows; "low" and "high" are the ends
    of the ratio's 95 % interval, from paired blocks.

    Returns None if one of the errors is 0.
    """
    if not model.mean > 0 or not simple.mean > 0:
        return None
    power = 1.0 if model.of_classes else 0.5
    spread = _root_sum(model.influence() / model.mean - simple.influence() / simple.mean)
    center, width = (model.mean / simple.mean) ** power, model.t_both * power * spread
    return {"ratio": center, "low": center * math.exp(-width), "high": center * math.exp(width)}
