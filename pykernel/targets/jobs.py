"""A model on another computer that takes one job at a time: an emulator's process, a WebAssembly module, or a board on
a serial line.

A job sends the model's bytes, a code for the function to call and, if the function takes them, samples.  The job
receives the results and the model's new bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from pykernel.dialect import Memory
from pykernel.gen.firmware import RUN, Orders, orders_of
from pykernel.gen.project import Project


class JobModel(ABC):
    """A model on another computer, with the same methods as CModel.

    ticks: dict that maps each function to the times of its calls, measured by the other computer's counter.
    stack_bytes: the largest stack use in bytes; 0 if not known.
    """

    block = 2**31 - 1  # largest number of bytes of samples in one job

    def __init__(self, project: Project) -> None:
        self.spec = project.spec
        self.memory: Memory = self.spec.memory(project.drop)
        self.orders: Orders = orders_of(self.spec, project.files[f"src/{self.spec.name}.h"])
        self.label_dtype = self.spec.program.label_dtype(self.spec.real)
        self.written = np.dtype(
            [
                ("values", self.spec.real.dtype, (self.orders.values,)),
                ("position", "<i4", (self.orders.positions,)),
            ]
        )
        self.result = np.dtype(
            [*self.written.descr, ("status", "<i4"), ("learned", "<i4"), ("asking", "<u4"), ("learning", "<u4")]
        )
        self.ticks: dict[str, list[int]] = {}
        self.stack_bytes = 0

    @abstractmethod
    def exchange(self, job: bytes, expected: int, samples: int) -> bytes:
        """Run a job with this number of samples, and return the bytes that the other computer sends back.

        Raises CheckFailed if the other computer does not send ``expected`` bytes.
        """

    def call(self, name: str) -> int:
        """Call NAME_<name>(s) on the model."""
        result = self._job(name, b"", 0)[1]
        return result if name == "hash" else result - (result >> 31 << 32)

    def prequential(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it.  Returns (answers, statuses).

        If the main question is a reading, it is called after the row is learned.  The statuses are those of the update,
        or those of the predictions if the model does not learn.
        """
        program = self.spec.program
        x, y = np.ascontiguousarray(x, self.spec.real.dtype), np.ascontiguousarray(y, self.label_dtype)
        results = self._samples(None, [x, y.reshape(len(y), -1)] if program.learns else [x])
        answers = self._answers(program.asks, results)
        self._count(program.asks, results["asking"])
        if program.learns:
            self._count(program.learner, results["learning"])
        statuses = results["learned" if program.learns else "status"].astype(np.int32)
        return answers[:, 0] if answers.shape[1] == 1 else answers, statuses

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays, like HostModel.ask: one of shape (samples, values) with the values that NAME_<question> writes for
        each row, and one with the statuses.
        """
        results = self._samples(question, [np.ascontiguousarray(x, self.spec.real.dtype)])
        self._count(question, results["asking"])
        return self._answers(question, results), results["status"].astype(np.int32)

    def visit(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Call NAME_<name> with each row and its label.  Returns the statuses, like HostModel.visit."""
        x, y = np.ascontiguousarray(x, self.spec.real.dtype), np.ascontiguousarray(y, self.label_dtype)
        results = self._samples(name, [x, y.reshape(len(y), -1)])
        self._count(name, results["learning"])
        return results["learned"].astype(np.int32)

    def read(self, name: str) -> tuple[np.ndarray, int]:
        """Return an array of the values that NAME_<name> writes, and the function's status, like HostModel.read."""
        room = self.spec.program.reading(name, self.memory)
        output, result = self._job(name, b"", 0)
        status = result - (result >> 31 << 32)
        if status >= 0:
            room[:] = np.frombuffer(output, self.written)[0][_kind(room)][: len(room)]
        return room, status

    def _count(self, name: str, ticks: np.ndarray) -> None:
        self.ticks.setdefault(name, []).extend(ticks.tolist())

    def _answers(self, question: str, results: np.ndarray) -> np.ndarray:
        answers = self.spec.program.answers(question, len(results), self.memory)
        taken = results["status"].astype(np.int32) >= 0
        answers[taken] = results[_kind(answers)][taken][:, : answers.shape[1]]
        return answers

    def _samples(self, name: str | None, columns: list[np.ndarray]) -> np.ndarray:
        """Call a function for each row, and return the results: values, statuses and ticks.

        name: a question or a visit; None: the main question and the update.  columns: the arguments of the function.
        """
        rows = np.column_stack([np.ascontiguousarray(c).view(np.uint8).reshape(len(c), -1) for c in columns])
        block = max(1, self.block // rows.shape[1])
        parts = [rows[start : start + block] for start in range(0, len(rows), block)]
        outputs = [self._job(name, part.tobytes(), len(part))[0] for part in parts]
        return np.frombuffer(b"".join(o[: -self.written.itemsize] for o in outputs), self.result)

    def _job(self, name: str | None, rows: bytes, count: int) -> tuple[bytes, int]:
        """Run one job, and store the model's new state in ``memory``.

        Returns (output, result).  output: the bytes that were written for each sample, followed by those written at the
        end.  result: the function's result, which has a meaning only if there are no samples.
        """
        which = RUN if name is None else self.orders.of_name[name]
        order = np.array([which, count], "<u4").tobytes()
        size, last, samples = self.memory.layout.nbytes, self.written.itemsize, count * self.result.itemsize
        output = self.exchange(bytes(self.memory.bytes) + order + rows, samples + 12 + last + size, count)
        self.memory.bytes[:] = output[-size:]
        result, ticks, stack = np.frombuffer(output[samples : samples + 12], "<u4").tolist()
        if name is not None and not count:
            self.ticks.setdefault(name, []).append(ticks)
        self.stack_bytes = max(self.stack_bytes, stack)
        return output[:samples] + output[samples + 12 : -size], result


def _kind(room: np.ndarray) -> str:
    """Return the name of the device's array for values of this kind.  The device has two arrays, values and position."""
    return "values" if room.dtype.kind == "f" or room.dtype.itemsize == 2 else "position"
