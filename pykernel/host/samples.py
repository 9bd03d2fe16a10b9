"""Read samples from CSV files, which may be larger than memory, in batches of rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import UserError, nearest, shown_option
from pykernel.files import open_data
from pykernel.rows.arrays import Part
from pykernel.rows.columns import NO_CLASS, Columns
from pykernel.rows.recordings import Recordings
from pykernel.rows.text import BATCH, NoColumn, read_parts, shown_cell
from pykernel.spec.missing import WORDS
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import Watch

DATED = re.compile(r"\s*\d{4}-\d\d-\d\d")
"""Matches a date at the beginning of a cell, with or without a time after it."""


@dataclass(frozen=True)
class Batch:
    """Consecutive samples.

    x: the inputs, (rows, D), with NaN where an input is missing.
    y: the labels. Numbers: (rows,) for one label or (rows, labels) for several, with NaN where a label is not known yet.  For a
    classifier: class indices (rows,), int32, with -1 where the class is not known yet.  For a model without labels:
    (rows, 0).
    position: the number of bytes read so far, or the number of rows if the samples are from arrays.
    raw: for steps of a signal stage, the index of each step's last raw row, (rows,), if it is known.
    """

    x: np.ndarray
    y: np.ndarray
    position: int
    raw: np.ndarray | None = None


def read_samples(
    file: BinaryIO,
    name: str,
    inputs: Sequence[str],
    labels: str | Sequence[str],
    rows: int = BATCH,
    classes: Sequence[str] | None = None,
    seen: Columns | None = None,
) -> Iterator[Batch]:
    """Yield batches of at most ``rows`` samples from a table with a header.

    ``read_parts`` reads the table.  Columns are found by name.  All other columns are skipped, and so are blank lines.  A missing
    number becomes NaN (see ``pykernel.rows.columns``).
    labels: the name of a column, or a list of names, which may be empty.  classes: the possible texts of the label; each
    becomes a class index.
    name: the file's name in error messages. seen: counts the cells by their content.  Raises UserError with a message
    that names the invalid line.
    """
    wanted = [labels] if isinstance(labels, str) else list(labels)
    columns, dim = [*inputs, *wanted], len(inputs)
    numbers = columns if classes is None else columns[:dim]
    kinds: dict[str, str] = dict.fromkeys(columns, "words") | dict.fromkeys(numbers, "numbers")
    seen = Columns() if seen is None else seen
    seen.begin(name, numbers, wanted, classes is not None)
    for part in read_parts(file, name, lambda header: kinds, ",".join(columns), rows):
        named = None if classes is None else _classes(part, name, wanted[0], classes, seen)
        table = seen.read(part)
        y = (
            np.ascontiguousarray(table[:, dim] if isinstance(labels, str) else table[:, dim:])
            if named is None
            else named
        )
        yield Batch(np.ascontiguousarray(table[:, :dim]), y, part.position)
    seen.end()


def require_columns(spec: Spec, where: str = "the spec") -> None:
    """Raise UserError unless the spec names the columns of its data.  where: the beginning of the message."""
    if spec.input.columns is None:
        raise UserError(f'{where}: [input] names no columns; add columns = ["…"], as in the header of the data')
    if not spec.label_columns and spec.program.label_kind != "none":
        several = spec.program.label_kind == "reals"
        what = 'no columns; add columns = ["…", "…"]' if several else 'no column; add column = "…"'
        raise UserError(f"{where}: [label] names {what}, as in the header of the data")


def samples_of(
    spec: Spec, file: BinaryIO, name: str, rows: int = BATCH, seen: Columns | None = None
) -> Iterator[Batch]:
    """Yield a model's samples from a file in batches. With a signal stage, the rows of the batches are raw rows."""
    require_columns(spec)
    several = spec.inner.program.label_kind in ("reals", "none")
    labels = () if spec.forecasts else spec.label_columns if several else spec.label_columns[0]
    found = read_samples(file, name, spec.sample_columns or (), labels, rows, spec.label.classes, seen)
    return found if not spec.input.formulas else _converted(spec, found, name)


def _converted(spec: Spec, batches: Iterable[Batch], name: str) -> Iterator[Batch]:
    """Yield the batches.  If the file lacks a column that ``pykernel table`` made for the training, the error names the
    command that makes the column.
    """
    try:
        yield from batches
    except NoColumn as error:
        made = {formula.partition(" = ")[0] for formula in spec.input.formulas or ()}
        if error.column not in made:
            raise
        raise UserError(
            f"{name}: has no column {error.column!r}, which pykernel table made for the training; make the column with "
            f"pykernel table {name} {shown_option('like')} FIRST.csv, where FIRST.csv is the table used for the training"
        ) from None


def missing_rows(spec: Spec, rows: int) -> dict[str, Any] | None:
    """Return a dict for ``Columns.report``: the number of rows that lack an input, and what the model does with them.

    The result is None if no row lacks an input.  It is also None for a spec with [signal], because there these rows are
    gaps, which ``RawRows`` counts.
    """
    if not rows or spec.signal is not None:
        return None
    if spec.completes:
        return {"rows": rows, "then": "completed"}
    return {"rows": rows, "then": "skipped", "by": stand_ins(spec)}


def stand_ins(spec: Spec) -> list[str]:
    """Return the values of the key [input] missing with which this spec is valid and replaces missing inputs.

    The list is empty for a spec with a custom kernel, for which no value is tried.
    """
    content, found = spec.model_dump(mode="json", exclude_unset=True), []
    for way in WORDS if spec.custom is None else ():
        with contextlib.suppress(UserError):
            make_spec(content | {"input": content["input"] | {"missing": way}})
            found.append(way)
    return found


def _classes(part: Part, name: str, column: str, classes: Sequence[str], seen: Columns) -> np.ndarray:
    """Return the class index of each cell, (rows,) int32, with -1 for an empty cell or a word for a missing class."""
    known = {"": -1} | {each: i for i, each in enumerate(classes)}
    cells, lines = part.columns[column], part.lines
    found = [known.get(cell) for cell in cells]
    assert seen.classes is not None
    seen.classes.cells += len(cells)
    for at, position in enumerate(found):
        if position is not None:
            continue
        cell, found[at] = cells[at], -1
        seen.classes.count_other(cell, lines[at])
        if cell.lower() in NO_CLASS:
            continue
        near = nearest(cell, classes)
        listed = ", ".join(map(shown_cell, classes[:12])) + (", ..." if len(classes) > 12 else "")
        remedy = f"the classes are {listed}" if near is None else f"did you mean {shown_cell(near)}?"
        raise UserError(
            f"{name}, line {lines[at]}: column {shown_cell(column)} is {shown_cell(cell)}, which is not a class; {remedy}"
        )
    return np.array(found, np.int32)


def times_of(path: str | Path, rows: int) -> np.ndarray | None:
    """Return the time of each row, in seconds since 1970, (rows,), from the first column of ISO 8601 dates.

    Dates without a UTC offset count as UTC.
    The result is None if the first row has no date, if a cell of the column is not a date, if times decrease, if all
    times are equal, if the table does not have ``rows`` rows, or if it cannot be read.
    """
    try:
        with contextlib.ExitStack() as stack:
            name, file, _ = open_data(str(path), stack)
            named = lambda header: {each: "words" for each in header if each and header.count(each) == 1}  # noqa: E731
            first = next(read_parts(file, name, named, "", 1)).columns
            dated = next(column for column, (cell,) in first.items() if _seconds(cell) is not None)
            _, file, _ = open_data(str(path), stack)
            cells = (
                cell for part in read_parts(file, name, lambda _: {dated: "words"}, "") for cell in part.columns[dated]
            )
            times = np.array(list(map(_seconds, cells)), np.float64)  # NaN where a cell is not a date
    except (UserError, OSError, StopIteration):
        return None
    return times if len(times) == rows and bool((np.diff(times) >= 0).all()) and times[-1] > times[0] else None


def _seconds(cell: str) -> float | None:
    if not DATED.match(cell):
        return None
    try:
        found = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


# -------------------------------------------------------------------------------------------------------- samples


def as_table(values: np.ndarray) -> np.ndarray:
    """Return the values in the shape (rows, values).  Values of shape (rows,) become one column."""
    return values if values.ndim == 2 else values[:, None]


def latest(before: float, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return an array with one element more than there are rows: the latest value that is known before each row, and then
    the latest value after all rows.
    """
    values = np.concatenate([[before], values])
    return values[np.maximum.accumulate(np.concatenate([[0], np.where(known, np.arange(1, len(values)), 0)]))]


def input_names(spec: Spec) -> Sequence[str]:
    """Return the names of the inputs' columns. If the spec names no columns, the names are "input 0", "input 1", …"""
    return spec.input.columns or [f"input {j}" for j in range(spec.dim)]


def training_of(spec: Spec) -> Any:
    """Return the description of the training rows in a frozen model's spec, or None for other models."""
    return getattr(getattr(spec, "expansion", None), "trained", None)


def by_name(table: Any, names: Sequence[str] | None) -> Any:
    """Return the table with its columns in the order of ``names``. A table that does not have exactly these columns is returned
    unchanged.
    """
    there = [each for each in getattr(table, "columns", ()) if isinstance(each, str)]
    return table[list(names)] if names and sorted(there) == sorted(names) else table


def read_each(spec: Spec, many: Recordings, watch: Watch, seen: Columns | None = None) -> list[tuple[Any, Any]]:
    """Return a list with (x, y) for each device: all rows of the device, as ``read_rows`` returns them."""
    parts: list[tuple[Any, Any]] = []
    with watch.progress() as show:
        for device in many.devices:
            show(len(parts) / len(many), f"reading {device.path}")
            parts.append(read_rows(spec, device.path, seen))
    return parts


def read_rows(spec: Spec, data: str, seen: Columns | None = None) -> tuple[Any, Any]:
    """Return (x, y), all rows of a file.  A missing label becomes NaN (-1 for a class), which a model refuses."""
    require_columns(spec)
    with contextlib.ExitStack() as stack:
        name, file, _ = open_data(data, stack)
        batches = list(samples_of(spec, file, name, seen=seen))
    if not batches:
        raise UserError(f"{data}: has no rows to learn; give a file with rows")
    x, y = np.concatenate([batch.x for batch in batches]), np.concatenate([batch.y for batch in batches])
    return x, y if spec.program.label is not None else np.zeros((len(x), 0))
