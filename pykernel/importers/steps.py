"""Fold the steps before a model in a pipeline into the model: affine maps, selections of inputs, and kernel features.

A chain of scalers, selections and projections is one affine map.  A map without a matrix becomes the model's center and
scale.  The matrix of a projection is multiplied into the vectors of the model.  The model must then be linear, a
network, a model on random Fourier features, or a kernel machine with a kernel of products, not of distances.  For a
kernel of products, a constant that the map adds after the matrix must be equivalent to another center of the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from pykernel.importers.place import Place
from pykernel.spec.kernel_settings import HIDDEN, UNIT
from pykernel.spec.model import DIM_LIMIT, shown_value
from pykernel.training.machine import Machine, array_of, number_of
from pykernel.training.trained import shifted

FILE = Place("")
KERNELS = {
    "linear": "linear",
    "poly": "polynomial",
    "polynomial": "polynomial",
    "rbf": "gaussian",
    "laplacian": "laplacian",
    "sigmoid": "sigmoid",
}
"""Name of a kernel in scikit-learn -> name in a spec."""
EXACT = 1e-10
"""An added offset can be moved into the center of the inputs if the error that this leaves is at most EXACT times
(1 + |offset|).
"""
SIGNAL = "__pykernel_signal__"
"""Name of a method that a step has only if it computes features of raw samples; such a step must be the first one.  The
method returns a spec with the step's [signal]."""


@dataclass(frozen=True)
class Affine:
    """The map z = matrix ((x[taken] - center) * scale) + offset, or z = (x[taken] - center) * scale without a matrix.

    taken: (DIM,) positions among the ``inputs`` numbers of x; center, scale: (DIM,); matrix: (width, DIM).
    """

    inputs: int
    taken: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    matrix: np.ndarray | None = None
    offset: np.ndarray | float = 0.0
    mixed_by: str = ""  # name of the step with a matrix, for messages
    notes: tuple[str, ...] = ()

    @classmethod
    def identity(cls, dim: int) -> Affine:
        return cls(dim, np.arange(dim), np.zeros(dim), np.ones(dim))

    @property
    def width(self) -> int:
        """The length of z."""
        return len(self.taken) if self.matrix is None else len(self.matrix)

    def scaled(self, center: np.ndarray, scale: np.ndarray) -> Affine:
        """Return the map followed by z -> (z - center) * scale."""
        if self.matrix is None:
            return replace(self, center=self.center + center / self.scale, scale=self.scale * scale)
        return replace(self, matrix=self.matrix * scale[:, None], offset=(self.offset - center) * scale)

    def selected(self, kept: np.ndarray, where: Place) -> Affine:
        """Return the map followed by z -> z[kept]."""
        where.need(len(kept), "keeps no input; fit the step so that at least one input is kept")
        if self.matrix is None:
            return replace(self, taken=self.taken[kept], center=self.center[kept], scale=self.scale[kept])
        offset = np.broadcast_to(self.offset, (self.width,))
        return replace(self, matrix=self.matrix[kept], offset=offset[kept])

    def mixed(self, matrix: np.ndarray, where: Place) -> Affine:
        """Return the map followed by z -> matrix z."""
        offset = matrix @ np.broadcast_to(self.offset, (self.width,))
        whole = matrix if self.matrix is None else matrix @ self.matrix
        return replace(self, matrix=whole, offset=offset, mixed_by=where)


# ------------------------------------------------------------------------------------------------- the steps, one by one


def sklearn_types(names: Mapping[str, str]) -> tuple[type, ...]:
    """Return the scikit-learn types with these names.  names: dict that maps each module to the names of its types."""
    return tuple(
        getattr(import_module(f"sklearn.{module}"), name) for module, own in names.items() for name in own.split()
    )


def scaler_types() -> tuple[type, ...]:
    return sklearn_types({"preprocessing": "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler"})


def affine_types() -> dict[type, Callable[[Affine, Any, Place], Affine]]:
    """Return a dict that maps each type of affine step to the function that appends the step to a map."""
    others = {"impute": "SimpleImputer", "compose": "ColumnTransformer", "decomposition": "PCA"}
    selectors = {"feature_selection": "SelectKBest SelectPercentile VarianceThreshold"}
    return {
        **dict.fromkeys(scaler_types(), _scaler),
        **dict.fromkeys(sklearn_types(selectors), _selector),
        **dict(zip(sklearn_types(others), (_imputer, _columns, _projection), strict=True)),
    }


def kernel_types() -> tuple[type, ...]:
    """Return the types of the steps that compute kernel features.  Such a step and a linear model after it form a kernel
    machine.
    """
    return sklearn_types({"kernel_approximation": "Nystroem RBFSampler"})


NEAR = {
    "AdditiveChi2Sampler": "use an RBFSampler or a Nystroem before a linear model instead",
    "SkewedChi2Sampler": "use an RBFSampler or a Nystroem before a linear model instead",
    "PolynomialCountSketch": "use a Nystroem before a linear model instead",
    "PolynomialFeatures": "use a KernelRidge or an SVM with a polynomial kernel instead",
    "PowerTransformer": "use a StandardScaler instead",
    "QuantileTransformer": "use a RobustScaler instead",
    "Normalizer": "use a kernel with normalise = true instead, which compares directions",
    "OneHotEncoder": "encode the categories before the pipeline, and pass the columns as numbers",
}
"""Step that is not an affine map -> advice on a replacement."""


def after(affine: Affine | None, step: Any, where: Place) -> Affine:
    """Return the map followed by a step. Raises UserError, one sentence."""
    from sklearn.feature_selection import SelectorMixin

    kind = type(step)
    theirs = kind.__module__.partition(".")[0] == "sklearn"
    append = affine_types().get(kind, _selector if theirs and isinstance(step, SelectorMixin) else None)
    where.need(
        not hasattr(kind, SIGNAL),
        f"a {kind.__name__} must be the first step of a pipeline that ends in a frozen model; for a model that learns on the "
        "device, write [signal] into its spec",
    )
    where.need(
        append is not None or theirs,
        f"a {kind.__name__} is a class of your own, which cannot be translated to C; use scalers, selections and projections of "
        "scikit-learn, or train on its output and pass that output to the device as inputs",
    )
    if append is None:
        near = NEAR.get(kind.__name__, "scalers, selections and projections can be translated to C")
        raise where.error(f"a {kind.__name__} is not an affine map of the inputs; {near}")
    require_fitted(step, where)
    width = int(getattr(step, "n_features_in_", 0))
    if affine is None:
        require_inputs(width, where)
        affine = Affine.identity(width)
    where.need(affine.width == width, f"takes {width} inputs, but the step before it gives {affine.width}")
    return append(affine, step, where)


def require_inputs(count: int, where: Place) -> None:
    where.need(1 <= count <= DIM_LIMIT, f"takes {count:,} inputs; a model takes from 1 to {DIM_LIMIT:,}")


def require_fitted(part: Any, where: Place) -> None:
    """Raise UserError unless a part is fitted."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    kind = type(part).__name__
    inside = where if where == kind or ", step " in where else f"{where}: its {kind}"
    try:
        # name an attribute, because scikit-learn accepts an unfitted Gaussian process, which can predict its prior
        check_is_fitted(part, "X_train_" if kind == "GaussianProcessRegressor" else None)
    except NotFittedError:
        raise FILE.error(f"{inside} is not fitted; call fit first") from None
    except TypeError:
        raise FILE.error(f"{inside} is not an estimator of scikit-learn") from None


def _scaler(affine: Affine, step: Any, where: Place) -> Affine:
    """Append z -> (z - center) * scale."""
    clips, dim = getattr(step, "clip", False), affine.width
    where.need(not clips, "clip=True is not an affine map; fit the scaler with clip=False")
    kind, center, spread = type(step).__name__, None, None
    if kind == "MinMaxScaler":
        scale = array_of(step.scale_, (dim,), where, "scale_")
        return affine.scaled(-array_of(step.min_, (dim,), where, "min_") / scale, scale)
    # a scaler may also have attributes that it does not use
    if getattr(step, "with_std", getattr(step, "with_scaling", True)):
        spread = step.scale_
    if getattr(step, "with_mean", getattr(step, "with_centering", False)):
        center = step.mean_ if kind == "StandardScaler" else step.center_
    return affine.scaled(
        np.zeros(dim) if center is None else array_of(center, (dim,), where, "center"),
        np.ones(dim) if spread is None else 1 / array_of(spread, (dim,), where, "scale_"),
    )


def _projection(affine: Affine, step: Any, where: Place) -> Affine:
    """Append z -> components (z - mean), whitened or not."""
    components = step.components_
    # use a fixed memory order, because the rounding of sums depends on it
    matrix = np.ascontiguousarray(array_of(components, (np.shape(components)[0], affine.width), where, "components_"))
    if step.whiten:
        variance = array_of(step.explained_variance_, (len(matrix),), where, "explained_variance_")
        matrix = matrix / np.maximum(np.sqrt(variance), np.finfo(np.float64).eps)[:, None]
    mean = array_of(step.mean_, (affine.width,), where, "mean_")
    return affine.scaled(mean, np.ones(affine.width)).mixed(matrix, where)


def _selector(affine: Affine, step: Any, where: Place) -> Affine:
    return affine.selected(np.asarray(step.get_support(indices=True)), where)


def _imputer(affine: Affine, step: Any, where: Place) -> Affine:
    """Append only the removal of the features that an imputer drops.  Its replacements are left out, because the device
    refuses a row with a missing (NaN) input.
    """
    missing = step.missing_values
    where.need(
        isinstance(missing, float) and math.isnan(missing),
        f"missing_values is {shown_value(missing)}; only NaN is supported, because the device refuses a sample with a NaN",
    )
    where.need(
        not step.add_indicator, "add_indicator=True adds inputs that mark missing values; fit with add_indicator=False"
    )
    statistics = np.asarray(step.statistics_)
    where.need(
        statistics.shape == (affine.width,) and statistics.dtype.kind == "f",
        "statistics_ must hold a number for each input; fit the imputer on numbers",
    )
    note = f"{where}: this step is left out, because the device refuses a sample with a missing (NaN) input"
    affine = replace(affine, notes=(*affine.notes, note))
    if np.isnan(statistics).any() and not step.keep_empty_features:
        return affine.selected(np.flatnonzero(~np.isnan(statistics)), where)
    return affine


def _columns(affine: Affine, step: Any, where: Place) -> Affine:
    """Append the scalers and selections of a ColumnTransformer, each for its own columns."""
    parts = []
    for name, part, _ in step.transformers_:
        columns = np.asarray(step._transformer_to_input_indices[name], int)
        if not len(columns) or (isinstance(part, str) and part == "drop"):
            continue
        own, inside = affine.selected(columns, where), where.step(name)
        for _, each in () if is_passthrough(part) else steps_of(part):
            kind = type(each)
            inside.need(
                kind not in kernel_types(),
                f"a {kind.__name__} must stand directly before a linear model, outside of a ColumnTransformer",
            )
            own = after(own, each, inside)
        factor = number_of((step.transformer_weights or {}).get(name, 1.0), inside, "transformer_weights")
        parts.append(own.scaled(np.zeros(own.width), np.full(own.width, factor)))
    where.need(parts, "keeps no input; fit the step so that at least one input is kept")
    taken, center, scale = (
        np.concatenate([getattr(part, key) for part in parts]) for key in ("taken", "center", "scale")
    )
    where.need(
        len(np.unique(taken)) == len(taken) and all(part.matrix is None for part in parts),
        "mixes inputs, or uses a column twice; pass each column through scalers or a selection once, and put a PCA after the ColumnTransformer",
    )
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return replace(parts[0], taken=taken, center=center, scale=scale, notes=notes)


def steps_of(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of nested pipelines, one after the other.  The model is the last step.

    A hyperparameter search is replaced with its best estimator.
    """
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline

    found, left, where = [], [(type(estimator).__name__, estimator)], Place("Pipeline")
    while left:
        name, step = left.pop()
        if type(step) is FrozenEstimator:
            left.append((name, step.estimator))
        elif type(step).__module__.startswith("sklearn.model_selection.") and hasattr(step, "best_estimator_"):
            left.append((name, step.best_estimator_))
        elif type(step) is not Pipeline:
            found.append((str(name), step))
        else:
            steps = [(name, step) for name, step in step.steps if step is not None and not is_passthrough(step)]
            where.need(steps, "has no steps; the last must be a model")
            left.extend(reversed(steps))
    return found


def is_passthrough(step: Any) -> bool:
    return isinstance(step, str) and step == "passthrough"


def affine_of(estimator: Any, where: Place) -> Affine:
    """Return the map of a scaler, or of a pipeline of affine steps.  Raises UserError, one sentence."""
    affine = None
    for name, step in steps_of(estimator):
        affine = after(affine, step, where if step is estimator else where.step(name))
    assert affine is not None
    return affine


# ------------------------------------------------------------------------------------------------- into the model


def behind(machine: Machine, affine: Affine, where: Place) -> Machine:
    """Return the machine composed with a map before it: x -> machine(affine(x)).

    O(n D^2) for n vectors and D inputs if the map has a matrix.  Raises UserError if the result cannot be translated
    to C.
    """
    where.need(
        affine.width == machine.taking,
        f"takes {machine.taking} inputs, but the step before it gives {affine.width}",
    )
    if machine.taken is not None:
        affine = affine.selected(np.asarray(machine.taken), where)
    if machine.seen is not None:
        seen = None if affine.matrix is not None else machine.seen / affine.scale + affine.center
        machine = replace(machine, seen=seen)
    if machine.largest is not None:  # a nominal size, because the vectors do not show how large inputs are
        nominal = float((machine.largest / np.abs(affine.scale) + np.abs(affine.center)).max())
        machine = replace(machine, largest=nominal)
    if machine.center is not None or machine.scale is not None:
        affine = affine.scaled(*_scaling(machine))
    if affine.matrix is not None:
        machine, affine = _without_matrix(machine, affine)
    whole = np.array_equal(affine.taken, np.arange(affine.inputs))
    return replace(
        machine,
        center=affine.center if affine.center.any() else None,
        scale=affine.scale if (affine.scale != 1).any() else None,
        taken=None if whole else tuple(affine.taken.tolist()),
        inputs_of_source=affine.inputs,
        columns=None,
        notes=(*affine.notes, *machine.notes),
    )


def _scaling(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Return the machine's center and scale, (DIM,)."""
    return (
        np.zeros(machine.dim) if machine.center is None else machine.center,
        np.ones(machine.dim) if machine.scale is None else machine.scale,
    )


def taking_all(machine: Machine, where: Place) -> Machine:
    """Return a machine that takes all inputs of the source, in the source's order.

    Raises UserError if an unused input cannot be added without changing the values.
    """
    if machine.taken is None:
        return machine
    taken = list(machine.taken)
    center, scale, vectors = (
        np.zeros(machine.taking),
        np.ones(machine.taking),
        np.zeros((len(machine.vectors), machine.taking)),
    )
    center[taken], scale[taken] = _scaling(machine)
    vectors[:, taken] = machine.vectors
    where.need(
        len(taken) == machine.taking or machine.function not in UNIT,
        f"uses {len(taken)} of {machine.taking} features, and a {machine.function} kernel cannot ignore the remaining features; "
        "remove these in the first step",
    )
    ends = [None if (array == usual).all() else array for array, usual in ((center, 0), (scale, 1))]
    return replace(machine, taken=None, vectors=vectors, center=ends[0], scale=ends[1], seen=None)


def _without_matrix(machine: Machine, affine: Affine) -> tuple[Machine, Affine]:
    """Return the machine for inputs (x - center) * scale, and the map without its matrix."""
    m, t = affine.matrix, np.broadcast_to(affine.offset, (affine.width,))
    assert m is not None
    machine = replace(machine, mixes=machine.mixes + affine.width + m.shape[1])
    plain = replace(affine, matrix=None, offset=0.0)
    if machine.linear:
        slope = 1.0 if machine.function == "linear" else machine.gamma
        bias = machine.bias + slope * machine.columns_of_weights().T @ (machine.vectors @ t)
        return replace(machine, vectors=machine.vectors @ m, bias=bias), plain
    by = Place(affine.mixed_by)
    if machine.function in HIDDEN:
        return replace(machine, vectors=machine.vectors @ m, offsets=shifted(machine, machine.vectors @ t)), plain
    by.need(
        machine.function not in (*UNIT, "custom") and not machine.normalise,
        "mixes inputs before a kernel that is not a function of a dot product; use a linear model after it",
    )
    # for kernels of products, the added offset must be moved into the center of the inputs
    moved = np.linalg.lstsq(m, t, rcond=None)[0]
    by.need(
        (np.abs(m @ moved - t) <= EXACT * (1 + np.abs(t))).all(),
        f"adds constants that cannot be moved into the inputs of a {machine.function} kernel; leave out the scaler after "
        "it, or use a linear model after it",
    )
    return replace(machine, vectors=machine.vectors @ m), replace(plain, center=plain.center - moved / plain.scale)


def composed(machine: Machine, features: Machine, where: Place) -> Machine:
    """Compose a linear machine with features that are the functions of another machine.

    O(n W F) for n vectors, W features and F functions.
    """
    where.need(
        machine.linear,
        f"has a {machine.function} kernel after a {features.source}, which cannot be translated to C; use a linear model after it",
    )
    where.need(
        machine.support_class is None,
        f"has a function for each pair of classes after a {features.source}; use LinearSVC, which has a function for each class",
    )
    slope, offset = (1.0, 0.0) if machine.function == "linear" else (machine.gamma, machine.coef0)
    columns, (center, scale) = machine.columns_of_weights(), _scaling(machine)
    linear = slope * columns.T @ machine.vectors * scale
    bias = machine.bias + offset * columns.sum(axis=0) - linear @ center
    if machine.taken is not None:
        whole = np.zeros((len(linear), machine.taking))
        whole[:, list(machine.taken)] = linear
        linear = whole
    return replace(
        features,
        weights=features.weights @ linear.T,
        bias=bias + linear @ features.bias,
        gross=np.abs(features.weights) @ np.abs(linear).T,
        mixes=machine.mixes + features.weights.shape[0] + features.weights.shape[1],
        decision=machine.decision,
        classes=machine.classes,
        calibration=machine.calibration,
        label=machine.label,
        notes=(*features.notes, *machine.notes),
    )


def features_of(step: Any, width: int | None, where: Place) -> tuple[int, Callable[[Machine], Machine]] | None:
    """For a step that computes kernel features, return the number of features and a function that folds the step into a
    linear machine.  For other steps, return None.
    """
    kind = type(step)
    if kind not in kernel_types():
        return None
    require_fitted(step, where)
    where.need(
        width is None or width == step.n_features_in_,
        f"takes {step.n_features_in_} inputs, but the step before it gives {width}",
    )
    features = (_nystroem if kind.__name__ == "Nystroem" else _fourier)(step, where)
    return len(features.bias), lambda machine: composed(machine, features, where)


def kernel_keys(where: Place, model: Any, gamma: Any) -> dict[str, Any]:
    """Return the arguments of ``Machine`` for a kernel that scikit-learn knows by its name."""
    kernel = model.kernel
    known = f"the kernels that can be translated to C are {', '.join(sorted(KERNELS))}"
    if callable(kernel):
        own = getattr(kernel, "__name__", type(kernel).__name__)
        raise where.error(f"kernel is a function of your own, {shown_value(own)}; {known}")
    if not isinstance(kernel, str) or kernel not in KERNELS:
        why = " keeps no vectors, which the device needs" if kernel == "precomputed" else " cannot be translated"
        raise where.error(f"kernel {shown_value(kernel)}{why}; {known}")
    return kernel_of(where, KERNELS[kernel], {"gamma": gamma, "coef0": model.coef0, "degree": model.degree})


KEYS_OF = {"linear": (), "gaussian": ("gamma",), "laplacian": ("gamma",), "sigmoid": ("gamma", "coef0")}
"""Kernel -> its parameters.  All other kernels have gamma, coef0 and degree."""


def kernel_of(where: Place, function: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``Machine`` for a kernel. numbers: the kernel's parameters by name; others are
    ignored.
    """
    keys = KEYS_OF.get(function, ("gamma", "coef0", "degree"))
    found = {key: number_of(numbers[key], where, key) for key in keys}
    gamma, degree = found.get("gamma", 1.0), found.get("degree", 1.0)
    where.need(gamma > 0, f"gamma is {gamma:g}, so the kernel would ignore its inputs; gamma must be above 0")
    where.need(degree in range(1, 10), f"degree is {degree:g}; it must be a whole number from 1 to 9")
    whole = {"degree": int(degree)} if "degree" in found else {}
    return {"function": function, **found, **whole}


def table(values: Any, where: Place) -> np.ndarray:
    """Return a table (n, DIM) in float64.  A sparse table is converted to a dense table after a check of its size."""
    shape: tuple[int, ...] = getattr(values, "shape", ())
    where.need(len(shape) == 2, "its vectors must be a table of numbers")
    require_inputs(shape[1], where)
    return array_of(values, shape, where, "vectors")


def _nystroem(step: Any, where: Place) -> Machine:
    vectors = table(step.components_, where)
    own = {key: getattr(step, key) for key in ("gamma", "coef0", "degree") if getattr(step, key) is not None}
    given = {"coef0": 1, "degree": 3, "gamma": None, **(step.kernel_params or {}), **own}
    gamma = 1 / vectors.shape[1] if given["gamma"] is None else given["gamma"]
    kernel = kernel_keys(where, SimpleNamespace(**{**given, "kernel": step.kernel}), gamma)
    weights = array_of(step.normalization_, (len(vectors), len(vectors)), where, "normalization_").T
    return Machine("Nystroem", vectors=vectors, weights=weights, bias=np.zeros(len(vectors)), **kernel)


def _fourier(step: Any, where: Place) -> Machine:
    """Read random Fourier features sqrt(2 / n) cos(w'x + b), with w and b converted to turns."""
    weights = table(step.random_weights_, where)
    count = weights.shape[1]
    offsets = array_of(step.random_offset_, (count,), where, "random_offset_") / (2 * np.pi)
    return Machine(
        "RBFSampler",
        "fourier",
        vectors=weights.T / (2 * np.pi),
        weights=math.sqrt(2 / count) * np.eye(count),
        bias=np.zeros(count),
        offsets=np.remainder(offsets, 1.0),
        largest=1.0,
    )
