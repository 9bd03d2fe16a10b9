"""Format a model's predictions (or the answers of a model without labels) as a CSV file with a line for each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pykernel.host.run import Steps, answer_names
from pykernel.host.samples import as_table, input_names
from pykernel.spec.model import Spec


def prediction_header(spec: Spec, raw: bool = False) -> str:
    """Return the header line of a CSV file of predictions or, for a model without labels, of answers to its main question.

    raw: whether the rows are steps of a signal stage.  If they are, the file has one more column, with the index of
    each step's last raw row.
    """
    first = ["row", *(["raw_row"] if raw else [])]
    if spec.program.label_kind == "none":
        state = ["level", "threshold", "since", "blamed", "kind"] if spec.program.alarms else []
        return _csv([[*first, *answer_names(spec), *state, "status"]])
    names = [""] if spec.program.label_kind != "reals" else [f" {name}" for name in spec.label_columns]
    ends = [f"{end}{n}" for end in ("lower", "upper") for n in names] if getattr(spec, "interval", None) else []
    return _csv([[*first, *(f"prediction{n}" for n in names), *ends, *(f"label{n}" for n in names), "status"]])


def prediction_lines(spec: Spec, steps: Steps, raw: Callable[[int], int | None] | None = None) -> str:
    """Return the steps as lines of CSV, with the columns of ``prediction_header``.  Cells without a value are empty.

    raw: a function that returns the index of the last raw row of a step.
    """
    classes = spec.label.classes

    def texts(values: np.ndarray) -> list[list[str]]:
        if classes is not None:
            return [[classes[i] if 0 <= i < len(classes) else "" for i in values.tolist()]]
        values = as_table(values)
        shown = values.astype(str)
        shown[values < 0 if values.dtype.kind == "i" else np.isnan(values)] = ""
        return shown.T.tolist()

    names = {int(value): value.name.lower() for value in spec.program.status}
    statuses = [names[s] if learnt else "" for s, learnt in zip(steps.statuses.tolist(), steps.learnt, strict=True)]
    rows = range(steps.first_row, steps.first_row + len(statuses))
    states = as_table(steps.states).astype(str).T.tolist()
    if steps.blame.shape[1]:
        columns = input_names(spec)
        culprits = [
            (columns[int(j)], names[int(kind)]) if j == j else ("", "") for j, _, kind, _ in steps.blame.tolist()
        ]
        states += [list(each) for each in zip(*culprits, strict=True)]
    ends = texts(steps.ends) if steps.ends.shape[1] else []
    places = [] if raw is None else [map(raw, rows)]
    return _csv(
        zip(rows, *places, *texts(steps.predictions), *ends, *texts(steps.labels), *states, statuses, strict=True)
    )


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
