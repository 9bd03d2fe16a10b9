"""Represent a command's result as one tree for the terminal, the page and a notebook.

This module turns the tree into HTML, and ``cli.output`` turns it into text.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pykernel.files import whole_file
from pykernel.report.markup import Html, element, escaped
from pykernel.report.page import HINT, SCRIPT, STYLE, WHOLE, policy


@dataclass(frozen=True)
class Sentence:
    text: str

    def html(self) -> Html:
        return element("p", self.text) if self.text else Html("")


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and a text.  A pair without a text is left out."""

    pairs: Sequence[tuple[str, object]]

    def html(self) -> Html:
        items = [element("dt", name) + element("dd", text) for name, text in self.pairs if text not in (None, "")]
        return element("dl", Html("".join(items))) if items else Html("")


class Cell(str):
    """A cell's text. good: marks the text as good or bad news on the terminal. part: adds a bar on the page; the bar's
    length is this fraction of the longest bar.
    """

    good: bool | None
    part: float | None

    def __new__(cls, text: str, good: bool | None = None, part: float | None = None) -> Cell:
        made = super().__new__(cls, text)
        made.good, made.part = good, part
        return made

    def html(self) -> Html:
        width = 0.0 if self.part is None else max(0.0, min(1.0, self.part)) * 8
        bar = "" if self.part is None else element("span", "", class_="bar", style=f"width:{width:.2f}em")
        return Html(f"{bar}{escaped(str(self))}")


@dataclass(frozen=True)
class Table:
    """A table.  A table without rows is left out.

    words: positions of the columns with text, which are aligned to the left; the other columns have numbers.  strong:
    positions of bold rows.  spare: names of the columns that are left out on a narrow terminal, in this order.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Container[int] = (0,)
    strong: Container[int] = ()
    title: str = ""
    spare: Sequence[str] = ()

    def html(self) -> Html:
        def row(tag: str, cells: Sequence[str], strong: bool = False) -> Html:
            elements = [
                element(tag, cell.html() if isinstance(cell, Cell) else cell, class_="w" if i in self.words else None)
                for i, cell in enumerate(cells)
            ]
            return element("tr", *elements, class_="strong" if strong else None)

        title = element("caption", self.title) if self.title else ""
        body = [row("td", cells, n in self.strong) for n, cells in enumerate(self.rows)]
        whole = element("table", title, element("thead", row("th", self.columns)), element("tbody", *body))
        return element("div", whole, class_="wide") if body else Html("")


def table_of(
    rows: Sequence[Mapping[str, str]],
    words: Container[str],
    strong: Container[int] = (),
    title: str = "",
    spare: Sequence[str] = (),
) -> Table:
    """Make a table of rows (column name -> text), without columns that are empty in all rows.  words: names of the
    columns with text.
    """
    used = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
    left = [i for i, name in enumerate(used) if name in words]
    return Table(used, [[row[name] for name in used] for row in rows], left, strong, title, spare)


if TYPE_CHECKING:
    # imported only for types, because importing this module must not load NumPy
    from pykernel.report.figures import Plot

    Part = Sentence | Facts | Table | Plot | Html
else:
    Part = Any
"""A part of a section.  Html is a figure that has already been drawn."""


@dataclass(frozen=True)
class Section:
    """A part of a document, with a heading.  A section without content is left out.

    shown: "page" for the page only, which has more room than the terminal; "both" for the page and the terminal.
    """

    title: str
    parts: Sequence[Part]
    shown: Literal["page", "both"] = "page"

    def html(self) -> Html:
        inside = Html("".join(part if isinstance(part, Html) else part.html() for part in self.parts))
        return element("section", element("h2", self.title), inside) if inside else Html("")


@dataclass(frozen=True, repr=False)
class Document:
    """A command's result, for people.

    verdict: the conclusion, in one sentence.  good: whether the conclusion is good news.  next: commands that the user may want to run
    next.  last: a function that makes the last sections, which take long to make and appear only on the page.
    """

    title: str
    verdict: str
    sections: Sequence[Section]
    good: bool = True
    next: Sequence[str] = ()
    last: Callable[[], Sequence[Section]] = tuple

    @property
    def body(self) -> Html:
        parts = [each.html() for each in (*self.sections, *self.last())]
        zooms = any("data-x=" in part for part in parts)
        return element(
            "div",
            element("h1", self.title),
            element("p", self.verdict, class_="verdict" if self.good else "verdict bad") if self.verdict else "",
            element("p", HINT, class_="hint", hidden="") if zooms else "",
            *parts,
            class_="pykernel",
        )

    def figures(self, *titles: str) -> list[Html]:
        """Return the sections with these titles, to embed in another page.  The other page needs ``STYLE`` and, for
        zooming, ``SCRIPT``.
        """
        shown = [each.html() for each in (*self.sections, *self.last()) if each.title in titles]
        return [element("div", each, class_="pykernel") for each in shown if each]

    def html(self) -> str:
        """Return the text of the HTML file."""
        head = (
            '<meta charset="utf-8">'
            f"{policy(SCRIPT)}"
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escaped(self.title)}</title><style>{WHOLE}{STYLE}</style>"
        )
        script = f"<script>{SCRIPT}</script>"
        return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{self.body}\n{script}</body></html>\n'

    def _repr_html_(self) -> str:
        return f"<style>{STYLE}</style>{self.body}<script>{SCRIPT}</script>"

    def write(self, path: str | Path) -> None:
        """Write the HTML file, completely or not at all."""
        with whole_file(path) as file:
            file.write(self.html().encode())


class Result:
    """What a workflow found.

    report: the values that ``--json`` prints. page: the document for people; ``page.write("report.html")`` writes it as
    a file, and a notebook shows it.
    """

    if TYPE_CHECKING:

        @property
        def report(self) -> Mapping[str, Any]: ...

        @property
        def page(self) -> Document: ...

    @property
    def warnings(self) -> list[str]:
        """Warnings about results that the user probably did not expect."""
        return self.report.get("warnings", [])

    @property
    def failure(self) -> Exception | None:
        """The exception that the command raises after it has shown the result.  The message of a CheckFailed is shown
        instead of the document's verdict.
        """
        return None

    def __repr__(self) -> str:
        page = self.page
        return "\n  ".join(filter(None, [page.title, str(self.failure or page.verdict), *self.warnings]))

    def _repr_html_(self) -> str:
        return self.page._repr_html_()


@dataclass(frozen=True, repr=False)
class Found(Result):
    """The result of a workflow that has no result class of its own."""

    report: Mapping[str, Any]
    page: Document
    failure: Exception | None = None


def document_of_parts(*parts: Part, next: Sequence[str] = ()) -> Document:
    """Return a document with these parts in one section, without a title or a verdict."""
    return Document("", "", [Section("", parts, "both")], next=next)
