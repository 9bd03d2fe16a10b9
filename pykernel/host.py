"""A model on the host: its memory, and the jitted loops over samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.dialect import Memory, bind
from pykernel.spec import Spec


class HostModel:
    """What the device holds and does, simulated bit for bit.

    Arrays are converted to the spec's precision; inputs have shape (samples, DIM), labels (samples,).
    ``drop`` lists fields that the generated C left out, so that ``memory.bytes`` are the C struct's.
    """

    def __init__(self, spec: Spec, drop: tuple[str, ...] = (), jit: bool = True) -> None:
        self.spec, self.jit = spec, jit
        self.config = spec.config
        self.memory: Memory = spec.memory(drop)

    def _call(self, kernel: Any, *args: Any) -> Any:
        lead = self.spec.program.arguments(kernel, self.memory, self.config)
        return bind(kernel, self.spec.real, self.jit)(*lead, *args)

    def _inputs(self, x: Any) -> np.ndarray:
        x = np.array(x, self.spec.real.dtype, order="C", ndmin=2)
        if x.ndim != 2 or x.shape[1] != self.spec.dim:
            raise ValueError(f"inputs of shape {x.shape}; the model takes (samples, {self.spec.dim})")
        return x

    def _labels(self, y: Any, samples: int) -> np.ndarray:
        y = np.array(y, self.spec.real.dtype, order="C", ndmin=1)
        if y.shape != (samples,):
            raise ValueError(f"labels of shape {y.shape} for {samples} samples")
        return y

    def predict(self, x: Any) -> np.ndarray:
        """f(x) of each row, (samples,); NaN where the input is refused."""
        x = self._inputs(x)
        y = np.zeros(len(x), x.dtype)
        if len(x):
            self._call(self.spec.program.predict_stream, x, np.zeros(1, x.dtype), y)
        return y

    def learn(self, x: Any, y: Any) -> np.ndarray:
        """Learn each row in turn; the statuses, (samples,) int32."""
        x = self._inputs(x)
        y, statuses = self._labels(y, len(x)), np.zeros(len(x), np.int32)
        self._call(self.spec.program.learn_stream, x, y, statuses)
        return statuses

    def run(self, x: Any, y: Any, first: int = 0, delay: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row from ``first`` on, then learn the row ``delay`` before it: (predictions, statuses)."""
        x = self._inputs(x)
        y = self._labels(y, len(x))
        predictions, statuses = np.zeros(len(x) - first, x.dtype), np.zeros(len(x) - first, np.int32)
        if len(predictions):
            self._call(self.spec.program.run_stream, x, y, first, delay, np.zeros(1, x.dtype), predictions, statuses)
        return predictions, statuses

    def refresh(self) -> None:
        """What NAME_refresh does on the device."""
        for entry in self.spec.program.entries_for(self.config):
            if entry.name == "refresh":
                self._call(entry.kernel)

    def reset(self) -> None:
        """Forget everything."""
        self.memory.clear()
