"""Sheikholeslami, Berberidis and Giannakis (2016): the bound for classification, the gradient, lambda and r, real streams.

    python -m benchmarks.papers.paper_001_more [--jobs N] [--results FILE] [-o docs/data/paper-001-more] [--quick] [--show]

classification.csv  the loss of the support vector machine on Khat and on K, predictions, and what bounds the differences
gradient.csv        |grad C_n(L_n)| of the cost over the n samples so far, along the iterations (propositions 2 and 3)
choice.csv          lambda and r chosen on the training part, against the choice with hindsight
streams.csv         what is left of each sample of real streams and of the simulated gearbox before it is learned, by budget

Writes these and the figures to the output folder, and the tables into docs/paper-001.md.  Finished tasks are kept: after an
interruption, the same command goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, here and in other processes
os.environ.setdefault("MKL_NUM_THREADS", "1")

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import benchmarks.papers.basis_pages as pages
import benchmarks.papers.paper_001_more_tasks as more
import benchmarks.papers.paper_001_tasks as tasks
from benchmarks.papers import basis_reference
from benchmarks.papers.basis_pages import Experiment, Task, number, statistics
from benchmarks.papers.paper_001_more_page import FIGURES, TABLES
from benchmarks.tables import DATA, DOCS, load, publish

SHRINKAGE = 0.1
WIDTHS = {"digits": 0.5, "breast_cancer": 1.0, "bikeshare": 0.5, "diabetes": 1.0}
"""2 sigma^2 / D, as in paper_001.py."""


def together(pairs: Sequence[tuple[Task, Any]], *keys: str) -> dict[tuple[Any, ...], list[Any]]:
    """Results by what tells cases apart."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for told, result in pairs:
        found.setdefault(tuple(told[key] for key in keys), []).append(result)
    return found


@lru_cache(maxsize=1)
def product() -> list[str]:
    """Part of every task: results are kept while the product computes the same."""
    return [tasks.sample(), tasks.batch_sample()]


def task(kind: str, **content: Any) -> Task:
    return {"kind": kind, "product": product(), **content}


# ---------------------------------------------------------------------------------------------------- classification

MAPS: dict[str, dict[str, Any]] = {
    "batch BKFE": {"method": "batch"},
    "OKFEB, exact": {"method": "online", "subspace": {}},
    "OKFEB, drop": {"method": "online", "subspace": {"budget": "drop"}},
}
PENALTIES = (0.1, 1.0, 10.0)


def classification(quick: bool) -> list[Experiment]:
    todo = [
        task("classify", data=name, rows=850, width=WIDTHS[name], r=r, B=100, c=c, case=case, **how, seed=seed)
        | {"shrinkage": SHRINKAGE}
        for name in (("breast_cancer",) if quick else ("digits", "breast_cancer"))
        for c in (PENALTIES[1:2] if quick else PENALTIES)
        for r in ((10,) if quick else (10, 20, 50))
        for case, how in MAPS.items()
        for seed in range(1 if quick else 5)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (name, c, r, case), found in together(pairs, "data", "c", "r", "case").items():
            told = {"data": name, "c": f"{c:g}", "r": f"{r}", "case": case}
            for key in found[0]:
                if key != "excess":
                    told[key] = number(sum(each[key] for each in found) / len(found))
            yield {**told, **statistics(each["excess"] for each in found)}

    return [Experiment("classification", todo, lines, uses=(more,))]


# ---------------------------------------------------------------------------------------------------------- gradient

WALKS: dict[str, tuple[str, dict[str, Any]]] = {
    "η 1": ("parametric", {"step": "decreasing", "eta": 1.0}),
    "η 8": ("parametric", {"step": "decreasing", "eta": 8.0}),
    "averaged": ("parametric", {"step": "averaged"}),
    "constant": ("parametric", {"step": "constant"}),
    "η 1, A": ("nonparametric", {"step": "decreasing", "eta": 1.0}),
    "η 8, A": ("nonparametric", {"step": "decreasing", "eta": 8.0}),
    "normalised, A": ("nonparametric", {"step": "normalised", "eta": 1.5}),
}
"""The steps of the propositions have η ≤ 1: one over the sum of what bounds the Hessians so far."""


def gradient(quick: bool) -> list[Experiment]:
    at = [20, 60, 200] if quick else [25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800]
    rows = 60 if quick else 300
    todo = [
        task("walk", data="digits", rows=rows, width=WIDTHS["digits"], r=8, case=case, update=update, at=at, seed=seed)
        | {"shrinkage": SHRINKAGE, "B": rows, "ridge": ridge}
        | {"subspace": {"update": update, **given, "window": 1 << 22 if ridge == "λ/n" else rows}}
        for case, (update, given) in WALKS.items()
        for ridge in ("λ/n", "fixed")
        for seed in range(1 if quick else 3)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (case, update, ridge), found in together(pairs, "case", "update", "ridge").items():
            for position, n in enumerate(at):
                told = {"case": case, "update": update, "ridge": ridge, "n": f"{n}"}
                for key in ("part", "scale", "excess"):
                    told[key] = number(sum(each[key][position] for each in found) / len(found))
                yield {**told, **statistics(each["gradient"][position] for each in found)}

    return [Experiment("gradient", todo, lines, uses=(more,))]


# ------------------------------------------------------------------------------------------------------------ choice

SHRINKAGES = (0.01, 0.03, 0.1, 0.3, 1.0)
RANKS = (5, 10, 20, 35, 50)
SETS = ("digits", "breast_cancer", "bikeshare", "diabetes")


def choice(quick: bool) -> list[Experiment]:
    todo = [
        task("choose", data=name, width=WIDTHS[name], rows={"bikeshare": 4000}.get(name, 0), B=100, seed=seed)
        | {
            "shrinkages": SHRINKAGES[1:3] if quick else SHRINKAGES,
            "ranks": RANKS[:2] if quick else RANKS,
            "subspace": {},
        }
        for name in (("diabetes",) if quick else SETS)
        for seed in range(1 if quick else 10)
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for (name,), found in together(pairs, "data").items():
            for way in found[0]["ways"]:
                told = {"data": name, "way": way}
                for key in ("shrinkage", "r"):
                    values = sorted(each["ways"][way][key] for each in found)
                    told[key] = number(values[len(values) // 2])
                cost = statistics(each["ways"][way]["error"] - each["ways"]["hindsight"]["error"] for each in found)
                told |= {"cost": cost["mean"], "cost error": cost["error"]}
                yield {**told, **statistics(each["ways"][way]["error"] for each in found)}

    return [Experiment("choice", todo, lines, uses=(more,))]


# ----------------------------------------------------------------------------------------------------------- streams

TRACKING: dict[str, dict[str, Any]] = {
    "frozen": {"frozen": True, "subspace": {}},
    "exact": {"subspace": {}},
    "exact, β 0.999": {"subspace": {"fading": 0.999}},
    "exact, β 0.99": {"subspace": {"fading": 0.99}},
    "exact, β 0.95": {"subspace": {"fading": 0.95}},
    "drop": {"subspace": {"budget": "drop"}},
    "rls, f 0.98, β 0.95": {"subspace": {"update": "rls", "forgetting": 0.98, "fading": 0.95}},
}
STREAMS = ("bikes", "bikes, a day", "water", "stocks", "gearbox")
BUDGETS = (12, 24, 48, 96)


def streams(quick: bool) -> list[Experiment]:
    todo = [
        task("track", stream=name, order=order, r=8, B=budget, case=case, **how, most=600 if quick else 0)
        | {"shrinkage": SHRINKAGE, "blocks": 4 if quick else 20}
        for name in (("bikes", "gearbox") if quick else STREAMS)
        for order in ("as it came", "shuffled")
        for budget in (BUDGETS[:1] if quick else BUDGETS)
        for case, how in TRACKING.items()
    ]

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        plain = {(told["stream"], told["order"], told["B"]): found for told, found in pairs if told["case"] == "exact"}
        for told, found in pairs:
            other = plain[told["stream"], told["order"], told["B"]]["blocks"]
            line = {key: f"{told[key]}" for key in ("stream", "order", "B", "case")}
            line |= {"rows": f"{found['rows']}", "limit": number(found["limit"])}
            off = statistics(a - b for a, b in zip(found["blocks"], other, strict=True))
            line |= {"over exact": off["mean"], "over exact error": off["error"]}
            yield {**line, **statistics(found["blocks"])}

    return [Experiment("streams", todo, lines, uses=(more,))]


KINDS = (classification, gradient, choice, streams)


def plan(quick: bool, sets: Sequence[str]) -> list[Experiment]:
    return [experiment for kind in KINDS for experiment in kind(quick)]


def sets_of(quick: bool) -> Sequence[str]:
    return SETS


PAGE = pages.Page("paper-001-more", plan, sets_of, more.run_task, {}, FIGURES)
COMMON = (basis_reference, tasks)
RESULTS = ("classification", "gradient", "choice", "streams")


def main(words: Sequence[str] | None = None) -> None:
    pages.run(PAGE, COMMON, __doc__, words)
    output = pages.arguments(PAGE, __doc__, words).output
    if output == DATA / PAGE.name:
        results = {name: load(output / f"{name}.csv") for name in RESULTS}
        publish({name: table(results) for name, table in TABLES.items()}, DOCS / "paper-001.md")


if __name__ == "__main__":
    main()
