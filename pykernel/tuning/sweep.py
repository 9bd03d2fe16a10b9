"""Choosing a model by trials on recorded data: rules, techniques, budgets, and parameters from coarse to fine.

Each trial is a complete prequential run, as on the device: row t is predicted, then row t - delay is learned.  The
error is that of the second half of the stream.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.host.simulate import DELAY_LIMIT, Simulation
from pykernel.parallel import Workers
from pykernel.spec.model import N_MAX_LIMIT, Spec, make_spec
from pykernel.spec.sections import StandardisedInput
from pykernel.telling import refuse
from pykernel.tuning.combinations import (
    Combination,
    Content,
    Knob,
    Known,
    combine,
    held,
    knobs,
    reason_of,
    trained_at_once,
)
from pykernel.tuning.costs import cost_task, know_fields, memory_bytes
from pykernel.tuning.stage import dump
from pykernel.tuning.trials import Table, content_of

SIZES = (8, 16, 32, 64)
ROUNDS = 3
"""How often the grid is refined around the best values."""
NEAR = 1.05
"""The "cheapest" model is the smallest one whose error is at most this factor times the smallest error."""
WORTH_REFINING = 1.25
"""A model's parameters are refined if its error on the coarse grid is at most this factor times the smallest error of
models that need no more memory."""
WORTH_MEASURING = 1.25
"""A model's instructions are measured if its error is at most this factor times the smallest error, or if no smaller
model is as good."""
PAIRS = 2000
"""Number of pairs of inputs whose distances determine the range of sigma."""

TRAININGS = 10
"""For models that the device trains on collected samples: how often they are trained over the whole stream."""

Score = Literal["mae", "rmse", "error_rate"]
MEASURES: tuple[Score, ...] = get_args(Score)

# ---------------------------------------------------------------------------------------------------------- the data


@dataclass(frozen=True)
class Data(Table):
    """A recorded stream, as of Table; its second half is judged, or that of each device, which begins anew."""

    def __post_init__(self) -> None:
        refuse(
            (
                not 0 <= self.delay <= DELAY_LIMIT,
                f"delay is {self.delay}; it must be from 0 to {DELAY_LIMIT:,} rows",
            ),
            (
                self.delay >= max(self.split, 1),
                f"delay is {self.delay:,}, but the data has {len(self.x):,} rows; the error is that of the second half, "
                "and labels must arrive before it begins",
            ),
            (
                not self.labelled[self.split :].any(),
                "the data's second half holds no labels; the error is taken there",
            ),
        )

    @property
    def split(self) -> int:
        return len(self.x) // 2 if self.devices is None else super().split


def prequential(spec: Spec, data: Table, judges: bool = False) -> dict[str, Any]:
    """Errors of a model over the data's second half, each row predicted before its label is known: as of Simulation.

    mae and rmse, in the label's unit (for several labels, their means), or error_rate for classes; None if no row could
    be predicted.  scored: number of scored rows.  diverged: updates that were refused because the model would leave its
    range.
    inputs_refused, labels_refused: rows beyond the spec's limits; rows with a missing input are not counted.
    train_every: number of labels between two trainings, for a model that the device trains.
    judges: of many devices, those that judge in place of those that choose.
    """
    found = [_found(spec, x, simulation) for x, simulation in _simulated(spec, data, judges)]
    first, counts = found[0], ("scored", "diverged", "inputs_refused", "labels_refused")
    return (
        first
        if len(found) == 1
        else first | _together(found) | {key: sum(each[key] for each in found) for key in counts}
    )


def _found(spec: Spec, x: np.ndarray, simulation: Simulation) -> dict[str, Any]:
    """The result of one run.  x: its rows."""
    found = simulation.summary(simulation.errors, simulation.rows // 2)
    refused = {status.name: count for status, count in simulation.statuses.items() if status < 0}
    return {
        **{key: found[key]["model"] for key in MEASURES if key in found},
        "scored": found["scored"],
        "diverged": sum(count for name, count in refused.items() if name not in ("REFUSED_INPUT", "REFUSED_LABEL")),
        "inputs_refused": simulation.inputs_refused - (0 if spec.completes else int(np.isnan(x).any(axis=1).sum())),
        "labels_refused": refused.get("REFUSED_LABEL", 0),
        **({"train_every": simulation.train_every} if simulation.train_every else {}),
    }


def _together(found: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The errors of all devices' scored rows."""
    rows = [each["scored"] for each in found]
    told: dict[str, float | None] = {}
    for key in MEASURES:
        if key in found[0]:
            power = 2 if key == "rmse" else 1
            sums = [
                each[key] ** power * count for each, count in zip(found, rows, strict=True) if each[key] is not None
            ]
            told[key] = (math.fsum(sums) / sum(rows)) ** (1 / power) if sum(rows) else None
    return told


def trivial(spec: Spec, data: Table, judges: bool = False) -> dict[str, dict[str, float | None]]:
    """Errors of the simple predictors, which every model should beat, by the same measures.  judges: see ``prequential``."""
    found = [run.summary(run.errors, run.rows // 2) for _, run in _simulated(spec, data, judges)]
    measures = [key for key in MEASURES if key in found[0]]
    every = {
        name: [{key: each[key][name] for key in measures} | {"scored": each["scored"]} for each in found]
        for name in found[0][measures[0]]
        if name != "model"
    }
    return {
        name: {key: each[0][key] for key in measures} if len(each) == 1 else _together(each)
        for name, each in every.items()
    }


def _simulated(spec: Spec, data: Table, judges: bool) -> Iterator[tuple[np.ndarray, Simulation]]:
    """The rows of each run, and the run: one, or of many devices one for each."""
    for rows in [slice(None)] if data.devices is None else data.devices.slices(judges):
        every = max(1, int(data.labelled[rows].sum()) // TRAININGS) if trained_at_once(spec) else 0
        simulation = Simulation(spec, data.delay, train_every=every, forecasts=True)
        for _ in simulation.run(data.x[rows], data.labels[rows]):
            pass
        yield data.x[rows], simulation


def typical_distance(spec: Spec | None, x: np.ndarray) -> float:
    """The median distance of two inputs, as the model sees them, over PAIRS pairs that are always the same.

    spec: None for a model whose vectors are chosen from standardised inputs.
    """
    x = x[np.isfinite(x).all(axis=1)]
    if spec is not None:
        x = x[spec.accepts(x)]
        center, scale = spec.scaling
        x = (x - (0.0 if center is None else center)) * (1.0 if scale is None else scale)
    standardises = spec is None or (isinstance(spec.input, StandardisedInput) and spec.input.standardise)
    if standardises and len(x):
        deviation = x.std(axis=0)
        x = (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        if spec is not None and isinstance(spec.input, StandardisedInput):
            x = np.clip(x, -spec.input.clip, spec.input.clip)
    if len(x) < 2:
        return 1.0
    pairs = np.random.default_rng(0).integers(0, len(x), (PAIRS, 2))
    distances = np.sqrt(np.square(x[pairs[:, 0]] - x[pairs[:, 1]]).sum(axis=1))
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


# --------------------------------------------------------------------------------------------------- coarse to fine


class Group:
    """The search of one combination at one size: the values tried, and their scores.

    A score is None where the spec refuses the values.
    """

    def __init__(self, combination: Combination, size: int | None, all_knobs: Sequence[Knob], base: Spec) -> None:
        self.combination, self.size = combination, size
        self.knobs = [knob for knob in all_knobs if combination.means(knob.section, knob.key)]
        self.own: dict[str, float] = {}
        if combination.spec is not None:
            # the values of a spec with only the given keys
            own = make_spec(combination.with_values(size, {}))
            self.own = {knob.name: held(own, knob) for knob in self.knobs}
        if self.knobs and (combination.spec is None or (base.kernel is None and "kernel.sigma" in self.own)):
            sigma = self.knobs[0]  # the spec has no width of its own: take the middle of the grid
            self.own["kernel.sigma"] = sigma.value(sigma.grid[len(sigma.grid) // 2])
        self.scores: dict[tuple[float, ...], dict[str, Any] | None] = {}
        self.reason = ""  # of the last refusal

    def coarse(self) -> list[dict[str, float]]:
        """The spec's own values, then the product of the grids."""
        axes = [[knob.value(p) for p in knob.grid] or [self.own[knob.name]] for knob in self.knobs]
        grid = [dict(zip(self.own, values, strict=True)) for values in itertools.product(*axes)]
        return [self.own, *(values for values in grid if values != self.own)]

    def finer(self, number: int, by: Score) -> list[dict[str, float]]:
        """The neighbours of the best values, one step up or down.

        number: the round, from 0; each round halves the step.
        """
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
        return around

    def _steps(self) -> list[tuple[int, ...]]:
        """Directions around a point: all combinations of the first two parameters, which depend on each other; and each
        of the other parameters alone.
        """
        both = list(itertools.product((0, -1, 1), repeat=min(2, len(self.knobs))))
        rest = [0] * (len(self.knobs) - len(both[0]))
        found = [(*step, *rest) for step in both]
        for i in range(len(both[0]), len(self.knobs)):
            found += [tuple(sign if j == i else 0 for j in range(len(self.knobs))) for sign in (-1, 1)]
        return [step for step in found if any(step)]

    def fresh(self, candidates: Iterable[dict[str, float]]) -> list[dict[str, float]]:
        """The candidates that were not tried yet, each once."""
        return list(
            {key: values for values in candidates if (key := tuple(values.values())) not in self.scores}.values()
        )

    def content(self, values: tuple[float, ...]) -> Content:
        """The spec's content, once it was tried."""
        score = self.scores[values]
        if score is not None and "spec" in score:
            return dict(score["spec"])
        return self.combination.with_values(self.size, dict(zip(self.own, values, strict=True)))

    def bound(self, rounds: int) -> int:
        """The largest possible number of trials."""
        return len(self.coarse()) + rounds * len(self._steps())

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
    data: Data,
    rounds: int = ROUNDS,
) -> None:
    """Fill the groups' scores: first the coarse grids of all groups, then ``rounds`` refinements for the promising
    groups.
    """
    for number in range(-1, rounds):
        batch: list[tuple[Group, dict[str, float]]] = []
        for group in groups if number < 0 else worth_refining(groups, workers, by, data):
            for values in group.fresh(group.coarse() if number < 0 else group.finer(number, by)):
                try:
                    group.combination.check(group.size, values)
                    batch.append((group, values))
                except UserError as error:
                    group.scores[tuple(values.values())] = None
                    group.reason = reason_of(error)
        batch = _in_turn(batch)
        scores = workers.run([_score_task(g, values, data.delay) for g, values in batch])
        for (group, values), score in zip(batch, scores, strict=True):
            group.scores[tuple(values.values())] = None if "reason" in score else score
            group.reason = score.get("reason", group.reason)


def _in_turn(batch: Sequence[tuple[Group, dict[str, float]]]) -> list[tuple[Group, dict[str, float]]]:
    """Order the runs so that combinations alternate: workers then compile different combinations, and none twice."""
    runs: dict[int, list[tuple[Group, dict[str, float]]]] = {}
    for each in batch:
        runs.setdefault(id(each[0].combination), []).append(each)
    return [each for turn in itertools.zip_longest(*runs.values()) for each in turn if each is not None]


def worth_refining(groups: Sequence[Group], workers: Workers, by: Score, data: Data) -> list[Group]:
    """Groups that may end up on the front, and each combination at its best size.

    Those whose error is at most WORTH_REFINING times the best error in no more RAM.
    """
    found = [
        (objective(group.scores[best], by), memory_bytes(whole)["ram_bytes"], group)
        for group, best, whole in known_wholes(groups, workers, by, data)
    ]
    chosen = []
    for error, ram, group in found:
        rival = min(other for other, bytes_, _ in found if bytes_ <= ram)
        kin = min(other for other, _, g in found if g.combination is group.combination)
        if error <= WORTH_REFINING * rival or error == kin:
            chosen.append(group)
    return chosen


def _score_task(group: Group, values: Mapping[str, float], delay: int) -> dict[str, Any]:
    return {"do": "score", "delay": delay, **group.combination.task(group.size, values)}


def known_wholes(
    groups: Sequence[Group], workers: Workers, by: Score, data: Data
) -> list[tuple[Group, tuple[float, ...], Spec]]:
    """Each group that had a successful run, with its best values and the spec for them.

    Afterwards ``memory_bytes`` of these specs is fast.
    """
    bests = [(group, best) for group in groups if (best := group.best(by)) is not None]
    found = [(group, best, data.whole(group.content(best))) for group, best in bests]
    know_fields((whole for _, _, whole in found), workers)
    return found


def scored(task: Mapping[str, Any], data: Table) -> dict[str, Any]:
    """The result of a trial: as of ``prequential``; for vectors that come from the data, also the spec."""
    content = content_of(task, data)
    found = prequential(data.whole(content).inner, data, task.get("judges", False))
    return found | ({} if "spec" in task else {"spec": content})


# ------------------------------------------------------------------------------------------------------------ fronts


def front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Positions of the Pareto front: points for which no other point is at least as good in all costs and better in
    one.
    """
    points = np.asarray(costs, float).reshape(len(costs), -1) if len(costs) else np.zeros((0, 1))
    return [i for i, p in enumerate(points) if not ((points <= p).all(axis=1) & (points < p).any(axis=1)).any()]


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    rows: the best result of each combination and size, the best first; see ``_row``.  refused: combinations that could
    not be tried, or always diverged, with the reason.  picks: positions in rows of the best, the cheapest and the
    fastest, if there are such.  trivial: errors of the simple predictors.
    """

    by: Score
    rows: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    trivial: dict[str, Any]
    picks: dict[str, int]
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
    known = Known.of(data.x[: data.split], data.labels[: data.split])
    combinations, refused = combine(dump(base), known, chosen_rules, chosen)
    groups = []
    for combination in combinations:
        every = knobs(typical_distance(combination.spec, data.x))
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
                        "reason": reason_of(error),
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
    search(groups, workers, by, data, rounds)
    rows, hopeless = results(groups, workers, by, data)
    note = ""
    if target is None:
        note = "instructions were not measured"
    elif rows:
        note = _measure(rows, workers, by, target)
    tries = sum(len(group.scores) for group in groups)
    return Sweep(by, rows, [*refused, *hopeless], trivial(base, data), pick(rows, by), tries, target, note)


def results(
    groups: Sequence[Group], workers: Workers, by: Score, data: Data
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The best result of each group, the best first; and the groups without a successful run."""
    wholes = known_wholes(groups, workers, by, data)
    rows = [_row(group, best, whole) for group, best, whole in wholes]
    if data.devices is not None:
        again = [
            _score_task(group, dict(zip(group.own, best, strict=True)), data.delay) | {"judges": True}
            for group, best, _ in wholes
        ]
        for row, judged in zip(rows, workers.run(again), strict=True):
            row["left_out"] = {key: judged[key] for key in MEASURES if key in judged}
    hopeless = [_hopeless(group) for group in groups if group.best(by) is None]
    rows.sort(key=lambda row: (row[by], row["ram_bytes"], row["rule"], row["technique"] or "", row["size"] or 0))
    for i in front([(row[by], row["ram_bytes"]) for row in rows]):
        rows[i]["front"] = True
    return rows, hopeless


def _row(group: Group, best: tuple[float, ...], whole: Spec) -> dict[str, Any]:
    score = group.scores[best]
    assert score is not None  # best() chose it
    return {
        "rule": group.combination.rule,
        "technique": group.combination.technique,
        "size": group.size,
        **{key: score[key] for key in MEASURES if key in score},
        **memory_bytes(whole),
        "costs": None,
        "front": False,
        "instruction_front": False,
        "values": dict(zip(group.own, best, strict=True)),
        "tried": len(group.scores),
        "diverged": sum(1 for tried in group.scores.values() if tried is not None and tried["diverged"]),
        "inputs_refused": score["inputs_refused"],
        "labels_refused": score["labels_refused"],
        **({"train_every": score["train_every"]} if "train_every" in score else {}),
        "spec": dump(whole),
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
    """Measure the promising rows on the target, and add their costs.  Returns a sentence about the measurement."""
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
        f"instructions of one update on {target}: the mean over samples from the middle of the stream on; measured for {len(measured)} of "
        f"{len(rows)} rows: the rows on the front of error against bytes, and the rows that could be on the front of error "
        "against instructions"
    )


def worth_measuring(rows: Sequence[Mapping[str, Any]], by: Score) -> list[int]:
    """Rows that may be on the front of error against instructions, chosen without a measurement.

    These are the rows on the front of error against bytes, and the best row of each rule.  Within a rule and technique,
    instructions grow with the size; so each row that is better than all smaller ones and within WORTH_MEASURING of the
    best is included as well.
    """
    best_of_rules = {row["rule"]: i for i, row in reversed(list(enumerate(rows)))}
    chosen = {i for i, row in enumerate(rows) if row["front"]} | set(best_of_rules.values())
    for name in {(row["rule"], row["technique"]) for row in rows}:
        line = [i for i, row in enumerate(rows) if (row["rule"], row["technique"]) == name]
        for k in front([(rows[i][by], rows[i]["size"] or 0) for i in line]):
            if rows[line[k]][by] <= WORTH_MEASURING * rows[0][by]:
                chosen.add(line[k])
    return sorted(chosen)


def instructions(row: Mapping[str, Any]) -> float | None:
    """Mean instructions of an update; None if not measured, and for a model whose work is done in its training."""
    costs = row["costs"]
    return costs["update"]["mean"] if costs and costs.get("update") and "train_every" not in row else None


def pick(rows: Sequence[Mapping[str, Any]], by: Score) -> dict[str, int]:
    """Positions of the best, of the smallest within NEAR of it, and of the fastest within NEAR that was measured."""
    near = [i for i, row in enumerate(rows) if row[by] <= NEAR * rows[0][by]]
    small = [(rows[i]["ram_bytes"], rows[i][by], i) for i in near]
    timed = [(count, rows[i][by], i) for i in near if (count := instructions(rows[i])) is not None]
    ranked = {"best": near, "cheapest": [i for *_, i in sorted(small)], "fastest": [i for *_, i in sorted(timed)]}
    return {name: found[0] for name, found in ranked.items() if found}
