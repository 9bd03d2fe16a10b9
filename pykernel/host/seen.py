"""Collect the data about a recording's rows that a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pykernel.host.monitoring import Monitoring
from pykernel.host.run import Steps
from pykernel.host.samples import Batch, as_table, times_of
from pykernel.host.scores import Envelope, Ranges
from pykernel.host.simulation import Simulation
from pykernel.spec.model import Spec

DRAWN = 20_000
"""Approximate number of values in the figure of forecasts, over all labels."""
LABELS = 6
"""Maximum number of labels whose forecasts are drawn."""


class Seen:
    """The data about a recording's rows that a report shows: the table as it was read, forecasts and true values.

    path: the recording's path, if it is a file.
    """

    def __init__(self, spec: Spec, simulation: Simulation | Monitoring, path: str | None) -> None:
        self.spec, self.path = spec, path
        labels = [] if isinstance(simulation, Monitoring) or simulation.classes else list(simulation.labels)
        columns = spec.sample_columns or [f"input {j}" for j in range(spec.dim)]
        self._labelled = bool(labels) and not spec.forecasts
        self.table, self.shown = Ranges([*columns, *labels * self._labelled]), labels[:LABELS]
        names = [f"{what} {label}" for label in self.shown for what in ("truth", "forecast")]
        self.forecasts = Envelope(names, DRAWN // max(1, len(names)))

    def times(self) -> np.ndarray | None:
        """Return the time of each row, if the recording is a file with a column of dates."""
        if self.path is None or self.spec.signal is not None or not Path(self.path).is_file():
            return None
        return times_of(self.path, self.table.rows)

    def reading(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches unchanged, and record their columns."""
        for batch in batches:
            self.table.add(np.column_stack([batch.x, *([batch.y] if self._labelled else [])]).astype(np.float64))
            yield batch

    def answer(self, steps: list[Steps]) -> None:
        """Record the answers and labels of the next rows."""
        if not self.shown or not steps:
            return
        truth, said = (
            np.concatenate([as_table(part)[:, : len(self.shown)] for part in parts])
            for parts in ([step.labels for step in steps], [step.predictions for step in steps])
        )
        self.forecasts.add(np.stack([truth, said], axis=2).reshape(len(truth), -1).astype(np.float64))
