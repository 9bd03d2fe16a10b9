"""docs/model-selection.md: what pykernel fit prints, and how far estimates of the best cell can be trusted.

    python -m benchmarks.host.model_selection [--trials 30] [-o docs]

The command is run on scikit-learn's breast cancer data.  Then, for several data sets, l random samples are trained on,
width and ridge are chosen from the default grid, and the chosen model is tested on all other samples; what
cross-validation says of the best cell, as it is and corrected (Tibshirani and Tibshirani 2009), is put beside that, in
means over trials.  Writes optimism.csv and the page's text blocks and tables.  Some minutes.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from benchmarks.tables import DATA, DOCS, Rows, load, markdown, place, progress_bar, read, save, write
from pykernel.bases.gram import MercerKernel
from pykernel.training.closed_form import Model, problem
from pykernel.training.selection import CrossValidation, select
from pykernel.training.targets import Targets, error_rate, press

PAGE = DOCS / "model-selection.md"
COMMAND = [
    "fit",
    "cancer.csv",
    "--label",
    "diagnosis",
    "--hold-out",
    "0.3",
    "--set",
    "training.model=kfd",
    "--output",
    "cancer.toml",
    "--report",
    "report.html",
]
TRIALS = 30
FOLDS: tuple[CrossValidation, ...] = ("deleted", 10)

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""x and y to train on, and to test on."""


def noise(rng: np.random.Generator, l: int) -> Drawn:
    """Labels that have nothing to do with the inputs: nothing is better than 50 %."""
    x, y = rng.normal(size=(l + 2000, 3)), np.arange(l + 2000) % 2
    return x[:l], rng.permutation(y[:l]), x[l:], rng.permutation(y[l:])


def split(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[[np.random.Generator, int], Drawn]:
    """l random samples, with inputs scaled by what they are, and the rest."""

    def draw(rng: np.random.Generator, l: int) -> Drawn:
        x, y = load(return_X_y=True)
        order = rng.permutation(len(x))
        scaler = StandardScaler().fit(x[order[:l]])
        x = scaler.transform(x)
        return x[order[:l]], y[order[:l]], x[order[l:]], y[order[l:]]

    return draw


PROBLEMS: tuple[tuple[str, Model, int, Callable[[np.random.Generator, int], Drawn]], ...] = (
    ("noise, 2 classes", "ls-svm", 60, noise),
    ("breast cancer, 2 classes", "kfd", 100, split(load_breast_cancer)),
    ("breast cancer, 2 classes", "ls-svm", 100, split(load_breast_cancer)),
    ("wine, 3 classes", "kfd", 50, split(load_wine)),
    ("digits, 10 classes", "kfd", 200, split(load_digits)),
    ("diabetes, a number", "ls-svm", 150, split(load_diabetes)),
    ("diabetes, a number", "krr", 150, split(load_diabetes)),
)


def trial(model: Model, drawn: Drawn, cv: CrossValidation, seed: int) -> tuple[float, float, float]:
    """Of the chosen model: the cross-validated estimate, the corrected one, and the error on the test samples.

    Error rates, or for numbers mean squared errors in parts of the variance of all labels.
    """
    x, y, others, truth = drawn
    classes = y.dtype.kind == "i"
    scale = 1.0 if classes else float(np.var(np.concatenate([y, truth])))
    count = int(max(y.max(), truth.max())) + 1 if classes else 0
    centre = 0.0 if classes else y.mean()  # krr has no bias
    coding = "counts" if model == "kfd" else "signs"
    targets = Targets.of_classes(y, count, coding) if classes else Targets.of_values(y - centre)
    found = select(model, x, targets, "gaussian", cv=cv, seed=seed)
    kernel = MercerKernel("gaussian").with_width(found.width)
    solution = problem(model, kernel.gram(x, x), targets).solve(found.ridge)
    predicted = kernel.gram(others, x) @ solution.alpha + solution.bias
    if classes:
        tested = error_rate(Targets.of_classes(truth, count, coding), predicted)
    else:
        tested = press(Targets.of_values(truth - centre), predicted)
    return found.value / scale, found.corrected / scale, tested / scale


def measure(trials: int) -> list[dict[str, Any]]:
    rows = []
    with progress_bar() as progress:
        bar = progress.add_task("trials", total=len(PROBLEMS) * len(FOLDS) * trials)
        for name, model, l, draw in PROBLEMS:
            for cv in FOLDS:
                found = []
                for seed in range(trials):
                    found.append(trial(model, draw(np.random.default_rng([seed, l]), l), cv, seed))
                    progress.advance(bar)
                each = np.array(found)
                mean, spread = each.mean(axis=0), (each - each[:, 2:]).std(axis=0, ddof=1) / np.sqrt(trials)
                rows.append(
                    {
                        "data": name,
                        "model": model,
                        "l": l,
                        "cv": "leave-one-out" if cv == "deleted" else f"{cv} folds",
                        "trials": trials,
                        "least": f"{mean[0]:.4f}",
                        "corrected": f"{mean[1]:.4f}",
                        "test": f"{mean[2]:.4f}",
                        "least_standard_error": f"{spread[0]:.4f}",
                        "corrected_standard_error": f"{spread[1]:.4f}",
                    }
                )
                print(*rows[-1].values(), sep="\t", flush=True)
    return rows


def tables(rows: Rows) -> dict[str, str]:
    """For docs/model-selection.md."""
    heads = ["data", "model", "l", "estimated by", "taken cell", "corrected", "on other samples"]
    lines = []
    for row in rows:
        figures = [100 * float(row[key]) for key in ("least", "corrected", "test")]
        errors = [100 * float(row[f"{key}_standard_error"]) for key in ("least", "corrected")]
        cells = [f"{figure:.1f} % ± {error:.1f}" for figure, error in zip(figures, errors, strict=False)]
        lines.append([row["data"], row["model"], row["l"], row["cv"], *cells, f"{figures[2]:.1f} %"])
    return {"optimism": markdown(heads, lines)}


def run_command() -> str:
    """What pykernel fit prints of the breast cancer data."""
    data = load_breast_cancer()
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "cancer.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*(name.replace(" ", "_") for name in data.feature_names), "diagnosis"])
            for x, y in zip(data.data.tolist(), data.target, strict=True):
                writer.writerow([*map(repr, x), data.target_names[y]])
        command = [sys.executable, "-m", "pykernel", *COMMAND]
        ran = subprocess.run(
            command, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    return "\n".join(line.rstrip() for line in ran.stdout.splitlines()).strip()


def insert(text: str, name: str, output: str) -> str:
    """The page with the text block that follows the line <!-- NAME --> replaced."""
    pattern = rf"(?<=^<!-- {name} -->\n```text\n).*?(?=\n^```$)"
    return re.sub(pattern, lambda _: output, text, count=1, flags=re.DOTALL | re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--command", action="store_true", help="only the command's output")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    arguments = parser.parse_args()
    printed = run_command()
    print(printed)
    path = arguments.output / "optimism.csv"
    rows = load(path) if arguments.command else save(path, measure(arguments.trials))
    if arguments.output == DATA:
        text = insert(read(PAGE), "fit", printed)
        for name, table in tables(rows).items():
            text = place(text, name, table)
        write(PAGE, text)


if __name__ == "__main__":
    main()
