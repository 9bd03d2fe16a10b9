"""Run a model without labels over a stream of samples, and summarise its answers and alarms in constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.advice import Trial
from pykernel.host.alarms import Alarms
from pykernel.host.model import HostModel
from pykernel.host.run import Run, Steps, answer_names
from pykernel.host.samples import as_table
from pykernel.host.scores import Course
from pykernel.spec.model import Spec

BEGINNING = 20_000
"""Maximum number of initial rows that are compared with later rows."""
BLOCKS, LEAST_BLOCK = 20, 10
"""Number of blocks of initial rows, and minimum number of rows in a block."""
MOSTLY, OFTEN = 0.5, 5
"""A block is unlike the later rows if more than the fraction MOSTLY of its rows are in alarm.  Faults are scattered
over the initial rows if the median of the blocks' alarm rates is more than OFTEN times the spec's false-alarm rate.
"""


def unlike_beginning(spec: Spec, x: np.ndarray) -> dict[str, Any]:
    """Find initial rows that are unlike the later rows. A monitor is not armed yet during the initial rows.

    The initial rows are the first third of x, (rows, D). A second monitor learns the other two thirds, is frozen, and
    then judges the initial rows.

    Returns:
    rows: number of initial rows.
    unlike: first and last row of each stretch of initial rows that is mostly in alarm.
    scattered: median, over the blocks, of the fraction of rows in alarm, or 0 if this median is usual or above MOSTLY.
    """
    begin, model = len(x) // 3, HostModel(spec)
    model.update(x[begin:])
    model.freeze()
    statuses = model.update(x[:begin])
    alarmed = np.isin(statuses, spec.program.alarms) & (statuses >= 0)
    ends = np.linspace(0, begin, BLOCKS + 1).astype(int)
    shares = np.add.reduceat(alarmed, ends[:-1]) / np.diff(ends)
    changes = np.flatnonzero(np.diff(np.concatenate([[0], shares > MOSTLY, [0]]).astype(int)))
    usual = float(np.median(shares))
    return {
        "rows": begin,
        "unlike": [[int(ends[a]), int(ends[b]) - 1] for a, b in changes.reshape(-1, 2)],
        "scattered": usual if OFTEN * spec.novelty.false_alarm_rate < usual <= MOSTLY else 0.0,
    }


class Monitoring(Run):
    """A model that learns without labels, run over a stream as on the device.

    For each row, the model is asked its main question, then learns the row.  The model is refreshed every
    ``refresh_every`` rows (0: never).  Raises UserError for a model with labels, which ``Simulation`` runs.
    """

    def __init__(self, spec: Spec, refresh_every: int = 0) -> None:
        if spec.program.label_kind != "none":
            raise UserError(f"{spec.name} learns from labels; simulate it with labels")
        super().__init__(spec, refresh_every=refresh_every)
        self.alarms = Alarms(spec) if spec.program.alarms else None
        # the model runs many rows at once, so the cause of an alarm is read from a second model, which stops after each
        # row in alarm
        self._twin, self._kind = HostModel(spec), 0
        self.course = Course(answer_names(spec))
        self._answers = np.zeros((0, len(self.course.names)))
        self.warm = spec.novelty.warmup if self.alarms is not None else 0
        """Number of samples at the beginning for which the model cannot raise an alarm."""
        # number of samples after the warm-up that were not refused, and how many of these were in alarm
        self.judged = self.in_alarm = 0
        self._first = list[np.ndarray]()
        self._keeps = 3 * min(self.warm + spec.novelty.commissioning, BEGINNING) if self.warm else 0
        self.born = list[int]()  # row numbers, after the warm-up, at which a new state became normal

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray, truth: np.ndarray) -> None:
        self._answers = np.where(self._missing(asked)[:, None], np.nan, as_table(asked).astype(np.float64))
        if self.rows < self._keeps:
            self._first.append(x[: self._keeps - self.rows])

    def went_on(self, asked: int = 0) -> None:
        """Record that the model had already learned before this run, and how much of the warm-up is left."""
        super().went_on(asked)
        if self.alarms is not None:
            self.warm, self._keeps = max(0, self.warm - int(self.model.memory.field("watched")[0])), 0

    def _taken(
        self, x: np.ndarray, y: np.ndarray, waiting: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        if self.alarms is None:
            return super()._taken(x, y, waiting)
        self._twin.memory.copy_from(self.model.memory)
        predictions, states, statuses = self.model.prequential_alarms(x)
        return predictions, statuses, states, self._blamed(x, statuses)

    def _blamed(self, x: np.ndarray, statuses: np.ndarray) -> np.ndarray:
        """Return the causes of the rows in alarm, in the form of ``Steps.blame``. A second model learns the same rows, and
        is asked for the cause at each row in alarm.

        The row at which a new state becomes normal ends the alarm, so the model gives no kind for it. This row gets the
        kind of the previous row in alarm.
        """
        found, done = np.full((len(x), 4), np.nan), 0
        for i in np.flatnonzero(np.isin(statuses, self.spec.program.alarms)).tolist():
            self._twin.update(x[done : i + 1])
            done = i + 1
            if statuses[i] < 0:
                found[i] = np.argmin(self.spec.accepted(x[i])), 1.0, statuses[i], np.nan
                continue
            shares, kind = self._twin.read("blame")
            culprit, *others = np.argsort(-shares, kind="stable")
            second = others[0] if others and shares[others[0]] >= shares[culprit] / 2 else np.nan
            self._kind = kind if kind != self.spec.program.status["DONE"] else self._kind
            found[i] = culprit, shares[culprit], self._kind, second
        return found

    def _follow(self, steps: Steps) -> None:
        which, states = np.zeros(len(steps.statuses), int), np.full((len(steps.statuses), 2), np.nan)
        if self.alarms is not None:
            which = self.alarms.take(self.rows + np.arange(len(which)), steps.statuses, steps.states, steps.blame)
            states = steps.states[:, :2]
            taken = np.flatnonzero(steps.statuses >= 0)
            taken = taken[taken >= self.warm - self.rows]
            born = steps.statuses[taken] == self.spec.program.status["BORN"]
            self.born += (self.rows + taken[born]).tolist()
            self.judged, self.in_alarm = self.judged + len(taken), self.in_alarm + int((which[taken] > 0).sum())
        self.course.add(self._answers, which > 0, states)

    def report(self, trial: Trial | None = None) -> dict[str, Any]:
        """Return a report on the whole run as a dict. trial: unused, because changes are tried only for models with
        labels.

        question: the question that was asked for each row.  all, second_half: see ``Course.summary``.
        statuses: number of updates with each status or, for a model that does not learn, number of answers with each
        status.
        alarms: see ``Alarms``, for a model that raises alarms.  It also has ``judged``, the number of samples after the
        warm-up that were not refused, and ``in_alarm``, the fraction of these samples that are in alarm.
        beginning: see ``unlike_beginning``.
        regimes: the fraction of time in each known regime.
        became_normal: the numbers of the rows, after the warm-up, at which a regime was added.
        until_armed: the number of rows until the monitor is armed.
        relearn_after: the number of rows in alarm after which a new state becomes normal.
        ``until_armed`` and ``relearn_after`` are only given for a monitor that is armed after its commissioning.
        """
        parts, entries = (
            {"all": self.course.summary(), "second_half": self.course.summary(self.rows // 2)},
            self._told(),
        )
        if self.alarms is None:
            parts = {name: {k: v for k, v in part.items() if k != "in_alarm"} for name, part in parts.items()}
        else:
            novelty, shares = self.spec.novelty, self.model.read("regimes")[0]
            entries["alarms"] = self.alarms.report(self.model.read("alarm")[0]) | {
                "false_alarm_rate": novelty.false_alarm_rate,
                "judged": self.judged,
                "in_alarm": self.in_alarm / self.judged if self.judged else None,
            }
            entries["regimes"] = sorted(shares[shares > 0].tolist(), reverse=True)
            entries["became_normal"] = self.born
            if novelty.life != "changing":
                entries["until_armed"] = novelty.commissioning - int(self.model.memory.field("age")[0])
                entries["relearn_after"] = novelty.relearn_after
        first = np.concatenate([np.zeros((0, self.spec.dim)), *self._first])[: 3 * (self.rows // 3)]
        if len(first) >= 3 * BLOCKS * LEAST_BLOCK:
            entries["beginning"] = unlike_beginning(self.spec, first)
        return {
            "name": self.spec.name,
            "rows": self.rows,
            **entries,
            "question": self.spec.program.asks,
            **parts,
            "warnings": [*filter(None, [self.coarse, self.warning])],
        }
