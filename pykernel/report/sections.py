"""What is told of a spec, and of a generated project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pykernel.report.common import default_of, in_words, inside
from pykernel.report.document import Document, Facts, Section, Table
from pykernel.report.markup import Html, element

LONGEST = 200
"""Most characters of a line of a spec, and of a key's value, that are shown."""
LINES = 100
"""Most lines of a spec that are shown."""


def spec_report(name: str, summary: str, model: Mapping[str, Any], text: str) -> Document:
    """A model that was described, and has not learned."""
    return Document(name, summary, [*inside(model), Section("Spec", [element("pre", lines_of(text))])])


def spec_keys(name: str, rule: str, keys: Iterable[tuple[str, str, Any, Any]]) -> Document:
    """A spec's keys that have a value.  keys: section, key, declaration and value of each."""
    rows = [[f"[{section}] {key}" if section else key, in_words(value)[:LONGEST]] for section, key, _, value in keys]
    rows = [row for row in rows if row[1]]
    return Document(name, f"rule {rule}", [Section("Keys", [Table(("key", "value"), rows, words=(0, 1))])])


def lines_of(text: str) -> Html:
    """Text with its line ends; of hundreds of vectors the first ones, and of a long line the beginning."""
    every = text.splitlines()
    lines = [line if len(line) <= LONGEST else f"{line[:LONGEST]} …" for line in every[:LINES]]
    lines += [f"… {len(every) - LINES:,} more lines"] if len(every) > LINES else []
    return Html("<br>".join(element("code", line) for line in lines))


# ------------------------------------------------------------------------------------------------------------- generate


def generated(
    folder: str, files: Sequence[str], figures_: Mapping[str, Any], default: Mapping[str, Any] | None
) -> Document:
    """What was written."""
    files_ = [[file] for file in files]
    told = [
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
            Section("Figures", [Facts(told)]),
            Section("Files", [Table(("file",), files_)], "both"),
        ],
    )
