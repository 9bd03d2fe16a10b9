"""The experiments of ``paper_002.py``: what one task computes.

Bases are chosen, and reduced regressions trained, by the product; residuals, full kernel ridge regression, principal
components and the printed formulas are written out here.  A task and its result are plain values.
m: rows; n: vectors; width: 2 sigma^2 / D; ridge: m Lambda.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse.linalg import cg

import benchmarks.papers.basis_reference as reference
from benchmarks import basis_data
from benchmarks.papers import basis_tasks
from benchmarks.papers.compared import select_basis
from benchmarks.papers.drawn import radius
from benchmarks.papers.preconditioning import preconditioner
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.training.coding import Targets
from pykernel.training.reduced import ReducedProblem

RULES: dict[str, dict[str, Any]] = {
    "4.2": {"method": "sgma", "options": {"rule": "4.2"}},
    "4.3": {"method": "sgma", "options": {"rule": "4.3"}},
    "4.1": {"method": "sgma", "options": {"rule": "4.1", "view": "column"}},
    "4.3, column space": {"method": "sgma", "options": {"rule": "4.3", "view": "column"}},
    "Kronecker": {"method": "sgma", "options": {"view": "kronecker"}},
    "4.2, all candidates": {"method": "exhaustive", "options": {}},
    "4.1, all candidates": {"method": "exhaustive", "options": {"view": "column"}},
    "uniform": {"method": "uniform", "options": {}},
}
"""Section 4's rules in the views of section 3, and what they are compared with."""
TOLERANCE = 1e-8
POPULATION_TRIALS = 20_000
GRAMS = 2_000


def inputs(name: str) -> tuple[np.ndarray, np.ndarray]:
    found = basis_data.load(name)
    assert found.y is not None
    return (found.x if name in reference.UNCHANGED else found.standardised().x), found.y.astype(float)


# --------------------------------------------------------------------------------------------- risk and test error


def split(task: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Inputs and targets, centred, of the rows to train and to test on, drawn by the seed; gamma."""
    x, y = inputs(task["data"])
    order = np.random.default_rng([task["seed"], len(x)]).permutation(len(x))
    train, test = order[: task["train"]], order[task["train"] : task["train"] + task["test"]]
    mean = y[train].mean()
    return x[train], y[train] - mean, x[test], y[test] - mean, reference.gamma(x, task["width"])


def regularised(y: np.ndarray, f: np.ndarray, weight: float, ridge: float) -> float:
    """R_reg of equation 5: |y - f|^2 / (2m) + Lambda |f|^2 / 2, with Lambda = ridge / m."""
    return float(((y - f) @ (y - f) + ridge * weight) / (2 * len(y)))


def full(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float, x_test: np.ndarray) -> tuple[float, np.ndarray]:
    """Equation 6: R_reg, and predictions."""
    k = reference.gaussian(gamma, x, x)
    alpha = cho_solve(cho_factor(k + ridge * np.eye(len(k))), y)
    return regularised(y, k @ alpha, float(alpha @ k @ alpha), ridge), reference.gaussian(gamma, x_test, x) @ alpha


def principal(
    x: np.ndarray, y: np.ndarray, gamma: float, ridge: float, x_test: np.ndarray, n: Sequence[int]
) -> list[tuple[float, np.ndarray]]:
    """The same in the span of the n leading principal components, for each n: one eigendecomposition, O(m^3)."""
    k = reference.gaussian(gamma, x, x)
    values, vectors = eigh(k)
    values, vectors = values[::-1][: max(n)], vectors[:, ::-1][:, : max(n)]
    values = np.maximum(values, np.finfo(float).eps * values[0])
    u, across = vectors.T @ y, reference.gaussian(gamma, x_test, x) @ vectors
    found = []
    for count in n:
        # z = U sqrt(lambda), so that z'z is diagonal
        w = np.sqrt(values[:count]) * u[:count] / (values[:count] + ridge)
        f = vectors[:, :count] @ (np.sqrt(values[:count]) * w)
        predictions = across[:, :count] @ (w / np.sqrt(values[:count]))
        found.append((regularised(y, f, float(w @ w), ridge), predictions))
    return found


def reduced(
    basis: Basis, x: np.ndarray, y: np.ndarray, ridge: float, x_test: np.ndarray, n: Sequence[int]
) -> list[tuple[float, np.ndarray]]:
    """Equation 7, by the product."""
    found = []
    for count in n:
        model = ReducedProblem("krr", basis.head(min(count, len(basis))), x, Targets.of_values(y)).solve(ridge)
        weight = float((model.w * model.w).sum())
        found.append((regularised(y, model.predict(x)[:, 0], weight, ridge), model.predict(x_test)[:, 0]))
    return found


def risk(task: Mapping[str, Any]) -> dict[str, Any]:
    """R_reg and the squared error on other rows, of all rows, of PCA, SGMA and uniform picks; and tr R / tr K."""
    x, y, x_test, y_test, gamma = split(task)
    n, ridge = task["n"], task["ridge"]
    kernel = MercerKernel("gaussian", gamma=gamma)
    found: dict[str, Any] = {}

    def enter(name: str, results: Sequence[tuple[float, np.ndarray]]) -> None:
        found[name] = {
            "risk": [value for value, _ in results],
            "error": [float(np.mean((predictions - y_test) ** 2)) for _, predictions in results],
        }

    enter("full", [full(x, y, gamma, ridge, x_test)])
    enter("pca", principal(x, y, gamma, ridge, x_test, n))
    for method in ("sgma", "uniform"):
        basis = select_basis(x, kernel, max(n), method, seed=task["seed"])
        enter(method, reduced(basis, x, y, ridge, x_test, n))
        found[method]["residual"] = reference.vector_curve(x, gamma, basis.vectors, n)
    return found


def readings(task: Mapping[str, Any]) -> list[float]:
    """Test error of full kernel ridge regression for each ridge: which width does "sigma/d = 10" mean?"""
    x, y, x_test, y_test, gamma = split(task)
    values, vectors = eigh(reference.gaussian(gamma, x, x))
    across = reference.gaussian(gamma, x_test, x) @ vectors
    return [float(np.mean((across @ (vectors.T @ y / (values + ridge)) - y_test) ** 2)) for ridge in task["ridges"]]


# ----------------------------------------------------------------------------------------------------- rules, views


def rules(task: Mapping[str, Any]) -> dict[str, Any]:
    """Residuals by section 3.2 (trace) and by section 3.1 (Frobenius norm), of what each rule chose."""
    chosen = RULES[task["rule"]]
    _, basis = basis_tasks.pick({**task, **chosen, "n": task["n"]})
    k = reference.gram(task["data"], task["width"], task.get("rows", 0))
    columns = []
    for n in task["n"]:
        left = reference.column_residual(k, basis.indices[:n])
        columns.append(float(np.sqrt((left * left).sum() / (k * k).sum())))
    return {"trace": reference.residual_curve(k, basis.indices, task["n"]), "column": columns, "size": len(basis)}


def rule_limit(task: Mapping[str, Any]) -> dict[str, Any]:
    """The least of both: eigenvalues, and their squares."""
    values = reference.spectrum(task["data"], task["width"], task.get("rows", 0))
    return {
        "trace": reference.limit(values, task["n"]),
        "column": [float(np.sqrt((values[n:] ** 2).sum() / (values**2).sum())) for n in task["n"]],
        "size": len(values),
    }


# ------------------------------------------------------------------------------------------------------------ digits


def classes(task: Mapping[str, Any]) -> dict[str, Any]:
    """How many digits are among the first vectors; and which images these are."""
    _, basis = basis_tasks.pick(task)
    labels = basis_data.load(task["data"]).y
    assert labels is not None
    first = labels[basis.indices[: task["first"]]]
    return {"classes": len(np.unique(first)), "indices": basis.indices, "labels": labels[basis.indices]}


# ------------------------------------------------------------------------------------------------ conjugate gradients


def conjugate(task: Mapping[str, Any]) -> dict[str, Any]:
    """Iterations of CG for (K + ridge I) x = b, to a residual of 1e-8 |b|, with each basis as a preconditioner."""
    x, kernel = basis_tasks.kernel_of(task)
    matrix = reference.gaussian(kernel.gamma, x, x)
    b = np.random.default_rng(task["seed"]).normal(size=len(x))
    found: dict[str, Any] = {}

    def iterations(system: np.ndarray, ridge: float, m: Any) -> int:
        count = 0

        def one_more(_: Any) -> None:
            nonlocal count
            count += 1

        solution, _ = cg(system, b, rtol=TOLERANCE, maxiter=10_000, M=m, callback=one_more)
        left = np.linalg.norm(system @ solution - b) / np.linalg.norm(b)
        if left > 100 * TOLERANCE:
            raise RuntimeError(f"{task}: conjugate gradients left {left:.1e}")
        return count

    for ridge in task["ridges"]:
        system = matrix + ridge * np.eye(len(x))
        found[f"{ridge:g}"] = {"none, 0": iterations(system, ridge, None)}
    for method in task["methods"]:
        basis = select_basis(x, kernel, max(task["n"]), method, seed=task["seed"])
        for ridge in task["ridges"]:
            system = matrix + ridge * np.eye(len(x))
            for n in task["n"]:
                m = preconditioner(basis.head(min(n, len(basis))), x, ridge)
                found[f"{ridge:g}"][f"{method}, {n}"] = iterations(system, ridge, m)
    return found


# ------------------------------------------------------------------------------------------------------------- bounds


def bound(task: Mapping[str, Any]) -> dict[str, Any]:
    """How often the mean residual of all rows is further from that of a drawn few than the bounds say."""
    _, basis = basis_tasks.pick(task)
    k = reference.gram(task["data"], task["width"])
    delta = reference.deltas(k, basis.indices, [max(task["n"])])[0]
    m, few, rng = len(delta), task["points"], np.random.default_rng([task["seed"], 1])
    means = np.array([rng.choice(delta, few, replace=False).mean() for _ in range(POPULATION_TRIALS)])
    away = delta.mean() - means
    found: dict[str, Any] = {"mean": float(delta.mean()), "deviation": float(away.std())}
    forms: tuple[Literal["hoeffding", "serfling"], ...] = ("hoeffding", "serfling")
    for name in forms:
        most = radius(few, m, 1.0, 1 - task["delta"], name)
        found[name] = {
            "radius": most,
            "above": float((away >= most).mean()),
            "below": float((-away >= most).mean()),
        }
    # the radius that would have been enough
    found["enough"] = float(np.quantile(away, 1 - task["delta"]))
    # as printed, the probability is at least that; smaller radii would be exceeded as seldom
    half = found["hoeffding"]["radius"] / 2
    found["half"] = {
        "radius": half,
        "printed": float(math.exp(-2 * m * few * half**2 / (m - few))),
        "above": float((away >= half).mean()),
    }
    return found


# ------------------------------------------------------------------------------------------------- gains and errata


def gains(left: np.ndarray) -> np.ndarray:
    """Equation 31 for all candidates: sum_i R_ir^2 / R_rr; 0 where nothing is left."""
    own = np.diag(left)
    alive = own > 1e-9 * own.max()
    return np.where(alive, (left * left).sum(axis=0) / np.where(alive, own, 1), 0)


def growth(task: Mapping[str, Any]) -> dict[str, Any]:
    """How often, and how much, a candidate's gain grows when another vector is chosen: not submodular."""
    rng = np.random.default_rng(task["seed"])
    worst = 0.0
    for _ in range(GRAMS):
        a = rng.normal(size=(4, 3))
        k = a @ a.T + 1e-6 * np.eye(4)
        before, after = gains(k), gains(reference.residual(k, [0]))
        worst = max(worst, float((after[1:] / before[1:]).max()))
    k = reference.gram(task["data"], task["width"])
    picked = [int(np.argmax(gains(k)))]
    before, grown, compared, most = gains(reference.residual(k, picked)), 0, 0, 0.0
    for _ in range(task["steps"]):
        picked.append(int(np.argmax(before)))
        after = gains(reference.residual(k, picked))
        alive = (after > 0) & (before > 0)
        grown += int((after[alive] > before[alive] * (1 + 1e-9)).sum())
        compared += int(alive.sum())
        most = max(most, float((after[alive] / before[alive]).max()))
        before = after
    return {"random_most": worst, "grown": grown, "compared": compared, "most": most}


def errata(task: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Formulas as printed and as they should be, each against brute force."""
    rng = np.random.default_rng(task["seed"])
    a = rng.normal(size=(30, 6)) * rng.uniform(0.5, 3, size=(30, 1))
    k = (a @ a.T + 1.0) ** 2 / 10
    m, found = len(k), {}
    one = 7
    best = [k[one, i] / k[one, one] for i in range(m)]

    def objective(t: Any) -> float:
        """Equation 18: sum_i |k_i - t_i k_one|^2."""
        t = np.asarray(t)
        return float((np.diag(k) - 2 * t * k[one] + t * t * k[one, one]).sum())

    least = float(np.trace(reference.residual(k, [one])))
    printed = k[one] / k[one, one] ** 2
    found["eq. 19"] = {"printed": objective(printed) / least - 1, "right": objective(best) / least - 1}
    # equation 7, without transposes there is no product of shapes; Algorithm 2, t as printed is of the old rows alone
    order = [3, 11, 20, 5]
    t, kept = np.zeros((0, m)), np.zeros((m, 0))
    for r in order:
        dot = k[:, r] - kept @ t[:, r]
        step = np.append(-t[:, r], 1.0) / dot[r]
        t, kept = np.vstack([t, np.zeros(m)]) + np.outer(step, dot), np.column_stack([kept, k[:, r]])
    truth = reference.residual(k, order)
    found["algorithm 2"] = {"right": float(np.abs(k - kept @ t - truth).max() / np.abs(k).max())}
    trace = np.trace(k) - float((kept.T * t).sum())
    found["algorithm 2, trace"] = {"right": abs(trace / np.trace(truth) - 1)}
    # after equation 9: the column that is best in the Frobenius norm need not be so in the operator norm
    excess = []
    for _ in range(200):
        a = rng.normal(size=(8, 4))
        small = a @ a.T
        left = [reference.column_residual(small, [i]) for i in range(8)]
        frobenius, operator = ([np.linalg.norm(each, order) for each in left] for order in ("fro", 2))
        excess.append(operator[int(np.argmin(frobenius))] / min(operator) - 1)
    found["eq. 10"] = {"printed": max(excess), "right": 0.0, "part": float(np.mean(np.array(excess) > 1e-9))}
    found["values"] = {"subsets": math.comb(m, 4), "printed subsets": math.comb(4, m)}
    # section 3: K~ of column space is not symmetric; of function space it is, and K - K~ is positive semidefinite
    column = k - reference.column_residual(k, order)
    found["symmetry"] = {
        "column": float(np.abs(column - column.T).max() / np.abs(k).max()),
        "function": float(np.abs(truth - truth.T).max() / np.abs(k).max()),
        "least eigenvalue": float(eigh(truth, eigvals_only=True)[0] / np.trace(k)),
    }
    return found


KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    **basis_tasks.KINDS,
    "risk": risk,
    "readings": readings,
    "rules": rules,
    "rule limit": rule_limit,
    "classes": classes,
    "conjugate": conjugate,
    "bound": bound,
    "growth": growth,
    "errata": errata,
}


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    """Compute one task."""
    return KINDS[task["kind"]](task)
