"""A model on the host: its memory, and the functions that run on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.dialect import Memory
from pykernel.engine.choice import Engine
from pykernel.engine.engines import program_executor
from pykernel.engine.executor import Executor
from pykernel.errors import UserError

if TYPE_CHECKING:
    from pykernel.spec.model import Spec


def require_ieee() -> None:
    """Raise UserError if the processor rounds subnormal numbers to zero or does not round to nearest, which changes results.

    Another library in the same process may have set this mode.
    """
    smallest, one, tiny = np.finfo(np.float32).tiny, np.ones(1, np.float32), np.full(1, 2.0**-24, np.float32)
    if (smallest * one * np.float32(0.5))[0] == 0:
        raise UserError(
            "this process rounds subnormal numbers to zero, which changes results, because it has loaded a library that was "
            "built with -ffast-math; start a process that does not load this library"
        )
    if (one + tiny)[0] != 1 or (one + 3 * tiny)[0] == 1:
        raise UserError("this process does not round to nearest, which changes results; restore the rounding mode")


class HostModel:
    """A simulated device: the same memory and the same functions, bit for bit.

    Inputs have shape (samples, DIM) and are converted to the spec's precision.  Labels are numbers: (samples,) for one
    output, and (samples, OUTPUTS) for several outputs. A classifier's labels are class indices from 0, (samples,). A
    model that learns without labels takes no labels. ``engine`` executes the model: "llvm", "numba" or "python" (see
    ``pykernel.engine``). All engines compute the same bits. ``drop`` lists the fields that the generated C struct
    does not contain; they are stored outside of ``memory.bytes``, which then equals the C struct.

    Several threads may share one model, because only one call runs at a time.

    An int16 model takes and returns numbers in the units of the data. With ``raw``, an int16 model takes and returns
    the same integers as the C code.
    """

    def __init__(self, spec: Spec, drop: tuple[str, ...] = (), engine: Engine | None = None, raw: bool = False) -> None:
        require_ieee()
        self.spec, self.engine, self.raw = spec, engine, raw
        self.config = spec.config
        self.memory: Memory = spec.memory(drop)
        self._made: tuple[Memory, Executor] | None = None

    @property
    def executor(self) -> Executor:
        """The executor of the model's kernels, created on first use."""
        if self._made is None or self._made[0] is not self.memory:
            self._made = self.memory, program_executor(self.spec.program, self.memory, self.config, self.engine)
        return self._made[1]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}  # machine code cannot be sent to another process

    def _inputs(self, x: Any) -> np.ndarray:
        x = np.array(x, self.spec.real.dtype, order="C", ndmin=2) if self.raw else self.spec.raw_inputs(x)
        if x.ndim != 2 or x.shape[1] != self.spec.width:
            raise ValueError(f"the inputs have shape {x.shape}; the model takes (samples, {self.spec.width})")
        return x

    def _labels(self, y: Any, samples: int) -> np.ndarray:
        kind = self.spec.program.label_array(self.memory.capacities)
        if kind.shape == (0,):
            if y is not None and np.shape(y) != (samples, 0):
                raise UserError(f"{self.spec.name} learns without labels; give only the inputs")
            return np.zeros((samples, 0), self.spec.real.dtype)
        if y is None:
            raise UserError(f"{self.spec.name} learns from labels; give a label for each sample")
        if kind.is_class:
            y = np.array(y, order="C", ndmin=1)
            if y.dtype.kind not in "iu":
                raise ValueError(
                    f"the labels have type {y.dtype}; a classifier learns class indices, which are integers"
                )
            # clipped, so that a number that does not fit into int32 cannot wrap around to a valid class
            y = np.clip(y, -(2**31), 2**31 - 1).astype(np.int32)
        else:
            y = np.array(y, self.spec.program.label_dtype(self.spec.real)) if self.raw else self.spec.raw_labels(y)
            y = np.array(y, order="C", ndmin=1 + len(kind.shape))
        if y.shape != (samples, *kind.shape):
            raise ValueError(
                f"the labels have shape {y.shape}; for these inputs the shape must be {(samples, *kind.shape)}"
            )
        return y

    # ---- questions

    def has(self, question: str) -> bool:
        """Return whether the firmware has NAME_<question>, a function that takes an input and does not change the model."""
        return question in self.spec.program.questions and self.exists(question)

    def exists(self, name: str) -> bool:
        """Return whether the firmware has the function NAME_<name>."""
        return any(entry.name == name for entry in self.spec.program.entries_for(self.config))

    def ask(self, question: str, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Call NAME_<question> for each row.  Returns answers (samples, values), and statuses (samples,).

        If the model refuses a row, the answer is NaN (-1 for a class or an index).  Raises UserError if the model does not
        have the function NAME_<question>.
        """
        x = self._inputs(x)
        self._require(question)
        program = self.spec.program
        answers = program.answers(question, len(x), self.memory)
        statuses = np.zeros(len(x), np.int32)
        if len(x):
            self.executor.rows(x, statuses, ask=program.entry(question), answers=answers)
        return self._given(question, answers), statuses

    def _given(self, question: str, answers: np.ndarray) -> np.ndarray:
        return answers if self.raw else self.spec.in_units(question, answers)

    def _require(self, question: str) -> None:
        if not self.has(question):
            raise UserError(f"{self.spec.name} {_lacks(question)}")

    def _shaped(self, answers: np.ndarray) -> np.ndarray:
        return answers[:, 0] if answers.shape[1] == 1 else answers

    def predict(self, x: Any) -> np.ndarray:
        """Return f(x) for each row, (samples,) for one output or (samples, OUTPUTS), with NaN where the input is refused."""
        return self._shaped(self.ask("predict", x)[0])

    def classify(self, x: Any) -> np.ndarray:
        """Return the class index of each row, (samples,) int32, or -1 where the input is refused."""
        return self._shaped(self.ask("classify", x)[0])

    def novelty(self, x: Any) -> np.ndarray:
        """Return the novelty of each row, (samples,), with NaN where the input is refused."""
        return self._shaped(self.ask("novelty", x)[0])

    def features(self, x: Any) -> np.ndarray:
        """Return the features z(x) of each row, (samples, features), with NaN where the input is refused.  z(a)'z(b)
        approximates k(a, b).
        """
        return self.ask("features", x)[0]

    def variance(self, x: Any) -> np.ndarray:
        """Return the predictive variance of a label at each row, (samples,), with NaN where the input is refused."""
        return self._shaped(self.ask("variance", x)[0])

    def interval(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower ends and the upper ends of the rows' prediction intervals. Each array has the shape of ``predict``'s
        result.
        """
        bounds = self.ask("interval", x)[0].reshape(-1, 2, self.spec.outputs)
        return self._shaped(bounds[:, 0]), self._shaped(bounds[:, 1])

    def probability(self, x: Any) -> np.ndarray:
        """Return the probability of each class at each row, (samples, classes), with NaN where the input is refused."""
        return self.ask("probability", x)[0]

    # ---- learning

    def update(self, x: Any, y: Any = None) -> np.ndarray:
        """Learn the rows one after the other.  Returns the statuses, (samples,) int32.

        Raises UserError if the model does not learn, if it needs labels and y is None, or if it learns without labels
        and y is given.
        """
        return self.visit(self.spec.program.learner or "update", x, y)

    def visit(self, name: str, x: Any, y: Any = None) -> np.ndarray:
        """Call NAME_<name> for each row, with the row's label if the function takes one.  Returns the statuses, (samples,) int32.

        Raises UserError if the model does not have this function.
        """
        program = self.spec.program
        if name not in (program.learner, *program.visits) or not self.exists(name):
            what = "does not learn: its weights are fixed" if name == "update" else _lacks(name)
            raise UserError(f"{self.spec.name} {what}")
        x = self._inputs(x)
        y = None if name in program.promises else self._labels(y, len(x))
        statuses = np.zeros(len(x), np.int32)
        if len(x):
            self.executor.rows(x, statuses, learn=program.entry(name), y=y)
        return statuses

    def expect(self, x: Any) -> np.ndarray:
        """Announce that the labels of the rows will come later.  The model stores its current answer, to compare it with the
        label in ``update``.  It stores one answer at a time, and for [interval] up to 16.

        Returns the statuses, (samples,) int32.  Raises UserError if the model has no NAME_expect.
        """
        return self.visit("expect", x)

    def prequential(
        self, x: Any, y: Any = None, first: int = 0, delay: int = 0, question: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """For each row from ``first`` on, ask a question, and then learn the row that came ``delay`` rows earlier.
        Returns the answers and the statuses of learning.

        With a delay, NAME_expect is called for each row, if the model has it.

        question: the question to ask, such as "classify"; by default the program's main question, usually "predict".
        If the model does not learn, it only answers, and the statuses are those of the answers.
        """
        answers, _, statuses = self._prequential(x, y, first, delay, question or self.spec.program.asks, False)
        return answers, statuses

    def prequential_alarms(
        self, x: Any, y: Any = None, first: int = 0, delay: int = 0, question: str | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Like ``prequential``, for a model that raises alarms.  Returns answers, states and statuses.

        states: after each row, the alarm's level, its threshold and the number of rows since the alarm began, (samples, 3).
        Raises UserError if the model raises no alarms.
        """
        if not self.spec.program.alarms:
            raise UserError(f"{self.spec.name} raises no alarms")
        return self._prequential(x, y, first, delay, question or self.spec.program.asks, True)

    def _prequential(
        self, x: Any, y: Any, first: int, delay: int, question: str, watched: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        original, x = x, self._inputs(x)
        y = self._labels(y, len(x))
        if not 0 <= first <= len(x) or delay < 0:
            raise ValueError(
                f"first is {first} and delay is {delay}; for {len(x)} rows, first must be from 0 to {len(x)} and delay 0 or more"
            )
        program = self.spec.program
        if program.reads:
            if first or delay:
                raise ValueError(
                    "a model with a signal stage learns every row as soon as it comes, so first and delay must be 0"
                )
            answers, statuses = self._taken(program.learner, x, y, question)
            return answers, np.zeros((len(x), 0)), statuses
        self._require(question)
        states = np.full((len(x) - first, 3), 0 if program.is_int16 else np.nan, self.spec.real.dtype)
        if not program.learns:
            answers, statuses = self.ask(question, original[first:])
            return self._shaped(answers), states, statuses
        answers = program.answers(question, len(x) - first, self.memory)
        statuses = np.zeros(len(answers), np.int32)
        if len(answers):
            look = program.entry("alarm") if watched else None
            self.executor.rows(
                x,
                statuses,
                ask=program.entry(question),
                answers=answers,
                expect=program.entry("expect") if delay and self.exists("expect") else None,
                learn=program.entry(program.learner),
                y=y,
                look=look,
                states=states,
                first=first,
                delay=delay,
            )
        return self._shaped(self._given(question, answers)), states, statuses

    def gather(self, x: Any, reading: str) -> tuple[np.ndarray, np.ndarray]:
        """Pass each raw row to NAME_push, then call NAME_<reading>, which computes its answer from the newest features.

        Returns the answers and the statuses of NAME_push.

        Use this method if a model with a signal stage gets its labels in separate calls of NAME_label.
        """
        x, name = self._inputs(x), next(entry.name for entry in self.spec.program.entries if entry.kind == "gather")
        return self._taken(name, x, np.zeros((len(x), 0), self.spec.real.dtype), reading)

    def _taken(self, name: str, x: np.ndarray, y: np.ndarray, reading: str) -> tuple[np.ndarray, np.ndarray]:
        """Pass each raw row to NAME_<name>, then call NAME_<reading>, which computes its answer from the newest features."""
        program = self.spec.program
        answers, statuses = program.answers(reading, len(x), self.memory), np.zeros(len(x), np.int32)
        if len(x):
            look, learn = program.entry(reading), program.entry(name)
            self.executor.rows(x, statuses, learn=learn, y=y, look=look, states=answers)
        return self._shaped(self._given(reading, answers)), statuses

    def call(self, name: str, *args: Any) -> Any:
        """Call an entry of the program, as the firmware calls NAME_<name>.

        Does nothing if the model lacks the entry.
        """
        for entry in self.spec.program.entries_for(self.config):
            if entry.name == name:
                return self.executor.call(entry.kernel, *args)
        return 0

    def refresh(self) -> None:
        """Refresh the model, as NAME_refresh does on the device."""
        self.call("refresh")

    def train(self) -> int:
        """Train the model, as NAME_train does on the device. Returns the status of the training. If the status is below
        0, the model is unchanged.

        Raises UserError if the model does not have this function.
        """
        if not self.exists("train"):
            raise UserError(f"{self.spec.name} {_lacks('train')}")
        return int(self.call("train"))

    def freeze(self, frozen: bool = True) -> None:
        """Switch learning off, or on again."""
        self.call("freeze", int(frozen))

    def read(self, name: str) -> tuple[np.ndarray, int]:
        """Call the reading NAME_<name>, whose only input is the model. Returns an array of the values that the reading
        writes, and the status.

        If the model refuses the call, the values are NaN (-1 for an index).  Raises UserError if the model does not
        have this reading.
        """
        program = self.spec.program
        if name not in program.readings or not self.exists(name):
            raise UserError(f"{self.spec.name} {_lacks(name)}")
        values = program.reading(name, self.memory)
        return values, int(self.call(name, values))

    def reset(self) -> None:
        """Reset the model to its state before learning."""
        self.memory.clear()


def _lacks(entry: str) -> str:
    """Return the end of an error message, which says what the model lacks and, where possible, how to add it."""
    known = {
        "classify": 'learns numbers, not classes; [label] classes = ["…", "…"] makes it a classifier',
        "variance": "keeps no variance; rule krls-t does",
        "interval": "gives no intervals; for numeric labels, [interval] adds them",
        "expect": "does not store answers until their labels come; models with [mixture], [label] gain or [interval] do",
        "novelty": "does not measure how new an input is; okfeb and all rules with [reduction] n_max do",
        "features": "has no features; models with rule nystrom, nystrom-rls or okfeb have them",
        "predict": "predicts nothing, because it learns without labels",
        "probability": "gives no probabilities; a classifier gets them from [mixture], rule spectrum-softmax, okfeb's logistic "
        "head or [expansion] calibration",
        "train": "has no training step: it learns sample by sample, or not at all",
    }
    return known.get(entry, f"has no {entry}")
