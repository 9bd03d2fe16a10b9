"""``fit`` with trained vectors: vectors, widths and weights are trained together.  Without a named model, the better one is
taken: this machine, or one of as many vectors that are chosen among the rows.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from pykernel.errors import UserError, option
from pykernel.estimators.trained import USUAL, TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.parallel import one_thread
from pykernel.request.kinds import positive_numbers
from pykernel.telling import number, rate, refuse, root
from pykernel.training.vectors import FOLDS
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows.fit_job import Found, Frozen, Job, held_out, losses, plainly
from pykernel.workflows.fit_request import Fit
from pykernel.workflows.given import LARGE, need_unset

MOST = 64
"""Most vectors if only flash is limited: more vectors are slower to train, and seldom better."""
NOT_HERE = ("sigma", "gamma", "coding", "by", "method", "with_", "jobs")
"""Options for vectors or widths that are chosen among rows; they are refused here, where vectors are trained."""
SURELY = 2.0
"""Trained vectors are taken if their losses are smaller by so many standard errors of the difference."""
CHOOSING = (*NOT_HERE, "ridge", "cv", "kernel")
"""Options that are only for vectors chosen among rows: with one of them, no vectors are trained."""


def fit(options: Fit, table: LabelledTable) -> Found:
    """Train and freeze.  Assumptions are printed before the work."""
    need_unset(options, NOT_HERE, "model")
    loss, kernel, trained = option("loss"), option("kernel"), f"{option('model', 'trained')}"
    refuse(
        (
            options.loss is not None and table.classes is not None,
            f"{loss} is of numbers, but {table.column} holds classes; leave it out",
        ),
        (options.kernel != "gaussian", f"{kernel} is {options.kernel}; {trained} has the gaussian kernel only"),
    )
    job = TrainedJob.of(options, table)
    vectors = job.vectors()
    made, report = job.reported(vectors)
    return Found(report, made.spec, None)


class TrainedJob(Job):
    """As ``Job``, with the estimator for trained vectors."""

    @classmethod
    def of(cls, options: Fit, table: LabelledTable) -> TrainedJob:
        train, test = held_out(table, options.hold_out, options.seed)
        return cls(options, table, train, test, options.standardise is not False)

    def vectors(self) -> int:
        rows, given, limit = len(self.train), self.options.n_max, self.limit
        self.need_possible()
        if limit is None:
            return given or min(USUAL, rows)
        fits, wanted = self.fitting(limit), given or min(MOST, rows)
        return wanted if fits >= wanted else self.fewer(fits, limit)

    def machine(self, vectors: int | None) -> Any:
        parameters: dict[str, Any] = {
            "precision": self.options.precision,
            "random_state": self.options.seed,
            "cv": self.folds({"deleted": FOLDS}, f"of {option('model', 'trained')} it must be"),
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
            warnings.simplefilter("ignore")  # the warning that a linear model is as good: the report says so
            machine.progress = lambda part: show(part, f"training {vectors} vectors")
            self.fitted(machine)
        return machine.set_params(progress=False)

    def report(self, made: Frozen) -> dict[str, Any]:
        machine, classes = made.trained, self.table.classes is not None
        shown = (lambda value: float(value)) if classes else root
        errors: dict[str, float | None] = {"cross_validated": shown(machine.cv_error_), "corrected": None}
        if not classes and machine.loss == "squared":
            errors["corrected"] = root(machine.cv_error_ + machine.optimism_)
        linear = f"a linear model is as good on rows left out; take one ({option('kernel', 'linear')}), or other inputs"
        told = [*self.table.warnings, *([linear] if machine.linear_is_enough_ else [])]
        typical = 1.0 if classes else root(machine.cv_error_)  # for classes, the functions are log odds
        told += self.too_coarse(made, typical, f"take {option('precision', 'float64')}, or float32 in place of int16")
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
            "taken": taken,
            "reason": None,
            "errors": errors | self.on_test_rows(made.spec),
            "table": [],
            "candidates": machine.candidates_,
            "vectors": made.vectors,
            "basis": None,
            "flash_bytes": made.size,
            "rounding": made.rounding,
            "interrupted": machine.interrupted_,
            "warnings": told,
        }


# ------------------------------------------------------------------------------------------------- without a named model


def fit_beside(options: Fit, table: LabelledTable) -> Found:
    """With a limit of the vectors: the better one of both machines.  Without a limit: all rows are vectors; for a large
    model, the result of a few trained vectors is reported as well.
    """
    from pykernel.workflows import chosen

    assumed, warnings = list(table.assumed), list(table.warnings)
    found = chosen.fit(options, table)
    found.report["instead"] = None
    limited = found.report["basis"] is not None
    if any(getattr(options, name) != getattr(Fit, name) for name in CHOOSING):
        return found
    if not limited and (options.flash is not None or found.report["flash_bytes"] <= LARGE):
        return found
    # assumptions of the other machine do not apply here
    other = replace(table, model="trained", assumed=assumed, warnings=warnings)
    job = TrainedJob.of(options, other)
    made: Frozen | None = None
    try:
        made = job.run(job.vectors())
    except UserError:  # such as inputs that are all constant: there is nothing to train
        return found
    except KeyboardInterrupt:
        pass  # told below
    if made is None or made.trained.interrupted_:
        found.report["interrupted"] = True
        return found
    machine = made.trained
    assert found.wrong is not None
    at = machine.cv_indices_
    wrong = losses(other, job.rows[1][at], machine.cv_predictions_)
    better = surely(found.wrong[at], wrong)
    if limited and better > SURELY:
        with job.waiting("testing the spec"):
            report = job.report(made)
        beaten = {key: found.report[key] for key in ("model", "vectors", "flash_bytes")}
        report["instead"] = beaten | {"error": found.report["errors"]["cross_validated"], "better": -better}
        return Found(report, made.spec, None)
    error = float(wrong.mean()) if other.classes else float(np.sqrt(wrong.mean()))
    found.report["instead"] = {
        "model": "trained",
        "vectors": made.vectors,
        "error": error,
        "flash_bytes": made.size,
        "better": better,
    }
    if not limited:
        shown = rate if other.classes else number
        found.report["warnings"].append(
            f"the model takes {found.report['flash_bytes']:,} bytes of flash; with {option('model', 'trained')} {made.vectors} vectors have the error "
            f"{shown(error)} in place of {shown(found.report['errors']['cross_validated'])}, in {made.size:,} bytes"
        )
    return found


def surely(first: np.ndarray, second: np.ndarray) -> float:
    """The mean by which the second losses are smaller, in standard errors of the difference.

    first, second: (rows,).
    """
    difference = first - second
    deviation = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    return float(difference.mean()) / (deviation / len(difference) ** 0.5) if deviation else 0.0
