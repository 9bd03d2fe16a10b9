"""What ``pykernel convert`` does: a table as an array on disk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pykernel.cli import output
from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.host.samples import Cells, read_cells, read_numbers
from pykernel.rows import TABLES, as_rows, finite, save_rows, table_columns
from pykernel.workflows.given import opened

Converted = tuple[list[str], int, int]
"""Names of the columns written, rows written, and rows left out."""


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
    return names or [str(j) for j in range(source.dim)], len(source), 0


def convert_csv(data: str, out: Path, wanted: Sequence[str], kind: np.dtype, as_json: bool) -> Converted:
    """Convert a CSV file.  Without ``wanted``, the columns whose first 4,096 cells are numbers are written."""
    header: list[str] = []

    def choose(found: list[str]) -> list[str]:
        header.extend(wanted or filter(None, found))
        return header

    places: list[int] = []
    names, rows, without = list(wanted), 0, 0
    with opened(data, output.Printing(as_json)) as (source, file, show), whole_file(out) as target:
        for cells in read_cells(file, source, choose, "a,b"):
            if not places:
                places = [j for j in range(len(header)) if wanted or all(_is_number(row[j]) for row in cells.rows)]
                names = [header[j] for j in places]
                if not names:
                    raise UserError(f"{source}: has no column with numbers; give a file that has some")
                target.write(_header(kind, 0, len(names)))
            numbers = _whole_rows(cells, places, names, source, kind)
            target.write(numbers.tobytes())
            rows += len(numbers)
            without += len(cells.rows) - len(numbers)
            show(cells.position, f"reading {source}")
        if not rows:
            raise UserError(f"{source}: has no row with all cells; fill them, or choose --columns")
        target.seek(0)
        target.write(_header(kind, rows, len(names)))
    return names, rows, without


def _whole_rows(cells: Cells, places: Sequence[int], names: Sequence[str], source: str, kind: np.dtype) -> np.ndarray:
    """The numbers of the rows without empty cells."""
    picked = (tuple(row[j] for j in places) for row in cells.rows)
    kept = [(line, row) for line, row in zip(cells.lines, picked, strict=True) if all(map(str.strip, row))]
    if not kept:
        return np.empty((0, len(names)), kind)
    lines, rows = map(list, zip(*kept, strict=True))
    numbers = read_numbers(rows, lines, source, names, 0)
    with np.errstate(over="ignore"):
        narrow = numbers.astype(kind)
    finite(narrow, np.array(lines), f"{source}, as {kind}, line of")
    return narrow


def _is_number(cell: str) -> bool:
    if not cell.strip():
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _header(kind: np.dtype, rows: int, width: int) -> bytes:
    """The header of an .npy file.  Its length does not depend on ``rows``."""
    text = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(text, described)
    return text.getvalue()
