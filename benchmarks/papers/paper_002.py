"""Smola and Schölkopf, sparse greedy matrix approximation for machine learning (ICML 2000), reproduced.

    python -m benchmarks.papers.paper_002 [--jobs N] [--results FILE] [-o docs/data/paper-002] [--quick] [--show]

Figure 1 (subset size), 3 and 5 (SGMA against PCA), 2 and 5 (risk and test error), 4 (digits); and what the paper says
beside them: the selection rules and views, the bound of the residuals, the preconditioner, the formulas.  Writes a CSV
file for each experiment and the figures to the output folder, and the tables into the page beside it
(docs/paper-002.md), if there is one.  Finished tasks are kept in the results file: after an interruption, the same
command goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, here and in other processes
os.environ.setdefault("MKL_NUM_THREADS", "1")

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import benchmarks.papers.basis_pages as pages
import benchmarks.papers.paper_002_tasks as tasks
from benchmarks.papers import basis_reference, basis_tasks, compared
from benchmarks.papers.basis_pages import Experiment, Task, number
from benchmarks.papers.paper_002_page import FIGURES, TABLES
from pykernel.training import reduced

WIDTH = 0.5
"""2 sigma^2 / D of sections 2.3 and 5.3."""
SETS = ("abalone", "boston", "digits")
KAPPA: tuple[int | None, ...] = (1, 2, 5, 10, 20, 50, 59, 100, 200, None)
AT = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200)
SEEDS = 5
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DIGIT_RUNS = 100
RISK: dict[str, dict[str, Any]] = {
    "boston": {"width": 10.0, "ridge": 0.01, "train": 350, "test": 156},
    "bikeshare": {"width": 0.5, "ridge": 0.1, "train": 3000, "test": 5645},
}
"""Boston: the paper's, 2 sigma^2 = 10 D and m Lambda = 0.01.  The others' are those of a grid with the least test error."""
RISK_AT = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200)
READ_WIDTHS = {"2 sigma^2 = 10 D": 10.0, "sigma^2 = 10 D": 20.0, "sigma = 10 D": 2 * 10.0**2 * 13}
READ_RIDGES = (1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 1.0)
GRID_WIDTHS = (0.5, 1.0, 2.0, 5.0)
RULE_AT = (10, 20, 50, 100)


def grouped(pairs: Sequence[tuple[Task, Any]], *keys: str) -> dict[tuple[Any, ...], list[Any]]:
    found: dict[tuple[Any, ...], list[Any]] = {}
    for task, result in pairs:
        found.setdefault(tuple(task[key] for key in keys), []).append(result)
    return found


# ------------------------------------------------------------------------------------------------------ experiments


def subsets(sets: Sequence[str], quick: bool) -> Experiment:
    """Figures 1 and 3: residuals by subset size, of uniform picks, and of the leading eigenvectors."""
    at, seeds = (AT[:5], 2) if quick else (AT, SEEDS)
    todo: list[Task] = []
    for name in sets:
        common = {"data": name, "width": WIDTH, "n": [n for n in at if name != "boston" or n <= 150]}
        todo.append({"kind": "limit", **common, "kappa": "limit"})
        for kappa in (1, 59, None) if quick else KAPPA:
            chosen: dict[str, Any] = {"method": "sgma", "options": {"candidates": kappa}}
            if kappa is None:
                chosen = {"method": "exhaustive", "options": {}}
            told = {"kappa": "all" if kappa is None else f"{kappa}", **chosen}
            todo += [
                {"kind": "select", **common, **told, "seed": seed}
                for seed in range((3 if name == "abalone" else seeds) if kappa else 1)
            ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        sizes = {task["data"]: task["n"] for task, _ in pairs}
        for (name, kappa), found in grouped(pairs, "data", "kappa").items():
            for at, n in enumerate(sizes[name]):
                values = [(each if kappa == "limit" else each["curve"])[at] for each in found]
                yield {"data": name, "kappa": kappa, "n": f"{n}", **pages.statistics(values)}

    return Experiment("subsets", todo, lines)


def smooth(sets: Sequence[str], quick: bool) -> Experiment:
    """How far SGMA is from PCA at other widths: residual at n, and vectors for one per cent and a thousandth."""
    at = list(range(1, 21) if quick else range(1, 201))
    todo: list[Task] = []
    for name in sets:
        for width in (0.5,) if quick else (0.5, 1.0, 2.0):
            common = {"data": name, "width": width, "n": at}
            todo.append({"kind": "limit", **common, "case": "PCA"})
            todo += [
                {"kind": "select", **common, "case": case, "method": method, "options": {}, "seed": seed}
                for case, method in (("SGMA", "sgma"), ("uniform", "uniform"))
                for seed in range(2)
            ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (name, width, case), found in grouped(pairs, "data", "width", "case").items():
            curves = [each if case == "PCA" else each["curve"] for each in found]
            mean = [sum(values) / len(values) for values in zip(*curves, strict=True)]
            row = {"data": name, "width": f"{width:g}", "case": case}
            for part in (0.1, 0.01, 0.001):
                row[f"vectors for {part:g}"] = f"{next((n for n, v in zip(at, mean, strict=True) if v <= part), '')}"
            for n in (10, 50, 100, 200):
                row[f"at {n}"] = number(mean[n - 1]) if n <= len(mean) else ""
            yield {**row, "first": repr(curves[0][9])}

    return Experiment("widths", todo, lines)


def risks(sets: Sequence[str], quick: bool) -> Experiment:
    todo: list[Task] = []
    for name, settings in RISK.items():
        if name in sets or (name == "bikeshare" and not quick):
            at = [n for n in RISK_AT if n < settings["train"]]
            seeds = 10 if name == "boston" else 3
            todo += [{"kind": "risk", "data": name, **settings, "n": at, "seed": seed} for seed in range(seeds)]
    if quick:
        small = {"width": 5.0, "ridge": 0.5, "train": 150, "test": 100, "n": [5, 20]}
        todo = [{"kind": "risk", "data": "diabetes", **small, "seed": seed} for seed in range(2)]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        sizes = {task["data"]: task["n"] for task, _ in pairs}
        for (name,), found in grouped(pairs, "data").items():
            for system in ("full", "pca", "sgma", "uniform"):
                for at, n in enumerate(["all"] if system == "full" else sizes[name]):
                    row = {"data": name, "system": system, "n": f"{n}"}
                    for key in ("risk", "error"):
                        values = pages.statistics(each[system][key][at] for each in found)
                        row |= {f"{key}_{what}": values[what] for what in ("mean", "error", "first")}
                        more = pages.statistics(each[system][key][at] / each["full"][key][0] for each in found)
                        row |= {f"{key}_to_full": more["mean"]}
                    has = "residual" in found[0][system]
                    row["residual"] = number(sum(e[system]["residual"][at] for e in found) / len(found)) if has else ""
                    yield row

    return Experiment("risk", todo, lines, (reduced,))


def readings(sets: Sequence[str], quick: bool) -> Experiment:
    """What "sigma / d = 10" and "Lambda m = 0.01" can mean: test error of the full model on Boston, for each reading."""
    widths = {**READ_WIDTHS, **{f"2 sigma^2 = {width:g} D": width for width in GRID_WIDTHS}}
    todo = [
        {"kind": "readings", "data": "boston", "reading": reading, "width": width, "train": 350, "test": 156}
        | {"ridges": list(READ_RIDGES), "seed": seed}
        for reading, width in widths.items()
        for seed in range(10)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (reading, width), found in grouped(pairs, "reading", "width").items():
            for at, ridge in enumerate(READ_RIDGES):
                told = {"reading": reading, "width": f"{width:g}", "ridge": f"{ridge:g}"}
                yield {**told, **pages.statistics(each[at] for each in found)}

    return Experiment("readings", todo if "boston" in sets and not quick else [], lines)


def rules(sets: Sequence[str], quick: bool) -> Experiment:
    at = (5, 10) if quick else RULE_AT
    wanted: list[tuple[str, int]] = [("digits", 300)] if quick else [("boston", 0), ("digits", 1000)]
    chosen = {name: tasks.RULES[name] for name in (("4.2", "4.3", "4.1", "uniform") if quick else tasks.RULES)}
    todo: list[Task] = []
    for name, rows in wanted:
        if name in sets:
            common = {"data": name, "rows": rows, "width": WIDTH, "n": list(at)}
            todo.append({"kind": "rule limit", **common, "rule": "limit"})
            for rule, how in chosen.items():
                seeds = 1 if how["method"] == "exhaustive" else 2 if quick else 10
                todo += [{"kind": "rules", **common, "rule": rule, "seed": seed} for seed in range(seeds)]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (name, rule), found in grouped(pairs, "data", "rule").items():
            for i, n in enumerate(at):
                columns = pages.statistics(each["column"][i] for each in found)
                told = {"data": name, "rule": rule, "n": f"{n}"}
                yield {**told, **pages.statistics(each["trace"][i] for each in found), "frobenius": columns["mean"]}

    return Experiment("rules", todo, lines)


def digits(sets: Sequence[str], quick: bool) -> Experiment:
    runs = 3 if quick else DIGIT_RUNS
    how = {"4.2": ("sgma", {}), "4.3": ("sgma", {"rule": "4.3"}), "uniform": ("uniform", {})}
    todo: list[Task] = [
        {"kind": "classes", "data": "digits", "rule": rule, "width": width, "method": method, "options": options}
        | {"n": [10], "first": 10, "seed": seed}
        for rule, (method, options) in how.items()
        for width in ((WIDTH,) if quick or rule == "uniform" else WIDTHS)
        for seed in range(runs)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (rule, width), found in grouped(pairs, "rule", "width").items():
            counts = [each["classes"] for each in found]
            nine = sum(count >= 9 for count in counts) / len(counts)
            yield {"rule": rule, "width": f"{width:g}", "nine": number(nine), **pages.statistics(counts)}

    return Experiment("digits", todo, lines)


def pictures(sets: Sequence[str], quick: bool) -> Experiment:
    """Figure 4: the first vectors of one run."""
    todo = [
        {"kind": "classes", "data": "digits", "rule": rule, "width": WIDTH, "method": "sgma", "options": {"rule": rule}}
        | {"n": [20], "first": 10, "seed": 0}
        for rule in ("4.2", "4.3")
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for task, found in pairs:
            for at, (index, label) in enumerate(zip(found["indices"], found["labels"], strict=True)):
                yield {"rule": task["rule"], "position": f"{at}", "row": f"{index}", "digit": f"{label}"}

    return Experiment("pictures", todo, lines)


def preconditioning(sets: Sequence[str], quick: bool) -> Experiment:
    name = "digits" if quick else "abalone"
    task: Mapping[str, Any] = {
        "kind": "conjugate",
        "data": name,
        "rows": 300 if quick else 3000,
        "width": 1.0,
        "ridges": [0.1] if quick else [0.1, 0.001],
        "methods": ["sgma", "rpcholesky", "uniform"],
        "n": [20, 50] if quick else [50, 100, 200, 400],
    }
    todo = [{**task, "seed": seed} for seed in range(2)] if name in sets else []

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        found = [result for _, result in pairs]
        for ridge in found[0] if found else ():
            for case in found[0][ridge]:
                method, n = case.split(", ")
                told = {"data": name, "l": f"{task['rows']}", "ridge": ridge, "method": method, "n": n}
                yield {**told, **pages.statistics(each[ridge][case] for each in found)}

    return Experiment("preconditioning", todo, lines, (reduced,))


def bounds(sets: Sequence[str], quick: bool) -> Experiment:
    todo = [
        {"kind": "bound", "data": name, "width": WIDTH, "n": [n], "method": "sgma", "options": {}, "points": points}
        | {"delta": 0.05, "seed": 0}
        for name in sets
        if name != "abalone"
        for n in ((10,) if quick else (20, 60, 150))
        for points in ((59,) if quick else (59, 200))
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for task, found in pairs:
            told = {"data": task["data"], "n": f"{task['n'][0]}", "points": f"{task['points']}"}
            flat = {key: found[key] for key in ("mean", "deviation", "enough")}
            for kind in ("hoeffding", "serfling", "half"):
                flat |= {f"{kind}_{key}": value for key, value in found[kind].items()}
            yield {**told, **{key: number(value) for key, value in flat.items()}}

    return Experiment("bounds", todo, lines)


def gains(sets: Sequence[str], quick: bool) -> Experiment:
    name = sets[0] if quick else "boston"
    todo = [{"kind": "growth", "data": name, "width": WIDTH, "steps": 3 if quick else 40, "seed": 0}]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for task, found in pairs:
            yield {"data": task["data"], **{key: number(value) for key, value in found.items()}}

    return Experiment("gains", todo if name in sets else [], lines)


def errata(sets: Sequence[str], quick: bool) -> Experiment:
    return pages.errata({"kind": "errata", "seed": 0})


def plan(quick: bool, sets: Sequence[str]) -> list[Experiment]:
    kinds = (subsets, smooth, risks, readings, rules, digits, pictures, preconditioning, bounds, gains, errata)
    return [experiment for experiment in (kind(sets, quick) for kind in kinds) if experiment.tasks]


PAGE = pages.Page("paper-002", plan, lambda quick: ("digits",) if quick else SETS, tasks.run_task, TABLES, FIGURES)
COMMON = (basis_reference, basis_tasks, compared, tasks)


def main(words: Sequence[str] | None = None) -> None:
    pages.run(PAGE, COMMON, __doc__, words)


if __name__ == "__main__":
    main()
