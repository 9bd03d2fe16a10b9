"""Run ``pykernel table``: write a table as an array on disk, or as a table with only numbers."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pykernel.errors import UserError, did_you_mean, shown_option
from pykernel.files import all_or_none, bytes_of, need_free, whole_file
from pykernel.report.document import Facts, Found, document_of_parts
from pykernel.request.kinds import numbers, words
from pykernel.rows import TABLES, TEXTS, as_rows, finite, save_rows, table_columns
from pykernel.rows.arrays import Part
from pykernel.rows.columns import NUMBERS, Column, Columns
from pykernel.rows.text import read_parts
from pykernel.spec.sections import shown_value
from pykernel.telling import Watch
from pykernel.tuning.notes import Code, Notes, Origin, notes, notes_of
from pykernel.tuning.tables import WholeTable, few_words, is_word, moment, read_columns
from pykernel.workflows.arguments import opened, write_file
from pykernel.workflows.record import is_recording, record
from pykernel.workflows.requests import TableOf

Converted = tuple[dict[str, Any], int]
"""A description of the table as it was read (its inputs are the written columns), and the number of written rows."""


def run(request: TableOf) -> Found:
    """Run ``pykernel table``."""
    data, out, columns, precision = str(request.data), Path(request.output), words(request.inputs), request.precision
    need_free(out, data, request.force)
    if is_recording(data):
        return record(request, out)
    to_text, text = out.suffix.lower() == ".csv", data == "-" or Path(data).suffix.lower() in TEXTS
    if to_text:
        need_free(notes_of(out), data, request.force)
        if not text:
            raise UserError(
                f"{data}: is not a text table, such as CSV, and no frame of a recorder was found in it; if it is a recording, was the "
                f"baud rate right? any other table needs {shown_option('output')} with a name that ends with .npy"
            )
        if request.like is not None and (columns or request.label is not None):
            raise UserError(
                f"{shown_option('like')} decides which columns are written; leave {shown_option('inputs')} and {shown_option('label')} out"
            )
        like = None if request.like is None else Path(request.like)
        codes = [] if request.codes is None else numbers(request.codes, "codes")
        if not all(map(math.isfinite, codes)):
            raise UserError(f"{shown_option('codes')} is {request.codes}; give only finite numbers")
        read, origins = prepare_table(data, out, columns, request.label, request.watch, like, codes)
        made = {new: origin.how for new, origin in origins.items() if origin.how != new}
        report = {"output": str(out), "rows": read["rows"], "made": made, "notes": str(notes_of(out)), "data": read}
        file = f"{out}, {read['rows']:,} rows; the device must compute its inputs in the same way"
        noted = f"{notes_of(out)}; plan and fit read this file, so that their specs and headers say how inputs are made"
        facts = [*(("made", f"{each} = {how}") for each, how in made.items()), ("file", file), ("notes", noted)]
        return Found(report, document_of_parts(Facts(facts)))
    for name in ("like", "label", "codes"):
        if getattr(request, name) is not None:
            raise UserError(
                f"{shown_option(name)} is for a .csv file, but {out} is not one; leave {shown_option(name)} out"
            )
    read, rows = (convert_csv if text else convert_table)(data, out, columns, np.dtype(precision), request.watch)
    names = read["inputs"]
    columned = ", ".join(f"{j}: {each}" for j, each in enumerate(names))
    file = f"{out}, {rows:,} rows of {precision}, {out.stat().st_size:,} bytes"
    report = {"output": str(out), "rows": rows, "columns": names, "precision": precision, "data": read}
    return Found(report, document_of_parts(Facts([("columns", columned), ("file", file)])))


def convert_table(data: str, out: Path, wanted: Sequence[str], kind: np.dtype, watch: Watch) -> Converted:
    """Convert a Parquet, Arrow or .npy file, whose rows are read in parts."""
    path = Path(data)
    named = path.is_dir() or path.suffix.lower() in TABLES
    names = list(wanted) or ([each for each, numeric in table_columns(path) if numeric] if named else [])
    if named and not names:
        raise UserError(f"{data}: has no column with numbers; give a file with at least one")
    source = as_rows(path, list(names) if names else None)
    with watch.progress() as show:
        save_rows(source, out, kind, lambda done, of: show(done / of, f"writing {out}"))
    seen = Columns()
    seen.begin(data, names or [str(j) for j in range(source.dim)])
    seen.rows = len(source)
    return seen.report(), len(source)


def convert_csv(data: str, out: Path, wanted: Sequence[str], kind: np.dtype, watch: Watch) -> Converted:
    """Convert a CSV file.  Without ``wanted``, the columns that hold numbers in the first 4,096 rows are written.

    ``Column.holds_numbers`` says whether a column holds numbers.
    """
    header: list[str] = []

    def choose(columns: list[str]) -> dict[str, str]:
        header.extend(wanted or filter(None, columns))
        return dict.fromkeys(header, "numbers")

    names: list[str] = []
    seen, without = Columns(), 0
    with opened(data, watch) as (source, file, show), whole_file(out) as target:
        for part in read_parts(file, source, choose, "a,b"):
            if not names:
                names = [each for each in header if wanted or _holds_numbers(source, each, part)]
                if not names:
                    raise UserError(f"{source}: has no column with numbers; give a file with at least one")
                seen.begin(source, names)
                target.write(_header(kind, 0, len(names)))
            numbers = seen.read(part)
            whole = ~np.isnan(numbers).any(axis=1)
            with np.errstate(over="ignore"):
                narrow = numbers[whole].astype(kind)
            finite(narrow, np.array(part.lines)[whole], f"{source}, as {kind}, line of")
            target.write(narrow.tobytes())
            without += len(numbers) - len(narrow)
            show(part.position, f"reading {source}")
        seen.end()
        rows = seen.rows - without
        if not rows:
            raise UserError(
                f"{source}: every row lacks a cell; fill the gaps, or use {shown_option('inputs')} to choose columns without gaps"
            )
        target.seek(0)
        target.write(_header(kind, rows, len(names)))
    left = [{"column": each, "why": "other", "such_as": "", "words": []} for each in header if each not in seen.columns]
    read = seen.report(left_out=left, missing={"rows": without, "then": "left out"} if without else None)
    watch.data(read)
    return read, rows


def _holds_numbers(source: str, name: str, part: Part) -> bool:
    column = Column(source, name, named=False)
    column.read(part.columns[name], part.lines)
    return column.holds_numbers


def _header(kind: np.dtype, rows: int, width: int) -> bytes:
    """Return the header of an .npy file.  The header's length does not depend on ``rows``."""
    text = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(text, described)
    return text.getvalue()


# ------------------------------------------------------------------------------------------------- a table of numbers


def prepare_table(
    data: str,
    out: Path,
    wanted: Sequence[str],
    label: str | None,
    watch: Watch,
    like: Path | None = None,
    codes: Sequence[float] = (),
) -> tuple[dict[str, Any], dict[str, Origin]]:
    """Write a text table with only numbers.  The table is made in memory.

    A column with few different words becomes one column of 0 and 1 for each word, and times become phases of the day and the week.
    Constants are left out.  A cell is empty if its value is missing or a sentinel.
    label: a column that is written unchanged, as the last column.  like: a table that this function wrote earlier; the new
    table gets the same columns.  codes: further numbers that stand for a missing value.
    Also writes the notes that ``notes.noted`` reads.  Returns a description of the table as it was read, and the columns' origins.
    """
    first = None if like is None else _first(like)
    with opened(data, watch) as (source, file, show):
        known = [] if first is None else [code.value for code in first.sentinels]
        read = read_columns(file, source, show, (), label, label is not None, known, "text")
    emptied = list(read.without(codes))
    if first is not None and first.label in read.columns:  # a later recording may have no label
        label = first.label
    for each in wanted:
        if each not in read.columns:
            remedy = did_you_mean(each, read.columns, f"there are: {', '.join(read.columns)}")
            raise UserError(f"{shown_option('inputs')} {each} is not known in {source}; {remedy}")
    if first is None:
        names = [each for each in wanted or read.columns if each != label]
        made = _origins(read, names)
        if not made:
            raise UserError(
                f"{source}: has no column from which a model could learn; give a file that has such columns"
            )
    else:
        made = first.made
        names = list(dict.fromkeys(origin.column for origin in made.values()))
        for each in names:
            if each not in read.columns:
                raise UserError(
                    f"{source}: has no column {each!r}, from which {like} was made; give a table with the same columns"
                )
    columns = {new: _cells(read, origin) for new, origin in made.items()}
    if label is not None:
        columns[label] = read.label_cells(label)
    report = read.report(names, label, False)
    kept = {origin.column for origin in made.values()}
    report["left_out"] = [read.left_out(each) for each in names if each not in kept]
    for each in report["sentinels"]:
        each["then"] = "emptied" if each["then"] == "missing" else each["then"]
    report["sentinels"] += emptied
    report["outlying"] = [each for each in report["outlying"] if each["value"] not in codes]
    gone = [Code(**each) for each in report["sentinels"] if each["then"] == "emptied"]
    if first is not None:
        gone = _emptied(first, made, columns, gone)
        _tell_unknown(read, made, like, watch)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    gaps = sum("" in row for row in zip(*(columns[each] for each in made), strict=True))
    report["missing"] = {"rows": gaps, "then": "emptied"} if gaps else None
    with all_or_none(out.parent):
        write_file(out, text.getvalue())
        write_file(notes_of(out), notes(text.getvalue(), made, label, gone))
    watch.data(report)
    return report, made


def _first(table: Path) -> Notes:
    """Read the notes on a table that ``pykernel table`` has written."""
    try:
        return Notes.model_validate_json(bytes_of(notes_of(table), NOTES_MOST))
    except (OSError, ValueError):
        raise UserError(
            f"{table}: its notes, {notes_of(table).name}, are missing or cannot be read; give a table that pykernel table wrote"
        ) from None


def _emptied(
    first: Notes, made: Mapping[str, Origin], columns: dict[str, list[str]], codes: Sequence[Code]
) -> list[Code]:
    """Clear the cells of the new table that hold a code of the first table.  Returns the codes of both tables.

    A code, or sentinel, is a number that stands for a missing value.
    """
    for code in first.sentinels:
        for new in (new for new, origin in made.items() if origin == Origin(column=code.column)):
            columns[new] = ["" if cell and float(cell) == code.value else cell for cell in columns[new]]
    known = {(code.column, code.value) for code in first.sentinels}
    return [*first.sentinels, *(code for code in codes if (code.column, code.value) not in known)]


def _tell_unknown(read: WholeTable, made: Mapping[str, Origin], like: Path | None, watch: Watch) -> None:
    """Warn about words that the first table does not contain.

    In rows with such a word, all columns made from the word's column are 0, a case that no model has learned.
    """
    known: dict[str, set[str]] = {}
    for origin in made.values():
        if origin.word is not None:
            known.setdefault(origin.column, set()).add(origin.word)
    for column, old in known.items():
        cells = read.cells(column)
        new = [cell for cell in cells if is_word(cell) and cell not in old]
        if new:
            watch.warn(
                f"{like} has no column for some words of {column} ({len(new):,} of {len(cells):,} cells), such as "
                f"{shown_value(new[0])}: in these rows, all columns made from {column} are 0, a case that no model has learned"
            )


def _free(name: str, taken: Container[str]) -> str:
    """Return the name, with a number if another column has the same name."""
    numbered = (f"{name}_{n}" for n in itertools.count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _origins(read: WholeTable, names: Sequence[str]) -> dict[str, Origin]:
    """Return the columns that are made from a table's columns, as a dict: name -> origin."""
    made: dict[str, Origin] = {}
    for name in names:
        for each, origin in _origins_of(read, name):
            made[_free(each, made)] = origin
    return made


def _origins_of(read: WholeTable, name: str) -> Iterator[tuple[str, Origin]]:
    """Yield names and origins of the columns made from a column; none if a model could not learn anything from this column."""
    values = read.numeric.get(name)
    if values is not None:
        if np.ptp(values[np.isfinite(values)]) > 0:
            yield name, Origin(column=name)
        return
    why = read.left_out(name)
    for word in (few_words(read.cells(name)) or ()) if why["words"] else ():
        yield f"{name}_{re.sub('[^0-9A-Za-z]+', '_', word)}", Origin(column=name, word=word)
    if why["why"] != "time":
        return
    moments = [moment(cell) for cell in read.cells(name)]
    if sum(each is not None for each in moments) < NUMBERS * sum(map(is_word, read.cells(name))):
        return
    latest = max((each for each in moments if each is not None), default=0.0)
    for period in PERIODS if latest >= 1 else ("day",):
        for wave in ("sin", "cos"):
            origin = Origin(column=name, wave=wave, period=period)
            if len({*_cells(read, origin)} - {""}) > 1:
                yield f"{name}_{period}_{wave}", origin


def _cells(read: WholeTable, origin: Origin) -> list[str]:
    """Return the cells of a new column."""
    cells = read.cells(origin.column)
    if origin.word is not None:
        return [str(int(cell == origin.word)) if is_word(cell) else "" for cell in cells]
    if origin.wave is not None:
        wave, days = getattr(math, origin.wave), PERIODS[origin.period]
        moments = [moment(cell) for cell in cells]
        return ["" if each is None else f"{wave(2 * math.pi * each / days):.6f}" for each in moments]
    values = read.numeric.get(origin.column)
    if values is None:
        if any(map(is_word, cells)):
            raise UserError(
                f"{read.name}: column {origin.column!r} holds words, but it held numbers in the first table"
            )
        return [""] * len(cells)
    return [cell if there else "" for cell, there in zip(cells, np.isfinite(values), strict=True)]


PERIODS: dict[Literal["day", "week"], float] = {"day": 1.0, "week": 7.0}
"""Period -> its number of days."""
NOTES_MOST = 2**24
"""Largest number of bytes that are read from a table's notes."""
