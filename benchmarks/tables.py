"""What benchmarks leave behind: a CSV file, and the table made from it in a page of docs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pykernel.files import whole_file

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DATA = DOCS / "data"


def page_of(folder: Path) -> Path:
    """The page that is filled from a folder of results: docs/NAME.md of docs/data/NAME, else NAME.md beside it."""
    return (DOCS / folder.name if folder.resolve().parent == DATA else folder).with_suffix(".md")


Rows = list[dict[str, str]]


def save(path: Path, rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Write rows of the same keys as CSV; what load() will read."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())
    return load(path)


def load(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def merged(path: Path, rows: Sequence[Mapping[str, Any]], key: str, names: Sequence[str], order: Sequence[str]) -> Any:
    """The rows of the file, with those of ``names`` (in column ``key``) replaced by new ones."""
    kept = [row for row in load(path) if row[key] not in names] if path.is_file() else []
    return sorted([*kept, *rows], key=lambda row: order.index(row[key]))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def place(page: str, name: str, table: str) -> str:
    """The page with the table between ``<!-- name -->`` and ``<!-- end -->``."""
    pattern = rf"(?<=<!-- {re.escape(name)} -->\n).*?(?=<!-- end -->)"
    if not re.search(pattern, page, re.DOTALL):
        raise ValueError(f"the page has no place for {name!r}")
    return re.sub(pattern, lambda _: f"\n{table}\n", page, count=1, flags=re.DOTALL)


def fill(text: str, tables: Mapping[str, Callable[..., str]], *results: Any) -> str:
    """The page with its tables written anew: what is between ``<!-- table: NAME -->`` and ``<!-- end -->``."""

    def written(match: re.Match[str]) -> str:
        return f"{match[1]}\n{tables[match[2]](*results)}\n{match[3]}"

    return re.sub(r"(<!-- table: ([\w-]+) -->)\n.*?(<!-- end -->)", written, text, flags=re.DOTALL)


@contextmanager
def alone(what: str, beside_others: bool = False) -> Iterator[None]:
    """Wait until nobody else does this, in any process; or only until nobody does it alone."""
    import fcntl  # not on Windows, where nothing is measured

    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / f"{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if beside_others else fcntl.LOCK_EX)
        yield


def page_with(name: str) -> Path | None:
    """The page that has a place of this name."""
    pages = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    return next((page for page in pages if f"<!-- {name} -->\n" in page.read_text(encoding="utf-8")), None)


def publish(tables: Mapping[str, str]) -> None:
    """Put each table into the page that has a place of its name."""
    with alone("pages"):
        for name, table in tables.items():
            if page := page_with(name):
                write(page, place(read(page), name, table))
            else:
                print(f"no page shows the table {name}")


def gcc_version(told: str) -> str:
    """12.2.1 of "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205"."""
    return re.sub(r"\(.*?\)", "", told).split()[1]


# ---------------------------------------------------------------------------------------------------- long tables

BLOCK = re.compile(r"(?<=<!-- )((?!end)[^>]*?)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\n\[[^]]*\]\((?:\.\./)*tables/([\w.-]+\.md)\)\n\s*")
MOST_WORDS = 150
"""Tables of more words lie in a file of their own, docs/tables/PAGE-NAME.md, to which the page has a link; the site shows
them in their place.  The README keeps its own."""


def read(page: Path) -> str:
    """The page with all of its tables in their places."""
    return whole(page.read_text(encoding="utf-8"), beside(page))


def beside(page: Path) -> Path:
    """The folder of its long tables: one for all of docs."""
    return (DOCS if page.is_relative_to(DOCS) else page.parent) / "tables"


def whole(text: str, folder: Path = DOCS / "tables") -> str:
    """The text of a page with all of its tables in their places."""

    def found(block: re.Match[str]) -> str:
        link = LINK.fullmatch(block[3])
        return block[0] if link is None else block[1] + block[2] + (folder / link[1]).read_text(encoding="utf-8")

    return BLOCK.sub(found, text)


def write(page: Path, text: str) -> None:
    """Write such a page; its long tables into files of their own."""
    folder = beside(page)
    up = "../" * (len(page.parts) - len(folder.parts))

    def short(block: re.Match[str]) -> str:
        rows = len(re.findall(r"^\|", block[3], re.MULTILINE)) - 2
        if (
            page == ROOT / "README.md"
            or rows < 1
            or "```" in block[3]
            or len(re.findall(r"\S*\w\S*", block[3])) <= MOST_WORDS
        ):
            return block[0]
        name = re.sub(r"\W+", "-", f"{page.stem}-{block[1].removeprefix('table: ')}") + ".md"
        folder.mkdir(exist_ok=True)
        with whole_file(folder / name) as file:
            file.write(block[3].encode())
        return f"{block[1]}{block[2]}\n[The table: {rows} rows]({up}tables/{name})\n\n"

    short_text = BLOCK.sub(short, text)
    with whole_file(page) as file:
        file.write(short_text.encode())


def progress_bar() -> Progress:
    """On standard error, if someone is watching."""
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()]
    columns += [TimeElapsedColumn(), TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
