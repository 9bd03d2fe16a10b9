"""The proved most instructions of a call, beside the worst call that a search finds: every preset, N = 32, 8 inputs.

    python -m benchmarks.device.bounds [--only NAME …] [-o docs/data] [--show]

GCC.  The stream is the check's, 400 samples with difficult ones among them; the search takes TRIES tries from it, with
states that are restored, reset, refreshed and forged.  The rows of a preset are written when they are measured.  Writes bounds.csv, and
the tables of the pages.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.device.presets import LINEAR, PRESETS, spec_of
from benchmarks.tables import DATA, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.errors import UserError
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.check import check_targets

N, DIM, SAMPLES, TRIES = 32, 8, 400, 1000
BUILDS = (("cortex-m4f", "-O2"), ("cortex-m4f", "-Os"), ("cortex-m0plus", "-O2"), ("rv32imac", "-O2"))
WHOLE = ("nt", "fklms", "qklms, nt")
"""Presets that are measured with precision int16, too."""
COLUMNS = ("preset", "precision", "target", "level", "call", "bound", "worst", "cycles")


def model_of(preset: str, precision: str) -> Spec:
    given: dict[str, Any] = {"name": "busy", "input": {"dim": DIM, "max_abs": 10.0}}
    if preset in LINEAR:
        return make_spec(
            given | {"learning": LINEAR[preset]} | ({"kernel": {"sigma": 1.0}} if preset == "rff-rls" else {})
        )
    content = spec_of(preset, N).model_dump(exclude_unset=True)
    content["input"] = given["input"]
    if precision == "int16":
        content |= {"precision": "int16", "label": {"max_abs": 10.0}}
    return make_spec(content)


def measure(preset: str, precision: str) -> list[dict[str, Any]]:
    spec, rows = model_of(preset, precision), []
    for target, level in BUILDS:
        (row,) = check_targets(
            spec, [target], samples=SAMPLES, chain="gcc", emulator="unicorn", level=level, tries=TRIES
        ).rows
        if not row["equal"]:
            raise RuntimeError(f"{preset} on {target}: {row['first_difference']}")
        for call in ("predict", "update"):
            bound = row["bounds"][call]
            if bound["instructions"] is None:
                raise RuntimeError(f"{preset} on {target}: {bound['refused']}")
            given = (preset, precision, target, level, call, bound["instructions"], row[call]["worst"])
            exact = bound["cycles"] if not bound["estimated"] else None
            rows.append(dict(zip(COLUMNS, (*given, exact or ""), strict=True)))
    return rows


def tables(rows: Rows) -> dict[str, str]:
    found = {}
    for call in ("predict", "update"):
        lines = []
        for preset, precision in dict.fromkeys((row["preset"], row["precision"]) for row in rows):
            line = [f"{preset}{', int16' if precision == 'int16' else ''}"]
            for target, level in BUILDS:
                key = (preset, precision, target, level, call)
                (one,) = (row for row in rows if tuple(row[name] for name in COLUMNS[:5]) == key)
                bound, worst = int(one["bound"]), int(one["worst"])
                line.append(f"{bound:,} / {worst:,} = {bound / worst:.2f}")
            lines.append(line)
        heads = ["preset", *(f"{target} {level}" for target, level in BUILDS)]
        found[f"bounds of {call}"] = markdown(heads, lines)
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", choices=(*PRESETS, *LINEAR), metavar="NAME", help="keep the others' rows")
    parser.add_argument("--show", action="store_true", help="measure nothing: the tables from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "bounds.csv"
    rows = load(path) if chosen.show or path.is_file() else []
    if not chosen.show:
        names, order = chosen.only or (*PRESETS, *LINEAR), (*PRESETS, *LINEAR)
        with progress_bar() as bar:
            for preset in bar.track(names, description="counting"):
                made: list[dict[str, Any]] = []
                for precision in ("float32", "int16") if preset in WHOLE else ("float32",):
                    try:
                        made += measure(preset, precision)
                    except UserError as refused:
                        print(f"{preset}, {precision}: {refused}")
                rows = save(path, merged(path, made, "preset", [preset], order))
    if chosen.out == DATA:
        publish(tables(rows))
    print("\n".join(tables(rows).values()))


if __name__ == "__main__":
    main()
