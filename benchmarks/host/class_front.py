"""Rules for classes, each alone and with the linear expert, on the raw streams of classes: error and bytes.

    python -m benchmarks.host.class_front          # docs/data/class-front.csv, and the table in docs/spectrum.md
    python -m benchmarks.host.class_front --show   # the table of the file

Each model sees the rows as they come, in running standard deviations; river's softmax regression, too, by its own scaler.
error: the part of the second half of a stream that is wrong.  The table divides it by the error of the best simple predictor of
docs/data/first-results.csv: the most frequent class, the last one, and both linear models.  An error counts at least half of
one row.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.host.first_results import DATA, SIMPLE, error_of, learned, read
from benchmarks.host.first_streams import CLASS_VARIANTS, CLASSES, stream
from benchmarks.tables import markdown, publish
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.defaults import completed, width
from pykernel.spec.model import Spec, make_spec

COLUMNS = ("stream", "variant", "model", "error", "ram_bytes")
MODELS: dict[str, dict[str, Any]] = {
    "krls-t, 32 vectors": {"reduction": {"n_max": 32}},
    "qklms, 32 vectors": {"target": {"ram": 1}, "reduction": {"n_max": 32}},
    "spectrum-softmax, 4": {"learning": {"rule": "spectrum-softmax", "features": 4}},
    "spectrum-softmax, 8": {"learning": {"rule": "spectrum-softmax", "features": 8}},
    "spectrum-softmax, 16": {"learning": {"rule": "spectrum-softmax"}},
    "spectrum-softmax, 32": {"learning": {"rule": "spectrum-softmax", "features": 32}},
    "spectrum-nlms, 16": {"learning": {"rule": "spectrum-nlms", "features": 16}},
    "spectrum-ekf, 8": {"learning": {"rule": "spectrum-ekf", "features": 8}},
}
"""The first two are specs without a rule, but with a budget: what defaults make of them.  What they make of a spec without a budget
is spectrum-softmax with the linear expert (``pykernel/spec/recipes.toml``)."""
RIVER = "river's softmax regression"
SHOWN = (8, 3)
"""Inputs and classes of the model whose bytes the table has."""


def models(dim: int, classes: int) -> Iterator[tuple[str, Spec]]:
    base: dict[str, Any] = {
        "name": "first",
        "input": {"columns": [f"x{i}" for i in range(dim)]},
        "label": {"column": "y", "classes": [str(i) for i in range(classes)]},
    }
    inputs = completed(base)["input"]
    for name, more in MODELS.items():
        content = base | more
        if "learning" in more:
            content |= {"input": inputs, "kernel": {"sigma": width(dim)}}
        yield name, make_spec(dict(content))
        yield f"{name}, with a linear expert", make_spec(content | {"mixture": {}})


def river_answers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    from river import linear_model, preprocessing

    model, answers = preprocessing.StandardScaler() | linear_model.SoftmaxRegression(), np.zeros(len(y))
    for t in range(len(y)):
        sample = dict(enumerate(x[t].tolist()))
        answers[t] = model.predict_one(sample) or 0
        model.learn_one(sample, int(y[t]))
    return answers


def measure() -> list[dict[str, Any]]:
    rows = []
    for name in CLASSES:
        for variant in CLASS_VARIANTS:
            x, y = stream(name, variant)
            count = int(y.max()) + 1
            y = y.astype(np.int32)
            found = [(RIVER, error_of(river_answers(x, y), y, count), "")]
            for called, spec in models(x.shape[1], count):
                answers, _, _ = learned(HostModel(spec), x, y)
                size = str(build(spec).figures["ram_bytes"]) if variant == "as is" else ""
                found.append((called, error_of(answers, y, count), size))
            for called, error, size in found:
                rows.append(dict(zip(COLUMNS, (name, variant, called, f"{error:.6g}", size), strict=True)))
            print(name, variant, flush=True)
    return rows


def ratios(rows: list[dict[str, Any]], model: str) -> dict[tuple[str, str], float]:
    """Error over the best simple one, by stream and variant."""
    simple, found = read(), {}
    for row in rows:
        if row["model"] == model:
            where = row["stream"], row["variant"]
            least = 0.5 / (len(stream(*where)[1]) / 2)
            best = min(float(simple[where][each]["error"]) for each in SIMPLE)
            found[where] = max(float(row["error"]), least) / max(best, least)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    sizes = {name: f"{build(spec).figures['ram_bytes']:,}" for name, spec in models(*SHOWN)}
    lines = []
    for name in dict.fromkeys(row["model"] for row in rows):
        each = ratios(rows, name)
        line = [name]
        for variant in CLASS_VARIANTS:
            own = [value for (_, of), value in each.items() if of == variant]
            line.append(f"{math.exp(float(np.mean(np.log(own)))):.3f}")
        every = np.array(list(each.values()))
        lines.append([*line, f"{np.median(every):.2f}", f"{every.max():.2f}", sizes.get(name, "")])
    return markdown(["model", *CLASS_VARIANTS, "median", "worst", "RAM, D = {}, {} classes".format(*SHOWN)], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the table of the file")
    path = DATA / "class-front.csv"
    if not parser.parse_args().show:
        rows = measure()
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    with path.open() as file:
        made = table(list(csv.DictReader(file)))
    publish({"class-front": made}, DATA.parent / "spectrum.md")
    print(made)


if __name__ == "__main__":
    main()
