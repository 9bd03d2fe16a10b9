"""Find the model that has the smallest error on a table and stays within a device's limits."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra, UserError, shown_option
from pykernel.files import all_or_none, new_folder
from pykernel.gen.project import inside
from pykernel.host.origin import with_origin
from pykernel.host.samples import stand_ins
from pykernel.host.start import taught
from pykernel.parallel import Workers
from pykernel.progress import Show
from pykernel.report import plans
from pykernel.report.document import Document, Result
from pykernel.request.kinds import parse_amount
from pykernel.request.option import function
from pykernel.rows.columns import coarse_told
from pykernel.spec.model import Spec, make_spec
from pykernel.targets import check
from pykernel.targets.target import find_target
from pykernel.telling import (
    Watch,
    assumption_lines,
    byte_count,
    error_and_deviation,
    finite_or_none,
    formatted_duration,
    json_value,
    raise_first_error,
)
from pykernel.tuning.ablation import ablation, without_each
from pykernel.tuning.arms import Arm, Trial, arms
from pykernel.tuning.combinations import techniques as all_techniques
from pykernel.tuning.costs import Limits, cost_task, make_limits, taken
from pykernel.tuning.data import Table
from pykernel.tuning.faults import COUNT, PROMISED
from pykernel.tuning.plan import NothingFits, Search, model_name, planned, seconds_to_verify, verified
from pykernel.tuning.recorded import states_told, told_of
from pykernel.tuning.stage import dump
from pykernel.tuning.tasks import work
from pykernel.tuning.trials import simple, watched_rows, watched_simply
from pykernel.workflows import search
from pykernel.workflows.arguments import write_file
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.planned import TARGET, findings, front_of, spec_comment
from pykernel.workflows.requests import Plan

SILENCE = 10.0
"""After this many seconds without a better model, a line of progress is printed."""
ENDING, ENDING_BY_BEGINNING = 3.0, 3.0
"""Time reserved for the report and the errors of simple models after the trials: at least ENDING seconds, and at least ENDING_BY_BEGINNING
times the duration of the start, because start and end take longer on a slow or busy PC.  Measured in CPU seconds, the end takes 1.2 times
as long as the start, both for 1,000 and for 8,645 rows."""
COUNTED = 2.0
"""Approximate time to build a model for a target and count its instructions, in seconds."""
RAM, FLASH = 16 * 1024, 64 * 1024
"""Default limits, used if the user gives neither limits nor a target: the sizes of a common small microcontroller."""


@dataclass(frozen=True, repr=False)
class Planned(Result):
    """The result of a plan.

    report: all results, as ``pykernel plan --json`` prints them.
    specs: ``planned``; and, if they exist, ``learning`` (the best model that learns, if the planned model does not),
    ``frozen`` (the best model that does not learn, if the planned model learns and it is not known whether the device gets
    labels), ``small`` (a model that is nearly as good and needs much less memory).
    If the rows come from a single file, and a model learns, a file next to its spec's file holds the model's state
    after all rows, for ``generate --start``.
    """

    report: dict[str, Any]
    specs: dict[str, Spec]
    page: Document

    @property
    def spec(self) -> Spec:
        """The spec of the best model within the limits."""
        return self.specs["planned"]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The best model of each kind, with its error, bytes and parameter values; the best kind comes first."""
        return self.report["table"]


def run(request: Plan) -> Planned:
    """Run ``pykernel plan``."""
    began, labels, watch = clock.monotonic(), request.labels, request.watch
    spec = None if request.spec is None else spec_and_memory(request.spec)[0]
    amounts = {name: getattr(request, name) for name in ("ram", "flash", "instructions", "cycles")}
    any_size = request.ram == "any"
    limits, wanted, is_assumed = limits_of(
        request.target, spec, any_size, **amounts | ({"ram": None} if any_size else {})
    )
    rules, techniques = search.only(request.only)
    raise_first_error(
        (
            labels == "never" and request.delay,
            f"{shown_option('delay')} is {request.delay}, but {shown_option('labels')} says that there are no labels; give only one of the two",
        ),
    )
    if limits.target is not None:
        # raises UserError if the target's emulator is not installed
        check.choose([limits.target], None, find_target(limits.target).counting)
    asked = search.Asked(request)
    base, table, assumed = search.planned_data(asked, spec, request.inputs, request.label)
    make_spec(base)  # raises UserError for invalid column names
    if table.y is None and labels is not None:
        raise UserError(
            f"{shown_option('labels')} applies only to models that predict a column, but no such column is named, so the plan is for a monitor; leave {shown_option('labels')} out, or name the column with {shown_option('label')}"
        )
    if is_assumed:
        others = ", ".join(shown_option(name) for name in ("ram", "flash", "target"))
        watch.tell(
            f"limits   {RAM:,} bytes of RAM and {FLASH:,} of flash, as on a common small microcontroller; {others} or {shown_option('ram', 'any')} change these limits"
        )
    if spec is None:
        watch.data(asked.read)
    for line in assumption_lines(assumed):
        watch.tell(line)
    recorded = told_of(table, base["input"].get("columns", ()), asked.read["rows"])
    names = base["input"].get("columns") or [f"input {j}" for j in range(table.x.shape[1])]
    numbers = table.x
    if table.y is not None and not table.of_classes:
        y = table.y.reshape(len(table.y), -1)
        numbers, names = np.column_stack([numbers, y]), [*names, *["the label"] * y.shape[1]]
    recorded += filter(None, [coarse_told(numbers, names, make_spec(base).number)])
    for line in recorded:
        watch.warn(line)
    if table.y is None and table.devices is None:
        watch.tell(f"states   {states_told(table.x)}")
    tried = possible(arms(base, table, rules, techniques, limits.target, labels), table, watch)
    every = all_techniques() if techniques is None else ()
    report = {
        "ok": False,
        "assumed": assumed,
        "data": asked.read,
        "recorded": recorded,
        "labels": labels,
        "limits": vars(limits),
        "limits_assumed": is_assumed,
    }
    with new_folder(asked.output), Workers(work, table, jobs=asked.jobs) as workers:
        course = Search(tried, table, workers, limits, request.seed, every, labels)
        tried_from = clock.monotonic()
        report |= {"interrupted": _run(course, _Watch(began, request.time, request.trials, watch))}
        each = None if report["interrupted"] else (clock.monotonic() - tried_from) / max(1, len(course.trials))
        try:
            with watch.progress() as show:
                show(0, "verifying the best models")
                return concluded(course, base, wanted, asked, each, report)
        except NothingFits as error:
            error.report = report | {"reason": str(error)}
            raise


def possible(tried: list[Arm], table: Table, watch: Watch) -> list[Arm]:
    """Return the arms that this installation can train.

    Raises UserError if there are none, or if there are too few rows for a monitor.
    """
    ready = [arm for arm in tried if arm.made.spec is not None]
    if len(ready) < len(tried):
        try:
            import pykernel.training.reduced  # noqa: F401
        except MissingExtra as missing:
            watch.tell(f"models that are trained on this PC are left out: {missing}")
            tried = ready
    if not tried:
        raise UserError(f"none of these rules applies to this data; leave {shown_option('only')} out")
    if table.y is None:
        for made in filter(None, (arm.made.spec for arm in ready)):
            watched_rows(made, table)  # raises UserError before the trials start
    return tried


def _run(course: Search, trial_watch: _Watch) -> bool:
    """Run the search.  Returns whether the search was interrupted."""
    try:
        with trial_watch.watch.progress() as trial_watch.show:
            course.workers.after = trial_watch.trial
            course.run(trial_watch.left, trial_watch.until)
    except KeyboardInterrupt:
        if not course.trials:
            raise
        trial_watch.watch.tell(f"interrupted after {len(course.trials)} trials; the best so far is kept")
        return True
    return False


def concluded(
    course: Search,
    base: Mapping[str, Any],
    target: Mapping[str, Any],
    asked: search.Asked,
    each: float | None,
    known: Mapping[str, Any],
) -> Planned:
    """Verify the winner, and write the results.  Raises NothingFits if no model fits.

    each: duration of a trial in seconds; None if the user interrupted the trials.  known: the part of the report that
    does not depend on the winner.
    """
    winner, row, uses = verified(course, asked.watch.tell)
    learner, frozen, small = beside(course, winner, asked.watch)
    best = {"planned": winner, "learning": None if winner.learns else learner, "frozen": frozen, "small": small}
    if course.table.y is not None:
        count(course, [trial for trial in (winner, learner, frozen) if trial is not None])
    specs = {
        key: planned(trial, course.table, base["name"], target) for key, trial in best.items() if trial is not None
    }
    signal = of_signal(course, winner, each, asked.watch) if each is not None else None
    if course.table.y is None:
        judge_again(course, [winner, *([small] if small is not None else [])])
        others = watched_simply(
            specs["planned"].inner, course.table, winner.result["promised"]["learning"]["other_rows"]
        )
    else:
        any_model = {key: base[key] for key in ("name", "input", "label", "precision") if key in base}
        others = simple(make_spec(any_model), course.table, course.labels)
    report = {**known, **findings(course, winner, learner, small, others, frozen)} | {
        "ok": True,
        "uses": uses,
        "verified": row,
        "output": str(asked.output),
        "spec": str(asked.output / "planned.toml"),
        **{
            f"{name}_spec": str(asked.output / f"{name}.toml") if name in specs else None
            for name in ("learning", "frozen", "small")
        },
        "undecided": frozen is not None,
        "max_abs": asked.max_abs if winner.content["input"].get("max_abs") == asked.max_abs else None,
        "ranged": course.table.stage is None and isinstance(winner.content["input"].get("max_abs"), list),
        "signal": signal,
        "gaps": with_gaps(course, winner) if each is not None else {},
    }
    whose = {"planned": report["winner"], "frozen": report["frozen"], "small": report["small"]}
    for name, spec in specs.items():
        # the specs of other models get no comment about the recorded ranges of the inputs
        x = course.table.x if name in whose else None
        specs[name] = with_origin(spec, asked.data, asked.read, x, (whose.get(name) or {}).get("promise"))
    states = {name: state for name, spec in specs.items() if (state := taught(spec, asked.data))}
    report["states"] = {name: str(asked.output / f"{name}.bin") for name in states}
    report["report"] = str(asked.report)
    takes = {} if row is None else taken(row, course.limits)[0]
    read, files = search.table_read(course.table, base), (asked.files, asked.delay)
    page = plans.planned(report, asked.stated, read, front_of(report), inside(specs["planned"]), takes, files)
    result = Planned(report, specs, page)
    write(result, states, asked)
    return result


def beside(course: Search, winner: Trial, watch: Watch) -> tuple[Trial | None, Trial | None, Trial | None]:
    """Return three models: the best one that learns, the best frozen one, and a smaller one that is nearly as good.

    Each is None if there is no such model.  The frozen one is None, too, unless the winner learns and it is not known whether the device
    gets labels.  Models that will be written are trained on all rows.
    """
    learner, frozen = course.winner(learning=True), None  # without labels on the device, no model learns
    if course.labels is None and course.table.y is not None:
        with contextlib.suppress(NothingFits):
            other, _, _ = verified(course, watch.tell, not winner.learns)
            learner, frozen = (winner, other) if winner.learns else (other, None)
    small = course.smaller(winner)
    for trial in (None if winner.learns else learner, small):
        if trial is not None:
            course.finish(trial)
    return learner, frozen, small


def count(course: Search, trials: Sequence[Trial]) -> None:
    """If the plan has no target, and TARGET's emulator is installed, measure instructions and flash on TARGET.

    The report shows these figures, but no limit applies to them.
    """
    if course.limits.target is not None:
        return
    with contextlib.suppress(UserError):
        check.choose([TARGET], None, "unicorn")
        tasks = [cost_task(dump(course.table.whole(trial.content)), TARGET) for trial in trials]
        for trial, costs in zip(trials, course.workers.run(tasks), strict=True):
            trial.result["amounts"] = taken(costs, Limits(TARGET))[0]


def with_gaps(course: Search, winner: Trial) -> dict[str, float]:
    """Return the planned model's error for each value of the key ``[input] missing``, as a dict: value -> error.

    The error is over all judged rows, including those that lack an input; for a refused row, the previous prediction or the typical label
    is scored.  The dict is empty if no judged row lacks an input, if the spec has [signal], or if the spec already
    replaces missing inputs.
    """
    table, task = course.table, winner.arm.task(winner, None)
    spec = table.whole(winner.content)
    gaps = table.y is not None and bool(np.isnan(table.x[table.judged]).any())
    ways = ["refuse", *stand_ins(spec)] if gaps and spec.signal is None and not spec.completes else []
    key = "learning" if winner.learns else "frozen"
    results = dict(zip(ways, course.workers.run([task | {"missing": way} for way in ways]), strict=True))
    return {way: result[key]["error"] for way, result in results.items() if result.get(key) is not None}


def judge_again(course: Search, trials: Sequence[Trial]) -> None:
    """Evaluate monitors again with more and different faults, because the error on the faults used for the choice is optimistic."""
    tasks = [trial.arm.task(trial, course.limits.ram) | {"promise": True} for trial in trials]
    for trial, judged in zip(trials, course.workers.run(tasks), strict=True):
        trial.result["promised"] = {key: judged[key] for key in ("learning", "missed", "manners")}


def of_signal(course: Search, winner: Trial, each: float, watch: Watch) -> dict[str, Any] | None:
    """Leave out one kind of feature at a time, and return the planned model's errors.

    The result is None without [signal], for many devices, for a monitor, if no kind can be left out, or after an interrupt.

    each: duration of a trial in seconds.
    """
    if course.table.stage is None or course.table.devices is not None:
        return None
    if course.table.y is None:
        watch.tell(
            "for a monitor, the plan does not try leaving out one kind of feature at a time, because the faults that test the monitor are simulated in the features, not in the raw signal"
        )
        return None
    stages = without_each(course.table.stage)
    if not stages:
        return None
    took = formatted_duration(len(stages) * each)
    watch.tell(f"trying the planned model without one kind of feature at a time: {len(stages)} trials, about {took}")
    try:
        return {"features": ablation(course, winner, stages)}
    except KeyboardInterrupt:
        watch.tell("interrupted; the report will not contain the errors without one kind of feature")
        return None


class _Watch:
    """Prints a line when a better model is found, or when none has been found for a while, and decides when the trials end."""

    show: Show

    def __init__(self, began: float, time: float, trials: int | None, watch: Watch) -> None:
        self.began, self.time, self.trials, self.watch = began, time, trials, watch
        self.best, self.printed_at, self.tried = float("inf"), 0.0, 0
        self.ending = max(ENDING, ENDING_BY_BEGINNING * (clock.monotonic() - began))
        most = f"{time:g} s" if trials is None else f"{trials:,} trials"
        watch.tell(f"trying models for {most}; Ctrl-C ends this sooner")

    def left(self, course: Search) -> int:
        """Return the number of further trials that are allowed."""
        most, tried = self.trials, len(course.trials)
        self.trial(tried)
        gone = clock.monotonic() - self.began
        best = course.winner()
        score = float("inf") if best is None else best.score
        better = score < 0.999 * self.best
        if better or gone - self.printed_at > SILENCE:
            self.best, self.printed_at = score if better else self.best, gone
            left = f", {max(0, self.time - gone):.0f} s left" if most is None else ""
            best_so_far = (
                ""
                if best is None
                else f"  {error_and_deviation(best.report)}  {model_name(best)}, {byte_count(best.bytes)}"
            )
            self.watch.tell(f"{gone:5.0f} s  {tried:4} trials{left}{best_so_far}")
        if most is not None:
            return most - tried
        return sys.maxsize if clock.monotonic() < self.until(course) or not tried else 0

    def trial(self, tried: int | None = None) -> None:
        """Show progress.  tried: the number of trials so far; by default, one more than at the previous call."""
        self.tried = self.tried + 1 if tried is None else tried
        part = (clock.monotonic() - self.began) / self.time if self.trials is None else self.tried / self.trials
        self.show(min(1.0, part), "trying models")

    def until(self, course: Search) -> float:
        """Return the time at which trials must end, so that the whole plan ends in time.  Trials get at least half of the time."""
        if self.trials is not None:
            return math.inf
        # number of models that are verified, or whose instructions are counted
        named = 1 if len(course.kinds()) == 1 else 2
        ending, jobs = self.ending + named * (seconds_to_verify(course) or COUNTED), course.workers.jobs
        if course.table.y is None and course.trials:  # two monitors are evaluated again, in new processes
            one = (clock.monotonic() - self.began) / len(course.trials) * (jobs if isinstance(jobs, int) else 1)
            ending += self.ending + PROMISED / COUNT * one
        return self.began + max(self.time / 2, self.time - ending)


def limits_of(
    target: str | None, spec: Spec | None, any_size: bool, **amounts: str | int | None
) -> tuple[Limits, dict[str, Any], bool]:
    """Return the limits; the [target] of the planned spec, with the limits that the user gave; and whether the limits are assumed."""
    asked = [name for name, value in {"target": target, **amounts}.items() if value]
    if any_size:
        raise_first_error(
            (
                asked,
                f"{shown_option('ram', 'any')} and {' '.join(map(shown_option, asked[:1]))} contradict each other; give one of them",
            )
        )
        return Limits(), {}, False
    own = {} if spec is None or spec.target is None else spec.target.model_dump(exclude_none=True)
    target = target or own.get("name")
    amounts = {name: value or own.get(name) for name, value in amounts.items()}
    if target is None and not any(amounts.values()):
        return Limits(None, RAM, FLASH), {}, True
    thousands = {"ram": 1024, "flash": 1024, "instructions": 1000, "cycles": 1000}
    parsed = {name: parse_amount(value, name, thousands[name]) if value else None for name, value in amounts.items()}
    default = (
        "cortex-m0plus" if parsed["cycles"] else "cortex-m4f" if parsed["flash"] or parsed["instructions"] else None
    )
    wanted = target or default
    if wanted is not None and find_target(wanted).counting is None:
        raise UserError(
            f"{shown_option('target')} {wanted} has no emulator that counts instructions or cycles; see pykernel info"
        )
    limits = make_limits(wanted, **parsed)
    named = {"name": wanted} if wanted is not None else {}
    return limits, named | {key: value for key, value in parsed.items() if value is not None}, False


def write(result: Planned, states: Mapping[str, bytes], asked: search.Asked) -> None:
    """Write specs, states, and both reports: all files or none."""
    out, comments = asked.output, {"planned": spec_comment(result.report, asked.data)}
    with all_or_none(out):
        result.page.write(asked.report)
        for name, spec in result.specs.items():
            write_file(out / f"{name}.toml", comments.get(name, "") + spec.to_toml())
        for name, state in states.items():
            write_file(out / f"{name}.bin", state)
        write_file(out / "plan.json", json.dumps(finite_or_none(result.report), default=json_value, indent=1) + "\n")


plan = function(Plan, run)
