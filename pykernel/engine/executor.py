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
"""Of a configuration: what branches are decided by, and is no number."""


class Executor(ABC):
    """Kernels with a memory and a configuration to work on, both of which it keeps alive.

    Arguments are arrays as kernels take them, of the very type and shape: ValueError is raised for any other.
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
        """What the kernel returns: a Real of the precision, or an integer, 0 where it returns nothing.

        In place of an array of one number, the number may be given.
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
        """A call of the kernel on arrays that are looked at once: they stay, and what they hold may change.

        Arrays as of ``call``; a number is an array of no dimension.  The call returns what the kernel returns.
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
        """For each row from ``first`` on: ask for it, learn the one ``delay`` rows before, read a state.

        answers, states, statuses: for each row from ``first`` on.  A status is that of learning, 0 where there was none;
        where nothing is learned, that of the answer.
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
        """The array, if it has ``rows`` of the kind.  kind: None for numbers of any type."""
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
    """What leads a kernel's parameters: structs and configurations, or all of a model's under one name."""

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
