"""How many digits leave-one-out in closed form has, beside retraining: docs/data/loo-digits.csv, and a table in docs/closed-form.md.

    python -m benchmarks.host.loo_digits [-o docs] [--quick]

The truth is retraining with 60 digits (mpmath), fold by fold.  20 samples with two inputs, Gaussian kernels of three
widths, repeats, and bases of 6 vectors.  An error is the largest over the samples, in parts of the largest prediction
(or of 1, if that is more); a cell has the largest over the data sets.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.tables import DATA, DOCS, Rows, load, markdown, progress_bar, publish, save
from pykernel.training.closed_form import MODELS, Column, Model, problem
from pykernel.training.targets import Targets

PAGE = DOCS / "closed-form.md"
SAMPLES = 20
DIGITS = 60
EXPONENTS = (-14, -12, -10, -8, -6, -4, -2, 0, 2)
FOLDS = 4
COLUMNS = ("data", "model", "column", "ridge", "method", "error")
METHODS = ("closed form", "closed form, folds", "retraining", "retraining, normal equations", "formula (c), inverse")
ISOLATED = "isolated"
"""The data set whose basis vectors are far from all samples but themselves."""


@dataclass(frozen=True)
class Data:
    """columns: the samples that are basis vectors."""

    gram: np.ndarray
    columns: np.ndarray
    y: np.ndarray

    def scale(self, model: Model) -> float:
        """What ridges are relative to: the largest eigenvalue of the matrix that they are added to."""
        if model == "kfd":
            return float(np.linalg.norm(self.gram - self.gram.mean(axis=0), 2) ** 2)
        return float(np.linalg.norm(self.gram, 2))


def data() -> dict[str, Data]:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(SAMPLES, 2)), np.where(rng.random(SAMPLES) < 0.4, 1.0, -1.0)
    repeated = np.tile(x[: SAMPLES // 2], (2, 1))
    every, some, twice = np.arange(SAMPLES), np.arange(6), np.array([0, 10, 1, 11, 2, 3])

    def of(points: np.ndarray, gamma: float, columns: np.ndarray) -> Data:
        return Data(np.exp(-gamma * cdist(points, points[columns], "sqeuclidean")), columns, y)

    return {
        "wide": of(x, 0.02, every),
        "medium": of(x, 0.5, every),
        "narrow": of(x, 20.0, every),
        "repeats": of(repeated, 0.5, every),
        "basis": of(x, 0.5, some),
        "basis with repeats": of(repeated, 0.5, twice),
        ISOLATED: of(x, 20.0, some),
    }


Trainer = Callable[[Model, np.ndarray, np.ndarray, float], tuple[np.ndarray, float]]
"""(model, gram, y, ridge) -> alpha and bias."""


def exactly(model: Model, gram: np.ndarray, y: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """Multipliers as mpmath's numbers, from the systems as they are written in docs/closed-form.md."""
    k, right, mu = mpmath.matrix(gram.tolist()), mpmath.matrix(y.tolist()), mpmath.mpf(ridge)
    l, p = gram.shape
    bordered = model != "krr"
    system = mpmath.matrix(p + bordered, p + bordered)
    system[:p, :p] = (k.T * k if model == "kfd" else k) + mu * mpmath.eye(p)
    total = mpmath.matrix(p + bordered, 1)
    total[:p, 0] = k.T * right if model == "kfd" else right
    if bordered:
        border = k.T * mpmath.ones(l, 1) if model == "kfd" else mpmath.ones(l, 1)
        system[:p, p], system[p, :p] = border, border.T
        system[p, p], total[p, 0] = (l, mpmath.fsum(right)) if model == "kfd" else (0, 0)
    solved = list(mpmath.lu_solve(system, total))
    return np.array(solved[:p], dtype=object), solved[p] if bordered else mpmath.mpf(0)


def by_least_squares(model: Model, gram: np.ndarray, y: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """In float64: KFD's least-squares problem without normal equations, the others' systems by elimination."""
    l, p = gram.shape
    if model == "kfd":
        system = np.block([[gram, np.ones((l, 1))], [np.sqrt(ridge) * np.eye(p), np.zeros((p, 1))]])
        solved = np.linalg.lstsq(system, np.append(y, np.zeros(p)), rcond=-1)[0]
        return solved[:-1], solved[-1]
    if model == "krr":
        return np.linalg.solve(gram + ridge * np.eye(l), y), 0.0
    one = np.ones((l, 1))
    solved = np.linalg.solve(np.block([[gram + ridge * np.eye(l), one], [one.T, np.zeros((1, 1))]]), np.append(y, 0.0))
    return solved[:-1], solved[-1]


def normal_equations(gram: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Z and C of KFD."""
    z = np.column_stack([gram, np.ones(len(gram))])
    return z, z.T @ z + np.diag(np.append(np.full(gram.shape[1], ridge), 0.0))


def by_normal_equations(model: Model, gram: np.ndarray, y: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    z, c = normal_equations(gram, ridge)
    solved = np.linalg.solve(c, z.T @ y)
    return solved[:-1], solved[-1]


def retrained(train: Trainer, model: Model, given: Data, ridge: float, folds: np.ndarray, column: Column) -> np.ndarray:
    """(l,): what each sample is predicted by a model that is trained without its fold."""
    found = np.empty(SAMPLES)
    for number in np.unique(folds):
        fold = folds == number
        kept = ~fold[given.columns] if column == "deleted" else np.ones(len(given.columns), bool)
        alpha, bias = train(model, given.gram[~fold][:, kept], given.y[~fold], ridge)
        found[fold] = [float(row @ alpha + bias) for row in given.gram[fold][:, kept]]
    return found


def by_inverse(given: Data, ridge: float, column: Column) -> np.ndarray:
    """Formulas (a) and (c) of docs/closed-form.md as they are usually written, from C's inverse."""
    z, c = normal_equations(given.gram, ridge)
    p = np.linalg.inv(c)
    theta = p @ (z.T @ given.y)
    product = z @ p
    share, residual = 1 - np.einsum("ij,ij->i", product, z), given.y - z @ theta
    left = residual / share
    if column == "deleted":
        for j, i in enumerate(given.columns):
            g, d = product[i, j], p[j, j]
            left[i] += g * (theta[j] - g * left[i]) / (share[i] * d + g**2)
    return given.y - left


def measure(name: str, given: Data, model: Model, column: Column, exponent: int) -> list[dict[str, str]]:
    ridge = 10.0**exponent * given.scale(model)
    alone, folds = np.arange(SAMPLES), np.arange(SAMPLES) % FOLDS
    solved = problem(model, given.gram, Targets.of_values(given.y), given.columns if model == "kfd" else None)
    with mpmath.workdps(DIGITS):
        truth = retrained(exactly, model, given, ridge, alone, column)
        truth_of_folds = retrained(exactly, model, given, ridge, folds, column)
    found = {
        "closed form": solved.leave_one_out(ridge, column)[:, 0],
        "closed form, folds": solved.leave_fold_out(ridge, folds, column)[:, 0],
        "retraining": retrained(by_least_squares, model, given, ridge, alone, column),
    }
    if model == "kfd":
        found["retraining, normal equations"] = retrained(by_normal_equations, model, given, ridge, alone, column)
        found["formula (c), inverse"] = by_inverse(given, ridge, column)
    rows = []
    for method, predictions in found.items():
        true = truth_of_folds if "folds" in method else truth
        error = np.abs(predictions - true).max() / max(1.0, np.abs(true).max())
        # a division by a rounded zero has no digit right
        values = (name, model, column, f"1e{exponent}", method, f"{error if np.isfinite(error) else np.inf:.1e}")
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def tables(rows: Rows) -> dict[str, str]:
    """The worst over the data sets; KFD with isolated basis vectors whose columns are kept has a column of its own."""

    def worst(ridge: str, model: str, method: str, column: str, isolated: bool = False) -> str:
        errors = [
            float(row["error"])
            for row in rows
            if (row["ridge"], row["model"], row["method"], row["column"]) == (ridge, model, method, column)
            and (row["data"] == ISOLATED) == isolated
        ]
        return f"{max(errors):.0e}" if max(errors) < 1 else "–"

    made: dict[str, list[list[str]]] = {"kfd": [], "ridge": []}
    for ridge in dict.fromkeys(row["ridge"] for row in rows):
        made["kfd"].append(
            [
                ridge,
                *(worst(ridge, "kfd", method, "deleted") for method in METHODS),
                *(worst(ridge, "kfd", method, "kept") for method in METHODS[:3]),
                *(worst(ridge, "kfd", method, "kept", isolated=True) for method in ("closed form", "retraining")),
            ]
        )
        methods = METHODS[:3]
        made["ridge"].append([ridge, *(worst(ridge, m, method, "deleted") for m in MODELS[1:] for method in methods)])
    deleted = [f"deleted: {method}" for method in METHODS]
    kept = [f"kept: {method}" for method in METHODS[:3]]
    isolated = [f"kept, isolated: {method}" for method in ("closed form", "retraining")]
    ridge_heads = [f"{model}: {method}" for model in MODELS[1:] for method in METHODS[:3]]
    return {
        "loo digits, kfd": markdown(["μ / σ₁²", *deleted, *kept, *isolated], made["kfd"]),
        "loo digits, ridge": markdown(["λ / w₁", *ridge_heads], made["ridge"]),
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="one ridge, two data sets: does it work?")
    parser.add_argument("--show", action="store_true", help="compute nothing: tables from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "loo-digits.csv"
    if chosen.show:
        rows = load(path)
    else:
        tasks = [
            (name, given, model, column, exponent)
            for exponent in (EXPONENTS[3:4] if chosen.quick else EXPONENTS)
            for name, given in data().items()
            if not chosen.quick or name in ("repeats", ISOLATED)
            for model in (MODELS if len(given.columns) == SAMPLES else MODELS[:1])
            for column in (("deleted", "kept") if model == "kfd" else ("deleted",))
        ]
        computed = []
        with progress_bar() as bar, warnings.catch_warnings():
            # the inverse of what is singular in float64
            warnings.simplefilter("ignore", RuntimeWarning)
            for task in bar.track(tasks, description="retraining with 60 digits"):
                computed += measure(*task)  # type: ignore[arg-type]
        rows = save(path, computed)
    made = tables(rows)
    if chosen.out == DATA:
        publish(made, PAGE)
    for name, table in made.items():
        print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main()
