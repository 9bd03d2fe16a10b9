"""``fit`` without a named model: compare up to three models on left-out rows, and choose one of them.

The models are a machine whose vectors are rows of the table, a machine with trained vectors, and a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.report.fits import vectors_phrase
from pykernel.telling import formatted_number, percent
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows import chosen
from pykernel.workflows.arguments import LARGE
from pykernel.workflows.fit_job import Found, Frozen, losses
from pykernel.workflows.fit_request import Fit
from pykernel.workflows.network import NOT_HERE, NetworkJob
from pykernel.workflows.trained import CHOOSING, TrainedJob

SURELY = 2.0
"""The difference between two machines' mean losses is significant if it exceeds this many of its standard errors."""


@dataclass(frozen=True)
class Rival:
    """A machine that is compared with others.

    wrong: for each compared row, the loss of a machine that was trained without this row, (rows,).  job, made: None if vectors were chosen
    among rows.
    """

    model: str
    wrong: np.ndarray
    error: float
    vectors: int
    size: int
    job: TrainedJob | None = None
    made: Frozen | None = None

    def beside(self, taken: Rival) -> dict[str, Any]:
        row = {"model": self.model, "vectors": self.vectors, "error": self.error, "flash_bytes": self.size}
        return row | {"better": surely(taken.wrong, self.wrong)}


def fit(options: Fit, table: LabelledTable) -> Found:
    """Train a machine with vectors chosen among the rows, compare it with other machines, and return one of them.

    With an option of ``CHOOSING``, nothing is compared.
    If the number of vectors is limited, another machine is returned only if it is significantly better.  Otherwise, all rows are vectors,
    and a large machine is replaced by one with few trained vectors or hidden units, unless that one is significantly worse.
    """
    assumed, warnings = list(table.assumed), list(table.warnings)
    result = chosen.fit(options, table)
    report = result.report
    report["instead"] = []
    limited = report["basis"] is not None
    if _any_set(options, CHOOSING) or (not limited and (options.flash is not None or report["flash_bytes"] <= LARGE)):
        return result
    # each machine has separate lists, because the assumptions of one machine do not apply to another
    others = {
        model: replace(table, model=model, assumed=list(assumed), warnings=list(warnings))
        for model in ("trained", "network")
    }
    job, made = TrainedJob.of(options, others["trained"]), None
    try:
        made = job.run(job.vectors())
    except UserError:  # for example, all inputs are constant
        return result
    except KeyboardInterrupt:
        pass  # reported below
    if made is None or made.trained.interrupted_:
        report["interrupted"] = True
        return result
    at = made.trained.cv_indices_
    assert result.wrong is not None
    error = report["errors"]["cross_validated"]
    taken = Rival(report["model"], result.wrong[at], error, report["vectors"], report["flash_bytes"])
    rivals = [_rival(job, made, losses(job.table, job.rows[1][at], made.trained.cv_predictions_))]
    interrupted = False
    if not _any_set(options, NOT_HERE):
        network = NetworkJob.of(options, others["network"])
        try:
            made = network.run(network.vectors())
            rivals.append(_rival(network, made, network.left_out(made.vectors, at)))
        except UserError:  # for example, a network cannot have this precision
            pass
        except KeyboardInterrupt:
            interrupted = True
    beaten = []
    for rival in rivals:
        # a machine with all rows as vectors is replaced unless the smaller machine is significantly worse
        least = SURELY if limited or taken.job is not None else -SURELY
        if surely(taken.wrong, rival.wrong) > least:
            taken, rival = rival, taken
        beaten.append(rival)
    if taken.job is not None and taken.made is not None:
        with taken.job.waiting("testing the spec"):
            report = taken.job.report(taken.made)
        result = Found(report, taken.made.spec, None)
    report["instead"] = [each.beside(taken) for each in beaten]
    if interrupted:
        report["interrupted"] = True
    if not limited and taken.job is None:
        report["warnings"].append(_few(report, min(report["instead"], key=lambda other: other["error"])))
    return result


def _any_set(options: Fit, names: tuple[str, ...]) -> bool:
    return any(getattr(options, name) != getattr(Fit, name) for name in names)


def _rival(job: TrainedJob, made: Frozen, wrong: np.ndarray) -> Rival:
    mean = float(wrong.mean())
    error = mean if job.table.classes else mean**0.5
    return Rival(str(job.table.model), wrong, error, made.vectors, made.size, job, made)


def _few(report: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    shown = percent if report["classes"] else formatted_number
    return (
        f"the model takes {report['flash_bytes']:,} bytes of flash, with an error of {shown(report['errors']['cross_validated'])}; "
        f"{shown_option('model', other['model'])} with {vectors_phrase(other)} takes {other['flash_bytes']:,}, with an error of {shown(other['error'])}"
    )


def surely(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean of first - second, divided by the standard error of this mean; 0 if all differences are equal.

    first, second: two models' losses on the same rows, (rows,).
    """
    difference = first - second
    deviation = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    return float(difference.mean()) / (deviation / len(difference) ** 0.5) if deviation else 0.0
