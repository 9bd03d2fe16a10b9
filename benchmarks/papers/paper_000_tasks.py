"""The experiments of ``paper_000.py``: what one task computes.

Bases are chosen by the product; residuals, gains and the printed formulas are written out here.  A task and its result
are plain values.  l: rows; n: vectors; rho: candidates of a step; v: rows that score them; width: 2 sigma^2 / D.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import benchmarks.papers.basis_reference as reference
from benchmarks.papers import basis_tasks
from benchmarks.papers.compared import select_basis

DRAWS = 20_000


def sweep(task: Mapping[str, Any]) -> dict[str, Any]:
    """Kernel values and CPU seconds of n vectors from l rows."""
    found = basis_tasks.steps({**task, "n": [task["n"]]})
    _, basis = basis_tasks.pick({**task, "n": [task["n"]], "seed": 0})
    return {"seconds": found["seconds"][0], "evaluations": basis.evaluations}


def stop(task: Mapping[str, Any]) -> dict[str, Any]:
    """Where tau stops, and the residual of all rows there."""
    x, basis = basis_tasks.pick(task)
    return {
        "size": len(basis),
        "true": basis_tasks.curve_of(x, basis, [len(basis)])[0],
        "estimate": float(basis.trace[-1]),
        "stopped": basis.stopped,
    }


def gains(left: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """What each candidate adds to J: mean_i (R_ir^2 / k_ii) / R_rr; 0 where nothing is left.  O(l^2)."""
    own = np.diag(left)
    alive = own > 1e-12 * diagonal
    return np.where(alive, (left * left / diagonal[:, None]).mean(axis=0) / np.where(alive, own, 1), 0)


def elimination(task: Mapping[str, Any]) -> dict[str, Any]:
    """What is lost with the candidates that have delta < epsilon; gains are computed for all of them, dropped or not."""
    x, basis = basis_tasks.pick(task)
    k = reference.gram(task["data"], task["width"])
    n = [size for size in task["at"] if size <= len(basis)]
    ratio, dropped = [], []
    for size in n:
        left = reference.residual(k, basis.indices[:size])
        gain, delta = gains(left, np.diag(k)), np.diag(left) / np.diag(k)
        gone = delta < task["options"]["epsilon"]
        gone[basis.indices[:size]] = False
        kept = delta >= task["options"]["epsilon"]
        dropped.append(int(gone.sum()))
        ratio.append(float(gain[gone].max() / gain[kept].max()) if gone.any() and kept.any() else 0.0)
    curve = basis_tasks.curve_of(x, basis, task["n"])
    return {"n": n, "ratio": ratio, "dropped": dropped, "curve": curve, "size": len(basis), "stopped": basis.stopped}


def ranks(task: Mapping[str, Any]) -> dict[str, Any]:
    """How often rho draws hold a candidate of the best 5 %, of the gains after n vectors; and what is lost with it."""
    _, basis = basis_tasks.pick(task)
    k = reference.gram(task["data"], task["width"])
    gain = gains(reference.residual(k, basis.indices), np.diag(k))
    alive = np.setdiff1d(np.arange(len(k)), basis.indices)
    order = np.sort(gain[alive])
    rng = np.random.default_rng([task["seed"], 2])
    best = np.array([rng.choice(order, task["draws"], replace=False).max() for _ in range(DRAWS)])
    return {
        "hit": float((best >= np.quantile(order, 0.95, method="higher")).mean()),
        "part": float(best.mean() / order[-1]),
        "spread": float(order[-1] / np.median(order)),
    }


def estimates(task: Mapping[str, Any]) -> dict[str, float]:
    """1 - J of the product's estimate while it selects, against the mean of all rows, at n vectors."""
    x, basis = basis_tasks.pick(task)
    n = max(task["n"])
    return {"true": basis_tasks.curve_of(x, basis, [n])[0], "estimate": float(basis.trace[n])}


def literal(k: np.ndarray, n: int) -> list[int]:
    """FVS as it is defined: each candidate's J by a solve of its own.  O(l^2 n^3)."""
    chosen: list[int] = []
    diagonal = np.diag(k)
    while len(chosen) < n:
        fitness = np.full(len(k), -np.inf)
        for r in np.setdiff1d(np.arange(len(k)), chosen):
            s = [*chosen, int(r)]
            fitness[r] = (np.einsum("ij,ij->j", k[s], np.linalg.solve(k[np.ix_(s, s)], k[s])) / diagonal).mean()
        chosen.append(int(np.argmax(fitness)))
    return chosen


def same(task: Mapping[str, Any]) -> dict[str, Any]:
    """Whether every form that weighs all candidates on all rows chooses the rows that the definition does."""
    x, kernel = basis_tasks.kernel_of(task)
    k = reference.gram(task["data"], task["width"], task["rows"])
    truth = literal(k, task["n"])
    found = {}
    for name, chosen in task["forms"].items():
        everything = {"candidates": None, "points": None}
        basis = select_basis(x, kernel, task["n"], chosen["method"], **{**everything, **chosen["options"]})
        found[name] = int(np.sum(np.cumprod(basis.indices == truth)))
    return found


def errata(task: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """What is printed and what it should be, by brute force; and the counter-example to section 1.2."""
    found: dict[str, dict[str, float]] = {}
    k = reference.gram(task["data"], task["width"])
    chosen = [int(i) for i in np.random.default_rng(task["seed"]).choice(len(k), 10, replace=False)]
    r = next(i for i in range(len(k)) if i not in chosen)
    k_ss, k_sr = k[np.ix_(chosen, chosen)], k[chosen, r]
    truth = float(reference.residual(k, chosen)[r, r])
    found["schur"] = {"printed": float(k[r, r] - k_sr @ k_ss @ k_sr), "right": truth}
    # a kernel whose diagonal is not 1: the Schur complement is k_rr delta
    scale = np.random.default_rng(1).uniform(0.1, 10, len(k))
    scaled = k * np.outer(scale, scale)
    rest = np.setdiff1d(np.arange(len(k)), chosen)
    own, diagonal = np.diag(reference.residual(scaled, chosen))[rest], np.diag(scaled)[rest]
    found["relative"] = {"disagree": float(np.mean((own < 0.5) != (own / diagonal < 0.5)))}
    # delta = 0 is safe to drop, delta < epsilon is not: the best candidate is the one that is nearly spanned
    x = np.array([0.0, 0.01, 2.0, -2.0])[:, None]
    wide = reference.gaussian(0.1, x, x)
    left = reference.residual(wide, [0])
    gain = gains(left, np.diag(wide))
    found["dropped"] = {"delta": float(left[1, 1]), "its gain": float(gain[1]), "best other": float(gain[2:].max())}
    return found


KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    **basis_tasks.KINDS,
    "sweep": sweep,
    "stop": stop,
    "elimination": elimination,
    "ranks": ranks,
    "estimates": estimates,
    "same": same,
    "errata": errata,
}


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    """Compute one task."""
    return KINDS[task["kind"]](task)
