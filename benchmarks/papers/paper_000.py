"""Cawley and Talbot, efficient formation of a basis in a kernel induced feature space (ESANN 2002), reproduced.

    python -m benchmarks.papers.paper_000 [--jobs N] [--results FILE] [-o docs/data/paper-000] [--quick] [--show]

Figure 1 (run time and mean reconstruction error as the number of candidates rho, and of the rows v that score them,
varies), and what the paper says beside it: speed against FVS, cost against the number of rows, tau and epsilon, the 59.
Writes a CSV file for each experiment and the figures to the output folder, and the tables into the page beside it
(docs/paper-000.md), if there is one.  Finished tasks are kept in the results file: after an interruption, the same
command goes on.  Times are measured last, in one process and one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, here and in other processes
os.environ.setdefault("MKL_NUM_THREADS", "1")

from collections.abc import Iterator, Sequence
from typing import Any

import benchmarks.papers.basis_pages as pages
import benchmarks.papers.paper_000_tasks as tasks
from benchmarks.papers import basis_reference, basis_tasks, compared
from benchmarks.papers.basis_pages import Experiment, Task, number
from benchmarks.papers.paper_000_page import FIGURES, TABLES
from pykernel.bases import basis, candidates, gram, greedy, select, sgma

PRODUCT = (basis, candidates, greedy, select, sgma)
WIDTH = 0.5
"""2 sigma^2 / D.  The paper does not give a kernel; this is paper 002's, of the same sets."""
SETS = ("boston", "digits")
AT = (5, 10, 20, 30, 40, 50, 60, 80, 100)
RHO: tuple[int | None, ...] = (1, 5, 20, 59, 200, None)
V: tuple[int | None, ...] = (20, 59, 200, None)
TIMED_AT = (20, 40, 60, 80, 100)
ROWS = (500, 1000, 2000, 4000, 8645)
SWEPT = 60
TAUS = (0.5, 0.2, 0.1, 0.05)
EPSILONS = (0.1, 0.01, 1e-3, 1e-4)
SEEDS = 20


def shown(count: int | None) -> str:
    return "all" if count is None else f"{count}"


def cases(name: str, every: bool) -> Iterator[tuple[str, int | None, int | None, str, dict[str, Any], bool]]:
    """What is compared: name, rho, v, method, options; whether seeds matter."""
    for rho in RHO if every else (1, 59, None):
        options = {"candidates": rho, "points": None, "lazy": False}
        yield "EFVS", rho, None, "efvs", options, rho is not None
    for v in V[:-1] if every else (59,):
        yield "EFVS", 59, v, "efvs", {"candidates": 59, "points": v, "lazy": True}, True
    yield (
        "EFVS, R and T drawn alone",
        59,
        59,
        "efvs",
        {"candidates": 59, "points": 59, "lazy": True, "disjoint": False},
        True,
    )
    if name == "boston":
        yield "FVS", None, None, "fvs", {}, False
    yield "exhaustive", None, None, "exhaustive", {}, False
    yield "uniform", None, None, "uniform", {}, True


# ------------------------------------------------------------------------------------------------------ experiments


def residuals(sets: Sequence[str], quick: bool) -> Experiment:
    at, seeds = (AT[:3], 2) if quick else (AT, SEEDS)
    todo: list[Task] = []
    for name in sets:
        common = {"data": name, "width": WIDTH, "n": list(at)}
        todo.append({"kind": "limit", **common, "case": "limit", "rho": "", "v": ""})
        for case, rho, v, method, options, random in cases(name, not quick):
            told = {"case": case, "rho": shown(rho), "v": shown(v), "method": method, "options": options}
            todo += [{"kind": "select", **common, **told, "seed": seed} for seed in range(seeds if random else 1)]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for key, found in pages.grouped([({**t, "n": tuple(t["n"]), "options": ""}, r) for t, r in pairs]).items():
            task = dict(key)
            for at, n in enumerate(task["n"]):
                values = [(each if task["case"] == "limit" else each["curve"])[at] for each in found]
                told = {name: task[name] for name in ("data", "case", "rho", "v")}
                yield {**told, "n": f"{n}", **pages.statistics(values)}

    return Experiment("residuals", todo, lines)


def times(sets: Sequence[str], quick: bool) -> Experiment:
    """On Boston, as in the paper."""
    name = "diabetes" if quick else "boston"
    at = (5, 10) if quick else TIMED_AT
    runs = [("FVS, as defined", None, None, "fvs", {"form": "literal"}), ("FVS", None, None, "fvs", {})]
    for form, told in (("literal", "EFVS, literal"), ("gain", "EFVS")):
        for lazy in (False, True):
            text = f"{told}, lazy" if lazy else told
            for rho in (None, *RHO[-2::-1]) if not lazy else ():
                runs.append((text, rho, None, "efvs", {"form": form, "lazy": False, "candidates": rho, "points": None}))
            for v in (200, 59, 20):
                runs.append((text, 59, v, "efvs", {"form": form, "lazy": lazy, "candidates": 59, "points": v}))
    runs.append(("exhaustive", None, None, "exhaustive", {}))
    if quick:
        runs = [run for run in runs if run[1] in (59, None)]
    limits = {"runs": 2 if quick else 5, "seconds": 0.1 if quick else 3.0}
    todo = [
        {"kind": "steps", "data": name, "width": WIDTH, "n": list(at), "case": case, "rho": shown(rho), "v": shown(v)}
        | {"method": method, "options": options, **limits}
        for case, rho, v, method, options in runs
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for task, found in pairs:
            for n, seconds in zip(task["n"], found["seconds"], strict=True):
                told = {name: task[name] for name in ("data", "case", "rho", "v")}
                yield {**told, "n": f"{n}", "runs": f"{found['runs']}", "ms": number(1e3 * seconds)}

    return Experiment("times", todo if name in sets or quick else [], lines, (*PRODUCT, gram), timed=True)


def cost(sets: Sequence[str], quick: bool) -> Experiment:
    """Against the number of rows, of the demo's stream."""
    contenders: dict[str, tuple[str, dict[str, Any], int]] = {
        "EFVS, lazy": ("efvs", {"lazy": True}, ROWS[-1]),
        "EFVS, eager": ("efvs", {"lazy": False}, ROWS[-1]),
        "SGMA": ("sgma", {}, ROWS[-1]),
        "exhaustive": ("exhaustive", {}, 4000),
        "FVS": ("fvs", {}, 1000),
    }
    n = 5 if quick else SWEPT
    todo = [
        {"kind": "sweep", "data": "bikeshare", "rows": rows, "width": WIDTH, "n": n, "case": case, "method": method}
        | {"options": options, "runs": 3, "seconds": 0.1 if quick else 3.0}
        for case, (method, options, most) in contenders.items()
        for rows in (ROWS[:2] if quick else ROWS)
        if rows <= most
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for task, found in pairs:
            told = {"case": task["case"], "l": f"{task['rows']}", "n": f"{task['n']}"}
            yield {**told, "ms": number(1e3 * found["seconds"]), "evaluations": f"{found['evaluations']}"}

    return Experiment("cost", todo, lines, (*PRODUCT, gram), timed=True)


def stops(sets: Sequence[str], quick: bool) -> Experiment:
    """tau, in the lazy form by its estimate, and otherwise by the exact error."""
    todo = [
        {"kind": "stop", "data": name, "width": WIDTH, "n": [400], "method": "efvs", "tau": tau, "lazy": lazy}
        | {"options": {"tau": tau, "lazy": lazy}, "seed": seed}
        for name in sets
        for tau in (TAUS[:1] if quick else TAUS)
        for lazy in (True, False)
        for seed in range(2 if quick else SEEDS)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        found: dict[tuple[str, float, bool], list[Any]] = {}
        for task, result in pairs:
            found.setdefault((task["data"], task["tau"], task["lazy"]), []).append(result)
        for (name, tau, lazy), results in found.items():
            size = [each["size"] for each in results]
            told = {"data": name, "tau": f"{tau:g}", "form": "lazy" if lazy else "eager"}
            yield {**told, "n": number(sum(size) / len(size)), **pages.statistics(each["true"] for each in results)}

    return Experiment("stops", todo, lines)


def estimates(sets: Sequence[str], quick: bool) -> Experiment:
    """1 - J as estimated while selecting, against all rows."""
    todo = [
        {"kind": "estimates", "data": name, "width": WIDTH, "n": [n], "method": "efvs"}
        | {"options": {"lazy": True, "points": v}, "v": v, "seed": seed}
        for name in sets
        for n in ((10,) if quick else (20, 60, 100))
        for v in ((59,) if quick else (20, 59, 200))
        for seed in range(2 if quick else SEEDS)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        found: dict[tuple[str, int, int], list[Any]] = {}
        for task, result in pairs:
            found.setdefault((task["data"], task["n"][0], task["v"]), []).append(result)
        for (name, n, v), results in found.items():
            away = pages.statistics(each["estimate"] - each["true"] for each in results)
            true = sum(each["true"] for each in results) / len(results)
            spread = float(away["error"]) * len(results) ** 0.5
            yield {"data": name, "n": f"{n}", "v": f"{v}", "true": number(true), "deviation": number(spread), **away}

    return Experiment("estimates", todo, lines)


def eliminations(sets: Sequence[str], quick: bool) -> Experiment:
    at = (5, 10) if quick else (20, 40, 60, 80, 100)
    todo = [
        {"kind": "elimination", "data": name, "width": WIDTH, "n": [max(at)], "at": list(at), "method": "efvs"}
        | {"options": {"epsilon": epsilon, "lazy": False, "points": None}, "seed": seed}
        for name in (sets if quick else [name for name in sets if name == "boston"])
        for epsilon in (EPSILONS[:1] if quick else EPSILONS)
        for seed in range(2 if quick else 5)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        found: dict[tuple[str, float], list[Any]] = {}
        for task, result in pairs:
            found.setdefault((task["data"], task["options"]["epsilon"]), []).append(result)
        for (name, epsilon), results in found.items():
            worst = max(ratio for each in results for ratio in [*each["ratio"], 0.0])
            yield {
                "data": name,
                "epsilon": f"{epsilon:g}",
                "dropped": f"{max(count for each in results for count in [*each['dropped'], 0])}",
                "gain": number(worst),
                "size": f"{min(each['size'] for each in results)}",
                **pages.statistics(each["curve"][-1] for each in results),
            }

    return Experiment("eliminations", todo, lines)


def ranks(sets: Sequence[str], quick: bool) -> Experiment:
    todo = [
        {
            "kind": "ranks",
            "data": name,
            "width": WIDTH,
            "n": [n],
            "method": "efvs",
            "options": {},
            "draws": 59,
            "seed": seed,
        }
        for name in sets
        for n in ((10,) if quick else (1, 20, 60, 100))
        for seed in range(2 if quick else 5)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        found: dict[tuple[str, int], list[Any]] = {}
        for task, result in pairs:
            found.setdefault((task["data"], task["n"][0]), []).append(result)
        for (name, n), results in found.items():
            part = sum(each["part"] for each in results) / len(results)
            spread = sum(each["spread"] for each in results) / len(results)
            hits = pages.statistics(each["hit"] for each in results)
            yield {"data": name, "n": f"{n}", "part": number(part), "spread": number(spread), **hits}

    return Experiment("ranks", todo, lines)


FORMS: dict[str, dict[str, Any]] = {
    "FVS, as defined": {"method": "fvs", "options": {"form": "literal"}},
    "FVS": {"method": "fvs", "options": {}},
    "EFVS, literal": {"method": "efvs", "options": {"form": "literal", "lazy": False}},
    "EFVS, literal, lazy": {"method": "efvs", "options": {"form": "literal", "lazy": True}},
    "EFVS": {"method": "efvs", "options": {"lazy": False}},
    "EFVS, lazy": {"method": "efvs", "options": {"lazy": True}},
    "SGMA, rule 4.2": {"method": "sgma", "options": {}},
    "exhaustive": {"method": "exhaustive", "options": {}},
}


def same(sets: Sequence[str], quick: bool) -> Experiment:
    n, rows = (8, 60) if quick else (30, 200)
    todo = [
        {"kind": "same", "data": name, "rows": rows, "width": WIDTH, "n": n, "forms": FORMS}
        for name in (("diabetes",) if quick else (*sets, "diabetes", "breast_cancer"))
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for task, found in pairs:
            for form, equal in found.items():
                yield {
                    "data": task["data"],
                    "l": f"{task['rows']}",
                    "n": f"{task['n']}",
                    "form": form,
                    "equal": f"{equal}",
                }

    return Experiment("same", todo, lines)


def errata(sets: Sequence[str], quick: bool) -> Experiment:
    return pages.errata({"kind": "errata", "data": "diabetes", "width": WIDTH, "seed": 0})


def plan(quick: bool, sets: Sequence[str]) -> list[Experiment]:
    made = [kind(sets, quick) for kind in (residuals, times, cost, stops, estimates, eliminations, ranks, same, errata)]
    return [experiment for experiment in made if experiment.tasks]


PAGE = pages.Page("paper-000", plan, lambda quick: ("digits",) if quick else SETS, tasks.run_task, TABLES, FIGURES)
COMMON = (basis_reference, basis_tasks, compared, tasks)


def main(words: Sequence[str] | None = None) -> None:
    pages.run(PAGE, COMMON, __doc__, words)


if __name__ == "__main__":
    main()
