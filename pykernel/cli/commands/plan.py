"""The command ``pykernel plan``: from a table to the model of smallest error that keeps a device's limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from pykernel.cli.output import (
    print_json,
    print_next,
    print_report,
    show,
    show_facts,
    show_table,
    styled,
)
from pykernel.request.kinds import Files
from pykernel.telling import (
    MEASURES,
    against_monitors,
    against_simple,
    byte_count,
    chosen,
    counted,
    counts,
    error_and_deviation,
    faults_told,
    growth,
    inertia,
    judged_on,
    key_values,
    missed_kinds,
    misses,
    number,
    of_simple,
    question,
    rate,
    told_of,
    where_simple_is_better,
)
from pykernel.workflows.requests import Plan


def plan(given: Plan, as_json: bool) -> None:
    from pykernel.tuning.plan import NothingFits
    from pykernel.workflows.plan import run

    try:
        report = run(given).report
    except NothingFits as error:
        if as_json and error.report is not None:
            print_json(error.report)
        raise
    print_report(report, as_json, partial(print_plan, data=given.data, delay=given.delay))


def print_plan(report: Mapping[str, Any], data: Files, delay: int) -> None:
    winner, kind = report["winner"], MEASURES[report["measure"]]
    monitors = "other_rows" in (winner["learning"] or {})
    if monitors:
        print_monitors(report)
    else:
        print_models(report)
    learner, frozen = report["learner"] if report["learning_spec"] else None, report["frozen"]
    verdict_of = against_monitors if monitors else against_simple
    show_facts(
        ("planned", misses(winner) if monitors else told_of(winner, f"{kind} ")),
        ("", None if monitors else growth(winner["promise"])),
        ("chosen", chosen(report, rate if monitors else number)),
        ("faults", report["faults"] and faults_told(report["faults"])),
        ("missed", missed_kinds(winner["missed"] or {})),
        ("values", key_values(winner["values"])),
        ("frozen" if report["undecided"] else "", frozen and told_of(frozen)),
        ("learning", learner and f"{told_of(learner)}{where_simple_is_better(learner)}"),
        ("labels", None if monitors else question(report)),
        ("errors", None if monitors else inertia(report)),
        ("smaller", report["small"] and (misses if monitors else told_of)(report["small"])),
        ("verdict", report["verdict"] and verdict_of(report["verdict"])),
    )
    print_uses(report)
    if report["signal"] is not None:
        print_signal(report["signal"], kind, {name: report[f"{name}_spec"] for name in ("leaner", "better")})
    show_facts(
        (
            "again",
            f"--trials {report['trials']} --seed {report['seed']} gives the same spec"
            if report["repeatable"]
            else None,
        ),
        ("spec", report["spec"]),
        *(("", report[f"{name}_spec"]) for name in ("learning", "frozen", "small", "leaner", "better")),
        *(("state", f"{path}, after all rows, for generate --start") for path in report["states"].values()),
        ("report", report["plot"]),
    )
    spec = quote(report["spec"])
    late = f" --delay {delay}" if delay else ""
    files = " ".join(quote(str(each)) for each in ([data] if isinstance(data, str | Path) else data))
    print_next(report["spec"], f"pykernel simulate {spec} {files}{late}", f"pykernel check {spec}")


def print_monitors(report: Mapping[str, Any]) -> None:
    """Print which part of the faults the best monitors miss, and what is in alarm besides."""
    rows: list[list[str]] = []

    def cells(name: str, told: Mapping[str, Any], bytes: int) -> list[str]:
        figures = [rate(told["error"]), rate(told["deviation"]), rate(told["other_rows"])]
        return [name, *figures, byte_count(bytes)]

    rows = [cells(row["model"], row["learning"], row["bytes"]) for row in report["table"][:10]]
    simple = sorted(report["simple"].items(), key=lambda item: item[1]["error"])
    rows += [styled("dim", cells(name, told, told["bytes"])) for name, told in simple]
    title = f"{counted(report)}, {report['winner']['learning']['scored']:,} faults in {judged_on(report)}"
    columns = ("model", "missed", "±", "other rows in alarm", "RAM")
    show_table(f"{title}; {report['trials']:,} trials", columns, rows)


def print_models(report: Mapping[str, Any]) -> None:
    """Print the errors of the best models."""
    kind = MEASURES[report["measure"]]
    rows: list[list[str]] = []
    for row in report["table"][:10]:
        cells = [number(row[part]["error"]) if row[part] else "" for part in ("frozen", "learning")]
        sizes = [byte_count(row["ram_bytes"]), byte_count(row["table_bytes"] or None)]
        rows.append([row["model"], *cells, of_simple(row["beside"]), *sizes])
    for name, row in sorted(report["simple"].items(), key=lambda item: item[1]["error"]):
        frozen = number(row["frozen"]["error"]) if row["frozen"] else ""
        learning = "" if report["labels"] == "never" else number(row["error"])
        line = [name, frozen, learning, "", byte_count(row["bytes"]), ""]
        rows.append([*styled("dim", line)])
    title = f"{counted(report)}, judged on {judged_on(report)}; {report['trials']:,} trials"
    columns = ("model", "frozen", "learning", "of simple", "RAM", "tables")
    show_table(f"{title}; {kind} of the best", columns, rows)


def print_uses(report: Mapping[str, Any]) -> None:
    """Print what the model needs on the target, if there is one."""
    from pykernel.tuning.costs import Limits, taken

    row = report["verified"]
    if row is None:
        return
    limits = Limits(**report["limits"])
    amounts, _ = taken(row, limits)
    rows = []
    texts = {
        "ram": "RAM, struct and stack",
        "flash": "flash, all that is linked",
        "instructions": "instructions of a call",
        **({"cycles": "cycles of a call"} if "cycles" in amounts else {}),
    }
    for key, text in texts.items():
        unit, allowed = "" if key in ("instructions", "cycles") else " B", getattr(limits, key)
        part = f"{100 * report['uses'][key]:.0f} %" if key in report["uses"] else ""
        rows.append((text, f"{amounts[key]:,}{unit}", "any" if allowed is None else f"{allowed:,}{unit}", part))
    show_table(f"on {limits.target}", ("limit", "takes", "allowed", "part"), rows)
    show(f"verified  {row['samples']:,} samples on {limits.target}: the memory is equal to the simulation's")


def print_signal(found: Mapping[str, Any], kind: str, files: Mapping[str, str | None]) -> None:
    """Print the benefit of each kind of feature, and of further features and other windows.  files: written specs."""
    planned, place = found["planned"], f", instructions on {found['target']}" if found["target"] else ""
    named = [(f"without {row['name']}", row) for row in found["features"]]
    named += [(f"with {row['name']}", row) for row in found["added"]]
    if named:
        rows = []
        for name, row in named:
            change = "" if row["change"] is None else f"{100 * row['change']:+.1f} %"
            earns = row["reason"] or ("yes" if row["earns"] else "no")
            rows.append((name, number(row["error"]), change, *counts(row, "costs", missing=""), earns))
        title = f"what features earn: {kind} of the planned model without them or with others"
        columns = ("features", "error", "change", "takes", "earns it")
        show_table(f"{title}{place and f'{place} in the worst call'}", columns, rows)
    if found["windows"]:
        title = f"other windows and hops: {kind} of the planned model, for each step{place}"
        print_windows(title, planned, found["windows"])
    if found["note"]:
        show(found["note"])
    for name in ("leaner", "better"):
        if (row := found[name]) is not None:
            what = f"without {', '.join(row['dropped'])}" if name == "leaner" else row["name"]
            calls = [each["instructions"] for each in (row, planned)]
            costs = "" if None in calls else ", {:,} in place of {:,} instructions in the worst call".format(*calls)
            show(f"{name:8}  {what}: {error_and_deviation(row)}{costs}; {files[name]}")


def print_windows(title: str, planned: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> None:
    last = ["last label"] if planned["last_label"] is not None else []
    rows = []
    for row in (planned, *others):
        told = [number(row.get(key)) for key in ("error", "deviation", *(["last_label"] if last else []))]
        judged = f"{row['judged']:,}" if not row["reason"] else row["reason"]
        sizes, cost = counts(row, "window", "hop", missing=""), counts(row, "per_sample", missing="")
        line = [*sizes, *told, judged, *cost]
        rows.append(styled("bold", line) if row is planned else line)
    show_table(title, ("window", "hop", "error", "±", *last, "steps judged", "a raw sample"), rows)
