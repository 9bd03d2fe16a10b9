"""What the generator needs to know of a family of models: its memory, its parameters and its public functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

import numpy as np

from pykernel.dialect import DIM, Array, Config, Index, Kernel, Layout, Memory, Precision, Real, Struct, driver

LabelKind = Literal["real", "reals", "class"]
"""What update takes as its label: a number, OUTPUTS numbers, or the position of a class."""


@dataclass(frozen=True)
class Entry:
    """A public function ``NAME_<name>``; ``when`` says for which parameters it exists."""

    name: str
    kernel: Kernel
    when: Callable[[Any], bool] = lambda config: True


@dataclass(frozen=True)
class LabelArray:
    """What a stream's labels are: integers (positions of classes) or reals, and the shape of one sample's."""

    is_class: bool
    shape: tuple[int, ...]


class Settings:
    """A model's parameters: every field of its configs as an attribute, and each config's ``views`` for its kernels."""

    def __init__(self, views: Mapping[type[Config], Any]) -> None:
        self.views = dict(views)
        for config, values in self.views.items():
            for name in config.fields:
                if hasattr(self, name):
                    raise TypeError(f"two configs of one program have a field called {name}; rename one")
                setattr(self, name, getattr(values, name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no config of this program has a field called {name}")

    def replace(self, **values: Any) -> Settings:
        """The same with other values of some fields."""
        views = {}
        for config, own in self.views.items():
            views[config] = own._replace(**{name: value for name, value in values.items() if name in config.fields})
        return Settings(views)


@dataclass(frozen=True)
class Program:
    """A family of models.

    structs: the memory, in order; those in ``persistent`` come first and are the model, the others are working memory.
    entries: among them predict (…, x, y: Real[OUTPUTS]) and update (…, x, label), which return a status.  A label is a
        Real, Real[OUTPUTS], or the Index of a class.  Entries that end with x: Real[DIM] and an array are questions:
        they write an answer to it and leave the model as it is; below 0 they refuse, and write nothing.
    rehearse: a kernel (…, x) that exercises update on a fixed sequence, for the self-test.
    valid: a kernel (…) -> Bool, whether learning could have led to the memory's contents: a restored state is
        untrusted.  It must take whatever update leaves, and refuse what update could not go on from.
    """

    name: str
    structs: tuple[type[Struct], ...]
    persistent: tuple[type[Struct], ...]
    configs: tuple[type[Config], ...]
    status: type[IntEnum]
    entries: tuple[Entry, ...]
    rehearse: Kernel
    valid: Kernel
    questions: Mapping[str, Array] = field(init=False)  # name -> what the entry writes
    run_streams: Mapping[str, Kernel] = field(init=False)  # question -> the loop that asks it, then learns
    ask_streams: Mapping[str, Kernel] = field(init=False)  # question -> the loop that asks it
    learn_stream: Kernel = field(init=False)

    def __post_init__(self) -> None:
        update, asked = self.entry("update"), {}
        for entry in self.entries:
            kinds = list(entry.kernel.params.values())[-2:]
            if len(kinds) == 2 and kinds[0] == Real[DIM] and isinstance(kinds[1], Array) and entry.name != "update":
                asked[entry.name] = entry.kernel
        loops = {
            "questions": {name: list(kernel.params.values())[-1] for name, kernel in asked.items()},
            "run_streams": {name: replace(run_stream, names={"ask": k, "update": update}) for name, k in asked.items()},
            "ask_streams": {name: replace(ask_stream, names={"ask": kernel}) for name, kernel in asked.items()},
            "learn_stream": replace(learn_stream, names={"update": update}),
        }
        for name, value in loops.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> Any:
        """The type of update's last parameter."""
        return list(self.entry("update").params.values())[-1]

    @property
    def label_kind(self) -> LabelKind:
        return "reals" if isinstance(self.label, Array) else "class" if self.label is Index else "real"

    def label_array(self, capacities: Mapping[str, int]) -> LabelArray:
        shape = self.label.shape(capacities) if isinstance(self.label, Array) else ()
        return LabelArray(self.label is Index, shape)

    def label_dtype(self, precision: Precision) -> np.dtype:
        """Of labels as the C takes them."""
        return np.dtype("<i4") if self.label is Index else precision.dtype

    def answers(self, question: str, rows: int, memory: Memory) -> np.ndarray:
        """Room for a question's answers, (rows, values): NaN, or -1 for positions, where nothing is written."""
        kind = self.questions[question]
        shape = (rows, *kind.shape(memory.capacities))
        return np.full(shape, np.nan, memory.precision.dtype) if kind.scalar is Real else np.full(shape, -1, "<i4")

    def entries_for(self, config: Any) -> list[Entry]:
        return [entry for entry in self.entries if entry.when(config)]

    def memory(self, precision: Precision, capacities: dict[str, int], drop: Iterable[str] = ()) -> Memory:
        return Memory(self.structs, precision, capacities, drop)

    def state_bytes(self, layout: Layout) -> int:
        """Bytes of the model, which come first in its memory."""
        return layout.ends[self.persistent[-1].__name__]

    def entry(self, name: str) -> Kernel:
        return next(entry.kernel for entry in self.entries if entry.name == name)

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields of all configs, with their kinds."""
        return {name: kind for config in self.configs for name, kind in config.fields.items()}

    def settings(self, precision: Precision, values: Mapping[str, Any], capacities: Mapping[str, int]) -> Settings:
        """The parameters as kernels take them, see ``Config.of``."""
        return Settings({config: config.of(precision, values, capacities) for config in self.configs})

    def arguments(self, kernel: Kernel, memory: Memory, config: Settings) -> tuple[Any, ...]:
        """The struct and config arguments that lead a kernel's signature."""
        lead: list[Any] = []
        for kind in kernel.params.values():
            if isinstance(kind, type) and issubclass(kind, Struct):
                lead.append(memory.view(kind))
            elif isinstance(kind, type) and issubclass(kind, Config):
                lead.append(config.views[kind])
        return tuple(lead)


# ------------------------------------------------------------------------- loops over samples, for any program

# the program's own entries, once a loop is bound
ask: Any = None
update: Any = None


@driver
def run_stream(reads, writes, x, y, first, delay, answers, statuses):  # type: ignore[no-untyped-def]
    """Ask for each sample from ``first`` on, then learn the one ``delay`` rows before it.

    reads, writes: what the question and update take before the sample.  answers: (len(x) - first, values), left as
    they are where refused; statuses: of the updates, 0 where there was none.
    """
    for t in range(first, len(x)):
        i = t - first
        ask(*reads, x[t], answers[i])
        statuses[i] = 0
        if t >= delay:
            statuses[i] = update(*writes, x[t - delay], y[t - delay])


@driver
def ask_stream(reads, x, answers, statuses):  # type: ignore[no-untyped-def]
    """Ask for each row; answers: (len(x), values), left as they are where refused."""
    for t in range(len(x)):
        statuses[t] = ask(*reads, x[t], answers[t])


@driver
def learn_stream(writes, x, y, statuses):  # type: ignore[no-untyped-def]
    """Learn each row in turn."""
    for t in range(len(x)):
        statuses[t] = update(*writes, x[t], y[t])
