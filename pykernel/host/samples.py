"""Samples from tables of text: CSV files larger than memory, in batches of rows."""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import UserError, nearest
from pykernel.files import open_data
from pykernel.spec.model import Spec

BATCH = 4096
"""Rows read and run at a time."""
LINE_LIMIT = 2**20
"""Most bytes in a line."""

SEPARATORS = {"\t": "a tab", ";": "a semicolon", ",": "a comma"}
"""Separators between the cells of a table."""
SEP_LINE = re.compile(r'"?sep=([\t;,])"?\s*')
"""A line before the header, for Excel."""
DECIMAL = re.compile(r"\s*[+-]?(?=[.,]?[0-9])[0-9]*([.,])[0-9]*(?:[eE][+-]?[0-9]+)?\s*")
"""A number with a decimal mark."""


DATED = re.compile(r"\s*\d{4}-\d\d-\d\d")
"""The beginning of a cell with a date, and perhaps a time."""


@dataclass(frozen=True)
class Batch:
    """Consecutive samples: inputs x (rows, D), labels y, and the bytes read so far.

    x: NaN where a cell is empty.  gaps: number of rows with an empty input.
    y: numbers (rows,), or (rows, labels) if there are several labels, NaN where there is none yet; or class indices
    (rows,), int32, -1 where there is none yet; or (rows, 0) for a model without labels.
    """

    x: np.ndarray
    y: np.ndarray
    position: int
    gaps: int = 0


@dataclass(frozen=True)
class Cells:
    """Consecutive rows of a file: the chosen cells of each, the lines where they end, and the bytes read so far."""

    rows: list[tuple[str, ...]]
    lines: list[int]
    position: int


def read_samples(
    file: BinaryIO,
    name: str,
    inputs: Sequence[str],
    labels: str | Sequence[str],
    rows: int = BATCH,
    classes: Sequence[str] | None = None,
) -> Iterator[Batch]:
    """Batches of at most ``rows`` samples from a table of text with a header line, as ``read_cells`` reads one.

    Columns are found by name.  Other columns and blank lines are skipped.  ``nan`` and ``inf`` are numbers; an empty
    cell is NaN.  labels: one column, or several, or none.  classes: the possible cells of the label; each becomes a
    class index.
    name: the file's name in error messages.  Raises UserError, one sentence, with the line that is wrong.
    """
    wanted = [labels] if isinstance(labels, str) else list(labels)
    columns, dim = [*inputs, *wanted], len(inputs)
    words = wanted if classes is not None else []
    for cells in read_cells(file, name, lambda header: columns, ",".join(columns), rows, words):
        if classes is not None:
            y = _classes([row[dim] for row in cells.rows], cells.lines, name, wanted[0], classes)
            table = read_numbers([row[:dim] for row in cells.rows], cells.lines, name, inputs, 0)
        else:
            table = read_numbers(cells.rows, cells.lines, name, columns, len(wanted))
            y = table[:, dim].copy() if isinstance(labels, str) else np.ascontiguousarray(table[:, dim:])
        x = np.ascontiguousarray(table[:, :dim])
        missing = np.flatnonzero(np.isnan(x).any(axis=1))
        gaps = sum(not all(map(str.strip, cells.rows[i][:dim])) for i in missing)
        yield Batch(x, y, cells.position, gaps)


def require_columns(spec: Spec, where: str = "the spec") -> None:
    """Raises UserError, ``where`` first, unless the spec names the columns of its data."""
    if spec.input.columns is None:
        raise UserError(f'{where}: [input] names no columns; add columns = ["…"], as in the header of the data')
    if not spec.label_columns and spec.program.label_kind != "none":
        several = spec.program.label_kind == "reals"
        what = 'no columns; add columns = ["…", "…"]' if several else 'no column; add column = "…"'
        raise UserError(f"{where}: [label] names {what}, as in the header of the data")


def samples_of(spec: Spec, file: BinaryIO, name: str, rows: int = BATCH) -> Iterator[Batch]:
    """The samples of a file for a model, as ``read_samples`` reads them; raw rows for a model with a signal stage."""
    require_columns(spec)
    several = spec.inner.program.label_kind in ("reals", "none")
    labels = () if spec.forecasts else spec.label_columns if several else spec.label_columns[0]
    return read_samples(file, name, spec.sample_columns or (), labels, rows, spec.label.classes)


def read_cells(
    file: BinaryIO,
    name: str,
    choose: Callable[[list[str]], Sequence[str]],
    example: str,
    rows: int = BATCH,
    words: Collection[str] = (),
) -> Iterator[Cells]:
    """Batches of at most ``rows`` rows, as text, with the columns that ``choose`` selects from the header.

    Every text table is read by this function.  The separator is the character among comma, semicolon and tab that the
    header line has most often.  If it is not the comma, numbers may have decimal commas, which become points, except in
    the columns ``words``.  Spaces around cells, quotes and a byte order mark are ignored.
    example: a header line, to be shown in the message if the file has none.
    """
    lines = _Lines(file, name)
    first = next(filter(str.strip, lines), "")
    found = SEP_LINE.fullmatch(first)
    if found:
        first = next(filter(str.strip, lines), "")
    separator = found[1] if found else _separator(first)
    reader = csv.reader(itertools.chain([first], lines), delimiter=separator, skipinitialspace=True, strict=True)
    records = _records(reader, lines)
    header = next(records, None)
    if header is None:
        raise UserError(f"{name}: is empty; its first line must name the columns, such as {example[:80]}")
    names = [cell.strip() for cell in header]
    wanted = choose(names)
    positions = _positions(names, f"{name}, line {lines.number}", wanted)
    # itemgetter of one column is not a tuple
    pick = itemgetter(*positions) if len(positions) > 1 else itemgetter(slice(positions[0], positions[0] + 1))
    decimals = None if separator == "," else _Decimals(name, wanted, words)
    cells: list[tuple[str, ...]] = []
    numbers: list[int] = []
    empty = True

    def batch() -> Cells:
        return Cells(cells if decimals is None else decimals.as_points(cells, numbers), numbers, lines.position)

    for record in records:
        if len(record) != len(header):
            raise UserError(
                f"{name}, line {lines.number}: has {len(record)} cells, but the header names {len(header)} columns; "
                f"give each row a cell for each column, and quote cells that hold {SEPARATORS[separator]}"
            )
        cells.append(tuple(pick(record)))
        numbers.append(lines.number)
        if len(cells) == rows:
            yield batch()
            cells, numbers, empty = [], [], False
    if cells:
        yield batch()
    elif empty:
        raise UserError(f"{name}: holds a header but no rows; give it one row for each sample")


def _separator(header: str) -> str:
    """The separator that the header line has most often outside of quotes.

    A comma can also be part of a name or number.
    """
    plain = re.sub(r'"[^"]*"', "", header)
    return max((each for each in SEPARATORS if each in plain), key=plain.count, default=",")


class _Decimals:
    """Numbers of a file whose separator is not the comma: they have decimal commas or decimal points, but not both."""

    def __init__(self, name: str, columns: Sequence[str], words: Collection[str]) -> None:
        self.name, self.columns, self.words = name, columns, words
        self.mark = ""  # the file's decimal mark, as soon as a number had one

    def as_points(self, cells: list[tuple[str, ...]], lines: list[int]) -> list[tuple[str, ...]]:
        text = "".join(map("".join, cells))
        if "," not in text and (self.mark == "." or "." not in text):
            return cells
        return [
            tuple(map(self._cell, row, self.columns, itertools.repeat(line)))
            for row, line in zip(cells, lines, strict=True)
        ]

    def _cell(self, cell: str, column: str, line: int) -> str:
        found = DECIMAL.fullmatch(cell) if "," in cell or "." in cell else None
        if found is None or column in self.words:
            return cell
        self.mark = self.mark or found[1]
        if found[1] != self.mark:
            called = {".": "point", ",": "comma"}[self.mark]
            raise UserError(
                f"{self.name}, line {line}: column {shown_cell(column)} is {shown_cell(cell)}, but numbers before it have a "
                f"decimal {called}; write all numbers with the same decimal mark, and without a separator of thousands"
            )
        return cell.replace(",", ".")


class _Lines:
    """Decoded lines of a binary file, one at a time."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name = file, name
        self.number = self.position = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        try:
            line = self.file.readline(LINE_LIMIT + 1)
        except OSError as error:
            raise UserError(f"{self.name}: cannot be read: {error.strerror}") from None
        if not line:
            raise StopIteration
        self.number += 1
        self.position += len(line)
        where = f"{self.name}, line {self.number}:"
        if len(line) > LINE_LIMIT:
            raise UserError(f"{where} is longer than {LINE_LIMIT:,} bytes; is this a CSV file?")
        if b"\0" in line:
            raise UserError(f"{where} holds a NUL byte; is this a CSV file, saved as UTF-8?")
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{where} byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None


def _records(reader: Any, lines: _Lines) -> Iterator[list[str]]:
    try:
        for record in reader:
            if record:
                yield record
    except csv.Error as error:
        remedy = {
            "field larger": "a cell is too long; is a quote left open?",
            "unexpected end": "the file ends inside a quoted cell; close the quote",
            "new-line": "holds a carriage return inside the line; save the file with ordinary line ends",
        }
        what = next((text for start, text in remedy.items() if str(error).startswith(start)), f"is not CSV: {error}")
        raise UserError(f"{lines.name}, line {lines.number}: {what}") from None


def _positions(header: Sequence[str], where: str, wanted: Sequence[str]) -> list[int]:
    """Where each wanted column is."""
    for column in wanted:
        if header.count(column) > 1:
            raise UserError(
                f"{where}: names the column {shown_cell(column)} {header.count(column)} times; rename all but one"
            )
        if column not in header:
            raise UserError(f"{where}: names no column {shown_cell(column)}; {_remedy(header, column)}")
    return [header.index(column) for column in wanted]


def _remedy(header: Sequence[str], column: str) -> str:
    if (near := nearest(column, header)) is not None:
        return f"did you mean {shown_cell(near)}?"
    if all(map(_is_number, header)):
        return "it holds numbers; put a line with the columns' names before it"
    for separator, called in ((" ", "spaces"), ("|", "bars")):
        if len(header) == 1 and separator in header[0]:
            return f"its cells are separated by {called}; separate them by commas, semicolons or tabs"
    names = ", ".join(map(shown_cell, header[:12])) + (", ..." if len(header) > 12 else "")
    return f"it names {names}; name one of these, or change the header"


def _classes(cells: list[str], lines: list[int], name: str, column: str, classes: Sequence[str]) -> np.ndarray:
    """The cells as positions of classes, (rows,) int32; -1 where they are empty."""
    known = {"": -1} | {each: i for i, each in enumerate(classes)}
    found = [known.get(cell.strip()) for cell in cells]
    if None in found:
        at = found.index(None)
        cell = cells[at].strip()
        near = nearest(cell, classes)
        listed = ", ".join(map(shown_cell, classes[:12])) + (", ..." if len(classes) > 12 else "")
        remedy = f"the classes are {listed}" if near is None else f"did you mean {shown_cell(near)}?"
        if cell.lower() in ("nan", "na", "null", "none", "?"):
            remedy = "leave the cell empty where there is no label"
        raise UserError(
            f"{name}, line {lines[at]}: column {shown_cell(column)} is {shown_cell(cell)}, which is no class; {remedy}"
        )
    return np.array(found, np.int32)


def times_of(path: str | Path, rows: int) -> np.ndarray | None:
    """The time of each row, in seconds since 1970, (rows,), from the first column of dates: as in ISO 8601, in UTC if they
    have an offset.

    None if there is no such column, if a cell holds no date, if times fall, or if there are other than so many rows.
    """
    seconds: list[float] = []
    try:
        with contextlib.ExitStack() as stack:
            name, file, _ = open_data(str(path), stack)
            columns: list[str] = []

            def choose(header: list[str]) -> Sequence[str]:
                columns.extend(each for each in header if each.strip() and header.count(each) == 1)
                return columns

            first = next(iter(read_cells(file, name, choose, "", 1, columns))).rows[0]
            dated = next(
                (column for column, cell in zip(columns, first, strict=True) if _seconds(cell) is not None), None
            )
            if dated is None:
                return None
            _, file, _ = open_data(str(path), stack)
            for cells in read_cells(file, name, lambda _: [dated], "", BATCH, [dated]):
                found = [_seconds(cell) for (cell,) in cells.rows]
                if None in found:
                    return None
                seconds.extend(found)  # type: ignore[arg-type]
    except (UserError, OSError, StopIteration):
        return None
    times = np.array(seconds)
    return times if len(times) == rows and bool((np.diff(times) >= 0).all()) and times[-1] > times[0] else None


def _seconds(cell: str) -> float | None:
    if not DATED.match(cell):
        return None
    try:
        found = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def read_numbers(
    cells: list[tuple[str, ...]], lines: list[int], name: str, columns: Sequence[str], labels: int
) -> np.ndarray:
    """The cells as (rows, columns), NaN where they are empty; the last columns are labels."""
    try:
        return np.array(cells, np.float64)
    except ValueError:
        filled = [[cell if cell.strip() else "nan" for cell in row] for row in cells]
    try:
        return np.array(filled, np.float64)
    except ValueError:
        i, j = next((i, j) for i, row in enumerate(filled) for j, cell in enumerate(row) if not _is_number(cell))
    cell, remedy = cells[i][j], "correct the cell, or leave it empty"
    if "," in cell and _is_number(cell.replace(",", ".")):
        remedy = "write a point before the decimals, or separate the cells by semicolons or tabs"
    elif "," in cell and _is_number(re.sub("[.,]", "", cell)):
        remedy = "write the number without a separator of thousands"
    elif j >= len(columns) - labels:
        remedy = f"{remedy}; if these are classes, add classes = [{shown_cell(cell)}, ...] to [label]"
    raise UserError(
        f"{name}, line {lines[i]}: column {shown_cell(columns[j])} is {shown_cell(cell)}, not a number; {remedy}"
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def shown_cell(text: str) -> str:
    text = repr(text)
    return text if len(text) <= 60 else text[:57] + "..."


# -------------------------------------------------------------------------------------------------------- samples


def as_table(values: np.ndarray) -> np.ndarray:
    """The values as (rows, values); values (rows,) become one column."""
    return values if values.ndim == 2 else values[:, None]


def latest(before: float, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The latest known value before each row, and after the last row."""
    values = np.concatenate([[before], values])
    return values[np.maximum.accumulate(np.concatenate([[0], np.where(known, np.arange(1, len(values)), 0)]))]


def with_last_label(batches: Iterable[Batch], delay: int) -> Iterator[Batch]:
    """The batches with the latest known label as a further input of each row (with several labels: several inputs).

    The input is NaN before the first known label.  A model refuses NaN, as a device without a label could not be asked.
    """
    waiting: np.ndarray | None = None
    last = np.zeros(0)
    for batch in batches:
        y = as_table(batch.y).astype(np.float64)
        if waiting is None:
            waiting, last = np.full((delay + 1, y.shape[1]), np.nan), np.full(y.shape[1], np.nan)
        past = np.concatenate([waiting, y])
        known = past[: len(y)]
        columns = [latest(last[i], known[:, i], ~np.isnan(known[:, i]))[1:] for i in range(y.shape[1])]
        waiting, last = past[len(y) :], np.array([column[-1] for column in columns])
        yield Batch(np.column_stack([batch.x, *columns]), batch.y, batch.position)


def read_rows(spec: Spec, data: str) -> tuple[Any, Any]:
    """All rows of a file, (x, y).  An empty label becomes NaN, which a model refuses."""
    require_columns(spec)
    with contextlib.ExitStack() as stack:
        name, file, _ = open_data(data, stack)
        batches = list(samples_of(spec, file, name))
    if not batches:
        raise UserError(f"{data}: has no rows to learn; give a file with some")
    x, y = np.concatenate([batch.x for batch in batches]), np.concatenate([batch.y for batch in batches])
    return x, y if spec.program.label is not None else np.zeros((len(x), 0))
