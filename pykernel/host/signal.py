"""Features of a raw signal on the host: what the model inside of a signal stage sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pykernel.algorithms.signal.program import FEATURES, WHOLE_FEATURES
from pykernel.algorithms.signal.state import SignalStatus
from pykernel.dialect import Memory
from pykernel.dialect.program import NO_COUNT
from pykernel.engine.choice import Engine
from pykernel.engine.engines import program_executor
from pykernel.errors import UserError
from pykernel.spec import signal as signals

if TYPE_CHECKING:
    from pykernel.host.simulate import Batch
    from pykernel.spec.model import Spec


@dataclass(frozen=True)
class Steps:
    """Steps of a signal that have features.

    rows: the raw row with which each ended, (steps,).  features: (steps, DIM).
    """

    rows: np.ndarray
    features: np.ndarray


class SignalStage:
    """The signal stage of a spec, alone: raw rows in, features out, the bits of the device."""

    def __init__(self, spec: Spec, engine: Engine | None = None) -> None:
        if spec.signal is None:
            raise ValueError(f"{spec.name} has no [signal]")
        self.spec = spec
        capacities = signals.capacities(spec.signal, spec.forecasts) | {"DIM": spec.dim}
        self.program = WHOLE_FEATURES if spec.program.whole else FEATURES
        self.memory = Memory(self.program.structs, spec.real, capacities)
        self.config = self.program.settings(spec.real, spec.signal_values(False), capacities)
        self.executor = program_executor(self.program, self.memory, self.config, engine)

    def push(self, raw: np.ndarray, reading: str = "signal") -> tuple[np.ndarray, np.ndarray]:
        """Take raw rows, (rows, CHANNELS): (statuses, what the reading says after each), NaN where there is nothing yet."""
        raw = self.spec.raw_inputs(raw)
        if raw.shape[1:] != (self.spec.width,):
            raise ValueError(f"raw samples of shape {raw.shape}; the stage takes (rows, {self.spec.width})")
        statuses = np.zeros(len(raw), np.int32)
        values = self.program.answers(reading, len(raw), self.memory)
        if len(raw):
            learn, look = self.program.entry("push"), self.program.entry(reading)
            self.executor.rows(raw, statuses, learn=learn, look=look, states=values)
        if self.program.whole:
            unit = self.spec.feature_units[reading == "signal"]
            values = np.where(values == NO_COUNT, np.nan, values * unit)
        return statuses, values

    def truths(self, measured: np.ndarray) -> np.ndarray:
        """What should have been forecast for steps, of their measures, (steps, MEASURES), as the device learns it."""
        at = self.config.label_measure
        if not self.program.whole:
            return measured[:, at]
        counts = np.rint(measured[:, at] / self.spec.feature_units[0][at]).astype(np.int64)
        told = counts * self.config.label_factor >> self.config.label_places
        return np.asarray(told * 2.0**-self.spec.label_shift)

    def gap(self, missing: int) -> int:
        """What NAME_gap does."""
        return int(self.executor.call(self.program.entry("gap"), missing))

    def steps(self, raw: np.ndarray, reading: str = "signal") -> Steps:
        """The steps that end within some raw rows."""
        statuses, values = self.push(raw, reading)
        rows = np.flatnonzero(statuses == SignalStatus.READY)
        return Steps(rows, values[rows])

    def recorded(self, raw: np.ndarray, reading: str = "signal") -> list[Steps]:
        """The same of recorded rows, piece by piece: after a row that is refused, the stage is told that one is missing."""
        raw = np.array(raw, self.spec.number, order="C", ndmin=2)
        refused = ~self.spec.accepts(raw)
        pieces, start = list[Steps](), 0
        for end in (*np.flatnonzero(refused), len(raw)):
            found = self.steps(raw[start:end], reading)
            pieces.append(Steps(found.rows + start, found.features))
            if end < len(raw):
                self.gap(1)
            start = end + 1
        return pieces


def delay_of(spec: Spec, delay: int) -> int:
    """After how many of its samples a model learns a label: ``delay`` of those from elsewhere, and of a forecast those until
    its truth is there.  Raises UserError for a delay that means nothing."""
    if spec.signal is None or not spec.forecasts:
        return delay
    if delay:
        raise UserError("--delay is for labels from elsewhere; of a forecast, [signal] ahead says when the truth comes")
    return spec.signal.ahead - 1


def steps_of(spec: Spec, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Recorded rows as what a model learns of them.  Of raw rows: a row of features for each step, and its label.

    Of a forecast the label is the measure ``ahead`` steps later; NaN where the recording ends before, or where a row is
    missing between.  Labels from elsewhere are those of the raw rows with which steps end.
    """
    if spec.signal is None:
        yield from batches
        return
    stage = SignalStage(spec)
    if not spec.forecasts:
        for batch in batches:
            pieces = stage.recorded(batch.x)
            rows = np.concatenate([piece.rows for piece in pieces])
            x = np.concatenate([piece.features for piece in pieces]).astype(float)
            yield replace(batch, x=x, y=batch.y[rows])
        return
    beside, ahead = SignalStage(spec), spec.signal.ahead
    x, truth, position = np.zeros((0, spec.dim)), np.zeros(0), 0
    for batch in batches:
        done: list[tuple[np.ndarray, np.ndarray]] = []
        both = zip(stage.recorded(batch.x), beside.recorded(batch.x, "measures"), strict=True)
        for i, (features, measured) in enumerate(both):
            if i:  # a row was missing: no truth comes for what waits
                done.append((x, np.full(len(x), np.nan)))
                x, truth = x[:0], truth[:0]
            x = np.concatenate([x, features.features])
            truth = np.concatenate([truth, stage.truths(measured.features)])
            known = max(0, len(x) - ahead)
            done.append((x[:known], truth[ahead : ahead + known]))
            x, truth = x[known:], truth[known:]
        position = batch.position
        made, told = (np.concatenate(parts) for parts in zip(*done, strict=True))
        yield replace(batch, x=made, y=told)
    if len(x):
        from pykernel.host.simulate import Batch

        yield Batch(x, np.full(len(x), np.nan), position)
