"""The self-test's sequence of calls: every public function of a model is called on pseudo-random samples.

``run`` is the sequence on the host; the template ``selftest.c`` is the same sequence in C.  Each call's status and
answer, and the final state, are hashed to one number.  The self-test passes if both numbers are equal; so both
sequences must make the same calls.

The samples are numbers of a fixed pseudo-random sequence, at different distances from a center; see ``Kind``.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.dialect import Index, Layout, Memory, Real, Slot
from pykernel.dialect.program import Entry, Settings
from pykernel.engine.engines import make_executor
from pykernel.gen.ir import Call, Field, If, Member, Return, walk
from pykernel.gen.model import made_up_number, specialised
from pykernel.gen.print_c import Printer, number
from pykernel.host.model import HostModel
from pykernel.spec.family import REHEARSAL_LIMIT, affordable
from pykernel.spec.model import Spec

ACTIONS = ("training", "action")
"""Kinds of entries that the self-test calls as actions, on the host and in C."""
KINDS = 16
FAR, CLOSE, MIDDLE = 4, 2, 12
"""Distances as numbers of halvings, chosen as the sequence is (docs/decisions.md, "Gen").  FAR: from an outlying sample to a usual
sample; CLOSE: from a usual sample to one of a narrow cluster; MIDDLE: to a sample at the center."""
ROWS = 4
"""Most centers, without the last one."""
MOVED = 4
"""Distance between the first and the last center, in units of a usual sample's distance."""
DAMAGE = 2.0**40
"""The number with which the model's numbers are overwritten, so that the code for limits runs.  A product of three of
them stays within float32."""


class Kind(IntEnum):
    """The kind of sample n of the sequence, by n modulo 16.

    The samples 8 to 11 form a narrow cluster.  A number that is not listed is a usual sample.
    """

    GATHERED = 1  # this sample and the next one are taken without labels; their labels come later
    MIDDLE = 3
    PARTLY = 4  # where something stands in for missing inputs: an input is missing
    ASKED = 5  # all questions are asked about it before it is learned
    REPEATED = 6  # the sample before is repeated; the second sample of the sequence also repeats the first
    EMPTY = 7  # where something stands in for missing inputs: all inputs are missing
    NARROW = 8
    VISITED = 10
    OUTLYING = 12
    READ = 13  # asked, and all readings are read
    REFUSED = 14  # an input is beyond its limit
    MISLABELLED = 15  # the label is beyond its limit, or no class


GIVEN = {
    "question": ("sample", "answer"),
    "update": ("sample", "label"),
    "visit": ("sample", "label"),
    "gather": ("sample",),
    "label": ("label",),
    "switch": ("off",),
    "reading": ("answer",),
    "action": (),
    "training": (),
}
"""Kind of entry -> its arguments: the sample, the sample's label, the number 0 (off), or memory for the answer."""


BETWEEN = {
    "question": (Kind.ASKED, Kind.READ, Kind.REFUSED),
    "reading": (Kind.READ, Kind.REFUSED),
    "visit": (Kind.VISITED, Kind.REFUSED, Kind.MISLABELLED),
}
"""Kind of entry -> the kinds of samples before whose update it is called."""


def between(spec: Spec) -> dict[str, tuple[Kind, ...]]:
    """As ``BETWEEN``; a model that completes samples is asked about incomplete ones, too."""
    asked = (*BETWEEN["question"], Kind.PARTLY, Kind.EMPTY) if spec.completes else BETWEEN["question"]
    return BETWEEN | {"question": asked}


OFFSET, PRIME = 0x811C9DC5, 16777619
"""Constants of the hash FNV-1a."""


@dataclass(frozen=True)
class Sequence:
    """The part of the sequence that depends on the model.

    steps: number of samples that the rule sees.  stride: raw samples for each step.
    centers: (rows, numbers of a sample).  sizes: twice the largest distances from a center.
    halvings: how often ``sizes`` is halved for a usual sample; label_halvings: the same for ``label_size``.
    moved: the first step from which on all samples are around the last center.
    """

    steps: int
    stride: int
    centers: np.ndarray
    sizes: np.ndarray
    halvings: int
    label_size: Any
    label_halvings: int
    moved: int

    @property
    def samples(self) -> int:
        return self.steps * self.stride

    @property
    def turned(self) -> int:
        """Before this step, behind an outlying sample, actions are called without the first one, which takes what others need."""
        return self.steps // 2 // KINDS * KINDS + Kind.READ


def sequence(spec: Spec) -> Sequence:
    """The sequence for a model.  The distance between usual samples is about the kernel's length scale."""
    real = spec.real
    centers, largest, usual = _places(spec)
    halvings = min(10, max(0, round(math.log2(float(np.max(largest / usual))))))
    label = min(16.0, 2 * spec.label_max_abs) if spec.program.label_kind in ("real", "reals") else 1.0
    label_halvings = max(0, round(math.log2(label)))
    steps, tail = _steps(spec)
    if spec.program.is_int16:
        centers = np.clip(spec.raw_inputs(centers).astype(np.int32), -32000, 32000)
        rates = np.asarray(spec.counts_per_unit, float)
        sizes = np.minimum(np.rint(largest * rates), 2 * (32767 - np.abs(centers).max(0))).astype(np.int32)
        size: Any = int(min(2.0**30, 2.0 * math.floor(spec.label_max_abs * 2.0**spec.label_shift)))
        label_halvings = min(4, label_halvings)
    else:
        with np.errstate(over="ignore"):
            centers, sizes = centers.astype(real.dtype), largest.astype(real.dtype)
        size = real.real(label)
    return Sequence(steps, spec.stride, centers, sizes, halvings, size, label_halvings, steps - tail)


def _places(spec: Spec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centers of samples, (rows, numbers of a sample); sizes of the farthest samples, and of usual samples, (numbers,).

    All are in the data's units.
    """
    if spec.signal is not None:
        most = np.array(spec.signal.max_abs, float) * np.ones(spec.width)
        usual = np.minimum(1.0, most / 4)
        return np.stack([np.zeros(spec.width), 2 * usual]), 1.5 * most, usual
    most, middle = np.array(spec.input.max_abs, float) * np.ones(spec.dim), np.zeros(spec.dim)
    if isinstance(spec.input.max_abs, tuple) and not spec.program.is_int16:
        middle = spec.input_ranges.mean(axis=0)
    rows = np.zeros((1, spec.dim))
    if spec.expansion is not None and len(spec.expansion.vectors):
        vectors = np.array(spec.expansion.vectors, float)
        rows = vectors[np.unique(np.linspace(0, len(vectors) - 1, ROWS).astype(int))]
    rows = spec.unscaled(rows)
    scale = 1.0 if spec.scaling[1] is None else np.abs(spec.scaling[1])
    usual = np.minimum(3 * spec.length_scale / math.sqrt(spec.dim) / scale * np.ones(spec.dim), most)
    rows = np.vstack([rows, np.clip(rows[0] + MOVED * usual, middle - 0.9 * most, middle + 0.9 * most)])
    return rows, np.minimum(2.0**FAR * usual, 2 * most), usual


def _steps(spec: Spec) -> tuple[int, int]:
    """How many samples the rule sees, and how many of these, at the end, are around the last center."""
    config = spec.config
    held = getattr(config, "relearn_after", 0) * 5 // 4 + 3 * KINDS
    waits = getattr(config, "warmup", 0) + (getattr(spec.input, "warmup", 0) if spec.standardises else 0)
    most = max(2 * KINDS, REHEARSAL_LIMIT // (2 * spec.numbers))
    tail = min(held, most)
    rehearsed = getattr(config, "rehearsed", 0)
    if spec.program.trainings and (rows := getattr(spec.learning, "samples", None)):  # they are collected first
        rehearsed = affordable(rows + KINDS, lambda m: 4 * min(m, rows) ** 3)
    return max(2 * KINDS, rehearsed + min(waits, most) + KINDS) + tail, tail


# ------------------------------------------------------------------------------------------------------- on the host


class _Run:
    def __init__(self, spec: Spec, drop: tuple[str, ...]) -> None:
        self.spec, self.program, self.plan = spec, spec.program, sequence(spec)
        self.model = HostModel(spec, drop)
        self.label = _label_kind(spec)
        self.kernel = made_up_number(spec)
        nothing = Memory((), self.model.memory.precision, {})
        self.numbers = make_executor([self.kernel], nothing, Settings({}), self.model.engine)
        self.entries = self.program.entries_for(spec.config)
        self.actions = [e for e in self.entries if e.kind in ACTIONS and e.name != "restart"]
        self.found, self.seed, self.last = OFFSET, 1, 1
        self.x = np.zeros(spec.width, spec.real.dtype)
        self.y: Any = np.zeros(spec.outputs, self.program.label_dtype(spec.real))
        self.buffers = {kind: np.zeros(count, _dtype(kind, spec)) for kind, count in buffers(spec).items()}

    def told(self, data: bytes) -> None:
        for byte in data:
            self.found = (self.found ^ byte) * PRIME % 2**32

    def call(self, entry: Entry, *given: Any) -> None:
        status = int(self.model.executor.call(entry.kernel, *given))
        self.told(np.int32(status).tobytes())

    def given(self, entry: Entry) -> list[Any]:
        labels = [] if self.label == "none" else [self.y if self.label == "reals" else self.y[0]]
        known = {"sample": [self.x], "label": labels, "off": [0], "answer": self.answer(entry)}
        return [value for what in GIVEN[entry.kind] for value in known[what]]

    def answer(self, entry: Entry) -> list[np.ndarray]:
        """The array to which the function writes; empty if it is neither a question nor a reading."""
        scalar, count = _answer(self.spec, entry)
        return [self.buffers[scalar][:count]] if count else []

    def call_all(self, *kinds: str, but: str = "") -> None:
        """Call all functions of some kinds, except the function ``but``."""
        for entry in self.entries:
            if entry.kind in kinds and entry.name != but:
                self.call(entry, *self.given(entry))
                for answer in self.answer(entry):
                    self.told(answer.tobytes())

    def random(self) -> int:
        self.seed = (self.seed * 75 + 74) % 65537
        return self.seed

    def made_up(self, center: Any, size: Any, halvings: int) -> Any:
        return self.numbers.call(self.kernel, center, size, halvings, self.random())

    def sample(self, kind: int, moved: bool) -> None:
        plan, classes = self.plan, len(self.spec.label.classes or ())
        self.last = self.seed
        center = plan.centers[-1 if moved else self.seed % (len(plan.centers) - 1)]
        far, far_label = distances(plan, kind)
        for j in range(len(self.x)):
            self.x[j] = self.made_up(center[j], plan.sizes[j], far)
        if self.label in ("real", "reals"):
            for o in range(len(self.y)):
                self.y[o] = self.made_up(self.y.dtype.type(0), plan.label_size, far_label)
        elif self.label == "class":
            self.y[0] = self.random() % classes
        if self.spec.completes and kind == Kind.PARTLY:
            self.x[self.seed % len(self.x)] = np.nan
        if self.spec.completes and kind == Kind.EMPTY:
            self.x[:] = np.nan
        if kind == Kind.REFUSED:
            self.x[0] = refused(self.x.dtype)
        if kind == Kind.MISLABELLED:
            self.y[0] = classes if self.label == "class" else refused(self.y.dtype)

    def step(self, n: int, first: bool) -> None:
        kind = n % KINDS
        if kind == Kind.REPEATED or n == 1:
            self.seed = self.last
        self.sample(kind, n >= self.plan.moved)
        if first:
            if n == self.plan.turned:
                for entry in self.actions[:0:-1]:
                    self.call(entry, *self.given(entry))
            if n in (0, self.plan.steps // 2, self.plan.steps - 1):
                self.call_all(*ACTIONS, but="restart")
                self.call_all("visit")  # what was trained does not know the sample yet
                self.call_all("reading")
            for called, samples in between(self.spec).items():
                if kind in samples:
                    self.call_all(called)
            if n == self.plan.steps // 4:
                self.switch()
        if kind in (Kind.GATHERED, Kind.GATHERED + 1) and any(entry.kind == "gather" for entry in self.entries):
            self.call_all("gather")
            self.call_all("label")
        else:
            self.call_all("update")

    def switch(self) -> None:
        for entry in self.entries:
            if entry.kind == "switch":
                self.call(entry, -1)
                self.call(entry, 1)
                self.call_all("update")
                self.call(entry, 0)

    def run(self) -> int:
        for t in range(self.plan.samples):
            self.step(t // self.plan.stride, t % self.plan.stride == 0)
        self.told_hash()
        self.damage()
        self.call_all("training", "action")
        if any(entry.name == "restart" for entry in self.entries):
            self.told_hash()
        return self.found

    def damage(self) -> None:
        """Overwrite the model's counts one by one: the functions must refuse.

        Then overwrite its numbers: they continue.  First one number of each field, which is written back, so that the other
        fields are sound; then all numbers.
        """
        layout, seed = self.model.memory.layout, self.seed
        for refusing, counts in guards(self.spec, layout):
            for slot in counts:
                self.strike(slot, slice(1), WRONG, seed, refusing)
        slots, calls = overwritten(self.spec, layout), struck(self.spec)
        counted = self.found
        for i, slot in enumerate(slots + slots):
            self.strike(slot, slice(1 if i < len(slots) else None), DAMAGE, seed + i + 1, calls)
        # statuses after such numbers are not hashed: floating-point libraries differ
        self.found = counted

    def strike(self, slot: Slot, where: slice, value: float, seed: int, entries: Iterable[Entry]) -> None:
        """Overwrite numbers of a field, and call functions with a new sample; a single number is then written back.

        Only the functions' statuses are hashed, not their answers.
        """
        numbers = self.model.memory.field(slot.name).reshape(-1)
        old, numbers[where] = numbers[0], value
        self.seed = seed
        self.sample(0, False)
        for entry in entries:
            self.call(entry, *self.given(entry))
        if where.stop == 1:
            numbers[0] = old

    def told_hash(self) -> None:
        memory = self.model.memory
        self.told(np.uint32(zlib.crc32(memory.bytes[: self.program.hashed_bytes(memory.layout)])).tobytes())


def _label_kind(spec: Spec) -> str:
    """The kind of the labels that the sequence makes up; "none" if nothing is learned."""
    return spec.program.label_kind if spec.program.learns else "none"


def distances(plan: Sequence, kind: int) -> tuple[int, int]:
    """How often the sizes of a sample, and of its label, are halved."""
    if kind == Kind.OUTLYING:
        return 0, 0
    if kind == Kind.MIDDLE:
        return MIDDLE, MIDDLE
    return plan.halvings + (CLOSE if Kind.NARROW <= kind < Kind.OUTLYING else 0), plan.label_halvings


def refused(dtype: np.dtype) -> Any:
    """A number that every model refuses as an input or a label; for integers, the smallest number of the type."""
    return np.iinfo(dtype).min if dtype.kind == "i" else np.finfo(dtype).max


WRONG = -1
"""A value that no count may have."""


def overwritten(spec: Spec, layout: Layout) -> list[Slot]:
    """Fields of reals in the model, if the C has them.

    Fields of a signal stage are left out: with other numbers the stage could divide by zero.
    """
    own = {struct.__name__ for struct in spec.program.persistent[0 if spec.signal is None else 1 :]}
    return [slot for slot in layout.slots if slot.array.scalar is Real and slot.struct in own]


def struck(spec: Spec) -> list[Entry]:
    """The public functions that are called after numbers were overwritten: all functions except those that take
    long.
    """
    program = spec.program
    return [
        entry
        for entry in program.entries_for(spec.config)
        if entry.kind != "training" and entry.name not in ("restart", *program.between)
    ]


def guards(spec: Spec, layout: Layout) -> list[tuple[tuple[Entry, ...], list[Slot]]]:
    """(functions, fields): the public functions refuse a memory in which one of these counts or positions is out of
    range.

    A count that a function does not check is not overwritten for this function: the function could divide by the count.
    """
    functions = specialised(spec).functions

    def called(nodes: Iterable[Any]) -> set[str]:
        return {n.callee.name for n in nodes if isinstance(n, Call)} & set(functions)

    def read(node: Any) -> set[str]:
        nodes = list(walk(node))
        return {n.name for n in nodes if isinstance(n, Field)}.union(
            *(read(functions[name].body) for name in called(nodes))
        )

    @functools.cache
    def looked_at(name: str) -> set[str]:
        nodes = list(walk(functions[name].body))
        refusing = [n.condition for n in nodes if isinstance(n, If) and any(map(_refuses_state, n.body))]
        return set().union(*map(read, refusing), *map(looked_at, called(nodes)))

    looking = {entry: looked_at(entry.kernel.name) for entry in spec.program.entries_for(spec.config)}
    found: dict[tuple[Entry, ...], list[Slot]] = {}
    persistent = {struct.__name__ for struct in spec.program.persistent}
    for slot in layout.slots:
        if slot.array.scalar is Index and slot.struct in persistent:
            found.setdefault(tuple(e for e, names in looking.items() if slot.name in names), []).append(slot)
    found.pop((), None)
    return list(found.items())


def _refuses_state(statement: Any) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(statement, Return) and isinstance(value, Member) and value.value.name == "REFUSED_STATE"


def _dtype(scalar: Any, spec: Spec) -> np.dtype:
    return np.dtype(scalar.dtype(spec.real))


def buffers(spec: Spec) -> dict[Any, int]:
    """For each type of numbers: the length of the longest answer."""
    found: dict[Any, int] = {}
    for entry in spec.program.entries_for(spec.config):
        scalar, count = _answer(spec, entry)
        if count:
            found[scalar] = max(found.get(scalar, 0), count)
    return found


def _answer(spec: Spec, entry: Entry) -> tuple[Any, int]:
    """The type and the number of the values that a call writes; None and 0 if it writes no answer."""
    if "answer" not in GIVEN[entry.kind]:
        return None, 0
    kind = spec.program.written(entry.name)
    return kind.scalar, int(kind.shape(spec.capacities)[0])


def run(spec: Spec, drop: tuple[str, ...]) -> int:
    """The number that the self-test must compute."""
    return _Run(spec, drop).run()


# ------------------------------------------------------------------------------------------------------------- in C


def rehearsal_loops(spec: Spec, layout: Layout) -> dict[int, int]:
    """Number of a loop's mark -> the largest number of its iterations, for the loops of the template ``selftest.c``."""
    plan = sequence(spec)
    answers = [count * _dtype(kind, spec).itemsize for kind, count in buffers(spec).items()]
    numbers = [math.prod(slot.shape) for slot in overwritten(spec, layout)]
    outputs = spec.outputs if spec.program.label_kind in ("real", "reals") else 1
    return {
        9101: max([4, *answers]),
        9102: plan.samples,
        9103: plan.centers.shape[1],
        9104: outputs,
        9105: max([1, *numbers]),
        9106: max([1, *buffers(spec).values()]),
        9107: max(1, 2 * len(numbers)),
    } | ({9108: plan.centers.shape[1]} if spec.completes else {})


def context(spec: Spec, printer: Printer, layout: Layout) -> dict[str, Any]:
    """The context of the template ``selftest.c``."""
    plan, precision, int16, label = sequence(spec), spec.real, spec.program.is_int16, _label_kind(spec)
    entries, numbers = spec.program.entries_for(spec.config), overwritten(spec, layout)
    arrays = {scalar: f"answer{i}" for i, scalar in enumerate(buffers(spec))}
    largest = f"{'FLT' if printer.real == 'float' else 'DBL'}_MAX"

    def listed(values: np.ndarray) -> str:
        return ",\n    ".join(number(value, precision) for value in values.reshape(-1))

    def call(entry: Entry) -> dict[str, Any]:
        scalar, count = _answer(spec, entry)
        answer, size = arrays.get(scalar, ""), count * _dtype(scalar, spec).itemsize if count else 0
        argument = {"none": "", "reals": "y"}.get(label, "y[0]")
        given = {"sample": "x", "label": argument, "off": "0", "answer": answer}
        texts = [given[what] for what in GIVEN[entry.kind] if given[what]]
        return {"name": entry.name, "given": "".join(f", {text}" for text in texts), "answer": answer, "size": size}

    def calls(*kinds: str) -> list[dict[str, Any]]:
        return [call(entry) for entry in entries if entry.kind in kinds]

    def c_place(slot: Slot) -> str:
        return slot.name + ("" if slot.scalar else "[0]" * len(slot.shape))

    return {
        "steps": plan.steps,
        "stride": plan.stride,
        "samples": plan.samples,
        "moved": plan.moved,
        "turned": plan.turned,
        "rows": len(plan.centers),
        "width": plan.centers.shape[1],
        "number": printer.type(Index) if int16 else printer.real,
        "centers": listed(plan.centers),
        "sizes": listed(plan.sizes),
        "halvings": plan.halvings,
        "label_size": number(plan.label_size, precision),
        "label_halvings": plan.label_halvings,
        "label": label,
        "outputs": spec.outputs,
        "classes": len(spec.label.classes or ()),
        "zero": number(0, precision),
        "made_up": printer.name(made_up_number(spec).name),
        "buffers": [
            {
                "name": arrays[scalar],
                "type": printer.type(scalar),
                "count": count,
                "zero": number(0, precision) if scalar is Real else "0",
            }
            for scalar, count in buffers(spec).items()
        ],
        "refused": refused(np.dtype(np.int16)) if int16 else largest,
        "refused_label": "(-2147483647 - 1)" if int16 else largest,
        "between": [(calls(kind), list(map(int, samples))) for kind, samples in between(spec).items()],
        "completes": spec.completes,
        "readings": calls("reading"),
        "visits": calls("visit"),
        "switches": calls("switch"),
        "gathers": calls("gather"),
        "labels": calls("label"),
        "updates": calls("update"),
        "actions": calls(*ACTIONS),
        "guards": [
            ([call(e) for e in refusing], [c_place(s) for s in counts]) for refusing, counts in guards(spec, layout)
        ],
        "numbers": [(c_place(slot), math.prod(slot.shape) if slot.shape else 1) for slot in numbers],
        "damage": number(DAMAGE, precision) if numbers else "",
        "wrong": WRONG,
        "struck": [call(entry) for entry in struck(spec)],
        "restarts": any(entry.name == "restart" for entry in entries),
        "kind": {kind.name.lower(): int(kind) for kind in Kind},
        "kinds": KINDS,
        "close": CLOSE,
        "middle": MIDDLE,
        "offset": OFFSET,
        "prime": PRIME,
    }
