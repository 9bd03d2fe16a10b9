"""How good a basis is that was chosen from a stream in fixed memory; writes docs/data/streaming-quality.csv.

    python -m benchmarks.host.streaming_quality [--data abalone boston bikeshare] [--seeds 4]

Four fifths of the rows come once, in random order (bikeshare: in time order), to the program that the device runs, in
float32; the others are held out.  Inputs are standardised, the kernel is Gaussian with 2 sigma^2 = D / 2.  ``held_out``
is the trace fraction tr(K - K~) / tr K over the held-out rows, the part of them that the basis does not hold: the mean
over the seeds, and the standard deviation; ``seen`` the same over the rows that came.  Beside it what is chosen off-line
from all rows that came: SGMA with 59 candidates, random pivots, uniform draws, and the eigenvalues beyond the N-th of the
rows' own kernel matrix, which no basis can beat.  A reservoir of N rows, which a spec refuses, shows why it does.

``docs/bases-on-device.md`` quotes the results; ``tests/pages/test_bases_on_device_docs.py`` compares the two.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.progress import track
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist

from benchmarks.basis_data import load
from benchmarks.papers.compared import select_basis
from benchmarks.tables import DATA, save
from pykernel.bases.gram import MercerKernel
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

SETS = ("abalone", "boston", "bikeshare")
SIZES = (16, 32, 64)
ROWS: dict[str, Any] = {
    "N": lambda n: n,
    "2N": lambda n: 2 * n,
    "3N": lambda n: 3 * n,
    "6N": lambda n: 6 * n,
    "200": lambda n: 200,
}
"""Rows of the reservoir."""
OFFLINE = {"sgma": "SGMA, 59 candidates", "rpcholesky": "randomly pivoted Cholesky", "uniform": "uniform"}
ALD_THRESHOLD = 1e-3
RIDGE = 1.0
CALLS = {"efvs": {"candidates": 59, "points": 59}, "sgma": {"candidates": 59}}
SEEDS = 4


def parts(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows that come, rows that are held out, and gamma."""
    data = load(name)
    x, rng = data.standardised().x, np.random.default_rng(seed)
    order = rng.permutation(len(x))
    seen, held = order[: len(x) * 4 // 5], order[len(x) * 4 // 5 :]
    if name == "bikeshare":
        seen = np.sort(seen)
    return x[seen], x[held], 2 / x.shape[1]


def fraction(x: np.ndarray, basis: np.ndarray, gamma: float) -> float:
    """Trace fraction over the rows of x, in float64 from the vectors alone; k(x, x) = 1."""
    k = np.exp(-gamma * cdist(basis, basis, "sqeuclidean"))
    cross = np.exp(-gamma * cdist(basis, x, "sqeuclidean"))
    z = np.linalg.solve(np.linalg.cholesky(k), cross)
    return float(1 - np.sum(z**2) / len(x))


def limit(x: np.ndarray, gamma: float) -> dict[int, float]:
    """Eigenvalues beyond the n-th, in parts of all, for each size."""
    x = x[:: -(-len(x) // 1500)]  # no more: cubic in them
    values = eigvalsh(np.exp(-gamma * cdist(x, x, "sqeuclidean")))[::-1]
    return {n: float(values[n:].sum() / values.sum()) for n in SIZES}


def spec_of(
    dim: int, gamma: float, n: int, rows: int, seed: int, method: str = "stream", precision: str = "float32"
) -> Any:
    spec = make_spec(
        {
            "name": "measured",
            "precision": precision,
            "input": {"dim": dim, "max_abs": 1e3},
            "kernel": {"gamma": gamma},
            "learning": {"rule": "nystrom-rls", "ridge": RIDGE, "samples": max(rows, 2 * n), "seed": seed},
            "reduction": {"n_max": n, "ald_threshold": ALD_THRESHOLD},
            "basis": {"method": method} | CALLS.get(method, {}),
        }
    )
    # not checked: as few as no spec may say
    return spec.model_copy(update={"learning": spec.learning.model_copy(update={"samples": rows})})


def streamed(x: np.ndarray, gamma: float, n: int, rows: int, seed: int, **how: Any) -> tuple[np.ndarray, int, int]:
    """The vectors that the device would hold after the stream; how often one was replaced, and when the last one was."""
    model = HostModel(spec_of(x.shape[1], gamma, n, rows, seed, **how))
    statuses = model.update(x, np.zeros(len(x)))
    if how.get("method", "stream") != "stream":
        assert model.call("select") == 0
    swaps = np.flatnonzero(statuses == 2)
    return vectors_of(model), len(swaps), int(swaps[-1]) if len(swaps) else 0


def vectors_of(model: HostModel) -> np.ndarray:
    """The basis of a model, float64."""
    return model.memory.field("v")[: model.memory.field("n")[0]].astype(float)


def measured(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row for each way of choosing and each size."""
    x, held, gamma = parts(name, seed)
    kernel = MercerKernel("gaussian", gamma)
    tails, own = limit(held, gamma), limit(x, gamma)

    def found(n: int, method: str, vectors: np.ndarray, **more: Any) -> dict[str, Any]:
        fractions = {"held_out": fraction(held, vectors, gamma), "seen": fraction(x, vectors, gamma)}
        return {"n": n, "method": method, "rows": ""} | fractions | more

    for n in SIZES:
        yield {"n": n, "method": "eigenvalues", "rows": "", "held_out": tails[n], "seen": own[n]}
        for method, words in OFFLINE.items():
            yield found(n, words, select_basis(x, kernel, n, method, seed=seed).vectors)
        for rows, count in ROWS.items():
            if rows == "200" and count(n) in (2 * n, 3 * n, 6 * n):
                continue
            for precision in ("float32", "float64") if rows == "3N" else ("float32",):
                vectors, swaps, last = streamed(x, gamma, n, count(n), seed, precision=precision)
                words = "stream" if precision == "float32" else "stream, float64"
                yield found(n, words, vectors, rows=rows, held=len(vectors), swaps=swaps, last_swap=last)
        for method in CALLS:
            yield found(n, f"{method} on the device", streamed(x, gamma, n, 200, seed, method=method)[0], rows="200")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    chosen = parser.parse_args()
    table = []
    for name in chosen.data:
        runs = [list(measured(name, seed)) for seed in track(range(chosen.seeds), name)]
        for same in zip(*runs, strict=True):
            values = {key: np.array([row[key] for row in same]) for key in ("held_out", "seen")}
            table.append(
                {
                    "data": name,
                    "n": same[0]["n"],
                    "method": same[0]["method"],
                    "rows": same[0]["rows"],
                    "seeds": len(same),
                    "held_out": f"{values['held_out'].mean():.4f}",
                    "deviation": f"{values['held_out'].std(ddof=1):.4f}" if len(same) > 1 else "",
                    "seen": f"{values['seen'].mean():.4f}",
                    **{
                        key: f"{np.mean([row[key] for row in same]):.0f}" if key in same[0] else ""
                        for key in ("held", "swaps", "last_swap")
                    },
                }
            )
    save(DATA / "streaming-quality.csv", table)


if __name__ == "__main__":
    main()
