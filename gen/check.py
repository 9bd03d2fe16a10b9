"""The check: one stream on the host and through the generated C, compared byte for byte."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pykernel.dialect import Memory
from pykernel.errors import CheckFailed, UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import Compiler, compile_c, compiler, find_compilers
from pykernel.gen.project import BROKEN_BUILD, Project, build, state_hash
from pykernel.host import HostModel
from pykernel.spec import Spec

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Report:
    """Result of a check: one row for each build, and the model's sizes."""

    ok: bool
    rows: list[dict[str, Any]]
    figures: dict[str, Any]
    statuses: dict[str, int] = field(default_factory=dict)


def mixed_stream(spec: Spec, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A stream that visits every path: smooth data, scales from 1e-20 to 1e20, repeats, constants, NaN and infinities.

    Returns inputs (samples, DIM) in the spec's precision and labels: numbers (samples,) or (samples, OUTPUTS), whose
    columns are correlated, or positions of classes (samples,), int32, of which a few are no class.
    """
    rng, own = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    dtype, dim, labels = spec.real.dtype, spec.dim, spec.program.label_array(spec.capacities)
    x = rng.normal(size=(samples, dim)) * min(2 * spec.scale / np.sqrt(dim), spec.input.limit / 4)
    y = np.sin(x.sum(1) / spec.scale) + 0.1 * rng.normal(size=samples)
    positions = _classes(y, len(spec.label.classes or ()), own)
    if labels.shape:
        directions = own.normal(size=(dim, *labels.shape)) / spec.scale
        y = y[:, None] * own.uniform(-1, 1, labels.shape) + 0.5 * np.sin(x @ directions)
    y *= min(1.0, spec.label.limit / 4)
    kind, when = rng.random(samples), np.arange(samples) / samples
    # of other scales late only: an isolated vector or a huge multiplier stays, and leaves less to do for what follows
    scale = 10.0 ** rng.uniform(-20, 20, samples)
    wild = (kind < 0.1) & (when > 0.6)
    x[wild] *= scale[wild, None]
    loud = (kind > 0.1) & (kind < 0.2) & (when > 0.8)
    y[loud] = (y[loud].T * scale[loud]).T
    lattice = (kind > 0.2) & (kind < 0.35)
    x[lattice] = np.round(x[lattice] / spec.scale) * spec.scale
    earlier = np.maximum(np.arange(samples) - rng.integers(1, 40, samples), 0)
    for low, high, factor in ((0.35, 0.41, 1.0), (0.41, 0.45, 1 + 1e-6), (0.45, 0.5, 1 + 1e-3)):
        near = np.flatnonzero((kind > low) & (kind < high))
        x[near] = x[earlier[near]] * factor
    x[samples // 2 : samples // 2 + samples // 1000] = x[samples // 2]
    with np.errstate(over="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    few = max(1, samples // 500)
    for values in (np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal):
        x[rng.integers(0, samples, few), rng.integers(0, dim)] = values
        rows = rng.integers(0, samples, few)
        y[(rows, *(own.integers(0, width, few) for width in labels.shape))] = values
    return x, positions if labels.is_class else y


def _classes(y: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Classes that follow y, some of them at random, and a few that are none."""
    positions = np.clip((y + 1.0) / 2.0 * count, 0, max(0, count - 1)).astype(np.int32)
    flipped = np.flatnonzero(rng.random(len(y)) < 0.05)
    positions[flipped] = rng.integers(0, max(1, count), len(flipped))
    for none in (-1, count, -(2**31), 2**31 - 1):
        positions[rng.integers(0, len(y), max(1, len(y) // 500))] = none
    return positions


def check(
    spec: Spec,
    memory: Memory | None = None,
    samples: int = 100_000,
    seed: int = 0,
    stream: tuple[np.ndarray, np.ndarray] | None = None,
    levels: Sequence[str] = ("-O0", "-O3"),
    compilers: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run a stream through Numba and through the C of every compiler found; compare state, statuses and predictions.

    memory: what the model has learned already; stream: (inputs, labels) in place of ``mixed_stream``.
    """
    if samples < 1:
        raise UserError(f"samples is {samples}; at least one is needed")
    say = progress or (lambda fraction, text: None)
    chosen = [compiler(name) for name in compilers] if compilers else list(find_compilers())
    say(0.0, "generating C")
    project = build(spec, memory)
    x, y = stream if stream is not None else mixed_stream(spec, samples, seed)
    x, y = np.ascontiguousarray(x, spec.real.dtype), np.ascontiguousarray(y, spec.program.label_dtype(spec.real))
    say(0.1, "simulating with Numba")
    reference = Reference(project, memory, x, y)
    builds = [(c, level) for c in chosen for level in levels]
    rows = []
    for i, (c, level) in enumerate(builds):
        say(0.3 + 0.7 * i / len(builds), f"{c} {level}")
        rows.append(reference.compare(c, level))
    say(1.0, "done")
    return reference.report(rows)


class Device(Protocol):
    """Generated C, wherever it runs."""

    memory: Memory

    def call(self, name: str) -> Any:
        """NAME_<name> on the model."""

    def run(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it: (predictions, statuses)."""

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What NAME_<question> writes for each row, (samples, values), and the statuses."""


class Reference:
    """The host's results on a stream: what every build of the C is compared with."""

    PARTS = 4  # with a refresh in between, where the model has one
    ASKED = 16  # rows of each part, spread over it, on which questions such as novelty are asked at its end

    def __init__(self, project: Project, memory: Memory | None, x: np.ndarray, y: np.ndarray) -> None:
        self.project, self.spec, self.x, self.y = project, project.spec, x, y
        self.start = memory
        self.has_refresh = any(e.name == "refresh" for e in self.spec.program.entries_for(self.spec.config))
        self.model = self.fresh_host()
        self.questions = [q for q in self.spec.program.questions if q != "predict" and self.model.has(q)]
        self.results = [self._advance(self.model, part) for part in self._parts()]
        self.hash = state_hash(self.spec, self.model.memory)

    def report(self, rows: list[dict[str, Any]]) -> Report:
        """The rows of all builds, with what they have in common."""
        names = {int(m): m.name.lower() for m in self.spec.program.status}
        learned = np.concatenate([part["update"] for part in self.results])
        counts = zip(*np.unique(learned, return_counts=True), strict=True)
        statuses = {names[int(status)]: int(count) for status, count in counts}
        hashes = {
            "state_hash": f"{self.hash:08x}",
            "stream_hash": f"{zlib.crc32(self.x.tobytes() + self.y.tobytes()):08x}",
        }
        return Report(all(row["equal"] for row in rows), rows, self.project.figures | hashes, statuses)

    def fresh_host(self) -> HostModel:
        model = HostModel(self.spec, self.project.drop)
        if self.start is not None:
            for struct in self.spec.program.persistent:
                for name in struct.fields:
                    model.memory.field(name)[...] = self.start.field(name)
        return model

    def _parts(self) -> list[slice]:
        edges = np.linspace(0, len(self.x), self.PARTS + 1).astype(int)
        return [slice(a, b) for a, b in itertools.pairwise(edges) if b > a]

    def _advance(self, model: HostModel | Device, part: slice) -> dict[str, np.ndarray]:
        """Predict and learn a part, refresh, ask; what the functions wrote and returned."""
        predictions, statuses = model.run(self.x[part], self.y[part])
        if self.has_refresh:
            if isinstance(model, HostModel):
                model.refresh()
            else:
                model.call("refresh")
        return {"predict": predictions, "update": statuses} | self._ask(model, part)

    def _ask(self, model: HostModel | Device, part: slice) -> dict[str, np.ndarray]:
        found = {}
        for question in self.questions:
            found[question], found[f"{question}'s status"] = model.ask(question, self.x[self._asked(part)])
        return found

    def _asked(self, part: slice) -> slice:
        step = max(1, (part.stop - part.start) // self.ASKED)
        return slice(part.start, min(part.stop, part.start + step * self.ASKED), step)

    def compare(self, c: Compiler, level: str, extra: Sequence[str] = (), **how: Any) -> dict[str, Any]:
        """One build's row; ``how`` goes to CModel."""
        row: dict[str, Any] = {"compiler": c.name, "version": c.version, "flags": level, "samples": len(self.x)}
        try:
            device = CModel(self.project, c, (level, *extra), **how)
            # what a firmware that does not save links
            core = [source for source in device.sources if source.name != f"{self.spec.name}_snapshot.c"]
            sizes = section_bytes(core, c, extra)
        except CheckFailed as error:
            return row | {"equal": False, "first_difference": str(error)}
        return row | sizes | self.verdict(device)

    def verdict(self, device: Device) -> dict[str, Any]:
        """Run the stream on a device of any kind: whether it ends with the host's bytes, and if not, what differs."""
        row = {"selftest": "broken build" if device.call("selftest") == BROKEN_BUILD else "passed"}
        device.call("init")
        results = [self._advance(device, part) for part in self._parts()]
        equal = (
            device.memory.bytes == self.model.memory.bytes
            and all(same_numbers(a[k], b[k]) for a, b in zip(self.results, results, strict=True) for k in a)
            and int(device.call("hash")) == self.hash
            and row["selftest"] == "passed"
        )
        hashed = f"{int(device.call('hash')):08x}"
        difference = None if equal else self.first_difference(device)
        return row | {"equal": equal, "state_hash": hashed, "first_difference": difference}

    def first_difference(self, device: Device) -> str:
        """The first update after which the runtimes differ, and where."""
        host = self.fresh_host()
        device.call("init")
        if (field_name := differing_field(host, device)) is not None:
            return f"before the first update, in {field_name}"
        for part in self._parts():
            for t in range(part.start, part.stop):
                row = slice(t, t + 1)
                (p, s), (q, u) = host.run(self.x[row], self.y[row]), device.run(self.x[row], self.y[row])
                if s[0] != u[0]:
                    return f"update {t}: status {s[0]} on the host, {u[0]} in C"
                if (field_name := differing_field(host, device)) is not None:
                    return f"update {t}: {field_name}"
                if not same_numbers(p, q):
                    return f"prediction {t}: {shown(p[0])} on the host, {shown(q[0])} in C"
            if self.has_refresh:
                host.refresh()
                device.call("refresh")
                if (field_name := differing_field(host, device)) is not None:
                    return f"refresh after update {part.stop - 1}: {field_name}"
            mine, found = self._ask(host, part), self._ask(device, part)
            for name in mine:
                for i, (a, b) in enumerate(zip(mine[name], found[name], strict=True)):
                    if not same_numbers(a, b):
                        where = f"row {range(part.stop)[self._asked(part)][i]} after update {part.stop - 1}"
                        return f"{name} of {where}: {shown(a)} on the host, {shown(b)} in C"
            if (field_name := differing_field(host, device)) is not None:
                return f"questions after update {part.stop - 1}: {field_name}"
        return "the self-test only"


def same_numbers(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits, but for NaN, which stands for "refused" here and whose payload means nothing."""
    a, b = np.asarray(a), np.asarray(b)
    return bool(np.array_equal(np.isnan(a), np.isnan(b))) and a[~np.isnan(a)].tobytes() == b[~np.isnan(b)].tobytes()


def shown(value: Any) -> str:
    """A number, or several, that read back to the same bits."""
    return repr(value) if np.ndim(value) == 0 else str(np.asarray(value).tolist())


def differing_field(host: HostModel, device: Device) -> str | None:
    """The first field whose bytes differ, with position and both values."""
    for slot in host.memory.layout.slots:
        a, b = host.memory.field(slot.name), device.memory.field(slot.name)
        if a.tobytes() != b.tobytes():
            at = next(i for i in np.ndindex(a.shape) if a[i].tobytes() != b[i].tobytes())
            place = "".join(f"[{i}]" for i in at) if not slot.scalar else ""
            return f"{slot.name}{place} is {a[at]!r} on the host, {b[at]!r} in C"
    return None


def section_bytes(sources: Sequence[Path], c: Compiler, extra: Sequence[str] = ()) -> dict[str, int]:
    """Bytes of code and of constants at -Os, for this machine's processor; empty where objects are not ELF."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    names = {"text_bytes": ".text", "rodata_bytes": ".rodata", "data_bytes": ".data", "bss_bytes": ".bss"}
    sizes = dict.fromkeys(names, 0)
    for source in sources:
        target = source.with_suffix(".o")
        compile_c(c, [source], target, (*extra, "-Os"), ("-c",))
        try:
            with target.open("rb") as file:
                sections = [(s.name, s["sh_size"]) for s in ELFFile(file).iter_sections()]
        except ELFError:
            return {}
        for key, start in names.items():
            sizes[key] += sum(size for name, size in sections if name == start or name.startswith(start + "."))
    return sizes
