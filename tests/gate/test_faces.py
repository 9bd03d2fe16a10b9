"""One stream by every way into the product: the same limits, answers and state, to the byte."""

import csv
import subprocess
import sys

import numpy as np
import pytest

import pykernel
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

COLUMNS, ROWS = ("a", "b", "c"), 260
TASKS = {
    "a number": {"label": {"column": "y"}},
    "classes": {"label": {"column": "y", "classes": ["high", "low", "mid"]}},
    "a monitor": {"novelty": {}},
}


def stream(task):
    """(x, labels as a user has them): the first row is tiny, and units are unlike; no number is rounded by float32."""
    rng = np.random.default_rng(7)
    x = (rng.normal(size=(ROWS, 3)) * (1.0, 64.0, 2.0**-6)).astype(np.float32).astype(float)
    x[0] *= 2.0**-10
    y = np.sin(2 * x[:, 0]) + x[:, 1] / 64
    if task == "classes":
        return x, np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    return x, None if task == "a monitor" else y.astype(np.float32).astype(float)


def spec_of(task):
    return make_spec({"name": "m", "input": {"columns": list(COLUMNS)}} | TASKS[task])


def positions(spec, y):
    return y if spec.label.classes is None else np.array([spec.label.classes.index(each) for each in y])


def learned(spec, memory):
    """The snapshot that the device writes."""
    model = HostModel(spec)
    model.memory.copy_from(memory)
    return snapshot.save(model)


def samples(x):
    return [dict(zip(COLUMNS, row, strict=True)) for row in x.tolist()]


# ------------------------------------------------------------------------------------------------------ ways in


def by_host(task, x, y, folder):
    model = HostModel(spec_of(task))
    model.update(x, positions(model.spec, y))
    return model.spec, model.memory


def by_c(task, x, y, folder):
    spec = spec_of(task)
    model = CModel(build(spec), find_compilers()[0])
    labels = np.zeros((len(x), 0), np.float32) if y is None else positions(spec, y)
    model.prequential(x.astype(np.float32), labels.astype(np.int32 if spec.label.classes else np.float32))
    return spec, model.memory


def by_arrays(task, x, y, folder):
    spec = spec_of(task)
    found = pykernel.simulate(spec, (x, y))
    return spec, found.simulation.model.memory


def write_csv(task, x, y, folder, name="data.csv"):
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "y"])
        writer.writerows(
            [*row, label] for row, label in zip(x.tolist(), ([""] * len(x) if y is None else y.tolist()), strict=True)
        )
    return folder / name


def by_csv(task, x, y, folder):
    spec = spec_of(task)
    return spec, pykernel.simulate(spec, str(write_csv(task, x, y, folder))).simulation.model.memory


def by_parquet(task, x, y, folder):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(COLUMNS, x.T, strict=True)) | ({} if y is None else {"y": y})
    parquet.write_table(pa.table(columns), folder / "data.parquet")
    spec = spec_of(task)
    return spec, pykernel.simulate(spec, str(folder / "data.parquet")).simulation.model.memory


def by_commands(task, x, y, folder):
    """Another process for each half of the stream, with the state in a file between them."""
    spec, start = spec_of(task), []
    (folder / "m.toml").write_text(spec.to_toml(), encoding="utf-8")
    for part, rows in enumerate((slice(0, 100), slice(100, None))):
        table = write_csv(task, x[rows], None if y is None else y[rows], folder, f"part{part}.csv")
        words = [*("simulate", folder / "m.toml", table, "--save", folder / f"state{part}"), *start]
        subprocess.run([sys.executable, "-m", "pykernel", *map(str, words)], check=True, capture_output=True)
        start = ["--start", folder / f"state{part}"]
    return spec, snapshot.read(spec, (folder / "state1").read_bytes()).memory


def estimator_of(task):
    pytest.importorskip("sklearn")
    from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor, OnlineMonitor

    kinds = {"a number": BudgetedKernelRegressor, "classes": BudgetedKernelClassifier, "a monitor": OnlineMonitor}
    return kinds[task]()


def by_estimator(parts):
    def way(task, x, y, folder):
        pandas = pytest.importorskip("pandas")
        model = estimator_of(task)
        for rows in np.array_split(np.arange(len(x)), parts):
            frame = pandas.DataFrame(x[rows], columns=COLUMNS)
            first = {"classes": np.unique(y)} if task == "classes" and rows[0] == 0 else {}
            model.partial_fit(*([frame] if y is None else [frame, y[rows]]), **first)
        return model.to_spec("m"), model.model_.memory

    return way


def by_river(task, x, y, folder):
    pytest.importorskip("river")
    from pykernel.river import AnomalyDetector, Classifier, Regressor

    model = {"a number": Regressor, "a monitor": AnomalyDetector}.get(task, Classifier)
    model = model(classes=["high", "low", "mid"]) if task == "classes" else model()
    for row, label in zip(samples(x), [None] * len(x) if y is None else y.tolist(), strict=True):
        model.learn_one(*([row] if y is None else [row, label]))
    return model.to_spec("m"), model.model_.memory


WAYS = {
    "C": by_c,
    "arrays": by_arrays,
    "CSV": by_csv,
    "Parquet": by_parquet,
    "two processes": by_commands,
    "estimator, at once": by_estimator(1),
    "estimator, in parts": by_estimator(9),
    "estimator, row by row": by_estimator(ROWS),
    "River": by_river,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", TASKS)
def test_every_way_into_the_product_is_the_same_model(task, way, tmp_path):
    x, y = stream(task)
    spec, memory = by_host(task, x, y, tmp_path)
    other, found = WAYS[way](task, x, y, tmp_path)
    assert other.learning.rule == spec.learning.rule
    assert str(other.config_values) == str(spec.config_values), "other numbers of the spec"
    assert learned(other, found) == learned(spec, memory)
