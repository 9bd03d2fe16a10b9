"""The documents are short enough to be read, and keep to what CONTRIBUTING says of their sentences."""

import re

import pytest

from tests.support import DOCS, ROOT

PAGES = sorted(DOCS.rglob("*.md"))
GUIDE = sorted((DOCS / "guide").glob("*.md"))


def words(*pages):
    """As CONTRIBUTING counts them: what stands in rows of tables does not count."""
    lines = (line for page in pages for line in page.read_text(encoding="utf-8").splitlines())
    return sum(len(line.split()) for line in lines if not line.startswith("|"))


def test_pages_are_as_short_as_contributing_says():
    said = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    page, guide, glossary, everything, tables = (
        int(re.search(pattern, said)[1].replace(",", ""))
        for pattern in (
            r"([\d,]+) words a page",
            r"([\d,]+) words for the folder",
            r"glossary has at most (\d+) terms",
            r"([\d,]+) words, including guide and reference",
            r"(\d+) tables in `docs/tables`",
        )
    )
    assert {each.name: words(each) for each in GUIDE if words(each) > page} == {}
    assert words(*GUIDE) <= guide and words(*PAGES) <= everything
    assert len(list((DOCS / "tables").glob("*"))) <= tables
    rows = re.findall(r"^\| (?!---)", (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert 20 < len(rows) - 1 <= glossary


def prose(text):
    """The sentences of a page: without code, tables and headings."""
    text = re.sub(r"^(```.*?^```|\||#|<!--).*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.split(r"(?<=[.:!?])\s+|\n\n+", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_no_sentence_begins_with_of(page):
    assert [line for line in prose(page.read_text(encoding="utf-8")) if line.lstrip("-* ").startswith("Of ")] == []
