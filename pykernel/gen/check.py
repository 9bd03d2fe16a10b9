"""Run one stream through the host model and through the generated C code, and compare their results byte for byte."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from pykernel.dialect import Memory
from pykernel.engine.choice import Engine, chosen_engine, engines_of_a_check
from pykernel.errors import CheckFailed
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import LEVELS, Compiler, compile_c, compiler, find_compilers, takes, write_sources
from pykernel.gen.context import BROKEN_BUILD
from pykernel.gen.project import Project, build, state_hash
from pykernel.gen.streams import near_halves, stream_of
from pykernel.host.model import HostModel
from pykernel.parallel import Threads, go_on
from pykernel.progress import told_late
from pykernel.spec.model import Spec

Progress = Callable[[float, str], None]
Tell = Callable[[str], None]
SAMPLES = 12_000
"""Default number of random samples: enough for a model to fill its budget, and then to replace vectors."""
Devices = Sequence[tuple[str, int]]
"""(name, number of rows) of each device, in the order in which the devices' rows follow each other in a stream."""
HASHED = "state's hash"
ONCE = slice(1)
"""``Step.rows`` of a call that takes no sample."""


@dataclass(frozen=True)
class Report:
    """Result of a check: one row for each build, and the model's sizes.

    engine: the engine that simulated the model.  ok: whether all builds and witnesses computed the same bytes as this
    engine.
    witnesses: for each other engine that ran the same stream, a row with the keys "engine", "equal" and
    "first_difference".
    """

    ok: bool
    rows: list[dict[str, Any]]
    figures: dict[str, Any]
    statuses: dict[str, int] = field(default_factory=dict)
    """Name of a status -> number of updates that returned this status; for a model that does not learn, number of predictions."""
    calls: dict[str, dict[str, int]] = field(default_factory=dict)
    """Name of an action, visit or reading -> name of a status -> number of calls that returned this status."""
    engine: str = ""
    witnesses: list[dict[str, Any]] = field(default_factory=list)


def check(
    spec: Spec,
    memory: Memory | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    stream: tuple[np.ndarray, np.ndarray] | None = None,
    levels: Sequence[str] = LEVELS,
    compilers: Sequence[str] | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    tell: Tell = lambda text: None,
    devices: Devices = (),
) -> Report:
    """Run a stream through the host model and through the C code built by each compiler, and compare states, statuses
    and outputs.

    memory: the state from which the model starts, if it has learned already.
    stream: (inputs, labels), which replaces ``mixed_stream``.  Without labels, the second element is None or an array
    of shape (samples, 0).
    levels: the compiler flags of each build.  The last default level is left out for compilers that do not accept its
    flags.
    compilers: names of the compilers.  If not given, all compilers that are found are used.
    progress: called with the fraction of the work that is done, from 0 to 1, and with the next step.  If not given,
    ``told_late`` shows the progress.
    engine: the only engine that simulates the model.  If not given, the first engine of ``engines_of_a_check`` simulates
    it, and each of the other engines is compared with the first one after all builds, as a witness.
    tell: called with a sentence for each verdict, as soon as it is known, and with a sentence before each witness runs.
    devices: see ``Reference``.
    """
    x, y = stream_of(spec, samples, seed, stream)
    chosen = [compiler(name) for name in compilers] if compilers else list(find_compilers())
    first, *others = [engine] if engine else engines_of_a_check()
    builds = [(c, level) for c in chosen for level in levels if level != LEVELS[-1] or takes(c, level)]

    def make(c: Compiler, level: str) -> CModel:
        """Compile the model.  The snapshot functions are compiled only at the first level, because the stream does not call them."""
        return CModel(project, c, tuple(level.split()), whole=level == levels[0])

    reporting = told_late() if progress is None else contextlib.nullcontext(progress)
    # compilers and streams have separate threads, so that compilers do not wait for a long stream
    with reporting as say, Threads() as compiling, Threads() as running:
        say(0.0, "generating C")
        project = build(spec, memory)
        say(0.1, f"simulating with {first}")
        # the first build starts before the others, so that they do not delay the first verdict
        made = [compiling.start(make, *built) for built in builds[:1]]
        reference = Reference(project, memory, x, y, first, devices)
        made += [compiling.start(make, *built) for built in builds[1:]]
        sizes = compiling.start(_sizes, project, chosen[0])
        run = [running.start(reference.of_build, *built, done.result) for built, done in zip(builds, made, strict=True)]
        for i, done in enumerate(concurrent.futures.as_completed(run)):
            tell(_told(done.result(), first))
            say(0.2 + 0.5 * (i + 1) / len(builds), "compiling C, and comparing")
        rows = [done.result() for done in run]
        witnesses = [reference.witness(other, say, tell) for other in others]
        say(0.9, "compiling C, for its sizes")
        _add_sizes(rows, chosen[0], sizes.result)
        say(1.0, "done")
    return reference.report(rows, witnesses)


def _told(row: dict[str, Any], engine: Engine) -> str:
    """Return a sentence with the verdict on a build."""
    found = (
        f"the same bytes as {engine}" if row["equal"] else f"NOT the same bytes as {engine}: {row['first_difference']}"
    )
    return f"{row['compiler']} {row['flags']}, {row['samples']:,} samples: {found}"


def _sizes(project: Project, c: Compiler) -> dict[str, int]:
    """Return the sizes of the C code without the snapshot functions, which a firmware needs only if it saves the model."""
    with tempfile.TemporaryDirectory(prefix="pykernel-") as folder:
        sources = write_sources(Path(folder), project.sources)
        return section_bytes([each for each in sources if each.name != f"{project.spec.name}_snapshot.c"], c)


def _add_sizes(rows: Sequence[dict[str, Any]], c: Compiler, measured: Callable[[], dict[str, int]]) -> None:
    """Add the measured sizes to those rows of a compiler that are equal to the host.  If the sizes cannot be measured,
    these rows count as different, with the error message as their difference.
    """
    equal = [row for row in rows if row["compiler"] == c.name and row["equal"]]
    try:
        found: dict[str, Any] = {**measured()}
    except CheckFailed as error:  # rows that already differ keep their message
        found = {"equal": False, "first_difference": str(error)}
    for row in equal:
        row |= found


class Device(Protocol):
    """Generated C that runs on the host, in an emulator or on a board; or a ``Host`` with another engine."""

    memory: Memory

    def call(self, name: str) -> Any:
        """Call NAME_<name> on the model."""

    def prequential(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it.  Returns (outputs, statuses).  If the main question is a reading, it is
        called after the row is learned.  If the model does not learn, the statuses are those of the predictions.
        """

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Call NAME_<question> for each row.  Returns two arrays: the answers, of shape (samples, values), and the statuses."""

    def visit(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Call NAME_<name> with each row and its label.  Returns the statuses."""

    def read(self, name: str) -> tuple[np.ndarray, int]:
        """Call NAME_<name>.  Returns the array of values that it writes, and its status."""


class Step(NamedTuple):
    """Calls to one function: a call for each row in ``rows``, or a single call without a sample.

    A step of the kind "learn" runs ``prequential``, "hash" reads the state's hash, and "init" resets the model.
    after: the end of an error message, such as " after update 99", which says when the calls were made.
    """

    kind: Literal["learn", "hash", "init", "action", "visit", "question", "reading"]
    name: str
    rows: slice = ONCE
    after: str = ""


class Result(NamedTuple):
    """The values and the statuses of a step's calls, and a checksum of the memory after these calls."""

    name: str
    values: np.ndarray
    statuses: np.ndarray
    memory: int


class Host(HostModel):
    """A model on the host that starts from the same state as the C code."""

    def __init__(self, project: Project, start: Memory | None, engine: Engine) -> None:
        super().__init__(project.spec, project.drop, engine, raw=True)
        if start is not None:
            self.memory.copy_from(start, self.spec.program.persistent)
        self._start = bytes(self.memory.bytes)

    def call(self, name: str, *args: Any) -> Any:
        if name == "init":
            self.memory.bytes[:] = self._start
        return super().call(name, *args)


class Reference:
    """The host's results on a stream, with which every build of the C code is compared.

    The stream is processed in parts.  In each part, the main question, usually ``predict``, is asked about every row,
    and then the row is learned.  A main question that is a reading is called after the row is learned.  Next, the
    program's questions are called on some rows of the part (on all rows if nothing is learned), and then its readings.
    ``hash`` is the ``state_hash`` after the last row was learned, before anything else changes the model.

    For a program with actions or visits, a second pass runs the last rows of each part through a new model.  In each part
    of this pass, the actions in ``between`` are called and some of the rows are visited before the questions.  After the
    middle part, all other actions are called, and then the actions in ``between`` once more.

    devices: if the stream has the rows of several devices, each device's rows are one part, and the model is reset
    between two parts.
    """

    PARTS = 4
    # a call gets about PIECE / (bytes of the model) rows, so that it ends within a fraction of a second and Ctrl-C takes effect
    PIECE = 2**24
    AGAIN = 250  # the second pass uses this many rows at the end of each part, or a quarter of the part if that is more
    ASKED = 16  # number of rows in each part about which questions are asked; these rows are spread over the part
    VISITED = 64  # number of rows in each part that are visited
    LATE, DELAY = 24, 3  # number of rows in each part whose labels come late; delay of these labels, in rows

    def __init__(
        self,
        project: Project,
        memory: Memory | None,
        x: np.ndarray,
        y: np.ndarray,
        engine: Engine | None = None,
        devices: Devices = (),
    ) -> None:
        self.project, self.spec, self.x, self.y = project, project.spec, x, y
        self.devices = devices
        even = np.linspace(0, len(x), self.PARTS + 1).astype(int)
        self.edges: list[int] = (np.cumsum([0, *(rows for _, rows in devices)]) if devices else even).tolist()
        self.engine: Engine = engine or chosen_engine()
        self.start = memory
        program = self.spec.program
        names = [entry.name for entry in program.entries_for(self.spec.config)]
        self.between = [name for name in program.between if name in names]
        self.others = [name for name in program.actions if name in names and name not in program.between]
        self.visits = [name for name in program.visits if name in names]
        self.readings = [name for name in program.readings if name in names]
        self.questions = [name for name in program.questions if name != program.asks and name in names]
        self._more = [*self.between, *self.others, *self.visits]
        self.passes = [False, True] if self._more else [False]
        self.results: list[list[Result]] = []
        for second in self.passes:
            self.model = self.fresh_host(self.engine)
            self.results.append(self._run(self.model, second))
        self.hash = _hash_in(self.results)

    def report(self, rows: list[dict[str, Any]], witnesses: Sequence[dict[str, Any]] = ()) -> Report:
        """Return the report: the rows of all builds, the sizes, and the counts of statuses."""
        calls = {name: self._counts(name) for name in (*self._more, *self.readings)}
        hashes = {
            "state_hash": f"{self.hash:08x}",
            "stream_hash": f"{zlib.crc32(self.x.tobytes() + self.y.tobytes()):08x}",
        }
        ok, figures = all(row["equal"] for row in (*rows, *witnesses)), self.project.figures | hashes
        return Report(ok, rows, figures, self._counts("update"), calls, self.engine, list(witnesses))

    def _counts(self, name: str) -> dict[str, int]:
        """Count the statuses that a function returned in the first pass that calls it: name of a status -> count."""
        told = [[result.statuses for result in results if result.name == name] for results in self.results]
        found = np.concatenate([*next(filter(None, told), []), np.zeros(0, np.int32)])
        names = {int(m): m.name.lower() for m in self.spec.program.status}
        return {names[int(s)]: int(count) for s, count in zip(*np.unique(found, return_counts=True), strict=True)}

    def fresh_host(self, engine: Engine | None = None) -> Host:
        return Host(self.project, self.start, engine or self.engine)

    def _steps(self, second: bool) -> Iterator[Step]:
        """Yield all steps of the first or the second pass.  Steps with many rows are divided into pieces."""
        size = max(16, min(4096, self.PIECE // len(self.model.memory.bytes)))
        for step in self._whole_steps(second):
            if step.rows is ONCE or step.rows.step is not None:
                yield step
                continue
            for start in range(step.rows.start, step.rows.stop, size):
                yield step._replace(rows=slice(start, min(start + size, step.rows.stop)))

    def _whole_steps(self, second: bool) -> Iterator[Step]:
        program = self.spec.program
        parts = [(begin, end) for begin, end in itertools.pairwise(self.edges) if end > begin]
        for i, (begin, end) in enumerate(parts):
            if self.devices and i:
                yield Step("init", "init", after=f" for {self.devices[i][0]}")
            if second:
                begin = max(begin, end - max(self.AGAIN, (end - begin) // 4))
            part, after = slice(begin, end), f" after update {end - 1}" if program.learns else ""
            yield Step("learn", "update", part)
            if end == len(self.x) and not second:
                yield Step("hash", HASHED, after=after)
            if second:
                yield from (Step("action", name, after=after) for name in self.between)
                for name in self.visits:
                    if name in program.promises:
                        yield from self._late(name, part)
                    else:
                        yield Step("visit", name, _some(part, self.VISITED), after)
            asked = _some(part, self.ASKED) if program.learns else part
            yield from (Step("question", name, asked, after) for name in self.questions)
            yield from (Step("reading", name, after=after) for name in self.readings)
            if second and self.others and i == (len(parts) - 1) // 2:
                for name in (*self.others, *self.between):
                    yield Step("action", name, after=after)
                    after = f" after {name}{after}"

    def _late(self, name: str, part: slice) -> Iterator[Step]:
        """Yield steps that repeat the last rows of a part, with labels that come some rows late."""
        first = max(part.start, part.stop - self.LATE)
        for t in range(first, part.stop):
            yield Step("visit", name, slice(t, t + 1))
            due = t - self.DELAY
            if due >= first:
                yield Step("learn", "update", slice(due, due + 1), f" with labels {self.DELAY} rows late")

    def _call(self, model: HostModel | Device, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Run a step.  Returns two arrays: the values that its calls wrote, of shape (calls, values), and the calls' statuses."""
        x, y = self.x[step.rows], self.y[step.rows]
        match step.kind:
            case "learn":
                return model.prequential(x, y)
            case "init":
                model.call("init")
                return np.zeros((1, 0)), np.zeros(1, np.int32)
            case "hash":
                return np.array([self._hash(model)]), np.zeros(1, np.int32)
            case "question":
                return model.ask(step.name, x)
            case "reading":
                values, status = model.read(step.name)
                return values[None], np.array([status], np.int32)
            case "visit":
                return np.zeros((len(x), 0)), model.visit(step.name, x, y)
            case "action":
                return np.zeros((1, 0)), np.array([model.call(step.name)], np.int32)

    def _run(self, model: HostModel | Device, second: bool) -> list[Result]:
        results = []
        for step in self._steps(second):
            go_on()
            values, statuses = self._call(model, step)
            results.append(Result(step.name, values, statuses, zlib.crc32(model.memory.bytes)))
        return results

    def _hash(self, model: HostModel | Device) -> int:
        return state_hash(self.spec, model.memory) if isinstance(model, HostModel) else int(model.call("hash"))

    def compare(self, c: Compiler, level: str, extra: Sequence[str] = (), **how: Any) -> dict[str, Any]:
        """Return the report's row for one build, without sizes.  how: further arguments of CModel."""
        return self.of_build(c, level, lambda: CModel(self.project, c, (*level.split(), *extra), **how))

    def of_build(self, c: Compiler, level: str, make: Callable[[], CModel]) -> dict[str, Any]:
        """Return the report's row for the build that ``make`` returns."""
        row: dict[str, Any] = {"compiler": c.name, "version": c.version, "flags": level, "samples": len(self.x)}
        try:
            device = make()
        except CheckFailed as error:
            return row | {"equal": False, "first_difference": str(error)}
        return row | self.verdict(device) | (self._header(device) if self.spec.program.is_int16 else {})

    def _header(self, device: CModel) -> dict[str, Any]:
        """Check that the C code converts floats, even those halfway between two counts, to the same counts as the host.

        Returns the entries that replace those of the report's row; {} if all counts are equal.
        """
        values = near_halves(self.spec)
        different = self.spec.raw_inputs(values) != device.counts(values)
        told = f"{self.spec.name}_counts.h: the counts differ from the host's for {values[different][:3].tolist()}"
        return {"equal": False, "first_difference": told} if different.any() else {}

    def witness(self, engine: Engine, say: Progress, tell: Tell = lambda text: None) -> dict[str, Any]:
        """Return the report's row for another engine: whether all of its results equal those of ``self.engine``."""
        say(0.7, text := f"{engine} compiles the model, and learns the same samples")
        tell(f"{text}, which takes some seconds")
        verdict = self.verdict(self.fresh_host(engine))
        row = {"engine": engine, "equal": verdict["equal"], "first_difference": verdict["first_difference"]}
        tell(f"{engine}, the reference: " + ("the same bytes" if row["equal"] else row["first_difference"]))
        return row

    def verdict(self, device: Device) -> dict[str, Any]:
        """Run the stream on a device of any kind.

        Returns entries for the report's row.  "equal" is whether all results equal the host's and the self-test passes.
        """
        selftest = "broken build" if device.call("selftest") == BROKEN_BUILD else "passed"
        results: list[list[Result]] = []
        for second in self.passes:
            device.call("init")
            results.append(self._run(device, second))
        same = [[_same(a, b) for a, b in zip(*both, strict=True)] for both in zip(self.results, results, strict=True)]
        equal = (
            device.memory.bytes == self.model.memory.bytes
            and all(map(all, same))
            and self._hash(device) == self._hash(self.model)
            and selftest == "passed"
        )
        hashed = f"{_hash_in(results):08x}"
        difference = None if equal else self.first_difference(device, [[*each, False].index(False) for each in same])
        return {"selftest": selftest, "equal": equal, "state_hash": hashed, "first_difference": difference}

    def first_difference(self, device: Device, same: Sequence[int]) -> str:
        """Return a message that names the first call whose results differ between host and device, and says what differs.

        same: for each pass, the number of steps at its beginning whose results are equal.
        """
        for second in self.passes:
            for found in self._differences(second, device, same[second]):
                return f"{found} (in the second pass, which also calls {', '.join(self._more)})" if second else found
        return "only the self-test or the hash differs"

    def _row(self, t: int) -> str:
        """Return a row's number or, if there are many devices, the row's number within the device and the device's name."""
        if not self.devices:
            return str(t)
        which = int(np.searchsorted(self.edges, t, "right")) - 1
        return f"{t - self.edges[which]} of {self.devices[which][0]}"

    def _differences(self, second: bool, device: Device, same: int) -> Iterator[str]:
        """Yield the differences in one pass: first those after ``init``, then, row by row, those in the first step
        whose results differ and in all later steps.
        """
        host, asks = self.fresh_host(), self.spec.program.asks
        where = (f"in {self.engine}", f"in {device.engine}") if isinstance(device, Host) else ("on the host", "in C")
        answer = "prediction" if asks == "predict" else asks
        learned = "update" if self.spec.program.learns else answer
        device.call("init")
        yield from (f"before the first {learned}, in {name}" for name in differing_fields(host, device, where))
        for i, step in enumerate(self._steps(second)):
            if i < same:
                self._call(host, step), self._call(device, step)
                continue
            for t in range(len(self.x))[step.rows]:
                single = step._replace(rows=slice(t, t + 1))
                asked = called = f"{step.name}{'' if step.rows is ONCE else f' of row {t}'}{step.after}"
                if step.kind == "learn":
                    asked, called = (f"{what} {self._row(t)}" for what in (answer, learned))
                (a, s), (b, u) = self._call(host, single), self._call(device, single)
                if not same_numbers(a, b):
                    yield f"{asked}: {shown(a[0])} {where[0]}, {shown(b[0])} {where[1]}"
                if s[0] != u[0]:
                    yield f"{called}: status {s[0]} {where[0]}, {u[0]} {where[1]}"
                yield from (f"{called}: {name}" for name in differing_fields(host, device, where))


def _hash_in(results: Sequence[Sequence[Result]]) -> int:
    """Return the state's hash after the first pass has learned its last row."""
    return next(int(result.values[0]) for result in results[0] if result.name == HASHED)


def _same(a: Result, b: Result) -> bool:
    return a.memory == b.memory and same_numbers(a.values, b.values) and same_numbers(a.statuses, b.statuses)


def _some(part: slice, count: int) -> slice:
    """Return at most ``count`` rows of a part, spread over the part."""
    step = max(1, (part.stop - part.start) // count)
    return slice(part.start, min(part.stop, part.start + step * count), step)


def same_numbers(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays have equal bits.  All NaNs are considered equal, because a NaN only means that a call was refused."""
    a, b = np.asarray(a), np.asarray(b)
    return bool(np.array_equal(np.isnan(a), np.isnan(b))) and a[~np.isnan(a)].tobytes() == b[~np.isnan(b)].tobytes()


def shown(value: Any) -> str:
    """Format one or several numbers as decimals that read back to the same bits."""
    return repr(value) if np.ndim(value) == 0 else str(np.asarray(value).tolist())


def differing_fields(
    host: HostModel, device: Device, where: tuple[str, str] = ("on the host", "in C")
) -> Iterator[str]:
    """Yield a message for each field whose bytes differ, with the first differing position and its two values."""
    for slot in host.memory.layout.slots:
        a, b = host.memory.field(slot.name), device.memory.field(slot.name)
        if a.tobytes() != b.tobytes():
            at = next(i for i in np.ndindex(a.shape) if a[i].tobytes() != b[i].tobytes())
            place = "".join(f"[{i}]" for i in at) if not slot.scalar else ""
            yield f"{slot.name}{place} is {a[at]!r} {where[0]}, {b[at]!r} {where[1]}"


def section_bytes(sources: Sequence[Path], c: Compiler) -> dict[str, int]:
    """Return the sizes, in bytes, of code, constants and variables at -Os, for this machine's processor; {} if object files are not ELF."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    names = {"text_bytes": ".text", "rodata_bytes": ".rodata", "data_bytes": ".data", "bss_bytes": ".bss"}
    sizes = dict.fromkeys(names, 0)
    for source in sources:
        target = source.with_suffix(".o")
        compile_c(c, [source], target, ("-Os",), ("-c",))
        try:
            with target.open("rb") as file:
                sections = [(s.name, s["sh_size"]) for s in ELFFile(file).iter_sections()]
        except ELFError:
            return {}
        for key, start in names.items():
            sizes[key] += sum(size for name, size in sections if name == start or name.startswith(start + "."))
    return sizes
