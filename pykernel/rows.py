"""Rows of numbers that may not fit into memory: arrays, .npy files, Parquet and Arrow, all read in the same way.

    rows = as_rows("measured.npy")
    len(rows), rows.dim
    rows.take([5, 17])             # (2, D) float64
    for start, block in rows.blocks(65_536):
        ...

Whatever the source holds, callers get float64, and never a NaN or an infinity: the row that holds one is refused.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pykernel.errors import UserError

GAP_BYTES = 4096
"""Two wanted rows of a file that are nearer than this are read at once."""
RUN_BYTES = 2**22
"""Most bytes of a file that are read at once."""


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
"""What ``as_rows`` takes: an array, np.memmap, a path, or Rows."""


def as_rows(x: Source, columns: Sequence[str | int] | None = None) -> Rows:
    """Rows of an array (l, D) or np.memmap, of a file (.npy), or Rows as they are.

    columns: which columns, in which order; by position.  All if not given.

    A file stays on disk: ``take`` and ``blocks`` read what they return, and a .npy file (row-major) is not mapped, so that no
    page of it counts as this process's memory.

    Raises UserError if there is nothing that can be read, or it does not hold numbers.
    """
    if isinstance(x, (str, os.PathLike)):
        return _of_file(Path(x), columns)
    if isinstance(x, np.memmap) and columns is None:
        file = _mapped_file(x)
        if file is not None:
            return file
    if not isinstance(x, np.ndarray) and isinstance(x, Rows):
        if columns is not None:
            raise UserError("columns cannot be chosen of rows that are read already; choose them where they are opened")
        return x
    return ArrayRows(x, columns)


def fingerprint(rows: Rows, samples: int = 64) -> str:
    """A digest of l, D and evenly spaced rows: tells another table from this one (or a changed one, likely), O(samples D)."""
    digest = hashlib.sha256(f"{len(rows)} {rows.dim}".encode())
    if len(rows):
        at = np.unique(np.linspace(0, len(rows) - 1, samples).astype(np.int64))
        digest.update(np.ascontiguousarray(rows.take(at)).astype("<f8").tobytes())
    return digest.hexdigest()[:32]


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

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start in _starts(len(self), size):
            block = np.array(self.x[start : start + size], np.float64, order="C")
            yield start, finite(block, start, self.name)


class FileRows:
    """Rows of a file of row-major numbers, read with ``pread``: memory is what is asked for, and 4 MB.

    take: O(k log k + k D), one read for each run of near rows.  Can be sent to another process, which opens the file anew.
    """

    def __init__(
        self, path: Path, offset: int, length: int, width: int, kind: np.dtype, columns: list[int] | None = None
    ) -> None:
        self.path, self.offset, self.length, self.width, self.kind = Path(path).absolute(), offset, length, width, kind
        self.columns = columns
        self.name = str(path)
        self._row_bytes = width * kind.itemsize
        try:
            self._file = self.path.open("rb", buffering=0)
            size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from None
        self._lock = threading.Lock()
        if size < offset + length * self._row_bytes:
            raise UserError(
                f"{path}: ends after {max(0, size - offset) // max(1, self._row_bytes):,} rows, but its header tells of "
                f"{length:,}; it was not written to its end: write it again"
            )

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
        for first, last in zip([0, *apart.tolist()], [*apart.tolist(), len(ordered)], strict=True):
            while first < last:
                low = int(ordered[first])
                end = first + int(np.searchsorted(ordered[first:last], low + longest))
                run = self._read(low, int(ordered[end - 1]) + 1 - low)
                out[order[first:end]] = run[ordered[first:end] - low]
                first = end
        return finite(out, indices, self.name)

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start in _starts(len(self), size):
            block = np.array(self._read(start, min(size, len(self) - start)), np.float64, order="C")
            yield start, finite(block, start, self.name)

    def _read(self, start: int, count: int) -> np.ndarray:
        """So many rows from one on, as they are in the file; in the columns that were chosen."""
        raw = bytearray(count * self._row_bytes)
        view, done = memoryview(raw), 0
        try:
            while done < len(raw):
                part = self._read_at(view[done:], self.offset + start * self._row_bytes + done)
                if part == 0:
                    raise UserError(f"{self.path}: became shorter while it was read; let nothing write to it meanwhile")
                done += part
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}") from None
        table = np.frombuffer(raw, self.kind).reshape(count, self.width)
        return table if self.columns is None else table[:, self.columns]

    def _read_at(self, into: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [into], offset)
        with self._lock:  # Windows
            self._file.seek(offset)
            return self._file.readinto(into)


def _of_file(path: Path, columns: Sequence[str | int] | None) -> Rows:
    if not path.exists():
        raise UserError(f"{path}: there is no such file; give a .npy or Parquet file, or a folder of Parquet files")
    if path.suffix.lower() == ".npy":
        return _of_npy(path, columns)
    raise UserError(f"{path}: is no kind of file that can be read in parts; give .npy")


def _of_npy(path: Path, columns: Sequence[str | int] | None) -> Rows:
    try:
        with path.open("rb") as file:
            major, minor = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
            shape, fortran, kind = read(file)
            offset = file.tell()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path}: is no .npy file ({str(error).splitlines()[0]}); write it with numpy.save") from None
    _need_table(shape, kind, str(path))
    if fortran and 1 not in shape:
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


# ---------------------------------------------------------------------------------------------------------- checks


def finite(x: np.ndarray, where: np.ndarray | int, name: str) -> np.ndarray:
    """x as it is.  Raises UserError with the row's number, counted from 0, if it holds a NaN or an infinity.

    where: the rows' positions, or that of the first.
    """
    # a sum is finite only if all are, or sums overflow: then look at each
    if np.isfinite(x.sum()) or np.isfinite(x).all():
        return x
    i, j = map(int, np.argwhere(~np.isfinite(x))[0])
    row = where + i if isinstance(where, int) else int(where[i])
    raise UserError(f"{name}, row {row:,}: column {j} is {x[i, j]}; remove the row, or fill the cell, before")


def _need_table(shape: Sequence[int], kind: np.dtype, name: str) -> None:
    if len(shape) != 2:
        raise UserError(f"{name}: has {len(shape)} dimensions; rows and columns are wanted, (rows, {'…'})")
    if kind.kind not in "fiub":
        raise UserError(f"{name}: holds {kind}; it must hold real numbers, such as float32")
    if shape[1] < 1:
        raise UserError(f"{name}: has no columns; give it one for each input")


def _positions(columns: Sequence[str | int], width: int, name: str) -> list[int]:
    """Columns by position, or what counts from the end if below 0."""
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


def _starts(count: int, size: int) -> range:
    if size < 1:
        raise UserError(f"a block of {size} rows was asked for; it must be 1 or more")
    return range(0, count, size)
