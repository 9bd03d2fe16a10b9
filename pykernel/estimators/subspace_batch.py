"""Kernel features of samples from the subspace that represents all of them best: the whole problem in one step, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from sklearn.base import (  # type: ignore[import-untyped]
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.utils.multiclass import type_of_target  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.estimators.base import KERNEL, KernelEstimator, ToFrozen, kernel_section, warn
from pykernel.estimators.parameters import (
    LEFT_OUT,
    NOT_NEGATIVE,
    POSITIVE,
    Parameter,
    number,
    one_of,
    plain,
    whole,
)
from pykernel.spec.model import Spec
from pykernel.training.bkfe import Factors, above_rounding, bkfe
from pykernel.training.low_rank import gram_operator
from pykernel.training.rank import LEAST, choose_rank
from pykernel.training.rounding import notes
from pykernel.training.subspace import WHOLE, Approximation, HostSubspace, affine_of_model, classes_of_model
from pykernel.training.trained import Machine, checked, to_spec

BATCH = {
    "n_components": Parameter(kind=int | None, must=whole(1) | LEFT_OUT),
    **KERNEL,
    "coef0": Parameter("kernel", kind=float | None, must=NOT_NEGATIVE | LEFT_OUT),
    "shrinkage": Parameter(default=0.1, kind=float, must=POSITIVE),
    "n_max": Parameter(kind=int | None, must=whole(1) | LEFT_OUT),
    "method": Parameter(default="closed", kind=str, must=one_of("closed", "alternating")),
    "max_iter": Parameter(default=200, kind=int, must=whole(1)),
    "tol": Parameter(default=1e-10, kind=float, must=number("number from 0 to less than 1", lambda v: 0 <= v < 1)),
    "random_state": Parameter(default=0),
}
"""Parameters of the batch estimator."""


PIVOT = {"float32": 2.0**-16, "float64": 2.0**-40}
"""A pivot of G below this fraction of its diagonal element makes a feature zero, as on the device."""


class KernelSubspace(ToFrozen, ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Kernel features of samples from the subspace that represents all of them best: batch BKFE.

    Samples ``phi(x)`` in the kernel's feature space are approximated by ``L q(x)`` with few features q, so that
    ``1/2 sum |phi(x_n) - L q_n|^2 + shrinkage/2 (|L|^2 + sum |q_n|^2)`` is least. ``L = Phi A`` is spanned by samples.
    ``transform`` gives ``z(x) = G^(1/2) q(x)`` with ``G = L'L``, for which ``z(x)'z(y)`` approximates ``k(x, y)``: so
    a linear model of z is nearly a kernel model. The directions are those of kernel PCA without centring, but each
    singular value is reduced by ``shrinkage``. The features with the largest singular values come first.

    Parameters
    ----------
    n_components : int, default=None
        Largest number of features. There are fewer if fewer singular values exceed ``shrinkage``. None: at most 64; a
        quarter of the samples judges how many, by the error of a linear model of y on the features, or without y by what
        the features leave out (``pykernel.training.rank.choose_rank``).
    kernel : {"gaussian", "laplacian", "matern12", "matern32", "matern52", "polynomial", "linear"} or MercerKernel, default="gaussian"
        ``exp(-gamma |a - b|^2)``, ``exp(-gamma |a - b|_1)``, ``(1 + r) exp(-r)`` and ``(1 + r + r^2 / 3) exp(-r)`` with
        ``r = gamma |a - b|``, ``(gamma a'b + coef0)^degree``, ``a'b``. A MercerKernel has its own parameters; it may
        be custom.
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
        lambda: the number that is subtracted from each singular value of the samples in feature space. Directions with
        smaller singular values vanish. Singular values grow with the root of the number of samples.
    n_max : int, default=None
        Largest number of expansion vectors. The samples are then projected on the span of these vectors, which are
        chosen by ``pykernel.bases.select.select_basis``; memory and time grow as ``n_samples n_max``. None: all
        samples.
    method : {"closed", "alternating"}, default="closed"
        How the minimum is found. "closed": by eigenvalues. "alternating": by the paper's Algorithm 1, with ridge
        regressions for q and L in turn.
    max_iter : int, default=200
        "alternating": largest number of turns.
    tol : float, default=1e-10
        "alternating": stop when the relative decrease of the objective is below this.
    random_state : int, RandomState or None, default=0
        Seed of the random start of "alternating", and of the random choice of vectors with ``n_max``.

    Attributes
    ----------
    subspace_ : pykernel.training.subspace.HostSubspace
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
    Sheikholeslami, F., Berberidis, D. and Giannakis, G. B. (2016). Large-scale kernel-based feature extraction via
    budgeted nonlinear subspace tracking. Algorithm 1.

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

    _family = BATCH

    subspace_: HostSubspace
    vectors_: np.ndarray
    singular_values_: np.ndarray
    objective_: np.ndarray
    n_components_: int
    n_iter_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the subspace of the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels, by which ``n_components=None`` is chosen; otherwise ignored.

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
        given = self._given()
        X = validate_data(self, X, dtype=np.float64)
        rank, shrinkage, n_max = given["n_components"], float(given["shrinkage"]), given["n_max"]
        kernel, seed = self._chosen_kernel(X, given), self._seed()
        with self._named():
            if rank is None:
                rank = given["n_components"] = self._chosen_rank(X, y, kernel, given, seed)
            if n_max is None:
                factors = self._solved(X, kernel, given, seed)
                found = HostSubspace(kernel, X, factors.a, shrinkage)
                self.objective_ = factors.objective
            else:
                found = HostSubspace.fit(X, kernel, rank, shrinkage, method=given["method"], basis=n_max, seed=seed)
                # the objective of the best L in this span: 1/2 tr K - 1/2 |G|^2
                self.objective_ = np.array([0.5 * (kernel.diagonal(X).sum() - np.square(found.eigenvalues).sum())])
        values, turn = np.linalg.eigh(found.gram)
        kept = np.flatnonzero(above_rounding(values))[::-1]
        self._where.need(
            len(kept),
            f"shrinkage is {shrinkage:g}, and no singular value of the {len(X)} samples in feature space exceeds it; it must be "
            "lower",
        )
        # coordinates in which G is diagonal: so features are sorted by size, for each method
        a = found.a @ turn[:, kept]
        heaviest = a[np.abs(a).argmax(axis=0), np.arange(len(kept))]
        self.subspace_ = HostSubspace(kernel, found.vectors, a * np.where(heaviest < 0, -1.0, 1.0), shrinkage)
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
        X = self._inputs(X)
        return self.subspace_.features(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """How usual each sample is: minus the part of its squared length that the features leave out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            ``-|phi(x) - L q(x)|^2 / k(x, x)``, from -1 (nothing of it is known) to 0.
        """
        X = self._inputs(X)
        return -self.subspace_.score(X)

    def approximation(self, X: Any) -> Approximation:
        """How well ``z(x)'z(y)`` approximates the kernel on samples, with the bounds.  O(n^2 n_features).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        report : pykernel.training.subspace.Approximation
        """
        X = self._inputs(X)
        return self.subspace_.approximation(X)

    def to_spec(
        self,
        name: str,
        model: Any = None,
        *,
        precision: str = "float32",
        max_abs: float | None = None,
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
        max_abs : float, default=None
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
        machine = frozen_machine(
            self,
            self.subspace_.kernel,
            self.subspace_.vectors,
            self.subspace_.expansion(),
            model,
            scaler,
            self._largest,
        )
        return exported(machine, name, precision, plain(max_abs))

    def _solved(self, X: np.ndarray, kernel: MercerKernel, given: Mapping[str, Any], seed: int) -> Factors:
        """L in the span of all samples."""
        few = len(X) <= WHOLE
        return bkfe(
            kernel.gram(X, X) if few else gram_operator(kernel, X, keep=0), given["n_components"], given["shrinkage"],
            method=given["method"], iterations=given["max_iter"], tolerance=given["tol"], seed=seed,
            trace=None if few else float(kernel.diagonal(X).sum()),
        )  # fmt: skip

    def _chosen_rank(self, X: np.ndarray, y: Any, kernel: MercerKernel, given: Mapping[str, Any], seed: int) -> int:
        """By labels, if there are any; few samples have as many features as they give."""
        if len(X) < LEAST:
            return len(X)
        kind = "" if y is None else type_of_target(y)
        labels = y if kind.startswith(("continuous", "multiclass", "binary")) else None
        return choose_rank(
            X, kernel, labels, classes=kind in ("binary", "multiclass"), shrinkage=float(given["shrinkage"]),
            basis=given["n_max"], seed=seed,
        ).rank  # fmt: skip

    def _chosen_kernel(self, X: np.ndarray, given: Mapping[str, Any]) -> MercerKernel:
        if isinstance(given["kernel"], MercerKernel):
            self._alone(*(name for name in KERNEL if name != "kernel"))
            return self._definite(given["kernel"])
        return self._mercer(kernel_section(given, X))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def exported(machine: Machine, name: str, precision: str, max_abs: float | None) -> Spec:
    """The frozen spec of a machine.  Gives a warning if the precision is too coarse for the machine's weights."""
    spec = to_spec(machine, name, precision, max_abs)
    for note in notes(machine, spec):
        warn(note)
    return spec


def frozen_machine(
    estimator: KernelEstimator,
    kernel: MercerKernel,
    vectors: np.ndarray,
    w: np.ndarray,
    model: Any,
    scaler: Any,
    reach: float | None = None,
) -> Machine:
    """z(x) = W' k(vectors, x), or a linear model of z; w: (n, r)."""
    where = estimator._where
    center, scale, columns = (None, None, estimator._columns) if scaler is None else estimator._scaling(scaler)
    weights, bias, found = np.eye(w.shape[1]), np.zeros(w.shape[1]), cast(dict[str, Any], {})
    if model is not None:
        try:
            weights, bias = affine_of_model(model, w.shape[1])
        except UserError as error:
            raise estimator._where.error(f"model: {error}") from None
        found["classes"] = classes_of_model(model)
        if type(model[-1] if hasattr(model, "steps") else model) is LogisticRegression and len(model.classes_) == 2:
            found["calibration"] = np.array([[-1.0, 0.0]])
    if reach is not None and scale is not None and center is not None:
        reach = float((reach / np.abs(scale) + np.abs(center)).max())
    machine = Machine(
        where, kernel.function, vectors, w @ weights, bias, kernel.gamma, kernel.coef0, kernel.degree, center=center,
        scale=scale, columns=columns, largest=reach, normalise=kernel.normalise, custom=kernel.custom, max_value=kernel.max_value,
        **found,
    )  # fmt: skip
    return checked(machine, where)


def coefficients(gram: np.ndarray, shrinkage: float, least: float) -> np.ndarray:
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
