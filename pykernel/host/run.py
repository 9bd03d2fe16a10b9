"""Run a model over a stream of samples, as on the device.  Models with and without labels share this code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.host.model import HostModel
from pykernel.host.outside import Outside
from pykernel.host.samples import Batch, as_table, input_names, stand_ins
from pykernel.rows.columns import coarse_told
from pykernel.spec.missing import choice
from pykernel.spec.model import Spec
from pykernel.telling import stand_ins_phrase

DELAY_LIMIT = 10**6
"""Maximum delay of a label, in rows.  The delay is limited because rows are kept until their labels arrive."""
ADVISE_AFTER = 100
"""The report has a warning if, at the end of a run, more than this many samples in a row were refused."""


@dataclass(frozen=True)
class Steps:
    """Results of a few steps of the device's loop.  In step t, the model predicts row t (or answers its question, if it
    learns without labels), and then learns row t - delay.

    labels: in the form of ``Batch.y``.
    predictions: one for each row, NaN (-1 for a class) where the input was refused.
    learnt: whether each step passed a row to the learner, which may have refused the row.
    statuses: the status of learning in each step; it is valid where ``learnt`` is True.  If the model does not learn,
    these are the statuses of the predictions, and ``learnt`` is True everywhere.
    states: (rows, 3) for a model that raises alarms: level, threshold, and number of rows since the alarm began, after
    each row; otherwise (rows, 0).
    ends: (rows, 2 labels) for a model with intervals: all lower ends, then all upper ends; otherwise (rows, 0).
    blame: (rows, 4) for a model that raises alarms, otherwise (rows, 0).  Each row in alarm holds the most blamed input,
    its share of the blame, the alarm's kind, and the input with the second largest share (NaN if this share is less than
    half of the largest).  All four values are NaN for rows that are not in alarm.
    """

    first_row: int
    labels: np.ndarray
    predictions: np.ndarray
    statuses: np.ndarray
    learnt: np.ndarray
    states: np.ndarray
    ends: np.ndarray
    blame: np.ndarray


class Run:
    """A model that is run over a stream as on the device.

    The model answers for each row; then it learns a row.  With labels, the model learns the row that came ``delay``
    rows earlier, if all labels of that row are known.  The model is refreshed every ``refresh_every`` rows (0: never).
    A model that is trained from stored samples is trained after every ``train_every`` labels (0: never).  A model that
    does not learn only answers. With ``forecasts``, such a model may have a delay, too: the simple predictors learn
    each true value after this delay.
    """

    def __init__(
        self, spec: Spec, delay: int = 0, refresh_every: int = 0, train_every: int = 0, forecasts: bool = False
    ) -> None:
        if not 0 <= delay <= DELAY_LIMIT:
            raise UserError(f"delay is {delay}; it must be from 0 to {DELAY_LIMIT:,} rows")
        if refresh_every < 0:
            raise UserError(f"refresh-every is {refresh_every}; it must be a number of rows, or 0 for never")
        if train_every < 0:
            raise UserError(f"train-every is {train_every}; it must be a number of labels, or 0 for never")
        self.spec, self.model, program = spec, HostModel(spec), spec.program
        self.trains = self.model.exists("train")
        if train_every and not self.trains:
            raise UserError(
                f"rule {spec.learning.rule} has no train function on the device (krr, ls-svm and kfd have one); leave "
                "train-every out"
            )
        if delay and (not (program.learns or forecasts) or program.label_kind == "none"):
            raise UserError(f"rule {spec.learning.rule} takes no labels, so delay has no effect; leave delay out")
        if refresh_every and not self.model.exists("refresh"):
            what = spec.reduction.technique if spec.has("reduction", "technique") else f"rule {spec.learning.rule}"
            raise UserError(f"{what} has nothing to refresh; leave refresh-every out, or use mklms")
        self.delay, self.refresh_every, self.train_every = delay, refresh_every, train_every
        self.forecasts = forecasts
        self.classes = spec.label.classes or ()
        self._shape = program.label_array(spec.capacities).shape
        self._dtype = spec.label_number
        self.goes_on, self._asked = False, 0
        self.rows = self.unlabelled = self.inputs_refused = 0
        self.missing = np.zeros(spec.dim, np.int64)  # for each input: number of rows in which it is missing
        self.outside = Outside(spec)
        self.statuses = {status: 0 for status in program.status}
        self.trainings = {status: 0 for status in program.status}
        self._labels_since = 0  # number of labels that became known since the last training
        self.visited = 0  # number of samples that the functions in ``visits`` accepted
        self.coarse: str | None = None  # a warning if the precision is too coarse for numbers in the first rows
        self.streak = self.longest_streak = 0  # consecutive refused labelled samples: now, and at most
        self._why = ""
        self._waiting_x = np.zeros((0, spec.dim), spec.number)
        self._waiting_y = np.zeros((0, *self._shape), self._dtype)

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray, truth: np.ndarray) -> None:
        """Score the answers to the next rows.  released: the label that becomes known after each of these rows.

        x, y: first the rows that still wait for their labels, then the next rows.  truth: the labels of the next rows as they were
        given, before conversion to the model's precision.
        """
        raise NotImplementedError

    def _taken(
        self, x: np.ndarray, y: np.ndarray, waiting: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Predict and learn the next rows.  Returns the predictions, statuses, states and blame for ``Steps``. x, y: see
        ``_score``.
        """
        question, none = self.spec.program.forecasts(self.spec.config), np.zeros((len(x) - waiting, 0))
        return *self.model.prequential(x, y, waiting, self.delay, question), none, none

    def _follow(self, steps: Steps) -> None:
        """Record the next steps."""

    def _enclosed(self, x: np.ndarray, y: np.ndarray, waiting: int) -> np.ndarray:
        """Return the intervals of the next rows for ``Steps.ends``.  This method is called before the model takes these
        rows.  x, y: see ``_score``.
        """
        return np.zeros((len(x) - waiting, 0))

    def _cover(self, asked: np.ndarray, y: np.ndarray, ends: np.ndarray) -> None:
        """Score the intervals of the next rows."""

    def _reason(self, status: str, x: np.ndarray, y: Any) -> str:
        """Say why a sample was refused, and what to do about it."""
        spec = self.spec
        if status == "REFUSED_INPUT":
            j = int(np.argmin(spec.accepted(x)))
            column = input_names(spec)[j]
            if np.isnan(x[j]):
                if spec.completes:
                    return "all inputs are missing, and such rows are not learned"
                remedy = stand_ins_phrase(stand_ins(spec))
                return f"{column} is nan, not a number: such rows are neither predicted nor learned{remedy}"
            return f"{column} is {x[j]:g} and [input] max_abs is {spec.limit_told(j)}; raise that limit or scale the column"
        lower = ["lower [learning] eta"] if spec.has("learning", "eta") else []
        labelled = spec.program.label_kind != "none"
        remedies = [*lower, *(["raise [label] max_abs if labels exceed this limit"] if labelled else [])]
        return "; ".join(["learning diverges", *([", or ".join(remedies)] if remedies else [])])

    def run(self, x: np.ndarray, y: np.ndarray) -> Iterator[Steps]:
        """Take the next samples, with inputs and labels as in a Batch, and yield the steps."""
        start = min(self._asked, len(x))
        if start:
            self._remember(x[:start], y[:start])
        while start < len(x):
            end = len(x)
            if self.refresh_every:
                end = min(end, start + self.refresh_every - self.rows % self.refresh_every)
            if self.train_every:
                end = min(end, start + self._until_training(y[start:end]))
            yield self._step(x[start:end], y[start:end])
            if self.refresh_every and self.rows % self.refresh_every == 0:
                self.model.refresh()
            if self.train_every and self._labels_since == self.train_every:
                self.train()
            start = end

    def _remember(self, x: np.ndarray, y: np.ndarray) -> None:
        """Take rows about which the model was asked before this run, and learn those whose labels are due."""
        self._asked -= len(x)
        x = np.concatenate([self._waiting_x, x.astype(self.spec.number)])
        y = np.concatenate([self._waiting_y, y.astype(self._dtype)])
        due = max(0, len(x) - self.delay)
        known = np.flatnonzero(~self._missing(y[:due]))
        if self.spec.program.learns:
            for status in self.model.update(x[known], y[known]):
                self.statuses[self.spec.program.status(status)] += 1
            self._labels_since += len(known)
        self._waiting_x, self._waiting_y = x[due:], y[due:]

    def _until_training(self, y: np.ndarray) -> int:
        """Return the number of rows to run before the next training.

        The last of these rows is the row after which enough labels for the training are known. If the rows do not give
        enough labels, all rows are run.
        """
        known = np.flatnonzero(~self._missing(self._released(y)))
        last = self.train_every - self._labels_since - 1
        return int(known[last]) + 1 if last < len(known) else len(y)

    def _released(self, y: np.ndarray) -> np.ndarray:
        """Return the label that becomes known after each of the next rows.

        After each of the first ``delay`` rows of the stream, the label is NaN (-1 for a class).
        """
        none = min(len(y), self.delay - len(self._waiting_y))
        nothing = np.full((none, *self._shape), -1 if self.classes else np.nan, self._dtype)
        return np.concatenate([nothing, self._waiting_y, y])[: len(y)]

    def train(self) -> IntEnum:
        """Train the model, and return the status of the training."""
        status = self.spec.program.status(self.model.train())
        self.trainings[status] += 1
        self._labels_since = 0
        return status

    def finish(self, again: Iterable[Batch] = ()) -> None:
        """After the last row, train the model if labels became known since its last training, and then pass all
        learned samples to the functions in ``visits``. Do nothing if ``train_every`` is 0.

        again: all rows of the run once more, from which the learned samples are taken; needed only if ``visits`` is not
        empty.
        """
        if not self.train_every:
            return
        if self._labels_since:
            self.train()
        visits, left = self.visits, self.rows - self.delay
        for batch in again if visits else ():
            with np.errstate(over="ignore"):
                x, y = batch.x[: max(0, left)].astype(self.spec.number), batch.y[: max(0, left)].astype(self._dtype)
            known = ~self._missing(y)
            left -= len(batch.x)
            for visit in visits:
                self.visited += int((self.model.visit(visit, x[known], y[known]) >= 0).sum())

    def went_on(self, asked: int = 0) -> None:
        """Record that the model had already learned before this run.  The report then gives no advice.

        asked: how many of the next rows the model was asked about before this run; these rows are not predicted again, but
        their labels are learned when they are due.
        """
        self.goes_on, self._asked = True, asked

    @property
    def visits(self) -> list[str]:
        """Functions that take each sample once more after training."""
        program = self.spec.program
        return [name for name in program.visits if name not in program.promises and self.model.exists(name)]

    def _missing(self, y: np.ndarray) -> np.ndarray:
        """Return a Boolean array, (rows,), which is True for the rows that lack at least one of their labels."""
        y = as_table(y)
        return np.asarray((y < 0 if y.dtype.kind == "i" else np.isnan(y)).any(axis=1))

    def _valid(self, y: np.ndarray) -> np.ndarray:
        """Return a Boolean array with the shape of y, which is True for the labels that the model can learn."""
        if self.classes:
            return (y >= 0) & (y < len(self.classes))
        if not self.spec.program.learns:  # no label reaches the device, so none is beyond a limit
            return np.asarray(np.isfinite(y))
        return np.asarray(self.spec.within_limit(y))

    def _step(self, x: np.ndarray, y: np.ndarray) -> Steps:
        truth = y
        if not self.rows and len(x) > 1:
            labels = self.spec.label_columns if y.dtype.kind == "f" else ()
            columns = np.column_stack([x, y]) if labels else x
            self.coarse = coarse_told(columns, [*input_names(self.spec), *labels], self.spec.number)
        with np.errstate(over="ignore"):  # a number that is too large for float32 becomes infinite, and is refused
            x, y = x.astype(self.spec.number), y.astype(self._dtype)
        waiting, rows = len(self._waiting_x), len(x)
        all_x, all_y = np.concatenate([self._waiting_x, x]), np.concatenate([self._waiting_y, y])
        ends = self._enclosed(all_x, all_y, waiting)
        predictions, statuses, states, blame = self._taken(all_x, all_y, waiting)
        released, none = self._released(y), min(rows, self.delay - waiting)
        learnt = ~self._missing(released)
        self._score(predictions, released, all_x, all_y, truth)
        self._cover(predictions, y, ends)
        if self.spec.program.learns:
            self._labels_since += int(learnt.sum())
            self._watch(statuses[learnt], all_x[: rows - none][learnt[none:]], released[learnt])
        else:
            learnt = np.ones(rows, bool)  # the model does not learn, so the statuses are those of the predictions
            self.outside.add(x)
        for status, count in zip(*np.unique(statuses[learnt], return_counts=True), strict=True):
            self.statuses[self.spec.program.status(status)] += int(count)
        steps = Steps(self.rows, y, predictions, statuses, learnt, states, ends, blame)
        self._follow(steps)
        self.rows += rows
        self.missing += np.isnan(x).sum(axis=0)
        self.unlabelled += int(self._missing(y).sum())
        self.inputs_refused += int(self._missing(predictions).sum())
        keep = len(all_x) - min(len(all_x), self.delay)
        self._waiting_x, self._waiting_y = all_x[keep:], all_y[keep:]
        return steps

    def _watch(self, statuses: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Count consecutive refusals, and keep the reason for the last refusal."""
        if not len(statuses):
            return
        borders = np.concatenate([[-1 - self.streak], np.flatnonzero(statuses >= 0), [len(statuses)]])
        self.longest_streak = max(self.longest_streak, int(np.diff(borders).max()) - 1)
        self.streak = int(borders[-1] - borders[-2]) - 1
        if self.streak:
            self._why = self._reason(self.spec.program.status(statuses[-1]).name, x[-1], y[-1])

    @property
    def waiting(self) -> int:
        """The number of labelled rows that are not learnt yet, because their delay is not over."""
        return int((~self._missing(self._waiting_y)).sum()) if self.spec.program.learns else 0

    @property
    def warning(self) -> str | None:
        """A warning about a model that was never trained, got rows outside the range of its training rows, or refused
        all of the last samples.  None if no warning is needed.
        """
        if self.trains and not any(count for status, count in self.trainings.items() if status >= 0):
            if not self.train_every:
                return (
                    "the model was never trained, so it predicts 0; "
                    f"give {shown_option('train_every')} N, and on the "
                    f"device call {self.spec.name}_train() after every N labels"
                )
            why = ", ".join(s.name.lower().replace("_", " ") for s, count in self.trainings.items() if count)
            return f"the model was not trained ({why or 'there were no labels'}), so it predicts 0"
        if (told := self.outside.describe()) is not None:
            return told
        if self.streak <= ADVISE_AFTER:
            return None
        labelled = "" if self.spec.program.label_kind == "none" else "labelled "
        return (
            f"the model refused the last {self.streak:,} {labelled}samples: {self._why}; "
            f"on the device, {self.spec.name}_reset() resets the model"
        )

    def _missing_told(self) -> dict[str, Any] | None:
        """Return a dict with the number of missing inputs and what replaces them, or None for a rule without [input] missing."""
        if not self.spec.has("input", "missing"):
            return None
        names = input_names(self.spec)
        columns = {name: int(count) for name, count in zip(names, self.missing, strict=True) if count}
        return {
            "by": choice(self.spec),
            "inputs": int(self.missing.sum()),
            "of": self.rows * self.spec.dim,
            "columns": columns,
        }

    def _told(self) -> dict[str, Any]:
        """Return the numbers of samples that were learnt, refused and so on, as a dict."""
        vectors = any("n" in struct.fields for struct in self.spec.program.persistent)
        # ``others`` are refused rows that were only predicted, because their label is missing or comes later
        counted = sum(count for status, count in self.statuses.items() if status.name in ("REFUSED_INPUT", "ABSENT"))
        others = max(0, self.inputs_refused - counted)
        return {
            "inputs_refused": self.inputs_refused,
            "missing": self._missing_told(),
            "refused": others + sum(count for status, count in self.statuses.items() if status < 0),
            "refused_in_a_row": {"last": self.streak, "longest": self.longest_streak},
            "statuses": {status.name.lower(): count for status, count in self.statuses.items() if count},
            **({"vectors": int(self.model.memory.field("n")[0])} if vectors else {}),
        }


def answer_names(spec: Spec) -> tuple[str, ...]:
    """Return a name for each value of the answer to the main question."""
    asks = spec.program.asks
    (count,) = spec.program.questions[asks].shape(spec.capacities)
    return (asks,) if count == 1 else tuple(f"{asks}{i}" for i in range(count))
