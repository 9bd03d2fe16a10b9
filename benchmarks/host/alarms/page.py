"""Tables of what run.py and theirs.py measured, for docs/novelty.md: between ``<!-- alarms-events -->`` and ``<!-- end -->``, and
so on.  A table whose place is not in the page is only printed.

alarms-events, alarms-rows, alarms-delay: by detector and kind of stream, with 1 % false rows; alarms-few-false: events with 0.1 %.  alarms-summary: means over
kinds, and the detectors' own thresholds.  alarms-own: what is seen and how many rows are false with one's own threshold, by
kind.  alarms-rates: the rates that are kept.  alarms-settings: what was chosen.  alarms-held-…: the same of held plants.
alarms-theirs: recorded data.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.host.alarms.measure import pooled
from benchmarks.tables import DATA, Rows, load, markdown, publish, read

PAGE = DATA.parent / "novelty.md"
ARMED = "spec without a rule"
NEW_STATES = ("several regimes", "twelve slow regimes", "counts and contacts")
"""Plants that get normal states after commissioning: an armed monitor is in alarm there until somebody acknowledges them."""
WITHIN, BELOW = 0.3, 2.0
"""A rate is kept if the median stream has it within this part, and 90 % of the streams are below so many times of it."""


def names(rows: Rows, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def bar(name: str) -> str:
    """A detector's name in a table."""
    return name.replace("|", "\\|")


def mean(rows: Rows, column: str) -> float:
    """Of all streams and seeds; NaN for none."""
    return float(np.mean([float(row[column]) for row in rows])) if rows else float("nan")


def number(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def by_kind(rows: Rows, column: str, digits: int = 2, head: str = "detector") -> str:
    """A line for each detector: the mean of each kind of stream, and the mean of the kinds."""
    kinds = names(rows, "kind")
    made = []
    for name in names(rows, "detector"):
        means = [mean([r for r in rows if (r["detector"], r["kind"]) == (name, kind)], column) for kind in kinds]
        made.append([bar(name), *(number(value, digits) for value in [*means, np.nanmean(means)])])
    return markdown([head, *kinds, "mean"], made)


def summary(rows: Rows) -> str:
    """A line for each detector: means over kinds of streams; bytes of the median stream."""
    kinds, made = names(rows, "kind"), []
    columns = (
        *(("events_1", 3), ("events_05", 3), ("events_01", 3), ("rows_1", 3), ("delay_1", 1)),
        *(("own_false", 4), ("own_events", 3)),
    )
    for name in names(rows, "detector"):
        own = [row for row in rows if row["detector"] == name]
        line = [bar(name)]
        for column, digits in columns:
            means = [mean([row for row in own if row["kind"] == kind], column) for kind in kinds]
            line.append(number(float(np.nanmean(means)), digits))
        made.append([*line, f"{int(np.median([int(row['bytes']) for row in own])):,}"])
    heads = (
        *("events, 1 %", "0.5 %", "0.1 %", "faulty rows, 1 %", "delay"),
        *("own threshold: false rows", "events", "bytes"),
    )
    return markdown(["detector", *heads], made)


def own(rows: Rows) -> str:
    """Events seen with one's own threshold, and false rows in per cent behind them."""
    kinds, made = names(rows, "kind"), []
    for name in names(rows, "detector"):
        line = [bar(name)]
        for kind in kinds:
            part = [row for row in rows if (row["detector"], row["kind"]) == (name, kind)]
            line.append(f"{mean(part, 'own_events'):.2f} ({100 * mean(part, 'own_false'):.2g} %)" if part else "")
        made.append(line)
    return markdown(["detector", *kinds], made)


def kept(rows: Rows) -> Iterator[tuple[str, float, np.ndarray]]:
    """Detector, alpha, and rates over alpha, of one stream or pool each."""
    for name in names(rows, "detector"):
        for alpha in names(rows, "alpha"):
            found = [row for row in rows if (row["detector"], row["alpha"]) == (name, alpha)]
            found.sort(key=lambda row: (row["kind"], row["seed"], row["stream"]))
            counts = [(row["stream"], int(row["alarms"]), int(row["rows"])) for row in found]
            rate = float(alpha)
            yield name, rate, np.array([alarms / total / rate for _, alarms, total in pooled(counts, rate)])


def known_states(rows: Rows) -> Rows:
    """The armed monitor's lines, under another name, of plants whose normal states all come in commissioning."""
    found = [row for row in rows if row["detector"] == ARMED and row["kind"] not in NEW_STATES]
    return [row | {"detector": f"{ARMED}, all states known"} for row in found]


def rates(rows: Rows) -> str:
    """A line for each detector and alpha."""
    made = []
    for name, alpha, parts in kept(rows):
        half, most = float(np.median(parts)), float(np.quantile(parts, 0.9))
        holds = abs(half - 1) <= WITHIN and most <= BELOW
        told = [f"{alpha:g}", str(len(parts)), f"{half:.2f}", f"{most:.2f}", f"{parts.max():.2f}"]
        made.append([bar(name), *told, "yes" if holds else "no"])
    heads = ("wanted", "streams or pools", "median / wanted", "90 % quantile", "largest", "kept")
    return markdown(["detector", *heads], made)


def settings(rows: Rows) -> str:
    """A line for each detector: its setting, and how far that is above the median one."""
    made = []
    for name in names(rows, "detector"):
        tried = [row for row in rows if row["detector"] == name]
        parts = [float(np.mean([float(row[rate]) for rate in ("events_1", "events_05", "events_01")])) for row in tried]
        best = next(row["setting"] for row in tried if row["chosen"] == "yes")
        made.append([bar(name), str(len(tried)), *(f"{f(parts):.3f}" for f in (min, np.median, max)), best])
    return markdown(["detector", "tried", "worst", "median", "best", "chosen"], made)


def tables(held: str) -> dict[str, str]:
    """Of docs/data/alarms.csv and its neighbours, or with "-held" of the held plants'."""
    rows, made = load(DATA / f"alarms{held}.csv"), {}
    for name, column, digits in (
        *(("events", "events_1", 2), ("few-false", "events_01", 2)),
        *(("rows", "rows_1", 2), ("delay", "delay_1", 1)),
    ):
        made[f"alarms{held}-{name}"] = by_kind(rows, column, digits)
    made[f"alarms{held}-summary"], made[f"alarms{held}-own"] = summary(rows), own(rows)
    alarms = load(DATA / f"alarms{held}-rates.csv")
    made[f"alarms{held}-rates"] = rates(alarms if held else [*known_states(alarms), *alarms])
    if not held:
        made["alarms-settings"] = settings(load(DATA / "alarms-settings.csv"))
    return made


def theirs(rows: Rows) -> dict[str, str]:
    """Recorded data: events and faulty rows at 1 % false rows; events and false rows with one's own threshold."""
    sets, made = names(rows, "kind"), {}
    for place, first, second in (
        ("alarms-theirs", "events_1", "rows_1"),
        ("alarms-theirs-own", "own_events", "own_false"),
    ):
        lines = []
        for name in names(rows, "detector"):
            parts = [[row for row in rows if (row["detector"], row["kind"]) == (name, kind)] for kind in sets]
            lines.append([bar(name), *(f"{mean(part, first):.2f} / {mean(part, second):.3f}" for part in parts)])
        made[place] = markdown(["detector", *sets], lines)
    return made


def place(made: dict[str, str]) -> None:
    """Print tables, and put those into the page that have a place there."""
    there = read(PAGE)
    placed = {name: table for name, table in made.items() if f"<!-- {name} -->" in there}
    if placed:
        publish(placed, PAGE)
    for name, table in made.items():
        print(f"{name}\n\n{table}")


def show(held: str = "") -> None:
    place(tables(held))
