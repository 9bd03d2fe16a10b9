"""Specs of models that are trained at once, on the device or elsewhere: every kernel, every decision, every kind of label."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.spec import Spec, make_spec

KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {"gamma": 0.5},
    "laplacian": {"function": "laplacian", "gamma": 0.5},
    "polynomial": {"function": "polynomial", "gamma": 0.25, "coef0": 1.0, "degree": 3},
    "linear": {"function": "linear"},
    "sigmoid": {"function": "sigmoid", "gamma": 0.05, "coef0": 0.1},
}
CLASSES = {"classes": ["rest", "tap", "shake"]}
TWO = {"classes": ["rest", "tap"]}
SCALED = {"center": [0.5, -2.0, 10.0], "factor": [1.0, 0.25, -2.0]}


def expansion(vectors: int, functions: int, pairs: bool = False, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng([vectors, functions])
    weights = rng.normal(size=(vectors, functions))
    made = {"vectors": rng.normal(size=(vectors, 3)).tolist(), "weights": weights.tolist()}
    if pairs:
        count = functions + 1
        return (
            made | {"bias": rng.normal(size=count * functions // 2).tolist(), "owners": _owners(vectors, count)} | more
        )
    return made | {"bias": rng.normal(size=functions).tolist()} | more


def _owners(vectors: int, classes: int) -> list[int]:
    return sorted(i % classes for i in range(vectors))


def _frozen(kernel: str, vectors: int, functions: int = 1, **sections: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"learning": {"rule": "frozen"}, "kernel": KERNELS[kernel]}
    return made | {"expansion": expansion(vectors, functions)} | sections


MACHINES: dict[str, dict[str, Any]] = {
    "svr": _frozen("gaussian", 9),
    "products": _frozen("gaussian", 9, expansion=expansion(9, 1, distance="products")),
    "products-votes": _frozen(
        "gaussian", 8, label=CLASSES, expansion=expansion(8, 2, True, decision="votes", distance="products")
    ),
    "votes": _frozen("laplacian", 7, label=CLASSES, expansion=expansion(7, 2, True, decision="votes", break_ties=True)),
    "pairs": _frozen("sigmoid", 7, label=CLASSES, expansion=expansion(7, 2, True, decision="pairs")),
    "calibrated": _frozen(
        "polynomial",
        5,
        3,
        label=CLASSES,
        input={"limit": 100.0},
        expansion=expansion(5, 3, calibration=[[-1.0, 0.1], [-2.0, 0.0], [-0.5, -0.3]]),
    ),
    "two": _frozen("linear", 1, label=TWO, input=SCALED, expansion=expansion(1, 1, calibration=[[-1.5, 0.25]])),
    "outputs": _frozen("gaussian", 6, 2, label={"outputs": 2, "low": -1.0, "high": 1.0}, input=SCALED),
    "krr": {"learning": {"rule": "krr", "ridge": 0.5, "samples": 12}, "kernel": KERNELS["laplacian"]},
    "krr-poly": {
        "learning": {"rule": "krr", "ridge": 2.0, "samples": 8},
        "kernel": KERNELS["polynomial"],
        "input": {"limit": 10.0},
        "label": {"outputs": 2, "limit": 10.0},
    },
    "ls-svm": {
        "learning": {"rule": "ls-svm", "ridge": 0.1, "samples": 16},
        "kernel": KERNELS["gaussian"],
        "input": SCALED,
    },
    "ls-svm-classes": {
        "learning": {"rule": "ls-svm", "ridge": 0.2, "samples": 15},
        "kernel": KERNELS["gaussian"],
        "label": CLASSES,
    },
    "kfd": {
        "learning": {"rule": "kfd", "ridge": 5.0},
        "kernel": KERNELS["gaussian"],
        "label": TWO,
        "expansion": {"vectors": expansion(6, 1)["vectors"]},
    },
    "kfd-classes": {
        "learning": {"rule": "kfd", "ridge": 5.0},
        "kernel": KERNELS["laplacian"],
        "label": CLASSES,
        "input": SCALED,
        "expansion": {"vectors": expansion(9, 1)["vectors"]},
    },
}


def machine(name: str, precision: str = "float32", model: str = "flow") -> Spec:
    content = MACHINES[name]
    return make_spec(content | {"name": model, "precision": precision, "input": {"dim": 3} | content.get("input", {})})
