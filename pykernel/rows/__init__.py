"""Rows of numbers that may not fit into memory: arrays, .npy files, Parquet and Arrow, all read in the same way.

    rows = as_rows("measured.npy")
    len(rows), rows.dim
    rows.take([5, 17])             # (2, D) float64
    for start, block in rows.blocks(65_536):
        ...

Callers always get float64.  A row with a NaN or an infinity is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.rows.arrays import (
    CACHE_BYTES,
    ArrayRows,
    Rows,
    ScaledRows,
    SomeRows,
    each_row,
    finite,
    mapped_rows,
    npy_rows,
    save_rows,
)
from pykernel.rows.text import arrow_module

__all__ = [
    "TABLES", "TEXTS", "ArrayRows", "Rows", "ScaledRows", "SomeRows", "as_rows", "each_row", "finite", "save_rows",
    "table_columns",
]  # fmt: skip

TEXTS = (".csv", ".tsv")
"""File name endings of text tables."""
PARQUET = (".parquet", ".pq")
TABLES = (*PARQUET, ".arrow", ".feather", ".ipc")
"""File name endings of Parquet and Arrow tables."""
Source = Any
"""A source that ``as_rows`` takes: an array, np.memmap, a path, a pyarrow Table, or Rows."""


def as_rows(x: Source, columns: Sequence[str | int] | None = None, cache: int = CACHE_BYTES) -> Rows:
    """Return the rows of an array (l, D), a file, a folder of files, or a pyarrow Table.  A ``Rows`` object is returned
    unchanged.

    columns: the columns to use, in this order, given by position or, for Parquet and Arrow, also by name.  By default,
    all columns are used.  Numbers are converted to float64 when they are read.  Booleans become 0 and 1.

    Where the data stays, and the cost of random access, depend on the source:

    - an array (any real type): the data stays in memory, and is copied only if ``columns`` are given.
    - .npy, np.memmap: the data stays on disk.  ``take`` reads only the rows that it returns.  The file is read
      without memory mapping, so the system does not count its pages as this process's memory.  A file in column-major
      order is memory-mapped instead.  The ``columns`` of such a file, or of an np.memmap, are copied into memory.
    - Parquet (a file, or a folder's files in the order of their paths): the data stays on disk.  The smallest part
      that can be decoded is a row group, so ``take`` decodes each row group that it needs.  The most recently used row
      groups are kept, up to ``cache`` bytes.  A row group larger than ``cache`` is decoded again for each ``take``.
      For many random draws, a .npy file is faster (``save_rows``).
    - Arrow IPC (.arrow, .feather, .ipc, uncompressed): the file is memory-mapped.  ``take`` reads the pages that hold
      its rows.  The system counts these pages as this process's memory, and frees them when memory is needed.

    Raises UserError if the source cannot be read, or does not hold numbers.
    """
    if isinstance(x, (str, os.PathLike)):
        return _of_path(Path(x), columns, cache)
    if isinstance(x, np.memmap) and columns is None:
        file = mapped_rows(x)
        if file is not None:
            return file
    if type(x).__module__.split(".")[0] == "pyarrow":
        return arrow_module("the data").arrow_rows(x, columns)
    if not isinstance(x, np.ndarray) and isinstance(x, Rows):
        if columns is not None:
            raise UserError(
                "columns cannot be chosen from rows that are already open; choose them where the rows are opened"
            )
        return x
    return ArrayRows(x, columns)


def _of_path(path: Path, columns: Sequence[str | int] | None, cache: int) -> Rows:
    if not path.exists():
        raise UserError(
            f"{path}: there is no such file; give a .npy, Parquet or Arrow file, or a folder of Parquet files"
        )
    kind = path.suffix.lower()
    if path.is_dir() or kind in PARQUET:
        return arrow_module(str(path)).ParquetRows(_parquet_files(path), columns, str(path), cache)
    if kind == ".npy":
        return npy_rows(path, columns)
    if kind in TABLES:
        return arrow_module(str(path)).ArrowRows(path, columns, str(path))
    if kind in TEXTS:
        raise UserError(
            f"{path}: a text file gives no direct access to single rows; convert the file once, with: pykernel table {path} --output "
            f"{path.with_suffix('.npy')}"
        )
    raise UserError(f"{path}: cannot be read in parts; give a .npy, .parquet or .arrow file")


def table_columns(path: str | Path) -> list[tuple[str, bool]]:
    """Return (name, whether it holds numbers) for each column of a Parquet or Arrow file, or of a folder's first file."""
    path = Path(path)
    parquet = path.is_dir() or path.suffix.lower() in PARQUET
    return arrow_module(str(path)).column_kinds(_parquet_files(path)[0] if parquet else str(path), parquet)


def _parquet_files(path: Path) -> list[str]:
    """Return the file, or a folder's files in the order of their paths."""
    if not path.is_dir():
        return [str(path)]
    every = [each for each in path.rglob("*") if each.suffix.lower() in PARQUET]
    files = sorted(str(each) for each in every if not each.name.startswith((".", "_")))
    if not files:
        raise UserError(f"{path}: is a folder without .parquet files; give a folder that has some, or a file")
    return files
