"""Models that were trained elsewhere, as frozen specs: fitted scikit-learn estimators, .skops and .onnx files."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.dialect import PRECISIONS
from pykernel.errors import MissingExtra, UserError
from pykernel.files import open_plain
from pykernel.import_sklearn import read_estimator, steps_of
from pykernel.kernel_settings import UNIT
from pykernel.machine import ERROR, FILE_LIMIT, Distance, Machine, compact, pairs, to_spec, votes
from pykernel.spec import Spec, _shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

COARSE, SEEN = 0.003, 256
"""The part of a function's spread, over so many of its vectors, that rounding may move it by without a warning."""
PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill", ".pt", ".pth")


def from_sklearn(
    estimator: Any,
    name: str,
    *,
    precision: str = "float32",
    limit: float | None = None,
    input_names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    distance: Distance = "auto",
) -> Spec:
    """A fitted scikit-learn estimator as a spec whose C computes its decision values.

    Taken: ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR``, ``OneClassSVM``, ``KernelRidge``, ``GaussianProcessRegressor`` (the
    mean), pykernel's own kernel machines, and pipelines of scalers and one of these. docs/importing.md lists the kernels
    and parameters. Nothing is trained anew. ``NAME_predict`` writes what ``decision_function`` returns (``predict``, of
    regressors), ``NAME_classify`` the position of the class that ``predict`` returns.

    Parameters
    ----------
    estimator : fitted estimator or Pipeline
    name : str
        Prefix of every symbol and file in C.
    precision : {"float32", "float64"}
    limit : float, optional
        Largest magnitude of an input; the device refuses samples beyond. By default a million times the largest number
        in the model's vectors, or less where that could overflow.
    input_names : sequence of str, optional
        Names of the inputs, if not those that the estimator saw in a data frame.
    classes : sequence of str, optional
        Names of the classes in the order of ``classes_``, if not those classes as text.
    distance : {"auto", "differences", "products"}
        How |x - v|^2 is computed (Gaussian kernel): "products" takes fewer instructions and rounds more. "auto" takes it
        where its error is no larger than that of the rest.

    Returns
    -------
    spec : Spec
        A frozen model; ``spec.to_toml()`` is a file for ``pykernel generate``.

    Raises
    ------
    UserError
        One sentence that names what cannot be taken over: a kernel, a parameter, a step, the type; or that says that the
        estimator is not fitted, or too large.

    Notes
    -----
    O(n D) for n vectors of D inputs. Vectors of weight zero are left out and equal ones are joined; linear kernels
    become one vector for each function. Decision values differ from scikit-learn's by rounding alone: with float32 by
    at most a few times ``2**-23 * sum|w| * max|k|``.

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
    machine = read_estimator(estimator)
    spec = to_spec(machine, name, precision, limit, input_names, classes, distance)
    for note in notes(machine, precision):
        warnings.warn(note, stacklevel=2)
    return spec


def load_model(
    path: str | Path,
    name: str | None = None,
    *,
    trusted: Sequence[str] = (),
    precision: str = "float32",
    limit: float | None = None,
    input_names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    distance: Distance = "auto",
) -> Spec:
    """A model's file as a spec: ``.skops``, or ``.onnx`` with an SVMClassifier or SVMRegressor.

    Nothing in the file is executed: the types that a .skops file asks for are compared with a list before any of it is
    loaded, and an .onnx file is read as numbers. Pickle files run whatever their author wrote when they are loaded, and
    are refused; load such a file yourself, if you trust it, and give the estimator to ``from_sklearn``.

    Parameters
    ----------
    path : path
    name : str, optional
        Prefix of every symbol and file in C; the file's name if not given.
    trusted : sequence of str
        Further types that a .skops file may hold, such as ``"mypackage.MyScaler"``: their code will run.
    precision, limit, input_names, classes, distance
        As for ``from_sklearn``.

    Raises
    ------
    UserError
        One sentence, with the file's name: it is no model of these kinds, is damaged, or holds what cannot be taken over.
    """
    machine, _ = read_file(path, trusted)
    name = Path(path).stem if name is None else name
    try:
        spec = to_spec(machine, name, precision, limit, input_names, classes, distance)
    except UserError as error:
        raise UserError(f"{_path(path)}: {error}") from None
    for note in notes(machine, precision):
        warnings.warn(note, stacklevel=2)
    return spec


def notes(machine: Machine, precision: str) -> list[str]:
    """What of the source is left out, and whether float32 is too coarse for it.

    Where weights are large and cancel out, as a Gaussian process without noise has them, their rounding is not small
    beside what they add up to: 2^-24 |w| is what it comes to, if it is at random.
    """
    found = list(machine.notes)
    if precision == "float32" and machine.function in (*UNIT, "sigmoid") and len(machine.vectors):
        at = np.linspace(0, len(machine.vectors) - 1, min(SEEN, len(machine.vectors)), dtype=int)
        spread = machine.functions(machine.vectors[at]).std(axis=0)
        moved = 2.0**-24 * np.sqrt(np.square(machine.columns_of_weights()).sum(axis=0))
        worst = int(np.argmax(moved - COARSE * spread))
        if moved[worst] > COARSE * spread[worst] > 0:
            found.append(
                f"{machine.source}: its weights are so large that rounding to float32 moves values by about "
                f"{moved[worst]:.1g}, where they vary by {spread[worst]:.1g}; use float64, or fit it with more "
                "regularisation (a larger alpha, a smaller C)"
            )
    return found


# ----------------------------------------------------------------------------------------------------------- files


def read_file(path: str | Path, trusted: Sequence[str] = ()) -> tuple[Machine, Any]:
    """What a .skops or .onnx file computes, and the estimator or the ONNX model.  Raises UserError, one sentence."""
    where, suffix, data = _path(path), Path(path).suffix.lower(), _bytes(path)
    if suffix in PICKLES or (data[:1] == b"\x80" and data[1:2] in (b"\2", b"\3", b"\4", b"\5")):
        raise UserError(
            f"{where}: is a pickle, and loading one runs whatever it contains; if you trust its author, load it in Python "
            "and give the estimator to pykernel.importing.from_sklearn, or save it with skops.io.dump"
        )
    if suffix not in (".skops", ".onnx"):
        raise UserError(f"{where}: is not a model's file; give one that ends in .skops or .onnx")
    try:
        if suffix == ".onnx":
            from pykernel.import_onnx import read_onnx

            return read_onnx(data)
        from pykernel.import_skops import load_skops

        estimator = load_skops(data, trusted)
        return read_estimator(estimator), estimator
    except MissingExtra:
        raise
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except (MemoryError, RecursionError):
        raise UserError(f"{where}: asks for more memory than there is; it is damaged") from None
    except Exception as error:  # whatever a library says of a file that is not as it writes them
        raise UserError(f"{where}: is damaged: {_shown(str(error) or type(error).__name__)}; save it again") from None


def _path(path: str | Path) -> str:
    return str(path) if str(path).isprintable() else _shown(str(path))


def _bytes(path: str | Path) -> bytes:
    try:
        with open_plain(path) as file:
            data = file.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        raise UserError(f"{_path(path)}: there is no such file; give a .skops or .onnx file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{_path(path)}: cannot be read ({reason}); give a .skops or .onnx file") from None
    if len(data) > FILE_LIMIT:
        raise UserError(f"{_path(path)}: has more than {FILE_LIMIT:,} bytes; no device holds such a model")
    return data


# ------------------------------------------------------------------------------------------------------ comparison


def compare(spec: Spec, machine: Machine, source: Any, x: ArrayLike) -> dict[str, Any]:
    """A spec's model on the host beside what the source itself computes, over rows of x.

    source: the estimator, or the ONNX model, of which ONNX's reference implementation computes float32.

    Returns ``rows``; ``refused``, those beyond the input limit; ``undecided``, those whose class hangs on a function that
    is zero but for rounding, which are not compared by class, nor by votes; ``difference``, the largest of a decision
    value; ``allowed``, the largest that rounding explains; ``classes_differ``, rows; ``ok``.
    """
    from pykernel.host import HostModel

    x = np.array(x, spec.real.dtype, ndmin=2)
    taken = (np.abs(x) <= spec.input.limit).all(axis=1)
    taken, x, exact, model = x[taken], x, x[taken].astype(np.float64), HostModel(spec)
    functions = source_functions(source, exact)
    # the source rounds, too: the terms that it adds up, in its own precision
    own = "float64" if hasattr(source, "get_params") else "float32"
    allowed = error_bound(compact(machine), exact, spec.precision, rounding(spec)) + error_bound(machine, exact, own)
    sure = np.ones(len(exact), bool) if machine.classes is None else (np.abs(functions) > allowed).all(axis=1)
    found = np.asarray(model.predict(taken), np.float64).reshape(len(exact), -1)
    differences, differ = np.abs(found - functions) if machine.decision != "votes" else None, 0
    if differences is None:
        # confidences are less than a third of what their sums differ by
        differences = np.abs(found - votes(functions, len(machine.classes or ())))[sure]
        allowed = np.repeat(allowed.sum(axis=1, keepdims=True), differences.shape[1], axis=1)[sure]
    if machine.classes is not None:
        differ = int((model.classify(taken) != source_classes(machine, source, exact, functions))[sure].sum())
    return {
        "rows": len(x),
        "refused": len(x) - len(taken),
        "undecided": len(sure) - int(sure.sum()),
        "difference": float(differences.max(initial=0.0)),
        "allowed": float(allowed.max(initial=0.0)),
        "classes_differ": differ,
        "ok": bool((differences <= allowed).all()) and differ == 0,
    }


def rounding(spec: Spec) -> float:
    """How many units of sum |w| K + |b| rounding may come to: ERROR, or what products add; benchmarks/products_error.py."""
    expansion, kernel = spec.expansion, spec.kernel
    if expansion is None or kernel is None or kernel.gamma is None or expansion.distance != "products":
        return ERROR
    square = kernel.gamma * float(np.square(np.array(expansion.vectors)).sum(axis=1).max())
    return max(ERROR, (2 + np.sqrt(spec.dim)) * (1 + square) + 0.5 * np.sqrt(square) + 1)


def error_bound(machine: Machine, x: np.ndarray, precision: str, units: float = ERROR) -> np.ndarray:
    """How far rounding may take each function's value at rows of x, (rows, F): so many units of sum |w| K + |b|.

    K is the largest kernel value, 1 for those that have one, and for the others what x'v's terms come to without their
    signs: what cancels out was rounded, too.
    """
    x = x if machine.center is None else x - machine.center
    x = x if machine.factor is None else x * machine.factor
    largest = np.ones((len(x), len(machine.vectors)))
    if machine.function in ("linear", "polynomial"):
        product = np.abs(x) @ np.abs(machine.vectors).T
        largest = (machine.gamma * product + abs(machine.coef0)) ** machine.degree
    total = largest @ np.abs(machine.columns_of_weights()) + np.abs(machine.bias)
    return np.asarray(units * np.finfo(PRECISIONS[precision].dtype).eps * total)


def source_functions(source: Any, x: np.ndarray) -> np.ndarray:
    """What an estimator, or an ONNX model, computes at rows of x, (rows, F): of pairs of classes each one's value."""
    if not hasattr(source, "get_params"):
        from pykernel.import_onnx import functions

        return functions(source, x)
    *scalers, (_, model) = steps_of(source)
    for _, scaler in scalers:
        x = scaler.transform(x)
    if len(getattr(model, "classes_", ())) > 2 and hasattr(model, "decision_function_shape"):
        model = copy.copy(model).set_params(decision_function_shape="ovo", break_ties=False)
    values = model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)
    return np.asarray(values, np.float64).reshape(len(x), -1)


def source_classes(machine: Machine, source: Any, x: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """The position of the class that the source takes each row of x for, (rows,)."""
    if hasattr(source, "get_params"):
        *scalers, (_, model) = steps_of(source)
        for _, scaler in scalers:
            x = scaler.transform(x)
        named = {value: position for position, value in enumerate(machine.classes or ())}
        return np.array([named[value] for value in np.asarray(model.predict(x)).tolist()], int)
    if machine.owners is None:
        return np.asarray(functions[:, 0] > 0, int)
    count = len(machine.classes or ())
    counted = np.zeros((len(x), count))
    for p, (i, j) in enumerate(pairs(count)):
        counted[np.arange(len(x)), np.where(functions[:, p] > 0, i, j)] += 1
    return np.asarray(counted.argmax(axis=1))
