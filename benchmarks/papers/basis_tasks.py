"""Tasks that choose a basis by the product's selectors; residuals are computed anew, by ``basis_reference``.

A task and its result are plain values.  Keys of a task: data, rows (0: all), width (2 sigma^2 / D), method, options
(of ``select_basis``), n (sizes), seed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import benchmarks.papers.basis_reference as reference
from benchmarks.papers.compared import METHODS, make_selector, select_basis
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import choose_method
from pykernel.rows import as_rows

COMMON: dict[str, Any] = {"candidates": 59, "points": 59, "tau": 0.0, "epsilon": 1e-10}


def kernel_of(task: Mapping[str, Any]) -> tuple[np.ndarray, MercerKernel]:
    x = reference.data(task["data"], task.get("rows", 0))
    return x, MercerKernel("gaussian", gamma=reference.gamma(x, task["width"]))


def pick(task: Mapping[str, Any]) -> tuple[np.ndarray, Basis]:
    x, kernel = kernel_of(task)
    return x, select_basis(x, kernel, max(task["n"]), task["method"], seed=task["seed"], **task["options"])


def curve_of(x: np.ndarray, basis: Basis, n: Sequence[int]) -> list[float]:
    return reference.vector_curve(x, basis.kernel.gamma, basis.vectors, n)


def select(task: Mapping[str, Any]) -> dict[str, Any]:
    """Residuals at n vectors; k-means chooses anew for each n, since its vectors are not nested."""
    if task["method"] == "k-means":
        found = [select({**task, "method": "k-means, once", "n": [n]}) for n in task["n"]]
        return {**found[-1], **{key: [each[key][0] for each in found] for key in ("curve", "estimate")}}
    x, basis = pick({**task, "method": task["method"].removesuffix(", once")})
    trace = np.append(basis.trace, [basis.trace[-1]] * max(task["n"]))
    return {
        "curve": curve_of(x, basis, task["n"]),
        "estimate": trace[np.array(task["n"])],
        "size": len(basis),
        "stopped": basis.stopped,
        "evaluations": basis.evaluations,
        "exact": basis.exact,
    }


def limit(task: Mapping[str, Any]) -> list[float]:
    """The least residual of any n vectors, on the data or not."""
    return reference.limit(reference.spectrum(task["data"], task["width"], task.get("rows", 0)), task["n"])


def steps(task: Mapping[str, Any]) -> dict[str, Any]:
    """CPU seconds from the rows to n vectors, for each n; the median of a few runs, one thread.  The first is not timed.

    Others than greedy methods choose many vectors at once: each n is a run of its own.
    """
    x, kernel = kernel_of(task)
    rows, n, options = as_rows(x), task["n"], {**COMMON, **task["options"]}
    method = choose_method(len(rows), max(n), options["candidates"])[0] if task["method"] == "auto" else task["method"]
    at_once = method not in ("fvs", "efvs", "sgma", "exhaustive")

    def run(n_max: int, seed: int) -> tuple[list[float], int]:
        start = time.process_time()
        selector = make_selector(method, rows, kernel, n_max, seed=seed, **options)
        taken = []
        while selector.step():
            taken.append(time.process_time() - start)
        return taken, selector.basis().evaluations

    run(min(3, max(n)), 0)
    seconds: list[list[float]] = []
    evaluations = 0
    start = time.process_time()
    for seed in range(task["runs"]):
        if at_once:
            found = [run(size, seed) for size in n]
            seconds.append([taken[-1] for taken, _ in found])
        else:
            found = [run(max(n), seed)]
            seconds.append([found[0][0][size - 1] for size in n])
        evaluations = found[-1][1]
        if time.process_time() - start > task["seconds"]:
            break
    return {"seconds": np.median(seconds, axis=0), "runs": len(seconds), "evaluations": evaluations}


def sample() -> str:
    """A digest of what each method chooses of 150 rows: it changes when a selector chooses otherwise."""
    x = reference.data("diabetes", 150)
    kernel = MercerKernel("gaussian", gamma=reference.gamma(x, 0.5))
    forms: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in METHODS]
    forms += [("efvs", {"lazy": lazy, "points": 20, "tau": 0.1}) for lazy in (False, True)]
    forms += [("efvs", {"lazy": True, "disjoint": False}), ("efvs", {"form": "literal"}), ("sgma", {"rule": "4.3"})]
    forms += [("sgma", {"view": "column"}), ("sgma", {"view": "kronecker"}), ("exhaustive", {"view": "column"})]
    found = hashlib.sha256()
    for method, options in forms:
        basis = select_basis(x, kernel, 30, method, seed=1, **options)
        found.update(f"{method} {options} {basis.stopped} {basis.evaluations}".encode())
        found.update(basis.indices.tobytes() if basis.indices[0] >= 0 else np.round(basis.vectors, 6).tobytes())
    return found.hexdigest()[:16]


KINDS = {"select": select, "limit": limit, "steps": steps}
