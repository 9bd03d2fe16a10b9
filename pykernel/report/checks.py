"""Documents of ``check`` and ``prove``: whether the C code and the host compute the same bytes, the cost of calls, and proofs
about calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pykernel.report.common import Asked, inside, what_was_asked
from pykernel.report.document import Cell, Document, Part, Section, Sentence, Table, table_of
from pykernel.telling import byte_count, formatted_figures

Rows = Sequence[Mapping[str, Any]]
BUILDS: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "board": (
        "{samples:,} samples on the board: is the memory equal to the simulation's?",
        {"board": "{board}", "compiled by": "{compiler}"},
        ("RAM", "stack"),
    ),
    "target": (
        "{samples:,} samples on emulated CPUs: is the memory equal to the simulation's?",
        {"target": "{target}", "built, run by": "{toolchain}, {emulator}"},
        ("flash", "RAM", "stack", "at most"),
    ),
    "compiler": (
        "is the C's memory equal to the simulation's, byte for byte?",
        {"compiler": "{compiler} {flags}", "samples": "{samples:,}"},
        ("code -Os", "constants", "state's hash"),
    ),
}
"""Kind of build -> its table's title, the columns with text, and the columns with numbers."""
FIGURES = {
    "code -Os": "text_bytes",
    "constants": "rodata_bytes",
    "flash": "flash_bytes",
    "RAM": "ram_bytes",
    "stack": "stack_bytes",
    "at most": "stack_bound_bytes",
    "state's hash": "state_hash",
}


def builds(rows: Rows, learns: bool = True) -> list[Part]:
    """Show builds of one kind, and whether their memory equals the simulation's.  learns: whether the model learns."""
    if not rows:
        return []
    kind = next(kind for kind in BUILDS if kind in rows[0])
    title, names, keys = BUILDS[kind]
    cells, wrong = [], []
    for row in rows:
        texts = [text.format_map(row) for text in names.values()]
        figures = [row.get(FIGURES[key]) for key in keys]
        sizes = [
            each or "" if key == "state's hash" else byte_count(each) for key, each in zip(keys, figures, strict=True)
        ]
        cells.append([*texts, Cell("yes" if row["equal"] else "NO", row["equal"]), *sizes])
        wrong += [] if row["equal"] else [Sentence(f"{' '.join(texts[:1])}: {row['first_difference']}")]
    learned = " and then learned" * learns
    hashed = f"state's hash: what NAME_hash returns after these samples, each predicted{learned}"
    table = Table([*names, "equal", *keys], cells, title=title.format_map(rows[0]))
    return [table, *wrong, Sentence(hashed if kind == "compiler" else "")]


def calls(rows: Rows) -> list[Part]:
    """Show what each call costs (in instructions, in cycles, or in ticks of a board's counter), with its bounds and the
    reasons for missing bounds.
    """
    cells = [
        [
            row["target"],
            call,
            *formatted_figures(row[call], "min", "median", "max", "worst", "bound"),
            *formatted_figures(row[call], "ratio", digits=2),
        ]
        for row in rows
        for call in row.get("calls", ())
    ]
    heads = ("target", "call", "min", "median", "max", "worst", "bound", "ratio")
    times = [
        [
            row["target"],
            call,
            *formatted_figures(figures, "min", "median", "max"),
            *formatted_figures(row.get("bounds", {}).get(call, {"cycles": None}), "cycles"),
        ]
        for row in rows
        for call, figures in row.get("times", {}).items()
        if "target" in row
    ]
    timed = "cycles of one call, by the CPU's timer (reading the timer takes about 130 cycles)"
    return [
        Table(heads, cells, spare=("min", "median", "ratio")),
        Table(("target", "call", "min", "median", "max", "bound"), times, title=timed),
        *(part for row in rows if "board" in row for part in ticks(row)),
        *(Sentence(line) for row in rows if "target" in row for line in _bounds(row)),
    ]


def ticks(row: Mapping[str, Any]) -> list[Part]:
    """Show how long calls take, as measured by a board's counter."""
    hertz = row["hertz"]
    rows = [
        {"call": name}
        | dict(
            zip(
                ("calls", "min", "median", "max"),
                formatted_figures(figures, "calls", "min", "median", "max"),
                strict=True,
            )
        )
        | {f"{key}, µs": f"{figures[key] / hertz * 1e6:,.1f}" if hertz else "" for key in ("median", "max")}
        for name, figures in row["times"].items()
    ]
    at = f", at {hertz / 1e6:g} MHz" if hertz else ""
    return [table_of(rows, ("call",), title=f"ticks of the board's counter for one call{at}")]


def _bounds(row: Mapping[str, Any]) -> list[str]:
    """Return lines about bounds that are not in the table of calls, and about the reasons for missing bounds."""
    bounds = row.get("bounds", {})
    proved = {name: bound for name, bound in bounds.items() if bound["instructions"] is not None}
    lines, timed = [], row.get("times", {})
    others = [f"{name} {bound['instructions']:,}" for name, bound in proved.items() if name not in row.get("calls", ())]
    if others:
        lines.append(f"{row['target']}: instructions at most: {', '.join(others)}")
    cycles = [
        f"{name} {bound['cycles']:,}"
        for name, bound in proved.items()
        if bound["cycles"] and name not in timed and (timed or name in row.get("calls", ()))
    ]
    if cycles:
        how = "estimated" if any(bound["estimated"] for bound in proved.values()) else "without wait states"
        lines.append(f"{row['target']}: cycles at most, {how}: {', '.join(cycles)}")
    reasons = dict.fromkeys(bound["refused"] for bound in bounds.values() if bound["refused"])
    return lines + [f"{row['target']}: no bound: {reason}" for reason in reasons]


def _loads(loads: Rows) -> list[Part]:
    """Show the processor's load for one sample.  The load includes all functions that the firmware calls for this
    sample.
    """
    rows = []
    for load in loads:
        if load["cycles"] is not None:
            share, time = load["share"], load["microseconds"]
            rows.append(
                {
                    "target": load["target"],
                    "cycles": f"{load['cycles']:,}",
                    "are": load["kind"],
                    # four digits: ``telling.formatted_duration`` is too coarse for a proved or measured time
                    "time": f"{time / 1000:,.4g} ms" if time >= 1000 else f"{time:,.4g} µs",
                    "of a period": Cell(f"{100 * share:.3g} %", False if share > 1 else None, share),
                    "mean": f"{100 * load['mean_share']:.3g} %",
                    "a day": f"{load['mah_a_day']:.3g} mAh" if "mah_a_day" in load else "",
                }
            )
    sentences = [f"{load['target']}: {_load_sentence(load)}" for load in loads if _load_sentence(load)]
    return [table_of(rows, ("target",), title="a sample takes at most"), *map(Sentence, sentences)]


def _load_sentence(load: Mapping[str, Any]) -> str:
    if load["cycles"] is None:
        return "without a bound, the number of cycles is unknown; pykernel check --board measures it"
    if load["mean_share"] > 1:
        return "samples come faster than they are processed; use a smaller model, fewer samples per second, or a faster clock"
    if load["waiting"]:
        return (
            f"up to {load['waiting']:,} samples may arrive while the slowest sample is processed and the firmware responds to its "
            "alarm, if there is one: let an interrupt put them into a queue of this length"
        )
    return ""


def checked(
    name: str, report: Mapping[str, Any], rows: Rows, learns: bool, asked: Asked, model: Mapping[str, Any]
) -> Document:
    """Say whether the C code and the host compute the same bytes.

    rows: the builds that the user asked for.  The report also has builds for the spec's [target], after these rows.
    """
    every = report["check"]
    equal = all(row["equal"] for row in (*every, *report["witnesses"]))
    said = f"{len(every):,} build{'s compute' if len(every) > 1 else ' computes'} the same bytes as the PC"
    engines = [
        f", the fast engine; {row['engine']}, the reference engine, computes {'the same bytes' if row['equal'] else 'OTHER BYTES: ' + str(row['first_difference'])}"
        for row in report["witnesses"]
    ]
    sections = [
        what_was_asked(asked),
        Section("Is the memory of the C code equal to the simulation's?", builds(rows, learns), "both"),
        Section("Instructions of one call", calls(rows), "both"),
        Section("The processor's load", _loads(report.get("load", ())), "both"),
        Section("On the spec's [target]", [*builds(every[len(rows) :]), *calls(every[len(rows) :])], "both"),
        Section("Engines", [Sentence(f"simulated by {report['engine']}{''.join(engines)}")], "both"),
        Section("Limits", [Sentence(text) for text in report["exceeded"]]),
        *inside(model, "both"),
    ]
    said = said if equal else "the C code or the reference engine DIFFERS from the simulation"
    return Document(f"check of {name}", "; ".join([said, *report["exceeded"]]), sections, report["ok"])


def proved(report: Mapping[str, Any], said: str) -> Document:
    """Show the results of the proof of a model's calls."""
    calls = [
        {
            "call": row["call"],
            "from": row["level"],
            "proved": Cell("yes" if row["proved"] else "NO", row["proved"]),
            "alarms": f"{row['alarms']:,}",
            "ranges": f"{row['proved_ranges']:,} of {row['ranges']:,}" if row["ranges"] else "-",
            "reached": f"{row['reached']:,} of {row['statements']:,}" if row["statements"] else "-",
            "seconds": f"{row['seconds']:,.1f}",
            "why": row["why"],
        }
        for row in report["calls"]
    ]
    alarms = [
        {
            "call": f"{alarm['call']} ({alarm['level']})",
            "where": f"{alarm['file']}:{alarm['line']}",
            "what could not be ruled out": alarm["meaning"],
            "code": alarm["code"],
            "not proved": alarm["condition"],
            "called by": " < ".join(alarm["stack"]),
        }
        for alarm in report["findings"]
    ]
    left = dict.fromkeys(name for row in report["calls"] for name in row["unreached"])
    ended = [
        f"functions with statements that at least one call does not reach (numbers: statements reached): {', '.join(left)}"
        if left
        else "",
        f"WP and Z3 proved {report['proved_nan_steps']} of {report['nan_steps']} assertions about NaN",
        f"configuration {report['config_hash']}; analysed in {report['seconds']:g} s by {report['tools']}",
    ]
    title = f"calls of {report['name']}, analysed by {report['tools']}"
    sections = [
        Section("Calls", [table_of(calls, ("call", "from", "proved", "why"), title=title)], "both"),
        Section("Alarms", [table_of(alarms, alarms[0] if alarms else ())], "both"),
        Section("How", [Sentence(line) for line in ended], "both"),
    ]
    return Document(f"proof of {report['name']}", said, sections, report["ok"])
