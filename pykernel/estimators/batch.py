"""Kernel machines with a closed-form solution, as scikit-learn estimators: Fisher discriminant, LS-SVM, kernel ridge regression.

The estimators train on the host in float64, with leave-one-out cross-validation at little additional cost.  ``to_spec``
returns the spec of a frozen model.  For a model that trains on the device, write a spec (docs/kernel-machines.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from pykernel.bases.basis import Basis
from pykernel.estimators.functions import ClassifiesByFunctions, RegressesByFunctions
from pykernel.estimators.kernel_machine import ATTRIBUTES, OF_CLASSIFIERS, RESOLUTION, KernelMachine
from pykernel.training.calibration import fit_calibration
from pykernel.training.coding import Targets, error_rate, press

# ------------------------------------------------------------------------------------------------------ classification


class _Classifier(ClassifiesByFunctions, KernelMachine):
    """Base of the classifiers."""

    calibration_: np.ndarray
    loo_press_: float

    def fit(self, X: Any, y: Any) -> Self:
        """Choose the parameters that were left open, train, and calibrate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two or more different classes: numbers, strings or whatever else can be sorted.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid or does not apply to the kernel, or if there is only one class.
        ValueError
            If the data are not finite numbers of the right shape.
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        X, y, weights, counts = self._samples(X, y, sample_weight)
        classes, positions = self._classes_of(y[counts]), np.unique(y[counts], return_inverse=True)[1]
        with self._named():
            targets = Targets.of_classes(positions, len(classes), self.coding, weights)  # type: ignore[arg-type]
        values = self._train(X, targets, counts)
        left_out = values[counts]
        self.classes_, self.loo_predictions_ = classes, self._flat(values)
        self.loo_error_, self.loo_press_ = error_rate(targets, left_out), press(targets, left_out)
        resolution = RESOLUTION * float(np.abs(targets.values).max())
        self.calibration_ = fit_calibration(left_out, positions, len(classes), resolution, weights)
        return self


class _Regressor(RegressesByFunctions, KernelMachine):
    """Base of the regressors."""

    _without = ("coding", "by")
    _attributes: ClassVar[dict[str, str]] = {k: v for k, v in ATTRIBUTES.items() if k not in OF_CLASSIFIERS}
    _words: ClassVar[dict[str, str]] = KernelMachine._words | {"{error}": "Mean squared error"}

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        X, y, weights, counts = self._samples(X, y, sample_weight)
        targets = Targets.of_values(y[counts], weights)
        values = self._train(X, targets, counts)
        self._shape = y.shape[1:]
        self.loo_predictions_ = values.reshape(y.shape)
        self.loo_error_ = press(targets, values[counts])
        return self


class _TrainsOnSamples(KernelMachine):
    """Base of models that can also be trained on the device, from collected samples.  On the host, samples may have weights."""

    _fit: Callable[..., Self]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters that were left open, and train; a classifier is also calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,), for regressors also (n_samples, n_outputs)
            Labels. Regressors take numbers; all labels share one kernel and one ridge. Classifiers take two or more
            different classes: numbers, strings or whatever else can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each sample, 0 or more. Weights apply to the minimised squared error, to the leave-one-out
            errors and to the calibration. Leaving out a sample removes its whole weight. For the same width
            and ridge, a weight of 2 gives the same model as two equal rows, but different leave-one-out errors, because
            only one of the two rows is left out at a time. The absolute size of the weights matters: doubling all
            weights is equivalent to halving the ridge.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid or does not apply to the kernel, if there is only one class, or if a weight is
            below 0.
        ValueError
            If the data are not finite numbers of the right shape.
        """
        return self._fit(X, y, sample_weight)


class KernelFisherClassifier(_Classifier):
    """Kernel Fisher discriminant, by regularised least squares on coded classes.

    The functions ``f(x) = k(x, basis_) alpha_ + bias_`` minimise ``|y - f|^2 + ridge |alpha|^2``. With the targets of
    the default ``coding``, this is Fisher's discriminant: alpha is the direction in which the class means are as far
    apart as possible relative to the spread within the classes. Two classes share one function, which is positive for
    ``classes_[1]``. With more classes, there is one function for each class, and the class whose function has the largest
    value is predicted.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMClassifier : Penalises the functions instead of the weights.

    Notes
    -----
    With p vectors and n samples, ``fit`` takes O(n p min(n, p)) time for each width, and O(n p) for each combination of
    width, ridge and function. These times include leave-one-out, which gives the same result as retraining without each
    sample in turn (docs/kernel-machines.md).

    References
    ----------
    Mika, S., Rätsch, G., Weston, J., Schölkopf, B. and Müller, K.-R. (1999). Fisher discriminant analysis with kernels.
    Neural Networks for Signal Processing IX.

    Platt, J. C. (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods. Advances in Large Margin Classifiers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import KernelFisherClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherClassifier(basis=range(0, 150, 5)).fit(X, y)
    >>> bool(model.loo_error_ < 0.05), model.basis_.shape
    (True, (30, 4))
    >>> model.predict_proba(X[[0, 75]]).round(1)
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> model.to_spec("iris").label.classes
    ('0', '1', '2')
    """

    _model = "kfd"
    _defaults: ClassVar[dict[str, Any]] = {"coding": "counts"}
    _words: ClassVar[dict[str, str]] = _Classifier._words | {
        "{ridge}": "the squared singular values of the Gram matrix",
        "{basis}": "If ``basis`` is a number\n    or a Basis, cross-validation keeps the vector of a left-out sample.",
    }

    def _reduces(self, basis: Any, function: str) -> bool:
        """Return True if the vectors are chosen or given as a Basis: the basis then does not change when samples are left out.

        Only these two kinds of basis need a positive definite kernel.  A vector that is given as the position of a sample is
        removed when that sample is left out.
        """
        return isinstance(basis, (int, Basis)) and super()._reduces(basis, function)


class LSSVMClassifier(_TrainsOnSamples, _Classifier):
    """Least-squares support vector machine: a kernel expansion over all samples, with an unpenalised bias.

    The functions ``f(x) = k(x, basis_) alpha_ + bias_`` minimise ``|y - f|^2 + ridge |w|^2``, where w is f without its
    bias, and ``|w|`` is the norm of w in the kernel's space. alpha and bias solve ``(K + ridge I) alpha + 1 bias = y`` with
    ``1' alpha = 0``, where K is the Gram matrix of the samples, and 1 is a vector of ones. Two classes share one
    function, which is positive for ``classes_[1]``. With more classes, there is one function for each class, and the
    class whose function has the largest value is predicted.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    KernelFisherClassifier : Penalises the weights instead of the functions.
    KernelRidgeClassifier : The same model without a bias.

    Notes
    -----
    If all n samples are expansion vectors, ``fit`` takes O(n^3) time for each width, and O(n^2) for each combination of
    width, ridge and function. These times include leave-one-out, which gives the same result as retraining without each sample in turn.
    ``1 / ridge`` corresponds to the parameter C of an SVM.

    References
    ----------
    Suykens, J. A. K. and Vandewalle, J. (1999). Least squares support vector machine classifiers. Neural Processing
    Letters 9(3).

    Cawley, G. C. and Talbot, N. L. C. (2004). Fast exact leave-one-out cross-validation of sparse least-squares support
    vector machines. Neural Networks 17(10).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import LSSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSSVMClassifier(sigma=2.0, ridge=[0.01, 0.1, 1.0]).fit(X, y)
    >>> bool(model.loo_error_ < 0.05), model.selection_.press.shape
    (True, (1, 3))
    """

    _model = "ls-svm"


class KernelRidgeClassifier(_TrainsOnSamples, _Classifier):
    """Kernel ridge regression on classes coded as 1 and -1: a kernel expansion over all samples, without a bias.

    The functions ``f(x) = k(x, basis_) alpha_`` minimise ``|y - f|^2 + ridge |f|^2``, where ``|f|`` is the norm of
    f in the kernel's space. alpha solves ``(K + ridge I) alpha = y``, where K is the Gram matrix of the samples. Two
    classes share one function, which is positive for ``classes_[1]``. With more classes, there is one function for each
    class, and the class whose function has the largest value is predicted.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMClassifier : The same model with a bias, which accounts for unequal frequencies of the classes.

    Notes
    -----
    If all n samples are expansion vectors, ``fit`` takes O(n^3) time for each width, and O(n^2) for each combination of
    width, ridge and function. These times include leave-one-out, which gives the same result as retraining without each sample in turn.

    References
    ----------
    Saunders, C., Gammerman, A. and Vovk, V. (1998). Ridge regression learning algorithm in dual variables. ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import KernelRidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelRidgeClassifier("laplacian", gamma=0.5, ridge=0.1).fit(X, y)
    >>> bool(model.loo_error_ < 0.1), model.selection_ is None
    (True, True)
    """

    _model = "krr"


# ---------------------------------------------------------------------------------------------------------- regression


class LSSVMRegressor(_TrainsOnSamples, _Regressor):
    """Least-squares support vector machine for regression: kernel ridge regression with an unpenalised bias.

    The functions ``f(x) = k(x, basis_) alpha_ + bias_`` minimise ``|y - f|^2 + ridge |w|^2``, where w is f without its
    bias, and ``|w|`` is the norm of w in the kernel's space. alpha and bias solve ``(K + ridge I) alpha + 1 bias = y`` with
    ``1' alpha = 0``, where K is the Gram matrix of the samples, and 1 is a vector of ones. All labels share one kernel
    and one ridge, so scale the labels to similar magnitudes.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    KernelRidgeRegressor : The same model without a bias.

    Notes
    -----
    If all n samples are expansion vectors, ``fit`` takes O(n^3) time for each width, and O(n^2) for each combination of
    width, ridge and label. These times include leave-one-out, which gives the same result as retraining without each sample in turn.

    References
    ----------
    Suykens, J. A. K., Van Gestel, T., De Brabanter, J., De Moor, B. and Vandewalle, J. (2002). Least Squares Support
    Vector Machines. World Scientific.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import LSSVMRegressor
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> model = LSSVMRegressor().fit(x, 100 + np.sin(2 * x[:, 0]))
    >>> model.predict([[-0.8], [0.8]]).round()
    array([ 99., 101.])
    >>> print(model.to_spec("wave").to_toml())  # doctest: +ELLIPSIS
    name = "wave"
    format = 1
    precision = "float32"
    ...
    """

    _model = "ls-svm"


class KernelRidgeRegressor(_TrainsOnSamples, _Regressor):
    """Kernel ridge regression (the mean of a Gaussian process): a kernel expansion over all samples, without a bias.

    The functions ``f(x) = k(x, basis_) alpha_`` minimise ``|y - f|^2 + ridge |f|^2``, where ``|f|`` is the norm of
    f in the kernel's space. alpha solves ``(K + ridge I) alpha = y``, where K is the Gram matrix of the samples. The
    model has no bias: if the labels' mean is far from zero, subtract it first. All labels share one kernel and one
    ridge, so scale the labels to similar magnitudes.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMRegressor : The same model with a bias.

    Notes
    -----
    If all n samples are expansion vectors, ``fit`` takes O(n^3) time for each width, and O(n^2) for each combination of
    width, ridge and label. These times include leave-one-out, which gives the same result as retraining without each sample in turn.
    ``sklearn.kernel_ridge.KernelRidge(alpha=ridge)`` is the same model.

    References
    ----------
    Saunders, C., Gammerman, A. and Vovk, V. (1998). Ridge regression learning algorithm in dual variables. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import KernelRidgeRegressor
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> model = KernelRidgeRegressor(sigma=0.5, ridge=1e-3).fit(x, np.column_stack([np.sin(2 * x), np.cos(2 * x)]))
    >>> model.predict([[0.1], [0.9]]).round(1)
    array([[ 0.2,  1. ],
           [ 1. , -0.2]])
    >>> bool(model.loo_error_ < 1e-4)
    True
    """

    _model = "krr"
