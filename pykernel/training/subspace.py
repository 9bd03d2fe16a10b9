"""A subspace of few dimensions in a kernel's feature space, on the host, in float64.

    subspace = HostSubspace.fit(x, MercerKernel("gaussian", gamma=0.5), rank=10, shrinkage=0.1)
    z = subspace.features(x)                   # (N, 10): z_i'z_j approximates k(x_i, x_j)
    subspace.score(x_new)                      # the part of each new sample that the subspace does not know
    subspace.approximation(x).frobenius        # |K - Khat|_F / N
    subspace.to_spec("map")                    # z as a kernel expansion, for the device's flash

Symbols as in ``pykernel.training.bkfe``, but L = Phi A combines the images of m samples (batch: m = N).  With
v(x) = A'k(X, x) and G = L'L = A'KA, a sample's coordinates are q(x) = (G + lambda I)^-1 v(x), its features
z(x) = G^1/2 q(x), and e2(x) = k(x, x) - v'q - lambda |q|^2 is what is left of it.  docs/subspaces.md derives the rest.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count, checked_numbers, checked_positive, checked_table, need_kernel
from pykernel.bases.basis import Basis, Path, block_rows, read_npz, share, stored_kernel, write_npz
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.rows import Rows, as_rows, each_row
from pykernel.spec.model import Spec
from pykernel.training.bkfe import DENSE, Method, above_rounding, bkfe, directions, inverse_of, lanczos, symmetric
from pykernel.training.low_rank import gram_operator, symmetric_operator
from pykernel.training.rounding import notes
from pykernel.training.trained import Distance, Machine, to_spec

WHOLE = 4096
"""Most rows for which a Gram matrix is kept (128 MB); with more rows, it is computed in blocks for each product."""
BLOCK = 2048
"""Rows and columns of a block of the Gram matrix, 32 MB, for the Frobenius norm."""
PIVOT = 2.0**-40
"""A pivot of G below this part of its diagonal element makes a row of zeros, as on the device in float64."""
SAMPLED, SIDE = 32, 256
"""With more than ``exact`` rows, a Frobenius norm is estimated: the number of blocks, and the rows and columns of a
block.
"""


@dataclass(frozen=True, eq=False)
class HostSubspace:
    """L = Phi A: r directions in a kernel's feature space as combinations of m vectors' images, in float64.

    kernel: MercerKernel.  vectors: X, (m, D).  a: A, (m, r).  shrinkage: the objective's lambda > 0.  ``fit`` computes
    A from data; the device's rule ``okfeb`` computes A from a stream.  In the methods, x is what ``as_rows`` takes,
    (rows, D); it is processed in blocks, O(m (D + r) + r^2) for a row.  Raises UserError.
    """

    kernel: MercerKernel
    vectors: np.ndarray
    a: np.ndarray
    shrinkage: float

    def __post_init__(self) -> None:
        need_kernel(self.kernel)
        vectors = checked_table(self.vectors, "vectors", "(m, inputs), m from 1", least=1)
        a = checked_table(self.a, "a", f"({len(vectors)}, r), a row for each vector", (len(vectors), None), least=1)
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "shrinkage", checked_positive(self.shrinkage, "shrinkage"))

    def __repr__(self) -> str:
        size = f"{len(self.vectors)} vectors of {self.vectors.shape[1]} inputs"
        return f"<HostSubspace: rank {self.kept} of {self.rank} on {size}, shrinkage {self.shrinkage:g}>"

    @classmethod
    def fit(
        cls,
        x: Any,
        kernel: MercerKernel,
        rank: int,
        shrinkage: float,
        *,
        method: Method = "closed",
        basis: Basis | int | None = None,
        seed: int = 0,
        iterations: int = 200,
        tolerance: float = 1e-10,
        **options: Any,
    ) -> HostSubspace:
        """The minimiser of BKFE's objective over the rows of x: paper 001, Algorithm 1 or its closed form.

        x : (N, D), what ``as_rows`` takes
        rank, shrinkage, method, seed, iterations, tolerance
            As of ``bkfe``.
        basis : None, int or Basis
            None: every row is an expansion vector, m = N.  Up to 4,096 rows the Gram matrix is kept.  With more rows,
            it is computed again for each of about 10 r products, O(N^2 (D + r)): minutes for 30,000 rows.
            int: L stays in the span of this number of vectors, which ``select_basis`` chooses with ``options`` (its
            method is given as ``selector``).  Basis: L stays in the span of this basis.  The result is the optimum
            within the span, from the singular values of the features; only for "closed".  One pass over the rows, O(N n
            (D + n)), and only n
            vectors to keep: for large N, and for a device.
        """
        rank, seed = checked_count(rank, "rank", 1), checked_count(seed, "seed", 0)
        shrinkage = checked_positive(shrinkage, "shrinkage")
        need_kernel(kernel)
        rows = as_rows(x)
        if not len(rows):
            raise UserError("x has no rows; a subspace needs at least one")
        if basis is None:
            if options:
                raise UserError(f"{', '.join(options)}: options for a basis, but there is none; leave them out")
            every = rows.take(np.arange(len(rows)))
            gram: Any = kernel.gram(every, every) if len(rows) <= WHOLE else gram_operator(kernel, every, keep=0)
            trace = None if len(rows) <= WHOLE else float(kernel.self_values(every).sum())
            found = bkfe(
                gram, rank, shrinkage, method=method, seed=seed, iterations=iterations, tolerance=tolerance, trace=trace
            )
            return cls(kernel, every, found.a, shrinkage)
        if method != "closed":
            raise UserError('a subspace on a basis is found in closed form; method must be "closed"')
        if not isinstance(basis, Basis):
            selector = options.pop("selector", "auto")
            basis = select_basis(rows, kernel, checked_count(basis, "basis", 1), selector, seed=seed, **options)
        elif options:
            raise UserError(f"{', '.join(options)}: options for choosing a basis, but one is given; leave them out")
        elif basis.kernel != kernel:
            raise UserError("the basis was chosen with another kernel; give that one, or another basis")
        sigma, turned = directions(basis, rows, rank)
        inner = turned.T * np.sqrt(np.maximum(sigma - shrinkage, 0.0))
        a = np.zeros((len(basis), rank))
        a[:, : len(sigma)] = solve_triangular(basis.factor, inner, lower=True, trans=1, check_finite=False)
        return cls(kernel, basis.vectors, a, shrinkage)

    # ---- what it is made of

    @property
    def rank(self) -> int:
        """r, columns of A."""
        return self.a.shape[1]

    @cached_property
    def gram(self) -> np.ndarray:
        """G = L'L = A'KA, (r, r).  O(m^2 (D + r)) once."""
        found = np.zeros((self.rank, self.rank))
        size = block_rows(len(self.vectors), self.vectors.shape[1])
        for i in range(0, len(self.vectors), size):
            here = slice(i, i + size)
            found += self.a[here].T @ (self.kernel.gram(self.vectors[here], self.vectors) @ self.a)
        return symmetric(found)

    @cached_property
    def _spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = np.linalg.eigh(self.gram)
        return np.maximum(values, 0.0), vectors

    @property
    def eigenvalues(self) -> np.ndarray:
        """Of G, descending, (r,); at the batch optimum (sigma_i - lambda)_+, sigma_i^2 the eigenvalues of K."""
        return self._spectrum[0][::-1].copy()

    @property
    def kept(self) -> int:
        """Number of directions that do not vanish, at most r.

        Other features are zero for every x, or can be made zero.
        """
        return int(above_rounding(self._spectrum[0]).sum())

    def _root(self, triangular: bool) -> np.ndarray:
        """R with R'R = G, (r, r): the symmetric root, or upper triangular."""
        if triangular:
            return _triangular_root(self.gram)
        values, vectors = self._spectrum
        return np.asarray((vectors * np.sqrt(np.where(above_rounding(values), values, 0.0))) @ vectors.T)

    # ---- samples

    def coordinates(self, x: Any) -> np.ndarray:
        """q(x) = (G + lambda I)^-1 A'k(X, x), (rows, r): paper 001, equation 7."""
        values, vectors = self._spectrum
        return self._turned(x) * inverse_of(values, self.shrinkage) @ vectors.T

    def features(self, x: Any, triangular: bool = False) -> np.ndarray:
        """z(x) = R q(x), (rows, r), with R'R = G: z(x)'z(y) = khat(x, y) approximates k(x, y) from below.

        R is the symmetric root of G; ``triangular``: the upper triangular one, which the device has.
        """
        return np.asarray(self.coordinates(x) @ self._root(triangular).T)

    def residual(self, x: Any) -> np.ndarray:
        """e2(x) = |phi(x) - L q(x)|^2 = k(x, x) - v'q - lambda |q|^2, (rows,), from 0 to k(x, x)."""
        return self._measured(x)[0]

    def score(self, x: Any) -> np.ndarray:
        """Novelty: e2(x) / k(x, x), (rows,), from 0 to 1: the part of phi(x) that is not known; 0 where k(x, x) = 0."""
        left, diagonal, _ = self._measured(x)
        return share(left, diagonal)

    def sorted_features(self, x: Any) -> np.ndarray:
        """z(x) in coordinates in which G is diagonal, (rows, r), the largest direction first.

        Of the batch optimum of rank s < r, they are the first s.
        """
        values = self._spectrum[0]
        scale = np.sqrt(np.where(above_rounding(values), values, 0.0)) * inverse_of(values, self.shrinkage)
        return np.asarray((self._turned(x) * scale)[:, ::-1])

    def residuals(self, x: Any) -> np.ndarray:
        """(r,): the mean of ``score`` over the rows, with the first 1, 2, …, r directions, the largest first."""
        rows, values = self._rows(x), self._spectrum[0]
        inverse = inverse_of(values, self.shrinkage)
        known = np.square(self._turned(rows)) * (inverse + self.shrinkage * inverse**2)
        diagonal = each_row(rows, block_rows(1, rows.dim), self.kernel.self_values)
        left = diagonal[:, None] - np.cumsum(known[:, ::-1], axis=1)
        return np.asarray(share(np.clip(left, 0.0, diagonal[:, None]), diagonal[:, None]).mean(axis=0))

    def excess(self, x: Any, beta: Any) -> float:
        """A bound for a support vector machine that was trained on the features: beta' (K - Khat) beta / 2.

        With all kernel values in place of the features, the least of |f|^2 / 2 + C sum max(0, 1 - y f) is lower by at most
        this; and its f differs from the machine's by at most sqrt(2 excess k(x, x)) at any x, intercepts apart.  With the
        weights of the full machine in place of the machine's, it is lower by at least this.

        x : (s, D)
            The support vectors, as they were before ``features``.
        beta : (s,) or (1, s)
            Their weights y_i a_i: ``dual_coef_`` of scikit-learn's linear SVC or SVR.

        O(s^2 (D + r)).
        """
        rows, weights = self._rows(x), checked_numbers(beta, "beta")
        if weights.shape not in ((len(rows),), (1, len(rows))):
            raise UserError(
                f"beta has the shape {weights.shape}; it must be ({len(rows)},), a weight for each row of x"
            )
        weights, size, full = weights.ravel(), block_rows(len(rows), rows.dim), 0.0
        every = rows.take(np.arange(len(rows)))
        for start, block in rows.blocks(size):
            full += float(weights[start : start + len(block)] @ (self.kernel.gram(block, every) @ weights))
        return max(0.0, full - float(np.square(weights @ self.features(rows)).sum())) / 2

    def _turned(self, x: Any) -> np.ndarray:
        """v(x) in the eigenvectors of G, (rows, r)."""
        rows, weights = self._rows(x), self.a @ self._spectrum[1]
        size = block_rows(len(self.vectors), rows.dim)
        return each_row(rows, size, lambda block: self.kernel.gram(block, self.vectors) @ weights, self.rank)

    def _measured(self, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """e2, k(x, x) and |q|^2, (rows,) each."""
        rows = self._rows(x)
        v, diagonal = self._turned(rows), each_row(rows, block_rows(1, rows.dim), self.kernel.self_values)
        q = v * inverse_of(self._spectrum[0], self.shrinkage)
        squares = np.einsum("ij,ij->i", q, q)
        known = np.einsum("ij,ij->i", v, q) + self.shrinkage * squares
        return np.clip(diagonal - known, 0.0, diagonal), diagonal, squares

    def _rows(self, x: Any) -> Rows:
        rows = as_rows(x)
        if rows.dim != self.vectors.shape[1]:
            raise UserError(f"rows of x have {rows.dim} numbers and those of the subspace {self.vectors.shape[1]}")
        return rows

    # ---- the kernel matrix

    def approximation(
        self, x: Any, *, exact: int = 2**15, spectral: bool | None = None, seed: int = 0
    ) -> Approximation:
        """How near Khat = ZZ' comes to the rows' Gram matrix K, with bounds that need no K.

        exact : int
            Up to this number of rows the Frobenius norm is computed in blocks, O(N^2 (D + r)).  With more rows it is
            estimated: the diagonal is summed exactly, and 32 random blocks of 256 x 256 other elements give an unbiased
            mean square.  ``frobenius_error`` is the standard error, from the spread of the blocks.
        spectral : bool, optional
            Whether |K - Khat|_2 is computed: by Lanczos, from below, to 9 digits, with about 30 products with K.  None:
            it is computed up to 4,096 rows, for which the matrix is kept.
        """
        rows = self._rows(x)
        count = len(rows)
        if not count:
            raise UserError("x has no rows; an approximation needs at least one")
        left, diagonal, squares = self._measured(rows)
        z = self.features(rows)
        rest = np.clip(diagonal - np.einsum("ij,ij->i", z, z), 0.0, diagonal)
        scale = float(diagonal.max()) or 1.0  # so that no square overflows
        if count <= exact:
            frobenius, error = self._frobenius(rows, z, scale), 0.0
        else:
            frobenius, error = self._sampled_frobenius(rows, z, rest, scale, seed)
        top = None
        if spectral or (spectral is None and count <= min(WHOLE, exact)):
            top = self._spectral(rows, z, seed) / count if rest.any() else 0.0
        return Approximation(
            rows=count,
            shrinkage=self.shrinkage,
            residual=float(left.mean()),
            coordinates=float(squares.mean()),
            diagonal=float(diagonal.mean()),
            trace=float(rest.mean()),
            frobenius=frobenius,
            frobenius_error=error,
            spectral=top,
        )

    def _frobenius(self, rows: Rows, z: np.ndarray, scale: float) -> float:
        size, total = BLOCK, 0.0
        for i, block in rows.blocks(size):
            for j in range(i, len(rows), size):
                there = rows.take(np.arange(j, min(j + size, len(rows))))
                part = self.kernel.gram(block, there) - z[i : i + len(block)] @ z[j : j + len(there)].T
                total += (1 if i == j else 2) * _square(part, scale)
        return math.sqrt(total) * scale / len(rows)

    def _sampled_frobenius(
        self, rows: Rows, z: np.ndarray, rest: np.ndarray, scale: float, seed: int
    ) -> tuple[float, float]:
        random, count = np.random.default_rng(seed), len(rows)
        side, means = min(SIDE, count // 2), []
        for _ in range(SAMPLED):
            drawn = random.choice(count, 2 * side, replace=False)
            here, there = np.sort(drawn[:side]), np.sort(drawn[side:])
            part = self.kernel.gram(rows.take(here), rows.take(there)) - z[here] @ z[there].T
            means.append(_square(part, scale) / part.size)
        beside = (1 - 1 / count) * np.array(means)
        square = _square(rest, scale) / count**2 + float(beside.mean())
        spread = float(beside.std(ddof=1)) / math.sqrt(SAMPLED)
        root = math.sqrt(square)
        return root * scale, spread / (2 * root) * scale if root > 0 else 0.0

    def _spectral(self, rows: Rows, z: np.ndarray, seed: int) -> float:
        count = len(rows)
        if count <= WHOLE:
            every = rows.take(np.arange(count))
            operator = self.kernel.gram(every, every) - z @ z.T
        else:
            gram = gram_operator(self.kernel, rows, keep=0)
            operator = symmetric_operator(count, lambda b: gram @ b - z @ (z.T @ b))
        found = None if count <= DENSE // 4 else lanczos(operator, 1, seed, 1e-9)
        if found is not None:
            return max(0.0, float(found[0][0]))
        if count > WHOLE:
            raise UserError("Lanczos does not find |K - Khat|_2 of these rows; give spectral=False")
        return max(0.0, float(eigh(operator, eigvals_only=True, subset_by_index=[count - 1] * 2)[0]))

    # ---- to a kernel expansion

    def expansion(self, triangular: bool = False) -> np.ndarray:
        """W, (m, r), with z(x) = W'k(X, x): A (G + lambda I)^-1 R'.  O(m r^2)."""
        values, vectors = self._spectrum
        inner = (vectors * inverse_of(values, self.shrinkage)) @ vectors.T
        return np.asarray(self.a @ (inner @ self._root(triangular).T))

    def collapse(self, model: Any, triangular: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Convert a linear model of z to a function of kernel values: f(x) = weights'k(X, x) + bias, (m, o) and (o,).

        model : fitted estimator, or a pair (coef (o, r) or (r,), intercept)
            Trained on ``features(x, triangular)``.  An estimator needs an affine ``decision_function``, or else an
            affine ``predict``; it may be the end of a pipeline of scalers.  Or it has ``cluster_centers_``: then the
            largest f(x) belongs to the nearest centre.  Two classes have one function, which is positive for the second
            class.
        """
        theta, bias = affine_of_model(model, self.rank)
        return self.expansion(triangular) @ theta, bias

    def to_spec(
        self,
        name: str,
        model: Any = None,
        *,
        precision: str = "float32",
        max_abs: float | None = None,
        inputs: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        triangular: bool = False,
        distance: Distance = "auto",
    ) -> Spec:
        """A frozen spec.  Without ``model``, predict writes z(x): m (D + r) numbers of flash.  With a linear model of
        z, predict writes the model's functions: m (D + o) numbers.

        model : None, or as in ``collapse``
            Classifiers and clusterings give classes: ``NAME_classify`` writes the index.  The probability of a binary
            LogisticRegression is converted as well.
        precision, max_abs, inputs, classes, distance
            As for ``from_sklearn``.

        Raises UserError if no spec is possible, for more than 64 outputs, or if all directions vanish.  Warns if the
        weights are so large (because of little shrinkage) that float32 is too coarse for their sum.
        """
        if not self.kept:
            raise UserError(f"{name}: no direction of the subspace is left, all features are zero; lower the shrinkage")
        names: tuple[Any, ...] | None = None
        calibration = None
        if model is None:
            weights, bias = self.expansion(triangular), np.zeros(self.rank)
        else:
            weights, bias = self.collapse(model, triangular)
            names = classes_of_model(model)
            last = model[-1] if hasattr(model, "steps") else model
            if names is not None and len(names) == 2 and type(last).__name__ == "LogisticRegression":
                calibration = np.array([[-1.0, 0.0]])
        k = self.kernel
        machine = Machine(
            source=f"the subspace {name}",
            function=k.function,
            vectors=self.vectors,
            weights=weights,
            bias=bias,
            gamma=k.gamma,
            coef0=k.coef0,
            degree=k.degree,
            classes=names,
            calibration=calibration,
            normalise=k.normalise,
            custom=k.custom,
            max_value=k.max_value,
        )
        spec = to_spec(machine, name, precision, max_abs, inputs, classes, distance)
        for note in notes(machine, spec):
            warnings.warn(note, stacklevel=2)
        return spec

    # ---- files

    def save(self, path: Path) -> None:
        """Write an .npz file (no pickles), all of it or nothing.  A custom kernel is written as its name."""
        about = {"format": "pykernel subspace 2", "kernel": self.kernel.described(), "shrinkage": self.shrinkage}
        write_npz(path, about, {"vectors": self.vectors, "a": self.a})

    @classmethod
    def load(cls, path: Path, kernel: MercerKernel | None = None) -> HostSubspace:
        """What ``save`` wrote.  ``kernel``: needed if it is a custom one, and must be what it was made with."""
        about, arrays = read_npz(path, "pykernel subspace 2", "HostSubspace.save")
        try:
            own = stored_kernel(about["kernel"], kernel, path)
            if any(arrays[key].dtype != np.float64 for key in ("vectors", "a")):
                raise TypeError("its arrays are not float64")
            parts = own, arrays["vectors"], arrays["a"], about["shrinkage"]
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{path} is not a whole subspace ({error}); write it again with HostSubspace.save"
            ) from error
        try:
            return cls(*parts)
        except UserError as error:
            raise UserError(f"{path} holds no subspace: {error}; write it again with HostSubspace.save") from None


def _square(a: np.ndarray, scale: float) -> float:
    """The sum of the squares of a / scale."""
    part = a.ravel() / scale
    return float(part @ part)


def _triangular_root(g: np.ndarray) -> np.ndarray:
    """R upper triangular with R'R = G, (r, r); a pivot that is rounding only makes a row of zeros.  O(r^3)."""
    root = np.zeros_like(g)
    for i in range(len(g)):
        row = g[i, i:] - root[:i, i] @ root[:i, i:]
        if row[0] > PIVOT * g[i, i]:
            root[i, i:] = row / math.sqrt(row[0])
    return root


def affine_of_model(model: Any, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """(r, o) and (o,) of a linear model of r features; a fitted estimator's by its values at 0 and the unit vectors."""
    kind = type(model).__name__
    if isinstance(model, tuple) and len(model) == 2:
        theta = checked_table(np.atleast_2d(model[0]), "coef", f"(outputs, {rank}) or ({rank},)", (None, rank)).T
        intercept = np.asarray(model[1], np.float64)
        if intercept.ndim > 1 or (intercept.size not in (1, theta.shape[1])):
            raise UserError(f"intercept has the shape {intercept.shape}; it must be a number for each output")
        return theta, np.broadcast_to(intercept, (theta.shape[1],)).copy()
    if hasattr(model, "cluster_centers_"):
        told = f"(2 or more, {rank})"
        centers = checked_table(model.cluster_centers_, f"{kind}'s centres", told, (None, rank), least=2)
        theta, bias = centers.T, -0.5 * np.sum(centers**2, axis=1)
        return (theta[:, 1:] - theta[:, :1], bias[1:] - bias[:1]) if len(centers) == 2 else (theta, bias)
    call = getattr(model, "decision_function", None) or getattr(model, "predict", None)
    if call is None:
        raise UserError(f"{kind} has neither decision_function nor predict; it must be a fitted linear model")

    def values(at: np.ndarray) -> np.ndarray:
        try:
            found = np.asarray(call(at), np.float64)
        except (TypeError, ValueError) as error:
            raise UserError(f"{kind} does not take {rank} features as numbers to numbers ({error})") from None
        return found.reshape(len(at), -1)

    bias = values(np.zeros((1, rank)))[0]
    theta = values(np.eye(rank)) - bias
    # check at a point far from those at which the weights were measured
    probes = np.random.default_rng(0).standard_normal((8, rank)) * 2.0 ** np.arange(-4, 4)[:, None]
    size = np.abs(probes) @ np.abs(theta) + np.abs(bias)
    if not (np.abs(values(probes) - probes @ theta - bias) <= 1e-9 * size + 1e-300).all():
        raise UserError(f"{kind} is no affine function of the features; it must be a linear model")
    return theta, bias


def classes_of_model(model: Any) -> tuple[Any, ...] | None:
    if hasattr(model, "cluster_centers_"):
        return tuple(range(len(model.cluster_centers_)))
    if hasattr(model, "decision_function") and hasattr(model, "classes_"):
        return tuple(np.asarray(model.classes_).tolist())
    return None


@dataclass(frozen=True)
class Approximation:
    """How near Khat = ZZ' is to K over N rows: norms of K - Khat, all divided by N, and their bounds.

    0 <= Khat <= K in the order of positive semidefinite matrices, so that

        spectral <= frobenius <= trace = residual + 2 lambda coordinates     (trace_bound)
        frobenius <= sqrt(residual) (sqrt(residual) + 2 sqrt(diagonal))      (residual_bound)

    Attributes
    ----------
    rows : int
        N.
    shrinkage : float
        lambda.
    residual, coordinates, diagonal : float
        Means of e2(x), |q(x)|^2 and k(x, x).
    trace : float
        tr(K - Khat) / N.
    frobenius, frobenius_error : float
        |K - Khat|_F / N; its standard error where it is estimated from some elements, otherwise 0.
    spectral : float or None
        |K - Khat|_2 / N, if it was computed.
    """

    rows: int
    shrinkage: float
    residual: float
    coordinates: float
    diagonal: float
    trace: float
    frobenius: float
    frobenius_error: float
    spectral: float | None

    @property
    def trace_bound(self) -> float:
        """Of ``frobenius``: the mean of e2 + 2 lambda |q|^2, which is ``trace``.  Needs O(N) and no element of K."""
        return self.residual + 2 * self.shrinkage * self.coordinates

    @property
    def residual_bound(self) -> float:
        """Of ``frobenius``: the triangle inequality's, as published for k(x, x) <= 1."""
        root = math.sqrt(self.residual)
        return root * (root + 2 * math.sqrt(self.diagonal))

    def krr(self, ridge: float, y: Any) -> float:
        """A bound of |f - fhat| over the rows: kernel ridge regression on K and Khat, (K + ridge I) alpha = y.

        The bound is s |y| / (s + ridge) with s = |K - Khat|_2.  Because of 0 <= Khat <= K, it is tighter than the usual
        s |y| / ridge, and never above |y|.  If s was not computed, it is replaced with its bound ``frobenius``; or with
        ``trace``, if ``frobenius`` is an estimate.  y: (N,); for several outputs, call it for each output.
        """
        ridge, values = checked_positive(ridge, "ridge"), checked_numbers(y, "y")
        if values.shape != (self.rows,):
            raise UserError(f"y has the shape {values.shape}; it must be ({self.rows},)")
        return self._most / (self._most + ridge) * float(np.linalg.norm(values))

    def svm(self, C: float) -> float:
        """A bound before a support vector machine is trained, of what it loses: min(N C^2 s / 2, N C), s as of ``krr``.

        The least of |f|^2 / 2 + C sum max(0, 1 - y f) on Khat is above that on K by at most this, whatever the labels.
        Only small C gain by it; ``HostSubspace.excess`` is the bound of a machine that is there.
        """
        each = self.rows * checked_positive(C, "C")
        return min(each * C * self._most / 2, each)

    @property
    def _most(self) -> float:
        """s: |K - Khat|_2, or what bounds it."""
        most = self.trace if self.frobenius_error else self.frobenius
        return self.rows * (most if self.spectral is None else self.spectral * (1 + 1e-8))
