"""docs/importing.md: what models lose that import --vectors makes smaller.

    python -m benchmarks.host.distilled [-o docs/data]

Six machines are trained by scikit-learn on 70 % of the rows (bike rentals: the first, of which 600 train an SVR; others: of a
shuffle), and made smaller: on these rows, and without rows.  All are judged on the other 30 %.

lost: the root mean square of what functions differ by there, in their standard deviations; of pairs of classes the part of
rows that gets another class.  projected, weighed, moved: the same after each step.  error: the part of wrong classes, or the
root mean square error, of the source and of the smaller model.  Means of seeds 0 to 2.

distilled-rows.csv compares ways to make rows up of the vectors, by what is lost.  vectors: as they are; noise: with a normal
deviation of so many widths; line: on the line between two; near: the same, of two neighbours; inputs: each input of one of the
two; half: every other row by input, the others on a line.  Means of seeds 0 and 1.  Some minutes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.tables import DATA, DOCS, Rows, markdown, place, progress_bar, read, save, write
from pykernel.host.bikeshare import bikeshare
from pykernel.importers.sklearn import read_estimator
from pykernel.training import distilled
from pykernel.training.distilled import classes_of, distil, width_of
from pykernel.training.machine import Machine

PAGE = DOCS / "importing.md"
SEEDS, FEWER = 3, 2


@dataclass(frozen=True)
class Task:
    name: str
    machine: Machine
    vectors: int
    recorded: np.ndarray
    unseen: np.ndarray
    labels: np.ndarray  # of the unseen rows: numbers, or positions of classes

    def lost(self, smaller: Machine) -> float:
        source, own = (each.functions(each.scaled(self.unseen)) for each in (self.machine, smaller))
        if self.machine.support_class is not None:
            return float(np.mean(classes_of(self.machine, source) != classes_of(smaller, own)))
        return float(np.sqrt((np.square(source - own) / source.var(axis=0)).mean()))

    def error(self, machine: Machine) -> float:
        found = machine.functions(machine.scaled(self.unseen))
        if machine.classes is not None:
            return float(np.mean(classes_of(machine, found) != self.labels))
        return float(np.sqrt(np.square(found[:, 0] - self.labels).mean()))


def tasks() -> Iterator[Task]:
    def made(name: str, x: np.ndarray, y: np.ndarray, model: Any, vectors: int, order: np.ndarray, fit: Any) -> Task:
        x, y, first = x[order], y[order], len(x) - round(0.3 * len(x))
        x = StandardScaler().fit(x[:first]).transform(x)
        rows = fit if fit is not None else np.arange(first)
        machine = read_estimator(model.fit(x[:first][rows], y[:first][rows]))
        return Task(name, machine, vectors, x[:first], x[first:], y[first:])

    def shuffled(name: str, data: tuple[np.ndarray, np.ndarray], model: Any, vectors: int) -> Task:
        return made(name, *data, model, vectors, np.random.default_rng(0).permutation(len(data[0])), None)

    x, y, _ = bikeshare()
    first = len(x) - round(0.3 * len(x))
    some = np.linspace(0, first - 1, 600).astype(int)
    svr = SVR(C=1000.0, epsilon=40.0, gamma=1 / 8)
    yield made("bike rentals, SVR", x, y, svr, 16, np.arange(len(x)), some)
    yield shuffled("breast cancer, SVC", load_breast_cancer(return_X_y=True), SVC(C=10.0, gamma=1 / 30), 8)
    yield shuffled("digits, SVC", load_digits(return_X_y=True), SVC(C=10.0, gamma=1 / 64), 16)
    yield shuffled("wine, SVC", load_wine(return_X_y=True), SVC(C=10.0, gamma=1 / 13), 6)
    ridge = KernelRidge(kernel="rbf", gamma=0.03, alpha=1.0)
    yield shuffled("diabetes, KernelRidge", load_diabetes(return_X_y=True), ridge, 8)
    process = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(3.0) + WhiteKernel(0.1), normalize_y=True)
    yield shuffled("Friedman 1, Gaussian process", make_friedman1(600, 8, noise=1.0, random_state=0), process, 16)


def measure(every: list[Task]) -> list[dict[str, Any]]:
    rows = []
    for task in every:
        for recorded in (True, False):
            found = [
                distil(task.machine, task.vectors, task.recorded if recorded else None, seed) for seed in range(SEEDS)
            ]
            steps = {
                name: np.mean([np.nan if each.steps[name] is None else each.steps[name] for each in found])
                for name in ("projected", "weighed", "moved")
            }
            rows.append(
                {
                    "model": task.name,
                    "before": found[0].vectors_before,
                    "vectors": task.vectors,
                    "rows": "recorded" if recorded else "made up",
                    **{name: f"{value:.3g}" for name, value in steps.items()},
                    "lost": f"{np.mean([task.lost(each.machine) for each in found]):.3g}",
                    "source_error": f"{task.error(task.machine):.4g}",
                    "error": f"{np.mean([task.error(each.machine) for each in found]):.4g}",
                }
            )
    return rows


# ----------------------------------------------------------------------------------------------- ways to make rows up

Way = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]


def way(first: str, noise: float) -> Way:
    def rows(z: np.ndarray, width: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        i, j = rng.integers(len(z), size=(2, count))
        if first == "near":
            square = np.square(z).sum(axis=1)
            order = (square[:, None] + square - 2 * z @ z.T).argsort(axis=1)
            j = order[i, rng.integers(1, 6, size=count)]
        share = np.repeat(rng.uniform(size=(count, 1)), z.shape[1], axis=1)
        by_input = np.array({"inputs": [True], "half": [True, False]}.get(first, [False]))
        by_input = np.resize(by_input, count)
        share[by_input] = rng.integers(2, size=(int(by_input.sum()), z.shape[1]))
        if first == "vectors":
            share[:] = 1.0
        away = rng.normal(size=share.shape) * width * (noise / np.sqrt(z.shape[1]))
        return np.asarray(share * z[i] + (1 - share) * z[j] + away)

    return rows


WAYS = {
    f"{first}{f', noise {noise:g}' if noise else ''}": way(first, noise)
    for first, noises in {
        "vectors": (0.0, 0.25, 0.5), "line": (0.0, 0.25), "near": (0.25,), "inputs": (0.0, 0.25), "half": (0.25, 0.5),
    }.items()
    for noise in noises
}  # fmt: skip


def rows_by(way: Way, machine: Machine, z: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return way(z, width_of(machine, z), count, rng)


def compare_ways(every: list[Task]) -> list[dict[str, Any]]:
    own, rows = distilled.made_up, []
    with progress_bar() as bar:
        step = bar.add_task("ways", total=len(WAYS) * len(every))
        for name, made_up in WAYS.items():
            lost = {}
            for task in every:
                distilled.made_up = partial(rows_by, made_up, task.machine)
                found = [task.lost(distil(task.machine, task.vectors, None, seed).machine) for seed in range(FEWER)]
                lost[task.name] = f"{np.mean(found):.3f}"
                bar.advance(step)
            rows.append({"rows": name} | lost)
    distilled.made_up = own
    return rows


def tables(rows: Rows, ways: Rows) -> dict[str, str]:
    names = ["model", "before", "vectors", "rows", "projected", "weighed", "moved", "lost", "source_error", "error"]
    heads = ["model", "vectors", "now", "rows", *names[4:7], "lost, unseen", "error of the source", "now"]
    return {
        "distilled": markdown(heads, [[row[name] for name in names] for row in rows]),
        "distilled rows": markdown(list(ways[0]), [list(row.values()) for row in ways]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    every = list(tasks())
    rows = save(arguments.output / "distilled.csv", measure(every))
    ways = save(arguments.output / "distilled-rows.csv", compare_ways(every))
    if arguments.output == DATA:
        text = read(PAGE)
        for name, made in tables(rows, ways).items():
            text = place(text, name, made)
        write(PAGE, text)


if __name__ == "__main__":
    main()
