"""The engine that executes the kernels' source as plain Python, on NumPy's scalars and on checked arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from pykernel.dialect import Kernel, Model, bind, parts_of
from pykernel.engine.executor import Executor


class Plain(Executor):
    """Runs kernels in the interpreter.  Raises IndexError or OverflowError for operations that are undefined in C."""

    def _call(self, kernel: Kernel, arrays: list[np.ndarray]) -> Any:
        parts = [self._part(kind) for kind in kernel.params.values() if parts_of(kind)]
        return bind(kernel, self.precision)(*parts, *self._values(kernel, arrays))

    def _part(self, kind: Any) -> Any:
        """Return the view of a struct or configuration.  For a model, return an object with all fields of its parts."""
        if not issubclass(kind, Model):
            return self._view(kind)
        return SimpleNamespace(**{name: getattr(self._view(part), name) for name, part in kind.owners.items()})
