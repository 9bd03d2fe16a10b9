"""Could whole numbers carry a subspace that follows a stream (okfeb)?  A trial, not an implementation.

    python -m benchmarks.host.whole_subspace [-o docs]

A subspace learns the gearbox of examples/novelty in float64.  Twins learn the same, but after each sample every number of
their state is rounded to so many bits: each field has one scale, a power of two, with which the largest number of the float64
run takes one bit less than all.  That is kinder than real whole numbers, which round within an update, too.

Told are the largest difference of the novelty from that of float64, in parts of its deviation, and how many samples are on the
other side of a threshold, which one in a hundred samples of the second half exceeds.

Writes whole-subspace.csv to the output folder and the table into docs/whole-numbers.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, ROOT, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from pykernel.targets.build import Image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import EmulatedCpu

PAGE = "whole-numbers.md"
GEARBOX: dict[str, Any] = {
    "name": "monitor",
    "input": {
        "columns": ["band1", "band2", "band3", "band4", "band5", "current", "torque", "oil"],
        "max_abs": 1000.0,
        "center": [-0.4, -0.4, -0.4, -0.4, -0.4, 0.5, 0.3, 35.0],
        "scale": [2.5, 2.5, 2.5, 2.5, 2.5, 7.5, 7.5, 0.125],
    },
    "kernel": {"sigma": 1.2},  # eight times the noise of scaled inputs
    "learning": {"rule": "okfeb", "features": 12},
    "reduction": {"n_max": 48},
    "subspace": {"shrinkage": 0.1, "censoring": 0.8, "fading": 0.9995},
}
BITS = (32, 24, 20, 16, 12)
ROWS = 4000


def stream() -> np.ndarray:
    """Samples of the gearbox, (rows, 8), without faults."""
    sys.path.insert(0, str(ROOT / "examples" / "novelty"))
    from machine import Drive  # type: ignore[import-not-found]

    return np.asarray(Drive(0).run(ROWS).x)


PRODUCTS = """#include <stdint.h>
float reals(float a, float b, float c) { return a + (b * c); }
int32_t wide(int32_t a, int32_t b, int32_t c) { return a + (int32_t)(((int64_t)b * c) >> 31); }
int32_t narrow(int32_t a, int32_t b, int32_t c) { return a + (((int32_t)(int16_t)b * (int16_t)c) >> 15); }
"""


def instructions() -> dict[str, float]:
    """What a sum of products takes on a Cortex-M0+ for each term, with the call: float32, 32 x 32 bits, 16 x 16 bits."""
    image = Image(find_target("cortex-m0plus"), "gcc", {"a.c": PRODUCTS}, flags=("-w",))
    cpu, rng, found = EmulatedCpu(image), np.random.default_rng(0), {}
    for name, told in (("reals", "float32"), ("wide", "32 x 32 bits"), ("narrow", "16 x 16 bits")):
        before = cpu.instructions
        for _ in range(200):
            values = rng.uniform(-1, 1, 3)
            words = values.astype("<f4").view("<u4") if name == "reals" else (values * 2**30).astype("<i4").view("<u4")
            cpu.call(name, *map(int, words))
        found[told] = (cpu.instructions - before) / 200
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA.parent, metavar="FOLDER")
    options = parser.parse_args(arguments)
    spec = make_spec(GEARBOX | {"precision": "float64"})
    x = stream()
    fields = [
        slot.name
        for slot in spec.memory().layout.slots
        if slot.offset < spec.program.state_bytes(spec.memory().layout) and slot.array.scalar.name == "Real"
    ]
    exact, largest = HostModel(spec), dict.fromkeys(fields, 0.0)
    novelties = np.zeros(len(x))
    for t, row in enumerate(x):
        novelties[t] = exact.novelty(row[None])[0]
        exact.update(row[None])
        for name in fields:
            largest[name] = max(largest[name], float(np.abs(exact.memory.field(name)).max(initial=0.0)))
    rows: list[dict[str, object]] = []
    half, deviation = len(x) // 2, float(np.std(novelties[len(x) // 2 :]))
    threshold = float(np.quantile(novelties[half:], 0.99))

    def judged(name: str, found: np.ndarray) -> None:
        changed = int(((found > threshold) != (novelties > threshold))[half:].sum())
        difference = float(np.abs(found - novelties)[half:].max()) / deviation
        rows.append({"state": name, "difference": f"{difference:.3g}", "changed": changed, "rows": len(x) - half})

    single, found = HostModel(make_spec(GEARBOX | {"precision": "float32"})), np.zeros(len(x))
    for t, row in enumerate(x):
        found[t] = single.novelty(row[None])[0]
        single.update(row[None])
    judged("float32", found)
    for bits in BITS:
        model, found = HostModel(spec), np.zeros(len(x))
        grids = {name: 2.0 ** (np.ceil(np.log2(max(largest[name], 1e-300))) - bits + 2) for name in fields}
        for t, row in enumerate(x):
            found[t] = model.novelty(row[None])[0]
            model.update(row[None])
            for name in fields:
                values = model.memory.field(name)
                values[...] = np.rint(values / grids[name]) * grids[name]
        judged(f"{bits} bits", found)
    for name, count in instructions().items():
        rows.append({"state": name, "difference": count, "changed": "", "rows": ""})
    folder = options.output / "data" if (options.output / "data").is_dir() else options.output
    told = save(folder / "whole-subspace.csv", rows)
    table = [
        (row["state"], row["difference"], f"{row['changed']} of {int(row['rows']):,}") for row in told if row["rows"]
    ]
    heads = ("state", "largest difference of the novelty, in its deviations", "on the other side of the threshold")
    costs = [(row["state"], f"{float(row['difference']):.0f}") for row in told if not row["rows"]]
    made = {"whole-subspace": markdown(heads, table)}
    made["whole-subspace-cost"] = markdown(("a += b c, on a Cortex-M0+", "instructions"), costs)
    publish(made, options.output / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
