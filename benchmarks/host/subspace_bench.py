"""What subspace_baselines.py, subspace_cost.py and subspace_drift.py have in common: specs, what a model holds, errors."""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import Rows, load
from pykernel.bases.gram import MercerKernel
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.training.subspace import HostSubspace

SHRINKAGE = 0.1
LIMIT = 1e3
"""Of inputs: beyond all of them."""


def spec_of(
    dim: int,
    n_max: int,
    rank: int,
    gamma: float,
    *,
    precision: str = "float32",
    ald_threshold: float | None = None,
    label: Mapping[str, Any] | None = None,
    learning: Mapping[str, Any] | None = None,
    **subspace: Any,
) -> Spec:
    """An okfeb spec with a Gaussian kernel; further keys are those of [subspace]."""
    content: dict[str, Any] = {
        "name": "tracked",
        "precision": precision,
        "input": {"dim": dim, "max_abs": LIMIT},
        "kernel": {"gamma": gamma},
        "learning": {"rule": "okfeb", "features": rank, **(learning or {})},
        "reduction": {
            "n_max": n_max,
            "force": True,
            **({} if ald_threshold is None else {"ald_threshold": ald_threshold}),
        },
        "subspace": {"shrinkage": SHRINKAGE, **subspace},
    }
    content |= {} if label is None else {"label": dict(label)}
    return make_spec(content)


def triangle(packed: np.ndarray, n: int) -> np.ndarray:
    """The symmetric (n, n) matrix of a packed lower triangle, float64."""
    full = np.zeros((n, n))
    full[np.tril_indices(n)] = packed[: n * (n + 1) // 2]
    return full + np.tril(full, -1).T


@dataclass(frozen=True)
class Held:
    """What a model holds, in float64: vectors (n, D), A (n, r), G (r, r), P (n, n) or None with budget drop."""

    vectors: np.ndarray
    a: np.ndarray
    g: np.ndarray
    p: np.ndarray | None
    kernel: MercerKernel

    @classmethod
    def of(cls, model: HostModel) -> Held:
        field = model.memory.field
        n, rank = int(field("n")[0]), int(field("rank")[0])
        exact = model.spec.subspace.budget == "exact"
        root = np.zeros((n, n))
        if exact:
            root[np.tril_indices(n)] = field("root")[: n * (n + 1) // 2].astype(float)
        return cls(
            field("v")[:n].astype(float),
            field("a")[:n, :rank].astype(float),
            triangle(field("g").astype(float), rank),
            root.T @ root if exact else None,
            MercerKernel("gaussian", model.spec.kernel.gamma),
        )

    def gram(self) -> np.ndarray:
        return self.kernel.gram(self.vectors, self.vectors)

    def drift_g(self) -> float:
        """max |G - A'KA| / max |A'KA|."""
        true = self.a.T @ self.gram() @ self.a
        return float(np.abs(self.g - true).max() / np.abs(true).max())

    def drift_p(self) -> float | None:
        """max |PK - I|."""
        return None if self.p is None else float(np.abs(self.p @ self.gram() - np.eye(len(self.p))).max())

    def subspace(self, shrinkage: float = SHRINKAGE) -> HostSubspace:
        """The same, as a subspace on the host, which computes G anew."""
        return HostSubspace(self.kernel, self.vectors, self.a, shrinkage)


def gamma_of(x: np.ndarray) -> float:
    """2 sigma^2 = the rows' mean squared distance, so that k = 1/e there."""
    return float(1 / (2 * x.var(0).sum()))


BLOCK = 1000


def matrix_error(kernel: MercerKernel, x: np.ndarray, z: np.ndarray) -> float:
    """|K - zz'|_F / N over the N rows of x, z: (N, features); in blocks."""
    total = 0.0
    for at in range(0, len(x), BLOCK):
        rows = slice(at, at + BLOCK)
        total += float(np.sum((kernel.gram(x[rows], x) - z[rows] @ z.T) ** 2))
    return float(np.sqrt(total) / len(x))


def merged(path: Path, made: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """The rows of the file, those with the same keys as new ones replaced by them; further ones at the end."""
    new = {tuple(str(row[key]) for key in keys): row for row in made}
    old: Rows = load(path) if path.is_file() else []
    rows: list[Mapping[str, Any]] = [new.pop(tuple(row[key] for key in keys), row) for row in old]
    return [*rows, *new.values()]


def arguments(doc: str | None, words: Sequence[str] | None, **more: Mapping[str, Any]) -> argparse.Namespace:
    """The options that the scripts share, and further ones: name = arguments of add_argument."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, given in more.items():
        parser.add_argument(f"--{name}", **given)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="small, in seconds: does it work?")
    parser.add_argument("--show", action="store_true", help="measure nothing: the tables from the CSV file")
    chosen = parser.parse_args(words)
    if chosen.quick and not chosen.show and chosen.out == DATA:
        parser.error("--quick needs -o FOLDER, so that the full results stay")
    return chosen
