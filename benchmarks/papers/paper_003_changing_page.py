"""The figure, the tables and the phrases of docs/paper-003.md about functions that change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

import benchmarks.papers.paper_003_figures as figures
from benchmarks.papers.paper_003_page import claim, short
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

GRAM = ("klms", "mklms", "sup", "ls", "lsreg", "lsridge")
"""Techniques that keep the inverse of the Gram matrix."""


def error_of(results: Results, stream: str, technique: str, added: str = "nothing") -> float:
    return float(one(results["errors"], stream=stream, technique=technique, added=added)["error"])


def gains(results: Results, stream: str, techniques: Sequence[str], *added: str) -> list[float]:
    """Of each technique: the error with nothing in parts of the best with one of these."""
    return [
        error_of(results, stream, technique) / min(error_of(results, stream, technique, what) for what in added)
        for technique in techniques
    ]


def span(values: Iterable[float], digits: str = ".2f") -> str:
    found = list(values)
    return f"{min(found):{digits}} to {max(found):{digits}}"


def ratios(results: Results, kind: str, *streams: str) -> list[float]:
    """Instructions of a kind in parts of what both take, wherever both kinds reach the wanted error."""
    rows = [row for row in select(results["chosen"], kind=kind) if row["stream"] in (streams or CHANGING)]
    return [float(row["ratio"]) for row in rows if row["ratio"]]


def counts(effort: Rows) -> dict[str, int]:
    """How many settings of each kind were tried."""
    return {kind: len(select(effort, stream="slow", kind=kind)) for kind in KINDS}


def fact_settings(results: Results) -> str:
    tried = counts(results["effort"])
    return claim(
        len(set(tried.values())) == 1,
        f"{tried['both']} settings of each of three kinds: truncation, sparsity control, both",
    )


def fact_claim(results: Results) -> str:
    truncation = ratios(results, "truncation")
    stays = ratios(results, "sparsity", "sudden", "slow")
    moves = ratios(results, "sparsity", "moving")
    return claim(
        min(truncation) > 1 and min(stays) < 0.9 and max(stays) < 1.3 and max(moves) > 1.5,
        f"truncation alone takes {span(truncation, '.1f')} times the instructions; sparsity control alone "
        f"{span(stays, '.2f')} times where inputs stay, {span(moves, '.2f')} times where inputs move",
    )


def fact_uncertain(results: Results) -> str:
    """What is won is more than chance: each ratio against its standard error; and errors are what was wanted."""
    rows = [row for row in results["chosen"] if row["ratio"] and row["kind"] != "both"]
    surely = [row for row in rows if float(row["ratio"]) - 1 > 2 * float(row["ratio_error"])]
    late = {
        kind: max(
            float(r["error"]) / float(r["wanted"]) - 1 for r in select(results["chosen"], kind=kind) if r["setting"]
        )
        for kind in KINDS
    }
    return claim(
        late["both"] < 0.1,
        f"Settings that do both are cheaper by more than two standard errors in {len(surely)} of {len(rows)} comparisons. On the streams that "
        f"judge, their error is at most {100 * late['both']:.0f} % above the wanted one, that of sparsity control "
        f"{100 * late['sparsity']:.0f} %",
    )


def fact_only(results: Results) -> str:
    """The errors that one kind alone does not reach."""
    missing = {(row["stream"], row["level"], row["kind"]) for row in results["chosen"] if not row["setting"]}
    return claim(
        missing == {(stream, "1.1", "truncation") for stream in CHANGING},
        "No truncation alone comes within 1.1 times the best error",
    )


def own(effort: Rows, stream: str, level: float) -> float:
    """Without absorbing by a large ald_threshold: the cheaper of the two alone in parts of both, on the choosing streams."""
    rows = [row for row in effort if row["technique"] != "absorbing"]
    found = {kind: cheapest(rows, stream, kind, level * best_error(rows, stream)) for kind in KINDS}
    taken = {kind: float(row["instructions"]) if row else np.inf for kind, row in found.items()}
    return min(taken["truncation"], taken["sparsity"]) / taken["both"]


def fact_own(results: Results) -> str:
    parts = {stream: [own(results["effort"], stream, level) for level in LEVELS] for stream in CHANGING}
    moving = [part for part in parts["moving"] if np.isfinite(part)]
    return claim(
        min(moving) > 1.1 and min(parts["slow"]) < 1 and min(parts["sudden"]) < 1,
        f"the cheaper of the two alone takes {span(moving)} times the instructions of both where inputs move, "
        f"{span(parts['slow'])} times on the slow stream, {span(parts['sudden'])} times on the sudden one",
    )


def fact_stays(results: Results) -> str:
    sudden, slow = (
        gains(results, stream, GRAM, "decay", "age", "magnitude", "fading") for stream in ("sudden", "slow")
    )
    nt = [error_of(results, stream, "nt") / error_of(results, stream, "nt", "decay") for stream in ("sudden", "slow")]
    return claim(
        max(sudden + slow) < 1.1 and min(nt) > 1.5,
        f"the six techniques with a Gram matrix gain at most {max(sudden):.2f} times (sudden) and {max(slow):.2f} times (slow) from "
        f"the best addition, NT {nt[0]:.1f} and {nt[1]:.1f} times from decay",
    )


def fact_moves(results: Results) -> str:
    best = gains(results, "moving", GRAM, "age")
    decay = gains(results, "moving", GRAM, "decay")
    return claim(
        min(best) > 2,
        f"age makes the error of the six {span(best, '.1f')} times smaller, decay {span(decay, '.1f')} times",
    )


def fact_still(results: Results) -> str:
    costs = [1 / gain for gain in gains(results, "still", GRAM, "age")]
    return claim(
        max(costs) > 2, f"truncation by age, the best age of the six, costs {span(costs, '.1f')} times the error"
    )


def fact_simple(results: Results) -> str:
    """What is cheapest."""
    rows = [row for row in select(results["chosen"], kind="both") if row["setting"]]
    absorbing = [row for row in rows if row["technique"] == "absorbing"]
    most = max(float(row["instructions"]) for row in absorbing)
    return claim(
        len(absorbing) > len(rows) / 2,
        f"{len(absorbing)} of the {len(rows)} cheapest settings that do both are NT with a large `ald_threshold`: "
        f"at most {most:,.0f} instructions",
    )


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): made for name, made in list(globals().items()) if name.startswith("fact_")
}
