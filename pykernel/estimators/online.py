"""The models as scikit-learn estimators."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.host.model import HostModel
from pykernel.spec.families.linear import RANDOM
from pykernel.spec.families.linear import RULES as LINEAR_RULES
from pykernel.spec.families.online import projection_of
from pykernel.spec.family import AT_ONCE
from pykernel.spec.model import Learning, Reduction, Spec, make_spec
from pykernel.spec.model import _plain as _visible
from pykernel.training.trained import class_names

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtra("pykernel.estimators.online", "sklearn") from error

# after scikit-learn, which brings SciPy
from pykernel.bases.gram import MercerKernel

LIMIT = 1e6
"""Derived limits: in sigmas for inputs (float32 hardly resolves the kernel there), in largest |y| for labels."""
LINEAR_LIMIT = 1e3
"""The derived limit of inputs that no sigma measures, in largest |x|: what linear rules square must not overflow."""
PATIENCE = 32
"""So many refusals in a row are worth a warning."""
NO_KERNEL = tuple(rule for rule in LINEAR_RULES if rule not in RANDOM)
"""Rules without a sigma."""
KERNEL_KEYS = ("kernel", "gamma", "coef0", "degree", "normalise")
"""Parameters of the kernel, beside sigma."""
GRADIENT = ("klms", "qklms", "nlms")
"""Rules that correct part of an error; the others are least squares, where a second pass counts every sample twice."""
GRADIENT_EPOCHS = 5


class _BudgetedKernelModel(BaseEstimator):
    """What regressor and classifier share: parameters, the spec made of them, and learning in order."""

    spec_: Spec
    model_: HostModel
    status_counts_: dict[str, int]

    def __init__(
        self,
        technique: str | None = None,
        *,
        rule: str = "klms",
        n_max: int | None = None,
        sigma: float | str | None = None,
        kernel: str | MercerKernel | None = None,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: int | None = None,
        normalise: bool = False,
        eta: float | None = None,
        rho: float | None = None,
        step_limit: float | None = None,
        quantisation: float | None = None,
        forgetting: float | None = None,
        noise: float | None = None,
        relabel: bool = False,
        covariance: float | None = None,
        features: int | None = None,
        seed: int | None = None,
        ridge: float | None = None,
        gate: float | None = None,
        projection: str | None = None,
        penalty: float | None = None,
        when: str | None = None,
        candidates: str | None = None,
        lambda_max: float | None = None,
        removals: int | None = None,
        truncate_below: float | None = None,
        truncate_age: int | None = None,
        tie: str | None = None,
        fading: float | None = None,
        force: bool = False,
        precision: str = "float32",
        n_epochs: int | None = None,
        input_limit: float | None = None,
    ) -> None:
        self.technique = technique
        self.rule = rule
        self.n_max = n_max
        self.sigma = sigma
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.normalise = normalise
        self.eta = eta
        self.rho = rho
        self.step_limit = step_limit
        self.quantisation = quantisation
        self.forgetting = forgetting
        self.noise = noise
        self.relabel = relabel
        self.covariance = covariance
        self.features = features
        self.seed = seed
        self.ridge = ridge
        self.gate = gate
        self.projection = projection
        self.penalty = penalty
        self.when = when
        self.candidates = candidates
        self.lambda_max = lambda_max
        self.removals = removals
        self.truncate_below = truncate_below
        self.truncate_age = truncate_age
        self.tie = tie
        self.fading = fading
        self.force = force
        self.precision = precision
        self.n_epochs = n_epochs
        self.input_limit = input_limit

    def novelty(self, X: Any) -> np.ndarray:
        """How much of each sample is new to the model: its residual power.  O(n_max (n_max + n_features)) each.

        The squared distance of ``k(x, .)`` from what the expansion vectors span: near 0 beside them, 1 (and up to
        ``ridge`` more) far from all of them. Techniques that keep no matrix measure to the nearest vector alone,
        ``1 - k^2``. It asks nothing of labels, so it tells a drifting sensor from a new operating point before either
        has been learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            From 0 to ``1 + ridge``, as the device's ``NAME_novelty`` computes it; NaN, with a warning, where it would
            refuse the input.

        Raises
        ------
        UserError
            If the rule is a linear one, whose features span everything.
        """
        X = self._inputs(X)
        if not self.model_.has("novelty"):
            raise UserError(
                f"{self._where}: rule {self.spec_.learning.rule!r} is linear and knows no novelty; it takes a rule "
                "with a kernel, such as 'klms'"
            )
        return self._finite(self.model_.novelty(X))

    def refresh(self) -> Self:
        """Remove the rounding errors that the factor of the Gram matrix has gathered.  O(n_max^3 + n_max^2 n_features).

        Due about every 1000 updates that stored a vector, for techniques and rules that keep such a factor; nothing is
        done for others. Never done unasked: it changes the state, and the device must do it at the same sample to keep
        the same bytes.
        """
        check_is_fitted(self)
        self.model_.refresh()
        return self

    def to_spec(self, name: str) -> Spec:
        """The model's parameters under a name for its C symbols; ``to_spec(name).to_toml()`` is the spec as a file."""
        check_is_fitted(self)
        return make_spec({**self.spec_.model_dump(exclude_unset=True), "name": name}, self._where, self.spec_.own)

    @property
    def _where(self) -> str:
        """What an error's sentence begins with."""
        return type(self).__name__

    def _epochs(self) -> int:
        epochs = _plain(self.n_epochs)
        if epochs is None:
            return GRADIENT_EPOCHS if self.rule in GRADIENT else 1
        if type(epochs) is not int or epochs < 1:
            raise UserError(f"{self._where}: n_epochs is {epochs!r}; it must be a whole number from 1")
        return epochs

    def _start(self, X: np.ndarray, label: dict[str, Any], label_names: list[str]) -> None:
        """A new model, with what is derived from the data; parameters that were not given are left to the spec."""
        params = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        given = {k: v for k, v in params.items() if v is not None and not (k in ("force", "normalise") and v is False)}
        names = getattr(self, "feature_names_in_", None)
        inputs = {"dim": X.shape[1]} if names is None else {"columns": [str(name) for name in names]}
        if label_names and names is not None and not set(label_names) & set(names):
            label |= {"columns": label_names} if label.pop("outputs", None) else {"column": label_names[0]}
        content = {
            "name": "model",
            "precision": params["precision"],
            "input": inputs,
            "label": label,
        }
        online = [key for key in Learning.model_fields if key not in AT_ONCE["learning"]]
        for section, keys in (("learning", online), ("reduction", list(Reduction.model_fields))):
            if found := {key: given[key] for key in keys if key in given}:
                content[section] = found
        limit = LINEAR_LIMIT * (float(np.abs(X).max()) or 1.0)
        if given.keys() & {"sigma", *KERNEL_KEYS} or params["rule"] not in NO_KERNEL:
            content["kernel"], limit = _kernel(given, X, limit, self._where)
        inputs["limit"] = given.get("input_limit", limit)
        own = params["kernel"].own if isinstance(params["kernel"], MercerKernel) else None
        self.spec_ = make_spec(content, self._where, own)
        self.model_ = HostModel(self.spec_)
        self.status_counts_ = {status.name: 0 for status in self.spec_.program.status}
        self._last_statuses = np.zeros(0, np.int32)

    def _learn(self, X: np.ndarray, y: np.ndarray, epochs: int = 1) -> None:
        statuses = np.concatenate([self.model_.learn(X, y) for _ in range(epochs)])
        codes, counts = np.unique(statuses, return_counts=True)
        met = {self.spec_.program.status(int(code)).name: int(n) for code, n in zip(codes, counts, strict=True)}
        for name, count in met.items():
            self.status_counts_[name] += count
        self._last_statuses = np.concatenate([self._last_statuses, statuses])[-PATIENCE:]
        trouble: str | None
        if met.keys() & {"REFUSED_MULTIPLIER", "REFUSED_WEIGHT"}:
            trouble = "learning diverges: " + self._remedy()
        else:
            trouble = self._refusal()
        if trouble:
            warnings.warn(f"{trouble}; to start afresh call fit, or partial_fit on a clone", stacklevel=3)

    def _remedy(self) -> str:
        """What to do about divergence."""
        rule = self.spec_.learning.rule
        if rule in LINEAR_RULES:
            return f"scale the inputs to magnitudes near 1, or lower {'eta' if rule in GRADIENT else 'covariance'}"
        if rule not in GRADIENT:
            return "raise ridge"
        # which takes kernel functions as orthogonal
        return "lower sigma or eta" if projection_of(self.spec_) == "fklms" else "lower eta"

    def _refusal(self) -> str | None:
        """What to do about it, if nothing is learned any more."""
        if self._last_statuses.max() >= 0:
            return None
        status, limits = self.spec_.program.status, []
        if status["REFUSED_INPUT"] in self._last_statuses:
            limits.append(f"input_limit from {self.spec_.input.limit:g}")
        if status["REFUSED_LABEL"] in self._last_statuses:
            limits.append(f"label_limit from {self.spec_.label.limit:g}")
        return f"the last {len(self._last_statuses)} updates were all refused: raise {' and '.join(limits)}"

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)

    def _finite(self, values: np.ndarray) -> np.ndarray:
        """What the device computes, in float64; a warning for the samples that it would refuse."""
        refused = np.count_nonzero(np.isnan(values.reshape(len(values), -1)[:, 0]))
        if refused:
            limit = self.spec_.input.limit
            warnings.warn(
                f"{refused} of {len(values)} samples have an input beyond the limit of {limit:g}: they give NaN",
                stacklevel=3,
            )
        return values.astype(np.float64)


class BudgetedKernelRegressor(RegressorMixin, _BudgetedKernelModel):
    """Kernel regression that learns online, in fixed memory, bit for bit as on a microcontroller.

    The model is an expansion ``f(x) = sum_i alpha_i k(v_i, x)`` of at most ``n_max`` kernels. Each sample is
    predicted, and its error corrected as ``rule`` says; when that exceeds the budget, the vector that matters least
    goes. Several labels share the vectors, with multipliers of their own. Rules of linear models, on the inputs, their
    products or random features, are there to compare with, or because they are enough. Kernel rules have no intercept:
    labels far from zero are better centred.

    Everything is computed in ``precision`` by the same source that ``pykernel.generate`` prints as C, so a device that
    starts from a fitted estimator continues with the same bytes.

    Parameters
    ----------
    technique : {"nt", "at", "klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms", "afklms", \
"afmklms"}, default="mklms"
        How the budget is kept: which vector goes, and how the others make up for it. "mklms" removes the vector whose
        loss changes the function least, and projects it onto the others; it keeps an ``n_max`` x ``n_max`` factor of
        the inverse Gram matrix. "nt" drops the smallest multiplier, "at" the oldest vector and "fklms" one of the
        closest pair; none of them keeps a matrix. "fklms" takes stored vectors as orthogonal: where many lie within a
        ``sigma`` of each other, it diverges. The others are described in docs/online.md; "afmklms" needs ``force``.
    rule : {"klms", "qklms", "krls-t", "fb-krls", "ald-krls", "nlms", "rls", "quadratic-rls", "rff-rls"}, \
default="klms"
        How a sample changes the model. "klms": stochastic gradient. "qklms": the same; a sample near a stored vector
        only changes that vector's multiplier. "krls-t": recursive least squares that can forget, and knows its
        variance. "fb-krls": least squares on the samples that are stored. "ald-krls": recursive least squares; vectors
        are added while there is room, and never removed. Linear in fixed features: "nlms" and "rls" in the inputs,
        "quadratic-rls" in their products too, "rff-rls" in random Fourier features, which stand for the kernel; all
        with an intercept.
    n_max : int, default=32
        The budget: most expansion vectors.
    sigma : float or "scale", default="scale"
        Width of the kernel ``exp(-|a - b|^2 / (2 sigma^2))``, in the inputs' unit. "scale" takes
        ``sigma^2 = n_features * v / 2``, with ``v`` the mean over features of their variance in the data of ``fit``
        or of the first ``partial_fit``: the width of ``SVR(gamma="scale")`` on centred data.
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear"} or pykernel.bases.gram.MercerKernel, \
default="gaussian"
        ``k(a, b)``: ``exp(-gamma |a - b|_1)`` for "laplacian"; ``(1 + r) exp(-r)`` and ``(1 + r + r^2 / 3) exp(-r)`` with
        ``r = gamma |a - b|`` for "matern32", "matern52"; ``(gamma a'b + coef0)^degree`` for "polynomial"; ``a'b`` for
        "linear". "rff-rls" has features of the first four. A MercerKernel is taken as it is, with its own gamma, coef0,
        degree and normalise; it may be a kernel of your own, which takes ``input_limit``.
    gamma : float or "scale", default="scale"
        The kernel's gamma; for "gaussian" in place of ``sigma``: ``1 / (2 sigma^2)``. "scale" derives it from the
        ``sigma`` that "scale" would give: ``1 / (sigma sqrt(2 n_features))`` for "laplacian", ``sqrt(3) / sigma`` and
        ``sqrt(5) / sigma`` for "matern32" and "matern52", ``1 / (2 sigma^2)`` for "polynomial".
    coef0 : float, default=0.0
        "polynomial": what is added to ``gamma a'b``; not below 0.
    degree : int, default=3
        "polynomial": the exponent.
    normalise : bool, default=False
        "polynomial", "linear": whether ``k(a, b)`` is divided by ``sqrt(k(a, a) k(b, b))``.
    eta : float, default=0.5
        "klms", "qklms", "nlms": learning rate, in (0, 2): the part of an error that one presentation corrects.
        "fb-krls": the part that a sample too near to be stored corrects.
    rho : float, default=0.0
        "klms", "qklms": decay: each presentation leaves ``1 - eta * rho`` of every multiplier. Above zero, the model
        forgets.
    step_limit : float, default=None
        "klms", "qklms": most that one sample may change the function at its place, whatever its label. None: any.
    quantisation : float, default=0.3
        "qklms": a sample goes to the nearest vector if that is within so many ``sigma``; ``1 / gamma`` for "laplacian",
        "matern32" and "matern52"; for others the sine of the angle between the two, below 1.
    forgetting : float, default=1.0
        "krls-t", "rls", "quadratic-rls", "rff-rls": what a sample's weight is multiplied by at each later one, in
        (0.5, 1]; about the last ``1 / (1 - forgetting)`` samples count.
    noise : float, default=0.01
        "krls-t": variance of the labels' noise, in parts of the function's variance.
    relabel : bool, default=False
        "fb-krls": move the labels of stored samples towards what comes.
    covariance : float, default=100.0
        "rls", "quadratic-rls", "rff-rls": variance of the weights before the first sample; its inverse is the ridge
        penalty.
    features : int, default=None
        "rff-rls": how many random features; None: 64.
    seed : int, default=0
        "rff-rls": which random features.
    ridge : float, default=None
        Techniques and rules with a Gram matrix: added to its diagonal. None: 1e-3; "fb-krls": 0.1.
    gate : float, default=None
        A sample is absorbed by the stored vectors, rather than stored, if at most this part of it is new to them.
        None: ``2 * ridge``.
    projection : {"none", "klms", "fklms", "bounded", "ls", "lsridge"}, default=None
        How the other vectors make up for the one that goes. None: the technique's own. "krls-t" and "fb-krls" keep the
        values at the vectors that stay, which is "klms".
    penalty : float, default=1e-4
        "lsreg", "lsridge": weight of the squared multipliers.
    when : {"after", "before"}, default="after"
        "klms", "qklms": whether the newest sample competes with the stored vectors, or a full model makes room before it
        is predicted.
    candidates : {"all", "newest"}, default="all"
        Which vectors may go; "newest": only the sample itself, once the budget is full.
    lambda_max : float, default=None
        Vectors go as soon as losing them costs at most this, whether the budget is full or not. None: only when full.
    removals : int, default=1
        With ``lambda_max`` or truncation: most vectors that one update removes, beyond the one that a new sample
        displaces.
    truncate_below : float, default=None
        "klms", "qklms": vectors with multipliers smaller than this are dropped. None: none.
    truncate_age : int, default=None
        "klms", "qklms": vectors that many samples old are dropped. None: none.
    tie : {"smaller", "newest", "oldest"}, default="smaller"
        Which of equally dispensable vectors goes: that of the smaller multiplier, the newest or the oldest.
    fading : float, default=1.0
        What a vector's claim to stay is multiplied by at each later sample that does not come near it, in (0.5, 1]; 0.999
        follows a world that changes.
    force : bool, default=False
        Take a combination of technique, projection and tie that is known to diverge.
    precision : {"float32", "float64"}, default="float32"
        Number format of the model, on the host and on the device.
    n_epochs : int, default=None
        Passes that ``fit`` makes over the data, in order. None: 5 for "klms", "qklms" and "nlms", which correct a part
        of each error; 1 for least squares, which would take what is repeated for evidence.
    input_limit : float, default=None
        Largest magnitude of an input; samples beyond are refused. None: ``1e6 * sigma`` (or ``/ gamma``), or with neither,
        and for dot products as far as they do not overflow,
        ``1e3 * |x|``, for the largest input of ``fit`` or of the first ``partial_fit``.
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
        MERGED (linear rules: DONE); REFUSED_INPUT, REFUSED_LABEL (beyond a limit), REFUSED_MULTIPLIER or
        REFUSED_WEIGHT (learning would diverge). A refused sample leaves the model unchanged.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any; they become the spec's columns, and so do those of labels.

    See Also
    --------
    BudgetedKernelClassifier : The same for classes.

    Notes
    -----
    Parameters whose default is None, or a number of the spec, mean what docs/spec.md says. One that means nothing for
    the rule or the technique is refused when it is given.

    An update costs O(n_max n_features) operations with "nt", "at" and the fast techniques, and
    O(n_max^2 + n_max n_features) with the others and with rules of least squares, whatever the number of samples seen;
    a prediction costs O(n_max n_features). The state has about ``n_max * (n_features + n_outputs)`` numbers, and
    ``n_max ** 2`` more for each matrix that is kept. ``pykernel plan`` and ``pykernel sweep`` choose.

    Parameters are read when learning starts, by ``fit`` or the first ``partial_fit``; later ``partial_fit`` calls
    continue with ``spec_``. Nothing is shuffled: the order of samples is the order of learning.

    References
    ----------
    Mitchinson, B., Dodd, T. J. and Harrison, R. F. (2003). Reduction of Kernel Models. Research Report 836, Department
    of Automatic Control and Systems Engineering, University of Sheffield. Model: eq. 1; learning, "klms": eq. 2-6;
    techniques: section 2; kernel: eq. 15.

    Chen, B., Zhao, S., Zhu, P. and Príncipe, J. C. (2012). Quantized Kernel Least Mean Square Algorithm. IEEE
    Transactions on Neural Networks and Learning Systems 23(1). "qklms".

    Van Vaerenbergh, S., Lázaro-Gredilla, M. and Santamaría, I. (2012). Kernel Recursive Least-Squares Tracker for
    Time-Varying Regression. IEEE Transactions on Neural Networks and Learning Systems 23(8). "krls-t".

    Van Vaerenbergh, S., Santamaría, I., Liu, W. and Príncipe, J. C. (2010). Fixed-Budget Kernel Recursive
    Least-Squares. ICASSP. "fb-krls".

    Engel, Y., Mannor, S. and Meir, R. (2004). The Kernel Recursive Least-Squares Algorithm. IEEE Transactions on
    Signal Processing 52(8). "ald-krls".

    Rahimi, A. and Recht, B. (2007). Random Features for Large-Scale Kernel Machines. NIPS. "rff-rls".

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
    array([-1.,  1.])
    >>> print(model.to_spec("wave").to_toml())  # doctest: +ELLIPSIS
    name = "wave"
    precision = "float32"
    ...

    Two labels, and how sure the model is of them, beside the data and far from any:

    >>> model = BudgetedKernelRegressor(rule="krls-t", sigma=0.5).fit(x, np.column_stack([y, -y]))
    >>> means, deviations = model.predict([[0.8], [9.0]], return_std=True)
    >>> means.round()
    array([[ 1., -1.],
           [ 0.,  0.]])
    >>> deviations[:, 0].round(1)
    array([0.1, 0.9])
    """

    def __init__(
        self,
        technique: str | None = None,
        *,
        rule: str = "klms",
        n_max: int | None = None,
        sigma: float | str | None = None,
        kernel: str | MercerKernel | None = None,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: int | None = None,
        normalise: bool = False,
        eta: float | None = None,
        rho: float | None = None,
        step_limit: float | None = None,
        quantisation: float | None = None,
        forgetting: float | None = None,
        noise: float | None = None,
        relabel: bool = False,
        covariance: float | None = None,
        features: int | None = None,
        seed: int | None = None,
        ridge: float | None = None,
        gate: float | None = None,
        projection: str | None = None,
        penalty: float | None = None,
        when: str | None = None,
        candidates: str | None = None,
        lambda_max: float | None = None,
        removals: int | None = None,
        truncate_below: float | None = None,
        truncate_age: int | None = None,
        tie: str | None = None,
        fading: float | None = None,
        force: bool = False,
        precision: str = "float32",
        n_epochs: int | None = None,
        input_limit: float | None = None,
        label_limit: float | None = None,
    ) -> None:
        super().__init__(
            technique,
            rule=rule,
            n_max=n_max,
            sigma=sigma,
            kernel=kernel,
            gamma=gamma,
            coef0=coef0,
            degree=degree,
            normalise=normalise,
            eta=eta,
            rho=rho,
            step_limit=step_limit,
            quantisation=quantisation,
            forgetting=forgetting,
            noise=noise,
            relabel=relabel,
            covariance=covariance,
            features=features,
            seed=seed,
            ridge=ridge,
            gate=gate,
            projection=projection,
            penalty=penalty,
            when=when,
            candidates=candidates,
            lambda_max=lambda_max,
            removals=removals,
            truncate_below=truncate_below,
            truncate_age=truncate_age,
            tie=tie,
            fading=fading,
            force=force,
            precision=precision,
            n_epochs=n_epochs,
            input_limit=input_limit,
        )
        self.label_limit = label_limit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the samples in order, ``n_epochs`` times.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        self : BudgetedKernelRegressor

        Raises
        ------
        UserError
            If a parameter cannot be, or means nothing for the rule or the technique.
        ValueError
            If the data are not finite numbers of the right shape, or ``sigma="scale"`` finds no variance.
        """
        epochs, names = self._epochs(), _column_names(y)
        X, y = self._validated(X, y, reset=True)
        self._begin(X, y, names)
        self._learn(X, self._labels(y), epochs)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn the samples in order, once, from where the model is.

        The first call decides the number of outputs and what is derived from data: ``sigma="scale"`` and limits.
        Calls with parts of a stream are one call with the whole of it, to the byte.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        self : BudgetedKernelRegressor
        """
        first, names = not hasattr(self, "model_"), _column_names(y)
        X, y = self._validated(X, y, reset=first)
        if first:
            self._begin(X, y, names)
        self._learn(X, self._labels(y))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Values of the learned function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to return standard deviations too, which "krls-t" knows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The numbers that the device computes, in float64; NaN, with a warning, where it would refuse the input as
            beyond ``input_limit``.
        std : ndarray of the same shape
            With ``return_std``: standard deviations of the labels, in their unit, noise included. Their scale is
            estimated from the errors so far; it is one for all outputs.

        Raises
        ------
        UserError
            If ``return_std`` is asked of another rule than "krls-t".
        """
        X = self._inputs(X)
        if return_std and not self.model_.has("variance"):
            raise UserError(
                f"{self._where}: rule {self.spec_.learning.rule!r} does not know how sure it is; for return_std give "
                "rule='krls-t'"
            )
        y = self._finite(self.model_.predict(X)).reshape(self._shape(len(X)))
        if not return_std:
            return y
        std = np.sqrt(self.model_.variance(X).astype(np.float64))
        return y, np.repeat(std, y.size // len(y)).reshape(y.shape)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True, reset=reset)
        if hasattr(y, "toarray"):
            raise ValueError(f"{self._where} takes labels as a dense array, not a sparse one")
        return X, np.asarray(y, np.float64)

    def _begin(self, X: np.ndarray, y: np.ndarray, names: list[str]) -> None:
        limit = _plain(self.label_limit)
        label: dict[str, Any] = {"limit": LIMIT * max(1.0, float(np.abs(y).max())) if limit is None else limit}
        if y.ndim == 2 and y.shape[1] > 1:
            label["outputs"] = y.shape[1]
        self._start(X, label, names)
        self._outputs = None if y.ndim == 1 else y.shape[1]

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """Labels in the shape that the model takes: (n,) for one output, a column too."""
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if outputs != self.spec_.outputs:
            raise ValueError(f"y has {outputs} outputs, but the {self._where} learns {self.spec_.outputs}")
        return y.reshape(-1) if outputs == 1 else y

    def _shape(self, samples: int) -> tuple[int, ...]:
        """That of predictions: as the first labels were."""
        return (samples,) if self._outputs is None else (samples, self._outputs)


class BudgetedKernelClassifier(ClassifierMixin, _BudgetedKernelModel):
    """Kernel classification that learns online, in fixed memory, bit for bit as on a microcontroller.

    Two classes are the sign of one function, ``f(x) = sum_i alpha_i k(v_i, x)`` with at most ``n_max`` Gaussian
    kernels; more have a function each, with multipliers of their own over shared vectors, and the largest wins
    (one-vs-rest). The functions learn to be 1 for their class and -1 for the others, but what is beyond, on the right
    side, is no error. Rules and techniques are those of `BudgetedKernelRegressor`.

    Everything is computed in ``precision`` by the same source that ``pykernel.generate`` prints as C: a device that
    starts from a fitted estimator classifies as ``predict`` does, and continues with the same bytes.

    Parameters
    ----------
    technique : {"nt", "at", "klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms", "afklms", \
"afmklms"}, default="mklms"
        How the budget is kept: which vector goes, and how the others make up for it. "mklms" removes the vector whose
        loss changes the function least, and projects it onto the others; it keeps an ``n_max`` x ``n_max`` factor of
        the inverse Gram matrix. "nt" drops the smallest multiplier, "at" the oldest vector and "fklms" one of the
        closest pair; none of them keeps a matrix. "fklms" takes stored vectors as orthogonal: where many lie within a
        ``sigma`` of each other, it diverges. The others are described in docs/online.md; "afmklms" needs ``force``.
    rule : {"klms", "qklms", "krls-t", "fb-krls", "ald-krls", "nlms", "rls", "quadratic-rls", "rff-rls"}, \
default="klms"
        How a sample changes the model. "klms": stochastic gradient. "qklms": the same; a sample near a stored vector
        only changes that vector's multiplier. "krls-t": recursive least squares that can forget, and knows its
        variance. "fb-krls": least squares on the samples that are stored. "ald-krls": recursive least squares; vectors
        are added while there is room, and never removed. Linear in fixed features: "nlms" and "rls" in the inputs,
        "quadratic-rls" in their products too, "rff-rls" in random Fourier features, which stand for the kernel; all
        with an intercept.
    n_max : int, default=32
        The budget: most expansion vectors.
    sigma : float or "scale", default="scale"
        Width of the kernel ``exp(-|a - b|^2 / (2 sigma^2))``, in the inputs' unit. "scale" takes
        ``sigma^2 = n_features * v / 2``, with ``v`` the mean over features of their variance in the data of ``fit``
        or of the first ``partial_fit``: the width of ``SVR(gamma="scale")`` on centred data.
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "polynomial", "linear"} or pykernel.bases.gram.MercerKernel, \
default="gaussian"
        ``k(a, b)``: ``exp(-gamma |a - b|_1)`` for "laplacian"; ``(1 + r) exp(-r)`` and ``(1 + r + r^2 / 3) exp(-r)`` with
        ``r = gamma |a - b|`` for "matern32", "matern52"; ``(gamma a'b + coef0)^degree`` for "polynomial"; ``a'b`` for
        "linear". "rff-rls" has features of the first four. A MercerKernel is taken as it is, with its own gamma, coef0,
        degree and normalise; it may be a kernel of your own, which takes ``input_limit``.
    gamma : float or "scale", default="scale"
        The kernel's gamma; for "gaussian" in place of ``sigma``: ``1 / (2 sigma^2)``. "scale" derives it from the
        ``sigma`` that "scale" would give: ``1 / (sigma sqrt(2 n_features))`` for "laplacian", ``sqrt(3) / sigma`` and
        ``sqrt(5) / sigma`` for "matern32" and "matern52", ``1 / (2 sigma^2)`` for "polynomial".
    coef0 : float, default=0.0
        "polynomial": what is added to ``gamma a'b``; not below 0.
    degree : int, default=3
        "polynomial": the exponent.
    normalise : bool, default=False
        "polynomial", "linear": whether ``k(a, b)`` is divided by ``sqrt(k(a, a) k(b, b))``.
    eta : float, default=0.5
        "klms", "qklms", "nlms": learning rate, in (0, 2): the part of an error that one presentation corrects.
        "fb-krls": the part that a sample too near to be stored corrects.
    rho : float, default=0.0
        "klms", "qklms": decay: each presentation leaves ``1 - eta * rho`` of every multiplier. Above zero, the model
        forgets.
    step_limit : float, default=None
        "klms", "qklms": most that one sample may change the function at its place, whatever its label. None: any.
    quantisation : float, default=0.3
        "qklms": a sample goes to the nearest vector if that is within so many ``sigma``; ``1 / gamma`` for "laplacian",
        "matern32" and "matern52"; for others the sine of the angle between the two, below 1.
    forgetting : float, default=1.0
        "krls-t", "rls", "quadratic-rls", "rff-rls": what a sample's weight is multiplied by at each later one, in
        (0.5, 1]; about the last ``1 / (1 - forgetting)`` samples count.
    noise : float, default=0.01
        "krls-t": variance of the labels' noise, in parts of the function's variance.
    relabel : bool, default=False
        "fb-krls": move the labels of stored samples towards what comes.
    covariance : float, default=100.0
        "rls", "quadratic-rls", "rff-rls": variance of the weights before the first sample; its inverse is the ridge
        penalty.
    features : int, default=None
        "rff-rls": how many random features; None: 64.
    seed : int, default=0
        "rff-rls": which random features.
    ridge : float, default=None
        Techniques and rules with a Gram matrix: added to its diagonal. None: 1e-3; "fb-krls": 0.1.
    gate : float, default=None
        A sample is absorbed by the stored vectors, rather than stored, if at most this part of it is new to them.
        None: ``2 * ridge``.
    projection : {"none", "klms", "fklms", "bounded", "ls", "lsridge"}, default=None
        How the other vectors make up for the one that goes. None: the technique's own. "krls-t" and "fb-krls" keep the
        values at the vectors that stay, which is "klms".
    penalty : float, default=1e-4
        "lsreg", "lsridge": weight of the squared multipliers.
    when : {"after", "before"}, default="after"
        "klms", "qklms": whether the newest sample competes with the stored vectors, or a full model makes room before it
        is predicted.
    candidates : {"all", "newest"}, default="all"
        Which vectors may go; "newest": only the sample itself, once the budget is full.
    lambda_max : float, default=None
        Vectors go as soon as losing them costs at most this, whether the budget is full or not. None: only when full.
    removals : int, default=1
        With ``lambda_max`` or truncation: most vectors that one update removes, beyond the one that a new sample
        displaces.
    truncate_below : float, default=None
        "klms", "qklms": vectors with multipliers smaller than this are dropped. None: none.
    truncate_age : int, default=None
        "klms", "qklms": vectors that many samples old are dropped. None: none.
    tie : {"smaller", "newest", "oldest"}, default="smaller"
        Which of equally dispensable vectors goes: that of the smaller multiplier, the newest or the oldest.
    fading : float, default=1.0
        What a vector's claim to stay is multiplied by at each later sample that does not come near it, in (0.5, 1]; 0.999
        follows a world that changes.
    force : bool, default=False
        Take a combination of technique, projection and tie that is known to diverge.
    precision : {"float32", "float64"}, default="float32"
        Number format of the model, on the host and on the device.
    n_epochs : int, default=None
        Passes that ``fit`` makes over the data, in order. None: 5 for "klms", "qklms" and "nlms", which correct a part
        of each error; 1 for least squares, which would take what is repeated for evidence.
    input_limit : float, default=None
        Largest magnitude of an input; samples beyond are refused. None: ``1e6 * sigma`` (or ``/ gamma``), or with neither,
        and for dot products as far as they do not overflow,
        ``1e3 * |x|``, for the largest input of ``fit`` or of the first ``partial_fit``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. What the device calls class i is ``classes_[i]``.
    spec_ : Spec
        The model's parameters with everything derived: what the code generator takes. Its classes are those of
        ``classes_`` as text.
    model_ : HostModel
        The learned state, ``model_.memory``, and the functions that work on it.
    status_counts_ : dict of str to int
        What became of each update since the start, by the name of the status: ADDED, REPLACED, DISCARDED, ABSORBED,
        MERGED (linear rules: DONE); REFUSED_INPUT (beyond the limit), REFUSED_MULTIPLIER or REFUSED_WEIGHT (learning
        would diverge). A refused sample leaves the model unchanged.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any; they become the spec's columns, and so do those of labels.

    See Also
    --------
    BudgetedKernelRegressor : The same for numbers; its notes and references hold here too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import BudgetedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> model = BudgetedKernelClassifier(n_max=16).fit(X[:100], y[:100])
    >>> round(model.score(X[100:], y[100:]), 1)
    1.0
    >>> model.decision_function(X[100:102]).shape
    (2, 3)
    >>> model.spec_.label.classes
    ('0', '1', '2')
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the samples in order, ``n_epochs`` times.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Classes: numbers, strings or whatever else can be sorted; from 2 to 64 different ones.

        Returns
        -------
        self : BudgetedKernelClassifier

        Raises
        ------
        UserError
            If a parameter cannot be, or means nothing for the rule or the technique; if there is only one class.
        ValueError
            If the data are not finite numbers of the right shape, or ``sigma="scale"`` finds no variance.
        """
        epochs, names = self._epochs(), _column_names(y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self._begin(X, np.unique(y), names)
        self._learn(X, self._positions(y), epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn the samples in order, once, from where the model is.

        The first call decides what is derived from data: ``sigma="scale"`` and limits. Calls with parts of a stream are
        one call with the whole of it, to the byte.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,), default=None
            All classes that there will be. The first call needs them; later ones may repeat them.

        Returns
        -------
        self : BudgetedKernelClassifier
        """
        first = not hasattr(self, "model_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes, all that there will be")
        names = _column_names(y)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        if classes is not None:
            classes = np.unique(column_or_1d(classes))
            if not first and not np.array_equal(classes, self.classes_):
                raise ValueError(f"classes are {classes}, but the first call of partial_fit had {self.classes_}")
        if first:
            self._begin(X, classes, names)
        self._learn(X, self._positions(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes that the device's ``NAME_classify`` gives.

        Raises
        ------
        UserError
            If an input is beyond ``input_limit``: the device would refuse to tell the sample's class.
        """
        X = self._inputs(X)
        positions = self.model_.classify(X)
        refused = np.count_nonzero(positions < 0)
        if refused:
            raise UserError(
                f"{self._where}: {refused} of {len(X)} samples have an input beyond the limit of "
                f"{self.spec_.input.limit:g} and cannot be classified; leave them out, or learn with a larger input_limit"
            )
        return self.classes_[positions]

    def decision_function(self, X: Any) -> np.ndarray:
        """Values of the learned functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: one value, above 0 for ``classes_[1]``. More: one for each class, of which the largest wins,
            the first of equal ones. The numbers that the device computes, in float64; NaN, with a warning, where it
            would refuse the input as beyond ``input_limit``.
        """
        X = self._inputs(X)
        return self._finite(self.model_.predict(X))

    def _begin(self, X: np.ndarray, classes: np.ndarray, names: list[str]) -> None:
        if len(classes) < 2:
            raise UserError(
                f"{self._where}: y holds one class, {classes.tolist()[0]!r}; a classifier needs samples of two or more"
            )
        self._start(X, {"classes": class_names(classes.tolist())}, names)
        self.classes_ = classes

    def _positions(self, y: np.ndarray) -> np.ndarray:
        """Where each sample's class is in ``classes_``."""
        known = {value: position for position, value in enumerate(self.classes_.tolist())}
        values, inverse = np.unique(y, return_inverse=True)
        strange = [value for value in values.tolist() if value not in known]
        if strange:
            raise ValueError(f"y holds {strange[0]!r}, which is not one of the classes, {self.classes_.tolist()}")
        return np.array([known[value] for value in values.tolist()], np.int32)[inverse]


def _width(sigma: Any, X: np.ndarray, where: str) -> float:
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
        raise UserError(f'{where}: sigma is {sigma!r}; it must be a number above 0 or "scale"')
    return sigma


def _kernel(given: dict[str, Any], X: np.ndarray, limit: float, where: str) -> tuple[dict[str, Any], float]:
    """The spec's section, with what is derived from the inputs, and the limit of inputs that goes with it."""
    function, dim = given.get("kernel", "gaussian"), X.shape[1]
    if isinstance(function, MercerKernel):
        for key in ("sigma", *KERNEL_KEYS[1:]):
            if key in given:
                raise UserError(
                    f"{where}: {key} is {given[key]!r}, and kernel, a MercerKernel, has its own; leave {key} out"
                )
        made = function.section()
        if function.own is None:
            return _kernel({**given, **made, "kernel": function.function}, X, limit, where)
        if "input_limit" not in given:
            raise UserError(
                f"{where}: input_limit must be given with a kernel of your own: most is its bound for inputs within that"
            )
        return made, limit
    section = {key: given[key] for key in KERNEL_KEYS if key in given and key != "kernel"}
    gamma: Any = given.get("gamma", "scale")
    if isinstance(gamma, str) and gamma != "scale":
        raise UserError(f'{where}: gamma is {gamma!r}; it must be a number above 0 or "scale"')
    if function == "gaussian" and gamma == "scale":
        section.pop("gamma", None)
        section["sigma"] = _width(given.get("sigma", "scale"), X, where)
        return section, LIMIT * section["sigma"]
    section["function"] = function
    if "sigma" in given:
        section["sigma"] = _width(given["sigma"], X, where)
    scales = {
        "laplacian": lambda sigma: 1 / (sigma * math.sqrt(2 * dim)),
        "matern32": lambda sigma: math.sqrt(3) / sigma,
        "matern52": lambda sigma: math.sqrt(5) / sigma,
        "polynomial": lambda sigma: 0.5 / sigma**2,
    }
    if gamma == "scale" and function in scales:
        section["gamma"] = scales[function](_width("scale", X, where))
    gamma = section.get("gamma")
    if type(gamma) in (int, float) and gamma > 0:
        if function == "gaussian":
            return section, LIMIT * math.sqrt(0.5 / gamma)
        if function in ("laplacian", "matern32", "matern52"):
            return section, LIMIT / gamma
    if function not in ("polynomial", "linear"):
        return section, limit
    # (gamma dim limit^2 + coef0)^degree, of which two are multiplied
    degree = section.get("degree", 3) if function == "polynomial" else 1
    coef0 = section.get("coef0", 0.0) if function == "polynomial" else 0.0
    if type(degree) is not int or degree < 1 or type(coef0) not in (int, float):
        return section, limit
    product = (1e16 if given["precision"] == "float32" else 1e140) ** (1 / degree) - coef0
    return section, min(limit, math.sqrt(max(product, 1.0) / dim / (gamma or 1.0)))


def _column_names(y: Any) -> list[str]:
    """What a data frame or series calls the labels; nothing where a spec could not."""
    names: list[Any] = list(y.columns) if hasattr(y, "columns") else [getattr(y, "name", None)]
    try:
        return [_visible(name) for name in names] if len(set(names)) == len(names) else []
    except (TypeError, ValueError, AttributeError):  # not text, or not visible
        return []


def _plain(value: Any) -> Any:
    """NumPy's scalars, as parameter grids hold them, as Python's."""
    return value.item() if isinstance(value, np.generic) else value
