"""``fit`` with trained vectors: vectors, widths and weights are trained together."""

from __future__ import annotations

import warnings
from typing import Any, Self

from pykernel.errors import shown_option
from pykernel.estimators.trained import USUAL, TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.parallel import one_thread
from pykernel.request.kinds import positive_numbers
from pykernel.telling import raise_first_error, root_of_mean_square
from pykernel.training.vectors import FOLDS
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows.arguments import need_unset
from pykernel.workflows.fit_job import Found, Frozen, Job, held_out, plainly
from pykernel.workflows.fit_request import Fit

MOST = 64
"""Largest number of vectors if only flash is limited.  More vectors take longer to train, and are rarely better."""
NOT_HERE = ("sigma", "gamma", "coding", "by", "method", "with_", "jobs")
"""Options that apply only to vectors chosen among rows.  They are refused if vectors are trained."""
CHOOSING = (*NOT_HERE, "ridge", "cv", "kernel")
"""If no model is given and one of these options is, ``fit`` only chooses vectors among rows, and trains no vectors."""


def fit(options: Fit, table: LabelledTable) -> Found:
    """Train vectors and freeze the machine.  Prints the assumptions before training starts."""
    need_unset(options, NOT_HERE, "model")
    loss, kernel, trained = shown_option("loss"), shown_option("kernel"), f"{shown_option('model', 'trained')}"
    raise_first_error(
        (
            options.loss is not None and table.classes is not None,
            f"{loss} is for numbers, but {table.column} holds classes; leave {loss} out",
        ),
        (options.kernel != "gaussian", f"{kernel} is {options.kernel}; {trained} has only the gaussian kernel"),
    )
    job = TrainedJob.of(options, table)
    vectors = job.vectors()
    made, report = job.reported(vectors)
    return Found(report, made.spec, None)


class TrainedJob(Job):
    """A ``Job`` with the estimator for trained vectors."""

    @classmethod
    def of(cls, options: Fit, table: LabelledTable) -> Self:
        train, test = held_out(table, options.hold_out, options.seed)
        return cls(options, table, train, test, options.standardise is not False)

    def vectors(self) -> int:
        rows, n_max, limit = len(self.train), self.options.n_max, self.limit
        self.need_possible()
        if limit is None:
            return n_max or min(USUAL, rows)
        fits, wanted = self.fitting(limit), n_max or min(MOST, rows)
        return wanted if fits >= wanted else self.fewer(fits, limit)

    def machine(self, vectors: int | None) -> Any:
        parameters: dict[str, Any] = {
            "precision": self.options.precision,
            "random_state": self.options.seed,
            "cv": self.folds({"deleted": FOLDS}, f"with {shown_option('model', 'trained')} it must be"),
            "standardise": self.options.standardise,
        }
        if self.options.ridge is not None:
            parameters["ridge"] = positive_numbers(self.options.ridge, "ridge")
        if self.table.classes is not None:
            return TrainedKernelClassifier(vectors, **parameters)
        return TrainedKernelRegressor(vectors, loss=self.options.loss or "squared", **parameters)

    def trained(self, vectors: int | None) -> Any:
        machine = self.machine(vectors)
        with plainly(machine), one_thread, warnings.catch_warnings(), self.options.watch.progress() as show:
            warnings.simplefilter("ignore")  # the report repeats the warning that a linear model is as good
            machine.progress = lambda part: show(part, f"training {vectors} vectors")
            self.fitted(machine)
        return machine.set_params(progress=False)

    def report(self, made: Frozen) -> dict[str, Any]:
        machine, classes = made.trained, self.table.classes is not None
        shown = (lambda value: float(value)) if classes else root_of_mean_square
        errors: dict[str, float | None] = {"cross_validated": shown(machine.cv_error_), "corrected": None}
        if not classes and machine.loss == "squared":
            errors["corrected"] = root_of_mean_square(machine.cv_error_ + machine.optimism_)
        linear = f"a linear model is as good on left-out rows; use a linear model ({shown_option('kernel', 'linear')}), or other inputs"
        warned = [*self.table.warnings, *([linear] if machine.linear_is_enough_ else [])]
        # for classes, the functions are log odds, and 1 is taken as their typical error
        typical = 1.0 if classes else root_of_mean_square(machine.cv_error_)
        warned += self.too_coarse(
            made, typical, f"use {shown_option('precision', 'float64')}, or float32 in place of int16"
        )
        taken = {
            "inputs": "standardised" if machine.standardised_ else "given",
            "widths": machine.widths_,
            "ridge": machine.ridge_,
            "steps": machine.n_iter_,
        }
        return self.report_of(made, {"function": "gaussian"}, shown(machine.linear_error_)) | {
            "loss": None if classes else machine.loss,
            "cv": machine.cv,
            "best": taken,
            "chosen": taken,
            "reason": None,
            "errors": errors | self.on_test_rows(made.spec),
            "table": [],
            "candidates": machine.candidates_,
            "vectors": made.vectors,
            "basis": None,
            "flash_bytes": made.size,
            "rounding": made.rounding,
            "interrupted": machine.interrupted_,
            "warnings": warned,
        }
