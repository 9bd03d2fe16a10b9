"""Rows of Parquet and Arrow, read by pyarrow."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from pykernel.errors import UserError
from pykernel.files import open_plain
from pykernel.rows.arrays import CACHE_BYTES, Part, Rows, checked_positions, finite, parts, positions_of

BATCH_ROWS = 2**16
"""Number of rows that are decoded (Parquet) or copied (Arrow) at a time."""


class _Parts(ABC):
    """Rows that are stored in consecutive parts: row groups of Parquet, or record batches of Arrow.

    starts: array (parts + 1,) of the position of each part's first row, followed by the number of all rows.  kind:
    float32 if it can hold every value of the columns' types, else float64.
    """

    def __init__(self, name: str, columns: list[str], lengths: Sequence[int], narrow: bool) -> None:
        self.name, self.columns, self.dim = name, columns, len(columns)
        self.kind = np.dtype(np.float32 if narrow else np.float64)
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, indices: Any) -> np.ndarray:
        indices = checked_positions(indices, len(self))
        out = np.empty((len(indices), self.dim))
        owner = self._owner(indices)
        order = np.argsort(owner, kind="stable")
        ends = np.flatnonzero(np.diff(owner[order], append=-1)) + 1
        for some in np.split(order, ends[:-1]) if len(order) else []:
            part = int(owner[some[0]])
            self._gather(part, indices[some] - self.starts[part], out, some)
        return finite(out, indices, self.name, self._tell)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield blocks of ``size`` rows, no matter where the parts end."""
        borders = parts(len(self), size)
        block, filled = np.empty((0, self.dim)), 0
        start = 0
        for piece in itertools.chain.from_iterable(map(self._read, range(len(self.starts) - 1))):
            done = 0
            while done < len(piece):
                if filled == len(block):
                    start, end = next(borders)
                    block, filled = np.empty((end - start, self.dim)), 0
                count = min(len(block) - filled, len(piece) - done)
                block[filled : filled + count] = piece[done : done + count]
                filled, done = filled + count, done + count
                if filled == len(block):
                    yield start, finite(block, start, self.name, self._tell)

    def _owner(self, rows: Any) -> Any:
        """Return the index of the part that holds a row; for an array of rows, an array of indices."""
        return np.searchsorted(self.starts, rows, "right") - 1

    def _tell(self, row: int, j: int) -> str:
        """Describe a cell that is not a finite number."""
        part = int(self._owner(row))
        value = self._cell(part, row - int(self.starts[part]), j)
        return f"column {self.columns[j]!r} is {'null' if value is None else value}"

    @abstractmethod
    def _gather(self, part: int, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Write the rows ``rows`` of a part to the positions ``places`` of ``out``."""

    @abstractmethod
    def _read(self, part: int) -> Iterator[np.ndarray]:
        """Yield a part's rows in order, as arrays (k, D) of at most BATCH_ROWS rows."""

    @abstractmethod
    def _cell(self, part: int, row: int, j: int) -> Any:
        """Return a cell's value, or None for null."""


class ParquetRows(_Parts):
    """Rows of Parquet files, one file after the other.  The most recently used row groups are kept in decoded form, up to
    ``cache`` bytes.

    ``take`` and ``blocks`` need memory for BATCH_ROWS rows and a read buffer for each column.  ``take`` also needs
    memory for the cache.  Numbers are kept as float32 if float32 can hold every value of the columns' types.
    """

    def __init__(
        self,
        files: Sequence[str],
        columns: Sequence[str | int] | None = None,
        name: str = "the data",
        cache: int = CACHE_BYTES,
    ) -> None:
        self.files, self.cache = list(files), cache
        names: list[str] = []
        lengths: list[int] = []
        self._groups: list[tuple[int, int]] = []  # (file, row group)
        narrow = True
        for number, file in enumerate(self.files):
            with _opened(file) as opened:
                if number == 0:
                    names = _named(opened.schema_arrow, columns, file)
                narrow &= _need_numbers(opened.schema_arrow, names, file)
                for group in range(opened.metadata.num_row_groups):
                    lengths.append(opened.metadata.row_group(group).num_rows)
                    self._groups.append((number, group))
        super().__init__(name, names, lengths, narrow)
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._kept_bytes = 0
        self.decoded = 0
        """Number of rows decoded so far, by ``take`` and ``blocks``."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetRows, (self.files, self.columns, self.name, self.cache)

    def take(self, indices: Any) -> np.ndarray:
        with self._lock:
            return super().take(indices)

    def _gather(self, part: int, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        count = int(self.starts[part + 1] - self.starts[part])
        size = count * self.dim * self.kind.itemsize
        if size > self.cache:
            self._scatter(part, rows, out, places)
            return
        kept = self._kept.get(part)
        if kept is None:
            while self._kept_bytes + size > self.cache:
                self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
            kept, every = np.empty((count, self.dim), self.kind), np.arange(count)
            self._scatter(part, every, kept, every)
            self._kept[part] = kept
            self._kept_bytes += size
        self._kept.move_to_end(part)
        out[places] = kept[rows]

    def _scatter(self, part: int, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        """Decode a row group, and write its rows ``rows`` to the positions ``places`` of ``out``."""
        at = 0
        for piece in self._read(part):
            here = (rows >= at) & (rows < at + len(piece))
            out[places[here]] = piece[rows[here] - at]
            at += len(piece)

    def _read(self, part: int) -> Iterator[np.ndarray]:
        number, group = self._groups[part]
        with _opened(self.files[number]) as opened, _as_user_errors(self.files[number]):
            # read each column's pages as they are needed, not all at once
            for batch in opened.iter_batches(BATCH_ROWS, [group], self.columns, use_threads=False):
                piece = np.empty((batch.num_rows, self.dim), self.kind)
                for j, column in enumerate(self.columns):
                    piece[:, j] = _numbers(batch.column(column))
                self.decoded += batch.num_rows
                yield piece

    def _cell(self, part: int, row: int, j: int) -> Any:
        number, group = self._groups[part]
        with _opened(self.files[number]) as opened, _as_user_errors(self.files[number]):
            return opened.read_row_group(group, [self.columns[j]]).column(0)[row].as_py()

    def _tell(self, row: int, j: int) -> str:
        """Describe a cell that is not a finite number, and name its file if there are several."""
        number = self._groups[int(self._owner(row))][0]
        first = next(i for i, (each, _) in enumerate(self._groups) if each == number)
        where = f" (row {row - int(self.starts[first]):,} of {self.files[number]})" if len(self.files) > 1 else ""
        return super()._tell(row, j) + where


class ArrowRows(_Parts):
    """Rows of an uncompressed Arrow IPC file, which is memory-mapped, or of a pyarrow Table in memory.

    ``take`` costs O(k log k + k D), and reads the pages that hold the rows.  Boolean columns and columns with nulls are
    copied as a whole for each ``take``.
    """

    def __init__(self, source: Any, columns: Sequence[str | int] | None = None, name: str = "the data") -> None:
        self.source = source
        if isinstance(source, Path):
            batches, schema = _mapped_batches(source)
        else:
            schema = source.schema
            batches = [source] if isinstance(source, pyarrow.RecordBatch) else source.to_batches()
        names = _named(schema, columns, name)
        narrow = _need_numbers(schema, names, name)
        self._batches = [batch.select(names) for batch in batches if batch.num_rows]
        super().__init__(name, names, [batch.num_rows for batch in self._batches], narrow)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrowRows, (self.source, self.columns, self.name)

    def _gather(self, part: int, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        for j, column in enumerate(self._columns_of(part)):
            out[places, j] = column[rows]

    def _read(self, part: int) -> Iterator[np.ndarray]:
        columns = self._columns_of(part)
        for start in range(0, self._batches[part].num_rows, BATCH_ROWS):
            yield np.column_stack([column[start : start + BATCH_ROWS] for column in columns])

    def _columns_of(self, part: int) -> list[np.ndarray]:
        return list(map(_numbers, self._batches[part].columns))

    def _cell(self, part: int, row: int, j: int) -> Any:
        return self._batches[part].column(j)[row].as_py()


def arrow_rows(x: Any, columns: Sequence[str | int] | None) -> Rows:
    """Return the rows of a pyarrow Table or RecordBatch."""
    if not isinstance(x, (pyarrow.Table, pyarrow.RecordBatch)):
        raise UserError(
            f"a pyarrow {type(x).__name__} cannot be read row by row; give a Table, a RecordBatch, or the path of a Parquet file or a folder of Parquet files"
        )
    return ArrowRows(x, columns, "the table")


class ArrowTable:
    """A Parquet or Arrow file as a table with a header.  In Parquet, only the requested columns are decoded.

    Unlike a file that is read as ``Rows``, this file may hold words, times and nulls.  An Arrow file may also be
    compressed.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = self.where = name
        with _as_user_errors(name):
            self.size = file.seek(0, os.SEEK_END)
            file.seek(0)
            self._parquet = file.read(4) == b"PAR1"
            file.seek(0)
            if self._parquet:
                self._file = pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**16)
                self.header = list(self._file.schema_arrow.names)
            else:
                self._file = pyarrow.ipc.open_file(file)
                self.header = list(self._file.schema.names)

    def parts(self, kinds: Mapping[str, str], places: Mapping[str, int], rows: int) -> Iterator[Part]:
        """Yield parts of at most ``rows`` rows, with the columns in ``kinds``."""
        done = 0
        with _as_user_errors(self.name):
            for batch, share in self._batches(list(kinds), rows):
                for start in range(0, batch.num_rows, rows):
                    some = batch.slice(start, rows)
                    found = {each: _cells(some.column(each), kind == "numbers") for each, kind in kinds.items()}
                    yield Part(found, range(done + 1, done + 1 + some.num_rows), round(share * self.size))
                    done += some.num_rows

    def _batches(self, columns: list[str], rows: int) -> Iterator[tuple[Any, float]]:
        """Yield record batches, each with the fraction of the file that has been read."""
        if self._parquet:
            done, every = 0, max(1, self._file.metadata.num_rows)
            for batch in self._file.iter_batches(rows, columns=columns, use_threads=False):
                done += batch.num_rows
                yield batch, done / every
        else:
            for number in range(self._file.num_record_batches):
                yield self._file.get_batch(number), (number + 1) / self._file.num_record_batches


def _cells(column: Any, numbers: bool) -> np.ndarray | list[str]:
    """Return a column as an array in float64, with NaN for null.

    If ``numbers`` is false, or the column does not hold numbers, or one of them is NaN, return a list of texts that read
    back to the same values.  A null is then "", and booleans are 0 and 1.
    """
    if numbers and _is_number(column.type):
        with np.errstate(invalid="ignore"):  # ignore signalling NaNs
            values = _numbers(column).astype(np.float64)
        if np.isnan(values).sum() == column.null_count:
            return values
    found = column.cast(pyarrow.uint8()) if types.is_boolean(column.type) else column
    return ["" if value is None else str(value).strip() for value in found.to_pylist()]


def _need_file(path: Path) -> None:
    """Raise UserError for a pipe or a device, because opening these with pyarrow could block forever."""
    try:
        with open_plain(path):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def _as_user_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{name}: cannot be read as Parquet or Arrow: {str(error).splitlines()[0][:200]}") from None


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open a Parquet file."""
    _need_file(Path(path))
    with _as_user_errors(path):
        file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16)
    with file:
        yield file


def column_kinds(path: str, parquet: bool) -> list[tuple[str, bool]]:
    """Return (name, whether it holds numbers) for each column of a Parquet or Arrow file."""
    if parquet:
        with _opened(path) as file:
            schema = file.schema_arrow
    else:
        schema = _mapped_batches(Path(path))[1]
    return [(field.name, _is_number(field.type)) for field in schema]


def _mapped_batches(path: Path) -> tuple[list[Any], Any]:
    _need_file(path)
    with _as_user_errors(str(path)):
        file = pyarrow.memory_map(str(path))
        whole = file.read_buffer(file.size())  # this is a view of the mapping, so nothing is read here
        if whole.slice(0, 6).to_pybytes() != b"ARROW1":
            raise UserError(
                f"{path}: is not an Arrow IPC file; if it is an Arrow stream, write it again with pyarrow.ipc.new_file"
            )
        reader = pyarrow.ipc.open_file(file)
        batches = []
        for number in range(reader.num_record_batches):
            batches.append(reader.get_batch(number))
            buffers = [each for column in batches[-1].columns for each in column.buffers() if each is not None]
            if any(not whole.address <= each.address <= whole.address + whole.size for each in buffers if each.size):
                raise UserError(
                    f"{path}: is compressed, so it cannot be mapped; write it with compression 'uncompressed', or as Parquet"
                )
    return batches, reader.schema


def _named(schema: Any, columns: Sequence[str | int] | None, name: str) -> list[str]:
    """Return the names of columns that are given by name or position."""
    names: list[str] = list(schema.names)
    found = []
    for column in names if columns is None else columns:
        if isinstance(column, str):
            if names.count(column) != 1:
                several = f"names the column {column!r} {names.count(column)} times; rename all but one"
                listed = ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "")
                raise UserError(
                    f"{name}: {several if column in names else f'has no column {column!r}; it has {listed}'}"
                )
            found.append(column)
        else:
            found.append(names[positions_of([column], len(names), name)[0]])
    return found


def _is_number(kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _need_numbers(schema: Any, columns: Sequence[str], name: str) -> bool:
    """Return whether float32 can hold every value of the columns' types.  Raises UserError for a column without numbers."""
    narrow = True
    for column in columns:
        at = schema.get_field_index(column)
        if at < 0:
            raise UserError(
                f"{name}: has no column {column!r}, which other files have; give all files the same columns"
            )
        kind = schema.field(at).type
        if not _is_number(kind):
            raise UserError(
                f"{name}: column {column!r} holds {kind}, not numbers; choose other columns, or convert this column first"
            )
        narrow &= kind in (pyarrow.float32(), pyarrow.float16(), pyarrow.bool_()) or (
            pyarrow.types.is_integer(kind) and kind.bit_width <= 16
        )
    return narrow


def _numbers(column: Any) -> np.ndarray:
    """Return a column's values.  A null becomes NaN, or None in a column of booleans."""
    found: np.ndarray = column.to_numpy(zero_copy_only=False)
    return found
