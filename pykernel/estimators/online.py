"""Models that learn sample by sample, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils.metaestimators import available_if  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, column_or_1d  # type: ignore[import-untyped]

from pykernel.estimators.base import KERNEL, Classifies, Regresses, Streaming, label_section
from pykernel.estimators.parameters import LEFT_OUT, Parameter, moved, of_keys, whole
from pykernel.spec.families.linear import RULES as LINEAR_RULES
from pykernel.spec.families.online import KernelSpec, projection_of
from pykernel.spec.families.spectrum import SOFTMAX
from pykernel.spec.family import Family
from pykernel.spec.model import declared, rate_of, rules

RATE_EPOCHS = 5
"""Number of passes that ``fit`` makes for rules that correct only a part of each error.  All other rules solve least
squares, where a second pass would count every sample twice."""
SHARED = ("signal", "input", "label", "target", "kernel", "linear", "mixture", "interval")
"""Sections of a spec whose keys do not become parameters automatically.  Some of these keys are declared as
parameters in ``KERNEL``, ``COMMON`` or ``ANSWERS``; the estimators have no parameters for the others."""
BEHIND = {"kernel": "sigma", "relabel": "noise", "projection": "ald_threshold", "fading": "tie"}
"""Parameter -> the parameter that it follows in signatures, although it is declared elsewhere."""
OF_RULES = """{{{rules}}}
        How a sample changes the model. None: a model for raw data. Its rule is "spectrum-ekf" (with many inputs, the
        smaller "spectrum-nlms"; for classes, "spectrum-softmax"), or "krls-t" if ``n_max``, ``technique`` or a kernel
        other than the default is given. Numeric labels are centred, and their noise is estimated. If neither a width
        nor a kernel with a width is given, the inputs are standardised and, for numeric labels, a linear part is
        added. A named rule learns as its paper describes, without these additions. "klms": stochastic gradient.
        "qklms": as "klms", but a sample near a stored vector changes only that vector's multiplier. "krls-t":
        recursive least squares that can forget, and that estimates its predictions' variance. "fb-krls": least
        squares on the stored samples. "sw-krls": least squares on the latest ``n_max`` samples. "ald-krls": recursive
        least squares; vectors are added until the budget is full, and never removed. "knlms": normalised gradient
        steps for all multipliers; as with "ald-krls", vectors are never removed. Four rules learn linear models with
        an intercept: "nlms" and "rls" use the inputs, "quadratic-rls" also uses their products, and "rff-rls" uses
        random Fourier features, which approximate a kernel. Three rules learn sums of a few sinusoids, including
        their frequencies: "spectrum-ekf" with a Kalman filter, "spectrum-nlms" with normalised gradient steps, and
        "spectrum-softmax", which is for classes only and estimates probabilities."""
COMMON = {
    "precision": Parameter(
        "",
        default="float32",
        kind=str,
        text="""{"float32", "float64"}
        Number format of the model, on the host and on the device.""",
    ),
    "n_epochs": Parameter(
        kind=int | None,
        must=whole(1) | LEFT_OUT,
        text="""int
        Number of passes of ``fit`` over the data, in order. None: 5 for {rules}, which correct
        only a part of each error; 1 for all other rules, which solve least squares and would count a repeated sample
        as new evidence.""",
    ),
    "input_max_abs": Parameter(
        "input",
        "max_abs",
        kind=float | None,
        text="""float
        Largest magnitude of an input; a sample with a larger input is refused. None: the spec's default, 1e12 if no
        rule is given and the inputs are standardised, else 1e6. For polynomial and linear kernels, the limit may be
        smaller, to avoid overflow.""",
    ),
    "label_max_abs": Parameter(
        "label",
        "max_abs",
        kind=float | None,
        text="""float
        Largest magnitude of a label; a sample with a larger label is refused. None: the spec's default, 1e9 without a
        rule, else 1e6.""",
    ),
    "missing": Parameter("input", kind=str | None),
}
"""Parameters of all models that learn sample by sample."""
ANSWERS = {
    "interval_level": Parameter(
        "interval",
        "level",
        kind=float | None,
        text="""float
        Coverage of the intervals that ``predict`` returns: the fraction of the labels inside them, from 0.5 to 0.99.
        None: no intervals.""",
    ),
    "class_weight": Parameter(
        "label",
        "weights",
        kind=str | Sequence[float] | Mapping[Any, float] | None,
        text="""{"balanced"}, dict or sequence of float
        ``predict`` returns the class whose probability times weight is largest. A dict gives the weights of some
        classes; all others have the weight 1. A sequence gives one weight for each of ``classes_``. "balanced": a class
        that makes up the fraction c of the labels has the weight 1 / sqrt(c). Probabilities do not change. None: all
        weights are equal. Only without a rule, a kernel or ``n_max``.""",
    ),
}
"""Parameters of predictions: intervals for numbers, and weights for classes."""


class _BudgetedKernelModel(Streaming):
    """Base of the regressor and the classifier."""

    @classmethod
    def _families(cls) -> list[Family]:
        return list(
            dict.fromkeys(family for family in rules().values() if family.online and "class" in family.programs)
        )

    @classmethod
    def _declared(cls) -> dict[str, Parameter]:
        families = cls._families()
        sections = dict.fromkeys(name for family in families for name in family.spec.model_fields)
        keys = of_keys(families, [name for name in sections if name not in SHARED])
        words = ", ".join(f'"{rule}"' for family in families for rule in family.rules)
        keys["rule"] = replace(keys["rule"], text=OF_RULES.format(rules=words))
        first = {name: keys[name] for name in ("technique", "rule", "n_max")}
        common = dict(COMMON)
        *others, last = [f'"{rule}"' for family in families for rule in family.rules if rate_of(rule) is not None]
        epochs = common["n_epochs"]
        common["n_epochs"] = replace(epochs, text=epochs.text.format(rules=f"{', '.join(others)} and {last}"))
        return moved(first | KERNEL | keys | common | ANSWERS, BEHIND)

    def novelty(self, X: Any) -> np.ndarray:
        """Return the novelty (residual power) of each sample.  O(n_max (n_max + n_features)) for each sample.

        Novelty is the squared distance of ``k(x, .)`` from the span of the expansion vectors, as a fraction of
        ``k(x, x)``. It is near 0 close to these vectors. With a Gaussian, Laplacian or Matérn kernel, it is between 1
        and ``1 + ridge`` far from all of them. If the model keeps no matrix, novelty is
        ``1 - k(x, v)^2 / (k(x, x) k(v, v))`` for the nearest vector v. No labels are needed, so a drifting sensor or a
        new operating point can be detected before the model has learned it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Numbers from 0 to ``1 + ridge``, as computed by ``NAME_novelty`` on the device. If the device would refuse the
            input, the novelty is NaN, and a warning is issued.

        Raises
        ------
        UserError
            If the rule stores no vectors, because it is linear or learns sinusoids.
        """
        X = self._inputs(X)
        vague = f"rule {self.spec_.learning.rule!r} stores no vectors, so it measures no novelty"
        self._where.need(self.model_.has("novelty"), f"{vague}; use a rule with vectors, such as 'klms'")
        return self._finite(self.model_.novelty(X))

    def _epochs(self) -> int:
        return self._given()["n_epochs"] or (1 if rate_of(self.spec_.learning.rule) is None else RATE_EPOCHS)

    def _has_kernel(self, values: Mapping[str, Any]) -> bool:
        """Return True if the spec gets a section [kernel]: if the rule has a kernel, or if a parameter of the kernel is given.

        If the rule has no kernel, the spec refuses this section.  If no rule is given, the default rule depends on the
        kernel in this section.
        """
        return values["rule"] in declared("kernel") or bool(self._stated(*KERNEL))

    def _remedy(self) -> str:
        """Say what to do if learning diverges."""
        spec, rate = self.spec_, rate_of(self.spec_.learning.rule)
        if spec.learning.rule in LINEAR_RULES:
            return f"lower {rate or 'prior_variance'}, or scale the inputs to magnitudes near 1"
        if rate is None:
            return "raise ridge"
        # fklms treats the vectors' kernel functions as orthogonal; the smaller sigma is, the better this holds
        crowded = isinstance(spec, KernelSpec) and projection_of(spec) == "fklms"
        return f"lower {'sigma or ' * crowded}{rate}"


class BudgetedKernelRegressor(RegressorMixin, Regresses, _BudgetedKernelModel):
    """Kernel regression that learns online, in fixed memory, bit for bit as on a microcontroller.

    The model is an expansion ``f(x) = sum_i alpha_i k(v_i, x)`` of at most ``n_max`` kernels. Each sample is
    predicted, and ``rule`` determines how the error of the prediction is corrected. When the budget is exceeded, most
    kernel rules remove the vector that ``technique`` selects. With several labels, all share the vectors v_i, but
    each has its own multipliers alpha_i. There are also rules for linear models of the inputs, of their products or
    of random features: use such a model as a baseline, or instead of a kernel expansion if it is good enough. Other
    rules learn sums of a few sinusoids, including their frequencies. If ``rule`` is None, the model takes raw inputs
    and raw labels, and learns sinusoids, or a kernel expansion if ``n_max`` is given. If a kernel rule is given by
    name, the model has no intercept, so subtract the mean of the labels if it is far from zero.

    Everything is computed in ``precision`` by the source code that ``pykernel.generate`` translates to C. A device that
    starts from a fitted estimator therefore predicts and learns exactly as the estimator does, bit for bit.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    spec_ : Spec
        The spec from which code is generated, with all parameters, including derived parameters.
    model_ : HostModel
        The learned state (``model_.memory``), and the functions that work on this state.
    status_counts_ : dict of str to int
        Number of updates with each status since the start: ADDED, REPLACED, DISCARDED, ABSORBED,
        MERGED (rules without vectors: DONE); OBSERVED (only the standardiser was updated);
        REFUSED_INPUT, REFUSED_LABEL (beyond a limit), REFUSED_MULTIPLIER or REFUSED_WEIGHT (a multiplier or a
        weight could become too large). A refused sample leaves the model unchanged.
        RESTARTED: the model began anew, because learning diverged or the model was useless for hundreds of labels.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if the data had names. These names become the spec's columns, and so do the labels' names.

    See Also
    --------
    BudgetedKernelClassifier : The same model for classes.

    Notes
    -----
    Most parameters set a key of the spec; docs/reference/spec.md describes these keys. A parameter that does not apply
    to the rule or the technique is refused.

    An update costs O(n_max n_features) operations with the techniques "nt", "at", "fklms", "fmklms", "afklms" and
    "afmklms", and O(n_max^2 + n_max n_features) with the other techniques and with least-squares rules, regardless of
    the number of samples. A prediction costs O(n_max n_features). The state has about
    ``n_max * (n_features + n_outputs)`` values, and about ``n_max ** 2 / 2`` more for each matrix that is kept.
    ``pykernel plan`` chooses a model.

    Parameters are read when learning starts, by ``fit`` or the first ``partial_fit``; later ``partial_fit`` calls
    continue with ``spec_``. Samples are not shuffled: they are learned in the given order.

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

    Van Vaerenbergh, S., Vía, J. and Santamaría, I. (2006). A Sliding-Window Kernel RLS Algorithm and Its Application to
    Nonlinear Channel Identification. ICASSP. "sw-krls".

    Richard, C., Bermudez, J. C. M. and Honeine, P. (2009). Online Prediction of Time Series Data with Kernels. IEEE
    Transactions on Signal Processing 57(3). "knlms".

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
    format = 1
    precision = "float32"
    ...

    Two labels with their standard deviations, near the data and far from the data:

    >>> model = BudgetedKernelRegressor(rule="krls-t", sigma=0.5).fit(x, np.column_stack([y, -y]))
    >>> means, deviations = model.predict([[0.8], [9.0]], return_std=True)
    >>> means.round()
    array([[ 1., -1.],
           [ 0.,  0.]])
    >>> deviations[:, 0].round(1)
    array([0.1, 0.9])
    """

    _without: ClassVar[Sequence[str]] = ("class_weight",)

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
            If a parameter is invalid, or does not apply to the rule or the technique.
        ValueError
            If the data are not finite numbers of the right shape, or if ``sigma`` is "scale" and all samples are equal.
        """
        return self._stream(X, y, fits=True, afresh=True)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn these samples once, in order, continuing from what was learned before.

        The first call fixes the number of outputs and, if ``sigma`` is "scale", derives the width from its data. Apart
        from this, calls with consecutive parts of a stream lead to the same state, byte for byte, as one call with the
        whole stream.

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
        return self._stream(X, y, afresh=not hasattr(self, "model_"))

    def predict(self, X: Any, return_std: bool = False, return_interval: bool = False) -> Any:
        """Return the values of the learned function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to return standard deviations, too. Only with rule "krls-t".
        return_interval : bool, default=False
            Whether to return intervals, too. They contain the fraction ``interval_level`` of the labels.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The numbers that the device computes, converted to float64. If the device would refuse a sample, because an
            input is beyond ``input_max_abs``, the prediction is NaN, and a warning is issued.
        std : ndarray of the same shape
            With ``return_std``: standard deviations of the labels, in the labels' unit, including the noise. The scale
            of these deviations is estimated from the errors so far, and is the same for all outputs.
        lower, upper : ndarrays of the same shape
            With ``return_interval``: the ends of the intervals. Until 20 labels have been learned, the intervals cover all
            possible labels.

        Raises
        ------
        UserError
            If ``return_std`` is given for a rule other than "krls-t", or ``return_interval`` without ``interval_level``.
        """
        X = self._inputs(X)
        self._where.need(
            not return_std or self.model_.has("variance"),
            f"rule {self.spec_.learning.rule!r} estimates no standard deviation; return_std needs rule='krls-t'",
        )
        self._where.need(
            not return_interval or self.model_.has("interval"),
            "return_interval needs a model with intervals; give interval_level=0.9 before learning",
        )
        y = self._finite(self.model_.predict(X)).reshape(self._shape(len(X)))
        results = [y]
        if return_std:
            std = np.sqrt(self.model_.variance(X).astype(np.float64))
            results.append(np.repeat(std, y.size // len(y)).reshape(y.shape))
        if return_interval:
            results += [end.astype(np.float64).reshape(y.shape) for end in self.model_.interval(X)]
        return tuple(results) if len(results) > 1 else y

    def _label(self, y: np.ndarray, names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        outputs = None if y.ndim == 1 else y.shape[1]
        return label_section(self._columns, names, outputs or 1), {"_outputs": outputs}

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        """Return labels in the model's shape: (n,) for one output, even if y is a column."""
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if outputs != self.spec_.outputs:
            raise ValueError(f"y has {outputs} outputs, but the {self._where} learns {self.spec_.outputs}")
        return y.reshape(-1) if outputs == 1 else y

    def _shape(self, samples: int) -> tuple[int, ...]:
        """Return the shape of the predictions: (samples,) if learning began with one-dimensional labels, else (samples, outputs)."""
        return (samples,) if self._outputs is None else (samples, self._outputs)


def _tells(estimator: BudgetedKernelClassifier) -> bool:
    """Return True if a fitted model has probabilities, or if an unfitted model may have them."""
    if hasattr(estimator, "model_"):
        return bool(estimator.model_.has("probability"))
    return estimator.rule == SOFTMAX or (estimator.rule is None and estimator.n_max is None)


class BudgetedKernelClassifier(ClassifierMixin, Classifies, _BudgetedKernelModel):
    """Kernel classification that learns online, in fixed memory, bit for bit as on a microcontroller.

    With two classes, the model is one function, ``f(x) = sum_i alpha_i k(v_i, x)`` with at most ``n_max`` kernels,
    and its sign determines the class. With more classes, there is one function for each class, and the class whose
    function has the largest value is predicted (one-vs-rest). The functions share the vectors, but each function has
    its own multipliers. Most rules train a function to be at least 1 for its class and at most -1 for other classes.
    The rules and techniques of `BudgetedKernelRegressor` are available, and also the rule "spectrum-softmax". If
    ``rule`` is None, the model takes raw inputs. Each function is then the sum of a linear part and a few sinusoids
    whose frequencies are learned; if ``n_max`` is given, each function is a kernel expansion instead.

    Everything is computed in ``precision`` by the source code that ``pykernel.generate`` translates to C. A device that
    starts from a fitted estimator therefore classifies and learns exactly as the estimator does, bit for bit.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. Class i of the device is ``classes_[i]``.
    spec_ : Spec
        The spec from which code is generated, with all parameters, including derived parameters. The classes in the spec
        are ``classes_`` as text.
    model_ : HostModel
        The learned state (``model_.memory``), and the functions that work on this state.
    status_counts_ : dict of str to int
        Number of updates with each status since the start: ADDED, REPLACED, DISCARDED, ABSORBED,
        MERGED (rules without vectors: DONE); OBSERVED (only the standardiser was updated);
        REFUSED_INPUT (beyond the limit), REFUSED_MULTIPLIER or REFUSED_WEIGHT (a multiplier or a weight could become
        too large). A refused sample leaves the model unchanged. RESTARTED: the model began anew, because learning diverged or the model was useless for hundreds of labels.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if the data had names. These names become the spec's columns, and so do the labels' names.

    See Also
    --------
    BudgetedKernelRegressor : The same model for numbers; its notes and references apply to classes, too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pykernel import BudgetedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> model = BudgetedKernelClassifier(n_max=16).fit(X[:100], y[:100])
    >>> round(model.score(X[100:], y[100:]), 1)
    0.9
    >>> model.decision_function(X[100:102]).shape
    (2, 3)
    >>> model.spec_.label.classes
    ('0', '1', '2')
    """

    _without: ClassVar[Sequence[str]] = ("label_max_abs", "interval_level")

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the samples in order, ``n_epochs`` times.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            2 to 64 different classes: numbers, strings or whatever else can be sorted.

        Returns
        -------
        self : BudgetedKernelClassifier

        Raises
        ------
        UserError
            If a parameter is invalid or does not apply to the rule or the technique, or if there is only one class.
        ValueError
            If the data are not finite numbers of the right shape, or if ``sigma`` is "scale" and all samples are equal.
        """
        return self._stream(X, y, fits=True, afresh=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn these samples once, in order, continuing from what was learned before.

        If ``sigma`` is "scale", the first call derives the width from its data. Apart from this, calls with consecutive
        parts of a stream lead to the same state, byte for byte, as one call with the whole stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,), default=None
            All classes that may occur. The first call needs this list; later calls may repeat it.

        Returns
        -------
        self : BudgetedKernelClassifier
        """
        first = not hasattr(self, "model_")
        if first and classes is None:
            raise ValueError(
                "the first call of partial_fit needs the argument classes: all classes that may ever occur"
            )
        if classes is not None:
            classes = np.unique(column_or_1d(classes))
            if not first and not np.array_equal(classes, self.classes_):
                raise ValueError(f"classes are {classes}, but the first call of partial_fit had {self.classes_}")
        return self._stream(X, y, afresh=first, known=classes)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes that the device's ``NAME_classify`` returns.

        Raises
        ------
        UserError
            If the device would refuse to classify a sample, because an input is beyond ``input_max_abs``.
        """
        X = self._inputs(X)
        positions = self.model_.classify(X)
        refused = np.count_nonzero(positions < 0)
        self._where.need(
            refused == 0,
            f"{refused} of {len(X)} samples have an input beyond the limit of {self._limits} and cannot be "
            "classified; leave them out, or learn with a larger input_max_abs",
        )
        return self.classes_[positions]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the values of the learned functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: one value, above 0 for ``classes_[1]``. More classes: one value for each class. The class with
            the largest value is predicted; in a tie, the first of the tied classes. The values are the numbers that the
            device computes, converted to float64. If the device would refuse a sample, because an input is beyond
            ``input_max_abs``, its values are NaN, and a warning is issued.
        """
        X = self._inputs(X)
        return self._finite(self.model_.predict(X))

    @available_if(_tells)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, in the model's ``precision``, as the device's ``NAME_probability``
        writes it.

        Only models with rule "spectrum-softmax" or with [mixture] have this method.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Rows sum to 1, up to rounding. Without ``class_weight``, the class that ``predict`` returns has the largest
            probability. For a sample with an input beyond ``input_max_abs``, the probabilities are NaN, and a warning
            is issued.
        """
        check_is_fitted(self)
        p = self.model_.probability(self._inputs(X))
        self._finite(p)
        return p

    def _label(self, y: np.ndarray, names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        classes = self._classes_of(y)
        positions = {name: position for position, name in enumerate(classes.tolist())}
        section = label_section(self._columns, names, classes=classes.tolist())
        if isinstance(weights := self._given().get("class_weight"), Mapping):
            strange = [name for name in weights if name not in positions]
            self._where.need(
                not strange,
                f"class_weight has an entry for {next(iter(strange), None)!r}, which is not one of the classes, "
                f"{classes.tolist()}",
            )
            section["weights"] = [float(weights.get(name, 1.0)) for name in classes.tolist()]
        return section, {"classes_": classes, "_positions": positions}

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        """Return the index of each sample's class in ``classes_``."""
        known = self._positions
        values, inverse = np.unique(y, return_inverse=True)
        strange = [value for value in values.tolist() if value not in known]
        if strange:
            raise ValueError(f"y holds {strange[0]!r}, which is not one of the classes, {self.classes_.tolist()}")
        return np.array([known[value] for value in values.tolist()], np.int32)[inverse]
