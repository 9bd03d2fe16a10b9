"""Tables of text: their columns, as numbers, and a table with a label as the samples of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import UserError, option
from pykernel.host.samples import read_cells, shown_cell
from pykernel.host.signal import RawRows
from pykernel.spec.model import OUTPUTS_LIMIT
from pykernel.telling import Show, gaps_told, refuse
from pykernel.tuning.combinations import Content
from pykernel.tuning.stage import Stage

MODELS = ("kfd", "ls-svm", "krr", "svm", "lp", "trained")
"""Models that can be trained on such a table."""


@dataclass
class LabelledTable:
    """Rows of a file: inputs x (l, d); labels y (l,), numbers or class indices; sentences about assumptions, and
    warnings.

    stage: the signal stage that computed these rows from raw rows, if there is one.
    """

    name: str
    inputs: list[str]
    column: str | None
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

    @property
    def content(self) -> Content:
        """A spec's content without a rule; a monitor's without a label."""
        kind = {"novelty": {}} if self.column is None else {"label": self.label()}
        return {"name": "planned", "input": {"columns": self.inputs}, **kind}


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
    header, columns = read_columns(file, name, show, inputs, label)
    column = header[-1] if label is None else label
    numeric = numeric_columns(columns)
    forecasts = signal is not None and column in inputs
    if signal is not None:
        _need_channels(name, numeric, inputs, column, model)
    chosen = chosen_inputs(name, numeric, inputs, "" if forecasts else column)
    assumed = [f"the label is {column}, the last column"] if label is None else []
    if not inputs:
        assumed.append(inputs_told(chosen, left_out(columns, numeric, [*chosen, column])))
    cells = [cell.strip() for cell in columns[column]]
    found = None if forecasts else _classes_of(name, column, cells, classes, column in numeric, model)
    what = "labels are numbers" if found is None else f"{len(found)} classes, {listed(found)}"
    taken = model or ("ls-svm" if found is None else "kfd")
    x = np.column_stack([numeric[each] for each in chosen])
    y = numeric[column] if found is None else positions_of(cells, found)
    table = LabelledTable(name, chosen, column, found, taken, x, y, assumed)
    if signal is not None:
        _make_steps(table, signal, found or classes, forecasts, [columns[each] for each in chosen])
    _leave_out_gaps(table)
    table.assumed.append(what if model else f"{what}, so the model is {taken}")
    if found is None and (few := few_values(table.y)):
        table.assumed.append(f"if the labels are classes, give {option('classes')} {','.join(few)}")
    return table


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


def _make_steps(
    table: LabelledTable, signal: Mapping[str, Any], classes: Sequence[str], forecasts: bool, cells: list[list[str]]
) -> None:
    """Replace the raw rows of the table by the steps of a signal stage.

    forecasts: whether the label is a channel.  cells: of each channel.  Raises UserError, which names the cause, if the
    label is not possible with this stage, or if there are no steps.
    """
    label: dict[str, Any] = {"column": table.column} | ({"classes": list(classes)} if classes else {})
    labels = np.zeros((len(table.x), 0)) if forecasts else table.y
    stage = Stage({"name": "fit", **signal, "label": label}, table.x, labels)
    raw = RawRows(stage.plain)
    raw.take(stage.x, sum(not all(map(str.strip, row)) for row in zip(*cells, strict=True)))
    table.x, table.y = stage.steps()
    steps = len(table.x)
    raw.need_steps(table.name, steps)
    table.stage, table.warnings = replace(stage, raw_rows=raw.report()), raw.warnings(steps)
    table.inputs = list(stage.plain.input.columns or ())
    told = [f"{steps:,} steps of {len(table.inputs)} features", gaps_told(raw.report(), steps), *stage.overlaps()]
    table.assumed += filter(None, told)


def _leave_out_gaps(table: LabelledTable) -> None:
    """Leave out rows without a label, or with a missing input.  Raises UserError if too few rows are left."""
    there = np.isfinite(table.y) if table.classes is None else table.y >= 0
    rows = there & np.isfinite(table.x).all(axis=1)
    without = {"without a label": int((~there).sum()), "with a missing input": int((there & ~rows).sum())}
    table.x, table.y = table.x[rows], table.y[rows]
    _need_rows(table)
    unit = "row" if table.stage is None else "step"
    told = [f"{number:,} {unit}{'s' * (number > 1)} {why}" for why, number in without.items() if number]
    if told:
        table.assumed.append(f"left out {' and '.join(told)}")


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


def positions_of(cells: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The class index of each cell; -1 where there is none."""
    places = {kind: i for i, kind in enumerate(classes)}
    return np.array([places.get(cell, -1) for cell in cells], np.int64)


def _need_rows(table: LabelledTable) -> None:
    """Raises UserError if there are too few labelled rows."""
    name, column, classes, steps = table.name, table.column, table.classes, table.stage is not None
    # why some steps are missing
    why = [*table.warnings, "a step has the label of its last raw row: label more rows, or take a shorter hop"][0]
    if classes is None:
        if len(table.y) < 2:
            missing = f"steps with a label; at least 2 are needed; {why}"
            raise UserError(
                f"{name}: has {len(table.y)} {missing if steps else 'rows with a label and all inputs; at least 2 are needed'}"
            )
        return
    if len(classes) < 2:
        raise UserError(f"{name}: column {column!r} is always {listed(classes)}; at least two classes are needed")
    counts = np.bincount(table.y, minlength=len(classes))
    if not counts.all():
        empty = classes[int(counts.argmin())]
        if steps:
            raise UserError(f"{name}: no step of [signal] has the label {empty!r}; {why}")
        raise UserError(
            f"{name}: no row of class {empty!r} has all inputs; leave out the inputs that are missing there"
        )


# ------------------------------------------------------------------------------------------------ for a plan


def infer(
    file: BinaryIO, name: str, inputs: Sequence[str], label: str | None, show: Show | None = None
) -> LabelledTable:
    """A table of text with a header line, as the samples of a plan; rows with gaps are kept.

    inputs: names of columns; if empty, all columns of different numbers, except the label and times.  label: a column's
    name; without a label, a monitor is planned.  A label is a class if it is not a number, or if it has only two
    values, both integers.
    """
    _, columns = read_columns(file, name, show, inputs, label, fewest=1 if label is None else 2)
    numeric = numeric_columns(columns)
    chosen = chosen_inputs(name, numeric, inputs, label)
    assumed = [f"label {label}"] if label else ["no label: a monitor that raises alarms"]
    if not inputs:
        without = left_out(columns, numeric, [*chosen, *([label] if label else [])])
        assumed[:0] = [f"inputs {listed(chosen)}"] + ([f"without {listed(without)}"] if without else [])
    x = np.column_stack([numeric[column] for column in chosen])
    if gaps := int((~np.isfinite(x)).any(axis=1).sum()):
        assumed.append(f"{gaps:,} {'row' if gaps == 1 else 'rows'} with a missing input, neither predicted nor learned")
    table = LabelledTable(name, chosen, label, None, "", x, np.zeros((len(x), 0)), assumed)
    if label is None:
        return table
    cells = [cell.strip() for cell in columns[label]]
    if label in numeric:
        table.y = numeric[label]
        values = finite_values(table.y)
        if np.ptp(values) == 0:
            raise UserError(f"{name}: the label {label!r} is always {values[0]:g}; there is nothing to learn")
        cells = [cell if there else "" for cell, there in zip(cells, np.isfinite(table.y), strict=True)]
        few = few_values(values)
        if len(few) != 2 or len(set(cells) - {""}) != 2:
            if few:
                assumed.append(
                    f"the label's {len(few)} different values are numbers; for classes name them in a spec, [label] classes, and "
                    f"give {option('spec')}"
                )
            return table
    table.classes = _words_of(name, label, cells)
    table.y = positions_of(cells, table.classes).astype(np.int32)
    assumed.append(f"{len(table.classes)} classes, {listed(table.classes)}")
    return table


def _words_of(name: str, label: str, cells: Sequence[str]) -> list[str]:
    """The different words of a label, which are its classes."""
    classes = sorted({cell for cell in cells if cell})
    refuse(
        (not classes, f"{name}: the label {label!r} is empty in all rows; there is nothing to learn"),
        (
            len(classes) > OUTPUTS_LIMIT,
            f"{name}: the label {label!r} holds {len(classes):,} different words; there may be {OUTPUTS_LIMIT} classes: is it "
            "the right column?",
        ),
        (
            len(classes) < 2,
            f"{name}: the label {label!r} has one class, {', '.join(classes)}; there is nothing to learn",
        ),
    )
    return classes


# ------------------------------------------------------------------------------------------------- columns

MOMENT = re.compile(r"\s*(\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ,].*)?|\d{1,2}:\d\d(:\d\d.*)?)\s*")
"""A cell that holds a date or a time."""
TIMES = re.compile(r"t|.*(time|date|epoch|zeit|datum).*|ts|index|idx|row|nr|no|id", re.IGNORECASE)
"""Names of columns that count time or rows, if their numbers never fall."""


def read_columns(
    file: BinaryIO,
    name: str,
    show: Show | None = None,
    inputs: Sequence[str] = (),
    label: str | None = None,
    fewest: int = 2,
) -> tuple[list[str], dict[str, list[str]]]:
    """The names in the header, and all cells of each column: of the inputs and the label, if both are given.

    fewest: how many columns are needed.  Raises UserError, also if an input or the label is not there.
    """
    header: list[str] = []
    chosen: list[str] = []

    def choose(names: list[str]) -> list[str]:
        header.extend(filter(None, names))
        refuse(
            (
                len(header) < fewest and label not in inputs,  # what is forecast is an input, too
                f"{name}, line 1: names one column, {''.join(header)!r}; a label and at least one input are needed",
            ),
            (
                label == "",
                f"{name}: the label's column is '', and no column has that name; give one of {listed(header)}",
            ),
        )
        others = () if inputs and label else header
        chosen.extend(dict.fromkeys([*inputs, *([label] if label else []), *others]))
        return chosen

    rows: list[tuple[str, ...]] = []
    for cells in read_cells(file, name, choose, "a,b,label"):
        rows += cells.rows
        if show is not None:
            show(cells.position, f"reading {name}")
    return header, {column: list(cells) for column, cells in zip(chosen, zip(*rows, strict=True), strict=True)}


def numeric_columns(columns: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """The columns whose cells are numbers, as arrays; NaN where a cell is empty."""
    return {name: values for name, cells in columns.items() if (values := cell_numbers(cells)) is not None}


def cell_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """The cells, NaN where they are empty; None if they are not numbers."""
    try:
        values = np.array([float(cell) if cell.strip() else math.nan for cell in cells])
    except ValueError:
        return None
    return values if np.isfinite(values).any() else None


def likely_inputs(numeric: Mapping[str, np.ndarray], label: str | None) -> list[str]:
    """Columns that are likely inputs: columns of different numbers, except the label and times."""
    different = [name for name, values in numeric.items() if name != label and np.ptp(finite_values(values)) > 0]
    return without_times(numeric, different)


def without_times(numeric: Mapping[str, np.ndarray], names: Sequence[str]) -> list[str]:
    """The columns that do not count time or rows; all columns, if each of them does."""
    return [name for name in names if not _counts_time(name, numeric[name])] or list(names)


def _counts_time(name: str, values: np.ndarray) -> bool:
    finite = finite_values(values)
    return TIMES.fullmatch(name) is not None and bool((np.diff(finite) >= 0).all()) and np.ptp(finite) > 0


def chosen_inputs(name: str, numeric: Mapping[str, np.ndarray], inputs: Sequence[str], label: str | None) -> list[str]:
    """The inputs' columns: those that were given, or all that are likely.  Raises UserError."""
    if label in inputs:
        raise UserError(f"{name}: column {label!r} is the label; leave it out of {option('inputs')}")
    for each in inputs:
        if each not in numeric:
            raise UserError(f"{name}: column {each!r} does not hold numbers; leave it out of {option('inputs')}")
    chosen = list(inputs) or likely_inputs(numeric, label)
    if not chosen:
        beside = "" if label is None else f" beside the label {label!r}"
        raise UserError(f"{name}: has no column of different numbers{beside}; give {option('inputs')}")
    return chosen


def inputs_told(chosen: Sequence[str], left: Sequence[str]) -> str:
    """How many inputs there are, and the columns that are left out, each with the reason."""
    return f"{len(chosen)} inputs: {listed(chosen)}" + (f", without {listed(left)}" if left else "")


def left_out(columns: Mapping[str, Sequence[str]], numeric: Mapping[str, np.ndarray], used: Sequence[str]) -> list[str]:
    """Columns that are not used, each with the reason."""
    return [f"{name} ({_why(name, columns[name], numeric.get(name))})" for name in columns if name not in used]


def _why(name: str, cells: Sequence[str], values: np.ndarray | None) -> str:
    if values is None:
        words = [cell.strip() for cell in cells if cell.strip() and cell_numbers([cell]) is None]
        if not words:
            return "empty"
        return f"{'a time' if MOMENT.fullmatch(words[0]) else 'text'}, such as {shown_cell(words[0])}"
    if np.ptp(finite_values(values)) == 0:
        return "always the same"
    return "a time" if _counts_time(name, values) else "not an input"


def listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)})" if len(names) > most else "")


FEW_VALUES = 10
"""A label with at most this many different integers may be meant as classes."""


def few_values(values: np.ndarray) -> list[str]:
    """The different values of a label that may be meant as classes, in order; none if they are too many, or not whole."""
    found = np.unique(finite_values(values))
    return [f"{value:.0f}" for value in found] if len(found) <= FEW_VALUES and (found == np.round(found)).all() else []


def finite_values(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def round_limit(values: np.ndarray) -> float:
    """The next of 1, 2, 5, 10, ... above twice the largest magnitude."""
    most = 2 * max(float(np.abs(finite_values(values)).max(initial=0.0)), 1e-6)
    decade = 10.0 ** math.floor(math.log10(most))
    return float(f"{next(decade * step for step in (1, 2, 5, 10) if decade * step >= most):.1g}")


def uneven(x: np.ndarray) -> bool:
    """Whether the columns' scales differ by more than 4, or one is far from zero."""
    finite = [finite_values(column) for column in x.T]
    deviation = np.array([max(float(values.std()), 1e-30) for values in finite])
    mean = np.array([abs(float(values.mean())) for values in finite])
    return bool(deviation.max() > 4 * deviation.min() or (mean > 100 * deviation).any())
