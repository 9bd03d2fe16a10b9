"""Conjugate gradients on K + ridge I: iterations without and with a basis as preconditioner.

    python -m benchmarks.host.preconditioner [--seeds 3] [-o docs] [--quick]

Real data, standardised; Gaussian kernel with 2 sigma^2 = d / 2; the right-hand side is white noise, which has a part in
every direction.  SciPy's cg, relative residual 1e-8.  An iteration is one product with K and, with a basis of n vectors, one
solve of O(l n).  Iterations are counted, and the same on any machine up to rounding; CPU seconds are of one thread: to
choose the basis, and to solve (set-up and iterations, K given).

Writes preconditioner.csv to the output folder, and the table into docs/reduced.md.
"""

from __future__ import annotations

import os

from benchmarks.papers.compared import select_basis
from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import cg

from benchmarks import basis_data
from benchmarks.papers.preconditioning import gram_operator, preconditioner
from benchmarks.tables import DOCS, Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError

PAGE = DOCS / "reduced.md"
SETS = {"abalone": 3000, "digits": 1797}
"""How many rows of each are taken, drawn with seed 0."""
SIZES = (50, 100, 200, 400)
METHODS = {"sgma": "SGMA, 59 candidates", "rpcholesky": "RPCholesky", "uniform": "uniform"}
RIDGES = (0.1, 0.001)
TOLERANCE = 1e-8
MOST = 20_000
"""Iterations after which is given up."""
COLUMNS = ("data", "rows", "ridge", "basis", "n", "seeds", "iterations", "least", "most", "trace", "chosen", "solved")


def problem(name: str) -> tuple[np.ndarray, MercerKernel, np.ndarray]:
    """Rows (l, d), the kernel, and the right-hand side (l,)."""
    x = basis_data.load(name).standardised().x
    rng = np.random.default_rng(0)
    x = x[rng.permutation(len(x))[: SETS[name]]]
    return x, MercerKernel("gaussian", gamma=2 / x.shape[1]), rng.normal(size=len(x))


def iterations(operator: Any, y: np.ndarray, inverse: Any = None) -> int:
    """How many cg takes; raises RuntimeError if it does not converge, or to something else."""
    count = 0

    def seen(_: np.ndarray) -> None:
        nonlocal count
        count += 1

    solution, status = cg(operator, y, rtol=TOLERANCE, M=inverse, callback=seen, maxiter=MOST)
    wrong = np.linalg.norm(operator @ solution - y) / np.linalg.norm(y)
    if status or wrong > 10 * TOLERANCE:
        raise RuntimeError(f"conjugate gradients: status {status}, relative residual {wrong:.1e}")
    return count


def measure(seeds: int, sets: list[str], sizes: tuple[int, ...], ridges: tuple[float, ...]) -> list[dict[str, Any]]:
    rows = []
    runs = len(sets) * (len(ridges) + len(METHODS) * len(sizes) * seeds * len(ridges))
    with progress_bar() as bar:
        task = bar.add_task("preconditioner", total=runs)
        for name in sets:
            x, kernel, y = problem(name)
            operators = {ridge: gram_operator(kernel, x, ridge) for ridge in ridges}
            same = {"data": name, "rows": len(x)}
            for ridge, operator in operators.items():
                _ = operator @ y  # K is computed once
                begin = time.thread_time()
                count = iterations(operator, y)
                solved = time.thread_time() - begin
                found = {"iterations": count, "least": count, "most": count, "trace": "1", "chosen": "0"}
                rows.append(
                    {**same, "ridge": ridge, "basis": "none", "n": 0, "seeds": 1, **found, "solved": f"{solved:.3f}"}
                )
                bar.advance(task)
            for method in METHODS:
                for n in sizes:
                    counts: dict[float, list[int]] = {ridge: [] for ridge in ridges}
                    solved_in: dict[float, list[float]] = {ridge: [] for ridge in ridges}
                    chosen, trace = [], []
                    for seed in range(seeds):
                        begin = time.thread_time()
                        basis = select_basis(x, kernel, n, method, seed=seed)
                        chosen.append(time.thread_time() - begin)
                        left = 1 - (basis.features(x) ** 2).sum() / len(x)
                        trace.append(left)
                        for ridge, operator in operators.items():
                            begin = time.thread_time()
                            inverse = preconditioner(basis, x, ridge)
                            counts[ridge].append(iterations(operator, y, inverse))
                            solved_in[ridge].append(time.thread_time() - begin)
                            bar.advance(task)
                    for ridge, found in counts.items():
                        values = {"iterations": int(np.median(found)), "least": min(found), "most": max(found)}
                        times = {"chosen": f"{np.median(chosen):.3f}", "solved": f"{np.median(solved_in[ridge]):.3f}"}
                        rows.append(
                            {**same, "ridge": ridge, "basis": method, "n": n, "seeds": seeds, **values}
                            | {"trace": f"{np.median(trace):.4g}", **times}
                        )  # fmt: skip
    return rows


def tables(rows: Rows) -> dict[str, str]:
    sizes = sorted({int(row["n"]) for row in rows} - {0})
    heads = [
        "data, rows",
        "ridge",
        "basis",
        *(f"n = {n}" for n in sizes),
        f"seconds, n = {sizes[-2 if len(sizes) > 1 else 0]}",
    ]
    middle = str(sizes[-2 if len(sizes) > 1 else 0])
    lines = []
    for name in dict.fromkeys(row["data"] for row in rows):
        here = [row for row in rows if row["data"] == name]
        for ridge in dict.fromkeys(row["ridge"] for row in here):
            plain = next(row for row in here if row["ridge"] == ridge and row["basis"] == "none")
            data = f"{name}, {int(plain['rows']):,}"
            lines.append([data, ridge, "none", *[f"{int(plain['iterations']):,}"] * len(sizes), seconds(plain)])
            for method, title in METHODS.items():
                cells = {row["n"]: row for row in here if row["ridge"] == ridge and row["basis"] == method}
                if cells:
                    counts = [f"{int(cells[str(n)]['iterations']):,}" for n in sizes]
                    lines.append([data, ridge, title, *counts, seconds(cells[middle])])
    return {"preconditioner": markdown(heads, lines)}


def seconds(row: dict[str, str]) -> str:
    """To choose the basis, and to solve."""
    return f"{float(row['chosen']):.2g} + {float(row['solved']):.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="bases of each kind; medians are shown")
    parser.add_argument("-o", "--out", type=Path, default=DATA, help="folder of the CSV file")
    parser.add_argument(
        "--quick", action="store_true", help="digits alone, two sizes, one ridge, one seed; changes no page"
    )
    options = parser.parse_args()
    try:
        if options.quick:
            rows = save(options.out / "preconditioner.csv", measure(1, ["digits"], (50, 100), (0.1,)))
        else:
            rows = save(options.out / "preconditioner.csv", measure(options.seeds, list(SETS), SIZES, RIDGES))
            publish(tables(rows), PAGE)
    except UserError as error:
        sys.exit(str(error))
    print(tables(load(options.out / "preconditioner.csv"))["preconditioner"])


if __name__ == "__main__":
    main()
