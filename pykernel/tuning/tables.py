"""A table of text with a label, as the samples of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import UserError, option
from pykernel.host.signal import RawRows
from pykernel.spec.model import OUTPUTS_LIMIT
from pykernel.spec.renamed import word_meant
from pykernel.telling import gaps as gaps_told
from pykernel.tuning.columns import Show, few_values, left_out, likely_inputs, listed, numeric_columns, read_columns
from pykernel.tuning.stage import Stage

MODELS = ("kfd", "ls-svm", "krr", "trained")
"""Models that can be trained on such a table."""


@dataclass
class LabelledTable:
    """Rows of a file: inputs x (l, d); labels y (l,), numbers or class indices; sentences about assumptions, and
    warnings.

    stage: the signal stage that computed these rows from raw rows, if there is one.
    """

    name: str
    inputs: list[str]
    column: str
    classes: list[str] | None
    model: str
    x: np.ndarray
    y: np.ndarray
    assumed: list[str]
    stage: Stage | None = None
    warnings: list[str] = field(default_factory=list)

    def label(self) -> dict[str, Any]:
        """[label] of the spec."""
        return {"column": self.column, **({"classes": self.classes} if self.classes else {})}


def read_table(
    file: BinaryIO,
    name: str,
    inputs: Sequence[str],
    label: str | None,
    classes: Sequence[str],
    model: str | None,
    show: Show | None = None,
    signal: Mapping[str, Any] | None = None,
) -> LabelledTable:
    """A table of text with a header line, as the samples of a model.

    inputs: columns; if empty, all other columns of numbers, except constant columns and times.
    label: a column; None: the last one.
    classes: the label's classes, in their order; if empty, they are found in the data, if the label is text or
    ``model`` is kfd.
    model: None: kfd for classes, ls-svm for numbers.
    signal: precision and [signal] of a spec.  The signal stage computes the samples from its channels, which are given
    as inputs.  The label may be one of the channels; it is then forecast.
    Raises UserError, one sentence.
    """
    if model is not None and model not in MODELS:
        remedy = word_meant(model, MODELS, f"there are: {', '.join(MODELS)}")
        raise UserError(f"{option('model')} {model} is not known; {remedy}")
    header, columns = read_columns(file, name, show, inputs, label)
    column = header[-1] if label is None else label
    numeric = numeric_columns(columns)
    forecasts = signal is not None and column in inputs
    if signal is not None:
        _need_channels(name, numeric, inputs, column, model)
    chosen = _chosen(name, numeric, inputs, "" if forecasts else column)
    assumed = [f"the label is {column}, the last column"] if label is None else []
    if not inputs:
        left = left_out(columns, numeric, [*chosen, column])
        assumed.append(f"{len(chosen)} inputs: {listed(chosen)}" + (f", without {listed(left)}" if left else ""))
    cells = [cell.strip() for cell in columns[column]]
    found = None if forecasts else _classes_of(name, column, cells, classes, column in numeric, model)
    y = numeric[column] if found is None else _positions(cells, found)
    x = np.column_stack([numeric[each] for each in chosen])
    stage, warnings = None, list[str]()
    if signal is not None:
        raw = _stage(signal, column, found or list(classes), x, np.zeros((len(x), 0)) if forecasts else y)
        gaps = sum(not all(map(str.strip, row)) for row in zip(*(columns[each] for each in chosen), strict=True))
        stage, x, y, warnings = _steps(name, raw, gaps)
        chosen = list(stage.plain.input.columns or ())
        told = [f"{len(x):,} steps of {len(chosen)} features", gaps_told(stage.raw_rows, len(x)), *stage.overlaps()]
        assumed += filter(None, told)
    there = np.isfinite(y) if found is None else y >= 0
    rows = there & np.isfinite(x).all(axis=1)
    _need_rows(name, column, y[rows], found, stage, warnings)
    if not rows.all():
        without = {"without a label": int((~there).sum()), "with a missing input": int((there & ~rows).sum())}
        unit = "row" if stage is None else "step"
        told = [f"{number:,} {unit}{'s' * (number > 1)} {why}" for why, number in without.items() if number]
        assumed.append(f"left out {' and '.join(told)}")
    found_out = model is None
    model = model or ("ls-svm" if found is None else "kfd")
    what = "labels are numbers" if found is None else f"{len(found)} classes, {listed(found)}"
    assumed.append(f"{what}, so the model is {model}" if found_out else what)
    if found is None and (few := few_values(y[rows])):
        assumed.append(f"if the labels are classes, give {option('classes')} {','.join(few)}")
    return LabelledTable(name, chosen, column, found, model, x[rows], y[rows], assumed, stage, warnings)


def _need_channels(
    name: str, numeric: dict[str, np.ndarray], channels: Sequence[str], column: str, model: str | None
) -> None:
    for each in channels:
        if each not in numeric:
            raise UserError(f"{name}: column {each!r} does not hold numbers, and [signal] names it as a channel")
    if column in channels and model == "kfd":
        raise UserError(
            f"{option('model')} kfd tells classes apart, and {column!r} is a channel, whose numbers are forecast"
        )


def _stage(signal: Mapping[str, Any], column: str, classes: Sequence[str], x: np.ndarray, y: np.ndarray) -> Stage:
    """The signal stage for the rows.  Raises UserError if the label is not possible with it."""
    label: dict[str, Any] = {"column": column} | ({"classes": list(classes)} if classes else {})
    return Stage({"name": "fit", **signal, "label": label}, x, y)


def _steps(name: str, stage: Stage, gaps: int) -> tuple[Stage, np.ndarray, np.ndarray, list[str]]:
    """The stage with the counts of its raw rows, its steps, their labels, and warnings.

    gaps: number of rows with an empty cell.  Raises UserError, which names the cause, if there are no steps.
    """
    raw = RawRows(stage.plain)
    raw.take(stage.x, gaps)
    x, y = stage.steps()
    raw.need_steps(name, len(x))
    return replace(stage, raw_rows=raw.report()), x, y, raw.warnings(len(x))


def _chosen(name: str, numeric: dict[str, np.ndarray], inputs: Sequence[str], column: str) -> list[str]:
    """The inputs' columns: those that were given, or all that are likely."""
    if column in inputs:
        raise UserError(f"{name}: column {column!r} is the label; leave it out of {option('inputs')}")
    for each in inputs:
        if each not in numeric:
            raise UserError(f"{name}: column {each!r} does not hold numbers; leave it out of {option('inputs')}")
    chosen = list(inputs) or likely_inputs(numeric, column)
    if not chosen:
        raise UserError(
            f"{name}: has no column of different numbers beside the label {column!r}; give {option('inputs')}"
        )
    return chosen


def _classes_of(
    name: str, column: str, cells: Sequence[str], given: Sequence[str], numeric: bool, model: str | None
) -> list[str] | None:
    """The label's classes, in their order; None if it is a number."""
    there = {cell for cell in cells if cell}
    if given:
        unknown = sorted(there - set(given))
        if unknown:
            raise UserError(
                f"{name}: column {column!r} holds {unknown[0]!r}, which {option('classes')} does not name; add it there"
            )
        missing = [each for each in given if each not in there]
        if missing:
            raise UserError(f"{name}: column {column!r} never is {missing[0]!r}; leave it out of {option('classes')}")
        return list(given)
    if numeric and model != "kfd":
        return None
    if len(there) > OUTPUTS_LIMIT:
        remedy = f"take {option('model')} ls-svm, which fits numbers" if numeric else "is it the right column?"
        raise UserError(
            f"{name}: column {column!r} holds {len(there):,} different labels; there may be {OUTPUTS_LIMIT} classes: {remedy}"
        )
    if not numeric:
        return sorted(there)
    by_value: dict[float, str] = {}
    for each in sorted(there):
        if by_value.setdefault(float(each), each) != each:
            raise UserError(
                f"{name}: column {column!r} holds {by_value[float(each)]!r} and {each!r}, the same number; write classes alike"
            )
    return [by_value[value] for value in sorted(by_value)]


def _positions(cells: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The class index of each cell; -1 where there is none."""
    places = {kind: i for i, kind in enumerate(classes)}
    return np.array([places.get(cell, -1) for cell in cells], np.int64)


def _need_rows(
    name: str, column: str, y: np.ndarray, classes: Sequence[str] | None, stage: Stage | None, warnings: Sequence[str]
) -> None:
    """Raises UserError if there are too few labelled rows.

    stage: the signal stage of the rows; warnings: why some of its steps are missing.
    """
    why = [*warnings, "a step has the label of its last raw row: label more rows, or take a shorter hop"][0]
    if classes is None:
        if len(y) < 2 and stage is not None:
            raise UserError(f"{name}: has {len(y)} steps with a label; at least 2 are needed; {why}")
        if len(y) < 2:
            raise UserError(f"{name}: has {len(y)} rows with a label and all inputs; at least 2 are needed")
        return
    if len(classes) < 2:
        raise UserError(f"{name}: column {column!r} is always {listed(classes)}; at least two classes are needed")
    counts = np.bincount(y, minlength=len(classes))
    if not counts.all():
        empty = classes[int(counts.argmin())]
        if stage is not None:
            raise UserError(f"{name}: no step of [signal] has the label {empty!r}; {why}")
        raise UserError(
            f"{name}: no row of class {empty!r} has all inputs; leave out the inputs that are missing there"
        )
