"""The proved most instructions of a call, beside the worst call that a search finds: every preset, N = 32, 8 inputs.

    python -m benchmarks.device.bounds [--only NAME …] [-o docs/data] [--show]

GCC.  The stream is the check's, 400 samples with difficult ones among them; the search takes TRIES tries from it, with
states that are restored, reset, refreshed and forged.  The rows of a preset are written when they are measured.  What the marks of
loops cost is measured beside it: bytes of code, and the instructions of the stream's median calls, with the marks and without.
Writes bounds.csv and marks.csv, and the tables into docs/guide/bounds.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device.presets import LINEAR, PRESETS, spec_of
from benchmarks.tables import DATA, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import model_image
from pykernel.targets.check import check_targets
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

N, DIM, SAMPLES, TRIES = 32, 8, 400, 1000
BUILDS = (("cortex-m4f", "-O2"), ("cortex-m4f", "-Os"), ("cortex-m0plus", "-O2"), ("rv32imac", "-O2"))
WHOLE = ("nt", "fklms", "qklms, nt")
"""Presets that are measured with precision int16, too."""
MARKED = ("nt", "fklms", "klms", "krls-t, sup")
"""Presets of which the marks' cost is measured."""
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


def cost_of_marks(preset: str, target: str, level: str) -> dict[str, Any]:
    """Of a model's code with marks, as a part of the same without."""
    spec = model_of(preset, "float32")
    project, (x, y), figures = build(spec), mixed_stream(spec, SAMPLES), []
    for text in ("", f"#define {spec.name.upper()}_MARKS 0\n"):
        image = model_image(project, find_target(target), "gcc", patch=lambda c, text=text: text + c, level=level)
        model = UnicornModel(project, image)
        model.prequential(x, y)
        figures.append([image.sizes["text_bytes"], *(float(np.median(model.costs[c])) for c in ("predict", "update"))])
    ratios = [f"{with_marks / without:.3f}" for with_marks, without in zip(*figures, strict=True)]
    return dict(
        zip(("preset", "target", "level", "code", "predict", "update"), (preset, target, level, *ratios), strict=True)
    )


def table_of_marks(rows: Rows) -> dict[str, str]:
    lines = [[r["preset"], f"{r['target']} {r['level']}", r["code"], r["predict"], r["update"]] for r in rows]
    return {"cost of marks": markdown(["preset", "target", "bytes of code", "predict", "update"], lines)}


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
    path, beside = chosen.out / "bounds.csv", chosen.out / "marks.csv"
    if chosen.show:
        rows, marks = load(path), load(beside)
    else:
        names, order = chosen.only or (*PRESETS, *LINEAR), (*PRESETS, *LINEAR)
        rows = load(path) if path.is_file() else []
        with progress_bar() as bar:
            for preset in bar.track(names, description="counting"):
                made: list[dict[str, Any]] = []
                for precision in ("float32", "int16") if preset in WHOLE else ("float32",):
                    try:
                        made += measure(preset, precision)
                    except UserError as refused:
                        print(f"{preset}, {precision}: {refused}")
                rows = save(path, merged(path, made, "preset", [preset], order))
        marks = save(beside, [cost_of_marks(p, *b) for p in MARKED for b in BUILDS])
    if chosen.out == DATA:
        publish(tables(rows) | table_of_marks(marks))
    print("\n".join((*tables(rows).values(), *table_of_marks(marks).values())))


if __name__ == "__main__":
    main()
