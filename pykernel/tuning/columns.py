"""Columns of a table of text: their cells as numbers, their scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import BinaryIO

import numpy as np

from pykernel.errors import UserError
from pykernel.host.simulate import read_cells

Show = Callable[[float, str], None]


def read_columns(file: BinaryIO, name: str, show: Show | None = None) -> tuple[list[str], dict[str, list[str]]]:
    """The header, and all cells of each column."""
    header: list[str] = []

    def all_of_them(names: list[str]) -> list[str]:
        header.extend(names)
        if len(names) < 2:
            raise UserError(
                f"{name}, line 1: names one column, {names[0]!r}; a label and at least one input are needed"
            )
        return names

    rows: list[tuple[str, ...]] = []
    for cells in read_cells(file, name, all_of_them, "a,b,label"):
        rows += cells.rows
        if show is not None:
            show(cells.position, f"reading {name}")
    return header, {column: list(cells) for column, cells in zip(header, zip(*rows, strict=True), strict=True)}


def numeric_columns(columns: dict[str, list[str]]) -> dict[str, np.ndarray]:
    """Those columns whose cells are numbers; NaN where they are empty."""
    return {name: values for name, cells in columns.items() if (values := cell_numbers(cells)) is not None}


def cell_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """The cells, NaN where they are empty; None if they are not numbers."""
    try:
        values = np.array([float(cell) if cell.strip() else math.nan for cell in cells])
    except ValueError:
        return None
    return values if np.isfinite(values).any() else None


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
