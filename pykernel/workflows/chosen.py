"""``fit`` with vectors chosen among the rows, or with all rows as vectors: choose width and ridge, train an estimator, freeze it as a spec,
and estimate its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import METHODS, choose_method
from pykernel.errors import UserError, shown_option
from pykernel.estimators import batch as kernel_machines
from pykernel.parallel import checked_jobs, cores, one_thread
from pykernel.request.kinds import positive_numbers
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.telling import raise_first_error, root_of_mean_square
from pykernel.training.selection import (
    Function,
    GroupFolds,
    default_ridges,
    default_widths,
    width_name,
)
from pykernel.tuning.tables import LabelledTable, uneven
from pykernel.workflows.arguments import method_options
from pykernel.workflows.arguments import width as kernel_width
from pykernel.workflows.fit_job import Found, Frozen, Job, held_out, losses, plainly
from pykernel.workflows.fit_request import MANY_ROWS, Fit

LEAST_RIDGE = 1e-6
"""Smallest default ridge of ls-svm and krr in float32, as a fraction of the Gram matrix's trace."""
EVERY = 13 * 2**33
"""All rows may be vectors if widths * rows^3 is at most this number: 2,048 rows for the 13 default widths."""
MINUTE = 13 * 3 * 2**20
"""If not all rows may be vectors, the default number of vectors is chosen so that widths * rows * vectors is at most
this number: 256 vectors for 12,288 rows and 13 widths.

EVERY and MINUTE are constants instead of measured times, so that a spec does not depend on the speed of the PC.
"""
PAIRS = 2048
"""For more rows than this, the method sgma replaces exhaustive, which compares all pairs of rows: exhaustive takes three times as long
and leads to the same errors."""
FEW, MANY = 16, 512
"""Smallest and largest default number of vectors, if not all rows may be vectors."""


def fit(options: Fit, table: LabelledTable) -> Found:
    """Choose vectors, train a machine and freeze it.  Prints the assumptions before training starts."""
    if options.loss is not None:
        raise UserError(f"{shown_option('loss')} applies only to {shown_option('model', 'trained')}; leave it out")
    train, test = held_out(table, options.hold_out, options.seed)
    job = ChosenJob(options, table, train, test, scales(table, train, options.standardise))
    vectors = job.vectors()
    job.grid(job.machine(vectors))  # raises UserError before training starts
    made, report = job.reported(vectors)
    machine = estimator_of(made.trained)
    return Found(report, made.spec, machine.selection_, losses(table, job.rows[1], machine.loo_predictions_))


def scales(table: LabelledTable, train: np.ndarray, wanted: bool | None) -> bool:
    """Return whether to standardise the inputs."""
    if wanted is None:
        wanted = uneven(table.x[train])
        if wanted:
            table.assumed.append("inputs standardised: their scales differ, or their values are far from zero")
    return wanted


def estimator_of(trained: Any) -> Any:
    """Return the estimator without the scaler of its pipeline."""
    return trained[-1] if hasattr(trained, "steps") else trained


@dataclass(frozen=True)
class ChosenJob(Job):
    """A ``Job`` with the estimator for vectors that are chosen among rows."""

    # ---- the estimator

    @property
    def trained_for(self) -> str:
        """The precision of the estimator.

        A model for int16 is trained in float32, and rounded afterwards.
        """
        return "float32" if self.options.precision == "int16" else self.options.precision

    def machine(self, vectors: int | None) -> Any:
        """Return the unfitted estimator.  vectors: the number of vectors to choose; None for all rows."""
        options, table = self.options, self.table
        work = len(self.train) * (vectors or len(self.train)) ** 2
        parameters: dict[str, Any] = {
            "jobs": checked_jobs(options.jobs) or (cores() if work >= MANY_ROWS**3 else 1),
            "progress": options.watch.bars,
            "precision": self.trained_for,
            "random_state": options.seed,
        }
        words = {"deleted": "deleted", "kept": "kept"}
        parameters |= kernel_parameters(options) | {"cv": self.folds(words, "it must be deleted, kept, or")}
        parameters |= _class_parameters(options, table)
        if vectors is not None:
            parameters |= {"basis": vectors, "basis_params": self._basis_parameters()}
        kinds = {
            ("kfd", True): kernel_machines.KernelFisherClassifier,
            ("ls-svm", True): kernel_machines.LSSVMClassifier,
            ("ls-svm", False): kernel_machines.LSSVMRegressor,
            ("krr", True): kernel_machines.KernelRidgeClassifier,
            ("krr", False): kernel_machines.KernelRidgeRegressor,
        }
        machine = kinds[table.model, table.classes is not None](options.kernel, **parameters)
        if options.ridge is None and self.trained_for == "float32" and table.model != "kfd":
            # each weight is a residual r divided by the ridge, so the rounding error of a sum of l weights is at most
            # 2^-24 l r / ridge; for the smallest ridge, which is 1e-6 l, this bound is 0.06 r, about COARSE r
            _, ridges = self.grid(machine)
            machine.ridge = [ridge for ridge in ridges if ridge >= 0.99 * LEAST_RIDGE * ridges[-1]]
        return machine

    def _basis_parameters(self) -> dict[str, Any]:
        """Return parameters for the choice of vectors.

        Vectors that the estimator's precision can hardly distinguish from the span of earlier vectors are not chosen.
        """
        epsilon = LEAST_ALD_THRESHOLD.get(self.trained_for, 0.0)
        rows, method = len(self.train), self.options.method or "auto"
        if method == "auto" and rows > PAIRS and choose_method(rows, self.options.n_max or MANY)[0] == "exhaustive":
            method = "sgma"
        return {"method": method, "epsilon": epsilon} | method_options(self.options.with_, method)

    @cached_property
    def x(self) -> np.ndarray:
        """The inputs to train on, (l, d); they are standardised if ``scales`` is true."""
        x, _ = self.rows
        return np.asarray(StandardScaler().fit_transform(x)) if self.scales else x

    # ---- how many vectors

    def vectors(self) -> int | None:
        """Return the number of vectors to choose; None if every row is a vector."""
        options, limit = self.options, self.limit
        method = options.method or "auto"
        if method not in METHODS:
            number = f"; for {method} vectors give {shown_option('n_max', method)}" if method.isdigit() else ""
            raise UserError(f"{shown_option('method', method)} is not known; there are: {', '.join(METHODS)}{number}")
        self.need_possible()
        wanted = options.n_max or self.in_a_minute
        if wanted == len(self.train) and options.method is None:
            wanted = None
        every = wanted is None and limit is None
        how = f"every row is a vector; give {shown_option('n_max')} or {shown_option('flash')}, too"
        raise_first_error(
            (options.method is not None and every, f"{shown_option('method')} says how vectors are chosen, but {how}"),
            (options.with_ is not None and every, f"{shown_option('with_')} says how vectors are chosen, but {how}"),
        )
        self._basis_parameters()  # raises UserError for invalid options
        fits = None if limit is None else self.fitting(limit)
        if limit is not None and fits is not None and fits < (wanted or len(self.train)) and options.kernel != "linear":
            return self.fewer(fits, limit)
        if options.n_max is None and wanted is not None:
            self.table.assumed.append(
                f"{wanted:,} of {len(self.train):,} rows are vectors, so that training takes about a minute; {shown_option('n_max')} sets another number"
            )
        return wanted

    @cached_property
    def in_a_minute(self) -> int | None:
        """The number of vectors for which training takes about a minute; None if all rows may be vectors."""
        if self.options.kernel == "sigmoid":  # a basis cannot be chosen for this kernel
            return None
        rows, widths = len(self.train), len(self.grid(self.machine(None))[0])
        if widths * rows**3 <= EVERY:
            return None
        n = FEW
        while n < MANY and widths * rows * 2 * n <= MINUTE:
            n *= 2
        return n

    # ---- the work

    def trained(self, vectors: int | None) -> Any:
        machine = self.machine(vectors)
        trained = make_pipeline(StandardScaler(), machine) if self.scales else machine
        with plainly(machine), one_thread:  # so that the spec's bits do not depend on the number of threads
            self.fitted(trained)
        return trained

    def grid(self, machine: Any) -> tuple[Sequence[float], Sequence[float]]:
        """Return the widths and ridges that will be tried."""
        widths = sorted(_option_widths(machine) or default_widths(machine.kernel, self.x))
        middle = widths[len(widths) // 2]
        model: Any = self.table.model
        return widths, sorted(machine.ridge or default_ridges(model, _mercer(machine, middle), self.x))

    # ---- results

    def _errors(self, machine: Any) -> dict[str, float | None]:
        """Return the cross-validated error, and the same error corrected for optimism."""
        selection, classes = machine.selection_, self.table.classes is not None
        shown = float if classes else root_of_mean_square
        if selection is None:
            known: dict[str, float | None] = {"cross_validated": shown(machine.loo_error_)}
            return known if classes else known | {"corrected": None}
        error = selection.error[selection.taken] if classes else selection.value
        corrected = shown(selection.corrected) if selection.by == "error" or not classes else None
        return {"cross_validated": shown(error), "corrected": corrected}

    def report(self, made: Frozen) -> dict[str, Any]:
        table, machine = self.table, estimator_of(made.trained)
        selection, errors = machine.selection_, self._errors(machine)
        warned = [*table.warnings, *([] if selection is None or selection.edge is None else [selection.edge])]
        typical = root_of_mean_square(float(machine.loo_press_ if table.classes else machine.loo_error_))
        warned += self.too_coarse(made, typical, f"use larger ridges, or {shown_option('precision', 'float64')}")
        name = width_name(machine.kernel)
        taken = ({name: machine.kernel_[name]} if name else {}) | {"ridge": machine.ridge_}
        best = taken
        if selection is not None:
            cell = selection.cell(*selection.best)
            best = ({name: cell["width"]} if name else {}) | {"ridge": cell["ridge"]}
        basis = None if machine.reduced_ is None else machine.reduced_.basis
        return self.report_of(made, machine.kernel_) | {
            "by": selection.by if selection is not None else None,
            "cv": selection.cv
            if selection is not None
            else machine.cv
            if isinstance(machine.cv, GroupFolds)
            else "deleted",
            "best": best,
            "chosen": taken,
            "reason": None if selection is None else selection.reason,
            "errors": errors | self.on_test_rows(made.spec),
            "optimism": selection.optimism if selection is not None else None,
            "table": selection.table if selection is not None else [],
            "widths": selection.table_of_widths if selection is not None else [],
            "vectors": made.vectors,
            "basis": None if basis is None else {key: getattr(basis, key) for key in ("method", "reason", "stopped")},
            "flash_bytes": made.size,
            "rounding": made.rounding,
            "warnings": warned,
        }


def kernel_parameters(options: Fit) -> dict[str, Any]:
    """Return the estimator's parameters for the kernel: widths, ridges and constants."""
    own, widths = kernel_width(options, get_args(Function))
    parameters: dict[str, Any] = {
        name: positive_numbers(value, name)
        for name, value in ((own, widths), ("ridge", options.ridge))
        if name is not None and value is not None and value != ""
    }
    if options.kernel in ("polynomial", "sigmoid"):
        parameters["coef0"] = options.coef0
    if options.kernel == "polynomial":
        parameters["degree"] = options.degree
    return parameters


def _class_parameters(options: Fit, table: LabelledTable) -> dict[str, Any]:
    """Return the parameters for classes: their coding, and the criterion that is minimised."""
    parameters = {name: text for name, text in (("coding", options.coding), ("by", options.by)) if text is not None}
    if table.classes is not None:
        return parameters
    for name, text in parameters.items():
        if text != "press":
            raise UserError(f"{shown_option(name, text)} is for classes, but {table.column} holds numbers")
    return {}


def _option_widths(machine: Any) -> Any:
    """Return the widths that were given as options; None if none were given; [1.0] for the linear kernel."""
    return {"gaussian": machine.sigma, "linear": [1.0]}.get(machine.kernel, machine.gamma)


def _mercer(machine: Any, width: float) -> MercerKernel:
    gamma = 0.5 / width**2 if machine.kernel == "gaussian" else width
    return MercerKernel(machine.kernel, gamma, machine.coef0, machine.degree)
