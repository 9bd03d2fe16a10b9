"""Write a table of the rows that a device sends as frames (see ``generate --for recorder``) or as lines of text."""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.files import growing_file, open_data, whole_file
from pykernel.parallel import whole_task
from pykernel.progress import Show
from pykernel.report.document import Facts, Found, document_of_parts
from pykernel.request.kinds import words
from pykernel.rows.arrays import Part
from pykernel.rows.columns import Columns
from pykernel.rows.frames import READ, Frames, Told, is_framed, logged
from pykernel.rows.text import LINE_LIMIT, SEPARATORS, is_number
from pykernel.targets.board import BAUD, Line, open_port
from pykernel.tuning.tables import intervals
from pykernel.workflows.requests import TableOf

PORT = re.compile(r"(?P<url>[a-z0-9]{2,}://.+?|/dev/(?!null|stdin|fd/|shm/).+?|COM\d+)(@(?P<baud>\d+))?")
"""Matches a serial port, or another URL that pyserial supports.  ``@`` and the baud rate may follow."""
AGAIN = 0.5
"""Seconds between two attempts to open a port that has disappeared."""
FEW = 2
"""The data is treated as a table of text after this many consecutive lines of numbers."""
LATEST = 100_000
"""The time intervals are computed from this many rows at the end of the recording."""
GLANCE = 1.0
"""Seconds between two updates of the display."""


def is_recording(data: str) -> bool:
    """Return whether ``data`` is a port, or contains frames."""
    if PORT.fullmatch(data):
        return True
    with ExitStack() as stack, suppress(UserError, OSError):
        _, file, _ = open_data(data, stack)
        return is_framed(file.peek(READ) if hasattr(file, "peek") else b"")
    return False


def record(request: TableOf, out: Path) -> Found:
    """Write rows as they arrive, until the data ends, or until Ctrl-C or SIGTERM stops the recording."""
    for name in ("label", "like", "codes"):
        if getattr(request, name) is not None:
            raise UserError(
                f"{shown_option(name)} is for the conversion of a table, but {request.data} is a recording; leave {shown_option(name)} out"
            )
    if out.suffix.lower() != ".csv":
        raise UserError(
            f"{out}: a recording is written as text; give {shown_option('output')} a name that ends with .csv"
        )
    source, began = str(request.data), time.monotonic()
    heard = _Heard(source, words(request.inputs))
    with request.watch.progress(None) as show, _Tables(out, request.force) as tables, _until_stopped():
        for data in _pieces(source, request.watch.tell):
            with whole_task():  # interrupts are delayed, so that no row is written partly or twice
                for came in heard.feed(data):
                    tables.take(came, heard)
                tables.flush()
            _show(show, tables, heard, time.monotonic() - began)
    if not tables.rows:
        raise UserError(f"{source}: no row was received: {heard.why()}")
    seconds = time.monotonic() - began
    times = np.array([float(cell or "nan") for cell in tables.times])
    uneven = intervals(tables.header[0], times, [], "") if len(times) else None
    request.watch.data(tables.seen.report(file=source, times=uneven))
    report = {
        "output": str(tables.files[0]),
        "files": list(map(str, tables.files)),
        "rows": tables.rows,
        "lost": tables.lost,
        "damaged": heard.damaged,
        "early": heard.frames.early,
        "repeated": heard.frames.repeated,
        "framed": not heard.text,
        "columns": tables.header,
        "seconds": seconds,
    }
    text = f"lines of text are enough for plan, fit and simulate; state replay needs exact numbers, as in frames (generate {shown_option('for_', 'recorder')}) or as %a prints them"
    bits = (
        "the model's results are recorded bit for bit, so pykernel state replay can check them"
        if logged(tables.header)
        else None
    )
    facts = [
        *(("file", str(file)) for file in tables.files),
        ("rows", f"{tables.rows:,} in {seconds:.0f} s; {_losses(tables, heard)}"),
        ("columns", ", ".join(tables.header)),
        ("bits", text if heard.text else bits),
    ]
    return Found(report, document_of_parts(Facts(facts)))


def _losses(tables: _Tables, heard: _Heard) -> str:
    """Say how many rows were lost or damaged."""
    what = "lines that are not rows" if heard.text else "damaged frames"
    sentences = [f"{tables.lost:,} rows were lost; their cells are empty" if tables.lost else "no row was lost"]
    sentences += [f"{heard.damaged:,} {what}"] * bool(heard.damaged)
    sentences += [f"{heard.frames.repeated:,} rows came twice or too late: ignored"] * bool(heard.frames.repeated)
    sentences += [f"{heard.frames.early:,} frames came before the columns' names"] * bool(heard.frames.early)
    return "; ".join(sentences)


def _show(show: Show, tables: _Tables, heard: _Heard, seconds: float) -> None:
    """Show the number of rows received, the rate, the ranges of the first eight columns, and the losses."""
    if time.monotonic() - tables.looked < GLANCE:
        return
    tables.looked = time.monotonic()
    columns = [
        f"{name} {'stuck at ' if one.low == one.high else ''}{one.low:.4g}{'' if one.low == one.high else f' to {one.high:.4g}'}"
        for name, one in tables.seen.columns.items()
        if one.numbers
    ]
    show(
        0.0,
        f"{tables.rows:,} rows, {tables.rows / max(seconds, 1e-9):.4g} a second; {', '.join(columns[:8])}; {_losses(tables, heard)}",
    )


@contextmanager
def _until_stopped() -> Iterator[None]:
    """Within the block, Ctrl-C or SIGTERM ends the recording in the same way as the end of the data."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if here else None
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        if here:
            signal.signal(signal.SIGTERM, before)


# ---------------------------------------------------------------------------------------------------------- received data


def _pieces(data: str, tell: Callable[[str], None]) -> Iterator[bytes]:
    """Yield bytes as they arrive, and b"" if none arrive for a while.  If a serial port disappears, wait until it is back."""
    port = PORT.fullmatch(data)
    if port is None or port["url"].startswith("socket://"):
        with ExitStack() as stack:
            file: Any = open_data(data, stack)[1] if port is None else _connected(port["url"], stack)
            while piece := file.read1(READ):
                yield piece
        return
    url, baud = port["url"], int(port["baud"] or BAUD)
    line = open_port(url, baud)
    while True:
        try:
            while True:
                yield line.read(1) + line.read(getattr(line, "in_waiting", 0))
        # pyserial's errors are OSErrors, but a port that has disappeared may raise TypeError
        except (OSError, TypeError):
            line.close()
            tell(f"{url} has disappeared; pykernel waits until it is back, and keeps the rows so far")
            while (again := _reopened(url, baud)) is None:
                time.sleep(AGAIN)
            line = again
            tell(f"{url} is back")


def _connected(url: str, stack: ExitStack) -> BinaryIO:
    """Return a connection to socket://HOST:PORT as a file, which ends when the connection ends."""
    try:
        where = urlsplit(url)
        connection = stack.enter_context(socket.create_connection((where.hostname, where.port or 0)))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{url} cannot be opened ({error}); it must have the form socket://HOST:PORT, and a program must be listening there"
        ) from None
    return stack.enter_context(connection.makefile("rb"))


def _reopened(url: str, baud: int) -> Line | None:
    try:
        return open_port(url, baud)
    except UserError:
        return None


class _Heard:
    """The data received: frames, or lines of text.

    The data is treated as text if FEW consecutive lines with the same number of values arrive before any frame.  column_names: names for
    the columns of text; they replace the names in the text.
    """

    def __init__(self, source: str, column_names: Sequence[str]) -> None:
        self.source, self.column_names, self.frames = source, column_names, Frames(source)
        self.text, self.lines, self.unread, self.bytes = False, b"", 0, 0
        self.names: list[str] | None = None
        self.words: list[str] | None = None
        self.before: list[list[str]] = []

    @property
    def header(self) -> list[str] | None:
        return self.names if self.text else self.frames.header

    @property
    def damaged(self) -> int:
        return self.unread if self.text else self.frames.damaged

    def why(self) -> str:
        """Say why no row was received."""
        if not self.bytes:
            return "no bytes arrived; is the firmware running, and is the baud rate right?"
        if self.frames.early or self.frames.layout is not None:
            return (
                "not all names of the columns arrived; record for longer, or start to record before the device starts"
            )
        return (
            f"{self.bytes:,} bytes were neither frames nor lines of numbers; is the baud rate right? "
            f"the default is {BAUD}, and PORT@9600 sets another rate"
        )

    def feed(self, data: bytes) -> Iterator[Told]:
        self.bytes += len(data)
        for came in self.frames.feed(data):
            if self.text:  # the frame shows that earlier text was the firmware's log output, not a table
                self.text = False
                yield Told("began")
            yield came
        if self.frames.layout is None:
            *lines, self.lines = (self.lines + data).split(b"\n")
            self.lines = self.lines[-LINE_LIMIT:]
            for line in lines:
                yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[Told]:
        text = line.decode(errors="ignore").strip()
        separator = max(SEPARATORS, key=text.count)
        cells = [cell.strip() for cell in text.split(separator)]
        if not text:
            return
        if len(text.encode()) < len(line.strip()) or not text.isprintable():
            self.unread += 1
        elif not all(_is_cell(cell, self.names is not None) for cell in cells):
            if self.names is None:
                self.words, self.before = cells, []
            self.unread += cells != (self.names or cells)
        elif self.names is not None:
            self.unread += len(cells) != len(self.names)
            if len(cells) == len(self.names):
                yield Told("row", cells)
        else:
            if self.before and len(self.before[-1]) != len(cells):
                self.unread, self.before = self.unread + len(self.before), []
            self.before.append(cells)
            if len(self.before) >= FEW:
                self.text, self.names = True, self._named(len(cells))
                yield from (Told("row", each) for each in self.before)

    def _named(self, count: int) -> list[str]:
        if self.column_names and len(self.column_names) != count:
            raise UserError(
                f"{shown_option('inputs')} names {len(self.column_names)} columns, but a line of {self.source} has {count} cells"
            )
        if self.column_names:
            return list(self.column_names)
        there = self.words is not None and len({*self.words}) == count == len(self.words)
        return list(self.words or ()) if there else [f"x{j}" for j in range(count)]


def _is_cell(cell: str, named: bool) -> bool:
    """Return whether a cell is empty or a number, in decimal or as C's %a prints it.

    named: whether the columns have names.  Before, words such as "a" and "face" are names, not hexadecimal numbers.
    """
    with suppress(ValueError):
        hexadecimal = named or any(map(str.isdigit, cell))
        return cell == "" or is_number(cell) or (hexadecimal and float.fromhex(cell) is not None)
    return False


# ------------------------------------------------------------------------------------------------------------ the tables


class _Tables:
    """The output files: the named file, and a further numbered file for each restart of the device.

    If the disk is full, all complete rows are kept.  looked: the time when ``seen`` was last shown.
    """

    def __init__(self, out: Path, force: bool) -> None:
        self.out, self.force, self.files = out, force, list[Path]()
        self.rows = self.lost = self.whole = 0
        self.looked, self.seen = time.monotonic(), Columns()
        self.filled = Counter[str]()
        self.header: list[str] = []
        self.waiting: list[Sequence[str]] = []
        self.times: list[str] = []
        self.file: Any = None

    def __enter__(self) -> _Tables:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self, came: Told, heard: _Heard) -> None:
        if came.kind == "began":
            self.close()
            return
        if self.file is None:
            self._begin(heard.header or [])
        rows = [[""] * len(self.header)] * came.rows if came.kind == "lost" else [came.cells]
        self.waiting += rows
        self.lost += came.rows
        self.rows += came.kind == "row"

    def _begin(self, header: Sequence[str]) -> None:
        others = (self.out.with_stem(f"{self.out.stem}-{number}") for number in itertools.count(len(self.files) + 1))
        path = next(each for each in others if self.force or not each.exists()) if self.files else self.out
        self.file = growing_file(path, self.force)
        self.files.append(path)
        self.header, self.whole, self.filled = list(header), 0, Counter()
        numbers = [each for each in header if each not in logged(header)]
        self.seen.begin(str(self.out), numbers)
        self.waiting = [self.header]

    def flush(self) -> None:
        """Write the waiting rows."""
        if self.file is None or not self.waiting:
            return
        written = self.waiting
        rows = written[self.whole == 0 :]
        columns = dict(zip(self.header, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
        self.filled.update(name for name, cells in columns.items() if any(cells))
        if rows and logged(self.header):  # keep only the latest times, so that memory does not grow
            self.times = [*self.times, *columns[self.header[0]]][-LATEST:]
        if rows:
            numbers = {name: [_plain(cell) for cell in columns[name]] for name in self.seen.columns}
            self.seen.read(Part(numbers, range(self.seen.rows + 2, self.seen.rows + 2 + len(rows)), 0))
        text, self.waiting = io.StringIO(), []
        csv.writer(text, lineterminator="\n").writerows(written)
        data = text.getvalue().encode()
        try:
            while data:
                data = data[self.file.write(data) :]
        except OSError as error:
            os.ftruncate(self.file.fileno(), self.whole)
            raise UserError(f"{self.files[-1]}: {error.strerror}; all rows written before are complete") from None
        self.whole = os.fstat(self.file.fileno()).st_size

    def close(self) -> None:
        """Write the waiting rows and, in a table of frames, remove columns that were never filled.

        These are the time, if it was never filled, and all columns that a device computes, if none of them was filled.
        """
        if self.file is None:
            return
        try:
            self.flush()
        finally:
            self.file, file = None, self.file
            with suppress(OSError):
                file.close()
        computed = logged(self.header)
        gone = set(computed) if not self.filled.keys() & set(computed) else set[str]()
        if self.header[0] not in self.filled:
            gone.add(self.header[0])
        if gone and computed:
            _without(self.files[-1], gone)
            self.header = [each for each in self.header if each not in gone]


def _plain(cell: str) -> str:
    """Return the cell, with a number that C's %a printed converted to decimal.  Other cells stay unchanged."""
    return repr(float.fromhex(cell)) if "x" in cell.lower() else cell


def _without(path: Path, columns: set[str]) -> None:
    """Remove columns of a table."""
    with path.open(newline="") as old, whole_file(path) as file:
        rows, new = csv.reader(old), io.TextIOWrapper(file, newline="")
        header = next(rows)
        kept = [i for i, name in enumerate(header) if name not in columns]
        csv.writer(new, lineterminator="\n").writerows(
            [row[i] for i in kept] for row in itertools.chain([header], rows)
        )
        new.detach()  # flushes the buffer
