"""The command ``pykernel simulate``: a model on recorded data, as the device would learn from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pykernel.cli.output import print_json, print_report, show, show_document, show_facts, show_table, styled, warn
from pykernel.errors import UserError
from pykernel.telling import (
    KNOWN_ROWS,
    counted,
    gaps_told,
    missing_told,
    number,
    promise_told,
    rate,
    refused_told,
    rivals_told,
    unit_of,
    unread_told,
    verdict,
)
from pykernel.workflows.requests import Simulate


def simulate(given: Simulate, as_json: bool) -> None:
    from pykernel.workflows.devices import SimulatedDevices
    from pykernel.workflows.simulate import run

    found = run(given)
    report = found.report
    if isinstance(found, SimulatedDevices):
        warn(*[] if as_json else report["warnings"])
        print_report(report, as_json, lambda _: show_document(found.page))
        if report["unread"]:
            raise UserError(unread_told(report["unread"], len(report["devices"]) + len(report["unread"])))
        return
    if as_json:
        print_json(report)
        return
    last = found.simulation.warning
    warn(*found.warnings[: -1 if last else None])
    if report.get("question"):
        print_answers(report)
    else:
        print_errors(report)
        print_intervals(report)
        print_losses(report)
    print_statuses(report)
    print_alarms(report)
    print_training(report)
    print_end(report, last)


# -------------------------------------------------------------------------------------------------------------- report


def print_errors(report: Mapping[str, Any]) -> None:
    from pykernel.host.simple import LINEAR_MOST

    classes = report.get("classes")
    kinds = {"error_rate": "errors"} if classes else {"mae": "MAE", "rmse": "RMSE"}
    labels = report.get("by_label", {}) | {"all": report}
    titles = ["predictor", *kinds.values(), *(f"{kind}, 2nd half" for kind in kinds.values())]
    several = len(labels) > 1
    rows = []
    for label, found in labels.items():
        parts = [found["all"], found["second_half"]]
        for name in next(iter(parts[0][kind] for kind in kinds)):
            figures = map(rate if classes else number, [part[kind][name] for part in parts for kind in kinds])
            cells = [*([label if name == "model" else ""] if several else []), name, *figures]
            rows.append(styled("bold", cells) if name == "model" else cells)
    late = f", labels {report['delay']:,} {unit_of(report)}s late" if report["delay"] else ""
    title = f"{report['name']} ({report['rule']}): {counted(report)}{late}"
    show_table(title, [*(["label"] if several else []), *titles], rows, words=(0, several))
    if not any("linear" in name for name in report["simple"]):
        show(f"more than {LINEAR_MOST} inputs: the linear models are left out", "")
    if classes:
        print_confusion(classes, report["confusion"], unit_of(report))


def print_intervals(report: Mapping[str, Any]) -> None:
    """How many labels were within the intervals."""
    found = report.get("interval")
    if found is None:
        return
    part = found["second_half"]
    if part["inside"] is None:
        show(f"intervals at {rate(found['level'])}: no label came that could be judged", "")
        return
    widths = part["width"] if isinstance(part["width"], list) else [part["width"]]
    told = ", ".join("none" if width is None else number(width) for width in widths)
    inside = f"{rate(part['inside'])} of the labels inside, mean width{'s' * (len(widths) > 1)} {told}"
    show(f"intervals at {rate(found['level'])}: {inside}, over the second half", "")


def print_losses(report: Mapping[str, Any]) -> None:
    """How good the probabilities were."""
    found = report.get("log_loss", {}).get("second_half")
    if found and found["model"] is not None:
        told = f"log loss {number(found['model'])}, of the classes' shares so far {number(found['base rate'])}"
        show(f"probabilities: {told}, over the second half", "")


def print_statuses(report: Mapping[str, Any]) -> None:
    counts = {status.replace("_", " "): count for status, count in report["statuses"].items()}
    if "unlabelled" in report:  # a model without labels refuses inputs by its status
        others = {
            "no label yet": report["unlabelled"],
            "label came too late: not learned": report["waiting"],
            "no label, and not predicted (input refused)": report["inputs_refused"] - counts.get("refused input", 0),
        }
        counts |= {text: count for text, count in others.items() if count > 0}
    rows = [(text, f"{count:,}") for text, count in counts.items()]
    show_table("what happened to the samples", ("status", "samples"), rows)
    if "raw_rows" in report:
        if told := gaps_told(report["raw_rows"], report["rows"]):
            show(f"gaps     {told}", "")
    elif report["missing"] and report["missing"]["by"] != "refuse":
        if report["missing"]["inputs"]:
            show(f"missing  {missing_told(report['missing'])}", "")


def print_training(report: Mapping[str, Any]) -> None:
    if report.get("trainings"):
        done = ", ".join(f"{text.replace('_', ' ')} {count:,}" for text, count in report["trainings"].items())
        show(f"trainings       {done}")
    if found := report.get("leave_one_out"):
        wrong = f", {rate(found['error_rate'])} of the samples with a wrong class" if report.get("classes") else ""
        told = f"RMSE {number(math.sqrt(found['mse']))}{wrong}" if found["mse"] is not None else "none"
        again = "the samples must be read again after the last training; give the data as a file"
        why = again if found.get("samples") == 0 else found["status"].replace("_", " ")
        show(f"leave-one-out   {told} ({why})", "")


def print_end(report: Mapping[str, Any], last: str | None) -> None:
    """last: the warning that stands at the end."""
    from pykernel.host.advice import FEW
    from pykernel.report.common import default_of

    show_facts(default_of(report))
    for each in report.get("advice", ()):
        show(f"advice   {each['test']}: {each['why']}", f"         {each['change']}")
    if report.get("advice"):
        kind = f"parts of the {unit_of(report)}s" if report.get("classes") else "root mean squares"
        show(f"         (errors over the second half, {kind})")
    for told in refused_told(report):
        show(f"refused  {told}", "")
    if (found := report.get("verdict")) is not None:
        show(f"verdict  {verdict(found, rate if report.get('classes') else number)}, over the second half")
        if told := rivals_told(report):
            show(f"         {told}", "")
    if (found := report.get("promise")) is not None:
        show(f"promise  {promise_told(found, rate if report.get('classes') else number)}")
    if report["knows_second_half"]:
        show(f"verdict  none: {KNOWN_ROWS}")
    if "scored" in report["second_half"] and report["second_half"]["scored"] < FEW:
        scored = f"{report['second_half']['scored']:,} {unit_of(report)}s"
        show(f"verdict  {scored} of the second half were scored: too few to judge")
    if last:
        warn(last)
    for key in ("output", "plot"):
        if report[key]:
            show(f"{key}   {report[key]}")
    if report["save"]:
        show(f"state    {report['save']}, hash {report['state_hash']}, for pykernel generate --start")


def print_answers(report: Mapping[str, Any]) -> None:
    watched = ["in alarm"] if "alarms" in report else []
    rows = []
    for text, part in (("all", report["all"]), ("2nd half", report["second_half"])):
        for i, name in enumerate(part["mean"]):
            alarms = [rate(part["in_alarm"]) if i == 0 else ""] if watched else []
            rows.append([name, text, number(part["mean"][name]), number(part["largest"][name]), *alarms])
    columns = ("answer", f"{unit_of(report)}s", "mean", "largest", *watched)
    show_table(f"{report['name']}: {counted(report)}, without labels", columns, rows)


def print_alarms(report: Mapping[str, Any], most: int = 12) -> None:
    """How many rows are in alarm, the surest alarms in their order, and what simple detectors see of them."""
    found = report.get("alarms")
    if found is None:
        return
    unit = unit_of(report)
    if found["count"]:
        columns = (f"from {unit}", f"to {unit}", "in alarm", "level", "/ threshold")
        timed = "from_seconds" in found["listed"][0]
        blames = "input" in found["listed"][0]
        surest = sorted(found["listed"], key=sureness, reverse=True)[:most]
        surest.sort(key=lambda alarm: alarm["first_row"])
        told = [alarm_told(alarm)[: None if blames else len(columns)] for alarm in surest]
        count = f"{found['count']:,} alarm{'s' * (found['count'] > 1)}, {found['samples']:,} {unit}s in alarm"
        if found["count"] > most:
            kept = len(found["listed"])
            count += f"; the {most} surest{f' of the first {kept:,}' if found['count'] > kept else ''}:"
        words: tuple[int, ...] = (len(columns), len(columns) + 2) if blames else ()
        head = (*columns, *(("about", "share", "kind") if blames else ()))
        if timed:
            head, words = ("from second", *head), tuple(place + 1 for place in words)
            told = [(f"{alarm['from_seconds']:,.2f}", *cells) for alarm, cells in zip(surest, told, strict=True)]
        show_table(count, head, told, words=words)
    if found.get("judged"):
        given = found["false_alarm_rate"]
        wanted = f"; false_alarm_rate is {100 * given:g} %" if given is not None else ""
        judged = f"the {found['judged']:,} {unit}s after the warm-up"
        show(f"{rate(found['in_alarm'])} of {judged} are in alarm{wanted}")
    for name, simple in found.get("simple", {}).items() if found["count"] else ():
        show(
            f"{name} ({simple['bytes']:,} bytes), with as many {unit}s in alarm, sees {rate(simple['seen'])} of these alarms"
        )
    if found["count"] and found.get("simple"):
        show(f"as many {unit}s drawn at random see {rate(found['seen_by_chance'])} of them")
    said = "" if found["count"] else "no alarm; "
    if "judged" in found and not found["judged"]:
        said = "no alarm can come before the warm-up is over; "
    end = [f"{said}at the end the level is {number(found['level'])}, the threshold {number(found['threshold'])}"]
    if regimes := report.get("regimes"):
        known = f"{len(regimes)} regimes are known" if len(regimes) > 1 else "one regime is known"
        end.append(f"{known} at the end, with {', '.join(map(rate, regimes))} of the latest {unit}s")
    show(*end, "")


def sureness(alarm: Mapping[str, Any]) -> float:
    """An alarm's level over its threshold, where it is highest."""
    threshold: float = alarm["threshold"]
    return alarm["level"] / threshold if threshold > 0 else math.inf


def alarm_told(alarm: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of an alarm: its first and last row, rows in alarm, highest level, and there also by how much it is above its
    threshold; the most blamed input with its share, and the kind.
    """
    times = f"{sureness(alarm):.2f}" if alarm["threshold"] > 0 else ""
    rows = (f"{alarm['first_row']:,}", f"{alarm['last_row']:,}", f"{alarm['rows']:,}")
    blamed = (alarm["input"], rate(alarm["share"]), alarm["kind"]) if "input" in alarm else ("", "", "")
    return (*rows, number(alarm["level"]), times, *blamed)


def print_confusion(classes: Sequence[str], counts: Sequence[Sequence[int]], unit: str, most: int = 8) -> None:
    """Print the confusion of classes: as a matrix, or, if there are many classes, the most frequent mistakes."""
    if len(classes) <= most:
        rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(classes, counts, strict=True)]
        show_table(f"{unit}s of each class, by the predicted class", ("label", *classes), rows)
        return
    size = range(len(classes))
    wrong = sorted((-counts[i][j], i, j) for i in size for j in size if i != j and counts[i][j])
    mistakes = [(classes[i], classes[j], f"{-count:,}") for count, i, j in wrong[:most]]
    show_table("the most frequent mistakes", ("label", "taken for", f"{unit}s"), mistakes)
