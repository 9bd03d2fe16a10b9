"""Columns of a table of text: their cells as numbers, their scale."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from pykernel.errors import UserError, option
from pykernel.host.simulate import read_cells, shown_cell

Show = Callable[[float, str], None]

MOMENT = re.compile(r"\s*(\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ,].*)?|\d{1,2}:\d\d(:\d\d.*)?)\s*")
"""A cell that holds a date or a time."""
TIMES = re.compile(r"t|.*(time|date|epoch|zeit|datum).*|ts|index|idx|row|nr|no|id", re.IGNORECASE)
"""Names of columns that count time or rows, if their numbers never fall."""


def read_columns(
    file: BinaryIO, name: str, show: Show | None = None, inputs: Sequence[str] = (), label: str | None = None
) -> tuple[list[str], dict[str, list[str]]]:
    """The names in the header, and all cells of each column: of the inputs and the label, if both are given.

    Raises UserError, also if an input or the label is not there.
    """
    header: list[str] = []
    chosen: list[str] = []

    def choose(names: list[str]) -> list[str]:
        header.extend(filter(None, names))
        if len(header) < 2 and label not in inputs:  # what is forecast is an input, too
            raise UserError(
                f"{name}, line 1: names one column, {''.join(header)!r}; a label and at least one input are needed"
            )
        if label == "":
            raise UserError(
                f"{name}: the label's column is '', and no column has that name; give one of {listed(header)}"
            )
        others = () if inputs and label else header
        chosen.extend(dict.fromkeys([*inputs, *([label] if label else []), *others]))
        return chosen

    rows: list[tuple[str, ...]] = []
    for cells in read_cells(file, name, choose, "a,b,label"):
        rows += cells.rows
        if show is not None:
            show(cells.position, f"reading {name}")
    return header, {column: list(cells) for column, cells in zip(chosen, zip(*rows, strict=True), strict=True)}


def numeric_columns(columns: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """The columns whose cells are numbers, as arrays; NaN where a cell is empty."""
    return {name: values for name, cells in columns.items() if (values := cell_numbers(cells)) is not None}


def cell_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """The cells, NaN where they are empty; None if they are not numbers."""
    try:
        values = np.array([float(cell) if cell.strip() else math.nan for cell in cells])
    except ValueError:
        return None
    return values if np.isfinite(values).any() else None


def likely_inputs(numeric: Mapping[str, np.ndarray], label: str | None) -> list[str]:
    """Columns that are likely inputs: columns of different numbers, except the label and times."""
    different = [name for name, values in numeric.items() if name != label and np.ptp(finite_values(values)) > 0]
    return without_times(numeric, different)


def without_times(numeric: Mapping[str, np.ndarray], names: Sequence[str]) -> list[str]:
    """The columns that do not count time or rows; all columns, if each of them does."""
    return [name for name in names if not _counts_time(name, numeric[name])] or list(names)


def _counts_time(name: str, values: np.ndarray) -> bool:
    finite = finite_values(values)
    return TIMES.fullmatch(name) is not None and bool((np.diff(finite) >= 0).all()) and np.ptp(finite) > 0


def chosen_inputs(name: str, numeric: Mapping[str, np.ndarray], inputs: Sequence[str], label: str | None) -> list[str]:
    """The inputs' columns: those that were given, or all that are likely.  Raises UserError."""
    if label in inputs:
        raise UserError(f"{name}: column {label!r} is the label; leave it out of {option('inputs')}")
    for each in inputs:
        if each not in numeric:
            raise UserError(f"{name}: column {each!r} does not hold numbers; leave it out of {option('inputs')}")
    chosen = list(inputs) or likely_inputs(numeric, label)
    if not chosen:
        raise UserError(
            f"{name}: has no column of different numbers beside the label {label!r}; give {option('inputs')}"
        )
    return chosen


def inputs_told(chosen: Sequence[str], left: Sequence[str]) -> str:
    """How many inputs there are, and the columns that are left out, each with the reason."""
    return f"{len(chosen)} inputs: {listed(chosen)}" + (f", without {listed(left)}" if left else "")


def left_out(columns: Mapping[str, Sequence[str]], numeric: Mapping[str, np.ndarray], used: Sequence[str]) -> list[str]:
    """Columns that are not used, each with the reason."""
    return [f"{name} ({_why(name, columns[name], numeric.get(name))})" for name in columns if name not in used]


def _why(name: str, cells: Sequence[str], values: np.ndarray | None) -> str:
    if values is None:
        words = [cell.strip() for cell in cells if cell.strip() and cell_numbers([cell]) is None]
        if not words:
            return "empty"
        return f"{'a time' if MOMENT.fullmatch(words[0]) else 'text'}, such as {shown_cell(words[0])}"
    if np.ptp(finite_values(values)) == 0:
        return "always the same"
    return "a time" if _counts_time(name, values) else "not an input"


def listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)})" if len(names) > most else "")


FEW_VALUES = 10
"""A label with at most this many different integers may be meant as classes."""


def few_values(values: np.ndarray) -> list[str]:
    """The different values of a label that may be meant as classes, in order; none if they are too many, or not whole."""
    found = np.unique(finite_values(values))
    return [f"{value:.0f}" for value in found] if len(found) <= FEW_VALUES and (found == np.round(found)).all() else []


def finite_values(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def round_limit(values: np.ndarray) -> float:
    """The next of 1, 2, 5, 10, ... above twice the largest magnitude."""
    most = 2 * max(float(np.abs(finite_values(values)).max(initial=0.0)), 1e-6)
    decade = 10.0 ** math.floor(math.log10(most))
    return float(f"{next(decade * step for step in (1, 2, 5, 10) if decade * step >= most):.1g}")


def uneven(x: np.ndarray) -> bool:
    """Whether the columns' scales differ by more than 4, or one is far from zero."""
    finite = [finite_values(column) for column in x.T]
    deviation = np.array([max(float(values.std()), 1e-30) for values in finite])
    mean = np.array([abs(float(values.mean())) for values in finite])
    return bool(deviation.max() > 4 * deviation.min() or (mean > 100 * deviation).any())
