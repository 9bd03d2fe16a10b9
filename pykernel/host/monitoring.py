"""A model without labels run over a stream of samples, and its answers and alarms in constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.advice import Trial
from pykernel.host.run import Run, Steps, answer_names
from pykernel.host.samples import as_table
from pykernel.host.scores import Course
from pykernel.host.simple import Distances, SeenAlarms, simple_bytes
from pykernel.spec.model import Spec


class Monitoring(Run):
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
        """Note what the model has seen of its warm-up, too."""
        super().went_on()
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

    def report(self, trial: Trial | None = None) -> dict[str, Any]:
        """The whole run, as plain values.  trial: for a model with labels, as nothing is tried here.

        question: the question that each row was asked.  all, second_half: see ``Course.summary``.
        statuses: the results of updates or, for a model that does not learn, of answers.
        alarms: see ``Alarms``, for a model that raises alarms.  ``judged``: number of samples after the warm-up; ``in_alarm``:
        the part of these in alarm.  ``regimes``: the part of time of each known regime, for a model that has them; and of one that is armed the rows until then, and those
        in alarm after which another state is normal.
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
            novelty = self.spec.novelty
            if novelty.life != "changing":
                told["until_armed"] = novelty.commissioning - int(self.model.memory.field("age")[0])
                told["relearn_after"] = novelty.relearn_after
        return {
            "name": self.spec.name,
            "rows": self.rows,
            **told,
            "question": self.spec.program.asks,
            **parts,
            "warnings": [] if self.warning is None else [self.warning],
        }
