"""Trained vectors: vectors, widths and weights trained together, frozen as a spec."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pykernel.errors import UserError, option
from pykernel.estimators.trained import USUAL, TrainedKernelClassifier, TrainedKernelRegressor
from pykernel.parallel import one_thread
from pykernel.spec.model import Spec
from pykernel.training.vectors import FOLDS
from pykernel.tuning.plan import parse_amount
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows.asked import FitAsked
from pykernel.workflows.chosen import (
    Found,
    Job,
    held_out,
    on_test_rows,
    plainly,
    root,
    too_coarse,
    without_model,
)
from pykernel.workflows.given import positive_numbers

MOST = 64
"""Most vectors if only flash is limited: more vectors are slower to train, and seldom better."""
NOT_HERE = ("sigma", "gamma", "coding", "by", "basis", "with_", "jobs", "plot")
"""Options for vectors or widths that are chosen among rows; they are refused here, where vectors are trained."""


def fit(options: FitAsked, table: LabelledTable) -> Found:
    """Train and freeze.  Assumptions are printed before the work."""
    for name in NOT_HERE:
        if getattr(options, name) is not None:
            told = option(name.strip("_"))
            raise UserError(
                f"{told} is not of {option('model')} trained, which trains vectors and widths; leave {told} out"
            )
    if options.loss not in (None, "squared", "absolute"):
        raise UserError(f"{option('loss')} is {options.loss!r}; it must be squared or absolute")
    if options.loss is not None and table.classes is not None:
        raise UserError(f"{option('loss')} is of numbers, but {table.column} holds classes; leave it out")
    if options.kernel != "gaussian":
        raise UserError(
            f"{option('kernel')} is {options.kernel}; {option('model')} trained has the gaussian kernel only"
        )
    train, test = held_out(table, options.hold_out, options.seed)
    job = TrainedJob(options, table, train, options.standardise is not False)
    limit = None if options.flash is None else parse_amount(options.flash, "flash")
    vectors = job.vectors(limit)
    options.watch.note(f"assumed: {'; '.join(table.assumed)}")
    trained, spec, rounding, size = job.run(vectors, limit)
    with job.waiting("testing the spec"):
        return Found(job.report(trained, test, spec, rounding, size), spec, None)


class TrainedJob(Job):
    """As ``Job``, with the estimator for trained vectors."""

    def vectors(self, limit: int | None) -> int:
        rows, given = len(self.train), self.options.n_max
        if given is not None and not 1 <= given <= rows:
            raise UserError(
                f"{option('n_max')} is {given}; it must be from 1 to {rows:,}, the number of rows to train on"
            )
        if limit is None:
            return given or min(USUAL, rows)
        fits = self.fitting(limit)
        if fits < (given or min(MOST, rows)):
            self.table.assumed.append(f"at most {fits:,} vectors, as {option('flash')} holds {limit:,} bytes")
        return min(fits, given or MOST, rows)

    def machine(self, vectors: int | None) -> Any:
        parameters: dict[str, Any] = {
            "precision": self.options.precision,
            "random_state": self.options.seed,
            "cv": self._folds(),
            "standardise": self.options.standardise,
        }
        if self.options.ridge is not None:
            parameters["ridge"] = positive_numbers(self.options.ridge, "ridge")
        if self.table.classes is not None:
            return TrainedKernelClassifier(vectors, **parameters)
        return TrainedKernelRegressor(vectors, loss=self.options.loss or "squared", **parameters)

    def _folds(self) -> int:
        text = str(self.options.cv)
        if text == FitAsked.cv:
            return FOLDS
        if text.isascii() and text.isdigit() and int(text) >= 2:
            return int(text)
        raise UserError(f"{option('cv')} is {text!r}; of {option('model')} trained it must be a number of folds from 2")

    def trained(self, vectors: int | None) -> Any:
        machine = self.machine(vectors)
        with plainly(machine), one_thread, warnings.catch_warnings(), self.options.watch.progress() as show:
            warnings.simplefilter("ignore")  # the warning that a linear model is as good: the report says so
            machine.progress = lambda part: show(part, f"training {vectors} vectors")
            machine.fit(self.table.x[self.train], self.table.y[self.train])
        return machine.set_params(progress=False)

    def report(
        self, machine: Any, test: np.ndarray, spec: Spec, rounding: Mapping[str, Any], size: int
    ) -> dict[str, Any]:
        table = self.table
        classes = table.classes is not None
        shown = (lambda value: float(value)) if classes else root
        errors: dict[str, float | None] = {"cross_validated": shown(machine.cv_error_), "corrected": None}
        if not classes and machine.loss == "squared":
            errors["corrected"] = root(machine.cv_error_ + machine.optimism_)
        errors |= {"linear": shown(machine.linear_error_), "trivial": without_model(table, table.y[self.train])}
        errors |= on_test_rows(spec, table, test)
        told = list(table.warnings)
        if machine.linear_is_enough_:
            told.append(
                f"a linear model is as good on rows left out; take one ({option('kernel')} linear), or other inputs"
            )
        typical = 1.0 if classes else root(machine.cv_error_)  # for classes, the functions are log odds
        told += too_coarse(
            table, spec, rounding, typical, f"take {option('precision')} float64, or float32 in place of int16"
        )
        taken = {
            "inputs": "standardised" if machine.standardised_ else "given",
            "widths": machine.widths_,
            "ridge": machine.ridge_,
            "steps": machine.n_iter_,
        }
        assert spec.expansion is not None
        return {
            "name": spec.name,
            "model": table.model,
            "precision": spec.precision,
            "kernel": {"function": "gaussian"},
            "rows": len(self.train),
            **({} if table.stage is None else {"raw_rows": dict(table.stage.raw_rows)}),
            "held_out_rows": len(test),
            "inputs": table.inputs,
            "label": table.column,
            "classes": table.classes,
            "assumed": table.assumed,
            "measure": "error_rate" if classes else "rmse",
            "loss": None if classes else machine.loss,
            "cv": machine.cv,
            "best": taken,
            "taken": taken,
            "reason": None,
            "errors": errors,
            "table": [],
            "candidates": machine.candidates_,
            "vectors": len(spec.expansion.vectors),
            "basis": None,
            "flash_bytes": size,
            "rounding": rounding,
            "interrupted": machine.interrupted_,
            "warnings": told,
        }
