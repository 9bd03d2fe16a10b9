"""Fast calls for one sample at a time: the arrays are allocated once, and the calls are bound to these arrays."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pykernel.host.model import HostModel


class Single:
    """Arrays for one sample of a floating-point model, and calls of the model's functions on these arrays.

    ``x``, (DIM,), and ``y``, one number or one class index, have the types that the C functions take.  ``fill`` takes
    DIM numbers, and ``label`` takes one number; both raise struct.error for an argument that is not a number, and for too
    few or too many arguments. ``learn`` returns the status.  The object is bound to the model's current memory, so make
    a new object if the model gets another memory.
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
        """Return a function and an array, (values,). The function asks the question, writes the answer to the array,
        and returns the status.

        The answer is valid if the status is 0 or above.
        """
        program = self._model.spec.program
        answer = program.answers(name, 1, self._model.memory)[0]
        return self._model.executor.bound(program.entry(name), self.x, answer), answer


def _packer(array: Any) -> Callable[..., Any]:
    """Return a function that writes numbers into the array.

    A number that is too large for the type becomes infinite, as in NumPy.
    """
    return functools.partial(struct.Struct(f"@{array.size}{array.dtype.char}").pack_into, array, 0)
