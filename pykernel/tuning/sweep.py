"""Choosing a model by trying: rules, techniques, budgets and, from coarse to fine, their parameters, on recorded data.

Each try is a whole prequential run, as the device would learn: row t is predicted, then row t - delay is learned, and
the error is that over the stream's second half.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from pykernel.dialect import sources_digest
from pykernel.errors import MissingExtra, UserError
from pykernel.host.simulate import DELAY_LIMIT, Simulation
from pykernel.parallel import Workers
from pykernel.spec import stages
from pykernel.spec.families.online import KernelSpec, Reduction, ridge_of
from pykernel.spec.model import FAMILIES, N_MAX_LIMIT, Spec, make_spec
from pykernel.spec.sections import StandardisedInput

SIZES = (8, 16, 32, 64)
ROUNDS = 3
"""Times that the grid is refined around the best."""
NEAR = 1.05
"""A model is good enough to be the cheapest if its error is at most this times the best."""
WORTH_REFINING = 1.25
"""A model's parameters are refined if its error on the coarse grid is at most this times the best in no more memory."""
WORTH_MEASURING = 1.25
"""A model's instructions are measured if its error is at most this times the best, or nothing smaller is as good."""
PAIRS = 2000
"""Pairs of inputs whose distance sets the range of sigma."""

Score = Literal["mae", "rmse", "error_rate"]
MEASURES: tuple[Score, ...] = get_args(Score)
Content = dict[str, Any]
"""A spec as nested dictionaries."""

# ---------------------------------------------------------------------------------------------------------- the data


@dataclass(frozen=True)
class Data:
    """A recorded stream: x (rows, D); y (rows,), (rows, OUTPUTS), NaN where there is no label yet, or (rows,) positions
    of classes, -1 where there is none; delay: labels arrive so many rows late."""

    x: np.ndarray
    y: np.ndarray
    delay: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.delay <= DELAY_LIMIT:
            raise UserError(f"delay is {self.delay}; it must be from 0 to {DELAY_LIMIT:,} rows")
        half = len(self.x) // 2
        if self.delay >= max(half, 1):
            raise UserError(
                f"delay is {self.delay:,}, but the data has {len(self.x):,} rows; the error is that of the second half, "
                "and labels must arrive before it begins"
            )
        if not self.known[half:].any():
            raise UserError("the data's second half holds no labels; the error is taken there")

    @property
    def known(self) -> np.ndarray:
        """Where there is a label, (rows,)."""
        if self.y.dtype.kind in "iu":
            return self.y >= 0
        return np.isfinite(self.y).reshape(len(self.y), -1).all(axis=1)

    @property
    def digest(self) -> str:
        content = hashlib.sha256(f"{self.x.shape} {self.y.shape} {self.y.dtype} ".encode())
        content.update(np.ascontiguousarray(self.x).tobytes() + np.ascontiguousarray(self.y).tobytes())
        return content.hexdigest()


def prequential(spec: Spec, data: Data) -> dict[str, Any]:
    """Errors of a model over the data's second half, each row predicted before its label is known: as of Simulation.

    mae and rmse, in the label's unit (of several labels: means over them), or error_rate for classes; None where no row
    could be predicted.  scored: rows that count.  diverged: updates refused because the model would leave its range.
    inputs_refused, labels_refused: rows beyond the spec's limits.
    """
    simulation = _simulated(spec, data)
    found = simulation.summary(simulation.errors, simulation.rows // 2)
    refused = {status.name: count for status, count in simulation.statuses.items() if status < 0}
    return {
        **{key: found[key]["model"] for key in MEASURES if key in found},
        "scored": found["scored"],
        "diverged": sum(count for name, count in refused.items() if name not in ("REFUSED_INPUT", "REFUSED_LABEL")),
        "inputs_refused": simulation.inputs_refused,
        "labels_refused": refused.get("REFUSED_LABEL", 0),
    }


def trivial(spec: Spec, data: Data) -> dict[str, dict[str, float | None]]:
    """Errors of what every model has to beat, by the same measures."""
    simulation = _simulated(spec, data)
    found = simulation.summary(simulation.errors, simulation.rows // 2)
    measures = [key for key in MEASURES if key in found]
    return {name: {key: found[key][name] for key in measures} for name in found[measures[0]] if name != "model"}


def _simulated(spec: Spec, data: Data) -> Simulation:
    simulation = Simulation(spec, data.delay)
    for _ in simulation.run(data.x, data.y):
        pass
    return simulation


def typical_distance(spec: Spec, x: np.ndarray) -> float:
    """The median distance of two inputs, as the model sees them; of PAIRS pairs, always the same."""
    x = x[(np.abs(x) <= spec.input.max_abs).all(axis=1)]
    if isinstance(spec.input, StandardisedInput) and spec.input.standardise and len(x):
        deviation = x.std(axis=0)
        x = np.clip((x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), -spec.input.clip, spec.input.clip)
    if len(x) < 2:
        return 1.0
    pairs = np.random.default_rng(0).integers(0, len(x), (PAIRS, 2))
    distances = np.sqrt(np.square(x[pairs[:, 0]] - x[pairs[:, 1]]).sum(axis=1))
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


# ------------------------------------------------------------------------------------------------- what is searched


@dataclass(frozen=True)
class Knob:
    """A parameter that is searched: where it is in a spec, and on which scale.

    grid: positions of the coarse grid; without, only the spec's own value is in the coarse grid.  step: between the
    grid's positions; each round of refinement halves it.  least, most: values.
    """

    section: str
    key: str
    grid: tuple[float, ...]
    step: float
    least: float
    most: float

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    def position(self, value: float) -> float:
        return math.log(value)

    def value(self, position: float) -> float:
        """Rounded to three digits: what a human would write down."""
        return float(f"{min(max(math.exp(position), self.least), self.most):.3g}")


@dataclass(frozen=True)
class Memory(Knob):
    """A forgetting factor, by the samples that it remembers, 1 / (1 - factor); beyond FOREVER it is 1."""

    def position(self, value: float) -> float:
        return math.log(min(1 / (1 - value), FOREVER)) if value < 1 else math.log(FOREVER)

    def value(self, position: float) -> float:
        memory = math.exp(min(position, math.log(FOREVER)))
        value = 1.0 if memory > 0.9 * FOREVER else round(1 - float(f"{1 / memory:.2g}"), 9)
        return min(max(value, self.least), self.most)


FOREVER = 100_000.0


def _logs(*values: float) -> tuple[float, ...]:
    return tuple(map(math.log, values))


def knobs(distance: float) -> tuple[Knob, ...]:
    """All parameters that a search may vary; distance: see ``typical_distance``."""
    widths = tuple(float(f"{distance * factor:.3g}") for factor in (1 / 8, 1 / 4, 1 / 2, 1, 2))
    return (
        Knob("kernel", "sigma", _logs(*widths), math.log(2), distance / 100, distance * 100),
        Knob("learning", "eta", _logs(0.1, 0.3, 1.0), math.log(3), 0.003, 1.9),
        Memory("learning", "forgetting", _logs(100, 1000, FOREVER), math.log(10), 0.9, 1.0),
        Knob("learning", "noise", _logs(0.01, 0.3), math.log(30), 1e-5, 100),
        Knob("learning", "quantisation", _logs(0.15, 0.5), math.log(3), 0.01, 2.0),
        Knob("reduction", "ridge", (), math.log(10), 1e-4, 0.3),
    )


def options(section: type, key: str) -> tuple[str, ...]:
    """The words that a key of a spec may be."""

    def words(annotation: Any) -> Iterable[str]:
        for part in get_args(annotation):
            yield from [part] if isinstance(part, str) else words(part)

    return tuple(words(section.model_fields[key].annotation))  # type: ignore[attr-defined]


def rules() -> tuple[str, ...]:
    """Those that are compared: all that learn sample by sample from raw inputs."""
    return tuple(rule for family in FAMILIES if family.online for rule in family.rules)


def require_online(spec: Spec, where: str = "the spec") -> None:
    """Raises UserError, ``where`` first, for a model of another rule."""
    if not spec.family.online:
        raise UserError(
            f"{where}: [learning] rule is {spec.learning.rule}; only rules that learn sample by sample are compared here: give "
            f"a spec with one of the rules {', '.join(rules())}"
        )


def techniques() -> tuple[str, ...]:
    return options(Reduction, "technique")


@dataclass(frozen=True)
class Combination:
    """A rule with a technique (None where it has none), with what of a spec means something for them.

    budget: where the model's size is set, as (section, key); None where it is the inputs' alone.
    """

    rule: str
    technique: str | None
    content: Content = field(repr=False)
    probe: Spec = field(repr=False)
    budget: tuple[str, str] | None

    @property
    def name(self) -> str:
        return f"{self.rule} {self.technique}" if self.technique else self.rule

    def means(self, section: str, key: str) -> bool:
        return means(self.probe, section, key)

    def with_values(self, size: int | None, values: Mapping[str, float]) -> Content:
        """A spec's content: of this size, with these values by "section.key"."""
        content = {key: dict(part) if isinstance(part, Mapping) else part for key, part in self.content.items()}
        if self.budget is not None and size is not None:
            content.setdefault(self.budget[0], {})[self.budget[1]] = size
        for name, value in values.items():
            section, key = name.split(".")
            content.setdefault(section, {})[key] = value
        return content


def means(spec: Spec, section: str, key: str) -> bool:
    """Whether a key means something for this model."""
    if section == "kernel":
        return spec.kernel is not None
    return spec.has(section, key)


def combine(base: Spec, chosen_rules: Sequence[str], chosen: Sequence[str]) -> tuple[list[Combination], list[Content]]:
    """Each rule with each technique, as far as they go together; and those that do not, with the reason."""
    require_online(base)
    content = _content(base)
    found: list[Combination] = []
    refused: list[Content] = []
    for rule in chosen_rules:
        try:
            chooses = means(_probe(content, rule, None), "reduction", "technique")
        except UserError as error:  # of the default technique, perhaps; if of every one, once is enough
            if not any(_works(content, rule, technique) for technique in chosen):
                refused.append({"rule": rule, "technique": None, "size": None, "reason": _reason(error)})
                continue
            chooses = True
        for technique in chosen if chooses else [None]:
            try:
                found.append(_combination(content, rule, technique))
            except UserError as error:
                refused.append({"rule": rule, "technique": technique, "size": None, "reason": _reason(error)})
    return found, refused


def _works(content: Content, rule: str, technique: str) -> bool:
    try:
        _probe(content, rule, technique)
    except UserError:
        return False
    return True


def _probe(content: Content, rule: str, technique: str | None) -> Spec:
    """The plainest spec of a rule and a technique.  Raises UserError if there is none."""
    plain: Content = {key: content[key] for key in ("name", "precision", "input", "label") if key in content}
    plain["learning"] = {"rule": rule}
    if technique is not None:
        plain["reduction"] = {"technique": technique} | (
            {"force": True} if content.get("reduction", {}).get("force") else {}
        )
    try:
        return make_spec(plain | {"kernel": content.get("kernel") or {"sigma": 1.0}})
    except UserError as error:
        if "[kernel]" not in str(error):
            raise
        return make_spec(plain)


def _combination(content: Content, rule: str, technique: str | None) -> Combination:
    probe = _probe(content, rule, technique)
    kept: Content = {key: content[key] for key in ("name", "precision", "input", "label") if key in content}
    if probe.kernel is not None:
        kept["kernel"] = probe.kernel.model_dump(mode="json", exclude_unset=True)
    for section, chosen in (("learning", {"rule": rule}), ("reduction", {"technique": technique} if technique else {})):
        own = {k: v for k, v in content.get(section, {}).items() if k not in chosen and means(probe, section, k)}
        own.pop("technique", None)
        if chosen or own:
            kept[section] = chosen | own
    budgets = [("reduction", "n_max"), ("learning", "features")]
    budget = next((b for b in budgets if means(probe, *b)), None)
    make_spec(kept)  # refuses what the spec's own keys make impossible
    return Combination(rule, technique, kept, probe, budget)


def _reason(error: UserError) -> str:
    return str(error).removeprefix("spec: ")


# --------------------------------------------------------------------------------------------------- coarse to fine


def held(spec: Spec, knob: Knob) -> float:
    value = getattr(getattr(spec, knob.section), knob.key)
    if value == "auto":
        value = stages.NOISE["noise_first"]
    return float(ridge_of(spec) if isinstance(spec, KernelSpec) and value is None and knob.key == "ridge" else value)


class Group:
    """The search of one combination at one size: the values tried, and their scores.

    A score is None where the spec refuses the values.
    """

    def __init__(self, combination: Combination, size: int | None, all_knobs: Sequence[Knob], base: Spec) -> None:
        self.combination, self.size = combination, size
        self.knobs = [knob for knob in all_knobs if combination.means(knob.section, knob.key)]
        # what a spec with nothing but the given keys has
        own = make_spec(combination.with_values(size, {}))
        self.own = {knob.name: held(own, knob) for knob in self.knobs}
        if base.kernel is None and "kernel.sigma" in self.own:  # there is no own width: the grid's middle
            sigma = self.knobs[0]
            self.own["kernel.sigma"] = sigma.value(sigma.grid[len(sigma.grid) // 2])
        self.scores: dict[tuple[float, ...], dict[str, Any] | None] = {}
        self.reason = ""  # of the last refusal

    def _grid(self) -> list[dict[str, float]]:
        axes = [[knob.value(p) for p in knob.grid] or [self.own[knob.name]] for knob in self.knobs]
        grid = [dict(zip(self.own, values, strict=True)) for values in itertools.product(*axes)]
        return [self.own, *(values for values in grid if values != self.own)]

    def coarse(self) -> list[dict[str, float]]:
        """The spec's own values, then the product of the grids."""
        return self._new(self._grid())

    def finer(self, number: int, by: Score) -> list[dict[str, float]]:
        """The best's neighbours, a step up or down; the step halves from round to round (number: 0, 1, ...)."""
        best = self.best(by)
        if best is None:
            return []
        middle = [knob.position(value) for knob, value in zip(self.knobs, best, strict=True)]
        around = []
        for steps in self._steps():
            positions = [p + s * k.step / 2 ** (number + 1) for p, s, k in zip(middle, steps, self.knobs, strict=True)]
            values = [
                knob.value(position) if step else value
                for knob, position, step, value in zip(self.knobs, positions, steps, best, strict=True)
            ]
            around.append(dict(zip(self.own, values, strict=True)))
        return self._new(around)

    def _steps(self) -> list[tuple[int, ...]]:
        """Directions around a point: all of the first two parameters', which depend on each other, and each other's."""
        both = list(itertools.product((0, -1, 1), repeat=min(2, len(self.knobs))))
        rest = [0] * (len(self.knobs) - len(both[0]))
        found = [(*step, *rest) for step in both]
        for i in range(len(both[0]), len(self.knobs)):
            found += [tuple(sign if j == i else 0 for j in range(len(self.knobs))) for sign in (-1, 1)]
        return [step for step in found if any(step)]

    def _new(self, candidates: Iterable[Mapping[str, float]]) -> list[dict[str, float]]:
        fresh = {tuple(values.values()): dict(values) for values in candidates}
        return [values for key, values in fresh.items() if key not in self.scores]

    def content(self, values: Sequence[float]) -> Content:
        return self.combination.with_values(self.size, dict(zip(self.own, values, strict=True)))

    def bound(self, rounds: int) -> int:
        """Most tries."""
        return len(self._grid()) + rounds * len(self._steps())

    def best(self, by: Score) -> tuple[float, ...] | None:
        """The values of the smallest error, the earliest of equals; None if nothing worked."""
        worked = [(objective(score, by), i, key) for i, (key, score) in enumerate(self.scores.items())]
        error, _, key = min(worked, default=(math.inf, 0, None))
        return key if math.isfinite(error) else None


def objective(score: Mapping[str, Any] | None, by: Score) -> float:
    """What is minimised: the error; infinite where the model diverged or was refused."""
    if score is None or score["diverged"] or score[by] is None or not math.isfinite(score[by]):
        return math.inf
    return float(score[by])


def search(
    groups: Sequence[Group],
    workers: Workers,
    by: Score,
    delay: int,
    rounds: int = ROUNDS,
) -> None:
    """Fill the groups' scores: the coarse grids of all, then ``rounds`` refinements around the best of those that are
    worth it."""
    for number in range(-1, rounds):
        batch: list[tuple[Group, dict[str, float]]] = []
        for group in groups if number < 0 else worth_refining(groups, workers, by):
            for values in group.coarse() if number < 0 else group.finer(number, by):
                try:
                    make_spec(group.combination.with_values(group.size, values))
                    batch.append((group, values))
                except UserError as error:
                    group.scores[tuple(values.values())] = None
                    group.reason = _reason(error)
        batch = _in_turn(batch)
        scores = workers.run([_score_task(g, values, delay) for g, values in batch])
        for (group, values), score in zip(batch, scores, strict=True):
            group.scores[tuple(values.values())] = score


def _in_turn(batch: Sequence[tuple[Group, dict[str, float]]]) -> list[tuple[Group, dict[str, float]]]:
    """One run of each combination, then another of each: workers compile different combinations, and none does it twice."""
    seen: Counter[int] = Counter()
    turns = []
    for i, (group, _) in enumerate(batch):
        seen[id(group.combination)] += 1
        turns.append((seen[id(group.combination)], i))
    return [batch[i] for _, i in sorted(turns)]


def worth_refining(groups: Sequence[Group], workers: Workers, by: Score) -> list[Group]:
    """Groups that may end up on the front, and each combination at its best size.

    Those whose error is at most WORTH_REFINING times the best error in no more RAM.
    """
    from pykernel.tuning.costs import memory_bytes

    know_memory((group.content(best) for group in groups if (best := group.best(by)) is not None), workers)
    found = []
    for group in groups:
        if (best := group.best(by)) is not None:
            ram = memory_bytes(make_spec(group.content(best)))["ram_bytes"]
            found.append((objective(group.scores[best], by), ram, group))
    chosen = []
    for error, ram, group in found:
        rival = min(other for other, bytes_, _ in found if bytes_ <= ram)
        kin = min(other for other, _, g in found if g.combination is group.combination)
        if error <= WORTH_REFINING * rival or error == kin:
            chosen.append(group)
    return chosen


def _score_task(group: Group, values: Mapping[str, float], delay: int) -> dict[str, Any]:
    # whatever the model is called
    content = group.combination.with_values(group.size, values) | {"name": "model"}
    return {"do": "score", "spec": content, "delay": delay}


def cost_task(content: Content, target: str, tries: int = 0) -> dict[str, Any]:
    from pykernel.tuning.costs import generator_digest

    how = {"target": target, "tries": tries, "generator": generator_digest()}
    return {"do": "cost", "spec": content | {"name": "model"}} | how


def know_memory(contents: Iterable[Content], workers: Workers) -> None:
    """Find out, on the workers, what ``memory_bytes`` needs for such specs."""
    from pykernel.tuning.costs import generator_digest, know_fields

    def find(specs: list[Spec]) -> list[list[str]]:
        tasks = [
            {"do": "fields", "spec": _content(spec) | {"name": "model"}, "generator": generator_digest()}
            for spec in specs
        ]
        return [found["unread"] for found in workers.run(tasks)]

    know_fields(map(make_spec, contents), find)


def _content(spec: Spec) -> Content:
    return spec.model_dump(mode="json", exclude_unset=True)


def work(task: Mapping[str, Any], shared: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """A task of a search, on whatever machine: a prequential run, or a measurement on an emulated target."""
    from pykernel.tuning.costs import target_costs, unread_fields

    spec, (x, y) = make_spec(task["spec"]), shared
    if task["do"] == "score":
        return prequential(spec, Data(x, y, task["delay"]))
    if task["do"] == "fields":
        return {"unread": list(unread_fields(spec))}
    known = Data(x, y).known & (np.abs(x) <= spec.input.max_abs).all(axis=1)
    if y.dtype.kind == "f":
        known &= (np.abs(y.reshape(len(y), -1)) <= spec.label.max_abs).all(axis=1)
    return target_costs(spec, x[known], y[known], task["target"], tries=task["tries"])


def context(base: Spec, data: Data) -> dict[str, str]:
    """What results depend on beside a task: the data, and the algorithms' sources."""
    kernels = [
        entry.kernel
        for family in FAMILIES
        for kind, program in family.programs.items()
        if kind == base.label_kind
        for entry in program.entries
    ]
    return {"data": data.digest, "sources": sources_digest(kernels)}


# ------------------------------------------------------------------------------------------------------------ fronts


def front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Positions of those that no other is at least as good as in everything and better in something (Pareto)."""
    points = np.asarray(costs, float).reshape(len(costs), -1) if len(costs) else np.zeros((0, 1))
    return [i for i, p in enumerate(points) if not ((points <= p).all(axis=1) & (points < p).any(axis=1)).any()]


@dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    rows: each combination and size at its best, best first: see ``_row``; refused: what could not be tried, or did
    nothing but diverge, with the reason.  best, cheapest, fastest: positions in rows; fastest is None if instructions
    were not measured.  trivial: errors of what a model has to beat.
    """

    by: Score
    rows: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    trivial: dict[str, Any]
    best: int | None
    cheapest: int | None
    fastest: int | None
    tries: int
    target: str | None
    note: str


def plan_groups(
    base: Spec, data: Data, chosen_rules: Sequence[str], chosen: Sequence[str], sizes: Sequence[int]
) -> tuple[list[Group], list[dict[str, Any]]]:
    """The groups of a sweep, and the combinations that are refused."""
    for size in sizes:
        if not 1 <= size <= N_MAX_LIMIT:
            raise UserError(f"N_max is {size}; it must be from 1 to {N_MAX_LIMIT:,}")
    combinations, refused = combine(base, chosen_rules, chosen)
    every = knobs(typical_distance(base, data.x))
    groups = []
    for combination in combinations:
        tried: list[int | None] = [*dict.fromkeys(sizes)] if combination.budget else [None]
        for budget in tried:
            try:
                groups.append(Group(combination, budget, every, base))
            except UserError as error:
                refused.append(
                    {
                        "rule": combination.rule,
                        "technique": combination.technique,
                        "size": budget,
                        "reason": _reason(error),
                    }
                )
    return groups, refused


def sweep(
    base: Spec,
    data: Data,
    workers: Workers,
    groups: Sequence[Group],
    refused: Sequence[dict[str, Any]],
    by: Score,
    rounds: int = ROUNDS,
    target: str | None = None,
) -> Sweep:
    """Search, then measure what is worth it on the target.  Arguments as from ``plan_groups``."""
    search(groups, workers, by, data.delay, rounds)
    rows, hopeless = results(groups, workers, by)
    note = ""
    if target is None:
        note = "instructions were not measured"
    elif rows:
        note = _measure(rows, workers, by, target)
    picks = pick(rows, by)
    return Sweep(
        by,
        rows,
        [*refused, *hopeless],
        trivial(base, data),
        *picks,
        sum(len(group.scores) for group in groups),
        target,
        note,
    )


def results(groups: Sequence[Group], workers: Workers, by: Score) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each group at its best, best first, and the groups of which nothing worked."""
    know_memory((group.content(best) for group in groups if (best := group.best(by)) is not None), workers)
    rows, hopeless = [], []
    for group in groups:
        best = group.best(by)
        if best is None:
            hopeless.append(_hopeless(group))
        else:
            rows.append(_row(group, best, by))
    rows.sort(key=lambda row: (row[by], row["ram_bytes"], row["rule"], row["technique"] or "", row["size"] or 0))
    for i in front([(row[by], row["ram_bytes"]) for row in rows]):
        rows[i]["front"] = True
    return rows, hopeless


def _row(group: Group, best: tuple[float, ...], by: Score) -> dict[str, Any]:
    from pykernel.tuning.costs import memory_bytes

    content = group.content(best)
    score = group.scores[best]
    assert score is not None  # best() chose it
    return {
        "rule": group.combination.rule,
        "technique": group.combination.technique,
        "size": group.size,
        **{key: score[key] for key in MEASURES if key in score},
        **memory_bytes(make_spec(content)),
        "costs": None,
        "front": False,
        "instruction_front": False,
        "values": dict(zip(group.own, best, strict=True)),
        "tried": len(group.scores),
        "diverged": sum(1 for tried in group.scores.values() if tried is not None and tried["diverged"]),
        "inputs_refused": score["inputs_refused"],
        "labels_refused": score["labels_refused"],
        "spec": content,
    }


def _hopeless(group: Group) -> dict[str, Any]:
    tried = [score for score in group.scores.values() if score is not None]
    if not tried:
        reason = group.reason
    elif all(score["diverged"] for score in tried):
        least = min(score["diverged"] for score in tried)
        reason = f"diverges: each of {len(tried)} settings had updates refused to keep the model in its range ({least:,} at least)"
    else:
        reason = "no row of the second half could be predicted; raise [input] max_abs or [label] max_abs"
    return {
        "rule": group.combination.rule,
        "technique": group.combination.technique,
        "size": group.size,
        "reason": reason,
    }


def _measure(rows: list[dict[str, Any]], workers: Workers, by: Score, target: str) -> str:
    """Fill in what the worthwhile rows cost on the target; what there is to say about it."""
    from pykernel.targets.check import choose

    try:
        choose([target], None, "unicorn")
    except MissingExtra as missing:
        return f"instructions were not measured: {missing}"
    chosen = worth_measuring(rows, by)
    for i, costs in zip(chosen, workers.run([cost_task(rows[i]["spec"], target) for i in chosen]), strict=True):
        rows[i]["costs"] = costs
    measured = [i for i in chosen if instructions(rows[i]) is not None]
    for i in front([(rows[j][by], instructions(rows[j]) or 0) for j in measured]):
        rows[measured[i]]["instruction_front"] = True
    return (
        f"instructions of one update on {target}: the mean over {SAMPLES_TEXT}; measured for {len(measured)} of "
        f"{len(rows)} rows: the rows on the front of error against bytes, and the rows that could be on the front of error "
        "against instructions"
    )


SAMPLES_TEXT = "samples from the middle of the stream on"


def worth_measuring(rows: Sequence[Mapping[str, Any]], by: Score) -> list[int]:
    """Rows that may be on the front of error against instructions, as far as that can be told without measuring.

    Those on the front of error against bytes; the best of each rule; and of each rule and technique, where instructions
    grow with the size, those that are better than all smaller ones and within WORTH_MEASURING of the best.
    """
    chosen = {i for i, row in enumerate(rows) if row["front"]}
    seen = set()
    for i, row in enumerate(rows):
        if row["rule"] not in seen:
            seen.add(row["rule"])
            chosen.add(i)
    for name in {(row["rule"], row["technique"]) for row in rows}:
        line = [i for i, row in enumerate(rows) if (row["rule"], row["technique"]) == name]
        for k in front([(rows[i][by], rows[i]["size"] or 0) for i in line]):
            if rows[line[k]][by] <= WORTH_MEASURING * rows[0][by]:
                chosen.add(line[k])
    return sorted(chosen)


def instructions(row: Mapping[str, Any]) -> float | None:
    """Mean instructions of an update, where they were measured."""
    costs = row["costs"]
    return costs["update"]["mean"] if costs and costs.get("update") else None


def pick(rows: Sequence[Mapping[str, Any]], by: Score) -> tuple[int | None, int | None, int | None]:
    """Positions of the best, of the smallest within NEAR of it, and of the fastest within NEAR that was measured."""
    if not rows:
        return None, None, None
    near = [i for i, row in enumerate(rows) if row[by] <= NEAR * rows[0][by]]
    cheapest = min(near, key=lambda i: (rows[i]["ram_bytes"], rows[i][by], i))
    timed = [(count, rows[i][by], i) for i in near if (count := instructions(rows[i])) is not None]
    return 0, cheapest, min(timed)[2] if timed else None
