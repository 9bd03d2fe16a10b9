"""A basis after rounds of exchanges against the greedy one: what it leaves out, how long that takes, and what it is worth.

    python -m benchmarks.host.swaps [--seeds 3] [-o docs/data] [--quick]

tr R / tr K over all rows, computed anew from the vectors.  Gaussian kernel, 2 sigma^2 = D / 2; the digits as they are, the bike
rentals standardised.  "worth": so many vectors more would the same method, without exchanges, need to leave out as little.  ms:
CPU time of one thread for the choice, and for the exchanges, beside other work.  "judged": rows that judge an exchange; fewer than
all where the Gram matrix does not fit.  Writes swaps.csv to the output folder and the table into docs/bases.md.
"""

from __future__ import annotations

import os

from benchmarks.papers.compared import select_basis
from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import basis_data
from benchmarks.tables import DOCS, Rows, markdown, publish, save
from pykernel.bases import swaps
from pykernel.bases.basis import Basis, residual_sums
from pykernel.bases.gram import MercerKernel
from pykernel.rows import Rows as Samples
from pykernel.rows import as_rows

PAGE = DOCS / "bases.md"
SETS = {"digits": ("Digits", None), "bikeshare": ("Bike rentals", 2**28)}
"""Of each set its name, and the bytes that exchanges may take; None: as many as usual, which is enough for all rows."""
METHODS = ("exhaustive", "sgma", "efvs", "rpcholesky", "uniform")
SIZES = (20, 60)
ROUNDS = (1, 2, 10)
MORE = 3
"""Bases without exchanges are followed to so many times as many vectors."""


def samples(name: str) -> Samples:
    data = basis_data.load(name)
    return as_rows((data if name == "digits" else data.standardised()).x)


def left_out(basis: Basis, rows: Samples) -> np.ndarray:
    sums = residual_sums(rows, basis)
    return np.asarray(sums / sums[0])


def runs(name: str, method: str, seed: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    rows, memory = samples(name), SETS[name][1]
    kernel = MercerKernel("gaussian", gamma=2 / rows.dim)
    longer = left_out(select_basis(rows, kernel, MORE * max(sizes), method, seed=seed), rows)
    found: list[dict[str, Any]] = []
    for n in sizes:
        start = time.process_time()
        plain = select_basis(rows, kernel, n, method, seed=seed)
        chosen = time.process_time() - start
        before = float(left_out(plain, rows)[-1])
        for rounds in ROUNDS:
            start = time.process_time()
            options = {} if memory is None else {"memory": memory}
            basis = swaps.refine(plain, rows, rounds, seed=seed, **options)
            spent = time.process_time() - start
            after = float(left_out(basis, rows)[-1])
            worth = int(np.argmax(longer <= after)) - n if longer[-1] <= after else MORE * max(sizes) - n
            judged = len(rows) if memory is None or 8 * len(rows) * (len(rows) + n) <= memory else swaps.JUDGES
            found.append(
                {"set": name, "method": method, "vectors": n, "rounds": rounds, "seed": seed, "judged": judged,
                 "greedy": before, "error": after, "worth": max(worth, 0), "least": int(longer[-1] > after),
                 "choice_ms": 1000 * chosen, "swaps_ms": 1000 * spent}
            )  # fmt: skip
            print(*found[-1].values(), sep="\t", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="the digits and 20 vectors; nothing is written to docs")
    arguments = parser.parse_args()
    sets, sizes = (["digits"], SIZES[:1]) if arguments.quick else (list(SETS), SIZES)
    found: list[dict[str, Any]] = []
    for name in sets:
        for method in METHODS:
            # a Gram matrix of all bike rentals is not for a quick look: exhaustive is measured on the digits
            if name == "bikeshare" and method == "exhaustive":
                continue
            for seed in range(1 if method == "exhaustive" or arguments.quick else arguments.seeds):
                found += runs(name, method, seed, sizes)
    if arguments.quick:
        return
    written = save(
        arguments.output / "swaps.csv",
        [{key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()} for row in found],
    )
    if arguments.output == DATA:
        publish({"swaps": table(written)}, PAGE)


def table(rows: Rows) -> str:
    """Means over the seeds, as in docs/bases.md."""

    def mean(some: Rows, key: str) -> float:
        return float(np.mean([float(row[key]) for row in some]))

    def cells(mine: Rows) -> list[str]:
        first = mine[0]
        cells = [f"{SETS[first['set']][0]}, {int(first['judged']):,}", f"`{first['method']}`", first["vectors"]]
        cells.append(f"{mean(mine, 'greedy'):.4f}")
        for rounds in ROUNDS:
            some = [row for row in mine if int(row["rounds"]) == rounds]
            more = "> " if any(int(row["least"]) for row in some) else ""
            cells.append(f"{mean(some, 'error'):.4f}; {more}{mean(some, 'worth'):.0f}; {mean(some, 'swaps_ms'):,.0f}")
        return [*cells, f"{mean(mine, 'choice_ms'):,.0f}"]

    groups: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        groups.setdefault((row["set"], row["method"], row["vectors"]), []).append(row)
    heads = [
        "rows that judge",
        "method",
        "vectors",
        "without",
        *(f"{rounds} rounds" for rounds in ROUNDS),
        "choice, ms",
    ]
    heads[4] = heads[4].removesuffix("s")
    return markdown(heads, [cells(mine) for mine in groups.values()])


if __name__ == "__main__":
    main()
