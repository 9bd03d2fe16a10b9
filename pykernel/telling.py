"""Messages of workflows: where they go, what refuses, and how numbers, sizes and times stand in sentences, tables and JSON."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pykernel.errors import UserError, told_late

Show = Callable[[float, str], None]
"""A function (amount done, name of the next step)."""


class Watch:
    """Receives a workflow's messages.  This class prints only steps that take more than two seconds, on standard error.

    The command line has a subclass that prints all messages; a program may have one that logs them.
    """

    bars = False
    """Whether long work may draw its own progress bars on standard error."""

    def note(self, sentence: str) -> None:
        """Report an assumption; it belongs to the result."""

    def tell(self, sentence: str) -> None:
        """Report a step that starts, or something that has happened."""

    def warn(self, sentence: str) -> None:
        """Report something that the user probably did not intend."""

    def progress(self, total: float | None = 1) -> contextlib.AbstractContextManager[Show]:
        """total: 1, or a number of bytes, or None if it is not known."""
        return told_late()


QUIET = Watch()


def refuse(*rules: tuple[object, str]) -> None:
    """Raises UserError with the first sentence whose rule is true.

    rules: whether something is wrong, and a sentence about it.
    """
    for wrong, sentence in rules:
        if wrong:
            raise UserError(sentence)


# -------------------------------------------------------------------------------------------------------------- numbers


def byte_count(size: int | None) -> str:
    return "" if size is None else f"{size:,} B"


def number(value: float | None) -> str:
    return (
        "-" if value is None else f"{value:.4g}" if value < 1e4 else f"{value:,.0f}" if value < 1e9 else f"{value:.3e}"
    )


def tick(value: float) -> str:
    """A number at an axis, as people write it: 1,000 and 0.25."""
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{float(f'{value:.6g}'):,.6f}".rstrip("0").rstrip(".")


def error_and_deviation(told: Mapping[str, Any] | None) -> str:
    """An error and half of its interval of 95 %, or its standard deviation; nothing if there is none."""
    return "" if told is None else f"{number(told['error'])} ± {number(told.get('within', told.get('deviation')))}"


def duration(seconds: float) -> str:
    """A duration as text with one or two digits: an estimate is not more exact."""
    if seconds < 90:
        return f"{float(f'{seconds:.1g}' if seconds < 10 else f'{seconds:.2g}'):g} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def verdict(found: Mapping[str, Any], shown: Callable[[float], str] = number) -> str:
    """A sentence for the result of ``host.scores.verdict``: which is better, by which factor, and both errors.

    shown: prints an error.
    """
    won, ratio = found["winner"], found["ratio"]
    errors = [shown(found["error"]), shown(found["model"])]
    if won is None:
        return f"{found['simple']} is as good: {errors[0]} against {errors[1]}"
    often = "" if ratio is None else f"{ratio:,.0f} times " if ratio >= 10 else f"{ratio:.{1 + (ratio < 1.1)}f} times "
    if won == "model":
        return f"the model is {often}better than {found['simple']}: {errors[1]} against {errors[0]}"
    return f"{won} is {often}better: {errors[0]} against {errors[1]}"


def root(value: float) -> float:
    """The root of a mean of squares; NaN if rounding made it negative."""
    return math.sqrt(value) if value >= 0 else math.nan


def rate(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"


STANDS_IN = '[input] missing = "mean" or "hold" keeps such rows'


def skipped(gaps: int, may_stand_in: bool = False) -> str:
    """A sentence that counts rows with an empty input, and says what happens with them, and what may instead."""
    told = f"{gaps:,} {'row' if gaps == 1 else 'rows'} with an empty input: neither predicted nor learned"
    return f"{told}; {STANDS_IN}" if may_stand_in else told


def missing_told(found: Mapping[str, Any], most: int = 6) -> str:
    """How many inputs are missing, and what stands in for them."""
    by = {"mean": "the mean", "hold": "the latest value"}[found["by"]]
    listed = sorted(found["columns"].items(), key=lambda item: -item[1])
    columns = ", ".join(f"{name}: {count:,}" for name, count in listed[:most]) + (", …" if len(listed) > most else "")
    return f"{found['inputs']:,} of {found['of']:,} cells, for which {by} stands in ({columns})"


def gaps_told(raw: Mapping[str, int], steps: int) -> str:
    """How many raw rows are gaps, for each cause, and how many steps remain; "" without gaps.  steps: the remaining
    steps.
    """
    causes = {"empty": "with an empty cell", "no_number": "without a number", "beyond_max_abs": "beyond max_abs"}
    told = [f"{raw[key]:,} {what}" for key, what in causes.items() if raw[key]]
    left = f"{steps:,} of {raw['steps_without_gaps']:,} steps are left"
    return f"{', '.join(told)}, of {raw['rows']:,} raw rows: {left}" if told else ""


def unit_of(report: Mapping[str, Any]) -> str:
    """The word for what the model learns: "step" with a signal stage, else "row"."""
    return "step" if "raw_rows" in report else "row"


def counted(report: Mapping[str, Any]) -> str:
    """The number of rows or steps, with their unit."""
    count = f"{report['rows']:,} {unit_of(report)}s"
    return f"{count} of {report['raw_rows']['rows']:,} raw rows" if "raw_rows" in report else count


MEASURES = {"mae": "MAE", "rmse": "RMSE", "error_rate": "error rate"}
"""What a search minimises, as it is printed."""


def model_name(row: Mapping[str, Any]) -> str:
    """Rule, technique and size of what a search tried."""
    return " ".join(str(part) for part in (row["rule"], row["technique"], row["size"]) if part is not None)


def key_values(values: Mapping[str, float | str]) -> str:
    """Keys of a spec without their sections, and their values."""
    shown = {name: value if isinstance(value, str) else f"{value:g}" for name, value in values.items()}
    return " ".join(f"{name.partition('.')[2]} {value}" for name, value in shown.items())


def plain(value: Any) -> Any:
    """NumPy's scalars and paths, for json."""
    return value.item() if hasattr(value, "item") else str(value)


def finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ------------------------------------------------------------------------------------------------- what a plan found


def misses(row: Mapping[str, Any]) -> str:
    """What a monitor promises."""
    told = row["learning"]
    missed = f"misses {rate(told['error'])} ± {rate(told['deviation'])} of such faults"
    return (
        f"{row['model']}, {missed}, {rate(told['other_rows'])} of the other rows in alarm, {byte_count(row['bytes'])}"
    )


def missed_kinds(found: Mapping[str, Sequence[int]]) -> str:
    """Of which kinds a monitor misses faults, what is missed most first."""
    kinds = sorted(
        ((part, faults, kind) for kind, (part, faults) in found.items() if part), key=lambda each: -each[0] / each[1]
    )
    return ", ".join(f"{kind} {part} of {faults}" for part, faults, kind in kinds)


def against_monitors(found: Mapping[str, Any]) -> str:
    """How a monitor compares with simple ones."""
    if found["winner"] is None:
        return f"{found['simple']}, {byte_count(found['bytes'])}, sees as many: a few lines of C do"
    misses = f"{found['simple']} misses {rate(found['error'])}"
    return f"{misses}, with {rate(found['other_rows'])} of the other rows in alarm"


def of_simple(found: Mapping[str, Any] | None) -> str:
    """A model's error over that of the best simple predictor."""
    if found is None or found["ratio"] is None:
        return ""
    return f"{found['ratio']:.2f} ± {(found['high'] - found['low']) / 2:.2f}"


def told_of(row: Mapping[str, Any], measure: str = "") -> str:
    """A model, the error that it promises, its bytes and instructions."""
    calls = f", {row['instructions']:,} instructions" if row["instructions"] else ""
    return f"{row['model']}, {measure}{error_and_deviation(row['promise'])}, {byte_count(row['bytes'])}{calls}"


def question(report: Mapping[str, Any]) -> str:
    """Which question decides between a model that learns and one that does not."""
    if report["labels"] is not None:
        return {"always": "the label follows each answer", "never": "the device gets none"}[report["labels"]]
    if report["undecided"]:
        return (
            f"does the device get the true value after its answers? yes: {report['spec']} learns from it; no: "
            f"{report['frozen_spec']}; --labels always or never says so"
        )
    if report["winner"]["learning"]:
        return "the device must get the true value after its answers: no frozen model was found"
    return "the planned model needs none, and no model that learns was found to be better"


def against_simple(found: Mapping[str, Any]) -> str:
    """How the model compares with the best simple predictor, and what to do if it is no better."""
    errors = f"{number(found['model'])} against {number(found['error'])}"
    if found["ratio"] is None:
        told = f"{found['winner'] or 'neither'} is better: {errors} of {found['simple']}"
    else:
        told = f"{of_simple(found)} of the error of {found['simple']}, the best simple predictor: {errors}"
    if found["winner"] == "model":
        return told
    if found["winner"] is None:
        told += "; a paired test does not tell the two apart"
    if found["simple"] == "last label":
        return f"{told}; add a column with the latest known label to the table, and plan again"
    return f"{told}; take the simple one, or record other inputs"
