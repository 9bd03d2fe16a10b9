"""Sparse kernel feature analysis beside kernel PCA and BKFE: what a direction takes, explains, and is worth.

    python -m benchmarks.host.skfa [--splits 5] [-o docs/data] [--quick] [--show]

Data and kernels of ``subspace_guide``.  "explained" is the part of the training rows' squared lengths in feature space that lies
in the span of the directions.  Errors are of logistic regression on the features, its C from 1, 10, ..., 100,000 by three-fold
cross-validation; splits 70:30, stratified, the same for all.  Kernel PCA is not centred, as SKFA is not.  The figure has three
clusters in the plane, with the kernel exp(-|a - b|^2 / 0.1).

Writes skfa.csv and skfa.png to the output folder, and the table into docs/subspaces.md.  --show: the table only, and the figure.
"""

from __future__ import annotations

import os

from benchmarks.papers.compared import select_basis
from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from benchmarks.figures import COLOURS, heading, png
from benchmarks.host.subspace_guide import SHRINKAGE, Features, data
from benchmarks.tables import DOCS, Rows, load, markdown, publish, save
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.training.subspace import HostSubspace

PAGE = DOCS / "subspaces.md"
SIZES = (5, 10, 20, 50)
PENALTIES = (1, 10, 100, 1e3, 1e4, 1e5)
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "SKFA, columns": ("skfa", {}),
    "SKFA, kurtosis": ("skfa", {"criterion": "kurtosis"}),
    "SKFA, columns, of length 1": ("skfa", {}),
    "rule 4.3, of length 1": ("sgma", {"rule": "4.3"}),
    "rule 4.2, of length 1": ("sgma", {}),
    "uniform, of length 1": ("uniform", {}),
}
METHODS = ("kernel PCA", "BKFE", "BKFE, n vectors", *BASES)


def scaled(basis: Basis, x: np.ndarray) -> np.ndarray:
    return basis.kernel.gram(x, basis.vectors) @ basis.directions().T


def principal(kernel: MercerKernel, train: np.ndarray, n: int) -> tuple[np.ndarray, float]:
    """Coefficients of the leading directions, (m, n), and the part of the trace that they explain."""
    values, vectors = np.linalg.eigh(kernel.gram(train, train))
    values, vectors = values[::-1][:n], vectors[:, ::-1][:, :n]
    return vectors / np.sqrt(values), float(values.sum() / kernel.diagonal(train).sum())


def features(
    method: str, train: np.ndarray, test: np.ndarray, kernel: MercerKernel, seed: int, n: int
) -> tuple[Features, float]:
    """Of training and test rows, and what is explained."""
    if method == "kernel PCA":
        a, explained = principal(kernel, train, n)
        return (kernel.gram(train, train) @ a, kernel.gram(test, train) @ a), explained
    if method.startswith("BKFE"):
        options: dict[str, Any] = {"basis": n, "selector": "sgma"} if "vectors" in method else {}
        subspace = HostSubspace.fit(train, kernel, n, SHRINKAGE, seed=seed, **options)
        z = subspace.features(train)
        v = subspace.a.T @ kernel.gram(subspace.vectors, train)  # L'phi; what L spans of phi is v'G^-1 v
        spanned = float(np.sum(v * (np.linalg.pinv(subspace.gram) @ v)))
        return (z, subspace.features(test)), spanned / float(kernel.diagonal(train).sum())
    how, options = BASES[method]
    basis = select_basis(train, kernel, n, how, seed=seed, **options)
    made = scaled if method.startswith("SKFA") and "length" not in method else Basis.features
    return (made(basis, train), made(basis, test)), 1 - float(basis.trace[-1])


def measure(names: tuple[str, ...], splits: int, sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for name in names:
        x, y, kernel = data(name)
        parts = [train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y) for seed in range(splits)]
        for method in METHODS:
            for n in sizes:
                errors, explained = [], []
                for seed, (train, test, taught, asked) in enumerate(parts):
                    (z, z_test), part = features(method, train, test, kernel, seed, n)
                    head = GridSearchCV(LogisticRegression(max_iter=3000), {"C": PENALTIES}, cv=3)
                    errors.append(1 - head.fit(z, taught).score(z_test, asked))
                    explained.append(part)
                rows = len(parts[0][0]) if method in ("kernel PCA", "BKFE") else n
                yield {"data": name, "method": method, "n": n, "values": rows, "error": f"{np.mean(errors):.4f}",
                       "spread": f"{np.std(errors):.4f}", "explained": f"{np.mean(explained):.4f}"}  # fmt: skip


def table(rows: Rows) -> dict[str, str]:
    made = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == name]
        sizes = list(dict.fromkeys(row["n"] for row in mine))
        lines = []
        for method in dict.fromkeys(row["method"] for row in mine):
            cells = [row for row in mine if row["method"] == method]
            few = all(row["values"] == row["n"] for row in cells)
            texts = [f"{100 * float(row['error']):.1f} % · {float(row['explained']):.2f}" for row in cells]
            lines.append([method, "n" if few else f"{int(cells[0]['values']):,}", *texts])
        made[f"sparse directions, {name}"] = markdown(
            ["directions", "kernel values", *(f"n = {n}" for n in sizes)], lines
        )
    return made


# ------------------------------------------------------------------------------------------------------------ figure


def clusters() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(center, 0.1, (40, 2)) for center in ((-0.5, -0.2), (0.0, 0.6), (0.5, 0.0))])


def figure(path: Path, count: int = 4) -> None:
    """The first directions' values in the plane.  Filled points: the samples that a direction takes, by their coefficients."""
    x, kernel = clusters(), MercerKernel("gaussian", gamma=10.0)
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "kernel PCA: each takes all samples": (x, principal(kernel, x, count)[0].T)
    }
    for criterion in ("columns", "kurtosis"):
        basis = select_basis(x, kernel, count, "skfa", candidates=None, criterion=criterion)
        found[f"SKFA, {criterion}: direction i takes i samples"] = (basis.vectors, basis.directions())
    across, up = np.meshgrid(np.linspace(-1, 1, 121), np.linspace(-0.7, 1.1, 109))
    plane = np.column_stack([across.ravel(), up.ravel()])
    with png(path, 10, 7.6) as drawn:
        places = drawn.subplots(len(found), count, sharex=True, sharey=True)
        for row, (title, (vectors, a)) in zip(places, found.items(), strict=True):
            heading(row[0], title)
            for place, weights in zip(row, a, strict=True):
                values = (kernel.gram(plane, vectors) @ weights).reshape(across.shape)
                values *= np.sign(values.flat[np.abs(values).argmax()])  # an eigenvector's sign means nothing
                top = values.max()
                place.contourf(across, up, values, np.linspace(-top, top, 15), cmap="RdBu_r")
                place.contour(across, up, values, [0.0], colors="#222222", linewidths=0.6)
                place.plot(*x.T, ".", color="#555555", markersize=2)
                if len(vectors) < len(x):
                    taken = np.abs(weights) > 0
                    colours = [COLOURS[1] if weight > 0 else COLOURS[0] for weight in weights[taken]]
                    place.scatter(
                        *vectors[taken].T, s=150 * np.abs(weights[taken]), c=colours, edgecolors="#ffffff", zorder=3
                    )
                place.set_xticks([])
                place.set_yticks([])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=5, help="of training and test rows")
    parser.add_argument("-o", "--out", type=Path, default=DATA, help="folder of the CSV file and the figure")
    parser.add_argument("--quick", action="store_true", help="breast cancer, two sizes, one split; changes no page")
    parser.add_argument("--show", action="store_true", help="measure nothing: make the table and the figure again")
    options = parser.parse_args()
    path = options.out / "skfa.csv"
    if not options.show:
        names: tuple[str, ...] = ("breast cancer",) if options.quick else ("digits", "breast cancer")
        rows = []
        for row in measure(names, 1 if options.quick else options.splits, SIZES[:2] if options.quick else SIZES):
            print(*row.values(), sep="\t", flush=True)
            rows.append(row)
        save(path, rows)
    figure(options.out / "skfa.png")
    made = table(load(path))
    if not options.quick:
        publish(made, PAGE)
    for title, text in made.items():
        print(f"{title}\n\n{text}")


if __name__ == "__main__":
    main()
