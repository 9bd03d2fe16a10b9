"""Reports of what commands found.

Each takes what ``--json`` prints, and what else is drawn: numbers over rows.  No other module makes sentences or tables of
a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pykernel.report import figures
from pykernel.report.common import Asked, in_words, inside, number_or_dash, what_was_asked
from pykernel.report.document import Document, Facts, Part, Section, Sentence, Table
from pykernel.report.figures import time_text
from pykernel.telling import (
    KNOWN_ROWS,
    counted,
    data_sentences,
    devices_table,
    devices_told,
    gaps_told,
    missing_told,
    number,
    promise_told,
    rate,
    refused_told,
    rivals_told,
    skipped,
    unit_of,
    verdict,
)

LONGEST = 200
"""Most characters of a key's value that are shown."""


def spec_keys(name: str, rule: str, keys: Iterable[tuple[str, str, Any, Any]]) -> Document:
    """A spec's keys that have a value.  keys: section, key, declaration and value of each."""
    rows = [[f"[{section}] {key}" if section else key, in_words(value)[:LONGEST]] for section, key, _, value in keys]
    rows = [row for row in rows if row[1]]
    return Document(name, f"rule {rule}", [Section("Keys", [Table(("key", "value"), rows, words=(0, 1))])])


# -------------------------------------------------------------------------------------------------------------- simulate


def simulated(
    report: Mapping[str, Any],
    asked: Asked,
    read: Section,
    drawn: Mapping[str, Any],
    model: Mapping[str, Any],
) -> Document:
    """A model on recorded data.  drawn: what ``workflows.simulate`` gathers for figures."""
    unit, name = unit_of(report), report["name"]
    late = f"{report['delay']:,} {unit}s" if report.get("delay") else ""
    first = what_was_asked(asked, ("rule", report.get("rule") or drawn["rule"]), ("delay", late))
    if "question" in report:
        found, said, good = _monitored(report, drawn)
    else:
        found, said, good = _scored(report, drawn)
    title = f"{name}: {counted(report)}"
    said = "; ".join([*([said] if said else []), *refused_told(report)])
    return Document(title, said, [first, read, *found, _statuses(report), *inside(model)], good)


def simulated_devices(report: Mapping[str, Any], asked: Asked) -> Document:
    """A model on many devices."""
    title, columns, rows = devices_table(report)
    told = devices_told(report)
    files = [("report", report["plot"]), ("states", report["save"] and f"{report['save']}/, one of each device")]
    key = "error" if report["ratio"] is None else "ratio"
    values = np.sort([row[key] for row in report["devices"] if row[key] is not None])
    share = np.linspace(0, 100, len(values))
    plots = []
    if len(values) > 1:
        what = "the model's error, of the best simple predictor's" if key == "ratio" else columns[2]
        plots = [
            figures.Plot(
                "All devices, the best first",
                "% of the devices",
                what,
                [figures.Line(what, share, values, "model")],
                zero=True,
            )
        ]
    sections = [
        what_was_asked(asked, ("rule", report["rule"])),
        Section("Devices", [*plots, Table(columns, rows, words=(0, 4), title=title)], "both"),
        Section("All together", [*map(Sentence, told[:-1]), Facts(files)], "both"),
    ]
    unread = [[each["device"], each["reason"]] for each in report["unread"]]
    sections.append(
        Section("Recordings that cannot be read", [Table(("device", "why"), unread, words=(0, 1))] if unread else [])
    )
    good = not unread and (report["beat_simple"] is None or report["beat_simple"] > 0.5)
    return Document(title, told[-1] if told else "", sections, good)


def _scored(report: Mapping[str, Any], drawn: Mapping[str, Any]) -> tuple[list[Section], str, bool]:
    unit, classes = unit_of(report), report.get("classes")
    shown = rate if classes else number
    found = report["verdict"]
    untold = "too few rows were scored to judge the model"
    if report["knows_second_half"]:
        untold = KNOWN_ROWS
    said = drawn["warning"] or (f"{verdict(found, shown)}, over the second half" if found else untold)
    if (promised := report.get("promise")) is not None:
        said = f"{said}; {promise_told(promised, shown)}"
    kinds = {"error_rate": "errors"} if classes else {"mae": "MAE", "rmse": "RMSE"}
    sections = []
    forecasts = [plot for plot in drawn.get("forecasts", ())]
    sections.append(Section("Forecast and truth", forecasts))
    rows, curves = drawn["errors"]
    lines = [figures.Line(name, rows, y, "model" if i == 0 else f"c{i}") for i, (name, y) in enumerate(curves.items())]
    ylabel = f"part of {unit}s with a wrong class" if classes else "mean absolute error"
    # an error of 0 has no place on a logarithmic axis
    log = all((y[np.isfinite(y)] > 0).all() for y in curves.values())
    plot = figures.Plot(
        "Error over time",
        unit,
        ylabel,
        lines,
        log=log,
        zero=not log,
        marks={"second half": report["rows"] / 2},
        times=drawn["times"],
    )
    several = report.get("by_label", {}) | {"all": report}
    cells: list[list[str]] = []
    strong = []
    for label, each in several.items():
        parts = [each["all"], each["second_half"]]
        for predictor in next(iter(parts[0][kind] for kind in kinds)):
            if predictor == "model":
                strong.append(len(cells))
            cells.append(
                [
                    *([label if predictor == "model" else ""] if "by_label" in report else []),
                    predictor,
                    *(shown(part[kind][predictor]) for part in parts for kind in kinds),
                ]
            )
    head = [*(["label"] if "by_label" in report else []), "predictor", *kinds.values()]
    head += [f"{kind}, second half" for kind in kinds.values()]
    sections.append(
        Section(
            "Errors",
            [
                plot,
                Table(head, cells, words=(0, 1) if "by_label" in report else (0,), strong=strong),
                *([Sentence(told)] if (told := rivals_told(report)) else []),
            ],
        )
    )
    if "band" in drawn:
        sections.append(Section("Intervals", [drawn["band"], *_intervals(report)]))
    if classes:
        confusion = [
            [name, *(f"{count:,}" for count in row)] for name, row in zip(classes, report["confusion"], strict=True)
        ]
        sections.append(Section("Which class is taken for which", [Table(("label", *classes), confusion)]))
    advice = [Sentence(f"{each['test']}: {each['why']}; {each['change']}") for each in report.get("advice", ())]
    sections.append(Section("Advice", advice))
    return sections, said, found is not None and found["winner"] == "model" and not drawn["warning"]


def _intervals(report: Mapping[str, Any]) -> list[Part]:
    found = report["interval"]
    part = found["second_half"]
    if part["inside"] is None:
        return [Sentence("no label came that could be judged")]
    return [
        Sentence(f"at {rate(found['level'])}: {rate(part['inside'])} of the labels are inside, over the second half")
    ]


def _statuses(report: Mapping[str, Any]) -> Section:
    counts = [(status.replace("_", " "), f"{count:,}") for status, count in report["statuses"].items()]
    told = []
    if "raw_rows" in report:
        told.append(gaps_told(report["raw_rows"], report["rows"]))
    elif report["missing"] and report["missing"]["by"] != "refuse":
        told.append(missing_told(report["missing"]) if report["missing"]["inputs"] else "")
    elif report["empty_inputs"] and report["data"] is None:
        told.append(skipped(report["empty_inputs"]))
    told += data_sentences(report["data"])
    return Section(
        "What happened to the samples",
        [Table(("status", "samples"), counts), *(Sentence(text) for text in told if text)],
    )


def _monitored(report: Mapping[str, Any], drawn: Mapping[str, Any]) -> tuple[list[Section], str, bool]:
    unit, sections, found = unit_of(report), [], report.get("alarms")
    sections.append(Section("Level and alarms" if found else "Answers", [plot for plot in drawn["course"]]))
    cells = [
        [name, text, number_or_dash(part["mean"][name]), number_or_dash(part["largest"][name])]
        for text, part in (("all", report["all"]), ("second half", report["second_half"]))
        for name in part["mean"]
    ]
    sections.append(
        Section("Answers in numbers", [Table(("answer", f"{unit}s", "mean", "largest"), cells, words=(0, 1))])
    )
    if not found:
        return sections, drawn["warning"] or "", not drawn["warning"]
    times = drawn["times"]
    blames = bool(found["listed"]) and "input" in found["listed"][0]
    timed = bool(found["listed"]) and "from_seconds" in found["listed"][0]
    rows = [
        [
            *([] if times is None else [time_text(times[alarm["first_row"]])]),
            *([f"{alarm['from_seconds']:,.2f}"] if timed else []),
            f"{alarm['first_row']:,}",
            f"{alarm['last_row']:,}",
            f"{alarm['rows']:,}",
            number_or_dash(alarm["level"]),
            number_or_dash(alarm["threshold"]),
            *((alarm["input"], rate(alarm["share"]), alarm["kind"]) if blames else ()),
        ]
        for alarm in found["listed"][:LISTED]
    ]
    head = (
        *(["time"] if times is not None else []),
        *(["from second"] if timed else []),
        f"from {unit}",
        f"to {unit}",
        "in alarm",
        "level",
        "threshold",
        *(("about", "share", "kind") if blames else ()),
    )
    count = f"{found['count']:,} alarm{'s' * (found['count'] != 1)}"
    told = [f"{count}, {found['samples']:,} {unit}s in alarm"]
    if found["count"] > LISTED:
        told[0] += f"; the first {len(rows):,}:"
    simple = [
        f"{name} ({each['bytes']:,} bytes), with as many {unit}s in alarm, sees {rate(each['seen'])} of these alarms"
        for name, each in found["simple"].items()
        if found["count"]
    ]
    sections.append(
        Section(
            "Alarms",
            [
                *map(Sentence, told),
                Table(head, rows, words=[i for i, name in enumerate(head) if name in ("time", "about", "kind")]),
                *map(Sentence, simple),
            ],
        )
    )
    wanted = (
        "" if found["false_alarm_rate"] is None else f"; asked for {rate(found['false_alarm_rate'])} without faults"
    )
    said = (
        f"{count}; {rate(found['in_alarm'])} of the {found['judged']:,} {unit}s after the warm-up are in alarm{wanted}"
    )
    if not found["judged"]:
        said = f"no alarm can come before the warm-up is over, and no {unit} came after it"
    return sections, drawn["warning"] or said, not drawn["warning"]


LISTED = 100
"""Most alarms that a report lists."""


# ------------------------------------------------------------------------------------------------------------- generate


def generated(folder: str, files: Sequence[str], figures_: Mapping[str, Any]) -> Document:
    """What was written."""
    files_ = [[file] for file in files]
    told = [
        (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else in_words(value))
        for name, value in {**figures_, **figures_["extents"]}.items()
        if name != "extents"
    ]
    return Document(
        f"{figures_['name']} in {folder}",
        f"{figures_['state_bytes']:,} bytes of state, {figures_['work_bytes']:,} of work, {figures_['const_bytes']:,} of constants",
        [
            *inside(figures_, "both"),
            Section("Figures", [Facts(told)]),
            Section("Files", [Table(("file",), files_)], "both"),
        ],
    )
