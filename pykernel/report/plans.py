"""The document about a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pykernel.errors import shown_option
from pykernel.report import figures
from pykernel.report.checks import calls
from pykernel.report.common import Asked, inside, what_was_asked
from pykernel.report.document import Cell, Document, Facts, Part, Section, Table, table_of
from pykernel.report.figures import Panel
from pykernel.telling import (
    KINDS,
    MEASURES,
    against_monitors_sentence,
    against_simple_sentence,
    better_simple_phrase,
    byte_count,
    chosen_model_sentence,
    correlated_errors_sentence,
    data_sentences,
    error_growth_sentence,
    faults_sentence,
    formatted_number,
    judged_rows_phrase,
    key_values_phrase,
    labels_sentence,
    missed_kinds_sentence,
    missing_input_errors_sentence,
    model_sentence,
    monitor_sentence,
    path_word,
    percent,
    ratio_to_simple,
    rows_with_unit,
)

BEST = 10
"""Maximum number of kinds of models in the table that also lists the simple predictors."""
SPECS = ("learning", "frozen", "small")
AMOUNTS = {
    "ram": ("RAM (struct and stack)", " B"),
    "flash": ("flash (everything linked)", " B"),
    "instructions": ("instructions of a call", ""),
    "cycles": ("cycles of a call", ""),
}


def planned(
    report: Mapping[str, Any],
    asked: Asked,
    read: Section,
    panel: Panel,
    model: Mapping[str, Any],
    takes: Mapping[str, int],
    read_from: tuple[Sequence[str], int],
) -> Document:
    """Return the document about a plan.

    panel: the figure of error against cost.  takes: the amount of each resource that the planned model needs on its
    target.  read_from: the files of the table, and the value of --delay.
    """
    winner, kind, compared = report["winner"], MEASURES[report["measure"]], report["verdict"]
    monitors = "other_rows" in (winner["learning"] or {})
    shown, describe = (percent, monitor_sentence) if monitors else (formatted_number, model_sentence)
    frozen, grows = report["frozen"], error_growth_sentence(winner["promise"])
    learner = report["learner"] if report["learning_spec"] else None
    own = report["choice"]["own"]
    said = [
        monitor_sentence(winner) if monitors else model_sentence(winner, f"{kind} ", own),
        *([grows] if grows and not monitors else []),
    ]
    said += [(against_monitors_sentence if monitors else against_simple_sentence)(compared)] if compared else []
    facts = [
        ("planned", said[0]),
        ("", None if monitors else grows),
        ("chosen", chosen_model_sentence(report, shown)),
        ("faults", report["faults"] and faults_sentence(report["faults"])),
        ("missed", missed_kinds_sentence(winner["manners"] or {})),
        ("", missed_kinds_sentence(winner["missed"] or {})),
        ("values", key_values_phrase(winner["values"])),
        ("frozen" if report["undecided"] else "", frozen and model_sentence(frozen)),
        ("learning", learner and f"{model_sentence(learner)}{better_simple_phrase(learner)}"),
        ("labels", None if monitors else labels_sentence(report)),
        ("errors", None if monitors else correlated_errors_sentence(report)),
        ("gaps", missing_input_errors_sentence(report["gaps"])),
        ("smaller", report["small"] and describe(report["small"])),
        ("verdict", compared and said[-1]),
    ]
    judged = f"{report['winner']['learning']['scored']:,} faults in" if monitors else "judged on"
    title = (
        f"{rows_with_unit(report)}, {judged} {judged_rows_phrase(report)}; {report['trials']:,} trials"
        + f"; {kind} of the best" * (not monitors)
    )
    stated = {
        "data": data_sentences(report.get("data")),
        "assumed": report.get("assumed", ()),
        "recorded": report.get("recorded", ()),
    }
    more = [(name, "; ".join(lines)) for name, lines in stated.items()]
    sections = [
        what_was_asked(asked, *more),
        read,
        Section("Error against bytes", [figures.front("", f"{kind} on {judged_rows_phrase(report)}", panel)]),
        Section("Errors", [table_of(_lines(report, monitors), ("model",), title=title)], "both"),
        Section("The planned model", [Facts(facts)], "both"),
        Section("On the device", _uses(report, takes), "both"),
        Section("Its calls", calls([report["verified"]] if report["verified"] else [])),
        Section("Features", _signal(report["signal"], kind) if report["signal"] else [], "both"),
        Section("Files", [_written(report)], "both"),
        Section("Faults that are missed", [_missed(winner["missed"] or {})]),
        Section("The best of each kind", [_every(report["table"], kind, shown)]),
        *inside(model),
    ]
    spec, names, late = (
        path_word(report["spec"]),
        " ".join(map(path_word, read_from[0])),
        f" --delay {read_from[1]}" * (read_from[1] > 0),
    )
    state = None if winner["learning"] else report["states"].get("planned")
    start = f" --start {path_word(state)}" if state else ""
    then = [f"pykernel check {spec}", f"pykernel generate {spec}{start} -o out/"]
    # a model with a saved state does not learn on the device, but it would learn in a simulation
    if state is None:
        then.insert(0, f"pykernel simulate {spec} {names}{late}")
    good = compared is None or compared["winner"] == "model"
    return Document(f"plan: {rows_with_unit(report)}", "; ".join(said), sections, good, then)


def _written(report: Mapping[str, Any]) -> Facts:
    """List the files that were written, and say how to get the same spec again."""
    again = f"{shown_option('trials')} {report['trials']} {shown_option('seed')} {report['seed']} gives the same spec"
    return Facts(
        [
            ("again", again if report["repeatable"] else None),
            ("spec", report["spec"]),
            *(("", report[f"{name}_spec"]) for name in SPECS),
            *(("state", f"{path}, saved after all rows, for generate --start") for path in report["states"].values()),
            ("report", report["report"]),
        ]
    )


def _missed(faults: Mapping[str, Any]) -> Table:
    """Return a table with the number of missed faults of each kind."""
    rows = [[KINDS.get(name, name), f"{part:,}", f"{most:,}"] for name, (part, most) in sorted(faults.items())]
    return Table(("kind", "missed", "of"), rows)


def _every(tried: Sequence[Mapping[str, Any]], kind: str, shown: Callable[[float], str]) -> Table:
    """Return a table of the best model of each kind, with its error and values."""
    rows = [
        [row["model"], shown((row["learning"] or row["frozen"])["error"]), key_values_phrase(row["values"])]
        for row in tried
    ]
    return Table(("model", kind, "values"), rows, words=(0, 2))


def _lines(report: Mapping[str, Any], monitors: bool) -> list[dict[str, str]]:
    """Return the table's rows: the best models, then the simple predictors."""

    def line(name: str, frozen: Any, learning: Any, ram: int, tables: int | None, beside: str) -> dict[str, str]:
        shown, errors = percent if monitors else formatted_number, learning or frozen
        return {
            "model": name,
            "frozen": shown(frozen["error"]) if frozen else "",
            "missed" if monitors else "learning": shown(learning["error"]) if learning else "",
            "±": percent(errors["deviation"]) if monitors else "",
            "other rows in alarm": percent(errors["other_rows"]) if monitors else "",
            "of simple": beside,
            "RAM": byte_count(ram),
            "tables": byte_count(tables),
        }

    rows = [
        line(
            row["model"],
            row["frozen"],
            row["learning"],
            row["bytes"] if monitors else row["ram_bytes"],
            None if monitors else row["table_bytes"] or None,
            "" if monitors else ratio_to_simple(row["against_simple"]),
        )
        for row in report["table"][:BEST]
    ]
    return rows + [
        line(name, row.get("frozen"), None if report["labels"] == "never" else row, row["bytes"], None, "")
        for name, row in sorted(report["simple"].items(), key=lambda item: item[1]["error"])
    ]


def _uses(report: Mapping[str, Any], takes: Mapping[str, int]) -> list[Part]:
    """Show what the planned model needs on its target, if there is a target."""
    row, limits, rows = report["verified"], report["limits"], []
    if row is None:
        return []
    for key, amount in takes.items():
        (text, unit), allowed, part = AMOUNTS[key], limits[key], report["uses"].get(key)
        share = Cell("" if part is None else f"{100 * part:.0f} %", part=part)
        rows.append([text, f"{amount:,}{unit}", "any" if allowed is None else f"{allowed:,}{unit}", share])
    equal = f"{row['samples']:,} samples on {limits['target']}: the memory is equal to the simulation's"
    heads = ("resource", "used", "limit", "share")
    return [Table(heads, rows, title=f"on {limits['target']}"), Facts([("verified", equal)])]


def _signal(signal: Mapping[str, Any], kind: str) -> list[Part]:
    """Show, for each kind of feature, the error of the planned model if this kind is left out."""
    rows = [
        [
            f"without {row['name']}",
            formatted_number(row["error"]),
            "" if row["change"] is None else f"{100 * row['change']:+.1f} %",
            byte_count(row["ram_bytes"]),
            row["reason"] or ("yes" if row["earns"] else "no"),
        ]
        for row in signal["features"]
    ]
    title = f"{kind} of the planned model if one kind of feature is left out"
    return [Table(("features", "error", "change", "RAM", "worth keeping"), rows, title=title)]
