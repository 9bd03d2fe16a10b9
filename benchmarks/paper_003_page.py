"""The tables of docs/paper-003.md, from the results of ``paper_003.py``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import paper_003_figures as figures

Rows = Sequence[Mapping[str, str]]
SHOWN = (4, 6, 8, 10, 12, 14, 16, 20, 24)


def cell(row: Mapping[str, str] | None) -> str:
    """Mean and standard deviation, and how many realisations diverged."""
    if row is None:
        return ""
    diverged, realisations = int(row["diverged"]), int(row["realisations"])
    if 2 * diverged >= realisations:
        return "diverges"
    text = short(row["mse_mean"]) + " ± " + short(row["mse_std"])
    return f"{text}, {diverged} diverge" if diverged else text


def short(value: str | float) -> str:
    """Two digits: 4.9e-5."""
    mantissa, exponent = f"{float(value):.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)])


def by_budget(rows: Rows, shown: Sequence[int] = SHOWN, **wanted: str) -> str:
    chosen = figures.select(rows, **wanted)
    methods = list(dict.fromkeys(row["method"] for row in chosen))
    found = {(row["method"], int(row["n_max"])): row for row in chosen}
    return markdown(
        ["method", *map(str, shown)], [[method, *(cell(found.get((method, n))) for n in shown)] for method in methods]
    )


def before(rows: Rows, costs: Rows) -> str:
    return by_budget(rows, experiment="budget", settings="report", when="before")


def after(rows: Rows, costs: Rows) -> str:
    return by_budget(rows, experiment="budget", settings="report", when="after")


def defaults(rows: Rows, costs: Rows) -> str:
    return by_budget(rows, experiment="budget", settings="defaults", when="after")


def baselines(rows: Rows, costs: Rows) -> str:
    return by_budget(rows, (6, 8, 10, 12, 14, 16, 20), experiment="baselines")


def references(rows: Rows, costs: Rows) -> str:
    chosen = figures.select(rows, experiment="reference", method="none removed")
    return markdown(
        ["σ", *(row["parameter"].split()[1] for row in chosen)], [["error", *(cell(row) for row in chosen)]]
    )


def pairs(rows: Rows, costs: Rows) -> str:
    tables = []
    for settings in ("report", "defaults"):
        chosen = figures.select(rows, experiment="pairs", settings=settings, n_max="14")
        found = {tuple(row["method"].split(" + ")): row for row in chosen}
        metrics, ways = (list(dict.fromkeys(pair[i] for pair in found)) for i in (0, 1))

        def shown(row: Mapping[str, str] | None) -> str:
            if row is None:
                return ""
            text = short(row["mse_mean"]) if not int(row["diverged"]) else f"diverges {row['diverged']}"
            return text + (" (forced)" if row["refused_unless_forced"] else "")

        body = [[metric, *(shown(found.get((metric, way))) for way in ways)] for metric in metrics]
        tables.append(markdown([f"{settings}: metric", *ways], body))
    return "\n\n".join(tables)


def lambdas(rows: Rows, costs: Rows) -> str:
    body = []
    chosen = figures.select(rows, experiment="lambda_max")
    found = {(row["method"], *row["parameter"].split(", ")): row for row in chosen}
    for method, threshold in dict.fromkeys((method, threshold) for method, threshold, _ in found):
        line = [method, threshold]
        for candidates in ("all", "newest"):
            row = found.get((method, threshold, candidates))
            line += [f"{float(row['vectors']):.1f}", cell(row)] if row else ["", ""]
        body.append(line)
    header = ["technique", "lambda_max", "vectors, all", "error, all", "vectors, newest", "error, newest"]
    return markdown(header, body)


def truncation(rows: Rows, costs: Rows) -> str:
    chosen = figures.select(rows, experiment="truncation")
    return markdown(
        ["decay, truncation", "vectors", "error"],
        [[row["parameter"], f"{float(row['vectors']):.1f}", cell(row)] for row in chosen],
    )


def cost(rows: Rows, costs: Rows) -> str:
    names = list(dict.fromkeys(row["technique"] for row in costs))
    found = {(row["technique"], row["task"], int(row["n_max"])): row for row in costs}

    def shown(name: str, task: str, n: int) -> str:
        row = found.get((name, task, n))
        return f"{float(row['microseconds']):.2f} ({float(row['ratio_to_nt']):.1f})" if row else ""

    report, larger = (6, 12, 24), (32, 64, 128, 256)
    body = [
        [
            name,
            *(shown(name, "sinc", n) for n in report),
            *(shown(name, "noise", n) for n in larger),
            f"{figures.exponent(costs, name, 'noise', 64):.2f}",
        ]
        for name in names
    ]
    return markdown(["technique", *(f"N = {n}" for n in (*report, *larger)), "exponent"], body)


def removals(rows: Rows, costs: Rows) -> str:
    body = []
    for name, sigma in (("2", 0.9), ("3", 0.5)):
        for technique, result in figures.projections(sigma).items():
            beta = ", ".join(f"{b:.4f}" for b in result["beta"])
            numbers = [f"{result[key]:.3f}" for key in ("largest", "rms", "norm")]
            body.append([f"{name}, σ = {sigma}", technique, beta, *numbers])
    header = ["figure", "projection", "multipliers of -2, -1, 0, 2", "largest error", "r.m.s. at the five", "‖f − f'‖²"]
    return markdown(header, body)


TABLES: dict[str, Callable[[Rows, Rows], str]] = {
    "before": before,
    "after": after,
    "defaults": defaults,
    "baselines": baselines,
    "references": references,
    "pairs": pairs,
    "lambdas": lambdas,
    "truncation": truncation,
    "cost": cost,
    "removals": removals,
}


def fill(text: str, rows: Rows, costs: Rows) -> str:
    """The page with its tables written anew: what is between ``<!-- table: NAME -->`` and ``<!-- end -->``."""

    def written(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]](rows, costs)}\n{match[3]}"

    return re.sub(r"(<!-- table: (\w+) -->)\n.*?(<!-- end -->)", written, text, flags=re.DOTALL)


def ratios(rows: Rows, over: str, under: str, **wanted: str) -> dict[int, float]:
    """By budget, a method's mean error in parts of another's."""
    n, a = figures.curve(rows, over, experiment="budget", **wanted)
    m, b = figures.curve(rows, under, experiment="budget", **wanted)
    assert np.array_equal(n, m)
    return {int(k): float(r) for k, r in zip(n, a / b, strict=True)}
