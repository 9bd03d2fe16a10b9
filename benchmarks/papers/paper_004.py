"""Cawley and Talbot, efficient cross-validation of kernel Fisher discriminants (ESANN 2003), reproduced.

    python -m benchmarks.papers.paper_004 [--trials 20] [--jobs N] [--results FILE] [-o docs/data/paper-004] [--quick]

Figure 1 (run time of direct and fast leave-one-out), figure 2 (error of the approximation), and what the paper leaves
open: the exact closed form, error rates, S folds, a fixed basis, LS-SVM and KRR, model selection, printed formulas.
Writes errors.csv, times.csv, selection.csv, errata.csv and the figures to the output folder, and the tables into the
page beside it (docs/paper-004.md), if there is one.  Finished tasks are kept in the results file: after an
interruption, the same command goes on.  Times are measured last, in one process and one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, here and in other processes
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import benchmarks.papers.paper_004_tasks as tasks
from benchmarks.kept import Kept
from benchmarks.papers.paper_004_page import FIGURES, TABLES
from benchmarks.tables import DATA, fill, page_of, progress_bar, read, save, write
from pykernel.errors import UserError
from pykernel.training import closed_form

TRIALS = 20
SIZES = (10, 20, 30, 50, 70, 100, 150, 200, 300, 500)
SETTINGS: dict[float, tuple[float, ...]] = {0.5: (0.01, 0.1, 1.0), 0.1: (1.0,), 2.0: (1.0,)}
"""Ridges for each gamma.  The paper gives neither."""
FOLDS, FOLD_SIZES = (2, 5, 10), (50, 100, 200)
FOLD_SETTINGS = ((0.5, 0.01), (0.5, 1.0), (0.1, 1.0))
BASIS, BASIS_SIZE = 20, 100
RIDGE_SIZE, RIDGE_FOLDS = 100, (100, 10)
RIDGE_SETTINGS = ((0.5, 0.01), (0.5, 1.0), (0.1, 1.0))
SELECTION_SIZES, SELECTION_TRIALS = (30, 100, 300), 100


@dataclass(frozen=True)
class Extent:
    """How much is run."""

    trials: int = TRIALS
    sizes: tuple[int, ...] = SIZES
    timed: tuple[int, ...] = SIZES
    fold_sizes: tuple[int, ...] = FOLD_SIZES
    selection_sizes: tuple[int, ...] = SELECTION_SIZES
    selection_trials: int = SELECTION_TRIALS


QUICK = Extent(4, (10, 30, 50, 100), (10, 30), (50,), (30,), 4)


@dataclass(frozen=True)
class Row:
    """One line of the errors: what was run, and in which task's result, at which position, each trial is."""

    experiment: str
    case: str
    gamma: float
    ridge: float
    l: int
    at: int = 0
    tasks: list[dict[str, Any]] = field(default_factory=list, compare=False)


def plan_errors(extent: Extent) -> Iterator[Row]:
    def row(
        experiment: str, case: str, gamma: float, ridge: float, l: int, task: Mapping[str, Any], at: int = 0
    ) -> Row:
        trials = [{"trial": trial, "l": l, "gamma": gamma, **task} for trial in range(extent.trials)]
        return Row(experiment, case, gamma, ridge, l, at, trials)

    task: dict[str, Any]

    for gamma, ridges in SETTINGS.items():
        for at, ridge in enumerate(ridges):
            for l in extent.sizes:
                task = {"kind": "leave_one_out", "ridges": list(ridges)}
                yield row("leave-one-out", "", gamma, ridge, l, task, at)
    for folds in FOLDS:
        for gamma, ridge in FOLD_SETTINGS:
            for l in extent.fold_sizes:
                yield row("folds", f"{folds}", gamma, ridge, l, {"kind": "s_fold", "ridge": ridge, "folds": folds})
    for basis in tasks.BASES:
        for gamma, ridge in FOLD_SETTINGS:
            task = {"kind": "fixed_basis", "ridge": ridge, "p": BASIS, "basis": basis}
            yield row("fixed basis", basis, gamma, ridge, BASIS_SIZE, task)
    for model in ("ls-svm", "krr"):
        for folds in RIDGE_FOLDS:
            for gamma, ridge in RIDGE_SETTINGS:
                task = {"kind": "ridge_model", "model": model, "ridge": ridge, "folds": folds}
                name = "leave-one-out" if folds == RIDGE_SIZE else f"{folds} folds"
                yield row(model, name, gamma, ridge, RIDGE_SIZE, task)


# --------------------------------------------------------------------------------------------------------- results


def number(value: float) -> str:
    return f"{value:.4g}"


def error_line(row: Row, found: Sequence[Mapping[str, float]]) -> dict[str, str]:
    runs = {key: np.array([run[key] for run in found]) for key in found[0]}
    e = runs["e"]
    rate = {key.removeprefix("wrong_"): values / row.l for key, values in runs.items() if key.startswith("wrong_")}
    gap, recoded_gap = (np.abs(rate["kept"] - rate[truth]) for truth in ("retrained", "recoded"))
    same = (rate["exact"] == rate["retrained"]) & (rate["exact_recoded"] == rate["recoded"])
    return {
        "experiment": row.experiment,
        "case": row.case,
        "gamma": f"{row.gamma:g}",
        "ridge": f"{row.ridge:g}",
        "l": f"{row.l}",
        "trials": f"{len(e)}",
        "e_mean": number(e.mean()),
        "e_std": number(e.std(ddof=1)),
        "e_low": number(np.quantile(e, 0.25)),
        "e_median": number(np.median(e)),
        "e_high": number(np.quantile(e, 0.75)),
        "e_max": number(e.max()),
        "e_of_0": repr(float(e[0])),
        "e_recoded_mean": number(runs["e_recoded"].mean()),
        "exact_max": number(runs["exact"].max()),
        "exact_recoded_max": number(runs["exact_recoded"].max()),
        "formula_max": number(runs["formula"].max()) if "formula" in runs else "",
        "rate_kept": number(rate["kept"].mean()),
        "rate_retrained": number(rate["retrained"].mean()),
        "rate_recoded": number(rate["recoded"].mean()),
        "gap_mean": number(gap.mean()),
        "gap_max": number(gap.max()),
        "recoded_gap_mean": number(recoded_gap.mean()),
        "recoded_gap_max": number(recoded_gap.max()),
        "exact_rate_differs": f"{int((~same).sum())}",
    }


def selection_lines(l: int, found: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for by in ("rate", "press"):
        for name in ("kept", "exact"):
            chosen = [run[f"{name}, {by}"] for run in found]
            exact = [run[f"exact, {by}"] for run in found]
            test, promised = (np.array([cell[key] for cell in chosen]) for key in ("test", "promised"))
            more = test - np.array([cell["test"] for cell in exact])
            yield {
                "l": f"{l}",
                "by": by,
                "estimate": name,
                "trials": f"{len(found)}",
                "test_mean": number(test.mean()),
                "test_std": number(test.std(ddof=1)),
                "more_than_exact": number(more.mean()),
                "more_error": number(more.std(ddof=1) / np.sqrt(len(more))),
                "promised_mean": number(promised.mean()),
                "best_mean": number(np.mean([run["best"] for run in found])),
                "as_exact": f"{sum(a == b for a, b in zip(chosen, exact, strict=True))}",
                "ridge_median": number(float(np.median([cell["ridge"] for cell in chosen]))),
            }


def time_lines(l: int, found: Sequence[Mapping[str, float]]) -> Iterator[dict[str, str]]:
    """Over the trials; ratios are of the same trial."""
    for name in tasks.METHODS:
        taken, reference = (np.array([run[key] for run in found]) for key in (name, tasks.METHODS[0]))
        yield {
            "method": name,
            "l": f"{l}",
            "trials": f"{len(found)}",
            "mean_ms": number(1e3 * taken.mean()),
            "median_ms": number(1e3 * np.median(taken)),
            "low_ms": number(1e3 * np.quantile(taken, 0.25)),
            "high_ms": number(1e3 * np.quantile(taken, 0.75)),
            "min_ms": number(1e3 * taken.min()),
            "direct_to_this": number(np.median(reference / taken)),
        }


def errata_lines(found: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, str]]:
    for name, values in found.items():
        for key, value in values.items():
            yield {"entry": name, "what": key, "value": repr(value)}


def context(*modules: Any) -> str:
    """What results depend on beside the tasks: the source of the experiments and of the closed forms they use."""
    sources = (Path(module.__file__).read_bytes().replace(b"\r\n", b"\n") for module in (tasks, *modules))
    return hashlib.sha256(b"".join(sources)).hexdigest()


# --------------------------------------------------------------------------------------------------------- command


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, help="independent data sets (20, as in the paper)")
    parser.add_argument("--jobs", type=int, help="processes, of all but the times; as many as cores if not given")
    parser.add_argument("--results", type=Path, help="file of finished tasks (OUTPUT/tasks.jsonl)")
    parser.add_argument("-o", "--output", type=Path, help="folder for CSV and figures (docs/data/paper-004)")
    parser.add_argument("--quick", action="store_true", help="small, in seconds; needs -o")
    given = parser.parse_args(words)
    if given.quick and given.output is None:
        parser.error("--quick needs -o FOLDER, so that the full results stay")
    if given.trials is not None and given.trials < 2:
        parser.error("trials must be 2 or more")
    given.output = given.output or DATA / "paper-004"
    given.extent = QUICK if given.quick else Extent()
    if given.trials:
        given.extent = Extent(**{**vars(given.extent), "trials": given.trials})
    return given


def compute(given: argparse.Namespace) -> dict[str, list[dict[str, str]]]:
    """Run what has not been run; the rows of each CSV file."""
    extent: Extent = given.extent
    rows = list(plan_errors(extent))
    trials = range(extent.trials)
    choices = {
        l: [{"kind": "selection", "l": l, "trial": trial} for trial in range(extent.selection_trials)]
        for l in extent.selection_sizes
    }
    timings = {l: [{"kind": "times", "l": l, "trial": trial} for trial in trials] for l in extent.timed}
    # the longest first, so that no process waits long for the last one
    planned = sorted((task for row in rows for task in row.tasks), key=lambda task: -task["l"])
    alone = [task for task in planned if task["kind"] == "leave_one_out"]
    others = [task for task in planned if task["kind"] != "leave_one_out"]
    others += [task for of_size in choices.values() for task in of_size]
    start = time.perf_counter()
    path = given.results or given.output / "tasks.jsonl"
    results: dict[int, Any] = {}
    computed = 0

    def run(title: str, todo: Sequence[Mapping[str, Any]], jobs: int | None, *modules: Any) -> list[Any]:
        nonlocal computed
        options: dict[str, Any] = {"results": path, "context": context(*modules), "title": title}
        with Kept(tasks.run_task, jobs=jobs, **options) as workers:
            found = workers.run(todo)
            computed += workers.computed
        results.update(zip(map(id, todo), found, strict=True))
        return found

    # by far the longest, and nothing in it depends on the product
    retrained = run("retraining", alone, given.jobs)
    compared: dict[tuple[int, float, int], Any] = {}
    with progress_bar() as bar:
        for task, truth in bar.track(list(zip(alone, retrained, strict=True)), description="comparing"):
            key = (task["l"], task["gamma"], task["trial"])
            results[id(task)] = compared[key] = compared.get(key) or tasks.compare(task, truth)
    run("paper 004", others, given.jobs, closed_form)
    (formulas,) = run("errata", [{"kind": "errata", "trial": 0}], 1, closed_form)
    run("times", [task for of_size in timings.values() for task in of_size], 1, closed_form)
    print(f"{computed} tasks computed in {time.perf_counter() - start:.0f} s")

    def of(planned: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [results[id(task)] for task in planned]

    return {
        "errors": [error_line(row, [run[row.at] for run in of(row.tasks)]) for row in rows],
        "selection": [line for l, planned in choices.items() for line in selection_lines(l, of(planned))],
        "times": [line for l, planned in timings.items() for line in time_lines(l, of(planned))],
        "errata": list(errata_lines(formulas)),
    }


def main(words: Sequence[str] | None = None) -> None:
    given = arguments(words)
    try:
        given.output.mkdir(parents=True, exist_ok=True)
        with threadpool_limits(1):  # where NumPy was loaded before this module
            rows = compute(given)
        results = {name: save(given.output / f"{name}.csv", lines) for name, lines in rows.items()}
        for name, draw in FIGURES.items():
            draw(results, given.output / f"{name}.png")
        page = page_of(given.output)
        if page.exists():
            write(page, fill(read(page), TABLES, results))
    except UserError as error:
        print(f"paper_004: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
