"""Simple predictors that every model should beat.

A model with labels is compared with the last label, the running mean of the labels (for classes, the most frequent
class), and two linear models.  In a plan, a model without labels is compared with the largest |z| of an input, the
Mahalanobis distance, an EWMA chart and a VAR(1).
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.host.samples import latest
from pykernel.spec.missing import choice
from pykernel.spec.model import Spec, make_spec

LINEAR_MOST = 256
"""Maximum number of inputs for the predictors whose cost per sample grows with the square of the number of inputs."""


class LastAndMean:
    """Two predictors: the last known label, and the mean of all known labels.  Before the first label, both predictions are
    0.
    """

    names = ("last label", "running mean")

    def __init__(self) -> None:
        self.last = self.sum = 0.0
        self.count = 0

    def step(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn the label that becomes known after this row (NaN: no label becomes known)."""
        known = ~np.isnan(released)
        last = latest(self.last, released, known)
        sums = self.sum + np.concatenate([[0.0], np.cumsum(np.where(known, released, 0.0))])
        counts = self.count + np.concatenate([[0], np.cumsum(known)])
        self.last, self.sum, self.count = float(last[-1]), float(sums[-1]), int(counts[-1])
        return last[:-1], sums[:-1] / np.maximum(counts[:-1], 1)


class LastAndMajority:
    """Two predictors for classes: the last known class, and the most frequent known class.  Both predictors begin with class
    0.
    """

    names = ("last label", "majority class")

    def __init__(self, classes: int) -> None:
        self.last, self.counts = 0, np.zeros(classes, np.int64)

    def step(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn the class that becomes known after this row (-1: no class becomes known)."""
        known = released >= 0
        last = latest(self.last, released, known)
        steps = (released[:, None] == np.arange(len(self.counts))) & known[:, None]
        counts = np.concatenate([[self.counts], self.counts + np.cumsum(steps, axis=0)])
        self.last, self.counts = int(last[-1]), counts[-1]
        return last[:-1], counts[:-1].argmax(axis=1)


UNLIMITED = 1e18
"""Limit of labels that no device refuses: the linear models compute with their squares in float32."""


def linear_specs(spec: Spec) -> dict[str, Spec]:
    """Return name -> spec for linear models that learn by recursive least squares from the same columns. If there are
    too many inputs, the result is empty.

    One model standardises its inputs, and clips outliers.  The other has raw inputs, float64 and forgetting; it is better
    if inputs drift, because a drifting standardiser changes the meaning of the learned weights.  Memory: D + 1 weights
    for each output, and (D + 1)(D + 2) / 2 numbers for the root of the covariance.
    """
    if spec.dim > LINEAR_MOST:
        return {}
    label = spec.label
    # a model that learns no labels has no limit for them
    most = label.max_abs if spec.program.learns else max(label.max_abs, UNLIMITED)
    numbers: dict[str, Any] = {"outputs": spec.outputs, "max_abs": most + abs(spec.label_offset)}
    classes = {"classes": label.classes}
    base: dict[str, Any] = {
        "name": "linear",
        "input": {"dim": spec.dim, "max_abs": float(np.abs(spec.input_ranges).max())},
    }
    stands_in = {"missing": choice(spec)} if spec.completes else {}
    scaled = base | {
        "precision": "float32" if spec.real.is_int16 else spec.precision,
        "input": base["input"] | {"standardise": True} | stands_in,
        "label": classes if label.classes else numbers | {"center": True},
        "learning": {"rule": "rls"},
    }
    raw = base | {
        "precision": "float64",
        # the last value replaces a missing input, because without a standardiser there is no running mean
        "input": base["input"] | ({"missing": "hold"} if stands_in else {}),
        "label": classes if label.classes else numbers,
        "learning": {"rule": "rls", "forgetting": 0.999, "prior_variance": 1e6},
    }
    specs = {}
    for name, content in (("linear model", scaled), ("linear model, raw inputs", raw)):
        with contextlib.suppress(UserError):  # the spec's limits may not be valid for a linear model
            specs[name] = make_spec(content)
    return specs


class Simple:
    """The simple predictors with which a model is compared. The predictors get the labels with the same delay as the
    model.

    until: only for a model that gets no labels.  The predictors then learn only the labels of the first ``until`` rows,
    and "last label" is left out.
    """

    def __init__(self, spec: Spec, delay: int, until: int | None = None) -> None:
        self.delay, self.classes = delay, spec.label.classes or ()
        self.left = until
        self.linear = {name: HostModel(each) for name, each in linear_specs(spec).items()}
        self.others: list[Any] = [LastAndMean() for _ in range(1 if self.classes else spec.outputs)]
        if self.classes:
            self.others = [LastAndMajority(len(self.classes))]
        self._first = 0 if until is None else 1
        self.names = (*self.others[0].names[self._first :], *self.linear)

    def step(self, x: np.ndarray, y: np.ndarray, waiting: int, released: np.ndarray) -> np.ndarray:
        """Return the predictions for the next rows, (rows, predictors, labels). After each row, learn the label that
        becomes known.

        x, y: first the ``waiting`` rows whose labels were not known yet, then the next rows.  released: (rows, labels),
        the labels that become known, with NaN (-1 for a class) where no label becomes known.
        """
        if self.left is not None:
            none = -1 if self.classes else np.nan
            y, released = y.copy(), released.copy()
            y[waiting + self.left :] = released[self.left :] = none
            self.left = max(0, self.left - len(released))
        each = [one.step(released[:, i]) for i, one in enumerate(self.others)]
        guesses = [np.column_stack(one) for one in list(zip(*each, strict=True))[self._first :]]
        question = "classify" if self.classes else "predict"
        for linear in self.linear.values():
            answers, _ = linear.prequential(x, y, waiting, self.delay, question)
            guesses.append(answers.reshape(len(released), -1))
        return np.stack(guesses, axis=1)


def simple_bytes(spec: Spec) -> dict[str, int]:
    """Return name of a simple predictor -> number of bytes that it would need on the device. The result is empty
    for a model that does not learn, and for a model that has neither labels nor alarms.
    """
    size = 4 if spec.real.is_int16 else spec.real.dtype.itemsize
    if not spec.program.learns or (spec.label_kind == "none" and not spec.program.alarms):
        return {}
    if spec.label_kind == "none":
        return {name: size * numbers for name, numbers in Distances.numbers(spec.dim).items()}
    classes = spec.label.classes
    last, mean = (4, 4 * len(classes)) if classes else (size * spec.outputs, (size + 4) * spec.outputs)
    found = dict(zip((LastAndMajority if classes else LastAndMean).names, (last, mean), strict=True))
    for name, linear in linear_specs(spec).items():
        found[name] = linear.program.state_bytes(linear.memory(identity(linear).drop).layout)
    return found


class Distances:
    """Two distances of each row from the mean of earlier rows: the largest |z| of an input, and the Mahalanobis distance.
    z is the distance of an input from its mean, in standard deviations.

    Rows are taken in blocks of ``BLOCK`` rows.  The mean and the covariance are those of about the last ``HORIZON`` rows
    before the current block.  In the first block the distances are 0.
    """

    HORIZON, BLOCK = 1000, 50
    RIDGE = 1e-3
    """Added to the diagonal of the correlation matrix, because inputs may be linearly dependent."""

    def __init__(self, dim: int, completes: bool = False) -> None:
        """completes: whether the mean replaces a missing input."""
        self.names, self.completes = tuple(self.numbers(dim)), completes
        self.rows, self.weight = 0, 0.0
        self.mean, self.covariance = np.zeros(dim), np.zeros((dim, dim))
        self._block: list[np.ndarray] = []

    @staticmethod
    def numbers(dim: int) -> dict[str, int]:
        """Return name of a distance -> number of stored values: the means and variances of the inputs for "max |z|", and
        their means and covariances for the Mahalanobis distance.
        """
        found = {"max |z|": 2 * dim, "Mahalanobis distance": dim + dim * (dim + 1) // 2}
        return found if dim <= LINEAR_MOST else {"max |z|": found["max |z|"]}

    def step(self, x: np.ndarray) -> np.ndarray:
        """Return the distances of the next rows, (rows, predictors).

        They are NaN for a row with an infinity, or with a NaN that is not replaced by the mean.
        """
        found, start = np.zeros((len(x), len(self.names))), 0
        while start < len(x):
            end = min(len(x), start + self.BLOCK - self.rows % self.BLOCK)
            part = x[start:end].astype(np.float64)
            if self.completes:
                part = np.where(np.isnan(part) & ~np.isnan(part).all(axis=1, keepdims=True), self.mean, part)
            if self.weight:
                found[start:end] = self._judge(part)
            self._block.append(part[np.isfinite(part).all(axis=1)])
            self.rows += end - start
            if self.rows % self.BLOCK == 0:
                self._learn(np.concatenate(self._block))
                self._block = []
            start = end
        return found

    def _judge(self, x: np.ndarray) -> np.ndarray:
        # if an input was constant so far, any other value is extremely far from the mean
        deviation = np.sqrt(np.diag(self.covariance)) + 1e-9 * np.abs(self.mean) + 1e-30
        z = (x - self.mean) / deviation
        found = [np.abs(z).max(axis=1)]
        if len(self.names) > 1:
            correlation = self.covariance / np.outer(deviation, deviation) + self.RIDGE * np.eye(len(deviation))
            found.append(np.sqrt((z * np.linalg.solve(correlation, z.T).T).sum(axis=1)))
        return np.column_stack(found)

    def _learn(self, x: np.ndarray) -> None:
        if not len(x):
            return
        self.weight = min(self.weight + len(x), float(self.HORIZON))
        share, away = len(x) / self.weight, x.mean(axis=0) - self.mean
        inner = np.cov(x.T, bias=True).reshape(self.covariance.shape)
        self.covariance = (1 - share) * (self.covariance + share * np.outer(away, away)) + share * inner
        self.mean = self.mean + share * away


class Rivals:
    """Baselines for a plan's monitors: the distances of ``Distances``, an EWMA chart, and the Mahalanobis distance of a
    VAR(1)'s residuals.

    The EWMA chart (S. W. Roberts, 1959) is the largest |z| of the inputs' exponentially weighted means.  The VAR(1) is the linear
    regression of each row on the previous row.  The moments of the means and of the residuals are estimated by
    ``Distances``.
    """

    WEIGHT, RIDGE = 0.2, 1e-5
    """Weight of a new row in the weighted means; ridge of the regression, relative to the inputs' variances."""

    def __init__(self, dim: int, completes: bool = False) -> None:
        self.own, self.chart, self.left = (Distances(dim, completes) for _ in range(3))
        self.pairs = Distances(2 * dim)
        self.mean, self.last = np.full(dim, np.nan), np.full((1, dim), np.nan)
        self.weights: np.ndarray = np.zeros((dim, dim))

    @staticmethod
    def numbers(dim: int) -> dict[str, int]:
        """Return baseline -> number of stored values.

        The VAR(1) stores its weights, the inverse of the inputs' moments, the means and covariances of the residuals, the means
        and variances of the inputs, and the last row.
        """
        found = Distances.numbers(dim) | {"EWMA": 3 * dim}
        own = (dim + 1) * dim + (dim + 1) * (dim + 2) // 2 + dim + dim * (dim + 1) // 2 + 3 * dim
        return found | ({"VAR(1)": own} if dim <= LINEAR_MOST else {})

    def step(self, x: np.ndarray) -> np.ndarray:
        """Return the levels of the next rows, (rows, baselines).

        Infinities are treated like NaN.  The levels are NaN for a row with a NaN that is not replaced by the mean.  The
        level of the VAR(1) is also NaN for the row after a row with a NaN.
        """
        first = Distances.BLOCK - self.own.rows % Distances.BLOCK
        return np.concatenate([self._step(part) for part in np.split(x, range(first, len(x), Distances.BLOCK))])

    def _step(self, x: np.ndarray) -> np.ndarray:
        x = np.where(np.isfinite(x), x, np.nan).astype(np.float64)
        mean = np.where(np.isfinite(self.mean), self.mean, x[0])
        ages = np.arange(len(x))[:, None] - np.arange(-1, len(x))
        weights = np.where(ages < 0, 0.0, self.WEIGHT * (1 - self.WEIGHT) ** np.maximum(ages, 0))
        weights[:, 0] /= self.WEIGHT
        means = weights @ np.concatenate([mean[None], np.where(np.isfinite(x), x, mean)])
        self.mean = means[-1]
        own = self.own.step(x)
        found = [own, np.where(np.isnan(own[:, :1]), np.nan, self.chart.step(means)[:, :1])]
        dim = x.shape[1]
        if dim <= LINEAR_MOST:
            before = np.concatenate([self.last, x])[:-1]
            now, then = np.split(self.pairs.mean, 2)
            found.append(self.left.step(x - now - (before - then) @ self.weights)[:, 1:])
            self.pairs.step(np.column_stack([x, before]))
            moments = self.pairs.covariance[dim:]
            ridge = np.diag(self.RIDGE * np.diag(moments[:, dim:]) + 1e-30)
            self.weights, self.last = np.linalg.solve(moments[:, dim:] + ridge, moments[:, :dim]), x[-1:]
        return np.column_stack(found)
