"""One sample at a time, without what is made anew for many of them: room that stays, and calls that are bound to it."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pykernel.host.model import HostModel


class Single:
    """Room for one sample of a model that is given numbers, and calls of the model's functions on it.

    ``x``, (DIM,), and ``y``, one number or the position of a class, are of the types that the C takes.  ``fill`` takes DIM
    numbers and ``label`` one; both raise struct.error for what is no number, or for another count of them.  ``learn``
    returns the status.  It holds the model's memory as it is now: make another one where the model gets other memory.
    """

    def __init__(self, model: HostModel) -> None:
        program, self._model = model.spec.program, model
        self.x = np.zeros(model.spec.width, model.spec.real.dtype)
        self.fill = _packer(self.x)
        labels = []
        if program.label is not None:
            self.y = np.zeros((), program.label_dtype(model.spec.real))
            self.label, labels = _packer(self.y), [self.y]
        self.learn: Callable[[], int] = model.executor.bound(program.entry(program.learner), self.x, *labels)

    def question(self, name: str) -> tuple[Callable[[], int], np.ndarray]:
        """A call that asks, and returns the status; and what it writes, (values,), if the status is not below 0."""
        program = self._model.spec.program
        answer = program.answers(name, 1, self._model.memory)[0]
        return self._model.executor.bound(program.entry(name), self.x, answer), answer


def _packer(array: Any) -> Callable[..., Any]:
    """Writes numbers into the array; what its precision cannot hold becomes infinite, as NumPy has it."""
    return functools.partial(struct.Struct(f"@{array.size}{array.dtype.char}").pack_into, array, 0)
