"""A model on a board at a serial line: the firmware of ``generate --with-check`` at the other end.

The board asks and the host answers; gen/templates/check_link.c describes the frames.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.gen.firmware import CHUNK
from pykernel.gen.project import Project
from pykernel.targets.jobs import JobModel

BAUD = 115_200
PROTOCOL = 1
HELLO = b"H"
READ = b"R"
WRITE = b"W"
ANSWER = b"A"
STOP = b"X"
AGAIN = b"\0"
"""An empty frame: whoever waits in the middle of one repeats the question."""

FIRST_WORD = 10.0
"""Seconds in which the board must have said something that is a frame; a start-up takes about two."""
SILENCE = 60.0
"""Seconds that one call may take on the board, and a line may be dead."""
PIECE = 50
"""Rows in a job: a second or two at the usual speed."""
PAUSE = 0.5
"""Seconds of silence before the board is asked again; then twice as long, up to 8 s."""
NOTED = 200  # bytes that are no frame and are kept, to say what they look like


class Line(Protocol):
    """What is used of pyserial's ports."""

    timeout: float | None

    def read(self, size: int = 1) -> bytes: ...
    def write(self, data: bytes) -> Any: ...
    def close(self) -> None: ...


def open_line(url: str, baud: int = BAUD) -> Line:
    """A port, or any other URL that pyserial opens.  Raises UserError if that does not work."""
    try:
        import serial
    except ImportError:
        raise MissingExtra("a check on a board", "board") from None
    try:
        # a line over the network knows no limit for writing
        limit = {} if url.startswith("rfc2217:") else {"write_timeout": 10}
        line: Line = serial.serial_for_url(url, baudrate=baud, timeout=0.05, **limit)
    except Exception as error:  # what pyserial raises for a URL or a speed that is none has no common type
        reason = " ".join(str(error).split())
        raise UserError(
            f"{url} cannot be opened ({reason}); is it plugged in, and does no other program, such as a serial monitor, have it?"
        ) from None
    return line


def coded(data: bytes) -> bytes:
    """A frame without a zero in it, and a zero at its end (consistent overhead byte stuffing), of at most 253 bytes."""
    return b"".join(bytes([len(run) + 1]) + run for run in data.split(b"\0")) + b"\0"


def decoded(frame: bytes) -> bytes | None:
    """What ``coded`` was given; None if nothing gives that.  frame: without the zero at its end."""
    runs, at = [], 0
    while at < len(frame):
        runs.append(frame[at + 1 : at + frame[at]])
        at += frame[at]
    return b"\0".join(runs) if at == len(frame) else None


def sealed(kind: bytes, number: int, data: bytes) -> bytes:
    """A whole frame."""
    content = kind + bytes([number]) + data
    return coded(content + zlib.crc32(content).to_bytes(4, "little"))


def opened(frame: bytes) -> tuple[bytes, int, bytes] | None:
    """Kind, number and data of a frame; None if it was damaged."""
    content = decoded(frame)
    if content is None or len(content) < 6 or zlib.crc32(content[:-4]).to_bytes(4, "little") != content[-4:]:
        return None
    return content[:1], content[1], content[2:-4]


@dataclass(frozen=True)
class Board:
    """What a board says of itself.  hertz: ticks in a second; 0: not known, they are cycles."""

    name: str
    compiler: str
    hertz: int


class Link:
    """The host's end of the line: answers the board's questions.

    damaged: frames that came damaged, both ways.
    """

    def __init__(self, url: str, line: Line, config_hash: int) -> None:
        self.url, self.line, self.config_hash = url, line, config_hash
        self.received = bytearray()
        self.noise = bytearray()
        self.last: tuple[bytes, int] | None = None  # the last question
        self.answer = b""
        self.damaged = 0
        self.heard = 0  # frames

    def meet(self) -> Board:
        """The board.  Raises UserError if there is none, or if it has another model."""
        numbers = self._hello(b"?")
        name, compiler = numbers[9:11]  # their lengths
        texts = self._take(name + compiler, b"?").decode("ascii", "replace")
        return Board(texts[:name], texts[name:], int.from_bytes(numbers[5:9], "little"))

    def job(self, data: bytes, expected: int) -> bytes:
        """What the board writes for a job."""
        self._hello(b"J")
        return self._take(expected, b"J", data)

    def _hello(self, order: bytes) -> bytes:
        """Wait until the board says that it is there, and tell it what to do."""
        while True:
            kind, data = self._question(SILENCE if self.heard else FIRST_WORD)
            if kind == HELLO:
                break
            self._answer(STOP, b"")  # what another host has begun
        if len(data) != 11 or data[0] != PROTOCOL:
            raise UserError(
                f"{self.url}: the board's firmware is of another version of pykernel; generate it again and upload it"
            )
        found = int.from_bytes(data[1:5], "little")
        if found != self.config_hash:
            raise UserError(
                f"{self.url}: the board has another model (its configuration is {found:08x}, this spec's is "
                f"{self.config_hash:08x}); generate the firmware from this spec and upload it"
            )
        self._answer(ANSWER, order)
        return data

    def _take(self, expected: int, order: bytes, data: bytes = b"") -> bytes:
        """Answer until the board has written that many bytes."""
        written, at = bytearray(), 0
        while len(written) < expected:
            kind, asked = self._question(SILENCE)
            if kind == HELLO and not written and not at:
                self._answer(ANSWER, order)  # it was still busy with what another host had said
                continue
            if kind == HELLO:
                raise UserError(
                    f"{self.url}: the board began again in the middle of the check; is its supply stable, and is no watchdog running?"
                )
            if kind == READ and len(asked) == 1 and at + asked[0] <= len(data):
                self._answer(ANSWER, data[at : at + asked[0]])
                at += asked[0]
            elif kind == WRITE and 0 < len(asked) <= CHUNK and len(written) + len(asked) <= expected:
                written += asked
                self._answer(ANSWER, b"")
            else:
                raise UserError(
                    f"{self.url}: the board asked for what the check does not have; generate its firmware from this spec again"
                )
        return bytes(written)

    def _question(self, patience: float) -> tuple[bytes, bytes]:
        """The board's next question."""
        end, pause, before = time.monotonic() + patience, PAUSE, self.damaged
        silent = time.monotonic() + pause
        while True:
            frame = self._frame(silent)
            if frame is None:
                if time.monotonic() >= end:
                    raise UserError(self._silence(patience, self.damaged - before))
                self._say(AGAIN)
                pause = min(2 * pause, 8.0)
                silent = time.monotonic() + pause
                continue
            found = opened(frame)
            if found is None:
                self.damaged += 1
                self.noise += frame[: NOTED - len(self.noise)]
                if time.monotonic() >= end:
                    raise UserError(self._silence(patience, self.damaged - before))
                self._say(AGAIN)
                continue
            kind, number, data = found
            self.heard += 1
            if (kind, number) == self.last:
                if time.monotonic() >= end:
                    raise UserError(self._silence(patience, self.damaged - before))
                self._say(self.answer)  # it was damaged on its way
                self.damaged += 1
                continue
            self.last = kind, number
            return kind, data

    def _answer(self, kind: bytes, data: bytes) -> None:
        assert self.last is not None
        self.answer = sealed(kind, self.last[1], data)
        self._say(self.answer)

    def _frame(self, until: float) -> bytes | None:
        """The next bytes that end with a zero, without it; None if time is over before they came."""
        while True:
            end = self.received.find(0)
            if end >= 0:
                frame = bytes(self.received[:end])
                del self.received[: end + 1]
                return frame
            if len(self.received) > 4 * CHUNK:  # no frame is so long
                frame = bytes(self.received)
                self.received.clear()
                return frame
            if time.monotonic() >= until:
                if not self.heard:
                    self.noise += self.received[: NOTED - len(self.noise)]
                return None
            self.received += self._get()

    def _get(self) -> bytes:
        try:
            waiting = getattr(self.line, "in_waiting", 1)
            return self.line.read(max(1, min(waiting, 4096)))
        except (OSError, TypeError) as error:  # pyserial's errors are OSErrors; of a port that vanished, some are not
            raise UserError(self._gone(error)) from None

    def _say(self, data: bytes) -> None:
        try:
            self.line.write(data)
        except (OSError, TypeError) as error:
            raise UserError(self._gone(error)) from None

    def _gone(self, error: Exception) -> str:
        return f"{self.url}: the line was cut ({' '.join(str(error).split())}); plug the board in and check again"

    def _silence(self, patience: float, damaged: int) -> str:
        firmware = "the firmware of pykernel generate --with-check"
        if self.heard and damaged > 2:
            return f"{self.url}: what is sent to the board arrives damaged; check the wire to its RX, and its UART's buffer"
        if self.heard:
            return (
                f"{self.url}: the board has said nothing for {patience:.0f} s; was it unplugged, or does a call hang?"
            )
        if not self.noise:
            return (
                f"{self.url}: nothing was heard in {patience:.0f} s; is {firmware} on the board, and is this its port?"
            )
        readable = sum(32 <= byte < 127 or byte in b"\r\n\t" for byte in self.noise) / len(self.noise)
        if readable > 0.9:
            said = " ".join(self.noise.decode("ascii", "replace").split())[:40]
            return f"{self.url}: another program runs on the board, it says {said!r}; upload {firmware}"
        return f"{self.url}: what comes is no frame; is the speed right (--baud), and is {firmware} on the board?"


class BoardModel(JobModel):
    """A model on a board.  board: what it says of itself."""

    def __init__(self, project: Project, link: Link) -> None:
        super().__init__(project)
        self.link = link
        self.board = link.meet()
        self.progress: Callable[[int], None] = lambda samples: None
        self._samples_done = 0
        self.call("init")

    def exchange(self, job: bytes, expected: int) -> bytes:
        return self.link.job(job, expected)

    def prequential(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In pieces, to say how far it is.  A job for each piece has no other effect: the board's memory is the host's."""
        pieces = []
        for start in range(0, len(x), PIECE):
            pieces.append(super().prequential(x[start : start + PIECE], y[start : start + PIECE]))
            self._samples_done += len(pieces[-1][0])
            self.progress(self._samples_done)
        answers, statuses = zip(*pieces, strict=True)
        return np.concatenate(answers), np.concatenate(statuses)
