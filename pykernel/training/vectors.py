"""Kernel machines whose vectors, widths and weights are trained together, by the gradient of one loss.

    f(x) = sum_i a_i exp(-1/2 sum_j (e_j (x_j - v_ij))^2) + b,   with a column of a and an element of b for each output

A few trained vectors replace many rows of the data.  The model is the reduced set of C. J. C. Burges (1996) and the
sparse kernel machine of M. Wu, B. Schoelkopf & G. Bakir (2006).  The training begins with k-means and least squares (J.
Moody & C. Darken, 1989), and continues with L-BFGS over all parameters (E. Snelson & Z. Ghahramani, 2006).  e_j is the
reciprocal width of input j; a model may have one width for all inputs.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.cluster.vq import kmeans2  # type: ignore[import-untyped]
from scipy.optimize import minimize  # type: ignore[import-untyped]
from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

from pykernel.errors import UserError
from pykernel.parallel import one_thread
from pykernel.training.machine import Machine

Loss = Literal["squared", "absolute", "classes"]
Widths = Literal["one", "inputs"]

PULL = 1e-4
"""Weight of the penalty that pulls the logarithms of the widths towards their initial values."""
CORRECTIONS = 20
"""Number of steps that L-BFGS remembers."""
CORNER = 0.05
"""Width of the smooth part of the absolute loss sqrt(r^2 + CORNER^2), in standard deviations of the labels."""
BLOCK = 2048
"""Number of rows whose kernel values are computed at once."""
ROUNDS = 15
"""Number of iterations of k-means."""
LOOKED = 5
"""Number of steps between two measurements of the risk on the rows that were set aside."""
PATIENCE = 100
"""The search ends if the risk on the rows that were set aside has not improved for this many steps."""
MEDIAN_ROWS = 500
"""Number of rows from which the median distance is computed."""
START_RIDGE = 1e-3
"""Ridge of the initial weights, as a fraction of the number of rows for each vector, n / m."""


@dataclass(frozen=True)
class Vectors:
    """The trained parameters: vectors (m, D), log_scale = ln e (D,) or (1,), weights (m, O), bias (O,)."""

    vectors: np.ndarray
    log_scale: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def functions(self, x: np.ndarray) -> np.ndarray:
        """Return f at rows of x, (rows, O).  O(rows m D)."""
        return np.asarray(np.exp(-0.5 * self.distances(x)[0]) @ self.weights + self.bias)

    def distances(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays: the squared distance of each row of scaled inputs from each scaled vector, (rows, m); the
        scaled inputs, (rows, D); and the scaled vectors, (m, D).
        """
        e = np.exp(self.log_scale)
        z, u = x * e, self.vectors * e
        square = np.square(z).sum(axis=1)[:, None] + np.square(u).sum(axis=1) - 2 * z @ u.T
        return np.maximum(square, 0.0), z, u

    def answering(self, middle: np.ndarray | float, deviation: np.ndarray | float) -> Vectors:
        """Return the model with outputs in the labels' unit.  The model was trained on (label - middle) / deviation.

        middle, deviation: each is one number, or an array (O,) with a number for each output.
        """
        return replace(self, weights=self.weights * deviation, bias=middle + self.bias * deviation)

    def machine(self, source: str, **more: Any) -> Machine:
        """Return the model as a Machine, from which a frozen spec is made.  If all inputs have the same width, this
        width becomes gamma, and the machine has no scale.
        """
        e = np.broadcast_to(np.exp(self.log_scale), self.vectors.shape[1])
        one = bool((e == e[0]).all())
        vectors, gamma = (self.vectors, 0.5 * float(e[0]) ** 2) if one else (self.vectors * e, 0.5)
        scale = None if one else e.copy()
        return Machine(source, "gaussian", vectors, self.weights, self.bias, gamma, scale=scale, **more)

    def packed(self) -> np.ndarray:
        return np.concatenate([part.ravel() for part in (self.vectors, self.log_scale, self.weights, self.bias)])

    def unpacked(self, numbers: np.ndarray) -> Vectors:
        """Return a Vectors with arrays of the same shapes, whose elements are ``numbers`` in the order of ``packed``."""
        parts, at = [], 0
        for part in (self.vectors, self.log_scale, self.weights, self.bias):
            parts.append(numbers[at : at + part.size].reshape(part.shape))
            at += part.size
        return Vectors(*parts)


@dataclass(frozen=True)
class Rows:
    """Rows for the training.

    x: inputs (n, D).  targets: (n, O): numbers, or for classes, 1 for the row's class and 0 for all other classes.  For
    two classes, only the column of the second class is kept.  counts: (n,), the weights of the rows; their mean is 1.
    """

    x: np.ndarray
    targets: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def blocks(self) -> list[tuple[Rows, np.ndarray, dict[int, np.ndarray]]]:
        """The rows in parts that fit into a cache.  Each part comes with its products [x, x^2, 1], (rows, 2 D + 1), and
        with a dictionary that maps a number of vectors to buffers.
        """
        products = np.column_stack([self.x, np.square(self.x), np.ones(len(self))])
        parts = [slice(first, first + BLOCK) for first in range(0, len(self), BLOCK)]
        return [(Rows(self.x[part], self.targets[part], self.counts[part]), products[part], {}) for part in parts]

    def take(self, rows: np.ndarray) -> Rows:
        counts = self.counts[rows]
        return Rows(self.x[rows], self.targets[rows], counts / counts.mean())


def class_targets(positions: np.ndarray, count: int) -> np.ndarray:
    """Return targets for classes, given by their positions from 0 to count - 1, in the form of ``Rows.targets``."""
    if count == 2:
        return (positions == 1).astype(np.float64)[:, None]
    return np.eye(count)[positions]


def value_targets(labels: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays: the standardised labels, (n, O), in the form of ``Rows.targets``; the means of the labels, (O,);
    and their standard deviations, (O,).

    If all labels of an output are equal, the standardised labels are 0, the mean is the labels' value, and the standard
    deviation is 1.
    """
    middle = np.average(labels, axis=0, weights=counts)
    deviation = np.sqrt(np.average(np.square(labels - middle), axis=0, weights=counts))
    alike = deviation <= 1e-12 * np.maximum(np.abs(middle), 1e-300)
    middle, deviation = np.where(alike, labels[0], middle), np.where(alike, 1.0, deviation)
    return np.where(alike, 0.0, (labels - middle) / deviation), middle, deviation


def risk(loss: Loss, functions: np.ndarray, rows: Rows, of: int | None = None) -> tuple[float, np.ndarray]:
    """Return the mean loss, and its gradient with respect to the functions, (n, O).

    of: the total number of rows, if ``rows`` contains only some of them.
    """
    share = (rows.counts / (of or len(rows)))[:, None]
    y = rows.targets
    if loss == "classes" and y.shape[1] == 1:
        # cross-entropy of one function, for targets of 0 or 1
        value = np.logaddexp(0.0, functions) - y * functions
        slope = 0.5 * (1 + np.tanh(0.5 * functions)) - y
    elif loss == "classes":
        top = functions - functions.max(axis=1, keepdims=True)
        total = np.log(np.exp(top).sum(axis=1, keepdims=True))
        value = y * (total - top)
        slope = np.exp(top - total) - y
    else:
        share = share / y.shape[1]
        slope = functions - y
        if loss == "squared":
            value = 0.5 * np.square(slope)
        else:
            value = np.hypot(slope, CORNER)
            slope = slope / value
    return float((share * value).sum()), share * slope


def objective(
    loss: Loss, ridge: float, start: np.ndarray, model: Vectors, rows: Rows, pull: float | None = None
) -> tuple[float, np.ndarray]:
    """Return the risk plus the penalties, and the gradient of this sum with respect to all parameters.

    start: the initial ln e.  With the products [x, x^2, 1] of the rows, one matrix product gives -|e (x - v)|^2 / 2,
    and another one gives the sums over rows that the gradient needs.  For each row and vector, only an exponential and
    a product remain to be computed.  O(n m D).
    """
    pull = PULL if pull is None else pull
    v, weights, d = model.vectors, model.weights, rows.x.shape[1]
    square = np.exp(2 * np.broadcast_to(model.log_scale, d))
    scaled = v * square
    by_products = np.column_stack([scaled, np.broadcast_to(-0.5 * square, v.shape), -0.5 * (scaled * v).sum(axis=1)]).T
    away = model.log_scale - start
    value = 0.5 * ridge * float(np.square(weights).sum()) + 0.5 * pull * float(np.square(away).sum())
    sums, by_weights, by_bias = np.zeros(by_products.T.shape), ridge * weights, np.zeros(weights.shape[1])
    for some, products, room in rows.blocks:
        if len(v) not in room:  # allocating arrays in each call would take longer than the computation
            room[len(v)] = np.empty((2, len(some), len(v)))
        k, w = room[len(v)]
        np.matmul(products, by_products, out=k)
        np.exp(np.minimum(k, 0.0, out=k), out=k)
        part, g = risk(loss, k @ weights + model.bias, some, len(rows))
        value += part
        by_weights += k.T @ g
        by_bias += g.sum(axis=0)
        np.matmul(g, weights.T, out=w)
        w *= k  # the gradient with respect to the exponents
        sums += w.T @ products
    wx, wxx, w = sums[:, :d], sums[:, d : 2 * d], sums[:, 2 * d :]
    # the derivative of an exponent with respect to ln e_j is -(e_j (x_j - v_j))^2
    by_scale = -square * (wxx - 2 * v * wx + v * v * w).sum(axis=0)
    if len(model.log_scale) == 1:
        by_scale = np.array([by_scale.sum()])
    return value, Vectors((wx - v * w) * square, by_scale + pull * away, by_weights, by_bias).packed()


# -------------------------------------------------------------------------------------------------------- the start


def k_means(x: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Return the m centres (m, D) that k-means finds for the rows of x, starting from rows drawn at random.

    If there are fewer than m rows, there are as many centres as rows.  O(ROUNDS n m D).
    """
    with warnings.catch_warnings():
        # kmeans2 warns about a centre that is not the nearest one for any row; such a centre keeps its place
        warnings.simplefilter("ignore")
        return np.asarray(kmeans2(x, x[rng.permutation(len(x))[:m]], iter=ROUNDS, minit="matrix")[0])


def drawn_rows(x: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Return m rows of x, drawn at random, (m, D)."""
    return x[np.sort(rng.permutation(len(x))[:m])].copy()


def begin(rows: Rows, loss: Loss, vectors: np.ndarray, widths: Widths, rng: np.random.Generator) -> Vectors:
    """Return the starting point of the search: the width is half the median distance, and the weights come from ridge
    regression.
    """
    distances = pdist(rows.x[rng.permutation(len(rows))[:MEDIAN_ROWS]])
    median = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    log_scale = np.full(rows.x.shape[1] if widths == "inputs" else 1, -np.log(0.5 * median))
    m, outputs = len(vectors), rows.targets.shape[1]
    found = Vectors(vectors, log_scale, np.zeros((m, outputs)), np.zeros(outputs))
    return weighed(found, rows, loss, START_RIDGE * len(rows) / m)


def weighed(model: Vectors, rows: Rows, loss: Loss, ridge: float) -> Vectors:
    """Return the model with weights and bias from ridge regression.  O(n m^2)."""
    k = np.exp(-0.5 * model.distances(rows.x)[0])
    # for classes, use plausible log odds of +1.5 and -1.5 as the targets
    targets = 3.0 * rows.targets - 1.5 if loss == "classes" else rows.targets
    middle, inner = np.average(targets, axis=0, weights=rows.counts), np.average(k, axis=0, weights=rows.counts)
    weighted = (k - inner) * rows.counts[:, None]
    gram = weighted.T @ (k - inner) + ridge * np.eye(k.shape[1])
    weights = np.linalg.solve(gram, weighted.T @ (targets - middle))
    return replace(model, weights=weights, bias=middle - inner @ weights)


# ------------------------------------------------------------------------------------------------------- the search


@dataclass(frozen=True)
class Path:
    """The course of a search.

    looks: the risk on the rows that were set aside, every LOOKED steps.  best: the parameters with the smallest of
    these risks, or the last parameters if no rows were set aside.
    """

    best: Vectors
    looks: tuple[float, ...]


def search(
    loss: Loss,
    ridge: float,
    start: Vectors,
    rows: Rows,
    look: Callable[[Vectors], float] | None,
    steps: int,
    tell: Callable[[int], None] = lambda step: None,
    pull: float | None = None,
) -> Path:
    """Run L-BFGS from a start, for at most ``steps`` steps.

    look: a function that returns the risk on the rows that were set aside; None if no rows were set aside.
    """
    looks: list[float] = []
    best, best_step, step, last = start, 0, 0, start.packed()

    def after(numbers: np.ndarray) -> None:
        nonlocal best, best_step, step, last
        step, last = step + 1, numbers.copy()
        tell(step)
        if look is None or step % LOOKED:
            return
        found = start.unpacked(last)
        looks.append(look(found))
        if looks[-1] <= min(looks):
            best, best_step = found, step
        elif step - best_step >= PATIENCE:
            raise StopIteration

    pulled = start.log_scale
    minimize(
        lambda numbers: objective(loss, ridge, pulled, start.unpacked(numbers), rows, pull),
        start.packed(),
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={"maxiter": steps, "maxcor": CORRECTIONS, "maxfun": 2 * steps},
    )
    if not looks:  # no rows were set aside, or the search ended before the first measurement
        best = start.unpacked(last)
        if look is not None:
            looks.append(look(best))
    return Path(best, tuple(looks))


# ------------------------------------------------------------------------------------------- choice of the settings

Units = Literal["standardised", "given"]
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridges that are compared, for weights in units of the label's standard deviation."""
STEPS = 300
"""Maximum number of steps of a search."""
COMPARED = 2000
"""Maximum number of rows on which candidates are compared.  Only the last search may use more rows."""
FOLDS = 5
GIVEN_UP = 1.5
"""A candidate is dropped if its risk on the folds so far is more than this number times the best candidate's risk."""
MANY = 50_000
"""Maximum number of rows in the last search.  If there are more, this many rows are drawn."""
LAST_ASIDE = 0.1
"""Fraction of the rows that is set aside for early stopping of the last search, if there are more than COMPARED rows.
"""
Start = Callable[[np.ndarray, int, np.random.Generator], np.ndarray] | np.ndarray
"""The initial vectors, in the inputs' original units; or a function that makes them from scaled rows (n, D), a number
of vectors and a random generator.
"""


Computed = Callable[[Vectors, np.ndarray], np.ndarray]
"""A function of a model and rows of inputs that returns the values of the model's functions as the device computes
them, (rows, O).  Model and inputs are in the inputs' original units.  Raises UserError if the device cannot hold the
model.
"""


@dataclass(frozen=True)
class Candidate:
    """Settings to be compared: units of the inputs, widths, and a ridge.

    step: the step with the smallest risk on the rows that were left out.  risk: the risk at this step.
    """

    units: Units
    widths: Widths
    ridge: float
    step: int = 0
    risk: float = np.inf


@dataclass(frozen=True)
class Trained:
    """The result of ``train``.

    model: the model, in the inputs' original units.  taken: the chosen candidate.  candidates: all candidates that were
    not dropped, the best first.
    optimism: the estimated amount by which the chosen candidate's risk is too small, because the candidate was chosen
    for its small risk (R. J. & R. Tibshirani, 2009).
    places: positions of the rows on which the candidates were compared.  left_out: the function values at these rows,
    (places, O), of models that were not trained on them.
    interrupted: whether the search was ended early.
    """

    model: Vectors
    taken: Candidate
    candidates: tuple[Candidate, ...]
    optimism: float
    places: np.ndarray
    left_out: np.ndarray
    interrupted: bool


@dataclass(frozen=True)
class Job:
    """The data and settings of a training.  The fields are the arguments of ``train``."""

    rows: Rows
    m: int
    loss: Loss
    start: Start
    seed: int
    computed: Computed | None = None
    pull: float | None = None

    @cached_property
    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and standard deviation of each input, both (D,)."""
        return self.rows.x.mean(axis=0), self.rows.x.std(axis=0)

    def units(self, kind: Units) -> tuple[np.ndarray, np.ndarray]:
        """Return the center and the divisor of the inputs, both (D,).  The steps of a search depend on the inputs' units."""
        mean, deviation = self.spread
        if kind == "standardised":
            return mean, np.where(deviation > 0, deviation, 1.0)
        return mean, np.full(len(mean), np.sqrt(np.square(deviation).mean()) or 1.0)

    def scaled(self, rows: Rows, kind: Units) -> Rows:
        middle, unit = self.units(kind)
        return replace(rows, x=(rows.x - middle) / unit)

    def begun(self, scaled: Rows, candidate: Candidate, number: int) -> Vectors:
        rng = np.random.default_rng((self.seed, number))
        if callable(self.start):
            vectors = self.start(scaled.x, self.m, rng)
        else:
            middle, unit = self.units(candidate.units)
            vectors = (self.start - middle) / unit
        return begin(scaled, self.loss, vectors, candidate.widths, rng)

    def search(
        self,
        rows: Rows,
        candidate: Candidate,
        number: int,
        aside: Rows | None,
        steps: int,
        tell: Callable[[int], None],
    ) -> Path:
        scaled = self.scaled(rows, candidate.units)
        look = None if aside is None else self.look(aside, candidate.units)
        begun = self.begun(scaled, candidate, number)
        # a step of the line search may go so far that numbers overflow; the risk is then NaN, and the step is undone
        with np.errstate(over="ignore", invalid="ignore"):
            return search(self.loss, candidate.ridge, begun, scaled, look, steps, tell, self.pull)

    def functions(self, model: Vectors, x: np.ndarray, kind: Units) -> np.ndarray:
        """Return the values of a model's functions, computed as on the device.

        model: a model whose inputs are in units ``kind``.  x: rows of inputs in their original units.
        """
        if self.computed is not None:
            return self.computed(self.unscaled(model, kind), x)
        middle, unit = self.units(kind)
        return model.functions((x - middle) / unit)

    def look(self, rows: Rows, kind: Units) -> Callable[[Vectors], float]:
        """Return a function that computes the risk of a model on ``rows``.  The model's functions are computed as on the
        device, and the risk is infinite if the device cannot hold the model.  The inputs of the model are in units
        ``kind``.
        """
        scaled = self.scaled(rows, kind)

        def looked(model: Vectors) -> float:
            if self.computed is None:
                return risk(self.loss, model.functions(scaled.x), rows)[0]
            with contextlib.suppress(UserError):
                return risk(self.loss, self.functions(model, rows.x, kind), rows)[0]
            return np.inf

        return looked

    def unscaled(self, model: Vectors, kind: Units) -> Vectors:
        """Return the same model for inputs in their original units, with one width for each input."""
        middle, unit = self.units(kind)
        return replace(model, vectors=model.vectors * unit + middle, log_scale=model.log_scale - np.log(unit))


@one_thread  # use one thread, so that the result does not depend on the number of threads
def train(
    rows: Rows,
    m: int,
    loss: Loss,
    *,
    units: Sequence[Units] = ("standardised", "given"),
    widths: Sequence[Widths] = ("one", "inputs"),
    ridges: Sequence[float] = RIDGES,
    folds: np.ndarray | None = None,
    steps: int = STEPS,
    start: Start = k_means,
    starts: int = 1,
    seed: int = 0,
    computed: Computed | None = None,
    pull: float | None = None,
    tell: Callable[[float], None] = lambda part: None,
) -> Trained:
    """Train m vectors, with the units, widths and ridge that are best in cross-validation.

    folds: the fold of each row, (n,); None: FOLDS folds of equal size.
    starts: the last search is repeated with this many starts, and the best result is taken.
    computed: a function that computes the model's functions as the device does; all risks are measured with it.  None:
    the exact functions are used.
    pull: replaces PULL.  tell: called with the completed fraction of the work, from 0 to 1.
    O((folds candidates + starts) steps n m D).  An interrupt ends the training with the best model so far; if there is
    no model yet, the interrupt is raised.
    """
    job, rng = Job(rows, m, loss, start, seed, computed, pull), np.random.default_rng(seed)
    folds = rng.permutation(len(rows)) % min(FOLDS, len(rows)) if folds is None else folds
    places = np.sort(rng.permutation(len(rows))[:COMPARED])
    fold, names = folds[places], np.unique(folds[places])
    some = rows.take(places)
    left = [Candidate(unit, width, ridge) for unit in units for width in widths for ridge in ridges]
    paths: dict[Candidate, list[Path]] = {each: [] for each in left}
    last_cost = starts * min(len(rows), MANY) / len(places) * len(names) / (len(names) - 1)
    done = 0.0

    def make_tell(cost: float, whole: float, before: float = 0.0) -> Callable[[int], None]:
        return lambda step: tell(min(1.0, (done + before + cost * min(step / steps, 1.0)) / whole))

    left_out = np.zeros_like(rows.targets[places])
    first: Vectors | None = None
    try:
        for number, name in enumerate(names):
            whole = done + (len(names) - number) * len(left) + len(names) + last_cost
            for each in left:
                mine, aside = some.take(fold != name), some.take(fold == name)
                paths[each].append(job.search(mine, each, number, aside, steps, make_tell(1.0, whole)))
                done += 1.0
            left = _worth_it(left, paths)
        taken, candidates, optimism = _compared(left, paths)
        if not np.isfinite(taken.risk):  # no candidate is possible: this call raises an error that says why
            job.functions(paths[_plain(taken)][0].best, some.x, taken.units)
        first = job.unscaled(paths[_plain(taken)][0].best, taken.units)
        whole = done + len(names) + last_cost
        for number, name in enumerate(names):
            again = job.search(some.take(fold != name), taken, number, None, taken.step, make_tell(1.0, whole))
            left_out[fold == name] = job.functions(again.best, some.x[fold == name], taken.units)
            done += 1.0
        each_told = [make_tell(last_cost / starts, whole, number * last_cost / starts) for number in range(starts)]
        model, interrupted = _last(job, taken, steps, rng, each_told), False
    except KeyboardInterrupt:
        taken, candidates, optimism = _so_far(paths)
        path = paths[_plain(taken)][0]
        model, interrupted = first or job.unscaled(path.best, taken.units), True
        at = np.flatnonzero(fold == names[0])  # rows that this model has not seen
        places, left_out = places[at], job.functions(path.best, some.x[at], taken.units)
    tell(1.0)
    return Trained(model, taken, candidates, optimism, places, left_out, interrupted)


def _so_far(paths: dict[Candidate, list[Path]]) -> tuple[Candidate, tuple[Candidate, ...], float]:
    """Return the result of ``_compared`` for the searched candidates, on the folds that were searched for all of them.

    Raises KeyboardInterrupt if no candidate was searched.
    """
    here = [each for each, found in paths.items() if found]
    if not here:
        raise KeyboardInterrupt
    fewest = min(len(paths[each]) for each in here)
    return _compared(here, {each: paths[each][:fewest] for each in here})


def _plain(candidate: Candidate) -> Candidate:
    """Return a candidate with the same settings, and with step and risk reset to their defaults."""
    return replace(candidate, step=0, risk=np.inf)


def _curves(candidates: Sequence[Candidate], paths: dict[Candidate, list[Path]]) -> dict[Candidate, np.ndarray]:
    """Return the risks of each candidate's searches, (folds, looks).  If a search ended earlier, its last risk is repeated."""
    longest = max(len(path.looks) for each in candidates for path in paths[each])
    return {
        each: np.array([path.looks + path.looks[-1:] * (longest - len(path.looks)) for path in paths[each]])
        for each in candidates
    }


def _worth_it(candidates: Sequence[Candidate], paths: dict[Candidate, list[Path]]) -> list[Candidate]:
    risks = {each: float(looks.mean(axis=0).min()) for each, looks in _curves(candidates, paths).items()}
    return [each for each in candidates if risks[each] <= GIVEN_UP * min(risks.values())]


def _compared(
    candidates: Sequence[Candidate], paths: dict[Candidate, list[Path]]
) -> tuple[Candidate, tuple[Candidate, ...], float]:
    """Return the best candidate, all candidates, and the optimism."""
    curves = _curves(candidates, paths)
    found = []
    for each, looks in curves.items():
        mean = looks.mean(axis=0)
        found.append(replace(each, step=LOOKED * (int(mean.argmin()) + 1), risk=float(mean.min())))
    # if risks are equal, take the larger ridge
    found.sort(key=lambda each: (each.risk, -each.ridge))
    taken = found[0]
    own = np.min([looks.min(axis=1) for looks in curves.values()], axis=0)
    chosen = curves[_plain(taken)][:, taken.step // LOOKED - 1]
    judged = len(own) > 1 and np.isfinite(taken.risk)
    return taken, tuple(found), float((chosen - own).mean()) if judged else 0.0


def _last(
    job: Job, taken: Candidate, steps: int, rng: np.random.Generator, tells: Sequence[Callable[[int], None]]
) -> Vectors:
    """Return the final model, the best of several searches over all rows, or over MANY drawn rows.

    tells: one progress function for each start.  If there are at most COMPARED rows, a search takes the number of steps
    that was best in the comparison.  If there are more, some rows are set aside for early stopping.
    """
    rows = job.rows
    if len(rows) > MANY:
        rows = rows.take(np.sort(rng.permutation(len(rows))[:MANY]))
    aside, count = None, taken.step
    if len(rows) > COMPARED:
        order = rng.permutation(len(rows))
        cut = round(LAST_ASIDE * len(rows))
        aside, rows, count = rows.take(order[:cut]), rows.take(np.sort(order[cut:])), steps
    found = []
    for number, tell in enumerate(tells):
        path = job.search(rows, taken, number, aside, count, tell)
        value = job.look(rows, taken.units)(path.best) if aside is None else min(path.looks)
        found.append((value, number, path.best))
    return job.unscaled(min(found, key=lambda each: each[:2])[2], taken.units)
