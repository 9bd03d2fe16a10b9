"""Models with River's interface that learn sample by sample.  Samples are dictionaries.  C code that is generated from a
model starts from what the model has learned.

Each model is the scikit-learn estimator for the same task, with River's methods added.  It has the estimator's
parameters, attributes and messages, and the device runs the same model.
"""

from __future__ import annotations

import math
import numbers
import operator
import struct
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from river import base, conf

from pykernel.errors import UserError
from pykernel.estimators.base import Streaming
from pykernel.estimators.monitor import OnlineMonitor
from pykernel.estimators.online import BudgetedKernelClassifier, BudgetedKernelRegressor
from pykernel.estimators.parameters import Must, Parameter, plain, short
from pykernel.host.model import HostModel
from pykernel.host.single import Single
from pykernel.spec.model import Spec
from pykernel.spec.sections import OUTPUTS_LIMIT

Sample = Mapping[Hashable, Any]


class Calls(threading.local):
    """A separate ``Bound`` for each thread, because a ``Bound`` holds a sample and the model's answer.  Deep copies and
    pickles of the model do not contain the ``Bound``.
    """

    bound: Bound | None = None

    def __reduce__(self) -> Any:
        return Calls, ()


class Bound(Single):
    """Calls for one sample, bound to a model's memory, with the names of the features.  For each question that was
    asked, ``asked`` holds a function and the array for its answer.  A question is the name of one of the model's
    functions, such as "predict"."""

    def __init__(self, model: HostModel, names: tuple[Any, ...]) -> None:
        super().__init__(model)
        self.memory, self.names = model.memory, names
        get = operator.itemgetter(*names)
        self.take: Callable[[Sample], Iterable[Any]] = get if len(names) > 1 else lambda x: (get(x),)
        self.asked: dict[str, tuple[Callable[[], int], np.ndarray]] = {}
        self.learned = {
            int(each): each.name for each in model.spec.program.status if each >= 0 and each.name != "RESTARTED"
        }


class Unsupported(UserError, NotImplementedError):
    """The model cannot answer a question.  In this case, River requires a NotImplementedError."""


class Model(Streaming):
    """The River methods that all models have.  A sample's values are copied by name into the model's input array."""

    _afresh = "take a clone()"
    _calls: Calls = Calls()
    _status = 0
    """The status of the last sample that was given for learning."""

    @property
    def features_(self) -> tuple[Any, ...]:
        """The inputs' names, in the order of the device's x[].

        These are the sorted keys of the first sample.  If learning began with ``fit`` or ``partial_fit``, they are the
        columns of the data frame, or numbers from 0 for an array.
        """
        return tuple(getattr(self, "feature_names_in_", range(self.n_features_in_)))

    def _unit_test_skips(self) -> set[str]:
        """Return the names of the River checks to skip: in these, inputs appear or disappear, but the device's inputs are fixed."""
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
        }

    def _made(self, content: dict[str, Any], custom: Any) -> Spec:
        made = super()._made(content, custom)
        counts = (
            'precision is "int16", whose samples are counts, but River gives real numbers; take "float32" or "float64"'
        )
        self._where.need(not made.real.is_int16, counts)
        several = f"y has {made.outputs} columns; River gives one label for each sample"
        self._where.need(made.label_kind != "reals", several)
        return made

    def _fill(self, x: Sample) -> Bound:
        """Copy the sample's values into the model's input array.

        Raises UserError if the sample's names differ from those of the first sample, or if a value is not a number.
        """
        calls = self._calls.bound
        if calls is None or calls.memory is not self.model_.memory:
            calls = self._bind(x)
        try:
            if len(x) == len(calls.names):
                calls.fill(*calls.take(x))
                return calls
        except (KeyError, struct.error):
            pass
        self._require(x, calls.names)
        raise self._where.error("a sample cannot be read as numbers")

    def _bind(self, x: Sample) -> Bound:
        if not hasattr(self, "model_"):
            names = tuple(sorted(x, key=lambda name: (type(name).__name__, name)))
            self._require(x, names)
            self.n_features_in_, self.feature_names_in_ = len(names), np.fromiter(names, object)
            self._start(np.zeros((1, len(names))), *self._label(np.zeros(0), []))
        if "_calls" not in vars(self):
            self._calls = Calls()
        self._calls.bound = calls = Bound(self.model_, self.features_)
        return calls

    def _require(self, x: Sample, names: tuple[Any, ...]) -> None:
        """Raise UserError with a one-sentence message if a sample is invalid.  names: the features that the sample
        must have."""
        where = self._where
        where.need(names, "the first sample has no features; it must have all features that later samples will have")
        fixed = "; the first sample fixed the features, which are the inputs of the C"
        for name in names:
            where.need(name in x, f"a sample has no feature {name!r}{fixed}")
        for name, value in x.items():
            where.need(name in names, f"a sample has an unexpected feature {name!r}{fixed}")
            number = isinstance(value, (numbers.Real, np.bool_))
            finite = number and (math.isfinite(value) or (self._completes and math.isnan(value)))
            where.need(finite, f"feature {name!r} is {short(value)}; it must be a {'finite ' * number}number")

    def _taught(self, x: Sample, calls: Bound) -> None:
        """Learn the sample that ``calls`` holds.  Raises UserError if the sample is invalid."""
        self._status = status = calls.learn()
        if status in calls.learned:
            self.status_counts_[calls.learned[status]] += 1
        else:
            self._require(x, calls.names)
            self._counted(np.array([status]))

    def _counted(self, statuses: np.ndarray) -> None:
        self._status = int(statuses[-1])
        super()._counted(statuses)

    def _asked(self, x: Sample, question: str) -> np.ndarray:
        """Return the answer for a sample: an array of shape (values,).  The next answer overwrites this array."""
        calls = self._fill(x)
        if question not in calls.asked:
            try:
                self.model_._require(question)
            except UserError as error:
                raise Unsupported(f"{self._where}: {error}") from None
            calls.asked[question] = calls.question(question)
        ask, answer = calls.asked[question]
        if ask() >= 0:
            return answer
        self._require(x, calls.names)
        return self._beyond(len(answer))

    def _beyond(self, values: int) -> np.ndarray:
        """Return the answer for a sample with an input beyond ``input_max_abs``: NaN, with a warning."""
        return self._finite(np.full((1, values), np.nan))[0]  # type: ignore[no-any-return]


class Supervised(Model):
    """The River methods of models that learn from labels."""

    _without: ClassVar[Sequence[str]] = ("seed",)  # River sets the seed of every model that has one

    def learn_one(self, x: Sample, y: Any) -> None:
        """Learn a sample. The cost is that of the estimator's ``partial_fit`` for one row.

        Parameters
        ----------
        x
            The features: numbers, under the names that the first sample had.
        y
            The label: a number for a regressor, one of ``classes`` for a classifier.

        Raises
        ------
        UserError
            If a feature is missing, unexpected or not a finite number, or the label is invalid; at the first sample, also
            if a parameter is invalid.
        """
        calls = self._fill(x)
        calls.label(self._device_label(y))
        self._taught(x, calls)

    def _device_label(self, y: Any) -> Any:
        """Convert the label to the form that the device takes.  Raises UserError if the label is invalid."""
        raise NotImplementedError


class Regressor(Supervised, BudgetedKernelRegressor, base.Regressor):  # type: ignore[misc]
    """Kernel regression in fixed memory with River's interface; its results equal a microcontroller's, bit for bit.

    The model is `pykernel.BudgetedKernelRegressor` with River's methods. Without parameters, the model has the default
    rule (docs/reference/rules.md): a sum of a few sinusoids with learned frequencies, plus linear parts. The
    model then standardises its inputs, so raw data need no scaler. The C code that ``pykernel.generate(model, out, name=…)``
    writes starts from this model's state. If the C code and the model then learn the same samples, their states remain
    equal, byte for byte.

    The first sample, whether it is predicted or learned, fixes the features. Sorted by name, they are the inputs of the C
    code. A later sample with a missing or an unexpected feature is refused.

    Parameters
    ----------
    {others}
        As in `pykernel.BudgetedKernelRegressor`. The scale of the inputs cannot be estimated from a single sample: with a
        rule that has a kernel, give ``sigma`` or ``gamma`` as a number, or begin with ``fit``. If ``input_max_abs`` or
        ``label_max_abs`` is not given, the spec's default applies.

    Attributes
    ----------
    features_ : tuple
        The inputs' names, in the order of the device's x[].
    spec_, model_, status_counts_
        As in `pykernel.BudgetedKernelRegressor`.

    Notes
    -----
    With ``n_max``, an update costs O(n_max^2 + n_max inputs) operations, and a prediction O(n_max inputs). Python adds
    about a microsecond to each call (docs/guide/river.md).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from pykernel.river import Regressor
    >>> model = Regressor()
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> metric.get() < 0.6
    True
    >>> model.to_spec("approval").input.columns
    ('gallup', 'ipsos', 'morning_consult', 'ordinal_date', 'rasmussen', 'you_gov')
    """

    _without = (*BudgetedKernelRegressor._without, *Supervised._without)

    def predict_one(self, x: Sample, with_interval: bool = False) -> Any:
        """Return the value of the learned function.  O(inputs) for the default rule, O(n_max inputs) with ``n_max``.

        Parameters
        ----------
        x
            The features.
        with_interval
            Whether to return a ``river.conf.Interval`` instead of the value, as River's conformal wrappers do.

        Returns
        -------
        y
            The number that the device computes. It is 0 before anything has been learned, and NaN, with a warning, for an
            input beyond ``input_max_abs``. If ``with_interval`` is true, y is the interval. Until 20 labels have been learned,
            it covers all possible labels.

        Raises
        ------
        UserError
            If a feature is missing, unexpected or not a finite number, or if ``with_interval`` is true and the model
            has no ``interval_level``.
        """
        if with_interval:
            return conf.interval.Interval(*self._asked(x, "interval").tolist())
        return float(self._asked(x, "predict")[0])

    def _device_label(self, y: Any) -> Any:
        if not isinstance(y, (float, numbers.Real, np.bool_)) or not math.isfinite(y):
            raise self._where.error(f"the label is {short(y)}; it must be a finite number")
        return y


class Classifier(Supervised, BudgetedKernelClassifier, base.Classifier):  # type: ignore[misc]
    """Kernel classification in fixed memory with River's interface; its results equal a microcontroller's, bit for bit.

    The model is `pykernel.BudgetedKernelClassifier` with River's methods. Without parameters, the model has the default
    rule (docs/reference/rules.md): a linear part and a few sinusoids with learned frequencies. The rule's probabilities
    are averaged with those of a linear model. Such a model standardises its inputs, so raw data need no scaler. The C
    code that ``pykernel.generate(model, out, name=…)`` writes starts from this model's state. If the C code and the model
    then learn the same samples, their states remain equal, byte for byte.

    The first sample, whether it is predicted or learned, fixes the features. Sorted by name, they are the inputs of the C
    code. A later sample with a missing or an unexpected feature is refused, and so is a class that is not in ``classes``.

    Parameters
    ----------
    classes : sequence, default=(False, True)
        All classes, from 2 to 64, in the order of the device's class indices.
    {others}
        As in `pykernel.BudgetedKernelClassifier`. The scale of the inputs cannot be estimated from a single sample: with a
        rule that has a kernel, give ``sigma`` or ``gamma`` as a number, or begin with ``fit``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The parameter ``classes`` as an array. Class i of the device is ``classes_[i]``.
    features_, spec_, model_, status_counts_
        As in `Regressor`.

    Notes
    -----
    Without parameters, an update costs O(inputs^2) operations and a prediction O(inputs), for each class. With
    ``n_max``, an update costs O(n_max^2 + n_max inputs) operations and a prediction O(n_max inputs).

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from pykernel.river import Classifier
    >>> metric = evaluate.progressive_val_score(datasets.Bananas(), Classifier(), metrics.Accuracy())
    >>> metric.get() > 0.85
    True
    """

    _positional = 2
    _without = (*BudgetedKernelClassifier._without, *Supervised._without)

    @classmethod
    def _declared(cls) -> dict[str, Parameter]:
        several = Must(
            f"a list of 2 to {OUTPUTS_LIMIT} different classes",
            lambda v: (
                isinstance(v, Sequence) and not isinstance(v, str) and 2 <= len(set(v)) == len(v) <= OUTPUTS_LIMIT
            ),
        )
        return {"classes": Parameter(default=(False, True), kind=Sequence[Any], must=several), **super()._declared()}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"classes": ("brickface", "cement", "foliage", "grass", "path", "sky", "window", False, True)}

    @property
    def _multiclass(self) -> bool:
        return len(self.classes) > 2

    def _classes_of(self, y: Any) -> np.ndarray:
        return np.fromiter(map(plain, self._given()["classes"]), object)

    def partial_fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
        """Learn rows, like the estimator's ``partial_fit``, but with ``classes`` as a parameter of the model, not of
        this method."""
        return self._stream(X, y, afresh=not hasattr(self, "model_"))

    def predict_one(self, x: Sample) -> Any:
        """Return the class that the device's ``NAME_classify`` returns.  O(inputs) for each class with the
        default rule, O(n_max inputs) with ``n_max``.

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        y
            The predicted class. Before anything has been learned, it is the first class.

        Raises
        ------
        UserError
            If a feature is missing, unexpected, not a finite number or beyond ``input_max_abs``.
        """
        position = self._asked(x, "classify")[0]  # if there is no model yet, this call begins one and sets classes_
        return self.classes_[position]

    def predict_proba_one(self, x: Sample) -> dict[Any, float]:
        """Return the probabilities that the device's ``NAME_probability`` writes.  O(inputs) for each class.

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        p
            The probability of each class. The device's numbers are divided by their sum in float64, because River requires
            that they add up to 1.

        Raises
        ------
        UserError
            If the model has no ``NAME_probability``, for example because of ``n_max`` or a rule other than
            "spectrum-softmax". As River requires, this error is also a NotImplementedError. A UserError is also raised
            if a feature is missing, unexpected, not a finite number or beyond ``input_max_abs``.
        """
        p = self._asked(x, "probability").astype(float)
        return dict(zip(self.classes_, (p / p.sum()).tolist(), strict=True))

    def _beyond(self, values: int) -> np.ndarray:
        limit = f"an input is beyond the limit of {self._limits}"
        raise self._where.error(f"{limit}; give a larger input_max_abs, or leave the sample out")

    def _device_label(self, y: Any) -> Any:
        position = self._positions.get(y)
        if position is None:
            raise self._where.error(f"the class {plain(y)!r} is not in classes, {short([*self._positions])}")
        return position


class AnomalyDetector(Model, OnlineMonitor, base.AnomalyDetector):  # type: ignore[misc]
    """A monitor in fixed memory with River's interface; its results equal a microcontroller's, bit for bit.

    The model is `pykernel.OnlineMonitor` with River's methods. Its spec has [novelty] and no rule: the monitor learns
    one Gaussian for each regime of the machine. As a rule, the monitor learns nothing during an alarm, but a change
    that lasts ``relearn_after`` samples becomes normal. By default, the false-alarm rate is 1 %
    (docs/guide/monitor-settings.md).

    The first sample, whether it is scored or learned, fixes the features. Sorted by name, they are the inputs of the C
    code. A later sample with a missing or an unexpected feature is refused; with ``missing="hold"``, a value may be NaN.

    Parameters
    ----------
    {others}
        As in `pykernel.OnlineMonitor`.

    Attributes
    ----------
    alarm_ : bool
        Whether the model is in alarm after the last learned sample.
    blame_ : dict of feature to float
        Each feature's share of the current alarm or, if there is none, of the latest alarm.
    level_, threshold_, since_, kind_, regimes_
        As in `pykernel.OnlineMonitor`.
    features_, spec_, model_, status_counts_
        As in `Regressor`.

    Notes
    -----
    For K ``components`` and D inputs, a score or an update costs O(K D^2). An alarm adds O(D^3) to each update, and the
    search for two regimes to merge adds at most O(K^2 D^3).

    Examples
    --------
    >>> import random
    >>> from pykernel.river import AnomalyDetector
    >>> model, draw = AnomalyDetector(), random.Random(0)
    >>> for _ in range(1000):
    ...     model.learn_one({"pressure": draw.gauss(2, 0.1), "flow": draw.gauss(30, 1)})
    >>> model.score_one({"pressure": 2.0, "flow": 30.0}) < 1 < 5 < model.score_one({"pressure": 2.0, "flow": 45.0})
    True
    >>> for _ in range(12):
    ...     model.learn_one({"pressure": draw.gauss(2, 0.1), "flow": draw.gauss(45, 1)})
    >>> model.alarm_, model.kind_, max(model.blame_, key=model.blame_.get)
    (True, 'jump', 'flow')
    >>> model.acknowledge()  # the new flow is normal from now on
    True
    """

    def learn_one(self, x: Sample) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            The features: numbers, under the names that the first sample had.

        Raises
        ------
        UserError
            If a feature is missing, unexpected or not a finite number; at the first sample, also if a parameter is invalid.
        """
        self._taught(x, self._fill(x))

    def score_one(self, x: Sample) -> float:
        """Return the novelty that a sample would have if it came next. Anomalous samples have high scores.
        O(components inputs^2).

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        score
            The number that the device's ``NAME_novelty`` writes, from -64 to 64. It is about 0 for usual rows, and
            grows with the logarithm of an unusual row's distance from the usual rows. For an input beyond
            ``input_max_abs``, it is NaN, with a warning.  During the warm-up, it is at most 0, as for usual rows: a
            model that has learned hardly anything cannot tell which rows are unusual.
        """
        score = float(self._asked(x, "novelty")[0])
        warm = self.model_.memory.field("watched")[0] >= self.spec_.novelty.warmup
        return score if warm else min(score, 0.0)

    @property
    def alarm_(self) -> bool:
        return hasattr(self, "model_") and self._status in self.spec_.program.alarms

    @property
    def blame_(self) -> dict[Any, float]:  # type: ignore[override]
        return dict(zip(self.features_, super().blame_.tolist(), strict=True))
