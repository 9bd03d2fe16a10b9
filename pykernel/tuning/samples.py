"""Read the rows from which a basis is selected: a CSV file at once, or a file in another format part by part.  Check
all rows once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import UserError, shown_option
from pykernel.files import open_data
from pykernel.progress import Show
from pykernel.rows import TABLES, TEXTS, ArrayRows, Rows, ScaledRows, as_rows, table_columns
from pykernel.rows.columns import Columns
from pykernel.spec.model import OUTPUTS_LIMIT
from pykernel.telling import raise_first_error
from pykernel.tuning.tables import few_values, infer, read_table

BLOCK = 2**16


@dataclass
class Samples:
    """Rows of inputs, and the label's values or class indices if there is a label.

    rows: (l, D).  y: (l,).  assumed: sentences about assumptions.  data: a description of the data as it was read, as plain values.
    """

    name: str
    rows: Rows
    inputs: list[str] | None
    column: str | None
    classes: list[str] | None
    y: np.ndarray | None
    assumed: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """Statistics of each input, (D,): mean, standard deviation, smallest and largest value."""

    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read(
    data: str, inputs: Sequence[str], label: str | None, classes: Sequence[str], kfd: bool, show: Show | None = None
) -> Samples:
    """Read a CSV file into memory.  Files in other formats are only opened, to be read in parts, and only their label
    is kept in memory.

    Raises UserError if the file, the inputs or the labels are not valid.
    """
    path = Path(data)
    if data == "-" or path.suffix.lower() in TEXTS:
        return _read_csv(data, inputs, label, classes, kfd, show)
    assumed: list[str] = []
    names: list[str] | None = None
    left: list[str] = []
    wanted: Sequence[str | int] | None
    of_label: str | int | None = label
    if path.suffix.lower() in TABLES or path.is_dir():
        names, left = _names(data, inputs, label)
        wanted = names
    else:
        wanted, of_label = _positions(data, inputs, label, assumed)
    raise_first_error(
        (
            of_label is not None and wanted is not None and of_label in wanted,
            f"{data}: column {label!r} is the label; leave it out of {shown_option('inputs')}",
        ),
        (wanted == [], f"{data}: has only the label's column; at least one input is needed"),
    )
    rows = as_rows(path, wanted)
    if len(rows) < 2:
        raise UserError(f"{data}: has {len(rows)} rows; at least 2 are needed")
    table = Samples(data, rows, names, label, None, None, assumed)
    seen = Columns()
    seen.begin(data, names or [str(j) for j in wanted or range(rows.dim)])
    seen.rows = len(rows)
    left_out = [{"column": each, "why": "other", "such_as": "", "words": []} for each in left]
    table.data = seen.report(chosen=names is not None and not inputs, label=label, left_out=left_out)
    if of_label is not None:
        y = np.concatenate([block[:, 0] for _, block in as_rows(path, [of_label]).blocks(BLOCK)])
        table.y, table.classes = _labels(data, str(label), y, classes, kfd)
        assumed.append(
            f"{len(table.classes)} classes: {', '.join(table.classes)}" if table.classes else "labels are numbers"
        )
        if not table.classes and (few := few_values(y)):
            assumed.append(f"if the labels are classes, give {shown_option('classes', ','.join(few))}")
    return table


def _names(data: str, inputs: Sequence[str], label: str | None) -> tuple[list[str], list[str]]:
    """Return the names of the inputs, and of the columns that are left out, in a file with named columns.

    If inputs are given, the second list is empty.  Otherwise, all numeric columns except the label are inputs.
    """
    columns = table_columns(data)
    names = list(inputs) or [each for each, numeric in columns if numeric and each != label]
    if not names:
        raise UserError(f"{data}: has no column with numbers that can be an input; at least one is needed")
    return names, [] if inputs else [each for each, _ in columns if each not in (*names, label)]


def _positions(
    data: str, inputs: Sequence[str], label: str | None, assumed: list[str]
) -> tuple[list[int] | None, int | None]:
    """Return the positions of the inputs (None: all columns) and of the label, in a file without column names."""
    width = as_rows(Path(data)).dim
    of_label = None if label is None else _position(label, width, data, shown_option("label"))
    wanted = [_position(each, width, data, shown_option("inputs")) for each in inputs] or None
    if wanted is None and of_label is not None:
        wanted = [j for j in range(width) if j != of_label]
        assumed.append(f"{len(wanted)} inputs: all columns except column {of_label}")
    return wanted, of_label


def _read_csv(
    data: str, inputs: Sequence[str], label: str | None, classes: Sequence[str], kfd: bool, show: Show | None
) -> Samples:
    with contextlib.ExitStack() as stack:
        source, file, _ = open_data(data, stack)
        if label is None:
            table = infer(file, source, inputs, None, show)
        else:
            table = read_table(file, source, inputs, label, classes, "kfd" if kfd else "ls-svm", None)
    whole = np.isfinite(table.x).all(axis=1)
    if not whole.all():
        table.data["missing"] = {"rows": int((~whole).sum()), "then": "left out"}
    whole &= ~table.apart
    if whole.sum() < 2:
        raise UserError(f"{source}: has {int(whole.sum())} rows without a missing input; at least 2 are needed")
    y, assumed = (None, []) if label is None else (table.y[whole], table.assumed)
    rows = ArrayRows(table.x[whole], name=source)
    return Samples(source, rows, table.inputs, table.column, table.classes, y, assumed, table.data)


def _position(text: str, width: int, data: str, option: str) -> int:
    try:
        at = int(text)
    except ValueError:
        raise UserError(
            f"{option} is {text!r}; {data} has no column names: give positions from 0 to {width - 1}"
        ) from None
    if not -width <= at < width:
        raise UserError(f"{option} is {at}; {data} has {width} columns, at positions from 0 to {width - 1}")
    return at % width


def _labels(
    data: str, column: str, y: np.ndarray, wanted: Sequence[str], kfd: bool
) -> tuple[np.ndarray, list[str] | None]:
    """Return (numbers, None) with the label's numbers unchanged or, for classes, (class indices, class names)."""
    if not wanted and not kfd:
        return y, None
    there = np.unique(y)
    if wanted:
        try:
            values = [float(each) for each in wanted]
        except ValueError:
            raise UserError(
                f"{shown_option('classes')} is {','.join(wanted)}; {data} holds numbers: give the classes as numbers"
            ) from None
        unknown = sorted(set(there.tolist()) - set(values))
        if unknown:
            raise UserError(
                f"{data}: column {column} holds {unknown[0]:g}, which is missing from {shown_option('classes')}"
            )
        names = list(wanted)
    else:
        if len(there) > OUTPUTS_LIMIT:
            raise UserError(
                f"{data}: column {column} holds {len(there):,} different numbers; at most {OUTPUTS_LIMIT} classes are possible: "
                "is it the right column?"
            )
        values, names = there.tolist(), [f"{each:g}" for each in there.tolist()]
    if len(names) < 2:
        raise UserError(f"{data}: column {column} is always {names[0]}; at least two classes are needed")
    positions = np.full(len(y), -1, np.int64)
    for at, value in enumerate(values):
        positions[y == value] = at
    counts = np.bincount(positions, minlength=len(names))
    if not counts.all():
        raise UserError(
            f"{data}: column {column} is never {names[int(counts.argmin())]}; leave this class out of {shown_option('classes')}"
        )
    return positions, names


def look(samples: Samples, show: Show | None = None) -> Seen:
    """Read all rows once, in blocks.  Refuse NaN and infinities, and find the inputs' scales and sentinels."""
    rows, seen = samples.rows, Columns()
    seen.begin(samples.name, samples.inputs or [str(j) for j in range(rows.dim)])
    columns = list(seen.columns.values())
    count, low, high = 0, np.full(rows.dim, np.inf), np.full(rows.dim, -np.inf)
    mean, squares = np.zeros(rows.dim), np.zeros(rows.dim)
    for start, block in rows.blocks(BLOCK):
        # moments are merged by the method of Chan, Golub and LeVeque
        here, added = block.mean(axis=0), len(block)
        apart = here - mean
        count += added
        squares += np.square(block - here).sum(axis=0) + apart**2 * (added * (count - added) / count)
        mean += apart * (added / count)
        least, most = block.min(axis=0), block.max(axis=0)
        for j, column in enumerate(columns):
            column.take(block[:, j], float(least[j]), float(most[j]), np.arange(start, start + added))
        low, high = np.minimum(low, least), np.maximum(high, most)
        if show is not None:
            show((start + added) / len(rows), "checking all rows")
    samples.data["sentinels"] = samples.data["sentinels"] or seen.report()["sentinels"]
    return Seen(mean, np.sqrt(squares / count), low, high)


@dataclass(frozen=True)
class Scaled:
    """The kernel's inputs: the rows, scaled if necessary.

    center, scale: None if inputs are not scaled.  largest: largest magnitudes of the scaled inputs, (D,).
    """

    rows: Rows
    center: np.ndarray | None
    scale: np.ndarray | None
    largest: np.ndarray


def scaled(samples: Samples, seen: Seen, wanted: bool | None) -> Scaled:
    spread = np.where(seen.deviation > 0, seen.deviation, 1.0)
    if wanted is None:
        uneven = spread.max() > 4 * spread.min() or bool((np.abs(seen.mean) > 100 * spread).any())
        wanted = uneven
        if uneven:
            samples.assumed.append("inputs standardised: their scales differ, or some inputs are far from zero")
    if not wanted:
        return Scaled(samples.rows, None, None, np.maximum(np.abs(seen.low), np.abs(seen.high)))
    center, scale = seen.mean, 1 / spread
    largest = np.maximum(np.abs(seen.low - center), np.abs(seen.high - center)) * scale
    return Scaled(ScaledRows(samples.rows, center, scale), center, scale, largest)
