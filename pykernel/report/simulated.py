"""The documents about a simulation of one device, and of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pykernel.report.common import Asked, default_of, number_or_dash, what_was_asked
from pykernel.report.document import Document, Facts, Part, Section, Sentence, Table, table_of
from pykernel.report.figures import Line, Plot, time_text
from pykernel.telling import (
    KNOWN_ROWS,
    MEASURES,
    data_sentences,
    devices_sentences,
    devices_shown,
    formatted_figures,
    formatted_number,
    gaps_sentence,
    incomplete_rows_sentence,
    missing_inputs_sentence,
    percent,
    promise_sentence,
    refused_rows_sentences,
    rows_with_unit,
    simple_predictors_sentence,
    unit_of,
    verdict_sentence,
)

PARTS = {"all": "", "second_half": ", 2nd half"}
"""Part of the rows for which errors are shown -> suffix of the columns' names."""
CLASSES = 8
"""Largest number of classes for which the terminal shows a confusion matrix. For more classes, the terminal lists this
number of the most frequent mistakes instead.
"""
SUREST, LISTED = 12, 100
"""SUREST: largest number of alarms in the table of the surest alarms.  LISTED: largest number of alarms in the page's
list of the first alarms, and of rows in the list of new normal states.
"""


def simulated(
    report: Mapping[str, Any],
    asked: Asked,
    rule: str,
    read: Section,
    plots: Mapping[str, Sequence[Plot]],
    times: Callable[[], np.ndarray | None],
    model: Callable[[], Sequence[Section]],
) -> Document:
    """Return the document about a simulation.

    plots: section title -> plots.  times: a function that returns the rows' times, if known.  model: a function that
    makes the sections on bytes and hashes.
    """
    unit, shown = unit_of(report), percent if report.get("classes") else formatted_number
    late = f"{report['delay']:,} {unit}s" if report.get("delay") else ""
    data = "; ".join(data_sentences(report["data"]))
    title = f"{report['name']} ({rule}): {rows_with_unit(report)}{late and f', labels {late} late'}"
    if "question" in report:
        result_sections, said = _answers(report, plots, title), ""
    else:
        result_sections, said = _errors(report, plots, title, shown), _verdict(report, shown)
    alarms = report.get("alarms", {})
    saved = report["save"] and f"{report['save']}, hash {report['state_hash']}, for pykernel generate --start"
    sections = [
        what_was_asked(asked, ("rule", rule), ("delay", late), ("data", data)),
        Section("Default", [Facts([default_of(report)])], "both"),
        Section("Warnings", [Sentence(text) for text in report["warnings"]]),
        read,
        *result_sections,
        Section("What happened to the samples", _statuses(report), "both"),
        *(_alarms(report, alarms, times) if alarms else ()),
        Section("Training", [Facts(_training(report))], "both"),
        Section("Advice", _advice(report), "both"),
        Section(
            "Files", [Facts([("output", report["output"]), ("report", report["report"]), ("state", saved)])], "both"
        ),
    ]
    sentences = [said, _in_alarm(alarms, unit) if alarms else "", *refused_rows_sentences(report)]
    won = "question" in report or (report["verdict"] or {}).get("winner") == "model"
    return Document(title, "; ".join(filter(None, sentences)), sections, won and not report["warnings"], last=model)


# --------------------------------------------------------------------------------------------------------------- errors


def _errors(
    report: Mapping[str, Any], plots: Mapping[str, Sequence[Plot]], title: str, shown: Callable[[float], str]
) -> list[Section]:
    """Return the sections that compare the model with the labels: forecasts, errors of the model and of simple
    predictors, intervals, probabilities, and a confusion matrix with each class's recall and F1.
    """
    classes, several = report.get("classes") or (), report.get("by_label", {})
    kinds = {"error_rate": "errors"} if classes else {"mae": "MAE", "rmse": "RMSE"}
    columns = {f"{kind}{end}": (part, key) for part, end in PARTS.items() for key, kind in kinds.items()}
    rows = [
        {"label": label if several and name == "model" else "", "predictor": name}
        | {column: shown(by_part[part][key][name]) for column, (part, key) in columns.items()}
        for label, by_part in (several | {"all": report}).items()
        for name in ("model", *report["simple"])
    ]
    strong = [i for i, row in enumerate(rows) if row["predictor"] == "model"]
    linear = any("linear" in name for name in report["simple"])
    sentences = [
        "" if linear else "the linear models are left out, because there are too many inputs",
        simple_predictors_sentence(report),
    ]
    confusion = report.get("confusion", ())
    taken = [sum(column) for column in zip(*confusion, strict=True)]
    matrix = [
        [name, *(f"{n:,}" for n in row), _part(row[i], sum(row)), _part(2 * row[i], sum(row) + taken[i])]
        for i, (name, row) in enumerate(zip(classes, confusion, strict=True))
    ]
    wrong = [
        (count, name, classes[j])
        for i, (name, row) in enumerate(zip(classes, confusion, strict=True))
        for j, count in enumerate(row)
        if i != j and count
    ]
    wrong.sort(key=lambda mistake: -mistake[0])
    unit, many = unit_of(report), len(classes) > CLASSES
    mistakes = [(name, other, f"{count:,}") for count, name, other in wrong[: CLASSES * many]]
    return [
        Section("Forecast and truth", plots["Forecast and truth"]),
        Section(
            "Errors",
            [*plots["Errors"], table_of(rows, ("label", "predictor"), strong, title), *map(Sentence, sentences)],
            "both",
        ),
        Section("Intervals", [*plots["Intervals"], Sentence(_interval(report))], "both"),
        Section("Probabilities", [Sentence(_losses(report))], "both"),
        Section(
            "Confusion matrix",
            [Table(("label", *classes, "recall", "F1"), matrix)],
            "page" if many else "both",
        ),
        Section("The most frequent mistakes", [Table(("label", "taken for", f"{unit}s"), mistakes, (0, 1))], "both"),
    ]


def _part(count: int, of: int) -> str:
    return f"{count / of:.3f}" if of else ""


def _interval(report: Mapping[str, Any]) -> str:
    """Say which fraction of the labels was within the prediction intervals, and how wide the intervals were."""
    if (interval := report.get("interval")) is None:
        return ""
    part = interval["second_half"]
    widths = part["width"] if isinstance(part["width"], list) else [part["width"]]
    coverage = f"{percent(part['inside'])} of the labels are inside, with mean width{'s' * (len(widths) > 1)} {', '.join(map(formatted_number, widths))}"
    inside = "no label could be judged" if part["inside"] is None else f"{coverage}, over the second half"
    return f"intervals at {percent(interval['level'])}: {inside}"


def _losses(report: Mapping[str, Any]) -> str:
    """Say how good the predicted probabilities were."""
    log_loss = report.get("log_loss", {}).get("second_half")
    if not log_loss or log_loss["model"] is None:
        return ""
    base = f"{formatted_number(log_loss['base rate'])} if each class's frequency so far is taken as its probability"
    return f"probabilities over the second half: log loss {formatted_number(log_loss['model'])}, against {base}"


def _verdict(report: Mapping[str, Any], shown: Callable[[float], str]) -> str:
    scored = f"{report['second_half']['scored']:,} {unit_of(report)}s of the second half were scored: too few to judge"
    said = KNOWN_ROWS if report["knows_second_half"] else scored
    if report["verdict"] is not None:
        said = f"{verdict_sentence(report['verdict'], shown)}, over the second half"
    promise = report["promise"]
    return said if promise is None else f"{said}; {promise_sentence(promise, shown)}"


# ---------------------------------------------------------------------------------------------------- answers and alarms


def _answers(report: Mapping[str, Any], plots: Mapping[str, Sequence[Plot]], title: str) -> list[Section]:
    """Show the answers of a model without labels."""
    unit, watches = unit_of(report), "alarms" in report
    rows = [
        {
            "answer": name,
            f"{unit}s": text,
            "mean": number_or_dash(part["mean"][name]),
            "largest": number_or_dash(part["largest"][name]),
            "in alarm": percent(part["in_alarm"]) if watches and i == 0 else "",
        }
        for text, part in (("all", report["all"]), ("2nd half", report["second_half"]))
        for i, name in enumerate(part["mean"])
    ]
    table = table_of(rows, ("answer", f"{unit}s"), title=f"{title}, without labels")
    return [*(Section(name, each) for name, each in plots.items()), Section("Answers in numbers", [table], "both")]


def _alarms(
    report: Mapping[str, Any], alarms: Mapping[str, Any], times: Callable[[], np.ndarray | None]
) -> list[Section]:
    """Show, in order of time, the alarms whose level is highest relative to the threshold.  If there are many alarms,
    the page also lists the first ones.
    """
    unit, count, words = unit_of(report), alarms["count"], ("time", "about", "kind")
    dates = times() if count else None
    every = [_alarm(alarm, unit, dates) for alarm in alarms["listed"]]
    surest = sorted(range(len(every)), key=lambda i: -sureness(alarms["listed"][i]))[:SUREST]
    title = f"{count:,} alarm{'s' * (count > 1)}, {alarms['samples']:,} {unit}s in alarm"
    if count > SUREST:
        title += f"; the {SUREST} surest{f' of the first {len(every):,}' if count > len(every) else ''}:"
    end = (
        f"at the end the level is {formatted_number(alarms['level'])}, "
        f"the threshold {formatted_number(alarms['threshold'])}"
    )
    sentences = [end if count else f"no alarm; {end}"]
    if beginning := report.get("beginning"):
        sentences += _beginning(beginning, unit)
    if regimes := report["regimes"]:
        known = f"{len(regimes)} normal states are known" if len(regimes) > 1 else "one normal state is known"
        sentences.append(f"{known} at the end, with {', '.join(map(percent, regimes))} of the latest {unit}s")
        if born := report["became_normal"]:
            sentences.append(
                f"states added after the warm-up: {len(born)}, at {unit}s {', '.join(f'{row:,}' for row in born[:LISTED])}{'' if len(born) <= LISTED else ', ...'}"
            )
    if (left := report.get("until_armed")) is not None:
        another = f"a new state raises an alarm for {report['relearn_after']:,} {unit}s, or until it is acknowledged"
        sentences.append(
            f"not armed yet: the monitor learns {left:,} more {unit}s; then {another}" if left else f"armed: {another}"
        )
    table = table_of([every[i] for i in sorted(surest)], words, title=title, spare=("time", "share"))
    return [
        Section("Alarms", [table, *map(Sentence, sentences)], "both"),
        Section("The first alarms", [table_of(every[:LISTED] if count > SUREST else (), words)]),
    ]


def _beginning(beginning: Mapping[str, Any], unit: str) -> list[str]:
    """Say which of the first rows are unlike the later rows.  A monitor treats the first rows as normal, even if they are not."""
    begin = beginning["rows"]
    after = f"unlike {unit}s {begin:,} to {3 * begin - 1:,}, but the monitor treats them as normal"
    advice = "if they show a fault, leave them out"
    spans = [f"{first:,} to {last:,}" for first, last in beginning["unlike"]]
    sentences = [f"{unit}s {' and '.join(spans)} are {after}: {advice}"] if spans else []
    if beginning["scattered"]:
        sentences.append(
            f"about {percent(beginning['scattered'])} of the first {begin:,} {unit}s, scattered among them, are {after}: {advice}"
        )
    return sentences


def sureness(alarm: Mapping[str, Any]) -> float:
    """Return an alarm's highest level divided by its threshold."""
    threshold: float = alarm["threshold"]
    return alarm["level"] / threshold if threshold > 0 else math.inf


def _alarm(alarm: Mapping[str, Any], unit: str, dates: np.ndarray | None) -> dict[str, str]:
    """Return the cells of an alarm's row.  A cell without a value is empty; a level that is not finite is a dash."""
    second = alarm["second"]
    return {
        "time": "" if dates is None else time_text(dates[alarm["first_row"]]),
        "from second": f"{alarm['from_seconds']:,.2f}" if "from_seconds" in alarm else "",
        f"from {unit}": f"{alarm['first_row']:,}",
        f"to {unit}": f"{alarm['last_row']:,}",
        "in alarm": f"{alarm['rows']:,}",
        "level": number_or_dash(alarm["level"]),
        "/ threshold": f"{sureness(alarm):.2f}" if alarm["threshold"] > 0 and math.isfinite(alarm["level"]) else "",
        "about": f"{alarm['input']} or {second}" if second else alarm["input"],
        "share": percent(alarm["share"]),
        "kind": alarm["kind"],
    }


def _in_alarm(alarms: Mapping[str, Any], unit: str) -> str:
    if not alarms["judged"]:
        return f"no alarm is possible before the warm-up is over, and no {unit} came after the warm-up"
    return (
        f"{percent(alarms['in_alarm'])} of the {alarms['judged']:,} {unit}s after the warm-up are in alarm; false_alarm_rate is "
        f"{100 * alarms['false_alarm_rate']:g} %"
    )


# -------------------------------------------------------------------------------------------------------- what happened


def _statuses(report: Mapping[str, Any]) -> list[Part]:
    """Show how many samples had each status, how many had no status and why, and which inputs were missing."""
    counts = {status.replace("_", " "): count for status, count in report["statuses"].items()}
    counts |= {  # for a model without labels, the refused inputs are already counted as a status
        "no label yet": report.get("unlabelled", 0),
        "label came too late: not learned": report.get("waiting", 0),
        "no label, and not predicted (input refused)": (
            report["inputs_refused"] - counts.get("refused input", 0) if "unlabelled" in report else 0
        ),
    }
    missing, name, missing_text = report["missing"], "missing", ""
    if "raw_rows" in report:
        name, missing_text = "gaps", gaps_sentence(report["raw_rows"], report["rows"])
    elif missing and missing["by"] != "refuse":
        missing_text = missing_inputs_sentence(missing) if missing["inputs"] else ""
    elif report["empty_inputs"] and report["data"] is None:
        missing_text = incomplete_rows_sentence(report["empty_inputs"])
    rows = [(text, f"{count:,}") for text, count in counts.items() if count > 0]
    return [Table(("status", "samples"), rows), Facts([(name, missing_text)])]


def _training(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    trained = report.get("trainings", {}).items()
    facts = [("trainings", ", ".join(f"{text.replace('_', ' ')} {count:,}" for text, count in trained))]
    if estimate := report.get("leave_one_out"):
        wrong = (
            f", {percent(estimate['error_rate'])} of the samples with a wrong class" if report.get("classes") else ""
        )
        error = f"RMSE {formatted_number(math.sqrt(estimate['mse']))}{wrong}" if estimate["mse"] is not None else "none"
        again = "the samples must be read again after the training; give the data as a file"
        why = again if estimate.get("samples") == 0 else estimate["status"].replace("_", " ")
        facts.append(("leave-one-out", f"{error} ({why})"))
    return facts


def _advice(report: Mapping[str, Any]) -> list[Part]:
    facts = [
        fact
        for each in report.get("advice", ())
        for fact in (("advice", f"{each['test']}: {each['why']}"), ("", each["change"]))
    ]
    measure = f"as fractions of the {unit_of(report)}s" if report.get("classes") else "as root mean squares"
    return [Facts(facts), Sentence(f"(errors over the second half, {measure})" if facts else "")]


# --------------------------------------------------------------------------------------------------------- many devices


def simulated_devices(report: Mapping[str, Any], asked: Asked) -> Document:
    """Return the document about a simulation of many devices."""
    sentences, key = devices_sentences(report), "error" if report["ratio"] is None else "ratio"
    rows, words = devices_shown(report["devices"], lambda row: row["error"] if row["ratio"] is None else row["ratio"])
    files = [("report", report["report"]), ("states", report["save"] and f"{report['save']}/, one for each device")]
    watches, shown = report["measure"] == "in_alarm", formatted_number if report["measure"] == "rmse" else percent
    measure = f"{MEASURES[report['measure']]}{', 2nd half' * (not watches)}"
    cells = [
        {
            "device": row["device"],
            "rows": f"{row['rows']:,}",
            "alarms": "".join(formatted_figures(row, "alarms")) if watches else "",
            measure: shown(row["error"]),
            "of simple": "" if watches else "".join(formatted_figures(row, "ratio", digits=2)),
            "the best simple predictor": "" if watches else row["simple"] or "too few rows",
        }
        for row in rows
    ]
    title = f"{report['name']} ({report['rule']}): {words}, {report['rows']:,} rows in all"
    values = np.sort([row[key] for row in report["devices"] if row[key] is not None])
    what = "the model's error, divided by the best simple predictor's" if key == "ratio" else measure
    line = Line(what, np.linspace(0, 100, len(values)), values, "model")
    plot = Plot("All devices, the best first", "% of the devices", what, [line], zero=True)
    unread = [[each["device"], each["reason"]] for each in report["unread"]]
    sections = [
        what_was_asked(asked, ("rule", report["rule"])),
        Section("Default", [Facts([default_of(report)])], "both"),
        Section(
            "Devices",
            [*[plot] * (len(values) > 1), table_of(cells, ("device", "the best simple predictor"), title=title)],
            "both",
        ),
        Section("All together", [*map(Sentence, sentences[:-1]), Facts(files)], "both"),
        Section("Recordings that cannot be read", [Table(("device", "why"), unread, words=(0, 1))]),
    ]
    good = not unread and (report["beat_simple"] is None or report["beat_simple"] > 0.5)
    return Document(title, sentences[-1] if sentences else "", sections, good)
