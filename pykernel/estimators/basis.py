"""Kernel features by a chosen basis, as a scikit-learn transformer.

Models on them: any linear model behind it in a pipeline; or ``basis=`` of the estimators in ``pykernel.estimators.batch``,
which know their leave-one-out error.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from pykernel.errors import MissingExtra, UserError

try:
    from sklearn.base import (  # type: ignore[import-untyped]
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
    )
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
    from sklearn.utils import check_random_state  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtra("pykernel.estimators.basis", "sklearn") from error

from pykernel.bases.basis import Basis, select_basis
from pykernel.bases.gram import MercerKernel
from pykernel.estimators.online import _plain
from pykernel.spec.model import Spec, make_spec
from pykernel.training.reduced import nystrom_content
from pykernel.training.trained import class_names

KERNELS = ("gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear")


class KernelBasis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel features of samples, by projection on the span of a few of them.

    ``transform`` gives ``z(x) = L^-1 k(components_, x)``, with ``L L'`` the Gram matrix of the components: coordinates of
    ``k(x, .)`` in the span of theirs. ``z(x)'z(y)`` is the Nystroem kernel, and a linear model of z is a kernel model whose
    training takes O(n m^2) for n samples and m components. Features are nested: the first ones are those of the first
    components alone.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear"} or pykernel.bases.gram.MercerKernel, \
default="gaussian"
        ``exp(-gamma |a - b|^2)``, ``exp(-gamma |a - b|_1)``, ``(1 + r) exp(-r)`` and ``(1 + r + r^2/3) exp(-r)`` with ``r =
        gamma |a - b|``, ``(gamma a'b + coef0)^degree``, ``a'b``. A MercerKernel, which may be your own, brings its
        parameters.
    gamma : float, default=None
        Scale of the kernel. None: one over the number of inputs and their variance (gaussian, polynomial), over the number
        and the standard deviation (laplacian), or over the root of the first (matern).
    sigma : float, default=None
        Width of the Gaussian kernel in place of gamma, ``1 / (2 sigma^2)``.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    degree : int, default=3
        Power of the polynomial kernel, from 1 to 9.
    normalise : bool, default=False
        Polynomial and linear: ``k(a, b) / sqrt(k(a, a) k(b, b))``, the cosine.
    n_components : int, default=100
        Components at most; fewer if the samples span no more, are fewer, or ``tau`` is reached.
    method : str, default="auto"
        How components are chosen, one of ``pykernel.bases.basis.METHODS``: "fvs", "efvs", "sgma", "exhaustive", "rpcholesky",
        "pivoted-cholesky", "leverage", "k-means", "uniform"; "auto" goes by the number of samples.
    candidates : int or None, default=59
        "efvs" and "sgma": samples that are tried for each component; None: all.
    points : int or None, default=59
        "efvs": samples that they are scored at; None: all.
    tau : float, default=0.0
        Stop when the part of the samples' squared lengths in feature space that is left over is at most this.
    epsilon : float, default=1e-10
        Samples are no candidates if at most this part of them is left over. 1e-3 for components that a device uses in
        float32.
    method_params : dict, default=None
        Further options of the method.
    random_state : int, RandomState or None, default=0
        Of the draws. An int gives the same components each time.

    Attributes
    ----------
    basis_ : pykernel.bases.basis.Basis
        The components with their Cholesky factor and the residual after each.
    components_ : ndarray of shape (n_components, n_features)
        The components, in the order in which they were chosen.
    component_indices_ : ndarray of shape (n_components,)
        Which samples they are; -1: none (k-means).
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any.

    See Also
    --------
    KernelRidgeRegressor : With ``basis``, regression on such features that chooses width and ridge.
    sklearn.kernel_approximation.Nystroem : Components drawn uniformly, features by the inverse root of the Gram matrix.

    References
    ----------
    Smola, A. J. and Schölkopf, B. (2000). Sparse greedy matrix approximation for machine learning. ICML.

    Cawley, G. C. and Talbot, N. L. C. (2002). Efficient formation of a basis in a kernel induced feature space. ESANN.

    Chen, Y., Epperly, E. N., Tropp, J. A. and Webber, R. J. (2025). Randomly pivoted Cholesky. Communications on Pure and
    Applied Mathematics 78(5).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from pykernel import KernelBasis
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(KernelBasis(gamma=1e-3, n_components=150), RidgeClassifier(alpha=1e-2))
    >>> bool(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95)
    True
    >>> model[0].components_.shape
    (150, 64)
    >>> round(float(model[0].basis_.trace[-1]), 1)  # of the samples' squared lengths is left over
    0.3
    """

    basis_: Basis
    components_: np.ndarray
    component_indices_: np.ndarray

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        gamma: float | None = None,
        sigma: float | None = None,
        coef0: float = 1.0,
        degree: int = 3,
        normalise: bool = False,
        n_components: int = 100,
        method: str = "auto",
        candidates: int | None = 59,
        points: int | None = 59,
        tau: float = 0.0,
        epsilon: float = 1e-10,
        method_params: dict[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.sigma = sigma
        self.coef0 = coef0
        self.degree = degree
        self.normalise = normalise
        self.n_components = n_components
        self.method = method
        self.candidates = candidates
        self.points = points
        self.tau = tau
        self.epsilon = epsilon
        self.method_params = method_params
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : ignored

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter cannot be.
        ValueError
            If the data are not finite numbers of the right shape.
        """
        X = validate_data(self, X, dtype=np.float64)
        if self.method_params is not None and not isinstance(self.method_params, dict):
            raise self._error(f"method_params is {self.method_params!r}; it must be a dict, or None")
        seed = int(check_random_state(self.random_state).randint(2**31))
        kernel = self._kernel(X)
        try:
            basis = select_basis(
                X, kernel, _plain(self.n_components), self.method, seed=seed,
                candidates=_plain(self.candidates), points=_plain(self.points), tau=_plain(self.tau),
                epsilon=_plain(self.epsilon), **(self.method_params or {}),
            )  # fmt: skip
        except UserError as error:
            raise self._error(str(error)) from None
        self.basis_, self.components_, self.component_indices_ = basis, basis.vectors, basis.indices
        self._largest = np.abs(X).max(axis=0)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Features of samples.  O(n_components (n_features + n_components)) each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self.basis_.features(validate_data(self, X, dtype=np.float64, reset=False))

    def residual(self, X: Any) -> np.ndarray:
        """The part of each sample's squared length in feature space that its features leave over, from 0 to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        delta : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.basis_.residual(validate_data(self, X, dtype=np.float64, reset=False))

    @property
    def spec_(self) -> Spec:
        """``to_spec("model")``: what ``pykernel.generate`` and ``pykernel.check`` take of an estimator."""
        return self.to_spec("model")

    def to_spec(
        self,
        name: str,
        model: Any = None,
        *,
        precision: str = "float32",
        limit: float | None = None,
        scaler: Any = None,
    ) -> Spec:
        """The features, or a linear model of them, for the device: rule "nystrom", components and weights in flash.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        model : fitted linear regressor or classifier, default=None
            One with ``coef_`` and ``intercept_``, such as Ridge or LogisticRegression, that learned the features. None:
            ``NAME_predict`` writes the features.
        precision : {"float32", "float64"}, default="float32"
        limit : float, default=None
            Largest magnitude of an input; samples beyond are refused. None: a million times the largest in training (of
            polynomial kernels ten times), or less where that could overflow.
        scaler : fitted StandardScaler, default=None
            What scaled the inputs: the device takes them as they were before.

        Returns
        -------
        spec : Spec
            ``HostModel(spec)`` computes what the device will.

        Raises
        ------
        UserError
            If a name or number cannot be; if a component is so much like the others that the precision does not tell them
            apart; if the model is not linear, or learned something else than these features.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        center = factor = None
        if scaler is not None:
            if not isinstance(scaler, StandardScaler):
                raise self._error(f"scaler is a {type(scaler).__name__}; it must be a fitted StandardScaler")
            check_is_fitted(scaler)
            if scaler.n_features_in_ != self.n_features_in_:
                raise self._error(f"scaler has {scaler.n_features_in_} inputs, and the basis {self.n_features_in_}")
            names = getattr(scaler, "feature_names_in_", names)
            center = scaler.mean_ if scaler.with_mean else None
            factor = 1 / scaler.scale_ if scaler.with_std else None
        weights = bias = label = None
        if model is not None:
            weights, bias, label = self._linear(model)
        columns = None if names is None else tuple(map(str, names))
        try:
            content = nystrom_content(
                self.basis_, name, precision, self._largest, limit=_plain(limit), columns=columns, label=label,
                weights=weights, bias=bias, center=center, factor=factor,
            )  # fmt: skip
        except UserError as error:
            raise self._error(str(error)) from None
        return make_spec(content, type(self).__name__, self.basis_.kernel.own)

    def _linear(self, model: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Weights (n, o), bias (o,) and [label] of a linear model."""
        if not hasattr(model, "coef_") or not hasattr(model, "intercept_"):
            raise self._error(
                f"model is a {type(model).__name__}; it must be a fitted linear model, with coef_ and intercept_"
            )
        weights = np.atleast_2d(np.asarray(model.coef_, np.float64)).T
        if len(weights) != len(self.components_):
            raise self._error(
                f"model has weights of {len(weights)} features, and there are {len(self.components_)} components; give one "
                "that learned what transform returns"
            )
        bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), (weights.shape[1],))
        if hasattr(model, "classes_"):
            if weights.shape[1] != (1 if len(model.classes_) == 2 else len(model.classes_)):
                raise self._error("model has functions of pairs of classes; it must have one for each class")
            return weights, bias, {"classes": class_names(np.asarray(model.classes_).tolist())}
        return weights, bias, {"outputs": weights.shape[1]} if weights.shape[1] > 1 else {}

    def _kernel(self, X: np.ndarray) -> MercerKernel:
        given = self.kernel
        if isinstance(given, MercerKernel):
            if self.gamma is not None or self.sigma is not None:
                raise self._error("gamma or sigma is given beside a MercerKernel, which has its own; leave them out")
            return given
        if not isinstance(given, str) or given not in KERNELS:
            raise self._error(f"kernel is {given!r}; it must be one of {', '.join(KERNELS)}, or a MercerKernel")
        gamma = _plain(self.gamma)
        if self.sigma is not None:
            sigma = _plain(self.sigma)
            if given != "gaussian" or gamma is not None:
                raise self._error("sigma is given; it is of the gaussian kernel, in place of gamma")
            if not isinstance(sigma, (int, float)) or not 0 < sigma < np.inf:
                raise self._error(f"sigma is {sigma!r}; it must be a number above 0")
            gamma = 0.5 / sigma / sigma
        if gamma is None:
            variance = float(X.var()) * X.shape[1] or 1.0
            gamma = 1 / variance
            if given == "laplacian":
                gamma = 1 / (X.shape[1] * (float(X.std()) or 1.0))
            elif given.startswith("matern"):
                gamma = variance**-0.5
        elif given == "linear":
            raise self._error("gamma is given, which the linear kernel does not have")
        if not isinstance(gamma, (int, float)) or not 0 < gamma < np.inf:
            raise self._error(f"gamma is {gamma!r}; it must be a number above 0")
        shape = {"coef0": float(self.coef0), "degree": _plain(self.degree)} if given == "polynomial" else {}
        try:
            return MercerKernel(
                given, 1.0 if given == "linear" else float(gamma), normalise=bool(self.normalise), **shape
            )
        except UserError as error:
            raise self._error(str(error)) from None

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _error(self, sentence: str) -> UserError:
        return UserError(f"{type(self).__name__}: {sentence}")
