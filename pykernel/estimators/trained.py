"""Kernel machines whose vectors are trained, as scikit-learn estimators.

The estimators train on the host in float64, and choose widths and ridge by cross-validation.  ``to_spec`` returns the spec of a
frozen model.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from pykernel.estimators.base import warn
from pykernel.estimators.functions import ClassifiesByFunctions, Expansion, RegressesByFunctions
from pykernel.estimators.parameters import FOLDS, LEFT_OUT, Must, Parameter, one_of, plain, whole
from pykernel.parallel import one_thread
from pykernel.progress import working
from pykernel.spec.model import Spec
from pykernel.training import vectors
from pykernel.training.calibration import fit_calibration
from pykernel.training.coding import Targets
from pykernel.training.machine import Machine
from pykernel.training.selection import stratified_folds
from pykernel.training.trained import to_spec

LINEAR_RIDGE = 1e-3
"""Ridge of the linear model with which the machine is compared, in the squared unit of the inputs."""
USUAL = 16
"""Default number of vectors."""
STARTS = ("k-means", "rows")
"""Names of the ways to choose the initial vectors."""


def _is_table(value: Any) -> bool:
    """Return True if the value can be converted to a two-dimensional array of numbers."""
    try:
        return bool(np.asarray(value, np.float64).ndim == 2)
    except (TypeError, ValueError):
        return False


def _ridges(value: Any) -> list[float] | None:
    """Return the ridges as a list, or None if the value is invalid."""
    values: Any = [value] if np.isscalar(value) else value
    try:
        found = [float(each) for each in values]
    except (TypeError, ValueError):
        return None
    return found if found and all(0 <= each < np.inf for each in found) else None


PARAMETERS = {
    "n_vectors": Parameter(
        kind=int | None,
        must=whole(1) | LEFT_OUT,
        text="""int
        Number of vectors, at most the number of samples. None: 16, or all samples if there are fewer.""",
    ),
    "loss": Parameter(
        default="squared",
        kind=str,
        must=one_of("squared", "absolute"),
        text="""{"squared", "absolute"}
        What is minimised. "absolute" is ``sqrt(r^2 + 0.05^2)`` for a residual of r standard deviations of the label: a
        few wrong labels have less influence.""",
    ),
    "standardise": Parameter(
        kind=bool | None,
        must=Must("True, False or None", lambda v: v in (True, False, None)),
        text="""bool
        Whether distances are computed from standardised inputs; if not, from the inputs as they are. None: whichever is
        better on samples left out. In both cases ``predict`` and the device take inputs as they are.""",
    ),
    "widths": Parameter(
        kind=str | None,
        must=one_of("one", "inputs") | LEFT_OUT,
        text="""{"one", "inputs"}
        One width, or a width for each input (automatic relevance determination). None: whichever is better on samples left out.""",
    ),
    "ridge": Parameter(
        must=Must(
            "a number of 0 or more, several to choose from, or None", lambda v: v is None or _ridges(v) is not None
        ),
        text="""float or sequence of floats
        Weight of the penalty ``ridge / 2 |alpha|^2``, for labels divided by their standard deviations. None:
        chosen on samples left out, from 1e-6 to 1e-2. A sequence: chosen from its values in the same way.""",
    ),
    "cv": Parameter(
        default=5,
        must=FOLDS,
        text="""int, splitter or list of splits
        Number of folds; for classes, they are stratified. A splitter of scikit-learn, or a list of pairs (train, test): its test
        sets are the folds, and each sample must be in exactly one of them. If there are more than 2,000 samples, models are compared on
        2,000 of them, drawn at random.""",
    ),
    "max_iter": Parameter(
        default=vectors.STEPS,
        kind=int,
        must=whole(5),
        text="""int
        Maximum number of L-BFGS steps. Training ends earlier if fewer steps are better on samples left out.""",
    ),
    "init": Parameter(
        default="k-means",
        must=Must(
            '"k-means", "rows" or an array of vectors', lambda v: v in STARTS if isinstance(v, str) else _is_table(v)
        ),
        text="""{"k-means", "rows"} or array of shape (n_vectors, n_features)
        Initial vectors: centres of k-means, samples drawn at random, or the given array, such as a basis's vectors.""",
    ),
    "n_init": Parameter(
        default=3,
        kind=int,
        must=whole(1),
        text="""int
        Number of final searches, from different starts. The result with the smallest risk is taken; if there are many
        samples, the risk is measured on samples that were set aside.""",
    ),
    "progress": Parameter(
        default=False,
        kind=bool,
        text="""bool or callable
        Whether to show on a terminal that training is running; or a function to call with the completed fraction, from 0
        to 1.""",
    ),
    "precision": Parameter(
        default="float32",
        kind=str,
        must=one_of("float32", "float64", "int16"),
        text="""{"float32", "float64", "int16"}
        Number format of the spec that ``to_spec`` returns. Training is in float64. With "int16", predictions for samples
        left out are computed as on the device.""",
    ),
    "random_state": Parameter(
        default=0,
        text="""int, RandomState or None
        Seed of folds and starts: the same seed gives the same model.""",
    ),
}

ATTRIBUTES = {
    "classes_": """ndarray of shape (n_classes,)
        The classes, sorted. Class i on the device is ``classes_[i]``.""",
    "vectors_": """ndarray of shape (n_vectors, n_features)
        The trained vectors, in the inputs' unit.""",
    "scale_": """ndarray of shape (n_features,)
        Reciprocal width of each input.""",
    "alpha_": """ndarray of shape (n_vectors, n_functions)
        Weights of the vectors in each function. Each label has a function. Two classes share one function; with more
        classes, each class has a function.""",
    "bias_": """ndarray of shape (n_functions,)
        The constant added to each function.""",
    "standardised_, widths_, ridge_, n_iter_": """bool, str, float, int
        The chosen settings: whether inputs are standardised, the widths, the ridge and the best number of steps.""",
    "candidates_": """list of dict
        The candidates whose comparison was finished, the best first: inputs, widths, ridge, steps, risk (mean loss on
        samples left out).""",
    "cv_indices_, cv_predictions_": """ndarray of shape (n_compared,), and (n_compared,) or (n_compared, n_functions)
        Indices of the samples on which models were compared, and the functions' values there, from models trained
        without these samples.""",
    "cv_error_": """float
        {error} of ``cv_predictions_``.""",
    "optimism_": """float
        How far ``cv_error_`` is expected to be below the true error, because the best candidate was chosen; 0 for the
        absolute loss.""",
    "linear_error_": """float
        {error} of a linear model on the same samples and folds.""",
    "linear_is_enough_": """bool
        Whether a linear model is as good: its loss on these samples or, for classes, its error rate is not larger. If
        so, a warning is given.""",
    "calibration_": """ndarray of shape (n_functions, 2)
        (a, b) of each function's ``p = 1 / (1 + exp(a f + b))``, fitted to ``cv_predictions_``.""",
    "interrupted_": """bool
        Whether Ctrl-C ended the training; the model is then the best so far.""",
    "n_features_in_": """int
        Number of inputs.""",
    "feature_names_in_": """ndarray of shape (n_features_in_,)
        Names of the inputs, if the data had any; they become the spec's columns.""",
}


class _TrainedVectors(Expansion):
    """Base of the regressor and the classifier: training, and conversion to a spec."""

    _family = PARAMETERS

    vectors_: np.ndarray
    scale_: np.ndarray
    bias_: np.ndarray

    def _train(
        self,
        X: np.ndarray,
        targets: np.ndarray,
        folds: Targets,
        counts: np.ndarray,
        loss: vectors.Loss,
        middle: np.ndarray | float = 0.0,
        deviation: np.ndarray | float = 1.0,
    ) -> tuple[vectors.Trained, np.ndarray]:
        """Train on classes, or on labels that were standardised with ``middle`` and ``deviation``.

        folds: targets by which the folds of the cross-validation are stratified.  Returns (result, linear): the result of the
        training, and cross-validated predictions of a linear model, (n_compared, n_functions), for the samples on which
        models were compared and with the same folds.
        """
        self._near_one("inputs", X)
        self._where.need(
            len(X) == 1 or np.ptp(X, axis=0).any(), "every input is constant; a model needs inputs that change"
        )
        m = self._count(len(X))
        self._where.need(m <= len(X), f"n_vectors is {m}; it must be at most {len(X)}, the number of samples")
        # keep each input's extremes, and its value farthest from an integer: only inputs without fractions are treated as counts
        broken = np.take_along_axis(X, np.abs(X - np.rint(X)).argmax(axis=0)[None], axis=0)
        start, self._seen = self._start(X, m), np.vstack([X.min(axis=0), X.max(axis=0), broken])

        def whole(model: vectors.Vectors, x: np.ndarray) -> np.ndarray:
            machine = model.answering(middle, deviation).machine(self._where, seen=self._seen)
            spec: Any = to_spec(machine, "judged", "int16")
            return np.asarray((spec.family.int16_functions(spec, x) - middle) / deviation)

        with self._named():
            fold = stratified_folds(folds, min(self._cv, len(X)), self._seed())
        with working("training" if self.progress is True else None):
            trained = vectors.train(
                vectors.Rows(X, targets, counts / counts.mean()),
                m,
                loss,
                units={None: ("standardised", "given"), True: ("standardised",), False: ("given",)}[self.standardise],
                widths=("one", "inputs") if self.widths is None else (self.widths,),
                ridges=_ridges(self.ridge) or vectors.RIDGES,
                folds=fold,
                steps=plain(self.max_iter),
                start=start,
                starts=plain(self.n_init),
                seed=self._seed(),
                computed=whole if self.precision == "int16" else None,
                tell=self.progress if callable(self.progress) else lambda part: None,
            )
        self._where.need(
            all(np.isfinite(part).all() for part in vars(trained.model).values()),
            "the search diverged; scale the inputs to magnitudes near 1",
        )
        self.vectors_, self.scale_ = trained.model.vectors, np.exp(trained.model.log_scale)
        self.standardised_ = trained.taken.units == "standardised"
        self.widths_, self.ridge_, self.n_iter_ = trained.taken.widths, trained.taken.ridge, trained.taken.step
        self.candidates_ = [
            {"inputs": each.units, "widths": each.widths, "ridge": each.ridge, "steps": each.step, "risk": each.risk}
            for each in trained.candidates
        ]
        self.interrupted_ = trained.interrupted
        return trained, self._linear(X, targets, counts, fold, trained)

    def _linear(
        self, X: np.ndarray, targets: np.ndarray, counts: np.ndarray, fold: np.ndarray, trained: vectors.Trained
    ) -> np.ndarray:
        from sklearn.linear_model import Ridge  # type: ignore[import-untyped]

        compared = np.zeros(len(X), bool)
        compared[trained.places] = True
        said = np.zeros_like(trained.left_out)
        for name in np.unique(fold[trained.places]):
            # after an interrupt, only one fold was compared, so train on all samples outside it
            mine = (fold != name) & (compared | trained.interrupted)
            model, asked = Ridge(LINEAR_RIDGE), fold[trained.places] == name
            model.fit(X[mine], targets[mine], sample_weight=counts[mine])
            said[asked] = model.predict(X[trained.places][asked]).reshape(-1, targets.shape[1])
        return said

    def _count(self, samples: int) -> int:
        return min(USUAL, samples) if self.n_vectors is None else int(plain(self.n_vectors))

    def _start(self, X: np.ndarray, m: int) -> vectors.Start:
        if isinstance(self.init, str):
            return vectors.k_means if self.init == "k-means" else vectors.drawn_rows
        given = np.array(self.init, np.float64)
        shape = (m, X.shape[1])
        self._where.need(
            given.shape == shape and np.isfinite(given).all(),
            f'init must be "k-means", "rows" or an array of finite numbers, of shape {shape} (n_vectors, inputs)',
        )
        return given

    def _judge(self, error: float, linear: float, as_good: bool) -> None:
        self.cv_error_, self.linear_error_, self.linear_is_enough_ = error, linear, as_good and not self.interrupted_
        if self.linear_is_enough_:
            warn(
                f"{self._where}: the error on samples left out is {error:.4g}, and a linear model's error is {linear:.4g}; take the "
                "linear model, or other inputs"
            )

    def _values(self, X: Any) -> np.ndarray:
        X, found = self._inputs(X), self._found()
        with one_thread:
            parts = [found.functions(X[at : at + 4096]) for at in range(0, len(X), 4096)]
        return np.concatenate(parts)

    # ---- to the device

    def to_spec(self, name: str, *, precision: str | None = None, max_abs: Any = None, distance: str = "auto") -> Spec:
        """Return the spec of the frozen model, with its vectors, weights, biases and calibration.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        precision : {"float32", "float64", "int16"}, default=None
            None: the estimator's precision.
        max_abs, distance
            See ``LSSVMClassifier.to_spec``.

        Returns
        -------
        spec : Spec

        Raises
        ------
        UserError
            If a name or number is invalid, or a number exceeds the range of the precision.
        """
        check_is_fitted(self)
        precision = self.precision if precision is None else precision
        return to_spec(self._machine(), name, precision, plain(max_abs), distance=distance)  # type: ignore[arg-type]

    def _machine(self) -> Machine:
        check_is_fitted(self)
        return self._found().machine(
            self._where,
            calibration=getattr(self, "calibration_", None),
            columns=self._columns,
            label=self._label(self._columns),
            seen=self._seen,
        )

    def _found(self) -> vectors.Vectors:
        return vectors.Vectors(self.vectors_, np.log(self.scale_), self.alpha_, self.bias_)


class TrainedKernelRegressor(RegressesByFunctions, _TrainedVectors):
    """Kernel machine with few vectors, which are trained together with widths and weights.

    ``f(x) = sum_i alpha_i exp(-1/2 sum_j (scale_j (x_j - vectors_ij))^2) + bias``. Other models choose samples as vectors;
    this model optimises the vectors. It can be seen as a sparse kernel machine with optimised centres, or as a radial
    basis function network whose parameters are all trained.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMRegressor : Its vectors are the samples; leave-one-out has a closed form.

    Notes
    -----
    With m vectors and n samples, a step takes O(n m n_features).

    References
    ----------
    Burges, C. J. C. (1996). Simplified support vector decision rules. ICML.

    Wu, M., Schölkopf, B. and Bakır, G. (2006). A direct method for building sparse kernel learning algorithms. Journal of
    Machine Learning Research 7.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import TrainedKernelRegressor
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = TrainedKernelRegressor(6).fit(X, np.sinc(X[:, 0]))
    >>> bool(model.cv_error_ < 1e-3), model.vectors_.shape
    (True, (6, 1))
    """

    _attributes: ClassVar[dict[str, str]] = {
        k: v for k, v in ATTRIBUTES.items() if k not in ("classes_", "calibration_")
    }
    _words: ClassVar[dict[str, str]] = {"{error}": "Mean squared error"}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose widths, ridge and the number of steps, and train.

        If there are more than 2,000 samples, a tenth of them is set aside, and determines when each search ends. If
        there are more than 50,000, only 50,000 of them are used for the final training, drawn at random.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            The relative weight of each sample, 0 or more.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid, all inputs are constant, or there are more vectors than samples.
        ValueError
            If the data are not finite numbers of the right shape.

        Warns
        -----
        UserWarning
            If a linear model is as good as the trained model.
        """
        X, y, weights, used = self._samples(X, y, sample_weight)
        rows, labels = X[used], y.reshape(len(y), -1)[used]
        counts = np.ones(len(rows)) if weights is None else weights / weights.max()
        self._near_one("labels", labels)
        targets, middle, deviation = vectors.value_targets(labels, counts)
        trained, linear = self._train(rows, targets, Targets.of_values(labels), counts, self.loss, middle, deviation)  # type: ignore[arg-type]
        answering, at = trained.model.answering(middle, deviation), trained.places
        self.alpha_, self.bias_ = answering.weights, answering.bias
        self._shape = y.shape[1:]
        self.cv_indices_ = np.flatnonzero(used)[at]
        self.cv_predictions_ = (middle + trained.left_out * deviation).reshape(len(at), *self._shape)
        self.optimism_ = 2 * trained.optimism * float(np.square(deviation).mean()) if self.loss == "squared" else 0.0

        def error(values: np.ndarray) -> float:
            squares = np.square((values - targets[at]) * deviation)
            return float(np.average(squares, axis=0, weights=counts[at]).mean())

        rows_at = vectors.Rows(rows[at], targets[at], counts[at] / counts[at].mean())
        risks = [vectors.risk(self.loss, each, rows_at)[0] for each in (trained.left_out, linear)]  # type: ignore[arg-type]
        self._judge(error(trained.left_out), error(linear), risks[1] <= risks[0])
        return self


class TrainedKernelClassifier(ClassifiesByFunctions, _TrainedVectors):
    """Kernel classifier with few vectors, which are trained together with widths and weights.

    The functions have the same form as in ``TrainedKernelRegressor``. Training minimises the cross-entropy of the
    functions' softmax or, for two classes, the logistic loss of one function.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    KernelFisherClassifier : Its vectors are samples; leave-one-out has a closed form.

    Notes
    -----
    With m vectors and n samples, a step takes O(n m (n_features + n_classes)).

    References
    ----------
    Burges, C. J. C. (1996). Simplified support vector decision rules. ICML.

    Wu, M., Schölkopf, B. and Bakır, G. (2006). A direct method for building sparse kernel learning algorithms. Journal of
    Machine Learning Research 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import TrainedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TrainedKernelClassifier(4, ridge=1e-3, widths="one").fit(X, y)
    >>> bool(model.cv_error_ < 0.05), model.vectors_.shape
    (True, (4, 4))
    >>> model.to_spec("iris").label.classes
    ('0', '1', '2')
    """

    _without = ("loss",)
    _attributes: ClassVar[dict[str, str]] = {k: v for k, v in ATTRIBUTES.items() if k != "optimism_"}
    _words: ClassVar[dict[str, str]] = {"{error}": "Error rate"}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose widths, ridge and the number of steps, train, and calibrate.

        If there are more than 2,000 samples, a tenth of them is set aside, and determines when each search ends. If
        there are more than 50,000, only 50,000 of them are used for the final training, drawn at random.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two or more different classes: numbers, strings or whatever else can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            The relative weight of each sample, 0 or more.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter is invalid, there is only one class, all inputs are constant, or there are more vectors than
            samples.
        ValueError
            If the data are not finite numbers of the right shape.

        Warns
        -----
        UserWarning
            If a linear model is as good as the trained model.
        """
        X, y, weights, used = self._samples(X, y, sample_weight)
        rows = X[used]
        counts = np.ones(len(rows)) if weights is None else weights / weights.max()
        classes, positions = self._classes_of(y[used]), np.unique(y[used], return_inverse=True)[1]
        coded = Targets.of_classes(positions, len(classes), "signs")
        trained, linear = self._train(rows, vectors.class_targets(positions, len(classes)), coded, counts, "classes")
        at = trained.places
        self.alpha_, self.bias_ = trained.model.weights, trained.model.bias
        self.classes_ = classes
        self.cv_indices_, self.cv_predictions_ = np.flatnonzero(used)[at], self._flat(trained.left_out)
        of_weights = None if weights is None else counts[at]
        self.calibration_ = fit_calibration(trained.left_out, positions[at], len(classes), weights=of_weights)

        def error(values: np.ndarray, border: float) -> float:
            decided = values.argmax(axis=1) if len(classes) > 2 else values[:, 0] > border
            return float(np.average(decided != positions[at], weights=counts[at]))

        errors = error(trained.left_out, 0.0), error(linear, 0.5)
        self._judge(*errors, errors[1] <= errors[0])
        return self
