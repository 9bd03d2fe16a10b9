"""What ``paper_000.py``, ``paper_002.py`` and ``basis_table.py`` have in common: running experiments, filling pages.

An experiment is a list of tasks and what makes a CSV file of their results.  Finished tasks are kept (``Kept``), so
an interrupted command goes on.  What is timed runs last, in one process and one thread.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from benchmarks import basis_data
from benchmarks.kept import Kept
from benchmarks.papers import basis_tasks
from benchmarks.tables import DATA, fill, load, page_of, read, save, write
from pykernel.errors import UserError
from pykernel.files import whole_file

Task = Mapping[str, Any]
Rows = Sequence[Mapping[str, str]]
Results = Mapping[str, Rows]

# Okabe and Ito's palette
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#777777", "#222222")


@dataclass(frozen=True)
class Experiment:
    """tasks: of one function, plain values.  lines: the rows of NAME.csv from (task, result) pairs, in their order.

    uses: modules whose source the results depend on, beside the tasks' own.  timed: runs alone.  What the selectors choose
    on a small problem (``basis_tasks.sample``) is part of the context always: results are kept while that is the same.
    """

    name: str
    tasks: Sequence[Task]
    lines: Callable[[Sequence[tuple[Task, Any]]], Iterator[dict[str, str]]]
    uses: tuple[ModuleType, ...] = ()
    timed: bool = False


def errata(task: Task) -> Experiment:
    """Formulas as they are printed, and as they should be."""

    def lines(pairs: Sequence[tuple[Task, Any]]) -> Iterator[dict[str, str]]:
        for _, found in pairs:
            for entry, values in found.items():
                for what, value in values.items():
                    yield {"entry": entry, "what": what, "value": repr(value)}

    return Experiment("errata", [task], lines)


@dataclass(frozen=True)
class Page:
    """A paper's page: how it is run and shown."""

    name: str
    plan: Callable[[bool, Sequence[str]], list[Experiment]]  # quick, sets that are there
    sets: Callable[[bool], Sequence[str]]
    run_task: Callable[[Task, Any], Any]
    tables: Mapping[str, Callable[[Results], str]]
    figures: Mapping[str, Callable[[Results, Path], None]]


def digest(modules: Iterable[ModuleType]) -> str:
    sources = (Path(str(module.__file__)).read_bytes().replace(b"\r\n", b"\n") for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()


def arguments(page: Page, doc: str | None, words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, help="processes, of all but the times; as many as cores if not given")
    parser.add_argument("--results", type=Path, help="file of finished tasks (OUTPUT/tasks.jsonl)")
    parser.add_argument("-o", "--output", type=Path, help=f"folder for CSV and figures (docs/data/{page.name})")
    parser.add_argument("--quick", action="store_true", help="small, in seconds, with bundled data; needs -o")
    parser.add_argument("--show", action="store_true", help="run nothing: figures and tables from the CSV files")
    given = parser.parse_args(words)
    if given.quick and given.output is None:
        parser.error("--quick needs -o FOLDER, so that the full results stay")
    given.output = given.output or DATA / page.name
    return given


def available(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Sets that are there, and why the others are not."""
    found: list[str] = []
    missing: list[str] = []
    for name in names:
        try:
            basis_data.load(name)
            found.append(name)
        except basis_data.Unavailable as error:
            missing.append(str(error))
    return found, missing


def compute(
    given: argparse.Namespace, page: Page, common: Sequence[ModuleType], names: Sequence[str]
) -> dict[str, Any]:
    """Run what has not been run; the rows of each CSV file."""
    experiments = page.plan(given.quick, names)
    path = given.results or given.output / "tasks.jsonl"
    picked = basis_tasks.sample()
    rows: dict[str, Any] = {}
    computed, start = 0, time.perf_counter()
    for experiment in sorted(experiments, key=lambda e: e.timed):
        options: dict[str, Any] = {"results": path, "context": [digest([*common, *experiment.uses]), picked]}
        jobs = 1 if experiment.timed else given.jobs
        with Kept(page.run_task, jobs=jobs, title=f"{page.name}: {experiment.name}", **options) as workers:
            found = workers.run(experiment.tasks)
            computed += workers.computed
        rows[experiment.name] = list(experiment.lines(list(zip(experiment.tasks, found, strict=True))))
    print(f"{computed} tasks computed in {time.perf_counter() - start:.0f} s")
    return {experiment.name: rows[experiment.name] for experiment in experiments}


def run(page: Page, common: Sequence[ModuleType], doc: str | None, words: Sequence[str] | None = None) -> None:
    """The command."""
    given = arguments(page, doc, words)
    try:
        given.output.mkdir(parents=True, exist_ok=True)
        missing: list[str] = []
        if given.show:
            results = {path.stem: load(path) for path in sorted(given.output.glob("*.csv"))}
        else:
            names, missing = available(page.sets(given.quick))
            with threadpool_limits(1):  # where NumPy was loaded before this module
                rows = compute(given, page, common, names)
            results = {name: save(given.output / f"{name}.csv", lines) for name, lines in rows.items() if lines}
        for name, draw in page.figures.items():
            draw(results, given.output / f"{name}.png")
        text = page_of(given.output)
        for sentence in missing:
            print(f"{page.name}: {sentence}", file=sys.stderr)
        if missing:
            print(f"{page.name}: figures show the other sets; {text.name} stays as it is", file=sys.stderr)
        elif text.exists():
            write(text, fill(read(text), page.tables, results))
    except UserError as error:
        print(f"{page.name}: {error}", file=sys.stderr)
        raise SystemExit(2) from None


# --------------------------------------------------------------------------------------------------------- numbers


def number(value: float) -> str:
    return f"{value:.4g}"


def statistics(values: Iterable[float]) -> dict[str, str]:
    """Mean, its standard error, least and largest, how many, and the first, by which a later run is compared."""
    found = np.array(list(values), float)
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    return {
        "runs": f"{len(found)}",
        "mean": number(found.mean()),
        "error": number(error),
        "least": number(found.min()),
        "most": number(found.max()),
        "first": repr(float(found[0])),
    }


def grouped(pairs: Iterable[tuple[Task, Any]]) -> dict[tuple[tuple[str, Any], ...], list[Any]]:
    """Results by task, whatever the seed."""
    found: dict[tuple[tuple[str, Any], ...], list[Any]] = {}
    for task, result in pairs:
        found.setdefault(tuple((key, value) for key, value in task.items() if key != "seed"), []).append(result)
    return found


def chosen(rows: Rows, **wanted: str) -> list[Mapping[str, str]]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def value(rows: Rows, key: str = "mean", **wanted: str) -> float:
    """Of the one row that is meant."""
    found = chosen(rows, **wanted)
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows are {wanted}")
    return float(found[0][key])


def curve(rows: Rows, x: str = "n", key: str = "mean", **wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of the rows that are meant, by the first."""
    points = sorted((float(row[x]), float(row[key])) for row in chosen(rows, **wanted))
    return np.array([p[0] for p in points]), np.array([p[1] for p in points])


# --------------------------------------------------------------------------------------------------------- figures


def canvas(width: float, height: float, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def keep(figure: Figure, path: Path) -> None:
    with whole_file(path) as file:
        figure.savefig(file, format="png")
