"""What River's models share: the inputs' names, the estimator's model, and calls that are bound to its memory."""

from __future__ import annotations

import math
import numbers
import operator
import struct
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from river import base
from river.utils import dataframe

from pykernel.estimators.parameters import Declared, Parameter, short
from pykernel.host.model import HostModel
from pykernel.host.single import Single
from pykernel.importers.place import Place
from pykernel.importers.steps import FILE
from pykernel.river.learners import FromFirst
from pykernel.spec.model import Spec

Sample = Mapping[Hashable, Any]
FITTING = ("n_epochs", "seed")
"""Parameters that River's models do not have: there is no second pass, and River sets ``seed`` in every model that has
it.
"""


class Calls(Single):
    """Calls for one sample that are bound to a model's memory: its values by name, and questions with their answers."""

    def __init__(self, model: HostModel, names: tuple[Any, ...], questions: Iterable[str]) -> None:
        super().__init__(model)
        get = operator.itemgetter(*names)
        self.take: Callable[[Sample], Iterable[Any]] = get if len(names) > 1 else lambda x: (get(x),)
        self.asked = {name: self.question(name) for name in questions}
        self.ask, self.answer = next(iter(self.asked.values()))

    def bound(self, name: str) -> tuple[Callable[[], int], np.ndarray]:
        """A question of which not every model knows the answer, bound when it is first asked."""
        if name not in self.asked:
            self.asked[name] = self.question(name)
        return self.asked[name]


class Model(Declared, base.Estimator):  # type: ignore[misc]
    """Base of all four models: the inputs' names, the estimator's model, and calls that are bound to its memory.

    For each sample, its length is checked, its values are fetched by name, and the values are copied into the model's
    row.
    """

    _learner: ClassVar[type[FromFirst]]
    _questions: ClassVar[tuple[str, ...]]
    """What is asked of one sample: first the question whose answer the model gives."""
    _without: ClassVar[Sequence[str]] = FITTING

    @classmethod
    def _declared(cls) -> Mapping[str, Parameter]:
        """Those of the estimator."""
        return cls._learner._parameters()

    # what an instance has from its first sample on
    _inner: Any = None
    _inputs: tuple[Any, ...] = ()
    _names_of: dict[int, str]
    """The statuses' names."""
    _status = 0
    _calls: threading.local | None = None
    """Each thread has calls of its own, because they hold the sample and its answer."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_calls": None}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Any:
        """A new model with the same parameters, as in River.  include_attributes: also copy the learned state."""
        self._calls = None  # they stay with their memory
        return super().clone(new_params, include_attributes)

    # ---- attributes for pykernel.generate and pykernel.check

    @property
    def features_(self) -> tuple[Any, ...]:
        """The inputs' names, in the order of the device's x[]: sorted.  Empty before the first sample."""
        return self._inputs

    @property
    def spec_(self) -> Spec:
        """The model's parameters with everything derived: what the code generator takes."""
        return self._started.spec_  # type: ignore[no-any-return]

    @property
    def model_(self) -> HostModel:
        """The learned state, ``model_.memory``, and the functions that work on it."""
        self._calls = None  # the caller may replace the model's memory
        return self._started.model_  # type: ignore[no-any-return]

    @property
    def status_counts_(self) -> dict[str, int]:
        """How many samples were learned with each status, as the device's ``NAME_update`` returns it."""
        return dict(self._started.status_counts_)

    @property
    def _started(self) -> Any:
        if self._inner is None:
            raise AttributeError(f"the {type(self).__name__} has seen no sample yet")
        return self._inner

    def to_spec(self, name: str) -> Spec:
        """The spec with a name for its C symbols.  ``pykernel.generate(model, out, name=…)`` also exports the state.

        Raises UserError if the name is not valid, or if no sample was seen.
        """
        FILE.need(self._inner, f"the {type(self).__name__} has learned nothing yet; call its learn_one first")
        return self._inner.to_spec(name)  # type: ignore[no-any-return]

    @property
    def _is_stochastic(self) -> bool:
        return False

    def _unit_test_skips(self) -> set[str]:
        """Checks of River that are skipped: in them inputs appear and disappear, but the device's inputs are fixed."""
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
            "check_learn_many_matches_learn_one",
        }

    # ---- one sample

    def _fill(self, x: Sample) -> Calls:
        """Copy the sample into the model's row.

        Raises UserError if its names are not those of the first sample, or if a value is not a number.
        """
        try:
            calls = self._calls.bound  # type: ignore[union-attr]
        except AttributeError:
            calls = self._bind(x)
        try:
            if len(x) == len(self._inputs):
                calls.fill(*calls.take(x))
                return calls
        except (KeyError, struct.error):
            pass
        self._require(x)
        raise self._where.error("a sample cannot be read as numbers")

    def _bind(self, x: Sample) -> Calls:
        if self._inner is None:
            names = _ordered(x)
            self._require(x, names)
            self._begin(names, np.array([[float(x[name]) for name in names]]))
        self._calls = self._calls or threading.local()
        self._calls.bound = calls = Calls(self._inner.model_, self._inputs, self._questions)
        return calls

    def _begin(self, names: tuple[Any, ...], rows: np.ndarray) -> None:
        """Make a new model for these inputs.  rows: samples, which are used only if a parameter needs their scale."""
        given = {name: getattr(self, name) for name in self._parameters() if name != "classes"}
        inner = self._learner(**given)
        inner.begin(names, rows, self._class_names())
        told = 'precision is "int16", whose samples are counts; River gives numbers: take "float32" or "float64"'
        self._where.need(not inner.spec_.real.is_integer, told)
        self._names_of = {int(each): each.name for each in inner.spec_.program.status}
        self._inner, self._inputs = inner, names

    def _class_names(self) -> Sequence[Any]:
        return ()

    def _require(self, x: Sample, names: tuple[Any, ...] | None = None) -> None:
        """Raises UserError, one sentence, if something is wrong with a sample.  names: other names of the inputs."""
        names, where = self._inputs if names is None else names, self._where
        where.need(names, "the first sample has no features; it must have all that there will be")
        fixed = "; the first sample fixed the features, which are the inputs of the C"
        for name in names:
            where.need(name in x, f"a sample has no feature {name!r}{fixed}")
        for name in x:
            where.need(name in names, f"a sample has an unexpected feature {name!r}{fixed}")
        for name in names:
            number = isinstance(x[name], (numbers.Real, np.bool_))
            if not number or not (math.isfinite(x[name]) or (self._completes and math.isnan(x[name]))):
                kind = "finite number" if number else "number"
                raise where.error(f"feature {name!r} is {short(x[name])}; it must be a {kind}")

    @property
    def _completes(self) -> bool:
        """Whether something stands in for features that are NaN."""
        return getattr(self, "missing", None) not in (None, "refuse")

    @property
    def _where(self) -> Place:
        return Place(type(self).__name__)

    def _asked(self, x: Sample, question: str = "") -> np.ndarray:
        """The answer for a sample, (values,), overwritten by the next; NaN, with a warning, beyond the limit of inputs.

        question: in place of the model's own.
        """
        calls = self._fill(x)
        ask, answer = (calls.ask, calls.answer) if not question else calls.bound(question)
        if ask() >= 0:
            return answer
        self._require(x)
        return self._inner._finite(np.full((1, len(answer)), np.nan))[0]  # type: ignore[no-any-return]

    def _learned(self, x: Sample, status: int) -> None:
        """Count the status of a sample.  Raises UserError if it was refused because it is no sample."""
        if status < 0:
            self._require(x)
        if status < 0 or self._names_of[status] == "RESTARTED":
            self._noted(np.array([status]))
            return
        self._status = status
        self._inner.status_counts_[self._names_of[status]] += 1

    # ---- many samples

    def _rows(self, X: Any) -> tuple[Any, np.ndarray]:
        """The frame in the form that River's helpers take, and its values in the order of the inputs, (n, inputs)."""
        frame, where = dataframe.into_frame(X), self._where
        columns = list(frame.columns)
        try:
            rows = dataframe.to_numpy(frame)
        except (TypeError, ValueError) as error:
            raise where.error(f"a column of X holds something else than numbers: {error}") from None
        names = self._inputs or _ordered(columns)
        self._require(dict.fromkeys(columns, 0.0), names)
        rows = rows[:, [columns.index(name) for name in names]]
        strange = ~np.isfinite(rows) & ~(self._completes & np.isnan(rows))
        for i, j in np.argwhere(strange)[:1].tolist():
            raise where.error(f"feature {names[j]!r} is {rows[i, j]} in row {i}; it must be a finite number")
        if self._inner is None and len(rows):
            self._begin(names, rows)
        return frame, rows

    def _answers(self, X: Any) -> tuple[Any, np.ndarray]:
        """The frame, and the answers of the model's question for its rows, (n, values); NaN beyond the limit of inputs."""
        frame, rows = self._rows(X)
        if not len(rows):
            return frame, np.zeros((0, 0))
        return frame, self._inner.model_.ask(self._questions[0], rows)[0].reshape(len(rows), -1)

    def _noted(self, statuses: np.ndarray) -> None:
        self._status = int(statuses[-1])
        self._inner._counted(statuses)


def _ordered(names: Any) -> tuple[Any, ...]:
    """The inputs' names, sorted, so that the order of a dictionary does not matter."""
    try:
        return tuple(sorted(names))
    except TypeError:  # of several kinds
        return tuple(sorted(names, key=lambda name: (type(name).__name__, repr(name))))
