"""Read tables with a header: turn columns into numbers, and a table with a label into the samples of a model."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.host.signal import RawRows
from pykernel.progress import Show
from pykernel.rows.arrays import Part
from pykernel.rows.columns import MISSING, NO_CLASS, NUMBERS, Column, Columns, apart_rows, share_codes
from pykernel.rows.frames import logged
from pykernel.rows.recordings import Recordings, each_part
from pykernel.rows.text import is_number, read_parts
from pykernel.spec.defaults import label_limit
from pykernel.spec.missing import WORDS
from pykernel.spec.model import OUTPUTS_LIMIT
from pykernel.telling import gaps_sentence, raise_first_error
from pykernel.tuning.combinations import Content
from pykernel.tuning.promises import follows
from pykernel.tuning.stage import Stage

MODELS = ("kfd", "ls-svm", "krr", "svm", "lp", "trained", "network")
"""Models that can be trained on a table."""


FEW_ROWS, ALIKE, CHANCE = 50, 0.1, 4.0
"""Rows are considered to follow each other in time if there are at least FEW_ROWS rows, and if the correlation between the
errors of neighbouring rows exceeds ALIKE, and also CHANCE times the standard deviation that the correlation of
independent errors would have.
"""


@dataclass
class LabelledTable:
    """The rows of a file, with warnings, and sentences about assumptions.

    x: inputs, (l, d).  y: labels, (l,), numbers or class indices.
    stage: the signal stage that computed these rows from raw rows, if there is one.
    data: a description of the table as it was read, as plain values.
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
    data: dict[str, Any] = field(default_factory=dict)
    device: np.ndarray | None = None
    """With many devices, the index of each row's device, (l,)."""
    in_time: bool = False
    """Whether rows are in time order, so that a model is judged on the last rows, and folds are blocks of rows."""

    @cached_property
    def apart(self) -> np.ndarray:
        """A Boolean array, (l,), which is True for rows with a number that is far from the rest of its column.  Models
        are not trained on these rows.
        """
        return apart_rows(self.x if self.classes else np.column_stack([self.x, self.y]))

    @cached_property
    def follows(self) -> bool:
        """Whether rows seem to follow each other in time.  O(l d^2).

        The result is True if the errors of a linear model in neighbouring rows are significantly correlated.  For rows that are sorted by
        their labels, the result is False.
        """
        steps = np.diff(self.y)
        if len(self.y) < FEW_ROWS or (steps >= 0).all() or (self.classes and (steps != 0).sum() < len(self.classes)):
            return False
        y = np.eye(len(self.classes))[self.y] if self.classes else self.y[:, None].astype(float)
        with np.errstate(over="ignore", invalid="ignore"):
            z, y = (
                (part - part.mean(axis=0)) / np.maximum(part.std(axis=0), np.finfo(float).tiny) for part in (self.x, y)
            )
        z[self.apart] = y[self.apart] = 0.0
        a = np.column_stack([z, ~self.apart])
        if not (np.isfinite(a).all() and np.isfinite(y).all()):
            return False
        errors = y - a @ np.linalg.lstsq(a, y, rcond=None)[0]
        return follows(errors, ~self.apart) > max(ALIKE, CHANCE / math.sqrt(len(self.y)))

    def label(self) -> dict[str, Any]:
        """Return [label] of the spec."""
        if self.classes:
            return {"column": self.column, "classes": self.classes}
        return {"column": self.column, **label_limit(self.y)}

    @property
    def content(self) -> Content:
        """A spec's content without a rule and, for a monitor, without a label."""
        kind = {"novelty": {}} if self.column is None else {"label": self.label()}
        return {"name": "planned", "input": {"columns": self.inputs}, **kind}


def read_table(
    file: BinaryIO | Recordings,
    name: str,
    inputs: Sequence[str],
    label: str,
    classes: Sequence[str],
    model: str | None,
    show: Show | None = None,
    signal: Mapping[str, Any] | None = None,
) -> LabelledTable:
    """Read the samples of a model from a table with a header, or from the tables of many devices, one after the other.

    inputs: names of columns.  Without names, the inputs are all other columns of numbers, except constant columns and times.
    classes: the label's classes, in order.  If no classes are given, they are found in the data if the label is text,
    or if ``model`` is "kfd".
    model: the model to train.  None means "kfd" for classes, and "ls-svm" for numbers.
    signal: precision and [signal] of a spec.  The signal stage computes the samples from its channels, which are given
    as inputs.  A label that is one of the channels is forecast.
    Raises UserError with a one-sentence message.
    """
    read = read_columns(file, name, show, inputs, label)
    forecasts = signal is not None and label in inputs
    if signal is not None:
        _need_channels(name, read.numeric, inputs, label, model)
    chosen = chosen_inputs(read, inputs, "" if forecasts else label)
    cells = _labels(read, label, classes)
    label_classes = None if forecasts else _classes_of(name, label, cells, classes, label in read.numeric, model)
    what = "labels are numbers" if label_classes is None else f"{len(label_classes)} classes, {listed(label_classes)}"
    taken = model or ("ls-svm" if label_classes is None else "kfd")
    x = np.column_stack([read.numeric[each] for each in chosen])
    y = read.numeric[label] if label_classes is None else positions_of(cells, label_classes)
    table = LabelledTable(name, chosen, label, label_classes, taken, x, y, [], device=read.device)
    if signal is not None:
        _make_steps(table, signal, label_classes or classes, forecasts)
    table.data = read.report(chosen, label, not inputs) | _leave_out_gaps(table)
    table.assumed.append(what if model else f"{what}, so {taken} is trained")
    if label_classes is None and (few := few_values(table.y)):
        table.assumed.append(f"if the labels are classes, give {shown_option('classes', ','.join(few))}")
    return table


def _need_channels(
    name: str, numeric: dict[str, np.ndarray], channels: Sequence[str], column: str, model: str | None
) -> None:
    for each in channels:
        if each not in numeric:
            raise UserError(
                f"{name}: [signal] names column {each!r} as a channel, but the column does not hold numbers"
            )
    if column in channels and model == "kfd":
        raise UserError(
            f"{shown_option('model', 'kfd')} predicts classes, but the label {column!r} is a channel, so its numbers are forecast; "
            f"leave {shown_option('model')} out"
        )


def _make_steps(table: LabelledTable, signal: Mapping[str, Any], classes: Sequence[str], forecasts: bool) -> None:
    """Replace the raw rows of the table by the steps of a signal stage.

    forecasts: whether the label is a channel.  Raises UserError with the cause if this stage does not allow the label,
    or if there are no steps.
    """
    label: dict[str, Any] = {"column": table.column} | ({"classes": list(classes)} if classes else {})
    labels = np.zeros((len(table.x), 0)) if forecasts else table.y
    stage = Stage({"name": "fit", **signal, "label": label}, table.x, labels)
    raw = RawRows(stage.plain)
    raw.take(stage.x)
    table.x, table.y = stage.steps()
    steps = len(table.x)
    raw.need_steps(table.name, steps)
    table.stage, table.warnings = replace(stage, raw_rows=raw.report()), raw.warnings(steps)
    table.inputs = list(stage.plain.input.columns or ())
    told = [f"{steps:,} steps of {len(table.inputs)} features", gaps_sentence(raw.report(), steps), *stage.overlaps()]
    table.assumed += filter(None, told)


def _leave_out_gaps(table: LabelledTable) -> dict[str, Any]:
    """Leave out rows without a label, or with a missing input.  Returns counts for a report.  With a signal stage, the counts are added to
    the table's assumptions instead.

    Raises UserError if too few rows are left.
    """
    there = np.isfinite(table.y) if table.classes is None else table.y >= 0
    rows = there & np.isfinite(table.x).all(axis=1)
    unlabelled, missing = int((~there).sum()), int((there & ~rows).sum())
    table.x, table.y = table.x[rows], table.y[rows]
    table.device = None if table.device is None else table.device[rows]
    _need_rows(table)
    if table.stage is None:
        return {"missing": {"rows": missing, "then": "left out"} if missing else None, "unlabelled": unlabelled}
    told = {"without a label": unlabelled, "with a missing input": missing}
    table.assumed += [f"left out {count:,} step{'s' * (count > 1)} {why}" for why, count in told.items() if count]
    return {}


def _labels(read: WholeTable, label: str, classes: Sequence[str] = ()) -> list[str]:
    """Return the label's cells.  Raises UserError if a cell is invalid, or if all cells are empty."""
    cells = read.label_cells(label, classes)
    if not any(cells):
        raise UserError(f"{read.name}: the label {label!r} is empty in all rows; there is nothing to learn")
    return cells


def _classes_of(
    name: str, column: str, cells: Sequence[str], classes: Sequence[str], numeric: bool, model: str | None
) -> list[str] | None:
    """Return the label's classes, in the given order or sorted, or None if the labels are numbers."""
    there = {cell for cell in cells if cell}
    if classes:
        unknown = sorted(there - set(classes))
        if unknown:
            raise UserError(
                f"{name}: column {column!r} holds {unknown[0]!r}, which is missing from {shown_option('classes')}"
            )
        missing = [each for each in classes if each not in there]
        if missing:
            raise UserError(
                f"{name}: column {column!r} is never {missing[0]!r}; leave this class out of {shown_option('classes')}"
            )
        return list(classes)
    if numeric and model != "kfd":
        return None
    if len(there) > OUTPUTS_LIMIT:
        remedy = f"take {shown_option('model', 'ls-svm')}, which fits numbers" if numeric else "is it the right column?"
        raise UserError(
            f"{name}: column {column!r} holds {len(there):,} different labels; at most {OUTPUTS_LIMIT} classes are possible: {remedy}"
        )
    if not numeric:
        return sorted(there)
    by_value: dict[float, str] = {}
    for each in sorted(there):
        if by_value.setdefault(float(each), each) != each:
            raise UserError(
                f"{name}: column {column!r} holds {by_value[float(each)]!r} and {each!r}, which are the same number; "
                "write each class the same way in every row"
            )
    return [by_value[value] for value in sorted(by_value)]


def positions_of(cells: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """Return the class index of each cell, or -1 for a cell that is not a class."""
    places = {kind: i for i, kind in enumerate(classes)}
    return np.array([places.get(cell, -1) for cell in cells], np.int64)


def _need_rows(table: LabelledTable) -> None:
    """Raise UserError if there are too few labelled rows, or if there is no row of a class."""
    name, column, classes, steps = table.name, table.column, table.classes, table.stage is not None
    # reasons for missing steps
    why = [*table.warnings, "a step has the label of its last raw row: label more rows, or reduce [signal] hop"][0]
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
            f"{name}: every row of class {empty!r} lacks an input; leave out the inputs that are missing in these rows"
        )


# ------------------------------------------------------------------------------------------------ for a plan


def infer(
    file: BinaryIO | Recordings, name: str, inputs: Sequence[str], label: str | None, show: Show | None = None
) -> LabelledTable:
    """Read the samples of a plan from a table with a header, or from the tables of many devices, one after the other.

    Rows with gaps are kept.  inputs: names of columns.  Without names, the inputs are all columns of varying numbers, except the label and
    times.  label: a column's name.  Without a label, a monitor is planned.  Labels are considered classes if they are text, or if they have
    only two values, both integers.
    """
    read = read_columns(file, name, show, inputs, label, label is not None)
    chosen = chosen_inputs(read, inputs, label)
    assumed = [] if label else ["there is no label, so the model is a monitor that raises alarms"]
    x = np.column_stack([read.numeric[column] for column in chosen])
    table = LabelledTable(name, chosen, label, None, "", x, np.zeros((len(x), 0)), assumed, device=read.device)
    if label is not None:
        _infer_label(table, label, read)
    table.data = read.report(chosen, label, not inputs)
    if gaps := int(np.isnan(x).any(axis=1).sum()):
        table.data["missing"] = {"rows": gaps, "then": "skipped", "by": list(WORDS)}
    return table


def _infer_label(table: LabelledTable, label: str, read: WholeTable) -> None:
    """Find the label's numbers or classes.  Add a sentence to the table's assumptions if the labels are classes, or may
    be meant as classes."""
    cells = _labels(read, label)
    if label in read.numeric:
        table.y = read.numeric[label]
        values = finite_values(table.y)
        if np.ptp(values) == 0:
            raise UserError(f"{table.name}: the label {label!r} is always {values[0]:g}; there is nothing to learn")
        few = few_values(values)
        if len(few) != 2 or len(set(cells) - {""}) != 2:
            if few:
                table.assumed.append(
                    f"the label's {len(few)} different values are numbers; if they are classes, list them in a spec, as [label] classes, "
                    f"and give {shown_option('spec')}"
                )
            return
    table.classes = _words_of(table.name, label, cells)
    table.y = positions_of(cells, table.classes).astype(np.int32)
    table.assumed.append(f"{len(table.classes)} classes, {listed(table.classes)}")


def _words_of(name: str, label: str, cells: Sequence[str]) -> list[str]:
    """Return the distinct words of a label, which become its classes."""
    classes = sorted({cell for cell in cells if cell})
    raise_first_error(
        (
            len(classes) > OUTPUTS_LIMIT,
            f"{name}: the label {label!r} holds {len(classes):,} different words; at most {OUTPUTS_LIMIT} classes are possible: "
            "is it the right column?",
        ),
        (
            len(classes) < 2,
            f"{name}: the label {label!r} has one class, {', '.join(classes)}; there is nothing to learn",
        ),
    )
    return classes


# ------------------------------------------------------------------------------------------------- columns

UNEVEN, GAP = 0.1, 10
"""Rows are unevenly spaced if the range of the middle 90 % of intervals is more than UNEVEN times the median interval,
or if there is a gap.  An interval of more than GAP times the median is a gap.
"""
RISES, LEAST_RISES = 20, 7
"""A column that never falls, and rises at least RISES times, is considered a count of time or rows.  In a table with
fewer rows, the column must rise in every row, and at least LEAST_RISES times."""
MOMENT = re.compile(r"\s*(\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ,].*)?|\d{1,2}:\d\d(:\d\d.*)?)\s*")
"""Matches a cell that holds a date or a time."""


def read_columns(
    file: BinaryIO | Recordings,
    name: str,
    show: Show | None = None,
    inputs: Sequence[str] = (),
    label: str | None = None,
    labelled: bool = True,
    codes: Iterable[float] = (),
    kind: str = "numbers",
) -> WholeTable:
    """Read a table into memory.

    If the inputs are given, and the label is given or there is none, only these columns are read.  Otherwise, all
    columns are read.  labelled: whether there is a label.  If ``label`` is None, the last column is the label.  codes:
    sentinels of an earlier table, which count as sentinels in this table even if they occur once.  kind: how columns
    are read (see ``Choose``), except the label, which is read as text.  Raises UserError if the table is invalid, or if
    an input or the label is missing.
    """
    header: list[str] = []
    kinds: dict[str, str] = {}

    def choose(names: list[str]) -> dict[str, str]:
        if header:  # the first device's file determines the columns
            return kinds
        header.extend(filter(None, names))
        raise_first_error(
            (
                labelled and len(header) < 2 and label not in inputs,  # a label that is forecast is also an input
                f"{name}, line 1: names one column, {''.join(header)!r}; a label and at least one input are needed",
            ),
            (
                label == "",
                f"{name}: the name of the label's column is empty; give one of {listed(header)}",
            ),
            (
                # names 0, 1, ... are allowed, because pandas writes them for columns without names
                not inputs and all(map(is_number, header)) and [*map(float, header)] != [*range(len(header))],
                f"{name}, line 1: holds numbers, {listed(header)}, where the columns' names should be; put a line with names above it",
            ),
        )
        others = () if inputs and (label or not labelled) else header
        kinds.update(dict.fromkeys([*inputs, *([label] if label else []), *others], kind))
        if labelled:
            kinds[label or header[-1]] = "text"
        return kinds

    if isinstance(file, Recordings):
        numbered = each_part(file, choose)
    else:
        numbered = zip(itertools.repeat(name), read_parts(file, name, choose, "a,b,label"))
    parts = []
    for table, part in numbered:
        parts.append((table, part))
        if show is not None:
            show(part.position, f"reading {name}")
    label = header[-1] if labelled and label is None else label
    return WholeTable(name, header, list(kinds), parts, inputs, label, codes)


class WholeTable:
    """A table in memory: numbers for columns of numbers, text for the other columns.

    Sentinels are treated as missing values, except in a label whose few integers may be classes.  Raises UserError for a number in an
    unsupported notation, and for an input with too many words.
    """

    def __init__(
        self,
        name: str,
        header: list[str],
        columns: Sequence[str],
        parts: Sequence[tuple[str, Part]],
        inputs: Sequence[str] = (),
        label: str | None = None,
        codes: Iterable[float] = (),
    ) -> None:
        """Join the parts of a table.  parts: each with the name of its file.  codes: as for ``read_columns``."""
        self.name, self.header, self.parts = name, header, parts
        self.columns = {each: Column(name, each, each in inputs, each == label) for each in columns}
        self.numeric: dict[str, np.ndarray] = {}
        """Name of a column -> its numbers, NaN where they are missing."""
        self._classes: Column | None = None
        self.rows = Counter[str]()
        for table, part in parts:
            self.rows[table] += len(part.lines)
        most = (1 - NUMBERS) * self.rows.total()
        read: dict[str, np.ndarray] = {}
        for each, column in self.columns.items():
            pieces = []
            for column.table, part in parts:
                enough = math.inf if column.named or column.label else most
                pieces.append(column.read(part.columns[each], part.lines, enough))
            read[each] = np.concatenate(pieces)
        share_codes(self.columns.values(), codes)
        for each, column in self.columns.items():
            values = read[each]
            if column.holds_numbers:
                column.refuse_notation()
                self.numeric[each] = values if each == label and few_values(values) else column.emptied(values)
            elif each in inputs and each != label:
                column.need_numbers()

    @property
    def starts(self) -> list[int]:
        """The first row of each device except the first device."""
        return list(itertools.accumulate(self.rows.values()))[:-1]

    @property
    def device(self) -> np.ndarray | None:
        """The index of each row's device, (rows,), or None for a single table."""
        return np.repeat(np.arange(len(self.rows)), [*self.rows.values()]) if list(self.rows) != [self.name] else None

    def cells(self, column: str) -> list[str]:
        """Return a column as text.  Numbers are written in the shortest form."""
        cells = itertools.chain.from_iterable(part.columns[column] for _, part in self.parts)
        return [
            cell if isinstance(cell, str) else "" if math.isnan(cell) else str(cell).removesuffix(".0")
            for cell in cells
        ]

    def label_cells(self, label: str, classes: Sequence[str] = ()) -> list[str]:
        """Return the label's cells, "" where the label is missing.  classes: names of classes, which never mean a missing label.

        Raises UserError for a label with many numbers and some words.
        """
        cells = self.cells(label)
        if label in self.numeric:
            return [cell if there else "" for cell, there in zip(cells, np.isfinite(self.numeric[label]), strict=True)]
        # if a quote is left open, a cell contains many lines
        several = len(set(cells)) > FEW_VALUES or any("\n" in cell for cell in cells)
        if not classes and self.columns[label].numbers > self.columns[label].words and several:
            self.columns[label].refuse_notation()
            self.columns[label].need_numbers()
        gone = NO_CLASS - {each.lower() for each in classes}
        counted = self._classes = Column(self.name, label, label=True)
        counted.cells = len(cells)
        lines = itertools.chain.from_iterable(part.lines for _, part in self.parts)
        for at, (cell, line) in enumerate(zip(cells, lines, strict=True)):
            if cell.lower() in gone:
                counted.count_other(cell, line)
                cells[at] = ""
        return cells

    def without(self, codes: Iterable[float]) -> Iterator[dict[str, Any]]:
        """Treat these numbers as missing values, too.

        For each of these numbers and each column with this number, yields a dict that describes the emptied cells.
        """
        for value in codes:
            for each, values in self.numeric.items():
                if (here := values == value).any():
                    self.numeric[each] = np.where(here, math.nan, values)
                    others = finite_values(self.numeric[each])
                    yield {
                        "column": each, "value": value, "cells": int(here.sum()), "others": [float(others.min()), float(others.max())],
                        "then": "emptied",
                    }  # fmt: skip

    def report(self, inputs: Sequence[str], label: str | None, chosen: bool) -> dict[str, Any]:
        """Describe the table as it was read, in plain values.  chosen: whether pykernel chose the inputs."""
        used, of_model = Columns(), {*inputs, label}
        used.table, used.rows, used.classes = self.name, self.rows.total(), self._classes
        used.columns = {each: self.columns[each] for each in dict.fromkeys([*inputs, label]) if each in self.numeric}
        left = [each for each in self.columns if each not in of_model] if chosen else []
        out = [self.left_out(each) for each in left]
        used.cut = max(part.cut for _, part in self.parts)
        return used.report(chosen=chosen, inputs=list(inputs), label=label, left_out=out, times=self._times(out))

    def _times(self, left_out: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Describe the intervals in the first column of times.  Returns None if they are even, or if there is no such column."""
        for each in left_out:
            name = each["column"]
            if each["why"] == "time":
                moments = [moment(cell) for cell in self.cells(name)]
                times = np.array([math.nan if at is None else 86400 * at for at in moments])
                return intervals(name, times, self.starts, " s")
            if each["why"] == "counts":
                return intervals(name, self.numeric[name], self.starts, "")
        return None

    def left_out(self, name: str) -> dict[str, Any]:
        """Return a dict with the reason ("why") for which a column is not an input, and with examples of its words."""
        values, words, such_as = self.numeric.get(name), list[str](), ""
        if name in logged(self.header):
            why = "logged"
        elif values is None:
            cells = self.cells(name)
            found, such_as = few_words(cells), next(filter(is_word, cells), "")
            noted = self.columns[name].noted
            if not such_as:
                why = "empty"
            elif MOMENT.fullmatch(such_as):
                why = "time"
            elif noted is not None and noted[0] == such_as:
                why = "notation"
            elif found is not None and len(found) == 1:
                why = "constant"
            else:
                why, words = "words", found or []
        elif np.ptp(finite_values(values)) == 0:
            why = "constant"
        else:
            why = "counts" if _counts(values, self.starts) else "unused"
        return {"column": name, "why": why, "such_as": such_as[:40], "words": [word[:40] for word in words]}


def is_word(cell: str) -> bool:
    """Return whether a cell is neither empty nor a word for a missing value."""
    return bool(cell) and cell.lower() not in MISSING


def few_words(cells: Sequence[str]) -> list[str] | None:
    """Return the distinct words in a column, sorted, or None if there are too many words for one input per word."""
    words = set[str]()
    for cell in cells:
        if cell not in words and is_word(cell):
            words.add(cell)
            if len(words) > FEW_VALUES:
                return None
    return sorted(words) if 2 * len(words) <= sum(map(is_word, cells)) else None


def _counts(values: np.ndarray, starts: Sequence[int]) -> bool:
    """Return whether a column is considered a count of time or rows: it never falls, and rises often (``RISES``).

    starts: the first rows of all devices but the first, where the column may start again.
    """
    steps = [np.diff(finite_values(part)) for part in np.split(values, starts)]
    every = np.concatenate(steps)
    return bool((every >= 0).all() and (every > 0).sum() >= max(LEAST_RISES, min(RISES, len(every))))


DAYS, CLOCKS = ("%d.%m.%Y", "%Y/%m/%d"), ("%H:%M:%S", "%H:%M")
MOMENTS = ("", *(f"{day} {clock}" for day in DAYS for clock in CLOCKS), *DAYS, *CLOCKS)
"""Formats of dates and times in which day and month are unambiguous.  The empty format means ISO 8601."""


def moment(cell: str) -> float | None:
    """Convert a date to days since a Monday, or a time without a date to days since midnight.

    Returns None if the format is not known.
    """
    text = cell.removesuffix("Z")
    for kind in MOMENTS:
        try:
            at = datetime.strptime(text, kind) if kind else datetime.fromisoformat(text)
        except ValueError:
            continue
        days = at.toordinal() - 1 if "Y" in kind or not kind else 0  # day 1 of the calendar was a Monday
        return days + (at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6) / 86400
    return None


def intervals(name: str, times: np.ndarray, starts: Sequence[int], unit: str) -> dict[str, Any] | None:
    """Describe the time intervals between rows.  Returns None if they are even, or if there are fewer than RISES.

    times: (rows,), NaN where a time is missing.  starts: the first rows of all devices but the first.
    """
    steps = np.concatenate([np.diff(finite_values(part)) for part in np.split(times, starts)])
    steps = steps[steps > 0]
    if len(steps) < RISES:
        return None
    low, middle, high = np.quantile(steps, [0.05, 0.5, 0.95]).tolist()
    gaps = int((steps > GAP * middle).sum())
    if high - low <= UNEVEN * middle and not gaps:
        return None
    even = round(float(np.minimum(steps, GAP * middle).sum()) / middle) + 1
    return {"column": name, "median": middle, "low": low, "high": high, "unit": unit, "gaps": gaps, "even": even}


def chosen_inputs(read: WholeTable, inputs: Sequence[str], label: str | None) -> list[str]:
    """Return the inputs' columns: the given columns, or all columns of varying numbers except the label and times.

    Times become inputs only if there are no other columns.  Raises UserError if an input does not hold numbers or is
    the label, or if there are no inputs.
    """
    if label in inputs:
        raise UserError(f"{read.name}: column {label!r} is the label; leave it out of {shown_option('inputs')}")
    for each in inputs:
        if each not in read.numeric:
            raise UserError(
                f"{read.name}: column {each!r} does not hold numbers; leave it out of {shown_option('inputs')}"
            )
    found, starts, not_given = read.numeric, read.starts, {label, *logged(read.header)}
    different = [each for each in found if each not in not_given and np.ptp(finite_values(found[each])) > 0]
    chosen = list(inputs) or [each for each in different if not _counts(found[each], starts)] or different
    if not chosen:
        for column in read.columns.values():
            column.refuse_notation()
        beside = "" if label is None else f" other than the label {label!r}"
        raise UserError(f"{read.name}: has no column of varying numbers{beside}; give {shown_option('inputs')}")
    return chosen


def listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)})" if len(names) > most else "")


FEW_VALUES = 10
"""A label with at most this many different integers may be meant as classes."""


def sentinels(data: Mapping[str, Any]) -> list[float]:
    """Return the sentinels of a table's inputs.  data: the description of the table as it was read."""
    return [each["value"] for each in data.get("sentinels", ()) if each["column"] in data["inputs"]]


def few_values(values: np.ndarray) -> list[str]:
    """Return the distinct values of a label that may be meant as classes, in order.

    The list is empty if there are too many values, or if some values are not integers.
    """
    found = np.unique(finite_values(values))
    return [f"{value:.0f}" for value in found] if len(found) <= FEW_VALUES and (found == np.round(found)).all() else []


def finite_values(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def uneven(x: np.ndarray) -> bool:
    """Return whether the columns' scales differ by more than a factor of 4, or a column is far from zero."""
    finite = [finite_values(column) for column in x.T]
    deviation = np.array([max(float(values.std()), 1e-30) for values in finite])
    mean = np.array([abs(float(values.mean())) for values in finite])
    return bool(deviation.max() > 4 * deviation.min() or (mean > 100 * deviation).any())
