"""Kernel features by a chosen basis, as a scikit-learn transformer.

For a model on these features, put any linear model after the transformer in a pipeline; or use ``basis=`` of the
estimators in ``pykernel.estimators.batch``, which compute their leave-one-out error.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.estimators.base import KernelEstimator, ToFrozen, label_section
from pykernel.estimators.parameters import LEFT_OUT, POSITIVE, Must, Parameter, one_of, plain
from pykernel.estimators.subspace_batch import exported, frozen_machine
from pykernel.spec.model import Spec
from pykernel.training.reduced import nystrom_content

KERNELS = ("gaussian", "laplacian", "matern12", "matern32", "matern52", "polynomial", "linear")
MERCER = Must(
    f"one of {', '.join(KERNELS)}, or a MercerKernel",
    lambda v: isinstance(v, MercerKernel) or one_of(*KERNELS).holds(v),
)
PARAMETERS = {
    "kernel": Parameter(default="gaussian", must=MERCER),
    "gamma": Parameter(kind=float | None, must=POSITIVE | LEFT_OUT),
    "sigma": Parameter(kind=float | None, must=POSITIVE | LEFT_OUT),
    "coef0": Parameter(default=1.0, kind=float),
    "degree": Parameter(default=3, kind=int),
    "normalise": Parameter(default=False, kind=bool),
    # ``select_basis`` checks these
    "n_components": Parameter(default=100, kind=int),
    "method": Parameter(default="auto", kind=str),
    "candidates": Parameter(default=59, kind=int | None),
    "points": Parameter(default=59, kind=int | None),
    "tau": Parameter(default=0.0, kind=float),
    "epsilon": Parameter(default=1e-10, kind=float),
    "method_params": Parameter(
        kind=dict[str, Any] | None, must=Must("a dict, or None", lambda v: v is None or isinstance(v, dict))
    ),
    "random_state": Parameter(default=0),
}


class KernelBasis(ToFrozen, ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Kernel features of samples, by projection on the span of a few of them.

    ``transform`` gives ``z(x) = L^-1 k(components_, x)``, with ``L L'`` the Gram matrix of the components: coordinates
    of ``k(x, .)`` in the span of the components. ``z(x)'z(y)`` is the Nystroem kernel, and a linear model of z is a
    kernel model whose training takes O(n m^2) for n samples and m components. Features are nested: the first ones are
    those of the first components alone.

    With ``method="skfa"`` it is sparse kernel feature analysis: each feature is divided by the sum of the magnitudes of its
    coefficients of kernel values, so that no feature exceeds the kernel's largest value.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern12", "matern32", "matern52", "polynomial", "linear"} or MercerKernel, default="gaussian"
        ``exp(-gamma |a - b|^2)``, ``exp(-gamma |a - b|_1)``, ``(1 + r) exp(-r)`` and ``(1 + r + r^2/3) exp(-r)`` with
        ``r = gamma |a - b|``, ``(gamma a'b + coef0)^degree``, ``a'b``. A MercerKernel has its own parameters; it may be
        custom.
    gamma : float, default=None
        Scale of the kernel. None: one over the number of inputs and their variance (gaussian, polynomial), over the
        number and the standard deviation (laplacian), or over the root of the first (matern).
    sigma : float, default=None
        Width of the Gaussian kernel in place of gamma, ``1 / (2 sigma^2)``.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    degree : int, default=3
        Power of the polynomial kernel, from 1 to 9.
    normalise : bool, default=False
        Polynomial and linear: ``k(a, b) / sqrt(k(a, a) k(b, b))``, the cosine.
    n_components : int, default=100
        Largest number of components. There are fewer if the samples span less, or if ``tau`` is reached.
    method : str, default="auto"
        How components are chosen, one of ``pykernel.bases.select.METHODS``: "fvs", "efvs", "sgma", "exhaustive",
        "skfa", "rpcholesky", "pivoted-cholesky"; "auto" goes by the number of samples.
    candidates : int or None, default=59
        "efvs", "sgma" and "skfa": number of samples that are tried for each component; None: all.
    points : int or None, default=59
        "efvs": number of samples where candidates are scored; None: all.
    tau : float, default=0.0
        Stop when the components miss at most this part of the samples' squared lengths in feature space.
    epsilon : float, default=1e-10
        A sample is no candidate if the components miss at most this part of it. Use 1e-3 for a device with float32.
    method_params : dict, default=None
        Further options of the method, such as ``{"criterion": "kurtosis"}`` of "skfa", and ``confidence`` and ``swaps`` of ``pykernel.bases.select.select_basis``.
    random_state : int, RandomState or None, default=0
        Seed of the random choices. An int gives the same components each time.

    Attributes
    ----------
    basis_ : pykernel.bases.basis.Basis
        The components with their Cholesky factor and the residual after each.
    components_ : ndarray of shape (n_components, n_features)
        The components, in the order in which they were chosen.
    component_indices_ : ndarray of shape (n_components,)
        Which samples they are.
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

    Smola, A. J., Mangasarian, O. L. and Schölkopf, B. (1999). Sparse kernel feature analysis. Data Mining Institute.

    Cawley, G. C. and Talbot, N. L. C. (2002). Efficient formation of a basis in a kernel induced feature space. ESANN.

    Chen, Y., Epperly, E. N., Tropp, J. A. and Webber, R. J. (2025). Randomly pivoted Cholesky. Communications on Pure
    and Applied Mathematics 78(5).

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

    _family = PARAMETERS

    basis_: Basis
    components_: np.ndarray
    component_indices_: np.ndarray
    _directions: np.ndarray | None = None

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
        given = self._given()
        X = validate_data(self, X, dtype=np.float64)
        kernel, seed = self._chosen_kernel(X, given), self._seed()
        options = {name: given[name] for name in ("candidates", "points", "tau", "epsilon")}
        with self._named():
            basis = select_basis(
                X,
                kernel,
                given["n_components"],
                given["method"],
                seed=seed,
                **options,
                **(given["method_params"] or {}),
            )
        self.basis_, self.components_, self.component_indices_ = basis, basis.vectors, basis.indices
        self._directions = basis.directions() if given["method"] == "skfa" else None
        self._largest = np.abs(X).max(axis=0)
        return self

    def _repr_html_inner(self) -> str:
        there = self.basis_._repr_html_() if hasattr(self, "basis_") else ""
        return super()._repr_html_inner() + there

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
        X = self._inputs(X)
        z = self.basis_.features(X)
        if self._directions is not None:
            z *= self._directions.diagonal() * self.basis_.factor.diagonal()
        return z

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
        X = self._inputs(X)
        return self.basis_.residual(X)

    def to_spec(
        self,
        name: str,
        model: Any = None,
        *,
        precision: str = "float32",
        max_abs: float | None = None,
        scaler: Any = None,
    ) -> Spec:
        """The features, or a linear model of them, for the device: rule "nystrom", components and weights in flash.

        With ``method="skfa"``: rule "frozen", the coefficients of kernel values.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        model : fitted linear regressor or classifier, default=None
            One with ``coef_`` and ``intercept_``, such as Ridge or LogisticRegression, that learned the features. None:
            ``NAME_predict`` writes the features.
        precision : {"float32", "float64"}, default="float32"
        max_abs : float, default=None
            Largest magnitude of an input; samples beyond are refused. None: a million times the largest in training (of
            polynomial kernels ten times), or less where that could overflow.
        scaler : fitted scaler, default=None
            StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler that scaled the inputs: the device takes them as
            they were before.

        Returns
        -------
        spec : Spec
            ``HostModel(spec)`` computes what the device will.

        Raises
        ------
        UserError
            If a name or number is not valid; if a component is so similar to the others that the precision cannot
            distinguish it; if the model is not linear, or was trained on something else than these features.
        """
        check_is_fitted(self)
        if self._directions is not None:
            machine = frozen_machine(
                self,
                self.basis_.kernel,
                self.components_,
                self._directions.T,
                model,
                scaler,
                float(self._largest.max()),
            )
            return exported(machine, name, precision, plain(max_abs))
        center, scale, columns = (None, None, self._columns) if scaler is None else self._scaling(scaler)
        weights, bias, label = (None, None, None) if model is None else self._linear(model)
        with self._named():
            content = nystrom_content(
                self.basis_, name, precision, self._largest, max_abs=plain(max_abs), columns=columns, label=label,
                weights=weights, bias=bias,
                center=None if center is None or not center.any() else center,
                scale=None if scale is None or (scale == 1).all() else scale,
            )  # fmt: skip
        return self._made(content, self.basis_.kernel.custom)

    def _linear(self, model: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Weights (n, o), bias (o,) and [label] of a linear model."""
        where, fits = self._where, hasattr(model, "coef_") and hasattr(model, "intercept_")
        kind = type(model).__name__
        where.need(fits, f"model is a {kind}; it must be a fitted linear model, with coef_ and intercept_")
        weights = np.atleast_2d(np.asarray(model.coef_, np.float64)).T
        where.need(
            len(weights) == len(self.components_),
            f"model has weights of {len(weights)} features, and there are {len(self.components_)} components; give one that "
            "learned what transform returns",
        )
        functions = weights.shape[1]
        bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), (functions,))
        if not hasattr(model, "classes_"):
            return weights, bias, label_section(None, [], functions)
        where.need(
            functions == (1 if len(model.classes_) == 2 else len(model.classes_)),
            "model has functions of pairs of classes; it must have one for each class",
        )
        return weights, bias, label_section(None, [], classes=np.asarray(model.classes_).tolist())

    def _chosen_kernel(self, X: np.ndarray, given: dict[str, Any]) -> MercerKernel:
        function, gamma = given["kernel"], given["gamma"]
        if isinstance(function, MercerKernel):
            self._alone("gamma", "sigma")
            return self._definite(function)
        section = {key: given[key] for key in ("sigma", "gamma") if given[key] is not None}
        if not section and function != "linear":
            variance = float(X.var()) * X.shape[1] or 1.0
            gamma = 1 / variance
            if function == "laplacian":
                gamma = 1 / (X.shape[1] * (float(X.std()) or 1.0))
            elif function.startswith("matern"):
                gamma = variance**-0.5
            section["gamma"] = gamma
        if function == "polynomial":
            section |= {"coef0": float(given["coef0"]), "degree": given["degree"]}
        return self._mercer(section | {"function": function, "normalise": bool(given["normalise"])})

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
