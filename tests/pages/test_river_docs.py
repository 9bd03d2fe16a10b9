"""docs/guide/river.md: its example runs and prints what the page says, and its tables are what was measured."""

import re

import pytest

pytest.importorskip("river")

from benchmarks.host import river_accuracy, river_overhead
from benchmarks.tables import load
from tests.support import DOCS
from tests.support.pages import stand

PAGE = (DOCS / "guide/river.md").read_text(encoding="utf-8")


def test_the_examples_print_what_the_page_says(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(examples) == PAGE.count("```python") == 2
    for code, said in examples:
        exec(compile(code, "guide/river.md", "exec"), {})
        assert capsys.readouterr().out == said
    assert (tmp_path / "build" / "approval" / "src" / "approval.c").is_file()


@pytest.mark.parametrize("script", [river_overhead, river_accuracy])
def test_the_tables_are_the_results(script):
    assert stand(script.tables(load(script.FILE)))
