"""Output and exit codes of commands: tables, sizes, numbers, progress, JSON, and sentences on standard error.

All text is treated as untrusted: names of columns, files, specs and boards can contain markup and control characters.
So every function in this module takes plain text, and replaces invisible characters.  The other modules of ``cli``
print only the version and the help.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from pykernel.errors import UNWRITTEN, CheckFailed, visible
from pykernel.progress import Show, bar, told_late
from pykernel.telling import Watch, finite_or_none, json_value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from pykernel.report.document import Document, Result

# 130 and 141 are the exit codes of shells after SIGINT and SIGPIPE
OK, FAILED, BAD_INPUT, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141


# ------------------------------------------------------------------------------------------------------------ sentences


def show(*lines: object) -> None:
    """Print each argument on a separate line, or an empty line if there are none."""
    print("\n".join(map(visible, lines)), flush=True)


def show_lines(lines: list[str]) -> None:
    """If the list is not empty, print its lines and an empty line after them, and clear the list."""
    if lines:
        show(*lines, "")
    lines.clear()


def say(kind: str, text: str) -> None:
    print(f"{kind}: {visible(text)}", file=sys.stderr)


def warn(*texts: str) -> None:
    for text in texts:
        say("warning", text)


def tell(text: str) -> None:
    """Print, on standard error, a sentence about a step that starts or about something that has happened."""
    print(visible(text), file=sys.stderr)


def interrupted(kept: str = UNWRITTEN) -> typer.Exit:
    """Print that the command was interrupted, and what was kept.  Returns the exception to raise.

    This exception replaces KeyboardInterrupt, for which typer would exit without a message.
    """
    say("error", f"interrupted{kept}")
    return typer.Exit(INTERRUPTED)


# -------------------------------------------------------------------------------------- tables, and the ends of reports


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Container[int] = (0,),
    strong: Container[int] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table without breaking words or numbers, because a reader may have to type them.

    words: columns of text, which are aligned to the left; all other columns hold numbers.  strong: rows in bold.

    If the window is too narrow, cells are wrapped between words.  If the table is still too wide, the columns in
    ``spare`` are left out one by one.  If this is not enough either, each row is printed as a list.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console, table = Console(), Table(box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(_text(column), justify="left" if i in words else "right", overflow="fold")
    for i, cells in enumerate(rows):
        table.add_row(*map(_text, cells), style="bold" if i in strong else None)
    # the title is printed separately: rich would wrap the table's own title to the table's width
    console.print(_text(title), style="bold", highlight=False)
    gone: list[str] = []
    while not (fits := _fit(table, console)) and len(gone) < len(spare):
        gone.append(spare[len(gone)])
        table.columns = [column for column in table.columns if str(column.header) != gone[-1]]
    if not fits:
        for cells in rows:
            console.print()
            for column, value in zip(columns, cells, strict=False):
                if value:
                    console.print(_text(f"  {column}  "), _text(value), sep="", highlight=False, soft_wrap=True)
        console.print()
        return
    console.print(table)
    if gone:
        show(f"columns left out because the window is too narrow: {', '.join(gone)}", "")


def _text(cell: str) -> Text:
    """Return a cell for rich, without interpreting markup."""
    from rich.text import Text

    good = getattr(cell, "good", None)
    return Text(visible(cell), "" if good is None else "green" if good else "bold red")


def _fit(table: Table, console: Console) -> bool:
    """Set the widths of columns so that the table fits without broken words.  Returns whether this is possible."""
    from rich.measure import Measurement

    wide = console.options.update(width=10_000)
    measured = []
    for column in table.columns:
        sizes = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
        # rich does not count leading spaces, and breaks the first word if there is no room for these spaces
        first = [len(text) - len(text.lstrip()) for text in map(str, (column.header, *column.cells))]
        least = max(size.minimum + spaces for size, spaces in zip(sizes, first, strict=True))
        measured.append((least, max(least, *(size.maximum for size in sizes))))
    # there are three characters between two columns, and two on each side of the table
    left = console.width - 3 * len(measured) - 1 - sum(least for least, _ in measured)
    each = list(zip(table.columns, measured, strict=True))
    texts = sum(column.justify != "right" for column in table.columns)
    # a number stays on one line with its unit if there is room; text columns share the rest, narrow ones first
    for column, (least, most) in sorted(each, key=lambda one: (one[0].justify != "right", one[1][1] - one[1][0])):
        share = left
        if column.justify != "right":
            share, texts = left // texts, texts - 1
        more = max(0, min(most - least, share))
        column.width, left = least + more, left - more
    return left >= 0


def show_document(document: Document, verdict: bool = True) -> None:
    """Print a command's result.  verdict: whether to print the verdict at the end, which is not needed before an error
    with the same text.
    """
    from pykernel.report.document import Facts, Sentence, Table

    lines: list[str] = []  # facts and sentences; an empty line follows them
    for section in document.sections:
        show_lines(lines)
        for part in section.parts if section.shown == "both" else ():
            if isinstance(part, Facts):
                lines += [f"{name:<9} {text}" for name, text in part.pairs if text]
            elif isinstance(part, Sentence):
                lines += [part.text] if part.text else []
            elif isinstance(part, Table) and part.rows:
                show_lines(lines)
                show_table(part.title or section.title, part.columns, part.rows, part.words, part.strong, part.spare)
    end = [document.verdict] if verdict and document.verdict else []
    if document.next:
        end += [*[""] * len(end), "next:", *(f"  {line}" for line in document.next)]
    if end:
        show_lines(lines)
        lines = end
    if lines:
        show(*lines)


# ----------------------------------------------------------------------------------------------------------------- JSON


def print_json(value: Any) -> None:
    print(json.dumps(finite_or_none(value), default=json_value, allow_nan=False))


def print_report(report: Mapping[str, Any], watch: Any) -> None:
    """Print a report as JSON, with the watch's warnings before the report's own."""
    warned = getattr(watch, "warned", [])
    print_json({**report, "warnings": [*warned, *report.get("warnings", [])]} if warned else report)


def present(result: Result, request: Any, as_json: bool, verdict: bool = True, **more: Any) -> None:
    """Print a command's result, then raise the result's failure, if there is one.

    as_json: print one JSON object, with the keys in ``more``, instead of text.  verdict: whether to print the verdict.
    The verdict is not printed before CheckFailed, whose message is the verdict.
    """
    if as_json:
        print_report({**result.report, **more}, getattr(request, "watch", None))
    else:
        show_document(result.page, verdict and not isinstance(result.failure, CheckFailed))
        warn(*result.warnings)
    if result.failure is not None:
        raise result.failure


# ------------------------------------------------------------------------------------------------------------- progress


class Printing(Watch):
    """Prints the messages of a workflow.  With --json, notes are not printed, and warnings are kept for the report."""

    def __init__(self, as_json: bool) -> None:
        self.as_json, self.bars, self.warned = as_json, not as_json, list[str]()

    def note(self, *lines: str) -> None:
        if not self.as_json:
            show(*lines, "")

    def data(self, data: Mapping[str, Any] | None) -> None:
        self.read = data
        super().data(data)

    def tell(self, sentence: str) -> None:
        tell(sentence)

    def warn(self, sentence: str) -> None:
        if self.as_json:
            self.warned.append(sentence)
        else:
            warn(sentence)

    def progress(self, total: float | None = 1) -> contextlib.AbstractContextManager[Show]:
        """Show a progress bar if standard error is a terminal.  With --json, or without a terminal, print lines if the work takes long."""
        return told_late(total) if self.as_json else bar(total)
