"""What float32 leaves of the inverse Gram matrices, and where the fast techniques diverge; writes docs/data/limits.csv.

    python -m benchmarks.device.limits

Matrices: sinc with 0.5 times noise for labels, 10,000 samples, 16 vectors, sigma 0.5, eta 0.5, ald_threshold twice the ridge.
Every 500 samples the denominators of the scores are compared with those of float64: P_ii from the root T, Q_ii from P
and from Q, W_ii from Z; the error is the worst, in parts of the number.  "own column" is P alone, updated with columns
and products of its own, for the vectors that mklms holds.
Fast techniques: sinc on [-3, 3], without noise, 10,000 samples, eta 0.5; the spacing of the vectors is about 6 / N.
Recursive rules: sinc on [-3, 3] with 0.1 times noise, 1,000,000 samples, 32 vectors, which is more than an ald_threshold of twice
the ridge lets in, so that for most of the time no vector is exchanged.
``docs/reference/rules.md`` quotes the results; ``tests/pages/test_docs.py`` compares the two.
"""

from __future__ import annotations

import csv
import itertools
from typing import Any

import numpy as np

from benchmarks.tables import DATA
from pykernel.algorithms.online.klms import KLMS
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

Status = KLMS["real"].status

OUT = DATA / "limits.csv"
SAMPLES, EVERY, SIGMA, VECTORS = 10_000, 500, 0.5, 16
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2)
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-2)
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
BUDGETS = (8, 16, 32)
LONG = 1_000_000
RECURSIVE = (("krls-t", 1.0), ("krls-t", 0.9999), ("fb-krls", 1.0), ("ald-krls", 1.0))
FAST = ("fklms", "fmklms", "afklms")
PUBLISHED = {"projection": "fklms", "force": True}
"""Eq. 16, which the bounded projection takes the place of where nothing is said."""


def unpacked(packed: np.ndarray, n: int) -> np.ndarray:
    """A lower triangle of n rows."""
    lower = np.zeros((n, n))
    lower[np.tril_indices(n)] = packed[: n * (n + 1) // 2]
    return lower


def symmetric(packed: np.ndarray, n: int) -> np.ndarray:
    lower = unpacked(packed, n)
    return lower + np.tril(lower, -1).T


def model_of(technique: str, n_max: int = VECTORS, **options: Any) -> HostModel:
    """A model in float32; a ridge or a penalty below the least that a spec may have is put into its parameters."""
    options = {"sigma": SIGMA, "ridge": 1e-3, "penalty": 1e-4, **options}
    spec = make_spec(
        {
            "name": "measured",
            "input": {"dim": 1},
            "kernel": {"sigma": options["sigma"]},
            "learning": {"rule": "klms", "eta": 0.5},
            "reduction": {"technique": technique, "n_max": n_max} | (PUBLISHED if technique in FAST else {}),
        }
    )
    model = HostModel(spec)
    ridge, mu = options["ridge"], options["penalty"] * (n_max + 1) / n_max
    changed = {"ridge_diagonal": 1 + ridge, "kappa_least": ridge, "mu": mu, "root_mu": np.sqrt(mu)}
    if technique not in FAST:
        changed["ald_threshold"] = 2 * ridge
    if technique == "lsreg":
        changed["penalty"] = options["penalty"]
    model.config = model.config.replace(**{name: np.float32(value) for name, value in changed.items()})
    return model


def gram(v: np.ndarray, sigma: float, ridge: float) -> np.ndarray:
    v = v.astype(float)
    return np.asarray(np.exp(-((v - v.T) ** 2) / (2 * sigma**2)) + ridge * np.eye(len(v)))


def worst(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.abs(found.astype(float) / true - 1).max())


class OwnColumn:
    """P in float32, which learns from itself what it is updated with."""

    def __init__(self, ridge: float) -> None:
        self.p, self.v, self.ridge = np.zeros((VECTORS, VECTORS), np.float32), np.zeros((VECTORS, 1)), ridge

    def follow(self, v: np.ndarray) -> None:
        """Take over the vector that is new."""
        for r in np.flatnonzero((v != self.v[: len(v)]).any(axis=1)):
            with np.errstate(all="ignore"):
                if self.p[r, r] != 0:
                    column = self.p[:, r].copy()
                    self.p -= np.outer(column, column) / column[r]
                    self.p[r, :] = self.p[:, r] = 0
                k = np.exp(-((self.v[:, 0] - v[r, 0]) ** 2) / (2 * SIGMA**2)).astype(np.float32)
                k[np.diag(self.p) == 0] = 0
                u = self.p @ k
                kappa = np.float32(1 + self.ridge) - k @ u
                u[r] = -1
                self.p += np.outer(u, u) / kappa
            self.v[r] = v[r]


def noisy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (SAMPLES, 1))
    return x, np.sinc(x[:, 0]) + 0.5 * rng.normal(size=SAMPLES)


def matrices(technique: str, ridge: float, penalty: float, own: bool = False) -> tuple[float, int]:
    """Worst relative error of the scores' denominators, and how many vectors were exchanged."""
    x, y = noisy()
    model, column, error, exchanged = model_of(technique, ridge=ridge, penalty=penalty), OwnColumn(ridge), 0.0, 0
    step = 1 if own else EVERY
    for t in range(0, SAMPLES, step):
        exchanged += int((model.update(x[t : t + step], y[t : t + step]) == Status.REPLACED).sum())
        field, n = model.memory.field, int(model.memory.field("n")[0])
        v = field("v")[:n]
        if own:
            column.follow(v.astype(float))
        if (t + step) % EVERY:
            continue
        k = gram(v, SIGMA, ridge)
        inverse = np.linalg.inv(k)
        if own:
            error = max(error, worst(np.diag(column.p)[:n], np.diag(inverse)))
        elif technique == "mklms":
            error = max(error, worst((unpacked(field("t"), n) ** 2).sum(0), np.diag(inverse)))
        elif technique == "ls":
            found = (symmetric(field("inverse"), n) ** 2).sum(0)
            error = max(error, worst(found, np.diag(inverse @ inverse)))
        elif technique == "lsreg":
            error = max(error, worst(np.diag(unpacked(field("squared"), n)), np.diag(inverse @ inverse)))
        else:
            mu = float(model.config.root_mu) ** 2
            w = np.linalg.inv(k @ k + mu * np.eye(n))
            error = max(error, worst(-np.diag(unpacked(field("z_im"), n)) / np.sqrt(mu), np.diag(w)))
    return error, exchanged


def fast(technique: str, n_max: int, sigma: float) -> tuple[float, float, int]:
    """Mean squared error after learning, the largest multiplier, and refused updates."""
    x = np.random.default_rng(0).uniform(-3, 3, (SAMPLES, 1))
    model, grid = model_of(technique, n_max, sigma=sigma), np.linspace(-3, 3, 601)[:, None]
    refused = int((model.update(x, np.sinc(x[:, 0])) == Status.REFUSED_MULTIPLIER).sum())
    error = float(np.mean((model.predict(grid).astype(float) - np.sinc(grid[:, 0])) ** 2))
    return error, float(np.abs(model.memory.field("alpha")).max()), refused


def lasting(rule: str, forgetting: float) -> tuple[float, float, int]:
    """A recursive rule: mean squared error after learning, the largest multiplier, and refused updates."""
    rng, grid = np.random.default_rng(0), np.linspace(-3, 3, 601)[:, None]
    learning = {"rule": rule, "forgetting": forgetting}
    model = HostModel(
        make_spec(
            {
                "name": "measured",
                "input": {"dim": 1},
                "kernel": {"sigma": SIGMA},
                "learning": learning,
                "reduction": {"n_max": 32},
            }
        )
    )
    refused = 0
    for _ in range(LONG // SAMPLES):
        x = rng.uniform(-3, 3, (SAMPLES, 1))
        y = np.sinc(x[:, 0]) + 0.1 * rng.normal(size=SAMPLES)
        refused += int((model.update(x, y) == Status.REFUSED_MULTIPLIER).sum())
    error = float(np.mean((model.predict(grid).astype(float) - np.sinc(grid[:, 0])) ** 2))
    return error, float(np.abs(model.memory.field("alpha")).max()), refused


def main() -> None:
    rows: list[dict[str, object]] = []
    empty = {
        "error": "",
        "exchanged": "",
        "n_max": VECTORS,
        "sigma": SIGMA,
        "mse": "",
        "largest": "",
        "refused": "",
        "forgetting": "",
    }

    def note(kept: str, ridge: float, penalty: float, result: tuple[float, int]) -> None:
        numbers = {"ridge": f"{ridge:g}", "penalty": f"{penalty:g}" if kept == "Z" else ""}
        rows.append({"kept": kept, **numbers, **empty, "error": f"{result[0]:.1e}", "exchanged": result[1]})
        print(*rows[-1].values())

    for ridge in RIDGES:
        note("own column", ridge, 0, matrices("mklms", ridge, 1e-4, own=True))
        for kept, technique in (("T", "mklms"), ("P", "ls"), ("Q", "lsreg")):
            note(kept, ridge, 0, matrices(technique, ridge, 1e-4))
    for penalty in PENALTIES:
        note("Z", 1e-3, penalty, matrices("lsridge", 1e-3, penalty))
    for technique, n_max, sigma in itertools.product(FAST, BUDGETS, WIDTHS):
        mse, largest, refused = fast(technique, n_max, sigma)
        numbers = {"mse": f"{mse:.1e}", "largest": f"{largest:.1e}", "refused": refused}
        rows.append({"kept": technique, "ridge": "", "penalty": "", **empty, "n_max": n_max, "sigma": sigma, **numbers})
        print(*rows[-1].values())
    for rule, forgetting in RECURSIVE:
        mse, largest, refused = lasting(rule, forgetting)
        numbers = {"mse": f"{mse:.1e}", "largest": f"{largest:.1e}", "refused": refused}
        rows.append(
            {"kept": rule, "ridge": "", "penalty": "", **empty, "n_max": 32, **numbers, "forgetting": forgetting}
        )
        print(*rows[-1].values())
    with OUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
