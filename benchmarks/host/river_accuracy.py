"""Accuracy beside River's models, on data that comes with River: each sample is predicted, then learned.

    python -m benchmarks.host.river_accuracy       # docs/data/river-accuracy.csv, and the table in docs/guide/river.md

All models have their defaults.  River's get inputs behind its StandardScaler, as its own examples do.  What draws
numbers has seed 0.  error: of numbers the mean absolute error, of classes the part that is wrong, over all samples.
bytes: what the generated C keeps; of River, what its models say of their memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.gen.project import build

FILE = DATA / "river-accuracy.csv"


def streams() -> dict[str, tuple[bool, Callable[[], Iterable[Any]]]]:
    """Name: (whether labels are classes, the samples)."""
    from river import datasets

    return {
        "TrumpApproval": (False, datasets.TrumpApproval),
        "ChickWeights": (False, datasets.ChickWeights),
        "Friedman": (False, lambda: datasets.synth.Friedman(seed=0).take(3000)),
        "FriedmanDrift": (
            False,
            lambda: datasets.synth.FriedmanDrift(drift_type="gra", position=(1000, 2000), seed=0).take(3000),
        ),
        "Phishing": (True, datasets.Phishing),
        "Bananas": (True, datasets.Bananas),
        "ImageSegments": (True, datasets.ImageSegments),
    }


def models(classes: list[Any] | None) -> dict[str, Any]:
    from river import linear_model, neighbors, preprocessing, tree

    from pykernel.river import Classifier, Regressor

    def scaled(model: Any) -> Any:
        return preprocessing.StandardScaler() | model

    seed = {"engine": (neighbors.SWINN, {"seed": 0})}
    if classes is None:
        return {
            "pykernel": Regressor(),
            "LinearRegression": scaled(linear_model.LinearRegression()),
            "KNN": scaled(neighbors.KNNRegressor().clone(seed)),
            "HoeffdingAdaptiveTree": scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=0)),
        }
    linear = linear_model.LogisticRegression() if len(classes) == 2 else linear_model.SoftmaxRegression()
    return {
        "pykernel": Classifier(classes),
        "LinearRegression": scaled(linear),
        "KNN": scaled(neighbors.KNNClassifier().clone(seed)),
        "HoeffdingAdaptiveTree": scaled(tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
    }


def of(name: str, classes: bool, samples: list[Any]) -> Iterable[dict[str, Any]]:
    known = list(dict.fromkeys(y for _, y in samples)) if classes else None
    for called, model in models(known).items():
        error = 0.0
        for x, y in samples:
            said = model.predict_one(x)
            error += (said != y) if classes else abs(said - y)
            model.learn_one(x, y)
        own = called == "pykernel"
        size = build(model.to_spec("measured")).figures["state_bytes"] if own else model._raw_memory_usage
        row = {"stream": name, "labels": "classes" if classes else "numbers", "rows": len(samples), "model": called}
        yield row | {"error": f"{error / len(samples):.4g}", "bytes": size}


def tables(rows: Rows) -> dict[str, str]:
    names = list(dict.fromkeys(row["model"] for row in rows))
    cells = []
    for stream in dict.fromkeys(row["stream"] for row in rows):
        found = {row["model"]: row for row in rows if row["stream"] == stream}
        first = found[names[0]]
        best = min(float(row["error"]) for row in found.values())
        shown = [
            f"**{row['error']}**" if float(row["error"]) == best else row["error"] for row in (found[n] for n in names)
        ]
        cells.append([stream, first["rows"], *shown, f"{int(first['bytes']):,}"])
    return {"river-accuracy": markdown(("stream", "samples", *names, "pykernel's bytes in C"), cells)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="only the table, of what was measured")
    if not parser.parse_args().show:
        found = []
        for name, (classes, make) in streams().items():
            for row in of(name, classes, list(make())):
                found.append(row)
                print(row, flush=True)
        save(FILE, found)
    publish(tables(load(FILE)))


if __name__ == "__main__":
    main()
