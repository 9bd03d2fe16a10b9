"""Decide whether the cells of a table's columns are numbers, missing values or words, and convert them to numbers.

Every command that reads a table of text reads its numbers here, so that all commands read a file in the same way, or
refuse it with the same message.

- A cell is missing if it is empty or one of the words in ``MISSING``.
- A column holds numbers if at least 95 % of its non-missing cells are numbers.  The few words in such a column, for
example a logger's "error", are counted, and are treated as missing values.
- A number in another notation, such as "1,234.5" or "3.2 mm", is not a missing value.  A column of numbers with such a
cell is refused, with the cell's line number.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.rows.arrays import Part
from pykernel.rows.text import is_number, number_of, shown_cell

NUMBERS = 0.95
"""A column holds numbers if at least this fraction of its non-missing cells are numbers."""
MISSING = frozenset(
    ". - -- --- ? n/a na n.a. #n/a #na <na> nan nat nil none null missing #value! #ref! #div/0! #num! #name?".split()
)
"""Words for a missing number, in lower case."""
NO_CLASS = MISSING - {".", "-", "--", "---", "nil", "none", "missing"}
"""Words for a missing class.  "none" is not among them, because it may be the class of machines without a fault."""
UNIT = re.compile(r"([+-]?\d+(?:[.,]\d+)?(?:e[+-]?\d+)?)\s*[a-zµμ°%Ω€$][\w°%/²³^.·*-]{0,11}", re.IGNORECASE)
"""A number with its unit."""

NINES = [sign * float("9" * (n + more)) / 10**more for sign in (1, -1) for more in range(3) for n in range(2, 9)]
POWERS = [sign * 10.0**n for sign in (1, -1) for n in range(10, 39)]
LIMITS = [127, -127, -128, 255, 8190, 8191, 32767, -32767, -32768, 65535, 2**31 - 1, -(2**31), 2**32 - 1]
LARGEST = [sign * float(np.finfo(kind).max) for sign in (1, -1) for kind in (np.float32, np.float64)]
SENTINELS = frozenset([*NINES, *(float(np.float32(each)) for each in NINES), *POWERS, *map(float, LIMITS), *LARGEST])
"""Sentinels: numbers that loggers and databases write instead of a missing number."""
FAR = 2.0
"""A sentinel that is repeated, or found in several columns, counts as a missing value if it is far from the rest of its
column: its distance from all other numbers is more than this many times the range of those numbers.  In 199 columns of
scikit-learn's tables and of the demo's and benchmarks' streams, no repeated smallest or largest value lies more than
one range away from the rest.  The farthest is the value 2 in a column whose other values are nearly always 0, and
sometimes 1 (measured once, by hand)."""


APART, SPIKES, FEW = 1.0, 0.02, 20
"""Other outliers are reported, and not trained on, if their distance from the rest is more than APART times the range of the rest.  The
outliers must be either at most the fraction SPIKES of the cells or a single repeated number; the rest must have at least FEW distinct
numbers."""
COARSE = 1e-3
TRACKED = 64
"""``Ends`` keeps this many of the smallest distinct numbers, and as many of the largest."""


class Ends:
    """The smallest and the largest distinct numbers of a column, how often each number occurs, and the line of its first occurrence."""

    def __init__(self) -> None:
        # the smallest numbers, and the largest numbers with the opposite sign
        self.sides: tuple[dict[float, list[int]], dict[float, list[int]]] = (
            {},
            {},
        )

    def take(self, values: np.ndarray, lines: np.ndarray) -> None:
        for sign, side in zip((1, -1), self.sides, strict=True):
            signed = sign * values
            edge = max(side) if len(side) >= TRACKED else math.inf
            some = signed <= edge
            there, first, counts = np.unique(signed[some], return_index=True, return_counts=True)
            for value, at, count in zip(
                there[:TRACKED].tolist(), lines[some][first[:TRACKED]].tolist(), counts[:TRACKED].tolist(), strict=True
            ):
                side.setdefault(value, [0, at])[0] += count
            for value in sorted(side)[TRACKED:]:
                del side[value]

    def apart(self, total: int, shared: frozenset[float] = frozenset()) -> dict[float, tuple[int, int]]:
        """Return a dictionary that maps each number that is far from the rest to (how often it occurs, its first line).

        shared: numbers that are far from the rest of another column.  If such a number is repeated, a distance of more
        than a tenth of the range of the rest suffices.
        """
        ordered = [sorted(side) for side in self.sides]
        cut = [0, 0]
        for side in (0, 1, 0):
            cut[side] = self._cut(ordered, cut, side, total, shared)
        return {
            sign * value: (self.sides[side][value][0], self.sides[side][value][1])
            for side, sign in enumerate((1, -1))
            for value in ordered[side][: cut[side]]
        }

    def _cut(self, ordered: list[list[float]], cut: list[int], side: int, total: int, shared: frozenset[float]) -> int:
        """Return how many numbers at one end of the column's range are far from the rest.  side: 0 for the smallest, 1 for the largest."""
        own, sign, cells, found = ordered[side], (1, -1)[side], 0, 0
        for many in range(1, len(own)):
            cells += self.sides[side][own[many - 1]][0]
            rest = -ordered[1 - side][cut[1 - side]] - own[many]
            one = many == 1 and cells > 1
            least = rest / 10 if one and sign * own[0] in shared else APART * rest
            if len(own) - many < FEW:
                break
            if rest > 0 and own[many] - own[many - 1] > least and (one or cells <= SPIKES * total):
                found = many
        return found


def coarse_told(values: np.ndarray, names: Sequence[str], number: np.dtype) -> str | None:
    """Return a sentence about the column that loses the most precision in this number type, or None if no column loses more than a
    thousandth of its standard deviation.

    values: (rows, columns), NaN where a number is missing.
    """
    worst = (COARSE, 0, 0.0, 1.0)
    for j, column in enumerate(values.T):
        there = column[np.isfinite(column)]
        if not len(there):
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            middle, deviation = float(np.median(there)), float(there.std())
            lost = float(np.sqrt(np.square(there.astype(number) - there).mean()))
        if 0 < deviation < abs(middle):
            worst = max(worst, (lost / deviation, j, middle, deviation))
    part, j, middle, deviation = worst
    if not COARSE < part < math.inf:
        return None
    offset = float(f"{middle:.{max(1, round(math.log10(abs(middle) / deviation)))}g}")
    return (
        f"{names[j]} is near {middle:.6g}, with a standard deviation of {deviation:.2g}; {number} has steps of {np.spacing(number.type(abs(middle))):.2g} there, so rounding "
        f"loses {min(100.0, 100 * part):.3g} % of the variation: subtract {offset:.12g} from it before it is converted to {number}, both in the firmware and in the table"
    )


def apart_rows(values: np.ndarray) -> np.ndarray:
    """Return a Boolean array, (rows,), which is True for rows with a number that is far from the rest of its column.

    values: (rows, columns), NaN where a number is missing.
    """
    found = np.zeros(len(values), bool)
    for column in values.T:
        there, ends = np.isfinite(column), Ends()
        ends.take(column[there], np.flatnonzero(there))
        found |= np.isin(column, list(ends.apart(int(there.sum()))))
    return found


class Column:
    """Counts of a column's cells, which are read batch by batch.

    named: whether the user or a spec says that the column holds numbers.  If so, a number in another notation is refused
    at once.  label: whether the column is a label; its words may then be classes.
    """

    def __init__(self, table: str, name: str, named: bool = True, label: bool = False) -> None:
        self.table, self.name, self.named, self.label = table, name, named, label
        self.cells = self.numbers = self.words = self.infinite = 0
        self.others = 0  # cells that are neither empty nor numbers
        self.first: tuple[str, int] | None = None  # the first of these cells, with its line
        self.word: tuple[str, int, str] | None = (
            None  # the first cell that is neither a number nor missing, with its line and table
        )
        self.noted: tuple[str, int, str] | None = None  # the first number in another notation, with its line and table
        self.low, self.high = math.inf, -math.inf  # range of all numbers that are not sentinels
        self.sentinels: dict[float, int] = {}
        self.first_lines: dict[float, int] = {}  # sentinel -> first line
        self.ends = Ends()
        self.codes = frozenset[
            float
        ]()  # sentinels of other columns, which count in this column even if they occur once
        self.then = "read"  # how sentinels are treated, a key of ``telling.SENTINEL``

    @property
    def holds_numbers(self) -> bool:
        return self.numbers > 0 and self.words <= (1 - NUMBERS) * (self.numbers + self.words)

    def read(self, cells: Any, lines: Sequence[int], most: float = math.inf) -> np.ndarray:
        """Return the next cells of a ``Part`` as numbers, with NaN for missing cells.

        most: if the column has more words than this, the remaining cells are not read.
        """
        text = isinstance(cells, list)
        values: np.ndarray | None
        try:
            values = np.array([number_of(cell) if cell else math.nan for cell in cells]) if text else cells
        except ValueError:
            values = None
        if values is None or (text and np.isnan(values).sum() != cells.count("")):
            values = np.full(len(cells), math.nan)
            for i, (cell, line) in enumerate(zip(cells, lines, strict=True)):
                values[i] = self._value(cell, line)
                if self.words > most:
                    break
        self.infinite += int(np.isinf(values).sum())
        there = np.isfinite(values)
        if there.any():
            finite = values[there]
            self.take(finite, float(finite.min()), float(finite.max()), np.asarray(lines)[there])
        self.cells += len(cells)
        return values

    def take(self, values: np.ndarray, low: float, high: float, lines: np.ndarray) -> None:
        """Count finite numbers.  low, high: the smallest and the largest."""
        self.numbers += len(values)
        while low in SENTINELS or high in SENTINELS:
            for end in {low, high} & SENTINELS:
                self.sentinels[end] = self.sentinels.get(end, 0) + int((values == end).sum())
                self.first_lines.setdefault(end, int(lines[values == end][0]))
                values, lines = values[values != end], lines[values != end]
            if not len(values):
                return
            low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.ends.take(values, lines)

    def far(self) -> dict[float, int]:
        """Return a dictionary of the sentinels that are far from all other numbers.

        It maps each sentinel to the number of its occurrences.  A sentinel that is neither repeated in this column nor in
        ``codes`` is left out.
        """
        most = FAR * (self.high - self.low)
        if not most > 0:
            return {}
        return {
            value: count
            for value, count in sorted(self.sentinels.items())
            if (count > 1 or value in self.codes) and (self.low - value > most or value - self.high > most)
        }

    def apart(self) -> dict[float, tuple[int, int]]:
        """Return a dictionary of the numbers that are far from all others but not treated as missing values.

        It maps each of these numbers to (how often it occurs, its first line).
        """
        found = self.ends.apart(self.numbers, self.codes)
        most, gone = APART * (self.high - self.low), self.far()
        lone = [v for v in self.sentinels if v not in gone and max(self.low - v, v - self.high) > most > 0]
        return found | {value: (self.sentinels[value], self.first_lines[value]) for value in lone}

    def emptied(self, values: np.ndarray) -> np.ndarray:
        """Return ``values``, all numbers of the column, with NaN instead of the sentinels that ``far`` returns."""
        self.then = "missing"
        return np.where(np.isin(values, list(self.far())), math.nan, values)

    def apart_told(self) -> list[dict[str, Any]]:
        """Return a list of plain values about the numbers that are far from the rest.

        It has an entry for each number that occurs repeatedly, and one entry for all numbers that occur once.
        """
        apart = self.apart()
        if not apart:
            return []
        known = sorted({*apart, *self.far()})
        low, high = (
            sign * next(v for v in sorted(side) if sign * v not in known)
            for sign, side in zip((1, -1), self.ends.sides, strict=True)
        )
        codes = [value for value, (count, _) in apart.items() if count > 1]
        spikes = [value for value in apart if value not in codes]
        return [
            {
                "column": self.name,
                "value": min(values, key=lambda value: apart[value][1]),
                "different": len(values),
                "cells": sum(apart[value][0] for value in values),
                "line": min(apart[value][1] for value in values),
                "others": [low, high],
            }
            for values in (*([code] for code in codes), spikes)
            if values
        ]

    def count_other(self, cell: str, line: int) -> None:
        """Count a cell that does not hold a number or, in a column of classes, a class."""
        self.others += 1
        self.first = self.first or (cell, line)

    def _value(self, cell: str, line: int) -> float:
        text = cell.strip()
        if not text:
            return math.nan
        try:
            value = number_of(text)
        except ValueError:
            value = math.nan
        if not math.isnan(value):
            return value
        self.count_other(text, line)
        if text.lower().lstrip("+-") in MISSING or text.lower() in MISSING:
            return value
        self.words += 1
        self.word = self.word or (text, line, self.table)
        if other_notation(text) and self.noted is None:
            self.noted = text, line, self.table
            if self.named:
                self.refuse_notation()
        return value

    def refuse_notation(self) -> None:
        """Raise UserError if a cell is a number in another notation."""
        if self.noted is not None:
            raise UserError(f"{self._told(*self.noted)}; {other_notation(self.noted[0])}")

    def need_numbers(self) -> None:
        """Raise UserError if too many cells of the column are words."""
        if not self.words or self.holds_numbers:
            return
        assert self.word is not None
        count, of = self.words, self.words + self.numbers
        remedy = "correct the cell, or leave it empty"
        if count > 1:
            allowed = f"but at most {100 * (1 - NUMBERS):.0f} % may be"
            remedy = f"{count:,} of {of:,} cells are words, {allowed}: correct them, or name another column"
        if self.label:
            remedy += f"; if these are classes, add classes = [{shown_cell(self.word[0])}, ...] to [label]"
        raise UserError(f"{self._told(*self.word)}; {remedy}")

    def _told(self, cell: str, line: int, table: str) -> str:
        return f"{table}, line {line}: column {shown_cell(self.name)} is {shown_cell(cell)}, not a number"


def other_notation(cell: str) -> str:
    """Return advice on how to correct a number in another notation, or "" for other cells."""
    if "," in cell and is_number(cell.replace(",", ".")):
        return (
            "write a decimal point instead of the comma, or keep the comma and separate the cells by semicolons or tabs"
        )
    if ("," in cell or "'" in cell) and is_number(re.sub("[.,']", "", cell)):
        return "write the number without a thousands separator"
    if is_number(unicodedata.normalize("NFKC", cell).replace("_", "")):
        return "write the number in the digits 0 to 9, without underscores"
    return "write the number without its unit" if UNIT.fullmatch(cell) else ""


def share_codes(columns: Iterable[Column], known: Iterable[float] = ()) -> None:
    """Set the ``codes`` of every column: the numbers in ``known``, and the sentinels and repeated outliers of all columns."""
    every = list(columns)
    repeated = (value for column in every for value, (count, _) in column.apart().items() if count > 1)
    codes = frozenset([*known, *(value for column in every for value in column.far()), *repeated])
    for column in every:
        column.codes = codes


class Columns:
    """The columns of numbers of one table, or of several tables with the same columns, with counts of their cells."""

    def __init__(self) -> None:
        self.table, self.columns, self.rows, self.cut = "", dict[str, Column](), 0, 0
        self.classes: Column | None = None
        self._order: list[str] = []
        self._began: list[str] = []

    def begin(self, table: str, names: Sequence[str], labels: Sequence[str] = (), classes: bool = False) -> None:
        """Begin a table.  If it has the same columns as the last table, its cells are added to the counts.  names: names of
        all columns of numbers.  labels: names of the labels.  classes: whether the only label has classes.
        """
        if self._order and [*names, *labels] == self._began:
            for column in (*self.columns.values(), *([self.classes] if self.classes is not None else [])):
                column.table = table
            return
        self.table, self._order, self._began = table, list(names), [*names, *labels]
        self.columns = {name: Column(table, name, label=name in labels) for name in names}
        self.classes = Column(table, labels[0], label=True) if classes else None

    def read(self, part: Part) -> np.ndarray:
        """Return the next rows as numbers, (rows, columns), with NaN for missing cells.  Raises UserError for other
        notations of numbers.
        """
        self.rows += len(part.lines)
        self.cut = part.cut or self.cut
        return np.column_stack([self.columns[name].read(part.columns[name], part.lines) for name in self._order])

    def end(self) -> None:
        """End the table after the last row.  Raises UserError if too many cells of a column are words."""
        for column in self.columns.values():
            column.need_numbers()

    def report(self, **more: Any) -> dict[str, Any]:
        """Return a report on the data as plain values.  ``pykernel.telling.data_lines`` makes sentences from this report.

        more: values that replace those of this report.
        """
        every = [*self.columns.values(), *([self.classes] if self.classes is not None else [])]
        share_codes(self.columns.values())
        return {
            "file": self.table,
            "rows": self.rows,
            "chosen": False,
            "inputs": [name for name, column in self.columns.items() if not column.label],
            "label": next((column.name for column in every if column.label), None),
            "left_out": [],
            "not_numeric": [
                {
                    "column": column.name,
                    "cells": column.others,
                    "of": column.cells,
                    "such_as": column.first[0][:40],
                    "line": column.first[1],
                    "kind": "class" if column is self.classes else "number",
                }
                for column in every
                if column.first is not None
            ],
            "infinite": [{"column": column.name, "cells": column.infinite} for column in every if column.infinite],
            "sentinels": [
                {
                    "column": column.name,
                    "value": value,
                    "cells": count,
                    "others": [column.low, column.high],
                    "then": column.then,
                }
                for column in every
                for value, count in column.far().items()
            ],
            "outlying": [entry for column in every if column is not self.classes for entry in column.apart_told()],
            "times": None,
            "missing": None,
            "unlabelled": 0,
            "cut_line": self.cut or None,
        } | more
