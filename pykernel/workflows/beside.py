"""``fit`` without a named model: a machine with vectors chosen among the rows is compared with one of as many trained
vectors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pykernel.errors import UserError, option
from pykernel.telling import number, rate
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows import chosen
from pykernel.workflows.asked import FitAsked
from pykernel.workflows.chosen import LARGE
from pykernel.workflows.fit_job import Found, losses
from pykernel.workflows.trained import NOT_HERE, TrainedJob

SURELY = 2.0
"""Trained vectors are taken if their losses are smaller by so many standard errors of the difference."""
CHOOSING = (*NOT_HERE, "ridge", "cv", "kernel")
"""Options that are only for vectors chosen among rows: with one of them, no vectors are trained."""


def fit(options: FitAsked, table: LabelledTable) -> Found:
    """With a limit of the vectors: the better one of both machines.  Without a limit: all rows are vectors; for a large
    model, the result of a few trained vectors is reported as well.
    """
    assumed, warnings = list(table.assumed), list(table.warnings)
    found = chosen.fit(options, table)
    found.report["instead"] = None
    limited = found.report["basis"] is not None
    if any(getattr(options, name) != getattr(FitAsked, name) for name in CHOOSING):
        return found
    if not limited and (options.flash is not None or found.report["flash_bytes"] <= LARGE):
        return found
    # assumptions of the other machine do not apply here
    other = replace(table, model="trained", assumed=assumed, warnings=warnings)
    job = TrainedJob.of(options, other)
    try:
        made = job.run(job.vectors())
    except UserError:  # such as inputs that are all constant: there is nothing to train
        return found
    except KeyboardInterrupt:
        found.report["interrupted"] = True
        return found
    machine = made.trained
    if machine.interrupted_:
        found.report["interrupted"] = True
        return found
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
            f"the model takes {found.report['flash_bytes']:,} bytes of flash; with {option('model')} trained {made.vectors} vectors have the error "
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
