"""Does anything of a spectrum grow in ten million rows of float32?

    python -m benchmarks.host.spectrum_stability           # docs/data/spectrum-stability.csv, docs/spectrum.md; two hours
    python -m benchmarks.host.spectrum_stability --show    # only the table of the file

Each row is predicted, then learned, in float32 and in float64.  The streams leave directions without inputs, or are far
from what a prior says; tests/algorithms learns the same ones with fewer rows.  Models are bare, or have the stages, the
linear expert and the held outliers of a spec without a rule.

refused: rows that float32 did not learn.  first, last: error from the first hundredth to the first tenth of the rows, and
of the last tenth; of numbers the root mean square, of classes the part that is wrong; "exactly" in float64.  least: the
smallest eigenvalue of P that twenty looks at the state found, in parts of its bound, (1 - lambda) P0.  frequency, weight:
the largest magnitudes that they found.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, load, markdown, publish
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

RESULTS = DATA / "spectrum-stability.csv"
ROWS = 10_000_000
LOOKS = 20
COLUMNS = (
    *("model", "stages", "stream", "rows", "refused", "first", "last", "first_exactly", "last_exactly"),
    *("least", "frequency", "weight"),
)
MODELS: dict[str, dict[str, Any]] = {
    "spectrum-ekf, 4 waves in blocks of 4": {"rule": "spectrum-ekf"},
    "spectrum-ekf, 8 waves in blocks of 8": {"rule": "spectrum-ekf", "features": 8, "block": 8},
    "spectrum-nlms, 8 waves": {"rule": "spectrum-nlms"},
    "spectrum-softmax, 16 waves": {"rule": "spectrum-softmax"},
}
CLASSES = 3
DIM = 3

Streams = Iterator[tuple[str, np.ndarray, np.ndarray]]


def streams_of_numbers(rng: np.random.Generator, n: int) -> Streams:
    """Streams that leave directions without inputs, or that are far from what a prior says: (name, inputs, labels)."""
    t = np.arange(n)
    normal, on = rng.normal(size=(n, DIM)), (t % 5000 < 200).astype(float)
    yield "constant", np.ones((n, DIM)), rng.normal(size=n)
    yield "collinear", np.repeat(normal[:, :1], DIM, 1), np.sin(normal[:, 0])
    yield "ramp", np.c_[t / 1e3, np.sin(t / 50), np.cos(t / 300)], np.sin(t / 77)
    yield "jumps", np.repeat(rng.integers(0, 9, (n // 500 + 1, DIM)), 500, 0)[:n], np.sin(t // 500)
    yield "tiny labels", normal, 1e-9 * rng.normal(size=n)
    yield "outliers", rng.standard_t(1.2, (n, DIM)), rng.standard_t(1.1, n)
    yield "steps", normal, np.where(t % 8000 < 4000, 1e-3, 1e5) * rng.normal(size=n)
    yield "bursts", normal * on[:, None], rng.normal(size=n) * on
    yield "sorted", np.sort(normal, axis=0), np.sin(3 * np.sort(normal[:, 0]))
    yield "bursts of a wave", normal * on[:, None], np.sin(3 * normal[:, 0] * on)


def streams_of_classes(rng: np.random.Generator, n: int, classes: int) -> Streams:
    """The same for classes: (name, inputs, classes)."""
    t = np.arange(n)
    normal, any_class = rng.normal(size=(n, DIM)), rng.integers(0, classes, n)
    on = (t % 5000 < 200).astype(float)
    order = np.argsort(normal[:, 0])
    by_wave = (np.sin(4 * normal[:, 0]) > 0).astype(int)
    yield "constant", np.ones((n, DIM)), any_class
    yield "collinear", np.repeat(normal[:, :1], DIM, 1), by_wave
    yield "bursts", normal * on[:, None], any_class
    yield "one class", normal, np.zeros(n, int)
    yield "one class, then another", normal, (t > n // 2).astype(int)
    yield "sorted", normal[order], by_wave[order]
    yield "chance", normal, any_class
    yield "separable", normal, (normal[:, 0] > 0).astype(int)
    yield "outliers", np.clip(rng.standard_t(1.1, (n, DIM)), -1e6, 1e6), any_class
    yield "steps", normal * np.where(t % 2000 < 1000, 1e-3, 1e3)[:, None], by_wave


def spec_of(learning: dict[str, Any], staged: bool, precision: str) -> Spec:
    """A model, bare or with what a spec without a rule has around its own."""
    soft = learning["rule"] == "spectrum-softmax"
    label: dict[str, Any] = {"classes": [str(i) for i in range(CLASSES)]} if soft else {"max_abs": 1e6}
    content: dict[str, Any] = {
        "name": "wave",
        "precision": precision,
        "input": {"dim": DIM, "max_abs": 1e6},
        "label": label,
        "kernel": {"sigma": 1.5},
        "learning": learning,
    }
    if staged:
        content["input"] |= {"standardise": True, "clip": 3.0, "outliers": "hold"}
        content["mixture"] = {}
        if not soft:
            content |= {"label": label | {"center": True, "gain": True, "clip": 5.0}, "linear": {}}
    return make_spec(content)


def least_eigenvalue(model: HostModel) -> float:
    """The smallest eigenvalue of P, in parts of its bound."""
    prior, found = np.asarray(model.spec.config.prior, float), math.inf
    for packed in model.memory.field("covariance").astype(np.float64):
        whole = np.zeros((len(prior), len(prior)))
        whole[np.tril_indices(len(prior))] = packed
        whole += np.tril(whole, -1).T
        found = min(found, float(np.linalg.eigvalsh(whole / np.sqrt(np.outer(prior, prior)))[0]))
    return found / (1 - model.spec.learning.forgetting)


def followed(spec: Spec, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """What a model does on a stream."""
    model = HostModel(spec)
    classes, filters = bool(spec.label.classes), spec.learning.rule == "spectrum-ekf"
    rows, refused, least, frequency, weight = len(x), 0, math.inf, 0.0, 0.0
    wrong = np.zeros(rows)
    ends = np.linspace(0, rows, LOOKS + 1).astype(int)
    for start, end in itertools.pairwise(ends):
        part = slice(start, end)
        answers, statuses = model.prequential(x[part], y[part], question="classify" if classes else "predict")
        refused += int((statuses < 0).sum())
        found = np.ravel(answers)
        wrong[part] = found != y[part] if classes else np.square(found.astype(float) - y[part])
        field = model.memory.field
        if filters:
            least = min(least, least_eigenvalue(model))
        frequency = max(frequency, float(np.abs(field("frequencies")).max()))
        weights = ("a", "b", "plane") if spec.learning.rule == "spectrum-softmax" else ("a", "b")
        weight = max(weight, *(float(np.abs(field(name)).max()) for name in weights))
    means = float(wrong[rows // 100 : rows // 10].mean()), float(wrong[-(rows // 10) :].mean())
    first, last = means if classes else map(math.sqrt, means)
    return {
        "refused": refused,
        "first": first,
        "last": last,
        "least": least if filters else "",
        "frequency": frequency,
        "weight": weight,
    }


def told(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def measure(rows: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(1)
    numbers = ((name, np.clip(x, -1e5, 1e5), np.clip(y, -1e6, 1e6)) for name, x, y in streams_of_numbers(rng, rows))
    for soft, streams in ((False, numbers), (True, streams_of_classes(np.random.default_rng(3), rows, CLASSES))):
        for stream, x, y in streams:
            for name, learning in MODELS.items():
                for staged in (False, True) if soft == (learning["rule"] == "spectrum-softmax") else ():
                    start = time.perf_counter()
                    one = followed(spec_of(learning, staged, "float32"), x, y)
                    other = followed(spec_of(learning, staged, "float64"), x, y)
                    one |= {"first_exactly": other["first"], "last_exactly": other["last"]}
                    one |= {"model": name, "stages": "all" if staged else "none", "stream": stream, "rows": rows}
                    row = {key: told(one[key]) for key in COLUMNS}
                    print(*row.values(), f"{time.perf_counter() - start:.0f} s", sep="; ", flush=True)
                    yield row


def table(rows: Rows) -> str:
    """Of each model the worst of all streams."""
    lines = []
    for name in MODELS:
        for stages in ("none", "all"):
            own = [row for row in rows if (row["model"], row["stages"]) == (name, stages)]
            # an error of nothing in both precisions is no growth
            least = [max(float(row["last_exactly"]), 1e-3 * float(row["first_exactly"]), 1e-12) for row in own]
            grown = max(float(row["last"]) / most for row, most in zip(own, least, strict=True))
            eigen = [float(row["least"]) for row in own if row["least"]]
            largest = [max(float(row[key]) for row in own) for key in ("frequency", "weight")]
            lines.append(
                [
                    f"`{name.split(',')[0]}`,{name.split(',')[1]}",
                    stages,
                    str(sum(int(row["refused"]) for row in own)),
                    f"{grown:.3f}",
                    f"{min(eigen):.3f}" if eigen else "",
                    *(f"{value:.3g}" for value in largest),
                ]
            )
    heads = [
        "model",
        "stages",
        "refused",
        "error in the last tenth, over float64's",
        "least eigenvalue of P over its bound",
    ]
    return markdown([*heads, "largest frequency", "largest weight"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--show", action="store_true", help="only write the table of the file")
    options = parser.parse_args()
    if not options.show:
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for row in measure(options.rows):
                writer.writerow(row)
                file.flush()
    made = table(load(RESULTS))
    if options.show or options.rows == ROWS:
        publish({"spectrum-stability": made}, DATA.parent / "spectrum.md")
    print(made)


if __name__ == "__main__":
    main()
