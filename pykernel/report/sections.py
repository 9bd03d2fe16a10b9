"""The documents about a spec, and about a generated project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pykernel.report.common import default_of, in_words, inside
from pykernel.report.document import Document, Facts, Section, Table

LONGEST = 200
"""Largest number of characters of a key's value that are shown."""


def spec_keys(name: str, rule: str, keys: Iterable[tuple[str, str, Any, Any]]) -> Document:
    """Return the document about the keys of a spec that have a value.  keys: the section, name, declaration and value
    of each key.
    """
    rows = [[f"[{section}] {key}" if section else key, in_words(value)[:LONGEST]] for section, key, _, value in keys]
    rows = [row for row in rows if row[1]]
    return Document(name, f"rule {rule}", [Section("Keys", [Table(("key", "value"), rows, words=(0, 1))])])


# ------------------------------------------------------------------------------------------------------------- generate


def generated(
    folder: str, files: Sequence[str], figures_: Mapping[str, Any], default: Mapping[str, Any] | None
) -> Document:
    """Return the document about the generated files."""
    files_ = [[file] for file in files]
    facts = [
        (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else in_words(value))
        for name, value in {**figures_, **figures_["extents"]}.items()
        if name != "extents"
    ]
    return Document(
        f"{figures_['name']} in {folder}",
        f"{figures_['state_bytes']:,} bytes of state, {figures_['work_bytes']:,} of work, {figures_['const_bytes']:,} of constants",
        [
            Section("Default", [Facts([default_of({"default": default})])], "both"),
            *inside(figures_, "both"),
            Section("Figures", [Facts(facts)]),
            Section("Files", [Table(("file",), files_)], "both"),
        ],
    )
