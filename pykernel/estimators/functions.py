"""Mixins that turn the values of a model's functions into predictions: classes, probabilities or numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import _check_sample_weight  # type: ignore[import-untyped]

from pykernel.errors import UserError
from pykernel.estimators.base import Absent, Classifies, KernelEstimator, Regresses, column_names, label_section
from pykernel.estimators.parameters import plain
from pykernel.spec.model import Spec
from pykernel.training.calibration import probabilities
from pykernel.training.machine import Machine
from pykernel.training.selection import folds_of_splits

LARGEST_WEIGHT = 1e300
"""Largest weight of a sample; sums of larger weights could overflow."""
EXTREME = 1e75
"""The largest |x| and the largest |y| must each be 0 or between 1 / EXTREME and EXTREME, so that fourth powers neither
overflow nor underflow."""


class Expansion(KernelEstimator):
    """Base of models that are functions of kernel values.  It checks the samples, and converts the model to a frozen spec."""

    alpha_: np.ndarray
    _validated: Callable[..., tuple[np.ndarray, np.ndarray]]
    _label_names: list[str]

    @property
    def spec_(self) -> Spec:
        """The result of ``to_spec("model")``, which ``pykernel.generate`` and ``pykernel.check`` use if they are given an estimator."""
        try:
            return self.to_spec("model")
        except UserError as error:
            raise Absent(str(error)) from None

    def _weights(self, sample_weight: Any, X: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Return (weights, mask).

        weights: the weights above 0, or None if no weights are given.  mask: a Boolean array, True for samples with a weight above 0.
        """
        if sample_weight is None:
            return None, np.ones(len(X), bool)
        weights, where = _check_sample_weight(sample_weight, X, dtype=np.float64), self._where
        where.need(weights.min() >= 0, f"sample_weight holds {weights.min():g}; weights must be 0 or more")
        where.need(
            weights.max() <= LARGEST_WEIGHT,
            f"sample_weight holds {weights.max():g}; weights must be at most {LARGEST_WEIGHT:g}",
        )
        counts = weights > 0
        where.need(
            counts.sum() > 1,
            f"sample_weight is above 0 for only {counts.sum()} of {len(X)} samples; cross-validation needs two or more",
        )
        return weights[counts], counts

    def _samples(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
        """Check the samples, and return (X, y, weights, mask), with weights and mask as ``_weights`` returns them."""
        self._given()
        self._label_names = column_names(y)
        X, y = self._validated(X, y, ensure_min_samples=2)
        weights, counts = self._weights(sample_weight, X)
        self._cv = plain(self.cv)
        if not isinstance(self._cv, int | str):
            with self._named():
                splits = self._cv.split(X, y) if hasattr(self._cv, "split") else self._cv
                self._cv = folds_of_splits(splits, len(X)).among(counts)
        return X, y, weights, counts

    def _near_one(self, what: str, values: np.ndarray) -> None:
        """Raise UserError for values whose powers overflow or underflow."""
        largest = np.abs(values).max()
        self._where.need(
            largest == 0 or 1 / EXTREME <= largest <= EXTREME,
            f"the largest of the {what} is {largest:g}; scale them to magnitudes nearer to 1",
        )

    def __pykernel_machine__(self) -> Machine:
        """Return the machine from which ``from_sklearn`` makes a spec.

        ``from_sklearn`` accepts objects of any class with this method.
        """
        classes = getattr(self, "classes_", None)
        return replace(self._machine(), classes=None if classes is None else tuple(classes.tolist()))

    def _machine(self) -> Machine:
        """Return the functions as a Machine, from which frozen specs are made."""
        raise NotImplementedError

    def _label(self, columns: tuple[str, ...] | None) -> dict[str, Any]:
        """Return the section [label] of a spec.

        columns: the inputs' names, if any.  If a label has the same name as an input, the labels' names are left out.
        """
        if hasattr(self, "classes_"):
            return label_section(columns, self._label_names, classes=self.classes_.tolist())
        return label_section(columns, self._label_names, self.alpha_.shape[1])


class ClassifiesByFunctions(ClassifierMixin, Classifies):  # type: ignore[misc]
    """Mixin for models with one function for each class (two classes share one).

    ``_values`` returns the functions' values as an array of shape (n_samples, n_functions).
    """

    calibration_: np.ndarray
    _values: Callable[[Any], np.ndarray]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the values of the functions.  O(n_vectors n_features) for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: one value, above 0 for ``classes_[1]``. More classes: one value for each class. The class with
            the largest value is predicted; in a tie, the first of the tied classes.
        """
        return self._flat(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each sample.  O(n_vectors n_features) for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes. Like ``NAME_classify`` on the device, this method compares the functions' values, not probabilities.
        """
        values = self._values(X)
        positions = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
        return self.classes_[positions.astype(np.intp)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, from Platt's sigmoids (``calibration_``).  O(n_vectors n_features) for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Rows sum to 1. The most probable class may differ from the class that ``predict`` returns, because
            ``predict`` compares the functions' values.
        """
        return probabilities(self._values(X), self.calibration_)

    def _flat(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if values.shape[1] == 1 else values


class RegressesByFunctions(RegressorMixin, Regresses):  # type: ignore[misc]
    """Mixin for regression models with one function for each output.

    ``_values`` returns the functions' values as an array of shape (n_samples, n_outputs).
    """

    _shape: tuple[int, ...]
    _values: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Return the values of the functions.  O(n_vectors n_features) for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        values = self._values(X)
        return values.reshape((len(values), *self._shape))
