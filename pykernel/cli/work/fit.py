"""What ``pykernel fit`` does: rows held out, an estimator trained, frozen as a spec, and what to expect of it."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from pykernel.cli import inputs
from pykernel.cli.options.fit import MANY_ROWS, FitOptions
from pykernel.cli.work.tables import LabelledTable
from pykernel.errors import UserError
from pykernel.estimators import batch as kernel_machines
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers.importing import compare
from pykernel.importers.sklearn import read_estimator
from pykernel.parallel import cores, one_thread
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.renamed import word_meant
from pykernel.training.selection import Function, Selection, default_ridges, default_widths
from pykernel.training.trained import content
from pykernel.tuning.columns import uneven

COMPARED_ROWS = 1000
"""On at most so many rows the written spec is compared with what was trained."""
COARSE = 0.05
"""Rounding that moves a prediction by more than this part of a typical error is worth a warning."""
LEAST_RIDGE = 1e-6
"""Of ls-svm and krr in float32, in parts of the Gram matrix's trace: the least that is tried unasked."""


@dataclass(frozen=True)
class Fitted:
    """What there is to print, and to write."""

    report: dict[str, Any]
    spec: Spec
    selection: Selection | None


def fit(options: FitOptions, table: LabelledTable) -> Fitted:
    """Choose, train and freeze; what was assumed is printed before the work."""
    train, test = held_out(table, options.hold_out, options.seed)
    scales = _scales(table, train, options.standardise)
    machine = _machine(options, table, train)
    if options.plot and _single(machine):
        raise UserError("--plot draws the error over a grid, but there is one width and one ridge; give several")
    if not options.as_json:
        print(f"assumed: {'; '.join(table.assumed)}\n")
    trained = _pipeline(machine, scales)
    if options.ridge is None and options.precision == "float32" and table.model != "kfd":
        inputs_seen = trained[:-1].fit_transform(table.x[train]) if scales else table.x[train]
        machine.ridge = resolved_ridges(machine, table.model, inputs_seen)
    with _plainly(machine), one_thread:  # so that the spec's bits do not depend on how many there are
        trained.fit(table.x[train], table.y[train])
    spec, rounding = _frozen(trained, options, table, table.x[train])
    return Fitted(_report(table, machine, train, test, spec, rounding), spec, machine.selection_)


# ---------------------------------------------------------------------------------------------------------------- rows


def held_out(table: LabelledTable, part: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows to train on, and of those held out: that part, of each class its own, at random."""
    if not 0 <= part < 1:
        raise UserError(f"--hold-out is {part:g}; it must be from 0 to below 1, such as 0.3")
    if seed < 0:
        raise UserError(f"seed is {seed}; it must be 0 or more")
    labels = table.y if table.classes else np.zeros(len(table.y), np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    test = np.zeros(len(labels), bool)
    for k in np.unique(labels):
        rows = order[labels[order] == k]
        test[rows[: min(round(part * len(rows)), len(rows) - 1)]] = True
    if part and not test.any():
        raise UserError(f"--hold-out {part:g} of {len(labels):,} rows is none; give a larger part")
    if (~test).sum() < 2:
        raise UserError(f"--hold-out {part:g} leaves 1 row to train on; give a smaller part")
    return np.flatnonzero(~test), np.flatnonzero(test)


def spread(y: np.ndarray | None, rows: int, count: int, seed: int) -> np.ndarray:
    """So many random positions of rows, ascending; of each class (y, positions) in proportion."""
    if not 1 <= count <= rows:
        raise UserError(f"--basis is {count}; it must be from 1 to {rows:,}, the number of rows to train on")
    order = np.random.default_rng(seed).permutation(rows)
    if y is not None:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[np.arange(count) * rows // count])


def _scales(table: LabelledTable, train: np.ndarray, wanted: bool | None) -> bool:
    """Whether inputs are to be standardised."""
    if wanted is None:
        wanted = uneven(table.x[train])
        if wanted:
            table.assumed.append("inputs standardised: their scales differ, or are far from zero")
    return wanted


# --------------------------------------------------------------------------------------------------------- the model


def _machine(options: FitOptions, table: LabelledTable, train: np.ndarray) -> Any:
    """The estimator, not fitted."""
    parameters: dict[str, Any] = {
        "workers": inputs.workers(options.workers, cores() if len(train) >= MANY_ROWS else 1),
        "progress": not options.as_json,
        "precision": options.precision,
        "random_state": options.seed,
    }
    of_basis = _basis_parameters(options, table, train)
    parameters |= _kernel_parameters(options) | {"cv": _cross_validation(options.cv)}
    parameters |= _class_parameters(options, table) | of_basis
    kinds = {
        ("kfd", True): kernel_machines.KernelFisherClassifier,
        ("ls-svm", True): kernel_machines.LSSVMClassifier,
        ("ls-svm", False): kernel_machines.LSSVMRegressor,
        ("krr", True): kernel_machines.KernelRidgeClassifier,
        ("krr", False): kernel_machines.KernelRidgeRegressor,
    }
    return kinds[table.model, table.classes is not None](options.kernel, **parameters)


def _kernel_parameters(options: FitOptions) -> dict[str, Any]:
    """Widths, ridges and constants."""
    known = get_args(Function)
    if options.kernel not in known:
        remedy = word_meant(options.kernel, known, f"there are: {', '.join(known)}")
        raise UserError(f"--kernel {options.kernel} is not known; {remedy}")
    widths = {"gaussian": "sigma", "linear": None}.get(options.kernel, "gamma")
    given = {"sigma": options.sigma, "gamma": options.gamma, "ridge": options.ridge}
    for name in ("sigma", "gamma"):
        if given[name] is not None and name != widths:
            remedy = f"it has --{widths}" if widths else "it has no width"
            raise UserError(f"--{name} is not of the {options.kernel} kernel; {remedy}")
    parameters: dict[str, Any] = {
        name: inputs.positive_numbers(text, f"--{name}") for name, text in given.items() if text
    }
    if options.kernel in ("polynomial", "sigmoid"):
        parameters["coef0"] = options.coef0
    if options.kernel == "polynomial":
        parameters["degree"] = options.degree
    return parameters


def _class_parameters(options: FitOptions, table: LabelledTable) -> dict[str, Any]:
    """How classes are coded, and what is least at the best."""
    given = {name: text for name, text in (("coding", options.coding), ("by", options.by)) if text is not None}
    if table.classes is not None:
        return given
    for name, text in given.items():
        if text != "press":
            raise UserError(f"--{name} {text} is for classes, but {table.column} is a number")
    return {}


def _basis_parameters(options: FitOptions, table: LabelledTable, train: np.ndarray) -> dict[str, Any]:
    """The rows that are expansion vectors."""
    if options.basis is None:
        return {}
    chosen = spread(table.y[train] if table.classes else None, len(train), options.basis, options.seed)
    if table.model != "kfd":
        raise UserError(f"--basis is for kfd; {table.model} has every row as an expansion vector")
    return {"basis": chosen}


def resolved_ridges(machine: Any, model: Any, x: np.ndarray) -> list[float]:
    """The default ridges of ls-svm or krr, without those whose predictions float32 may not resolve.

    Weights are residuals r / ridge.  l of them are summed, with an error of up to 2^-24 l r / ridge, which is within
    COARSE r for ridges from 1.2e-6 l on.
    """
    given = {"gaussian": machine.sigma, "linear": None}.get(machine.kernel, machine.gamma)
    widths = sorted(given) if given is not None else default_widths(machine.kernel, x)
    ridges = default_ridges(model, machine.kernel, x, widths[len(widths) // 2], machine.coef0, machine.degree)
    return [ridge for ridge in ridges if ridge >= 0.99 * LEAST_RIDGE * ridges[-1]]


def _single(machine: Any) -> bool:
    """Whether there is nothing to choose."""
    widths = {"gaussian": machine.sigma, "linear": [1.0]}.get(machine.kernel, machine.gamma)
    return widths is not None and machine.ridge is not None and len(widths) == len(machine.ridge) == 1


def _cross_validation(text: str) -> str | int:
    if text in ("deleted", "kept"):
        return text
    if text.isascii() and text.isdigit() and int(text) >= 2:
        return int(text)
    raise UserError(f"--cv is {text!r}; it must be deleted, kept, or a number of folds from 2")


@contextlib.contextmanager
def _plainly(machine: Any) -> Iterator[None]:
    """Without the estimator's name in refusals."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).removeprefix(f"{type(machine).__name__}: ")) from None


def _pipeline(machine: Any, scales: bool) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), machine) if scales else machine


def _frozen(trained: Any, options: FitOptions, table: LabelledTable, x: np.ndarray) -> tuple[Spec, dict[str, Any]]:
    """The spec, with the names of the table's columns and classes; and how it compares on some rows of x."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounding: it is measured below
        source = read_estimator(trained)
    made = content(source, options.called, options.precision, None, table.inputs, table.classes)
    spec = make_spec(made | {"label": made.get("label", {}) | table.label()}, table.name)
    beyond = int((np.abs(table.x) > spec.input.max_abs).any(axis=1).sum())
    if beyond:
        raise UserError(
            f"{beyond:,} of {len(table.x):,} rows hold inputs beyond {spec.input.max_abs:.3g}, up to where this model cannot "
            f"overflow in {options.precision}; scale the columns alike, or take a lower --degree, or --precision float64"
        )
    return spec, compare(spec, source, trained, x[:: -(-len(x) // COMPARED_ROWS)])


# --------------------------------------------------------------------------------------------------------- estimates


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _errors(table: LabelledTable, machine: Any, y: np.ndarray) -> dict[str, float | None]:
    """What cross-validation tells, the same corrected for having been chosen, and what is had without a model."""
    found = machine.selection_
    errors: dict[str, float | None] = {"cross_validated": float(machine.loo_error_)}
    if table.classes:
        errors["trivial"] = float(1 - np.bincount(y).max() / len(y))
        if found is not None:
            errors["cross_validated"] = float(found.error[found.best])
            errors["corrected"] = found.corrected if found.by == "error" else None
    else:
        # each row's mean without it
        errors["trivial"] = root(float(np.square((y - y.mean()) * len(y) / (len(y) - 1)).mean()))
        errors["cross_validated"] = root(float(machine.loo_error_) if found is None else found.value)
        errors["corrected"] = root(found.corrected) if found is not None else None
    return errors


def _report(
    table: LabelledTable, machine: Any, train: np.ndarray, test: np.ndarray, spec: Spec, rounding: Mapping[str, Any]
) -> dict[str, Any]:
    found, errors = machine.selection_, _errors(table, machine, table.y[train])
    told = [] if found is None or found.edge is None else [found.edge]
    typical = root(float(machine.loo_press_ if table.classes else machine.loo_error_))
    if rounding["difference"] > COARSE * typical or rounding["classes_differ"]:
        what = f"predictions differ by up to {rounding['difference']:.3g} from those of the trained model"
        if table.classes:
            what += f", and {rounding['classes_differ']:,} of {rounding['rows']:,} rows get another class"
        told.append(f"in {spec.precision}, {what}; take larger ridges, or --precision float64")
    errors |= _on_test_rows(spec, table, test)
    width = {"gaussian": "sigma", "linear": None}.get(machine.kernel, "gamma")
    best = ({width: machine.kernel_[width]} if width else {}) | {"ridge": machine.ridge_}
    assert spec.expansion is not None
    return {
        "name": spec.name,
        "model": table.model,
        "kernel": machine.kernel_,
        "rows": len(train),
        "held_out_rows": len(test),
        "inputs": table.inputs,
        "label": table.column,
        "classes": table.classes,
        "assumed": table.assumed,
        "measure": "error_rate" if table.classes else "rmse",
        "by": found.by if found is not None else None,
        "cv": found.cv if found is not None else "deleted",
        "best": best,
        "errors": errors,
        "optimism": found.optimism if found is not None else None,
        "table": found.table if found is not None else [],
        "widths": found.table_of_widths if found is not None else [],
        "vectors": len(spec.expansion.vectors),
        "flash_bytes": build(spec).figures["const_bytes"],
        "rounding": rounding,
        "warnings": told,
    }


def _on_test_rows(spec: Spec, table: LabelledTable, test: np.ndarray) -> dict[str, float | None]:
    """The error on rows held out, and its standard deviation, by the spec as the device computes it."""
    if not len(test):
        return {}
    model, deviation = HostModel(spec), None
    if table.classes:
        error = float((model.classify(table.x[test]) != table.y[test]).mean())
        deviation = math.sqrt(error * (1 - error) / len(test))
    else:
        squares = np.square(np.asarray(model.predict(table.x[test]), np.float64).ravel() - table.y[test])
        error = root(float(squares.mean()))
        if len(test) > 1 and error:  # of a root, to first order
            deviation = float(squares.std(ddof=1)) / math.sqrt(len(test)) / (2 * error)
    return {"held_out": error, "held_out_deviation": deviation}
