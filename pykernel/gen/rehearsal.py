"""The self-test's sequence of calls: every public function of a model is called on pseudo-random samples.

``run`` makes the calls on the host, and the template ``selftest.c`` makes the same calls in C.  ``Calls`` defines the
calls.  The status and the outputs of each call, and the final state, are hashed into one number.  The self-test passes if
it computes the same number as ``run``.

The samples are numbers of a fixed pseudo-random sequence, at different distances from a center; see ``Kind``.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.dialect import Index, Layout, Memory, Real, Slot
from pykernel.dialect.program import Entry, Settings
from pykernel.engine.engines import make_executor
from pykernel.host.identity import made_up_number, specialised
from pykernel.host.model import HostModel
from pykernel.language.c_text import number, rows_of
from pykernel.language.ir import Call, Field, If, Member, Return, walk
from pykernel.language.print_c import Printer
from pykernel.spec.family import REHEARSAL_LIMIT, affordable
from pykernel.spec.model import Spec

ACTIONS = ("training", "action")
"""Kinds of entries that the self-test calls as actions."""
KINDS = 16
FAR, CLOSE, MIDDLE = 4, 2, 12
"""How many times the distance from a center is halved between two kinds of samples (docs/decisions.md, "The self-test").
FAR: from outlying to usual samples.  CLOSE: from usual samples to those of a narrow cluster.  MIDDLE: from outlying samples to those at the
center."""
ROWS = 4
"""Largest number of centers, apart from the last center."""
MOVED = 4
"""Without a signal stage: the distance between the first and the last center, in each number of a sample, in units of
the sizes for usual samples (see ``_places``)."""
DAMAGE = 2.0**40
"""The number with which the model's numbers are overwritten, so that the code that enforces limits runs.  A product of
three such numbers stays within float32."""


class Kind(IntEnum):
    """The kind of a sample: the number of its step, modulo 16.

    The kinds 8 to 11 form a narrow cluster.  Kinds that are not listed are usual samples.
    """

    GATHERED = 1  # for this and the next sample, separate calls take the sample and its label
    MIDDLE = 3
    PARTLY = 4  # if the model fills in missing inputs: one input is missing
    ASKED = 5  # all questions are asked about this sample before it is learned
    REPEATED = 6  # repeats the sample before it; the second sample of the sequence also repeats the first
    EMPTY = 7  # if the model fills in missing inputs: all inputs are missing
    NARROW = 8
    VISITED = 10
    OUTLYING = 12
    READ = 13  # all questions and all readings are called
    REFUSED = 14  # an input is beyond its limit
    MISLABELLED = 15  # the label is beyond its limit, or not a class


GIVEN = {
    "training": (),
    "visit": ("sample", "label"),
    "question": ("sample", "answer"),
    "reading": ("answer",),
    "gather": ("sample",),
    "promise": ("sample",),
    "label": ("label",),
    "update": ("sample", "label"),
    "action": (),
    "switch": ("off",),
}
"""Kind of entry -> its arguments: the sample, the sample's label, a switch's setting, or memory for the answer.  Entries that are
called together are called in the order of their kinds in this mapping."""


@dataclass(frozen=True)
class Sequence:
    """The part of the sequence that depends on the model.

    steps: number of samples that the rule sees.  stride: raw samples per step.
    centers: (rows, numbers of a sample).  sizes: about twice the largest distances from a center.
    halvings: how many times ``sizes`` is halved for a usual sample.  label_halvings: how many times ``label_size`` is halved.
    moved: the first step whose samples are around the last center.  back: the first later step whose samples are around the other
    centers again.
    """

    steps: int
    stride: int
    centers: np.ndarray
    sizes: np.ndarray
    halvings: int
    label_size: Any
    label_halvings: int
    moved: int
    back: int

    @property
    def samples(self) -> int:
        return self.steps * self.stride

    @property
    def turned(self) -> int:
        """The step at which all actions except the first are called; it follows an outlying sample."""
        return self.steps // 2 // KINDS * KINDS + Kind.READ


@dataclass(frozen=True)
class Calls:
    """Bit masks of the entries that are called at each point of the sequence.

    Bit i of a mask is for entry i.  The next bit is for the state's hash, and the two bits after it set a switch to 1 or to -1.
    kinds: calls with a sample of each kind.  events: (step, calls before the calls for the sample's kind).
    guards: calls with an impossible count in a field.  struck: calls with overwritten numbers.  last: calls at the end.
    learn: entries that learn a sample.  With a signal stage, only these are called for the second and later raw samples
    of a step.
    """

    entries: tuple[Entry, ...]
    kinds: tuple[int, ...]
    events: tuple[tuple[int, int], ...]
    guards: tuple[tuple[Slot, int], ...]
    struck: int
    last: int
    learn: int

    @property
    def hashed(self) -> int:
        return 1 << len(self.entries)


def calls_of(spec: Spec, layout: Layout, plan: Sequence) -> Calls:
    entries = sorted(spec.program.entries_for(spec.config), key=lambda entry: list(GIVEN).index(entry.kind))

    def of(*kinds: str) -> int:
        return sum(1 << i for i, entry in enumerate(entries) if entry.kind in kinds)

    restart = sum(1 << i for i, entry in enumerate(entries) if entry.name == "restart")
    actions = of(*ACTIONS) & ~restart
    untimely = of("training") | restart | sum(1 << i for i, e in enumerate(entries) if e.name in spec.program.between)
    asked: dict[int, int] = {
        Kind.ASKED: of("question"),
        Kind.VISITED: of("visit"),
        Kind.READ: of("question", "reading"),
    }
    asked |= {Kind.REFUSED: of("visit", "question", "reading"), Kind.MISLABELLED: of("visit")}
    if spec.completes:
        asked |= {Kind.PARTLY: of("question"), Kind.EMPTY: of("question")}
    learn: dict[int, int] = (
        dict.fromkeys((Kind.GATHERED, Kind.GATHERED + 1), of("gather", "label")) if of("gather") else {}
    )
    learns = of("gather", "label", "update")
    begun = actions | of("visit", "reading")  # these are called before the model learns the sample
    events = [(0, begun), (plan.steps // 2, begun), (plan.steps - 1, begun)]
    # all actions except the first: after the first action, the rest would do nothing
    events.append((plan.turned, actions & (actions - 1)))
    answers = [1 << i for i, entry in enumerate(entries) if entry.answers]
    if answers:
        # an outlying row is rejected, comes again, and is accepted; other rows become normal until there is no room for a regime
        first = -(-plan.back // KINDS) * KINDS
        events += [(first + Kind.OUTLYING, calls) for calls in (of("update"), answers[1])]
        events += [(step, answers[0]) for step in range(first + Kind.READ, plan.steps, KINDS)]
    if of("promise"):
        # samples at the end whose labels are promised for later: some labels come, some never come, and an input is refused
        last = -(-plan.moved // KINDS) * KINDS
        promised = (
            last + at for at in (1, 2, Kind.REFUSED, Kind.MISLABELLED, KINDS + Kind.MISLABELLED, 2 * KINDS + Kind.READ)
        )
        events += [(step, of("promise")) for step in promised if step < plan.steps]
    on = 2 << len(entries)
    for entry in entries:
        if entry.kind == "switch":
            switch, update = 1 << entries.index(entry), of("update")
            events += [(plan.steps // 4, calls) for calls in (switch | 2 * on, switch | update | on, switch)]
    return Calls(
        entries=tuple(entries),
        kinds=tuple(asked.get(kind, 0) | learn.get(kind, of("update")) for kind in range(KINDS)),
        events=tuple(event for event in events if event[1]),
        guards=tuple(
            (slot, sum(1 << entries.index(entry) for entry in refusing))
            for refusing, counts in guards(spec, layout)
            for slot in counts
        ),
        struck=(1 << len(entries)) - 1 & ~untimely,
        last=of(*ACTIONS) | (2 * restart and 1 << len(entries)),
        learn=learns,
    )


def sequence(spec: Spec) -> Sequence:
    """Return the sequence for a model.  The distance between usual samples is about the kernel's length scale."""
    real = spec.real
    centers, largest, usual = _places(spec)
    halvings = min(10, max(0, round(math.log2(float(np.max(largest / usual))))))
    label = min(16.0, 2 * spec.label_max_abs) if spec.program.label_kind in ("real", "reals") else 1.0
    label_halvings = max(0, round(math.log2(label)))
    steps, tail, answered = _steps(spec)
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
    return Sequence(steps, spec.stride, centers, sizes, halvings, size, label_halvings, steps - tail, steps - answered)


def _places(spec: Spec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays in the data's units: the centers, of shape (rows, numbers of a sample); ``Sequence.sizes``; and
    the sizes for usual samples.  The last two have the shape (numbers of a sample,).
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


def _steps(spec: Spec) -> tuple[int, int, int]:
    """Return three counts of samples: all samples that the rule sees; the samples from the first one around the last center
    to the end; and the samples at the very end, during which alarms are answered.
    """
    config = spec.config
    waits = getattr(config, "warmup", 0) + (getattr(spec.input, "warmup", 0) if spec.standardises else 0)
    most = max(2 * KINDS, REHEARSAL_LIMIT // (2 * spec.numbers))
    components = getattr(spec.learning, "components", 0)
    answered = (min(8, components) + 3) * KINDS if components else 0
    # if it takes too many rows until an alarm becomes normal, the sequence ends before that
    lasting = getattr(config, "relearn_after", 0) * 5 // 4
    tail = min(3 * KINDS + (lasting if lasting <= most else 0) + answered, most)
    rehearsed = getattr(config, "rehearsed", 0)
    if spec.program.trainings and (rows := getattr(spec.learning, "samples", None)):  # the samples are collected first
        rehearsed = affordable(rows + KINDS, lambda m: 4 * min(m, rows) ** 3)
    return max(2 * KINDS, rehearsed + min(waits, most) + KINDS) + tail, tail, answered


def armed(spec: Spec, layout: Layout, plan: Sequence) -> list[tuple[int, str, Any]]:
    """Return (step, field, value) for each field that the self-test advances, because the sequence is too short for it."""
    soon = {name: given for struct in spec.program.persistent for name, given in struct.soon.items()}
    steps = {"commissioning": (plan.moved, getattr(spec.config, "commissioning", 0))}
    found = [(slot.name, soon[slot.name]) for slot in layout.slots if slot.name in soon]
    return [(step, name, value) for name, end in found for step, value in [steps.get(end, (2 * KINDS, end))]]


# ------------------------------------------------------------------------------------------------------- on the host


class _Run:
    def __init__(self, spec: Spec, drop: tuple[str, ...]) -> None:
        self.spec, self.program, self.plan = spec, spec.program, sequence(spec)
        self.model = HostModel(spec, drop)
        self.layout = self.model.memory.layout
        self.calls = calls_of(spec, self.layout, self.plan)
        self.label = _label_kind(spec)
        self.kernel = made_up_number(spec)
        nothing = Memory((), self.model.memory.precision, {})
        self.numbers = make_executor([self.kernel], nothing, Settings({}), self.model.engine)
        self.checksum, self.seed = 0, 1
        self.x = np.zeros(spec.width, spec.real.dtype)
        self.y: Any = np.zeros(spec.outputs, self.program.label_dtype(spec.real))
        self.answer = bytearray(answer_bytes(spec))

    def add_to_checksum(self, data: Any) -> None:
        self.checksum = zlib.crc32(data, self.checksum)

    def call(self, calls: int) -> None:
        """Call the entries whose bits are set."""
        on = calls // self.calls.hashed
        labels = [] if self.label == "none" else [self.y if self.label == "reals" else self.y[0]]
        for i, entry in enumerate(self.calls.entries):
            if calls >> i & 1:
                scalar, count = _answer(self.spec, entry)
                answer = [np.frombuffer(self.answer, _dtype(scalar, self.spec), count)] if count else []
                known = {"sample": [self.x], "label": labels, "off": [(on >> 1 & 1) - (on >> 2)], "answer": answer}
                given = [value for what in GIVEN[entry.kind] for value in known[what]]
                self.add_to_checksum(np.int32(self.model.executor.call(entry.kernel, *given)))
                self.add_to_checksum(self.answer)
        if on & 1:
            memory = self.model.memory.bytes[: self.program.hashed_bytes(self.layout)]
            self.add_to_checksum(np.uint32(zlib.crc32(memory)))
            self.add_to_checksum(self.answer)

    def random(self) -> int:
        self.seed = (self.seed * 75 + 74) % 65537
        return self.seed

    def made_up(self, center: Any, size: Any, halvings: int) -> Any:
        return self.numbers.call(self.kernel, center, size, halvings, self.random())

    def sample(self, kind: int, moved: bool = False) -> None:
        plan, classes = self.plan, len(self.spec.label.classes or ())
        center = plan.centers[-1 if moved else self.seed % (len(plan.centers) - 1)]
        far = distances(plan)[kind]
        for j in range(len(self.x)):
            self.x[j] = self.made_up(center[j], plan.sizes[j], far)
        if self.label in ("real", "reals"):
            for o in range(len(self.y)):
                self.y[o] = self.made_up(
                    self.y.dtype.type(0), plan.label_size, far + plan.label_halvings - plan.halvings
                )
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

    def run(self) -> int:
        plan, calls = self.plan, self.calls
        last = self.seed
        if not self.program.is_int16:
            self.add_to_checksum(_sound_arithmetic(self.spec))
        for t in range(plan.samples):
            n, kind = t // plan.stride, t // plan.stride % KINDS
            if kind == Kind.REPEATED or n == 1:
                self.seed = last
            last = self.seed
            self.sample(kind, plan.moved <= n < plan.back)
            if t % plan.stride == 0:
                for step, name, value in armed(self.spec, self.layout, plan):
                    if n == step:
                        self.model.memory.field(name)[:] = value
                for at, called in calls.events:
                    if at == n:
                        self.call(called)
            self.call(calls.kinds[kind] & (calls.learn if t % plan.stride else -1))
        self.call(calls.hashed)
        for slot, refusing in calls.guards:
            self.strike(slot, WRONG, refusing)
        counted, slots = self.checksum, overwritten(self.spec, self.layout)
        for every in (False, True):
            for slot in slots:
                if every:
                    self.model.memory.field(slot.name)[:] = DAMAGE
                self.strike(slot, damage(self.spec), calls.struck)
        # results with overwritten numbers are not hashed, because floating-point libraries differ
        self.checksum = counted
        self.call(calls.last)
        return self.checksum

    def strike(self, slot: Slot, value: int, calls: int) -> None:
        """Overwrite the highest byte of a field's first number, call entries with two new samples, and restore the byte."""
        numbers = self.model.memory.field(slot.name).reshape(-1)
        at, numbers = numbers.itemsize - 1, numbers.view(np.uint8)
        old, numbers[at] = numbers[at], value
        for _ in range(2):
            self.sample(0)
            self.call(calls)
        numbers[at] = old


def _label_kind(spec: Spec) -> str:
    """Return the kind of the labels in the sequence; "none" if nothing is learned."""
    return spec.program.label_kind if spec.program.learns else "none"


def distances(plan: Sequence) -> list[int]:
    """Return, for each kind of sample, the number of times that ``sizes`` is halved.  For a label, ``label_size`` is halved
    ``label_halvings - halvings`` times more.
    """
    other: dict[int, int] = {Kind.OUTLYING: 0, Kind.MIDDLE: MIDDLE}
    other |= dict.fromkeys(range(Kind.NARROW, Kind.OUTLYING), plan.halvings + CLOSE)
    return [other.get(kind, plan.halvings) for kind in range(KINDS)]


def _sound_arithmetic(spec: Spec) -> np.ndarray:
    """Return the results that IEEE arithmetic gives for the sums in ``runtime_c/arithmetic.h``."""
    one, step = spec.real.real(1), np.finfo(spec.real.dtype).eps
    return np.array([0, 2 * (one + 2 * step)] * 8 + [0, 0, one + step], spec.real.dtype)


def refused(dtype: np.dtype) -> Any:
    """Return a number that every model refuses as an input or a label; for integers, the smallest number of the type."""
    return np.iinfo(dtype).min if dtype.kind == "i" else np.finfo(dtype).max


WRONG = 255
"""A value of the highest byte that makes every count invalid: a signed count becomes negative, an unsigned count too large."""


def damage(spec: Spec) -> int:
    """Return the highest byte of DAMAGE."""
    return int(spec.real.real(DAMAGE).reshape(1).view(np.uint8)[-1])


def overwritten(spec: Spec, layout: Layout) -> list[Slot]:
    """Return the persistent fields of reals that the C code has.

    Fields of a signal stage are left out, because with other numbers the stage could divide by zero.
    """
    own = {struct.__name__ for struct in spec.program.persistent[0 if spec.signal is None else 1 :]}
    return [slot for slot in layout.slots if slot.array.scalar is Real and slot.struct in own]


def guards(spec: Spec, layout: Layout) -> list[tuple[tuple[Entry, ...], list[Slot]]]:
    """Return pairs (functions, fields): these functions refuse a memory in which one of these counts or positions is out of range.

    A count that a function does not check is not overwritten for this function, because the function could divide by it.
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
    slots_of: dict[tuple[Entry, ...], list[Slot]] = {}
    persistent = {struct.__name__ for struct in spec.program.persistent}
    for slot in layout.slots:
        if slot.array.scalar.value is Index and slot.struct in persistent:
            slots_of.setdefault(tuple(e for e, names in looking.items() if slot.name in names), []).append(slot)
    slots_of.pop((), None)
    return list(slots_of.items())


def _refuses_state(statement: Any) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(statement, Return) and isinstance(value, Member) and value.value.name == "REFUSED_STATE"


def _dtype(scalar: Any, spec: Spec) -> np.dtype:
    return np.dtype(scalar.dtype(spec.real))


def answer_bytes(spec: Spec) -> int:
    """Return the size of the longest output in bytes."""
    answers = (_answer(spec, entry) for entry in spec.program.entries_for(spec.config))
    return max((count * _dtype(scalar, spec).itemsize for scalar, count in answers if count), default=0)


def _answer(spec: Spec, entry: Entry) -> tuple[Any, int]:
    """Return the type and the number of the values that a call writes; None and 0 if the call writes no values."""
    if "answer" not in GIVEN[entry.kind]:
        return None, 0
    kind = spec.program.written(entry.name)
    return kind.scalar, int(kind.shape(spec.capacities)[0])


def run(spec: Spec, drop: tuple[str, ...]) -> int:
    """Run the sequence on the host, and return the number that the self-test must compute."""
    return _Run(spec, drop).run()


# ------------------------------------------------------------------------------------------------------------- in C


def context(spec: Spec, printer: Printer, layout: Layout) -> dict[str, Any]:
    """Return the context of the template ``selftest.c``."""
    plan = sequence(spec)
    samples = _of_samples(spec, printer, plan)
    return samples | _of_calls(spec, printer, layout, plan, samples) | _of_damage(spec, layout)


def _of_samples(spec: Spec, printer: Printer, plan: Sequence) -> dict[str, Any]:
    """Return the template's context about the samples."""
    precision, int16, label, width = spec.real, spec.program.is_int16, _label_kind(spec), plan.centers.shape[1]
    largest = f"{'FLT' if printer.real == 'float' else 'DBL'}_MAX"
    outputs = spec.outputs if label in ("real", "reals") else 0
    # labels that are reals are generated after their sample, like additional numbers of the sample
    behind = outputs if not int16 else 0
    places = np.pad(np.vstack([plan.centers, plan.sizes]), ((0, 0), (0, behind)))
    places[-1, width:] = plan.label_size
    alike = bool((places == places[:, :1]).all())
    return {
        "stride": plan.stride,
        "samples": plan.samples,
        "moved": f"n >= {plan.moved}" if plan.back == plan.steps else f"(n >= {plan.moved}) && (n < {plan.back})",
        "rows": len(plan.centers),
        "width": width,
        "number": printer.type(Index) if int16 else printer.real,
        "alike": alike,
        "places": rows_of([number(value, precision) for value in places[:, : 1 if alike else None].reshape(-1)]),
        "columns": width + behind,
        "halvings": ", ".join(map(str, distances(plan))),
        "label_size": number(plan.label_size, precision),
        "label_more": plan.label_halvings - plan.halvings,
        "label": label,
        "label_at": f"t->x[{width}]" if behind else "t->y[0]",
        "behind": behind,
        "outputs": outputs,
        "classes": len(spec.label.classes or ()),
        "made_up": printer.name(made_up_number(spec).name),
        "refused": refused(np.dtype(np.int16)) if int16 else largest,
        "refused_label": "(-2147483647 - 1)" if int16 else largest,
        "completes": spec.completes,
        "at": unsigned(plan.steps),
        "kind": {kind.name.lower(): int(kind) for kind in Kind},
        "kinds": KINDS,
    }


def _of_calls(
    spec: Spec, printer: Printer, layout: Layout, plan: Sequence, samples: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the template's context about the calls with these samples."""
    calls, label, label_at = calls_of(spec, layout, plan), samples["label"], samples["label_at"]
    switched = f"(calls >> {len(calls.entries) + 1})"
    off = f"(int32_t)({switched} & 1u) - (int32_t)({switched} >> 1)"
    arguments = {"sample": "t->x", "label": label_at, "off": off, "answer": "t->told.answer"}
    if label in ("none", "reals"):
        arguments["label"] = {"none": ""}.get(label, f"&{label_at}" if samples["behind"] else "t->y")
    answers = [_answer(spec, entry) for entry in calls.entries]
    kinds = {printer.type(scalar): scalar for scalar, count in answers if count}
    texts = []
    for entry, (scalar, _) in zip(calls.entries, answers, strict=True):
        member = f".{MEMBERS[printer.type(scalar)]}" if scalar is not None and len(kinds) > 1 else ""
        named = [
            arguments[what] + (member if what == "answer" else "") for what in GIVEN[entry.kind] if arguments[what]
        ]
        texts.append(f"{spec.name}_{entry.name}({', '.join(['t->s', *named])})")
    lengths = {kind: answer_bytes(spec) // _dtype(scalar, spec).itemsize for kind, scalar in kinds.items()}
    return {
        "answers": [(kind, MEMBERS[kind], length) for kind, length in lengths.items()],
        "calls": texts,
        "told": 4 + answer_bytes(spec),
        "asked": ", ".join(f"0x{mask:X}" for mask in calls.kinds),
        "events": calls.events,
        "armed": [
            (step, name, value if isinstance(value, int) else number(value, spec.real))
            for step, name, value in armed(spec, layout, plan)
        ],
        "guards": [(slot.name, slot.array.scalar.dtype(spec.real).itemsize - 1, mask) for slot, mask in calls.guards],
        "place": unsigned(layout.nbytes),
        "struck": calls.struck,
        "last": calls.last,
        "learn": calls.learn,
        "hashed": calls.hashed,
        "asked_type": unsigned(max(calls.kinds)),
        "mask": unsigned(max((event[1] for event in calls.events), default=0)),
        "guard_mask": unsigned(max((mask for _, mask in calls.guards), default=0)),
    }


def _of_damage(spec: Spec, layout: Layout) -> dict[str, Any]:
    """Return the template variables that describe the overwritten numbers.

    numbers: how many numbers are in each field; a negative entry is a gap of this many numbers between fields.
    """
    numbers, end = [], 0
    for slot in overwritten(spec, layout):
        skipped = (end - slot.offset) // spec.real.dtype.itemsize
        numbers += [skipped, math.prod(slot.shape)] if skipped else [math.prod(slot.shape)]
        end = slot.offset + slot.nbytes
    return {
        "numbers": rows_of(list(map(str, numbers))),
        "fields": len(numbers),
        "gaps": any(n < 0 for n in numbers),
        "count": unsigned(2 * max(map(abs, numbers), default=0)).removeprefix("u"),
        "damage": number(DAMAGE, spec.real) if numbers else "",
        "wrong": WRONG,
        "damaged": damage(spec) if numbers else 0,
        "real_bytes": spec.real.dtype.itemsize,
    }


MEMBERS = {"float": "reals", "double": "reals", "int32_t": "integers", "int16_t": "counts"}
"""C type of an output -> the member of the union of outputs."""


def unsigned(most: int) -> str:
    """Return the narrowest unsigned C type that holds a number."""
    return next(f"uint{bits}_t" for bits in (8, 16, 32) if most < 1 << bits)
