"""What each part of trained vectors gives, over twenty splits; writes docs/data/trained-vectors-goals.csv and its table in
docs/trained-vectors.md.

    python -m benchmarks.host.trained_vectors_goals [--splits 20] [--only NAME …] [-o docs/data]

Digits and breast cancer, 30 % at random are the test, other ones in each split; bike rentals, the last 30 % of the rows, with
another seed each time.  8 and 16 vectors:

all        as ``pykernel fit --model trained`` trains them, in float32
int16      the same with ``--precision int16``: predictions are the device's bits
one width  without a width for each input
each width without the choice of one width
fixed      vectors stay where k-means puts them; widths and weights are trained
linear     of numbers: beside a linear model, to whose residuals the vectors are trained

error: the part of wrong classes, or the root of the mean squared error in the label's unit; seconds: CPU time of training.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.host.trained_vectors import TASKS, Task
from benchmarks.tables import DATA, DOCS, load, markdown, merged, place, save
from pykernel.estimators.trained import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.files import whole_file
from pykernel.parallel import one_thread
from pykernel.training import vectors

TABLES = ("digits", "breast_cancer", "bikes")
WAYS: dict[str, dict[str, Any]] = {
    "all": {},
    "int16": {"precision": "int16"},
    "one width": {"widths": "one"},
    "each width": {"widths": "inputs"},
    "fixed": {},
    "linear": {},
}
SIZES = (8, 16)
FILE = "trained-vectors-goals.csv"


@contextlib.contextmanager
def not_moved() -> Iterator[None]:
    """The gradient by the vectors is zero."""
    whole = vectors.objective

    def held(
        loss: Any, ridge: float, start: np.ndarray, found: vectors.Vectors, rows: Any, pull: float | None = None
    ) -> tuple[float, np.ndarray]:
        value, gradient = whole(loss, ridge, start, found, rows, pull)
        gradient[: found.vectors.size] = 0.0
        return value, gradient

    with mock.patch.object(vectors, "objective", held):
        yield


def predicted(task: Task, way: str, size: int, seed: int, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Of a model that is trained in one of the ways, at the test rows."""
    from sklearn.linear_model import Ridge

    x, y, beside = task.x, task.y.astype(float) if not task.classes else task.y, None
    if way == "linear":
        deviation = x[train].std(axis=0)
        x = (x - x[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        beside = Ridge(1e-3).fit(x[train], y[train])
        y = y - beside.predict(x)
    kind = TrainedKernelClassifier if task.classes else TrainedKernelRegressor
    model = kind(size, random_state=seed, **WAYS[way])
    with not_moved() if way == "fixed" else contextlib.nullcontext():
        model.fit(x[train], y[train])
    if way == "int16":
        numbers = replace(model._machine(), label=None, calibration=None)
        spec: Any = vectors_spec(numbers)
        inside = np.clip(x[test], *limits(spec))  # what lies beyond is refused there
        found = spec.family.int16_functions(spec, inside)
        if not task.classes:
            return np.asarray(found[:, 0])
        at = found.argmax(axis=1) if found.shape[1] > 1 else (found[:, 0] > 0).astype(int)
        return np.asarray(model.classes_[at])
    return np.asarray(model.predict(x[test]) + (0.0 if beside is None else beside.predict(x[test])))


def vectors_spec(machine: Any) -> Any:
    from pykernel.training.trained import to_spec

    return to_spec(machine, "model", "int16")


def limits(spec: Any) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest inputs that are taken."""
    made, resolution = spec.conversion, spec.resolutions
    return (made.center - made.most) * resolution, (made.center + made.most) * resolution


def measured(task: Task, splits: int, ways: list[str]) -> Iterator[dict[str, Any]]:
    for number in range(splits):
        train, test = task.split(number)
        for size in SIZES:
            for way in ways:
                if way == "linear" and task.classes:
                    continue
                start = time.process_time()
                with one_thread, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = predicted(task, way, size, number, train, test)
                seconds = time.process_time() - start
                wrong = float((found != task.y[test]).mean())
                error = wrong if task.classes else float(np.sqrt(np.square(found - task.y[test]).mean()))
                yield {
                    "table": task.name,
                    "split": number,
                    "vectors": size,
                    "way": way,
                    "error": f"{error:.5f}",
                    "seconds": f"{seconds:.2f}",
                }


def table() -> str:
    """Medians, and how many splits they are of."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in load(DATA / FILE):
        found.setdefault((row["table"], row["vectors"]), {}).setdefault(row["way"], []).append(float(row["error"]))
    rows = []
    for (name, size), of in found.items():
        shown = (lambda value: f"{value:.1f}") if name == "bikes" else (lambda value: f"{100 * value:.1f} %")
        told = [shown(median(of[way])) if way in of else "" for way in WAYS]
        rows.append([name, size, str(max(map(len, of.values()))), *told])
    return markdown(["table", "vectors", "splits", *WAYS], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=list(WAYS))
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    given = parser.parse_args()
    for name in given.only:
        rows = []
        for row in measured(TASKS[name](), given.splits, given.ways):
            rows.append(row)
            print(*row.values(), flush=True)
        path = given.output / FILE
        save(path, merged(path, rows, "table", [name], list(TABLES)))
    if given.output == DATA:
        page = DOCS / "trained-vectors.md"
        text = place(page.read_text(encoding="utf-8"), "goals", table())
        with whole_file(page) as file:
            file.write(text.encode())


if __name__ == "__main__":
    main()
