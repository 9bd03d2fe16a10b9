"""Linear models on kernel features that follow a stream, as scikit-learn estimators: a head that learns labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.estimators.online import BudgetedKernelClassifier, BudgetedKernelRegressor
from pykernel.estimators.subspace import OnlineSubspace


class _WithHead(OnlineSubspace):
    """Base of the estimators whose head learns labels on the features."""

    def monitor(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the device tells of a stream as it learns it: each sample's novelty, then the sample is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in the order in which they come.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels: numbers, or classes.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Before the sample was learned; NaN where it is refused.
        alarms : ndarray of shape (n_samples,) of bool
            Whether the level, smoothed novelty, was above the threshold; never without ``false_alarm_rate`` or
            ``threshold``.
        """
        return self._monitored(X, y)


class OnlineSubspaceRegressor(_WithHead, BudgetedKernelRegressor):
    """Linear regression on kernel features that follow a stream, in fixed memory, bit for bit as on a microcontroller.

    The features z(x) are those of `OnlineKernelSubspace`. Recursive least squares with an intercept learns each label
    from the features, before the subspace moves. This takes ``(n_components + 1)^2 / 2`` numbers more memory.

    Parameters
    ----------
    n_components : int, default=16
        Number of features. The inputs alone choose the features, so regression needs more of them than monitoring.
    {others}
        As in `OnlineKernelSubspace`. ``false_alarm_rate``, ``threshold``, ``smoothing``, ``warmup`` and
        ``relearn_after`` are for ``monitor``.
    ridge : float, default=0.1
        Weight of the squared coefficients.
    head_forgetting : float, default=1.0
        Each new label multiplies the weight of all earlier ones by this factor, in (0.5, 1].
    label_max_abs : float, default=None
        Largest magnitude of a label; samples beyond are refused. None: 1e6.

    Attributes
    ----------
    spec_, model_, subspace_, offset_, status_counts_, n_features_in_, feature_names_in_
        As of `OnlineKernelSubspace`.

    See Also
    --------
    BudgetedKernelRegressor : A kernel expansion that learns labels without features between.
    OnlineSubspaceClassifier : The same for classes.

    Notes
    -----
    The features follow the directions in which inputs vary most. A direction that matters for the label, but in which
    inputs hardly vary, is in none of a few features. A `BudgetedKernelRegressor` learns from its errors, and finds it.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import OnlineSubspaceRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, (1200, 1))
    >>> y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=1200)
    >>> model = OnlineSubspaceRegressor(8, n_max=32, sigma=0.7).partial_fit(x[:600], y[:600]).partial_fit(x[600:], y[600:])
    >>> model.score(x, y) > 0.9
    True
    """

    _without = (*OnlineSubspace._without, "head", "head_eta")

    def predict(self, X: Any) -> Any:  # type: ignore[override]
        """Values of the learned function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The numbers that the device computes, in float64; NaN, with a warning, where it would refuse the input as
            beyond ``input_max_abs``.
        """
        X = self._inputs(X)
        return self._finite(self.model_.predict(X)).reshape(self._shape(len(X)))


class OnlineSubspaceClassifier(_WithHead, BudgetedKernelClassifier):
    """Linear classification on kernel features that follow a stream, in fixed memory, bit for bit as on a
    microcontroller.

    Features z(x) are those of `OnlineKernelSubspace`; a linear classifier with an intercept learns on them, each sample
    before the subspace moves.

    Parameters
    ----------
    n_components : int, default=16
        Number of features. The inputs alone choose the features, so regression needs more of them than monitoring.
    {others}
        As in `OnlineKernelSubspace`. ``false_alarm_rate``, ``threshold``, ``smoothing``, ``warmup`` and
        ``relearn_after`` are for ``monitor``.
    head : {"ridge", "logistic"}, default="ridge"
        "ridge": recursive least squares of -1 and 1, one function for each class, or one for two. "logistic": a
        gradient step of the logistic loss (more than two classes: softmax), which knows probabilities and learns more
        slowly.
    ridge : float, default=0.1
        Weight of the squared coefficients.
    head_forgetting : float, default=1.0
        "ridge": what a label's weight is multiplied by at each later one, in (0.5, 1].
    head_eta : float, default=0.5
        "logistic": the step, in parts of the safe one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. What the device calls class i is ``classes_[i]``.
    spec_, model_, subspace_, offset_, status_counts_, n_features_in_, feature_names_in_
        As of `OnlineKernelSubspace`.

    See Also
    --------
    BudgetedKernelClassifier : A kernel expansion that learns classes without features between.
    OnlineSubspaceRegressor : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import OnlineSubspaceClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> model = OnlineSubspaceClassifier(8, n_max=32).fit(X[:100], y[:100])
    >>> model.score(X[100:], y[100:]) > 0.9
    True
    >>> OnlineSubspaceClassifier(head="logistic").fit(X, y).predict_proba(X[:2]).sum(axis=1).round(5).tolist()
    [1.0, 1.0]
    """

    _without = (*OnlineSubspace._without, "label_max_abs")
