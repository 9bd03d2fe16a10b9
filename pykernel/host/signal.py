"""Run a signal stage on the host.  It computes the features of a raw signal, which are the inputs of the model."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.algorithms.signal.program import FEATURES, INT16_FEATURES
from pykernel.algorithms.signal.state import SignalStatus
from pykernel.dialect import Memory
from pykernel.dialect.program import NO_COUNT
from pykernel.engine.choice import Engine
from pykernel.engine.engines import program_executor
from pykernel.errors import UserError, shown_option
from pykernel.host.samples import Batch
from pykernel.spec import signal as signals
from pykernel.spec.model import Spec


@dataclass(frozen=True)
class Steps:
    """Features of some steps of a signal.

    rows: the last raw row of each step, (steps,).  features: (steps, DIM).
    """

    rows: np.ndarray
    features: np.ndarray


class SignalStage:
    """The signal stage of a spec, without the model that follows it.  The stage takes raw rows and returns features,
    bit for bit as on the device.
    """

    def __init__(self, spec: Spec, engine: Engine | None = None) -> None:
        if spec.signal is None:
            raise ValueError(f"{spec.name} has no [signal]")
        self.spec = spec
        capacities = signals.capacities(spec.signal, spec.forecasts) | {"DIM": spec.dim}
        self.program = INT16_FEATURES if spec.program.is_int16 else FEATURES
        self.memory = Memory(self.program.structs, spec.real, capacities)
        self.config = self.program.settings(spec.real, spec.signal_values(spec.signal, False), capacities)
        self.executor = program_executor(self.program, self.memory, self.config, engine)

    def push(self, raw: np.ndarray, reading: str = "signal") -> tuple[np.ndarray, np.ndarray]:
        """Take raw rows, (rows, CHANNELS).

        reading: "signal" for the features, or "measures" for the values from which the features are computed.
        Returns two arrays: the status of each row, and the features or measures after each row.  These are NaN after a
        row if the stage has none yet, or none since the last gap.
        """
        raw = self.spec.raw_inputs(raw)
        if raw.shape[1:] != (self.spec.width,):
            raise ValueError(f"the raw samples have shape {raw.shape}; the stage takes (rows, {self.spec.width})")
        statuses = np.zeros(len(raw), np.int32)
        values = self.program.answers(reading, len(raw), self.memory)
        if len(raw):
            learn, look = self.program.entry("push"), self.program.entry(reading)
            self.executor.rows(raw, statuses, learn=learn, look=look, states=values)
        return statuses, self._told(values, reading == "signal")

    def truths(self, measured: np.ndarray) -> np.ndarray:
        """Return the true values of the forecasts, as the device learns them.

        measured: the measures of the steps, (steps, MEASURES).
        """
        at = self.config.label_measure
        if not self.program.is_int16:
            return measured[:, at]
        counts = np.rint(measured[:, at] / self.spec.feature_units[0][at]).astype(np.int64)
        told = counts * self.config.label_factor >> self.config.label_places
        return np.asarray(told * 2.0**-self.spec.label_shift)

    def asked(self) -> np.ndarray:
        """Return the features of the newest steps whose true values are not known yet, oldest first, (at most ahead, DIM).

        The stage keeps measures, not features, so a copy of the stage is set back to each of these steps.
        """
        assert self.spec.signal is not None
        past, steps = SignalStage(self.spec), int(self.memory.field("steps")[0])
        features = np.zeros((min(self.spec.signal.ahead, max(0, steps - self.config.oldest)), self.spec.dim))
        for ago in range(len(features)):
            past.memory.copy_from(self.memory)
            past.memory.field("steps")[0] -= ago
            past.memory.field("latest")[0] = (self.memory.field("latest")[0] - ago) % len(self.memory.field("kept"))
            if self.config.has_periods:
                rows = int(self.memory.field("gathered")[0]) + ago * self.spec.signal.step
                past.memory.field("clock")[...] = (self.memory.field("clock") - rows) % self.config.period
            features[-1 - ago] = past.read("remade")
        return features

    def read(self, reading: str) -> np.ndarray:
        """Return what a reading says of the newest step, in the units of the data."""
        values = self.program.reading(reading, self.memory)
        self.executor.call(self.program.entry(reading), values)
        return self._told(values, reading != "measures")

    def _told(self, values: np.ndarray, features: bool) -> np.ndarray:
        """Return counts of an int16 stage in the units of the data, and other values as they are."""
        if not self.program.is_int16:
            return values
        return np.where(values == NO_COUNT, np.nan, values * self.spec.feature_units[features])

    def gap(self, missing: int) -> int:
        """Tell the stage that rows are missing, as NAME_gap does. Returns the status."""
        return int(self.executor.call(self.program.entry("gap"), missing))

    def steps(self, raw: np.ndarray, reading: str = "signal") -> Steps:
        """Take raw rows, and return the steps that end within these rows."""
        statuses, values = self.push(raw, reading)
        rows = np.flatnonzero(statuses == SignalStatus.READY)
        return Steps(rows, values[rows])

    def recorded(self, raw: np.ndarray, reading: str = "signal") -> list[Steps]:
        """Return the steps within recorded rows, as a list of pieces.

        Each refused row ends a piece, and is a gap for the stage.
        """
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, and is refused
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


class RawRows:
    """Counts the raw rows of a recording, and its gaps by cause: missing cells, infinite numbers, and numbers beyond [signal] max_abs."""

    def __init__(self, spec: Spec) -> None:
        if spec.signal is None:
            raise ValueError(f"{spec.name} has no [signal]")
        self.spec, self.signal = spec, spec.signal
        self.rows = self.missing = self.infinite = self.beyond = 0
        self._limits = np.array(np.broadcast_to(np.array(self.signal.max_abs, float), len(self.signal.channels)))
        # for each channel, the factor that makes its limit equal to the smallest limit
        self._share = self._limits.min() / self._limits
        self._places, self._steps, self._next = list[tuple[int, int]](), 0, 0
        """Pairs (number of a step, raw row with which the step ends), for the first step and for each step that is not at
        the usual distance from the previous step.
        """
        # descriptions of the first number beyond its limit, and of the first infinite number
        self._far = self._odd = ""
        self._largest = np.zeros(len(self._limits))  # for each channel: the largest magnitude in rows beyond max_abs

    def counted(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches unchanged, and count their rows."""
        for batch in batches:
            self.take(batch.x)
            yield batch

    def place(self, rows: np.ndarray | None) -> None:
        """Record the raw rows with which the next steps end."""
        if rows is None or not len(rows):
            return
        later = (np.flatnonzero(np.diff(rows) != self.signal.step) + 1).tolist()
        for i in later if self._places and rows[0] == self._next else [0, *later]:
            self._places.append((self._steps + i, int(rows[i])))
        self._steps, self._next = self._steps + len(rows), int(rows[-1]) + self.signal.step

    def raw_row(self, step: int) -> int | None:
        """Return the raw row that a step ends with, or None if this row is not known."""
        at = bisect.bisect_right(self._places, (step, sys.maxsize)) - 1
        if at < 0:
            return None
        first, row = self._places[at]
        return row + (step - first) * self.signal.step

    def times(self, alarm: Mapping[str, Any]) -> dict[str, Any]:
        """Return an alarm's first and last raw row and, if [signal] rate is known, their times in seconds, as a dict.

        If these raw rows are not known, the dict is empty.
        """
        found: dict[str, Any] = {}
        for end, seconds in (("first", "from_seconds"), ("last", "to_seconds")):
            row = self.raw_row(alarm[f"{end}_row"])
            if row is None:
                return {}
            found[f"{end}_raw_row"] = row
            if self.signal.rate is not None:
                found[seconds] = row / self.signal.rate
        return found

    def take(self, x: np.ndarray) -> None:
        """Count the next rows, (rows, CHANNELS), with NaN where a cell is missing."""
        finite, channels = np.isfinite(x), self.signal.channels
        numbers = finite.all(axis=1)
        with np.errstate(over="ignore"):
            beyond = numbers & ~self.spec.accepts(x.astype(self.spec.number))
        missing = int(np.isnan(x).any(axis=1).sum())
        odd = int((~numbers).sum()) - missing
        self.rows, self.missing = self.rows + len(x), self.missing + missing
        self.infinite, self.beyond = self.infinite + odd, self.beyond + int(beyond.sum())
        if odd and not self._odd:
            self._odd = f"{channels[np.argwhere(np.isinf(x))[0][1]]} is infinite"
        if beyond.any():
            sizes = np.abs(x[beyond])
            j = int((sizes[0] * self._share).argmax())
            self._far = self._far or f"{channels[j]} is {x[beyond][0, j]:g} and [signal] max_abs is {self._limits[j]:g}"
            self._largest = np.maximum(self._largest, sizes.max(axis=0))

    @property
    def possible(self) -> int:
        """How many steps the recording would have without gaps."""
        return max(0, (self.rows - self.needed) // self.signal.step + 1)

    @property
    def needed(self) -> int:
        return signals.raw_samples_needed(self.signal)

    def causes(self, missing: bool = True) -> list[str]:
        """Return sentences about the causes of gaps and their remedies, the most frequent cause first.

        missing: whether the sentences also report missing cells.
        """
        j = int((self._largest * self._share).argmax())
        largest = f" (the largest is {self._largest[j]:g}, in {self.signal.channels[j]})" if self.beyond > 1 else ""
        told = [
            (self.beyond, "refuses", f"{self._far}{largest}; raise that limit or scale the column"),
            (self.infinite, "refuses", f"{self._odd}; correct these cells"),
            (self.missing * missing, "misses", f"a cell is missing; a step needs {self.needed:,} rows without a gap"),
        ]
        told.sort(key=lambda each: -each[0])
        return [
            f"the device {how} {count:,} of {self.rows:,} raw rows, because {why}" for count, how, why in told if count
        ]

    def warnings(self, steps: int, delay: int = 0) -> list[str]:
        """Return sentences about the rows that the device would refuse, and about labels that it could not learn.  If more
        than half of the steps are lost, the sentences also report missing cells.

        steps: how many steps remain.  delay: the number of steps after which labels from the firmware arrive.
        """
        lost = 2 * steps < self.possible
        left = f"{steps:,} of {self.possible:,} steps are left: " if lost else ""
        late = f"the generated C code cannot learn labels that come {delay:,} step{'s' * (delay > 1)} late, because it keeps only the features of the newest step; choose a longer [signal] hop"
        found = [f"{left if i == 0 else ''}{cause}" for i, cause in enumerate(self.causes(missing=lost))]
        return found + [late] * (delay > 0 and not self.spec.forecasts)

    def need_steps(self, name: str, steps: int) -> None:
        """Raise UserError, with the cause, if there are no steps."""
        if not steps:
            longer = (
                f"a step needs {self.needed:,} raw rows, and the recording has {self.rows:,}; give a longer recording"
            )
            raise UserError(f"{name}: no step of [signal] is complete: {self.causes()[0] if self.possible else longer}")

    def report(self) -> dict[str, int]:
        """Return the counts as a dict. steps_without_gaps: how many steps there would be without gaps."""
        counts = {"rows": self.rows, "missing": self.missing, "infinite": self.infinite, "beyond_max_abs": self.beyond}
        return counts | {"steps_without_gaps": self.possible}


def delay_of(spec: Spec, delay: int) -> int:
    """Return the delay, in samples, with which a model learns a label.

    For labels from the firmware, this is the argument ``delay``. For a forecast, the delay follows from the key
    [signal] ahead, which says when the true value is known. Raises UserError if ``delay`` is given for a forecast.
    """
    if spec.signal is None or not spec.forecasts:
        return delay
    if delay:
        raise UserError(
            f"{shown_option('delay')} is for labels from the firmware; for a forecast, [signal] ahead says when the true value comes"
        )
    return spec.signal.ahead - 1


def steps_of(spec: Spec, batches: Iterable[Batch], stage: SignalStage | None = None) -> Iterator[Batch]:
    """Yield, in batches, the samples that a model gets from recorded rows.  With a signal stage, each step gives one
    sample: the step's features and a label.

    stage: the signal stage that takes the raw rows.  If it has taken rows before, forecasts that wait for their labels come
    first.  The label of a forecast is the measure ``ahead`` steps later, or
    NaN if the recording ends earlier or a row in between is refused.  If labels come from the firmware, a step's label
    is the label of its last raw row.
    """
    if spec.signal is None:
        yield from batches
        return
    stage = stage or SignalStage(spec)
    if not spec.forecasts:
        before = 0
        for batch in batches:
            pieces = stage.recorded(batch.x)
            rows = np.concatenate([piece.rows for piece in pieces])
            x = np.concatenate([piece.features for piece in pieces]).astype(float)
            yield replace(batch, x=x, y=batch.y[rows], raw=before + rows)
            before += len(batch.x)
        return
    beside, ahead = SignalStage(spec), spec.signal.ahead
    beside.memory.copy_from(stage.memory)
    x, position = stage.asked(), 0
    truth = np.zeros(len(x))  # known before, and no later step waits for it
    for batch in batches:
        done: list[tuple[np.ndarray, np.ndarray]] = []
        both = zip(stage.recorded(batch.x), beside.recorded(batch.x, "measures"), strict=True)
        for i, (features, measured) in enumerate(both):
            if i:  # forecasts that still wait for their true value at a gap never get one
                done.append((x, np.full(len(x), np.nan)))
                x, truth = x[:0], truth[:0]
            x = np.concatenate([x, features.features])
            truth = np.concatenate([truth, stage.truths(measured.features)])
            known = max(0, len(x) - ahead)
            done.append((x[:known], truth[ahead : ahead + known]))
            x, truth = x[known:], truth[known:]
        position = batch.position
        made, labels = (np.concatenate(parts) for parts in zip(*done, strict=True))
        yield replace(batch, x=made, y=labels)
    if len(x):
        yield Batch(x, np.full(len(x), np.nan), position)
