"""Replay: the host repeats the steps in a device's log, and reports the first row with a different result."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from pykernel.dialect import Index, Memory
from pykernel.dialect.program import taken_by
from pykernel.errors import UserError, shown_option
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.rows.arrays import Part
from pykernel.rows.text import BATCH, read_parts, shown_cell
from pykernel.spec.model import Spec

STATE_HASH, STATUS, CALL, LEARNED = "state_hash", "status", "call", "learned"
ANSWERS = {"predict": "prediction", "classify": "predicted_class"}
"""Question -> the column with its answers.  The column of any other question has the question's name."""


def answer_columns(spec: Spec) -> dict[str, tuple[str, int]]:
    """Return column -> (question, index of the value in the answer to this question), for the columns of a log that can
    hold the device's answers.

    If an answer has several values, its columns are numbered.  A question cannot be logged if the spec has a column of
    the same name.
    """
    program, found = spec.program, {}
    own = {*(spec.sample_columns or ()), *spec.label_columns}
    for entry in program.entries_for(spec.config):
        if entry.name in program.answering:
            (count,) = program.written(entry.name).shape(spec.capacities)
            question = program.answering[entry.name]
            column = ANSWERS.get(question, question)
            for i in range(count):
                name = column if count == 1 else f"{column}{i}"
                if entry.name == program.asks or name not in own:
                    found[name] = (entry.name, i)
    return found


def log_header(spec: Spec) -> list[str]:
    """Return the columns of a log that holds samples, answers, statuses and hashes."""
    program, columns = spec.program, LogColumns(spec, "the log")
    learned = [LEARNED] if columns.may_ask else columns.labels
    asked = [column for column, (question, _) in columns.answers.items() if question == program.asks]
    return [
        *columns.inputs,
        *(learned if program.learns else []),
        *asked,
        STATUS,
        *([STATE_HASH] if program.learns else []),
    ]


def log_rows(
    spec: Spec, x: np.ndarray, y: np.ndarray, answers: np.ndarray, statuses: np.ndarray, state_hash: int
) -> Iterator[list[str]]:
    """Yield the rows of a log.  Each row holds a sample, the device's answer and the status; the last row also holds the
    state's hash.

    For the arguments, see ``Device`` of ``pykernel.gen.check``.
    """
    program = spec.program

    def texts_of(values: Any) -> list[str]:
        values = np.atleast_1d(values)
        return [f"{v:.{17 if v.itemsize == 8 else 9}g}" if values.dtype.kind == "f" else str(v) for v in values]

    for t in range(len(x)):
        learned = [] if not program.learns else ["1"] if may_ask_alone(spec) else texts_of(y[t])
        hashed = [] if not program.learns else [f"{state_hash:08x}" if t == len(x) - 1 else ""]
        yield [*texts_of(x[t]), *learned, *texts_of(answers[t]), str(int(statuses[t])), *hashed]


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a log.

    has: name of a column -> a Boolean array, (rows,), which is True where the cell is not empty.  The names "sample"
    and "label" stand for all inputs and all labels.  If the spec replaces missing inputs, "sample" is True where at
    least one input is given.  For a model without labels, "label" is True where the sample was learned.
    """

    first: int  # number of the first row, from 0
    lines: Sequence[int]
    x: np.ndarray  # (rows, D)
    label: np.ndarray  # (rows,) or (rows, labels); (rows, 0) for a model without labels
    state_hash: np.ndarray  # (rows,)
    status: np.ndarray  # (rows,)
    answers: dict[str, np.ndarray]  # column -> the device's answers, (rows,)
    call: list[tuple[str, ...]]  # for each row, the function and its arguments; empty if the row has no call
    has: dict[str, np.ndarray]
    exact: bool  # whether any number has all the digits that the precision needs
    position: int  # number of bytes of the log read so far


@dataclass(frozen=True)
class Difference:
    """The first difference between host and device.

    row, line: where the difference was found; rows are counted from 0.  after: the last row before the difference whose
    hash is equal on both sides, or -1 if there is none. From the row after it, the states may differ.  kind: the column
    that differs, such as "status" or "state_hash".
    """

    kind: str
    row: int
    line: int
    after: int
    device: str
    host: str

    def __str__(self) -> str:
        where = f"row {self.row} (line {self.line})"
        first = self.after + 1
        since = f"; the states may differ from row {first} on" if self.kind == STATE_HASH and first != self.row else ""
        return f"{where}: {self.kind} is {self.device} on the device, {self.host} on the host{since}"


# --------------------------------------------------------------------------------------------------- reading a log


def read_log(file: BinaryIO, name: str, spec: Spec, rows: int = BATCH) -> Iterator[Rows]:
    """Yield batches of a log's rows, in memory that does not grow with the log.  Raises UserError with a message that
    names the invalid line.

    Columns: the inputs, with the spec's names or x0, x1, …; the label, with the spec's name or ``label`` (label0,
    label1, … if there are several labels).  Optional columns: state_hash, status, call, and those of
    ``answer_columns``.
    For a model without labels, the column ``learned`` replaces the label: 1 for a row that was learned, 0 for a row for
    which the device only answered.  If this column is missing, every row was learned.
    """
    columns = LogColumns(spec, name)
    first = 0
    for part in read_parts(file, name, columns.choose, ",".join([*columns.generic, STATE_HASH]), rows):
        yield columns.parse(part, first)
        first += len(part.lines)


@dataclass(frozen=True)
class _Cells:
    """The kind of a column's cells: the type of the values, the function that converts a cell's text, and a description
    of valid cells.
    """

    dtype: Any
    convert: Callable[[str], Any]
    what: str


class LogColumns:
    """The meaning of a log's columns and of their cells."""

    def __init__(self, spec: Spec, name: str) -> None:
        self.spec, self.name = spec, name
        self.labels_of, self.unlabelled = spec.program.label_array(spec.capacities), spec.program.label_kind == "none"
        self.may_ask = may_ask_alone(spec)
        several = [f"label{i}" for i in range(self.labels_of.shape[0])] if self.labels_of.shape else ["label"]
        own = (STATE_HASH, STATUS, CALL, *([LEARNED] if self.may_ask else []))
        self.generic = [*(f"x{j}" for j in range(spec.width)), *several]
        self.inputs = list(spec.sample_columns or self.generic[: spec.width])
        self.labels = [] if self.unlabelled else list(spec.label_columns or several)
        self.awaits = any(entry.kind == "label" for entry in spec.program.entries)
        self.answers = answer_columns(spec)
        self.chosen: list[str] = []
        self.statuses = {status.name: int(status) for status in spec.program.status}
        self.callable = callable_entries(spec)
        for column in [*self.inputs, *self.labels]:
            if column in own or self.answers.get(column, ("",))[0] == spec.program.asks:
                raise UserError(
                    f"{name}: in a log, the column {column} has a fixed meaning; rename this column in the spec"
                )

    def choose(self, header: list[str]) -> dict[str, str]:
        dim = self.spec.width
        if self.inputs[0] not in header and "x0" in header:
            self.inputs = self.generic[:dim]
        if self.labels and self.labels[0] not in header and self.generic[dim] in header:
            self.labels = self.generic[dim:]
        if STATE_HASH in header and not self.spec.program.learns:
            raise UserError(
                f"{self.name}: has the column {STATE_HASH}, but {self.spec.name} learns nothing: its hash covers "
                "only intermediate results; record its answers instead"
            )
        # a log with a label column must have all label columns; a log without label columns holds only predictions
        labels = self.labels if set(self.labels) & set(header) and self.spec.program.learns else []
        others = (STATE_HASH, STATUS, *self.answers, CALL, *([LEARNED] if self.may_ask else []))
        self.chosen = [*self.inputs, *labels, *(c for c in others if c in header)]
        return dict.fromkeys(self.chosen, "text")  # read as text, because the digits are counted

    def _kinds(self) -> dict[str, _Cells]:
        """Return a dict that maps each possible column, even if the log lacks it, to the kind of its cells."""
        program = self.spec.program
        number = _Cells(np.float64, _number, "a number, in decimal or as C's %a prints it")
        position = _Cells(np.int32, self._class, "a class, as an index from 0 or by name")
        positions = {q for q in program.answering if program.written(q).scalar is Index}
        calls = ", ".join(name + " 1" * count for name, count in self.callable.items())
        return (
            {column: position if question in positions else number for column, (question, _) in self.answers.items()}
            | dict.fromkeys(self.labels, position if self.labels_of.is_class else number)
            | dict.fromkeys(self.inputs, number)
            | {
                STATE_HASH: _Cells(np.uint32, _hash, "a hash of 8 hexadecimal digits, as %08lx prints it"),
                STATUS: _Cells(np.int32, self._status, "a status, as a number or by name"),
                LEARNED: _Cells(bool, _flag, "1 if the row was learned, 0 if the model was only asked"),
                CALL: _Cells(object, self._call, calls),
            }
        )

    def parse(self, part: Part, first: int) -> Rows:
        count, shape, kinds = len(part.lines), self.labels_of.shape, self._kinds()
        texts: dict[str, Any] = {**dict.fromkeys(kinds, [""] * count), **part.columns}
        read = {column: self._read(column, kind, texts[column], part.lines) for column, kind in kinds.items()}
        answers = [column for column in self.answers if column in self.chosen]
        present, labelled = (
            np.array([read[column][1] for column in columns], bool).reshape(-1, count)
            for columns in (self.inputs, self.labels)
        )
        if self.spec.completes:  # in a row with at least one input, an empty cell is a missing input
            some = present.any(axis=0)
            for column, there in zip(self.inputs, present, strict=True):
                read[column][0][some & ~there] = np.nan
            present = np.broadcast_to(some, present.shape)
        has = {column: read[column][1] for column in (*answers, STATE_HASH, STATUS, CALL)}
        has |= {"sample": np.asarray(present.all(axis=0)), "label": np.asarray(labelled.all(axis=0))}
        if self.unlabelled:
            learned, stated = read[LEARNED]
            has["label"] = has["sample"] & (learned | ~stated)
        calls = [call or () for call in read[CALL][0]]
        self._refuse_gaps(part.lines, present, labelled, has, calls)
        real, dtype = self.spec.real.dtype, self.spec.program.label_dtype(self.spec.real)
        # a number that is too large for the precision becomes infinite, and is refused as on the device
        with np.errstate(over="ignore"):
            x = np.array([read[column][0] for column in self.inputs]).T.astype(real, order="C")
            y = np.array([read[column][0] for column in self.labels]).T.astype(dtype, order="C").reshape(count, *shape)
            values = {column: read[column][0] for column in answers}
            predictions = {c: each if each.dtype.kind == "i" else each.astype(real) for c, each in values.items()}
        digits = 9 if real.itemsize == 4 else 17
        written = [*self.inputs, *([] if self.labels_of.is_class else self.labels)]
        numbers = [text for column in written for text in texts[column] if text]
        exact = any(_digits(text) >= digits for text in numbers) or all(map(str.isdigit, numbers))  # integers are exact
        state_hash, status = read[STATE_HASH][0], read[STATUS][0]
        return Rows(first, part.lines, x, y, state_hash, status, predictions, calls, has, exact, part.position)

    def _read(
        self, column: str, kind: _Cells, texts: Sequence[str], lines: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of a column, and a mask of its cells that are not empty."""
        values, has = np.zeros(len(texts), kind.dtype), np.array(list(map(bool, texts)))
        for i in np.flatnonzero(has).tolist():
            text = texts[i]
            try:
                values[i] = kind.convert(text)
            except (ValueError, OverflowError):
                raise UserError(
                    f"{self.name}, line {lines[i]}: column {shown_cell(column)} is {shown_cell(text)}; it must be "
                    f"{kind.what}, or empty"
                ) from None
        return values, has

    def _class(self, text: str) -> int:
        """Return a class index.  An index that is not a class is allowed, because the device may have refused such a label."""
        if re.fullmatch(r"-?\d+", text):
            return int(np.int32(int(text)))
        return (self.spec.label.classes or ()).index(text)

    def _status(self, text: str) -> int:
        return self.statuses[text.upper()] if text.upper() in self.statuses else int(np.int32(int(text)))

    def _call(self, text: str) -> tuple[str, ...]:
        """Return the called function's name and its arguments, which are integers."""
        name, *arguments = text.split()
        if len(arguments) != self.callable.get(name) or not all(re.fullmatch(r"-?\d{1,9}", word) for word in arguments):
            raise ValueError(text)
        return name, *arguments

    def _refuse_gaps(
        self,
        lines: Sequence[int],
        present: np.ndarray,
        labelled: np.ndarray,
        has: dict[str, np.ndarray],
        calls: list[tuple[str, ...]],
    ) -> None:
        def refuse(wrong: np.ndarray, what: str) -> None:
            if wrong.any():
                raise UserError(f"{self.name}, line {lines[int(np.argmax(wrong))]}: {what}")

        sample, answered = has["sample"], np.zeros(len(lines), bool)
        for column in set(self.answers) & set(has):
            answered |= has[column]
        refuse(
            present.any(axis=0) & ~sample,
            "has some inputs and not others; write nan for an input that was not a number",
        )
        some = labelled.any(axis=0)
        alone = some & self.awaits  # a call of NAME_label
        refuse(
            ~sample & ~has[CALL] & ~alone,
            "has no inputs; give the inputs, or a call; if the row was lost, remove it and all later rows, because they cannot be replayed",
        )
        refuse(some & ~has["label"], "has some labels and not others; write nan for a label that was not a number")
        refuse(~sample & (some & ~alone | answered), "has a label or a prediction but no inputs; give the inputs")
        called = np.array([call[0] if call else "" for call in calls])
        visits, promises = (np.isin(called, each) for each in (self.spec.program.visits, self.spec.program.promises))
        refuse(visits & ~promises & ~has["label"], "has a call that takes a sample; give the inputs and the label")
        refuse(promises & ~sample, "has a call that takes a sample; give the inputs")
        refuse(
            promises & has["label"],
            "has a label, but its call says that the label comes later; give the label in a row of its own",
        )
        returned = has["label"] | (has[CALL] & (called != "reset"))
        if not self.spec.program.learns or self.spec.program.reads:
            returned |= sample
        refuse(
            has[STATUS] & ~returned,
            "has a status but was not learned; a status is the return value of update"
            if self.unlabelled
            else "has a status but no label; a status is the return value of update, which is not called without a label",
        )


def may_ask_alone(spec: Spec) -> bool:
    """Return whether a log may have the column ``learned``, which is 0 in a row for which the device only answered.

    A model with labels does not need this column, because such a row has no label. With a signal stage there are no
    such rows, because every raw row changes the state.
    """
    return spec.program.label_kind == "none" and not spec.program.reads


def callable_entries(spec: Spec) -> dict[str, int]:
    """Return name -> number of integer arguments, for the functions that change the model and may be named in a log.

    Not counted are the model, which is always an argument, and the row's sample, which some functions take.
    """
    calls = {"reset": 0} if spec.program.persistent else {}
    for entry in spec.program.entries_for(spec.config):
        extra = taken_by(entry.kernel)
        if entry.name in spec.program.visits:
            calls[entry.name] = 0
        elif all(kind is Index for kind in extra):
            calls[entry.name] = len(extra)
    return calls


def _number(text: str) -> float:
    return float.fromhex(text) if "x" in text.lower() else float(text)


def _digits(text: str) -> int:
    """Return the number of significant digits of a decimal number. A hexadecimal number is exact and counts as 99 digits."""
    return 99 if "x" in text.lower() else len(re.sub(r"e.*|[^\d]", "", text.lower()).lstrip("0"))


def _flag(text: str) -> bool:
    return bool(("0", "1").index(text))


def _hash(text: str) -> int:
    if not re.fullmatch(r"(0x)?[0-9a-fA-F]{8}", text):
        raise ValueError(text)
    return int(text, 16)


# --------------------------------------------------------------------------------------------------------- replay


class Replay:
    """A model on the host that repeats the steps of a log, and compares the results.

    start: the device's snapshot, or the bytes of its state, at the beginning of the log. With None, the replay starts
    from the state after NAME_init.
    """

    def __init__(self, spec: Spec, start: bytes | None = None, where: str = "the snapshot") -> None:
        self.spec, self._begins_new = spec, start is None
        self.model = HostModel(spec, identity(spec).drop)
        if start is not None:
            self.model.memory.copy_from(snapshot.device_memory(spec, start, where))
        self._visits = {(name,) for name in spec.program.visits}
        self.difference: Difference | None = None
        self.rows = self.updates = 0
        self.columns = answer_columns(spec)
        predictions = (c for c, (question, _) in self.columns.items() if question == spec.program.asks)
        hashes = (STATE_HASH,) if spec.program.learns else ()
        self.compared = dict.fromkeys((*hashes, STATUS, *predictions), 0)
        self.exact = False
        self._equal_until = -1  # the last row whose hash was equal on both sides

    @property
    def hash(self) -> int:
        """The value that NAME_hash returns for the host's model."""
        memory = self.model.memory
        return zlib.crc32(memory.bytes[: self.spec.program.hashed_bytes(memory.layout)])

    def run(self, rows: Rows) -> Difference | None:
        """Repeat the next rows.  Returns the first difference found so far, or None."""
        self.exact |= rows.exact
        stops = np.flatnonzero(rows.has[STATE_HASH] | rows.has[CALL]) + 1
        edges = [0, *stops.tolist(), len(rows.x)]
        for start, end in itertools.pairwise(edges):
            if end > start:
                self._segment(rows, slice(start, end))
        self.rows += len(rows.x)
        return self.difference

    def _segment(self, rows: Rows, part: slice) -> None:
        """Repeat some rows, of which only the last may have a call or a hash."""
        last = part.stop - 1
        answers, statuses = self._feed(rows, part)
        if rows.call[last]:
            status = self._call(rows, last)
            took = rows.has["sample" if self.spec.program.reads else "label"][last]
            if not took or rows.call[last][:1] in self._visits:
                statuses[-1] = status
        for column, recorded in rows.answers.items():
            question, i = self.columns[column]
            if question in answers:
                expected, found = recorded[part], np.ascontiguousarray(answers[question][:, i])
                bits = f"<u{expected.dtype.itemsize}"
                unequal = (expected.view(bits) != found.view(bits)) & ~(np.isnan(expected) & np.isnan(found))
                self._compare(rows, part, column, unequal, expected, found)
        self._compare(rows, part, STATUS, rows.status[part] != statuses, rows.status[part], statuses)
        if rows.has[STATE_HASH][last]:
            hashed = np.array([self.hash], np.uint32)
            at = slice(last, last + 1)
            self._compare(rows, at, STATE_HASH, rows.state_hash[at] != hashed, rows.state_hash[at], hashed)
            if self.difference is None:
                self._equal_until = rows.first + last

    def _feed(self, rows: Rows, part: slice) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Ask the questions whose answers are in the log, and learn.

        Returns a dict, question -> answers, (rows, values), and the array of statuses.  For a model that does not learn,
        these are the statuses of the main question.

        With a signal stage, the model takes each row, with or without its label, before the questions are asked.  A row
        that has only a label labels the newest features.
        """
        program, model, x, y = self.spec.program, self.model, rows.x[part], rows.label[part]
        sample, label, statuses = rows.has["sample"][part], rows.has["label"][part], np.zeros(len(x), np.int32)
        if not program.reads:
            # a visit takes the row's sample, so the sample is not learned here as well
            visited = [call[:1] in self._visits for call in rows.call[part]]
            label = label & sample & ~np.array(visited)
        self.updates += int((sample if program.reads else label).sum())
        asked = self._asked(rows, part)
        answers = {q: program.answers(q, len(x), model.memory) for q in asked}
        # a single question runs in the same loop as the update; several questions are asked row by row
        row_by_row = program.learns and len(asked) > 1
        borders = np.arange(1, len(x)) if row_by_row else np.flatnonzero(np.diff(sample) | np.diff(label)) + 1
        for start, end in itertools.pairwise([0, *borders.tolist(), len(x)]):
            at = slice(start, end)
            if sample[start]:
                for question in () if program.reads else asked[1:]:
                    answers[question][at] = model.ask(question, x[at])[0]
                values, statuses[at] = self._take(x[at], y[at], bool(label[start]), asked[0] if asked else None)
                for question in asked[:1]:
                    answers[question][at] = values.reshape(end - start, -1)
                for question in asked[1:] if program.reads else ():
                    answers[question][at] = model.read(question)[0]
            elif label[start]:
                statuses[at] = [int(model.call("label", each)) for each in y[at]]
        return answers, statuses

    def _asked(self, rows: Rows, part: slice) -> list[str]:
        """Return the questions whose answers are in the log.  The main question comes first if the statuses depend on it."""
        asked, main = (
            sorted({self.columns[c][0] for c in rows.answers if rows.has[c][part].any()}),
            self.spec.program.asks,
        )
        if self.spec.program.learns and (asked or not self.spec.program.reads):
            return asked
        return [main, *(question for question in asked if question != main)]

    def _take(self, x: np.ndarray, y: np.ndarray, label: bool, question: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Ask the question, if any, and learn the samples if ``label`` is true.  Returns answers and statuses."""
        program, nothing = self.spec.program, np.zeros(len(x), np.int32)
        if label and program.learns:
            if question is None:
                return nothing, self.model.update(x, y)
            return self.model.prequential(x, y, question=question)
        if question is None:
            return nothing, nothing
        if program.reads:
            return self.model.gather(x, question)
        values, statuses = self.model.ask(question, x)
        return values, nothing if program.learns else statuses

    def _call(self, rows: Rows, row: int) -> int:
        """Call the function that a row names, and return the function's status."""
        name, *arguments = rows.call[row]
        if name == "reset":
            self.model.reset()
            return 0
        if name in self.spec.program.visits:
            at = slice(row, row + 1)
            return int(self.model.visit(name, rows.x[at], rows.label[at])[0])
        return int(self.model.call(name, *map(int, arguments)))

    def _compare(
        self, rows: Rows, part: slice, kind: str, unequal: np.ndarray, device: np.ndarray, host: np.ndarray
    ) -> None:
        has = rows.has[kind][part]
        self.compared[kind] = self.compared.get(kind, 0) + int(has.sum())
        wrong = np.flatnonzero(unequal & has)
        if len(wrong) and (self.difference is None or rows.first + part.start + wrong[0] < self.difference.row):
            i = int(wrong[0])
            row = part.start + i
            shown = [self._text(kind, values[i]) for values in (device, host)]
            self.difference = Difference(kind, rows.first + row, rows.lines[row], self._equal_until, *shown)

    def _text(self, kind: str, value: Any) -> str:
        if kind == STATE_HASH:
            return f"{int(value):08x}"
        if kind != STATUS:
            classes = self.spec.label.classes or ()
            name = f" ({classes[value]})" if value.dtype.kind == "i" and 0 <= value < len(classes) else ""
            return _real(value) + name
        names = {int(status): status.name for status in self.spec.program.status}
        return f"{int(value)} ({names[int(value)].lower()})" if int(value) in names else str(int(value))

    def report(self) -> dict[str, Any]:
        """Return a report on the whole run as a dict."""
        found = self.difference
        return {
            "name": self.spec.name,
            "rows": self.rows,
            "updates": self.updates,
            "compared": dict(self.compared),
            "state_hash": f"{self.hash:08x}" if self.spec.program.learns else None,
            "equal_until": self._equal_until if self._equal_until >= 0 else None,
            "difference": None if found is None else {**vars(found), "text": str(found)},
        }

    def advice(self) -> str | None:
        """Name other possible causes of the difference: too few digits in the log, or a different initial state."""
        told = []
        if self._begins_new and self.spec.program.learns and self._equal_until < 0:
            told.append(f"if the device began with a learned state, give this state with {shown_option('start')}")
        if not self.exact:
            digits = 9 if self.spec.precision == "float32" else 17
            told.append(f"no number in the log has {digits} digits: were the numbers written with %.{digits}g or %a?")
        return "; ".join(told) or None


def differing_fields(spec: Spec, device: Memory, host: Memory) -> list[dict[str, Any]]:
    """Return a dict for each field of the model whose bytes differ: the place of the first differing value, the number of
    differing values, and the first differing value on the device and on the host.
    """
    end = spec.program.state_bytes(host.layout)
    scalars = {slot.name: slot.scalar for slot in host.layout.slots if slot.offset < end}
    found = []
    for name, count, at in snapshot.differing({name: (device.field(name), host.field(name)) for name in scalars}):
        place = name + ("" if scalars[name] else "".join(f"[{i}]" for i in at))
        both = {side: _real(memory.field(name)[at]) for side, memory in (("device", device), ("host", host))}
        found.append({"field": place, "values": count, **both})
    return found


def _real(value: Any) -> str:
    """Format a number so that reading the text gives the same bits."""
    return str(int(value)) if value.dtype.kind == "i" else f"{value:.{9 if value.dtype.itemsize == 4 else 17}g}"
