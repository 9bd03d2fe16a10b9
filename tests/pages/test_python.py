"""The Python of pages runs, block after block, and prints what they say."""

import pytest

from tests.support.pages import python_prints, text_of

PAGES = {"bases.md": 2, "subspaces.md": 4, "reduced.md": 1, "kernel-machines.md": 4, "support-vectors.md": 1}
"""Page -> how many texts it shows, or more."""
EXACT = ("reduced.md", "kernel-machines.md", "support-vectors.md")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_prints_is_what_it_says(name, tmp_path, monkeypatch, one_build):
    monkeypatch.chdir(tmp_path)
    assert python_prints(text_of(name), name in EXACT) >= PAGES[name]
