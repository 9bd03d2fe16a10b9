"""Descriptions of families of models for the generator: memory, parameters and public functions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from enum import IntEnum, unique
from typing import Any, Literal

import numpy as np

from pykernel.dialect.kernels import Kernel, reachable, substitute
from pykernel.dialect.memory import Config, Layout, Memory, Struct, parts_of
from pykernel.dialect.types import DIM, OUTPUTS, Array, Extent, Index, Int, Int16, Precision, Real
from pykernel.errors import UserError

LabelKind = Literal["real", "reals", "class", "none"]
"""The kind of a label: the update takes a number ("real"), OUTPUTS numbers ("reals"), the index of a class ("class"),
or no label ("none").
"""
LABELS: dict[LabelKind, Any] = {"real": Real, "reals": Real[OUTPUTS], "class": Index, "none": None}
INT16_LABELS: dict[LabelKind, Any] = {"real": Int, "reals": Int[OUTPUTS], "class": Index, "none": None}
"""The label types of a program whose inputs are integers (Int16[DIM])."""
NOTHING = -(2**31)
"""Initial value of an answer of type Int; it remains if no answer is written."""
NO_COUNT = -32768
"""Initial value of an answer of type Int16; it remains if no answer is written.  No written answer has this value,
because the largest magnitude is 32767."""
TAKES = {
    "question": "it must take (…, x: Real[DIM], an array)",
    "update": "the entry that learns a sample must be called update, and no other entry may have this name",
    "gather": "it must take (…, a sample)",
    "label": "it must take (…, a label)",
    "visit": "it must take the same parameters as the update",
    "action": "it must take structs and configurations only",
    "training": "it must take structs and configurations only",
    "promise": "it must take (…, a sample)",
    "switch": "it must take (…, an Index)",
    "reading": "it must take (…, an array)",
}
"""Kind of entry -> the end of an error message, which says what an entry of this kind must take."""


EntryKind = Literal[
    "question", "update", "gather", "label", "visit", "training", "action", "promise", "switch", "reading"
]
"""The kind of an entry, which determines the parameters after the structs and configurations; see ``Program``."""


@dataclass(frozen=True)
class Entry:
    """A public function ``NAME_<name>``.  ``when(config)`` says whether a model with this configuration has the function.

    of: for a reading that writes the answer to an inner model's question, the name of this question; "" for other entries.
    answers: whether the entry is an action with which the firmware responds to an alarm.
    """

    name: str
    kernel: Kernel
    kind: EntryKind
    when: Callable[[Any], bool] = lambda config: True
    of: str = ""
    answers: bool = False


@dataclass(frozen=True)
class LabelArray:
    """The type of a stream's labels (class indices or other numbers), and the shape of one sample's label.

    Without labels, each sample has an empty array: shape (0,).
    """

    is_class: bool
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OnHost:
    """A kernel that only the PC calls, to change a state.  While the kernel runs, the values in ``under`` replace those
    of the model's parameters.
    """

    kernel: Kernel
    under: Mapping[str, Any] = field(default_factory=dict)

    def settings(
        self, program: Program, precision: Precision, values: Mapping[str, Any], capacities: Mapping[str, int]
    ) -> Settings:
        return program.settings(precision, {**values, **self.under}, capacities)


@dataclass(frozen=True)
class Budget:
    """Places for vectors.  The field n counts the places in use, and every unused place is zero, so that a state can be
    moved into a model with more or fewer places.

    capacity: name of the capacity that is the number of places.
    remove: a kernel (…) -> Index that removes one vector as learning would, and returns a number below 0 if no vector
    can be removed; None if only learning can remove vectors.
    """

    capacity: str
    remove: OnHost | None = None


class Settings:
    """A model's parameters.  Every field of the configs is an attribute, and ``views`` has each config in the form that
    kernels take.
    """

    def __init__(self, views: Mapping[type[Config], Any]) -> None:
        self.views = dict(views)
        for config, values in self.views.items():
            for name in config.fields:
                if name in vars(self) or hasattr(Settings, name):
                    raise TypeError(f"two configs of one program have a field called {name}; rename one")
                vars(self)[name] = getattr(values, name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no config of this program has a field called {name}")

    def replace(self, **values: Any) -> Settings:
        """Return a copy of the settings in which the given fields have other values."""
        return Settings(
            {
                config: own._replace(**{name: value for name, value in values.items() if name in config.fields})
                for config, own in self.views.items()
            }
        )


def _merged(kinds: Sequence[type[IntEnum]]) -> type[IntEnum]:
    """Merge several enumerations into one."""
    members: dict[str, int] = {}
    for member in itertools.chain.from_iterable(kinds):
        if members.setdefault(member.name, member.value) != member.value:
            raise TypeError(f"{member.name} is {members[member.name]} and {member.value}; give {member.name} one value")
    made: type[IntEnum] = IntEnum(kinds[0].__name__, members)  # type: ignore[misc, assignment]
    made.__doc__ = kinds[0].__doc__
    return unique(made)


@dataclass(frozen=True, eq=False)
class Program:
    """A family of models.

    structs: the memory, in order.  The structs in ``persistent`` come first and are the model; the others are working
        memory.  A program that does not learn on the device has no persistent struct.
    entries: every entry returns a status.  A status below 0 means that the call was refused: the model did not change,
    and a question or a reading wrote no answer.  (A reading may also be refused because there is no answer yet.)  With
    any other status, the answer is written.  In one case, a refused update changes the model: if the inner model of a
    signal stage finds that its memory was overwritten, the signal stage has already taken the sample.  The parameters
    after the structs and configurations are as follows; a program whose inputs are integers has Int16[DIM] instead of
    Real[DIM]:

        a question (x: Real[DIM], an array): writes an answer to the array and does not change the model.  A program
            that has labels has the question predict(x: Real[DIM], y: Real[OUTPUTS]).
        the update (x: Real[DIM], label): learns a sample.  A label is a Real, Real[OUTPUTS], or the Index of a class.
            An update without the parameter label learns from samples without labels.  The entry is called update,
            except in ``pykernel.algorithms.signal``, where it takes raw samples, Real[CHANNELS].
        a gather (x) and a label (label): an update in two calls, for labels that come later than their samples.
        a visit (the update's parameters): uses a sample for something other than learning, such as a second pass.
        an action (no parameter): changes the model as a whole, such as a restart.
        a training (no parameter): an action that trains the model on the samples that the update has only collected.
        a promise (x): says that the label of a sample will come later.
        a switch (an Index): turns something on (1) or off (0).
        a reading (an array): writes a value that the model reports about itself, such as its alarm level.

        ``asks`` is the main question, which is used to run a stream: predict if there is one, else the first question.
        If a program has no question, ``asks`` is its first reading, which is called after each sample.

    valid: a kernel (…) -> Bool that returns whether learning could have produced the memory's contents; it checks a
    restored state, which is untrusted.  The kernel must accept every state that the update leaves, and refuse every
    state from which the update could not continue.  Only programs with a persistent struct have this kernel.
    missed: a kernel (…, refused: Index) -> Index that returns the status of a sample that was refused before it reached
    the program.
    labels: for a program without an update, the kind of label that the program predicts.
    statuses: the enumerations whose members the program's kernels return.
    alarms: statuses of the update on which the firmware should act.  A program with alarms also has the reading
    ``alarm``, which writes three numbers: a level; the threshold above which there is an alarm; and the number of rows
    since the alarm began (0 without an alarm).
    between: actions that a check calls, in this order, between the parts of its stream.
    budget: how a state is moved into a model with more or fewer places for vectors; None if states cannot be moved.
    stand_ins: replacements of kernels, types and words, applied to all kernels; see ``substitute``.
    """

    name: str
    structs: tuple[type[Struct], ...]
    persistent: tuple[type[Struct], ...]
    configs: tuple[type[Config], ...]
    statuses: tuple[type[IntEnum], ...]
    entries: tuple[Entry, ...]
    valid: Kernel | None = None
    missed: Kernel | None = None
    labels: LabelKind | None = None
    alarms: tuple[IntEnum, ...] = ()
    between: tuple[str, ...] = ()
    budget: Budget | None = None
    stand_ins: InitVar[Mapping[Any, Any] | None] = None
    # ``statuses`` merged into one enumeration, with the name of the first enumeration
    status: type[IntEnum] = field(init=False)
    sample: Array = field(init=False)  # type of a sample, the first parameter of the update and of questions
    learner: str = field(init=False)  # the update's name; "" without an update
    is_int16: bool = field(init=False)  # whether inputs are integers and the program has no reals
    learns: bool = field(init=False)  # whether there is an update
    asks: str = field(init=False)  # the main question
    actions: tuple[str, ...] = field(init=False)  # names of the actions, including trainings
    trainings: tuple[str, ...] = field(init=False)
    visits: tuple[str, ...] = field(init=False)  # names of the visits, including promises
    promises: tuple[str, ...] = field(init=False)
    readings: Mapping[str, Array] = field(init=False)  # name of an entry -> the array that the entry writes
    questions: Mapping[str, Array] = field(init=False)  # name of an entry -> the array that the entry writes
    answering: Mapping[str, str] = field(init=False)  # entry that writes an answer -> the question that it answers

    def __post_init__(self, stand_ins: Mapping[Any, Any] | None) -> None:
        if stand_ins:
            own, budget = functools.partial(substitute, stand_ins=stand_ins), self.budget
            object.__setattr__(self, "entries", tuple(replace(each, kernel=own(each.kernel)) for each in self.entries))
            object.__setattr__(self, "valid", self.valid and own(self.valid))
            object.__setattr__(self, "missed", self.missed and own(self.missed))
            if budget is not None and budget.remove is not None:
                remove = replace(budget.remove, kernel=own(budget.remove.kernel))
                object.__setattr__(self, "budget", replace(budget, remove=remove))
        kernels = {entry.name: entry.kernel for entry in self.entries}
        learner = next((entry.name for entry in self.entries if entry.kind == "update"), "")
        object.__setattr__(self, "learner", learner)
        update, taken = kernels.get(learner), {name: taken_by(kernel) for name, kernel in kernels.items()}

        def of(*kinds: EntryKind) -> dict[str, Kernel]:
            return {entry.name: entry.kernel for entry in self.entries if entry.kind in kinds}

        is_int16 = any(kinds and getattr(kinds[0], "scalar", None) is Int16 for kinds in taken.values())
        sample = taken[learner][0] if update is not None and taken[learner] else Int16[DIM] if is_int16 else Real[DIM]
        self._fit(taken, sample)
        asked, read = of("question"), of("reading")
        labelled = self.labels != "none" and (update is None or taken[learner] != [sample])
        derived: dict[str, Any] = {
            "status": _merged(self.statuses),
            "sample": sample,
            "is_int16": is_int16,
            "learns": update is not None,
            "asks": "predict" if "predict" in asked else next(iter(asked), next(iter(read), "")),
            "actions": tuple(of("action", "training")),
            "trainings": tuple(of("training")),
            "visits": tuple(of("visit", "promise")),
            "promises": tuple(of("promise")),
            "readings": {name: taken[name][0] for name in read},
            "questions": {name: taken[name][1] for name in asked},
            "answering": {name: name for name in asked} | {entry.name: entry.of for entry in self.entries if entry.of},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        raw = sample not in (Real[DIM], Int16[DIM])
        if labelled and not raw and "predict" not in asked:
            raise TypeError(f"{self.name} has no predict(…, x: Real[DIM], y: Real[OUTPUTS])")
        if not self.asks or not (asked or raw):
            raise TypeError(f"{self.name} has no question (…, x: Real[DIM], an array)")
        if self.learns == (self.labels is not None):
            raise TypeError(
                f"{self.name}: the argument 'labels' is needed without an update; with an update, leave it out, because "
                "the update determines the kind of the labels"
            )
        if update is not None and taken[learner] not in [
            [sample, *([] if label is None else [label])] for label in (INT16_LABELS if is_int16 else LABELS).values()
        ]:
            raise TypeError(
                f"{self.name}: update must take (…, x: Real[DIM]), then a Real, Real[OUTPUTS], Index or nothing"
            )
        if self.alarms and (update is None or self.readings.get("alarm") != Real[3]):
            raise TypeError(
                f"{self.name}: a program with alarms must have an update and the reading alarm(…, state: Real[3])"
            )
        if bool(self.persistent) != (self.valid is not None):
            raise TypeError(f"{self.name}: give 'valid' and 'persistent' together, or neither of them")
        if self.persistent != self.structs[: len(self.persistent)]:
            raise TypeError(f"{self.name}: the persistent structs must be the first structs")
        if strange := [name for name in self.between if name not in self.actions]:
            raise TypeError(f"{self.name}: {strange[0]} is listed in 'between', but is not an action")

    def _fit(self, taken: Mapping[str, Sequence[Any]], sample: Array) -> None:
        """Raise TypeError for an entry whose parameters do not fit its kind."""
        for entry in self.entries:
            kinds = taken[entry.name]
            fits = {
                "question": len(kinds) == 2 and kinds[0] == sample and isinstance(kinds[1], Array),
                "update": entry.name == ("update" if sample in (Real[DIM], Int16[DIM]) else self.learner),
                "gather": kinds == [sample],
                "label": kinds == taken.get(self.learner, [])[1:],
                "visit": kinds == taken.get(self.learner),
                "action": not kinds,
                "training": not kinds,
                "promise": kinds == [sample],
                "switch": kinds == [Index],
                "reading": len(kinds) == 1 and isinstance(kinds[0], Array),
            }
            if not fits[entry.kind] or (entry.name == "update" and entry.kind != "update"):
                raise TypeError(f"{self.name}: {entry.name} is not a valid {entry.kind}: {TAKES[entry.kind]}")

    @property
    def roots(self) -> list[Kernel]:
        return [*(entry.kernel for entry in self.entries), *([self.valid] if self.valid else [])]

    def with_kernel(self, custom: Kernel) -> Program:
        """Return a copy of the program in which the user's kernel computes all kernel values.  The copy is made once for
        each kernel.

        Raises UserError if the user's kernel, or a kernel that it calls, has the name of one of the program's kernels.
        """
        return _with_kernel(self, custom)

    def forecasts(self, config: Any) -> str:
        """Return the question that predicts a label: the question for the class if there is one, else the main
        question.
        """
        names = [entry.name for entry in self.entries_for(config)] if self.label is Index else []
        asked = {**self.questions, **self.readings}
        return next((n for n in names if asked.get(n) == Index[1]), self.asks)

    @property
    def sample_size(self) -> str:
        """Name of the capacity that says how many numbers a sample has."""
        return next(extent.text for extent in self.sample.extents if isinstance(extent, Extent))

    @property
    def reads(self) -> bool:
        """Whether the main question is a reading, which refers to the newest sample."""
        return self.asks in self.readings

    @property
    def answer(self) -> Array:
        """Type of the array that the main question writes."""
        return self.written(self.asks)

    @property
    def label(self) -> Any:
        """The type of a label: from ``labels`` if it is set, else from the update's parameters; None if the program
        takes no labels.
        """
        if self.labels is not None:
            return (INT16_LABELS if self.is_int16 else LABELS)[self.labels]
        return next(iter(taken_by(self.entry(self.learner))[1:]), None)

    @property
    def label_kind(self) -> LabelKind:
        return next(kind for kind, label in (INT16_LABELS if self.is_int16 else LABELS).items() if label == self.label)

    def label_array(self, capacities: Mapping[str, int]) -> LabelArray:
        if self.label is None:
            return LabelArray(False, (0,))
        shape = self.label.shape(capacities) if isinstance(self.label, Array) else ()
        return LabelArray(self.label is Index, shape)

    def label_dtype(self, precision: Precision) -> np.dtype:
        """Return the NumPy type of the labels that the C code takes."""
        return np.dtype("<i4") if self.is_int16 or self.label is Index else precision.dtype

    def written(self, name: str) -> Array:
        """Return the type of the array that a question or a reading writes."""
        return self.questions[name] if name in self.questions else self.readings[name]

    def answers(self, question: str, rows: int, memory: Memory) -> np.ndarray:
        """Return an array of shape (rows, values) for a question's answers.

        The array is filled with NaN for reals, -1 for Index, NO_COUNT for Int16, or NOTHING for other integers.
        """
        return _room(self.written(question), (rows,), memory)

    def reading(self, name: str, memory: Memory) -> np.ndarray:
        """Return an array for the values that a reading writes, filled as in ``answers``."""
        return _room(self.readings[name], (), memory)

    def entries_for(self, config: Any) -> list[Entry]:
        return [entry for entry in self.entries if entry.when(config)]

    def memory(self, precision: Precision, capacities: dict[str, int], drop: Iterable[str] = ()) -> Memory:
        return Memory(self.structs, precision, capacities, drop)

    def state_bytes(self, layout: Layout) -> int:
        """Return the size in bytes of the model, which comes first in its memory; 0 if nothing is learned."""
        return layout.ends[self.persistent[-1].__name__] if self.persistent else 0

    def hashed_bytes(self, layout: Layout) -> int:
        """Return the number of bytes that NAME_hash covers: those of the model or, if nothing is learned, those of the working
        memory.
        """
        return self.state_bytes(layout) or layout.nbytes

    def entry(self, name: str) -> Kernel:
        return next(entry.kernel for entry in self.entries if entry.name == name)

    def waiting(self, kept: Container[str]) -> dict[str, str]:
        """Return a dict: field that is zero while its count is zero -> name of this count.  kept: the fields that a model
        has.
        """
        declared = {name: after.split() for struct in self.persistent for name, after in struct.after.items()}
        found = {
            name: [count for count in counts if count in kept] for name, counts in declared.items() if name in kept
        }
        return {name: counts[0] for name, counts in found.items() if counts}

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields of all configs, with their kinds."""
        return {name: kind for config in self.configs for name, kind in config.fields.items()}

    def settings(self, precision: Precision, values: Mapping[str, Any], capacities: Mapping[str, int]) -> Settings:
        """Return the parameters in the form that kernels take; see ``Config.of``."""
        return Settings({config: config.of(precision, values, capacities) for config in self.configs})


class Programs(Mapping[LabelKind, Program]):
    """A rule's program for each kind of label.  A program is made when it is first needed, because most commands need
    only one program.
    """

    def __init__(self, make: Mapping[LabelKind, Callable[[], Program]]) -> None:
        self._make = {kind: functools.cache(one) for kind, one in make.items()}

    def __getitem__(self, kind: LabelKind) -> Program:
        return self._make[kind]()

    def __contains__(self, kind: object) -> bool:
        return kind in self._make

    def __iter__(self) -> Iterator[LabelKind]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __or__(self, other: Programs) -> Programs:
        return Programs({kind: functools.partial(each.__getitem__, kind) for each in (self, other) for kind in each})


@functools.cache
def _with_kernel(program: Program, custom: Kernel) -> Program:
    taken = [*custom.params.values()]
    places = (k for k in reachable(program.roots) if k.placeholder and [*k.params.values()] == taken)
    made = replace(program, stand_ins=dict.fromkeys(places, custom))
    known: dict[str, Kernel] = {}
    for kernel in reachable(made.roots):
        if known.setdefault(kernel.name, kernel) is not kernel:
            mine = next((k for k in reachable([custom]) if k.name == kernel.name), kernel)
            raise UserError(
                f"{mine.file}: {mine.name} is also the name of a function in the {program.name} model; "
                "choose another name"
            )
    return made


def taken_by(kernel: Kernel) -> list[Any]:
    """Return the kinds of a kernel's parameters after the structs and configurations."""
    return [kind for kind in kernel.params.values() if not parts_of(kind)]


def _room(kind: Array, rows: tuple[int, ...], memory: Memory) -> np.ndarray:
    shape = (*rows, *kind.shape(memory.capacities))
    empty = np.nan if kind.scalar is Real else -1 if kind.scalar is Index else NOTHING
    if kind.scalar is Int16:
        empty = NO_COUNT
    return np.full(shape, empty, kind.scalar.dtype(memory.precision))
