"""What the generator needs to know of a family of models: its memory, its parameters and its public functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pykernel.dialect import Config, Kernel, Memory, Precision, Struct


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
    rehearse: a kernel (structs..., config, x) that exercises ``update`` on a fixed sequence, for the self-test.
    The streams are drivers: host loops over samples.
    """

    name: str
    structs: tuple[type[Struct], ...]
    persistent: tuple[type[Struct], ...]
    config: type[Config]
    status: type[IntEnum]
    entries: tuple[Entry, ...]
    rehearse: Kernel
    run_stream: Kernel
    predict_stream: Kernel
    learn_stream: Kernel

    def entries_for(self, config: Any) -> list[Entry]:
        return [entry for entry in self.entries if entry.when(config)]

    def memory(self, precision: Precision, capacities: dict[str, int], drop: Iterable[str] = ()) -> Memory:
        return Memory(self.structs, precision, capacities, drop)

    def arguments(self, kernel: Kernel, memory: Memory, config: Any) -> list[Any]:
        """The struct and config arguments that lead a kernel's signature."""
        lead: list[Any] = []
        for kind in kernel.params.values():
            if isinstance(kind, type) and issubclass(kind, Struct):
                lead.append(memory.view(kind))
            elif isinstance(kind, type) and issubclass(kind, Config):
                lead.append(config)
        return lead
