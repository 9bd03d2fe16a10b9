"""Rounding of Gaussian kernels whose distances come from products, beside those from differences, in float32.

    python -m tests.support.products_error

One vector of weight 1 (with several, errors partly cancel) at a distance R from the center, and inputs at it, near it
and further out, where the kernel takes all its values.  The vector is what float32 holds of it.  Printed: the largest
error of f(x) over many models, in 2^-23, for each gamma R^2 and number of inputs; and the largest ratio to
(1 + gamma R^2), which is the constant of the bound that tests/algorithms/test_numerics_products.py asserts.
"""

from __future__ import annotations

import math

import numpy as np

from pykernel.bases.gram import MercerKernel
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

SPREADS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
DIMS = (1, 2, 8, 32, 128)
MODELS, INPUTS = 40, 300


def bound(spread: float, dim: int) -> float:
    """Of the error with products, in 2^-23 sum |w|; spread: gamma R^2."""
    return (2 + math.sqrt(dim)) * (1 + spread)


def error(distance: str, spread: float, dim: int, rng: np.random.Generator, count: int = 1) -> float:
    """The largest error of one model of ``count`` vectors, in 2^-23 sum |w|."""
    vectors = rng.normal(size=(count, dim))
    vectors = (vectors / np.linalg.norm(vectors, axis=1).max()).astype(np.float32).astype(float)
    gamma = spread  # R is 1
    weights = rng.choice([-1.0, 1.0], (count, 1))
    model = HostModel(
        make_spec(
            {
                "name": "m",
                "input": {"dim": dim, "max_abs": 1e4},
                "label": {},
                "kernel": {"function": "gaussian", "gamma": gamma},
                "learning": {"rule": "frozen"},
                "expansion": {
                    "vectors": vectors.tolist(),
                    "weights": weights.tolist(),
                    "bias": [0.0],
                    "distance": distance,
                },
            }
        )
    )
    # at most where the kernel is e^-9: what follows is smaller than its own rounding
    at = vectors[rng.integers(0, count, INPUTS)]
    steps = rng.normal(size=(INPUTS, dim))
    outward = rng.random(INPUTS) < 0.3
    steps[outward] = at[outward]
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    x = at + steps * (rng.uniform(0, 3, INPUTS) * rng.choice([0, 0.01, 1, 1], INPUTS) / math.sqrt(gamma))[:, None]
    x = x.astype(np.float32)
    # gamma as float32 holds it is another kernel by half an ulp, which is not what is asked here
    rate = float(np.float32(gamma / math.log(2)))
    exact = (MercerKernel("gaussian", rate * math.log(2)).gram(x, vectors) @ weights)[:, 0]
    return float(np.abs(model.predict(x) - exact).max() / (2.0**-23 * np.abs(weights).sum()))


def main() -> None:
    rng = np.random.default_rng(0)
    print("| distance | inputs |", " | ".join(f"{spread:g}" for spread in SPREADS), "| / (1 + gamma R²) |")
    print("| --- " * (len(SPREADS) + 3) + "|")
    for distance in ("differences", "products"):
        for dim in DIMS:
            found = [max(error(distance, spread, dim, rng) for _ in range(MODELS)) for spread in SPREADS]
            ratio = max(e / (1 + spread) for e, spread in zip(found, SPREADS, strict=True))
            print(f"| {distance} | {dim} |", " | ".join(f"{e:,.1f}" for e in found), f"| {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
