"""The proved most cycles of a call on an AVR, beside the most that its timer counted: every preset, N = 32, 8 inputs.

    python -m benchmarks.device.avr_bounds [--only NAME …] [-o docs/data] [--show]

An ATmega1284P in simavr, GCC -O2; the stream is the check's, 400 samples with difficult ones among them.  Reading the timer
takes about 130 cycles of each call.  Writes avr-bounds.csv, and the table into docs/guide/bounds.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.device.bounds import SAMPLES, WHOLE, model_of
from benchmarks.device.presets import LINEAR, PRESETS
from benchmarks.tables import DATA, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.errors import UserError
from pykernel.targets.check import check_targets

COLUMNS = ("preset", "precision", "call", "instructions", "cycles", "counted")


def measure(preset: str, precision: str) -> list[dict[str, Any]]:
    (row,) = check_targets(model_of(preset, precision), ["avr"], samples=SAMPLES).rows
    if not row["equal"]:
        raise RuntimeError(f"{preset} on avr: {row['first_difference']}")
    found = []
    for call in ("predict", "update"):
        bound = row["bounds"][call]
        given = (preset, precision, call, bound["instructions"], bound["cycles"], row["times"][call]["max"])
        found.append(dict(zip(COLUMNS, given, strict=True)))
    return found


def table(rows: Rows) -> dict[str, str]:
    lines = []
    for preset, precision in dict.fromkeys((row["preset"], row["precision"]) for row in rows):
        line = [f"{preset}{', int16' if precision == 'int16' else ''}"]
        for call in ("predict", "update"):
            key = (preset, precision, call)
            (one,) = (row for row in rows if tuple(row[name] for name in COLUMNS[:3]) == key)
            bound, counted = int(one["cycles"]), int(one["counted"])
            line.append(f"{bound:,} / {counted:,} = {bound / counted:.2f}")
        lines.append(line)
    return {"bounds on an AVR": markdown(["preset", "predict", "update"], lines)}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", choices=(*PRESETS, *LINEAR), metavar="NAME", help="keep the others' rows")
    parser.add_argument("--show", action="store_true", help="measure nothing: the table from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "avr-bounds.csv"
    if chosen.show:
        rows = load(path)
    else:
        names = chosen.only or (*PRESETS, *LINEAR)
        jobs = [(preset, p) for preset in names for p in ("float32", "int16") if p == "float32" or preset in WHOLE]
        made: list[dict[str, Any]] = []
        with progress_bar() as bar:
            for preset, precision in bar.track(jobs, description="counting"):
                try:
                    made += measure(preset, precision)
                except UserError as refused:
                    print(f"{preset}, {precision}: {refused}")
        rows = save(path, merged(path, made, "preset", names, (*PRESETS, *LINEAR)))
    if chosen.out == DATA:
        publish(table(rows))
    print(*table(rows).values())


if __name__ == "__main__":
    main()
