"""Least squares, linear systems and neighbours on a basis of n vectors: O(l n^2) instead of O(l^3) with all samples.

    basis = select_basis(x, MercerKernel("gaussian", gamma=0.5), 200)
    machine = ReducedProblem("krr", basis, x, Targets.of_values(y))    # one pass over the rows
    left_out = machine.leave_one_out_path(ridges)                      # another, for all ridges
    model = machine.solve(ridges[best])
    model.predict(x_new)

    cg(gram_operator(kernel, x, ridge), y, M=preconditioner(basis, x, ridge))   # SciPy's conjugate gradients

l samples, n basis vectors, o outputs, D inputs.  z(x) = L^-1 k_S(x) with K_SS = L L' are the projection features: their
inner product is the Nystroem kernel k_S(x)' K_SS^-1 k_S(x').  Rows come from anything that ``as_rows`` takes.  They are
processed in blocks, so memory is O(l o + n^2 + a block).  All computations are in float64 on the host.

docs/reduced.md derives the formulas.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from pykernel.bases.basis import Basis, describe_kernel, relative
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.dialect import PRECISIONS
from pykernel.errors import MissingExtra, UserError
from pykernel.parallel import Workers, checked_jobs, one_thread
from pykernel.rows import Rows, as_rows
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.training import selection
from pykernel.training.closed_form import (
    LEAST_RIDGE,
    MODELS,
    Model,
    Solution,
    Targets,
    checked_numbers,
    checked_ridge,
    fold_numbers,
    solve_each,
)
from pykernel.training.trained import Machine, input_max_abs

try:
    from scipy.linalg import solve_triangular  # type: ignore[import-untyped]
    from scipy.sparse.linalg import LinearOperator  # type: ignore[import-untyped]
except ImportError as error:  # scikit-learn brings it
    raise MissingExtra("pykernel.training.reduced", "sklearn") from error

BLOCK = 2**20
"""Numbers of one block of features, 8 MB; a pass has a few of them."""
KEPT = 2**24
"""Up to so many numbers, 128 MB, features and Gram matrices are kept; beyond, they are computed anew in each pass."""
SMALL_FOLD = 256
"""Largest fold (or n, if that is larger) that is left out by blocks of the hat matrix.  Larger folds are left out by
merging factors."""
ROWS_FOR_SCALE = 2000
"""Number of rows from which the scale of widths and ridges is estimated."""
REACH_POLYNOMIAL = 10.0
"""Default limit of the inputs of a polynomial kernel on the device, as a multiple of the largest magnitude in
training.
"""
SLACK = 1e-6
"""Accuracy of bounds of distances in the feature space, relative to the largest norm: the root of the rounding
error.
"""


# --------------------------------------------------------------------------------------------------------- features


class FeatureRows:
    """Features of all rows, (l, n): z(x), or with ``columns`` kernel values k_S(x); in blocks.

    They are kept if they are at most ``keep`` numbers, else computed again in each pass: O(l n (D + n)), with
    ``columns`` O(l n D).
    """

    def __init__(self, basis: Basis, x: Any, columns: bool = False, keep: int = KEPT) -> None:
        self.basis, self.rows, self.columns = basis, as_rows(x), columns
        if not basis.takes(self.rows.dim):
            raise UserError(
                f"rows have {self.rows.dim} inputs and the basis vectors {basis.vectors.shape[1]}; they must have as many"
            )
        self.width = len(basis.vectors)
        self.size = max(self.width + 1, BLOCK // (self.width + self.rows.dim))
        self._keeps = len(self.rows) * self.width <= keep

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, x: np.ndarray) -> np.ndarray:
        """(k, D) -> (k, n)."""
        return self.basis.kernel.gram(x, self.basis.vectors) if self.columns else self.basis.features(x)

    @cached_property
    def _kept(self) -> np.ndarray:
        values = np.empty((len(self), self.width))
        for start, block in self.rows.blocks(self.size):
            values[start : start + len(block)] = self.of(block)
        return values

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """The position of a block's first row, and its features."""
        if self._keeps:
            for start in range(0, len(self), self.size):
                yield start, self._kept[start : start + self.size]
        else:
            for start, block in self.rows.blocks(self.size):
                yield start, self.of(block)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Features of the rows at these positions, (k, n)."""
        return self._kept[indices] if self._keeps else self.of(self.rows.take(indices))


# --------------------------------------------------------------------------------------------------- least squares


@dataclass(frozen=True)
class ReducedModel:
    """f(x) = z(x)'w + bias = k_S(x)'alpha + bias, alpha = L'^-1 w.  w: (n, o); bias: (o,), zero for krr."""

    model: Model
    basis: Basis
    w: np.ndarray
    bias: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Weights of kernel values, (n, o).  O(n^2 o)."""
        return solve_triangular(self.basis.factor, self.w, lower=True, trans=1, check_finite=False)

    def predict(self, x: Any) -> np.ndarray:
        """(l, o) values at rows, in blocks.  O(n (D + n)) each.  x: what ``as_rows`` takes.  Raises UserError."""
        features = FeatureRows(self.basis, x, keep=0)
        values = np.empty((len(features), self.w.shape[1]))
        for start, z in features:
            values[start : start + len(z)] = z @ self.w + self.bias
        return values


class ReducedProblem:
    """Kernel ridge regression, LS-SVM or the kernel Fisher discriminant in the span of a basis, with cross-validation
    in closed form.

    krr     min |y - Z w|^2 + ridge |w|^2: paper 002, equation 7, with ridge = m Lambda; the full model with the Nystroem
            kernel.  It minimises |y - K_lS alpha|^2 + ridge alpha' K_SS alpha.
    ls-svm  min |y - Z w - b|^2 + ridge |w|^2: the primal of the LS-SVM with the Nystroem kernel.
    kfd     min |y - K_lS alpha - b|^2 + ridge |alpha|^2 (paper 004, equation 4); Fisher's discriminant with the coding
            "counts".

    If the targets have weights, each squared error is multiplied by its weight.  The basis does not depend on the
    weights.

    x: l rows, what ``as_rows`` takes.  targets: l.  keep: features are kept in memory if they are at most this many
    numbers.

    One pass computes a triangular factor R of [1 F Y] (F: features) from blocks, by QR, without normal equations, O(l
    n^2). Its singular values serve every ridge.  Cross-validation takes one more pass for any number of ridges.  The
    basis is fixed: if a sample that is a basis vector is left out, the vector stays in the basis.

    Raises UserError.
    """

    def __init__(self, model: Model, basis: Basis, x: Any, targets: Targets, *, keep: int = KEPT) -> None:
        if model not in MODELS:
            raise UserError(f"model is {model!r}; it must be one of {', '.join(map(repr, MODELS))}")
        self.model, self.basis, self.targets = model, basis, targets
        self.features = FeatureRows(basis, x, columns=model == "kfd", keep=keep)
        self.bias = model != "krr"
        self.samples, self.outputs = len(self.features), targets.values.shape[1]
        if self.samples != len(targets):
            raise UserError(f"there are {self.samples:,} rows, but targets of {len(targets):,} samples")
        if self.samples < 2:
            raise UserError("there is one sample; leaving one out takes two or more")
        if model == "kfd" and targets.weights is not None:
            raise UserError("kfd has no weights of samples; take ls-svm or krr")
        self.root = None if targets.weights is None else np.sqrt(targets.weights)
        self._recodes = targets.positions is not None and targets.coding == "counts"
        self.taught = targets.values
        if self._recodes:
            # recoded targets are combinations of these; without a bias, the prediction for the target 1 is not 1
            one = [] if self.bias else [np.ones((self.samples, 1))]
            self.taught = np.hstack([targets.values, targets._member, *one])
        self.all = self._decomposed(self._triangles(None, 1)[0])

    @property
    def square(self) -> float:
        """The largest squared singular value that a ridge is added to."""
        return float(self.all.scale[0] ** 2)

    def solve(self, ridge: float) -> ReducedModel:
        """The model of all samples.  O(n^2 o) after the first pass.  Raises UserError."""
        w, bias = self.all.weights(self._checked([ridge])[0])
        w, bias = w[:, : self.outputs], bias[: self.outputs]
        if self.model == "kfd":
            w = self.basis.factor.T @ w
        return ReducedModel(self.model, self.basis, w, bias)

    def coefficients(self, ridge: float) -> Solution:
        """The model as weights of kernel values, alpha (n, o), and bias.

        For kfd these are computed directly, without L.
        """
        if self.model == "kfd":
            w, bias = self.all.weights(self._checked([ridge])[0])
            return Solution(w[:, : self.outputs], bias[: self.outputs])
        found = self.solve(ridge)
        return Solution(found.alpha, found.bias)

    def leave_one_out(self, ridge: float, recode: bool = True) -> np.ndarray:
        """(l, o): the prediction for each sample by the model trained without this sample.  One pass.  Raises
        UserError.

        recode: with coding "counts", the other samples' targets are coded with their own counts, as in retraining.
        """
        return cast(np.ndarray, self.leave_one_out_path([ridge], recode)[0])

    def leave_one_out_path(self, ridges: Sequence[float], recode: bool = True) -> np.ndarray:
        """(R, l, o): the same for R ridges, in one pass of O(l n (n + R o))."""
        values = self._checked(ridges)
        recode = recode and self._recodes
        cut = self._cut(recode)
        solved = np.stack([self.all.along_weights(ridge)[:, cut] for ridge in values])
        attenuated = 1 / (self.all.scale**2 + values[:, None])
        each = self.targets.each
        part = 1 - each / self.targets.total if self.bias else np.ones(self.samples)
        y = self.taught[:, cut]
        predictions = np.empty((len(values), *y.shape))
        for start, f in self.features:
            t = (f - self.all.mean) @ self.all.v
            rows = slice(start, start + len(f))
            own = part[rows, None]
            squares = each[rows, None] * t**2
            # 1 - h is a difference of numbers near 1; it is kept above the smallest value that a single row can cause
            least = own * values / (values + squares.sum(axis=1)[:, None] / own)
            share = np.maximum(own - squares @ attenuated.T, least).T
            right = y[rows] - self.all.middle[cut]
            for r in range(len(values)):
                predictions[r, rows] = y[rows] - (right - t @ solved[r]) / share[r][:, None]
        return self._recoded(predictions, None) if recode else predictions

    def leave_fold_out(self, ridge: float, folds: Any, recode: bool = True) -> np.ndarray:
        """(l, o): what each sample is predicted by the model trained without its fold.  Raises UserError.

        folds: (l,) whole numbers from 0, the fold of each sample; of any sizes, but not all samples in one.
        """
        return cast(np.ndarray, self.leave_fold_out_path([ridge], folds, recode)[0])

    def leave_fold_out_path(self, ridges: Sequence[float], folds: Any, recode: bool = True) -> np.ndarray:
        """(R, l, o): the same for R ridges.

        Folds larger than both 256 samples and n are left out by merging the triangular factors of the other folds,
        which is the same as retraining: two passes, O(l n^2 + S n^3), and O(S n^2) numbers for S such folds.  Smaller
        folds are left out by blocks of the hat matrix: O(l n f + l f^2) for each ridge and folds of f samples; rows are
        read in the order of the folds.
        """
        values = self._checked(ridges)
        parts = fold_numbers(folds, self.samples)
        recode = recode and self._recodes
        predictions = np.empty((len(values), self.samples, self.taught[:, self._cut(recode)].shape[1]))
        large = np.bincount(parts) > max(SMALL_FOLD, self.features.width)
        if large.any():
            self._leave_large_folds_out(values, parts, large, recode, predictions)
        if not large.all():
            self._leave_small_folds_out(values, parts, large, recode, predictions)
        return self._recoded(predictions, parts) if recode else predictions

    # ---- passes

    def _triangles(self, parts: np.ndarray | None, count: int) -> np.ndarray:
        """(count, c, c): triangular factors of [1 F Y], of the rows of each part.  A pass, O(l c^2)."""
        width = self.bias + self.features.width + self.taught.shape[1]
        found = np.zeros((count, width, width))
        for start, f in self.features:
            rows = slice(start, start + len(f))
            block = np.hstack([*([np.ones((len(f), 1))] if self.bias else []), f, self.taught[rows]])
            if self.root is not None:
                block *= self.root[rows, None]
            if parts is None:
                found[0] = merged(found[0], block)
                continue
            order = np.argsort(parts[rows], kind="stable")
            borders = np.searchsorted(parts[rows][order], np.arange(count + 1))
            for part in np.flatnonzero(np.diff(borders)):
                found[part] = merged(found[part], block[order[borders[part] : borders[part + 1]]])
        return found

    def _decomposed(self, triangle: np.ndarray) -> _Decomposed:
        return _Decomposed.of(triangle, self.bias, self.features.width)

    def _cut(self, recode: bool) -> slice:
        """The columns of the targets: the values themselves, or the indicators from which they are recoded."""
        return slice(self.outputs, None) if recode else slice(0, self.outputs)

    def _recoded(self, predictions: np.ndarray, parts: np.ndarray | None) -> np.ndarray:
        ones = np.ones((self.samples, 1))
        return np.stack(
            [
                self.targets._recoded(
                    values[:, : self.outputs], ones if self.bias else values[:, self.outputs :], parts
                )
                for values in predictions
            ]
        )

    def _checked(self, ridges: Sequence[float]) -> np.ndarray:
        values = np.array([checked_ridge(ridge) for ridge in ridges])
        if not values.size:
            raise UserError("there is no ridge; give at least one")
        if values.min() < LEAST_RIDGE * self.square:
            raise UserError(
                f"ridge is {values.min():g}; for these features it must be at least {LEAST_RIDGE * self.square:.3g}"
            )
        return values

    # ---- folds

    def _leave_large_folds_out(
        self, ridges: np.ndarray, parts: np.ndarray, large: np.ndarray, recode: bool, predictions: np.ndarray
    ) -> None:
        """Merge the factors of all other folds.

        Prefix and suffix merges are used, so that no factor must be subtracted.
        """
        # all small folds together are one more part
        place = np.where(large, np.cumsum(large) - 1, large.sum())
        count = int(large.sum())
        width = self.bias + self.features.width + self.taught.shape[1]
        needed, there = 16 * (count + 1) * width**2, selection.physical_memory()
        if there is not None and needed > there:
            raise UserError(
                f"leaving out {count:,} folds with {self.features.width:,} basis vectors takes {needed / 2**30:,.1f} GiB, and "
                f"this machine has {there / 2**30:,.1f}; take fewer folds or vectors"
            )
        triangles = self._triangles(place[parts], count + 1)
        after = triangles[count:]
        for triangle in triangles[count - 1 : 0 : -1]:
            after = np.concatenate([merged(after[0], triangle)[None], after])
        cut = self._cut(recode)
        weights, biases, before = [], [], np.zeros_like(triangles[0])
        for fold in range(count):
            rest = self._decomposed(merged(before, after[fold]))
            found = [rest.weights(ridge) for ridge in ridges]
            weights.append([w[:, cut] for w, _ in found])
            biases.append([b[cut] for _, b in found])
            before = merged(before, triangles[fold])
        for start, f in self.features:
            own = place[parts[start : start + len(f)]]
            for fold in np.unique(own[own < count]):
                rows = np.flatnonzero(own == fold)
                for r in range(len(ridges)):
                    predictions[r, start + rows] = f[rows] @ weights[fold][r] + biases[fold][r]

    def _leave_small_folds_out(
        self, ridges: np.ndarray, parts: np.ndarray, large: np.ndarray, recode: bool, predictions: np.ndarray
    ) -> None:
        """Solve with the folds' blocks of I - H; folds of equal sizes together."""
        cut, sizes = self._cut(recode), np.bincount(parts)
        order = np.argsort(parts, kind="stable")
        first = np.cumsum(sizes) - sizes
        for size in np.unique(sizes[~large]):
            alike = np.flatnonzero(~large & (sizes == size))
            step = max(1, self.features.size // int(size))
            for begin in range(0, len(alike), step):
                rows = order[first[alike[begin : begin + step], None] + np.arange(size)]
                t = (self.features.take(rows.ravel()) - self.all.mean) @ self.all.v
                y = self.taught[rows.ravel()][:, cut]
                t, y = t.reshape(*rows.shape, -1), y.reshape(*rows.shape, -1)
                root = np.ones((*rows.shape, 1)) if self.root is None else self.root[rows][..., None]
                for r, ridge in enumerate(ridges):
                    scaled = root * t
                    left = np.eye(size) - (scaled / (self.all.scale**2 + ridge)) @ scaled.mT
                    if self.bias:
                        left -= root @ root.mT / self.targets.total
                    residuals = y - self.all.middle[cut] - t @ self.all.along_weights(ridge)[:, cut]
                    predictions[r, rows] = y - solve_each(left, root * residuals) / root


@dataclass(frozen=True)
class _Decomposed:
    """The decomposition that serves every ridge: F - mean = U diag(scale) v' (scale (n,), v (n, n)), and along =
    U'Y.
    """

    mean: np.ndarray
    middle: np.ndarray
    scale: np.ndarray
    v: np.ndarray
    along: np.ndarray

    @classmethod
    def of(cls, triangle: np.ndarray, bias: bool, n: int) -> _Decomposed:
        """The decomposition from a triangular factor of [1 F Y], or of [F Y].

        With a bias, the factor without its first row is the factor of the centred columns.
        """
        inner = triangle[bias : bias + n]
        u, scale, vt = np.linalg.svd(inner[:, bias : bias + n])
        means = triangle[0] / triangle[0, 0] if bias else np.zeros(len(triangle))
        return cls(
            means[bias : bias + n], means[bias + n :], scale, np.ascontiguousarray(vt.T), u.T @ inner[:, bias + n :]
        )

    def along_weights(self, ridge: float) -> np.ndarray:
        """Weights of centred features that are turned by v, (n, T)."""
        return (self.scale / (self.scale**2 + ridge))[:, None] * self.along

    def weights(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """(n, T) and (T,)."""
        w = self.v @ self.along_weights(ridge)
        return w, self.middle - self.mean @ w


def merged(triangle: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The triangular factor, (c, c), of a factor's rows and more rows (k, c), by Householder QR.  O((c + k) c^2)."""
    return cast(np.ndarray, np.linalg.qr(np.vstack([triangle, rows]), mode="r"))


# ---------------------------------------------------------------------------------------------------- linear systems


class LowRankSystem:
    """A = C C' + Sigma with C (l, n) and a positive diagonal Sigma: solved by Woodbury's identity.

        A^-1 b = Sigma^-1 b - Sigma^-1 C (I + C' Sigma^-1 C)^-1 C' Sigma^-1 b

    c: an array (l, n), such as ``basis.features(x)``, or FeatureRows, for rows that are gone through in blocks.
    sigma: a number, or one for each row, (l,).

    Set-up is O(l n^2): (I + C' Sigma^-1 C) = R'R by QR of [Sigma^-1/2 C; I], not from products.  A solve is O(l n) for each
    column of b.  Paper 002, section 6.1 (which counts O(l n^2) for each).  Raises UserError.
    """

    def __init__(self, c: Any, sigma: Any) -> None:
        self.c = c if isinstance(c, FeatureRows) else _HeldRows(_table(c))
        try:
            self.sigma = np.broadcast_to(np.asarray(sigma, np.float64), (len(self.c),))
        except (TypeError, ValueError):
            raise UserError(f"sigma must be a number, or one for each of the {len(self.c):,} rows") from None
        if not (np.isfinite(self.sigma) & (self.sigma > 0)).all():
            wrong = self.sigma[~(np.isfinite(self.sigma) & (self.sigma > 0))][0]
            raise UserError(f"sigma holds {wrong:g}; all of it must be above 0 and finite")
        self.root = np.eye(self.c.width)
        for start, rows in self.c:
            self.root = merged(self.root, rows / np.sqrt(self.sigma[start : start + len(rows), None]))

    def __len__(self) -> int:
        return len(self.c)

    def product(self, b: Any) -> np.ndarray:
        """A b, in the shape of b: (l,) or (l, k).  O(l n k)."""
        b = self._right(b)
        return self._expanded(self._projected(b)) + self._scaled(b, self.sigma)

    def solve(self, b: Any, refinements: int = 1) -> np.ndarray:
        """A^-1 b, in the shape of b: (l,) or (l, k).  O(l n k), once more and a product for each refinement.

        One refinement makes the backward error that of an elimination of A, also where Sigma is small beside C C'.
        """
        b = self._right(b)
        x = self._once(b)
        for _ in range(refinements):
            x = x + self._once(b - self.product(x))
        return x

    def solve_constrained(self, b: Any, constraints: Any = None, right: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(x, m) of the KKT system [[A, E], [E', 0]] [x; m] = [b; right], by the Schur complement E' A^-1 E.

        b: (l,) or (l, k).  constraints: E, (l, q) of full rank; a column of ones if not given, with which x sums to
        ``right`` and m (1,) or (1, k) is an LS-SVM's bias.  Paper 002, section 6.1.  Raises UserError.
        """
        b = self._right(b)
        e = np.ones((len(self), 1)) if constraints is None else _table(constraints)
        if len(e) != len(self):
            raise UserError(f"constraints have {len(e):,} rows; they must have {len(self):,}")
        solved, free = self.solve(e), self.solve(b)
        schur = e.T @ solved
        try:
            m = np.linalg.solve(schur, e.T @ free - np.asarray(right, np.float64))
        except np.linalg.LinAlgError:
            raise UserError("constraints depend on each other; leave out those that others imply") from None
        return free - solved @ m, m

    def _once(self, b: np.ndarray) -> np.ndarray:
        scaled = self._scaled(b, 1 / self.sigma)
        inner = solve_triangular(self.root, self._projected(scaled), trans=1, check_finite=False)
        inner = solve_triangular(self.root, inner, check_finite=False)
        return scaled - self._scaled(self._expanded(inner), 1 / self.sigma)

    def _projected(self, b: np.ndarray) -> np.ndarray:
        """C'b."""
        found = np.zeros((self.c.width, *b.shape[1:]))
        for start, rows in self.c:
            found += rows.T @ b[start : start + len(rows)]
        return found

    def _expanded(self, a: np.ndarray) -> np.ndarray:
        """C a."""
        found = np.empty((len(self), *a.shape[1:]))
        for start, rows in self.c:
            found[start : start + len(rows)] = rows @ a
        return found

    def _scaled(self, b: np.ndarray, by: np.ndarray) -> np.ndarray:
        return b * (by if b.ndim == 1 else by[:, None])

    def _right(self, b: Any) -> np.ndarray:
        values = checked_numbers(b, "the right-hand side")
        if values.ndim not in (1, 2) or len(values) != len(self):
            raise UserError(
                f"the right-hand side has the shape {values.shape}; it must be ({len(self)},) or ({len(self)}, columns)"
            )
        return values


class _HeldRows:
    """An array (l, n) with the interface of FeatureRows: it is read in blocks."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.width = values, values.shape[1]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        size = max(self.width + 1, BLOCK // self.width)
        for start in range(0, len(self.values), size):
            yield start, self.values[start : start + size]


class SymmetricOperator(LinearOperator):  # type: ignore[misc]
    """A symmetric operator on vectors of l numbers that is given by a function of (l, k) arrays."""

    def __init__(self, count: int, function: Any) -> None:
        super().__init__(np.dtype(np.float64), (count, count))
        self.function = function

    def _matmat(self, b: np.ndarray) -> np.ndarray:
        return self.function(np.asarray(b, np.float64))

    def _matvec(self, b: np.ndarray) -> np.ndarray:
        return self.function(np.asarray(b, np.float64).reshape(len(b), -1)).reshape(b.shape)

    def _adjoint(self) -> SymmetricOperator:
        return self


def preconditioner(basis: Basis, x: Any, ridge: float, *, keep: int = KEPT) -> LinearOperator:
    """(Z Z' + ridge I)^-1 as a SciPy LinearOperator (l, l): what conjugate gradients on K + ridge I take as M.

    x: the l rows, what ``as_rows`` takes.  O(l n^2) here, O(l n) each time it is applied, symmetric and positive definite.
    With more than ``keep`` features, they are computed again each time: O(l n (D + n)), and memory O(l + n^2 + a block).
    Raises UserError.
    """
    system = LowRankSystem(FeatureRows(basis, x, keep=keep), checked_ridge(ridge))
    return SymmetricOperator(len(system), lambda b: system.solve(b, refinements=0))


def gram_operator(kernel: MercerKernel, x: Any, ridge: float = 0.0, *, keep: int = KEPT) -> LinearOperator:
    """K + ridge I as a SciPy LinearOperator (l, l), K_ij = k(x_i, x_j), that is never held whole.

    x: the l rows, what ``as_rows`` takes.  A product with k vectors is O(l^2 (D/2 + k)): each kernel value is computed once
    for both halves.  Memory is O(l k + a block).  K is kept if it is at most ``keep`` numbers.  Raises UserError.
    """
    rows = as_rows(x)
    if not np.isfinite(ridge) or ridge < 0:
        raise UserError(f"ridge is {ridge:g}; it must be 0 or a number above")
    size = max(1, math.isqrt(BLOCK))
    kept: list[np.ndarray] = []

    def product(b: np.ndarray) -> np.ndarray:
        if len(rows) ** 2 <= keep:
            if not kept:
                every = rows.take(np.arange(len(rows)))
                kept.append(kernel.gram(every, every))
            return kept[0] @ b + ridge * b
        found = ridge * b
        for i, a in rows.blocks(size):
            here = slice(i, i + len(a))
            found[here] += kernel.gram(a, a) @ b[here]
            for j in range(i + len(a), len(rows), size):
                there = slice(j, min(j + size, len(rows)))
                values = kernel.gram(a, rows.take(np.arange(there.start, there.stop)))
                found[here] += values @ b[there]
                found[there] += values.T @ b[here]
        return found

    return SymmetricOperator(len(rows), product)


def basis_of(vectors: Any, kernel: MercerKernel, epsilon: float = 1e-10, indices: Any = None) -> Basis:
    """The basis of given vectors (n, D), in their order.  A vector is left out if its residual delta is below epsilon.

    indices: (n,), the row of the data for each vector; -1 if not given.  ``trace`` is over the vectors themselves.
    O(n^3).
    Raises UserError.
    """
    vectors = _table(vectors)
    places = np.full(len(vectors), -1) if indices is None else np.asarray(indices, np.int64)
    gram = kernel.gram(vectors, vectors)
    diagonal = gram.diagonal()
    # columns of L by left-looking elimination: each pivot is the residual of its vector
    columns, trace = np.zeros_like(gram), [1.0]
    chosen: list[int] = []
    left, total = diagonal.copy(), float(diagonal.sum()) or 1.0
    for i in range(len(vectors)):
        if left[i] <= 0 or left[i] < epsilon * diagonal[i]:
            continue
        k = len(chosen)
        columns[:, k] = (gram[:, i] - columns[:, :k] @ columns[i, :k]) / math.sqrt(left[i])
        chosen.append(i)
        left = np.maximum(left - columns[:, k] ** 2, 0.0)
        left[chosen] = 0.0
        trace.append(min(trace[-1], float(left.sum()) / total))
    if not chosen:
        raise UserError("no vector of the basis has a kernel value k(v, v) above zero; give other vectors")
    factor = np.tril(columns[chosen, : len(chosen)])
    return Basis(
        kernel, vectors[chosen].copy(), places[chosen].astype(np.int64), factor, np.array(trace), False,
        gram.size, "given", "exhausted",
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------- neighbours


def distance_bounds(basis: Basis, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of |phi(a_i) - phi(b_j)|, (len(a), len(b)) each, from the basis alone.

    |phi(a) - phi(b)|^2 = |z(a) - z(b)|^2 + |r(a) - r(b)|^2, where the residuals r have the known norms
    sqrt(k(x, x) delta(x)): at least their difference and at most their sum apart.  Both are exact where one is 0.
    O((len(a) + len(b)) (n D + n^2) + len(a) len(b) n).
    """
    a, b = _extended(basis, _table(a)), _extended(basis, _table(b))
    squares = np.maximum(_squares(a[:, :-1], b[:, :-1]), 0.0)
    norms, others = a[:, -1:], b[:, -1]
    return np.sqrt(squares + (norms - others) ** 2), np.sqrt(squares + (norms + others) ** 2)


class KernelNeighbours:
    """Nearest neighbours in the feature space, where the distance is sqrt(k(a, a) + k(b, b) - 2 k(a, b)).

    basis, x: l rows, what ``as_rows`` takes; rows are read again when they are candidates.  algorithm, options: for
    scikit-learn's NearestNeighbors, which searches among the n + 1 numbers [z(x), |r(x)|].  The Euclidean distances of
    these numbers are lower bounds of the distances in the feature space.  For Gaussian, Laplacian and Matern kernels,
    the nearest neighbours are those in the input space.  So this class is for other kernels, or if there are more than
    n inputs.

    Memory O(l n).  Raises UserError.
    """

    def __init__(self, basis: Basis, x: Any, algorithm: str = "auto", **options: Any) -> None:
        from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]

        self.basis, self.rows = basis, as_rows(x)
        table = np.empty((len(self.rows), len(basis) + 1))
        for start, block in self.rows.blocks(max(1, BLOCK // (len(basis) + self.rows.dim))):
            table[start : start + len(block)] = _extended(basis, block)
        self.search = NearestNeighbors(algorithm=algorithm, **options).fit(table)
        self._norm = math.sqrt(float(np.einsum("ij,ij->i", table, table).max()))

    def kneighbors(self, queries: Any, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """(distances, indices) of the nearest rows, each (queries, count), ascending; exact.

        Candidates are fetched in the order of their lower bounds, twice as many each time, until the count-th of the
        kernel's own distances is no larger than the next lower bound.  The better the basis, the fewer are looked at.
        """
        queries = _table(queries)
        self._checked(count)
        distances, indices = np.empty((len(queries), count)), np.empty((len(queries), count), np.int64)
        extended, open_ = _extended(self.basis, queries), np.arange(len(queries))
        wanted = min(len(self.rows), 2 * count + 8)
        while len(open_):
            bounds, found = self.search.kneighbors(extended[open_], wanted)
            left = []
            for query, low, places in zip(open_, bounds, found, strict=True):
                exact = self._exact(queries[query : query + 1], places)
                order = np.lexsort([places, exact])[:count]
                distances[query], indices[query] = exact[order], places[order]
                if wanted < len(self.rows) and exact[order[-1]] > low[-1] - SLACK * self._norm:
                    left.append(query)
            open_, wanted = np.array(left, np.int64), min(len(self.rows), 2 * wanted)
        return distances, indices

    def bounded(self, queries: Any, count: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(lower, upper, indices) of the rows with the smallest lower bounds, each (queries, count).

        No kernel values between queries and rows are computed.
        """
        queries = _table(queries)
        self._checked(count)
        extended = _extended(self.basis, queries)
        low, indices = self.search.kneighbors(extended, count)
        # (|r| + |r'|)^2 = (|r| - |r'|)^2 + 4 |r| |r'|
        norms = self.search._fit_X[indices, -1]
        return low, np.sqrt(low**2 + 4 * extended[:, -1:] * norms), indices

    def _checked(self, count: int) -> None:
        if not 1 <= count <= len(self.rows):
            raise UserError(f"{count} neighbours are wanted of {len(self.rows):,} rows; give from 1 to as many")

    def _exact(self, query: np.ndarray, places: np.ndarray) -> np.ndarray:
        rows, kernel = self.rows.take(places), self.basis.kernel
        squares = kernel.diagonal(query)[0] + kernel.diagonal(rows) - 2 * kernel.gram(query, rows)[0]
        return np.sqrt(np.maximum(squares, 0.0))


def _extended(basis: Basis, x: np.ndarray) -> np.ndarray:
    """[z(x), |r(x)|], (rows, n + 1)."""
    z, diagonal = basis.features(x), basis.kernel.diagonal(x)
    return np.column_stack([z, np.sqrt(diagonal * relative(diagonal, z))])


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from scipy.spatial.distance import cdist  # type: ignore[import-untyped]

    return cdist(a, b, "sqeuclidean")


# ---------------------------------------------------------------------------------------------------------- selection


@dataclass(frozen=True)
class _Grid:
    """Data that all widths share.

    basis: vectors, or the number of vectors to choose with ``options`` of select_basis.
    """

    model: Model
    mercer: MercerKernel
    rows: Rows
    targets: Targets
    basis: np.ndarray | Basis | int
    options: Mapping[str, Any]
    folds: np.ndarray | None
    groups: np.ndarray
    recode: bool
    keep: int

    @property
    def kernel(self) -> selection.Function:
        return cast(selection.Function, self.mercer.function)

    def digest(self) -> str:
        """Digest of everything on which results depend; only a sample of the rows is digested."""
        basis = self.basis.vectors if isinstance(self.basis, Basis) else self.basis
        parts = [self.model, describe_kernel(self.mercer), sorted(self.options.items()), self.recode]
        found = hashlib.sha256(repr(parts).encode())
        some = self.rows.take(np.unique(np.linspace(0, len(self.rows) - 1, ROWS_FOR_SCALE).astype(np.int64)))
        weights = [] if self.targets.weights is None else [self.targets.weights]
        for values in (some, self.targets.values, self.targets.positions, basis, self.folds, self.groups, *weights):
            array = None if values is None else np.asarray(values)
            found.update(b"none" if array is None else repr((array.shape, array.dtype.str)).encode())
            found.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:32]


def select_reduced(
    model: Model,
    x: Any,
    targets: Targets,
    kernel: MercerKernel,
    widths: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    *,
    basis: Any,
    cv: Any = "deleted",
    by: selection.Criterion | None = None,
    recode: bool = True,
    jobs: int | str | None = None,
    results: Any = None,
    progress: bool = False,
    seed: int = 0,
    keep: int = KEPT,
    **options: Any,
) -> selection.Selection:
    """Cross-validate a reduced model at every width and ridge of a grid, and choose.  W O(l n^2) + W R O(l n o).

    As ``pykernel.training.selection.select``, which has the arguments that are not named here, for rows of any number.  kernel: its
    gamma is replaced by each width's.  basis: a number of vectors, chosen anew for each width by ``select_basis`` with
    ``options`` (method, candidates, tau, ...); positions of rows (n,); vectors (n, D); or a Basis, whose kernel's gamma is then the one
    width if ``widths`` is not given.  cv: "deleted" and "kept" are the same: the basis does not depend on the labels, and
    stays.  Raises UserError.
    """
    rows = as_rows(x)
    classes = targets.positions is not None
    if len(rows) != len(targets):
        raise UserError(f"there are {len(rows):,} rows, but targets of {len(targets):,} samples")
    if isinstance(cv, bool) or not (cv in ("deleted", "kept") or isinstance(cv, (int, np.integer))):
        raise UserError(f'cv is {cv!r}; it must be "deleted", "kept", or a number of folds')
    if by is not None and by not in (("error", "press") if classes else ("press",)):
        choice = '"error" or "press"' if classes else '"press", as the targets are not classes'
        raise UserError(f"by is {by!r}; it must be {choice}")
    some = rows.take(np.unique(np.linspace(0, len(rows) - 1, ROWS_FOR_SCALE).astype(np.int64)))
    if widths is None and (isinstance(basis, Basis) or kernel.function in ("linear", "custom", "precomputed")):
        widths = (width_of(kernel),)
    every_width = selection.grid_of(widths, "widths", selection.default_widths, kernel.function, some)
    middle = kernel_with(kernel, every_width[len(every_width) // 2])
    every_ridge = selection.grid_of(ridges, "ridges", default_ridges, model, middle, some, targets.total)
    folds = selection.stratified_folds(targets, int(cv), seed) if not isinstance(cv, str) else None
    few = folds is not None and int(folds.max()) < selection.MOST_FOLDS
    groups = folds if few else selection.stratified_folds(targets, min(selection.GROUPS, len(rows)), seed)
    if not isinstance(basis, Basis):
        if np.ndim(basis) == 0:
            basis = int(basis)
        elif np.ndim(basis) != 1 or np.asarray(basis).dtype.kind not in "iu":
            basis = _table(basis)
    if not isinstance(basis, int) and options:
        raise UserError(f"{next(iter(options))} is for choosing vectors, which are given; leave it out")
    shared = _Grid(
        model, kernel, rows, targets, basis, {"seed": seed, **options}, folds, cast(np.ndarray, groups), recode, keep
    )
    at_once = checked_jobs(jobs) or 1
    tasks = [{"width": width, "ridges": list(every_ridge)} for width in every_width]
    title = "selecting" if progress else None
    with Workers(work, shared, jobs=at_once, results=results, context=shared.digest(), title=title) as crew:
        found = crew.run(tasks)
    return selection.best_cell(cast(Any, shared), cv, by, every_width, every_ridge, found)


def work(task: Mapping[str, Any], shared: _Grid) -> dict[str, Any]:
    """The task of one width, for Workers: for each ridge the same results as ``pykernel.training.selection.work``."""
    scores: list[dict[str, Any]] = []
    impossible = np.full(shared.targets.values.shape, np.inf)
    reason = None
    with one_thread:
        try:
            basis = chosen_basis(shared.rows, kernel_with(shared.mercer, task["width"]), shared.basis, shared.options)
            machine = ReducedProblem(shared.model, basis, shared.rows, shared.targets, keep=shared.keep)
            # the number of ridges at a time is limited, so that predictions take no more memory than features
            step = max(1, shared.keep // max(1, machine.taught.size))
            for begin in range(0, len(task["ridges"]), step):
                ridges = task["ridges"][begin : begin + step]
                if shared.folds is None:
                    left_out = machine.leave_one_out_path(ridges, shared.recode)
                else:
                    left_out = machine.leave_fold_out_path(ridges, shared.folds, shared.recode)
                scores += [selection.scores_of(predictions, cast(Any, shared)) for predictions in left_out]
        except UserError as error:
            reason = str(error)
            scores += [selection.scores_of(impossible, cast(Any, shared))] * (len(task["ridges"]) - len(scores))
    return {key: [score[key] for score in scores] for key in scores[0]} | {"reason": reason}


def chosen_basis(x: Any, kernel: MercerKernel, basis: Any, options: Mapping[str, Any]) -> Basis:
    """The basis for a kernel.

    basis: a number: this many vectors are chosen; positions of rows; vectors; or a Basis.  If a Basis has another
    kernel, only its vectors are used.
    """
    if isinstance(basis, Basis):
        return basis if basis.kernel == kernel else basis_of(basis.vectors, kernel, indices=basis.indices)
    if isinstance(basis, int):
        return select_basis(x, kernel, basis, **options)
    if basis.ndim == 1:
        return basis_of(as_rows(x).take(basis), kernel, indices=basis)
    return basis_of(basis, kernel)


def kernel_with(kernel: MercerKernel, width: float) -> MercerKernel:
    """The kernel of another width: sigma (gaussian) or gamma."""
    if width == width_of(kernel):  # also where going to sigma and back rounds
        return kernel
    return replace(kernel, gamma=0.5 / width / width if kernel.function == "gaussian" else width)


def width_of(kernel: MercerKernel) -> float:
    """sigma (gaussian) or gamma."""
    return math.sqrt(0.5 / kernel.gamma) if kernel.function == "gaussian" else kernel.gamma


def default_ridges(model: Model, kernel: MercerKernel, x: np.ndarray, count: int) -> tuple[float, ...]:
    """As ``pykernel.training.selection.default_ridges``, for ``count`` rows like those of x."""
    trace = count * (float(np.abs(kernel.diagonal(x)).mean()) or 1.0)
    bound, decades = (trace**2, 12) if model == "kfd" else (trace, 8)
    return selection.three_digits(bound * 10.0 ** (k / 2) for k in range(-2 * decades, 1))


# ------------------------------------------------------------------------------------------------------ to the device


def nystrom_content(
    basis: Basis,
    name: str,
    precision: str,
    largest: np.ndarray,
    *,
    max_abs: float | None = None,
    columns: tuple[str, ...] | None = None,
    label: Mapping[str, Any] | None = None,
    weights: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    center: np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> dict[str, Any]:
    """What a spec of rule "nystrom" is made of: nested dictionaries, as in the TOML file.

    largest: (D,), the largest magnitude of each input in training.  max_abs: the limit of inputs; None: a million times
    the largest (polynomial: ten times), or less if that could overflow.  weights: (n, o), weights of z; None: z itself
    is predicted.  bias: (o,); 0 if not given.  center, scale: (D,); inputs are first converted to (x - center) * scale.
    Raises UserError.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}")
    need_distinct(basis, precision)
    kernel, n = basis.kernel, len(basis)
    if kernel.function == "custom" and max_abs is None:
        raise UserError(
            "max_abs must be given with a custom kernel: max_value bounds the kernel only for inputs within max_abs"
        )
    machine = Machine(
        "a basis", kernel.function, basis.vectors, np.eye(n) if weights is None else weights,
        np.zeros(n if weights is None else weights.shape[1]) if bias is None else bias, kernel.gamma, kernel.coef0, kernel.degree, center=center, scale=scale,
    )  # fmt: skip
    inputs: dict[str, Any] = {"dim": basis.vectors.shape[1]} if columns is None else {"columns": list(columns)}
    reach = largest if scale is None else largest / np.abs(scale)
    reach = float((reach if center is None else reach + np.abs(center)).max())
    if max_abs is None and kernel.function == "polynomial":
        max_abs = REACH_POLYNOMIAL * (reach or 1.0)
    inputs["max_abs"] = max_abs if kernel.function == "custom" else input_max_abs(machine, precision, reach, max_abs)
    inputs |= {key: values.tolist() for key, values in (("center", center), ("scale", scale)) if values is not None}
    expansion: dict[str, Any] = {"vectors": basis.vectors.tolist()}
    if weights is not None:
        expansion |= {"weights": weights.tolist(), "bias": machine.bias.tolist()}
    return {
        "name": name,
        "precision": precision,
        "input": inputs,
        "label": {"outputs": machine.weights.shape[1]} if label is None else dict(label),
        "kernel": kernel.section(),
        "learning": {"rule": "nystrom"},
        "expansion": expansion,
    }


def need_distinct(basis: Basis, precision: str) -> None:
    """Raises UserError if a vector adds less to the span of those before it than the precision resolves."""
    least = LEAST_ALD_THRESHOLD[precision]
    delta = basis.factor.diagonal() ** 2 / basis.kernel.diagonal(basis.vectors)
    worst = int(delta.argmin())
    if delta[worst] <= least:
        raise UserError(
            f"only {delta[worst]:.2g} of basis vector {worst} is new beside the vectors before it, and {precision} needs more "
            f"than {least:g}; choose with epsilon={1.01 * least:g}, or fewer vectors"
            + (", or take precision='float64'" if precision == "float32" else "")
        )


# ---------------------------------------------------------------------------------------------------------- arguments


def _table(values: Any) -> np.ndarray:
    table = checked_numbers(values, "rows")
    if table.ndim != 2 or not table.size:
        raise UserError(f"rows have the shape {table.shape}; it must be (rows, columns), neither of them 0")
    return table
