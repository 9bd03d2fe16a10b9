"""Linear programming machines: how sparse and how good they are, how vectors enter, and what a hot start saves.

    python -m benchmarks.host.lp [-o docs/data] [--quick]

Data, kernels and LIBSVM's C = 1 as in benchmarks/host/svm.py.  Two parts:

lp-rounds.csv  The linear program on bases of 64, 128, 256 and 512 vectors, as the paper grows them ("greedy": chosen by "auto"), and on
    those that enter by their prices ("prices", tolerance 0.001, to the machine of all rows).  "excess" is that of
    pykernel.training.lp.Round.  "seconds" is one solution by scipy.optimize.linprog, which has no hot start; "cold" and "hot" are solutions
    of the greedy ones by the HiGHS inside SciPy, which is private there, from nothing and from the solution before, with steps.
lp.csv  Errors on 2,600 new rows of machines whose width is that, with at most 16 vectors: linear
    programming machine (C by folds from 0.1, 0.3, 1, 3), support vector machine (C from 0.1, 1, 10, 100) and LS-SVM (ridge by
    leave-one-out) on a greedy basis, and trained vectors, which train their widths, too.

Seconds are CPU time of one thread, beside other work.  Writes into docs/paper-002.md.
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

from benchmarks.host.svm import EPSILON, PAGE, data, short, wrong
from benchmarks.tables import Rows, markdown, publish, save
from pykernel import (
    LSSVMClassifier,
    LSSVMRegressor,
    SupportVectorClassifier,
    SupportVectorRegressor,
    TrainedKernelClassifier,
    TrainedKernelRegressor,
)
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.parallel import one_thread
from pykernel.training import lp
from pykernel.training.svm import Dual

GROWN = {
    ("classes", "bike rentals", 2000): (64, 128, 256, 512),
    ("classes", "waves", 2000): (64, 128, 256, 512),
    ("numbers", "bike rentals", 2000): (64, 128, 256, 512),
}
FEW = 16
LP_C, SVM_C = (0.1, 0.3, 1.0, 3.0), (0.1, 1.0, 10.0, 100.0)
TOLERANCE = 1e-3


class Highs:
    """The dual of one function in the HiGHS inside SciPy.  New vectors are new rows, and the solution stays for the next start."""

    def __init__(self, dual: Dual) -> None:
        from scipy.optimize._highspy import _core  # type: ignore[import-untyped]

        self.highs, self.dual, self.every = _core._Highs(), dual, np.arange(len(dual.sign), dtype=np.int32)
        self.highs.setOptionValue("output_flag", False)
        q = len(self.every)
        self.highs.addVars(q, np.zeros(q), dual.most)
        self.highs.changeColsCost(q, self.every, dual.cost / dual.unit)
        self.highs.addRow(0.0, 0.0, q, self.every, dual.sign)

    def add(self, values: np.ndarray) -> None:
        rows = np.ascontiguousarray((self.dual.sign[:, None] * values[self.dual.rows]).T)
        n, q = rows.shape
        starts = (np.arange(n) * q).astype(np.int32)
        self.highs.addRows(n, -np.ones(n), np.ones(n), rows.size, starts, np.tile(self.every, n), rows.ravel())

    def solve(self) -> tuple[float, int, float]:
        """CPU seconds, steps, and the objective."""
        start = time.thread_time()
        self.highs.run()
        info = self.highs.getInfo()
        steps = int(info.simplex_iteration_count)
        return time.thread_time() - start, steps, -float(info.objective_function_value) * self.dual.unit


def duals(kind: str, y: np.ndarray) -> list[Dual]:
    return Dual.of_classes(y.astype(int), 2, 1.0) if kind == "classes" else [Dual.of_values(y, EPSILON, 1.0)]


def rounds(kind: str, name: str, rows: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """How the machine grows: greedily, and by prices."""
    x, y, new, labels, gamma = data(kind, name, rows)
    kernel, (dual,) = MercerKernel("gaussian", gamma=gamma), duals(kind, y)
    same = {"kind": kind, "data": name, "rows": rows}
    basis = select_basis(x, kernel, sizes[-1])
    hot, found = Highs(dual), []
    for before, n in zip((0, *sizes), sizes, strict=False):
        start = time.thread_time()
        made = lp.train(x, kernel, [dual], basis=basis.head(n))
        seconds = time.thread_time() - start
        values = kernel.gram(x, basis.vectors[:n])
        cold = Highs(dual)
        cold.add(values)
        hot.add(values[:, before:])
        from_nothing, from_before = cold.solve(), hot.solve()
        last = made.rounds[-1]
        for solved in (from_nothing, from_before):  # the same optimum
            assert abs(solved[2] - last.objective) < 1e-5 * last.objective, (solved, last)
        found.append(
            same | {"growth": "greedy", "vectors": n, "weighted": last.weighted, "objective": last.objective,
                    "excess": last.excess, "error": wrong(kind, made.model.predict(new)[:, 0], labels),
                    "seconds": seconds, "steps": last.steps, "cold": from_nothing[0], "cold_steps": from_nothing[1],
                    "hot": from_before[0], "hot_steps": from_before[1]}
        )  # fmt: skip
        print(*found[-1].values(), sep="\t", flush=True)
    start = time.thread_time()
    made = lp.train(x, kernel, [dual], tolerance=TOLERANCE)
    seconds, error = time.thread_time() - start, wrong(kind, made.model.predict(new)[:, 0], labels)
    for each in made.rounds:
        end = each is made.rounds[-1]
        found.append(
            same | {"growth": "prices", "vectors": each.vectors, "weighted": each.weighted, "objective": each.objective,
                    "excess": each.excess, "error": error if end else "", "seconds": seconds if end else "",
                    "steps": each.steps, "cold": "", "cold_steps": "", "hot": "", "hot_steps": ""}
        )  # fmt: skip
        print(*found[-1].values(), sep="\t", flush=True)
    return found


def compared(kind: str, name: str, rows: int) -> list[dict[str, Any]]:
    """Machines with few vectors."""
    x, y, new, labels, gamma = data(kind, name, rows)
    sigma, classes = float(np.sqrt(0.5 / gamma)), kind == "classes"
    of_svm: Any = SupportVectorClassifier if classes else SupportVectorRegressor
    of_ridge: Any = LSSVMClassifier if classes else LSSVMRegressor
    of_trained: Any = TrainedKernelClassifier if classes else TrainedKernelRegressor
    machines = {
        "linear program": of_svm(sigma=sigma, penalty="l1", C=LP_C, basis=FEW),
        "support vectors": of_svm(sigma=sigma, C=SVM_C, basis=FEW),
        "LS-SVM": of_ridge(sigma=sigma, basis=FEW),
        "trained": of_trained(FEW),
    }
    found = []
    for machine, model in machines.items():
        start = time.thread_time()
        model.fit(x, y)
        seconds = time.thread_time() - start
        f = model.decision_function(new) if classes else model.predict(new)
        vectors = model.vectors_ if machine == "trained" else model.basis_
        found.append(
            {"kind": kind, "data": name, "rows": rows, "machine": machine, "vectors": len(vectors),
             "C": getattr(model, "C_", ""), "error": wrong(kind, f, labels), "seconds": seconds}
        )  # fmt: skip
        print(*found[-1].values(), sep="\t", flush=True)
    return found


def tables(grown: Rows, machines: Rows) -> dict[str, str]:
    lines = []
    before: Any = None
    for row in grown:
        task = (f"{int(row['rows']):,}, {row['data']}, {row['kind']}", row["growth"])
        lines.append(
            [
                "" if before and before[0] == task[0] else task[0],
                "" if before == task else row["growth"],
                f"{int(row['vectors']):,}",
                row["weighted"],
                f"{float(row['objective']):.4g}",
                f"{short(100 * float(row['excess']))} %",
                told(row["kind"], row["error"]) if row["error"] else "",
                f"{float(row['seconds']):.2g}" if row["seconds"] else "",
                f"{float(row['cold']):.2g}, {float(row['hot']):.2g}" if row["hot"] else "",
                f"{int(row['cold_steps']):,}, {int(row['hot_steps']):,}" if row["hot"] else "",
            ]
        )
        before = task
    heads = ["rows, data", "growth", "vectors", "weights", "objective", "excess", "error", "seconds"]
    made = {"lp-rounds": markdown([*heads, "cold, hot", "steps"], lines)}
    names = list(dict.fromkeys(row["machine"] for row in machines))
    lines = []
    for key in dict.fromkeys((row["kind"], row["data"]) for row in machines):
        cells = {row["machine"]: taken(row) for row in machines if (row["kind"], row["data"]) == key}
        lines.append([f"{key[1]}, {key[0]}", *(cells[name] for name in names)])
    made["lp-machines"] = markdown(["data", *names], lines)
    return made


def digits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Six of each number."""
    return [{key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()} for row in rows]


def taken(row: dict[str, str]) -> str:
    return f"{told(row['kind'], row['error'])} ({int(row['vectors']):,}; {float(row['seconds']):.2g} s)"


def told(kind: str, error: str) -> str:
    return f"{100 * float(error):.1f} %" if kind == "classes" else f"{float(error):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="one task of 2,000 rows; nothing is written to docs")
    arguments = parser.parse_args()
    grown: list[dict[str, Any]] = []
    machines: list[dict[str, Any]] = []
    with one_thread:
        for task, sizes in list(GROWN.items())[: 1 if arguments.quick else None]:
            grown += rounds(*task, sizes)
            machines += compared(*task)
    if arguments.quick:
        return
    written = [
        save(arguments.output / name, digits(of)) for name, of in (("lp-rounds.csv", grown), ("lp.csv", machines))
    ]
    if arguments.output == DATA:
        publish(tables(*written), PAGE)


if __name__ == "__main__":
    main()
