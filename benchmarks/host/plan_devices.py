"""What a plan over many devices promises, and what comes true on devices that nobody has seen; writes docs/data/plan-devices.csv.

    python -m benchmarks.host.plan_devices    # needs the package seglearn (pip install --no-deps seglearn)
    python -m benchmarks.host.plan_devices --show

Seven exercises of ten people, from a watch (seglearn, BSD-3): means and deviations of six channels in windows of 100 samples, as in
``benchmarks.host.merging``.  Ten times, three people are kept away; the recordings of the other seven are planned for, once as
seven devices, and once as one table in which their rows are mixed.  The planned spec then answers the three: a frozen one all of
their windows; one that learns begins anew with each, and the second half counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.merging import Table, joined, tables_of_watch
from benchmarks.tables import DATA, DOCS, load, markdown, publish, save
from pykernel import plan
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec

PATH, PAGE = DATA / "plan-devices.csv", DOCS / "many-devices.md"
SPLITS, KEPT, TRIALS = 10, 3, 16
WAYS = {"devices, never": "never", "one table, never": "never", "devices, always": "always"}


def written(folder: Path, name: str, table: Table) -> None:
    x, y = table
    rows = [
        ",".join([*(f"{value:.9g}" for value in row), f"c{label}"]) for row, label in zip(x.tolist(), y, strict=True)
    ]
    header = ",".join([*(f"x{j}" for j in range(x.shape[1])), "exercise"])
    (folder / f"{name}.csv").write_text("\n".join([header, *rows, ""]))


def came_true(spec: Spec, people: Sequence[Table]) -> float:
    """The part of wrong answers for people that nobody has seen."""
    wrong: list[bool] = []
    for x, y in people:
        model, half = HostModel(spec), len(y) // 2
        labels = [f"c{label}" for label in y]
        classes = list(spec.label.classes or ())
        index = np.array([classes.index(label) for label in labels], np.int32)
        if spec.program.learns:
            answers, _ = model.prequential(x, index, question="classify")
            wrong += (np.ravel(answers)[half:] != index[half:]).tolist()
        else:
            wrong += (np.ravel(model.ask("classify", x)[0]) != index).tolist()
    return float(np.mean(wrong))


def measured() -> list[dict[str, Any]]:
    tables, rows = tables_of_watch(), []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(tables)).tolist()
        known, others = [tables[i] for i in order[KEPT:]], [tables[i] for i in order[:KEPT]]
        for way, labels in WAYS.items():
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place, "people")
                folder.mkdir()
                if way.startswith("devices"):
                    for number, table in enumerate(known):
                        written(folder, f"p{number}", table)
                    data = folder
                else:
                    x, y = joined(known)
                    mixed = np.random.default_rng(split).permutation(len(y))
                    written(folder, "all", (x[mixed], y[mixed]))
                    data = folder / "all.csv"
                found = plan(data, label="exercise", labels=labels, trials=TRIALS, output=Path(place, "out"))
                promise, winner = found.report["winner"]["promise"], found.report["winner"]
                rows.append(
                    {
                        "way": way,
                        "split": split,
                        "model": winner["model"],
                        "promised": f"{promise['error']:.4g}",
                        "within": f"{promise['within']:.4g}",
                        "came_true": f"{came_true(found.spec, others):.4g}",
                    }
                )
                print(rows[-1], flush=True)
    return rows


def show() -> None:
    rows, lines = load(PATH), []
    for way in WAYS:
        own = [row for row in rows if row["way"] == way]
        promised, within, true = (
            np.array([float(row[key]) for row in own]) for key in ("promised", "within", "came_true")
        )
        held = int((np.abs(promised - true) <= within).sum())
        figures = [f"{np.median(values):.3f}" for values in (promised, true, true - promised, within)]
        lines.append([way, *figures, f"{held} of {len(own)}"])
    columns = ("planned for", "promised", "came true", "came true − promised", "±", "held")
    publish({"plan of devices": markdown(columns, lines)}, PAGE)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print from the file, without measuring")
    if not parser.parse_args(arguments).show:
        save(PATH, measured())
    show()


if __name__ == "__main__":
    main(sys.argv[1:])
