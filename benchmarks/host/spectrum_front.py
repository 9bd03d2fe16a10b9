"""Waves whose frequencies learn, beside krls-t, on the raw streams of numbers: error, bytes, instructions.

    python -m benchmarks.host.spectrum_front          # docs/data/spectrum-front.csv, and the table in docs/spectrum.md
    python -m benchmarks.host.spectrum_front --show   # the table of the file

Each model stands within the stages of a spec without a rule.  error: root mean square over the second half of a stream.  The
table divides it by the error of the best simple predictor of docs/data/first-results.csv: running mean, and both linear models.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.host.first_results import DATA, SIMPLE, error_of, learned, read
from benchmarks.host.first_streams import REGRESSION, stream
from benchmarks.tables import markdown, publish
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.defaults import BLOCK, FEATURES, Size, completed, groups, width
from pykernel.spec.model import Spec, make_spec

RESULTS = DATA / "spectrum-front.csv"
VARIANTS = ("as is", "noise", "sorted", "outliers")
COLUMNS = ("stream", "variant", "model", "error", "ram_bytes")
EKF_WIDTH, NLMS_WIDTH = 1.2, 1.0
"""sigma in parts of that of krls-t."""
FIRST: dict[str, dict[str, Any]] = {
    "krls-t, 32 vectors": {"reduction": {"n_max": 32}},
    "krls-t, 8 vectors": {"reduction": {"n_max": 8}},
    "qklms, 32 vectors": {"target": {"ram": 1}, "reduction": {"n_max": 32}},
}
"""Specs without a rule: what defaults make of them."""
SPECTRA: dict[str, tuple[float, dict[str, Any]]] = {
    "spectrum-nlms, 8": (NLMS_WIDTH, {"rule": "spectrum-nlms"}),
    "spectrum-nlms, 16": (NLMS_WIDTH, {"rule": "spectrum-nlms", "features": 16}),
    "spectrum-ekf, 4 in blocks of 1": (EKF_WIDTH, {"rule": "spectrum-ekf", "block": 1}),
    "spectrum-ekf, 4 in blocks of 2": (EKF_WIDTH, {"rule": "spectrum-ekf", "block": 2}),
    "spectrum-ekf, 4": (EKF_WIDTH, {"rule": "spectrum-ekf"}),
    "spectrum-ekf, 8 in blocks of 8": (EKF_WIDTH, {"rule": "spectrum-ekf", "features": 8, "block": 8}),
}
LINES = (
    *("krls-t, 32 vectors", "spectrum-nlms, 8", "spectrum-ekf, 4 in blocks of 2", "spectrum-ekf, 4"),
    "spectrum-ekf, 8 in blocks of 8",
)
"""Models that are measured with the linear expert, too."""


def models(dim: int) -> Iterator[tuple[str, Spec]]:
    base: dict[str, Any] = {
        "name": "first",
        "input": {"columns": [f"x{i}" for i in range(dim)]},
        "label": {"column": "y"},
    }
    contents = {name: dict(completed(base | more)) for name, more in FIRST.items()}
    first = contents["krls-t, 32 vectors"]
    stages = {key: first[key] for key in first if key not in ("learning", "kernel", "reduction")}
    for name, (factor, learning) in SPECTRA.items():
        contents[name] = stages | {"kernel": {"sigma": float(f"{factor * width(dim):.4g}")}, "learning": learning}
    for name, content in contents.items():
        yield name, make_spec(content)
        if name in LINES:
            content = content | {"mixture": {}}
            yield f"{name}, with a linear expert", make_spec(content)
            held = {"input": {**content["input"], "outliers": "hold"}}
            yield f"{name}, with a linear expert and held outliers", make_spec({**content, **held})


def measure() -> list[dict[str, Any]]:
    rows = []
    for name in REGRESSION:
        for variant in VARIANTS:
            x, y = stream(name, variant)
            for called, spec in models(x.shape[1]):
                answers, _, _ = learned(HostModel(spec), x, y)
                size = build(spec).figures["ram_bytes"] if variant == VARIANTS[0] else ""
                values = (name, variant, called, f"{error_of(answers, y, 0):.6g}", size)
                rows.append(dict(zip(COLUMNS, values, strict=True)))
            print(name, variant, flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    simple = read()
    lines = []
    for name in dict.fromkeys(row["model"] for row in rows):
        own, line = [row for row in rows if row["model"] == name], [name]
        for variant in VARIANTS:
            found = []
            for row in own:
                if row["variant"] == variant:
                    known = simple[row["stream"], variant]
                    least = min(float(known[each]["error"]) for each in SIMPLE)
                    found.append(float(row["error"]) / max(least, 1e-12))
            line.append(f"{math.exp(float(np.mean(np.log(found)))):.3f}, {max(found):.2f}")
        sizes = dict(models(3))
        lines.append([*line, f"{build(sizes[name]).figures['ram_bytes']:,}"])
    return markdown(["model", *VARIANTS, "RAM, D = 3"], lines)


def found() -> list[dict[str, Any]]:
    """What was measured."""
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def sizes() -> str:
    """The default's models, and the bytes that they take for some numbers of inputs: for one label, or three classes."""
    dims, lines = (1, 3, 8, 16), []
    every = [(waves, o) for task, o in (("number", 1), ("class", 3)) for waves in groups(task, False)[0]]
    for waves, outputs in every:
        learning = {"features": FEATURES[waves.rule], "block": BLOCK} | waves.sections["learning"]
        blocks = f", in blocks of {learning['block']}" if waves.rule == "spectrum-ekf" else ""
        mixture = waves.sections.get("mixture")
        beside = "" if mixture is None else f", with `[mixture]`{' in blocks' * bool(mixture)}"
        each = [f"{waves.costs(Size(dim, outputs))[0]:,}" for dim in dims]
        lines.append([f"`{waves.rule}`, {learning['features']} waves{blocks}{beside}", *each])
    return markdown(["model", *(f"bytes, D = {dim}" for dim in dims)], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the table of the file")
    if not parser.parse_args().show:
        rows = measure()
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    made = table(found())
    publish({"spectrum-front": made}, DATA.parent / "spectrum.md")
    publish({"default-sizes": sizes()}, DATA.parent / "online.md")
    print(made)


if __name__ == "__main__":
    main()
