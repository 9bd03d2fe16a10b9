"""What pages hold: blocks of code with what they print, files and commands, tables."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tables
from tests.support import DATA, DOCS

NUMBER = re.compile(r"(\d[\d.,]*(?:e-\d+)?)(%?)")


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def stand(made: Mapping[str, str]) -> bool:
    """Whether the pages show these tables as they are made from the results; what no page shows does not count."""
    for name, table in made.items():
        if page := tables.page_with(name):
            text = tables.read(page)
            assert tables.place(text, name, table) == text, (page.name, name)
    return any(map(tables.page_with, made))


def measured(name: str) -> list[dict[str, str]]:
    """The rows of a file in docs/data."""
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table after a line that begins with ``heading``, its head left out."""
    lines = page[page.index(heading) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))])
    return rows


def blocks(page: str) -> list[tuple[str, str, str]]:
    """(file or "", language, text): a line `path`: before a block names the file that it is."""
    return re.findall(r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def commands_print(page: str, folder: Path, other: str = "-") -> int:
    """Runs a page's commands in a folder with its files; how many texts it compared.  other: in a text that is of no command."""
    said, compared = "", 0
    for file, language, text in blocks(page):
        if file:
            (folder / file).write_text(text)
        elif language == "sh" and "benchmarks" not in text and "pykernel check" not in text:
            command = text.replace("python ", f"{sys.executable} ", 1)
            done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            said = done.stdout
        elif language == "text" and (other == "-" or other not in text):
            assert said == text
            compared += 1
    return compared


def python_prints(page: str, exact: bool) -> int:
    """Runs a page's blocks of Python, one after the other; how many texts it compared.

    Numbers of a page that is not exact are within a tenth, or 0.02, for versions of libraries differ.
    """
    space: dict[str, Any] = {}
    said, compared = "", 0
    for _, language, text in blocks(page):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, "page.md", "exec"), space)
            said = out.getvalue()
        elif language == "text" and said:
            for told, got in zip(text.split(), said.split(), strict=True):
                numbers = [NUMBER.fullmatch(word) for word in (told, got)]
                if exact or not all(numbers):
                    assert told == got, said
                else:
                    wanted, found = (float(n[1].replace(",", "")) / (100 if n[2] else 1) for n in numbers if n)
                    assert wanted == pytest.approx(found, rel=0.1, abs=0.02), said
            compared, said = compared + 1, ""
    return compared
