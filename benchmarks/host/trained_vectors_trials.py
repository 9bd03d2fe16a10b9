"""Trials on which decisions about trained vectors rest; writes docs/data/trained-vectors-trials.csv.

    python -m benchmarks.host.trained_vectors_trials [--only PART …] [-o docs/data]

rounding  six tables, 16 vectors (digits: 32, too), trained on 70 % of the rows with the smallest ridge, 1e-6, where weights are largest: how far
          float32 and int16 move a function at most, in standard deviations of what the model errs (of classes: of the function),
          and the error of float64, float32, int16 and of int16's vectors and weights in 8 bits, with a scale for each column;
          bytes that GCC links for a Cortex-M4F, and the part of them that 8 bits would save
pull      other tables than those of trained_vectors.py, 8 vectors, at most 600 rows to train on: the test error with widths
          that are drawn to where they began by 1e-3, 1e-4 and 0, over the error with 1e-2
rows      8 inputs, 10^5 and 10^6 rows, 8 and 16 vectors: CPU seconds, and MiB beyond the table
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.host.trained_vectors import TASKS, Task
from benchmarks.host.trained_vectors_goals import limits
from benchmarks.tables import DATA, merged, save
from pykernel.estimators.trained import TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.host.model import HostModel
from pykernel.parallel import one_thread
from pykernel.targets.check import check_targets
from pykernel.training import vectors
from pykernel.training.trained import to_spec

ROUNDED = {"digits": (16, 32), "bikes": (16,), "breast_cancer": (16,), "ImageSegments": (16,), "Phishing": (16,), "friedman": (16,)}  # fmt: skip
PULLS = (1e-3, 1e-4, 0.0)


def trained(task: Task, size: int, rows: np.ndarray, **more: Any) -> Any:
    kind = TrainedKernelClassifier if task.classes else TrainedKernelRegressor
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(size, **more).fit(task.x[rows], task.y[rows])


def error(task: Task, model: Any, functions: np.ndarray, rows: np.ndarray) -> float:
    if not task.classes:
        return task.error(task.y[rows], functions[:, 0])
    at = functions.argmax(axis=1) if functions.shape[1] > 1 else (functions[:, 0] > 0).astype(int)
    return task.error(task.y[rows], model.classes_[at])


def in_bytes(values: np.ndarray) -> np.ndarray:
    """Rounded to 8 bits, each column with its own scale."""
    step = np.abs(values).max(axis=0) / 127
    return np.asarray(np.rint(values / np.where(step > 0, step, 1.0)) * step)


def of_rounding() -> Iterator[dict[str, Any]]:
    for name, size in ((name, size) for name, sizes in ROUNDED.items() for size in sizes):
        task = TASKS[name]()
        train, test = task.split(0)
        model = trained(task, size, train, ridge=1e-6)
        machine = replace(model._machine(), label=None, calibration=None, classes=None)
        whole: Any = to_spec(machine, "model", "int16")
        x = np.clip(task.x[test], *limits(whole))
        exact = model._values(x)
        single = np.asarray(HostModel(to_spec(machine, "model", "float32")).predict(x), float).reshape(exact.shape)
        counted = whole.family.int16_functions(whole, x)
        center = x.mean(axis=0)
        held = replace(
            model._found(), vectors=in_bytes(machine.inputs() - center) + center, weights=in_bytes(machine.weights)
        )
        typical = exact.std() if task.classes else np.sqrt(np.square(exact[:, 0] - task.y[test]).mean())
        labels = np.zeros(50 if exact.shape[1] == 1 else (50, exact.shape[1]))
        row = check_targets(
            whole, ["cortex-m4f"], stream=(x[:50], labels), emulator="unicorn", chain="gcc", tries=0
        ).rows[0]  # fmt: skip
        saved = machine.vectors.size + machine.weights.size
        yield {
            "part": "rounding", "table": name, "vectors": size,
            "float32_moves": f"{np.abs(single - exact).max() / typical:.1e}",
            "int16_moves": f"{np.abs(counted - exact).max() / typical:.1e}",
            **{
                kind: f"{error(task, model, found, test):.5f}"
                for kind, found in (
                    ("float64", exact), ("float32", single), ("int16", counted), ("int8", held.functions(x))
                )
            },
            "flash_bytes": row["flash_bytes"], "saved_part": f"{saved / row['flash_bytes']:.3f}",
        }  # fmt: skip


def others() -> Iterator[Task]:
    """Tables that serve nothing else."""
    import importlib

    from sklearn import datasets

    rng = np.random.default_rng(0)
    for name in ("friedman2", "friedman3"):
        x, y = getattr(datasets, f"make_{name}")(1200, random_state=1)
        yield Task(name, x, y + 0.2 * y.std() * rng.normal(size=len(y)), 0)
    for number, (inputs, informative, classes, clusters) in enumerate(((10, 5, 2, 2), (12, 8, 5, 2), (20, 4, 3, 1))):
        x, y = datasets.make_classification(
            1200, inputs, n_informative=informative, n_classes=classes, n_clusters_per_class=clusters, random_state=number
        )  # fmt: skip
        yield Task(f"classification {number}", x, y, classes)
    x, y = datasets.make_gaussian_quantiles(n_samples=1000, n_features=5, n_classes=3, random_state=0)
    yield Task("quantiles", x, y, 3)
    x, y = datasets.make_swiss_roll(1000, noise=0.5, random_state=0)
    yield Task("swiss roll", x, np.sin(y) + 0.1 * rng.normal(size=1000), 0)
    x, y = datasets.make_moons(800, noise=0.25, random_state=0)
    yield Task("moons", x, y, 2)
    for name in ("anes96", "modechoice", "engel"):
        found = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas()
        y = found.endog.to_numpy(float)
        yield Task(name, found.exog.to_numpy(float), y.astype(int) if name == "modechoice" else y, 2 * (name == "modechoice"))  # fmt: skip


def of_pulls() -> Iterator[dict[str, Any]]:
    for task in others():
        train, test = task.split(0)
        found = {}
        for pull in (1e-2, *PULLS):
            with mock.patch.object(vectors, "PULL", pull):
                model = trained(task, 8, train[:600])
            found[pull] = task.error(task.y[test], model.predict(task.x[test]))
        ratios = {f"pull_{pull:g}": f"{found[pull] / max(found[1e-2], 1e-9):.3f}" for pull in PULLS}
        yield {"part": "pull", "table": task.name, "vectors": 8, **ratios}


def of_rows() -> Iterator[dict[str, Any]]:
    import resource

    for count in (10**5, 10**6):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(count, 8))
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3]) + 0.2 * rng.normal(size=count)
        for size in (8, 16):
            before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
            trained(Task("made up", x, y, 0), size, np.arange(count))
            seconds = time.process_time() - start
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            yield {"part": "rows", "table": str(count), "vectors": size, "seconds": f"{seconds:.1f}", "mib": f"{more:.0f}"}  # fmt: skip


PARTS = {"rounding": of_rounding, "pull": of_pulls, "rows": of_rows}
COLUMNS = ("part", "table", "vectors", "float32_moves", "int16_moves", "float64", "float32", "int16", "int8", "flash_bytes", "saved_part", *(f"pull_{p:g}" for p in PULLS), "seconds", "mib")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    given = parser.parse_args()
    for part in given.only:
        rows = []
        for row in PARTS[part]():
            rows.append(dict.fromkeys(COLUMNS, "") | row)
            print(*row.values(), flush=True)
        path = given.output / "trained-vectors-trials.csv"
        save(path, merged(path, rows, "part", [part], list(PARTS)))


if __name__ == "__main__":
    main()
