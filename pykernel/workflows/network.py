"""``fit`` with a network of one hidden layer, which scikit-learn trains."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.errors import shown_option
from pykernel.importers.steps import steps_of
from pykernel.telling import root_of_mean_square
from pykernel.training.coding import Targets
from pykernel.training.network import trained_network
from pykernel.training.selection import stratified_folds
from pykernel.training.vectors import COMPARED, FOLDS
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows.arguments import need_unset
from pykernel.workflows.fit_job import Found, Frozen, losses
from pykernel.workflows.fit_request import Fit
from pykernel.workflows.trained import CHOOSING, TrainedJob

NOT_HERE = (*(name for name in CHOOSING if name != "cv"), "loss", "weights", "standardise")
"""Options that scikit-learn's networks do not have, or whose values this module chooses."""


def fit(options: Fit, table: LabelledTable) -> Found:
    """Train a network and freeze it.  Prints the assumptions before training starts."""
    need_unset(options, NOT_HERE, "model")
    job = NetworkJob.of(options, table)
    made, report = job.reported(job.vectors())
    return Found(report, made.spec, None)


class NetworkJob(TrainedJob):
    """Like ``TrainedJob``, with hidden units instead of vectors."""

    @property
    def function(self) -> str:
        return "relu"

    def trained(self, vectors: int | None) -> Any:
        assert vectors is not None
        with self.waiting(f"training {vectors} hidden units"):
            return trained_network(*self.rows, vectors, bool(self.table.classes), self.options.seed)[0]

    @property
    def cv(self) -> Any:
        """The number of folds, or folds of whole devices or blocks of rows."""
        most = min(FOLDS, max(2, len(self.train)))
        return self.folds({"deleted": most}, f"with {shown_option('model', 'network')} it must be")

    def left_out(self, vectors: int, at: np.ndarray | None = None) -> np.ndarray:
        """Return the losses on left-out rows or devices.  at: the rows' positions; by default, at most COMPARED rows, drawn at random."""
        (x, y), count, folds = self.rows, len(self.table.classes or ()), self.cv
        targets = Targets.of_classes(y, count, "signs") if count else Targets.of_values(y)
        if at is None:
            at = np.sort(np.random.default_rng(self.options.seed).permutation(len(x))[:COMPARED])
        which = stratified_folds(targets, folds, self.options.seed)[at]
        x, y, wrong = x[at], y[at], np.empty(len(at))
        with self.waiting(f"testing {vectors} hidden units on left-out rows"):
            for fold in np.unique(which):
                test = which == fold
                model, _ = trained_network(x[~test], y[~test], vectors, bool(count), self.options.seed)
                wrong[test] = losses(self.table, y[test], functions(model, x[test], count))
        return wrong

    def report(self, made: Frozen) -> dict[str, Any]:
        classes = bool(self.table.classes)
        error = float(self.left_out(made.vectors).mean())
        shown = error if classes else root_of_mean_square(error)
        taken = {"penalty": steps_of(getattr(made.trained, "regressor_", made.trained))[-1][1].alpha}
        warned = self.too_coarse(
            made, 1.0 if classes else root_of_mean_square(error), f"use {shown_option('precision', 'float32')}"
        )
        return self.report_of(made, {"function": self.function}) | {
            "loss": None,
            "cv": int(self.cv),
            "best": taken,
            "chosen": taken,
            "reason": None,
            "errors": {"cross_validated": shown, "corrected": None} | self.on_test_rows(made.spec),
            "table": [],
            "candidates": [],
            "vectors": made.vectors,
            "basis": None,
            "flash_bytes": made.size,
            "rounding": made.rounding,
            "interrupted": False,
            "warnings": [*self.table.warnings, *warned],
        }


def functions(model: Any, x: np.ndarray, classes: int) -> np.ndarray:
    """Return the values that the device approximates, up to a term that all classes share.

    For two classes, the shape is (rows, 1); for more classes, (rows, classes).  The probability of a class without
    training rows is set to the smallest normal number.
    """
    if not classes:
        return np.asarray(model.predict(x))
    p = np.full((len(x), classes), np.finfo(float).tiny)
    probabilities = model.predict_proba(x)
    p[:, np.asarray(model.classes_, int)] = np.maximum(probabilities[:, : len(model.classes_)], np.finfo(float).tiny)
    p = np.log(p)
    return np.asarray(p[:, 1:] - p[:, :1] if classes == 2 else p)
