"""Choosing a model for a device: all kinds of models, within limits of RAM, flash and instructions, in a given time.

A plan is a series of trials (``trials.py``): first each kind of model with settings that work on raw data, then changes
of the best ones.  It has a result from the first trial on.  The chosen model depends only on the trials that were made,
their seed and the data; not on the number of processes or their speed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import CheckFailed, UserError, option
from pykernel.parallel import Workers
from pykernel.spec.defaults import completed, width
from pykernel.spec.model import OUTPUTS_LIMIT, Spec, make_spec
from pykernel.spec.sections import fpu_of
from pykernel.tuning.columns import (
    Show,
    few_values,
    finite_values,
    left_out,
    likely_inputs,
    listed,
    numeric_columns,
    read_columns,
)
from pykernel.tuning.combinations import (
    NUMBERS_INPUT,
    NUMBERS_LABEL,
    TRAINED,
    TRAINING,
    Combination,
    Content,
    Knob,
    Known,
    Whole,
    combine,
    held,
    knobs,
    rules,
    trained_at_once,
    whole_combinations,
)
from pykernel.tuning.stage import dump
from pykernel.tuning.sweep import cost_task
from pykernel.tuning.trials import Table, stand_in

LEAST, START, MOST = 4, 32, 128
"""Sizes: the least, the first and the largest that a plan tries."""
BATCH, FEW_AT_ONCE, MANY_ROWS = 8, 4, 10_000
"""Trials between two checks of the clock: BATCH, or FEW_AT_ONCE with more than MANY_ROWS rows."""
FEW_ROWS = 100
"""With fewer rows, a plan warns."""
NEAR = 1.01
"""Models with an error up to this factor above the smallest one (for classes: up to one more wrong row) count as
equally good; the one with the fewest bytes is chosen."""
SMALLER = 1.05
"""A model with an error up to this factor above the planned model's error is reported as well, if it needs at most half
of the bytes."""
MOST_TRAINED = 64
"""Most trained vectors.  More vectors take long to train, and are seldom better."""
SHARES = (1.0, 1 / 2, 1 / 4)
"""Numbers of trained vectors that are tried, as fractions of the largest number within the limits, up to START."""
STOOD_IN = (4, 16)
"""Numbers of random vectors whose costs are measured.

From them, the largest number of vectors within the limits follows.
"""
LEADERS = 6
"""How many of the best arms are changed."""
WIDTHS = (1 / 4, 1 / 2, 2.0)
"""Factors of the initial width with which each kernel is tried as well."""
RULES_WITH_TECHNIQUES = 3
"""How many of the best rules are tried with every technique."""
RETRIES = 4
"""How often a model that is too large is tried with a smaller size before other trials."""
HEADROOM = 0.96
"""Fraction of the limit of instructions that a model without a proved bound may use, because the longer search for the
worst case at the end finds slightly more instructions."""
ASKED = ("predict", "classify", "novelty")
CALLS = ("update", "push", "push_labelled", *ASKED, "forecast", *(f"forecast_{question}" for question in ASKED))
"""The functions for which the limit of instructions holds."""
TRIES = 200
"""Tries in the search for the most expensive update, for each model that is measured; the winner gets more."""
VERIFIED = 12
"""Most models that are verified, beginning with the best, before the plan gives up."""
EMULATED = 600_000_000
"""Approximate number of instructions that are emulated to verify a model."""


class NothingFits(CheckFailed):
    """No model that was tried keeps all limits.  The command exits with 1.  report: what was found."""

    report: dict[str, Any] | None = None


@dataclass(frozen=True)
class Limits:
    """Limits for a model on a target: bytes of RAM (struct and stack) and of flash (everything that is linked), and
    instructions and cycles of a single call (the proved bound, else the worst case that was found).  Without a target,
    only the bytes of the struct are limited.
    """

    target: str | None = None
    ram: int | None = None
    flash: int | None = None
    instructions: int | None = None
    cycles: int | None = None

    def uses(self, **taken: int | None) -> dict[str, float]:
        """For each limit: the fraction that is used."""
        limits = {"ram": self.ram, "flash": self.flash, "instructions": self.instructions, "cycles": self.cycles}
        return {
            name: used / limit
            for name, used in taken.items()
            if used is not None and (limit := limits[name]) is not None
        }


def parse_amount(given: str | int, name: str, thousand: int = 1024) -> int:
    """A number from text such as 4k, 4kB, 4KiB, 0.5M or 4096.  name: the argument's name; thousand: the value of k."""
    text = str(given)
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKmM]?)(?:i?[bB])?\s*", text, re.ASCII)
    if found is None or len(text) > 30:
        raise UserError(f"{option(name)} is {text[:40]!r}; it must be a number such as 4k, 4kB or 4096")
    amount = float(found[1]) * thousand ** {"": 0, "k": 1, "m": 2}[found[2].lower()]
    if amount < 1:
        raise UserError(f"{option(name)} is {text!r}; it must be at least 1")
    if amount >= 2**40:
        raise UserError(f"{option(name)} is {text!r}, which no microcontroller has; is the unit right?")
    return int(amount)


def make_limits(
    target: str | None, ram: int | None, flash: int | None, instructions: int | None, cycles: int | None = None
) -> Limits:
    """The limits; a limit that is not given is that of the target's part.

    Raises UserError if the part has less than a given limit, or if the target's cycles are not known.
    """
    from pykernel.targets.build import toolchain
    from pykernel.targets.decode import EXACT
    from pykernel.targets.target import find_target

    if target is None:
        return Limits(None, ram)
    part = find_target(target).part
    for name, given, there in (("ram", ram, part.ram.bytes), ("flash", flash, part.flash.bytes)):
        if given is not None and given > there:
            raise UserError(
                f"{option(name)} is {given:,} bytes, but {part.name}, which stands for {target}, has {there:,}"
            )
    exact = [name for name in EXACT if find_target(name).unicorn]
    if cycles is not None and target not in exact:
        raise UserError(
            f"{option('cycles')}: those of {target} do not follow from its instructions; give {option('instructions')}, or {option('target')} {' or '.join(exact)}"
        )
    if cycles is not None:
        toolchain(find_target(target), "gcc")  # raises if gcc is missing: there are bounds only for its code
    return Limits(target, ram or part.ram.bytes, flash or part.flash.bytes, instructions, cycles)


# --------------------------------------------------------------------------------------------- a spec from the data


@dataclass(frozen=True)
class Inferred:
    """The results from a table alone: a spec's content without a rule, the data, and sentences about assumptions."""

    content: Content
    x: np.ndarray
    y: np.ndarray | None
    assumed: list[str]


def infer(file: BinaryIO, name: str, inputs: Sequence[str], label: str | None, show: Show | None = None) -> Inferred:
    """A spec's content and the data, from a text table with a header line.

    inputs: names of columns; if empty, all columns of different numbers, except the label and times.  label: a column's
    name; without a label, a monitor is planned.  A label is a class if it is not a number, or if it has only two
    values, both integers.
    """
    _, columns = read_columns(file, name, show, inputs, label)
    numeric = numeric_columns(columns)
    if label in inputs:
        raise UserError(f"{name}: column {label!r} is the label; leave it out of {option('inputs')}")
    assumed = [f"label {label}"] if label else ["no label: a monitor that raises alarms"]
    chosen = list(inputs) or likely_inputs(numeric, label)
    for column in chosen:
        if column not in numeric:
            raise UserError(f"{name}: column {column!r} does not hold numbers; leave it out of {option('inputs')}")
    if not inputs:
        without = left_out(columns, numeric, [*chosen, *([label] if label else [])])
        assumed[:0] = [f"inputs {listed(chosen)}"] + ([f"without {listed(without)}"] if without else [])
    if not chosen:
        raise UserError(
            f"{name}: has no column of different numbers beside the label {label!r}; give {option('inputs')}"
        )
    x = np.column_stack([numeric[column] for column in chosen])
    if gaps := int((~np.isfinite(x)).any(axis=1).sum()):
        assumed.append(f"{gaps:,} {'row' if gaps == 1 else 'rows'} with a missing input, neither predicted nor learned")
    content: Content = {"name": "planned", "input": {"columns": chosen}}
    if label is None:
        return Inferred(content | {"novelty": {}}, x, None, assumed)
    if label in numeric:
        values = finite_values(numeric[label])
        if np.ptp(values) == 0:
            raise UserError(f"{name}: the label {label!r} is always {values[0]:g}; there is nothing to learn")
        cells = [
            cell.strip() if there else ""
            for cell, there in zip(columns[label], np.isfinite(numeric[label]), strict=True)
        ]
        few = few_values(values)
        if len(few) != 2 or len(set(cells) - {""}) != 2:
            if few:
                assumed.append(
                    f"the label's {len(few)} different values are numbers; for classes name them in a spec, [label] classes, and "
                    f"give {option('spec')}"
                )
            return Inferred(content | {"label": {"column": label}}, x, numeric[label], assumed)
    else:
        cells = [cell.strip() for cell in columns[label]]
    classes = sorted({cell for cell in cells if cell})
    if not classes:
        raise UserError(f"{name}: the label {label!r} is empty in all rows; there is nothing to learn")
    if len(classes) > OUTPUTS_LIMIT:
        raise UserError(
            f"{name}: the label {label!r} holds {len(classes):,} different words; there may be {OUTPUTS_LIMIT} classes: is it "
            "the right column?"
        )
    if len(classes) < 2:
        raise UserError(f"{name}: the label {label!r} has one class, {', '.join(classes)}; there is nothing to learn")
    positions = {kind: i for i, kind in enumerate(classes)} | {"": -1}
    y = np.array([positions[cell] for cell in cells], np.int32)
    return Inferred(
        content | {"label": {"column": label, "classes": classes}},
        x,
        y,
        [*assumed, f"{len(classes)} classes, {listed(classes)}"],
    )


# --------------------------------------------------------------------------------------------------- what is tried


@dataclass
class Trial:
    """A model that was tried, or will be tried: an arm, a size, and values by "section.key"."""

    arm: Arm
    size: int | None
    values: dict[str, float]
    found: dict[str, Any] = field(default_factory=dict)
    fits: bool | None = None  # None: not measured

    @property
    def content(self) -> Content:
        """The spec's content, once it was tried."""
        return dict(self.found["spec"]) if "spec" in self.found else self.arm.made.with_values(self.size, self.values)

    @property
    def told(self) -> dict[str, Any] | None:
        """The error and deviation by which the trial is ranked: those of the learning model if it learns, else
        frozen.
        """
        return self.found.get("learning") or self.found.get("frozen")

    @property
    def score(self) -> float:
        told = self.told
        if self.fits is False or told is None or self.found.get("diverged") or not math.isfinite(told["error"]):
            return math.inf
        return float(told["error"])

    @property
    def bytes(self) -> int:
        return int(self.found.get("ram_bytes", 0) + self.found.get("table_bytes", 0))

    def key(self) -> tuple[Any, ...]:
        return (self.arm.name, self.size, *sorted(self.values.items()))


@dataclass
class Arm:
    """A combination that is tried, and its trials.  own: the values that it begins with."""

    made: Combination
    knobs: tuple[Knob, ...] = field(repr=False)
    own: dict[str, float] = field(repr=False)
    most: int = MOST
    trials: list[Trial] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, made: Combination) -> Arm:
        if made.technique == TRAINED:
            return cls(made, TRAINING, {}, MOST_TRAINED)
        sigma = width(_dim(made.content))
        known = tuple(knob for knob in knobs(sigma) if made.means(knob.section, knob.key))
        own = {"kernel.sigma": sigma} if made.spec is None else {knob.name: held(made.spec, knob) for knob in known}
        return cls(made, known, own)

    def began_with(self, training: Content) -> None:
        """Keep the settings that the first training has chosen; later trainings use them, without cross-validation."""
        self.made = replace(self.made, training=training)
        self.own = {knob.name: training[knob.key] for knob in TRAINING}

    @property
    def name(self) -> str:
        return self.made.name

    @property
    def rule(self) -> str:
        return self.made.rule

    def task(self, trial: Trial, ram: int | None) -> dict[str, Any]:
        values = {**self.own, **trial.values} if self.made.spec is None else trial.values
        return {"do": "judge", "ram": ram, **self.made.task(trial.size, values)}

    @property
    def kind(self) -> str:
        """The kind of model in words, for figures."""
        if self.rule == "frozen":
            return "trained here, frozen"
        spec = self.made.spec
        if spec is None or trained_at_once(spec):
            return "trained on the device"
        if spec.label_kind == "none":
            return "monitor"
        if not spec.family.online:
            return "learning with a basis"
        return "learning, kernel" if self.made.budget == ("reduction", "n_max") else "learning, features"

    @property
    def best(self) -> Trial | None:
        return min((t for t in self.trials if math.isfinite(t.score)), key=lambda t: t.score, default=None)


def arms(
    base: Content,
    table: Table,
    chosen: Sequence[str] | None,
    techniques: Sequence[str] | None,
    target: str | None = None,
) -> list[Arm]:
    """The arms of all chosen rules for this data; the rules that work best on most data come first.

    Each rule has its default technique, or each of ``techniques``.  For a target without an FPU, there are also arms in
    integers, where possible.
    """
    if "label" not in base:
        return _monitors(base)
    known = Known.of(table.x[: table.split], table.labels[: table.split])
    every = [*rules()] if chosen is None else [rule for rule in rules() if rule in chosen]
    found: list[Combination] = []
    for recipe in (completed(base), completed(base | {"target": {"ram": 1}})):
        if recipe["learning"]["rule"] in every:
            found += combine(dict(recipe), known, [recipe["learning"]["rule"]], techniques)[0]
    found += combine(_staged(base), known, every, techniques)[0]
    if target is not None and fpu_of(target) == "none" and table.stage is None:  # no integer arms with [signal]
        found = whole_combinations(base, known, every) + found
    first: dict[str, Combination] = {}
    # trained vectors take longest, so they begin first: other trials use the other cores meanwhile
    for made in sorted(found, key=lambda made: made.technique != TRAINED):
        first.setdefault(made.name, made)
    return [Arm.of(made) for made in first.values()]


def _staged(base: Content) -> Content:
    """The content with stages that let a rule learn from raw numbers.  Keys of the content are not changed."""
    made = {**base, "kernel": {"sigma": width(_dim(base))} | base.get("kernel", {})}
    if not {"standardise", "center", "scale"} & set(base["input"]):
        made["input"] = NUMBERS_INPUT | base["input"]
        if "classes" not in base["label"]:
            made |= {"label": NUMBERS_LABEL | base["label"], "linear": {}}
    return made


def _monitors(base: Content) -> list[Arm]:
    content = dict(completed(base))
    spec = make_spec(content)
    least, most = (math.log(value) for value in (2.0, spec.reduction.n_max))
    own = tuple(knob for knob in knobs(spec.kernel.sigma) if knob.name == "kernel.sigma")
    more = (
        Whole("learning", "features", (), math.log(1.5), math.exp(least), math.exp(most)),
        Knob("novelty", "smoothing", (), math.log(2), 0.05, 1.0),
    )
    every = (*own, *more)
    held_now = {knob.name: float(getattr(getattr(spec, knob.section), knob.key)) for knob in every}
    found = []
    for update in (None, "rls"):
        learning = {**content["learning"], **({"update": update} if update else {})}
        made = {**content, "learning": learning}
        if _spec(made) is not None:
            found.append(Arm(Combination("okfeb", update, made, make_spec(made), None), every, held_now))
    return found


def _spec(content: Content) -> Spec | None:
    try:
        return make_spec(content)
    except UserError:
        return None


def _dim(base: Content) -> int:
    return len(base["input"].get("columns") or ()) or int(base["input"].get("dim", 1))


# ---------------------------------------------------------------------------------------------------------- the search


@dataclass
class Search:
    """A series of trials.  Its course depends on the arms, the data and the seed."""

    arms: list[Arm]
    table: Table
    workers: Workers
    limits: Limits
    seed: int = 0
    every_technique: Sequence[str] = ()
    trials: list[Trial] = field(default_factory=list)
    measured: int = 0
    _seen: set[tuple[Any, ...]] = field(default_factory=set)

    def run(self, left: Callable[[Search], int]) -> None:
        """Run batches of trials until there are no new trials, or until ``left`` returns 0.

        left: called before each batch; returns how many trials may still be run.  After an interrupt, finished trials
        of the batch are kept.
        """
        size = FEW_AT_ONCE if len(self.table.x) > MANY_ROWS else BATCH
        self._bound_trained()
        proposals = self._proposals(np.random.default_rng(self.seed))
        while (most := left(self)) > 0:
            batch: list[Trial] = []
            for proposed in proposals:
                if proposed is not None:
                    batch.append(proposed)
                if len(batch) == min(size, most) or (proposed is None and batch):
                    break
            if not batch:
                return
            tasks = [trial.arm.task(trial, self.limits.ram) for trial in batch]
            try:
                results = self.workers.run(tasks)
            except KeyboardInterrupt:
                for trial, task in zip(batch, tasks, strict=True):
                    if (found := self.workers.finished(task)) is not None:
                        self._tried(trial, found)
                raise
            for trial, found in zip(batch, results, strict=True):
                self._tried(trial, found)
            self._measure()

    def _tried(self, trial: Trial, found: Any) -> None:
        ram = self.limits.ram
        trial.found = found
        for arm in self.arms if found.get("training") else ():
            if arm.made.technique == TRAINED:
                arm.began_with(found["training"])
        trial.arm.trials.append(trial)
        self.trials.append(trial)
        if trial.size is not None and ram is not None and found.get("ram_bytes", 0) > ram:
            trial.arm.most = min(
                trial.arm.most, trial.size - 1, max(LEAST, _smaller(trial.size, found["ram_bytes"] / ram))
            )
            trial.fits = False

    def ranking(self) -> list[Trial]:
        """All trials that may be chosen, the smallest error first."""
        fine = [trial for trial in self.trials if math.isfinite(trial.score)]
        return sorted(fine, key=lambda trial: (trial.score, trial.bytes))

    def winner(self, learning: bool = False) -> Trial | None:
        """Among the trials that are as good as the best one, the one with the fewest bytes.

        learning: only trials whose model learns on the device.
        """
        ranking = [trial for trial in self.ranking() if not learning or trial.found["learning"] is not None]
        near = [trial for trial in ranking if trial.score <= self.as_good_as(ranking[0].score)]
        return min(near, key=lambda trial: (trial.bytes, trial.score), default=None)

    def smaller(self, winner: Trial) -> Trial | None:
        """The trial with the fewest bytes whose error is within SMALLER of the winner's, with at most half of its
        bytes.

        If the winner learns, this one learns as well.  None if there is no such trial; on a target, it must be
        measured.
        """
        if self.limits.target is not None:
            return None
        learns = winner.found["learning"] is not None
        near = [
            trial
            for trial in self.ranking()
            if trial.score <= SMALLER * winner.score
            and 2 * trial.bytes <= winner.bytes
            and (trial.found["learning"] is not None) == learns
        ]
        return min(near, key=lambda trial: (trial.bytes, trial.score), default=None)

    def as_good_as(self, error: float) -> float:
        """The largest error that counts as equal to this error: 1 % more; for classes, at least one more wrong row."""
        one_row = 1 / len(self.table.x[self.table.split :]) if self.table.of_classes else 0.0
        return max(NEAR * error, error + one_row)

    def _measure(self) -> None:
        """Measure the winner on the target, until a winner fits; at most a few measurements for each batch."""
        if self.limits.target is None:
            return
        for _ in range(FEW_AT_ONCE):
            trial = self.winner()
            if trial is None or trial.fits is not None:
                return
            self.measured += 1
            (costs,) = self.workers.run([cost_task(dump(self.table.whole(trial.content)), self.limits.target, TRIES)])
            amounts, uses = taken(costs, self.limits, HEADROOM)
            trial.found |= {"amounts": amounts, "uses": uses, "costs": costs}
            trial.fits = not costs.get("refused") and bool(uses) and fits(uses)
            if not trial.fits and trial.size is not None:
                worst = max(uses.values(), default=2.0)
                trial.arm.most = min(trial.arm.most, max(_smaller(trial.size, worst), LEAST), trial.size - 1)

    def _bound_trained(self) -> None:
        """Estimate how many trained vectors keep all limits.

        Costs grow linearly with the number of vectors.  Models with random vectors have the same costs and need no
        training.
        """
        target = self.limits.target
        for arm in self.arms if target is not None else ():
            if arm.made.technique != TRAINED:
                continue
            try:
                specs = [self.table.whole(stand_in(arm.made.content, size, self.table)) for size in STOOD_IN]
            except UserError:  # the arm's first trial reports the reason
                continue
            costs = self.workers.run([cost_task(dump(spec), str(target), TRIES) for spec in specs])
            few, many = (taken(each, self.limits, HEADROOM)[1] for each in costs)
            first, last = STOOD_IN
            for limit in set(few) & set(many):
                each = (many[limit] - few[limit]) / (last - first)
                if each > 0:
                    arm.most = min(arm.most, max(LEAST, math.floor(first + (1 - few[limit]) / each)))

    # ------------------------------------------------------------------------------------------------ what comes next

    def _proposals(self, rng: np.random.Generator) -> Iterator[Trial | None]:
        """The next trials, in order; None where the following trials depend on results that are not known yet."""
        # arms with trained vectors in other precisions use the settings of the first training
        moved = [arm for arm in self.arms if arm.made.technique == TRAINED]
        for arm in [*moved[:1], *(arm for arm in self.arms if arm.made.technique != TRAINED)]:
            yield from self._new(arm, self._size(arm, START), {})
        yield None
        for arm in moved:
            for share in SHARES:
                yield from self._new(arm, self._size(arm, round(share * min(START, arm.most))), {})
        for _ in range(RETRIES):
            yield from self._smaller_ones()
            yield None
        for arm, best in self._best_arms():
            for knob in (knob for knob in arm.knobs if knob.name == "kernel.sigma"):
                for factor in WIDTHS:
                    sigma = knob.value(knob.position(arm.own[knob.name]) + math.log(factor))
                    yield from self._new(arm, best.size, {**best.values, knob.name: sigma})
        yield None
        chooses = [
            each for each in self._best_arms() if (spec := each[0].made.spec) and spec.has("reduction", "technique")
        ]
        for rule in list(dict.fromkeys(arm.rule for arm, _ in chooses))[:RULES_WITH_TECHNIQUES]:
            first, best = next(each for each in chooses if each[0].rule == rule)
            content = dict(first.made.content)
            content["reduction"] = {k: v for k, v in content.get("reduction", {}).items() if k != "projection"}
            known = {arm.name for arm in self.arms}
            for made in combine(content, Known(self.table.x[: self.table.split]), [rule], self.every_technique)[0]:
                if made.name not in known:
                    arm = Arm.of(made)
                    self.arms.append(arm)
                    values = {k: v for k, v in best.values.items() if k in arm.own}
                    yield from self._new(arm, self._size(arm, START), values)
        yield None
        while True:
            before = len(self._seen)
            yield from self._smaller_ones()
            ranked = [arm for arm, _ in self._best_arms()]
            # each rule's best arm is changed as often as the best of all arms, because techniques of one rule are
            # similar
            of_rules: dict[str, Arm] = {}
            for arm in ranked:
                of_rules.setdefault(arm.rule, arm)
            for number in range(4 * BATCH if ranked else 0):
                leaders = (list(of_rules.values()) if number % 2 else ranked)[:LEADERS]
                chances = 1 / np.arange(1.0, len(leaders) + 1)
                yield from self._changed(leaders[int(rng.choice(len(chances), p=chances / chances.sum()))], rng)
            if len(self._seen) == before:
                return
            yield None

    def _best_arms(self) -> list[tuple[Arm, Trial]]:
        """The arms that have a successful trial, with their best trials, the best first."""
        found = [(arm, best) for arm in self.arms if (best := arm.best) is not None]
        return sorted(found, key=lambda each: each[1].score)

    def _smaller_ones(self) -> Iterator[Trial]:
        """Smaller trials for arms whose trials were too large."""
        for arm in self.arms:
            if arm.best is None and arm.trials and arm.trials[-1].fits is False and arm.most >= LEAST:
                yield from self._new(arm, self._size(arm, START), arm.trials[-1].values)

    def _changed(self, arm: Arm, rng: np.random.Generator) -> Iterator[Trial]:
        """The arm's best trial with one or two changed values.

        The changes become smaller with the number of trials.
        """
        best = arm.best
        if best is None:
            return
        spread = max(0.2, 1.5 / math.sqrt(len(arm.trials)))
        size, values = best.size, dict(best.values)
        names = [*(["size"] if size is not None else []), *(knob.name for knob in arm.knobs)]
        for name in rng.choice(names, min(len(names), int(rng.integers(1, 3))), replace=False) if names else ():
            if name == "size":
                assert size is not None
                size = self._size(arm, round(size * math.exp(rng.normal() * spread)))
                continue
            knob = next(knob for knob in arm.knobs if knob.name == name)
            at = knob.position(values.get(name, arm.own[name]))
            values[str(name)] = knob.value(at + rng.normal() * spread * knob.step)
        yield from self._new(arm, size, values)

    def _size(self, arm: Arm, wanted: int) -> int | None:
        return min(max(wanted, LEAST), arm.most) if arm.made.budget is not None else None

    def _new(self, arm: Arm, size: int | None, values: Mapping[str, float]) -> Iterator[Trial]:
        """The trial, unless it was run before or its spec is refused."""
        trial = Trial(arm, size, dict(values))
        if trial.key() in self._seen:
            return
        self._seen.add(trial.key())
        try:
            arm.made.check(size, values)
        except UserError:
            return
        yield trial


def _smaller(size: int, used: float) -> int:
    """A smaller size that may fit, under the assumption that costs grow with the power 1.5 of the size."""
    return math.floor(size * (0.99 * HEADROOM / max(used, 1.0)) ** (1 / 1.5))


def taken(costs: Mapping[str, Any], limits: Limits, headroom: float = 1.0) -> tuple[dict[str, int], dict[str, float]]:
    """The costs of a measured model, and the used fraction of each limit; empty if it was not measured.

    headroom: fraction of the limit of instructions that a model without a proved bound may use.
    """
    names = [name for name in CALLS if costs.get(name)]
    if costs.get("refused") or not names:
        return {}, {}
    calls, bounds = [costs[name] for name in names], [costs.get("bounds", {}).get(name, {}) for name in names]
    amounts = {
        "ram": int(costs["ram_bytes"] + costs["stack_bytes"]),
        "flash": int(costs["flash_bytes"]),
        "instructions": int(max(call["bound"] or call["worst"] or call["max"] for call in calls)),
    }
    if all(bound.get("cycles") and not bound["estimated"] for bound in bounds):
        amounts["cycles"] = max(bound["cycles"] for bound in bounds)
    uses = limits.uses(**amounts)
    if "instructions" in uses and not all(call["bound"] for call in calls):
        uses["instructions"] /= headroom
    return amounts, uses


def fits(uses: Mapping[str, float]) -> bool:
    return max(uses.values(), default=0.0) <= 1


# ----------------------------------------------------------------------------------------------------------- the plan


def verified(search: Search, say: Callable[[str], None]) -> tuple[Trial, dict[str, Any] | None, dict[str, float]]:
    """The winner; on a target also the row of its check, which compares byte for byte, and the used fraction of each
    limit.

    Raises NothingFits, which names the closest model, if no model fits.
    """
    for _ in range(VERIFIED):
        trial = search.winner()
        if trial is None:
            break
        if search.limits.target is None:
            return trial, None, search.limits.uses(ram=trial.found["ram_bytes"])
        say(f"verifying {model_name(trial)} on {search.limits.target}")
        row = verify(search.table.whole(trial.content), search.table, search.limits.target)
        amounts, uses = taken(row, search.limits)
        trial.found |= {"amounts": amounts, "uses": uses}
        if max(uses.values(), default=0.0) <= 1:
            return trial, row, uses
        trial.fits = False
    raise NothingFits(nearest_miss(search))


def verify(spec: Spec, table: Table, target: str) -> dict[str, Any]:
    """A row of the check on the target: the table's first rows, byte for byte, and the worst case found.

    Raises CheckFailed if the device's memory differs from the host's.
    """
    from pykernel.targets.check import check_targets

    x, y = table.device_rows(spec)
    few = 50 * spec.stride
    first = check_targets(spec, [target], emulator="unicorn", stream=(x[:few], y[:few]), tries=0).rows[0]
    per_sample = spec.stride * sum(first[call]["max"] for call in CALLS if first.get(call)) or EMULATED
    size = spec.capacities.get("N_MAX", 0)
    rows = min(len(x), spec.stride * max(2 * size + 50, min(2000, EMULATED // int(per_sample))))
    row = check_targets(spec, [target], emulator="unicorn", stream=(x[:rows], y[:rows])).rows[0]
    if not row["equal"]:
        raise CheckFailed(f"{target}: the C differs from the simulation: {row['first_difference']}")
    return row


def model_name(trial: Trial) -> str:
    return trial.arm.name if trial.size is None else f"{trial.arm.name} {trial.size}"


def nearest_miss(search: Search) -> str:
    """A sentence on the model that came nearest to the limits."""
    limits = search.limits
    allowed = [f"{limits.ram:,} bytes of RAM"] if limits.ram is not None else []
    allowed += [f"{limits.flash:,} of flash"] if limits.flash is not None else []
    allowed += [f"{limits.instructions:,} instructions"] if limits.instructions is not None else []
    allowed += [f"{limits.cycles:,} cycles"] if limits.cycles is not None else []
    head = f"nothing fits {', '.join(allowed)}" + (f" on {limits.target}" if limits.target else "")
    missed = []
    for trial in search.trials:
        uses = trial.found.get("uses") or limits.uses(ram=trial.found.get("ram_bytes"))
        if uses and max(uses.values()) > 1:
            missed.append((max(uses.values()), trial, uses))
    if not missed:
        reasons = [trial.found["reason"] for trial in search.trials if "reason" in trial.found]
        return (
            f"no model learned from this data: {reasons[0]}"
            if reasons
            else f"no model was tried; give more {option('time')}"
        )
    _, trial, uses = min(missed, key=lambda each: each[0])
    amounts = trial.found.get("amounts") or {"ram": trial.found["ram_bytes"]}
    units = {"ram": "bytes of RAM", "flash": "of flash", "instructions": "instructions", "cycles": "cycles"}
    takes = ", ".join(f"{amounts[key]:,} {units[key]}" for key in units if key in amounts)
    # the limit with which a plan would accept this model
    enough = {key: _round_up(uses[key] * getattr(limits, key)) for key in ("instructions", "cycles") if key in uses}
    over = [f"--{key} {({**amounts, **enough})[key]}" for key, part in uses.items() if part > 1]
    return f"{head}; the nearest is {model_name(trial)}, which takes {takes}: give {' and '.join(over)} or more"


def _round_up(value: float) -> int:
    """Round up to two significant digits."""
    step = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step) * step


def planned(trial: Trial, table: Table, target: Mapping[str, Any]) -> Spec:
    """The spec that is written, with the limits that were given as its [target]."""
    content = trial.content
    content.pop("target", None)
    return table.whole(content | ({"target": dict(target)} if target else {}))
