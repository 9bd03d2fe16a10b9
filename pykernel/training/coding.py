"""Targets of models that are solved in closed form: numbers or coded classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from pykernel.bases.arguments import (
    checked_count,
    checked_numbers,
    need_choice,
)
from pykernel.errors import UserError

Coding = Literal["counts", "signs"]


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a model's functions, made by of_values() or of_classes().  The object is immutable.

    values: (l, o).  With the coding "counts", they are computed from the class counts of all samples.
    positions: (l,), the class of each sample; None in regression.  count: number of classes, 0 in regression.  With
    two classes, there is one function, which is positive for class 1; with more classes, one function for each class.
    weights: (l,), positive sample weights; None: all weights are 1.  Leaving a sample out removes its full weight.
    """

    values: np.ndarray
    positions: np.ndarray | None = None
    count: int = 0
    coding: Coding = "signs"
    weights: np.ndarray | None = None

    @classmethod
    def of_values(cls, y: Any, weights: Any = None) -> Self:
        """Make targets for regression.  y: (l,) or (l, o) finite numbers; weights: (l,).  Raises UserError."""
        values = checked_numbers(y, "targets")
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or not values.size:
            raise UserError(f"targets have the shape {np.shape(y)}; it must be (samples,) or (samples, outputs)")
        return cls(_constant(values), weights=_sample_weights(weights, len(values)))

    @classmethod
    def of_classes(cls, positions: Any, count: int, coding: Coding, weights: Any = None) -> Self:
        """Make targets for classes.  positions: (l,) integers from 0 to count - 1; weights: (l,).  Raises UserError.

        "counts": for a class with N_c of N samples, the target is +N / N_c in the class and -N / (N - N_c) for the
        rest.  If the samples have weights, sums of weights replace the numbers of samples.  With these targets, least
        squares gives Fisher's discriminant (paper 004, below equation 4, where a sign is missing).  "signs": the
        targets are +1 and -1.  If a class has no samples, its function learns only the targets of the other classes.
        """
        need_choice(coding, "coding", get_args(Coding))
        count = checked_count(count, "the number of classes", 2)
        places = np.asarray(positions)
        if places.ndim != 1 or not places.size or places.dtype.kind not in "iu":
            raise UserError("positions of classes must be integers, one for each sample")
        if places.min() < 0 or places.max() >= count:
            wrong = places[(places < 0) | (places >= count)][0]
            raise UserError(
                f"a class has the position {wrong}; with {count} classes, positions are from 0 to {count - 1}"
            )
        places = places.astype(np.int64)
        member = _indicators(places, count)
        targets = cls(2 * member - 1, _constant(places), count, coding, _sample_weights(weights, len(places)))
        if coding == "counts":
            up, down = _coded(targets.each @ member, targets.total)
            targets = replace(targets, values=member * up - (1 - member) * down)
        targets.values.flags.writeable = False
        return targets

    def __len__(self) -> int:
        return len(self.values)

    def need_samples(self, rows: int, weighs: bool = True) -> None:
        """Raise UserError unless there are at least two rows, and as many rows as targets.  weighs: whether targets may
        have weights.
        """
        if rows != len(self):
            raise UserError(
                f"there are {rows:,} rows, but targets for {len(self):,} samples; the two numbers must be equal"
            )
        if rows < 2:
            raise UserError("there is only one sample; leaving one out requires two or more")
        if not weighs and self.weights is not None:
            raise UserError(
                "kfd takes no sample weights: each sample is also an expansion vector, so a weight would also change the penalty on "
                "this vector's coefficients; use ls-svm or krr"
            )

    @property
    def each(self) -> np.ndarray:
        """The weight of each sample, (l,)."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def total(self) -> float:
        """The sum of the samples' weights; without weights, the number of samples."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the weighted mean over the samples.  values: (l,) or (l, o)."""
        return np.asarray(values.mean(axis=0) if self.weights is None else self.weights @ values / self.total)

    def classify(self, predictions: np.ndarray) -> np.ndarray:
        """Return classes (n,) for values of the functions (n, o).

        The sign of a single function gives the class.  With several functions, the class is that of the function with
        the largest value, or of the first one if several have this value.
        Raises UserError in regression, or if the number of columns differs from the number of functions.
        """
        self._classes()
        values = self._predictions(predictions)
        if self.count == 2:
            return (values[:, 0] > 0).astype(np.int64)
        return values.argmax(axis=1)

    def mistakes(self, predictions: np.ndarray) -> np.ndarray:
        """Return a Boolean array (l,) that is True for the samples that are classified wrongly, given the functions'
        values (l, o).

        Raises UserError like classify().
        """
        return self.classify(self._predictions(predictions, len(self))) != self._classes()

    def _classes(self) -> np.ndarray:
        if self.positions is None:
            raise UserError("these targets are numbers, not classes; Targets.of_classes() makes targets of classes")
        return self.positions

    def _predictions(self, predictions: np.ndarray, samples: int | None = None) -> np.ndarray:
        outputs = self.values.shape[1]
        told = f"({'samples' if samples is None else samples}, {outputs})"
        values = np.asarray(predictions, np.float64)
        if values.ndim != 2 or values.shape[1] != outputs or samples not in (None, len(values)):
            raise UserError(f"predictions have the shape {values.shape}; it must be {told}")
        return values

    @property
    def member(self) -> np.ndarray:
        """Indicators (l, o): 1 where the function belongs to the sample's class, else 0."""
        return _indicators(self._classes(), self.count)

    def recoded(self, member: np.ndarray, one: np.ndarray, parts: np.ndarray | None) -> np.ndarray:
        """Return predictions (l, o) for the samples of each fold, by models whose targets are coded with the class counts
        of the samples outside the fold.  O(l o).

        Models are linear in the targets, so these predictions can be computed from predictions for simpler targets.
        member: (l, o), predictions of models whose targets are 1 for the class and 0 for the rest.
        one: (l, 1), predictions of models whose targets are all 1.
        parts: (l,), the fold of each sample, from 0; None: each sample is its own fold.
        """
        each = self.each
        of_class = self.member * each[:, None]
        if parts is None:
            left, left_of_class = (self.total - each)[:, None], of_class.sum(axis=0) - of_class
        else:
            gone = np.zeros((int(parts.max()) + 1, of_class.shape[1]))
            np.add.at(gone, parts, of_class)
            left = (self.total - np.bincount(parts, weights=each)[parts])[:, None]
            left_of_class = of_class.sum(axis=0) - gone[parts]
        # if no sample remains, the difference between the sums of weights is only a rounding error
        nobody = 1e-12 * self.total
        left_of_class = np.where(left_of_class < nobody, 0.0, left_of_class)
        left_of_class = np.where(left - left_of_class < nobody, left, left_of_class)
        up, down = _coded(left_of_class, left)
        # if the class or the rest has no samples left, all targets are equal, so the prediction is 0 or ``one``
        member = np.where(left_of_class == 0, 0.0, np.where(left_of_class == left, one, member))
        return up * member - down * (one - member)


def _coded(of_class: np.ndarray, samples: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the magnitudes of the targets for a class and for the rest, N / N_c and N / (N - N_c), or 0 for an empty group."""
    least = 1e-12 * samples  # less is a rounding error
    groups = of_class, samples - of_class
    up, down = (np.where(group > least, samples / np.maximum(group, least), 0.0) for group in groups)
    return up, down


def _indicators(positions: np.ndarray, count: int) -> np.ndarray:
    """Return indicators (l, o): 1 where the function belongs to the sample's class, else 0.

    With two classes, the single function belongs to class 1.
    """
    owners = np.arange(count) if count > 2 else np.array([1])
    return (positions[:, None] == owners).astype(np.float64)


def press(targets: Targets, predictions: np.ndarray) -> float:
    """Return the weighted mean over samples and outputs of (targets.values - predictions)^2.  Raises UserError."""
    squares = (targets.values - targets._predictions(predictions, len(targets))) ** 2
    return float(np.mean(squares) if targets.weights is None else targets.mean(squares).mean())


def error_rate(targets: Targets, predictions: np.ndarray) -> float:
    """Return the weighted fraction of samples that are classified wrongly.  Raises UserError in regression."""
    return float(targets.mean(targets.mistakes(predictions).astype(np.float64)))


def _constant(a: np.ndarray) -> np.ndarray:
    """Return a read-only copy."""
    a = a.copy()
    a.flags.writeable = False
    return a


def _sample_weights(weights: Any, samples: int) -> np.ndarray | None:
    """Return a checked copy of the weights.  Raises UserError."""
    if weights is None:
        return None
    values = checked_numbers(weights, "weights")
    if values.shape != (samples,):
        raise UserError(
            f"weights have the shape {values.shape}; there must be one weight for each of the {samples:,} samples"
        )
    if not (values > 0).all():
        raise UserError(f"weights hold {values.min():g}; each must be above 0, so leave out samples whose weight is 0")
    return _constant(values)
