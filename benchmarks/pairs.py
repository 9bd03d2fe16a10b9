"""Which metrics go with which projections: every pair on the report's task; writes docs/pairs.csv.

    python benchmarks/pairs.py [--realisations 20]

The task: sinc, 100 samples ten times over, eta 0.1, sigma 0.5.  A pair diverges where the learned function is worse than
1 in mean squared error (the zero function has 0.13), or an update was refused because a multiplier left its range.
``pykernel.kernel_models.DIVERGES`` quotes the results; ``tests/test_reduction.py`` compares the two.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from rich.progress import track

from pykernel.expansion import Status
from pykernel.host import HostModel
from pykernel.kernel_models import PROJECTIONS, TECHNIQUES
from pykernel.spec import make_spec

BUDGETS = (4, 8, 14, 24)
DIVERGED = 1.0
OUT = Path(__file__).parents[1] / "docs" / "pairs.csv"


def experiment(technique: str, projection: str, precision: str, n_max: int, seed: int) -> tuple[float, float, int]:
    """Mean squared error after learning, largest multiplier, and updates refused."""
    reduction = {"technique": technique, "projection": projection, "n_max": n_max, "force": True}
    if precision == "float64":
        reduction |= {"ridge": 1e-9, "gate": 1e-8}
    spec = make_spec(
        {
            "name": "pair",
            "precision": precision,
            "input": {"dim": 1},
            "kernel": {"sigma": 0.5},
            "learning": {"eta": 0.1},
            "reduction": reduction,
        }
    )
    model = HostModel(spec)
    x = np.random.default_rng(seed).uniform(-3, 3, (100, 1))
    statuses = model.learn(np.tile(x, (10, 1)), np.tile(np.sinc(x[:, 0]), 10))
    grid = np.linspace(-3, 3, 601)[:, None]
    errors = model.predict(grid).astype(float) - np.sinc(grid[:, 0])
    return (
        float(np.mean(errors**2)),
        float(np.abs(model.memory.field("alpha")).max()),
        int(np.sum(statuses == Status.REFUSED_MULTIPLIER)),
    )


def table(realisations: int) -> list[dict[str, object]]:
    """One row for each pair, precision and budget."""
    cases = [(t, p, f, n) for t in TECHNIQUES for p in PROJECTIONS for f in ("float32", "float64") for n in BUDGETS]
    rows: list[dict[str, object]] = []
    for technique, projection, precision, n_max in track(cases, "pairs"):
        results = [experiment(technique, projection, precision, n_max, seed) for seed in range(realisations)]
        mse = float(np.mean([r[0] for r in results]))
        rows.append(
            {
                "technique": technique,
                "projection": projection,
                "precision": precision,
                "n_max": n_max,
                "mse": f"{mse:.2e}",
                "largest_multiplier": f"{max(r[1] for r in results):.1e}",
                "refused": sum(r[2] for r in results),
                "diverges": mse > DIVERGED or any(r[2] for r in results),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realisations", type=int, default=20)
    rows = table(parser.parse_args().realisations)
    with OUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        if row["diverges"]:
            print(*row.values())


if __name__ == "__main__":
    main()
