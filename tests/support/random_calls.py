"""Every function of a model, in random order, with hostile samples: the same on the host and in C.

``random_calls`` makes them up, ``trace`` carries them out on a HostModel or a CModel, and ``first_difference`` says where
two traces part.  ``broken_promise`` is what no call may do, whatever it is given.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pykernel.dialect import Index, Real
from pykernel.dialect.program import taken_by
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import same_numbers
from pykernel.gen.context import SNAPSHOT_STATUSES
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec


@dataclass(frozen=True)
class Call:
    name: str
    kind: str  # learn, gather, label, ask, read, act, switch, save, load, reset
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    number: int = 0

    def __str__(self) -> str:
        given = [str(v.tolist()) for v in (self.x, self.y) if v is not None]
        return f"{self.name}({', '.join(given) or self.number})"


@dataclass(frozen=True)
class Result:
    status: int
    answer: np.ndarray
    memory: int  # CRC-32 of all of it
    state: int  # of the model, without its working memory
    sound: bool  # whether the model's numbers are finite


class Samples:
    """Inputs and labels of one spec: smooth, repeated, at and beyond every limit, and what is no number."""

    def __init__(self, spec: Spec, rng: np.random.Generator) -> None:
        self.spec, self.rng = spec, rng
        self.label = spec.program.label_array(spec.capacities)
        self.kind = np.dtype(np.float32) if spec.program.is_int16 else spec.real.dtype
        self.told = spec.program.label is not None and spec.program.learns
        self.seen: list[np.ndarray] = []
        self.width = spec.width
        self.limit = spec.input_max_abs if spec.signal is None else spec.signal.most
        self.center, self.step = np.zeros(self.width), 0.5

    def x(self) -> np.ndarray:
        rng, spec = self.rng, self.spec
        limit, how = self.limit, rng.random()
        scale = min(spec.length_scale, limit / 3)
        if rng.random() < 0.02:  # another place, and another spread
            self.center = rng.uniform(-1, 1, self.width) * min(limit, 10.0 ** rng.uniform(-1, 3) * scale)
            self.step = 10.0 ** rng.uniform(-3, 0.7)
        row = self._row(how, scale)
        with np.errstate(over="ignore"):
            row = row.astype(self.kind)
            if how > 0.97:
                row[rng.integers(self.width)] = self._no_number(limit)
        self.seen = [*self.seen[-30:], row]
        return np.asarray(spec.raw_inputs(row)[0] if spec.program.is_int16 else row)

    @np.errstate(over="ignore", invalid="ignore")
    def _row(self, how: float, scale: float) -> np.ndarray:
        rng, spec, limit = self.rng, self.spec, self.limit
        row = self.center + rng.normal(size=self.width) * scale * self.step
        if how < 0.25 and self.seen:
            row = self.seen[int(rng.integers(len(self.seen)))].astype(float)
            if how < 0.08:
                row = row * (1 + 10.0 ** rng.uniform(-7, -2))
        elif how < 0.32:
            row = np.round(row / scale) * scale
        elif how < 0.36:
            row = rng.choice([-limit, limit, 0.0, -0.0], self.width)
        elif how < 0.40:
            row = rng.uniform(-1, 1, self.width) * 10.0 ** rng.uniform(-40, 0) * limit
        # as the kernel sees it, or as it comes
        if how < 0.25 or (how < 0.36 and rng.random() < 0.5):
            return np.asarray(row)
        return np.asarray(row if spec.signal is not None else spec.unscaled(row))

    def y(self) -> np.ndarray:
        rng, spec, limit = self.rng, self.spec, self.spec.label_max_abs
        if not self.told:
            return np.zeros((0,), spec.real.dtype)
        if self.label.is_class:
            classes = len(spec.label.classes or ())
            wrong = rng.choice([-1, classes, -(2**31), 2**31 - 1])
            return np.array(wrong if rng.random() < 0.03 else rng.integers(classes), np.int32)
        how, shape = rng.random(), self.label.shape
        y = rng.normal(size=shape) * min(1.0, limit / 4)
        if how < 0.1:
            y = np.array(rng.choice([-limit, limit, 0.0], shape))
        elif how < 0.2:
            y = y * 10.0 ** rng.uniform(-30, 0)
        elif how < 0.3:
            y = rng.uniform(-limit, limit, shape)
        with np.errstate(over="ignore"):
            y = np.array(y, self.kind)
            if how > 0.97:
                y[...] = self._no_number(limit)
        return np.asarray(spec.raw_labels(y)) if spec.program.is_int16 else y

    def _no_number(self, limit: float) -> float:
        kind = self.kind
        largest, least = np.finfo(kind).max, np.finfo(kind).smallest_subnormal
        beyond = np.nextafter(np.asarray(limit, kind), np.asarray(np.inf, kind))
        return float(self.rng.choice([np.nan, np.inf, -np.inf, largest, -largest, least, -least, beyond, -beyond]))


def random_calls(spec: Spec, rng: np.random.Generator, count: int) -> list[Call]:
    """Mostly update; in between everything else that the model has."""
    program, samples = spec.program, Samples(spec, rng)
    names = [entry.name for entry in program.entries_for(spec.config)]
    kind_of = {entry.name: entry.kind for entry in program.entries}
    calls = []
    for _ in range(count):
        name = str(rng.choice(names))
        if program.learns and rng.random() < 0.75:
            name = program.learner
        if program.persistent and rng.random() < 0.03:
            kind = str(rng.choice(["save", "save", "load", "reset"], p=[0.4, 0.25, 0.3, 0.05]))
            calls.append(Call(kind, kind, number=int(rng.integers(1 << 30))))
            continue
        kinds = taken_by(program.entry(name))
        if name in program.questions:
            calls.append(Call(name, "ask", samples.x()))
        elif kind_of[name] == "gather":
            calls.append(Call(name, "gather", samples.x()))
        elif kind_of[name] == "label":
            calls.append(Call(name, "label", y=samples.y()))
        elif name in (program.learner, *program.visits):
            calls.append(Call(name, "learn", samples.x(), samples.y()))
        elif name in program.readings:
            calls.append(Call(name, "read"))
        elif kinds == [Index]:
            calls.append(Call(name, "switch", number=int(rng.choice([0, 0, 0, 1, -1, 2**31 - 1, -(2**31)]))))
        else:
            assert kinds == [], f"no way is known to call {name}"
            calls.append(Call(name, "act"))
    return calls


def trace(model: HostModel | CModel, calls: Sequence[Call]) -> list[Result]:
    """Carry the calls out."""
    saved: list[bytes] = []
    persistent = {struct.__name__ for struct in model.spec.program.persistent}
    reals = [s.name for s in model.memory.layout.slots if s.struct in persistent and s.array.scalar is Real]
    end, results = model.spec.program.state_bytes(model.memory.layout), []
    for call in calls:
        status, answer = _carry_out(model, call, saved)
        sound = all(np.isfinite(model.memory.field(name)).all() for name in reals)
        results.append(
            Result(status, answer, zlib.crc32(model.memory.bytes), zlib.crc32(model.memory.bytes[:end]), sound)
        )
    return results


def _carry_out(model: HostModel | CModel, call: Call, saved: list[bytes]) -> tuple[int, np.ndarray]:
    nothing = np.zeros(0)
    if call.kind == "ask":
        answers, statuses = model.ask(call.name, call.x[None])  # type: ignore[index]
        return int(statuses[0]), answers[0]
    if call.kind == "learn":
        return int(model.visit(call.name, call.x[None], call.y[None])[0]), nothing  # type: ignore[index]
    if call.kind in ("gather", "label"):
        given = np.asarray(call.x if call.x is not None else call.y)
        if isinstance(model, HostModel) or not given.ndim:
            return int(model.call(call.name, given if given.ndim else given[()])), nothing
        c_type = {"<i2": "int16_t *", "<i4": "int32_t *", "<f4": "float *", "<f8": "double *"}[given.dtype.str]
        return int(model.call(call.name, model.pointer(given, c_type))), nothing
    if call.kind == "read":
        values, status = model.read(call.name)
        return int(status), values
    if call.kind in ("act", "switch"):
        return int(model.call(call.name, *([call.number] if call.kind == "switch" else []))), nothing
    if call.kind == "reset":
        model.call("reset") if isinstance(model, CModel) else model.reset()
        return 0, nothing
    if call.kind == "save":
        status, data = _save(model)
        saved += [data] if status == 0 else []
        return status, np.frombuffer(data, np.uint8)
    return (_load(model, saved[call.number % len(saved)]) if saved else 0), nothing


def _save(model: HostModel | CModel) -> tuple[int, bytes]:
    if isinstance(model, HostModel):
        try:
            return 0, snapshot.save(model)
        except UserError:
            return SNAPSHOT_STATUSES["SNAPSHOT_INVALID"][0], b""
    buffer = np.zeros(snapshot.snapshot_bytes(model.spec), np.uint8)
    status = int(model.call("save", model.pointer(buffer, "uint8_t *")))
    return status, buffer.tobytes() if status == 0 else b""


def _load(model: HostModel | CModel, data: bytes) -> int:
    if isinstance(model, HostModel):
        snapshot.load(model, data)
        return 0
    buffer = np.frombuffer(data, np.uint8).copy()
    return int(model.call("load", model.pointer(buffer, "uint8_t *")))


def broken_promise(spec: Spec, calls: Sequence[Call], results: Sequence[Result]) -> str | None:
    """The first call that did what none may: a number that is none, an unknown status, a refusal that changed something."""
    known = {int(s) for s in spec.program.status}
    before = state = None
    for i, (call, result) in enumerate(zip(calls, results, strict=True)):
        where = f"call {i}, {call}: status {result.status}"
        if not result.sound:
            return f"{where}; the model holds a number that is not finite"
        if result.status not in known | ({0} if call.kind in ("save", "load", "reset") else set()):
            return f"{where}, which is none"
        if call.kind in ("save", "load") and result.status != 0:
            return f"{where}; what was learned must be saved, and loaded again"
        answered = result.status >= 0 and call.kind in ("ask", "read")
        if answered and not np.isfinite(result.answer.astype(float)).all():
            return f"{where}; the answer is {result.answer.tolist()}"
        if call.kind == "save" and before is not None and before != result.memory:
            return f"{where}; saving changed the memory"
        if result.status < 0 and state not in (None, result.state):
            return f"{where}; a refusal changed the model"
        before, state = result.memory, result.state
    return None


def first_difference(calls: Sequence[Call], a: Sequence[Result], b: Sequence[Result]) -> str | None:
    """The first call after which two traces differ."""
    for i, (call, mine, other) in enumerate(zip(calls, a, b, strict=True)):
        if mine.status != other.status:
            return f"call {i}, {call}: status {mine.status} and {other.status}"
        if not same_numbers(mine.answer, other.answer):
            return f"call {i}, {call}: {mine.answer.tolist()} and {other.answer.tolist()}"
        if mine.memory != other.memory:
            return f"call {i}, {call}: the memory differs"
    return None
