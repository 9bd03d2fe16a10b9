"""Kernel machines with a closed form as scikit-learn estimators: Fisher discriminant, LS-SVM, kernel ridge regression.

They train on the host in float64.  Leave-one-out cross-validation costs little in addition.  ``to_spec`` gives a frozen
model for the device; ``device_spec`` gives a model that trains on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel, PrecomputedKernel
from pykernel.estimators.base import (
    FINITE,
    Must,
    Parameter,
    column_names,
    document,
    one_of,
    plain,
    short,
    warn,
    whole,
)
from pykernel.estimators.functions import EXTREME, ClassifiesByFunctions, Expansion, RegressesByFunctions
from pykernel.parallel import one_thread, working
from pykernel.spec.families.batch import LEAST, LEAST_OF_TRACE
from pykernel.spec.kernel_settings import INDEFINITE
from pykernel.spec.model import Spec
from pykernel.training import reduced, selection
from pykernel.training.calibration import fit_calibration
from pykernel.training.closed_form import Targets, error_rate, press, problem
from pykernel.training.trained import Machine
from pykernel.training.trained import to_spec as frozen

SHAPED_BY: dict[str, tuple[str, ...]] = {
    "gaussian": ("sigma",),
    "laplacian": ("gamma",),
    "matern12": ("gamma",),
    "matern32": ("gamma",),
    "matern52": ("gamma",),
    "polynomial": ("gamma", "coef0", "degree"),
    "linear": (),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}
"""Kernel -> the parameters that it has."""
SHAPE = ("sigma", "gamma", "coef0", "degree")
BLOCK = 2**22
"""Kernel values that are held at a time when predicting."""
MACHINES = ("gamma", "alpha", "coef0", "degree", "normalise", "max_value")
"""Keys of ``[kernel]`` that a Machine has."""
REACH = 1e3
"""The derived limits of a model that trains on the device, in largest |x| and |y| of the training samples."""
REACH_POLYNOMIAL = 10.0
"""The same for inputs of the polynomial kernel, which grows."""
RESOLUTION = 1e-12
"""Leave-one-out predictions count as equal if they differ by less than this fraction of the targets.  A model that has
learned nothing predicts only 0."""
RESOLVED = 0.01
"""Largest rounding error in float32 without a warning, as a fraction of the functions' spread."""

OPEN = Must(
    "a number above 0, several to choose from, or None to derive them",
    lambda v: v is None or _candidates(v) is not None,
)
HOW = Must('"deleted", "kept", or a number of folds from 2', (one_of("deleted", "kept") | whole(2)).holds)
PROCESSES = Must(
    "a number of processes from 1, or a Dask scheduler's address",
    lambda v: v is None or isinstance(v, str) or whole(1).holds(v),
)

Kind = TypeVar("Kind", bound="type[_KernelMachine]")

PARAMETERS = {
    "kernel": Parameter(
        text="""str or pykernel.bases.gram.MercerKernel
        "gaussian", "laplacian", "matern12", "matern32", "matern52", "polynomial", "linear" or "sigmoid":
        ``exp(-|a - b|^2 / (2 sigma^2))``, ``exp(-gamma |a - b|_1)``, ``exp(-r)``, ``(1 + r) exp(-r)`` and
        ``(1 + r + r^2 / 3) exp(-r)`` with ``r = gamma |a - b|``, ``(gamma a'b + coef0)^degree``, ``a'b``,
        ``tanh(gamma a'b + coef0)``. "sigmoid" is not positive definite. Except for the KernelFisherClassifier, it
        therefore needs a large ``ridge``. "precomputed": X is the Gram matrix, (n_samples, n_samples), in ``fit``, and
        afterwards kernel values with all training samples, (n_samples, n_training); no width is chosen, and a device
        could compute nothing. A MercerKernel, which may be normalised or custom, is used with its own
        parameters: no width is chosen."""
    ),
    "sigma": Parameter(
        must=OPEN,
        text="""float or sequence of floats
        Width of the Gaussian kernel, in the inputs' unit. None or a sequence: chosen by cross-validation, from 13
        widths around the typical distance of samples, or from the given ones.""",
    ),
    "gamma": Parameter(
        must=OPEN,
        text="""float or sequence of floats
        Scale of the other kernels, chosen in the same way. A kernel's parameters are refused with another kernel.""",
    ),
    "coef0": Parameter(
        must=FINITE,
        text="""float
        Constant of the polynomial and the sigmoid kernel.""",
    ),
    "degree": Parameter(
        must=whole(1, 9),
        text="""int
        Power of the polynomial kernel, from 1 to 9.""",
    ),
    "ridge": Parameter(
        must=OPEN,
        text="""float or sequence of floats
        Weight of the penalty, in the unit of {ridge}.
        None or a sequence: chosen by cross-validation, from half decades below a bound of that, or from the given
        ones.""",
    ),
    "coding": Parameter(
        text="""{"counts", "signs"}
        The targets of the functions. "counts": ``n / n_c`` for samples of the class and ``-n / (n - n_c)`` for the
        others. "signs": 1 and -1. With a bias, "counts" scales and moves the functions so that their mean over all
        samples is 0: small classes are predicted more often, also by mistake."""
    ),
    "basis": Parameter(
        text="""int, sequence of ints, array of shape (n_vectors, n_features) or pykernel.bases.basis.Basis
        The expansion vectors: a number to choose from the training samples, again for each width; positions of
        training samples; any vectors; or a basis that was chosen, with its kernel. None: all samples. With p vectors
        of n samples, training takes O(n p^2) and the frozen model p vectors. {basis}"""
    ),
    "basis_params": Parameter(
        text="""dict
        How vectors are chosen if ``basis`` is a number: parameters of ``pykernel.bases.select.select_basis``, such as
        ``method``, ``candidates``, ``tau`` and ``epsilon``."""
    ),
    "cv": Parameter(
        must=HOW,
        text="""{"deleted", "kept"} or int
        How candidates are compared. "deleted": leave-one-out, equal to training again without each sample. "kept":
        paper 004's estimate, which keeps the sample's kernel column (differs for the KernelFisherClassifier only). A
        number: this number of stratified folds.""",
    ),
    "by": Parameter(
        must=one_of("error", "press"),
        text="""{"error", "press"}
        What is minimised. "error": the error rate; if several are equal, the squared error. "press": the mean squared
        difference between predictions and targets. Of all candidates within 1 % of the least, that with the largest
        ridge is taken, then that with the smoothest kernel.""",
    ),
    "jobs": Parameter(
        must=PROCESSES,
        text="""int or str
        Number of processes that compare candidates, or a Dask scheduler's address. Each process takes one width at a
        time. None: this process.""",
    ),
    "progress": Parameter(
        text="""bool
        Whether to show a progress bar, on a terminal."""
    ),
    "precision": Parameter(
        must=one_of("float32", "float64"),
        text="""{"float32", "float64"}
        Number format of the specs that ``to_spec`` and ``device_spec`` give. Training is in float64.""",
    ),
    "random_state": Parameter(
        text="""int, RandomState or None
        Seed of the random choice of folds."""
    ),
}
"""The parameters of the family, with their descriptions for docstrings."""


ATTRIBUTES = {
    "classes_": """ndarray of shape (n_classes,)
        The classes, sorted. What the device calls class i is ``classes_[i]``.""",
    "basis_": """ndarray of shape (n_vectors, n_features)
        Expansion vectors.""",
    "alpha_": """ndarray of shape (n_vectors, n_functions)
        Their weights in each function: one for each label; of two classes one, of more one for each.""",
    "bias_": """ndarray of shape (n_functions,)
        What is added; 0 where the model has none.""",
    "kernel_": """dict
        The kernel as a spec's ``[kernel]`` has it. ``gamma_`` and, of the Gaussian, ``sigma_`` give its scale.""",
    "ridge_": """float
        The penalty's weight.""",
    "reduced_": """pykernel.training.reduced.ReducedModel or None
        Of a basis that was chosen or, but for the KernelFisherClassifier, given: the same functions of projection
        features. ``reduced_.basis`` is the pykernel.bases.basis.Basis. Else None.""",
    "selection_": """pykernel.training.selection.Selection or None
        All candidates and their errors; None if there was nothing to choose.""",
    "optimism_": """float
        How much too small the chosen candidate's error is expected to be for having been chosen; 0 if none was.""",
    "loo_predictions_": """ndarray of shape (n_samples,) or (n_samples, n_functions)
        Values of the functions at each training sample, of the model that is trained without it.""",
    "loo_error_": """float
        {error}.""",
    "loo_press_": """float
        Their mean squared difference to what functions are taught.""",
    "calibration_": """ndarray of shape (n_functions, 2)
        (a, b) of each function's ``p = 1 / (1 + exp(a f + b))``, fitted to ``loo_predictions_``. a is 0, and p the
        class's share, where those say nothing of the class.""",
    "n_features_in_": """int
        Number of inputs.""",
    "feature_names_in_": """ndarray of shape (n_features_in_,)
        Their names, if the data had any; they become the spec's columns.""",
}
OF_CLASSIFIERS = ("classes_", "loo_press_", "calibration_")


def _documented(kind: Kind) -> Kind:
    """Put the parameters of ``__init__``, in its order, and the attributes into the docstring."""
    classifies, fisher = issubclass(kind, ClassifierMixin), kind._model == "kfd"
    words = {
        "{ridge}": "squared singular values of the Gram matrix" if fisher else "the Gram matrix's eigenvalues",
        "{error}": "Their error rate" if classifies else "Their mean squared error",
        "{basis}": "Samples that are left out leave\n        their vectors where they are, "
        + ("if they were chosen." if fisher else "and vectors that earlier ones span are dropped."),
    }
    document(kind, {name: text for name, text in ATTRIBUTES.items() if classifies or name not in OF_CLASSIFIERS}, words)
    return kind


class _KernelMachine(Expansion):
    """Base of these kernel machines: training, leave-one-out, and conversion to a spec."""

    _family = PARAMETERS

    _model: ClassVar[Literal["kfd", "ls-svm", "krr"]]

    alpha_: np.ndarray
    bias_: np.ndarray
    basis_: np.ndarray
    kernel_: dict[str, Any]
    ridge_: float
    _mercer_kernel: MercerKernel
    reduced_: reduced.ReducedModel | None
    selection_: selection.Selection | None
    optimism_: float
    loo_predictions_: np.ndarray
    loo_error_: float

    def __init__(
        self,
        kernel: str | MercerKernel = "gaussian",
        *,
        sigma: Any = None,
        gamma: Any = None,
        coef0: float = 1.0,
        degree: int = 3,
        ridge: Any = None,
        basis: Any = None,
        basis_params: dict[str, Any] | None = None,
        cv: Any = "deleted",
        jobs: int | str | None = None,
        progress: bool = False,
        precision: str = "float32",
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    # ---- training

    def _weights(self, sample_weight: Any, X: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """As in the base class, but X may also be a Gram matrix."""
        weights, counts = super()._weights(sample_weight, X)
        if self._precomputed and not counts.all():
            raise self._error(
                "sample_weight holds 0; with a Gram matrix leave out that sample's row and column, and its label"
            )
        return weights, counts

    def _train(self, X: np.ndarray, targets: Targets, counts: np.ndarray) -> np.ndarray:
        """Choose width and ridge, solve, and return the leave-one-out predictions, (n, o).

        counts: which samples count.  The others have weight 0; their predictions are those of the model.
        """
        left_out = self._trained(X, targets, counts)
        if counts.all():
            return left_out
        values = np.empty((len(X), left_out.shape[1]))
        values[counts], values[~counts] = left_out, self._functions(X[~counts])
        return values

    def _trained(self, X: np.ndarray, targets: Targets, counts: np.ndarray) -> np.ndarray:
        """Train on the samples that count; returns their leave-one-out predictions, (samples that count, o)."""
        kernel, widths, ridges = self._choices(self._given(), X)
        self._near_one("inputs", X)
        self._near_one("labels", targets.values)
        if self._precomputed:
            assert isinstance(kernel, PrecomputedKernel)
            X = kernel.positions
        given = self._basis_of(X)
        if not counts.all():
            if isinstance(given, np.ndarray) and given.ndim == 1:
                given = X[given]
            X = X[counts]
        if self._reduces(given, kernel.function):
            with self._named(), one_thread:
                return self._train_reduced(X, targets, given, kernel, widths, ridges)
        vectors, columns = (None, None) if given is None else self._expansion(X, given)
        # one thread, so that the last bits do not depend on the number of threads
        with self._named(), one_thread:
            if not self._settled(kernel, widths, ridges):
                self._choose(kernel, selection.select, X, targets, widths, ridges, basis=vectors, columns=columns)
            else:
                selection.need_memory(len(X), len(X) if vectors is None else len(vectors), 1)
            with working("training" if self.progress else None):
                self.basis_ = X.copy() if vectors is None else vectors.copy()
                self._largest = np.abs(X).max(axis=0)
                self.reduced_ = None
                gram = self._gram(X)
                machine = problem(self._model, gram, targets, columns)
                solution = machine.solve(self.ridge_)
                self.alpha_, self.bias_ = solution.alpha, solution.bias
                # a linear model is frozen as weights of the inputs
                terms = (X, self.basis_.T @ self.alpha_) if self._linear else (gram, self.alpha_)
                self._cancellation = _cancellation(*terms)
                fisher = self._model == "kfd"
                self._size = float(
                    ((gram - gram.mean(axis=0)) ** 2).sum() if fisher else np.abs(gram).sum(axis=1).max()
                )
                return machine.leave_one_out(self.ridge_)

    def _train_reduced(
        self,
        X: np.ndarray,
        targets: Targets,
        given: Any,
        kernel: MercerKernel,
        widths: list[float] | None,
        ridges: list[float] | None,
    ) -> np.ndarray:
        """As ``_trained``, on a basis, with ``pykernel.training.reduced``."""
        options = dict(self.basis_params or {}) if isinstance(given, int) else {}
        seed = self._seed()
        if not self._settled(kernel, widths, ridges):
            self._choose(kernel, reduced.select_reduced, X, targets, widths, ridges, seed=seed, basis=given, **options)
        with working("training" if self.progress else None):
            basis = reduced.chosen_basis(
                X, self._mercer_kernel, given, {"seed": seed, **options} if isinstance(given, int) else {}
            )
            machine = reduced.ReducedProblem(self._model, basis, X, targets)
            solution, self.reduced_ = machine.coefficients(self.ridge_), machine.solve(self.ridge_)
            self.alpha_, self.bias_, self.basis_ = solution.alpha, solution.bias, basis.vectors.copy()
            self._largest = np.abs(X).max(axis=0)
            some = X[np.unique(np.linspace(0, len(X) - 1, reduced.ROWS_FOR_SCALE).astype(np.intp))]
            terms = (some, self.basis_.T @ self.alpha_) if self._linear else (self._gram(some), self.alpha_)
            self._cancellation = _cancellation(*terms)
            # the device's recursive least squares has another bound
            self._size = float((machine.all.scale**2).sum()) if self._model == "kfd" else 0.0
            return machine.leave_one_out(self.ridge_)

    def _settled(self, kernel: MercerKernel, widths: list[float] | None, ridges: list[float] | None) -> bool:
        """If there is only one width and one ridge, take them; returns whether this is so."""
        if widths is None or ridges is None or len(widths) * len(ridges) > 1:
            return False
        self._take(kernel, widths[0], ridges[0], None)
        return True

    def _choose(self, kernel: MercerKernel, select: Callable[..., Any], X: Any, targets: Any, widths: Any, ridges: Any,
                seed: int | None = None, **basis: Any) -> None:  # fmt: skip
        """Take the best of the candidates."""
        found = select(
            self._model, X, targets, kernel, widths, ridges, cv=plain(self.cv), by=getattr(self, "by", None),
            jobs=plain(self.jobs), progress=self.progress, seed=self._seed() if seed is None else seed, **basis,
        )  # fmt: skip
        self._take(kernel, found.width, found.ridge, found)

    def _take(self, kernel: MercerKernel, width: float, ridge: float, found: selection.Selection | None) -> None:
        """The kernel of a width, and a ridge; found: the choice that they come from, if there was one."""
        self.selection_, self.ridge_, self.optimism_ = found, ridge, 0.0 if found is None else found.optimism
        self._mercer_kernel = kernel.with_width(width)
        precomputed = kernel.function == "precomputed"
        self.kernel_ = {"function": "precomputed"} if precomputed else self._mercer_kernel.section()
        if kernel.function == "gaussian" and not isinstance(self.kernel, MercerKernel):
            self.kernel_ = {"function": "gaussian", "sigma": width}

    def _basis_of(self, X: np.ndarray) -> Any:
        """``basis``, checked: None, a Basis, how many vectors to choose, positions of samples or vectors."""
        basis, number = self.basis, plain(self.basis)
        if self.basis_params is not None and (type(number) is not int or not isinstance(self.basis_params, dict)):
            raise self._error(
                f"basis_params is {short(self.basis_params)}; it must be a dict, beside a basis that is a number of vectors"
            )
        if self.basis_params and "seed" in self.basis_params:
            raise self._error("basis_params holds seed; give random_state")
        if basis is None or isinstance(basis, Basis):
            if basis is not None and basis.vectors.shape[1] != X.shape[1]:
                raise self._error(
                    f"basis holds vectors of {basis.vectors.shape[1]} inputs; the samples have {X.shape[1]}"
                )
            return basis
        if type(number) is int and number > 0:
            return number
        try:
            given = np.asarray(basis)
        except ValueError:  # ragged
            given = np.zeros(0)
        if given.size and given.ndim == 1 and given.dtype.kind in "iu":
            wrong = given[(given < 0) | (given >= len(X))]
            if len(wrong):
                raise self._error(f"basis holds {wrong[0]}; positions of the {len(X)} samples are 0 to {len(X) - 1}")
            if len(np.unique(given)) < len(given):
                raise self._error("basis holds a position twice; each vector counts once")
            return given.astype(np.int64)
        if self._precomputed:
            raise self._error(
                f"basis is {short(basis)}; with a Gram matrix it must be positions of training samples, how many to choose, or None"
            )
        if given.size and given.ndim == 2 and given.dtype.kind in "iuf" and np.isfinite(given).all():
            if given.shape[1] != X.shape[1]:
                raise self._error(f"basis holds vectors of {given.shape[1]} inputs; the samples have {X.shape[1]}")
            return given.astype(np.float64)
        raise self._error(
            f"basis is {short(basis)}; it must be positions of training samples, finite vectors of {X.shape[1]} inputs, or "
            "None for all samples; or a Basis, or how many vectors to choose"
        )

    def _reduces(self, given: Any, function: str) -> bool:
        """Whether the model lies in the span of a basis that does not change when samples are left out."""
        if given is None:
            return False
        if function in INDEFINITE:
            raise self._error(f"the {function} kernel is not positive definite; a basis must have one that is")
        return True

    def _expansion(self, X: np.ndarray, given: Any) -> tuple[np.ndarray, np.ndarray]:
        """Expansion vectors, and the sample that each is (-1: none)."""
        if given.ndim == 1:
            return X[given], given
        return given, np.full(len(given), -1)

    def _choices(
        self, values: dict[str, Any], X: np.ndarray
    ) -> tuple[MercerKernel, list[float] | None, list[float] | None]:
        """The kernel, its widths, and the ridges to choose from (None: derived from the data).

        Raises UserError for parameters without an effect.
        """
        if isinstance(self.kernel, MercerKernel):
            kernel, name = self._kernel_as_it_is(self.kernel), None
        elif isinstance(self.basis, Basis):
            if "precomputed" in (self.kernel, self.basis.kernel.function):
                raise self._error(
                    "a Basis does not go with a Gram matrix; give positions, such as basis=chosen.indices"
                )
            kernel, name = self._kernel_of_basis(self.basis.kernel)
        else:
            kernel, name = self._kernel_by_name(values, X)
        widths = [kernel.width] if name is None else _candidates(values[name])
        if name is not None and widths and not EXTREME**-2 <= min(widths) <= max(widths) <= EXTREME**2:
            raise self._error(f"{name} is {short(values[name])}; its square must not overflow: scale the data")
        return kernel, widths, _candidates(values["ridge"])

    def _kernel_by_name(self, values: dict[str, Any], X: np.ndarray) -> tuple[MercerKernel, str | None]:
        """The kernel, and the name of its width (None: the width is fixed)."""
        function = values["kernel"]
        if not isinstance(function, str) or function not in SHAPED_BY:
            raise self._error(f"kernel is {function!r}; it must be one of {', '.join(SHAPED_BY)}, or a MercerKernel")
        for name in self._stated(*SHAPE):
            if name not in SHAPED_BY[function]:
                known = " and ".join(SHAPED_BY[function]) or "no parameters"
                raise self._error(
                    f"{name} is {getattr(self, name)!r}, which the {function} kernel does not have; it has {known}"
                )
        if function == "precomputed":
            with self._named():
                return PrecomputedKernel(matrix=X), None
        shape: dict[str, Any] = {"coef0": float(values["coef0"]), "degree": values["degree"]}
        shape = {key: value for key, value in shape.items() if key in SHAPED_BY[function]}
        return MercerKernel(function, **shape), selection.width_name(function)  # type: ignore[arg-type]

    def _kernel_as_it_is(self, kernel: MercerKernel) -> MercerKernel:
        self._alone(*SHAPE)
        if isinstance(self.basis, Basis) and self.basis.kernel != kernel:
            raise self._error("kernel is another than the one that basis was chosen with; leave kernel out")
        return kernel

    def _kernel_of_basis(self, kernel: MercerKernel) -> tuple[MercerKernel, str | None]:
        """The kernel of a given Basis.

        Other parameters of the kernel must agree with it or be missing; only the width may differ.
        """
        of_basis = {"kernel": kernel.function, "coef0": kernel.coef0, "degree": kernel.degree}
        for key in self._stated(*of_basis):
            given, theirs = plain(getattr(self, key)), of_basis[key]
            if given != theirs:
                raise self._error(f"{key} is {given!r}, but basis was chosen with {theirs!r}; leave {key} out")
        name = selection.width_name(kernel.function)  # type: ignore[arg-type]
        for other in ("sigma", "gamma"):
            if other != name and getattr(self, other) is not None:
                raise self._error(f"{other} is given, which the {kernel.function} kernel of basis does not have")
        return kernel, None if name is None or getattr(self, name) is None else name

    @property
    def _precomputed(self) -> bool:
        """Whether X is a Gram matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    # ---- prediction

    @property
    def gamma_(self) -> float:
        """The kernel's scale; of the Gaussian ``1 / (2 sigma_^2)``."""
        check_is_fitted(self)
        if self.kernel_["function"] == "precomputed":
            raise AttributeError("a precomputed kernel has no gamma")
        return self._mercer_kernel.gamma

    @property
    def sigma_(self) -> float:
        """The Gaussian kernel's width."""
        check_is_fitted(self)
        if self.kernel_["function"] != "gaussian":
            raise AttributeError(f"the {self.kernel_['function']} kernel has no sigma")
        return self.kernel_.get("sigma", self._mercer_kernel.width)

    @property
    def _linear(self) -> bool:
        """Whether functions are linear ones of the inputs."""
        return self._mercer_kernel.function == "linear" and not self._mercer_kernel.normalise

    def _gram(self, X: np.ndarray) -> np.ndarray:
        """Kernel values of samples and expansion vectors, (n, p)."""
        return self._mercer_kernel.gram(X, self.basis_)

    def _values(self, X: Any) -> np.ndarray:
        """Values of the functions at each sample, (n, o)."""
        return self._functions(self._inputs(X))

    def _functions(self, X: np.ndarray) -> np.ndarray:
        """As ``_values``, for inputs that are already checked."""
        if self._linear:
            return X @ (self.basis_.T @ self.alpha_) + self.bias_
        rows = max(1, BLOCK // len(self.basis_))
        with self._named():
            parts = [self._gram(X[i : i + rows]) @ self.alpha_ + self.bias_ for i in range(0, len(X), rows)]
        return np.concatenate(parts)

    # ---- to the device

    def _exported(self) -> None:
        """Raises UserError if no device can compute the model."""
        with self._named():
            self._mercer_kernel.section()

    def to_spec(
        self,
        name: str,
        *,
        precision: str | None = None,
        max_abs: float | None = None,
        distance: str = "auto",
        rule: str = "frozen",
    ) -> Spec:
        """The frozen model: expansion vectors, weights, biases and probabilities, for the device's flash.

        Of a pipeline that scales inputs first, ``pykernel.importers.importing.from_sklearn(pipeline, name)`` gives a
        model that takes them as they are.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        precision : {"float32", "float64"}, default=None
            None: the estimator's.
        max_abs : float, default=None
            Largest magnitude of an input; samples beyond are refused. None: a million times the largest in training, or
            less where that could overflow. A custom kernel, whose ``max_value`` is for such inputs, must have it.
        distance : {"auto", "differences", "products"}, default="auto"
            Gaussian kernel: how distances are computed. "products" takes fewer instructions and rounds more; "auto"
            uses "products" if its rounding error is small enough.
        rule : {"frozen", "nystrom"}, default="frozen"
            The spec's ``[learning] rule``. "nystrom", for models with ``reduced_``, has weights of projection features.
            The device then also computes these features, and the part of a sample that the basis leaves out
            (``NAME_features``, ``NAME_residual``). It needs p^2 / 2 more numbers of flash and as many more
            multiplications, has no probabilities, and loses as many digits as "frozen".

        Returns
        -------
        spec : Spec
            ``HostModel(spec)`` computes what the device will; ``spec.to_toml()`` is the spec as a file.

        Raises
        ------
        UserError
            If a name or number cannot be, or a number is beyond the precision; if the kernel is precomputed.

        Warns
        -----
        UserWarning
            If weights of both signs nearly cancel, so that float32 resolves the functions to less than about 1%.
        """
        check_is_fitted(self)
        precision = self.precision if precision is None else precision
        if rule not in ("frozen", "nystrom"):
            raise self._error(f'rule is {rule!r}; it must be "frozen" or "nystrom"')
        if rule == "nystrom":
            return self._nystrom(name, precision, max_abs, distance)
        spec = frozen(self._machine(), name, precision, plain(max_abs), distance=distance)  # type: ignore[arg-type]
        lost = 2.0**-23 * self._cancellation
        if precision == "float32" and lost > RESOLVED:
            warn(
                f"{self._where}: weights nearly cancel, so that float32 resolves the functions to about {lost:.0%} of their "
                "spread only; take a larger ridge, or precision='float64'"
            )
        return spec

    def _nystrom(self, name: str, precision: str, max_abs: float | None, distance: str) -> Spec:
        """The functions on projection features."""
        self._exported()
        if self.reduced_ is None:
            raise self._error('rule is "nystrom", which is of models on a basis; give basis when training')
        if distance != "auto":
            raise self._error(f'distance is {distance!r}, which is of rule "frozen"; leave it out')
        with self._named():
            content = reduced.nystrom_content(
                self.reduced_.basis, name, precision, self._largest, max_abs=plain(max_abs), columns=self._columns,
                label=self._label(self._columns), weights=self.reduced_.w, bias=self.reduced_.bias,
            )  # fmt: skip
        return self._made(content, self._mercer_kernel.custom)

    def _machine(self) -> Machine:
        """The functions as what makes frozen specs takes them."""
        self._exported()
        shape = {key: value for key, value in self._mercer_kernel.section().items() if key in MACHINES}
        return Machine(
            source=self._where,
            function=self.kernel_["function"],
            vectors=self.basis_,
            weights=self.alpha_,
            bias=self.bias_,
            **shape,
            custom=self._mercer_kernel.custom,
            calibration=getattr(self, "calibration_", None),
            columns=self._columns,
            label=self._label(self._columns),
            largest=float(self._largest.max()),
        )

    def _learning_content(
        self, name: str, precision: str | None, max_abs: float | None, scaler: Any, part: float = 1.0
    ) -> dict[str, Any]:
        """The content of a spec of a model that trains on the device, without [learning].

        part: the number of samples on the device, as a fraction of the samples here.
        """
        self._exported()
        centre, scale, columns = np.zeros(self.n_features_in_), np.ones(self.n_features_in_), self._columns
        if scaler is not None:
            centre, scale, columns = self._scaling(scaler)
        inputs = self._input_section(columns)
        if self._mercer_kernel.custom is not None and max_abs is None:
            raise self._error(
                "max_abs must be given with a custom kernel: max_value bounds the kernel only for inputs within max_abs"
            )
        reach = REACH_POLYNOMIAL if self.kernel_["function"] == "polynomial" else REACH
        largest = float((self._largest / scale + np.abs(centre)).max())
        inputs["max_abs"] = reach * (largest or 1.0) if max_abs is None else plain(max_abs)
        if scaler is not None:
            inputs |= {"center": centre.tolist(), "scale": scale.tolist()}
        precision = self.precision if precision is None else precision
        least = (LEAST_OF_TRACE if self._model == "kfd" else LEAST).get(precision, 0.0) * self._size * part
        if self.ridge_ < least:
            warn(
                f"{self._where}: ridge_ is {self.ridge_:.3g}; to train in {precision} on as many samples like these, "
                f"the device needs {least:.3g}: choose among larger ones, as ridge=[{2 * least:.2g}, …]"
                + (", or precision='float64'" if precision == "float32" else "")
            )
        label = self._label(columns)
        if hasattr(self, "_largest_label"):
            label["max_abs"] = REACH * (self._largest_label or 1.0)
        return {
            "name": name,
            "precision": precision,
            "input": inputs,
            "label": label,
            "kernel": dict(self.kernel_),
        }


# ------------------------------------------------------------------------------------------------------ classification


class _Classifier(ClassifiesByFunctions, _KernelMachine):
    """Base of the classifiers."""

    calibration_: np.ndarray
    loo_press_: float

    def __init__(
        self,
        kernel: str | MercerKernel = "gaussian",
        *,
        sigma: Any = None,
        gamma: Any = None,
        coef0: float = 1.0,
        degree: int = 3,
        ridge: Any = None,
        coding: str = "signs",
        basis: Any = None,
        basis_params: dict[str, Any] | None = None,
        cv: Any = "deleted",
        by: str = "error",
        jobs: int | str | None = None,
        progress: bool = False,
        precision: str = "float32",
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any) -> Self:
        """Train, after choosing what was left open, and calibrate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Classes: numbers, strings or whatever else can be sorted; two or more different ones.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter cannot be, or means nothing for the kernel; if there is only one class.
        ValueError
            If the data are not finite numbers of the right shape.
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._given()
        names = column_names(y)
        X, y = self._validated(X, y, ensure_min_samples=2)
        weights, counts = self._weights(sample_weight, X)
        classes, positions = self._classes_of(y[counts]), np.unique(y[counts], return_inverse=True)[1]
        with self._named():
            targets = Targets.of_classes(positions, len(classes), self.coding, weights)  # type: ignore[arg-type]
        values = self._train(X, targets, counts)
        left_out = values[counts]
        self.classes_, self._label_names = classes, names
        self.loo_predictions_ = self._flat(values)
        self.loo_error_, self.loo_press_ = error_rate(targets, left_out), press(targets, left_out)
        resolution = RESOLUTION * float(np.abs(targets.values).max())
        self.calibration_ = fit_calibration(left_out, positions, len(classes), resolution, weights)
        return self


class _Regressor(RegressesByFunctions, _KernelMachine):
    """Base of the regressors."""

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._given()
        names = column_names(y)
        X, y = self._validated(X, y, ensure_min_samples=2)
        weights, counts = self._weights(sample_weight, X)
        targets = Targets.of_values(y[counts], weights)
        values = self._train(X, targets, counts)
        self._label_names, self._shape, self._largest_label = names, y.shape[1:], float(np.abs(y).max())
        self.loo_predictions_ = values.reshape(y.shape)
        self.loo_error_ = press(targets, values[counts])
        return self


class _TrainsOnSamples(_KernelMachine):
    """Base of models that, on the device, collect samples and train on them.  Here, samples may have weights."""

    _fit: Callable[..., Self]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train, after choosing what was left open; a classifier is calibrated, too.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,), of regressors also (n_samples, n_outputs)
            Labels: numbers, which share the kernel and the ridge; of classifiers numbers, strings or whatever else can be
            sorted, two or more different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each sample counts, from 0: in the minimised squared error, in the leave-one-out errors and in the
            calibration. A sample is left out with all of its weight. For the same width and ridge, a weight of 2 gives
            the same model as two equal rows; leave-one-out differs, because it leaves out only one of two equal rows.
            The absolute size of the weights counts: doubling all weights is the same as halving the ridge.

        Returns
        -------
        self : estimator

        Raises
        ------
        UserError
            If a parameter cannot be, or means nothing for the kernel; if there is only one class, or a weight is below
            0.
        ValueError
            If the data are not finite numbers of the right shape.
        """
        return self._fit(X, y, sample_weight)

    def device_spec(
        self,
        name: str,
        *,
        samples: int | None = None,
        precision: str | None = None,
        max_abs: float | None = None,
        scaler: Any = None,
    ) -> Spec:
        """The model that learns on the device, with the kernel and the ridge found here.

        It keeps the last samples, trains on all of them when told to, and knows its leave-one-out error.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        samples : int, default=None
            How many samples the device keeps: memory is O(samples^2), training O(samples^3). None: as many as ``fit``
            had. With a basis, no samples are kept: each sample is learned when it arrives, in O(p^2), by recursive
            least squares (``nystrom-rls``).
        precision, max_abs, scaler
            As in ``to_spec``.

        Returns
        -------
        spec : Spec

        Raises
        ------
        UserError
            If a name or number is not valid; if ``coding`` is not "signs", the device's coding; if there is a basis and
            a bias, because the device's model on a basis has no bias.

        Warns
        -----
        UserWarning
            If the ridge is so small that the device would refuse to train.
        """
        check_is_fitted(self)
        if getattr(self, "coding", "signs") != "signs":
            raise self._error(f'coding is {self.coding!r}; the device learns "signs"')  # type: ignore[attr-defined]
        if self.reduced_ is not None:
            return self._device_spec_of_basis(name, samples, precision, max_abs, scaler)
        samples = len(self.basis_) if samples is None else plain(samples)
        part = samples / len(self.basis_) if isinstance(samples, int) else 1.0
        content = self._learning_content(name, precision, max_abs, scaler, part)
        return self._made(
            {**content, "learning": {"rule": self._model, "ridge": self.ridge_, "samples": samples}},
            self._mercer_kernel.custom,
        )

    def _device_spec_of_basis(self, name: str, samples: Any, precision: str | None, max_abs: Any, scaler: Any) -> Spec:
        if self._model == "ls-svm":
            raise self._error(
                "the device's recursive least squares on a basis has no bias; take a KernelRidgeRegressor or "
                "KernelRidgeClassifier, or all samples"
            )
        if samples is not None:
            raise self._error("samples is given, but on a basis no samples are kept; leave it out")
        assert self.reduced_ is not None
        content = self._learning_content(name, precision, max_abs, scaler)
        with self._named():
            reduced.need_distinct(self.reduced_.basis, content["precision"])
        content |= {"learning": {"rule": "nystrom-rls", "ridge": self.ridge_}, "basis": {"method": "given"}}
        return self._made(content | {"expansion": {"vectors": self.basis_.tolist()}}, self._mercer_kernel.custom)


@_documented
class KernelFisherClassifier(_Classifier):
    """Kernel Fisher discriminant, by regularised least squares on coded classes.

    The functions ``f(x) = k(x, basis_) alpha_ + bias_`` minimise ``|y - f|^2 + ridge |alpha|^2``. The targets y make
    this Fisher's discriminant: along alpha, the distance between classes is as large as possible, compared with their
    spread. Two classes share one function, which is positive for ``classes_[1]``. With more classes, each class has a
    function, and the largest decides.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMClassifier : The penalty is on the function, not on its weights; no basis.

    Notes
    -----
    With p vectors and n samples, ``fit`` takes O(n p min(n, p)) for each width and O(n p) for each ridge and function,
    leave-one-out included, which is equal to training anew (docs/kernel-machines.md).

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

    def __init__(
        self,
        kernel: str | MercerKernel = "gaussian",
        *,
        sigma: Any = None,
        gamma: Any = None,
        coef0: float = 1.0,
        degree: int = 3,
        ridge: Any = None,
        coding: str = "counts",
        basis: Any = None,
        basis_params: dict[str, Any] | None = None,
        cv: Any = "deleted",
        by: str = "error",
        jobs: int | str | None = None,
        progress: bool = False,
        precision: str = "float32",
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    def _reduces(self, given: Any, function: str) -> bool:
        """As in the base class.

        Given vectors that are samples are removed when these samples are left out, and work with any kernel.
        """
        return isinstance(given, (int, Basis)) and super()._reduces(given, function)

    def device_spec(
        self, name: str, *, precision: str | None = None, max_abs: float | None = None, scaler: Any = None
    ) -> Spec:
        """The model that learns on the device: ``basis_`` in flash, with the kernel and the ridge found here.

        The device takes samples one by one; its memory does not grow with their number. It trains when it is told to,
        and computes its leave-one-out error in a second pass over the samples.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        precision, max_abs, scaler
            As in ``to_spec``.

        Returns
        -------
        spec : Spec

        Raises
        ------
        UserError
            If a name or number cannot be, or ``coding`` is not that of the device, "counts".

        Warns
        -----
        UserWarning
            If the ridge is so small that the device would refuse to train.
        """
        check_is_fitted(self)
        if self.coding != "counts":
            raise self._error(f'coding is {self.coding!r}; the device learns "counts"')
        content = self._learning_content(name, precision, max_abs, scaler)
        content |= {"learning": {"rule": self._model, "ridge": self.ridge_}}
        return self._made(content | {"expansion": {"vectors": self.basis_.tolist()}}, self._mercer_kernel.custom)


@_documented
class LSSVMClassifier(_TrainsOnSamples, _Classifier):
    """Least-squares support vector machine: a kernel expansion over all samples with a free bias.

    The functions ``f(x) = k(x, basis_) alpha_ + bias_`` minimise ``|y - f|^2 + ridge |w|^2``, with w the function
    without its bias in the kernel's space: ``(K + ridge I) alpha + 1 bias = y``, ``1' alpha = 0``. Two classes share
    one function, which is positive for ``classes_[1]``. With more classes, each class has a function, and the largest
    decides.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    KernelFisherClassifier : The penalty is on the weights; any basis.
    KernelRidgeClassifier : The same without a bias.

    Notes
    -----
    With n samples, ``fit`` takes O(n^3) for each width and O(n^2) for each ridge and function, leave-one-out included,
    which is equal to training anew. SVM's parameter C is ``1 / ridge``.

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


@_documented
class KernelRidgeClassifier(_TrainsOnSamples, _Classifier):
    """Kernel ridge regression on classes, 1 and -1: a kernel expansion over all samples without a bias.

    The functions ``f(x) = k(x, basis_) alpha_`` minimise ``|y - f|^2 + ridge |f|^2``, with ``|f|`` in the kernel's
    space: ``(K + ridge I) alpha = y``. Two classes share one function, which is positive for ``classes_[1]``. With
    more classes, each class has a function, and the largest decides.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMClassifier : The same with a bias, which takes up how frequent classes are.

    Notes
    -----
    With n samples, ``fit`` takes O(n^3) for each width and O(n^2) for each ridge and function, leave-one-out included,
    which is equal to training anew.

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


@_documented
class LSSVMRegressor(_TrainsOnSamples, _Regressor):
    """Least-squares support vector machine for regression: kernel ridge regression with a free bias.

    The functions ``f(x) = k(x, basis_) alpha_ + bias_`` minimise ``|y - f|^2 + ridge |w|^2``, with w the function
    without its bias in the kernel's space: ``(K + ridge I) alpha + 1 bias = y``, ``1' alpha = 0``. Several labels share
    the kernel and the ridge, and are better scaled alike.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    KernelRidgeRegressor : The same without a bias.

    Notes
    -----
    With n samples, ``fit`` takes O(n^3) for each width and O(n^2) for each ridge and label, leave-one-out
    included, which is equal to training anew.

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
    precision = "float32"
    ...
    """

    _model = "ls-svm"


@_documented
class KernelRidgeRegressor(_TrainsOnSamples, _Regressor):
    """Kernel ridge regression, the mean of a Gaussian process: a kernel expansion over all samples without a bias.

    The functions ``f(x) = k(x, basis_) alpha_`` minimise ``|y - f|^2 + ridge |f|^2``, with ``|f|`` in the kernel's
    space: ``(K + ridge I) alpha = y``. Centre labels that are far from zero. Several labels share the kernel and the
    ridge, so scale them alike.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    LSSVMRegressor : The same with a bias.

    Notes
    -----
    With n samples, ``fit`` takes O(n^3) for each width and O(n^2) for each ridge and label, leave-one-out
    included, which is equal to training anew. ``sklearn.kernel_ridge.KernelRidge(alpha=ridge)`` is the same model.

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


def _cancellation(gram: np.ndarray, alpha: np.ndarray) -> float:
    """The sum of the magnitudes of an expansion's terms, in standard deviations of the terms' sum over samples.

    O(n p o).
    """
    spread = (gram @ alpha).std(axis=0)
    sizes = (np.abs(gram) @ np.abs(alpha)).mean(axis=0)
    return float((sizes[spread > 0] / spread[spread > 0]).max(initial=0.0))


def _candidates(given: Any) -> list[float] | None:
    """The candidates of a parameter: one number above 0, or several numbers to choose from; None if the value is
    invalid.
    """
    try:
        values = np.asarray(given)
        fits = values.dtype.kind in "iuf" and values.ndim <= 1 and bool(np.isfinite(values).all())
    except ValueError:  # ragged
        return None
    return np.unique(values.astype(np.float64)).tolist() if fits and values.size and (values > 0).all() else None
