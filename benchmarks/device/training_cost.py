"""What training on the device costs: bytes, and instructions of each call on emulated processors; writes docs/data/training-cost.csv.

    python -m benchmarks.device.training_cost [--target cortex-m4f cortex-m0plus] [--toolchain zig] [--level -O2]

Four standard normal inputs, two classes, a Gaussian kernel of width 2, float32.  Every row's memory and answers are
compared with the host's.  ``docs/training-on-device.md`` quotes the results; ``tests/pages/test_benchmarks.py`` compares the two.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.tables import DATA, save
from pykernel.spec.model import make_spec
from pykernel.targets.check import check_targets

SIZES = {"ls-svm": (16, 32, 64, 100), "kfd": (8, 16, 32, 64)}
DIM, SIGMA, RIDGE = 4, 2.0, 1.0


def content(rule: str, size: int, x: np.ndarray) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": "measured",
        "input": {"dim": DIM},
        "label": {"classes": ["no", "yes"]},
        "kernel": {"sigma": SIGMA},
        "learning": {"rule": rule, "ridge": RIDGE},
    }
    if rule == "kfd":
        return made | {"expansion": {"vectors": np.float64(x[:size]).tolist()}}
    return made | {"learning": made["learning"] | {"samples": size}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", nargs="+", default=["cortex-m4f", "cortex-m0plus"])
    parser.add_argument("--toolchain", default="zig")
    parser.add_argument("--level", default="-O2")
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, DIM)).astype(np.float32)
    y = (np.sin(x.sum(1)) > 0).astype(np.int32)
    rows = []
    jobs = [(target, rule, size) for target in chosen.target for rule, sizes in SIZES.items() for size in sizes]
    for target, rule, size in track(jobs, "training"):
        spec = make_spec(content(rule, size, x))
        how = {"chain": chosen.toolchain, "emulator": "unicorn", "level": chosen.level, "tries": 0}
        report = check_targets(spec, [target], stream=(x, y), **how)
        (found,) = report.rows
        if not report.ok:
            sys.exit(f"{target} {rule} {size}: {found['first_difference']}")
        rows.append(
            {
                "target": target,
                "rule": rule,
                "size": size,
                "state_bytes": found["state_bytes"],
                "ram_bytes": found["ram_bytes"],
                "flash_bytes": found["flash_bytes"],
                "stack_bytes": found["stack_bytes"],
                **{name: round(found[name]["max"]) if name in found else "" for name in ("predict", "update")},
                **{name: round(found[name]["max"]) if name in found else "" for name in ("train", "assess")},
                "compiler": f"{chosen.toolchain} {found['version']} {chosen.level}",
            }
        )
    save(DATA / "training-cost.csv", rows)


if __name__ == "__main__":
    main()
