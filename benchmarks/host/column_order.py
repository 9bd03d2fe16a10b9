"""How much the order of the columns decides: the default with its even start, and with one that a seed draws.

    python -m benchmarks.host.column_order          # column-order.csv and chosen-seed.csv in docs/data
    python -m benchmarks.host.column_order --show   # the tables of these files

Streams: those of ``late_streams`` with two inputs or more, which chose nothing here; labels come at once.  Each stream is learned with
its columns in twelve orders.  error: geometric mean over the orders of the root mean square error of the second half, in standard
deviations of the labels.  spread: the largest of these errors over the smallest.

chosen-seed.csv: in the given order of columns, seeds 0 to 5; errors of the first half without its first quarter, and of the second half.
What choosing a seed is worth: the one with the smallest first error, over seed 0, by the second.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.host.first_results import minimal
from benchmarks.host.late_streams import NUMBERS, late
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

ORDERS, SEEDS = 12, 6
STARTS = {"drawn": 1, "even": 0}


def spec_of(dim: int, seed: int) -> Spec:
    content = minimal(dim, 0).model_dump(exclude_none=True)
    return make_spec(content | {"learning": {**content["learning"], "seed": seed}}) if seed else minimal(dim, 0)


def error(spec: Spec, x: np.ndarray, y: np.ndarray, rows: slice) -> float:
    answers = HostModel(spec).prequential(x, y)[0].ravel().astype(float)
    return float(np.sqrt(np.nanmean((answers - y)[rows] ** 2)) / np.std(y))


def measured() -> list[dict[str, Any]]:
    found = []
    for name in NUMBERS:
        x, y = late(name)
        dim, second = x.shape[1], slice(len(y) // 2, None)
        for start, seed in STARTS.items() if dim > 1 else ():
            orders = (np.random.default_rng(order).permutation(dim) for order in range(ORDERS))
            errors = [error(spec_of(dim, seed), x[:, columns], y, second) for columns in orders]
            found.append({
                "stream": name, "rows": len(y), "inputs": dim, "start": start,
                "error": f"{np.exp(np.mean(np.log(errors))):.4g}", "spread": f"{max(errors) / min(errors):.4f}",
            })  # fmt: skip
    return found


def of_seeds() -> list[dict[str, Any]]:
    found = []
    for name in NUMBERS:
        x, y = late(name)
        half, dim = len(y) // 2, x.shape[1]
        for seed in range(SEEDS):
            first, second = (
                f"{error(spec_of(dim, seed), x, y, rows):.5g}" for rows in (slice(half // 4, half), slice(half, None))
            )
            found.append({"stream": name, "seed": seed, "first": first, "second": second})
    return found


def table(rows: Rows) -> str:
    made, drawn = [], {row["stream"]: float(row["error"]) for row in rows if row["start"] == "drawn"}
    for start in STARTS:
        chosen = [row for row in rows if row["start"] == start]
        spread = np.array([float(row["spread"]) for row in chosen])
        over = np.array([float(row["error"]) / drawn[row["stream"]] for row in chosen])
        cells = [
            *(f"{value:.2f}" for value in (np.median(spread), np.quantile(spread, 0.9), spread.max())),
            *(f"{value:.3f}" for value in (np.exp(np.mean(np.log(over))), over.min(), over.max())),
        ]
        made.append([start, str(len(chosen)), *cells])
    titles = ["worst over best order, median", "nine in ten below", "most", "error over drawn", "least", "most"]
    return markdown(["first frequencies", "streams", *titles], made)


def worth(rows: Rows) -> str:
    """What choosing among the first seeds is worth."""
    first, second = (
        np.array([[float(row[half]) for row in rows if row["seed"] == str(seed)] for seed in range(SEEDS)])
        for half in ("first", "second")
    )
    made = []
    for tried in (2, 4, SEEDS):
        chosen = np.take_along_axis(second, first[:tried].argmin(axis=0)[None], 0)[0] / second[0]
        known = second[:tried].min(axis=0) / second[0]
        cells = [f"{np.exp(np.mean(np.log(over))):.3f}" for over in (chosen, known)]
        made.append([str(tried), *cells, f"{chosen.min():.2f}", f"{chosen.max():.2f}"])
    return markdown(["seeds tried", "error over seed 0", "if one knew the best", "least", "most"], made)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", action="store_true")
    show, tables = parser.parse_args().show, {}
    for name, made, shown in (("column-order", measured, table), ("chosen-seed", of_seeds, worth)):
        path = DATA / f"{name}.csv"
        tables[name] = shown(load(path) if show else save(path, made()))
    publish(tables)
    print(*tables.values(), sep="\n\n")


if __name__ == "__main__":
    main()
