"""The part of ``fit`` that all kinds of vectors share: hold out rows, train within the flash limit, freeze the model as a spec, and
measure its error.
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers.importing import compare
from pykernel.importers.sklearn import read_estimator
from pykernel.request.kinds import parse_amount, positive_numbers
from pykernel.rows.text import is_number
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import assumption_lines, raise_first_error, root_of_mean_square, without_model_phrase
from pykernel.training.machine import Machine
from pykernel.training.selection import GroupFolds, Selection
from pykernel.training.trained import Distance, content, nearer_limit
from pykernel.tuning.combinations import input_limit
from pykernel.tuning.promises import Losses
from pykernel.tuning.tables import LabelledTable, sentinels
from pykernel.workflows.arguments import COARSE, COMPARED_ROWS, called
from pykernel.workflows.fit_request import Fit

DEVICE_FOLDS = 10
"""Default number of folds of whole devices and, for krr, ls-svm and kfd, of blocks of rows."""


@dataclass(frozen=True)
class Found:
    """The results to print and to write.

    wrong: if vectors are chosen among rows, the cross-validated loss of each training row, (l,).
    """

    report: dict[str, Any]
    spec: Spec
    selection: Selection | None
    wrong: np.ndarray | None = None


@dataclass(frozen=True)
class Frozen:
    """A trained estimator (or a pipeline of a scaler and the estimator), its spec, the comparison of the
    spec with the estimator, and the number of bytes of flash that the spec needs."""

    trained: Any
    spec: Spec
    rounding: dict[str, Any]
    size: int

    @property
    def vectors(self) -> int:
        assert self.spec.expansion is not None
        return len(self.spec.expansion.vectors)


@dataclass(frozen=True)
class Job:
    """The arguments, the table, the positions of the training rows and of the held-out rows, and whether inputs are standardised."""

    options: Fit
    table: LabelledTable
    train: np.ndarray
    test: np.ndarray
    scales: bool

    @property
    def limit(self) -> int | None:
        """The flash limit, in bytes."""
        return None if self.options.flash is None else parse_amount(self.options.flash, "flash")

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and labels to train on."""
        return self.table.x[self.train], self.table.y[self.train]

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        with self.options.watch.progress() as show:
            show(0.0, what)
            yield

    def folds(self, words: Mapping[str, str | int], what: str) -> str | int:
        """Return the value of the estimator's parameter ``cv``.

        The value is a ``GroupFolds`` if whole devices or blocks of rows are left out.  Otherwise, it is the number of folds, or the
        value in ``words`` for the word that was given.  what: the beginning of the remedy in an error message.
        """
        text = str(self.options.cv)
        number = int(text) if text.isascii() and text.isdigit() and int(text) >= 2 else None
        usual = words.get(text, DEVICE_FOLDS)
        if isinstance(usual, str):
            usual = DEVICE_FOLDS
        if (number or text == "deleted") and (blocks := self.blocks(number or usual)) is not None:
            return blocks
        if self.table.device is not None:
            devices = self.table.device[self.train]
            there = len(np.unique(devices))
            raise_first_error(
                (
                    there < 2,
                    f"{self.table.name}: has only one device to train on, but cross-validation trains and tests on different devices; give more recordings",
                ),
                (
                    number is None and text != "deleted",
                    f"{shown_option('cv', text)} is not possible with several devices, because whole devices are left out; give a number of folds, 2 or more, or leave {shown_option('cv')} out",
                ),
                (
                    number is not None and number > there,
                    f"{shown_option('cv')} is {text}, but a fold leaves out at least one device, and there are only {there}; give fewer folds",
                ),
            )
            return GroupFolds(number or min(DEVICE_FOLDS, there), devices)
        if text in words:
            return words[text]
        if number is not None:
            return number
        raise UserError(f"{shown_option('cv')} is {text!r}; {what} a number of folds, 2 or more")

    def blocks(self, count: int) -> GroupFolds | None:
        """Return folds of consecutive rows if errors of neighbouring rows are correlated; otherwise, return None.

        The result is also None if there are fewer than two rows for each fold, or if all rows of a class are in one fold.
        """
        if not self.table.in_time or len(self.train) < 2 * count:
            return None
        block = np.arange(len(self.train)) * count // len(self.train)
        y = self.rows[1]
        if self.table.classes and any(len(np.unique(y[block != i])) < len(self.table.classes) for i in range(count)):
            return None
        return GroupFolds(count, block)

    # ---- how many vectors

    @property
    def function(self) -> str:
        """The kernel, or the hidden unit of a network."""
        return self.options.kernel

    def need_possible(self) -> None:
        """Raise UserError, before any computation starts, for invalid weights or an impossible number of vectors."""
        n, rows = self.options.n_max, len(self.train)
        _ = self.weights
        if n is not None and not 1 <= n <= rows:
            raise UserError(
                f"{shown_option('n_max')} is {n}; it must be from 1 to {rows:,}, the number of rows to train on"
            )

    def fitting(self, limit: int) -> int:
        """Return the number of vectors that fit into ``limit`` bytes of flash.  Raises UserError if not even one fits."""
        fixed, each = self.sizes()
        fits = (limit - fixed) // each
        if fits < 1:
            raise UserError(
                f"{shown_option('flash')} is {limit:,} bytes, but a model with one vector of {self.table.x.shape[1]} inputs takes "
                f"{fixed + each:,}; allow more bytes, or give fewer {shown_option('inputs')}"
            )
        return fits

    def fewer(self, fits: int, limit: int) -> int:
        """Report, as an assumption, that flash limits the number of vectors to ``fits``.  Returns ``fits``."""
        self.table.assumed.append(f"at most {fits:,} vectors, because {shown_option('flash')} is {limit:,} bytes")
        return fits

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of flash that a model without vectors needs, and the bytes that each vector and its weights add.

        The numbers are for a model that computes distances from differences, which needs the least flash.
        """
        options, classes, d = self.options, len(self.table.classes or ()), self.table.x.shape[1]
        functions = classes if classes > 2 else 1
        sizes = []
        for n in (8, 16):
            rng = np.random.default_rng(0)
            scale = np.ones(d) if self.scales else None
            made = Machine(
                "the table", self.function, 1e-3 * rng.normal(size=(n, d)), np.ones((n, functions)), np.zeros(functions),
                gamma=1.0, coef0=options.coef0, degree=options.degree, center=scale, scale=scale,
            )  # fmt: skip
            spec = make_spec(
                content(made, called(options), options.precision, 1.0, distance="differences"), self.table.name
            )
            sizes.append(flash_bytes(spec))
        each = (sizes[1] - sizes[0]) // 8
        return sizes[0] - 8 * each, max(each, 1)

    # ---- the work

    def trained(self, vectors: int | None) -> Any:
        """Return the fitted estimator.  vectors: the number of vectors; None for all rows."""
        raise NotImplementedError

    def report(self, made: Frozen) -> dict[str, Any]:
        """Return the results as plain values."""
        raise NotImplementedError

    def fitted(self, trained: Any) -> Any:
        """Train the estimator or its pipeline on the rows, each weighted by its class, and return the trained object."""
        if self.options.weights is None:
            return trained.fit(*self.rows)
        name = "__".join([*([trained.steps[-1][0]] if hasattr(trained, "steps") else []), "sample_weight"])
        return trained.fit(*self.rows, **{name: self.weights[self.rows[1]]})

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """For each class, the weight of its rows, (classes,).  The mean weight of the training rows is 1."""
        weights, classes, y = self.options.weights, self.table.classes or (), self.rows[1]
        if weights is None:
            return np.ones(len(classes))
        option = shown_option("weights", weights)
        raise_first_error(
            (
                not classes,
                f"{option} is for classes, but {self.table.column} holds numbers; leave {shown_option('weights')} out",
            ),
            (
                self.table.model == "kfd",
                f"{option} does not apply to kfd; leave it out, or give {shown_option('model', 'ls-svm')}",
            ),
        )
        if weights == "balanced":
            each = 1 / np.sqrt(np.maximum(np.bincount(y, minlength=len(classes)), 1))
        else:
            parts = (
                weights.split(",")
                if isinstance(weights, str)
                else weights
                if isinstance(weights, Sequence)
                else [weights]
            )
            each = np.array([positive_numbers(part, "weights")[0] for part in parts])
        raise_first_error(
            (len(each) != len(classes), f"{option}: give balanced, or {len(classes)} numbers, one for each class")
        )
        each = each / each[y].mean()
        shown = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(classes, each, strict=True))
        self.table.assumed.append(f"training and errors are weighted by class: {shown}")
        return each

    def reported(self, vectors: int | None) -> tuple[Frozen, dict[str, Any]]:
        """Show the assumptions, train and freeze a machine, and return it with its report."""
        self.options.watch.data(self.table.data)
        self.options.watch.note(*assumption_lines(self.table.assumed))
        made = self.run(vectors)
        with self.waiting("testing the spec"):
            return made, self.report(made)

    def run(self, vectors: int | None) -> Frozen:
        """Train and freeze a machine, with fewer vectors if the flash limit requires it."""
        limit = self.limit
        while True:
            trained = self.trained(vectors)
            with self.waiting("comparing the spec with the trained model"):
                made = self.frozen(trained)
                if (
                    limit is not None and made.size > limit
                ):  # distances that are computed from products need one more number for each vector
                    made = self.frozen(trained, "differences")
            if limit is None or made.size <= limit:
                return made
            vectors = made.vectors - max(1, math.ceil((made.size - limit) / self.sizes()[1]))
            if vectors < 1:
                raise UserError(
                    f"{shown_option('flash')} is {limit:,} bytes, but a model of {made.vectors} vectors takes {made.size:,}; allow more bytes"
                )

    def frozen(self, trained: Any, distance: Distance = "auto") -> Frozen:
        """Make the spec, with the names of the table's columns and classes, and compare it with the estimator on at most COMPARED_ROWS rows.

        If there is a signal stage, only the inner model is compared.
        """
        options, table = self.options, self.table
        with warnings.catch_warnings():
            # ignore warnings about rounding, because the rounding error is measured below
            warnings.simplefilter("ignore")
            source = read_estimator(trained)
        usual = table.x[~table.apart]
        # error messages begin with the field ``source``, and the following errors are about the table
        source = replace(source, source=table.name, seen=usual)
        columns: list[str] | None = table.inputs
        if table.stage is not None:
            source, columns = replace(source, signal=table.stage.plain), None
        # the estimator was trained on class indices
        named = replace(source, classes=tuple(table.classes)) if table.classes else source
        made = content(named, called(options), options.precision, None, columns, table.classes, distance)
        if table.stage is None and options.precision != "int16":  # int16 has a range for each input
            limit = input_limit(usual, sentinels(table.data))
            made["input"]["max_abs"] = nearer_limit(made["input"]["max_abs"], limit, made["input"].get("center"))
        label = made.get("label", {}) | table.label()
        if options.precision == "int16":  # a model that never learns labels has no limit of labels in int16
            label.pop("max_abs", None)
        spec = make_spec(made | {"label": label}, table.name)
        beyond = len(usual) - int(spec.inner.accepts(usual).sum())
        if beyond:
            raise UserError(
                f"{beyond:,} of {len(table.x):,} rows hold inputs beyond {spec.input_max_abs:.3g}, the largest magnitude for which this model cannot "
                f"overflow in {options.precision}; bring the columns to similar scales, or give a lower {shown_option('degree')}, or {shown_option('precision', 'float64')}"
            )
        x = self.rows[0]
        rounding = compare(spec.inner, replace(source, signal=None), trained, x[:: -(-len(x) // COMPARED_ROWS)])
        return Frozen(trained, spec, rounding, flash_bytes(spec.inner))

    # ---- results

    def report_of(self, made: Frozen, kernel: dict[str, Any], linear: float | None = None) -> dict[str, Any]:
        """Return the beginning of a report: the model, its data, and simple predictors.  linear: a linear model's error, if it is known."""
        table, measure = self.table, "error_rate" if self.table.classes else "rmse"
        simple = {"linear model": linear, without_model_phrase(table.classes): self._without_model()}
        return {
            "name": made.spec.name,
            "model": table.model,
            "precision": made.spec.precision,
            "kernel": kernel,
            "rows": len(self.train),
            **({} if table.stage is None else {"raw_rows": dict(table.stage.raw_rows)}),
            "held_out_rows": len(self.test),
            "in_time": table.in_time,
            **({} if table.device is None else {"device_count": len(np.unique(table.device))}),
            "inputs": table.inputs,
            "label": table.column,
            "classes": table.classes,
            "assumed": table.assumed,
            "data": table.data,
            "measure": measure,
            "simple": {name: {measure: error} for name, error in simple.items() if error is not None},
        }

    def _without_model(self) -> float:
        """Return the error of always predicting the most frequent class; for numbers, of predicting the mean of the other rows."""
        y = self.rows[1]
        if self.table.classes:
            return float(1 - np.bincount(y, self.weights[y]).max() / len(y))
        return root_of_mean_square(float(np.square((y - y.mean()) * len(y) / (len(y) - 1)).mean()))

    def on_test_rows(self, spec: Spec) -> dict[str, Any]:
        """Predict the held-out rows as the device does.  Returns a dict with the error, its standard deviation, the number of rows that
        the device refuses and, if rows follow each other in time, the growth of the errors.
        """
        x, y = self.table.x[self.test], self.table.y[self.test]
        taken = spec.inner.accepts(x)
        if not taken.any():
            return {}
        x, y = x[taken], y[taken]
        model, every = HostModel(spec.inner), np.ones(len(x), bool)
        if self.table.classes:
            weights = self.weights[y] / self.weights[y].mean()
            test_losses = Losses.of(weights * (model.classify(x) != y), every, True)
        else:
            errors = np.asarray(model.predict(x), np.float64).ravel() - y
            test_losses = Losses.of(np.square(errors), every, False, errors)
        report = {
            "held_out": test_losses.error,
            "held_out_deviation": test_losses.deviation,
            "held_out_refused": int((~taken).sum()),
        }
        return report | {"held_out_grows": test_losses.growth if self.table.in_time else None}

    def too_coarse(self, made: Frozen, typical: float, remedy: str) -> list[str]:
        """Return a warning if rounding changes a class, or a prediction by a large fraction of a typical error."""
        rounding = made.rounding
        if not (rounding["difference"] > COARSE * typical or rounding["classes_differ"]):
            return []
        what = f"predictions differ by up to {rounding['difference']:.3g} from those of the trained model"
        if self.table.classes:
            what += f", and {rounding['classes_differ']:,} of {rounding['rows']:,} rows get another class"
        return [f"in {made.spec.precision}, {what}; {remedy}"]


def held_out(table: LabelledTable, split: str | float | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows, and of the held-out rows.

    With many devices, whole devices are held out.  Otherwise, if errors of neighbouring rows are correlated, the last rows are held out; if
    not, random rows of each class.  Rows with an outlier, which is a number far from all others in its column, are not used for
    training.
    split: the fraction to hold out.  ",last" or ",random" after the fraction decides which rows are held out.
    """
    hold_out = shown_option("hold_out")
    text, _, which = str(split or 0).partition(",")
    part, text = (float(text), f"{float(text):g}") if is_number(text) else (-1.0, text)
    raise_first_error(
        (
            not 0 <= part < 1 or which not in ("", "last", "random"),
            f"{hold_out} is {','.join(filter(None, (text, which)))}; give a fraction from 0 to below 1, which may be followed by ,last or ,random, such as 0.3 or 0.3,random",
        ),
        (seed < 0, f"seed is {seed}; it must be 0 or more"),
        (seed >= 2**32, f"seed is {seed}; it must be at most {2**32 - 1}"),
    )
    raise_first_error(
        (
            which and table.device is not None,
            f'{hold_out} is {split}, but whole devices are held out; leave out ",{which}"',
        )
    )
    if table.device is not None:
        train, test = _held_out_devices(table.device, part, seed)
        return train[~table.apart[train]], test
    table.in_time = which == "last" or (which == "" and table.follows)
    if table.in_time:
        at = round((1 - part) * len(table.y))
        train, test = np.split(np.arange(len(table.y)), [at])
        whole = not (table.classes and part) or len(np.unique(table.y[train])) == len(table.classes)
        raise_first_error(
            (
                which and not whole,
                f"{hold_out} is {split}, but the rows before the held-out rows lack a class; give a smaller part, or {part:g},random",
            )
        )
        table.in_time = whole
    if not table.in_time:
        train, test = _drawn(table, part, seed)
    raise_first_error(
        (part and not len(test), f"{hold_out} {part:g} holds out none of {len(table.y):,} rows; give a larger part"),
        (len(train) < 2, f"{hold_out} {part:g} leaves 1 row to train on; give a smaller part"),
    )
    if table.in_time and which == "":
        judged = f"the last {100 * part:g} % of the rows are held out, and " * bool(part)
        table.assumed.append(
            f"errors of neighbouring rows are correlated, so {judged}folds are blocks of rows; {shown_option('hold_out', f'{part:g},random')} draws random rows"
        )
    return train[~table.apart[train]], test


def _drawn(table: LabelledTable, part: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows, and of the held-out rows, which are drawn at random from each class."""
    labels = table.y if table.classes else np.zeros(len(table.y), np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    test = np.zeros(len(labels), bool)
    for k in np.unique(labels):
        rows = order[labels[order] == k]
        test[rows[: min(round(part * len(rows)), len(rows) - 1)]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)


def _held_out_devices(device: np.ndarray, part: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows, and of the held-out rows, which are all rows of randomly drawn devices."""
    order = np.random.default_rng(seed).permutation(np.unique(device))
    count = round(part * len(order))
    raise_first_error(
        (
            part and not count,
            f"{shown_option('hold_out')} {part:g} holds out none of {len(order):,} devices; give a larger part",
        ),
        (count == len(order), f"{shown_option('hold_out')} {part:g} leaves no device to train on; give a smaller part"),
    )
    test = np.isin(device, order[:count])
    return np.flatnonzero(~test), np.flatnonzero(test)


def losses(table: LabelledTable, y: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """Return the squared error of each row, (rows,); for classes, 1 if the class is wrong, else 0."""
    if table.classes is None:
        return np.asarray(np.square(predictions.ravel() - y))
    functions = predictions.reshape(len(y), -1)
    decided = functions[:, 0] > 0 if functions.shape[1] == 1 else functions.argmax(axis=1)
    return np.asarray(decided != y, np.float64)


def flash_bytes(spec: Spec) -> int:
    return build(spec).figures["const_bytes"]


@contextlib.contextmanager
def plainly(machine: Any) -> Iterator[None]:
    """Within the block, remove the estimator's name from the beginning of error messages."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).removeprefix(f"{type(machine).__name__}: ")) from None
