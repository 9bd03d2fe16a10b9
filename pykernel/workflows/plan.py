"""From a table to the model of smallest error that keeps a device's limits."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra, UserError, option, visible
from pykernel.files import all_or_none, new_folder
from pykernel.gen.project import inside
from pykernel.host.scores import verdict
from pykernel.progress import Show
from pykernel.report import plans
from pykernel.report.document import Document
from pykernel.report.figures import SIMPLE, Panel
from pykernel.request.kinds import parse_amount
from pykernel.request.option import function
from pykernel.spec.model import Spec, make_spec
from pykernel.targets import check
from pykernel.targets.target import find_target
from pykernel.telling import (
    MEASURES,
    Watch,
    assumed_told,
    byte_count,
    counted,
    duration,
    error_and_deviation,
    finite,
    growth,
    judged_on,
    number,
    plain,
    rate,
    refuse,
)
from pykernel.tuning.arms import Arm, Trial, arms
from pykernel.tuning.combinations import LINEAR, MARGIN
from pykernel.tuning.combinations import techniques as all_techniques
from pykernel.tuning.costs import Limits, cost_task, make_limits, taken
from pykernel.tuning.earned import TARGET, Earned, lean_variants, rich_variants, window_variants
from pykernel.tuning.faults import COUNT, KINDS, LARGEST, LONGEST, PROMISED, SHORTEST, SMALLEST
from pykernel.tuning.plan import NothingFits, Search, by_chance, model_name, planned, seconds_to_verify, verified
from pykernel.tuning.promises import NEAR, PER_BLOCK, Losses, promise, ratio
from pykernel.tuning.stage import dump
from pykernel.tuning.tables import sentinels
from pykernel.tuning.trials import TWICE, simple, watched_rows, watched_simply
from pykernel.workflows import search
from pykernel.workflows.given import write_file
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.requests import Plan
from pykernel.workflows.simulate import taught, with_origin

SILENCE = 10.0
"""After this many seconds without a better model, a line reports this."""
ENDING, ENDING_BY_BEGINNING = 3.0, 3.0
"""Least seconds for what follows the trials: the report, and errors of simple models; and how many times as long it takes as what
came before them: on a slow PC, or a busy one, both take longer.  Measured in CPU seconds: 1.2 times, of 1,000 and of 8,645 rows."""
COUNTED = 2.0
"""Approximate seconds to build a model for a target and count its instructions."""
RAM, FLASH = 16 * 1024, 64 * 1024
"""Limits of a plan that is given none, nor a target: a common small part."""


@dataclass(frozen=True, repr=False)
class Planned:
    """What a plan found.

    report: all results, as ``pykernel plan --json`` prints them.
    specs: ``planned``; and, if they exist, ``learning`` (the best model that learns, if the planned one does not),
    ``frozen`` (the best that does not, if the planned one learns and it is not known whether the device gets labels),
    ``small`` (nearly as good with much less memory), ``leaner`` and ``better`` (for a model with a signal stage).
    Beside the file of a spec that learns lies its state after all rows, which ``generate`` starts from.
    """

    report: dict[str, Any]
    specs: dict[str, Spec]
    page: Document
    """The result for people: ``page.write("report.html")``; a notebook shows it."""

    def _repr_html_(self) -> str:
        return self.page._repr_html_()

    @property
    def spec(self) -> Spec:
        """The spec of the best model within the limits."""
        return self.specs["planned"]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The best model of each kind: error, bytes, values; best first."""
        return self.report["table"]

    def __repr__(self) -> str:
        winner, measure = self.report["winner"], MEASURES[self.report["measure"]]
        lines = [
            f"plan for {counted(self.report)}, {self.report['trials']:,} trials; {measure} on {judged_on(self.report)}"
        ]
        rows = {"planned": winner, "learning": self.report["learner"], "frozen": self.report["frozen"]}
        for name, row in (rows | {"smaller": self.report["small"]}).items():
            if row is not None:
                told = error_and_deviation(row["promise"])
                lines.append(f"  {name:8}  {row['model']}: {told}, {row['bytes']:,} bytes")
        simple = self.report["simple"].items()
        lines += [f"  instead   {name}: {number(row['error'])}, {row['bytes']:,} bytes" for name, row in simple]
        return "\n".join(lines)


def run(given: Plan) -> Planned:
    """What ``pykernel plan`` does."""
    began, labels, watch = clock.monotonic(), given.labels, given.watch
    refuse(
        (
            labels == "never" and given.delay,
            f"{option('delay')} is {given.delay}, but {option('labels')} says that there are none; give one",
        ),
    )
    spec = None if given.spec is None else spec_and_memory(given.spec)[0]
    amounts = {name: getattr(given, name) for name in ("ram", "flash", "instructions", "cycles")}
    any_size = amounts["ram"] == "any"
    amounts["ram"] = None if any_size else given.ram
    limits, wanted, is_assumed = limits_of(given.target, spec, any_size, **amounts)
    rules, techniques = search.only(given.only)
    learners = [name for name in rules or () if name != "frozen"] if labels == "never" else []
    refuse(
        (
            learners,
            f"{option('labels')} is 'never', and {' '.join(learners[:1])} learns on the device; leave {option('only')} out, or give frozen",
        )
    )
    if limits.target is not None:
        check.choose([limits.target], None, "unicorn")  # raises UserError if its emulator is not installed
    asked = search.Asked(given)
    base, table, assumed = search.planned_data(asked, spec, given.inputs, given.label)
    make_spec(base)  # raises UserError for names of columns that cannot be
    if table.y is None and labels is not None:
        raise UserError(
            f"{option('labels')} is for a column to predict; a monitor gets none: leave it out, or give {option('label')}"
        )
    if is_assumed:
        others = ", ".join(option(name) for name in ("ram", "flash", "target"))
        watch.tell(
            f"limits   {RAM:,} bytes of RAM and {FLASH:,} of flash, a common small part; {others} or {option('ram', 'any')} change that"
        )
    if spec is None:
        watch.data(asked.read)
    for line in assumed_told(assumed):
        watch.tell(line)
    tried = possible(arms(base, table, rules, techniques, limits.target, labels), watch)
    if not tried:
        raise UserError(f"none of these rules is for this data; leave {option('only')} out")
    if table.y is None:
        for made in filter(None, (arm.made.spec for arm in tried)):
            watched_rows(made, table)  # raises UserError, before the work
    every = all_techniques() if techniques is None else ()
    report: dict[str, Any] = {
        "ok": False,
        "assumed": assumed,
        "data": asked.read,
        "labels": labels,
        "limits": vars(limits),
    }
    report["limits_assumed"] = is_assumed
    with new_folder(asked.output), search.workers(table, asked) as workers:
        course = Search(tried, table, workers, limits, given.seed, every, labels)
        tried_from = clock.monotonic()
        report |= {"interrupted": _run(course, _Watch(began, given.time, given.trials, watch))}
        each = (clock.monotonic() - tried_from) / max(1, len(course.trials))
        try:
            with watch.progress() as show:
                show(0, "verifying the best models")
                found, specs, page = concluded(
                    course, base, wanted, asked, None if report["interrupted"] else each, report
                )
        except NothingFits as error:
            error.report = report | {"reason": str(error)}
            raise
    return Planned(report | found, specs, page)


def possible(tried: list[Arm], watch: Watch) -> list[Arm]:
    """The arms that this installation can train."""
    ready = [arm for arm in tried if arm.made.spec is not None]
    if len(ready) < len(tried):
        try:
            import pykernel.training.reduced  # noqa: F401
        except MissingExtra as missing:
            watch.tell(f"without models that are trained here: {missing}")
            return ready
    return tried


def _run(course: Search, told: _Watch) -> bool:
    """Run the search; returns whether it was interrupted."""
    try:
        with told.watch.progress() as told.show:
            course.workers.after = told.trial
            course.run(told.left, told.until)
    except KeyboardInterrupt:
        if not course.trials:
            raise
        told.watch.tell(f"interrupted after {len(course.trials)} trials; the best so far is kept")
        return True
    return False


def concluded(
    course: Search,
    base: Mapping[str, Any],
    target: Mapping[str, Any],
    asked: search.Asked,
    each: float | None,
    known: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Spec], Document]:
    """Verify the winner; returns the report, the specs and the report for people.  Raises NothingFits.

    each: seconds of a trial; None if there is no time for further trials.  known: what was known before the trials.
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
    for name in ("leaner", "better"):
        if signal is not None and signal[name] is not None:
            content = signal[name].pop("spec") | {"name": base["name"]}
            specs[name] = make_spec(content | ({"target": dict(target)} if target else {}))
    if course.table.y is None:
        judge_again(course, [winner, *([small] if small is not None else [])])
        others = watched_simply(specs["planned"].inner, course.table)
    else:
        any_model = {key: base[key] for key in ("name", "input", "label", "precision") if key in base}
        others = simple(make_spec(any_model), course.table, course.labels)
    report = findings(course, winner, learner, small, others, frozen) | {
        "ok": True,
        "uses": uses,
        "verified": row,
        "output": str(asked.output),
        "spec": str(asked.output / "planned.toml"),
        **{
            f"{name}_spec": str(asked.output / f"{name}.toml") if name in specs else None
            for name in ("learning", "frozen", "small", "leaner", "better")
        },
        "undecided": frozen is not None,
        "max_abs": asked.max_abs if winner.content["input"].get("max_abs") == asked.max_abs else None,
        "ranged": course.table.stage is None and isinstance(winner.content["input"].get("max_abs"), list),
        "signal": signal,
    }
    whose = {
        "planned": report["winner"],
        "frozen": report["frozen"],
        "small": report["small"],
    }  # others have other features
    seen = {name: (course.table.x, (whose[name] or {}).get("promise")) for name in whose}
    specs = {name: with_origin(spec, asked.data, asked.read, *seen.get(name, (None,))) for name, spec in specs.items()}
    states = {name: state for name, spec in specs.items() if (state := taught(spec, asked.data))}
    report["states"] = {name: str(asked.output / f"{name}.bin") for name in states}
    panel, read = front_of(report), search.table_read(course.table, base)
    report["plot"] = str(asked.plot)
    takes = {} if row is None else taken(row, Limits(**known["limits"]))[0]
    page = plans.planned(
        {**known, **report}, asked.stated, read, panel, inside(specs["planned"]), takes, (asked.files, asked.delay)
    )
    return write(report, specs, states, asked, told_in_spec({**known, **report}, asked.data), page), specs, page


def beside(course: Search, winner: Trial, watch: Watch) -> tuple[Trial | None, Trial | None, Trial | None]:
    """The best model that learns; the best frozen one, where it would matter; and a smaller one.  What is written is finished."""
    learner, frozen = course.winner(learning=True), None
    if course.labels is None and course.table.y is not None:
        with contextlib.suppress(NothingFits):
            other, _, _ = verified(course, watch.tell, not winner.learns)
            learner, frozen = (winner, other) if winner.learns else (other, None)
    small = course.smaller(winner)
    if small is not None:
        course.finish(small)
    return learner, frozen, small


def count(course: Search, trials: Sequence[Trial]) -> None:
    """Without a target: instructions and flash on TARGET, if its emulator is installed.  They are no limit, but told."""
    if course.limits.target is not None:
        return
    with contextlib.suppress(UserError):
        check.choose([TARGET], None, "unicorn")
        tasks = [cost_task(dump(course.table.whole(trial.content)), TARGET) for trial in trials]
        for trial, costs in zip(trials, course.workers.run(tasks), strict=True):
            trial.found["amounts"] = taken(costs, Limits(TARGET))[0]


def judge_again(course: Search, trials: Sequence[Trial]) -> None:
    """Judge monitors once more, by more and other faults: those that chose them flatter them."""
    tasks = [trial.arm.task(trial, course.limits.ram) | {"promise": True} for trial in trials]
    for trial, found in zip(trials, course.workers.run(tasks), strict=True):
        trial.found["promised"] = {key: found[key] for key in ("learning", "missed")}


def of_signal(course: Search, winner: Trial, each: float, watch: Watch) -> dict[str, Any] | None:
    """The benefit of the parts of the signal stage; None without a signal, or if there is nothing to try.

    each: seconds of a trial.
    """
    if course.table.stage is None:
        return None
    if course.table.y is None:
        watch.tell("what features earn is not tried: faults of a monitor are put into the features themselves")
        return None
    lean, rich, windows = (variants(course.table) for variants in (lean_variants, rich_variants, window_variants))
    # trials without each single kind; then one more kind is removed each time
    earned, most = Earned(course, winner), max(0, 2 * len(lean) - 1) + len(rich) + len(windows)
    if not most:
        return None
    seconds = most * (each + (COUNTED if earned.target else 0.0))
    parts = {"without each kind of feature": lean, "with each other kind": rich, "with other windows and hops": windows}
    told = ", ".join(text for text, some in parts.items() if some)
    watch.tell(f"trying it {told}: at most {most} trials, about {duration(seconds)}")
    try:
        return earned.all(lean, rich, windows)
    except KeyboardInterrupt:
        watch.tell("interrupted: what features and windows earn is left out")
        return None


def told_in_spec(report: Mapping[str, Any], data: str) -> str:
    """A comment for the spec's file: the origin of the spec, and its expected error."""
    winner, others = report["winner"], report["simple"]
    least = min(others, key=lambda name: others[name]["error"], default=None)
    instead = f"; {least} {number(others[least]['error'])}" if least is not None else ""
    told = winner["promise"]
    alarms = f", other rows in alarm {rate(told['other_rows'])}" if "other_rows" in told else ""
    lines = [
        f"Planned from {Path(data).name}, {counted(report)}; {MEASURES[report['measure']]} on {judged_on(report)}:",
        f"{winner['model']} {error_and_deviation(told)}{alarms}{instead}",
        *told_of_life(report),
        *([f"The same again: --trials {report['trials']} --seed {report['seed']}"] if report["repeatable"] else []),
    ]
    return "".join(f"# {visible(line)}\n" for line in lines) + "\n"


def told_of_life(report: Mapping[str, Any]) -> list[str]:
    """Under which conditions the promise holds."""
    winner = report["winner"]
    told = []
    if "other_rows" not in winner["promise"]:
        lives = (
            "It learns on the device: it needs the label of each row"
            if winner["learning"]
            else "It does not learn on the device"
        )
        told.append(f"{lives}; ± is half of an interval of 95 % for rows to come.")
        if grows := growth(winner["promise"]):
            told.append(f"{grows[0].upper()}{grows[1:]}.")
    if report.get("ranged"):
        from pykernel.training.trained import MARGIN as BEYOND  # needs an extra, as the model did that is told of

        told.append(
            f"[input] max_abs reaches {BEYOND:g} of each input's recorded range beyond that range, or more: the device refuses what is "
            "farther, because the model knows nothing of it."
        )
    if (limit := report["max_abs"]) is not None:
        codes = sorted({each for each in sentinels(report["data"]) if abs(each) > limit})
        below = f", but below {' and '.join(f'{each:g}' for each in codes)}" if codes else ""
        told.append(
            f"[input] max_abs is {MARGIN:g} times the largest recorded input, rounded up{below}: the device refuses what is beyond."
        )
    return told


class _Watch:
    """Reports when a better model is found, when none was found for a while, and when the time is over."""

    show: Show

    def __init__(self, began: float, time: float, trials: int | None, watch: Watch) -> None:
        self.began, self.time, self.trials, self.watch = began, time, trials, watch
        self.best, self.told, self.tried = float("inf"), 0.0, 0
        self.ending = max(ENDING, ENDING_BY_BEGINNING * (clock.monotonic() - began))
        most = f"{time:g} s" if trials is None else f"{trials:,} trials"
        watch.tell(f"trying models for {most}; Ctrl-C ends this sooner")

    def left(self, course: Search) -> int:
        """How many trials may follow."""
        most, tried = self.trials, len(course.trials)
        self.trial(tried)
        gone = clock.monotonic() - self.began
        best = course.winner()
        score = float("inf") if best is None else best.score
        better = score < 0.999 * self.best
        if better or gone - self.told > SILENCE:
            self.best, self.told = score if better else self.best, gone
            left = f", {max(0, self.time - gone):.0f} s left" if most is None else ""
            found = (
                ""
                if best is None
                else f"  {error_and_deviation(best.told)}  {model_name(best)}, {byte_count(best.bytes)}"
            )
            self.watch.tell(f"{gone:5.0f} s  {tried:4} trials{left}{found}")
        if most is not None:
            return most - tried
        return sys.maxsize if clock.monotonic() < self.until(course) or not tried else 0

    def trial(self, tried: int | None = None) -> None:
        """Show how far the work is after so many trials, or after one more."""
        self.tried = self.tried + 1 if tried is None else tried
        part = (clock.monotonic() - self.began) / self.time if self.trials is None else self.tried / self.trials
        self.show(min(1.0, part), "trying models")

    def until(self, course: Search) -> float:
        """When the trials end, so that what follows ends in time; at least half of the time is theirs."""
        if self.trials is not None:
            return math.inf
        named = 1 if len(course.kinds()) == 1 else 2  # models that are verified, or whose instructions are counted
        ending, jobs = self.ending + named * (seconds_to_verify(course) or COUNTED), course.workers.jobs
        if course.table.y is None and course.trials:  # new processes judge two monitors once more
            one = (clock.monotonic() - self.began) / len(course.trials) * (jobs if isinstance(jobs, int) else 1)
            ending += self.ending + PROMISED / COUNT * one
        return self.began + max(self.time / 2, self.time - ending)


def limits_of(
    target: str | None, spec: Spec | None, any_size: bool, **amounts: str | int | None
) -> tuple[Limits, dict[str, Any], bool]:
    """The limits; the [target] for the spec, which has the limits that the user gave; and whether the limits are assumed."""
    asked = [name for name, value in {"target": target, **amounts}.items() if value]
    if any_size:
        refuse(
            (asked, f"{option('ram', 'any')} and {' '.join(map(option, asked[:1]))} contradict each other; give one")
        )
        return Limits(), {}, False
    own = {} if spec is None or spec.target is None else spec.target.model_dump(exclude_none=True)
    target = target or own.get("name")
    amounts = {name: value or own.get(name) for name, value in amounts.items()}
    if target is None and not any(amounts.values()):
        return Limits(None, RAM, FLASH), {}, True
    thousands = {"ram": 1024, "flash": 1024, "instructions": 1000, "cycles": 1000}
    given = {name: parse_amount(value, name, thousands[name]) if value else None for name, value in amounts.items()}
    default = "cortex-m0plus" if given["cycles"] else "cortex-m4f" if given["flash"] or given["instructions"] else None
    wanted = target or default
    if wanted is not None and find_target(wanted).unicorn is None:
        raise UserError(f"{option('target')} {wanted} has no emulator that counts instructions; see pykernel info")
    limits = make_limits(wanted, **given)
    named = {"name": wanted} if wanted is not None else {}
    return limits, named | {key: value for key, value in given.items() if value is not None}, False


def findings(
    course: Search,
    winner: Trial,
    learner: Trial | None,
    small: Trial | None,
    others: Mapping[str, Any],
    frozen: Trial | None,
) -> dict[str, Any]:
    def row(trial: Trial | None, chosen: bool = True) -> dict[str, Any] | None:
        if trial is None:
            return None
        told = trial.found | (trial.found.get("promised", {}) if chosen else {})
        parts: dict[str, Any] = {key: told.get(key) for key in ("ram_bytes", "table_bytes", "missed")}
        for key in ("frozen", "learning"):
            parts[key] = told[key] and {name: value for name, value in told[key].items() if name not in PER_BLOCK}
        content, tried = trial.content, {**trial.arm.own, **trial.values}
        values = {knob.name: content.get(knob.section, {}).get(knob.key, tried[knob.name]) for knob in trial.arm.knobs}
        named = {"model": model_name(trial), "rule": trial.arm.made.rule, "technique": trial.arm.made.technique}
        found = named | {"size": trial.size, "values": values, "bytes": trial.bytes} | parts
        if course.table.y is None:
            return found | ({"promise": told["learning"]} if chosen else {})
        found["beside"] = beside_simple(course, trial.losses, others)
        if not chosen:
            return found
        losses = trial.losses if trial is small else course.honest(None if trial is winner else trial.learns)
        amounts = trial.found.get("amounts", {})
        costs = {"flash_bytes": amounts.get("flash"), "instructions": amounts.get("instructions")}
        which = beside_simple(course, losses, others, trial is frozen)
        return found | costs | {"promise": promise(losses), "beside": which}

    devices = course.table.devices
    best = {arm.name: arm.best for arm in course.arms if arm.best is not None}
    kinds = {arm.name: arm.kind for arm in course.arms}
    ranked = sorted(best.values(), key=lambda trial: trial.score)
    told = row(winner)
    assert told is not None
    return {
        "measure": measure(course),
        "rows": len(course.table.x),
        **course.table.raw_rows,
        "device_count": None if devices is None else len(devices.teach) + len(devices.judge),
        "judges": None if devices is None else sum(len(fold.runs) for fold in course.table.folds),
        "judged_rows": course.table.judged_rows,
        "trials": len(course.trials),
        "seed": course.seed,
        "repeatable": course.repeatable,
        "winner": told,
        "choice": choice(course, winner),
        "faults": None
        if course.table.y is not None
        else {"kinds": len(KINDS), "sizes": [SMALLEST, LARGEST], "rows": [SHORTEST, LONGEST]},
        "table": [row(trial, chosen=False) for trial in ranked],
        "learner": row(learner),
        "frozen": row(frozen),
        "small": row(small),
        "target": course.limits.target or TARGET,
        "points": [
            [trial.bytes, (trial.told or {})["error"], kinds[trial.arm.name], model_name(trial)]
            for trial in course.ranking()
        ],
        "simple": {name: _without_blocks(each) for name, each in others.items()},
        "verdict": _of_simple(told) if course.table.y is not None else against_simple(course, winner, others),
    }


def _of_simple(winner: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the planned model compares with the simple predictors; linear: whether it is one of them itself, but for its stages."""
    found: dict[str, Any] | None = winner["beside"]
    return found and found | {"linear": winner["technique"] == LINEAR}


def choice(course: Search, winner: Trial) -> dict[str, Any]:
    """Beside the planned model the one of smallest error: both errors on the judged rows, and bytes; why it is not the planned one.

    why: None if it is; "near" if the errors are nearly equal, "test" if a paired test does not tell them apart; of monitors "chance".
    """
    best = course.candidates()[0]
    own, least = ((trial.told or {})["error"] for trial in (winner, best))
    why = "chance" if course.table.y is None else "near" if own <= NEAR * least else "test"
    named = {"model": model_name(best), "error": least, "own": own, "bytes": best.bytes}
    return named | {"why": None if best is winner else why}


def _without_blocks(told: Any) -> Any:
    """What is told of an error, without its blocks."""
    if not isinstance(told, Mapping):
        return told
    return {key: _without_blocks(value) for key, value in told.items() if key not in PER_BLOCK}


def beside_simple(
    course: Search, model: Losses, others: Mapping[str, Any], frozen: bool = False
) -> dict[str, Any] | None:
    """A model's error over that of the best simple predictor, by the same blocks of rows.

    winner: "model", the predictor's name, or None if the interval of 95 % (low, high) has 1 in it.  frozen: whether the
    predictors are those that learned the first rows only.
    """
    told = {name: each["frozen"] if frozen else each for name, each in others.items()}
    told = {name: each for name, each in told.items() if each is not None}
    if not told:
        return None
    name = min(told, key=lambda each: told[each]["error"])
    found: dict[str, Any] = {"simple": name, "error": told[name]["error"], "model": model.error}
    part = ratio(model, Losses.from_report(told[name], course.table.of_classes))
    if part is None:
        less = {True: "model", False: None if model.error == told[name]["error"] else name}
        return found | {"winner": less[model.error < told[name]["error"]], "ratio": None, "low": None, "high": None}
    return found | {"winner": "model" if part["high"] < 1 else name if part["low"] > 1 else None} | part


def against_simple(course: Search, winner: Trial, others: Mapping[str, Any]) -> dict[str, Any] | None:
    """How a monitor compares with what is simple: see ``verdict``.

    A simple monitor is as good if it sees as many faults but for chance, with about as many other rows in alarm.
    """
    told = winner.found["promised"]["learning"]
    found = verdict(told["error"], {name: each["error"] for name, each in others.items()})
    if found is None:
        return None
    most = told["error"] + by_chance(told["error"]), TWICE * max(told["rate"], told["other_rows"])
    near = [name for name, each in others.items() if each["error"] <= most[0] and each["other_rows"] <= most[1]]
    best = min(near or others, key=lambda name: others[name]["bytes" if near else "error"])
    return found | {
        "winner": None if near else "model",
        "simple": best,
        "error": others[best]["error"],
        "other_rows": others[best]["other_rows"],
        "bytes": others[best]["bytes"],
    }


def measure(course: Search) -> str:
    if course.table.y is None:
        return "faults_missed"
    return "error_rate" if course.table.y.dtype.kind in "iu" else "rmse"


def write(
    report: dict[str, Any],
    specs: Mapping[str, Spec],
    states: Mapping[str, bytes],
    asked: search.Asked,
    comment: str,
    page: Document,
) -> dict[str, Any]:
    """Write specs, states, and both reports: all files or none.  Returns the report with the path for people."""
    out = asked.output
    with all_or_none(out):
        page.write(asked.plot)
        for name, spec in specs.items():
            write_file(out / f"{name}.toml", (comment if name == "planned" else "") + spec.to_toml())
        for name, state in states.items():
            write_file(out / f"{name}.bin", state)
        write_file(out / "plan.json", json.dumps(finite(report), default=plain, indent=1) + "\n")
    return report


def front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Positions of the Pareto front: points for which no other point is at least as good in all costs and better in
    one.
    """
    points = np.asarray(costs, float).reshape(len(costs), -1) if len(costs) else np.zeros((0, 1))
    return [i for i, p in enumerate(points) if not ((points <= p).all(axis=1) & (points < p).any(axis=1)).any()]


def front_of(report: Mapping[str, Any]) -> Panel:
    """Error over bytes, with the simple predictors."""
    points = [(max(1, p[0]), p[1], p[2], p[3]) for p in report["points"]]
    points += [(max(1, s["bytes"]), s["error"], SIMPLE, name) for name, s in report["simple"].items()]
    on = set(front([point[:2] for point in points]))
    marked = [(*point, i in on) for i, point in enumerate(points)]
    picked = {"planned": report["winner"], "smaller": report["small"]}
    chosen = {
        name: next(i for i, p in enumerate(points) if p[3] == row["model"] and p[0] == max(1, row["bytes"]))
        for name, row in picked.items()
        if row is not None
    }
    return Panel("bytes of RAM and tables", marked, chosen)


plan = function(Plan, run)
