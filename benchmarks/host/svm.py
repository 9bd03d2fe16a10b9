"""Support vector machines on a low-rank Gram matrix beside LIBSVM: time, objective, errors, support vectors.

    python -m benchmarks.host.svm [-o docs/data] [--quick]

Gaussian kernel with 2 sigma^2 = D / 2 (waves) or D (bike rentals, standardised), the bases by "auto".  Classes: bike rentals above
or below the median, C = 1; "waves", four normal inputs and a noisy border, C = 1.  Numbers: bike rentals in standard deviations,
C = 1, epsilon = 0.1.  LIBSVM is scikit-learn's SVC and SVR, tol = 1e-3, a cache of 500 MB.  Objectives are primal: 1/2 |f|^2 + C
sum of losses, over LIBSVM's, whose f has all its support vectors.  "residual" and "excess" are those of pykernel.training.svm.Round.
"warm": steps from the solution on the basis before, of 2,000 rows.  Seconds are CPU time of one thread, beside other work.

Writes svm.csv to the output folder and the tables into docs/paper-002.md.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC, SVR

from benchmarks import basis_data
from benchmarks.tables import DOCS, Rows, markdown, publish, save
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.training.reduced import FeatureRows
from pykernel.training.svm import KEPT, Dual, Solution, judged, solve

PAGE = DOCS / "paper-002.md"
TASKS = {
    ("classes", "bike rentals", 2000): (50, 100, 200, 400, 1000),
    ("classes", "bike rentals", 6000): (50, 100, 200, 400),
    ("classes", "waves", 10_000): (50, 100, 200, 400),
    ("classes", "waves", 50_000): (50, 100, 200),
    ("numbers", "bike rentals", 2000): (50, 100, 200, 400),
    ("numbers", "bike rentals", 6000): (50, 100, 200, 400),
}
WARM = 2000
"""Up to so many rows the warm start is measured, too."""
C, EPSILON = 1.0, 0.1
TESTED = 2600


def data(kind: str, name: str, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Inputs and labels to train on and to test with, and gamma."""
    rng = np.random.default_rng(0)
    if name == "waves":
        x = rng.normal(size=(rows + TESTED, 4))
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=len(x))
        gamma = 2 / x.shape[1]
    else:
        found = basis_data.load("bikeshare").standardised()
        order = rng.permutation(len(found.x))[: rows + TESTED]
        x, y = found.x[order], found.y[order]
        y, gamma = (y - y.mean()) / y.std(), 1 / found.x.shape[1]
    if kind == "classes":
        y = (y > np.median(y)).astype(np.float64)
    return x[:rows], y[:rows], x[rows:], y[rows:], gamma


def wrong(kind: str, f: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((f > 0) != y) if kind == "classes" else np.sqrt(np.square(f - y).mean()))


def measure(kind: str, name: str, rows: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    x, y, new, labels, gamma = data(kind, name, rows)
    kernel = MercerKernel("gaussian", gamma=gamma)
    dual = Dual.of_classes(y.astype(int), 2, C)[0] if kind == "classes" else Dual.of_values(y, EPSILON, C)
    theirs = (
        SVC(C=C, gamma=gamma, cache_size=500)
        if kind == "classes"
        else SVR(C=C, gamma=gamma, epsilon=EPSILON, cache_size=500)
    )
    start = time.thread_time()
    theirs.fit(x, y)
    seconds = time.thread_time() - start
    f = (theirs.decision_function if kind == "classes" else theirs.predict)(x)
    square = float(theirs.dual_coef_[0] @ (f[theirs.support_] - theirs.intercept_[0]))
    objective = dual.primal(square, f)
    of_new = (theirs.decision_function if kind == "classes" else theirs.predict)(new)
    same = {"kind": kind, "data": name, "rows": rows}
    found: list[dict[str, Any]] = [
        same | {"machine": "LIBSVM", "vectors": len(theirs.support_), "trace": "", "choose": "", "solve": seconds,
                "steps": int(np.sum(theirs.n_iter_)), "warm": "", "objective": objective, "gap": "", "residual": "",
                "excess": "", "judges": "", "error": wrong(kind, of_new, labels), "support": len(theirs.support_)}
    ]  # fmt: skip
    before: Solution | None = None
    for n in sizes:
        start = time.thread_time()
        basis = select_basis(x, kernel, n)
        features = FeatureRows(basis, x, keep=KEPT)
        features.take(np.arange(1))  # computed and kept
        chosen = time.thread_time()
        solution = solve(dual, features)
        solved = time.thread_time()
        warm = solve(dual, features, before).steps if before is not None and rows <= WARM else ""
        before = solution
        residual, excess, judges = judged(dual, solution, features, np.random.default_rng(0))
        z = basis.features(x)
        w = z.T @ dual.beta(solution.u)
        found.append(
            same | {"machine": "low rank", "vectors": len(basis), "trace": float(basis.trace[-1]), "choose": chosen - start,
                    "solve": solved - chosen, "steps": solution.steps, "warm": warm,
                    "objective": dual.primal(float(w @ w), z @ w + solution.bias), "gap": solution.gap,
                    "residual": residual, "excess": excess, "judges": judges,
                    "error": wrong(kind, basis.features(new) @ w + solution.bias, labels),
                    "support": int(np.count_nonzero(dual.beta(solution.settled(dual))))}
        )  # fmt: skip
    for row in found:
        print(*row.values(), sep="\t", flush=True)
    return found


def short(number: float) -> str:
    """Two digits."""
    return f"{float(f'{number:.2g}'):g}"


def tables(rows: Rows) -> dict[str, str]:
    heads = ["rows, data", "machine", "seconds", "steps", "objective", "residual", "excess", "error", "support vectors"]
    made: dict[str, str] = {}
    for kind in ("classes", "numbers"):
        lines, theirs = [], 1.0
        for row in (each for each in rows if each["kind"] == kind):
            low = row["machine"] == "low rank"
            theirs = theirs if low else float(row["objective"])
            seconds = f"{float(row['choose']):.2g} + {float(row['solve']):.2g}" if low else f"{float(row['solve']):.2g}"
            steps = f"{int(row['steps']):,}" + (f", warm {row['warm']}" if row["warm"] else "")
            excess = (
                ("about " if low and row["judges"] != row["rows"] else "") + f"{short(100 * float(row['excess']))} %"
                if low
                else ""
            )
            lines.append(
                [
                    "" if low else f"{int(row['rows']):,}, {row['data']}",
                    f"{int(row['vectors']):,} vectors" if low else "LIBSVM",
                    seconds,
                    steps,
                    f"{float(row['objective']) / theirs:.4f}" if low else "1",
                    short(float(row["residual"])) if low else "",
                    excess,
                    f"{100 * float(row['error']):.1f} %" if kind == "classes" else f"{float(row['error']):.3f}",
                    f"{int(row['support']):,}",
                ]
            )
        made[f"svm-{kind}"] = markdown(heads, lines)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="2,000 rows and two bases; nothing is written to docs")
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for (kind, name, rows), sizes in TASKS.items():
        if not arguments.quick or rows == 2000:
            found += measure(kind, name, rows, sizes[:2] if arguments.quick else sizes)
    if arguments.quick:
        return
    written = save(
        arguments.output / "svm.csv",
        [{key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()} for row in found],
    )
    if arguments.output == DATA:
        publish(tables(written), PAGE)


if __name__ == "__main__":
    main()
