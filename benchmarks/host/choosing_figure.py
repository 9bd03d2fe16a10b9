"""Put the output of pykernel plan on the demo's data, and the figure, into docs/guide/choosing.md.

python -m benchmarks.host.choosing_figure [--jobs N] [--results FOLDER]

Some minutes on two cores.  With --results, finished runs are kept there, and an interrupted script goes on.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import pareto_figure
from benchmarks.tables import DATA, ROOT
from pykernel.host.bikeshare import bikeshare, default_spec
from pykernel.telling import MEASURES, judged_rows_phrase
from pykernel.workflows.demo import write_inputs
from pykernel.workflows.planned import front_of

WORDS = [
    *("plan", "rentals.csv", "--label", "rentals", "--trials", "150"),
    *("--target", "cortex-m4f", "--ram", "8k", "--flash", "32k", "--instructions", "60000"),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.results or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        x, y, names = bikeshare()
        write_inputs(folder, default_spec(), x, y, names)
        with_last_label(folder / "rentals.csv")
        command = [sys.executable, "-m", "pykernel", *WORDS, "--jobs", arguments.jobs]
        wide = os.environ | {"COLUMNS": "100"}  # no cell of a table is broken into lines
        run = subprocess.run(command, cwd=folder, env=wide, check=True, stdout=subprocess.PIPE, text=True)
        insert("plan", run.stdout)
        # once more, for the picture: all runs are there
        again = subprocess.run([*command, "--json"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        draw(json.loads(again.stdout))


def draw(report: dict[str, Any]) -> None:
    """The front of what plan reports."""
    ylabel = f"{MEASURES[report['measure']]} on {judged_rows_phrase(report)}"
    pareto_figure(DATA / "plan.png", "plan: error against bytes", ylabel, [front_of(report)])


def with_last_label(path: Path) -> None:
    """The table of docs/guide/table-to-firmware.md: the bundled one, and a column with the label of the row before."""
    head, *rows = (ROOT / "pykernel" / "data" / "bikeshare.csv").read_text(encoding="utf-8").splitlines()
    labels = [row.rpartition(",")[2] for row in rows]
    last = [labels[0], *labels[:-1]]
    path.write_text("\n".join([f"{head},last", *map(",".join, zip(rows, last, strict=True))]) + "\n", encoding="utf-8")


def insert(name: str, output: str) -> None:
    """Replace the text block that follows the line <!-- NAME -->."""
    page = ROOT / "docs" / "guide/choosing.md"
    lines = "\n".join(line.rstrip() for line in output.splitlines()).strip()
    pattern = rf"(?<=^<!-- {name} -->\n```text\n).*?(?=\n^```$)"
    text = re.sub(pattern, lambda _: lines, page.read_text(encoding="utf-8"), count=1, flags=re.DOTALL | re.MULTILINE)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
