"""How good a basis is that was chosen from a stream in fixed memory; writes docs/streaming-quality.csv.

    python benchmarks/streaming_quality.py [--data abalone boston bikeshare] [--seeds 5]

Half of the rows come once, in random order (bikeshare: in time order), to the program that the device runs, in float32;
the other half is held out.  Inputs are standardised, the kernel is Gaussian with 2 sigma^2 = D / 2.  A cell is the trace
fraction tr(K - K~) / tr K over the held-out rows, the part of them that the basis does not hold: the mean over the seeds,
and the standard deviation.  Beside it what is chosen off-line from all of the first half: SGMA with 59 candidates, random
pivots, uniform draws, and the eigenvalue limit of the held-out rows' own kernel matrix, which no basis can beat.

``docs/bases-on-device.md`` quotes the results; ``tests/test_nystrom_docs.py`` compares the two.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from basis_data import load
from rich.progress import track
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist
from tables import DOCS, save

from pykernel.basis import select_basis
from pykernel.gram import MercerKernel
from pykernel.host import HostModel
from pykernel.spec import make_spec

DATA = ("abalone", "boston", "bikeshare")
SIZES = (16, 32, 64)
ROWS: dict[str, Any] = {"2N": lambda n: 2 * n, "3N": lambda n: 3 * n, "6N": lambda n: 6 * n, "200": lambda n: 200}
"""Rows of the reservoir; a spec takes no fewer than 2 N."""
OFFLINE = {"sgma": "SGMA, 59 candidates", "rpcholesky": "randomly pivoted Cholesky", "uniform": "uniform"}
GATE = 1e-3
RIDGE = 1.0
CALLS = {"efvs": {"candidates": 59, "points": 59}, "sgma": {"candidates": 59}}
SEEDS = 5


def halves(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows that come, rows that are held out, and gamma."""
    data = load(name)
    x, rng = data.standardised().x, np.random.default_rng(seed)
    order = rng.permutation(len(x))
    seen, held = order[: len(x) // 2], order[len(x) // 2 :]
    if name == "bikeshare":
        seen = np.sort(seen)
    return x[seen], x[held][:2000], 2 / x.shape[1]


def fraction(x: np.ndarray, basis: np.ndarray, gamma: float) -> float:
    """Trace fraction over the rows of x, in float64 from the vectors alone; k(x, x) = 1."""
    k = np.exp(-gamma * cdist(basis, basis, "sqeuclidean"))
    cross = np.exp(-gamma * cdist(basis, x, "sqeuclidean"))
    z = np.linalg.solve(np.linalg.cholesky(k), cross)
    return float(1 - np.sum(z**2) / len(x))


def limit(x: np.ndarray, gamma: float, sizes: tuple[int, ...]) -> dict[int, float]:
    """Eigenvalues beyond the n-th, in parts of all."""
    values = eigvalsh(np.exp(-gamma * cdist(x, x, "sqeuclidean")))[::-1]
    return {n: float(values[n:].sum() / values.sum()) for n in sizes}


def spec_of(
    dim: int, gamma: float, n: int, rows: int, seed: int, method: str = "stream", precision: str = "float32"
) -> Any:
    return make_spec(
        {
            "name": "measured",
            "precision": precision,
            "input": {"dim": dim, "limit": 1e3},
            "kernel": {"gamma": gamma},
            "learning": {"rule": "nystrom-rls", "ridge": RIDGE, "samples": rows, "seed": seed},
            "reduction": {"n_max": n, "gate": GATE},
            "basis": {"method": method} | CALLS.get(method, {}),
        }
    )


def streamed(x: np.ndarray, gamma: float, n: int, rows: int, seed: int, **how: Any) -> tuple[np.ndarray, int, int]:
    """The vectors that the device would hold after the stream; how often one was replaced, and when the last one was."""
    model = HostModel(spec_of(x.shape[1], gamma, n, rows, seed, **how))
    statuses = model.learn(x, np.zeros(len(x)))
    if how.get("method", "stream") != "stream":
        assert model.call("select") == 0
    swaps = np.flatnonzero(statuses == 2)
    return vectors_of(model), len(swaps), int(swaps[-1]) if len(swaps) else 0


def vectors_of(model: HostModel) -> np.ndarray:
    """The basis of a model, float64."""
    return model.memory.field("v")[: model.memory.field("n")[0]].astype(float)


def measured(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row for each way of choosing and each size."""
    x, held, gamma = halves(name, seed)
    kernel = MercerKernel("gaussian", gamma)
    tails = limit(held, gamma, SIZES)
    for n in SIZES:
        yield {"n": n, "method": "eigenvalue limit", "rows": "", "fraction": tails[n]}
        for method, words in OFFLINE.items():
            basis = select_basis(x, kernel, n, method, seed=seed)
            yield {"n": n, "method": words, "rows": "", "fraction": fraction(held, basis.vectors, gamma)}
        for rows, count in ROWS.items():
            if count(n) < 2 * n:
                continue
            for precision in ("float32", "float64"):
                vectors, swaps, last = streamed(x, gamma, n, count(n), seed, precision=precision)
                words = "stream" if precision == "float32" else "stream, float64"
                found = {"n": n, "method": words, "rows": rows, "fraction": fraction(held, vectors, gamma)}
                yield found | {"held": len(vectors), "swaps": swaps, "last_swap": last}
        for method in CALLS:
            vectors, _, _ = streamed(x, gamma, n, 200, seed, method=method)
            yield {
                "n": n,
                "method": f"{method} on the device",
                "rows": "200",
                "fraction": fraction(held, vectors, gamma),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    chosen = parser.parse_args()
    table = []
    for name in chosen.data:
        runs = [list(measured(name, seed)) for seed in track(range(chosen.seeds), name)]
        for same in zip(*runs, strict=True):
            values = np.array([row["fraction"] for row in same])
            table.append(
                {
                    "data": name,
                    "n": same[0]["n"],
                    "method": same[0]["method"],
                    "rows": same[0]["rows"],
                    "seeds": len(same),
                    "fraction": f"{values.mean():.4f}",
                    "deviation": f"{values.std(ddof=1):.4f}" if len(same) > 1 else "",
                    **{
                        key: f"{np.mean([row[key] for row in same]):.0f}" if key in same[0] else ""
                        for key in ("held", "swaps", "last_swap")
                    },
                }
            )
    save(DOCS / "streaming-quality.csv", table)


if __name__ == "__main__":
    main()
