"""Does choosing a basis cost more with more rows?  EFVS, lazy, from 10^4 to 10^7 rows in memory; SGMA and EFVS of all rows beside it.

    python -m benchmarks.host.flat_cost [--rounds 5] [-o docs] [--quick] [--show]

Rows of 16 float32 numbers: 40 clusters of different widths on a plane of 6 dimensions, with noise; Gaussian kernel, 2 sigma^2 =
D / 2; n = 60, 59 candidates, 59 points.  Sizes take turns of some tenths of a second, with other seeds for each run: "seconds" is
the wall clock for a vector, "cpu" the thread's time, means over a turn, medians over the rounds; "first" is the wall clock of
the first run of a turn, when the table has not been touched since the turn before.  "evaluations" are kernel values for a
vector, "megabytes" the most that was allocated while choosing, "delta" the mean relative error of 20,000 rows drawn from all.
Contenders that keep something for each row stop at the sizes that they can afford here.

Writes flat-cost.csv to the output folder.  The 10^7 rows take 640 MB.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables import PAGE, Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import make_selector
from pykernel.rows import as_rows

DIM, N, ROUNDS = 16, 60, 5
TURN_SECONDS = 0.5
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
CONTENDERS: dict[str, tuple[str, dict[str, Any], int]] = {
    "efvs, lazy": ("efvs", {"lazy": True}, 10_000_000),
    "efvs, all rows kept": ("efvs", {"lazy": False}, 1_000_000),
    "sgma": ("sgma", {}, 100_000),
}
"""Name: method, options, largest l."""
COLUMNS = ("method", "l", "n", "evaluations", "seconds", "cpu", "first", "megabytes", "delta", "rounds")


def data(l: int) -> np.ndarray:
    """(l, 16) float32; the first rows of a larger table are not those of a smaller one, but all are drawn alike."""
    rng = np.random.default_rng(0)
    centres, widths = rng.normal(size=(40, 6)), rng.uniform(0.1, 0.6, 40)
    turned = np.linalg.qr(rng.normal(size=(DIM, 6)))[0].T * 2
    x = np.empty((l, DIM), np.float32)
    for start in range(0, l, 2**18):
        some = x[start : start + 2**18]
        which = rng.integers(40, size=len(some))
        inside = centres[which] + widths[which, None] * rng.standard_normal((len(some), 6))
        some[:] = inside @ turned + 0.15 * rng.standard_normal((len(some), DIM))
    return x


def run(name: str, x: np.ndarray, seed: int) -> Basis:
    method, options, _ = CONTENDERS[name]
    kernel = MercerKernel("gaussian", gamma=2 / DIM)
    selector = make_selector(method, as_rows(x), kernel, N, seed=seed, candidates=59, points=59, **options)
    while selector.step():
        pass
    return selector.basis()


def take_turn(name: str, x: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Seconds of a run by the wall clock and the CPU's, and of the first run."""
    start, cpu, runs, first = time.perf_counter(), time.thread_time(), 0, 0.0
    while time.perf_counter() - start < TURN_SECONDS or not runs:
        run(name, x, seed + runs)
        runs += 1
        first = first or time.perf_counter() - start
    return (time.perf_counter() - start) / runs, (time.thread_time() - cpu) / runs, first


def measure(sizes: Sequence[int], rounds: int, tick: Any) -> list[dict[str, Any]]:
    tables = {l: data(l) for l in sizes}
    jobs = [(name, l) for name, (_, _, most) in CONTENDERS.items() for l in sizes if l <= most]
    found: dict[tuple[str, int], list[tuple[float, float, float]]] = {job: [] for job in jobs}
    for turn in range(rounds):
        for job in jobs:
            found[job].append(take_turn(job[0], tables[job[1]], 1000 * turn))
            tick(f"{job[0]}, l = {job[1]:,}")
    rows = []
    for name, l in jobs:
        tracemalloc.start()
        basis = run(name, tables[l], 0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sample = np.random.default_rng(1).integers(l, size=20_000)
        n = len(basis)
        wall, cpu, first = np.median(found[name, l], axis=0) / n
        rows.append(
            {
                "method": name,
                "l": l,
                "n": n,
                "evaluations": f"{basis.evaluations / n:.1f}",
                "seconds": f"{wall:.3g}",
                "cpu": f"{cpu:.3g}",
                "first": f"{first:.3g}",
                "megabytes": f"{peak / 2**20:.2f}",
                "delta": f"{basis.residual(tables[l][sample]).mean():.4f}",
                "rounds": rounds,
            }
        )
        tick(f"{name}, l = {l:,}: memory")
    return rows


def tables(rows: Rows) -> dict[str, str]:
    heads = ["", "l", "kernel values for a vector", "wall clock", "CPU", "first run", "memory", "δ"]
    lines = []
    for row in rows:
        cells = [f"{1e3 * float(row[name]):.3g} ms" for name in ("seconds", "cpu", "first")]
        memory = f"{float(row['megabytes']):,.1f} MB"
        lines.append(
            [row["method"], f"{int(row['l']):,}", f"{float(row['evaluations']):,.0f}", *cells, memory, row["delta"]]
        )
    return {"flat cost": markdown(heads, lines), "flat cost, in words": words(rows)}


def words(rows: Rows) -> str:
    lazy = [row for row in rows if row["method"] == "efvs, lazy"]
    values, seconds, cpu = ([float(row[name]) for row in lazy] for name in ("evaluations", "seconds", "cpu"))
    return (
        f"From {int(lazy[0]['l']):,} to {int(lazy[-1]['l']):,} rows, the lazy form's kernel values for a vector differ by a "
        f"factor of {max(values) / min(values):.3f}, its wall clock by {max(seconds) / min(seconds):.2f}, and its CPU time by {max(cpu) / min(cpu):.2f}.\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: does it work?")
    parser.add_argument("--show", action="store_true", help="measure nothing: the table from the CSV file")
    chosen = parser.parse_args(arguments)
    path = chosen.out / "flat-cost.csv"
    if chosen.show:
        rows = load(path)
    else:
        sizes, rounds = ((1000, 10_000), 1) if chosen.quick else (SIZES, chosen.rounds)
        with progress_bar() as bar, threadpool_limits(1):
            count = sum(l <= most for _, _, most in CONTENDERS.values() for l in sizes)
            task = bar.add_task("measuring", total=count * (rounds + 1))
            rows = save(path, measure(sizes, rounds, lambda name: bar.update(task, advance=1, description=name)))
    made = tables(rows)
    if chosen.out == DATA:
        page = PAGE.read_text(encoding="utf-8")
        publish({name: table for name, table in made.items() if f"<!-- {name} -->" in page})
    for name, table in made.items():
        print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main()
