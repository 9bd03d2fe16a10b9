"""How far long work is: in a notebook, one bar that changes in place, and nothing after the work; elsewhere lines or a terminal's bar."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel; would show progress in a notebook")
nbformat = pytest.importorskip("nbformat")
from traitlets.config import Config  # noqa: E402

SLOW = """
import time
from pykernel.progress import told_late
with told_late(200, pause=0.05) as say:
    for done in range(150):
        say(done, "<b>step</b>")
        time.sleep(0.01)
    say(199, "the end")
"""


class Notebook(nbclient.NotebookClient):
    """Executes cells in a real kernel, without ipywidgets, and keeps the kernel's messages."""

    def __init__(self, folder: Path, *cells: str) -> None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
        self.messages: dict[int, list[dict[str, Any]]] = {}
        with tempfile.TemporaryDirectory() as sockets:
            where = {"transport": "ipc", "ip": f"{sockets}/kernel"}
            how: dict[str, Any] = {
                "config": Config(ConnectionFileMixin=where),
                "kernel_name": "python3",
                "timeout": 300,
            }
            super().__init__(notebook, resources={"metadata": {"path": str(folder)}}, **how)
            self.execute()

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        self.messages.setdefault(cell_index, []).append(msg)
        return super().process_message(msg, cell, cell_index)

    def shown(self, cell: int) -> list[str]:
        """The texts of a cell's bars, in their order."""
        kinds = "display_data", "update_display_data"
        return [m["content"]["data"]["text/html"] for m in self.messages[cell] if m["msg_type"] in kinds]


@pytest.mark.exhaustive
def test_a_notebook_has_one_bar_that_changes_in_place_and_goes(tmp_path: Path) -> None:
    done = Notebook(tmp_path, SLOW, "time.sleep(1.2)", "import sys; assert 'ipywidgets' not in sys.modules")
    (bar,) = done.nb.cells[0].outputs
    assert bar.output_type == "display_data" and set(bar.data.values()) == {""}
    texts = done.shown(0)
    parts = [float(found[1]) for text in texts if (found := re.search(r'value="([\d.]+)"', text))]
    assert 3 <= len(texts) <= 8 and parts == sorted(parts) and 0 < parts[0] < parts[-1] < 1
    assert "&lt;b&gt;step&lt;/b&gt;" in texts[1] and "<b>" not in "".join(texts) and texts[-1] == ""
    assert not done.nb.cells[1].outputs and not done.shown(1)


@pytest.mark.exhaustive
def test_commands_show_it(tmp_path: Path) -> None:
    """And their results, and nothing on standard error."""
    x = np.random.default_rng(0).normal(size=(400, 2))
    rows = [f"{a:.4f},{b:.4f},{np.sin(a) + b:.4f}" for a, b in x]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    (tmp_path / "spec.toml").write_text(
        'name = "spec"\n[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "y"\n[learning]\nrule = "nlms"\n'
    )
    calls = (
        "plan('d.csv', label='y', only='nlms', trials=2, jobs=1)",
        "simulate(spec, 'd.csv')",
        "fit('d.csv', label='y', model='ls-svm', sigma=(1, 2), ridge=(0.1, 1))",
        "check(spec, samples=200, engine='llvm')",
    )
    begin = "import pykernel, pykernel.progress as progress; spec = pykernel.load_spec('spec.toml'); progress.PAUSE = progress.BLINK = 0.001"
    done = Notebook(tmp_path, begin, *(f"pykernel.{call}" for call in calls))
    for cell in range(1, 1 + len(calls)):
        *bars, result = done.nb.cells[cell].outputs
        assert result.output_type == "execute_result" and "text/html" in result.data
        assert bars and all(set(bar.data.values()) == {""} for bar in bars) and "<progress" in done.shown(cell)[0]
