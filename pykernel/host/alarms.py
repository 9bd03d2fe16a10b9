"""The alarms that a model raises over a stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.host.samples import input_names
from pykernel.spec.model import Spec

ALARMS = 1000
"""Maximum number of alarms that are listed with their first and last rows."""
UNTOLD = "unknown"
"""The kind of an alarm whose fault is not one of the other kinds, or that has too few rows to be classified."""


class Alarms:
    """The alarms that a model raised.

    A sample is in alarm if its status is in the program's ``alarms``.  Consecutive samples in alarm form one alarm.  An alarm
    also continues over samples that are not in alarm, as long as the model keeps counting the alarm's rows.  Refused
    samples are ignored, unless so many of them are consecutive that the model raises an alarm about them.
    """

    def __init__(self, spec: Spec) -> None:
        self.statuses = [int(status) for status in spec.program.alarms]
        self.inputs = input_names(spec)
        self.kinds = {int(status): status.name.lower() for status in spec.program.status}
        self.samples = self.count = 0  # number of samples in alarm, and number of alarms
        self.listed: list[dict[str, Any]] = []  # the first ALARMS alarms
        self._taken, self._last = 0, -1  # number of accepted samples; index of the last accepted sample in alarm
        self._row = -1  # the last row in alarm
        # whether its alarm is about refused rows; None: there is no such row, and a stream may begin within an alarm
        self._gone: bool | None = None

    def take(self, rows: np.ndarray, statuses: np.ndarray, states: np.ndarray, blame: np.ndarray) -> np.ndarray:
        """Take the next samples. rows: the samples' row numbers. ``Steps`` describes the other arguments.

        Returns an integer for each sample, (samples,): the number of its alarm, counted from 1, or 0 if it is not in alarm.
        """
        alarmed, order = np.isin(statuses, self.statuses), self._taken + np.cumsum(statuses >= 0)
        which = np.zeros(len(rows), int)
        for i in np.flatnonzero(alarmed):
            gone = bool(statuses[i] < 0)
            goes_on = rows[i] == self._row + 1 if gone else order[i] == self._last + 1 or states[i, 2] > 1
            if gone != self._gone or not goes_on:
                self.count += 1
            which[i], self._last, self._row, self._gone = self.count, int(order[i]), int(rows[i]), gone
            if self.count <= ALARMS:
                self._list(int(rows[i]), np.inf if gone else float(states[i, 0]), float(states[i, 1]))
                self._tell(blame[i])
        self.samples += int(alarmed.sum())
        self._taken += int((statuses >= 0).sum())
        return which

    def _list(self, row: int, level: float, threshold: float) -> None:
        """Add a row to the latest alarm, and keep the level and the threshold of the row with the highest level."""
        if len(self.listed) < self.count:
            self.listed.append({"first_row": row, "last_row": row, "rows": 0, "level": -np.inf})
        latest = self.listed[-1]
        latest |= {"last_row": row, "rows": latest["rows"] + 1}
        if level > latest["level"]:
            latest |= {"level": level, "threshold": threshold}

    def _tell(self, blame: np.ndarray) -> None:
        """Record the latest diagnosis of the alarm.

        blame: a row of ``Steps.blame``.

        When the model restarts its count of the alarm's rows, it gives the kind "unknown".  This kind does not replace a
        known kind.
        """
        input, share, kind, second = blame.tolist()
        told = {"input": self.inputs[int(input)], "share": share, "kind": self.kinds[int(kind)]}
        told["second"] = self.inputs[int(second)] if second == second else None
        if told["kind"] != UNTOLD or self.listed[-1].get("kind", UNTOLD) == UNTOLD:
            self.listed[-1] |= told

    def report(self, state: np.ndarray) -> dict[str, Any]:
        """Return the alarms as a dict. state: the current level, the threshold, and the number of rows since the alarm
        began.
        """
        level, threshold, since = map(float, state)
        counts = {"count": self.count, "samples": self.samples, "listed": self.listed}
        return counts | {"level": level, "threshold": threshold, "since": int(since)}
