"""Read and write the notes that ``pykernel table`` keeps in a file next to a table that it made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, FiniteFloat, NonNegativeInt


def notes_of(table: Path) -> Path:
    """Return the path of the notes on a table that ``pykernel table`` made."""
    return table.with_suffix(".inputs.json")


class Code(BaseModel):
    """A sentinel in a column: its value, the number of cells that ``pykernel table`` emptied, and the smallest and the
    largest of the column's other numbers.
    """

    column: str
    value: FiniteFloat
    cells: NonNegativeInt
    others: tuple[FiniteFloat, FiniteFloat]


class Origin(BaseModel):
    """How the numbers of a new column follow from ``column``.

    With ``word``, the numbers are 1 where ``column`` holds this word, and 0 where it holds another word.  With
    ``wave``, they are the sine or cosine of the phase of the day or week.  Otherwise, they are the numbers in
    ``column``.  Where ``column`` has no value, the new cell is empty.
    """

    column: str
    word: str | None = None
    wave: Literal["sin", "cos"] | None = None
    period: Literal["day", "week"] = "day"

    @property
    def how(self) -> str:
        """The formula as text, for people and for a spec."""
        if self.word is not None:
            return f"1 where {self.column} is {self.word!r}, 0 for other words"
        if self.wave is None:
            return self.column
        seconds, since = {"day": (86400, "midnight"), "week": (7 * 86400, "Monday, 0:00")}[self.period]
        return f"{self.wave}(2 pi s / {seconds}), where s is {self.column} in seconds since {since}"


class Notes(BaseModel):
    """The notes on a table.

    table: digest of the table's text.  made: new columns and their origins.  label: name of the label's column, which
    was copied, with empty cells where the label is missing.
    """

    table: str
    made: dict[str, Origin]
    label: str | None
    sentinels: list[Code]


def notes(text: str, made: Mapping[str, Origin], label: str | None, codes: Sequence[Code]) -> str:
    """Return the notes as JSON, which ``noted`` reads.  text: the table.  codes: the sentinels that were emptied."""
    known = Notes(table=hashlib.sha256(text.encode()).hexdigest(), made=dict(made), label=label, sentinels=list(codes))
    return known.model_dump_json(indent=1, exclude_defaults=True) + "\n"


def noted(data: dict[str, Any], table: str | Path) -> None:
    """Add the notes of ``pykernel table`` (origins of inputs, and emptied sentinels) to the description of a table.

    Does nothing if the notes describe another table, or if no notes can be read.
    """
    try:
        known = Notes.model_validate_json(notes_of(Path(table)).read_bytes())
        same = known.table == hashlib.sha256(Path(table).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return
    if same:
        new = {each: origin.how for each, origin in known.made.items() if each in data["inputs"]}
        data["made"] = {each: how for each, how in new.items() if how != each}
        there = [*data["inputs"], data["label"]]
        codes = [each.model_dump() for each in known.sentinels if each.column in there]
        data["sentinels"] += [each | {"others": [*each["others"]], "then": "gone"} for each in codes]
