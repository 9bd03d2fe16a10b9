"""Rows of numbers that may not fit into memory: arrays, .npy files, Parquet and Arrow, all read in the same way.

    rows = as_rows("measured.npy")
    len(rows), rows.dim
    rows.take([5, 17])             # (2, D) float64
    for start, block in rows.blocks(65_536):
        ...

Whatever the source holds, callers get float64, and never a NaN or an infinity: the row that holds one is refused.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.files import open_plain, whole_file

GAP_BYTES = 4096
"""Bytes.  Two requested rows of a file that are nearer than this are read in one call."""
RUN_BYTES = 2**22
"""Most bytes of a file that are read in one call."""
CACHE_BYTES = 2**28
"""Size in bytes of the cache of decoded Parquet row groups."""
BATCH_ROWS = 2**16
"""Rows of Parquet that are decoded at a time."""
NPY_HEADER = 2**16
"""Most bytes before the numbers of an .npy file; NumPy refuses headers of more than 10,000."""
TEXTS = (".csv", ".tsv")
"""Endings of the names of text tables."""
TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
"""Endings of the names of files whose columns have names."""


@runtime_checkable
class Rows(Protocol):
    """A table of l rows and D columns, read in parts."""

    @property
    def dim(self) -> int:
        """D."""
        ...

    def __len__(self) -> int:
        """l."""
        ...

    def take(self, indices: Any) -> np.ndarray:
        """The rows at these positions, in this order, repeats allowed: (k, D) float64."""
        ...

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in their order: the position of the first, and (k, D) float64 with k at most ``size``."""
        ...


Source = Any
"""What ``as_rows`` takes: an array, np.memmap, a path, a pyarrow Table or Dataset, or Rows."""


def as_rows(x: Source, columns: Sequence[str | int] | None = None, cache: int = CACHE_BYTES) -> Rows:
    """Rows of an array (l, D), a file, a folder of files, a pyarrow Table or Dataset; or Rows as they are.

    columns: which columns, in which order; by position, those of Parquet and Arrow also by name.  All if not given.
    Numbers are converted to float64 when they are read; booleans are 0 and 1.

    Where the data stays, and what random access costs:

    - an array (any real type): in memory, not copied.
    - .npy, np.memmap: on disk.  ``take`` reads only the rows that it returns.  It does not read through the mapping, so
      no page counts as this process's memory.  A file in column-major order is mapped.
    - Parquet (a file, or a folder's files in the order of their paths): on disk.  The smallest part that can be decoded
      is a row group, so ``take`` decodes each row group that it needs.  The last ones are kept, up to ``cache`` bytes.
      A row group that is larger is decoded again for each ``take``.  For many random draws a .npy file is faster:
      ``save_rows``.
    - Arrow IPC (.arrow, .feather, .ipc, uncompressed): mapped.  ``take`` reads the pages that hold its rows.  The
      system counts these pages as this process's memory, and frees them when memory is needed.

    Raises UserError if the source cannot be read, or does not hold numbers.
    """
    if isinstance(x, (str, os.PathLike)):
        return _of_path(Path(x), columns, cache)
    if isinstance(x, np.memmap) and columns is None:
        file = _mapped_file(x)
        if file is not None:
            return file
    if type(x).__module__.split(".")[0] == "pyarrow":
        return _of_arrow(x, columns, cache)
    if not isinstance(x, np.ndarray) and isinstance(x, Rows):
        if columns is not None:
            raise UserError("columns cannot be chosen of rows that are read already; choose them where they are opened")
        return x
    return ArrayRows(x, columns)


# ---------------------------------------------------------------------------------------------------------- arrays


class ArrayRows:
    """Rows of an array (l, D) of any real type, which is not copied."""

    def __init__(self, x: Any, columns: Sequence[str | int] | None = None, name: str = "the data") -> None:
        self.name = name
        self.x = x if isinstance(x, np.ndarray) else np.asarray(x)
        _need_table(self.x.shape, self.x.dtype, name)
        if columns is not None:
            self.x = self.x[:, _positions(columns, self.x.shape[1], name)]

    @property
    def dim(self) -> int:
        return int(self.x.shape[1])

    def __len__(self) -> int:
        return len(self.x)

    def take(self, indices: Any) -> np.ndarray:
        indices = _checked(indices, len(self))
        return finite(np.asarray(self.x[indices], np.float64), indices, self.name)

    def blocks(self, size: int, first: int = 0, last: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Of the rows from ``first`` to before ``last``."""
        for start, end in _parts(len(self), size, first, last):
            yield start, finite(np.array(self.x[start:end], np.float64, order="C"), start, self.name)


class FileRows:
    """Rows of a file of row-major numbers, read with ``pread``.  Memory: the requested rows, and 4 MB.

    take: O(k log k + k D), one read for each run of near rows.  The object can be sent to another process, which opens
    the file again.
    """

    def __init__(
        self, path: Path, offset: int, length: int, width: int, kind: np.dtype, columns: list[int] | None = None
    ) -> None:
        self.path, self.offset, self.length, self.width, self.kind = Path(path).absolute(), offset, length, width, kind
        self.columns = columns
        self.name = str(path)
        self._row_bytes = width * kind.itemsize
        try:
            with open_plain(self.path) as opened:
                self._file = os.dup(opened.fileno())
            weakref.finalize(self, os.close, self._file)
            size = os.fstat(self._file).st_size
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None
        self._lock = threading.Lock()
        _need_whole(path, size, offset, length, self._row_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileRows, (self.path, self.offset, self.length, self.width, self.kind, self.columns)

    @property
    def dim(self) -> int:
        return self.width if self.columns is None else len(self.columns)

    def __len__(self) -> int:
        return self.length

    def take(self, indices: Any) -> np.ndarray:
        indices = _checked(indices, len(self))
        out = np.empty((len(indices), self.dim))
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        # runs of near rows, none of them long
        apart = np.flatnonzero(np.diff(ordered) * self._row_bytes > GAP_BYTES) + 1
        longest = max(1, RUN_BYTES // max(1, self._row_bytes))
        alone: list[int] = []  # runs of one row: the usual case if few of many rows are drawn
        for first, last in zip([0, *apart.tolist()], [*apart.tolist(), len(ordered)], strict=True):
            if last - first == 1:
                alone.append(first)
                continue
            while first < last:
                low = int(ordered[first])
                end = first + int(np.searchsorted(ordered[first:last], low + longest))
                run = self._read(low, int(ordered[end - 1]) + 1 - low)
                out[order[first:end]] = run[ordered[first:end] - low]
                first = end
        for start in range(0, len(alone), longest):
            some = alone[start : start + longest]
            out[order[some]] = self._read_each(ordered[some].tolist())
        return finite(out, indices, self.name)

    def blocks(self, size: int, first: int = 0, last: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Of the rows from ``first`` to before ``last``."""
        for start, end in _parts(len(self), size, first, last):
            yield start, finite(np.array(self._read(start, end - start), np.float64, order="C"), start, self.name)

    def _read(self, start: int, count: int) -> np.ndarray:
        """``count`` rows from row ``start`` on, in the file's number type; only the chosen columns."""
        raw = bytearray(count * self._row_bytes)
        self._fill(memoryview(raw), self.offset + start * self._row_bytes)
        return self._table(raw)

    def _read_each(self, rows: list[int]) -> np.ndarray:
        """These rows, in the file's number type; only the chosen columns.  One read for each row."""
        size, offset = self._row_bytes, self.offset
        raw = bytearray(len(rows) * size)
        view = memoryview(raw)
        for i, row in enumerate(rows):
            self._fill(view[i * size : (i + 1) * size], offset + row * size)
        return self._table(raw)

    def _table(self, raw: bytearray) -> np.ndarray:
        table = np.frombuffer(raw, self.kind).reshape(-1, self.width)
        return table if self.columns is None else table[:, self.columns]

    def _fill(self, view: memoryview, offset: int) -> None:
        done = 0
        try:
            while done < len(view):
                part = self._read_at(view[done:], offset + done)
                if part == 0:
                    raise UserError(f"{self.path}: became shorter while it was read; do not change it meanwhile")
                done += part
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _read_at(self, into: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file, [into], offset)
        with self._lock:  # Windows
            os.lseek(self._file, offset, os.SEEK_SET)
            part = os.read(self._file, len(into))
            into[: len(part)] = part
            return len(part)


def _need_whole(path: Path, size: int, offset: int, length: int, row_bytes: int) -> None:
    """Raises UserError if a file of ``size`` bytes cannot hold ``length`` rows after its first ``offset`` bytes."""
    if size < offset + length * row_bytes:
        raise UserError(
            f"{path}: ends after {max(0, size - offset) // max(1, row_bytes):,} rows, but its header says "
            f"{length:,}; it was not written completely: write it again"
        )


def _of_path(path: Path, columns: Sequence[str | int] | None, cache: int) -> Rows:
    if not path.exists():
        raise UserError(
            f"{path}: there is no such file; give a .npy, Parquet or Arrow file, or a folder of Parquet files"
        )
    if not path.is_dir():
        _need_file(path)
    kind = path.suffix.lower()
    if path.is_dir():
        files = sorted(str(each) for each in path.rglob("*") if each.suffix.lower() in (".parquet", ".pq"))
        files = [each for each in files if not Path(each).name.startswith((".", "_"))]
        if not files:
            raise UserError(f"{path}: is a folder without .parquet files; give one that has some, or a file")
        return ParquetRows(files, columns, str(path), cache)
    if kind == ".npy":
        return _of_npy(path, columns)
    if kind in (".parquet", ".pq"):
        return ParquetRows([str(path)], columns, str(path), cache)
    if kind in TABLES:
        return ArrowRows(path, columns, str(path))
    if kind in TEXTS:
        raise UserError(
            f"{path}: rows of a text file cannot be read one by one; convert it once, with: pykernel convert {path} --output "
            f"{path.with_suffix('.npy')}"
        )
    raise UserError(f"{path}: cannot be read in parts; give .npy, .parquet or .arrow")


def _of_npy(path: Path, columns: Sequence[str | int] | None) -> Rows:
    try:
        with open_plain(path) as file:
            # a damaged header may claim a length of gigabytes
            head = io.BytesIO(file.read(NPY_HEADER))
            size = os.fstat(file.fileno()).st_size
        major, _minor = np.lib.format.read_magic(head)
        if major not in (1, 2, 3):
            raise ValueError(f"it is of version {major}")
        read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, fortran, kind = read(head)
        offset = head.tell()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except Exception as error:  # NumPy raises many kinds of errors for a damaged header
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{path}: is no .npy file ({why}); write it with numpy.save") from None
    _need_table(shape, kind, str(path))
    if fortran and not {0, 1} & set(shape):
        _need_whole(path, size, offset, shape[0], shape[1] * kind.itemsize)
        return ArrayRows(np.load(path, mmap_mode="r", allow_pickle=False), columns, str(path))
    chosen = None if columns is None else _positions(columns, shape[1], str(path))
    return FileRows(path, offset, shape[0], shape[1], kind, chosen)


def _mapped_file(x: np.memmap) -> FileRows | None:
    """The file behind a mapped table, where its rows lie one after the other and the mapping is not a private copy."""
    import mmap

    file = getattr(x, "_mmap", None)
    if x.ndim != 2 or not x.flags.c_contiguous or x.filename is None or x.mode == "c" or not x.size or file is None:
        return None
    _need_table(x.shape, x.dtype, str(x.filename))
    within = x.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
    if x.mode != "r":
        file.flush()
    begin = x.offset - x.offset % mmap.ALLOCATIONGRANULARITY
    return FileRows(Path(x.filename), begin + within, x.shape[0], x.shape[1], x.dtype)


# --------------------------------------------------------------------------------------------------- Parquet, Arrow


class ParquetRows:
    """Rows of Parquet files, one file after the other.  Row groups are decoded; the last ones are kept, up to ``cache``
    bytes.

    Memory: the cache, and one row group as columns and as rows.  For ``blocks``, and for a row group larger than
    ``cache``: BATCH_ROWS rows, and a read buffer for each column.  Numbers are kept as float32 if float32 holds every
    column.
    """

    def __init__(
        self,
        files: Sequence[str],
        columns: Sequence[str | int] | None = None,
        name: str = "the data",
        cache: int = CACHE_BYTES,
        filesystem: Any = None,
    ) -> None:
        _pyarrow(name)
        self.files, self.name, self.cache, self.filesystem = list(files), name, cache, filesystem
        self.columns: list[str] = []
        counts: list[int] = []
        self._groups: list[tuple[int, int]] = []  # file, row group
        narrow = True
        for number, file in enumerate(self.files):
            with self._opened(number) as opened:
                if number == 0:
                    self.columns = _named(opened.schema_arrow, columns, file)
                narrow &= _need_numbers(opened.schema_arrow, self.columns, file)
                for group in range(opened.metadata.num_row_groups):
                    counts.append(opened.metadata.row_group(group).num_rows)
                    self._groups.append((number, group))
        self.kind = np.dtype(np.float32 if narrow else np.float64)
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._kept_bytes = 0
        self.decoded = 0
        """Rows decoded so far, by ``take`` and ``blocks``."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetRows, (self.files, self.columns, self.name, self.cache, self.filesystem)

    @property
    def dim(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def take(self, indices: Any) -> np.ndarray:
        indices = _checked(indices, len(self))
        out = np.empty((len(indices), self.dim))
        owner = np.searchsorted(self._starts, indices, "right") - 1
        order = np.argsort(owner, kind="stable")
        ends = np.flatnonzero(np.diff(owner[order], append=-1)) + 1
        with self._lock:
            for some in np.split(order, ends[:-1]) if len(order) else []:
                group = int(owner[some[0]])
                self._gather(group, indices[some] - self._starts[group], out, some)
        return finite(out, indices, self.name, self._tell)

    def blocks(self, size: int, first: int = 0, last: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Of the rows from ``first`` to before ``last``.  Rows are cut where ``size`` says, not where row groups end."""
        parts = _parts(len(self), size, first, last)
        block, filled = np.empty((0, self.dim)), 0
        start = first
        for piece in self._pieces(first, last):
            done = 0
            while done < len(piece):
                if filled == len(block):
                    start, end = next(parts)
                    block, filled = np.empty((end - start, self.dim)), 0
                count = min(len(block) - filled, len(piece) - done)
                block[filled : filled + count] = piece[done : done + count]
                filled, done = filled + count, done + count
                if filled == len(block):
                    yield start, finite(block, start, self.name, self._tell)

    def _pieces(self, first: int, last: int | None) -> Iterator[np.ndarray]:
        """The rows from ``first`` to before ``last``, (k, D), as they are decoded."""
        last = len(self) if last is None else min(last, len(self))
        for group in range(len(self._groups)):
            at = int(self._starts[group])
            if self._starts[group + 1] <= first or at >= last:
                continue
            for piece in self._decode(group):
                low, high = max(first - at, 0), min(last - at, len(piece))
                if low < high:
                    yield piece[low:high]
                at += len(piece)

    def _gather(self, group: int, rows: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
        kept = self._kept.get(group)
        if kept is None:
            count = int(self._starts[group + 1] - self._starts[group])
            size = count * self.dim * self.kind.itemsize
            if size > self.cache:
                at = 0
                for piece in self._decode(group):
                    here = (rows >= at) & (rows < at + len(piece))
                    out[places[here]] = piece[rows[here] - at]
                    at += len(piece)
                return
            while self._kept_bytes + size > self.cache:
                self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
            kept, at = np.empty((count, self.dim), self.kind), 0
            for piece in self._decode(group):
                kept[at : at + len(piece)] = piece
                at += len(piece)
            self._kept[group] = kept
            self._kept_bytes += size
        self._kept.move_to_end(group)
        out[places] = kept[rows]

    def _decode(self, group: int) -> Iterator[np.ndarray]:
        """A row group's rows, BATCH_ROWS at a time, (k, D) of ``kind``."""
        number, within = self._groups[group]
        with self._opened(number) as opened, _as_user_errors(self.files[number]):
            # each column's pages are read as they are needed, not all at once
            for batch in opened.iter_batches(BATCH_ROWS, [within], self.columns, use_threads=False):
                piece = np.empty((batch.num_rows, self.dim), self.kind)
                for j, column in enumerate(self.columns):
                    piece[:, j] = _numbers(batch.column(column), self.kind)
                self.decoded += batch.num_rows
                yield piece

    @contextlib.contextmanager
    def _opened(self, number: int) -> Iterator[Any]:
        import pyarrow.parquet

        if self.filesystem is None:
            _need_file(Path(self.files[number]))
        with _as_user_errors(self.files[number]):
            file = pyarrow.parquet.ParquetFile(
                self.files[number], pre_buffer=False, buffer_size=2**16, filesystem=self.filesystem
            )
        with file:
            yield file

    def _tell(self, row: int, j: int) -> str:
        """What is wrong with a cell, and in which file."""
        group = int(np.searchsorted(self._starts, row, "right")) - 1
        number, within = self._groups[group]
        with self._opened(number) as opened, _as_user_errors(self.files[number]):
            value = opened.read_row_group(within, [self.columns[j]]).column(0)[row - int(self._starts[group])].as_py()
        first = next(i for i, (each, _) in enumerate(self._groups) if each == number)
        where = f" (row {row - int(self._starts[first]):,} of {self.files[number]})" if len(self.files) > 1 else ""
        return f"column {self.columns[j]!r} is {'null' if value is None else value}{where}"


class ArrowRows:
    """Rows of record batches: of an uncompressed Arrow IPC file, which is mapped, or of a pyarrow Table in memory.

    take: O(k log k + k D) and the pages that hold the rows; columns without nulls are not copied.
    """

    def __init__(self, source: Any, columns: Sequence[str | int] | None = None, name: str = "the data") -> None:
        pyarrow = _pyarrow(name)
        self.source, self.name = source, name
        if isinstance(source, Path):
            batches, schema = _mapped_batches(source)
        else:
            schema = source.schema
            batches = [source] if isinstance(source, pyarrow.RecordBatch) else source.to_batches()
        self.columns = _named(schema, columns, name)
        narrow = _need_numbers(schema, self.columns, name)
        self.kind = np.dtype(np.float32 if narrow else np.float64)
        self._batches = [batch.select(self.columns) for batch in batches if batch.num_rows]
        self._views: list[list[np.ndarray] | None] = [None] * len(self._batches)
        self._starts = np.concatenate([[0], np.cumsum([batch.num_rows for batch in self._batches], dtype=np.int64)])

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrowRows, (self.source, self.columns, self.name)

    @property
    def dim(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def take(self, indices: Any) -> np.ndarray:
        indices = _checked(indices, len(self))
        out = np.empty((len(indices), self.dim))
        owner = np.searchsorted(self._starts, indices, "right") - 1
        order = np.argsort(owner, kind="stable")
        ends = np.flatnonzero(np.diff(owner[order], append=-1)) + 1
        for some in np.split(order, ends[:-1]) if len(order) else []:
            batch = int(owner[some[0]])
            rows = indices[some] - self._starts[batch]
            for j, column in enumerate(self._columns_of(batch)):
                out[some, j] = column[rows]
        return finite(out, indices, self.name, self._tell)

    def blocks(self, size: int, first: int = 0, last: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Of the rows from ``first`` to before ``last``."""
        for start, end in _parts(len(self), size, first, last):
            block = np.empty((end - start, self.dim))
            at = start
            while at < end:
                batch = int(np.searchsorted(self._starts, at, "right")) - 1
                stop = min(end, int(self._starts[batch + 1]))
                within = slice(at - int(self._starts[batch]), stop - int(self._starts[batch]))
                for j, column in enumerate(self._columns_of(batch)):
                    block[at - start : stop - start, j] = column[within]
                at = stop
            yield start, finite(block, start, self.name, self._tell)

    def _columns_of(self, batch: int) -> list[np.ndarray]:
        views = self._views[batch]
        if views is None:
            columns = self._batches[batch].columns
            views = [_numbers(column, self.kind) for column in columns]
            if not any(_is_copied(column) for column in columns):
                self._views[batch] = views
        return views

    def _tell(self, row: int, j: int) -> str:
        batch = int(np.searchsorted(self._starts, row, "right")) - 1
        value = self._batches[batch].column(j)[row - int(self._starts[batch])].as_py()
        return f"column {self.columns[j]!r} is {'null' if value is None else value}"


def _of_arrow(x: Any, columns: Sequence[str | int] | None, cache: int) -> Rows:
    """Rows of a pyarrow Table, RecordBatch or Dataset of Parquet files."""
    import pyarrow
    import pyarrow.dataset

    if isinstance(x, (pyarrow.Table, pyarrow.RecordBatch)):
        return ArrowRows(x, columns, "the table")
    if not isinstance(x, pyarrow.dataset.FileSystemDataset) or x.format.default_extname != "parquet":
        raise UserError(
            f"a pyarrow {type(x).__name__} cannot be read by rows; give a Table, or a Dataset of Parquet files"
        )
    if getattr(x, "_scan_options", None):
        raise UserError(
            "a pyarrow Dataset with a filter cannot be read by rows; write what it gives to Parquet, or leave the filter out"
        )
    if not x.files:
        raise UserError("the pyarrow Dataset has no files; give one that has some")
    chosen = list(x.schema.names) if columns is None else columns
    return ParquetRows(x.files, chosen, "the dataset", cache, x.filesystem)


def table_columns(path: str | Path) -> list[tuple[str, bool]]:
    """The columns of a Parquet or Arrow file (of a folder: of its first) and whether they hold numbers."""
    _pyarrow(str(path))
    path = Path(path)
    if path.is_dir() or path.suffix.lower() in (".parquet", ".pq"):
        # no column is chosen: so no column is refused here
        rows = _of_path(path, [], CACHE_BYTES)
        assert isinstance(rows, ParquetRows)
        with rows._opened(0) as opened:
            schema = opened.schema_arrow
    else:
        schema = _mapped_batches(path)[1]
    return [(field.name, _is_number(field.type)) for field in schema]


def _pyarrow(name: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra(f"{name}: reading Parquet and Arrow", "arrow") from None
    return pyarrow


def _need_file(path: Path) -> None:
    """Raises UserError at once for a pipe or a device, which could block forever: pyarrow would open it."""
    try:
        with open_plain(path):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def _as_user_errors(name: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{name}: cannot be read as Parquet or Arrow: {str(error).splitlines()[0][:200]}") from None


def _mapped_batches(path: Path) -> tuple[list[Any], Any]:
    import pyarrow
    import pyarrow.ipc

    _need_file(path)
    with _as_user_errors(str(path)):
        file = pyarrow.memory_map(str(path))
        whole = file.read_buffer(file.size())  # a view of the mapping; nothing is read here
        if whole.slice(0, 6).to_pybytes() != b"ARROW1":
            raise UserError(f"{path}: is no Arrow IPC file; a stream must be written again with pyarrow.ipc.new_file")
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
    """The names of columns that are given by name or position."""
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
            found.append(names[_positions([column], len(names), name)[0]])
    return found


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _need_numbers(schema: Any, columns: Sequence[str], name: str) -> bool:
    """Whether float32 holds every value of the columns' types.  Raises UserError for a column without numbers."""
    import pyarrow

    narrow = True
    for column in columns:
        at = schema.get_field_index(column)
        if at < 0:
            raise UserError(
                f"{name}: has no column {column!r}, which other files of the data have; give all files the same columns"
            )
        kind = schema.field(at).type
        if not _is_number(kind):
            raise UserError(
                f"{name}: column {column!r} holds {kind}, not numbers; choose other columns, or convert it first"
            )
        narrow &= kind in (pyarrow.float32(), pyarrow.float16(), pyarrow.bool_()) or (
            pyarrow.types.is_integer(kind) and kind.bit_width <= 16
        )
    return narrow


def _is_copied(column: Any) -> bool:
    """Whether a column must be copied to become a NumPy array."""
    import pyarrow.types as types

    return bool(column.null_count or types.is_boolean(column.type))


def _numbers(column: Any, kind: np.dtype) -> np.ndarray:
    """A column's values; NaN where they are null."""
    import pyarrow

    if _is_copied(column):
        column = column.cast(pyarrow.from_numpy_dtype(kind), safe=False)
    found: np.ndarray = column.to_numpy(zero_copy_only=False)
    return found


# --------------------------------------------------------------------------------------------------------- part of them


class SomeRows:
    """Some of other rows: those from ``first`` to before ``last``, or those at ``indices``.  Copies nothing."""

    def __init__(self, rows: Rows, first: int = 0, last: int | None = None, indices: np.ndarray | None = None) -> None:
        self.rows, self.first = rows, first
        self.last = len(rows) if last is None else last
        self.indices = None if indices is None else _checked(indices, len(rows))
        if not 0 <= first <= self.last <= len(rows):
            raise IndexError(f"rows from {first:,} to {self.last:,} of {len(rows):,}")

    @property
    def dim(self) -> int:
        return self.rows.dim

    def __len__(self) -> int:
        return self.last - self.first if self.indices is None else len(self.indices)

    def origin(self, indices: Any) -> np.ndarray:
        """Positions of these rows in the underlying rows."""
        indices = _checked(indices, len(self))
        return indices + self.first if self.indices is None else self.indices[indices]

    def take(self, indices: Any) -> np.ndarray:
        return self.rows.take(self.origin(indices))

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        if self.indices is None and isinstance(self.rows, (ArrayRows, FileRows, ParquetRows, ArrowRows)):
            for start, block in self.rows.blocks(size, self.first, self.last):
                yield start - self.first, block
            return
        for start, end in _parts(len(self), size, 0, None):
            yield start, self.take(np.arange(start, end))


class ScaledRows:
    """(x - center) * scale of other rows; center, scale: (D,)."""

    def __init__(self, rows: Rows, center: Any, scale: Any) -> None:
        self.rows = rows
        self.center, self.scale = np.asarray(center, np.float64), np.asarray(scale, np.float64)

    @property
    def dim(self) -> int:
        return self.rows.dim

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Any) -> np.ndarray:
        return np.asarray((self.rows.take(indices) - self.center) * self.scale)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start, block in self.rows.blocks(size):
            block -= self.center
            block *= self.scale
            yield start, block


def save_rows(
    rows: Rows,
    path: str | Path,
    kind: Any = np.float32,
    progress: Callable[[int, int], None] | None = None,
    block: int = BATCH_ROWS,
) -> None:
    """Write rows to a .npy file, which then can be read row by row.  Memory: ``block`` rows.

    kind: float32 or float64.  progress: called with the number of rows written, and the number of all rows.
    Raises UserError if ``kind`` cannot hold a number, or if the file cannot be written; no file is left then.
    """
    kind = np.dtype(kind)
    if kind not in (np.float32, np.float64):
        raise UserError(f"{kind} is not what rows are saved as; it must be float32 or float64")
    with whole_file(path) as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (len(rows), rows.dim)}
        np.lib.format.write_array_header_1_0(file, header)
        for start, x in rows.blocks(block):
            with np.errstate(over="ignore"):
                converted = x.astype(kind)
            finite(converted, start, f"as {kind}")
            file.write(converted.tobytes())
            if progress is not None:
                progress(start + len(x), len(rows))


# ---------------------------------------------------------------------------------------------------------- checks


def finite(
    x: np.ndarray, where: np.ndarray | int, name: str, tell: Callable[[int, int], str] | None = None
) -> np.ndarray:
    """x as it is.  Raises UserError with the row's number, counted from 0, if it holds a NaN or an infinity.

    where: the rows' positions, or the position of the first row.  tell: returns the words for a row and a column; if
    not given, their positions.
    """
    # a finite sum means that all numbers are finite; else look at each number, because a sum can also overflow
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(x.sum()):
            return x
    wrong = np.argwhere(~np.isfinite(x))
    if not len(wrong):
        return x
    i, j = map(int, wrong[0])
    row = where + i if isinstance(where, int) else int(where[i])
    what = f"column {j} is {x[i, j]}" if tell is None else tell(row, j)
    raise UserError(f"{name}, row {row:,} (from 0): {what}; remove the row, or fill the cell first")


def _need_table(shape: Sequence[int], kind: np.dtype, name: str) -> None:
    if len(shape) != 2:
        raise UserError(f"{name}: has {len(shape)} dimensions; rows and columns are wanted, (rows, {'…'})")
    if kind.kind not in "fiub":
        raise UserError(f"{name}: holds {kind}; it must hold real numbers, such as float32")
    if shape[0] < 0 or not shape[1] * kind.itemsize < 2**31:
        raise UserError(
            f"{name}: has a header that says {shape[0]:,} rows and {shape[1]:,} columns; it is damaged: write it again"
        )
    if shape[1] < 1:
        raise UserError(f"{name}: has no columns; give it one for each input")


def _positions(columns: Sequence[str | int], width: int, name: str) -> list[int]:
    """Positions of columns; a position below 0 counts from the end."""
    found = []
    for column in columns:
        try:
            at = int(column)
        except ValueError:
            raise UserError(
                f"{name}: has no names of columns; give positions from 0 to {width - 1}, not {column!r}"
            ) from None
        if not -width <= at < width:
            raise UserError(f"{name}: has {width} columns, and none at {at}; positions are from 0 to {width - 1}")
        found.append(at % width)
    return found


def _checked(indices: Any, count: int) -> np.ndarray:
    found = np.asarray(indices)
    if found.size == 0:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise IndexError(f"positions of rows must be whole numbers (k,), not {found.dtype} {found.shape}")
    found = found.astype(np.int64, copy=False)
    if found.min() < 0 or found.max() >= count:
        raise IndexError(f"positions of rows must be from 0 to {count - 1:,}, not {found.min():,} to {found.max():,}")
    return found


def _parts(count: int, size: int, first: int, last: int | None) -> Iterator[tuple[int, int]]:
    """Where each block begins and ends."""
    if size < 1:
        raise UserError(f"a block of {size} rows was asked for; it must be 1 or more")
    last = count if last is None else min(last, count)
    for start in range(first, last, size):
        yield start, min(start + size, last)
