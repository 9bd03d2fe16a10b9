"""Support vector machines on a greedy basis, and linear programming machines, as scikit-learn estimators.

The estimators train on the host in float64: support vector machines by an interior-point method with a low-rank Gram matrix,
linear programming machines by HiGHS.  ``to_spec`` returns the spec of a frozen model, which computes
``k(x, vectors) alpha + bias``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.estimators.base import warn
from pykernel.estimators.functions import ClassifiesByFunctions, RegressesByFunctions
from pykernel.estimators.kernel_machine import ATTRIBUTES as OF_MACHINES
from pykernel.estimators.kernel_machine import PARAMETERS as OF_FAMILY
from pykernel.estimators.kernel_machine import KernelMachine, _candidates
from pykernel.estimators.parameters import FOLDS, NOT_NEGATIVE, POSITIVE, Must, Parameter, one_of, plain
from pykernel.parallel import one_thread
from pykernel.progress import working
from pykernel.spec.kernel_settings import INDEFINITE
from pykernel.training import lp, reduced, svm
from pykernel.training.calibration import fit_calibration
from pykernel.training.coding import Targets, error_rate, press
from pykernel.training.selection import GroupFolds, default_widths, stratified_folds

MOST = 1024
"""Maximum number of vectors if ``basis`` is None."""
COMPARED = 2000
"""Widths and C are compared on at most this many samples."""
COMPARED_L1 = 1000
"""The same limit for linear programming machines.  It is lower, because HiGHS's time grows faster than the number of samples."""
ROUGH_PRICE = 1.0
"""Smallest tolerance in the cross-validation of a linear programming machine; it replaces a smaller ``tol``.  Each fold's
training starts with the vectors of the training on all samples, and adds vectors until no price (defined in
``pykernel.training.lp``) is above 1 plus the tolerance."""
ROUGHLY = 64
"""Maximum number of vectors in the greedy bases with which widths and C are compared."""

PARAMETERS = {
    **{name: OF_FAMILY[name] for name in ("kernel", "sigma", "gamma", "coef0", "degree")},
    "C": Parameter(
        default=1.0,
        kind=float,
        must=Must(
            "a number above 0, or a sequence of such numbers", lambda v: v is not None and _candidates(v) is not None
        ),
        text="""float or sequence of floats
        Weight of a sample's loss relative to the penalty. A sequence: cross-validation chooses one of its values.""",
    ),
    "penalty": Parameter(
        default="l2",
        kind=str,
        must=one_of("l1", "l2"),
        text="""{"l1", "l2"}
        "l2": ``1/2 |f|^2``, a support vector machine. "l1": ``sum of |alpha|``, a linear programming machine, most of whose
        weights are 0.""",
    ),
    "epsilon": Parameter(
        default=0.1,
        kind=float,
        must=NOT_NEGATIVE,
        text="""float
        Half the width of the tube, in the labels' unit: errors up to this size cost nothing.""",
    ),
    "basis": Parameter(
        text="""int, sequence of ints, array of shape (n_vectors, n_features) or pykernel.bases.basis.Basis
        A number: the largest number of expansion vectors. The basis starts with 64 vectors and doubles until ``tol`` is
        met. None: at most 1,024. With ``penalty="l1"``, the limit applies to vectors with a nonzero weight: while there
        are too many, up to half of them are removed at a time, beginning with those that contribute least, and the
        remaining vectors get new weights. Instead of a number, the vectors may be given: positions of training samples,
        an array of arbitrary vectors, or a Basis, whose kernel is used.""",
    ),
    "basis_params": OF_FAMILY["basis_params"],
    "tol": Parameter(
        default=0.1,
        kind=float,
        must=POSITIVE,
        text="""float
        Largest allowed residual of the KKT conditions of a machine that has all samples as vectors. With many samples, the
        residual is measured on 2,000 of them, drawn at random. For classes, its unit is the margin, as for LIBSVM's
        ``tol``. For numbers, its unit is the label's standard deviation, or epsilon if epsilon is larger.
        With ``penalty="l1"``: the largest fraction by which the gain from one more vector may exceed the cost of its weight.""",
    ),
    "cv": Parameter(
        default=5,
        must=FOLDS,
        text="""int, splitter or list of splits
        Number of folds, stratified for classes. A splitter of scikit-learn, or a list of pairs (train, test): its test sets are
        the folds, and each sample must be in exactly one of them. The folds are used for ``cv_error_``, for the probabilities, and to
        choose widths and ``C``, which are compared on at most 2,000 samples (with ``penalty="l1"``, 1,000).""",
    ),
    **{name: OF_FAMILY[name] for name in ("progress", "precision", "random_state")},
}
PARAMETERS["progress"] = Parameter(
    default=False,
    kind=bool,
    text="""bool or callable
    True: show on a terminal that training is running. A function: it is called with the completed fraction of the current
    stage, from 0 to 1, and a description of this stage.""",
)

ATTRIBUTES = {
    **{name: OF_MACHINES[name] for name in ("classes_", "basis_", "alpha_", "bias_", "kernel_")},
    "C_": """float
        The weight of a sample's loss.""",
    "support_": """ndarray of shape (n_support,)
        Positions of the support vectors, which are the samples with a nonzero coefficient in ``dual_coef_``.""",
    "dual_coef_": """ndarray of shape (n_samples, n_functions)
        Dual coefficients of the samples. The magnitude of each is at most C times that sample's ``sample_weight``. These
        coefficients are not used for predictions: the functions are ``k(x, basis_) alpha_ + bias_``.""",
    "rounds_": """list of dict
        For each basis, the fields of a pykernel.training.svm.Round or a pykernel.training.lp.Round: vectors, steps,
        objective, residual, excess (how far the objective may be above the optimum, as a fraction of the objective), …""",
    "reached_": """str
        A sentence that describes the result with the last basis, and says why the basis did not grow further.""",
    "reduced_": """pykernel.training.reduced.ReducedModel or None
        The same functions, as linear functions of the features L^-1 k(basis, x), where L L' is the basis's Gram matrix. ``reduced_.basis`` is the pykernel.bases.basis.Basis. None with
        ``penalty="l1"``.""",
    "candidates_": """list of dict
        The compared widths and ``C``, the best first, with the keys "width", "C", "error" and "press" (mean squared
        difference from the targets).""",
    "cv_predictions_": """ndarray of shape (n_samples,) or (n_samples, n_functions)
        Values of the functions at each sample, from models trained on the same basis without the sample's fold (with
        ``penalty="l1"``, each fold may add vectors); NaN where a sample's weight is 0.""",
    "cv_error_": """float
        {error} of ``cv_predictions_``; NaN if Ctrl-C interrupted the cross-validation.""",
    "calibration_": """ndarray of shape (n_functions, 2)
        Coefficients (a, b) of Platt's sigmoid ``1 / (1 + exp(a f + b))`` for each function f, fitted to
        ``cv_predictions_``.""",
    "interrupted_": """bool
        Whether Ctrl-C ended the training or the cross-validation. If it ended the training, the model uses the last
        finished basis. If it ended the cross-validation, ``cv_error_`` is NaN, and a classifier has no
        probabilities.""",
    "n_features_in_": OF_MACHINES["n_features_in_"],
    "feature_names_in_": OF_MACHINES["feature_names_in_"],
}
Duals = Callable[[float], list[svm.Dual]]
"""A function that takes C and returns each function's dual problem for the samples with a weight above 0."""


class _SupportVectorMachine(KernelMachine):
    """Base of the classifier and the regressor: training, and conversion to a spec."""

    _family = PARAMETERS
    _grows = True

    def _fit_machine(self, X: np.ndarray, targets: Targets, counts: np.ndarray, duals: Duals) -> np.ndarray:
        """Choose width and C, and train on the samples with a weight above 0.

        Returns the functions' cross-validated values for these samples, (samples, functions).
        """
        values = self._given()
        self._near_one("inputs", X)
        self._near_one("labels", targets.values)
        kernel, widths, _ = self._choices(values)
        self._where.need(
            kernel.function not in INDEFINITE,
            f"the {kernel.function} kernel is not positive definite; use a positive definite kernel",
        )
        basis_param = self._basis_of(X)
        if isinstance(basis_param, np.ndarray) and basis_param.ndim == 1:
            basis_param = X[basis_param]
        X = X[counts]
        seed = self._seed()
        options = {"seed": seed, **(self.basis_params or {})}
        with self._named(), one_thread, working("training" if self.progress is True else None):
            folds = stratified_folds(targets, min(self._cv, len(X)), seed)
            widths = [float(w) for w in widths or default_widths(kernel.function, X)[::2]]  # type: ignore[arg-type]
            tell = self.progress if callable(self.progress) else lambda part, words: None
            width, self.C_ = self._chosen(X, targets, duals, kernel, widths, basis_param, options, tell)
            self._take_kernel(kernel, width)
            basis, taught = None, duals(self.C_)
            if not (basis_param is None or isinstance(basis_param, int)):
                basis = reduced.chosen_basis(X, self._mercer_kernel, basis_param, {})
            limits: dict[str, Any] = {
                "n_max": basis_param or MOST if basis is None else len(X),
                "tolerance": plain(self.tol),
                "basis": basis,
            }
            some = X[np.unique(np.linspace(0, len(X) - 1, reduced.ROWS_FOR_SCALE).astype(np.intp))]
            trained: svm.Trained | lp.Trained
            without: Callable[[], np.ndarray]
            if self.penalty == "l1":
                trained = lp.train(X, self._mercer_kernel, taught, tell=tell, **limits, **options)
                self.reduced_, self.basis_ = None, trained.model.vectors
                limits["tolerance"] = max(limits["tolerance"], ROUGH_PRICE)
                without = partial(lp.left_out, taught, self._mercer_kernel, X, folds, start=trained.start, **limits)
            else:
                trained = svm.train(X, self._mercer_kernel, taught, tell=tell, **limits, **options)
                self.reduced_, self.basis_ = trained.model, trained.model.basis.vectors.copy()
                without = partial(svm.left_out, taught, trained.model.basis, X, folds)
            self.reached_, self.interrupted_ = trained.reached, trained.interrupted
            try:
                left_out = without(tell=tell)
            except KeyboardInterrupt:
                left_out = np.full((len(X), len(taught)), np.nan)
                self.reached_ += "; the cross-validation was interrupted, so its error is not known"
                self.interrupted_ = True
            self._solved(trained.model, X, some, None)
        self.dual_coef_ = np.zeros((len(counts), trained.beta.shape[1]))
        self.dual_coef_[counts] = trained.beta
        self.support_ = np.flatnonzero(self.dual_coef_.any(axis=1))
        self.rounds_ = [vars(each).copy() for each in trained.rounds]
        if not (
            trained.good or self.interrupted_ or (basis_param is not None and trained.rounds[-1].gap <= svm.ENOUGH)
        ):
            warn(f"{self._where}: {trained.reached}")
        return left_out

    def _chosen(
        self,
        X: np.ndarray,
        targets: Targets,
        duals: Duals,
        kernel: MercerKernel,
        widths: Sequence[float],
        basis_param: Any,
        options: dict[str, Any],
        tell: lp.Tell,
    ) -> tuple[float, float]:
        """Return the width and the C with the smallest error on left-out samples; the squared error breaks ties.

        All machines with the same width share a basis. Each linear programming machine selects its own vectors from this
        basis, because the best C depends on the vectors.
        """
        each, sparse = _candidates(self.C) or [], self.penalty == "l1"
        self.candidates_: list[dict[str, float]] = []
        if len(widths) * len(each) == 1:
            return widths[0], each[0]
        seed, compared = options["seed"], COMPARED_L1 if sparse else COMPARED
        at = np.arange(len(X))
        if len(X) > compared:
            # a stratified subset of the samples
            at = np.flatnonzero(stratified_folds(targets, -(-len(X) // compared), seed) == 0)
        x, parts = X[at], _part(targets, at)
        cv = self._cv
        folds = stratified_folds(parts, cv.among(at) if isinstance(cv, GroupFolds) else min(cv, len(at)), seed)
        # with fewer samples, the sum of losses is smaller compared with the 1-norm, so C is multiplied by this factor
        more = len(X) / len(at) if sparse else 1.0
        fixed = not (basis_param is None or isinstance(basis_param, int))
        most = len(X) if fixed else basis_param or MOST
        n = min(ROUGHLY if sparse else min(most, ROUGHLY), len(x))
        cells = len(widths) * len(each)
        for width in widths:
            mine = kernel.with_width(width)
            basis = reduced.chosen_basis(x, mine, basis_param, {}) if fixed else select_basis(x, mine, n, **options)
            for c in each:
                tell(len(self.candidates_) / cells, f"comparing {cells} pairs of width and C")
                parts_of = [dual.part(at) for dual in duals(c * more)]
                if sparse:
                    left = lp.left_out(parts_of, mine, x, folds, basis=basis, n_max=most)
                else:
                    left = svm.left_out(parts_of, basis, x, folds)
                error = press if targets.positions is None else error_rate
                self.candidates_.append(
                    {"width": width, "C": c, "error": error(parts, left), "press": press(parts, left)}
                )
        self.candidates_.sort(key=lambda cell: (cell["error"], cell["press"]))
        return self.candidates_[0]["width"], self.candidates_[0]["C"]


class SupportVectorClassifier(ClassifiesByFunctions, _SupportVectorMachine):
    """Support vector machine for classification, trained by an interior-point method on a greedy basis.

    Each function ``f(x) = k(x, basis_) alpha_ + bias_`` minimises ``1/2 |f|^2 + C * (sum of max(0, 1 - y f))``, where y is 1
    or -1. With ``penalty="l1"``, ``sum of |alpha|`` replaces ``1/2 |f|^2``: the model is then a linear programming machine,
    in which few vectors have nonzero weights. Two classes share one function, which is positive for ``classes_[1]``. With
    more classes, each class has a function that separates it from all other classes, and the class with the largest value
    is predicted. The basis grows until the functions satisfy, within ``tol``, the optimality conditions of a machine with
    all samples as vectors.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMClassifier : Minimises squared errors; leave-one-out has a closed form.

    Notes
    -----
    With n samples and p vectors, a step of the interior-point method takes O(n p^2), and 10 to 40 steps are usual. A
    prediction takes O(p n_features), whatever the number of support vectors.

    References
    ----------
    Smola, A. J. and Schölkopf, B. (2000). Sparse greedy matrix approximation for machine learning. ICML. Sections 6.1, 6.2.

    Vanderbei, R. J. (1994). LOQO: an interior point code for quadratic programming. Princeton University, SOR-94-15.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import SupportVectorClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SupportVectorClassifier(sigma=2.0, C=10.0).fit(X, y)
    >>> bool(model.cv_error_ < 0.06), len(model.basis_) < 100
    (True, True)
    >>> model.to_spec("iris").label.classes
    ('0', '1', '2')
    """

    _without = ("epsilon",)
    _words: ClassVar[dict[str, str]] = {"{error}": "Error rate"}
    _attributes: ClassVar[dict[str, str]] = ATTRIBUTES

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters that were left open, train, and calibrate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two or more different classes: numbers, strings or whatever else can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            The factor, 0 or more, by which each sample's loss is multiplied.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid or does not apply to the kernel, or if there is only one class.
        ValueError
            If the data are not finite numbers of the right shape.

        Warns
        -----
        UserWarning
            If 1,024 vectors are too few for ``tol``, or if rounding errors ended the training early.
        """
        X, y, weights, counts = self._samples(X, y, sample_weight)
        classes, positions = self._classes_of(y[counts]), np.unique(y[counts], return_inverse=True)[1]
        each = np.ones(len(positions)) if weights is None else weights
        with self._named():
            targets = Targets.of_classes(positions, len(classes), "signs", weights)
        left_out = self._fit_machine(
            X, targets, counts, lambda c: svm.Dual.of_classes(positions, len(classes), c * each)
        )
        self.classes_, self.cv_predictions_ = classes, self._flat(_on_all(left_out, counts))
        self.__dict__.pop("calibration_", None)
        self.cv_error_ = math.nan
        if not np.isnan(left_out).any():  # NaN: Ctrl-C ended the cross-validation
            self.cv_error_ = error_rate(targets, left_out)
            self.calibration_ = fit_calibration(left_out, positions, len(classes), weights=weights)
        return self


class SupportVectorRegressor(RegressesByFunctions, _SupportVectorMachine):
    """Support vector machine for regression, trained by an interior-point method on a greedy basis.

    Each label has one function ``f(x) = k(x, basis_) alpha_ + bias_``, which minimises
    ``1/2 |f|^2 + C * (sum of max(0, |y - f| - epsilon))``. With ``penalty="l1"``, ``sum of |alpha|`` replaces
    ``1/2 |f|^2``: the model is then a linear programming machine, in which few vectors have nonzero weights. The basis
    grows until the functions satisfy, within ``tol``, the optimality conditions of a machine with all samples as vectors.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMRegressor : Minimises squared errors; leave-one-out has a closed form.

    Notes
    -----
    With n samples and p vectors, a step of the interior-point method takes O(n p^2), and 10 to 40 steps are usual.

    References
    ----------
    Smola, A. J. and Schölkopf, B. (2000). Sparse greedy matrix approximation for machine learning. ICML. Sections 6.1, 6.2.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import SupportVectorRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = SupportVectorRegressor(sigma=0.5, epsilon=0.01, C=100.0).fit(X, np.sinc(X[:, 0]))
    >>> bool(model.cv_error_ < 1e-3), len(model.basis_) < 100
    (True, True)
    """

    _words: ClassVar[dict[str, str]] = {"{error}": "Mean squared error"}
    _attributes: ClassVar[dict[str, str]] = {
        k: v for k, v in ATTRIBUTES.items() if k not in ("classes_", "calibration_")
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters that were left open, and train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels, which share the kernel, C and epsilon.
        sample_weight : array-like of shape (n_samples,), default=None
            The factor, 0 or more, by which each sample's loss is multiplied.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid, or does not apply to the kernel.
        ValueError
            If the data are not finite numbers of the right shape.

        Warns
        -----
        UserWarning
            If 1,024 vectors are too few for ``tol``, or if rounding errors ended the training early.
        """
        X, y, weights, counts = self._samples(X, y, sample_weight)
        labels = y.reshape(len(y), -1)[counts]
        each, epsilon = np.ones(len(labels)) if weights is None else weights, float(plain(self.epsilon))
        targets = Targets.of_values(labels, weights)
        left_out = self._fit_machine(
            X, targets, counts, lambda c: [svm.Dual.of_values(column, epsilon, c * each) for column in labels.T]
        )
        self._shape = y.shape[1:]
        self.cv_predictions_ = _on_all(left_out, counts).reshape(y.shape)
        self.cv_error_ = press(targets, left_out)
        return self


def _on_all(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return an array for all samples: ``values`` where the weight is above 0 (``counts`` is True), and NaN elsewhere."""
    found = np.full((len(counts), values.shape[1]), np.nan)
    found[counts] = values
    return found


def _part(targets: Targets, at: np.ndarray) -> Targets:
    weights = None if targets.weights is None else targets.weights[at]
    if targets.positions is None:
        return Targets.of_values(targets.values[at], weights)
    return Targets.of_classes(targets.positions[at], targets.count, "signs", weights)
