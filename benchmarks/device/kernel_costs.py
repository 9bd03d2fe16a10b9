"""Instructions of one kernel value on an emulated Cortex-M4F, for each kernel, in float32.

    python -m benchmarks.device.kernel_costs [-o docs]

A frozen model predicts the same 100 inputs with 16 and with 48 expansion vectors; a value is 1/32 of the difference, with
the multiplication by its weight and the loop around it.  Built by GCC (-O2); every instruction is counted, and each
answer compared with the host's, bit for bit.  Inputs are so near to the vectors that no value is cut off to zero.
Writes kernel-costs.csv to the output folder and the table into docs/reference/kernels.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, markdown, publish, save
from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.kernels import squared_distance
from pykernel.dialect import DIM, Kernel, Real, kernel, real
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import make_spec
from pykernel.targets.build import model_image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

FEW, MANY, CALLS = 16, 48, 100
DIMENSIONS = (1, 8, 32)
TARGET = find_target("cortex-m4f")


@kernel
def rational_quadratic(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:  # type: ignore[valid-type]
    """1 / (1 + gamma |a - b|^2)."""
    return real(1) / (real(1) + q.gamma * squared_distance(a, b))


CUSTOM = {
    "function": "custom",
    "source": "kernel_costs.py",
    "kernel": "rational_quadratic",
    "gamma": 0.5,
    "max_value": 1.0,
}
CUBIC = {"function": "polynomial", "gamma": 0.25, "coef0": 1.0, "degree": 3}
KERNELS: dict[str, tuple[dict[str, Any], Kernel | None]] = {
    "gaussian": ({"function": "gaussian", "gamma": 0.5}, None),
    "laplacian": ({"function": "laplacian", "gamma": 0.5}, None),
    "matern12": ({"function": "matern12", "gamma": 0.5}, None),
    "matern32": ({"function": "matern32", "gamma": 0.5}, None),
    "matern52": ({"function": "matern52", "gamma": 0.5}, None),
    "rational-quadratic": ({"function": "rational-quadratic", "gamma": 0.5, "alpha": 0.75}, None),
    "linear": ({"function": "linear"}, None),
    "polynomial, degree 3": (CUBIC, None),
    "sigmoid": ({"function": "sigmoid", "gamma": 0.25, "coef0": 0.5}, None),
    **{name: ({"function": name}, None) for name in HIDDEN},
    "linear, normalised": ({"function": "linear", "normalise": True}, None),
    "polynomial, normalised": (CUBIC | {"normalise": True}, None),
    "custom: rational quadratic": (CUSTOM, rational_quadratic),
}


def instructions(name: str, dim: int, vectors: int) -> float:
    """Mean instructions of a prediction."""
    content, own = KERNELS[name]
    rng = np.random.default_rng(0)
    made = rng.uniform(-1, 1, (MANY, dim))[:vectors]
    expansion = {"vectors": made.tolist(), "weights": [[1.0]] * vectors, "bias": [0.0]}
    if name in HIDDEN:
        expansion["offsets"] = np.linspace(0, 1, vectors).tolist()
    spec = make_spec(
        {
            "name": "model",
            "input": {"dim": dim, "max_abs": 10.0},
            "kernel": content,
            "learning": {"rule": "frozen"},
            "expansion": expansion,
        },
        custom=own,
    )
    x = rng.uniform(-1, 1, (CALLS, dim)).astype(np.float32)
    project = build(spec)
    known = HostModel(spec, project.drop).predict(x)
    model = UnicornModel(project, model_image(project, TARGET, "gcc", level="-O2"))
    counts, found = [], []
    for sample in x:
        call, status = model.measure("predict", b"", sample, None)
        assert status == 0
        counts.append(call.instructions)
        found.append(model.answered("predict")[0])
    assert np.array(found).tobytes() == known.tobytes()
    return float(np.mean(counts))


def table(rows: Rows) -> str:
    heads = ["kernel", *(f"{dim} input{'s' if dim > 1 else ''}" for dim in DIMENSIONS)]
    by = {(row["kernel"], int(row["inputs"])): row["instructions"] for row in rows}
    return markdown(heads, ([name, *(by[name, dim] for dim in DIMENSIONS)] for name in KERNELS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    out = parser.parse_args().output
    rows = []
    for name in KERNELS:
        for dim in DIMENSIONS:
            cost = (instructions(name, dim, MANY) - instructions(name, dim, FEW)) / (MANY - FEW)
            rows.append({"kernel": name, "inputs": dim, "instructions": round(cost)})
            print(rows[-1], file=sys.stderr)
    made = save(out / "kernel-costs.csv", rows)
    if out == DATA:
        publish({"kernel costs": table(made)})
    print(table(made))


if __name__ == "__main__":
    main()
