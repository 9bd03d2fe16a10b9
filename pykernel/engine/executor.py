"""The base class of all engines.  An engine runs kernels on one memory and one configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from pykernel.dialect import Array, Bool, Config, Kernel, Memory, Precision, Real, Struct
from pykernel.dialect.program import Settings, taken_by

Part = type[Struct] | type[Config]
"""A struct or configuration, which is a single argument of a kernel."""

Steps = tuple[Kernel | None, Kernel | None, Kernel | None, Kernel | None]
"""The kernels that are called for each row: ask, expect, learn, look; see ``Executor.rows``."""

Choices = tuple[tuple[str, int], ...]
"""A configuration's choices: (name, value) of each parameter that is a bool or an IntEnum.  Choices decide which
branches are compiled."""


class Executor(ABC):
    """Runs kernels on one memory and one configuration, and keeps both alive.

    Arrays must have exactly the type and shape that the kernel takes; any other array raises ValueError.  Every
    kernel uses the memory's working fields, even if it leaves the learned state unchanged.  Therefore each call holds
    the memory's lock, and calls from other threads wait.
    """

    def __init__(self, memory: Memory, config: Settings) -> None:
        self.memory, self.config = memory, config

    @property
    def precision(self) -> Precision:
        return self.memory.precision

    @abstractmethod
    def _call(self, kernel: Kernel, arrays: list[np.ndarray]) -> Any: ...

    def _rows(
        self,
        steps: Steps,
        x: np.ndarray,
        y: np.ndarray,
        first: int,
        delay: int,
        answers: np.ndarray,
        states: np.ndarray,
        statuses: np.ndarray,
    ) -> None:
        """Implement ``rows`` with a separate call for each kernel and row."""
        ask, expect, learn, look = steps
        for i, t in enumerate(range(first, len(x))):
            status = 0 if ask is None else self._call(ask, [x[t], answers[i]])
            if expect is not None:
                self._call(expect, [x[t]])
            if learn is not None and t < delay:
                status = 0
            elif learn is not None:
                labels = [y[t - delay]] if len(taken_by(learn)) > 1 else []
                status = self._call(learn, [x[t - delay], *labels])
            statuses[i] = status
            if look is not None:
                self._call(look, [states[i]])

    def call(self, kernel: Kernel, *args: Any) -> Any:
        """Call the kernel and return its result: a Real in this precision, an integer, or 0 if the kernel returns nothing."""
        kinds = taken_by(kernel)
        if len(args) != len(kinds):
            raise TypeError(f"{kernel.name} takes {len(kinds)} arguments, not {len(args)}")
        given = [
            self._array(kernel.name, value, kind, ()) if isinstance(kind, Array) else self._number(value, kind)
            for value, kind in zip(args, kinds, strict=True)
        ]
        with self.memory.lock:
            result = self._call(kernel, given)
        return self.precision.real(result) if kernel.returns is Real else 0 if result is None else int(result)

    def bound(self, kernel: Kernel, *arrays: np.ndarray) -> Callable[[], Any]:
        """Return a function without arguments that calls the kernel on these arrays and returns the kernel's result.

        The arrays are checked only once, here.  Keep the arrays alive; their contents may change between calls.  For a
        parameter that is a number, pass a zero-dimensional array.
        """
        given = [self._array(kernel.name, each, kind, ()) for each, kind in zip(arrays, taken_by(kernel), strict=True)]
        final, acquire, release = None, self.memory.lock.acquire, self.memory.lock.release

        def call() -> Any:
            nonlocal final
            acquire()  # acquire() and release() are twice as fast as "with"
            try:
                if final is not None:
                    return final()
                result = self._call(kernel, given)
                final = self._final(kernel, given)
                return result
            finally:
                release()

        return call

    def _final(self, kernel: Kernel, arrays: list[np.ndarray]) -> Callable[[], Any] | None:
        """Return a faster function that repeats the call, or None if there is none."""
        return None

    def rows(
        self,
        x: np.ndarray,
        statuses: np.ndarray,
        *,
        ask: Kernel | None = None,
        answers: np.ndarray | None = None,
        expect: Kernel | None = None,
        learn: Kernel | None = None,
        y: np.ndarray | None = None,
        look: Kernel | None = None,
        states: np.ndarray | None = None,
        first: int = 0,
        delay: int = 0,
    ) -> None:
        """For each row t >= ``first``, call ``ask`` and ``expect`` with row t, ``learn`` with row t - delay, and
        ``look``, which reads a state.

        answers, states, statuses: one element for each row t >= ``first``.  If ``learn`` is given, a status is the
        result of ``learn``; for t < delay, no row is learned, and the status is 0.  Otherwise, a status is the result
        of ``ask``.
        """
        if not 0 <= first <= len(x) or delay < 0:
            raise ValueError(
                f"first is {first} and delay is {delay}; for {len(x)} rows, first must be from 0 to {len(x)}, and delay must be 0 or more"
            )
        later = len(x) - first
        if self._array("statuses", statuses, None, (later,)).dtype != np.int32:
            raise ValueError("statuses must be an array of int32")
        label = answer = state = np.zeros((0, 0), self.precision.dtype)
        if ask is not None:
            answer = self._array("answers", answers, taken_by(ask)[1], (later,))
        if learn is not None:
            for kind in taken_by(learn)[1:]:
                label = self._array("y", y, kind, (len(x),))
        if look is not None:
            state = self._array("states", states, taken_by(look)[0], (later,))
        for step in filter(None, (ask, expect, learn)):
            self._array("x", x, taken_by(step)[0], (len(x),))
        with self.memory.lock:
            self._rows((ask, expect, learn, look), x, label, first, delay, answer, state, statuses)

    def _view(self, part: Part) -> Any:
        """Return the view of a struct or configuration, an object that has its fields."""
        return self.memory.view(part) if issubclass(part, Struct) else self.config.views[part]

    def _values(self, kernel: Kernel, arrays: list[np.ndarray]) -> list[Any]:
        """Return the arguments for a kernel that is a Python function.  Zero-dimensional arrays become numbers."""
        make = {Real: self.precision.real, Bool: bool}
        kinds = taken_by(kernel)
        return [
            array if isinstance(kind, Array) else make.get(kind, int)(array)
            for array, kind in zip(arrays, kinds, strict=True)
        ]

    def _number(self, value: Any, kind: Any) -> np.ndarray:
        return np.array(value, np.int32 if kind is Bool else kind.dtype(self.precision))

    def _array(self, name: str, array: Any, kind: Any, rows: tuple[int, ...]) -> np.ndarray:
        """Return the array if it is in C order, its type is the kind's type, and its shape is ``rows`` followed by the
        kind's shape.  Otherwise, raises ValueError.

        kind: None if the array may have numbers of any type.
        """
        scalar, own = (kind.scalar, kind.extents) if isinstance(kind, Array) else (kind, ())
        dtype = None if kind is None else scalar.dtype(self.precision)
        shape = (*rows, *(own if own in ((), (...,)) else kind.shape(self.memory.capacities)))
        fits = (
            isinstance(array, np.ndarray)
            and array.flags.c_contiguous
            and dtype in (None, array.dtype)
            and len(array.shape) == len(shape)
            and all(size in (..., found) for size, found in zip(shape, array.shape, strict=True))
        )
        if not fits:
            found = f"{array.dtype}, shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(
                f"{name} must be an array of {kind or 'numbers'} in C order, with leading dimensions {rows}, not {found}"
            )
        return array
