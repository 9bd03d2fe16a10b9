"""The experiments of ``paper_001.py``: what one task computes.

Subspaces are learned by the product (``pykernel.HostModel`` on a spec of rule okfeb, ``pykernel.training.bkfe``) and measured anew
here, from the vectors X (m, D) and the coefficients A (m, r) alone.  A task and its result are plain values.  L = Phi A, G = A'KA,
q = (G + lambda I)^-1 A'k, e2 = |phi - L q|^2, Khat = Z Z' with Z = Q G^(1/2); k(x, x) = 1 throughout; B: budget; width:
2 sigma^2 / D.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

import benchmarks.papers.basis_reference as reference
from benchmarks import basis_data
from benchmarks.papers.compared import select_basis
from pykernel.bases.gram import MercerKernel
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from pykernel.training.bkfe import bkfe

CENSORED = 3
"""Status of a sample that changed nothing."""
MOST = 2_000
"""Rows of which kernel matrices are compared, at most."""


# ------------------------------------------------------------------------------------------------- the product's side


def spec_of(dim: int, gamma: float, task: Mapping[str, Any]) -> Any:
    """The spec of a task: rank r, budget B, ``reduction`` and ``subspace`` as they are."""
    return make_spec(
        {
            "name": "measured",
            "precision": task.get("precision", "float64"),
            "input": {"dim": dim, "max_abs": 1e3},
            "kernel": {"gamma": gamma},
            "learning": {"rule": "okfeb", "features": task["r"]},
            "reduction": {"n_max": task["B"], "force": True, **task.get("reduction", {})},
            "subspace": {"shrinkage": task["shrinkage"], **task["subspace"]},
        }
    )


def learned(model: HostModel) -> tuple[np.ndarray, np.ndarray]:
    """X (m, D) and A (m, r) of a model, float64."""
    count = int(model.memory.field("n")[0])
    return tuple(model.memory.field(name)[:count].astype(float) for name in ("v", "a"))  # type: ignore[return-value]


def sample() -> str:
    """A digest of what every update, step and budget makes of 80 rows: it changes when the product computes otherwise."""
    x = reference.data("diabetes", 80)
    found = hashlib.sha256()
    forms: list[dict[str, Any]] = [{"budget": budget} for budget in ("drop", "exact")]
    forms += [{"update": update} for update in ("nonparametric", "hybrid", "rls")]
    forms += [{"step": step} for step in ("normalised", "decreasing", "averaged")]
    forms += [{"fading": 0.95}, {"censoring": 0.5}, {"insensitivity": 0.3}, {"update": "rls", "forgetting": 0.98}]
    for form in forms:
        task = {"r": 4, "B": 16, "shrinkage": 0.1, "subspace": form}
        model = HostModel(spec_of(x.shape[1], reference.gamma(x, 0.5), task))
        found.update(model.update(x).tobytes())
        found.update(model.memory.bytes)
    return found.hexdigest()[:16]


def batch_sample() -> str:
    """The same of batch BKFE."""
    k = reference.gram("diabetes", 0.5, 80)
    found = hashlib.sha256()
    for factors in (bkfe(k, 4, 0.1), bkfe(k, 4, 0.1, method="alternating", iterations=5)):
        found.update(np.round(factors.q.T @ factors.a.T @ k, 9).tobytes())
    return found.hexdigest()[:16]


# ------------------------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Map:
    """A map to features: Nystroem where shrinkage is 0 and A'KA = I."""

    vectors: np.ndarray
    a: np.ndarray
    gamma: float
    shrinkage: float

    def coordinates(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q (rows, r), e2 (rows,), G."""
        v = reference.gaussian(self.gamma, x, self.vectors) @ self.a
        g = self.a.T @ reference.gaussian(self.gamma, self.vectors, self.vectors) @ self.a
        q = cho_solve(cho_factor(g + self.shrinkage * np.eye(len(g))), v.T).T
        e2 = 1 - (v * q).sum(1) - self.shrinkage * (q * q).sum(1)
        return q, np.maximum(e2, 0), g

    def features(self, x: np.ndarray) -> np.ndarray:
        """z (rows, r): z(x)'z(y) stands for k(x, y)."""
        q, _, g = self.coordinates(x)
        values, vectors = eigh((g + g.T) / 2)
        return q @ (vectors * np.sqrt(np.maximum(values, 0)))

    def residual(self, x: np.ndarray) -> float:
        """Mean e2."""
        return float(self.coordinates(x)[1].mean())

    def objective(self, x: np.ndarray) -> float:
        """1/N of the batch objective, each q the best for L."""
        q, e2, g = self.coordinates(x)
        return float((e2 + self.shrinkage * (q * q).sum(1)).mean() + self.shrinkage / len(x) * np.trace(g)) / 2


def approximation(k: np.ndarray, x: np.ndarray, found: Map) -> dict[str, float]:
    """Mean residual, |K - Khat|_F / N, and its two bounds."""
    q, e2, _ = found.coordinates(x)
    z = found.features(x)
    mean = float(e2.mean())
    trace = mean + 2 * found.shrinkage * float((q * q).sum(1).mean())
    return {
        "residual": mean,
        "frobenius": float(np.linalg.norm(k - z @ z.T)) / len(k),
        "trace bound": trace,
        "usual bound": float(np.sqrt(mean) * (np.sqrt(mean) + 2)),
    }


def nystroem(x: np.ndarray, gamma: float, count: int, rank: int, seed: int, method: str = "uniform") -> Map:
    """``count`` rows, and of the eigenvectors of their Gram matrix the first ``rank`` (Williams and Seeger)."""
    vectors = select_basis(x, MercerKernel("gaussian", gamma=gamma), count, method, seed=seed).vectors
    values, u = eigh(reference.gaussian(gamma, vectors, vectors))
    values, u = np.maximum(values[::-1][:rank], 1e-10), u[:, ::-1][:, :rank]
    return Map(vectors, u / np.sqrt(values), gamma, 0.0)


def compressed(x: np.ndarray, gamma: float, count: int, rank: int, seed: int, method: str = "uniform") -> Map:
    """``count`` rows, and the best ``rank`` directions of their span for all rows: a second pass over the data."""
    full = nystroem(x, gamma, count, count, seed, method)
    z = reference.gaussian(gamma, x, full.vectors) @ full.a
    _, u = eigh(z.T @ z)
    return Map(full.vectors, full.a @ u[:, ::-1][:, :rank], gamma, 0.0)


def streamed(task: Mapping[str, Any], dim: int, gamma: float) -> HostModel:
    """The product's streaming basis, with all its B coordinates: what it has beside okfeb for a stream in fixed memory."""
    return HostModel(
        make_spec(
            {
                "name": "measured",
                "precision": "float64",
                "input": {"dim": dim, "max_abs": 1e3},
                "kernel": {"gamma": gamma},
                "learning": {"rule": "nystrom-rls", "samples": 3 * task["B"], "seed": task["seed"]},
                "reduction": {"n_max": task["B"]},
                "basis": {"method": "stream", **task["basis"]},
            }
        )
    )


def spanned(model: HostModel, gamma: float) -> Map:
    """The projection on the span of a streaming basis."""
    vectors = model.memory.field("v")[: model.memory.field("n")[0]].astype(float)
    values, u = eigh(reference.gaussian(gamma, vectors, vectors))
    return Map(vectors, u / np.sqrt(np.maximum(values, 1e-10)), gamma, 0.0)


def batch(x: np.ndarray, gamma: float, rank: int, shrinkage: float) -> Map:
    """Batch BKFE of all rows, in closed form, by the product."""
    return Map(x, bkfe(reference.gaussian(gamma, x, x), rank, shrinkage).a, gamma, shrinkage)


@lru_cache(maxsize=4)
def cached_batch(name: str, width: float, rows: int, rank: int, shrinkage: float) -> Map:
    x = reference.data(name, rows)
    return batch(x, reference.gamma(x, width), rank, shrinkage)


@lru_cache(maxsize=2)
def compared(name: str, width: float, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a set, and their kernel matrix."""
    x = reference.data(name, rows)
    x = x[np.linspace(0, len(x) - 1, min(len(x), MOST)).astype(int)]
    return reference.gaussian(reference.gamma(reference.data(name, rows), width), x, x), x


def shuffled(task: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows as they are, in the order of the seed, and gamma."""
    x = reference.data(task["data"], task.get("rows", 0))
    return x, np.random.default_rng([task["seed"], 3]).permutation(len(x)), reference.gamma(x, task["width"])


# ---------------------------------------------------------------------------------------------------- batch, online


def alternate(task: Mapping[str, Any]) -> dict[str, Any]:
    """Algorithm 1 from a random start against the closed form, and both against eigenvectors."""
    x = reference.data(task["data"], task["rows"])
    k = reference.gram(task["data"], task["width"], task["rows"])
    found = bkfe(
        k,
        task["r"],
        task["shrinkage"],
        method="alternating",
        iterations=task["iterations"],
        tolerance=1e-13,
        seed=task["seed"],
    )
    closed = bkfe(k, task["r"], task["shrinkage"])
    best = float(closed.objective[-1])
    objective = np.asarray(found.objective, float)
    values, vectors = eigh(k)
    sigma, v = np.sqrt(np.maximum(values[::-1], 0)), vectors[:, ::-1]
    kept = np.maximum(sigma[: task["r"]] - task["shrinkage"], 0)
    khat = (v[:, : task["r"]] * kept**2) @ v[:, : task["r"]].T
    q = closed.q
    g = closed.a.T @ k @ closed.a
    made = q.T @ g @ q
    gamma = reference.gamma(x, task["width"])
    own = Map(x, closed.a, gamma, task["shrinkage"])
    left = np.linalg.eigvalsh(k - made)
    rank = [int((sigma > shrinkage).sum()) for shrinkage in task["shrinkages"]]
    scale = []
    for size in task["sizes"]:
        part = k[:size, :size]
        a = bkfe(part, task["r"], task["shrinkage"]).a
        scale.append(float(np.trace(a.T @ part @ a)))
    return {
        "excess": objective / best - 1,
        "rises": float(np.max(np.diff(objective), initial=0.0) / best),
        "thresholded": float(np.abs(made - khat).max()),
        "measured": float(len(x) * own.objective(x) / best - 1),
        "least eigenvalue": float(left[0]),
        "trace": float(np.trace(k - made) / len(k) / approximation(k, x, own)["trace bound"] - 1),
        "rank": rank,
        "scale": scale,
    }


def converge(task: Mapping[str, Any]) -> dict[str, Any]:
    """Passes over the rows, every one of which may be stored: residual and objective in parts of the batch optimum's."""
    x = reference.data(task["data"], task["rows"])
    gamma = reference.gamma(x, task["width"])
    best = cached_batch(task["data"], task["width"], task["rows"], task["r"], task["shrinkage"])
    rng = np.random.default_rng([task["seed"], 4])
    stream = np.concatenate([rng.permutation(len(x)) for _ in range(task["passes"])])
    model = HostModel(spec_of(x.shape[1], gamma, {**task, "B": len(x)}))
    values, u = eigh(reference.gram(task["data"], task["width"], task["rows"]))
    top = u[:, ::-1][:, : task["r"]]
    at, seen = [], 0
    for count in task["at"]:
        model.update(x[stream[seen:count]])
        seen = count
        vectors, a = learned(model)
        found = Map(vectors, a, gamma, task["shrinkage"])
        at.append(
            {
                "residual": found.residual(x) / best.residual(x),
                "objective": found.objective(x) / best.objective(x),
                "affinity": affinity(found, x, top, values[::-1][: task["r"]]),
                "vectors": len(vectors),
            }
        )
    return {key: [each[key] for each in at] for key in at[0]}


def affinity(found: Map, x: np.ndarray, top: np.ndarray, values: np.ndarray) -> float:
    """Mean of |P_L u|^2 over kernel PCA's directions u = Phi top / sqrt(values): 1 if the subspaces are the same."""
    v = reference.gaussian(found.gamma, x, found.vectors) @ found.a
    inner = v.T @ (top / np.sqrt(values))
    g = found.a.T @ reference.gaussian(found.gamma, found.vectors, found.vectors) @ found.a
    scale, u = eigh((g + g.T) / 2)
    kept = scale > 1e-9 * scale[-1]
    turned = (u[:, kept] / np.sqrt(scale[kept])).T @ inner
    return float((turned * turned).sum(0).mean())


def approximate(task: Mapping[str, Any]) -> dict[str, Any]:
    """One pass, or a batch method, and how near the kernel matrix is."""
    x, order, gamma = shuffled(task)
    rank, budget, shrinkage = task["r"], task["B"], task["shrinkage"]
    if task["method"] == "online":
        model = HostModel(spec_of(x.shape[1], gamma, task))
        statuses = model.update(x[order])
        found = Map(*learned(model), gamma, shrinkage)
        extra = {"vectors": len(found.vectors), "censored": float((statuses == CENSORED).mean())}
    else:
        extra = {}
        if task["method"] == "batch":
            found = cached_batch(task["data"], task["width"], task.get("rows", 0), rank, shrinkage)
        elif task["method"] == "stream":
            basis = streamed(task, x.shape[1], gamma)
            basis.update(x[order], np.zeros(len(x)))
            found = spanned(basis, gamma)
        elif task["method"] in ("compressed", "sgma"):
            way = "uniform" if task["method"] == "compressed" else "sgma"
            found = compressed(x, gamma, budget, rank, task["seed"], way)
        else:
            found = nystroem(x, gamma, budget, budget if task["method"] == "full" else rank, task["seed"])
    return {**approximation(*compared(task["data"], task["width"], task.get("rows", 0)), found), **extra}


def ridge_bound(task: Mapping[str, Any]) -> dict[str, float]:
    """Kernel ridge regression with Khat in place of K: how far off, and the bound |K - Khat|_2 |y| / c."""
    data = basis_data.load(task["data"]).standardised()
    x, y = data.x, np.asarray(data.y, float)
    y = (y - y.mean()) / y.std()
    k = reference.gram(task["data"], task["width"])
    found = cached_batch(task["data"], task["width"], 0, task["r"], task["shrinkage"])
    z = found.features(x)
    khat, ridge = z @ z.T, task["ridge"]
    fits = [m @ np.linalg.solve(m + ridge * np.eye(len(m)), y) for m in (k, khat)]
    return {
        "off": float(np.linalg.norm(fits[0] - fits[1]) / np.linalg.norm(y)),
        "bound": float(np.linalg.norm(k - khat, 2) / ridge),
    }


# ------------------------------------------------------------------------------------------------------- switching


@lru_cache(maxsize=4)
def regimes(name: str, seed: int, length: int, held: int) -> tuple[list[np.ndarray], list[np.ndarray], float]:
    """Two regimes: rows that come (drawn, length each), rows held out, gamma."""
    rng = np.random.default_rng([seed, 5])
    if name == "subspaces":
        came, out = [], []
        for _ in range(2):
            basis = np.linalg.qr(rng.normal(size=(20, 3)))[0]
            rows = rng.normal(size=(4 * length + held, 3)) @ basis.T + 0.1 * rng.normal(size=(4 * length + held, 20))
            came.append(rows[held:])
            out.append(rows[:held])
        return came, out, 0.2
    data = basis_data.load("digits")
    assert data.y is not None
    groups = ((0, 1, 2), (7, 8, 9)) if name == "digits" else (tuple(range(10)),) * 2
    came, out = [], []
    for group in groups:
        rows = data.x[np.isin(data.y, group)]
        rows = rows[rng.permutation(len(rows))]
        out.append(rows[: len(rows) // 2][:held])
        pool = rows[len(rows) // 2 :]
        came.append(pool[rng.integers(len(pool), size=4 * length)])
    if groups[0] == groups[1]:
        came[1], out[1] = came[0], out[0]
    return came, out, reference.gamma(data.x, 0.5)


def switch(task: Mapping[str, Any]) -> dict[str, Any]:
    """Segments of ``length`` samples, of two regimes in turn; mean residual of blocks as they come, and of held-out rows."""
    length, block, after = task["length"], task["block"], task["after"]
    came, out, gamma = regimes(task["stream"], task["seed"], length, task["held"])
    if task["method"] not in ("online", "stream"):
        return reference_of_switch(task, came, out, gamma)
    online = task["method"] == "online"
    dim = came[0].shape[1]
    model = HostModel(spec_of(dim, gamma, task)) if online else streamed(task, dim, gamma)
    seen, statuses, soon, end = [], [], [], []
    for segment in range(task["segments"]):
        rows = came[segment % 2][segment // 2 * length :][:length]
        for part, kept in ((rows[:after], soon), (rows[after:], end)):
            answers, states = (
                model.prequential(part) if online else model.prequential(part, np.zeros(len(part)), question="residual")
            )
            seen.append(answers)
            statuses.append(states)
            found = Map(*learned(model), gamma, task["shrinkage"]) if online else spanned(model, gamma)
            kept.append(found.residual(out[segment % 2]))
    levels = np.concatenate(seen).reshape(-1, block).mean(axis=1)
    status = np.concatenate(statuses)
    full = np.flatnonzero(np.cumsum(status == 1) >= task["B"])
    late = status[full[0] + 1 :] if len(full) else status[:0]
    return {
        "levels": levels,
        "after": soon,
        "end": end,
        "censored": float((late == CENSORED).mean()) if len(late) else 0.0,
        "second half": float((status[len(status) // 2 :] == CENSORED).mean()),
    }


def reference_of_switch(task: Mapping[str, Any], came: list[np.ndarray], out: list[np.ndarray], gamma: float) -> Any:
    """What kernel PCA of each regime by itself leaves of the held-out rows; or a map that was made in the first segment."""
    length, rank, shrinkage = task["length"], task["r"], task["shrinkage"]
    rows = [each[:length] for each in came]
    if task["method"] == "batch":
        maps = [batch(each, gamma, rank, shrinkage) for each in rows]
    else:
        maps = [nystroem(rows[0], gamma, task["B"], rank, task["seed"])] * 2
    found = [maps[segment % 2].residual(out[segment % 2]) for segment in range(task["segments"])]
    return {"levels": np.repeat(found, length // task["block"]), "after": found, "end": found}


# -------------------------------------------------------------------------------------------------------- learning


def fourier(x: np.ndarray, gamma: float, count: int, seed: int) -> np.ndarray:
    """Random Fourier features (rows, 2 (count // 2)): cosines and sines of the same directions."""
    w = np.random.default_rng([seed, 6]).normal(size=(x.shape[1], count // 2)) * np.sqrt(2 * gamma)
    return np.hstack([np.cos(x @ w), np.sin(x @ w)]) / np.sqrt(count // 2)


def words(task: Mapping[str, Any], dim: int) -> int:
    """Numbers of the frozen map: B vectors and their coefficients."""
    return int(task["B"] * (dim + task["r"]))


def as_many_vectors(most: int, dim: int) -> int:
    """Vectors of a Nystroem map of so many numbers: m D + m (m + 1) / 2."""
    count = 1
    while (count + 1) * dim + (count + 1) * (count + 2) // 2 <= most:
        count += 1
    return count


def split(task: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training inputs, labels, test inputs, labels; seven tenths are for training.  Scaled by the training rows."""
    data = basis_data.load(task["data"])
    x, y = data.x, np.asarray(data.y)
    rng = np.random.default_rng([task["seed"], 7])
    order = rng.permutation(len(x))[: task.get("rows", 0) or len(x)]
    cut = len(order) * 7 // 10
    train, test = order[:cut], order[cut:]
    if task["data"] not in reference.UNCHANGED:
        spread = x[train].std(0)
        x = (x - x[train].mean(0)) / np.where(spread > 0, spread, 1)
    if task["head"] == "ridge":
        y = (y - y[train].mean()) / y[train].std()
    return x[train], y[train], x[test], y[test]


def mapped(
    task: Mapping[str, Any], train: np.ndarray, test: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Features of both parts, and the numbers of the map."""
    rank, budget, seed, dim = task["r"], task["B"], task["seed"], train.shape[1]
    method = task["method"]
    if method == "raw":
        mean, spread = train.mean(0), np.maximum(train.std(0), 1e-9)
        return (train - mean) / spread, (test - mean) / spread, 0
    if method.startswith("fourier"):
        count = rank if method == "fourier, r" else budget if method == "fourier, B" else 2 * (words(task, dim) // dim)
        return fourier(train, gamma, count, seed), fourier(test, gamma, count, seed), count // 2 * dim
    if method == "online":
        model = HostModel(spec_of(dim, gamma, task))
        model.update(train)
        found = Map(*learned(model), gamma, task["shrinkage"])
    elif method == "batch":
        found = batch(train, gamma, rank, task["shrinkage"])
    elif method == "nystroem, r":
        found = nystroem(train, gamma, budget, rank, seed)
    elif method == "nystroem, B":
        found = nystroem(train, gamma, budget, budget, seed)
    else:
        count = as_many_vectors(words(task, dim), dim)
        found = nystroem(train, gamma, count, count, seed)
    vectors, rank = found.a.shape
    size = vectors * dim + (vectors * rank if rank < vectors else vectors * (vectors + 1) // 2)
    return found.features(train), found.features(test), size


WEIGHTS = {"raw": (0.01, 0.1, 1.0), "features": (10.0, 100.0, 1000.0), "kernel": (1.0, 10.0, 100.0)}
"""C of the machines, chosen on a quarter of the training part."""
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def classifier(head: str, weight: float, gamma: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC, LinearSVC

    if head == "kernel":
        return SVC(C=weight, gamma=gamma)
    if head == "svm":
        return LinearSVC(C=weight, dual=False, tol=1e-3)
    return LogisticRegression(C=weight, max_iter=2000, tol=1e-3)


def learn(task: Mapping[str, Any]) -> dict[str, Any]:
    """Test accuracy, or the test error of ridge regression in parts of the variance, on features made without labels."""
    train, y, test, truth = split(task)
    gamma = reference.gamma(train, task["width"])
    head = task["head"]
    if task["method"] == "kernel":
        z, z_test, size = train, test, train.size
    else:
        z, z_test, size = mapped(task, train, test, gamma)
    inner = len(z) * 3 // 4

    if head == "ridge":

        def ridge(a: np.ndarray, b: np.ndarray, target: np.ndarray, weights: Sequence[float]) -> list[np.ndarray]:
            """Predictions of b for each weight."""
            if task["method"] == "kernel":
                k, cross = reference.gaussian(gamma, a, a), reference.gaussian(gamma, b, a)
            elif a.shape[1] < len(a):
                values, u = eigh(a.T @ a)
                seen = u.T @ (a.T @ target)
                return [b @ (u @ (seen / (np.maximum(values, 0) + weight))) for weight in weights]
            else:
                k, cross = a @ a.T, b @ a.T
            return [cross @ cho_solve(cho_factor(k + weight * np.eye(len(a))), target) for weight in weights]

        tried = ridge(z[:inner], z[inner:], y[:inner], RIDGES)
        losses = [float(np.mean((found - y[inner:]) ** 2)) for found in tried]
        chosen = RIDGES[int(np.argmin(losses))]
        value = float(np.mean((ridge(z, z_test, y, [chosen])[0] - truth) ** 2) / np.var(truth))
    else:
        kind = "kernel" if task["method"] == "kernel" else head
        weights = WEIGHTS[task["method"] if task["method"] in WEIGHTS else "features"]
        scores = [classifier(kind, w, gamma).fit(z[:inner], y[:inner]).score(z[inner:], y[inner:]) for w in weights]
        chosen = weights[int(np.argmax(scores))]
        value = float(classifier(kind, chosen, gamma).fit(z, y).score(z_test, truth))
    return {"value": value, "features": int(z.shape[1]), "words": int(size), "weight": chosen}


# ------------------------------------------------------------------------------------------------------------ time


@lru_cache(maxsize=2)
def long_stream(rows: int) -> tuple[np.ndarray, float]:
    """Rows of the demo's stream, in any order, again and again with a little noise."""
    x = reference.data("bikeshare")
    rng = np.random.default_rng(rows)
    return x[rng.integers(len(x), size=rows)] + 0.02 * rng.normal(size=(rows, x.shape[1])), reference.gamma(x, 0.5)


def timed(task: Mapping[str, Any]) -> dict[str, Any]:
    """CPU seconds from N rows to their N x r (or N x B) features, once; the median of a few runs."""
    x, gamma = long_stream(task["N"])
    rank, budget, shrinkage = task["r"], task["B"], task["shrinkage"]

    def run() -> tuple[float, float]:
        """Learning, and making all features."""
        start = time.process_time()
        if task["method"] == "online":
            model = HostModel(spec_of(x.shape[1], gamma, task))
            start = time.process_time()
            model.update(x)
            between = time.process_time()
            model.ask("features", x)
        elif task["method"] == "batch":
            factors = bkfe(reference.gaussian(gamma, x, x), rank, shrinkage)
            between = time.process_time()
            g = np.linalg.cholesky(factors.q @ factors.q.T + 1e-12 * np.eye(rank))
            _ = factors.q.T @ g
        elif task["method"] == "nystroem":
            vectors = x[np.random.default_rng(0).choice(len(x), budget, replace=False)]
            values, u = eigh(reference.gaussian(gamma, vectors, vectors), subset_by_index=[budget - rank, budget - 1])
            between = time.process_time()
            _ = reference.gaussian(gamma, x, vectors) @ (u / np.sqrt(values))
        else:
            between = start
            fourier(x, gamma, budget, 0)
        return between - start, time.process_time() - between

    if task["method"] == "online":  # not the compiler's time
        HostModel(spec_of(x.shape[1], gamma, task)).prequential(x[:100])
        HostModel(spec_of(x.shape[1], gamma, task)).ask("features", x[:2])
    found = [run() for _ in range(task["runs"])]
    learning, features = (float(np.median(column)) for column in zip(*found, strict=True))
    return {"learning": learning, "features": features, "runs": len(found)}


KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "alternate": alternate,
    "converge": converge,
    "approximate": approximate,
    "ridge_bound": ridge_bound,
    "switch": switch,
    "learn": learn,
    "timed": timed,
}


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    """Compute one task."""
    return KINDS[task["kind"]](task)
