"""Run a model with labels over a stream of samples, and collect its errors in constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.advice import FEW, Signs, Trial, advice
from pykernel.host.model import HostModel
from pykernel.host.run import Run
from pykernel.host.samples import as_table, latest
from pykernel.host.scores import Coverage, Errors, verdict
from pykernel.host.simple import Simple
from pykernel.spec.model import Spec

LEAST_CHANCE = 2.0**-24
"""Lower limit of the true class's probability, so that the log loss stays finite."""


class Simulation(Run):
    """A model that is run over a stream as on the device, and its errors.

    Row t is predicted, or classified, and then row t - delay is learnt, so that no label is used before it is known.  A
    row that lacks one of its labels is only predicted.  If the model never gets labels, the simple predictors learn the
    labels of the first ``until`` rows, or all labels if ``until`` is None, and the report says so.  Errors are counted
    only after the first known label.  Before that label, a predictor that has learned nothing answers 0, and a single
    huge label could dominate the error of the whole stream.  The model is refreshed every ``refresh_every`` rows (0:
    never).  A model that is trained from stored samples is trained after every ``train_every`` labels (0: never).  If
    the model does not learn, it only predicts.

    Raises UserError for a model without labels, because such a model has no errors. ``Monitoring`` runs such models.
    """

    def __init__(
        self,
        spec: Spec,
        delay: int = 0,
        refresh_every: int = 0,
        train_every: int = 0,
        forecasts: bool = False,
        until: int | None = None,
    ) -> None:
        if spec.program.label_kind == "none":
            raise UserError(f"{spec.name} learns without labels, so it has no errors to compare")
        super().__init__(spec, delay, refresh_every, train_every, forecasts)
        self.gets_labels, self.until = spec.program.learns or forecasts, until
        self.simple = Simple(spec, delay, until)
        # for each label: whether a value is already known
        self._begun = np.zeros(self._shape[0] if self._shape else 1, bool)
        self.unscored, self._unscored_why = {"inputs": 0, "labels": 0}, ""
        """Labelled rows without an error, because the model refuses their inputs or their labels."""
        names = ("model", *self.simple.names)
        self.errors = Errors(names)
        # the errors if each refused row gets the previous answer
        self.standing, self._stood = Errors(("model",)), np.zeros((1, self._shape[0] if self._shape else 1))
        # with several labels: the errors of each label
        self.each = [Errors(names) for _ in range(self._shape[0])] if self._shape else []
        self.signs = Signs(spec, delay)
        # [i, j]: rows of class i classified as j
        self.confusion = np.zeros((len(self.classes), len(self.classes)), np.int64)
        self.coverage: Coverage | None = None
        if self.model.has("interval"):
            # the loop asks a model only one question, so a second model learns the same rows and gives the intervals
            self._second = HostModel(spec)
            nothing = self._second.ask("interval", np.zeros((1, spec.dim)))[0][0]
            self.coverage = Coverage(spec.outputs, nothing)
        self.losses: Errors | None = None
        if self.model.has("probability"):
            # for the same reason, a second model gives probabilities; the baseline is the classes' frequencies so far
            self._second = HostModel(spec)
            self.losses, self._came = Errors(("model", "base rate")), np.ones(len(self.classes))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names in the data, or generated names."""
        names = self.spec.label_columns
        return names or (tuple(f"label {i}" for i in range(self._shape[0])) if self._shape else ("the label",))

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray, truth: np.ndarray) -> None:
        """Compare the answers of the model and of the simple predictors with the labels.

        The simple predictors learn the released labels.
        """
        waiting = len(y) - len(asked)
        self._count_unscored(asked, x[waiting:], y[waiting:])
        if self.classes:
            known = np.where(self._valid(released), released, -1)
            guesses = np.column_stack([asked, self.simple.step(x, y, waiting, as_table(known))[:, :, 0]])
            scored = self._valid(truth) & (asked >= 0) & self._after_first(as_table(known) >= 0)[:, 0]
            self.errors.add(np.where(scored[:, None], guesses != truth[:, None], np.nan))
            labelled = self._valid(truth)
            self.standing.add(np.where(labelled, self._standing(asked, asked >= 0)[:, 0] != truth, np.nan))
            np.add.at(self.confusion, (truth[scored], asked[scored]), 1)
            self.signs.take_columns(x[waiting:].astype(np.float64), scored)
            if self.losses is not None:
                came = (known[:, None] == np.arange(len(self.classes))).cumsum(axis=0) + self._came
                shares, self._came = np.concatenate([self._came[None], came[:-1]]), came[-1]
                shares = shares / shares.sum(axis=1, keepdims=True)
                of, place = np.flatnonzero(scored), truth[scored]
                losses = np.full((len(truth), 2), np.nan)
                for column, p in enumerate((self._chances.reshape(shares.shape), shares)):
                    losses[of, column] = -np.log(np.maximum(p[of, place], LEAST_CHANCE))
                self.losses.add(losses)
            return
        # (rows, labels)
        model, known, truth = (as_table(a).astype(np.float64) for a in (asked, released, truth))
        known = np.where(as_table(self._valid(released)), known, np.nan)
        truth = np.where(as_table(self._valid(y[waiting:])) & self._after_first(~np.isnan(known)), truth, np.nan)
        simple = self.simple.step(x, y, waiting, known)
        errors = np.concatenate([model[:, None], simple], axis=1) - truth[:, None]
        self.errors.add(errors)
        self.standing.add(self._standing(model, ~np.isnan(model)) - truth)
        for i, one in enumerate(self.each):
            one.add(errors[:, :, i])
        self.signs.take(x[waiting:], truth, errors[:, 0], simple[:, self.simple.names.index("running mean")])

    def _count_unscored(self, asked: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        labelled, unanswered = ~self._missing(y), self._missing(asked)
        beyond = labelled & ~as_table(self._valid(y)).all(axis=1)
        self.unscored["inputs"] += int((labelled & unanswered & ~beyond).sum())
        self.unscored["labels"] += int(beyond.sum())
        if beyond.any() and not self._unscored_why:
            self._unscored_why = self._reason("REFUSED_LABEL", x[beyond][0], y[beyond][0])

    def _standing(self, answers: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return the answers, (rows, labels), with each missing answer replaced by the latest answer before it."""
        each = zip(self._stood[0], as_table(answers).T, as_table(there).T, strict=True)
        stood = np.column_stack([latest(last, own, known)[1:] for last, own, known in each])
        self._stood = stood[-1:]
        return stood

    def _enclosed(self, x: np.ndarray, y: np.ndarray, waiting: int) -> np.ndarray:
        if self.coverage is None and self.losses is None:
            return super()._enclosed(x, y, waiting)
        self._second.memory.copy_from(self.model.memory)
        if self.losses is not None:
            self._chances = self._second.prequential(x, y, waiting, self.delay, "probability")[0].astype(np.float64)
            return super()._enclosed(x, y, waiting)
        return as_table(self._second.prequential(x, y, waiting, self.delay, "interval")[0])

    def _cover(self, asked: np.ndarray, y: np.ndarray, ends: np.ndarray) -> None:
        if self.coverage is not None:
            truth = np.where(as_table(self._valid(y)), as_table(y).astype(np.float64), np.nan)
            self.coverage.add(as_table(asked).astype(np.float64), truth, ends.astype(np.float64))

    def _after_first(self, known: np.ndarray) -> np.ndarray:
        """Return a Boolean array, (rows, labels), which is True if a value of the label was known before the row.

        known: a Boolean array of this shape, True if a value becomes known after the row.
        """
        begun = np.maximum.accumulate(np.concatenate([self._begun[None], known]))
        self._begun = begun[-1]
        return np.asarray(begun[:-1])

    def _reason(self, status: str, x: np.ndarray, y: Any) -> str:
        if status != "REFUSED_LABEL":
            return super()._reason(status, x, y)
        i = int(np.flatnonzero(~np.atleast_1d(self._valid(y)))[0])
        value = np.atleast_1d(y)[i]
        if self.classes:
            return f"{self.labels[0]} is {value}; classes are numbered from 0 to {len(self.classes) - 1}"
        return f"{self.labels[i]} is {value:g} and [label] max_abs is {self.spec.label_limit_told}; raise that limit or scale the column"

    def summary(self, errors: Errors, first: int = 0) -> dict[str, Any]:
        """Return the errors of each predictor from row ``first`` on: mae and rmse or, for classes, error_rate."""
        found = errors.summary(first)
        if self.classes:
            found = {key: found[key] for key in ("first_row", "scored")} | {"error_rate": found["mae"]}
        return found

    def _simple_told(self) -> dict[str, dict[str, float | None]]:
        """Return the errors of each simple predictor over the second half."""
        half = self.summary(self.errors, self.rows // 2)
        measures = [key for key in ("mae", "rmse", "error_rate") if key in half]
        return {name: {key: half[key][name] for key in measures} for name in self.simple.names}

    def _verdict(self) -> dict[str, Any] | None:
        found = self.summary(self.errors, self.rows // 2)
        errors = dict(found["error_rate" if self.classes else "rmse"])
        if not self.gets_labels:
            errors.pop("last label", None)  # the device never gets a label, so it could not use this predictor
        return None if found["scored"] < FEW else verdict(errors.pop("model"), errors)

    def leave_one_out(self) -> dict[str, Any]:
        """Return the result of NAME_leave_one_out for the last training: status, mean squared error and, for classes, error rate.

        A value that the function does not give is None.  samples: number of visited samples, for a model with visits.
        """
        values, status = self.model.read("leave_one_out")
        known = [float(v) if status >= 0 else None for v in values]
        return {
            "status": self.spec.program.status(status).name.lower(),
            "mse": known[0],
            **({"error_rate": known[1]} if self.classes else {}),
            **({"samples": self.visited} if self.visits else {}),
        }

    def report(self, trial: Trial | None = None) -> dict[str, Any]:
        """Return a report on the whole run as a dict.

        all, second_half: see ``summary``.  With several labels, these errors are means over the labels, and
        ``by_label`` has the errors of each label.
        confusion: how many rows of each true class (a row of the table) were classified as each class (a column).
        statuses: number of updates with each status or, for a model that does not learn, number of predictions with
        each status.
        unscored: numbers of labelled rows that have no error, because the model refused their inputs or their labels.
        advice: the result of ``advice``, which gets the argument ``trial``.
        log_loss: for a model with probabilities, the mean of -log p of the true class, for the model and for the
        classes' frequencies so far.
        interval: for a model with intervals, their level, and ``Coverage.summary`` of all rows and of the second half.
        simple: the errors of simple predictors over the second half.  verdict: the result of ``verdict`` for the second
        half, or None if too few rows were scored.
        simple_learned: number of rows at the beginning whose labels the simple predictors learned, or None for all
        rows.
        trainings, leave_one_out: only for a model that is trained from stored samples.
        """
        trained = {"trainings": {s.name.lower(): count for s, count in self.trainings.items() if count}}
        readable = "leave_one_out" in self.spec.program.readings and self.model.exists("leave_one_out")
        each = zip(self.labels, self.each, strict=False)
        return {
            "name": self.spec.name,
            "rule": self.spec.learning.rule,
            "simple": self._simple_told(),
            "gets_labels": self.gets_labels,
            "simple_learned": self.until,
            "rows": self.rows,
            "delay": self.delay,
            "labelled": self.rows - self.unlabelled,
            "unlabelled": self.unlabelled,
            "waiting": self.waiting,
            "unscored": self.unscored,
            **self._told(),
            **(trained if self.trains else {}),
            **({"leave_one_out": self.leave_one_out()} if readable and self.train_every else {}),
            **self._parts(self.errors),
            **({"by_label": {name: self._parts(errors) for name, errors in each}} if self.each else {}),
            **({"classes": list(self.classes), "confusion": self.confusion.tolist()} if self.classes else {}),
            **self._coverage_told(),
            **self._losses_told(),
            "advice": [] if self.goes_on else advice(self, trial),
            "verdict": self._verdict(),
            "warnings": [*filter(None, [self._unscored_told(), self.coarse, self.warning])],
        }

    def _unscored_told(self) -> str:
        many, labelled = self.unscored["labels"], self.rows - self.unlabelled
        return f"{many:,} of {labelled:,} labelled rows are not scored: {self._unscored_why}" if many else ""

    def _parts(self, errors: Errors) -> dict[str, Any]:
        return {"all": self.summary(errors), "second_half": self.summary(errors, self.rows // 2)}

    def _coverage_told(self) -> dict[str, Any]:
        if (found := self.coverage) is None:
            return {}
        told = {"all": found.summary(), "second_half": found.summary(self.rows // 2)}
        return {"interval": {"level": self.spec.interval.level, **told}}

    def _losses_told(self) -> dict[str, Any]:
        if (found := self.losses) is None:
            return {}
        return {"log_loss": {"all": found.summary()["mae"], "second_half": found.summary(self.rows // 2)["mae"]}}
