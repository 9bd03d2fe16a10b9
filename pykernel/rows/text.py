"""Tables with a header (text, Parquet, Arrow or a recorder's frames), read in parts of rows, so that a table may be
larger than memory.
"""

from __future__ import annotations

import csv
import functools
import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import MissingExtra, UserError, nearest
from pykernel.rows.arrays import Cells, Part
from pykernel.rows.frames import FramedTable, is_framed

BATCH = 4096
"""Number of rows that are read and processed at a time."""
LINE_LIMIT = 2**20
"""Maximum length of a line in bytes."""
BINARIES = (b"PAR1", b"ARROW1")
"""The first bytes of Parquet and Arrow files."""
COMPRESSED = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9]1AY&SY": "bzip2",
    rb"\xfd7zXZ": "xz",
    rb"\(\xb5/\xfd": "Zstandard",
    rb"PK\x03\x04": "ZIP",
}
"""The first bytes of compressed files.  A spreadsheet is a ZIP file, too."""
GARBLED = "if it is a recording, no frame of a recorder was found in it: was the baud rate right?"
NO_ROWS = "holds a header but no rows; give it one row for each sample"

SEPARATORS = {"\t": "a tab", ";": "a semicolon", ",": "a comma"}
"""Separators between the cells of a table."""
SEP_LINE = re.compile(r'"?sep=([\t;,])"?\s*')
"""A line before the header that tells Excel the separator."""
DECIMAL = re.compile(r"\s*[+-]?(?=[.,]?[0-9])[0-9]*([.,])[0-9]*(?:[eE][+-]?[0-9]+)?\s*")
"""A number with a decimal mark."""

Choose = Callable[[list[str]], Mapping[str, str]]
"""A function that receives the names of all columns, and returns a dictionary that maps each requested column to the way
in which it is read: as "numbers", as "text", or as "words", in which a comma is not a decimal mark."""


def read_parts(file: BinaryIO, name: str, choose: Choose, example: str, rows: int = BATCH) -> Iterator[Part]:
    """Yield parts of at most ``rows`` rows, with the columns that ``choose`` selects from the header.

    This function reads all tables with a header; the first bytes decide the format.  In Parquet and Arrow, all values
    except numbers are converted to text, nulls become empty cells, and row numbers, counted from 1, replace line
    numbers.  In text, a line such as "sep=;" before the header gives the separator; without such a line, the separator
    is the comma, semicolon or tab that is most frequent in the header line.  If the separator is not the comma, numbers
    may have decimal commas, which become points.  Quotes, a byte order mark, and spaces around cells are ignored.
    example: a header line for the error message if the file has no header.
    """
    source, rows_of_parts = _source(file, name, example), 0
    kinds = choose(source.header)
    places = dict(zip(kinds, _positions(source.header, source.where, list(kinds)), strict=True))
    for part in source.parts(kinds, places, rows):
        yield part
        rows_of_parts += len(part.lines)
    if not rows_of_parts:
        raise UserError(f"{name}: {NO_ROWS}")


def column_names(file: BinaryIO, name: str) -> list[str]:
    """Return the columns of a table with a header, as ``read_parts`` finds them."""
    return list(_source(file, name, "a,b,label").header)


def _source(file: BinaryIO, name: str, example: str) -> Any:
    head = _head(file, name)
    if head.startswith(BINARIES):
        return arrow_module(name).ArrowTable(file, name)
    return FramedTable(file, name) if is_framed(head) else _TextTable(file, name, example)


class _TextTable:
    """A table of text, read up to its header.  where: the header's line, for messages.

    If the separator is not the comma, numbers have decimal commas or decimal points, but not both.  mark: the decimal
    mark; "" until a number with a decimal mark has been read.
    """

    def __init__(self, file: BinaryIO, name: str, example: str) -> None:
        self.name, self.lines, self.mark = name, _Lines(file, name), ""
        first = next(filter(str.strip, self.lines), "")
        found = SEP_LINE.fullmatch(first)
        if found:
            first = next(filter(str.strip, self.lines), "")
        self.separator = found[1] if found else _separator(first)
        self.records = _records(self._reader(itertools.chain([first], self.lines)), self.lines)
        header = next(self.records, None)
        if header is None:
            raise UserError(f"{name}: is empty; its first line must name the columns, such as {example[:80]}")
        self.header, self.where = [cell.strip() for cell in header], f"{name}, line {self.lines.number}"

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self.separator, skipinitialspace=True, strict=True)

    def parts(self, kinds: Mapping[str, str], places: Mapping[str, int], rows: int) -> Iterator[Part]:
        """Yield parts of at most ``rows`` rows, with the columns at ``places``."""
        while raw := self.lines.ahead(rows):
            first, lines = self.lines.number + 1, _decoded(raw)
            loaded = self._loaded(lines, kinds, places)
            records = [] if loaded else self._at_once(lines)
            if loaded or records:
                self.lines.skip()
                numbers: Sequence[int] = range(first, self.lines.number + 1)
            else:
                some = list(itertools.islice(self._one_by_one(), rows))
                records, numbers = [record for record, _ in some], [line for _, line in some]
            if loaded is None:
                texts = {each: [record[at].strip() for record in records] for each, at in places.items()}
                loaded = self._as_points(texts, kinds, numbers)
            if numbers or self.lines.cut:
                yield Part(loaded, numbers, self.lines.position, self.lines.cut)

    def _loaded(
        self, lines: list[str], kinds: Mapping[str, str], places: Mapping[str, int]
    ) -> Mapping[str, Cells] | None:
        """Return the columns as numbers if only numbers are requested and NumPy can read the lines as they are, else
        None.  For example, an empty cell, a quote or a decimal comma leads to None.

        Any text that NumPy reads as a number is read by Python as the same number, bit for bit.
        """
        whole, marks = "".join(lines), set(map(str.count, lines, itertools.repeat(self.separator)))
        if {*kinds.values()} != {"numbers"} or marks != {len(self.header) - 1} or '"' in whole:
            return None
        try:
            table = np.loadtxt(lines, delimiter=self.separator, comments=None, usecols=list(places.values()), ndmin=2)
        except ValueError:
            return None
        well = len(table) == len(lines) and not np.isnan(table).any() and self._are_points(whole)
        return dict(zip(kinds, table.T, strict=True)) if well else None

    def _at_once(self, lines: list[str]) -> list[list[str]]:
        """Return the records if each line is one record with a cell for each column, else an empty list."""
        try:
            records = list(self._reader(lines))
        except csv.Error:
            return []
        return records if len(records) == len(lines) and {*map(len, records)} == {len(self.header)} else []

    def _one_by_one(self) -> Iterator[tuple[list[str], int]]:
        """Yield the next records, and the lines where they end.  Raises UserError for a record with too few or too many cells,
        unless the file ends in it, as after a power failure.
        """
        for record in self.records:
            if len(record) < len(self.header) and self.lines.open:
                self.lines.cut = self.lines.number
                return
            if len(record) != len(self.header):
                raise UserError(
                    f"{self.name}, line {self.lines.number}: has {len(record)} cells, but the header names {len(self.header)} "
                    f"columns; give each row a cell for each column, and quote cells that hold {SEPARATORS[self.separator]}"
                )
            yield record, self.lines.number

    def _are_points(self, text: str) -> bool:
        """Return whether all numbers can be read as they are.

        If not, ``_point`` must see them, because a decimal mark may have to be converted, noted in ``mark`` or refused.
        """
        return self.separator == "," or ("," not in text and (self.mark == "." or "." not in text))

    def _as_points(
        self, columns: dict[str, list[str]], kinds: Mapping[str, str], lines: Sequence[int]
    ) -> Mapping[str, Cells]:
        """Return text with decimal points instead of decimal commas."""
        if self._are_points("".join(map("".join, columns.values()))):
            return columns
        rows = [
            list(map(self._point, row, kinds.items(), itertools.repeat(line)))
            for *row, line in zip(*columns.values(), lines, strict=True)
        ]
        return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))

    def _point(self, cell: str, wanted: tuple[str, str], line: int) -> str:
        column, kind = wanted
        found = DECIMAL.fullmatch(cell) if "," in cell or "." in cell else None
        if found is None or kind == "words":
            return cell
        self.mark = self.mark or found[1]
        if found[1] != self.mark:
            called = {".": "point", ",": "comma"}[self.mark]
            raise UserError(
                f"{self.name}, line {line}: column {shown_cell(column)} is {shown_cell(cell)}, but numbers before it have a "
                f"decimal {called}; write all numbers with the same decimal mark, and without thousands separators"
            )
        return cell.replace(",", ".")


def _head(file: BinaryIO, name: str) -> bytes:
    """Return the first bytes of the file.  If it does not support ``peek``, return b"": the file is then read as text.

    Raises UserError for a compressed file.
    """
    try:
        head = file.peek(16) if hasattr(file, "peek") else b""
    except OSError:  # reading the file will raise an error that says why
        head = b""
    kind = next((kind for begin, kind in COMPRESSED.items() if re.match(begin, head)), None)
    if kind is not None:
        raise UserError(f"{name}: is compressed ({kind}); decompress it, or save it as CSV")
    return head


def arrow_module(name: str) -> Any:
    """Return the module that reads Parquet and Arrow.  Raises MissingExtra if pyarrow is missing.  name: the file's
    name, or a phrase for the file.
    """
    try:
        from pykernel.rows import arrow
    except ImportError:
        raise MissingExtra(f"{name}: reading Parquet and Arrow", "arrow") from None
    return arrow


def _separator(header: str) -> str:
    """Return the separator that is most frequent in the header line.  Text in quotes is ignored, because a comma can also
    be part of a name or number.
    """
    plain = re.sub(r'"[^"]*"', "", header)
    return max((each for each in SEPARATORS if each in plain), key=plain.count, default=",")


def _decoded(lines: Sequence[bytes]) -> list[str]:
    """Return the lines as text, without line feeds, or an empty list if a line is not text, is too long, or is broken
    by a carriage return.
    """
    whole = b"".join(lines)
    odd = b"\0" in whole or whole.count(b"\r") != whole.count(b"\r\n") or max(map(len, lines)) > csv.field_size_limit()
    try:
        return [] if odd else whole.decode().split("\n")[: len(lines)]
    except UnicodeDecodeError:
        return []


class _Lines:
    """Lines of a binary file: decoded one at a time, or several in advance without decoding."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name = file, name
        self.number = self.position = self.cut = 0
        self.open = False
        """Whether the latest line has no end, because the file ends there."""
        self._ahead, self._left = deque[bytes](), self._read()

    def _read(self) -> Iterator[bytes]:
        try:
            yield from iter(functools.partial(self.file.readline, LINE_LIMIT + 1), b"")
        except OSError as error:
            raise UserError(f"{self.name}: cannot be read: {error.strerror}") from None

    def ahead(self, count: int) -> list[bytes]:
        """Return the next lines without decoding.  ``skip`` consumes these lines."""
        self._ahead.extend(itertools.islice(self._left, count - len(self._ahead)))
        return list(self._ahead)

    def skip(self) -> None:
        self.number += len(self._ahead)
        self.position += sum(map(len, self._ahead))
        self._ahead.clear()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._ahead.popleft() if self._ahead else next(self._left)
        self.number += 1
        self.position += len(line)
        where = f"{self.name}, line {self.number}:"
        self.open = not line.endswith((b"\n", b"\r"))
        if b"\0" in line and self._only_zeros(line):
            self.cut = self.number
            raise StopIteration
        if len(line) > LINE_LIMIT:
            raise UserError(f"{where} is longer than {LINE_LIMIT:,} bytes; is this a CSV file?")
        if b"\0" in line:
            raise UserError(f"{where} holds a NUL byte; is this a CSV file, saved as UTF-8? {GARBLED}")
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{where} byte {error.start + 1} is not UTF-8; save the file as UTF-8; {GARBLED}") from None

    def _only_zeros(self, line: bytes) -> bool:
        """Return whether the file, from the first zero of this line on, holds nothing else: a file system pads with zeros what a
        power failure has cut off.  The rest of the file is consumed.
        """
        rest = itertools.chain([line[line.index(b"\0") :]], self._ahead, self._left)
        only = not any(piece.strip(b"\0") for piece in rest)
        self._ahead.clear()
        return only


def _records(reader: Any, lines: _Lines) -> Iterator[list[str]]:
    try:
        for record in reader:
            if record:
                yield record
    except csv.Error as error:
        remedy = {
            "field larger": "a cell is too long; is a quote left open?",
            "unexpected end": "the file ends inside a quoted cell; close the quote",
            "new-line": "holds a carriage return inside the line; save the file with LF or CRLF line endings",
        }
        what = next((text for start, text in remedy.items() if str(error).startswith(start)), f"is not CSV: {error}")
        raise UserError(f"{lines.name}, line {lines.number}: {what}") from None


class NoColumn(UserError):
    """A table lacks a column."""

    def __init__(self, sentence: str, column: str) -> None:
        super().__init__(sentence)
        self.column = column


def _positions(header: Sequence[str], where: str, wanted: Sequence[str]) -> list[int]:
    """Return the position of each requested column."""
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


def number_of(cell: str) -> float:
    """Return a cell's number.  Raises ValueError for ``24_03`` and for digits of other scripts, which ``float`` would take."""
    if "_" in cell or not cell.isascii():
        raise ValueError(cell)
    return float(cell)


def is_number(cell: str) -> bool:
    try:
        number_of(cell)
    except ValueError:
        return False
    return True


def shown_cell(text: str) -> str:
    text = repr(text)
    return text if len(text) <= 60 else text[:57] + "..."
