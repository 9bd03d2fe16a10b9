"""The experiments of ``paper_001_more.py``: what one task computes.  Notation and measures as in ``paper_001_tasks.py``."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve, eigh

import benchmarks.papers.basis_reference as reference
from benchmarks import basis_data
from benchmarks.papers.paper_001_tasks import Map, batch, learned, spec_of
from benchmarks.papers.rank import choose_rank
from benchmarks.tables import ROOT
from pykernel.bases.gram import MercerKernel
from pykernel.host.model import HostModel

GAP = 1e-6
"""Part of the loss by which primal and dual of a support vector machine may differ."""
NEARLY = 1.05
"""What is within 5 % of the least is as good."""


# --------------------------------------------------------------------------------------------- support vector machines


@njit(cache=False)
def ascend(q: np.ndarray, c: float, a: np.ndarray, slope: np.ndarray, sweeps: int) -> None:
    """Coordinate ascent on 1'a - a'q a / 2 over 0 <= a <= c; slope is 1 - q a, kept."""
    for _ in range(sweeps):
        for i in range(len(a)):
            wanted = min(max(a[i] + slope[i] / q[i, i], 0.0), c)
            if wanted != a[i]:
                slope -= (wanted - a[i]) * q[i]
                a[i] = wanted


def svm(k: np.ndarray, y: np.ndarray, c: float) -> tuple[np.ndarray, float, float]:
    """min |f|^2 / 2 + c sum max(0, 1 - y f), no intercept: multipliers a of the dual, its value, primal less dual.

    c: of each sample.  Hsieh et al. 2008, until the gap is at most GAP of the value.  O(N^2) a sweep.
    """
    q = (k * y[:, None]) * y[None] + 1e-12 * np.eye(len(k))
    a, slope = np.zeros(len(k)), np.ones(len(k))
    for _ in range(2000):
        ascend(q, c, a, slope, 10)
        slope = 1 - q @ a  # without what rounding has added
        norm = float(a @ (1 - slope))
        dual, primal = float(a.sum()) - norm / 2, norm / 2 + c * float(np.maximum(slope, 0).sum())
        if primal - dual <= GAP * dual:
            return a, dual, primal - dual
    raise RuntimeError(f"the support vector machine's gap is {primal - dual:.1e} of {dual:.1e}")


@lru_cache(maxsize=4)
def halves(name: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training inputs, labels of ±1 (digits: odd or even), test inputs, labels; seven tenths are for training."""
    data = basis_data.load(name)
    x, y = data.x, np.asarray(data.y)
    order = np.random.default_rng([seed, 8]).permutation(len(x))[:rows]
    cut = len(order) * 7 // 10
    train, test = order[:cut], order[cut:]
    if name not in reference.UNCHANGED:
        spread = x[train].std(0)
        x = (x - x[train].mean(0)) / np.where(spread > 0, spread, 1)
    sign = np.where(y % 2 == 0, 1.0, -1.0)
    return x[train], sign[train], x[test], sign[test]


@lru_cache(maxsize=2)
def whole_machine(name: str, rows: int, seed: int, width: float, c: float) -> tuple[np.ndarray, np.ndarray, Any]:
    """K of the training rows, K between test and training rows, and the machine on K."""
    x, y, test, _ = halves(name, rows, seed)
    gamma = reference.gamma(x, width)
    k = reference.gaussian(gamma, x, x)
    return k, reference.gaussian(gamma, test, x), svm(k, y, c)


def classify(task: Mapping[str, Any]) -> dict[str, float]:
    """The machine on Khat against the machine on K: losses, predictions, and their bounds.

    excess: loss on Khat less loss on K, in parts of the latter.  The loss is the optimum of |f|^2 / 2 + c sum of hinges;
    with M = K - Khat, which is never below 0, its bounds are a'Y M Y a / 2 by the machine on Khat (above) and on K (below),
    N c^2 |M|_2 / 2 and N c^2 tr M / 2 before any machine is trained, the usual one N^2 c^2 (e + 2) e / 2, e^2 the mean
    residual; no loss is above c N, that of f = 0.  Predictions differ by the root of twice the excess at most.
    """
    x, y, test, truth = halves(task["data"], task["rows"], task["seed"])
    gamma, c = reference.gamma(x, task["width"]), task["c"]
    k, cross, (a, loss, gap) = whole_machine(task["data"], task["rows"], task["seed"], task["width"], c)
    if task["method"] == "batch":
        found = batch(x, gamma, task["r"], task["shrinkage"])
    else:
        model = HostModel(spec_of(x.shape[1], gamma, task))
        model.update(x)
        found = Map(*learned(model), gamma, task["shrinkage"])
    z, z_test = found.features(x), found.features(test)
    khat = z @ z.T
    a_hat, loss_hat, gap_hat = svm(khat, y, c)
    left, rows = k - khat, len(x)
    residual = found.residual(x)
    f, f_hat = cross @ (a * y), z_test @ (z.T @ (a_hat * y))
    excess = loss_hat - loss
    told = {
        "above": float((a_hat * y) @ left @ (a_hat * y)) / 2,
        "below": float((a * y) @ left @ (a * y)) / 2,
        "spectral": rows * c * c * float(np.linalg.norm(left, 2)) / 2,
        "trace": rows * c * c * float(np.trace(left)) / 2,
        "usual": (rows * c) ** 2 * float(np.sqrt(residual) * (np.sqrt(residual) + 2)) / 2,
        "nothing": c * rows - loss,
    }
    return {
        "excess": excess / loss,
        **{key: value / loss for key, value in told.items()},
        "gap": (gap + gap_hat) / loss,
        "frobenius": float(np.linalg.norm(left)) / rows,
        "off": float(np.abs(f - f_hat).max()),
        "off bound": float(np.sqrt(2 * (excess + gap + gap_hat))),
        "off before": float(np.sqrt(2 * told["spectral"])),
        "differ": float(np.mean((f > 0) != (f_hat > 0))),
        "accuracy": float(np.mean(np.sign(f) == truth)),
        "accuracy hat": float(np.mean(np.sign(f_hat) == truth)),
    }


# ------------------------------------------------------------------------------------------------------------ gradient


def walk(task: Mapping[str, Any]) -> dict[str, list[float]]:
    """Rows drawn with replacement, with room for all: |grad C_n(L_n)|, C_n the cost over the n samples so far, equation 10.

    By Danskin the gradient is that with each q at its best: D = -1/n sum (phi - L q) q' + rho L, a combination of images,
    whose norm needs kernel values only.  rho: lambda / n, or lambda / rows if the ridge's share is fixed.  part: in parts of
    1/n |sum phi q'|; scale: tr L'L; excess: C_n(L_n) in parts of its least value, less 1.
    """
    x = reference.data(task["data"], task["rows"])
    gamma, shrinkage = reference.gamma(x, task["width"]), task["shrinkage"]
    k = reference.gaussian(gamma, x, x)
    drawn = np.random.default_rng([task["seed"], 9]).integers(len(x), size=task["at"][-1])
    model = HostModel(spec_of(x.shape[1], gamma, task))
    told: dict[str, list[float]] = {"gradient": [], "part": [], "scale": [], "excess": []}
    seen = 0
    for n in task["at"]:
        model.update(x[drawn[seen:n]])
        seen = n
        vectors, a = learned(model)
        weights = np.bincount(drawn[:n], minlength=len(x)) / n
        rho = shrinkage / (n if task["ridge"] == "λ/n" else len(x))
        # A over all rows: each vector is one of them
        where = np.abs(vectors[:, None] - x[None]).sum(-1).argmin(1)
        every = np.zeros((len(x), a.shape[1]))
        np.add.at(every, where, a)
        q, e2, g = Map(vectors, a, gamma, shrinkage).coordinates(x)
        moved = weights[:, None] * q
        d = -moved + every @ (q.T @ moved) + rho * every
        size = np.sqrt(max(float(np.trace(d.T @ k @ d)), 0.0))
        told["gradient"].append(size)
        told["part"].append(size / np.sqrt(float(np.trace(moved.T @ k @ moved))))
        told["scale"].append(float(np.trace(g)))
        cost = float(weights @ (e2 + shrinkage * (q * q).sum(1))) / 2 + rho / 2 * float(np.trace(g))
        told["excess"].append(cost / least(k, weights, a.shape[1], shrinkage, rho) - 1)
    return told


def least(k: np.ndarray, weights: np.ndarray, rank: int, shrinkage: float, rho: float) -> float:
    """The least cost of any L of this rank: sum_n w_n (|phi_n - L q_n|^2 + lambda |q_n|^2) / 2 + rho |L|^2 / 2.

    With M = L Q and the columns weighted by the roots of w, lambda |Q|^2 + rho |L|^2 is at least 2 sqrt(lambda rho) |M|_*: a
    soft threshold at sqrt(lambda rho), as in docs/subspaces.md.
    """
    root = np.sqrt(weights)
    sigma = np.sqrt(np.maximum(eigh(k * np.outer(root, root), eigvals_only=True)[::-1], 0))
    kept = np.maximum(sigma[:rank] - np.sqrt(shrinkage * rho), 0)
    return float(weights @ np.diag(k) - (kept**2).sum()) / 2


# -------------------------------------------------------------------------------------------------------------- choice

WEIGHTS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def targets(name: str, y: np.ndarray) -> np.ndarray:
    """(rows, columns): one column of ±1 for each class, or the labels in standard deviations."""
    if name in ("digits", "breast_cancer"):
        return np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    return ((y - y.mean()) / y.std())[:, None]


def mistakes(name: str, answers: np.ndarray, wanted: np.ndarray) -> float:
    """Part of wrong classes, or the squared error in parts of the variance."""
    if wanted.shape[1] > 1:
        return float(np.mean(answers.argmax(1) != wanted.argmax(1)))
    return float(np.mean((answers - wanted) ** 2) / np.var(wanted))


def heads(z: np.ndarray, wanted: np.ndarray, asked: np.ndarray) -> list[np.ndarray]:
    """Answers of ridge regressions with an intercept, one for each weight."""
    mean, around = z.mean(0), wanted.mean(0)
    centred = z - mean
    gram, seen = centred.T @ centred, centred.T @ (wanted - around)
    eye = np.eye(len(gram))
    return [(asked - mean) @ cho_solve(cho_factor(gram + w * eye), seen) + around for w in WEIGHTS]


def choose(task: Mapping[str, Any]) -> dict[str, Any]:
    """Test errors of the ways to choose lambda and r.

    The training part's last quarter judges what its first three learned: by the error of a head (its weight, too, is chosen
    there), or without labels by what is left of these samples.  Then all of the training part is learned anew.
    """
    name, seed = task["data"], task["seed"]
    data = basis_data.load(name)
    x, wanted = data.x, targets(name, np.asarray(data.y))
    order = np.random.default_rng([seed, 10]).permutation(len(x))[: task["rows"] or len(x)]
    cut = len(order) * 7 // 10
    train, test = order[:cut], order[cut:]
    if name not in reference.UNCHANGED:
        spread = x[train].std(0)
        x = (x - x[train].mean(0)) / np.where(spread > 0, spread, 1)
    inner, judge = train[: cut * 3 // 4], train[cut * 3 // 4 :]
    gamma = reference.gamma(x[train], task["width"])

    def learn(rows: np.ndarray, shrinkage: float, rank: int) -> Map:
        model = HostModel(spec_of(x.shape[1], gamma, {**task, "r": rank, "shrinkage": shrinkage}))
        model.update(x[rows])
        return Map(*learned(model), gamma, shrinkage)

    judged, tested, left = {}, {}, {}

    def judge_and_test(at: tuple[float, int]) -> None:
        first = learn(inner, *at)
        tried = heads(first.features(x[inner]), wanted[inner], first.features(x[judge]))
        errors = [mistakes(name, answers, wanted[judge]) for answers in tried]
        weight = int(np.argmin(errors))
        judged[at], left[at] = errors[weight], first.residual(x[judge])
        second = learn(train, *at)
        answers = heads(second.features(x[train]), wanted[train], second.features(x[test]))[weight]
        tested[at] = mistakes(name, answers, wanted[test])

    for at in itertools.product(task["shrinkages"], task["ranks"]):
        judge_and_test(at)
    ranks, middle = list(task["ranks"]), 0.1
    best = min(judged, key=lambda at: judged[at])
    good = [at for at in judged if judged[at] <= NEARLY * judged[best]]
    ways = {
        "hindsight": min(tested, key=lambda at: tested[at]),
        "validation": best,
        "validation, smallest r within 5 %": min(good, key=lambda at: (at[1], judged[at])),
        "validation of r, λ = 0.1": min(((middle, rank) for rank in ranks), key=lambda at: judged[at]),
        "novelty still falls by 5 %": (middle, falling(left, middle, ranks)),
        "λ = 0.1, r = B / 5": (middle, min(ranks, key=lambda rank: abs(rank - task["B"] / 5))),
        "worst": max(tested, key=lambda at: tested[at]),
    }
    # the product's choice, of a batch subspace on B vectors
    classes = wanted.shape[1] > 1
    kernel = MercerKernel("gaussian", gamma=gamma)
    for way, y in (
        ("`choose_rank`, labels", wanted[train].argmax(1) if classes else wanted[train]),
        ("`choose_rank`, no labels", None),
    ):
        found = choose_rank(x[train], kernel, y, classes=classes, most=max(ranks), basis=task["B"], seed=seed)
        ways[way] = (middle, found.rank)
        if ways[way] not in tested:
            judge_and_test(ways[way])
    return {"ways": {way: {"shrinkage": at[0], "r": at[1], "error": tested[at]} for way, at in ways.items()}}


def falling(left: Mapping[tuple[float, int], float], shrinkage: float, ranks: list[int]) -> int:
    """The last r up to which each larger one leaves at least 5 % less."""
    for rank, larger in itertools.pairwise(ranks):
        if left[shrinkage, larger] > left[shrinkage, rank] / NEARLY:
            return rank
    return ranks[-1]


# ------------------------------------------------------------------------------------------------------------- streams

DAY, GEARBOX = 24, 8000
FIRST = 5
"""The first fifth of a stream is learned before anything counts; it also gives each column's mean and spread."""


@lru_cache(maxsize=2)
def stream(name: str) -> np.ndarray:
    """Inputs (rows, D) in the order in which they came, in standard deviations of the first fifth."""
    if name == "gearbox":
        sys.path.append(str(ROOT / "examples" / "novelty"))
        from machine import Drive  # type: ignore[import-not-found]

        x = Drive(0).run(GEARBOX).x
    elif name.startswith("bikes"):
        from pykernel.host.bikeshare import bikeshare

        x, rentals, _ = bikeshare()
        if name != "bikes":
            x = np.lib.stride_tricks.sliding_window_view(rentals, DAY)
    else:
        from benchmarks.host.first_streams import raw

        x, flow = raw({"water": "water flow", "stocks": "stocks"}[name])
        if name == "water":
            x = np.lib.stride_tricks.sliding_window_view(flow, DAY)
    first = x[: len(x) // FIRST]
    spread = first.std(0)
    return np.asarray((x - first.mean(0)) / np.where(spread > 0, spread, 1), float)


def track(task: Mapping[str, Any]) -> dict[str, Any]:
    """Means, in blocks, of what the subspace leaves of each sample before it learns it; after the first fifth.

    limit: what kernel PCA of all these rows at once leaves, with as many directions.
    """
    x = stream(task["stream"])
    x = x[: task["most"]] if task["most"] else x
    if task["order"] == "shuffled":
        x = x[np.random.default_rng(12).permutation(len(x))]
    gamma = reference.gamma(x, 1.0)
    cut = len(x) // FIRST
    model = HostModel(spec_of(x.shape[1], gamma, task))
    if task.get("frozen"):
        model.update(x[:cut])
        scores = model.novelty(x[cut:]).astype(float)
    else:
        scores = model.prequential(x)[0][cut:].astype(float)
    blocks = [float(part.mean()) for part in np.array_split(scores, task["blocks"])]
    return {
        "blocks": blocks,
        "rows": len(x),
        "limit": limit(task["stream"], task["most"], task["r"], task["shrinkage"]),
    }


@lru_cache(maxsize=8)
def limit(name: str, most: int, rank: int, shrinkage: float) -> float:
    x = stream(name)
    x = x[: most or len(x)]
    x = x[len(x) // FIRST :]
    x = x[np.linspace(0, len(x) - 1, min(len(x), 2000)).astype(int)]
    return batch(x, reference.gamma(x, 1.0), rank, shrinkage).residual(x)


KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "classify": classify,
    "walk": walk,
    "choose": choose,
    "track": track,
}


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    """Compute one task."""
    return KINDS[task["kind"]](task)
