"""The notebooks of docs/: short, without stored outputs, reached by readers; executed, their cells work."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from tests.pages.test_docs import PASTES
from tests.support import DOCS, ROOT

NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))
MOST_CELLS = 12


def cells_of(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_readers_find_them():
    assert len(NOTEBOOKS) == 3
    index, nav = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/README.md", "website/mkdocs.yml"))
    for path in NOTEBOOKS:
        assert f"({path.name})" in index and f": {path.stem}.md\n" in nav


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_source_is_short_and_keeps_no_output(path):
    cells, text = cells_of(path), {"code": "", "markdown": ""}
    assert len(cells) <= MOST_CELLS
    for cell in cells:
        assert not cell.get("outputs") and not cell.get("execution_count") and not cell["metadata"]
        text[cell["cell_type"]] += "".join(cell["source"]) + "\n\n"
    ast.parse(text["code"])
    (line,) = [line for line in PASTES["first"].splitlines() if "pip install" in line]
    first = " ".join("".join(cells[0]["source"]).split())
    assert (
        line in first
        and f"jupyter lab docs/{path.name}" in first
        and re.search(r"take about (a minute|\d+ seconds)", first)
    )
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text["markdown"]):
        assert (DOCS / target).exists(), target


@pytest.mark.exhaustive  # make site executes them, too
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_works_and_shows_its_result(path):
    for needed in ("nbclient", "mkdocs", "unicorn", "sklearn"):
        pytest.importorskip(needed)
    sys.path.insert(0, str(ROOT / "website"))
    import hooks

    sys.path.remove(str(ROOT / "website"))
    text, outputs = hooks.executed(path)
    shown = "".join(outputs.values())
    assert len(outputs) >= 2 and "the same bytes as the PC" in shown and "<progress" not in shown
    assert all(place in text for place in outputs) and f"]({path.name})" in text
    assert not re.search("^pykernel: ", text, re.MULTILINE)  # progress as lines
