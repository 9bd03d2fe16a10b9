"""Batch kernel machines (kernel Fisher discriminant, LS-SVM, kernel ridge regression) with cross-validation in closed
form, without retraining.

    targets = Targets.of_classes(positions, count=2, coding="counts")
    fisher = problem("kfd", gram, targets)            # the one decomposition, O(l^3)
    for ridge in (1e-3, 1e-2, 1e-1):                  # then O(l^2) for each ridge
        print(ridge, error_rate(targets, fisher.leave_one_out(ridge)))

l samples, p basis vectors, o outputs.  All computations are in float64 on the host.  docs/closed-form.md derives every
formula, and says how many digits are correct if the ridge is small.

The predictions of each model are a projection of the targets y, attenuated by the ridge.  The residuals are A y with
A = I - H, where H is the hat matrix.  The formulas for removed samples and columns use blocks of three matrices: A, the
inverse P of the normal equations' matrix, and the matrix that couples A with P.  These blocks are computed as sums of
squares and products in an orthonormal basis, which avoids cancellation.  With a bias, the basis spans the vectors that
sum to zero; without a bias, the basis spans all vectors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from pykernel.bases.arguments import (
    checked_gram,
    checked_positive,
    checked_table,
    need_choice,
)
from pykernel.errors import UserError
from pykernel.training.coding import Targets

Column = Literal["deleted", "kept"]
Model = Literal["kfd", "ls-svm", "krr"]
MODELS: tuple[Model, ...] = get_args(Model)

ASYMMETRY = 1e-6
"""A negative diagonal element or eigenvalue is accepted if its magnitude is at most this fraction of the largest
magnitude, because the matrix may have been computed in float32.
"""
LEAST_RIDGE = 1e-60
"""Smallest ridge, relative to the largest eigenvalue to which it is added.  The limit keeps the square of this ratio
far from underflow.
"""

NO_COLUMNS = np.zeros(0, np.int64)
TOGETHER = 2**18
"""Several folds of equal size are computed together in arrays of at most this many elements."""

# ------------------------------------------------------------------------------------------------------ the problems


@dataclass(frozen=True)
class Solution:
    """f(x) = k(x, basis) alpha + bias.  alpha: (p, o); bias: (o,), zero for krr."""

    alpha: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True)
class _Weights:
    """The effect of a ridge on each direction.

    kept: for each direction, the fraction of the targets' component that remains in the residuals.  cos, sin: for KFD,
    the cosine and sine of the angle whose tangent is the direction's scale divided by sqrt(ridge).
    """

    kept: np.ndarray
    cos: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sin: np.ndarray = field(default_factory=lambda: np.zeros(0))


class _Problem(ABC):
    """Base class of the problems.  It computes residuals in an orthonormal basis, and blocks of A = I - H.

    directions: (l, m), orthonormal columns; with a bias, each column sums to zero.
    root: (l,), square roots of the targets' weights.  Weighted least squares is ordinary least squares with rows that are
    multiplied by ``root``.  All computations here use the multiplied rows, for which "sums to zero" means "orthogonal to
    root".
    complete: whether the directions span all vectors (with a bias: all vectors that sum to zero).  If ``complete`` is
    false, the part of the targets outside the span remains in the residuals for every ridge.
    """

    columns = NO_COLUMNS
    """(p,): for each basis vector, the sample whose removal also removes the vector's column, or -1 if there is none.
    The array is empty for ls-svm and krr.
    """

    def __init__(self, gram: Any, targets: Targets, bias: bool) -> None:
        gram = checked_table(gram, "the Gram matrix", "(samples, basis vectors)", least=1)
        targets.need_samples(len(gram), weighs=isinstance(self, RidgeProblem))
        self.targets = targets
        self.bias = bias
        self.samples, self.vectors = gram.shape
        self.root = np.sqrt(targets.each)
        self.unit = self.root / np.linalg.norm(self.root)
        self.mean = targets.mean(gram)
        self.scale, self.directions, self.complete = self._decompose(gram)

    @abstractmethod
    def _decompose(self, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the scale of each direction (m,), the directions, and ``complete``."""

    @abstractmethod
    def _weights(self, ridge: float) -> _Weights:
        """Return the effect of the ridge on the directions.  Raises UserError."""

    @abstractmethod
    def _alpha(self, ridge: float) -> np.ndarray:
        """Return the weights of the basis vectors, (p, o)."""

    def solve(self, ridge: float) -> Solution:
        """Return the model that is trained on all samples.  O(l p) for each output, after the decomposition.  Raises UserError."""
        alpha, y = self._alpha(checked_positive(ridge, "ridge")), self.targets.values
        return Solution(alpha, self.targets.mean(y) - self.mean @ alpha if self.bias else np.zeros(y.shape[1]))

    def leave_one_out(self, ridge: float, column: Column = "deleted", recode: bool = True) -> np.ndarray:
        """Predict each sample with the model that is trained without this sample, (l, o).  O(l p) for each output.

        column: "deleted": the sample's basis vector is removed as well, as in retraining; "kept": only the sample's row
        is removed (paper 004, section 2.1).  For ls-svm and krr, the choice makes no difference.
        recode: whether targets with the coding "counts" are computed again from the class counts of the remaining
        samples, as in retraining.
        Raises UserError.
        """
        return self._cross_validated(ridge, None, column, recode)

    def leave_fold_out(self, ridge: float, folds: Any, column: Column = "deleted", recode: bool = True) -> np.ndarray:
        """Predict each sample with the model that is trained without the sample's fold, (l, o).

        O(l^2 p / S) for S folds of equal size.  folds: (l,) integers from 0, the fold of each sample.  Folds may have
        different sizes, but no fold may contain all samples.  column, recode: as in leave_one_out().  Raises UserError.
        """
        return self._cross_validated(ridge, fold_numbers(folds, self.samples), column, recode)

    def _cross_validated(self, ridge: float, parts: np.ndarray | None, column: Column, recode: bool) -> np.ndarray:
        need_choice(column, "column", get_args(Column))
        weights = self._weights(checked_positive(ridge, "ridge"))
        recode = recode and self.targets.positions is not None and self.targets.coding == "counts"
        taught = self._taught if recode else self._values
        if parts is None:
            left = self._left_one_out(weights, taught, column == "deleted")
        else:
            left = np.empty_like(taught.y)
            wide = self.directions.shape[1]
            owned = self.columns if column == "deleted" else NO_COLUMNS
            for folds, bases in alike(parts, owned, lambda f, b: TOGETHER // ((f + b) * max(wide, f + b))):
                left[folds] = self._left_folds_out(weights, taught, folds, bases)
        predictions = taught.y - left / self.root[:, None]
        if not recode:
            return predictions
        outputs = self.targets.values.shape[1]
        one = np.ones((self.samples, 1)) if self.bias else predictions[:, outputs:]
        return self.targets.recoded(predictions[:, :outputs], one, parts)

    # ------------------------------------------------------------------------------------------------- residuals

    @cached_property
    def _values(self) -> _Taught:
        return self._in_directions(self.targets.values)

    @cached_property
    def _taught(self) -> _Taught:
        """Indicators of the classes as targets.

        Recoding also needs the predictions for a target that is 1 for all samples.  Models with a bias predict it
        exactly; for models without a bias, it is added to the targets here.
        """
        member = self.targets.member
        return self._in_directions(member if self.bias else np.hstack([member, np.ones((self.samples, 1))]))

    def _in_directions(self, y: np.ndarray) -> _Taught:
        centred = (y - self.targets.mean(y) if self.bias else y) * self.root[:, None]
        along = self.directions.T @ centred
        return _Taught(y, along, None if self.complete else centred - self.directions @ along)

    def _residuals(self, weights: _Weights, taught: _Taught, rows: Any = slice(None)) -> np.ndarray:
        """Return some rows of A y, (*rows, o)."""
        left = self.directions[rows] @ (weights.kept[:, None] * taught.along)
        return left if taught.rest is None else left + taught.rest[rows]

    @cached_property
    def _squares(self) -> np.ndarray:
        return self.directions**2

    @cached_property
    def _rest(self) -> np.ndarray | float:
        """The diagonal of the projection onto the vectors that are orthogonal to the directions and, with a bias, sum
        to zero: (l,), or 0.0 if the directions are complete.
        """
        full = 1 - 1 / self.samples if self.bias else 1.0
        return 0.0 if self.complete else np.maximum(full - self._squares.sum(axis=1), 0.0)

    def _kept_share(self, weights: _Weights) -> np.ndarray:
        """Return the diagonal 1 - h of A, (l,)."""
        return self._squares @ weights.kept + self._rest

    def _kept_blocks(self, weights: _Weights, folds: np.ndarray) -> np.ndarray:
        """Return the blocks of A, (n, f, f), for the folds (n, f)."""
        rows = self.directions[folds]
        if self.complete:
            return (rows * weights.kept) @ rows.mT
        blocks = np.eye(folds.shape[1]) - (rows * (1 - weights.kept)) @ rows.mT
        return blocks - 1 / self.samples if self.bias else blocks

    def _left_one_out(self, weights: _Weights, taught: _Taught, deleted: bool) -> np.ndarray:
        """Return the residual r / (1 - h) of each sample for the model trained without this sample, (l, o)."""
        return self._residuals(weights, taught) / self._kept_share(weights)[:, None]

    def _left_folds_out(self, weights: _Weights, taught: _Taught, folds: np.ndarray, bases: np.ndarray) -> np.ndarray:
        """Return the residuals A_FF^-1 r_F, (n, f, o), of the folds (n, f), each for the model trained without the
        fold.

        bases: (n, b), the basis vectors whose columns are removed together with each fold.
        """
        return solve_each(self._kept_blocks(weights, folds), self._residuals(weights, taught, folds))


@dataclass(frozen=True)
class _Taught:
    """y: targets, (l, o).  along: their components along the directions, (m, o).  rest: their part outside the span of
    the directions, (l, o), or None if the directions are complete.
    """

    y: np.ndarray
    along: np.ndarray
    rest: np.ndarray | None


class FisherProblem(_Problem):
    """Kernel Fisher discriminant: min |y - K alpha - b|^2 + ridge |alpha|^2.  Paper 004, equation 4.

    gram: (l, p), kernel values of samples and basis vectors.
    columns: (p,), the index of the sample that each basis vector was taken from, or -1 for other vectors.  If
    ``columns`` is None, p must equal l, and vector i is sample i.  Several basis vectors may come from the same sample;
    they are all removed with this sample.

    The centred Gram matrix is decomposed in O(l p min(l, p)).  The problem holds up to 5 l p numbers in memory.  Raises
    UserError.
    """

    def __init__(self, gram: Any, targets: Targets, columns: Any = None) -> None:
        super().__init__(gram, targets, bias=True)
        self.columns = self._columns(columns)

    def _columns(self, columns: Any) -> np.ndarray:
        if columns is None:
            if self.vectors != self.samples:
                raise UserError(
                    f"the Gram matrix is {self.samples} by {self.vectors}; give columns: for each basis vector, the "
                    "index of the sample that the vector was taken from, or -1 for other vectors"
                )
            return np.arange(self.samples)
        given = np.asarray(columns)
        if given.shape != (self.vectors,) or (given.size and given.dtype.kind not in "iu"):
            raise UserError(f"columns must be whole numbers, one for each of the {self.vectors} basis vectors")
        if given.min() < -1 or given.max() >= self.samples:
            raise UserError(
                f"columns must be positions of samples, 0 to {self.samples - 1}, or -1 for vectors that are not samples"
            )
        return given.astype(np.int64)

    def _decompose(self, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        # compute in coordinates of the vectors that sum to zero: rounding errors in the centred matrix itself would have
        # a component along the vector of ones
        u, s, vt = np.linalg.svd(_centred(gram, self.unit), full_matrices=self.vectors == self.samples)
        u = _spread(u, self.unit)
        if self.vectors == self.samples:
            # the last singular value is 0: with the last row of vt as coefficients, all centred predictions are zero
            u, s = np.hstack([u, np.zeros((self.samples, 1))]), np.append(s, 0.0)
        self.coefficients = np.ascontiguousarray(vt.T)
        """(p, m), with orthonormal columns, which span all vectors if p <= l."""
        return s, u, self.vectors >= self.samples - 1

    def _weights(self, ridge: float) -> _Weights:
        root = math.sqrt(ridge)
        if ridge < LEAST_RIDGE * self.scale[0] ** 2:
            raise UserError(
                f"ridge is {ridge:g}; this Gram matrix needs a ridge of at least {LEAST_RIDGE * self.scale[0] ** 2:.3g}"
            )
        length = np.hypot(self.scale, root)
        cos, sin = root / length, self.scale / length
        return _Weights(cos**2, cos, sin)

    def _alpha(self, ridge: float) -> np.ndarray:
        return self._scaled(self._weights(ridge), self._values) / math.sqrt(ridge)

    def _scaled(self, weights: _Weights, taught: _Taught, rows: Any = slice(None)) -> np.ndarray:
        """Return sqrt(ridge) alpha for the basis vectors ``rows``, (*rows, o)."""
        return self.coefficients[rows] @ ((weights.sin * weights.cos)[:, None] * taught.along)

    @cached_property
    def _uses(self) -> np.ndarray:
        """The number of basis vectors that come from each sample, (l,)."""
        return np.bincount(self.columns[self.columns >= 0], minlength=self.samples)

    @cached_property
    def _alone(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples from which exactly one basis vector was taken, (n,), and the vector of each of them, (n,)."""
        places = np.flatnonzero((self.columns >= 0) & (self._uses[self.columns] == 1))
        return self.columns[places], places

    @cached_property
    def _own_products(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For the samples of ``_alone``: products of directions and coefficients, the squares of the coefficients, and
        1 minus the sum of these squares.
        """
        rows, places = self._alone
        own = self.coefficients[places]
        squares = own**2
        rest = np.maximum(1 - squares.sum(axis=1), 0.0) if self.vectors > self.samples else np.zeros(len(places))
        return self.directions[rows] * own, squares, rest

    def _left_one_out(self, weights: _Weights, taught: _Taught, deleted: bool) -> np.ndarray:
        """Return residuals (l, o): r / (1 - h), or (d r + g a) / (d (1 - h) + g^2) if the column is removed as well.

        See docs/closed-form.md, formula (c).  For sample i, d = ridge P_ii and a = sqrt(ridge) alpha_i.  g is the
        element (i, i) of the matrix that couples A with P, multiplied by sqrt(ridge).
        """
        if not deleted:
            return super()._left_one_out(weights, taught, deleted)
        residuals, share = self._residuals(weights, taught), self._kept_share(weights)[:, None]
        left = residuals / share
        rows, places = self._alone
        if len(rows):
            products, squares, rest = self._own_products
            g = (products @ (weights.sin * weights.cos))[:, None]
            d = (squares @ weights.kept + rest)[:, None]
            alpha = self._scaled(weights, taught, places)
            left[rows] = (d * residuals[rows] + g * alpha) / (d * share[rows] + g**2)
        for sample in np.flatnonzero(self._uses > 1):
            own = np.flatnonzero(self.columns == sample)
            left[sample] = self._left_folds_out(weights, taught, np.array([[sample]]), own[None])[0, 0]
        return left

    def _left_folds_out(self, weights: _Weights, taught: _Taught, folds: np.ndarray, bases: np.ndarray) -> np.ndarray:
        """Return residuals A_FF^-1 r_F, (n, f, o).

        If basis vectors (n, b) are removed as well, the block A_FF is bordered by their blocks of two matrices: the
        matrix that couples A with P, multiplied by sqrt(ridge), and -ridge P.
        """
        if not bases.shape[1]:
            return super()._left_folds_out(weights, taught, folds, bases)
        f, own = folds.shape[1], self.coefficients[bases]
        bordered = np.empty((len(folds), f + bases.shape[1], f + bases.shape[1]))
        bordered[:, :f, :f] = self._kept_blocks(weights, folds)
        bordered[:, :f, f:] = (self.directions[folds] * (weights.sin * weights.cos)) @ own.mT
        bordered[:, f:, :f] = bordered[:, :f, f:].mT
        if self.vectors > self.samples:
            bordered[:, f:, f:] = (own * weights.sin**2) @ own.mT - np.eye(bases.shape[1])
        else:
            bordered[:, f:, f:] = -(own * weights.kept) @ own.mT
        residuals, alpha = self._residuals(weights, taught, folds), self._scaled(weights, taught, bases)
        return solve_each(bordered, np.concatenate([residuals, alpha], axis=1))[:, :f]


class RidgeProblem(_Problem):
    """Kernel ridge regression, (K + ridge I) alpha = y, or the LS-SVM, which adds a free bias and the constraint sum
    alpha = 0.

    gram: (l, l), symmetric.  bias: True for LS-SVM (Suykens and Vandewalle 1999), False for kernel ridge regression.
    If the targets have weights s, the system is (K + ridge diag(1 / s)) alpha = y, which is solved with the matrix
    S K S + ridge I, where S = diag(sqrt(s)).

    The Gram matrix, centred if there is a bias, is decomposed in O(l^3).  The problem holds about 2 l^2 numbers in
    memory.  Raises UserError.  solve() and the other methods also raise it if the Gram matrix plus the ridge is not
    positive definite.
    """

    def __init__(self, gram: Any, targets: Targets, bias: bool) -> None:
        gram = checked_gram(gram)
        super().__init__(gram, targets, bias)

    def _decompose(self, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        gram = self.root[:, None] * gram * self.root
        inner = _centred(_centred(gram, self.unit).T, self.unit) if self.bias else gram
        w, v = np.linalg.eigh((inner + inner.T) / 2)
        # the Gram matrix of a positive definite kernel has no negative eigenvalues, so small negative values are
        # treated as rounding errors
        w[(w < 0) & (w >= -len(gram) * np.finfo(np.float64).eps * np.abs(w).max())] = 0.0
        return w, _spread(v, self.unit) if self.bias else v, True

    def _weights(self, ridge: float) -> _Weights:
        least = max(-self.scale[0], LEAST_RIDGE * self.scale[-1])
        if ridge <= least:
            raise UserError(f"ridge is {ridge:g}; this Gram matrix needs a ridge above {least:.3g}")
        return _Weights(ridge / (self.scale + ridge))

    def _alpha(self, ridge: float) -> np.ndarray:
        return self.root[:, None] * self._residuals(self._weights(ridge), self._values) / ridge


def problem(model: Model, gram: Any, targets: Targets, columns: Any = None) -> FisherProblem | RidgeProblem:
    """Return the problem for the model "kfd", "ls-svm" or "krr".  columns: only for kfd.  Raises UserError."""
    need_choice(model, "model", MODELS)
    if model == "kfd":
        return FisherProblem(gram, targets, columns)
    if columns is not None:
        raise UserError(f"columns is given, but {model} has no basis vectors to choose; leave columns out")
    return RidgeProblem(gram, targets, bias=model == "ls-svm")


def fold_numbers(folds: Any, samples: int) -> np.ndarray:
    """Return the fold of each sample, (l,), with the folds renumbered consecutively from 0.  Raises UserError."""
    given = np.asarray(folds)
    if given.shape != (samples,) or given.dtype.kind not in "iu" or given.min() < 0:
        raise UserError(f"folds must be whole numbers of 0 or more, one for each of the {samples} samples")
    names, parts = np.unique(given, return_inverse=True)
    if len(names) < 2:
        raise UserError("all samples are in one fold; there must be two folds or more")
    return parts.reshape(-1)


# -------------------------------------------------------------------------------------------------------- arithmetic


def _centred(a: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Project the columns of ``a`` (l, n) onto the complement of ``unit``, and return their coordinates (l - 1, n) in
    an orthonormal basis.  O(l n).

    unit: (l,), a unit vector of positive numbers.  The basis is the last l - 1 columns of the Householder reflection that
    maps the unit vector to the first axis.
    """
    pivot = (unit @ a + a[0]) / (unit[0] + 1)
    return a[1:] - np.outer(unit[1:], pivot)


def _spread(a: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Invert _centred(): return the vectors (l, n) that have the coordinates ``a`` (l - 1, n).  O(l n)."""
    total = unit[1:] @ a
    return np.vstack([-total, a - np.outer(unit[1:], total / (unit[0] + 1))])


def alike(
    parts: np.ndarray, owned: np.ndarray, together: Callable[[int, int], int], most: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Group the folds that have the same number f of samples and the same number b of basis vectors.  For each group of n
    folds, yield the samples (n, f) and the basis vectors (n, b).

    parts: the fold of each sample; owned: for each basis vector, the sample with which it is removed, or -1.
    together: a function of f and b that returns the maximum number of folds in a group.  Folds of more than ``most`` samples are left
    out.
    """
    count = int(parts.max()) + 1
    columns = np.flatnonzero(owned >= 0)
    columns = columns[np.argsort(parts[owned[columns]], kind="stable")]
    samples = np.argsort(parts, kind="stable")
    f, b = np.bincount(parts, minlength=count), np.bincount(parts[owned[columns]], minlength=count)
    first, first_column = np.cumsum(f) - f, np.cumsum(b) - b
    shapes, shape_of = np.unique(np.stack([f, b], axis=1), axis=0, return_inverse=True)
    for k, (rows, wide) in enumerate(shapes.tolist()):
        if most is not None and rows > most:
            continue
        folds = np.flatnonzero(shape_of.reshape(-1) == k)
        step = max(1, together(rows, wide))
        for begin in range(0, len(folds), step):
            some = folds[begin : begin + step, None]
            yield samples[first[some] + np.arange(rows)], columns[first_column[some] + np.arange(wide)]


def solve_each(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a^-1 b for ``a`` (n, f, f) and ``b`` (n, f, o), or least-squares solutions if one of the matrices is exactly singular."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.stack([np.linalg.lstsq(*pair, rcond=None)[0] for pair in zip(a, b, strict=True)])
