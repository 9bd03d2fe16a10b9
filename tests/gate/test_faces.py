"""One stream by every way into the product: the same limits, answers and state, to the byte."""

import copy
import csv
import itertools
import pickle
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import pykernel
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import declared, make_spec
from tests.estimators.test_threads import ALL, as_bytes
from tests.support.every_model import accepted
from tests.support.following import persistent

COLUMNS, ROWS = ("a", "b", "c"), 260
TASKS = {
    "a number": {"label": {"column": "y"}},
    "classes": {"label": {"column": "y", "classes": ["high", "low", "mid"]}},
    "a monitor": {"novelty": {}},
}


def stream(task, missing):
    """(x, labels as a user has them): the first row is tiny, and units are unlike; no number is rounded by float32."""
    rng = np.random.default_rng(7)
    x = (rng.normal(size=(ROWS, 3)) * (1.0, 64.0, 2.0**-6)).astype(np.float32).astype(float)
    x[0] *= 2.0**-10
    y = np.sin(2 * x[:, 0]) + x[:, 1] / 64
    if missing != "refuse":
        x[(rng.random(x.shape) < 0.1) & (np.arange(3) > 0)] = np.nan
    if task == "classes":
        return x, np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    return x, None if task == "a monitor" else y.astype(np.float32).astype(float)


def content_of(task, missing):
    given = {} if missing == "refuse" else {"missing": missing}
    return {"name": "m", "input": {"columns": list(COLUMNS), **given}} | TASKS[task]


def spec_of(*case):
    return make_spec(content_of(*case))


CASES = [case for case in itertools.product(TASKS, ("refuse", "mean", "hold")) if accepted(content_of(*case))]


def positions(spec, y):
    return y if spec.label.classes is None else np.array([spec.label.classes.index(each) for each in y])


def learned(spec, memory):
    """The snapshot that the device writes."""
    model = HostModel(spec)
    model.memory.copy_from(memory)
    return snapshot.save(model)


# ------------------------------------------------------------------------------------------------------ ways in


def by_c(case, x, y, folder):
    spec = spec_of(*case)
    model = CModel(build(spec), find_compilers()[0])
    labels = np.zeros((len(x), 0), np.float32) if y is None else positions(spec, y)
    model.prequential(x.astype(np.float32), labels.astype(np.int32 if spec.label.classes else np.float32))
    return spec, model.memory


def by_arrays(case, x, y, folder):
    spec = spec_of(*case)
    found = pykernel.simulate(spec, (x, y))
    return spec, found.simulation.model.memory


def write_csv(x, y, folder, name="data.csv"):
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "y"])
        writer.writerows(
            [*row, label] for row, label in zip(x.tolist(), ([""] * len(x) if y is None else y.tolist()), strict=True)
        )
    return folder / name


def by_csv(case, x, y, folder):
    spec = spec_of(*case)
    return spec, pykernel.simulate(spec, str(write_csv(x, y, folder))).simulation.model.memory


def by_parquet(case, x, y, folder):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(COLUMNS, x.T, strict=True)) | ({} if y is None else {"y": y})
    parquet.write_table(pa.table(columns), folder / "data.parquet")
    spec = spec_of(*case)
    return spec, pykernel.simulate(spec, str(folder / "data.parquet")).simulation.model.memory


def by_commands(case, x, y, folder):
    """Another process for each half of the stream, with the state in a file between them."""
    spec, start = spec_of(*case), []
    (folder / "m.toml").write_text(spec.to_toml(), encoding="utf-8")
    for part, rows in enumerate((slice(0, 100), slice(100, None))):
        table = write_csv(x[rows], None if y is None else y[rows], folder, f"part{part}.csv")
        words = [*("simulate", folder / "m.toml", table, "--save", folder / f"state{part}"), *start]
        subprocess.run([sys.executable, "-m", "pykernel", *map(str, words)], check=True, capture_output=True)
        start = ["--start", folder / f"state{part}"]
    return spec, snapshot.read(spec, (folder / "state1").read_bytes()).memory


def estimator_of(task, missing):
    pytest.importorskip("sklearn")
    from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor, OnlineMonitor

    kinds = {"a number": BudgetedKernelRegressor, "classes": BudgetedKernelClassifier, "a monitor": OnlineMonitor}
    return kinds[task](**({} if missing == "refuse" else {"missing": missing}))


def by_estimator(parts):
    def way(case, x, y, folder):
        pandas = pytest.importorskip("pandas")
        model = estimator_of(*case)
        for rows in np.array_split(np.arange(len(x)), parts):
            frame = pandas.DataFrame(x[rows], columns=COLUMNS)
            first = {"classes": np.unique(y)} if case[0] == "classes" and rows[0] == 0 else {}
            model.partial_fit(*([frame] if y is None else [frame, y[rows]]), **first)
        return model.to_spec("m"), model.model_.memory

    return way


def river_of(task, missing):
    pytest.importorskip("river")
    from pykernel.river import AnomalyDetector, Classifier, Regressor

    kinds = {"a number": Regressor, "classes": Classifier, "a monitor": AnomalyDetector}
    classes = {"classes": ["high", "low", "mid"]} if task == "classes" else {}
    return kinds[task](**classes, **({} if missing == "refuse" else {"missing": missing}))


def by_river(case, x, y, folder):
    model = river_of(*case)
    for row, label in zip(x.tolist(), [None] * len(x) if y is None else y.tolist(), strict=True):
        sample = dict(zip(COLUMNS, row, strict=True))
        model.learn_one(*([sample] if y is None else [sample, label]))
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


@pytest.mark.in_turn(13)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_every_way_into_the_product_is_the_same_model(case, way, tmp_path):
    x, y = stream(*case)
    spec = spec_of(*case)
    host = HostModel(spec)
    assert (host.update(x, positions(spec, y)) >= 0).all()
    other, found = WAYS[way](case, x, y, tmp_path)
    assert other.learning.rule == spec.learning.rule
    assert str(other.config_values) == str(spec.config_values), "other numbers of the spec"
    assert learned(spec, found) == learned(spec, host.memory)


LEARNING = [
    (kind, rule)
    for kind in ALL
    if hasattr(kind, "partial_fit")
    for rule in [None, *(rule for family in kind._families() for rule in family.rules if "rule" in kind._parameters())]
]
LIMITS = {"n_epochs": 1, "input_max_abs": 1e3, "label_max_abs": 1e3}


def told(model, x):
    names = ("predict", "predict_proba", "score_samples", "transform")
    return [as_bytes(getattr(model, name)(x)) for name in names if hasattr(model, name)]


@pytest.mark.in_turn(13)
@pytest.mark.parametrize(("kind", "rule"), LEARNING)
def test_an_estimator_in_parts_by_its_copies_is_the_whole(kind, rule):
    """Answers, counts and state, which are also those of the host's model of its spec; what the model learns after it was
    copied, the copy does not."""
    x = np.random.default_rng(5).normal(size=(300, 3))
    y = np.digitize(np.sin(x[:, 0]) + x[:, 1], [-0.5, 0.5])
    given = {"rule": rule, "sigma": 1.5, **LIMITS}
    left = {*given} - {*kind._parameters()} | ({"sigma"} if rule and rule not in declared("kernel") else set())
    try:
        whole = kind(**{key: value for key, value in given.items() if key not in left}).fit(x, y)
    except UserError:
        pytest.skip("does not learn by this rule")
    host = HostModel(make_spec(tomllib.loads(whole.to_spec("m").to_toml())))
    host.update(x, None if host.spec.label_kind == "none" else y)
    assert persistent(host) == persistent(whole.model_)
    assert not is_regressor(whole) or (whole.predict(x) == host.predict(x)).all()
    first = {"classes": np.unique(y)} if is_classifier(whole) else {}
    for cuts in ([150], [1, 2, 3, 299], sorted(np.random.default_rng(0).choice(299, 40, replace=False) + 1)):
        model = clone(whole)
        for i, rows in enumerate(np.split(np.arange(300), cuts)):
            before, model = model, pickle.loads(pickle.dumps(model)) if i % 2 else copy.deepcopy(model)
            model.partial_fit(x[rows], y[rows], **({} if i else first))
            assert not i or sum(before.status_counts_.values()) == rows[0]
        assert model.status_counts_ == whole.status_counts_ and told(model, x) == told(whole, x)
        assert snapshot.save(model.model_) == snapshot.save(whole.model_)
