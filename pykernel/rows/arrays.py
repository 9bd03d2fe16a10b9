"""The protocol ``Rows``, rows of arrays and of .npy files, and selections of rows from other sources."""

from __future__ import annotations

import io
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pykernel.errors import UserError
from pykernel.files import open_plain, whole_file

GAP_BYTES = 4096
"""Two requested rows of a file are read in one call if their distance in the file is at most this many bytes."""
RUN_BYTES = 2**22
"""Maximum number of bytes that ``FileRows.take`` reads in one call, unless a single row is longer."""
NPY_HEADER = 2**16
"""Maximum number of bytes that are read as the header of an .npy file.  NumPy refuses headers of more than 10,000 bytes."""
SAVED_ROWS = 2**16
"""Number of rows that are written at a time."""
CACHE_BYTES = 2**28
"""Size in bytes of the cache of decoded Parquet row groups."""

Cells = np.ndarray | list[str]
"""Consecutive cells of a column: an array in float64, with NaN for empty cells, or a list of texts without leading or
trailing spaces."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a table: the requested columns, the lines where the rows end, and the number of bytes read so
    far.  A column of numbers may be text in this part, for example if a cell of the part is empty, not a number, or in
    quotes.

    cut: the number of the file's last line, if this line is incomplete and therefore left out; otherwise 0.
    """

    columns: Mapping[str, Cells]
    lines: Sequence[int]
    position: int
    cut: int = 0


@runtime_checkable
class Rows(Protocol):
    """A table of l rows and D columns, read in parts."""

    @property
    def dim(self) -> int:
        """The number of columns, D."""

    def __len__(self) -> int:
        """Return the number of rows, l."""

    def take(self, indices: Any) -> np.ndarray:
        """Return a float64 array (k, D) with the rows at these positions, in this order.  Positions may repeat."""

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all rows in their order, in blocks of at most ``size`` rows.  Each block is a pair: the position of its
        first row, and a float64 array (k, D).
        """


# ---------------------------------------------------------------------------------------------------------- arrays


class ArrayRows:
    """Rows of an array (l, D) of any real type.  The array is copied only if ``columns`` are given."""

    def __init__(self, x: Any, columns: Sequence[str | int] | None = None, name: str = "the data") -> None:
        self.name = name
        self.x = x if isinstance(x, np.ndarray) else np.asarray(x)
        need_table(self.x.shape, self.x.dtype, name)
        if columns is not None:
            self.x = self.x[:, positions_of(columns, self.x.shape[1], name)]
        self.dim = self.x.shape[1]

    def __len__(self) -> int:
        return len(self.x)

    def take(self, indices: Any) -> np.ndarray:
        indices = checked_positions(indices, len(self))
        return finite(np.asarray(self.x[indices], np.float64), indices, self.name)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start, end in parts(len(self), size):
            yield start, finite(np.array(self.x[start:end], np.float64, order="C"), start, self.name)


# ------------------------------------------------------------------------------------------------------- .npy files


class FileRows:
    """Rows of a file of row-major numbers, read with ``pread``.  Needs memory for the requested rows, plus 4 MB.

    ``take`` costs O(k log k + k D), with one read for each run of rows that are near each other.  The object can be sent to
    another process, which opens the file again.
    """

    def __init__(
        self, path: Path, offset: int, length: int, width: int, kind: np.dtype, columns: list[int] | None = None
    ) -> None:
        self.path, self.offset, self.length, self.width, self.kind = Path(path).absolute(), offset, length, width, kind
        self.columns, self.dim = columns, width if columns is None else len(columns)
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

    def __len__(self) -> int:
        return self.length

    def take(self, indices: Any) -> np.ndarray:
        indices = checked_positions(indices, len(self))
        out = np.empty((len(indices), self.dim))
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        # rows that are near each other are read together, in runs of limited length
        longest = max(1, RUN_BYTES // self._row_bytes)
        far = (np.diff(ordered) * self._row_bytes > GAP_BYTES) | (np.diff(ordered // longest) > 0)
        first = 0
        for last in [*(np.flatnonzero(far) + 1).tolist(), len(ordered)] if len(ordered) else []:
            rows, low = ordered[first:last], int(ordered[first])
            out[order[first:last]] = self._read(low, int(rows[-1]) + 1 - low)[rows - low]
            first = last
        return finite(out, indices, self.name)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start, end in parts(len(self), size):
            yield start, finite(np.array(self._read(start, end - start), np.float64, order="C"), start, self.name)

    def _read(self, start: int, count: int) -> np.ndarray:
        """Return ``count`` rows, beginning with row ``start``, in the file's number type, with only the chosen columns."""
        raw = bytearray(count * self._row_bytes)
        self._fill(memoryview(raw), self.offset + start * self._row_bytes)
        table = np.frombuffer(raw, self.kind).reshape(-1, self.width)
        return table if self.columns is None else table[:, self.columns]

    def _fill(self, view: memoryview, offset: int) -> None:
        done = 0
        try:
            while done < len(view):
                part = self._read_at(view[done:], offset + done)
                if part == 0:
                    raise UserError(
                        f"{self.path}: became shorter while it was being read; do not change the file during reading"
                    )
                done += part
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _read_at(self, into: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file, [into], offset)
        with self._lock:  # on Windows, there is no pread
            os.lseek(self._file, offset, os.SEEK_SET)
            part = os.read(self._file, len(into))
            into[: len(part)] = part
            return len(part)


def _need_whole(path: Path, size: int, offset: int, length: int, row_bytes: int) -> None:
    """Raise UserError if a file of ``size`` bytes cannot hold ``length`` rows after its first ``offset`` bytes."""
    if size < offset + length * row_bytes:
        raise UserError(
            f"{path}: ends after {max(0, size - offset) // max(1, row_bytes):,} rows, but its header says "
            f"{length:,}; it was not written completely: write it again"
        )


def npy_rows(path: Path, columns: Sequence[str | int] | None) -> Rows:
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
        raise UserError(f"{path}: is not an .npy file ({why}); write it with numpy.save") from None
    need_table(shape, kind, str(path))
    if fortran and not {0, 1} & set(shape):
        _need_whole(path, size, offset, shape[0], shape[1] * kind.itemsize)
        return ArrayRows(np.load(path, mmap_mode="r", allow_pickle=False), columns, str(path))
    chosen = None if columns is None else positions_of(columns, shape[1], str(path))
    return FileRows(path, offset, shape[0], shape[1], kind, chosen)


def mapped_rows(x: np.memmap) -> FileRows | None:
    """Return the rows of a mapped array's file if they are contiguous and the mapping is not a private copy, else None."""
    import mmap

    file = getattr(x, "_mmap", None)
    if x.ndim != 2 or not x.flags.c_contiguous or x.filename is None or x.mode == "c" or not x.size or file is None:
        return None
    need_table(x.shape, x.dtype, str(x.filename))
    within = x.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
    if x.mode != "r":
        file.flush()
    begin = x.offset - x.offset % mmap.ALLOCATIONGRANULARITY
    return FileRows(Path(x.filename), begin + within, x.shape[0], x.shape[1], x.dtype)


def save_rows(
    rows: Rows,
    path: str | Path,
    kind: Any = np.float32,
    progress: Callable[[int, int], None] | None = None,
    block: int = SAVED_ROWS,
) -> None:
    """Write rows to a .npy file, which can then be read row by row.  Needs memory for ``block`` rows.

    kind: float32 or float64.  progress: called with the number of rows written, and the number of all rows.
    Raises UserError, and leaves no file, if a number is too large for ``kind``, or if the file cannot be written.
    """
    kind = np.dtype(kind)
    if kind not in (np.float32, np.float64):
        raise UserError(f"rows cannot be saved as {kind}; give float32 or float64")
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


# -------------------------------------------------------------------------------------------------- parts of other rows


class SomeRows:
    """Selected rows of another ``Rows`` object, given by their positions; the rows are not copied."""

    def __init__(self, rows: Rows, indices: np.ndarray) -> None:
        self.rows, self.dim, self.indices = rows, rows.dim, checked_positions(indices, len(rows))

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, indices: Any) -> np.ndarray:
        return self.rows.take(self.indices[checked_positions(indices, len(self))])

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start, end in parts(len(self), size):
            yield start, self.rows.take(self.indices[start:end])


class ScaledRows:
    """The rows of another ``Rows`` object, each scaled to (x - center) * scale.  center, scale: (D,)."""

    def __init__(self, rows: Rows, center: Any, scale: Any) -> None:
        self.rows, self.dim = rows, rows.dim
        self.center, self.scale = np.asarray(center, np.float64), np.asarray(scale, np.float64)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Any) -> np.ndarray:
        return np.asarray((self.rows.take(indices) - self.center) * self.scale)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start, block in self.rows.blocks(size):
            block -= self.center
            block *= self.scale
            yield start, block


def each_row(rows: Rows, size: int, values: Callable[[np.ndarray], np.ndarray], *shape: int) -> np.ndarray:
    """Return an array (l, *shape) with the results of ``values`` for all rows.  ``values`` maps a block (k, D) of at most
    ``size`` rows to an array (k, *shape).
    """
    out = np.empty((len(rows), *shape))
    for start, block in rows.blocks(size):
        out[start : start + len(block)] = values(block)
    return out


# ---------------------------------------------------------------------------------------------------------- checks


def finite(
    x: np.ndarray, where: np.ndarray | int, name: str, tell: Callable[[int, int], str] | None = None
) -> np.ndarray:
    """Return x unchanged.  Raises UserError with the row's number, counted from 0, if x holds a NaN or an infinity.

    where: the rows' positions, or the position of the first row.  tell: a function that describes a wrong cell, given
    the cell's row and column.  By default, the description is the column's position and the value.
    """
    # a finite sum means that all numbers are finite; otherwise check each number, because a sum can also overflow
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


def need_table(shape: Sequence[int], kind: np.dtype, name: str) -> None:
    if len(shape) != 2:
        raise UserError(f"{name}: has the shape {tuple(shape)}; give an array of two dimensions, (rows, columns)")
    if kind.kind not in "fiub":
        raise UserError(f"{name}: holds {kind}; give real numbers, such as float32")
    if shape[0] < 0 or not shape[1] * kind.itemsize < 2**31:
        raise UserError(
            f"{name}: has a header that says {shape[0]:,} rows and {shape[1]:,} columns; the header is damaged: write the file again"
        )
    if shape[1] < 1:
        raise UserError(f"{name}: has no columns; give it one for each input")


def positions_of(columns: Sequence[str | int], width: int, name: str) -> list[int]:
    """Return the positions of columns.  Negative positions are counted from the end."""
    found = []
    for column in columns:
        try:
            at = int(column)
        except ValueError:
            raise UserError(
                f"{name}: its columns have no names; give positions from 0 to {width - 1}, not {column!r}"
            ) from None
        if not -width <= at < width:
            raise UserError(
                f"{name}: has {width} columns, so there is no column {at}; positions are from 0 to {width - 1}"
            )
        found.append(at % width)
    return found


def checked_positions(indices: Any, count: int) -> np.ndarray:
    found = np.asarray(indices)
    if found.size == 0:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise IndexError(
            f"positions of rows must be a one-dimensional array of integers, not {found.dtype} of shape {found.shape}"
        )
    found = found.astype(np.int64, copy=False)
    if found.min() < 0 or found.max() >= count:
        raise IndexError(f"positions of rows must be from 0 to {count - 1:,}, not {found.min():,} to {found.max():,}")
    return found


def parts(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block, and the row after the block's last row."""
    if size < 1:
        raise UserError(f"blocks of {size} rows were requested; a block must have at least 1 row")
    for start in range(0, count, size):
        yield start, min(start + size, count)
