"""Sections that documents of several commands share: what was asked, the table as it was read, the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from pykernel.report import figures
from pykernel.report.document import Cell, Facts, Part, Section, Sentence, Table
from pykernel.telling import byte_count, formatted_number

Courses = Sequence[tuple[np.ndarray, np.ndarray]]
Asked = Mapping[str, Any]
DRIFT = 1.0
"""A drift of at least this many standard deviations is in bold."""
COLUMNS = 200
"""Largest number of a table's columns that are listed."""


def what_was_asked(arguments: Asked, *more: tuple[str, object]) -> Section:
    """Show the arguments that were given to a command."""
    facts: dict[str, object] = {name.strip("_").replace("_", " "): in_words(value) for name, value in arguments.items()}
    return Section("What was asked", [Facts([*(facts | dict(more)).items()])])


def default_of(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return a name and a text for ``document.Facts``.  For a spec without a rule, the text says which default rule it
    gets; for other specs, the text is empty.
    """
    return "default", (report["default"] or {"sentence": ""})["sentence"]


def in_words(value: Any) -> str:
    """Return an argument's value as text. For None and False, the text is empty."""
    if value is None or value is False or value == "":
        return ""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(in_words, value))
    return "yes" if value is True else f"{value:g}" if isinstance(value, float) else str(value)


def table_read(columns: Sequence[Mapping[str, Any]], courses: Courses, rows: int, *sentences: str) -> Section:
    """Show the table as it was read: a line for each column, with a small plot of its values."""
    lines, strong = [], []
    for i, (column, (low, high)) in enumerate(zip(columns[:COLUMNS], courses, strict=False)):
        drift = column["drift"]
        if drift is not None and abs(drift) >= DRIFT:
            strong.append(i)
        numbers = [number_or_dash(column[key]) for key in ("least", "mean", "largest", "deviation")]
        lines.append(
            [
                column["name"],
                figures.spark(low, high),
                *numbers,
                f"{column['gaps']:,}" if column["gaps"] else "",
                "" if drift is None else f"{drift:+.1f}".replace("-0.0", "+0.0"),
            ]
        )
    head = ("column", "course", "least", "mean", "largest", "deviation", "gaps", "drift")
    parts: list[Part] = [Sentence(text) for text in sentences if text]
    if lines:
        parts.append(Table(head, lines, words=(0, 1), strong=strong))
        parts.append(
            Sentence(
                f"{rows:,} rows. Drift: the mean of the last third minus the mean of the first third, in standard deviations; bold if its magnitude is at least {DRIFT:g}."
            )
        )
    if len(columns) > COLUMNS:
        parts.append(Sentence(f"{len(columns) - COLUMNS:,} more columns are not shown here"))
    return Section("The table as it was read", parts)


def number_or_dash(value: float | None) -> str:
    """Format a number for a table, with its sign. A number that is missing or not finite becomes a dash."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"-{formatted_number(-value)}" if value < 0 else formatted_number(value)


# ------------------------------------------------------------------------------------------------------------- the model


HASHES = {"configuration": "config_hash", "state": "state_hash", "": "hash_told"}


def inside(model: Mapping[str, Any], where: Literal["page", "both"] = "page") -> list[Section]:
    """Show a model's bytes and hashes.  model: the result of ``gen.project.inside``.  where: whether only the page
    shows the bytes of the whole model ("page"), or also the terminal ("both").
    """
    sums = {
        "state (RAM)": "state_bytes",
        "work (RAM)": "work_bytes",
        "tables and trained values (flash)": "const_bytes",
    }
    sizes = {text: model[key] for text, key in sums.items() if key in model}
    sizes |= {f"instead: {text}": size for text, size in (model.get("simple") or {}).items()}
    whole = [[text, byte_count(size)] for text, size in sizes.items()]
    parts = model.get("parts") or []
    most = max((size for _, size, _ in parts), default=0)
    rows = [[name, Cell(byte_count(size), part=size / most), what] for name, size, what in parts]
    return [
        Section("The model in memory", [Table(("part", "size"), whole)], where),
        Section("Bytes by part", [Table(("part", "bytes", "what it holds"), rows, words=(0, 2))]),
        Section("Hashes", [Facts([(name, model.get(key)) for name, key in HASHES.items()])]),
    ]
