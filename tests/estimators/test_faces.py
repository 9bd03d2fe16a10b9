"""One model from every face: the same spec, and after the same rows the same bytes.

The first row is a thousandth of the others: what a face derives from its first rows alone shows.
"""

import numpy as np
import pytest
from sklearn.base import clone

import pykernel
from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor, OnlineMonitor
from pykernel.spec.model import make_spec
from tests.support.every_model import accepted

NAMES = ["flow", "level", "pressure"]
CLASSES = ["dry", "wet"]
LABELS = {
    "number": (BudgetedKernelRegressor, "Regressor", {}, {"label": {"column": "y"}}),
    "classes": (
        BudgetedKernelClassifier,
        "Classifier",
        {"classes": CLASSES},
        {"label": {"column": "y", "classes": CLASSES}},
    ),
    "none": (OnlineMonitor, "AnomalyDetector", {}, {"novelty": {}}),
}


def learned(model):
    """The bytes of what is kept."""
    model = getattr(model, "model_", model)
    return bytes(model.memory.bytes)[: model.spec.program.state_bytes(model.memory.layout)]


def written(kind, missing):
    return {"name": "model", "input": {"columns": NAMES} | ({"missing": missing} if missing else {}), **LABELS[kind][3]}


CASES = [(kind, by) for kind in LABELS for by in (None, "mean", "hold") if accepted(written(kind, by)) is not None]


@pytest.mark.parametrize("kind, missing", CASES)
def test_every_face_makes_the_same_spec_and_learns_the_same_bytes(kind, missing, tmp_path):
    pandas, river = pytest.importorskip("pandas"), pytest.importorskip("pykernel.river")
    estimator, face, classes, _ = LABELS[kind]
    given = {} if missing is None else {"missing": missing}
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 3)) * [1.0, 300.0, 1e5] + [0.0, 2000.0, 0.0]
    x[0] = 1e-3
    if missing is not None:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[np.isnan(x).all(axis=1)] = 1.0
    y = np.sin(np.nan_to_num(x[:, 0])) + 1e-4 * np.nan_to_num(x[:, 1]) * 1e4
    y = np.where(y > 2000, "wet", "dry") if kind == "classes" else y
    labels = {"number": [y], "classes": [y], "none": []}[kind]
    spec = make_spec(written(kind, missing))
    table = pandas.DataFrame(x, columns=NAMES)
    frame = table if kind == "none" else table.assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    arrays = (x, None if kind == "none" else y if kind == "number" else (y == "wet").astype(int))
    simulated = {name: pykernel.simulate(spec, data) for name, data in {
        "csv": str(tmp_path / "rows.csv"), "parquet": str(tmp_path / "rows.parquet"), "arrays": arrays,
    }.items()}  # fmt: skip
    models = {name: (spec, each.simulation.model) for name, each in simulated.items()}
    assert simulated["csv"].report["refused"] == 0

    def partly(*cuts):
        model, first = clone(estimator(**given)), {"classes": CLASSES} if kind == "classes" else {}
        for i, part in enumerate(np.split(np.arange(len(x)), cuts)):
            series = [pandas.Series(each[part], name="y") for each in labels]
            model.partial_fit(table.iloc[part], *series, **{} if i else first)
        return model.spec_, model

    models |= {"one call": partly(), "parts": partly(1, 2, 130), "row by row": partly(*range(1, len(x)))}
    one, many = (getattr(river, face)(**given, **classes) for _ in range(2))
    for i, row in enumerate(table.to_dict("records")):
        one.learn_one(row, *(each[i].item() for each in labels))
        if not hasattr(many, "learn_many"):
            many.learn_one(row)
    if hasattr(many, "learn_many"):
        many.learn_many(table, *map(pandas.Series, labels))
    models |= {"River": (one.spec_, one), "River, frames": (many.spec_, many)}
    contents = {name: made.model_dump(exclude={"label": {"column"}}) for name, (made, _) in models.items()}
    assert [name for name in models if contents[name] != contents["csv"]] == []
    assert [name for name, (_, model) in models.items() if learned(model) != learned(models["csv"][1])] == []
