"""A basis from shards against one machine's: what both leave out of all rows, how many kernel values they take.

    python -m benchmarks.host.sharding [--folder FOLDER] [--rows 200000] [-o docs] [--quick]

The data are those of million_rows.py, mixed as they come, and sorted by the first input, so that consecutive rows are alike.
"random": each row goes to a shard at random; "blocks": consecutive rows make a shard.  error: tr R / tr K over all rows,
exact, the mean over seeds; the ratio is to one machine's with the same method.  busiest: kernel values of the busiest
worker's share if each shard has a worker of its own, with the union.  Writes sharding.csv to the output folder and the table
into docs/bases.md.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.million_rows import KERNEL, PAGE, make
from benchmarks.tables import Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.select import select_basis
from pykernel.bases.sharding import residual_sums, select_sharded
from pykernel.rows import SomeRows, as_rows

SHARDS = (2, 4, 8, 16, 32)
METHODS = {"efvs": 60, "sgma": 30, "rpcholesky": 60}
"""And how many vectors."""
SEEDS = {"efvs": 3, "sgma": 1, "rpcholesky": 3}


def sorted_rows(folder: Path, file: str, rows: int) -> Path:
    """The first rows, sorted by the first input; made if they are not there."""
    path = folder / f"sorted-{rows}.npy"
    if not path.exists():
        x = as_rows(file).take(np.arange(rows)).astype(np.float32)
        np.save(path, x[np.argsort(x[:, 0], kind="stable")])
    return path


def error(rows: Any, basis: Any) -> float:
    left = residual_sums(rows, basis)
    return float(left[-1] / left[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=Path("/tmp/pykernel-million-rows"), help="where the data are kept"
    )
    parser.add_argument("--made", type=int, default=10_000_000, help="rows of the file there")
    parser.add_argument("--rows", type=int, default=200_000, help="how many of them are used")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--only", default=",".join(METHODS), help="methods; the other rows of the file stay")
    parser.add_argument("--quick", action="store_true", help="20,000 rows, and nothing is written to docs")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = arguments.made = 20_000
    only = arguments.only.split(",")
    file = make(arguments.folder, arguments.made)[".npy"]
    orders: dict[str, Any] = {
        "mixed": SomeRows(as_rows(file), 0, arguments.rows),
        "sorted": as_rows(sorted_rows(arguments.folder, file, arguments.rows)),
    }
    path = arguments.output / "sharding.csv"
    found = [row for row in load(path) if row["method"] not in only] if path.is_file() and not arguments.quick else []
    with progress_bar() as bar:
        task = bar.add_task("runs", total=sum(SEEDS[method] * (1 + 3 * len(SHARDS)) for method in only))
        for method in only:
            n, seeds = METHODS[method], range(SEEDS[method])
            ones = [select_basis(orders["mixed"], KERNEL, n, method, seed=seed) for seed in seeds]
            bar.advance(task, SEEDS[method])
            one = float(np.mean([error(orders["mixed"], basis) for basis in ones]))
            about = {"method": method, "rows": arguments.rows, "vectors": n}
            values = int(np.mean([basis.evaluations for basis in ones]))
            rows = [about | {"shards": 1, "order": "mixed", "split": "", "error": one, "ratio": 1.0, "values": values,
                             "busiest": values, "candidates": 0}]  # fmt: skip
            for shards in SHARDS:
                for order, split in (("mixed", "random"), ("sorted", "random"), ("sorted", "blocks")):
                    some = []
                    for seed in seeds:
                        some.append(
                            select_sharded(orders[order], KERNEL, n, shards, method=method, split=split, seed=seed,
                                           measure=None, jobs=1)  # type: ignore[arg-type]
                        )  # fmt: skip
                        bar.advance(task)
                    of_all = float(np.mean([error(orders[order], each.basis) for each in some]))
                    values = int(np.mean([each.basis.evaluations for each in some]))
                    union = some[0].candidates * (4096 + some[0].candidates)
                    rows.append(
                        about | {"shards": shards, "order": order, "split": split, "error": of_all, "ratio": of_all / one,
                                 "values": values, "busiest": (values - union) // shards + union,
                                 "candidates": some[0].candidates}
                    )  # fmt: skip
                    print(*rows[-1].values(), sep="\t", flush=True)
            found += [
                {key: f"{value:.5g}" if isinstance(value, float) else str(value) for key, value in row.items()}
                for row in rows
            ]
            if not arguments.quick:
                save(path, found)
    if not arguments.quick and arguments.output == DATA:
        publish({"sharding": table(load(path))}, PAGE)


def table(rows: Rows) -> str:
    """What is left out, in parts of one machine's, as in docs/bases.md."""
    lines = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        if not mine:
            continue
        one = mine[0]
        for order, split in (("mixed", "random"), ("sorted", "random"), ("sorted", "blocks")):
            cells = {int(row["shards"]): row for row in mine if (row["order"], row["split"]) == (order, split)}
            ratios = [f"{float(cells[shards]['ratio']):.3f}" for shards in SHARDS]
            lines.append([f"`{method}`, {one['vectors']}", f"{float(one['error']):.4f}", order, split, *ratios])
    return markdown(["method, vectors", "one machine", "rows", "shards", *(str(shards) for shards in SHARDS)], lines)


if __name__ == "__main__":
    main()
