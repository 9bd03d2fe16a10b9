"""What follows from the values of a model's functions: classes, probabilities, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]

from pykernel.estimators.base import Classifies, Regresses
from pykernel.training.calibration import log_probabilities, probabilities


class ClassifiesByFunctions(ClassifierMixin, Classifies):  # type: ignore[misc]
    """A function for each class, of two classes one; ``_values`` gives them, (n_samples, n_functions)."""

    calibration_: np.ndarray
    _values: Callable[[Any], np.ndarray]

    def decision_function(self, X: Any) -> np.ndarray:
        """Values of the functions.  O(n_vectors n_features) each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: one value, above 0 for ``classes_[1]``. More: one for each class, of which the largest wins,
            the first of equal ones.
        """
        return self._flat(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample.  O(n_vectors n_features) each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            By the functions' values, not by probabilities: ``NAME_classify`` on the device.
        """
        values = self._values(X)
        positions = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
        return self.classes_[positions.astype(np.intp)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """How probable each class is, by Platt's sigmoids (``calibration_``).  O(n_vectors n_features) each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Rows sum to 1. The most probable class need not be that of ``predict``, whose border is where functions are
            0 or equal, not where probabilities are.
        """
        return probabilities(self._values(X), self.calibration_)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``, finite where that rounds to 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
        """
        return log_probabilities(self._values(X), self.calibration_)

    def _flat(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if values.shape[1] == 1 else values


class RegressesByFunctions(RegressorMixin, Regresses):  # type: ignore[misc]
    """A function for each label; ``_values`` gives them, (n_samples, n_outputs)."""

    _shape: tuple[int, ...]
    _values: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Values of the functions.  O(n_vectors n_features) each.

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
