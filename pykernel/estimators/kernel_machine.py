"""The common code of kernel machines with a closed-form solution: kernel, vectors, training, leave-one-out, and specs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.estimators.base import warn
from pykernel.estimators.functions import EXTREME, Expansion
from pykernel.estimators.parameters import FINITE, FOLDS, Must, Parameter, one_of, plain, short, whole
from pykernel.parallel import one_thread
from pykernel.progress import working
from pykernel.spec.kernel_settings import INDEFINITE
from pykernel.spec.model import Spec
from pykernel.training import reduced, selection
from pykernel.training.closed_form import problem
from pykernel.training.coding import Targets
from pykernel.training.machine import Machine
from pykernel.training.trained import to_spec

SHAPED_BY: dict[str, tuple[str, ...]] = {
    "gaussian": ("sigma",),
    "laplacian": ("gamma",),
    "matern12": ("gamma",),
    "matern32": ("gamma",),
    "matern52": ("gamma",),
    "polynomial": ("gamma", "coef0", "degree"),
    "linear": (),
    "sigmoid": ("gamma", "coef0"),
}
"""Kernel -> its parameters."""
SHAPE = ("sigma", "gamma", "coef0", "degree")
BLOCK = 2**22
"""Maximum number of kernel values that a prediction keeps in memory at once."""
MACHINES = ("gamma", "alpha", "coef0", "degree", "normalise", "max_value")
"""Keys of ``[kernel]`` that are also fields of a Machine."""
RESOLUTION = 1e-12
"""For the calibration, a function's leave-one-out predictions are treated as equal if half their range is at most this
fraction of the largest target's magnitude."""
RESOLVED = 0.01
"""A warning is issued if the rounding error in float32 exceeds this fraction of the functions' standard deviation."""

OPEN = Must(
    "a number above 0, a sequence of such numbers, or None",
    lambda v: v is None or _candidates(v) is not None,
)
HOW = Must(
    '"deleted", "kept", a number of folds, at least 2, a splitter or a list of pairs (train, test)',
    (one_of("deleted", "kept") | FOLDS).holds,
)
PROCESSES = Must("a number of processes, at least 1", lambda v: v is None or whole(1).holds(v))

PARAMETERS = {
    "kernel": Parameter(
        default="gaussian",
        kind=str | MercerKernel,
        text="""str or pykernel.bases.gram.MercerKernel
        "gaussian": ``exp(-|a - b|^2 / (2 sigma^2))``. "laplacian": ``exp(-gamma |a - b|_1)``. "matern12", "matern32"
        and "matern52": ``exp(-r)``, ``(1 + r) exp(-r)`` and ``(1 + r + r^2 / 3) exp(-r)`` with ``r = gamma |a - b|``.
        "polynomial": ``(gamma a'b + coef0)^degree``. "linear": ``a'b``. "sigmoid": ``tanh(gamma a'b + coef0)``; this
        kernel is not positive definite, so support vector machines refuse it, and LS-SVM and kernel ridge regression
        need a large ``ridge`` with this kernel. A MercerKernel, which may be normalised or custom, is used with its own
        parameters: no width is chosen.""",
    ),
    "sigma": Parameter(
        must=OPEN,
        text="""float or sequence of floats
        Width of the Gaussian kernel, in the inputs' unit. None: chosen by cross-validation from widths around the
        typical distance between samples. A sequence: chosen from these values.""",
    ),
    "gamma": Parameter(
        must=OPEN,
        text="""float or sequence of floats
        Scale of kernels other than the Gaussian and the linear kernel, chosen in the same way as ``sigma``. A parameter that
        the kernel does not have is refused.""",
    ),
    "coef0": Parameter(
        default=1.0,
        kind=float,
        must=FINITE,
        text="""float
        Constant of the polynomial and sigmoid kernels.""",
    ),
    "degree": Parameter(
        default=3,
        kind=int,
        must=whole(1, 9),
        text="""int
        Power of the polynomial kernel, from 1 to 9.""",
    ),
    "ridge": Parameter(
        must=OPEN,
        text="""float or sequence of floats
        Weight of the penalty. It is added to {ridge}.
        None: chosen by cross-validation from values in steps of half a decade, up to an upper bound on
        {ridge}. A sequence: chosen from these values.""",
    ),
    "coding": Parameter(
        default="signs",
        kind=str,
        text="""{"counts", "signs"}
        The targets of the function of a class with n_c of the n samples. "counts": ``n / n_c`` for samples of the class
        and ``-n / (n - n_c)`` for all others. "signs": 1 and -1. If the model has a bias, "counts" gives the same functions as
        "signs", but scaled and shifted so that their mean over all samples is 0. Small classes are then predicted more
        often, both correctly and by mistake.""",
    ),
    "basis": Parameter(
        text="""int, sequence of ints, array of shape (n_vectors, n_features) or pykernel.bases.basis.Basis
        The expansion vectors. A number: this many training samples are chosen, separately for each width. Otherwise:
        positions of training samples, an array of arbitrary vectors, or a Basis, whose kernel is used. None: all samples.
        With p vectors and n samples, training takes O(n p^2), and the frozen model has p vectors. {basis}""",
    ),
    "basis_params": Parameter(
        kind=dict[str, Any] | None,
        text="""dict
        How vectors are chosen if ``basis`` is a number or, for support vector machines, None: parameters of
        ``pykernel.bases.select.select_basis``, such as ``method``, ``candidates``, ``tau`` and ``epsilon``.""",
    ),
    "cv": Parameter(
        default="deleted",
        must=HOW,
        text="""{"deleted", "kept"}, int, splitter or list of splits
        How candidates (pairs of a width and a ridge) are compared. "deleted": leave-one-out, with the same result as
        retraining without each sample in turn. "kept": an estimate in which a left-out sample stays an expansion vector
        (docs/paper-004.md). "deleted" and "kept" differ only for the KernelFisherClassifier. A number: the number of
        stratified folds. A splitter of scikit-learn, or a list of pairs (train, test): its test sets are the folds, and each
        sample must be in exactly one of them.""",
    ),
    "by": Parameter(
        default="error",
        kind=str,
        must=one_of("error", "press"),
        text="""{"error", "press"}
        The criterion to minimise. "error": the error rate; if error rates are equal, the squared error. "press": the mean
        squared difference between predictions and targets. Candidates within 1 % of the minimum (2 % for squared
        differences) count as equal: of these, the one with the largest ridge is chosen and, if several have this ridge,
        the one with the smoothest kernel.""",
    ),
    "jobs": Parameter(
        kind=int | None,
        must=PROCESSES,
        text="""int
        Number of processes that compare candidates. Each process handles one width at a time. None: this process
        compares all candidates.""",
    ),
    "progress": Parameter(
        default=False,
        kind=bool,
        text="""bool
        Whether to show a progress bar, on a terminal or in a notebook.""",
    ),
    "precision": Parameter(
        default="float32",
        kind=str,
        must=one_of("float32", "float64"),
        text="""{"float32", "float64"}
        Number format of the spec that ``to_spec`` returns. Training is in float64.""",
    ),
    "random_state": Parameter(
        default=0,
        text="""int, RandomState or None
        Seed of the random choice of folds, and of expansion vectors if some are chosen.""",
    ),
}
"""The parameters of the family, with their descriptions for docstrings."""


ATTRIBUTES = {
    "classes_": """ndarray of shape (n_classes,)
        The classes, sorted. Class i on the device is ``classes_[i]``.""",
    "basis_": """ndarray of shape (n_vectors, n_features)
        Expansion vectors.""",
    "alpha_": """ndarray of shape (n_vectors, n_functions)
        Weights of the expansion vectors in each function. With numeric labels, there is one function for each label. Two
        classes share one function; with more classes, each class has a function.""",
    "bias_": """ndarray of shape (n_functions,)
        The constant added to each function; 0 if the model has no bias.""",
    "kernel_": """dict
        The kernel, as in a spec's ``[kernel]``. ``gamma_`` is the kernel's scale, and ``sigma_`` is the width
        of a Gaussian kernel.""",
    "ridge_": """float
        The penalty's weight.""",
    "reduced_": """pykernel.training.reduced.ReducedModel or None
        The same functions, as linear functions of the features L^-1 k(basis, x), where L L' is the basis's Gram matrix; ``reduced_.basis`` is the pykernel.bases.basis.Basis. None if
        ``basis`` is None. With the KernelFisherClassifier, also None if ``basis`` is an array or positions of samples.""",
    "selection_": """pykernel.training.selection.Selection or None
        All candidates and their errors, or None if there was only one candidate.""",
    "optimism_": """float
        Expected difference between the true error and the estimated error of the chosen candidate. The estimate is too
        low on average, because the candidate with the smallest estimate was chosen. 0 if there was only one candidate.""",
    "loo_predictions_": """ndarray of shape (n_samples,) or (n_samples, n_functions)
        Values of the functions at each training sample, from a model trained without that sample.""",
    "loo_error_": """float
        {error} of ``loo_predictions_``.""",
    "loo_press_": """float
        Mean squared difference between ``loo_predictions_`` and the functions' targets.""",
    "calibration_": """ndarray of shape (n_functions, 2)
        Coefficients (a, b) of each function's ``p = 1 / (1 + exp(a f + b))``, fitted to ``loo_predictions_``. If
        the class is not more frequent at larger predictions, a is 0, and p is about the class's share of the
        samples.""",
    "n_features_in_": """int
        Number of inputs.""",
    "feature_names_in_": """ndarray of shape (n_features_in_,)
        Names of the inputs, if the data had any; they become the spec's columns.""",
}
OF_CLASSIFIERS = ("classes_", "loo_press_", "calibration_")


class KernelMachine(Expansion):
    """Base of kernel machines with a closed-form solution: training, leave-one-out, and conversion to a spec.

    Support vector machines inherit from this class, too, but are trained by their own code.
    """

    _family, _attributes = PARAMETERS, ATTRIBUTES
    _words: ClassVar[dict[str, str]] = {
        "{ridge}": "the eigenvalues of the Gram matrix",
        "{error}": "Error rate",
        "{basis}": "If ``basis`` is given,\n    cross-validation keeps the vector of a left-out sample. "
        "Vectors in the span of earlier vectors are dropped.",
    }
    _model: ClassVar[Literal["kfd", "ls-svm", "krr"]]
    _grows: ClassVar[bool] = False
    """If ``basis`` is None: True if training chooses the vectors, False if all samples are vectors."""

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

    # ---- training

    def _train(self, X: np.ndarray, targets: Targets, counts: np.ndarray) -> np.ndarray:
        """Choose width and ridge, train, and return the leave-one-out predictions, (n, o).

        counts: a Boolean array, True for samples with a weight above 0.  Samples with a weight of 0 take no part in the training;
        for them, the result holds the predictions of the trained model.
        """
        left_out = self._trained(X, targets, counts)
        if counts.all():
            return left_out
        values = np.empty((len(X), left_out.shape[1]))
        values[counts], values[~counts] = left_out, self._functions(X[~counts])
        return values

    def _trained(self, X: np.ndarray, targets: Targets, counts: np.ndarray) -> np.ndarray:
        """Train on the samples with a weight above 0, and return the leave-one-out predictions for these samples, (samples, o)."""
        kernel, widths, ridges = self._choices(self._given())
        self._near_one("inputs", X)
        self._near_one("labels", targets.values)
        basis_param = self._basis_of(X)
        if not counts.all():
            if isinstance(basis_param, np.ndarray) and basis_param.ndim == 1:
                basis_param = X[basis_param]
            X = X[counts]
        if self._reduces(basis_param, kernel.function):
            with self._named(), one_thread:
                return self._train_reduced(X, targets, basis_param, kernel, widths, ridges)
        vectors, columns = (None, None) if basis_param is None else self._expansion(X, basis_param)
        # one thread, so that the last bits do not depend on the number of threads
        with self._named(), one_thread:
            if not self._settled(kernel, widths, ridges):
                self._choose(kernel, selection.select, X, targets, widths, ridges, basis=vectors, columns=columns)
            else:
                selection.need_memory(len(X), len(X) if vectors is None else len(vectors), 1)
            with working("training" if self.progress else None):
                self.basis_, self.reduced_ = X.copy() if vectors is None else vectors.copy(), None
                gram = self._gram(X)
                machine = problem(self._model, gram, targets, columns)
                self._solved(machine.solve(self.ridge_), X, X, gram)
                return self._left_out(machine)

    def _train_reduced(
        self,
        X: np.ndarray,
        targets: Targets,
        basis_param: Any,
        kernel: MercerKernel,
        widths: list[float] | None,
        ridges: list[float] | None,
    ) -> np.ndarray:
        """Train a model on a basis with ``pykernel.training.reduced``, and return the leave-one-out predictions, (samples, o)."""
        options = {"seed": self._seed(), **((self.basis_params or {}) if isinstance(basis_param, int) else {})}
        if not self._settled(kernel, widths, ridges):
            self._choose(kernel, reduced.select_reduced, X, targets, widths, ridges, basis=basis_param, **options)
        with working("training" if self.progress else None):
            basis = reduced.chosen_basis(
                X, self._mercer_kernel, basis_param, options if isinstance(basis_param, int) else {}
            )
            machine = reduced.ReducedProblem(self._model, basis, X, targets)
            self.basis_, self.reduced_ = basis.vectors.copy(), machine.solve(self.ridge_)
            some = X[np.unique(np.linspace(0, len(X) - 1, reduced.ROWS_FOR_SCALE).astype(np.intp))]
            self._solved(machine.coefficients(self.ridge_), X, some, None)
            return self._left_out(machine)

    def _left_out(self, machine: Any) -> np.ndarray:
        """Return each sample's prediction by a model trained without this sample or, if ``cv`` is a splitter or a list of splits, without its fold."""
        if isinstance(self._cv, selection.GroupFolds):
            return machine.leave_fold_out(
                self.ridge_, selection.stratified_folds(machine.targets, self._cv, self._seed())
            )
        return machine.leave_one_out(self.ridge_)

    def _solved(self, solution: Any, X: np.ndarray, some: np.ndarray, gram: np.ndarray | None) -> None:
        """Store a solution.  some: samples on which the cancellation is measured.  gram: kernel values of these samples, if known."""
        self.alpha_, self.bias_ = solution.alpha, solution.bias
        self._largest = np.abs(X).max(axis=0)
        if self._linear:  # the frozen spec of a linear model has a weight for each input
            self._cancellation = _cancellation(some, self.basis_.T @ self.alpha_)
        else:
            self._cancellation = _cancellation(self._gram(some) if gram is None else gram, self.alpha_)

    def _settled(self, kernel: MercerKernel, widths: list[float] | None, ridges: list[float] | None) -> bool:
        """If there is only one width and one ridge, store them and return True; otherwise return False."""
        if widths is None or ridges is None or len(widths) * len(ridges) > 1:
            return False
        self._take(kernel, widths[0], ridges[0], None)
        return True

    def _choose(self, kernel: MercerKernel, select: Callable[..., Any], X: Any, targets: Any, widths: Any, ridges: Any,
                seed: int | None = None, **basis: Any) -> None:  # fmt: skip
        """Compare the widths and ridges by cross-validation, and store the best pair."""
        found = select(
            self._model, X, targets, kernel, widths, ridges, cv=self._cv, by=getattr(self, "by", None),
            jobs=plain(self.jobs), progress=self.progress, seed=self._seed() if seed is None else seed, **basis,
        )  # fmt: skip
        self._take(kernel, found.width, found.ridge, found)

    def _take(self, kernel: MercerKernel, width: float, ridge: float, chosen: selection.Selection | None) -> None:
        """Store the width and the ridge.  chosen: the selection in which they were chosen, if any."""
        self.selection_, self.ridge_, self.optimism_ = chosen, ridge, 0.0 if chosen is None else chosen.optimism
        self._take_kernel(kernel, width)

    def _take_kernel(self, kernel: MercerKernel, width: float) -> None:
        self._mercer_kernel = kernel.with_width(width)
        self.kernel_ = self._mercer_kernel.section()
        if kernel.function == "gaussian" and not isinstance(self.kernel, MercerKernel):
            self.kernel_ = {"function": "gaussian", "sigma": width}

    def _basis_of(self, X: np.ndarray) -> Any:
        """Check ``basis``, and return None, a Basis, a number of vectors to choose, positions of samples, or vectors."""
        basis, number, where = self.basis, plain(self.basis), self._where
        chosen, options = type(number) is int and number > 0, self.basis_params
        where.need(
            options is None or ((type(number) is int or (self._grows and basis is None)) and isinstance(options, dict)),
            f"basis_params is {short(options)}; it must be a dict, and is allowed only if basis is a number of vectors"
            f"{' or None' if self._grows else ''}",
        )
        where.need("seed" not in (options or ()), 'basis_params contains "seed"; give random_state instead')
        if basis is None or chosen:
            return number
        values = basis.vectors if isinstance(basis, Basis) else _array(basis)
        if values.size and values.ndim == 1 and values.dtype.kind in "iu":
            for wrong in values[(values < 0) | (values >= len(X))]:
                raise where.error(f"basis holds {wrong}; positions of the {len(X)} samples are 0 to {len(X) - 1}")
            where.need(
                len(np.unique(values)) == len(values), "basis contains a position twice; leave out the repeated one"
            )
            return values.astype(np.int64)
        if not (values.size and values.ndim == 2 and values.dtype.kind in "iuf" and np.isfinite(values).all()):
            raise where.error(
                f"basis is {short(basis)}; it must be positions of training samples, finite vectors of "
                f"{X.shape[1]} inputs, a Basis, the number of vectors to choose, or None for all samples"
            )
        where.need(
            values.shape[1] == X.shape[1],
            f"basis holds vectors of {values.shape[1]} inputs; the samples have {X.shape[1]}",
        )
        return basis if isinstance(basis, Basis) else values.astype(np.float64)

    def _reduces(self, basis: Any, function: str) -> bool:
        """Return True if the model is trained on a fixed basis, which stays the same when samples are left out.

        Raises UserError if a basis is given, but the kernel is not positive definite.
        """
        self._where.need(
            basis is None or function not in INDEFINITE,
            f"the {function} kernel is not positive definite; a basis needs a positive definite kernel",
        )
        return basis is not None

    def _expansion(self, X: np.ndarray, basis: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the expansion vectors, and the position of each among the samples.

        If the vectors are given as an array, all positions are -1.
        """
        return (X[basis], basis) if basis.ndim == 1 else (basis, np.full(len(basis), -1))

    def _choices(self, values: dict[str, Any]) -> tuple[MercerKernel, list[float] | None, list[float] | None]:
        """Return (kernel, widths, ridges).

        widths, ridges: the values to choose from, or None if they are derived from the data.
        Raises UserError for parameters that have no effect.
        """
        basis, name, where = self.basis, None, self._where
        if isinstance(self.kernel, MercerKernel):
            kernel = self.kernel
            self._alone(*SHAPE)
            where.need(
                not isinstance(basis, Basis) or basis.kernel == kernel,
                "the parameter kernel differs from the kernel with which basis was chosen; leave kernel out",
            )
        elif isinstance(basis, Basis):
            kernel, name = self._kernel_of_basis(basis.kernel)
        else:
            kernel, name = self._kernel_by_name(values)
        widths = [kernel.width] if name is None else _candidates(values[name])
        where.need(
            name is None or not widths or EXTREME**-2 <= min(widths) <= max(widths) <= EXTREME**2,
            f"{name} is {short(values.get(name or ''))}; its square must not overflow or underflow: scale the data",
        )
        return kernel, widths, _candidates(values.get("ridge"))

    def _kernel_by_name(self, values: dict[str, Any]) -> tuple[MercerKernel, str | None]:
        """Return the kernel, and the name of the parameter that sets its width (None if the width is fixed)."""
        function, where = values["kernel"], self._where
        where.need(
            isinstance(function, str) and function in SHAPED_BY,
            f"kernel is {function!r}; it must be one of {', '.join(SHAPED_BY)}, or a MercerKernel",
        )
        shaped = SHAPED_BY[function]
        has = ", ".join(shaped) or "no parameters"
        for name in set(self._stated(*SHAPE)).difference(shaped):
            given = getattr(self, name)
            raise where.error(f"{name} is {given!r}, but the {function} kernel has no {name}; the kernel has {has}")
        shape: dict[str, Any] = {"coef0": float(values["coef0"]), "degree": values["degree"]}
        shape = {key: value for key, value in shape.items() if key in shaped}
        return MercerKernel(function, **shape), selection.width_name(function)  # type: ignore[arg-type]

    def _kernel_of_basis(self, kernel: MercerKernel) -> tuple[MercerKernel, str | None]:
        """Return the kernel of a given Basis, and the name of the parameter that sets its width (None if the basis sets the width).

        Kernel parameters that the user gives must equal those of the basis, except the width, which may differ.
        """
        of_basis, where = {"kernel": kernel.function, "coef0": kernel.coef0, "degree": kernel.degree}, self._where
        for key in self._stated(*of_basis):
            given, theirs = plain(getattr(self, key)), of_basis[key]
            where.need(given == theirs, f"{key} is {given!r}, but basis was chosen with {theirs!r}; leave {key} out")
        name = selection.width_name(kernel.function)  # type: ignore[arg-type]
        for other in {"sigma", "gamma"} - {name}:
            where.need(
                getattr(self, other) is None,
                f"{other} is given, but the {kernel.function} kernel of basis has no {other}",
            )
        return kernel, None if name is None or getattr(self, name) is None else name

    # ---- prediction

    @property
    def gamma_(self) -> float:
        """The kernel's scale, which is ``1 / (2 sigma_^2)`` for the Gaussian kernel."""
        check_is_fitted(self)
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
        """Whether the functions are linear in the inputs."""
        return self._mercer_kernel.function == "linear" and not self._mercer_kernel.normalise

    def _gram(self, X: np.ndarray) -> np.ndarray:
        """Return the kernel values between samples and expansion vectors, (n, p)."""
        return self._mercer_kernel.gram(X, self.basis_)

    def _values(self, X: Any) -> np.ndarray:
        """Return the values of the functions at each sample, (n, o)."""
        return self._functions(self._inputs(X))

    def _functions(self, X: np.ndarray) -> np.ndarray:
        """Return the values of the functions for inputs that are already checked, (n, o)."""
        if self._linear:
            return X @ (self.basis_.T @ self.alpha_) + self.bias_
        rows = max(1, BLOCK // len(self.basis_))
        with self._named():
            parts = [self._gram(X[i : i + rows]) @ self.alpha_ + self.bias_ for i in range(0, len(X), rows)]
        return np.concatenate(parts)

    # ---- to the device

    def to_spec(
        self,
        name: str,
        *,
        precision: str | None = None,
        max_abs: float | None = None,
        distance: str = "auto",
    ) -> Spec:
        """Return the spec of the frozen model, with its expansion vectors, weights, biases and calibration.

        For a pipeline that scales inputs first, ``pykernel.importers.importing.from_sklearn(pipeline, name)`` returns the
        spec of a model that takes unscaled inputs.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        precision : {"float32", "float64"}, default=None
            None: the estimator's precision.
        max_abs : float, default=None
            Largest magnitude of an input; samples with a larger input are refused. None: a million times the largest input in
            training, or less if this limit could cause overflow. Required for a custom kernel, because its ``max_value`` holds
            only for inputs within this limit.
        distance : {"auto", "differences", "products"}, default="auto"
            For the Gaussian kernel: how distances are computed. "products" takes fewer instructions, but has larger rounding
            errors. "auto" uses "products" if these errors are small enough.

        Returns
        -------
        spec : Spec
            ``HostModel(spec)`` computes the same results as the device; ``spec.to_toml()`` returns the text of the spec file.

        Raises
        ------
        UserError
            If a name or number is invalid, or a number exceeds the range of the precision.

        Warns
        -----
        UserWarning
            If weights of both signs nearly cancel, so that rounding errors in float32 exceed 1 % of the functions' standard
            deviation.
        """
        check_is_fitted(self)
        precision = self.precision if precision is None else precision
        spec = to_spec(self._machine(), name, precision, plain(max_abs), distance=distance)  # type: ignore[arg-type]
        lost = 2.0**-23 * self._cancellation
        if precision == "float32" and lost > RESOLVED:
            warn(
                f"{self._where}: weights nearly cancel, so that rounding errors in float32 reach about {lost:.0%} of the "
                "standard deviation of the model's values; use a larger ridge, or precision='float64'"
            )
        return spec

    def _machine(self) -> Machine:
        """The functions as a Machine, from which frozen specs are made."""
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


def _cancellation(gram: np.ndarray, alpha: np.ndarray) -> float:
    """Return a measure of the cancellation between the terms of an expansion.  O(n p o).

    For each function, the sum of the terms' magnitudes is averaged over the samples, and divided by the standard deviation
    of the function's values.  The result is the largest of these ratios.
    """
    spread = (gram @ alpha).std(axis=0)
    sizes = (np.abs(gram) @ np.abs(alpha)).mean(axis=0)
    return float((sizes[spread > 0] / spread[spread > 0]).max(initial=0.0))


def _array(value: Any) -> np.ndarray:
    """Return the value as an array, or an empty array if the value cannot be converted."""
    try:
        return np.asarray(value)
    except ValueError:  # rows of different lengths
        return np.zeros(0)


def _candidates(value: Any) -> list[float] | None:
    """Return one or several numbers above 0 as a sorted list, or None if ``value`` is anything else."""
    values = _array(value)
    fits = values.dtype.kind in "iuf" and values.ndim <= 1 and bool(np.isfinite(values).all())
    return np.unique(values.astype(np.float64)).tolist() if fits and values.size and (values > 0).all() else None
