"""What every model has to beat: the label's last value, its running mean (of classes the most frequent), a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

LINEAR_MOST = 64
"""A linear model of more inputs is not compared: a sample takes the square of their number."""


class LastAndMean:
    """The last known label and the mean of those known.  0 before the first."""

    names = ("last label", "running mean")

    def __init__(self) -> None:
        self.last = self.sum = 0.0
        self.count = 0

    def step(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then take the label that becomes known after it (NaN for none)."""
        known = ~np.isnan(released)
        last = latest(self.last, released, known)
        sums = self.sum + np.concatenate([[0.0], np.cumsum(np.where(known, released, 0.0))])
        counts = self.count + np.concatenate([[0], np.cumsum(known)])
        self.last, self.sum, self.count = float(last[-1]), float(sums[-1]), int(counts[-1])
        return last[:-1], sums[:-1] / np.maximum(counts[:-1], 1)


class LastAndMajority:
    """The same for classes: the last known one, and the most frequent of those known.  The first before that."""

    names = ("last label", "majority class")

    def __init__(self, classes: int) -> None:
        self.last, self.counts = 0, np.zeros(classes, np.int64)

    def step(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then take the class that becomes known after it (-1 for none)."""
        known = released >= 0
        last = latest(self.last, released, known)
        steps = (released[:, None] == np.arange(len(self.counts))) & known[:, None]
        counts = np.concatenate([[self.counts], self.counts + np.cumsum(steps, axis=0)])
        self.last, self.counts = int(last[-1]), counts[-1]
        return last[:-1], counts[:-1].argmax(axis=1)


def latest(before: float, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The latest known value before each row, and after the last."""
    values = np.concatenate([[before], values])
    return values[np.maximum.accumulate(np.concatenate([[0], np.where(known, np.arange(1, len(values)), 0)]))]


def linear_spec(spec: Spec) -> Spec | None:
    """Linear recursive least squares on the same columns, standardised; None if it would not be simple.

    One weight for each input and output, and (D + 1) (D + 2) / 2 numbers of a triangle.
    """
    if spec.dim > LINEAR_MOST:
        return None
    label = spec.label
    content: dict[str, Any] = {
        "name": "linear",
        "precision": spec.precision,
        "input": {"dim": spec.dim, "max_abs": spec.input.max_abs, "standardise": True},
        "label": {"classes": label.classes}
        if label.classes
        else {
            "outputs": spec.outputs,
            "max_abs": label.max_abs,
            "center": True,
        },
        "learning": {"rule": "rls"},
    }
    try:
        return make_spec(content)
    except UserError:  # limits that it does not take
        return None


class Simple:
    """The simple predictors beside a model, under the same delay."""

    def __init__(self, spec: Spec, delay: int) -> None:
        self.delay, self.classes = delay, spec.label.classes or ()
        linear = linear_spec(spec)
        self.linear = HostModel(linear) if linear is not None else None
        self.others: list[Any] = [LastAndMean() for _ in range(1 if self.classes else spec.outputs)]
        if self.classes:
            self.others = [LastAndMajority(len(self.classes))]
        self.names = (*self.others[0].names, *(("linear model",) if self.linear is not None else ()))

    def step(self, x: np.ndarray, y: np.ndarray, waiting: int, released: np.ndarray) -> np.ndarray:
        """Predict the rows from ``waiting`` on, (rows, predictors, labels), and learn what becomes known after each.

        x, y: those rows, and the ones before them whose labels were not known yet.  released: (rows, labels), the labels
        that become known, NaN (-1 of a class) for none.
        """
        each = [one.step(released[:, i]) for i, one in enumerate(self.others)]
        guesses = [np.column_stack(one) for one in zip(*each, strict=True)]
        if self.linear is not None:
            question = "classify" if self.classes else "predict"
            answers, _ = self.linear.prequential(x, y, waiting, self.delay, question)
            guesses.append(answers.reshape(len(released), -1))
        return np.stack(guesses, axis=1)
