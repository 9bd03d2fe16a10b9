"""Least squares on a basis of n vectors, in O(l n^2); with all samples as vectors, the cost would be O(l^3).

    basis = select_basis(x, MercerKernel("gaussian", gamma=0.5), 200)
    machine = ReducedProblem("krr", basis, x, Targets.of_values(y))    # one pass over the rows
    left_out = machine.leave_one_out_path(ridges)                      # a second pass, for all ridges
    model = machine.solve(ridges[best])
    model.predict(x_new)

There are l samples, n basis vectors, o outputs and D inputs.  k_S(x) contains the kernel values of x and the set S of
basis vectors, and K_SS = L L' is the Gram matrix of S.  The projection features are z(x) = L^-1 k_S(x).  Their inner
product is the Nystroem kernel k_S(x)' K_SS^-1 k_S(x').  Rows may be anything that ``as_rows`` accepts.  They are
processed in blocks, which takes O(l o + n^2) memory in addition to a block and to features that are kept.  All
computations are in float64 on the host.

docs/reduced.md derives the formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_positive, checked_table, need_choice, need_machine
from pykernel.bases.basis import Basis
from pykernel.bases.candidates import Residual
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.dialect import PRECISIONS
from pykernel.errors import UserError
from pykernel.parallel import checked_jobs
from pykernel.rows import Rows, as_rows, each_row
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.training import selection
from pykernel.training.closed_form import (
    LEAST_RIDGE,
    MODELS,
    NO_COLUMNS,
    Model,
    Solution,
    alike,
    fold_numbers,
    solve_each,
)
from pykernel.training.coding import Targets
from pykernel.training.machine import Machine
from pykernel.training.trained import input_max_abs, lists

BLOCK = 2**20
"""Approximate maximum number of elements in a block of features; they need 8 MB.  A pass keeps a few blocks in memory."""
KEPT = 2**24
"""Features of at most this many numbers (128 MB) are kept in memory.  Larger ones are computed again in each pass."""
SMALL_FOLD = 256
"""Folds of at most max(SMALL_FOLD, n) samples are left out with blocks of the hat matrix, and larger folds by merging factors."""
ROWS_FOR_SCALE = 2000
"""Number of rows from which the scale of widths and ridges is estimated."""
REACH_POLYNOMIAL = 10.0
"""Default limit of the inputs of a polynomial kernel on the device, as a multiple of the largest magnitude in
training.
"""


# --------------------------------------------------------------------------------------------------------- features


class FeatureRows:
    """Features of all rows in blocks, (l, n): z(x), or kernel values k_S(x) if ``columns`` is true.

    Features are kept in memory if they have at most ``keep`` elements.  Otherwise they are computed again in each pass,
    in O(l n (D + n)), or in O(l n D) if ``columns`` is true.
    """

    def __init__(self, basis: Basis, x: Any, columns: bool = False, keep: int = KEPT) -> None:
        self.basis, self.rows, self.columns = basis, as_rows(x), columns
        if self.rows.dim != basis.vectors.shape[1]:
            raise UserError(
                f"rows have {self.rows.dim} inputs, and basis vectors have {basis.vectors.shape[1]}; "
                "the two numbers must be equal"
            )
        self.width = len(basis.vectors)
        self.size = max(self.width + 1, BLOCK // (self.width + self.rows.dim))
        self._keeps = len(self.rows) * self.width <= keep

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, x: np.ndarray) -> np.ndarray:
        """Return the features (k, n) of the rows x (k, D)."""
        return self.basis.kernel.gram(x, self.basis.vectors) if self.columns else self.basis.features(x)

    @cached_property
    def _kept(self) -> np.ndarray:
        return each_row(self.rows, self.size, self.of, self.width)

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield, for each block, the position of its first row and its features."""
        if self._keeps:
            for start in range(0, len(self), self.size):
                yield start, self._kept[start : start + self.size]
        else:
            for start, block in self.rows.blocks(self.size):
                yield start, self.of(block)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Return the features of the rows at the positions ``indices``, (k, n)."""
        return self._kept[indices] if self._keeps else self.of(self.rows.take(indices))


# --------------------------------------------------------------------------------------------------- least squares


@dataclass(frozen=True)
class ReducedModel:
    """f(x) = z(x)'w + bias = k_S(x)'alpha + bias, alpha = L'^-1 w.  w: (n, o); bias: (o,), zero for krr."""

    model: Model | Literal["svm"]
    basis: Basis
    w: np.ndarray
    bias: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Weights of kernel values, (n, o).  O(n^2 o)."""
        return solve_triangular(self.basis.factor, self.w, lower=True, trans=1, check_finite=False)

    def predict(self, x: Any) -> np.ndarray:
        """Return the values of the functions at the rows of x, (l, o).

        O(n (D + n)) for each row.  x: anything that ``as_rows`` accepts.  Raises UserError.
        """
        features = FeatureRows(self.basis, x)
        return each_row(
            features.rows, features.size, lambda block: features.of(block) @ self.w + self.bias, len(self.bias)
        )


class ReducedProblem:
    """Kernel ridge regression, LS-SVM or the kernel Fisher discriminant in the span of a basis, with cross-validation
    in closed form.

    krr     min |y - Z w|^2 + ridge |w|^2, paper 002, equation 7, with ridge = m Lambda in the paper's symbols.  This is
            kernel ridge regression with the Nystroem kernel.  It minimises |y - K_lS alpha|^2 + ridge alpha' K_SS
            alpha.
    ls-svm  min |y - Z w - b|^2 + ridge |w|^2: the primal of the LS-SVM with the Nystroem kernel.
    kfd     min |y - K_lS alpha - b|^2 + ridge |alpha|^2 (paper 004, equation 4).  With the coding "counts", this is
            Fisher's discriminant.

    If the targets have weights, each squared error is multiplied by its weight.  The basis does not depend on the
    weights.

    x: l rows, in any form that ``as_rows`` accepts.  targets: the targets of the l rows.  keep: features are kept in
    memory if they have at most this many elements.

    One pass over the rows computes a triangular factor R of [1 F Y] in O(l n^2), where F are the features and Y the
    targets.  R is computed by QR of blocks, without normal equations.  One singular value decomposition of R's block of
    F is used for every ridge.
    Leave-one-out takes one more pass for any number of ridges, and ``leave_fold_out_path`` says what folds take.  The
    basis is fixed: a basis vector stays even if the sample from which it comes is left out.

    Raises UserError.
    """

    def __init__(self, model: Model, basis: Basis, x: Any, targets: Targets, *, keep: int = KEPT) -> None:
        need_choice(model, "model", MODELS)
        self.model, self.basis, self.targets = model, basis, targets
        self.features = FeatureRows(basis, x, columns=model == "kfd", keep=keep)
        self.bias = model != "krr"
        self.samples, self.outputs = len(self.features), targets.values.shape[1]
        targets.need_samples(self.samples, weighs=model != "kfd")
        self.root = np.sqrt(targets.each)
        self._recodes = targets.positions is not None and targets.coding == "counts"
        self.taught = targets.values
        if self._recodes:
            # recoded targets are combinations of these columns; without a bias, the column of ones is needed, because the
            # model does not predict 1 exactly
            one = np.ones((self.samples, int(not self.bias)))
            self.taught = np.hstack([targets.values, targets.member, one])
        self.all = self._decomposed(self._triangles(np.zeros(self.samples, np.int64), 1)[0])

    @property
    def square(self) -> float:
        """The largest squared singular value to which a ridge is added."""
        return float(self.all.scale[0] ** 2)

    def solve(self, ridge: float) -> ReducedModel:
        """Return the model that is trained on all samples.  O(n^2 o) after the first pass.  Raises UserError."""
        w, bias = self._solved(ridge)
        if self.model == "kfd":
            w = self.basis.factor.T @ w
        return ReducedModel(self.model, self.basis, w, bias)

    def coefficients(self, ridge: float) -> Solution:
        """Return the model as weights of kernel values, alpha (n, o), and bias.

        For kfd, the weights are computed directly, without L.
        """
        if self.model == "kfd":
            return Solution(*self._solved(ridge))
        found = self.solve(ridge)
        return Solution(found.alpha, found.bias)

    def _solved(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of the features (n, o), and the bias (o,)."""
        w, bias = self.all.weights(self._checked([ridge])[0])
        return w[:, : self.outputs], bias[: self.outputs]

    def leave_one_out(self, ridge: float) -> np.ndarray:
        """Predict each sample with the model trained without this sample, (l, o).  One pass.  Raises UserError.

        Targets with the coding "counts" are computed again from the class counts of the remaining samples, as in
        retraining.
        """
        return cast(np.ndarray, self.leave_one_out_path([ridge])[0])

    def leave_one_out_path(self, ridges: Sequence[float]) -> np.ndarray:
        """Return ``leave_one_out`` for R ridges, (R, l, o), in one pass of O(l n (n + R o))."""
        values, cut = self._checked(ridges), self._cut
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
            # 1 - h is a difference of numbers near 1, so rounding errors may bring it below its smallest possible value
            least = own * values / (values + squares.sum(axis=1)[:, None] / own)
            share = np.maximum(own - squares @ attenuated.T, least).T
            right = y[rows] - self.all.middle[cut]
            for r in range(len(values)):
                predictions[r, rows] = y[rows] - (right - t @ solved[r]) / share[r][:, None]
        return self._recoded(predictions, None) if self._recodes else predictions

    def leave_fold_out(self, ridge: float, folds: Any) -> np.ndarray:
        """Predict each sample with the model trained without the sample's fold, (l, o).  Raises UserError.

        folds: (l,) integers from 0, the fold of each sample.  Folds may have different sizes, but no fold may contain all
        samples.
        """
        return cast(np.ndarray, self.leave_fold_out_path([ridge], folds)[0])

    def leave_fold_out_path(self, ridges: Sequence[float], folds: Any) -> np.ndarray:
        """Return ``leave_fold_out`` for R ridges, (R, l, o).

        Folds of more than max(256, n) samples are left out by merging the triangular factors of the other folds, from
        which the model is computed again.  S such folds take two passes, O(l n^2 + S n^3) time, and O(S n^2) memory.
        Smaller folds, of f samples each, are left out with blocks of the hat matrix, in O(l n f + l f^2) for each
        ridge.  For them, the rows are read in the order of the folds.
        """
        values = self._checked(ridges)
        parts = fold_numbers(folds, self.samples)
        predictions = np.empty((len(values), self.samples, self.taught[:, self._cut].shape[1]))
        large = np.bincount(parts) > max(SMALL_FOLD, self.features.width)
        if large.any():
            self._leave_large_folds_out(values, parts, large, predictions)
        if not large.all():
            self._leave_small_folds_out(values, parts, predictions)
        return self._recoded(predictions, parts) if self._recodes else predictions

    # ---- passes

    def _triangles(self, parts: np.ndarray, count: int) -> np.ndarray:
        """Return triangular factors of [1 F Y], one for the rows of each part, (count, c, c).  One pass, O(l c^2)."""
        width = self.bias + self.features.width + self.taught.shape[1]
        found = np.zeros((count, width, width))
        for start, f in self.features:
            rows = slice(start, start + len(f))
            block = np.hstack([np.ones((len(f), int(self.bias))), f, self.taught[rows]]) * self.root[rows, None]
            order = np.argsort(parts[rows], kind="stable")
            borders = np.searchsorted(parts[rows][order], np.arange(count + 1))
            for part in np.flatnonzero(np.diff(borders)):
                found[part] = merged(found[part], block[order[borders[part] : borders[part + 1]]])
        return found

    def _decomposed(self, triangle: np.ndarray) -> _Decomposed:
        return _Decomposed.of(triangle, self.bias, self.features.width)

    @property
    def _cut(self) -> slice:
        """The columns of Y that are predicted in cross-validation: the targets' values, or the columns from which
        recoded targets are combined.
        """
        return slice(self.outputs, None) if self._recodes else slice(0, self.outputs)

    def _recoded(self, predictions: np.ndarray, parts: np.ndarray | None) -> np.ndarray:
        if self.bias:  # with a bias, the target 1 is predicted exactly
            predictions = np.concatenate([predictions, np.ones((*predictions.shape[:2], 1))], axis=2)
        member, one = predictions[..., : self.outputs], predictions[..., self.outputs :]
        return np.stack([self.targets.recoded(*each, parts) for each in zip(member, one, strict=True)])

    def _checked(self, ridges: Sequence[float]) -> np.ndarray:
        values = np.array([checked_positive(ridge, "ridge") for ridge in ridges])
        if not values.size:
            raise UserError("there is no ridge; give at least one")
        if values.min() < LEAST_RIDGE * self.square:
            raise UserError(
                f"ridge is {values.min():g}; these features need a ridge of at least {LEAST_RIDGE * self.square:.3g}"
            )
        return values

    # ---- folds

    def _leave_large_folds_out(
        self, ridges: np.ndarray, parts: np.ndarray, large: np.ndarray, predictions: np.ndarray
    ) -> None:
        """Predict each large fold with the merged factors of all other folds.

        Prefix and suffix merges are used, so that no factor has to be subtracted.
        """
        # all small folds together form one more part
        place = np.where(large, np.cumsum(large) - 1, large.sum())
        count = int(large.sum())
        width = self.bias + self.features.width + self.taught.shape[1]
        need_machine(
            16 * (count + 1) * width**2,
            f"leaving out {count:,} folds with {self.features.width:,} basis vectors",
            "take fewer folds or vectors",
        )
        triangles = self._triangles(place[parts], count + 1)
        after = triangles[count:]
        for triangle in triangles[count - 1 : 0 : -1]:
            after = np.concatenate([merged(after[0], triangle)[None], after])
        cut = self._cut
        weights, biases, before = [], [], np.zeros_like(triangles[0])
        for fold in range(count):
            rest = self._decomposed(merged(before, after[fold]))
            solutions = [rest.weights(ridge) for ridge in ridges]
            weights.append([w[:, cut] for w, _ in solutions])
            biases.append([b[cut] for _, b in solutions])
            before = merged(before, triangles[fold])
        for start, f in self.features:
            own = place[parts[start : start + len(f)]]
            for fold in np.unique(own[own < count]):
                rows = np.flatnonzero(own == fold)
                for r in range(len(ridges)):
                    predictions[r, start + rows] = f[rows] @ weights[fold][r] + biases[fold][r]

    def _leave_small_folds_out(self, ridges: np.ndarray, parts: np.ndarray, predictions: np.ndarray) -> None:
        """Predict each small fold by solving with its block of I - H.  Folds of equal size are computed together."""
        cut, most = self._cut, max(SMALL_FOLD, self.features.width)
        for rows, _ in alike(parts, NO_COLUMNS, lambda f, b: self.features.size // f, most):
            t = (self.features.take(rows.ravel()) - self.all.mean) @ self.all.v
            y = self.taught[rows.ravel()][:, cut]
            t, y = t.reshape(*rows.shape, -1), y.reshape(*rows.shape, -1)
            root = self.root[rows][..., None]
            for r, ridge in enumerate(ridges):
                scaled = root * t
                left = np.eye(rows.shape[1]) - (scaled / (self.all.scale**2 + ridge)) @ scaled.mT
                if self.bias:
                    left -= root @ root.mT / self.targets.total
                residuals = y - self.all.middle[cut] - t @ self.all.along_weights(ridge)[:, cut]
                predictions[r, rows] = y - solve_each(left, root * residuals) / root


@dataclass(frozen=True)
class _Decomposed:
    """The decomposition that is used for every ridge: F - mean = U diag(scale) v', with scale (n,) and v (n, n).

    mean, middle: the means of the columns of F and of Y; zeros without a bias.  along: U'Y.
    """

    mean: np.ndarray
    middle: np.ndarray
    scale: np.ndarray
    v: np.ndarray
    along: np.ndarray

    @classmethod
    def of(cls, triangle: np.ndarray, bias: bool, n: int) -> _Decomposed:
        """Compute the decomposition from a triangular factor of [1 F Y], or of [F Y].

        With a bias, the factor without its first row is the factor of the centred columns.
        """
        inner = triangle[bias : bias + n]
        u, scale, vt = np.linalg.svd(inner[:, bias : bias + n])
        means = triangle[0] / triangle[0, 0] if bias else np.zeros(len(triangle))
        return cls(
            means[bias : bias + n], means[bias + n :], scale, np.ascontiguousarray(vt.T), u.T @ inner[:, bias + n :]
        )

    def along_weights(self, ridge: float) -> np.ndarray:
        """Return weights of the centred features after the rotation by v, (n, T), for the T columns of Y."""
        return (self.scale / (self.scale**2 + ridge))[:, None] * self.along

    def weights(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """Return weights of the features (n, T), and the bias (T,)."""
        w = self.v @ self.along_weights(ridge)
        return w, self.middle - self.mean @ w


def merged(triangle: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Update a triangular factor (c, c) with more rows (k, c) by Householder QR.  O((c + k) c^2)."""
    return cast(np.ndarray, np.linalg.qr(np.vstack([triangle, rows]), mode="r"))


# ---------------------------------------------------------------------------------------------------------- selection


@dataclass(frozen=True)
class _Reduced(selection.Grid):
    """Models on a basis.

    basis: vectors; positions of rows; a Basis; or the number of vectors that select_basis chooses with ``options``.
    """

    rows: Rows
    basis: np.ndarray | Basis | int
    options: Mapping[str, Any]
    keep: int

    def left_out(self, width: float, ridges: Sequence[float]) -> Iterator[np.ndarray | UserError]:
        done = 0
        try:
            basis = chosen_basis(self.rows, self.mercer.with_width(width), self.basis, self.options)
            machine = ReducedProblem(self.model, basis, self.rows, self.targets, keep=self.keep)
            # limit the number of ridges at a time so that predictions take no more memory than features
            step = max(1, self.keep // max(1, machine.taught.size))
            for begin in range(0, len(ridges), step):
                some = ridges[begin : begin + step]
                if self.folds is None:
                    yield from machine.leave_one_out_path(some)
                else:
                    yield from machine.leave_fold_out_path(some, self.folds)
                done += len(some)
        except UserError as error:
            yield from [error] * (len(ridges) - done)


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
    jobs: int | str | None = None,
    progress: bool = False,
    seed: int = 0,
    keep: int = KEPT,
    **options: Any,
) -> selection.Selection:
    """Cross-validate a reduced model for every pair of a width and a ridge, and choose a pair.  W O(l n^2) + W R O(l n o).

    This function is like ``pykernel.training.selection.select``, but accepts any number of rows.  Arguments
    that are not listed here are described there.  kernel: a kernel whose gamma is replaced for each width.  basis: a
    number of vectors, chosen anew for each width by ``select_basis`` with ``options`` (method, candidates, tau, ...);
    positions of rows (n,); vectors (n, D); or a Basis.  If a Basis is given without ``widths``, the width of ``kernel``
    is the only width.  cv: "deleted" and "kept" give the same result, because basis vectors are never removed.
    Raises UserError.
    """
    rows = as_rows(x)
    selection.need_settings(model, len(rows), targets, cv, by)
    some = rows.take(np.unique(np.linspace(0, len(rows) - 1, ROWS_FOR_SCALE).astype(np.int64)))  # evenly spaced rows
    if widths is None and (isinstance(basis, Basis) or kernel.function in ("linear", "custom")):
        widths = (kernel.width,)
    function = cast(selection.Function, kernel.function)
    every_width = selection.grid_of(widths, "widths", lambda: selection.default_widths(function, some))
    middle = kernel.with_width(every_width[len(every_width) // 2])
    every_ridge = selection.grid_of(
        ridges, "ridges", lambda: selection.default_ridges(model, middle, some, targets.total)
    )
    if not isinstance(basis, Basis):
        if np.ndim(basis) == 0:
            basis = int(basis)
        elif np.ndim(basis) != 1 or np.asarray(basis).dtype.kind not in "iu":
            basis = checked_table(basis, "the basis")
    if not isinstance(basis, int) and options:
        raise UserError(
            f"{next(iter(options))} is for choosing vectors, but the vectors are given; leave this option out"
        )
    folds, groups = selection.folds_and_groups(targets, cv, seed)
    grid = _Reduced(model, kernel, targets, folds, groups, rows, basis, {"seed": seed, **options}, keep)
    return selection.searched(grid, cv, by, every_width, every_ridge, checked_jobs(jobs) or 1, progress)


def chosen_basis(x: Any, kernel: MercerKernel, basis: Any, options: Mapping[str, Any]) -> Basis:
    """Return the basis for a kernel.

    basis: the number of vectors to choose, positions of rows, vectors, or a Basis.  If a Basis has another kernel,
    only its vectors are used.
    """
    if isinstance(basis, Basis):
        return basis if basis.kernel == kernel else basis_of(basis.vectors, kernel, indices=basis.indices)
    if isinstance(basis, int):
        return select_basis(x, kernel, basis, **options)
    if basis.ndim == 1:
        return basis_of(as_rows(x).take(basis), kernel, indices=basis)
    return basis_of(basis, kernel)


def basis_of(vectors: Any, kernel: MercerKernel, epsilon: float = 1e-10, indices: Any = None) -> Basis:
    """Return a Basis of ``vectors`` (n, D), in the same order.  A vector v is left out if its residual is below epsilon
    times k(v, v).

    indices: (n,), the position of each vector in the data; all are -1 if not given.  ``trace`` is computed from
    ``vectors``, not from data.  O(n^3).
    Raises UserError.
    """
    vectors = checked_table(vectors, "vectors")
    places = np.full(len(vectors), -1) if indices is None else np.asarray(indices, np.int64)
    gram = kernel.gram(vectors, vectors)
    residual, chosen, trace = Residual(gram.diagonal().copy(), len(vectors), epsilon), [], [1.0]
    for i in range(len(vectors)):
        if residual.live[i]:
            residual.take_in(i, residual.column(gram[i], i))
            chosen.append(i)
            trace.append(min(trace[-1], residual.trace))
    if not chosen:
        raise UserError("no vector of the basis has a kernel value k(v, v) above zero; give other vectors")
    factor = np.tril(residual.projected[: len(chosen), chosen].T)
    return Basis(
        kernel, vectors[chosen], places[chosen], factor, np.array(trace), False, gram.size, "given", "exhausted"
    )


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
    """Return the content of a spec with the rule "nystrom": nested dictionaries, as in the TOML file.

    largest: (D,), the largest magnitude of each input in training, after the conversion to (x - center) * scale.
    max_abs: the limit of the inputs; None: a million times the largest input (ten times for a polynomial), or less if
    kernel values could overflow.  weights: (n, o), weights of z; None: the model predicts z itself.  bias: (o,); 0 if
    not given.  center, scale: (D,); inputs are first converted to (x - center) * scale.
    Raises UserError.
    """
    need_choice(precision, "precision", PRECISIONS)
    need_distinct(basis, precision)
    kernel, n = basis.kernel, len(basis)
    if kernel.function == "custom" and max_abs is None:
        raise UserError(
            "max_abs must be given with a custom kernel: max_value bounds the kernel only for inputs within max_abs"
        )
    turned = np.eye(n) if weights is None else weights
    machine = Machine(
        "a basis", kernel.function, basis.vectors, turned, np.zeros(turned.shape[1]) if bias is None else bias,
        kernel.gamma, kernel.coef0, kernel.degree, center=center, scale=scale,
    )  # fmt: skip
    reach = float((largest / np.abs(machine.scales) + np.abs(machine.centers)).max())
    if max_abs is None and kernel.function == "polynomial":
        max_abs = REACH_POLYNOMIAL * (reach or 1.0)
    inputs: dict[str, Any] = {"dim": machine.dim} if columns is None else {"columns": list(columns)}
    inputs["max_abs"] = max_abs if kernel.function == "custom" else input_max_abs(machine, precision, reach, max_abs)
    answers = {} if weights is None else lists(weights=weights, bias=machine.bias)
    return {
        "name": name,
        "precision": precision,
        "input": inputs | lists(center=center, scale=scale),
        "label": {"outputs": machine.weights.shape[1]} if label is None else dict(label),
        "kernel": kernel.section(),
        "learning": {"rule": "nystrom"},
        "expansion": lists(vectors=basis.vectors) | answers,
    }


def need_distinct(basis: Basis, precision: str) -> None:
    """Raise UserError if a vector is so close to the span of the vectors before it that the precision cannot resolve
    the difference.
    """
    least = LEAST_ALD_THRESHOLD[precision]
    delta = basis.factor.diagonal() ** 2 / basis.kernel.diagonal(basis.vectors)
    worst = int(delta.argmin())
    if delta[worst] <= least:
        raise UserError(
            f"only {delta[worst]:.2g} of basis vector {worst} is outside the span of the vectors before it, "
            f"and {precision} needs more than {least:g}; choose the basis with epsilon={1.01 * least:g}, or fewer vectors"
            + (", or take precision='float64'" if precision == "float32" else "")
        )
