"""A model run over a stream of samples, and its errors or alarms in constant memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.errors import UserError, option
from pykernel.host.advice import FEW, Signs, Trial, advice
from pykernel.host.model import HostModel
from pykernel.host.samples import Batch, as_table, stand_ins
from pykernel.host.scores import Course, Coverage, Errors, verdict
from pykernel.host.simple import Distances, SeenAlarms, Simple, simple_bytes
from pykernel.rows.columns import SENTINELS
from pykernel.spec.missing import choice
from pykernel.spec.model import Spec
from pykernel.telling import stands_in

DELAY_LIMIT = 10**6
"""Most rows that are kept until their labels arrive."""
ALARMS = 1000
"""Most alarms whose first and last rows are kept."""
UNTOLD = "unknown"
"""The kind of an alarm of which too little is known."""
LEAST_CHANCE = 2.0**-24
"""A class that came counts as if it had at least this probability."""
NEAR, SELDOM = 0.05, 0.002
"""A row is outside of the training if an input lies further beyond its range there than this part of it; told if more than this part of
the rows are."""
ADVISE_AFTER = 100
"""If this many labelled samples are refused one after the other, the report says what to do about it."""


@dataclass(frozen=True)
class Steps:
    """Results of a few steps of the device's loop: predict row t (without labels: ask), then learn row t - delay.

    labels, predictions: as in a Batch; NaN (-1 for a class) where the input was refused.
    statuses: the results of learning; ``learnt`` says which rows have one.  For a model that does not learn: the
    results of the predictions; ``learnt`` is then true for all rows.
    states: for a model that raises alarms, its level, threshold and rows since the alarm began, after each row, (rows, 3); else (rows, 0).
    ends: for a model with intervals, their lower ends, then the upper ones, (rows, 2 labels); else (rows, 0).
    blame: for a model that says what an alarm is about, the most blamed input, its share and the alarm's kind, NaN for rows
    that are not in alarm, (rows, 3); else (rows, 0).
    """

    first_row: int
    labels: np.ndarray
    predictions: np.ndarray
    statuses: np.ndarray
    learnt: np.ndarray
    states: np.ndarray
    ends: np.ndarray
    blame: np.ndarray


class Alarms:
    """The alarms that a model raised.

    A sample is in alarm if its status is in the program's ``alarms``.  Consecutive samples in alarm are one alarm, with the
    gaps over which the model's count of the alarm's rows goes on.  Refused samples between them are ignored.
    """

    def __init__(self, spec: Spec) -> None:
        self.statuses = [int(status) for status in spec.program.alarms]
        self.inputs = spec.input.columns or tuple(f"input {j}" for j in range(spec.dim))
        self.kinds = {int(status): status.name.lower() for status in spec.program.status}
        self.samples = self.count = 0  # number of samples in alarm; number of alarms
        self.listed: list[dict[str, Any]] = []  # the first ALARMS alarms
        self._taken, self._last = 0, -1  # number of samples that were not refused; index of the last one in alarm

    def take(self, rows: np.ndarray, statuses: np.ndarray, states: np.ndarray, blame: np.ndarray) -> np.ndarray:
        """Take the next samples: their rows, statuses, states and blame, as in ``Steps``.

        Returns the number of the alarm that each is in, from 1 on, (samples,); 0 for none.
        """
        alarmed, order = np.isin(statuses, self.statuses), self._taken + np.cumsum(statuses >= 0)
        which = np.zeros(len(rows), int)
        for i in np.flatnonzero(alarmed):
            if order[i] != self._last + 1 and not states[i, 2] > 1:
                self.count += 1
            which[i], self._last = self.count, int(order[i])
            if self.count <= ALARMS:
                self._list(int(rows[i]), *map(float, states[i, :2]))
                if blame.shape[1]:
                    self._tell(blame[i])
        self.samples += int(alarmed.sum())
        self._taken += int((statuses >= 0).sum())
        return which

    def _list(self, row: int, level: float, threshold: float) -> None:
        """Note the row, and the state where the level is highest."""
        if len(self.listed) < self.count:
            self.listed.append({"first_row": row, "last_row": row, "rows": 0, "level": -np.inf})
        latest = self.listed[-1]
        latest |= {"last_row": row, "rows": latest["rows"] + 1}
        if level > latest["level"]:
            latest |= {"level": level, "threshold": threshold}

    def _tell(self, blame: np.ndarray) -> None:
        """Note what the alarm is about: the most blamed input, its share and the kind, latest.  A kind is not forgotten if the
        model's count of the alarm's rows begins anew.
        """
        input, share, kind = blame.tolist()
        told = {"input": self.inputs[int(input)], "share": share, "kind": self.kinds[int(kind)]}
        if told["kind"] != UNTOLD or self.listed[-1].get("kind", UNTOLD) == UNTOLD:
            self.listed[-1] |= told

    def report(self, state: np.ndarray) -> dict[str, Any]:
        """The alarms as plain values.  state: the present level, threshold and rows since the alarm began."""
        level, threshold, since = map(float, state)
        counts = {"count": self.count, "samples": self.samples, "listed": self.listed}
        return counts | {"level": level, "threshold": threshold, "since": int(since)}


class _Run:
    """A model fed from a stream, as the device will be.

    Each row is asked; then a row is learnt.  With labels, the learnt row is the one ``delay`` rows before, if it has
    all of its labels.  The model is refreshed every ``refresh_every`` rows (0: never).  A model with a training is
    trained after every ``train_every`` labels (0: never).  A model that does not learn is only asked.  With
    ``forecasts`` it may have a delay as
    well: the simple predictors learn the true values that much later.
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
                f"rule {spec.learning.rule} has no train on the device, as krr, ls-svm and kfd have; leave "
                "train-every out"
            )
        if delay and (not (program.learns or forecasts) or program.label_kind == "none"):
            raise UserError(f"rule {spec.learning.rule} takes no labels, so delay means nothing; leave delay out")
        if refresh_every and not self.model.exists("refresh"):
            what = spec.reduction.technique if spec.has("reduction", "technique") else f"rule {spec.learning.rule}"
            raise UserError(f"{what} has nothing to refresh; leave refresh-every out, or use mklms")
        self.delay, self.refresh_every, self.train_every = delay, refresh_every, train_every
        self.forecasts = forecasts
        self.classes = spec.label.classes or ()
        self._shape = program.label_array(spec.capacities).shape
        self._dtype = spec.label_number
        self.alarms = Alarms(spec) if program.raises_alarms(spec.config) else None
        # what stands behind an alarm is read row by row: by a twin, since the model runs many rows at once
        self._twin = HostModel(spec) if self.alarms is not None and self.model.exists("blame") else None
        self.goes_on = False  # whether the model has learned before; then there is no advice
        self._kind = 0
        self.rows = self.unlabelled = self.inputs_refused = 0
        self.missing = np.zeros(spec.dim, np.int64)  # for each input: in how many rows it is missing
        self.outside = _Outside(spec)
        self.statuses = {status: 0 for status in program.status}
        self.trainings = {status: 0 for status in program.status}
        self._labels_since = 0  # labels given to the update since the last training
        self.visited = 0  # samples that were visited after a training
        self.streak = self.longest_streak = 0  # consecutive labelled samples that were refused
        self._why = ""
        self._waiting_x = np.zeros((0, spec.dim), spec.number)
        self._waiting_y = np.zeros((0, *self._shape), self._dtype)

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Score the answers to the next rows.  released: the labels that became known after each of these rows.

        x, y: first the rows that still wait for their labels, then these rows.
        """
        raise NotImplementedError

    def _enclosed(self, x: np.ndarray, y: np.ndarray, waiting: int) -> np.ndarray:
        """The intervals of the next rows, before the model learns: see ``Steps.ends``.  x, y: as of ``_score``."""
        return np.zeros((len(x) - waiting, 0))

    def _cover(self, asked: np.ndarray, y: np.ndarray, ends: np.ndarray) -> None:
        """Score the intervals of the next rows."""

    def _reason(self, status: str, x: np.ndarray, y: Any) -> str:
        """Why a sample was refused, and what to do about it."""
        spec = self.spec
        if status == "REFUSED_INPUT":
            j = int(np.argmin(spec.accepted(x)))
            column = spec.input.columns[j] if spec.input.columns else f"input {j}"
            if np.isnan(x[j]):
                if spec.completes:
                    return "no input is there, and such rows are not learned"
                remedy = stands_in(stand_ins(spec))
                return f"{column} is nan, no number: such rows are neither predicted nor learned{remedy}"
            return f"{column} is {x[j]:g} and [input] max_abs is {spec.limit_told(j)}; raise that limit or scale the column"
        lower = ["lower [learning] eta"] if spec.has("learning", "eta") else []
        labelled = spec.program.label_kind != "none"
        remedies = [*lower, *(["raise [label] max_abs if the labels are larger than it"] if labelled else [])]
        return "; ".join(["learning diverges", *([", or ".join(remedies)] if remedies else [])])

    def run(self, x: np.ndarray, y: np.ndarray) -> Iterator[Steps]:
        """Take the next samples: inputs and labels as in a Batch."""
        start = 0
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

    def _until_training(self, y: np.ndarray) -> int:
        """How many rows to run until the next training is due: up to the row with the last label before it, or all
        rows.
        """
        known = np.flatnonzero(~self._missing(self._released(y)))
        last = self.train_every - self._labels_since - 1
        return int(known[last]) + 1 if last < len(known) else len(y)

    def _released(self, y: np.ndarray) -> np.ndarray:
        """The label that becomes known after each of the next rows; none in the first ``delay`` rows of the stream."""
        none = min(len(y), self.delay - len(self._waiting_y))
        nothing = np.full((none, *self._shape), -1 if self.classes else np.nan, self._dtype)
        return np.concatenate([nothing, self._waiting_y, y])[: len(y)]

    def train(self) -> IntEnum:
        """Do what NAME_train does; returns the status."""
        status = self.spec.program.status(self.model.train())
        self.trainings[status] += 1
        self._labels_since = 0
        return status

    def finish(self, again: Iterable[Batch] = ()) -> None:
        """After the last row: train on the samples since the last training, then visit the samples once more.

        again: the same rows, for a model that has visits; only rows that were learnt are visited.  Does nothing if this
        run does not train the model.
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

    @property
    def visits(self) -> list[str]:
        """Functions that take each sample once more, after a training."""
        return [name for name in self.spec.program.visits if self.model.exists(name)]

    def _missing(self, y: np.ndarray) -> np.ndarray:
        """Rows without a label, or without one of several."""
        y = as_table(y)
        return np.asarray((y < 0 if y.dtype.kind == "i" else np.isnan(y)).any(axis=1))

    def _valid(self, y: np.ndarray) -> np.ndarray:
        """Which labels a model could learn, in y's shape."""
        if self.classes:
            return (y >= 0) & (y < len(self.classes))
        return np.abs(y) <= self.spec.number.type(self.spec.label.max_abs)

    def _step(self, x: np.ndarray, y: np.ndarray) -> Steps:
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused
            x, y = x.astype(self.spec.number), y.astype(self._dtype)
        waiting, rows = len(self._waiting_x), len(x)
        all_x, all_y = np.concatenate([self._waiting_x, x]), np.concatenate([self._waiting_y, y])
        question, states = self.spec.program.forecasts(self.spec.config), np.zeros((rows, 0))
        ends, blame = self._enclosed(all_x, all_y, waiting), np.zeros((rows, 0))
        if self._twin is not None:
            self._twin.memory.copy_from(self.model.memory)
        if self.alarms is None:
            predictions, statuses = self.model.prequential(all_x, all_y, waiting, self.delay, question)
        else:
            predictions, states, statuses = self.model.prequential_alarms(all_x, all_y, waiting, self.delay, question)
            blame = self._blamed(x, statuses)
        released, none = self._released(y), min(rows, self.delay - waiting)
        learnt = ~self._missing(released)
        self._score(predictions, released, all_x, all_y)
        self._cover(predictions, y, ends)
        if self.spec.program.learns:
            self._labels_since += int(learnt.sum())
            self._watch(statuses[learnt], all_x[: rows - none][learnt[none:]], released[learnt])
        else:
            learnt = np.ones(rows, bool)  # every prediction has a status
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

    def _blamed(self, x: np.ndarray, statuses: np.ndarray) -> np.ndarray:
        """What the rows in alarm are about: see ``Steps.blame``.  A twin learns the rows once more, up to each of these.

        An alarm that becomes normal in a row has no kind any more; the row then has the kind of the row before.
        """
        assert self.alarms is not None
        if self._twin is None:
            return np.zeros((len(x), 0))
        found, done = np.full((len(x), 3), np.nan), 0
        for i in np.flatnonzero(np.isin(statuses, self.alarms.statuses)).tolist():
            self._twin.update(x[done : i + 1])
            done = i + 1
            shares, kind = self._twin.read("blame")
            culprit = int(shares.argmax())
            self._kind = kind if kind != self.spec.program.status["DONE"] else self._kind
            found[i] = culprit, shares[culprit], self._kind
        return found

    def _follow(self, steps: Steps) -> np.ndarray:
        """Record the alarms of the next steps.  Returns the number of the alarm that each row is in, 0 for none, (rows,)."""
        which = np.zeros(len(steps.statuses), int)
        if self.alarms is not None:
            rows, learnt = np.arange(steps.first_row, steps.first_row + len(which)) - self.delay, steps.learnt
            told = (part[learnt] for part in (rows, steps.statuses, steps.states, steps.blame))
            which[learnt] = self.alarms.take(*told)
        return which

    def _watch(self, statuses: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Count consecutive refusals, and remember the reason for the last one."""
        if not len(statuses):
            return
        taken = np.flatnonzero(statuses >= 0)
        borders = np.concatenate([[-1 - self.streak], taken, [len(statuses)]])
        self.longest_streak = max(self.longest_streak, int(np.diff(borders).max()) - 1)
        self.streak = int(borders[-1] - borders[-2]) - 1
        if self.streak:
            self._why = self._reason(self.spec.program.status(statuses[-1]).name, x[-1], y[-1])

    @property
    def waiting(self) -> int:
        """Labelled rows not learnt yet, because their delay is not over."""
        return int((~self._missing(self._waiting_y)).sum()) if self.spec.program.learns else 0

    @property
    def warning(self) -> str | None:
        """What to do about a model that keeps refusing, or is never trained; None if there is nothing to say."""
        if self.trains and not any(count for status, count in self.trainings.items() if status >= 0):
            if not self.train_every:
                return (
                    "nothing trained the model, and one that was never trained predicts 0; "
                    f"give {option('train_every')} N: on the "
                    f"device, call {self.spec.name}_train() after every N labels"
                )
            why = ", ".join(s.name.lower().replace("_", " ") for s, count in self.trainings.items() if count)
            return (
                f"no training was done ({why or 'there were no labels'}), and a model that was never trained predicts 0"
            )
        if (told := self.outside.told()) is not None:
            return told
        if self.streak <= ADVISE_AFTER:
            return None
        labelled = "" if self.spec.program.label_kind == "none" else "labelled "
        return (
            f"the model refused the last {self.streak:,} {labelled}samples: {self._why}; "
            f"on the device, {self.spec.name}_reset() starts afresh"
        )

    def _missing_told(self) -> dict[str, Any] | None:
        """How many inputs are missing, and what stands in for them; None of a model that knows no stand-ins."""
        if not self.spec.has("input", "missing"):
            return None
        names = self.spec.input.columns or [f"input {j}" for j in range(self.spec.dim)]
        columns = {name: int(count) for name, count in zip(names, self.missing, strict=True) if count}
        return {
            "by": choice(self.spec),
            "inputs": int(self.missing.sum()),
            "of": self.rows * self.spec.dim,
            "columns": columns,
        }

    def _told(self) -> dict[str, Any]:
        """How many samples were learnt, refused and so on, as plain values."""
        vectors = any("n" in struct.fields for struct in self.spec.program.persistent)
        # rows without an answer that were not to be learned, because they have no label, or it comes later
        others = max(
            0, self.inputs_refused - self.statuses.get(getattr(self.spec.program.status, "REFUSED_INPUT", None), 0)
        )
        return {
            "inputs_refused": self.inputs_refused,
            "missing": self._missing_told(),
            "refused": others + sum(count for status, count in self.statuses.items() if status < 0),
            "refused_in_a_row": {"last": self.streak, "longest": self.longest_streak},
            "statuses": {status.name.lower(): count for status, count in self.statuses.items() if count},
            **({} if self.alarms is None else {"alarms": self.alarms.report(self.model.read("alarm")[0])}),
            **({"vectors": int(self.model.memory.field("n")[0])} if vectors else {}),
        }


class _Outside:
    """Rows that lie outside of what a frozen model was trained on.  Codes for missing values do not count."""

    def __init__(self, spec: Spec) -> None:
        trained = getattr(getattr(spec, "expansion", None), "trained", None)
        ends = (None, None) if trained is None else (trained.low, trained.high)
        self.spec, self.known = spec, None not in ends
        low, high = (np.array(end or (), float) for end in ends)
        self.low, self.high, self.near = low, high, NEAR * (high - low)
        self.rows = self.outside = self.refused = 0
        self.columns = np.zeros(len(low), np.int64)  # for each input: in how many rows it is outside
        self.farthest = (low + high) / 2  # the value there that is the farthest outside

    def add(self, x: np.ndarray) -> None:
        """Count the next rows."""
        if not self.known:
            return
        values = np.where(np.isfinite(x) & ~np.isin(x, list(SENTINELS)), x.astype(float), np.nan)
        with np.errstate(invalid="ignore"):
            outside = (values < self.low - self.near) | (values > self.high + self.near)
        rows = outside.any(axis=1)
        self.rows += len(x)
        self.outside += int(rows.sum())
        self.refused += int((rows & ~self.spec.accepts(x)).sum())
        self.columns += outside.sum(axis=0)
        middle = (self.low + self.high) / 2
        for j in np.flatnonzero(outside.any(axis=0)):
            found = np.append(values[outside[:, j], j], self.farthest[j])
            self.farthest[j] = found[np.abs(found - middle[j]).argmax()]

    def told(self) -> str | None:
        """A sentence about these rows; None if they are few."""
        if self.outside <= SELDOM * self.rows:
            return None
        j = int((self.columns * (self.farthest != (self.low + self.high) / 2)).argmax())
        name = self.spec.input.columns[j] if self.spec.input.columns else f"input {j}"
        answers = {0: "are answered all the same", self.outside: "get no answer"}
        then = answers.get(self.refused, f"of them {self.refused:,} get no answer")
        return (
            f"{self.outside:,} of {self.rows:,} rows lie outside of what the model was trained on, and {then}: {name} reaches "
            f"{self.farthest[j]:.6g} here, and was {self.low[j]:g} to {self.high[j]:g} there; train it with rows like these"
        )


class Simulation(_Run):
    """A model fed from a stream, as the device will be, and its errors.

    Row t is predicted (by a classifier: classified); then row t - delay is learnt.  So no label is used before it is
    known.
    A row that lacks one of its labels is only predicted.  Beside a model that never gets labels, the simple predictors learn those of
    the first ``until`` rows; without ``until`` all of them, and the report says so.  Errors are counted after the first known label: before it all
    predictors answer 0, and a single row could decide the error of the whole stream.  The model is refreshed every
    ``refresh_every`` rows (0: never).  A model with a training is trained after every ``train_every`` labels (0:
    never).  A model that does not learn only predicts.

    Raises UserError for a model without labels, because it has no errors: see Monitoring.
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
            raise UserError(f"{spec.name} learns without labels, so that it has no errors to compare it by")
        super().__init__(spec, delay, refresh_every, train_every, forecasts)
        self.gets_labels, self.until = spec.program.learns or forecasts, until
        self.simple = Simple(spec, delay, until)
        # for each label: whether a value is known yet
        self._begun = np.zeros(self._shape[0] if self._shape else 1, bool)
        names = ("model", *self.simple.names)
        self.errors = Errors(names)
        self.each = [Errors(names) for _ in range(self._shape[0])] if self._shape else []  # of several labels, each's
        self.signs = Signs(spec, delay)
        self.confusion = np.zeros((len(self.classes), len(self.classes)), np.int64)  # rows: of class i, taken for j
        self.coverage: Coverage | None = None
        if self.model.has("interval"):
            # a second model learns the same and is asked for intervals: the loop asks one question
            self._second = HostModel(spec)
            nothing = self._second.ask("interval", np.zeros((1, spec.dim)))[0][0]
            self.coverage = Coverage(spec.outputs, nothing)
        self.losses: Errors | None = None
        if self.model.has("probability"):
            # in the same way, for -log p of the class that came; beside the model's p the classes' shares so far
            self._second = HostModel(spec)
            self.losses, self._came = Errors(("model", "base rate")), np.ones(len(self.classes))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names, as in the data, or made up."""
        names = self.spec.label_columns
        return names or (tuple(f"label {i}" for i in range(self._shape[0])) if self._shape else ("the label",))

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Compare the answers of the model and of the simple predictors with the labels.

        The simple predictors learn the released labels.
        """
        waiting, truth = len(y) - len(asked), y[len(y) - len(asked) :]
        if self.classes:
            known = np.where(self._valid(released), released, -1)
            guesses = np.column_stack([asked, self.simple.step(x, y, waiting, as_table(known))[:, :, 0]])
            scored = self._valid(truth) & (asked >= 0) & self._after_first(as_table(known) >= 0)[:, 0]
            self.errors.add(np.where(scored[:, None], guesses != truth[:, None], np.nan))
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
        for i, one in enumerate(self.each):
            one.add(errors[:, :, i])
        self.signs.take(x[waiting:], truth, errors[:, 0], simple[:, self.simple.names.index("running mean")])

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
        """For each of the next rows: whether a label was known before it, (rows, labels).

        known: whether a label is released after the row.
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
        limit = self.spec.label.max_abs
        return f"{self.labels[i]} is {value:g} and [label] max_abs is {limit:g}; raise that limit or scale the column"

    def summary(self, errors: Errors, first: int = 0) -> dict[str, Any]:
        """Errors from row ``first`` on: mae and rmse of each predictor, or of classes error_rate."""
        found = errors.summary(first)
        if self.classes:
            found = {key: found[key] for key in ("first_row", "scored")} | {"error_rate": found["mae"]}
        return found

    def _simple_told(self) -> dict[str, dict[str, float | None]]:
        """The errors of each simple predictor over the second half."""
        half = self.summary(self.errors, self.rows // 2)
        measures = [key for key in ("mae", "rmse", "error_rate") if key in half]
        return {name: {key: half[key][name] for key in measures} for name in self.simple.names}

    def _verdict(self) -> dict[str, Any] | None:
        found = self.summary(self.errors, self.rows // 2)
        errors = dict(found["error_rate" if self.classes else "rmse"])
        if not self.gets_labels:
            errors.pop("last label", None)  # the device never gets one
        return None if found["scored"] < FEW else verdict(errors.pop("model"), errors)

    def _reads_leave_one_out(self) -> bool:
        readable = "leave_one_out" in self.spec.program.readings and self.model.exists("leave_one_out")
        return readable and bool(self.train_every)

    def leave_one_out(self) -> dict[str, Any]:
        """The result of NAME_leave_one_out for the last training: its status, the mean squared error and, for classes,
        the error rate; None for a value that it does not give.  samples: number of visited samples, for a model with
        visits.
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
        """The whole run, as plain values.

        all, second_half: see ``summary``; for several labels these are means, and ``by_label`` has the errors of each
        label.
        confusion: how many rows of each true class (a row of the table) were classified as each class (a column).
        statuses: the results of updates or, for a model that does not learn, of predictions.
        advice: see ``advice``; trial: the function that tries a change.
        log_loss: with probabilities, the mean of -log p of the class that came, of the model and of the classes' shares so far.
        interval: with intervals, their level, and what ``Coverage.summary`` says of all rows and of the second half.
        simple: the errors of simple predictors over the second half.  verdict: see ``verdict``, for the second half; None if too few rows were scored.
        simple_learned: of so many of the first rows the simple predictors learned the labels; None: of all.
        trainings, leave_one_out: for a model that is trained.  alarms: see ``Alarms``, for a model that raises alarms.
        """
        parts = {"all": 0, "second_half": self.rows // 2}
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
            **self._told(),
            **(
                {"trainings": {s.name.lower(): count for s, count in self.trainings.items() if count}}
                if self.trains
                else {}
            ),
            **({"leave_one_out": self.leave_one_out()} if self._reads_leave_one_out() else {}),
            **{part: self.summary(self.errors, first) for part, first in parts.items()},
            **(
                {
                    "by_label": {
                        name: {part: self.summary(errors, first) for part, first in parts.items()}
                        for name, errors in zip(self.labels, self.each, strict=True)
                    }
                }
                if self.each
                else {}
            ),
            **({"classes": list(self.classes), "confusion": self.confusion.tolist()} if self.classes else {}),
            **self._coverage_told(parts),
            **self._losses_told(parts),
            "advice": [] if self.goes_on else advice(self, trial),
            "verdict": self._verdict(),
            "warnings": [] if self.warning is None else [self.warning],
        }

    def _coverage_told(self, parts: Mapping[str, int]) -> dict[str, Any]:
        if self.coverage is None:
            return {}
        told = {part: self.coverage.summary(first) for part, first in parts.items()}
        return {"interval": {"level": self.spec.interval.level, **told}}

    def _losses_told(self, parts: Mapping[str, int]) -> dict[str, Any]:
        if self.losses is None:
            return {}
        return {"log_loss": {part: self.losses.summary(first)["mae"] for part, first in parts.items()}}


class Monitoring(_Run):
    """A model that learns without labels, fed from a stream as the device will be.

    Each row is asked the model's main question, then learnt.  Every ``refresh_every`` rows (0: never) the model is
    refreshed.  Raises UserError for a model with labels: see Simulation.
    """

    def __init__(self, spec: Spec, refresh_every: int = 0) -> None:
        if spec.program.label_kind != "none":
            raise UserError(f"{spec.name} learns from labels; simulate it with them")
        super().__init__(spec, refresh_every=refresh_every)
        self.course = Course(answer_names(spec))
        self._answers = np.zeros((0, len(self.course.names)))
        self.simple = Distances(spec.dim, spec.completes)
        self.seen = SeenAlarms(self.simple.names)
        self.warm = spec.novelty.warmup if self.alarms is not None and spec.has("novelty", "warmup") else 0
        """The number of samples before the first one that can be in alarm."""
        self._distances = np.zeros((0, len(self.simple.names)))

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        self._answers = np.where(self._missing(asked)[:, None], np.nan, as_table(asked).astype(np.float64))
        if self.alarms is not None:
            self._distances = self.simple.step(np.where(self._missing(asked)[:, None], np.nan, x))

    def went_on(self) -> None:
        """Note what the model, which goes on from a learned state, has seen of its warm-up."""
        self.goes_on = True
        for slot in self.model.memory.layout.slots:
            if slot.name in ("watched", "seen"):
                self.warm = max(0, self.warm - int(self.model.memory.field(slot.name)[0]))

    def _follow(self, steps: Steps) -> np.ndarray:
        which, states = super()._follow(steps), np.full((len(steps.statuses), 2), np.nan)
        if self.alarms is not None:
            states = steps.states[:, :2]
            taken = np.flatnonzero(steps.statuses >= 0)
            taken = taken[taken >= self.warm - self.rows]
            self.seen.take(self._distances[taken], which[taken])
        self.course.add(self._answers, which > 0, states)
        return which

    def report(self) -> dict[str, Any]:
        """The whole run, as plain values.

        question: the question that each row was asked.  all, second_half: see ``Course.summary``.
        statuses: the results of updates or, for a model that does not learn, of answers.
        alarms: see ``Alarms``, for a model that raises alarms.  ``judged``: number of samples after the warm-up; ``in_alarm``:
        the part of these in alarm.  ``regimes``: the part of time of each known regime, for a model that has them.
        ``simple``: for each simple distance, the fraction of the alarms that it would have raised as well with as many
        rows in alarm, and its bytes.  ``seen_by_chance``: the fraction for rows drawn at random.
        """
        parts, told = {"all": self.course.summary(), "second_half": self.course.summary(self.rows // 2)}, self._told()
        if self.alarms is None:
            parts = {name: {k: v for k, v in part.items() if k != "in_alarm"} for name, part in parts.items()}
        else:
            sizes, seen = simple_bytes(self.spec), self.seen.report()
            novelty = self.spec.novelty if self.spec.has("novelty", "false_alarm_rate") else None
            fixed = getattr(novelty, "threshold", None) is not None
            rate = None if novelty is None or fixed else novelty.false_alarm_rate
            judged = int(self.seen.counts[0, 0].sum())
            told["alarms"] |= {
                "false_alarm_rate": rate,
                "judged": judged,
                "in_alarm": self.seen.in_alarm / judged if judged else None,
                "seen_by_chance": seen.pop("chance"),
                "simple": {name: {"seen": part, "bytes": sizes[name]} for name, part in seen.items()},
            }
        if self.model.exists("regimes"):
            shares = self.model.read("regimes")[0]
            told["regimes"] = sorted(shares[shares > 0].tolist(), reverse=True)
        return {
            "name": self.spec.name,
            "rows": self.rows,
            **told,
            "question": self.spec.program.asks,
            **parts,
            "warnings": [] if self.warning is None else [self.warning],
        }


def answer_names(spec: Spec) -> tuple[str, ...]:
    """A name for each value that the main question's answer has."""
    asks = spec.program.asks
    (count,) = spec.program.questions[asks].shape(spec.capacities)
    return (asks,) if count == 1 else tuple(f"{asks}{i}" for i in range(count))


def prediction_header(spec: Spec, raw: bool = False) -> str:
    """The first line of a CSV file of predictions; without labels, of the main question's answers.  raw: whether rows are steps of
    raw ones, whose numbers are then beside them.
    """
    first = ["row", *(["raw_row"] if raw else [])]
    state = ["level", "threshold", "since"] if spec.program.raises_alarms(spec.config) else []
    state += ["blamed", "kind"] if state and _blames(spec) else []
    if spec.program.label_kind == "none":
        return _csv([[*first, *answer_names(spec), *state, "status"]])
    names = [""] if spec.program.label_kind != "reals" else [f" {name}" for name in spec.label_columns]
    ends = [f"{end}{n}" for end in ("lower", "upper") for n in names] if getattr(spec, "interval", None) else []
    return _csv([[*first, *(f"prediction{n}" for n in names), *ends, *(f"label{n}" for n in names), *state, "status"]])


def _blames(spec: Spec) -> bool:
    """Whether the model says what an alarm is about."""
    return any(entry.name == "blame" for entry in spec.program.entries_for(spec.config))


def prediction_lines(spec: Spec, steps: Steps, raw: Sequence[int | None] | None = None) -> str:
    """The steps as lines of CSV, with the columns of ``prediction_header``.  A cell is empty if there is no value.  raw: the number of
    the raw row that each step ends with.
    """
    classes = spec.label.classes

    def texts(values: np.ndarray) -> list[list[str]]:
        if classes is not None:
            return [[classes[i] if 0 <= i < len(classes) else "" for i in values.tolist()]]
        values = as_table(values)
        shown = values.astype(str)
        shown[values < 0 if values.dtype.kind == "i" else np.isnan(values)] = ""
        return shown.T.tolist()

    names = {int(value): value.name.lower() for value in spec.program.status}
    statuses = [names[s] if learnt else "" for s, learnt in zip(steps.statuses.tolist(), steps.learnt, strict=True)]
    rows = range(steps.first_row, steps.first_row + len(statuses))
    states = as_table(steps.states).astype(str).T.tolist()
    if steps.blame.shape[1]:
        columns = spec.input.columns or [f"input {j}" for j in range(spec.dim)]
        told = [(columns[int(j)], names[int(kind)]) if j == j else ("", "") for j, _, kind in steps.blame.tolist()]
        states += [list(each) for each in zip(*told, strict=True)]
    ends = texts(steps.ends) if steps.ends.shape[1] else []
    places = [] if raw is None else [raw]
    return _csv(
        zip(rows, *places, *texts(steps.predictions), *ends, *texts(steps.labels), *states, statuses, strict=True)
    )


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
