"""What all engines have in common: kernels, with a memory and a configuration to work on."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.dialect import Array, Bool, Config, Kernel, Memory, Model, Precision, Real, Struct, parts_of
from pykernel.dialect.program import taken_by

if TYPE_CHECKING:
    from pykernel.dialect.program import Settings

Choices = tuple[tuple[str, int], ...]
"""A configuration's choices: (name, value) of each parameter that is a bool or an IntEnum, and decides branches."""


class Executor(ABC):
    """Runs kernels on one memory and one configuration, and keeps both alive.

    Arguments must be arrays of exactly the type and shape that the kernel takes.  Raises ValueError for any other
    array.
    """

    def __init__(self, memory: Memory, config: Settings) -> None:
        self.memory, self.config = memory, config

    @property
    def precision(self) -> Precision:
        return self.memory.precision

    @abstractmethod
    def _call(self, kernel: Kernel, given: list[np.ndarray]) -> Any: ...

    @abstractmethod
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
    ) -> None: ...

    def call(self, kernel: Kernel, *args: Any) -> Any:
        """Call the kernel and return its result: a Real of the precision, or an integer; 0 if it returns nothing.

        A parameter that is a number takes a number.
        """
        kinds = taken_by(kernel)
        if len(args) != len(kinds):
            raise TypeError(f"{kernel.name} takes {len(kinds)} arguments, not {len(args)}")
        given = [
            self._array(kernel.name, value, kind, ()) if isinstance(kind, Array) else self._number(value, kind)
            for value, kind in zip(args, kinds, strict=True)
        ]
        result = self._call(kernel, given)
        return self.precision.real(result) if kernel.returns is Real else 0 if result is None else int(result)

    def bound(self, kernel: Kernel, *arrays: np.ndarray) -> Callable[[], Any]:
        """A function without arguments that calls the kernel on these arrays and returns the kernel's result.

        The arrays are checked only once, here.  They must stay alive; their contents may change between calls.  They
        are as in ``call``, but a number is an array without dimensions.
        """
        kinds = taken_by(kernel)
        return self._bound(
            kernel, [self._array(kernel.name, each, kind, ()) for each, kind in zip(arrays, kinds, strict=True)]
        )

    def _bound(self, kernel: Kernel, given: list[np.ndarray]) -> Callable[[], Any]:
        return functools.partial(self._call, kernel, given)

    def rows(
        self,
        x: np.ndarray,
        statuses: np.ndarray,
        *,
        ask: Kernel | None = None,
        answers: np.ndarray | None = None,
        learn: Kernel | None = None,
        y: np.ndarray | None = None,
        look: Kernel | None = None,
        states: np.ndarray | None = None,
        first: int = 0,
        delay: int = 0,
    ) -> None:
        """For each row t from ``first`` on: ask for row t, learn row t - delay, then read a state with ``look``.

        answers, states, statuses: one element for each row from ``first`` on.  With ``learn``, the status is the result
        of learning; it is 0 where t < delay, because no row is learned then.  Without ``learn``, it is the result of
        asking.
        """
        if not 0 <= first <= len(x) or delay < 0:
            raise ValueError(
                f"first {first}, delay {delay}; for {len(x)} rows first is from 0 to {len(x)}, delay 0 or more"
            )
        later = len(x) - first
        if self._array("statuses", statuses, None, (later,)).dtype != np.int32:
            raise ValueError("statuses are int32")
        sample, nothing = [], np.zeros((0, 0), self.precision.dtype)
        label, answer, state = nothing, nothing, nothing
        if ask is not None:
            kinds = taken_by(ask)
            sample.append(kinds[0])
            answer = self._array("answers", answers, kinds[1], (later,))
        if learn is not None:
            kinds = taken_by(learn)
            sample.append(kinds[0])
            for kind in kinds[1:]:
                label = self._array("y", y, kind, (len(x),))
        if look is not None:
            state = self._array("states", states, taken_by(look)[0], (later,))
        for kind in sample:
            self._array("x", x, kind, (len(x),))
        self._rows((ask, learn, look), x, label, first, delay, answer, state, statuses)

    def _number(self, value: Any, kind: Any) -> np.ndarray:
        return np.array(value, np.int32 if kind is Bool else kind.dtype(self.precision))

    def _array(self, name: str, array: Any, kind: Any, rows: tuple[int, ...]) -> np.ndarray:
        """The array.  Raises ValueError if its shape is not ``rows`` times the kind's shape, or if its type differs.

        kind: None accepts numbers of any type.
        """
        scalar = kind.scalar if isinstance(kind, Array) else kind
        dtype = None if kind is None else scalar.dtype(self.precision)
        own = kind.extents if isinstance(kind, Array) else ()
        fits = isinstance(array, np.ndarray) and array.flags.c_contiguous and dtype in (None, array.dtype)
        if fits and own == (...,):
            fits = array.ndim == len(rows) + 1 and array.shape[:-1] == rows
        elif fits:
            fits = array.shape == (*rows, *(kind.shape(self.memory.capacities) if own else ()))
        if not fits:
            found = f"{array.dtype}, shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(
                f"{name} must be an array of {kind or 'numbers'} for {rows} rows, in C's order, not {found}"
            )
        return array


def leading(kernel: Kernel, memory: Memory, views: Mapping[type[Config], Any]) -> tuple[Any, ...]:
    """The first arguments of a kernel: its structs and configurations, or one object for all parts of a model."""

    def view(part: Any) -> Any:
        return memory.view(part) if issubclass(part, Struct) else views[part]

    found = []
    for kind in kernel.params.values():
        parts = parts_of(kind)
        if parts and issubclass(kind, Model):
            found.append(SimpleNamespace(**{name: getattr(view(part), name) for name, part in kind.owners.items()}))
        elif parts:
            found.append(view(kind))
    return tuple(found)
