"""A model on the host: its memory, and the jitted loops over samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.dialect import Memory, bind
from pykernel.errors import UserError
from pykernel.spec import Spec


def require_ieee() -> None:
    """Refuse to compute where the processor's mode changes results: it is per process, and libraries do change it."""
    smallest, one, tiny = np.finfo(np.float32).tiny, np.ones(1, np.float32), np.full(1, 2.0**-24, np.float32)
    if (smallest * one * np.float32(0.5))[0] == 0:
        raise UserError(
            "this process rounds small numbers to zero, which changes results; a library built with -ffast-math was "
            "loaded into it: start a process without that library"
        )
    if (one + tiny)[0] != 1 or (one + 3 * tiny)[0] == 1:
        raise UserError("this process does not round to nearest, which changes results; restore the rounding mode")


class HostModel:
    """What the device holds and does, simulated bit for bit.

    Arrays are converted to the spec's precision; inputs have shape (samples, DIM), labels (samples,).
    ``drop`` lists fields that the generated C left out, so that ``memory.bytes`` are the C struct's.
    """

    def __init__(self, spec: Spec, drop: tuple[str, ...] = (), jit: bool = True) -> None:
        require_ieee()
        self.spec, self.jit = spec, jit
        self.config = spec.config
        self.memory: Memory = spec.memory(drop)

    def _call(self, kernel: Any, *args: Any) -> Any:
        return bind(kernel, self.spec.real, self.jit)(*args)

    def _lead(self, kernel: Any) -> tuple[Any, ...]:
        return self.spec.program.arguments(kernel, self.memory, self.config)

    def _inputs(self, x: Any) -> np.ndarray:
        with np.errstate(over="ignore"):  # beyond the precision is beyond the limit, too
            x = np.array(x, self.spec.real.dtype, order="C", ndmin=2)
        if x.ndim != 2 or x.shape[1] != self.spec.dim:
            raise ValueError(f"inputs of shape {x.shape}; the model takes (samples, {self.spec.dim})")
        return x

    def _labels(self, y: Any, samples: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            y = np.array(y, self.spec.real.dtype, order="C", ndmin=1)
        if y.shape != (samples,):
            raise ValueError(f"labels of shape {y.shape} for {samples} samples")
        return y

    def predict(self, x: Any) -> np.ndarray:
        """f(x) of each row, (samples,); NaN where the input is refused."""
        x = self._inputs(x)
        y = np.zeros(len(x), x.dtype)
        if len(x):
            program = self.spec.program
            self._call(program.predict_stream, self._lead(program.entry("predict")), x, np.zeros(1, x.dtype), y)
        return y

    def learn(self, x: Any, y: Any) -> np.ndarray:
        """Learn each row in turn; the statuses, (samples,) int32."""
        x = self._inputs(x)
        y, statuses = self._labels(y, len(x)), np.zeros(len(x), np.int32)
        program = self.spec.program
        self._call(program.learn_stream, self._lead(program.entry("update")), x, y, statuses)
        return statuses

    def run(self, x: Any, y: Any, first: int = 0, delay: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row from ``first`` on, then learn the row ``delay`` before it: (predictions, statuses)."""
        x = self._inputs(x)
        y = self._labels(y, len(x))
        if not 0 <= first <= len(x) or delay < 0:
            raise ValueError(
                f"first {first}, delay {delay}; for {len(x)} rows first is from 0 to {len(x)}, delay 0 or more"
            )
        predictions, statuses = np.zeros(len(x) - first, x.dtype), np.zeros(len(x) - first, np.int32)
        if len(predictions):
            program = self.spec.program
            leads = self._lead(program.entry("predict")), self._lead(program.entry("update"))
            out = np.zeros(1, x.dtype)
            self._call(program.run_stream, *leads, x, y, first, delay, out, predictions, statuses)
        return predictions, statuses

    def call(self, name: str, *args: Any) -> Any:
        """Call an entry of the program, as firmware calls NAME_<name>; what this model does not have does nothing."""
        for entry in self.spec.program.entries_for(self.config):
            if entry.name == name:
                return self._call(entry.kernel, *self._lead(entry.kernel), *args)
        return 0

    def refresh(self) -> None:
        """What NAME_refresh does on the device."""
        self.call("refresh")

    def freeze(self, frozen: bool = True) -> None:
        """Switch learning off, or on again."""
        self.call("freeze", int(frozen))

    def drift(self) -> float:
        """How far the factor of the inverse Gram matrix has drifted since the last refresh; 0 where there is none."""
        out = np.zeros(1, self.spec.real.dtype)
        self.call("drift", out)
        return float(out[0])

    def reset(self) -> None:
        """Forget everything."""
        self.memory.clear()
