"""The command ``pykernel fit``: a kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from pykernel.spec.model import Spec
    from pykernel.training.selection import Selection

MODELS = ("kfd", "ls-svm", "krr")
MANY_ROWS = 1000
"""More rows than these, and all cores are worth starting."""
COMPARED_ROWS = 1000
"""On at most so many rows the written spec is compared with what was trained."""
COARSE = 0.05
"""Rounding that moves a prediction by more than this part of a typical error is worth a warning."""
LEAST_RIDGE = 1e-6
"""Of ls-svm and krr in float32, in parts of the Gram matrix's trace: the least that is tried unasked."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines, and nothing else.")]


def fit(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A CSV file; - reads standard input.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", "--output", "-o", metavar="SPEC", help="The spec to write.", show_default=False)
    ],
    label: Annotated[
        str | None, typer.Option("--label", metavar="Y", help="The label's column.", show_default="the last")
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option("--inputs", metavar="A,B", help="The inputs' columns.", show_default="all others with numbers"),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="A,B",
            help="The label's classes, in this order; of two, the second is the positive one.",
            show_default="as they are found, sorted",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="|".join(MODELS), help="What is trained.", show_default="kfd; ls-svm for numbers"
        ),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="KERNEL",
            help="gaussian, laplacian, matern32, matern52, polynomial, linear or sigmoid (kfd).",
        ),
    ] = "gaussian",
    sigma: Annotated[
        str | None,
        typer.Option("--sigma", metavar="S,S", help="Widths of the Gaussian to try.", show_default="by the data"),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option("--gamma", metavar="G,G", help="The same of the other kernels.", show_default="by the data"),
    ] = None,
    coef0: Annotated[float, typer.Option("--coef0", metavar="C", help="Constant of polynomial and sigmoid.")] = 1.0,
    degree: Annotated[int, typer.Option("--degree", metavar="N", help="Of the polynomial, 1 to 9.")] = 3,
    ridge: Annotated[
        str | None,
        typer.Option(
            "--ridge", metavar="R,R", help="Ridges to try, mu of kfd, lambda of the others.", show_default="by the data"
        ),
    ] = None,
    coding: Annotated[
        str | None,
        typer.Option(
            "--coding",
            metavar="counts|signs",
            help="How classes are coded: by how frequent they are, or +1 and -1.",
            show_default="counts of kfd, signs of the others",
        ),
    ] = None,
    basis: Annotated[
        int | None,
        typer.Option(
            "--basis", metavar="N", help="kfd: so many random rows are expansion vectors.", show_default="every row"
        ),
    ] = None,
    cv: Annotated[
        str,
        typer.Option("--cv", metavar="deleted|kept|S", help="Leave-one-out by retraining, by paper 004, or S folds."),
    ] = "deleted",
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="error|press", help="What is least at the best.", show_default="error of classes"),
    ] = None,
    hold_out: Annotated[
        float, typer.Option("--hold-out", metavar="PART", help="This part of the rows is kept for a test.")
    ] = 0.0,
    standardise: Annotated[
        bool | None,
        typer.Option(
            "--standardise/--no-standardise",
            help="Scale inputs to mean 0 and deviation 1; the spec does it on the device.",
            show_default="if their scales differ",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of folds, the hold-out and the basis.")] = 0,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="N|ADDRESS",
            help="Processes, or a Dask scheduler.",
            show_default=f"1; all cores from {MANY_ROWS:,} rows",
        ),
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", metavar="float32|float64", help="Of the device's numbers.")
    ] = "float32",
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Prefix of all names in C.", show_default="the spec's file"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="PNG", help="Draw the error over the grid.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite SPEC and PNG.")] = False,
    as_json: Json = False,
) -> None:
    """Train a kernel machine on a table, and write it as a spec for the device.

    Width and ridge are chosen from a grid by cross-validation in closed form: each sample is predicted by the model
    that is trained without it, at the price of one decomposition for each width. The chosen model is trained on all rows
    and frozen: its expansion vectors and weights are in the spec, and go to the device's flash.

        pykernel fit flowers.csv --label kind --out iris.toml --plot surface.png
        pykernel fit motor.csv --label fault --classes no,yes --model kfd --basis 40 --hold-out 0.3 --out motor.toml
        pykernel fit flow.csv --label flow --model krr --sigma 0.5,1,2 --ridge 0.01,0.1,1 --cv 10 --out flow.toml

    Then `pykernel generate iris.toml -o iris/` and `pykernel check iris.toml`.

    **Models**: *kfd*: kernel Fisher discriminant, classes only; *ls-svm*: least-squares support vector machine; *krr*:
    kernel ridge regression, which is ls-svm without its bias. A label of words is a class; one of numbers is too if the
    model is kfd, or with --classes. Rows without a label or with a missing input are left out. What was assumed is
    printed.

    **Columns**: for each width the best ridge; *errors*: the part of rows taken for another class; *PRESS*: the mean
    squared difference to the targets (of classes: as they are coded), *RMSE* its root, in the label's unit. Then the
    estimates: that of the best cell, which is too small because it was chosen for being small; the same corrected
    (Tibshirani and Tibshirani, 2009); what is had without a model, by the most frequent class or the mean; and that on
    rows held out, by the spec as the device computes it.

    **Exit codes**: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    from pykernel.cli import app as cli
    from pykernel.spec.model import make_spec
    from pykernel.training.selection import one_thread

    called = out.stem if name is None else name
    for path in (out, plot):
        _need_free(path, data, force)
    if plot and plot.absolute() == out.absolute():
        raise UserError(f"{plot}: is to be the spec and the plot; give two names")
    # before the work, not after it
    make_spec({"name": called, "precision": precision, "input": {"dim": 1}, "kernel": {"sigma": 1.0}}, "pykernel fit")
    if plot:
        cli._need_matplotlib()
    with contextlib.ExitStack() as stack:
        source, file, size = cli._open(data, stack)
        show = stack.enter_context(cli._progress(as_json, size))
        table = read_table(file, source, _words(inputs), label, _words(classes), model, show)
    content = {"name": called, "input": {"columns": table.inputs}, "label": table.label()}
    make_spec(content | {"kernel": {"sigma": 1.0}}, source)
    train, test = held_out(table, hold_out, seed)
    scales = _scales(table, train, standardise)
    machine = _machine(
        table, kernel, sigma=sigma, gamma=gamma, coef0=coef0, degree=degree, ridge=ridge, coding=coding, cv=cv, by=by,
        workers=_workers(workers, len(train)), precision=precision, seed=seed, show=not as_json,
        basis=None if basis is None else spread(table.y[train] if table.classes else None, len(train), basis, seed),
    )  # fmt: skip
    if plot and _single(machine):
        raise UserError("--plot draws the error over a grid, but there is one width and one ridge; give several")
    if not as_json:
        print(f"assumed: {'; '.join(table.assumed)}\n")
    trained = _pipeline(machine, scales)
    if ridge is None and precision == "float32" and table.model != "kfd":
        inputs_seen = trained[:-1].fit_transform(table.x[train]) if scales else table.x[train]
        machine.ridge = resolved_ridges(machine, table.model, inputs_seen)
    with _plainly(machine), one_thread:  # so that the spec's bits do not depend on how many there are
        trained.fit(table.x[train], table.y[train])
    spec, rounding = _frozen(trained, called, precision, table, table.x[train])
    report = _report(table, machine, train, test, spec, rounding)
    _write(report, spec, machine.selection_, out, plot)
    if as_json:
        cli._print_json(report)
    else:
        _print_fit(report)
    for warning in report["warnings"]:
        cli._warn(warning)


# -------------------------------------------------------------------------------------------------------- the table


@dataclass
class Table:
    """Rows of a file: inputs x (l, d); y (l,), numbers, or positions of classes; and what was assumed, in sentences."""

    name: str
    inputs: list[str]
    column: str
    classes: list[str] | None
    model: str
    x: np.ndarray
    y: np.ndarray
    assumed: list[str]

    def label(self) -> dict[str, Any]:
        """[label] of the spec."""
        return {"column": self.column, **({"classes": self.classes} if self.classes else {})}


def read_table(
    file: Any,
    name: str,
    inputs: Sequence[str],
    label: str | None,
    classes: Sequence[str],
    model: str | None,
    show: Any = None,
) -> Table:
    """Comma-separated text with a header line, as the samples of a model.

    inputs: columns; if there are none, all others with numbers that are not always the same.  label: a column; the last
    if None.  classes: of the label, in their order; if there are none, they are found, where the label is words or
    ``model`` is kfd.  model: kfd of classes and ls-svm of numbers, if None.
    Raises UserError, one sentence.
    """
    import numpy as np

    from pykernel.tuning.plan import _columns, _numbers

    if model is not None and model not in MODELS:
        raise UserError(f"--model {model} is not known; there are: {', '.join(MODELS)}")
    header, columns = _columns(file, name, show)
    column = header[-1] if label is None else label
    for wanted in (*inputs, column):
        if wanted not in header:
            raise UserError(f"{name}, line 1: names no column {wanted!r}; it names {', '.join(header[:12])}")
    if column in inputs:
        raise UserError(f"{name}: column {column!r} is the label; leave it out of --inputs")
    numeric = {each: values for each, cells in columns.items() if (values := _numbers(cells)) is not None}
    for each in inputs:
        if each not in numeric:
            raise UserError(f"{name}: column {each!r} does not hold numbers; leave it out of --inputs")
    chosen = list(inputs) or [each for each in numeric if each != column and np.ptp(_known(numeric[each])) > 0]
    if not chosen:
        raise UserError(f"{name}: has no column of different numbers beside the label {column!r}; give --inputs")
    assumed = [f"the label is {column}, the last column"] if label is None else []
    if not inputs:
        left = [each for each in header if each not in (*chosen, column)]
        assumed.append(f"{len(chosen)} inputs: {_listed(chosen)}" + (f", without {_listed(left)}" if left else ""))
    cells = [cell.strip() for cell in columns[column]]
    found = _classes_of(name, column, cells, classes, column in numeric, model)
    if found is None:
        y = numeric[column]
        there = np.isfinite(y)
    else:
        places = {kind: i for i, kind in enumerate(found)}
        y = np.array([places.get(cell, -1) for cell in cells], np.int64)
        there = y >= 0
    x = np.column_stack([numeric[each] for each in chosen])
    rows = there & np.isfinite(x).all(axis=1)
    _need_rows(name, column, y[rows], found)
    if not rows.all():
        without = int((~there).sum())
        assumed.append(
            f"{without:,} rows without a label and {int((~rows).sum()) - without:,} without an input left out"
        )
    model = model or ("ls-svm" if found is None else "kfd")
    what = "numbers" if found is None else f"{len(found)} classes, {_listed(found)}"
    assumed.append(f"{what}, so the model is {model}" if model else what)
    return Table(name, chosen, column, found, model, x[rows], y[rows], assumed)


def _classes_of(
    name: str, column: str, cells: Sequence[str], given: Sequence[str], numeric: bool, model: str | None
) -> list[str] | None:
    """The label's classes, in their order; None if it is a number."""
    from pykernel.spec.model import OUTPUTS_LIMIT

    there = {cell for cell in cells if cell}
    if given:
        unknown = sorted(there - set(given))
        if unknown:
            raise UserError(
                f"{name}: column {column!r} holds {unknown[0]!r}, which --classes does not name; add it there"
            )
        missing = [each for each in given if each not in there]
        if missing:
            raise UserError(f"{name}: column {column!r} never is {missing[0]!r}; leave it out of --classes")
        return list(given)
    if numeric and model != "kfd":
        return None
    if len(there) > OUTPUTS_LIMIT:
        remedy = "take --model ls-svm, which fits numbers" if numeric else "is it the right column?"
        raise UserError(
            f"{name}: column {column!r} holds {len(there):,} different labels; there may be {OUTPUTS_LIMIT} classes: {remedy}"
        )
    if not numeric:
        return sorted(there)
    by_value: dict[float, str] = {}
    for each in sorted(there):
        if by_value.setdefault(float(each), each) != each:
            raise UserError(
                f"{name}: column {column!r} holds {by_value[float(each)]!r} and {each!r}, the same number; write classes alike"
            )
    return [by_value[value] for value in sorted(by_value)]


def _need_rows(name: str, column: str, y: np.ndarray, classes: Sequence[str] | None) -> None:
    import numpy as np

    if classes is None:
        if len(y) < 2:
            raise UserError(f"{name}: has {len(y)} rows with a label and all inputs; at least 2 are needed")
        return
    if len(classes) < 2:
        raise UserError(f"{name}: column {column!r} is always {_listed(classes)}; two classes are needed at least")
    counts = np.bincount(y, minlength=len(classes))
    if not counts.all():
        empty = classes[int(counts.argmin())]
        raise UserError(
            f"{name}: no row of class {empty!r} has all inputs; leave out the inputs that are missing there"
        )


def _known(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return values[np.isfinite(values)]


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)})" if len(names) > most else "")


def held_out(table: Table, part: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows to train on, and of those held out: that part, of each class its own, at random."""
    import numpy as np

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
    import numpy as np

    if not 1 <= count <= rows:
        raise UserError(f"--basis is {count}; it must be from 1 to {rows:,}, the number of rows to train on")
    order = np.random.default_rng(seed).permutation(rows)
    if y is not None:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[np.arange(count) * rows // count])


def _scales(table: Table, train: np.ndarray, wanted: bool | None) -> bool:
    """Whether inputs are to be standardised."""
    from pykernel.tuning.plan import _uneven

    if wanted is None:
        wanted = _uneven(table.x[train])
        if wanted:
            table.assumed.append("inputs standardised: their scales differ, or are far from zero")
    return wanted


# -------------------------------------------------------------------------------------------------------- the model


def _machine(table: Table, kernel: str, show: bool, **options: Any) -> Any:
    """The estimator, not fitted."""
    from pykernel.training.selection import Function

    _need_sklearn()
    from typing import get_args

    from pykernel.estimators import batch as kernel_machines

    known = get_args(Function)
    if kernel not in known:
        raise UserError(f"--kernel {kernel} is not known; there are: {', '.join(known)}")
    widths = {"gaussian": "sigma", "linear": None}.get(kernel, "gamma")
    for option in ("sigma", "gamma"):
        if options[option] is not None and option != widths:
            remedy = f"it has --{widths}" if widths else "it has no width"
            raise UserError(f"--{option} is not of the {kernel} kernel; {remedy}")
    parameters: dict[str, Any] = {"workers": options["workers"], "progress": show, "precision": options["precision"]}
    parameters |= {"random_state": options["seed"], "cv": _cross_validation(options["cv"])}
    parameters |= {key: _numbers(options[key], f"--{key}") for key in ("sigma", "gamma", "ridge") if options[key]}
    if kernel in ("polynomial", "sigmoid"):
        parameters["coef0"] = options["coef0"]
    if kernel == "polynomial":
        parameters["degree"] = options["degree"]
    kinds = {
        ("kfd", True): kernel_machines.KernelFisherClassifier,
        ("ls-svm", True): kernel_machines.LSSVMClassifier,
        ("ls-svm", False): kernel_machines.LSSVMRegressor,
        ("krr", True): kernel_machines.KernelRidgeClassifier,
        ("krr", False): kernel_machines.KernelRidgeRegressor,
    }
    classifies = table.classes is not None
    for option in ("coding", "by"):
        if options[option] is not None:
            if not classifies and options[option] != "press":
                raise UserError(f"--{option} {options[option]} is for classes, but {table.column} is a number")
            if classifies:
                parameters[option] = options[option]
    if options["basis"] is not None:
        if table.model != "kfd":
            raise UserError(f"--basis is for kfd; {table.model} has every row as an expansion vector")
        parameters["basis"] = options["basis"]
    return kinds[table.model, classifies](kernel, **parameters)


def resolved_ridges(machine: Any, model: Any, x: np.ndarray) -> list[float]:
    """The default ridges of ls-svm or krr, without those whose predictions float32 may not resolve.

    Weights are residuals r / ridge.  l of them are summed, with an error of up to 2^-24 l r / ridge, which is within
    COARSE r for ridges from 1.2e-6 l on.
    """
    from pykernel.training.selection import default_ridges, default_widths

    given = {"gaussian": machine.sigma, "linear": None}.get(machine.kernel, machine.gamma)
    widths = sorted(given) if given is not None else default_widths(machine.kernel, x)
    ridges = default_ridges(model, machine.kernel, x, widths[len(widths) // 2], machine.coef0, machine.degree)
    return [ridge for ridge in ridges if ridge >= 0.99 * LEAST_RIDGE * ridges[-1]]


def _need_sklearn() -> None:
    """Say so before the work, not after it."""
    import importlib.util

    from pykernel.errors import MissingExtra

    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtra("pykernel fit", "sklearn")


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


def _workers(text: str | None, rows: int) -> int | str:
    from pykernel.parallel import cores

    if text is None:
        return cores() if rows >= MANY_ROWS else 1
    if text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    if "://" in text:
        return text
    raise UserError(f"--workers is {text!r}; it must be a number of processes from 1, or a Dask scheduler's address")


def _words(given: str | None) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in (given or "").split(",") if word.strip()))


def _numbers(text: str, option: str) -> list[float]:
    numbers = []
    for word in _words(text):
        try:
            numbers.append(float(word))
        except ValueError:
            raise UserError(f"{option} is {text!r}; it must be numbers with commas between, such as 0.5,1,2") from None
        if not 0 < numbers[-1] < math.inf:
            raise UserError(f"{option} holds {word}; each must be above zero")
    if not numbers:
        raise UserError(f"{option} is {text!r}; give one number at least")
    return numbers


@contextlib.contextmanager
def _plainly(machine: Any) -> Iterator[None]:
    """Without the estimator's name in refusals; an interrupt is told as such."""
    from pykernel.cli import app as cli

    try:
        yield
    except UserError as error:
        raise UserError(str(error).removeprefix(f"{type(machine).__name__}: ")) from None
    except KeyboardInterrupt:
        cli._say("error", "interrupted")
        # not KeyboardInterrupt, which typer turns into a bare exit
        raise typer.Exit(cli.INTERRUPTED) from None


def _pipeline(machine: Any, scales: bool) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), machine) if scales else machine


def _frozen(trained: Any, name: str, precision: str, table: Table, x: np.ndarray) -> tuple[Spec, dict[str, Any]]:
    """The spec, with the names of the table's columns and classes; and how it compares on some rows of x."""
    import numpy as np

    from pykernel.importers.importing import compare
    from pykernel.importers.sklearn import read_estimator
    from pykernel.spec.model import make_spec
    from pykernel.training.trained import content

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounding: it is measured below
        source = read_estimator(trained)
    made = content(source, name, precision, None, table.inputs, table.classes)
    spec = make_spec(made | {"label": made.get("label", {}) | table.label()}, table.name)
    beyond = int((np.abs(table.x) > spec.input.limit).any(axis=1).sum())
    if beyond:
        raise UserError(
            f"{beyond:,} of {len(table.x):,} rows hold inputs beyond {spec.input.limit:.3g}, up to where this model cannot "
            f"overflow in {precision}; scale the columns alike, or take a lower --degree, or --precision float64"
        )
    return spec, compare(spec, source, trained, x[:: -(-len(x) // COMPARED_ROWS)])


# --------------------------------------------------------------------------------------------------------- estimates


def _report(
    table: Table, machine: Any, train: np.ndarray, test: np.ndarray, spec: Spec, rounding: Mapping[str, Any]
) -> dict[str, Any]:
    import numpy as np

    from pykernel.gen.project import build

    y, found = table.y[train], machine.selection_
    errors: dict[str, float | None] = {"cross_validated": float(machine.loo_error_)}
    if table.classes:
        errors["trivial"] = float(1 - np.bincount(y).max() / len(y))
        if found is not None:
            errors["cross_validated"] = float(found.error[found.best])
            errors["corrected"] = found.corrected if found.by == "error" else None
    else:
        # each row's mean without it
        errors["trivial"] = _root(float(np.square((y - y.mean()) * len(y) / (len(y) - 1)).mean()))
        errors["cross_validated"] = _root(float(machine.loo_error_) if found is None else found.value)
        errors["corrected"] = _root(found.corrected) if found is not None else None
    told = [] if found is None or found.edge is None else [found.edge]
    typical = _root(float(machine.loo_press_ if table.classes else machine.loo_error_))
    if rounding["difference"] > COARSE * typical or rounding["classes_differ"]:
        what = f"predictions differ by up to {rounding['difference']:.3g} from what was trained"
        if table.classes:
            what += f", and {rounding['classes_differ']:,} of {rounding['rows']:,} rows are classified otherwise"
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


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _on_test_rows(spec: Spec, table: Table, test: np.ndarray) -> dict[str, float | None]:
    """The error on rows held out, and its standard deviation, by the spec as the device computes it."""
    import numpy as np

    from pykernel.host.model import HostModel

    if not len(test):
        return {}
    model, deviation = HostModel(spec), None
    if table.classes:
        error = float((model.classify(table.x[test]) != table.y[test]).mean())
        deviation = math.sqrt(error * (1 - error) / len(test))
    else:
        squares = np.square(np.asarray(model.predict(table.x[test]), np.float64).ravel() - table.y[test])
        error = _root(float(squares.mean()))
        if len(test) > 1 and error:  # of a root, to first order
            deviation = float(squares.std(ddof=1)) / math.sqrt(len(test)) / (2 * error)
    return {"held_out": error, "held_out_deviation": deviation}


# ----------------------------------------------------------------------------------------------------------- results


def _need_free(path: Path | None, data: str, force: bool) -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {path.parent}; make it, or give another name")
    if path is None or not path.exists():
        return
    if data != "-" and Path(data).exists() and path.samefile(data):
        raise UserError(f"{path}: is the data itself; write to another file")
    if not force:
        raise UserError(f"{path}: is there already; give another name, or --force to overwrite it")


def _write(report: dict[str, Any], spec: Spec, found: Selection | None, out: Path, plot: Path | None) -> None:
    from pykernel.files import all_or_none, whole_file

    with all_or_none():
        with whole_file(out) as file:
            file.write(spec.to_toml().encode())
        if plot and found is not None:
            found.figure(plot)
    report |= {"spec": str(out), "plot": str(plot) if plot else None}


def _print_fit(report: Mapping[str, Any]) -> None:
    from pykernel.cli import app as cli

    classes = report["classes"]
    shown = cli._rate if classes else cli._number
    width = next((key for key in report["best"] if key != "ridge"), None)
    how = "leave-one-out" if isinstance(report["cv"], str) else f"{report['cv']} folds"
    rows = f"{report['model']}, {report['kernel']['function']} kernel, {report['rows']:,} rows, {len(report['inputs'])} inputs"
    if report["table"]:
        table = cli._table(*([width] if width else []), "ridge", *(["errors", "PRESS"] if classes else ["RMSE"]))
        best = report["table"][0]
        for cell in report["widths"]:
            figures = [cli._rate(cell["error"]), cli._number(cell["press"])]
            figures = figures if classes else [cli._number(_root(cell["press"]))]
            cells = [*([f"{cell['width']:g}"] if width else []), f"{cell['ridge']:g}"]
            table.add_row(*cells, *figures, style="bold" if cell == best else "")
        cli._print(f"{rows}: {len(report['table']):,} cells by {how}", table)
    table = cli._table("estimate", "errors" if classes else "RMSE")
    errors = report["errors"]
    chosen = ", ".join(f"{key} {value:g}" for key, value in report["best"].items())
    table.add_row(f"{how}, {chosen}", shown(errors["cross_validated"]), style="bold")
    if errors.get("corrected") is not None:
        table.add_row("the same, corrected for having been chosen", shown(errors["corrected"]))
    table.add_row("always the most frequent class" if classes else "always the mean", shown(errors["trivial"]))
    if "held_out" in errors:
        deviation = errors["held_out_deviation"]
        about = f" ± {shown(deviation)}" if deviation is not None else ""
        table.add_row(f"{report['held_out_rows']:,} rows held out", f"{shown(errors['held_out'])}{about}")
    cli._print("what to expect" if report["table"] else rows, table)
    print(f"vectors   {report['vectors']:,}, in {report['flash_bytes']:,} bytes of flash with their weights")
    print(f"spec      {report['spec']}")
    if report["plot"]:
        print(f"plot      {report['plot']}")
    print(f"\nnext:\n  pykernel generate {cli._quoted(report['spec'])} -o out/")
