"""A basis in a kernel's feature space, chosen from the data.  It is computed on the host, in float64.

Symbols: l rows, the set S of the n chosen rows, K_SS = L L', features z(x) = L^-1 k_S(x), which are the coordinates of
phi(x)'s projection onto span{phi(s), s in S}.  Features are nested: each further vector appends a coordinate.  The
residual R_ij = k_ij - z_i'z_j is the Schur complement of K_SS; delta(x) = 1 - |z|^2 / k(x, x) is the fraction of
|phi(x)|^2 that the projection leaves out.

``pykernel.bases.candidates.Selector`` is the interface of a method; ``pykernel.bases.select`` lists the methods.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.files import open_plain, whole_file
from pykernel.report.bases import basis_chosen
from pykernel.rows import Rows, as_rows, each_row

Path = str | os.PathLike[str]
Stop = Literal["n_max", "tau", "spanned", "exhausted"]

LEAST_EPSILON = 1e-14  # smallest epsilon; below it, rounding errors decide which rows are spanned
MOST = 32_768  # maximum number of vectors; L then takes 8.6 GB
NUMBERS = 2**22  # maximum number of kernel values in a block; they take 32 MB


# ------------------------------------------------------------------------------------------------------- the basis


@dataclass(frozen=True, eq=False)
class Basis:
    """Vectors in the order in which they were chosen, with the Cholesky factor of their Gram matrix.

    Attributes
    ----------
    kernel : MercerKernel
    vectors : (n, D) float64
    indices : (n,) int64
        The position of each vector in the data, or -1 for a vector that is not a row of the data.
    factor : (n, n) float64
        L, lower triangular, K_SS = L L'.
    trace : (n + 1,) float64
        tr R / tr K, the part that the basis leaves out, after 0, ..., n vectors.  The first value is 1.  An exact trace
        never rises.  No basis of n vectors can leave out less than the sum of all but the n largest eigenvalues of K,
        divided by tr K.
    exact : bool
        Whether ``trace`` was computed from all rows.  If not, ``trace`` is an estimate from some of the rows.
    evaluations : int
        Number of kernel values that were computed to select all vectors and to measure ``trace``.
    method : str
    stopped : "n_max", "tau", "spanned" (each remaining row has delta < epsilon) or "exhausted" (no row remains)
    reason : str
        Why "auto" chose this method, or "" if the caller named the method.
    bound : float or None
        An upper bound on tr R / tr K over all rows, which holds with the requested ``confidence``.  None if no
        confidence was requested.
    """

    kernel: MercerKernel
    vectors: np.ndarray
    indices: np.ndarray
    factor: np.ndarray
    trace: np.ndarray
    exact: bool
    evaluations: int
    method: str
    stopped: Stop
    reason: str = ""
    bound: float | None = None

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        size = f"{len(self)} vectors of {self.vectors.shape[1]} inputs"
        left = f"trace {'' if self.exact else 'about '}{self.trace[-1]:.4g}"
        return f"<Basis: {size} by {self.method}, {left}, stopped: {self.stopped}>"

    def _repr_html_(self) -> str:
        return basis_chosen(self.method, self.reason, self.trace, self.exact, self.evaluations)._repr_html_()

    def features(self, x: Any) -> np.ndarray:
        """Return z(x) = L^-1 k_S(x), (rows, n).  O(n D + n^2) per row.

        x: (rows, D), an array or anything else that ``as_rows`` accepts.  The inner product z(x)'z(y) is the Nystroem
        kernel k_S(x)' K_SS^-1 k_S(y).  The first k columns are the features of ``head(k)``.
        """
        rows = self._rows(x)
        return each_row(rows, block_rows(len(self), rows.dim), self._projected, len(self))

    def directions(self) -> np.ndarray:
        """Return the lower triangular matrix A, (n, n).  Row i contains the coefficients of the direction
        v_i = sum_j A_ij phi(s_j), scaled so that |A_i|_1 = 1.

        v_i is the scaled residual of phi(s_i) after a projection onto the vectors chosen before s_i, so the directions
        are orthogonal.  The values <v_i, phi(x)>, which are A k_S(x), equal the ``features`` up to a constant factor
        for each feature.  No value exceeds the largest |k(s, x)|.  The first i values depend only on the kernel values
        of the first i vectors.  O(n^3).
        """
        inverse = solve_triangular(self.factor, np.eye(len(self)), lower=True, check_finite=False)
        return np.asarray(inverse / np.abs(inverse).sum(axis=1, keepdims=True))

    def residual(self, x: Any) -> np.ndarray:
        """Return delta(x) = 1 - |z(x)|^2 / k(x, x), (rows,), which lies in [0, 1] and is 0 if k(x, x) = 0.  O(n D + n^2) per row."""
        rows = self._rows(x)

        def delta(block: np.ndarray) -> np.ndarray:
            own = self.kernel.self_values(block)
            return share(left_out(own, self._projected(block)), own)

        return each_row(rows, block_rows(len(self), rows.dim), delta)

    def head(self, n: int) -> Basis:
        """Return the basis of the first n vectors, 1 <= n <= len(self).

        ``evaluations`` still counts the kernel values of the whole selection.
        """
        count = checked_count(n, "n", 1, len(self))
        if count == len(self):
            return self
        return replace(
            self,
            vectors=self.vectors[:count],
            indices=self.indices[:count],
            factor=self.factor[:count, :count],
            trace=self.trace[: count + 1],
            stopped="n_max",
            bound=None,
        )

    def save(self, path: Path) -> None:
        """Write an .npz file without pickles, completely or not at all.

        The code of a custom kernel is not stored, only the kernel's name and a hash of its file.
        """
        about = {
            "format": "pykernel basis 1",
            "kernel": self.kernel.described(),
            "exact": bool(self.exact),
            "evaluations": int(self.evaluations),
            "method": self.method,
            "stopped": self.stopped,
            "reason": self.reason,
            "bound": self.bound,
        }
        names = ("vectors", "indices", "factor", "trace")
        write_npz(path, about, {name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, path: Path, kernel: MercerKernel | None = None) -> Basis:
        """Read a file that ``save`` wrote.

        ``kernel`` is required for a custom kernel, and must be the kernel with which the basis was made.
        """
        about, arrays = read_npz(path, "pykernel basis 1", "Basis.save")
        try:
            basis = cls(
                kernel=stored_kernel(about["kernel"], kernel, path),
                vectors=arrays["vectors"],
                indices=arrays["indices"],
                factor=arrays["factor"],
                trace=arrays["trace"],
                exact=about["exact"],
                evaluations=about["evaluations"],
                method=about["method"],
                stopped=about["stopped"],
                reason=about["reason"],
                bound=about.get("bound"),
            )
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} is not a complete basis ({error}); write it again with Basis.save") from error
        basis._check(path)
        return basis

    def _check(self, path: Any) -> None:
        """Raise UserError unless the shapes match, the numbers are finite, and L is the Cholesky factor of the vectors'
        Gram matrix.

        This check is needed because a file is untrusted input.
        """
        n = len(self.vectors)
        sound = (
            self.vectors.ndim == 2
            and n > 0
            and self.indices.shape == (n,)
            and self.indices.dtype == np.int64
            and self.factor.shape == (n, n)
            and self.trace.shape == (n + 1,)
            and all(a.dtype == np.float64 and np.isfinite(a).all() for a in (self.vectors, self.factor, self.trace))
            and self.stopped in get_args(Stop)
            and (self.bound is None or (isinstance(self.bound, float) and 0 <= self.bound <= 1))
        )
        if sound:
            gram = self.kernel.gram(self.vectors, self.vectors)
            wrong = np.abs(np.tril(self.factor) @ np.tril(self.factor).T - gram).max()
            sound = bool((self.factor.diagonal() > 0).all() and wrong <= 1e-9 * np.abs(gram.diagonal()).max())
        if not sound:
            raise UserError(
                f"{path} does not hold a basis: its arrays do not fit together; write it again with Basis.save"
            )

    def _projected(self, block: np.ndarray) -> np.ndarray:
        return project(self.factor, self.kernel.gram(block, self.vectors))

    def _rows(self, x: Any) -> Rows:
        rows = as_rows(x)
        if rows.dim != self.vectors.shape[1]:
            raise UserError(f"rows of x have {rows.dim} numbers, but vectors of the basis have {self.vectors.shape[1]}")
        return rows


def project(factor: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return z = L^-1 k for each row k of ``values`` (rows, n), by forward substitution.  O(n^2) per row."""
    if not len(factor):
        return np.zeros((len(values), 0))
    return solve_triangular(factor, values.T, lower=True, check_finite=False).T


def residual_sums(rows: Rows, basis: Basis) -> np.ndarray:
    """Return one array (n + 1,): the sum of k(x, x) over the rows, followed by the sums of the residuals after 1, ..., n vectors.

    O(l n (D + n)).
    """
    n = len(basis)
    sums = np.zeros(n + 1)
    for _, block in rows.blocks(block_rows(n, rows.dim)):
        z, own = project(basis.factor, basis.kernel.gram(block, basis.vectors)), basis.kernel.self_values(block)
        left = own[:, None] - np.cumsum(np.square(z), axis=1)
        sums[0] += own.sum()
        sums[1:] += np.maximum(left, 0.0).sum(axis=0)
    return sums


def measured(basis: Basis, rows: Rows, exact: bool) -> Basis:
    """Return the basis with its trace measured on these rows.  O(l n (D + n)).

    exact: whether ``rows`` contains all rows of the data.
    """
    sums = residual_sums(rows, basis)
    trace = np.minimum.accumulate(sums / sums[0]) if sums[0] > 0 else np.zeros(len(sums))
    return replace(basis, trace=trace, exact=exact)


def left_out(diagonal: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return R_ii = k_ii - |z_i|^2, clipped to [0, k_ii]."""
    return np.clip(diagonal - np.einsum("ij,ij->i", z, z), 0.0, diagonal)


def share(part: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return ``part`` divided by the diagonal, or 0 where the diagonal is 0."""
    return np.divide(part, diagonal, out=np.zeros_like(part), where=diagonal > 0)


def block_rows(n: int, dim: int) -> int:
    """Return the number of rows in a block, chosen so that the block's inputs and its kernel values with n vectors take
    at most 32 MB each.
    """
    return max(1, NUMBERS // max(n, dim, 1))


# ---------------------------------------------------------------------------------------------------- while it grows


class Growing:
    """The vectors that a selector has chosen so far, with their indices, L, the trace, and the number of kernel values computed."""

    def __init__(self, kernel: MercerKernel, dim: int, capacity: int) -> None:
        if capacity > MOST:
            raise UserError(
                f"n_max is {capacity:,}; it must be at most {MOST:,}, because L alone would take "
                f"{8 * capacity**2 / 1e9:,.0f} GB"
            )
        self.kernel, self.n, self.evaluations = kernel, 0, 0
        self.vectors = np.zeros((capacity, dim))
        self.indices = np.zeros(capacity, np.int64)
        self.factor = np.zeros((capacity, capacity))
        self.trace = np.ones(capacity + 1)

    def values(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return k(a_i, b_j), and count these kernel values."""
        self.evaluations += len(a) * len(b)
        return self.kernel.gram(a, b)

    def diagonal(self, a: np.ndarray) -> np.ndarray:
        """Return k(a_i, a_i), and count these kernel values unless they are 1 for every row."""
        if not self.kernel.unit:
            self.evaluations += len(a)
        return self.kernel.self_values(a)

    def features(self, a: np.ndarray) -> np.ndarray:
        """Return the features z of rows, computed from the vectors chosen so far, (rows, n)."""
        return project(self.factor[: self.n, : self.n], self.values(a, self.vectors[: self.n]))

    def append(self, vector: np.ndarray, index: int, z: np.ndarray, square: float, trace: float = 0.0) -> None:
        """Append a vector with the features z (n,) and the residual R_rr = ``square`` > 0.  trace: tr R / tr K after
        this vector.
        """
        n = self.n
        self.vectors[n], self.indices[n] = vector, index
        self.factor[n, :n], self.factor[n, n] = z, math.sqrt(square)
        self.n = n + 1
        self.trace[n + 1] = trace

    def basis(self, method: str, stopped: Stop | None, exact: bool) -> Basis:
        n = self.n
        trace = self.trace[: n + 1].clip(0.0)
        return Basis(
            kernel=self.kernel,
            vectors=self.vectors[:n].copy(),
            indices=self.indices[:n].copy(),
            factor=self.factor[:n, :n].copy(),
            trace=np.minimum.accumulate(trace) if exact else trace,
            exact=exact,
            evaluations=self.evaluations,
            method=method,
            stopped=stopped or "n_max",
        )


# ----------------------------------------------------------------------------------------------------------- files


def stored_kernel(stored: dict[str, Any], kernel: MercerKernel | None, path: Any) -> MercerKernel:
    """Return the kernel that a file describes (``MercerKernel.described``).  A custom kernel must be given, and is
    returned.

    Raises UserError if ``kernel`` differs from the kernel in the file, or if it is None and the kernel is custom.
    """
    if kernel is not None:
        if kernel.described() != stored:
            raise UserError(f"{path} was made with a kernel other than the given one; give the kernel of the file")
        return kernel
    if "custom" in stored:
        raise UserError(f"{path} was made with a custom kernel, {stored['custom']['name']!r}; give it as kernel=")
    return MercerKernel(**stored)


def write_npz(path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write arrays and a description (JSON) as an .npz file without pickles, completely or not at all."""
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, about=text, **arrays)


def read_npz(path: Path, kind: str, writer: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a file that ``write_npz`` wrote.

    Raises UserError if the file does not exist, is damaged, or contains something other than ``kind``.
    """
    try:
        with open_plain(path) as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != kind:
            raise ValueError(f"it is a {about['format']}")
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except Exception as error:  # NumPy, zipfile and json raise many kinds of errors for a damaged file
        raise UserError(f"{path} is damaged or was not written by {writer}: {error or type(error).__name__}") from error
    return about, arrays
