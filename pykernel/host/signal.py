"""Features of a raw signal on the host: what the model inside of a signal stage sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pykernel.algorithms.signal.program import FEATURES
from pykernel.algorithms.signal.state import SignalStatus
from pykernel.dialect import Memory
from pykernel.engine.choice import Engine
from pykernel.engine.engines import program_executor
from pykernel.spec import signal as signals

if TYPE_CHECKING:
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
        self.memory = Memory(FEATURES.structs, spec.real, capacities)
        values = signals.parameters(spec.signal, spec.label.column, False)
        config = FEATURES.settings(spec.real, values, capacities)
        self.executor = program_executor(FEATURES, self.memory, config, engine)

    def push(self, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take raw rows, (rows, CHANNELS): (statuses, features), NaN where there are none yet."""
        raw = np.array(raw, self.spec.real.dtype, order="C", ndmin=2)
        statuses = np.zeros(len(raw), np.int32)
        features = np.full((len(raw), self.spec.dim), np.nan, self.spec.real.dtype)
        if len(raw):
            learn, look = FEATURES.entry("push"), FEATURES.entry("signal")
            self.executor.rows(raw, statuses, learn=learn, look=look, states=features)
        return statuses, features

    def gap(self, missing: int) -> int:
        """What NAME_gap does."""
        return int(self.executor.call(FEATURES.entry("gap"), missing))

    def steps(self, raw: np.ndarray) -> Steps:
        """The steps that end within some raw rows."""
        statuses, features = self.push(raw)
        rows = np.flatnonzero(statuses == SignalStatus.READY)
        return Steps(rows, features[rows])
