"""What ``pykernel convert`` does: a table as an array on disk."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Container, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.cli import output
from pykernel.errors import UserError
from pykernel.files import all_or_none, whole_file
from pykernel.rows import TABLES, as_rows, finite, save_rows, table_columns
from pykernel.rows.columns import NUMBERS, Column, Columns
from pykernel.rows.text import Cells, read_cells
from pykernel.tuning.tables import TextTable, few_words, is_word, notes, notes_of, read_columns
from pykernel.workflows.given import need_known, opened, write_file

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
    left = [{"column": each, "why": "other", "such_as": "", "words": []} for each in header if each not in seen.columns]
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


# ------------------------------------------------------------------------------------------------- a table of numbers

Made = dict[str, dict[str, str]]
"""Columns of a table -> the columns that were made of each -> how the device makes the same."""


def prepare_table(
    data: str, out: Path, wanted: Sequence[str], label: str | None, as_json: bool
) -> tuple[dict[str, Any], Made]:
    """Write a table of text whose columns are numbers, in memory: of few words one column each, 0 or 1; of times the phases
    of day and week; without constants, and with empty cells where a value is missing, or where a sentinel is.

    label: a column that is written as it is, as the last one.  Beside the table lies what ``tables.noted`` reads.  Returns what was
    read, and what became of each column.
    """
    watch = output.Printing(as_json)
    with opened(data, watch) as (source, file, show):
        read = read_columns(file, source, show, (), label, labelled=label is not None)
    for each in wanted:
        need_known(each, list(read.cells), "columns", f" in {source}")
    made: Made = {}
    columns: dict[str, list[str]] = {}
    left: list[dict[str, Any]] = []
    names = [each for each in wanted or read.cells if each != label]
    for name in names:
        found = _inputs_of(read, name)
        if not found:
            left.append(read.left_out(name))
        made[name] = {}
        for each, (cells, how) in found.items():
            new = _free(each, columns)
            columns[new], made[name][new] = cells, how
    if label is not None:
        columns[label] = read.label_cells(label)
    if not any(made.values()):
        raise UserError(f"{source}: has no column from which a model could learn; give a file that has some")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    report = read.report(names, label, False) | {"left_out": left}
    for each in report["sentinels"]:
        each["then"] = "emptied" if each["then"] == "missing" else each["then"]
    gaps = sum("" in row for row in zip(*(columns[each] for new in made.values() for each in new), strict=True))
    report["missing"] = {"rows": gaps, "then": "emptied"} if gaps else None
    made = {name: new for name, new in made.items() if new and [*new] != [name]}
    with all_or_none(out.parent):
        write_file(out, text.getvalue())
        write_file(
            notes_of(out), notes(text.getvalue(), {k: v for new in made.values() for k, v in new.items()}, report)
        )
    watch.data(report)
    return report, made


def _free(name: str, taken: Container[str]) -> str:
    """The name, with a number if another column has it."""
    numbered = (f"{name}_{n}" for n in itertools.count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _inputs_of(read: TextTable, name: str) -> dict[str, tuple[list[str], str]]:
    """The columns of numbers that are made of a column, as text, and how; none if there is nothing to learn from."""
    cells, values = [cell.strip() for cell in read.cells[name]], read.numeric.get(name)
    if values is not None:
        gone = ~np.isfinite(values)
        if np.ptp(values[~gone]) == 0:
            return {}
        return {name: (["" if each else cell for cell, each in zip(cells, gone, strict=True)], name)}
    why = read.left_out(name)
    if why["words"]:
        found: dict[str, tuple[list[str], str]] = {}
        for word in few_words(cells) or ():
            short = re.sub(r"[^0-9A-Za-z]+", "_", word)
            texts = [str(int(cell == word)) if is_word(cell) else "" for cell in cells]
            found[_free(f"{name}_{short}", found)] = texts, f"1 where {name} is {word!r}, else 0"
        return found
    if why["why"] != "time":
        return {}
    moments = [_moment(cell) for cell in cells]
    if sum(each is not None for each in moments) < NUMBERS * sum(map(is_word, cells)):
        return {}
    found = {}
    latest = max(filter(None, moments), default=0.0)
    for which, period, since in (("day", 1.0, "midnight"), ("week", 7.0, "Monday, 0:00")):
        for wave in ("sin", "cos"):
            phases = [None if each is None else getattr(math, wave)(2 * math.pi * each / period) for each in moments]
            texts = ["" if each is None else f"{each:.6f}" for each in phases]
            if len({*texts} - {""}) > 1 and (which == "day" or latest >= 1):
                how = f"{wave}(2 pi s / {86400 * period:.0f}), s the seconds since {since}, of {name}"
                found[f"{name}_{which}_{wave}"] = texts, how
    return found


DAYS, CLOCKS = ("%d.%m.%Y", "%Y/%m/%d"), ("%H:%M:%S", "%H:%M")
MOMENTS = ("", *(f"{day} {clock}" for day in DAYS for clock in CLOCKS), *DAYS, *CLOCKS)
"""Formats of dates and times that tell day and month apart; first that of ISO."""


def _moment(cell: str) -> float | None:
    """Days since a Monday, of a date or a time; None if it is in no known format."""
    text = cell.strip().removesuffix("Z")
    for kind in MOMENTS:
        try:
            at = datetime.strptime(text, kind) if kind else datetime.fromisoformat(text)
        except ValueError:
            continue
        days = at.toordinal() - 1 if "Y" in kind or not kind else 0  # day 1 of the calendar was a Monday
        return days + (at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6) / 86400
    return None
