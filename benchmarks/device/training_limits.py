"""What float32 leaves of a training on the device, beside float64, on both sides of the least ridge; writes docs/data/training-limits.csv.

    python -m benchmarks.device.training_limits

Standard normal inputs; labels are the sine of their sum with 0.1 times noise (krr, ls-svm), or whether that with 0.3 times
noise is above zero (kfd, on a basis of the first vectors).  Errors: of predictions at the samples, largest, in parts of
the largest prediction; of the mean squared leave-one-out residual, in parts of it.  The least ridge is switched off for
the measurement.  ``docs/training-on-device.md`` quotes the results; ``tests/pages/test_benchmarks.py`` compares the two.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
from rich.progress import track

from benchmarks.tables import DATA, save
from pykernel.host.model import HostModel
from pykernel.spec.families import batch as batch_models
from pykernel.spec.model import make_spec

DENSE = ((50, 2, 1.0), (100, 2, 3.0), (200, 4, 2.0), (200, 4, 6.0), (300, 3, 3.0))  # samples, inputs, sigma
BASES = ((8, 200, 1.0), (16, 300, 3.0), (32, 1000, 2.0), (32, 1000, 5.0), (64, 1000, 2.0))  # vectors, samples, sigma
PARTS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridges, in parts of what bounds the largest eigenvalue."""


def trained(content: dict[str, Any], precision: str, x: np.ndarray, y: np.ndarray) -> tuple[HostModel, float]:
    """A model that was trained without a least ridge, and its mean squared leave-one-out residual."""
    model = HostModel(make_spec(content | {"name": "measured", "precision": precision}))
    model.update(x, y)
    if model.call("train") != 0:
        return model, np.nan
    if content["learning"]["rule"] == "kfd":
        model.visit("assess", x, y)
    out = np.zeros(2, model.spec.real.dtype)
    model.call("leave_one_out", out)
    return model, float(out[0])


def row(content: dict[str, Any], part: float, x: np.ndarray, y: np.ndarray, **about: Any) -> dict[str, Any]:
    exact, press = trained(content, "float64", x, y)
    narrow, narrow_press = trained(content, "float32", x, y)
    expected, found = exact.predict(x).astype(float), narrow.predict(x).astype(float)
    return {
        "rule": content["learning"]["rule"],
        **about,
        "part": f"{part:g}",
        "prediction_error": f"{np.abs(found - expected).max() / np.abs(expected).max():.1e}",
        "press_error": f"{abs(narrow_press - press) / press:.1e}",
    }


def rows() -> list[dict[str, Any]]:
    rng, found = np.random.default_rng(0), []
    for samples, dim, sigma in track(DENSE, "krr, ls-svm"):
        x = rng.normal(size=(samples, dim))
        y = np.sin(x.sum(1)) + 0.1 * rng.normal(size=samples)
        largest = np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / 2 / sigma**2).sum(1).max()
        for rule in ("krr", "ls-svm"):
            for part in PARTS:
                learning = {"rule": rule, "samples": samples, "ridge": part * largest}
                content = {
                    "input": {"dim": dim},
                    "label": {"max_abs": 10.0},
                    "kernel": {"sigma": sigma},
                    "learning": learning,
                }
                found.append(row(content, part, x, y, vectors=samples, samples=samples, sigma=sigma))
    for vectors, samples, sigma in track(BASES, "kfd"):
        x = rng.normal(size=(samples, 4))
        y = (np.sin(x.sum(1)) + 0.3 * rng.normal(size=samples) > 0).astype(int)
        z = np.exp(-((x[:, None] - x[None, :vectors]) ** 2).sum(-1) / 2 / sigma**2)
        trace = float(((z - z.mean(0)) ** 2).sum())
        for part in PARTS:
            content = {
                "input": {"dim": 4},
                "label": {"classes": ["no", "yes"]},
                "kernel": {"sigma": sigma},
                "learning": {"rule": "kfd", "ridge": part * trace},
                "expansion": {"vectors": x[:vectors].tolist()},
            }
            found.append(row(content, part, x, y, vectors=vectors, samples=samples, sigma=sigma))
    return found


def main() -> None:
    nothing = {"float32": 0.0, "float64": 0.0}
    with mock.patch.object(batch_models, "LEAST", nothing), mock.patch.object(batch_models, "LEAST_OF_TRACE", nothing):
        save(DATA / "training-limits.csv", rows())


if __name__ == "__main__":
    main()
