"""Numbers of docs/subspaces.md: how loose the bounds are, what features are worth, and what a subspace costs to find.

    python -m benchmarks.host.subspace_guide [--splits 5] [-o docs] [--quick] [--only bounds,features,cost]

Digits (1,797 rows of 64 inputs, divided by 16) and breast cancer (569 of 30, standardised); Gaussian kernel with gamma = 1 /
the median squared distance; shrinkage 0.1.  Features are judged by logistic regression on them, its C from {1, 10, 100} by
three-fold cross-validation; splits 70:30, stratified, the same for all.  Online rows make one pass, in float32, as on the
device.  Seconds are CPU's, of one thread.

Writes subspaces-bounds.csv, subspaces-features.csv and subspaces-cost.csv to the output folder, and tables into the page.
"""

from __future__ import annotations

import os

from benchmarks.papers.compared import select_basis
from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.papers.approximation import Approximation
from benchmarks.tables import DOCS, Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from pykernel.training.subspace import HostSubspace

PAGE = DOCS / "subspaces.md"
SHRINKAGE = 0.1
RANKS = (5, 10, 20, 50)
RIDGE = 1.0
SIZES = ((10, 50), (20, 50), (50, 100))
"""Features and expansion vectors."""
COST_RANK, COST_VECTORS, COST_DIM = 10, 64, 16
WHOLE_ROWS, BASIS_ROWS = (1000, 2000, 4000, 8000), (1000, 4000, 16_000, 64_000)

Features = tuple[np.ndarray, np.ndarray]
"""Of training and test rows."""


def data(name: str) -> tuple[np.ndarray, np.ndarray, MercerKernel]:
    loaded = {"digits": load_digits, "breast cancer": load_breast_cancer}[name]()
    x = loaded.data / 16 if name == "digits" else StandardScaler().fit_transform(loaded.data)
    return x, loaded.target, MercerKernel("gaussian", gamma=float(1 / np.median(pdist(x, "sqeuclidean"))))


# ------------------------------------------------------------------------------------------------------------ bounds


def bounds(names: tuple[str, ...], ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for name in names:
        x, y, kernel = data(name)
        gram, signs = kernel.gram(x, x), np.where(y % 2 == 0, 1.0, -1.0)
        full = gram @ np.linalg.solve(gram + RIDGE * np.eye(len(x)), signs)
        for rank in ranks:
            subspace = HostSubspace.fit(x, kernel, rank, SHRINKAGE)
            told, z = Approximation.of(subspace, x), subspace.features(x)
            reduced = z @ np.linalg.solve(z.T @ z + RIDGE * np.eye(rank), z.T @ signs)
            size = np.linalg.norm(signs)
            yield {
                "data": name,
                "rank": rank,
                "residual": f"{told.residual:.4f}",
                "coordinates": f"{told.coordinates:.4f}",
                "spectral": f"{told.spectral:.5f}",
                "frobenius": f"{told.frobenius:.5f}",
                "trace_bound": f"{told.trace_bound:.4f}",
                "residual_bound": f"{told.residual_bound:.4f}",
                "krr": f"{np.linalg.norm(full - reduced) / size:.4f}",
                "krr_bound": f"{told.krr(RIDGE, signs) / size:.4f}",
                "krr_usual": f"{told.spectral * len(x) / RIDGE:.4f}",
            }


# ---------------------------------------------------------------------------------------------------------- features


def online(rank: int, vectors: int, **options: Any) -> Callable[..., Features]:
    def made(train: np.ndarray, test: np.ndarray, kernel: MercerKernel, seed: int) -> Features:
        device = HostModel(
            make_spec(
                {
                    "name": "online",
                    "input": {"dim": train.shape[1]},
                    "kernel": kernel.section(),
                    "learning": {"rule": "okfeb", "features": rank},
                    "reduction": {"n_max": vectors},
                    "subspace": {"shrinkage": SHRINKAGE, **options},
                }
            )
        )
        device.update(train[np.random.default_rng(seed).permutation(len(train))])
        return device.ask("features", train)[0].astype(float), device.ask("features", test)[0].astype(float)

    return made


def batch(rank: int, vectors: int | None) -> Callable[..., Features]:
    def made(train: np.ndarray, test: np.ndarray, kernel: MercerKernel, seed: int) -> Features:
        options = {} if vectors is None else {"selector": "sgma"}
        subspace = HostSubspace.fit(train, kernel, rank, SHRINKAGE, basis=vectors, seed=seed, **options)
        return subspace.features(train), subspace.features(test)

    return made


def nystroem(rank: int, vectors: int, method: str) -> Callable[..., Features]:
    """The Nystroem features of a basis, turned to the eigenvectors of its Gram matrix, the first ``rank`` of them."""

    def made(train: np.ndarray, test: np.ndarray, kernel: MercerKernel, seed: int) -> Features:
        chosen = select_basis(train, kernel, vectors, method, seed=seed).vectors
        values, turned = np.linalg.eigh(kernel.gram(chosen, chosen))
        root = turned[:, ::-1][:, :rank] / np.sqrt(values[::-1][:rank])
        return kernel.gram(train, chosen) @ root, kernel.gram(test, chosen) @ root

    return made


def fourier(count: int) -> Callable[..., Features]:
    def made(train: np.ndarray, test: np.ndarray, kernel: MercerKernel, seed: int) -> Features:
        sampler = RBFSampler(gamma=kernel.gamma, n_components=count, random_state=seed).fit(train)
        return sampler.transform(train), sampler.transform(test)

    return made


def raw(train: np.ndarray, test: np.ndarray, kernel: MercerKernel, seed: int) -> Features:
    return train, test


def methods() -> dict[str, list[Callable[..., Features]]]:
    """Each method at each of SIZES."""
    return {
        "batch, every row": [batch(r, None) for r, _ in SIZES],
        "batch, B vectors": [batch(r, b) for r, b in SIZES],
        "online, exact": [online(r, b) for r, b in SIZES],
        "online, drop": [online(r, b, budget="drop") for r, b in SIZES],
        "online, recursive least squares": [online(r, b, update="rls") for r, b in SIZES],
        "Nyström, B rows, the first r": [nystroem(r, b, "uniform") for r, b in SIZES],
        "Nyström, B rows, all B": [nystroem(b, b, "uniform") for _, b in SIZES],
        "Nyström, B vectors of SGMA, all B": [nystroem(b, b, "sgma") for _, b in SIZES],
        "random Fourier, r": [fourier(r) for r, _ in SIZES],
        "random Fourier, B": [fourier(b) for _, b in SIZES],
    }


def features(names: tuple[str, ...], splits: int, sizes: int) -> Iterator[dict[str, Any]]:
    for name in names:
        x, y, kernel = data(name)
        parts = [train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y) for seed in range(splits)]
        grams = [kernel.gram(train, train) for train, *_ in parts]
        whole = {"inputs as they are": [raw], "support vector machine": [None]}
        for method, makers in [*whole.items(), *methods().items()]:
            for place, make in enumerate(makers[:sizes]):
                scores, errors, left, count, seconds = [], [], [], 0, 0.0
                for seed, (train, test, taught, asked) in enumerate(parts):
                    if make is None:
                        machine = GridSearchCV(SVC(gamma=kernel.gamma), {"C": (1, 10, 100)}, cv=3).fit(train, taught)
                        scores.append(machine.score(test, asked))
                        continue
                    begin = time.thread_time()
                    z, z_test = make(train, test, kernel, seed)
                    seconds += time.thread_time() - begin
                    head = GridSearchCV(LogisticRegression(max_iter=3000), {"C": (1, 10, 100)}, cv=3)
                    scores.append(head.fit(z, taught).score(z_test, asked))
                    count = z.shape[1]
                    if make is not raw:
                        errors.append(np.linalg.norm(grams[seed] - z @ z.T) / len(train))
                        left.append(float(np.mean(1 - np.sum(z**2, axis=1))))
                yield {
                    "data": name,
                    "method": method,
                    "rank": SIZES[place][0] if method in methods() else "",
                    "vectors": SIZES[place][1] if method in methods() else "",
                    "features": count,
                    "accuracy": f"{np.mean(scores):.4f}",
                    "spread": f"{np.std(scores):.4f}",
                    "frobenius": f"{np.mean(errors):.4f}" if errors else "",
                    "trace": f"{np.mean(left):.4f}" if left else "",
                    "seconds": f"{seconds / splits:.3f}" if make is not None and make is not raw else "",
                }


# -------------------------------------------------------------------------------------------------------------- cost


def cost(whole: tuple[int, ...], on_basis: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    kernel = MercerKernel("gaussian", gamma=0.5 / COST_DIM)
    random = np.random.default_rng(0)
    x = random.normal(size=(max(*whole, *on_basis), COST_DIM)) + 2 * random.integers(0, 2, (1, COST_DIM))
    for way, counts, options in (
        ("closed, every row", whole, {}),
        ("alternating, 50 iterations", whole[:-1], {"method": "alternating", "iterations": 50, "tolerance": 0.0}),
        ("closed, 64 vectors", on_basis, {"basis": COST_VECTORS, "selector": "rpcholesky"}),
    ):
        for count in counts:
            begin = time.thread_time()
            HostSubspace.fit(x[:count], kernel, COST_RANK, SHRINKAGE, **options)
            yield {"way": way, "rows": count, "seconds": f"{time.thread_time() - begin:.3f}"}


# ------------------------------------------------------------------------------------------------------------ tables


def bounds_table(rows: Rows) -> dict[str, str]:
    heads = ["data", "r", "mean e²", "\\|K − K̂\\|₂ / N", "\\|K − K̂\\|_F / N", "trace bound", "residual bound"]
    heads += ["\\|f − f̂\\| / \\|y\\|", "bound", "usual bound"]
    keys = ("residual", "spectral", "frobenius", "trace_bound", "residual_bound", "krr", "krr_bound", "krr_usual")
    lines = [[row["data"], row["rank"], *(f"{float(row[key]):.3g}" for key in keys)] for row in rows]
    return {"subspace bounds": markdown(heads, lines)}


def features_table(rows: Rows) -> dict[str, str]:
    made = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == name]
        sizes = [(row["rank"], row["vectors"]) for row in mine if row["method"] == "batch, every row"]
        heads = ["features", *(f"r = {rank}, B = {vectors}" for rank, vectors in sizes)]
        lines = []
        for method in dict.fromkeys(row["method"] for row in mine):
            cells = [row for row in mine if row["method"] == method]
            texts = [
                f"{float(row['accuracy']):.3f}" + (f" · {float(row['frobenius']):.3f}" if row["frobenius"] else "")
                for row in cells
            ]
            lines.append([method, *(texts * len(sizes) if len(texts) == 1 else texts)])
        made[f"subspace features, {name}"] = markdown(heads, lines)
    return made


def cost_table(rows: Rows) -> dict[str, str]:
    counts = sorted({int(row["rows"]) for row in rows})
    lines = []
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = {int(row["rows"]): f"{float(row['seconds']):.2g}" for row in rows if row["way"] == way}
        lines.append([way, *(mine.get(count, "") for count in counts)])
    return {"subspace cost": markdown(["CPU seconds", *(f"N = {count:,}" for count in counts)], lines)}


TABLES = {"bounds": bounds_table, "features": features_table, "cost": cost_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=5, help="of training and test rows")
    parser.add_argument("-o", "--out", type=Path, default=DATA, help="folder of the CSV files")
    parser.add_argument("--only", default=",".join(TABLES), help="which tables, with commas")
    parser.add_argument("--quick", action="store_true", help="breast cancer, one size, one split; changes no page")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if not set(wanted) <= set(TABLES):
        sys.exit(f"--only is {options.only}; it must be some of {','.join(TABLES)}")
    names: tuple[str, ...] = ("breast cancer",) if options.quick else ("digits", "breast cancer")
    with progress_bar() as bar:
        task = bar.add_task("subspaces", total=None)
        for name in wanted:
            if name == "bounds":
                found = bounds(names, RANKS[:1] if options.quick else RANKS)
            elif name == "features":
                found = features(names, 1 if options.quick else options.splits, 1 if options.quick else len(SIZES))
            else:
                found = cost((500, 1000), (1000,)) if options.quick else cost(WHOLE_ROWS, BASIS_ROWS)
            rows = []
            try:
                for row in found:
                    rows.append(row)
                    bar.advance(task)
            except UserError as error:
                sys.exit(str(error))
            save(options.out / f"subspaces-{name}.csv", rows)
    for name in wanted:
        made = TABLES[name](load(options.out / f"subspaces-{name}.csv"))
        if not options.quick:
            publish(made, PAGE)
        for title, table in made.items():
            print(f"{title}\n\n{table}")


if __name__ == "__main__":
    main()
