"""Prediction intervals on the raw streams of numbers: how many labels they cover, and how wide they are.

    python -m benchmarks.host.intervals          # docs/data/intervals.csv, and the tables in docs/online.md
    python -m benchmarks.host.intervals --show   # the tables of the file

coverage: part of the labels within the interval that was asked before the label was learned; rows count from the first on whose
interval the device knows.  after: the same of the 100 rows after the labels were mirrored at their mean, in the middle of the
stream.  width: mean width in standard deviations of the labels.

For krls-t two more are computed here from its variance v(x), which the device writes: z sqrt(v) alone, and the product's
interval, times sqrt(v(x) / mean v).
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks.host.first_results import DATA
from benchmarks.host.first_streams import REGRESSION, Stream, stream
from benchmarks.host.spectrum_front import EKF_WIDTH, NLMS_WIDTH
from benchmarks.tables import markdown, publish, save
from pykernel.algorithms.interval import INTERVAL_KNOWN, STRETCH_MOST
from pykernel.host.model import HostModel
from pykernel.spec.defaults import completed, width
from pykernel.spec.interval import PACE
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.stages import GAIN_HORIZON

COLUMNS = ("stream", "variant", "model", "level", "delay", "coverage", "after", "width")
VARIANTS = ("as is", "noise", "outliers", "drift")
LEVEL, OTHERS = 0.9, (0.5, 0.8, 0.95, 0.99)
DELAY = 24
AFTER = 100
FIRST = "krls-t"
ALONE, SHAPED = "krls-t, its variance alone", "krls-t, shaped by its variance"
HEADS = ["model", *VARIANTS, "after the drift", "width as is", "width with noise"]


def drift(x: np.ndarray, y: np.ndarray) -> Stream:
    """From the middle on, labels are mirrored at their mean."""
    later = np.arange(len(y)) >= len(y) // 2
    return x, np.where(later, 2 * y.mean() - y, y)


def contents(dim: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each family within the stages of a spec without a rule, but for the linear model beside waves."""
    base: dict[str, Any] = {
        "name": "first",
        "input": {"columns": [f"x{i}" for i in range(dim)]},
        "label": {"column": "y"},
    }
    stored = base | {"reduction": {"n_max": 32}}
    stages = {key: value for key, value in completed(stored).items() if key not in ("learning", "kernel", "reduction")}

    def wide(factor: float) -> dict[str, Any]:
        return stages | {"kernel": {"sigma": float(f"{factor * width(dim):.4g}")}}

    yield FIRST, stored
    yield "qklms", stored | {"target": {"ram": 1}}
    yield "klms", wide(1.0) | {"learning": {"rule": "klms"}, "reduction": {"technique": "nt"}}
    yield "spectrum-ekf", wide(EKF_WIDTH) | {"learning": {"rule": "spectrum-ekf"}}
    yield "spectrum-nlms", wide(NLMS_WIDTH) | {"learning": {"rule": "spectrum-nlms"}}
    least = {key: value for key, value in stages.items() if key != "linear"}
    least["label"] = {key: value for key, value in stages["label"].items() if key in ("column", "max_abs")}
    yield "rls", least | {"learning": {"rule": "rls", "forgetting": 0.999}}


def spec_of(content: dict[str, Any], level: float) -> Spec:
    return make_spec({**content, "interval": {"level": level}})


def scores(y: np.ndarray, lower: np.ndarray, upper: np.ndarray, variant: str) -> dict[str, str]:
    """What COLUMNS say of an interval; NaN where it is not known yet."""
    within, known, half = (y >= lower) & (y <= upper), np.isfinite(lower), len(y) // 2
    return {
        "coverage": f"{within[known].mean():.4f}",
        "after": f"{within[half : half + AFTER].mean():.4f}" if variant == "drift" else "",
        "width": f"{(upper - lower)[known].mean() / y.std():.4g}",
    }


def asked(spec: Spec, x: np.ndarray, y: np.ndarray, delay: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of a stream; NaN until they are known, which is when they first change."""
    ends = HostModel(spec).prequential(x, y, question="interval", delay=delay)[0].astype(float)
    ends[: int(np.argmax((ends != ends[0]).any(axis=1)))] = np.nan
    return ends[:, 0], ends[:, 1]


def shaped(y: np.ndarray, answers: np.ndarray, variance: np.ndarray, warmup: int) -> tuple[np.ndarray, np.ndarray]:
    """The product's interval, times sqrt(v(x) / mean v), from the first row on of which a variance is known."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    half, power, usual, s = np.full(len(y), np.nan), 0.0, 0.0, 0.0
    for count, t in enumerate(range(warmup + 1, len(y))):
        error = abs(y[t] - answers[t])
        rate = 2 / (min(count + 1, GAIN_HORIZON) + 1)
        if count >= INTERVAL_KNOWN:
            half[t] = z * math.sqrt(power * variance[t] / usual) * math.exp(s)
            pace = PACE * math.sqrt(GAIN_HORIZON / min(count + 1, GAIN_HORIZON))
            s = min(max(s + pace * ((error > half[t]) - (1 - LEVEL)), -STRETCH_MOST), STRETCH_MOST)
        power += rate * (error * error - power)
        usual += rate * (variance[t] - usual)
    return answers - half, answers + half


def of_variance(content: dict[str, Any], x: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    spec = make_spec(content)
    found = {question: HostModel(spec).prequential(x, y, question=question)[0] for question in ("predict", "variance")}
    answers, variance = (found[question].astype(float) for question in ("predict", "variance"))
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * np.sqrt(variance)
    half[: spec.input.warmup + INTERVAL_KNOWN] = np.nan
    yield ALONE, answers - half, answers + half
    yield SHAPED, *shaped(y, answers, variance, spec.input.warmup)


def rows_of(name: str, variant: str) -> Iterator[dict[str, Any]]:
    x, y = drift(*stream(name)) if variant == "drift" else stream(name, variant)

    def row(model: str, ends: tuple[np.ndarray, np.ndarray], level: float = LEVEL, delay: int = 0) -> dict[str, Any]:
        about = {"stream": name, "variant": variant, "model": model, "level": level, "delay": delay}
        return about | scores(y, *ends, variant)

    for model, content in contents(x.shape[1]):
        yield row(model, asked(spec_of(content, LEVEL), x, y))
        if model == FIRST:
            for level in OTHERS:
                yield row(model, asked(spec_of(content, level), x, y), level)
            yield row(model, asked(spec_of(content, LEVEL), x, y, DELAY), delay=DELAY)
            for called, *ends in of_variance(content, x, y):
                yield row(called, (ends[0], ends[1]))


def line(label: str, rows: list[dict[str, str]]) -> list[str]:
    """Medians, and in brackets the least and the most over the streams; geometric means of widths."""

    def told(column: str, variant: str) -> str:
        values = [float(row[column]) for row in rows if row["variant"] == variant]
        return f"{np.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"

    def mean(variant: str) -> str:
        return f"{math.exp(np.mean([math.log(float(r['width'])) for r in rows if r['variant'] == variant])):.3f}"

    return [
        label,
        *(told("coverage", variant) for variant in VARIANTS),
        told("after", "drift"),
        mean("as is"),
        mean("noise"),
    ]


def tables(rows: list[dict[str, str]]) -> dict[str, str]:
    plain = [row for row in rows if row["delay"] == "0"]
    models = {
        name: [r for r in plain if r["model"] == name and float(r["level"]) == LEVEL]
        for name in dict.fromkeys(r["model"] for r in plain)
    }
    first = [row for row in rows if row["model"] == FIRST]
    levels = {
        f"at {100 * level:g} %": [r for r in plain if r["model"] == FIRST and float(r["level"]) == level]
        for level in OTHERS
    }
    late = {f"labels {DELAY} rows late": [row for row in first if row["delay"] == str(DELAY)]}
    return {
        "intervals": markdown(HEADS, [line(name, own) for name, own in models.items()]),
        "interval-levels": markdown([FIRST, *HEADS[1:]], [line(name, own) for name, own in (levels | late).items()]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the tables of the file")
    path = DATA / "intervals.csv"
    if not parser.parse_args().show:
        rows = list[dict[str, Any]]()
        for name in REGRESSION:
            for variant in VARIANTS:
                rows += rows_of(name, variant)
            print(name, flush=True)
        save(path, rows)
    with path.open() as file:
        made = tables(list(csv.DictReader(file)))
    publish(made, DATA.parent / "online.md")
    print(*made.values(), sep="\n")


if __name__ == "__main__":
    main()
