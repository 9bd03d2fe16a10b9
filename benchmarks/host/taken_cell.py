"""docs/model-selection.md: which of the cells that are within 1 % of the best is to be taken.

    python -m benchmarks.host.taken_cell [--trials 10] [-o docs/data]

On each data set l random rows are trained on, and width and ridge are searched on the grid of pykernel fit for float32.
Three cells are tested on other rows: that of the least error; of those within 1 % the one with the largest ridge (of these
the largest width), which pykernel takes; and the one with the largest width (of these the largest ridge).  Means over
trials, medians of what has a long tail.

error: error rate, or of numbers the mean squared error in parts of the labels' variance.  miss: of numbers, the largest
error of one row, in standard deviations of the labels.  moved: the largest prediction at 100 rows of which one input, drawn,
was multiplied by 4.  float32: the largest error of predictions whose kernel values, weights and sums are in float32.
Writes taken-cell.csv and the page's table.  Some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)

from benchmarks.tables import DATA, DOCS, Rows, markdown, place, progress_bar, read, save, write
from pykernel.bases.gram import MercerKernel
from pykernel.training.closed_form import Model, problem
from pykernel.training.selection import Selection, _alike, default_ridges, select
from pykernel.training.targets import Targets

PAGE = DOCS / "model-selection.md"
TRIALS = 10
TESTED, MOVED = 800, 100
LEAST_RIDGE = 1e-6
"""Of ls-svm and krr in float32, in parts of the trace, as pykernel fit tries them."""
CELLS = ("least", "ridge", "width")

Labelled = tuple[np.ndarray, np.ndarray]
Drawn = Callable[[np.random.Generator, int], Labelled]


def table(load: Callable[..., Labelled]) -> Drawn:
    return lambda rng, rows: load(return_X_y=True)


def friedman(make: Callable[..., Labelled], noise: float) -> Drawn:
    return lambda rng, rows: make(n_samples=rows, noise=noise, random_state=int(rng.integers(2**31)))


def houses(rng: np.random.Generator, rows: int) -> Labelled:
    """Prices like those of California: skewed inputs, a place with a peak, and labels that are cut at 5."""
    where, income = rng.uniform(0, 1, (rows, 2)), rng.lognormal(1.2, 0.45, rows)
    age, rooms, people = rng.uniform(1, 52, rows), rng.lognormal(1.6, 0.35, rows), rng.lognormal(1.0, 0.3, rows)
    peak = 1.5 * np.exp(-8 * np.square(where - [0.3, 0.2]).sum(axis=1))
    y = 0.45 * income + peak + 0.01 * age - 0.2 * np.log(people) + 0.35 * rng.normal(size=rows)
    return np.column_stack([where, income, age, rooms, people]), np.minimum(y, 5.0)


def skewed(rng: np.random.Generator, rows: int) -> Labelled:
    """Log-normal inputs: some rows are far from all others."""
    x = rng.lognormal(0, 0.8, (rows, 5))
    y = np.log(x).sum(axis=1) + np.sin(3 * np.log(x[:, 0])) + 0.2 * rng.normal(size=rows)
    return x, y


def echoes(rng: np.random.Generator, rows: int) -> Labelled:
    """Two classes of spectra of 60 bands, like sonar's: a bump that lies a little higher in one class, and noise."""
    y, bands = rng.integers(0, 2, rows), np.linspace(0, 1, 60)
    centre, wide = rng.normal(0.45, 0.12, rows) + 0.08 * y, rng.uniform(0.08, 0.25, rows)
    x = np.exp(-np.square(bands - centre[:, None]) / (2 * wide[:, None] ** 2))
    return x + 0.02 * rng.normal(size=x.shape).cumsum(axis=1) + 0.12 * rng.normal(size=x.shape), y


PROBLEMS: tuple[tuple[str, Model, int, Drawn], ...] = (
    ("diabetes", "ls-svm", 200, table(load_diabetes)),
    ("Friedman 1", "ls-svm", 150, friedman(make_friedman1, 1.0)),
    ("Friedman 2", "ls-svm", 150, friedman(make_friedman2, 50.0)),
    ("Friedman 3", "ls-svm", 150, friedman(make_friedman3, 0.1)),
    ("houses", "ls-svm", 200, houses),
    ("skewed", "ls-svm", 200, skewed),
    ("skewed", "krr", 200, skewed),
    ("wine, 3 classes", "kfd", 60, table(load_wine)),
    ("breast cancer, 2 classes", "kfd", 150, table(load_breast_cancer)),
    ("breast cancer, 2 classes", "ls-svm", 150, table(load_breast_cancer)),
    ("echoes, 2 classes", "kfd", 120, echoes),
    ("digits, 10 classes", "kfd", 200, table(load_digits)),
)


def cells(found: Selection) -> dict[str, tuple[int, int]]:
    """The cell of each rule."""
    alike = np.argwhere(_alike(found.by, found.error, found.press)).tolist()
    i, j = max(alike)
    return {"least": found.best, "ridge": found.taken, "width": (i, j)}


def trial(model: Model, l: int, draw: Drawn, seed: int) -> dict[str, list[float]]:
    rng = np.random.default_rng([seed, l])
    x, y = draw(rng, l + TESTED)
    order = rng.permutation(len(x))
    x, y, classes = x[order], y[order], y.dtype.kind == "i"
    deviation = x[:l].std(axis=0)
    x = (x - x[:l].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    count, coding = int(y.max()) + 1 if classes else 0, "counts" if model == "kfd" else "signs"
    if not classes:
        y = (y - y[:l].mean()) / y[:l].std()
    targets = Targets.of_classes(y[:l], count, coding) if classes else Targets.of_values(y[:l])
    ridges = [
        r
        for r in default_ridges(model, MercerKernel("gaussian"), x[:l])
        if model == "kfd" or r >= 0.99 * LEAST_RIDGE * l
    ]
    found = select(model, x[:l], targets, "gaussian", None, ridges)
    others, truth = x[l : l + TESTED], y[l : l + TESTED]
    moved = others[:MOVED].copy()
    moved[np.arange(len(moved)), rng.integers(0, x.shape[1], len(moved))] *= 4
    figures = {}
    for rule, (i, j) in cells(found).items():
        kernel = MercerKernel("gaussian").with_width(float(found.widths[i]))
        solution = problem(model, kernel.gram(x[:l], x[:l]), targets).solve(float(found.ridges[j]))
        values = kernel.gram(others, x[:l])
        predicted = values @ solution.alpha + solution.bias
        small = [part.astype(np.float32) for part in (values, solution.alpha, solution.bias)]
        error, miss = 0.0, np.nan
        if classes:
            error = float(np.mean(targets.classify(predicted) != truth))
        else:
            squares = np.square(predicted[:, 0] - truth)
            error, miss = float(squares.mean()), float(np.sqrt(squares.max()))
        far = kernel.gram(moved, x[:l]) @ solution.alpha + solution.bias
        rounding = np.abs(small[0] @ small[1] + small[2] - predicted).max()
        figures[rule] = [error, miss, float(np.abs(far).max()), float(rounding)]
    return figures


def measure(trials: int) -> list[dict[str, Any]]:
    rows = []
    with progress_bar() as progress:
        bar = progress.add_task("trials", total=len(PROBLEMS) * trials)
        for name, model, l, draw in PROBLEMS:
            found = []
            for seed in range(trials):
                found.append(trial(model, l, draw, seed))
                progress.advance(bar)
            for rule in CELLS:
                each, least = (np.array([figures[of] for figures in found]) for of in (rule, "least"))
                rows.append(
                    {
                        "data": name,
                        "model": model,
                        "l": l,
                        "cell": rule,
                        "trials": trials,
                        "error": f"{each[:, 0].mean():.4f}",
                        "better": int((each[:, 0] < least[:, 0]).sum()),
                        "worse": int((each[:, 0] > least[:, 0]).sum()),
                        "miss": f"{np.median(each[:, 1]):.3f}",
                        "moved": f"{np.median(each[:, 2]):.3f}",
                        "float32": f"{np.median(each[:, 3]):.2g}",
                    }
                )
                print(*rows[-1].values(), sep="\t", flush=True)
    return rows


def tables(rows: Rows) -> dict[str, str]:
    """For docs/model-selection.md."""
    heads = ["data", "model", "l", "error: least", "ridge", "width", "a moved row: least", "ridge", "width"]
    heads += ["float32: least", "ridge", "width"]
    lines = []
    for at in range(0, len(rows), len(CELLS)):
        of = rows[at : at + len(CELLS)]
        errors = [f"{100 * float(row['error']):.1f} %" for row in of]
        lines.append(
            [of[0]["data"], of[0]["model"], of[0]["l"], *errors]
            + [f"{float(row['moved']):.1f}" for row in of]
            + [f"{float(row['float32']):.0e}" for row in of]
        )
    return {"taken": markdown(heads, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    arguments = parser.parse_args()
    rows = save(arguments.output / "taken-cell.csv", measure(arguments.trials))
    if arguments.output == DATA:
        text = read(PAGE)
        for name, made in tables(rows).items():
            text = place(text, name, made)
        write(PAGE, text)


if __name__ == "__main__":
    main()
