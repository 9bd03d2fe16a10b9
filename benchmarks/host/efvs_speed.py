"""EFVS against FVS, at equal n: time side by side, and what is left of the rows.

    python -m benchmarks.host.efvs_speed [--rounds 5] [--seeds 20] [-o docs] [--quick] [--show]

500 of Boston housing's 506 rows, and all of them; 13 standardised inputs, Gaussian kernel, 2 sigma^2 = D / 2, n = 60, float64,
one thread.  Contenders take turns; a time is the median over the rounds of the thread's CPU time, from the rows to the basis,
kernel values included.  "ratio" is the time of FVS as printed by the contender's, the median of the rounds' ratios.

"delta" is the mean relative error of all rows after 20 and 60 vectors, a mean over the seeds where rows are drawn; the limit is what the
eigenvalues beyond number n leave, which no n vectors can be below.

Writes efvs-speed.csv to the output folder.  The data are fetched by pip once (benchmarks/basis_data.py); --quick takes
diabetes, which scikit-learn ships.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import basis_data
from benchmarks.papers.compared import make_selector
from benchmarks.tables import PAGE, Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.rows import as_rows

SIZES = (500, 506)
N, EARLY = 60, 20
ROUNDS, SEEDS = 5, 20
BASELINE = "FVS, literal"
CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    BASELINE: ("fvs", {"form": "literal"}),
    "FVS": ("fvs", {}),
    "EFVS, literal, rho = v = all": ("efvs", {"form": "literal", "candidates": None, "points": None}),
    "EFVS, literal, rho = 59, v = all": ("efvs", {"form": "literal", "points": None}),
    "EFVS, literal, rho = v = 59": ("efvs", {"form": "literal"}),
    "EFVS, rho = v = all": ("efvs", {"candidates": None, "points": None}),
    "EFVS, rho = 59, v = all": ("efvs", {"points": None}),
    "EFVS, rho = v = 59": ("efvs", {}),
    "EFVS, rho = v = 59, points may be candidates": ("efvs", {"disjoint": False}),
    "EFVS, rho = v = 59, lazy": ("efvs", {"lazy": True}),
    "SGMA, kappa = 59": ("sgma", {}),
    "SGMA, kappa = 29 + 30 kept": ("sgma", {"pool": 30}),
    "exhaustive recursion": ("exhaustive", {}),
}
DEFAULTS = {"candidates": 59, "points": 59}
COLUMNS = (
    "l",
    "method",
    "seconds",
    "ratio",
    "evaluations",
    "delta_20",
    "delta_60",
    "sd_60",
    "limit_60",
    "rounds",
    "seeds",
)


@dataclass
class Contender:
    name: str
    x: np.ndarray
    kernel: MercerKernel
    times: list[float] = field(default_factory=list)

    def run(self, seed: int = 0) -> Basis:
        method, options = CONTENDERS[self.name]
        selector = make_selector(method, as_rows(self.x), self.kernel, N, seed=seed, **{**DEFAULTS, **options})
        while selector.step():
            pass
        return selector.basis()

    def drawn(self) -> bool:
        """Whether rows are drawn, so that seeds matter."""
        method, options = CONTENDERS[self.name]
        chosen = {**DEFAULTS, **options}
        return method in ("efvs", "sgma") and not chosen["candidates"] is chosen["points"] is None

    def turn(self, seed: int) -> None:
        start = time.thread_time()
        self.run(seed)
        self.times.append(time.thread_time() - start)


def error(basis: Basis, x: np.ndarray, n: int) -> float:
    return float(basis.head(n).residual(x).mean())


def measure(x: np.ndarray, rounds: int, seeds: int, tick: Any) -> list[dict[str, Any]]:
    kernel = MercerKernel("gaussian", gamma=2 / x.shape[1])
    left = np.linalg.eigvalsh(kernel.gram(x, x))[: len(x) - N].clip(0).sum() / len(x)
    every = {name: Contender(name, x, kernel) for name in CONTENDERS}
    rows = []
    for name, one in every.items():
        bases = [one.run(seed) for seed in range(seeds if one.drawn() else 1)]
        early, late = ([error(basis, x, n) for basis in bases] for n in (EARLY, N))
        rows.append({"l": len(x), "method": name, "evaluations": bases[0].evaluations})
        rows[-1] |= {"delta_20": f"{np.mean(early):.4f}", "delta_60": f"{np.mean(late):.4f}"}
        rows[-1] |= {"sd_60": f"{np.std(late):.4f}" if len(late) > 1 else "", "limit_60": f"{left:.4f}"}
        rows[-1] |= {"rounds": rounds, "seeds": len(bases)}
        tick(f"l = {len(x)}, {name}")
    for turn in range(rounds):
        for one in every.values():
            one.turn(turn)
            tick(f"l = {len(x)}, {one.name}")
    baseline = np.array(every[BASELINE].times)
    for row in rows:
        times = np.array(every[row["method"]].times)
        row |= {"seconds": f"{np.median(times):.4g}", "ratio": f"{np.median(baseline / times):.3g}"}
    return [{column: row[column] for column in COLUMNS} for row in rows]


def shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.5 else f"{1e3 * seconds:.3g} ms"


def tables(rows: Rows) -> dict[str, str]:
    heads = ["", "time", "FVS takes", "kernel values", f"δ, n = {EARLY}", f"δ, n = {N}", "δ / limit"]
    l = rows[0]["l"]
    lines = [
        [
            row["method"].replace("rho", "ρ").replace("kappa", "κ"),
            shown(float(row["seconds"])),
            f"{float(row['ratio']):,.3g} ×",
            f"{int(row['evaluations']):,}",
            row["delta_20"],
            row["delta_60"],
            f"{float(row['delta_60']) / float(row['limit_60']):.2f}",
        ]
        for row in rows
        if row["l"] == l
    ]
    return {"efvs speed": markdown(heads, lines)}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="100 rows of bundled data, two rounds: does it work?")
    parser.add_argument("--show", action="store_true", help="measure nothing: the table from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "efvs-speed.csv"
    if chosen.show:
        rows = load(path)
    else:
        sizes, rounds, seeds, name = SIZES, chosen.rounds, chosen.seeds, "boston"
        if chosen.quick:
            sizes, rounds, seeds, name = (100,), 2, 2, "diabetes"
        x = basis_data.load(name).standardised().x
        order = np.random.default_rng(0).permutation(len(x))
        measured = []
        with progress_bar() as bar, threadpool_limits(1):
            task = bar.add_task("measuring", total=len(sizes) * len(CONTENDERS) * (rounds + 1))
            for l in sizes:
                some = x[np.sort(order[:l])]
                measured += measure(some, rounds, seeds, lambda name: bar.update(task, advance=1, description=name))
        rows = save(path, measured)
    made = tables(rows)
    if chosen.out == DATA:
        page = PAGE.read_text(encoding="utf-8")
        publish({name: table for name, table in made.items() if f"<!-- {name} -->" in page})
    for name, table in made.items():
        print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main()
