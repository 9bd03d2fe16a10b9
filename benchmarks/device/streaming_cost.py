"""What a basis on the device costs: bytes, and instructions of each call on emulated processors; writes docs/data/streaming-cost.csv.

    python -m benchmarks.device.streaming_cost [--target cortex-m4f] [--toolchain zig] [--level -O2] [--samples 800]

Eight standard normal inputs, one label, a Gaussian kernel of width 2, float32, reservoirs of 3 N rows.  "stream": the
whole stream, which restarts half-way; "update" is the largest of the updates in which the sample was no candidate,
"added" of those that added a vector, "replaced" of those that exchanged one; "tried" the mean of those whose candidate
lost against all that are there; the mean of all depends on the stream.  "efvs", "sgma": NAME_select with 59 candidates
(and points) from a full reservoir.  "given": learning on a basis in flash.  "nystrom": a frozen map with weights.  Every
row's memory and answers are compared with the host's.

``docs/bases-on-device.md`` quotes the results; ``tests/pages/test_bases_on_device_docs.py`` compares the two.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.tables import DATA, save
from pykernel.gen.check import Reference
from pykernel.gen.project import build
from pykernel.spec.model import make_spec
from pykernel.targets.build import model_image, toolchain
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

SIZES = (16, 32, 64)
METHODS = ("nystrom", "given", "stream", "stream, no cache", "efvs", "sgma")
DIM, SIGMA, RIDGE, ALD_THRESHOLD, ROWS = 8, 2.0, 0.1, 1e-3, 3


def content(method: str, n: int, x: np.ndarray) -> dict[str, Any]:
    made: dict[str, Any] = {"name": "measured", "input": {"dim": DIM}, "kernel": {"sigma": SIGMA}}
    vectors = x[:n].astype(float).tolist()
    if method == "nystrom":
        weights = np.random.default_rng(n).normal(size=(n, 1)).tolist()
        expansion = {"vectors": vectors, "weights": weights, "bias": [0.5]}
        return made | {"learning": {"rule": "nystrom"}, "expansion": expansion}
    learning = {"rule": "nystrom-rls", "ridge": RIDGE}
    if method == "given":
        return made | {"learning": learning, "basis": {"method": "given"}, "expansion": {"vectors": vectors}}
    basis: dict[str, Any] = {"method": method.split(",")[0]}
    if method.startswith("stream"):
        basis["cache"] = method == "stream"
    return made | {
        "learning": learning | {"samples": ROWS * n},
        "reduction": {"n_max": n, "ald_threshold": ALD_THRESHOLD},
        "basis": basis,
    }


def mean(values: np.ndarray) -> Any:
    return round(float(values.mean())) if len(values) else ""


def measured(method: str, n: int, x: np.ndarray, y: np.ndarray, target: str, chain: Any, level: str) -> dict[str, Any]:
    spec = make_spec(content(method, n, x))
    project, part = build(spec), find_target(target)
    reference = Reference(project, None, x, y)
    image = model_image(project, part, chain, level=level)
    model = UnicornModel(project, image)
    model.paint_stack()
    verdict = reference.verdict(model)
    if not verdict["equal"]:
        sys.exit(f"{target} {method} {n}: {verdict['first_difference']}")
    costs = {name: np.array(taken) for name, taken in model.costs.items() if taken}
    updates, statuses = costs.get("update", np.zeros(0)), np.zeros(0)
    if spec.program.learns:
        # of the stream; NAME_select is called in the check's second pass alone, and before it there is no basis
        passes = reference.results if "select" in costs else reference.results[:1]
        statuses = np.concatenate([each.statuses for results in passes for each in results if each.name == "update"])
        updates = updates[: len(statuses)]
    swapped = statuses == 2
    # a candidate that lost costs nearly what one that won does; the others are far below
    tried = (statuses == 0) & (updates > (updates[swapped].min() / 2 if swapped.any() else np.inf))
    quiet = (statuses == 0) & ~tried
    compiler = toolchain(part, chain)
    return {
        "target": target,
        "method": method,
        "n": n,
        "rows": spec.learning.samples if method not in ("nystrom", "given") else "",
        "state_bytes": project.figures["state_bytes"],
        "ram_bytes": project.figures["ram_bytes"],
        "flash_bytes": image.flash_bytes,
        "stack_bytes": model.machine.stack_used(),
        **{name: int(costs[name].max()) if name in costs else "" for name in ("predict", "features", "residual")},
        "update": int(updates[quiet].max()) if quiet.any() else "",
        "update_mean": mean(updates),
        "added": int(updates[statuses == 1].max()) if (statuses == 1).any() else "",
        "tried": mean(updates[tried]),
        "replaced": int(updates[swapped].max()) if swapped.any() else "",
        "updates": len(updates) or "",
        "tries": int(tried.sum()) if method.startswith("stream") else "",
        "swaps": int(swapped.sum()) if method.startswith("stream") else "",
        "select": int(costs["select"].max()) if "select" in costs else "",
        "compiler": f"{chain} {compiler.version} {level}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", nargs="+", default=["cortex-m4f"])
    parser.add_argument("--toolchain", default="zig")
    parser.add_argument("--level", default="-O2")
    parser.add_argument("--samples", type=int, default=800)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(chosen.samples, DIM)).astype(np.float32)
    y = np.sin(x.sum(1)).astype(np.float32)
    jobs = [(target, method, n) for target in chosen.target for method in METHODS for n in SIZES]
    rows = [
        measured(method, n, x, y, target, chosen.toolchain, chosen.level)
        for target, method, n in track(jobs, "bases on the device")
    ]
    save(DATA / "streaming-cost.csv", rows)


if __name__ == "__main__":
    main()
