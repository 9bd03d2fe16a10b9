"""The default where labels come late, on streams that chose none of its constants: ``late_streams``, which says how its data come.

    python -m benchmarks.host.late_labels          # docs/data/late-labels.csv, and the table in docs/reference/rules.md
    python -m benchmarks.host.late_labels --show   # the table of what was measured

Each row is asked, its label expected, and the row so many rows before learned.  error: that of ``first_results``, over the second half
of the rows, of the default and of recursive least squares on raw inputs (of classes, of the better one of both linear models); last: of the
default with the label that was known last as an input, ``[mixture] last``; covered: the part of the labels of that half within the intervals of 0.9.
"""

from __future__ import annotations

import argparse
import math
from multiprocessing import Pool
from typing import Any

import numpy as np

from benchmarks.host.first_results import error_of, minimal
from benchmarks.host.late_streams import CLASSES, NUMBERS, late
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.host.simple import linear_specs

PATH = DATA / "late-labels.csv"
DELAYS = (0, 3, 24, 168)


def rows_of(name: str) -> list[dict[str, Any]]:
    (x, y), found = late(name), []
    classes = int(y.max()) + 1 if name in CLASSES else 0
    asked, spec = "classify" if classes else "predict", minimal(x.shape[1], classes)
    linear = {k: v for k, v in linear_specs(spec).items() if classes or "raw" in k}
    for delay in DELAYS:

        def error(model: Any, delay: int = delay) -> float:
            return error_of(HostModel(model).prequential(x, y, delay=delay, question=asked)[0], y, classes)

        row = {"stream": name, "kind": "classes" if classes else "numbers", "rows": len(y), "inputs": x.shape[1]}
        row |= {"delay": delay, "default": f"{error(spec):.6g}", "linear": f"{min(map(error, linear.values())):.6g}"}
        half, covered, last = len(y) // 2, "", ""
        if not classes:
            ends = HostModel(spec_with_interval(x.shape[1])).prequential(x, y, delay=delay, question="interval")[0]
            last = f"{error(minimal(x.shape[1], 0, mixture={'last': delay + 1})):.6g}"
            covered = f"{np.mean((ends[half:, 0] <= y[half:]) & (y[half:] <= ends[half:, 1])):.4f}"
        found.append(row | {"covered": covered, "last": last})
    return found


def spec_with_interval(dim: int) -> Any:
    return minimal(dim, 0, interval={"level": 0.9})


def measure() -> Rows:
    with Pool(2) as pool:
        return [row for rows in pool.imap(rows_of, [*NUMBERS, *CLASSES]) for row in rows]


def table(rows: Rows) -> str:
    lines = []
    for kind in ("numbers", "classes"):
        for delay in DELAYS:
            own = [row for row in rows if row["kind"] == kind and int(row["delay"]) == delay]
            least = 1 / int(own[0]["rows"]) if kind == "classes" else 1e-12
            each, last = (
                np.array([max(float(row[of]), least) / max(float(row["linear"]), least) for row in own if row[of]])
                for of in ("default", "last")
            )
            cells = [f"{value:.2f}" for value in (mean(each), each.max())]
            inside = np.array([float(row["covered"]) for row in own if row["covered"]])
            told = [f"{np.median(inside):.3f}", f"{inside.min():.3f}"] if len(inside) else ["", ""]
            told += [f"{mean(last):.2f}", f"{last.max():.2f}"] if len(last) else ["", ""]
            lines.append([f"{len(own)} of {kind}", str(delay), *cells, str(int((each > 1.05).sum())), *told])
    heads = ["streams", "rows late", "geometric mean", "worst", "above 1.05", "inside, median", "least"]
    return markdown([*heads, "with `last`, geometric mean", "worst"], lines)


def mean(ratios: np.ndarray) -> float:
    return math.exp(float(np.mean(np.log(ratios))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    if not parser.parse_args().show:
        save(PATH, measure())
    made = {"late-labels": table(load(PATH))}
    publish(made)
    print(*made.values(), sep="\n")


if __name__ == "__main__":
    main()
