"""The engine that executes the kernels' source as plain Python, on NumPy's scalars and on checked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.dialect import Array, Bool, Kernel, Real, bind
from pykernel.dialect.program import taken_by
from pykernel.engine.executor import Executor, leading


class Plain(Executor):
    """Runs kernels in the interpreter.  Raises IndexError or OverflowError for what is undefined in C."""

    def _call(self, kernel: Kernel, given: list[np.ndarray]) -> Any:
        kinds = taken_by(kernel)
        values = [self._value(array, kind) for array, kind in zip(given, kinds, strict=True)]
        run = bind(kernel, self.precision)
        return run(*leading(kernel, self.memory, self.config.views), *values)

    def _value(self, array: np.ndarray, kind: Any) -> Any:
        if isinstance(kind, Array):
            return array
        return self.precision.real(array) if kind is Real else bool(array) if kind is Bool else int(array)

    def _rows(
        self,
        steps: tuple[Kernel | None, Kernel | None, Kernel | None],
        x: np.ndarray,
        y: np.ndarray,
        first: int,
        delay: int,
        answers: np.ndarray,
        states: np.ndarray,
        statuses: np.ndarray,
    ) -> None:
        ask, learn, look = steps
        labels = taken_by(learn)[1:] if learn is not None else []
        for i, t in enumerate(range(first, len(x))):
            status = 0 if ask is None else self._call(ask, [x[t], answers[i]])
            if learn is not None:
                old = t - delay
                status = 0 if old < 0 else self._call(learn, [x[old], *([y[old]] if labels else [])])
            statuses[i] = status
            if look is not None:
                self._call(look, [states[i]])
