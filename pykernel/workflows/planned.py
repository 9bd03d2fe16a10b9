"""Return the results of a plan as plain values, and write the comments in the planned spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import visible
from pykernel.host.scores import verdict
from pykernel.report.figures import SIMPLE, Panel
from pykernel.telling import (
    MEASURES,
    error_and_deviation,
    error_growth_sentence,
    formatted_number,
    judged_rows_phrase,
    percent,
    rows_with_unit,
)
from pykernel.tuning.arms import Trial
from pykernel.tuning.combinations import LINEAR, MARGIN
from pykernel.tuning.faults import KINDS, LARGEST, LONGEST, SHORTEST, SMALLEST
from pykernel.tuning.plan import Search, by_chance, model_name
from pykernel.tuning.promises import NEAR, PER_BLOCK, Losses, more_by, promise, ratio
from pykernel.tuning.tables import sentinels

TARGET = "cortex-m4f"
"""Target on which instructions are counted if the plan has no target."""


def findings(
    course: Search,
    winner: Trial,
    learner: Trial | None,
    small: Trial | None,
    others: Mapping[str, Any],
    frozen: Trial | None,
) -> dict[str, Any]:
    """Return the report of a plan.  others: figures of the simple predictors; for a monitor, of the simple monitors."""
    monitors, devices = course.table.y is None, course.table.devices

    def row(trial: Trial) -> dict[str, Any]:
        if monitors:
            figures = trial.result | trial.result.get("promised", {})
            return _row(trial, figures) | {"promise": figures["learning"]}
        losses = trial.losses if trial is small else course.honest(None if trial is winner else trial.learns)
        amounts = trial.result.get("amounts", {})
        return _row(trial, trial.result) | {
            "against_simple": beside_simple(course, losses, others, trial is frozen),
            "flash_bytes": amounts.get("flash"),
            "instructions": amounts.get("instructions"),
            "promise": promise(losses),
        }

    tried = [arm.best for arm in course.arms if arm.best is not None]
    table = [
        _row(trial, trial.result)
        | ({} if monitors else {"against_simple": beside_simple(course, trial.losses, others)})
        for trial in sorted(tried, key=lambda trial: trial.score)
    ]
    winner_row = row(winner)
    picked = {"learner": learner, "frozen": frozen, "small": small}
    faults = {
        "kinds": len(KINDS),
        "manners": list(winner_row["manners"] or ()),
        "sizes": [SMALLEST, LARGEST],
        "rows": [SHORTEST, LONGEST],
    }
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
        "winner": winner_row,
        "choice": choice(course, winner),
        "faults": faults if monitors else None,
        "table": table,
        **{name: trial and row(trial) for name, trial in picked.items()},
        "target": course.limits.target or TARGET,
        "points": [
            [trial.bytes, (trial.report or {})["error"], trial.arm.kind, model_name(trial)]
            for trial in course.ranking()
        ],
        "simple": {name: _without_blocks(each) for name, each in others.items()},
        "verdict": against_simple(winner, others) if monitors else _of_simple(winner_row),
    }


def _row(trial: Trial, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's row: name, size, parameter values, bytes, and errors without the figures for each block."""
    content, tried, made = trial.content, {**trial.arm.own, **trial.values}, trial.arm.made
    values = {knob.name: content.get(knob.section, {}).get(knob.key, tried[knob.name]) for knob in trial.arm.knobs}
    named = {"model": model_name(trial), "rule": made.rule, "technique": made.technique, "size": trial.size}
    parts = {key: figures.get(key) for key in ("ram_bytes", "table_bytes", "missed", "manners")}
    errors = {key: _without_blocks(figures[key]) for key in ("frozen", "learning")}
    return named | {"values": values, "bytes": trial.bytes} | parts | errors


def _of_simple(winner: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the planned model's comparison with the simple predictors, and under "linear" whether the planned model is itself linear."""
    comparison: dict[str, Any] | None = winner["against_simple"]
    return comparison and comparison | {"linear": winner["technique"] == LINEAR}


def choice(course: Search, winner: Trial) -> dict[str, Any]:
    """Return a dict about the model with the smallest error on the judged rows: its name, error and bytes, the planned model's error
    (``own``), and why this model was not planned.

    why: None if this model is the planned one; "near" if the two errors are nearly equal; "test" if a paired test finds no significant
    difference between them; "chance" if the model is a monitor: the difference may be due to chance.
    """
    best = course.candidates()[0]
    own, least = ((trial.report or {})["error"] for trial in (winner, best))
    why = "chance" if course.table.y is None else "near" if own <= NEAR * least else "test"
    named = {"model": model_name(best), "error": least, "own": own, "bytes": best.bytes}
    return named | {"why": None if best is winner else why}


def _without_blocks(figures: Any) -> Any:
    """Return the figures of an error, without those for each block."""
    if not isinstance(figures, Mapping):
        return figures
    return {key: _without_blocks(value) for key, value in figures.items() if key not in PER_BLOCK}


def beside_simple(
    course: Search, model: Losses, others: Mapping[str, Any], frozen: bool = False
) -> dict[str, Any] | None:
    """Divide a model's error by the error of the best simple predictor, on the same blocks of rows.

    winner: "model", the predictor's name, or None if the 95 % interval (low, high) contains 1.  If an error is 0, there
    is no interval, and the smaller error wins.  frozen: whether to compare with predictors that learned only the first
    rows.
    """
    errors = {name: each["frozen"] if frozen else each for name, each in others.items()}
    errors = {name: each for name, each in errors.items() if each is not None}
    if not errors:
        return None
    name = min(errors, key=lambda each: errors[each]["error"])
    comparison: dict[str, Any] = {"simple": name, "error": errors[name]["error"], "model": model.error}
    part = ratio(model, Losses.from_report(errors[name], course.table.of_classes))
    if part is None:
        less = {True: "model", False: None if model.error == errors[name]["error"] else name}
        return comparison | {
            "winner": less[model.error < errors[name]["error"]],
            "ratio": None,
            "low": None,
            "high": None,
        }
    return comparison | {"winner": "model" if part["high"] < 1 else name if part["low"] > 1 else None} | part


def against_simple(winner: Trial, others: Mapping[str, Any]) -> dict[str, Any] | None:
    """Compare a monitor with simple monitors that have the same false-alarm rate: see ``verdict``.

    winner: the name of a simple monitor that misses fewer of the same faults; "model" if every simple monitor misses more; None if the
    differences from some simple monitors may be due to chance.  With None, the report names the smallest of these monitors.
    """
    errors = winner.result["promised"]["learning"]
    comparison = verdict(errors["error"], {name: each["error"] for name, each in others.items()})
    if comparison is None:
        return None
    model, rivals = (
        Losses.from_report(errors, True),
        {n: Losses.from_report(each, True) for n, each in others.items()},
    )
    most = errors["error"] + by_chance(errors["error"])
    near = [name for name, each in rivals.items() if each.error <= most and not more_by(each, model)]
    best = comparison["simple"]
    won = best if more_by(model, rivals[best]) else None if near else "model"
    shown = min(near, key=lambda name: others[name]["bytes"]) if won is None else best
    shares = {key: others[shown][key] for key in ("error", "other_rows", "bytes", "above")}
    return comparison | {"winner": won, "simple": shown, "missed": errors["error"], **shares}


def measure(course: Search) -> str:
    if course.table.y is None:
        return "faults_missed"
    return "error_rate" if course.table.y.dtype.kind in "iu" else "rmse"


def spec_comment(report: Mapping[str, Any], data: str) -> str:
    """Return a comment for the spec's file: the origin of the spec, and its expected error."""
    winner, others = report["winner"], report["simple"]
    least = min(others, key=lambda name: others[name]["error"], default=None)
    instead = f"; {least} {formatted_number(others[least]['error'])}" if least is not None else ""
    expected = winner["promise"]
    alarms = f", other rows in alarm {percent(expected['other_rows'])}" if "other_rows" in expected else ""
    lines = [
        f"Planned from {Path(data).name}, {rows_with_unit(report)}; {MEASURES[report['measure']]} on "
        f"{judged_rows_phrase(report)}:",
        f"{winner['model']} {error_and_deviation(expected)}{alarms}{instead}",
        *conditions_sentences(report),
        *(
            [f"To repeat this plan: --trials {report['trials']} --seed {report['seed']}"]
            if report["repeatable"]
            else []
        ),
    ]
    return "".join(f"# {visible(line)}\n" for line in lines) + "\n"


def conditions_sentences(report: Mapping[str, Any]) -> list[str]:
    """Return sentences about the conditions under which the expected error holds."""
    winner = report["winner"]
    sentences = []
    if "other_rows" not in winner["promise"]:
        lives = (
            "It learns on the device: it needs the label of each row"
            if winner["learning"]
            else "It does not learn on the device"
        )
        if not winner["learning"] and report["states"].get("planned"):
            lives = (
                "It learned from the recording, but does not learn on the device, which starts from this folder's state"
            )
        sentences.append(f"{lives}; ± is half the width of the 95 % interval for the error on future rows.")
        if grows := error_growth_sentence(winner["promise"]):
            sentences.append(f"{grows[0].upper()}{grows[1:]}.")
    if report.get("ranged"):
        # this import needs an extra, but so did the planned model
        from pykernel.training.trained import (
            MARGIN as BEYOND,
        )

        sentences.append(
            f"[input] max_abs extends the recorded range of each input at both ends, by at least {BEYOND:g} times the range's width: the "
            "device refuses inputs outside the extended range, because the model was not trained on such values."
        )
    if (limit := report["max_abs"]) is not None:
        codes = sorted({each for each in sentinels(report["data"]) if abs(each) > limit})
        below = f", but below the magnitude of {' and '.join(f'{each:g}' for each in codes)}" if codes else ""
        sentences.append(
            f"[input] max_abs is {MARGIN:g} times the largest recorded input, rounded up{below}: the device refuses larger inputs."
        )
    return sentences


def front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Return the positions of the Pareto front: points for which no other point is equal or better in all costs and better in one."""
    points = np.asarray(costs, float).reshape(len(costs), -1) if len(costs) else np.zeros((0, 1))
    return [i for i, p in enumerate(points) if not ((points <= p).all(axis=1) & (points < p).any(axis=1)).any()]


def front_of(report: Mapping[str, Any]) -> Panel:
    """Return a plot of error against bytes, which includes the simple predictors."""
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
