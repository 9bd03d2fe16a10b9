"""What ``pykernel convert`` does: a table as an array on disk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.cli import output
from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.rows import TABLES, as_rows, finite, save_rows, table_columns
from pykernel.rows.columns import Column, Columns
from pykernel.rows.text import Cells, read_cells
from pykernel.workflows.given import opened

Converted = tuple[dict[str, Any], int]
"""What was read, as plain values, with the columns that were written as inputs; and how many rows were written."""


def convert_table(data: str, out: Path, wanted: Sequence[str], kind: np.dtype, as_json: bool) -> Converted:
    """Convert a Parquet, Arrow or .npy file, whose rows are read in parts."""
    path = Path(data)
    named = path.is_dir() or path.suffix.lower() in TABLES
    names = list(wanted) or ([each for each, numeric in table_columns(path) if numeric] if named else [])
    if named and not names:
        raise UserError(f"{data}: has no column with numbers; give a file that has some")
    source = as_rows(path, list(names) if names else None)
    with output.Printing(as_json).progress() as show:
        save_rows(source, out, kind, lambda done, of: show(done / of, f"writing {out}"))
    seen = Columns()
    seen.begin(data, names or [str(j) for j in range(source.dim)])
    seen.rows = len(source)
    return seen.report(), len(source)


def convert_csv(data: str, out: Path, wanted: Sequence[str], kind: np.dtype, as_json: bool) -> Converted:
    """Convert a CSV file.  Without ``wanted``, the columns whose first 4,096 cells are numbers are written."""
    header: list[str] = []

    def choose(found: list[str]) -> list[str]:
        header.extend(wanted or filter(None, found))
        return header

    places: list[int] = []
    seen, without, watch = Columns(), 0, output.Printing(as_json)
    with opened(data, watch) as (source, file, show), whole_file(out) as target:
        for cells in read_cells(file, source, choose, "a,b"):
            if not places:
                places = [j for j in range(len(header)) if wanted or _holds_numbers(source, header[j], cells, j)]
                if not places:
                    raise UserError(f"{source}: has no column with numbers; give a file that has some")
                seen.begin(source, [header[j] for j in places])
                target.write(_header(kind, 0, len(places)))
            numbers = seen.read([tuple(row[j] for j in places) for row in cells.rows], cells.lines)
            whole = ~np.isnan(numbers).any(axis=1)
            with np.errstate(over="ignore"):
                narrow = numbers[whole].astype(kind)
            finite(narrow, np.array(cells.lines)[whole], f"{source}, as {kind}, line of")
            target.write(narrow.tobytes())
            without += len(numbers) - len(narrow)
            show(cells.position, f"reading {source}")
        seen.end()
        rows = seen.rows - without
        if not rows:
            raise UserError(f"{source}: has no row with all cells; fill them, or choose --columns")
        target.seek(0)
        target.write(_header(kind, rows, len(places)))
    left = [{"column": each, "why": "words", "such_as": "", "words": []} for each in header if each not in seen.columns]
    read = seen.report(left_out=left, missing={"rows": without, "then": "left out"} if without else None)
    watch.data(read)
    return read, rows


def _holds_numbers(source: str, name: str, cells: Cells, j: int) -> bool:
    column = Column(source, name, named=False)
    column.read([row[j] for row in cells.rows], cells.lines)
    return column.holds_numbers


def _header(kind: np.dtype, rows: int, width: int) -> bytes:
    """The header of an .npy file.  Its length does not depend on ``rows``."""
    text = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(text, described)
    return text.getvalue()
