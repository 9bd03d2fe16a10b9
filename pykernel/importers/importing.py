"""Convert models that were trained elsewhere to frozen specs: scikit-learn estimators and model files."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import MissingExtra, UserError, shown_option
from pykernel.files import open_plain
from pykernel.host.signal import SignalStage, Steps
from pykernel.importers.learned import Answers, learns, read_learned, read_state
from pykernel.importers.place import Place
from pykernel.importers.sklearn import posterior, read_estimator
from pykernel.importers.steps import steps_of
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import Spec, load_spec, make_spec, shown_value
from pykernel.spec.signal import raw_samples_needed
from pykernel.training.distilled import distil
from pykernel.training.machine import Machine, pairs, votes
from pykernel.training.rounding import device_bound, machine_of, notes, source_bound, weights_bound
from pykernel.training.trained import FILE_LIMIT, Distance, content, to_spec

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FILES = "an .onnx file"
ESTIMATORS = (".skops", ".pkl", ".pickle", ".joblib", ".sav", ".dill")


def from_sklearn(
    estimator: Any,
    name: str,
    *,
    precision: str = "float32",
    max_abs: float | None = None,
    inputs: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    distance: Distance = "auto",
    variance: bool = False,
    vectors: int | None = None,
    data: ArrayLike | None = None,
) -> Spec:
    """Convert a fitted scikit-learn estimator to a spec. The C code that is generated from the spec computes the
    estimator's decision values.

    The estimator can be a model, a pipeline that ends with a model, or a meta-estimator around a model. The model can be
    a support vector machine, ``KernelRidge``, ``GaussianProcessRegressor`` (the mean), a linear model, a network with
    one hidden layer (``MLPRegressor``, ``MLPClassifier``) or a kernel machine of pykernel. The steps before it can be
    scalers, selections, projections and kernel features. docs/guide/importing.md lists steps, kernels and parameters.
    Without ``vectors``, nothing is trained again. ``NAME_predict`` writes what ``decision_function`` returns; for
    regressors, what ``predict`` returns; for ``MLPClassifier``, the values from which the probabilities are computed.
    ``NAME_classify`` writes the index of the class that ``predict`` returns. If ``SignalFeatures`` is the first step,
    the spec has a ``[signal]``: ``NAME_push`` takes raw samples, and ``NAME_predict_newest`` and
    ``NAME_classify_newest`` write the answers.

    Parameters
    ----------
    estimator : fitted estimator or Pipeline
    name : str
        Prefix of every symbol and file in C.
    precision : {"float32", "float64", "int16"}
        int16: integer arithmetic, for CPUs without an FPU. This precision supports networks, and Gaussian, Laplacian,
        Matern, polynomial and linear kernels.
    max_abs : float, or for int16 a sequence of floats, optional
        Largest magnitude of an input; the device refuses samples beyond it. By default, ``max_abs`` is a million times
        the largest number in the model's vectors, or less if that could overflow. A linear model has no vectors; the
        size of its inputs is derived from the scalers before it. A network gets 1e12 or, with ``data``, a limit for
        each input. With int16, ``max_abs`` is the largest |x - center|: one number for all inputs, or one for each
        input. Its default is the range of the vectors or of ``data``, extended by half of this range on either side.
        For raw samples, ``max_abs`` is a parameter of ``SignalFeatures``.
    inputs : sequence of str, optional
        Names of the inputs, or of the raw samples' channels. By default, the names that the estimator saw in a data frame.
    classes : sequence of str, optional
        Names of the classes, in the order of ``classes_``. By default, the entries of ``classes_`` converted to text.
    distance : {"auto", "differences", "products"}
        How |x - v|^2 is computed (Gaussian kernel): "products" takes fewer instructions, but has larger rounding
        errors. "auto" uses "products" if the error of the distance is then at most that of the other operations.
    variance : bool
        For a Gaussian process: also generate ``NAME_variance``, which writes the square of the standard deviation that
        ``predict(x, return_std=True)`` returns. The spec then has rule "nystrom", which needs n²/2 more numbers in
        flash; each call takes O(n² + n D) time.
    vectors : int, optional
        Number of vectors of a smaller machine: a machine with a Gaussian kernel is trained to reproduce the estimator's
        answers (``pykernel.training.distilled``). A warning says how much the values or the classes change, with
        95 % intervals. With ``vectors``, the estimator may also be one that learns sample by sample, such as
        ``BudgetedKernelRegressor``. The converted model no longer learns.
    data : array of shape (n_samples, n_features), optional
        Inputs as the device will get them, without labels.  With ``vectors``, the smaller machine is trained on these
        inputs; by default they are generated from the estimator's vectors.  For int16, and for networks, the range of
        each input is taken from ``data``.  For int16, ``data`` also decides whether 8 bits suffice for the weights of
        hidden units.

    Returns
    -------
    spec : Spec
        A frozen model; ``spec.to_toml()`` is the text of a file for ``pykernel generate``.

    Raises
    ------
    UserError
        If the estimator cannot be imported, is not fitted or is too large. The message is one sentence; it names the
        kernel, parameter, step or type that cannot be imported.

    Notes
    -----
    The cost is O(m n D) for n vectors of D inputs, because a bound on float32's rounding error is computed at
    m = min(n, 1000) of the vectors. Vectors of weight zero are left out, and equal vectors are merged. With a linear
    kernel, all vectors are merged into one vector for each function. Decision values differ from scikit-learn's only by
    rounding.  If the difference is large, a warning is issued.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> spec = from_sklearn(make_pipeline(StandardScaler(), SVC()).fit(X, y), "iris", classes=["a", "b", "c"])
    >>> spec.kernel.function, spec.label.classes
    ('gaussian', ('a', 'b', 'c'))
    """
    answers = None
    if vectors is not None and learns(estimator):
        machine, answers = read_learned(estimator)
    else:
        machine = read_estimator(estimator)
    Place(machine.source).need(
        vectors is None or not variance,
        "the arguments vectors and variance cannot be combined, because the variance needs all vectors of the estimator; "
        "leave out one of the two arguments",
    )
    machine, seen = prepared(machine, vectors, data, answers)
    if not variance:
        spec = to_spec(machine, name, precision, max_abs, inputs, classes, distance, seen)
        return _warned(spec, notes(machine, spec))
    where = Place(machine.source)
    where.need(
        precision != "int16", "variance is not available with precision int16; leave variance out, or choose float32"
    )
    where.need(
        distance != "products", "distance='products' cannot be combined with variance, which needs 'differences'"
    )
    made = content(machine, name, precision, max_abs, inputs, classes, "differences")
    spec = make_spec(made | posterior(estimator, machine, precision), where)
    # make the notes from the spec without the variance: they are about the mean, whose rounding error is the same in both specs
    return _warned(spec, notes(machine, make_spec(made, where)))


def _warned(spec: Spec, sentences: Iterable[str]) -> Spec:
    """Return the spec, and issue each note as a warning at the line that called this module."""
    for note in sentences:
        warnings.warn(note, stacklevel=3)
    return spec


def load_model(
    path: str | Path,
    name: str | None = None,
    *,
    precision: str = "float32",
    max_abs: float | None = None,
    inputs: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    distance: Distance = "auto",
    vectors: int | None = None,
    data: ArrayLike | None = None,
    start: str | Path | None = None,
    trust_code: bool = False,
) -> Spec:
    """Convert a model file to a spec.

    The file is an ``.onnx`` file with a support vector machine, a linear model or a network with one hidden layer. If
    ``vectors`` and ``start`` are given, the file is the spec of a model that has learned on a device.

    Nothing in the file is executed: only numbers and names are read from it.  Other files, such as pickled estimators, are
    refused; load such a file yourself, and give the estimator to ``from_sklearn``.

    Parameters
    ----------
    path : path
    name : str, optional
        Prefix of every symbol and file in C. By default, the file's name.
    precision, max_abs, inputs, classes, distance, vectors, data
        As in ``from_sklearn``.
    start : path, optional
        For a spec: a file with the snapshot that ``NAME_save`` or ``NAME_store`` wrote, or with the
        ``NAME_STATE_BYTES`` bytes of a device's state.
    trust_code : bool
        For a spec with a custom kernel: execute the Python file in ``[kernel] source``.

    Raises
    ------
    UserError
        If the file is not such a model, is damaged, or contains something that cannot be imported. The message is one
        sentence that begins with the file's name.
    """
    if start is not None:
        machine, answers = read_device(path, start, vectors, trust_code)
    else:
        (machine, _), answers = read_file(path), None
    with told_of_file(path):
        machine, seen = prepared(machine, vectors, data, answers)
    name = Path(path).stem if name is None else name
    return _warned(*spec_of_file(path, machine, name, precision, max_abs, inputs, classes, distance, seen))


# ----------------------------------------------------------------------------------------------------------- files


def read_file(path: str | Path) -> tuple[Machine, Any]:
    """Return the machine in an ONNX file, and a ``Source`` that computes the same values as the file.

    Raises UserError, one sentence.
    """
    where, suffix, data = Place.of_file(path), Path(path).suffix.lower(), _bytes(path)
    pickled = data[:1] == b"\x80" and data[1:2] in (b"\2", b"\3", b"\4", b"\5")
    where.need(
        suffix not in ESTIMATORS and not pickled,
        "is not an ONNX file; load the estimator in Python, and give it to pykernel.from_sklearn, or save it with skl2onnx "
        "(loading a pickle runs whatever it contains)",
    )
    learned = f"add {shown_option('start')} with a device's state"
    where.need(suffix != ".toml", f"is a spec, which does not hold what a device has learned; {learned}")
    where.need(suffix == ".onnx", f"is not a model file; give {FILES}")
    with told_of_file(path):
        from pykernel.importers.onnx import read_onnx

        return read_onnx(data)


def read_device(
    path: str | Path,
    state: str | Path,
    vectors: int | None,
    trust_code: bool = False,
    announce: Callable[[str], None] | None = None,
) -> tuple[Machine, Answers]:
    """Return a device's stored vectors as a machine, and a function that computes the answers of the complete model.  path: the
    device's spec.  Raises UserError, one sentence.
    """
    where = Place.of_file(path)
    where.need(
        Path(path).suffix.lower() == ".toml",
        "is not a spec; a device's state can only be read with its spec, so give the .toml file from which the firmware was generated",
    )
    fixed = f"add {shown_option('vectors')} for a smaller model that no longer learns"
    where.need(vectors is not None, f"is a model that continues to learn, and a spec cannot hold its state; {fixed}")
    return read_state(load_spec(path, trust_code, announce), state)


def spec_of_file(path: str | Path, machine: Machine, *options: Any) -> tuple[Spec, list[str]]:
    """Return the spec of a machine that was read from a file, and notes about the spec. options: the other arguments of
    ``to_spec``. Raises UserError, one sentence.
    """
    with told_of_file(path):
        spec = to_spec(machine, *options)
        return spec, notes(machine, spec)


@contextlib.contextmanager
def told_of_file(path: str | Path) -> Iterator[None]:
    """Convert any error that a file causes into a UserError whose message is one sentence with the file's name."""
    where = Place.of_file(path)
    try:
        yield
    except MissingExtra:
        raise
    except UserError as error:
        raise where.error(str(error)) from None
    except RecursionError:
        raise where.error("has parts that are nested too deeply; it is damaged") from None
    except MemoryError:
        raise where.error("needs more memory than this machine has; it may be damaged") from None
    except Exception as error:  # a library may raise any error for a damaged file
        raise where.error(
            f"is damaged: {shown_value(str(error) or type(error).__name__)}; save the model again"
        ) from None


def _bytes(path: str | Path) -> bytes:
    where, content = Place.of_file(path), io.BytesIO()
    try:
        with open_plain(path) as file:
            # read in parts, because a single read would allocate memory for the largest allowed file
            while content.tell() <= FILE_LIMIT and (part := file.read(2**20)):
                content.write(part)
    except FileNotFoundError:
        raise where.error(f"there is no such file; give {FILES}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise where.error(f"cannot be read ({reason}); give {FILES}") from None
    where.need(content.tell() <= FILE_LIMIT, f"has more than {FILE_LIMIT:,} bytes; no device can hold so large a model")
    return content.getvalue()


# -------------------------------------------------------------------------------------------------- fewer vectors


def inputs_of(machine: Machine, data: ArrayLike) -> np.ndarray:
    """Convert ``data`` to rows of the machine's inputs, (rows, DIM).

    data: rows of the machine's inputs, rows of all inputs of the machine's source, or raw samples.
    """
    where = Place(machine.source)
    try:
        if np.iscomplexobj(data):
            raise TypeError
        x = np.array(data, np.float64, ndmin=2)
    except (TypeError, ValueError):
        raise where.error("data is not a table of numbers; give an array of shape (rows, inputs)") from None
    if machine.signal is not None:
        return _steps_of(machine.signal, x.astype(machine.signal.real.dtype))[0].astype(np.float64)
    if machine.taken is not None and x.ndim == 2 and x.shape[1] == machine.taking:
        x = x[:, list(machine.taken)]
    where.need(
        x.ndim == 2 and x.shape[1] == machine.dim, f"data has shape {x.shape}; it must be (rows, {machine.taking})"
    )
    return x


def prepared(
    machine: Machine, vectors: int | None, data: ArrayLike | None, answers: Answers | None
) -> tuple[Machine, np.ndarray | None]:
    """Return the machine to convert, and the inputs from which int16 takes its ranges.

    If ``vectors`` is None, ``machine`` is returned unchanged; otherwise, a smaller machine with this number of vectors.

    Raises UserError.
    """
    seen = None if data is None else inputs_of(machine, data)
    ranges = ranging(machine, seen)
    if vectors is None:
        return machine, ranges
    found = distil(machine, vectors, seen, answers=answers)
    return replace(found.machine, notes=(found.sentence, *found.machine.notes)), ranges


def ranging(machine: Machine, seen: np.ndarray | None) -> np.ndarray | None:
    """Return the inputs from which int16 takes its ranges: the inputs in ``seen`` or, if ``seen`` is None, the vectors.

    If ``seen`` is None, the result is None in two cases: if the vectors are weights, and if the inputs are features of
    a signal, whose ranges follow from the signal.
    """
    if seen is not None:
        return seen[np.isfinite(seen).all(axis=1)]  # the device refuses rows with NaN or infinity
    weights = machine.linear or machine.function in HIDDEN
    return None if weights or machine.signal is not None else machine.inputs()


def compare_smaller(spec: Spec, machine: Machine, x: np.ndarray) -> dict[str, Any]:
    """Compare the spec of a smaller machine with the machine's values in float64. x: rows of the machine's inputs. For
    the result, see ``compare``.
    """
    return compare(spec.inner, replace(machine, taken=None, inputs_of_source=None, signal=None), None, x)


# ------------------------------------------------------------------------------------------------------ comparison


def compare(spec: Spec, machine: Machine, source: Any, x: ArrayLike) -> dict[str, Any]:
    """Run a spec's model on the host, and compare its values with the source's at rows of x.

    x: rows of the spec's inputs, or of all inputs of the source; with a signal stage, raw samples in order of time,
    (raw samples, channels).
    source: the estimator or the ONNX model (its operations are computed in float64), or None to compare with the
    machine itself.

    Returns:
    rows: number of rows of x or, for raw samples, number of compared steps.
    refused: number of rows or raw samples beyond the input limit, plus the number of steps with a feature beyond its
    range.  The device clips such a feature, so these steps are not compared.
    undecided: number of compared rows whose class depends on rounding: within the rounding error, a function is zero, or
    the two largest functions are equal.  The classes and votes of these rows do not affect ``ok``.
    difference: the largest difference between the source's decision values at rows of x and the device's values at the
    same rows, after these rows were rounded to the device's precision.
    rounding: the largest differences that come from rounding the inputs ("inputs"), from the model's numbers ("model"),
    and from the device's sums ("sum").
    allowed: the largest difference that rounding can cause in any row.
    classes_differ: number of compared rows, including undecided rows, for which the spec and the source give different
    classes.
    ok: whether rounding explains every difference, and the classes of all rows that are not undecided agree.
    """
    from pykernel.host.model import HostModel

    x = np.array(x, np.float64, ndmin=2)
    rounded: float | np.ndarray = 0.0
    if spec.signal is None:
        taken, unrounded, asked, refused = _rows_of(spec, machine, x)
    else:
        taken, unrounded, refused = _steps_of(spec, x.astype(spec.number), machine.signal)
        asked = unrounded
        if spec.real.is_int16 and machine.signal is not None:
            # if a center is subtracted from a feature, the feature may need a coarser unit than in the source
            rounded = 0.5 * (spec.feature_units[1] > machine.signal.feature_units[1])
    exact, model = taken.astype(np.float64), HostModel(spec.inner)

    def of_source(question: Callable[[np.ndarray], np.ndarray], asked: Asked) -> np.ndarray:
        return _asked(machine, lambda: np.concatenate([question(samples)[rows] for samples, rows in asked]))

    def functions_at(asked: Asked) -> np.ndarray:
        itself = source is None
        return of_source(
            lambda x: machine.functions(machine.scaled(x)) if itself else source_functions(source, x), asked
        )

    wanted = functions_at(unrounded)
    functions = wanted if asked is unrounded else functions_at(asked)
    fits = functions.shape == (len(exact), len(machine.bias))
    Place(machine.source).need(
        fits,
        f"predicts values of shape {functions.shape[1:]}, but its parameters define {len(machine.bias)} functions; save the model again",
    )
    allowed = device_bound(spec, exact, rounded) + source_bound(machine, exact) + weights_bound(spec, machine, exact)
    of_inputs = np.abs(wanted - functions)
    largest = machine.decision == "functions" and functions.shape[1] > 1
    apart = np.diff(np.sort(wanted, axis=1)[:, -2:]) / 2 if largest else np.abs(wanted)
    sure = np.ones(len(exact), bool) if machine.classes is None else (apart > allowed + of_inputs).all(axis=1)
    predicted = np.asarray(model.predict(taken), np.float64).reshape(len(exact), -1)
    own = machine_of(spec.inner)
    stored = own.functions(own.scaled(exact))
    of_model, differ = np.abs(stored - functions), np.zeros(len(exact), bool)
    if machine.decision != "ovo_vote" or spec.real.is_int16:
        whole, of_sum, differences = (
            np.abs(predicted - wanted),
            np.abs(predicted - stored),
            np.abs(predicted - functions),
        )
        within = bool((differences <= allowed).all())
    else:
        # the confidence part of a vote changes by less than a third of the change in the sum of the functions; the vote
        # itself is rounded as well
        count = len(machine.classes or ())
        whole, of_sum = np.abs(predicted - votes(wanted, count)), np.abs(predicted - votes(stored, count))
        allowed = np.repeat(allowed.sum(axis=1, keepdims=True), predicted.shape[1], axis=1)
        allowed = allowed + count * np.finfo(spec.number).eps
        within = bool((np.abs(predicted - votes(functions, count))[sure] <= allowed[sure]).all())
    if machine.classes is not None:
        classes = of_source(lambda samples: source_classes(machine, source, samples, wanted), unrounded)
        differ = model.classify(taken) != classes
    return {
        "rows": len(x) if spec.signal is None else len(taken),
        "refused": refused,
        "undecided": len(sure) - int(sure.sum()),
        "difference": float(whole.max(initial=0.0)),
        "rounding": {
            name: float(part.max(initial=0.0))
            for name, part in (("inputs", of_inputs), ("model", of_model), ("sum", of_sum))
        },
        "allowed": float((allowed + of_inputs.max(axis=1, keepdims=True)).max(initial=0.0)),
        "classes_differ": int(differ.sum()),
        "ok": within and not differ[sure].any(),
    }


Asked = list[tuple[np.ndarray, Any]]
"""What to ask a source: pairs of an array of inputs and the indices of the rows whose answers are compared."""


def _rows_of(spec: Spec, machine: Machine, x: np.ndarray) -> tuple[np.ndarray, Asked, Asked, int]:
    """Return four values: the accepted rows in the model's precision; what to ask the source at the accepted rows of x;
    what to ask it at the same rows in the model's precision; and the number of refused rows.
    """
    if machine.taken is not None and x.shape[1] == machine.taking:
        x = x[:, list(machine.taken)]
    with np.errstate(over="ignore"):  # numbers that are too large for the device are refused
        seen = spec.as_seen(x.astype(spec.number))
    accepted = spec.accepts(seen)

    def asked(rows: np.ndarray) -> Asked:
        whole = rows.astype(np.float64)
        if machine.taken is not None:  # inputs that the source does not use may have any value
            whole = np.zeros((len(rows), machine.taking))
            whole[:, list(machine.taken)] = rows
        return [(whole, slice(None))]

    return seen[accepted], asked(x[accepted]), asked(seen[accepted]), len(x) - int(accepted.sum())


def _steps_of(spec: Spec, x: np.ndarray, source: Spec | None = None) -> tuple[np.ndarray, Asked, int]:
    """Return the features of each compared step, what to ask the source, and the number of refused rows and steps.

    A refused row splits a recording into two.

    source: the spec of the imported model, with the same features; in int16, those of ``spec`` may have a coarser unit or a
    narrower range.
    """
    assert spec.signal is not None
    where, fits = Place(spec.name), x.shape[1] == spec.width
    where.need(fits, f"takes raw samples of {spec.width} channels, but each row holds {x.shape[1]} numbers")
    refused = np.flatnonzero(~spec.accepts(x))
    edges = zip([0, *(refused + 1)], [*refused, len(x)], strict=True)
    pieces = [(x[start:end], SignalStage(spec).steps(x[start:end])) for start, end in edges]
    found, least = sum(len(steps.rows) for _, steps in pieces), raw_samples_needed(spec.signal)
    where.need(found, f"needs {least} consecutive raw samples for its first features; give more raw samples")
    if source is not None and spec.real.is_int16:
        pieces = [(piece, _within(spec, source, piece, steps)) for piece, steps in pieces]
    asked: Asked = [(piece.astype(np.float64), steps.rows) for piece, steps in pieces if len(steps.rows)]
    where.need(asked, "every step has a feature beyond its [input] max_abs; give other rows")
    features = np.concatenate([steps.features for _, steps in pieces])
    return features, asked, len(refused) + found - len(features)


def _within(spec: Spec, source: Spec, raw: np.ndarray, steps: Steps) -> Steps:
    """Return the steps whose features equal the source's features up to half a unit.  All other steps have a feature beyond its range."""
    apart = np.abs(steps.features - SignalStage(source).steps(raw).features)
    inside = (apart <= 0.5 * spec.feature_units[1]).all(axis=1)
    return Steps(steps.rows[inside], steps.features[inside])


def _asked(machine: Machine, question: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the source's answers.  Raises UserError if the source fails, which may happen if its file was changed."""
    try:
        return question()
    except UserError:
        raise
    except Exception as error:
        reason = shown_value(str(error) or type(error).__name__)
        raise Place(machine.source).error(f"cannot predict: {reason}; save the model again") from None


def source_functions(source: Any, x: np.ndarray) -> np.ndarray:
    """Return the function values of an estimator or an ONNX model at rows of x, (rows, F).

    If the source decides by pairs of classes, there is one function for each pair.
    """
    if not hasattr(source, "get_params"):
        return np.asarray(source.functions(x))
    x, model = _scaled(source, x)
    if type(model).__name__ == "CalibratedClassifierCV":
        (one,) = model.calibrated_classifiers_
        values = source_functions(one.estimator, x)
        return np.column_stack([-(c.a_ * f + c.b_) for c, f in zip(one.calibrators, values.T, strict=True)])
    if hasattr(model, "out_activation_"):  # a network's functions are its values before the softmax
        model = copy.copy(model)
        model.out_activation_ = "identity"
        return np.asarray(model._forward_pass_fast(x), np.float64)
    if not hasattr(model, "decision_function") and hasattr(model, "estimators_"):
        return np.hstack([source_functions(each, x) for each in model.estimators_])
    if len(getattr(model, "classes_", ())) > 2 and hasattr(model, "decision_function_shape"):
        model = copy.copy(model).set_params(decision_function_shape="ovo", break_ties=False)
    values = model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)
    return np.asarray(values, np.float64).reshape(len(x), -1)


def _scaled(estimator: Any, x: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return x after the steps of a pipeline, and the model at the pipeline's end."""
    *steps, (_, model) = steps_of(estimator)
    x = x.copy()  # a scaler may change the array in place
    for _, step in steps:
        x = _alone(step).transform(_framed(step, x))
        x = x.toarray() if hasattr(x, "toarray") else x
    return x, _alone(model)


def _alone(step: Any) -> Any:
    """Return the step, set to run in one process, because its ``n_jobs`` may ask for any number of processes."""
    if getattr(step, "n_jobs", None) is None:
        return step
    step = copy.copy(step)
    step.n_jobs = None
    return step


def _framed(step: Any, x: np.ndarray) -> Any:
    """Return x as a data frame with column names if the step selects columns by name, else x."""
    names = getattr(step, "feature_names_in_", None)
    if type(step).__name__ != "ColumnTransformer" or names is None:
        return x
    import pandas as pd  # type: ignore[import-untyped]

    return pd.DataFrame(np.asarray(x), columns=names)


def source_classes(machine: Machine, source: Any, x: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """Return the class index that the source predicts for each row of x, (rows,)."""
    if hasattr(source, "get_params"):
        x, model = _scaled(source, x)
        named = {value: position for position, value in enumerate(machine.classes or ())}
        return np.array([named[value] for value in np.asarray(model.predict(x)).tolist()], int)
    if machine.support_class is None:
        return np.asarray(functions[:, 0] > 0 if functions.shape[1] == 1 else functions.argmax(axis=1), int)
    count = len(machine.classes or ())
    counted = np.zeros((len(x), count))
    for p, (i, j) in enumerate(pairs(count)):
        counted[np.arange(len(x)), np.where(functions[:, p] > 0, i, j)] += 1
    return np.asarray(counted.argmax(axis=1))
