"""Convert fitted scikit-learn estimators to kernel machines, or raise an error that names the part that cannot be translated to C."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pykernel.dialect import PRECISIONS
from pykernel.errors import MissingExtra
from pykernel.importers.place import Place
from pykernel.importers.steps import (
    FILE,
    SIGNAL,
    Affine,
    after,
    behind,
    features_of,
    kernel_keys,
    require_fitted,
    sklearn_types,
    steps_of,
    table,
    taking_all,
)
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import DIM_LIMIT, OUTPUTS_LIMIT, Spec, shown_value, visible_name
from pykernel.spec.sections import ROWS_LIMIT
from pykernel.training.machine import Machine, array_of, checked, number_of, require_classes
from pykernel.training.trained import collapsed

MATERN_NU = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", math.inf: "gaussian"}
"""nu of a Matern kernel in scikit-learn -> the kernel in a spec."""
MACHINE = "__pykernel_machine__"
"""Name of the method that returns an estimator's Machine.  pykernel's estimators are recognised by this method."""
LEARNS = "__pykernel_learned__"
"""Name of a method that an estimator has only if its model continues to learn on the device."""
KERNELS = {"gaussian_process.kernels": "RBF Matern RationalQuadratic ConstantKernel WhiteKernel Sum Product DotProduct"}
"""Types that may be parts of a Gaussian process's kernel: scikit-learn module -> names."""


def read_estimator(estimator: Any) -> Machine:
    """Return the machine of a fitted estimator.  Raises UserError, one sentence."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("pykernel.importers.importing", "sklearn") from error

    where = Place(type(estimator).__name__)
    machine = checked(_read(estimator, where), where)
    model = steps_of(estimator)[-1][1]
    source = " of ".join(type(part).__name__ for part in (estimator, model)) if model is not estimator else where
    names = getattr(estimator, "feature_names_in_", None)
    notes = machine.notes
    if machine.taken is not None:
        used = [str(at) if names is None else str(names[at]) for at in machine.taken]
        names = None if names is None else [names[at] for at in machine.taken]
        shown = ", ".join(used[:8]) + (", …" if len(used) > 8 else "")
        notes = (
            *notes,
            f"{source}: uses {len(used)} of {machine.taking} inputs, so the device takes only these: {shown}",
        )
    return replace(machine, source=source, columns=spec_columns(names), notes=tuple(dict.fromkeys(notes)))


def _read(estimator: Any, where: Place) -> Machine:
    """Return the machine of an estimator. The steps of a pipeline are folded into the machine."""
    *before, (_, model) = steps_of(estimator)
    signal, before = _signal(before, where)
    kind, reader = type(model), _readers().get(type(model))
    if reader is None and not hasattr(kind, MACHINE):
        inside = where if kind.__name__ == where else f"{where}: its {kind.__name__}"
        why = f"is not a model that can be imported; {NEAR.get(kind.__name__, IMPORTABLE)}"
        if hasattr(kind, LEARNS):
            why = (
                f"continues to learn, and a spec cannot hold its state; give the fitted {where} to pykernel.generate, which "
                "writes C code that starts from this state"
            )
        raise FILE.error(f"{inside} {why}")
    affine = None if signal is None else Affine.identity(signal.dim)
    chain: list[Affine | Callable[[Machine], Machine]] = []
    for name, step in before:
        inside = where.step(name)
        features = features_of(step, affine.width if affine is not None else None, inside)
        if features is None:
            affine = after(affine, step, inside)
            continue
        width, made = features
        chain += [made] if affine is None else [affine, made]
        affine = Affine.identity(width)
    if affine is not None:
        chain.append(affine)
    require_fitted(model, where)
    if model is not estimator:
        where = Place(f"{where}, {kind.__name__}")
    try:
        machine = getattr(model, MACHINE)() if reader is None else reader(model, where)
    except AttributeError as error:
        raise where.error(f"{error}; fit the model again with the installed scikit-learn") from None
    first = not chain and signal is None
    where.need(
        machine.signal is None or first, "takes raw samples, so it must be the first step; remove the steps before it"
    )
    for part in reversed(chain):
        machine = behind(machine, part, where) if isinstance(part, Affine) else part(machine)
    return machine if signal is None else replace(taking_all(machine, where), signal=signal)


def _signal(steps: list[tuple[str, Any]], where: Place) -> tuple[Spec | None, list[tuple[str, Any]]]:
    """Return the signal spec of the first step, and the remaining steps.

    If the first step does not compute features of raw samples, the spec is None, and all steps remain.
    """
    if not steps or not hasattr(type(steps[0][1]), SIGNAL):
        return None, steps
    (name, step), *others = steps
    require_fitted(step, where.step(name))
    return getattr(step, SIGNAL)(), others


def _readers() -> dict[type, Callable[[Any, Place], Machine]]:
    """Return a dict that maps each type of model to the function that converts the model to a machine."""
    of_reader: dict[Callable[[Any, Place], Machine], dict[str, str]] = {
        _linear: {
            "linear_model": """ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso LassoCV LassoLars
                LassoLarsCV LassoLarsIC LinearRegression LogisticRegression LogisticRegressionCV OrthogonalMatchingPursuit
                OrthogonalMatchingPursuitCV Perceptron QuantileRegressor Ridge RidgeCV RidgeClassifier RidgeClassifierCV
                SGDClassifier SGDOneClassSVM SGDRegressor TheilSenRegressor TweedieRegressor""",
            "svm": "LinearSVC LinearSVR",
            "discriminant_analysis": "LinearDiscriminantAnalysis",
        },
        _svc: {"svm": "SVC NuSVC"},
        _svr: {"svm": "SVR NuSVR OneClassSVM"},
        _kernel_ridge: {"kernel_ridge": "KernelRidge"},
        _perceptron: {"neural_network": "MLPClassifier MLPRegressor"},
        _gaussian_process: {"gaussian_process": "GaussianProcessRegressor"},
        _calibrated: {"calibration": "CalibratedClassifierCV"},
        _several_targets: {"multioutput": "MultiOutputRegressor"},
        _one_vs_rest: {"multiclass": "OneVsRestClassifier"},
        _transformed_target: {"compose": "TransformedTargetRegressor"},
    }
    return {kind: reader for reader, names in of_reader.items() for kind in sklearn_types(names)}


EXPONENTIAL = "it predicts exp of a linear function; fit a Ridge to the logarithm of the target instead"
NEAR = {
    "PoissonRegressor": EXPONENTIAL,
    "GammaRegressor": EXPONENTIAL,
    "GaussianProcessClassifier": "import an SVC instead; CalibratedClassifierCV(ensemble=False) adds probabilities",
    "MultiOutputClassifier": "import its estimators_ one by one",
    "OneVsOneClassifier": "import an SVC, which also compares pairs of classes, or a OneVsRestClassifier instead",
}
"""Model that cannot be imported -> advice on a replacement."""
IMPORTABLE = (
    "support vector machines, kernel ridge regression, Gaussian process regression, linear models, networks with one hidden "
    "layer, and pipelines that end in such a model can be imported"
)


def _svc(model: Any, where: Place) -> Machine:
    """Read SVC and NuSVC, which have one function for each pair of classes.

    With two classes, the only function is positive for the second class: its sign is the opposite of libsvm's.
    """
    count = len(model.classes_)
    kernel = kernel_keys(where, model, model._gamma)
    vectors = table(model.support_vectors_, where)
    n, functions = len(vectors), count * (count - 1) // 2
    require_classes(count, where)
    weights = array_of(model.dual_coef_, (count - 1, n), where, "dual_coef_").T
    bias = array_of(model.intercept_, (functions,), where, "intercept_")
    sizes = np.asarray(model._n_support)
    where.need(
        sizes.shape == (count,) and sizes.sum() == n and (sizes >= 0).all(),
        f"n_support_ does not add up to its {n} support vectors; fit the model again",
    )
    votes = model.decision_function_shape == "ovr"
    where.need(
        votes or count == 2 or not model.break_ties,
        "break_ties needs decision_function_shape='ovr', as in scikit-learn's predict",
    )
    classes = tuple(np.asarray(model.classes_).tolist())
    machine = Machine(where, vectors=vectors, weights=weights, bias=bias, classes=classes, **kernel)
    sigmoids = {"probA_": model._probA, "probB_": model._probB} if np.size(model._probA) else {}
    machine = of_pairs(machine, sizes, sigmoids, where, "probability=True is")
    if count == 2:
        return machine
    return replace(machine, decision="ovo_vote" if votes else "ovo", break_ties=bool(model.break_ties))


def of_pairs(machine: Machine, sizes: Any, sigmoids: Mapping[str, Any], where: Place, note_start: str) -> Machine:
    """Return the machine as a classifier whose functions are libsvm's functions for pairs of classes.

    sizes: the number of vectors of each class.  sigmoids: the sigmoid's parameters A and B by name, if the model has
    probabilities.  Probabilities of more than two classes cannot be translated to C.  note_start: the beginning of a note
    that the probabilities are left out, such as "probability=True is".
    """
    count = len(machine.classes or ())
    if count > 2:
        note = f"{where}: {note_start} left out, because probabilities of {count} classes cannot be translated to C"
        support_class = np.repeat(np.arange(count), sizes)
        return replace(machine, decision="ovo", support_class=support_class, notes=(note,) if sigmoids else ())
    if not sigmoids:
        return machine
    # libsvm's function has the opposite sign of the function f here: P(second) = 1 - 1 / (1 + exp(-A f + B))
    a, b = (array_of(values, (1,), where, name) for name, values in sigmoids.items())
    return replace(machine, calibration=np.column_stack([a, -b]))


def _svr(model: Any, where: Place) -> Machine:
    """Read SVR, NuSVR and OneClassSVM, which have one function."""
    vectors = table(model.support_vectors_, where)
    weights = array_of(model.dual_coef_, (1, len(vectors)), where, "dual_coef_")
    bias = array_of(model.intercept_, (1,), where, "intercept_")
    return Machine(
        where,
        vectors=vectors,
        weights=weights.T,
        bias=bias,
        classes=(-1, 1) if type(model).__name__ == "OneClassSVM" else None,
        **kernel_keys(where, model, model._gamma),
    )


def _kernel_ridge(model: Any, where: Place) -> Machine:
    vectors = table(model.X_fit_, where)
    gamma = 1 / vectors.shape[1] if model.gamma is None else model.gamma
    weights = _several(model.dual_coef_, len(vectors), where, "dual_coef_")
    bias = np.zeros(weights.shape[1])
    return Machine(where, vectors=vectors, weights=weights, bias=bias, **kernel_keys(where, model, gamma))


def _gaussian_process(model: Any, where: Place) -> Machine:
    """Read the mean of a Gaussian process: std * (K alpha) + mean.

    K = c + s k(x, v) is the sum of ``_terms``: c is the sum of the constant terms, and the other terms have the same k.
    """
    terms = _terms(model.kernel_, where)  # before the vectors are converted, to refuse a wrong kernel early
    vectors = table(model.X_train_, where)
    dim = vectors.shape[1]
    alpha = _several(model.alpha_, len(vectors), where, "alpha_")
    mean, std = (
        np.broadcast_to(array_of(values, None, where, name), (alpha.shape[1],))
        for name, values in (("_y_train_mean", model._y_train_mean), ("_y_train_std", model._y_train_std))
    )
    constant = sum(size for size, shape in terms if shape is None)
    widths = [(size, shape[1]) for size, shape in terms if shape is not None]
    functions = sorted({shape[0] for _, shape in terms if shape is not None})
    where.need(widths, "kernel_ has only constant terms, so the mean is a constant; there is nothing to compute")
    where.need(
        len(functions) == 1, f"kernel_ is a sum of {' and '.join(functions)} kernels; only one kind is supported"
    )
    function, first = functions[0], widths[0][1]
    where.need(
        function in ("polynomial", "rational-quadratic") or first.size in (1, dim),
        f"kernel_ has {first.size} length scales for {dim} inputs",
    )
    alike = (inverse.shape == first.shape and np.allclose(inverse, first, rtol=1e-12) for _, inverse in widths[1:])
    kinds = {"gaussian": "RBFs", "polynomial": "dot products", "rational-quadratic": "RationalQuadratics"}
    kind = kinds.get(function, "Matern kernels")
    where.need(all(alike), f"kernel_ is a sum of {kind} with different parameters; use only one of them")
    size = sum(size for size, _ in widths)
    bias = mean + std * constant * alpha.sum(axis=0)
    weights = size * alpha * std
    if function == "polynomial":
        coef0, degree = first
        return Machine(where, function, vectors, weights, bias, coef0=float(coef0), degree=int(degree))
    if function == "rational-quadratic":
        gamma, alpha = first
        return Machine(where, function, vectors, weights, bias, gamma=float(gamma), alpha=float(alpha))
    return with_lengths(Machine(where, function, vectors, weights, bias), first)


def with_lengths(machine: Machine, inverse_squares: np.ndarray) -> Machine:
    """Return the machine with length scales in its Gaussian or Matern kernel.

    inverse_squares: 1 / length^2, one number for all inputs or one for each input.
    """
    function, vectors = machine.function, machine.vectors
    if function == "matern12" and machine.dim == 1:
        # with one input, this kernel equals the Laplacian kernel, which needs no square root
        function = "laplacian"
    # gamma for inputs that are divided by their length scales
    unit = {"gaussian": 0.5, "laplacian": 1.0, "matern12": 1.0, "matern32": math.sqrt(3), "matern52": math.sqrt(5)}[
        function
    ]
    if inverse_squares.size == 1:
        inverse = float(inverse_squares.ravel()[0])
        gamma = inverse / 2 if function == "gaussian" else unit * math.sqrt(inverse)
        return replace(machine, function=function, gamma=gamma)
    scale = np.sqrt(inverse_squares)
    return replace(machine, function=function, vectors=vectors * scale, gamma=unit, scale=scale)


def posterior(estimator: Any, machine: Machine, precision: str) -> dict[str, Any]:
    """Return the sections [kernel], [learning] and [expansion] of a spec that computes the mean and variance of a Gaussian
    process with rule "nystrom".

    The kernel is A k1, where A is the sum of the factors in ``_terms``.  K1 is the matrix of k1 for the samples, and
    K1 + noise I = L L'.  With z(x) = L^-1 k1(x), the mean is w'z with w = L' A alpha, and the variance is
    A (k1(x, x) - |z|^2) plus the variance of the white noise.  These formulas hold for targets that scikit-learn has
    scaled.  The sections contain the numbers for unscaled targets.  Raises UserError, one sentence.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor

    model, where = steps_of(estimator)[-1][1], Place(machine.source)
    where.need(
        isinstance(model, GaussianProcessRegressor),
        "variance needs a GaussianProcessRegressor, or a pipeline of scalers that ends in one",
    )
    plain = _gaussian_process(model, where)
    where.need(
        plain.vectors.shape == machine.vectors.shape and np.array_equal(plain.weights, machine.weights),
        "variance needs a pipeline with only scalers before the GaussianProcessRegressor",
    )
    where.need(machine.weights.shape[1] == 1, f"has {machine.weights.shape[1]} targets; variance needs one")
    terms = _terms(model.kernel_, where)
    size = sum(size for size, shape in terms if shape is not None)
    constant = sum(size for size, shape in terms if shape is None)
    where.need(constant <= 0, "kernel_ adds a constant to k(x, v); the variance of such a sum is not supported")
    kernel = machine.kernel
    vectors = machine.vectors.astype(PRECISIONS[precision].dtype).astype(float)
    gram = kernel.gram(vectors, vectors)
    white = model.kernel_.diag(model.X_train_) - size * kernel.diagonal(machine.vectors)
    extra = np.broadcast_to(np.asarray(model.alpha, float), white.shape) + white
    # ``white`` is the difference of two numbers as large as the diagonal, so it has their rounding error
    rounding = 1e-13 * float(np.abs(model.kernel_.diag(model.X_train_)).max())
    where.need(
        np.ptp(extra) <= 1e-9 * np.abs(extra).max() + rounding,
        "alpha differs from sample to sample; variance needs one alpha for all samples",
    )
    noise, deviation = max(0.0, float(extra.mean())) / size, float(np.ravel(model._y_train_std)[0])
    try:
        factor = np.linalg.cholesky(gram + noise * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        factor = np.zeros_like(gram)
    least = LEAST_ALD_THRESHOLD[precision]
    where.need(
        (factor.diagonal() ** 2 > least * (gram.diagonal() + noise)).all(),
        f"samples are too alike for {precision}; train with a larger alpha or a WhiteKernel, or with fewer samples"
        + (", or take precision='float64'" if precision == "float32" else ""),
    )
    return {
        "kernel": kernel.section(),
        "learning": {"rule": "nystrom"},
        "expansion": {
            "vectors": machine.vectors.tolist(),
            "weights": (factor.T @ machine.weights).tolist(),
            "bias": machine.bias.tolist(),
            "noise": noise,
            "prior_variance": size * deviation**2,
            "label_variance": max(0.0, float(white.mean())) * deviation**2,
        },
    }


Shape = tuple[str, np.ndarray]
"""A kernel's name with its parameters. RBF and Matern have 1 / length^2 for each length scale; DotProduct has coef0 and
degree; RationalQuadratic has gamma and alpha.
"""
Terms = list[tuple[float, Shape | None]]
"""A kernel as a sum of terms size * k(x, v), where k is None for a constant term."""


def _terms(kernel: Any, where: Place) -> Terms:
    """Return a kernel as a sum of terms.  A WhiteKernel adds no term, because it is zero between different samples."""
    kind = type(kernel).__name__
    where.need(
        type(kernel) in sklearn_types(KERNELS),
        f"kernel_ holds {kind}, which is not supported; use RBF, Matern, RationalQuadratic or DotProduct; "
        "it may be multiplied by a ConstantKernel, and a ConstantKernel or a WhiteKernel may be added to it",
    )

    if kind == "ConstantKernel":
        return [(number_of(kernel.constant_value, where, "constant_value"), None)]
    if kind == "WhiteKernel":
        return []
    if kind in ("RBF", "Matern"):
        nu = math.inf if kind == "RBF" or kernel.nu == math.inf else number_of(kernel.nu, where, "nu")
        function = MATERN_NU.get(nu)
        if function is None:
            raise where.error(f"kernel_ holds a Matern with nu {nu:g}; nu must be 0.5, 1.5 or 2.5")
        length = np.atleast_1d(array_of(kernel.length_scale, None, where, "length_scale"))
        where.need(length.ndim == 1 and (length > 0).all(), "length_scale must be above 0")
        return [(1.0, (function, length**-2))]
    if kind == "RationalQuadratic":
        alpha, scale = (number_of(getattr(kernel, name), where, name) for name in ("alpha", "length_scale"))
        where.need(alpha > 0 and scale > 0, "length_scale and alpha must be above 0")
        return [(1.0, ("rational-quadratic", np.array([0.5 / alpha / scale / scale, alpha])))]
    if kind == "DotProduct":
        return [(1.0, ("polynomial", np.array([number_of(kernel.sigma_0, where, "sigma_0") ** 2, 1.0])))]
    first, second = _terms(kernel.k1, where), _terms(kernel.k2, where)
    if kind == "Sum":
        return first + second
    constants, rest = (first, second) if all(shape is None for _, shape in first) else (second, first)
    where.need(
        all(shape is None for _, shape in constants),
        "kernel_ holds a product of kernels, which is not supported; use one kernel times constants",
    )
    return [(sum(by for by, _ in constants) * size, shape) for size, shape in rest if constants]


def _linear(model: Any, where: Place) -> Machine:
    """Read a linear model, coef_ x + intercept_."""
    name, coef = type(model).__name__, model.coef_
    bent = name == "TweedieRegressor" and model.link != "identity" and not (model.link == "auto" and model.power <= 0)
    where.need(not bent, "predicts exp of a linear function, which is not supported; use link='identity'")
    shape: tuple[int, ...] = getattr(coef, "shape", ())
    where.need(
        len(shape) in (1, 2) and 1 <= shape[-1] <= DIM_LIMIT,
        f"coef_ has shape {shape}; it must be (functions, inputs), with up to {DIM_LIMIT:,} inputs",
    )
    coef = np.atleast_2d(array_of(coef, shape, where, "coef_"))
    functions = len(coef)
    require_targets(functions, where)
    bias = -np.asarray(model.offset_) if name == "SGDOneClassSVM" else model.intercept_
    bias = array_of(bias, np.shape(bias), where, "intercept_").ravel()
    where.need(
        bias.size in (1, functions),
        f"intercept_ has {bias.size} numbers for {functions} functions; fit the model again",
    )
    machine = Machine(
        where, "linear", vectors=coef, weights=np.eye(functions), bias=np.broadcast_to(bias, (functions,)), largest=1.0
    )
    if name == "SGDOneClassSVM":
        return replace(machine, classes=(-1, 1))
    if not hasattr(model, "classes_"):
        return machine
    count = np.size(model.classes_)
    require_classes(count, where)
    where.need(
        functions == (1 if count == 2 else count),
        f"has {functions} functions for {count} classes; it must have one for each class, or only one for two classes",
    )
    sure = name in ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis") and count == 2
    sure = sure or (name == "SGDClassifier" and model.loss == "log_loss")
    calibration = np.tile([-1.0, 0.0], (functions, 1)) if sure else None
    return replace(machine, classes=tuple(np.asarray(model.classes_).tolist()), calibration=calibration)


def _perceptron(model: Any, where: Place) -> Machine:
    """Read MLPRegressor and MLPClassifier.

    For more than two classes, the functions are the values before the softmax.
    """
    classes, last = None, "identity"
    if hasattr(model, "classes_"):
        kind, classes = model._label_binarizer.y_type_, tuple(np.asarray(model.classes_).tolist())
        where.need(
            kind in ("binary", "multiclass"),
            f"its labels are {shown_value(kind)}; a model must choose one of several classes",
        )
        require_classes(len(classes), where)
        last = "logistic" if len(classes) == 2 else "softmax"
    where.need(
        model.out_activation_ == last,
        f"out_activation_ is {shown_value(model.out_activation_)}, which is not supported; it must be {last}, as with the default loss",
    )
    layers = list(zip(model.coefs_, model.intercepts_, strict=False))
    where.need(
        len(layers) == model.n_layers_ - 1, f"some of its {model.n_layers_} layers are missing; fit the model again"
    )
    machine = network(where, model.activation, layers)
    functions = len(machine.bias)
    where.need(
        classes is None or functions == (1 if len(classes) == 2 else len(classes)),
        f"has {functions} functions for {len(classes or ())} classes; fit the model again",
    )
    return machine if classes is None else told_apart(machine, classes, where)


def network(where: Place, activation: Any, layers: Sequence[tuple[Any, Any]]) -> Machine:
    """Return a network with at most one hidden layer.

    layers: for each layer, in order, its weights (inputs, outputs) and biases (outputs,).
    """
    where.need(
        1 <= len(layers) <= 2,
        f"has {len(layers) - 1} hidden layers, but only one is supported; run all its layers except the last in another runtime, "
        "and give the values of its last hidden layer to a pykernel model",
    )
    units = [name for name in HIDDEN if name != "fourier"]
    where.need(
        activation in units,
        f"activation is {shown_value(activation)}, which is not supported; it must be one of {', '.join(units)}",
    )
    (first, offsets), (last, bias) = layers[0], layers[-1]
    vectors, functions = table(getattr(first, "T", None), where), np.size(bias)
    offsets = array_of(offsets, (len(vectors),), where, "the bias of its first layer")
    require_targets(functions, where)
    if len(layers) == 1:
        return Machine(where, "linear", vectors=vectors, weights=np.eye(functions), bias=offsets, largest=1.0)
    where.need(len(vectors) <= ROWS_LIMIT, f"has {len(vectors):,} hidden units; a model has at most {ROWS_LIMIT:,}")
    last = array_of(last, (len(vectors), functions), where, "the table of its last layer")
    bias = array_of(bias, (functions,), where, "the bias of its last layer")
    return Machine(where, activation, vectors=vectors, weights=last, bias=bias, offsets=offsets, largest=1.0)


def told_apart(machine: Machine, classes: tuple[Any, ...], where: Place) -> Machine:
    """Return a network as a classifier. If the network has two classes, the classifier also computes probabilities."""
    if len(machine.bias) == 1:
        return replace(machine, classes=classes, calibration=np.array([[-1.0, 0.0]]))
    note = f"{where}: probabilities are left out, because the softmax of {len(classes)} classes is not supported"
    return replace(machine, classes=classes, notes=(note,))


# -------------------------------------------------------------------------------------------------- meta-estimators


def _calibrated(model: Any, where: Place) -> Machine:
    """Read a calibrated classifier.

    Its functions are g = -(a f + b), where f are the functions of the classifier inside.  Its probabilities are
    1 / (1 + exp(-g)).
    """
    classifiers = model.calibrated_classifiers_
    where.need(
        len(classifiers) == 1,
        f"averages {len(classifiers)} classifiers, which is not supported; fit the model with ensemble=False",
    )
    (one,) = classifiers
    inner = type(steps_of(one.estimator)[-1][1]).__name__
    where.need(
        hasattr(one.estimator, "decision_function"),
        f"its {inner} has no decision_function, so its probabilities are calibrated, which is not supported; import the {inner} itself",
    )
    machine, calibrators = _read(one.estimator, where), one.calibrators
    where.need(
        {type(calibrator) for calibrator in calibrators} <= set(sklearn_types({"calibration": "_SigmoidCalibration"})),
        f"method is {shown_value(model.method)}, which is not supported; it must be 'sigmoid'",
    )
    where.need(
        machine.support_class is None,
        f"calibrates the one-vs-one votes of its {inner}, which is not supported; put the {inner} into a OneVsRestClassifier first",
    )
    where.need(
        machine.classes == tuple(np.asarray(model.classes_).tolist()) and len(calibrators) == len(machine.bias),
        "its classifier and its calibration have different classes; fit the model again",
    )
    a, b = (
        array_of([getattr(calibrator, name) for calibrator in calibrators], (len(calibrators),), where, name)
        for name in ("a_", "b_")
    )
    machine = _rescaled(machine, -a, -b)
    return replace(machine, calibration=np.tile([-1.0, 0.0], (len(a), 1)))


def _rescaled(machine: Machine, factor: np.ndarray, offset: np.ndarray) -> Machine:
    """Return the machine whose functions are factor f + offset."""
    gross = None if machine.gross is None else machine.gross * np.abs(factor)
    return replace(
        machine,
        weights=machine.weights * factor,
        bias=machine.bias * factor + offset,
        gross=gross,
        mixes=machine.mixes + 2,
    )


def _transformed_target(model: Any, where: Place) -> Machine:
    """Read a regressor whose targets were scaled."""
    machine = _read(model.regressor_, where)
    where.need(machine.classes is None, "its regressor is a classifier; use a regressor, which predicts numbers")
    count = len(machine.bias)
    target = Affine.identity(count)
    for name, step in steps_of(model.transformer_):
        inside = Place(f"{where}, transformer {shown_value(name)}")
        target = after(target, step, inside)
        inside.need(
            target.matrix is None and len(target.taken) == count,
            f"a {type(step).__name__} mixes the targets; use a scaler that scales each target separately",
        )
    return _rescaled(machine, 1 / target.scale, target.center)


def _several_targets(model: Any, where: Place) -> Machine:
    return joined([_read(part, where) for part in model.estimators_], where)


def _one_vs_rest(model: Any, where: Place) -> Machine:
    machines = [_read(part, where) for part in model.estimators_]
    kind, classes = model.label_binarizer_.y_type_, tuple(np.asarray(model.classes_).tolist())
    where.need(
        kind in ("binary", "multiclass"),
        f"its labels are {shown_value(kind)}; a model must choose one of several classes",
    )
    require_classes(len(classes), where)
    where.need(
        all(machine.classes is not None and len(machine.bias) == 1 for machine in machines),
        "its estimators must be classifiers of two classes; fit the model again with a classifier",
    )
    where.need(
        len(machines) == (1 if len(classes) == 2 else len(classes)),
        f"has {len(machines)} estimators for {len(classes)} classes; fit the model again",
    )
    sure = [machine.calibration for machine in machines if machine.calibration is not None]
    calibration = np.concatenate(sure) if len(sure) == len(machines) else None
    return replace(joined(machines, where), classes=classes, calibration=calibration)


def joined(machines: Sequence[Machine], where: Place) -> Machine:
    """Return one machine with the functions of all machines.

    Raises UserError if the machines differ in their kernels or inputs, or if kernel machines differ in their scalings.
    Linear machines may differ in their scalings.
    """
    from scipy.linalg import block_diag  # type: ignore[import-untyped]

    first = machines[0]
    require_targets(sum(len(machine.bias) for machine in machines), where)
    if all(machine.linear for machine in machines):
        machines = [_in_units_of(collapsed(machine), first) for machine in machines]
    where.need(
        all(machine.support_class is None for machine in machines),
        "one of its estimators has a function for each pair of classes; import its estimators_ one by one",
    )

    def shape(machine: Machine) -> tuple[Any, ...]:
        scaling = [None if a is None else a.tobytes() for a in (machine.center, machine.scale)]
        return (machine.kernel.section(), machine.taken, machine.dim, machine.signal, *scaling)

    where.need(
        all(shape(machine) == shape(machines[0]) for machine in machines[1:]),
        "its estimators have different kernels, inputs or scalings; fit them with one gamma and one scaler, or import "
        "its estimators_ one by one",
    )
    gross = [np.abs(machine.weights) if machine.gross is None else machine.gross for machine in machines]
    known = [machine.largest for machine in machines if machine.largest is not None]
    return replace(
        machines[0],
        vectors=np.concatenate([machine.vectors for machine in machines]),
        offsets=np.concatenate([machine.shifts for machine in machines]) if first.function in HIDDEN else None,
        weights=block_diag(*(machine.weights for machine in machines)),
        gross=block_diag(*gross),
        bias=np.concatenate([machine.bias for machine in machines]),
        classes=None,
        calibration=None,
        label=None,
        largest=max(known) if len(known) == len(machines) else None,
        mixes=max(machine.mixes for machine in machines),
        notes=tuple(note for machine in machines for note in machine.notes),
    )


def _in_units_of(machine: Machine, other: Machine) -> Machine:
    """Convert a linear machine so that its inputs are scaled like those of ``other``."""
    if machine.dim != other.dim:
        return machine
    own, wanted = ((np.zeros(m.dim) if m.center is None else m.center) for m in (machine, other))
    scale, unit = ((np.ones(m.dim) if m.scale is None else m.scale) for m in (machine, other))
    vectors = machine.vectors * scale
    bias = machine.bias + machine.columns_of_weights().T @ (vectors @ (wanted - own))
    return replace(
        machine, vectors=vectors / unit, bias=bias, center=other.center, scale=other.scale, gross=None,
        mixes=machine.mixes + machine.dim,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- targets and columns


def require_targets(count: int, where: Place) -> None:
    where.need(1 <= count <= OUTPUTS_LIMIT, f"has {count} targets; a model has from 1 to {OUTPUTS_LIMIT}")


def _several(values: Any, n: int, where: Place, name: str) -> np.ndarray:
    """Return values (n,) or (n, outputs) as an array (n, outputs)."""
    shape = np.shape(values)
    array = array_of(values, shape if shape[:1] == (n,) and len(shape) <= 2 else (n,), where, name)
    array = array.reshape(n, -1)
    require_targets(array.shape[1], where)
    return array


def spec_columns(names: Any) -> tuple[str, ...] | None:
    """Return names of inputs if they are valid in a spec, else None."""
    if names is None or len(names) > DIM_LIMIT:
        return None
    try:
        columns = tuple(visible_name(name) for name in names if isinstance(name, str))
    except ValueError:
        return None
    return columns if len(columns) == len(names) and len(set(columns)) == len(columns) else None
