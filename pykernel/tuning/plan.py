"""Choose a model for a device: try all kinds of models, within limits of RAM, flash and instructions, in a given time.

A plan is a series of trials (``trials.py``): first each kind of model with settings that work on raw data, then variants
of the best models.  A plan has a result as soon as one trial is done.  The chosen model depends only on the trials, their seed and the
data, and not on the number or the speed of the processes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pykernel.errors import CheckFailed, UserError, shown_option
from pykernel.parallel import Workers
from pykernel.spec.model import Spec
from pykernel.tuning.arms import Arm, Trial
from pykernel.tuning.combinations import NETWORK, TRAINED, Content, Known, combine
from pykernel.tuning.costs import HEADROOM, Limits, called, cost_task, fits, flash_of, taken
from pykernel.tuning.data import Table
from pykernel.tuning.faults import COUNT
from pykernel.tuning.promises import NEAR, Losses, chosen, deviation_of, nested
from pykernel.tuning.stage import dump
from pykernel.tuning.trials import stand_in

LEAST, START = 4, 32
"""The smallest size, and the first size that a plan tries."""
BATCH, FEW_AT_ONCE, MANY_ROWS = 8, 4, 10_000
"""Number of trials between two checks of the clock: BATCH, or FEW_AT_ONCE if there are more than MANY_ROWS rows."""
FEW_ROWS = 100
"""With fewer rows than this, a plan gives a warning."""
SMALLER = 1.05
"""A second, smaller model is reported if it needs at most half of the planned model's bytes, and if its error is at
most this many times the planned model's error."""
WORSE = 0.05
"""A second, smaller monitor is reported if it needs at most half of the planned monitor's bytes, and if the fraction of
faults that it misses is larger by at most this value."""
ALIKE = 0.02
"""Monitors are considered equally good if the fractions of faults that they miss differ by at most this value, or by at most a standard
deviation."""
SHARES = (1.0, 1 / 2, 1 / 4)
"""Numbers of trained vectors to try, as fractions of START or, if fewer fit the limits, of the largest number that fits."""
STOOD_IN = (4, 16)
"""A plan measures models with these numbers of random vectors, to estimate the largest number of vectors within the limits."""
BOUNDING = 0.3
"""Fraction of the time for all trials after which the measurement of models with random vectors is given up."""
LEADERS = 6
"""Number of the best arms whose parameters are varied."""
BEHIND = 3
"""If it is not known whether the device gets labels, one of every BEHIND changes is made to the kind of model (learning or
frozen) that has the larger error."""
WIDTHS = (1 / 4, 1 / 2, 2.0)
"""Each kernel is also tried with its initial width times each of these factors."""
RULES_WITH_TECHNIQUES = 3
"""Number of the best rules that are tried with every technique."""
RETRIES = 4
"""Number of smaller sizes that are tried for a model that is too large, before other trials follow."""
TRIES = 200
"""Number of tries in the search for the most expensive call of each measured model.  The winner gets more tries."""
VERIFIED = 12
"""Maximum number of models that are verified, the best first, before the plan gives up."""
FEW_VERIFIED = 50
"""Number of rows (with a signal stage, of steps) with which a model's instructions are measured, before the model is
verified with more rows."""
BUILT = 5.0
"""Assumed time to build a model for a target twice and to prove its bounds, in seconds."""
BY_MEASURING = 4
"""Assumed ratio of the time for verifying a model, without the emulation of rows, to the time for measuring the model.

A model that is verified is built twice, and the search makes five times as many tries.  For four models, the ratio of CPU seconds was at
most 2.4; the larger value leaves a reserve in case the PC becomes busy.
"""
EMULATED_A_SECOND = 30e6
"""Approximate number of instructions that are emulated per second.  On slower PCs, a plan exceeds its time limit."""
EMULATED = 600_000_000
"""Approximate maximum number of instructions that are emulated in order to verify a model."""


def by_chance(missed: float) -> float:
    """Return the largest difference in the fraction of missed faults at which two monitors are considered equally good."""
    return max(ALIKE, deviation_of(missed, COUNT)) if missed <= 1 else ALIKE


class NothingFits(CheckFailed):
    """No model that was tried is within all limits.  The command exits with 1.  report: the results of the plan."""

    report: dict[str, Any] | None = None


# ---------------------------------------------------------------------------------------------------------- the search


@dataclass
class Search:
    """A series of trials.  The arms, the data and the seed determine the trials."""

    arms: list[Arm]
    table: Table
    workers: Workers
    limits: Limits
    seed: int = 0
    every_technique: Sequence[str] = ()
    labels: str | None = None
    """Whether the device gets labels: "always", "never", or None if this is not known."""
    trials: list[Trial] = field(default_factory=list)
    repeatable: bool = True
    """Whether another plan with the same number of trials runs the same trials."""
    complete: bool = False
    """Whether the search ended because all possible trials were made."""
    measuring: float = 0.0
    """The longest time that was needed to measure a model on the target, in seconds."""
    _seen: set[tuple[Any, ...]] = field(default_factory=set)

    def run(self, left: Callable[[Search], int], until: Callable[[Search], float] = lambda course: math.inf) -> None:
        """Run batches of trials until there are no new trials, ``left`` returns 0, or a batch runs out of time.

        left: called before each batch; returns how many trials may still be run.
        until: called before each batch; returns the time at which the batch ends, even if trials are unfinished.
        """
        size = FEW_AT_ONCE if len(self.table.x) > MANY_ROWS else BATCH
        now = time.monotonic()
        self._bound_trained(now + BOUNDING * (until(self) - now))
        proposals = self._proposals(np.random.default_rng(self.seed))
        while (most := left(self)) > 0:
            batch: list[Trial] = []
            for proposed in proposals:
                if proposed is not None:
                    batch.append(proposed)
                if len(batch) == min(size, most) or (proposed is None and batch):
                    break
            if not batch:
                self.complete = True
                return
            tasks = [trial.arm.task(trial, self.limits.ram) for trial in batch]
            try:
                results = self.workers.run(tasks, until(self), 0 if self.trials else 1)
            except KeyboardInterrupt:
                self._take(batch, [self.workers.finished(task) for task in tasks])
                raise
            self._take(batch, results)
            if None in results:  # time is up: the winner is verified without having been measured
                return
            self._measure()

    def _take(self, batch: Sequence[Trial], results: Sequence[Any]) -> None:
        """Keep the batch's trials that precede the first trial without a result.

        If the search would have no trial at all, keep all trials of the batch that have a result.
        """
        many = [*results, None].index(None)
        if not self.trials and not many:
            many, self.repeatable = len(batch), False
        for trial, found in zip(batch[:many], results, strict=False):
            if found is not None:
                self._tried(trial, found)

    def _tried(self, trial: Trial, result: Any) -> None:
        ram = self.limits.ram
        # if the device gets no labels, no model learns there: only the frozen model's result counts
        trial.result = result | {"learning": None} if self.labels == "never" else result
        for arm in self._arms_of(trial.arm.made.technique) if result.get("training") else ():
            arm.began_with(result["training"])
        trial.arm.trials.append(trial)
        self.trials.append(trial)
        if self.limits.target is None and self.limits.flash is not None and flash_of(result) > self.limits.flash:
            trial.fits = False
            if trial.size is not None:
                trial.arm.most = min(trial.arm.most, max(LEAST, trial.size * 3 // 4))
        if trial.size is not None and ram is not None and result.get("ram_bytes", 0) > ram:
            trial.arm.most = min(
                trial.arm.most, trial.size - 1, max(LEAST, _smaller(trial.size, result["ram_bytes"] / ram))
            )
            trial.fits = False

    def ranking(self) -> list[Trial]:
        """Return all trials that may be chosen, the smallest error first."""
        fine = [trial for trial in self.trials if math.isfinite(trial.score)]
        return sorted(fine, key=lambda trial: (trial.score, trial.bytes))

    def candidates(self, learning: bool | None = None) -> list[Trial]:
        """Return the trials of ``ranking`` whose models are of this kind.

        learning: True for models that learn on the device, False for models that do not, None for all models.
        """
        return [trial for trial in self.ranking() if learning is None or trial.learns == learning]

    def winner(self, learning: bool | None = None) -> Trial | None:
        """Return the smallest candidate, in bytes, among those that are as good as the best candidate."""
        found = self.candidates(learning)
        if not found or self.table.y is not None:
            losses, sizes = [trial.losses for trial in found], [trial.bytes for trial in found]
            return found[chosen(losses, sizes)] if found else None
        near = [trial for trial in found if trial.score <= self.as_good_as(found[0].score)]
        return min(near, key=lambda trial: (trial.bytes, trial.score))

    def honest(self, learning: bool | None = None) -> Losses:
        """Return the losses of winners on rows that took no part in choosing them: see ``nested``."""
        found = self.candidates(learning)
        return nested([trial.losses for trial in found], [trial.bytes for trial in found])

    def kinds(self) -> tuple[bool | None, ...]:
        """Return the values of ``learning`` for which a winner is needed.

        They are None and, if the models predict labels and it is not known whether the device gets labels, False and True.
        """
        return (None,) if self.labels is not None or self.table.y is None else (None, False, True)

    def smaller(self, winner: Trial) -> Trial | None:
        """Return the smallest trial with at most half of the winner's bytes and an error that SMALLER or, for monitors, WORSE allows.

        Its model learns on the device if and only if the winner does.  Returns None if there is no such trial, or if there is a target.
        """
        if self.limits.target is not None:
            return None
        near = [
            trial
            for trial in self.ranking()
            if trial.score <= (SMALLER * winner.score if self.table.y is not None else winner.score + WORSE)
            and 2 * trial.bytes <= winner.bytes
            and trial.learns == winner.learns
        ]
        return min(near, key=lambda trial: (trial.bytes, trial.score), default=None)

    def as_good_as(self, error: float) -> float:
        """Return the largest error that is considered equal to this error.

        The result is 1 % larger and, for classes, larger by at least one wrong row.  For monitors, it is larger by the
        difference that chance may cause (``by_chance``).
        """
        if self.table.y is None:
            return error + by_chance(error)
        one_row = 1 / self.table.judged_rows if self.table.of_classes else 0.0
        return max(NEAR * error, error + one_row)

    def _measure(self) -> None:
        """Measure winners on the target, one after the other, until the winner fits for each value in ``kinds()``.

        At most FEW_AT_ONCE models are measured for each batch.
        """
        if self.limits.target is None:
            return
        for _ in range(FEW_AT_ONCE):
            open_ones = [won for won in map(self.winner, self.kinds()) if won is not None and won.fits is None]
            if not open_ones:
                return
            trial = open_ones[0]
            trial.result |= self.measured(dump(self.table.whole(trial.content)))
            trial.fits = fits(trial.result["uses"])
            if not trial.fits and trial.size is not None:
                worst = max(trial.result["uses"].values(), default=2.0)
                trial.arm.most = min(trial.arm.most, max(_smaller(trial.size, worst), LEAST), trial.size - 1)

    def measured(self, content: Content) -> dict[str, Any]:
        """Measure a model on the target.  Returns a dictionary with ``costs``, ``amounts`` (of the limited resources)
        and ``uses`` (the used fraction of each limit)."""
        began = time.monotonic()
        (costs,) = self.workers.run([cost_task(content, str(self.limits.target), TRIES)])
        self.measuring = max(self.measuring, time.monotonic() - began)
        amounts, uses = taken(costs, self.limits, HEADROOM)
        return {"amounts": amounts, "uses": uses, "costs": costs}

    def finish(self, trial: Trial) -> None:
        """If the PC trains the model, train it again on all rows, because the judged rows are the plant's latest."""
        if trial.arm.made.trained_here and "final" not in trial.result:
            (found,) = self.workers.run([trial.arm.task(trial, None) | {"final": True}])
            trial.result |= {"spec": found["spec"], "final": True} if "spec" in found else {"final": False}

    def _bound_trained(self, until: float) -> None:
        """Estimate the largest number of trained vectors that all limits allow.

        Costs grow linearly with the number of vectors.  The measured models have random vectors, which cost the same as
        trained vectors and need no training.  until: the time at which unfinished measurements are given up.
        """
        target = self.limits.target
        for arm in self._arms_of(TRAINED, NETWORK) if target is not None else ():
            try:
                specs = [self.table.whole(stand_in(arm.made, size, self.table)) for size in STOOD_IN]
            except UserError:  # the first trial of the arm will report the reason
                continue
            tasks, began = [cost_task(dump(spec), str(target), TRIES) for spec in specs], time.monotonic()
            costs = self.workers.run(tasks, until)
            if None in costs:
                self.measuring, self.repeatable = time.monotonic() - began, False
                return
            self.measuring = max(self.measuring, *map(self.workers.took, tasks))
            few, many = (taken(each, self.limits, HEADROOM)[1] for each in costs)
            first, last = STOOD_IN
            for limit in set(few) & set(many):
                each = (many[limit] - few[limit]) / (last - first)
                if each > 0:
                    arm.most = min(arm.most, max(LEAST, math.floor(first + (1 - few[limit]) / each)))

    # ------------------------------------------------------------------------------------------------ the next trials

    def _proposals(self, rng: np.random.Generator) -> Iterator[Trial | None]:
        """Yield the next trials, in order.  Yield None if the trials that follow depend on results that are not known yet."""
        # only one arm with trained vectors comes first, because arms in other precisions use the settings that its training chose
        first = [*self._arms_of(TRAINED)[:1], *(arm for arm in self.arms if arm.made.technique != TRAINED)]
        for arm in sorted(first, key=lambda arm: not self._may_fit(arm, self._first_size(arm))):
            yield from self._new(arm, self._first_size(arm), {})
        yield None
        for arm in self._arms_of(TRAINED, NETWORK):
            for share in SHARES:
                yield from self._new(arm, self._size(arm, round(share * min(START, arm.most))), {})
        for _ in range(RETRIES):
            yield from self._smaller_ones()
            yield None
        yield from self._other_widths()
        yield None
        yield from self._other_techniques()
        yield None
        before = -1
        while before < len(self._seen):
            before = len(self._seen)
            yield from self._smaller_ones()
            yield from self._changes(rng)
            yield None

    def _other_widths(self) -> Iterator[Trial]:
        """Yield each arm's best trial with other kernel widths."""
        for arm, best in self._best_arms() if self.table.y is not None else ():
            for knob in (knob for knob in arm.knobs if knob.name == "kernel.sigma"):
                for factor in WIDTHS:
                    sigma = knob.value(knob.position(arm.own[knob.name]) + math.log(factor))
                    yield from self._new(arm, best.size, {**best.values, knob.name: sigma})

    def _other_techniques(self) -> Iterator[Trial]:
        """Yield trials of new arms: the best rules with every technique."""
        firsts: dict[str, tuple[Arm, Trial]] = {}
        for arm, best in self._best_arms():
            if arm.made.spec is not None and arm.made.spec.has("reduction", "technique"):
                firsts.setdefault(arm.made.rule, (arm, best))
        for rule, (first, best) in list(firsts.items())[:RULES_WITH_TECHNIQUES]:
            content = dict(first.made.content)
            content["reduction"] = {k: v for k, v in content.get("reduction", {}).items() if k != "projection"}
            known = {arm.name for arm in self.arms}
            for made in combine(content, Known(self.table.x[: self.table.split]), [rule], self.every_technique)[0]:
                if made.name not in known:
                    arm = Arm.of(made)
                    self.arms.append(arm)
                    values = {k: v for k, v in best.values.items() if k in arm.own}
                    yield from self._new(arm, self._first_size(arm), values)

    def _changes(self, rng: np.random.Generator) -> Iterator[Trial]:
        """Yield trials of the best arms with changed sizes or parameter values.

        Every other change considers only the best arm of each rule, because the techniques of a rule are similar.
        """
        ranked = [arm for arm, _ in self._best_arms()]
        learners = [arm for arm in ranked if arm.best is not None and arm.best.learns]
        others = [arm for arm in ranked if arm not in learners]
        of_rules: dict[str, Arm] = {}
        for arm in ranked:
            of_rules.setdefault(arm.made.rule, arm)
        for number in range(4 * BATCH if ranked else 0):
            by_rule = number % 2 and self.table.y is not None  # all monitors have the same rule
            leaders = list(of_rules.values()) if by_rule else ranked
            if self.labels is None and number % BEHIND == 0 and self.table.y is not None:
                leaders = (others if ranked[0] in learners else learners) or leaders
            leaders = leaders[:LEADERS]
            chances = 1 / np.arange(1.0, len(leaders) + 1)
            yield from self._changed(leaders[int(rng.choice(len(chances), p=chances / chances.sum()))], rng)

    def _arms_of(self, *techniques: str | None) -> list[Arm]:
        return [arm for arm in self.arms if arm.made.technique in techniques]

    def _best_arms(self) -> list[tuple[Arm, Trial]]:
        """Return (arm, best trial) for each arm that has a successful trial, the best arm first."""
        found = [(arm, best) for arm in self.arms if (best := arm.best) is not None]
        return sorted(found, key=lambda each: each[1].score)

    def _smaller_ones(self) -> Iterator[Trial]:
        """Yield trials of smaller sizes for arms whose trials were too large."""
        for arm in self.arms:
            if arm.best is None and arm.trials and arm.trials[-1].fits is False and arm.most >= LEAST:
                yield from self._new(arm, self._size(arm, START), arm.trials[-1].values)

    def _changed(self, arm: Arm, rng: np.random.Generator) -> Iterator[Trial]:
        """Yield the arm's best trial with one or two changed values.

        The changes become smaller as the number of the arm's trials grows.
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

    def _first_size(self, arm: Arm) -> int | None:
        """Return the size of an arm's first trial: START, or a smaller size if START takes more RAM than the limit."""
        size = self._size(arm, START)
        while size is not None and size > LEAST and not self._may_fit(arm, size):
            size = max(LEAST, size * 3 // 4)
        return size

    def _may_fit(self, arm: Arm, size: int | None) -> bool:
        """Return whether all fields of the model fit into the RAM.

        The generated C code may have fewer fields, but finding out which ones takes as long as a trial.
        """
        if arm.made.spec is None or self.limits.ram is None:
            return True
        with contextlib.suppress(UserError):  # the trial will report the reason
            return self.table.whole(arm.made.with_values(size, {})).memory().layout.nbytes <= self.limits.ram
        return True

    def _size(self, arm: Arm, wanted: int) -> int | None:
        return min(max(wanted, LEAST), arm.most) if arm.made.budget is not None else None

    def _new(self, arm: Arm, size: int | None, values: Mapping[str, float]) -> Iterator[Trial]:
        """Yield the trial, unless it was run before or its spec is invalid."""
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
    """Return a smaller size that may fit, assuming that costs grow as the size to the power of 1.5."""
    return math.floor(size * (0.99 * HEADROOM / max(used, 1.0)) ** (1 / 1.5))


# ----------------------------------------------------------------------------------------------------------- the plan


def verified(
    search: Search, say: Callable[[str], None], learning: bool | None = None
) -> tuple[Trial, dict[str, Any] | None, dict[str, float]]:
    """Find the best model that is within the limits when it is checked on the target.

    Returns the model, the row of its check on the target (None without a target), and the used fraction of each limit.  If the PC trains
    the model, it is trained on all rows.  Raises NothingFits, which names the closest model, if no model fits.
    """
    for _ in range(VERIFIED):
        trial = search.winner(learning)
        if trial is None:
            break
        search.finish(trial)
        if search.limits.target is None:
            return trial, None, search.limits.uses(ram=trial.result["ram_bytes"], flash=flash_of(trial.result))
        say(f"verifying {model_name(trial)} on {search.limits.target}")
        row = verify(search.table.whole(trial.content), search.table, search.limits.target)
        # a model that fitted when it was measured may now use the reserve that HEADROOM leaves
        amounts, uses = taken(row, search.limits, 1.0 if trial.fits else HEADROOM)
        trial.result |= {"amounts": amounts, "uses": uses, "costs": row}
        if fits(uses):
            return trial, row, uses
        trial.fits = False
    raise NothingFits(nearest_miss(search))


def verify(spec: Spec, table: Table, target: str) -> dict[str, Any]:
    """Check a model on the target with rows of the table, byte for byte, and search for the worst case.

    Returns a row of the check's report.  If the target cannot run the model, the row has only the key ``refused``.  Raises CheckFailed
    if the device's memory differs from the host's.
    """
    from pykernel.engine.choice import chosen_engine, engine_used
    from pykernel.targets.check import check_targets
    from pykernel.targets.target import find_target

    emulator = find_target(target).counting
    x, y = table.device_rows(spec)
    few = FEW_VERIFIED * spec.stride
    with engine_used(chosen_engine()):  # without the reference engine, which pykernel check also runs
        try:
            first = check_targets(spec, [target], emulator=emulator, stream=(x[:few], y[:few]), tries=0).rows[0]
        except UserError as error:  # the model was not measured before, and is too large
            return {"refused": str(error)}
        rows = min(len(x), rows_verified(spec, per_sample(spec, first)))
        row = check_targets(spec, [target], emulator=emulator, stream=(x[:rows], y[:rows])).rows[0]
    if not row["equal"]:
        raise CheckFailed(f"{target}: the C code differs from the simulation: {row['first_difference']}")
    return row


def per_sample(spec: Spec, costs: Mapping[str, Any]) -> int:
    """Return the maximum number of instructions for a row or, with a signal stage, for all raw rows of a step."""
    return int(spec.stride * sum(call["max"] for call in called(costs).values()) or EMULATED)


def rows_verified(spec: Spec, instructions: int) -> int:
    """Return the number of rows with which a model is verified.  instructions: the result of ``per_sample``."""
    return spec.stride * max(2 * spec.capacities.get("N_MAX", 0) + 50, min(2000, EMULATED // instructions))


def seconds_to_verify(search: Search) -> float:
    """Estimate how many seconds ``verified`` will take if no better model is found.  Without a target, the result is 0.

    A model that is not measured yet is assumed to take as long as the best measured model.
    """
    if search.limits.target is None:
        return 0.0
    seconds, winner = max(BUILT, BY_MEASURING * search.measuring), search.winner()
    if winner is not None and winner.arm.made.trained_here:  # the winner is trained once more, on more rows
        seconds += search.workers.took(winner.arm.task(winner, search.limits.ram))
    known = next(
        (trial for trial in [winner, *search.ranking()] if trial is not None and "costs" in trial.result), None
    )
    if known is not None:
        spec = search.table.whole(known.content)
        instructions = per_sample(spec, known.result["costs"])
        seconds += rows_verified(spec, instructions) * instructions / spec.stride / EMULATED_A_SECOND
    return seconds


def model_name(trial: Trial) -> str:
    return trial.arm.name if trial.size is None else f"{trial.arm.name} {trial.size}"


def nearest_miss(search: Search) -> str:
    """Return a sentence about the model that came nearest to the limits."""
    limits = search.limits
    units = {"ram": "bytes of RAM", "flash": "of flash", "instructions": "instructions", "cycles": "cycles"}
    limit_of = {key: getattr(limits, key) for key in units}
    allowed = [f"{limit:,} {units[key]}" for key, limit in limit_of.items() if limit is not None]
    what = "no model" if search.complete else "no model that was tried"
    head = f"{what} fits {', '.join(allowed)}" + (f" on {limits.target}" if limits.target else "")
    missed = []
    for trial in search.trials:
        uses = trial.result.get("uses") or limits.uses(ram=trial.result.get("ram_bytes"))
        if limits.target is None:
            uses |= limits.uses(flash=flash_of(trial.result))
        if uses and max(uses.values()) > 1:
            missed.append((max(uses.values()), trial, uses))
    if not missed:
        refused = (trial.result.get("costs", {}).get("refused") for trial in search.trials)
        if reason := next(filter(None, refused), None):
            return f"{head}: {reason}"
        reasons = [trial.result["reason"] for trial in search.trials if "reason" in trial.result]
        return (
            f"no model learned from this data: {reasons[0]}"
            if reasons
            else f"no model was tried; raise {shown_option('time')}"
        )
    _, trial, uses = min(missed, key=lambda each: each[0])
    amounts = trial.result.get("amounts") or {"ram": trial.result["ram_bytes"], "flash": flash_of(trial.result)}
    takes = ", ".join(f"{amounts[key]:,} {units[key]}" for key in units if key in amounts)
    # the limit with which a plan would accept this model
    enough = {key: _round_up(uses[key] * limit_of[key]) for key in ("instructions", "cycles") if key in uses}
    over = [f"--{key} {(amounts | enough)[key]}" for key, part in uses.items() if part > 1]
    untried = [arm.name for arm in search.arms if not (search.complete or arm.trials)]
    late = (
        f"; {len(untried)} of {len(search.arms)} kinds of models were not tried, such as {', '.join(untried[:1])}; "
        f"raise {shown_option('time')}"
    )
    near = f"the nearest model is {model_name(trial)}, which takes {takes}: for this model, give {' and '.join(over)} or more"
    return f"{head}; {near}{late if untried else ''}"


def _round_up(value: float) -> int:
    """Round up to two significant digits."""
    step = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step) * step


def planned(trial: Trial, table: Table, name: str, target: Mapping[str, Any]) -> Spec:
    """Return the spec that is written, with the given limits as its [target]."""
    content = trial.content | {"name": name}
    content.pop("target", None)
    return table.whole(content | ({"target": dict(target)} if target else {}))
