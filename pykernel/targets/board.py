"""A model on a board that is connected by a serial line.  The board runs the firmware of ``generate --for check``.

The board asks and the host answers.  The frames are described in gen/check_link.c.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.gen.firmware import CHUNK
from pykernel.gen.project import Project
from pykernel.rows.frames import checked
from pykernel.targets.jobs import JobModel

BAUD = 115_200
PROTOCOL = 1
HELLO = b"H"
READ = b"R"
WRITE = b"W"
ANSWER = b"A"
STOP = b"X"
AGAIN = b"\0"
"""An empty frame.  It makes a board that is waiting for an answer, or for the rest of one, repeat its question."""

FIRST_WORD = 10.0
"""Time limit for the board's first valid frame, in seconds; a start-up takes about two seconds."""
SILENCE = 60.0
"""Time limit for one call on the board, in seconds.  If the board's next question does not arrive in this time, the
host gives up."""
PIECE = 50
"""Largest number of rows in a job of ``prequential``.  At the usual speed, these rows take a second or two."""
PAUSE = 0.5
"""Seconds of silence after which the host sends AGAIN.  The pause is doubled each time, up to 8 s."""
PER_SAMPLE = 10.0
"""Seconds that a sample may take in a job, on average.  An Uno needs hundredths of a second."""
DELAY = 0.25
"""Time in seconds that a frame and its answer may take in addition to the transmission of their bytes, for example over a network."""
TRIES = 20
"""Limit on the number of times that a frame is sent, on average over the frames of a job.  It allows for a line that
damages one byte in a hundred, over which only some of the frames arrive intact.
"""
LONGEST = 99
"""Largest number of characters in a name that a firmware sends."""
OTHER_FIRMWARE = "another version of pykernel generated the board's firmware; generate the firmware again and upload it"
OFTEN = {
    "hello": "the board reported {} times that it was ready, but did not begin the check; does it keep restarting?",
    "other": "the board was told {} times to stop an earlier check, but continued it; reset the board and check again",
    "again": "data arrive damaged at the board, which asked {} times for a retransmission; check the wire to its RX",
    "damaged": "data from the board arrive damaged ({} frames); check the wire to its TX, and --baud",
}
"""The error message for each kind of event that can happen too often."""
NOTED = 200  # for the error message, at most this many bytes outside valid frames are kept


class Line(Protocol):
    """The part of a pyserial port's interface that this module uses."""

    timeout: float | None

    def read(self, size: int = 1) -> bytes: ...
    def write(self, data: bytes) -> Any: ...
    def close(self) -> None: ...


def open_port(url: str, baud: int = BAUD) -> Line:
    """Open a port, or any other URL that pyserial supports.  Raises UserError if the port cannot be opened."""
    try:
        import serial
    except ImportError:
        raise MissingExtra("a check on a board", "board") from None
    try:
        # an RFC 2217 connection (over a network) does not support a time limit for writing
        limit: dict[str, Any] = {} if url.startswith("rfc2217:") else {"write_timeout": 10, "exclusive": True}
        line: Line = serial.serial_for_url(url, baudrate=baud, timeout=0.05, **limit)
    except Exception as error:  # pyserial raises unrelated types of errors for an invalid URL or speed
        reason = " ".join(str(error).split())
        raise UserError(
            f"{url} cannot be opened ({reason}); check that the board is plugged in, and that no other program, such as a serial monitor, uses the port"
        ) from None
    return line


def coded(data: bytes) -> bytes:
    """Encode data so that the result has no zero bytes, and append a zero byte as the end mark (consistent overhead byte stuffing).

    data: at most 253 bytes.
    """
    return b"".join(bytes([len(run) + 1]) + run for run in data.split(b"\0")) + b"\0"


def sealed(kind: bytes, number: int, data: bytes) -> bytes:
    """Return a complete encoded frame: kind, number, data and checksum."""
    content = kind + bytes([number]) + data
    return coded(content + zlib.crc32(content).to_bytes(4, "little"))


def opened(frame: bytes) -> tuple[bytes, int, bytes] | None:
    """Return kind, number and data of a frame, or None if the frame was damaged."""
    content = checked(frame)
    return None if content is None or len(content) < 2 else (content[:1], content[1], content[2:])


@dataclass(frozen=True)
class Board:
    """A board's description of itself.

    hertz: ticks of the board's counter per second.  If this number is not known, hertz is 0, and ticks are CPU cycles.
    """

    name: str
    compiler: str
    hertz: int


class Link:
    """The host's end of the line, which answers the board's questions.  Each job has a time limit, and a limit on the
    number of frames.

    damaged: number of damaged frames, in both directions.  clock: a function that returns seconds.
    """

    def __init__(
        self,
        url: str,
        line: Line,
        config_hash: int,
        baud: int = BAUD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url, self.line, self.config_hash, self.baud, self.clock = url, line, config_hash, baud, clock
        self.limit = self.deadline = 0.0  # this job's time limit in seconds, and the clock's reading when it expires
        self.frames_left = 0
        self.seen = Counter[str]()  # number of events of each kind in this job
        self.received = bytearray()
        self.noise = bytearray()
        self.last: tuple[bytes, int] | None = None  # the last question
        self.answer = b""
        self.damaged = 0
        self.heard = 0  # number of valid frames received

    def meet(self) -> Board:
        """Ask the board for its description.  Raises UserError if no board answers, or if the board has another model."""
        self._begin(2 * LONGEST, 0)
        numbers = self._hello(b"?")
        name, compiler = numbers[9:11]  # the lengths of the two names
        if max(name, compiler) > LONGEST:
            self._refuse(OTHER_FIRMWARE)
        texts = "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in self._take(name + compiler, b"?"))
        return Board(texts[:name], texts[name:], int.from_bytes(numbers[5:9], "little"))

    def job(self, data: bytes, expected: int, samples: int = 0) -> bytes:
        """Run a job with this number of samples on the board, and return the bytes that the board sends back."""
        self._begin(len(data) + expected, samples)
        self._hello(b"J")
        return self._take(expected, b"J", data)

    def _begin(self, count: int, samples: int) -> None:
        """Set a job's limits: the number of frames, and a time that allows for the job's bytes, for its samples and for
        one long call.
        """
        frames = count // CHUNK + 2 * samples + 4  # each part of a job may end with a frame that is not full
        on_the_line = DELAY + 2 * (CHUNK + 8) * 10 / self.baud
        self.limit = SILENCE + PER_SAMPLE * samples + TRIES / 4 * frames * on_the_line
        self.deadline = self.clock() + self.limit
        self.frames_left = TRIES * (frames + 10)
        self.seen.clear()

    def _refuse(self, message: str) -> NoReturn:
        raise UserError(f"{self.url}: {message}") from None

    def _hello(self, order: bytes) -> bytes:
        """Wait for the board's hello, check its firmware, and send the order."""
        kind, data = self._question(SILENCE if self.heard else FIRST_WORD)
        while kind != HELLO:
            self.seen["other"] += 1
            self._answer(STOP, b"")  # stop a job that another host began
            kind, data = self._question(SILENCE)
        if len(data) != 11 or data[0] != PROTOCOL:
            self._refuse(OTHER_FIRMWARE)
        found = int.from_bytes(data[1:5], "little")
        if found != self.config_hash:
            self._refuse(
                f"the board has another model (its configuration is {found:08x}, this spec's is {self.config_hash:08x}); "
                "generate the firmware from this spec and upload it"
            )
        self._answer(ANSWER, order)
        return data

    def _take(self, expected: int, order: bytes, data: bytes = b"") -> bytes:
        """Answer the board's questions until the board has written ``expected`` bytes, and return these bytes."""
        written, at = bytearray(), 0
        while len(written) < expected:
            kind, asked = self._question(SILENCE)
            if kind == HELLO:
                if written or at:
                    self._refuse(
                        "the board restarted in the middle of the check; is its supply stable, and is its watchdog off?"
                    )
                self.seen["hello"] += 1
                self._answer(ANSWER, order)  # the board was still busy with a job of another host
            elif kind == READ and len(asked) == 1 and 0 < asked[0] <= min(CHUNK, len(data) - at):
                self._answer(ANSWER, data[at : at + asked[0]])
                at += asked[0]
            elif kind == WRITE and 0 < len(asked) <= CHUNK and len(written) + len(asked) <= expected:
                written += asked
                self._answer(ANSWER, b"")
            else:
                self._refuse(
                    "the board asked for data that the check does not have; generate its firmware from this spec again"
                )
        return bytes(written)

    def _question(self, patience: float) -> tuple[bytes, bytes]:
        """Wait for the board's next question, and return it."""
        now = self.clock()
        end, pause, before = min(now + patience, self.deadline), PAUSE, self.damaged
        silent = now + pause
        while True:
            frame = self._frame(silent)
            if self.clock() >= end or self.frames_left < 0:
                self._refuse(self._why(patience, self.damaged - before))
            if frame is None:
                self._say(AGAIN)
                pause = min(2 * pause, 8.0)
                silent = self.clock() + pause
                continue
            self.frames_left -= 1
            question = opened(frame)
            if question is None:
                self.noise += frame[: NOTED - len(self.noise)]
            else:
                self.heard += 1
                if question[:2] != self.last:
                    self.last = question[:2]
                    return question[0], question[2]
            self.damaged += 1
            self.seen["damaged" if question is None else "again"] += 1
            # the board repeats its question if the host's answer was damaged
            self._say(AGAIN if question is None else self.answer)

    def _answer(self, kind: bytes, data: bytes) -> None:
        assert self.last is not None
        self.answer = sealed(kind, self.last[1], data)
        self._say(self.answer)

    def _frame(self, until: float) -> bytes | None:
        """Return the bytes before the next zero byte, or None if no zero byte arrives in time."""
        while True:
            end = self.received.find(0)
            if end < 0 and len(self.received) > 4 * CHUNK:  # longer than any frame
                end = len(self.received)
            if end >= 0:
                frame = bytes(self.received[:end])
                del self.received[: end + 1]
                return frame
            if self.clock() >= until:
                if not self.heard:
                    self.noise += self.received[: NOTED - len(self.noise)]
                return None
            self.received += self._get()

    def _get(self) -> bytes:
        return self._on_line(lambda: self.line.read(max(1, min(getattr(self.line, "in_waiting", 1), 4096))))

    def _say(self, data: bytes) -> None:
        self._on_line(lambda: self.line.write(data))

    def _on_line(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        # pyserial's errors are OSErrors, but a port that has disappeared may raise TypeError
        except (OSError, TypeError) as error:
            self._refuse(f"the line was cut ({' '.join(str(error).split())}); plug the board in and check again")

    def _why(self, patience: float, damaged: int) -> str:
        """Return a sentence that says why the host gives up: silence, a job that takes too long, or too many frames.

        For too many frames, the sentence depends on the most frequent event in this job.
        """
        if not self.heard or (self.frames_left >= 0 and self.clock() < self.deadline):
            return self._silence(patience, damaged)
        if self.frames_left >= 0:
            return f"the board did not finish a part of the check within {self.limit:.0f} s; does another task use its CPU?"
        what, often = max(self.seen.items(), key=lambda item: item[1], default=("", 0))
        if often > TRIES:
            return OFTEN[what].format(often)
        return "the board sent more frames than the check needs; generate its firmware from this spec again"

    def _silence(self, patience: float, damaged: int) -> str:
        firmware = "the firmware that pykernel generate --for check writes"
        if self.heard and damaged > 2:
            return "data arrive damaged at the board; check the wire to its RX, and its UART's buffer"
        if self.heard:
            return f"the board has sent nothing for {patience:.0f} s; was it unplugged, or is it stuck in a call?"
        if not self.noise and not damaged:
            return f"no data arrived in {patience:.0f} s; is this the board's port, and does the board run {firmware}?"
        readable = sum(32 <= byte < 127 or byte in b"\r\n\t" for byte in self.noise) / max(1, len(self.noise))
        if readable > 0.9:
            said = " ".join(self.noise.decode("ascii", "replace").split())[:40]
            return f"another program runs on the board and says {said!r}; upload {firmware}"
        return f"the board sends bytes that are not frames; is the speed right (--baud), and does the board run {firmware}?"


class BoardModel(JobModel):
    """A model on a board.  board: the board's description of itself."""

    def __init__(self, project: Project, link: Link) -> None:
        super().__init__(project)
        self.link = link
        self.board = link.meet()
        self.progress: Callable[[int], None] = lambda samples: None
        self._samples_done = 0
        self.call("init")

    def exchange(self, job: bytes, expected: int, samples: int) -> bytes:
        return self.link.job(job, expected, samples)

    def prequential(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict and learn the rows like the base class, but in pieces, so that progress can be shown.

        This does not change the result, because every job sends the model's memory to the board and back.
        """
        pieces = []
        for start in range(0, len(x), PIECE):
            pieces.append(super().prequential(x[start : start + PIECE], y[start : start + PIECE]))
            self._samples_done += len(pieces[-1][0])
            self.progress(self._samples_done)
        answers, statuses = zip(*pieces, strict=True)
        return np.concatenate(answers), np.concatenate(statuses)
