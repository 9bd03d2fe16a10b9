"""The models as scikit-learn estimators."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.expansion import Status
from pykernel.host import HostModel
from pykernel.spec import Spec, make_spec

try:
    from sklearn.base import BaseEstimator, RegressorMixin  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtra("BudgetedKernelRegressor", "sklearn") from error

LIMIT = 1e6
"""Derived limits: in sigmas for inputs (float32 hardly resolves the kernel there), in largest |y| for labels."""
PATIENCE = 32
"""So many refusals in a row are worth a warning."""
WHERE = "BudgetedKernelRegressor"


class BudgetedKernelRegressor(RegressorMixin, BaseEstimator):
    """Kernel regression that learns online, in fixed memory, bit for bit as on a microcontroller.

    The model is an expansion ``f(x) = sum_i alpha_i k(v_i, x)`` of at most ``n_max`` Gaussian kernels. Each sample is
    predicted, and its error corrected by the part ``eta``; when that exceeds the budget, the vector that matters least
    goes. There is no intercept: labels far from zero are better centred.

    Everything is computed in ``precision`` by the same source that ``pykernel.generate`` prints as C, so a device that
    starts from a fitted estimator continues with the same bytes.

    Parameters
    ----------
    technique : {"mklms", "fklms", "nt"}, default="mklms"
        How the budget is kept. "mklms" removes the vector whose loss changes the function least, and projects it onto
        the others; it keeps an ``n_max`` x ``n_max`` factor of the inverse Gram matrix. "nt" drops the smallest
        multiplier and "fklms" one of the closest pair; neither keeps a matrix. "fklms" takes stored vectors as
        orthogonal: where many lie within a ``sigma`` of each other, it diverges.
    n_max : int, default=32
        The budget: most expansion vectors.
    sigma : float or "scale", default="scale"
        Width of the kernel ``exp(-|a - b|^2 / (2 sigma^2))``, in the inputs' unit. "scale" takes
        ``sigma^2 = n_features * v / 2``, with ``v`` the mean over features of their variance in the data of ``fit``
        or of the first ``partial_fit``: the width of ``SVR(gamma="scale")`` on centred data.
    eta : float, default=0.5
        Learning rate, in (0, 2): the part of an error that one presentation corrects.
    rho : float, default=0.0
        Decay: each presentation leaves ``1 - eta * rho`` of every multiplier. Above zero, the model forgets.
    ridge : float, default=1e-3
        Added to the Gram matrix's diagonal ("mklms").
    gate : float, default=None
        A sample is absorbed by the stored vectors, rather than stored, if at most this part of it is new to them.
        None: ``2 * ridge``.
    precision : {"float32", "float64"}, default="float32"
        Number format of the model, on the host and on the device.
    n_epochs : int, default=5
        Passes that ``fit`` makes over the data, in order.
    input_limit : float, default=None
        Largest magnitude of an input; samples beyond are refused. None: ``1e6 * sigma``.
    label_limit : float, default=None
        Largest magnitude of a label; samples beyond are refused. None: ``1e6 * max(1, |y|)``, over the labels of
        ``fit`` or of the first ``partial_fit``.

    Attributes
    ----------
    spec_ : Spec
        The model's parameters with everything derived: what the code generator takes.
    model_ : HostModel
        The learned state, ``model_.memory``, and the functions that work on it.
    status_counts_ : dict of str to int
        What became of each update since the start, by the name of the status: ADDED, REPLACED, DISCARDED, ABSORBED,
        MERGED; REFUSED_INPUT, REFUSED_LABEL (beyond a limit), REFUSED_MULTIPLIER (learning would diverge).
        A refused sample leaves the model unchanged.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any; they become the spec's columns.

    Notes
    -----
    An update costs O(n_max n_features) operations, with "mklms" O(n_max^2 + n_max n_features), whatever the number of
    samples seen; a prediction costs O(n_max n_features). The state has about ``n_max * (n_features + 1)`` numbers, and
    ``n_max ** 2`` more with "mklms".

    Parameters are read when learning starts, by ``fit`` or the first ``partial_fit``; later ``partial_fit`` calls
    continue with ``spec_``. Nothing is shuffled: the order of samples is the order of learning.

    References
    ----------
    Mitchinson, B., Dodd, T. J. and Harrison, R. F. (2003). Reduction of Kernel Models. Research Report 836, Department
    of Automatic Control and Systems Engineering, University of Sheffield. Model: eq. 1; learning: eq. 2-6; "mklms":
    eq. 12 and 13; kernel: eq. 15; "fklms": eq. 16 and 17; "nt": section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from pykernel import BudgetedKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, (600, 1))
    >>> y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=600)
    >>> model = BudgetedKernelRegressor(n_max=16).fit(x[:300], y[:300])
    >>> round(model.score(x[300:], y[300:]), 1)
    1.0
    >>> model = model.partial_fit(x[300:], y[300:])
    >>> model.predict([[-0.8], [0.8]]).round()
    array([-1.,  1.], dtype=float32)
    >>> print(model.to_spec("wave").to_toml())  # doctest: +ELLIPSIS
    name = "wave"
    precision = "float32"
    ...
    """

    spec_: Spec
    model_: HostModel
    status_counts_: dict[str, int]

    def __init__(
        self,
        technique: str = "mklms",
        *,
        n_max: int = 32,
        sigma: float | str = "scale",
        eta: float = 0.5,
        rho: float = 0.0,
        ridge: float = 1e-3,
        gate: float | None = None,
        precision: str = "float32",
        n_epochs: int = 5,
        input_limit: float | None = None,
        label_limit: float | None = None,
    ) -> None:
        self.technique = technique
        self.n_max = n_max
        self.sigma = sigma
        self.eta = eta
        self.rho = rho
        self.ridge = ridge
        self.gate = gate
        self.precision = precision
        self.n_epochs = n_epochs
        self.input_limit = input_limit
        self.label_limit = label_limit

    def fit(self, X: Any, y: Any) -> BudgetedKernelRegressor:
        """Forget everything, then learn the samples in order, ``n_epochs`` times.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : BudgetedKernelRegressor

        Raises
        ------
        UserError
            If a parameter cannot be.
        ValueError
            If the data are not finite numbers of the right shape, or ``sigma="scale"`` finds no variance.
        """
        epochs = _plain(self.n_epochs)
        if type(epochs) is not int or epochs < 1:
            raise UserError(f"{WHERE}: n_epochs is {epochs!r}; it must be a whole number from 1")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._start(X, y)
        self._learn(X, y, epochs)
        return self

    def partial_fit(self, X: Any, y: Any) -> BudgetedKernelRegressor:
        """Learn the samples in order, once, from where the model is.

        The first call decides what is derived from data: ``sigma="scale"`` and ``label_limit=None``. Calls with parts
        of a stream are one call with the whole of it, to the byte.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : BudgetedKernelRegressor
        """
        first = not hasattr(self, "model_")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=first)
        if first:
            self._start(X, y)
        self._learn(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values of the learned function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,) and dtype ``precision``
            The numbers that the device computes; NaN, with a warning, where it would refuse the input as beyond
            ``input_limit``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with np.errstate(over="ignore"):  # what overflows is refused
            y = self.model_.predict(X)
        refused = np.count_nonzero(np.isnan(y))
        if refused:
            limit = self.spec_.input.limit
            warnings.warn(
                f"{refused} of {len(y)} samples have an input beyond the limit of {limit:g}: their prediction is NaN",
                stacklevel=2,
            )
        return y

    def refresh(self) -> BudgetedKernelRegressor:
        """Remove the rounding errors that the factor of "mklms" has gathered.  O(n_max^3 + n_max^2 n_features).

        Due about every 1000 updates that stored a vector. Never done unasked: it changes the state, and the device
        must do it at the same sample to keep the same bytes.
        """
        check_is_fitted(self)
        self.model_.refresh()
        return self

    def to_spec(self, name: str) -> Spec:
        """The model's parameters under a name for its C symbols; ``to_spec(name).to_toml()`` is the spec as a file."""
        check_is_fitted(self)
        return make_spec({**self.spec_.model_dump(exclude_unset=True), "name": name}, WHERE)

    def _start(self, X: np.ndarray, y: np.ndarray) -> None:
        """A new model, with what is derived from the data."""
        given = {name: _plain(value) for name, value in self.get_params().items()}
        sigma = _width(given["sigma"], X)
        if given["input_limit"] is None:
            given["input_limit"] = LIMIT * sigma
        if given["label_limit"] is None:
            given["label_limit"] = LIMIT * max(1.0, float(np.abs(y).max()))
        names = getattr(self, "feature_names_in_", None)
        inputs = {"dim": X.shape[1]} if names is None else {"columns": [str(name) for name in names]}
        content = {
            "name": "model",
            "precision": given["precision"],
            "input": {**inputs, "limit": given["input_limit"]},
            "label": {"limit": given["label_limit"]},
            "kernel": {"sigma": sigma},
            "learning": {key: given[key] for key in ("eta", "rho")},
            "reduction": {key: given[key] for key in ("technique", "n_max", "ridge", "gate")},
        }
        self.spec_ = make_spec(content, WHERE)
        self.model_ = HostModel(self.spec_)
        self.status_counts_ = {status.name: 0 for status in Status if status}
        self._last_statuses = np.zeros(0, np.int32)

    def _learn(self, X: np.ndarray, y: np.ndarray, epochs: int = 1) -> None:
        with np.errstate(over="ignore"):  # what overflows is refused
            statuses = np.concatenate([self.model_.learn(X, y) for _ in range(epochs)])
        codes, counts = np.unique(statuses, return_counts=True)
        for code, count in zip(codes, counts, strict=True):
            self.status_counts_[Status(int(code)).name] += int(count)
        self._last_statuses = np.concatenate([self._last_statuses, statuses])[-PATIENCE:]
        if Status.REFUSED_MULTIPLIER in codes:
            trouble: str | None = 'learning diverges: lower eta, or for "fklms" sigma'
        else:
            trouble = self._refusal()
        if trouble:
            warnings.warn(f"{trouble}; to start afresh call fit, or partial_fit on a clone", stacklevel=3)

    def _refusal(self) -> str | None:
        """What to do about it, if nothing is learned any more."""
        if self._last_statuses.max() >= 0:
            return None
        limits = []
        if Status.REFUSED_INPUT in self._last_statuses:
            limits.append(f"input_limit from {self.spec_.input.limit:g}")
        if Status.REFUSED_LABEL in self._last_statuses:
            limits.append(f"label_limit from {self.spec_.label.limit:g}")
        return f"the last {len(self._last_statuses)} updates were all refused: raise {' and '.join(limits)}"


def _width(sigma: Any, X: np.ndarray) -> float:
    """The kernel's width, derived from the inputs if need be."""
    if isinstance(sigma, str) and sigma == "scale":
        with np.errstate(over="ignore"):
            sigma = math.sqrt(X.var(axis=0).sum() / 2)
        if sigma == 0:
            found = "1 sample" if len(X) == 1 else f"{len(X)} equal samples"
            raise ValueError(
                f'sigma="scale" is derived from how the first samples differ, and these are {found}; '
                "start with more, or give sigma as a number"
            )
    if type(sigma) not in (int, float) or not 0 < sigma < math.inf:
        raise UserError(f'{WHERE}: sigma is {sigma!r}; it must be a number above 0 or "scale"')
    return sigma


def _plain(value: Any) -> Any:
    """NumPy's scalars, as parameter grids hold them, as Python's."""
    return value.item() if isinstance(value, np.generic) else value
