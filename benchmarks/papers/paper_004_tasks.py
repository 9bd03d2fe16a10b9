"""The experiments of ``paper_004.py``: what one task computes.

Retraining is written out here, with no closed form in it; the closed forms are the product's (``pykernel.training.closed_form``).
A task is a dictionary of plain values, and so is its result: they go to other processes, and into the results file.
l: samples; p: basis vectors; gamma: the Gaussian kernel is exp(-gamma |a - b|^2); ridge: mu, of KFD, or lambda.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpotri
from scipy.spatial.distance import cdist

from pykernel.training.closed_form import FisherProblem, problem
from pykernel.training.coding import Targets, error_rate, press

TIMED_GAMMA, TIMED_RIDGE = 0.5, 1.0
TIMED_RIDGES = tuple(float(r) for r in np.logspace(-6, 2, 20))
TIMED_FOLDS = 10
ROUND_SECONDS = 0.02
"""A method's time in one trial is the median of as many calls as fit in this, at least one."""
GAMMAS = tuple(2.0**k for k in range(-7, 4))
RIDGES = tuple(10.0**k for k in range(-8, 5))
TEST_SAMPLES = 5000
ERRATA_SAMPLES, ERRATA_GAMMA, ERRATA_RIDGE = 60, 0.5, 0.1


def patterns(samples: int, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Section 3: patterns (l, 2) and whether each is of class 1 (l,): the normal one, a quarter; the rest an annulus.

    Classes are drawn, and drawn again until each has two, so that leaving one out leaves both.
    """
    rng = np.random.default_rng([samples, trial])
    first = np.zeros(samples, bool)
    while not 2 <= first.sum() <= samples - 2:
        first = rng.random(samples) < 0.25
    radius, angle = rng.normal(4, 1, samples), rng.uniform(0, 2 * np.pi, samples)
    ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.where(first[:, None], rng.normal(size=(samples, 2)), ring), first


def gaussian(gamma: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(-gamma * cdist(a, b, "sqeuclidean"))


def coded(first: np.ndarray) -> np.ndarray:
    """Targets (l,): l/l1 for class 1, -l/l2 for class 2."""
    return np.where(first, len(first) / first.sum(), -len(first) / (~first).sum())


def targets_of(first: np.ndarray) -> Targets:
    """The product's: positive for the second position."""
    return Targets.of_classes(first.astype(int), 2, "counts")


# ------------------------------------------------------------------------------------------------------- retraining


def train(gram: np.ndarray, y: np.ndarray, ridges: Iterable[float]) -> list[np.ndarray]:
    """Eq. 4: alpha and b (p + 1, o) of kernel values (l, p) and targets (l, o), for each ridge.  O(l p^2)."""
    z = np.column_stack([gram, np.ones(len(gram))])
    products, right = z.T @ z, z.T @ y
    found = []
    for ridge in ridges:
        c = products.copy()
        c[np.diag_indices(gram.shape[1])] += ridge
        found.append(cho_solve(cho_factor(c, overwrite_a=True), right))
    return found


def answer(gram: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """f (l, o) from kernel values (l, p)."""
    return gram @ theta[:-1] + theta[-1]


def retrained(
    gram: np.ndarray, first: np.ndarray, ridges: Sequence[float], folds: Iterable[np.ndarray], columns: np.ndarray
) -> np.ndarray:
    """Of each sample, f by a model trained without its fold: (ridges, l, 2), targets kept and coded anew.

    folds: positions left out together.  columns (p,): the sample that each basis vector is, -1 if none; a fold takes its
    columns with it.
    """
    found = np.empty((len(ridges), len(first), 2))
    y = coded(first)
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(first)), fold)
        basis = np.flatnonzero(~np.isin(columns, fold))
        both = np.column_stack([y[kept], coded(first[kept])])
        for k, theta in enumerate(train(gram[np.ix_(kept, basis)], both, ridges)):
            found[k, fold] = answer(gram[np.ix_(fold, basis)], theta)
    return found


def retrained_ridge(gram: np.ndarray, y: np.ndarray, ridge: float, folds: Iterable[np.ndarray], bias: bool) -> Any:
    """The same for [K + ridge I, 1; 1', 0] [alpha; b] = [y; 0] (LS-SVM), or (K + ridge I) alpha = y (KRR): (l,)."""
    found = np.empty(len(y))
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(y)), fold)
        n = len(kept)
        system = np.zeros((n + bias, n + bias))
        system[:n, :n] = gram[np.ix_(kept, kept)] + ridge * np.eye(n)
        system[n:, :n] = 1.0
        system[:n, n:] = 1.0
        theta = np.linalg.solve(system, np.append(y[kept], np.zeros(int(bias))))
        found[fold] = gram[np.ix_(fold, kept)] @ theta[:n] + theta[n:].sum()
    return found


def relative(right: np.ndarray, other: np.ndarray) -> float:
    """Section 3: e = |r~ - r^|^2 / |r~|^2."""
    return float(np.sum((right - other) ** 2) / np.sum(right**2))


def wrong(predictions: np.ndarray, first: np.ndarray) -> int:
    return int(np.sum((predictions > 0) != first))


# --------------------------------------------------------------------------------------- approximation and its error


def compared(
    first: np.ndarray, truth: np.ndarray, kept: np.ndarray, exact: np.ndarray, recoded: np.ndarray
) -> dict[str, float]:
    """Closed forms against retraining (l, 2).  kept, exact: with the targets kept; recoded: exact, with new ones."""
    y = coded(first)
    return {
        "e": relative(y - truth[:, 0], y - kept),
        "e_recoded": relative(y - truth[:, 1], y - kept),
        "exact": relative(y - truth[:, 0], y - exact),
        "exact_recoded": relative(y - truth[:, 1], y - recoded),
        "wrong_kept": wrong(kept, first),
        "wrong_retrained": wrong(truth[:, 0], first),
        "wrong_recoded": wrong(truth[:, 1], first),
        "wrong_exact": wrong(exact, first),
        "wrong_exact_recoded": wrong(recoded, first),
    }


def leave_one_out(task: Mapping[str, Any]) -> list[list[list[float]]]:
    """Figure 2: f of each pattern of one data set, by retraining, for each of the ridges: (ridges, l, 2)."""
    l = task["l"]
    x, first = patterns(l, task["trial"])
    return retrained(gaussian(task["gamma"], x, x), first, task["ridges"], np.arange(l)[:, None], np.arange(l)).tolist()


def compare(task: Mapping[str, Any], truth: Sequence[Any]) -> list[dict[str, float]]:
    """What leave_one_out() found against the closed forms, and how far the paper's formula is from the product's."""
    x, first = patterns(task["l"], task["trial"])
    gram, y = gaussian(task["gamma"], x, x), coded(first)
    closed = FisherProblem(gram, targets_of(first))
    found = []
    for f, ridge in zip(truth, task["ridges"], strict=True):
        kept, exact = (closed.leave_one_out(ridge, column, recode=False)[:, 0] for column in ("kept", "deleted"))
        row = compared(first, np.array(f), kept, exact, closed.leave_one_out(ridge, "deleted")[:, 0])
        found.append({**row, "formula": relative(estimate(with_inverse(gram, y, ridge)), y - kept)})
    return found


def s_fold(task: Mapping[str, Any]) -> list[dict[str, float]]:
    """The same with S folds, assigned at random."""
    l, folds = task["l"], task["folds"]
    x, first = patterns(l, task["trial"])
    gram = gaussian(task["gamma"], x, x)
    fold = np.random.default_rng([l, task["trial"], folds]).permutation(np.arange(l) % folds)
    truth = retrained(gram, first, [task["ridge"]], [np.flatnonzero(fold == s) for s in range(folds)], np.arange(l))[0]
    closed = FisherProblem(gram, targets_of(first))
    kept, exact = (
        closed.leave_fold_out(task["ridge"], fold, column, recode=False)[:, 0] for column in ("kept", "deleted")
    )
    recoded = closed.leave_fold_out(task["ridge"], fold, "deleted")[:, 0]
    return [compared(first, truth, kept, exact, recoded)]


BASES = ("no samples", "samples that stay", "samples that go too")


def fixed_basis(task: Mapping[str, Any]) -> list[dict[str, float]]:
    """Leave-one-out with p basis vectors, chosen beforehand.  Of samples, columns stay or go with their sample."""
    l, p, ridge = task["l"], task["p"], task["ridge"]
    x, first = patterns(l, task["trial"])
    others = patterns(p, 1000 + task["trial"])[0]
    basis, columns = (others, np.full(p, -1)) if task["basis"] == BASES[0] else (x[:p], np.arange(p))
    gram = gaussian(task["gamma"], x, basis)
    go = columns if task["basis"] == BASES[2] else np.full(p, -1)
    truth = retrained(gram, first, [ridge], np.arange(l)[:, None], go)[0]
    closed = FisherProblem(gram, targets_of(first), columns)
    kept = closed.leave_one_out(ridge, "kept", recode=False)[:, 0]
    closed = FisherProblem(gram, targets_of(first), go)
    exact = closed.leave_one_out(ridge, "deleted", recode=False)[:, 0]
    return [compared(first, truth, kept, exact, closed.leave_one_out(ridge, "deleted")[:, 0])]


def ridge_model(task: Mapping[str, Any]) -> list[dict[str, float]]:
    """LS-SVM and KRR, with the same targets: the estimate with the column kept is exact."""
    l, model, ridge, folds = task["l"], task["model"], task["ridge"], task["folds"]
    x, first = patterns(l, task["trial"])
    gram = gaussian(task["gamma"], x, x)
    fold = np.random.default_rng([l, task["trial"], folds]).permutation(np.arange(l) % folds)
    y = coded(first)
    positions = [np.flatnonzero(fold == s) for s in range(folds)]
    truth = retrained_ridge(gram, y, ridge, positions, model == "ls-svm")
    closed = problem(model, gram, Targets.of_values(y))
    kept, exact = (closed.leave_fold_out(ridge, fold, column)[:, 0] for column in ("kept", "deleted"))
    return [compared(first, np.column_stack([truth, truth]), kept, exact, exact)]


# -------------------------------------------------------------------------------------------------------- selection


def selection(task: Mapping[str, Any]) -> dict[str, Any]:
    """A width and a ridge chosen by each estimate; the error rate of the chosen model on fresh samples.

    By error rate, of equal ones by PRESS; or by PRESS.
    """
    l = task["l"]
    x, first = patterns(l, task["trial"])
    fresh, truth = patterns(TEST_SAMPLES, 1000 + task["trial"])
    targets = targets_of(first)
    cells: list[dict[str, float]] = []
    for gamma in GAMMAS:
        closed = FisherProblem(gaussian(gamma, x, x), targets)
        gram = gaussian(gamma, fresh, x)
        for ridge in RIDGES:
            model = closed.solve(ridge)
            cell = {"gamma": gamma, "ridge": ridge, "test": wrong(gram @ model.alpha[:, 0] + model.bias[0], truth)}
            for name, predictions in (
                ("kept", closed.leave_one_out(ridge, "kept", recode=False)),
                ("exact", closed.leave_one_out(ridge, "deleted")),
            ):
                cell |= {f"{name} rate": error_rate(targets, predictions), f"{name} press": press(targets, predictions)}
            cells.append(cell)
    found: dict[str, Any] = {"best": min(cell["test"] for cell in cells) / TEST_SAMPLES}
    for name in ("kept", "exact"):
        for by, order in (("rate", (f"{name} rate", f"{name} press")), ("press", (f"{name} press",))):
            chosen = min(cells, key=lambda cell: tuple(cell[key] for key in order))
            found[f"{name}, {by}"] = {
                "gamma": chosen["gamma"],
                "ridge": chosen["ridge"],
                "test": chosen["test"] / TEST_SAMPLES,
                "promised": chosen[f"{name} rate"],
            }
    return found


# ------------------------------------------------------------------------------------------------------------ times
#
# Each from patterns (l, 2) and targets (l,) to leave-one-out residuals (l,), in one thread.


def direct(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    """l trainings from the patterns."""
    found = np.empty(len(y))
    for i in range(len(y)):
        rest, others = np.delete(x, i, axis=0), np.delete(y, i)
        (theta,) = train(gaussian(gamma, rest, rest), others, [ridge])
        found[i] = y[i] - answer(gaussian(gamma, x[i : i + 1], rest), theta)[0]
    return found


def direct_gram(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    """The same with the Gram matrix computed once."""
    gram = gaussian(gamma, x, x)
    found = np.empty(len(y))
    for i in range(len(y)):
        kept = np.delete(np.arange(len(y)), i)
        (theta,) = train(gram.take(kept, axis=0).take(kept, axis=1), y[kept], [ridge])
        found[i] = y[i] - answer(gram[i, kept], theta)
    return found


def normal_equations(gram: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Z (l, p + 1) and C (p + 1, p + 1)."""
    z = np.column_stack([gram, np.ones(len(gram))])
    c = z.T @ z
    c[np.diag_indices(gram.shape[1])] += ridge
    return z, c


def direct_products(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    """And with Z'Z computed once, less each sample's part: l factorisations are left."""
    z, c = normal_equations(gaussian(gamma, x, x), ridge)
    right = z.T @ y
    found = np.empty(len(y))
    for i in range(len(y)):
        kept = np.delete(np.arange(len(y) + 1), i)
        less = c.take(kept, axis=0).take(kept, axis=1) - np.outer(z[i, kept], z[i, kept])
        theta = cho_solve(cho_factor(less, overwrite_a=True), right[kept] - y[i] * z[i, kept])
        found[i] = y[i] - z[i, kept] @ theta
    return found


def with_inverse(gram: np.ndarray, y: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training by section 2: Z, the inverse of C, and the residuals."""
    z, c = normal_equations(gram, ridge)
    factor, _ = cho_factor(c, lower=True, overwrite_a=True)
    lower, _ = dpotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(lower) + np.tril(lower, -1).T
    return z, inverse, y - z @ (inverse @ (z.T @ y))


def estimate(trained: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Section 2.1: r_i / (1 - h_ii)."""
    z, inverse, residuals = trained
    return residuals / (1 - np.einsum("ij,ij->i", z @ inverse, z))


def training(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> Any:
    return with_inverse(gaussian(gamma, x, x), y, ridge)


def hat(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    return estimate(training(x, y, gamma, ridge))


def corrections(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float) -> np.ndarray:
    """Section 2: l rank-one corrections of the inverse."""
    z, inverse, _ = training(x, y, gamma, ridge)
    right = z.T @ y
    found = np.empty(len(y))
    for i in range(len(y)):
        u = inverse @ z[i]
        less = inverse + np.outer(u, u / (1 - z[i] @ u))
        found[i] = y[i] - z[i] @ (less @ (right - y[i] * z[i]))
    return found


def closed(x: np.ndarray, targets: Targets, gamma: float, ridges: Sequence[float], column: Any) -> np.ndarray:
    """The product's, for one ridge or several: the last one's."""
    found = FisherProblem(gaussian(gamma, x, x), targets)
    for ridge in ridges:
        predictions = found.leave_one_out(ridge, column, recode=False)
    return targets.values[:, 0] - predictions[:, 0]


def fold_direct(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float, folds: np.ndarray) -> np.ndarray:
    """S trainings, with the Gram matrix computed once."""
    gram = gaussian(gamma, x, x)
    found = np.empty(len(y))
    for s in range(folds.max() + 1):
        kept, fold = np.flatnonzero(folds != s), np.flatnonzero(folds == s)
        (theta,) = train(gram.take(kept, axis=0).take(kept, axis=1), y[kept], [ridge])
        found[fold] = y[fold] - answer(gram[np.ix_(fold, kept)], theta)
    return found


def fold_corrections(x: np.ndarray, y: np.ndarray, gamma: float, ridge: float, folds: np.ndarray) -> np.ndarray:
    """Section 2: for each of S folds, l/S rank-one corrections of the inverse."""
    z, inverse, _ = training(x, y, gamma, ridge)
    right = z.T @ y
    found = np.empty(len(y))
    for s in range(folds.max() + 1):
        fold, less = np.flatnonzero(folds == s), inverse.copy()
        for i in fold:
            u = less @ z[i]
            less += np.outer(u, u / (1 - z[i] @ u))
        found[fold] = y[fold] - z[fold] @ (less @ (right - z[fold].T @ y[fold]))
    return found


def fold_closed(x: np.ndarray, targets: Targets, gamma: float, ridge: float, folds: np.ndarray, column: Any) -> Any:
    predictions = FisherProblem(gaussian(gamma, x, x), targets).leave_fold_out(ridge, folds, column, recode=False)
    return targets.values[:, 0] - predictions[:, 0]


METHODS = (
    "direct",
    "direct, Gram matrix once",
    "direct, products once",
    "rank-one corrections",
    "hat matrix",
    "closed form, column kept",
    "closed form, exact",
    "closed form, exact, 20 ridges",
    "training",
    "hat matrix, C⁻¹ known",
    "10-fold, direct",
    "10-fold, rank-one corrections",
    "10-fold, closed form, exact",
)
SAME = ((*METHODS[0:3], METHODS[6]), METHODS[3:6], (METHODS[10], METHODS[12]))
"""Methods that compute the same residuals."""


def methods(x: np.ndarray, first: np.ndarray, trial: int) -> dict[str, Callable[[], Any]]:
    """What is timed, each ready to be called."""
    gamma, ridge, y, targets = TIMED_GAMMA, TIMED_RIDGE, coded(first), targets_of(first)
    given = (x, y, gamma, ridge)
    folds = np.random.default_rng([len(y), trial, TIMED_FOLDS]).permutation(np.arange(len(y)) % TIMED_FOLDS)
    trained = training(*given)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: direct(*given),
        lambda: direct_gram(*given),
        lambda: direct_products(*given),
        lambda: corrections(*given),
        lambda: hat(*given),
        lambda: closed(x, targets, gamma, [ridge], "kept"),
        lambda: closed(x, targets, gamma, [ridge], "deleted"),
        lambda: closed(x, targets, gamma, TIMED_RIDGES, "deleted"),
        lambda: training(*given),
        lambda: estimate(trained),
        lambda: fold_direct(*given, folds),
        lambda: fold_corrections(*given, folds),
        lambda: fold_closed(x, targets, gamma, ridge, folds, "deleted"),
    )
    return dict(zip(METHODS, calls, strict=True))


def times(task: Mapping[str, Any]) -> dict[str, float]:
    """CPU seconds of each method on one data set, one after the other, in an order that turns with the trial."""
    l, trial = task["l"], task["trial"]
    x, first = patterns(l, trial)
    calls = methods(x, first, trial)
    names = list(calls)
    found: dict[str, float] = {}
    residuals: dict[str, Any] = {}
    for name in names[trial % len(names) :] + names[: trial % len(names)]:
        taken: list[float] = []
        while not taken or (sum(taken) < ROUND_SECONDS and len(taken) < 50):
            start = time.process_time()
            residuals[name] = calls[name]()
            taken.append(time.process_time() - start)
        found[name] = float(np.median(taken))
    for group in SAME:
        for name in group[1:]:
            if not np.allclose(residuals[group[0]], residuals[name], rtol=1e-7, atol=1e-9):
                raise RuntimeError(f"l = {l}, trial {trial}: {name} is not {group[0]}")
    return found


# ----------------------------------------------------------------------------------------------------------- errata


def errata(task: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Formulas as printed and as they should be, each against a computation that uses neither: largest differences."""
    x, first = patterns(ERRATA_SAMPLES, task["trial"])
    gram, y, l = gaussian(ERRATA_GAMMA, x, x), coded(first), ERRATA_SAMPLES
    z, c = normal_equations(gram, ERRATA_RIDGE)
    inverse = np.linalg.inv(c)
    h = np.einsum("ij,jk,ik->i", z, inverse, z)
    theta = inverse @ (z.T @ y)
    alpha, bias = theta[:-1], theta[-1]
    w = gram @ alpha  # w . phi(x) of each pattern
    sign = np.sign(y)

    def row_deleted(values: np.ndarray) -> np.ndarray:
        """f of each pattern, by training without its row."""
        f = np.empty(l)
        for i in range(l):
            rest = np.delete(np.arange(l), i)
            f[i] = answer(gram[i], train(gram[rest], values[rest], [ERRATA_RIDGE])[0])
        return f

    def worst(values: Iterable[np.ndarray]) -> float:
        return float(max(np.abs(value).max() for value in values))

    smaller = [np.linalg.inv(c - np.outer(row, row)) for row in z]
    parts = [np.outer(u, u) / (1 - k) for u, k in zip(z @ inverse, h, strict=True)]
    found: dict[str, dict[str, float]] = {}

    def enter(name: str, right: float, printed: float = math.nan) -> None:
        found[name] = {"right": right, "printed": printed}

    enter(
        "inverse",
        worst(inverse + part - less for part, less in zip(parts, smaller, strict=True)),
        worst(c + part - less for part, less in zip(parts, smaller, strict=True)),
    )
    shrink = np.array([np.exp(np.linalg.slogdet(c - np.outer(row, row))[1] - np.linalg.slogdet(c)[1]) for row in z])
    enter("lemma", worst([shrink - (1 - h)]), worst([shrink - (1 + h)]))
    f = row_deleted(y)
    enter("residual", worst([(y - (w + bias)) / (1 - h) - (y - f)]), worst([(y - w + bias) / (1 - h) - (y - f)]))
    enter(
        "target",
        worst([(y - w - bias) / (1 - h) - (y - f)]),
        worst([(sign - w - bias) / (1 - h) - (sign - f)]),
    )
    truth = np.mean(sign * f <= 0)
    rule = sign * (sign - f)
    enter("count", float(abs(np.mean(rule >= 1) - truth)), float(abs(np.mean(rule <= -1) - truth)))
    means = [gram[:, chosen].mean(axis=1) for chosen in (first, ~first)]
    enter("bias", abs(-alpha @ (first.sum() * means[0] + (~first).sum() * means[1]) / l - bias))
    both = np.where(first, l / first.sum(), l / (~first).sum())
    (unsigned,) = train(gram, both, [ERRATA_RIDGE])
    rates = [wrong(answer(gram, t), first) / l for t in (theta, unsigned)]
    enter("coding", *rates)
    scale = ((~first).sum() - first.sum()) / l
    enter("coding, direction", worst([unsigned[:-1] / scale - alpha]) / worst([alpha]))
    enter("normal equations", worst([theta - train(gram, y, [ERRATA_RIDGE])[0]]) / worst([theta]))
    # eq. 3, with the scatter of the classes regularised by the same ridge
    scatter = sum(
        (gram[:, chosen] - gram[:, chosen].mean(axis=1, keepdims=True)) @ gram[chosen] for chosen in (first, ~first)
    )
    between = np.outer(means[0] - means[1], means[0] - means[1])
    vector = eigh(between, scatter + ERRATA_RIDGE * np.eye(l))[1][:, -1]
    enter("fisher", 1 - abs(vector @ alpha) / np.linalg.norm(vector) / np.linalg.norm(alpha))
    found["values"] = {
        "h": float(h.max()),
        "rate": float(truth),
        "printed rate": float(np.mean(rule <= -1)),
        "class 1": int(first.sum()),
    }
    return found


KINDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "leave_one_out": leave_one_out,
    "s_fold": s_fold,
    "fixed_basis": fixed_basis,
    "ridge_model": ridge_model,
    "selection": selection,
    "times": times,
    "errata": errata,
}


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    """Compute one task."""
    return KINDS[task["kind"]](task)
