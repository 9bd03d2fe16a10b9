"""Decode the frames that the firmware of ``generate --for recorder`` sends, and return rows of a table.

A zero byte precedes and follows each frame; the frame contains none (consistent overhead byte stuffing).  A frame
consists of its kind, its content, and the CRC-32 of both.  gen/log.c lists the kinds.  Bytes between
frames are other text that the firmware prints.
"""

from __future__ import annotations

import functools
import itertools
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Literal, NamedTuple

from pykernel.errors import UserError
from pykernel.rows.arrays import Part

PARTS = ("time", "x", "label", "answer", "status", "hash")
"""The parts that a row may have, in this order.  Bit i of a row's ``parts`` says whether the row has part i."""
FORMAT = 1
CODES = "fdhib"
"""Types of numbers, as in format strings of Python's struct."""
LONGEST = 2**17
"""Maximum size of a frame in bytes."""
READ = 2**16
KNOWN = 1024
"""A frame whose number is at most this much behind the next one has come before or too late.  If the number is further behind, the
device has restarted."""
MOST = 10**6
"""If more rows than this are missing, the rows after them begin another table."""
SURE, TURN, LATE = 1024, 128, 4
"""Two recorders are on the line if the doubt exceeds SURE.  A jump back to where the rows were before the last jump adds TURN, a row
that comes too late adds LATE, and any other row takes away 1."""
SHOWN = {"f": ".9g", "d": ".17g"}
"""Formats of real numbers, whose text reads back to the same bits."""


def decoded(frame: bytes) -> bytes | None:
    """Return the data of an encoded frame, or None for an invalid frame.  frame: the bytes between the two zero bytes."""
    found, at = bytearray(), 0
    while at < len(frame):
        code = frame[at]
        found += frame[at + 1 : at + code]
        at += code
        if code < 255 and at < len(frame):
            found.append(0)
    return bytes(found) if at == len(frame) else None


def checked(frame: bytes) -> bytes | None:
    """Return the kind and the content of a frame, or None if it was damaged."""
    content = decoded(frame)
    if content is None or len(content) < 6 or zlib.crc32(content[:-4]).to_bytes(4, "little") != content[-4:]:
        return None
    return content[:-4]


class Told(NamedTuple):
    """An event: a "row" with its cells, a number of "lost" rows, or a restart of the device ("began")."""

    kind: Literal["row", "lost", "began"]
    cells: Sequence[str] = ()
    rows: int = 0


class Frames:
    """A decoder of frames that arrive in pieces of any length.

    damaged: number of damaged frames.  early: number of rows that arrived before the names of all columns.  repeated: number
    of rows that arrived twice or after later rows, and are ignored.
    """

    def __init__(self, name: str) -> None:
        self.name, self.rest, self.damaged, self.early, self.repeated = name, b"", 0, 0, 0
        self.layout: bytes | None = None
        self.names: list[str | None] = []
        self.start: int | None = None  # the number of the device's start
        self.next: int | None = None
        self.time = self.doubt = 0
        self._left: tuple[int, int] | None = None  # start and number of the row that was due before the latest jump
        self._known = OrderedDict[int, bytes]()  # the latest rows: number -> frame

    @property
    def header(self) -> list[str] | None:
        """The names of all columns; None until all names are known.  The device computes the last columns; see ``logged``."""
        names = [name for name in self.names if name is not None]
        if self.layout is None or len(names) < len(self.names):
            return None
        answers = names[len(names) - self._counts[2] :]
        given = names[: len(names) - self._counts[2]]
        time = next(each for each in map("time{}".format, ["", *range(2, len(names) + 3)]) if each not in names)
        return [time, *given, "status", "call", *(["state_hash"] if self._persists else []), *answers]

    def feed(self, data: bytes) -> Iterator[Told]:
        *pieces, self.rest = (self.rest + data).split(b"\0")
        if len(self.rest) > LONGEST:
            self.damaged, self.rest = self.damaged + 1, b""
        for piece in filter(None, pieces):
            content = checked(piece)
            if content is None:
                self.damaged += not (piece.isascii() and "".join(piece.decode().split()).isprintable())
            elif content[:1] in b"RC":
                yield from self._row(content)
            elif content[:1] == b"B":
                yield from self._begin(content)
            elif content[:1] == b"N" and self.layout is not None:
                self._name(content)

    def _begin(self, content: bytes) -> Iterator[Told]:
        if content[1:2] != bytes([FORMAT]) or len(content) != 19 or not set(content[4:7]) <= set(CODES.encode()):
            raise UserError(
                f"{self.name}: its recorder is from another version of pykernel; generate the firmware's recorder again"
            )
        layout, start = content[3:17], int.from_bytes(content[17:], "little")
        # a start that has a number and was heard before comes twice
        first = content[2] & 1 == 1 and not (start and start == self.start)
        if (first and self.next) or (self.layout is not None and layout != self.layout):
            self._jump(start, 0)
            yield Told("began")
        if layout != self.layout:
            self.layout, self.next = layout, None
            self.names = [None] * sum(self._counts)
        if first:
            self._begin_at(start, 0)

    @property
    def _counts(self) -> tuple[int, ...]:
        """The number of inputs, the number of labels, and the number of answers."""
        return struct.unpack_from("<3H", self.layout or b"", 4)

    @property
    def _persists(self) -> bool:
        return bool((self.layout or b"")[0])

    def _name(self, content: bytes) -> None:
        at = int.from_bytes(content[1:3], "little")
        if at < len(self.names):
            self.names[at] = content[3:].decode(errors="replace")

    def _row(self, content: bytes) -> Iterator[Told]:
        header = self.header
        if header is None:
            self.early += 1
            return
        if len(content) < 8:
            self.damaged += 1
            return
        (start, number), data = struct.unpack_from("<HI", content, 1), content[7:]
        if self.next is None:
            self._begin_at(start, number)
        ahead, before = (number - (self.next or 0)) % 2**32, self._known.get(number)
        restarted = start != self.start or (before is not None and before != content)
        if not restarted and 2**32 - ahead <= KNOWN:
            self.repeated += 1
            self._doubt(LATE if before is None else 0, start, number)
            return
        restarted |= ahead >= 2**31
        if restarted or ahead > MOST:
            self._jump(start, number)
            yield Told("began")
            self._begin_at(start, number)
            # after a restart, the rows before the first one that was heard are known to be missing
            ahead = number if restarted and number <= MOST else 0
        elif ahead > KNOWN:
            self._jump(start, number)
        if ahead:
            yield Told("lost", rows=ahead)
        self.next, self.doubt = (number + 1) % 2**32, max(0, self.doubt - 1)
        self._known[number] = content
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        if content[:1] == b"C":
            cells = [""] * len(header)
            cells[2 + sum(self._counts[:2])] = data.decode(errors="replace")
            yield Told("row", cells)
        elif (row := self._cells(data[0], data[1:])) is not None:
            yield Told("row", row)
        else:
            self.damaged += 1

    def _begin_at(self, start: int, number: int) -> None:
        self.start, self.next, self.time = start, number, 0
        self._known.clear()

    def _jump(self, start: int, number: int) -> None:
        """Remember where the rows are before a jump.  A jump back to where they were before the last one is a reason for doubt."""
        back = self._left is not None and self._left[0] == start and 0 <= number - self._left[1] <= KNOWN
        self._left = (self.start or 0, self.next or 0)
        self._doubt(TURN * back, start, number)

    def _doubt(self, more: int, start: int, number: int) -> None:
        self.doubt += more
        if self.doubt >= SURE:
            raise UserError(
                f"{self.name}: the rows of two recorders come in turn (rows {self.next or 0:,} of start {self.start} and {number:,} of start "
                f"{start}); give each recorder a line of its own"
            )

    def _cells(self, parts: int, data: bytes) -> list[str] | None:
        """Return the cells of a row, or None if the number of bytes does not match the row's parts."""
        codes = [chr(code) for code in (self.layout or b"")[1:4]]
        counts = self._counts
        kinds = ["I", *(code * count for code, count in zip(codes, counts, strict=True)), "i", "I"]
        form = "<" + "".join(kind for i, kind in enumerate(kinds) if parts >> i & 1)
        try:
            values = iter(struct.unpack(form, data))
        except struct.error:
            return None
        time, x, label, answer, status, whole = (
            [format(next(values), SHOWN.get(code, "")) if parts >> i & 1 else "" for code in kind]
            for i, kind in enumerate(kinds)
        )
        if time[0]:
            self.time += (int(time[0]) - self.time) % 2**32
            time = [str(self.time)]
        hashed = [f"{int(each):08x}" if each else "" for each in whole] if self._persists else []
        return [*time, *x, *label, *status, "", *hashed, *answer]


def logged(header: Sequence[str]) -> list[str]:
    """Return the columns that the device computed, if the table has the header of ``Frames``; [] for other tables."""
    at = header.index("status") if "status" in header else len(header)
    return list(header[at:]) if list(header[at + 1 : at + 2]) == ["call"] else []


def is_framed(head: bytes) -> bool:
    """Return whether the first bytes of a file hold a frame."""
    return any(checked(piece) is not None for piece in head.split(b"\0")[:-1])


class FramedTable:
    """A file of frames as a table for ``read_parts``, read up to the names of its columns.  Row numbers, counted from 1,
    replace line numbers, and lost rows are empty.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name, self.where, self.frames, self.position = name, f"{name}, its frames", Frames(name), 0
        self.events = self._told(file)
        self.first = list(itertools.islice(self.events, 1))
        if self.frames.header is None:
            raise UserError(f"{name}: no frame names the columns; record from the beginning, or for longer")
        self.header = self.frames.header

    def _told(self, file: BinaryIO) -> Iterator[Told]:
        for data in iter(functools.partial(file.read, READ), b""):
            self.position += len(data)
            yield from self.frames.feed(data)

    def parts(self, kinds: Mapping[str, str], places: Mapping[str, int], rows: int) -> Iterator[Part]:
        """Yield parts of at most ``rows`` rows, with the columns at ``places``."""
        cells = self._rows()
        for first in itertools.count(1, rows):
            some = list(itertools.islice(cells, rows))
            if not some:
                return
            columns: dict[str, Any] = {each: [row[at] for row in some] for each, at in places.items()}
            yield Part(columns, range(first, first + len(some)), self.position)

    def _rows(self) -> Iterator[Sequence[str]]:
        count = 0
        for told in itertools.chain(self.first, self.events):
            if told.kind == "began":
                raise UserError(
                    f"{self.name}: after row {count:,} the device restarted, but a table must be one recording; pykernel table {self.name} "
                    "--output FIRST.csv writes a file for each recording"
                )
            for row in [[""] * len(self.header)] * told.rows if told.kind == "lost" else [told.cells]:
                count += 1
                yield row
