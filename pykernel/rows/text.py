"""Tables of text: their cells, read in batches of rows, so that a table may be larger than memory."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, BinaryIO

from pykernel.errors import MissingExtra, UserError, nearest

BATCH = 4096
"""Rows read and run at a time."""
LINE_LIMIT = 2**20
"""Most bytes in a line."""
BINARIES = (b"PAR1", b"ARROW1")
"""How files of Parquet and Arrow begin."""
COMPRESSED = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9]1AY&SY": "bzip2",
    rb"\xfd7zXZ": "xz",
    rb"\(\xb5/\xfd": "Zstandard",
    rb"PK\x03\x04": "ZIP",
}
"""How compressed files begin.  A spreadsheet is a ZIP file, too."""
NO_ROWS = "holds a header but no rows; give it one row for each sample"

SEPARATORS = {"\t": "a tab", ";": "a semicolon", ",": "a comma"}
"""Separators between the cells of a table."""
SEP_LINE = re.compile(r'"?sep=([\t;,])"?\s*')
"""A line before the header, for Excel."""
DECIMAL = re.compile(r"\s*[+-]?(?=[.,]?[0-9])[0-9]*([.,])[0-9]*(?:[eE][+-]?[0-9]+)?\s*")
"""A number with a decimal mark."""


@dataclass(frozen=True)
class Cells:
    """Consecutive rows of a file: the chosen cells of each, the lines where they end, and the bytes read so far."""

    rows: list[tuple[str, ...]]
    lines: list[int]
    position: int


def read_cells(
    file: BinaryIO,
    name: str,
    choose: Callable[[list[str]], Sequence[str]],
    example: str,
    rows: int = BATCH,
    words: Collection[str] = (),
) -> Iterator[Cells]:
    """Batches of at most ``rows`` rows, as text, with the columns that ``choose`` selects from the header.

    Every table with a header is read by this function, also Parquet and Arrow, by what the file begins with: their numbers become
    text that reads back to the same bits, nulls become empty cells, and rows, counted from 1, stand for lines.  Of text the separator
    is the character among comma, semicolon and tab that the header line has most often.  If it is not the comma, numbers may have
    decimal commas, which become points, except in the columns ``words``.  Spaces around cells, quotes and a byte order mark are ignored.
    example: a header line, to be shown in the message if the file has none.
    """
    if _is_binary(file, name):
        yield from _of_arrow(file, name, choose, rows)
        return
    lines, records, names, separator = _begun(file, name, example)
    wanted = choose(names)
    positions = _positions(names, f"{name}, line {lines.number}", wanted)
    # itemgetter of one column is not a tuple
    pick = itemgetter(*positions) if len(positions) > 1 else itemgetter(slice(positions[0], positions[0] + 1))
    decimals = None if separator == "," else _Decimals(name, wanted, words)
    cells: list[tuple[str, ...]] = []
    numbers: list[int] = []
    empty = True

    def batch() -> Cells:
        return Cells(cells if decimals is None else decimals.as_points(cells, numbers), numbers, lines.position)

    for record in records:
        if len(record) != len(names):
            raise UserError(
                f"{name}, line {lines.number}: has {len(record)} cells, but the header names {len(names)} columns; "
                f"give each row a cell for each column, and quote cells that hold {SEPARATORS[separator]}"
            )
        cells.append(tuple(pick(record)))
        numbers.append(lines.number)
        if len(cells) == rows:
            yield batch()
            cells, numbers, empty = [], [], False
    if cells:
        yield batch()
    elif empty:
        raise UserError(f"{name}: {NO_ROWS}")


def column_names(file: BinaryIO, name: str) -> list[str]:
    """The columns of a table with a header, as ``read_cells`` finds them."""
    return (
        arrow_module(name).CellsOf(file, name).header if _is_binary(file, name) else _begun(file, name, "a,b,label")[2]
    )


def _begun(file: BinaryIO, name: str, example: str) -> tuple[_Lines, Iterator[list[str]], list[str], str]:
    """A table of text up to its header: its lines, the records behind the header, the columns' names, and the separator."""
    lines = _Lines(file, name)
    first = next(filter(str.strip, lines), "")
    found = SEP_LINE.fullmatch(first)
    if found:
        first = next(filter(str.strip, lines), "")
    separator = found[1] if found else _separator(first)
    reader = csv.reader(itertools.chain([first], lines), delimiter=separator, skipinitialspace=True, strict=True)
    records = _records(reader, lines)
    header = next(records, None)
    if header is None:
        raise UserError(f"{name}: is empty; its first line must name the columns, such as {example[:80]}")
    return lines, records, [cell.strip() for cell in header], separator


def _is_binary(file: BinaryIO, name: str) -> bool:
    """Whether the file begins as Parquet or Arrow do.  A file that cannot be looked into is text.

    Raises UserError for a compressed file.
    """
    try:
        head = file.peek(16) if hasattr(file, "peek") else b""
    except OSError:  # reading it will say why
        head = b""
    kind = next((kind for begin, kind in COMPRESSED.items() if re.match(begin, head)), None)
    if kind is not None:
        raise UserError(f"{name}: is compressed ({kind}); decompress it, or save it as CSV")
    return head.startswith(BINARIES)


def arrow_module(name: str) -> Any:
    """What reads Parquet and Arrow.  Raises MissingExtra.  name: the file's, or words for it."""
    try:
        from pykernel.rows import arrow
    except ImportError:
        raise MissingExtra(f"{name}: reading Parquet and Arrow", "arrow") from None
    return arrow


def _of_arrow(file: BinaryIO, name: str, choose: Callable[[list[str]], Sequence[str]], rows: int) -> Iterator[Cells]:
    source, done = arrow_module(name).CellsOf(file, name), 0
    wanted = choose(source.header)
    _positions(source.header, name, wanted)
    for cells, position in source.batches(wanted, rows):
        yield Cells(cells, list(range(done + 1, done + 1 + len(cells))), position)
        done += len(cells)
    if not done:
        raise UserError(f"{name}: {NO_ROWS}")


def _separator(header: str) -> str:
    """The separator that the header line has most often outside of quotes.

    A comma can also be part of a name or number.
    """
    plain = re.sub(r'"[^"]*"', "", header)
    return max((each for each in SEPARATORS if each in plain), key=plain.count, default=",")


class _Decimals:
    """Numbers of a file whose separator is not the comma: they have decimal commas or decimal points, but not both."""

    def __init__(self, name: str, columns: Sequence[str], words: Collection[str]) -> None:
        self.name, self.columns, self.words = name, columns, words
        self.mark = ""  # the file's decimal mark, as soon as a number had one

    def as_points(self, cells: list[tuple[str, ...]], lines: list[int]) -> list[tuple[str, ...]]:
        text = "".join(map("".join, cells))
        if "," not in text and (self.mark == "." or "." not in text):
            return cells
        return [
            tuple(map(self._cell, row, self.columns, itertools.repeat(line)))
            for row, line in zip(cells, lines, strict=True)
        ]

    def _cell(self, cell: str, column: str, line: int) -> str:
        found = DECIMAL.fullmatch(cell) if "," in cell or "." in cell else None
        if found is None or column in self.words:
            return cell
        self.mark = self.mark or found[1]
        if found[1] != self.mark:
            called = {".": "point", ",": "comma"}[self.mark]
            raise UserError(
                f"{self.name}, line {line}: column {shown_cell(column)} is {shown_cell(cell)}, but numbers before it have a "
                f"decimal {called}; write all numbers with the same decimal mark, and without a separator of thousands"
            )
        return cell.replace(",", ".")


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


def _records(reader: Any, lines: _Lines) -> Iterator[list[str]]:
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
        raise UserError(f"{lines.name}, line {lines.number}: {what}") from None


class NoColumn(UserError):
    """A table lacks a column."""

    def __init__(self, sentence: str, column: str) -> None:
        super().__init__(sentence)
        self.column = column


def _positions(header: Sequence[str], where: str, wanted: Sequence[str]) -> list[int]:
    """Where each wanted column is."""
    times, places = Counter(header), {column: at for at, column in enumerate(header)}
    for column in wanted:
        if times[column] > 1:
            raise UserError(f"{where}: names the column {shown_cell(column)} {times[column]} times; rename all but one")
        if column not in places:
            raise NoColumn(f"{where}: names no column {shown_cell(column)}; {_remedy(header, column)}", column)
    return [places[column] for column in wanted]


def _remedy(header: Sequence[str], column: str) -> str:
    if (near := nearest(column, header)) is not None:
        return f"did you mean {shown_cell(near)}?"
    if all(map(is_number, header)):
        return "it holds numbers; put a line with the columns' names before it"
    for separator, called in ((" ", "spaces"), ("|", "bars")):
        if len(header) == 1 and separator in header[0]:
            return f"its cells are separated by {called}; separate them by commas, semicolons or tabs"
    names = ", ".join(map(shown_cell, header[:12])) + (", ..." if len(header) > 12 else "")
    return f"it names {names}; name one of these, or change the header"


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def shown_cell(text: str) -> str:
    text = repr(text)
    return text if len(text) <= 60 else text[:57] + "..."
