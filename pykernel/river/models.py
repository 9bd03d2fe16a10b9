"""Kernel models in River's conventions: dictionaries in, one sample at a time, and C that goes on from their state."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from river import base, conf
from river.utils import dataframe

from pykernel.errors import UserError
from pykernel.estimators.online import CALIBRATED_ON
from pykernel.estimators.parameters import Parameter, plain, short
from pykernel.river.learners import Classification, Features, Monitoring, Regression
from pykernel.river.streams import FITTING, Model, Sample
from pykernel.spec.sections import OUTPUTS_LIMIT
from pykernel.training.calibration import probabilities

EVERY = 64
"""Sigmoids are fitted again after at most this many samples."""


class _Unsupervised(Model):
    """Base of models that learn without labels."""

    def learn_one(self, x: Sample) -> None:
        """Learn a sample.  O(n_max^2 + n_max (inputs + n_components) + n_components^3).

        Parameters
        ----------
        x
            The features: numbers, under the names that the first sample had.

        Raises
        ------
        UserError
            If a feature is missing, unexpected or no finite number; at the first sample, if a parameter cannot be.
        """
        self._learned(x, self._fill(x).learn())


class Regressor(Model, base.MiniBatchRegressor):  # type: ignore[misc]
    """Kernel regression in fixed memory, in River's conventions, bit for bit as on a microcontroller.

    Without parameters it is a spec without a rule: a sum of few sinusoids whose frequencies learn, with inputs in
    running standard deviations and linear parts beside (docs/online.md). Raw data need no scaler before it. What
    ``pykernel.generate(model, out, name=…)`` writes goes on learning from this model's state, with the same bytes.

    The first sample, asked or learned, fixes the features: their sorted names are the inputs of the C. A later sample with
    a missing or an unexpected feature is refused.

    Parameters
    ----------
    {others}
        As in `pykernel.BudgetedKernelRegressor`. Nothing is derived from data: with a rule that has a kernel, give ``sigma`` or
        ``gamma`` as a number, or begin with ``learn_many``, whose first frame then gives the scale. Limits that are not given are the spec's.

    Attributes
    ----------
    features_ : tuple
        The inputs' names, in the order of the device's x[].
    spec_ : pykernel.Spec
        What the code generator takes.
    model_ : pykernel.HostModel
        The learned state, and the functions that work on it.
    status_counts_ : dict of str to int
        How many samples were learned with each status.

    Notes
    -----
    An update costs O(n_max^2 + n_max inputs) operations, a prediction O(n_max inputs). Python adds about a
    microsecond (docs/river.md).

    References
    ----------
    Van Vaerenbergh, S., Lázaro-Gredilla, M. and Santamaría, I. (2012). Kernel Recursive Least-Squares Tracker for
    Time-Varying Regression. IEEE Transactions on Neural Networks and Learning Systems 23(8).

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

    _learner, _questions = Regression, ("predict",)

    def learn_one(self, x: Sample, y: float) -> None:
        """Learn a sample.  O(n_max^2 + n_max inputs).

        Parameters
        ----------
        x
            The features: numbers, under the names that the first sample had.
        y
            The label, a number.

        Raises
        ------
        UserError
            If a feature is missing, unexpected or no finite number, or the label is none; at the first sample, if a
            parameter cannot be.
        """
        calls = self._fill(x)
        try:
            calls.label(y)
        except struct.error:
            raise self._no_label(y) from None
        status = calls.learn()
        if status < 0 and not math.isfinite(y):
            raise self._no_label(y)
        self._learned(x, status)

    def predict_one(self, x: Sample, with_interval: bool = False) -> Any:
        """The value of the learned function.  O(n_max inputs).

        Parameters
        ----------
        x
            The features.
        with_interval
            Whether to return a ``river.conf.Interval`` in place of the value, as River's conformal wrappers do.

        Returns
        -------
        y
            The number that the device computes: 0 before anything was learned; NaN, with a warning, beyond
            ``input_max_abs``. Or the interval: all that labels can be, before 20 labels were learned.

        Raises
        ------
        UserError
            If ``with_interval`` is asked of a model without ``interval_level``.
        """
        if not with_interval:
            return float(self._asked(x)[0])
        self._fill(x)
        self._where.need(
            self._inner.model_.has("interval"),
            "with_interval is asked of a model without intervals; give interval_level=0.9",
        )
        lower, upper = map(float, self._asked(x, "interval"))
        return conf.interval.Interval(lower, upper)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows in their order: the same bytes as ``learn_one`` of each.

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs); columns are the features.
        y
            The labels, a series of numbers.
        """
        _, rows = self._rows(X)
        try:
            labels = np.asarray(y, np.float64)
        except (TypeError, ValueError):
            raise self._where.error("y holds something else than numbers") from None
        for strange in labels[~np.isfinite(labels)][:1]:
            raise self._no_label(float(strange))
        if len(rows):
            self._noted(self._inner.model_.update(rows, labels))

    def predict_many(self, X: Any) -> Any:
        """Values of the learned function, as ``predict_one`` gives them: a series with the frame's index.

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs).
        """
        frame, values = self._answers(X)
        found = self._inner._finite(values).ravel() if len(values) else np.zeros(0)
        return dataframe.to_native_series(found, name=None, like=frame)

    def _no_label(self, y: Any) -> UserError:
        return self._where.error(f"the label is {short(y)}; it must be a finite number")


class Classifier(Model, base.MiniBatchClassifier):  # type: ignore[misc]
    """Kernel classification in fixed memory, in River's conventions, bit for bit as on a microcontroller.

    Without parameters it is a spec without a rule: a linear part and few sinusoids whose frequencies learn, with inputs in
    running standard deviations, and a linear model beside (docs/online.md). One function tells two classes apart; with more, each class has a function,
    and the largest decides. What ``pykernel.generate(model, out, name=…)`` writes goes on learning from this model's
    state, with the same bytes.

    The first sample, asked or learned, fixes the features: their sorted names are the inputs of the C. A later sample with
    a missing or an unexpected feature is refused. The number of functions is fixed, too, so the number of classes must be
    known; their names need not be.

    Parameters
    ----------
    classes : sequence or int, default=(False, True)
        All classes, from 2 to 64, in the order of the device's positions. Or how many there are at most: then the
        position of a class is when it first came. A class beyond is refused.
    {others}
        As in `pykernel.BudgetedKernelClassifier`. Nothing is derived from data: with a rule that has a kernel, give ``sigma`` or
        ``gamma`` as a number, or begin with ``learn_many``, whose first frame then gives the scale.

    Attributes
    ----------
    classes_ : list
        The classes that have a name yet; what the device calls class i is ``classes_[i]``.
    features_, spec_, model_, status_counts_
        As of `Regressor`.

    Notes
    -----
    Without parameters, an update costs O(inputs^2) operations, a prediction O(inputs), for each class; with ``n_max``,
    O(n_max^2 + n_max inputs) and O(n_max inputs). Before each sample is learned, what the model says of it is kept for
    probabilities.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from pykernel.river import Classifier
    >>> metric = evaluate.progressive_val_score(datasets.Bananas(), Classifier(), metrics.Accuracy())
    >>> metric.get() > 0.85
    True
    >>> model = Classifier(classes=7)
    >>> metric = evaluate.progressive_val_score(datasets.ImageSegments().take(300), model, metrics.Accuracy())
    >>> len(model.classes_)
    7
    """

    _learner, _questions = Classification, ("predict", "classify")
    _positional = 2

    _names: Mapping[Any, int] = MappingProxyType({})
    """The classes that have a name, with their positions."""
    _tells = False
    """Whether the device knows probabilities."""
    _met = 0
    """How many samples were kept for the sigmoids."""
    _fitted: tuple[int, Any] = (0, None)
    """The number of samples to which the sigmoids were fitted; the sigmoids."""

    @classmethod
    def _declared(cls) -> dict[str, Parameter]:
        return {"classes": Parameter(default=(False, True), kind=Sequence[Any] | int), **super()._declared()}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"classes": 7}

    @property
    def _multiclass(self) -> bool:
        return (self.classes if isinstance(self.classes, int) else len(self.classes)) > 2

    @property
    def classes_(self) -> list[Any]:
        return list(self._names)

    def learn_one(self, x: Sample, y: Any) -> None:
        """Learn a sample.  O(n_max^2 + n_max inputs).

        Parameters
        ----------
        x
            The features: numbers, under the names that the first sample had.
        y
            The class.

        Raises
        ------
        UserError
            If a feature is missing, unexpected or no finite number, or the class is none of ``classes``; at the first
            sample, if a parameter cannot be.
        """
        calls = self._fill(x)
        position = self._names.get(y)
        if position is None:
            self._require(x)
            position = self._positions([y])[0]
        if not self._tells and calls.ask() >= 0:
            self._keep(calls.answer, position)
        calls.label(position)
        self._learned(x, calls.learn())

    def predict_one(self, x: Sample) -> Any:
        """The class that the device's ``NAME_classify`` gives.  O(n_max inputs).

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        y
            The first class before anything was learned. None where the device gives a class that has no name yet.

        Raises
        ------
        UserError
            If a feature is missing, unexpected, no finite number or beyond ``input_max_abs``.
        """
        classify, position = self._fill(x).asked["classify"]
        if classify() < 0:
            self._require(x)
            raise self._beyond()
        return self._label(position.item())

    def predict_proba_one(self, x: Sample) -> dict[Any, float]:
        """How probable each class is, as in `pykernel.BudgetedKernelClassifier`.

        With rule "spectrum-softmax", and where the spec has [mixture]: the numbers that the device's ``NAME_probability``
        writes, O(n_max inputs). Otherwise Platt's sigmoids, which the device does not compute: fitted to what the model
        said of the last 1000 samples at most, before it learned them; anew after every 16th part of the samples, and at
        the latest after 64, each time O(1000 classes) for each of a few steps.

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        p
            Of each class that has a name, with the sum 1: the device's numbers are divided by their sum in float64, which changes them by
            rounding, and where classes have no name yet. Of Platt's sigmoids, the most probable class need not be that of
            ``predict_one``.
        """
        calls = self._fill(x)
        if self._tells:
            ask, answer = calls.bound("probability")
            if ask() < 0:
                self._require(x)
                raise self._beyond()
            return dict(zip(self._names, self._shares(answer[None])[0].tolist(), strict=True))
        if calls.ask() < 0:
            self._require(x)
            raise self._beyond()
        return dict(zip(self._names, self._probable(calls.answer[None])[0].tolist(), strict=True))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows in their order: the same bytes as ``learn_one`` of each.

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs); columns are the features.
        y
            The classes, a series.
        """
        _, rows = self._rows(X)
        if len(rows):
            positions = self._positions(np.asarray(y).tolist())
            learned = np.array(positions, np.int32)
            if self._tells:
                self._noted(self._inner.model_.update(rows, learned))
                return
            values, statuses = self._inner.model_.prequential(rows, learned)
            for value, position in zip(values.reshape(len(rows), -1), positions, strict=True):
                if not np.isnan(value[0]):
                    self._keep(value, position)
            self._noted(statuses)

    def predict_many(self, X: Any) -> Any:
        """Classes, as ``predict_one`` gives them: a series with the frame's index.

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs).
        """
        frame, rows = self._rows(X)
        positions = self._inner.model_.classify(rows).tolist() if len(rows) else []
        if any(position < 0 for position in positions):
            raise self._beyond()
        return dataframe.to_native_series([*map(self._label, positions)], name=None, like=frame)

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities, as ``predict_proba_one`` gives them: a frame with a column for each class that has a name.

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs).
        """
        frame, rows = self._rows(X)
        columns = np.zeros((len(self._names), 0))
        if len(rows):
            values = self._inner.model_.ask("probability" if self._tells else "predict", rows)[0]
            if np.isnan(values).any():
                raise self._beyond()
            columns = (self._shares(values) if self._tells else self._probable(values)).T
        return dataframe.to_native_frame(dict(zip(self._names, columns, strict=True)), like=frame)

    # ---- classes

    @property
    def _open(self) -> bool:
        """Whether classes get their names as they come."""
        return isinstance(self.classes, int) and not isinstance(self.classes, bool)

    def _class_names(self) -> list[Any]:
        """All classes, in the order of their indices; a class that has not occurred yet is named by its index."""
        if not self._open:
            return [plain(name) for name in self.classes]
        return [*self._names, *(f"class {i}" for i in range(len(self._names), self.classes))]

    def _begin(self, names: tuple[Any, ...], rows: np.ndarray) -> None:
        given = self.classes
        several = isinstance(given, Sequence) and not isinstance(given, str) and len(set(given)) == len(given)
        count = given if self._open else len(given) if several else 0
        self._where.need(
            2 <= count <= OUTPUTS_LIMIT,
            f"classes is {short(given)}; it must be a list of 2 to {OUTPUTS_LIMIT} different ones, or how many there will be at "
            "most",
        )
        super()._begin(names, rows)
        if not self._open:
            self._names = {name: position for position, name in enumerate(self._class_names())}
        self._tells = self._inner._tells
        # predictions for the last samples before they were learned, and the samples' classes
        self._values = np.zeros((CALIBRATED_ON + EVERY, self._inner.spec_.outputs))
        self._owners = np.zeros(len(self._values), np.int32)

    def _positions(self, labels: Iterable[Any]) -> list[int]:
        """The position of each label's class; a new class takes the next free position.

        Raises UserError if there is no free position; then none of the labels takes one.
        """
        labels, names = [*map(plain, labels)], dict(self._names)
        for y in labels:
            if y in names:
                continue
            known, named = short([*names]), y is not None and y == y
            self._where.need(named and self._open, f"the class {y!r} is none of classes, {known}")
            more = f"the class {y!r} is one more than classes={self.classes}, which are {known}"
            self._where.need(len(names) != self.classes, f"{more}; make a model with room for it")
            names[y] = len(names)
        if len(names) > len(self._names):
            self._names = names
            self._inner.name(self._class_names())
        return [names[y] for y in labels]

    def _label(self, position: int) -> Any:
        names = list(self._names)
        return names[position] if position < len(names) else None

    def _beyond(self) -> UserError:
        limit = self._inner.spec_.input.max_abs
        return self._where.error(
            f"an input is beyond the limit of {limit:g}; give input_max_abs, or leave the sample out"
        )

    # ---- probabilities

    def _keep(self, values: np.ndarray, position: int) -> None:
        at = self._met % len(self._owners)
        self._values[at], self._owners[at] = values, position
        self._met += 1

    def _shares(self, told: np.ndarray) -> np.ndarray:
        """What the device gives to the classes that have a name, (rows, names), with the sum 1 that River asks for."""
        named = told[:, : len(self._names)].astype(float)
        total = named.sum(axis=1, keepdims=True)
        return np.divide(named, total, out=np.full_like(named, 1 / max(1, len(self._names))), where=total > 0)

    def _probable(self, values: np.ndarray) -> np.ndarray:
        """Probabilities of the classes that have a name, (n, names)."""
        count = len(self._names)
        if count < 2 or not self._met:
            return np.full((len(values), count), 1 / max(count, 1))
        calibration = self._calibration()
        if len(calibration) > 1:
            values, calibration = values[:, :count], calibration[:count]
        return probabilities(values, calibration)

    def _calibration(self) -> np.ndarray:
        """The sigmoids, (functions, 2).

        The time of a question does not matter: they depend only on the learned samples.
        """
        every = min(EVERY, 1 << max(0, self._met.bit_length() - 5))
        count = self._met - self._met % every
        if self._fitted[0] != count:
            kept = np.arange(max(0, count - CALIBRATED_ON), count) % len(self._owners)
            self._inner._forecasts = self._values[kept], self._owners[kept], count
            self._fitted = count, self._inner.calibration_
        return self._fitted[1]  # type: ignore[no-any-return]


class AnomalyDetector(_Unsupervised, base.AnomalyDetector):  # type: ignore[misc]
    """A monitor in fixed memory, in River's conventions, bit for bit as on a microcontroller.

    Without parameters it is a spec with [novelty] and no rule: a bank of Gaussians, one for each regime of a machine, alarms
    in 1 % of the rows of normal operation, and no learning during an alarm (docs/novelty.md). With ``threshold``, or a
    parameter of the subspace of `Transformer` such as ``n_components``, it is that subspace: the score is the part of a
    sample that it does not represent, from 0 to 1.

    The first sample, asked or learned, fixes the features: their sorted names are the inputs of the C. A later sample with
    a missing or an unexpected feature is refused; with ``missing="hold"`` a value may be NaN.

    Parameters
    ----------
    {others}
        As in `pykernel.OnlineMonitor` and `pykernel.OnlineKernelSubspace`; None: what docs/spec.md says. Nothing is derived
        from data: with a ``kernel``, give ``sigma`` or ``gamma`` as a number.

    Attributes
    ----------
    alarm_ : bool
        Whether the device raised an alarm with the last learned sample.
    level_, threshold_, since_, kind_, regimes_
        As of `pykernel.OnlineMonitor`; a subspace has neither kind, regimes nor blame.
    blame_ : dict of feature to float
        Each feature's share in the present alarm, or in the last one.
    features_, spec_, model_, status_counts_
        As of `Regressor`.

    Notes
    -----
    For K ``components`` and D inputs, a score costs O(K D^2), an update as much, in an alarm O(D^3), where regimes merge
    O(K^2 D^3).

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
    >>> model.acknowledge()  # it is normal from now on
    True
    """

    _learner, _questions = Monitoring, ("novelty",)
    _defaults: ClassVar[dict[str, Any]] = {"n_components": None, "n_max": None}

    @property
    def alarm_(self) -> bool:
        return self._inner is not None and self._status in self._inner.spec_.program.alarms

    @property
    def level_(self) -> float:
        return self._started.level_  # type: ignore[no-any-return]

    @property
    def threshold_(self) -> float:
        return self._started.threshold_  # type: ignore[no-any-return]

    @property
    def since_(self) -> int:
        return self._started.since_  # type: ignore[no-any-return]

    @property
    def blame_(self) -> dict[Any, float]:
        return dict(zip(self._inputs, self._started.blame_.tolist(), strict=True))

    @property
    def kind_(self) -> str:
        return self._started.kind_  # type: ignore[no-any-return]

    @property
    def regimes_(self) -> list[float]:
        return self._started.regimes_.tolist()  # type: ignore[no-any-return]

    def acknowledge(self) -> bool:
        """As in `pykernel.OnlineMonitor`: the alarm is normal from now on.  False if there is nothing new."""
        return self._started.acknowledge()  # type: ignore[no-any-return]

    def reject(self) -> bool:
        """As in `pykernel.OnlineMonitor`: the alarm never may be normal.  False if there is nothing new, or no room."""
        return self._started.reject()  # type: ignore[no-any-return]

    def score_one(self, x: Sample) -> float:
        """How new a sample would be as the next one: higher is more anomalous.  O(components inputs^2).

        Parameters
        ----------
        x
            The features.

        Returns
        -------
        score
            What the device's ``NAME_novelty`` writes: like a logarithm, about 0 for usual rows, from -64 to 64; of a subspace
            from 0, all of it is known, to 1. NaN, with a warning, beyond ``input_max_abs``.
        """
        return float(self._asked(x)[0])


class Transformer(_Unsupervised, base.MiniBatchTransformer):  # type: ignore[misc]
    """Kernel features that follow a stream, in fixed memory, in River's conventions, bit for bit as on a microcontroller.

    ``z(x)'z(y)`` approximates ``k(x, y)``, so a linear model of z is nearly a kernel model. Inputs are in running standard
    deviations, unless a width is given. The subspace turns as it learns: a linear model behind must follow.

    The first sample, asked or learned, fixes the features: their sorted names are the inputs of the C. A later sample with
    a missing or an unexpected feature is refused.

    Parameters
    ----------
    {others}
        As in `pykernel.OnlineKernelSubspace`; None: what docs/spec.md says, but ``n_components`` is 12. Nothing is derived
        from data: with a ``kernel``, give ``sigma`` or ``gamma`` as a number.

    Attributes
    ----------
    features_, spec_, model_, status_counts_
        As of `Regressor`.

    Notes
    -----
    An update costs O(n_max^2 + n_max (inputs + n_components) + n_components^3), a sample's features
    O(n_max (inputs + n_components)).

    References
    ----------
    Sheikholeslami, F., Berberidis, D. and Giannakis, G. B. (2016). Large-scale kernel-based feature extraction via
    budgeted nonlinear subspace tracking. Algorithms 2 to 5.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, metrics
    >>> from pykernel.river import Transformer
    >>> model = Transformer(4) | linear_model.LogisticRegression()
    >>> metric = evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    >>> sorted(model["Transformer"].transform_one({"1": 0.5, "2": 0.5}))
    ['z0', 'z1', 'z2', 'z3']
    """

    _learner, _questions = Features, ("features",)
    _without = (*FITTING, *(name for name, each in Features._parameters().items() if each.section == "novelty"))
    _defaults: ClassVar[dict[str, Any]] = {"n_components": None, "n_max": None}

    def transform_one(self, x: Sample) -> dict[str, float]:
        """Features of a sample, z(x).  O(n_max (inputs + n_components)).

        Parameters
        ----------
        x
            The features of the sample.

        Returns
        -------
        z
            The numbers that the device's ``NAME_features`` writes, under z0, z1, ...; 0 where the subspace has not got
            a dimension yet, NaN, with a warning, beyond ``input_max_abs``.
        """
        return {f"z{i}": value for i, value in enumerate(self._asked(x).tolist())}

    def learn_many(self, X: Any) -> None:
        """Learn the rows in their order: the same bytes as ``learn_one`` of each.

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs); columns are the features.
        """
        _, rows = self._rows(X)
        if len(rows):
            self._noted(self._inner.model_.update(rows))

    def transform_many(self, X: Any) -> Any:
        """Features of samples, as ``transform_one`` gives them: a frame of shape (samples, n_components).

        Parameters
        ----------
        X
            A data frame of shape (samples, inputs).
        """
        frame, z = self._answers(X)
        columns = self._inner._finite(z).T if len(z) else ()
        return dataframe.to_native_frame({f"z{i}": column for i, column in enumerate(columns)}, like=frame)
