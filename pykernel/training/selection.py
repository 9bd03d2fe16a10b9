"""Choose the kernel's width and the ridge by cross-validation in closed form, with one decomposition for each width.

    found = select("kfd", x, Targets.of_classes(positions, 2, "counts"), "gaussian", jobs=2)
    found.width, found.ridge, found.corrected     # the chosen width and ridge, and the error to expect

Samples are left out one by one, or fold by fold, with the same result as retraining (pykernel.training.closed_form).  After the
decomposition, each ridge takes only matrix-vector products: l samples, W widths and R ridges cost W O(l^3) + W R O(l^2) instead of
W R O(l^4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from pykernel.bases.arguments import checked_table, need_choice, need_machine
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.parallel import Workers, checked_jobs, one_thread
from pykernel.spec.kernel_settings import MATERN_UNITS
from pykernel.training.closed_form import MODELS, Column, Model, problem
from pykernel.training.coding import Targets, error_rate, press

Function = Literal["gaussian", "laplacian", "matern12", "matern32", "matern52", "polynomial", "linear", "sigmoid"]
Criterion = Literal["error", "press"]
CrossValidation = Literal["deleted", "kept"] | int

GROUPS = 10
"""Number of groups into which the samples' errors are divided to compute the optimism, for leave-one-out and for more
than MOST_FOLDS folds.
"""
MOST_FOLDS = 20
PAIRS = 2000
"""Number of pairs of samples from which the typical distance is estimated."""
COPIES = 10
"""Peak memory of a decomposition, as a multiple of the Gram matrix's size."""
SLACK = 0.01
"""Cells are equally good if their errors (rates, or roots of PRESS) exceed the best cell's error by at most this fraction."""


# ------------------------------------------------------------------------------------------------------------ grids


def width_name(kernel: str) -> str | None:
    """Return the name of a kernel's width in a spec: sigma for gaussian, None for linear, and gamma for all other kernels."""
    return {"gaussian": "sigma", "linear": None}.get(kernel, "gamma")


def default_widths(kernel: Function, x: np.ndarray) -> tuple[float, ...]:
    """Return widths around the data's scale, rounded to three digits, in ascending order.

    gaussian: sigma from 1/16 to 4 times the median distance between two samples, in steps of sqrt 2 (13 widths).
    laplacian: gamma from 1/4 to 16 times 1 / (the median sum of absolute differences), in steps of sqrt 2 (13 widths).
    matern12, matern32, matern52: gamma from 1/4 to 16 times c / (the median distance), with c = 1, sqrt(3) and sqrt(5), in steps
    of sqrt 2 (13 widths).
    polynomial, sigmoid: gamma from 1/16 to 16 times 1 / (the mean of |x|^2), in steps of 2 (9 widths).
    linear: 1.0 as a placeholder, because this kernel has no width.
    """
    if width_name(kernel) is None:
        return (1.0,)
    if kernel in ("polynomial", "sigmoid"):
        scale = float(np.square(x).sum(axis=1).mean()) or 1.0
        return three_digits(2.0**k / scale for k in range(-4, 5))
    scale = _typical_distance(x, 1 if kernel == "laplacian" else 2)
    halves = [2.0 ** (k / 2) for k in range(-8, 5)]
    if kernel == "laplacian" or kernel in MATERN_UNITS:
        return three_digits(MATERN_UNITS.get(kernel, 1.0) / (half * scale) for half in reversed(halves))
    return three_digits(half * scale for half in halves)


def default_ridges(model: Model, kernel: MercerKernel, x: np.ndarray, total: float | None = None) -> tuple[float, ...]:
    """Return ridges in steps of half a decade, rounded to three digits, in ascending order.

    The largest ridge is an upper bound on the eigenvalues or squared singular values to which a ridge is added.  krr,
    ls-svm: lambda is added to the eigenvalues of the Gram matrix, which are at most its trace t = l mean k(x, x).  The
    ridges go from 1e-8 t to t (17 values).  kfd: mu is added to squared singular values, which are at most t^2.  The
    ridges go from 1e-12 t^2 to t^2 (25 values).
    For Gaussian, Laplacian, Matern and normalised kernels, t = l for every width.  x: all rows or some of them; the mean
    is over the first 2,000 rows of x.  total: the sum of the samples' weights; the number of rows if not given.
    """
    trace = (len(x) if total is None else total) * (float(np.abs(kernel.diagonal(x[:PAIRS])).mean()) or 1.0)
    bound, decades = (trace**2, 12) if model == "kfd" else (trace, 8)
    return three_digits(bound * 10.0 ** (k / 2) for k in range(-2 * decades, 1))


def three_digits(values: Any) -> tuple[float, ...]:
    return tuple(float(f"{value:.3g}") for value in values)


def _typical_distance(x: np.ndarray, order: int) -> float:
    """Return the median distance between two different samples: the sum of absolute differences (order 1) or the
    Euclidean distance (2).
    """
    pairs = np.random.default_rng(0).integers(0, len(x), (PAIRS, 2))
    distances = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], order, axis=1)
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0


# ------------------------------------------------------------------------------------------------------------ folds


class GroupFolds(int):
    """A number of folds that keep the samples of a group (for example, of one device) together, so that no sample is
    predicted by a model that was trained on its group.

    groups: the group of each sample, (l,).
    """

    groups: np.ndarray

    def __new__(cls, count: int, groups: np.ndarray) -> GroupFolds:
        made = super().__new__(cls, count)
        made.groups = groups
        return made

    def among(self, at: np.ndarray) -> GroupFolds:
        """Return the number of folds and the groups for the samples ``at``.  If these samples have fewer groups than there
        are folds, the number of folds becomes the number of groups.
        """
        groups = self.groups[at]
        return GroupFolds(min(self, len(np.unique(groups))), groups)


def folds_of_splits(splits: Iterable[Any], samples: int) -> GroupFolds:
    """Return the folds of a list of pairs (train, test), as scikit-learn's splitters yield them: a fold for each test set.

    Raises UserError unless each sample is in exactly one of two or more test sets.
    """
    fold, tests = np.full(samples, -1), list(splits)
    try:
        for k, (_, test) in enumerate(tests):
            fold[test] = np.where(fold[test] < 0, k, samples)  # no fold has the number ``samples``
    except (IndexError, TypeError, ValueError):
        fold[:] = -1
    if len(tests) < 2 or not ((fold >= 0) & (fold < samples)).all():
        raise UserError("cv: each sample must be in exactly one of two or more test sets")
    return GroupFolds(len(tests), fold)


def stratified_folds(targets: Targets, count: int, seed: int = 0) -> np.ndarray:
    """Return the fold of each sample, (l,) from 0 to count - 1.  The numbers of samples in the folds differ by at most
    one, and so do the numbers of samples of each class.  If ``count`` is a ``GroupFolds``, this holds only for the
    numbers of groups in the folds.

    The same seed always gives the same folds.  Raises UserError unless the number of folds is from 2 to l, or with
    ``GroupFolds`` from 2 to the number of groups.
    """
    l = len(targets.values)
    if isinstance(count, GroupFolds):
        there, group = np.unique(count.groups, return_inverse=True)
        if not 2 <= count <= len(there):
            raise UserError(
                f"cv is {int(count)}; the number of folds must be from 2 to {len(there):,}, the number of groups"
            )
        of_group = np.empty(len(there), np.int64)
        of_group[np.random.default_rng(seed).permutation(len(there))] = np.arange(len(there)) % count
        return of_group[group]
    if not 2 <= count <= l:
        raise UserError(f"cv is {count}; the number of folds must be from 2 to {l:,}, the number of samples")
    order = np.random.default_rng(seed).permutation(l)
    if targets.positions is not None:
        order = order[np.argsort(targets.positions[order], kind="stable")]
    folds = np.empty(l, np.int64)
    folds[order] = np.arange(l) % count
    return folds


# --------------------------------------------------------------------------------------------------- in the workers


@dataclass(frozen=True)
class Grid(ABC):
    """The arguments that are the same for all widths.

    mercer: the kernel, whose width is replaced with each of the widths.  folds: (l,), or None for leave-one-out.
    groups: (l,), the group of each sample for the optimism.
    """

    model: Model
    mercer: MercerKernel
    targets: Targets
    folds: np.ndarray | None
    groups: np.ndarray

    @property
    def kernel(self) -> Function:
        return cast(Function, self.mercer.function)

    @abstractmethod
    def left_out(self, width: float, ridges: Sequence[float]) -> Iterator[np.ndarray | UserError]:
        """For each ridge, yield a prediction for every sample, (l, o), by a model trained without the sample or its
        fold.

        For an impossible cell, yield a UserError that says why: the kernel overflows, or the Gram matrix plus the ridge
        is not positive definite.
        """


@dataclass(frozen=True)
class _Whole(Grid):
    """A grid of models whose expansion vectors are all samples or, for kfd only, the vectors of a basis.

    basis: expansion vectors, or None for the samples themselves.  columns: as in ``closed_form``.
    """

    x: np.ndarray
    basis: np.ndarray | None
    columns: np.ndarray | None
    column: Column

    def left_out(self, width: float, ridges: Sequence[float]) -> Iterator[np.ndarray | UserError]:
        machine: Any = None
        for ridge in ridges:
            try:
                machine = machine or self._problem(width)
                if self.folds is None:
                    yield machine.leave_one_out(ridge, column=self.column)
                else:
                    yield machine.leave_fold_out(ridge, self.folds, column=self.column)
            except UserError as error:
                yield error

    def _problem(self, width: float) -> Any:
        """Return the problem for a width, with its Gram matrix decomposed."""
        gram = self.mercer.with_width(width).gram(self.x, self.x if self.basis is None else self.basis)
        return problem(self.model, gram, self.targets, self.columns)


def work(task: Mapping[str, Any], shared: Grid) -> dict[str, Any]:
    """Compute, for the width and each ridge of a task, the error rate (for classes) and PRESS, in total and for each group.

    An impossible cell has infinite errors.  ``reason`` says why the last impossible cell is impossible.
    """
    scores, reason = [], None
    with one_thread:
        for found in shared.left_out(task["width"], task["ridges"]):
            if isinstance(found, UserError):
                found, reason = np.full(shared.targets.values.shape, np.inf), str(found)
            scores.append(scores_of(found, shared))
    return {key: [score[key] for score in scores] for key in scores[0]} | {"reason": reason}


def scores_of(predictions: np.ndarray, shared: Grid) -> dict[str, Any]:
    targets = shared.targets
    each = targets.weights
    counts = np.bincount(shared.groups, weights=each)
    possible = bool(np.isfinite(predictions).all())

    def by_group(values: np.ndarray) -> list[float]:
        return (np.bincount(shared.groups, weights=values if each is None else values * each) / counts).tolist()

    squares = np.square(targets.values - predictions).mean(axis=1)
    scores = {"press": press(targets, predictions), "group_press": by_group(squares)}
    if targets.positions is not None:
        mistakes = targets.mistakes(predictions) if possible else np.full(len(targets), np.inf)
        scores |= {"error": error_rate(targets, predictions) if possible else np.inf, "group_error": by_group(mistakes)}
    return scores


# -------------------------------------------------------------------------------------------------------- selection


@dataclass(frozen=True)
class Selection:
    """A grid of widths (W,) and ridges (R,), both ascending, with the cross-validated errors of each cell.

    A cell is a pair of a width and a ridge.

    error: (W, R), the fraction of samples that are classified wrongly; None for regression.
    press: (W, R), the mean over samples and outputs of the squared difference from the targets (for classes: from the
    coded targets).
    best: row and column of the cell with the smallest error rate or PRESS, whichever ``by`` names.  Ties in the error
    rate are broken by the smallest PRESS, then by the largest ridge, then by the smoothest kernel (the largest sigma,
    the smallest gamma).
    taken: the chosen cell.  Of all cells that are as good as the best cell, it has the largest ridge; ties are broken by
    the smoothest kernel.  With "press", a cell is as good as the best if the root of its PRESS is at most 1 % above the
    smallest.  With "error", two conditions hold for such a cell: its error rate is at most 1 % above the smallest error
    rate, and the root of its PRESS is at most 1 % above the smallest root among the cells that meet the first
    condition.  The best cell is not always taken, because the position of the minimum is random where the error hardly
    changes, and the model at the minimum often has huge weights, which cause large errors for unusual rows.
    optimism: the expected difference between the true error and the smallest cross-validated error, which is too small
    because it is a minimum.  The optimism is the mean over folds k, weighted by their sizes, of e_k(best) - min e_k,
    with e_k the error within the fold (Tibshirani and Tibshirani, "A bias correction for the minimum error rate in
    cross-validation", Ann. Appl. Stat. 3(2), 2009).  In a fold of one or a few samples, the minimum is often zero.  For
    leave-one-out and for more than 20 folds, the errors are therefore divided into 10 stratified groups, which replace
    the folds.  The optimism of the taken cell is assumed to be the same.
    """

    model: Model
    kernel: Function
    cv: CrossValidation
    by: Criterion
    widths: np.ndarray
    ridges: np.ndarray
    error: np.ndarray | None
    press: np.ndarray
    best: tuple[int, int]
    taken: tuple[int, int]
    optimism: float

    @property
    def width(self) -> float:
        """The taken width: sigma (gaussian) or gamma; 1.0 for the linear kernel, which has none."""
        return float(self.widths[self.taken[0]])

    @property
    def ridge(self) -> float:
        """The taken ridge."""
        return float(self.ridges[self.taken[1]])

    @property
    def alike(self) -> int:
        """Number of cells that are as good as the best cell, including the best cell."""
        return int(_alike(self.by, self.error, self.press).sum())

    @property
    def reason(self) -> str:
        """The reason why the cell was taken, in words."""
        if self.alike == 1:
            return "the best cell; no other cell is within 1 % of it"
        name = width_name(self.kernel)
        smoothest = {"sigma": ", then the largest sigma,", "gamma": ", then the smallest gamma,"}.get(name or "", "")
        return f"the largest ridge{smoothest} among the {self.alike:,} cells within 1 % of the best"

    @property
    def surface(self) -> np.ndarray:
        """The values that were minimised, (W, R)."""
        return self.press if self.by == "press" else cast(np.ndarray, self.error)

    @property
    def value(self) -> float:
        """The cross-validated error rate or PRESS (see ``by``) of the taken cell, which is too small by about the
        optimism.
        """
        return float(self.surface[self.taken])

    @property
    def corrected(self) -> float:
        """``value`` plus the optimism; an error rate is limited to 1."""
        value = self.value + self.optimism
        return min(value, 1.0) if self.by == "error" else value

    @property
    def table(self) -> list[dict[str, float | None]]:
        """The width, ridge, error and press of every cell, the best cell first."""
        return [self.cell(i, j) for i, j in self._order()]

    @property
    def table_of_widths(self) -> list[dict[str, float | None]]:
        """The best cell of each width, by ascending width.  For the taken width, the taken cell is used instead."""
        first = {self.taken[0]: self.cell(*self.taken)}
        for i, j in self._order():
            first.setdefault(i, self.cell(i, j))
        return [first[i] for i in range(len(self.widths))]

    @property
    def edge(self) -> str | None:
        """A warning if the best cell is on the border of the grid, because better cells may lie beyond it; otherwise None."""
        said = []
        name = width_name(self.kernel)
        for what, values, at in ((name, self.widths, self.best[0]), ("ridge", self.ridges, self.best[1])):
            if what is not None and len(values) > 1 and at in (0, len(values) - 1):
                said.append(f"{what} {values[at]:g} is the {'smallest' if at == 0 else 'largest'} value tried")
        if not said:
            return None
        return f"the best cell is on the border of the grid: {', and '.join(said)}; try a wider grid, which may contain a better cell"

    @property
    def _measure(self) -> str:
        return "error rate" if self.by == "error" else "mean squared error"

    def surface_told(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int], str, str]:
        """Return the data for a figure: widths, ridges, values (W, R), the taken cell, the name of the values, and the width's name."""
        return self.widths, self.ridges, self.surface, self.taken, self._measure, width_name(self.kernel) or ""

    def cell(self, i: int, j: int) -> dict[str, float | None]:
        """Return the width, ridge, error (None in regression) and press of the cell in row i and column j."""
        error = None if self.error is None else float(self.error[i, j])
        ridge, press = float(self.ridges[j]), float(self.press[i, j])
        return {"width": float(self.widths[i]), "ridge": ridge, "error": error, "press": press}

    def _order(self) -> list[tuple[int, int]]:
        return _ranked(self.kernel, self.by, self.error, self.press)


def _ranked(kernel: Function, by: Criterion, error: np.ndarray | None, press: np.ndarray) -> list[tuple[int, int]]:
    """Return the cells, the best first."""
    i, j = (np.asarray(index) for index in np.indices(press.shape))
    rough = np.asarray(-i if width_name(kernel) == "sigma" else i)
    keys: list[np.ndarray] = [rough, -j, press] + ([cast(np.ndarray, error)] if by == "error" else [])
    order = np.lexsort([key.ravel() for key in keys])
    return [(int(at) // press.shape[1], int(at) % press.shape[1]) for at in order]


def _alike(by: Criterion, error: np.ndarray | None, press: np.ndarray) -> np.ndarray:
    """Return a Boolean array (W, R) that is True for the cells that are as good as the best cell, within the tolerance SLACK."""
    among = np.isfinite(press)
    if by == "error":
        rates = cast(np.ndarray, error)
        among &= rates <= (1 + SLACK) * rates[among].min()
    return cast(np.ndarray, among & (press <= (1 + SLACK) ** 2 * press[among].min()))


def _taken(kernel: Function, by: Criterion, error: np.ndarray | None, press: np.ndarray) -> tuple[int, int]:
    """Return the cell with the largest ridge among the cells that are as good as the best cell.  Ties are broken by the
    smoothest kernel.
    """
    smooth = 1 if width_name(kernel) == "sigma" else -1
    i, j = max(np.argwhere(_alike(by, error, press)).tolist(), key=lambda cell: (cell[1], smooth * cell[0]))
    return int(i), int(j)


def select(
    model: Model,
    x: np.ndarray,
    targets: Targets,
    kernel: Function | Mapping[str, Any] | MercerKernel = "gaussian",
    widths: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    *,
    basis: np.ndarray | None = None,
    columns: np.ndarray | None = None,
    cv: CrossValidation = "deleted",
    by: Criterion | None = None,
    jobs: int | str | None = None,
    progress: bool = False,
    seed: int = 0,
) -> Selection:
    """Cross-validate a model for every pair of a width and a ridge, and choose a pair.  W (O(l p min(l, p)) + R O(l p)).

    x: (l, d).  targets: classes or values of the l samples.
    kernel: a function's name; or a mapping with "function", "coef0" (default 1) and "degree" (default 3); or a
    MercerKernel, whose gamma is replaced with each width.
    widths: sigma for "gaussian", gamma for other kernels; None: ``default_widths``.  "linear" has no width; for
    "custom", None means the gamma of the kernel.
    ridges: mu for "kfd", lambda for "ls-svm" and "krr".  The ridges are absolute, in the unit of the matrix to which
    they are added: K'K for "kfd", and K for the other models.  None: ``default_ridges``, which are relative to the
    kernel's diagonal.
    basis: for "kfd" only, the expansion vectors: positions of samples (p,), or vectors (p, d); None: all samples.
    columns: (p,), only for a basis that is given as vectors: for each vector, the index of the sample from which it was
    taken, or -1 (the default) for other vectors.

    cv: "deleted": leave-one-out that removes the sample's row and column, as in retraining; "kept": paper 004's
    estimate, which removes only the row (for ls-svm and krr, it gives the same result as "deleted"); or a number S of
    stratified folds, drawn with ``seed``.
    by: "error" (the default for classes, and possible only for classes) or "press".

    jobs: number of worker processes; None or 1: everything is computed in this process.  Each worker holds the Gram
    matrix of one width at a time, and computes with one thread, so that the result is bit-identical for any number of
    workers on machines of the same kind.
    progress: show a bar.

    Raises UserError if an argument is invalid, or if the Gram matrices do not fit into the memory of this machine.
    """
    x = np.ascontiguousarray(x, np.float64)
    mercer = _kernel(kernel)
    checked_table(x, "x")
    need_settings(model, len(x), targets, cv, by)
    if basis is not None and model != "kfd":
        raise UserError(
            f"{model} uses every sample as an expansion vector, and only kfd takes a basis; leave basis out"
        )
    if widths is None and mercer.custom is not None:
        widths = (mercer.gamma,)
    every_width = grid_of(widths, "widths", lambda: default_widths(cast(Function, mercer.function), x))
    if width_name(mercer.function) is None and len(every_width) > 1:
        raise UserError(
            f"the {mercer.function} kernel has no width, but {len(every_width)} widths are given; leave widths out"
        )
    middle = mercer.with_width(every_width[len(every_width) // 2])
    every_ridge = grid_of(ridges, "ridges", lambda: default_ridges(model, middle, x, targets.total))
    vectors, places = _basis(basis, columns, x)
    grid = _Whole(
        model, mercer, targets, *folds_and_groups(targets, cv, seed), x, vectors, places,
        "kept" if cv == "kept" else "deleted",
    )  # fmt: skip
    at_once = checked_jobs(jobs) or 1
    if isinstance(at_once, int):
        need_memory(len(x), len(x) if vectors is None else len(vectors), min(at_once, len(every_width)))
    return searched(grid, cv, by, every_width, every_ridge, at_once, progress)


def folds_and_groups(targets: Targets, cv: CrossValidation, seed: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Return two arrays: the fold of each sample (None for leave-one-out), and the group of each sample, from which the
    optimism is computed.
    """
    folds = None if isinstance(cv, str) else stratified_folds(targets, cv, seed)
    if folds is not None and int(folds.max()) < MOST_FOLDS:
        return folds, folds
    return folds, stratified_folds(targets, min(GROUPS, len(targets)), seed)


def searched(
    grid: Grid,
    cv: CrossValidation,
    by: Criterion | None,
    widths: Sequence[float],
    ridges: Sequence[float],
    jobs: int | str,
    progress: bool,
) -> Selection:
    """Cross-validate every cell of a grid, and choose a cell."""
    tasks = [{"width": width, "ridges": list(ridges)} for width in widths]
    with Workers(work, grid, jobs=jobs, title="selecting" if progress else None) as crew:
        rows = crew.run(tasks)
    classes = grid.targets.positions is not None
    by = by or ("error" if classes else "press")
    error = np.array([row["error"] for row in rows]) if classes else None
    squared = np.array([row["press"] for row in rows])
    if not np.isfinite(squared).any():
        raise UserError(f"no cell of the grid can be evaluated: {rows[-1]['reason']}")
    best = _ranked(grid.kernel, by, error, squared)[0]
    taken = _taken(grid.kernel, by, error, squared)
    # (W, R, groups)
    parts = np.array([row[f"group_{by}"] for row in rows])
    # the optimism of the best cell is used for the taken cell, because the errors of the two cells are nearly equal
    cell = best[0] * len(ridges) + best[1]
    optimism = bias_of_minimum(parts.reshape(-1, parts.shape[2]), cell, grid.groups, grid.targets.weights)
    every = (np.array(widths), np.array(ridges), error, squared)
    return Selection(grid.model, grid.kernel, cv if isinstance(cv, str) else int(cv), by, *every, best, taken, optimism)


def bias_of_minimum(errors: np.ndarray, best: int, groups: np.ndarray, each: np.ndarray | None = None) -> float:
    """Return the optimism of a minimum of cross-validated errors: sum_k n_k/n (e_k(best) - min e_k).

    errors: (candidates, folds), the error of each candidate within each fold.  best: the chosen candidate.  groups:
    (l,), the fold of each sample; each fold counts in proportion to its size n_k.  each: (l,), the sample weights,
    whose sums replace the sizes.  Tibshirani and Tibshirani (2009), generalised to unequal folds.
    """
    sizes = np.bincount(groups, weights=each)
    weights = sizes / sizes.sum()
    return float((errors[best] - errors.min(axis=0)) @ weights)


# -------------------------------------------------------------------------------------------------------- arguments


def need_settings(model: str, rows: int, targets: Targets, cv: Any, by: str | None) -> None:
    """Raise UserError unless a model can be cross-validated with these settings."""
    need_choice(model, "model", MODELS)
    targets.need_samples(rows)
    if isinstance(cv, bool) or not (cv in ("deleted", "kept") or isinstance(cv, (int, np.integer))):
        raise UserError(f'cv is {cv!r}; it must be "deleted", "kept", or a number of folds')
    classes = targets.positions is not None
    if by is not None and by not in (("error", "press") if classes else ("press",)):
        choice = '"error" or "press"' if classes else '"press", because the targets are not classes'
        raise UserError(f'the setting "by" is {by!r}; it must be {choice}')


def grid_of(grid: Sequence[float] | None, what: str, default: Callable[[], tuple[float, ...]]) -> tuple[float, ...]:
    """Return the given values, ascending and without repeats, or the default."""
    if grid is None:
        return default()
    values = np.unique(np.asarray(grid, np.float64))
    if not len(values):
        raise UserError(
            f"{what} is empty; give at least one value, or leave {what} out to use a grid made from the data"
        )
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if len(wrong):
        raise UserError(f"{what} holds {wrong[0]:g}; each value must be above zero and finite")
    return tuple(values.tolist())


def _kernel(kernel: str | Mapping[str, Any] | MercerKernel) -> MercerKernel:
    """Return the kernel as a MercerKernel, whose width is replaced later."""
    if isinstance(kernel, MercerKernel):
        return kernel
    given = kernel if isinstance(kernel, Mapping) else {"function": kernel}
    function: Any = given.get("function")
    need_choice(function, "kernel", get_args(Function))
    return MercerKernel(function, coef0=float(given.get("coef0", 1.0)), degree=int(given.get("degree", 3)))


def _basis(basis: Any, columns: Any, x: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the expansion vectors, and for each vector the index of the sample from which it was taken, or -1."""
    if basis is None:
        return None, None
    given = np.asarray(basis)
    if given.ndim == 1 and given.dtype.kind in "iu" and len(given):
        if not ((given >= 0) & (given < len(x))).all() or len(np.unique(given)) < len(given):
            raise UserError(f"basis holds a position twice, or a position that is not from 0 to {len(x) - 1:,}")
        return x[given], given
    if given.ndim != 2 or given.shape[1] != x.shape[1] or not len(given) or not np.isfinite(given).all():
        raise UserError(
            f"basis must hold positions of samples, or finite vectors of {x.shape[1]} inputs; its shape is {given.shape}"
        )
    places = np.full(len(given), -1) if columns is None else np.asarray(columns)
    if places.shape != (len(given),):
        raise UserError(
            f"columns has the shape {places.shape}; it must be ({len(given)},): for each basis vector, a sample's position, or -1"
        )
    return np.ascontiguousarray(given, np.float64), places


def need_memory(l: int, p: int, jobs: int) -> None:
    need_machine(
        8 * COPIES * l * p * jobs,
        f"decomposing Gram matrices of {l:,} x {p:,}, {jobs} at a time,",
        "use fewer samples, or a basis (kfd only)" + (", or fewer jobs" if jobs > 1 else ""),
    )
