"""Fitted scikit-learn estimators as kernel machines: what they compute, or which part of them has no C."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.spec.model import DIM_LIMIT, OUTPUTS_LIMIT, shown_value, visible_name
from pykernel.training.trained import Machine, array_of, checked, number_of, require_classes

PARTS = 64
"""Most steps of a pipeline, parts of a Gaussian process's kernel, and terms of the sum that it is."""
MATERN = {1.5: "matern32", 2.5: "matern52"}
"""Matern kernels by their nu."""
KERNELS = {
    "linear": "linear",
    "poly": "polynomial",
    "polynomial": "polynomial",
    "rbf": "gaussian",
    "laplacian": "laplacian",
    "sigmoid": "sigmoid",
}
"""What scikit-learn calls our kernel functions."""
MACHINE = "__pykernel_machine__"
"""The method of an estimator that says itself what it computes, as a Machine: how pykernel's own are known from here."""
OWN = (
    "KernelFisherClassifier",
    "KernelRidgeClassifier",
    "KernelRidgeRegressor",
    "LSSVMClassifier",
    "LSSVMRegressor",
)
"""Those of pykernel that a file may ask for."""


def read_estimator(estimator: Any) -> Machine:
    """What a fitted estimator computes.  Raises UserError, one sentence."""
    try:
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError as error:
        raise MissingExtra("pykernel.importers.importing", "sklearn") from error

    where = type(estimator).__name__
    *scalers, (_, model) = steps_of(estimator)
    readers, center, scale = _readers(), None, None
    if type(model) not in readers and not hasattr(type(model), MACHINE):
        best = "; give its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise UserError(f"{_inside(where, model)} is not a model that can be imported{best or '; ' + _importable()}")
    for part in (*(scaler for _, scaler in scalers), model):
        if hidden := vars(part).keys() & set(dir(type(part))):
            raise UserError(
                f"{_inside(where, part)} has a {shown_value(min(hidden))} of its own; it is not as scikit-learn fits it"
            )
        try:
            # which predicts its prior before it is fitted
            check_is_fitted(part, "X_train_" if type(part).__name__ == "GaussianProcessRegressor" else None)
        except NotFittedError:
            raise UserError(f"{_inside(where, part)} is not fitted; call fit first") from None
        except TypeError:
            raise UserError(f"{_inside(where, part)} is not an estimator; {_importable()}") from None
    for step, scaler in scalers:
        c, f = affine_of_scaler(scaler, f"{where}, step {shown_value(step)}")
        # ((x - center) scale - c) f
        if center is not None and len(center) != len(c):
            raise UserError(
                f"{where}, step {shown_value(step)}: scales {len(c)} inputs, but the one before it {len(center)}"
            )
        center, scale = (c, f) if center is None or scale is None else (center + c / scale, scale * f)
    if model is not estimator:
        where = f"{where}, {type(model).__name__}"
    try:
        machine = readers[type(model)](model, where) if type(model) in readers else getattr(model, MACHINE)()
    except AttributeError as error:
        raise UserError(f"{where}: {error}; it is not as scikit-learn fits it") from None
    if center is not None and scale is not None:
        if len(center) != machine.dim:
            raise UserError(f"{where}: takes {machine.dim} inputs, but the scaler before it has {len(center)}")
        if machine.center is not None:
            center = center + machine.center / scale
        scale = scale if machine.scale is None else scale * machine.scale
        machine = replace(machine, center=center, scale=scale)
    names = getattr(estimator, "feature_names_in_", None)
    source = " of ".join(type(part).__name__ for part in (estimator, model)) if model is not estimator else where
    return replace(checked(machine, where), source=source, columns=spec_columns(names))


def _readers() -> dict[type, Callable[[Any, str], Machine]]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

    return {
        SVC: _svc,
        NuSVC: _svc,
        SVR: _svr,
        NuSVR: _svr,
        OneClassSVM: _svr,
        KernelRidge: _kernel_ridge,
        GaussianProcessRegressor: _gaussian_process,
    }


def scaler_types() -> tuple[type, ...]:
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    return StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler


def _kernels() -> tuple[type, ...]:
    """Parts of a Gaussian process's kernel."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Product, Sum, WhiteKernel

    return RBF, Matern, ConstantKernel, WhiteKernel, Sum, Product


def types() -> set[str]:
    """Names of all types that estimators which can be imported are made of: what a file of one may ask for."""
    from sklearn.pipeline import Pipeline

    from pykernel.bases.basis import Basis
    from pykernel.bases.gram import MercerKernel
    from pykernel.training.reduced import ReducedModel
    from pykernel.training.selection import Selection

    # of pykernel's own machines, which lie above, the names alone: a file's type is imported once it is found here
    own = {f"pykernel.estimators.batch.{name}" for name in OWN}
    found = {*_readers(), *scaler_types(), *_kernels(), Pipeline, Basis, MercerKernel, ReducedModel, Selection}
    return own | {f"{kind.__module__}.{kind.__qualname__}" for kind in found}


def _importable() -> str:
    return (
        "SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, GaussianProcessRegressor and pipelines that end in one of "
        "them are"
    )


def _inside(where: str, part: Any) -> str:
    own = type(part).__name__
    return own if own == where else f"{where}: its {own}"


def steps_of(estimator: Any) -> list[tuple[str, Any]]:
    """The steps of nested pipelines, one after the other; the model is the last."""
    from sklearn.pipeline import Pipeline

    found, left, parts = [], [(type(estimator).__name__, estimator)], 0
    while left:
        name, step = left.pop()
        parts += 1
        if parts > PARTS:  # a file may hold one in itself, or the same one many times
            raise UserError(f"Pipeline: has more than {PARTS} steps; leave some out")
        if type(step) is not Pipeline:
            found.append((str(name), step))
            continue
        steps = [(name, step) for name, step in step.steps if step is not None and not _is_passthrough(step)]
        if not steps:
            raise UserError("Pipeline: has no steps; the last must be a model")
        left.extend(reversed(steps))
    return found


def _is_passthrough(step: Any) -> bool:
    return isinstance(step, str) and step == "passthrough"


def affine_of_scaler(scaler: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """(center, scale) of x -> (x - center) * scale."""
    from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

    kind = type(scaler)
    if kind not in scaler_types():
        raise UserError(
            f"{where}: a {kind.__name__} is not x -> (x - center) * scale for each input; StandardScaler, "
            "MinMaxScaler, MaxAbsScaler and RobustScaler are"
        )
    if getattr(scaler, "clip", False):
        raise UserError(f"{where}: clip=True bends the inputs at the range's ends; fit with clip=False")
    dim = int(scaler.n_features_in_)
    if not 1 <= dim <= DIM_LIMIT:
        raise UserError(f"{where}: scales {dim} inputs; a model takes from 1 to {DIM_LIMIT}")
    zeros, ones = np.zeros(dim), np.ones(dim)
    if kind is MinMaxScaler:
        scale = array_of(scaler.scale_, (dim,), where, "scale_")
        return -array_of(scaler.min_, (dim,), where, "min_") / scale, scale
    # a scaler keeps what it does not use
    center = (scaler.mean_ if scaler.with_mean else None) if kind is StandardScaler else None
    spread = scaler.scale_ if getattr(scaler, "with_std", getattr(scaler, "with_scaling", True)) else None
    if kind is RobustScaler and scaler.with_centering:
        center = scaler.center_
    return (
        zeros if center is None else array_of(center, (dim,), where, "center"),
        ones if spread is None else 1 / array_of(spread, (dim,), where, "scale_"),
    )


def _kernel(where: str, model: Any, gamma: Any) -> dict[str, Any]:
    """Keys of a Machine for a kernel that scikit-learn has under a name."""
    kernel = model.kernel
    if callable(kernel):
        raise UserError(
            f"{where}: kernel is a function of your own, {shown_value(getattr(kernel, '__name__', type(kernel).__name__))}; "
            f"those with C are {', '.join(sorted(KERNELS))}"
        )
    if not isinstance(kernel, str) or kernel not in KERNELS:
        why = " has no vectors to compare with" if kernel == "precomputed" else " has no C"
        raise UserError(f"{where}: kernel {shown_value(kernel)}{why}; those that have are {', '.join(sorted(KERNELS))}")
    found: dict[str, Any] = {"function": KERNELS[kernel]}
    if found["function"] == "linear":
        return found
    found["gamma"] = number_of(gamma, where, "gamma")
    if not found["gamma"] > 0:
        raise UserError(f"{where}: gamma is {gamma:g}, so the kernel would ignore its inputs; it must be above 0")
    if found["function"] in ("polynomial", "sigmoid"):
        found["coef0"] = number_of(model.coef0, where, "coef0")
    if found["function"] == "polynomial":
        degree = number_of(model.degree, where, "degree")
        if degree not in range(1, 10):
            raise UserError(f"{where}: degree is {degree:g}; it must be a whole number from 1 to 9")
        found["degree"] = int(degree)
    return found


def _svc(model: Any, where: str) -> Machine:
    """SVC and NuSVC: one function for each pair of classes, of which two classes have one, the other way round."""
    count = len(model.classes_)
    kernel = _kernel(where, model, model._gamma)
    vectors = _vectors(model.support_vectors_, where)
    n, functions = len(vectors), count * (count - 1) // 2
    require_classes(count, where)
    weights = array_of(model.dual_coef_, (count - 1, n), where, "dual_coef_").T
    bias = array_of(model.intercept_, (functions,), where, "intercept_")
    sizes = np.asarray(model._n_support)
    if sizes.shape != (count,) or sizes.sum() != n or (sizes < 0).any():
        raise UserError(f"{where}: n_support_ does not add up to its {n} support vectors; fit it again")
    _require_intact(model, where, weights.T, bias, sizes)
    prob_a, prob_b = np.asarray(model._probA), np.asarray(model._probB)
    classes = tuple(np.asarray(model.classes_).tolist())
    found = Machine(where, vectors=vectors, weights=weights, bias=bias, classes=classes, **kernel)
    if count == 2:
        if prob_a.size:
            # libsvm's function is ours with the other sign: P(second) = 1 - 1 / (1 + exp(-A f + B))
            a, b = array_of(prob_a, (1,), where, "probA_"), array_of(prob_b, (1,), where, "probB_")
            found = replace(found, calibration=np.column_stack([a, -b]))
        return found
    votes = model.decision_function_shape == "ovr"
    if model.break_ties and not votes:
        raise UserError(f"{where}: break_ties needs decision_function_shape='ovr', here as in scikit-learn's predict")
    notes = (f"{where}: probability=True is left out, for {count} classes have no probabilities in C",)
    return replace(
        found,
        decision="ovo_vote" if votes else "ovo",
        support_class=np.repeat(np.arange(count), sizes),
        break_ties=bool(model.break_ties),
        notes=notes if prob_a.size else (),
    )


def _svr(model: Any, where: str) -> Machine:
    """SVR, NuSVR and OneClassSVM: one function."""
    vectors = _vectors(model.support_vectors_, where)
    weights = array_of(model.dual_coef_, (1, len(vectors)), where, "dual_coef_")
    bias = array_of(model.intercept_, (1,), where, "intercept_")
    _require_intact(model, where, weights, bias, np.zeros(2))
    return Machine(
        where,
        vectors=vectors,
        weights=weights.T,
        bias=bias,
        classes=(-1, 1) if type(model).__name__ == "OneClassSVM" else None,
        **_kernel(where, model, model._gamma),
    )


def _require_intact(model: Any, where: str, weights: np.ndarray, bias: np.ndarray, sizes: np.ndarray) -> None:
    """What libsvm reads by the model's own counts, unchecked, when --check asks the estimator; files are untrusted."""
    dual, vectors = model._dual_coef_, model.support_vectors_
    sparse = hasattr(vectors, "toarray")
    whole = [
        bool(model._sparse) == sparse == hasattr(dual, "toarray"),
        np.array_equal(np.abs(array_of(dual, weights.shape, where, "_dual_coef_")), np.abs(weights)),
        np.array_equal(np.abs(array_of(model._intercept_, bias.shape, where, "_intercept_")), np.abs(bias)),
        not sparse or np.size(dual.data) == weights.size,
        np.shape(model._n_support) == sizes.shape,
        np.shape(model.support_) == (vectors.shape[0],),
        *(np.shape(values) in ((0,), bias.shape) for values in (model._probA, model._probB)),
    ]
    if not all(whole):
        raise UserError(f"{where}: its attributes differ from libsvm's own numbers; fit it again")


def _kernel_ridge(model: Any, where: str) -> Machine:
    vectors = _vectors(model.X_fit_, where)
    gamma = 1 / vectors.shape[1] if model.gamma is None else model.gamma
    weights = _several(model.dual_coef_, len(vectors), where, "dual_coef_")
    bias = np.zeros(weights.shape[1])
    return Machine(where, vectors=vectors, weights=weights, bias=bias, **_kernel(where, model, gamma))


def _gaussian_process(model: Any, where: str) -> Machine:
    """The mean: std * (K alpha) + mean, K = c + s k(x, v), k an RBF or a Matern kernel."""
    terms = _terms(model.kernel_, where, [])  # refused before anything is made of the vectors
    vectors = _vectors(model.X_train_, where)
    dim = vectors.shape[1]
    alpha = _several(model.alpha_, len(vectors), where, "alpha_")
    mean, std = (
        np.broadcast_to(array_of(values, None, where, name), (alpha.shape[1],))
        for name, values in (("_y_train_mean", model._y_train_mean), ("_y_train_std", model._y_train_std))
    )
    constant = sum(size for size, shape in terms if shape is None)
    widths = [(size, shape[1]) for size, shape in terms if shape is not None]
    functions = sorted({shape[0] for _, shape in terms if shape is not None})
    if not widths:
        raise UserError(f"{where}: kernel_ has no RBF, so its mean is a constant; there is nothing to compute")
    if len(functions) > 1:
        raise UserError(f"{where}: kernel_ is a sum of {' and '.join(functions)} kernels; one of them can be computed")
    function, first = functions[0], widths[0][1]
    if first.size not in (1, dim):
        raise UserError(f"{where}: kernel_ has {first.size} length scales for {dim} inputs")
    if any(inverse.shape != first.shape or not np.allclose(inverse, first, rtol=1e-12) for _, inverse in widths[1:]):
        kinds = "RBFs" if function == "gaussian" else "Matern kernels"
        raise UserError(f"{where}: kernel_ is a sum of {kinds} of different length scales; one of them can be computed")
    size = sum(size for size, _ in widths)
    bias = mean + std * constant * alpha.sum(axis=0)
    weights = size * alpha * std
    # gamma of inputs over their length scales
    unit = {"gaussian": 0.5, "matern32": math.sqrt(3), "matern52": math.sqrt(5)}[function]
    if first.size == 1:
        inverse = float(first.ravel()[0])
        gamma = inverse / 2 if function == "gaussian" else unit * math.sqrt(inverse)
        return Machine(where, function, vectors, weights, bias, gamma=gamma)
    scale = np.sqrt(first)
    return Machine(where, function, vectors * scale, weights, bias, gamma=unit, scale=scale)


def _terms(kernel: Any, where: str, seen: list[Any]) -> list[tuple[float, tuple[str, np.ndarray] | None]]:
    """A kernel as a sum of size * k(x, v), k given by its name and one over the squares of its length scales; no k where
    the kernel is constant.  seen: its parts up to here.

    Between different samples WhiteKernel is zero.
    """
    from sklearn.gaussian_process import kernels

    kind = type(kernel)
    seen.append(kernel)
    if len(seen) > PARTS:  # a file may hold the same one many times
        raise UserError(f"{where}: kernel_ has more than {PARTS} parts; fit it with fewer")
    if kind not in _kernels():
        raise UserError(
            f"{where}: kernel_ holds a {kind.__name__}, which has no C; those that have are RBF and Matern, times and plus "
            "ConstantKernel, plus WhiteKernel"
        )
    if kind is kernels.ConstantKernel:
        return [(number_of(kernel.constant_value, where, "constant_value"), None)]
    if kind is kernels.WhiteKernel:
        return []
    if kind in (kernels.RBF, kernels.Matern):
        function = "gaussian" if kind is kernels.RBF else MATERN.get(number_of(kernel.nu, where, "nu"))
        if function is None:
            raise UserError(f"{where}: kernel_ holds a Matern with nu {kernel.nu:g}; those with C have 1.5 or 2.5")
        length = np.atleast_1d(array_of(kernel.length_scale, None, where, "length_scale"))
        if length.ndim != 1 or not (length > 0).all():
            raise UserError(f"{where}: length_scale must be above 0")
        return [(1.0, (function, length**-2))]
    first, second = _terms(kernel.k1, where, seen), _terms(kernel.k2, where, seen)
    if kind is kernels.Sum:
        return first + second

    def product(p: Any, q: Any) -> Any:
        if p is None or q is None:
            return p or q
        if p[0] != q[0] or p[0] != "gaussian":
            raise UserError(f"{where}: kernel_ is a product of Matern kernels, which has no C; one times constants has")
        return p[0], p[1] + q[1]

    if len(first) * len(second) > PARTS:
        raise UserError(f"{where}: kernel_ is a sum of more than {PARTS} products; fit it with fewer")
    return [(a * b, product(p, q)) for a, p in first for b, q in second]


# ----------------------------------------------------------------------------------------------------- their parts


def _vectors(values: Any, where: str) -> np.ndarray:
    """(n, DIM) in float64; sparse ones are written out, once it is known that they are not too large."""
    shape: tuple[int, ...] = getattr(values, "shape", ())
    if len(shape) != 2:
        raise UserError(f"{where}: its vectors are not a table of numbers")
    if not 1 <= shape[1] <= DIM_LIMIT:
        raise UserError(f"{where}: takes {shape[1]:,} inputs; a model takes from 1 to {DIM_LIMIT:,}")
    return array_of(values, shape, where, "vectors")


def _several(values: Any, n: int, where: str, name: str) -> np.ndarray:
    """(n, outputs) of (n,) or (n, outputs)."""
    shape = np.shape(values)
    array = array_of(values, shape if shape[:1] == (n,) and len(shape) <= 2 else (n,), where, name)
    array = array.reshape(n, -1)
    if not 1 <= array.shape[1] <= OUTPUTS_LIMIT:
        raise UserError(f"{where}: has {array.shape[1]} targets; a model has from 1 to {OUTPUTS_LIMIT}")
    return array


def spec_columns(names: Any) -> tuple[str, ...] | None:
    """Names of inputs, if a spec can write them."""
    if names is None or len(names) > DIM_LIMIT:
        return None
    try:
        columns = tuple(visible_name(name) for name in names if isinstance(name, str))
    except ValueError:
        return None
    return columns if len(columns) == len(names) and len(set(columns)) == len(columns) else None
