"""Relations that hold for every rule, precision and stage.  Each yields what is wrong with a case, in a sentence.

A relation compares runs of one model that must agree, byte for byte unless it says otherwise; so it needs no oracle, and
holds for a rule that is registered tomorrow.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pykernel.algorithms.extents import FUNCTIONS, WEIGHTS
from pykernel.dialect import DIM, OUTPUTS, Array, Real
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.merging import merge
from pykernel.host.migrate import migrate
from pykernel.host.model import HostModel
from pykernel.host.pipeline import Pipeline
from pykernel.host.recording import Recorded
from pykernel.host.run import Steps
from pykernel.host.simulation import Simulation
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import SILENT
from tests.support.every_model import accepted
from tests.support.random_calls import Samples

Content = dict[str, Any]
Relation = Callable[["Case"], Iterator[str]]
RELATIONS: dict[str, Relation] = {}
"""Those that are walked with every model."""
DECLARED: dict[str, Relation] = {}
"""Those that need numbers far from every limit: they are walked with the declared models."""
ROWS = 90


def relation(of: dict[str, Relation]) -> Callable[[Relation], Relation]:
    def register(function: Relation) -> Relation:
        of[function.__name__] = function
        return function

    return register


class Case:
    """One model and its stream: ``hostile`` has refused rows, repeats and numbers at every limit; ``plain`` none of these."""

    def __init__(self, content: Content, seed: int) -> None:
        self.content, self.seed, self.spec = content, seed, make_spec(content)
        self.program = self.spec.program
        self.rows = ROWS if self.spec.signal is None else 2 * ROWS
        self.questions = [name for name in self.program.questions if HostModel(self.spec).has(name)]

    @property
    def rng(self) -> np.random.Generator:
        """The same for each relation that asks for it."""
        return np.random.default_rng([self.seed, 99])

    def model(self, spec: Spec | None = None) -> HostModel:
        """As the C has it: without the fields that no kernel of this model reads."""
        spec = spec or self.spec
        return HostModel(spec, identity(spec).drop, raw=spec.program.is_int16)

    @functools.cached_property
    def hostile(self) -> tuple[np.ndarray, np.ndarray]:
        samples = Samples(self.spec, np.random.default_rng([self.seed, 1]))
        return np.stack([samples.x() for _ in range(self.rows)]), np.stack([samples.y() for _ in range(self.rows)])

    @functools.cached_property
    def plain(self) -> tuple[np.ndarray, np.ndarray]:
        """A smooth function of inputs that move by a few widths; in the units of the data."""
        rng, spec = np.random.default_rng([self.seed, 2]), self.spec
        x = rng.uniform(-1, 1, (self.rows, spec.width)) * min(1.5 * spec.length_scale, spec.input_max_abs / 3)
        if spec.signal is None:
            x = spec.unscaled(x)
        seen = x / np.abs(x).max()
        whole = seen.sum(1) + 0.3 * np.sin(3 * seen[:, 0])
        kind = self.program.label_array(spec.capacities)
        if not self.program.learns:
            return x, np.zeros((len(x), 0))
        if kind.is_class:
            classes = len(spec.label.classes or ())
            return x, np.clip((whole + 1) / 2 * classes, 0, classes - 1).astype(np.int32)
        y = np.outer(whole, 1 + np.arange(kind.shape[0] if kind.shape else 1)) * min(1.0, spec.label_max_abs / 20)
        return x, y[:, 0] if not kind.shape else y[:, : kind.shape[0]]

    def feed(self, model: HostModel, x: np.ndarray, y: np.ndarray, **how: Any) -> list[np.ndarray]:
        """Ask and learn each row, or only ask: what came out."""
        if not self.program.learns:
            return list(model.ask(self.program.asks, x))
        return list(model.prequential(x, y, **how))

    def state(self, model: HostModel) -> bytes:
        return bytes(model.memory.bytes[: self.program.state_bytes(model.memory.layout)])

    def ask(self, model: HostModel, x: np.ndarray) -> bytes:
        return b"".join(part.tobytes() for name in self.questions for part in model.ask(name, x))


def joined(parts: list[list[np.ndarray]]) -> list[bytes]:
    return [np.concatenate(each).tobytes() for each in zip(*parts, strict=True)]


def whole(outcome: list[np.ndarray]) -> list[bytes]:
    return [each.tobytes() for each in outcome]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    """Equal statuses, and answers that differ by rounding."""
    rounding = 1e-7 if a[0].dtype == np.float64 else 1e-3
    apart = rounding * float(np.nanmax(np.abs(a[0].astype(float)), initial=0.0))
    return a[-1].tobytes() == b[-1].tobytes() and np.allclose(a[0], b[0], rtol=0, atol=apart, equal_nan=True)


# --------------------------------------------------------------------------------------------------- every model


@relation(RELATIONS)
def in_parts_or_at_once(case: Case) -> Iterator[str]:
    """A stream fed at once, in parts and row by row, by one call and by two."""
    x, y = case.hostile
    once = case.model()
    expected = whole(case.feed(once, x, y))
    for cuts in (sorted(case.rng.choice(case.rows, 4)), range(1, case.rows)):
        model = case.model()
        parts = [case.feed(model, *each) for each in zip(np.split(x, cuts), np.split(y, cuts), strict=True)]
        if joined(parts) != expected:
            yield f"in {len(parts)} parts the answers or statuses differ"
        if case.state(model) != case.state(once):
            yield f"in {len(parts)} parts the state differs"


@relation(RELATIONS)
def cut_and_resumed(case: Case) -> Iterator[str]:
    """A stream cut anywhere and resumed: through a snapshot, and through pickle."""
    x, y = case.hostile
    once = case.model()
    expected = whole(case.feed(once, x, y))

    def by_snapshot(model: HostModel) -> HostModel:
        again = case.model()
        snapshot.load(again, snapshot.save(model))
        for slot in again.memory.layout.slots:
            if slot.name == "missed":  # how many samples were refused is no part of the model
                again.memory.field("missed")[:] = model.memory.field("missed")
        return again

    def by_pickle(model: HostModel) -> HostModel:
        memory = pickle.loads(pickle.dumps(model.memory))
        again = case.model()
        again.memory = memory
        return again

    for how in (by_snapshot, by_pickle) if case.program.persistent else ():
        model, parts = case.model(), []
        cuts = sorted(case.rng.choice(case.rows, 5, replace=False))
        for a, b in zip(np.split(x, cuts), np.split(y, cuts), strict=True):
            parts.append(case.feed(model, a, b))
            model = how(model)
        if joined(parts) != expected:
            yield f"{how.__name__.replace('_', ' ')}: answers or statuses differ"
        if case.state(model) != case.state(once):
            yield f"{how.__name__.replace('_', ' ')}: the state differs"


@relation(RELATIONS)
def simulated_in_parts(case: Case) -> Iterator[str]:
    """A recording with holes, stopped after any row and started again from the state that was saved: the answers and the state of
    one run."""
    if not case.program.persistent:
        return
    (x, y), holes = case.plain, case.rng.random(case.rows) < 0.03
    x, known = np.where(holes[:, None], np.nan, x), y if y.size else np.zeros(case.rows)

    def run(start: bytes | None, a: int, b: int) -> tuple[bytes, list[np.ndarray]]:
        pipeline, answers = Pipeline(case.spec), list[np.ndarray]()
        if start is not None:
            pipeline.go_on(snapshot.read(case.spec, start).memory)
        take = pipeline.simulation.run

        def kept(*rows: np.ndarray) -> Iterator[Steps]:
            for steps in take(*rows):
                answers.append(steps.predictions)
                yield steps

        pipeline.simulation.run = kept  # type: ignore[method-assign]
        labels = None if case.spec.forecasts or case.spec.inner.program.label_kind == "none" else known[a:b]
        pipeline.run(Recorded(case.spec, (x[a:b], labels)), SILENT)
        return snapshot.saved(case.spec, pipeline.memory()), answers

    once, cuts = run(None, 0, case.rows), sorted(case.rng.choice(np.arange(1, case.rows), 4, replace=False).tolist())
    state, answers = None, []
    for a, b in itertools.pairwise([0, *cuts, case.rows]):
        state, more = run(state, a, b)
        answers += more
    if state != once[0]:
        yield f"started again after rows {cuts}, the state differs"
    if np.concatenate(answers).tobytes() != np.concatenate(once[1]).tobytes():
        yield f"started again after rows {cuts}, the answers differ"


@relation(DECLARED)
def a_labelled_row_is_scored_or_counted(case: Case) -> Iterator[str]:
    """Of several labels, inputs and both beyond any limit: no row is left out in silence, and none because of a limit that only
    learning has."""
    (x, y), spec = case.plain, case.spec
    if spec.program.label_kind == "none" or spec.signal is not None or spec.label.classes:
        return
    x, y = x.copy(), y.copy() if y.size else np.ones(case.rows)
    x[12::5, 0] = np.nan
    y[10::7] *= 1e30
    x[12::5, 0] = np.nan
    simulation = Simulation(spec)
    for _ in simulation.run(x, y):
        pass
    report = simulation.report()
    scored, unscored = report["all"]["scored"], report["unscored"]
    # nothing is scored before the first label is known
    if scored + sum(unscored.values()) not in (report["labelled"], report["labelled"] - 1):
        yield f"of {report['labelled']} labelled rows {scored} are scored and {unscored} are not"
    if not case.program.learns and unscored["labels"]:
        yield f"{unscored['labels']} labels are not scored although the model learns none"
    if bool(unscored["labels"]) != any("labelled rows are not scored" in each for each in report["warnings"]):
        yield "labels that are not scored are not told"


@relation(RELATIONS)
def questions_change_nothing(case: Case) -> Iterator[str]:
    """Never asked, once, often, and about other places: the same statuses and state."""
    if not case.program.learns:
        return
    x, y = case.hostile
    never = case.model()
    expected = never.visit(case.program.learner, x, y).tobytes()
    for often in (1, 3):
        model, statuses = case.model(), []
        for t in range(case.rows):
            for _ in range(often):
                case.ask(model, case.hostile[0][case.rng.integers(case.rows)][None])
                for name in case.program.readings:
                    if model.exists(name):
                        model.read(name)
            statuses.append(model.visit(case.program.learner, x[t : t + 1], y[t : t + 1]))
        if np.concatenate(statuses).tobytes() != expected or case.state(model) != case.state(never):
            yield f"asked {often} times a row, statuses or state differ"


@relation(RELATIONS)
def threads_ask_alike(case: Case) -> Iterator[str]:
    """Eight threads that ask one model get what one gets."""
    if not case.questions:
        return
    x, y = case.plain
    model = case.model() if not case.program.is_int16 else HostModel(case.spec)
    if case.program.learns:
        model.visit(case.program.learner, x, y)
    x = np.tile(x, (60, 1))
    alone = [case.ask(model, np.roll(x, shift, 0)) for shift in range(8)]
    found: dict[int, bytes] = {}
    barrier = threading.Barrier(8)

    def ask(shift: int) -> None:
        barrier.wait()
        found[shift] = case.ask(model, np.roll(x, shift, 0))

    threads = [threading.Thread(target=ask, args=(shift,)) for shift in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong := [shift for shift in range(8) if found.get(shift) != alone[shift]]:
        yield f"{len(wrong)} of 8 threads get other answers than one alone"


@relation(RELATIONS)
def refused_rows_leave_no_trace(case: Case) -> Iterator[str]:
    """Rows that are refused leave the answers to all later rows, and the state, as if they had not been."""
    if not case.program.learns:
        return
    x, y = case.hostile
    model = case.model()
    outcome = case.feed(model, x, y)
    kept = outcome[-1] >= 0
    if not kept.any():
        return
    without = case.model()
    expected = case.feed(without, x[kept], y[kept])
    if case.state(model) != case.state(without):
        yield "the state differs"
    if outcome[-1][kept].tobytes() != expected[-1].tobytes():
        yield "statuses of later rows differ"
    if outcome[0][kept].tobytes() != expected[0].tobytes():
        yield "answers to later rows differ"


@relation(RELATIONS)
def a_frozen_model_does_not_learn(case: Case) -> Iterator[str]:
    """While learning is off, rows are checked and change nothing; then the model goes on as one that was never frozen.  Only what a monitor knows of
    the present row changes: tests/algorithms/test_gmm.py has that."""
    if not case.program.learns or not case.model().exists("freeze") or case.spec.signal is not None:
        return
    known = {int(case.program.status.FROZEN), *map(int, case.program.alarms)}
    (x, y), half = case.hostile, case.rows // 2
    model, other = case.model(), case.model()
    for each in (model, other):
        case.feed(each, x[:half], y[:half])
    model.freeze()
    frozen = case.state(model)
    statuses = model.update(x[half:], y[half:])
    if set(statuses[statuses >= 0].tolist()) - known:
        yield "while frozen, a row has another status"
    if case.program.alarms:
        return
    if case.state(model) != frozen:
        yield "while frozen, the state changes"
    if case.ask(model, x) != case.ask(other, x):
        yield "while frozen, answers differ"
    model.freeze(False)
    if case.state(model) != case.state(other):
        yield "after it was frozen, the state differs"


@relation(RELATIONS)
def a_delay_is_a_shift(case: Case) -> Iterator[str]:
    """With a delay of d, row t is answered, and its label expected, by the model that learned the rows before t - d; in parts, too."""
    if not case.program.learns or case.program.reads or case.program.label_kind == "none":
        return
    (x, y), question = case.hostile, case.program.forecasts(case.spec.config)
    for d in (1, 7):
        model, answers = case.model(), []
        for t in range(case.rows):
            answers.append(model.ask(question, x[t : t + 1])[0])
            if model.exists("expect"):
                model.expect(x[t : t + 1])
            if t >= d:
                model.update(x[t - d : t - d + 1], y[t - d : t - d + 1])
        late = case.model()
        found = case.feed(late, x, y, delay=d, question=question)[0]
        if np.concatenate(answers).ravel().tobytes() != found.ravel().tobytes():
            yield f"answers {d} rows late differ"
        learned = case.model()
        learned.update(x[: case.rows - d], y[: case.rows - d])
        if case.state(late) != case.state(model):
            yield f"the state {d} rows late differs"
        if not model.exists("expect") and case.state(model) != case.state(learned):
            yield f"the state {d} rows late is not that of the rows that were learned"


@relation(RELATIONS)
def what_simulates_generates(case: Case) -> Iterator[str]:
    """A spec that is accepted becomes C, whose tables lie in flash, on an AVR, too."""
    try:
        files = build(case.spec).files
    except Exception as error:
        yield f"generating ends in {type(error).__name__}: {error}"
        return
    for table in re.findall(
        r"^static const (?!\w+_FLASH )[^;{]*?(\w+)\[", files[f"src/{case.spec.name}.c"], re.MULTILINE
    ):
        yield f"the table {table} would lie in RAM on an AVR"


@relation(RELATIONS)
def a_range_is_its_names(case: Case) -> Iterator[str]:
    """A range of names and their list are one model; so are names and no names."""
    if case.spec.signal is not None:
        return
    width = case.spec.dim
    given = {key: value for key, value in case.content["input"].items() if key not in ("columns", "dim", "formulas")}
    sensors = given.pop("sensors", None)
    contents = [
        case.content | {"input": given | names}
        for names in ({"columns": [f"x{i}" for i in range(width)]}, {"columns": [f"x0..x{width - 1}"]}, {"dim": width})
    ]
    # names of the label stay; a list of sensors names inputs
    specs = [accepted(content) for content in contents] if sensors is None else []
    laid = {(spec.memory().layout.nbytes, str(spec.config_values), spec.learning.rule) for spec in specs if spec}
    if len(laid) > 1:
        yield f"a range, its names and their number make {len(laid)} models"
    if specs and len({spec is None for spec in specs}) > 1:
        yield "a range, its names and their number are not accepted alike"


# --------------------------------------------------------------------------------------- numbers far from every limit


def _limits_by(content: Content, x: float, y: float) -> Content:
    """The content in other units of inputs and labels: those of its numbers that have units."""

    def scaled(value: Any, factor: float) -> Any:
        return [each * factor for each in value] if isinstance(value, (list, tuple)) else value * factor

    units = {
        ("input", "max_abs"): x,
        ("input", "center"): x,
        ("input", "scale"): 1 / x,
        ("label", "max_abs"): y,
        ("label", "low"): y,
        ("label", "high"): y,
        ("learning", "step_limit"): y,
    }
    return {
        section: {key: scaled(v, units[section, key]) if (section, key) in units else v for key, v in given.items()}
        if isinstance(given, dict)
        else given
        for section, given in content.items()
    }


@relation(DECLARED)
def units_change_nothing(case: Case) -> Iterator[str]:
    """Inputs that are standardised, and labels, in units that are powers of two: the same answers, to the byte."""
    spec = case.spec
    if not (spec.standardises or spec.learning.rule == "gmm") or spec.signal is not None or not case.program.learns:
        return
    x, y = case.plain
    labelled = y.dtype.kind == "f" and y.size > 0
    full = case.content | {"input": {"max_abs": 8 * float(np.abs(x).max())} | case.content["input"]}
    base, settled = accepted(full), 20 if spec.learning.rule == "gmm" else 0  # in the warm-up nothing is judged
    before = None if base is None else case.feed(HostModel(base), x, y)
    for by, also in ((-50, 25), (-40, 0), (0, -60), (-20, -20), (20, -10), (0, 20), (43, 20)):
        fx, fy = 2.0**by, (2.0**also if labelled else 1.0)
        changed = accepted(_limits_by(full, fx, fy))
        if changed is None or before is None:
            if abs(by) <= 20:
                yield f"a spec in units of 2**{by} is refused"
            continue
        after = case.feed(HostModel(changed), x * fx, y * fy if labelled else y)
        if before[-1].tobytes() != after[-1].tobytes():
            yield f"inputs times {fx:g}, labels times {fy:g}: other statuses"
        apart = np.nanmax(np.abs(before[0] - after[0] / fy)[settled:]) / (np.nanmax(np.abs(before[0])) or 1)
        if apart > (1e-3 if settled else 0):
            yield f"inputs times {fx:g}, labels times {fy:g}: answers differ by {apart:.1g} of the largest"


FLOORED = ("gmm",)
"""Rules whose factors have a floor in each row, which depends on the rows above: tests/gate/test_relations.py measures by how much."""


def _permuted(case: Case, order: np.ndarray) -> tuple[Spec | None, HostModel | None]:
    """The model of the columns in another order: the content's lists and every table over the inputs, too."""
    content: Content = {}
    for section, given in case.content.items():
        if isinstance(given, dict):
            given = {
                key: [value[i] for i in order]
                if section == "input" and isinstance(value, (list, tuple)) and len(value) == len(order)
                else [[row[i] for i in order] for row in value]
                if key == "vectors"
                else value
                for key, value in given.items()
            }
        content[section] = given
    spec = accepted(content)
    if spec is None:
        return None, None
    model = HostModel(spec)
    tables = {
        name: np.ascontiguousarray(np.take(getattr(case.spec.config, name), order, axis=kind.extents.index(DIM)))
        for name, kind in case.program.parameters.items()
        if isinstance(kind, Array) and DIM in kind.extents and kind.scalar is Real
    }
    model.config = spec.config.replace(**tables)
    return spec, model


@relation(RELATIONS)
def a_restarted_model_is_a_new_one(case: Case) -> Iterator[str]:
    """Nothing that was learned is left.  Only the random numbers go on, and the window of a signal stays."""
    if not case.model().exists("restart"):
        return
    model, new = case.model(), case.model()
    case.feed(model, *case.hostile)
    model.call("restart")
    learned = case.spec.inner.program.persistent
    names = [name for struct in learned for name in struct.fields if name != "seeds"]
    kept = [name for name in names if model.memory.field(name).tobytes() != new.memory.field(name).tobytes()]
    if kept:
        yield f"{', '.join(kept)}: what was learned is still there"


@relation(DECLARED)
def columns_in_another_order(case: Case) -> Iterator[str]:
    """Columns, and what is drawn for each of them, in another order: the same statuses, and answers equal to rounding.

    Which frequencies are drawn for which column is another question: the order of columns is a seed there.
    """
    if case.spec.signal is not None or case.spec.precision != "float64" or case.spec.dim < 2:
        return
    if case.spec.learning.rule in FLOORED:
        return
    x, y = case.plain
    order = np.roll(np.arange(case.spec.dim), 1)
    _, other = _permuted(case, order)
    if other is None:
        yield "the columns in another order are refused"
        return
    a, b = case.feed(HostModel(case.spec), x, y), case.feed(other, x[:, order], y)
    if a[-1].tobytes() != b[-1].tobytes():
        yield f"{int((a[-1] != b[-1]).sum())} statuses differ"
    elif not same(a, b):
        yield f"answers differ by {np.nanmax(np.abs(a[0] - b[0])):.2g}"


ONE_AFTER_THE_OTHER = ("spectrum-ekf",)
"""Rules that learn frequencies from the first label before the second: their order matters."""


@relation(DECLARED)
def labels_in_another_order(case: Case) -> Iterator[str]:
    """A second label, and what is stored for each of both, in another order: the same answers in that order, to rounding."""
    kind = case.program.label_array(case.spec.capacities)
    if case.spec.forecasts or not case.program.learns or kind.is_class or not case.plain[1].size:
        return
    label = {key: value for key, value in case.content.get("label", {}).items() if key not in ("column", "columns")}
    expansion = dict(case.content.get("expansion", {}))
    if "weights" in expansion:  # different for the second label
        expansion["weights"] = [[row[0], -0.5 * row[0]] for row in expansion["weights"]]
        expansion["bias"] = [expansion["bias"][0], 0.125]
    spec = accepted(case.content | {"label": label | {"outputs": 2}} | ({"expansion": expansion} if expansion else {}))
    if spec is None or spec.learning.rule in ONE_AFTER_THE_OTHER:
        return
    two = Case(spec.model_dump(exclude_unset=True), case.seed)
    (x, y), other = two.plain, HostModel(spec)
    tables = {
        name: np.ascontiguousarray(np.flip(getattr(other.config, name), axis))
        for name, kind in two.program.parameters.items()
        if isinstance(kind, Array)
        for axis, extent in enumerate(kind.extents)
        if extent in (OUTPUTS, FUNCTIONS, WEIGHTS)
    }
    other.config = other.config.replace(**tables)
    a, b = two.feed(HostModel(spec), x, y), two.feed(other, x, y[:, ::-1].copy())
    b[0] = b[0][:, ::-1]
    if not same(a, b) or (two.program.is_int16 and a[0].tobytes() != b[0].tobytes()):
        yield f"answers differ by {np.nanmax(np.abs(a[0].astype(float) - b[0])):.2g}, {(a[-1] != b[-1]).sum()} statuses"


UNMERGED = "uses forgetting|does not show which inputs"
"""What is said of float models that learn from labels, but whose devices cannot be merged."""


@relation(DECLARED)
def names_and_their_order_belong_to_a_state(case: Case) -> Iterator[str]:
    """With other names of inputs or classes, or another order of them, a state is of another kind, which the device refuses.  Where
    names were only replaced in place, ``state migrate`` converts it, byte for byte."""
    content, width = case.content, case.spec.dim
    if case.spec.signal is not None or not case.program.persistent:
        return
    given = {
        key: value for key, value in content["input"].items() if key not in ("columns", "dim", "formulas", "sensors")
    }
    names, classes = [f"x{i}" for i in range(width)], list(case.spec.label.classes or ())

    def named(columns: list[str], classes: list[str]) -> Spec:
        label = {"label": content.get("label", {}) | {"classes": classes}} if classes else {}
        return make_spec(content | {"input": given | {"columns": columns}} | label)

    spec, renamed = named(names, classes), named(["new", *names[1:]], [f"{each}, new" for each in classes])
    orders = [named(names[::-1], classes)] * (width > 1) + [named(names, classes[::-1])] * bool(classes)
    if len({identity(each).state_kind for each in (spec, renamed, *orders)}) < 2 + len(orders):
        yield "another order of names makes a state of the same kind"
    model = HostModel(spec)
    case.feed(model, *case.plain)
    data = snapshot.save(model)
    if migrate(spec, data, renamed).data[snapshot.HEADER.size : -4] != data[snapshot.HEADER.size : -4]:
        yield "a state that was migrated to other names is another one"
    for other in orders:
        with contextlib.suppress(UserError):
            migrate(spec, data, other)
            yield "a state is migrated to another order of names"


@relation(DECLARED)
def a_wider_limit_of_labels_is_migrated(case: Case) -> Iterator[str]:
    """A state of a float model becomes, under a limit four times as wide, the one that the model with this limit would have learned."""
    label = case.content.get("label", {})
    if "max_abs" not in label or not case.program.persistent or case.program.is_int16:
        return
    wide = accepted(case.content | {"label": label | {"max_abs": 4 * label["max_abs"]}})
    if wide is None:
        return
    model, other = HostModel(case.spec), HostModel(wide)
    for each in (model, other):
        case.feed(each, *case.plain)
    if migrate(case.spec, snapshot.save(model), wide).data != snapshot.save(other):
        yield "the migrated state is not the one that was learned with the wider limit"


@relation(DECLARED)
def devices_merge_within_the_limits_of_each_input(case: Case) -> Iterator[str]:
    """Two devices whose inputs fill limits that differ: none refuses a question of the merge."""
    program = case.program
    if case.spec.signal is not None or not program.learns or program.is_int16 or program.label_kind == "none":
        return
    limits, states = 10.0 ** np.arange(case.spec.dim), {}
    spec = make_spec(case.content | {"input": case.content["input"] | {"max_abs": limits.tolist()}})
    for k in range(2):
        x, y = Case(case.content, case.seed + k).plain
        model = HostModel(spec)
        model.prequential(x / np.abs(x).max(axis=0) * limits, y)
        states[f"device {k}"] = snapshot.save(model)
    try:
        merged = merge(spec, states)
    except UserError as error:
        if not re.search(UNMERGED, str(error)):
            yield str(error)
    else:
        if not all(np.isfinite(each) for each in (merged.left, *merged.deviations.values()) if each is not None):
            yield "the merged model's answers are not finite"
        if merge(spec, dict(reversed(states.items()))).data != merged.data:
            yield "in another order, the states make another model"


@relation(DECLARED)
def tiny_changes_change_little(case: Case) -> Iterator[str]:
    """A number of the spec that is larger by one part in ten thousand: nine statuses in ten stay."""
    if not case.program.learns or case.program.is_int16 or "rule" not in case.content.get("learning", {}):
        return
    x, y = case.plain
    before = case.feed(case.model(), x, y)[-1]
    for section, key, _, value in case.spec.given_keys():
        if type(value) is not float or not case.spec.has(section, key):
            continue
        given = case.content.get(section, {})
        spec = accepted(case.content | {section: given | {key: value * 1.0001}})
        if spec is not None:
            after = case.feed(case.model(spec), x, y)[-1]
            if (changed := float((after != before).mean())) > 0.1:
                yield f"[{section}] {key} {value:g} times 1.0001 changes {changed:.0%} of the statuses"


NOTHING: dict[tuple[str, str], Any] = {
    ("input", "missing"): "mean",
    ("input", "outliers"): "hold",
    ("input", "center"): lambda spec: [0.0] * spec.dim,
    ("input", "scale"): lambda spec: [1.0] * spec.dim,
    ("label", "outputs"): 1,
    ("label", "clip"): None,
    ("interval", "level"): 0.9,
    ("reduction", "lambda_max"): 1e-30,
    ("reduction", "truncate_below"): 1e-30,
    ("reduction", "truncate_age"): 10**9,
    ("learning", "step_limit"): lambda spec: spec.label.max_abs * 1e3,
}
"""Keys that do nothing to a plain stream: nothing is missing, outlying or dropped."""


@relation(DECLARED)
def a_stage_without_effect_is_none(case: Case) -> Iterator[str]:
    """A stage that is switched on, and has nothing to do: the same answers."""
    if case.spec.signal is not None or case.program.is_int16:
        return
    x, y = case.plain
    before = case.feed(case.model(), x, y)
    declared = {(section, key) for section, key, _ in _fields(case.spec)}
    for (section, key), value in NOTHING.items():
        if (section, key) not in declared or key in case.content.get(section, {}) or value is None:
            continue
        value = value(case.spec) if callable(value) else value
        spec = accepted(case.content | {section: case.content.get(section, {}) | {key: value}})
        if spec is None or spec.label_kind != case.spec.label_kind or spec.learning.rule != case.spec.learning.rule:
            continue
        after = case.feed(case.model(spec), x, y)
        if not same(before, after):
            yield f"[{section}] {key} = {value!r} changes answers"


def _fields(spec: Spec) -> Any:
    from pykernel.spec.sections import fields_of

    return fields_of(type(spec), spec.learning.rule)


@relation(DECLARED)
def a_column_of_nothing(case: Case) -> Iterator[str]:
    """One column more, of zeros: kernels of distances do not see it; nothing is refused for it, nothing diverges."""
    spec = case.spec
    if spec.signal is not None or case.program.is_int16 or "expansion" in case.content:
        return
    given = case.content["input"]
    wide = {
        k: [*v, 1.0] if isinstance(v, list) and k in ("max_abs", "center", "scale") else v for k, v in given.items()
    }
    wide |= {"columns": [*given["columns"], "zero"]} if "columns" in given else {"dim": spec.dim + 1}
    other = accepted(case.content | {"input": wide})
    if other is None:
        return
    x, y = case.plain
    before = case.feed(case.model(), x, y)
    for name, column in (("of zeros", np.zeros((len(x), 1))), ("that repeats another", x[:, :1])):
        after = case.feed(case.model(other), np.hstack([x, column]), y)
        if int((after[-1] < 0).sum()) > int((before[-1] < 0).sum()):
            yield f"a column {name} makes rows refused"
        if after[0].dtype.kind == "f" and np.isnan(after[0]).sum() > np.isnan(before[0]).sum():
            yield f"a column {name} leaves rows unanswered"
        drawn = any(isinstance(k, Array) and DIM in k.extents for k in case.program.parameters.values())
        seen = spec.kernel is not None and spec.kernel.function == "gaussian" and not drawn and "kernel" in case.content
        if name == "of zeros" and seen and not same(before, after):
            yield "a column of zeros changes the answers"
