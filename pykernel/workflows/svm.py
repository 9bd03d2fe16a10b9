"""``fit`` with a support vector machine or a linear programming machine.

Width and ridge are chosen by cross-validation.  Vectors are added until more vectors would hardly change the machine,
or until their maximum number is reached.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

from pykernel.bases.select import METHODS
from pykernel.errors import shown_option
from pykernel.estimators.svm import SupportVectorClassifier, SupportVectorRegressor
from pykernel.parallel import one_thread
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.telling import root_of_mean_square
from pykernel.training.selection import width_name
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows.arguments import method_options, need_known, need_unset
from pykernel.workflows.chosen import estimator_of, kernel_parameters, scales
from pykernel.workflows.fit_job import Found, Frozen, Job, held_out, plainly
from pykernel.workflows.fit_request import Fit

MOST, FEW = 256, 16
"""MOST: largest number of vectors if n_max is not given.  For many rows, this number is reduced, but not below FEW."""
MINUTE = 2**30
"""For svm without n_max, functions x rows x vectors^2 is at most this number, so that training takes about a minute.
With one function, this allows 256 vectors for 16,384 rows, and 128 vectors for 65,536 rows."""
MINUTE_LP = 2**19
"""For lp without n_max and with numbers as labels, rows x vectors is at most this number.  This allows 256 vectors for
2,048 rows, and 64 vectors for 8,192 rows."""
FOLDS = 5
RIDGES = (0.01, 0.1, 1.0, 10.0)
"""Ridges to choose from.  C is 1 / ridge for classes, and the label's standard deviation / ridge for numbers."""
RIDGES_LP = (0.1, 0.3, 1.0, 3.0)
"""Ridges of a linear programming machine, whose C decides how many vectors remain.  These ridges have no unit."""
TUBE = 0.1
"""The epsilon of regression (half of the tube's width), in standard deviations of the label."""
NOT_HERE = ("coding", "by", "loss", "jobs")


def fit(options: Fit, table: LabelledTable) -> Found:
    """Train a machine and freeze it.  Prints the assumptions before training starts."""
    need_unset(options, NOT_HERE, "model")
    need_known(options.method or "auto", METHODS, "method")
    train, test = held_out(table, options.hold_out, options.seed)
    job = SvmJob(options, table, train, test, scales(table, train, options.standardise))
    vectors = job.vectors()
    if table.classes is None:
        table.assumed.append(f"errors up to {TUBE:g} standard deviations of {table.column} cost nothing")
    made, report = job.reported(vectors)
    return Found(report, made.spec, None)


@dataclass(frozen=True)
class SvmJob(Job):
    """A ``Job`` with the estimators for support vector and linear programming machines."""

    def vectors(self) -> int:
        self.need_possible()
        wanted, limit = self.options.n_max or self.in_a_minute, self.limit
        if limit is not None and self.options.kernel != "linear" and (fits := self.fitting(limit)) < wanted:
            return self.fewer(fits, limit)
        rows, n_max = len(self.train), shown_option("n_max")
        if self.options.n_max is None and wanted < min(MOST, rows):
            self.table.assumed.append(
                f"at most {wanted:,} vectors for {rows:,} rows, so that training takes about a minute; {n_max} sets another number"
            )
        return wanted

    @property
    def in_a_minute(self) -> int:
        """The default number of vectors: MOST, or fewer, but at least FEW, so that training takes at most about a minute.
        Never more than the number of rows.
        """
        rows, classes = len(self.train), len(self.table.classes or ())
        n = MOST
        if self.sparse:
            while n > FEW and not classes and rows * n > MINUTE_LP:
                n //= 2
        else:
            while n > FEW and (classes if classes > 2 else 1) * rows * n**2 > MINUTE:
                n //= 2
        return min(n, rows)

    @property
    def unit(self) -> float:
        """The label's standard deviation; 1 for classes."""
        return 1.0 if self.table.classes else float(self.rows[1].std()) or 1.0

    @property
    def sparse(self) -> bool:
        return self.options.model == "lp"

    @property
    def ridge(self) -> float:
        """The product of C and the ridge: 1 for lp, and ``unit`` for svm.

        In svm, the penalty |f|^2 of the function f has the unit of the label squared, but losses have the label's unit.
        """
        return 1.0 if self.sparse else self.unit

    def machine(self, vectors: int | None) -> Any:
        options, unit, method = self.options, self.unit, self.options.method or "auto"
        trained_for = "float32" if options.precision == "int16" else options.precision
        parameters = kernel_parameters(options)
        ridges = parameters.pop("ridge", RIDGES_LP if self.sparse else RIDGES)
        # vectors that this precision can hardly distinguish from the span of earlier vectors are not chosen
        chosen = {"method": method, "epsilon": LEAST_ALD_THRESHOLD.get(trained_for, 0.0) or 1e-10}
        parameters |= {
            "C": [self.ridge / ridge for ridge in ridges],
            "penalty": "l1" if self.sparse else "l2",
            "basis": vectors,
            "basis_params": chosen | method_options(options.with_, method),
            "cv": self.folds({"deleted": FOLDS}, f"with {shown_option('model', options.model)} it must be"),
            "precision": trained_for,
            "random_state": options.seed,
        }
        if self.table.classes is not None:
            return SupportVectorClassifier(options.kernel, **parameters)
        return SupportVectorRegressor(options.kernel, epsilon=TUBE * unit, **parameters)

    def trained(self, vectors: int | None) -> Any:
        machine = self.machine(vectors)
        trained = make_pipeline(StandardScaler(), machine) if self.scales else machine
        with plainly(machine), one_thread, warnings.catch_warnings(), self.options.watch.progress() as show:
            warnings.simplefilter("ignore")  # the report repeats these warnings
            machine.progress = show
            self.fitted(trained)
        machine.set_params(progress=False)
        return trained

    def report(self, made: Frozen) -> dict[str, Any]:
        machine, classes = estimator_of(made.trained), self.table.classes is not None
        name = width_name(machine.kernel)
        shown = float if classes else root_of_mean_square
        cells = [{**cell, "ridge": self.ridge / cell.pop("C")} for cell in map(dict, machine.candidates_)]
        best: dict[float, dict[str, Any]] = {}
        for cell in cells:
            best.setdefault(cell["width"], cell)
        taken = ({name: machine._mercer_kernel.width} if name else {}) | {"ridge": self.ridge / machine.C_}
        warned = [*self.table.warnings]
        typical = 1.0 if classes else root_of_mean_square(machine.cv_error_)
        warned += self.too_coarse(made, typical, f"use larger ridges, or {shown_option('precision', 'float64')}")
        basis = None if self.sparse else machine.reduced_.basis
        return self.report_of(made, machine.kernel_) | {
            "cv": machine.cv,
            "best": taken,
            "chosen": taken,
            "reason": None,
            "errors": {
                "cross_validated": None if math.isnan(machine.cv_error_) else shown(machine.cv_error_),
                "corrected": None,
                **self.on_test_rows(made.spec),
            },
            "table": cells,
            "widths": [best[width] for width in sorted(best)],
            "vectors": made.vectors,
            "basis": None if basis is None else {key: getattr(basis, key) for key in ("method", "reason", "stopped")},
            "support_vectors": len(machine.support_),
            "rounds": machine.rounds_,
            "reached": machine.reached_,
            "interrupted": machine.interrupted_,
            "flash_bytes": made.size,
            "rounding": made.rounding,
            "warnings": warned,
        }
