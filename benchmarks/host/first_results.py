"""First results: a spec that names no rule, and the estimator without parameters, on raw streams.

    python -m benchmarks.host.first_results          # docs/data/first-results.csv, and its table in docs/reference/rules.md
    python -m benchmarks.host.first_results --show   # the table of the file

Each row is predicted, then learned, in float32.  error: of numbers the root mean square error, of classes the part that
is wrong, over the second half of the rows.  Data is raw.  state_bytes: what the device keeps.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from benchmarks.host.first_streams import CLASS_VARIANTS, CLASSES, REGRESSION, VARIANTS, stream
from benchmarks.tables import DATA, load, markdown, publish, save
from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.host.simple import LastAndMajority, LastAndMean, linear_specs
from pykernel.spec.model import Spec, make_spec

FILE = DATA / "first-results.csv"
COLUMNS = ("stream", "variant", "predictor", "error", "state_bytes", "microseconds", "refused_in_a_row")
LINEAR = ("linear model", "linear model, raw inputs")
SIMPLE = ("running mean", "last label", *LINEAR)
FIRST = 50
"""Rows that the estimator is fitted to before it goes on row by row."""


SMALL = {"target": {"ram": 1}}
"""Too little for any model: the spec without a rule gets the smallest one."""


def minimal(dim: int, classes: int, **more: Any) -> Spec:
    """A name, columns and a label."""
    label: dict[str, Any] = {"column": "y"} | ({"classes": [str(i) for i in range(classes)]} if classes else {})
    return make_spec({"name": "first", "input": {"columns": [f"x{i}" for i in range(dim)]}, "label": label} | more)


def streak(statuses: np.ndarray) -> int:
    """Most samples that were refused in a row."""
    taken = np.flatnonzero(statuses >= 0)
    return int(np.diff(np.concatenate([[-1], taken, [len(statuses)]])).max()) - 1


def learned(model: HostModel, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, int]:
    """Answers, microseconds a sample, and refusals in a row."""
    model.prequential(x[:2], y[:2])
    model.reset()
    start = time.perf_counter()
    answers, statuses = model.prequential(x, y, question="classify" if model.spec.label.classes else "predict")
    return answers, 1e6 * (time.perf_counter() - start) / len(x), streak(statuses)


def of_estimator(x: np.ndarray, y: np.ndarray, classes: int) -> tuple[np.ndarray, HostModel]:
    """Answers to all rows but the first, by the estimator's own model."""
    kind: Any = BudgetedKernelClassifier() if classes else BudgetedKernelRegressor()
    known = {"classes": np.arange(classes)} if classes else {}
    kind.partial_fit(x[:FIRST], y[:FIRST], **known)
    answers, _ = kind.model_.prequential(x[FIRST:], y[FIRST:], question="classify" if classes else "predict")
    return np.concatenate([np.full(FIRST, np.nan), answers.astype(float)]), kind.model_


def error_of(answers: np.ndarray, y: np.ndarray, classes: int) -> float:
    half = len(y) // 2
    answers, truth = answers[half:], y[half:]
    if classes:
        return float((answers != truth).mean())
    return math.sqrt(float(np.mean((np.nan_to_num(answers.astype(float)) - truth) ** 2)))


SIZES: dict[str, int] = {}


def state_bytes(spec: Spec) -> int:
    written = spec.to_toml()
    if written not in SIZES:
        SIZES[written] = build(spec).figures["state_bytes"]
    return SIZES[written]


def rows_of(name: str, variant: str) -> Iterator[dict[str, Any]]:
    """What the product and the simple predictors do on a stream."""
    x, y = stream(name, variant)
    classes = int(y.max()) + 1 if name in CLASSES else 0
    y = y.astype(np.int32) if classes else y

    def row(predictor: str, answers: np.ndarray, size: int, us: float = math.nan, refused: int = 0) -> dict[str, Any]:
        values = (name, variant, predictor, error_of(answers, y, classes), size, us, refused)
        return dict(zip(COLUMNS, values, strict=True))

    spec = minimal(x.shape[1], classes)
    yield row("spec without a rule", *_sized(spec, learned(HostModel(spec), x, y)))
    small = minimal(x.shape[1], classes, **SMALL)
    yield row("spec for a small target", *_sized(small, learned(HostModel(small), x, y)))
    answers, model = of_estimator(x, y, classes)
    yield row("estimator without parameters", answers, state_bytes(model.spec))
    if classes:
        last, mean = LastAndMajority(classes).step(y)
        yield row("running mean", mean, 4 * classes)
        yield row("last label", last, 4)
    else:
        last, mean = LastAndMean().step(y)
        yield row("running mean", mean, 8)
        yield row("last label", last, 4)
    for called, linear in linear_specs(spec).items():
        yield row(called, *_sized(linear, learned(HostModel(linear), x, y)))


def _sized(spec: Spec, found: tuple[np.ndarray, float, int]) -> tuple[np.ndarray, int, float, int]:
    answers, us, refused = found
    return answers, state_bytes(spec), us, refused


def all_streams() -> Iterator[tuple[str, str]]:
    yield from product(REGRESSION, VARIANTS)
    yield from product(CLASSES, CLASS_VARIANTS)


def measure() -> None:
    rows = [
        {**row, "error": f"{row['error']:.6g}", "microseconds": f"{row['microseconds']:.2f}"}
        for name, variant in all_streams()
        for row in rows_of(name, variant)
    ]
    save(FILE, rows)


@functools.cache
def read() -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """By stream and variant, by predictor."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in load(FILE):
        found.setdefault((row["stream"], row["variant"]), {})[row["predictor"]] = row
    return found


def ratios(predictor: str, classes: bool, against: tuple[str, ...]) -> np.ndarray:
    """Error over the least of others', of each stream and variant."""
    made = []
    for (name, _), rows in read().items():
        if (name in CLASSES) == classes and predictor in rows and all(other in rows for other in against):
            least = min(float(rows[other]["error"]) for other in against)
            made.append(float(rows[predictor]["error"]) / max(least, 1e-12))
    return np.array(made)


def table() -> str:
    """Of each predictor the ratios of its errors to the best simple one, and its bytes."""
    found = read()
    names = dict.fromkeys(name for rows in found.values() for name in rows)
    made = []
    for name in names:
        line = [name]
        for classes in (False, True):
            each = ratios(name, classes, SIMPLE)
            line += (
                [f"{q:.2f}" for q in (np.median(each), np.quantile(each, 0.9), each.max())] if len(each) else [""] * 3
            )
        sizes = [float(rows[name]["state_bytes"]) for rows in found.values() if name in rows]
        made.append([*line, f"{np.median(sizes):,.0f}"])
    heads = ["", *(f"{what}: {of}" for what in ("numbers", "classes") for of in ("median", "90 %", "worst")), "bytes"]
    return markdown(heads, made)


def show() -> None:
    publish({"first-results": table()})
    print(table())
    worst = max(int(row["refused_in_a_row"]) for rows in read().values() for row in rows.values())
    print(f"most samples that were refused in a row: {worst}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the table of the file")
    if not parser.parse_args().show:
        measure()
    show()


if __name__ == "__main__":
    main()
