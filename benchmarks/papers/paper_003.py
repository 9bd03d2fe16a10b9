"""Section 3 of Mitchinson, Dodd and Harrison (2003), reproduced: figures 1 to 8, and the tables of docs/paper-003.md.

    python -m benchmarks.papers.paper_003 [--realisations 100] [--jobs N|ADDRESS] [--results FILE]
                                   [-o docs/data/paper-003] [--figures 1,4,5]

Everything is computed by the product's own models.  Writes results.csv, cost.csv and the figures to the output folder,
and the tables into the page beside it (docs/paper-003.md), if there is one.  Finished tasks are kept in the results
file: after an interruption, the same command goes on.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks.compare.tasks as streams
import benchmarks.papers.paper_003_tasks as tasks
from benchmarks import tables
from benchmarks.kept import Kept
from benchmarks.papers.paper_003_figures import FIGURES
from benchmarks.papers.paper_003_page import TABLES
from benchmarks.tables import DATA, page_of
from pykernel.dialect import sources_digest
from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.host.model import require_ieee
from pykernel.spec.model import make_spec

BUDGETS = tuple(range(4, 25))
SOME_BUDGETS = (4, 6, 8, 10, 12, 14, 16, 20, 24)
PAIR_BUDGET = 14
BASELINE_BUDGETS = (6, 8, 10, 12, 14, 16, 20)
COST_BUDGETS = (4, 6, 8, 12, 16, 20, 24)
GROWTH_BUDGETS = (32, 64, 128, 256)
BLOCK = 25
"""Realisations in one task."""

METRICS = ("nt", "at", "klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms", "afklms", "afmklms")
PROJECTIONS = ("none", "klms", "fklms", "ls", "lsridge")
METHODS: dict[str, dict[str, Any]] = {
    **{name: {"technique": name} for name in METRICS},
    "fklms, newest goes": {"technique": "fklms", "tie": "newest"},
    "fklms, oldest goes": {"technique": "fklms", "tie": "oldest"},
    "sup + ls": {"technique": "sup", "projection": "ls"},
    "mklms + none": {"technique": "mklms", "projection": "none"},
    "mklms + ls": {"technique": "mklms", "projection": "ls"},
    "mklms + fklms": {"technique": "mklms", "projection": "fklms"},
    "fmklms + klms": {"technique": "fmklms", "projection": "klms"},
    "fklms + klms": {"technique": "fklms", "projection": "klms"},
    "nt + klms": {"technique": "nt", "projection": "klms"},
}
FIGURES_SHOW = frozenset({"klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms", "afklms", "nt"})
"""Methods for which every budget is run."""
THRESHOLDS = {
    "klms": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    "mklms": (1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
    "ls": (1e-8, 1e-7, 1e-6, 1e-5, 1e-4),
    "fklms": (0.03, 0.06, 0.12, 0.25, 0.5),
    "fmklms": (1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
}
TRUNCATION: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "neither": ({}, {}),
    "rho 1e-3": ({"rho": 1e-3}, {}),
    "rho 1e-2": ({"rho": 1e-2}, {}),
    "rho 1e-3, truncate_below 1e-4": ({"rho": 1e-3}, {"truncate_below": 1e-4}),
    "rho 1e-3, truncate_below 1e-3": ({"rho": 1e-3}, {"truncate_below": 1e-3}),
    "truncate_below 1e-4": ({}, {"truncate_below": 1e-4}),
    "truncate_below 1e-3": ({}, {"truncate_below": 1e-3}),
    "truncate_below 1e-2": ({}, {"truncate_below": 1e-2}),
    "truncate_age 100": ({}, {"truncate_age": 100}),
    "truncate_age 300": ({}, {"truncate_age": 300}),
    "truncate_age 1000": ({}, {"truncate_age": 1000}),
}


@dataclass(frozen=True)
class Row:
    """One line of the results: what was run, and the tasks that make it up."""

    experiment: str
    method: str
    n_max: int
    settings: str = "report"  # report: float64, nothing absorbed; defaults: float32, the product's own
    when: str = "after"
    parameter: str = ""
    forced: str = ""
    tasks: list[dict[str, Any]] = field(default_factory=list, compare=False)


class Plan:
    """Rows to compute, and what the spec refuses."""

    def __init__(self, realisations: int) -> None:
        self.realisations = realisations
        self.rows: list[Row] = []
        self.refused: dict[tuple[str, str], str] = {}

    def add(
        self, row: Row, reduction: Mapping[str, Any], learning: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        options = {key: more.pop(key) for key in ("sigma", "eta") if key in more}
        reduction = dict(reduction, **({"n_max": row.n_max} if "n_max" not in reduction else {}))
        if row.when == "before":
            reduction["when"] = "before"
        content, reason = tasks.accepted(
            tasks.content_of(reduction, learning, exact=row.settings == "report", **options)
        )
        if content is None:
            self.refused.setdefault((row.experiment, row.method), reason)
            return
        blocks = [
            {"kind": "realise", "content": content, "first": i, "stop": min(i + BLOCK, self.realisations), **more}
            for i in range(0, self.realisations, BLOCK)
        ]
        self.rows.append(Row(**{**vars(row), "forced": reason, "tasks": blocks}))


def plan_accuracy(realisations: int) -> Plan:
    """Every row but the costs."""
    plan = Plan(realisations)
    for sigma in (0.35, 0.4, 0.45, 0.5, 0.55, 0.7, 0.9):
        plan.add(Row("reference", "none removed", 100, parameter=f"sigma {sigma}"), {"technique": "nt"}, sigma=sigma)
    for method in ("mklms", "fklms"):
        plan.add(Row("reference", method, 100, parameter=f"sigma {tasks.SIGMA}"), {"technique": method})
    for settings, when in (("report", "before"), ("report", "after"), ("defaults", "after")):
        for method, reduction in METHODS.items():
            for n in BUDGETS if method in FIGURES_SHOW else SOME_BUDGETS:
                plan.add(Row("budget", method, n, settings, when), reduction)
    for method, budgets in (("lsreg", BUDGETS), ("mklms + none", (24,))):
        for n in budgets:
            row = Row("gate", method, n, when="before", parameter="gate 1e-12")
            plan.add(row, {**METHODS[method], "ald_threshold": 1e-12})
    for settings in ("report", "defaults"):
        for metric in METRICS:
            for projection in PROJECTIONS:
                pair = {"technique": metric, "projection": projection}
                plan.add(Row("pairs", f"{metric} + {projection}", PAIR_BUDGET, settings), pair)
    for technique, thresholds in THRESHOLDS.items():
        for candidates in ("all", "newest"):
            for threshold in thresholds:
                row = Row("lambda_max", technique, 100, parameter=f"{threshold:g}, {candidates}")
                strategy = {"technique": technique, "lambda_max": threshold, "candidates": candidates}
                plan.add(row, strategy if candidates == "newest" else {**strategy, "removals": 16})
    for name, (learning, reduction) in TRUNCATION.items():
        plan.add(Row("truncation", "mklms", 14, parameter=name), {"technique": "mklms", **reduction}, learning)
    plan_baselines(plan)
    return plan


def plan_baselines(plan: Plan) -> None:
    for n in BASELINE_BUDGETS:
        for technique in ("mklms", "klms"):
            plan.add(Row("baselines", f"{technique}, eta 0.3", n), {"technique": technique}, eta=0.3)
        fixed = {"technique": "sup", "ridge": 1e-6, "ald_threshold": 2e-6}
        plan.add(Row("baselines", "fb-krls", n), fixed, {"rule": "fb-krls"}, eta=None)
        plan.add(
            Row("baselines", "krls-t", n),
            fixed,
            {"rule": "krls-t", "noise": 1e-4},
            eta=None,
        )
        for eta in (0.1, 0.5):
            row = Row("baselines", f"qklms, eta {eta}", n, parameter="quantisation bisected")
            bisected = {"threshold": ("learning", "quantisation"), "low": 0.01, "high": 2.0, "steps": 12}
            plan.add(row, {"n_max": n + 1}, {"rule": "qklms"}, eta=eta, **{**bisected, "kind": "search", "n_max": n})
        for passes in (10, 1):
            row = Row("baselines", "ald-krls" if passes == 10 else "ald-krls, 1 pass", n, parameter="gate bisected")
            bisected = {"threshold": ("reduction", "ald_threshold"), "low": 1e-11, "high": 0.999, "steps": 12}
            plan.add(
                row,
                {"n_max": n + 1},
                {"rule": "ald-krls"},
                eta=None,
                passes=passes,
                **{**bisected, "kind": "search", "n_max": n},
            )


def plan_cost() -> list[dict[str, Any]]:
    """Tasks that count all techniques' instructions, one for each budget: on the report's task, and on one that grows."""
    planned = []
    for n in (*COST_BUDGETS, *GROWTH_BUDGETS):
        grows = n in GROWTH_BUDGETS
        contents = {}
        for name in METRICS:
            # vectors apart, noise for labels and decaying multipliers: nearly every presentation reduces
            options = {"learning": {"rho": 0.1}, "eta": 0.5} if grows else {}
            content, _ = tasks.accepted(tasks.content_of({"technique": name, "n_max": n}, exact=False, **options))
            if content is not None:
                contents[name] = content
        planned.append(
            {
                "kind": "count",
                "contents": contents,
                "n_max": n,
                "reach": n * tasks.SIGMA if grows else 3.0,
                "labels": "noise" if grows else "sinc",
                "before": 4 * n + 200,
                "count": 50 if grows else 500,
            }
        )
    return planned


# --------------------------------------------------------------------------------------------------------- results


def number(value: float) -> str:
    return f"{value:.4g}"


def lines(plan: Plan, found: Sequence[Sequence[Mapping[str, list[float]]]]) -> Iterator[dict[str, str]]:
    """The results, a line for each row of the plan."""
    for row, blocks in zip(plan.rows, found, strict=True):
        runs = {key: np.concatenate([np.array(block[key], float) for block in blocks]) for key in blocks[0]}
        mse = runs["mse"]
        diverged = (runs["lost"] > 0) | ~(mse <= tasks.DIVERGED)
        kept = mse[~diverged] if not diverged.all() else np.array([np.nan])
        yield {
            "experiment": row.experiment,
            "method": row.method,
            "settings": row.settings,
            "when": row.when,
            "n_max": str(row.n_max),
            "parameter": row.parameter,
            "realisations": str(len(mse)),
            "diverged": str(int(diverged.sum())),
            "mse_mean": number(kept.mean()),
            "mse_std": number(kept.std(ddof=1) if len(kept) > 1 else np.nan),
            "mse_median": number(np.median(kept)),
            "mse_max": number(kept.max()),
            "mse_of_0": repr(float(mse[0])),
            "vectors": number(runs["vectors"].mean()),
            "multiplier_max": number(runs["largest"][~diverged].max(initial=0.0)),
            "newest_goes": number(runs["discarded"].mean()),
            "gap_min": number(np.median(runs["gap_min"])),
            "gap_median": number(np.median(runs["gap_median"])),
            "gap_max": number(np.median(runs["gap_max"])),
            "threshold": number(np.median(runs["threshold"])) if "threshold" in runs else "",
            "refused_unless_forced": row.forced,
        }


def cost_lines(planned: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Mean instructions of a presentation, and each technique's ratio to NT's."""
    for task, counts in zip(planned, found, strict=True):
        means = {name: float(np.mean(counted)) for name, counted in counts.items()}
        for name, mean in means.items():
            yield {
                "task": task["labels"],
                "n_max": str(task["n_max"]),
                "technique": name,
                "instructions": f"{mean:.0f}",
                "ratio_to_nt": number(mean / means["nt"]),
            }


def table(rows: Sequence[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())


def context() -> str:
    """What results depend on beside the tasks: the source of the models and of the experiments."""
    program = make_spec(tasks.content_of({"technique": "nt"})).program
    kernels = [entry.kernel for entry in program.entries]
    source = Path(tasks.__file__).read_bytes().replace(b"\r\n", b"\n")
    return sources_digest(kernels) + hashlib.sha256(source).hexdigest()


# --------------------------------------------------------------------------------------------------------- command


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realisations", type=int, default=100, help="independent data sets (100, as in the report)")
    parser.add_argument("--jobs", help="processes; as many as cores if not given")
    parser.add_argument("--results", type=Path, help="file of finished tasks (OUTPUT/tasks.jsonl)")
    parser.add_argument("-o", "--output", type=Path, default=DATA / "paper-003", help="folder for CSV and figures")
    parser.add_argument("--figures", help="only these, such as 1,4,5, and what they need; no tables")
    given = parser.parse_args(words)
    if given.realisations < 1:
        parser.error("realisations must be 1 or more")
    names = given.figures.split(",") if given.figures else list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    given.chosen = names
    return given


NEEDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "6": (("reference", "report", "after"), ("budget", "report", "before")),
    "8": (("reference", "report", "after"), ("budget", "report", "before"), ("gate", "report", "before")),
    "9": (("reference", "report", "after"), ("budget", "report", "after")),
    "10": (("reference", "report", "after"), ("budget", "report", "after"), ("budget", "defaults", "after")),
    "11": (("reference", "report", "after"), ("lambda_max", "report", "after")),
    "12": (("pairs", "report", "after"),),
    "13": (("reference", "report", "after"), ("baselines", "report", "after")),
}
"""Experiments that a figure draws; figure 5 draws the costs, and the others nothing of the results."""


class ByValue:
    """A function of paper_003_tasks that workers elsewhere get with its code: they cannot import this folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        import cloudpickle

        for module in (tasks, streams):
            cloudpickle.register_pickle_by_value(module)
        return cloudpickle.loads, (cloudpickle.dumps(self.function),)


def compute(given: argparse.Namespace) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Run what has not been run of what the chosen figures need; the results and the costs."""
    plan = plan_accuracy(given.realisations)
    if given.figures:
        wanted = {need for name in given.chosen for need in NEEDS.get(name, ())}
        plan.rows = [row for row in plan.rows if (row.experiment, row.settings, row.when) in wanted]
    costs = plan_cost() if "5" in given.chosen else []
    flat = [task for row in plan.rows for task in row.tasks]
    function = ByValue(tasks.run_task) if "://" in str(given.jobs) else tasks.run_task
    start = time.perf_counter()
    options: dict[str, Any] = {"results": given.results or given.output / "tasks.jsonl", "context": context()}
    with Kept(function, jobs=given.jobs, title="paper 003", **options) as workers:
        found, counts = workers.run(flat), workers.run(costs)
        computed = workers.computed
    for (experiment, method), reason in plan.refused.items():
        print(f"not run: {experiment}, {method}: {reason}")
    print(
        f"{len(plan.rows)} rows; {computed} of {len(flat) + len(costs)} tasks computed in {time.perf_counter() - start:.0f} s"
    )
    at = np.cumsum([0] + [len(row.tasks) for row in plan.rows])
    grouped = [found[a:b] for a, b in itertools.pairwise(at)]
    return list(lines(plan, grouped)), list(cost_lines(costs, counts))


def main(words: Sequence[str] | None = None) -> None:
    given = arguments(words)
    require_ieee()
    try:
        given.output.mkdir(parents=True, exist_ok=True)
        rows, costs = compute(given)
        for name in given.chosen:
            FIGURES[name](rows, costs, given.output)
        if not given.figures:
            write(given.output / "results.csv", table(rows))
            write(given.output / "cost.csv", table(costs))
            page = page_of(given.output)
            if page.exists():
                tables.write(page, tables.fill(tables.read(page), TABLES, rows, costs))
    except UserError as error:
        print(f"paper_003: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
