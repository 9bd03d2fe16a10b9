"""Kernel features from a tracked subspace, as scikit-learn estimators: batch, online, and with a head that learns labels.

``KernelSubspace`` solves the whole problem at once, in float64.  The others learn sample by sample through the host model
of rule "okfeb", bit for bit as on the device.  All of them export their features, and linear models of these, to C.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Self, cast

import numpy as np

from pykernel.errors import MissingExtra, UserError

try:
    from sklearn.base import (  # type: ignore[import-untyped]
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        OutlierMixin,
        TransformerMixin,
    )
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.utils import check_random_state  # type: ignore[import-untyped]
    from sklearn.utils.metaestimators import available_if  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtra("pykernel.estimators.subspace", "sklearn") from error

from pykernel.bases.gram import MercerKernel
from pykernel.estimators.online import (
    KERNEL_KEYS,
    LIMIT,
    LINEAR_LIMIT,
    PATIENCE,
    BudgetedKernelClassifier,
    BudgetedKernelRegressor,
    _BudgetedKernelModel,
    _kernel,
    _plain,
)
from pykernel.host.model import HostModel
from pykernel.importers.sklearn import _affine as _scaler_affine
from pykernel.importers.sklearn import _columns
from pykernel.spec.families.subspace import rank_of
from pykernel.spec.kernel_settings import largest
from pykernel.spec.model import Spec, make_spec
from pykernel.training.bkfe import WHOLE, Approximation, Factors, HostSubspace, _affine, _classes, _kept, bkfe
from pykernel.training.reduced import gram_operator
from pykernel.training.rounding import notes
from pykernel.training.trained import Machine, checked
from pykernel.training.trained import to_spec as spec_of

SUBSPACE_KEYS = (
    "update", "shrinkage", "step", "eta", "window", "forgetting", "budget", "fading", "insensitivity", "censoring", "head",
)  # fmt: skip
NOVELTY_KEYS = ("rate", "threshold", "smoothing", "warmup", "hold")
HEAD_KEYS = {"ridge": "ridge", "head_forgetting": "forgetting", "head_eta": "eta"}
"""Parameters of the head, and what [learning] calls them."""
PIVOT = {"float32": 2.0**-16, "float64": 2.0**-40}
"""Pivots of G below this part of its diagonal make a feature zero, as on the device."""


class KernelSubspace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel features of samples from the subspace that represents all of them best: batch BKFE.

    Samples ``phi(x)`` in the kernel's feature space are approximated by ``L q(x)`` with few features q, so that
    ``1/2 sum |phi(x_n) - L q_n|^2 + shrinkage/2 (|L|^2 + sum |q_n|^2)`` is least. ``L = Phi A`` is spanned by samples.
    ``transform`` gives ``z(x) = G^(1/2) q(x)`` with ``G = L'L``, for which ``z(x)'z(y)`` approximates ``k(x, y)``: a linear
    model of z stands for a kernel model. The directions are those of kernel PCA without centring, each singular value
    lowered by ``shrinkage``; features are in the order of falling singular values, and nested.

    Parameters
    ----------
    n_components : int, default=8
        Features at most; there are fewer if fewer singular values exceed ``shrinkage``.
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear"} or pykernel.bases.gram.MercerKernel, \
default="gaussian"
        ``exp(-gamma |a - b|^2)``, ``exp(-gamma |a - b|_1)``, ``(1 + r) exp(-r)`` and ``(1 + r + r^2 / 3) exp(-r)`` with
        ``r = gamma |a - b|``, ``(gamma a'b + coef0)^degree``, ``a'b``. A MercerKernel, which may be your own, brings its
        parameters.
    sigma : float or "scale", default="scale"
        Width of the Gaussian kernel. "scale" takes ``sigma^2 = n_features * v / 2``, with v the mean over features of
        their variance.
    gamma : float or "scale", default="scale"
        The kernel's gamma; for "gaussian" in place of ``sigma``: ``1 / (2 sigma^2)``. "scale" derives it from the
        ``sigma`` that "scale" would give.
    coef0 : float, default=0.0
        "polynomial": what is added to ``gamma a'b``.
    degree : int, default=3
        "polynomial": the exponent.
    normalise : bool, default=False
        "polynomial", "linear": whether ``k(a, b)`` is divided by ``sqrt(k(a, a) k(b, b))``.
    shrinkage : float, default=0.1
        lambda: what each singular value of the samples in feature space loses. Directions below it vanish. Singular
        values grow with the root of the number of samples.
    n_max : int, default=None
        Expansion vectors at most. The subspace is then that of the samples' projections on the span of so many of them,
        chosen by ``pykernel.bases.basis.select_basis``; memory and time grow as ``n_samples n_max``. None: all samples.
    method : {"closed", "alternating"}, default="closed"
        How the least is found: by eigenvalues, or by the paper's Algorithm 1, ridge regressions for q and L in turn.
    max_iter : int, default=200
        "alternating": most turns.
    tol : float, default=1e-10
        "alternating": the relative decrease of the objective below which it ends.
    random_state : int, RandomState or None, default=0
        "alternating": the start. With ``n_max``: draws of the choice of vectors.

    Attributes
    ----------
    subspace_ : pykernel.training.bkfe.HostSubspace
        L: the kernel, the expansion vectors and A.
    vectors_ : ndarray of shape (n_vectors, n_features)
        The expansion vectors.
    singular_values_ : ndarray of shape (n_components_,)
        Those of the samples in feature space, before they are lowered, falling. "alternating": as far as it came.
    objective_ : ndarray of shape (n_iter_,)
        The objective after each turn; it never rises.
    n_components_ : int
        Features.
    n_iter_ : int
        Turns; 1 for "closed".
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any.

    See Also
    --------
    OnlineKernelSubspace : The same sample by sample, in fixed memory.
    KernelBasis : Features by projection on the span of a few samples.
    sklearn.decomposition.KernelPCA : With centring and without shrinkage.

    Notes
    -----
    O(n^2 n_features + n^2 n_components) for n samples with "closed", O(n n_max (n_features + n_max)) with ``n_max``.
    Features of a new sample: O(n_vectors (n_features + n_components)).

    References
    ----------
    Sheikholeslami, F., Berberidis, D. and Giannakis, G. B. (2016). Large-scale kernel-based feature extraction via budgeted
    nonlinear subspace tracking. Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from pykernel import KernelSubspace
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(KernelSubspace(30), LogisticRegression(C=100, max_iter=1000))
    >>> bool(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93)
    True
    >>> model[:-1].transform(X).shape
    (1797, 30)
    """

    subspace_: HostSubspace
    vectors_: np.ndarray
    singular_values_: np.ndarray
    objective_: np.ndarray
    n_components_: int
    n_iter_: int

    def __init__(
        self,
        n_components: int = 8,
        *,
        kernel: str | MercerKernel | None = None,
        sigma: float | str | None = None,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: int | None = None,
        normalise: bool = False,
        shrinkage: float = 0.1,
        n_max: int | None = None,
        method: str = "closed",
        max_iter: int = 200,
        tol: float = 1e-10,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.normalise = normalise
        self.shrinkage = shrinkage
        self.n_max = n_max
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the subspace of the samples.

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
            If a parameter cannot be, or no singular value exceeds ``shrinkage``.
        ValueError
            If the data are not finite numbers of the right shape, or "scale" finds no variance.
        """
        X = validate_data(self, X, dtype=np.float64)
        rank, shrinkage = _plain(self.n_components), _plain(self.shrinkage)
        iterations, tolerance, n_max = _plain(self.max_iter), _plain(self.tol), _plain(self.n_max)
        for key, value in (("n_components", rank), ("max_iter", iterations), ("n_max", n_max)):
            if not (type(value) is int and value >= 1) and not (key == "n_max" and value is None):
                raise self._error(f"{key} is {value!r}; it must be a whole number from 1")
        if type(shrinkage) not in (int, float) or not 0 < shrinkage < np.inf:
            raise self._error(f"shrinkage is {shrinkage!r}; it must be a number above 0")
        if type(tolerance) not in (int, float) or not 0 <= tolerance < 1:
            raise self._error(f"tol is {tolerance!r}; it must be a number from 0 to less than 1")
        if self.method not in ("closed", "alternating"):
            raise self._error(f"method is {self.method!r}; it must be closed or alternating")
        kernel = self._chosen_kernel(X)
        seed = int(check_random_state(self.random_state).randint(2**31))
        try:
            if n_max is None:
                factors = self._solved(X, kernel, rank, float(shrinkage), iterations, tolerance, seed)
                found = HostSubspace(kernel, X, factors.a, float(shrinkage))
                self.objective_ = factors.objective
            else:
                found = HostSubspace.fit(
                    X, kernel, rank, float(shrinkage), method=cast(Any, self.method), basis=n_max, seed=seed
                )  # fmt: skip
                # 1/2 tr K - 1/2 |G|^2, of the best L in this span
                self.objective_ = np.array([0.5 * (kernel.diagonal(X).sum() - np.square(found.eigenvalues).sum())])
        except UserError as error:
            raise self._error(str(error)) from None
        values, turn = np.linalg.eigh(found.gram)
        kept = np.flatnonzero(_kept(values))[::-1]
        if not len(kept):
            raise self._error(
                f"shrinkage is {shrinkage:g}, and no singular value of the {len(X)} samples in feature space exceeds it; it "
                "must be lower"
            )
        # coordinates in which G is diagonal: features fall in size, whatever the method
        a = found.a @ turn[:, kept]
        heaviest = a[np.abs(a).argmax(axis=0), np.arange(len(kept))]
        self.subspace_ = HostSubspace(kernel, found.vectors, a * np.where(heaviest < 0, -1.0, 1.0), float(shrinkage))
        self.vectors_, self.singular_values_ = self.subspace_.vectors, values[kept] + shrinkage
        self.n_components_, self.n_iter_ = len(kept), len(self.objective_)
        self._largest = float(np.abs(X).max())
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Features of samples.  O(n_vectors (n_features + n_components)) each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        z : ndarray of shape (n_samples, n_components_)
        """
        return self.subspace_.features(self._inputs(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """How usual each sample is: the part of its squared length that features leave over, with its sign turned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            ``-|phi(x) - L q(x)|^2 / k(x, x)``, from -1 (nothing of it is known) to 0.
        """
        return -self.subspace_.score(self._inputs(X))

    def approximation(self, X: Any) -> Approximation:
        """How well ``z(x)'z(y)`` approximates the kernel on samples, with the bounds.  O(n^2 n_features).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        report : pykernel.training.bkfe.Approximation
        """
        return self.subspace_.approximation(self._inputs(X))

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
        """The features, or a linear model of them, as a frozen kernel expansion for the device.

        ``z(x) = W' k(vectors_, x)``, and weights of z are collapsed into W: a model of o functions is
        ``n_vectors (n_features + o)`` numbers in flash, however many features there are.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        model : fitted linear regressor or classifier, or KMeans, default=None
            One that learned what transform returns: with ``coef_`` and ``intercept_``, such as Ridge or
            LogisticRegression, or with ``cluster_centers_``. None: ``NAME_predict`` writes the features.
        precision : {"float32", "float64"}, default="float32"
        limit : float, default=None
            Largest magnitude of an input; samples beyond are refused. None: a million times the largest in training, or
            less where that could overflow.
        scaler : fitted scaler, default=None
            StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler that scaled the inputs: the device takes them as
            they were before.

        Returns
        -------
        spec : Spec
            Rule "frozen"; ``HostModel(spec)`` computes what the device will.

        Raises
        ------
        UserError
            If a name or number cannot be; if the model is not linear, or learned something else than these features.

        Warns
        -----
        UserWarning
            If weights are so large, for little shrinkage, that float32 is too coarse for what they add up to.
        """
        check_is_fitted(self)
        machine = _frozen_machine(
            self,
            self.subspace_.kernel,
            self.subspace_.vectors,
            self.subspace_.expansion(),
            model,
            scaler,
            self._largest,
        )
        return _exported(machine, name, precision, _plain(limit))

    def _solved(
        self,
        X: np.ndarray,
        kernel: MercerKernel,
        rank: int,
        shrinkage: float,
        iterations: int,
        tolerance: float,
        seed: int,
    ) -> Factors:
        """L in the span of all samples."""
        few = len(X) <= WHOLE
        return bkfe(
            kernel.gram(X, X) if few else gram_operator(kernel, X, keep=0), rank, shrinkage,
            method=cast(Any, self.method), iterations=iterations, tolerance=tolerance, seed=seed,
            trace=None if few else float(kernel.diagonal(X).sum()),
        )  # fmt: skip

    def _chosen_kernel(self, X: np.ndarray) -> MercerKernel:
        params = {key: _plain(getattr(self, key)) for key in ("sigma", *KERNEL_KEYS)}
        given = {k: v for k, v in params.items() if v is not None and not (k == "normalise" and v is False)}
        where = type(self).__name__
        # no input is refused here, so that a kernel of one's own needs no limit
        found, _ = _kernel(given | {"precision": "float64", "input_limit": 1.0}, X, LIMIT, where)
        return _mercer(given.get("kernel"), found, where)

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return cast(np.ndarray, validate_data(self, X, dtype=np.float64, reset=False))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _error(self, sentence: str) -> UserError:
        return UserError(f"{type(self).__name__}: {sentence}")


class _OnlineSubspace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _BudgetedKernelModel):
    """What the online estimators share: parameters, the spec made of them, features, novelty and exports."""

    def __init__(
        self,
        n_components: int = 8,
        *,
        n_max: int = 64,
        kernel: str | MercerKernel | None = None,
        sigma: float | str | None = None,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: int | None = None,
        normalise: bool = False,
        update: str | None = None,
        shrinkage: float | None = None,
        step: str | None = None,
        eta: float | None = None,
        window: int | None = None,
        forgetting: float | None = None,
        budget: str | None = None,
        gate: float | None = None,
        fading: float | None = None,
        insensitivity: float | None = None,
        censoring: float | None = None,
        rate: float | None = None,
        threshold: float | None = None,
        smoothing: float | None = None,
        warmup: int | None = None,
        hold: int | None = None,
        precision: str = "float32",
        n_epochs: int = 1,
        input_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_max = n_max
        self.kernel = kernel
        self.sigma = sigma
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.normalise = normalise
        self.update = update
        self.shrinkage = shrinkage
        self.step = step
        self.eta = eta
        self.window = window
        self.forgetting = forgetting
        self.budget = budget
        self.gate = gate
        self.fading = fading
        self.insensitivity = insensitivity
        self.censoring = censoring
        self.rate = rate
        self.threshold = threshold
        self.smoothing = smoothing
        self.warmup = warmup
        self.hold = hold
        self.precision = precision
        self.n_epochs = n_epochs
        self.input_limit = input_limit

    def transform(self, X: Any) -> np.ndarray:
        """Features of samples, z(x).  O(n_max (n_features + n_components)) each.

        ``z(x)'z(y)`` approximates ``k(x, y)``. Features that the subspace has not got yet are zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        z : ndarray of shape (n_samples, n_components)
            The numbers that the device's ``NAME_features`` writes, in float64; NaN, with a warning, where it would refuse
            the input as beyond ``input_limit``.
        """
        X = self._inputs(X)
        return self._finite(self.model_.ask("features", X)[0])

    def novelty(self, X: Any) -> np.ndarray:
        """How much of each sample is new to the model: the part of it that features leave over.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            ``|phi(x) - L q(x)|^2 / k(x, x)``, from 0 to 1, as the device's ``NAME_novelty`` computes it; NaN, with a
            warning, where it would refuse the input.
        """
        X = self._inputs(X)
        return self._finite(self.model_.novelty(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """How usual each sample is: its novelty with the sign turned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            From -1, new, to 0.
        """
        X = self._inputs(X)
        return -self._finite(self.model_.novelty(X))

    def approximation(self, X: Any) -> Approximation:
        """How well features approximate the kernel on samples, with the bounds.  O(n^2 n_features).

        In float64, of the subspace as it is now.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        report : pykernel.training.bkfe.Approximation
        """
        return self.subspace_.approximation(self._inputs(X))

    def refresh(self) -> Self:
        """Make G, and with ``budget="exact"`` the inverse Gram matrix, anew from the vectors.  O(n_max^3 + n_max^2 n_features).

        Rounding errors go. Never done unasked: it changes the state, and the device must do it at the same sample to keep
        the same bytes.
        """
        return super().refresh()

    @property
    def subspace_(self) -> HostSubspace:
        """L as it is now, in float64: the kernel, the expansion vectors in use and A."""
        check_is_fitted(self)
        vectors, a = self._held()
        return HostSubspace(MercerKernel.of(self.spec_), vectors, a, self._shrinkage)

    @property
    def offset_(self) -> float:
        """The score below which a sample is new: minus the threshold, which follows ``rate``.

        -1, which nothing is below, while the model warms up.
        """
        if not self._watches():
            raise AttributeError(f"{self._where} has no offset_: it was given neither rate nor threshold")
        check_is_fitted(self)
        assert self.spec_.novelty is not None
        if int(self.model_.memory.field("seen")[0]) < self.spec_.novelty.warmup:
            return -1.0
        return -float(self.model_.read("alarm")[0][1])

    def to_spec(self, name: str, scaler: Any = None) -> Spec:
        """The model that goes on learning on the device, under a name for its C symbols.

        ``pykernel.generate(self, out, name=…)`` takes the state along; with a scaler, or in two steps:
        ``pykernel.generate(self.to_spec(name, scaler), out, memory=self.model_.memory)``.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        scaler : fitted scaler, default=None
            StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler that scaled the inputs: the device takes them as
            they were before.

        Returns
        -------
        spec : Spec
            ``to_spec(name).to_toml()`` is the spec as a file.
        """
        check_is_fitted(self)
        content = {**self.spec_.model_dump(exclude_unset=True), "name": name}
        if scaler is not None:
            center, factor, names = _scaling(self, scaler)
            # what the model takes, in the units that come before the scaler
            limit = float((self.spec_.input.limit / np.abs(factor) - np.abs(center)).min())
            if not limit > 0:
                raise UserError(
                    f"{self._where}: input_limit is {self.spec_.input.limit:g}, which the scaler's center alone exceeds; "
                    "learn with a larger one"
                )
            content["input"] = {"dim": self.n_features_in_} if names is None else {"columns": list(names)}
            content["input"] |= {"limit": limit, "center": center.tolist(), "factor": factor.tolist()}
        return make_spec(content, self._where, self.spec_.own)

    def frozen_spec(
        self,
        name: str,
        model: Any = None,
        *,
        precision: str | None = None,
        limit: float | None = None,
        scaler: Any = None,
    ) -> Spec:
        """The features as they are now, or a linear model of them, as a frozen kernel expansion for the device.

        ``z(x) = W' k(v, x)`` with the expansion vectors v in use; weights of z are collapsed into W. It learns nothing, and
        takes ``n (n_features + o)`` numbers of flash for n vectors and o functions, and no state.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        model : fitted linear regressor or classifier, or KMeans, default=None
            One that learned what transform returns: with ``coef_`` and ``intercept_``, such as Ridge or
            LogisticRegression, or with ``cluster_centers_``. None: ``NAME_predict`` writes the features.
        precision : {"float32", "float64"}, default=None
            None: that of the model.
        limit : float, default=None
            Largest magnitude of an input. None: a million times the largest in the expansion vectors, or less where that
            could overflow.
        scaler : fitted scaler, default=None
            StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler that scaled the inputs.

        Returns
        -------
        spec : Spec
            Rule "frozen"; ``HostModel(spec)`` computes what the device will.

        Raises
        ------
        UserError
            If a name or number cannot be; if the model is not linear, or learned something else than these features.

        Warns
        -----
        UserWarning
            If weights are so large, for little shrinkage, that float32 is too coarse for what they add up to.
        """
        check_is_fitted(self)
        machine = self._machine(model, scaler)
        return _exported(machine, name, self.spec_.precision if precision is None else precision, _plain(limit))

    def _machine(self, model: Any = None, scaler: Any = None) -> Machine:
        """The frozen map, or a linear model of it."""
        vectors, a = self._held()
        w = a @ _coefficients(self._gram(), self._shrinkage, PIVOT[self.spec_.precision])
        return _frozen_machine(self, MercerKernel.of(self.spec_), vectors, w, model, scaler)

    @property
    def _shrinkage(self) -> float:
        return float(self.spec_.subspace.shrinkage)

    def _held(self) -> tuple[np.ndarray, np.ndarray]:
        """The expansion vectors in use, (n, DIM), and A, (n, RANK), in float64."""
        memory = self.model_.memory
        n = int(memory.field("n")[0])
        if n == 0:
            raise UserError(f"{self._where}: has no expansion vectors, as every sample was refused; see status_counts_")
        return memory.field("v")[:n].astype(np.float64), memory.field("a")[:n].astype(np.float64)

    def _gram(self) -> np.ndarray:
        """G as the device has it, (RANK, RANK), in float64."""
        packed = self.model_.memory.field("g").astype(np.float64)
        rank = rank_of(self.spec_)
        gram = np.zeros((rank, rank))
        gram[np.tril_indices(rank)] = packed
        return cast(np.ndarray, gram + np.tril(gram, -1).T)

    def _watches(self) -> bool:
        """Whether there are alarms."""
        return any(getattr(self, key) is not None for key in NOVELTY_KEYS)

    def _epochs(self) -> int:
        epochs = _plain(self.n_epochs)
        if type(epochs) is not int or epochs < 1:
            raise UserError(f"{self._where}: n_epochs is {epochs!r}; it must be a whole number from 1")
        return epochs

    def _start(self, X: np.ndarray, label: dict[str, Any], label_names: list[str]) -> None:
        params = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        given = {k: v for k, v in params.items() if v is not None and not (k == "normalise" and v is False)}
        names = getattr(self, "feature_names_in_", None)
        inputs: dict[str, Any] = {"dim": X.shape[1]} if names is None else {"columns": [str(name) for name in names]}
        if label_names and names is not None and not set(label_names) & set(names):
            label |= {"columns": label_names} if label.pop("outputs", None) else {"column": label_names[0]}
        content: dict[str, Any] = {"name": "model", "precision": params["precision"], "input": inputs}
        if label:
            # without a name or a number of them there would be none
            content["label"] = label if label.keys() & {"classes", "column", "columns"} else {"outputs": 1} | label
        limit = LINEAR_LIMIT * (float(np.abs(X).max()) or 1.0)
        content["kernel"], limit = _kernel(given, X, limit, self._where)
        inputs["limit"] = given.get("input_limit", _bounded(limit, content["kernel"], X.shape[1], given))
        content["learning"] = {"rule": "okfeb", "features": params["n_components"]}
        content["learning"] |= {key: given[name] for name, key in HEAD_KEYS.items() if name in given}
        content["reduction"] = {key: given[key] for key in ("n_max", "gate") if key in given}
        if subspace := {key: given[key] for key in SUBSPACE_KEYS if key in given}:
            content["subspace"] = subspace
        if self._watches():
            content["novelty"] = {key: given[key] for key in NOVELTY_KEYS if key in given}
        own = params["kernel"].own if isinstance(params["kernel"], MercerKernel) else None
        self.spec_ = make_spec(content, self._where, own)
        self.model_ = HostModel(self.spec_)
        self.status_counts_ = {status.name: 0 for status in self.spec_.program.status}
        self._last_statuses = np.zeros(0, np.int32)

    def _monitored(self, X: np.ndarray, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Ask, then learn: (novelty, alarms)."""
        novelty, statuses = self.model_.run(X, y, question="novelty")
        status = self.spec_.program.status
        for code, count in zip(*np.unique(statuses, return_counts=True), strict=True):
            self.status_counts_[status(int(code)).name] += int(count)
        self._last_statuses = np.concatenate([self._last_statuses, statuses])[-PATIENCE:]
        if trouble := self._refusal():
            warnings.warn(f"{trouble}; to start afresh call fit, or partial_fit on a clone", stacklevel=3)
        return novelty.astype(np.float64), np.isin(statuses, self.spec_.program.alarms)

    @property
    def _n_features_out(self) -> int:
        return rank_of(self.spec_)


def _watching(estimator: _OnlineSubspace) -> bool:
    if not estimator._watches():
        raise AttributeError(
            f"{type(estimator).__name__} tells what is new only if it is given rate or threshold; score_samples needs neither"
        )
    return True


class OnlineKernelSubspace(OutlierMixin, _OnlineSubspace):
    """Kernel features that follow a stream, in fixed memory, bit for bit as on a microcontroller: OKFEB.

    The subspace ``L = Phi A`` of at most ``n_max`` samples v and ``n_components`` dimensions takes a step with each sample
    towards representing it better; at a full budget the vector goes whose loss changes L least. ``transform`` gives
    features z(x), for which ``z(x)'z(y)`` approximates ``k(x, y)``. What the subspace does not represent of a sample is its
    novelty: with ``rate`` or ``threshold`` the estimator is an outlier detector, whose threshold follows the stream.

    Everything is computed in ``precision`` by the same source that ``pykernel.generate`` prints as C, so a device that
    starts from a fitted estimator continues with the same bytes.

    Parameters
    ----------
    n_components : int, default=8
        r: dimensions of the subspace, and features.
    n_max : int, default=64
        B: expansion vectors at most.
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear"} or pykernel.bases.gram.MercerKernel, \
default="gaussian"
        ``exp(-gamma |a - b|^2)``, ``exp(-gamma |a - b|_1)``, ``(1 + r) exp(-r)`` and ``(1 + r + r^2 / 3) exp(-r)`` with
        ``r = gamma |a - b|``, ``(gamma a'b + coef0)^degree``, ``a'b``. A MercerKernel is taken as it is; it may be a kernel
        of your own, which takes ``input_limit``.
    sigma : float or "scale", default="scale"
        Width of the Gaussian kernel. "scale" takes ``sigma^2 = n_features * v / 2``, with v the mean over features of
        their variance in the data of ``fit`` or of the first ``partial_fit``.
    gamma : float or "scale", default="scale"
        The kernel's gamma; for "gaussian" in place of ``sigma``: ``1 / (2 sigma^2)``. "scale" derives it from the
        ``sigma`` that "scale" would give.
    coef0 : float, default=0.0
        "polynomial": what is added to ``gamma a'b``; not below 0.
    degree : int, default=3
        "polynomial": the exponent.
    normalise : bool, default=False
        "polynomial", "linear": whether ``k(a, b)`` is divided by ``sqrt(k(a, a) k(b, b))``.
    update : {"parametric", "nonparametric", "hybrid", "rls"}, default="parametric"
        The step. "parametric": a gradient step of L (Algorithm 2). "nonparametric": of A (Algorithm 3). "hybrid": that,
        with the ridge of the other. "rls": recursive least squares.
    shrinkage : float, default=0.1
        lambda: weight of ``|L|^2`` and ``|q|^2``.
    step : {"constant", "normalised", "decreasing", "averaged"}, default=None
        How long steps are, see docs/spec.md; None: the default of ``update``. "decreasing" converges; the others follow
        a stream that changes. Not for "rls".
    eta : float, default=None
        The step's factor. None: the default of ``step``.
    window : int, default=1000
        Samples that ``shrinkage`` is spread over; 0: all so far.
    forgetting : float, default=1.0
        "rls": what a sample's weight is multiplied by at each later one.
    budget : {"exact", "drop"}, default="exact"
        What becomes of a vector that goes: "exact" projects it on the others, which takes an ``n_max`` x ``n_max`` inverse;
        "drop" forgets it, and is refused with ``update="rls"``, which hardly learns then.
    gate : float, default=None
        "exact": samples of which less than this part is new to the expansion vectors are not stored. None: 3e-2 for
        float32, 1e-6 for float64.
    fading : float, default=1.0
        beta: what a vector's claim to stay is multiplied by at each later sample; below 1 the model follows a change.
    insensitivity : float, default=0.0
        epsilon: samples of less novelty than this teach nothing.
    censoring : float, default=0.0
        In its place: the part of samples that are to teach nothing, once the budget is full.
    rate : float, default=None
        Alarms for each sample of normal operation: the threshold of novelty follows it. None: there are no alarms; 0.01 if
        ``smoothing``, ``warmup`` or ``hold`` is given.
    threshold : float, default=None
        In its place, a fixed threshold.
    smoothing : float, default=1.0
        The level that ``monitor`` and the device compare is ``(1 - smoothing) level + smoothing novelty``.
    warmup : int, default=500
        Samples before there are alarms.
    hold : int, default=0
        Most samples in a row that are kept from being learned as they are new; then they are the new normal.
    precision : {"float32", "float64"}, default="float32"
        Number format of the model, on the host and on the device.
    n_epochs : int, default=1
        Passes that ``fit`` makes over the data, in order.
    input_limit : float, default=None
        Largest magnitude of an input; samples beyond are refused. None: ``1e6 * sigma`` (or ``/ gamma``), or with neither,
        and for dot products as far as they do not overflow, ``1e3 * |x|``, for the largest input of ``fit`` or of the
        first ``partial_fit``.

    Attributes
    ----------
    spec_ : Spec
        The model's parameters with everything derived: what the code generator takes.
    model_ : HostModel
        The learned state, ``model_.memory``, and the functions that work on it.
    subspace_ : pykernel.training.bkfe.HostSubspace
        The subspace as it is now, in float64.
    offset_ : float
        Minus the threshold as it is now; with ``rate`` or ``threshold``.
    status_counts_ : dict of str to int
        What became of each update since the start, by the name of the status: ADDED, REPLACED, DONE (not stored), CENSORED,
        NOVEL, HELD, REFUSED_INPUT.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any; they become the spec's columns.

    See Also
    --------
    KernelSubspace : All samples at once.
    OnlineSubspaceRegressor, OnlineSubspaceClassifier : With a head that learns labels on the features.
    sklearn.decomposition.IncrementalPCA : Without a kernel.
    sklearn.linear_model.SGDOneClassSVM : Another outlier detector that learns online.

    Notes
    -----
    Parameters whose default is None, or a number of the spec, mean what docs/spec.md says; alarms are there if ``rate``,
    ``threshold`` or another key of [novelty] is given. Parameters are read when learning starts, by ``fit`` or the first
    ``partial_fit``. Nothing is shuffled: the order of samples is the order of learning.

    The subspace turns as it learns, so that features before and after a ``partial_fit`` are different ones: what was
    learned on them goes with the state that they were computed with.

    An update costs O(n_max^2 + n_max (n_features + n_components) + n_components^3), with ``budget="drop"`` without the
    first.

    References
    ----------
    Sheikholeslami, F., Berberidis, D. and Giannakis, G. B. (2016). Large-scale kernel-based feature extraction via budgeted
    nonlinear subspace tracking. Algorithms 2 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from pykernel import OnlineKernelSubspace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)) + 8 * rng.integers(0, 2, (2000, 1))
    >>> model = OnlineKernelSubspace(4, n_max=32).partial_fit(X[:1000]).partial_fit(X[1000:])
    >>> z = model.transform(X)
    >>> z.shape
    (2000, 4)
    >>> clusters = KMeans(2, n_init=3, random_state=0).fit(z)
    >>> bool(abs(np.corrcoef(clusters.labels_, X[:, 0] > 4)[0, 1]) > 0.99)
    True

    What the device will compute, still learning, and frozen, with the clusters:

    >>> model.to_spec("regimes").learning.rule
    'okfeb'
    >>> model.frozen_spec("regimes", clusters).label.classes
    ('0', '1')

    As an outlier detector:

    >>> model = OnlineKernelSubspace(4, n_max=32, rate=0.01).fit(X)
    >>> model.predict([[0.0, 0.0, 0.0], [8.0, 8.0, 8.0], [30.0, 0.0, 0.0]])
    array([ 1,  1, -1])
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not self._watches():
            tags.estimator_type = None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn the samples in order, ``n_epochs`` times.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : ignored

        Returns
        -------
        self : OnlineKernelSubspace

        Raises
        ------
        UserError
            If a parameter cannot be, or means nothing beside the others.
        ValueError
            If the data are not finite numbers of the right shape, or ``sigma="scale"`` finds no variance.
        """
        epochs = self._epochs()
        X = validate_data(self, X, dtype=np.float64)
        self._start(X, {}, [])
        self._learn(X, cast(Any, None), epochs)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn the samples in order, once, from where the model is.

        The first call decides what is derived from data: ``sigma="scale"`` and the limit. Calls with parts of a stream are
        one call with the whole of it, to the byte.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : ignored

        Returns
        -------
        self : OnlineKernelSubspace
        """
        first = not hasattr(self, "model_")
        X = validate_data(self, X, dtype=np.float64, reset=first)
        if first:
            self._start(X, {}, [])
        self._learn(X, cast(Any, None))
        return self

    def monitor(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the device tells of a stream as it learns it: each sample's novelty, then the sample is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in the order in which they come.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Before the sample was learned; NaN where it is refused.
        alarms : ndarray of shape (n_samples,) of bool
            Whether the level, smoothed novelty, was above the threshold; never without ``rate`` or ``threshold``.
        """
        return self._monitored(self._inputs(X), None)

    @available_if(_watching)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """How far each sample's novelty is below the threshold as it is now.

        Each sample for itself: without smoothing, and nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``; below 0 for what is new.
        """
        X = self._inputs(X)
        return -self._finite(self.model_.novelty(X)) - self.offset_

    @available_if(_watching)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> np.ndarray:
        """Whether each sample is known (1) or new (-1), by the threshold as it is now.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 or -1. What the device would refuse as beyond ``input_limit`` is -1.
        """
        X = self._inputs(X)
        with np.errstate(invalid="ignore"):
            known = -self.model_.novelty(X).astype(np.float64) >= self.offset_
        return np.where(known, 1, -1)

    @available_if(_watching)  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """``fit(X).predict(X)``: known (1) or new (-1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : ignored

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return cast(np.ndarray, self.fit(X).predict(X))


class OnlineSubspaceRegressor(_OnlineSubspace, BudgetedKernelRegressor):
    """Linear regression on kernel features that follow a stream, in fixed memory, bit for bit as on a microcontroller.

    Features z(x) are those of `OnlineKernelSubspace`; recursive least squares with an intercept learns labels on them, each
    before the subspace moves. The memory is that of the features and ``(n_components + 1)^2 / 2`` numbers more.

    Parameters
    ----------
    n_components : int, default=16
        Features: they are chosen by the inputs alone, and a head needs more of them than a monitor.
    n_max, kernel, sigma, gamma, coef0, degree, normalise, update, shrinkage, step, eta, window, forgetting, \
budget, gate, fading, insensitivity, censoring, rate, threshold, smoothing, warmup, hold, precision, n_epochs, input_limit
        As of `OnlineKernelSubspace`. ``rate`` and what follows it are of ``monitor``.
    ridge : float, default=0.1
        Weight of the squared coefficients.
    head_forgetting : float, default=1.0
        What a label's weight is multiplied by at each later one, in (0.5, 1].
    label_limit : float, default=None
        Largest magnitude of a label; samples beyond are refused. None: ``1e6 * max(1, |y|)``, over the labels of
        ``fit`` or of the first ``partial_fit``.

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
    What labels need, but inputs hardly vary in, is in none of few features; a `BudgetedKernelRegressor`, which is taught by
    its errors, finds it.

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

    def __init__(
        self,
        n_components: int = 16,
        *,
        n_max: int = 64,
        kernel: str | MercerKernel | None = None,
        sigma: float | str | None = None,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: int | None = None,
        normalise: bool = False,
        update: str | None = None,
        shrinkage: float | None = None,
        step: str | None = None,
        eta: float | None = None,
        window: int | None = None,
        forgetting: float | None = None,
        budget: str | None = None,
        gate: float | None = None,
        fading: float | None = None,
        insensitivity: float | None = None,
        censoring: float | None = None,
        ridge: float | None = None,
        head_forgetting: float | None = None,
        rate: float | None = None,
        threshold: float | None = None,
        smoothing: float | None = None,
        warmup: int | None = None,
        hold: int | None = None,
        precision: str = "float32",
        n_epochs: int = 1,
        input_limit: float | None = None,
        label_limit: float | None = None,
    ) -> None:
        _OnlineSubspace.__init__(
            self, n_components, n_max=n_max, kernel=kernel, sigma=sigma, gamma=gamma, coef0=coef0, degree=degree,
            normalise=normalise, update=update, shrinkage=shrinkage, step=step, eta=eta, window=window,
            forgetting=forgetting, budget=budget, gate=gate, fading=fading, insensitivity=insensitivity,
            censoring=censoring, rate=rate, threshold=threshold, smoothing=smoothing, warmup=warmup, hold=hold,
            precision=precision, n_epochs=n_epochs, input_limit=input_limit,
        )  # fmt: skip
        self.ridge = ridge
        self.head_forgetting = head_forgetting
        self.label_limit = label_limit

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
            beyond ``input_limit``.
        """
        X = self._inputs(X)
        return self._finite(self.model_.predict(X)).reshape(self._shape(len(X)))

    def monitor(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the device tells of a stream as it learns it: each sample's novelty, then the sample is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in the order in which they come.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Before the sample was learned; NaN where it is refused.
        alarms : ndarray of shape (n_samples,) of bool
            Whether the level, smoothed novelty, was above the threshold; never without ``rate`` or ``threshold``.
        """
        check_is_fitted(self)
        X, y = self._validated(X, y, reset=False)
        return self._monitored(X, self._labels(y))


def _logistic(estimator: OnlineSubspaceClassifier) -> bool:
    if estimator.head != "logistic":
        raise AttributeError(f"{type(estimator).__name__} gives probabilities only with head='logistic'")
    return True


class OnlineSubspaceClassifier(_OnlineSubspace, BudgetedKernelClassifier):
    """Linear classification on kernel features that follow a stream, in fixed memory, bit for bit as on a microcontroller.

    Features z(x) are those of `OnlineKernelSubspace`; a linear classifier with an intercept learns on them, each sample
    before the subspace moves.

    Parameters
    ----------
    n_components : int, default=16
        Features: they are chosen by the inputs alone, and a head needs more of them than a monitor.
    n_max, kernel, sigma, gamma, coef0, degree, normalise, update, shrinkage, step, eta, window, forgetting, \
budget, gate, fading, insensitivity, censoring, rate, threshold, smoothing, warmup, hold, precision, n_epochs, input_limit
        As of `OnlineKernelSubspace`. ``rate`` and what follows it are of ``monitor``.
    head : {"ridge", "logistic"}, default="ridge"
        "ridge": recursive least squares of -1 and 1, one function for each class, or one for two. "logistic": a gradient
        step of the logistic loss (more than two classes: softmax), which knows probabilities and learns more slowly.
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
    >>> OnlineSubspaceClassifier(head="logistic").fit(X, y).predict_proba(X[:2]).sum(axis=1).round(5)
    array([1., 1.])
    """

    def __init__(
        self,
        n_components: int = 16,
        *,
        n_max: int = 64,
        kernel: str | MercerKernel | None = None,
        sigma: float | str | None = None,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: int | None = None,
        normalise: bool = False,
        update: str | None = None,
        shrinkage: float | None = None,
        step: str | None = None,
        eta: float | None = None,
        window: int | None = None,
        forgetting: float | None = None,
        budget: str | None = None,
        gate: float | None = None,
        fading: float | None = None,
        insensitivity: float | None = None,
        censoring: float | None = None,
        head: str | None = None,
        ridge: float | None = None,
        head_forgetting: float | None = None,
        head_eta: float | None = None,
        rate: float | None = None,
        threshold: float | None = None,
        smoothing: float | None = None,
        warmup: int | None = None,
        hold: int | None = None,
        precision: str = "float32",
        n_epochs: int = 1,
        input_limit: float | None = None,
    ) -> None:
        _OnlineSubspace.__init__(
            self, n_components, n_max=n_max, kernel=kernel, sigma=sigma, gamma=gamma, coef0=coef0, degree=degree,
            normalise=normalise, update=update, shrinkage=shrinkage, step=step, eta=eta, window=window,
            forgetting=forgetting, budget=budget, gate=gate, fading=fading, insensitivity=insensitivity,
            censoring=censoring, rate=rate, threshold=threshold, smoothing=smoothing, warmup=warmup, hold=hold,
            precision=precision, n_epochs=n_epochs, input_limit=input_limit,
        )  # fmt: skip
        self.head = head
        self.ridge = ridge
        self.head_forgetting = head_forgetting
        self.head_eta = head_eta

    @available_if(_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of classes; with ``head="logistic"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            The numbers that the device's ``NAME_probability`` writes, in float64; NaN, with a warning, where it would
            refuse the input as beyond ``input_limit``.
        """
        X = self._inputs(X)
        return self._finite(self.model_.probability(X))

    def monitor(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the device tells of a stream as it learns it: each sample's novelty, then the sample is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in the order in which they come.
        y : array-like of shape (n_samples,)
            Classes.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Before the sample was learned; NaN where it is refused.
        alarms : ndarray of shape (n_samples,) of bool
            Whether the level, smoothed novelty, was above the threshold; never without ``rate`` or ``threshold``.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        return self._monitored(X, self._positions(y))


# ---------------------------------------------------------------------------------------------------------- exports


def _mercer(given: Any, section: dict[str, Any], where: str) -> MercerKernel:
    """The kernel of a spec's section, on the host."""
    if isinstance(given, MercerKernel):
        kernel = given
    else:
        found = {"function": "gaussian", **section}
        if (sigma := found.pop("sigma", None)) is not None:
            found["gamma"] = 0.5 / sigma / sigma
        for key, (of, least) in {"gamma": ("", 0.0), "coef0": ("polynomial", 0.0)}.items():
            value = found.get(key)
            if value is not None and (type(value) not in (int, float) or not least <= value < np.inf):
                raise UserError(
                    f"{where}: {key} is {value!r}; it must be a number{' above 0' if not of else ' from 0'}"
                )
        if found["function"] == "polynomial":
            found = {"coef0": 0.0, "degree": 3} | found
        elif strange := [key for key in ("coef0", "degree") if key in found]:
            raise UserError(f"{where}: {strange[0]} is of polynomial kernels; {found['function']} does not have it")
        if found["function"] == "linear" and "gamma" in found:
            raise UserError(f"{where}: gamma is given, which the linear kernel does not have; leave it out")
        if found["function"] != "gaussian" and "sigma" in section:
            raise UserError(f"{where}: sigma is given; it is of the gaussian kernel, in place of gamma")
        try:
            kernel = MercerKernel(**found)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    if kernel.function == "sigmoid":
        raise UserError(f"{where}: the sigmoid kernel is not positive definite; a subspace must have one that is")
    return kernel


def _bounded(limit: float, section: dict[str, Any], dim: int, given: dict[str, Any]) -> float:
    """An input limit with which k(x, x) of a dot product, and |q|^2 with it, stays far from overflow."""
    if section.get("function") not in ("polynomial", "linear") or section.get("normalise"):
        return limit
    gamma, degree = section.get("gamma", 1.0), section.get("degree", 3 if section["function"] == "polynomial" else 1)
    shrinkage, coef0 = given.get("shrinkage", 0.1), section.get("coef0", 0.0)
    numbers = all(type(value) in (int, float) for value in (gamma, degree, shrinkage, coef0))
    if not numbers or min(gamma, shrinkage, degree) <= 0:  # which the spec refuses
        return limit
    # sums of |q|^2 <= k / (4 lambda), up to where rounding stops them, times k
    precision = given["precision"]
    most = math.sqrt(largest(precision) * shrinkage * (2.0**-26 if precision == "float32" else 2.0**-60))
    product = most ** (1 / degree) - coef0
    return min(limit, math.sqrt(max(product, 1.0) / dim / gamma))


def _coefficients(gram: np.ndarray, shrinkage: float, least: float) -> np.ndarray:
    """(G + lambda I)^-1 R' with R'R = G, (r, r): z = R q of v is v' times it.

    R is upper triangular; where a pivot is below ``least`` of G's diagonal, its row is zero, as on the device.
    """
    rank = len(gram)
    root = np.zeros((rank, rank))
    for i in range(rank):
        rest = gram[i] - root[:i, i] @ root[:i]
        if rest[i] > least * gram[i, i]:
            root[i, i:] = rest[i:] / np.sqrt(rest[i])
    return np.linalg.solve(gram + shrinkage * np.eye(rank), root.T)


def _scaling(estimator: Any, scaler: Any) -> tuple[np.ndarray, np.ndarray, tuple[str, ...] | None]:
    """Center and factor of a fitted scaler, and the names of its inputs."""
    where = type(estimator).__name__
    if not hasattr(scaler, "fit"):
        raise UserError(
            f"{where}: scaler is a {type(scaler).__name__}; it must be a fitted scaler, such as StandardScaler"
        )
    check_is_fitted(scaler)
    center, factor = _scaler_affine(scaler, f"{where}: scaler")
    if len(center) != estimator.n_features_in_:
        raise UserError(f"{where}: scaler has {len(center)} inputs, and the features have {estimator.n_features_in_}")
    return center, factor, _columns(getattr(scaler, "feature_names_in_", None))


def _exported(machine: Machine, name: str, precision: str, limit: float | None) -> Spec:
    """The frozen spec of what it computes; a warning where the precision is too coarse for its weights."""
    spec = spec_of(machine, name, precision, limit)
    for note in notes(machine, spec):
        warnings.warn(note, stacklevel=3)
    return spec


def _frozen_machine(
    estimator: Any,
    kernel: MercerKernel,
    vectors: np.ndarray,
    w: np.ndarray,
    model: Any,
    scaler: Any,
    reach: float | None = None,
) -> Machine:
    """z(x) = W' k(vectors, x), or a linear model of z; w: (n, r)."""
    where = type(estimator).__name__
    center = factor = None
    columns = _columns(getattr(estimator, "feature_names_in_", None))
    if scaler is not None:
        center, factor, columns = _scaling(estimator, scaler)
    weights, bias, found = np.eye(w.shape[1]), np.zeros(w.shape[1]), cast(dict[str, Any], {})
    if model is not None:
        try:
            weights, bias = _affine(model, w.shape[1])
        except UserError as error:
            raise UserError(f"{where}: model: {error}") from None
        found["classes"] = _classes(model)
        if type(model[-1] if hasattr(model, "steps") else model) is LogisticRegression and len(model.classes_) == 2:
            found["calibration"] = np.array([[-1.0, 0.0]])
    if reach is not None and factor is not None and center is not None:
        reach = float((reach / np.abs(factor) + np.abs(center)).max())
    machine = Machine(
        where, kernel.function, vectors, w @ weights, bias, kernel.gamma, kernel.coef0, kernel.degree, center=center,
        factor=factor, columns=columns, largest=reach, normalise=kernel.normalise, own=kernel.own, most=kernel.most,
        **found,
    )  # fmt: skip
    return checked(machine, where)
