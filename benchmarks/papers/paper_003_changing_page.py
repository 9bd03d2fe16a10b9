"""The figure, the tables and the phrases of docs/paper-003.md about functions that change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import benchmarks.papers.paper_003_figures as figures
from benchmarks.papers.paper_003_page import short
from benchmarks.tables import DATA, DOCS, markdown, publish

KINDS = ("truncation", "sparsity", "both")
LEVELS = (1.1, 1.5, 2.0, 3.0)
"""Wanted errors, in parts of the best error of all settings."""
CHANGING = ("sudden", "slow", "moving")
ADDED = ("decay", "age", "magnitude", "fading")
COLOURS = {"truncation": "#777777", "sparsity": "#0072B2", "both": "#D55E00"}

Rows = Sequence[Mapping[str, str]]
Results = Mapping[str, Rows]


def select(rows: Rows, **wanted: str) -> list[Mapping[str, str]]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def one(rows: Rows, **wanted: str) -> Mapping[str, str]:
    (row,) = select(rows, **wanted)
    return row


def best_error(effort: Rows, stream: str) -> float:
    return min(float(row["error"]) for row in effort if row["stream"] == stream)


def cheapest(effort: Rows, stream: str, kind: str, wanted: float) -> Mapping[str, str] | None:
    """The setting of a kind that takes the fewest instructions for an error of at most that."""
    there = [row for row in select(effort, stream=stream, kind=kind) if row["instructions"]]
    there = [row for row in there if float(row["error"]) <= wanted]
    return min(there, key=lambda row: float(row["instructions"])) if there else None


# --------------------------------------------------------------------------------------------------------------- figure


def front(effort: Rows, stream: str, kind: str) -> tuple[list[float], list[float]]:
    """Instructions and errors of the settings that no other of the kind beats in both."""
    points = sorted(
        (float(row["instructions"]), float(row["error"]))
        for row in select(effort, stream=stream, kind=kind)
        if row["instructions"]
    )
    kept: list[tuple[float, float]] = []
    for point in points:
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return [p[0] for p in kept], [p[1] for p in kept]


def figure(results: Results, path: Path) -> None:
    effort = results["effort"]
    drawn, axes = figures.canvas(12, 4, 1, 3)
    for axis, stream in zip(axes, CHANGING, strict=True):
        least = best_error(effort, stream)
        for kind in KINDS:
            rows = [row for row in select(effort, stream=stream, kind=kind) if row["instructions"]]
            x, y = ([float(row[key]) for row in rows] for key in ("instructions", "error"))
            axis.plot(x, y, ".", color=COLOURS[kind], markersize=3, alpha=0.3)
            instructions, errors = front(effort, stream, kind)
            axis.step(instructions, errors, where="post", color=COLOURS[kind], linewidth=1.6, label=kind)
        axis.set(xscale="log", yscale="log", title=stream, xlabel="instructions of an update")
        axis.set_ylim(0.9 * least, 10 * least)
    axes[0].set_ylabel("mean squared error")
    axes[0].legend(frameon=False)
    figures.save(drawn, path)


# --------------------------------------------------------------------------------------------------------------- tables


def table_errors(results: Results) -> str:
    """Of each technique: the error with nothing, and the best of what is added."""
    rows = results["errors"]
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    lines = []
    for technique in dict.fromkeys(row["technique"] for row in rows):
        line = [technique]
        for stream in streams:
            there = select(rows, stream=stream, technique=technique)
            plain = one(there, added="nothing")
            best = min((row for row in there if row["added"] != "nothing"), key=lambda row: float(row["error"]))
            shown = f"{short(best['error'])} ± {short(best['standard_error'])} {best['added']}"
            line += [f"{short(plain['error'])} ± {short(plain['standard_error'])}", shown]
        lines.append(line)
    heads = ["technique"]
    for stream in streams:
        heads += [f"{stream}: nothing", "best addition"]
    return markdown(heads, lines)


def told(row: Mapping[str, str]) -> str:
    """What is set, as a reader of the spec would say it."""
    setting = json.loads(row["setting"])
    parts = [] if "lambda_max" in setting or setting["n_max"] == 64 else [f"N {setting['n_max']}"]
    names = {
        "lambda_max": "λ_max",
        "truncate_age": "age",
        "truncate_below": "below",
        "ald_threshold": "ald",
        "rho": "ρ",
    }
    parts += [f"{name} {setting[key]:g}" for key, name in names.items() if setting.get(key)]
    technique = row["technique"].replace(", λ_max", "")
    return ", ".join([technique, *parts])


def thousands(row: Mapping[str, str]) -> str:
    return f"{float(row['instructions']):,.0f} ± {float(row['instructions_error']):,.0f}"


def table_effort(results: Results) -> str:
    rows, lines = results["chosen"], []
    for row in rows:
        if row["setting"]:
            error = f"{short(row['error'])} ± {short(row['standard_error'])}"
            ratio = f"{float(row['ratio']):.2f} ± {float(row['ratio_error']):.2f}" if row["ratio"] else ""
            shown = [error, row["vectors"], thousands(row), ratio, told(row)]
        else:
            shown = ["no setting", "", "", "", ""]
        lines.append([row["stream"], f"{float(row['level']):g} × = {short(row['wanted'])}", row["kind"], *shown])
    heads = ["stream", "wanted error", "kind", "error", "vectors", "instructions", "/ both", "setting"]
    return markdown(heads, lines)


TABLES: dict[str, Callable[[Results], str]] = {"changing errors": table_errors, "changing effort": table_effort}


def show(results: Results, output: Path) -> None:
    figure(results, output / "effort.png")
    if output == DATA / "paper-003-changing":
        publish({name: made(results) for name, made in TABLES.items()}, DOCS / "paper-003.md")


# ---------------------------------------------------------------------------------------------------- numbers of the text


def error_of(results: Results, stream: str, technique: str, added: str = "nothing") -> float:
    return float(one(results["errors"], stream=stream, technique=technique, added=added)["error"])
