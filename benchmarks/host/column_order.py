"""How much the order of the columns decides: the default with its even start, and with one that a seed draws.

    python -m benchmarks.host.column_order          # docs/data/column-order.csv, and the table of docs/spectrum.md
    python -m benchmarks.host.column_order --show   # the same of the file

Streams: those of ``late_streams`` with two inputs or more, which chose nothing here; labels come at once.  Each stream is learned with
its columns in twelve orders.  error: geometric mean over the orders of the root mean square error of the second half, in standard
deviations of the labels.  spread: the largest of these errors over the smallest.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.host.first_results import minimal
from benchmarks.host.late_streams import NUMBERS, late
from benchmarks.tables import DATA, DOCS, Rows, load, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

ORDERS = 12
STARTS = {"drawn": 1, "even": 0}


def spec_of(dim: int, seed: int) -> Spec:
    content = minimal(dim, 0).model_dump(exclude_none=True)
    return make_spec(content | {"learning": {**content["learning"], "seed": seed}}) if seed else minimal(dim, 0)


def measured() -> list[dict[str, Any]]:
    found = []
    for name in NUMBERS:
        x, y = late(name)
        dim, half = x.shape[1], len(y) // 2
        for start, seed in STARTS.items() if dim > 1 else ():
            errors = []
            for order in range(ORDERS):
                columns = np.random.default_rng(order).permutation(dim)
                answers = HostModel(spec_of(dim, seed)).prequential(x[:, columns], y)[0].ravel().astype(float)
                errors.append(np.sqrt(np.nanmean((answers - y)[half:] ** 2)) / np.std(y))
            found.append({
                "stream": name, "rows": len(y), "inputs": dim, "start": start,
                "error": f"{np.exp(np.mean(np.log(errors))):.4g}", "spread": f"{max(errors) / min(errors):.4f}",
            })  # fmt: skip
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", action="store_true")
    path = DATA / "column-order.csv"
    rows = load(path) if parser.parse_args().show else save(path, measured())
    publish({"column-order": table(rows)}, DOCS / "spectrum.md")
    print(table(rows))


if __name__ == "__main__":
    main()
