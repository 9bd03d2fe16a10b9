"""Any level with the threshold that monitors have: what a simple detector would be if its threshold adapted as well."""

# mypy: disable-error-code="valid-type, index, attr-defined"
# (of the kernel: the dialect's types are values)

from __future__ import annotations

import numpy as np

from pykernel.algorithms.novelty.threshold import (
    Threshold,
    ThresholdConfig,
    ThresholdModel,
    follow_episode,
    raise_level,
    teach,
    threshold_of,
)
from pykernel.dialect import DIM, PRECISIONS, Index, Memory, Real, kernel, real
from pykernel.dialect.program import Settings
from pykernel.engine.engines import make_executor
from pykernel.spec.model import Spec
from pykernel.spec.novelty import threshold_parameters

FARTHEST = 1e6
"""Distances beyond this, such as those from a sensor that was constant, do not fit into a model's numbers."""
SIZE = 1.0
"""How far apart a distance's levels are, about."""


@kernel
def heed(m: ThresholdModel, x: Real[DIM]) -> Index:
    """Take a row's level, x[0]; returns 1 if the row is in alarm.  x[1]: 0 in the warm-up; x[2]: whether the threshold learns."""
    raise_level(m, x[0], m.taught[0] == 0)
    alarm = x[1] != real(0) and m.level[0] > threshold_of(m)
    follow_episode(m, alarm)
    if x[2] != real(0):
        teach(m, alarm, x[1] != real(0), False)
    return 1 if alarm else 0


class Thresholded:
    """A threshold on levels, with rate, smoothing and warm-up of a spec."""

    def __init__(self, spec: Spec) -> None:
        precision = PRECISIONS["float32"]
        self.dtype, self.warmup, self.rows = precision.dtype, spec.novelty.warmup, 0
        self.memory = Memory((Threshold,), precision, {"DIM": 3})
        values = threshold_parameters(spec.novelty, SIZE)
        config = ThresholdConfig.of(precision, values)
        self.executor = make_executor([heed], self.memory, Settings({ThresholdConfig: config}))

    def take(self, level: np.ndarray) -> np.ndarray:
        """Take the levels of the next rows, (rows,), NaN for a refused row; whether each is in alarm, (rows,)."""
        taken, alarmed = np.flatnonzero(~np.isnan(level)), np.zeros(len(level), bool)
        number = self.rows + np.arange(len(taken))
        warm, teaches = number < self.warmup, 4 * number >= self.warmup
        known = np.minimum(level[taken], FARTHEST)
        rows = np.column_stack([known, ~warm, teaches]).astype(self.dtype)
        statuses = np.zeros(len(taken), np.int32)
        if len(taken):
            self.executor.rows(rows, statuses, learn=heed)
        alarmed[taken] = statuses > 0
        self.rows += len(taken)
        return alarmed
