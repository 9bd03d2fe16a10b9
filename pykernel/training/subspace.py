"""A low-dimensional subspace of a kernel's feature space, on the host, in float64.

    subspace = HostSubspace.fit(x, MercerKernel("gaussian", gamma=0.5), rank=10, shrinkage=0.1)
    z = subspace.features(x)                   # (N, 10): z_i'z_j approximates k(x_i, x_j)
    subspace.score(x_new)                      # the part of each new sample that lies outside the subspace
    subspace.to_spec("map")                    # z as a kernel expansion, for the device's flash

Symbols are as in ``pykernel.training.bkfe``, but L = Phi A combines the images of m samples (in a batch, m = N).  With
v(x) = A'k(X, x) and G = L'L = A'KA, a sample has the coordinates q(x) = (G + lambda I)^-1 v(x), the features
z(x) = G^1/2 q(x), and the squared residual e2(x) = k(x, x) - v'q - lambda |q|^2.  docs/subspaces.md derives the formulas.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count, checked_positive, checked_table, need_kernel
from pykernel.bases.basis import Basis, block_rows, share
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.rows import Rows, as_rows, each_row
from pykernel.spec.model import Spec
from pykernel.training.bkfe import Method, above_rounding, bkfe, directions, inverse_of, symmetric
from pykernel.training.machine import Machine
from pykernel.training.rounding import notes
from pykernel.training.trained import Distance, to_spec

WHOLE = 10_000
"""Maximum number of rows if every row is an expansion vector.  The Gram matrix of this many rows needs 800 MB."""
PIVOT = 2.0**-40
"""If a pivot is below this fraction of the diagonal element of G, the pivot's row of the factor becomes zero, as on the device
in float64."""


@dataclass(frozen=True, eq=False)
class HostSubspace:
    """L = Phi A: r directions in a kernel's feature space as combinations of m vectors' images, in float64.

    kernel: MercerKernel.  vectors: X, (m, D).  a: A, (m, r).  shrinkage: the objective's lambda > 0.  ``fit`` computes
    A from data; the device's rule ``okfeb`` computes A from a stream.  In the methods, x is (rows, D), in any form that
    ``as_rows`` accepts.  Rows are processed in blocks, O(m (D + r) + r^2) for a row.  Raises UserError.
    """

    kernel: MercerKernel
    vectors: np.ndarray
    a: np.ndarray
    shrinkage: float

    def __post_init__(self) -> None:
        need_kernel(self.kernel)
        vectors = checked_table(self.vectors, "vectors", "(m, inputs) with m of 1 or more", least=1)
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
        """Minimise BKFE's objective over the rows of x in closed form, or by the iteration of paper 001 (Algorithm 1).

        x : (N, D), in any form that ``as_rows`` accepts
        rank, shrinkage, method, seed, iterations, tolerance
            As in ``bkfe``.
        basis : None, int or Basis
            None: every row is an expansion vector, m = N.  At most WHOLE rows are allowed, because the Gram matrix is
            kept.
            int: L stays in the span of this number of vectors, which ``select_basis`` chooses with ``options``; the
            argument ``method`` of ``select_basis`` is given as ``selector``.  Basis: L stays in the span of this basis.
            For an int or a Basis, ``method`` must be "closed", and the optimum within the span is computed from the
            singular values of the basis's features.  For n basis vectors, the computation takes one pass over the rows,
            O(N n (D + n)), and the result has only n vectors.  A basis is therefore suitable for large N and for
            devices.
        """
        rank, seed = checked_count(rank, "rank", 1), checked_count(seed, "seed", 0)
        shrinkage = checked_positive(shrinkage, "shrinkage")
        need_kernel(kernel)
        rows = as_rows(x)
        if not len(rows):
            raise UserError("x has no rows; a subspace needs at least one")
        if basis is None:
            if options:
                raise UserError(
                    f"{', '.join(options)} can be used only to choose a basis, but basis is None; "
                    "leave these options out"
                )
            if len(rows) > WHOLE:
                raise UserError(f"x has {len(rows):,} rows; for more than {WHOLE:,} rows, give a basis")
            every = rows.take(np.arange(len(rows)))
            gram = kernel.gram(every, every)
            result = bkfe(gram, rank, shrinkage, method=method, seed=seed, iterations=iterations, tolerance=tolerance)
            return cls(kernel, every, result.a, shrinkage)
        if method != "closed":
            raise UserError('a subspace on a basis is found in closed form; method must be "closed"')
        if not isinstance(basis, Basis):
            selector = options.pop("selector", "auto")
            basis = select_basis(rows, kernel, checked_count(basis, "basis", 1), selector, seed=seed, **options)
        elif options:
            raise UserError(
                f"{', '.join(options)} can be used only to choose a basis, but a basis is given; "
                "leave these options out"
            )
        elif basis.kernel != kernel:
            raise UserError("the basis was chosen with another kernel; give that kernel, or another basis")
        sigma, turned = directions(basis, rows, rank)
        inner = turned.T * np.sqrt(np.maximum(sigma - shrinkage, 0.0))
        a = np.zeros((len(basis), rank))
        a[:, : len(sigma)] = solve_triangular(basis.factor, inner, lower=True, trans=1, check_finite=False)
        return cls(kernel, basis.vectors, a, shrinkage)

    # ---- properties

    @property
    def rank(self) -> int:
        """r, the number of columns of A."""
        return self.a.shape[1]

    @cached_property
    def gram(self) -> np.ndarray:
        """G = L'L = A'KA, (r, r), computed once in O(m^2 (D + r))."""
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
        """Eigenvalues of G, descending, (r,).

        At the batch optimum they are (sigma_i - lambda)_+, where sigma_i^2 are the eigenvalues of K.
        """
        return self._spectrum[0][::-1].copy()

    @property
    def kept(self) -> int:
        """Number of directions that do not vanish, at most r.

        The features of the vanishing directions are zero for every x, or become zero after a rotation of the features.
        """
        return int(above_rounding(self._spectrum[0]).sum())

    def _root(self, triangular: bool) -> np.ndarray:
        """Return R with R'R = G, (r, r): the symmetric root or the upper triangular root."""
        if triangular:
            return _triangular_root(self.gram)
        values, vectors = self._spectrum
        return np.asarray((vectors * np.sqrt(np.where(above_rounding(values), values, 0.0))) @ vectors.T)

    # ---- samples

    def coordinates(self, x: Any) -> np.ndarray:
        """Return q(x) = (G + lambda I)^-1 A'k(X, x), (rows, r): paper 001, equation 7."""
        values, vectors = self._spectrum
        return self._turned(x) * inverse_of(values, self.shrinkage) @ vectors.T

    def features(self, x: Any, triangular: bool = False) -> np.ndarray:
        """Return z(x) = R q(x), (rows, r), with R'R = G.  z(x)'z(y) approximates k(x, y), and |z(x)|^2 <= k(x, x).

        R is the symmetric root of G, or, if ``triangular`` is true, the upper triangular root that the device uses.
        """
        return np.asarray(self.coordinates(x) @ self._root(triangular).T)

    def residual(self, x: Any) -> np.ndarray:
        """Return e2(x) = |phi(x) - L q(x)|^2 = k(x, x) - v'q - lambda |q|^2, (rows,), from 0 to k(x, x)."""
        rows = self._rows(x)
        v, diagonal = self._turned(rows), each_row(rows, block_rows(1, rows.dim), self.kernel.self_values)
        q = v * inverse_of(self._spectrum[0], self.shrinkage)
        known = np.einsum("ij,ij->i", v, q) + self.shrinkage * np.einsum("ij,ij->i", q, q)
        return np.clip(diagonal - known, 0.0, diagonal)

    def score(self, x: Any) -> np.ndarray:
        """Return the novelty e2(x) / k(x, x), (rows,), from 0 to 1, or 0 where k(x, x) = 0.

        The novelty is the part of phi(x) outside the subspace.
        """
        rows = self._rows(x)
        return share(self.residual(rows), each_row(rows, block_rows(1, rows.dim), self.kernel.self_values))

    def _turned(self, x: Any) -> np.ndarray:
        """Return v(x) in the eigenbasis of G, (rows, r)."""
        rows, weights = self._rows(x), self.a @ self._spectrum[1]
        size = block_rows(len(self.vectors), rows.dim)
        return each_row(rows, size, lambda block: self.kernel.gram(block, self.vectors) @ weights, self.rank)

    def _rows(self, x: Any) -> Rows:
        rows = as_rows(x)
        if rows.dim != self.vectors.shape[1]:
            raise UserError(
                f"rows of x have {rows.dim} numbers, but vectors of the subspace have {self.vectors.shape[1]}"
            )
        return rows

    # ---- to a kernel expansion

    def expansion(self, triangular: bool = False) -> np.ndarray:
        """Return W = A (G + lambda I)^-1 R', (m, r), so that z(x) = W'k(X, x).  O(m r^2)."""
        values, vectors = self._spectrum
        inner = (vectors * inverse_of(values, self.shrinkage)) @ vectors.T
        return np.asarray(self.a @ (inner @ self._root(triangular).T))

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
        """Make a frozen spec.  If ``model`` is None, ``NAME_predict`` writes z(x), and the frozen model stores m (D + r)
        numbers in flash.  If ``model`` is a linear model of z, ``NAME_predict`` writes the values of the model's o
        functions, and the frozen model stores m (D + o) numbers.

        model : None, or a fitted estimator, or a pair (coef (o, r) or (r,), intercept)
            A model that was trained on ``features(x, triangular)``.  An estimator needs ``cluster_centers_``, or an affine
            ``decision_function``, or else an affine ``predict``.  It may be the last step of a pipeline of scalers.
            If it has ``cluster_centers_``, the function of the nearest centre has the largest value.  For two classes
            or two centres, there is only one function, which is positive for the second class or centre.
            For classifiers and clusterings, ``NAME_classify`` writes the index of the class.  The probability of a
            binary LogisticRegression is converted as well.
        precision, max_abs, inputs, classes, distance
            As for ``from_sklearn``.

        Raises UserError if no spec is possible, if there are more than 64 outputs, or if all directions vanish.  Warns
        if the shrinkage is so small that float32 is too coarse for the sum of the large weights.
        """
        if not self.kept:
            raise UserError(
                f"{name}: no direction of the subspace is left, so all features are zero; lower the shrinkage"
            )
        w = self.expansion(triangular)
        return spec_of_features(
            name, self.kernel, self.vectors, w, model, precision=precision, max_abs=max_abs, inputs=inputs, classes=classes,
            distance=distance,
        )  # fmt: skip


def spec_of_features(
    name: str, kernel: MercerKernel, vectors: np.ndarray, w: np.ndarray, model: Any = None, **options: Any
) -> Spec:
    """Make a frozen spec of the features w'k(vectors, x), (r,), or of a linear model of them.

    w: (m, r).  model, options: as in ``HostSubspace.to_spec``.
    """
    weights, bias, names, calibration = w, np.zeros(w.shape[1]), None, None
    if model is not None:
        theta, bias = affine_of_model(model, w.shape[1])
        weights, names = w @ theta, classes_of_model(model)
        last = model[-1] if hasattr(model, "steps") else model
        if names is not None and len(names) == 2 and type(last).__name__ == "LogisticRegression":
            calibration = np.array([[-1.0, 0.0]])
    machine = Machine(
        source=f"the features {name}",
        function=kernel.function,
        vectors=vectors,
        weights=weights,
        bias=bias,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        classes=names,
        calibration=calibration,
        normalise=kernel.normalise,
        custom=kernel.custom,
        max_value=kernel.max_value,
    )
    spec = to_spec(machine, name, **options)
    for note in notes(machine, spec):
        warnings.warn(note, stacklevel=3)
    return spec


def _triangular_root(g: np.ndarray) -> np.ndarray:
    """Return an upper triangular R with R'R = G, (r, r).  A pivot that is only rounding error gives a row of zeros.  O(r^3)."""
    root = np.zeros_like(g)
    for i in range(len(g)):
        row = g[i, i:] - root[:i, i] @ root[:i, i:]
        if row[0] > PIVOT * g[i, i]:
            root[i, i:] = row / math.sqrt(row[0])
    return root


def affine_of_model(model: Any, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (r, o) and intercepts (o,) of a linear model of r features.

    The coefficients of a clustering are computed from its centres.  Those of any other fitted estimator are computed
    from the estimator's values at 0 and at the unit vectors.
    """
    kind = type(model).__name__
    if isinstance(model, tuple) and len(model) == 2:
        theta = checked_table(np.atleast_2d(model[0]), "coef", f"(outputs, {rank}) or ({rank},)", (None, rank)).T
        intercept = np.asarray(model[1], np.float64)
        if intercept.ndim > 1 or (intercept.size not in (1, theta.shape[1])):
            raise UserError(f"intercept has the shape {intercept.shape}; give one number for each output")
        return theta, np.broadcast_to(intercept, (theta.shape[1],)).copy()
    if hasattr(model, "cluster_centers_"):
        shape = f"(2 or more, {rank})"
        centers = checked_table(model.cluster_centers_, f"{kind}'s centres", shape, (None, rank), least=2)
        theta, bias = centers.T, -0.5 * np.sum(centers**2, axis=1)
        return (theta[:, 1:] - theta[:, :1], bias[1:] - bias[:1]) if len(centers) == 2 else (theta, bias)
    call = getattr(model, "decision_function", None) or getattr(model, "predict", None)
    if call is None:
        raise UserError(f"{kind} has neither decision_function nor predict; it must be a fitted linear model")

    def values(at: np.ndarray) -> np.ndarray:
        try:
            found = np.asarray(call(at), np.float64)
        except (TypeError, ValueError) as error:
            raise UserError(f"{kind} does not compute numbers from {rank} numeric features ({error})") from None
        return found.reshape(len(at), -1)

    bias = values(np.zeros((1, rank)))[0]
    theta = values(np.eye(rank)) - bias
    # check the weights at points other than those from which they were computed
    probes = np.random.default_rng(0).standard_normal((8, rank)) * 2.0 ** np.arange(-4, 4)[:, None]
    size = np.abs(probes) @ np.abs(theta) + np.abs(bias)
    if not (np.abs(values(probes) - probes @ theta - bias) <= 1e-9 * size + 1e-300).all():
        raise UserError(f"{kind} is not an affine function of the features; it must be a linear model")
    return theta, bias


def classes_of_model(model: Any) -> tuple[Any, ...] | None:
    if hasattr(model, "cluster_centers_"):
        return tuple(range(len(model.cluster_centers_)))
    if hasattr(model, "decision_function") and hasattr(model, "classes_"):
        return tuple(np.asarray(model.classes_).tolist())
    return None
