"""docs/signals.md: its example runs, and prints what the page says."""

import re

from pykernel.spec.model import make_spec
from tests.support import DOCS


def test_the_example_prints_what_the_page_says(capsys):
    page = (DOCS / "signals.md").read_text(encoding="utf-8")
    (code, said) = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE).groups()
    names = {}
    exec(compile(code, "signals.md", "exec"), names)
    assert capsys.readouterr().out == said
    # the calls that the page names are those of the spec
    entries = {entry.name for entry in make_spec(names["spec"].model_dump(exclude_unset=True)).program.entries}
    assert {"push", "forecast_classify", "signal"} <= entries
