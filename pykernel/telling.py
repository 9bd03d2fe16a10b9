"""Messages of workflows: the objects that receive them, and the formats of numbers, sizes and times in sentences, tables and JSON."""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from pykernel.errors import UserError
from pykernel.progress import Show, told_late


class Watch:
    """Receives a workflow's messages.

    This class ignores them, and only shows the progress of tasks that take more than two seconds: in a notebook as a bar,
    elsewhere as lines on standard error.  The command line has a subclass that prints all messages.  A program may define
    a subclass that logs them.
    """

    bars = True
    """Whether long tasks may draw progress bars of their own."""
    read: Mapping[str, Any] | None = None
    """A description of the table that was read, as plain values."""

    def note(self, *lines: str) -> None:
        """Report assumptions or facts about the table, which are part of the result."""

    def tell(self, sentence: str) -> None:
        """Report a step that starts, or something that has happened."""

    def warn(self, sentence: str) -> None:
        """Report something that the user probably did not intend."""

    def data(self, data: Mapping[str, Any] | None) -> None:
        """Receive the description of the table that was read (see ``read``)."""
        if lines := data_lines(data):
            self.note(*lines)

    def progress(self, total: float | None = 1) -> contextlib.AbstractContextManager[Show]:
        """Show the progress of a long task.  total: the total amount of work (1, or a number of bytes); None if it is not known."""
        return told_late(total)


class Silent(Watch):
    """Prints nothing.  Use this class for a part of a task if the progress of the whole task is shown."""

    def progress(self, total: float | None = 1) -> contextlib.AbstractContextManager[Show]:
        return contextlib.nullcontext(lambda done, what: None)


QUIET = Watch()
SILENT = Silent()


def raise_first_error(*rules: tuple[object, str]) -> None:
    """Raise UserError with the sentence of the first rule whose condition is true.

    rules: pairs of a condition, which is true if something is wrong, and the sentence that says what is wrong.
    """
    for wrong, sentence in rules:
        if wrong:
            raise UserError(sentence)


# -------------------------------------------------------------------------------------------------------------- numbers


def byte_count(size: int | None) -> str:
    return "" if size is None else f"{size:,} B"


def formatted_figures(figures: Mapping[str, Any], *keys: str, digits: int = 0, missing: str = "-") -> list[str]:
    """Return figures as text, with ``missing`` for a figure that is None."""
    return [missing if figures[key] is None else f"{figures[key]:,.{digits}f}" for key in keys]


def formatted_number(value: float | None) -> str:
    return (
        "-" if value is None else f"{value:.4g}" if value < 1e4 else f"{value:,.0f}" if value < 1e9 else f"{value:.3e}"
    )


def axis_tick(value: float) -> str:
    """Format a number for an axis, such as 1,000 or 0.25."""
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{float(f'{value:.6g}'):,.6f}".rstrip("0").rstrip(".")


def error_and_deviation(figures: Mapping[str, Any] | None) -> str:
    """Format an error with ± half the width of its 95 % interval, or ± its standard deviation.  Without an error, return ""."""
    return (
        ""
        if figures is None
        else f"{formatted_number(figures['error'])} ± "
        f"{formatted_number(figures.get('within', figures.get('deviation')))}"
    )


def formatted_duration(seconds: float) -> str:
    """Format a duration with few digits, because an estimate is not more exact."""
    if seconds < 90:
        return f"{float(f'{seconds:.1g}' if seconds < 10 else f'{seconds:.2g}'):g} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def verdict_sentence(comparison: Mapping[str, Any], shown: Callable[[float], str] = formatted_number) -> str:
    """Say which predictor ``host.scores.verdict`` found to be better, by what factor, and what the two errors are.

    shown: formats an error.
    """
    won, ratio = comparison["winner"], comparison["ratio"]
    errors = [shown(comparison["error"]), shown(comparison["model"])]
    if won is None:
        return f"{comparison['simple']} is as good: {errors[0]} against {errors[1]}"
    often = "" if ratio is None else f"{ratio:,.0f} times " if ratio >= 10 else f"{ratio:.{1 + (ratio < 1.1)}f} times "
    if won == "model":
        return f"the model is {often}better than {comparison['simple']}: {errors[1]} against {errors[0]}"
    return f"{won} is {often}better: {errors[0]} against {errors[1]}"


KNOWN_ROWS = "the model was trained on these rows: expect a larger error on new rows"


def simple_predictors_sentence(report: Mapping[str, Any]) -> str:
    """For a model that gets no labels, say how many labels the simple predictors learned.  For other models, return ""."""
    if report["gets_labels"]:
        return ""
    if report["simple_learned"] is None:
        return "the simple predictors learn from all labels, whereas this model gets none; if the rows are given as a file, the simple predictors learn only the labels of its first half"
    learned = f"the first {report['simple_learned']:,} {unit_of(report)}s"
    return f"the simple predictors learned only the labels of {learned}, because this model gets no labels"


def refused_rows_sentences(report: Mapping[str, Any]) -> list[str]:
    """Return a list with a sentence that says how many rows the model refused to predict or to learn, or an empty list
    if it refused none.
    """
    return [f"{report['refused']:,} of {report['rows']:,} {unit_of(report)}s were refused"] if report["refused"] else []


def root_of_mean_square(value: float) -> float:
    """Return the square root of a mean of squares, or NaN if rounding errors made the mean negative."""
    return math.sqrt(value) if value >= 0 else math.nan


def percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"


WIDTH = 110
"""Largest number of characters in a line about a table, not counting the label in front of the line."""
THEN = {
    "left out": "left out",
    "skipped": "neither predicted nor learned",
    "emptied": "kept, with empty cells",
    "completed": "the input is replaced according to [input] missing",
}
"""Treatments of rows with a missing input, in words."""
WORSE = 1.25
"""If the error on the last rows is more than this many times the cross-validated error, a message says so."""
SENTINEL = {
    "read": "they are read as numbers: leave them empty if no value was measured there",
    "missing": "treated as missing",
    "gone": "pykernel table emptied them",
    "emptied": "the new table has empty cells there",
}
"""Treatments of sentinel values, in words, and advice for the user."""
LEFT_OUT = {
    "constant": "always the same",
    "counts": "a counter of rows or of time",
    "time": "dates or times",
    "words": "words",
    "notation": "numbers with a unit or in another notation (write plain numbers)",
    "empty": "empty",
    "logged": "computed by a device",
    "unused": "not an input",
    "other": "not numbers",
}
"""Reasons for leaving columns out."""


def data_lines(data: Mapping[str, Any] | None) -> list[str]:
    """Return lines about the table as it was read, and the command that turns left-out columns into inputs."""
    if data is None:
        return []
    offer = _table_command_lines(data)
    lines = [line for each in data_sentences(data) + offer[:1] for line in _wrapped(each)] + offer[1:]
    return [f"{'data' if i == 0 else '':<8} {line}" for i, line in enumerate(lines)]


def data_sentences(data: Mapping[str, Any] | None) -> list[str]:
    """Return sentences about the table as it was read.

    data: the result of ``rows.columns.Columns.report``.  The list is empty if the user has named the columns, and the
    table has no irregularities.
    """
    if data is None:
        return []
    sentences = []
    if data["chosen"]:
        sentences.append(
            f"{data['rows']:,} rows; {_count_with_unit(len(data['inputs']), 'input')}: {_first_names(data['inputs'])}"
        )
    for why, text in LEFT_OUT.items():
        some = [each for each in data["left_out"] if each["why"] == why]
        if some:
            sentences.append(f"left out, {text}: {_first_names([_column_with_example(each) for each in some])}")
    sentences += _first_sentences(
        [
            f"{each['cells']:,} of {each['of']:,} cells of {each['column']} {_are_not_phrase(each['cells'], each['kind'])} (first: "
            f"{each['such_as']!r}, line {each['line']:,}); treated as missing"
            for each in data["not_numeric"]
        ]
    )
    sentences += _first_sentences(
        [
            f"{_count_with_unit(each['cells'], 'cell')} of {each['column']} {'is' if each['cells'] == 1 else 'are'} infinite: no model learns "
            "from such a row"
            for each in data["infinite"]
        ]
    )
    sentences += _first_sentences(
        [
            f"{each['cells']:,} cells of {each['column']} {'were' if each['then'] == 'gone' else 'are'} {_plain_number(each['value'])}, far from all others ({_plain_number(each['others'][0])} "
            f"to {_plain_number(each['others'][1])}); {SENTINEL[each['then']]}"
            for each in data["sentinels"]
        ]
    )
    sentences += _first_sentences([_outliers_sentence(each) for each in data["outlying"]])
    if (times := data["times"]) is not None:
        gaps = f", with {_count_with_unit(times['gaps'], 'gap')} more than ten times as long" if times["gaps"] else ""
        sentences.append(
            "in column {column}, rows are {median:.4g}{unit} apart (nine in ten: {low:.3g} to {high:.3g}{unit})".format(
                **times
            )
            + f"{gaps}: models ignore the times of rows; to make features from past values, first resample the table at equal intervals, which gives {times['even']:,} rows"
        )
    if data["missing"]:
        sentences.append(incomplete_rows_sentence(**data["missing"]))
    if data["cut_line"]:
        sentences.append(f"line {data['cut_line']:,}, the last, is incomplete: left out")
    if data["unlabelled"]:
        sentences.append(f"{_count_with_unit(data['unlabelled'], 'row')} without a label: left out")
    return sentences


def assumption_lines(assumed: Sequence[str]) -> list[str]:
    """Return lines about assumptions."""
    return (
        [f"{'assumed: ' if i == 0 else ''}{line}" for i, line in enumerate(_wrapped("; ".join(assumed)))]
        if assumed
        else []
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _are_not_phrase(cells: int, kind: str) -> str:
    return f"is not a {kind}" if cells == 1 else f"are not {kind}{'es' if kind == 'class' else 's'}"


def incomplete_rows_sentence(rows: int, then: str = "skipped", by: Sequence[str] = ()) -> str:
    """Say how many rows have a missing input, and what happens to them (``then``, a key of ``THEN``).

    by: the values of [input] missing that would keep these rows.
    """
    return f"{_count_with_unit(rows, 'row')} with a missing input: {THEN[then]}{stand_ins_phrase(by)}"


def stand_ins_phrase(by: Sequence[str]) -> str:
    """Return the end of a sentence about incomplete rows: the values of [input] missing that would keep them."""
    ways = " or ".join(f'"{each}"' for each in by)
    return f"; [input] missing = {ways} keeps such rows" if ways else ""


def _count_with_unit(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _first_names(names: Sequence[str], most: int = 6) -> str:
    """List the first names, and say how many others there are."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more:,} others"


def _first_sentences(sentences: Sequence[str], most: int = 4) -> list[str]:
    """Return the first sentences, and a sentence that says for how many other columns the same holds."""
    more = len(sentences) - most
    return list(sentences) if more <= 1 else [*sentences[:most], f"the same holds for {more:,} other columns"]


def _outliers_sentence(outliers: Mapping[str, Any]) -> str:
    """Describe cells whose numbers are far from all others in their column."""
    cells, low, high = _count_with_unit(outliers["cells"], "cell"), *map(_plain_number, outliers["others"])
    are, where = "is" if outliers["cells"] == 1 else "are", f"far from all others ({low} to {high})"
    if outliers["cells"] > outliers["different"]:
        return (
            f"{cells} of {outliers['column']} are {str(outliers['value']).removesuffix('.0')}, first in line {outliers['line']:,}, {where}: does this number stand for a missing "
            "value? it is read as a number"
        )
    such, row = ("", "its row is") if outliers["cells"] == 1 else ("such as ", "their rows are")
    return f"{cells} of {outliers['column']} {are} {where}, {such}{_plain_number(outliers['value'])} in line {outliers['line']:,}: read unchanged, but {row} not used for training"


def _column_with_example(column: Mapping[str, Any]) -> str:
    if column["words"]:
        return f"{column['column']} ({_first_names(column['words'], 4)})"
    return column["column"] + (
        f" (such as {column['such_as']!r})" if column["such_as"] and column["why"] != "constant" else ""
    )


def _plain_number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"


def _table_command_lines(data: Mapping[str, Any]) -> list[str]:
    """Say which columns ``pykernel table`` would make from words, times and sentinels, with the command on a separate line."""
    few = [each["column"] for each in data["left_out"] if each["words"]]
    times = [each["column"] for each in data["left_out"] if each["why"] == "time"]
    values = dict.fromkeys(
        _plain_number(each["value"])
        for each in data["sentinels"]
        if each["then"] == "read" and each["column"] != data["label"]
    )
    codes = dict.fromkeys(
        str(each["value"]).removesuffix(".0") for each in data["outlying"] if each["cells"] > each["different"]
    )
    parts = [
        *([f"a column of zeros and ones for each word in {_first_names(few)}"] if few else []),
        *([f"sines and cosines of the times in {_first_names(times)}"] if times else []),
        *([f"empty cells for {_first_names([*values, *codes])}"] if values or codes else []),
    ]
    if not parts or not Path(data["file"]).is_file() or Path(data["file"]).suffix.lower() not in (".csv", ".tsv"):
        return []
    label = "" if data["label"] is None else f" --label {quote(data['label'])}"
    empty = f" --codes={','.join(codes)}" if codes else ""
    return [
        f"a table with {'; '.join(parts)}:",
        f"  pykernel table {path_word(data['file'])}{label}{empty} --output ready.csv",
    ]


def path_word(path: str | Path) -> str:
    """Return a path as a word of a command line: quoted for a shell, and not mistaken for an option if it begins with a dash."""
    return quote(f"./{path}" if str(path).startswith("-") else str(path))


def missing_inputs_sentence(missing: Mapping[str, Any], most: int = 6) -> str:
    """Say how many inputs are missing, and what replaces them."""
    by = {"mean": "the mean", "hold": "the latest value"}[missing["by"]]
    listed = sorted(missing["columns"].items(), key=lambda item: -item[1])
    columns = ", ".join(f"{name}: {count:,}" for name, count in listed[:most]) + (", …" if len(listed) > most else "")
    return f"{missing['inputs']:,} of {missing['of']:,} cells; {by} replaces them ({columns})"


def gaps_sentence(raw: Mapping[str, int], steps: int) -> str:
    """Say how many raw rows leave gaps, by cause, and how many steps remain (``steps``).  Without gaps, return ""."""
    causes = {"missing": "with a missing cell", "infinite": "with an infinite one", "beyond_max_abs": "beyond max_abs"}
    parts = [f"{raw[key]:,} {what}" for key, what in causes.items() if raw[key]]
    left = f"{steps:,} of {raw['steps_without_gaps']:,} steps are left"
    return f"{', '.join(parts)}, of {raw['rows']:,} raw rows: {left}" if parts else ""


def unit_of(report: Mapping[str, Any]) -> str:
    """Return the word for one sample of the model: "step" with a signal stage, else "row"."""
    return "step" if "raw_rows" in report else "row"


def rows_with_unit(report: Mapping[str, Any]) -> str:
    """Return the number of rows or steps, with the unit."""
    count = f"{report['rows']:,} {unit_of(report)}s"
    devices = sum((report.get("device_split") or {}).values()) or report.get("device_count")
    if devices:
        return f"{count} of {devices:,} devices"
    return f"{count} of {report['raw_rows']['rows']:,} raw rows" if "raw_rows" in report else count


def judged_rows_phrase(report: Mapping[str, Any]) -> str:
    """Say on which rows or devices a plan's models were evaluated."""
    if devices := report["device_count"]:
        judges = report["judges"]
        return f"{'each' if judges == devices else f'{judges:,}'} of {devices:,} devices, by models trained on other devices"
    return f"the last {report['judged_rows']:,} {unit_of(report)}s"


SHOWN_DEVICES = 20
"""Largest number of devices in a table.  If there are more devices, the table contains only the worst devices."""


def devices_shown(
    rows: Sequence[Mapping[str, Any]], worst: Callable[[Mapping[str, Any]], float | None]
) -> tuple[list[Any], str]:
    """Return the devices that a table shows, and words for the table's title.

    The table contains all devices in their order or, if there are more than ``SHOWN_DEVICES``, only the worst devices,
    beginning with the worst.
    """
    if len(rows) <= SHOWN_DEVICES:
        return list(rows), _count_with_unit(len(rows), "device")
    ranked = sorted(rows, key=lambda row: -math.inf if (value := worst(row)) is None else value, reverse=True)
    return ranked[:SHOWN_DEVICES], f"the worst {SHOWN_DEVICES} of {len(rows):,} devices"


def devices_sentences(report: Mapping[str, Any]) -> list[str]:
    """Return sentences about many devices: the median and the worst error, and the share of devices on which the model
    beats the best simple predictor.
    """
    refused = refused_rows_sentences(report)
    if report["error"] is None:
        return refused + (["no device has an error"] if report["measure"] != "in_alarm" else [])
    shown = formatted_number if report["measure"] == "rmse" else percent
    what = MEASURES[report["measure"]]

    def spread_sentence(name: str, of: Mapping[str, Any], shown: Callable[[float], str]) -> str:
        return f"{name}: median {shown(of['median'])}, worst {shown(of['worst'])} ({of['device']})"

    lines = [*refused, spread_sentence(what, report["error"], shown)]
    if report["ratio"] is not None:
        lines.append(spread_sentence("error, divided by the best simple predictor's", report["ratio"], "{:.2f}".format))
    if report["judged"]:
        lines.append(
            f"on {percent(report['beat_simple'])} of {_count_with_unit(report['judged'], 'device')}, the model beats the best simple predictor"
        )
    return lines


MEASURES = {
    "mae": "MAE",
    "rmse": "RMSE",
    "error_rate": "error rate",
    "in_alarm": "in alarm",
    "faults_missed": "faults missed",
}
"""Error measures, as they are printed."""


def without_model_phrase(classes: Sequence[str] | None) -> str:
    """Describe the prediction that is made without a model.  classes: the label's classes, if it has any."""
    return "always the most frequent class" if classes else "always the mean"


def simple_errors(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the errors of simple predictors, in the same measure as the model's error."""
    return {name: errors[report["measure"]] for name, errors in report["simple"].items()}


def cross_validation_phrase(report: Mapping[str, Any]) -> str:
    """Say how ``fit`` estimated its errors."""
    whole = f" of {report['device_count']:,} devices" if "device_count" in report else ""
    return "leave-one-out" if isinstance(report["cv"], str) else f"{report['cv']:d} folds{whole}"


def expected_error_sentences(report: Mapping[str, Any]) -> list[str]:
    """Say which errors to expect on future rows, judging by the rows that ``fit`` held out."""
    errors, shown, sentences = report["errors"], percent if report["classes"] else formatted_number, list[str]()
    if refused := errors.get("held_out_refused"):
        sentences.append(
            f"{refused:,} of {report['held_out_rows']:,} held-out rows are too far from the training rows: the device refuses them, and the "
            "error does not include them"
        )
    before, after = errors.get("cross_validated"), errors.get("held_out")
    if report["in_time"] and before and after and after > WORSE * before:
        sentences.append(
            f"the error on the last rows is {after / before:.1f} times the cross-validated error: expect {shown(after)} on future rows, "
            f"not {shown(before)}; train again with later rows, or let the device go on learning"
        )
    if grows := errors.get("held_out_grows"):
        sentences.append(
            f"errors grow along the held-out rows, from {shown(grows[0])} to {shown(grows[1])}: expect larger errors on later rows"
        )
    return sentences


def key_values_phrase(values: Mapping[str, float | str]) -> str:
    """List values of a spec, each after its key, without the names of the sections."""
    shown = {name: value if isinstance(value, str) else f"{value:g}" for name, value in values.items()}
    return " ".join(f"{name.partition('.')[2]} {value}" for name, value in shown.items())


def json_value(value: Any) -> Any:
    """Convert a NumPy scalar or a path to a value for ``json``."""
    return value.item() if hasattr(value, "item") else str(value)


def finite_or_none(value: Any) -> Any:
    """Replace NaN and infinity by None (null), because JSON cannot hold them."""
    if isinstance(value, Mapping):
        return {str(key): finite_or_none(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---------------------------------------------------------------------------------------------------- results of a plan


def monitor_sentence(row: Mapping[str, Any]) -> str:
    """Describe a monitor: the estimated share of faults that it misses, its false-alarm rate, and its size."""
    errors = row["learning"]
    missed = f"misses {percent(errors['error'])} ± {percent(errors['within'])} of the faults"
    return (
        f"{row['model']}, {missed}, {percent(errors['other_rows'])} of the other rows in alarm, "
        f"{byte_count(row['bytes'])}"
    )


KINDS = {
    "another time": "values from another time",
    "slow": "follows with a lag",
    "leak": "step of several sensors",
    "wear": "drift of several sensors",
    "unrest": "noise of several sensors",
}
"""Words for kinds of faults whose names are not clear by themselves."""


def faults_sentence(faults: Mapping[str, Any]) -> str:
    """Describe the faults on which a monitor is evaluated."""
    (least, most), (short, long) = faults["sizes"], faults["rows"]
    return (
        f"{faults['kinds']} kinds, in these patterns: {', '.join(faults['manners'])}; {short} to {long} rows long, {least:g} to {most:g} times as large as "
        "a sensor's residual standard deviation after a linear prediction from the other sensors"
    )


def missed_kinds_sentence(missed: Mapping[str, Sequence[int]]) -> str:
    """List the faults that a monitor misses, by kind or by manner (``tuning.faults.MANNERS``), those missed most often first."""
    kinds = sorted(
        ((part, faults, kind) for kind, (part, faults) in missed.items() if part), key=lambda each: -each[0] / each[1]
    )
    return "; ".join(f"{KINDS.get(kind, kind)}: {part} of {faults} faults" for part, faults, kind in kinds)


def against_monitors_sentence(comparison: Mapping[str, Any]) -> str:
    """Compare a monitor with the best simple monitor."""
    if comparison["winner"] is None:
        return (
            f"{comparison['simple']}, {byte_count(comparison['bytes'])}, detects as many faults: "
            "a few lines of C code are enough"
        )
    misses = f"{comparison['simple']} misses {percent(comparison['error'])} at the same false-alarm rate"
    if comparison["winner"] == "model":
        return misses
    return (
        f"{misses}, and the model misses {percent(comparison['missed'])}: take {comparison['simple']}, {byte_count(comparison['bytes'])}, and raise an alarm "
        f"above {formatted_number(comparison['above'])}"
    )


def ratio_to_simple(comparison: Mapping[str, Any] | None) -> str:
    """Format a model's error divided by the error of the best simple predictor."""
    if comparison is None or comparison["ratio"] is None:
        return ""
    return f"{comparison['ratio']:.2f} ± {(comparison['high'] - comparison['low']) / 2:.2f}"


def model_sentence(row: Mapping[str, Any], measure: str = "", own: float | None = None) -> str:
    """Describe a model by its expected error, bytes and instructions.  own: the model's error on the rows used to choose it."""
    calls = f", {row['instructions']:,} instructions" if row["instructions"] else ""
    error = error_and_deviation(row["promise"])
    if own is not None and not _nearly_equal(own, row["promise"]["error"]):
        error = f"{formatted_number(own)} on the rows used to choose the model, {error} on other rows"
    return f"{row['model']}, {measure}{error}, {byte_count(row['bytes'])}{calls}"


def _nearly_equal(one: float, other: float) -> bool:
    return 0.99 * other <= one <= 1.01 * other


def better_simple_phrase(row: Mapping[str, Any]) -> str:
    """Return the end of a sentence about a simple predictor that has a smaller error than the model, or "" if there is none."""
    comparison = row["against_simple"]
    if comparison is None or not comparison["error"] < comparison["model"]:
        return ""
    return f"; the error of {comparison['simple']} is {formatted_number(comparison['error'])}"


CHOICE = {
    "near": "the errors are nearly equal",
    "test": "a paired test finds no significant difference",
    "chance": "the difference may be due to chance",
}
"""Reasons why the planned model is not the model with the smallest error."""


def chosen_model_sentence(report: Mapping[str, Any], shown: Callable[[float], str] = formatted_number) -> str:
    """Say why the planned model is not the model with the smallest error, and why a monitor's estimate differs from the table.

    Returns "" if there is nothing to explain: the planned model has the smallest error, and a monitor's estimate equals that in the table.
    """
    choice, winner = report["choice"], report["winner"]
    parts = []
    if choice["why"] is not None:
        errors = f"{shown(choice['error'])} against {shown(choice['own'])}"
        sizes = f"{byte_count(winner['bytes'])} instead of {byte_count(choice['bytes'])}"
        parts.append(
            f"{choice['model']} has the smaller error, {errors}, but {CHOICE[choice['why']]}, and the planned model takes "
            f"{sizes}"
        )
    if "other_rows" in winner["promise"] and not _nearly_equal(choice["own"], winner["promise"]["error"]):
        parts.append(
            f"on the rows and faults used to choose the monitor, it misses {shown(choice['own'])}, as the table shows"
        )
    return "; ".join(parts)


def error_growth_sentence(promise: Mapping[str, Any]) -> str:
    """Say that errors grow along the table, and give the first and the last error.  If errors do not grow, return ""."""
    if "last" not in promise:
        return ""
    ends = (
        f"{formatted_number(promise['first'])} at the beginning of the judged rows to "
        f"{formatted_number(promise['last'])} at their end"
    )
    return f"errors grow along the table, from {ends}: expect larger errors on later rows"


def promise_sentence(promise: Mapping[str, Any], shown: Callable[[float], str] = formatted_number) -> str:
    """Say whether a frozen model's error is within the range that was promised."""
    errors = (
        f"{shown(promise['here'])} over all rows, where {shown(promise['error'])} ± {shown(promise['within'])} "
        "was promised"
    )
    return errors if promise["kept"] else f"{errors}: these rows are unlike the training rows"


FOLLOW = 0.5
"""If the correlation between a frozen model's errors on consecutive rows is at least this high, a message says so."""


def correlated_errors_sentence(report: Mapping[str, Any]) -> str | None:
    """Advise the use of past values if a frozen model's errors on consecutive rows correlate.  If they do not, return None."""
    frozen = report["winner"]["frozen"] or {}
    if report["winner"]["learning"] or report["signal"] is not None or frozen.get("follows", 0.0) < FOLLOW:
        return None
    return f"have a correlation of {frozen['follows']:.2f} from row to row: past values would help; add averages or lags to [signal] (docs/guide/signals.md)"


def missing_input_errors_sentence(errors: Mapping[str, float]) -> str | None:
    """List the error for each way to fill in missing inputs.

    Returns None if no input is missing, or if missing inputs cannot be filled in.

    errors: value of [input] missing -> error.
    """
    ways = [
        f'{formatted_number(error)} with [input] missing = "{way}"' for way, error in errors.items() if way != "refuse"
    ]
    if not ways or "refuse" not in errors:
        return None
    return f"error on all judged rows, including those that lack an input: {formatted_number(errors['refuse'])} if the previous prediction is kept; {'; '.join(ways)}"


def labels_sentence(report: Mapping[str, Any]) -> str:
    """Ask whether the device gets labels (true values), or say why there is nothing to ask."""
    if report["labels"] is not None:
        return {"always": "the label follows each answer", "never": "the device gets no labels"}[report["labels"]]
    if report["undecided"]:
        return (
            f"does the device get the true value after its predictions? yes: use {report['spec']}, which learns from it; no: "
            f"use {report['frozen_spec']}; answer with --labels always or --labels never"
        )
    if report["winner"]["learning"]:
        return "the device must get the true value after its predictions, because no frozen model was found"
    return "the planned model needs no labels, and none of the models that learn was better"


def against_simple_sentence(comparison: Mapping[str, Any]) -> str:
    """Compare the model with the best simple predictor, and say what to do if the model is no better."""
    errors = f"{formatted_number(comparison['model'])} against {formatted_number(comparison['error'])}"
    if comparison["ratio"] is None:
        sentence = f"{comparison['winner'] or 'neither'} is better: {errors} for {comparison['simple']}"
    else:
        sentence = (
            f"{ratio_to_simple(comparison)} times the error of {comparison['simple']}, the best simple predictor: "
            f"{errors}"
        )
    if comparison["winner"] == "model":
        return sentence
    if comparison["winner"] is None:
        sentence += "; a paired test finds no significant difference"
    if comparison["simple"] == "last label":
        return (
            f"{sentence}; add a column with the latest known label to the table, or use a model that learns, and set the key [mixture] last "
            "of its spec to 1 plus the labels' delay in rows"
        )
    if comparison.get("linear"):
        return f"{sentence}; the planned model is itself linear; to get a smaller error, record other inputs"
    return f"{sentence}; take the simple predictor, or record other inputs"
