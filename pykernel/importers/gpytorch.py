"""GPyTorch's sparse Gaussian processes, read from their state dictionaries.

GPyTorch and torch are not needed, because a state dictionary has only names and arrays.  Two kinds of models are read:
models with variational parameters (J. Hensman, A. Matthews, Z. Ghahramani, Scalable variational Gaussian process
classification, 2015), and models with an InducingPointKernel, which need their training data (E. Snelson, Z.
Ghahramani, Sparse Gaussian processes using pseudo-inputs, 2006).  Both are converted to the same form: with K + jitter
= L L' for the inducing points and z(x) = L^-1 k(x), the mean of f is c + m'z, and its variance is k(x, x) - z'(I - S)
z.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.importers.place import Place
from pykernel.importers.sklearn import with_lengths
from pykernel.spec.families.nystrom import LEAST_FACTOR
from pykernel.spec.model import DIM_LIMIT, shown_value
from pykernel.training.trained import NUMBERS_LIMIT, Machine, array_of, checked

KERNELS = {
    "gaussian": "RBFKernel",
    "matern12": "MaternKernel of nu 0.5",
    "matern32": "of nu 1.5",
    "matern52": "of nu 2.5",
}
"""Our name of a kernel -> GPyTorch's name.  The user must name the kernel: a state dictionary does not contain it."""
POINTS_LIMIT = 1024
"""Most inducing points.  With more points, K takes too long to factorise."""
VARIATIONAL_JITTER = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}
"""What GPyTorch adds to K's diagonal: its settings.variational_cholesky_jitter."""
CHOLESKY_JITTER = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}
"""If K has no Cholesky factor, GPyTorch adds this number to its diagonal, then 10 and 100 times the number: its
settings.cholesky_jitter."""
DATA = ("train_inputs", "train_targets")
"""Arrays that a model with an InducingPointKernel needs in addition to its state."""
KNOWN = (
    "inducing_points",
    "updated_strategy",
    "variational_params_initialized",
    "variational_mean",
    "chol_variational_covar",
    "_variational_stddev",
    "natural_vec",
    "natural_mat",
    "natural_tril_mat",
    "raw_lengthscale",
    "raw_outputscale",
    "raw_noise",
    "raw_constant",
    "constant",
    *DATA,
)
"""The last parts of names that are known."""
IGNORED = ("_prior", "_constraint")
"""Ends of the names of modules that are skipped: they hold no part of the model, or are read together with a
parameter.
"""
LEAST_TOLD = 1e-6
"""Smallest eigenvalue of I - S that is used; smaller eigenvalues are replaced with it."""
TOLD, EXCEEDS = 1e-3, 0.05
"""How far S may exceed the prior's covariance, as fractions of the prior variance: TOLD without a warning, EXCEEDS at
most.
"""


@dataclass(frozen=True)
class SparseGaussianProcess:
    """f of inducing points (n, D): mean c + m'z(x), variance k(x, x) - z'(I - S) z + jitter, z(x) = L^-1 k(x)."""

    source: Place  # words for the original model
    function: str
    points: np.ndarray  # (n, D)
    lengths: np.ndarray  # length scales, (1,) or (D,)
    size: float  # k(x, x)
    constant: float  # c
    factor: np.ndarray  # L, (n, n)
    whitened_mean: np.ndarray  # m, (n,)
    whitened_covariance: np.ndarray  # S, (n, n)
    added: float  # the number that GPyTorch adds to the variance of f, for numerical reasons
    noise: float  # variance of a label around f; 0 if the state has no likelihood
    notes: tuple[str, ...] = field(default=())

    def machine(self) -> Machine:
        """The mean.  O(n^2)."""
        back = _solved(self.factor, self.whitened_mean, trans=1)
        weights = (self.size * back)[:, None]
        # a bound of the rounding error of the triangular solve: each number is rounded n times
        lost = _solved(np.abs(self.factor), np.abs(self.factor).T @ np.abs(back), trans=1)
        made = Machine(
            self.source,
            self.function,
            self.points,
            weights,
            np.array([self.constant]),
            gross=np.maximum(np.abs(weights), self.size * np.abs(lost)[:, None]),
            mixes=len(self.points),
            notes=self.notes,
        )
        return checked(with_lengths(made, self.lengths**-2), self.source)

    def functions(self, x: np.ndarray) -> np.ndarray:
        """The mean at rows of x, as GPyTorch computes it but in float64, (rows, 1)."""
        return np.asarray((self.constant + self.whitened_mean @ self._features(x))[:, None])

    def variances(self, x: np.ndarray) -> np.ndarray:
        """The variance of a label at rows of x, as GPyTorch computes it but in float64, (rows,)."""
        z = self._features(x)
        told = np.sum(z * (z - self.whitened_covariance @ z), axis=0)
        return np.asarray(self.size + self.added + self.noise - told)

    def _features(self, x: np.ndarray) -> np.ndarray:
        """z at rows of x, (n, rows)."""
        scaled = np.asarray(x, float) / self.lengths
        return _solved(self.factor, self.size * _kernel(self.function).gram(self.points / self.lengths, scaled))

    def excess(self) -> float:
        """How far S exceeds the prior's covariance, as a fraction of the prior variance.

        The variance of ``posterior`` is too small by at most this fraction.
        """
        return max(0.0, float(np.linalg.eigvalsh(self.whitened_covariance)[-1]) - 1)

    def notes_of_variance(self) -> list[str]:
        if self.excess() <= TOLD:
            return []
        return [
            f"{self.source}: its variational covariance exceeds the prior's, which the C leaves out: variances are too small by up "
            f"to {self.excess():.1%} of the prior's; train it longer"
        ]

    def posterior(self, machine: Machine, precision: str) -> dict[str, Any]:
        """The sections [kernel] to [expansion] of a spec of rule "nystrom" that computes the mean and the variance.

        machine: the machine of this process, with the center and scale of the steps before it.  With the distribution
        (m, S) of its n values, the process has the variance k(x, x) - |F^-1 k(x)|^2, where F F' = L (I - S)^-1 L'.
        O(n^3).
        """
        told, directions = np.linalg.eigh(np.eye(len(self.points)) - self.whitened_covariance)
        self.source.need(
            self.excess() <= EXCEEDS,
            f"its variational covariance exceeds the prior's by {self.excess():.2g} of it, and the variance of such a model has no "
            "C; train it longer, or leave variance out",
        )
        roots = self.factor @ (directions / np.sqrt(np.maximum(told, LEAST_TOLD))) / math.sqrt(self.size)
        factor = np.linalg.qr(roots.T)[1].T
        factor = factor * np.where(factor.diagonal() < 0, -1.0, 1.0)
        least = LEAST_FACTOR[precision]
        self.source.need(
            (factor.diagonal() ** 2 > least * np.square(factor).sum(axis=1)).all(),
            f"inducing points are so alike that {precision} cannot tell their part of the variance; train with fewer"
            + (", or take precision='float64'" if precision == "float32" else ""),
        )
        return {
            "kernel": machine.kernel.section(),
            "learning": {"rule": "nystrom"},
            "expansion": {
                "vectors": machine.vectors.tolist(),
                "factor": [row[: i + 1].tolist() for i, row in enumerate(factor)],
                "weights": (factor.T @ machine.weights).tolist(),
                "bias": machine.bias.tolist(),
                "prior_variance": self.size,
                "label_variance": self.added + self.noise,
            },
        }


def _solved(factor: np.ndarray, right: np.ndarray, trans: int = 0) -> np.ndarray:
    """L^-1 of the right side, or L^-T."""
    from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

    return np.asarray(solve_triangular(factor, right, trans=trans, lower=True))


def read_state(state: Any, kernel: str | None, jitter: float | None = None) -> SparseGaussianProcess:
    """The sparse Gaussian process of a state dictionary.  Raises UserError, one sentence.

    O(n^3 + N n^2) for n inducing points and N rows of training data.
    """
    if not isinstance(state, Mapping):
        raise UserError(
            f"a {type(state).__name__} is not a state dictionary; give model.state_dict() | likelihood.state_dict()"
        )
    where = Place("state dictionary of GPyTorch")
    found = _sorted(state, where)
    where.need("inducing_points" in found, "has no inducing_points; it is not that of a sparse Gaussian process")
    known = ", ".join(f"{name} ({kind})" for name, kind in KERNELS.items())
    if kernel is None:
        raise where.error(f"does not tell its kernel; give kernel, one of {known}")
    where.need(kernel in KERNELS, f"kernel is {shown_value(kernel)}; it must be one of {known}")
    if jitter is not None:
        where.need(0 <= jitter < 1, f"jitter is {jitter:g}; it must be from 0 to below 1")
    source = "InducingPointKernel"
    if "variational_mean" in found or "natural_vec" in found:
        source = "VariationalStrategy" if _whitened(found) else "UnwhitenedVariationalStrategy"
    return _read(found, kernel, jitter, Place(source))


# ---------------------------------------------------------------------------------------------------------- names


@dataclass(frozen=True)
class _Entry:
    path: str  # of the module
    array: np.ndarray  # in float64
    dtype: np.dtype[Any]  # float32 or float64, as it was computed in
    bounds: tuple[float, float] | None  # of its constraint


def _sorted(state: Mapping[Any, Any], where: Place) -> dict[str, _Entry]:
    """The parameters by the last part of their names.  An unknown name is refused, because it may change the values."""
    names = [str(name) for name in state]
    arrays = dict(zip(names, state.values(), strict=True))
    found: dict[str, _Entry] = {}
    for name in names:
        path, _, last = name.rpartition(".")
        modules = path.split(".")
        if any(module.endswith(IGNORED) for module in modules):
            continue
        where.need(
            last in KNOWN and "kernels" not in modules,
            f"holds {shown_value(name)}, which is no part of a model that can be imported: inducing points, one RBF or Matern "
            "kernel with a ScaleKernel or without, a constant or no mean and one noise",
        )
        array, dtype = _numbers(arrays[name], where, name)
        entry = _Entry(path, array, dtype, _bounds(arrays, f"{name}_constraint", where))
        other = found.setdefault(last, entry)
        # the same likelihood occurs twice: in the model and in its InducingPointKernel
        where.need(
            other is entry or (np.array_equal(other.array, array) and last == "raw_noise"),
            f"holds {last} in {shown_value(other.path)} and in {shown_value(path)}; a model with one can be imported",
        )
    return found


def _bounds(arrays: Mapping[str, Any], constraint: str, where: Place) -> tuple[float, float] | None:
    names = [f"{constraint}.{side}_bound" for side in ("lower", "upper")]
    if not all(name in arrays for name in names):
        return None
    low, high = (_plain(arrays[name]) for name in names)
    try:
        low, high = np.asarray(low, float).item(), np.asarray(high, float).item()
    except (TypeError, ValueError):
        low = high = math.nan
    where.need(low < high, f"{shown_value(constraint)} must have two numbers, the lower one first")
    return low, high


def _plain(value: Any) -> Any:
    """The array of a tensor: torch is not imported here."""
    if isinstance(value, (list, tuple)) and len(value) == 1:  # train_inputs of an ExactGP
        value = value[0]
    return value.detach().cpu().double().numpy() if hasattr(value, "detach") else value


def _numbers(value: Any, where: Place, name: str) -> tuple[np.ndarray, np.dtype[Any]]:
    """An array in float64, and the precision that it was computed in."""
    wide = "float64" in str(getattr(value, "dtype", "float64"))
    return array_of(_plain(value), None, where, shown_value(name)), np.dtype(np.float64 if wide else np.float32)


def _constrained(entry: _Entry, where: Place, name: str, least: float | None = 0.0) -> np.ndarray:
    """A parameter from its raw value: GPyTorch's softplus for one bound, or its sigmoid for two bounds.

    least: the lower bound if the state has no bounds; None: without bounds, the value is not transformed.
    """
    raw = entry.array
    low, high = entry.bounds or (-math.inf if least is None else least, math.inf)
    if math.isfinite(low) and math.isfinite(high):
        raw = low + (high - low) * np.exp(-np.logaddexp(0.0, -raw))
    elif math.isfinite(low):
        raw = low + np.logaddexp(0.0, raw)
    elif math.isfinite(high):
        raw = high - np.logaddexp(0.0, -raw)
    where.need(np.isfinite(raw).all(), f"{name} overflows; train the model again")
    return np.asarray(raw)


def _one(values: np.ndarray, where: Place, name: str) -> float:
    where.need(
        values.size == 1, f"{name} holds {values.size} numbers, as of several outputs; a model of one can be imported"
    )
    return float(values.ravel()[0])


# ------------------------------------------------------------------------------------------------------ the model


def _whitened(found: Mapping[str, _Entry]) -> bool:
    """Whether the variational parameters describe L^-1 (f - c).

    In files of older versions of GPyTorch a flag is not set.
    """
    return "updated_strategy" in found and bool(found["updated_strategy"].array.all())


def _read(found: Mapping[str, _Entry], kernel: str, jitter: float | None, where: Place) -> SparseGaussianProcess:
    points, dtype = found["inducing_points"].array, found["inducing_points"].dtype
    where.need(
        points.ndim == 2 and points.size,
        f"inducing_points has shape {points.shape}; a model of one output has a row for each point",
    )
    n, dim = points.shape
    where.need(
        n <= POINTS_LIMIT and dim <= DIM_LIMIT,
        f"has {n:,} inducing points of {dim:,} inputs; a model can have {POINTS_LIMIT:,} of {DIM_LIMIT:,}",
    )
    lengths, size = _kernel_parameters(found, dim, where)
    numbers = {"raw_constant": None, "constant": None, "raw_noise": 1e-4}
    given = {
        name: _one(_constrained(found[name], where, name, least), where, name)
        for name, least in numbers.items()
        if name in found
    }
    constant, noise = given.get("constant", given.get("raw_constant", 0.0)), given.get("raw_noise", 0.0)

    def gram(other: np.ndarray) -> np.ndarray:
        return size * _kernel(kernel).gram(points / lengths, other / lengths)

    if where == "InducingPointKernel":
        jitter = 0.0 if jitter is None else jitter
        factor, notes = _factorised(gram(points) + jitter * np.eye(n), dtype, where)
        mean, covariance = _of_data(found, factor, gram, size, constant, noise, dim, where)
        jitter = 0.0
    else:
        jitter = VARIATIONAL_JITTER[dtype] if jitter is None else jitter
        factor, notes = _factorised(gram(points) + jitter * np.eye(n), np.dtype(np.float64), where)
        mean, covariance = _variational(found, n, where)
        if not _whitened(found):
            mean = _solved(factor, mean - constant)
            covariance = _solved(factor, _solved(factor, covariance).T)
            jitter = 0.0
    covariance = (covariance + covariance.T) / 2
    where.need(np.isfinite(mean).all() and np.isfinite(covariance).all(), "its values overflow; train the model again")
    return SparseGaussianProcess(
        where, kernel, points, lengths, size, constant, factor, mean, covariance, jitter, noise, notes
    )


def _kernel(function: str) -> MercerKernel:
    """The kernel for inputs that are divided by their length scales."""
    made = Machine("", function, np.zeros((1, 2)), np.zeros((1, 1)), np.zeros(1))
    return with_lengths(made, np.ones(1)).kernel


def _kernel_parameters(found: Mapping[str, _Entry], dim: int, where: Place) -> tuple[np.ndarray, float]:
    """Length scales and k(x, x).  The paths of the parameters show whether a kernel is within another kernel."""
    where.need("raw_lengthscale" in found, "has no raw_lengthscale; its kernel must be an RBFKernel or a MaternKernel")
    entry = found["raw_lengthscale"]
    lengths, top, size = _constrained(entry, where, "raw_lengthscale"), entry.path, 1.0
    where.need(
        lengths.shape in ((1, 1), (1, dim)),
        f"raw_lengthscale has shape {lengths.shape}; with {dim} inputs it must have (1, 1) or (1, {dim})",
    )
    alone = True
    if "raw_outputscale" in found:
        outer = found["raw_outputscale"]
        size, top = _one(_constrained(outer, where, "raw_outputscale"), where, "raw_outputscale"), outer.path
        alone = entry.path == _inside(top)
    if where == "InducingPointKernel":
        alone = alone and top == _inside(found["inducing_points"].path)
    else:
        alone = alone and top.split(".")[-1] != "base_kernel"
    where.need(
        alone,
        "another kernel is around its RBFKernel or MaternKernel; a ScaleKernel directly around can be imported, and an "
        "InducingPointKernel around that",
    )
    where.need(
        (lengths > 0).all() and size > 0, "a length scale or the outputscale is not above 0; train the model again"
    )
    return lengths.ravel(), size


def _inside(path: str) -> str:
    return f"{path}.base_kernel" if path else "base_kernel"


def _factorised(gram: np.ndarray, dtype: np.dtype[Any], where: Place) -> tuple[np.ndarray, tuple[str, ...]]:
    """The factor L of K, and notes.

    If K has no factor in its precision, a number is added to its diagonal, as in GPyTorch.
    """
    for added in (0.0, *(CHOLESKY_JITTER[dtype] * 10**i for i in range(3))):
        more = gram + added * np.eye(len(gram))
        try:
            np.linalg.cholesky(more.astype(dtype))
            factor = np.linalg.cholesky(more)
        except np.linalg.LinAlgError:
            continue
        note = (
            f"{where}: inducing points are so alike that {added:.0e} was added to their kernel matrix, as GPyTorch does"
        )
        return factor, (note,) if added else ()
    raise where.error("the kernel matrix of its inducing points is singular; train with fewer")


def _variational(found: Mapping[str, _Entry], n: int, where: Place) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the variational distribution, (n,) and (n, n)."""
    started = found.get("variational_params_initialized")
    where.need(
        started is None or started.array.all(),
        "its variational distribution was never initialized; train the model first",
    )

    def get(name: str, *shape: int) -> np.ndarray:
        return array_of(found[name].array, shape, where, name)

    if "variational_mean" in found:
        mean = get("variational_mean", n)
        if "chol_variational_covar" in found:
            root = np.tril(get("chol_variational_covar", n, n))
            return mean, root @ root.T
        if "_variational_stddev" in found:
            return mean, np.diag(get("_variational_stddev", n) ** 2)
        return mean, np.zeros((n, n))  # a DeltaVariationalDistribution
    # a CiqVariationalStrategy has the same names, but its parameters belong to another root of K
    where.need(_whitened(found), "has natural parameters; with a VariationalStrategy they can be imported")
    vector = get("natural_vec", n)
    try:
        if "natural_tril_mat" in found:
            inverse = np.linalg.inv(np.tril(get("natural_tril_mat", n, n)))
            return inverse @ (inverse.T @ vector), inverse @ inverse.T
        where.need("natural_mat" in found, "has natural_vec without natural_mat; save the whole state_dict()")
        covariance = np.linalg.inv(-2 * get("natural_mat", n, n))
    except np.linalg.LinAlgError:
        raise where.error("its natural parameters are singular; train the model again") from None
    return covariance @ vector, covariance


def _of_data(
    found: Mapping[str, _Entry],
    factor: np.ndarray,
    gram: Any,
    size: float,
    constant: float,
    noise: float,
    dim: int,
    where: Place,
) -> tuple[np.ndarray, np.ndarray]:
    """m and S from training data, for a model that approximates the data's K by K_XZ K^-1 K_ZX with an exact
    diagonal.
    """
    missing = [name for name in (*DATA, "raw_noise") if name not in found]
    where.need(
        not missing,
        f"{' and '.join(missing)} missing; its values come from the training data: give model.state_dict() | "
        "{'train_inputs': x, 'train_targets': y}",
    )
    x, y = (found[name].array for name in DATA)
    x = x[:, None] if x.ndim == 1 else x
    where.need(
        x.ndim == 2 and x.shape[1] == dim and y.shape == x.shape[:1] and y.size,
        f"train_inputs has shape {x.shape} and train_targets {y.shape}; with {dim} inputs they must have (rows, {dim}) and "
        "(rows,)",
    )
    where.need(
        len(x) * len(factor) <= 4 * NUMBERS_LIMIT,
        f"has {len(x):,} rows of training data, too many for {len(factor)} inducing points",
    )
    z = _solved(factor, gram(x))  # (n, rows)
    spread = noise + np.maximum(size - np.square(z).sum(axis=0), 0.0)
    half = z / np.sqrt(spread)
    precision = np.eye(len(factor)) + half @ half.T
    covariance = np.linalg.inv(precision)
    return covariance @ (z @ ((y - constant) / spread)), covariance
