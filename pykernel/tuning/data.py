"""The data that all trials of a plan share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pykernel.errors import UserError
from pykernel.spec.model import Spec, make_spec
from pykernel.tuning.combinations import Content
from pykernel.tuning.stage import Stage, first_judged

MOST_ROWS = 50_000
"""Maximum number of rows in a plan.  Of a longer table, only the last MOST_ROWS rows are used.  Of many devices, only
the first rows of each device are used."""
FEWEST = 20
"""Minimum number of rows; a shorter table is refused."""


class Devices(NamedTuple):
    """Row counts for a table of many devices, in which training devices come first, followed by judging devices.

    teach: number of rows of each training device; vectors, scales and frozen models are made from these rows.  judge: number of
    rows of each judging device; models are evaluated on these rows.
    """

    teach: tuple[int, ...]
    judge: tuple[int, ...]

    def slices(self) -> list[slice]:
        """Return, for each judging device, the slice of the table that has its rows."""
        ends = np.cumsum([sum(self.teach), *self.judge]).tolist()
        return list(map(slice, ends[:-1], ends[1:]))


def parts_of(devices: int, folds: int) -> list[list[int]]:
    """Return the indices of the devices in each fold.  The last fold is one of the smallest."""
    return [part.tolist() for part in np.array_split(np.arange(devices), folds)]


@dataclass(frozen=True)
class Table:
    """The data that all trials share.

    x: (rows, D).  y: for numbers, (rows,) or (rows, OUTPUTS), with NaN where there is no label; for classes, the class
    indices, (rows,), with -1 where there is no label; for monitors, None.  delay: number of rows after which a label
    arrives.  stage: the signal stage that computed these rows from raw rows, if there is one.
    """

    x: np.ndarray
    y: np.ndarray | None
    delay: int = 0
    stage: Stage | None = None
    completes: bool = False  # whether models are also compared on rows with a missing input
    final: bool = False  # whether models trained on the PC are trained on all rows, so that no rows are judged
    devices: Devices | None = None  # with many devices: the row counts of training devices and of judging devices
    device_folds: int = 1  # number of folds of devices; models are trained without a fold and evaluated on it

    @property
    def split(self) -> int:
        """The first row that is not used for training: the first judged row, or with many devices the first row of the judging devices."""
        if self.final:
            return len(self.x)
        return first_judged(len(self.x)) if self.devices is None else sum(self.devices.teach)

    @cached_property
    def folds(self) -> tuple[Table, ...]:
        """One table for each fold, with the devices in a different order, so that each device is a judging device once.

        Without folds, the result has only this table.
        """
        if self.devices is None or self.device_folds == 1:
            return (self,)
        rows = [*self.devices.teach, *self.devices.judge]
        ends = np.cumsum([0, *rows]).tolist()
        found = []
        for judges in parts_of(len(rows), self.device_folds)[::-1]:
            order = [i for i in range(len(rows)) if i not in judges] + judges
            at = np.concatenate([np.arange(ends[i], ends[i + 1]) for i in order])
            lengths = tuple(rows[i] for i in order)
            devices = Devices(lengths[: -len(judges)], lengths[-len(judges) :])
            y = None if self.y is None else self.y[at]
            found.append(replace(self, x=self.x[at], y=y, devices=devices, device_folds=1))
        return tuple(found)

    @property
    def judged_rows(self) -> int:
        return sum(len(fold.judged) for fold in self.folds)

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """A list with (first row, first judged row, end) of each run of a learning model.

        For a single device, there is one run over the whole table.  For many devices, there is one run over each judging device, and the
        second half of its rows is judged.
        """
        if self.devices is None:
            return [(0, self.split, len(self.x))]
        return [(rows.start, (rows.start + rows.stop + 1) // 2, rows.stop) for rows in self.devices.slices()]

    @property
    def judged(self) -> np.ndarray:
        """The indices of the judged rows."""
        return np.concatenate([np.arange(first, end) for _, first, end in self.runs])

    @property
    def raw_rows(self) -> dict[str, Any]:
        """For reports: the counts of raw rows and gaps in a dict, which is empty if the table has no signal stage."""
        return {} if self.stage is None else {"raw_rows": dict(self.stage.raw_rows)}

    @property
    def labels(self) -> np.ndarray:
        assert self.y is not None
        return self.y

    @property
    def of_classes(self) -> bool:
        return self.y is not None and self.y.dtype.kind in "iu"

    @property
    def labelled(self) -> np.ndarray:
        """A Boolean array, (rows,), which is True for rows whose labels are all known."""
        y = self.labels
        return np.asarray(y >= 0 if self.of_classes else np.isfinite(y).reshape(len(y), -1).all(axis=1))

    def known(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return a Boolean array, which is True for rows with a label and no missing input."""
        return np.asarray(self.labelled[rows] & np.isfinite(self.x[rows]).all(axis=1))

    def compared(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return a Boolean array, which is True for rows that are used to compare models."""
        return np.asarray(self.labelled[rows]) if self.completes else self.known(rows)

    def whole(self, content: Content) -> Spec:
        """Return the spec of the whole model, which is written as a file and measured on a device.

        The whole model includes the signal stage, if there is one.

        Raises UserError if the spec is not valid.
        """
        return make_spec(content) if self.stage is None else self.stage.around(content)

    def with_signal(self, signal: Content) -> Table:
        """Return a table with another [signal] for the same raw rows.

        Raises UserError if [signal] is not valid, or gives too few steps.
        """
        assert self.stage is not None
        stage = self.stage.with_signal(signal)
        x, y = (part[-MOST_ROWS:] for part in stage.steps())
        if len(x) < FEWEST:
            raise UserError(f"{len(x)} steps are too few")
        return Table(x, None if self.y is None else y, self.delay, stage)

    def device_rows(self, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples that the whole model accepts, and their labels: an array of shape (rows, 0) if the model takes none."""
        if self.stage is not None:
            return self.stage.device_rows(spec)
        rows = np.isfinite(self.x).all(axis=1) & spec.accepts(self.x)
        if self.y is None:
            return self.x[rows], np.zeros((int(rows.sum()), 0))
        rows &= self.known(slice(None))
        if not self.of_classes:
            rows &= spec.within_limit(self.y.reshape(len(self.y), -1)).all(axis=1)
        return self.x[rows], self.y[rows]
