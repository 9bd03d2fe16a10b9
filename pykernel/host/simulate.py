"""Streams of samples: CSV files larger than memory, a model run over one, and its errors in constant memory."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import itemgetter
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import UserError, nearest, option
from pykernel.host.advice import FEW, Signs, Trial, advice
from pykernel.host.model import HostModel
from pykernel.host.scores import MOMENTS, Errors, verdict
from pykernel.host.simple import Distances, SeenAlarms, Simple, latest, simple_bytes
from pykernel.spec.model import Spec

BATCH = 4096
"""Rows read and run at a time."""
LINE_LIMIT = 2**20
"""Most bytes in a line."""
DELAY_LIMIT = 10**6
"""Most rows that are kept until their labels arrive."""
ALARMS = 1000
"""Most alarms whose first and last rows are kept."""
ADVISE_AFTER = 100
"""If this many labelled samples are refused one after the other, the report says what to do about it."""

SEPARATORS = {"\t": "a tab", ";": "a semicolon", ",": "a comma"}
"""Separators between the cells of a table."""
SEP_LINE = re.compile(r'"?sep=([\t;,])"?\s*')
"""A line before the header, for Excel."""
DECIMAL = re.compile(r"\s*[+-]?(?=[.,]?[0-9])[0-9]*([.,])[0-9]*(?:[eE][+-]?[0-9]+)?\s*")
"""A number with a decimal mark."""

# --------------------------------------------------------------------------------------------------------- reading


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


# ------------------------------------------------------------------------------------------------------ simulation


@dataclass(frozen=True)
class Steps:
    """Results of a few steps of the device's loop: predict row t (without labels: ask), then learn row t - delay.

    labels, predictions: as in a Batch; NaN (-1 for a class) where the input was refused.
    statuses: the results of learning; ``learnt`` says which rows have one.  For a model that does not learn: the
    results of the predictions; ``learnt`` is then true for all rows.
    states: for a model that raises alarms, its level and threshold after each row, (rows, 2); else (rows, 0).
    """

    first_row: int
    labels: np.ndarray
    predictions: np.ndarray
    statuses: np.ndarray
    learnt: np.ndarray
    states: np.ndarray


def _table(values: np.ndarray) -> np.ndarray:
    """The values as (rows, values); values (rows,) become one column."""
    return values if values.ndim == 2 else values[:, None]


class Alarms:
    """The alarms that a model raised.

    Consecutive samples whose status is in the program's ``alarms`` are one alarm.  Refused samples between them are
    ignored.
    """

    def __init__(self, spec: Spec) -> None:
        self.statuses = [int(status) for status in spec.program.alarms]
        self.samples = self.count = 0  # number of samples in alarm; number of alarms
        self.listed: list[dict[str, Any]] = []  # the first ALARMS alarms: their rows, and the highest level
        self._taken, self._last = 0, -1  # number of samples that were not refused; index of the last one in alarm

    def take(self, rows: np.ndarray, statuses: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Take the next samples: their rows, statuses, and levels.  Returns whether each is in alarm, (samples,)."""
        alarmed, order = np.isin(statuses, self.statuses), self._taken + np.cumsum(statuses >= 0)
        self.samples += int(alarmed.sum())
        for i in np.flatnonzero(alarmed):
            row, level = int(rows[i]), float(levels[i])
            if order[i] != self._last + 1:
                self.count += 1
                if self.count <= ALARMS:
                    self.listed.append({"first_row": row, "last_row": row, "level": level})
            elif self.count <= ALARMS:
                latest = self.listed[-1]
                latest |= {"last_row": row, "level": max(latest["level"], level)}
            self._last = int(order[i])
        self._taken += int((statuses >= 0).sum())
        return alarmed

    def report(self, state: np.ndarray) -> dict[str, Any]:
        """The alarms as plain values.  state: the present level and threshold."""
        level, threshold = map(float, state)
        counts = {"count": self.count, "samples": self.samples, "listed": self.listed}
        return counts | {"level": level, "threshold": threshold}


class _Run:
    """A model fed from a stream, as the device will be.

    Each row is asked; then a row is learnt.  With labels, the learnt row is the one ``delay`` rows before, if it has
    all of its labels.  The model is refreshed every ``refresh_every`` rows (0: never).  A model with a training is
    trained after every ``train_every`` labels (0: never).  A model that does not learn is only asked.  With
    ``forecasts`` it may have a delay as
    well: the simple predictors learn the true values that much later.
    """

    def __init__(
        self, spec: Spec, delay: int = 0, refresh_every: int = 0, train_every: int = 0, forecasts: bool = False
    ) -> None:
        if not 0 <= delay <= DELAY_LIMIT:
            raise UserError(f"delay is {delay}; it must be from 0 to {DELAY_LIMIT:,} rows")
        if refresh_every < 0:
            raise UserError(f"refresh-every is {refresh_every}; it must be a number of rows, or 0 for never")
        if train_every < 0:
            raise UserError(f"train-every is {train_every}; it must be a number of labels, or 0 for never")
        program = spec.program
        self.trains = any(e.name == "train" for e in program.entries_for(spec.config))
        if train_every and not self.trains:
            raise UserError(
                f"rule {spec.learning.rule} has no train on the device, as krr, ls-svm and kfd have; leave "
                "train-every out"
            )
        if delay and (not (program.learns or forecasts) or program.label_kind == "none"):
            raise UserError(f"rule {spec.learning.rule} takes no labels, so delay means nothing; leave delay out")
        if refresh_every and not any(e.name == "refresh" for e in program.entries_for(spec.config)):
            what = f"rule {spec.learning.rule}"
            if spec.has("reduction", "technique"):
                what = spec.reduction.technique
            raise UserError(f"{what} has nothing to refresh; leave refresh-every out, or use mklms")
        self.spec, self.delay, self.refresh_every, self.train_every = spec, delay, refresh_every, train_every
        self.model = HostModel(spec)
        self.classes = spec.label.classes or ()
        self._shape = program.label_array(spec.capacities).shape
        self._dtype = spec.label_number
        self.alarms = Alarms(spec) if program.raises_alarms(spec.config) else None
        self.rows = self.unlabelled = self.inputs_refused = 0
        self.statuses = {status: 0 for status in program.status}
        self.trainings = {status: 0 for status in program.status}
        self.labels_taken = self._labels_since = 0  # labels given to the update: all, and since the last training
        self.visited = 0  # samples that were visited after a training
        self.streak = self.longest_streak = 0  # consecutive labelled samples that were refused
        self._why = ""
        self._waiting_x = np.zeros((0, spec.dim), spec.number)
        self._waiting_y = np.zeros((0, *self._shape), self._dtype)

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Score the answers to the next rows.  released: the labels that became known after each of these rows.

        x, y: first the rows that still wait for their labels, then these rows.
        """
        raise NotImplementedError

    def _reason(self, status: str, x: np.ndarray, y: Any) -> str:
        """Why a sample was refused, and what to do about it."""
        spec = self.spec
        if status == "REFUSED_INPUT":
            j = int(np.argmin(spec.accepted(x)))
            column = spec.input.columns[j] if spec.input.columns else f"input {j}"
            if np.isnan(x[j]):
                return f"{column} is nan, no number: such rows are neither predicted nor learned"
            return f"{column} is {x[j]:g} and [input] max_abs is {spec.limit_told(j)}; raise that limit or scale the column"
        lower = ["lower [learning] eta"] if spec.has("learning", "eta") else []
        labelled = spec.program.label_kind != "none"
        remedies = [*lower, *(["raise [label] max_abs if the labels are larger than it"] if labelled else [])]
        return "; ".join(["learning diverges", *([", or ".join(remedies)] if remedies else [])])

    def run(self, x: np.ndarray, y: np.ndarray) -> Iterator[Steps]:
        """Take the next samples: inputs and labels as in a Batch."""
        start = 0
        while start < len(x):
            end = len(x)
            if self.refresh_every:
                end = min(end, start + self.refresh_every - self.rows % self.refresh_every)
            if self.train_every:
                end = min(end, start + self._until_training(y[start:end]))
            yield self._step(x[start:end], y[start:end])
            if self.refresh_every and self.rows % self.refresh_every == 0:
                self.model.refresh()
            if self.train_every and self._labels_since == self.train_every:
                self.train()
            start = end

    def _until_training(self, y: np.ndarray) -> int:
        """How many rows to run until the next training is due: up to the row with the last label before it, or all
        rows.
        """
        known = np.flatnonzero(~self._missing(self._released(y)))
        last = self.train_every - self._labels_since - 1
        return int(known[last]) + 1 if last < len(known) else len(y)

    def _released(self, y: np.ndarray) -> np.ndarray:
        """The label that becomes known after each of the next rows; none in the first ``delay`` rows of the stream."""
        none = min(len(y), self.delay - len(self._waiting_y))
        nothing = np.full((none, *self._shape), -1 if self.classes else np.nan, self._dtype)
        return np.concatenate([nothing, self._waiting_y, y])[: len(y)]

    def train(self) -> IntEnum:
        """Do what NAME_train does; returns the status."""
        status = self.spec.program.status(self.model.train())
        self.trainings[status] += 1
        self._labels_since = 0
        return status

    def finish(self, again: Iterable[Batch] = ()) -> None:
        """After the last row: train on the samples since the last training, then visit the samples once more.

        again: the same rows, for a model that has visits; only rows that were learnt are visited.  Does nothing if this
        run does not train the model.
        """
        if not self.train_every:
            return
        if self._labels_since:
            self.train()
        visits, left = self.visits, self.rows - self.delay
        for batch in again if visits else ():
            with np.errstate(over="ignore"):
                x, y = batch.x[: max(0, left)].astype(self.spec.number), batch.y[: max(0, left)].astype(self._dtype)
            known = ~self._missing(y)
            left -= len(batch.x)
            for visit in visits:
                self.visited += int((self.model.visit(visit, x[known], y[known]) >= 0).sum())

    @property
    def visits(self) -> list[str]:
        """Functions that take each sample once more, after a training."""
        program = self.spec.program
        return [e.name for e in program.entries_for(self.spec.config) if e.name in program.visits]

    def _missing(self, y: np.ndarray) -> np.ndarray:
        """Rows without a label, or without one of several."""
        y = _table(y)
        return np.asarray((y < 0 if y.dtype.kind == "i" else np.isnan(y)).any(axis=1))

    def _valid(self, y: np.ndarray) -> np.ndarray:
        """Which labels a model could learn, in y's shape."""
        if self.classes:
            return (y >= 0) & (y < len(self.classes))
        return np.abs(y) <= self.spec.number.type(self.spec.label.max_abs)

    def _step(self, x: np.ndarray, y: np.ndarray) -> Steps:
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused
            x, y = x.astype(self.spec.number), y.astype(self._dtype)
        waiting, rows = len(self._waiting_x), len(x)
        all_x, all_y = np.concatenate([self._waiting_x, x]), np.concatenate([self._waiting_y, y])
        question, states = self.spec.program.forecasts(self.spec.config), np.zeros((rows, 0))
        if self.alarms is None:
            predictions, statuses = self.model.prequential(all_x, all_y, waiting, self.delay, question)
        else:
            predictions, states, statuses = self.model.prequential_alarms(all_x, all_y, waiting, self.delay, question)
        released, none = self._released(y), min(rows, self.delay - waiting)
        learnt = ~self._missing(released)
        self._score(predictions, released, all_x, all_y)
        if not self.spec.program.learns:
            learnt = np.ones(rows, bool)  # every prediction has a status
        else:
            self.labels_taken += int(learnt.sum())
            self._labels_since += int(learnt.sum())

        for status, count in zip(*np.unique(statuses[learnt], return_counts=True), strict=True):
            self.statuses[self.spec.program.status(status)] += int(count)
        if self.spec.program.learns:
            self._watch(statuses[learnt], all_x[: rows - none][learnt[none:]], released[learnt])
        steps = Steps(self.rows, y, predictions, statuses, learnt, states)
        self._follow(steps)
        self.rows += rows
        self.unlabelled += int(self._missing(y).sum())
        self.inputs_refused += int(self._missing(predictions).sum())
        keep = len(all_x) - min(len(all_x), self.delay)
        self._waiting_x, self._waiting_y = all_x[keep:], all_y[keep:]
        return steps

    def _follow(self, steps: Steps) -> np.ndarray:
        """Record the alarms of the next steps.  Returns for each row whether it is in alarm, (rows,)."""
        at = np.zeros(len(steps.statuses), bool)
        if self.alarms is not None:
            rows, learnt = np.arange(steps.first_row, steps.first_row + len(at)) - self.delay, steps.learnt
            at[learnt] = self.alarms.take(rows[learnt], steps.statuses[learnt], steps.states[learnt, 0])
        return at

    def _watch(self, statuses: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Count consecutive refusals, and remember the reason for the last one."""
        if not len(statuses):
            return
        taken = np.flatnonzero(statuses >= 0)
        borders = np.concatenate([[-1 - self.streak], taken, [len(statuses)]])
        self.longest_streak = max(self.longest_streak, int(np.diff(borders).max()) - 1)
        self.streak = int(borders[-1] - borders[-2]) - 1
        if self.streak:
            self._why = self._reason(self.spec.program.status(statuses[-1]).name, x[-1], y[-1])

    @property
    def waiting(self) -> int:
        """Labelled rows not learnt yet, because their delay is not over."""
        return int((~self._missing(self._waiting_y)).sum()) if self.spec.program.learns else 0

    @property
    def warning(self) -> str | None:
        """What to do about a model that keeps refusing, or is never trained; None if there is nothing to say."""
        if self.trains and not any(count for status, count in self.trainings.items() if status >= 0):
            if not self.train_every:
                return (
                    "nothing trained the model, and one that was never trained predicts 0; "
                    f"give {option('train_every')} N: on the "
                    f"device, call {self.spec.name}_train() after every N labels"
                )
            why = ", ".join(s.name.lower().replace("_", " ") for s, count in self.trainings.items() if count)
            return (
                f"no training was done ({why or 'there were no labels'}), and a model that was never trained predicts 0"
            )
        if self.streak <= ADVISE_AFTER:
            return None
        labelled = "" if self.spec.program.label_kind == "none" else "labelled "
        return (
            f"the model refused the last {self.streak:,} {labelled}samples: {self._why}; "
            f"on the device, {self.spec.name}_reset() starts afresh"
        )

    def _told(self) -> dict[str, Any]:
        """How many samples were learnt, refused and so on, as plain values."""
        vectors = any("n" in struct.fields for struct in self.spec.program.persistent)
        return {
            "inputs_refused": self.inputs_refused,
            "refused": sum(count for status, count in self.statuses.items() if status < 0),
            "refused_in_a_row": {"last": self.streak, "longest": self.longest_streak},
            "statuses": {status.name.lower(): count for status, count in self.statuses.items() if count},
            **({} if self.alarms is None else {"alarms": self.alarms.report(self.model.read("alarm")[0])}),
            **({"expansion_vectors": int(self.model.memory.field("n")[0])} if vectors else {}),
        }


class Simulation(_Run):
    """A model fed from a stream, as the device will be, and its errors.

    Row t is predicted (by a classifier: classified); then row t - delay is learnt.  So no label is used before it is
    known.
    A row that lacks one of its labels is only predicted.  Errors are counted after the first known label: before it all
    predictors answer 0, and a single row could decide the error of the whole stream.  The model is refreshed every
    ``refresh_every`` rows (0: never).  A model with a training is trained after every ``train_every`` labels (0:
    never).  A model that does not learn only predicts.

    Raises UserError for a model without labels, because it has no errors: see Monitoring.
    """

    def __init__(
        self, spec: Spec, delay: int = 0, refresh_every: int = 0, train_every: int = 0, forecasts: bool = False
    ) -> None:
        if spec.program.label_kind == "none":
            raise UserError(f"{spec.name} learns without labels, so that it has no errors to compare it by")
        super().__init__(spec, delay, refresh_every, train_every, forecasts)
        self.simple = Simple(spec, delay)
        # for each label: whether a value is known yet
        self._begun = np.zeros(self._shape[0] if self._shape else 1, bool)
        names = ("model", *self.simple.names)
        self.errors = Errors(names)
        self.each = [Errors(names) for _ in range(self._shape[0])] if self._shape else []  # of several labels, each's
        self.signs = Signs(spec, delay)
        self.confusion = np.zeros((len(self.classes), len(self.classes)), np.int64)  # rows: of class i, taken for j

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names, as in the data, or made up."""
        names = self.spec.label_columns
        return names or (tuple(f"label {i}" for i in range(self._shape[0])) if self._shape else ("the label",))

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Compare the answers of the model and of the simple predictors with the labels.

        The simple predictors learn the released labels.
        """
        waiting, truth = len(y) - len(asked), y[len(y) - len(asked) :]
        if self.classes:
            known = np.where(self._valid(released), released, -1)
            guesses = np.column_stack([asked, self.simple.step(x, y, waiting, _table(known))[:, :, 0]])
            scored = self._valid(truth) & (asked >= 0) & self._after_first(_table(known) >= 0)[:, 0]
            self.errors.add(np.where(scored[:, None], guesses != truth[:, None], np.nan))
            np.add.at(self.confusion, (truth[scored], asked[scored]), 1)
            self.signs.take_columns(x[waiting:].astype(np.float64), scored)
            return
        # (rows, labels)
        model, known, truth = (_table(a).astype(np.float64) for a in (asked, released, truth))
        known = np.where(_table(self._valid(released)), known, np.nan)
        truth = np.where(_table(self._valid(y[waiting:])) & self._after_first(~np.isnan(known)), truth, np.nan)
        simple = self.simple.step(x, y, waiting, known)
        errors = np.concatenate([model[:, None], simple], axis=1) - truth[:, None]
        self.errors.add(errors)
        for i, one in enumerate(self.each):
            one.add(errors[:, :, i])
        self.signs.take(x[waiting:], truth, errors[:, 0], simple[:, self.simple.names.index("running mean")])

    def _after_first(self, known: np.ndarray) -> np.ndarray:
        """For each of the next rows: whether a label was known before it, (rows, labels).

        known: whether a label is released after the row.
        """
        begun = np.maximum.accumulate(np.concatenate([self._begun[None], known]))
        self._begun = begun[-1]
        return np.asarray(begun[:-1])

    def _reason(self, status: str, x: np.ndarray, y: Any) -> str:
        if status != "REFUSED_LABEL":
            return super()._reason(status, x, y)
        i = int(np.flatnonzero(~np.atleast_1d(self._valid(y)))[0])
        value = np.atleast_1d(y)[i]
        if self.classes:
            return f"{self.labels[0]} is {value}; classes are numbered from 0 to {len(self.classes) - 1}"
        limit = self.spec.label.max_abs
        return f"{self.labels[i]} is {value:g} and [label] max_abs is {limit:g}; raise that limit or scale the column"

    def summary(self, errors: Errors, first: int = 0) -> dict[str, Any]:
        """Errors from row ``first`` on: mae and rmse of each predictor, or of classes error_rate."""
        found = errors.summary(first)
        if self.classes:
            found = {key: found[key] for key in ("first_row", "scored")} | {"error_rate": found["mae"]}
        return found

    def _verdict(self) -> dict[str, Any] | None:
        found = self.summary(self.errors, self.rows // 2)
        errors = dict(found["error_rate" if self.classes else "rmse"])
        return None if found["scored"] < FEW else verdict(errors.pop("model"), errors)

    def _reads_leave_one_out(self) -> bool:
        program = self.spec.program
        exists = any(e.name == "leave_one_out" for e in program.entries_for(self.spec.config))
        return exists and "leave_one_out" in program.readings and bool(self.train_every)

    def leave_one_out(self) -> dict[str, Any]:
        """The result of NAME_leave_one_out for the last training: its status, the mean squared error and, for classes,
        the error rate; None for a value that it does not give.  samples: number of visited samples, for a model with
        visits.
        """
        values, status = self.model.read("leave_one_out")
        known = [float(v) if status >= 0 else None for v in values]
        return {
            "status": self.spec.program.status(status).name.lower(),
            "mse": known[0],
            **({"error_rate": known[1]} if self.classes else {}),
            **({"samples": self.visited} if self.visits else {}),
        }

    def report(self, trial: Trial | None = None) -> dict[str, Any]:
        """The whole run, as plain values.

        all, second_half: see ``summary``; for several labels these are means, and ``labels`` has the errors of each
        label.
        confusion: how many rows of each true class (a row of the table) were classified as each class (a column).
        statuses: the results of updates or, for a model that does not learn, of predictions.
        advice: see ``advice``; trial: the function that tries a change.
        verdict: see ``verdict``, for the second half; None if too few rows were scored.
        trainings, leave_one_out: for a model that is trained.  alarms: see ``Alarms``, for a model that raises alarms.
        """
        parts = {"all": 0, "second_half": self.rows // 2}
        return {
            "name": self.spec.name,
            "rule": self.spec.learning.rule,
            "simple": self.simple.names,
            "rows": self.rows,
            "delay": self.delay,
            "labelled": self.rows - self.unlabelled,
            "unlabelled": self.unlabelled,
            "waiting": self.waiting,
            **self._told(),
            **(
                {"trainings": {s.name.lower(): count for s, count in self.trainings.items() if count}}
                if self.trains
                else {}
            ),
            **({"leave_one_out": self.leave_one_out()} if self._reads_leave_one_out() else {}),
            **{part: self.summary(self.errors, first) for part, first in parts.items()},
            **(
                {
                    "labels": {
                        name: {part: self.summary(errors, first) for part, first in parts.items()}
                        for name, errors in zip(self.labels, self.each, strict=True)
                    }
                }
                if self.each
                else {}
            ),
            **({"classes": list(self.classes), "confusion": self.confusion.tolist()} if self.classes else {}),
            "advice": advice(self, trial),
            "verdict": self._verdict(),
            "warning": self.warning,
        }


def with_last_label(batches: Iterable[Batch], delay: int) -> Iterator[Batch]:
    """The batches with the latest known label as a further input of each row (with several labels: several inputs).

    The input is NaN before the first known label.  A model refuses NaN, as a device without a label could not be asked.
    """
    waiting: np.ndarray | None = None
    last = np.zeros(0)
    for batch in batches:
        y = _table(batch.y).astype(np.float64)
        if waiting is None:
            waiting, last = np.full((delay + 1, y.shape[1]), np.nan), np.full(y.shape[1], np.nan)
        past = np.concatenate([waiting, y])
        known = past[: len(y)]
        columns = [latest(last[i], known[:, i], ~np.isnan(known[:, i]))[1:] for i in range(y.shape[1])]
        waiting, last = past[len(y) :], np.array([column[-1] for column in columns])
        yield Batch(np.column_stack([batch.x, *columns]), batch.y, batch.position)


class Course:
    """A model's answers and alarms over a stream of any length, in constant memory.

    The table has a row for each of at most ``most`` windows of equal length; at first a window is one row of the
    stream.
    Columns: first row, rows, rows answered, rows in alarm, highest level, last threshold; and for each value of the
    answer, the sum and the largest.
    """

    def __init__(self, names: Sequence[str], most: int = MOMENTS) -> None:
        self.names, self.most, self.spacing, self.rows = tuple(names), most, 1, 0
        self.table = np.zeros((0, 6 + 2 * len(self.names)))

    def add(self, values: np.ndarray, alarmed: np.ndarray, states: np.ndarray) -> None:
        """Add the next rows.

        values: the answers, (rows, values), NaN where refused.  alarmed: which rows are in alarm, (rows,).  states:
        level and threshold after each row, (rows, 2), NaN where there are none.
        """
        answered = np.isfinite(values).all(axis=1)
        columns = [np.arange(self.rows, self.rows + len(values)), np.ones(len(values)), answered, alarmed, states]
        some = answered[:, None]
        new = np.column_stack([*columns, np.where(some, values, 0.0), np.where(some, values, -np.inf)])
        self.rows += len(values)
        self.table = np.concatenate([self.table, new])
        self.table = self._in_windows(self.spacing)
        while len(self.table) > self.most:
            self.spacing *= 2
            self.table = self._in_windows(self.spacing)

    def _in_windows(self, spacing: int) -> np.ndarray:
        """The table in longer windows, which begin at multiples of their length."""
        if not len(self.table):
            return self.table
        which = self.table[:, 0] // spacing
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        ends = np.append(starts[1:], len(which)) - 1
        sums, largest = (f.reduceat(self.table, starts, axis=0) for f in (np.add, np.fmax))
        k = len(self.names)
        found = np.concatenate([sums[:, :4], largest[:, 4:5], self.table[ends, 5:6], sums[:, 6 : 6 + k]], axis=1)
        found[:, 0] = self.table[starts, 0]
        return np.concatenate([found, largest[:, 6 + k :]], axis=1)

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Mean and largest of each value from row ``first`` on, and the fraction of the rows in alarm.

        ``first_row`` is the start of the window that contains ``first``.  A number is None if there was no answer.
        """
        start = max(0, int(np.searchsorted(self.table[:, 0], first, side="right")) - 1)
        part, k = self.table[start:], len(self.names)
        rows, answered, alarmed = part[:, 1:4].sum(axis=0)

        def each(values: np.ndarray) -> dict[str, float | None]:
            return {name: float(value) if answered else None for name, value in zip(self.names, values, strict=True)}

        return {
            "first_row": int(part[0, 0]) if len(part) else 0,
            "answered": int(answered),
            "mean": each(part[:, 6 : 6 + k].sum(axis=0) / max(answered, 1)),
            "largest": each(part[:, 6 + k :].max(axis=0, initial=-np.inf)),
            "in_alarm": float(alarmed / rows) if rows else None,
        }

    def curves(self, windows: int = 400) -> dict[str, np.ndarray]:
        """Curves over up to ``windows`` windows: ``row`` (the windows' middles), ``level``, ``threshold``, ``alarm``
        (whether a window has an alarm), and the mean and the largest of each value, (windows, values); NaN where there
        was no answer.
        """
        spacing = self.spacing
        while len(self.table) * self.spacing > windows * spacing:
            spacing *= 2
        table, k = self._in_windows(spacing), len(self.names)
        answered = table[:, 2:3] > 0
        return {
            "row": table[:, 0] + (table[:, 1] - 1) / 2,
            "alarm": table[:, 3] > 0,
            "level": table[:, 4],
            "threshold": table[:, 5],
            "mean": np.where(answered, table[:, 6 : 6 + k] / np.maximum(table[:, 2:3], 1), np.nan),
            "largest": np.where(answered, table[:, 6 + k :], np.nan),
        }


class Monitoring(_Run):
    """A model that learns without labels, fed from a stream as the device will be.

    Each row is asked the model's main question, then learnt.  Every ``refresh_every`` rows (0: never) the model is
    refreshed.  Raises UserError for a model with labels: see Simulation.
    """

    def __init__(self, spec: Spec, refresh_every: int = 0) -> None:
        if spec.program.label_kind != "none":
            raise UserError(f"{spec.name} learns from labels; simulate it with them")
        super().__init__(spec, refresh_every=refresh_every)
        self.course = Course(answer_names(spec))
        self._answers = np.zeros((0, len(self.course.names)))
        self.simple = Distances(spec.dim)
        self.seen = SeenAlarms(self.simple.names)
        self._distances = np.zeros((0, len(self.simple.names)))

    def _score(self, asked: np.ndarray, released: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        self._answers = np.where(self._missing(asked)[:, None], np.nan, _table(asked).astype(np.float64))
        if self.alarms is not None:
            self._distances = self.simple.step(np.where(self._missing(asked)[:, None], np.nan, x))

    def _follow(self, steps: Steps) -> np.ndarray:
        alarmed = super()._follow(steps)
        states = np.full((len(alarmed), 2), np.nan)
        if self.alarms is not None:
            states = steps.states
            warmup = self.spec.novelty.warmup if self.spec.has("novelty", "warmup") else 0
            begun = max(0, warmup - self.rows)
            taken = np.flatnonzero(steps.statuses >= 0)
            taken = taken[taken >= begun]
            self.seen.take(self._distances[taken], alarmed[taken])
        self.course.add(self._answers, alarmed, states)
        return alarmed

    def report(self) -> dict[str, Any]:
        """The whole run, as plain values.

        question: the question that each row was asked.  all, second_half: see ``Course.summary``.
        statuses: the results of updates or, for a model that does not learn, of answers.
        alarms: see ``Alarms``, for a model that raises alarms.  ``judged``: number of samples after the warm-up.
        ``simple``: for each simple distance, the fraction of the alarms that it would have raised as well with as many
        rows in alarm, and its bytes.  ``seen_by_chance``: the fraction for rows drawn at random.
        """
        parts = {"all": self.course.summary(), "second_half": self.course.summary(self.rows // 2)}
        if self.alarms is None:
            parts = {name: {k: v for k, v in part.items() if k != "in_alarm"} for name, part in parts.items()}
        told = self._told()
        if self.alarms is not None:
            sizes = simple_bytes(self.spec)
            seen = self.seen.report()
            novelty = self.spec.novelty if self.spec.has("novelty", "false_alarm_rate") else None
            told["alarms"] |= {
                "false_alarm_rate": novelty.false_alarm_rate
                if novelty is not None and novelty.threshold is None
                else None,
                "judged": int(self.seen.counts[0, 0].sum()),
                "seen_by_chance": seen.pop("chance"),
                "simple": {name: {"seen": part, "bytes": sizes[name]} for name, part in seen.items()},
            }
        return {
            "name": self.spec.name,
            "rows": self.rows,
            **told,
            "question": self.spec.program.asks,
            **parts,
            "warning": self.warning,
        }


def answer_names(spec: Spec) -> tuple[str, ...]:
    """A name for each value that the main question's answer has."""
    asks = spec.program.asks
    (count,) = spec.program.questions[asks].shape(spec.capacities)
    return (asks,) if count == 1 else tuple(f"{asks}{i}" for i in range(count))


def prediction_header(spec: Spec) -> str:
    """The first line of a CSV file of predictions; without labels, of the main question's answers."""
    state = ["level", "threshold"] if spec.program.raises_alarms(spec.config) else []
    if spec.program.label_kind == "none":
        return _csv([["row", *answer_names(spec), *state, "status"]])
    names = [""] if spec.program.label_kind != "reals" else [f" {name}" for name in spec.label_columns]
    return _csv([["row", *(f"prediction{n}" for n in names), *(f"label{n}" for n in names), *state, "status"]])


def prediction_lines(spec: Spec, steps: Steps) -> str:
    """The steps as lines of CSV, with the columns of ``prediction_header``.  A cell is empty if there is no value."""
    classes = spec.label.classes

    def texts(values: np.ndarray) -> list[list[str]]:
        if classes is not None:
            return [[classes[i] if 0 <= i < len(classes) else "" for i in values.tolist()]]
        values = _table(values)
        shown = values.astype(str)
        shown[values < 0 if values.dtype.kind == "i" else np.isnan(values)] = ""
        return shown.T.tolist()

    names = {int(value): value.name.lower() for value in spec.program.status}
    statuses = [names[s] if learnt else "" for s, learnt in zip(steps.statuses.tolist(), steps.learnt, strict=True)]
    rows = range(steps.first_row, steps.first_row + len(statuses))
    states = _table(steps.states).astype(str).T.tolist()
    return _csv(zip(rows, *texts(steps.predictions), *texts(steps.labels), *states, statuses, strict=True))


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
