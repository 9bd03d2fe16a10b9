"""Streams of samples: CSV files larger than memory, a model run over one, and its errors in constant memory."""

from __future__ import annotations

import contextlib
import csv
import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from pykernel.errors import UserError
from pykernel.host import HostModel
from pykernel.spec import Spec

BATCH = 4096
"""Rows read and run at a time."""
LINE_LIMIT = 2**20
"""Most bytes in a line."""
DELAY_LIMIT = 10**6
"""Most rows that are kept until their labels arrive."""
MOMENTS = 2**14
"""Most moments of a stream at which sums of errors are kept."""
PATIENCE = 100
"""So many labelled samples refused in a row, and the report says what to do about it."""

# --------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Batch:
    """Consecutive samples: x (rows, D) and y (rows,), NaN where there is no label yet, and the bytes read so far."""

    x: np.ndarray
    y: np.ndarray
    position: int


@dataclass(frozen=True)
class Cells:
    """Consecutive rows of a file: the chosen cells of each, the lines where they end, and the bytes read so far."""

    rows: list[tuple[str, ...]]
    lines: list[int]
    position: int


def read_samples(file: BinaryIO, name: str, inputs: Sequence[str], label: str, rows: int = BATCH) -> Iterator[Batch]:
    """Batches of at most ``rows`` samples from comma-separated text with a header line.

    Columns are found by name, others are skipped, blank lines too.  ``nan`` and ``inf`` are numbers; an empty label
    cell is NaN.  ``name`` stands for the file in errors.  Raises UserError, one sentence, with the line that is wrong.
    """
    columns = [*inputs, label]
    for cells in read_cells(file, name, lambda header: columns, ",".join(columns), rows):
        table = _numbers(cells.rows, cells.lines, name, columns)
        yield Batch(np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), cells.position)


def read_cells(
    file: BinaryIO, name: str, choose: Callable[[list[str]], Sequence[str]], example: str, rows: int = BATCH
) -> Iterator[Cells]:
    """Batches of at most ``rows`` rows, as text, of those columns that ``choose`` (two or more) takes of the header.

    example: a header line, to be shown where there is none.
    """
    lines = _Lines(file, name)
    reader = csv.reader(lines, strict=True)
    records = _records(reader, name)
    header = next(records, None)
    if header is None:
        raise UserError(f"{name}: is empty; its first line must name the columns, such as {example[:80]}")
    names = [cell.strip() for cell in header]
    pick = itemgetter(*_positions(names, name, choose(names)))
    cells: list[tuple[str, ...]] = []
    numbers: list[int] = []
    empty = True
    for record in records:
        if len(record) != len(header):
            raise UserError(
                f"{name}, line {reader.line_num}: has {len(record)} cells, but the header names {len(header)} columns; "
                "give each row a cell for each column, and quote cells that hold a comma"
            )
        cells.append(pick(record))
        numbers.append(reader.line_num)
        if len(cells) == rows:
            yield Cells(cells, numbers, lines.position)
            cells, numbers, empty = [], [], False
    if cells:
        yield Cells(cells, numbers, lines.position)
    elif empty:
        raise UserError(f"{name}: holds a header but no rows; give it one row for each sample")


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


def _records(reader: Any, name: str) -> Iterator[list[str]]:
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
        raise UserError(f"{name}, line {reader.line_num}: {what}") from None


def _positions(header: Sequence[str], name: str, wanted: Sequence[str]) -> list[int]:
    """Where each wanted column is."""
    for column in wanted:
        if header.count(column) > 1:
            raise UserError(
                f"{name}, line 1: names the column {_shown(column)} {header.count(column)} times; rename all but one"
            )
        if column not in header:
            raise UserError(f"{name}, line 1: names no column {_shown(column)}; {_remedy(header, column)}")
    return [header.index(column) for column in wanted]


def _remedy(header: Sequence[str], column: str) -> str:
    near = difflib.get_close_matches(column, header, 1)
    if near:
        return f"did you mean {_shown(near[0])}?"
    if all(map(_is_number, header)):
        return "it holds numbers; put a line with the columns' names before it"
    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            return f"its cells are separated by {called}; separate them by commas"
    names = ", ".join(map(_shown, header[:12])) + (", ..." if len(header) > 12 else "")
    return f"it names {names}; change the spec or the header"


def _numbers(cells: list[tuple[str, ...]], lines: list[int], name: str, columns: Sequence[str]) -> np.ndarray:
    """The cells as (rows, columns), the last column the label."""
    width = len(columns)
    try:
        return np.array(cells, np.float64)
    except ValueError:
        pass
    # an empty label, or an error: find it
    table = np.empty((len(cells), width))
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            if j == width - 1 and not cell.strip():
                table[i, j] = np.nan
            elif _is_number(cell):
                table[i, j] = float(cell)
            else:
                what, remedy = f"is {_shown(cell)}, not a number", "correct the cell, or remove the row"
                if not cell.strip():
                    what, remedy = "is empty", "write nan for a missing value, and the model refuses that sample"
                elif _is_number(cell.replace(",", ".")):
                    remedy = "write a point before the decimals"
                raise UserError(f"{name}, line {lines[i]}: column {_shown(columns[j])} {what}; {remedy}")
    return table


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    text = repr(text)
    return text if len(text) <= 60 else text[:57] + "..."


# --------------------------------------------------------------------------------------------------------- writing


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place at ``path`` only when the block ends well.

    A link at ``path``, a folder or a device is refused.
    """
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "a device"
        raise UserError(f"{path}: is {kind}; give the path of a file to write")
    part = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        file = part.open("xb")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------------------- errors


class Errors:
    """Errors of several predictors over a stream of any length, in constant memory.

    Running sums are kept at up to ``moments`` moments, evenly spaced; a later part of the stream, or a window, is the
    difference of two.  A row counts only if every predictor has an error there.
    """

    def __init__(self, names: Sequence[str], moments: int = MOMENTS) -> None:
        self.names, self.moments, self.spacing = tuple(names), moments, 1
        # row, rows that count, sums of |e|, sums of e^2
        self.sums = np.zeros((1, 2 + 2 * len(self.names)))
        self.total = self.sums[0]

    @property
    def rows(self) -> int:
        return int(self.total[0])

    def add(self, errors: np.ndarray) -> None:
        """Take the errors of the next rows, (rows, predictors); NaN where there is none."""
        if not len(errors):
            return
        counts = np.isfinite(errors).all(axis=1)
        e = np.where(counts[:, None], errors, 0.0)
        steps = np.column_stack([np.ones(len(e)), counts, np.abs(e), e * e])
        sums = self.total + np.cumsum(steps, axis=0)
        self.total = sums[-1]
        self.sums = np.concatenate([self.sums, sums[sums[:, 0] % self.spacing == 0]])
        while len(self.sums) > self.moments:
            self.spacing *= 2
            self.sums = self.sums[self.sums[:, 0] % self.spacing == 0]

    def summary(self, first: int = 0) -> dict[str, Any]:
        """Mean absolute error (mae) and root mean square error (rmse) of each predictor from row ``first`` on.

        The nearest moment kept, at or before ``first``, is told as ``first_row``.  None if no row counts.
        """
        start = self.sums[np.searchsorted(self.sums[:, 0], first, side="right") - 1]
        k, part = len(self.names), self.total - start
        n = part[1]

        def each(sums: np.ndarray) -> dict[str, float | None]:
            return {name: float(s) if n else None for name, s in zip(self.names, sums, strict=True)}

        n_or_1 = max(n, 1)
        return {
            "first_row": int(start[0]),
            "scored": int(n),
            "mae": each(part[2 : 2 + k] / n_or_1),
            "rmse": each(np.sqrt(part[2 + k :] / n_or_1)),
        }

    def curve(self, windows: int = 60) -> tuple[np.ndarray, np.ndarray]:
        """Mean absolute errors in up to ``windows`` equal windows: middles (rows), errors (windows, predictors)."""
        marks = np.unique(np.linspace(0, len(self.sums) - 1, windows + 1).astype(int))
        parts = np.diff(self.sums[marks], axis=0)
        middles = self.sums[marks[:-1], 0] + parts[:, 0] / 2
        with np.errstate(invalid="ignore"):
            return middles, parts[:, 2 : 2 + len(self.names)] / parts[:, 1:2]


class Trivial:
    """What every model has to beat: the last known label and the mean of those known.  0 before the first."""

    def __init__(self) -> None:
        self.last = self.sum = 0.0
        self.count = 0

    def step(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then take the label that becomes known after it (NaN for none)."""
        known = ~np.isnan(released)
        values = np.concatenate([[self.last], released])
        latest = np.maximum.accumulate(np.concatenate([[0], np.where(known, np.arange(1, len(values)), 0)]))
        last = values[latest]
        sums = self.sum + np.concatenate([[0.0], np.cumsum(np.where(known, released, 0.0))])
        counts = self.count + np.concatenate([[0], np.cumsum(known)])
        self.last, self.sum, self.count = float(last[-1]), float(sums[-1]), int(counts[-1])
        return last[:-1], sums[:-1] / np.maximum(counts[:-1], 1)


# ------------------------------------------------------------------------------------------------------ simulation


@dataclass(frozen=True)
class Steps:
    """What a few steps of the device's loop did: predict row t, then learn row t - delay.

    predictions: NaN where the input was refused.  statuses: of the learning; ``learnt`` says where there was any.
    """

    first_row: int
    labels: np.ndarray
    predictions: np.ndarray
    statuses: np.ndarray
    learnt: np.ndarray


class Simulation:
    """A model fed from a stream, as the device will be.

    Row t is predicted, then row t - delay is learnt: what is not known yet is never used.  Every ``refresh_every``
    rows (0: never) the model is refreshed.
    """

    def __init__(self, spec: Spec, delay: int = 0, refresh_every: int = 0) -> None:
        if not 0 <= delay <= DELAY_LIMIT:
            raise UserError(f"delay is {delay}; it must be from 0 to {DELAY_LIMIT:,} rows")
        if refresh_every < 0:
            raise UserError(f"refresh-every is {refresh_every}; it must be a number of rows, or 0 for never")
        if refresh_every and not any(e.name == "refresh" for e in spec.program.entries_for(spec.config)):
            raise UserError(f"{spec.reduction.technique} has nothing to refresh; leave refresh-every out, or use mklms")
        self.spec, self.delay, self.refresh_every = spec, delay, refresh_every
        self.model = HostModel(spec)
        self.errors = Errors(("model", "last label", "running mean"))
        self.rows = self.unlabelled = self.inputs_refused = 0
        self.statuses = {status: 0 for status in spec.program.status}
        self.streak = self.longest_streak = 0  # labelled samples refused in a row
        self._why = ""
        self._trivial = Trivial()
        self._waiting_x = np.zeros((0, spec.dim), spec.real.dtype)
        self._waiting_y = np.zeros(0, spec.real.dtype)

    def run(self, x: np.ndarray, y: np.ndarray) -> Iterator[Steps]:
        """Take the next samples: x (rows, D), y (rows,), NaN where there is no label yet."""
        start = 0
        while start < len(x):
            end = len(x)
            if self.refresh_every:
                end = min(end, start + self.refresh_every - self.rows % self.refresh_every)
            yield self._step(x[start:end], y[start:end])
            if self.refresh_every and self.rows % self.refresh_every == 0:
                self.model.refresh()
            start = end

    def _step(self, x: np.ndarray, y: np.ndarray) -> Steps:
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused
            x, y = x.astype(self.spec.real.dtype), y.astype(self.spec.real.dtype)
        waiting, rows = len(self._waiting_x), len(x)
        all_x, all_y = np.concatenate([self._waiting_x, x]), np.concatenate([self._waiting_y, y])
        predictions, statuses = self.model.run(all_x, all_y, first=waiting, delay=self.delay)
        # the label that is learnt in each step; none in the first ``delay`` of all
        none = min(rows, self.delay - waiting)
        released = np.concatenate([np.full(none, np.nan, y.dtype), all_y[: rows - none]])
        learnt = ~np.isnan(released)
        valid = np.abs(all_y) <= self.spec.config.label_limit
        usable = np.concatenate([np.full(none, False), valid[: rows - none]])

        last, mean = self._trivial.step(np.where(usable, released, np.nan).astype(np.float64))
        truth = np.where(valid[waiting:], y, np.nan).astype(np.float64)
        self.errors.add(np.column_stack([predictions, last, mean]) - truth[:, None])

        for status, count in zip(*np.unique(statuses[learnt], return_counts=True), strict=True):
            self.statuses[self.spec.program.status(status)] += int(count)
        self._watch(statuses[learnt], all_x[: rows - none][learnt[none:]], released[learnt])
        steps = Steps(self.rows, y, predictions, statuses, learnt)
        self.rows += rows
        self.unlabelled += int(np.isnan(y).sum())
        self.inputs_refused += int(np.isnan(predictions).sum())
        keep = len(all_x) - min(len(all_x), self.delay)
        self._waiting_x, self._waiting_y = all_x[keep:], all_y[keep:]
        return steps

    def _watch(self, statuses: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        """Count refusals in a row, and remember the reason for the last of them."""
        if not len(statuses):
            return
        taken = np.flatnonzero(statuses >= 0)
        borders = np.concatenate([[-1 - self.streak], taken, [len(statuses)]])
        self.longest_streak = max(self.longest_streak, int(np.diff(borders).max()) - 1)
        self.streak = int(borders[-1] - borders[-2]) - 1
        if self.streak:
            self._why = self._reason(self.spec.program.status(statuses[-1]).name, x[-1], float(y[-1]))

    def _reason(self, status: str, x: np.ndarray, y: float) -> str:
        spec = self.spec
        if status == "REFUSED_INPUT":
            j = int(np.flatnonzero(~(np.abs(x) <= spec.config.input_limit))[0])
            column = spec.input.columns[j] if spec.input.columns else f"input {j}"
            return (
                f"{column} is {x[j]:g} and [input] limit is {spec.input.limit:g}; raise that limit or scale the column"
            )
        if status == "REFUSED_LABEL":
            column = spec.label.column or "the label"
            return f"{column} is {y:g} and [label] limit is {spec.label.limit:g}; raise that limit or scale the column"
        return "learning diverges; lower [learning] eta, or raise [label] limit if the labels are larger than it"

    @property
    def waiting(self) -> int:
        """Labelled rows not learnt yet, because their delay is not over."""
        return int((~np.isnan(self._waiting_y)).sum())

    @property
    def warning(self) -> str | None:
        """What to do about a model that keeps refusing; None if it does not."""
        if self.streak <= PATIENCE:
            return None
        return (
            f"the model refused the last {self.streak:,} labelled samples: {self._why}; "
            f"on the device, {self.spec.name}_reset() starts afresh"
        )

    def report(self) -> dict[str, Any]:
        """The whole run, as plain values."""
        return {
            "name": self.spec.name,
            "rows": self.rows,
            "delay": self.delay,
            "labelled": self.rows - self.unlabelled,
            "unlabelled": self.unlabelled,
            "waiting": self.waiting,
            "inputs_refused": self.inputs_refused,
            "refused": sum(count for status, count in self.statuses.items() if status < 0),
            "refused_in_a_row": {"last": self.streak, "longest": self.longest_streak},
            "statuses": {status.name.lower(): count for status, count in self.statuses.items() if count},
            "expansion_vectors": int(self.model.memory.field("n")[0]),
            "all": self.errors.summary(),
            "second_half": self.errors.summary(self.rows // 2),
            "warning": self.warning,
        }


HEADER = "row,prediction,label,status\n"


def prediction_lines(steps: Steps, status: Any) -> str:
    """The steps as lines of CSV under HEADER; a cell is empty where there is nothing to say."""
    predictions, labels = steps.predictions.astype(str), steps.labels.astype(str)
    predictions[np.isnan(steps.predictions)] = ""
    labels[np.isnan(steps.labels)] = ""
    names = {int(value): value.name.lower() for value in status}
    statuses = [names[s] if learnt else "" for s, learnt in zip(steps.statuses.tolist(), steps.learnt, strict=True)]
    rows = range(steps.first_row, steps.first_row + len(predictions))
    return "".join(f"{t},{p},{y},{s}\n" for t, p, y, s in zip(rows, predictions, labels, statuses, strict=True))
