"""What the generator needs to know of a family of models: its memory, its parameters and its public functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

from pykernel.dialect import Config, Kernel, Layout, Memory, Precision, Struct, driver, real


LabelKind = Literal["real", "reals", "class"]
"""What update takes as its label: a number, OUTPUTS numbers, or the position of a class."""


@dataclass(frozen=True)
class Entry:
    """A public function ``NAME_<name>``; ``when`` says for which parameters it exists."""

    name: str
    kernel: Kernel
    when: Callable[[Any], bool] = lambda config: True


@dataclass(frozen=True)
class Program:
    """A family of models.

    structs: the memory, in order; those in ``persistent`` come first and are the model, the others are working memory.
    entries: among them predict (…, x, y) and update (…, x, y), which return a status.
    rehearse: a kernel (…, x) that exercises update on a fixed sequence, for the self-test.
    valid: a kernel (…) -> Bool, whether learning could have led to the memory's contents: a restored state is
        untrusted.  It must take whatever update leaves, and refuse what update could not go on from.
    """

    name: str
    structs: tuple[type[Struct], ...]
    persistent: tuple[type[Struct], ...]
    config: type[Config]
    status: type[IntEnum]
    entries: tuple[Entry, ...]
    rehearse: Kernel
    valid: Kernel
    run_stream: Kernel = field(init=False)
    predict_stream: Kernel = field(init=False)
    learn_stream: Kernel = field(init=False)

    def __post_init__(self) -> None:
        names = {entry.name: entry.kernel for entry in self.entries}
        for loop in (run_stream, predict_stream, learn_stream):
            object.__setattr__(self, loop.name, replace(loop, names=names))

    def entries_for(self, config: Any) -> list[Entry]:
        return [entry for entry in self.entries if entry.when(config)]

    def memory(self, precision: Precision, capacities: dict[str, int], drop: Iterable[str] = ()) -> Memory:
        return Memory(self.structs, precision, capacities, drop)

    def state_bytes(self, layout: Layout) -> int:
        """Bytes of the model, which come first in its memory."""
        return layout.ends[self.persistent[-1].__name__]

    def entry(self, name: str) -> Kernel:
        return next(entry.kernel for entry in self.entries if entry.name == name)

    def arguments(self, kernel: Kernel, memory: Memory, config: Any) -> tuple[Any, ...]:
        """The struct and config arguments that lead a kernel's signature."""
        lead: list[Any] = []
        for kind in kernel.params.values():
            if isinstance(kind, type) and issubclass(kind, Struct):
                lead.append(memory.view(kind))
            elif isinstance(kind, type) and issubclass(kind, Config):
                lead.append(config)
        return tuple(lead)


# ------------------------------------------------------------------------- loops over samples, for any program

# the program's own entries, once a loop is bound
predict: Any = None
update: Any = None


@driver
def run_stream(reads, writes, x, y, first, delay, out, predictions, statuses):  # type: ignore[no-untyped-def]
    """Predict each sample from ``first`` on, then learn the one ``delay`` rows before it.

    reads, writes: what predict and update take before the sample.  predictions: (len(x) - first,), NaN where refused;
    statuses: of the updates, 0 where there was none.  out: (1,), room for one result.
    """
    for t in range(first, len(x)):
        i = t - first
        predictions[i] = out[0] if predict(*reads, x[t], out) == 0 else real(float("nan"))
        statuses[i] = 0
        if t >= delay:
            statuses[i] = update(*writes, x[t - delay], y[t - delay])


@driver
def predict_stream(reads, x, out, predictions):  # type: ignore[no-untyped-def]
    """f(x) for each row; NaN where the input was refused."""
    for t in range(len(x)):
        predictions[t] = out[0] if predict(*reads, x[t], out) == 0 else real(float("nan"))


@driver
def learn_stream(writes, x, y, statuses):  # type: ignore[no-untyped-def]
    """Learn each row in turn."""
    for t in range(len(x)):
        statuses[t] = update(*writes, x[t], y[t])
